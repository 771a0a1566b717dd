"""What each picture has to be, whatever it shows: XML, no larger than a page, with words to read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from xml.etree import ElementTree as ET

from tecomp.drawing.canvas import ASCENT, DESCENT, text_width

SVG = "{http://www.w3.org/2000/svg}"
MOST_BYTES = 200_000
_NEARLY = 0.2


@dataclass(frozen=True)
class Words:
    """A line of text of a picture and where it is."""

    text: str
    left: float
    top: float
    right: float
    bottom: float

    def meets(self, other: Words) -> bool:
        """Whether both have a point in common, beyond a fraction of a pixel."""
        return (
            self.left < other.right - _NEARLY and other.left < self.right - _NEARLY
            and self.top < other.bottom - _NEARLY and other.top < self.bottom - _NEARLY
        )


def words_of(root: ET.Element) -> list[Words]:
    """All lines of text, as wide as the widest of the fonts makes them."""
    return [_words(text) for text in root.iter(f"{SVG}text")]


def _words(node: ET.Element) -> Words:
    size, style = float(node.attrib["font-size"]), node.get("class", "")
    wide = text_width(node.text or "", size, style)
    share = {"middle": 0.5, "end": 1.0}.get(node.get("text-anchor", ""), 0.0)
    left, y = float(node.attrib["x"]) - wide * share, float(node.attrib["y"])
    return Words(node.text or "", left, y - size * ASCENT, left + wide, y + size * DESCENT)


def overlaps(lines: list[Words]) -> Iterator[tuple[Words, Words]]:
    """Lines of text that lie on each other."""
    active: list[Words] = []
    for words in sorted(lines, key=lambda each: each.top):
        active = [each for each in active if each.bottom > words.top]
        yield from ((each, words) for each in active if each.meets(words))
        active.append(words)


def check_picture(picture: str) -> ET.Element:
    """Assert what holds for all pictures; the root of this one."""
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
            continue  # a marker's, in a space of its own
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
