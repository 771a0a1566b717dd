"""Sharded layouts: extents, tiles, faces, padding per core, and errors."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tecomp
from tecomp import LayoutError, ShardLayout, te
from tecomp.ir import SCALARS
from tecomp.layout import ALLOWED_TILES
from tecomp.layout.formats.registry import NAMED_FORMATS
from tecomp.poly.maps import brute_force
from tests.messages import Diagnostic, diagnostic

Golden = Callable[[object], None]

BYTES_OF_TILES = [
    ("float32", None, 4096), ("uint32", None, 4096), ("int32", None, 4096),
    ("float16", None, 2048), ("bfloat16", None, 2048), ("uint16", None, 2048),
    ("uint8", None, 1024), ("bool", None, 1024),
    ("float32", "bfp_bf8", 1088), ("float32", "bfp_f8", 1088),
    ("float32", "bfp_bf4", 576), ("float32", "bfp_f4", 576),
    ("float32", "bfp_bf2", 320), ("float32", "bfp_f2", 320),
    ("float32", "bfloat16", 2048),
]


@pytest.mark.parametrize(("dtype", "element", "size"), BYTES_OF_TILES)
def test_bytes_of_a_tile(dtype: str, element: str | None, size: int) -> None:
    layout = ShardLayout((64, 96), dtype, grid=(2, 1), tile=(32, 32), element=element)

    assert layout.memref_shape == (1, 3)
    assert layout.shard_bytes == 3 * size
    assert layout.nbytes == 6 * size


@pytest.mark.parametrize(
    ("shape", "grid", "tile", "memref"),
    [
        ((1, 32, 10, 10), (1, 1), (32, 32), (10, 1)),
        ((100,), (1, 4), None, (1, 25)),
        ((100,), None, (32, 32), (1, 4)),
        ((), None, (32, 32), (1, 1)),
        ((), None, None, (1,)),
        ((7,), None, None, (7,)),
        ((5, 9), (4, 4), None, (2, 3)),
        ((3, 5, 9), (1, 2, 3, 4), None, (1, 1, 5, 3)),
    ],
)
def test_memref(
    shape: tuple[int, ...], grid: Any, tile: Any, memref: tuple[int, ...]
) -> None:
    assert ShardLayout(shape, "float32", grid=grid, tile=tile).memref_shape == memref


def test_collapsed_extents_match_the_values() -> None:
    """Collapsed extents count from the minimum to the maximum value, for any signs."""
    layout = ShardLayout((4, 10), "float32", lambda i, j: [7 - 2 * i, j % 16 + 3], grid=(2, 3))

    assert layout.collapsed_shape == (7, 10)
    assert layout.memref_shape == (4, 4)
    for i, j in itertools.product(range(4), range(10)):
        row = 6 - 2 * i
        assert layout.place((i, j)) == (row // 4, j // 4, row % 4, j % 4)


@pytest.mark.parametrize(("index", "offset"), [((0, 5), 5), ((17, 5), 533), ((15, 16), 496)])
def test_faces_of_a_tile(index: tuple[int, int], offset: int) -> None:
    """A tile stores its four 16x16 faces in row-major order."""
    layout = ShardLayout((32, 32), "float32", tile=(32, 32), face=(16, 16))
    r, c = index

    assert layout.offset(index) == offset
    assert offset == (r // 16 * 2 + c // 16) * 256 + r % 16 * 16 + c % 16
    assert layout.physical_shape == (1, 1, 1, 1, 2, 2, 16, 16)


def test_offset_in_the_shard() -> None:
    layout = ShardLayout((64, 64), "float32", grid=(2, 2), tile=(32, 32), face=(16, 16))

    assert layout.core((49, 37)) == (1, 1)
    assert layout.shard_offset((49, 37)) == 533
    assert layout.offset((49, 37)) == 3 * 1024 + 533


def test_aligned_strides_make_whole_tiles_of_each_batch() -> None:
    """Row strides aligned to 32 give whole tiles per batch: 6x7 tiles for 2x3x5x193."""
    layout = ShardLayout(
        (2, 3, 5, 193), "float32", lambda a, b, c, d: [a * 96 + b * 32 + c, d], tile=(32, 32)
    )

    assert layout.memref_shape == (6, 7)
    assert {layout.place((a, b, 4, 0))[4] for a in range(2) for b in range(3)} == {4}


def test_elements_of_a_core() -> None:
    layout = ShardLayout((53, 63), "float32", grid=(3, 2), tile=(32, 32))

    assert layout.scalar_shard_shape == (18, 32)
    assert layout.padded_shard_shape == (32, 32)
    assert layout.shard_shape == (1, 1, 32, 32)
    assert layout.grid_shape == layout.grid == (3, 2)


@st.composite
def sharded(draw: st.DrawFn) -> ShardLayout:
    """Draw layouts with bumped strides, permuted or folded dimensions, tiles and faces."""
    shape = draw(st.lists(st.integers(1, 9), min_size=1, max_size=4))
    order = draw(st.permutations(range(len(shape))))
    cut = draw(st.integers(0, len(shape)))
    tile = draw(st.sampled_from([None, None, (4, 16), (16, 16)]))
    keeps_one = draw(st.booleans())
    bump = draw(st.integers(0, 3))

    def linear(*i: Any) -> list[Any]:
        results: list[Any] = []
        for dims in (order[:cut], order[cut:]):
            total: Any = 0
            for k in dims:
                total = total * (shape[k] + bump) + i[k]
            results.append(total)
        return [i[0], *results] if keeps_one else results

    grid = draw(st.lists(st.integers(1, 4), min_size=2 + keeps_one, max_size=2 + keeps_one))
    face = (4, 8) if tile and draw(st.booleans()) else None
    return ShardLayout(shape, "float32", linear, grid=grid, tile=tile, face=face)


@given(sharded())
def test_padding_of_each_core_has_no_elements(layout: ShardLayout) -> None:
    selected = np.zeros(layout.physical_shape, bool)
    selected.reshape(-1)[layout.offsets()] = True
    inside = tuple(range(len(layout.grid), selected.ndim))

    assert np.array_equal(layout.elements_per_core, selected.sum(inside))
    assert layout.padding_per_core.sum() == layout.padding_count
    for core in itertools.product(*map(range, layout.grid)):
        padding = layout.core_padding(core)
        at = dict(zip(padding.shard_variables, np.indices(layout.shard_shape), strict=True))
        found = np.broadcast_to(brute_force.values(padding.condition, at), layout.shard_shape)
        assert np.array_equal(found, ~selected[core])
        assert padding.count == found.sum()


@given(sharded())
def test_text_and_back(layout: ShardLayout) -> None:
    repeated = ShardLayout.parse(str(layout), face=layout.face)

    assert str(repeated) == str(layout)
    assert repeated == layout
    assert hash(repeated) == hash(layout)


@given(sharded(), st.integers(0, 10**6))
def test_places_and_back(layout: ShardLayout, seed: int) -> None:
    index = tuple(int(n) for n in np.unravel_index(seed % layout.num_elements, layout.shape))

    assert layout.element(layout.place(index)) == index
    assert layout.place(index) == tuple(
        int(n) for n in np.unravel_index(layout.offsets()[index], layout.physical_shape)
    )


def test_many_elements_are_counted_in_blocks() -> None:
    layout = ShardLayout((3, 1000, 1000, 2), "float32", grid=(7, 2))

    rows = -(-3_000_000 // 7)
    expected = [min(rows, 3_000_000 - k * rows) for k in range(7)]
    assert layout.elements_per_core.tolist() == [[n, n] for n in expected]


def test_cores_may_be_left_without_elements() -> None:
    layout = ShardLayout((9,), "float32", grid=(4,))

    assert layout.memref_shape == (3,)
    assert layout.padding_per_core.tolist() == [0, 0, 0, 3]
    assert layout.core_padding((3,)).margins == (3,)


def test_inexpressible_layouts_are_described() -> None:
    layout = ShardLayout((8, 8), "float32", lambda i, j: [i ^ j, j], grid=(2, 4))

    assert str(layout) == layout.describe()
    assert layout == layout.replace()
    assert layout.place((5, 6)) == (0, 3, 3, 0)


def test_layouts_that_differ_are_not_equal() -> None:
    layout = ShardLayout((64, 64), "float32", grid=(2, 2), tile=(32, 32))

    for other in (
        layout.replace(face=(16, 16)), layout.replace(element="bfp_bf8"),
        layout.replace(oob_val="zero"), layout.replace(grid=(1, 4)),
        layout.replace(memory_space="dram"), layout.replace(tile=(16, 32)),
    ):
        assert layout != other
    assert layout.replace() == layout
    assert layout.replace(collapse_intervals=[]) == layout


def test_a_schedule_takes_a_sharded_layout() -> None:
    layout = ShardLayout((53, 63), "float32", grid=(3, 2), tile=(32, 32), oob_val="one")
    A = te.placeholder((53, 63), name="A")
    B = te.compute((53, 63), lambda i, j: A[i, j] * 2.0, name="B")
    s = te.create_schedule(B)
    s[B].transform_layout(layout)
    a = np.random.default_rng(0).standard_normal((53, 63), np.float32)
    b = np.empty(layout.physical_shape, np.float32)

    tecomp.build(s, [A, B])(a, b)

    expected = np.ones(prod(layout.physical_shape), np.float32)
    expected[layout.offsets()] = 2 * a
    assert np.array_equal(b.reshape(-1), expected)


def test_described(golden: Golden) -> None:
    layout = ShardLayout(
        (53, 63), "float32", grid=(3, 2), tile=(32, 32), element="bfp_bf8", oob_val="neginf"
    )

    golden(f"{layout}\n{layout!r}\n{layout.describe()}")


def make(*args: Any, **options: Any) -> Callable[[], object]:
    return lambda: ShardLayout(*args, **options)


REFUSED = {
    "grid-rank": (
        make((2, 3, 4), "float32", lambda i, j, k: [i * 3 + j, k], grid=(2, 2, 1)),
        Diagnostic(
            "shards", cores="2x2x1", core_count=3, index_map="lambda i, j, k: [i * 3 + j, k]",
            count=2,
        ),
    ),
    "too-few-grid-axes": (
        make((2, 3, 4, 5), "float32", collapse_intervals=[(1, -1)], grid=(2, 2)),
        Diagnostic("shards", joins="[1, -1)", shape=[2, 3, 4, 5], result_count=3, rank=2),
    ),
    "grid-zero": (
        make((8, 8), "float32", grid=(0, 2)),
        Diagnostic("invalid-type", where="shard layout: the grid", values=(0, 2), many=""),
    ),
    "grid-text": (
        make((8, 8), "float32", grid="2x4"),
        Diagnostic("invalid-type", where="shard layout: the grid", values="2x4", many=""),
    ),
    "no-extent": (
        make((8, -1), "float32"),
        Diagnostic("invalid-type", extent=-1, shape=[8, -1]),
    ),
    "empty": (
        make((8, 0), "float32"),
        Diagnostic("shards", dtype="float32", shape=[8, 0]),
    ),
    "collision": (
        make((8, 8), "float32", lambda i, j: [i * 4 + j, 0]),
        Diagnostic(
            "not-injective", first=(0, 4), second=(1, 0), dtype="float32", shape=[8, 8],
            index_map="lambda i, j: [i * 4 + j, 0]",
        ),
    ),
    "large-tile": (
        make((64, 64), "float32", tile=(64, 64)),
        Diagnostic("shards", found="64x64", allowed="4x16, 16x16, 32x16, 4x32, 16x32, 32x32"),
    ),
    "tile-of-one-axis": (
        make((64,), "float32", grid=(2,), tile=(32, 32)),
        Diagnostic("shards", tile="32x32", index_map="lambda d0: [d0]", count=1),
    ),
    "face": (
        make((64, 64), "float32", tile=(4, 16), face=(16, 16)),
        Diagnostic("shards", found="16x16", subject="a tile of 4x16"),
    ),
    "face-without-tile": (
        make((64, 64), "float32", face=(16, 16)),
        Diagnostic("shards", found="16x16", subject="no tile"),
    ),
    "bfp-without-tile": (
        make((64, 64), "float32", element="bfp_bf8"),
        Diagnostic("shards", storage="bfp_bf8", subject="elements one by one"),
    ),
    "bfp-small-tile": (
        make((64, 64), "float32", element="bfp_bf8", tile=(16, 16)),
        Diagnostic("shards", storage="bfp_bf8", subject="tiles of 16x16"),
    ),
    "no-format": (
        make((64, 64), "float32", element="bfp9", tile=(32, 32)),
        Diagnostic(
            "storage-format", name="bfp9",
            named=", ".join(dict.fromkeys((*NAMED_FORMATS, *SCALARS))),
        ),
    ),
    "pad-word": (
        make((8, 8), "float32", oob_val="two"),
        Diagnostic("shards", oob_val="two", oob_values="undef, zero, one, inf, neginf"),
    ),
    "pad-type": (
        make((8, 8), "int32", oob_val="inf"),
        Diagnostic("shards", oob_val="inf", dtype="int32"),
    ),
    "memory": (
        make((8, 8), "float32", memory_space="l2"),
        Diagnostic("shards", name="l2", memory_spaces="system, mmio, dram, l1"),
    ),
    "two-ways": (
        make((8, 8), "float32", lambda i, j: [i, j], collapse_intervals=[(0, 1)]),
        Diagnostic("shards"),
    ),
    "separator": (
        make((8, 8), "float32", lambda i, j: [i, te.AXIS_SEPARATOR, j]),
        Diagnostic("shards", index_map="lambda i, j: [i, AXIS_SEPARATOR, j]"),
    ),
    "core": (
        lambda: ShardLayout((8, 8), "float32", grid=(2, 2)).core_padding((2, 0)),
        Diagnostic("index-out-of-bounds", subject="core", index=(2, 0), shape=[2, 2]),
    ),
    "no-device": (
        lambda: ShardLayout((8, 8), "float32", grid=(2, 2)).physical_core((0, 0)),
        Diagnostic("shards", grid="2x2"),
    ),
    "other-device": (
        make((8, 8), "float32", grid=(2, 2), device=tecomp.GridMap.folded((1, 4), (8, 8))),
        Diagnostic("shards", shape=[1, 4], grid=[2, 2]),
    ),
    "not-in-text": (
        lambda: ShardLayout((8, 8), "float32", lambda i, j: [i ^ j, j]).text(),
        Diagnostic("layout-text", node="i ^ j"),
    ),
}


@pytest.mark.parametrize(("call", "expected"), REFUSED.values(), ids=REFUSED)
def test_refusals(call: Callable[[], object], expected: Diagnostic) -> None:
    with pytest.raises(LayoutError) as caught:
        call()

    assert diagnostic(caught.value) == expected


def test_short_names_of_formats() -> None:
    layout = ShardLayout((64, 64), "float32", element="bfp4", tile=(32, 32))

    assert layout == ShardLayout((64, 64), "float32", element="bfp_bf4", tile=(32, 32))
    assert "!tt.tile<32 x 32, bfp_bf4>" in str(layout)
    assert layout.storage.decode_array(layout.storage.encode_array(np.ones(1024)))[77] == 1


def test_other_tiles_may_be_allowed() -> None:
    layout = ShardLayout((64, 64), "float32", tile=(8, 64), allowed_tiles=[(8, 64)])

    assert layout.memref_shape == (8, 1)
    assert layout.replace(grid=(2, 1)).memref_shape == (4, 1)
    assert re.search("8x64", str(ALLOWED_TILES)) is None


@pytest.mark.parametrize("seed", range(20))
def test_padding_of_aligned_shards(seed: int) -> None:
    """Padding counts and positions of aligned shards equal NumPy's."""
    random = np.random.default_rng(seed)
    shape = tuple(int(n) for n in random.integers(1, 60, 2))
    grid = tuple(int(n) for n in random.integers(1, 5, 2))
    dtype = ("float32", "bfloat16", "uint8")[seed % 3]
    alignment = int(random.choice([16, 32, 64]))
    layout = ShardLayout(shape, dtype, grid=grid, alignment_bytes=alignment)

    rows, columns = (-(-n // count) for n, count in zip(shape, grid, strict=True))
    step = alignment // layout.dtype.bytes
    wide = -(-columns // step) * step
    assert layout.memref_shape == layout.padded_shard_shape == (rows, wide)
    i, j = np.indices(shape)
    core = i // rows * grid[1] + j // columns
    assert np.array_equal(layout.offsets(), (core * rows + i % rows) * wide + j % columns)
    counts = np.bincount(core.reshape(-1), minlength=prod(grid)).reshape(grid)
    assert np.array_equal(layout.padding_per_core, rows * wide - counts)
    last = tuple(n - 1 for n in grid)
    assert layout.core_padding(last).count == rows * wide - counts[last]


def test_alignments_that_are_refused() -> None:
    with pytest.raises(LayoutError) as caught:
        ShardLayout((8, 8), "float32", alignment_bytes=6)
    assert diagnostic(caught.value) == (
        Diagnostic("shards", size=6, storage="float32", bits=32)
    )
    with pytest.raises(LayoutError) as caught:
        ShardLayout((8, 8), "float32", alignment_bytes=0)
    assert diagnostic(caught.value) == (
        Diagnostic("shards", alignment_bytes=0)
    )
