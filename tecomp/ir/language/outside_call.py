"""Statements that call functions outside of the program, on memory of the program."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import ClassVar, TypeAlias

from tecomp.errors import InternalError
from tecomp.ir.language.expr import BufferLoad, Expr, Var
from tecomp.ir.language.stmt import Buffer, BufferStore, Stmt
from tecomp.ir.language.text import (
    Bind,
    Name,
    Operand,
    Piece,
    Pieces,
    Release,
    comma,
    quoted,
    tuple_of,
)

Passed: TypeAlias = "Expr | Stmt | str"


class Convention(Enum):
    """How a function is called; the value is its word in printed text."""

    PACKED = "call_packed"
    C = "call_extern"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ArrayArgument(Stmt):
    """Memory that a call takes: an array whose element at `variables` is where `access` is.

    Only stands among the arguments of an `OutsideCall`. The access is a load, or a store of what is
    there where the call may write: it happens to any of the elements, in any order.

    Attributes:
        variables: one for each axis.
        shape: the extents of the array.
        access: a `BufferLoad`, or a `BufferStore` of that.
    """

    binds: ClassVar[tuple[str, ...]] = ("variables",)

    variables: tuple[Var, ...]
    shape: tuple[Expr, ...]
    access: Expr | Stmt

    def bound(self) -> tuple[Var, ...]:
        """The variables that this node binds."""
        return self.variables

    @property
    def is_written(self) -> bool:
        """Whether the call may write there."""
        return isinstance(self.access, BufferStore)

    @property
    def place(self) -> BufferLoad:
        """The element at `variables`.

        Raises:
            InternalError: it is no element.
        """
        place = self.access.value if isinstance(self.access, BufferStore) else self.access
        if not isinstance(place, BufferLoad):
            raise InternalError(f"`{place}` is no element that an array could have")
        return place

    def pieces(self) -> Pieces:
        """`reads(lambda i, j: A[i, j], (4, 8))`, or `writes(...)`."""
        yield from map(Bind, self.variables)
        yield f"{'writes' if self.is_written else 'reads'}(lambda"
        for count, var in enumerate(self.variables):
            yield from (", " if count else " ", Name(var))
        yield from (": ", Operand(self.place), ", ")
        yield from tuple_of(self.shape)
        yield ")"
        yield from map(Release, self.variables)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class OutsideCall(Stmt):
    """Calls a function that was registered, with arrays, numbers and texts.

    Nothing is known of it but that it touches no memory besides its arrays. If it fails, so does
    the function that it is called from.

    Attributes:
        function: its name.
        convention: how it is called.
        arguments: in order.
        multiply_adds: how many it does, if its user says so: what it costs besides its memory.
    """

    function: str
    convention: Convention
    arguments: tuple[Passed, ...]
    multiply_adds: Expr | None = None

    @property
    def arrays(self) -> tuple[ArrayArgument, ...]:
        """The memory that it takes."""
        return tuple(each for each in self.arguments if isinstance(each, ArrayArgument))

    def pieces(self) -> Pieces:
        """`call_packed("gemm", reads(...), writes(...), 3)`."""
        yield f"{self.convention.value}("
        given: list[Piece] = [quoted(self.function)]
        for each in self.arguments:
            given.append(quoted(each) if isinstance(each, str) else Operand(each))
        yield from comma(given)
        yield from () if self.multiply_adds is None else (
            ", multiply_adds=", Operand(self.multiply_adds))
        yield ")"


def array_argument(
    buffer: Buffer,
    variables: tuple[Var, ...],
    shape: tuple[Expr, ...],
    indices: tuple[Expr, ...],
    *,
    is_written: bool,
) -> ArrayArgument:
    """The array whose element at `variables` is at `indices` of a buffer."""
    place = BufferLoad(buffer, indices)
    access = BufferStore(buffer, place, indices) if is_written else place
    return ArrayArgument(variables, shape, access)
