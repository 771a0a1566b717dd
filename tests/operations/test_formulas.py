"""Formulas give equal results as expressions, with NumPy and as intrinsics of compiled code."""

from __future__ import annotations

import numpy as np
import pytest

import tecomp
from tecomp import te
from tecomp.compute.expression_algebra import ExpressionAlgebra
from tecomp.operations import ELEMENTWISE, Op
from tecomp.operations.formulas import NumpyAlgebra
from tests.strategies.functions import arguments, exact, terms, ulps

ROWS = [row for row in ELEMENTWISE if row.call and row.formula]
SLACK = 2.0
"""Errors of other orders of evaluation than that of vectors, for which rows state bounds."""


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_formulas_are_accurate_in_every_algebra(row: Op, dtype: str) -> None:
    assert row.formula is not None
    operands = arguments(row.call, 512, 3, dtype)
    tensors = [te.placeholder((512,), dtype, f"X{k}") for k in range(row.arity)]
    Y = te.compute((512,), lambda i: row.formula(ExpressionAlgebra(), *[X[i] for X in tensors]), name="Y")
    compiled = np.empty(512, dtype)
    tecomp.build(Y, [*tensors, Y])(*operands, compiled)
    with np.errstate(all="ignore"):
        computed = row.formula(NumpyAlgebra(), *operands)
    wanted = exact(row.call, operands)

    for result in (compiled, computed):
        assert result.dtype == dtype
        error, odd = ulps(result, wanted, terms(row.call, operands))
        assert not odd.any(), [operand[odd] for operand in operands]
        assert error.max() <= row.ulps[dtype == "float64"] + SLACK
