"""Layouts as linear memory: the same bytes, whatever the physical axes."""

from __future__ import annotations

from tecomp.ir.language.expr import index_value
from tecomp.layout.descriptions.layout import Layout
from tecomp.layout.placement.places import offset_of
from tecomp.poly.maps.index_map import IndexMap


def linear_map(layout: Layout) -> IndexMap:
    """The map from an index to the number of places before it."""
    total = index_value(offset_of(layout.index_map.final_indices, layout.physical_shape))
    return IndexMap(layout.index_map.initial_indices, (total,), ())


def same_memory(a: Layout, b: Layout) -> bool:
    """Whether two layouts of one tensor fill memory alike, however their axes are cut.

    >>> tiles = Layout.of((8, 128), "float32", lambda i, j: [i // 4, i % 4, j])
    >>> same_memory(tiles, Layout.row_major((8, 128), "float32"))
    True
    """
    return (
        a.shape == b.shape
        and a.storage == b.storage
        and a.num_places == b.num_places
        and linear_map(a).is_equivalent_to(linear_map(b), a.shape)
    )
