"""Move arrays to and from device memory."""

from __future__ import annotations

from functools import cache
from typing import Any

from tecomp.array.graph.evaluate import data_of, evaluate
from tecomp.array.graph.node import Node, materialized_node, record_call, tracing
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
        (result,) = record_call(lambda x: (on_device(x, device, layout, where),), [to_type], node)
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
