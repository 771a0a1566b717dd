"""Tile and schedule arbitrary pointwise stages and reductions on scratchpad cores.

The result is divided among the cores. A core computes its part in blocks. It copies the inputs of a
block to its scratchpad, double-buffered if there is enough space, so that the next block is loaded
while the current one is in use. It computes the block there, in vectors, and writes it back in
memory order. A reduction whose inputs exceed the scratchpad is processed in pieces.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod

from tecomp import (
    CapacityError,
    Target,
    te,
)
from tecomp.schedules.common import ceil_div, round_up
from tecomp.schedules.scratchpad.footprint import (
    Box,
    Reach,
    Sizes,
    TiledComputation,
    bytes_of,
    depth_units,
    is_beside,
    order_of,
    reach_of,
)
from tecomp.schedules.scratchpad.placement import Placement, number, sizes_of
from tecomp.schedules.scratchpad.traversal import traverse, traverse_parts
from tecomp.schedules.scratchpad.work_division import (
    DivisionPlan,
    DivisionSpec,
    WorkDivision,
    blocks_as,
    divide,
    divide_as,
    grow_block,
    largest,
    pieces_as,
    pieces_of,
)
from tecomp.schedules.tiling.reduction import remaining_reduction_loops
from tecomp.schedules.tiling.register_blocking import width_of


@dataclass(frozen=True)
class GenericTiling:
    """Work division and blocks of a result.

    Attributes:
        division: Part of each core.
        core: Extents of such a part.
        block: Extents of the block that is simultaneously in a scratchpad.
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
    for x in w.inlined_stages:
        s[x].compute_inline()
    where.put(s, output)
    # A resident pointwise result is computed in place.
    in_place = output in where.resident_tensors and w.total != output
    result = output if in_place else s.cache_write(output.op.outputs, where.scratchpad)[0]
    loop = traverse_parts(s, output, p.core, p.block, p.division.shares, where)
    part = None
    if w.total is not None:
        total = result if w.total == output else w.total
        part = _reduce(s, w, total, p, where, loop)
    if result != output and w.total != output:
        where.keep(s, result, output, loop, where.lane_of(output))
    for x in p.copied:
        _copy_inputs(s, x, w, result, where, loop, part, p)


SchedulePartial = Callable[[te.Schedule, te.Tensor, Placement], object]
"""Function that schedules partial results, whose first axis is the part of the reduction."""


def _lane_of(w: TiledComputation, where: Placement) -> te.IterVar | None:
    """Return the axis of the result along its lanes; None if each element has a separate stick."""
    dim = where.lane_of(w.output)
    return None if dim is None else w.output.op.axis[dim]


def _lane_in(x: te.Tensor, box: Box, w: TiledComputation, where: Placement) -> int | None:
    """Return the axis along the lanes of a tensor in the scratchpad.

    Return None if each element has a separate stick, because a copy cannot gather elements of
    several sticks.
    """
    is_result = x == w.total or x in w.output.op.outputs
    order = order_of(box, _lane_of(w, where))
    return order[-1] if order and where.lane_of(w.output if is_result else x) is not None else None


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
    lane_dim = _lane_in(w.total, w.boxes(p.block, p.depth)[w.total], w, where)
    *outer, lane = stage.transform_layout(where.near_layout(total, lane_dim))
    stage.compute_at(s[w.output], loop)
    pieces, steps = [], []
    for axis, step in zip(w.depth, remaining_reduction_loops(s, total), strict=True):
        if p.depth[axis] < number(axis.extent, total):
            piece, step = stage.split(step, factor=p.depth[axis])
            pieces.append(piece)
        steps.append(step)
    stage.reorder(*pieces, *outer, *steps, lane)
    if lane_dim is not None:
        stage.vectorize(lane)
    return pieces[-1] if pieces else None


