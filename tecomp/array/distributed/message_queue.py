"""Coalesce pending messages, send them on first use, and record the activity of each rank."""

from __future__ import annotations

import json
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from tecomp.array.distributed.overlap import InFlightExchange
from tecomp.array.distributed.partitions import ShiftedWindow, WindowSet, windows_of
from tecomp.array.graph.access_regions import Box
from tecomp.array.graph.evaluate import evaluate, lane
from tecomp.array.graph.node import Buffer, Node, ShardedNode, empty, local_type, memory
from tecomp.array.single_controller import collective
from tecomp.array.statistics import counters
from tecomp.dist.partition.partition import Partition
from tecomp.dist.partition.placements import Mesh
from tecomp.dist.partition.redistribution import Redistribution, redistribution
from tecomp.dist.runtime.call_tracking import waits
from tecomp.dist.runtime.collectives import (
    allgather,
    allreduce,
    alltoall,
    combine_along_mesh,
    exscan,
)
from tecomp.dist.runtime.dtensor import start_redistribution
from tecomp.dist.runtime.point_to_point import Transfer, TransferJob, TransferPlan
from tecomp.dist.runtime.team import AnyTeam, Team, team_of
from tecomp.drawing.chrome_trace import ChromeTrace, bar, lane_named, process_named, trace_of
from tecomp.fork_gate import WorkLock
from tecomp.ptensor.types import PTensorType, numpy_dtype

MAX_QUEUED_MESSAGES = 64
"""Maximum number of messages that are collected before they are sent."""

MOST_STEPS = 256
"""Maximum number of operations recorded before their pending messages are sent."""


@dataclass(slots=True, eq=False)
class PendingArray:
    """Elements that this process will receive.

    Attributes:
        node: Node that receives the elements.
        dependency_ticket: Ticket of the last arrival on which the sent elements depend.
        source: Local shard that is sent.
        reason: Operation that requires the message.
    """

    node: Node
    dependency_ticket: int
    source: Node
    reason: str


@dataclass(slots=True, eq=False)
class PendingReshard(PendingArray):
    """Redistribution of an array."""

    moves: Redistribution


@dataclass(slots=True, eq=False)
class PendingHalo(PendingArray):
    """Window of an array that extends into the shards of neighbors.

    Attributes:
        base: Array whose shard is the source.
        window: Window.
    """

    base: ShardedNode
    window: ShiftedWindow


@dataclass(slots=True, eq=False)
class PendingAllGather(PendingArray):
    """All-gather of sources of equal shape along a new first axis."""


@dataclass(slots=True)
class MessageQueue:
    """Pending and active messages of one team.

    Attributes:
        waiting: Arrivals whose messages have not been sent.
        num_in_flight: Number of arrivals whose messages are in flight.
        completed_ticket: Ticket of the last completed arrival.
        steps: Number of operations recorded since the first waiting arrival.
        reason: Operation that is being recorded.
        lock: Lock held while messages are sent.
    """

    team: Team
    waiting: list[PendingArray] = field(default_factory=list)
    num_in_flight: int = 0
    completed_ticket: int = 0
    steps: int = 0
    reason: str = ""
    lock: WorkLock = field(default_factory=WorkLock)

    def add(self, arrival: PendingArray) -> int:
        """Add an arrival and return its ticket, which dependent arrays record."""
        self.waiting.append(arrival)
        return self.last

    @property
    def last(self) -> int:
        """Ticket of the last requested arrival."""
        return self.completed_ticket + self.num_in_flight + len(self.waiting)

    def step(self, reason: str) -> None:
        """Count a recorded operation."""
        self.reason = waits.reason = reason
        if self.waiting:
            self.steps += 1
            if len(self.waiting) >= MAX_QUEUED_MESSAGES or self.steps >= MOST_STEPS:
                self.flush()

    def flush(self, dependents: Sequence[Node] = ()) -> None:
        """Send all pending messages and wait for their completion.

        Args:
            dependents: Nodes computed from the arrivals, which may start before all elements have
                arrived.
        """
        with self.lock:
            flight: InFlightExchange | None = None
            try:
                while self.waiting:
                    group = self._next()
                    group.compute(flight)
                    self._land(flight)
                    flight = None
                    flight = group.send()
                if flight is not None and dependents:
                    evaluate(dependents, runner=flight.compute)
            finally:
                self._land(flight)
                # Failed messages are dropped: a later attempt would block the other ranks.
                self.completed_ticket += self.num_in_flight
                self.num_in_flight = 0
            self.steps = 0
            waits.reason = self.reason

    def _next(self) -> _MessageBatch:
        """Return the longest prefix of waiting arrivals that do not depend on each other."""
        first = self.completed_ticket + self.num_in_flight + 1
        count = next(
            (k for k, entry in enumerate(self.waiting) if entry.dependency_ticket >= first),
            len(self.waiting),
        )
        group, self.waiting = self.waiting[:count], self.waiting[count:]
        self.num_in_flight += count
        return _MessageBatch(self.team, group)

    def _land(self, flight: InFlightExchange | None) -> None:
        """Wait for the messages in flight."""
        if flight is not None:
            flight.wait()
            self.num_in_flight -= flight.count
            self.completed_ticket += flight.count


