"""The `Layout` class, its linear form, its description, `FixedTiledLayout`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np

from tecomp.drawing.drawable import Pictured, call_drawing_function
from tecomp.errors import LayoutError
from tecomp.ir.arith.simplify import simplify
from tecomp.ir.nodes.argument_checks import check_kind
from tecomp.ir.nodes.dtype import INT64, DType
from tecomp.ir.nodes.expr import Const, Expr, index_value
from tecomp.ir.nodes.stmt import IndexMapNode
from tecomp.layout.dma import DmaNest, Runs, copy_runs, dma_nests, host_runs
from tecomp.layout.formats.arguments import as_int_tuple, check_index_in_bounds, check_shape
from tecomp.layout.formats.format import Format
from tecomp.layout.formats.stored_tensor import (
    Index,
    StoredTensor,
    all_offsets,
    check_layout,
    offset_of,
)
from tecomp.lazy_imports import load_upward
from tecomp.poly.maps.brute_force import unravel
from tecomp.poly.maps.index_map import IndexMap

if TYPE_CHECKING:
    # Imported lazily with the first figure.
    from tecomp.drawing.svg import HtmlPage

_MAX_SHOWN_ELEMENTS = 128
_MAX_COLUMNS = 100


def formula(layout: StoredTensor) -> str:
    """Return a formula such as `(i, j) -> (j // 64, i, j % 64)`, simplified by the extents.

    A bar separates the axes of the memory.
    """
    index_map = layout.index_map
    ranges = {
        var: (Const(0, INT64), Const(extent - 1, INT64))
        for var, extent in zip(index_map.initial_indices, layout.shape, strict=True)
        if extent > 0
    }
    results = ""
    for axis, expr in enumerate(index_map.final_indices):
        separator = "" if axis == 0 else " | " if axis - 1 in layout.axis_separators else ", "
        results += f"{separator}{simplify(expr, ranges)}"
    return f"({', '.join(v.name for v in index_map.initial_indices)}) -> ({results})"


def describe_layout(layout: StoredTensor) -> str:
    """Return a multi-line description of a layout."""
    elements, num_places = layout.num_elements, layout.num_places
    lines = [
        f"{layout.dtype}{list(layout.shape)} in {layout.memory}",
        f"  {formula(layout)}",
        f"  physical  {list(layout.physical_shape)}{_stored_as(layout)}, {layout.nbytes:,} B",
    ]
    if layout.grid_axes:
        cores = prod(layout.grid_shape)
        lines.append(
            f"  grid      {list(layout.grid_shape)}: {cores:,} x {list(layout.shard_shape)}, "
            f"{layout.shard_nbytes:,} B each"
        )
    lines.append(
        f"  padding   {num_places - elements:,} of {num_places:,} places "
        f"({100 * layout.padding_share:.1f} %){_padded_with(layout)}"
    )
    return "\n".join([*lines, *(f"  {line}" for line in _table(layout))])


def _stored_as(layout: StoredTensor) -> str:
    is_same = layout.storage.name == layout.dtype
    return "" if is_same else f" as {layout.storage.name}"


def _padded_with(layout: StoredTensor) -> str:
    if not layout.padding_count:
        return ""
    return ", undefined" if layout.pad_value is None else f", {layout.pad_value}"


def _table(layout: StoredTensor) -> list[str]:
    """Return the elements of a small layout in memory order, one line per row of the last axis."""
    if not 0 < layout.num_places <= _MAX_SHOWN_ELEMENTS or not layout.shape:
        return []
    names = [["."] * layout.physical_shape[-1] for _ in range(
        layout.num_places // layout.physical_shape[-1])]
    offsets = all_offsets(layout)
    for number, offset in enumerate(offsets.flat):
        row, column = divmod(int(offset), layout.physical_shape[-1])
        names[row][column] = ",".join(map(str, unravel(number, layout.shape)))
    width = max(len(name) for row in names for name in row)
    first = len(str(layout.num_places))
    lines = [
        f"{row * layout.physical_shape[-1]:>{first}}  " + " ".join(f"{n:>{width}}" for n in cells)
        for row, cells in enumerate(names)
    ]
    return lines if max(map(len, lines)) <= _MAX_COLUMNS else []


# Referenced by name to avoid an upward import.


class CopyCompiler(Protocol):
    """Interface of the compiler of layout copies, implemented by `tecomp.driver.relayout`.

    The implementation depends on the driver, while layouts are below the compiler.
    """

    def pack_array(self, layout: Layout, array: Any, out: Any) -> np.ndarray[Any, Any]:
        """Implement `Layout.pack`."""

    def unpack_array(self, layout: Layout, array: Any, out: Any) -> np.ndarray[Any, Any]:
        """Implement `Layout.unpack`."""


def _copies() -> CopyCompiler:
    """Load the implementation of `pack` and `unpack`."""
    compiler: CopyCompiler = load_upward("layout.copies")
    return compiler


@dataclass(frozen=True, eq=False)
class Layout(StoredTensor, Pictured):
    """Layout of a tensor of known shape: an index map and a storage format.

    Attributes:
        shape: Shape of the tensor.
        dtype: Dtype of the elements.
        index_map: Map from tensor indices to physical indices. A result `x % n` declares an axis of
            extent n, even if padding fills part of the axis; any other result has the extent that
            its values require.
        storage: Storage format of the elements.
        pad_value: Value of padding; None if undefined.
        memory: Memory scope.
        grid_axes: Physical axes that enumerate cores or devices; the other axes form the shard of
            each core.

    Raises:
        LayoutError: If the map is not injective, an address is negative, or storage blocks are
            incomplete.

    Source:
        Decision 11: a layout is one index map, and a remainder declares an extent.

    >>> sticks = Layout.of((1000, 200), "float16", lambda i, j: [j // 64, i, j % 64])
    >>> sticks.physical_shape, sticks.nbytes, sticks.padding_count
    ((4, 1000, 64), 512000, 56000)
    """

    _drawn_by: ClassVar[str] = "layout:draw_layout_figure"

    @classmethod
    def of(
        cls,
        shape: Sequence[int],
        dtype: str,
        mapping: Callable[..., Sequence[Any]] | IndexMapNode,
        *,
        pad_value: float | None = None,
        memory: str = "global",
        grid_axes: Sequence[int] = (),
    ) -> Layout:
        """Build a layout from a function of the indices.

        Args:
            shape: Shape of the tensor.
            dtype: Dtype of the elements, also in memory.
            mapping: Function from tensor indices to physical indices, with `te.AXIS_SEPARATOR`
                between the axes of the memory, or an index map.
            pad_value: Value of padding. Default: undefined.
            memory: Memory scope.
            grid_axes: Physical axes that enumerate cores.

        >>> Layout.of((1000, 200), "float16", lambda i, j: [j // 64, i, j % 64]).physical_shape
        (4, 1000, 64)
        """
        check_shape(shape)
        index_map = (
            IndexMap.lift(mapping)
            if isinstance(mapping, IndexMapNode)
            else IndexMap.from_func(mapping, ndim=len(shape))
        )
        return Layout(
            tuple(shape), DType(dtype), index_map, Format.plain(dtype),
            pad_value, memory, as_int_tuple(grid_axes, "layout: grid_axes"),
        )

    @classmethod
    def row_major(
        cls, shape: Sequence[int], dtype: str, order: Sequence[int] | None = None
    ) -> Layout:
        """Build a row-major layout, optionally with permuted axes.

        Args:
            shape: Shape of the tensor.
            dtype: Dtype of the elements.
            order: Axis numbers in order of decreasing strides. Default: the order of the tensor.

        Raises:
            LayoutError: If `order` is not a permutation of the axes.

        >>> Layout.row_major((4, 6), "int8").offset((1, 0))
        6
        >>> Layout.row_major((4, 6), "int8", order=[1, 0]).offset((1, 0))
        1
        """
        check_shape(shape)
        axes = range(len(shape)) if order is None else as_int_tuple(order, "layout: the order")
        if sorted(axes) != list(range(len(shape))):
            raise LayoutError(
                "layout: the order {axes!r} is not a permutation of the {rank} axes; pass each "
                "axis number once, by decreasing stride",
                axes=list(axes), rank=len(shape),
            )
        return cls.of(shape, dtype, lambda *index: [index[k] for k in axes] or [0])

    def __str__(self) -> str:
        return self.describe()

    def describe(self) -> str:
        """Describe the formula, physical shape, size, padding and, if small, the memory contents.

        >>> print(Layout.of((2, 6), "int8", lambda i, j: [j // 4, i, j % 4]).describe())
        int8[2, 6] in global
          (i, j) -> (j // 4, i, j % 4)
          physical  [2, 2, 4], 16 B
          padding   4 of 16 places (25.0 %), undefined
           0  0,0 0,1 0,2 0,3
           4  1,0 1,1 1,2 1,3
           8  0,4 0,5   .   .
          12  1,4 1,5   .   .
        """
        return describe_layout(self)

    def explore(self) -> HtmlPage:
        """Build an interactive HTML page that maps elements to physical indices, cores and bytes.

        The page can also change the shape and sizes such as those of sticks, tiles and shards.

        Returns:
            A self-contained HTML page; `.save("x.html")` writes it, and notebooks display it.

        Raises:
            LayoutError: If the layout has no elements.

        >>> page = Layout.of((2, 6), "int8", lambda i, j: [j // 4, i, j % 4]).explore()
        >>> "<html" in str(page)
        True
        """
        page: HtmlPage = call_drawing_function("layout_explorer:explorer_page", self)
        return page

    def place(self, index: Sequence[int]) -> Index:
        """Return the physical index of the element at `index`.

        Raises:
            LayoutError: If `index` is out of bounds.

        >>> Layout.of((1000, 200), "float16", lambda i, j: [j // 64, i, j % 64]).place((3, 130))
        (2, 3, 2)
        """
        position = check_index_in_bounds(index, self.shape, "element")
        return _numbers(self.index_map.map_indices(position))

    def offset(self, index: Sequence[int]) -> int:
        """Return the row-major physical offset of the element at `index`, in elements.

        >>> Layout.of((1000, 200), "float16", lambda i, j: [j // 64, i, j % 64]).offset((3, 130))
        128194
        """
        return int(offset_of(self.place(index), self.physical_shape))

    def element(self, place: Sequence[int]) -> Index | None:
        """Return the tensor index of the element at a physical index; None for padding.

        Raises:
            LayoutError: If `place` is out of bounds.

        >>> sticks = Layout.of((1000, 200), "float16", lambda i, j: [j // 64, i, j % 64])
        >>> sticks.element((3, 0, 7)), sticks.element((3, 0, 8))
        ((0, 199), None)
        """
        position = check_index_in_bounds(place, self.physical_shape, "place")
        index = _numbers(self.inverse.map_indices(position))
        if not all(0 <= n < extent for n, extent in zip(index, self.shape, strict=True)):
            return None
        return index if self.place(index) == position else None

    def is_equivalent_to(self, other: Layout) -> bool:
        """Return whether two layouts have equal shapes, storage formats and element addresses.

        Raises:
            LayoutError: If `other` is not a layout.

        >>> plain = Layout.row_major((4, 6), "int8")
        >>> plain.is_equivalent_to(Layout.of((4, 6), "int8", lambda a, b: [a, b]))
        True
        >>> plain.is_equivalent_to(Layout.row_major((4, 6), "int8", order=[1, 0]))
        False
        """
        check_layout(other, "layout.is_equivalent_to")
        return (
            self.shape == other.shape
            and self.physical_shape == other.physical_shape
            and self.storage == other.storage
            and self.index_map.is_equivalent_to(other.index_map, self.shape)
        )

    def offsets(self) -> np.ndarray[Any, np.dtype[np.int64]]:
        """Return the row-major physical offset of every element, in the shape of the tensor.

        >>> Layout.of((2, 6), "int8", lambda i, j: [j // 4, i, j % 4]).offsets()
        array([[ 0,  1,  2,  3,  8,  9],
               [ 4,  5,  6,  7, 12, 13]])
        """
        return all_offsets(self)

    def pack(self, array: Any, out: Any = None) -> np.ndarray[Any, Any]:
        """Copy a NumPy array into this layout, with a compiled kernel.

        Args:
            array: Array of shape `shape`, with any strides.
            out: Array that receives the result, of shape `storage_shape`. Default: a new array.

        Returns:
            `out`, or the new array. Padding holds the pad value; if undefined, a new array holds 0.

        Raises:
            CallError: If an array does not match the layout.

        >>> sticks = Layout.of((2, 6), "int32", lambda i, j: [j // 4, i, j % 4])
        >>> sticks.pack(np.arange(12, dtype="int32").reshape(2, 6))[1]
        array([[ 4,  5,  0,  0],
               [10, 11,  0,  0]], dtype=int32)
        """
        return _copies().pack_array(self, array, out)

    def unpack(self, array: Any, out: Any = None) -> np.ndarray[Any, Any]:
        """Copy an array in this layout into a NumPy array, with a compiled kernel.

        Args:
            array: Array of shape `storage_shape`.
            out: Array that receives the elements, with any strides. Default: a new array.

        Returns:
            `out`, or the new array, of shape `shape`.

        Raises:
            CallError: If an array does not match the layout.

        >>> sticks = Layout.of((2, 6), "int32", lambda i, j: [j // 4, i, j % 4])
        >>> sticks.unpack(sticks.pack(np.arange(12, dtype="int32").reshape(2, 6)))
        array([[ 0,  1,  2,  3,  4,  5],
               [ 6,  7,  8,  9, 10, 11]], dtype=int32)
        """
        return _copies().unpack_array(self, array, out)

    def dma(
        self,
        host_strides: Sequence[int] | None = None,
        host_offset: int = 0,
        *,
        start: Sequence[int] | None = None,
        extents: Sequence[int] | None = None,
    ) -> tuple[DmaNest, ...]:
        r"""Return DMA loop nests with constant strides that copy each element once, but no padding.

        Args:
            host_strides: Host stride of each tensor axis in elements; 0 broadcasts, a negative
                stride runs backwards. Default: row-major.
            host_offset: Host offset of element 0.
            start: Start of the box of elements to copy. Default: 0 on all axes.
            extents: Extents of the box. Default: up to the end of each axis.

        Returns:
            Nests in order of their device offset, with loops in order of decreasing device strides.
            Full tiles and remainders are separate nests.

        Raises:
            LayoutError: If an argument does not match the tensor, or more than 1024 nests are
                needed.

        >>> sticks = Layout.of((1000, 200), "float16", lambda i, j: [j // 64, i, j % 64])
        >>> print(*sticks.dma(), sep="\n")
        ((3, 1000, 64), (64000, 64, 1), (64, 200, 1))
        ((1, 1000, 8), (64000, 64, 1), (64, 200, 1)) from host 192 to device 192000
        """
        return dma_nests(self, host_strides, host_offset, start, extents)

    def runs(
        self,
        host_strides: Sequence[int] | None = None,
        *,
        start: Sequence[int] | None = None,
        extents: Sequence[int] | None = None,
    ) -> Runs:
        """Return the contiguous runs of a copy to or from the host.

        Args:
            host_strides: Host stride of each tensor axis in elements; 0 broadcasts, a negative
                stride runs backwards. Default: row-major.
            start: Start of the box of elements to copy. Default: 0 on all axes.
            extents: Extents of the box. Default: up to the end of each axis.

        Raises:
            LayoutError: If an argument does not match the tensor.

        >>> sticks = Layout.of((1000, 200), "float16", lambda i, j: [j // 64, i, j % 64])
        >>> print(sticks.runs())
        4,000 runs of 8 to 64 elements, median 64, all multiples of 8, by sets
        """
        return host_runs(self, host_strides, start, extents)

    def runs_to(
        self,
        target: Layout,
        *,
        start: Sequence[int] | None = None,
        extents: Sequence[int] | None = None,
    ) -> Runs:
        """Return the contiguous runs of a copy of the tensor, or of a box, into another layout.

        Args:
            target: Destination layout.
            start: Start of the box of elements to copy. Default: 0 on all axes.
            extents: Extents of the box. Default: up to the end of each axis.

        Raises:
            LayoutError: If the shapes of the layouts differ, or the box is out of bounds.

        >>> rows = Layout.row_major((1000, 200), "float16")
        >>> sticks = Layout.of((1000, 200), "float16", lambda i, j: [j // 64, i, j % 64])
        >>> print(rows.runs_to(sticks))
        4,000 runs of 8 to 64 elements, median 64, all multiples of 8, by sets
        """
        return copy_runs(self, target, start, extents)


def _numbers(exprs: Sequence[Expr]) -> Index:
    numbers = tuple(int(e.value) for e in exprs if isinstance(e, Const))
    assert len(numbers) == len(exprs)
    return numbers


@dataclass(frozen=True, slots=True)
class FixedTiledLayout(Pictured):
    """A tensor on the host together with its device layout.

    A view has its own size and strides, and the device layout of the viewed tensor.

    Attributes:
        size: Shape of the tensor.
        stride: Host stride of each axis, in elements.
        device_layout: Layout on the device.

    Raises:
        LayoutError: If `size` and `stride` differ in length, or `device_layout` is not a layout.

    Source:
        RFC 0047, Tensors with Device-Specific Layouts.

    >>> from tecomp import StickLayout
    >>> tiled = FixedTiledLayout((2, 6), (6, 1), StickLayout((2, 6), "float16"))
    >>> tiled.size, tiled.stride, tiled.padding, tiled.device_layout.device_size
    ((2, 6), (6, 1), None, [1, 64, 64])
    """

    _drawn_by: ClassVar[str] = "layout:draw_tiled_layout"

    size: tuple[int, ...]
    stride: tuple[int, ...]
    device_layout: Layout

    def __post_init__(self) -> None:
        check_shape(self.size)
        object.__setattr__(self, "size", as_int_tuple(self.size, "FixedTiledLayout: the size"))
        object.__setattr__(
            self, "stride", as_int_tuple(self.stride, "FixedTiledLayout: the strides")
        )
        if len(self.size) != len(self.stride):
            raise LayoutError(
                "FixedTiledLayout: size {size!r} has {size_count} dimensions, but stride "
                "{stride!r} has {stride_count}; pass one stride per dimension",
                kind="count-mismatch", size=list(self.size), size_count=len(self.size),
                stride=list(self.stride), stride_count=len(self.stride),
            )
        check_kind(
            self.device_layout, Layout, "FixedTiledLayout: device_layout",
            "create one, for example with StickLayout(size, dtype)", LayoutError,
        )

    @property
    def padding(self) -> float | None:
        """Value of padding on the device; None if undefined."""
        return self.device_layout.pad_value

    def __str__(self) -> str:
        device = self.device_layout
        text = repr(device) if type(device) is not Layout else f"Layout({device.index_map})"
        return (
            f"FixedTiledLayout(size={list(self.size)}, stride={list(self.stride)}, "
            f"device_layout={text})"
        )

    __repr__ = __str__


def linear_map(layout: Layout) -> IndexMap:
    """Return the map from a tensor index to its row-major physical offset."""
    total = index_value(offset_of(layout.index_map.final_indices, layout.physical_shape))
    return IndexMap(layout.index_map.initial_indices, (total,), ())


def same_memory(a: Layout, b: Layout) -> bool:
    """Return whether two layouts of one tensor have equal linear addresses, however axes are split.

    >>> tiles = Layout.of((8, 128), "float32", lambda i, j: [i // 4, i % 4, j])
    >>> same_memory(tiles, Layout.row_major((8, 128), "float32"))
    True
    """
    return (
        a.shape == b.shape
        and a.storage == b.storage
        and a.num_places == b.num_places
        and linear_map(a).is_equivalent_to(linear_map(b), a.shape)
    )
