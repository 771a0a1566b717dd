"""Exchange of shards and partial results between cores."""

from __future__ import annotations

from dataclasses import replace
from math import prod

from tecomp import IndexMap, Layout, ScheduleError, TargetError, accesses, te
from tecomp.schedules.analysis.stages import is_same
from tecomp.schedules.scratchpad.footprint import TiledComputation, depth_units, transitive_inputs
from tecomp.schedules.scratchpad.generic import SchedulePartial, schedule_parts
from tecomp.schedules.scratchpad.placement import Placement, number, sizes_of
from tecomp.schedules.scratchpad.traversal import traverse_parts
from tecomp.schedules.scratchpad.work_division import (
    DivisionSpec,
    UndividedResult,
    WorkDivision,
    divide,
    divide_as,
    divide_depth,
    pieces_of,
)
from tecomp.schedules.tiling.reduction import first_output, remaining_reduction_loops


def resharded_tensor(output: te.Tensor, where: Placement) -> te.Tensor | None:
    """Return the tensor in scratchpads that `output` has in another division; None for others.

    Args:
        output: Tensor.
        where: Placement of tensors in the memories of the target.
    """
    found = accesses(output)
    if found.reduce_axis or len(found.factors) != 1 or len(found.reads) != 1:
        return None
    (read,) = found.reads
    source = read.tensor
    is_copy = is_same(read.axes, found.axis) and not source.op.input_tensors
    has_scratchpad = where.scratchpad != where.device
    is_divided = has_scratchpad and not where.resident_tensors and output in where.cuts
    if not (is_copy and is_divided) or source.dtype != output.dtype:
        return None
    if {where.memory_of(source), where.memory_of(output)} != {where.scratchpad}:
        return None
    requested = where.cuts[output].cores
    count = parts_of(source, where)
    is_other = any(requested.get(axis, 1) != n for axis, n in enumerate(count))
    return source if is_other else None


def parts_of(x: te.Tensor, where: Placement) -> tuple[int, ...]:
    """Return the number of parts along each axis of a tensor whose shards are boxes."""
    layout = where.layout_of_tensor(x)
    units, shape = where.units(x), sizes_of(x)
    count = []
    for axis, (extent, unit) in enumerate(zip(shape, units, strict=True)):
        steps = range(0, max(extent, 1), unit)
        count.append(len({_core(layout, axis, position) for position in steps}))
    return tuple(count)


def _core(layout: Layout, axis: int, position: int) -> tuple[str, ...]:
    """Return the grid coordinates of the element at position `position` of an axis."""
    index = [position if k == axis else 0 for k in range(len(layout.shape))]
    address = layout.index_map.map_indices(index)
    return tuple(str(address[k]) for k in layout.grid_axes)


def schedule_reshard(
    s: te.Schedule, output: te.Tensor, source: te.Tensor, where: Placement
) -> None:
    """Schedule a copy between two divisions among scratchpads.

    Args:
        s: Schedule, in which the tensors in memory have been placed.
        output: Copy.
        source: Tensor that is copied.
        where: Placement of tensors in the memories of the target.

    Raises:
        TargetError: If the parts cannot be mapped to cores.
    """
    where.put(s, output)
    staged = s.cache_read(source, where.scratchpad, [output])
    s[staged].set_scope(where.scratchpad)
    layout = where.layout_of(source)
    assert layout is not None
    s[staged].transform_layout(layout, loops="logical")
    _on_own_cores(s, staged, parts_of(source, where), source, where)
    cut = where.cuts[output].cores
    _on_own_cores(s, output, [cut.get(k, 1) for k in range(len(output.shape))], output, where)


def _on_own_cores(
    s: te.Schedule, x: te.Tensor, count: tuple[int, ...] | list[int], source: te.Tensor,
    where: Placement,
) -> None:
    """Divide the loops of a tensor among the cores that have its parts."""
    units = where.units(source)
    division = divide_as(x, DivisionSpec(dict(enumerate(count))), units, where.target)
    core = tuple(n * unit for n, unit in zip(division.part, units, strict=True))
    # The loops of `x` follow the addresses of the tensor whose layout it has.
    where = Placement(
        where.target, where.device, where.scratchpad, where.scratchpad_bytes,
        {**where.tensor_layouts, x: where.tensor_layouts[source]},
    )
    traverse_parts(s, x, core, core, division.shares, where)