_queues: dict[int, MessageQueue] = {}


def queue_of(team: int) -> MessageQueue:
    """Return the message queue of a team."""
    found = _queues.get(team)
    if found is None:
        found = _queues[team] = MessageQueue(team_of(team))
        lane.begin()
    return found


def defer_reshard(x: ShardedNode, target: Partition) -> ShardedNode:
    """Redistribute an array on first use."""
    return pending_array(x.type, target, x.part, redistribution(x.partition, target), x.ticket)


def pending_array(
    ptype: PTensorType, target: Partition, source: Node, moves: Redistribution, after: int
) -> ShardedNode:
    """Return the array that a redistribution of shards or partial values produces."""
    queue = queue_of(_number(ptype))
    node = _wait_for(ptype, target.local_shape(queue.team.rank))
    ticket = queue.add(PendingReshard(node, after, source, queue.reason, moves))
    return ShardedNode(ptype, node, target, ticket)


def defer_halo(
    base: ShardedNode, ptype: PTensorType, window: ShiftedWindow, target: Partition
) -> ShardedNode:
    """Return a window of an array whose halo is received on first use."""
    queue = queue_of(_number(ptype))
    node = _wait_for(ptype, target.local_shape(queue.team.rank))
    ticket = queue.add(PendingHalo(node, base.ticket, base.part, queue.reason, base, window))
    return ShardedNode(ptype, node, target, ticket)


def defer_allgather(ptype: PTensorType, source: Node, after: int) -> tuple[Node, int]:
    """All-gather shards of one shape along a new first axis; return the node and its ticket."""
    queue = queue_of(_number(ptype))
    node = _wait_for(source.type, (queue.team.size, *source.type.shape))
    return node, queue.add(PendingAllGather(node, after, source, queue.reason))


def flush_messages(xs: Sequence[ShardedNode], compute_shards: bool = False) -> None:
    """Wait for the messages on which the shards of arrays depend.

    Args:
        xs: Arrays.
        compute_shards: If True, the shards are needed now and are computed while messages are in
            flight, as far as possible.
    """
    for x in xs:
        x.part  # noqa: B018  # chooses the sharding, which may add messages
    for team in dict.fromkeys([_number(x.type) for x in xs]):
        queue, team_arrays = queue_of(team), [x for x in xs if x.type.team == team]
        if any(x.ticket > queue.completed_ticket for x in team_arrays):
            queue.flush([x.part for x in team_arrays] if compute_shards else ())


def is_settled(x: ShardedNode) -> bool:
    """Return whether the shard of an array is known and depends on no pending message."""
    return (
        x.made_of is None
        and x.part.is_there
        and x.ticket <= queue_of(_number(x.type)).completed_ticket
    )


