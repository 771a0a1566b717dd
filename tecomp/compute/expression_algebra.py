"""Functions of expressions from rows of the table of element-wise functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from tecomp.compute import elementwise
from tecomp.compute import intrinsics as te
from tecomp.compute.operators import select
from tecomp.ir.nodes.dtype import DType
from tecomp.ir.nodes.expr import Expr, const
from tecomp.operations.rows import Op


class ExpressionAlgebra:
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
        return te.cast(x, str(DType("float64").with_lanes(x.dtype.lanes)))

    def narrow(self, value: Expr, x: Expr) -> Expr:
        """Convert a value of dtype float64 to the dtype of `x`."""
        return te.cast(value, x.dtype)

    def round(self, x: Expr) -> Expr:
        """Round to the nearest integer, with ties to even."""
        return elementwise.nearbyint(x)

    def log(self, x: Expr) -> Expr:
        """Compute the natural logarithm."""
        return elementwise.log(x)

    def squared_magnitude(self, x: Expr) -> Expr:
        """Compute the square."""
        return x * x

    def exp(self, x: Expr) -> Expr:
        """Compute the exponential."""
        return elementwise.exp(x)

    def finite(self, x: Expr) -> Expr:
        """Return a finite value, and 0 in place of infinities and NaN."""
        return select(elementwise.isfinite(x), x, const(0, x.dtype))

    def sqrt(self, x: Expr) -> Expr:
        """Compute the square root."""
        return elementwise.sqrt(x)


def expression_function(row: Op) -> Callable[..., Expr] | None:
    """Return the function of expressions that a row defines, if it has an intrinsic or a formula.

    >>> from tecomp import te
    >>> from tecomp.operations.elementwise import elementwise_in
    >>> expression_function(elementwise_in("topi")["left_shift"])(te.var("i"), te.var("j"))
    i << j
    """
    if row.call:
        module = elementwise if hasattr(elementwise, row.name) else te
        function: Callable[..., Expr] = getattr(module, row.name)
        return function
    return partial(row.formula, ExpressionAlgebra()) if row.formula else None
