"""Arithmetic of extents and linear indices."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import prod
from typing import Any, TypeAlias

from tecomp import te
from tecomp.ir.nodes.expr import BinOp, as_expr
from tecomp.ir.nodes.expr_nodes import Binary, Const
from tecomp.ir.nodes.structural_equality import structural_equal

Size: TypeAlias = "int | te.Expr"
"""Extent: an int, or an expression of size variables that are bound at call time."""


def plus(size: Size, count: Size) -> Size:
    """Return `size + count` with constants folded: `n + 2 - 2` gives `n`."""
    if isinstance(size, int) and isinstance(count, int):
        return size + count
    number, other = (size, count) if isinstance(size, int) else (count, size)
    if not isinstance(number, int) or isinstance(other, int):
        return _fold_constant(size + count)
    base, before = _split_constant(other)
    total = before + number
    if total == 0:
        return base
    return base + total if total > 0 else base - -total


def minus(size: Size, count: Size) -> Size:
    """Return `size - count` with constants folded."""
    if isinstance(count, int):
        return plus(size, -count)
    return 0 if equal(size, count) else _fold_constant(size - count)


def times(size: Size, count: Size) -> Size:
    """Return `size * count`, simplified for factors 0 and 1."""
    for a, b in ((size, count), (count, size)):
        if isinstance(a, int) and a in (0, 1):
            return b if a else 0
    return _fold_constant(size * count)


def quotient(size: Size, count: Size) -> Size:
    """Return `size // count`, simplified if `count` is a factor of `size`."""
    if isinstance(count, int) and count == 1:
        return size
    factors = _factors(size)
    for k, factor in enumerate(factors):
        if equal(factor, count):
            return product(factors[:k] + factors[k + 1 :])
    numbers = [factor for factor in factors if isinstance(factor, int)]
    if isinstance(count, int) and numbers and prod(numbers) % count == 0:
        symbols = (factor for factor in factors if not isinstance(factor, int))
        return product([prod(numbers) // count, *symbols])
    return _fold_constant(size // count)


def ceil_div(size: Size, count: Size) -> Size:
    """Return `size / count` rounded up."""
    return quotient(plus(size, minus(count, 1)), count)


def product(sizes: Iterable[Size]) -> Size:
    """Return the product of extents, with constant factors folded and placed first."""
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
    """Return whether two extents are provably equal, regardless of the order of operands.

    >>> n = te.var("n")
    >>> equal(2 * n, n * 2), equal(n + 1, 1 + n), equal(n, 2 * n)
    (True, True, False)
    """
    if isinstance(a, int) or isinstance(b, int):
        return isinstance(a, int) and isinstance(b, int) and a == b
    if structural_equal(as_expr(a), as_expr(b)):
        return True
    operators = {x.op for x in (a, b) if isinstance(x, Binary)}
    if BinOp.MUL in operators and is_product((a,), (b,)):
        return True
    return not operators.isdisjoint((BinOp.ADD, BinOp.SUB)) and _are_equal_sums(a, b)


def _are_equal_sums(a: Size, b: Size) -> bool:
    """Return whether the terms of two sums are equal, in any order."""
    totals: list[tuple[Size, int]] = []
    for term, count in (*_terms(a, 1), *_terms(b, -1)):
        found = next((k for k, (x, _) in enumerate(totals) if equal(x, term)), None)
        if found is None:
            totals.append((term, count))
        else:
            totals[found] = (term, totals[found][1] + count)
    return all(count == 0 for _, count in totals)


def _terms(size: Size, sign: int) -> list[tuple[Size, int]]:
    """Return the terms of a sum with their coefficients; the term 1 has the constant."""
    if isinstance(size, Binary) and size.op in (BinOp.ADD, BinOp.SUB):
        return _terms(size.a, sign) + _terms(size.b, sign if size.op is BinOp.ADD else -sign)
    factors = _factors(size)
    number = prod([factor for factor in factors if isinstance(factor, int)])
    return [(product([x for x in factors if not isinstance(x, int)]), sign * number)]


def is_multiple(size: Size, count: int) -> bool:
    """Return whether `count` provably divides `size`.

    >>> is_multiple(6, 3), is_multiple(te.var("n") * 6, 3), is_multiple(te.var("n"), 3)
    (True, True, False)
    """
    return equal(times(quotient(size, count), count), size)


def is_product(one: Sequence[Size], other: Sequence[Size]) -> bool:
    """Return whether two shapes provably have the same number of elements.

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
    remaining = symbols[1]
    for factor in symbols[0]:
        found = next((k for k, x in enumerate(remaining) if equal(x, factor)), None)
        if found is None:
            return False
        remaining = remaining[:found] + remaining[found + 1 :]
    return not remaining


