"""Virtual grids: the maps of tt-mlir's device attribute, folded grids and errors."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tecomp import GridMap, LayoutError, ShardLayout
from tests.messages import Diagnostic, diagnostic

# Name: virtual grid, map to (chip, y, x), chips, and whether `GridMap.mesh` returns the same map.
MAPS: dict[str, tuple[tuple[int, ...], Callable[..., Any], int, bool]] = {
    "single": ((8, 8), lambda a, b: (0, a, b), 1, True),
    "batch-by-2": ((2, 8, 8), lambda a, b, c: (a, b, c), 2, True),
    "batch-by-4": ((4, 8, 8), lambda a, b, c: (a, b, c), 4, True),
    "side-by-side": ((8, 16), lambda a, b: (b // 8, a, b % 8), 2, True),
    "stacked": ((16, 8), lambda a, b: (a // 8, a % 8, b), 2, True),
    "mesh-2x4": ((16, 32), lambda a, b: (b // 8 + a // 8 * 4, a % 8, b % 8), 8, True),
    "mesh-4x2": ((32, 16), lambda a, b: (b // 8 + a // 8 * 2, a % 8, b % 8), 8, True),
    "mesh-2x1x2": ((2, 8, 16), lambda a, b, c: (a * 2 + c // 8, b, c % 8), 4, True),
    "mesh-3x3x1": ((3, 24, 8), lambda a, b, c: (a * 3 + b // 8, b % 8, c), 9, True),
    "four-axes": ((3, 2, 8, 8), lambda a, b, c, d: (a * 2 + b, c, d), 6, True),
    "batch-on-one": ((2, 4, 8), lambda a, b, c: (0, a * 4 + b, c), 1, False),
    "pipeline-first": ((2, 8, 16), lambda a, b, c: (a * 2 + c // 8, b, c % 8), 4, True),
    "pipeline-second": ((16, 16), lambda a, b: (b // 8 + a // 8 * 2, a % 8, b % 8), 4, True),
    "transposed": ((8, 8), lambda a, b: (0, b, a), 1, False),
    "wide": ((1, 64), lambda a, b: (0, a * 8 + b // 8, b % 8), 1, False),
    "tall-transposed": ((64, 1), lambda a, b: (0, b * 8 + a // 8, a % 8), 1, False),
    "staircase": ((8, 8), lambda a, b: (0, a, (a + b) % 8), 1, False),
}


@pytest.mark.exhaustive(keep=6)
@pytest.mark.parametrize(("shape", "mapping", "chips", "is_mesh"), MAPS.values(), ids=MAPS)
def test_maps_of_devices_and_back(
    shape: tuple[int, ...], mapping: Callable[..., Any], chips: int, is_mesh: bool
) -> None:
    """All 17 device maps are bijective: no core is idle."""
    grid = GridMap.of(shape, mapping, (chips, 8, 8))
    back = grid.inverse

    assert grid.idle_count == 0
    seen = set()
    for virtual in itertools.product(*map(range, shape)):
        core = mapping(*virtual)
        assert grid.core(virtual) == core
        assert grid.virtual(core) == virtual
        assert [int(str(n)) for n in back.map_indices(core)] == list(virtual)
        seen.add(core)
    assert len(seen) == chips * 64
    assert (GridMap.mesh(shape, (8, 8)) == grid) is (is_mesh or grid == GridMap.mesh(shape, (8, 8)))
    if is_mesh:
        assert hash(GridMap.mesh(shape, (8, 8))) == hash(grid)


@pytest.mark.parametrize(
    ("shape", "rectangle"),
    [((1, 40), (5, 8)), ((48, 1), (6, 8)), ((1, 64), (8, 8)), ((1, 32, 1, 2), (8, 8)),
     ((3, 4), (3, 4)), ((1, 7), (1, 7))],
)
def test_folded_on_the_most_square_rectangle(
    shape: tuple[int, ...], rectangle: tuple[int, int]
) -> None:
    grid = GridMap.folded(shape, (8, 8))

    cores = [grid.core(virtual) for virtual in itertools.product(*map(range, shape))]
    assert cores == [(0, k // rectangle[1], k % rectangle[1]) for k in range(len(cores))]
    assert grid.idle_count == 64 - len(cores)
    assert grid.virtual((0, 7, 7)) == (None if len(cores) < 64 else tuple(n - 1 for n in shape))


def test_a_layout_on_the_device_counts_idle_cores_as_padding() -> None:
    device = GridMap.folded((1, 40), (8, 8))
    layout = ShardLayout((32, 1280), "float32", grid=(1, 40), device=device)
    moved = layout.on_device()

    assert (moved.grid_shape, moved.shard_shape) == ((1, 8, 8), (32, 32))
    for column in (0, 255, 256, 1279):
        core = column // 32
        assert moved.place((3, column)) == (0, core // 8, core % 8, 3, column % 32)
        assert moved.element(moved.place((3, column))) == (3, column)
        assert layout.physical_core((3, column)) == (0, core // 8, core % 8)
    assert moved.padding_count == 24 * 32 * 32


REFUSED = {
    "outside": (
        lambda: GridMap.of((1, 65), lambda y, x: [0, x // 8, x % 8], (1, 8, 8)),
        Diagnostic(
            "shards", brute_force=(0, 64), shape=[1, 65], core=(0, 8, 0), physical=[1, 8, 8],
            index_map="lambda y, x: [0, x // 8, x % 8]",
        ),
    ),
    "negative": (
        lambda: GridMap.of((8, 8), lambda y, x: [y, x - 1], (8, 8)),
        Diagnostic(
            "shards", brute_force=(0, 0), shape=[8, 8], core=(0, -1), physical=[8, 8],
            index_map="lambda y, x: [y, x - 1]",
        ),
    ),
    "collision": (
        lambda: GridMap.of((8, 16), lambda y, x: [y, x % 8], (8, 8)),
        Diagnostic(
            "not-injective", first=(0, 0), second=(0, 8), shape=[8, 16],
            index_map="lambda y, x: [y, x % 8]",
        ),
    ),
    "rank": (
        lambda: GridMap.of((8, 8), lambda y, x: [y, x], (1, 8, 8)),
        Diagnostic("shards", index_map="lambda y, x: [y, x]", found=2, physical=[1, 8, 8]),
    ),
    "no-rectangle": (
        lambda: GridMap.folded((1, 11), (8, 8)),
        Diagnostic("shards", count=11, rows=8, columns=8),
    ),
    "mesh-of-one-axis": (
        lambda: GridMap.mesh((64,), (8, 8)),
        Diagnostic("shards", shape=[64]),
    ),
    "core": (
        lambda: GridMap.mesh((8, 8), (8, 8)).core((8, 0)),
        Diagnostic("shards", index=(8, 0), shape=[8, 8]),
    ),
}


@pytest.mark.parametrize(("call", "expected"), REFUSED.values(), ids=REFUSED)
def test_refusals(call: Callable[[], object], expected: Diagnostic) -> None:
    with pytest.raises(LayoutError) as caught:
        call()

    assert diagnostic(caught.value) == expected


@pytest.mark.parametrize(
    ("shape", "options", "expected"),
    [
        # Expected grids of tt-mlir's tests for 8x8 cores.
        ((256, 256), {}, (8, 8)),
        ((2048, 32), {}, (64, 1)),
        ((32, 1280), {}, (1, 40)),
        ((1536, 32), {}, (48, 1)),
        ((1, 64, 64, 32), {"is_collapsed": False}, (1, 32, 2, 1)),
        # Expected grids from the comments on alignment in tt-mlir.
        ((4, 43, 7), {"is_aligned": True}, (8, 1)),
        ((9, 43, 7), {"is_aligned": True}, (24, 1)),
        # A prime number of tiles does not divide over a 2-D grid, so one core has all tiles.
        ((32 * 67, 32), {}, (1, 1)),
        ((7,), {}, (1, 1)),
        ((16, 16), {"tile": (1, 1)}, (8, 8)),
        ((31, 33, 447), {"is_collapsed": False, "is_aligned": True}, (1, 2, 16)),
    ],
)
def test_the_grid_for_a_tensor(
    shape: tuple[int, ...], options: dict[str, Any], expected: tuple[int, ...]
) -> None:
    found = GridMap.for_tensor(shape, (8, 8), **options)

    assert found.shape == expected
    assert found.physical == (1, 8, 8)


@pytest.mark.parametrize("seed", range(60))
def test_a_grid_for_a_tensor_divides_its_tiles(seed: int) -> None:
    random = np.random.default_rng(seed)
    shape = tuple(int(n) for n in random.integers(1, 700, random.integers(1, 4)))
    device = tuple(int(n) for n in random.integers(1, 12, 2))
    is_collapsed = bool(random.integers(2))

    found = GridMap.for_tensor(shape, device, is_collapsed=is_collapsed)

    *outer, rows, columns = (1, *shape)[-max(len(shape), 2):]
    tiles = [*outer, -(-rows // 32), -(-columns // 32)]
    if is_collapsed:
        tiles = [int(np.prod(tiles[:-1])), tiles[-1]]
    assert all(n % cores == 0 for n, cores in zip(tiles, found.shape, strict=True))
    blocks = [max(n for n in range(1, m + 1) if t % n == 0)
              for t, m in zip(tiles[-2:], device, strict=True)]
    assert 4 * np.prod(found.shape) > np.prod(device) or (
        np.prod(found.shape) >= np.prod(blocks))


@pytest.mark.parametrize(("shape", "mapping", "chips", "is_mesh"), MAPS.values(), ids=MAPS)
def test_maps_of_devices_have_a_text(
    shape: tuple[int, ...], mapping: Callable[..., Any], chips: int, is_mesh: bool
) -> None:
    """The printed form of a layout contains its device map and parses back."""
    device = GridMap.of(shape, mapping, (chips, 8, 8))
    extents = tuple(2 * n for n in shape)
    layout = ShardLayout(extents, "float32", collapse_intervals=[], grid=shape, device=device)
    repeated = ShardLayout.parse(str(layout))
    assert device.text() in str(layout)
    assert GridMap.parse(device.text()) == device
    assert (repeated, repeated.device) == (layout, device)
    for core in itertools.islice(np.ndindex(*shape), 0, None, 37):
        index = tuple(2 * n for n in core)
        assert repeated.physical_core(index) == layout.physical_core(index) == device.core(core)
    other = GridMap.of(shape, lambda *i: [0, *reversed(i)][-3:], (1, *shape[::-1])) if (
        len(shape) == 2) else device
    assert ShardLayout.parse(str(layout), device=other).device == other


@pytest.mark.parametrize(
    ("text", "expected", "place", "found"),
    [
        ("#tt.grid<1x4, (d0, d1) -> (0, 0, d1)>, <1x1x4>>", "'#tt.device'", 102,
         "found `#tt.grid<1x4, (d0, d...`"),
        ("#tt.device<#tt.grid<, (d0, d1) -> (0, 0, d1)>, <1x1x4>>", "a number", 122,
         "found `, (d0, d1) -> (0, 0,...`"),
        ("#tt.device<#tt.grid<1x4, (d0, d1) -> (0, 0, d2)>, <1x1x4>>",
         "one of the dimensions d0, d1", 146, "found `d2)>, <1x1x4>>>>`"),
        ("#tt.device<#tt.grid<1x4, (d0, d1) -> (0, 0, d1)>>", "','", 150, "found `>>>`"),
    ],
)
def test_texts_of_devices_that_are_wrong(text: str, expected: str, place: int, found: str) -> None:
    with pytest.raises(LayoutError) as caught:
        ShardLayout.parse(
            "tensor<8x8xf32, #tt.layout<(d0, d1) -> (d0, d1), undef, <1x4>, memref<8x2xf32, "
            f"#tt.memory_space<l1>>, {text}>>"
        )
    assert diagnostic(caught.value) == Diagnostic(
        "layout-text", caller="shard layout", expected=expected, position=place, line=1, column=place + 1,
        found=found,
    )


@pytest.mark.exhaustive(keep=1)
@pytest.mark.parametrize("device", [(8, 8), (10, 13), (3, 5)])
def test_grids_of_any_shape_are_placed_on_one_device(device: tuple[int, int]) -> None:
    """Grid cores map to distinct device cores, in row-major order where the grid is folded."""
    cores = device[0] * device[1]
    grids: list[tuple[int, ...]] = [(1, n) for n in range(1, cores + 1)]
    grids += [(n, 1) for n in range(1, cores + 1)] + [device, (1, *device)]
    for grid in grids:
        found = GridMap.on_device(grid, device)
        places = [found.core(core) for core in np.ndindex(*grid)]
        assert len(set(places)) == len(places)
        if len(grid) == 2 and grid[0] <= device[0] and grid[1] <= device[1]:
            assert places == [(0, *core) for core in np.ndindex(*grid)]
        else:
            width = max(x for _, _, x in places) + 1
            assert [y * width + x for _, y, x in places] == list(range(len(places)))
    with pytest.raises(LayoutError) as caught:
        GridMap.on_device((1, cores + 1), device)
    assert diagnostic(caught.value) == Diagnostic(
        "shards", shape=[1, cores + 1], size=cores + 1, device=list(device), device_cores=cores,
    )
