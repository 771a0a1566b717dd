"""Expression nodes beyond arithmetic; the arithmetic nodes are in `tecomp.ir.nodes.expr_nodes`."""

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
    build_division,
    cast,
    compare,
    const,
    match_types,
)
from tecomp.ir.nodes.operators import BinOp, CmpOp, Scalar, integer_range, result_type
from tecomp.ir.nodes.printer import (
    ParenthesizedOperand,
    Piece,
    Pieces,
    PrintedName,
    comma,
    operands,
    quote_literal,
)

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
    "build_division",
    "cast",
    "compare",
    "condition_of",
    "const",
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
    """Element-wise choice: `a` where `condition` is true, else `b`; both are evaluated."""

    condition: Expr
    a: Expr
    b: Expr
    dtype: DType = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "dtype", self.a.dtype)

    def print_tokens(self) -> Pieces:
        """Return the pieces of a call of `select`."""
        return ("select(", *operands((self.condition, self.a, self.b)), ")")


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Call(Expr):
    """Call of an intrinsic in `tecomp.ir.nodes.operators` or of a registered scalar C function."""

    name: str
    args: tuple[Expr, ...]
    dtype: DType

    def print_tokens(self) -> Pieces:
        """Return the pieces of a call; include the dtype if the arguments do not determine it."""
        inferred = result_type(self.name, [arg.dtype for arg in self.args])
        arguments: list[Piece] = [ParenthesizedOperand(arg) for arg in self.args]
        if inferred != self.dtype:
            arguments.append(f'dtype="{self.dtype}"')
        if inferred is None:
            arguments.insert(0, quote_literal(self.name))
        return ("call(" if inferred is None else f"{self.name}(", *comma(arguments), ")")


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class BufferLoad(Expr):
    """Load of the element of `buffer` at `indices`, one index for each axis.

    The lanes multiply: a `float32x4` buffer read at a scalar index gives `float32x4`, and so does a
    `float32` buffer read at an index of 4 lanes. Lanes where `predicate` is false are not read and
    give 0.

    Source:
        transform_layout RFC, "What convention should be used for buffer indexing?", option 1.
    """

    buffer: Buffer
    indices: tuple[Expr, ...]
    predicate: Expr | None = None
    dtype: DType = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "dtype", self.buffer.element_at(self.indices))

    def print_tokens(self) -> Pieces:
        """Return the pieces of `A[i, j]`, or of `A.load(i, j, where=p)` if predicated."""
        if self.predicate is None:
            return access(self.buffer, self.indices)
        inner: list[Piece] = [*map(ParenthesizedOperand, self.indices), "where="]
        return (
            PrintedName(self.buffer),
            ".load(",
            *comma(inner),
            ParenthesizedOperand(self.predicate),
            ")",
        )


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Ramp(Expr):
    """Vector `base, base + stride, ...` of `lanes` values."""

    base: Expr
    stride: Expr
    lanes: int
    dtype: DType = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "dtype", self.base.dtype.with_lanes(self.lanes))

    def print_tokens(self) -> Pieces:
        """Return the pieces of a call of `ramp`."""
        return ("ramp(", *operands((self.base, self.stride, self.lanes)), ")")


def access(buffer: Buffer, indices: tuple[Expr, ...]) -> Pieces:
    """Return the pieces of `buffer[indices]`."""
    return (PrintedName(buffer), "[", *(operands(indices) if indices else ("()",)), "]")


def logical_and(*conditions: Expr) -> Expr:
    """Return the conjunction of the conditions; True if there are none."""
    return _chain(BinOp.AND, conditions, empty=True)


def logical_or(*conditions: Expr) -> Expr:
    """Return the disjunction of the conditions; False if there are none."""
    return _chain(BinOp.OR, conditions, empty=False)


def _chain(op: BinOp, conditions: tuple[Expr, ...], *, empty: bool) -> Expr:
    if not conditions:
        return Const(empty, BOOL)
    joined = conditions[0]
    for condition in conditions[1:]:
        joined = binary(op, joined, condition)
    return joined


def select(condition: Like, a: Like, b: Like) -> Expr:
    """Build `Select(condition, a, b)` with common dtype and lanes; both values are evaluated."""
    test = condition_of(condition, "Select")
    x, y = match_types(a, b, "Select")
    lanes = max(test.dtype.lanes, x.dtype.lanes)
    return Select(*(node if node.dtype.lanes == lanes else Broadcast(node, lanes)
                    for node in (test, x, y)))


def if_then_else(condition: Like, a: Like, b: Like) -> Expr:
    """Build a conditional expression; only the chosen value is evaluated, so it can guard loads."""
    test = condition_of(condition, "if_then_else")
    x, y = match_types(a, b, "if_then_else")
    return Call("if_then_else", (test, x, y), x.dtype)


def condition_of(value: Like, operation: str) -> Expr:
    """Convert `value` to a boolean expression.

    Args:
        value: Boolean value or expression.
        operation: Name of the operation, for the message.

    Raises:
        TypeMismatchError: If the dtype of `value` is not bool.
    """
    node = as_expr(value)
    if not node.dtype.is_bool:
        raise TypeMismatchError(
            "{caller} expects a condition, got {dtype}; compare it with != 0",
            caller=operation, dtype=node.dtype,
        )
    return node


def is_const(node: object, value: Scalar) -> bool:
    """Return whether `node` is the literal `value`, of any dtype.

    >>> is_const(Const(0), 0), is_const(Var("i"), 0)
    (True, False)
    """
    return isinstance(node, Const) and node.value == value


@overload
def index_value(value: int) -> Const: ...
@overload
def index_value(value: int | Expr) -> Expr: ...
def index_value(value: int | Expr) -> Expr:
    """Convert an extent or index to an int64 expression."""
    return Const(value, INT64) if isinstance(value, int) else cast(INT64, value)
