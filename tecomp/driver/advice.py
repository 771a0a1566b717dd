"""Performance warnings, and a smaller tile that fits."""

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
from tecomp.ir.traversal.rewrite import statements_in, substitute, walk
from tecomp.lowering.pipeline import Lowered, lower_all
from tecomp.machine.descriptor import Target
from tecomp.scheduling.deferred_errors import called
from tecomp.scheduling.replay import replay
from tecomp.scheduling.schedule import Schedule

_TIMES = 4
"""How often elements are computed before that is much."""

_ELEMENTS = 2**20
"""How many elements more than needed are much."""

_LINE = 64
"""Bytes of a cache line: lanes that are as far apart share none."""

_FAR = 2**20
"""Bytes of a buffer that no first cache holds."""

Loops = tuple[For, ...]


def advise(schedule: Schedule, lowered: Lowered, target: Target) -> None:
    """Warn of calls of the user's, each once. Schedules that others make are left alone."""
    calls = {call[2] for call, place in schedule.calls if place is not None}
    func = lowered.functions["flatten_buffer"]
    if "compute_at" in calls:
        _check_recomputed(schedule, func)
    if "vectorize" in calls:
        _check_strides(schedule, func)
    if target.core is not None and calls & {"cache_read", "cache_write"}:
        _check_copies(schedule, func, target.core.cache_bytes[-1])


def _statements(func: PrimFunc) -> Iterator[tuple[Stmt, Loops]]:
    """Every statement with the loops around it."""
    todo: list[tuple[Stmt, Loops]] = [(func.body, ())]
    while todo:
        stmt, loops = todo.pop()
        yield stmt, loops
        inside = (*loops, stmt) if isinstance(stmt, For) else loops
        todo += [(part, inside) for part in statements_in(stmt)]


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
        place = called(schedule, "compute_at", stage.name)
        if place is not None and count >= _TIMES * size and count - size >= _ELEMENTS:
            warn(
                f"s[{stage.name}].compute_at: {count} elements are computed for the {size} that "
                f"{stage.name} has; compute it further out, or keep what iterations share with "
                "rolling_buffer",
                place, kind="recomputed",
            )


def _reads(stmt: BufferStore, buffer: Buffer) -> bool:
    return any(
        isinstance(node, BufferLoad) and node.buffer.data is buffer.data
        for node in walk(stmt.value)
    )


def _is_copy(op: object) -> bool:
    return not isinstance(op, ComputeOp) or isinstance(op.body[0], TensorLoad)


def _check_strides(schedule: Schedule, func: PrimFunc) -> None:
    told: set[int] = set()
    for stmt, loops in _statements(func):
        lanes = next((loop for loop in loops if loop.kind is ForKind.VECTORIZED), None)
        if lanes is None or not isinstance(stmt, BufferStore):
            continue
        place = called(schedule, "vectorize", lanes.loop_var.name)
        accesses: list[BufferStore | BufferLoad] = [stmt]
        accesses += (node for node in walk(stmt.value) if isinstance(node, BufferLoad))
        for access in accesses:
            if place is None or id(lanes) in told:
                break
            if step := _step(access.indices, access.buffer, lanes):
                told.add(id(lanes))
                warn(
                    f"vectorize({lanes.loop_var.name}): the lanes are {step} elements of "
                    f"{access.buffer.name} apart, so that each is loaded or stored by itself; "
                    "vectorize a loop whose elements lie side by side, or transform_layout",
                    place, kind="large-stride",
                )


def _step(indices: tuple[Expr, ...], buffer: Buffer, lanes: For) -> int:
    """How far apart the lanes are, if that is far; else 0."""
    extents = [n for n in buffer.shape if isinstance(n, int)]
    if len(extents) < len(buffer.shape) or prod(extents) * buffer.dtype.bytes < _FAR:
        return 0
    if not isinstance(lanes.extent, Const) or lanes.extent.value < _TIMES:
        return 0
    var = lanes.loop_var
    step = simplify(substitute(indices[-1], {var: var + 1}) - indices[-1])
    far = abs(int(step.value)) if isinstance(step, Const) else 0
    return far if far * buffer.dtype.bytes >= _LINE else 0


def _check_copies(schedule: Schedule, func: PrimFunc, limit: int) -> None:
    for stmt, _ in _statements(func):
        if not isinstance(stmt, Allocate):
            continue
        extents = [n for n in stmt.buffer.shape if isinstance(n, int)]
        size = prod(extents) * stmt.buffer.dtype.bytes
        if len(extents) < len(stmt.buffer.shape) or size <= limit:
            continue
        for call in ("cache_read", "cache_write"):
            place = called(schedule, call, stmt.buffer.name)
            if place is not None:
                warn(
                    f"s.{call}: {stmt.buffer.name} takes {size} bytes, and the largest cache has "
                    f"{limit}; compute it inside a loop, of which an iteration needs less",
                    place, kind="large-copy",
                )


