"""Arrays in the layout of a tensor that remember which: what `pack` and `empty` give.

The mark is a slot beside NumPy's own fields. Nothing that NumPy makes from such an array has it, so
a part, a sum or a copy is an array like any other; a kernel compares marks where there are some, by
their addresses and without Python.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

from tecomp.layout.placement.marks import Mark, agree

Array: TypeAlias = np.ndarray[Any, Any]


def is_in_layout(
    array: Any, wanted: Mark, shape: tuple[int, ...], stored: tuple[int, ...]
) -> bool:
    """Whether an array may be in a layout: it has no mark, or one that says the same.

    An argument without a layout takes any array of its shape that is no tensor of this shape in
    another layout: the program may be about places instead of elements.

    Args:
        array: what is passed.
        wanted: the layout.
        shape: of the tensor.
        stored: of arrays in the layout.
    """
    found = mark_of(array)
    return found is None or found.formula == wanted.formula or agree(
        found, tuple(array.shape), wanted, shape, stored
    )


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
