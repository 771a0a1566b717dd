"""Tile and schedule contractions (GEMM, convolution) on scratchpad cores."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from math import gcd, lcm, prod

from tecomp import ScheduleError, Target, TargetError, te
from tecomp.schedules.analysis.matmul import Contraction, Sizes
from tecomp.schedules.analysis.stages import leads_to
from tecomp.schedules.common import ceil_div, round_up
from tecomp.schedules.intrinsics.accelerator import TileProduct, tile_product
from tecomp.schedules.scratchpad.footprint import Reach, reach_of
from tecomp.schedules.scratchpad.placement import Map, Placement, number, sizes_of
from tecomp.schedules.scratchpad.traversal import traverse, traverse_parts
from tecomp.schedules.scratchpad.work_division import (
    DivisionPlan,
    DivisionSpec,
    Shares,
    blocks_as,
    cheapest,
    divide_as,
    grow_block,
    pieces_as,
)

_ROWS = (("m", "k"), ("k", "n"), ("m", "n"))


@dataclass(frozen=True)
class ContractionTiling:
    """Work division and blocks of a contraction.

    Attributes:
        product: Operation of the matrix unit that computes a tile; None if vectors compute it.
        tile: Extents of a tile.
        core: Extents of the part of the result that one core computes.
        shares: Assignment of the parts to cores.
        block: Extents of the block of the part and of the reduction that is in the scratchpad at
            one time.
        is_doubled: Whether the next block of the factors is loaded while the current one is in use.
        fits: Whether a block fits the scratchpad.
        refusal: Error if the parts exceed the address span of a core; else None.
    """

    product: TileProduct | None
    tile: Sizes
    core: Sizes
    shares: Shares
    block: Sizes
    is_doubled: bool
    fits: bool
    refusal: TargetError | None = None

    @property
    def sums_memory(self) -> str | None:
        """Memory of the sums if the unit stores them in another memory than its operands."""
        return _sums_memory(self.product)


def plan(c: Contraction, output: te.Tensor, where: Placement) -> ContractionTiling:
    """Choose the tile of the unit, the part of each core, and the largest blocks that fit.

    Blocks grow step by step along the axis that saves the most reads from device memory. The depth
    grows last, because it saves only start-up costs.

    Raises:
        TargetError: If the target does not support the requested cores or blocks, or the requested
            parts exceed the address span of a core.
    """
    product, tile = _tile(c, where)
    full = {axis: number(axis.extent, c.total) for axis in tile}
    cut = where.cuts.get(output, DivisionSpec())
    units = [tile[axis] for axis in c.axes]
    if where.target.stick is not None:
        units = [lcm(unit, n) for unit, n in zip(units, where.units(output), strict=True)]
    span = _ContractionAddressSpan(c, output, reach_of((*_whole_factors(c), output), where), full)
    if cut.cores:
        core, shares = _part_as_asked(c, output, cut, where, units)
    else:
        shared = cut.indivisible_extents([full[axis] for axis in c.axes], units)
        pieces = dict(zip(c.axes, shared, strict=True))
        core, shares = _part_of_a_core(c, where, pieces, full, span)
    refusal = span.error(core, where.target)
    if refusal is not None and cut.cores:
        raise refusal
    budget = _ContractionBudget(c, output, where, product, tile)
    block = {axis: tile[axis] for axis in c.axes} | {axis: full[axis] for axis in c.taps}
    block[c.depth] = tile[c.depth]
    full_depth = round_up(max(full[c.depth], 1), tile[c.depth])
    limit = {**core, c.depth: full_depth}
    requested = blocks_as(output, cut, [core[axis] for axis in c.axes], units)
    fixed = {c.axes[axis]: extent for axis, extent in requested.items()}
    whole_taps = {axis: max(full[axis], 1) for axis in c.taps}
    fixed |= pieces_as(output, cut, c.total.op.reduce_axis, {**tile, **whole_taps})
    block, limit = {**block, **fixed}, {**limit, **fixed}
    for axes in (c.axes, (c.depth,)):
        grown = grow_block(block, limit, axes, budget.fits, lambda trial: budget.read(trial, core))
        block = dict(grown)
    lanes = {c.depth: where.lanes(c.total.dtype)} if product is None else {}
    for axis, bound in limit.items():
        # Make the blocks even without changing their number, or the number of sticks of the depth.
        count = ceil_div(bound, block[axis])
        unit = lcm(tile[axis], gcd(block[axis], lanes.get(axis, 1)))
        block[axis] = round_up(max(ceil_div(bound, count), 1), unit)
    fits = budget.fits(block)
    is_doubled = fits and block[c.depth] < full_depth
    return ContractionTiling(product, tile, core, shares, block, is_doubled, fits, refusal)


def outline(c: Contraction, output: te.Tensor, where: Placement) -> DivisionPlan:
    """Return how a contraction is divided among cores.

    Raises:
        ScheduleError: If the tiles exceed the scratchpad, or the parts exceed the address span of a
            core.
        TargetError: If the target does not support the requested cores or blocks.
    """
    p = plan(c, output, where)
    check_reach(p)
    if not p.fits:
        raise ScheduleError(
            "{output}: one tile of each operand does not fit in the scratchpad",
            kind="indivisible", output=output.name,
        )
    count = [ceil_div(number(axis.extent, c.total), p.core[axis]) for axis in c.axes]
    read = _ContractionBudget(c, output, where, p.product, p.tile).read(p.block, p.core)
    return DivisionPlan(tuple(count), tuple(p.core[axis] for axis in c.axes), prod(count) * read)


def check_reach(p: ContractionTiling) -> None:
    """Raise if the parts of a plan exceed the address span of a core.

    Raises:
        ScheduleError: If the parts exceed the address span of a core.
    """
    if p.refusal is not None:
        raise ScheduleError(
            "{reason}", kind="indivisible", reason=p.refusal.message,
        )


def _whole_factors(c: Contraction) -> list[te.Tensor]:
    """Return the factors as they are stored in device memory."""
    return [y for x in c.factors for y in (x.op.input_tensors if x in c.padded else [x])]


@dataclass(frozen=True)
class _ContractionAddressSpan:
    """Check of the address span that a core uses of each operand.

    Attributes:
        c: Contraction.
        output: Result.
        reach: Limit of the address span.
        extents: Extents of all axes.
    """

    c: Contraction
    output: te.Tensor
    reach: Reach
    extents: Sizes

    def fits(self, core: Sizes) -> bool:
        """Return whether a core can address all operands of a part."""
        return not self.reach.layouts or self.reach.unaddressable_tensor(self._parts(core)) is None

    def error(self, core: Sizes, target: Target) -> TargetError | None:
        """Return the error for parts that exceed the address span of a core; None if they fit."""
        if not self.reach.layouts:
            return None
        part = [core[axis] for axis in self.c.axes]
        error: TargetError | None = self.reach.error(self.output, part, self._parts(core), target)
        return error

    def _parts(self, core: Sizes) -> dict[te.Tensor, Sequence[int]]:
        read = self.c.read({**self.extents, **core})
        found: dict[te.Tensor, Sequence[int]] = {
            y: part
            for x, part in zip(self.c.factors, read, strict=True)
            for y in (x.op.input_tensors if x in self.c.padded else [x])
        }
        return {**found, self.output: [core[axis] for axis in self.c.axes]}


def _tile(c: Contraction, where: Placement) -> tuple[TileProduct | None, dict[te.IterVar, int]]:
    """Return the operation of the unit that computes a tile, or None, and the tile's extents."""
    product = None
    if c.is_product:
        product = tile_product(where.target, [x.dtype for x in c.factors], c.total.dtype)
    tile = dict.fromkeys((*c.axes, *c.total.op.reduce_axis), 1)
    if product is None:
        tile[c.columns] = where.lanes(c.total.dtype)
    else:
        tile |= {c.rows: product.m, c.columns: product.n, c.depth: product.k}
    return product, tile


