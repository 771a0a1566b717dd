"""Running sums and products along an axis, and differences of neighbours."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tecomp import te
from tecomp.ptensor.axes import axis_of
from tecomp.ptensor.definitions.define import define
from tecomp.ptensor.definitions.reduction import as_dtype
from tecomp.ptensor.operations.reduction import Cumulative, Diff
from tecomp.ptensor.types import PTensorType, Shape
from tecomp.ptensor.values import (
    Complex,
    ComplexTensor,
    Element,
    Value,
    element_at,
    mapped,
    real,
    value_of,
)
from tecomp.schedules import cumsum
from tecomp.topi.scan import cumprod


@define.register
def _(
    op: Cumulative, operands: Sequence[Value], types: Sequence[PTensorType], result: PTensorType
) -> Value:
    (x,), (given,) = operands, types
    axis = axis_of(op.axis, given.rank, op.where)
    x = as_dtype(x, given, result.dtype)
    if op.kind == "sum":
        running = mapped(x, lambda part: cumsum.define(part, axis, name="running"))
    elif isinstance(x, ComplexTensor):
        running = _complex_products(x, given.shape, axis)
    else:
        running = cumprod(x, axis)
    if not op.include_initial:
        return running
    return _after(running, 0 if op.kind == "sum" else 1, axis, result)


def _complex_products(x: ComplexTensor, shape: Shape, axis: int) -> ComplexTensor:
    """All complex elements up to each, multiplied one after the other."""
    steps, others = shape[axis], (*shape[:axis], *shape[axis + 1 :])

    def element(t: Any, *i: Any) -> Complex:
        return Complex(x.re(*i[:axis], t, *i[axis:]), x.im(*i[:axis], t, *i[axis:]))

    def first(t: te.Expr, *i: te.Expr) -> tuple[te.Expr, te.Expr]:
        value = element(t, *i)
        return value.re, value.im

    dtype = x.re.dtype
    re, im = (te.placeholder((steps, *others), dtype, name=name) for name in ("re", "im"))

    def step(t: te.Expr, *i: te.Expr) -> tuple[te.Expr, te.Expr]:
        value = Complex(re(t - 1, *i), im(t - 1, *i)) * element(t, *i)
        return value.re, value.im

    start = te.compute((min(steps, 1), *others), first, name="products_start")
    steps_of = te.compute((steps, *others), step, name="products_step")
    scanned = te.scan(start, steps_of, [re, im], [x.re, x.im], name="products_scan")

    def moved(part: te.Tensor) -> te.Tensor:
        made: te.Tensor = te.compute(
            shape, lambda *i: part(i[axis], *i[:axis], *i[axis + 1 :]), name="products")
        return made

    return ComplexTensor(moved(scanned[0]), moved(scanned[1]))


def _after(running: Value, initial: int, axis: int, result: PTensorType) -> Value:
    """Running values behind that of no element."""

    def part(of: te.Tensor, start: int) -> te.Tensor:
        def at(*i: te.Expr) -> te.Expr:
            before = (*i[:axis], i[axis] - 1, *i[axis + 1 :])
            return te.if_then_else(i[axis] > 0, of(*before), te.const(start, of.dtype))

        made: te.Tensor = te.compute(result.shape, at, name="with_initial")
        return made

    if isinstance(running, ComplexTensor):
        return ComplexTensor(part(running.re, initial), part(running.im, 0))
    return part(running, initial)


@define.register
def _(
    op: Diff, operands: Sequence[Value], types: Sequence[PTensorType], result: PTensorType
) -> Value:
    (x,), (given,) = operands, types
    axis = axis_of(op.axis, given.rank, op.name)

    def at(*i: te.Expr) -> Element:
        following = (*i[:axis], i[axis] + 1, *i[axis + 1 :])
        later, earlier = (element_at(x, place) for place in (following, i))
        if isinstance(later, Complex) and isinstance(earlier, Complex):
            return later - earlier
        return real(later) - real(earlier)

    return value_of(result.shape, at, "diff")
