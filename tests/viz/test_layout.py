"""Layout pictures are deterministic and show all elements at their positions."""

from __future__ import annotations

import re
from collections.abc import Callable
from xml.etree import ElementTree as ET

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tecomp import Layout, LayoutError, ShardLayout, StickLayout, blocked
from tests.strategies.layouts import draw_layout, function_of
from tests.strategies.pictures import SVG, check_picture
from tests.strategies.shards import draw_shards

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
PIECE = re.compile(
    r"<title>\[([\d, :]*)\] in places? ([\d,]+)(?: to ([\d,]+))?(?:, byte 0x\w+)?(?:, core \(([\d, ]+)\))?</title>"
)


def check(layout: Layout) -> int:
    """Compare each element box of the picture with the layout, and the number of boxes."""
    picture = layout.picture()
    check_picture(picture)
    pieces = PIECE.findall(picture)
    for index, first, last, core in pieces:
        parts = [part.split(":") for part in index.split(", ")] if index else []
        start = [int(part[0]) for part in parts]
        count = int(parts[-1][1]) - start[-1] if parts and len(parts[-1]) == 2 else 1
        offset = int(first.replace(",", ""))
        assert not last or int(last.replace(",", "")) == offset + count - 1
        for step in {0, count // 2, count - 1}:
            at = layout.place([*start[:-1], start[-1] + step] if start else [])
            grid = tuple(at[axis] for axis in layout.grid_axes)
            inside = [n for axis, n in enumerate(at) if axis not in layout.grid_axes]
            assert grid == (tuple(map(int, core.split(", "))) if core else ())
            shape = [n for axis, n in enumerate(layout.physical_shape) if axis not in layout.grid_axes]
            assert np.ravel_multi_index(inside or [0], shape or [1]) == offset + step
    return len(pieces)


@pytest.mark.parametrize("name", ["sticks", "few", "cores", "grid"])
def test_drawn(name: str, golden: Golden) -> None:
    golden(LAYOUTS[name].picture())


@pytest.mark.parametrize("name", LAYOUTS)
def test_each_piece_is_where_the_layout_has_it(name: str) -> None:
    assert (check(LAYOUTS[name]) > 0) == (name != "empty")


@pytest.mark.parametrize("name", [name for name, x in LAYOUTS.items() if 0 < x.num_places <= 256])
def test_each_place_of_a_small_layout_is_shown(name: str) -> None:
    """A small layout shows each element in tensor and memory, and padding in memory."""
    layout = LAYOUTS[name]
    picture = layout.picture()

    assert len(set(PIECE.findall(picture))) == layout.num_elements
    pads = re.findall(r"<title>padding: place ", picture)
    assert len(pads) == layout.padding_count


def test_each_core_has_a_panel_of_its_own() -> None:
    root = check_picture(LAYOUTS["cores"].picture())
    frames = [rect for rect in root.iter(f"{SVG}rect") if rect.get("class") == "frame"]
    titles = [rect.findtext(f"{SVG}title", "") for rect in frames]

    assert [title for title in titles if re.match(r"core \(", title)] == [
        f"core ({k})" for k in range(4)
    ]


def test_neighbours_on_the_grid_and_the_last_core_are_shown() -> None:
    text = LAYOUTS["grid"].picture()

    assert [f">core {core}</text>" in text for core in ("(0, 0)", "(0, 1)", "(1, 0)", "(7, 7)")] == [True] * 4
    assert "60 of 64 cores, 13 of 16 parts of a memory, 28 of 32 blocks of a part" in text


def test_cores_without_elements_are_hatched() -> None:
    layout = LAYOUTS["idle cores"]
    assert isinstance(layout, ShardLayout)
    root = check_picture(layout.picture())
    boxes = {rect.findtext(f"{SVG}title"): rect.get("fill") for rect in root.iter(f"{SVG}rect")}

    idle = {core for core in np.ndindex(8, 2) if not layout.elements_per_core[core]}
    assert idle
    for core in np.ndindex(8, 2):
        words = f"core {core}: {layout.elements_per_core[core]} elements"
        assert (boxes[words] or "").startswith("url(#te-hatch") == (core in idle)


def test_colours_are_named_of_cores_that_have_elements() -> None:
    """The legend names the colours of cores with elements: 6 rows are on 3 of 6 core rows."""
    picture = ShardLayout((6, 70, 90), "float32", grid=(2, 3, 4)).picture()
    fills = {box.attrib["fill"] for box in check_picture(picture).iter(f"{SVG}rect")
             if box.get("fill", "").startswith("#") and box.attrib["width"] != "12"}
    named = {box.attrib["fill"]: box.findtext(f"{SVG}title", "") for box in ET.fromstring(picture).iter(f"{SVG}rect")
             if box.attrib["width"] == "12" and box.get("fill", "").startswith("#")}

    assert sorted(named.values()) == ["core (0, 0, 0)", "core (0, 0, 1)", "core (0, 1, 0)"]
    assert {*named} <= fills


def test_a_large_layout_that_nobody_inverts_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> None:
        raise LayoutError("inverse: no expression was found")

    monkeypatch.setattr("tecomp.poly.maps.index_map.IndexMap.non_surjective_inverse", refused)
    large = Layout.of((1000, 200), "float16", lambda i, j: [j // 64, i, j % 64])
    small = Layout.of((6, 13), "float16", lambda i, j: [j // 4, i, j % 4])

    assert ">memory is not shown: no expression was found for" in large.picture()
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
        assert "more places than addresses" in layout.picture()
    else:
        assert check(layout) > 0
