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
    BindName,
    ParenthesizedOperand,
    Piece,
    Pieces,
    Printed,
    PrintedName,
    ReleaseName,
    comma,
    quote_literal,
    tuple_of,
)
from tecomp.ir.nodes.structural_equality import structural_equal


class Stmt(Printed):
    """Base class of statements; `==` compares structurally, up to renaming of bound variables.

    >>> from tecomp import te
    >>> A = te.placeholder((4,), name="A")
    >>> B = te.extern((4,), [A], lambda ins, outs: te.for_range(
    ...     0, 4, lambda i: outs[0].store(i, ins[0][i] * 2.0)), name="B")
    >>> isinstance(B.op.statement, te.Stmt)
    True
    """

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stmt) and structural_equal(self, other)

    __hash__ = object.__hash__


class ForKind(Enum):
    """Execution kind of a loop; the value is its keyword in the printed text."""

    SERIAL = "range"
    PARALLEL = "parallel"
    VECTORIZED = "vectorized"
    UNROLLED = "unrolled"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class For(Stmt):
    """Loop over `extent` consecutive values of `loop_var`, starting at `min`.

    `thread` is the axis of the core grid to which the loop is bound, such as `core.x`: each core
    along this axis executes one iteration. It is empty for a loop that is not bound.
    """

    bound_fields: ClassVar[tuple[str, ...]] = ("loop_var",)

    loop_var: Var
    min: Expr
    extent: Expr
    kind: ForKind
    body: Stmt
    thread: str = ""

    def bound(self) -> tuple[Var, ...]:
        """Return the variables that this node binds."""
        return (self.loop_var,)

    def print_tokens(self) -> Pieces:
        """Yield the pieces of `for i in range(n):`, or `range(min, extent=n)` if `min` is not 0."""
        yield BindName(self.loop_var)
        yield from ("for ", PrintedName(self.loop_var), f" in {self.kind.value}(")
        start = self.min
        zero = is_const(start, 0) and start.dtype == self.extent.dtype
        arguments: list[Piece] = [] if zero else [ParenthesizedOperand(start)]
        yield from comma([*arguments, "" if zero else "extent="])
        yield ParenthesizedOperand(self.extent)
        yield from _dtype_annotation(self.loop_var, self.extent)
        yield f", thread={quote_literal(self.thread)}):" if self.thread else "):"
        yield from block(self.body)
        yield ReleaseName(self.loop_var)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class IfThenElse(Stmt):
    """Conditional statement; `else_case` is None if there is no else branch."""

    condition: Expr
    then_case: Stmt
    else_case: Stmt | None = None

    def print_tokens(self) -> Pieces:
        """Yield the pieces of a Python `if` statement."""
        yield from ("if ", ParenthesizedOperand(self.condition), ":")
        yield from block(self.then_case)
        if self.else_case is not None:
            yield from (NEWLINE, "else:")
            yield from block(self.else_case)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class BufferStore(Stmt):
    """Store `buffer[indices] = value`; a `predicate` masks the lanes that are written."""

    buffer: Buffer
    value: Expr
    indices: tuple[Expr, ...]
    predicate: Expr | None = None

    def print_tokens(self) -> Pieces:
        """Return the pieces of `A[i, j] = x`, or of `store(A[i, j], x, where=p)` if masked."""
        element = access(self.buffer, self.indices)
        if self.predicate is None:
            return (*element, " = ", ParenthesizedOperand(self.value))
        where = (", where=", ParenthesizedOperand(self.predicate))
        return ("store(", *element, ", ", ParenthesizedOperand(self.value), *where, ")")


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Prefetch(Stmt):
    """Hint to prefetch the cache line of the element that the load `element` addresses.

    The statement does not change any value.
    """

    element: Expr

    def print_tokens(self) -> Pieces:
        """Return the pieces of `prefetch(A[i, j])`."""
        return ("prefetch(", ParenthesizedOperand(self.element), ")")


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class BufferRealize(Stmt):
    """Scope in which the region `bounds` of `buffer` is allocated.

    Indices in `body` refer to the full buffer, not to the region. The node exists only before
    flattening: `lower_storage` replaces it by an `Allocate`.

    Attributes:
        buffer: Full buffer, of which only the region is stored.
        bounds: Range of the region along each axis.
        body: Statement during which the region is allocated.
        aligns: Triples (axis, factor, offset) of `storage_align`: the stride of the axis is
            congruent to offset modulo factor.
        ahead: Variable of an enclosing loop, if the region is double-buffered: the region of the
            next iteration is computed into a second copy before the current one is used.
        carried: Variable of an enclosing loop, if the buffer is rolling: elements computed by the
            previous iteration remain available where the regions of both iterations overlap.
    """

    buffer: Buffer
    bounds: tuple[Range, ...]
    body: Stmt
    aligns: tuple[tuple[int, int, int], ...] = ()
    ahead: Expr | None = None
    carried: Expr | None = None

    def bound(self) -> tuple[Var, ...]:
        """Return the variables that this node binds."""
        return (self.buffer.data,)

    def print_tokens(self) -> Pieces:
        """Return the pieces of `with BufferRealize(Buffer(...), bounds=((min, n), ...)) as A:`."""
        aligns = f", aligns={self.aligns}" if self.aligns else ""
        ahead = () if self.ahead is None else (", ahead=", ParenthesizedOperand(self.ahead))
        carried = () if self.carried is None else (", carried=", ParenthesizedOperand(self.carried))
        arguments = (", bounds=", *tuple_of(self.bounds), aligns, *ahead, *carried)
        return _with_buffer("BufferRealize", self.buffer, self.body, arguments)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Allocate(Stmt):
    """Scope in which memory for `buffer` is allocated; its contents are initially undefined."""

    buffer: Buffer
    body: Stmt

    def bound(self) -> tuple[Var, ...]:
        """Return the variables that this node binds."""
        return (self.buffer.data,)

    def print_tokens(self) -> Pieces:
        """Return the pieces of `with Allocate(Buffer(...)) as A:`."""
        return _with_buffer("Allocate", self.buffer, self.body)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class DeclBuffer(Stmt):
    """Scope in which `buffer` is declared as another view of existing memory."""

    buffer: Buffer
    body: Stmt

    def print_tokens(self) -> Pieces:
        """Return the pieces of `with DeclBuffer(Buffer(..., data=A.data)) as B:`."""
        return _with_buffer("DeclBuffer", self.buffer, self.body, view=True)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Let(Stmt):
    """Binding of `var` to `value`, which is evaluated once, within `body`."""

    bound_fields: ClassVar[tuple[str, ...]] = ("var",)

    var: Var
    value: Expr
    body: Stmt

    def bound(self) -> tuple[Var, ...]:
        """Return the variables that this node binds."""
        return (self.var,)

    def print_tokens(self) -> Pieces:
        """Yield the pieces of `x = value`, followed by `body` as the rest of the enclosing block.

        If the dtypes of `var` and `value` differ, yield the form of `scoped` instead.
        """
        if self.var.dtype != self.value.dtype:
            yield from self.scoped()
            return
        yield from (
            BindName(self.var),
            PrintedName(self.var),
            " = ",
            ParenthesizedOperand(self.value),
            NEWLINE,
        )
        yield from (ParenthesizedOperand(self.body), ReleaseName(self.var))

    def scoped(self) -> Pieces:
        """Yield the pieces of `with Let(value) as x:` with an indented block.

        This form is required where another statement follows in the enclosing block.
        """
        yield from (
            "with Let(",
            ParenthesizedOperand(self.value),
            *_dtype_annotation(self.var, self.value),
            ") as ",
        )
        yield from (BindName(self.var), PrintedName(self.var), ":")
        yield from block(self.body)
        yield ReleaseName(self.var)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class SeqStmt(Stmt):
    """Sequence of statements; nested sequences are flattened, and an empty sequence is a no-op."""

    stmts: tuple[Stmt, ...]

    def __post_init__(self) -> None:
        if any(isinstance(stmt, SeqStmt) for stmt in self.stmts):
            parts = (s.stmts if isinstance(s, SeqStmt) else (s,) for s in self.stmts)
            object.__setattr__(self, "stmts", tuple(chain.from_iterable(parts)))

    def __len__(self) -> int:
        """Return the number of statements."""
        return len(self.stmts)

    def __bool__(self) -> bool:
        """Return True, also for an empty sequence, so that a truth test means "is not None"."""
        return True

    def __getitem__(self, index: int) -> Stmt:
        """Return the statement at an index, which may be negative."""
        return self.stmts[index]

    @property
    def stands_for(self) -> Stmt:
        """Equivalent simpler statement: the only statement of a singleton sequence, else `self`."""
        return self.stmts[0] if len(self.stmts) == 1 else self

    def print_tokens(self) -> Pieces:
        """Yield the statements on one line each, or `pass` if there are none."""
        if not self.stmts:
            yield "pass"
        for count, stmt in enumerate(self.stmts):
            if count:
                yield NEWLINE
            is_last = count == len(self.stmts) - 1
            yield ParenthesizedOperand(stmt if is_last or not isinstance(stmt, Let)
                else _Scoped(stmt))


