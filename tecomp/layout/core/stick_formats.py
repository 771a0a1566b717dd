"""Stick sizes, arrangements and device dtypes."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum
from math import prod
from operator import index
from typing import Any

import numpy as np

from tecomp.errors import LayoutError, TypeMismatchError, safe_str
from tecomp.ir.arith.extents import round_up
from tecomp.ir.nodes.argument_checks import as_int, check_kind
from tecomp.ir.nodes.dtype import DType
from tecomp.layout.formats.arguments import as_int_tuple, check_shape
from tecomp.layout.formats.format import Format
from tecomp.layout.formats.registry import (
    DLFLOAT16,
    FLOAT8_E4M3FN,
    FLOAT8_E5M2FNUZ,
    INT4,
    PackedInt,
)


class DataFormats(Enum):
    r"""Dtypes in device memory, with the names of torch-spyre.

    >>> DataFormats.SEN169_FP16.storage.name, DataFormats.SEN169_FP16.host_dtype
    ('dlfloat16', 'float16')
    >>> print(*(each.name for each in DataFormats), sep="\n")
    SEN169_FP16
    BFLOAT16
    IEEE_FP32
    IEEE_INT32
    SENINT16
    SENINT8
    SENUINT32
    SEN143_FP8
    SEN152_FP8
    SENINT4
    SENINT2
    SENUINT2
    SENINT24
    SEN153_FP9
    """

    SEN169_FP16 = "float of 1, 6, 9 bits (sign, exponent, fraction): DLFloat16"
    BFLOAT16 = "bfloat16"
    IEEE_FP32 = "float32"
    IEEE_INT32 = "int32"
    SENINT16 = "int16"
    SENINT8 = "int8"
    SENUINT32 = "uint32"
    SEN143_FP8 = "float of 1, 4, 3 bits"
    SEN152_FP8 = "float of 1, 5, 2 bits"
    SENINT4 = "4-bit integer"
    SENINT2 = "2-bit integer"
    SENUINT2 = "unsigned 2-bit integer"
    SENINT24 = "24-bit integer"
    SEN153_FP9 = "float of 1, 5, 3 bits"

    @property
    def storage(self) -> Format:
        """Storage format of the elements.

        Raises:
            LayoutError: If the format is not publicly documented.
        """
        if self not in _STORED:
            raise LayoutError(
                "stick layout: the arrangement of {subject} in sticks is not publicly documented; "
                "supported formats: {stored}",
                kind="sticks", subject=self, stored=", ".join(known.name for known in _STORED),
            )
        return _STORED[self][0]

    @property
    def host_dtype(self) -> DType:
        """Default host dtype of the elements."""
        assert self.storage
        return DType(_STORED[self][1])


# Storage format and default host dtype of each device dtype. No host dtype computes with 8-bit
# floats; float16 represents all values of both.
_STORED: dict[DataFormats, tuple[Format, str]] = {
    DataFormats.SEN169_FP16: (DLFLOAT16, "float16"),
    DataFormats.BFLOAT16: (Format.plain("bfloat16"), "bfloat16"),
    DataFormats.IEEE_FP32: (Format.plain("float32"), "float32"),
    DataFormats.IEEE_INT32: (Format.plain("int32"), "int32"),
    DataFormats.SENINT16: (Format.plain("int16"), "int16"),
    DataFormats.SENINT8: (Format.plain("int8"), "int8"),
    DataFormats.SENUINT32: (Format.plain("uint32"), "uint8"),
    DataFormats.SEN143_FP8: (FLOAT8_E4M3FN, "float16"),
    DataFormats.SEN152_FP8: (FLOAT8_E5M2FNUZ, "float16"),
    DataFormats.SENINT4: (INT4, "int8"),
    DataFormats.SENINT2: (PackedInt.of(2, signed=True), "int8"),
    DataFormats.SENUINT2: (PackedInt.of(2, signed=False), "uint8"),
}

_OF_HOST: dict[str, tuple[DataFormats, str]] = {
    "float16": (DataFormats.SEN169_FP16, "float16"),
    "bfloat16": (DataFormats.BFLOAT16, "bfloat16"),
    "float32": (DataFormats.IEEE_FP32, "float32"),
    "int32": (DataFormats.IEEE_INT32, "int32"),
    "int64": (DataFormats.IEEE_INT32, "int64"),
    "int16": (DataFormats.SENINT16, "int16"),
    "int8": (DataFormats.SENINT8, "int8"),
    "bool": (DataFormats.SEN169_FP16, "bool"),
    "float8_e4m3fn": (DataFormats.SEN143_FP8, "float16"),
    "float8_e5m2fnuz": (DataFormats.SEN152_FP8, "float16"),
    "uint8": (DataFormats.SENUINT32, "uint8"),
    "quint8": (DataFormats.SENUINT32, "uint8"),
}


def types_of(dtype: object) -> tuple[DataFormats, DType]:
    """Return the device dtype for a host dtype, and the dtype to compute with.

    Args:
        dtype: Name, NumPy dtype, or an object whose string ends with its name, such as
            `torch.float16`.

    Raises:
        LayoutError: If the device does not support the dtype.
    """
    name = name_of_type(dtype)
    if name not in _OF_HOST:
        raise LayoutError(
            "stick layout: Spyre backend does not support dtype {name}; supported dtypes: "
            "{of_host}",
            kind="sticks", name=name, of_host=", ".join(_OF_HOST),
        )
    device, host = _OF_HOST[name]
    return device, DType(host)


def name_of_type(dtype: Any) -> str:
    """Return the name of a dtype of any library.

    >>> name_of_type("float16"), name_of_type(np.float16), name_of_type(np.dtype("int8"))
    ('float16', 'float16', 'int8')
    """
    if isinstance(dtype, str):
        return dtype.rpartition(".")[2]
    if isinstance(dtype, np.dtype | type):
        try:
            return np.dtype(dtype).name
        except TypeError:
            return dtype.__name__ if isinstance(dtype, type) else str(dtype)
    return safe_str(dtype).rpartition(".")[2]


def check_host_dtype(dtype: object) -> DType:
    """Return the dtype to compute with, given a dtype of any library.

    Raises:
        LayoutError: If the dtype is unsupported.
    """
    try:
        return DType(name_of_type(dtype))
    except TypeMismatchError as error:
        raise LayoutError(
            "stick layout: {reason}",
            kind=error.kind, reason=error.message,
        ) from None


STICK_BYTES = 128
"""Default size of a stick in bytes."""

PAD_ALL_DIMS = True
"""Default of `pad_all_dims`: whether all dimensions are padded to whole sticks.

