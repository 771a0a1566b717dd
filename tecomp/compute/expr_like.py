"""Base class of objects that convert to expressions; expression size."""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, ClassVar, NoReturn, TypeAlias

import numpy as np

from tecomp.errors import DefinitionError, TecompError, TypeMismatchError
from tecomp.ir.nodes.dtype import DType
from tecomp.ir.nodes.expr import (
    Const,
    Expr,
    Like,
    Var,
    as_expr,
)
from tecomp.ir.nodes.expr_nodes import COMPARABLE
from tecomp.ir.nodes.numpy_protocol import (
    indexes_array,
    numpy_name,
    operator_of_ufunc,
    record_refused_index,
)
from tecomp.ir.traversal.rewrite import walk

_ALTERNATIVES = (
    "write it per element, te.compute(shape, lambda i: ...), and declare arrays as inputs: X = "
    "te.placeholder(array.shape, str(array.dtype))"
)

OPERATOR_NAMES: Mapping[Callable[..., object], str] = MappingProxyType({
    operator.add: "T_add", operator.sub: "T_subtract", operator.mul: "T_multiply",
    operator.truediv: "T_divide", operator.floordiv: "T_floor_divide",
    operator.mod: "T_floor_mod", operator.and_: "T_bitwise_and", operator.or_: "T_bitwise_or",
    operator.xor: "T_bitwise_xor", operator.lshift: "T_left_shift",
    operator.rshift: "T_right_shift", operator.neg: "T_negative", operator.pos: "T_identity",
    operator.invert: "T_bitwise_not",
})
"""Names that TVM's topi gives to the results of operators."""


