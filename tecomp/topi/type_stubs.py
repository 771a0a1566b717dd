"""Static types of elementwise operators."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, cast, overload

from tecomp import te
from tecomp.topi.validation import Operand

_Value = te.Expr | int | float | bool


class OfOne(Protocol):
    """A function of the elements of a tensor, or of a value."""

    @overload
    def __call__(self, data: te.Tensor) -> te.Tensor: ...
    @overload
    def __call__(self, data: _Value) -> te.Expr: ...


class OfTwo(Protocol):
    """A function of the elements of two tensors, of one and a value, or of two values."""

    @overload
    def __call__(self, lhs: te.Tensor, rhs: Operand) -> te.Tensor: ...
    @overload
    def __call__(self, lhs: Operand, rhs: te.Tensor) -> te.Tensor: ...
    @overload
    def __call__(self, lhs: _Value, rhs: _Value) -> te.Expr: ...


def of_one(function: Callable[[Operand], Any]) -> OfOne:
    """The function itself, with its types."""
    return cast("OfOne", function)


def of_two(function: Callable[[Operand, Operand], Any]) -> OfTwo:
    """The function itself, with its types."""
    return cast("OfTwo", function)
