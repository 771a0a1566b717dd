"""Formulas give equal results as expressions, with NumPy and as intrinsics of compiled code."""

from __future__ import annotations

import numpy as np
import pytest

import tecomp
from tecomp import te, topi
from tecomp.compute.expression_algebra import ExpressionAlgebra
from tecomp.operations import ELEMENTWISE, Op, element_type
from tecomp.operations.formulas import NumpyAlgebra
from tecomp.ptensor import numpy_dtype
from tests.strategies.functions import arguments, exact, terms, ulps

ROWS = [row for row in ELEMENTWISE if any(row.ulps) and row.formula]
SLACK = 2.0
"""Errors of other orders of evaluation than that of vectors, for which rows state bounds."""


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_formulas_are_accurate_in_every_algebra(row: Op, dtype: str) -> None:
    formula, name = row.formula, row.call or row.name
    assert formula is not None
    operands = arguments(name, 512, 3, dtype)
    tensors = [te.placeholder((512,), dtype, f"X{k}") for k in range(row.arity)]
    Y = te.compute((512,), lambda i: formula(ExpressionAlgebra(), *[X[i] for X in tensors]), name="Y")
    compiled = np.empty(512, dtype)
    tecomp.build(Y, [*tensors, Y])(*operands, compiled)
    with np.errstate(all="ignore"):
        computed = formula(NumpyAlgebra(), *operands)
    wanted = exact(name, operands)

    for result in (compiled, computed):
        assert result.dtype == dtype
        error, odd = ulps(result, wanted, terms(name, operands))
        assert not odd.any(), [operand[odd] for operand in operands]
        assert error.max() <= row.ulps[dtype == "float64"] + SLACK


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_formulas_of_several_steps_are_computed_in_float32(dtype: str) -> None:
    kind = numpy_dtype(dtype)
    x, y = (np.random.default_rng(k).normal(0, 4, 512).astype(kind) for k in range(2))
    A, B = (te.placeholder((512,), dtype, name) for name in "AB")
    wanted = np.logaddexp(x.astype("float64"), y.astype("float64"))
    compiled = np.empty(512, kind)
    C = topi.log_add_exp(A, B)
    tecomp.build(C, [A, B, C])(x, y, compiled)

    unit = 2.0 ** -element_type(dtype).fraction_bits
    error = np.abs(compiled.astype("float64") - wanted) / np.exp2(np.floor(np.log2(np.abs(wanted))))
    assert error.max() <= 0.51 * unit