def explain(xs: Sequence[ShardedNode]) -> tuple[str, ...]:
    """Describe the messages that are sent before shards are computed: purpose and size."""
    for x in xs:
        x.part  # noqa: B018  # chooses the sharding, as in `flush_messages`
    found: list[str] = []
    for team in dict.fromkeys([_number(x.type) for x in xs]):
        for entry in queue_of(team).waiting:
            found.append(_describe(entry, queue_of(team).team.size))
    return tuple(found)


def _describe(entry: PendingArray, size: int) -> str:
    if isinstance(entry, PendingAllGather):
        return f"all_gather for {entry.reason}: {entry.source.type.size} elements per rank"
    moves: TransferPlan
    if isinstance(entry, PendingHalo):
        moves = windows_of(entry.base.partition, (entry.window,)).halo
    else:
        assert isinstance(entry, PendingReshard)
        moves = entry.moves
        if entry.moves.reduced:
            return f"all_reduce for {entry.reason}: {entry.moves.nbytes} bytes"
    sent = [m for rank in range(size) for m in moves.sent_by(rank) if m.source != m.target]
    prefix = "halo for " if isinstance(entry, PendingHalo) else ""
    return f"{prefix}{entry.reason}: {sum(m.nbytes for m in sent)} bytes in {len(sent)} messages"


def _number(ptype: PTensorType) -> int:
    assert ptype.team is not None
    return ptype.team


def _wait_for(ptype: PTensorType, shape: tuple[int, ...]) -> Node:
    return Node(local_type(ptype, shape), None, (), None, 0, 0)


class _Halo(NamedTuple):
    """Shard with its halo.

    Attributes:
        node: Shard.
        seen: Windows that are read.
        plan: Positions of the windows.
        buffer: Memory for the shard and its halo.
        core: View of the shard in that memory.
    """

    node: Node
    seen: Sequence[PendingHalo]
    plan: WindowSet
    buffer: Buffer
    core: Buffer


