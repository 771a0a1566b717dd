"""Fuse and schedule groups on scratchpad targets: candidates, work divisions, core loops."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from math import gcd, lcm

from tecomp import CapacityError, ScheduleError, accesses, te
from tecomp.schedules.analysis.convolution import Convolution, convolution_of
from tecomp.schedules.analysis.matmul import Product, of_images, product_of
from tecomp.schedules.analysis.stages import by_loops, is_same, is_value_of_row, strip_cast
from tecomp.schedules.common import Walk, ceil_div, first_legal, same_shape
from tecomp.schedules.fusion.groups import (
    FusedStages,
    StageGraph,
    groups_on_cores,
    materialized_tensors,
    program_of,
)
from tecomp.schedules.matmul import contraction_of, product_on_cores
from tecomp.schedules.scratchpad import contraction, core_exchange, generic, rowwise
from tecomp.schedules.scratchpad.footprint import Box, IndexInterval, TiledComputation, work_of
from tecomp.schedules.scratchpad.generic import schedule_parts
from tecomp.schedules.scratchpad.placement import Placement, sizes_of
from tecomp.schedules.scratchpad.work_division import DivisionPlan, DivisionSpec, UndividedResult
from tecomp.schedules.tiling.reduction import remaining_reduction_loops


@dataclass(frozen=True)
class CoreScheduleCandidate:
    """Scheduling candidate of a group.

    Attributes:
        walk: Function that schedules the loops of the stages.
        outline: Function that returns how the result is divided; it raises the same errors as
            `walk`.
    """

    walk: Walk
    outline: Callable[[], DivisionPlan | UndividedResult]


def core_schedule_candidates(
    group: FusedStages, p: StageGraph, stored: Collection[te.Tensor], where: Placement
) -> list[CoreScheduleCandidate]:
    """Return the scheduling candidates of a group, best first.

    Args:
        group: Group.
        p: Program of the group.
        stored: Tensors that are already in memory.
        where: Placement of tensors in the memories of the target.
    """
    output, chain = group.output, group.chain
    if group.rows:
        return [_row_candidate(group, stored, where)] if _are_plain_rows(group, stored) else []
    total = chain[-1] if chain[-1].op.reduce_axis else None
    if not accesses(output).reads or not output.shape:
        return [] if output in where.cuts else [
            _undivided_candidate(lambda s: where.put(s, output))]
    if _is_transfer(output, where):
        walk = partial(_transfer, output, where)
        return [] if output in where.cuts else [_undivided_candidate(walk)]
    w = work_of(output, total, p.stages, stored)
    if (source := core_exchange.resharded_tensor(output, where)) is not None:
        walk = partial(core_exchange.schedule_reshard, output=output, source=source, where=where)
        return [CoreScheduleCandidate(walk, lambda: generic.outline(w, where))]
    shared = CoreScheduleCandidate(
        lambda s: core_exchange.schedule_partial(s, w, where),
        lambda: core_exchange.outline_partial(w, where),
    )
    if any(axis >= len(output.shape) for axis in where.cuts.get(output, DivisionSpec()).cores):
        return [shared]
    found: list[CoreScheduleCandidate] = []
    if total is not None and (product := product_of(output, chain)) is not None:
        found += [_product(w, product, where), *_products_in_parts(w, product, where)]
    if total is not None and (convolution := convolution_of(output, chain)) is not None:
        found.append(_convolution(w, convolution, where))
    separate = CoreScheduleCandidate(
        lambda s: schedule_parts(s, w, where), lambda: generic.outline(w, where)
    )
    return [*found, shared, separate]


def _undivided_candidate(walk: Walk) -> CoreScheduleCandidate:
    """Return a candidate whose result is not divided among cores."""
    reason = "it is not computed on the cores"
    return CoreScheduleCandidate(walk, lambda: UndividedResult("host", reason))


def _row_candidate(
    group: FusedStages, stored: Collection[te.Tensor], where: Placement
) -> CoreScheduleCandidate:
    output, rows = group.output, group.rows
    reads = (x for y in (output, *rows) for x in y.op.input_tensors if x in stored)
    read, cut = list(dict.fromkeys(reads)), where.cuts.get(output, DivisionSpec())
    return CoreScheduleCandidate(
        lambda s: rowwise.schedule_blocks(s, output, rows, where),
        lambda: rowwise.outline(output, read, cut, where),
    )


def _is_transfer(output: te.Tensor, where: Placement) -> bool:
    """Return whether a stage copies a tensor between host memory and device memory."""
    found = accesses(output)
    if found.reduce_axis or len(found.factors) != 1 or len(found.reads) != 1:
        return False
    (source,) = found.factors
    if source.tensor in where.resident_tensors or output in where.resident_tensors:
        return False
    memories = {where.memory_of(source.tensor), where.memory_of(output)}
    if where.scratchpad in memories:  # cores copy their shards
        return False
    return len(memories) == 2 and source.tensor.dtype == output.dtype


def _transfer(output: te.Tensor, where: Placement, s: te.Schedule) -> None:
    """Schedule a copy without cores: links of the whole device connect it to the host."""
    where.put(s, output)
    contraction.traverse(s, output, output.op.axis, where)


def _product(w: TiledComputation, product: Product, where: Placement) -> CoreScheduleCandidate:
    """Return the candidate for a matrix product of tensors in memory, with its epilogue.

    It raises ScheduleError if a factor is computed for the product, or the tiles exceed the
    scratchpad.
    """

    def check() -> None:
        _check_inputs_in_memory(w, (product.rows.tensor, product.columns.tensor))

    def walk(s: te.Schedule) -> None:
        check()
        for x in w.inlined_stages:
            s[x].compute_inline()
        _check_tiles_fit(w, product_on_cores(s, product, where, w.materialized))

    def outline() -> DivisionPlan:
        check()
        return contraction.outline(contraction_of(product), w.output, where)

    return CoreScheduleCandidate(walk, outline)


def _products_in_parts(w: TiledComputation, product: Product, where: Placement) -> list[
        CoreScheduleCandidate]:
    """Return candidates that split the depth of a product over cores.

    They apply if the addressable span of a core is otherwise exceeded. Candidates are ordered by
    ascending number of parts, and those with too few parts raise ScheduleError.
    """
    factors = product.rows.tensor, product.columns.tensor
    if factors[0] == factors[1]:
        return []
    c = contraction_of(product)

    def way(count: int) -> CoreScheduleCandidate:
        def walk(s: te.Schedule) -> None:
            _check_inputs_in_memory(w, factors)
            core_exchange.schedule_partial(s, w, where, (c.depth, count), partly)

        reason = f"its reduction axis {c.depth.name} is split over cores"
        return CoreScheduleCandidate(walk, lambda: UndividedResult("reduction", reason))

    def partly(s: te.Schedule, partial: te.Tensor, where: Placement) -> None:
        part = contraction.of_partial(c, partial, remaining_reduction_loops(s, partial))
        _check_tiles_fit(w, contraction.schedule(s, partial, part, where, w.materialized))

    return [way(count) for count in contraction.parts_of_depth(c, w.output, where)]


def _convolution(w: TiledComputation, d: Convolution, where: Placement) -> CoreScheduleCandidate:
    """Return the candidate for a convolution, whose image may be padded at its use.

    It raises ScheduleError if a factor is computed otherwise, or the tiles exceed the scratchpad.
    """
    padded = [x for x in (d.image,) if x not in w.materialized]
    images = [d.image] if d.image in w.materialized else d.image.op.input_tensors

    def walk(s: te.Schedule) -> None:
        _check_inputs_in_memory(w, (d.weights, *images))
        for x in w.inlined_stages:
            if x not in padded:
                s[x].compute_inline()
        product = contraction.schedule(s, d.output, of_images(d, padded), where, w.materialized)
        _check_tiles_fit(w, product)

    def outline() -> DivisionPlan:
        _check_inputs_in_memory(w, (d.weights, *images))
        return contraction.outline(of_images(d, padded), w.output, where)

    return CoreScheduleCandidate(walk, outline)


def _check_inputs_in_memory(w: TiledComputation, factors: Collection[te.Tensor]) -> None:
    """Raise if a factor is neither in memory nor a conversion of a tensor in memory."""
    for x in factors:
        source = x if x in w.materialized else strip_cast(x)
        if source not in w.materialized or strip_cast(x) is not source:
            raise ScheduleError(
                "{output}: input {x} is not in memory, but computed from other tensors",
                kind="indivisible", output=w.output.name, x=x.name,
            )


def _check_tiles_fit(w: TiledComputation, p: contraction.ContractionTiling) -> None:
    """Raise if the tiles of a matrix unit exceed the scratchpad."""
    if not p.fits:
        raise ScheduleError(
            "{output}: one tile of each operand does not fit in the scratchpad",
            kind="indivisible", output=w.output.name,
        )


def _are_plain_rows(group: FusedStages, stored: Collection[te.Tensor]) -> bool:
    """Return whether rows and row values depend only on rows and per-column values."""
    leading = len(group.output.shape) - 1
    for y in (group.output, *group.rows):
        is_row = same_shape(y.shape, group.output.shape)
        if not (is_row or is_value_of_row(y, group.output)):
            return False
        columns = y.op.axis[leading:] if is_row else y.op.reduce_axis
        for read in accesses(y).reads:
            is_own = is_same(read.axes, (*y.op.axis[:leading], *columns))
            if read.tensor in stored and not (is_own or is_same(read.axes, columns)):
                return False
    return True


@dataclass(frozen=True)
class DividedResult:
    """Work division of a result, and the elements that each core reads.

    Attributes:
        outline: Work division of the result.
        axes: Axes of the result.
        input_boxes: Region that a core reads of each input, without tensors that are computed for
            them.
        gathered_inputs: Inputs that are gathered by data-dependent indices.
    """

    outline: DivisionPlan
    axes: tuple[te.IterVar, ...]
    input_boxes: Mapping[te.Tensor, Box]
    gathered_inputs: frozenset[te.Tensor]

    @property
    def cut(self) -> DivisionSpec:
        """Request for the same work division."""
        return DivisionSpec(dict(enumerate(self.outline.count)))

    def least_for(self, x: te.Tensor, units: Sequence[int]) -> dict[int, int]:
        """Return minimum block extents of the result that keep the blocks of an input whole.

        Args:
            x: Input.
            units: Indivisible extents along the axes of the input.

        Returns:
            Extents along axes of the result that exceed 1; the full extent of an axis that the read
            does not depend on.
        """
        spans = [*zip(self.input_boxes[x], units, strict=True)]
        min_extents = {}
        for number, axis in enumerate(self.axes):
            found = [
                unit // gcd(unit, factor) for span, unit in spans
                for other, factor in span.terms or () if other is axis
            ]
            min_extents[number] = lcm(*found) if found else int(axis.extent)
        return {number: extent for number, extent in min_extents.items() if extent > 1}

    def division_of(self, x: te.Tensor) -> tuple[int | None, ...] | None:
        """Return the division of an input of which no two cores read the same element.

        Returns:
            For each axis of the input, the number of the result axis whose parts it follows, or
            None if the axis is not divided. None in all if cores share elements, or some element is
            not read.
        """
        axes: list[int | None] = []
        for span, extent in zip(self.input_boxes[x], x.shape, strict=True):
            found = self._divided(span)
            if found is None or len(found) > 1:
                return None
            # An axis that is not divided is read in full, regardless of its start.
            part = sum(factor * self.outline.core[axis] for axis, factor in found)
            count = self.outline.count[found[0][0]] if found else 1
            is_even = not span.start and part == span.extent and ceil_div(extent, part) == count
            if not (is_even if found else span.extent == extent):
                return None
            axes.append(found[0][0] if found else None)
        divided = [axis for axis, count in enumerate(self.outline.count) if count > 1]
        return tuple(axes) if sorted(axis for axis in axes if axis is not None) == divided else None

    def _divided(self, span: IndexInterval) -> list[tuple[int, int]] | None:
        """Return the divided result axes, by number, whose multiples are the start of a part.

        Return None if the start is unknown.
        """
        if span.terms is None:
            return [] if span.extent == span.max_extent else None
        return [
            (axis, factor)
            for axis, count in enumerate(self.outline.count) if count > 1
            for other, factor in span.terms if other is self.axes[axis]
        ]


def divide_result(result: te.Tensor, where: Placement) -> DividedResult | UndividedResult:
    """Return how the result of a program is divided, or why it is not.

    Raises:
        CapacityError: If a block exceeds the scratchpad.
        TargetError: If the result cannot be divided as requested.
    """
    s: te.Schedule = by_loops([result])
    where = where.within(s)
    p = program_of(s)
    groups = groups_on_cores(p, where)
    stored = materialized_tensors(s, groups)
    # A stage without reads is in no group.
    for candidate in core_schedule_candidates(groups[-1], p, stored, where) if groups and groups[
            -1].output.shape else ():
        # A ScheduleError means that the program is of another kind, as during scheduling.
        with suppress(ScheduleError):
            found = candidate.outline()
            return (
                found
                if isinstance(found, UndividedResult)
                else _add_needs(found, groups, p, stored)
            )
    return UndividedResult("steps", "it is computed in several steps")


def _add_needs(
    found: DivisionPlan, groups: Sequence[FusedStages], p: StageGraph, stored: set[te.Tensor]
) -> DividedResult:
    output = groups[-1].output
    work = work_of(output, None, p.stages, stored)
    boxes = work.boxes(found.core, {})
    before = {
        read.tensor
        for group in groups[:-1]
        for reads in work_of(group.output, None, p.stages, stored).reads.values() for read in reads
    }
    needs = {x: box for x, box in boxes.items() if x in stored and x not in (*before, output)}
    uncopied = frozenset(needs).difference(work.copied_inputs())
    return DividedResult(found, tuple(output.op.axis), needs, uncopied)


@dataclass(frozen=True)
class GroupMember:
    """Computation of one resident value, or of the result.

    Attributes:
        groups: Fusion groups. The last one computes the value; results of the others are in device
            memory.
        program: Stages of all groups.
        where: Placement, with the scratchpad bytes that other values leave free.
    """

    groups: Sequence[FusedStages]
    program: StageGraph
    where: Placement


def schedule_groups_together(s: te.Schedule, p: StageGraph, where: Placement) -> te.Schedule:
    """Return the schedule of a program with one result and values resident in scratchpads.

    Each resident value is computed inside the core loops of the result: the region that a core
    needs.

    Args:
        s: Schedule.
        p: Program.
        where: Placement, with the resident values and the work divisions of these values and the
            result.

    Raises:
        ScheduleError: If a resident value is computed step by step or needed outside the core
            loops, if there are several results, or if a resident value has no work division.
        CapacityError: If the resident values exceed the scratchpad.
    """
    result = _result_of(p, where)
    heads = [x for x in p.stages if x in where.resident_tensors or x == result]
    inputs = {y for stage in s.stages for y in stage.op.outputs if not stage.op.input_tensors}
    for member in _members(heads, p, where):
        stored = {*inputs, *heads, *(group.output for group in member.groups)}
        for group in member.groups:
            s = _schedule_resident(s, group, member, stored, where)
    where.put_arguments(s)
    # Attach to the innermost core loop of the result that exists.
    attached = (partial(_attach, heads, axis) for axis in reversed(where.target.grid))
    found: te.Schedule | None = first_legal(s, attached)
    assert found is not None
    return found


def _result_of(p: StageGraph, where: Placement) -> te.Tensor:
    """Return the single result for which values are resident.

    Raises:
        ScheduleError: If there are several results, or if a value has no work division or is not
            computed by the program.
    """
    if len(p.results) > 1:
        raise ScheduleError(
            "auto: near supports one result, got {result_count}; omit near, or schedule the "
            "results separately",
            kind="indivisible", result_count=len(p.results),
        )
    result: te.Tensor = next(iter(p.results))
    for x in (*where.resident_tensors, result):
        if x not in p.stages:
            raise ScheduleError(
                "auto: near contains {x}, which is not an intermediate value of {result}; remove "
                "it from near",
                kind="indivisible", x=x.name, result=result.name,
            )
        if x not in where.cuts:
            raise ScheduleError(
                "auto: near keeps values in the scratchpads for {result}, but the part of {x} on "
                "each core cannot be inferred; pass a Cut for it in division",
                kind="indivisible", result=result.name, x=x.name,
            )
    return result


def _schedule_resident(
    s: te.Schedule, group: FusedStages, member: GroupMember, stored: Collection[te.Tensor],
    where: Placement
) -> te.Schedule:
    is_last = group is member.groups[-1]
    candidates = core_schedule_candidates(group, member.program, stored, member.where if is_last
        else where)
    found: te.Schedule | None = first_legal(s, [candidate.walk for candidate in candidates])
    if found is None:
        raise ScheduleError(
            "auto: {output} is computed step by step, so values cannot stay in the scratchpads; "
            "omit near",
            kind="indivisible", output=group.output.name,
        )
    return found


def _attach(heads: Sequence[te.Tensor], axis: str, s: te.Schedule) -> None:
    for x in heads[:-1]:
        s[x].compute_at(s[heads[-1]], te.thread_axis(axis))


def _members(heads: Sequence[te.Tensor], p: StageGraph, where: Placement) -> Iterator[GroupMember]:
    """Yield the computation of each resident value and of the result, producers first.

    Raises:
        ScheduleError: If a resident value is needed outside the core loops.
        CapacityError: If the resident values exceed the scratchpad.
    """
    members = {head: _stages_of(head, heads, p) for head in heads}
    for k, head in enumerate(heads):
        readers = {x: [y for y in p.readers[x] if y in members[head]] for x in members[head]}
        program = StageGraph(tuple(members[head]), readers, frozenset({head}))
        groups = groups_on_cores(program, where)
        _check_before(groups, program, heads)
        used_bytes = sum(_resident_bytes(x, where) for x in _live_values(k, heads, members))
        free_bytes = where.scratchpad_bytes - used_bytes
        if free_bytes <= 0:
            raise CapacityError(
                "auto: values that stay in memory `{scratchpad}` while {head} is computed require "
                "{required_bytes} bytes, but each core of target {target} has {capacity_bytes}; "
                "divide them among more cores, or remove the largest from near",
                required_bytes=used_bytes, scratchpad=where.scratchpad, head=head.name,
                target=where.target.name, capacity_bytes=where.scratchpad_bytes,
            )
        yield GroupMember(groups, program, replace(where, scratchpad_bytes=free_bytes))


def _check_before(
    groups: Sequence[FusedStages], program: StageGraph, heads: Collection[te.Tensor]
) -> None:
    """Raise if a stage outside the core loops reads a resident value."""
    outputs = {group.output for group in groups}
    for group in groups[:-1]:
        worklist = [group.output]
        for x in worklist:
            for y in x.op.input_tensors:
                if y in heads:
                    raise ScheduleError(
                        "auto: {y} stays in the scratchpads, but {output}, which reads it, does "
                        "not; pass both in near, or neither",
                        kind="indivisible", y=y.name, output=group.output.name,
                    )
                if y in program.readers and y not in outputs and y not in worklist:
                    worklist.append(y)


def _live_values(
    k: int, heads: Sequence[te.Tensor], members: Mapping[te.Tensor, Sequence[te.Tensor]]
) -> list[te.Tensor]:
    """Return the values that are resident while member `k` is computed."""
    later = {y for head in heads[k:] for x in members[head] for y in x.op.input_tensors}
    return [x for i, x in enumerate(heads[:-1]) if i == k or (i < k and x in later)]


def _resident_bytes(x: te.Tensor, where: Placement) -> int:
    """Return the bytes of the scratchpad that one core's region of a value takes."""
    cores = where.cuts[x].cores
    part = [ceil_div(n, cores.get(axis, 1)) for axis, n in enumerate(sizes_of(x))]
    return int(where.bytes_near(x, part))


