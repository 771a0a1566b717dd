"""Nested chains over long rows in one fused loop allocate memory only for the rows in use."""

from __future__ import annotations

import re

import numpy as np
import pytest

import tecomp
from tecomp import te
from tests.numerics import assert_close

ROWS, LENGTH = 6, 100


def chain(inner: int | None) -> tuple[te.Schedule, list[te.Tensor]]:
    """Build three stages in chunks of 32; the first is attached to chunks or rows of the second."""
    A = te.placeholder((ROWS, LENGTH), name="A")
    B = te.compute(A.shape, lambda i, j: A[i, j] * 2.0, name="B")
    C = te.compute(A.shape, lambda i, j: B[i, j] + 1.0, name="C")
    D = te.compute(A.shape, lambda i, j: C[i, j] * 3.0, name="D")
    s = te.create_schedule(D)
    chunk, _ = s[D].split(s[D].fuse(*D.op.axis), factor=32)
    s[C].compute_at(s[D], chunk)
    loop = C.op.axis[0]
    if inner is not None:
        loop, _ = s[C].split(s[C].fuse(*C.op.axis), factor=inner)
    s[B].compute_at(s[C], loop)
    return s, [A, D]


@pytest.mark.exhaustive(keep=1)
@pytest.mark.parametrize(("inner", "elements"), [(None, 32), (8, 2 * LENGTH)])
def test_memory_is_for_rows_in_use(inner: int | None, elements: int) -> None:
    """A chunk spans at most two rows, so two rows are allocated; its part of one row needs one."""
    s, args = chain(inner)

    text = str(tecomp.lower(s, args, stop_after="flatten_buffer"))

    found = {name: int(n) for n, name in re.findall(r"Allocate\(.*\((\d+),\)\)\) as (\w+)", text)}
    assert found == {"B": elements, "C": 2 * LENGTH}


@pytest.mark.exhaustive(keep=1)
@pytest.mark.parametrize("inner", [None, 8])
def test_chunks_have_the_numbers_of_the_chain(inner: int | None) -> None:
    s, args = chain(inner)
    a = np.random.default_rng(0).standard_normal((ROWS, LENGTH)).astype(np.float32)
    d = np.zeros_like(a)
    tecomp.build(s, args, check_bounds=True)(a, d)

    assert_close(d, (a * 2 + 1) * 3, rtol=1e-6)
