"""Copy one box of elements between two memories."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tecomp.codegen.memory.vector_access import STREAM
from tecomp.compute.define import compute, placeholder
from tecomp.compute.iter_var import IterVar
from tecomp.copy_schedule import (
    MAX_VECTORS,
    ROW_BLOCK_BYTES,
    Dim,
    Moves,
    by_result,
    moves_of,
    schedule_moves,
)
from tecomp.ir.nodes.dtype import INT64, DType
from tecomp.ir.nodes.expr import (
    BinOp,
    BufferLoad,
    Cast,
    Const,
    Expr,
    Var,
    binary,
    index_value,
    is_const,
)
from tecomp.ir.nodes.stmt import (
    Allocate,
    Buffer,
    BufferStore,
    DeclBuffer,
    IndexMapNode,
    Let,
    Prefetch,
    PrimFunc,
    Stmt,
    seq,
)
from tecomp.ir.traversal.rewrite import substitute
from tecomp.lowering.loops.rectangular_loops import RectangularLoops
from tecomp.lowering.vectorize.unroll import unroll_loops
from tecomp.lowering.vectorize.vectorize import vectorize_loops
from tecomp.machine.components import Core
from tecomp.scheduling.schedule import create_schedule


@dataclass(frozen=True, eq=False)
class CopyEndpoint:
    """Physical layout of a tensor on one side of a copy.

    Attributes:
        index_map: Map from tensor indices to physical indices.
        physical_extents: Extents of the physical indices; the memory stores their box in row-major
            order.
    """

    index_map: IndexMapNode
    physical_extents: tuple[int, ...]

    @property
    def key(self) -> tuple[str, tuple[int, ...]]:
        """Key that is equal for equal sides: map with canonical variable names, and extents."""
        names = {old: Var(f"i{k}", INT64) for k, old in enumerate(self.index_map.initial_indices)}
        return str(
            [substitute(e, names) for e in self.index_map.final_indices]
        ), self.physical_extents

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CopyEndpoint) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)


@dataclass(frozen=True)
class CopySpec:
    """Copy of a tensor from one physical layout to another.

    Attributes:
        shape: Shape of the tensor.
        dtype: dtype of the elements, which are copied bit by bit.
        source: Physical layout of the source.
        result: Physical layout of the result.
        fill: Bit pattern for padding positions of the result; None leaves them unwritten.
            Default: 0.
    """

    shape: tuple[int, ...]
    dtype: DType
    source: CopyEndpoint
    result: CopyEndpoint
    fill: int | None = 0


def bit_pattern(value: np.ndarray[Any, Any]) -> int:
    """Return the bits of a one-element array as an integer for `CopySpec.fill`."""
    return int.from_bytes(value.tobytes(), sys.byteorder)


@dataclass(frozen=True, slots=True)
class Memories:
    """Source and result of a copy, as buffers of unsigned integers.

    Attributes:
        source: Buffer that is read, or the constant that fills the result.
        result: Buffer that is written.
        vector_bytes: Bytes of a vector register.
        tile_bytes: Maximum bytes of a temporary tile, so that it stays in the cache.
    """

    source: Buffer | int
    result: Buffer
    vector_bytes: int
    tile_bytes: int

    @property
    def width(self) -> int:
        """Bytes of an element of the result."""
        return self.result.dtype.bytes

    @property
    def widths(self) -> tuple[int, int]:
        """Bytes of an element of the source and of the result; equal for a constant source."""
        source = self.source
        return (self.width if isinstance(source, int) else source.dtype.bytes), self.width

    @property
    def lanes(self) -> int:
        """Number of result elements in a vector register."""
        return max(self.vector_bytes // self.width, 1)

    def wider(self, times: int) -> Memories:
        """Return views of the same memories with elements of `times` the width."""
        source = self.source
        if isinstance(source, Buffer):
            source = _widen_elements(source, times)
        return replace(self, source=source, result=_widen_elements(self.result, times))

    @property
    def is_streamed(self) -> bool:
        """Whether the result is written with non-temporal stores."""
        return self.result.scope == STREAM

    def through_caches(self) -> Memories:
        """Return the same memories without non-temporal stores."""
        if not self.is_streamed:
            return self
        return replace(self, result=replace(self.result, scope="global"))

    def declared(self, body: Stmt) -> Stmt:
        """Wrap `body` in declarations of the buffers, which are views of parameters."""
        for buffer in (self.result, self.source):
            if isinstance(buffer, Buffer) and buffer.scope != "local":
                body = DeclBuffer(buffer, body)
        return body


def _widen_elements(buffer: Buffer, times: int) -> Buffer:
    (count,) = buffer.shape
    assert isinstance(count, int)
    kind = DType(f"uint{8 * buffer.dtype.bytes * times}")
    return Buffer(buffer.name, (count // times,), kind, buffer.scope, data=buffer.data)


def times(value: Expr, factor: int) -> Expr:
    """Return `value * factor`, folding constants."""
    if isinstance(value, Const):
        return index_value(int(value.value) * factor)
    return value if factor == 1 else binary(BinOp.MUL, value, index_value(factor))


def plus(base: Expr, value: Expr, factor: int = 1) -> Expr:
    """Return `base + value * factor`, folding constants."""
    part = times(value, factor)
    if isinstance(part, Const):
        if isinstance(base, Const):
            return index_value(int(base.value) + int(part.value))
        return base if part.value == 0 else binary(BinOp.ADD, base, part)
    return part if is_const(base, 0) else binary(BinOp.ADD, base, part)


_TILE_ROW_BYTES, _TILE_COLUMN_BYTES = 1024, 512
"""Maximum bytes of a result row and of a source row in a tile that is transposed in the cache."""
_MIN_STREAM_BYTES = 1024
"""Minimum bytes of a contiguous run of the result for non-temporal stores."""
_MAX_INTEGER_BYTES = 8
"""Bytes of the widest integer type."""

Move = Callable[[Expr, Expr], Stmt]
"""Function from the offsets in the source and in the result to a statement."""


@dataclass(frozen=True, slots=True)
class CopiedBox:
    """Box of elements to copy.

    Attributes:
        dims: Dimensions of the box.
        source: Offset of the first element in the source.
        result: Offset of the first element in the result.
        memories: Source and result buffers.
        contiguous_dim: Dimension of the source elements that form one result element; None if each
            source element is one result element.
    """

    dims: tuple[Dim, ...]
    source: Expr
    result: Expr
    memories: Memories
    contiguous_dim: Dim | None = None


def copy_box(box: CopiedBox, threads: int = 1) -> Stmt:
    """Return statements that copy a box, with the outer loops parallel on `threads` threads."""
    box = _disable_streaming_of_short_runs(_copy_rows_as_integers(_normalize_box(box)))
    if (short := _join_short_rows(box)) is not None:
        return _build_loops(*short, threads)
    memories = box.memories
    moves = moves_of(
        box.dims, memories.widths, memories.vector_bytes, by_source=memories.result.scope == "local"
    )
    if not box.memories.is_streamed:
        return _build_loops(box, moves, threads)
    if moves.is_transposed:
        return _transpose_through_cache(box, moves, threads)
    if not moves.is_in_rows or moves.granules[moves.innermost[0]] < box.memories.lanes:
        # Non-temporal stores of partial cache lines would have to be combined in memory.
        return _build_loops(replace(box, memories=box.memories.through_caches()), moves, threads)
    return _build_loops(box, replace(moves, line_bytes=1), threads)


def _disable_streaming_of_short_runs(box: CopiedBox) -> CopiedBox:
    """Disable non-temporal stores if the contiguous runs of the result are too short.

    Each run of the result may begin and end inside a cache line, which is then written twice.
    """
    if not box.memories.is_streamed:
        return box
    run = 1
    for dim in sorted(box.dims, key=lambda d: d.result):
        if dim.result == run:
            run *= dim.count
    is_long = run * box.memories.width >= _MIN_STREAM_BYTES
    return box if is_long else replace(box, memories=box.memories.through_caches())


def _normalize_box(box: CopiedBox) -> CopiedBox:
    """Make all result strides positive, drop dimensions of count 1 and merge contiguous ones."""
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


def _copy_rows_as_integers(box: CopiedBox) -> CopiedBox:
    """Copy contiguous rows of 2, 4 or 8 bytes as single integers if strides and offsets allow."""
    row = next((d for d in box.dims if (d.source, d.result) == (1, 1)), None)
    if row is None or row.count * box.memories.width not in (2, 4, _MAX_INTEGER_BYTES):
        return box
    others = [d for d in box.dims if d is not row]
    if isinstance(box.memories.source, int):
        return box
    numbers = [n for d in others for n in (d.source, d.result)]
    numbers += [int(e.value) if isinstance(e, Const) else 1 for e in (box.source, box.result)]
    if not others or any(n % row.count for n in numbers):
        return box
    dims = tuple(Dim(d.count, d.source // row.count, d.result // row.count) for d in others)
    source, result = (_divide(e, row.count) for e in (box.source, box.result))
    return CopiedBox(dims, source, result, box.memories.wider(row.count))


def _divide(value: Expr, divisor: int) -> Expr:
    assert isinstance(value, Const)
    return index_value(int(value.value) // divisor)


def _join_short_rows(box: CopiedBox) -> tuple[CopiedBox, Moves] | None:
    """Join short result rows of strided source elements into one integer store per row.

    Returns:
        Box of joined elements and its loop order; None if the box has no such rows.
    """
    row = next((d for d in box.dims if d.result == 1), None)
    column = next((d for d in box.dims if d.source == 1), None)
    if row is None or column is None or row is column:
        return None
    count = row.count
    dims = [d for d in box.dims if d is not row]
    steps = [d.result for d in dims]
    steps.append(int(box.result.value) if isinstance(box.result, Const) else 1)
    is_short = count in (2, 4,
        _MAX_INTEGER_BYTES) and count * box.memories.width <= _MAX_INTEGER_BYTES
    if not is_short or column.result != count or any(n % count for n in steps):
        return None
    widened = box.memories.wider(count)
    memories = replace(box.memories, result=widened.result)
    column_axis = dims.index(column)
    size = min(memories.lanes, column.count)
    granules = [1] * len(dims)
    granules[column_axis] = 1 << size.bit_length() - 1
    dims = [Dim(d.count, d.source, d.result // count) for d in dims]
    moves = Moves(
        tuple(dims), memories.widths, tuple(granules), by_result(dims, column_axis), (column_axis,),
        ROW_BLOCK_BYTES,
    )
    start = _divide(box.result, count)
    return CopiedBox(tuple(dims), box.source, start, memories, row), moves


@dataclass(frozen=True, slots=True)
class _Walk:
    """Scheduled loops of a box.

    Attributes:
        box: Box to copy.
        axes: Axes of the copy stage, one per dimension of the box.
        loops: Rectangular loops of the stage.
        outer_loops: Loops around the statements of one step.
    """

    box: CopiedBox
    axes: tuple[IterVar, ...]
    loops: RectangularLoops
    outer_loops: tuple[IterVar, ...]

    @property
    def at_once(self) -> tuple[IterVar, ...]:
        """Loops of one step, inside `outer_loops`."""
        return self.loops.stage.leaves[len(self.outer_loops) :]

    def offsets(
        self, source: Expr, result: Expr, values: Mapping[IterVar, Expr]
    ) -> tuple[Expr, Expr]:
        """Return both offsets advanced by the values of loops; loops without a value are at 0.

        Args:
            source: Offset in the source.
            result: Offset in the result.
            values: Values of loops.
        """
        initial = dict.fromkeys(self.loops.stage.leaves, index_value(0))
        index = self.loops.index({**initial, **values})
        for axis, dim in zip(self.axes, self.box.dims, strict=True):
            source = plus(source, index[axis], dim.source)
            result = plus(result, index[axis], dim.result)
        return source, result

    def nest(self, at_once: Move) -> Stmt:
        """Build the outer loops around the statement that `at_once` returns for both offsets."""

        def inside(values: Mapping[IterVar, Expr]) -> Stmt:
            starts = Var("s", INT64), Var("r", INT64)
            statement = at_once(*starts)
            found = self.offsets(self.box.source, self.box.result, values)
            for var, start in zip(starts, found, strict=True):
                statement = Let(var, start, statement)
            return statement

        return self.loops.nest(self.outer_loops, {}, inside)


def _walk(box: CopiedBox, moves: Moves, threads: int = 1) -> _Walk:
    """Schedule a stage that copies the box and return its loops."""
    counts = tuple(dim.count for dim in box.dims)
    source = placeholder(counts, box.memories.result.dtype, name="source")
    copy = compute(counts, lambda *n: source[n if n else ()], name="copy")
    schedule = create_schedule(copy)
    axes = tuple(copy.op.axis)
    n_outer = schedule_moves(schedule[copy], axes, moves, threads)
    loops = RectangularLoops.of(schedule.state.stage(copy.op))
    assert loops is not None
    return _Walk(box, axes, loops, loops.stage.leaves[:n_outer])


def _build_loops(box: CopiedBox, moves: Moves, threads: int = 1) -> Stmt:
    """Build the loops of a box with vectorized and unrolled statements for each step."""
    walk = _walk(box, moves, threads)
    is_tile = box.memories.result.scope == "local"

    def at_once(source: Expr, result: Expr) -> Stmt:
        def element(values: Mapping[IterVar, Expr]) -> Stmt:
            return _element(box, *walk.offsets(source, result, values))

        requests = _requests(box, moves, source) if is_tile and moves.is_transposed else ()
        stmt = walk.loops.nest(walk.at_once, {}, element)
        return seq(*requests, _vectorize_and_unroll(stmt, MAX_VECTORS * box.memories.vector_bytes))

    return box.memories.declared(walk.nest(at_once))


def _vectorize_and_unroll(body: Stmt, max_lanes: int) -> Stmt:
    """Vectorize and unroll the statements of one step."""
    func = PrimFunc("moved", (), body)
    return unroll_loops(vectorize_loops(func, max_lanes, is_simple=True)).body


def _element(box: CopiedBox, source: Expr, result: Expr) -> Stmt:
    """Store one result element: a constant, a source element, or joined source elements."""
    memories, dtype = box.memories, box.memories.result.dtype
    if isinstance(memories.source, int):
        return BufferStore(memories.result, Const(memories.source, dtype), (result,))
    if box.contiguous_dim is None:
        return BufferStore(memories.result, BufferLoad(memories.source, (source,)), (result,))
    bits = memories.source.dtype.bits
    total: Expr | None = None
    for k in range(box.contiguous_dim.count):
        offset = plus(source, index_value(k * box.contiguous_dim.source))
        value: Expr = Cast(dtype, BufferLoad(memories.source, (offset,)))
        if k:
            value = binary(BinOp.SHL, value, Const(k * bits, dtype))
        total = value if total is None else binary(BinOp.BITOR, total, value)
    assert total is not None
    return BufferStore(memories.result, total, (result,))


def _requests(box: CopiedBox, moves: Moves, source: Expr) -> Iterator[Stmt]:
    """Yield prefetches of the next tile, because hardware prefetchers do not cross rows.

    Nothing is prefetched if rows alias in the L1 cache: the prefetched lines would evict each
    other.
    """
    row = moves.innermost[-1]
    step, tile_rows, memory = box.dims[row].source, moves.granules[row], box.memories.source
    if not isinstance(memory, Buffer) or step < 0:
        return
    if step * memory.dtype.bytes % Core.PAGE_BYTES == 0:  # rows share the sets of the L1 cache
        return
    (volume,) = memory.shape
    assert isinstance(volume, int)
    last = index_value(volume - 1 - (tile_rows - 1) * step)
    next_tile = binary(BinOp.MIN, plus(source, index_value(tile_rows * step)), last)
    for k in range(tile_rows):
        yield Prefetch(BufferLoad(memory, (plus(next_tile, index_value(k * step)),)))


def _transpose_through_cache(box: CopiedBox, moves: Moves, threads: int) -> Stmt:
    """Transpose squares into a cached tile and write its rows with non-temporal stores.

    Storing each square directly would evict partially filled cache lines of the result.
    """
    memories = box.memories
    column, row = moves.innermost
    row_dim, column_dim = box.dims[row], box.dims[column]
    rows = min(row_dim.count, _TILE_ROW_BYTES // memories.width)
    columns = min(
        column_dim.count, _TILE_COLUMN_BYTES // memories.width,
        max(memories.tile_bytes // _TILE_ROW_BYTES, 1),
    )
    tile = Buffer("tile", (rows * columns,), memories.result.dtype, "local")
    granules = {row: rows, column: columns}
    sizes = tuple(granules.get(k, 1) for k in range(len(box.dims)))
    tiles = Moves(box.dims, memories.widths, sizes, by_result(box.dims), moves.innermost, 1, 1)

    def at_once(source: Expr, result: Expr) -> Stmt:
        transposed = (Dim(rows, row_dim.source, 1), Dim(columns, column_dim.source, rows))
        stored = (Dim(rows, 1, 1), Dim(columns, rows, column_dim.result))
        load = CopiedBox(transposed, source, index_value(0), replace(memories, result=tile))
        store = CopiedBox(stored, index_value(0), result, replace(memories, source=tile))
        return Allocate(tile, seq(copy_box(load), copy_box(store)))

    return _walk(box, tiles, threads).nest(at_once)
