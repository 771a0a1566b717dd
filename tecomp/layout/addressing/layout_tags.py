"""Interned layout tags attached to arrays."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, lru_cache
from math import prod
from typing import Any, TypeAlias
from weakref import WeakValueDictionary

from tecomp.errors import LayoutError
from tecomp.fork_gate import leaf_lock
from tecomp.ir.nodes.dtype import INT64
from tecomp.ir.nodes.expr import Const, Expr, Var
from tecomp.ir.nodes.stmt import Extent
from tecomp.poly.maps.index_map import IndexMap

Shape: TypeAlias = "tuple[int, ...]"


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


_MARKS: WeakValueDictionary[tuple[str, ...], Mark] = WeakValueDictionary()
_LOCK = leaf_lock()


def mark(formula: str, index_map: IndexMap | None = None) -> Mark:
    """The mark of a layout: the same object for the same formula, as long as anything has it.

    Maps one after the other may have places that no element comes to, for which their formula has
    no word: what they are made of counts, too.
    """
    parts = index_map.parts if index_map is not None else ()
    name = (formula, *(part.formula for part in parts)) if len(parts) > 1 else (formula,)
    # `setdefault` alone may give two threads a mark each.
    with _LOCK:
        return _MARKS.setdefault(name, Mark(formula, index_map))


@cache
def plain_mark(rank: int) -> Mark:
    """The mark of arrays in the shape of the computation."""
    axes = tuple(Var(f"i{k}") for k in range(rank))
    index_map = IndexMap(axes, axes)
    return mark(index_map.formula, index_map)


def mark_of_maps(rank: int, maps: Sequence[IndexMap]) -> Mark:
    """The mark of arrays of so many axes in the shape of the computation, after these maps."""
    if not maps:
        return plain_mark(rank)
    first, *others = map(IndexMap.lift, maps)
    for other in others:
        first = first.then(other)
    return mark(first.formula, first)


@lru_cache(1024)
def agree(
    found: Mark, places: Shape, wanted: Mark, shape: Shape, stored: Shape
) -> bool:
    """Whether two marks say the same of an array.

    See `tecomp.codegen.dispatch.array_interop.is_in_layout`.

    Args:
        found: the mark of the array.
        places: its shape.
        wanted: the layout that it is to be in.
        shape: of the tensor.
        stored: of arrays in that layout.
    """
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
