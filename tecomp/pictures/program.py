"""A program as a picture: kernels in the order in which they run, what goes between, and memory.

Time runs downwards, a row for each kernel. A value is a line from the kernel that makes it to those
that read it, and a box at its addresses for as long as it is needed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tecomp.compute.tensor import Tensor
from tecomp.drawing.canvas import MARGIN, Canvas
from tecomp.drawing.fonts import text_width
from tecomp.drawing.lanes import connect
from tecomp.drawing.palette import NEUTRAL, STRONG, colour
from tecomp.drawing.panels import head, heading, legend
from tecomp.drawing.svg import Svg
from tecomp.graph.call import Call
from tecomp.graph.groups import border_of
from tecomp.graph.memory import Plan
from tecomp.graph.program import Program
from tecomp.ir.language.text import counted, shortened
from tecomp.layout.descriptions.layout import Layout
from tecomp.pictures.plan import draw_values, sizes_of

_TOP, _ROW, _BOX = 104.0, 46.0, 34.0
_MOST_ROWS = 120
_WIDEST = 64
"""Letters of a line of text in a box."""


@dataclass(frozen=True, slots=True)
class Row:
    """A row of the picture: an input, or a kernel.

    Attributes:
        name: what it is.
        made: the values that it gives.
        read: those that it takes.
        remark: the values with their shapes.
        relayouts: what it takes in an order of its own, with the shape in memory.
        colour: the same for calls of one kernel.
    """

    name: str
    made: tuple[Tensor, ...]
    read: tuple[Tensor, ...]
    remark: str
    relayouts: str
    colour: str


def drawn(program: Program) -> Svg:
    """The picture of a program."""
    details, stored = program.details, program.details.stored
    rows = [Row(x.name, (x,), (), _text(x, stored), "", NEUTRAL) for x in details.inputs]
    colours: dict[int, str] = {}
    for call in details.kernels:
        fill = colours.setdefault(id(call.part), colour(len(colours), len(colours) // 8))
        rows.append(_kernel_row(call, details.outputs, stored, fill))
    whole, rows = len(rows), rows[:_MOST_ROWS]
    width = max((_box_width(row) for row in rows), default=0.0)
    canvas = Canvas()
    calls = counted(len(details.kernels), "call")
    kinds = counted(len({id(call.part) for call in details.kernels}), "kernel")
    head(canvas, program.name, f"{calls} of {kinds} on {program.target.name}")
    end = heading(canvas, MARGIN, 82, "Kernels", "in the order in which they run")
    for number, row in enumerate(rows):
        _draw_row(canvas, _y(number), row, width)
    right = max(_draw_values(canvas, rows, MARGIN + width), end)
    _draw_memory(canvas, details.memory, len(details.inputs), len(rows), right + 40)
    has_relayouts = any(call.is_relayout or call.packed for call in details.kernels)
    fills = [
        *[(NEUTRAL, "an input")] * bool(details.inputs),
        (colour(0), "a kernel, each with a colour of its own"),
        *[(STRONG, "a relayout")] * has_relayouts,
    ]
    left = [f"⋮ {whole - len(rows)} more calls are left out."] if whole > len(rows) else []
    legend(canvas, _y(len(rows)) + 16, fills, left)
    return canvas.finished(f"the kernels and the memory of {program.name}")


def _kernel_row(
    call: Call, outputs: Sequence[Tensor], stored: Mapping[Tensor, Layout], fill: str
) -> Row:
    made = tuple(call.group.result.outputs)
    name = " ".join(op.name for op in call.group.operations)
    given = {x: " (output)" for x in outputs}
    gives = ", ".join(_text(x, stored) + given.get(x, "") for x in made)
    relayouts = ", ".join(f"{each.source.name} as {list(each.shape)}" for each in call.packed)
    read = tuple(border_of(call.group))
    fill = STRONG if call.is_relayout else fill
    return Row(_short(name), made, read, _short(gives), _short(relayouts), fill)


def _text(tensor: Tensor, stored: Mapping[Tensor, Layout]) -> str:
    text = f"{tensor.name}: {tensor.dtype}{list(tensor.shape)}"
    return f"{text} as {list(stored[tensor].physical_shape)}" if tensor in stored else text


def _short(text: str) -> str:
    return shortened(text, _WIDEST)


def _y(row: float) -> float:
    return _TOP + row * _ROW


def _box_width(row: Row) -> float:
    lower = text_width(row.remark, 10, "mono")
    if row.relayouts:
        lower += 14 + text_width(row.relayouts, 10, "mono")
    return 16 + max(text_width(row.name, 11, "bold"), lower)


def _draw_row(canvas: Canvas, y: float, row: Row, width: float) -> None:
    canvas.box(MARGIN, y, width, _BOX, row.colour, row.name)
    canvas.text(MARGIN + 8, y + 14, row.name, size=11, style="dark bold")
    canvas.text(MARGIN + 8, y + 28, row.remark, size=10, style="dark mono")
    if row.relayouts:
        x = MARGIN + 8 + text_width(row.remark, 10, "mono") + 6
        canvas.box(x, y + 18, text_width(row.relayouts, 10, "mono") + 8, 13, STRONG)
        canvas.text(x + 4, y + 28, row.relayouts, size=10, style="dark mono")


def _draw_values(canvas: Canvas, rows: Sequence[Row], right: float) -> float:
    """Lines from what makes a value to what reads it; where they end."""
    made: dict[Tensor, tuple[int, list[int]]] = {
        tensor: (k, []) for k, row in enumerate(rows) for tensor in row.made
    }
    for k, row in enumerate(rows):
        for tensor in row.read:
            if tensor in made:
                made[tensor][1].append(k)
    tops = [_y(k) for k in range(len(rows))]
    return connect(
        canvas, right, made, [y + _BOX * 0.7 for y in tops], [y + _BOX * 0.3 for y in tops],
        {x: f"{x.name}: {x.dtype}{list(x.shape)}" for x in made},
    )


def _draw_memory(canvas: Canvas, plan: Plan, above: int, rows: int, left: float) -> None:
    """The values between kernels, at their addresses; so many rows are above the first kernel."""
    heading(canvas, left, 82, "Memory between kernels")
    if plan.values:
        canvas.text(left, 98, sizes_of(plan), style="soft")
    draw_values(canvas, plan, left, lambda row: _y(above + row), _BOX, rows - above)
