"""Check of the interpreter: whether reference counts equal the numbers of owners."""

from __future__ import annotations

from collections.abc import Callable
from sys import getrefcount


class _Owned:
    """Object of which references are counted."""

    __slots__ = ("__weakref__",)


def are_counts_exact(count: Callable[[object], int] = getrefcount) -> bool:
    """Return whether a reference count changes by one with each owner of a reference.

    Where it does not, a count cannot prove that an array is the only owner of its memory. Writes
    then copy, exported arrays are read-only, and every pending value is stored.

    Args:
        count: Function that returns the reference count of its argument.

    >>> are_counts_exact(), are_counts_exact(lambda owned: 2)
    (True, False)
    """
    owned = _Owned()
    alone = count(owned)
    owners: list[object] = [owned]
    one = count(owned)
    owners.append((owned,))
    two = count(owned)
    owners.clear()
    return (one, two, count(owned)) == (alone + 1, alone + 2, alone)


COUNTS_ARE_EXACT = are_counts_exact()
"""Whether reference counts decide about copies and outputs; False on other interpreters."""
