"""Performance warnings, and a suggestion of a smaller tile that fits the memory."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from tecomp.compute.operation import ComputeOp
from tecomp.compute.tensor import TensorLoad
from tecomp.errors import TecompError, warn
from tecomp.ir.arith.simplify import simplify
from tecomp.ir.nodes.expr import BufferLoad, Const, Expr
from tecomp.ir.nodes.stmt import Allocate, Buffer, BufferStore, For, ForKind, PrimFunc, Stmt
from tecomp.ir.traversal.rewrite import nodes_of, statements_in, substitute, walk
from tecomp.lowering.pipeline import LoweringResult, lower_all
from tecomp.machine.components import Core
from tecomp.machine.descriptor import Target
from tecomp.scheduling.replay import replay
from tecomp.scheduling.schedule import Schedule
from tecomp.scheduling.schedule.primitive_calls import last_primitive_call

_TIMES = 4
"""Minimum recomputation factor, and minimum number of lanes, for a warning."""

_ELEMENTS = 2**20
"""Minimum number of redundantly computed elements for a warning."""

_MIN_BUFFER_BYTES = 2**20
"""Minimum size of a buffer in bytes for a stride warning; larger than any first-level cache."""

Loops = tuple[For, ...]


def emit_performance_warnings(schedule: Schedule, lowered: LoweringResult, target: Target) -> None:
    """Warn of slow primitive calls in user code, once per call; ignore calls of the library."""
    calls = {call[2] for call, location in schedule.calls if location is not None}
    func = lowered.functions["flatten_buffer"]
    if "compute_at" in calls:
        _check_recomputed(schedule, func)
    if "vectorize" in calls:
        _check_strides(schedule, func)
    if target.core is not None and calls & {"cache_read", "cache_write"}:
        _check_copies(schedule, func, target.core.cache_bytes[-1])


def _statements(func: PrimFunc) -> Iterator[tuple[Stmt, Loops]]:
    """Yield every statement with its enclosing loops, outermost first."""
    worklist: list[tuple[Stmt, Loops]] = [(func.body, ())]
    while worklist:
        stmt, loops = worklist.pop()
        yield stmt, loops
        inside = (*loops, stmt) if isinstance(stmt, For) else loops
        worklist += [(part, inside) for part in statements_in(stmt)]


def _check_recomputed(schedule: Schedule, func: PrimFunc) -> None:
    counts: dict[str, int] = {}
    for stmt, loops in _statements(func):
        if isinstance(stmt, BufferStore) and not _reads(stmt, stmt.buffer):
            trips = [loop.extent.value for loop in loops if isinstance(loop.extent, Const)]
            if len(trips) == len(loops):
                name = stmt.buffer.name
                counts[name] = counts.get(name, 0) + int(prod(trips))
    for stage in schedule.state:
        count = counts.get(re.sub(r"\W", "_", stage.name), 0)
        extents = [n for n in stage.op.output(0).shape if isinstance(n, int)]
        size = prod(extents)
        if len(extents) < len(stage.op.output(0).shape) or _is_copy(stage.op):
            continue
        location = last_primitive_call(schedule, "compute_at", stage.name)
        if location is not None and count >= _TIMES * size and count - size >= _ELEMENTS:
            warn(
                "s[{stage}].compute_at: {count} elements are computed, but {stage} has only "
                "{size}; compute it in an outer loop, or reuse elements between iterations with "
                "rolling_buffer",
                location, kind="redundant-computation", stage=stage.name, count=count, size=size,
            )


def _reads(stmt: BufferStore, buffer: Buffer) -> bool:
    return any(
        isinstance(node, BufferLoad) and node.buffer.data is buffer.data
        for node in walk(stmt.value)
    )


def _is_copy(op: object) -> bool:
    return not isinstance(op, ComputeOp) or isinstance(op.body[0], TensorLoad)


def _check_strides(schedule: Schedule, func: PrimFunc) -> None:
    warned: set[int] = set()
    for stmt, loops in _statements(func):
        lanes = next((loop for loop in loops if loop.kind is ForKind.VECTORIZED), None)
        if lanes is None or not isinstance(stmt, BufferStore):
            continue
        location = last_primitive_call(schedule, "vectorize", lanes.loop_var.name)
        accesses: list[BufferStore | BufferLoad] = [stmt]
        accesses += nodes_of(BufferLoad, stmt.value)
        for access in accesses:
            if location is None or id(lanes) in warned:
                break
            if step := _step(access.indices, access.buffer, lanes):
                warned.add(id(lanes))
                warn(
                    "vectorize({loop_var}): the lanes have a stride of {step} elements of "
                    "{buffer}, so each lane is loaded or stored separately; vectorize a loop over "
                    "contiguous elements, or call transform_layout",
                    location, kind="large-stride", loop_var=lanes.loop_var.name, step=step,
                    buffer=access.buffer.name,
                )


def _step(indices: tuple[Expr, ...], buffer: Buffer, lanes: For) -> int:
    """Return the stride of the lanes in elements if it is large enough for a warning, else 0."""
    extents = [n for n in buffer.shape if isinstance(n, int)]
    if len(extents) < len(buffer.shape) or prod(extents) * buffer.dtype.bytes < _MIN_BUFFER_BYTES:
        return 0
    if not isinstance(lanes.extent, Const) or lanes.extent.value < _TIMES:
        return 0
    var = lanes.loop_var
    step = simplify(substitute(indices[-1], {var: var + 1}) - indices[-1])
    stride = abs(int(step.value)) if isinstance(step, Const) else 0
    return stride if stride * buffer.dtype.bytes >= Core.LINE_BYTES else 0  # lanes share no line


def _check_copies(schedule: Schedule, func: PrimFunc, limit: int) -> None:
    for stmt, _ in _statements(func):
        if not isinstance(stmt, Allocate):
            continue
        extents = [n for n in stmt.buffer.shape if isinstance(n, int)]
        size = prod(extents) * stmt.buffer.dtype.bytes
        if len(extents) < len(stmt.buffer.shape) or size <= limit:
            continue
        for call in ("cache_read", "cache_write"):
            location = last_primitive_call(schedule, call, stmt.buffer.name)
            if location is not None:
                warn(
                    "s.{call}: {buffer} takes {size} bytes, but the largest cache holds {limit} "
                    "bytes; compute it inside a loop whose iterations need fewer elements",
                    location, kind="large-copy", call=call, buffer=stmt.buffer.name, size=size,
                    limit=limit,
                )


_MAX_SCHEDULES = 24
"""Maximum number of schedules to try; each takes as long as lowering in a build."""
_MAX_NODES = 20_000
"""Maximum number of nodes of all tried functions, about five seconds of lowering. A node count
instead of a time limit makes the message the same on every machine."""
_MAX_NPARTS = 1 << 16
"""Maximum `nparts` to try."""


@dataclass(frozen=True, slots=True)
class _Choice:
    """Alternative factor or number of parts for one call of the trace.

    Attributes:
        step: Index of the call in the trace.
        place: Position or keyword of the changed argument.
        old: Value in the trace.
        new: Alternative value.
        text: Text of the changed call, for the message.
    """

    step: int
    place: int | str
    old: int
    new: int
    text: str

    @property
    def times(self) -> float:
        """Factor by which the tile is smaller."""
        return max(self.old / self.new, self.new / self.old)


def suggest_smaller_tile(
    schedule: Schedule,
    args: Sequence[object],
    name: str,
    bytes_of: Callable[[Schedule, LoweringResult], int],
    limit: int,
) -> str:
    """Suggest a smaller split factor that makes a schedule fit a memory, as the end of a message.

    Args:
        schedule: Schedule that exceeds the memory.
        args: Arguments of the kernel.
        name: Name of the kernel.
        bytes_of: Function from a schedule and its lowered form to the required bytes.
        limit: Capacity in bytes.
    """
    found: list[tuple[int, _Choice]] = []
    attempts = nodes = 0
    for options in _choices(schedule):
        for choice in options:
            if attempts == _MAX_SCHEDULES or nodes > _MAX_NODES:
                break
            attempts += 1
            candidate = _try_change(schedule, args, name, choice)
            if candidate is None:
                continue
            nodes += sum(1 for _ in walk(candidate[1].final.body))
            nbytes = _need(*candidate, bytes_of)
            if nbytes is not None and nbytes <= limit:
                found.append((nbytes, choice))
                break
    if not found:
        return "use smaller tiles, or compute it closer to where it is used"
    nbytes, choice = min(found, key=lambda pair: (pair[1].times, -pair[0]))
    return f"{choice.text} instead of {choice.old} needs {nbytes}"


def _choices(schedule: Schedule) -> Iterator[list[_Choice]]:
    """Yield the alternatives of each factor of a split or tile, largest factor first."""
    found = [options for options in _factors(schedule) if options]
    yield from sorted(found, key=lambda options: -options[0].old)


def _factors(schedule: Schedule) -> Iterator[list[_Choice]]:
    """Yield the alternatives of each split factor (halves) and number of parts (doubles)."""
    for k, step in enumerate(json.loads(schedule.trace.to_json())["steps"]):
        if step["call"] == "split":
            for position, (keyword, changed) in enumerate(_FACTOR_SEARCHES, 1):
                arg: int | str = keyword if keyword in step["kwargs"] else position
                factor = step["kwargs"].get(keyword, next(iter(step["args"][position:]), None))
                if type(factor) is int:
                    text = f"{_start(step, 0)}{keyword}="
                    yield [_Choice(k, arg, factor, n, f"{text}{n})") for n in changed(factor)]
        elif step["call"] == "tile":
            for axis in (0, 1):
                if len(step["args"]) > 2 + axis:
                    factor = step["args"][2 + axis]
                    text = f"{_start(step, axis)}{'xy'[axis]}_factor="
                    if type(factor) is int:
                        yield [_Choice(k, 2 + axis, factor, n, f"{text}{n})") for n
                            in halving_factors(factor)]


def halving_factors(number: int) -> list[int]:
    """Return a half of a number, a quarter and so on, rounded down, to 1.

    >>> halving_factors(12)
    [6, 3, 1]
    """
    return [number >> k for k in range(1, number.bit_length())]


def doubling_factors(number: int) -> list[int]:
    """Return twice a number, four times and so on, up to about `_MAX_NPARTS`.

    >>> doubling_factors(12)[:3]
    [24, 48, 96]
    """
    return [number << k for k in range(1, _MAX_NPARTS.bit_length() - number.bit_length())]


_FACTOR_SEARCHES = (("factor", halving_factors), ("nparts", doubling_factors))


def _start(step: Any, axis: int) -> str:
    """Return the text of a call up to its factor."""
    loop = step["args"][axis]
    axis_name = loop.get("axis", loop) if isinstance(loop, dict) else loop
    return f"s[{step['stage']}].{step['call']}({axis_name}, "


def _try_change(
    schedule: Schedule, args: Sequence[object], name: str, choice: _Choice
) -> tuple[Schedule, LoweringResult] | None:
    """Return the changed schedule and its lowered form, or None if the change is invalid."""
    document = json.loads(schedule.trace.to_json())
    step = document["steps"][choice.step]
    step["kwargs" if isinstance(choice.place, str) else "args"][choice.place] = choice.new
    try:
        outputs = [op.output(0) for op in schedule.trace.operations.values()
                   if any(op is out for out in schedule.state.outputs)]
        changed = replay(json.dumps(document), outputs, schedule.trace.intrinsics)
        return changed, lower_all(changed, args, name)
    except TecompError:
        return None


def _need(
    schedule: Schedule, lowered: LoweringResult, bytes_of: Callable[[Schedule, LoweringResult], int]
) -> int | None:
    """Return the required bytes, or None if the target cannot run the schedule."""
    try:
        return bytes_of(schedule, lowered)
    except TecompError:
        return None
