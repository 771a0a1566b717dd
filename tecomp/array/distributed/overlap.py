"""Overlap communication with computation.

What is computed next of what arrives is cut into boxes: a core whose elements need nothing that is
on its way, and what is around it, for which the process waits.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from math import inf
from time import perf_counter

import numpy as np

from tecomp.array.graph.access_regions import (
    Box,
    Boxed,
    Graph,
    around,
    boxed,
    ready,
    size_of,
    whole,
)
from tecomp.array.graph.evaluate import compute
from tecomp.array.graph.node import Buffer, Node, leaf
from tecomp.array.graph.pending import Pending
from tecomp.array.lru_cache import Recent
from tecomp.array.statistics import counters
from tecomp.dist.runtime.call_tracking import waits
from tecomp.dist.runtime.transfers import Transfer

_TWICE = 2
"""How much more may be computed, because boxes are made of some of the same values."""
_CALLS = 2e-5
"""Seconds that views and calls of three kernels take more than one; it was 12 to 15 us."""
_COMPILED = 0.3
"""Seconds that it takes to compile the kernels of a core and of what is around it."""
_NEW = 24
"""Exchanges after which kernels are compiled for what comes again, also for its extents alone."""
_TIMES = 16
"""Measurements of which the shortest counts: others may be at work on the machine too."""
_ROUND = 512
"""Exchanges for which it holds what was measured, the first time."""


@dataclass(slots=True)
class Choice:
    """Which way is faster for an exchange that comes again, as measured by this process.

    What messages take is not known before: it depends on the network, on how far MPI sends them
    while nobody calls it, and on how long others let this process wait; nor what a core takes that
    is too small to hide that. So both ways are tried one after the other, unless there was no
    waiting that is worth the calls of more kernels; and again after some time, and after twice
    that. Nothing is tried before all waiting took as long as compiling more kernels does: nobody
    knows how many exchanges are to come.

    Attributes:
        count: exchanges of this round.
        length: exchanges after which it ends.
        spent: the time of all waiting with nothing to do meanwhile, in seconds.
        waited: the shortest time of such waiting in this round.
        plain: the shortest time from when messages are sent until all is computed, that way.
        cut: the same if the core is computed meanwhile.
    """

    count: int = -_NEW
    length: int = _ROUND
    spent: float = 0.0
    waited: float = inf
    plain: float = inf
    cut: float = inf

    def pays(self) -> bool:
        """Whether to compute the core meanwhile, this time."""
        if not self.count and self.spent < _COMPILED:
            return False
        self.count += 1
        if self.count > self.length:
            self.count, self.length = 1, 2 * self.length
            self.waited = self.plain = self.cut = inf
        if self.count <= _TIMES or self.waited < _CALLS:
            return False
        return self.count <= 3 * _TIMES or self.cut < self.plain

    def was_plain(self, waited: float, seconds: float) -> None:
        """Note what it took to wait first."""
        if self.count >= 0:  # before, others are late as they compile
            self.spent += waited
        if 0 < self.count <= _TIMES:
            self.waited, self.plain = min(self.waited, waited), min(self.plain, seconds)

    def was_cut(self, seconds: float) -> None:
        """Note what it took to compute the core first, once there are kernels for that."""
        if 2 * _TIMES < self.count <= 3 * _TIMES:
            self.cut = min(self.cut, seconds)


_choices: Recent[str, Choice] = Recent(1024)


def choice_for(name: str) -> Choice:
    """That of an exchange, by its name, which says who sends what to whom."""
    return _choices.get(name, None) or _choices.keep(name, Choice())


@dataclass(frozen=True, slots=True)
class Cutting:
    """How pending operations are computed in boxes.

    Attributes:
        core: what needs nothing that is on its way.
        borders: what is around it.
    """

    core: Boxed
    borders: tuple[Boxed, ...]


class Flight:
    """Messages that were sent, and elements that are not there until they have come.

    Attributes:
        why: what they are for.
        count: how many arrivals there are.
        coming: of nodes that wait for them the box of elements that does not; None if all do.
    """

    def __init__(
        self, why: str, count: int, transfer: Transfer | None, coming: Mapping[Node, Box | None]
    ) -> None:
        self.why, self.count, self.coming = why, count, coming
        self._transfer = transfer
        self._start = perf_counter()

    def wait(self) -> None:
        """Go on when all has come."""
        transfer, self._transfer = self._transfer, None
        if transfer is not None:
            waits.why = self.why
            transfer.wait()

    def compute(self, work: Pending) -> None:
        """Compute pending operations, of what has come and of what is going to."""
        if self._transfer is None or not self._transfer.n_sent + self._transfer.n_received:
            self.wait()
            compute(work)
            return
        choice = choice_for(self._transfer.name)
        cutting = self._cutting(work) if choice.pays() else None
        if cutting is not None:
            _in_boxes(work, cutting, self.wait)
            counters.overlapped += 1
            choice.was_cut(perf_counter() - self._start)
            return
        start = perf_counter()
        self.wait()
        waited = perf_counter() - start
        compute(work)
        choice.was_plain(waited, perf_counter() - self._start)

    def _cutting(self, work: Pending) -> Cutting | None:
        if any(node.data is None for node in work.leaves):
            return None  # on a device
        graph = Graph(tuple([node.type for node in work.leaves]), work.steps, work.outputs)
        given = [
            self.coming[node] if node in self.coming else whole(node.type.shape)
            for node in work.leaves
        ]
        return cutting_of(graph, tuple(given))


@lru_cache(maxsize=1024)
def cutting_of(graph: Graph, given: tuple[Box | None, ...]) -> Cutting | None:
    """How operations are computed in boxes; None if there is no core, or too much is done twice.

    Args:
        graph: the operations.
        given: of each leaf the box that is there; None if it has none.
    """
    found, types = ready(graph, given), graph.types()
    cores: dict[int, Box] = {}
    slabs: list[dict[int, Box]] = [{} for _ in range(2 * max(type.rank for type in types))]
    for place in graph.outputs:
        core = found[place]
        if core is None:
            return None
        cores[place] = core
        for slab, box in zip(slabs, around(core, types[place].shape), strict=False):
            if size_of(box):
                slab[place] = box
    made = Cutting(boxed(graph, cores), tuple([boxed(graph, slab) for slab in slabs if slab]))
    total = sum([each.size for each in (made.core, *made.borders)])
    return made if total <= _TWICE * sum([type.size for type in types]) else None


def _in_boxes(work: Pending, cutting: Cutting, wait: Callable[[], None]) -> None:
    results = {place: work.memory(place) for place in work.outputs}
    try:
        _compute_boxes(work, cutting.core, results, "core")
    finally:
        wait()
    for border in cutting.borders:
        _compute_boxes(work, border, results, "border")
    for place, data in results.items():
        work.nodes[place].computed(data)


def _compute_boxes(
    work: Pending, each: Boxed, results: Mapping[int, Buffer], what: str
) -> None:
    given = []
    for (number, index), type in zip(each.leaves, each.graph.leaves, strict=True):
        data = work.leaves[number].data
        assert data is not None
        given.append(leaf(data[index], type))
    nodes = [Node(type, None, (), None, 0, 0) for type in each.types]
    targets = [results[place][index] for place, index in each.boxes]
    own = each.graph.outputs
    into = {
        place: target for place, target in zip(own, targets, strict=True)
        if place >= 0 and target.flags.c_contiguous
    }
    outputs = tuple(dict.fromkeys([place for place in own if place >= 0]))
    if outputs:
        compute(Pending(given, nodes, each.graph.steps, outputs, into), what)
    for place, target in zip(own, targets, strict=True):
        data = (nodes[place] if place >= 0 else given[-1 - place]).data
        if data is not None and data is not target:
            np.copyto(target, data)
