"""Overlap communication with computation.

Operations that depend on messages in flight are split into boxes: a core that needs no element in
flight, and borders that are computed after the messages have arrived.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf
from time import perf_counter

import numpy as np

from tecomp.array.graph.access_regions import (
    Box,
    OpGraph,
    RegionGraph,
    complement_boxes,
    full_box,
    ready_regions,
    restrict_to_regions,
    size_of,
)
from tecomp.array.graph.evaluate import compute
from tecomp.array.graph.node import Buffer, Node, materialized_node
from tecomp.array.graph.pending import PendingGraph
from tecomp.array.statistics import counters
from tecomp.caches import LRUCache, memoize
from tecomp.dist.runtime.call_tracking import waits
from tecomp.dist.runtime.point_to_point import Transfer

_MAX_GROWTH = 2
"""Maximum growth of the computed elements, because boxes share some values."""
_CALLS = 2e-5
"""Overhead of three kernel calls with views over one call, in seconds; measured 12 to 15 us."""
_COMPILED = 0.3
"""Compile time of the kernels of a core and its borders, in seconds."""
_NEW = 24
"""Number of first exchanges that are not measured, because kernels are compiled and specialized."""
_TIMES = 16
"""Number of measurements whose minimum is used, because other processes disturb the timing."""
_ROUND = 512
"""Number of exchanges for which the first measurement is valid."""


@dataclass(slots=True)
class OverlapDecision:
    """Measured choice between waiting and overlapping for a repeated exchange of this process.

    The time of messages is unknown in advance: it depends on the network, on the progress that MPI
    makes between calls, and on delays of other ranks. It is also unknown whether the core is large
    enough to hide the messages. Therefore both variants are measured in turn, unless the waiting
    time is shorter than the overhead of additional kernel calls. The measurement is repeated after
    a round, and each round is twice as long as the previous one. No measurement starts before the
    total waiting time equals the compile time of the additional kernels, because the number of
    future exchanges is unknown.

    Attributes:
        count: Number of exchanges in this round.
        length: Number of exchanges after which the round ends.
        spent: Total time of idle waiting, in seconds.
        waited: Minimum waiting time in this round, in seconds.
        plain: Minimum time in seconds from sending to the end of the computation, without overlap.
        cut: Minimum time in seconds from sending to the end of the computation, with overlap.
    """

    count: int = -_NEW
    length: int = _ROUND
    spent: float = 0.0
    waited: float = inf
    plain: float = inf
    cut: float = inf

    def is_profitable(self) -> bool:
        """Return whether to overlap this exchange."""
        if not self.count and self.spent < _COMPILED:
            return False
        self.count += 1
        if self.count > self.length:
            self.count, self.length = 1, 2 * self.length
            self.waited = self.plain = self.cut = inf
        if self.count <= _TIMES or self.waited < _CALLS:
            return False
        return self.count <= 3 * _TIMES or self.cut < self.plain

    def record_waiting(self, waited: float, seconds: float) -> None:
        """Record the times of an exchange without overlap."""
        if self.count >= 0:  # during the first exchanges, other ranks are late because they compile
            self.spent += waited
        if 0 < self.count <= _TIMES:
            self.waited, self.plain = min(self.waited, waited), min(self.plain, seconds)

    def record_overlap(self, seconds: float) -> None:
        """Record the time of an exchange with overlap, once its kernels are compiled."""
        if 2 * _TIMES < self.count <= 3 * _TIMES:
            self.cut = min(self.cut, seconds)


_choices: LRUCache[str, OverlapDecision] = LRUCache("dist.overlap_decisions")


def choice_for(name: str) -> OverlapDecision:
    """Return the choice for an exchange, identified by senders, receivers and contents."""
    return _choices.get(name, None) or _choices.keep(name, OverlapDecision())


@dataclass(frozen=True, slots=True)
class OverlapPlan:
    """Split of pending operations into boxes.

    Attributes:
        core: Operations that need no element in flight.
        borders: Operations on the boxes around the core.
    """

    core: RegionGraph
    borders: tuple[RegionGraph, ...]


class InFlightExchange:
    """Messages in flight, and elements that are available after their arrival.

    Attributes:
        reason: Purpose of the messages.
        count: Number of arrivals.
        independent_boxes: For each waiting node, the box of elements that do not depend on
            messages; None if all elements do.
    """

    def __init__(
        self, reason: str, count: int, transfer: Transfer | None, boxes: Mapping[Node, Box | None]
    ) -> None:
        self.reason, self.count, self.independent_boxes = reason, count, boxes
        self._transfer = transfer
        self._start = perf_counter()

    def wait(self) -> None:
        """Wait for all messages."""
        transfer, self._transfer = self._transfer, None
        if transfer is not None:
            waits.reason = self.reason
            transfer.wait()

    def compute(self, work: PendingGraph) -> None:
        """Compute pending operations on completed elements and elements in flight."""
        if self._transfer is None or not self._transfer.n_sent + self._transfer.n_received:
            self.wait()
            compute(work)
            return
        choice = choice_for(self._transfer.name)
        cutting = self._cutting(work) if choice.is_profitable() else None
        if cutting is not None:
            results = {position: work.memory(position) for position in work.outputs}
            try:
                _compute_boxes(work, cutting.core, results, "core")
            finally:
                self.wait()
            for border in cutting.borders:
                _compute_boxes(work, border, results, "border")
            for position, data in results.items():
                work.nodes[position].computed(data)
            counters.overlapped += 1
            choice.record_overlap(perf_counter() - self._start)
            return
        start = perf_counter()
        self.wait()
        waited = perf_counter() - start
        compute(work)
        choice.record_waiting(waited, perf_counter() - self._start)

    def _cutting(self, work: PendingGraph) -> OverlapPlan | None:
        if any(node.data is None for node in work.leaves):
            return None  # elements in device memory
        graph = OpGraph(tuple([node.type for node in work.leaves]), work.steps, work.outputs)
        available = [
            self.independent_boxes[node]
            if node in self.independent_boxes
            else full_box(node.type.shape)
            for node in work.leaves
        ]
        return plan_overlap(graph, tuple(available))


@memoize("dist.overlap_plans")
def plan_overlap(graph: OpGraph, available: tuple[Box | None, ...]) -> OverlapPlan | None:
    """Split operations into a core and borders; None if there is no core or too much recomputation.

    Args:
        graph: Operations.
        available: Available box of each leaf; None if no element is available.
    """
    found, types = ready_regions(graph, available), graph.types()
    cores: dict[int, Box] = {}
    slabs: list[dict[int, Box]] = [{} for _ in range(2 * max(ptype.rank for ptype in types))]
    for position in graph.outputs:
        core = found[position]
        if core is None:
            return None
        cores[position] = core
        for slab, box in zip(slabs, complement_boxes(core, types[position].shape), strict=False):
            if size_of(box):
                slab[position] = box
    plan = OverlapPlan(
        restrict_to_regions(graph, cores),
        tuple([restrict_to_regions(graph, slab) for slab in slabs if slab]),
    )
    total = sum([part.size for part in (plan.core, *plan.borders)])
    return plan if total <= _MAX_GROWTH * sum([ptype.size for ptype in types]) else None


def _compute_boxes(
    work: PendingGraph, region: RegionGraph, results: Mapping[int, Buffer], label: str
) -> None:
    leaves = []
    for (number, index), ptype in zip(region.leaves, region.graph.leaves, strict=True):
        data = work.leaves[number].data
        assert data is not None
        leaves.append(materialized_node(data[index], ptype))
    nodes = [Node(ptype, None, (), None, 0, 0) for ptype in region.types]
    targets = [results[position][index] for position, index in region.boxes]
    positions = region.graph.outputs
    into = {
        position: target for position, target in zip(positions, targets, strict=True)
        if position >= 0 and target.flags.c_contiguous
    }
    outputs = tuple(dict.fromkeys([position for position in positions if position >= 0]))
    if outputs:
        compute(PendingGraph(leaves, nodes, region.graph.steps, outputs, into), label)
    for position, target in zip(positions, targets, strict=True):
        data = (nodes[position] if position >= 0 else leaves[-1 - position]).data
        if data is not None and data is not target:
            np.copyto(target, data)
