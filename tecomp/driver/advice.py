"""Warnings about calls of the user that make a kernel slow, such as what is computed twice."""

from __future__ import annotations

import re
from collections.abc import Iterator
from math import prod

from tecomp.compute.operation import ComputeOp
from tecomp.compute.tensor import TensorLoad
from tecomp.errors import warn
from tecomp.ir.algebra.simplify import simplify
from tecomp.ir.language.expr import BufferLoad, Const, Expr
from tecomp.ir.language.stmt import Allocate, Buffer, BufferStore, For, ForKind, PrimFunc, Stmt
from tecomp.ir.traversal.rewrite import statements_in, substitute, walk
from tecomp.lowering.pipeline import Lowered
from tecomp.machine.descriptor import Target
from tecomp.scheduling.places import called
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
