"""Layout pictures are deterministic and show all elements at their positions."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from math import prod

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tecomp import Layout, LayoutError, ShardLayout, StickLayout, blocked
from tecomp.drawing import HUES
from tests.strategies.layouts import draw_layout, function_of
from tests.strategies.shards import draw_shards
from tests.viz.figure import (
    Box,
    Figure,
    Frame,
    assert_increasing,
    assert_proportional,
    check_figure,
    hue,
    linear_map,
    one_to_one,
    only,
    without_style,
)

Golden = Callable[[object], None]

LAYOUTS: dict[str, Layout] = {
    "sticks": Layout.of((1000, 200), "float16", lambda i, j: [j // 64, i, j % 64]),
    "cores": Layout.of(
        (1000, 200), "float16", lambda i, j: [i // 250, j // 64, i % 250, j % 64], grid_axes=[0]
    ),
    "grid": ShardLayout((1000, 1000), "bfloat16", grid=(8, 8), tile=(32, 32)),
    "idle cores": ShardLayout((18, 64), "float32", grid=(8, 2)),
    "few": Layout.of((6, 13), "float16", lambda i, j: [j // 4, i, j % 4]),
    "few cores": Layout.of(
        (4, 6), "int8", lambda i, j: [i // 2, j // 3, i % 2, j % 3], grid_axes=[0, 1]
    ),
    "stick": StickLayout((3, 5, 130), "float16"),
    "blocked": blocked((2, 20, 56, 56), "float32", "nChw16c"),
    "transposed": Layout.of((256, 512), "float32", lambda i, j: [j, i]),
    "swizzled": Layout.of((8, 8), "float32", lambda i, j: [i, j ^ i]),
    "one axis": Layout.of((40,), "float32", lambda i: [i // 16, i % 16]),
    "five axes": Layout.row_major((2, 3, 4, 5, 6), "int8", (4, 3, 2, 1, 0)),
    "huge": Layout.row_major((10**6, 10**6), "float32"),
    "one huge row": Layout.row_major((10**12,), "float32"),
    "scalar": Layout.row_major((), "float32"),
    "empty": Layout.row_major((0, 3), "float32"),
}
PIECE = (
    r"(?:\[(?P<index>[\d, :]*)\] in|padding:) places? (?P<first>[\d,]+)(?: to (?P<last>[\d,]+))?"
    r"(?:, byte 0x\w+)?(?:, core \((?P<core>[\d, ]+)\))?"
)


@dataclass(frozen=True)
class Piece:
    """A box of a layout figure, as its tooltip describes it.

    Attributes:
        box: Rectangle.
        index: Index of the first element; None for padding.
        offset: Offset of the first place in the memory of its core.
        count: Number of elements or places.
        core: Coordinates of the core; empty if there is one memory.
    """

    box: Box
    index: tuple[int, ...] | None
    offset: int
    count: int
    core: tuple[int, ...]

    @property
    def row(self) -> tuple[int, ...]:
        """All indices but the last."""
        return (self.index or ())[:-1]

    @property
    def column(self) -> int:
        """The last index."""
        return (self.index or (0,))[-1]


def pieces_of(figure: Figure) -> list[Piece]:
    """Return the boxes of the tensor and of the memories."""
    return [_piece(found, box) for found, box in figure.boxes_titled(PIECE)]


def _piece(found: re.Match[str], box: Box) -> Piece:
    index, first, last, core = (found[name] for name in ("index", "first", "last", "core"))
    offset = int(first.replace(",", ""))
    count = int(last.replace(",", "")) - offset + 1 if last else 1
    parts = None if index is None else [part.split(":") for part in index.split(", ")] if index else []
    if parts and len(parts[-1]) == 2:
        assert count == int(parts[-1][1]) - int(parts[-1][0])
    return Piece(box, None if parts is None else tuple(int(part[0]) for part in parts), offset, count,
                 tuple(map(int, core.split(", "))) if core else ())


def check(layout: Layout) -> int:
    """Compare each element of the figure with the layout, and return the number of pieces."""
    figure = check_figure(layout.picture())
    pieces = pieces_of(figure)
    for piece in pieces:
        if piece.index is None:
            continue
        for step in {0, piece.count // 2, piece.count - 1}:
            at = layout.place([*piece.index[:-1], piece.index[-1] + step] if piece.index else [])
            grid = tuple(at[axis] for axis in layout.grid_axes)
            inside = [n for axis, n in enumerate(at) if axis not in layout.grid_axes]
            assert grid == piece.core
            shape = [n for axis, n in enumerate(layout.physical_shape) if axis not in layout.grid_axes]
            assert np.ravel_multi_index(inside or [0], shape or [1]) == piece.offset + step
    if pieces:
        held = [piece for piece in pieces if panel_of(figure, piece.box)]
        seen = [piece for piece in pieces if not panel_of(figure, piece.box)]
        check_tensor(figure, seen)
        check_memories(figure, layout, held)
        check_fills(figure, layout, seen, held)
        check_allocation(figure, layout)
    return len([piece for piece in pieces if piece.index is not None])


def panel_of(figure: Figure, box: Box) -> Frame | None:
    """Return the frame of the memory that a box is in; None for a box of the tensor."""
    return next((frame for frame in figure.frames if frame.stroke == 1.6 and frame.contains(box)), None)


def check_tensor(figure: Figure, pieces: Sequence[Piece]) -> None:
    """Check that rows run downwards and columns to the right, below and beside their numbers."""
    tops = one_to_one((piece.row, piece.box.top) for piece in pieces)
    assert_increasing(top for _, top in sorted(tops.items()))
    lefts = one_to_one((piece.column, piece.box.left) for piece in pieces)
    assert_increasing(left for _, left in sorted(lefts.items()))
    first = min(tops.values())
    heads = [line for line in figure.words if first - 20 < line.bottom < first
             and line.left > min(lefts.values()) - 20 and re.fullmatch(r"\d+(?:…\d+)?", line.text)]
    for line in heads:
        column, _, last = line.text.partition("…")
        widest = max((piece for piece in pieces if piece.column == int(column)), key=lambda p: p.count)
        assert abs(line.middle[0] - (widest.box.left + widest.box.right) / 2) <= 2.1, line
        assert int(last or column) - int(column) == widest.count - 1 or not last
    for row, top in tops.items():
        name = ",".join(map(str, row))
        beside = [line.text for line in figure.words if line.right < min(lefts.values())
                  and top <= line.middle[1] <= top + 18]
        assert beside == ([name] if name else []), (row, beside)


def check_memories(figure: Figure, layout: Layout, pieces: Sequence[Piece]) -> None:
    """Check that pieces are in the memory of their core, in the order of their places."""
    slabs = [frame for frame in figure.frames if frame.is_dashed]
    starts = [int(frame.title.rpartition("@")[2].replace(",", ""), 0) for frame in slabs]
    for frame in (frame for frame in figure.frames if frame.stroke == 1.6):
        found = [piece for piece in pieces if frame.contains(piece.box)]
        if not found:
            continue  # a memory of the other side of a copy
        core = found[0].core
        name = f"core ({', '.join(map(str, core))})" if core else ""
        assert frame.title == (name or f"the memory {layout.memory}")
        assert {piece.core for piece in found} == {core}
        inside = [number for number, slab in enumerate(slabs) if frame.contains(slab)]
        assert_increasing(starts[number] for number in inside)
        assert_increasing(slabs[number].left for number in inside)
        for number in inside:
            own = [piece for piece in found if slabs[number].contains(piece.box)]
            for (top, left), piece in zip(sorted((p.box.top, p.box.left) for p in own),
                                          sorted(own, key=lambda p: p.offset), strict=True):
                assert (top, left) == (piece.box.top, piece.box.left)
            one_to_one((piece.offset // _block(layout), piece.box.top) for piece in own)
            first = min(piece.offset for piece in own)
            size, rest = divmod(layout.shard_nbytes, layout.num_places // prod(layout.grid_shape))
            address = f"@{first:,}" if rest else f"@{first * size:#x}"
            assert slabs[number].title.endswith(address)
            assert slabs[number].title.removeprefix("part ") in figure.texts
        assert len([piece for piece in found if any(slabs[n].contains(piece.box) for n in inside)]) == len(found)
    whole = [piece for piece in pieces if piece.index is not None]
    # There are gaps of 2 pixels between pieces, and the shortest one has 14 pixels.
    assert_proportional(((piece.count, piece.box.width + 2) for piece in whole), least=14.0)


def _block(layout: Layout) -> int:
    """Return the number of places along the last axis of a memory."""
    shape = [n for axis, n in enumerate(layout.physical_shape) if axis not in layout.grid_axes]
    return shape[-1] if shape else 1


def check_fills(
    figure: Figure, layout: Layout, seen: Sequence[Piece], held: Sequence[Piece]
) -> None:
    """Check that hues are those of the legend, on both sides, and shades those of the blocks."""
    legend = figure.legend
    for piece in (*seen, *held):
        if piece.index is None:
            assert piece.box.fill == "pad"
            assert "padding" in legend
            continue
        if piece.core and prod(layout.grid_shape) > 1:
            expected = legend[f"core ({', '.join(map(str, piece.core))})"]
        else:
            row = int(np.ravel_multi_index(piece.row, layout.shape[:-1])) if piece.row else 0
            expected = only(fill for words, fill in legend.items() if row in _rows(words))
        assert hue(piece.box.fill) == hue(expected), piece
    fills = {(piece.core, piece.offset): piece.box.fill for piece in held}
    assert all(fills[piece.core, piece.offset] == piece.box.fill for piece in seen)
    size = _block(layout)
    for _, group in groupby(sorted(seen, key=lambda p: (p.row, p.column)), key=lambda p: p.row):
        for before, after in pairwise(group):
            if before.core == after.core:
                steps = [HUES[hue(p.box.fill)].index(p.box.fill) for p in (before, after)]
                if before.column + before.count < after.column:
                    assert steps[0] <= steps[1], (before, after)  # columns are left out
                    continue
                is_same_block = before.offset // size == after.offset // size
                assert steps[1] == min(steps[0] + (not is_same_block), 3), (before, after)


def _rows(words: str) -> range:
    """Return the rows that an entry of the legend names."""
    found = re.fullmatch(r"rows? ([\d,]+)(?: to ([\d,]+))?", words)
    if found is None:
        return range(0)
    first = int(found[1].replace(",", ""))
    return range(first, int((found[2] or found[1]).replace(",", "")) + 1)


def check_allocation(figure: Figure, layout: Layout) -> None:
    """Check that the bar of the memory has the share of padding, after that of elements."""
    heading = figure.line("Allocation")
    bars = [box for box in figure.boxes if heading.bottom < box.top < heading.bottom + 20]
    count, rest = layout.num_elements, layout.padding_count
    assert bars[0].title == f"{count:,} element{'s' * (count != 1)}"
    assert bars[0].fill not in ("pad", "plain")
    width = sum(bar.width for bar in bars)
    if rest:
        assert len(bars) == 2
        assert bars[1].title == f"{rest:,} place{'s' * (rest != 1)} of padding"
        assert bars[1].fill == "pad"
        assert bars[1].left == pytest.approx(bars[0].right, abs=0.2)
        assert bars[1].width == pytest.approx(max(width * layout.padding_share, 2), abs=1.2)
    else:
        assert len(bars) == 1


def test_drawn(golden: Golden) -> None:
    """A layout of 8 places; the style sheet has a golden file of its own."""
    layout = Layout.of((2, 3), "int8", lambda i, j: [j // 2, i, j % 2])
    golden(without_style(layout.picture()))


@pytest.mark.exhaustive(keep=10)
@pytest.mark.parametrize("name", LAYOUTS)
def test_each_piece_is_where_the_layout_has_it(name: str) -> None:
    assert (check(LAYOUTS[name]) > 0) == (name != "empty")


@pytest.mark.parametrize("name", [name for name, x in LAYOUTS.items() if 0 < x.num_places <= 256])
def test_each_place_of_a_small_layout_is_shown(name: str) -> None:
    """A small layout shows each element in tensor and memory, and padding in memory."""
    layout = LAYOUTS[name]
    found = pieces_of(check_figure(layout.picture()))

    assert len({piece.index for piece in found if piece.index is not None}) == layout.num_elements
    assert len([piece for piece in found if piece.index is None]) == layout.padding_count
    assert {piece.count for piece in found} == {1}


@pytest.mark.parametrize("name", ["few", "swizzled"])
def test_each_place_of_a_small_layout_has_a_label(name: str) -> None:
    """Elements of the tensor have the number of their place, places of memory their element."""
    figure = check_figure(LAYOUTS[name].picture())

    for piece in pieces_of(figure):
        element = "" if piece.index is None else ",".join(map(str, piece.index))
        is_place = panel_of(figure, piece.box)
        assert figure.label_of(piece.box) == (element if is_place else str(piece.offset))


def test_a_row_of_a_tensor_is_a_row_of_sticks() -> None:
    """Show all 4 sticks of a row of 1000 by 200 elements in sticks of 64."""
    figure = check_figure(LAYOUTS["sticks"].picture())
    first = [piece for piece in pieces_of(figure) if piece.row == (0,) and not panel_of(figure, piece.box)]

    assert [(piece.column, piece.count) for piece in first] == [(0, 64), (64, 64), (128, 64), (192, 8)]
    assert [figure.label_of(piece.box) for piece in first][:3] == ["0,0", "0,64", "0,128"]
    assert figure.texts[:3] == [
        "float16[1000, 200]", "(i, j) -> (j // 64, i, j % 64)",
        "physical [4, 1000, 64] in global; 512,000 B"]


def test_each_core_has_a_panel() -> None:
    figure = check_figure(LAYOUTS["cores"].picture())
    titles = [frame.title for frame in figure.frames if frame.title.startswith("core (")]

    assert titles == [f"core ({k})" for k in range(4)]


@pytest.mark.parametrize("name", ["cores", "grid", "idle cores", "few cores"])
def test_cores_are_at_their_place_in_the_grid(name: str) -> None:
    """Cores that are shown below have a number and the colour of their panel."""
    layout = LAYOUTS[name]
    figure = check_figure(layout.picture())
    panels = {frame.title for frame in figure.frames if frame.title.startswith("core (")}
    cores = {}
    for found, box in figure.boxes_titled(r"(core \(([\d, ]+)\))(?:: (\d+) elements?)?"):
        at = tuple(map(int, found[2].split(", ")))
        cores[at] = box
        number = int(np.ravel_multi_index(at, layout.grid_shape))
        is_idle = isinstance(layout, ShardLayout) and not layout.elements_per_core[at]
        is_shown = found[1] in panels and not is_idle
        assert figure.label_of(box) == (str(number) if is_shown else "")
        if is_shown:
            assert box.fill == figure.legend[found[1]]
        else:
            assert box.fill == ("pad" if is_idle else "plain")
    grid = only(frame for frame in figure.frames if frame.title == "the grid of cores")
    assert len(cores) == prod(layout.grid_shape)
    assert all(grid.contains(box) for box in cores.values())
    linear_map((at[-1], box.left) for at, box in cores.items())
    rows = {at[:-1] for at in cores}
    if len(rows) > 1:
        linear_map((at[0], box.top) for at, box in cores.items())


def test_neighbours_on_the_grid_and_the_last_core_are_shown() -> None:
    figure = check_figure(LAYOUTS["grid"].picture())

    assert [line for line in figure.texts if line.startswith("core (")] == [
        "core (0, 0)", "core (0, 1)", "core (1, 0)", "core (7, 7)"] * 2
    assert any("60 of 64 cores, 13 of 16 parts of a memory, 28 of 32 blocks of a part" in line
               for line in figure.texts)


def test_colours_are_named_of_cores_that_have_elements() -> None:
    """The legend names the colours of cores with elements: 6 rows are on 3 of 6 core rows."""
    figure = check_figure(ShardLayout((6, 70, 90), "float32", grid=(2, 3, 4)).picture())

    assert [words for words, fill in figure.legend.items() if fill != "pad"] == [
        "core (0, 0, 0)", "core (0, 0, 1)", "core (0, 1, 0)"]


def test_large_layouts_without_inverse_are_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> None:
        raise LayoutError("inverse: no expression was found")

    monkeypatch.setattr("tecomp.poly.maps.index_map.IndexMap.non_surjective_inverse", refused)
    large = Layout.of((1000, 200), "float16", lambda i, j: [j // 64, i, j % 64])
    small = Layout.of((6, 13), "float16", lambda i, j: [j // 4, i, j % 4])

    assert any(line.startswith("memory is not shown: the index map has no closed-form")
               for line in check_figure(large.picture()).texts)
    assert small.picture() == LAYOUTS["few"].picture()


@given(st.data())
def test_any_layout(data: st.DataObject) -> None:
    shape = data.draw(st.lists(st.integers(1, 12), max_size=5))
    text = draw_layout(data.draw, shape)
    layout = Layout.of(shape, "float16", function_of(text))

    check(layout)


@given(st.data())
def test_any_shards(data: st.DataObject) -> None:
    shape = data.draw(st.lists(st.integers(1, 9), min_size=1, max_size=4))

    assert check(draw_shards(data.draw, shape).layout) > 0


@settings(max_examples=25, deadline=None)
@given(st.data())
def test_large_layouts(data: st.DataObject) -> None:
    shape = data.draw(st.lists(st.sampled_from((1, 7, 130, 1000, 99991)), min_size=1, max_size=5))
    kind = data.draw(st.sampled_from(("sticks", "rows", "turned", "cores")))
    if kind == "sticks":
        layout: Layout = StickLayout(shape, "float16")
    elif kind == "cores":
        layout = Layout.of(shape, "int8", lambda *x: [x[0] % 8, x[0] // 8, *x[1:]], grid_axes=[0])
    else:
        layout = Layout.row_major(shape, "float32", range(len(shape))[:: -1 if kind == "turned" else 1])

    if layout.num_places >= 1 << 60:
        assert check(layout) == 0
        assert "more positions than addresses" in layout.picture()
    else:
        assert check(layout) > 0
