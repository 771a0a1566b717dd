"""Formulas of the table of element-wise functions as functions of expressions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from tecomp.ir.nodes.dtype import BOOL, DType
from tecomp.ir.nodes.expr import BinOp, Call, Expr, binary, cast, const, select
from tecomp.operations.element_types import NARROW
from tecomp.operations.formulas import Algebra
from tecomp.operations.rows import FLOATS, Op


class ExpressionAlgebra(Algebra):
    """Functions of expressions, for formulas of the table (see `tecomp.operations.formulas`).

    >>> from tecomp import te
    >>> ExpressionAlgebra().polynomial(te.var("x", "float64"), (1.0, 0.0, 3.0))
    (float64(3.0) * x + float64(0.0)) * x + float64(1.0)
    """

    def is_double(self, x: Expr) -> bool:
        """Return whether an expression has dtype float64."""
        return x.dtype.scalar == "float64"

    def where(self, condition: Expr, a: Expr, b: Expr) -> Expr:
        """Select `a` where the condition holds, and `b` elsewhere."""
        return select(condition, a, b)

    def equal(self, a: Expr, b: Expr | float) -> Expr:
        """Compare for equality."""
        return a.equal(b)

    def polynomial(self, x: Expr, coefficients: Sequence[float]) -> Expr:
        """Compute a polynomial by Horner's rule."""
        total = const(coefficients[-1], x.dtype)
        for coefficient in reversed(coefficients[:-1]):
            total = total * x + const(coefficient, x.dtype)
        return total

    def constant(self, value: float, x: Expr) -> Expr:
        """Return a number in the dtype of `x`."""
        return const(value, x.dtype)

    def wide(self, x: Expr) -> Expr:
        """Convert to float64."""
        return cast(DType("float64").with_lanes(x.dtype.lanes), x)

    def narrow(self, value: Expr, x: Expr) -> Expr:
        """Convert a value of dtype float64 to the dtype of `x`."""
        return cast(x.dtype, value)

    def maximum(self, a: Expr, b: Expr) -> Expr:
        """Return the larger value; NaN propagates."""
        return binary(BinOp.MAX, a, b)

    def minimum(self, a: Expr, b: Expr) -> Expr:
        """Return the smaller value; NaN propagates."""
        return binary(BinOp.MIN, a, b)

    def squared_magnitude(self, x: Expr) -> Expr:
        """Compute the square."""
        return x * x

    def finite(self, x: Expr) -> Expr:
        """Return a finite value, and 0 in place of infinities and NaN."""
        if not x.dtype.is_float:
            return x
        is_finite = Call("isfinite", (x,), BOOL.with_lanes(x.dtype.lanes))
        return select(is_finite, x, const(0, x.dtype))

    def function(self, name: str, *operands: Expr) -> Expr:
        """Compute the intrinsic function of a row."""
        return Call(name, operands, operands[0].dtype)


def formula_function(row: Op) -> Callable[..., Expr]:
    """Return the formula of a row as a function of expressions.

    Formulas of floats that have several steps are computed in float32 for narrower dtypes.

    >>> from tecomp import te
    >>> from tecomp.operations.elementwise import elementwise_in
    >>> formula_function(elementwise_in("topi")["left_shift"])(te.var("i"), te.var("j"))
    i << j
    """
    assert row.formula is not None
    formula = partial(row.formula, ExpressionAlgebra())
    if row.takes is not FLOATS:
        return formula

    def compute(*operands: Expr) -> Expr:
        dtype = operands[0].dtype
        if dtype.scalar in NARROW:
            wide = DType("float32").with_lanes(dtype.lanes)
            return cast(dtype, formula(*[cast(wide, operand) for operand in operands]))
        result: Expr = formula(*operands)
        return result

    return compute
