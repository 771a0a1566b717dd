"""Layouts as text that is read by people: the formula, sizes, and a table of few places."""

from __future__ import annotations

from math import prod

from tecomp.ir.algebra.simplify import simplify
from tecomp.ir.language.dtype import INT64
from tecomp.ir.language.expr import Const
from tecomp.layout.placement.places import all_offsets
from tecomp.layout.placement.stored import StoredTensor
from tecomp.poly.maps.enumerate import unravel

_FEW_PLACES = 128
_WIDEST = 100


def formula(layout: StoredTensor) -> str:
    """`(i, j) -> (j // 64, i, j % 64)`, without remainders that only declare places.

    A bar stands where an axis of the memory ends.
    """
    index_map = layout.index_map
    ranges = {
        var: (Const(0, INT64), Const(extent - 1, INT64))
        for var, extent in zip(index_map.initial_indices, layout.shape, strict=True)
        if extent > 0
    }
    results = ""
    for axis, expr in enumerate(index_map.final_indices):
        mark = "" if axis == 0 else " | " if axis - 1 in layout.axis_separators else ", "
        results += f"{mark}{simplify(expr, ranges)}"
    return f"({', '.join(v.name for v in index_map.initial_indices)}) -> ({results})"


def described(layout: StoredTensor) -> str:
    """What there is to know about a layout, some lines."""
    elements, places = layout.num_elements, layout.num_places
    lines = [
        f"{layout.dtype}{list(layout.shape)} in {layout.memory}",
        f"  {formula(layout)}",
        f"  physical  {list(layout.physical_shape)}{_stored_as(layout)}, {layout.nbytes:,} B",
    ]
    if layout.grid_axes:
        cores = prod(layout.grid_shape)
        lines.append(
            f"  grid      {list(layout.grid_shape)}: {cores:,} x {list(layout.shard_shape)}, "
            f"{layout.shard_nbytes:,} B each"
        )
    lines.append(
        f"  padding   {places - elements:,} of {places:,} places "
        f"({100 * layout.padding_share:.1f} %){_padded_with(layout)}"
    )
    return "\n".join([*lines, *(f"  {line}" for line in _table(layout))])


def _stored_as(layout: StoredTensor) -> str:
    same = layout.storage.name == layout.dtype
    return "" if same else f" as {layout.storage.name}"


def _padded_with(layout: StoredTensor) -> str:
    if not layout.padding_count:
        return ""
    return ", undefined" if layout.pad_value is None else f", {layout.pad_value}"


def _table(layout: StoredTensor) -> list[str]:
    """Which element is where: a line for each row of the last axis."""
    if not 0 < layout.num_places <= _FEW_PLACES or not layout.shape:
        return []
    names = [["."] * layout.physical_shape[-1] for _ in range(
        layout.num_places // layout.physical_shape[-1])]
    offsets = all_offsets(layout)
    for number, offset in enumerate(offsets.flat):
        row, column = divmod(int(offset), layout.physical_shape[-1])
        names[row][column] = ",".join(map(str, unravel(number, layout.shape)))
    width = max(len(name) for row in names for name in row)
    first = len(str(layout.num_places))
    lines = [
        f"{row * layout.physical_shape[-1]:>{first}}  " + " ".join(f"{n:>{width}}" for n in cells)
        for row, cells in enumerate(names)
    ]
    return lines if max(map(len, lines)) <= _WIDEST else []
