"""What a TTNN layout is made from, checked: strides, shards, where it may lie."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from tecomp.errors import LayoutError
from tecomp.ir.algebra.extents import ceil_div
from tecomp.ir.language.given import is_one_of
from tecomp.layout.placement.arguments import positive_numbers, whole_numbers
from tecomp.layout.shards.checks import by

SHARDED = ("height_sharded", "width_sharded", "block_sharded")
_LAYOUTS = ("interleaved", *SHARDED)
_SPACES = ("system", "dram", "l1")


def packing(
    shape: tuple[int, ...], tile: tuple[int, int] | None, stride: Sequence[int] | None
) -> tuple[tuple[int, ...], int, int]:
    """The stride of each dimension, the volume, and how wide a row is.

    Without strides they are those of an array whose last two dimensions are whole tiles.

    Raises:
        LayoutError: there is another number of strides, the last is not 1, or dimensions overlap.

    >>> packing((2, 15, 10), (32, 32), None)
    ((1024, 32, 1), 2048, 32)
    >>> packing((2, 3, 64, 128), None, (24576, 8192, 128, 1))
    ((24576, 8192, 128, 1), 49152, 128)
    """
    if 0 in shape:
        raise LayoutError(
            f"ttnn layout: {list(shape)} has an axis without elements; give each axis 1 or more",
            kind="shards",
        )
    rank = len(shape)
    if stride is None:
        padded = [1] * (2 - rank) + list(shape)
        if tile is not None:
            padded[-2:] = (ceil_div(n, t) * t for n, t in zip(padded[-2:], tile, strict=True))
        strides = [prod(padded[k + 1 :]) for k in range(len(padded))]
        return tuple(strides[len(padded) - rank :]), prod(padded), padded[-1]
    volume, given = _checked_strides(shape, stride)
    return given, volume, given[-2] if rank > 1 else volume


def _checked_strides(
    shape: tuple[int, ...], stride: Sequence[int]
) -> tuple[int, tuple[int, ...]]:
    rank = len(shape)
    stride = whole_numbers(stride, "ttnn layout: stride")
    whole = all(n > 0 for n in stride)
    if not whole or len(stride) not in (rank, rank + 1) or (rank and stride[-1] != 1):
        raise LayoutError(
            f"ttnn layout: stride {tuple(stride)} of {list(shape)}; give a positive number for "
            "each dimension, the last 1, and the volume in front if it is more",
            kind="shards",
        )
    strides = tuple(int(n) for n in stride[len(stride) - rank :])
    volume = int(stride[0]) if len(stride) > rank else prod((*shape[:1], *strides[:1]))
    outer = (volume, *strides)
    width = strides[-2] if rank > 1 else volume
    taken = 1
    for k in reversed(range(rank)):
        taken += (shape[k] - 1) * strides[k]
        if outer[k] < taken or outer[k] % width:
            raise LayoutError(
                f"ttnn layout: stride {outer} of {list(shape)}: {outer[k]} has no room for the "
                f"{taken} places from dimension {k} on, or is no whole rows of {width}; give the "
                "strides of an array, with padding between its rows if need be",
                kind="shards",
            )
    return volume, strides


def check_placement(
    memory_layout: str,
    memory_space: str,
    banks: int,
    shard_shape: Sequence[int] | None,
    grid: Sequence[int] | None,
) -> None:
    """Refuse words that are none, and what has no place in a memory.

    Raises:
        LayoutError: for each of them.
    """
    if not is_one_of(memory_layout, _LAYOUTS):
        raise LayoutError(
            f"ttnn layout: {memory_layout!r} is no memory layout; it is one of "
            f"{', '.join(_LAYOUTS)}",
            kind="shards",
        )
    if not is_one_of(memory_space, _SPACES):
        raise LayoutError(
            f"ttnn layout: {memory_space!r} is no buffer type; it is one of {', '.join(_SPACES)}",
            kind="shards",
        )
    sharded = memory_layout in SHARDED
    if (sharded and memory_space == "system") or (
        memory_layout == "block_sharded" and memory_space == "dram"
    ):
        raise LayoutError(
            f"ttnn layout: {memory_layout} in {memory_space}, which has no cores that blocks "
            "could lie on; use l1, or interleaved",
            kind="shards",
        )
    if isinstance(banks, bool) or not isinstance(banks, int) or banks < 1 or (
        banks > 1 and (sharded or memory_space == "system")
    ):
        raise LayoutError(
            f"ttnn layout: banks={banks!r} with {memory_layout} in {memory_space}; pages go round "
            "banks, 1 or more, if they are interleaved over dram or l1",
            kind="shards",
        )
    if sum(given is not None for given in (shard_shape, grid)) != int(sharded):
        raise LayoutError(
            f"ttnn layout: {memory_layout} with shard_shape={shard_shape} and grid={grid}; give "
            "one of them if it is sharded, and none if it is interleaved",
            kind="shards",
        )


def shard_of(
    memory_layout: str,
    physical: tuple[int, int],
    shard_shape: Sequence[int] | None,
    grid: Sequence[int] | None,
) -> tuple[int, int]:
    """Rows and columns of a shard.

    Raises:
        LayoutError: they are none, or cut what the layout leaves whole.
    """
    given = shard_shape if shard_shape is not None else grid
    if given is None:
        return physical
    what = "grid" if shard_shape is None else "shard shape"
    rows, columns = positive_numbers(given, f"ttnn layout: the {what}", 2)
    if shard_shape is None:
        rows, columns = ceil_div(physical[0], rows), ceil_div(physical[1], columns)
    if (memory_layout == "height_sharded" and columns < physical[1]) or (
        memory_layout == "width_sharded" and rows < physical[0]
    ):
        whole = "rows" if memory_layout == "height_sharded" else "columns"
        raise LayoutError(
            f"ttnn layout: {memory_layout} cuts {by(physical)} into {by((rows, columns))}, but it "
            f"leaves {whole} whole; use block_sharded",
            kind="shards",
        )
    return rows, columns
