"""Cumulative sums, products and differences in `te`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tecomp import te
from tecomp.operations.reductions import COMBINERS
from tecomp.ptensor.operations.reduction import Cumulative, Diff
from tecomp.ptensor.te_definitions.creation import define
from tecomp.ptensor.te_definitions.linear_algebra import times
from tecomp.ptensor.te_definitions.reduction import as_dtype, narrow_value, widen_element
from tecomp.ptensor.types import FLOATS, PART, PTensorType, Shape, axis_of
from tecomp.ptensor.values import (
    Complex,
    ComplexTensor,
    Element,
    Value,
    deinterleave_complex,
    element_at,
    interleave_complex,
    map_parts,
    real,
    value_of,
)
from tecomp.schedules import cumsum
from tecomp.schedules.common import wide_type
from tecomp.schedules.tiling.reduction import first_output


@define.register
def _(
    op: Cumulative, operands: Sequence[Value], types: Sequence[PTensorType], result: PTensorType
) -> Value:
    (x,), (x_type,) = operands, types
    axis = axis_of(op.axis, x_type.rank, op.where)
    x = as_dtype(x, x_type, result.dtype)
    if op.kind == "sum" and isinstance(x, ComplexTensor):
        # The parts are two columns, so each step adds a pair.
        running: Value = deinterleave_complex(
            cumsum.define(interleave_complex(x, "pairs"), axis, name="running"))
    elif op.kind == "sum" and isinstance(x, te.Tensor) and _is_cut(x_type, axis, result.dtype):
        running = cumsum.define(x, axis, name="running")
    else:
        running = _by_steps(x, x_type.shape, axis, op, result)
    if not op.include_initial:
        return running
    return _prepend_initial(running, COMBINERS[op.kind].identity, axis, result)


def _is_cut(x_type: PTensorType, axis: int, dtype: str) -> bool:
    """Return whether to sum groups of elements first, which shortens the dependence chain.

    A one-dimensional sum benefits unless it is of integers, whose addition has a short latency, or
    of float64, where reading the groups from memory again takes as long as the latency of the sums.
    Along the first or last axis of several rows, a vector holds one element of each row, so the
    chains are independent already.
    """
    if x_type.rank == 1:
        return dtype in FLOATS and dtype != "float64"
    return axis not in (0, x_type.rank - 1)


def _by_steps(
    x: Value, shape: Shape, axis: int, op: Cumulative, result: PTensorType
) -> Value:
    """Define the scan as a recurrence over rows."""
    steps, others = shape[axis], (*shape[:axis], *shape[axis + 1 :])
    wide_dtype = wide_type(PART.get(result.dtype, result.dtype))

    def element(t: Any, *i: Any) -> Element:
        return widen_element(element_at(x, (*i[:axis], t, *i[axis:])), wide_dtype)

    count = 2 if isinstance(x, ComplexTensor) else 1
    states = [te.placeholder((steps, *others), wide_dtype, name=f"state{k}") for k in range(count)]
    state: Value = ComplexTensor(*states) if count == 2 else states[0]

    def step(t: te.Expr, *i: te.Expr) -> Any:
        before = element_at(state, (t - 1, *i))
        return _parts((_plus if op.kind == "sum" else times)(before, element(t, *i)))

    first = min(steps, 1) if isinstance(steps, int) else 1
    start = te.compute((first, *others), lambda *i: _parts(element(*i)), name="start")
    rows = te.compute((steps, *others), step, name="step")
    reads = [x.re, x.im] if isinstance(x, ComplexTensor) else [x]
    scanned = te.scan(start, rows, states, reads, name="running")
    found: Value = ComplexTensor(*scanned) if count == 2 else first_output(scanned)
    if axis:
        found = map_parts(found, lambda part: _move_scan_axis(part, shape, axis))
    return narrow_value(found, result, "running")


def _move_scan_axis(rows: te.Tensor, shape: Shape, axis: int) -> te.Tensor:
    """Move the first axis of a scan to its position in the result."""
    moved: te.Tensor = te.compute(
        shape, lambda *i: rows(i[axis], *i[:axis], *i[axis + 1 :]), name="running")
    return moved


def _parts(value: Element) -> Any:
    return (value.re, value.im) if isinstance(value, Complex) else value


def _plus(x: Element, y: Element) -> Element:
    return real(x) + real(y)  # complex sums use pairs of real numbers


def _prepend_initial(running: Value, initial: float, axis: int, result: PTensorType) -> Value:
    """Prepend the initial value to cumulative results."""

    def part(tensor: te.Tensor, start: float) -> te.Tensor:
        def at(*i: te.Expr) -> te.Expr:
            before = (*i[:axis], i[axis] - 1, *i[axis + 1 :])
            return te.if_then_else(i[axis] > 0, tensor(*before), te.const(start, tensor.dtype))

        extended: te.Tensor = te.compute(result.shape, at, name="with_initial")
        return extended

    if isinstance(running, ComplexTensor):
        return ComplexTensor(part(running.re, initial), part(running.im, 0))
    return part(running, initial)


@define.register
def _(
    op: Diff, operands: Sequence[Value], types: Sequence[PTensorType], result: PTensorType
) -> Value:
    (x,), (x_type,) = operands, types
    axis = axis_of(op.axis, x_type.rank, op.name)

    def at(*i: te.Expr) -> Element:
        next_index = (*i[:axis], i[axis] + 1, *i[axis + 1 :])
        later, earlier = (element_at(x, index) for index in (next_index, i))
        if isinstance(later, Complex) and isinstance(earlier, Complex):
            return later - earlier
        return real(later) - real(earlier)

    return value_of(result.shape, at, "diff")
