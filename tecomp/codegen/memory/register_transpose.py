"""Transpose column accesses in registers.

A gather or scatter of 8 values takes one step for each value. Eight of them at successive addresses
access a square: 8 rows of 8 consecutive values, which 24 shuffles transpose. Unrolled loops contain
such groups in successive statements. An incomplete square, at the end of rows whose length is not a
multiple of 8, loads or stores only the leading values of each row.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from tecomp.codegen.llvm.ir_builder import FunctionBuilder, memory_type, shuffle_mask
from tecomp.codegen.ops.arithmetic import is_power_of_two
from tecomp.codegen.ops.vector_legalization import active_prefix, first_lanes, next_power_of_two
from tecomp.ir.arith.quasi_affine_conversion import TermTable
from tecomp.ir.nodes.dtype import DType
from tecomp.ir.nodes.expr import (
    Binary,
    BufferLoad,
    Call,
    Cast,
    Compare,
    Const,
    Expr,
    Not,
    Ramp,
    Select,
    index_value,
)
from tecomp.ir.nodes.stmt import Buffer, BufferStore, Let
from tecomp.ir.traversal.rewrite import children, contains, walk
from tecomp.machine.components import Core

Rule: TypeAlias = "Generator[Expr, str, str]"
Access: TypeAlias = "BufferLoad | BufferStore"

_LAZY = ("if_then_else", "check_index")
_LEAST, _MOST = 4, 32
"""Lane counts of a column: fewer are faster one by one, more exceed the registers."""
_MIN_COLUMNS = 4
"""Minimum number of columns of an incomplete square: three are as fast one by one."""
_PIECE_BITS = 128
"""Bits within which every machine shuffles in one instruction; larger moves are per piece."""


@dataclass(slots=True, eq=False)
class TransposeBlock:
    """Square whose columns are accesses of one buffer.

    Attributes:
        buffer: Accessed buffer; a buffer of bool is loaded as bytes.
        outer: Indices before the last.
        first: Index of the first value of the first column.
        stride: Stride between rows.
        dtype: Dtype of a column and of a row; 32-bit vector elements are moved as int32.
        access_dtype: Dtype of an access in terms of the buffer dtype.
        width: Number of columns, which are the leading values of each row.
        height: Number of rows, which are the leading values of each column.
        columns: Operands of the columns that have been read or are to be stored.
    """

    buffer: Buffer
    outer: tuple[Expr, ...]
    first: Expr
    stride: Expr
    dtype: DType
    access_dtype: DType
    width: int
    height: int
    columns: dict[int, str] = field(default_factory=dict)

    def rows(self) -> Iterator[tuple[Expr, ...]]:
        """Yield the indices of each row."""
        size = self.dtype.lanes
        for k in range(self.height):
            start = self.first + self.stride * index_value(k) if k else self.first
            yield (*self.outer, Ramp(start, index_value(1), size))

    def whole_row(self, number: int) -> int | None:
        """Return the offset from a row of the power of two of values that replace its values.

        Memory between the first and the last value can be read if rows are not pages apart: each
        page then has a value. Return None if a row takes one load anyway or has too few neighbours.
        """
        size, stride = next_power_of_two(self.width), self.stride
        if size == self.width or not isinstance(stride, Const) or stride.value <= 0:
            return None
        distance = int(stride.value)
        if distance * self.dtype.scalar.bytes > Core.PAGE_BYTES:
            return None
        end = (self.height - 1 - number) * distance + self.width
        start = min(end - size, 0)
        return start if number * distance + start >= 0 else None

    @property
    def mask(self) -> Expr | None:
        """Mask of the values of a row that belong to columns; None for all."""
        size = self.dtype.lanes
        return None if self.width == size else first_lanes(self.width, size)


def _load_whole(
    code: FunctionBuilder, square: TransposeBlock, indices: tuple[Expr, ...], start: int
) -> Rule:
    """Load a power of two of values that contains a row; `start` is their offset from the row.

    Lanes after the values of the row are unspecified.
    """
    *outer, ramp = indices
    assert isinstance(ramp, Ramp)
    size = next_power_of_two(square.width)
    first = ramp.base + start if start else ramp.base
    load = BufferLoad(square.buffer, (*outer, Ramp(first, index_value(1), size)))
    dtype = square.dtype.scalar.with_lanes(size)
    row = _as(code, (yield load), load.dtype, dtype)
    if not start and size == ramp.lanes:
        return row
    kind = memory_type(dtype)
    chosen = [k - start if k < square.width else None for k in range(ramp.lanes)]
    return code.op(f"shufflevector {kind} {row}, {kind} poison, {shuffle_mask(chosen)}")


@dataclass(frozen=True, slots=True, eq=False)
class ColumnAccess:
    """Access that is a column of a square.

    Attributes:
        access: Load or store; the reference keeps its id from being reused.
        square: Square of the column.
        number: Column number.
    """

    access: Access
    square: TransposeBlock
    number: int

    def read(self, code: FunctionBuilder) -> Rule:
        """Return the operand of the column; the first call loads the square."""
        square = self.square
        if not square.columns:
            rows: list[str] = []
            for number, indices in enumerate(square.rows()):
                start = square.whole_row(number)
                if start is None or code.module.options.check_bounds:
                    load = BufferLoad(square.buffer, indices, square.mask)
                    rows.append(_as(code, (yield load), load.dtype, square.dtype))
                else:
                    rows.append((yield from _load_whole(code, square, indices, start)))
            rows += ["zeroinitializer"] * (square.dtype.lanes - square.height)
            square.columns.update(enumerate(transpose_square(code, rows, square.dtype)))
        return _as(code, square.columns[self.number], square.dtype, square.access_dtype)

    def filled(self, code: FunctionBuilder, operand: str) -> list[tuple[tuple[Expr, ...], str]]:
        """Record the operand to store; for the last column return indices and operands of rows."""
        square = self.square
        square.columns[self.number] = operand
        if len(square.columns) < square.width:
            return []
        size = square.dtype.lanes
        columns = [square.columns.get(k, "poison") for k in range(size)]
        rows = transpose_square(code, columns, square.dtype)[: square.height]
        return list(zip(square.rows(), rows, strict=True))


def find_transposes(
    statements: Sequence[BufferStore], lets: Sequence[Let] = ()
) -> dict[int, ColumnAccess]:
    """Return the accesses in `statements` that are columns of squares, by id.

    `lets` are the let bindings of the statements.

    A square is loaded when its first column is required, and stored with its last column; the
    memory must not be accessed in between.
    """
    stores = [s for s in statements if _is_across(s)]
    names = {let.var for let in lets}
    values = [*(let.value for let in lets), *(s.value for s in statements)]
    reads = [
        node for value in values for node in _read_always(value)
        if _is_across(node) and names.isdisjoint(walk(*node.indices))
    ]
    stores = [s for s in stores if names.isdisjoint(walk(*s.indices))]
    if len(stores) < _LEAST and len(reads) < _LEAST:
        return {}
    nodes = walk(*statements, *(let.value for let in lets))
    read = {node.buffer.data for node in nodes if isinstance(node, BufferLoad)}
    written = {s.buffer.data for s in statements}
    found: dict[int, ColumnAccess] = {}
    # Columns are all loaded before the first use, and all stored after the last is computed.
    loads: list[Access] = [node for node in reads if node.buffer.data not in written]
    for group in (loads, [s for s in stores if s.buffer.data not in read]):
        for column in _columns(group):
            found[id(column.access)] = column
    return found


def _read_always(value: Expr) -> list[BufferLoad]:
    """Return the loads of a value that are unconditional in all their occurrences."""
    always = [node for node in walk(value, parts=_computed_always) if isinstance(node, BufferLoad)]
    conditional = (
        part for node in walk(value, parts=_computed_always) if not _computed_always(node)
        for part in children(node)
    )
    guarded = set(map(id, walk(*conditional)))
    return [node for node in always if id(node) not in guarded]


def _computed_always(node: Any) -> Sequence[Any]:
    """Return the operands of a node that are computed unconditionally."""
    is_eager = isinstance(node, Binary | Cast | Compare | Not | Select) or (
        isinstance(node, Call) and node.name not in _LAZY)
    return children(node) if is_eager else ()


def _is_across(access: Access) -> bool:
    """Return whether an access is a strided vector that may be a column."""
    dtype = access.dtype if isinstance(access, BufferLoad) else access.value.dtype
    last = access.indices[-1] if access.indices else Const(0)
    is_part = access.predicate is not None and active_prefix(access.predicate) is None
    is_byte = dtype.bits >= 8 or (dtype.is_bool and isinstance(access, BufferLoad))
    if is_part or not isinstance(last, Ramp) or not is_byte:
        return False
    size = last.lanes
    is_square = _LEAST <= size <= _MOST and is_power_of_two(size)
    element = access.buffer.dtype
    is_word = element.lanes * element.bits == 32 and isinstance(access, BufferLoad)
    if not is_square or (element.lanes > 1 and not is_word):
        return False
    stride = last.stride
    if isinstance(stride, Const):
        min_stride = 2 if isinstance(access, BufferLoad) else _MIN_COLUMNS
        return abs(int(stride.value)) >= min_stride
    return not contains(BufferLoad, last)


def _columns(group: Sequence[Access]) -> Iterator[ColumnAccess]:
    """Yield the columns of all squares in a group of accesses."""
    terms = TermTable()
    families: dict[Any, dict[int, list[Access]]] = {}
    for access in group:
        *outer, ramp = access.indices
        assert isinstance(ramp, Ramp)
        # A loaded index may change between statements.
        if contains(BufferLoad, ramp.base):
            continue
        start = terms.sum_of(ramp.base)
        key = frozenset(start.terms.items())
        outside = (terms.key(index) for index in outer)
        lanes = (ramp.lanes, _height(access), terms.key(ramp.stride), *outside)
        by_start = families.setdefault((access.buffer.data, access.buffer.dtype, *lanes, key), {})
        by_start.setdefault(start.const, []).append(access)
    for by_start in families.values():
        starts = sorted(by_start)
        while starts:
            size = by_start[starts[0]][0].indices[-1].dtype.lanes
            width = next((k for k in range(size) if starts[0] + k not in by_start), size)
            first = _first_column(by_start, starts[0], width, size)
            access, n_columns = by_start[first][0], starts[0] + width - first
            if n_columns >= min(_MIN_COLUMNS, size) and not _overlap(access, starts):
                square = _square(access, n_columns)
                for offset in starts[:width]:
                    yield from (
                        ColumnAccess(member, square, offset - first) for member in by_start[offset]
                    )
            starts = starts[width:]


def _first_column(
    by_start: Mapping[int, Sequence[Access]], start: int, width: int, size: int
) -> int:
    """Return the first column of the square that contains the next `width` columns.

    An incomplete square of loads starts earlier if its columns then are complete: loading values
    of another square again takes fewer instructions than masked loads or loads of single values.
    """
    first = start + width - size
    is_read = isinstance(by_start[start][0], BufferLoad)
    return first if is_read and all(k in by_start for k in range(first, start)) else start


def _overlap(access: Access, starts: Sequence[int]) -> bool:
    """Return whether the rows of stored columns overlap.

    Overlapping rows may be loaded together, but a store would overwrite values of another row.
    """
    stride = access.indices[-1].stride if isinstance(access.indices[-1], Ramp) else None
    if isinstance(access, BufferLoad) or not isinstance(stride, Const):
        return False
    return starts[-1] - starts[0] >= abs(int(stride.value))


def _height(access: Access) -> int:
    """Return the number of leading active lanes of an access."""
    assert access.indices
    return active_prefix(access.predicate) or access.indices[-1].dtype.lanes


def _square(access: Access, width: int) -> TransposeBlock:
    *outer, ramp = access.indices
    assert isinstance(ramp, Ramp)
    element = access.buffer.dtype
    buffer = replace(access.buffer, dtype=DType("uint8")) if element.is_bool else access.buffer
    loaded = buffer.element_at(access.indices)
    dtype = loaded if element.lanes == 1 else DType(f"int32x{ramp.lanes}")
    return TransposeBlock(
        buffer, tuple(outer), ramp.base, ramp.stride, dtype,
        access.buffer.element_at(access.indices), width, _height(access),
    )


def _as(code: FunctionBuilder, operand: str, dtype: DType, other: DType) -> str:
    """Bitcast a vector to another dtype; bytes that are not 0 are true."""
    if dtype == other:
        return operand
    if other.is_bool:
        return code.op(f"icmp ne {memory_type(dtype)} {operand}, zeroinitializer")
    return code.op(f"bitcast {memory_type(dtype)} {operand} to {memory_type(other)}")


def transpose_square(code: FunctionBuilder, rows: Sequence[str], dtype: DType) -> list[str]:
    """Transpose a square of vectors of `dtype`; return its columns."""
    kind, size = memory_type(dtype), dtype.lanes
    piece = min(size, max(_PIECE_BITS // dtype.scalar.bits, 1))
    groups = [
        _within_pieces(code, rows[k : k + piece], kind, size) for k in range(0, size, piece)
    ]
    columns = [""] * size
    for k in range(piece):
        exchanged = _exchange(code, [group[k] for group in groups], kind, piece)
        for number, operand in enumerate(exchanged):
            columns[number * piece + k] = operand
    return columns


def _within_pieces(code: FunctionBuilder, rows: Sequence[str], kind: str, size: int) -> list[str]:
    """Transpose the square within each piece by repeated interleaving of halves."""
    piece, found = len(rows), list(rows)
    half = piece // 2
    for _ in range(piece.bit_length() - 1):
        found = [
            _shuffle(code, kind, found[k], found[k + half], [
                source
                for start in range(part, size, piece)
                for lane in range(start, start + half)
                for source in (lane, size + lane)
            ])
            for k in range(half)
            for part in (0, half)
        ]
    return found


def _exchange(code: FunctionBuilder, rows: Sequence[str], kind: str, piece: int) -> list[str]:
    """Transpose a square of pieces by recursively exchanging off-diagonal quarters."""
    found, count = list(rows), len(rows)
    size = count * piece
    step = count // 2
    while step:
        for k in range(count):
            if k & step:
                continue
            a, b = found[k], found[k + step]
            for number, shift in ((k, 0), (k + step, step)):
                found[number] = _shuffle(code, kind, a, b, [
                    (block + shift) * piece + lane if not block & step
                    else size + (block - step + shift) * piece + lane
                    for block in range(count)
                    for lane in range(piece)
                ])
        step //= 2
    return found


def _shuffle(code: FunctionBuilder, kind: str, a: str, b: str, lane_map: list[int]) -> str:
    return code.op(f"shufflevector {kind} {a}, {kind} {b}, {shuffle_mask(lane_map)}")
