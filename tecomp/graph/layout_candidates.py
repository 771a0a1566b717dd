"""Candidate layouts of a value."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias

from tecomp.ir.arith.extents import round_up
from tecomp.ir.nodes.dtype import DType
from tecomp.ir.nodes.expr import Expr, Var, index_value
from tecomp.ir.traversal.rewrite import free_variables
from tecomp.layout.core.layout import Layout
from tecomp.layout.core.stick_formats import StickFormat, types_of
from tecomp.layout.core.stick_layout import StickLayout
from tecomp.layout.core.target_limits import element_of
from tecomp.layout.formats.arguments import remainder
from tecomp.machine.descriptor import Target, Tile
from tecomp.machine.operand_constraints import LaneReduction
from tecomp.poly.maps.index_map import IndexMap

Shape = tuple[int, ...]
Wanted: TypeAlias = "Layout | Literal['default'] | Sequence[Layout | Literal['default']]"
"""Layout request of a caller: a layout, "default" (the target's own), or alternatives."""


def layouts_in(spec: Wanted) -> list[Layout | Literal["default"]]:
    """Return the alternatives of a layout request."""
    return list(spec) if isinstance(spec, list | tuple) else [spec]  # type: ignore[list-item]


def has_layouts(target: Target) -> bool:
    """Return whether layouts matter on a target: it has sticks, tiles or operand rules."""
    return target.stick is not None or target.tile is not None or bool(target.rules)


def candidates(target: Target, shape: Shape, dtype: DType) -> tuple[Layout, ...]:
    """Return the candidate layouts of a tensor on a target, the default first.

    There is one candidate per dimension along the lanes, and one with a single element per stick
    if reductions produce such results. Candidates are stick layouts, tile layouts or permuted
    row-major layouts, depending on the target.

    Raises:
        LayoutError: If the target cannot store the dtype.

    >>> stick128 = Target.load("stick128")
    >>> [each.device_size for each in candidates(stick128, (512, 256), DType("float16"))]
    [[4, 512, 64], [8, 256, 64], [256, 512, 64]]
    """
    found: dict[Layout, None] = {}
    if has_layouts(target):
        element_of(target, dtype, None)
    if _has_stick_layouts(target, dtype):
        found[StickLayout.for_target(target, shape, dtype)] = None
    dims = range(len(shape)) if has_layouts(target) else range(len(shape))[-1:]
    for dim in reversed(dims):
        found.setdefault(layout_along(target, shape, dtype, dim))
    if not found:
        found[_without_dimensions(target, dtype)] = None
    is_sparse = any(isinstance(r, LaneReduction) and r.result == "sparse" for r in target.rules)
    if is_sparse and shape:
        found.setdefault(_one_to_a_row(target, shape, dtype))
    return tuple(found)


def layout_along(
    target: Target, shape: Shape, dtype: DType, dim: int, *, pads_all: bool = False
) -> Layout:
    """Return the layout with a given dimension along the lanes.

    Args:
        target: Target.
        shape: Shape of the tensor.
        dtype: Dtype of the tensor.
        dim: Dimension along the lanes.
        pads_all: Whether to pad all dimensions to whole sticks even if the target does not.

    Raises:
        LayoutError: If the target cannot store the dtype.
    """
    order = [*(k for k in range(len(shape)) if k != dim), dim]
    if _has_stick_layouts(target, dtype):
        return _sticks(target, shape, dtype, order, pads_all=pads_all)
    if target.stick is not None:
        return _rows_of(lanes_of(target, dtype), shape, dtype, order)
    if target.tile is not None:
        return _tiles(target.tile, shape, dtype, order)
    return Layout.row_major(shape, dtype, order)


def lanes_of(target: Target, dtype: DType) -> int:
    """Return the number of elements of a dtype per stick; 1 on targets without sticks."""
    if _has_stick_layouts(target, dtype):
        return StickLayout.for_target(target, (), dtype).elems_in_stick
    return max(target.stick.bytes // dtype.bytes, 1) if target.stick is not None else 1


def _has_stick_layouts(target: Target, dtype: DType) -> bool:
    """Return whether a target stores a dtype in sticks in the storage format of stick layouts."""
    if target.stick is None or dtype not in target.formats:
        return False
    device, _ = types_of(dtype)
    return device.storage.name in target.formats[dtype]


def _rows_of(lanes: int, shape: Shape, dtype: DType, order: Sequence[int]) -> Layout:
    """Return a layout with sticks of `lanes` elements and unconverted values."""
    axes = tuple(Var(f"i{dim}") for dim in range(len(shape)))
    *outer, last = (axes[dim] for dim in order)
    results = *outer[1:], last // lanes, *outer[:1], last % lanes
    return Layout.of(shape, dtype, IndexMap(axes, results))


def _sticks(
    target: Target, shape: Shape, dtype: DType, order: Sequence[int], *, pads_all: bool = False
) -> Layout:
    """Return a stick layout along the last dimension of `order`, padded as the target requires."""
    lanes = lanes_of(target, dtype)
    pads_all |= target.stick is not None and target.stick.padding == "all"
    padded = [
        round_up(extent, lanes) if dim == order[-1] or (pads_all and extent != 1) else extent
        for dim, extent in enumerate(shape)
    ]
    return StickLayout.for_target(target, padded, dtype, order, size=shape)


def _tiles(tile: Tile, shape: Shape, dtype: DType, order: Sequence[int]) -> Layout:
    """Return a layout with tiles over the last two dimensions; tensor rows map to tile rows."""
    axes = tuple(Var(f"i{dim}") for dim in range(len(shape)))
    *outer, column = (axes[dim] for dim in order)
    tile_column, lane = column // tile.columns, column % tile.columns
    zero = remainder(index_value(0), tile.rows)
    results: list[Expr] = [*outer[:-1]]
    if outer:
        results += [outer[-1] // tile.rows, tile_column, outer[-1] % tile.rows, lane]
    else:
        results += [tile_column, zero, lane]
    return Layout.of(shape, dtype, IndexMap(axes, tuple(results)))


def _one_to_a_row(target: Target, shape: Shape, dtype: DType) -> Layout:
    """Return a layout with one element in lane 0 of each stick or tile row."""
    if _has_stick_layouts(target, dtype):
        order = list(range(len(shape)))
        return StickLayout.for_target(
            target, shape, dtype, order, StickFormat.Sparse, size=shape
        )
    axes = tuple(Var(f"i{dim}") for dim in range(len(shape)))
    results: list[Expr] = list(axes)
    lanes = 1
    if target.tile is not None:
        results[-1:] = [axes[-1] // target.tile.rows, axes[-1] % target.tile.rows]
        lanes = target.tile.columns
    index_map = IndexMap(axes, (*results, remainder(index_value(0), lanes)))
    return Layout.of(shape, dtype, index_map)


def is_one_to_a_row(layout: Layout) -> bool:
    """Return whether each stick or tile row holds one element although the layout has several.

    Reductions produce such values, at a high memory cost.
    """
    if not layout.physical_shape or layout.num_elements < 2:
        return False
    lane = layout.index_map.final_indices[-1]
    return layout.physical_shape[-1] > 1 and not free_variables(lane)


def _without_dimensions(target: Target, dtype: DType) -> Layout:
    if target.tile is None:
        return Layout.row_major((), dtype)
    zero = index_value(0)
    indices = remainder(zero, target.tile.rows), remainder(zero, target.tile.columns)
    return Layout.of((), dtype, IndexMap((), indices))
