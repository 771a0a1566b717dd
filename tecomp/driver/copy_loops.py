"""Loops that copy a box of elements, with a step for each dimension in both memories.

Source and result want to be walked in different orders. A block takes as many steps along every
dimension as lie side by side within some bytes of either memory, so that both are touched in whole
cache lines, and in stretches of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import prod

from tecomp.driver.copy_moves import (
    Dim,
    Memories,
    merge_neighbours,
    move_row,
    move_square,
    move_vector,
    plus,
    times,
)
from tecomp.ir.algebra.extents import ceil_div, round_up
from tecomp.ir.language.dtype import INT64
from tecomp.ir.language.expr import BinOp, BufferLoad, Const, Expr, Var, binary, index_value
from tecomp.ir.language.stmt import Allocate, Buffer, For, ForKind, Let, Prefetch, Stmt, seq

LINE_BYTES = 64
ROW_BLOCK_BYTES = 1024
"""Of either memory in a block where rows are moved: enough for its pages to be opened once."""
SQUARE_BLOCK_BYTES = 256
"""Of a row of either memory in a block where squares are turned: the block stays in the cache."""
_LEAST_SIDE, _MOST_SIDE = 4, 16
_TILE_ROW_BYTES, _TILE_COLUMN_BYTES = 1024, 512
"""Of a row of the result, and of one of the source, in a tile that is turned in the cache."""
_ALIAS_BYTES = 4096
"""Rows that are a multiple of it apart share their places in the first cache."""
_LEAST_STREAM_BYTES = 1024
"""Of the result in one stretch, where it is stored past the caches."""
_MOST_STEP = 4
_WIDEST = 8
"""Bytes of the widest integer."""

Move = Callable[[Expr, Expr], Stmt]


@dataclass(frozen=True, slots=True)
class CopiedBox:
    """A box of elements that is copied.

    Attributes:
        dims: its dimensions.
        source: offset of the first element in the source.
        result: the same in the result.
        memories: both.
    """

    dims: tuple[Dim, ...]
    source: Expr
    result: Expr
    memories: Memories


@dataclass(frozen=True, slots=True)
class _TileLoop:
    """A loop along dimension number `dim`: at most `size` iterations of `unit` granules."""

    dim: int
    unit: int
    size: int


@dataclass(frozen=True, slots=True)
class _Plan:
    """What is moved at once, and what of it makes a block.

    Attributes:
        box: the box, in elements that are moved as one.
        granules: elements of a move along each dimension.
        order: of the loops; the dimensions.
        block_bytes: see `_blocks`.
        move: from offsets to a statement.
        is_staged: whether that is made of copies of boxes.
    """

    box: CopiedBox
    granules: tuple[int, ...]
    order: tuple[int, ...]
    block_bytes: int
    move: Move
    is_staged: bool = False


def copy_box(box: CopiedBox, threads: int = 1) -> Stmt:
    """Statements that copy a box, with the outer loops shared by so many threads."""
    plan = _plan(_to_memory(_neighbours_as_one(_forwards(box))))
    stmt = _nest(plan, _levels(plan), threads)
    return stmt if plan.is_staged else plan.box.memories.declared(stmt)


def _to_memory(box: CopiedBox) -> CopiedBox:
    """The box without stores past the caches where these would be short of whole lines.

    Each stretch of the result may begin and end inside a line, which is then written twice.
    """
    if not box.memories.is_streamed:
        return box
    run = 1
    for dim in sorted(box.dims, key=lambda d: d.result):
        if dim.result == run:
            run *= dim.count
    is_long = run * box.memories.width >= _LEAST_STREAM_BYTES
    return box if is_long else replace(box, memories=box.memories.through_caches())


def _forwards(box: CopiedBox) -> CopiedBox:
    """Dimensions that are one in both memories taken together; all go forwards in the result."""
    source, result = box.source, box.result
    found: list[Dim] = []
    for dim in box.dims:
        if dim.count > 1 and dim.result < 0:
            source = plus(source, index_value(dim.source * (dim.count - 1)))
            result = plus(result, index_value(dim.result * (dim.count - 1)))
            dim = Dim(dim.count, -dim.source, -dim.result)
        if dim.count > 1:
            found.append(dim)
    found.sort(key=lambda d: (-d.result, -abs(d.source)))
    k = 0
    while k + 1 < len(found):
        a, b = found[k], found[k + 1]
        if (a.source, a.result) == (b.count * b.source, b.count * b.result):
            found[k : k + 2] = [Dim(a.count * b.count, b.source, b.result)]
            k = max(k - 1, 0)
        else:
            k += 1
    return CopiedBox(tuple(found), source, result, box.memories)


def _neighbours_as_one(box: CopiedBox) -> CopiedBox:
    """Short rows as elements, if there is an integer so wide and all steps are whole ones."""
    row = next((d for d in box.dims if (d.source, d.result) == (1, 1)), None)
    if row is None or row.count * box.memories.width not in (2, 4, _WIDEST):
        return box
    rest = [d for d in box.dims if d is not row]
    if isinstance(box.memories.source, int):
        return box
    numbers = [n for d in rest for n in (d.source, d.result)]
    numbers += [int(e.value) if isinstance(e, Const) else 1 for e in (box.source, box.result)]
    if not rest or any(n % row.count for n in numbers):
        return box
    dims = tuple(Dim(d.count, d.source // row.count, d.result // row.count) for d in rest)
    source, result = (_divided(e, row.count) for e in (box.source, box.result))
    return CopiedBox(dims, source, result, box.memories.wider(row.count))


def _divided(value: Expr, divisor: int) -> Expr:
    assert isinstance(value, Const)
    return index_value(int(value.value) // divisor)


def _plan(box: CopiedBox) -> _Plan:
    dims = box.dims
    row = next((k for k, d in enumerate(dims) if d.result == 1), None)
    if row is not None and abs(dims[row].source) == 1:
        return _rows(box, row)
    column = next((k for k, d in enumerate(dims) if d.source == 1), None)
    if row is not None and column is not None:
        merging = _merging(box, row, column)
        if merging is not None:
            return merging
        side = min(box.memories.lanes, dims[row].count, dims[column].count, _MOST_SIDE)
        side = 1 << side.bit_length() - 1
        if side >= _LEAST_SIDE:
            return _squares(box, row, column, side)
    return _elements(box, row)


def _by_result(dims: Sequence[Dim], *last: int) -> tuple[int, ...]:
    """Numbers of the dimensions, the greatest steps in the result first."""
    others = [k for k in range(len(dims)) if k not in last]
    return (*sorted(others, key=lambda k: -dims[k].result), *last)


def _rows(box: CopiedBox, row: int) -> _Plan:
    granules = tuple(d.count if k == row else 1 for k, d in enumerate(box.dims))
    move = partial(_moved_row, box, row)
    return _Plan(box, granules, _by_result(box.dims, row), ROW_BLOCK_BYTES, move)


def _moved_row(box: CopiedBox, row: int, source: Expr, result: Expr) -> Stmt:
    return move_row(box.dims[row], source, result, box.memories)


def _squares(box: CopiedBox, row: int, column: int, side: int) -> _Plan:
    if box.memories.is_streamed:
        return _staged(box, row, column)
    granules = tuple(side if k in (row, column) else 1 for k in range(len(box.dims)))

    is_tile = box.memories.result.scope == "local"

    def move(source: Expr, result: Expr) -> Stmt:
        moved = move_square(box.dims[row], box.dims[column], side, source, result, box.memories)
        return seq(*_requests(box, row, side, source), moved) if is_tile else moved

    # Lines of the result are filled one by one; if that is a tile, lines of the source are read so.
    last = (row, column) if is_tile else (column, row)
    block_bytes = _TILE_COLUMN_BYTES if is_tile else SQUARE_BLOCK_BYTES
    return _Plan(box, granules, _by_result(box.dims, *last), block_bytes, move)


def _requests(box: CopiedBox, row: int, side: int, source: Expr) -> Iterator[Stmt]:
    """Asks for the lines of the square below: no cache fetches ahead from one row to another.

    Where rows share their places in the first cache, these would drive out each other.
    """
    step, memory = box.dims[row].source, box.memories.source
    if not isinstance(memory, Buffer) or step < 0 or step * memory.dtype.bytes % _ALIAS_BYTES == 0:
        return
    (places,) = memory.shape
    assert isinstance(places, int)
    last = index_value(places - 1 - (side - 1) * step)
    below = binary(BinOp.MIN, plus(source, index_value(side * step)), last)
    for k in range(side):
        yield Prefetch(BufferLoad(memory, (plus(below, index_value(k * step)),)))


def _staged(box: CopiedBox, row: int, column: int) -> _Plan:
    """Squares turned into a tile that stays in the cache, and its rows stored past the caches.

    Lines of the result that are filled by one square after the other would leave half full.
    """
    memories = box.memories
    along, across = box.dims[row], box.dims[column]
    rows = min(along.count, _TILE_ROW_BYTES // memories.width)
    columns = min(
        across.count, _TILE_COLUMN_BYTES // memories.width,
        max(memories.tile_bytes // _TILE_ROW_BYTES, 1),
    )
    tile = Buffer("tile", (rows * columns,), memories.result.dtype, "local")
    granules = {row: rows, column: columns}

    def move(source: Expr, result: Expr) -> Stmt:
        turned = (Dim(rows, along.source, 1), Dim(columns, across.source, rows))
        stored = (Dim(rows, 1, 1), Dim(columns, rows, across.result))
        parts = (
            CopiedBox(turned, source, index_value(0), replace(memories, result=tile)),
            CopiedBox(stored, index_value(0), result, replace(memories, source=tile)),
        )
        return Allocate(tile, seq(*map(copy_box, parts)))

    each = tuple(granules.get(k, 1) for k in range(len(box.dims)))
    return _Plan(box, each, _by_result(box.dims), 1, move, is_staged=True)


def _merging(box: CopiedBox, row: int, column: int) -> _Plan | None:
    """Rows of few elements that are together one integer."""
    count = box.dims[row].count
    dims = [d for k, d in enumerate(box.dims) if k != row]
    steps = [d.result for d in dims]
    steps.append(int(box.result.value) if isinstance(box.result, Const) else 1)
    is_short = count in (2, 4, _WIDEST) and count * box.memories.width <= _WIDEST
    if not is_short or box.dims[column].result != count or any(n % count for n in steps):
        return None
    wide = box.memories.wider(count)
    memories = replace(box.memories, result=wide.result)
    dims = [Dim(d.count, d.source, d.result // count) for d in dims]
    along = column - (row < column)
    size = 1 << min(wide.lanes, dims[along].count).bit_length() - 1
    granules = tuple(size if k == along else 1 for k in range(len(dims)))

    def move(source: Expr, result: Expr) -> Stmt:
        return merge_neighbours(box.dims[row], dims[along], size, source, result, memories)

    short = CopiedBox(tuple(dims), box.source, _divided(box.result, count), memories)
    return _Plan(short, granules, _by_result(dims, along), ROW_BLOCK_BYTES, move)


def _elements(box: CopiedBox, row: int | None) -> _Plan:
    """One element after the other; vectors if they are near each other in the source."""
    box = replace(box, memories=box.memories.through_caches())
    granules = [1] * len(box.dims)
    if row is not None and abs(box.dims[row].source) <= _MOST_STEP:
        size = min(box.memories.lanes, box.dims[row].count)
        granules[row] = 1 << size.bit_length() - 1

    def move(source: Expr, result: Expr) -> Stmt:
        dim = Dim(1, 1, 1) if row is None else box.dims[row]
        size = 1 if row is None else granules[row]
        return move_vector(dim, size, source, result, box.memories)

    return _Plan(box, tuple(granules), _by_result(box.dims), SQUARE_BLOCK_BYTES, move)


def _levels(plan: _Plan) -> list[_TileLoop]:
    """The loops: over blocks, over what fills whole lines of both memories, and inside that."""
    dims, order = plan.box.dims, plan.order
    steps = [ceil_div(d.count, g) for d, g in zip(dims, plan.granules, strict=True)]
    line = [1] * len(dims) if plan.box.memories.is_streamed else _block(plan, LINE_BYTES)
    whole = _block(plan, plan.block_bytes)
    block = [round_up(n, unit) for n, unit in zip(whole, line, strict=True)]
    found: list[_TileLoop] = []
    for sizes in (block, line):
        found += [
            _TileLoop(k, sizes[k], ceil_div(steps[k], sizes[k]))
            for k in order if sizes[k] < steps[k]
        ]
        steps = [min(a, b) for a, b in zip(steps, sizes, strict=True)]
    found += [_TileLoop(k, 1, steps[k]) for k in order if steps[k] > 1]
    return _without_needless(found, plan)


def _without_needless(levels: Sequence[_TileLoop], plan: _Plan) -> list[_TileLoop]:
    """The loops, those along one dimension with nothing between them taken together."""
    found: list[_TileLoop] = []
    for level in levels:
        size = level.size
        if found and found[-1].dim == level.dim:
            outer = found.pop()
            size = outer.size * outer.unit // level.unit
        if all(n.dim != level.dim for n in found):
            # The outermost ends where the dimension does, and not where a block does.
            granules = ceil_div(plan.box.dims[level.dim].count, plan.granules[level.dim])
            size = ceil_div(granules, level.unit)
        found.append(_TileLoop(level.dim, level.unit, size))
    return found


def _block(plan: _Plan, size: int) -> list[int]:
    """Along each dimension the granules that stay within `size` bytes of either memory."""
    found = []
    memories = plan.box.memories
    source = memories.source
    read = memories.width if isinstance(source, int) else source.dtype.bytes
    for dim, granule in zip(plan.box.dims, plan.granules, strict=True):
        near = [
            ceil_div(size, max(abs(stride) * width, 1))
            for stride, width in ((dim.source, read), (dim.result, memories.width))
        ]
        found.append(ceil_div(min(dim.count, max(near)), granule))
    return found


def _nest(plan: _Plan, levels: Sequence[_TileLoop], threads: int) -> Stmt:
    """The loops; an index stops before the end where a granule would go beyond it."""
    dims, box = plan.box.dims, plan.box
    at: list[Expr] = [index_value(0)] * len(dims)
    source, result = box.source, box.result
    heads: list[tuple[Var, Expr, list[tuple[Var, Expr]]]] = []
    for k, level in enumerate(levels):
        dim, granule = dims[level.dim], plan.granules[level.dim]
        around = [n for n in levels[:k] if n.dim == level.dim]
        extent = _extent(level, around, ceil_div(dim.count, granule), at[level.dim])
        var = Var(f"n{k}", INT64)
        at[level.dim] = plus(at[level.dim], var, level.unit)
        made: list[tuple[Var, Expr]] = []
        if all(n.dim != level.dim for n in levels[k + 1 :]):
            start = times(at[level.dim], granule)
            if dim.count % granule:
                start = binary(BinOp.MIN, start, index_value(dim.count - granule))
            made += [
                (Var(f"s{k}", INT64), plus(source, start, dim.source)),
                (Var(f"r{k}", INT64), plus(result, start, dim.result)),
            ]
            source, result = made[0][0], made[1][0]
        heads.append((var, extent, made))
    shared = _shared(levels, threads)
    stmt = plan.move(source, result)
    for k, (var, extent, made) in reversed(list(enumerate(heads))):
        for name, value in reversed(made):
            stmt = Let(name, value, stmt)
        if k >= shared:
            stmt = For(var, index_value(0), extent, ForKind.SERIAL, stmt)
    return _parallel([(heads[k][0], levels[k].size) for k in range(shared)], stmt)


def _extent(level: _TileLoop, around: Sequence[_TileLoop], steps: int, at: Expr) -> Expr:
    """Iterations of a loop: those of a whole block, or what is left of the dimension."""
    if not around or steps % around[-1].unit == 0:
        return index_value(level.size)
    left = binary(BinOp.SUB, index_value(steps), at)
    return binary(BinOp.MIN, index_value(level.size), index_value(ceil_div(left, level.unit)))


def _shared(levels: Sequence[_TileLoop], threads: int) -> int:
    """How many of the outermost loops the threads share: enough for all to have work."""
    if threads < 2:
        return 0
    count = 0
    while count < len(levels) and prod(n.size for n in levels[:count]) < 8 * threads:
        if any(n.dim == levels[count].dim for n in levels[:count]):
            break
        count += 1
    return count


def _parallel(loops: Sequence[tuple[Var, int]], body: Stmt) -> Stmt:
    """The iterations of some loops as those of one, in parallel."""
    if not loops:
        return body
    n = Var("n", INT64)
    inner = 1
    for var, size in reversed(loops):
        value: Expr = n if inner == 1 else binary(BinOp.FLOORDIV, n, index_value(inner))
        if var is not loops[0][0]:
            value = binary(BinOp.MOD, value, index_value(size))
        body = Let(var, value, body)
        inner *= size
    return For(n, index_value(0), index_value(inner), ForKind.PARALLEL, body)