def _copy_inputs(
    s: te.Schedule, x: te.Tensor, w: TiledComputation, result: te.Tensor, where: Placement,
    loop: te.IterVar,
    part: te.IterVar | None, p: GenericTiling,
) -> None:
    """Copy the inputs of a block, once per block or once per piece of the reduction."""
    block_readers = [y for y in w.readers(x) if part is None or is_beside(w, y)]
    others = [y for y in w.readers(x) if y not in block_readers]
    total = result if w.total == w.output else w.total
    box = w.boxes(p.block, p.depth)[x]
    for readers, stage, site in ((block_readers, w.output, loop), (others, total, part)):
        if not readers or stage is None or site is None:
            continue
        sources = [result if y == w.output else y for y in readers]
        copy = s.cache_read(x, where.scratchpad, sources)
        order, lane_dim = order_of(box, _lane_of(w, where)), _lane_in(x, box, w, where)
        if lane_dim is None or order == sorted(order):
            where.keep(s, copy, stage, site, lane_dim)
        else:
            # Read in memory order; the scratchpad has the permuted copy.
            s[copy].set_scope(where.scratchpad)
            s[copy].transform_layout(where.near_layout(copy, lane_dim), loops="logical")
            s[copy].compute_at(s[stage], site)
            traverse(s, copy, s[copy].op.axis, where, x)
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
    shared = cut.indivisible_extents(sizes_of(output), units)
    division = _choose_division(w, where, cut, shared)
    core = tuple(n * unit for n, unit in zip(division.part, shared, strict=True))
    budget = _GenericBudget(w, where, core, _tensors_to_copy(w, where))
    full: Sizes = {axis: number(axis.extent, output) for axis in w.depth}
    requested = blocks_as(output, cut, core, units)
    pieces = pieces_as(output, cut, w.depth, depth_units(w, where))
    full = {**full, **pieces}
    if not requested and budget.fits(core, full, doubled=False):
        return GenericTiling(division, core, core, full, False, budget.copied)
    min_depth: Sizes = {**dict.fromkeys(full, 1), **pieces}
    smallest = tuple(requested.get(axis, unit) for axis, unit in enumerate(units))
    if requested or pieces:
        budget.check(smallest, min_depth)
    elif not budget.fits(units, min_depth, doubled=False):
        units = smallest = (1,) * len(units)
        budget = budget.without_far()
    is_doubled = budget.fits(smallest, min_depth, doubled=True)
    depth = budget.deepest(smallest, min_depth, full, doubled=is_doubled)
    max_block = tuple(requested.get(axis, n) for axis, n in enumerate(core))
    block = replace(budget, core=max_block).longest(smallest, depth, doubled=is_doubled)
    depth = budget.deepest(block, min_depth, full, doubled=is_doubled)
    even = tuple(
        round_up(ceil_div(extent, ceil_div(extent, n)), unit)
        for n, extent, unit in zip(block, core, units, strict=True)
    )
    return GenericTiling(division, core, even, depth, is_doubled, budget.copied)


def outline(w: TiledComputation, where: Placement) -> DivisionPlan:
    """Return how a result is divided among cores.

    Raises:
        CapacityError: If a block does not fit the scratchpad.
        TargetError: If the target does not have the requested cores, or the parts exceed the
            address span of a core.
    """
    p = plan(w, where)
    full: Sizes = {axis: number(axis.extent, w.output) for axis in w.depth}
    read = _GenericBudget(w, where, p.core, p.copied).read(p.block, full)
    return DivisionPlan(p.division.count, p.core, p.division.cores * read)


def _tensors_to_copy(w: TiledComputation, where: Placement) -> tuple[te.Tensor, ...]:
    """Return the tensors to copy to the scratchpad.

    Resident tensors are read in place if their lanes match those of the result.
    """
    boxes = w.boxes((1,) * len(w.output.shape), dict.fromkeys(w.depth, 1))
    lane = _lane_of(w, where)
    orders = {x: order_of(boxes[x], lane) for x in where.resident_tensors if x in boxes}
    resident = [x for x, order in orders.items() if order == sorted(order)]
    return tuple(x for x in w.copied_inputs() if x not in resident)


