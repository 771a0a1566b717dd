"""Pictures of layout copies and of index maps."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tecomp import IndexMap, Layout, ShardLayout, relayout, te
from tecomp.layout import DmaNest, FixedTiledLayout, GridMap
from tests.strategies.layouts import draw_layout, function_of
from tests.strategies.pictures import check_picture, words_of

ROWS = Layout.row_major((100, 64), "int32")
STICKS = Layout.of((100, 64), "int32", lambda i, j: [j // 32, i, j % 32])
CORES = ShardLayout((100, 64), "int32", grid=(4, 2))


def test_drawn(golden: Callable[[object], None]) -> None:
    golden(relayout(ROWS, STICKS).picture())


def words(picture: str) -> list[str]:
    """Return the text lines of a picture after its checks."""
    return [line.text for line in words_of(check_picture(picture))]


@pytest.mark.parametrize(("src", "dst"), [(ROWS, STICKS), (STICKS, ROWS), (ROWS, CORES), (CORES, STICKS)])
def test_runs_are_those_of_the_layouts(src: Layout, dst: Layout) -> None:
    lines = [line.text for line in words_of(check_picture(relayout(src, dst).picture()))]

    for length, count in src.runs_to(dst).lengths:
        assert f"{count:,} run{'s' * (count != 1)} of {length} element{'s' * (length != 1)}" in lines
    assert lines.count("From") == lines.count("To") == 1


@pytest.mark.parametrize(
    ("rows", "said"),
    [(1, ["row 0"]), (3, ["row 0", "row 1", "row 2"]),
     (5, ["rows 0 to 1", "row 2", "row 3", "row 4"]), (4096, ["rows 0 to 1,023", "rows 3,072 to 4,095"])],
)
def test_colours_are_those_of_rows_that_are_shown(rows: int, said: list[str]) -> None:
    src, dst = (Layout.of((rows, 4), "int8", each)
                for each in (lambda i, j: [i, j], lambda i, j: [i, j // 2, j % 2]))
    found = words(relayout(src, dst).picture())

    assert [line for line in found if line.startswith(("row ", "rows "))] == said


def test_runs_alone() -> None:
    lines = words(ROWS.runs_to(STICKS).picture())

    assert lines[0] == "runs of a copy"
    assert "200 runs of 32 elements" in lines


def test_loops_of_an_engine() -> None:
    nest = DmaNest((3, 8), (64, 1), (200, 1), host_offset=1920)

    assert words(nest.picture()) == [
        "loops of a DMA engine", "24 elements, from host 1,920 to device 0 on",
        "3 times", "200 further on the host, 64 further on the device",
        "8 times", "1 further on the host, 1 further on the device", "copies an element",
    ]


def test_a_value_with_a_layout_shows_that() -> None:
    assert FixedTiledLayout((100, 64), (64, 1), STICKS).picture() == STICKS.picture()


def test_cores_that_stand_for_others() -> None:
    lines = words(GridMap.folded((1, 12), (4, 4)).picture())

    assert lines[2] == "12 virtual cores on [1, 4, 4], 4 cores idle"
    assert [line for line in lines if line.startswith("0,")] == [f"0,{k}" for k in range(12)]
    assert lines[-1] == "stands idle"


@pytest.mark.parametrize(("shape", "device"), [
    ((1, 1), (1, 1)), ((16, 32), (8, 8)), ((3, 40, 40), (20, 20)), ((7, 1000), (8, 1000)),
])
def test_any_grid(shape: tuple[int, ...], device: tuple[int, int]) -> None:
    check_picture(GridMap.mesh(shape, device).picture())


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
