"""Extract the pending subgraph in canonical form, and split long subgraphs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from sys import getrefcount

import numpy as np

from tecomp.array.graph.node import Buffer, Node, empty, materialized_node
from tecomp.ptensor.operation import PTensorOp
from tecomp.ptensor.types import PTensorType

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

    def memory(self, place: int) -> Buffer:
        """Return uninitialized memory for the elements of an output."""
        if self.into is not None and place in self.into:
            return self.into[place]
        return empty(self.nodes[place].type)


def pending_graph_of(roots: Sequence[Node]) -> PendingGraph:
    """Return the pending operations of nodes."""
    if len(roots) == 1 and _is_single(roots[0]):
        return _single(roots[0])
    leaves, nodes, places = _sort_topologically(roots)
    steps = tuple([(n.op, tuple([places[operand] for operand in n.operands])) for n in nodes])
    wanted = {places[root] for root in roots}
    del places
    uses = [0] * len(nodes)
    for _, operands in steps:
        for place in operands:
            if place >= 0:
                uses[place] += 1
    counts = _references(nodes)
    outputs = tuple([
        k for k in range(len(nodes)) if k in wanted or counts[k] > uses[k] + _OURS
    ])
    return PendingGraph(leaves, nodes, steps, outputs)  # type: ignore[arg-type]


def by_device(work: PendingGraph) -> list[PendingGraph]:
    """Split pending operations by device; operands are always on the device of the operation."""
    devices = dict.fromkeys([work.nodes[place].type.device for place in work.outputs])
    return [work] if len(devices) == 1 else [_on(work, device) for device in devices]


def _on(work: PendingGraph, device: str | None) -> PendingGraph:
    kept = [k for k, node in enumerate(work.nodes) if node.type.device == device]
    number = {place: k for k, place in enumerate(kept)}
    steps = tuple([
        (op, tuple([number.get(place, place) for place in operands]))
        for op, operands in [work.steps[k] for k in kept]
    ])
    used = sorted({-1 - place for _, operands in steps for place in operands if place < 0})
    moved = {-1 - leaf: -1 - k for k, leaf in enumerate(used)}
    steps = tuple([
        (op, tuple([moved.get(place, place) for place in operands])) for op, operands in steps
    ])
    return PendingGraph(
        [work.leaves[k] for k in used], [work.nodes[k] for k in kept], steps,
        tuple([number[place] for place in work.outputs if place in number]),
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
    places = tuple([-1 - leaves.index(operand) for operand in root.operands])
    assert root.op is not None
    return PendingGraph(leaves, [root], ((root.op, places),), (0,))


def _sort_topologically(roots: Sequence[Node]) -> tuple[list[Node], list[Node], dict[Node, int]]:
    leaves: list[Node] = []
    nodes: list[Node] = []
    places: dict[Node, int] = {}
    stack = [*reversed(roots)]
    while stack:
        node = stack[-1]
        if node in places:
            stack.pop()
        elif node.op is None:
            places[stack.pop()] = -1 - len(leaves)
            leaves.append(node)
        elif missing := [operand for operand in node.operands if operand not in places]:
            stack += reversed(missing)
        else:
            places[stack.pop()] = len(nodes)
            nodes.append(node)
    return leaves, nodes, places


def _references(nodes: Sequence[Node]) -> list[int]:
    """Return the total reference count of each node."""
    return [getrefcount(node) for node in nodes]


def _held_here() -> int:
    """Return the number of references to a node that `_references` itself adds."""
    return _references([materialized_node(np.empty(()), PTensorType((), "float64"))])[0]


_OURS = _held_here()


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
    work: PendingGraph, most: int, is_apart: Callable[[PTensorOp], bool] = lambda op: False
) -> tuple[GraphSegment, ...]:
    """Split pending operations into pieces of bounded size.

    A piece ends where few values are live. In repetitive sequences, a piece is a whole number of
    periods, so that all pieces but the last reuse one kernel.

    Args:
        work: Pending operations.
        most: Maximum number of operations in a piece.
        is_apart: Predicate for operations that must form their own piece.
    """
    count = len(work.steps)
    last = _last_uses(work)
    live = _live(last)
    codes = _codes(work.steps)
    pieces, start = [], 0
    apart = [k for k, (op, _) in enumerate(work.steps) if is_apart(op)]
    ends = sorted({count, *apart, *[k + 1 for k in apart]})
    while start < count:
        stop = next(end for end in ends if end > start)
        end = stop if stop - start <= most else _end(start, most, codes, live)
        pieces.append(_piece(work, range(start, end), last))
        start = end
    return tuple(pieces)


def _last_uses(work: PendingGraph) -> list[int]:
    """Return the last operation that reads each result; outputs are live to the end."""
    last = [0] * len(work.steps)
    for k, (_, places) in enumerate(work.steps):
        for place in places:
            if place >= 0:
                last[place] = k
    for place in work.outputs:
        last[place] = len(work.steps)
    return last


def _live(last: Sequence[int]) -> list[int]:
    """Return the number of live values before each operation."""
    change = [0] * (len(last) + 2)
    for place, use in enumerate(last):
        change[place + 1] += 1
        change[use + 1] -= 1
    return [*accumulate(change)]


def _codes(steps: Sequence[Step]) -> list[int]:
    """Return numbers that are equal for equal operations."""
    known: dict[object, int] = {}
    return [known.setdefault(op, len(known)) for op, _ in steps]


def _end(start: int, most: int, codes: list[int], live: Sequence[int]) -> int:
    fewest = most // 2
    period = next((p for p in range(1, fewest) if _comes_again(start, p, most, codes)), 1)
    ends = [e for e in range(start + most, start + fewest, -1) if (e - start) % period == 0]
    return min(ends, key=lambda end: live[end])


def _comes_again(start: int, period: int, most: int, codes: list[int]) -> bool:
    behind = codes[start + period : start + period + most]
    return codes[start : start + len(behind)] == behind


def _piece(work: PendingGraph, own: range, last: Sequence[int]) -> GraphSegment:
    steps = work.steps[own.start : own.stop]
    read = dict.fromkeys(place for _, places in steps for place in places if place < own.start)
    leaves = {place: -1 - k for k, place in enumerate(read)}
    return GraphSegment(
        tuple(leaves),
        tuple(own),
        tuple([
            (op, tuple([place - own.start if place in own else leaves[place] for place in places]))
            for op, places in steps
        ]),
        tuple([k - own.start for k in own if last[k] >= own.stop]),
        tuple([place for place in (*read, *own) if place >= 0 and last[place] < own.stop]),
    )
