"""The part of the graph that is to be computed, in a form that is equal for equal programs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
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
