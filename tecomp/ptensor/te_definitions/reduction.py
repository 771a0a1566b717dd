"""Reductions and argmin/argmax in `te`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, Literal

from tecomp import te
from tecomp.compute.intrinsics import ExpressionAlgebra
from tecomp.operations.reductions import (
    COMBINERS,
    REDUCTIONS,
    TO_WIDE,
    Reduction,
    divisor_of,
)
from tecomp.ptensor.formulas.tables import convert_element
from tecomp.ptensor.operations.reduction import (
    AxisReduction,
    FindIndex,
    te_accumulator_dtype,
    term_dtype,
)
from tecomp.ptensor.te_definitions.creation import define
from tecomp.ptensor.types import PART, PTensorType, Shape, axes_of, axis_of, drop_axes
from tecomp.ptensor.values import (
    Complex,
    Element,
    Value,
    element_at,
    map_parts,
    value_of,
)
from tecomp.schedules import argreduce
from tecomp.topi import reshape


@dataclass(frozen=True)
class ReductionDomain:
    """Elements along reduction axes of a shape.

    Attributes:
        shape: Shape.
        axes: Reduction axes.
        keepdims: Whether to keep reduced axes with size 1.
    """

    shape: Shape
    axes: tuple[int, ...]
    keepdims: bool

    @property
    def count(self) -> int:
        """Number of elements per reduction."""
        return prod([self.shape[k] for k in self.axes])

    @property
    def result(self) -> Shape:
        """Shape of the result."""
        return drop_axes(self.shape, self.axes, self.keepdims)

    def result_index(self, index: Sequence[Any]) -> list[Any]:
        """Return the index of the result to which an element contributes."""
        retained = [k for k in range(len(self.shape)) if self.keepdims or k not in self.axes]
        return [0 if k in self.axes else index[k] for k in retained]

    def combined(self, element: Callable[..., Element], combiner: str, name: str) -> Value:
        """Reduce elements given by a function of the index; without axes, return the elements."""
        if self.axes and COMBINERS[combiner].dual:
            return self._combined_negated(element, combiner, name)
        runs = {k: te.reduce_axis((0, self.shape[k]), name=f"k{k}") for k in self.axes}

        def at(*index: te.Expr) -> Element:
            value = element(*self._elements(index, runs))
            if not runs:
                return value
            axis = list(runs.values())
            if isinstance(value, Complex):
                return Complex(*_COMPLEX_REDUCERS[combiner]((value.re, value.im), axis=axis))
            found: te.Expr = _REDUCERS[combiner](value, axis=axis)
            return found

        return value_of(self.result, at, name)

    def _combined_negated(
        self, element: Callable[..., Element], combiner: str, name: str
    ) -> Value:
        """Reduce negated truth values by the dual of an operator, and negate the result."""

        def negated(*index: te.Expr) -> te.Expr:
            value = element(*index)
            assert not isinstance(value, Complex), "truth values are real"
            return te.logical_not(value)

        total = self.combined(negated, COMBINERS[combiner].dual, f"{name}_negated")
        return map_parts(total, lambda part: te.compute(
            part.shape, lambda *index: te.logical_not(part(*index)), name=name))

    def _elements(self, index: Sequence[te.Expr], runs: dict[int, Any]) -> Iterator[Any]:
        outer = iter(index)
        for k in range(len(self.shape)):
            retained = next(outer) if self.keepdims or k not in runs else None
            yield runs.get(k, retained)

    def sums(self, element: Callable[..., Element], wide_dtype: str, name: str) -> Value:
        """Sum elements in a dtype; both parts of complex elements are read together."""
        return self.combined(lambda *i: widen_element(element(*i), wide_dtype), "sum", name)


def widen_element(value: Element, dtype: str) -> Element:
    """Convert an element, or both parts of a complex element, to a wider dtype."""
    if isinstance(value, Complex):
        return Complex(te.cast(value.re, dtype), te.cast(value.im, dtype))
    return te.cast(value, dtype)


def _times(x: Sequence[Any], y: Sequence[Any]) -> tuple[te.Expr, te.Expr]:
    product = Complex(*x) * Complex(*y)
    return product.re, product.im


_REDUCERS: Mapping[str, Callable[..., Any]] = {
    row.name: getattr(te, row.reducer) for row in COMBINERS.values()
}
_COMPLEX_REDUCERS: Mapping[str, Callable[..., Any]] = {
    "sum": te.comm_reducer(
        lambda x, y: (x[0] + y[0], x[1] + y[1]),
        lambda re, im: (te.const(0, re), te.const(0, im)), name="sum"),
    "prod": te.comm_reducer(
        _times, lambda re, im: (te.const(1, re), te.const(0, im)), name="product"),
}
_STAGE_NAMES: Mapping[str, str] = {
    "count_nonzero": "count", "mean": "total", "prod": "product", "std": "squares",
    "sum": "total", "var": "squares",
}
"""Names of the totals of reductions, if they differ from the name of the reduction."""


class ElementAlgebra(ExpressionAlgebra):
    """Functions of elements, for formulas of the table of reductions."""

    def squared_magnitude(self, x: Element) -> te.Expr:
        """Compute the square of a real number, or of the absolute value of a complex number."""
        if isinstance(x, Complex):
            return x.re * x.re + x.im * x.im
        return super().squared_magnitude(x)


_ALGEBRA = ElementAlgebra()


@define.register
def _(
    op: AxisReduction, operands: Sequence[Value], types: Sequence[PTensorType], result: PTensorType
) -> Value:
    (x,), (x_type,), row = operands, types, op.row
    rows = ReductionDomain(x_type.shape, axes_of(op.axis, x_type.rank, row.name), op.keepdims)
    if row.gives == TO_WIDE:
        x = as_dtype(x, x_type, result.dtype)
    dtype = PART.get(result.dtype, result.dtype)
    wide_dtype = te_accumulator_dtype(dtype, result.device)
    correction = getattr(op, "correction", 0)
    part = PART.get(x_type.dtype, x_type.dtype)
    reduced = _define_row(row, x, rows, part, wide_dtype, correction)
    return narrow_value(reduced, result, row.name)


def _define_row(
    row: Reduction, x: Value, rows: ReductionDomain, dtype: str, wide: str, correction: float = 0
) -> Value:
    """Define a reduction by its row; sums and products have the dtype of their accumulator.

    The result of `var` and `std` is NaN if the count of elements does not exceed the correction.

    Args:
        row: Row of the reduction.
        x: Elements.
        rows: Elements along the reduction axes.
        dtype: Dtype of the elements, or of their parts.
        wide: Dtype of the accumulator of sums and products.
        correction: Number subtracted from the count of elements.
    """
    center: Any = None
    if row.center:
        center = _define_row(REDUCTIONS[row.center], x, rows, dtype, wide)

    def element(*index: te.Expr) -> Element:
        value = element_at(x, index)
        if row.of_truth:
            value = is_true(value)
        if row.term is not None:
            inner = term_dtype(row, dtype, wide)
            center_value = row.center and widen_element(
                element_at(center, rows.result_index(index)), inner)
            value = row.term(_ALGEBRA, widen_element(value, inner), center_value)
        return widen_element(value, wide) if row.combiner in ("sum", "prod") else value

    total = rows.combined(element, row.combiner, _STAGE_NAMES.get(row.name, row.name))
    finish = row.finish
    if finish is None:
        return total

    def count() -> te.Expr:
        return _corrected_count(rows.count, wide, correction)

    def result(part: te.Tensor) -> te.Tensor:
        result: te.Tensor = te.compute(
            part.shape,
            lambda *i: finish(_ALGEBRA, part(*i), count, lambda: element_at(center, i)),
            name=row.name)
        return result

    return map_parts(total, result)


def as_dtype(x: Value, x_type: PTensorType, dtype: str) -> Value:
    """Convert a value to a dtype."""
    if x_type.dtype == dtype:
        return x
    return value_of(
        x_type.shape, lambda *i: convert_element(element_at(x, i), x_type.dtype, dtype), "converted"
    )


def narrow_value(value: Value, result: PTensorType, name: str) -> Value:
    """Convert a value from the accumulation dtype to the dtype of the result."""
    dtype = PART.get(result.dtype, result.dtype)
    return map_parts(value, lambda part: cast_to(part, dtype, name))


def cast_to(part: te.Tensor, dtype: str, name: str) -> te.Tensor:
    """Cast a tensor to a dtype."""
    if part.dtype == dtype:
        return part
    result: te.Tensor = te.compute(part.shape, lambda *i: te.cast(part(*i), dtype), name=name)
    return result


def _corrected_count(count: Any, dtype: str, correction: float = 0) -> te.Expr:
    """Return a count of elements minus the correction; the count may be known only at run time."""
    if isinstance(count, int):
        return te.const(divisor_of(count, correction), dtype)
    if not correction:
        return te.cast(count, dtype)
    difference = te.cast(count, dtype) - te.const(float(correction), dtype)
    return te.select(difference > 0, difference, te.const(float("nan"), dtype))


def is_true(value: Element) -> te.Expr:
    """Return whether an element is nonzero."""
    if isinstance(value, Complex):
        return te.any(value.re != 0, value.im != 0)
    # A constant of the same dtype, because a comparison with int32 would widen narrow integers.
    return value if value.dtype.is_bool else value != te.const(0, str(value.dtype))


_NARROW = 2
"""Element size in bytes up to which the index is found by a second search for the extreme value.