def differ(a: Size, b: Size) -> bool:
    """Return whether two extents are known constants with different values."""
    return isinstance(a, int) and isinstance(b, int) and a != b


def element(x: Any, axes: Sequence[te.Expr]) -> Any:
    """Return the element of `x` that broadcasts to index `axes`; return a number unchanged."""
    return x(*place(x, axes)) if isinstance(x, te.Tensor) else x


def place(x: te.Tensor, axes: Sequence[Any]) -> list[Any]:
    """Return the index in `x` of the element that broadcasts to index `axes`."""
    last = axes[len(axes) - x.ndim :]
    return [
        0 if isinstance(extent, int) and extent == 1 else axis
        for extent, axis in zip(x.shape, last, strict=True)
    ]


def ravel(index: Sequence[Any], shape: Sequence[Size]) -> Any:
    """Return the row-major linear index of an element."""
    number: Any = 0
    for axis, extent in zip(index, shape, strict=True):
        if not equal(extent, 1):
            number = axis if isinstance(number, int) else number * extent + axis
    return number


def unravel(number: Any, shape: Sequence[Size]) -> list[Any]:
    """Return the index of an element from its row-major linear index."""
    index: list[Any] = []
    inner: Size = 1
    for k, extent in reversed(list(enumerate(shape))):
        if isinstance(extent, int) and extent == 1:
            index.append(0)
            continue
        part = number if isinstance(inner, int) and inner == 1 else number // inner
        index.append(part if k == _outermost(shape) else modulo(part, extent))
        # An empty tensor has no elements to index, but the divisor must not become 0.
        inner = inner if equal(extent, 0) else times(inner, extent)
    return index[::-1]


def modulo(index: Any, extent: Size) -> Any:
    """Return `index % extent`, or `index` if the extent is 0, as an empty axis has no elements."""
    return index if equal(extent, 0) else index % extent


def _outermost(shape: Sequence[Size]) -> int:
    """Return the first axis whose extent is not known to be 1, or 0 if all extents are 1."""
    return next((k for k, extent in enumerate(shape) if not equal(extent, 1)), 0)


def _split_constant(size: te.Expr) -> tuple[te.Expr, int]:
    """Split an expression into its base and the constant that is added last."""
    if isinstance(size, Binary) and isinstance(size.b, Const) and isinstance(size.b.value, int):
        if size.op is BinOp.ADD:
            return size.a, size.b.value
        if size.op is BinOp.SUB:
            return size.a, -size.b.value
    return size, 0


def _factors(size: Size) -> list[Size]:
    """Return the factors of an extent."""
    found: list[Size] = []
    worklist: list[Any] = [size]
    while worklist:
        factor = worklist.pop()
        if isinstance(factor, Binary) and factor.op is BinOp.MUL:
            worklist += [factor.b, factor.a]
        else:
            found.append(_fold_constant(factor))
    return found


def _fold_constant(size: Any) -> Size:
    """Return the value of a constant expression; return other extents unchanged."""
    value: Any = size.value if isinstance(size, Const) else size
    return value  # type: ignore[no-any-return]  # an extent is never a float
