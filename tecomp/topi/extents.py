"""Arithmetic of extents and linear indices."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import prod
from typing import Any, TypeAlias

from tecomp import te
from tecomp.ir.nodes.expr import BinOp, as_expr
from tecomp.ir.nodes.expr_nodes import Binary, Const
from tecomp.ir.nodes.structural_equality import same

Size: TypeAlias = "int | te.Expr"
"""An extent: a number, or an expression of sizes that the arguments say."""


def plus(size: Size, count: Size) -> Size:
    """`size + count`, with the numbers in it as one: `n + 2 - 2` is `n`."""
    if isinstance(size, int) and isinstance(count, int):
        return size + count
    number, other = (size, count) if isinstance(size, int) else (count, size)
    if not isinstance(number, int) or isinstance(other, int):
        return _kept(size + count)
    base, before = _apart(other)
    total = before + number
    if total == 0:
        return base
    return base + total if total > 0 else base - -total


def minus(size: Size, count: Size) -> Size:
    """`size - count`, with the numbers in it as one."""
    if isinstance(count, int):
        return plus(size, -count)
    return 0 if equal(size, count) else _kept(size - count)


def times(size: Size, count: Size) -> Size:
    """`size * count`."""
    for a, b in ((size, count), (count, size)):
        if isinstance(a, int) and a in (0, 1):
            return b if a else 0
    return _kept(size * count)


def quotient(size: Size, count: Size) -> Size:
    """`size // count`; the factor that is left where it is a factor of the size."""
    if isinstance(count, int) and count == 1:
        return size
    factors = _factors(size)
    for k, factor in enumerate(factors):
        if equal(factor, count):
            return product(factors[:k] + factors[k + 1 :])
    numbers = [factor for factor in factors if isinstance(factor, int)]
    if isinstance(count, int) and numbers and prod(numbers) % count == 0:
        rest = (factor for factor in factors if not isinstance(factor, int))
        return product([prod(numbers) // count, *rest])
    return _kept(size // count)


def ceil_div(size: Size, count: Size) -> Size:
    """`size / count`, rounded up."""
    return quotient(plus(size, minus(count, 1)), count)


def product(sizes: Iterable[Size]) -> Size:
    """All sizes multiplied together; the numbers in front."""
    factors = [factor for size in sizes for factor in _factors(size)]
    result: Size = 1
    for factor in factors:
        if isinstance(factor, int):
            result = times(result, factor)
    for factor in factors:
        if not isinstance(factor, int):
            result = times(result, factor)
    return result


def equal(a: Size, b: Size) -> bool:
    """Whether two extents are known to be equal, factors in any order.

    >>> n = te.var("n")
    >>> equal(2 * n, n * 2), equal(n, 2 * n)
    (True, False)
    """
    if isinstance(a, int) or isinstance(b, int):
        return isinstance(a, int) and isinstance(b, int) and a == b
    if same(as_expr(a), as_expr(b)):
        return True
    are_products = any(isinstance(x, Binary) and x.op is BinOp.MUL for x in (a, b))
    return are_products and is_product((a,), (b,))


def is_multiple(size: Size, count: int) -> bool:
    """Whether a number is known to divide an extent.

    >>> is_multiple(6, 3), is_multiple(te.var("n") * 6, 3), is_multiple(te.var("n"), 3)
    (True, True, False)
    """
    return equal(times(quotient(size, count), count), size)


def is_product(one: Sequence[Size], other: Sequence[Size]) -> bool:
    """Whether two shapes are known to have as many elements.

    >>> n = te.var("n")
    >>> is_product((n, 6), (2, n, 3)), is_product((n,), (te.var("m"),)), is_product((0, n), (0,))
    (True, False, True)
    """
    counts: list[int] = []
    symbols: list[list[Size]] = []
    for shape in (one, other):
        factors = [factor for extent in shape for factor in _factors(extent)]
        count = 1
        for factor in factors:
            count *= factor if isinstance(factor, int) else 1
        counts.append(count)
        symbols.append([factor for factor in factors if not isinstance(factor, int)])
    if counts[0] != counts[1] or not counts[0]:
        return counts[0] == counts[1]
    rest = symbols[1]
    for factor in symbols[0]:
        same_one = next((k for k, x in enumerate(rest) if equal(x, factor)), None)
        if same_one is None:
            return False
        rest = rest[:same_one] + rest[same_one + 1 :]
    return not rest


def differ(a: Size, b: Size) -> bool:
    """Whether two extents are known to differ."""
    return isinstance(a, int) and isinstance(b, int) and a != b


def element(x: Any, axes: Sequence[te.Expr]) -> Any:
    """The element of `x` at `axes` of what it is broadcast to; a number is itself."""
    return x(*place(x, axes)) if isinstance(x, te.Tensor) else x


def place(x: te.Tensor, axes: Sequence[Any]) -> list[Any]:
    """The index in `x` at `axes` of what it is broadcast to."""
    last = axes[len(axes) - x.ndim :]
    return [
        0 if isinstance(extent, int) and extent == 1 else axis
        for extent, axis in zip(x.shape, last, strict=True)
    ]


def ravel(index: Sequence[Any], shape: Sequence[Size]) -> Any:
    """The number of an element, counted in the order of memory."""
    number: Any = 0
    for axis, extent in zip(index, shape, strict=True):
        if not equal(extent, 1):
            number = axis if isinstance(number, int) else number * extent + axis
    return number


def unravel(number: Any, shape: Sequence[Size]) -> list[Any]:
    """The index of an element, from its number."""
    index: list[Any] = []
    inner: Size = 1
    for k, extent in reversed(list(enumerate(shape))):
        if isinstance(extent, int) and extent == 1:
            index.append(0)
            continue
        part = number if isinstance(inner, int) and inner == 1 else number // inner
        index.append(part if k == _outermost(shape) else modulo(part, extent))
        # Without elements there is no place to find, and nothing to divide by.
        inner = inner if equal(extent, 0) else times(inner, extent)
    return index[::-1]


def modulo(index: Any, extent: Size) -> Any:
    """`index % extent`; where there is no element, there is no index to find a place for."""
    return index if equal(extent, 0) else index % extent


def _outermost(shape: Sequence[Size]) -> int:
    """The first axis that has more elements than one, as far as is known."""
    return next((k for k, extent in enumerate(shape) if not equal(extent, 1)), 0)


def _apart(size: te.Expr) -> tuple[te.Expr, int]:
    """An expression without the number that is added at last, and that number."""
    if isinstance(size, Binary) and isinstance(size.b, Const) and isinstance(size.b.value, int):
        if size.op is BinOp.ADD:
            return size.a, size.b.value
        if size.op is BinOp.SUB:
            return size.a, -size.b.value
    return size, 0


def _factors(size: Size) -> list[Size]:
    """Factors of a size."""
    found: list[Size] = []
    todo: list[Any] = [size]
    while todo:
        each = todo.pop()
        if isinstance(each, Binary) and each.op is BinOp.MUL:
            todo += [each.b, each.a]
        else:
            found.append(_kept(each))
    return found


def _kept(size: Any) -> Size:
    """A result of operators, which is a number where both operands are."""
    kept: Any = size.value if isinstance(size, Const) else size
    return kept  # type: ignore[no-any-return]  # an extent is no float
