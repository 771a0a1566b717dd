"""Draw targets: memories with capacities and bandwidths, links and engines."""

from __future__ import annotations

from math import prod

from tecomp.drawing.canvas import (
    MARGIN,
    NEUTRAL,
    Canvas,
    colour,
    connect,
    format_short,
    head,
    heading,
    in_bytes,
    legend,
    sample_indices,
    text_width,
)
from tecomp.drawing.svg import Svg
from tecomp.ir.nodes.printer import format_count, truncate
from tecomp.machine.components import Link, Memory, Rates, VectorUnit
from tecomp.machine.descriptor import Target

_SCOPES = {"host": (NEUTRAL, "of the host"), "chip": (colour(0), "of the chip"),
           "core": (colour(2), "of each core")}
_ROW, _BAR, _MOST = 50.0, 38.0, 40


def draw_target(target: Target) -> Svg:
    """Draw a target."""
    canvas = Canvas()
    clock = "" if target.clock_hz is None else f", {target.clock_hz / 1e9:.4g} GHz"
    y = head(canvas, target.name, target.description,
             f"{format_count(target.cores, 'core')}{clock}{_units_of_data(target)}") + 34
    heading(canvas, MARGIN, y, "Memories", "the fill shows the owner; lines are links")
    bottom = _memories(canvas, target, y + 14)
    if target.grid:
        bottom = _grid(canvas, target, bottom + 34)
    if target.core is not None or target.engine:
        bottom = _engine(canvas, target, bottom + 34)
    used = [fill for scope, fill in _SCOPES.items()
            if any(memory.scope == scope for memory in target.memories.values())]
    legend(canvas, bottom + 24, used)
    return canvas.finished(f"the machine {target.name}")


def _units_of_data(target: Target) -> str:
    text = ""
    if target.stick is not None:
        text += f"; sticks of {target.stick.bytes} B"
    if target.tile is not None:
        text += f"; tiles of {target.tile.rows} x {target.tile.columns}"
    return text


