"""A drawn call of each function; `python -m tests.array.conformance --count 200` draws more."""

from __future__ import annotations

import pytest

from tests.array.conformance.calls import MAKERS
from tests.array.conformance.tries import fault_of
from tests.array.test_signatures import FUNCTIONS

# Results of these are not defined, or not unique, or have tests of their own.
ELSEWHERE = {
    "__array_namespace_info__", "asarray", "empty", "empty_like", "finfo", "from_dlpack", "iinfo",
    "isdtype", "linalg.eig", "linalg.eigh", "linalg.eigvals", "linalg.qr", "linalg.svd",
    "linalg.matmul", "linalg.matrix_transpose", "linalg.tensordot", "linalg.vecdot",
}


@pytest.mark.parametrize("name", MAKERS)
def test_a_call_gives_what_numpy_gives(name: str) -> None:
    assert fault_of(name, (0, 0)) == ""


def test_no_function_is_left_out() -> None:
    assert {*FUNCTIONS} - {*MAKERS} - ELSEWHERE == set()
