"""TTNN layouts: documented terms, pages and shards by NumPy, conversion to and from shards."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tecomp import LayoutError, ShardLayout, TtnnLayout
from tests.messages import Diagnostic, diagnostic

TILE = (32, 32)


def rows_and_columns(shape: tuple[int, ...], stride: tuple[int, ...], width: int) -> Any:
    """Return row and column of each element, from its address under the strides."""
    flat = sum(
        (axis * n for axis, n in zip(np.indices(shape), stride, strict=True)),
        np.zeros(shape, np.int64),
    )
    return flat // width, flat % width


def test_the_terms_of_the_document() -> None:
    """The document gives 192 for these 384 rows, as its strides omit the volume."""
    layout = TtnnLayout(
        (2, 3, 64, 128), "float32", memory_layout="block_sharded", memory_space="l1",
        shard_shape=(192, 48), tile=TILE,
    )

    assert layout.stride == (3 * 64 * 128, 64 * 128, 128, 1)
    assert layout.packed_shape == (384, 128)
    assert layout.shard_shape == (192, 48)
    assert layout.physical_shard_shape == (192, 64)
    assert layout.tile_shape == TILE
    assert layout.grid_shape == (2, 3)
    assert layout.memref_shape == (6, 2)


@pytest.mark.parametrize(
    ("shape", "rows", "columns"),
    [((1, 32, 10, 10), 1024, 32), ((2, 15, 10), 64, 32), ((64,), 32, 64), ((), 32, 32),
     ((53, 63), 64, 64)],
)
def test_tiles_pad_before_dimensions_are_collapsed(
    shape: tuple[int, ...], rows: int, columns: int
) -> None:
    layout = TtnnLayout(shape, "float32", tile=TILE)

    assert layout.packed_shape == (rows, columns)
    assert layout.nbytes == rows * columns * 4
    assert TtnnLayout(shape, "float32").nbytes == layout.num_elements * 4


@pytest.mark.parametrize(
    ("layout", "grid", "memref"),
    [
        ("height_sharded", (8, 1), (2, 16)),
        ("width_sharded", (1, 8), (16, 2)),
        ("block_sharded", (8, 8), (2, 2)),
    ],
)
@pytest.mark.parametrize("tile", [None, TILE], ids=["rows", "tiles"])
def test_sharded(
    layout: str, grid: tuple[int, int], memref: tuple[int, int], tile: Any
) -> None:
    result = TtnnLayout(
        (512, 512), "float32", memory_layout=layout, memory_space="l1", grid=grid, tile=tile
    )
    scale = 1 if tile else 32

    assert result.grid_shape == grid
    assert result.memref_shape == (memref[0] * scale, memref[1] * scale)
    assert result.shard_nbytes == 512 * 512 * 4 // (grid[0] * grid[1])


def test_interleaved_over_the_cores() -> None:
    """512x512 interleaved on 8x8 cores gives each core 1x4 tiles, i.e. 32x128 elements."""
    tiles = TtnnLayout((512, 512), "float32", memory_space="l1", banks=64, tile=TILE)
    rows = TtnnLayout((512, 512), "float32", memory_space="l1", banks=64)

    assert tiles.memref_shape == (1, 4)
    assert rows.memref_shape == (1, 4096)
    assert tiles.shard_nbytes == rows.shard_nbytes == 32 * 128 * 4
    assert tiles.place((33, 70)) == (18, 0, 1, 6)  # tile 1 * 16 + 2
    assert rows.place((130, 70)) == (2, 2, 70)


def test_one_bank_has_the_whole_tensor() -> None:
    for space in ("system", "dram"):
        layout = TtnnLayout((2, 3, 64, 128), "float32", memory_space=space, tile=TILE)
        assert layout.memref_shape == (12, 4)
        assert layout.grid_shape == (1,)


@st.composite
def packed(draw: st.DrawFn) -> TtnnLayout:
    """Draw layouts of any placement, with padding between rows of each dimension."""
    shape = tuple(draw(st.lists(st.integers(1, 7), min_size=0, max_size=4)))
    tile = draw(st.sampled_from([None, (4, 16), (16, 16)]))
    stride: Any = None
    if len(shape) > 1 and draw(st.booleans()):
        strides = [1, shape[-1] + draw(st.integers(0, 3))]
        for extent in reversed(shape[:-1]):
            strides.append(strides[-1] * (extent + draw(st.integers(0, 2))))
        stride = tuple(reversed(strides))
    kind = draw(st.sampled_from(["interleaved", "height_sharded", "width_sharded", "block_sharded"]))
    options: dict[str, Any] = {"tile": tile, "stride": stride, "memory_layout": kind}
    if kind == "interleaved":
        options["banks"] = draw(st.integers(1, 5))
    else:
        down, across = draw(st.tuples(st.integers(1, 4), st.integers(1, 4)))
        options["memory_space"] = "l1"
        options["grid"] = (
            1 if kind == "width_sharded" else down, 1 if kind == "height_sharded" else across
        )
    return TtnnLayout(shape, "float32", **options)


@given(packed())
def test_every_element_is_where_strides_and_shards_say(layout: TtnnLayout) -> None:
    rows, columns = layout.packed_shape
    at = rows_and_columns(layout.shape, layout.stride, columns)
    tile = layout.tile_shape or (1, 1)
    if layout.is_sharded:
        cores = [v // s for v, s in zip(at, layout.shard_shape, strict=True)]
        inside = [v % s for v, s in zip(at, layout.shard_shape, strict=True)]
        memref = [-(-s // t) for s, t in zip(layout.shard_shape, tile, strict=True)]
        place = [*cores, *(v // t for v, t in zip(inside, tile, strict=True))]
        shape = [*layout.grid_shape, *memref]
        counts = zip((rows, columns), layout.shard_shape, strict=True)
        assert layout.grid_shape == tuple(-(-n // s) for n, s in counts)
    else:
        inside = at
        across = -(-columns // tile[1])
        page = at[0] if layout.tile_shape is None else (
            at[0] // tile[0] * across + at[1] // tile[1])
        count = rows if layout.tile_shape is None else -(-rows // tile[0]) * across
        place = [page % layout.banks, page // layout.banks]
        shape = [layout.banks, -(-count // layout.banks)]
        if layout.tile_shape is None:
            place, shape = [*place, at[1]], [*shape, columns]
    if layout.tile_shape is not None:
        place += [v % t for v, t in zip(inside, tile, strict=True)]
        shape += tile

    assert layout.physical_shape == tuple(shape)
    assert np.array_equal(layout.offsets(), np.ravel_multi_index(place, shape))


@given(packed())
def test_equivalent_shard_layouts_have_equal_addresses(layout: TtnnLayout) -> None:
    try:
        shard = layout.to_shard()
    except LayoutError:
        return

    assert shard.memref_shape == layout.memref_shape
    assert np.array_equal(shard.offsets(), layout.offsets())
    sizes = zip(shard.collapsed_shape, shard.scalar_shard_shape, strict=True)
    if tuple(-(-n // s) for n, s in sizes) == shard.grid:
        assert np.array_equal(TtnnLayout.from_shard(shard).offsets(), layout.offsets())


def test_whole_tiles_convert_in_both_directions() -> None:
    for grid, kind in (((2, 4), "block_sharded"), ((12, 1), "height_sharded"),
                       ((1, 4), "width_sharded")):
        layout = TtnnLayout(
            (2, 3, 64, 128), "float32", memory_layout=kind, memory_space="l1", grid=grid,
            tile=TILE, element="bfp_bf8",
        )
        assert layout.to_shard() == ShardLayout(
            (2, 3, 64, 128), "float32", grid=grid, tile=TILE, element="bfp_bf8")
        assert TtnnLayout.from_shard(layout.to_shard()) == layout


@pytest.mark.parametrize(
    ("shard", "stride", "kind"),
    [
        (ShardLayout((53, 63), "float32", grid=(3, 2)), (63, 1), "block_sharded"),
        (ShardLayout((53, 63), "float32", grid=(3, 1)), (63, 1), "height_sharded"),
        (ShardLayout((2, 8, 32), "float32", lambda a, b, c: [a * 32 + b, c], grid=(1, 2)),
         (1024, 32, 1), "width_sharded"),
        (ShardLayout((64,), "float32", grid=(1, 2)), (1,), "width_sharded"),
        (ShardLayout((), "float32", grid=(1, 1)), (), "interleaved"),
        (ShardLayout((1, 8, 1, 4), "float32", grid=(2, 1)), (32, 4, 4, 1), "height_sharded"),
    ],
)
def test_from_shards(shard: ShardLayout, stride: tuple[int, ...], kind: str) -> None:
    layout = TtnnLayout.from_shard(shard)

    assert (layout.stride, layout.memory_layout) == (stride, kind)
    assert np.array_equal(layout.offsets(), shard.offsets())
    assert layout.to_shard() == shard


@pytest.mark.parametrize(
    ("grid", "kind", "ranges"),
    [
        ((11, 1), "height_sharded", [((0, 0), (7, 0)), ((0, 1), (2, 1))]),
        ((1, 64), "width_sharded", [((0, 0), (7, 7))]),
        ((5, 1), "height_sharded", [((0, 0), (4, 0))]),
        ((3, 5), "block_sharded", [((0, 0), (4, 2))]),
    ],
)
def test_cores(grid: tuple[int, int], kind: str, ranges: object) -> None:
    layout = TtnnLayout(
        (grid[0] * 32, grid[1] * 32), "float32", memory_layout=kind, memory_space="l1", grid=grid
    )

    assert layout.core_ranges((8, 8)) == ranges


def test_layouts_that_differ_are_not_equal() -> None:
    options: dict[str, Any] = {"memory_space": "l1", "grid": (2, 1)}
    height = TtnnLayout((64, 64), "float32", memory_layout="height_sharded", **options)

    assert height == TtnnLayout((64, 64), "float32", memory_layout="height_sharded", **options)
    assert height != TtnnLayout((64, 64), "float32", memory_layout="block_sharded", **options)
    assert repr(height) == height.describe()


def make(*args: Any, **options: Any) -> Callable[[], object]:
    return lambda: TtnnLayout(*args, **options)


SHARDED: dict[str, Any] = {"memory_layout": "block_sharded", "memory_space": "l1"}

REFUSED = {
    "stride-count": (
        make((8, 8), "float32", stride=(1,)),
        Diagnostic("shards", stride=(1,), shape=[8, 8]),
    ),
    "stride-last": (
        make((8, 8), "float32", stride=(16, 2)),
        Diagnostic("shards", stride=(16, 2), shape=[8, 8]),
    ),
    "stride-overlap": (
        make((2, 8, 8), "float32", stride=(32, 8, 1)),
        Diagnostic(
            "shards", outer=(64, 32, 8, 1), shape=[2, 8, 8], actual_stride=32, address_count=64, k=1, width=8,
        ),
    ),
    "stride-rows": (
        make((2, 8, 8), "float32", stride=(70, 8, 1)),
        Diagnostic(
            "shards", outer=(140, 70, 8, 1), shape=[2, 8, 8], actual_stride=70, address_count=64, k=1, width=8,
        ),
    ),
    "empty": (
        make((8, 0), "float32"),
        Diagnostic("shards", shape=[8, 0]),
    ),
    "layout": (
        make((8, 8), "float32", memory_layout="single_bank"),
        Diagnostic(
            "shards", memory_layout="single_bank",
            layouts="interleaved, height_sharded, width_sharded, block_sharded",
        ),
    ),
    "space": (
        make((8, 8), "float32", memory_space="mmio"),
        Diagnostic("shards", memory_space="mmio", spaces="system, dram, l1"),
    ),
    "dram-blocks": (
        make((8, 8), "float32", memory_layout="block_sharded", grid=(2, 2)),
        Diagnostic("shards", memory_layout="block_sharded", memory_space="dram"),
    ),
    "system-banks": (
        make((8, 8), "float32", memory_space="system", banks=2),
        Diagnostic("shards", banks=2, memory_layout="interleaved", memory_space="system"),
    ),
    "no-shard": (
        make((8, 8), "float32", **SHARDED),
        Diagnostic("shards", memory_layout="block_sharded", shard_shape=None, grid=None),
    ),
    "interleaved-shard": (
        make((8, 8), "float32", grid=(2, 2)),
        Diagnostic("shards", memory_layout="interleaved", shard_shape=None, grid=(2, 2)),
    ),
    "height-cuts-columns": (
        make((64, 64), "float32", memory_layout="height_sharded", memory_space="l1", grid=(2, 2)),
        Diagnostic(
            "shards", memory_layout="height_sharded", physical="64x64", rows="32x32",
            dimension="rows",
        ),
    ),
    "bad-grid": (
        make((64, 64), "float32", grid=(2, 2, 2), **SHARDED),
        Diagnostic("invalid-type", where="ttnn layout: the grid", values=(2, 2, 2), many="2 "),
    ),
    "bad-shard": (
        make((64, 64), "float32", shard_shape=(0, 2), **SHARDED),
        Diagnostic("invalid-type", where="ttnn layout: the shard shape", values=(0, 2), many="2 "),
    ),
    "banks-as-shards": (
        lambda: TtnnLayout((512, 512), "float32", banks=12, tile=TILE).to_shard(),
        Diagnostic("shards", banks=12),
    ),
    "moved-shards": (
        lambda: TtnnLayout((2, 15, 10), "float32", grid=(2, 1), tile=TILE, **SHARDED).to_shard(),
        Diagnostic(
            "shards", shard_shape="32x32", packed_shape="64x32", collapsed_shape="47x10",
            scalar_shard_shape="24x10",
        ),
    ),
    "batch-on-the-grid": (
        lambda: TtnnLayout.from_shard(
            ShardLayout((2, 8, 8), "float32", collapse_intervals=[], grid=(2, 1, 1))),
        Diagnostic("shards", grid="2x1x1", oob_val="undef"),
    ),
    "aligned-rows": (
        lambda: TtnnLayout.from_shard(ShardLayout((53, 61), "float32", grid=(3, 2), alignment_bytes=32)),
        Diagnostic("shards", memref_shape="18x32", alignment_bytes=32),
    ),
    "several-batches-on-a-device": (
        lambda: TtnnLayout.mesh_from_shard(
            ShardLayout((4, 8, 8), "float32", collapse_intervals=[], grid=(2, 1, 1))),
        Diagnostic("shards", k=0, grid="2x1x1", expr="d0", shape="4x8x8"),
    ),
    "batch-in-the-rows": (
        lambda: TtnnLayout.mesh_from_shard(
            ShardLayout((2, 8, 8), "float32", lambda d0, d1, d2: [d0, d0 * 8 + d1, d2], grid=(2, 1, 1))),
        Diagnostic("shards", k=0, grid="2x1x1", expr="d0", shape="2x8x8"),
    ),
    "transposed": (
        lambda: TtnnLayout.from_shard(ShardLayout((8, 8), "float32", lambda i, j: [j, i])),
        Diagnostic("shards", map="(d0, d1) -> (d1, d0)"),
    ),
    "idle-cores": (
        lambda: TtnnLayout.from_shard(ShardLayout((9, 8), "float32", grid=(4, 1))),
        Diagnostic(
            "shards", collapsed_shape="9x8", shard_shape="3x8", grid="3x1", layout_grid="4x1",
        ),
    ),
    "too-many-cores": (
        lambda: TtnnLayout((64, 64), "float32", grid=(4, 4), **SHARDED).core_ranges((8, 2)),
        Diagnostic("shards", subject="4x4 shards", rows=8, columns=2),
    ),
    "pages-on-cores": (
        lambda: TtnnLayout((64, 64), "float32").core_ranges((8, 8)),
        Diagnostic("shards", subject="interleaved pages", rows=8, columns=8),
    ),
}


@pytest.mark.parametrize(("call", "expected"), REFUSED.values(), ids=REFUSED)
def test_refusals(call: Callable[[], object], expected: Diagnostic) -> None:
    with pytest.raises(LayoutError) as caught:
        call()

    assert diagnostic(caught.value) == expected


@pytest.mark.exhaustive(keep=1)
@pytest.mark.parametrize(
    ("shape", "intervals", "grid", "tile"),
    [
        ((2, 3, 64, 128), [(1, -1)], (2, 2, 4), TILE), ((2, 8, 32), [(1, -1)], (2, 1, 2), None),
        ((2, 3, 4, 8, 32), [(2, -1)], (2, 3, 2, 2), None), ((2, 5, 7), [(1, -1)], (2, 2, 2), None),
        ((3, 40, 70), [], (3, 2, 1), TILE),
    ],
)
def test_the_batch_is_sliced_over_a_mesh(
    shape: tuple[int, ...], intervals: Any, grid: tuple[int, ...], tile: Any
) -> None:
    """Every element is on the device and at the address of its shard layout."""
    layout = ShardLayout(shape, "float32", collapse_intervals=intervals, grid=grid, tile=tile)
    mesh = TtnnLayout.mesh_from_shard(layout)
    count = len(grid) - 2

    assert mesh.shape == grid[:count]
    assert mesh.layout.memref_shape == layout.memref_shape[count:]
    for index in list(np.ndindex(*shape))[:: max(int(np.prod(shape)) // 300, 1)]:
        place = layout.place(index)
        assert mesh.device(index) == place[:count]
        assert mesh.place(index) == (*place[count : count + 2], *place[len(grid) + count :])
