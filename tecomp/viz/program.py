"""Draw programs and memory plans."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from tecomp.compute.tensor import Tensor
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
    text_width,
)
from tecomp.drawing.svg import Svg
from tecomp.graph.fusion import group_inputs
from tecomp.graph.kernels import KernelCall
from tecomp.graph.memory_plan import ArenaPlan
from tecomp.graph.program import Program
from tecomp.ir.nodes.printer import format_count, truncate
from tecomp.layout.core.layout import Layout

_WIDE = 420.0
_PLAN_ROW, _BAR = 26.0, 22.0
_MAX_PLAN_ROWS = 160


def draw_memory_plan(plan: ArenaPlan) -> Svg:
    """Draw a memory plan."""
    canvas = Canvas()
    y = head(canvas, "memory between kernels", sizes_of(plan)) + 30
    rows = 1 + max((value.last for value in plan.values), default=-1)
    n_drawn = min(rows, _MAX_PLAN_ROWS)
    heading(canvas, MARGIN, y, "Kernels", "time runs downwards, addresses to the right")
    left = MARGIN + text_width(str(max(rows - 1, 0)), 10, "mono") + 16
    for k in range(n_drawn):
        canvas.text(left - 10, y + 14 + k * _PLAN_ROW + 15, str(k), size=10, style="mono soft",
                    anchor="end")
    end = draw_values(canvas, plan, left, lambda row: y + 14 + row * _PLAN_ROW, _BAR, n_drawn)
    if n_drawn < rows:
        canvas.text(left, end + 14, f"⋮ {rows - n_drawn} more kernels", style="soft")
    return canvas.finished("the memory between kernels")


def sizes_of(plan: ArenaPlan) -> str:
    """Describe the memory size of a plan."""
    if not plan.values:
        return "none"
    return f"{plan.bytes:,} bytes, of which {plan.lower_bound:,} are needed at one time"


def draw_values(
    canvas: Canvas, plan: ArenaPlan, left: float, top_of: Callable[[float], float], bar: float,
    rows: int,
) -> float:
    """Draw the values at their addresses over their live ranges; return the bottom y coordinate.

    Args:
        canvas: Canvas to draw on.
        plan: Memory plan.
        left: x coordinate of address 0.
        top_of: Function that returns the top y coordinate of a kernel row.
        bar: Height of a row.
        rows: Number of kernels shown.
    """
    if not plan.values:
        canvas.text(left, top_of(0) + 14, "none", style="soft")
        return top_of(0) + 20
    offsets = dict.fromkeys(value.offset for value in plan.values)
    hues = {offset: k for k, offset in enumerate(offsets)}
    scale = _WIDE / max(plan.bytes, 1)
    bottom = top_of(max(rows - 1, 0)) + bar
    canvas.box(left, top_of(0), _WIDE, bottom - top_of(0), "plain", "free memory")
    for value in plan.values:
        if value.first >= rows:
            continue
        x, y = left + value.offset * scale, top_of(value.first)
        height = top_of(min(value.last, rows - 1)) + bar - y
        width, name = value.bytes * scale, value.tensor.name
        title = (f"{name}: {value.bytes:,} bytes from {value.offset:,} on, "
                 f"kernels {value.first} to {value.last}")
        hue = hues[value.offset]
        canvas.box(x, y, max(width - 1, 1), max(height - 1, 1), colour(hue, hue // 8), title)
        if text_width(name, 10, "mono") < width - 8:
            canvas.text(x + 4, y + 14, name, size=10, style="dark mono", title=title)
    return bottom


_TOP, _ROW, _BOX = 104.0, 46.0, 34.0
_MAX_ROWS = 120
_MAX_LINE_CHARACTERS = 64
"""Maximum number of characters of a line in a box."""


@dataclass(frozen=True, slots=True)
class KernelRow:
    """A row of the figure: an input or a kernel.

    Attributes:
        name: Label.
        outputs: Values that the row produces.
        read: Values that the row reads.
        remark: Produced values with their shapes.
        relayouts: Operands that the kernel packs, with their shapes in memory.
        colour: Fill; equal for all calls of one kernel.
    """

    name: str
    outputs: tuple[Tensor, ...]
    read: tuple[Tensor, ...]
    remark: str
    relayouts: str
    colour: str


def draw_program(program: Program) -> Svg:
    """Draw a program."""
    details, stored = program.details, program.details.stored
    rows = [KernelRow(x.name, (x,), (), _text(x, stored), "", NEUTRAL) for x in details.inputs]
    colours: dict[int, str] = {}
    for call in details.kernels:
        fill = colours.setdefault(id(call.kernel), colour(len(colours), len(colours) // 8))
        rows.append(_kernel_row(call, details.outputs, stored, fill))
    n_rows, rows = len(rows), rows[:_MAX_ROWS]
    width = max((_box_width(row) for row in rows), default=0.0)
    canvas = Canvas()
    calls = format_count(len(details.kernels), "call")
    kinds = format_count(len({id(call.kernel) for call in details.kernels}), "kernel")
    head(canvas, program.name, f"{calls} of {kinds} on {program.target.name}")
    end = heading(canvas, MARGIN, 82, "Kernels", "in the order in which they run")
    for number, row in enumerate(rows):
        _draw_row(canvas, _y(number), row, width)
    right = max(_draw_values(canvas, rows, MARGIN + width), end)
    _draw_memory(canvas, details.arena({}), len(details.inputs), len(rows), right + 40)
    has_relayouts = any(call.is_relayout or call.packed for call in details.kernels)
    fills = [
        *[(NEUTRAL, "an input")] * bool(details.inputs),
        (colour(0), "a kernel; each has its own colour"),
        *[(STRONG, "a relayout")] * has_relayouts,
    ]
    notes = [f"⋮ {n_rows - len(rows)} more calls are omitted."] if n_rows > len(rows) else []
    legend(canvas, _y(len(rows)) + 16, fills, notes)
    return canvas.finished(f"the kernels and the memory of {program.name}")


def _kernel_row(
    call: KernelCall, outputs: Sequence[Tensor], stored: Mapping[Tensor, Layout], fill: str
) -> KernelRow:
    results = tuple(call.group.result.outputs)
    name = " ".join(op.name for op in call.group.operations)
    suffixes = {x: " (output)" for x in outputs}
    result_text = ", ".join(_text(x, stored) + suffixes.get(x, "") for x in results)
    relayouts = ", ".join(f"{item.source.name} as {list(item.shape)}" for item in call.packed)
    read = tuple(group_inputs(call.group))
    fill = STRONG if call.is_relayout else fill
    return KernelRow(_short(name), results, read, _short(result_text), _short(relayouts), fill)


def _text(tensor: Tensor, stored: Mapping[Tensor, Layout]) -> str:
    text = f"{tensor.name}: {tensor.dtype}{list(tensor.shape)}"
    return f"{text} as {list(stored[tensor].physical_shape)}" if tensor in stored else text


def _short(text: str) -> str:
    return truncate(text, _MAX_LINE_CHARACTERS)


def _y(row: float) -> float:
    return _TOP + row * _ROW


def _box_width(row: KernelRow) -> float:
    lower = text_width(row.remark, 10, "mono")
    if row.relayouts:
        lower += 14 + text_width(row.relayouts, 10, "mono")
    return 16 + max(text_width(row.name, 11, "bold"), lower)


def _draw_row(canvas: Canvas, y: float, row: KernelRow, width: float) -> None:
    canvas.box(MARGIN, y, width, _BOX, row.colour, row.name)
    canvas.text(MARGIN + 8, y + 14, row.name, size=11, style="dark bold")
    canvas.text(MARGIN + 8, y + 28, row.remark, size=10, style="dark mono")
    if row.relayouts:
        x = MARGIN + 8 + text_width(row.remark, 10, "mono") + 6
        canvas.box(x, y + 18, text_width(row.relayouts, 10, "mono") + 8, 13, STRONG)
        canvas.text(x + 4, y + 28, row.relayouts, size=10, style="dark mono")


def _draw_values(canvas: Canvas, rows: Sequence[KernelRow], right: float) -> float:
    """Draw connectors from producers to consumers of values; return the right x coordinate."""
    flows: dict[Tensor, tuple[int, list[int]]] = {
        tensor: (k, []) for k, row in enumerate(rows) for tensor in row.outputs
    }
    for k, row in enumerate(rows):
        for tensor in row.read:
            if tensor in flows:
                flows[tensor][1].append(k)
    tops = [_y(k) for k in range(len(rows))]
    return connect(
        canvas, right, flows, [y + _BOX * 0.7 for y in tops], [y + _BOX * 0.3 for y in tops],
        {x: f"{x.name}: {x.dtype}{list(x.shape)}" for x in flows},
    )


def _draw_memory(canvas: Canvas, plan: ArenaPlan, skipped: int, rows: int, left: float) -> None:
    """Draw values between kernels at their addresses; `skipped` rows precede the first kernel."""
    heading(canvas, left, 82, "Memory between kernels")
    if plan.values:
        canvas.text(left, 98, sizes_of(plan), style="soft")
    draw_values(canvas, plan, left, lambda row: _y(skipped + row), _BOX, rows - skipped)