def _amount(count: float) -> str:
    """Format a byte count with a binary unit.

    >>> _amount(512), _amount(2_097_152), _amount(137_438_953_472)
    ('512 B', '2 MiB', '128 GiB')
    """
    for power, name in ((40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")):
        if count >= 1 << power:
            return f"{count / (1 << power):.4g} {name}"
    return f"{count:.4g} B"


def _describe(memory: Memory) -> str:
    size = "no limit" if memory.capacity_bytes is None else _amount(memory.capacity_bytes)
    parts = [size, "1 axis" if memory.rank == 1 else f"{memory.rank} axes"]
    parts.append(f"aligned to {memory.alignment_bytes} B")
    rates = memory.read_bytes_per_cycle, memory.write_bytes_per_cycle
    for direction, rate in zip(("read", "write"), rates, strict=True):
        if rate is not None:
            parts.append(f"{direction} {rate:.4g} B/cycle")
    return ", ".join(parts)


def _memories(canvas: Canvas, target: Target, y: float) -> float:
    """Draw a bar per memory and a line per link; return the bottom y coordinate."""
    memories = list(target.memories.values())[:_MOST]
    lines = [_describe(memory) for memory in memories]
    width = 24 + max(
        [text_width(line, 10, "mono") for line in lines]
        + [text_width(truncate(memory.name, 60), 12, "bold") for memory in memories]
    )
    rows = {memory.name: k for k, memory in enumerate(memories)}
    for k, (memory, line) in enumerate(zip(memories, lines, strict=True)):
        top = y + k * _ROW
        canvas.box(MARGIN, top, width, _BAR, _SCOPES[memory.scope][0],
                   f"{memory.name}: {line}. {memory.source}")
        canvas.text(MARGIN + 10, top + 16, truncate(memory.name, 60), size=12, style="dark bold")
        canvas.text(MARGIN + 10, top + 31, line, size=10, style="mono dark")
    links = {name: link for name, link in target.links.items() if {link.from_, link.to} <= {*rows}}
    starts = [y + k * _ROW + _BAR * 0.75 for k in range(len(memories))]
    ends = [y + k * _ROW + _BAR * 0.3 for k in range(len(memories))]
    # Links between lower and higher rows get separate lanes, so that a lane has one direction.
    flows = {
        name: (rows[link.from_], [rows[link.to]])
        for name, link in links.items() if rows[link.from_] <= rows[link.to]
    }
    names = {name: _link_text(link) for name, link in links.items()}
    right = connect(canvas, MARGIN + width, flows, starts, ends, names)
    for number, name in enumerate(name for name in links if name not in flows):
        x = right + 14 + 13 * number
        link = links[name]
        start, end = starts[rows[link.from_]], ends[rows[link.to]]
        canvas.line([(MARGIN + width, start), (x, start), (x, end)], title=names[name])
        canvas.arrow((x, end), (MARGIN + width + 2, end), names[name])
    left = max(canvas.right, right) + 20
    for number, text in enumerate(names.values()):
        canvas.text(left, y + 12 + number * 17, text, size=10, style="mono soft", width=560)
    return max(y + len(memories) * _ROW - _ROW + _BAR, y + len(names) * 17)


def _link_text(link: Link) -> str:
    whose = "each core" if link.scope == "core" else "the chip"
    return f"{link.name}: {link.from_} to {link.to}, {link.bytes_per_cycle:.4g} B/cycle of {whose}"


def _grid(canvas: Canvas, target: Target, y: float) -> float:
    """Draw the core grid; return the bottom y coordinate."""
    extents = list(target.grid.values())
    axes = " x ".join(f"{axis} = {extent}" for axis, extent in target.grid.items())
    heading(canvas, MARGIN, y, "Cores", axes)
    rows, columns = prod(extents[:-1]), extents[-1]
    for line, row in enumerate(sample_indices(rows, 16)):
        for slot, column in enumerate(sample_indices(columns, 32)):
            x, top = MARGIN + slot * 22, y + 14 + line * 18
            if row is None or column is None:
                canvas.text(x + 4, top + 12, "⋮" if row is None else "⋯", style="soft")
                continue
            canvas.box(x, top, 20, 16, colour(2), f"core {row}, {column}")
    return y + 14 + len(sample_indices(rows, 16)) * 18


def _rates(rates: Rates) -> list[str]:
    """Describe the throughput of one core per second."""
    reads = zip(rates.levels, rates.read_bytes_per_second, strict=True)
    lines = [f"reads per second: {', '.join(f'{name} {in_bytes(rate)}' for name, rate in reads)}"]
    for method, by_dtype in (("with vectors", rates.flops), ("one by one", rates.scalar_flops)):
        if by_dtype:
            listing = ", ".join(f"{dtype} {format_short(rate)}" for dtype, rate in by_dtype.items())
            lines.append(f"operations per second, {method}: {listing}")
    return lines


def _engine(canvas: Canvas, target: Target, y: float) -> float:
    """Draw the compute units; return the bottom y coordinate."""
    heading(canvas, MARGIN, y, "Engines", "compute units of each core")
    lines: list[str] = []
    if target.core is not None:
        core = target.core
        caches = ", ".join(_amount(size) for size in core.cache_bytes)
        lines.append(f"vectors of {core.vector_bytes} B, {core.vector_operations} operations per "
                     f"cycle, {core.vector_registers} registers, caches of {caches}")
    if target.rates is not None:
        lines += _rates(target.rates)
    for unit in target.engine.values():
        if isinstance(unit, VectorUnit):
            lines.append(f"{unit.name}: vectors of {unit.width_bytes} B of "
                         f"{', '.join(unit.types)} in {unit.memory}")
        else:
            lines.append(f"{unit.name}: products {unit.m} x {unit.n} x {unit.k} of "
                         f"{', '.join(unit.inputs)} in {unit.memory}")
    for number, line in enumerate(lines):
        top = y + 14 + number * 20
        canvas.box(MARGIN, top, 12, 12, colour(1, 1), line)
        canvas.text(MARGIN + 20, top + 10, line, size=11, width=1000)
    return y + 14 + len(lines) * 20
