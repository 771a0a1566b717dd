"""Thread synchronization for the recorded graph.

Nobody computes, compiles or writes elements while he looks. What a thread computes, and what it
writes, is known to the others, who wait for these arrays and for no others. Who computes waits for
nobody, and who writes waits only for those who began before, so that somebody always goes on.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from threading import Condition, get_ident

from tecomp.array.graph.node import Node, looking
from tecomp.errors import ArrayValueError
from tecomp.fork_gate import WorkLock
from tecomp.ptensor.operations.manipulation import Reshape
from tecomp.ptensor.types import PTensorType

_changed = Condition(looking)
_waiting: list[int] = []
_computed: set[Node] = set()
"""Nodes that some thread computes now."""

compiling = WorkLock()
"""Held by the one thread that compiles, while others use what is there."""

placing = WorkLock()
"""Held while elements come to a device with memory of its own, or are computed there."""


class Written(Node):
    """What stands for the elements of an array while they are written: others wait for them.

    Attributes:
        by: the thread that writes.
        is_done: whether they are written.
    """

    __slots__ = ("by", "is_done")

    def __init__(self, type: PTensorType) -> None:
        # Written out: an array with many views has one for each of them at every assignment.
        self.type, self.op, self.operands = type, None, ()
        self.data = self.stored = None
        self.since = self.pending = 0
        self.by = get_ident()
        self.is_done = False

    def done(self, node: Node) -> None:
        """Be the elements that were written, for those who asked meanwhile."""
        if node.data is not None:
            self.data = node.data
        elif node.stored is not None:
            self.stored = node.stored
        else:
            self.operands, self.op = (node,), Reshape(self.type.shape)
            self.since, self.pending = node.since, node.pending + 1
        self.is_done = True


def writers(nodes: Iterable[Node]) -> list[int]:
    """The threads that write the elements of nodes now."""
    return [node.by for node in nodes if isinstance(node, Written) and not node.is_done]


def begin(nodes: list[Node]) -> None:
    """Say that this thread computes nodes, while it looks at the graph."""
    _computed.update(nodes)


def end(nodes: list[Node]) -> None:
    """Say that it does no more."""
    with looking:
        _computed.difference_update(nodes)
        wake()


def is_busy(nodes: list[Node], leaves: list[Node]) -> bool:
    """Whether some thread computes one of the nodes, or writes what they are computed from."""
    return not _computed.isdisjoint(nodes) or bool(writers(leaves))


def wait(written: Sequence[int] = ()) -> None:
    """Wait, while this thread looks at the graph, until another one is done with something.

    Args:
        written: the threads that write what is waited for.

    Raises:
        ArrayValueError: this thread is one of them, as what is called when memory is let go can be.
    """
    if get_ident() in written:
        raise ArrayValueError(
            "x[...] = value: elements of x are asked for while they are written; ask before, or "
            "after"
        )
    _waiting.append(1)
    try:
        _changed.wait()
    finally:
        _waiting.pop()


def wake() -> None:
    """Let the others see, while this thread looks at the graph, what has changed."""
    if _waiting:
        _changed.notify_all()