_MOST = 24
"""Schedules that are tried; each takes as long as a build."""
_MOST_NODES = 20_000
"""Nodes of lowered functions after which no other is tried: the message is due, and this is only
its end. It takes about five seconds to make them, on whichever machine the message is the same."""
_MOST_PARTS = 1 << 16
"""Parts of an axis that are tried."""


@dataclass(frozen=True, slots=True)
class _Choice:
    """A call of the trace with another factor, or number of parts."""

    step: int
    place: int | str
    old: int
    new: int
    text: str

    @property
    def times(self) -> float:
        """How much smaller the tile is."""
        return max(self.old / self.new, self.new / self.old)


def smaller_tile(
    schedule: Schedule,
    args: Sequence[object],
    name: str,
    needed: Callable[[Schedule, Lowered], int],
    limit: int,
) -> str:
    """What to change so that it fits, as the end of a message.

    Args:
        schedule: what does not fit.
        args: parameters of the kernel.
        name: of the kernel.
        needed: the bytes that a schedule needs, from it and what it is lowered to.
        limit: the bytes there are.
    """
    found: list[tuple[int, _Choice]] = []
    tried = nodes = 0
    for options in _choices(schedule):
        for choice in options:
            if tried == _MOST or nodes > _MOST_NODES:
                break
            tried += 1
            made = _lowered(schedule, args, name, choice)
            if made is None:
                continue
            nodes += sum(1 for _ in walk(made[1].final.body))
            need = _need(*made, needed)
            if need is not None and need <= limit:
                found.append((need, choice))
                break
    if not found:
        return "use smaller tiles, or compute it closer to where it is used"
    need, choice = min(found, key=lambda pair: (pair[1].times, -pair[0]))
    return f"{choice.text} instead of {choice.old} needs {need}"


def _choices(schedule: Schedule) -> Iterator[list[_Choice]]:
    """For each factor of a split or a tile, the greatest first, what may be there instead."""
    found = [options for options in _factors(schedule) if options]
    yield from sorted(found, key=lambda options: -options[0].old)


def _factors(schedule: Schedule) -> Iterator[list[_Choice]]:
    """For each factor of a split or a tile its halves, for parts their doubles, nearest first."""
    for k, step in enumerate(json.loads(schedule.trace.to_json())["steps"]):
        if step["call"] == "split":
            for position, (word, changed) in enumerate(_WAYS, 1):
                place: int | str = word if word in step["kwargs"] else position
                given = step["kwargs"].get(word, next(iter(step["args"][position:]), None))
                if type(given) is int:
                    text = f"{_start(step, 0)}{word}="
                    yield [_Choice(k, place, given, n, f"{text}{n})") for n in changed(given)]
        elif step["call"] == "tile":
            for axis in (0, 1):
                if len(step["args"]) > 2 + axis:
                    given = step["args"][2 + axis]
                    text = f"{_start(step, axis)}{'xy'[axis]}_factor="
                    if type(given) is int:
                        yield [_Choice(k, 2 + axis, given, n, f"{text}{n})") for n in halves(given)]


def halves(number: int) -> list[int]:
    """A half of a number, a quarter and so on.

    >>> halves(12)
    [6, 3, 1]
    """
    return [number >> k for k in range(1, number.bit_length())]


def doubles(number: int) -> list[int]:
    """Twice a number, four times and so on, as far as parts are likely to be.

    >>> doubles(12)[:3]
    [24, 48, 96]
    """
    return [number << k for k in range(1, _MOST_PARTS.bit_length() - number.bit_length())]


_WAYS = (("factor", halves), ("nparts", doubles))


def _start(step: Any, axis: int) -> str:
    """The call, up to the factor."""
    loop = step["args"][axis]
    shown = loop.get("axis", loop) if isinstance(loop, dict) else loop
    return f"s[{step['stage']}].{step['call']}({shown}, "


def _lowered(
    schedule: Schedule, args: Sequence[object], name: str, choice: _Choice
) -> tuple[Schedule, Lowered] | None:
    """The schedule with that choice, and what it is lowered to; None where there is no such."""
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
    schedule: Schedule, lowered: Lowered, needed: Callable[[Schedule, Lowered], int]
) -> int | None:
    """The bytes that it needs; None where it cannot run."""
    try:
        return needed(schedule, lowered)
    except TecompError:
        return None
