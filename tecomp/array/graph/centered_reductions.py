"""Expand reductions of terms into a center, element-wise functions and a total."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from tecomp.operations.reductions import divisor_of
from tecomp.ptensor.operations.elementwise import FUNCTIONS, CastOp, WhereOp
from tecomp.ptensor.operations.manipulation import Squeeze
from tecomp.ptensor.operations.reduction import ReduceOp, te_accumulator_dtype, term_dtype
from tecomp.ptensor.types import PTensorType, axes_of, numpy_dtype

Apply = Callable[..., Any]


class AlgebraOperand:
    """Value of a graph, to which a formula applies operators.

    Attributes:
        apply: Function of an operation and values that adds the operation to the graph.
        value: Value of the graph.
    """

    __slots__ = ("apply", "value")

    def __init__(self, apply: Apply, value: Any) -> None:
        self.apply = apply
        self.value = value

    def __add__(self, other: AlgebraOperand) -> AlgebraOperand:
        return self.call("add", other)

    def __sub__(self, other: AlgebraOperand) -> AlgebraOperand:
        return self.call("subtract", other)

    def __truediv__(self, other: AlgebraOperand) -> AlgebraOperand:
        return self.call("divide", other)

    def call(self, name: str, *others: AlgebraOperand) -> AlgebraOperand:
        """Apply an element-wise function to the value and other values."""
        values = [self.value, *[other.value for other in others]]
        return AlgebraOperand(self.apply, self.apply(FUNCTIONS[name], *values))


class GraphAlgebra:
    """Functions of real values of a graph, for formulas of the table of reductions.

    Attributes:
        constant: Function that adds a constant, given as an array.
        dtype: dtype of the values.
    """

    def __init__(self, constant: Callable[[Any], Any], dtype: str) -> None:
        self.constant = constant
        self.dtype = dtype

    def squared_magnitude(self, x: AlgebraOperand) -> AlgebraOperand:
        """Compute the square."""
        return x.call("square")

    def sqrt(self, x: AlgebraOperand) -> AlgebraOperand:
        """Compute the square root."""
        return x.call("sqrt")

    def exp(self, x: AlgebraOperand) -> AlgebraOperand:
        """Compute the exponential."""
        return x.call("exp")

    def log(self, x: AlgebraOperand) -> AlgebraOperand:
        """Compute the natural logarithm."""
        return x.call("log")

    def finite(self, x: AlgebraOperand) -> AlgebraOperand:
        """Return a finite value, and 0 in place of infinities and NaN."""
        zero = self.constant(np.zeros((), numpy_dtype(self.dtype)))
        return AlgebraOperand(x.apply, x.apply(WhereOp(), x.call("isfinite").value, x.value, zero))


def expand_centered(
    op: ReduceOp, operand_type: PTensorType, x: Any, apply: Apply, constant: Callable[[Any], Any],
    center_of: Callable[..., Any] | None = None,
) -> Any:
    """Expand a reduction of terms; return its result.

    Args:
        op: Reduction of real elements.
        operand_type: Type of the operand.
        x: Operand.
        apply: Function of an operation and values that adds the operation to the graph.
        constant: Function that adds a constant, given as an array.
        center_of: Function of the operand and the axes that adds the center, with kept axes.
            Default: reduce the operand.
    """
    row, axes = op.row, axes_of(op.axis, operand_type.rank, op.kind)
    dtype = term_dtype(
        row, operand_type.dtype, te_accumulator_dtype(operand_type.dtype, operand_type.device))
    assert row.term is not None
    wide = x if dtype == operand_type.dtype else apply(CastOp(dtype), x)
    center = None
    if row.center and center_of is not None:
        center = center_of(wide, axes)
    elif row.center:
        center = apply(ReduceOp(row.center, axes, keepdims=True), wide)

    def count() -> AlgebraOperand:
        divisor = divisor_of(prod([operand_type.shape[axis] for axis in axes]), op.correction)
        return AlgebraOperand(apply, constant(np.array(divisor, numpy_dtype(dtype))))

    def reduced_center() -> AlgebraOperand:
        return AlgebraOperand(apply, center if op.keepdims else apply(Squeeze(axes), center))

    m = GraphAlgebra(constant, dtype)
    terms = row.term(m, AlgebraOperand(apply, wide), AlgebraOperand(apply, center))
    total = apply(ReduceOp(row.combiner, axes, op.keepdims), terms.value)
    result = AlgebraOperand(apply, total)
    if row.finish is not None:
        result = row.finish(m, result, count, reduced_center)
    if dtype == operand_type.dtype:
        return result.value
    return apply(CastOp(operand_type.dtype), result.value)
