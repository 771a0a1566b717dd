"""Tile and schedule arbitrary pointwise stages and reductions on scratchpad cores.

The result is divided among the cores. A core computes its part in blocks. It copies the inputs of a
block to its scratchpad, double-buffered if there is enough space, so that the next block is loaded
while the current one is in use. It computes the block there, in vectors, and writes it back in
memory order. A reduction whose inputs exceed the scratchpad is processed piece by piece.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import lcm, prod

from tecomp import (
    CapacityError,
    IndexMap,
    ScheduleError,
    Target,
    TargetError,
    accesses,
    te,
)
from tecomp.schedules.common import ceil_div, round_up
from tecomp.schedules.scratchpad.contraction import walk, walk_parts
from tecomp.schedules.scratchpad.footprint import (
    Box,
    Reach,
    Sizes,
    TiledComputation,
    bytes_of,
    is_beside,
    order_of,
    reach_of,
    transitive_inputs,
)
from tecomp.schedules.scratchpad.placement import Placement, grow_block, largest, number, sizes_of
from tecomp.schedules.scratchpad.work_division import (
    DivisionPlan,
    DivisionSpec,
    UndividedResult,
    WorkDivision,
    blocks_as,
    divide,
    divide_as,
    divide_depth,
    pieces_as,
)
from tecomp.schedules.tiling.reduction import first_output, remaining_reduction_loops
from tecomp.schedules.tiling.register_blocking import width_of


@dataclass(frozen=True)
class GenericTiling:
    """Work division and blocks of a result.

    Attributes:
        division: Part of each core.
        core: Extents of such a part.
        block: Extents of the block that is in a scratchpad at one time.
        depth: Extents of the piece of the reduction that is processed at a time.
        is_doubled: Whether the next block is loaded while the current one is in use.
        copied: Tensors that are copied to the scratchpad.
    """

    division: WorkDivision
    core: tuple[int, ...]
    block: tuple[int, ...]
    depth: Sizes
    is_doubled: bool
    copied: tuple[te.Tensor, ...]


def schedule_parts(s: te.Schedule, w: TiledComputation, where: Placement) -> None:
    """Schedule a result and the stages that are computed for it on the cores of a target.

    Args:
        s: Schedule, in which the tensors in memory have been placed.
        w: Result with its stages.
        where: Placement of tensors in the memories of the target.

    Raises:
        CapacityError: If the inputs of a single element do not fit the scratchpad.
    """
    output = w.output
    p = plan(w, where)
    for x in w.inlined:
        s[x].compute_inline()
    where.put(s, output)
    # A resident pointwise result is computed in place.
    stays = output in where.near and w.total != output
    made = output if stays else s.cache_write(output.op.outputs, where.scratchpad)[0]
    loop = walk_parts(s, output, p.core, p.block, p.division.shares, where)
    part = None
    if w.total is not None:
        total = made if w.total == output else w.total
        part = _reduce(s, w, total, p, where, loop)
    if made != output and w.total != output:
        where.keep(s, made, output, loop, where.lane_of(output))
    for x in p.copied:
        _copy_inputs(s, x, w, made, where, loop, part, p)


SchedulePartial = Callable[[te.Schedule, te.Tensor, Placement], object]
"""Function that schedules partial results, whose first axis is the part of the reduction."""


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
    own = transitive_inputs(partial, {partial: accesses(partial).reads, **w.reads})
    total = s[w.total].op
    left = transitive_inputs(w.output, {**w.reads, w.total: accesses(total.output(0)).reads})
    if not own.keys().isdisjoint(left):
        raise ScheduleError(
            "{output}: an inlined expression is used both in the reduction and after it",
            kind="indivisible", output=w.output.name,
        )
    work = TiledComputation(
        partial, partial, own, w.whole, tuple(remaining_reduction_loops(s, partial))
    )
    rest = TiledComputation(w.output, w.total, left, {*w.whole, partial}, tuple(total.reduce_axis))
    cuts = {} if cut is None else {
        partial: cut.of_partial(len(w.output.shape)), w.output: cut.along(len(w.output.shape))
    }
    where = replace(where, cuts=cuts)
    if schedule is not None and where.target.stick is not None:
        where = replace(
            where, given={**where.given, partial: _partial_result_layout(partial, where)}
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
    schedule_parts(s, rest, where)


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
    return UndividedResult("reduction", f"{count} cores share its reduction along {axis.name}")


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
    asked = [(w.depth[axis - rank], n) for axis, n in cut.cores.items() if axis >= rank]
    if w.total is None or not asked:
        return None
    if len(asked) > 1:
        names = ", ".join(axis.name for axis, _ in asked)
        raise TargetError(
            "{output}: only one reduction axis can be divided among cores, got {names}; request "
            "parts along one of them",
            kind="indivisible", output=w.output.name, names=names,
        )
    ((axis, count),) = asked
    extent = number(axis.extent, w.total)
    unit = _depth_units(w, where)[axis]
    if extent % unit or extent // unit % count:
        raise TargetError(
            "{output}: {count} parts of the reduction along {axis} would be uneven ({extent} "
            "values, in sticks or tiles of {unit}); request a number that divides {multiple}",
            kind="indivisible", output=w.output.name, count=count, axis=axis.name, extent=extent,
            unit=unit, multiple=extent // unit if extent % unit == 0 else 1,
        )
    return axis, count


def _depth_units(w: TiledComputation, where: Placement) -> dict[te.IterVar, int]:
    """Return the indivisible extents along the reduction axes: sticks, if they run along them."""
    units = dict.fromkeys(w.depth, 1)
    for read in (read for reads in w.reads.values() for read in reads if read.index):
        for axis, unit in zip(read.axes, where.units(read.tensor), strict=True):
            if axis in units:
                units[axis] = lcm(units[axis], unit)
    return units


def _lane_of(w: TiledComputation, where: Placement) -> te.IterVar | None:
    """Return the axis of the result along its lanes; None if each element has a separate stick."""
    dim = where.lane_of(w.output)
    return None if dim is None else w.output.op.axis[dim]


def _lane_in(x: te.Tensor, box: Box, w: TiledComputation, where: Placement) -> int | None:
    """Return the axis along the lanes of a tensor in the scratchpad.

    Return None if each element has a separate stick, because a copy cannot gather elements of
    several sticks.
    """
    is_made = x == w.total or x in w.output.op.outputs
    order = order_of(box, _lane_of(w, where))
    return order[-1] if order and where.lane_of(w.output if is_made else x) is not None else None


def _reduce(
    s: te.Schedule, w: TiledComputation, total: te.Tensor, p: GenericTiling, where: Placement,
    loop: te.IterVar
) -> te.IterVar | None:
    """Reduce a block in the scratchpad, in vectors along the block.

    Returns:
        The loop over pieces of the reduction; None if there is a single piece.
    """
    stage = s[total]
    stage.set_scope(where.scratchpad)
    assert w.total is not None
    along = _lane_in(w.total, w.boxes(p.block, p.depth)[w.total], w, where)
    *outer, lane = stage.transform_layout(where.near_layout(total, along))
    stage.compute_at(s[w.output], loop)
    pieces, steps = [], []
    for axis, own in zip(w.depth, remaining_reduction_loops(s, total), strict=True):
        if p.depth[axis] < number(axis.extent, total):
            piece, own = stage.split(own, factor=p.depth[axis])
            pieces.append(piece)
        steps.append(own)
    stage.reorder(*pieces, *outer, *steps, lane)
    if along is not None:
        stage.vectorize(lane)
    return pieces[-1] if pieces else None


def _copy_inputs(
    s: te.Schedule, x: te.Tensor, w: TiledComputation, made: te.Tensor, where: Placement,
    loop: te.IterVar,
    part: te.IterVar | None, p: GenericTiling,
) -> None:
    """Copy the inputs of a block, once per block or once per piece of the reduction."""
    beside = [y for y in w.readers(x) if part is None or is_beside(w, y)]
    others = [y for y in w.readers(x) if y not in beside]
    total = made if w.total == w.output else w.total
    box = w.boxes(p.block, p.depth)[x]
    for readers, stage, place in ((beside, w.output, loop), (others, total, part)):
        if not readers or stage is None or place is None:
            continue
        now = [made if y == w.output else y for y in readers]
        copy = s.cache_read(x, where.scratchpad, now)
        order, along = order_of(box, _lane_of(w, where)), _lane_in(x, box, w, where)
        if along is None or order == sorted(order):
            where.keep(s, copy, stage, place, along)
        else:
            # Read in memory order; the scratchpad has the permuted copy.
            s[copy].set_scope(where.scratchpad)
            s[copy].transform_layout(where.near_layout(copy, along), loops="logical")
            s[copy].compute_at(s[stage], place)
            walk(s, copy, s[copy].op.axis, where, x)
        if p.is_doubled:
            s[copy].double_buffer()


def plan(w: TiledComputation, where: Placement) -> GenericTiling:
    """Choose the part of each core, and the largest blocks that fit the scratchpad.

    Blocks grow step by step along the axis that saves the most reads from device memory.

    Raises:
        CapacityError: If the inputs of a single element, or the requested blocks, do not fit the
            scratchpad.
        TargetError: If the target does not have the requested cores, or the parts exceed the
            address span of a core.
    """
    output, cut = w.output, where.cuts.get(w.output, DivisionSpec())
    units = where.units(output)
    shared = cut.pieces(sizes_of(output), units)
    division = _choose_division(w, where, cut, shared)
    core = tuple(n * unit for n, unit in zip(division.part, shared, strict=True))
    room = _GenericBudget(w, where, core, _tensors_to_copy(w, where))
    whole: Sizes = {axis: number(axis.extent, output) for axis in w.depth}
    asked = blocks_as(output, cut, core, units)
    pieces = pieces_as(output, cut, w.depth, _depth_units(w, where))
    whole = {**whole, **pieces}
    if not asked and room.fits(core, whole, doubled=False):
        return GenericTiling(division, core, core, whole, False, room.copied)
    least: Sizes = {**dict.fromkeys(whole, 1), **pieces}
    smallest = tuple(asked.get(axis, unit) for axis, unit in enumerate(units))
    if asked or pieces:
        room.check(smallest, least)
    elif not room.fits(units, least, doubled=False):
        units = smallest = (1,) * len(units)
        room = room.without_far()
    is_doubled = room.fits(smallest, least, doubled=True)
    depth = room.deepest(smallest, least, whole, doubled=is_doubled)
    most = tuple(asked.get(axis, n) for axis, n in enumerate(core))
    block = replace(room, core=most).longest(smallest, depth, doubled=is_doubled)
    depth = room.deepest(block, least, whole, doubled=is_doubled)
    even = tuple(
        round_up(ceil_div(most, ceil_div(most, n)), unit)
        for n, most, unit in zip(block, core, units, strict=True)
    )
    return GenericTiling(division, core, even, depth, is_doubled, room.copied)


def outline(w: TiledComputation, where: Placement) -> DivisionPlan:
    """Return how a result is divided among cores.

    Raises:
        CapacityError: If a block does not fit the scratchpad.
        TargetError: If the target does not have the requested cores, or the parts exceed the
            address span of a core.
    """
    p = plan(w, where)
    whole: Sizes = {axis: number(axis.extent, w.output) for axis in w.depth}
    read = _GenericBudget(w, where, p.core, p.copied).read(p.block, whole)
    return DivisionPlan(p.division.count, p.core, p.division.cores * read)


def _tensors_to_copy(w: TiledComputation, where: Placement) -> tuple[te.Tensor, ...]:
    """Return the tensors to copy to the scratchpad.

    Resident tensors are read in place if their lanes match those of the result.
    """
    boxes = w.boxes((1,) * len(w.output.shape), dict.fromkeys(w.depth, 1))
    lane = _lane_of(w, where)
    orders = {x: order_of(boxes[x], lane) for x in where.near if x in boxes}
    there = [x for x, order in orders.items() if order == sorted(order)]
    return tuple(x for x in w.copied() if x not in there)


def _choose_division(
    w: TiledComputation, where: Placement, cut: DivisionSpec, units: Sequence[int]
) -> WorkDivision:
    """Return the part of each core, as requested or chosen automatically.

    Raises:
        TargetError: If the target does not have the requested cores, or the parts exceed the
            address span of a core.
    """
    span = _GenericAddressSpan(w, reach_of((w.output, *w.copied()), where), units)
    division: WorkDivision
    if cut.cores:
        division = divide_as(w.output, cut, units, where.target)
    else:
        division = divide(_pieces(sizes_of(w.output), units), where.target.grid, span.fits)
    span.check(division.part, where.target)
    return division


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
    units = _depth_units(w, where)
    steps = [
        n // units[axis] if n % units[axis] == 0 else 1
        for axis, n in zip(w.depth, extents, strict=True)
    ]
    count = divide_depth(steps, where.target.cores // cores)
    terms, many = prod(extents), prod(count)
    partial = _division(te.placeholder((many, *sizes_of(w.total)), w.total.dtype), where)
    if partial.cores <= cores or terms // many + many > terms // 2:
        return None
    return w.depth[count.index(many)], many


def _division(x: te.Tensor, where: Placement) -> WorkDivision:
    """Return the division of a tensor without constraints on its parts."""
    return divide(_pieces(sizes_of(x), where.units(x)), where.target.grid)


def _pieces(shape: Sequence[int], units: Sequence[int]) -> list[int]:
    """Return the number of units along each axis; an empty axis counts as one."""
    return [ceil_div(max(n, 1), unit) for n, unit in zip(shape, units, strict=True)]


@dataclass(frozen=True)
class _GenericBudget:
    """Scratchpad bytes of blocks.

    Attributes:
        w: Result with its stages.
        where: Placement of tensors in the memories of the target.
        core: Extents of the part of a core.
        copied: Tensors that are copied to the scratchpad.
    """

    w: TiledComputation
    where: Placement
    core: tuple[int, ...]
    copied: tuple[te.Tensor, ...]

    def sizes(self, block: Sequence[int], depth: Sizes) -> dict[te.Tensor, int]:
        """Return the bytes of every tensor in the scratchpad for a block."""
        boxes = self.w.boxes(block, depth)
        boxes |= dict.fromkeys(self.w.output.op.outputs, boxes[self.w.output])
        made = [*([self.w.total] if self.w.total else []), *self.w.output.op.outputs]
        return {x: self._size(x, boxes[x]) for x in (*self.copied, *made)}

    def _size(self, x: te.Tensor, box: Box) -> int:
        """Return the bytes of a region of a tensor, in scratchpad order."""
        order = order_of(box, _lane_of(self.w, self.where))
        is_lone = _lane_in(x, box, self.w, self.where) is None
        return int(bytes_of(x, tuple(box[dim] for dim in order), self.where, is_lone=is_lone))

    def fits(self, block: Sequence[int], depth: Sizes, *, doubled: bool) -> bool:
        """Return whether a block fits, with the inputs of the next block if `doubled`."""
        sizes = self.sizes(block, depth)
        more = sum(sizes[x] for x in self.copied) if doubled else 0
        need: int = sum(sizes.values()) + more
        return bool(need <= self.where.room)

    def check(self, block: Sequence[int], depth: Sizes) -> None:
        """Raise if a block does not fit the scratchpad.

        Raises:
            CapacityError: If the block does not fit.
        """
        need = sum(self.sizes(block, depth).values())
        if need > self.where.room:
            raise CapacityError(
                "{output}: a block of {block} requires {need} bytes of memory `{scratchpad}`, but "
                "each core of target {target} has {room}; request more tiles",
                output=self.w.output.name, block=" x ".join(map(str, block)), need=need,
                scratchpad=self.where.scratchpad, target=self.where.target.name,
                room=self.where.room,
            )

    def without_far(self) -> _GenericBudget:
        """Exclude gathered tensors from the copies if a single element does not fit the scratchpad.

        Raises:
            CapacityError: If a single element does not fit without these copies either.
        """
        least, one = dict.fromkeys(self.w.depth, 1), (1,) * len(self.core)
        sizes = self.sizes(one, least)
        need = sum(sizes.values())
        if need <= self.where.room:
            return self
        boxes = self.w.boxes(one, least)
        far = [x for x in self.copied if any(s.extent > 1 and s.terms is None for s in boxes[x])]
        if far:
            largest = max(far, key=sizes.__getitem__)
            return replace(
                self, copied=tuple(x for x in self.copied if x != largest)
            ).without_far()
        listed = ", ".join(
            f"{x.name}: {x.dtype}, {size} bytes"
            for x, size in sorted(sizes.items(), key=lambda pair: -pair[1])[:3]
        )
        raise CapacityError(
            "{output}: a single element requires {need} bytes of memory `{scratchpad}`, but each "
            "core of target {target} has {room} ({listed}); read fewer inputs per element, or use "
            "a target with larger scratchpads",
            output=self.w.output.name, need=need, scratchpad=self.where.scratchpad,
            target=self.where.target.name, room=self.where.room, listed=listed,
        )

    def deepest(
        self, block: Sequence[int], least: Sizes, whole: Sizes, *, doubled: bool
    ) -> Sizes:
        """Return the largest piece of the reduction that fits, growing the last axes first."""
        if self.fits(block, whole, doubled=doubled):
            return whole
        depth = least
        for axis in reversed([axis for axis, n in whole.items() if n > least[axis]]):
            depth = self._deeper(block, depth, axis, whole[axis], doubled=doubled)
        return depth

    def _deeper(
        self, block: Sequence[int], depth: Sizes, axis: te.IterVar, most: int, *, doubled: bool
    ) -> Sizes:
        """Return the largest piece along one reduction axis that fits."""

        def fits(steps: int) -> bool:
            return self.fits(block, {**depth, axis: steps}, doubled=doubled)

        steps = largest(most, fits)
        # Make the pieces even without changing their number, unless even pieces start inside sticks
        # and thus need more space.
        even = ceil_div(most, ceil_div(most, steps))
        return {**depth, axis: even if fits(even) else steps}

    def longest(self, block: tuple[int, ...], depth: Sizes, *, doubled: bool) -> tuple[int, ...]:
        """Return the block that minimizes the total reads of its inputs."""
        # The last axis wins ties, because its elements are contiguous.
        axes = reversed(range(len(block)))
        found = grow_block(
            dict(enumerate(block)), dict(enumerate(self.core)), axes,
            lambda sizes: self.fits(tuple(sizes.values()), depth, doubled=doubled),
            lambda sizes: self.read(tuple(sizes.values()), depth),
        )
        return tuple(found.values())

    def read(self, block: Sequence[int], depth: Sizes) -> int:
        """Return the bytes that a core reads for its part, block by block."""
        blocks = prod(ceil_div(most, n) for n, most in zip(block, self.core, strict=True))
        boxes = self.w.boxes(block, depth)
        size: int = blocks * sum(_size(x, boxes[x]) for x in self.copied)
        return size


@dataclass(frozen=True)
class _GenericAddressSpan:
    """Check of the address span that a core uses of each tensor.

    Attributes:
        w: Result with its stages.
        reach: Limit of the address span.
        units: Indivisible extents in which parts are counted.
    """

    w: TiledComputation
    reach: Reach
    units: Sequence[int]

    def check(self, part: Sequence[int], target: Target) -> None:
        """Raise if parts exceed the address span of a core.

        Raises:
            TargetError: If the parts exceed the address span of a core.
        """
        error = self.reach.error(
            self.w.output, self._extents(part), self._parts(part), target)
        if error is not None:
            raise error

    def fits(self, part: Sequence[int]) -> bool:
        """Return whether a core can address all tensors of a part."""
        return not self.reach.layouts or self.reach.far(self._parts(part)) is None

    def _extents(self, part: Sequence[int]) -> list[int]:
        return [n * unit for n, unit in zip(part, self.units, strict=True)]

    def _parts(self, part: Sequence[int]) -> dict[te.Tensor, list[int]]:
        whole = {axis: number(axis.extent, self.w.output) for axis in self.w.depth}
        boxes = self.w.boxes(self._extents(part), whole)
        return {x: [span.extent for span in boxes[x]] for x in self.reach.layouts}


def _size(x: te.Tensor, box: Box) -> int:
    size: int = prod(span.extent for span in box) * width_of(x)
    return size