class _MessageBatch:
    """Arrivals that do not depend on each other."""

    def __init__(self, team: Team, arrivals: Sequence[PendingArray]) -> None:
        self.team, self.arrivals = team, arrivals
        self.sent_bytes = [entry for entry in arrivals if isinstance(entry, PendingReshard)]
        self.is_reported = [entry for entry in arrivals if isinstance(entry, PendingAllGather)]
        self.bases: dict[tuple[Node, Partition], list[PendingHalo]] = defaultdict(list)
        for entry in arrivals:
            if isinstance(entry, PendingHalo):
                self.bases[entry.source, entry.base.partition].append(entry)
        self.jobs: list[tuple[str, Any, TransferJob]] = []
        self.halos: list[_Halo] = []
        self.expected_arrivals: dict[Node, Box | None] = {}

    def compute(self, flight: InFlightExchange | None) -> None:
        """Compute the elements to send from completed arrivals and arrivals in flight."""
        self.halos = [self._halo(base, arrivals) for base, arrivals in self.bases.items()]
        into = {
            halo.node: halo.core for halo in self.halos
            if halo.node.data is None and halo.core.flags.c_contiguous
        }
        sources = [halo.node for halo in self.halos]
        sources += [entry.source for entry in (*self.sent_bytes, *self.is_reported)]
        evaluate(sources, into, None if flight is None else flight.compute)

    def send(self) -> InFlightExchange:
        """Send the messages, and register where the received elements belong."""
        why = waits.reason = " and ".join(dict.fromkeys([entry.reason for entry in self.arrivals]))
        for halo in self.halos:
            self._surround(halo)
        for entry in self.sent_bytes:
            if not entry.moves.reduced:
                self._move(entry)
        flight = InFlightExchange(why, len(self.arrivals), self._started(), self.expected_arrivals)
        self._combine([entry for entry in self.sent_bytes if entry.moves.reduced])
        self._tell()
        return flight

    def _halo(self, base: tuple[Node, Partition], arrivals: Sequence[PendingHalo]) -> _Halo:
        node, partition = base
        plan = windows_of(partition, tuple([entry.window for entry in arrivals]))
        buffer = memory(plan.halo.shape(self.team.rank), numpy_dtype(node.type.dtype))
        return _Halo(node, arrivals, plan, buffer, buffer[plan.halo.core(self.team.rank)])

    def _surround(self, state: _Halo) -> None:
        data = _data(state.node)
        if not np.may_share_memory(state.core, data):
            np.copyto(state.core, data)
            if state.node.stored is None:
                state.node.data = state.core
        halo = state.plan.halo
        self.jobs.append(
            (f"halo for {state.seen[0].reason}", halo, TransferJob(halo, state.core, state.buffer)))
        rank = self.team.rank
        locations = zip(state.plan.indices(rank), state.plan.inner(rank), strict=True)
        for entry, (index, inner) in zip(state.seen, locations, strict=True):
            if not entry.node.type.size:
                # An empty window may begin out of range, where slicing would change other extents.
                entry.node.computed(empty(entry.node.type))
                continue
            entry.node.computed(state.buffer[index])
            self.expected_arrivals[entry.node] = inner

    def _move(self, entry: PendingReshard) -> None:
        result = empty(entry.node.type)
        job = TransferJob(entry.moves, _data(entry.source), result, entry.moves.op)
        self.jobs.append((entry.reason, entry.moves, job))
        entry.node.computed(result)
        self.expected_arrivals[entry.node] = None

    def _started(self) -> Transfer | None:
        if not self.jobs:
            return None
        for reason, moves, _ in self.jobs:
            _count_sent(reason, moves, self.team.rank)
        name = " and ".join([str(moves) for _, moves, _ in self.jobs])
        pending = Transfer(self.team, name, [job for _, _, job in self.jobs])
        counters.messages += pending.n_sent
        counters.exchanges += pending.n_sent + pending.n_received > 0
        return pending

    def _combine(self, arrivals: Sequence[PendingReshard]) -> None:
        """Reduce partial values, with one message per dtype and reduction."""
        groups: dict[Any, list[PendingReshard]] = defaultdict(list)
        for entry in arrivals:
            source, moves = _data(entry.source), entry.moves
            if moves.combined != moves.target:
                result = memory(entry.node.type.shape, source.dtype)
                start_redistribution(self.team, moves, source, result).wait()
                entry.node.computed(result)
                continue
            key = source.dtype, moves.source.op, moves.source.mesh, moves.reduced
            groups[key].append(entry)
        for (_, op, mesh, axes), chosen in groups.items():
            self._combine_alike(op, mesh, axes, chosen)

    def _combine_alike(
        self, op: str, mesh: Mesh, axes: tuple[int, ...], chosen: Sequence[PendingReshard]
    ) -> None:
        parts = [np.ravel(_data(entry.source)) for entry in chosen]
        flat = parts[0] if len(parts) == 1 else np.concatenate(parts)
        with self.team.call("all_reduce " + " and ".join([str(entry.moves) for entry in chosen])):
            combined = combine_along_mesh(self.team, mesh, axes, flat, op)
        counters.collectives += self.team.size > 1
        for entry, part in zip(
            chosen, _split_rows(combined, [part.size for part in parts]), strict=True
        ):
            counters.sent[f"all_reduce for {entry.reason}"] += part.nbytes
            entry.node.computed(part.reshape(entry.node.type.shape))

    def _tell(self) -> None:
        """Run all all-gathers in one message, as bytes."""
        if not self.is_reported:
            return
        rows = [np.ascontiguousarray(_data(entry.source)).reshape(-1) for entry in self.is_reported]
        sizes = [row.nbytes for row in rows]
        row = np.concatenate([row.view(np.uint8) for row in rows])
        gathered = allgather(self.team, row[None])
        counters.collectives += self.team.size > 1
        ends = [*np.cumsum(sizes).tolist()]
        for entry, end, size in zip(self.is_reported, ends, sizes, strict=True):
            part = np.ascontiguousarray(gathered[:, end - size : end])
            dtype = numpy_dtype(entry.node.type.dtype)
            counters.sent[f"all_gather for {entry.reason}"] += size
            entry.node.computed(part.view(dtype).reshape(entry.node.type.shape))