def _stages_of(head: te.Tensor, heads: Sequence[te.Tensor], p: StageGraph) -> list[te.Tensor]:
    """Return the stages that are computed for one value, producers first."""
    found, stack = {head}, [head]
    while stack:
        new = {y for y in stack.pop().op.input_tensors if y in p.readers and y not in heads} - found
        found |= new
        stack += new
    return [x for x in p.stages if x in found]


def on_scratchpads(results: Sequence[te.Tensor], where: Placement) -> te.Schedule:
    """Return the schedule of a program on the cores of a target with scratchpads.

    Raises:
        CapacityError: If the inputs of a single element do not fit the scratchpad.
        TargetError: If an extent is known only at call time, or a result cannot be divided as
            requested.
        ScheduleError: If a tensor to be divided has no separate loop nest, or shares a kernel with
            a loop nest that is not divided.
    """
    s: te.Schedule = by_loops(results)
    where, p = where.within(s), program_of(s)
    if where.resident_tensors:
        return schedule_groups_together(s, p, where)
    groups = groups_on_cores(p, where)
    _check_cuts(groups, where)
    stored = materialized_tensors(s, groups)
    for group in groups:
        s = _schedule_group(s, group, p, stored, where)
    where.put_arguments(s)
    return s


def _check_cuts(groups: Sequence[FusedStages], where: Placement) -> None:
    """Raise if a tensor to be divided is inlined, or its kernel has an undivided loop nest."""
    if not where.cuts:
        return
    outputs = [group.output for group in groups]
    for x, cut in where.cuts.items():
        chain = next((group.chain for group in groups if group.output == x), (x,))
        cut.check(x, len(chain[-1].op.reduce_axis))
        if x not in outputs:
            raise ScheduleError(
                "auto: {x} is inlined and has no loops to divide; divide the tensor that reads it",
                kind="indivisible", x=x.name,
            )
    undivided = [x for x in outputs if x not in where.cuts]
    undivided += [x for group in groups for x in group.rows if group.output in undivided]
    if undivided:
        raise _division_error(next(iter(where.cuts)), undivided)


