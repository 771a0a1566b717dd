"""Move arrays to and from device memory."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Any

from tecomp.array.graph.evaluate import data_of, evaluate
from tecomp.array.graph.node import Node, leaf, record_call, tracing
from tecomp.ptensor.devices import check_dtype, is_apart
from tecomp.ptensor.types import PTensorType


@cache
def storage() -> Any:
    """What knows of layouts: who has arrays on the processor alone does not wait for it."""
    return import_module("tecomp.array.kernels.device_storage")


def stored_of(node: Node) -> Any:
    """The elements of a node where its device has them; they are brought there if they are not."""
    evaluate((node,))
    return storage().stored_of(node)


def on_device(
    node: Node, device: str, layout: Any = None, where: str = "to_device"
) -> Node:
    """An array on a device: itself, if it is there, and in that layout.

    Raises:
        ArrayTypeError: the device has no such elements.
        ArrayValueError: the layout is none of such an array there.
    """
    type = node.type
    if device == type.device and layout is None:
        return node
    check_dtype(type.dtype, device, where)
    moved = PTensorType(type.shape, type.dtype, device, type.team)
    if layout is not None:
        storage().check_layout_of(moved, layout, where)
    if tracing.depth:
        (made,) = record_call(lambda own: (on_device(own, device, layout, where),), [moved], node)
        return made
    made = leaf(data_of(node), moved)
    if is_apart(device):
        own = storage().layout_for(moved, layout)
        made.placed(storage().brought(data_of(node), moved, own))
    return made


def empty_in(type: PTensorType, layout: Any, where: str) -> Node:
    """An array in a layout, whose elements nobody has said.

    Raises:
        ArrayTypeError: it is no layout.
        ArrayValueError: it is none of such an array there.
    """
    storage().check_layout_of(type, layout, where)
    node = leaf(None, type)
    node.placed(storage().empty(type, layout))
    return node