class ExprLike:
    """Mixin that provides Python operators for objects that convert to expressions."""

    __slots__ = ()

    takes_operators: ClassVar[bool] = True

    @property
    def is_whole(self) -> bool:
        """Whether operators apply element-wise to all elements and return a tensor."""
        return False

    def as_expr(self) -> Expr:
        """Return the expression that this object represents.

        Raises:
            TypeMismatchError: If the object represents several values.
        """
        raise NotImplementedError

    def __array_ufunc__(
        self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any
    ) -> Any:
        """Apply the operator that corresponds to a NumPy ufunc, as expressions do."""
        return self.operated(operator_of_ufunc(ufunc, method, inputs, options), *inputs)

    def __array_function__(
        self, function: Callable[..., Any], types: object, args: Any, options: Any
    ) -> NoReturn:
        """Raise, because a NumPy function would treat this object as a Python object.

        Raises:
            TypeMismatchError: Always.
        """
        raise TypeMismatchError(
            "{function} of `{subject!r}`: NumPy requires concrete values, but a tensor has none "
            "before the kernel runs; {instead}",
            kind="symbolic-value",
            function=numpy_name(function),
            subject=self,
            instead=_ALTERNATIVES,
        )

    def __array__(self, dtype: Any = None, copy: object = None) -> np.ndarray[Any, Any]:
        """Return a zero-dimensional array that contains this object, if `dtype` is object.

        Raises:
            TypeMismatchError: If a numeric dtype is requested, an array is indexed with the object,
                or the object represents several values and no dtype is given.
        """
        is_object = dtype is None or np.dtype(dtype) == object
        if not is_object or indexes_array(self, sys._getframe(1)):
            usage = "index an array" if is_object else f"be an array of {np.dtype(dtype)}"
            raise TypeMismatchError(
                "`{subject!r}` has no elements before the kernel runs, and cannot {use}; "
                "{instead}",
                kind="symbolic-value", subject=self, use=usage, instead=_ALTERNATIVES,
            )
        if dtype is None:
            self._refuse_many()
        array = np.empty((), object)
        array[()] = self
        return array

    def _refuse_many(self) -> None:
        """Raise if this object represents several elements, for conversions to NumPy.

        Raises:
            TypeMismatchError: If the object does not convert to one expression.
        """
        try:
            self.as_expr()
        except TecompError:
            raise TypeMismatchError(
                "`{subject!r}` has no elements before the kernel runs, and cannot be converted to "
                "a NumPy array; run a kernel and read its output, or keep the object, "
                "np.asarray(x, dtype=object)",
                kind="symbolic-value", subject=self,
            ) from None

    def __index__(self) -> NoReturn:
        """Raise, because the value is not known before the kernel runs.

        Raises:
            TypeMismatchError: Always.
        """
        record_refused_index(self, sys._getframe(1))
        raise TypeMismatchError(
            "`{subject!r}` has no elements before the kernel runs, and cannot be used as a count "
            "or an index; {instead}",
            kind="symbolic-value", subject=self, instead=_ALTERNATIVES,
        )

    def operated(self, function: Callable[..., Any], *operands: Any) -> Any:
        """Apply an operator to operands, one of which is this object."""
        whole_operand = next((operand for operand in operands if is_whole(operand)), None)
        if whole_operand is None:
            return self.of_element(function, operands)
        return whole_operand.combined(function, operands)

    def of_element(self, function: Callable[..., Any], operands: tuple[Any, ...]) -> Any:
        """Apply an operator to operands none of which is a whole tensor."""
        return function(*map(value_of, operands))

    def combined(self, function: Callable[..., Any], operands: tuple[Any, ...]) -> Any:
        """Apply an operator element-wise to operands, one of which is this whole tensor."""
        raise NotImplementedError

    def astype(self, dtype: str) -> Any:
        """Cast the value to `dtype`.

        Raises:
            TypeMismatchError: If the dtype does not exist, or the object represents several values.

        >>> from tecomp import te
        >>> te.placeholder((), "float32", "a").astype("int32")
        cast("int32", a[()])
        """
        return self.as_expr().astype(dtype)

    def equal(self, other: Value) -> Expr:
        """Return `self == other` as a condition.

        Raises:
            TypeMismatchError: If the object represents several values.

        >>> from tecomp import te
        >>> te.placeholder((), "int32", "a").equal(3)
        a[()] == int32(3)
        """
        return self.as_expr().equal(value_of(other))

    def __add__(self, other: Value) -> Any:
        return self.operated(operator.add, self, other)

    def __radd__(self, other: Value) -> Any:
        return self.operated(operator.add, other, self)

    def __sub__(self, other: Value) -> Any:
        return self.operated(operator.sub, self, other)

    def __rsub__(self, other: Value) -> Any:
        return self.operated(operator.sub, other, self)

    def __mul__(self, other: Value) -> Any:
        return self.operated(operator.mul, self, other)

    def __rmul__(self, other: Value) -> Any:
        return self.operated(operator.mul, other, self)

    def __truediv__(self, other: Value) -> Any:
        return self.operated(operator.truediv, self, other)

    def __rtruediv__(self, other: Value) -> Any:
        return self.operated(operator.truediv, other, self)

    def __floordiv__(self, other: Value) -> Any:
        return self.operated(operator.floordiv, self, other)

    def __rfloordiv__(self, other: Value) -> Any:
        return self.operated(operator.floordiv, other, self)

    def __mod__(self, other: Value) -> Any:
        return self.operated(operator.mod, self, other)

    def __rmod__(self, other: Value) -> Any:
        return self.operated(operator.mod, other, self)

    def __and__(self, other: Value) -> Any:
        return self.operated(operator.and_, self, other)

    def __rand__(self, other: Value) -> Any:
        return self.operated(operator.and_, other, self)

    def __or__(self, other: Value) -> Any:
        return self.operated(operator.or_, self, other)

    def __ror__(self, other: Value) -> Any:
        return self.operated(operator.or_, other, self)

    def __xor__(self, other: Value) -> Any:
        return self.operated(operator.xor, self, other)

    def __rxor__(self, other: Value) -> Any:
        return self.operated(operator.xor, other, self)

    def __lshift__(self, other: Value) -> Any:
        return self.operated(operator.lshift, self, other)

    def __rlshift__(self, other: Value) -> Any:
        return self.operated(operator.lshift, other, self)

    def __rshift__(self, other: Value) -> Any:
        return self.operated(operator.rshift, self, other)

    def __rrshift__(self, other: Value) -> Any:
        return self.operated(operator.rshift, other, self)

    def __neg__(self) -> Any:
        return self.operated(operator.neg, self)

    def __pos__(self) -> Any:
        return self.operated(operator.pos, self)

    def __invert__(self) -> Any:
        return self.operated(operator.invert, self)

    def __lt__(self, other: Value) -> Expr:
        return self.as_expr() < value_of(other)

    def __le__(self, other: Value) -> Expr:
        return self.as_expr() <= value_of(other)

    def __gt__(self, other: Value) -> Expr:
        return self.as_expr() > value_of(other)

    def __ge__(self, other: Value) -> Expr:
        return self.as_expr() >= value_of(other)

    def __eq__(self, other: object) -> Any:  # a condition, as for expressions
        if not isinstance(other, COMPARABLE):
            return NotImplemented
        return self.as_expr() == other

    def __ne__(self, other: object) -> Any:
        if not isinstance(other, COMPARABLE):
            return NotImplemented
        return self.as_expr() != other

    __hash__ = object.__hash__


