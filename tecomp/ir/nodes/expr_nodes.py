"""Expression node classes; integer division and remainder round towards negative infinity.

Comparisons such as `a == b` build a node; use `structural_equality.same` to compare trees.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeAlias

import numpy as np

from tecomp.errors import DefinitionError, TypeMismatchError
from tecomp.ir.nodes.dtype import BOOL, FLOAT32, HANDLE, INT32, INT64, UINT64, DType, promote
from tecomp.ir.nodes.graph_utils import register
from tecomp.ir.nodes.numpy_protocol import (
    apply_numpy_function,
    indexes_array,
    operator_of_ufunc,
    record_refused_index,
)
from tecomp.ir.nodes.operators import (
    BITS,
    COMPARISONS,
    LEVELS,
    LOGIC,
    BinOp,
    CmpOp,
    Scalar,
    SizeBounds,
    holds,
    integer_result,
    literal,
)
from tecomp.ir.nodes.printer import (
    ParenthesizedOperand,
    Pieces,
    Precedence,
    Printed,
    PrintedName,
    operands,
    truncate,
)

register()

Like: TypeAlias = "Expr | Scalar | np.generic[Any]"
_OperatorMethod: TypeAlias = "Callable[[Expr, Like], Expr]"


def _operator_methods(op: BinOp) -> tuple[_OperatorMethod, _OperatorMethod]:
    """Return the method of a binary operator and of its reflected form.

    The methods return NotImplemented if an operand implements the operator itself.
    """
    is_division = op in (BinOp.FLOORDIV, BinOp.MOD)

    def apply(a: Like, b: Like) -> Expr:
        if getattr(b, "takes_operators", False) or getattr(a, "takes_operators", False):
            not_implemented: Expr = NotImplemented
            return not_implemented
        return build_division(op, a, b) if is_division else binary(op, a, b)

    return apply, lambda self, other: apply(other, self)


class Expr(Printed):
    """Value of type `dtype` that is evaluated at run time; frozen and hashed by identity.

    Operators build larger expressions: `/` is floating-point division, `//` and `%` round down, and
    comparisons are conditions without a truth value at compile time.

    >>> from tecomp import te
    >>> n = te.var("n")
    >>> n * 2 + 1, (n * 2 + 1).dtype, (n == 3).dtype
    (n * int32(2) + int32(1), 'int32', 'bool')
    """

    __slots__ = ()

    is_value: ClassVar[bool] = True
    # If True, operators of other nodes defer to this class (they return NotImplemented).
    takes_operators: ClassVar[bool] = False

    dtype: DType

    def __array_ufunc__(
        self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any
    ) -> Expr:
        """Apply a NumPy ufunc that corresponds to an operator, and reject other ufuncs."""
        result: Expr = operator_of_ufunc(ufunc, method, inputs, options)(*map(as_expr, inputs))
        return result

    def __index__(self) -> int:
        """Return the value of an integer literal.

        Raises:
            DefinitionError: If the expression is not an integer literal.
        """
        if isinstance(self, Const) and self.dtype.is_integer:
            return int(self.value)
        record_refused_index(self, sys._getframe(1))
        raise DefinitionError(
            "`{subject}` has no value before the kernel runs, and cannot be used as a count or an "
            "index; make an indexed array an input, X = te.placeholder(...), and write X[...]; "
            "make a count an axis, such as te.reduce_axis",
            kind="symbolic-value", subject=self,
        )

    def __array_function__(
        self, function: Callable[..., Any], types: object, args: Any, options: Any
    ) -> Any:
        """Apply a NumPy function to expressions as generic Python objects.

        Raises:
            TypeMismatchError: If the function does not support object arrays of expressions.
        """
        return apply_numpy_function(function, self, args, options)

    def __array__(self, dtype: Any = None, copy: object = None) -> np.ndarray[Any, Any]:
        """Return a zero-dimensional object array of this expression, or an array of a literal.

        Raises:
            DefinitionError: If the expression would index an array, or a non-literal become a
                number.
        """
        if dtype is not None and np.dtype(dtype) != object:
            if isinstance(self, Const):
                return np.array(self.value)
            raise DefinitionError(
                "`{subject}` has no value before the kernel runs, and cannot be converted to "
                "{dtype}; to read elements of an array, make the array an input, X = "
                "te.placeholder(array.shape, str(array.dtype)), and write X[...]",
                kind="symbolic-value", subject=self, dtype=np.dtype(dtype),
            )
        if indexes_array(self, sys._getframe(1)):
            raise DefinitionError(
                "`{subject}` has no value before the kernel runs, and cannot index an array; make "
                "the array an input, X = te.placeholder(array.shape, str(array.dtype)), and write "
                "X[...]",
                kind="symbolic-value", subject=self,
            )
        array = np.empty((), object)
        array[()] = self
        return array

    __add__, __radd__ = _operator_methods(BinOp.ADD)
    __sub__, __rsub__ = _operator_methods(BinOp.SUB)
    __mul__, __rmul__ = _operator_methods(BinOp.MUL)
    __truediv__, __rtruediv__ = _operator_methods(BinOp.DIV)
    __floordiv__, __rfloordiv__ = _operator_methods(BinOp.FLOORDIV)
    __mod__, __rmod__ = _operator_methods(BinOp.MOD)
    __and__, __rand__ = _operator_methods(BinOp.BITAND)
    __or__, __ror__ = _operator_methods(BinOp.BITOR)
    __xor__, __rxor__ = _operator_methods(BinOp.BITXOR)
    __lshift__, __rlshift__ = _operator_methods(BinOp.SHL)
    __rshift__, __rrshift__ = _operator_methods(BinOp.SHR)

    def __neg__(self) -> Expr:
        if self.dtype.is_float:
            # 0.0 - 0.0 is 0.0, but the negation of 0.0 must be -0.0.
            return binary(BinOp.MUL, self, -1)
        # A Python int would widen small integers to 32 bits and make unsigned types signed.
        zero = 0 if self.dtype.is_bool else Const(0, self.dtype.scalar)
        return binary(BinOp.SUB, zero, self)

    def __pos__(self) -> Expr:
        return self

    def __invert__(self) -> Expr:
        if self.dtype.is_bool:
            return Not(self)
        if self.dtype.is_float:
            raise TypeMismatchError(
                "~ expects integers or booleans, got {dtype}",
                dtype=self.dtype,
            )
        return binary(BinOp.BITXOR, self, Const(-1 if self.dtype.kind == "int" else
                      (1 << self.dtype.bits) - 1, self.dtype.scalar))

    def __lt__(self, other: Like) -> Expr:
        return compare(CmpOp.LT, self, other)

    def __le__(self, other: Like) -> Expr:
        return compare(CmpOp.LE, self, other)

    def __gt__(self, other: Like) -> Expr:
        return compare(CmpOp.GT, self, other)

    def __ge__(self, other: Like) -> Expr:
        return compare(CmpOp.GE, self, other)

    def __eq__(self, other: object) -> Expr:  # type: ignore[override]
        if not isinstance(other, COMPARABLE):
            return NotImplemented
        return compare(CmpOp.EQ, self, other)

    def __ne__(self, other: object) -> Expr:  # type: ignore[override]
        if not isinstance(other, COMPARABLE):
            return NotImplemented
        return compare(CmpOp.NE, self, other)

    def equal(self, other: Like) -> Expr:
        """Return the condition `self == other`.

        Raises:
            TypeMismatchError: If the dtypes of the operands have no common type.

        >>> from tecomp import te
        >>> n = te.var("n")
        >>> n.equal(3), n.equal(3).dtype
        (n == int32(3), 'bool')
        """
        return compare(CmpOp.EQ, self, other)

    __hash__ = object.__hash__

    def __bool__(self) -> bool:
        raise TypeMismatchError(
            "`{subject}` has no truth value before the kernel runs; write te.if_then_else(cond, a, "
            "b) for `a if cond else b`, te.all/te.any for and/or, te.min/te.max for min/max",
            kind="symbolic-value", subject=self,
        )

    def astype(self, dtype: str) -> Expr:
        """Convert the value to `dtype`; floats are truncated towards zero to integers, as in C.

        Raises:
            TypeMismatchError: If `dtype` is unknown.

        >>> from tecomp import te
        >>> te.var("n").astype("float32")
        cast("float32", n)
        """
        return cast(dtype, self)

    @property
    def precedence(self) -> Precedence:
        """Operator precedence of the printed form."""
        return Precedence.ATOM


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Var(Expr):
    """Variable; equal to itself only, regardless of its name.

    Attributes:
        name: Name.
        dtype: dtype.
        bounds: Values that a call may pass; None for all values.

    >>> from tecomp import te
    >>> n, other = te.var("n"), te.var("n")
    >>> n.name, n.dtype, n is other
    ('n', 'int32', False)
    >>> te.var("n", maximum=8).bounds.maximum
    8
    """

    is_variable: ClassVar[bool] = True

    name: str
    dtype: DType = INT64
    bounds: SizeBounds | None = field(default=None, kw_only=True)

    def print_tokens(self) -> Pieces:
        """Return the name in scope; the address of a buffer is printed as `.data` of the buffer."""
        return (PrintedName(self), ".data") if self.dtype == HANDLE else (PrintedName(self),)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Const(Expr):
    """Literal; `value` is a Python float, bool or int, according to `dtype`."""

    value: Scalar
    dtype: DType = INT64

    def __post_init__(self) -> None:
        kind = float if self.dtype.is_float else bool if self.dtype.is_bool else int
        if type(self.value) is not kind:
            object.__setattr__(self, "value", literal(self.value, self.dtype))

    @property
    def precedence(self) -> Precedence:
        """Operator precedence of the printed form; a bare negative literal is a unary minus."""
        return Precedence.UNARY if self.dtype == INT64 and self.value < 0 else Precedence.ATOM

    def print_tokens(self) -> Pieces:
        """Return a bare literal for int64 and bool, and a literal with its dtype otherwise."""
        if self.dtype in (INT64, BOOL):
            return (repr(self.value),)
        text = repr(self.value)
        finite = not isinstance(self.value, float) or math.isfinite(self.value)
        return (f"{self.dtype}({text})" if finite else f'{self.dtype}("{text}")',)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Cast(Expr):
    """Conversion of `value` to `dtype`.

    Floats are truncated and saturate at the integer range, NaN gives 0; integers wrap around; every
    nonzero value converts to True.
    """

    dtype: DType
    value: Expr

    def print_tokens(self) -> Pieces:
        """Return the pieces of a call of `cast`."""
        return (f'cast("{self.dtype}", ', ParenthesizedOperand(self.value), ")")


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Binary(Expr):
    """Binary operation `a op b`; both operands have the same dtype."""

    op: BinOp
    a: Expr
    b: Expr
    dtype: DType = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "dtype", self.a.dtype)

    @property
    def precedence(self) -> Precedence:
        """Operator precedence, as in Python."""
        return LEVELS[self.op]

    def print_tokens(self) -> Pieces:
        """Return the pieces of the expression; left-associative chains need no parentheses."""
        if self.op in (BinOp.MIN, BinOp.MAX):
            return (f"{self.op.value}(", *operands((self.a, self.b)), ")")
        level = self.precedence
        return (
            ParenthesizedOperand(self.a, level),
            f" {self.op.value} ",
            ParenthesizedOperand(self.b, level + 1),
        )


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Compare(Expr):
    """Comparison `a op b`, of dtype bool; both operands have the same dtype."""

    op: CmpOp
    a: Expr
    b: Expr
    dtype: DType = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "dtype", BOOL.with_lanes(self.a.dtype.lanes))

    def __bool__(self) -> bool:
        """Return the truth value of literals, or compare variables by identity, as in `i in axes`.

        Raises:
            TypeMismatchError: If this is neither a comparison of literals nor `==`, `!=` of
                variables.
        """
        # Operands of different dtypes were wrapped in casts to compare them.
        a, b = (x.value if isinstance(x, Cast) else x for x in (self.a, self.b))
        if isinstance(self.a, Const) and isinstance(self.b, Const):
            return bool(COMPARISONS[self.op](self.a.value, self.b.value))
        if self.op in (CmpOp.EQ, CmpOp.NE) and isinstance(a, Var) and isinstance(b, Var):
            return (a is b) == (self.op is CmpOp.EQ)
        return Expr.__bool__(self)

    @property
    def precedence(self) -> Precedence:
        """Operator precedence, as in Python."""
        return Precedence.COMPARE

    def print_tokens(self) -> Pieces:
        """Return the pieces of the Python comparison; comparisons are never chained."""
        inner = Precedence.COMPARE + 1
        return (
            ParenthesizedOperand(self.a, inner),
            f" {self.op.value} ",
            ParenthesizedOperand(self.b, inner),
        )


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Not(Expr):
    """Logical negation."""

    a: Expr
    dtype: DType = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "dtype", self.a.dtype)

    @property
    def precedence(self) -> Precedence:
        """Operator precedence, as in Python."""
        return Precedence.NOT

    def print_tokens(self) -> Pieces:
        """Return the pieces of `not (...)`."""
        return ("not ", ParenthesizedOperand(self.a, Precedence.ATOM))


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Broadcast(Expr):
    """Vector with `value` repeated `lanes` times."""

    value: Expr
    lanes: int
    dtype: DType = field(init=False)

    def __post_init__(self) -> None:
        lanes = self.lanes * self.value.dtype.lanes
        object.__setattr__(self, "dtype", self.value.dtype.with_lanes(lanes))

    def print_tokens(self) -> Pieces:
        """Return the pieces of a call of `broadcast`."""
        return ("broadcast(", *operands((self.value, self.lanes)), ")")


# Comparison with an array raises an error; other classes compare unequal, as in Python.
COMPARABLE = (Expr, bool, int, float, np.generic, np.ndarray)


def as_expr(
    value: Like | np.ndarray[Any, Any], dtype: DType | None = None, where: str = ""
) -> Expr:
    """Convert `value` to an expression node; NumPy scalars keep their dtype.

    Without `dtype`, an int becomes int32 (int64 or uint64 if needed), a float float32, a bool bool.

    Raises:
        TypeMismatchError: If `value` is neither an expression nor a number.
    """
    if isinstance(value, Expr):
        return value
    if isinstance(value, np.generic):
        return const(value.item(), dtype or DType(str(value.dtype)))
    if isinstance(value, bool):
        return const(value, dtype or BOOL)
    if isinstance(value, int):
        if dtype is None and -(2**31) <= value < 2**31:
            return Const(int(value), INT32)
        return const(value, dtype or (UINT64 if 2**63 <= value < 2**64 else INT64))
    if isinstance(value, float):
        # Do not check the float32 range: an operation may still promote the literal to float64.
        return Const(value, FLOAT32) if dtype is None else const(value, dtype)
    if isinstance(value, np.ndarray):
        if value.ndim == 0:
            return as_expr(value[()], dtype)
        raise TypeMismatchError(
            "{where}expected an expression or a number, got an array of shape {shape}; make it an "
            'input: X = te.placeholder({shape}, "{dtype}"), and write X[...]',
            kind="invalid-type", where=where, shape=value.shape, dtype=value.dtype,
        )
    # Objects that represent an expression, such as a tensor of rank 0, provide `as_expr`.
    if isinstance(converted := getattr(value, "as_expr", lambda: None)(), Expr):
        return converted
    raise TypeMismatchError(
        "{where}expected an expression or a number, got {value!r} ({type}); pass an element of a "
        "tensor, a variable or a number",
        kind="invalid-type", where=where, value=value, type=type(value).__name__,
    )


def const(value: Scalar, dtype: str | None = None) -> Expr:
    """Return a literal of type `dtype`, broadcast if the dtype has several lanes.

    Raises:
        TypeMismatchError: If `dtype` cannot represent the value.

    >>> from tecomp import te
    >>> te.const(3), te.const(3, "float64")
    (int32(3), float64(3.0))
    """
    if dtype is None:
        return as_expr(value)
    kind = DType(dtype)
    scalar = kind.scalar
    node = Const(literal(value, scalar), scalar)
    return node if kind.lanes == 1 else Broadcast(node, kind.lanes)


def cast(dtype: str, value: Like) -> Expr:
    """Convert `value` to `dtype`; literals are folded.

    The result has the lanes of `value`; a scalar is broadcast if `dtype` has several lanes.
    """
    node = value if isinstance(value, Expr) else as_expr(value)
    if node.dtype is dtype:
        return node
    target = DType(dtype)
    lanes = max(target.lanes, node.dtype.lanes)
    if node.dtype.lanes not in (1, lanes):
        raise TypeMismatchError(
            "cannot convert {dtype} to {expected}",
            dtype=node.dtype, expected=target,
        )
    if node.dtype.scalar != target.scalar:
        folded = _cast_literal(node, target.scalar) if isinstance(node, Const) else None
        node = Cast(target.scalar.with_lanes(node.dtype.lanes), node) if folded is None else folded
    return node if node.dtype.lanes == lanes else Broadcast(node, lanes)


def _cast_literal(node: Const, dtype: DType) -> Const | None:
    try:
        return Const(literal(node.value, dtype), dtype)
    except TypeMismatchError:
        return None


def match_types(
    a: Like, b: Like | np.ndarray[Any, Any], operation: str
) -> tuple[Expr, Expr]:
    """Convert both operands to their common dtype; literals are converted from their exact value.

    With a float64 `x`, `x + 0.1` adds the float64 value nearest to 0.1, not the float32 value.

    Raises:
        TypeMismatchError: If there is no common dtype, or it cannot represent a literal.
    """
    x = a if isinstance(a, Expr) else as_expr(a)
    y = b if isinstance(b, Expr) else as_expr(b)
    if x.dtype is y.dtype and x is a and y is b:
        return x, y
    common = promote(x.dtype, y.dtype)
    if common is None:
        raise TypeMismatchError(
            "{subject} of {dtype} and {y_dtype} has no common dtype; convert one with .astype(...)",
            subject=operation, dtype=x.dtype, y_dtype=y.dtype,
        )
    return _convert(x, common, y, operation), _convert(y, common, x, operation)


def _convert(node: Expr, dtype: DType, other: Expr, operation: str) -> Expr:
    """Convert `node` to the common dtype; a literal must be representable in it."""
    if isinstance(node, Const) and not holds(dtype.scalar, node.value):
        raise TypeMismatchError(
            "{subject} of {dtype} and the literal {node!r}: both become {expected_dtype}, which "
            "cannot represent the literal; convert the other operand to a dtype that can, with "
            ".astype(...)",
            kind="literal", subject=operation, dtype=other.dtype, node=node.value,
            expected_dtype=dtype,
        )
    return node if node.dtype is dtype else cast(dtype, node)


def binary(op: BinOp, a: Like, b: Like) -> Expr:
    """Build `a op b` after converting the operands to a common dtype; integer literals are folded.

    Raises:
        TypeMismatchError: If the operator is not defined for the common dtype.
    """
    x, y = match_types(a, b, f"`{op.value}`")
    kind = x.dtype
    if op in LOGIC and not kind.is_bool:
        raise TypeMismatchError("`{op}` expects booleans, got {dtype}", op=op.value, dtype=kind)
    if op in BITS and kind.is_float:
        raise TypeMismatchError("`{op}` expects integers, got {dtype}", op=op.value, dtype=kind)
    if op is BinOp.DIV and not kind.is_float:
        raise TypeMismatchError(
            "`/` of {dtype} is ambiguous; write // for floor division, or convert to a float first",
            dtype=kind,
        )
    if kind.kind == "handle":
        raise TypeMismatchError("`{op}` is not supported for addresses", op=op.value)
    if kind.is_bool and op not in (*LOGIC, *BITS, BinOp.MIN, BinOp.MAX):
        return binary(op, cast(INT32, x), cast(INT32, y))
    if isinstance(x, Const) and isinstance(y, Const) and kind.is_integer:
        result = integer_result(op, int(x.value), int(y.value), kind)
        if result is not None:
            return Const(result, kind)
    return Binary(op, x, y)


def build_division(op: BinOp, a: Like, b: Like) -> Expr:
    """Build `a // b` or `a % b` of user code; generated code may contain a zero divisor.

    Raises:
        DefinitionError: If the divisor is the integer 0.
        TypeMismatchError: If the operator is not defined for the common dtype.
    """
    result, divisor = binary(op, a, b), as_expr(b)
    if result.dtype.is_integer and isinstance(divisor, Const) and divisor.value == 0:
        raise DefinitionError(
            "`{op}`: `{a}` is divided by constant 0; divide by another number, or by a variable, "
            "which gives 0 where it is 0",
            kind="division-by-zero", op=op.value, a=truncate(str(a)),
        )
    return result


def compare(op: CmpOp, a: Like, b: Like | np.ndarray[Any, Any]) -> Expr:
    """Build the condition `a op b` after converting the operands to a common dtype."""
    x, y = match_types(a, b, f"`{op.value}`")
    return Compare(op, x, y)
