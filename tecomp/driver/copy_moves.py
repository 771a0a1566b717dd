"""What a copy does at once: rows, squares turned in registers, neighbours that are merged."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from tecomp.codegen.memory.stream import STREAM
from tecomp.ir.language.dtype import INT64, DType
from tecomp.ir.language.expr import (
    BinOp,
    Broadcast,
    BufferLoad,
    Cast,
    Const,
    Expr,
    Ramp,
    Var,
    binary,
    index_value,
    is_const,
)
from tecomp.ir.language.stmt import Buffer, BufferStore, DeclBuffer, For, ForKind, Stmt, seq

_VECTORS = 4
"""Vectors that one statement of a row moves."""
_UNROLLED = 8
"""Statements that a row is written out as; there is a loop if they are more."""


@dataclass(frozen=True, slots=True)
class Dim:
    """`count` steps, each of so many elements in the source and in the result."""

    count: int
    source: int
    result: int


@dataclass(frozen=True, slots=True)
class Memories:
    """What is copied from where to where, as unsigned integers of one width.

    Attributes:
        source: the buffer that is read; a number if the result is filled with that.
        result: the buffer that is written.
        vector_bytes: of a register.
        tile_bytes: what stays in the cache while it is worked on.
    """

    source: Buffer | int
    result: Buffer
    vector_bytes: int
    tile_bytes: int

    @property
    def width(self) -> int:
        """Bytes of an element."""
        return self.result.dtype.bytes

    @property
    def lanes(self) -> int:
        """Elements of a vector."""
        return max(self.vector_bytes // self.width, 1)

    def wider(self, times: int) -> Memories:
        """The same bytes in elements of so many."""
        source = self.source
        if isinstance(source, Buffer):
            source = _wider(source, times)
        return replace(self, source=source, result=_wider(self.result, times))

    @property
    def is_streamed(self) -> bool:
        """Whether the result is stored past the caches."""
        return self.result.scope == STREAM

    def through_caches(self) -> Memories:
        """The same without stores past the caches."""
        if not self.is_streamed:
            return self
        return replace(self, result=replace(self.result, scope="global"))

    def declared(self, body: Stmt) -> Stmt:
        """`body` with the views of parameters made known."""
        for buffer in (self.result, self.source):
            if isinstance(buffer, Buffer) and buffer.scope != "local":
                body = DeclBuffer(buffer, body)
        return body


def _wider(buffer: Buffer, times: int) -> Buffer:
    (count,) = buffer.shape
    assert isinstance(count, int)
    kind = DType(f"uint{8 * buffer.dtype.bytes * times}")
    return Buffer(buffer.name, (count // times,), kind, buffer.scope, data=buffer.data)


def times(value: Expr, factor: int) -> Expr:
    """`value * factor`."""
    if isinstance(value, Const):
        return index_value(int(value.value) * factor)
    return value if factor == 1 else binary(BinOp.MUL, value, index_value(factor))


def plus(base: Expr, value: Expr, factor: int = 1) -> Expr:
    """`base + value * factor`."""
    part = times(value, factor)
    if isinstance(part, Const):
        if isinstance(base, Const):
            return index_value(int(base.value) + int(part.value))
        return base if part.value == 0 else binary(BinOp.ADD, base, part)
    return part if is_const(base, 0) else binary(BinOp.ADD, base, part)


def move_row(dim: Dim, source: Expr, result: Expr, memories: Memories) -> Stmt:
    """A row that is contiguous in both."""
    wide = _VECTORS * memories.lanes
    iterations = dim.count // wide
    parts: list[Stmt] = []
    if iterations > _UNROLLED:
        n = Var("n", INT64)
        starts = plus(source, n, wide * dim.source), plus(result, n, wide)
        moved = move_vector(dim, wide, *starts, memories)
        parts.append(For(n, index_value(0), index_value(iterations), ForKind.SERIAL, moved))
        first = iterations * wide
    else:
        first = 0
    for start, size in vectors(dim.count, first, memories.lanes):
        starts = plus(source, index_value(start * dim.source)), plus(result, index_value(start))
        parts.append(move_vector(dim, size, *starts, memories))
    return seq(*parts)


def vectors(count: int, start: int, lanes: int) -> Iterator[tuple[int, int]]:
    """Start and length of vectors that cover a row of `count` elements from `start` on.

    The last may begin before the one before it ends: what is written twice is the same.

    >>> list(vectors(23, 0, 8)), list(vectors(7, 0, 8))
    ([(0, 16), (15, 8)], [(0, 4), (3, 4)])
    """
    while count - start >= lanes:
        size = lanes
        while size < _VECTORS * lanes and size * 2 <= count - start:
            size *= 2
        yield start, size
        start += size
    rest = count - start
    if not rest:
        return
    if count >= lanes:
        yield count - lanes, lanes
        return
    size = 1 << rest.bit_length() - 1
    yield start, size
    if rest > size:
        yield count - size, size


def move_vector(dim: Dim, size: int, source: Expr, result: Expr, memories: Memories) -> Stmt:
    """`size` elements along a dimension."""
    place = _ramp(result, dim.result, size)
    if isinstance(memories.source, int):
        one: Expr = Const(memories.source, memories.result.dtype)
        value = one if size == 1 else Broadcast(one, size)
    else:
        value = BufferLoad(memories.source, (_ramp(source, dim.source, size),))
    return BufferStore(memories.result, value, (place,))


def _ramp(start: Expr, stride: int, lanes: int) -> Expr:
    return start if lanes == 1 else Ramp(start, index_value(stride), lanes)


def move_square(
    row: Dim, column: Dim, side: int, source: Expr, result: Expr, memories: Memories
) -> Stmt:
    """A square whose rows are contiguous in the result, and its columns in the source.

    It is written as one row after the other; code generation reads columns and turns them in
    registers.
    """
    return seq(*(
        move_vector(
            row, side, plus(source, index_value(k)), plus(result, index_value(k * column.result)),
            memories,
        )
        for k in range(side)
    ))


def merge_neighbours(
    row: Dim, dim: Dim, size: int, source: Expr, result: Expr, memories: Memories
) -> Stmt:
    """Vectors of the source whose elements become neighbours.

    Args:
        row: the neighbours; only its count and its step in the source matter.
        dim: contiguous in the source, and in the result if neighbours are one element.
        size: elements of a vector.
        source: offset of the first element.
        result: offset in elements of the result, which are as wide as all neighbours.
        memories: buffers of elements of their own widths.
    """
    wide = memories.result.dtype.with_lanes(size)
    assert isinstance(memories.source, Buffer)
    bits = memories.source.dtype.bits
    total: Expr | None = None
    for k in range(row.count):
        place = _ramp(plus(source, index_value(k * row.source)), dim.source, size)
        value: Expr = Cast(wide, BufferLoad(memories.source, (place,)))
        if k:
            shift: Expr = Const(k * bits, memories.result.dtype)
            shift = shift if size == 1 else Broadcast(shift, size)
            value = binary(BinOp.SHL, value, shift)
        total = value if total is None else binary(BinOp.BITOR, total, value)
    assert total is not None
    return BufferStore(memories.result, total, (_ramp(result, dim.result, size),))