Wider elements carry their index along: an index has four bytes, so with narrow elements a vector
would have fewer lanes.
"""


@define.register
def _(
    op: FindIndex, operands: Sequence[Value], types: Sequence[PTensorType], result: PTensorType
) -> Value:
    (x,), (x_type,) = operands, types
    assert isinstance(x, te.Tensor)
    kind: Literal["argmax", "argmin"] = "argmax" if op.kind == "argmax" else "argmin"
    axis, shape = 0, x_type.shape
    if op.axis is not None:
        axis = axis_of(op.axis, x_type.rank, op.kind)
    elif x_type.rank != 1:
        shape = (x_type.size,)
        x = reshape(x, shape)
    if x.dtype.bytes <= _NARROW:
        # Long rows get a kernel for their length after a few calls.
        found: te.Tensor = argreduce.define(
            x, axis, kind, out_dtype=result.dtype, name=kind, has_short_rows=True
        )
    else:
        found = _reduce_with_indices(x, shape, axis, kind)
    return te.compute(
        result.shape, lambda
        *i: te.cast(found(*_index_without_axis(i, op.keepdims, axis, found)), result.dtype),
        name=kind,
    )


def _reduce_with_indices(
    x: te.Tensor, shape: Shape, axis: int, kind: Literal["argmax", "argmin"]
) -> te.Tensor:
    """Reduce values together with their indices, in 32 bits if that is sufficient."""
    k = te.reduce_axis((0, shape[axis]), name="k")
    index = te.cast(k, argreduce.index_type(x, shape[axis]))
    position, _ = te.compute(
        (*shape[:axis], *shape[axis + 1 :]),
        lambda *i: argreduce.first_of(x.dtype, kind)(
            (index, x(*i[:axis], k, *i[axis:])), axis=k),
        name=f"{kind}_found",
    )
    found: te.Tensor = position
    return found


def _index_without_axis(
    index: Sequence[te.Expr], keepdims: bool, axis: int, found: te.Tensor
) -> Sequence[te.Expr]:
    """Return the index of the found position, without the axis that `keepdims` adds."""
    if not keepdims:
        return index
    return [*index[:axis], *index[axis + 1 :]] if found.shape else []