def _data(node: Node) -> Buffer:
    """Return the elements of a computed node in host memory."""
    if node.stored is not None:
        return node.stored.elements()
    assert node.data is not None
    return node.data


def _split_rows(data: Buffer, sizes: Sequence[int]) -> list[Buffer]:
    return np.split(data, np.cumsum(sizes)[:-1]) if len(sizes) > 1 else [data]


def _count_sent(reason: str, moves: TransferPlan, rank: int) -> None:
    counters.sent[reason] += sum(m.nbytes for m in moves.sent_by(rank) if m.target != rank)


def counted_allgather(team: int, data: Buffer) -> Buffer:
    """All-gather arrays, concatenated along the first axis."""
    _count_collective(team, "all_gather", data.nbytes)
    return allgather(team, data)


def counted_alltoall(team: int, parts: Sequence[Buffer]) -> list[Buffer]:
    """Exchange arrays all-to-all; return the arrays for this process by rank."""
    local_rank = queue_of(team).team.rank
    nbytes = sum(part.nbytes for k, part in enumerate(parts) if k != local_rank)
    _count_collective(team, "all_to_all", nbytes)
    return alltoall(team, parts)


def counted_allreduce(team: int, data: Buffer) -> Buffer:
    """All-reduce arrays by sum."""
    _count_collective(team, "all_reduce", data.nbytes)
    return allreduce(team, data)


def counted_exscan(team: int, data: Buffer, op: str) -> Buffer | None:
    """Reduce the arrays of all lower ranks (exclusive scan); None on rank 0."""
    _count_collective(team, "exscan", data.nbytes)
    return exscan(team, data, op)


def _count_collective(team: int, collective: str, nbytes: int) -> None:
    queue = queue_of(team)
    if queue.team.size > 1:
        counters.collectives += 1
        counters.sent[f"{collective} for {queue.reason}"] += nbytes


Did: TypeAlias = "tuple[str, str, float, float]"
"""Activity: kernel or wait, its name or cause, start time and end time."""


def lanes_of(team: AnyTeam, since: float) -> ChromeTrace:
    """Return the timeline of a team.

    This is a collective call: every rank must make it.

    Args:
        team: Team.
        since: Start time in seconds of `time.time`; earlier activity is omitted.
    """
    number = team_of(team).id
    all_lanes = lanes(number, since)
    first = min([start for activity in all_lanes for _, _, start, _ in activity], default=0.0)
    events = [process_named(0, f"team {number}")]
    for rank, activity in enumerate(all_lanes):
        events.append(lane_named(0, rank, f"rank {rank}"))
        events += [
            bar(name, kind, (start - first) * 1e6, (stop - start) * 1e6, lane=rank)
            for kind, name, start, stop in activity
        ]
    return trace_of(events)


@collective
def lanes(team: int, since: float) -> list[list[Did]]:
    """Return the activity of each rank of a team."""
    text = np.frombuffer(json.dumps(_own_activity(since)).encode(), np.uint8)
    ends = np.cumsum(allgather(team, np.array([text.size])))
    reports = np.split(allgather(team, text), ends[:-1])
    return [json.loads(chunk.tobytes()) for chunk in reports]


def _own_activity(since: float) -> list[Did]:
    """Return the activity of this process in chronological order, by the clock of its machine."""
    shift = time.time() - time.perf_counter()
    kinds = ("kernel", lane.spans or ()), ("waits", waits.spans)
    found = [
        (kind, name if kind == "kernel" else f"waits for {name}", start + shift, end + shift)
        for kind, spans in kinds for name, start, end in spans
    ]
    return sorted([entry for entry in found if entry[2] >= since], key=lambda entry: entry[2])
