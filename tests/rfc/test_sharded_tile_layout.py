"""Tensor Layout (tt-mlir): every snippet and figure of the document, by section."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tecomp import CapacityError, GridMap, LayoutError, ShardLayout, TtnnLayout
from tests.messages import Diagnostic, diagnostic

L1_BYTES = 1_499_136
BFP: dict[str, Any] = {"tile": (32, 32), "element": "bfp_bf8"}


def one_line(text: str) -> str:
    """Return a snippet on one line."""
    joined = re.sub(r"\s+", " ", text).strip()
    return re.sub(r"(?<=<) | (?=>)", "", joined)


# --- the snippets of the document

WALKTHROUGH = """
tensor<2x3x64x128xf32,
  #tt.layout<
    (d0, d1, d2, d3) -> (d0 * 192 + d1 * 64 + d2, d3),
    undef,
    <1x1>,
    memref<384x128xf32, #tt.memory_space<l1>>
  >
>
"""

MULTI_CORE = """
tensor<2x3x64x128xf32,
  #tt.layout<
    (d0, d1, d2, d3) -> (d0 * 192 + d1 * 64 + d2, d3),
    undef,
    <2x4>,
    memref<192x32xf32, #tt.memory_space<l1>>
  >
>
"""

TWO_COLUMNS = """
tensor<8x300xf32,
  #tt.layout<(d0, d1) -> (d0, d1),
    undef,
    <1x2>,
    memref<8x150xf32, #tt.memory_space<l1>>
  >
>
"""

TWO_ROWS = """
tensor<8x96x32xf32,
  #tt.layout<(d0, d1, d2) -> (d0 * 96 + d1, d2),
    undef,
    <2x1>,
    memref<384x32xf32, #tt.memory_space<l1>>
  >
>
"""

FOLDED_AND_KEPT = """
tensor<8x96x32xf32,
  #tt.layout<(d0, d1, d2) -> (d0 * 96 + d1, d1, d2),
    undef,
    <2x1x2>,
    memref<384x96x16xf32, #tt.memory_space<l1>>
  >
>
"""

SEVEN_DIMS = """
tensor<5x3x2x2x7x32x32xf32,
  #tt.layout<
    (d0, d1, d2, d3, d4, d5, d6)
      -> (d0 * 2688 + d1 * 896 + d2 * 448 + d3 * 224 + d4 * 32 + d5, d4, d5, d6),
    undef,
    <3x2x2x2>,
    memref<4480x4x16x16xf32, #tt.memory_space<l1>>
  >
>
"""

SCALAR = """
tensor<3x64x128xf32,
  #tt.layout<
    (d0, d1, d2) -> (d0 * 64 + d1, d2),
    undef,
    <3x2>,
    memref<64x64xf32, #tt.memory_space<l1>>
  >
>
"""

TILIZED = """
tensor<3x64x128xf32,
  #tt.layout<
    (d0, d1, d2) -> (d0 * 64 + d1, d2),
    undef,
    <3x2>,
    memref<2x2x!tt.tile<32 x 32, bfp_bf8>, #tt.memory_space<l1>>
  >
>
"""

PADDED = """
tensor<53x63xf32,
  #tt.layout<
    (d0, d1) -> (d0, d1),
    undef,
    <3x2>,
    memref<18x32xf32, #tt.memory_space<l1>>
  >
>
"""

PADDED_TILES = """
tensor<53x63xf32,
  #tt.layout<
    (d0, d1) -> (d0, d1),
    undef,
    <3x2>,
    memref<1x1x!tt.tile<32 x 32, bfp_bf8>, #tt.memory_space<l1>>
  >
>
"""

BATCH = """
tensor<2x8x32xf32,
  #tt.layout<
    (d0, d1, d2) -> (d0 * 8 + d1, d2),
    undef,
    <1x2>,
    memref<16x16xf32, #tt.memory_space<l1>>
  >
>
"""

MULTI_DEVICE = """
tensor<2x3x64x128xf32,
  #tt.layout<(d0, d1, d2, d3) -> (d0, d1 * 64 + d2, d3),
    undef,
    <2x2x4>,
    memref<1x3x1x!tt.tile<32 x 32, bfp_bf8>, #tt.memory_space<l1>>
  >
