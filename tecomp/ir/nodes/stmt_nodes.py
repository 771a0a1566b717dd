"""Statement node classes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import chain
from typing import ClassVar

from tecomp.ir.nodes.buffer import Buffer, Range, declaration
from tecomp.ir.nodes.expr import Expr, Var, access, index_value, is_const
from tecomp.ir.nodes.printer import (
    DEDENT,
    INDENT,
    NEWLINE,
    Bind,
    Name,
    Operand,
    Piece,
    Pieces,
    Printed,
    Release,
    comma,
    quoted,
    tuple_of,
)
from tecomp.ir.nodes.structural_equality import same


class Stmt(Printed):
    """A statement; two are equal if they are the same up to the names of their variables.

    >>> from tecomp import te
    >>> A = te.placeholder((4,), name="A")
    >>> B = te.extern((4,), [A], lambda ins, outs: te.for_range(
    ...     0, 4, lambda i: outs[0].store(i, ins[0][i] * 2.0)), name="B")
    >>> isinstance(B.op.statement, te.Stmt)
    True
    """

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stmt) and same(self, other)

    __hash__ = object.__hash__


class ForKind(Enum):
    """How a loop runs; the value is its word in printed text."""

    SERIAL = "range"
    PARALLEL = "parallel"
    VECTORIZED = "vectorized"
    UNROLLED = "unrolled"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class For(Stmt):
    """`loop_var` runs from `min` over `extent` values.

    `thread` is the axis of the grid of cores whose cores run one value each, such as `core.x`.
    """

    binds: ClassVar[tuple[str, ...]] = ("loop_var",)

    loop_var: Var
    min: Expr
    extent: Expr
    kind: ForKind
    body: Stmt
    thread: str = ""

    def bound(self) -> tuple[Var, ...]:
        """The variables that this node binds."""
        return (self.loop_var,)

    def pieces(self) -> Pieces:
        """`for i in range(n):`, with both bounds where it does not start at 0."""
        yield Bind(self.loop_var)
        yield from ("for ", Name(self.loop_var), f" in {self.kind.value}(")
        start = self.min
        zero = is_const(start, 0) and start.dtype == self.extent.dtype
        arguments: list[Piece] = [] if zero else [Operand(start)]
        yield from comma([*arguments, "" if zero else "extent="])
        yield Operand(self.extent)
        yield from _declared(self.loop_var, self.extent)
        yield f", thread={quoted(self.thread)}):" if self.thread else "):"
        yield from block(self.body)
        yield Release(self.loop_var)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class IfThenElse(Stmt):
    """One of two statements; `else_case` may be missing."""

    condition: Expr
    then_case: Stmt
    else_case: Stmt | None = None

    def pieces(self) -> Pieces:
        """As in Python."""
        yield from ("if ", Operand(self.condition), ":")
        yield from block(self.then_case)
        if self.else_case is not None:
            yield from (NEWLINE, "else:")
            yield from block(self.else_case)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class BufferStore(Stmt):
    """`buffer[indices] = value`, in the lanes where `predicate` holds."""

    buffer: Buffer
    value: Expr
    indices: tuple[Expr, ...]
    predicate: Expr | None = None

    def pieces(self) -> Pieces:
        """`A[i, j] = x`, or `store(A[i, j], x, where=p)`."""
        place = access(self.buffer, self.indices)
        if self.predicate is None:
            return (*place, " = ", Operand(self.value))
        where = (", where=", Operand(self.predicate))
        return ("store(", *place, ", ", Operand(self.value), *where, ")")


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Prefetch(Stmt):
    """Asks for the cache line of the element `place`, a load, to be fetched; changes nothing."""

    place: Expr

    def pieces(self) -> Pieces:
        """`prefetch(A[i, j])`."""
        return ("prefetch(", Operand(self.place), ")")


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class BufferRealize(Stmt):
    """The part `bounds` of `buffer` exists during `body`; indices are those of the whole.

    Exists before flattening only; `storage` turns it into an `Allocate`. `aligns` are the
    (axis, factor, offset) of `storage_align`: the stride of axis is offset modulo factor. `ahead`
    is the variable of a loop around whose next iteration's part is to be computed before this one's
    is used, in a second copy. `carried` is the variable of one whose last iteration's part is still
    there, as far as it is among this one's.
    """

    buffer: Buffer
    bounds: tuple[Range, ...]
    body: Stmt
    aligns: tuple[tuple[int, int, int], ...] = ()
    ahead: Expr | None = None
    carried: Expr | None = None

    def bound(self) -> tuple[Var, ...]:
        """The variables that this node binds."""
        return (self.buffer.data,)

    def pieces(self) -> Pieces:
        """`with BufferRealize(Buffer(...), bounds=((min, extent), ...)) as A:`."""
        aligns = f", aligns={self.aligns}" if self.aligns else ""
        ahead = () if self.ahead is None else (", ahead=", Operand(self.ahead))
        carried = () if self.carried is None else (", carried=", Operand(self.carried))
        arguments = (", bounds=", *tuple_of(self.bounds), aligns, *ahead, *carried)
        return _with_buffer("BufferRealize", self.buffer, self.body, arguments)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Allocate(Stmt):
    """Memory for `buffer` exists during `body`; its contents start undefined."""

    buffer: Buffer
    body: Stmt

    def bound(self) -> tuple[Var, ...]:
        """The variables that this node binds."""
        return (self.buffer.data,)

    def pieces(self) -> Pieces:
        """`with Allocate(Buffer(...)) as A:`."""
        return _with_buffer("Allocate", self.buffer, self.body)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class DeclBuffer(Stmt):
    """`buffer` is another view of memory that exists already."""

    buffer: Buffer
    body: Stmt

    def pieces(self) -> Pieces:
        """`with DeclBuffer(Buffer(..., data=A.data)) as B:`."""
        return _with_buffer("DeclBuffer", self.buffer, self.body, view=True)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Let(Stmt):
    """`var` stands for `value`, computed once, during `body`."""

    binds: ClassVar[tuple[str, ...]] = ("var",)

    var: Var
    value: Expr
    body: Stmt

    def bound(self) -> tuple[Var, ...]:
        """The variables that this node binds."""
        return (self.var,)

    def pieces(self) -> Pieces:
        """`x = value`, and on the next lines `body`, which is the rest of the block."""
        if self.var.dtype != self.value.dtype:
            yield from self.scoped()
            return
        yield from (Bind(self.var), Name(self.var), " = ", Operand(self.value), NEWLINE)
        yield from (Operand(self.body), Release(self.var))

    def scoped(self) -> Pieces:
        """`with Let(value) as x:`, with a block of its own, as something comes after it."""
        yield from ("with Let(", Operand(self.value), *_declared(self.var, self.value), ") as ")
        yield from (Bind(self.var), Name(self.var), ":")
        yield from block(self.body)
        yield Release(self.var)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class SeqStmt(Stmt):
    """Statements in order, opened up where they are sequences; without any, it does nothing."""

    stmts: tuple[Stmt, ...]

    def __post_init__(self) -> None:
        if any(isinstance(stmt, SeqStmt) for stmt in self.stmts):
            parts = (s.stmts if isinstance(s, SeqStmt) else (s,) for s in self.stmts)
            object.__setattr__(self, "stmts", tuple(chain.from_iterable(parts)))

    def __len__(self) -> int:
        """Number of statements."""
        return len(self.stmts)

    def __bool__(self) -> bool:
        """True, also of a sequence without statements: a statement is there."""
        return True

    def __getitem__(self, index: int) -> Stmt:
        """The statement at an index, which may be negative."""
        return self.stmts[index]

    @property
    def stands_for(self) -> Stmt:
        """The same thing in fewer words: one statement in order is that statement."""
        return self.stmts[0] if len(self.stmts) == 1 else self

    def pieces(self) -> Pieces:
        """One statement a line; `pass` for none."""
        if not self.stmts:
            yield "pass"
        for count, stmt in enumerate(self.stmts):
            if count:
                yield NEWLINE
            is_last = count == len(self.stmts) - 1
            yield Operand(stmt if is_last or not isinstance(stmt, Let) else _Scoped(stmt))


@dataclass(frozen=True, slots=True)
class _Scoped:
    """A `Let` that ends before its block does."""

    let: Let

    def pieces(self) -> Pieces:
        return self.let.scoped()


def seq(*stmts: Stmt) -> Stmt:
    """The statements one after another, nested sequences opened up."""
    return SeqStmt(stmts).stands_for


def over_elements(variables: Sequence[Var], shape: Sequence[int | Expr], body: Stmt) -> Stmt:
    """`body` in serial loops over all indices of a shape, the last one innermost."""
    for var, extent in zip(reversed(variables), reversed(shape), strict=True):
        body = For(var, index_value(0), index_value(extent), ForKind.SERIAL, body)
    return body


def _with_buffer(
    word: str, buffer: Buffer, body: Stmt, more: Pieces = (), *, view: bool = False
) -> Pieces:
    yield from (f"with {word}(", *declaration(buffer, view=view), *more, ") as ")
    yield from (Bind(buffer), Name(buffer), ":")
    yield from block(body)
    yield Release(buffer)


def block(body: Stmt) -> Pieces:
    """A body, one step further in on lines of its own."""
    return (INDENT, NEWLINE, Operand(body), DEDENT)


def _declared(var: Var, value: Expr) -> Pieces:
    """The type of `var` where it is not the type of what it takes its value from."""
    return () if var.dtype == value.dtype else (f', dtype="{var.dtype}"',)
