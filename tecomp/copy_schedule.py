"""Tile and schedule element copies (transposes, relayouts).

Source and result want to be walked in different orders. A block takes as many steps along every
dimension as lie side by side within some bytes of either memory, so that both are touched in whole
cache lines, and in stretches of them. A step moves rows, where neighbours stay
neighbours; square tiles, which are transposed in registers; or else elements.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tecomp.compute.iter_var import IterVar
from tecomp.ir.arith.extents import ceil_div
from tecomp.scheduling.schedule import Stage

LINE_BYTES = 64
ROW_BLOCK_BYTES = 1024
"""Of either memory in a block where rows are moved: enough for its pages to be opened once."""
TILE_BLOCK_BYTES = 512
"""Of a row of either memory in a block of tiles: the block stays in the cache."""
_LEAST_SIDE, _MOST_SIDE = 4, 16
_MOST_STEP = 4
"""Elements between neighbours of a vector that is gathered."""
MOST_VECTORS = 4
"""Vectors of a row that are moved by one statement."""
_UNROLLED = 8
"""Statements that a row is written out as."""
_SHARES = 8
"""Iterations of shared loops for each core, so that none waits long for the last."""
FAR = 1 << 40
"""Steps, and how far one goes, where no number is known."""


@dataclass(frozen=True, slots=True)
class Dim:
    """`count` steps, each of so many elements in the source and in the result."""

    count: int
    source: int
    result: int


@dataclass(frozen=True, slots=True)
class Moves:
    """How the dimensions of a box are walked.

    Attributes:
        dims: the dimensions.
        widths: bytes of an element of the source, and of the result.
        granules: elements of each dimension that are moved at once.
        order: of the loops, outermost first.
        innermost: dimensions whose granules are written out and a vector, in this order.
        block_bytes: what a block has of either memory, along each dimension.
        line_bytes: what is inside of that touched before anything else; 1 for nothing.
    """

    dims: tuple[Dim, ...]
    widths: tuple[int, int]
    granules: tuple[int, ...]
    order: tuple[int, ...]
    innermost: tuple[int, ...]
    block_bytes: int
    line_bytes: int = LINE_BYTES

    @property
    def is_transposed(self) -> bool:
        """Whether tiles are transposed."""
        return len(self.innermost) == 2

    @property
    def is_in_rows(self) -> bool:
        """Whether neighbours of the source are neighbours of the result."""
        if self.is_transposed or self.widths[0] != self.widths[1]:
            return False
        return any(abs(self.dims[k].source) == 1 for k in self.innermost)

    def stretch(self, size: int) -> list[int]:
        """Along each dimension the granules that stay within `size` bytes of either memory."""
        found = []
        for dim, granule in zip(self.dims, self.granules, strict=True):
            steps = zip((dim.source, dim.result), self.widths, strict=True)
            near = max(ceil_div(size, max(abs(step) * width, 1)) for step, width in steps)
            found.append(ceil_div(min(dim.count, near), granule))
        return found


@dataclass(frozen=True, slots=True)
class _TileLoop:
    """A loop along dimension number `dim`: at most `size` iterations of `unit` granules."""

    dim: int
    unit: int
    size: int


def moves_of(
    dims: Sequence[Dim], widths: tuple[int, int], vector_bytes: int, *, by_source: bool = False
) -> Moves:
    """How a box is copied.

    Args:
        dims: its dimensions.
        widths: bytes of an element of the source, and of the result.
        vector_bytes: of a register.
        by_source: whether tiles are read line by line of the source, as the result is in a cache.

    >>> moves_of([Dim(64, 1, 100), Dim(100, 64, 1)], (4, 4), 32).granules
    (8, 8)
    """
    row = next((k for k, d in enumerate(dims) if d.result == 1), None)
    column = next((k for k, d in enumerate(dims) if d.source == 1), None)
    lanes = max(vector_bytes // widths[1], 1)
    granules = dict.fromkeys(range(len(dims)), 1)
    if row is not None and abs(dims[row].source) == 1:
        granules[row] = _row_vector(dims[row].count, lanes)
        return _moves(dims, widths, granules, (row,), (row,), ROW_BLOCK_BYTES)
    if row is not None and column is not None:
        side = _power_below(min(lanes, dims[row].count, dims[column].count, _MOST_SIDE))
        if side >= _LEAST_SIDE:
            granules |= {row: side, column: side}
            # Lines of the result are filled one by one; if it is in a cache, so are others read.
            last = (row, column) if by_source else (column, row)
            return _moves(dims, widths, granules, last, (column, row), TILE_BLOCK_BYTES)
    if row is not None and abs(dims[row].source) <= _MOST_STEP:
        granules[row] = _power_below(min(lanes, dims[row].count))
    innermost = () if row is None else (row,)
    return _moves(dims, widths, granules, (), innermost, TILE_BLOCK_BYTES)


def _moves(
    dims: Sequence[Dim], widths: tuple[int, int], granules: dict[int, int], last: tuple[int, ...],
    innermost: tuple[int, ...], block_bytes: int,
) -> Moves:
    sizes = tuple(granules[k] for k in range(len(dims)))
    return Moves(tuple(dims), widths, sizes, by_result(dims, *last), innermost, block_bytes)


def by_result(dims: Sequence[Dim], *last: int) -> tuple[int, ...]:
    """Numbers of the dimensions, the greatest steps in the result first."""
    others = [k for k in range(len(dims)) if k not in last]
    return (*sorted(others, key=lambda k: -dims[k].result), *last)


def _power_below(count: int) -> int:
    return 1 << count.bit_length() - 1


def _row_vector(count: int, lanes: int) -> int:
    """Elements of a statement of a row: some vectors, as long as few are moved twice."""
    if count < lanes:
        return _power_below(count)
    most = min(count, MOST_VECTORS * lanes)
    moved = ceil_div(count, lanes) * lanes + count // 8
    while 2 * lanes <= most and ceil_div(count, 2 * lanes) * 2 * lanes <= moved:
        lanes *= 2
    return lanes


def _levels(moves: Moves) -> list[_TileLoop]:
    """The loops: over blocks, over what fills whole lines of both memories, and inside that."""
    dims, order = moves.dims, moves.order
    steps = [ceil_div(d.count, g) for d, g in zip(dims, moves.granules, strict=True)]
    line = moves.stretch(moves.line_bytes) if moves.line_bytes > 1 else [1] * len(dims)
    whole = moves.stretch(moves.block_bytes)
    block = [ceil_div(n, unit) * unit for n, unit in zip(whole, line, strict=True)]
    if moves.is_in_rows:
        # A row is walked as a whole.
        (row,) = moves.innermost
        block[row] = line[row] = steps[row]
    found: list[_TileLoop] = []
    for sizes in (block, line):
        found += [
            _TileLoop(k, sizes[k], ceil_div(steps[k], sizes[k]))
            for k in order if sizes[k] < steps[k]
        ]
        steps = [min(a, b) for a, b in zip(steps, sizes, strict=True)]
    found += [_TileLoop(k, 1, steps[k]) for k in order if steps[k] > 1]
    return _without_needless(found, moves)


def _without_needless(levels: Sequence[_TileLoop], moves: Moves) -> list[_TileLoop]:
    """The loops, those along one dimension with nothing between them taken together."""
    found: list[_TileLoop] = []
    for level in levels:
        size = level.size
        if found and found[-1].dim == level.dim:
            outer = found.pop()
            size = outer.size * outer.unit // level.unit
        if all(n.dim != level.dim for n in found):
            # The outermost ends where the dimension does, and not where a block does.
            granules = ceil_div(moves.dims[level.dim].count, moves.granules[level.dim])
            size = ceil_div(granules, level.unit)
        found.append(_TileLoop(level.dim, level.unit, size))
    return found


def schedule_moves(
    stage: Stage, axes: Sequence[IterVar], moves: Moves, cores: int = 1
) -> int:
    """Give a stage the loops of a copy.

    Args:
        stage: that copies.
        axes: its loops, one for each dimension.
        moves: how they are walked.
        cores: how many share the outermost loops.

    Returns:
        How many loops there are around what is moved at once.
    """
    left, inner = _granules(stage, axes, moves)
    levels = _levels(moves)
    around: list[IterVar] = []
    for n, level in enumerate(levels):
        if any(other.dim == level.dim for other in levels[n + 1 :]):
            loop, left[level.dim] = stage.split(left[level.dim], level.unit)
        else:
            loop = left.pop(level.dim)
        around.append(loop)
    innermost = [inner[k] for k in moves.innermost if k in inner]
    # Loops of one iteration stand first, and are none.
    stage.reorder(*left.values(), *around, *innermost)
    shared = _shared(levels, moves, cores)
    if shared < len(around) and _is_short_row(levels, moves):
        innermost = [around.pop(), *innermost]
    if shared:
        stage.parallel(stage.fuse(*around[:shared]))
    for loop in innermost:
        (stage.vectorize if loop is innermost[-1] else stage.unroll)(loop)
    return len(left) + len(around) - max(shared - 1, 0)


def _granules(
    stage: Stage, axes: Sequence[IterVar], moves: Moves
) -> tuple[dict[int, IterVar], dict[int, IterVar]]:
    """For each dimension the loop over granules, and for those of several elements that inside."""
    outer, inner = dict(enumerate(axes)), {}
    for k, granule in enumerate(moves.granules):
        if granule > 1:
            extent = axes[k].extent
            # Where there is no element at all, no granule is whole.
            is_whole = isinstance(extent, int) and extent >= granule
            tail = "shift_inwards" if is_whole else "guard"
            outer[k], inner[k] = stage.split(axes[k], granule, tail=tail)
    return outer, inner


def _is_short_row(levels: Sequence[_TileLoop], moves: Moves) -> bool:
    """Whether the innermost loop is along a row, and few statements."""
    if not levels or not moves.is_in_rows:
        return False
    return levels[-1].dim in moves.innermost and levels[-1].size <= _UNROLLED


def _shared(levels: Sequence[_TileLoop], moves: Moves, cores: int) -> int:
    """How many of the outermost loops the cores share: enough for all to have work."""
    if cores < 2:
        return 0
    count, work = 0, 1
    for count, level in enumerate(levels):
        if work >= _SHARES * cores or any(n.dim == level.dim for n in levels[:count]):
            return count
        if moves.dims[level.dim].count < FAR:
            work *= level.size
    return len(levels)