def schedule_partial(
    s: te.Schedule, w: TiledComputation, where: Placement, shared: tuple[te.IterVar, int]
    | None = None,
    schedule: SchedulePartial | None = None,
) -> None:
    """Schedule a result with too few parts for all cores: cores share the reduction as well.

    Partial results are in device memory, with an axis for the parts of the reduction.

    Args:
        s: Schedule, in which the tensors in memory have been placed.
        w: Result with its stages.
        where: Placement of tensors in the memories of the target.
        shared: Reduction axis that cores share, and the number of its parts. Default: chosen
            automatically or as `where.cuts` requests.
        schedule: Function that schedules the partial results. Default: `schedule_parts`.

    Raises:
        ScheduleError: If there is a part for each core, if sharing the reduction does not pay, or
            if the same stage is needed for the reduction and after it.
        CapacityError: If the inputs of a single element do not fit the scratchpad.
        TargetError: If the requested parts of the reduction are not possible.
    """
    cut = where.cuts.get(w.output)
    axis, count = shared or _shared_depth(w, cut, where)
    assert w.total is not None
    outer, _ = s[w.total].split(axis, nparts=count)
    partial = first_output(s.rfactor(w.total, outer))
    inner_reads = transitive_inputs(partial, {partial: accesses(partial).reads, **w.reads})
    total = s[w.total].op
    final_reads = transitive_inputs(w.output, {**w.reads, w.total: accesses(total.output(0)).reads})
    if not inner_reads.keys().isdisjoint(final_reads):
        raise ScheduleError(
            "{output}: an inlined expression is used both in the reduction and after it",
            kind="indivisible", output=w.output.name,
        )
    work = TiledComputation(
        partial, partial, inner_reads, w.materialized, tuple(remaining_reduction_loops(s, partial))
    )
    final = TiledComputation(
        w.output, w.total, final_reads, {*w.materialized, partial}, tuple(total.reduce_axis)
    )
    cuts = (
        {}
        if cut is None
        else {
            partial: cut.of_partial(len(w.output.shape)),
            w.output: cut.for_result_axes(len(w.output.shape)),
        }
    )
    where = replace(where, cuts=cuts)
    if schedule is not None and where.target.stick is not None:
        where = replace(
            where,
            tensor_layouts={
                **where.tensor_layouts,
                partial: _partial_result_layout(partial, where),
            },
        )
    try:
        if schedule is None:
            schedule_parts(s, work, where)
        else:
            schedule(s, partial, where)
    except TargetError as error:
        if cut is None:
            raise
        raise TargetError(
            "{output}: the reduction cannot be divided into {count} parts with partial results "
            "{partial}: {reason}",
            kind=error.kind, output=w.output.name, count=count, partial=partial.name,
            reason=error.message,
        ) from None
    schedule_parts(s, final, where)


def _partial_result_layout(partial: te.Tensor, where: Placement) -> IndexMap:
    """Return an unpadded layout of partial results with the parts of a result row adjacent."""
    lanes = where.lanes(partial.dtype)

    def place(part: te.Expr, *i: te.Expr) -> list[object]:
        return [*i[:-1], part, i[-1] // lanes, i[-1] % lanes]

    return IndexMap.from_func(place, len(partial.shape))


def outline_partial(w: TiledComputation, where: Placement) -> UndividedResult:
    """Return the reason why a result whose reduction several cores share is not divided.

    Raises:
        ScheduleError: If no cores share the reduction.
        TargetError: If the requested parts are not possible.
    """
    axis, count = _shared_depth(w, where.cuts.get(w.output), where)
    return UndividedResult("reduction", f"{count} cores split its reduction along {axis.name}")


def _shared_depth(w: TiledComputation, cut: DivisionSpec | None, where: Placement) -> tuple[
        te.IterVar, int]:
    """Return the reduction axis that cores share, and the number of its parts.

    Raises:
        ScheduleError: If there is no such axis.
        TargetError: If the requested parts are not possible.
    """
    found = parts_of_depth(w, where) if cut is None else _depth_as_asked(w, cut, where)
    if found is None:
        raise ScheduleError(
            "{output}: the reduction cannot be divided among cores",
            kind="indivisible", output=w.output.name,
        )
    return found


def _depth_as_asked(
    w: TiledComputation, cut: DivisionSpec, where: Placement
) -> tuple[te.IterVar, int] | None:
    """Return the reduction axis that the caller requests to share, and the number of its parts.

    Raises:
        TargetError: If several axes are requested, or sticks would be split.
    """
    rank = len(w.output.shape)
    requested = [(w.depth[axis - rank], n) for axis, n in cut.cores.items() if axis >= rank]
    if w.total is None or not requested:
        return None
    if len(requested) > 1:
        names = ", ".join(axis.name for axis, _ in requested)
        raise TargetError(
            "{output}: only one reduction axis can be divided among cores, got {names}; request "
            "parts along one of them",
            kind="indivisible", output=w.output.name, names=names,
        )
    ((axis, count),) = requested
    extent = number(axis.extent, w.total)
    unit = depth_units(w, where)[axis]
    if extent % unit or extent // unit % count:
        raise TargetError(
            "{output}: {count} parts of the reduction along {axis} would be uneven ({extent} "
            "values, in sticks or tiles of {unit}); request a number that divides {multiple}",
            kind="indivisible", output=w.output.name, count=count, axis=axis.name, extent=extent,
            unit=unit, multiple=extent // unit if extent % unit == 0 else 1,
        )
    return axis, count


def parts_of_depth(w: TiledComputation, where: Placement) -> tuple[te.IterVar, int] | None:
    """Return the reduction axis to share among cores without a part of the result, and its parts.

    Return None if that does not pay, because partial results are written and read again. An axis
    along sticks is split between sticks, and not at all if they are padded.
    """
    found = None if w.total is None else accesses(w.total)
    if w.total is None or found is None or found.reducer is None or not found.is_plain:
        return None
    cores = _division(w.output, where).cores
    extents = [number(axis.extent, w.total) for axis in w.depth]
    units = depth_units(w, where)
    steps = [
        n // units[axis] if n % units[axis] == 0 else 1
        for axis, n in zip(w.depth, extents, strict=True)
    ]
    count = divide_depth(steps, where.target.cores // cores)
    terms, n_parts = prod(extents), prod(count)
    partial = _division(te.placeholder((n_parts, *sizes_of(w.total)), w.total.dtype), where)
    if partial.cores <= cores or terms // n_parts + n_parts > terms // 2:
        return None
    return w.depth[count.index(n_parts)], n_parts


def _division(x: te.Tensor, where: Placement) -> WorkDivision:
    """Return the division of a tensor without constraints on its parts."""
    return divide(pieces_of(sizes_of(x), where.units(x)), where.target.grid)
