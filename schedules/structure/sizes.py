"""Extents: numbers, or what the arguments say."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeAlias

from tecomp import te

Size: TypeAlias = "int | te.Expr"
"""An extent: a number, or what the arguments say."""


def product(sizes: Iterable[Size]) -> Size:
    """All sizes multiplied together."""
    result: Size = 1
    for size in sizes:
        result = result * size
    return result


def ceil_div(n: int, factor: int) -> int:
    """`n / factor`, rounded up."""
    return -(-n // factor)


def round_up(n: int, multiple: int) -> int:
    """The least multiple of a number that is not below `n`.

    >>> round_up(10, 4), round_up(12, 4)
    (12, 12)
    """
    return ceil_div(n, multiple) * multiple


def is_one(extent: Size) -> bool:
    """Whether an axis has one element, whatever the arguments."""
    return isinstance(extent, int) and extent == 1


def same_shape(a: Sequence[Size], b: Sequence[Size]) -> bool:
    """Whether two shapes are known to be equal."""
    return len(a) == len(b) and all(
        x == y if isinstance(x, int) and isinstance(y, int) else x is y
        for x, y in zip(a, b, strict=True)
    )