>
"""

SNIPPETS: dict[str, tuple[str, Callable[[], ShardLayout]]] = {
    "walkthrough": (WALKTHROUGH, lambda: ShardLayout((2, 3, 64, 128), "float32")),
    "multi_core": (MULTI_CORE, lambda: ShardLayout((2, 3, 64, 128), "float32", grid=(2, 4))),
    "two_columns": (TWO_COLUMNS, lambda: ShardLayout((8, 300), "float32", grid=(1, 2))),
    "two_rows": (TWO_ROWS, lambda: ShardLayout((8, 96, 32), "float32", grid=(2, 1))),
    "folded_and_kept": (
        FOLDED_AND_KEPT,
        lambda: ShardLayout(
            (8, 96, 32), "float32", lambda a, b, c: [a * 96 + b, b, c], grid=(2, 1, 2)
        ),
    ),
    "seven_dims": (
        SEVEN_DIMS,
        lambda: ShardLayout(
            (5, 3, 2, 2, 7, 32, 32),
            "float32",
            lambda a, b, c, d, e, f, g: [
                a * 2688 + b * 896 + c * 448 + d * 224 + e * 32 + f, e, f, g
            ],
            grid=(3, 2, 2, 2),
        ),
    ),
    "scalar": (SCALAR, lambda: ShardLayout((3, 64, 128), "float32", grid=(3, 2))),
    "tilized": (TILIZED, lambda: ShardLayout((3, 64, 128), "float32", grid=(3, 2), **BFP)),
    "padded": (PADDED, lambda: ShardLayout((53, 63), "float32", grid=(3, 2))),
    "padded_tiles": (PADDED_TILES, lambda: ShardLayout((53, 63), "float32", grid=(3, 2), **BFP)),
    "batch": (BATCH, lambda: ShardLayout((2, 8, 32), "float32", grid=(1, 2))),
    "multi_device": (
        MULTI_DEVICE,
        lambda: ShardLayout(
            (2, 3, 64, 128), "float32", collapse_intervals=[(1, -1)], grid=(2, 2, 4), **BFP
        ),
    ),
}


def parsed(snippet: str) -> ShardLayout:
    return ShardLayout.parse(snippet)


@pytest.mark.parametrize(("snippet", "make"), SNIPPETS.values(), ids=SNIPPETS)
def test_snippet(snippet: str, make: Callable[[], ShardLayout]) -> None:
    """Constructed layouts print as in the document, and parsed snippets are equal to them."""
    assert str(make()) == one_line(snippet)
    assert str(parsed(snippet)) == one_line(snippet)
    assert parsed(snippet) == make()


@pytest.mark.parametrize("snippet", [text for text, _ in SNIPPETS.values()], ids=SNIPPETS)
def test_element_positions_match_the_document(snippet: str) -> None:
    """Addresses equal map, core and tile arithmetic in NumPy on the printed numbers."""
    layout = parsed(snippet)
    memref = [int(n) for n in re.findall(r"(\d+)x", snippet.partition("memref<")[2].partition("!")[0])]
    tile = (32, 32) if "tile" in snippet else (1, 1)
    formula = re.search(r"->\s*\((.*)\),\s*undef", snippet, re.DOTALL)
    assert formula is not None
    index = np.indices(layout.shape)
    names = {f"d{k}": axis for k, axis in enumerate(index)}
    values = [eval(part, {}, names) for part in formula[1].split(",")]  # the formula of the snippet
    scalar = [-(-(int(v.max()) + 1) // g) for v, g in zip(values, layout.grid, strict=True)]
    strides = [1] * (len(memref) - 2) + list(tile)

    cores = [v // s for v, s in zip(values, scalar, strict=True)]
    inside = [v % s for v, s in zip(values, scalar, strict=True)]
    place = cores + [v // t for v, t in zip(inside, strides, strict=True)]
    shape = (*layout.grid, *memref)
    if tile != (1, 1):
        place += [v % t for v, t in zip(inside[-2:], tile, strict=True)]
        shape = (*shape, *tile)

    assert [-(-s // t) for s, t in zip(scalar, strides, strict=True)] == memref
    assert layout.physical_shape == shape
    assert np.array_equal(layout.offsets(), np.ravel_multi_index(place, shape))


# --- An Example / Walkthrough, Dimension Collapsing, Multi-core


def test_the_remapped_offset_of_the_walkthrough() -> None:
    layout = parsed(WALKTHROUGH)

    assert layout.place((1, 1, 6, 100)) == (0, 0, 262, 100)
    assert layout.place((1, 2, 63, 127)) == (0, 0, 383, 127)
    assert layout.collapsed_shape == (384, 128)


@pytest.mark.parametrize(
    ("rank", "grid_rank", "intervals", "joined"),
    [
        (3, 2, [(0, -1)], [[0, 1], [2]]),
        (4, 3, [(1, -1)], [[0], [1, 2], [3]]),
        (4, 3, [(0, 2)], [[0, 1], [2], [3]]),
        (7, 4, [(0, 3), (-3, -1)], [[0, 1, 2], [3], [4, 5], [6]]),
    ],
    ids=["default", "from-1", "up-to-2", "two-intervals"],
)
def test_collapse_intervals_of_the_document(
    rank: int, grid_rank: int, intervals: list[tuple[int, int]], joined: list[list[int]]
) -> None:
    shape = (2, 3, 4, 5, 2, 3, 2)[:rank]
    layout = ShardLayout(shape, "float32", collapse_intervals=intervals, grid=(1,) * grid_rank)
    index = np.indices(shape)
    expected = [
        np.ravel_multi_index([index[k] for k in dims], [shape[k] for k in dims])
        for dims in joined
    ]

    extents = tuple(int(np.prod([shape[k] for k in dims])) for dims in joined)
    assert layout.collapsed_shape == layout.memref_shape == extents
    assert np.array_equal(layout.offsets(), np.ravel_multi_index(expected, extents))


def test_by_default_all_but_the_last_are_collapsed() -> None:
    source = ShardLayout((2, 3, 4), "float32", collapse_intervals=[(0, -1)])

    assert source == ShardLayout((2, 3, 4), "float32")


def test_a_grid_may_be_larger_than_the_machine() -> None:
    """A `1x64` grid on 8x8 cores is valid; TTNN calls it width sharding."""
    device = GridMap.of((1, 64), lambda y, x: [0, y * 8 + x // 8, x % 8], (1, 8, 8))
    layout = ShardLayout((32, 4096), "float32", grid=(1, 64), device=device)

    for column in (0, 63, 64, 2047, 4095):
        core = column // 64
        assert layout.core((5, column)) == (0, core)
        assert layout.physical_core((5, column)) == (0, core // 8, core % 8)
    moved = layout.on_device()
    assert (moved.grid_shape, moved.shard_shape) == ((1, 8, 8), (32, 64))
    assert moved.place((5, 100)) == (0, 0, 1, 5, 36)


# --- Padding


def test_padding_of_a_grid_that_does_not_divide() -> None:
    """The last core row has one padding row, and the last core column one padding column."""
    layout = parsed(PADDED)

    for core in itertools.product(range(3), range(2)):
        padding = layout.core_padding(core)
        assert padding.margins == (int(core[0] == 2), int(core[1] == 1))
    assert layout.padding_per_core.tolist() == [[0, 18], [0, 18], [32, 49]]
    assert str(layout.core_padding((2, 1)).condition) == "p2 >= 17 or p3 >= 31"


def test_padding_of_tiles() -> None:
    """Each core has 14 padding rows; cores in the last row have 15."""
    layout = parsed(PADDED_TILES)

    rows = [[layout.core_padding((y, x)).margins[0] for x in range(2)] for y in range(3)]
    assert rows == [[14, 14], [14, 14], [15, 15]]
    assert [layout.core_padding((0, x)).margins[1] for x in range(2)] == [0, 1]
    assert layout.padding_per_core.tolist() == [
        [14 * 32, 1024 - 18 * 31], [14 * 32, 1024 - 18 * 31], [15 * 32, 1024 - 17 * 31]
    ]
    assert layout.shard_bytes == 1088
    assert str(layout.core_padding((2, 1)).condition) == "p4 >= 17 or p5 >= 31"


def test_tilizing_packs_batches_into_one_tile() -> None:
    tilized = parsed(BATCH).replace(tile=(32, 32))

    assert tilized.memref_shape == (1, 1)
    assert {tilized.place((b, i, j))[:4] for b in (0, 1) for i in (0, 7) for j in (0, 15)} == {
        (0, 0, 0, 0)
    }


def test_bumped_strides_align_batches_to_tiles() -> None:
    """Bumped strides give 40 rows: 32 for the first batch and its gap, 8 for the second."""
    layout = ShardLayout(
        (2, 8, 32), "float32", lambda a, b, c: [a * 32 + b, c], grid=(1, 2), tile=(32, 32)
    )

    assert "(d0, d1, d2) -> (d0 * 32 + d1, d2)" in str(layout)
    assert (layout.collapsed_shape, layout.memref_shape) == ((40, 32), (2, 1))
    assert [layout.place((b, 3, 17))[2:] for b in (0, 1)] == [(0, 0, 3, 1), (1, 0, 3, 1)]
    places = np.zeros(layout.physical_shape, bool)
    places.reshape(-1)[layout.offsets()] = True
    assert layout.padding_per_core.tolist() == [[2048 - places[0, x].sum() for x in (0, 1)]]


# --- Memory Spaces, Multi-device, and cases that the document leaves open


@pytest.mark.parametrize("space", ["system", "mmio", "dram", "l1"])
def test_memory_spaces(space: str) -> None:
    text = one_line(TWO_COLUMNS).replace("<l1>", f"<{space}>")

    assert str(ShardLayout.parse(text)) == text
    assert ShardLayout.parse(text).memory == space


def test_two_devices_share_the_batch() -> None:
    """The outermost grid axis counts devices, each with 2x4 cores."""
    device = GridMap.of((2, 2, 4), lambda z, y, x: [z, y, x], (2, 8, 8))
    layout = ShardLayout.parse(MULTI_DEVICE, device=device)

    assert layout.physical_core((0, 2, 63, 127)) == (0, 1, 3)
    assert layout.physical_core((1, 0, 0, 0)) == (1, 0, 0)
    assert layout.shard_bytes == 3 * 1088


def test_the_seven_dims_are_nearly_all_padding_and_fit_no_core() -> None:
    """A valid layout has 430,080 elements in 110,100,480 places."""
    layout = parsed(SEVEN_DIMS)

    assert layout.num_elements == 430_080
    assert layout.num_places == 110_100_480
    assert f"{100 * layout.padding_share:.1f} %" == "99.6 %"
    assert layout.shard_bytes == 4480 * 4 * 16 * 16 * 4
    assert layout.padding_per_core.sum() == layout.padding_count
    with pytest.raises(CapacityError) as caught:
        layout.check_capacity(L1_BYTES)
    assert diagnostic(caught.value) == (
        Diagnostic(
            "capacity", memref_shape="4480x4x16x16", storage="float32", shard_bytes=18350080,
            memory_space="l1", capacity_bytes=1499136, padding_percent=99.609375,
        )
    )


def test_capacity_is_checked_on_construction() -> None:
    with pytest.raises(CapacityError):
        ShardLayout.parse(SEVEN_DIMS, capacity_bytes=L1_BYTES)

    assert parsed(MULTI_CORE) == ShardLayout.parse(MULTI_CORE, capacity_bytes=192 * 32 * 4)


def test_folded_and_kept_wastes_most_memory() -> None:
    layout = parsed(FOLDED_AND_KEPT)

    assert (layout.num_elements, layout.num_places) == (24_576, 2_359_296)
    assert f"{100 * layout.padding_share:.2f} %" == "98.96 %"


def test_a_memref_that_does_not_follow_is_refused() -> None:
    with pytest.raises(LayoutError) as caught:
        parsed(PADDED.replace("18x32", "17x32"))

    assert diagnostic(caught.value) == (
        Diagnostic("shards", memref="17x32", shape="53x63", grid="3x2", memref_shape="18x32")
    )


PADS: list[tuple[str, Any]] = [
    ("undef", None), ("zero", 0), ("one", 1), ("inf", np.inf), ("neginf", -np.inf),
]


@pytest.mark.parametrize(("name", "value"), PADS)
def test_values_of_padding(name: str, value: float | None) -> None:
    layout = parsed(PADDED.replace("undef", name))

    assert layout.pad_value == value
    assert f" {name}, <3x2>" in str(layout)


# --- TTNN Tensor Layout


@pytest.mark.parametrize(
    ("shard_shape", "physical_shard_shape", "grid_shape"),
    [((192, 32), (192, 32), (2, 4)), ((100, 50), (128, 64), (4, 3)), ((384, 128), (384, 128), (1, 1))],
)
def test_terms_of_ttnn(
    shard_shape: tuple[int, int],
    physical_shard_shape: tuple[int, int],
    grid_shape: tuple[int, int],
) -> None:
    """TTNN's terms are ceil divisions of rows by shard rows and of columns by shard columns.

    The document divides both by the rows, and uses the first stride as the volume.
    """
    layout = TtnnLayout(
        (2, 3, 64, 128), "float32", memory_layout="block_sharded", memory_space="l1",
        shard_shape=shard_shape, tile=(32, 32),
    )
    volume = 2 * layout.stride[0]

    assert layout.packed_shape == (volume // layout.stride[-2], layout.stride[-2])
    assert layout.shard_shape == shard_shape
    assert layout.physical_shard_shape == physical_shard_shape
    assert layout.grid_shape == grid_shape


def test_ttnn_cannot_leave_the_batch_to_the_grid() -> None:
    """TTNN needs a device mesh for a batch on the grid; the document folds the batch per device."""
    with pytest.raises(LayoutError) as caught:
        TtnnLayout.from_shard(parsed(MULTI_DEVICE))

    assert diagnostic(caught.value) == (
        Diagnostic("shards", grid="2x2x4", oob_val="undef")
    )
    folded = ShardLayout((3, 64, 128), "float32", grid=(2, 4), **BFP)
    assert TtnnLayout.from_shard(folded).to_shard() == folded
    mesh = TtnnLayout.mesh_from_shard(parsed(MULTI_DEVICE))
    assert (mesh.shape, mesh.dims, mesh.layout.shape) == ((2,), (0,), (1, 3, 64, 128))
    assert (mesh.layout.packed_shape, mesh.layout.grid_shape) == ((192, 128), (2, 4))
