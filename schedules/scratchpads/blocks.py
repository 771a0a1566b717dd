"""How a sum of products is cut: what each core computes of it, and what it has at hand for that."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod

from tecomp import ScheduleError, te
from tecomp.schedules.intrinsics.units import TileProduct, tile_product
from tecomp.schedules.scratchpads.division import (
    Cut,
    Outline,
    Shares,
    blocks_as,
    cheapest,
    divide_as,
    pieces_as,
)
from tecomp.schedules.scratchpads.fitting import lengthened
from tecomp.schedules.scratchpads.placement import Placement, number
from tecomp.schedules.structure.contraction import Contraction, Sizes
from tecomp.schedules.structure.sizes import ceil_div, round_up

_ROWS = (("m", "k"), ("k", "n"), ("m", "n"))


@dataclass(frozen=True)
class Plan:
    """How a contraction is cut.

    Attributes:
        product: the operation of the unit that computes a tile; None where vectors do.
        tile: extents of what is computed at once.
        core: of the result, what one core computes.
        shares: which cores the parts along an axis are for.
        block: of that and of the sum, what is in its scratchpad at one time.
        is_doubled: whether the next part of the factors comes in while one is in use.
        fits: whether there is room for a block.
    """

    product: TileProduct | None
    tile: Sizes
    core: Sizes
    shares: Shares
    block: Sizes
    is_doubled: bool
    fits: bool


def plan(c: Contraction, output: te.Tensor, where: Placement) -> Plan:
    """The tile of the unit, the part of each core, and the largest blocks of it that fit.

    Each step makes the block longer along the axis that saves most of what is read from the memory
    of the device; the depth is made longer at last, since it saves nothing but starts.

    Raises:
        TargetError: the cores or blocks that somebody asks for are none of this machine.
    """
    product, tile = _tile(c, where)
    whole = {axis: number(axis.extent, c.total) for axis in tile}
    cut = where.cuts.get(output, Cut())
    if cut.cores:
        core, shares = _part_as_asked(c, output, cut, where, tile)
    else:
        shared = cut.pieces([whole[axis] for axis in c.axes], [tile[axis] for axis in c.axes])
        pieces = dict(zip(c.axes, shared, strict=True))
        core, shares = _part_of_a_core(c, where, pieces, whole)
    room = _Room(c, output, where, product, tile)
    block = {axis: tile[axis] for axis in c.axes} | {axis: whole[axis] for axis in c.taps}
    block[c.depth] = tile[c.depth]
    deep = round_up(max(whole[c.depth], 1), tile[c.depth])
    limit = {**core, c.depth: deep}
    units = [tile[axis] for axis in c.axes]
    asked = blocks_as(output, cut, [core[axis] for axis in c.axes], units)
    fixed = {c.axes[axis]: extent for axis, extent in asked.items()}
    whole_taps = {axis: max(whole[axis], 1) for axis in c.taps}
    fixed |= pieces_as(output, cut, c.total.op.reduce_axis, {**tile, **whole_taps})
    block, limit = {**block, **fixed}, {**limit, **fixed}
    for axes in (c.axes, (c.depth,)):
        block = dict(lengthened(block, limit, axes, room.fits, lambda more: room.read(more, core)))
    for axis, most in limit.items():
        # As many blocks, but even ones.
        count = ceil_div(most, block[axis])
        block[axis] = round_up(max(ceil_div(most, count), 1), tile[axis])
    fits = room.fits(block)
    is_doubled = fits and block[c.depth] < deep
    return Plan(product, tile, core, shares, block, is_doubled, fits)


def outline(c: Contraction, output: te.Tensor, where: Placement) -> Outline:
    """How a contraction is cut.

    Raises:
        ScheduleError: there is no room for tiles.
        TargetError: the cores or blocks that somebody asks for are none of this machine.
    """
    p = plan(c, output, where)
    if not p.fits:
        raise ScheduleError(
            f"{output.name}: there is no room for one tile of each operand", kind="not-divided"
        )
    count = [ceil_div(number(axis.extent, c.total), p.core[axis]) for axis in c.axes]
    read = _Room(c, output, where, p.product, p.tile).read(p.block, p.core)
    return Outline(tuple(count), tuple(p.core[axis] for axis in c.axes), prod(count) * read)


def _tile(c: Contraction, where: Placement) -> tuple[TileProduct | None, dict[te.IterVar, int]]:
    """The operation of the unit that computes a tile, if there is one, and the tile's extents."""
    product = None
    if c.is_product:
        product = tile_product(where.target, [x.dtype for x in c.factors], c.total.dtype)
    tile = dict.fromkeys((*c.axes, *c.total.op.reduce_axis), 1)
    if product is None:
        tile[c.columns] = where.lanes(c.total.dtype)
    else:
        tile |= {c.rows: product.m, c.columns: product.n, c.depth: product.k}
    return product, tile


