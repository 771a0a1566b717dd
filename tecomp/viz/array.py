"""Draw arrays."""

from __future__ import annotations

from itertools import product
from math import prod

import numpy as np

from tecomp.array.array_object import Array, node_of
from tecomp.array.graph.node import Node, looking
from tecomp.array.graph.pending import PendingGraph, pending_graph_of
from tecomp.dist.partition.partition import Partition
from tecomp.dist.partition.placements import Places
from tecomp.drawing.canvas import (
    MARGIN,
    NEUTRAL,
    STRONG,
    Canvas,
    colour,
    connect,
    head,
    heading,
    legend,
    sample_indices,
    text_width,
)
from tecomp.drawing.svg import Svg
from tecomp.ir.nodes.printer import format_count, truncate
from tecomp.layout.core.layout import Layout, formula
from tecomp.viz.layout import draw_layout, sizes_of

_ROW, _BAR = 26.0, 20.0
_MOST_ROWS, _MOST_PARTS = 48, 64
_MAX_RUNS = 16
_WIDE, _HIGH = 360.0, 200.0

_LEGEND = ((NEUTRAL, "is there"), (colour(0), "a pending operation"), (STRONG, "the array"))

Runs = tuple[tuple[int, int], ...]


def draw_array(array: Array) -> Svg:
    """Draw an array without evaluating it."""
    node = node_of(array, "picture")
    title = f"array {node.type.dtype}{list(array.shape)}"
    partition = array.partition
    part: Node = node if partition is None else getattr(node, "_part", None) or node
    with looking:
        work = pending_graph_of([node for node in (part,) if node.op is not None])
        layout = _layout(part)
    canvas = Canvas()
    size = prod(array.shape) * array.dtype.itemsize
    left = f"{format_count(len(work.nodes), 'operation')} to come" if work.nodes else "computed"
    where = "on the processor" if array.device == "cpu" else f"on {array.device}"
    lines = [f"{size:,} B {where}, {left}"]
    if partition is not None:
        lines.append(truncate(str(partition), 140))
    if layout is not None:
        lines += [truncate(formula(layout), 140), *sizes_of(layout)]
    y = head(canvas, title, *lines) + 30
    if partition is not None:
        y = _parts(canvas, partition, y) + 36
    if work.nodes:
        _operations(canvas, work, y)
    elif layout is not None:
        draw_layout(canvas, layout, y)
    return canvas.finished(title)


def _layout(node: Node) -> Layout | None:
    """Return the layout of the elements; None if pending or not described by a layout."""
    if node.stored is not None:
        return node.stored.layout
    data = node.data
    if data is None or not data.flags.c_contiguous or data.dtype.kind == "c":
        return None
    return Layout.row_major(data.shape, data.dtype.name)


def _operations(canvas: Canvas, work: PendingGraph, y: float) -> None:
    """Draw the pending operations in topological order."""
    heading(canvas, MARGIN, y, "Operations", "in topological order; lines are values")
    rows = [(f"x{k}: {_type(leaf)}", NEUTRAL) for k, leaf in enumerate(work.leaves)]
    for node in work.nodes:
        name = node.op.where if node.op is not None else "there"
        rows.append((f"{name}: {_type(node)}", colour(0)))
    rows[-1] = rows[-1][0], STRONG
    order, readers = _display_order(work)
    values = [None if k is None else order[k] for k in sample_indices(len(order), _MOST_ROWS)]
    width = 16 + max(text_width(rows[k][0], 10, "mono") for k in values if k is not None)
    tops = [y + 14 + k * _ROW for k in range(len(values))]
    for value, top in zip(values, tops, strict=True):
        if value is None:
            ellipsis = f"⋮ {len(order) - len(values) + 1} more"
            canvas.text(MARGIN + 8, top + 14, ellipsis, style="soft")
            continue
        label, fill = rows[value]
        canvas.box(MARGIN, top, width, _BAR, fill, label)
        canvas.text(MARGIN + 8, top + 14, label, size=10, style="mono dark")
    lines = {index: line for line, index in enumerate(values) if index is not None}
    flows = {k: (line, [lines[index] for index in readers[k] if index in lines])
             for k, line in lines.items()}
    connect(canvas, MARGIN + width, flows, [top + _BAR * 0.7 for top in tops],
            [top + _BAR * 0.3 for top in tops], {k: rows[k][0] for k in lines})
    used_fills = {rows[value][1] for value in values if value is not None}
    legend(canvas, tops[-1] + _ROW + 12, [entry for entry in _LEGEND if entry[0] in used_fills])


