"""Prefetch the footprint of later loop iterations, one request for each cache line.

The footprint of one iteration is bounded by a box whose start is affine in the enclosing loops. The
footprint of a later iteration is the same box, shifted. Indices past the end of the tensor are
clamped to the last elements, which are cached already.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

from tecomp.compute.iter_var import IterVar
from tecomp.compute.operation import Operation
from tecomp.errors import LowerError
from tecomp.ir.arith.extents import are_equal, ceil_div, simplify_extent
from tecomp.ir.arith.simplify import simplify
from tecomp.ir.nodes.expr import BinOp, BufferLoad, Const, Expr, Var, binary, index_value
from tecomp.ir.nodes.stmt import Buffer, Extent, For, ForKind, IfThenElse, Prefetch, Stmt, seq
from tecomp.ir.traversal.rewrite import substitute
from tecomp.lowering.loops.stage_context import StageContext
from tecomp.lowering.stages.footprint import read_elements
from tecomp.lowering.stages.program import PreparedSchedule
from tecomp.machine.components import Core
from tecomp.poly.loops.box_loops import bounding_box
from tecomp.poly.loops.regions import LoopScope
from tecomp.poly.maps.index_map import IndexMap
from tecomp.poly.sets.to_isl import Points
from tecomp.scheduling.state import Ahead

MAX_PREFETCHED_LINES = 4096
"""Maximum number of prefetches of one iteration, above the number of lines of an L1 cache."""


def prefetch_statements(
    program: PreparedSchedule,
    work: StageContext,
    request: Ahead,
    instances: Mapping[Operation, Points],
    values: Mapping[IterVar, Expr],
    scope: LoopScope,
) -> Stmt:
    """Return the prefetches of one iteration; none if the loop has a single iteration.

    Args:
        program: Program with all definitions.
        work: State of the stage.
        request: Tensor, loop and offset in iterations.
        instances: Instances of the stage and of all stages inside the loop.
        values: Values of the open loops.
        scope: Parameters of the sets: sizes and enclosing loops.

    Raises:
        LowerError: If no stage in the loop reads the tensor, if the tensor is computed inside the
            loop, if one iteration reads more than `MAX_PREFETCHED_LINES` cache lines, or if the
            loop or a loop around it is vectorized.
    """
    key = program.producer(request.tensor)
    where = f"s[{work.definition.stage.name}].prefetch({request.tensor.name}, {request.axis.name})"
    _check_loops(work, request, where)
    region = read_elements(program, key, instances, scope)
    if region is None:
        raise LowerError(
            "{where}: {tensor} is not read inside that loop; prefetch a tensor that is read there, "
            "such as a cache of it",
            kind="loop-carried", where=where, tensor=request.tensor.name,
        )
    if key not in work.memory:
        raise LowerError(
            "{where}: {tensor} is computed inside that loop, so it cannot be prefetched; prefetch "
            "the tensors that it is computed from, or compute it in an outer loop",
            kind="loop-carried", where=where, tensor=request.tensor.name,
        )
    memory = work.memory[key].bounds
    space = scope.space([Var("element") for _ in memory])
    shape = [program.extent(extent) for extent in request.tensor.shape]
    full_box = space.box([(index_value(0), extent) for extent in shape])
    box = bounding_box(region.intersect(full_box), region, scope, shape)
    later = _iterations_later(request, work.loop_variables(values))
    if later is None or any(are_equal(extent, 0) for _, extent in (*box, *memory)):
        return seq()
    buffer = program.buffer_of(request.tensor)
    steps = _line_shape(program, key, buffer)
    counts = _lines([extent for _, extent in box], steps, where, request.tensor.name)
    starts = [substitute(start, later) for start, _ in box]
    return _prefetch_loops(buffer, starts, counts, steps, memory)


def _lines(
    extents: Sequence[Extent], steps: Sequence[int], where: str, name: str
) -> list[Extent]:
    """Return the number of cache lines along each dimension of a box.

    Raises:
        LowerError: If the total number of lines exceeds `MAX_PREFETCHED_LINES`.
    """
    counts = [
        simplify_extent(ceil_div(extent, step)) for extent, step in zip(extents, steps, strict=True)
    ]
    lines = prod(count for count in counts if isinstance(count, int))
    if lines > MAX_PREFETCHED_LINES:
        raise LowerError(
            "{where}: one iteration reads {lines} cache lines of {name}, which exceeds the limit "
            "of {most_lines}; use an inner loop, or split it",
            kind="loop-carried",
            where=where,
            lines=lines,
            name=name,
            most_lines=MAX_PREFETCHED_LINES,
        )
    return counts


def _check_loops(work: StageContext, request: Ahead, where: str) -> None:
    for leaf in work.leaves:
        if work.definition.stage.marks.get(leaf) is ForKind.VECTORIZED:
            raise LowerError(
                "{where}: the iterations of {leaf} run simultaneously as vector lanes; use an "
                "outer loop",
                kind="loop-carried", where=where, leaf=leaf.name,
            )
        if leaf is request.axis:
            return


def _iterations_later(request: Ahead, loops: Mapping[IterVar, Var]) -> dict[Var, Expr] | None:
    """Return the shifted value of the loop variable; None if the loop has a single iteration."""
    if not request.offset:
        return {}
    var = loops.get(request.axis)
    return None if var is None else {var: var + request.offset}


def _line_shape(program: PreparedSchedule, key: Operation, buffer: Buffer) -> list[int]:
    """Return the number of elements along each tensor axis that one cache line holds."""
    rank = len(buffer.shape)
    max_run = max(Core.LINE_BYTES // buffer.dtype.bytes, 1)
    maps = [IndexMap.lift(layout_map) for layout_map in program.state.stage(key).layout.maps]

    def place(axis: int, index: int) -> list[Any]:
        indices: Sequence[Expr] = [Const(index if k == axis else 0) for k in range(rank)]
        for index_map in maps:
            indices = [simplify(index_value(part)) for part in index_map.map_indices(indices)]
        return [part.value if isinstance(part, Const) else None for part in indices]

    for axis in reversed(range(rank)):
        *outer, last = place(axis, 0)
        run = 1
        while run < max_run and last is not None and place(axis, run) == [*outer, last + run]:
            run += 1
        if run > 1:
            return [run if k == axis else 1 for k in range(rank)]
    return [1] * rank


def _prefetch_loops(
    buffer: Buffer,
    starts: Sequence[Expr],
    counts: Sequence[Extent],
    steps: Sequence[int],
    memory: Sequence[tuple[Expr, Extent]],
) -> Stmt:
    """Return loops over the cache lines of a box, with indices clamped to `memory`."""
    loops = [Var("line") for _ in starts]
    indices = [
        _in_bounds(start + (0 if are_equal(count, 1) else loop * step), *span)
        for start, loop, count, step, span in zip(starts, loops, counts, steps, memory, strict=True)
    ]
    statement: Stmt = Prefetch(BufferLoad(buffer, tuple(indices)))
    for loop, count in reversed([*zip(loops, counts, strict=True)]):
        if not are_equal(count, 1):
            statement = For(loop, Const(0), index_value(count), ForKind.SERIAL, statement)
    for _, extent in memory:
        if isinstance(extent, Expr):
            statement = IfThenElse(extent > 0, statement)
    return statement


def _in_bounds(index: Expr, start: Expr, extent: Extent) -> Expr:
    last = binary(BinOp.SUB, binary(BinOp.ADD, start, index_value(extent)), index_value(1))
    return binary(BinOp.MIN, binary(BinOp.MAX, index, start), last)
