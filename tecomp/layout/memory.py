"""Layouts as linear memory: the same bytes, whatever the physical axes."""

from __future__ import annotations

from tecomp.ir.expr import BinOp, Expr, binary
from tecomp.layout.axes import const
from tecomp.layout.layout import Layout
from tecomp.poly.index_map import IndexMap


def linear_map(layout: Layout) -> IndexMap:
    """The map from an index to the number of places before it."""
    total: Expr = const(0)
    results = layout.index_map.final_indices
    for k, (expr, extent) in enumerate(zip(results, layout.physical_shape, strict=True)):
        if k == 0:
            total = expr
            continue
        total = binary(BinOp.ADD, binary(BinOp.MUL, total, const(extent)), expr)
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
