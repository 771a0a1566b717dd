"""Things that stand for an expression without being one take part in arithmetic through this."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, NoReturn, TypeAlias

import numpy as np

from tecomp.errors import TypeMismatchError
from tecomp.ir.language.expr import Expr, Like, as_expr
from tecomp.ir.language.nodes import COMPARABLE
from tecomp.ir.language.numpy_calls import called, indexes_array, numpy_name, refused_number

_INSTEAD = (
    "write it for one element, te.compute(shape, lambda i: ...), and make arrays inputs: "
    "X = te.placeholder(array.shape, str(array.dtype))"
)


class Arithmetic:
    """Python's operators for a class that can say which expression it stands for."""

    __slots__ = ()

    def as_expr(self) -> Expr:
        """The expression that this stands for.

        Raises:
            TypeMismatchError: it stands for many values and not for one.
        """
        raise NotImplementedError

    def __array_ufunc__(
        self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any
    ) -> Expr:
        """As of expressions."""
        made: Expr = called(ufunc, method, inputs, options)(*map(value_of, inputs))
        return made

    def __array_function__(
        self, function: Callable[..., Any], types: object, args: Any, options: Any
    ) -> NoReturn:
        """Refused: NumPy's function would take it for an object."""
        raise TypeMismatchError(
            f"{numpy_name(function)} of `{self!r}`: NumPy computes with numbers that are there, "
            f"and a tensor has none before the kernel runs; {_INSTEAD}"
        )

    def __array__(self, dtype: Any = None, copy: object = None) -> np.ndarray[Any, Any]:
        """An array of this one object, as for any that NumPy does not know.

        Raises:
            TypeMismatchError: an array is indexed with it, or numbers are asked for.
        """
        is_object = dtype is None or np.dtype(dtype) == object
        if not is_object or indexes_array(self, sys._getframe(1)):
            use = "index an array" if is_object else f"be an array of {np.dtype(dtype)}"
            raise TypeMismatchError(
                f"`{self!r}` has no elements before the kernel runs, and cannot {use}; {_INSTEAD}"
            )
        array = np.empty((), object)
        array[()] = self
        return array

    def __index__(self) -> NoReturn:
        """Refused: what is computed later counts and indexes nothing now."""
        refused_number(self, sys._getframe(1))
        raise TypeMismatchError(
            f"`{self!r}` has no elements before the kernel runs, and cannot count or index things; "
            f"{_INSTEAD}"
        )

    def astype(self, dtype: str) -> Expr:
        """The value converted to `dtype`."""
        return self.as_expr().astype(dtype)

    def equal(self, other: Value) -> Expr:
        """`self == other` as a condition."""
        return self.as_expr().equal(value_of(other))

    def __add__(self, other: Value) -> Expr:
        return self.as_expr() + value_of(other)

    def __radd__(self, other: Value) -> Expr:
        return value_of(other) + self.as_expr()

    def __sub__(self, other: Value) -> Expr:
        return self.as_expr() - value_of(other)

    def __rsub__(self, other: Value) -> Expr:
        return value_of(other) - self.as_expr()

    def __mul__(self, other: Value) -> Expr:
        return self.as_expr() * value_of(other)

    def __rmul__(self, other: Value) -> Expr:
        return value_of(other) * self.as_expr()

    def __truediv__(self, other: Value) -> Expr:
        return self.as_expr() / value_of(other)

    def __rtruediv__(self, other: Value) -> Expr:
        return value_of(other) / self.as_expr()

    def __floordiv__(self, other: Value) -> Expr:
        return self.as_expr() // value_of(other)

    def __rfloordiv__(self, other: Value) -> Expr:
        return value_of(other) // self.as_expr()

    def __mod__(self, other: Value) -> Expr:
        return self.as_expr() % value_of(other)

    def __rmod__(self, other: Value) -> Expr:
        return value_of(other) % self.as_expr()

    def __and__(self, other: Value) -> Expr:
        return self.as_expr() & value_of(other)

    def __rand__(self, other: Value) -> Expr:
        return value_of(other) & self.as_expr()

    def __or__(self, other: Value) -> Expr:
        return self.as_expr() | value_of(other)

    def __ror__(self, other: Value) -> Expr:
        return value_of(other) | self.as_expr()

    def __xor__(self, other: Value) -> Expr:
        return self.as_expr() ^ value_of(other)

    def __rxor__(self, other: Value) -> Expr:
        return value_of(other) ^ self.as_expr()

    def __lshift__(self, other: Value) -> Expr:
        return self.as_expr() << value_of(other)

    def __rlshift__(self, other: Value) -> Expr:
        return value_of(other) << self.as_expr()

    def __rshift__(self, other: Value) -> Expr:
        return self.as_expr() >> value_of(other)

    def __rrshift__(self, other: Value) -> Expr:
        return value_of(other) >> self.as_expr()

    def __neg__(self) -> Expr:
        return -self.as_expr()

    def __pos__(self) -> Expr:
        return self.as_expr()

    def __invert__(self) -> Expr:
        return ~self.as_expr()

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


Value: TypeAlias = "Like | Arithmetic"


def value_of(value: Value) -> Expr:
    """`value` as an expression: a node, a number, or what stands for a node.

    Raises:
        TypeMismatchError: it is none of these.
    """
    return value.as_expr() if isinstance(value, Arithmetic) else as_expr(value)
