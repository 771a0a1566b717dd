"""Alternative layouts of an operand that may satisfy a constraint."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from tecomp.constraints.operation_view import AnalyzedOperation, OperandUse
from tecomp.ir.arith.extents import round_up
from tecomp.ir.nodes.expr import Binary, BinOp, Expr, Var, index_value
from tecomp.ir.traversal.rewrite import free_variables
from tecomp.layout.core.layout import Layout
from tecomp.layout.sticks.stick_formats import StickFormat
from tecomp.layout.sticks.stick_layout import StickLayout
from tecomp.machine.operand_constraints import OperandMemory, OperandPadding, Rule
from tecomp.poly.maps.index_map import IndexMap


def candidates(use: OperandUse, each: AnalyzedOperation, rule: Rule) -> Iterator[Layout]:
    """Yield layouts of an operand that may satisfy a rule: other memory, padding or lanes.

    Layouts with lanes along another dimension have the same number of lanes as the current layout.
    """
    layout = use.layout
    if isinstance(rule, OperandMemory):
        yield from (_with(layout, memory=memory) for memory in rule.memories)
    elif isinstance(rule, OperandPadding):
        yield _with(layout, pad_value=each.neutral_in(layout))
        if rule.multiple_bytes is not None:
            yield _pad(use, each, rule)
    else:
        for dim in reversed(range(len(layout.shape))):
            yield _lanes_along(layout, dim)
        if use is each.out and isinstance(layout, StickLayout):
            for dim in range(len(layout.shape)):
                yield _sparse(layout, dim)


def _with(layout: Layout, **fields: Any) -> Layout:
    """Return a layout with the same index map and other fields replaced."""
    plain = Layout(
        layout.shape, layout.dtype, layout.index_map, layout.storage, layout.pad_value,
        layout.memory, layout.grid_axes,
    )
    return replace(plain, **fields)


def dims_of_lanes(use: OperandUse, each: AnalyzedOperation, rule: OperandPadding) -> list[int]:
    """Return the dimensions of an operand along rule axes that are lanes of another operand."""
    wanted = set(each.op.reduce_axis if rule.axis == "reduced" else each.op.axis)
    lanes = {
        axis for other in each.inputs if other is not use
        for k, axis in enumerate(each.axes) if axis in wanted and other.places.runs_along(k)
    }
    return [
        dim for dim, index in enumerate(use.indices)
        if any(var in lanes for var in free_variables(index))
    ]


def _pad(use: OperandUse, each: AnalyzedOperation, rule: OperandPadding) -> Layout:
    """Return the layout with dimensions padded to the rule's multiple and neutral padding values.

    An unmodified dimension in the index map declares the padding as a modulo.
    """
    layout = use.layout
    axes = layout.index_map.initial_indices
    step = max((rule.multiple_bytes or 1) // layout.dtype.bytes, 1)
    rounded = {
        axes[dim]: round_up(layout.shape[dim], step) for dim in dims_of_lanes(use, each, rule)
    }
    results = tuple(
        Binary(BinOp.MOD, expr, index_value(rounded[expr]))
        if isinstance(expr, Var) and expr in rounded else expr
        for expr in layout.index_map.final_indices
    )
    index_map = IndexMap(axes, results, layout.axis_separators)
    return _with(layout, index_map=index_map, pad_value=each.neutral_in(layout))


def _lanes_along(layout: Layout, dim: int) -> Layout:
    """Return a layout with the same number of lanes along another dimension."""
    if isinstance(layout, StickLayout):
        return _sticks(layout, dim, StickFormat.Dense)
    lanes = layout.physical_shape[-1] if layout.physical_shape else 1
    axes = layout.index_map.initial_indices
    others: list[Expr] = [axis for k, axis in enumerate(axes) if k != dim]
    lane = Binary(BinOp.MOD, axes[dim], index_value(lanes))
    index_map = IndexMap(axes, (*others, axes[dim] // lanes, lane), ())
    return Layout(
        layout.shape, layout.dtype, index_map, layout.storage, layout.pad_value, layout.memory
    )


def _sparse(layout: StickLayout, dim: int) -> Layout:
    return _sticks(layout, dim, StickFormat.Sparse)


def _sticks(layout: StickLayout, dim: int, form: StickFormat) -> Layout:
    lanes = layout.elems_in_stick
    order = [*(k for k in range(len(layout.shape)) if k != dim), dim]
    size = list(layout.shape)
    if form is StickFormat.Dense:
        size[dim] = round_up(size[dim], lanes)
    return StickLayout(
        size, layout.dtype, order, form, size=layout.shape, stick_bytes=layout.stick_bytes,
        pad_value=layout.pad_value, memory=layout.memory,
    )