def _choose_division(
    w: TiledComputation, where: Placement, cut: DivisionSpec, units: Sequence[int]
) -> WorkDivision:
    """Return the part of each core, as requested or chosen automatically.

    Raises:
        TargetError: If the target does not have the requested cores, or the parts exceed the
            address span of a core.
    """
    span = _GenericAddressSpan(w, reach_of((w.output, *w.copied_inputs()), where), units)
    division: WorkDivision
    if cut.cores:
        division = divide_as(w.output, cut, units, where.target)
    else:
        division = divide(pieces_of(sizes_of(w.output), units), where.target.grid, span.fits)
    span.check(division.part, where.target)
    return division


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
        results = [*([self.w.total] if self.w.total else []), *self.w.output.op.outputs]
        return {x: self._size(x, boxes[x]) for x in (*self.copied, *results)}

    def _size(self, x: te.Tensor, box: Box) -> int:
        """Return the bytes of a region of a tensor, in scratchpad order."""
        order = order_of(box, _lane_of(self.w, self.where))
        is_lone = _lane_in(x, box, self.w, self.where) is None
        return int(bytes_of(x, tuple(box[dim] for dim in order), self.where, is_lone=is_lone))

    def fits(self, block: Sequence[int], depth: Sizes, *, doubled: bool) -> bool:
        """Return whether a block fits, with the inputs of the next block if `doubled`."""
        sizes = self.sizes(block, depth)
        next_bytes = sum(sizes[x] for x in self.copied) if doubled else 0
        required: int = sum(sizes.values()) + next_bytes
        if required <= self.where.scratchpad_bytes:
            return True
        # The copies of double-buffered inputs outlive the block, so their memory is not reused.
        is_whole = not doubled and tuple(block) == self.core
        reused = self._in_place_bytes(block, depth, sizes) if is_whole else 0
        return bool(required - reused <= self.where.scratchpad_bytes)

    def _in_place_bytes(
        self, block: Sequence[int], depth: Sizes, sizes: Mapping[te.Tensor, int]
    ) -> int:
        """Return the bytes of the operand whose memory an elementwise result reuses; else 0.

        The operand is read last by the result, at the index of each element, and has the same
        scratchpad layout. The part of a core is the same on all cores, in whole sticks or tiles, so
        that one statement computes all of its elements.
        """
        w, where, output = self.w, self.where, self.w.output
        shape, units = sizes_of(output), where.units(output)
        is_uniform = all(
            n % extent == 0 and extent % unit == 0
            for n, extent, unit in zip(shape, self.core, units, strict=True)
        )
        if w.total == output or output in where.resident_tensors or not is_uniform:
            return 0
        boxes = w.boxes(block, depth)
        lane, operands = where.lane_of(output), [x for x in self.copied if self._dies_at_output(x)]
        return max((
            sizes[x] for x in (*operands, *([w.total] if w.total else []))
            if boxes[x] == boxes[output] and sizes[x] == sizes[output]
            and width_of(x) == width_of(output)
            and order_of(boxes[x], _lane_of(w, where)) == list(range(len(shape)))
            and _lane_in(x, boxes[x], w, where) == lane
        ), default=0)

    def _dies_at_output(self, x: te.Tensor) -> bool:
        """Return whether only the result and its inlined stages read the copy of an operand."""
        return all(is_beside(self.w, reader) for reader in self.w.readers(x))

    def check(self, block: Sequence[int], depth: Sizes) -> None:
        """Raise if a block does not fit the scratchpad.

        Raises:
            CapacityError: If the block does not fit.
        """
        required = sum(self.sizes(block, depth).values())
        if required > self.where.scratchpad_bytes:
            raise CapacityError(
                "{output}: a block of {block} requires {need} bytes of memory `{scratchpad}`, but "
                "each core of target {target} has {free_bytes}; request more tiles",
                output=self.w.output.name, block=" x ".join(map(str, block)), need=required,
                scratchpad=self.where.scratchpad, target=self.where.target.name,
                free_bytes=self.where.scratchpad_bytes,
            )

    def without_far(self) -> _GenericBudget:
        """Exclude gathered tensors from the copies if a single element does not fit the scratchpad.

        Raises:
            CapacityError: If a single element does not fit without these copies either.
        """
        min_depth, unit_block = dict.fromkeys(self.w.depth, 1), (1,) * len(self.core)
        sizes = self.sizes(unit_block, min_depth)
        required = sum(sizes.values())
        if required <= self.where.scratchpad_bytes:
            return self
        boxes = self.w.boxes(unit_block, min_depth)
        gather = [x for x in self.copied if any(s.extent > 1 and s.terms is None for s in boxes[x])]
        if gather:
            largest = max(gather, key=sizes.__getitem__)
            return replace(
                self, copied=tuple(x for x in self.copied if x != largest)
            ).without_far()
        listing = ", ".join(
            f"{x.name}: {x.dtype}, {size} bytes"
            for x, size in sorted(sizes.items(), key=lambda pair: -pair[1])[:3]
        )
        raise CapacityError(
            "{output}: a single element requires {need} bytes of memory `{scratchpad}`, but each "
            "core of target {target} has {free_bytes} ({listed}); read fewer inputs per element, "
            "or use a target with larger scratchpads",
            output=self.w.output.name, need=required, scratchpad=self.where.scratchpad,
            target=self.where.target.name, free_bytes=self.where.scratchpad_bytes, listed=listing,
        )

    def deepest(
        self, block: Sequence[int], min_depth: Sizes, full: Sizes, *, doubled: bool
    ) -> Sizes:
        """Return the largest piece of the reduction that fits, growing the last axes first."""
        if self.fits(block, full, doubled=doubled):
            return full
        depth = min_depth
        for axis in reversed([axis for axis, n in full.items() if n > min_depth[axis]]):
            depth = self._deeper(block, depth, axis, full[axis], doubled=doubled)
        return depth

    def _deeper(
        self, block: Sequence[int], depth: Sizes, axis: te.IterVar, limit: int, *, doubled: bool
    ) -> Sizes:
        """Return the largest piece along one reduction axis that fits."""

        def fits(steps: int) -> bool:
            return self.fits(block, {**depth, axis: steps}, doubled=doubled)

        steps = largest(limit, fits)
        # Make the pieces even without changing their number, unless even pieces start inside sticks
        # and thus need more space.
        even = ceil_div(limit, ceil_div(limit, steps))
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
        blocks = prod(ceil_div(extent, n) for n, extent in zip(block, self.core, strict=True))
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
        return not self.reach.layouts or self.reach.unaddressable_tensor(self._parts(part)) is None

    def _extents(self, part: Sequence[int]) -> list[int]:
        return [n * unit for n, unit in zip(part, self.units, strict=True)]

    def _parts(self, part: Sequence[int]) -> dict[te.Tensor, list[int]]:
        full = {axis: number(axis.extent, self.w.output) for axis in self.w.depth}
        boxes = self.w.boxes(self._extents(part), full)
        return {x: [span.extent for span in boxes[x]] for x in self.reach.layouts}


def _size(x: te.Tensor, box: Box) -> int:
    size: int = prod(span.extent for span in box) * width_of(x)
    return size
