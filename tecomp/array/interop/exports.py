"""Export arrays to device memory, NumPy, DLPack and text."""

from __future__ import annotations

import sys
from functools import cache
from html import escape
from sys import getrefcount
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from tecomp.array.graph.evaluate import data_of, evaluate
from tecomp.array.graph.node import Buffer, Node, materialized_node, record_call, tracing
from tecomp.array.graph.pending import COUNTS_ARE_EXACT
from tecomp.array.indexing.data_dependent import copy_row_major
from tecomp.array.indexing.setitem import is_borrowed
from tecomp.array.validation import check_copy
from tecomp.errors import ArrayBufferError, ArrayValueError
from tecomp.lazy_imports import load_upward
from tecomp.ptensor.devices import check_dtype, is_apart
from tecomp.ptensor.types import PTensorType


@cache
def storage() -> Any:
    """Return the module for device layouts; imported lazily, because CPU arrays do not need it."""
    import tecomp.array.kernels.device_storage as device_storage

    return device_storage


def device_buffer_of(node: Node) -> Any:
    """Return the elements of a node in device memory; copy them there if necessary."""
    evaluate((node,))
    return storage().device_buffer_of(node)


class DeviceTransfer(NamedTuple):
    """Copy of an array to a device and a layout.

    Attributes:
        device: Name of the device.
        layout: Layout in device memory; None for the default layout.
        where: Function name for error messages.
    """

    device: str
    layout: Any
    where: str

    def run(self, node: Node) -> tuple[Node, ...]:
        """Return the array on the device."""
        return (on_device(node, self.device, self.layout, self.where),)


def on_device(
    node: Node, device: str, layout: Any = None, where: str = "to_device"
) -> Node:
    """Return an array on a device and in a layout; the array itself if both are unchanged.

    Raises:
        ArrayTypeError: If the device does not support the dtype.
        ArrayValueError: If the layout does not match the array or the device.
    """
    ptype = node.type
    if device == ptype.device and layout is None:
        return node
    check_dtype(ptype.dtype, device, where)
    to_type = PTensorType(ptype.shape, ptype.dtype, device, ptype.team)
    if layout is not None:
        layout = storage().layout_of(to_type, layout, where)
    if tracing.depth:
        transfer = DeviceTransfer(device, layout, where)
        (result,) = record_call(transfer.run, transfer, [to_type], node)
        return result
    if layout is not None and device == ptype.device:
        return in_layout(node, layout)
    result = materialized_node(data_of(node), to_type)
    if is_apart(device):
        resolved = storage().layout_for(to_type, layout)
        result.placed(storage().copy_to_device(data_of(node), to_type, resolved))
    return result


def in_layout(node: Node, layout: Any) -> Node:
    """Return the same elements in another layout on the device where the array is."""
    evaluate((node,))
    result = materialized_node(None, node.type)
    if node.stored is None:
        resolved = storage().layout_for(node.type, layout)
        result.placed(storage().copy_to_device(data_of(node), node.type, resolved))
    else:
        from tecomp.array.kernels.static_programs import relayout_buffer

        relaid = relayout_buffer
        result.placed(relaid(storage().device_buffer_of(node), layout))
    return result


def inherited_layout(node: Node) -> Any:
    """Return the layout that arrays created like a node inherit; None for the device's default."""
    return storage().inherited_layout(node) if is_apart(node.type.device) else None


def empty_in(ptype: PTensorType, layout: Any, where: str) -> Node:
    """Return an uninitialized array in a layout.

    Raises:
        ArrayTypeError: If `layout` is not a layout.
        ArrayValueError: If the device has no layouts or does not support this layout.
    """
    resolved = storage().layout_of(ptype, layout, where)
    node = materialized_node(None, ptype)
    node.placed(storage().empty(ptype, resolved))
    return node


CPU = (1, 0)
"""DLPack device type and number of CPU memory."""

COPIED_BYTES = 16 * 1024
"""Size up to which `np.asarray(x)` returns a writable copy.

Compiled extensions that take small coefficient arrays require writable memory. A copy of 16 KiB
takes 0.4 us, and `np.asarray` takes 3 us.
"""

VERSIONS = ("2021.12", "2022.12", "2023.12", "2024.12", "2025.12")


def namespace_of(version: str | None) -> ModuleType:
    """Return the namespace module for a version of the standard.

    Raises:
        ArrayValueError: If the version is unknown.
    """
    if version is not None and version not in VERSIONS:
        raise ArrayValueError(
            "__array_namespace__: unsupported version {version!r}; supported versions: {versions}",
            version=version, versions=", ".join(VERSIONS),
        )
    is_newest = version == VERSIONS[-1]
    module: ModuleType = (
        load_upward("array.namespace_2025") if is_newest else sys.modules["tecomp.array"])
    return module


