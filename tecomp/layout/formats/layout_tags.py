"""Interned layout tags attached to arrays."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from math import prod
from typing import Any, TypeAlias
from weakref import WeakValueDictionary

from tecomp.caches import memoize
from tecomp.errors import LayoutError
from tecomp.fork_gate import leaf_lock
from tecomp.ir.nodes.dtype import INT64
from tecomp.ir.nodes.expr import Const, Expr, Var
from tecomp.ir.nodes.stmt import Extent
from tecomp.poly.maps.index_map import IndexMap

Shape: TypeAlias = "tuple[int, ...]"


class LayoutTag:
    """Interned identity of a layout; `layout_tag` returns the unique instance per formula.

    Attributes:
        formula: Formula of the layout as text.
        index_map: Index map of the layout; None if elements are not stored in their dtype.
    """

    __slots__ = ("__weakref__", "formula", "index_map")

    def __init__(self, formula: str, index_map: IndexMap | None = None) -> None:
        self.formula = formula
        self.index_map = index_map

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle by formula, so that unpickling interns the tag in the other process."""
        return layout_tag, (self.formula, self.index_map)


_MARKS: WeakValueDictionary[tuple[str, ...], LayoutTag] = WeakValueDictionary()
_LOCK = leaf_lock()


def layout_tag(formula: str, index_map: IndexMap | None = None) -> LayoutTag:
    """Return the tag of a layout: one object per formula while it is referenced.

    A composition of maps can have padding that its formula does not show, so the formulas of its
    parts belong to the key.
    """
    parts = index_map.parts if index_map is not None else ()
    name = (formula, *(part.formula for part in parts)) if len(parts) > 1 else (formula,)
    # `setdefault` alone is not atomic here: two threads could get different tags.
    with _LOCK:
        return _MARKS.setdefault(name, LayoutTag(formula, index_map))


@cache
def row_major_tag(rank: int) -> LayoutTag:
    """Return the tag of row-major arrays of a given rank."""
    axes = tuple(Var(f"i{k}") for k in range(rank))
    index_map = IndexMap(axes, axes)
    return layout_tag(index_map.formula, index_map)


def layout_tag_of_maps(rank: int, maps: Sequence[IndexMap]) -> LayoutTag:
    """Return the tag of arrays of a given rank after a sequence of layout transformations."""
    if not maps:
        return row_major_tag(rank)
    first, *others = map(IndexMap.lift, maps)
    for other in others:
        first = first.then(other)
    return layout_tag(first.formula, first)


@memoize("layout.equal_tags")
def compatible_tags(
    actual: LayoutTag, extents: Shape, expected: LayoutTag, shape: Shape, stored: Shape
) -> bool:
    """Return whether two tags describe the same layout of an array.

    See `tecomp.codegen.dispatch.array_interop.is_in_layout`.

    Args:
        actual: Tag of the array.
        extents: Shape of the array.
        expected: Tag of the required layout.
        shape: Shape of the tensor.
        stored: Shape of arrays in the required layout.
    """
    actual_map, expected_map = actual.index_map, expected.index_map
    if actual_map is None or expected_map is None:
        return False
    rank = len(actual_map.initial_indices)
    if expected is row_major_tag(len(shape)) and extents == shape and (
        rank != len(shape) or _places(actual_map, shape) != extents
    ):
        return True
    if rank != len(shape) or len(extents) != len(actual_map.final_indices) or (
        prod(extents) != prod(stored)
    ):
        return False
    return _in_order(actual_map, extents).is_equivalent_to(_in_order(expected_map, stored), shape)


def _places(index_map: IndexMap, shape: Shape) -> tuple[Extent, ...] | None:
    """Return the shape of arrays in a layout; None if the layout does not support this shape."""
    try:
        return index_map.map_shape(shape)
    except LayoutError:
        return None


def _in_order(index_map: IndexMap, shape: Shape) -> IndexMap:
    """Return the map from an index to the row-major address in arrays of a given shape."""
    address: Expr = Const(0, INT64)
    for index, extent in zip(index_map.final_indices, shape, strict=True):
        address = address * extent + index
    return IndexMap(index_map.initial_indices, (address,))
