"""Arrays in the layout of a tensor that remember which: what `pack` and `empty` give.

The mark is a slot beside NumPy's own fields. Nothing that NumPy makes from such an array has it, so
a part, a sum or a copy is an array like any other; a kernel compares marks where there are some, by
their addresses and without Python.
"""

from __future__ import annotations

from functools import cache, lru_cache
from math import prod
from threading import Lock
from typing import Any, TypeAlias
from weakref import WeakValueDictionary

import numpy as np

from tecomp.errors import LayoutError
from tecomp.ir.dtype import INT64
from tecomp.ir.expr import Const, Expr, Var
from tecomp.ir.stmt import Extent
from tecomp.poly.index_map import IndexMap

Shape: TypeAlias = "tuple[int, ...]"
Array: TypeAlias = np.ndarray[Any, Any]


class Mark:
    """A layout by its formula; `mark` gives the one of each.

    Attributes:
        formula: it, as text.
        index_map: the same, where each element is stored as it is.
    """

    __slots__ = ("__weakref__", "formula", "index_map")

    def __init__(self, formula: str, index_map: IndexMap | None = None) -> None:
        self.formula = formula
        self.index_map = index_map

    def __reduce__(self) -> tuple[Any, ...]:
        """As its formula: another process has a mark of its own for it."""
        return mark, (self.formula, self.index_map)


_MARKS: WeakValueDictionary[str, Mark] = WeakValueDictionary()
_LOCK = Lock()


def mark(formula: str, index_map: IndexMap | None = None) -> Mark:
    """The mark of a layout: the same object for the same formula, as long as anything has it."""
    # `setdefault` alone may give two threads a mark each.
    with _LOCK:
        return _MARKS.setdefault(formula, Mark(formula, index_map))


@cache
def plain_mark(rank: int) -> Mark:
    """The mark of arrays in the shape of the computation."""
    axes = tuple(Var(f"i{k}") for k in range(rank))
    index_map = IndexMap(axes, axes)
    return mark(index_map.formula, index_map)


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
    return found is None or found.formula == wanted.formula or _agree(
        found, tuple(array.shape), wanted, shape, stored
    )


@lru_cache(1024)
def _agree(
    found: Mark, places: Shape, wanted: Mark, shape: Shape, stored: Shape
) -> bool:
    mine, theirs = found.index_map, wanted.index_map
    if mine is None or theirs is None:
        return False
    rank = len(mine.initial_indices)
    if wanted is plain_mark(len(shape)) and places == shape and (
        rank != len(shape) or _places(mine, shape) != places
    ):
        return True
    if rank != len(shape) or len(places) != len(mine.final_indices) or (
        prod(places) != prod(stored)
    ):
        return False
    return _in_order(mine, places).is_equivalent_to(_in_order(theirs, stored), shape)


def _places(index_map: IndexMap, shape: Shape) -> tuple[Extent, ...] | None:
    """The shape of arrays in a layout, or None if tensors of this shape cannot be in it."""
    try:
        return index_map.map_shape(shape)
    except LayoutError:
        return None


def _in_order(index_map: IndexMap, shape: Shape) -> IndexMap:
    """The place of an element as one number, for arrays of this shape."""
    at: Expr = Const(0, INT64)
    for index, extent in zip(index_map.final_indices, shape, strict=True):
        at = at * extent + index
    return IndexMap(index_map.initial_indices, (at,))


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
