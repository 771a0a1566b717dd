"""Decisions about functions follow the costs of their rows."""

from __future__ import annotations

import numpy as np
import pytest

from tecomp.array.graph import pending_graph_of, record
from tecomp.array.kernels import must_materialize
from tecomp.operations import Op, elementwise_in
from tecomp.ptensor import FUNCTIONS
from tecomp.ptensor.operations import ReduceOp
from tests.array.arrays import array

ROWS = elementwise_in("array")
CHEAP = ("bitwise_and", "bitwise_right_shift", "copysign", "floor", "multiply", "sign", "trunc")
EXPENSIVE = ("divide", "exp", "pow", "remainder", "sqrt", "tanh")


def is_stored(row: Op) -> bool:
    """Return whether a value is stored that an element-wise kernel and a reduction read."""
    dtype = "float64" if "float64" in row.takes.dtypes else "int64"
    x = array(np.ones((4, 8), dtype))._node
    middle = record(FUNCTIONS[row.name], *[x] * row.arity)
    test = record(FUNCTIONS["equal"], middle, middle)
    total = record(ReduceOp("max", (0,)), middle)
    del x, middle  # a value that the program holds is stored in any case
    work = pending_graph_of([test, total])
    return len(must_materialize(work)) > len(work.outputs)


@pytest.mark.parametrize("name", [*CHEAP, *EXPENSIVE])
def test_cheap_values_are_recomputed_and_others_stored(name: str) -> None:
    assert is_stored(ROWS[name]) == (name in EXPENSIVE)
