"""Arithmetic of extents and of array strides."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any, overload

from tecomp.errors import InternalError
from tecomp.ir.arith.simplify import simplify
from tecomp.ir.nodes.buffer import Extent
from tecomp.ir.nodes.dtype import INT64
from tecomp.ir.nodes.expr import (
    Binary,
    BinOp,
    Const,
    Expr,
    Var,
    binary,
    const,
    index_value,
    is_const,
)
from tecomp.ir.nodes.stmt import ArrayArgument
from tecomp.ir.traversal.rewrite import fold, substitute


def start_and_strides(array: ArrayArgument) -> tuple[tuple[Expr, ...], tuple[Expr, ...]]:
    """Return the index of the first element of an array argument and the stride of each axis.

    Returns:
        Indices of the first element in the buffer, and for each axis the distance between
        consecutive elements along the last axis of the buffer.

    Raises:
        InternalError: If the elements are not at constant strides along the last buffer axis.
    """
    *rows, last = array.element.indices or (Const(0),)
    zero = dict.fromkeys(array.variables, index_value(0))
    start = _at(last, zero)
    strides: list[Expr] = []
    expected = start
    for var in array.variables:
        at_one = _at(last, {**zero, var: index_value(1)})
        stride = simplify(binary(BinOp.SUB, at_one, start))
        strides.append(stride)
        expected = binary(BinOp.ADD, expected, binary(BinOp.MUL, var, stride))
    ranges: Mapping[Var, Any] = {
        var: (0, binary(BinOp.SUB, extent, index_value(1)))
        for var, extent in zip(array.variables, array.shape, strict=True)
    }
    residual = simplify(binary(BinOp.SUB, last, expected), ranges)
    varying = [var for row in rows for var in array.variables if row is not _at(row, {var: ZERO})]
    if not (isinstance(residual, Const) and residual.value == 0) or varying:
        raise InternalError("`{array}` is not an array: its elements have no strides", array=array)
    return (*rows, start), tuple(strides)


ZERO = index_value(0)


def _at(index: Expr, values: Mapping[Var, Expr]) -> Expr:
    return simplify(substitute(index, values)) if values else index


def constant_shape(shape: Sequence[Extent]) -> tuple[int, ...] | None:
    """Return `shape` if all its extents are Python ints, else None."""
    numbers = tuple(n for n in shape if isinstance(n, int))
    return numbers if len(numbers) == len(shape) else None


def are_equal(a: Extent, b: Extent) -> bool:
    """Return whether both extents are Python ints and equal."""
    return isinstance(a, int) and isinstance(b, int) and a == b


def is_empty(shape: Sequence[Extent]) -> bool:
    """Return whether an extent is the Python int 0."""
    return any(isinstance(n, int) and n == 0 for n in shape)


def plus(a: Extent, b: Extent) -> Extent:
    """Return `a + b`, folded for constants."""
    if isinstance(a, int) and isinstance(b, int):
        return a + b
    if isinstance(a, int):
        a, b = b, a
    if isinstance(b, int):
        if b == 0:
            return a
        return binary(BinOp.ADD if b > 0 else BinOp.SUB, a, Const(abs(b), INT64))
    return binary(BinOp.ADD, a, b)


def times(a: Extent, factor: int) -> Extent:
    """Return `factor * a`, folded for constants."""
    if isinstance(a, int) or factor == 1:
        return a * factor if isinstance(a, int) else a
    return binary(BinOp.MUL, a, Const(factor, INT64))


@overload
def ceil_div(extent: int, divisor: int) -> int: ...
@overload
def ceil_div(extent: Extent, divisor: Extent) -> Extent: ...
def ceil_div(extent: Extent, divisor: Extent) -> Extent:
    """Return `extent / divisor` rounded up; exact divisions are simplified.

    >>> from tecomp.ir.nodes.expr import Var
    >>> ceil_div(10, 4), str(ceil_div(Var("n", INT64), 4))
    (3, '(n + 3) // 4')
    >>> ceil_div(8 * Var("n", INT64), 4)
    2 * n
    """
    if isinstance(divisor, int):
        if isinstance(extent, int):
            return -(-extent // divisor)
        if divisor == 1:
            return extent
        if (quotient := _quotient(extent, divisor)) is not None:
            return quotient
        return binary(BinOp.FLOORDIV, plus(extent, divisor - 1), Const(divisor, INT64))
    return binary(BinOp.FLOORDIV, index_value(extent) + (divisor - 1), divisor)


def _quotient(extent: Expr, divisor: int) -> Expr | None:
    """Return `extent / divisor` if it is syntactically exact, such as `8 * n` by 4, else None."""

    def of(node: Expr, operands: list[Expr | None]) -> Expr | None:
        match node:
            case Const(int(value)) if not isinstance(value, bool) and value % divisor == 0:
                return const(value // divisor, node.dtype)
            case Binary(BinOp.MUL, a, b):
                first, second = operands
                if first is None:
                    return None if second is None else _scale(a, second)
                return _scale(b, first)
            case Binary(BinOp.ADD | BinOp.SUB as op):
                first, second = operands
                return None if first is None or second is None else binary(op, first, second)
        return None

    return fold(extent, of)


def _scale(value: Expr, factor: Expr) -> Expr:
    return value if is_const(factor, 1) else binary(BinOp.MUL, factor, value)


def divisor(extent: Extent) -> Extent:
    """Return the divisor for splitting an index into digits of an extent.

    A constant 0 is replaced by 1. A symbolic extent is returned as is; division by 0 gives 0 at run
    time.
    """
    return max(extent, 1) if isinstance(extent, int) else extent


def round_up(size: int, multiple: int) -> int:
    """Return the smallest multiple of `multiple` that is not less than `size`.

    >>> round_up(10, 4), round_up(12, 4)
    (12, 12)
    """
    return ceil_div(size, multiple) * multiple


def product(shape: Sequence[Extent]) -> Extent:
    """Return the number of elements of a shape."""
    number = prod([n for n in shape if isinstance(n, int)])
    symbols = [n for n in shape if not isinstance(n, int)]
    if not symbols or number == 0:
        return number
    total: Expr = index_value(symbols[0])
    for symbol in symbols[1:]:
        total = binary(BinOp.MUL, total, symbol)
    return times(total, number)


def simplify_extent(extent: Extent) -> Extent:
    """Simplify an extent; a constant result is returned as a Python int."""
    if isinstance(extent, int):
        return extent
    short = simplify(extent)
    return int(short.value) if isinstance(short, Const) else short
