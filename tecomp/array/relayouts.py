"""Arrays on devices in other layouts, by programs that copy them there."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from tecomp.array.arrays import Array, made, node_of
from tecomp.array.exchange.placing import storage, stored_of
from tecomp.array.graph.devices import is_apart
from tecomp.array.graph.node import Node, leaf
from tecomp.errors import ArrayValueError
from tecomp.ptensor.axes import axis_of


def restickify(x: Array, axis: int, /) -> Array:
    """An array with another axis along the sticks, or the rows of tiles, of its device.

    Args:
        x: an array on a device that has sticks or tiles.
        axis: whose elements are to lie side by side.

    Returns:
        The same elements in another layout.

    Raises:
        ArrayIndexError: there is no such axis.
        ArrayValueError: the array is where there are no layouts.

    >>> import tecomp.array as xp
    >>> x = xp.zeros((100, 200), dtype="float32", device="stick128")
    >>> x.layout.physical_shape, restickify(x, 0).layout.physical_shape
    ((7, 128, 32), (4, 224, 32))
    """
    where = "restickify"
    node = node_of(x, where)
    _check_place(node, where)
    layout = storage().along_axis(node.type, axis_of(axis, node.type.rank, where))
    return made(_relaid(node, layout))


def relayout_to(x: Array, layout: Any, /) -> Array:
    """An array in another layout on its device.

    Args:
        x: an array on a device that has layouts.
        layout: of an array of its shape and type, a `tecomp.Layout`.

    Returns:
        The same elements in that layout.

    Raises:
        ArrayTypeError: this is no layout.
        ArrayValueError: the array is where there are no layouts, or it is none of such an array.

    >>> import tecomp.array as xp
    >>> x, y = [xp.ones((100, n), dtype="float32", device="stick128") for n in (200, 200)]
    >>> relayout_to(x, xp.restickify(y, 0).layout).layout.physical_shape
    (4, 224, 32)
    """
    where = "relayout_to"
    node = node_of(x, where)
    _check_place(node, where)
    storage().check_layout_of(node.type, layout, where)
    return made(_relaid(node, layout))


def _check_place(node: Node, where: str) -> None:
    if not is_apart(node.type.device):
        raise ArrayValueError(
            f"{where}: x is {node.type}, and arrays on {node.type.device!r} have the order of "
            "NumPy; bring it to a device that has layouts, x.to_device('stick128')"
        )
    if node.type.team is not None:
        raise ArrayValueError(
            f"{where}: x is {node.type}, and each process has a part in a layout of its own; give "
            "the part, x.to_local(), and make an array of the results: xp.from_local(part, team)"
        )


def _relaid(node: Node, layout: Any) -> Node:
    found = stored_of(node)
    result = leaf(None, node.type)
    result.placed(import_module("tecomp.array.kernels.placed_programs").relaid(found, layout))
    return result
