"""Checks that apply to every picture: valid XML, limited size, no overlapping text."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from xml.etree import ElementTree as ET

from tecomp.drawing import ASCENT, DESCENT, text_width

SVG = "{http://www.w3.org/2000/svg}"
MOST_BYTES = 200_000
_NEARLY = 0.2


@dataclass(frozen=True)
class Words:
    """Line of text of a picture with its bounding box."""

    text: str
    left: float
    top: float
    right: float
    bottom: float

    def meets(self, other: Words) -> bool:
        """Return whether both boxes overlap by more than a fraction of a pixel."""
        return (
            self.left < other.right - _NEARLY and other.left < self.right - _NEARLY
            and self.top < other.bottom - _NEARLY and other.top < self.bottom - _NEARLY
        )


def words_of(root: ET.Element) -> list[Words]:
    """Return all lines of text, with the width of the widest font."""
    return [_words(text) for text in root.iter(f"{SVG}text")]


def _words(node: ET.Element) -> Words:
    size, style = float(node.attrib["font-size"]), node.get("class", "")
    wide = text_width(node.text or "", size, style)
    share = {"middle": 0.5, "end": 1.0}.get(node.get("text-anchor", ""), 0.0)
    left, y = float(node.attrib["x"]) - wide * share, float(node.attrib["y"])
    return Words(node.text or "", left, y - size * ASCENT, left + wide, y + size * DESCENT)


def overlaps(lines: list[Words]) -> Iterator[tuple[Words, Words]]:
    """Yield pairs of overlapping lines of text."""
    active: list[Words] = []
    for words in sorted(lines, key=lambda each: each.top):
        active = [each for each in active if each.bottom > words.top]
        yield from ((each, words) for each in active if each.meets(words))
        active.append(words)


def check_picture(picture: str) -> ET.Element:
    """Check the requirements of all pictures and return the root element."""
    root = ET.fromstring(picture)
    assert len(picture.encode()) < MOST_BYTES
    width, height = (float(n) for n in root.attrib["viewBox"].split()[2:])
    for kind in ("rect", "circle"):
        for shape in root.iter(f"{SVG}{kind}"):
            left, top, right, bottom = _extent(shape)
            assert 0 <= left <= right <= width, shape.attrib
            assert 0 <= top <= bottom <= height, shape.attrib
    for path in root.iter(f"{SVG}path"):
        if path.get("d", "").startswith("M0 "):
            continue  # path of a marker, which has its own coordinate system
        for point in path.attrib["d"][1:].split("L"):
            x, y = map(float, point.split())
            assert 0 <= x <= width, path.attrib
            assert 0 <= y <= height, path.attrib
    lines = words_of(root)
    for words in lines:
        assert 0 <= words.left <= words.right <= width, words
        assert 0 <= words.top <= words.bottom <= height, words
    assert list(overlaps(lines)) == []
    titles = [title.text for title in root.iter(f"{SVG}title")]
    assert titles
    assert all(titles)
    assert "@media (prefers-color-scheme:dark)" in picture
    return root


def _extent(shape: ET.Element) -> tuple[float, float, float, float]:
    if shape.tag == f"{SVG}circle":
        x, y, radius = (float(shape.attrib[name]) for name in ("cx", "cy", "r"))
        return x - radius, y - radius, x + radius, y + radius
    x, y = float(shape.get("x", 0)), float(shape.get("y", 0))
    return x, y, x + float(shape.attrib["width"]), y + float(shape.attrib["height"])
