"""In a browser, picture text is complete, does not overlap, and follows dark mode."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from tests.viz.browser import browser, measured
from tests.viz.catalogue import PICTURES
from tests.viz.figure import Words, overlaps

_NEARLY = 1.5
"""Pixels by which a glyph may exceed its advance width."""


@cache
def drawn() -> dict[str, str]:
    """Return the figures of the catalogue."""
    return {name: make() for name, make in PICTURES.items()}


@pytest.mark.exhaustive(keep=1)
@pytest.mark.parametrize("is_dark", [False, True])
def test_words_are_whole_and_apart(tmp_path: Path, *, is_dark: bool) -> None:
    browser()  # skips the test before figures are drawn
    pictures = drawn()
    found = measured(pictures, tmp_path, is_dark=is_dark)

    assert sorted(found) == sorted(pictures)
    for name, seen in found.items():
        # The line height of a browser comes from the font and exceeds the glyph height.
        lines = [
            Words(left, top + (bottom - top) * 0.15, right, bottom - (bottom - top) * 0.05, text)
            for text, left, top, right, bottom in seen["lines"]
        ]
        assert lines, name
        for words in lines:
            assert -_NEARLY <= words.left <= words.right <= seen["width"] + _NEARLY, (name, words)
            assert 0 <= words.top <= words.bottom <= seen["height"], (name, words)
        assert list(overlaps(lines)) == [], name
        assert seen["titles"] > 1 or name.endswith("-empty"), name
        assert seen["paper"] == ("rgb(22, 25, 29)" if is_dark else "rgb(255, 255, 255)"), name