def dlpack_device_of(device: str) -> tuple[int, int]:
    """Return the DLPack device of arrays on a device.

    Raises:
        ArrayBufferError: If the device has separate memory, which DLPack cannot address.

    >>> dlpack_device_of("cpu")
    (1, 0)
    """
    if is_apart(device):
        raise ArrayBufferError(
            "__dlpack_device__: device {device!r} has no DLPack device type; copy the array to "
            "the host, x.to_device('cpu')",
            device=device,
        )
    return CPU


def as_numpy(node: Node, dtype: Any, copy: bool | None) -> Buffer:
    """Return the elements as a NumPy array.

    The result is writable if the caller owns it: if it is a copy, or a distributed array that was
    gathered for this call. Otherwise, it is a read-only view of the memory of the node.

    Raises:
        ValueError: If `copy` is False and `dtype` differs from the dtype of the node.
    """
    copy = check_copy(copy, "__array__")
    data = data_of(node)
    if 0 in data.strides and data.size > 1 and not is_borrowed(data):
        # Other libraries assume that elements do not share addresses.
        data = copy_row_major(data)
        if node.data is not None:
            node.data = data
    if copy or (dtype is not None and np.dtype(dtype) != data.dtype):
        return np.array(data, dtype, copy=copy, order="K")
    if data.base is None and data.flags.writeable and getrefcount(data) == _HELD_ONCE:
        return data
    view = data.view()
    view.flags.writeable = False
    return view


def _references_in_frame() -> int:
    """Return the number of references to an array that one local variable holds."""
    data = np.empty(0)
    return getrefcount(data)


_HELD_ONCE = _references_in_frame() if COUNTS_ARE_EXACT else 0
"""Reference count of an array without other owners; no count equals 0."""


def dlpack_of(
    node: Node,
    stream: Any,
    version: tuple[int, int] | None,
    device: tuple[int, int] | None,
    copy: bool | None,
) -> Any:
    """Export the elements through DLPack.

    A consumer that supports read-only memory gets a read-only view; other consumers get a copy, so
    that they cannot write to memory that other arrays read.

    Raises:
        ArrayBufferError: If the device, the dtype or `copy=False` does not permit the export.
    """
    where = "__dlpack__"
    if stream is not None:
        raise ArrayBufferError(
            "{where}: stream must be None for host memory, got {stream!r}",
            where=where, stream=stream,
        )
    if device is not None and not (isinstance(device, tuple) and device == CPU):
        raise ArrayBufferError(
            "{where}: dl_device must be {cpu}, got {device}; elements are exported in host memory "
            "only",
            where=where, device=device, cpu=CPU,
        )
    if device is None:
        dlpack_device_of(node.type.device or "cpu")
    copy = check_copy(copy, where)
    if copy is False and is_apart(node.type.device):
        raise ArrayBufferError(
            "{where}: copy=False is not possible, because exporting elements on {device!r} "
            "requires a copy to host memory; pass copy=None",
            kind="copy-needed", where=where, device=node.type.device,
        )
    knows = version is not None and version[0] >= 1
    if copy is False and not knows:
        raise ArrayBufferError(
            "{where}: copy=False requires max_version=(1, 0) or later, because earlier versions "
            "cannot mark memory as read-only; pass copy=None",
            kind="copy-needed", where=where,
        )
    data = as_numpy(node, None, copy or not knows or None)
    try:
        return data.__dlpack__(max_version=version if knows else None)
    except BufferError as error:
        raise ArrayBufferError(
            "{where}: DLPack does not support dtype {dtype} ({reason}); convert it with "
            "xp.astype(x, dtype)",
            where=where, dtype=node.type.dtype, reason=error,
        ) from None


def text_of(data: Buffer, device: str) -> str:
    """Format an array as NumPy does, with its dtype, and its device if it is not the CPU.

    >>> text_of(np.zeros((0, 3)), "cpu")
    'Array([], shape=(0, 3), dtype=float64)'
    """
    attributes = [f"dtype={data.dtype}"]
    if not data.size and data.shape != (0,):
        attributes.insert(0, f"shape={data.shape}")
    if device != "cpu":
        attributes.append(f"device={device!r}")
    elements = np.array2string(data, separator=", ", prefix="Array(") if data.size else "[]"
    return f"Array({', '.join([elements, *attributes])})"


def html_of(data: Buffer, device: str) -> str:
    """Format an array as HTML for notebooks: its type above its elements.

    >>> html_of(np.array([1.5]), "cpu")
    '<div><b>Array</b> 1, float64, cpu<pre>[1.5]</pre></div>'
    """
    shape = " by ".join(map(str, data.shape)) or "no axes"
    elements = escape(np.array2string(data, separator=", "))
    return f"<div><b>Array</b> {shape}, {data.dtype}, {escape(device)}<pre>{elements}</pre></div>"