def _display_order(work: PendingGraph) -> tuple[list[int], dict[int, list[int]]]:
    """Return the values in display order, and the readers of each value.

    Each available value precedes its first reader directly, so that operations are shown even if
    there are many available values.
    """
    count = len(work.leaves)
    order: dict[int, None] = {}
    readers: dict[int, list[int]] = {k: [] for k in range(count + len(work.nodes))}
    for k, (_, operands) in enumerate(work.steps):
        for operand in dict.fromkeys(operands):
            value = count + operand if operand >= 0 else -1 - operand
            readers[value].append(count + k)
            order[value] = None
        order[count + k] = None
    return list(order), readers


def _type(node: Node) -> str:
    return truncate(f"{node.type.dtype}{list(node.type.shape)}", 60)


def _parts(canvas: Canvas, partition: Partition, y: float) -> float:
    """Draw the shards along two axes, split axes first; return the bottom y coordinate."""
    axes = _drawn_axes(partition)
    names = " and ".join(f"axis {axis}" for axis in axes) or "no axes"
    heading(canvas, MARGIN, y, "Parts", f"numbers are processes; {names} of the array")
    ranks_by_part: dict[tuple[Runs, ...], list[int]] = {}
    for rank in range(min(partition.mesh.size, _MOST_PARTS)):
        index = partition.local_index(rank)
        ranks_by_part.setdefault(tuple(_runs(index[axis]) for axis in axes), []).append(rank)
    top, height = y + 14, _HIGH if len(axes) > 1 else 40.0
    canvas.box(MARGIN, top, _WIDE, height, "plain", "the array")
    for number, (part, ranks) in enumerate(ranks_by_part.items()):
        label = ", ".join(map(str, ranks))
        *rows, columns = part or (((0, 1),),)
        extents = [partition.shape[axis] for axis in axes] or [1]
        dy = height / (max(extents[0], 1) if rows else 1)
        dx = _WIDE / max(extents[-1], 1)
        for (first, last), (left, right) in product(rows[0] if rows else ((0, 1),), columns):
            canvas.box(MARGIN + left * dx, top + first * dy, max((right - left) * dx - 2, 1),
                       max((last - first) * dy - 2, 1), colour(number, number // 8),
                       f"process {label}: {part}", label, size=11)
    if partition.mesh.size > _MOST_PARTS:
        hidden = partition.mesh.size - _MOST_PARTS
        canvas.text(MARGIN, top + height + 16, f"⋮ and of {hidden} other processes", style="soft")
        height += 18
    return top + height


def _drawn_axes(partition: Partition) -> list[int]:
    split_axes = [
        axis for axis, cuts in enumerate(partition.cuts) if prod(cut.count for cut in cuts.cuts) > 1
    ]
    others = [axis for axis in reversed(range(len(partition.shape))) if axis not in split_axes]
    return sorted([*split_axes, *others][:2])


def _runs(places: Places) -> Runs:
    """Return the contiguous runs of indices as (start, stop) pairs, at most `_MAX_RUNS`."""
    if isinstance(places, slice) and places.step in (1, None):
        return ((places.start, places.stop),) if places.start < places.stop else ()
    indices = np.sort(np.arange(places.start, places.stop, places.step)
                      if isinstance(places, slice) else places)
    pieces = np.split(indices, np.flatnonzero(np.diff(indices) > 1) + 1)
    return tuple((int(piece[0]), int(piece[-1]) + 1) for piece in pieces[:_MAX_RUNS] if len(piece))
