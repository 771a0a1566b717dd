"""Arrays in the layout of a tensor that remember which: what `pack` and `empty` give.

The mark is a slot beside NumPy's own fields. Nothing that NumPy makes from such an array has it, so
a part, a sum or a copy is an array like any other; a kernel compares marks where there are some, by
their addresses and without Python.
"""

from __future__ import annotations

from functools import cache
from threading import Lock
from typing import Any, TypeAlias
from weakref import WeakValueDictionary

import numpy as np

Array: TypeAlias = np.ndarray[Any, Any]


class Mark:
    """A layout by its formula; `mark` gives the one of each."""

    __slots__ = ("__weakref__", "formula")

    def __init__(self, formula: str) -> None:
        self.formula = formula

    def __reduce__(self) -> tuple[Any, ...]:
        """As its formula: another process has a mark of its own for it."""
        return mark, (self.formula,)


_MARKS: WeakValueDictionary[str, Mark] = WeakValueDictionary()
_LOCK = Lock()


def mark(formula: str) -> Mark:
    """The mark of a layout: the same object for the same formula, as long as anything has it."""
    # `setdefault` alone may give two threads a mark each.
    with _LOCK:
        return _MARKS.setdefault(formula, Mark(formula))


@cache
def plain_mark(rank: int) -> Mark:
    """The mark of arrays in the shape of the computation."""
    axes = ", ".join(f"i{k}" for k in range(rank))
    return mark(f"({axes}) -> ({axes})")


class PackedArray(np.ndarray[Any, Any]):
    """An array that `mark_of` knows the layout of; it looks and counts as a plain one."""

    __slots__ = ("_mark",)

    _mark: Mark

    def __repr__(self) -> str:
        return repr(np.asarray(self))


SLOT = np.ndarray.__basicsize__
"""Where the mark of an array is: after all that NumPy keeps."""


def mark_of(array: object) -> Mark | None:
    """The layout that an array is known to be in."""
    return getattr(array, "_mark", None) if isinstance(array, PackedArray) else None


def empty(shape: tuple[int, ...], dtype: Any, layout: Mark) -> Array:
    """A new array in a layout, contents undefined."""
    made = PackedArray(shape, dtype)
    made._mark = layout
    return made


def marked(array: Array, layout: Mark) -> Array:
    """The same memory, known to be in a layout."""
    seen = array.view(PackedArray)
    seen._mark = layout
    return seen
