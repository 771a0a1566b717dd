"""Conversion of numbers, sequences, buffers and arrays of other libraries to arrays."""

from __future__ import annotations

from typing import Any

from tecomp.array.array_object import Array, from_node, node_of, on_teams
from tecomp.array.graph.node import Node, materialized_node, record
from tecomp.array.indexing.data_dependent import copy_row_major
from tecomp.array.indexing.setitem import is_borrowed
from tecomp.array.interop.device_transfer import on_device
from tecomp.array.interop.imports import as_node, is_of_numbers
from tecomp.array.validation import check_copy, check_of_one_process, dtype_name, need_team
from tecomp.errors import ArrayTypeError, ArrayValueError
from tecomp.ptensor.devices import (
    CPU,
    check_dtype,
    default_dtype,
    device_name,
    dtypes_of,
    is_apart,
)
from tecomp.ptensor.operations.elementwise import CastOp
from tecomp.ptensor.types import check_same_device_and_team


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
