"""Pictures of copies between layouts, and of index maps."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tecomp import IndexMap, Layout, ShardLayout, relayout, te
from tests.strategies.layouts import draw_layout, function_of
from tests.strategies.pictures import check_picture, words_of

ROWS = Layout.row_major((100, 64), "int32")
STICKS = Layout.of((100, 64), "int32", lambda i, j: [j // 32, i, j % 32])
CORES = ShardLayout((100, 64), "int32", grid=(4, 2))


def test_drawn(golden: Callable[[object], None]) -> None:
    golden(relayout(ROWS, STICKS).picture())


@pytest.mark.parametrize(("src", "dst"), [(ROWS, STICKS), (STICKS, ROWS), (ROWS, CORES), (CORES, STICKS)])
def test_runs_are_those_of_the_layouts(src: Layout, dst: Layout) -> None:
    lines = [line.text for line in words_of(check_picture(relayout(src, dst).picture()))]

    for length, count in src.runs_to(dst).lengths:
        assert f"{count} run{'s' * (count != 1)} of {length} element{'s' * (length != 1)}" in lines
    assert lines.count("From") == lines.count("To") == 1


def test_an_empty_tensor() -> None:
    empty = Layout.row_major((0, 3), "int32")

    assert "nothing is copied" in relayout(empty, empty).picture()


@settings(max_examples=20)
@given(st.data())
def test_any_index_map(data: st.DataObject) -> None:
    rank = data.draw(st.integers(0, 5))
    text = draw_layout(data.draw, [8] * rank)
    index_map = IndexMap.from_func(function_of(text), ndim=rank)

    check_picture(index_map.picture())


def test_an_index_map_shows_what_each_place_takes() -> None:
    index_map = IndexMap.from_func(lambda i, j: [j // 64, te.AXIS_SEPARATOR, i, j % 64])
    picture = index_map.picture()
    lines = [line.text for line in words_of(check_picture(picture))]

    assert {"i", "j", "j // 64", "j % 64"} <= set(lines)
    assert picture.count("<title>j is in place ") == 2
    assert "an axis of the memory ends here" in picture
