"""Formulas give equal results as expressions, with NumPy and as intrinsics of compiled code."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tecomp
from tecomp import te, topi
from tecomp.codegen.math import registry
from tecomp.compute.intrinsics import ExpressionAlgebra
from tecomp.operations import ELEMENTWISE, Algebra, NumpyAlgebra, Op, element_type
from tecomp.ptensor import numpy_dtype
from tests.numerics import assert_close
from tests.strategies import functions
from tests.strategies.functions import arguments, exact, terms, ulps

ROWS = [row for row in ELEMENTWISE if any(row.ulps) and row.formula]
SLACK = 2.0
"""Errors of other orders of evaluation than that of vectors, for which rows state bounds."""


@pytest.mark.exhaustive(keep=5)
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


def every_function(m: Algebra, x: Any) -> Any:
    """Combine all functions of an algebra, so that each contributes to the value."""
    zero = m.constant(0.0, x)
    total = m.exp(m.minimum(x, 1.0 + zero)) + m.log1p(m.maximum(x, zero))
    total = total + m.sqrt(m.log(3.0 + x * x)) + m.function("tanh", x) + m.function("floor", x)
    total = total + m.polynomial(x, (0.5, 0.25)) + m.where(m.equal(m.round(x), 0.0), x, -x)
    return m.narrow(m.wide(total) * 0.5, x) if m.is_double(x) else total


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_every_algebra_has_every_function(dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Vectors of the code generator, expressions and NumPy arrays give the same numbers."""
    x = np.linspace(-3, 3, 64).astype(dtype)
    vectors, expressions = np.empty_like(x), np.empty_like(x)
    algebra = registry._VectorAlgebra()
    monkeypatch.setitem(registry._FORMULAS, "erfinv", lambda x: every_function(algebra, x))
    X = te.placeholder((64,), dtype, "X")
    Y = te.compute((64,), lambda i: every_function(ExpressionAlgebra(), X[i]), name="Y")

    functions.compiled("erfinv", 64, 8, dtype=dtype)(x, vectors)
    tecomp.build(Y, [X, Y])(x, expressions)

    wanted = every_function(NumpyAlgebra(), x)
    assert wanted.dtype == dtype
    unit = float(np.finfo(x.dtype).eps)
    for found in (vectors, expressions):
        # The terms that cancel are less than 16.
        assert_close(found, wanted, rtol=0, atol=16 * unit)