def _division_error(x: te.Tensor, others: Sequence[te.Tensor]) -> ScheduleError:
    return ScheduleError(
        "auto: {x} cannot be divided: it is computed together with {others}, which have separate "
        "loops; omit its division",
        kind="indivisible", x=x.name, others=", ".join(y.name for y in others),
    )


def _schedule_group(
    s: te.Schedule, group: FusedStages, p: StageGraph, stored: set[te.Tensor], where: Placement
) -> te.Schedule:
    """Return the schedule with the loop nest of a group, by the first legal candidate.

    If no candidate is legal, the stages of the rows are scheduled as separate groups.
    """
    candidates = core_schedule_candidates(group, p, stored, where)
    found: te.Schedule | None = first_legal(s, [candidate.walk for candidate in candidates])
    if found is not None:
        return found
    if not group.rows:
        if group.output in where.cuts:
            raise ScheduleError(
                "auto: {output} cannot be divided: it is computed in several steps, or not on "
                "cores; omit its division",
                kind="indivisible", output=group.output.name,
            )
        return s
    if group.output in where.cuts:
        raise _division_error(group.output, group.rows)
    stored |= set(group.rows)
    for x in group.rows:
        s = _schedule_group(s, FusedStages(x, (x,)), p, stored, where)
    return _schedule_group(s, FusedStages(group.output, group.chain), p, stored, where)
