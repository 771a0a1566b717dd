"""Static types of element-wise operators."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, cast, overload

from tecomp import te
from tecomp.topi.validation import Operand

_Value = te.Expr | int | float | bool


class UnaryOp(Protocol):
    """Type of an element-wise operator on a tensor or a scalar value."""

    @overload
    def __call__(self, data: te.Tensor) -> te.Tensor: ...
    @overload
    def __call__(self, data: _Value) -> te.Expr: ...


class BinaryOp(Protocol):
    """Type of an element-wise operator on two operands, each a tensor or a scalar value."""

    @overload
    def __call__(self, lhs: te.Tensor, rhs: Operand) -> te.Tensor: ...
    @overload
    def __call__(self, lhs: Operand, rhs: te.Tensor) -> te.Tensor: ...
    @overload
    def __call__(self, lhs: _Value, rhs: _Value) -> te.Expr: ...


def as_unary_op(function: Callable[[Operand], Any]) -> UnaryOp:
    """Return the function itself, typed as a unary element-wise operator."""
    return cast("UnaryOp", function)


def as_binary_op(function: Callable[[Operand, Operand], Any]) -> BinaryOp:
    """Return the function itself, typed as a binary element-wise operator."""
    return cast("BinaryOp", function)
