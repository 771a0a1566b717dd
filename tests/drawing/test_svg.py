"""SVG output: text escaping, notebook display, saving to files, and invalid paths."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tecomp import CallError, Layout
from tecomp.drawing import HUES, Canvas, colour, text_width, truncate_to_width
from tests.messages import Diagnostic, diagnostic
from tests.viz.figure import SVG, Figure, assert_increasing, check_figure, luminance

LAYOUT = Layout.of((6, 13), "float16", lambda i, j: [j // 4, i, j % 4])


def test_the_style_sheet_and_each_shape(golden: Callable[[object], None]) -> None:
    """The golden files of figures leave out the style sheet; this one has it, and each shape once."""
    canvas = Canvas()
    canvas.text(24, 20, "words", style="bold", title="said")
    canvas.box(24, 30, 40, 18, colour(0), "a box", "12")
    canvas.box(80, 30, 40, 18, "pad", "padding")
    canvas.frame(20, 26, 110, 26, is_dashed=True, title="a frame")
    canvas.dot(150, 40, 6, colour(1), "a dot")
    canvas.line([(24, 60), (60, 60), (60, 70)], colour(2), title="a line", is_dashed=True)
    canvas.arrow((60, 70), (24, 70), "an arrow")
    golden(canvas.finished("shapes"))


def test_shades_are_distinct_and_legible() -> None:
    """Shades of a hue get darker, and text on the darkest one has the contrast that WCAG 2 demands."""
    assert len({shade for shades in HUES for shade in shades}) == sum(map(len, HUES))
    for shades in HUES:
        assert_increasing(-luminance(shade) for shade in shades)
        for shade in shades:
            canvas = Canvas()
            canvas.box(24, 24, 40, 18, shade, "a box", "12")
            assert check_figure(canvas.finished("a box")).texts == ["12"]


def test_words_are_escaped() -> None:
    canvas = Canvas()
    canvas.text(0, 10, "a < b & c")

    figure = Figure(canvas.finished("<x>"))

    assert figure.texts == ["a < b & c"]
    assert figure.root.findtext(f"{SVG}title") == "<x>"


@pytest.mark.exhaustive
@given(st.text(), st.sampled_from(["", "mono", "bold", "mono soft"]), st.floats(0, 300))
def test_any_words_fit(words: str, style: str, width: float) -> None:
    canvas = Canvas()
    canvas.text(5, 20, words, style=style, width=width)
    canvas.box(5, 40, width, 20, "#aad2ef", words, words)

    check_figure(canvas.finished(words or "none"))
    assert text_width(truncate_to_width(words, width, 11, style), 11, style) <= width


def test_a_notebook_shows_a_layout_as_its_picture() -> None:
    assert LAYOUT._repr_svg_() == LAYOUT.picture()
    assert type(LAYOUT._repr_svg_()) is str
    assert LAYOUT._repr_html_() == f'<div style="overflow-x:auto">{LAYOUT.picture()}</div>'


def test_pictures_of_one_page_share_no_name() -> None:
    other = Layout.of((6, 14), "float16", lambda i, j: [j // 4, i, j % 4])
    ids = [
        node.attrib["id"] for layout in (LAYOUT, other)
        for node in ET.fromstring(layout.picture()).iter() if "id" in node.attrib
    ]

    assert len(set(ids)) == len(ids) == 4


def test_saved(tmp_path: Path) -> None:
    LAYOUT.save(tmp_path / "x.svg")
    LAYOUT.save(str(tmp_path / "x.html"))

    assert (tmp_path / "x.svg").read_text(encoding="utf-8") == LAYOUT.picture()
    page = (tmp_path / "x.html").read_text(encoding="utf-8")
    assert page.startswith("<!doctype html>")
    assert LAYOUT.picture() in page
    assert sorted(path.name for path in tmp_path.iterdir()) == ["x.html", "x.svg"]


def test_paths_that_are_refused(tmp_path: Path) -> None:
    for path, expected in {
        "x.png": Diagnostic("unknown-choice", path="x.png", kinds=".svg or .html"),
        3: Diagnostic("invalid-type", path=3, suffix=".html"),
        str(tmp_path / "no" / "x.svg"): Diagnostic(
            "invalid-type", path=f"{tmp_path}/no/x.svg", reason="No such file or directory",
        ),
    }.items():
        with pytest.raises(CallError) as caught:
            LAYOUT.save(path)  # type: ignore[arg-type]
        assert diagnostic(caught.value) == expected
    assert list(tmp_path.iterdir()) == []
