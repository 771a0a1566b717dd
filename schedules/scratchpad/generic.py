"""Tile and schedule arbitrary formulas and reductions on scratchpad cores.

The result is divided among the cores. A core computes blocks of its part: it brings what a block
is made of into its scratchpad, twice if there is room, so that the next part comes in while one is
in use; computes the block there, in vectors; and writes it back in the order of memory. Where a
reduction reads more than there is room for, it is done a piece after the other.
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
    Work,
    bytes_of,
    is_beside,
    order_of,
    reach_of,
    reached,
)
from tecomp.schedules.scratchpad.placement import Placement, largest, lengthened, number, sizes_of
from tecomp.schedules.scratchpad.work_division import (
    Cut,
    Division,
    Outline,
    Uncut,
    blocks_as,
    divide,
    divide_as,
    divide_depth,
    pieces_as,
)
from tecomp.schedules.tiling.reduction import left_of, one
from tecomp.schedules.tiling.register_blocking import width_of


@dataclass(frozen=True)
class Plan:
    """How a result is cut.

    Attributes:
        division: which part each core has.
        core: extents of such a part.
        block: extents of what is in a scratchpad at one time.
        depth: how much of the reduction is done at a time.
        is_doubled: whether the next block comes in while one is in use.
        copied: what is brought to the scratchpad.
    """

    division: Division
    core: tuple[int, ...]
    block: tuple[int, ...]
    depth: Sizes
    is_doubled: bool
    copied: tuple[te.Tensor, ...]


def schedule_parts(s: te.Schedule, w: Work, where: Placement) -> None:
    """Schedule a result, and what is computed for it, on the cores of a machine.

    Args:
        s: the schedule, in which what is there before has its place.
        w: the result.
        where: the machine.

    Raises:
        CapacityError: there is no room for what a single element is made of.
    """
    output = w.output
    p = plan(w, where)
    for x in w.inlined:
        s[x].compute_inline()
    where.put(s, output)
    # A formula that stays in the scratchpad is computed where it stays.
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
        _bring(s, x, w, made, where, loop, part, p)


SchedulePartial = Callable[[te.Schedule, te.Tensor, Placement], object]
"""Schedules partial results, whose first axis is the part of the reduction."""


def schedule_partial(
    s: te.Schedule, w: Work, where: Placement, shared: tuple[te.IterVar, int] | None = None,
    schedule: SchedulePartial | None = None,
) -> None:
    """The same for a result that has no part for each core: these share the reduction, too.

    Partial results are in the memory of the device, with an axis for parts of the reduction.

    Args:
        s: the schedule, in which what is there before has its place.
        w: the result.
        where: the machine.
        shared: the axis of the reduction that cores share, and its parts; as is best if None.
        schedule: schedules partial results; as this module does if None.

    Raises:
        ScheduleError: there is a part for each core, or sharing the reduction does not pay, or the
            same formula is needed for it and after it.
        CapacityError: there is no room for what a single element is made of.
    """
    cut = where.cuts.get(w.output)
    axis, count = shared or _shared_depth(w, cut, where)
    assert w.total is not None
    outer, _ = s[w.total].split(axis, nparts=count)
    partial = one(s.rfactor(w.total, outer))
    own = reached(partial, {partial: accesses(partial).reads, **w.reads})
    total = s[w.total].op
    left = reached(w.output, {**w.reads, w.total: accesses(total.output(0)).reads})
    if not own.keys().isdisjoint(left):
        raise ScheduleError(
            f"{w.output.name}: a formula is computed for its reduction and after",
            kind="not-divided",
        )
    work = Work(partial, partial, own, w.whole, tuple(left_of(s, partial)))
    rest = Work(w.output, w.total, left, {*w.whole, partial}, tuple(total.reduce_axis))
    cuts = {} if cut is None else {
        partial: cut.of_partial(len(w.output.shape)), w.output: cut.along(len(w.output.shape))
    }
    where = replace(where, cuts=cuts)
    if schedule is not None and where.target.stick is not None:
        where = replace(where, given={**where.given, partial: _apart(partial, where)})
    try:
        if schedule is None:
            schedule_parts(s, work, where)
        else:
            schedule(s, partial, where)
    except TargetError as error:
        if cut is None:
            raise
        raise TargetError(
            f"{w.output.name}: {count} parts of its reduction cannot be, of which {partial.name} "
            f"has the results: {error.message}",
            kind=error.kind,
        ) from None
    schedule_parts(s, rest, where)


def _apart(partial: te.Tensor, where: Placement) -> IndexMap:
    """Where partial results are: the parts of one row of the result together, not padded."""
    lanes = where.lanes(partial.dtype)

    def place(part: te.Expr, *i: te.Expr) -> list[object]:
        return [*i[:-1], part, i[-1] // lanes, i[-1] % lanes]

    return IndexMap.from_func(place, len(partial.shape))


def outline_partial(w: Work, where: Placement) -> Uncut:
    """Why the result of a reduction that several cores share is not cut.

    Raises:
        ScheduleError: no cores share it.
        TargetError: the parts that somebody asks for cannot be.
    """
    axis, count = _shared_depth(w, where.cuts.get(w.output), where)
    return Uncut("reduction", f"{count} cores share its reduction along {axis.name}")


def _shared_depth(w: Work, cut: Cut | None, where: Placement) -> tuple[te.IterVar, int]:
    """The axis of a reduction that cores share, and its parts.

    Raises:
        ScheduleError: there is none.
        TargetError: the parts that somebody asks for cannot be.
    """
    found = parts_of_depth(w, where) if cut is None else _depth_as_asked(w, cut, where)
    if found is None:
        raise ScheduleError(
            f"{w.output.name}: its reduction is no work for several cores", kind="not-divided"
        )
    return found


def _depth_as_asked(w: Work, cut: Cut, where: Placement) -> tuple[te.IterVar, int] | None:
    """The axis of a reduction that somebody wants to be shared among cores, and its parts.

    Raises:
        TargetError: there are several, or sticks would be cut.
    """
    rank = len(w.output.shape)
    asked = [(w.depth[axis - rank], n) for axis, n in cut.cores.items() if axis >= rank]
    if w.total is None or not asked:
        return None
    if len(asked) > 1:
        names = ", ".join(axis.name for axis, _ in asked)
        raise TargetError(
            f"{w.output.name}: cores share one axis of a reduction, and not {names}; ask for parts "
            "along one of them",
            kind="not-divided",
        )
    ((axis, count),) = asked
    extent = number(axis.extent, w.total)
    unit = _depth_units(w, where)[axis]
    if extent % unit or extent // unit % count:
        raise TargetError(
            f"{w.output.name}: {count} parts of the reduction along {axis.name} would not be even "
            f"({extent} values, in sticks or tiles of {unit}); ask for a number that divides "
            f"{extent // unit if extent % unit == 0 else 1}",
            kind="not-divided",
        )
    return axis, count


def _depth_units(w: Work, where: Placement) -> dict[te.IterVar, int]:
    """What is not cut along the axes of a reduction: sticks, where they run through these."""
    units = dict.fromkeys(w.depth, 1)
    for read in (read for reads in w.reads.values() for read in reads if read.index):
        for axis, unit in zip(read.axes, where.units(read.tensor), strict=True):
            if axis in units:
                units[axis] = lcm(units[axis], unit)
    return units


def _lane_of(w: Work, where: Placement) -> te.IterVar | None:
    """The axis of the result along its lanes; None where each element has a stick of its own."""
    dim = where.lane_of(w.output)
    return None if dim is None else w.output.op.axis[dim]


def _lane_in(x: te.Tensor, box: Box, w: Work, where: Placement) -> int | None:
    """The axis along the lanes of a tensor that is in the scratchpad for a result.

    None where each element has a stick of its own: a copy gathers no elements of several sticks.
    """
    is_made = x == w.total or x in w.output.op.outputs
    order = order_of(box, _lane_of(w, where))
    return order[-1] if order and where.lane_of(w.output if is_made else x) is not None else None


def _reduce(
    s: te.Schedule, w: Work, total: te.Tensor, p: Plan, where: Placement, loop: te.IterVar
) -> te.IterVar | None:
    """Reduce a block in the scratchpad, in vectors along it.

    Returns:
        The loop over pieces of the reduction; None if there is one.
    """
    stage = s[total]
    stage.set_scope(where.scratchpad)
    assert w.total is not None
    along = _lane_in(w.total, w.boxes(p.block, p.depth)[w.total], w, where)
    *outer, lane = stage.transform_layout(where.near_layout(total, along))
    stage.compute_at(s[w.output], loop)
    pieces, steps = [], []
    for axis, own in zip(w.depth, left_of(s, total), strict=True):
        if p.depth[axis] < number(axis.extent, total):
            piece, own = stage.split(own, factor=p.depth[axis])
            pieces.append(piece)
        steps.append(own)
    stage.reorder(*pieces, *outer, *steps, lane)
    if along is not None:
        stage.vectorize(lane)
    return pieces[-1] if pieces else None


def _bring(
    s: te.Schedule, x: te.Tensor, w: Work, made: te.Tensor, where: Placement, loop: te.IterVar,
    part: te.IterVar | None, p: Plan,
) -> None:
    """Copy what a block is made of, once for it, or for each piece of the reduction."""
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
            # Read as it lies: what is stored in another order is in the scratchpad.
            s[copy].set_scope(where.scratchpad)
            s[copy].transform_layout(where.near_layout(copy, along), loops="logical")
            s[copy].compute_at(s[stage], place)
            walk(s, copy, s[copy].op.axis, where, x)
        if p.is_doubled:
            s[copy].double_buffer()


def plan(w: Work, where: Placement) -> Plan:
    """The part of each core, and the largest blocks of it that fit.

    Each step makes the block longer along the axis that saves most of what is read from the memory
    of the device.

    Raises:
        CapacityError: there is no room for what a single element is made of, or for the blocks
            that somebody asks for.
        TargetError: the cores that somebody asks for are not there, or do not reach their parts.
    """
    output, cut = w.output, where.cuts.get(w.output, Cut())
    units = where.units(output)
    shared = cut.pieces(sizes_of(output), units)
    division = _divided(w, where, cut, shared)
    core = tuple(n * unit for n, unit in zip(division.part, shared, strict=True))
    room = _Room(w, where, core, _brought(w, where))
    whole: Sizes = {axis: number(axis.extent, output) for axis in w.depth}
    asked = blocks_as(output, cut, core, units)
    pieces = pieces_as(output, cut, w.depth, _depth_units(w, where))
    whole = {**whole, **pieces}
    if not asked and room.fits(core, whole, doubled=False):
        return Plan(division, core, core, whole, False, room.copied)
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
    return Plan(division, core, even, depth, is_doubled, room.copied)


def outline(w: Work, where: Placement) -> Outline:
    """How a result is cut.

    Raises:
        CapacityError: there is no room for a part.
        TargetError: the cores that somebody asks for are not there, or do not reach their parts.
    """
    p = plan(w, where)
    whole: Sizes = {axis: number(axis.extent, w.output) for axis in w.depth}
    read = _Room(w, where, p.core, p.copied).read(p.block, whole)
    return Outline(p.division.count, p.core, p.division.cores * read)


def _brought(w: Work, where: Placement) -> tuple[te.Tensor, ...]:
    """What is copied to the scratchpad: what is there before is read as it is, if it lies so."""
    boxes = w.boxes((1,) * len(w.output.shape), dict.fromkeys(w.depth, 1))
    lane = _lane_of(w, where)
    orders = {x: order_of(boxes[x], lane) for x in where.near if x in boxes}
    there = [x for x, order in orders.items() if order == sorted(order)]
    return tuple(x for x in w.copied() if x not in there)


def _divided(w: Work, where: Placement, cut: Cut, units: Sequence[int]) -> Division:
    """The part of each core, as somebody asks for it or as is best.

    Raises:
        TargetError: the cores that somebody asks for are not there, or cores do not reach their
            parts.
    """
    span = _Span(w, reach_of((w.output, *w.copied()), where), units)
    division: Division
    if cut.cores:
        division = divide_as(w.output, cut, units, where.target)
    else:
        division = divide(_pieces(sizes_of(w.output), units), where.target.grid, span.fits)
    span.check(division.part, where.target)
    return division


def parts_of_depth(w: Work, where: Placement) -> tuple[te.IterVar, int] | None:
    """The axis of a reduction to share among cores that have no part of the result, and its parts.

    None where that does not pay: partial results are written, and read again. An axis that runs
    through sticks is cut between them, and not at all if they are padded.
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


