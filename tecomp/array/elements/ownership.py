"""Who else can see the elements of an array: whether they may be written where they are."""

from __future__ import annotations

from sys import getrefcount
from typing import Any

import numpy as np

from tecomp.array.elements.borrowed import owner_of
from tecomp.array.graph.node import Node, leaf
from tecomp.ptensor.types import PTensorType


class Holder:
    """What has a node and no more."""

    __slots__ = ("_node",)

    def __init__(self, node: Node) -> None:
        self._node = node


def is_alone(holder: Any) -> bool:
    """Whether nobody but an array sees its elements, which are there.

    Others are arrays of the same node, operations that were recorded on it, views of its memory,
    and what others keep of it.

    Args:
        holder: what has the node as its `_node`.
    """
    return _references(holder) == (_OF_VIEW if holder._node.data.base is not None else _OF_OWNER)


def _references(holder: Any) -> tuple[int, int, int]:
    """How many references there are to a node, to its array, and to the array with the memory."""
    node: Node = holder._node
    data = node.data
    assert data is not None
    return getrefcount(node), getrefcount(data), getrefcount(owner_of(data))


_OF_OWNER = _references(Holder(leaf(np.empty(2), PTensorType((2,), "float64"))))

_OF_VIEW = _references(Holder(leaf(np.empty(4)[::2], PTensorType((2,), "float64"))))
"""The references that the question itself takes."""
