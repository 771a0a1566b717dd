"""Data types, and conversion of objects to arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tecomp.array.array_object import Array, from_node, node_of, on_teams
from tecomp.array.graph.node import Node, materialized_node, record
from tecomp.array.indexing.data_dependent import copy_row_major
from tecomp.array.indexing.setitem import is_borrowed
from tecomp.array.interop.exports import on_device
from tecomp.array.interop.imports import as_node, is_of_numbers
from tecomp.array.validation import (
    check_bool,
    check_copy,
    check_of_one_process,
    dtype_name,
    need_team,
)
from tecomp.array.weak_scalars import Scalar
from tecomp.errors import ArrayTypeError, ArrayValueError
from tecomp.ptensor.devices import (
    CPU,
    check_dtype,
    default_dtype,
    device_name,
    dtypes_of,
    is_apart,
    known_devices,
)
from tecomp.ptensor.operations.elementwise import CastOp
from tecomp.ptensor.types import (
    BOOLEAN,
    COMPLEX,
    FLOATING,
    FLOATS,
    INTEGERS,
    NUMERIC,
    PART,
    SIGNED,
    UNSIGNED,
    check_same_device_and_team,
    float_limits,
    need_dtype,
    numpy_dtype,
    of_scalar,
    promote_all,
    promote_types,
)


def asarray(
    obj: Any, /, *, dtype: Any = None, device: Any = None, copy: bool | None = None,
    layout: Any = None, team: Any = None, placements: Any = None,
) -> Array:
    """Convert the input to an array.

    Args:
        obj: Array of this namespace, number, nested sequences of numbers, or object that supports
            the buffer protocol, DLPack or `__array__`.
        dtype: dtype of the array. Default: the dtype of `obj`.
        device: Device of the array. Default: the device of `obj`.
        copy: None copies the elements, unless the memory is immutable: a NumPy array is constant if
            it is read-only, with all arrays of which it is a view. True always copies. False
            borrows the memory of `obj`: an operation reads that memory when its result is
            evaluated, so call `xp.eval` on the results before the owner of the memory writes to it.
            Borrowed memory is never written: an assignment to the array copies the memory first.
        layout: Layout in device memory, a `tecomp.Layout`. Default: the default layout of the
            device. A `tecomp.StickLayout` with a padded size takes the size of the array.
        team: Team over which the array is distributed, a `dist.Team` or its number. Each rank
            passes all elements and keeps its shard.
        placements: Placements of the shards, such as `[dist.Shard(1)]`, or a `dist.Partition`.
            Default: the first axis is sharded in blocks.

    Raises:
        ArrayTypeError: If `dtype` is not supported.
        ArrayValueError: If `copy` is False and a copy is necessary, rows have different lengths, or
            the device is unknown.
        DeviceMismatchError: If arrays in a sequence are on different devices.

    >>> import numpy as np
    >>> asarray([[1, 2], [3, 4]], dtype=np.float32)
    Array([[1., 2.],
           [3., 4.]], dtype=float32)
    """
    where = "asarray"
    copy = check_copy(copy, where)
    if team is not None:
        check_of_one_process(layout, where)
        node = _node_for_team(obj, dtype, device, copy, where)
        return from_node(on_teams().shard_or_reshard(node, team, placements, where, copy is None))
    need_team(placements, where)
    requested = None if dtype is None else dtype_name(dtype, where)
    if isinstance(obj, Array):
        node = node_of(obj, where)
        target_device = obj.device if device is None else device_name(device, where)
        unchanged = requested in (None, node.type.dtype) and target_device == obj.device
        if unchanged and not copy and layout is None:
            return obj
        return from_node(_convert(node, requested, target_device, copy, layout, where))
    types = [node_of(x, where).type for x in _arrays_in(obj)]
    if types:
        check_same_device_and_team(types, where)
        device = types[0].device if device is None else device
    target_device = device_name(device, where)
    if layout is None and not is_apart(target_device):
        return from_node(as_node(obj, requested, target_device, copy, where))
    return from_node(_copy_from_host(obj, requested, target_device, copy, layout, where))


def _node_for_team(obj: Any, dtype: Any, device: Any, copy: bool | None, where: str) -> Node:
    """Return all elements on this process; memory is borrowed, because each shard is copied."""
    target_device = device_name(device, where)
    if isinstance(obj, Array) or _arrays_in(obj) or is_apart(target_device):
        return node_of(asarray(obj, dtype=dtype, device=device, copy=copy), where)
    name = None if dtype is None else dtype_name(dtype, where)
    return as_node(obj, name, target_device, copy, where, is_read_now=True)


def _copy_from_host(
    obj: Any, dtype: str | None, device: str, copy: bool | None, layout: Any, where: str
) -> Node:
    """Copy elements from host memory to a device with separate memory."""
    if copy is False:
        raise ArrayValueError(
            "{where}: copy=False is not possible, because device {device!r} has separate memory; "
            "pass copy=None",
            kind="copy-needed", where=where, device=device,
        )
    node = as_node(obj, dtype, CPU, None, where, is_read_now=True)
    if dtype is None and is_of_numbers(obj):
        new_dtype = default_dtype(node.type.dtype, device)
        node = node if new_dtype == node.type.dtype else as_node(obj, new_dtype, CPU, None, where)
    return _copy_to_device(node, device, layout, where)


def _copy_to_device(node: Node, device: str, layout: Any, where: str) -> Node:
    if layout is None and device == (node.type.device or CPU):
        return node
    return on_device(node, device, layout, where)


def _arrays_in(obj: Any) -> list[Array]:
    """Return the arrays in nested sequences; each sequence is searched once."""
    found: list[Array] = []
    stack = [obj] if isinstance(obj, list | tuple) else []
    seen: set[int] = set()
    while stack:
        sequence = stack.pop()
        if id(sequence) in seen:
            continue
        seen.add(id(sequence))
        for part in sequence:
            if isinstance(part, Array):
                found.append(part)
            elif isinstance(part, list | tuple):
                stack.append(part)
    return found


def _convert(
    node: Node, dtype: str | None, device: str, copy: bool | None, layout: Any, where: str
) -> Node:
    """Return an array converted to a dtype, a device or a layout, or copied to its own memory."""
    if copy is False:
        raise ArrayValueError(
            "{where}: copy=False is not possible, because converting {type} to {dtype} on "
            "{device!r} requires a copy; pass copy=None",
            kind="copy-needed", where=where, type=node.type, dtype=dtype or node.type.dtype,
            device=device,
        )
    if dtype is not None and dtype != node.type.dtype:
        if dtype in dtypes_of(node.type.device):
            return _copy_to_device(record(CastOp(dtype), node), device, layout, where)
        check_dtype(dtype, device, where)
        return record(CastOp(dtype), _copy_to_device(node, device, layout, where))
    # Nodes are immutable values, so only borrowed memory, which its owner may write, is copied.
    if copy and node.data is not None and is_borrowed(node.data):
        node = materialized_node(copy_row_major(node.data), node.type)
    return _copy_to_device(node, device, layout, where)


def from_dlpack(
    x: Any, /, *, device: Any = None, copy: bool | None = None
) -> Array:
    """Import an array through the DLPack protocol.

    Args:
        x: Object with `__dlpack__` and `__dlpack_device__`.
        device: Device of the array. Default: the CPU.
        copy: True always copies, False borrows the memory of `x`, None copies unless `x` exports
            its memory as read-only.

    Raises:
        ArrayTypeError: If `x` does not support DLPack, or has an unsupported dtype.
        ArrayValueError: If `x` is not in CPU memory, or the device is unknown.

    >>> import numpy as np
    >>> from_dlpack(np.arange(3))
    Array([0, 1, 2], dtype=int64)
    """
    where = "from_dlpack"
    copy = check_copy(copy, where)
    if isinstance(x, Array):
        return asarray(x, device=device, copy=copy)
    if not hasattr(x, "__dlpack__"):
        raise ArrayTypeError(
            "{where}: {type} has no `__dlpack__`; use xp.asarray for other array-like objects",
            where=where, type=type(x).__name__,
        )
    target_device = device_name(device, where)
    if is_apart(target_device):
        return from_node(_copy_from_host(x, None, target_device, copy, None, where))
    return from_node(as_node(x, None, target_device, copy, where))


KINDS: Mapping[str, Sequence[str]] = {
    "bool": BOOLEAN,
    "signed integer": SIGNED,
    "unsigned integer": UNSIGNED,
    "integral": INTEGERS,
    "real floating": FLOATS,
    "complex floating": COMPLEX,
    "numeric": NUMERIC,
}
"""Dtype names of each dtype kind."""


@dataclass(frozen=True)
class FloatInfo:
    """Machine limits of a floating-point dtype; for a complex dtype, the limits of its parts.

    Attributes:
        bits: Bits per number.
        eps: Distance from 1 to the next greater number.
        max: Greatest finite number.
        min: Least finite number.
        smallest_normal: Least positive normal number.
        dtype: dtype of the numbers.
    """

    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    dtype: np.dtype[Any]


@dataclass(frozen=True)
class IntegerInfo:
    """Machine limits of an integer dtype.

    Attributes:
        bits: Bits per number.
        max: Greatest number.
        min: Least number.
        dtype: dtype of the numbers.
    """

    bits: int
    max: int
    min: int
    dtype: np.dtype[Any]


def astype(
    x: Array, dtype: Any, /, *, copy: bool = True, device: Any = None
) -> Array:
    """Cast an array to a dtype.

    A float that is out of range for an integer dtype saturates, and NaN becomes 0. Integers wrap
    around. Every nonzero value becomes True.

    Args:
        x: Input array.
        dtype: Target dtype; complex if `x` is complex.
        copy: If False, return `x` itself where dtype and device are unchanged.
        device: Device of the result. Default: the device of `x`.

    Raises:
        ArrayTypeError: If `x` is complex and the dtype is real, or the dtype is unsupported.
        ArrayValueError: If the device is unknown.

    >>> import tecomp.array as xp
    >>> xp.astype(xp.asarray([1.5, -2.5]), xp.int8)
    Array([ 1, -2], dtype=int8)
    """
    node_of(x, "astype")
    name = dtype_name(dtype, "astype")
    target_device = None if device is None else device_name(device, "astype")
    is_copied = check_bool(copy, "astype", "copy") or None
    return asarray(x, dtype=numpy_dtype(name), device=target_device, copy=is_copied)


def can_cast(from_: Any, to: Any, /) -> bool:
    """Return whether type promotion allows the cast between two dtypes.

    Args:
        from_: Array or dtype to cast from.
        to: Target dtype.

    Raises:
        ArrayTypeError: If a dtype is unsupported.

    >>> import tecomp.array as xp
    >>> xp.can_cast(xp.int8, xp.int16), xp.can_cast(xp.float64, xp.float32)
    (True, False)
    """
    target = dtype_name(to, "can_cast")
    return promote_all(_type_of(from_, "can_cast"), target) == target


def finfo(type: Any, /) -> FloatInfo:
    """Return the machine limits of a floating-point dtype.

    Args:
        type: Array or dtype.

    Raises:
        ArrayTypeError: If the dtype is not a floating-point dtype.

    >>> import tecomp.array as xp
    >>> xp.finfo(xp.complex64).eps == 2.0**-23
    True
    """
    name = _type_of(type, "finfo")
    need_dtype(name, FLOATING, "finfo")
    part = PART.get(name, name)
    dtype = numpy_dtype(part)
    info = float_limits(dtype)
    return FloatInfo(
        dtype.itemsize * 8, float(info.eps), float(info.max), float(info.min),
        float(info.smallest_normal), dtype,
    )


def iinfo(type: Any, /) -> IntegerInfo:
    """Return the machine limits of an integer dtype.

    Args:
        type: Array or dtype.

    Raises:
        ArrayTypeError: If the dtype is not an integer dtype.

    >>> import tecomp.array as xp
    >>> xp.iinfo(xp.uint8).max
    255
    """
    name = _type_of(type, "iinfo")
    need_dtype(name, INTEGERS, "iinfo")
    info = np.iinfo(name)
    return IntegerInfo(info.bits, int(info.max), int(info.min), info.dtype)


def isdtype(dtype: Any, kind: Any) -> bool:
    """Return whether a dtype equals another dtype or belongs to a dtype kind.

    Args:
        dtype: dtype to test.
        kind: dtype, `"bool"`, `"signed integer"`, `"unsigned integer"`, `"integral"`, `"real
            floating"`, `"complex floating"` or `"numeric"`, or a tuple of these.

    Raises:
        ArrayTypeError: If a dtype is unsupported.
        ArrayValueError: If the kind is unknown.

    >>> import tecomp.array as xp
    >>> xp.isdtype(xp.int8, "integral"), xp.isdtype(xp.int8, (xp.int16, "real floating"))
    (True, False)
    """
    name = dtype_name(dtype, "isdtype")
    parts = kind if isinstance(kind, tuple) else (kind,)
    return any([name in _kind(part) for part in parts])


def _kind(kind: Any) -> Sequence[str]:
    if not isinstance(kind, str):
        return (dtype_name(kind, "isdtype"),)
    if kind in KINDS:
        return KINDS[kind]
    raise ArrayValueError(
        "isdtype: unknown dtype kind {name!r}; valid kinds: {kinds}",
        kind="unknown-choice", name=kind, kinds=", ".join(map(repr, KINDS)),
    )


def result_type(*arrays_and_dtypes: Any) -> np.dtype[Any]:
    """Return the dtype that type promotion gives for the arguments.

    Args:
        arrays_and_dtypes: Arrays, dtypes and Python scalars, with at least one array or dtype.

    Raises:
        ArrayTypeError: If an argument is of another type, or an int is out of range for the dtype.
        ArrayValueError: If there is neither an array nor a dtype.

    >>> import tecomp.array as xp
    >>> xp.result_type(xp.int8, xp.asarray([1], dtype=xp.uint8), 2)
    dtype('int16')
    """
    where = "result_type"
    numbers = [part for part in arrays_and_dtypes if isinstance(part, Scalar)]
    types = [
        _type_of(part, where) for part in arrays_and_dtypes if not isinstance(part, Scalar)
    ]
    if not types:
        raise ArrayValueError(
            "{where}: expected at least one array or dtype",
            kind="missing-input", where=where,
        )
    dtype = promote_types(types)
    return numpy_dtype(
        promote_types([dtype, *(of_scalar(number, dtype, where) for number in numbers)]))


def _type_of(obj: Any, where: str) -> str:
    """Return the dtype name of an array or a dtype."""
    if isinstance(obj, Array):
        return node_of(obj, where).type.dtype
    return dtype_name(obj, where)


_FLOATS = tuple([name for name in FLOATS if name in ("float32", "float64")])

_KINDS = {
    "bool": BOOLEAN,
    "signed integer": SIGNED,
    "unsigned integer": UNSIGNED,
    "integral": (*SIGNED, *UNSIGNED),
    "real floating": _FLOATS,
    "complex floating": COMPLEX,
    "numeric": (*SIGNED, *UNSIGNED, *_FLOATS, *COMPLEX),
}


class Info:
    """Namespace inspection object.

    Source:
        The Python array API standard, "inspection".
    """

    def capabilities(self) -> dict[str, Any]:
        """Return the optional capabilities of the namespace and the maximum number of axes.

        >>> Info().capabilities()["boolean indexing"]
        True
        """
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}

    def default_device(self) -> str:
        """Return the default device.

        >>> Info().default_device()
        'cpu'
        """
        return CPU

    def default_dtypes(self, *, device: Any = None) -> dict[str, np.dtype[Any]]:
        """Return the default dtypes per kind.

        Args:
            device: Device. Default: the CPU.

        Raises:
            ArrayValueError: If the device is unknown.

        >>> Info().default_dtypes()["real floating"]
        dtype('float64')
        """
        target_device = device_name(device, "default_dtypes")
        names = {"real floating": "float64", "complex floating": "complex128",
                 "integral": "int64", "indexing": "int64"}
        return {
            kind: numpy_dtype(default_dtype(name, target_device)) for kind, name in names.items()
        }

    def devices(self) -> list[str]:
        """Return the available devices.

        >>> "cpu" in Info().devices()
        True
        """
        return list(known_devices())

    def dtypes(
        self, *, device: Any = None, kind: str | tuple[str, ...] | None = None
    ) -> dict[str, np.dtype[Any]]:
        """Return the standard dtypes that a device supports, by name.

        Args:
            device: Device. Default: the CPU.
            kind: dtype kind, or a tuple of kinds, to which the result is limited.

        Raises:
            ArrayValueError: If the device or the kind is unknown.

        >>> list(Info().dtypes(kind="real floating"))
        ['float32', 'float64']
        """
        requested = ("bool", "numeric") if kind is None else kind
        kinds = requested if isinstance(requested, list | tuple) else [requested]
        for kind_name in kinds:
            if not isinstance(kind_name, str) or kind_name not in _KINDS:
                raise ArrayValueError(
                    "dtypes: unknown dtype kind {name!r}; valid kinds: {kinds}",
                    name=kind_name, kinds=", ".join(_KINDS),
                )
        target_device = device_name(device, "dtypes")
        names = dict.fromkeys(name for kind_name in kinds for name in _KINDS[kind_name])
        supported = dtypes_of(target_device)
        return {name: numpy_dtype(name) for name in names if name in supported}


def __array_namespace_info__() -> Info:  # noqa: N807  the standard's name
    """Return the namespace inspection object.

    >>> __array_namespace_info__().default_device()
    'cpu'
    """
    return Info()
