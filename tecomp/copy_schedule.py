"""Tile and schedule element copies (transposes, relayouts).

Source and result favour different traversal orders. A block therefore extends along every dimension
as far as its elements are within a number of bytes of each other in either memory, so that both
memories are accessed in whole cache lines and in runs of cache lines. One step moves a row, where
contiguous elements stay contiguous; a square tile, which is transposed in registers; or an element.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tecomp.compute.iter_var import IterVar
from tecomp.ir.arith.extents import ceil_div
from tecomp.machine.components import Core
from tecomp.scheduling.schedule import Stage

ROW_BLOCK_BYTES = 1024
"""Bytes of either memory that a block of rows spans: enough to open each memory page once."""
TILE_BLOCK_BYTES = 512
"""Bytes of a row of either memory in a block of tiles, so that the block stays in the cache."""
_LEAST_SIDE, _MOST_SIDE = 4, 16
"""Minimum and maximum side of a tile that is transposed in registers, in elements."""
_MAX_GATHER_STRIDE = 4
"""Maximum source stride, in elements, of a vector that is gathered."""
MAX_VECTORS = 4
"""Maximum number of vectors of a row that one statement moves."""
_UNROLLED = 8
"""Maximum number of statements into which a row is unrolled."""
_SHARES = 8
"""Iterations of the parallel loops per core that are enough for load balance."""
FAR = 1 << 40
"""Count or stride of a dimension that is unknown at compile time."""


@dataclass(frozen=True, slots=True)
class Dim:
    """Dimension of a copied box.

    Attributes:
        count: Number of steps.
        source: Stride in the source, in elements.
        result: Stride in the result, in elements.
    """

    count: int
    source: int
    result: int


@dataclass(frozen=True, slots=True)
class Moves:
    """Tiling and loop order of a copied box.

    Attributes:
        dims: Dimensions of the box.
        widths: Bytes of an element of the source and of the result.
        granules: Elements along each dimension that one step moves.
        order: Dimension numbers in loop order, outermost first.
        innermost: Numbers of the dimensions whose granules form the innermost loops, in this order:
            the last one is vectorized, the others are unrolled.
        block_bytes: Bytes of either memory that a block spans along each dimension.
        line_bytes: Bytes of either memory that the inner blocking level spans along each dimension;
            1 for no inner level.
    """

    dims: tuple[Dim, ...]
    widths: tuple[int, int]
    granules: tuple[int, ...]
    order: tuple[int, ...]
    innermost: tuple[int, ...]
    block_bytes: int
    line_bytes: int = Core.LINE_BYTES

    @property
    def is_transposed(self) -> bool:
        """Whether a step transposes a tile."""
        return len(self.innermost) == 2

    @property
    def is_in_rows(self) -> bool:
        """Whether a step moves a row: contiguous elements of equal width in both memories."""
        if self.is_transposed or self.widths[0] != self.widths[1]:
            return False
        return any(abs(self.dims[k].source) == 1 for k in self.innermost)

    def stretch(self, size: int) -> list[int]:
        """Return the number of granules along each dimension within `size` bytes of either memory.

        The memory with the smaller stride in bytes decides, and the number is rounded up.
        """
        found = []
        for dim, granule in zip(self.dims, self.granules, strict=True):
            steps = zip((dim.source, dim.result), self.widths, strict=True)
            span = max(ceil_div(size, max(abs(step) * width, 1)) for step, width in steps)
            found.append(ceil_div(min(dim.count, span), granule))
        return found


@dataclass(frozen=True, slots=True)
class _TileLoop:
    """Loop along dimension number `dim` with at most `size` iterations of `unit` granules."""

    dim: int
    unit: int
    size: int


def moves_of(
    dims: Sequence[Dim], widths: tuple[int, int], vector_bytes: int, *, by_source: bool = False
) -> Moves:
    """Choose the tiling and the loop order of a copied box.

    Args:
        dims: Dimensions of the box.
        widths: Bytes of an element of the source and of the result.
        vector_bytes: Bytes of a vector register.
        by_source: If True, traverse tiles along the rows of the source, because the result is
            in a cache. Default: False.

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
            # Fill the cache lines of the result one after the other. If the result is in a cache,
            # read the lines of the source one after the other instead.
            last = (row, column) if by_source else (column, row)
            return _moves(dims, widths, granules, last, (column, row), TILE_BLOCK_BYTES)
    if row is not None and abs(dims[row].source) <= _MAX_GATHER_STRIDE:
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
    """Return the dimension numbers by descending stride in the result, with `last` at the end."""
    others = [k for k in range(len(dims)) if k not in last]
    return (*sorted(others, key=lambda k: -dims[k].result), *last)


def _power_below(count: int) -> int:
    return 1 << count.bit_length() - 1


