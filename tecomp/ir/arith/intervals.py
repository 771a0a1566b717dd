"""Integer intervals and boxes whose bounds may be unknown."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias, TypeVar

E = TypeVar("E")
T = TypeVar("T")

Interval: TypeAlias = "tuple[int | None, int | None]"

Box: TypeAlias = Sequence[tuple[E, E]]
"""Product of intervals: start and extent for each axis."""

UNKNOWN: Interval = (None, None)


def less(a: int | None, b: int | None) -> int | None:
    """Return the tighter of two upper bounds; None means unbounded."""
    return b if a is None else a if b is None else min(a, b)


def greater(a: int | None, b: int | None) -> int | None:
    """Return the tighter of two lower bounds; None means unbounded."""
    return b if a is None else a if b is None else max(a, b)


def min_bound(a: int | None, b: int | None) -> int | None:
    """Return the minimum of two interval bounds, or None if either is unknown."""
    return None if a is None or b is None else min(a, b)


def max_bound(a: int | None, b: int | None) -> int | None:
    """Return the maximum of two interval bounds, or None if either is unknown."""
    return None if a is None or b is None else max(a, b)


def floordiv_bound(a: int | None, d: int) -> int | None:
    """Return `a // d`, or None if `a` is unknown."""
    return None if a is None else a // d


def digit_of(x: Interval, low: int, size: int | None) -> Interval:
    """Return the interval of `x // low % size`, or of `x // low` if `size` is None."""
    lower, upper = floordiv_bound(x[0], low), floordiv_bound(x[1], low)
    if size is None or (lower is not None and upper is not None and lower >= 0 and upper < size):
        return lower, upper
    return 0, size - 1


def interval_of_sum(
    const: int, terms: Mapping[T, int], interval_of: Callable[[T], Interval]
) -> Interval:
    """Return the interval of a constant plus multiples of terms that are treated as independent."""
    low: int | None = const
    high: int | None = const
    for term, n in terms.items():
        lower, upper = interval_of(term)
        if n < 0:
            lower, upper = upper, lower
        low = None if low is None or lower is None else low + n * lower
        high = None if high is None or upper is None else high + n * upper
    return low, high


def product(x: Interval, y: Interval) -> Interval:
    """Return the interval of the product of a value in `x` and a value in `y`."""
    if None in x or None in y:
        positive = all(low is not None and low >= 0 for low, _ in (x, y))
        return ((x[0] or 0) * (y[0] or 0), None) if positive else UNKNOWN
    corners = [a * b for a in x for b in y if a is not None and b is not None]
    return min(corners), max(corners)