Value: TypeAlias = "Like | ExprLike"


def is_whole(value: object) -> bool:
    """Return whether operators on a value apply element-wise and return a tensor."""
    return isinstance(value, ExprLike) and value.is_whole


def value_of(value: Value, where: str = "") -> Expr:
    """Convert an expression, a number or an expression-like object to an expression.

    Args:
        value: Value given by the user.
        where: Prefix of error messages.

    Raises:
        TypeMismatchError: If the value cannot be converted.
    """
    return value.as_expr() if isinstance(value, ExprLike) else as_expr(value, where=where)


# An expression of this size takes about a minute to compile, nearly all of it in LLVM.
MAX_OPERATIONS = 1 << 16


def operations(*roots: Expr) -> int:
    """Count the operations of expressions; shared subexpressions count once.

    >>> x = Var("x")
    >>> operations(x + 1), operations((x + 1) * (x + 1))
    (1, 3)
    >>> y = x + 1
    >>> operations(y * y)
    2
    """
    return sum(map(_is_operation, walk(*roots)))


def _is_operation(node: Any) -> bool:
    # A load is not an operation itself, but the operations of its index count.
    return not isinstance(node, Const | Var) and not hasattr(node, "tensor")


def values_with_dtypes(
    values: object, dtypes: tuple[DType, ...], subject: str, *, is_tuple: bool
) -> tuple[Expr, ...]:
    """Return `values` as expressions, one per dtype; Python numbers take that dtype.

    Raises:
        DefinitionError: If the number of values does not match.
        TypeMismatchError: If a value has another dtype.
    """
    items: Sequence[Any] = values if isinstance(values, list | tuple) else (values,)
    if len(items) != len(dtypes) or isinstance(values, list | tuple) != is_tuple:
        count = f"a tuple of {len(items)}" if isinstance(values, list | tuple) else "one value"
        expected = f"a tuple of {len(dtypes)}" if is_tuple else "one value"
        raise DefinitionError(
            "{subject} is {count}, expected {expected}",
            kind="reduction", subject=subject, count=count, expected=expected,
        )
    fitted = []
    for k, (value, dtype) in enumerate(zip(items, dtypes, strict=True)):
        standing = isinstance(value, Expr | ExprLike)
        node = value_of(value) if standing else as_expr(value, dtype)
        if node.dtype != dtype:
            suffix = f" of value {k}" if is_tuple else ""
            raise TypeMismatchError(
                "{subject}{which} has dtype {dtype}, expected {expected_dtype}; convert it with "
                '.astype("{expected_dtype}")',
                subject=subject, which=suffix, dtype=node.dtype, expected_dtype=dtype,
            )
        fitted.append(node)
    return tuple(fitted)
