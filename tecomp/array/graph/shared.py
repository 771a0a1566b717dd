"""`Shared`, the node of an array that a team has: the part of this process, and who has what."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tecomp.array.graph.node import Node, leaf
from tecomp.errors import ArrayTypeError
from tecomp.ptensor.types import PTensorType, Shape

if TYPE_CHECKING:
    from tecomp.dist.partition.partition import Partition


class Shared(Node):
    """A value whose elements the processes of a team have.

    A node of a team that is none has all of its elements, on every process.

    Attributes:
        part: what this process has; its type has no team.
        partition: which elements that are, and which others have.
    """

    __slots__ = ("part", "partition")

    def __init__(self, type: PTensorType, part: Node, partition: Partition) -> None:
        super().__init__(type, None, (), None, 0, 0)
        self.part = part
        self.partition = partition


def local_type(type: PTensorType, shape: Shape) -> PTensorType:
    """The type of a part of an array."""
    return PTensorType(shape, type.dtype, type.device)


def part_of(node: Node) -> Node:
    """What this process computes for a node: its part, or the node itself."""
    return node.part if isinstance(node, Shared) else node


def alone(node: Node) -> Node:
    """A node of a team that has all elements, as one of this process.

    Raises:
        ArrayTypeError: it is an argument of a function that is recorded, and has no elements.
    """
    if node.data is None:
        raise ArrayTypeError(
            f"jit: an argument is {node.type}, and what processes send each other is not recorded; "
            "call the function itself: what a process computes of its parts is compiled too",
            kind="recording",
        )
    return leaf(node.data, local_type(node.type, node.type.shape))