def _row_vector(count: int, lanes: int) -> int:
    """Return the number of elements that one statement of a row moves.

    The number is doubled up to `MAX_VECTORS` vectors while the overlap of the last statement with
    the one before moves at most an eighth of the row twice.
    """
    if count < lanes:
        return _power_below(count)
    limit = min(count, MAX_VECTORS * lanes)
    max_moved = ceil_div(count, lanes) * lanes + count // 8
    while 2 * lanes <= limit and ceil_div(count, 2 * lanes) * 2 * lanes <= max_moved:
        lanes *= 2
    return lanes


def _levels(moves: Moves) -> list[_TileLoop]:
    """Return the loops over blocks, over cache-line tiles in a block, and over granules."""
    dims, order = moves.dims, moves.order
    steps = [ceil_div(d.count, g) for d, g in zip(dims, moves.granules, strict=True)]
    line = moves.stretch(moves.line_bytes) if moves.line_bytes > 1 else [1] * len(dims)
    full_block = moves.stretch(moves.block_bytes)
    block = [ceil_div(n, unit) * unit for n, unit in zip(full_block, line, strict=True)]
    if moves.is_in_rows:
        # Rows are not split into blocks: each row is copied from end to end.
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
    """Merge adjacent loops along the same dimension."""
    found: list[_TileLoop] = []
    for level in levels:
        size = level.size
        if found and found[-1].dim == level.dim:
            outer = found.pop()
            size = outer.size * outer.unit // level.unit
        if all(n.dim != level.dim for n in found):
            # The outermost loop ends with the dimension, not at the end of a whole block.
            granules = ceil_div(moves.dims[level.dim].count, moves.granules[level.dim])
            size = ceil_div(granules, level.unit)
        found.append(_TileLoop(level.dim, level.unit, size))
    return found


def schedule_moves(
    stage: Stage, axes: Sequence[IterVar], moves: Moves, cores: int = 1
) -> int:
    """Schedule a stage that copies a box.

    Args:
        stage: Stage that copies.
        axes: Loops of the stage, one per dimension of the box.
        moves: Tiling and loop order.
        cores: Number of cores that share the outermost loops. Default: 1.

    Returns:
        Number of loops around the statements of one step.
    """
    remaining, inner = _granules(stage, axes, moves)
    levels = _levels(moves)
    outer: list[IterVar] = []
    for n, level in enumerate(levels):
        if any(other.dim == level.dim for other in levels[n + 1 :]):
            loop, remaining[level.dim] = stage.split(remaining[level.dim], level.unit)
        else:
            loop = remaining.pop(level.dim)
        outer.append(loop)
    innermost = [inner[k] for k in moves.innermost if k in inner]
    # The loops in `remaining` have a single iteration, so their position has no effect.
    stage.reorder(*remaining.values(), *outer, *innermost)
    shared = _num_parallel_loops(levels, moves, cores)
    if shared < len(outer) and _is_short_row(levels, moves):
        innermost = [outer.pop(), *innermost]
    if shared:
        stage.parallel(stage.fuse(*outer[:shared]))
    for loop in innermost:
        (stage.vectorize if loop is innermost[-1] else stage.unroll)(loop)
    return len(remaining) + len(outer) - max(shared - 1, 0)


def _granules(
    stage: Stage, axes: Sequence[IterVar], moves: Moves
) -> tuple[dict[int, IterVar], dict[int, IterVar]]:
    """Split each dimension into granules.

    Returns:
        Loop over granules for each dimension, and loop inside a granule for each dimension whose
        granules have more than one element.
    """
    outer, inner = dict(enumerate(axes)), {}
    for k, granule in enumerate(moves.granules):
        if granule > 1:
            extent = axes[k].extent
            # `shift_inwards` needs at least one whole granule.
            is_whole = isinstance(extent, int) and extent >= granule
            tail = "shift_inwards" if is_whole else "guard"
            outer[k], inner[k] = stage.split(axes[k], granule, tail=tail)
    return outer, inner


def _is_short_row(levels: Sequence[_TileLoop], moves: Moves) -> bool:
    """Return whether the innermost loop is along a row and has few enough steps to unroll."""
    if not levels or not moves.is_in_rows:
        return False
    return levels[-1].dim in moves.innermost and levels[-1].size <= _UNROLLED


def _num_parallel_loops(levels: Sequence[_TileLoop], moves: Moves, cores: int) -> int:
    """Return the number of outermost loops to fuse and run in parallel.

    The loops are taken until they give each core `_SHARES` iterations. Loops of unknown extent do
    not count, and no second loop along the same dimension is taken.
    """
    if cores < 2:
        return 0
    count, work = 0, 1
    for count, level in enumerate(levels):
        if work >= _SHARES * cores or any(n.dim == level.dim for n in levels[:count]):
            return count
        if moves.dims[level.dim].count < FAR:
            work *= level.size
    return len(levels)
