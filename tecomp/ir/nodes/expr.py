"""The language of expressions; its arithmetic is in `tecomp.ir.nodes.expr_nodes`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import overload

from tecomp.errors import TypeMismatchError
from tecomp.ir.nodes.buffer import Buffer
from tecomp.ir.nodes.dtype import BOOL, INT64, DType
from tecomp.ir.nodes.expr_nodes import (
    Binary,
    Broadcast,
    Cast,
    Compare,
    Const,
    Expr,
    Like,
    Not,
    Var,
    as_expr,
    binary,
    cast,
    compare,
    const,
    divided,
    match_types,
)
from tecomp.ir.nodes.operators import BinOp, CmpOp, Scalar, integer_range, result_type
from tecomp.ir.nodes.printer import Name, Operand, Piece, Pieces, comma, operands, quoted

__all__ = [
    "BinOp",
    "Binary",
    "Broadcast",
    "BufferLoad",
    "Call",
    "Cast",
    "CmpOp",
    "Compare",
    "Const",
    "Expr",
    "Like",
    "Not",
    "Ramp",
    "Scalar",
    "Select",
    "Var",
    "access",
    "as_expr",
    "binary",
    "cast",
    "compare",
    "condition_of",
    "const",
    "divided",
    "if_then_else",
    "index_value",
    "integer_range",
    "is_const",
    "logical_and",
    "logical_or",
    "match_types",
    "select",
]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Select(Expr):
    """`a` where `condition` holds, else `b`; both are evaluated."""

    condition: Expr
    a: Expr
    b: Expr
    dtype: DType = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "dtype", self.a.dtype)

    def pieces(self) -> Pieces:
        """As a call of `select`."""
        return ("select(", *operands((self.condition, self.a, self.b)), ")")


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Call(Expr):
    """A call of one of the functions in `tecomp.ir.nodes.operators`, or of C's of numbers."""

    name: str
    args: tuple[Expr, ...]
    dtype: DType

    def pieces(self) -> Pieces:
        """As a call, with its type where that does not follow from the arguments."""
        follows = result_type(self.name, [arg.dtype for arg in self.args])
        arguments: list[Piece] = [Operand(arg) for arg in self.args]
        if follows != self.dtype:
            arguments.append(f'dtype="{self.dtype}"')
        if follows is None:
            arguments.insert(0, quoted(self.name))
        return ("call(" if follows is None else f"{self.name}(", *comma(arguments), ")")


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class BufferLoad(Expr):
    """The element of `buffer` at `indices`, one index an axis.

    The type counts both lanes: a `float32x4` buffer read at one index gives `float32x4`, a
    `float32` buffer read at 4 indices too. Where `predicate` is false nothing is read, and
    the value is 0.

    Source:
        transform_layout RFC, "What convention should be used for buffer indexing?", option 1.
    """

    buffer: Buffer
    indices: tuple[Expr, ...]
    predicate: Expr | None = None
    dtype: DType = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "dtype", self.buffer.element_at(self.indices))

    def pieces(self) -> Pieces:
        """`A[i, j]`, or `A.load(i, j, where=p)`."""
        if self.predicate is None:
            return access(self.buffer, self.indices)
        inner: list[Piece] = [*map(Operand, self.indices), "where="]
        return (Name(self.buffer), ".load(", *comma(inner), Operand(self.predicate), ")")


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Ramp(Expr):
    """`base, base + stride, ...`: `lanes` values of one vector."""

    base: Expr
    stride: Expr
    lanes: int
    dtype: DType = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "dtype", self.base.dtype.with_lanes(self.lanes))

    def pieces(self) -> Pieces:
        """As a call of `ramp`."""
        return ("ramp(", *operands((self.base, self.stride, self.lanes)), ")")


def access(buffer: Buffer, indices: tuple[Expr, ...]) -> Pieces:
    """`buffer[indices]` as pieces of text."""
    return (Name(buffer), "[", *(operands(indices) if indices else ("()",)), "]")


def logical_and(*conditions: Expr) -> Expr:
    """All of the conditions; `true` for none."""
    return _chain(BinOp.AND, conditions, empty=True)


def logical_or(*conditions: Expr) -> Expr:
    """Any of the conditions; `false` for none."""
    return _chain(BinOp.OR, conditions, empty=False)


def _chain(op: BinOp, conditions: tuple[Expr, ...], *, empty: bool) -> Expr:
    if not conditions:
        return Const(empty, BOOL)
    joined = conditions[0]
    for condition in conditions[1:]:
        joined = binary(op, joined, condition)
    return joined


def select(condition: Like, a: Like, b: Like) -> Expr:
    """`a` where `condition` holds, else `b`; both are evaluated."""
    test = condition_of(condition, "Select")
    x, y = match_types(a, b, "Select")
    lanes = max(test.dtype.lanes, x.dtype.lanes)
    return Select(*(node if node.dtype.lanes == lanes else Broadcast(node, lanes)
                    for node in (test, x, y)))


def if_then_else(condition: Like, a: Like, b: Like) -> Expr:
    """`a` if `condition` holds, else `b`; only that one is evaluated, so it guards reads."""
    test = condition_of(condition, "if_then_else")
    x, y = match_types(a, b, "if_then_else")
    return Call("if_then_else", (test, x, y), x.dtype)


def condition_of(value: Like, who: str) -> Expr:
    """`value` as a truth value.

    Raises:
        TypeMismatchError: it is a number.
    """
    node = as_expr(value)
    if not node.dtype.is_bool:
        raise TypeMismatchError(f"{who} takes a condition, not {node.dtype}; compare it with != 0")
    return node


def is_const(node: object, value: Scalar) -> bool:
    """Whether it is the literal `value`, of any type.

    >>> is_const(Const(0), 0), is_const(Var("i"), 0)
    (True, False)
    """
    return isinstance(node, Const) and node.value == value


@overload
def index_value(value: int) -> Const: ...
@overload
def index_value(value: int | Expr) -> Expr: ...
def index_value(value: int | Expr) -> Expr:
    """An extent or index as an int64 expression."""
    return Const(value, INT64) if isinstance(value, int) else cast(INT64, value)
