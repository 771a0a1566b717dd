"""Validate shard layout arguments."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from tecomp.errors import LayoutError
from tecomp.ir.nodes.argument_checks import as_int, check_kind, is_one_of
from tecomp.ir.nodes.dtype import DType
from tecomp.ir.nodes.stmt import IndexMapNode
from tecomp.layout.formats.arguments import positive_numbers
from tecomp.layout.formats.format import Format
from tecomp.layout.formats.registry import BFP_TILES, format_named
from tecomp.layout.sharding.shard_maps import Intervals, ShardSplit, aligned_map, collapse_map
from tecomp.layout.sharding.tt_notation import MEMORY_SPACES, OOB_VALUES
from tecomp.layout.sharding.virtual_grid import GridMap
from tecomp.poly.maps.image_extents import value_range
from tecomp.poly.maps.index_map import IndexMap

ALLOWED_TILES = ((4, 16), (16, 16), (32, 16), (4, 32), (16, 32), (32, 32))
"""Tile shapes of Tenstorrent hardware."""

Linear = Callable[..., Sequence[Any]] | IndexMapNode


def format_grid(extents: Sequence[int]) -> str:
    """Format extents as in `2x4`."""
    return "x".join(map(str, extents))


def aligned_axes(
    shape: tuple[int, ...], linear: Linear | None, intervals: Intervals | None,
    alignments: Sequence[int],
) -> tuple[IndexMap, tuple[int, ...]]:
    """Return the map that merges dimensions with padding, and the positions of each axis.

    Raises:
        LayoutError: If a map is given as well.
    """
    if linear is not None:
        raise LayoutError(
            "shard layout: linear= and dim_alignments= both determine the addresses of elements; "
            "pass collapse_intervals with dim_alignments",
            kind="shards",
        )
    return aligned_map(shape, intervals, alignments)


def check_even(positions: tuple[int, ...], cut: ShardSplit) -> None:
    """Raise if tiles or cores do not divide the positions of an axis.

    Raises:
        LayoutError: If tiles or cores do not divide the positions of an axis.
    """
    ones = (1,) * len(positions)
    tile = ones if cut.tile is None else (*ones[2:], *cut.tile)
    for axis, (extent, unit, cores) in enumerate(zip(positions, tile, cut.grid, strict=True)):
        if extent % (unit * cores):
            raise LayoutError(
                "shard layout: axis {axis} has {extent} positions, which is not divisible among "
                "{cores} cores with tiles of {unit}; align a dimension to {detail}",
                kind="shards", axis=axis, extent=extent, cores=cores, unit=unit,
                detail=unit * cores,
            )


def collapse_onto(
    shape: tuple[int, ...],
    linear: Linear | None,
    intervals: Intervals | None,
    grid: Sequence[int] | None,
    tile: tuple[int, int] | None,
) -> tuple[IndexMap, tuple[int, ...]]:
    """Return the map from tensor indices to the grid axes, and the grid.

    Raises:
        LayoutError: If map and grid differ in rank, or tiles need more axes.
    """
    cores = None if grid is None else positive_numbers(grid, "shard layout: the grid")
    rank = len(cores) if cores is not None else 2 if tile is not None else None
    index_map = _collapse_dims(shape, linear, intervals, rank)
    count = len(index_map.final_indices)
    if cores is not None and len(cores) != count:
        raise LayoutError(
            "shard layout: the grid <{cores}> has {core_count} axes, but {index_map} has {count} "
            "results; pass one core count per result",
            kind="shards", cores=format_grid(cores), core_count=len(cores), index_map=index_map,
            count=count,
        )
    if index_map.axis_separators:
        raise LayoutError(
            "shard layout: {index_map} contains an axis separator, but every result is already a "
            "separate axis of the grid; remove it",
            kind="shards", index_map=index_map,
        )
    if tile is not None and count < 2:
        raise LayoutError(
            "shard layout: a tile of {tile} needs two axes, but {index_map} has {count}; prepend a "
            "constant 0 to the map, and a 1 to the grid",
            kind="shards", tile=format_grid(tile), index_map=index_map, count=count,
        )
    return index_map, (1,) * count if cores is None else cores


def _collapse_dims(
    shape: tuple[int, ...], linear: Linear | None, intervals: Intervals | None, rank: int | None
) -> IndexMap:
    """Return the map that collapses the dimensions, given explicitly or by intervals."""
    if linear is None:
        return collapse_map(shape, intervals, rank)
    if intervals is not None:
        raise LayoutError(
            "shard layout: linear= and collapse_intervals= both specify how dimensions are "
            "collapsed; pass only one of them",
            kind="shards",
        )
    if isinstance(linear, IndexMapNode):
        return IndexMap.lift(linear)
    return IndexMap.from_func(linear, ndim=len(shape))


def ranges_of(
    index_map: IndexMap, shape: tuple[int, ...], dtype: DType
) -> list[tuple[int, int]]:
    """Return the minimum and maximum value of each result.

    Raises:
        LayoutError: If the tensor has no elements, or the map is not injective.
    """
    if 0 in shape:
        raise LayoutError(
            "shard layout: {dtype}{shape} has an axis of extent 0, so its shards would be empty; "
            "all extents must be 1 or more",
            kind="shards", dtype=dtype, shape=list(shape),
        )
    if (collision := index_map.collision(shape)) is not None:
        first, second = collision
        raise LayoutError(
            "shard layout: {index_map} is not injective on {dtype}{shape}: elements {first} and "
            "{second} map to the same address; make each stride at least the extent of the inner "
            "part",
            kind="not-injective", first=first, second=second, dtype=dtype, shape=list(shape),
            index_map=index_map,
        )
    axes = index_map.initial_indices
    return [value_range(expr, axes, shape) for expr in index_map.final_indices]


def check_tiles(allowed: Sequence[Sequence[int]]) -> tuple[tuple[int, ...], ...]:
    """Validate the tile shapes of a target.

    Raises:
        LayoutError: If a tile is not a pair of positive integers.
    """
    where = "shard layout: allowed_tiles"
    check_kind(allowed, Iterable, where, "pass rows and columns of each, as in [(32, 32)]",
               LayoutError)
    return tuple(positive_numbers(tile, f"{where}: a tile", 2) for tile in allowed)


def check_tile(
    tile: Sequence[int] | None, allowed: tuple[tuple[int, ...], ...]
) -> tuple[int, int] | None:
    """Validate a tile shape against the supported ones.

    Raises:
        LayoutError: If the tile is not among the supported ones.
    """
    if tile is None:
        return None
    found = positive_numbers(tile, "shard layout: the tile")
    if found not in allowed:
        raise LayoutError(
            "shard layout: unsupported tile {found}; supported tiles: {allowed} (override with "
            "allowed_tiles=)",
            kind="shards", found=format_grid(found), allowed=", ".join(map(format_grid, allowed)),
        )
    return found[0], found[1]


def check_face_shape(
    face: Sequence[int] | None, tile: tuple[int, int] | None
) -> tuple[int, int] | None:
    """Validate a face shape, which must divide the tile.

    Raises:
        LayoutError: If the face does not divide the tile, or there is no tile.
    """
    if face is None:
        return None
    found = positive_numbers(face, "shard layout: the face")
    if tile is None or len(found) != 2 or any(t % f for t, f in zip(tile, found, strict=True)):
        tile_text = "no tile" if tile is None else f"a tile of {format_grid(tile)}"
        raise LayoutError(
            "shard layout: invalid face {found} for {subject}; faces must divide the rows and the "
            "columns of a tile, for example 16x16 for 32x32",
            kind="shards", found=format_grid(found), subject=tile_text,
        )
    return found[0], found[1]


def check_storage(element: str, tile: tuple[int, int] | None) -> Format:
    """Return the storage format of an element, which must be compatible with the tile.

    Raises:
        LayoutError: If the format is unknown, or needs tiles of 32x32 and the tile differs.
    """
    storage = format_named(element)
    if storage.name in BFP_TILES and tile != (32, 32):
        tile_text = "elements one by one" if tile is None else f"tiles of {format_grid(tile)}"
        raise LayoutError(
            "shard layout: {storage} requires tiles of 32x32, got {subject}; pass tile=(32, 32)",
            kind="shards", storage=storage.name, subject=tile_text,
        )
    return storage


def row_alignment_elements(
    alignment_bytes: int | None, storage: Format, tile: tuple[int, int] | None
) -> int:
    """Return the number of elements to a multiple of which the rows of a shard are padded.

    Rows of tiles need no padding, because the size of a tile is a multiple of the alignment that
    on-chip networks require.

    Raises:
        LayoutError: If `alignment_bytes` is not a positive integer, or does not fit the elements.
    """
    if alignment_bytes is None:
        return 1
    size = as_int(alignment_bytes)
    if size is None or size < 1:
        raise LayoutError(
            "shard layout: alignment_bytes must be a positive number of bytes, such as 16, got "
            "{alignment_bytes!r}",
            kind="shards", alignment_bytes=alignment_bytes,
        )
    if tile is not None:
        return 1
    bits = storage.stored.bits * storage.units // storage.elements
    if size * 8 % bits and bits % (size * 8):
        raise LayoutError(
            "shard layout: alignment_bytes={size} is not a multiple of the size of {storage}, "
            "{bits} bits; pass a multiple",
            kind="shards", size=size, storage=storage.name, bits=bits,
        )
    return max(size * 8 // bits, 1)


def pad_value_of(oob_val: str, dtype: DType) -> float | None:
    """Return the padding value for an `oob_val` keyword; None for undef.

    Raises:
        LayoutError: If the keyword is unknown, or the dtype lacks the value.
    """
    if not is_one_of(oob_val, OOB_VALUES):
        raise LayoutError(
            "shard layout: oob_val={oob_val!r} is not a valid padding value; expected one of "
            "{oob_values}",
            kind="shards", oob_val=oob_val, oob_values=", ".join(OOB_VALUES),
        )
    if oob_val in ("inf", "neginf") and not dtype.is_float:
        raise LayoutError(
            "shard layout: oob_val='{oob_val}' is not representable in {dtype}; use zero, one or "
            "undef, or a float dtype",
            kind="shards", oob_val=oob_val, dtype=dtype,
        )
    return OOB_VALUES[oob_val]


def check_memory_space(name: str) -> str:
    """Validate the name of a memory space.

    Raises:
        LayoutError: If there is no such memory space.
    """
    if not is_one_of(name, MEMORY_SPACES):
        raise LayoutError(
            "shard layout: unknown memory space {name!r}; expected one of {memory_spaces}",
            kind="shards", name=name, memory_spaces=", ".join(MEMORY_SPACES),
        )
    return name


def check_grid_map(device: GridMap | None, grid: tuple[int, ...]) -> GridMap | None:
    """Validate a grid map for a grid.

    Raises:
        LayoutError: If `device` is not a grid map, or is a map of another grid.
    """
    check_kind(
        device, GridMap | None, "shard layout: the device",
        "pass a GridMap from this grid to the cores of the machine", LayoutError,
    )
    if device is not None and device.shape != grid:
        raise LayoutError(
            "shard layout: device maps a grid of {shape}, but the layout has the grid {grid}; pass "
            "a map for this grid",
            kind="shards", shape=list(device.shape), grid=list(grid),
        )
    return device


SHARDED = ("height_sharded", "width_sharded", "block_sharded")
_LAYOUTS = ("interleaved", *SHARDED)
_SPACES = ("system", "dram", "l1")


def check_placement(
    memory_layout: str,
    memory_space: str,
    banks: int,
    shard_shape: Sequence[int] | None,
    grid: Sequence[int] | None,
) -> None:
    """Check the names of the memory layout and the memory space, and their combination.

    Raises:
        LayoutError: If a name is unknown, or the combination of arguments is unsupported.
    """
    if not is_one_of(memory_layout, _LAYOUTS):
        raise LayoutError(
            "ttnn layout: unknown memory layout {memory_layout!r}; expected one of {layouts}",
            kind="shards", memory_layout=memory_layout, layouts=", ".join(_LAYOUTS),
        )
    if not is_one_of(memory_space, _SPACES):
        raise LayoutError(
            "ttnn layout: unknown buffer type {memory_space!r}; expected one of {spaces}",
            kind="shards", memory_space=memory_space, spaces=", ".join(_SPACES),
        )
    sharded = memory_layout in SHARDED
    if (sharded and memory_space == "system") or (
        memory_layout == "block_sharded" and memory_space == "dram"
    ):
        raise LayoutError(
            "ttnn layout: {memory_layout} is not supported in {memory_space}, which has no cores "
            "to hold blocks; use l1, or interleaved",
            kind="shards", memory_layout=memory_layout, memory_space=memory_space,
        )
    if isinstance(banks, bool) or not isinstance(banks, int) or banks < 1 or (
        banks > 1 and (sharded or memory_space == "system")
    ):
        raise LayoutError(
            "ttnn layout: banks={banks!r} is not valid for {memory_layout} in {memory_space}; pass "
            "banks, 1 or more, only for interleaved layouts in dram or l1",
            kind="shards", banks=banks, memory_layout=memory_layout, memory_space=memory_space,
        )
    if sum(argument is not None for argument in (shard_shape, grid)) != int(sharded):
        raise LayoutError(
            "ttnn layout: {memory_layout} with shard_shape={shard_shape!r} and grid={grid!r} is "
            "not valid; pass exactly one of them for a sharded layout, and neither for an "
            "interleaved one",
            kind="shards", memory_layout=memory_layout, shard_shape=shard_shape, grid=grid,
        )
