"""Pending values: owners, locks and computed elements."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from sys import getrefcount, maxsize
from threading import Condition, get_ident

import numpy as np

from tecomp.array.graph.node import Buffer, Node, empty, looking, materialized_node
from tecomp.errors import ArrayValueError
from tecomp.fork_gate import WorkLock
from tecomp.ptensor.operation import PTensorOp
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


class _Owned:
    """Object of which references are counted."""

    __slots__ = ("__weakref__",)


def are_counts_exact(count: Callable[[object], int] = getrefcount) -> bool:
    """Return whether a reference count changes by one with each owner of a reference.

    Where it does not, a count cannot prove that an array is the only owner of its memory. Writes
    then copy, exported arrays are read-only, and every pending value is stored.

    Args:
        count: Function that returns the reference count of its argument.

    >>> are_counts_exact(), are_counts_exact(lambda owned: 2)
    (True, False)
    """
    owned = _Owned()
    alone = count(owned)
    owners: list[object] = [owned]
    one = count(owned)
    owners.append((owned,))
    two = count(owned)
    owners.clear()
    return (one, two, count(owned)) == (alone + 1, alone + 2, alone)


COUNTS_ARE_EXACT = are_counts_exact()
"""Whether reference counts decide about copies and outputs; False on other interpreters."""


Step = tuple[PTensorOp, tuple[int, ...]]


@dataclass(slots=True)
class PendingGraph:
    """Nodes that are not computed, in topological order.

    Attributes:
        leaves: Computed nodes, in the order of the traversal.
        nodes: Nodes to compute.
        steps: Operation of each node, with the positions of its operands: position `-1 - k` for
            leaf `k`, position `k` for node `k`.
        outputs: Positions of the required nodes: the requested nodes, and all nodes that are
            referenced from outside.
        into: Contiguous memory for the elements of some outputs, by position.
    """

    leaves: list[Node]
    nodes: list[Node]
    steps: tuple[Step, ...]
    outputs: tuple[int, ...]
    into: Mapping[int, Buffer] | None = None

    def memory(self, position: int) -> Buffer:
        """Return uninitialized memory for the elements of an output."""
        if self.into is not None and position in self.into:
            return self.into[position]
        return empty(self.nodes[position].type)


def pending_graph_of(roots: Sequence[Node]) -> PendingGraph:
    """Return the pending operations of nodes."""
    if len(roots) == 1 and _is_single(roots[0]):
        return _single(roots[0])
    leaves, nodes, positions = _sort_topologically(roots)
    steps = tuple([(n.op, tuple([positions[operand] for operand in n.operands])) for n in nodes])
    required = {positions[root] for root in roots}
    del positions
    uses = [0] * len(nodes)
    for _, operands in steps:
        for position in operands:
            if position >= 0:
                uses[position] += 1
    counts = _references(nodes)
    outputs = tuple([
        k for k in range(len(nodes)) if k in required or counts[k] > uses[k] + _OURS
    ])
    return PendingGraph(leaves, nodes, steps, outputs)  # type: ignore[arg-type]


def by_device(work: PendingGraph) -> list[PendingGraph]:
    """Split pending operations by device; operands are always on the device of the operation."""
    devices = dict.fromkeys([work.nodes[position].type.device for position in work.outputs])
    return [work] if len(devices) == 1 else [_on(work, device) for device in devices]


def _on(work: PendingGraph, device: str | None) -> PendingGraph:
    members = [k for k, node in enumerate(work.nodes) if node.type.device == device]
    number = {index: k for k, index in enumerate(members)}
    steps = tuple([
        (op, tuple([number.get(index, index) for index in operands]))
        for op, operands in [work.steps[k] for k in members]
    ])
    used = sorted({-1 - index for _, operands in steps for index in operands if index < 0})
    renumbered = {-1 - leaf: -1 - k for k, leaf in enumerate(used)}
    steps = tuple([
        (op, tuple([renumbered.get(index, index) for index in operands])) for op, operands in steps
    ])
    return PendingGraph(
        [work.leaves[k] for k in used], [work.nodes[k] for k in members], steps,
        tuple([number[index] for index in work.outputs if index in number]),
    )


def _is_single(root: Node) -> bool:
    if root.op is None:
        return False
    return all([operand.op is None for operand in root.operands])


def _single(root: Node) -> PendingGraph:
    """Return the pending operation of a node with computed operands, the most frequent case."""
    leaves: list[Node] = []
    for operand in root.operands:
        if operand not in leaves:
            leaves.append(operand)
    positions = tuple([-1 - leaves.index(operand) for operand in root.operands])
    assert root.op is not None
    return PendingGraph(leaves, [root], ((root.op, positions),), (0,))


def _sort_topologically(roots: Sequence[Node]) -> tuple[list[Node], list[Node], dict[Node, int]]:
    leaves: list[Node] = []
    nodes: list[Node] = []
    positions: dict[Node, int] = {}
    stack = [*reversed(roots)]
    while stack:
        node = stack[-1]
        if node in positions:
            stack.pop()
        elif node.op is None:
            positions[stack.pop()] = -1 - len(leaves)
            leaves.append(node)
        elif missing := [operand for operand in node.operands if operand not in positions]:
            stack += reversed(missing)
        else:
            positions[stack.pop()] = len(nodes)
            nodes.append(node)
    return leaves, nodes, positions


def _references(nodes: Sequence[Node]) -> list[int]:
    """Return the total reference count of each node."""
    return [getrefcount(node) for node in nodes]


def _held_here() -> int:
    """Return the number of references to a node that `_references` itself adds."""
    return _references([materialized_node(np.empty(()), PTensorType((), "float64"))])[0]


_OURS = _held_here() if COUNTS_ARE_EXACT else -maxsize
"""References to a node from this module; without exact counts, every node is an output."""


@dataclass(frozen=True, slots=True)
class GraphSegment:
    """Operations that are compiled together.

    Attributes:
        leaves: Positions, among all operations, of values computed by earlier pieces.
        nodes: Positions of the results of the operations.
        steps: Operation of each result, with operand positions as in `PendingGraph`.
        outputs: Results that are required or read by later pieces.
        dead_values: Positions of values that are neither required nor read by later pieces.
    """

    leaves: tuple[int, ...]
    nodes: tuple[int, ...]
    steps: tuple[Step, ...]
    outputs: tuple[int, ...]
    dead_values: tuple[int, ...]


def pieces_of(
    work: PendingGraph, limit: int, is_separate: Callable[[PTensorOp], bool] = lambda op: False
) -> tuple[GraphSegment, ...]:
    """Split pending operations into pieces of bounded size.

    A piece ends where few values are live. In repetitive sequences, a piece is a whole number of
    periods, so that all pieces but the last reuse one kernel.

    Args:
        work: Pending operations.
        limit: Maximum number of operations in a piece.
        is_separate: Predicate for operations that must form their own piece.
    """
    count = len(work.steps)
    last = _last_uses(work)
    live = _live(last)
    codes = _codes(work.steps)
    pieces, start = [], 0
    separate = [k for k, (op, _) in enumerate(work.steps) if is_separate(op)]
    ends = sorted({count, *separate, *[k + 1 for k in separate]})
    while start < count:
        stop = next(end for end in ends if end > start)
        end = stop if stop - start <= limit else _end(start, limit, codes, live)
        pieces.append(_piece(work, range(start, end), last))
        start = end
    return tuple(pieces)


def _last_uses(work: PendingGraph) -> list[int]:
    """Return the last operation that reads each result; outputs are live to the end."""
    last = [0] * len(work.steps)
    for k, (_, positions) in enumerate(work.steps):
        for position in positions:
            if position >= 0:
                last[position] = k
    for position in work.outputs:
        last[position] = len(work.steps)
    return last


def _live(last: Sequence[int]) -> list[int]:
    """Return the number of live values before each operation."""
    change = [0] * (len(last) + 2)
    for position, last_use in enumerate(last):
        change[position + 1] += 1
        change[last_use + 1] -= 1
    return [*accumulate(change)]


def _codes(steps: Sequence[Step]) -> list[int]:
    """Return numbers that are equal for equal operations."""
    known: dict[object, int] = {}
    return [known.setdefault(op, len(known)) for op, _ in steps]


def _end(start: int, limit: int, codes: list[int], live: Sequence[int]) -> int:
    fewest = limit // 2
    period = next((p for p in range(1, fewest) if _comes_again(start, p, limit, codes)), 1)
    ends = [e for e in range(start + limit, start + fewest, -1) if (e - start) % period == 0]
    return min(ends, key=lambda end: live[end])


def _comes_again(start: int, period: int, limit: int, codes: list[int]) -> bool:
    following = codes[start + period : start + period + limit]
    return codes[start : start + len(following)] == following


def _piece(work: PendingGraph, run: range, last: Sequence[int]) -> GraphSegment:
    steps = work.steps[run.start : run.stop]
    read = dict.fromkeys(index for _, indices in steps for index in indices if index < run.start)
    leaves = {index: -1 - k for k, index in enumerate(read)}
    return GraphSegment(
        tuple(leaves),
        tuple(run),
        tuple([
            (op, tuple([index - run.start if index in run else leaves[index] for index in indices]))
            for op, indices in steps
        ]),
        tuple([k - run.start for k in run if last[k] >= run.stop]),
        tuple([index for index in (*read, *run) if index >= 0 and last[index] < run.stop]),
    )
