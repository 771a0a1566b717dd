"""Elements of an array by index, and assignment to them."""

from __future__ import annotations

from typing import Any

from tecomp.array.evaluate import data_of
from tecomp.array.node import Node, leaf


def selected(node: Node, key: Any) -> Node:
    """The elements at a basic index."""
    data = data_of(node)[key]
    return leaf(data, node.type.like(data.shape))


def assigned(node: Node, key: Any, value: Node) -> Node:
    """The array with other elements at a basic index."""
    data = data_of(node).copy()
    data[key] = data_of(value)
    return leaf(data, node.type)