def _sums_memory(product: TileProduct | None) -> str | None:
    if product is None or product.sums_memory == product.memory:
        return None
    return str(product.sums_memory)


@dataclass(frozen=True)
class _ContractionBudget:
    """Scratchpad bytes of blocks."""

    c: Contraction
    output: te.Tensor
    where: Placement
    product: TileProduct | None
    tile: Sizes

    def fits(self, block: Sizes) -> bool:
        """Return whether a block fits the scratchpad, and its sums the memory of the sums."""
        sums = _sums_memory(self.product)
        if sums is not None:
            usable = self.where.target.memory(sums).usable_bytes
            if usable is not None and self._bytes_of_sums(block, sums) > usable:
                return False
        return bool(self.need(block) <= self.where.scratchpad_bytes)

    def _bytes_of_sums(self, block: Sizes, memory: str | None = None) -> int:
        part = tuple(block[axis] for axis in self.c.axes)
        return self.bytes(self.c.total, part, 2, memory)

    def need(self, block: Sizes) -> int:
        """Return the bytes of a block: factors twice, sums, and the epilogue.

        The last factors are dead when the epilogue reads the sums, so that its operands and its
        result are in the memory of the factors. If the sums are in another memory, factors and
        epilogue are counted together.
        """
        shapes = zip(self.c.factors, self.c.read(block), strict=True)
        factors = [self.bytes(x, shape, k) for k, (x, shape) in enumerate(shapes)]
        transposed = sum(
            size for k, size in enumerate(factors)
            if is_transposed_and_padded(self.c, k, self.product)
        )
        part = tuple(block[axis] for axis in self.c.axes)
        is_sum_elsewhere = _sums_memory(self.product) is not None
        sums = 0 if is_sum_elsewhere else self._bytes_of_sums(block)
        finished = 0
        if self.output is not self.c.total:
            others = [x for x in self.output.op.input_tensors if x is not self.c.total]
            finished = sum(self.where.bytes_of_part(part[-len(x.shape):], x.dtype) for x in others)
        if self.output is not self.c.total or is_sum_elsewhere:
            finished += self.where.bytes_of_part(part, self.output.dtype)
        loaded = 2 * sum(factors) + transposed
        return int(loaded + finished if is_sum_elsewhere else sums + max(loaded, finished))

    def bytes(
        self, x: te.Tensor, shape: Sequence[int], operand: int, memory: str | None = None
    ) -> int:
        """Return the bytes of a block of an operand, in whole tiles.

        Args:
            x: Operand.
            shape: Extents of the block.
            operand: Number of the operand: 0 and 1 for the factors, 2 for the sums.
            memory: Memory. Default: the scratchpad.
        """
        padded = list(shape)
        if self.product is not None:
            sizes = {"m": self.product.m, "n": self.product.n, "k": self.product.k}
            for dim, letter in self.c.roles[operand].items():
                padded[dim] = round_up(max(padded[dim], 1), sizes[letter])
        if self.product is not None and is_tiled(self.where, self.product):
            # The first axis of a tile runs along the rows of a memory that has rows.
            name = memory or self.where.scratchpad
            rows = sizes[self.product.orders[operand][0][0]]
            has_rows = self.where.target.memory(name).rows is not None
            padded = [rows, prod(padded) // rows] if has_rows else [prod(padded)]
        else:
            order = matrix_order(self.c.roles[operand], operand, self.product, len(padded))
            return int(self.where.bytes_of_part([padded[dim] for dim in order], x.dtype))
        return int(self.where.bytes(padded, x.dtype, memory))

    def read(self, block: Sizes, core: Sizes) -> int:
        """Return the bytes of the factors that a core reads for its part, block by block."""
        times: int = prod(ceil_div(core[axis], block[axis]) for axis in self.c.axes)
        full = {**block, self.c.depth: number(self.c.depth.extent, self.c.total)}
        return times * _bytes_read(self.c, full)


def _bytes_read(c: Contraction, part: Sizes) -> int:
    pairs = zip(c.factors, c.read(part), strict=True)
    return sum(int(prod(shape) * x.dtype.bytes) for x, shape in pairs)


def _part_of_a_core(
    c: Contraction, where: Placement, piece: Sizes, full: Sizes, span: _ContractionAddressSpan
) -> tuple[Sizes, Shares]:
    """Divide tiles evenly among cores, with parts that read the least of the factors.

    Parts that fit the address span of a core are preferred; if no division has such parts, all
    divisions are considered.
    """
    pieces = [ceil_div(full[axis], piece[axis]) for axis in c.axes]

    def extents(part: Sequence[int]) -> Sizes:
        return {axis: n * piece[axis] for axis, n in zip(c.axes, part, strict=True)}

    def cost(part: Sequence[int]) -> tuple[bool, int, int]:
        core = extents(part)
        read = {**full, **{axis: min(n, full[axis]) for axis, n in core.items()}}
        return not span.fits(core), prod(part), _bytes_read(c, read)

    # Parts of the depth, of the rows and of the columns may share a grid axis.
    sharers = 3 if c.is_partial else 2
    found = cheapest(pieces, where.target.grid, cost, sharers)
    return extents(found.part), found.shares


def _part_as_asked(
    c: Contraction, output: te.Tensor, cut: DivisionSpec, where: Placement, units: Sequence[int]
) -> tuple[Sizes, Shares]:
    """Divide tiles among cores as requested."""
    found = divide_as(output, cut, units, where.target)
    part = {axis: n * unit for axis, n, unit in zip(c.axes, found.part, units, strict=True)}
    return part, found.shares


def is_tiled(where: Placement, product: TileProduct | None) -> bool:
    """Return whether scratchpads store tiles in the order of the unit, not of device memory."""
    return product is not None and where.target.tile is None


def matrix_order(
    roles: Mapping[int, str], operand: int, product: TileProduct | None, rank: int
) -> list[int]:
    """Return the dimensions of an operand, with its matrix dimensions last in multiplication order.

    The order is that of the matrix unit. Without a unit, vectors run along the columns of the
    second factor and of the result.
    """
    orders = _ROWS if product is None else product.orders
    letters = [text[0] for text in orders[operand]]
    last = sorted(roles, key=lambda dim: letters.index(roles[dim]))
    return [*(dim for dim in range(rank) if dim not in roles), *last]


def is_transposed_and_padded(c: Contraction, operand: int, product: TileProduct | None) -> bool:
    """Return whether a factor is zero-padded and permuted in the scratchpad.

    Computation runs along the lanes; only a copy can change which elements the lanes contain. The
    factor is therefore copied unpadded in the permuted order, and padded in the scratchpad.
    """
    x = c.factors[operand]
    rank = len(x.shape)
    order = matrix_order(c.roles[operand], operand, product, rank)
    return x in c.padded and order != list(range(rank))


def schedule(
    s: te.Schedule, output: te.Tensor, c: Contraction, where: Placement,
    stored: Collection[te.Tensor] | None = None,
) -> ContractionTiling:
    """Schedule a contraction with an optional element-wise epilogue.

    Args:
        s: Schedule, in which the inputs of the contraction have been placed.
        output: Result.
        c: Contraction.
        where: Placement of tensors in the memories of the target.
        stored: Tensors that are already in memory. Default: the tensors that are not computed.

    Returns:
        The plan of the blocks.

    Raises:
        ScheduleError: If the parts exceed the address span of a core.
    """
    p = plan(c, output, where)
    check_reach(p)
    where.put(s, output)
    readers = c.reads
    for x in readers:
        if x not in c.factors:
            s[x].compute_inline()
    stages = [s.cache_write(output, where.scratchpad)]
    if output is not c.total:
        stages.append(c.total)
    elif p.sums_memory is not None:
        stages.append(s.cache_write(stages[0], p.sums_memory))
    core, block = ([sizes[axis] for axis in c.axes] for sizes in (p.core, p.block))
    loop = traverse_parts(s, output, core, block, p.shares, where)
    for x in stages:
        s[x].compute_at(s[output], loop)
    sums = stages[-1]
    if output is not c.total:
        _finish(s, stages[0], c, where, (output, loop), stored)
    elif sums is not stages[0]:
        where.keep(s, stages[0], output, loop)
    if p.sums_memory is not None:
        s[sums].set_scope(p.sums_memory)
    part = _add_up(s, sums, c, p, where)
    for k, x in enumerate(c.factors):
        reader = sums if readers[k] is x else readers[k]
        _copy_block(s, x, reader, k, c, p, where, (sums, part))
    return p


def of_partial(c: Contraction, partial: te.Tensor, depth: Sequence[te.IterVar]) -> Contraction:
    """Return the contraction for partial results, whose first axis is the part of the depth.

    Args:
        c: Contraction.
        partial: Partial results of the contraction.
        depth: Reduction axes that are left to the partial results.
    """
    part, *axes = partial.op.axis
    old = (*c.axes, *c.total.op.reduce_axis)
    mapped = dict(zip(old, (*axes, *depth), strict=True))

    def read(sizes: Sizes) -> tuple[tuple[int, ...], tuple[int, ...]]:
        before = {axis: sizes[new] for axis, new in mapped.items()}
        first, second = c.read({**before, c.depth: before[c.depth] * sizes[part]})
        return first, second

    roles = {dim + 1: letter for dim, letter in c.roles[2].items()}
    return replace(
        c, total=partial, rows=mapped[c.rows], columns=mapped[c.columns], depth=mapped[c.depth],
        roles=(*c.roles[:2], roles), read=read, is_partial=True,
    )


def parts_of_depth(c: Contraction, output: te.Tensor, where: Placement) -> list[int]:
    """Return the possible numbers of parts of the depth, fewest first.

    The list is empty unless the parts otherwise exceed the address span of a core. Parts are whole
    tiles.
    """
    _, tile = _tile(c, where)
    extent, unit = number(c.depth.extent, c.total), tile[c.depth]
    is_large = bool(reach_of((*_whole_factors(c), output), where).layouts)
    if not is_large or extent % unit or plan(c, output, where).refusal is None:
        return []
    pieces: int = extent // unit
    return [n for n in range(2, min(pieces, where.target.cores) + 1) if pieces % n == 0]


def _copy_block(
    s: te.Schedule, x: te.Tensor, reader: te.Tensor, operand: int, c: Contraction,
    p: ContractionTiling,
    where: Placement, site: tuple[te.Tensor, te.IterVar],
) -> None:
    """Copy a block of a factor to the scratchpad, for each iteration of a loop of the sums."""
    copies = [x if x in c.padded else s.cache_read(x, where.scratchpad, [reader])]
    if is_transposed_and_padded(c, operand, p.product):
        copies += [s.cache_read(source, where.scratchpad, [x]) for source in x.op.input_tensors]
    sums, part = site
    for copy in copies:
        s[copy].set_scope(where.scratchpad)
        s[copy].transform_layout(_place(c, p, where, copy, operand), loops="logical", pad_value=0)
        # Read in memory order; a factor that is padded on the way has another shape than its
        # source.
        traverse(s, copy, s[copy].op.axis, where, None if x in c.padded else x)
        s[copy].compute_at(s[sums], part)
    if p.is_doubled:
        s[copies[-1]].double_buffer()


def _finish(
    s: te.Schedule, result: te.Tensor, c: Contraction, where: Placement,
    site: tuple[te.Tensor, te.IterVar], stored: Collection[te.Tensor] | None,
) -> None:
    """Compute the epilogue in the scratchpad, and copy its other inputs there."""
    for x, readers in _epilogue_inputs(result, c.total, stored).items():
        where.keep(s, s.cache_read(x, where.scratchpad, readers), *site)
    where.keep(s, result, *site)
    s[c.total].set_scope(where.scratchpad)


def _epilogue_inputs(
    result: te.Tensor, total: te.Tensor, stored: Collection[te.Tensor] | None
) -> dict[te.Tensor, list[te.Tensor]]:
    """Return the inputs of the epilogue other than the sum, each with its readers."""
    found: dict[te.Tensor, list[te.Tensor]] = {}
    worklist = [result]
    while worklist:
        reader = worklist.pop()
        for x in reader.op.input_tensors:
            is_computed = x not in stored if stored is not None else leads_to(x, total)
            if x != total and is_computed:
                worklist.append(x)
            elif x != total and reader not in found.get(x, ()):
                found.setdefault(x, []).append(reader)
    return found


def _add_up(
    s: te.Schedule, sums: te.Tensor, c: Contraction, p: ContractionTiling, where: Placement
) -> te.IterVar:
    """Accumulate the tiles of a block, one block of the depth after the other.

    Returns:
        The loop over blocks of the depth.
    """
    stage = s[sums]
    stage.transform_layout(_place(c, p, where, sums, 2), loops="logical")
    axes = dict(zip(c.axes, stage.op.axis, strict=True))
    axes |= dict(zip(c.total.op.reduce_axis, stage.op.reduce_axis, strict=True))
    part, depth = stage.split(axes[c.depth], factor=p.block[c.depth])
    rows, row = stage.split(axes[c.rows], factor=p.tile[c.rows])
    columns, column = stage.split(axes[c.columns], factor=p.tile[c.columns])
    steps, step = stage.split(depth, factor=p.tile[c.depth])
    others = [axes[axis] for axis in c.axes if axis not in (c.rows, c.columns)]
    taps = [axes[axis] for axis in c.taps]
    stage.reorder(part, *others, rows, columns, *taps, steps, row, step, column)
    if p.product is None:
        stage.vectorize(column)
    else:
        stage.reorder(row, column, step)
        stage.tensorize(row, p.product.intrinsic)
    return part


def _place(
    c: Contraction, p: ContractionTiling, where: Placement, x: te.Tensor, operand: int
) -> Map:
    """Return the scratchpad layout of an operand: tile by tile, in the order of the unit."""
    product, roles, shape = p.product, c.roles[operand], sizes_of(x)
    name = (p.sums_memory if operand == 2 else None) or where.scratchpad
    has_rows = where.target.memory(name).rows is not None
    if product is None or not is_tiled(where, product):
        dims = matrix_order(roles, operand, product, len(shape))
        layout = where.layout([shape[dim] for dim in dims], x.dtype)
        return lambda *index: layout(*(index[dim] for dim in dims))
    sizes = {"m": product.m, "n": product.n, "k": product.k}
    lanes = where.lanes(x.dtype)

    def place(*index: te.Expr) -> list[object]:
        index_of = {letter: index[dim] % sizes[letter] for dim, letter in roles.items()}
        tiles = [i // sizes[roles[dim]] if dim in roles else i for dim, i in enumerate(index)]
        order = [term for term in product.orders[operand] if term[0] in index_of]
        *others, last = [_part(term, index_of, sizes) for term in order]
        if has_rows:
            return [others[0], te.AXIS_SEPARATOR, *tiles, *others[1:], last]
        if where.target.stick is None or order[-1][1:] or sizes[order[-1]] <= lanes:
            return [*tiles, *others, last]
        return [*tiles, last // lanes, *others, last % lanes]

    return place


def _part(text: str, index_of: Mapping[str, te.Expr], sizes: Mapping[str, int]) -> te.Expr:
    """Return an axis of a tile, or a part of it, as descriptions write it: `k`, `k//2` or `k%2`."""
    letter, operator, number = text[0], text[1:2], text[1:].lstrip("/%")
    if operator == "/":
        # The remainder changes no value; it only defines the extent.
        return index_of[letter] // int(number) % (sizes[letter] // int(number))
    return index_of[letter] % int(number) if operator else index_of[letter]
