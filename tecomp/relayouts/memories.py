"""The two memories of a copy, as unsigned integers of one width, and offsets in them."""

from __future__ import annotations

from dataclasses import dataclass, replace

from tecomp.codegen.memory.stream import STREAM
from tecomp.ir.language.dtype import DType
from tecomp.ir.language.expr import BinOp, Const, Expr, binary, index_value, is_const
from tecomp.ir.language.stmt import Buffer, DeclBuffer, Stmt


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
        """Bytes of an element of the result."""
        return self.result.dtype.bytes

    @property
    def widths(self) -> tuple[int, int]:
        """Bytes of an element of the source, and of the result."""
        source = self.source
        return (self.width if isinstance(source, int) else source.dtype.bytes), self.width

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