@dataclass(frozen=True)
class _Room:
    """What blocks take of a scratchpad."""

    c: Contraction
    output: te.Tensor
    where: Placement
    product: TileProduct | None
    tile: Sizes

    def fits(self, block: Sizes) -> bool:
        """Whether there is room for a block."""
        return bool(self.need(block) <= self.where.room)

    def need(self, block: Sizes) -> int:
        """Bytes: the factors twice, the sums, and the result if that is made of them."""
        shapes = zip(self.c.factors, self.c.read(block), strict=True)
        factors = [self.bytes(x, shape, k) for k, (x, shape) in enumerate(shapes)]
        part = tuple(block[axis] for axis in self.c.axes)
        total: int = 2 * sum(factors) + self.bytes(self.c.total, part, 2)
        total += sum(
            size for k, size in enumerate(factors)
            if is_transposed_and_padded(self.c, k, self.product)
        )
        if self.output is not self.c.total:
            others = [x for x in self.output.op.input_tensors if x is not self.c.total]
            total += sum(self.where.bytes(part[-len(x.shape):], x.dtype) for x in others)
            total += self.where.bytes(part, self.output.dtype)
        return total

    def bytes(self, x: te.Tensor, shape: Sequence[int], operand: int) -> int:
        """What a part of an operand takes, in whole tiles."""
        whole = list(shape)
        if self.product is not None:
            sizes = {"m": self.product.m, "n": self.product.n, "k": self.product.k}
            for dim, letter in self.c.roles[operand].items():
                whole[dim] = round_up(max(whole[dim], 1), sizes[letter])
        if is_tiled(self.where, self.product):
            whole = [prod(whole)]
        else:
            order = matrix_order(self.c.roles[operand], operand, self.product, len(whole))
            whole = [whole[dim] for dim in order]
        size: int = self.where.bytes(whole, x.dtype)
        return size

    def read(self, block: Sizes, core: Sizes) -> int:
        """Bytes of the factors that a core reads for its part, block by block."""
        times: int = prod(ceil_div(core[axis], block[axis]) for axis in self.c.axes)
        whole = {**block, self.c.depth: number(self.c.depth.extent, self.c.total)}
        return times * _bytes_read(self.c, whole)


def _bytes_read(c: Contraction, part: Sizes) -> int:
    pairs = zip(c.factors, c.read(part), strict=True)
    return sum(int(prod(shape) * x.dtype.bytes) for x, shape in pairs)


def _part_of_a_core(
    c: Contraction, where: Placement, piece: Sizes, whole: Sizes
) -> tuple[Sizes, Shares]:
    """Tiles shared out evenly, in parts that read as little as possible of the factors."""
    pieces = [ceil_div(whole[axis], piece[axis]) for axis in c.axes]

    def extents(part: Sequence[int]) -> Sizes:
        return {axis: n * piece[axis] for axis, n in zip(c.axes, part, strict=True)}

    def cost(part: Sequence[int]) -> tuple[int, int]:
        read = {**whole, **{axis: min(n, whole[axis]) for axis, n in extents(part).items()}}
        return prod(part), _bytes_read(c, read)

    found = cheapest(pieces, where.target.grid, cost)
    return extents(found.part), found.shares


def _part_as_asked(
    c: Contraction, output: te.Tensor, cut: Cut, where: Placement, tile: Sizes
) -> tuple[Sizes, Shares]:
    """Tiles shared out as somebody asks for."""
    found = divide_as(output, cut, [tile[axis] for axis in c.axes], where.target)
    part = {axis: n * tile[axis] for axis, n in zip(c.axes, found.part, strict=True)}
    return part, found.shares


def is_tiled(where: Placement, product: TileProduct | None) -> bool:
    """Whether scratchpads have tiles in the order of the unit, not that of the whole memory."""
    return product is not None and where.target.tile is None


def matrix_order(
    roles: Mapping[int, str], operand: int, product: TileProduct | None, rank: int
) -> list[int]:
    """The dimensions of an operand, those of its matrix last, in the order that is multiplied.

    A unit says what that is. Vectors go along the columns of the second factor and of the result.
    """
    orders = _ROWS if product is None else product.orders
    letters = [each[0] for each in orders[operand]]
    last = sorted(roles, key=lambda dim: letters.index(roles[dim]))
    return [*(dim for dim in range(rank) if dim not in roles), *last]


def is_transposed_and_padded(c: Contraction, operand: int, product: TileProduct | None) -> bool:
    """Whether a factor has zeros around it and another order in memory than it is given in.

    What a machine computes goes along the lanes; only a copy may change what lies there. So the
    factor is brought as it is, in the other order, and gets its zeros there.
    """
    x = c.factors[operand]
    rank = len(x.shape)
    order = matrix_order(c.roles[operand], operand, product, rank)
    return x in c.padded and order != list(range(rank))
