"""A program as a picture: kernels in the order in which they run, what goes between, and memory.

Time runs downwards, a row for each kernel. A value is a line from the kernel that makes it to those
that read it, and a box at its addresses for as long as it is needed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from tecomp.compute.tensor import Tensor
from tecomp.drawing.canvas import Canvas
from tecomp.drawing.fonts import text_width
from tecomp.drawing.svg import Svg
from tecomp.graph.call import Call
from tecomp.graph.groups import border_of
from tecomp.graph.memory import Plan
from tecomp.ir.language.text import counted, shortened
from tecomp.layout.descriptions.layout import Layout

_COLOURS = (
    "#aad2ef", "#f9d29d", "#b0e9d5", "#e1b5d5", "#7ab6e4", "#f5bb6a", "#83ddbd", "#d28cbb",
)
_PASSED = "#dfe3e8"
_RELAYOUT = "#dc8813"
_LEFT, _TOP, _ROW, _BOX, _LANE = 24.0, 104.0, 46.0, 34.0, 13.0
_MEMORY = 360.0
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


def drawn(
    name: str,
    target: str,
    inputs: Sequence[Tensor],
    outputs: Sequence[Tensor],
    calls: Sequence[Call],
    plan: Plan,
    stored: Mapping[Tensor, Layout] = MappingProxyType({}),
) -> Svg:
    """The picture as SVG.

    Args:
        name: of the program.
        target: the machine.
        inputs: what the caller passes.
        outputs: what it gets.
        calls: of kernels, in order.
        plan: where the values between them are.
        stored: the layouts of values that are not in the order of NumPy.
    """
    rows = [Row(x.name, (x,), (), _text(x, stored), "", _PASSED) for x in inputs]
    colours: dict[int, str] = {}
    for call in calls:
        colour = _COLOURS[len(colours) % len(_COLOURS)]
        colour = colours.setdefault(id(call.part), colour)
        rows.append(_kernel_row(call, outputs, stored, colour))
    width = max(_box_width(row) for row in rows)
    canvas = Canvas()
    canvas.text(_LEFT, 30, name, size=18, style="bold")
    kinds = len({id(call.part) for call in calls})
    counts = f"{counted(len(calls), 'call')} of {counted(kinds, 'kernel')} on {target}"
    canvas.text(_LEFT, 51, counts, style="soft")
    canvas.text(_LEFT, 82, "Kernels", size=13, style="bold")
    canvas.text(_LEFT + 72, 82, "one colour for each; relayouts are orange", style="soft")
    for number, row in enumerate(rows):
        _draw_row(canvas, _y(number), row, width)
    right = _draw_values(canvas, rows, _LEFT + width)
    _draw_memory(canvas, plan, len(inputs), right + 40)
    return canvas.finished(f"the kernels and the memory of {name}")


def _kernel_row(
    call: Call, outputs: Sequence[Tensor], stored: Mapping[Tensor, Layout], colour: str
) -> Row:
    made = tuple(call.group.result.outputs)
    name = " ".join(op.name for op in call.group.operations)
    given = {x: " (output)" for x in outputs}
    gives = ", ".join(_text(x, stored) + given.get(x, "") for x in made)
    relayouts = ", ".join(f"{each.source.name} as {list(each.shape)}" for each in call.packed)
    read = tuple(border_of(call.group))
    colour = _RELAYOUT if call.is_relayout else colour
    return Row(_short(name), made, read, _short(gives), _short(relayouts), colour)


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
    canvas.box(_LEFT, y, width, _BOX, row.colour, row.name)
    canvas.text(_LEFT + 8, y + 14, row.name, size=11, style="dark bold")
    canvas.text(_LEFT + 8, y + 28, row.remark, size=10, style="dark mono")
    if row.relayouts:
        x = _LEFT + 8 + text_width(row.remark, 10, "mono") + 6
        canvas.box(x, y + 18, text_width(row.relayouts, 10, "mono") + 8, 13, _RELAYOUT)
        canvas.text(x + 4, y + 28, row.relayouts, size=10, style="dark mono")


def _draw_values(canvas: Canvas, rows: Sequence[Row], right: float) -> float:
    """Lines from what makes a value to what reads it; where they end."""
    made = {tensor: k for k, row in enumerate(rows) for tensor in row.made}
    readers: dict[Tensor, list[int]] = {tensor: [] for tensor in made}
    for k, row in enumerate(rows):
        for tensor in row.read:
            if tensor in made:
                readers[tensor].append(k)
    lanes = lanes_of({x: (made[x], max(found)) for x, found in readers.items() if found})
    for tensor, lane in lanes.items():
        x = right + 14 + _LANE * lane
        start, ends = _y(made[tensor]) + _BOX * 0.7, [_y(k) + _BOX * 0.3 for k in readers[tensor]]
        canvas.line([(right, start), (x, start), (x, max(ends))])
        for end in ends:
            canvas.arrow((x, end), (right + 2, end))
    return right + 14 + _LANE * (max(lanes.values(), default=0) + 1)


def lanes_of(lives: Mapping[Tensor, tuple[int, int]]) -> dict[Tensor, int]:
    """The first lane for each value in which no other has a row of its own."""
    ends: list[int] = []
    found: dict[Tensor, int] = {}
    for tensor, (first, last) in sorted(lives.items(), key=lambda item: item[1]):
        lane = next((k for k, end in enumerate(ends) if end <= first), len(ends))
        ends[lane:lane + 1] = [last]
        found[tensor] = lane
    return found


def _draw_memory(canvas: Canvas, plan: Plan, above: int, left: float) -> None:
    """The values between kernels, at their addresses; so many rows are above the first kernel."""
    canvas.text(left, 82, "Memory between kernels", size=13, style="bold")
    if not plan.values:
        canvas.text(left, _TOP + 14, "none", style="soft")
        return
    remark = f"{plan.bytes:_} bytes, of which {plan.lower_bound:_} are needed at one time"
    canvas.text(left, 98, remark, style="soft")
    places = dict.fromkeys(value.offset for value in plan.values)
    colours = {place: _COLOURS[k % len(_COLOURS)] for k, place in enumerate(places)}
    scale = _MEMORY / plan.bytes
    for value in plan.values:
        x, y = left + value.offset * scale, _y(above + value.first)
        wide, high = value.bytes * scale, _y(above + value.last) + _BOX - y
        name = value.tensor.name
        title = f"{name}: {value.bytes:_} bytes from {value.offset:_} on"
        canvas.box(x, y, max(wide - 1, 1), high, colours[value.offset], title)
        if text_width(name, 10, "mono") < wide:
            canvas.text(x + 4, y + 14, name, size=10, style="dark mono")
