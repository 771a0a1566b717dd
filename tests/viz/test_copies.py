"""Pictures of layout copies and of index maps."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tecomp import IndexMap, Layout, ShardLayout, StickLayout, relayout, te
from tecomp.layout import DmaNest, FixedTiledLayout, GridMap
from tests.strategies.layouts import draw_layout, function_of
from tests.viz.figure import (
    assert_increasing,
    assert_proportional,
    check_figure,
    hue,
    linear_map,
    one_to_one,
    only,
)
from tests.viz.test_layout import check_memories, panel_of, pieces_of

ROWS = Layout.row_major((100, 64), "int32")
STICKS = Layout.of((100, 64), "int32", lambda i, j: [j // 32, i, j % 32])
CORES = ShardLayout((100, 64), "int32", grid=(4, 2))


def words(picture: str) -> list[str]:
    """Return the lines of text of a figure, after the checks of all figures."""
    return check_figure(picture).texts


def test_a_copy_of_rows_to_sticks() -> None:
    figure = check_figure(relayout(ROWS, STICKS).picture())

    assert figure.texts[:3] == [
        "relayout of int32[100, 64]", "from (index0, index1) -> (index0, index1)", "to (i, j) -> (j // 32, i, j % 32)"]
    assert [*figure.legend] == ["rows 0 to 24", "rows 75 to 99"]


@pytest.mark.parametrize(("src", "dst"), [(ROWS, STICKS), (STICKS, ROWS), (ROWS, CORES), (CORES, STICKS)])
def test_both_sides_are_in_the_colours_of_rows(src: Layout, dst: Layout) -> None:
    """The memory of the source is above that of the destination, with one colour for a row."""
    figure = check_figure(relayout(src, dst).picture())
    start, middle, end = (figure.line(words).top for words in ("From", "To", "Runs"))
    assert start < middle < end

    for layout, first, last in ((src, start, middle), (dst, middle, end)):
        pieces = [piece for piece in pieces_of(figure) if first < piece.box.top < last]
        assert all(panel_of(figure, piece.box) for piece in pieces)
        check_memories(figure, layout, pieces)
        for piece in pieces:
            if piece.index is not None:
                expected = figure.legend[f"rows {piece.index[0] // 25 * 25} to {piece.index[0] // 25 * 25 + 24}"]
                assert hue(piece.box.fill) == hue(expected)
        assert {0, 99} <= {piece.index[0] for piece in pieces if piece.index}


@pytest.mark.parametrize(("src", "dst"), [
    (ROWS, STICKS), (STICKS, ROWS), (ROWS, CORES), (CORES, STICKS),
    (Layout.row_major((100, 70), "int32"), StickLayout((100, 70), "int32")),
])
def test_runs_match_the_layouts(src: Layout, dst: Layout) -> None:
    figure = check_figure(relayout(src, dst).picture())
    bars = figure.boxes_titled(r"([\d,]+) runs? of ([\d,]+) elements?")

    found = [tuple(int(n.replace(",", "")) for n in match.groups()) for match, _ in bars]
    assert found == [(count, length) for length, count in src.runs_to(dst).lengths]
    assert_proportional(((count, bar.width) for (count, _), (_, bar) in zip(found, bars, strict=True)), 1)
    assert_increasing(bar.top for _, bar in bars)
    for match, bar in bars:
        words = figure.line(match[0])
        assert bar.top <= words.middle[1] <= bar.bottom
        assert bar.right < words.left < bar.right + 20


@pytest.mark.parametrize(
    ("rows", "message"),
    [(1, ["row 0"]), (3, ["row 0", "row 1", "row 2"]),
     (5, ["rows 0 to 1", "row 2", "row 3", "row 4"]), (4096, ["rows 0 to 1,023", "rows 3,072 to 4,095"])],
)
def test_colours_match_visible_rows(rows: int, message: list[str]) -> None:
    src, dst = (Layout.of((rows, 4), "int8", item)
                for item in (lambda i, j: [i, j], lambda i, j: [i, j // 2, j % 2]))
    found = words(relayout(src, dst).picture())

    assert [line for line in found if line.startswith(("row ", "rows "))] == message


def test_runs_alone() -> None:
    lines = words(ROWS.runs_to(STICKS).picture())

    assert lines[0] == "runs of a copy"
    assert "200 runs of 32 elements" in lines


def test_loops_of_an_engine() -> None:
    nest = DmaNest((3, 8), (64, 1), (200, 1), host_offset=1920)

    figure = check_figure(nest.picture())
    rows = [figure.line(text) for text in ("3 times", "8 times", "copies an element")]

    assert_increasing(row.top for row in rows)
    linear_map((depth, row.left) for depth, row in enumerate(rows))
    assert figure.texts == [
        "loops of a DMA engine", "24 elements, from host 1,920 to device 0 on",
        "3 times", "200 further on the host, 64 further on the device",
        "8 times", "1 further on the host, 1 further on the device", "copies an element",
    ]


def test_a_value_with_a_layout_shows_that() -> None:
    assert FixedTiledLayout((100, 64), (64, 1), STICKS).picture() == STICKS.picture()


def test_virtual_core_grid_is_drawn() -> None:
    grid = GridMap.folded((1, 12), (4, 4))
    figure = check_figure(grid.picture())

    assert figure.texts[2] == "12 virtual cores on [1, 4, 4], 4 cores idle"
    assert figure.legend == {"is idle": "pad"}
    cores = {tuple(map(int, found[1].split(", "))): (found[2], box)
             for found, box in figure.boxes_titled(r"core \(([\d, ]+)\): (.*)")}
    assert {*cores} == {*np.ndindex(1, 4, 4)}
    for core, (location, box) in cores.items():
        virtual = grid.virtual(core)
        words = "" if virtual is None else ",".join(map(str, virtual))
        assert (location, figure.label_of(box)) == (words or "idle", words)
        assert (box.fill == "pad") == (virtual is None)
    linear_map((column, box.left) for (_, _, column), (_, box) in cores.items())
    linear_map((row, box.top) for (_, row, _), (_, box) in cores.items())


def test_rows_of_virtual_cores_have_one_colour() -> None:
    grid = GridMap.mesh((16, 32), (8, 8))
    figure = check_figure(grid.picture())
    cores = [grid.virtual(tuple(map(int, found[1].split(", ")))) or () for found, _ in
             figure.boxes_titled(r"core \(([\d, ]+)\): .*")]
    fills = [box.fill for _, box in figure.boxes_titled(r"core \(([\d, ]+)\): .*")]

    assert len(fills) == 4 * 64
    one_to_one((virtual[-2] % 8, fill) for virtual, fill in zip(cores, fills, strict=True))


@pytest.mark.exhaustive(keep=1)
@pytest.mark.parametrize(("shape", "device"), [
    ((1, 1), (1, 1)), ((16, 32), (8, 8)), ((3, 40, 40), (20, 20)), ((7, 1000), (8, 1000)),
])
def test_any_grid(shape: tuple[int, ...], device: tuple[int, int]) -> None:
    check_figure(GridMap.mesh(shape, device).picture())


def test_an_empty_tensor() -> None:
    empty = Layout.row_major((0, 3), "int32")

    assert "nothing is copied" in words(relayout(empty, empty).picture())


@settings(max_examples=20)
@given(st.data())
def test_any_index_map(data: st.DataObject) -> None:
    rank = data.draw(st.integers(0, 5))
    text = draw_layout(data.draw, [8] * rank)
    index_map = IndexMap.from_func(function_of(text), ndim=rank)

    check_figure(index_map.picture())


def test_an_index_map_shows_elements_of_positions() -> None:
    index_map = IndexMap.from_func(lambda i, j: [j // 64, te.AXIS_SEPARATOR, i, j % 64])
    figure = check_figure(index_map.picture())
    indices = {found[1]: box for found, box in figure.boxes_titled("index (.*)")}
    places = {int(found[1]): (found[2], box) for found, box in figure.boxes_titled(r"place (\d+): (.*)")}

    assert [figure.label_of(box) for box in indices.values()] == ["i", "j"] == [*indices]
    assert {k: words for k, (words, _) in places.items()} == {0: "j // 64", 1: "i", 2: "j % 64"}
    assert all(figure.label_of(box) == words for words, box in places.values())
    assert_increasing(box.top for box in indices.values())
    assert_increasing(box.top for _, box in places.values())
    found = set()
    for line in figure.lines:
        if " is in place " not in line.title:
            continue
        name, place = line.title.split(" is in place ")
        (x, y), (to, end) = line.points
        assert (x, y) == pytest.approx((indices[name].right, indices[name].middle[1]), abs=0.2)
        assert (to, end) == pytest.approx((places[int(place)][1].left, places[int(place)][1].middle[1]), abs=0.2)
        assert hue(line.colour) == hue(indices[name].fill) == hue(places[int(place)][1].fill)
        found.add((name, int(place)))
    assert found == {("j", 0), ("i", 1), ("j", 2)}
    border = only(line for line in figure.lines if line.title == "end of a physical axis")
    assert border.is_dashed
    assert places[0][1].bottom < border.points[0][1] < places[1][1].top
