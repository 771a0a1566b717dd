"""The `ShardLayout` class."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from tecomp.errors import CapacityError, LayoutError
from tecomp.ir.nodes.argument_checks import check_kind
from tecomp.ir.nodes.dtype import DType
from tecomp.ir.nodes.expr import Binary, BinOp, Expr, Var, index_value
from tecomp.layout.core.layout import Layout
from tecomp.layout.core.target_limits import check_room, check_target, element_of, grid_of, tile_of
from tecomp.layout.formats.arguments import (
    check_bits,
    check_index_in_bounds,
    check_shape,
    positive_numbers,
)
from tecomp.layout.formats.stored_tensor import Index
from tecomp.layout.sharding.checks import (
    ALLOWED_TILES,
    Linear,
    aligned_axes,
    check_even,
    check_face_shape,
    check_grid_map,
    check_memory_space,
    check_storage,
    check_tile,
    check_tiles,
    collapse_onto,
    format_grid,
    pad_value_of,
    ranges_of,
    row_alignment_elements,
)
from tecomp.layout.sharding.shard_maps import (
    CorePadding,
    Intervals,
    ShardSplit,
    core_padding,
    count_on_cores,
    keep,
    merged_dims,
)
from tecomp.layout.sharding.tt_notation import (
    MetalNotation,
    ShardNotation,
    metal_text,
    parse_metal,
    parse_shard,
    shard_text,
)
from tecomp.layout.sharding.virtual_grid import GridMap
from tecomp.machine.descriptor import Target
from tecomp.poly.maps.index_map import IndexMap


@dataclass(frozen=True, eq=False, init=False, repr=False)
class ShardLayout(Layout):
    """Tensor that is collapsed to grid axes, split into one shard per core, and optionally tiled.

    The grid axes are the first physical axes, followed by the shard axes. With tiles, the last two
    shard axes count tiles, and the rows and columns of a tile follow (with faces: of the face in
    the tile, then of the element in the face).

    Attributes:
        linear: Map from tensor indices to the collapsed axes, one per grid axis.
        grid: Number of cores along each axis of the virtual grid, which may have any rank.
        oob_val: Padding value: undef, zero, one, inf or neginf.
        tile: Rows and columns of a tile, or None.
        face: Rows and columns of a face of a tile, or None.
        device: Map from the virtual grid to physical cores, if known.
        collapsed_shape: Extents of the collapsed axes.
        alignment_bytes: Byte multiple to which rows of untiled shards are padded, or None.
        dim_alignments: Multiples to which the dimensions are padded when they are merged, or None.

    Source:
        Tensor Layout (tt-mlir).

    >>> shards = ShardLayout((2, 3, 64, 128), "float32", grid=(2, 4), tile=(32, 32))
    >>> shards.linear, shards.collapsed_shape, shards.grid, shards.tile, shards.face
    (lambda d0, d1, d2, d3: [d0 * 192 + d1 * 64 + d2, d3], (384, 128), (2, 4), (32, 32), None)
    >>> shards.scalar_shard_shape, shards.padded_shard_shape, shards.memref_shape
    ((192, 32), (192, 32), (6, 1))
    >>> shards.shard_bytes, shards.memory_space, shards.oob_val, shards.device
    (24576, 'l1', 'undef', None)
    >>> ShardLayout((53, 61), "float32", grid=(3, 2), alignment_bytes=16).memref_shape
    (18, 32)
    >>> shards.alignment_bytes is None, shards.dim_alignments is None
    (True, True)
    >>> shards.elements_per_core.shape, int(shards.padding_per_core.sum())
    ((2, 4), 0)
    """

    linear: IndexMap = field(init=False)
    grid: tuple[int, ...] = field(init=False)
    oob_val: str = field(init=False)
    tile: tuple[int, int] | None = field(init=False)
    face: tuple[int, int] | None = field(init=False)
    device: GridMap | None = field(init=False)
    collapsed_shape: tuple[int, ...] = field(init=False)
    alignment_bytes: int | None = field(init=False)
    dim_alignments: tuple[int, ...] | None = field(init=False)
    _intervals: Intervals | None = field(init=False)
    _cut: ShardSplit = field(init=False)
    _allowed_tiles: tuple[tuple[int, ...], ...] = field(init=False)

    def __init__(
        self,
        shape: Sequence[int],
        dtype: str,
        linear: Linear | None = None,
        *,
        collapse_intervals: Intervals | None = None,
        oob_val: str = "undef",
        grid: Sequence[int] | None = None,
        tile: Sequence[int] | None = None,
        memory_space: str = "l1",
        element: str | None = None,
        face: Sequence[int] | None = None,
        device: GridMap | None = None,
        alignment_bytes: int | None = None,
        dim_alignments: Sequence[int] | None = None,
        capacity_bytes: int | None = None,
        allowed_tiles: Sequence[Sequence[int]] = ALLOWED_TILES,
    ) -> None:
        """Compute the index map.

        Args:
            shape: Shape of the tensor.
            dtype: Dtype of the elements.
            linear: Function from tensor indices to the collapsed axes, or an index map. Strides
                above the extents leave gaps between the rows of a batch.
            collapse_intervals: Intervals of dimensions to merge, instead of `linear`: pairs (first,
                end), negative values count from the end. Default: all dimensions but the last.
            oob_val: Padding value.
            grid: Number of cores along each collapsed axis. Default: one core. If the collapsed
                intervals give fewer axes, zeros are added in front.
            tile: Rows and columns of a tile.
            memory_space: Memory space: system, mmio, dram or l1.
            element: Storage format of the elements. Default: `dtype`.
            face: Rows and columns of a face of a tile.
            device: Map from the grid to physical cores.
            alignment_bytes: Byte multiple to which rows of untiled shards are padded, so that each
                row starts at an address that the on-chip network (NoC) supports.
            dim_alignments: Multiple for each dimension. When dimensions are merged, from the last
                one to the first, the positions so far are padded to a multiple. Tiles and grid must
                then divide the positions of each axis.
            capacity_bytes: Capacity per core in bytes.
            allowed_tiles: Supported tile shapes.

        Raises:
            LayoutError: If the arguments are inconsistent, or the map is not injective.
            CapacityError: If a shard is larger than `capacity_bytes`.

        >>> layout = ShardLayout((2, 3, 64, 128), "float32", grid=(2, 4))
        >>> layout.memref_shape, layout.place((1, 1, 6, 100))
        ((192, 32), (1, 3, 70, 4))
        """
        check_shape(shape)
        extents, elem_dtype = tuple(map(int, shape)), DType(dtype)
        allowed = check_tiles(allowed_tiles)
        tiled = check_tile(tile, allowed)
        multiples = None if dim_alignments is None else positive_numbers(
            dim_alignments, "shard layout: dim_alignments", len(extents))
        padded = None
        if multiples is not None:
            linear, padded = aligned_axes(extents, linear, collapse_intervals, multiples)
        joins = None if multiples is not None else collapse_intervals
        index_map, cores = collapse_onto(extents, linear, joins, grid, tiled)
        ranges = ranges_of(index_map, extents, elem_dtype)
        sizes = tuple(high - low + 1 for low, high in ranges)
        storage = check_storage(elem_dtype if element is None else element, tiled)
        aligned = row_alignment_elements(alignment_bytes, storage, tiled)
        cut = ShardSplit.evenly(
            padded or sizes, cores, tiled, check_face_shape(face, tiled), aligned
        )
        if padded is not None:
            check_even(padded, cut)
        keep(
            self, linear=index_map, grid=cores, oob_val=oob_val, tile=tiled, face=cut.face,
            device=check_grid_map(device, cores), collapsed_shape=sizes, _cut=cut,
            alignment_bytes=alignment_bytes, _allowed_tiles=allowed, dim_alignments=multiples,
            _intervals=None if multiples is None else collapse_intervals,
        )
        results = cut.axes(_from_zero(index_map, ranges))
        super().__init__(
            extents, elem_dtype, IndexMap(index_map.initial_indices, results),
            storage, pad_value_of(oob_val, elem_dtype), check_memory_space(memory_space),
            tuple(range(len(cores))),
        )
        if capacity_bytes is not None:
            self.check_capacity(capacity_bytes)

    @classmethod
    def for_target(
        cls,
        target: Target,
        shape: Sequence[int],
        dtype: str,
        linear: Linear | None = None,
        *,
        grid: Sequence[int] | None = None,
        tiled: bool = True,
        memory_space: str = "l1",
        element: str | None = None,
        **others: Any,
    ) -> ShardLayout:
        """Build the layout for the cores, tiles and memories of a target.

        Args:
            target: Target.
            shape: Shape of the tensor.
            dtype: Dtype of the elements.
            linear: As for the constructor.
            grid: Number of cores along each collapsed axis; a virtual grid with at most the cores
                of the target, which `GridMap.on_device` maps to physical cores. Default: the grid
                of the target.
            tiled: Whether to use the tiles of the target.
            memory_space: Memory that holds the tensor.
            element: Storage format of the target for the dtype. Default: the first one.
            others: As for the constructor. Default of `alignment_bytes`: the alignment of the
                memory.

        Raises:
            LayoutError: If the target has fewer cores, no tiles, or no such format for the dtype.
            TargetError: If the target has no such memory.
            CapacityError: If a shard, or the tensor in a shared memory, exceeds the capacity.

        >>> layout = ShardLayout.for_target(Target.load("tensix_wh"), (512, 1024), "bfloat16")
        >>> layout.grid, layout.memref_shape, layout.face
        ((8, 8), (2, 4), (16, 16))
        """
        check_target(target, "shard layout")
        args: dict[str, Any] = {"alignment_bytes": target.memory(memory_space).alignment_bytes}
        args["element"] = element_of(target, dtype, element)
        check_kind(
            tiled, bool | np.bool_, "shard layout: tiled", "give True or False", LayoutError
        )
        if tiled:
            tile = tile_of(target)
            args |= {"tile": tile.shape, "face": tile.face, "allowed_tiles": tile.shapes}
        cores = grid_of(target, grid)
        rows = tuple(target.grid.values())
        if len(rows) == 2:
            args["device"] = GridMap.on_device(cores, rows)
        layout = cls(
            shape, dtype, linear, grid=cores, memory_space=memory_space, **(args | others)
        )
        check_room(layout, target)
        return layout

    def _collision(self) -> tuple[Index, Index] | None:
        """Check `linear` only: the split of the collapsed box is injective."""
        return self.linear.collision(self.shape)

    @classmethod
    def parse(
        cls,
        text: str,
        *,
        face: Sequence[int] | None = None,
        device: GridMap | None = None,
        capacity_bytes: int | None = None,
        allowed_tiles: Sequence[Sequence[int]] = ALLOWED_TILES,
    ) -> ShardLayout:
        """Parse a layout that `str(layout)` wrote.

        Args:
            text: Text `tensor<..., #tt.layout<...>>` or `tensor<..., #ttcore.metal_layout<...>>`,
                possibly with line breaks; a tensor without a layout is on one core in host memory.
            face: Rows and columns of a face, which the text does not contain. In a text without
                `alignment_bytes`, the padding of rows is derived from the memref.
            device: Map from the grid to physical cores. Default: the map in the text, if any.
            capacity_bytes: Capacity per core in bytes.
            allowed_tiles: Supported tile shapes.

        Raises:
            LayoutError: If the text does not parse (with the position), or its memref contradicts
                the other parts.

        >>> text = (
        ...     "tensor<53x63xf32, #tt.layout<(d0, d1) -> (d0, d1), undef, <3x2>, "
        ...     "memref<1x1x!tt.tile<32 x 32, bfp_bf8>, #tt.memory_space<l1>>>>"
        ... )
        >>> str(ShardLayout.parse(text)) == text
        True
        """
        if isinstance(text, str) and "#ttcore.metal_layout" in text:
            layout = cls._parse_metal(text, face, device, allowed_tiles)
            if capacity_bytes is not None:
                layout.check_capacity(capacity_bytes)
            return layout
        spec = parse_shard(text)
        layout = cls(
            spec.shape, spec.dtype, spec.linear, oob_val=spec.oob_val, grid=spec.grid,
            tile=spec.tile, memory_space=spec.memory_space, element=spec.element, face=face,
            device=spec.device if device is None else device, allowed_tiles=allowed_tiles,
            alignment_bytes=spec.alignment_bytes,
        )
        if spec.alignment_bytes is None and (count := _padded_row(layout, spec.memref)) is not None:
            layout = layout.replace(alignment_bytes=count)
        if capacity_bytes is not None:
            layout.check_capacity(capacity_bytes)
        _check_shard_extents(layout, spec.memref)
        return layout

    @classmethod
    def _parse_metal(
        cls, text: str, face: Sequence[int] | None, device: GridMap | None,
        allowed_tiles: Sequence[Sequence[int]],
    ) -> ShardLayout:
        spec = parse_metal(text)
        layout = cls(
            spec.shape, spec.dtype, collapse_intervals=spec.intervals, oob_val=spec.oob_val,
            grid=spec.grid, tile=spec.tile, memory_space=spec.memory_space, element=spec.element,
            face=face, device=spec.device if device is None else device,
            alignment_bytes=spec.alignment_bytes, dim_alignments=spec.alignments,
            allowed_tiles=allowed_tiles,
        )
        _check_shard_extents(layout, spec.memref)
        return layout

    def text(self) -> str:
        """Return the layout in tt-mlir notation, which `parse` reads.

        A layout with `dim_alignments` is a `#ttcore.metal_layout`, others are a `#tt.layout`.

        Raises:
            LayoutError: If the map contains bit operations, or a dtype has no name in the notation.

        >>> layout = ShardLayout((64, 128), "float32", grid=(2, 4))
        >>> layout.text().partition(", #tt")[0], ShardLayout.parse(layout.text()) == layout
        ('tensor<64x128xf32', True)
        """
        if self.dim_alignments is not None:
            return metal_text(MetalNotation(
                self.shape, self.dtype, self.dim_alignments, self._spans(), self.oob_val, self.grid,
                self.memref_shape, self.tile, self.storage.name, self.memory_space,
                self.alignment_bytes, self.device,
            ))
        return shard_text(ShardNotation(
            self.shape, self.dtype, self.linear, self.oob_val, self.grid, self.memref_shape,
            self.tile, self.storage.name, self.memory_space, self.alignment_bytes, self.device,
        ))

    def _spans(self) -> tuple[tuple[int, int], ...]:
        """Return the intervals of dimensions, one for each collapsed axis."""
        groups = merged_dims(len(self.shape), self._intervals)
        return tuple((group.start, group.stop) for group in groups)

    def __str__(self) -> str:
        try:
            return self.text()
        except LayoutError:
            return self.describe()

    def __repr__(self) -> str:
        return str(self)

    @cached_property
    def _key(self) -> tuple[object, ...]:
        axes = [Var(f"i{k}") for k in range(len(self.shape))]
        linear = tuple(map(str, self.linear.map_indices(axes)))
        return (*super()._key, linear, self.oob_val, self.tile, self.face, self.device,
                self.dim_alignments)

    def replace(self, **changes: Any) -> ShardLayout:
        """Return the layout with some constructor arguments changed.

        >>> layout = ShardLayout((3, 64, 128), "float32", grid=(3, 2))
        >>> layout.replace(tile=(32, 32), element="bfp_bf8").memref_shape
        (2, 2)
        """
        args: dict[str, Any] = {
            "shape": self.shape, "dtype": self.dtype, "oob_val": self.oob_val, "grid": self.grid,
            "tile": self.tile, "memory_space": self.memory_space, "face": self.face,
            "element": self.storage.name, "device": self.device,
            "alignment_bytes": self.alignment_bytes, "dim_alignments": self.dim_alignments,
            "allowed_tiles": self._allowed_tiles,
        }
        if "collapse_intervals" not in changes:
            aligned = changes.get("dim_alignments", self.dim_alignments) is not None
            args |= {"collapse_intervals": self._intervals} if aligned else {"linear": self.linear}
        return ShardLayout(**(args | changes))

    @property
    def memory_space(self) -> str:
        """Memory space of the shards."""
        return self.memory

    @property
    def scalar_shard_shape(self) -> tuple[int, ...]:
        """Shape of a shard in elements, before padding to tiles."""
        return self._cut.shard

    @property
    def padded_shard_shape(self) -> tuple[int, ...]:
        """Shape of a shard in elements, padded to whole tiles or aligned rows."""
        return self._cut.padded

    @property
    def memref_shape(self) -> tuple[int, ...]:
        """Padded shape of a shard; with tiles, the last two axes count tiles."""
        return self._cut.memref

    @property
    def shard_bytes(self) -> int:
        """Size of a shard in bytes."""
        return self.shard_nbytes

    def core(self, index: Sequence[int]) -> Index:
        """Return the virtual core that holds the element at `index`.

        Raises:
            LayoutError: If `index` is out of bounds.

        >>> ShardLayout((64, 128), "float32", grid=(2, 4)).core((40, 100))
        (1, 3)
        """
        return self.place(index)[: len(self.grid)]

    def shard_offset(self, index: Sequence[int]) -> int:
        """Return the offset of the element at `index` in the memory of its core, in elements.

        Raises:
            LayoutError: If `index` is out of bounds.

        >>> ShardLayout((64, 128), "float32", grid=(2, 4)).shard_offset((33, 100))
        36
        """
        return self.offset(index) % prod(self.shard_shape)

    @cached_property
    def elements_per_core(self) -> npt.NDArray[np.int64]:
        """Number of elements per virtual core."""
        counts = count_on_cores(self.index_map, self.shape, self.grid)
        counts.setflags(write=False)
        return counts

    @property
    def padding_per_core(self) -> npt.NDArray[np.int64]:
        """Number of padding slots per virtual core."""
        return prod(self.shard_shape) - self.elements_per_core

    def core_padding(self, core: Sequence[int]) -> CorePadding:
        """Return the amount and the position of the padding in the shard of one core.

        Raises:
            LayoutError: If `core` is out of bounds.

        >>> layout = ShardLayout((53, 63), "float32", grid=(3, 2))
        >>> layout.core_padding((2, 1))
        CorePadding(core=(2, 1), count=49, margins=(1, 1), shard_variables=(p2, p3), \
condition=p2 >= 17 or p3 >= 31)
        """
        position = check_index_in_bounds(core, self.grid, "core")
        return core_padding(
            position, self._cut, self.collapsed_shape, self.shard_shape, self.padding,
            int(self.padding_per_core[position]),
        )

    def check_capacity(self, capacity_bytes: int) -> None:
        """Check that a shard fits into the memory of a core.

        Raises:
            CapacityError: If the shard is larger than `capacity_bytes`.
            LayoutError: If `capacity_bytes` is not an integer.

        >>> ShardLayout((64, 128), "float32", grid=(2, 4)).check_capacity(4096)
        """
        check_kind(
            capacity_bytes, int | np.integer, "shard layout: capacity_bytes",
            "pass a number of bytes", LayoutError,
        )
        check_bits([int(capacity_bytes)], "shard layout: capacity_bytes")
        if self.shard_bytes > capacity_bytes:
            raise CapacityError(
                "shard layout: a shard of {memref_shape} {storage} takes {shard_bytes:,} B of "
                "{memory_space}, which has {capacity_bytes:,} B per core; {padding_percent:.1f} % "
                "of the shard is padding; use a grid with more cores, or a map with each dimension "
                "in one result",
                memref_shape=format_grid(self.memref_shape), storage=self.storage.name,
                shard_bytes=self.shard_bytes, memory_space=self.memory_space,
                capacity_bytes=capacity_bytes, padding_percent=100 * self.padding_share,
            )

    def physical_core(self, index: Sequence[int]) -> Index:
        """Return the physical core that holds the element at `index`.

        Raises:
            LayoutError: If the layout has no device.

        >>> device = GridMap.folded((2, 4), (8, 8))
        >>> ShardLayout((64, 128), "float32", grid=(2, 4), device=device).physical_core((40, 100))
        (0, 1, 3)
        """
        return self._on_device().core(self.core(index))

    def on_device(self) -> Layout:
        """Return the layout with the physical grid in place of the virtual grid.

        Raises:
            LayoutError: If the layout has no device.

        >>> device = GridMap.folded((2, 4), (8, 8))
        >>> layout = ShardLayout((64, 128), "float32", grid=(2, 4), device=device)
        >>> layout.grid_shape, layout.on_device().grid_shape
        ((2, 4), (1, 8, 8))
        """
        return self._on_device().applied(self)

    def _on_device(self) -> GridMap:
        if self.device is None:
            raise LayoutError(
                "shard layout: the grid <{grid}> is virtual; pass device=, a GridMap to the cores "
                "of the machine",
                kind="shards", grid=format_grid(self.grid),
            )
        return self.device


def _padded_row(layout: ShardLayout, memref: tuple[int, ...]) -> int | None:
    """Return the row size in bytes of a memref with wider rows than a layout, else None."""
    shape = layout.memref_shape
    is_wider = len(shape) == len(memref) and shape[:-1] == memref[:-1] and shape[-1] < memref[-1]
    bits = layout.storage.stored.bits * layout.storage.units // layout.storage.elements
    if layout.tile is not None or not is_wider or memref[-1] * bits % 8:
        return None
    return memref[-1] * bits // 8


def _from_zero(index_map: IndexMap, ranges: Sequence[tuple[int, int]]) -> list[Expr]:
    """Return the results shifted so that each has minimum 0."""
    return [
        expr if low == 0 else Binary(BinOp.SUB, expr, index_value(low))
        for expr, (low, _) in zip(index_map.final_indices, ranges, strict=True)
    ]


def _check_shard_extents(layout: ShardLayout, stated: Sequence[int]) -> None:
    """Raise if a text states other shard extents than those of its layout.

    Raises:
        LayoutError: If the extents differ.
    """
    if layout.memref_shape == tuple(stated):
        return
    raise LayoutError(
        "shard layout: the text has shards of {memref}, but {shape} on the grid <{grid}> has "
        "shards of {memref_shape}; write the latter",
        kind="shards", memref=format_grid(stated), shape=format_grid(layout.shape),
        grid=format_grid(layout.grid), memref_shape=format_grid(layout.memref_shape),
    )