The specification requires it; the code published with it (c5f8ce3) pads the last one only.
"""


class StickFormat(Enum):
    """Occupancy of sticks.

    >>> from tecomp import StickLayout
    >>> full = StickLayout((64, 64), "float16", [0, 1], StickFormat.Dense)
    >>> one = StickLayout((64, 64), "float16", [0, 1], StickFormat.Sparse)
    >>> full.device_size, one.device_size
    ([1, 64, 64], [64, 64, 64])
    """

    Dense = "all lanes hold elements"
    Sparse = "one element in lane 0: the result of a reduction along the sticks"


class ElementArrangement(Enum):
    """Order of the elements in the sticks of their dimension."""

    STANDARD = "index order"
    DL16_TO_FP32 = "after a conversion from 16 to 32 bits: groups of four alternate between sticks"
    FP32_TO_DL16 = "after a conversion from 32 to 16 bits: elements alternate between stick halves"


@dataclass(frozen=True)
class StickSpec:
    """Fields of a stick layout.

    Attributes:
        size: Shape of the tensor.
        dtype: Host dtype of the elements.
        device_size: Physical shape.
        dim_map: Tensor dimension of each device dimension.
        format: Whether sticks are dense or sparse.
        device_dtype: Dtype in device memory.
        elems_in_stick: Number of lanes of a stick.
        is_sized: Whether the tensor size was given in addition to the padded size.
    """

    size: tuple[int, ...]
    dtype: DType
    device_size: tuple[int, ...]
    dim_map: tuple[int, ...]
    format: StickFormat
    device_dtype: DataFormats
    elems_in_stick: int
    is_sized: bool = True

    @property
    def num_stick_dims(self) -> int:
        """Number of dimensions that contribute elements to a stick."""
        return len(self.dim_map) - len(self.size) if self.size else 1

    @property
    def lanes(self) -> dict[int, int]:
        """Extent within a stick of each dimension that contributes elements to it."""
        if self.format is StickFormat.Sparse:
            return {}
        count = self.num_stick_dims
        return dict(zip(self.dim_map[-count:], self.device_size[-count:], strict=True))


def default_spec(
    size: Sequence[int],
    dtype: object,
    pad_all_dims: bool = PAD_ALL_DIMS,
    *,
    num_stick_dims: int = 1,
    stick_bytes: int = STICK_BYTES,
) -> StickSpec:
    """Build the default layout: sticks along the last dimensions, tiles along the first."""
    shape = _extents(size)
    device_dtype, host = types_of(dtype)
    lanes = lanes_of(device_dtype, stick_bytes)
    order = range(len(shape))
    block = _block_of(order, lanes, num_stick_dims, StickFormat.Dense)
    check_kind(
        pad_all_dims, bool | np.bool_ | None, "stick layout: pad_all_dims", "give True or False",
        LayoutError,
    )
    padded = [
        round_up(extent, lanes if pad_all_dims and extent != 1 else block.get(dim, 1))
        for dim, extent in enumerate(shape)
    ]
    _warn_of_int64(host)
    return _tiled_spec(
        shape, host, padded, order, StickFormat.Dense, device_dtype, lanes, num_stick_dims
    )


def from_order(
    padded_size: Sequence[int],
    dtype: object,
    dim_order: Sequence[int],
    format: StickFormat = StickFormat.Dense,
    *,
    num_stick_dims: int = 1,
    size: Sequence[int] | None = None,
    stick_bytes: int = STICK_BYTES,
) -> StickSpec:
    """Build a layout with given padding: sticks along the last dimensions of the order."""
    padded = _extents(padded_size)
    shape = padded if size is None else _extents(size)
    device_dtype, host = types_of(dtype)
    _warn_of_int64(host)
    lanes = lanes_of(device_dtype, stick_bytes)
    sticks = _tiled_spec(
        shape, host, padded, dim_order, format, device_dtype, lanes, num_stick_dims
    )
    return replace(sticks, is_sized=size is not None)


def from_fields(
    device_size: Sequence[int],
    dim_map: Sequence[int],
    num_stick_dims: int,
    format: StickFormat,
    device_dtype: DataFormats,
    *,
    size: Sequence[int] | None = None,
    dtype: object = None,
    stick_bytes: int = STICK_BYTES,
) -> StickSpec:
    """Build a layout from its fields, after checking their consistency."""
    extents, dims = _extents(device_size), as_int_tuple(dim_map, "stick layout: dim_map")
    _check_format(format)
    if not isinstance(device_dtype, DataFormats):
        raise LayoutError(
            "stick layout: device_dtype must be a member of DataFormats, got {device_dtype!r}",
            kind="sticks", device_dtype=device_dtype,
        )
    host = device_dtype.host_dtype if dtype is None else check_host_dtype(dtype)
    lanes = lanes_of(device_dtype, stick_bytes)
    _check_fields(extents, dims, num_stick_dims, lanes, format)
    in_stick: dict[int, int] = {}
    if format is StickFormat.Dense:
        in_stick = dict(zip(dims[-num_stick_dims:], extents[-num_stick_dims:], strict=True))
    padded = [0] * (len(dims) - num_stick_dims)
    for dim, extent in zip(dims[:-num_stick_dims], extents[:-num_stick_dims], strict=True):
        padded[dim] = extent * in_stick.get(dim, 1)
    shape = tuple(padded) if size is None else _extents(size)
    _check_padding(shape, padded)
    return StickSpec(shape, host, extents, dims, format, device_dtype, lanes, size is not None)


def dim_map_of(order: Sequence[int], num_stick_dims: int = 1) -> tuple[int, ...]:
    """Return the tensor dimension of each device dimension; `order[0]` is next to the lanes.

    >>> dim_map_of([0, 1, 2]), dim_map_of([1, 0, 2]), dim_map_of([0]), dim_map_of([0, 1, 2], 2)
    ((1, 2, 0, 2), (0, 2, 1, 2), (0, 0), (1, 2, 0, 1, 2))
    """
    return (*order[1:], order[0], *order[-num_stick_dims:]) if order else (0,)


def block_extents(lanes: int, num_stick_dims: int) -> tuple[int, ...]:
    """Return the extents of the most even block of a number of elements, in ascending order.

    >>> block_extents(64, 1), block_extents(64, 2), block_extents(32, 2), block_extents(64, 3)
    ((64,), (8, 8), (4, 8), (4, 4, 4))
    """
    if num_stick_dims == 1:
        return (lanes,)
    divisors = (n for n in range(1, lanes + 1) if lanes % n == 0 and n**num_stick_dims <= lanes)
    first = max(divisors)
    return (first, *block_extents(lanes // first, num_stick_dims - 1))


def _block_of(
    order: Sequence[int], lanes: int, num_stick_dims: int, format: StickFormat
) -> dict[int, int]:
    """Return the extent within a stick of each stick dimension, the last ones of an order."""
    count = _stick_dims(num_stick_dims, format)
    if count > max(len(order), 1):
        raise LayoutError(
            "stick layout: num_stick_dims is {count}, but the rank of the tensor is {rank}; pass "
            "a number from 1 to {most}",
            kind="sticks", count=count, rank=len(order), most=max(len(order), 1),
        )
    if not order or format is StickFormat.Sparse:
        return {}
    return dict(zip(order[-count:], block_extents(lanes, count), strict=True))


def lanes_of(device_dtype: DataFormats, stick_bytes: int) -> int:
    """Return the number of elements that fit into a stick.

    Raises:
        LayoutError: If the size of a stick is not a multiple of the element size.
    """
    storage = device_dtype.storage
    bits = storage.stored.bits * storage.units // storage.elements
    if index(stick_bytes) < 1 or stick_bytes * 8 % bits:
        raise LayoutError(
            "stick layout: a stick of {stick_bytes} bytes does not hold a whole number of "
            "{device_dtype} elements ({bits} bits each); use a multiple",
            kind="sticks", stick_bytes=stick_bytes, device_dtype=device_dtype, bits=bits,
        )
    return stick_bytes * 8 // bits


def _tiled_spec(
    shape: tuple[int, ...],
    host: DType,
    padded: Sequence[int],
    dim_order: Sequence[int],
    format: StickFormat,
    device_dtype: DataFormats,
    lanes: int,
    num_stick_dims: int,
) -> StickSpec:
    _check_format(format)
    order = list(as_int_tuple(dim_order, "stick layout: dim_order"))
    if len(order) != len(padded):
        raise LayoutError(
            "stick layout: Invalid arguments: padded_size.size() != dim_order.size() ({padded}, "
            "{order}); pass each dimension once",
            kind="sticks", padded=list(padded), order=order,
        )
    if sorted(order) != list(range(len(order))):
        raise LayoutError(
            "stick layout: dim_order {order} is not a permutation of {order_count} dimensions; "
            "pass each of 0 to {last} once",
            kind="sticks", order=order, order_count=len(order), last=len(order) - 1,
        )
    _check_padding(shape, padded)
    block = _block_of(order, lanes, num_stick_dims, format)
    if not order:
        return StickSpec(shape, host, (lanes,), (0,), StickFormat.Dense, device_dtype, lanes)
    for dim, count in block.items():
        if padded[dim] % count:
            raise LayoutError(
                "stick layout: Invalid padding: padded_size[stick_dim] not even multiple of "
                "elems_in_stick ({last} in {padded}, {lanes} in a stick); pad it to {round_up}",
                kind="sticks", last=padded[dim], padded=list(padded), lanes=count,
                round_up=round_up(padded[dim], count),
            )
    dims = dim_map_of(order, num_stick_dims)
    device = [padded[dim] // block.get(dim, 1) for dim in dims[: len(order)]]
    extents = (*device, *(block.values() or (lanes,)))
    return StickSpec(shape, host, extents, dims, format, device_dtype, lanes)


def _check_fields(
    extents: tuple[int, ...], dims: tuple[int, ...], num_stick_dims: int, lanes: int,
    format: StickFormat,
) -> None:
    text = f"device_size={list(extents)}, dim_map={list(dims)}"
    if len(extents) != len(dims) or not dims:
        raise LayoutError(
            "stick layout: {text}; dim_map must have one dimension per device dimension",
            kind="sticks", text=text,
        )
    count = _stick_dims(num_stick_dims, format)
    outer, inner = dims[:-count], dims[-count:]
    has_all = sorted(outer) == list(range(len(outer))) and set(inner) <= set(outer)
    if not has_all and dims != (0,):
        times = "the last, of which the sticks are, twice" if count == 1 else (
            f"the last {count}, of which the sticks are, twice")
        raise LayoutError(
            "stick layout: {text}; dim_map must contain each dimension from 0 on once, and {times}",
            kind="sticks", text=text, times=times,
        )
    if len(set(inner)) != count:
        raise LayoutError(
            "stick layout: {text}; the last {count} entries of dim_map, the stick dimensions, must "
            "be distinct",
            kind="sticks", text=text, count=count,
        )
    if prod(extents[-count:]) != lanes:
        last = "the last device dimension is" if count == 1 else (
            f"the product of the last {count} device dimensions must be")
        raise LayoutError(
            "stick layout: {text}; {last} the {lanes} elements of a stick",
            kind="sticks", text=text, last=last, lanes=lanes,
        )


def _stick_dims(num_stick_dims: object, format: StickFormat) -> int:
    """Validate and return the number of dimensions of a stick."""
    count = as_int(num_stick_dims)
    if count is None or count < 1:
        raise LayoutError(
            "stick layout: num_stick_dims must be the number of dimensions of a stick, 1 or more, "
            "got {num_stick_dims!r}",
            kind="sticks", num_stick_dims=num_stick_dims,
        )
    if count > 1 and format is StickFormat.Sparse:
        raise LayoutError(
            "stick layout: num_stick_dims is {count}, but a sparse stick has one element; pass "
            "num_stick_dims=1, or StickFormat.Dense",
            kind="sticks", count=count,
        )
    return count


def _check_padding(shape: Sequence[int], padded: Sequence[int]) -> None:
    if len(shape) != len(padded):
        raise LayoutError(
            "stick layout: padded_size {padded} has {padded_count} dimensions, but size {shape} "
            "has {rank}; pass one extent per dimension",
            kind="sticks", padded=list(padded), padded_count=len(padded), shape=list(shape),
            rank=len(shape),
        )
    for dim, (extent, padded_extent) in enumerate(zip(shape, padded, strict=True)):
        if padded_extent < extent:
            raise LayoutError(
                "stick layout: padded_size {padded} has extent {padded_extent} in dimension "
                "{dim}, less than {extent} of size {shape}; pad to {extent} or more",
                kind="sticks", padded=list(padded), padded_extent=padded_extent, dim=dim,
                extent=extent,
                shape=list(shape),
            )


def _check_format(format: object) -> None:
    if not isinstance(format, StickFormat):
        raise LayoutError(
            "stick layout: {format!r} is not a valid format; pass StickFormat.Dense or "
            "StickFormat.Sparse",
            kind="sticks", format=format,
        )


def _extents(size: Sequence[int]) -> tuple[int, ...]:
    check_shape(size)
    return as_int_tuple(size, "stick layout: the size")


def _warn_of_int64(host: DType) -> None:
    if host == "int64":
        warnings.warn(
            "Backend Spyre does not support int64; downcasting to int32 may change values outside "
            "the 32-bit range",
            stacklevel=4,
        )
