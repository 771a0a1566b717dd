"""Extract the pending subgraph in canonical form; split long ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from sys import getrefcount

import numpy as np

from tecomp.array.graph.node import Buffer, Node, empty, leaf
from tecomp.ptensor.operation import Operation
from tecomp.ptensor.types import PTensorType

Step = tuple[Operation, tuple[int, ...]]


@dataclass(slots=True)
class Pending:
    """Nodes that are not computed, each behind those that it needs.

    Attributes:
        leaves: the nodes that are computed, in the order in which they are met.
        nodes: those that are not.
        steps: what computes each: an operation, and the places of its operands: leaf `k` is at
            place `-1 - k`, node `k` at place `k`.
        outputs: the places of the nodes that are wanted: what was asked for, and what else
            somebody can still ask for.
        into: memory for the elements of some outputs, by place, without gaps.
    """

    leaves: list[Node]
    nodes: list[Node]
    steps: tuple[Step, ...]
    outputs: tuple[int, ...]
    into: Mapping[int, Buffer] | None = None

    def memory(self, place: int) -> Buffer:
        """Memory for the elements of an output; what is in it is not defined."""
        if self.into is not None and place in self.into:
            return self.into[place]
        return empty(self.nodes[place].type)


def pending(roots: Sequence[Node]) -> Pending:
    """What has to be computed for some nodes."""
    if len(roots) == 1 and _is_single(roots[0]):
        return _single(roots[0])
    leaves, nodes, places = _ordered(roots)
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
    return Pending(leaves, nodes, steps, outputs)  # type: ignore[arg-type]


def by_device(work: Pending) -> list[Pending]:
    """The same for each device alone: what is on one is made of what is there."""
    devices = dict.fromkeys([work.nodes[place].type.device for place in work.outputs])
    return [work] if len(devices) == 1 else [_on(work, device) for device in devices]


def _on(work: Pending, device: str | None) -> Pending:
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
    return Pending(
        [work.leaves[k] for k in used], [work.nodes[k] for k in kept], steps,
        tuple([number[place] for place in work.outputs if place in number]),
    )


def _is_single(root: Node) -> bool:
    if root.op is None:
        return False
    return all([operand.op is None for operand in root.operands])


def _single(root: Node) -> Pending:
    """The same for one operation on what is computed, which is asked for most often."""
    leaves: list[Node] = []
    for operand in root.operands:
        if operand not in leaves:
            leaves.append(operand)
    places = tuple([-1 - leaves.index(operand) for operand in root.operands])
    assert root.op is not None
    return Pending(leaves, [root], ((root.op, places),), (0,))


def _ordered(roots: Sequence[Node]) -> tuple[list[Node], list[Node], dict[Node, int]]:
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
    """How many references there are to each node, from everywhere."""
    return [getrefcount(node) for node in nodes]


def _held_here() -> int:
    """The references to a node that the work on a list of them takes."""
    return _references([leaf(np.empty(()), PTensorType((), "float64"))])[0]


_OURS = _held_here()


@dataclass(frozen=True, slots=True)
class Piece:
    """Operations that are computed together.

    Attributes:
        leaves: the places, in all of the operations, of what is computed before.
        nodes: the places of the results of the operations.
        steps: what computes each, as of pending operations.
        outputs: the results that are wanted, or that pieces behind this one read.
        done: the places of what no piece behind this one reads, and nobody wants.
    """

    leaves: tuple[int, ...]
    nodes: tuple[int, ...]
    steps: tuple[Step, ...]
    outputs: tuple[int, ...]
    done: tuple[int, ...]


def pieces_of(
    work: Pending, most: int, is_apart: Callable[[Operation], bool] = lambda op: False
) -> tuple[Piece, ...]:
    """Pending operations in pieces of so many at most.

    A piece ends where few results are read behind it. Where operations come again and again, it is
    a whole number of rounds, so that all pieces but the last are the same kernel.

    Args:
        work: Pending operations.
        most: the number of operations in a piece, at most.
        is_apart: returns whether an operation has to be a piece of its own.
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


def _last_uses(work: Pending) -> list[int]:
    """The last operation that reads each result; one behind all of them for what is wanted."""
    last = [0] * len(work.steps)
    for k, (_, places) in enumerate(work.steps):
        for place in places:
            if place >= 0:
                last[place] = k
    for place in work.outputs:
        last[place] = len(work.steps)
    return last


def _live(last: Sequence[int]) -> list[int]:
    """How many results before each operation are read from there on."""
    change = [0] * (len(last) + 2)
    for place, use in enumerate(last):
        change[place + 1] += 1
        change[use + 1] -= 1
    return [*accumulate(change)]


def _codes(steps: Sequence[Step]) -> list[int]:
    """Numbers that are equal for equal operations."""
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


def _piece(work: Pending, own: range, last: Sequence[int]) -> Piece:
    steps = work.steps[own.start : own.stop]
    read = dict.fromkeys(place for _, places in steps for place in places if place < own.start)
    leaves = {place: -1 - k for k, place in enumerate(read)}
    return Piece(
        tuple(leaves),
        tuple(own),
        tuple([
            (op, tuple([place - own.start if place in own else leaves[place] for place in places]))
            for op, places in steps
        ]),
        tuple([k - own.start for k in own if last[k] >= own.stop]),
        tuple([place for place in (*read, *own) if place >= 0 and last[place] < own.stop]),
    )