def _division(x: te.Tensor, where: Placement) -> Division:
    """How a tensor is divided whose parts may be as they like."""
    return divide(_pieces(sizes_of(x), where.units(x)), where.target.grid)


def _pieces(shape: Sequence[int], units: Sequence[int]) -> list[int]:
    """How many units there are along each axis, of an empty one too."""
    return [ceil_div(max(n, 1), unit) for n, unit in zip(shape, units, strict=True)]


@dataclass(frozen=True)
class _Room:
    """What blocks take of a scratchpad.

    Attributes:
        w: the result.
        where: the machine.
        core: extents of the part of a core.
        copied: what is brought there.
    """

    w: Work
    where: Placement
    core: tuple[int, ...]
    copied: tuple[te.Tensor, ...]

    def sizes(self, block: Sequence[int], depth: Sizes) -> dict[te.Tensor, int]:
        """Bytes of everything that is there for a block."""
        boxes = self.w.boxes(block, depth)
        boxes |= dict.fromkeys(self.w.output.op.outputs, boxes[self.w.output])
        made = [*([self.w.total] if self.w.total else []), *self.w.output.op.outputs]
        return {x: self._size(x, boxes[x]) for x in (*self.copied, *made)}

    def _size(self, x: te.Tensor, box: Box) -> int:
        """Bytes of a part of a tensor, in the order in which it is in the scratchpad."""
        order = order_of(box, _lane_of(self.w, self.where))
        is_lone = _lane_in(x, box, self.w, self.where) is None
        return int(bytes_of(x, tuple(box[dim] for dim in order), self.where, is_lone=is_lone))

    def fits(self, block: Sequence[int], depth: Sizes, *, doubled: bool) -> bool:
        """Whether there is room for a block, or for that and what the next one is made of."""
        sizes = self.sizes(block, depth)
        more = sum(sizes[x] for x in self.copied) if doubled else 0
        need: int = sum(sizes.values()) + more
        return bool(need <= self.where.room)

    def check(self, block: Sequence[int], depth: Sizes) -> None:
        """Refuse blocks for which there is no room.

        Raises:
            CapacityError: there is none.
        """
        need = sum(self.sizes(block, depth).values())
        if need > self.where.room:
            raise CapacityError(
                f"{self.w.output.name}: a block of {' x '.join(map(str, block))} takes {need} "
                f"bytes of memory `{self.where.scratchpad}`, of which each core of target "
                f"{self.where.target.name} has {self.where.room}; ask for more tiles"
            )

    def without_far(self) -> _Room:
        """What is read at places far apart stays where it is, if there is no room for one element.

        Raises:
            CapacityError: there is none all the same.
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
            f"{self.w.output.name}: a single element of it takes {need} bytes of memory "
            f"`{self.where.scratchpad}`, of which each core of target {self.where.target.name} has "
            f"{self.where.room} ({listed}); read less for it at one time, or take a target with "
            "larger scratchpads"
        )

    def deepest(
        self, block: Sequence[int], least: Sizes, whole: Sizes, *, doubled: bool
    ) -> Sizes:
        """As much of the reduction as fits, of the last axes first."""
        if self.fits(block, whole, doubled=doubled):
            return whole
        depth = least
        for axis in reversed([axis for axis, n in whole.items() if n > least[axis]]):
            depth = self._deeper(block, depth, axis, whole[axis], doubled=doubled)
        return depth

    def _deeper(
        self, block: Sequence[int], depth: Sizes, axis: te.IterVar, most: int, *, doubled: bool
    ) -> Sizes:
        """As much of one axis of the reduction as fits."""

        def fits(steps: int) -> bool:
            return self.fits(block, {**depth, axis: steps}, doubled=doubled)

        steps = largest(most, fits)
        # As many pieces, but even ones: that is no use if they begin inside of a stick.
        even = ceil_div(most, ceil_div(most, steps))
        return {**depth, axis: even if fits(even) else steps}

    def longest(self, block: tuple[int, ...], depth: Sizes, *, doubled: bool) -> tuple[int, ...]:
        """Blocks that read as little as possible, in all, of what they are made of."""
        # Of equal ones the last axis: its elements lie side by side.
        axes = reversed(range(len(block)))
        found = lengthened(
            dict(enumerate(block)), dict(enumerate(self.core)), axes,
            lambda sizes: self.fits(tuple(sizes.values()), depth, doubled=doubled),
            lambda sizes: self.read(tuple(sizes.values()), depth),
        )
        return tuple(found.values())

    def read(self, block: Sequence[int], depth: Sizes) -> int:
        """Bytes that a core reads for its part, block by block."""
        blocks = prod(ceil_div(most, n) for n, most in zip(block, self.core, strict=True))
        boxes = self.w.boxes(block, depth)
        size: int = blocks * sum(_size(x, boxes[x]) for x in self.copied)
        return size


@dataclass(frozen=True)
class _Span:
    """How far apart the elements are that a core uses of a tensor.

    Attributes:
        w: the result.
        reach: what a core reaches.
        units: what parts are counted in.
    """

    w: Work
    reach: Reach
    units: Sequence[int]

    def check(self, part: Sequence[int], target: Target) -> None:
        """Refuse parts that are too far apart for a core.

        Raises:
            TargetError: they are.
        """
        error = self.reach.error(
            self.w.output, self._extents(part), self._parts(part), target)
        if error is not None:
            raise error

    def fits(self, part: Sequence[int]) -> bool:
        """Whether the target lets a core reach all that it needs for a part."""
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

