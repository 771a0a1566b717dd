"""Pictures of layouts: the same text each time, nothing beyond the edge, no element left out."""

from __future__ import annotations

import re
from collections.abc import Callable
from xml.etree import ElementTree as ET

import pytest

from tecomp.layout.descriptions.layout import Layout
from tecomp.layout.notations.blocked import blocked
from tecomp.svg import Canvas

Golden = Callable[[object], None]
SVG = "{http://www.w3.org/2000/svg}"

LAYOUTS = {
    "sticks": Layout.of((1000, 200), "float16", lambda i, j: [j // 64, i, j % 64]),
    "cores": Layout.of(
        (1000, 200), "float16", lambda i, j: [i // 250, j // 64, i % 250, j % 64], grid_axes=[0]
    ),
    "few": Layout.of((6, 13), "float16", lambda i, j: [j // 4, i, j % 4]),
    "blocked": blocked((2, 20, 56, 56), "float32", "nChw16c"),
    "transposed": Layout.of((256, 512), "float32", lambda i, j: [j, i]),
    "swizzled": Layout.of((8, 8), "float32", lambda i, j: [i, j ^ i]),
    "one axis": Layout.of((40,), "float32", lambda i: [i // 16, i % 16]),
    "scalar": Layout.row_major((), "float32"),
    "empty": Layout.row_major((0, 3), "float32"),
}


@pytest.mark.parametrize("name", ["sticks", "few"])
def test_drawn(name: str, golden: Golden) -> None:
    golden(LAYOUTS[name]._repr_svg_())


@pytest.mark.parametrize("name", LAYOUTS)
def test_everything_lies_inside_the_picture(name: str) -> None:
    root = ET.fromstring(LAYOUTS[name]._repr_svg_())
    width, height = (float(n) for n in root.attrib["viewBox"].split()[2:])

    for box in root.iter(f"{SVG}rect"):
        assert float(box.get("x", 0)) + float(box.attrib["width"]) <= width
        assert float(box.get("y", 0)) + float(box.attrib["height"]) <= height
    for words in root.iter(f"{SVG}text"):
        # No font of the list has characters wider than 0.8 of its size on average.
        reach = {"middle": 0.5, "end": 0.0}.get(words.get("text-anchor", ""), 1.0)
        long = len(words.text or "") * float(words.attrib["font-size"]) * 0.6 * reach
        assert 0 <= float(words.attrib["x"]) + long <= width
        assert 0 <= float(words.attrib["y"]) <= height


def test_each_element_of_a_small_layout_is_shown_twice() -> None:
    """Once in the tensor, with its place, and once in memory, by its name."""
    text = LAYOUTS["few"]._repr_svg_()

    for i in range(6):
        for j in range(13):
            place = LAYOUTS["few"].offset((i, j))
            assert len(re.findall(f"<title>place {place}</title>", text)) == 2
            assert f">{i},{j}</text>" in text
    assert text.count(": padding</title>") == 18


def test_words_are_escaped() -> None:
    canvas = Canvas()
    canvas.text(0, 10, "a < b & c")

    assert "a &lt; b &amp; c</text>" in canvas.finished("<x>")
    assert "<title>&lt;x&gt;</title>" in canvas.finished("<x>")