@dataclass(frozen=True, slots=True)
class _Scoped:
    """`Let` that is printed with its own block because other statements follow."""

    let: Let

    def print_tokens(self) -> Pieces:
        return self.let.scoped()


def seq(*stmts: Stmt) -> Stmt:
    """Return a sequence of the statements, flattened; a single statement is returned itself."""
    return SeqStmt(stmts).stands_for


def loops_over_elements(variables: Sequence[Var], shape: Sequence[int | Expr], body: Stmt) -> Stmt:
    """Wrap `body` in serial loops over all indices of a shape; the last axis is innermost."""
    for var, extent in zip(reversed(variables), reversed(shape), strict=True):
        body = For(var, index_value(0), index_value(extent), ForKind.SERIAL, body)
    return body


def _with_buffer(
    kind: str, buffer: Buffer, body: Stmt, options: Pieces = (), *, view: bool = False
) -> Pieces:
    yield from (f"with {kind}(", *declaration(buffer, view=view), *options, ") as ")
    yield from (BindName(buffer), PrintedName(buffer), ":")
    yield from block(body)
    yield ReleaseName(buffer)


def block(body: Stmt) -> Pieces:
    """Return the pieces of a statement as an indented block on new lines."""
    return (INDENT, NEWLINE, ParenthesizedOperand(body), DEDENT)


def _dtype_annotation(var: Var, value: Expr) -> Pieces:
    """Return the dtype annotation of `var` if its dtype differs from that of `value`."""
    return () if var.dtype == value.dtype else (f', dtype="{var.dtype}"',)
