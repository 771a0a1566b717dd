"""Parse figures and check properties that every figure has: extents, overlaps, legibility, legends.

The checks compare shapes, colours and text of the parsed SVG with the drawn object, so that they
hold for any spacing, font size and palette.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from math import dist
from typing import Any, TypeVar
from xml.etree import ElementTree as ET

import pytest

from tecomp.drawing import ASCENT, DESCENT, HUES, MARGIN, text_width

SVG = "{http://www.w3.org/2000/svg}"
MOST_BYTES = 200_000
LEAST_CONTRAST = 4.5
"""Contrast ratio of text that WCAG 2 (level AA) demands."""
_NEARLY = 0.2
_ARROW_HEAD = 4.0
_ROUNDED = 0.11
"""Bound of the difference of two coordinates that are rounded to a tenth of a pixel."""

Point = tuple[float, float]
T = TypeVar("T")
K = TypeVar("K", bound=Hashable)


@dataclass(frozen=True)
class Area:
    """Axis-aligned rectangle."""

    left: float
    top: float
    right: float
    bottom: float

    @property
    def width(self) -> float:
        """Extent from left to right."""
        return self.right - self.left

    @property
    def height(self) -> float:
        """Extent from top to bottom."""
        return self.bottom - self.top

    @property
    def middle(self) -> Point:
        """Centre of the rectangle."""
        return (self.left + self.right) / 2, (self.top + self.bottom) / 2

    def meets(self, other: Area) -> bool:
        """Return whether both rectangles overlap by more than a fraction of a pixel."""
        return (
            self.left < other.right - _NEARLY and other.left < self.right - _NEARLY
            and self.top < other.bottom - _NEARLY and other.top < self.bottom - _NEARLY
        )

    def contains(self, other: Area, slack: float = _NEARLY) -> bool:
        """Return whether the other rectangle lies in this one."""
        return (
            self.left - slack <= other.left and other.right <= self.right + slack
            and self.top - slack <= other.top and other.bottom <= self.bottom + slack
        )

    def has(self, point: Point, slack: float = _NEARLY) -> bool:
        """Return whether a point lies in the rectangle."""
        return self.contains(Area(*point, *point), slack)


@dataclass(frozen=True)
class Words(Area):
    """Line of text with its bounding box."""

    text: str
    style: frozenset[str] = frozenset()
    size: float = 0.0
    title: str = ""


@dataclass(frozen=True)
class Box(Area):
    """Filled rectangle.

    Attributes:
        fill: Hex colour, `pad` (hatched), `plain` or `paper`.
        title: Tooltip.
    """

    fill: str
    title: str


@dataclass(frozen=True)
class Frame(Area):
    """Border of a rectangle."""

    title: str
    stroke: float
    is_dashed: bool


@dataclass(frozen=True)
class Dot:
    """Filled circle."""

    x: float
    y: float
    radius: float
    fill: str
    title: str

    @property
    def middle(self) -> Point:
        """Centre of the circle."""
        return self.x, self.y


@dataclass(frozen=True)
class Line:
    """Polyline.

    Attributes:
        points: Corners.
        style: Style class.
        stroke: Width in pixels.
        colour: Hex colour; empty for the colour of the style class.
        is_arrow: Whether the last point has an arrowhead.
        is_dashed: Whether the line is dashed.
        title: Tooltip.
    """

    points: tuple[Point, ...]
    style: str
    stroke: float
    colour: str
    is_arrow: bool
    is_dashed: bool
    title: str


class Figure:
    """Parsed figure: its text, boxes, frames, dots and lines in drawing order."""

    def __init__(self, picture: str) -> None:
        self.source = str(picture)
        self.root = ET.fromstring(self.source)
        self.width, self.height = (float(n) for n in self.root.attrib["viewBox"].split()[2:])
        nodes = list(self.root)
        self.words = [_words(node) for node in nodes if node.tag == f"{SVG}text"]
        boxes = [node for node in nodes if node.tag == f"{SVG}rect"]
        self.frames = [_frame(node) for node in boxes if node.get("class") == "frame"]
        # A hatched box is a grey rectangle below a hatched one, which has the tooltip.
        self.boxes = [
            Box(*_extent(node), _fill(node), _title(node))
            for node in boxes if node.get("class") not in ("frame", "paper", "pad")
        ]
        self.dots = [
            Dot(float(node.attrib["cx"]), float(node.attrib["cy"]), float(node.attrib["r"]),
                _fill(node), _title(node))
            for node in nodes if node.tag == f"{SVG}circle"
        ]
        self.lines = [_line(node) for node in nodes if node.tag == f"{SVG}path"]

    @property
    def texts(self) -> list[str]:
        """Lines of text in drawing order."""
        return [line.text for line in self.words]

    def line(self, text: str) -> Words:
        """Return the only line with the given text."""
        return only(word for word in self.words if word.text == text)

    def boxes_titled(self, pattern: str) -> list[tuple[re.Match[str], Box]]:
        """Return the boxes whose complete tooltip matches, outside of the legend."""
        swatches = {*self.legend_boxes.values()}
        return [(found, box) for box in self.boxes
                if box not in swatches and (found := re.fullmatch(pattern, box.title))]

    def label_of(self, box: Box) -> str:
        """Return the text inside of a box; empty if there is none."""
        return " ".join(word.text for word in self.words if box.has(word.middle))

    @cached_property
    def legend_boxes(self) -> dict[str, Box]:
        """Swatches of the legend by their meaning, which stands beside each of them."""
        beside = {(word.left, round(word.bottom - DESCENT * word.size, 1)): word
                  for word in self.words}
        found = {}
        for box in self.boxes:
            if (round(box.width), round(box.height)) != (12, 12):
                continue
            words = beside.get((round(box.left + 18, 1), round(box.top + 10, 1)))
            if words and (words.title or words.text) == box.title:
                found[box.title] = box
        return found

    @property
    def legend(self) -> dict[str, str]:
        """Fills of the legend by their meaning."""
        return {words: box.fill for words, box in self.legend_boxes.items()}

    def connections(self, rows: Sequence[Box]) -> set[tuple[str, int, int]]:
        """Return the tooltip, the first and the last row of each arrow that runs beside rows.

        An arrow starts with a line at the right edge of a row and ends at that of another row.
        """
        found = set()
        for stem in self.lines:
            if stem.is_arrow or stem.style != "line" or len(stem.points) != 3:
                continue
            heads = [line for line in self.lines if line.is_arrow and line.title == stem.title
                     and line.points[0][0] == stem.points[1][0]]
            assert heads, stem
            for head in heads:
                start, end = row_at(rows, stem.points[0]), row_at(rows, head.points[-1])
                # The stem passes the start of each arrow.
                (_, first), (x, turn), (_, last) = stem.points
                assert x == head.points[0][0]
                assert min(turn, last) <= head.points[0][1] <= max(turn, last) or first == last
                found.add((stem.title, start, end))
        return found


def only(found: Iterable[T]) -> T:
    """Return the only item."""
    items = list(found)
    assert len(items) == 1, items
    return items[0]


def row_at(rows: Sequence[Box], point: Point) -> int:
    """Return the number of the row whose right edge has the given point."""
    return only(k for k, row in enumerate(rows)
                if row.top <= point[1] <= row.bottom and 0 <= point[0] - row.right < 12)


def linear_map(pairs: Iterable[tuple[float, float]], slack: float = _ROUNDED) -> Callable[[float], float]:
    """Return the increasing linear map through pairs of values and coordinates.

    Fails unless all pairs lie on one line.
    """
    points = sorted(set(pairs))
    (first, start), (last, end) = points[0], points[-1]
    assert last > first, "at least two values determine a map"
    slope = (end - start) / (last - first)
    assert slope > 0, points
    for value, place in points:
        assert abs(start + (value - first) * slope - place) <= slack, (value, place, points)
    return lambda value: start + (value - first) * slope


def assert_proportional(
    pairs: Iterable[tuple[float, float]], least: float = 0.0, slack: float = _ROUNDED
) -> None:
    """Check that lengths are proportional to values, or as short as lengths are at least."""
    items = list(pairs)
    scale = max((length / value for value, length in items if value and length > least), default=0.0)
    for value, length in items:
        assert abs(max(value * scale, least) - length) <= 2 * slack, (value, length, scale)


def number(text: str) -> float:
    """Return the value of a number with thousands separators or an SI suffix.

    >>> number("17,650"), number("2.5k"), number("100G")
    (17650.0, 2500.0, 100000000000.0)
    """
    sizes = {"k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
    digits = text.rstrip("kMGT")
    return float(digits.replace(",", "")) * sizes.get(text[len(digits):], 1.0)


def check_timeline(
    figure: Figure, pattern: str, *, unit: float = 1.0, slack: float = 0.3, least: float = 0.6
) -> list[tuple[re.Match[str], Box]]:
    """Check bars over time: ends on the scale of the ticks, colours of names, labels of lanes.

    Args:
        figure: Figure with one timeline.
        pattern: Tooltip of a bar, with the groups `name`, `start` and `stop`.
        unit: Time of the bars for a time of 1 at the ticks.
        slack: Bound of the error of coordinates in pixels.
        least: Width of the shortest bar.

    Returns:
        The bars in drawing order.
    """
    bars = figure.boxes_titled(pattern)
    bottom = max(box.bottom for _, box in bars)
    below = min(line.top for line in figure.words if line.top > bottom
                and line.size == 9 and {"mono", "soft"} <= line.style)
    ticks = [line for line in figure.words if line.top == below and re.fullmatch(r"[\d.]+[kMGT]?", line.text)]
    place = linear_map((number(line.text) * unit, line.middle[0]) for line in ticks)
    for found, box in bars:
        start, stop = number(found["start"]), number(found["stop"])
        assert abs(place(start) - box.left) <= slack, (found[0], box)
        assert abs(max(place(stop) - place(start), least) - box.width) <= slack, (found[0], box)
    fills = one_to_one((found["name"], box.fill) for found, box in bars)
    legend = figure.legend
    assert all(legend[name] == fill for name, fill in fills.items() if name in legend)
    assert {*legend} <= {*fills}
    for line in ticks:  # a mark above each number
        assert any(a[0] == b[0] == pytest.approx(line.middle[0], abs=0.1)
                   for a, b in (item.points[:2] for item in figure.lines)), line
    return bars


def lane_label(figure: Figure, box: Box) -> str:
    """Return the label on the left of a bar of a timeline."""
    return only(line.text for line in figure.words if line.right < box.left + 0.1
                and box.top <= line.middle[1] <= box.bottom and line.right > 0
                and {"mono", "soft"} <= line.style)


def assert_increasing(values: Iterable[float]) -> None:
    """Check that each value exceeds the one before it."""
    items = list(values)
    assert all(a < b for a, b in pairwise(items)), items


def one_to_one(pairs: Iterable[tuple[K, Any]]) -> Mapping[K, Any]:
    """Return pairs as a mapping, after a check that keys and values determine each other."""
    found = dict.fromkeys(pairs)
    assert len({key for key, _ in found}) == len({value for _, value in found}) == len(found), found
    return dict(found.keys())


def hue(fill: str) -> int:
    """Return the hue of a palette colour."""
    return only(k for k, shades in enumerate(HUES) if fill in shades)


def luminance(fill: str) -> float:
    """Return the relative luminance of a hex colour (WCAG 2)."""
    parts = [int(fill[k:k + 2], 16) / 255 for k in (1, 3, 5)]
    red, green, blue = (n / 12.92 if n <= 0.03928 else ((n + 0.055) / 1.055) ** 2.4 for n in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(first: str, second: str) -> float:
    """Return the contrast ratio of two hex colours (WCAG 2)."""
    low, high = sorted((luminance(first), luminance(second)))
    return (high + 0.05) / (low + 0.05)


def without_style(picture: str) -> str:
    """Return a figure without its style sheet and markers, and without the ids of its text.

    `tests/drawing` has a golden file of the style sheet.
    """
    text = re.sub(r"<style>.*</defs>\n", "", str(picture), flags=re.DOTALL)
    return re.sub(r"#te-(\w+)-\w{8}", r"#\1", text)


def overlaps(lines: list[Words]) -> Iterator[tuple[Words, Words]]:
    """Yield pairs of overlapping lines of text."""
    active: list[Words] = []
    for words in sorted(lines, key=lambda item: item.top):
        active = [item for item in active if item.bottom > words.top]
        yield from ((item, words) for item in active if item.meets(words))
        active.append(words)


def check_figure(picture: str) -> Figure:
    """Check the requirements of all figures and return the parsed figure."""
    figure = Figure(picture)
    assert len(figure.source.encode()) < MOST_BYTES
    _check_extents(figure)
    assert list(overlaps(figure.words)) == []
    titles = [title.text for title in figure.root.iter(f"{SVG}title")]
    assert titles
    assert all(titles)
    _check_labels(figure)
    _check_legend(figure)
    return figure


def _check_extents(figure: Figure) -> None:
    """Check that everything is inside of the canvas, which is not larger than needed."""
    shapes: list[Area] = [*figure.words, *figure.boxes, *figure.frames]
    shapes += [Area(x, y, x, y) for line in figure.lines for x, y in line.points]
    shapes += [Area(dot.x - dot.radius, dot.y - dot.radius, dot.x + dot.radius, dot.y + dot.radius)
               for dot in figure.dots]
    for shape in shapes:
        assert 0 <= shape.left <= shape.right <= figure.width, shape
        assert 0 <= shape.top <= shape.bottom <= figure.height, shape
    right, bottom = max(item.right for item in shapes), max(item.bottom for item in shapes)
    for extent, end in ((figure.width, right), (figure.height, bottom)):
        assert MARGIN - _NEARLY <= extent - end <= MARGIN + _ARROW_HEAD + _NEARLY, (extent, end)


def _check_labels(figure: Figure) -> None:
    """Check that text is legible on what is below it, in light and dark mode, and inside of it."""
    light, dark = _modes(figure.source)
    for words in figure.words:
        boxes = [box for box in figure.boxes if box.has(words.middle)]
        if boxes:
            assert boxes[-1].contains(words, 0.5), (words, boxes[-1])
        dots = [dot.fill for dot in figure.dots if dist(dot.middle, words.middle) < dot.radius]
        fill = [*dots, boxes[-1].fill if boxes else "paper"][0]
        for mode in (light, dark):
            ink = next((mode[f"text.{style}"] for style in ("dark", "soft")
                        if style in words.style and f"text.{style}" in mode), mode["text"])
            ground = fill if fill.startswith("#") else mode[fill]
            assert contrast(ink, ground) >= LEAST_CONTRAST, (words, fill, ink, ground)


def _check_legend(figure: Figure) -> None:
    """Check that the legend distinguishes fills, and that each of them occurs in the figure."""
    legend = figure.legend
    swatches = {*figure.legend_boxes.values()}
    used = {box.fill for box in figure.boxes if box not in swatches}
    used |= {dot.fill for dot in figure.dots} | {line.colour for line in figure.lines}
    hues = {hue(fill) for fill in used if any(fill in shades for shades in HUES)}
    for words, fill in legend.items():
        is_used = fill in used or (fill.startswith("#") and any(fill in s for s in HUES) and hue(fill) in hues)
        assert is_used, f"{words}: nothing is drawn in {fill}"


def _modes(source: str) -> tuple[dict[str, str], dict[str, str]]:
    """Return the colours of style classes in light and in dark mode."""
    style = source[source.index("<style>"):source.index("</style>")]
    light, _, dark = style.partition("@media (prefers-color-scheme:dark)")
    assert dark
    rule = re.compile(r"\.te ([\w. ]+)\{[^}]*?(?:fill|stroke):(#\w{6})")
    found = [{name.lstrip("."): colour for name, colour in rule.findall(part)}
             for part in (light, dark)]
    return found[0], {**found[0], **found[1]}


def _words(node: ET.Element) -> Words:
    size, style = float(node.attrib["font-size"]), node.get("class", "")
    wide = text_width(node.text or "", size, style)
    share = {"middle": 0.5, "end": 1.0}.get(node.get("text-anchor", ""), 0.0)
    left, y = float(node.attrib["x"]) - wide * share, float(node.attrib["y"])
    return Words(left, y - size * ASCENT, left + wide, y + size * DESCENT, node.text or "",
                 frozenset(style.split()), size, _title(node))


def _title(node: ET.Element) -> str:
    return node.findtext(f"{SVG}title", "")


def _fill(node: ET.Element) -> str:
    fill = node.get("fill") or node.attrib["class"]
    return "pad" if fill.startswith("url(#te-hatch-") else fill


def _extent(node: ET.Element) -> tuple[float, float, float, float]:
    x, y, width, height = (float(node.get(name, 0)) for name in ("x", "y", "width", "height"))
    return x, y, x + width, y + height


def _frame(node: ET.Element) -> Frame:
    return Frame(*_extent(node), _title(node), float(node.attrib["stroke-width"]),
                 "stroke-dasharray" in node.attrib)


def _line(node: ET.Element) -> Line:
    points = tuple(
        (float(x), float(y))
        for x, y in (point.split() for point in node.attrib["d"].removeprefix("M").split("L"))
    )
    return Line(points, node.get("class", ""), float(node.attrib["stroke-width"]),
                node.get("style", "").removeprefix("stroke:"),
                node.get("marker-end", "").startswith("url(#te-head-"),
                "stroke-dasharray" in node.attrib, _title(node))
