"""Transpose column accesses in registers.

A gather or scatter of 8 values takes a step for each. Eight of them, each one place after the last,
touch a square: 8 rows of 8 values that lie side by side, and 24 shuffles turn rows into columns.
Unrolled loops make such groups, one statement after the other. Of fewer columns, those at the end
of rows whose length is no multiple of 8, the first values of each row are loaded or stored.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from tecomp.codegen.llvm.ir_builder import Code, memory_type, shuffle_mask
from tecomp.codegen.ops.vector_legalization import first_lanes, prefix
from tecomp.ir.arith.quasi_affine_conversion import Terms
from tecomp.ir.nodes.dtype import DType
from tecomp.ir.nodes.expr import (
    Binary,
    BufferLoad,
    Call,
    Cast,
    Const,
    Expr,
    Ramp,
    Select,
    index_value,
)
from tecomp.ir.nodes.stmt import Buffer, BufferStore, Let
from tecomp.ir.traversal.rewrite import children, walk

Rule: TypeAlias = "Generator[Expr, str, str]"
Access: TypeAlias = "BufferLoad | BufferStore"

_LAZY = ("if_then_else", "check_index")
_LEAST, _MOST = 4, 32
"""Lanes of a column: fewer are loaded faster one by one, more do not fit into registers."""
_FEWEST = 4
"""Columns of a square that is not complete: three are loaded as fast one by one."""
_PIECE_BITS = 128
"""Within so many bits every machine shuffles at once; such pieces change places as a whole."""


@dataclass(slots=True, eq=False)
class Square:
    """Accesses of one buffer that are the columns of a square.

    Attributes:
        buffer: what is accessed.
        outer: the indices before the last.
        first: place of the first value of the first column.
        stride: from row to row.
        dtype: of a column, and of a row; short vectors of 32 bits are moved as numbers.
        held: of an access, as the buffer has it.
        width: number of columns; the first values of each row are theirs.
        height: number of rows; the first values of each column are theirs.
        columns: operands of the columns, as far as they were read, or are to be written.
    """

    buffer: Buffer
    outer: tuple[Expr, ...]
    first: Expr
    stride: Expr
    dtype: DType
    held: DType
    width: int
    height: int
    columns: dict[int, str] = field(default_factory=dict)

    def rows(self) -> Iterator[tuple[Expr, ...]]:
        """The indices of each row."""
        size = self.dtype.lanes
        for k in range(self.height):
            start = self.first + self.stride * index_value(k) if k else self.first
            yield (*self.outer, Ramp(start, index_value(1), size))

    @property
    def mask(self) -> Expr | None:
        """Which values of a row are in columns; None for all."""
        size = self.dtype.lanes
        return None if self.width == size else first_lanes(self.width, size)


@dataclass(frozen=True, slots=True, eq=False)
class Column:
    """One access of a square, and which of its columns that is.

    Attributes:
        access: kept so that its id is not given to another.
    """

    access: Access
    square: Square
    number: int

    def read(self, code: Code) -> Rule:
        """The operand of the column; the first reads the square."""
        square = self.square
        if not square.columns:
            rows: list[str] = []
            for place in square.rows():
                row = yield BufferLoad(square.buffer, place, square.mask)
                rows.append(_as(code, row, square.held, square.dtype))
            rows += ["zeroinitializer"] * (square.dtype.lanes - square.height)
            square.columns.update(enumerate(transposed(code, rows, square.dtype)))
        return _as(code, square.columns[self.number], square.dtype, square.held)

    def filled(self, code: Code, operand: str) -> list[tuple[tuple[Expr, ...], str]]:
        """Note the operand to be stored; for the last column, the indices and operands of rows."""
        square = self.square
        square.columns[self.number] = operand
        if len(square.columns) < square.width:
            return []
        size = square.dtype.lanes
        columns = [square.columns.get(k, "poison") for k in range(size)]
        rows = transposed(code, columns, square.dtype)[: square.height]
        return list(zip(square.rows(), rows, strict=True))


def find_transposes(
    statements: Sequence[BufferStore], lets: Sequence[Let] = ()
) -> dict[int, Column]:
    """For each access in `statements` that is a column of a square, by id, which one it is.

    `lets` are the values that have names in one of them.

    A square is read where its first column is needed, and written where its last is stored;
    nothing in between may touch that memory.
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
    every = walk(*statements, *(let.value for let in lets))
    read = {node.buffer.data for node in every if isinstance(node, BufferLoad)}
    written = {s.buffer.data for s in statements}
    found: dict[int, Column] = {}
    # All columns are read before the first is used, and written after the last is computed.
    loads: list[Access] = [node for node in reads if node.buffer.data not in written]
    for group in (loads, [s for s in stores if s.buffer.data not in read]):
        for column in _columns(group):
            found[id(column.access)] = column
    return found


def _read_always(value: Expr) -> list[BufferLoad]:
    """The loads of a value that no condition guards, here or elsewhere in it."""
    always = [node for node in walk(value, parts=_computed_always) if isinstance(node, BufferLoad)]
    rest = (
        part for node in walk(value, parts=_computed_always) if not _computed_always(node)
        for part in children(node)
    )
    guarded = set(map(id, walk(*rest)))
    return [node for node in always if id(node) not in guarded]


def _computed_always(node: Any) -> Sequence[Any]:
    """The parts of a node that are computed wherever it is."""
    is_plain = isinstance(node, Binary | Cast | Select) or (
        isinstance(node, Call) and node.name not in _LAZY)
    return children(node) if is_plain else ()


