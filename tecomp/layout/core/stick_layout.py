"""The `StickLayout` class."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from inspect import signature
from typing import Any, overload

from tecomp.errors import LayoutError
from tecomp.ir.arith.extents import ceil_div
from tecomp.ir.nodes.expr import Expr, Var, index_value
from tecomp.layout.core.layout import Layout
from tecomp.layout.core.stick_formats import (
    PAD_ALL_DIMS,
    STICK_BYTES,
    DataFormats,
    ElementArrangement,
    StickFormat,
    StickSpec,
    block_extents,
    default_spec,
    dim_map_of,
    from_fields,
    from_order,
)
from tecomp.layout.core.target_limits import check_room, check_target, element_of
from tecomp.layout.formats.arguments import as_int_tuple, remainder
from tecomp.layout.formats.stored_tensor import row_major
from tecomp.machine.descriptor import Target
from tecomp.poly.maps.index_map import IndexMap

Dense = StickFormat.Dense
Sparse = StickFormat.Sparse


@dataclass(frozen=True, eq=False, init=False, repr=False)
class StickLayout(Layout):
    """Layout in sticks: fixed-size groups of elements of one dimension, in tiles.

    The device dimensions are the tensor dimensions, with the stick dimension split into the number
    of sticks and the lanes of a stick, which come last. Slots outside the tensor are padding. A
    stick of several dimensions (`num_stick_dims`) is a small block, whose extents are the last
    device dimensions. There are three ways to construct a layout:

    * `StickLayout(size, dtype, pad_all_dims=True)`: sticks along the last dimension, tiles along
      the first; all dimensions except those of extent 1, or only the last, are padded to whole
      sticks.
    * `StickLayout(padded_size, dtype, dim_order, format=Dense)`: sticks along the last dimension of
      the order, tiles along its first, with given padding.
    * `StickLayout(device_size, dim_map, num_stick_dims, format, device_dtype)`: the fields.

    In the first two forms, the last `num_stick_dims` dimensions share a stick in the most even
    block, such as 8 by 8 of 64 elements.

    In the last two forms, the tensor has shape `size`. Default: the padded size; a layout without
    `size` adopts the shape of the tensor to which it is applied in `tecomp.compile` or for arrays.

    Tensors of 8-bit floats are float16 on the host, which represents all their values. int64 is
    stored as int32, with a warning.

    Attributes:
        format: Dense, or Sparse with one element per stick.
        device_dtype: Dtype in device memory.
        elems_in_stick: Number of lanes of a stick.
        stick_bytes: Size of a stick in bytes.
        arrangement: Order of the elements in their sticks.

    Source:
        Spyre tensors (torch-spyre); RFC 0047, Tensors with Device-Specific Layouts.

    >>> sticks = StickLayout((5, 100, 150), "float16", pad_all_dims=False)
    >>> sticks.device_size, sticks.dim_map, sticks.num_stick_dims
    ([100, 3, 5, 64], [1, 2, 0, 2], 1)
    >>> sticks.format.name, sticks.device_dtype.name, sticks.elems_in_stick, sticks.stick_bytes
    ('Dense', 'SEN169_FP16', 64, 128)
    >>> sticks.arrangement.name
    'STANDARD'
    """

    format: StickFormat = field(init=False)
    device_dtype: DataFormats = field(init=False)
    elems_in_stick: int = field(init=False)
    stick_bytes: int = field(init=False)
    arrangement: ElementArrangement = field(init=False)
    _dim_map: tuple[int, ...] = field(init=False)
    _is_sized: bool = field(init=False)

    @overload
    def __init__(
        self,
        size: Sequence[int],
        dtype: object,
        pad_all_dims: bool = PAD_ALL_DIMS,
        *,
        num_stick_dims: int = 1,
        stick_bytes: int = STICK_BYTES,
        arrangement: ElementArrangement = ...,
        pad_value: float | None = None,
        memory: str = "global",
    ) -> None: ...

    @overload
    def __init__(
        self,
        padded_size: Sequence[int],
        dtype: object,
        dim_order: Sequence[int],
        format: StickFormat = ...,
        *,
        num_stick_dims: int = 1,
        size: Sequence[int] | None = None,
        stick_bytes: int = STICK_BYTES,
        arrangement: ElementArrangement = ...,
        pad_value: float | None = None,
        memory: str = "global",
    ) -> None: ...

    @overload
    def __init__(
        self,
        device_size: Sequence[int],
        dim_map: Sequence[int],
        num_stick_dims: int,
        format: StickFormat,
        device_dtype: DataFormats,
        *,
        size: Sequence[int] | None = None,
        dtype: object = None,
        stick_bytes: int = STICK_BYTES,
        arrangement: ElementArrangement = ...,
        pad_value: float | None = None,
        memory: str = "global",
    ) -> None: ...

    def __init__(
        self,
        *args: Any,
        arrangement: ElementArrangement = ElementArrangement.STANDARD,
        pad_value: float | None = None,
        memory: str = "global",
        **fields: Any,
    ) -> None:
        """Compute the index map.

        Raises:
            LayoutError: If the arguments are inconsistent, or the device does not support the
                dtype.
        """
        form = _form(args, fields)
        _check_arguments(form, args, fields)
        sticks = form(*args, **fields)
        index_map = _index_map(sticks, arrangement)
        for name, value in (
            ("format", sticks.format),
            ("device_dtype", sticks.device_dtype),
            ("elems_in_stick", sticks.elems_in_stick),
            ("stick_bytes", fields.get("stick_bytes", STICK_BYTES)),
            ("arrangement", arrangement),
            ("_dim_map", sticks.dim_map),
            ("_is_sized", sticks.is_sized),
        ):
            object.__setattr__(self, name, value)
        super().__init__(
            sticks.size, sticks.dtype, index_map, sticks.device_dtype.storage, pad_value, memory
        )

    @classmethod
    def for_target(
        cls, target: Target, *args: Any, memory: str = "global", **fields: Any
    ) -> StickLayout:
        """Build the layout with the stick size and the padding of a target.

        Args:
            target: Target with sticks.
            args: As for the constructor.
            memory: Memory of the target that holds the tensor.
            fields: As for the constructor, except `stick_bytes`.

        Raises:
            LayoutError: If the target does not store the dtype in the format of sticks.
            TargetError: If the target has no sticks, or no such memory.
            CapacityError: If the tensor does not fit into the memory.

        >>> stick128 = Target.load("stick128")
        >>> StickLayout.for_target(stick128, (512, 256), "float16", memory="ddr").device_size
        [4, 512, 64]
        """
        check_target(target, "stick layout")
        options: dict[str, Any] = {"stick_bytes": target.stick_bytes, "memory": memory}
        target.memory(memory)
        is_padded = len(args) > 2 or "pad_all_dims" in fields
        if target.stick is not None and not is_padded and _form(args, fields) is default_spec:
            options["pad_all_dims"] = target.stick.padding == "all"
        layout = cls(*args, **(fields | options))
        element_of(target, layout.dtype, layout.storage.name)
        check_room(layout, target)
        return layout

    @property
    def device_size(self) -> list[int]:
        """Extents of the device dimensions: the physical shape."""
        return list(self.physical_shape)

    @property
    def dim_map(self) -> list[int]:
        """Tensor dimension of each device dimension."""
        return list(self._dim_map)

    @property
    def num_stick_dims(self) -> int:
        """Number of dimensions that contribute elements to a stick.

        >>> blocks = StickLayout([4, 32, 8, 8], [0, 1, 0, 1], 2, Dense, DataFormats.SEN169_FP16)
        >>> blocks.shape, blocks.num_stick_dims, blocks.place((9, 3))
        ((32, 256), 2, (1, 0, 1, 3))
        """
        return len(self._dim_map) - len(self.shape) if self.shape else 1

    def with_size(self, size: Sequence[int]) -> StickLayout:
        """Return the same device dimensions for a tensor of another size.

        Args:
            size: Size of the tensor, at most the padded size of the layout.

        Raises:
            LayoutError: If `size` has another rank, or an extent exceeds its padded extent.

        >>> StickLayout((5, 128, 192), "float16", [0, 1, 2]).with_size((5, 100, 150)).padding_count
        47880
        """
        return StickLayout(
            self.device_size, self.dim_map, self.num_stick_dims, self.format, self.device_dtype,
            size=size, dtype=self.dtype, stick_bytes=self.stick_bytes,
            arrangement=self.arrangement, pad_value=self.pad_value, memory=self.memory,
        )

    @property
    def device_strides(self) -> list[int]:
        """Stride of each device dimension in device memory, in elements.

        >>> StickLayout((1024, 256), "float16").device_strides
        [65536, 64, 1]
        """
        return list(row_major(self.physical_shape))

    def stride_map(self, host_strides: Sequence[int] | None = None) -> list[int]:
        """Return the host stride of each device dimension, in elements.

        Args:
            host_strides: Host strides of the tensor in elements. Default: row-major.

        Returns:
            One stride per device dimension; -1 for dimensions of extent 1 and for sparse sticks,
            which have no next element.

        Raises:
            LayoutError: If the number of strides is wrong, or the arrangement is not STANDARD.

        >>> StickLayout((1024, 256), "float16").stride_map()
        [64, 256, 1]
        """
        strides = row_major(self.shape) if host_strides is None else as_int_tuple(
            host_strides, "stick layout: host_strides"
        )
        if len(strides) != len(self.shape):
            raise LayoutError(
                "stick layout: host_strides {strides} has {stride_count} strides for the {rank} "
                "dimensions of {shape}; pass one per dimension",
                kind="sticks", strides=list(strides), stride_count=len(strides),
                rank=len(self.shape), shape=list(self.shape),
            )
        if self.arrangement is not ElementArrangement.STANDARD:
            raise LayoutError(
                "stick layout: elements in {arrangement} arrangement cannot be expressed by "
                "strides; use dma, or place",
                kind="sticks", arrangement=self.arrangement,
            )
        if not self.shape:
            return [-1]
        if self.format is Sparse:
            return [*(_stride(strides, self.shape, dim) for dim in self._dim_map[:-1]), -1]
        rank = len(self.shape)
        lanes = dict(zip(self._dim_map[rank:], self.physical_shape[rank:], strict=True))
        outer = [_stride(strides, self.shape, d, lanes.get(d, 1)) for d in self._dim_map[:rank]]
        return [*outer, *(_stride(strides, self.shape, dim) for dim in lanes)]

    def host_dim_order(self) -> list[int]:
        """Return the `dim_order` that constructs this layout, with the stick dimension last.

        Raises:
            LayoutError: If no `dim_order` constructs this layout.

        >>> StickLayout((5, 100, 192), "float16", [1, 0, 2]).host_dim_order()
        [1, 0, 2]
        """
        rank, count = len(self.shape), self.num_stick_dims
        order = [*self._dim_map[rank - 1 : rank], *self._dim_map[: rank - 1]] if rank else []
        block = block_extents(self.elems_in_stick, count)
        if count > 1 and self.physical_shape[rank:] != block:
            raise LayoutError(
                "stick layout: sticks of {lanes} cannot be expressed as a dim_order, whose sticks "
                "are blocks of {block}",
                kind="sticks", lanes=list(self.physical_shape[rank:]), block=list(block),
            )
        if dim_map_of(order, count) != self._dim_map:
            raise LayoutError(
                "stick layout: dim_map {dim_map} cannot be expressed as a dim_order; the dim_map "
                "of {order} is {dim_map_of}",
                kind="sticks", dim_map=self.dim_map, order=order,
                dim_map_of=list(dim_map_of(order, count)),
            )
        return order

    @cached_property
    def _key(self) -> tuple[object, ...]:
        fields = (self.format, self.device_dtype, self.stick_bytes, self.arrangement, self._dim_map)
        return (*super()._key, *fields)

    def __str__(self) -> str:
        arranged = (
            ""
            if self.arrangement is ElementArrangement.STANDARD
            else f", element_arrangement={self.arrangement}"
        )
        # The blank before the equals sign is as in torch-spyre.
        return (
            f"SpyreTensorLayout(device_size={self.device_size}, dim_map ={self.dim_map}, "
            f"num_stick_dims={self.num_stick_dims}, format={self.format}, "
            f"device_dtype={self.device_dtype}{arranged})"
        )

    __repr__ = __str__


SpyreTensorLayout = StickLayout


def _check_arguments(form: Any, args: tuple[Any, ...], fields: dict[str, Any]) -> None:
    """Check the arguments of a constructor form; messages use the parameter names of that form."""
    expected = signature(form)
    try:
        expected.bind(*args, **fields)
    except TypeError as error:
        names = ", ".join(expected.parameters)
        raise LayoutError(
            'stick layout: {reason}; this constructor form takes {names}, e.g. StickLayout((1024, '
            '256), "float16")',
            kind="sticks", reason=error, names=names,
        ) from None


def _form(args: tuple[Any, ...], fields: dict[str, Any]) -> Any:
    """Return the constructor form that the arguments select."""
    if "device_size" in fields or "dim_map" in fields or (
        len(args) > 1 and isinstance(args[1], list | tuple)
    ):
        return from_fields
    third = args[2] if len(args) > 2 else fields.get("dim_order")
    is_ordered = "padded_size" in fields or (third is not None and not isinstance(third, bool))
    return from_order if is_ordered else default_spec


def _index_map(sticks: StickSpec, arrangement: ElementArrangement) -> IndexMap:
    axes = tuple(Var(f"i{dim}") for dim in range(len(sticks.size)))
    lanes = sticks.elems_in_stick
    if not axes:
        return IndexMap((), (remainder(index_value(0), lanes),))
    rank, lane_extents = len(axes), sticks.lanes
    if sticks.num_stick_dims > 1:
        _check_standard(arrangement, sticks.num_stick_dims)
        tiles = {dim: axes[dim] // extent for dim, extent in lane_extents.items()}
        in_stick = [remainder(axes[dim], extent) for dim, extent in lane_extents.items()]
    else:
        stick = sticks.dim_map[-1]
        tile, lane = _parts(axes[stick], sticks, arrangement)
        tiles, in_stick = {stick: tile}, [lane]
    results = []
    for dim, size in zip(sticks.dim_map[:rank], sticks.device_size[:rank], strict=True):
        expr: Expr = tiles.get(dim, axes[dim])
        known = ceil_div(sticks.size[dim], lane_extents.get(dim, 1))
        is_plain = size == known and arrangement is ElementArrangement.STANDARD
        results.append(expr if is_plain or size == 0 else remainder(expr, size))
    return IndexMap(axes, (*results, *in_stick))


def with_tensor_shape(layout: Layout, shape: Sequence[int] | None) -> Layout:
    """Return a layout with the shape of the tensor to which it is applied.

    A `StickLayout` constructed from its padded size without `size` adopts `shape`. Any other layout
    is returned unchanged, and so is a layout that is too small, for which the caller reports the
    shape mismatch.
    """
    if not isinstance(layout, StickLayout) or layout._is_sized or shape is None:
        return layout
    padded = layout.shape
    if len(padded) != len(shape) or any(
        extent > padded_extent for extent, padded_extent in zip(shape, padded, strict=True)
    ):
        return layout
    return layout.with_size(shape)


def _stride(strides: Sequence[int], shape: Sequence[int], dim: int, count: int = 1) -> int:
    """Return the host stride of a device dimension; -1 for a dimension of extent 1."""
    return -1 if shape[dim] == 1 else strides[dim] * count


def _check_standard(arrangement: ElementArrangement, count: int) -> None:
    """Check that the arrangement is STANDARD for sticks of several dimensions."""
    if arrangement is not ElementArrangement.STANDARD:
        raise LayoutError(
            "stick layout: {arrangement} orders the elements of one dimension, but num_stick_dims "
            "is {count}; use sticks of one dimension",
            kind="sticks", arrangement=arrangement, count=count,
        )


def _parts(i: Var, sticks: StickSpec, arrangement: ElementArrangement) -> tuple[Expr, Expr]:
    """Return the stick and the lane of an element of the stick dimension."""
    lanes = sticks.elems_in_stick
    if sticks.format is Sparse:
        if arrangement is not ElementArrangement.STANDARD:
            raise LayoutError(
                "stick layout: a sparse stick has one element, but {arrangement} requires {lanes}; "
                "use StickFormat.Dense",
                kind="sticks", arrangement=arrangement, lanes=lanes,
            )
        return i, remainder(index_value(0), lanes)
    if arrangement is ElementArrangement.STANDARD:
        return i // lanes, i % lanes
    if lanes % 8:
        raise LayoutError(
            "stick layout: {arrangement} permutes groups of 4 and 8 elements, but a stick has "
            "{lanes}; use a stick of whole groups",
            kind="sticks", arrangement=arrangement, lanes=lanes,
        )
    if arrangement is ElementArrangement.FP32_TO_DL16:
        half = lanes // 2
        return i // lanes, i // 4 % (lanes // 8) * 8 + i // half % 2 * 4 + i % 4
    tiles = sticks.device_size[sticks.dim_map.index(sticks.dim_map[-1])]
    if tiles % 2:
        raise LayoutError(
            "stick layout: {arrangement} requires an even number of sticks, got {tiles}; pad the "
            "stick dimension to {limit}",
            kind="sticks", arrangement=arrangement, tiles=tiles, limit=(tiles + 1) * lanes,
        )
    return i // (2 * lanes) * 2 + i // 4 % 2, i // 8 % (lanes // 4) * 4 + i % 4
