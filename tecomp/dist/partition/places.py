"""Indices along one axis, as NumPy takes them: a slice if they are evenly spaced, else a list."""

from __future__ import annotations

from math import gcd
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Numbers: TypeAlias = "npt.NDArray[np.int64]"
Places: TypeAlias = "slice | Numbers"
"""Indices from 0 on. A slice has a start, a stop and a positive step, and no more than it needs."""

NONE = slice(0, 0, 1)


def steps(start: int, stop: int, step: int = 1) -> slice:
    """The indices from `start` below `stop`, each `step` after the one before.

    >>> steps(1, 9, 4), steps(3, 2)
    (slice(1, 6, 4), slice(0, 0, 1))
    """
    count = -(-(stop - start) // step)
    if count <= 0:
        return NONE
    return slice(start, start + (count - 1) * step + 1, step if count > 1 else 1)


def count_of(places: Places) -> int:
    """How many indices there are."""
    if isinstance(places, slice):
        return len(range(places.start, places.stop, places.step))
    return len(places)


def listed(places: Places) -> Numbers:
    """The indices, one by one."""
    if isinstance(places, slice):
        return np.arange(places.start, places.stop, places.step)
    return places


def gathered(numbers: Numbers) -> Places:
    """The same indices, as a slice if they are one.

    >>> gathered(np.array([1, 4, 7])), gathered(np.array([1, 4, 8]))
    (slice(1, 8, 3), array([1, 4, 8]))
    """
    if len(numbers) < 2:
        return steps(int(numbers[0]), int(numbers[0]) + 1) if len(numbers) else NONE
    step = int(numbers[1] - numbers[0])
    if step > 0 and np.all(np.diff(numbers) == step):
        return steps(int(numbers[0]), int(numbers[-1]) + 1, step)
    return numbers


def chosen(places: Places, inner: Places) -> Places:
    """Those of the places that `inner` has the numbers of.

    >>> chosen(slice(10, 20, 2), slice(1, 4, 2))
    slice(12, 17, 4)
    """
    if isinstance(places, slice) and isinstance(inner, slice):
        first, step = places.start + inner.start * places.step, places.step * inner.step
        return steps(first, first + count_of(inner) * step, step)
    return gathered(listed(places)[inner])


def common(owned: Places, wanted: Places) -> tuple[Places, Places]:
    """Where the indices that both have are: their numbers in `owned`, and in `wanted`.

    `owned` ascends; `wanted` may be in any order and have an index more than once.

    >>> common(slice(0, 10, 1), slice(8, 14, 1))
    (slice(8, 10, 1), slice(0, 2, 1))
    """
    if isinstance(owned, slice) and isinstance(wanted, slice):
        return _meeting(owned, wanted)
    if not count_of(owned):
        return NONE, NONE
    known, asked = listed(owned), listed(wanted)
    at = np.minimum(np.searchsorted(known, asked), len(known) - 1)
    hits = np.flatnonzero(known[at] == asked)
    return gathered(at[hits]), gathered(hits)


def _meeting(owned: slice, wanted: slice) -> tuple[slice, slice]:
    """The same for two slices: a number that both have, and then every common multiple further.

    Source:
        The Chinese remainder theorem.
    """
    shared = gcd(owned.step, wanted.step)
    apart, rest = divmod(wanted.start - owned.start, shared)
    if rest:
        return NONE, NONE
    period = wanted.step // shared
    both = owned.start + apart * pow(owned.step // shared, -1, period) % period * owned.step
    step, low = owned.step * period, max(owned.start, wanted.start)
    first = both + -((both - low) // step) * step
    count = count_of(steps(first, min(owned.stop, wanted.stop), step))
    return _numbers(owned, first, step, count), _numbers(wanted, first, step, count)


def _numbers(places: slice, first: int, step: int, count: int) -> slice:
    start, each = (first - places.start) // places.step, step // places.step
    return steps(start, start + count * each, each)


def seen(places: Places, start: int, step: int, extent: int) -> Places:
    """The numbers k from 0 below `extent`, ascending, for which `start + step * k` is a place.

    >>> seen(slice(4, 8, 1), 1, 2, 10)
    slice(2, 4, 1)
    """
    if isinstance(places, slice) and places.step == 1:
        if step < 0:
            first, last = -((places.stop - 1 - start) // -step), (start - places.start) // -step
        else:
            first, last = -((start - places.start) // step), (places.stop - 1 - start) // step
        return steps(max(first, 0), min(last + 1, extent)) if count_of(places) else NONE
    numbers, rest = np.divmod(listed(places) - start, step)
    hits = numbers[(rest == 0) & (numbers >= 0) & (numbers < extent)]
    return gathered(hits[::-1] if step < 0 else hits)
