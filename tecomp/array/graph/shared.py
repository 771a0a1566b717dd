"""`Shared`, the node of an array that a team has: the part of this process, and who has what."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tecomp.array.graph.node import Node, leaf, teams
from tecomp.errors import ArrayTypeError
from tecomp.ptensor.operation import Operation
from tecomp.ptensor.types import PTensorType, Shape

if TYPE_CHECKING:
    from tecomp.dist.partition.partition import Partition


class Shared(Node):
    """A value whose elements the processes of a team have.

    A node of a team that is none has all of its elements, on every process. Of elementwise
    operations it is found late who has which elements, when it is known what reads them.

    Attributes:
        made_of: the elementwise operation and its operands, while nobody has elements yet.
        steps: how many such operations there are in it.
        ticket: the last message on its way that the part may wait for, 0 for none.
        view: what it is a part of, and where that begins; None if it is of no other array.
        handle: what names it in messages to other processes, if one process runs the script.
    """

    __slots__ = (
        "__weakref__", "_part", "_partition", "handle", "made_of", "steps", "ticket", "view",
    )

    def __init__(
        self, type: PTensorType, part: Node | None, partition: Partition | None, ticket: int = 0
    ) -> None:
        super().__init__(type, None, (), None, 0, 0)
        self._part = part
        self._partition = partition
        self.made_of: tuple[Operation, tuple[Shared, ...]] | None = None
        self.steps = 0
        self.ticket = ticket
        self.view: Any = None
        self.handle: tuple[int, int] | None = None

    def found(self, part: Node, partition: Partition) -> None:
        """Say who has which elements."""
        self._part, self._partition = part, partition
        self.made_of, self.steps = None, 0

    @property
    def part(self) -> Node:
        """What this process has; its type has no team."""
        if self._part is None:
            teams().place(self)
        assert self._part is not None
        return self._part

    @property
    def partition(self) -> Partition:
        """Which elements that are, and which others have."""
        if self._partition is None:
            teams().place(self)
        assert self._partition is not None
        return self._partition


def local_type(type: PTensorType, shape: Shape) -> PTensorType:
    """The type of a part of an array."""
    return PTensorType(shape, type.dtype, type.device)


def part_of(node: Node) -> Node:
    """What this process computes for a node: its part, with what it waits for, or the node."""
    return parts_of((node,))[0]


def parts_of(nodes: Sequence[Node], at_once: bool = False) -> Sequence[Node]:
    """The same for several nodes, which wait together.

    Args:
        nodes: the nodes.
        at_once: whether their elements are wanted, so that they may be computed while they wait.
    """
    shared = [node for node in nodes if isinstance(node, Shared)]
    if not shared:
        return nodes
    teams().settle(shared, at_once)
    return [node.part if isinstance(node, Shared) else node for node in nodes]


def alone(node: Node) -> Node:
    """A node of a team that has all elements, as one of this process.

    Raises:
        ArrayTypeError: it is an argument of a function that is recorded, and has no elements.
    """
    if node.data is None:
        raise ArrayTypeError(
            f"jit: an argument is {node.type}, and what processes send each other for this is not "
            "recorded; do it outside of the function",
            kind="recording",
        )
    return leaf(node.data, local_type(node.type, node.type.shape))
