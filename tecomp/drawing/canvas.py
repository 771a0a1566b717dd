"""Canvas of figures, with shared parts: headings, legends, axis ticks and connectors."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Mapping, Sequence
from math import floor, log10
from typing import TypeVar
from xml.sax.saxutils import escape
from zlib import crc32

from tecomp.drawing.svg import Svg

# Advance widths in hundredths of the font size, rounded up, for characters from U+0020 on.
_SANS_WIDTHS = (
    32, 41, 46, 84, 64, 96, 78, 28, 40, 40, 50, 84, 32, 37, 32, 34, 64, 64, 64, 64, 64, 64, 64, 64,
    64, 64, 34, 34, 84, 84, 84, 54, 100, 69, 69, 70, 78, 64, 58, 78, 76, 30, 30, 66, 56, 87, 75, 79,
    61, 79, 70, 64, 62, 74, 69, 99, 69, 62, 69, 40, 34, 40, 84, 50, 50, 62, 64, 55, 64, 62, 36, 64,
    64, 28, 28, 58, 28, 98, 64, 62, 64, 64, 42, 53, 40, 64, 60, 82, 60, 60, 53, 64, 34, 64, 84,
)
_BOLD = (
    35, 46, 53, 84, 70, 101, 88, 31, 46, 46, 53, 84, 38, 42, 38, 37, 70, 70, 70, 70, 70, 70, 70, 70,
    70, 70, 40, 40, 84, 84, 84, 59, 100, 78, 77, 74, 84, 69, 69, 83, 84, 38, 38, 78, 64, 100, 84,
    86, 74, 86, 78, 73, 69, 82, 78, 111, 78, 73, 73, 46, 37, 46, 84, 50, 50, 68, 72, 60, 72, 68, 44,
    72, 72, 35, 35, 67, 35, 105, 72, 69, 72, 72, 50, 60, 48, 72, 66, 93, 65, 66, 59, 72, 37, 72, 84,
)
_MONO_WIDTH = 61
_OTHER_WIDTH = 105
"""Width of every other character: glyphs of most scripts are no wider than the font size."""
ASCENT, DESCENT = 0.8, 0.24
"""Extent of glyphs above and below the baseline, in units of the font size."""


def text_width(text: str, size: float, style: str = "") -> float:
    """Return an upper bound of the width of a line of text, in pixels.

    Args:
        text: Text of one line.
        size: Font size in pixels.
        style: Space-separated style classes such as `mono` and `bold`.

    >>> text_width("ii", 10), text_width("ii", 10, "mono"), text_width("WW", 10, "bold")
    (5.6, 12.2, 22.2)
    """
    if "mono" in style and text.isascii():
        return len(text) * _MONO_WIDTH * size / 100
    table = _BOLD if "bold" in style else _SANS_WIDTHS
    is_mono = "mono" in style
    total = 0
    for char in text:
        index = ord(char) - 32
        if not 0 <= index < len(table):
            total += _OTHER_WIDTH
        else:
            total += _MONO_WIDTH if is_mono else table[index]
    return total * size / 100


def with_tail(name: str, tail: str, width: float, size: float, style: str = "") -> str:
    """Return the name followed by the tail, with the name truncated so that both fit into `width`.

    >>> with_tail("convolution", ": 8 B", 70, 10), with_tail("ReLU", ": 8 B", 70, 10)
    ('convol…: 8 B', 'ReLU: 8 B')
    """
    return (
        truncate_to_width(name, max(width - text_width(tail, size, style), 0.0), size, style) + tail
    )


def truncate_to_width(text: str, width: float, size: float, style: str = "") -> str:
    """Return the text, truncated with `…` if it is wider than `width`; empty if nothing fits.

    >>> truncate_to_width("convolution", 40, 10), truncate_to_width("ReLU", 40,
    ...     10), truncate_to_width("ReLU", 5, 10)
    ('conv…', 'ReLU', '')
    """
    if text_width(text, size, style) <= width:
        return text
    left = width - text_width("…", size, style)
    low, high = 0, min(len(text), 1 + int(max(left, 0.0) * 100 / size / 28))
    while low < high:
        mid = (low + high + 1) // 2
        if text_width(text[:mid], size, style) <= left:
            low = mid
        else:
            high = mid - 1
    return f"{text[:low]}…" if low else ""


HUES = (
    ("#aad2ef", "#7ab6e4", "#4a9ad9", "#3a8bcf"),
    ("#f9d29d", "#f5bb6a", "#f1a136", "#dc8813"),
    ("#b0e9d5", "#83ddbd", "#57d0a5", "#37b588"),
    ("#e1b5d5", "#d28cbb", "#c872a9", "#c269a5"),
    ("#f3e7a0", "#ebd968", "#e0c83c", "#c9ae1e"),
    ("#cdc4ef", "#b3a6e6", "#9c8cdd", "#8c7ad6"),
    ("#f6bfae", "#ee9a81", "#e57f62", "#d9694a"),
    ("#a8e3ea", "#74d0db", "#43bccb", "#279fae"),
)
"""Fill colours of distinguished parts, four shades per hue; dark text is legible on all of them."""

NEUTRAL = "#dfe3e8"
STRONG = "#dc8813"
"""Colour of the subject of a figure, such as a relayout."""


def colour(hue: int, shade: int = 0) -> str:
    """Return a palette colour; hues wrap around, shades saturate at the darkest.

    >>> colour(0), colour(8), colour(0, 9)
    ('#aad2ef', '#aad2ef', '#3a8bcf')
    """
    shades = HUES[hue % len(HUES)]
    return shades[min(shade, len(shades) - 1)]


_SANS_FONT = "system-ui,-apple-system,'Segoe UI','DejaVu Sans',sans-serif"
_MONO_FONT = "ui-monospace,'SF Mono','DejaVu Sans Mono',Menlo,Consolas,monospace"
# Every rule is scoped to class `te`: notebooks embed the style sheet in their own page.
_STYLE = f"""\
.te text{{font-family:{_SANS_FONT};fill:#1a1d21}}
.te text.mono{{font-family:{_MONO_FONT}}}
.te text.soft{{fill:#59626d}}
.te text.bold{{font-weight:700}}
.te text.dark{{fill:#10202f}}
.te .paper{{fill:#ffffff}}
.te .line{{stroke:#59626d;fill:none}}
.te .tip{{fill:#59626d}}
.te .pad{{fill:#dfe3e8}}
.te .plain{{fill:#f0f2f5}}
.te .hatch{{stroke:#aab2bd}}
.te .frame{{stroke:#59626d;fill:none}}
.te .faint{{stroke:#cbd2d9;fill:none}}
@media (prefers-color-scheme:dark){{
.te text{{fill:#eef1f4}}
.te text.soft{{fill:#aab2bd}}
.te .paper{{fill:#16191d}}
.te .line{{stroke:#aab2bd}}
.te .tip{{fill:#aab2bd}}
.te .pad{{fill:#353c45}}
.te .plain{{fill:#262c33}}
.te .hatch{{stroke:#5b6570}}
.te .frame{{stroke:#aab2bd}}
.te .faint{{stroke:#3d4650}}
}}"""
_SHAPES = (
    '<defs><pattern id="hatch" width="6" height="6" patternUnits="userSpaceOnUse" '
    'patternTransform="rotate(45)"><path d="M0 0V6" class="hatch" stroke-width="1.5"/></pattern>'
    '<marker id="head" viewBox="0 0 8 8" refX="6" refY="4" markerWidth="6" markerHeight="6" '
    'orient="auto-start-reverse"><path d="M0 0L8 4L0 8z" class="tip"/></marker></defs>'
)
_INVALID_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_BLANKS = re.compile(r"\s+")
MARGIN = 24.0


class Canvas:
    """An SVG figure under construction, and its extent.

    Attributes:
        right: Right edge of the bounding box of everything drawn, in pixels.
        bottom: Bottom edge of the bounding box of everything drawn, in pixels.
    """

    def __init__(self) -> None:
        self.right = 0.0
        self.bottom = 0.0
        self._parts: list[str] = []

    def text(
        self, x: float, y: float, text: str, *, size: float = 11, style: str = "",
        anchor: str = "start", title: str = "", width: float | None = None,
    ) -> float:
        """Draw one line of text and return the x coordinate of its right end.

        Args:
            x: Left end, middle or right end of the line, depending on `anchor`.
            y: Baseline.
            text: Text.
            size: Font size in pixels.
            style: Space-separated style classes such as `mono soft bold`.
            anchor: `start`, `middle` or `end`.
            title: Tooltip text.
            width: Width at which the text is truncated; the tooltip then holds the full text.
                Default: no limit.
        """
        line = _BLANKS.sub(" ", clean(text)).strip()
        visible = line if width is None else truncate_to_width(line, width, size, style)
        if not visible:
            return x
        advance = text_width(visible, size, style) * {"start": 1, "middle": 0.5, "end": 0}[anchor]
        self._extend_to(x + advance, y + size * DESCENT)
        css_class = f' class="{style}"' if style else ""
        where = "" if anchor == "start" else f' text-anchor="{anchor}"'
        self._parts.append(
            f'<text x="{_n(x)}" y="{_n(y)}" font-size="{_n(size)}"{css_class}{where}>'
            f"{escape(visible)}{_title(title or (line if visible != line else ''))}</text>"
        )
        return x + advance

    def box(
        self, x: float, y: float, width: float, height: float, fill: str, title: str = "",
        label: str = "", *, size: float = 9, style: str = "mono dark",
    ) -> None:
        """Draw a rectangle with a centred label.

        Args:
            x: Left edge.
            y: Top edge.
            width: Width in pixels.
            height: Height in pixels.
            fill: Hex colour, `pad` (hatched) or `plain`.
            title: Tooltip text.
            label: Label; omitted if it does not fit completely.
            size: Font size of the label in pixels.
            style: Style classes of the label.
        """
        self._extend_to(x + width, y + height)
        paint = f'fill="{fill}"' if fill.startswith("#") else f'class="{fill}"'
        shape = (
            f'<rect x="{_n(x)}" y="{_n(y)}" width="{_n(width)}" height="{_n(height)}" rx="1.5" '
        )
        inner = _title(title)
        if fill == "pad":
            self._parts.append(f"{shape}{paint}/>")
            paint = 'fill="url(#hatch)"'
        self._parts.append(f"{shape}{paint}>{inner}</rect>" if inner else f"{shape}{paint}/>")
        if label and text_width(label, size, style) <= width - 2 and size <= height:
            baseline = y + height / 2 + size * (ASCENT - DESCENT) / 2
            self.text(
                x + width / 2, baseline, label, size=size, style=style, anchor="middle", title=title
            )

    def frame(
        self, x: float, y: float, width: float, height: float, *, colour: str = "",
        thick: float = 1.0, is_dashed: bool = False, title: str = "",
    ) -> None:
        """Draw the border of a rectangle, optionally dashed."""
        self._extend_to(x + width + thick, y + height + thick)
        paint = f' style="stroke:{colour}"' if colour else ""
        dashes = ' stroke-dasharray="3 3"' if is_dashed else ""
        inner = _title(title)
        self._parts.append(
            f'<rect x="{_n(x)}" y="{_n(y)}" width="{_n(width)}" height="{_n(height)}" rx="3" '
            f'class="frame" stroke-width="{_n(thick)}"{dashes}{paint}'
            + (f">{inner}</rect>" if inner else "/>")
        )

    def arrow(self, start: tuple[float, float], end: tuple[float, float], title: str = "") -> None:
        """Draw a straight line with an arrowhead at its end."""
        self._extend_to(max(start[0], end[0]) + 4, max(start[1], end[1]) + 4)
        self._path([start, end], 'class="line" stroke-width="1.3" marker-end="url(#head)"', title)

    def line(
        self, points: Sequence[tuple[float, float]], colour: str = "", *, title: str = "",
        width: float = 1.3, style: str = "line", is_dashed: bool = False,
    ) -> None:
        """Draw a polyline without an arrowhead."""
        for x, y in points:
            self._extend_to(x, y)
        paint = f' style="stroke:{colour}"' if colour else ""
        dashes = ' stroke-dasharray="4 3"' if is_dashed else ""
        self._path(points, f'class="{style}" stroke-width="{_n(width)}"{dashes}{paint}', title)

    def dot(self, x: float, y: float, radius: float, fill: str, title: str = "") -> None:
        """Draw a filled circle."""
        self._extend_to(x + radius, y + radius)
        inner = _title(title)
        paint = f'fill="{fill}"' if fill.startswith("#") else f'class="{fill}"'
        self._parts.append(
            f'<circle cx="{_n(x)}" cy="{_n(y)}" r="{_n(radius)}" {paint}'
            + (f">{inner}</circle>" if inner else "/>")
        )

    def finished(self, title: str) -> Svg:
        """Return the figure as SVG, with a title for screen readers."""
        width, height = _n(self.right + MARGIN), _n(self.bottom + MARGIN)
        inner = "\n".join([
            f"<style>\n{_STYLE}\n</style>",
            _SHAPES,
            f'<rect width="{width}" height="{height}" class="paper"/>',
            *self._parts,
        ])
        # Ids are unique per figure: a reference into a hidden figure would not resolve.
        key = f"{crc32(inner.encode()):08x}"
        for name in ("hatch", "head"):
            inner = inner.replace(f'id="{name}"', f'id="te-{name}-{key}"')
            inner = inner.replace(f"url(#{name})", f"url(#te-{name}-{key})")
        return Svg(
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
            f'viewBox="0 0 {width} {height}" class="te" role="img">\n'
            f"<title>{escape(clean(title))}</title>\n{inner}\n</svg>"
        )

    def _path(self, points: Sequence[tuple[float, float]], paint: str, title: str) -> None:
        path = "L".join(f"{_n(x)} {_n(y)}" for x, y in points)
        inner = _title(title)
        self._parts.append(f'<path d="M{path}" {paint}' + (f">{inner}</path>" if inner else "/>"))

    def _extend_to(self, x: float, y: float) -> None:
        self.right, self.bottom = max(self.right, x), max(self.bottom, y)


def clean(text: str) -> str:
    r"""Replace characters that are not allowed in XML by U+FFFD.

    >>> clean("a\x00b") == "a\ufffdb"
    True
    """
    return _INVALID_XML.sub("\ufffd", text)


def _title(text: str) -> str:
    return f"<title>{escape(clean(text))}</title>" if text else ""


def _n(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")


_LANE_WIDTH = 13.0
_MAX_LANES = 40
"""Maximum number of lanes; connectors that do not fit share the last lane."""

T = TypeVar("T", bound=Hashable)


def lanes_of(intervals: Mapping[T, tuple[int, int]]) -> dict[T, int]:
    """Assign each interval of rows to the first lane that is free at its start.

    >>> lanes_of({"B": (0, 3), "A": (0, 1), "C": (1, 2)})
    {'A': 0, 'B': 1, 'C': 0}
    """
    ends: list[int] = []
    found: dict[T, int] = {}
    for key, (first, last) in sorted(intervals.items(), key=lambda item: item[1]):
        lane = next((k for k, end in enumerate(ends) if end <= first), len(ends))
        ends[lane:lane + 1] = [last]
        found[key] = lane
    return found


def connect(
    canvas: Canvas, right: float, flows: Mapping[T, tuple[int, Sequence[int]]],
    starts: Sequence[float], ends: Sequence[float], names: Mapping[T, str],
) -> float:
    """Draw one connector per item and return the x coordinate of the right end of the connectors.

    Args:
        canvas: Canvas to draw on.
        right: Right edge of the rows.
        flows: Producer row and consumer rows of each item.
        starts: For each row, the y coordinate at which connectors leave.
        ends: For each row, the y coordinate at which connectors arrive.
        names: Tooltip text of each item.
    """
    consumed = {key: flow for key, flow in flows.items() if flow[1]}
    lanes = lanes_of({key: (row, max(rows)) for key, (row, rows) in consumed.items()})
    num_lanes = min(max(lanes.values(), default=-1) + 1, _MAX_LANES)
    for key, lane in lanes.items():
        row, rows = consumed[key]
        x = right + 14 + _LANE_WIDTH * min(lane, _MAX_LANES - 1)
        start = starts[row]
        name = names[key]
        canvas.line([(right, start), (x, start), (x, max(ends[k] for k in rows))], title=name)
        for k in rows:
            canvas.arrow((x, ends[k]), (right + 2, ends[k]), name)
    return right + 14 + _LANE_WIDTH * num_lanes


MAX_WIDTH = 1100.0
"""Width at which lines of text are truncated and legends are wrapped, in pixels."""


def head(canvas: Canvas, title: str, *lines: str) -> float:
    """Draw the title of a figure and the lines below it; return the bottom y coordinate."""
    canvas.text(MARGIN, 30, title, size=18, style="bold", width=MAX_WIDTH)
    y = 34.0
    for line in lines:
        if line:
            y += 18
            canvas.text(MARGIN, y, line, size=12, style="soft", width=MAX_WIDTH)
    return y


def heading(canvas: Canvas, x: float, y: float, title: str, remark: str = "") -> float:
    """Draw the heading of a panel with a remark beside it; return the right x coordinate."""
    right = canvas.text(x, y, title, size=13, style="bold")
    return canvas.text(right + 8, y, remark, style="soft") if remark else right


def legend(
    canvas: Canvas, y: float, entries: Iterable[tuple[str, str]], remarks: Sequence[str] = ()
) -> float:
    """Draw a legend, wrapped at `MAX_WIDTH`, with remarks below it; return the bottom y coordinate.

    Args:
        canvas: Canvas to draw on.
        y: Top edge.
        entries: Pairs of a fill, as for `Canvas.box`, and its meaning.
        remarks: Lines of text below the entries.
    """
    x = MARGIN
    row = 0
    for fill, label in entries:
        entry_width = 20 + text_width(label, 11) + 24
        if x > MARGIN and x + entry_width > MAX_WIDTH:
            x, row = MARGIN, row + 1
        canvas.box(x, y + row * 20, 12, 12, fill, label)
        canvas.text(x + 18, y + row * 20 + 10, label, style="soft", width=MAX_WIDTH)
        x += entry_width
    bottom = y + (row + 1) * 20 if x > MARGIN else y
    for number, remark in enumerate(remarks):
        canvas.text(MARGIN, bottom + number * 17 + 11, remark, style="soft", width=MAX_WIDTH)
    return bottom + len(remarks) * 17


def format_thousands(count: int, noun: str) -> str:
    """Return a count with its noun, with thousands separators.

    >>> format_thousands(1, "run"), format_thousands(262144, "run")
    ('1 run', '262,144 runs')
    """
    return f"{count:,} {noun}{'s' * (count != 1)}"


def sample_indices(count: int, limit: int, last: int = 1) -> list[int | None]:
    """Return the indices below `count`; if above `limit`, the first ones, None and the last one.

    >>> sample_indices(4, 6), sample_indices(1000, 4)
    ([0, 1, 2, 3], [0, 1, 2, None, 999])
    """
    if count <= limit:
        return list(range(count))
    return [*range(limit - last), None, *range(count - last, count)]


def ticks(
    canvas: Canvas, left: float, right: float, y: float, end: float, unit: str
) -> None:
    """Draw tick marks from 0 to at most `end` below an axis.

    Args:
        canvas: Canvas to draw on.
        left: x coordinate of 0.
        right: x coordinate of `end`.
        y: y coordinate of the axis.
        end: Largest value, greater than 0.
        unit: Unit, written after the last number.
    """
    step = 10.0 ** floor(log10(end))
    step = next(step * part for part in (0.1, 0.2, 0.5, 1.0, 2.0) if end / (step * part) <= 6.5)
    for n in range(floor(end / step) + 1):
        x = left + n * step * (right - left) / end
        canvas.line([(x, y), (x, y + 4)])
        canvas.text(x, y + 16, format_short(n * step), size=9, style="mono soft", anchor="middle")
    canvas.text(right + 36, y + 16, unit, size=9, style="mono soft")


def format_short(value: float) -> str:
    """Format a number compactly, with an SI suffix.

    >>> format_short(0.0), format_short(2500.0), format_short(3e9), format_short(0.5)
    ('0', '2.5k', '3G', '0.5')
    """
    for size, suffix in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= size:
            return f"{value / size:.3g}{suffix}" if value < 1e15 else f"{value:.1e}"
    return f"{value:.3g}"


def in_bytes(value: float) -> str:
    """Format a byte count with a decimal (SI) unit, as transfer rates use.

    >>> in_bytes(42.0), in_bytes(2.2e11)
    ('42 B', '220 GB')
    """
    text = format_short(value)
    return f"{text[:-1]} {text[-1]}B" if text[-1].isalpha() else f"{text} B"
