"""TTNN layouts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import prod

from tecomp.errors import LayoutError
from tecomp.ir.arith.extents import ceil_div
from tecomp.ir.nodes.argument_checks import check_kind
from tecomp.ir.nodes.dtype import DType
from tecomp.ir.nodes.expr import Binary, BinOp, Const, Expr, Var, index_value
from tecomp.ir.traversal.rewrite import free_variables
from tecomp.layout.core.layout import Layout
from tecomp.layout.formats.arguments import (
    as_int_tuple,
    check_index_in_bounds,
    check_shape,
    positive_numbers,
    quotient,
    remainder,
)
from tecomp.layout.notations.mlir_affine import map_text
from tecomp.layout.sharding.checks import (
    ALLOWED_TILES,
    SHARDED,
    check_face_shape,
    check_placement,
    check_storage,
    check_tile,
    check_tiles,
    format_grid,
)
from tecomp.layout.sharding.shard_layout import ShardLayout
from tecomp.layout.sharding.shard_maps import ShardSplit, faces, keep, linear_combination
from tecomp.poly.maps.index_map import IndexMap


def packing(
    shape: tuple[int, ...], tile: tuple[int, int] | None, stride: Sequence[int] | None
) -> tuple[tuple[int, ...], int, int]:
    """Return the stride of each dimension, the volume and the row width, in elements.

    By default, strides are those of an array whose last two dimensions are padded to whole tiles.

    Raises:
        LayoutError: If `stride` has the wrong length, does not end with 1, or dimensions overlap.

    >>> packing((2, 15, 10), (32, 32), None)
    ((1024, 32, 1), 2048, 32)
    >>> packing((2, 3, 64, 128), None, (24576, 8192, 128, 1))
    ((24576, 8192, 128, 1), 49152, 128)
    """
    if 0 in shape:
        raise LayoutError(
            "ttnn layout: {shape} has an axis of extent 0; all extents must be 1 or more",
            kind="shards", shape=list(shape),
        )
    rank = len(shape)
    if stride is None:
        padded = [1] * (2 - rank) + list(shape)
        if tile is not None:
            padded[-2:] = (ceil_div(n, t) * t for n, t in zip(padded[-2:], tile, strict=True))
        strides = [prod(padded[k + 1 :]) for k in range(len(padded))]
        return tuple(strides[len(padded) - rank :]), prod(padded), padded[-1]
    volume, checked = _checked_strides(shape, stride)
    return checked, volume, checked[-2] if rank > 1 else volume


def _checked_strides(
    shape: tuple[int, ...], stride: Sequence[int]
) -> tuple[int, tuple[int, ...]]:
    rank = len(shape)
    stride = as_int_tuple(stride, "ttnn layout: stride")
    is_positive = all(n > 0 for n in stride)
    if not is_positive or len(stride) not in (rank, rank + 1) or (rank and stride[-1] != 1):
        raise LayoutError(
            "ttnn layout: invalid stride {stride} for {shape}; pass one positive number per "
            "dimension, with 1 as the last, and prepend the volume if it is larger",
            kind="shards", stride=tuple(stride), shape=list(shape),
        )
    strides = tuple(int(n) for n in stride[len(stride) - rank :])
    volume = int(stride[0]) if len(stride) > rank else prod((*shape[:1], *strides[:1]))
    outer = (volume, *strides)
    width = strides[-2] if rank > 1 else volume
    span = 1
    for k in reversed(range(rank)):
        span += (shape[k] - 1) * strides[k]
        if outer[k] < span or outer[k] % width:
            raise LayoutError(
                "ttnn layout: invalid stride {outer} for {shape}: {actual_stride} is smaller than "
                "the {address_count} addresses from dimension {k} on, or is not a multiple of "
                "rows of {width}; pass the strides of an array, with padding between its rows if "
                "necessary",
                kind="shards", outer=outer, shape=list(shape), actual_stride=outer[k],
                address_count=span, k=k,
                width=width,
            )
    return volume, strides


def shard_of(
    memory_layout: str,
    physical: tuple[int, int],
    shard_shape: Sequence[int] | None,
    grid: Sequence[int] | None,
) -> tuple[int, int]:
    """Return the rows and columns of a shard.

    Raises:
        LayoutError: If they are not positive, or split an axis that the memory layout keeps whole.
    """
    sizes = shard_shape if shard_shape is not None else grid
    if sizes is None:
        return physical
    argument = "grid" if shard_shape is None else "shard shape"
    rows, columns = positive_numbers(sizes, f"ttnn layout: the {argument}", 2)
    if shard_shape is None:
        rows, columns = ceil_div(physical[0], rows), ceil_div(physical[1], columns)
    if (memory_layout == "height_sharded" and columns < physical[1]) or (
        memory_layout == "width_sharded" and rows < physical[0]
    ):
        axis = "rows" if memory_layout == "height_sharded" else "columns"
        raise LayoutError(
            "ttnn layout: {memory_layout} must not split {dimension}, but {physical} is split into "
            "{rows}; use block_sharded",
            kind="shards", memory_layout=memory_layout, physical=format_grid(physical),
            rows=format_grid((rows, columns)), dimension=axis,
        )
    return rows, columns


Range = tuple[tuple[int, int], tuple[int, int]]


@dataclass(frozen=True, eq=False, init=False, repr=False)
class TtnnLayout(Layout):
    """Tensor as rows of its last dimension, interleaved over banks or sharded over cores.

    The attributes are named as in the specification. In sharded layouts the two grid axes come
    first. In interleaved layouts pages are distributed cyclically over the banks; the bank axis
    comes first, then the page axis within a bank. A page is a tile, or a row without tiles.

    Attributes:
        stride: Stride of each dimension in the physical rows, in elements.
        packed_shape: Rows and columns that the strides span.
        memory_layout: interleaved, height_sharded, width_sharded or block_sharded.
        tile_shape: Rows and columns of a tile, or None for a layout by rows.
        banks: Number of banks of interleaved pages; 1 in sharded layouts.
        face: Rows and columns of a face of a tile, or None.

    Source:
        Tensor Layout (tt-mlir), "TTNN Tensor Layout"; where it is silent, the layouts of tt-mlir's
        TTNN dialect: tiles pad the last two dimensions before these are collapsed.

    >>> rows = TtnnLayout((2, 60, 128), "float32", tile=(32, 32), banks=4)
    >>> rows.stride, rows.packed_shape, rows.memory_layout, rows.tile_shape, rows.face, rows.banks
    ((8192, 128, 1), (128, 128), 'interleaved', (32, 32), None, 4)
    >>> rows.is_sharded, rows.shard_shape, rows.physical_shard_shape, rows.memref_shape
    (False, (128, 128), (128, 128), (1, 4))
    """

    stride: tuple[int, ...] = field(init=False)
    packed_shape: tuple[int, int] = field(init=False)
    memory_layout: str = field(init=False)
    tile_shape: tuple[int, int] | None = field(init=False)
    banks: int = field(init=False)
    face: tuple[int, int] | None = field(init=False)
    _cut: ShardSplit = field(init=False)
    _allowed_tiles: tuple[tuple[int, ...], ...] = field(init=False)

    def __init__(
        self,
        shape: Sequence[int],
        dtype: str,
        *,
        stride: Sequence[int] | None = None,
        memory_layout: str = "interleaved",
        memory_space: str = "dram",
        shard_shape: Sequence[int] | None = None,
        grid: Sequence[int] | None = None,
        banks: int = 1,
        tile: Sequence[int] | None = None,
        element: str | None = None,
        face: Sequence[int] | None = None,
        allowed_tiles: Sequence[Sequence[int]] = ALLOWED_TILES,
    ) -> None:
        """Compute the index map.

        Args:
            shape: Shape of the tensor.
            dtype: Dtype of the elements.
            stride: Stride of each dimension, optionally preceded by the volume. Default: strides of
                an array whose last two dimensions are padded to whole tiles.
            memory_layout: interleaved, height_sharded, width_sharded or block_sharded.
            memory_space: system, dram or l1.
            shard_shape: Rows and columns of a shard.
            grid: Number of shards down and across, instead of `shard_shape`.
            banks: Number of banks or cores over which pages are interleaved.
            tile: Rows and columns of a tile.
            element: Storage format of the elements. Default: `dtype`.
            face: Rows and columns of a face of a tile.
            allowed_tiles: Supported tile shapes.

        Raises:
            LayoutError: If the arguments are inconsistent, or the map is not injective.

        >>> sharded = TtnnLayout(
        ...     (2, 3, 64, 128), "float32", memory_layout="block_sharded", memory_space="l1",
        ...     grid=(2, 4), tile=(32, 32),
        ... )
        >>> sharded.packed_shape, sharded.shard_shape, sharded.grid_shape
        ((384, 128), (192, 32), (2, 4))
        """
        check_shape(shape)
        extents, elem_dtype = tuple(map(int, shape)), DType(dtype)
        allowed = check_tiles(allowed_tiles)
        tiled = check_tile(tile, allowed)
        strides, volume, width = packing(extents, tiled, stride)
        physical = (volume // width, width)
        check_placement(memory_layout, memory_space, banks, shard_shape, grid)
        shard = shard_of(memory_layout, physical, shard_shape, grid)
        counts = tuple(ceil_div(n, s) for n, s in zip(physical, shard, strict=True))
        cut = ShardSplit(counts, shard, tiled, check_face_shape(face, tiled))
        axes = tuple(Var(f"d{k}") for k in range(len(extents)))
        pos = rows_and_columns(axes, strides, width)
        results = cut.axes(pos) if memory_layout in SHARDED else _pages(pos, cut, physical, banks)
        keep(
            self, stride=strides, packed_shape=physical, memory_layout=memory_layout,
            tile_shape=tiled, banks=banks, face=cut.face, _cut=cut,
            _allowed_tiles=allowed,
        )
        super().__init__(
            extents, elem_dtype, IndexMap(axes, results),
            check_storage(elem_dtype if element is None else element, tiled), None, memory_space,
            (0, 1) if memory_layout in SHARDED else (0,),
        )

    def __repr__(self) -> str:
        return str(self)

    @cached_property
    def _key(self) -> tuple[object, ...]:
        fields = (self.stride, self.packed_shape, self.memory_layout, self._cut)
        return (*super()._key, *fields)

    @property
    def is_sharded(self) -> bool:
        """Whether the layout is sharded into rectangles rather than interleaved by pages."""
        return self.memory_layout in SHARDED

    @property
    def shard_shape(self) -> tuple[int, int]:
        """Rows and columns of a shard, maybe with partial tiles; the tensor if interleaved."""
        rows, columns = self._cut.shard
        return rows, columns

    @property
    def physical_shard_shape(self) -> tuple[int, int]:
        """Rows and columns of a shard, padded to whole tiles."""
        rows, columns = self._cut.padded
        return rows, columns

    @property
    def memref_shape(self) -> tuple[int, int]:
        """Shape of the part of one core, in tiles if there are tiles, else in elements.

        If pages are interleaved over several banks, this is one row with the maximum number per
        bank.
        """
        if self.is_sharded or self.banks == 1:
            rows, columns = self._cut.memref
            return rows, columns
        return 1, ceil_div(prod(self._cut.memref), self.banks)

    def core_ranges(self, device: tuple[int, int]) -> list[Range]:
        """Return the core rectangles that hold the shards, as (x, y) of first and last core.

        Block-sharded layouts use a rectangle of the grid shape. Height- and width-sharded layouts
        fill whole rows of the device, then a part of a row.

        Args:
            device: Rows and columns of cores.

        Raises:
            LayoutError: If the layout is not sharded, or the device has too few cores.

        >>> tall = TtnnLayout((352, 64), "float32", memory_layout="height_sharded",
        ...                   memory_space="l1", grid=(11, 1))
        >>> tall.core_ranges((8, 8))
        [((0, 0), (7, 0)), ((0, 1), (2, 1))]
        """
        rows, columns = positive_numbers(device, "ttnn layout: the device", 2)
        n_rows, n_cols = self._cut.grid
        count = n_rows * n_cols
        is_block = self.memory_layout == "block_sharded"
        if not self.is_sharded or count > rows * columns or (
            is_block and (n_rows > rows or n_cols > columns)
        ):
            contents = f"{n_rows}x{n_cols} shards" if self.is_sharded else "interleaved pages"
            raise LayoutError(
                "ttnn layout: {subject} do not fit on {rows}x{columns} cores; use fewer, larger "
                "shards",
                kind="shards", subject=contents, rows=rows, columns=columns,
            )
        if is_block:
            return [((0, 0), (n_cols - 1, n_rows - 1))]
        full, tail = divmod(count, columns)
        ranges: list[Range] = [((0, 0), (columns - 1, full - 1))] if full else []
        return ranges + ([((0, full), (tail - 1, full))] if tail else [])

    def to_shard(self) -> ShardLayout:
        """Convert to a `ShardLayout` with equal addresses.

        Raises:
            LayoutError: If pages are interleaved over several banks, or shard boundaries depend on
                padding that a shard layout does not count.

        >>> rows = TtnnLayout((2, 15, 10), "float32", tile=(32, 32))
        >>> str(rows.to_shard()).partition("tt.layout")[2]
        '<(d0, d1, d2) -> (d0 * 32 + d1, d2), undef, <1x1>, memref<2x1x!tt.tile<32 x 32, f32>, \
#tt.memory_space<dram>>>>'
        """
        if self.banks > 1:
            raise LayoutError(
                "ttnn layout: pages are interleaved over {banks} banks, which #tt.layout cannot "
                "express; use banks=1, or a sharded layout",
                kind="shards", banks=self.banks,
            )
        axes = self.index_map.initial_indices
        width = self.packed_shape[1]
        result = ShardLayout(
            self.shape, self.dtype, IndexMap(axes, rows_and_columns(axes, self.stride, width)),
            grid=self._cut.grid, tile=self.tile_shape, memory_space=self.memory, face=self.face,
            element=self.storage.name, allowed_tiles=self._allowed_tiles,
        )
        for extent, other, count in zip(
            self.shard_shape, result.scalar_shard_shape, self._cut.grid, strict=True
        ):
            if (count > 1 and extent != other) or result.memref_shape != self.memref_shape:
                raise LayoutError(
                    "ttnn layout: {packed_shape} is split into shards of {shard_shape}, but a "
                    "shard layout splits {collapsed_shape} into {scalar_shard_shape}; choose "
                    "shards that are not moved by the padding",
                    kind="shards", shard_shape=format_grid(self.shard_shape),
                    packed_shape=format_grid(self.packed_shape),
                    collapsed_shape=format_grid(result.collapsed_shape),
                    scalar_shard_shape=format_grid(result.scalar_shard_shape),
                )
        return result

    @classmethod
    def from_shard(cls, layout: ShardLayout) -> TtnnLayout:
        """Convert a `ShardLayout` to a layout with equal addresses.

        Raises:
            LayoutError: If the map is not row-major over the dimensions, the grid is not
                two-dimensional or has idle cores, or the padding value is defined.

        >>> TtnnLayout.from_shard(ShardLayout((2, 3, 64, 128), "float32", grid=(2, 4))).stride
        (24576, 8192, 128, 1)
        """
        check_kind(
            layout, ShardLayout, "ttnn layout: the shard layout", "create one with ShardLayout",
            LayoutError,
        )
        width, stride = strides_of(layout)
        rows, columns = layout.grid
        result = cls(
            layout.shape, layout.dtype, stride=(layout.collapsed_shape[0] * width, *stride),
            memory_layout=_memory_layout(rows, columns), memory_space=layout.memory,
            shard_shape=layout.scalar_shard_shape if rows * columns > 1 else None,
            tile=layout.tile, element=layout.storage.name, face=layout.face,
            allowed_tiles=[layout.tile] if layout.tile else (),
        )
        if result._cut.grid != layout.grid:
            raise LayoutError(
                "ttnn layout: {collapsed_shape} in shards of {shard_shape} fills the grid {grid}, "
                "but the layout has the grid {layout_grid}; use a grid without idle cores",
                kind="shards", collapsed_shape=format_grid(layout.collapsed_shape),
                shard_shape=format_grid(result.shard_shape), grid=format_grid(result._cut.grid),
                layout_grid=format_grid(layout.grid),
            )
        if result.memref_shape != layout.memref_shape:
            raise LayoutError(
                "ttnn layout: rows of {memref_shape} are padded to {alignment_bytes} bytes, which "
                "strides cannot express; use a tiled layout, or one without alignment_bytes",
                kind="shards", memref_shape=format_grid(layout.memref_shape),
                alignment_bytes=layout.alignment_bytes,
            )
        return result

    @classmethod
    def mesh_from_shard(cls, layout: ShardLayout) -> TtnnMesh:
        """Convert a `ShardLayout` with leading grid axes to a mesh of devices with TTNN layouts.

        The grid axes before the last two form the mesh. Each splits one dimension of the tensor,
        such that each device holds one index. On each device, all dimensions but the last are
        collapsed.

        Raises:
            LayoutError: If a leading axis is not a dimension with one index per device, or the
                layout of the part of a device has no TTNN equivalent.

        Source:
            Tensor Layout (tt-mlir), "Multi-device" and "Mapping from the compiler".

        >>> layout = ShardLayout(
        ...     (2, 3, 64, 128), "float32", collapse_intervals=[(1, -1)], grid=(2, 2, 4),
        ...     tile=(32, 32),
        ... )
        >>> mesh = TtnnLayout.mesh_from_shard(layout)
        >>> mesh.shape, mesh.dims, mesh.layout.shape, mesh.layout.grid_shape
        ((2,), (0,), (1, 3, 64, 128), (2, 4))
        """
        check_kind(
            layout, ShardLayout, "ttnn layout: the shard layout", "create one with ShardLayout",
            LayoutError,
        )
        mesh = layout.grid[:-2]
        dims = _mesh_dims(layout)
        part = [1 if dim in dims else extent for dim, extent in enumerate(layout.shape)]
        axes = layout.linear.initial_indices
        device_map = IndexMap(axes, layout.linear.final_indices[-2:])
        device = ShardLayout(
            part, layout.dtype, device_map, oob_val=layout.oob_val, grid=layout.grid[-2:],
            tile=layout.tile, memory_space=layout.memory, element=layout.storage.name,
            face=layout.face, alignment_bytes=layout.alignment_bytes,
            allowed_tiles=[layout.tile] if layout.tile else (),
        )
        return TtnnMesh(layout.shape, mesh, dims, cls.from_shard(device))


@dataclass(frozen=True)
class TtnnMesh:
    """A tensor that is sliced along some dimensions, with one slice per device of a mesh.

    Attributes:
        tensor_shape: Shape of the whole tensor.
        shape: Number of devices along each axis of the mesh.
        dims: Tensor dimension that each mesh axis slices.
        layout: Layout of the slice of a device, with extent 1 in the sliced dimensions.
    """

    tensor_shape: tuple[int, ...]
    shape: tuple[int, ...]
    dims: tuple[int, ...]
    layout: TtnnLayout

    def device(self, index: Sequence[int]) -> tuple[int, ...]:
        """Return the device that holds the element at `index`.

        Raises:
            LayoutError: If `index` is out of bounds.
        """
        position = check_index_in_bounds(index, self.tensor_shape, "element")
        return tuple(position[dim] for dim in self.dims)

    def place(self, index: Sequence[int]) -> tuple[int, ...]:
        """Return the physical index of the element at `index` in the memory of its device.

        Raises:
            LayoutError: If `index` is out of bounds.

        >>> batch = [(1, -1)]
        >>> layout = ShardLayout((2, 8, 32), "float32", collapse_intervals=batch, grid=(2, 1, 2))
        >>> mesh = TtnnLayout.mesh_from_shard(layout)
        >>> mesh.device((1, 3, 20)), mesh.place((1, 3, 20)), layout.place((1, 3, 20))
        ((1,), (0, 1, 3, 4), (1, 0, 1, 0, 3, 4))
        """
        position = check_index_in_bounds(index, self.tensor_shape, "element")
        return self.layout.place([0 if k in self.dims else n for k, n in enumerate(position)])


def _mesh_dims(layout: ShardLayout) -> tuple[int, ...]:
    """Return the tensor dimension of each grid axis before the last two."""
    axes, results = layout.linear.initial_indices, layout.linear.final_indices
    inside = {var for expr in results[-2:] for var in free_variables(expr)}
    dims = []
    for k, (expr, count) in enumerate(zip(results, layout.grid[:-2], strict=False)):
        dim = axes.index(expr) if isinstance(expr, Var) and expr in axes else None
        if dim is None or layout.shape[dim] != count or expr in inside:
            raise LayoutError(
                "ttnn layout: axis {k} of the grid {grid} is {expr} of {shape}; a mesh slices "
                "dimensions that are not part of rows and columns, with one index per device: map "
                "each leading axis to such a dimension, with as many devices as it has indices",
                kind="shards", k=k, grid=format_grid(layout.grid), expr=expr,
                shape=format_grid(layout.shape),
            )
        dims.append(dim)
    return tuple(dims)


def _memory_layout(rows: int, columns: int) -> str:
    if rows == columns == 1:
        return "interleaved"
    return "height_sharded" if columns == 1 else "width_sharded" if rows == 1 else "block_sharded"


def strides_of(layout: ShardLayout) -> tuple[int, tuple[int, ...]]:
    """Return the row width of a shard layout and the strides of its dimensions.

    Raises:
        LayoutError: If the layout is not row-major over its dimensions.
    """
    if layout.oob_val != "undef" or len(layout.grid) != 2:
        raise LayoutError(
            "ttnn layout: a grid of {grid} with oob_val={oob_val!r} is not supported; TTNN has "
            "rows and columns of cores and undefined padding, so collapse dimensions, or slice the "
            "tensor over devices with mesh_from_shard",
            kind="shards", grid=format_grid(layout.grid), oob_val=layout.oob_val,
        )
    linear, rank = layout.linear, len(layout.shape)
    width = layout.collapsed_shape[1]
    origin = _row_of(linear, [0] * rank)
    rows: list[int] = []
    inner = 1
    for k in reversed(range(rank - 1)):
        extent = layout.shape[k]
        unit = _row_of(linear, [int(k == n) for n in range(rank)]) if extent > 1 else origin
        rows.append(unit - origin if extent > 1 else inner)
        inner = max(inner, rows[-1] * extent)
    stride = (*(n * width for n in reversed(rows)), *([1] if rank else []))
    axes = linear.initial_indices
    expected = IndexMap(axes, rows_and_columns(axes, stride, width))
    if not linear.is_equivalent_to(expected, layout.shape):
        raise LayoutError(
            "ttnn layout: {map} cannot be expressed by strides, which have all dimensions but the "
            "last as rows and the last as columns; collapse [0, -1), or split the tensor first",
            kind="shards", map=map_text(linear),
        )
    return width, stride


def _row_of(linear: IndexMap, index: list[int]) -> int:
    """Return the row of an element."""
    row = linear.map_indices(index)[0]
    assert isinstance(row, Const)
    return int(row.value)


def rows_and_columns(
    axes: Sequence[Expr], strides: Sequence[int], width: int
) -> tuple[Expr, Expr]:
    """Return row and column of an element in the physical rows."""
    if not axes:
        return index_value(0), index_value(0)
    return linear_combination(axes[:-1], [stride // width for stride in strides[:-1]]), axes[-1]


def _pages(
    pos: tuple[Expr, Expr], cut: ShardSplit, physical: tuple[int, int], banks: int
) -> tuple[Expr, ...]:
    """Return bank, page within the bank, and position within the page."""
    row, column = pos
    if cut.tile is None:
        page, count = row, physical[0]
        inside: tuple[Expr, ...] = (remainder(column, physical[1]),)
    else:
        rows, columns = cut.memref
        (y, x) = (quotient(value, t) for value, t in zip(pos, cut.tile, strict=True))
        page = y if columns == 1 else Binary(
            BinOp.ADD, Binary(BinOp.MUL, y, index_value(columns)), x)
        count = rows * columns
        in_tile = [remainder(value, t) for value, t in zip(pos, cut.tile, strict=True)]
        inside = faces(in_tile, cut.tile, cut.face)
    slots = ceil_div(count, banks)
    return (remainder(page, banks), remainder(quotient(page, banks), slots), *inside)
