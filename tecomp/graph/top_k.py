"""Compute the largest elements of rows on cores instead of on the host.

`topi.topk` calls a function of the host. On a target with host memory, its input is copied there
and the result back. For few elements, rounds of reductions on the cores take less time: each round
finds the largest element after the element of the previous round, and then its first index. An
element comes after another one if it is smaller, or equal at a larger index. Rows are only read,
never changed.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any, cast

from tecomp import te
from tecomp.compute.extern import ExternOp
from tecomp.compute.operation import Operation
from tecomp.compute.tensor import Tensor
from tecomp.ir.nodes.stmt import ExternCall
from tecomp.machine.components import VectorUnit
from tecomp.machine.descriptor import Target
from tecomp.schedules.scratchpad.placement import Placement, placement_of

_RESULTS = {
    "tecomp.topi.topk": ("values", "indices"),
    "tecomp.topi.topk_values": ("values",),
    "tecomp.topi.topk_indices": ("indices",),
}
"""Results of each host function."""
_OPERATIONS = 8
"""Operations per element of a reduction: comparisons with the previous element, and selections."""
_JOIN_LATENCIES = 8
"""Maximum cost of joining the results of the rounds, in latencies of the host link.

Each round gives one element per stick or tile row. For 200 to 2048 rows, reports have 12,000 to
42,000 cycles more than the rounds on `stick128`, and 3,000 on `tensix_wh`.
"""
_MAX_EXACT = {"float32": 1 << 24, "float16": 1 << 11}
"""Largest extent whose indices the dtype of the elements represents."""


def top_k_on_cores(op: Operation, target: Target) -> tuple[Tensor, ...]:
    """Return the results of a top-k operation, computed on the cores if the model prefers them.

    Only descending order of float32 and float16 is supported: NaN, the largest value, comes first.

    Args:
        op: Operation.
        target: Target.

    Returns:
        Replacements of the outputs, or the outputs.
    """
    where = placement_of(target)
    if where is None or not isinstance(op, ExternOp) or not isinstance(op.statement, ExternCall):
        return op.outputs
    call = op.statement
    if call.function not in _RESULTS:
        return op.outputs
    *_, axis, is_ascend = (int(getattr(arg, "value", -1)) for arg in call.arguments)
    (x,), count = op.inputs, op.shapes[0][axis]
    extent = x.shape[axis]
    if is_ascend or not isinstance(count, int) or not isinstance(extent, int):
        return op.outputs
    if extent > _MAX_EXACT.get(str(x.dtype), 0) or count == 0:
        return op.outputs
    if cycles_on_cores(x, axis, count, where) >= cycles_of_trip(x, op.outputs, target):
        return op.outputs
    values, indices = _rounds(x, axis, count)
    by_name = {"values": values, "indices": indices}
    return tuple(
        _join_rounds(arg, by_name[kind], axis)
        for arg, kind in zip(op.outputs, _RESULTS[call.function], strict=True)
    )


def _rounds(x: Tensor, axis: int, count: int) -> tuple[list[Tensor], list[Tensor]]:
    """Return the value and the index of each round, without the axis.

    Vector units have no operations on booleans, so conditions are nested selections.
    """
    dtype, extent = str(x.dtype), cast("int", x.shape[axis])
    shape = (*x.shape[:axis], *x.shape[axis + 1 :])
    end = te.const(float(extent), dtype)
    values: list[Tensor] = []
    indices: list[Tensor] = []

    def element(i: tuple[Any, ...], k: Any) -> Any:
        return x(*i[:axis], k, *i[axis:])

    for number in range(count):
        previous = _Previous.of(values[-1], indices[-1], extent) if number else None

        def best(*i: Any, previous: _Previous | None = previous) -> Any:
            k = te.reduce_axis((0, extent), name="k")
            value, index = element(i, k), te.cast(k, dtype)
            worst = -te.infinity(dtype)
            return te.max(_if_remaining(previous, i, value, index, value, worst), axis=k)

        value = te.compute(shape, best, name=f"{x.name}_top{number}")

        def first_index(*i: Any, previous: _Previous | None = previous, value: Any = value) -> Any:
            k = te.reduce_axis((0, extent), name="k")
            current, index = element(i, k), te.cast(k, dtype)
            # The maximum is NaN if a remaining element is NaN.
            is_number = current == current
            found = te.Select(current == value(*i), index, te.Select(is_number, end, index))
            return te.min(_if_remaining(previous, i, current, index, found, end), axis=k)

        values.append(value)
        indices.append(te.compute(shape, first_index, name=f"{x.name}_at{number}"))
    return values, indices


@dataclass(frozen=True, slots=True)
class _Previous:
    """Element of the previous round.

    Attributes:
        value: Value; infinity if it is NaN.
        index: Index after which equal values remain; -1 if the value is NaN.
        nan_index: Index after which NaN remain; the extent if the value is not NaN.
    """

    value: Tensor
    index: Tensor
    nan_index: Tensor

    @classmethod
    def of(cls, value: Tensor, index: Tensor, extent: int) -> _Previous:
        """Return the element with the given value and index of each row."""
        dtype = str(value.dtype)

        def row(name: str, normal: Any, other: Any) -> Tensor:
            result: Tensor = te.compute(
                value.shape,
                lambda *i: te.Select(value(*i) == value(*i), normal(i), other(i)),
                name=f"{value.name}_{name}",
            )
            return result

        return cls(
            row("bound", lambda i: value(*i), lambda i: te.infinity(dtype)),
            row("after", lambda i: index(*i), lambda i: te.const(-1.0, dtype)),
            row("nan_after", lambda i: te.const(float(extent), dtype), lambda i: index(*i)),
        )


def _if_remaining(
    previous: _Previous | None, i: tuple[Any, ...], current: Any, index: Any, chosen: Any,
    other: Any,
) -> Any:
    """Return `chosen` if an element comes after the previous one, else `other`."""
    if previous is None:
        return chosen
    value = previous.value(*i)
    equal = te.Select(index > previous.index(*i), chosen, other)
    # A comparison with NaN is False. No other element is larger than the bound after NaN.
    larger = te.Select(index > previous.nan_index(*i), chosen, other)
    return te.Select(current < value, chosen, te.Select(current == value, equal, larger))


def _join_rounds(result: Tensor, rounds: list[Tensor], axis: int) -> Tensor:
    """Return the values of all rounds along the axis of the result, in its dtype."""

    def chosen(*i: Any) -> Any:
        row = (*i[:axis], *i[axis + 1 :])
        value = rounds[-1](*row)
        for number, part in reversed(list(enumerate(rounds[:-1]))):
            value = te.Select(i[axis] == number, part(*row), value)
        return te.cast(value, str(result.dtype))

    joined: Tensor = te.compute(result.shape, chosen, name=result.name)
    return joined


def cycles_on_cores(x: Tensor, axis: int, count: int, where: Placement) -> float:
    """Return the estimated cycles of the rounds: the maximum of memory traffic and operations."""
    target = where.target
    elements = prod(cast("int", n) for n in x.shape)
    rows = elements // max(cast("int", x.shape[axis]), 1)
    device = target.memory(where.device)
    # Values and indices of the previous round have one element per stick or tile row.
    previous_bytes = where.bytes((rows, 1), str(x.dtype))
    traffic = elements * x.dtype.bytes + 2 * previous_bytes
    rate = device.read_bytes_per_cycle
    units = [
        unit.cycles.get("default", 1.0) / (unit.lanes(str(x.dtype)) * unit.instances)
        for unit in target.engine.values()
        if isinstance(unit, VectorUnit) and str(x.dtype) in unit.types
    ]
    work = _OPERATIONS * elements * (units[0] if units else 1.0) / min(target.cores, max(rows, 1))
    round_cycles: float = max(traffic / rate if rate else 0.0, work)
    latencies: list[float] = [
        link.latency_cycles for link in target.links.values() if link.to == where.device
    ]
    return 2 * count * round_cycles + _JOIN_LATENCIES * max(latencies, default=0)


def cycles_of_trip(x: Tensor, results: tuple[Tensor, ...], target: Target) -> float:
    """Return the cycles of the copies to and from host memory; 0 without links to it."""

    def copy_cycles(tensors: tuple[Tensor, ...], *, to_host: bool) -> float:
        for link in target.links.values():
            ends = [target.memory(name).scope for name in (link.from_, link.to)]
            if ends == (["chip", "host"] if to_host else ["host", "chip"]):
                size = sum(prod(cast("int", n) for n in y.shape) * y.dtype.bytes for y in tensors)
                return link.latency_cycles + size / (link.bytes_per_cycle * link.instances)
        return 0.0

    return copy_cycles((x,), to_host=True) + copy_cycles(results, to_host=False)
