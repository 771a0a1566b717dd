"""Thread synchronization for the recorded graph.

The lock `looking` protects the graph; a thread that holds it does not compute, compile or write
elements. The nodes that a thread computes or writes are registered, and other threads wait for
these nodes only. A computing thread waits for no other thread, and a writing thread waits only for
threads that started before it, so there is always a thread that makes progress.
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
"""Nodes that are being computed by some thread."""

compiling = WorkLock()
"""Lock of the thread that compiles; other threads use existing kernels."""

placing = WorkLock()
"""Lock held while elements are copied to, or computed on, a device with separate memory."""


class WriteInProgress(Node):
    """Placeholder for the elements of an array that is being written; other threads wait for it.

    Attributes:
        writer_thread: Identifier of the writing thread.
        is_done: Whether the write is complete.
    """

    __slots__ = ("is_done", "writer_thread")

    def __init__(self, type: PTensorType) -> None:
        # Inlined for speed: each assignment creates a placeholder per view of the array.
        self.type, self.op, self.operands = type, None, ()
        self.data = self.stored = None
        self.since = self.pending = 0
        self.writer_thread = get_ident()
        self.is_done = False

    def finish(self, node: Node) -> None:
        """Forward to the written elements, for readers that found the placeholder."""
        if node.data is not None:
            self.data = node.data
        elif node.stored is not None:
            self.stored = node.stored
        else:
            self.operands, self.op = (node,), Reshape(self.type.shape)
            self.since, self.pending = node.since, node.pending + 1
        self.is_done = True


def writers(nodes: Iterable[Node]) -> list[int]:
    """Return the threads that are writing elements of the nodes."""
    return [
        node.writer_thread
        for node in nodes
        if isinstance(node, WriteInProgress) and not node.is_done
    ]


def mark_computing(nodes: list[Node]) -> None:
    """Register nodes that this thread computes; the caller holds the lock."""
    _computed.update(nodes)


def unmark_computing(nodes: list[Node]) -> None:
    """Unregister nodes that this thread has computed."""
    with looking:
        _computed.difference_update(nodes)
        wake()


def is_busy(nodes: list[Node], leaves: list[Node]) -> bool:
    """Return whether a thread computes one of the nodes or writes one of the leaves."""
    return not _computed.isdisjoint(nodes) or bool(writers(leaves))


def wait(writer_ids: Sequence[int] = ()) -> None:
    """Wait until another thread finishes; the caller holds the lock.

    Args:
        writer_ids: Threads that write the required elements.

    Raises:
        ArrayValueError: If this thread is one of the writers, for example in a finalizer.
    """
    if get_ident() in writer_ids:
        raise ArrayValueError(
            "x[...] = value: elements of x are accessed while they are being written; access them "
            "before or after the assignment"
        )
    _waiting.append(1)
    try:
        _changed.wait()
    finally:
        _waiting.pop()


def wake() -> None:
    """Notify waiting threads of a change; the caller holds the lock."""
    if _waiting:
        _changed.notify_all()