def _is_across(access: Access) -> bool:
    """Whether an access is one vector whose values lie apart, and may be a column."""
    dtype = access.dtype if isinstance(access, BufferLoad) else access.value.dtype
    last = access.indices[-1] if access.indices else Const(0)
    is_part = access.predicate is not None and prefix(access.predicate) is None
    if is_part or not isinstance(last, Ramp) or dtype.is_bool:
        return False
    size = last.lanes
    is_square = _LEAST <= size <= _MOST and size & (size - 1) == 0
    element = access.buffer.dtype
    is_word = element.lanes * element.bits == 32 and isinstance(access, BufferLoad)
    if not is_square or (element.lanes > 1 and not is_word):
        return False
    stride = last.stride
    if isinstance(stride, Const):
        least = 2 if isinstance(access, BufferLoad) else _FEWEST
        return abs(int(stride.value)) >= least
    return not any(isinstance(node, BufferLoad) for node in walk(last))


def _columns(group: Sequence[Access]) -> Iterator[Column]:
    """The columns of all squares that a group of accesses holds."""
    terms = Terms()
    sides: dict[Any, dict[int, list[Access]]] = {}
    for access in group:
        *outer, ramp = access.indices
        assert isinstance(ramp, Ramp)
        # An index that is read from memory may change from one statement to the next.
        if any(isinstance(node, BufferLoad) for node in walk(ramp.base)):
            continue
        start = terms.sum_of(ramp.base)
        rest = frozenset(start.terms.items())
        outside = (terms.key(index) for index in outer)
        lanes = (ramp.lanes, _height(access), terms.key(ramp.stride), *outside)
        side = sides.setdefault((access.buffer.data, access.buffer.dtype, *lanes, rest), {})
        side.setdefault(start.const, []).append(access)
    for side in sides.values():
        starts = sorted(side)
        while starts:
            size = side[starts[0]][0].indices[-1].dtype.lanes
            access = side[starts[0]][0]
            width = next((k for k in range(size) if starts[0] + k not in side), size)
            if width >= min(_FEWEST, size) and not _overlap(access, starts):
                square = _square(access, width)
                for number, place in enumerate(starts[:width]):
                    yield from (Column(each, square, number) for each in side[place])
            starts = starts[width:]


def _overlap(access: Access, starts: Sequence[int]) -> bool:
    """Whether rows of columns that are written contain values of one another.

    They may be read together, but one store would overwrite another's values.
    """
    stride = access.indices[-1].stride if isinstance(access.indices[-1], Ramp) else None
    if isinstance(access, BufferLoad) or not isinstance(stride, Const):
        return False
    return starts[-1] - starts[0] >= abs(int(stride.value))


def _height(access: Access) -> int:
    """Number of the first lanes that take part in an access."""
    assert access.indices
    return prefix(access.predicate) or access.indices[-1].dtype.lanes


def _square(access: Access, width: int) -> Square:
    *outer, ramp = access.indices
    assert isinstance(ramp, Ramp)
    element = access.buffer.dtype
    held = element.with_lanes(element.lanes * ramp.lanes)
    dtype = held if element.lanes == 1 else DType(f"int32x{ramp.lanes}")
    return Square(access.buffer, tuple(outer), ramp.base, ramp.stride, dtype, held, width,
                  _height(access))


def _as(code: Code, operand: str, dtype: DType, other: DType) -> str:
    """The bits of a vector as another type."""
    if dtype == other:
        return operand
    return code.op(f"bitcast {memory_type(dtype)} {operand} to {memory_type(other)}")


def transposed(code: Code, rows: Sequence[str], dtype: DType) -> list[str]:
    """The columns of a square of vectors of type `dtype`."""
    kind, size = memory_type(dtype), dtype.lanes
    piece = min(size, max(_PIECE_BITS // dtype.scalar.bits, 1))
    groups = [
        _within_pieces(code, rows[k : k + piece], kind, size) for k in range(0, size, piece)
    ]
    columns = [""] * size
    for k in range(piece):
        across = _exchanged(code, [group[k] for group in groups], kind, piece)
        for number, operand in enumerate(across):
            columns[number * piece + k] = operand
    return columns


def _within_pieces(code: Code, rows: Sequence[str], kind: str, size: int) -> list[str]:
    """The square in each piece transposed: halves are interleaved, again and again."""
    piece, found = len(rows), list(rows)
    half = piece // 2
    for _ in range(piece.bit_length() - 1):
        found = [
            _shuffled(code, kind, found[k], found[k + half], [
                place
                for start in range(part, size, piece)
                for lane in range(start, start + half)
                for place in (lane, size + lane)
            ])
            for k in range(half)
            for part in (0, half)
        ]
    return found


def _exchanged(code: Code, rows: Sequence[str], kind: str, piece: int) -> list[str]:
    """A square of pieces transposed: its quarters change places, then the quarters of those."""
    found, count = list(rows), len(rows)
    size = count * piece
    step = count // 2
    while step:
        for k in range(count):
            if k & step:
                continue
            a, b = found[k], found[k + step]
            for number, moved in ((k, 0), (k + step, step)):
                found[number] = _shuffled(code, kind, a, b, [
                    (place + moved) * piece + lane if not place & step
                    else size + (place - step + moved) * piece + lane
                    for place in range(count)
                    for lane in range(piece)
                ])
        step //= 2
    return found


def _shuffled(code: Code, kind: str, a: str, b: str, places: list[int]) -> str:
    return code.op(f"shufflevector {kind} {a}, {kind} {b}, {shuffle_mask(places)}")
