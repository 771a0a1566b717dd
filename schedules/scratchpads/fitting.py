"""The largest sizes for which there is room: of a part along one axis, of a block along several."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

from tecomp.schedules.structure.sizes import ceil_div

_Axis = TypeVar("_Axis")


def largest(most: int, fits: Callable[[int], bool]) -> int:
    """A large number of which something holds, found by halves.

    Args:
        most: the largest that is asked for.
        fits: what holds, say, of all numbers up to some.

    Returns:
        At least 1, which is not asked for.

    >>> largest(100, lambda n: n * n < 50), largest(5, lambda n: True), largest(5, lambda n: False)
    (7, 5, 1)
    """
    low, high = 1, max(most, 1)
    while low < high:
        middle = ceil_div(low + high, 2)
        if fits(middle):
            low = middle
        else:
            high = middle - 1
    return low


def lengthened(
    block: Mapping[_Axis, int],
    limit: Mapping[_Axis, int],
    axes: Iterable[_Axis],
    fits: Callable[[Mapping[_Axis, int]], bool],
    cost: Callable[[Mapping[_Axis, int]], int],
) -> Mapping[_Axis, int]:
    """A block as long as fits, each step twice as long along the axis that then costs least.

    Args:
        block: extents of the block to begin with.
        limit: the largest extents.
        axes: along which it may be longer; of equal ones the first is taken.
        fits: whether there is room for a block.
        cost: of a block.

    >>> lengthened({"m": 1, "n": 1}, {"m": 8, "n": 3}, "nm", lambda b: b["m"] * b["n"] < 9,
    ...            lambda b: -b["n"])
    {'m': 2, 'n': 3}
    """
    axes = tuple(axes)
    while True:
        longer = [
            {**block, axis: min(2 * block[axis], limit[axis])}
            for axis in axes if block[axis] < limit[axis]
        ]
        fitting = [each for each in longer if fits(each)]
        if not fitting:
            return block
        block = min(fitting, key=cost)
