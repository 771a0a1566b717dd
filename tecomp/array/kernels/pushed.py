"""Operations that only move elements, taken to the arrays that are there.

A slice of a sum is the sum of slices. What is left then are elementwise operations on views, for
which there is one kernel whatever the sizes are.
"""

from __future__ import annotations

from dataclasses import dataclass

from tecomp.array.graph.node import Node, leaf
from tecomp.array.graph.pending import Pending
from tecomp.array.graph.views import Chain, along, is_view, type_along
from tecomp.ptensor.elements import is_elementwise
from tecomp.ptensor.operation import Operation
from tecomp.ptensor.operations.manipulation import Broadcast

_TWICE = 2
"""How much more may be computed, because several parts are asked for of one value."""


@dataclass(frozen=True, slots=True)
class Pushed:
    """Pending operations without those that move elements.

    Attributes:
        work: the operations, on views of the leaves.
        sources: of each of its leaves, the leaf that it is a view of, and how.
    """

    work: Pending
    sources: tuple[tuple[int, Chain], ...]


def pushed(work: Pending) -> Pushed | None:
    """The same without moves; None if there are none, or memory does not have what they say."""
    moves = [is_view(op) for op, _ in work.steps]
    if not any(moves):
        return None
    wanted = _wanted(work, moves)
    if wanted is None or sum(map(len, wanted)) > _TWICE * len(work.steps):
        return None
    return _Builder(work, moves).built(wanted)


def _wanted(work: Pending, moves: list[bool]) -> list[list[Chain]] | None:
    """In which ways each value is asked for, beginning with those that are wanted as they are."""
    wanted: list[list[Chain]] = [[] for _ in work.steps]
    for place in work.outputs:
        wanted[place].append(())
    for k in reversed(range(len(work.steps))):
        op, places = work.steps[k]
        for chain in wanted[k]:
            if not moves[k] and chain and not is_elementwise(op):
                return None
            for place in places:
                if place >= 0:
                    way = _way(work, k, place, chain, moves[k])
                    if way not in wanted[place]:
                        wanted[place].append(way)
    return wanted


def _way(work: Pending, k: int, place: int, chain: Chain, is_move: bool) -> Chain:
    """How an operand is asked for, where the result is asked for in some way."""
    if is_move:
        return (work.steps[k][0], *chain)
    if not chain:
        return ()
    own = (work.nodes[place] if place >= 0 else work.leaves[-1 - place]).type.shape
    shape = work.nodes[k].type.shape
    return chain if own == shape else (Broadcast(shape), *chain)


class _Builder:
    """The operations that are left, and the views that they read."""

    def __init__(self, work: Pending, moves: list[bool]) -> None:
        self.work, self.moves = work, moves
        self.leaves: list[Node] = []
        self.nodes: list[Node] = []
        self.steps: list[tuple[Operation, tuple[int, ...]]] = []
        self.sources: list[tuple[int, Chain]] = []
        self.places: dict[tuple[int, Chain], int] = {}

    def built(self, wanted: list[list[Chain]]) -> Pushed | None:
        for k, chains in enumerate(wanted):
            for chain in chains:
                if not self._add(k, chain):
                    return None
        outputs = tuple([self.places[place, ()] for place in self.work.outputs])
        if min(outputs) < 0 or len({*outputs}) < len(outputs):
            return None  # a view of an array that is there, or one value in two ways
        work = Pending(self.leaves, self.nodes, tuple(self.steps), outputs)
        return Pushed(work, tuple(self.sources))

    def _add(self, k: int, chain: Chain) -> bool:
        op, places = self.work.steps[k]
        own = [self._place(p, _way(self.work, k, p, chain, self.moves[k])) for p in places]
        operands = [place for place in own if place is not None]
        if len(operands) < len(places):
            return False
        if self.moves[k]:
            self.places[k, chain] = operands[0]
            return True
        type = type_along(chain, self.work.nodes[k].type)
        self.places[k, chain] = len(self.nodes)
        self.nodes.append(Node(type, None, (), None, 0, 0))
        self.steps.append((op, tuple(operands)))
        return True

    def _place(self, place: int, chain: Chain) -> int | None:
        """Where an operand is; None if it is no view of an array that is there."""
        if (place, chain) in self.places or place >= 0:
            return self.places[place, chain]
        node = self.work.leaves[-1 - place]
        data = along(chain, node.data)
        if data is None:
            return None
        self.sources.append((-1 - place, chain))
        self.leaves.append(leaf(data, type_along(chain, node.type)))
        self.places[place, chain] = -len(self.leaves)
        return self.places[place, chain]
