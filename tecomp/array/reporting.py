"""Activity reports of array programs, with costs from the cost models of the devices."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import dataclass
from time import time
from typing import TYPE_CHECKING, Any

from tecomp.array.array_object import Array, node_of
from tecomp.array.graph.evaluate import evaluate, lane
from tecomp.array.statistics import DeviceCosts, costs, counters

if TYPE_CHECKING:
    from tecomp.dist.runtime.call_tracking import WaitLog
    from tecomp.drawing.chrome_trace import ChromeTrace

_cleared = [0.0]
"""Time of the last reset, in seconds of `time.time`."""


@dataclass(frozen=True, slots=True)
class DeviceReport:
    """Activity on one device.

    Attributes:
        device: Device name.
        programs: Number of program calls.
        kernels: Number of kernels that these programs ran.
        cycles: Lower bound of the cycles of these kernels, by the cost model of the machine.
        bytes_moved: Bytes that kernels read and wrote in device memory, by the cost model.
        relayouts: Number of copies to other layouts.
        relayout_bytes: Bytes written by the relayouts that the compiler inserted.
        copies_from_host: Number of arrays copied from the host.
        bytes_from_host: Bytes copied from the host, with padding.
        copies_to_host: Number of arrays copied to the host.
        bytes_to_host: Bytes copied to the host, with padding.
        libraries: Number of calls of each library function, which run on the host, by name.
    """

    device: str
    programs: int = 0
    kernels: int = 0
    cycles: float = 0.0
    bytes_moved: int = 0
    relayouts: int = 0
    relayout_bytes: int = 0
    copies_from_host: int = 0
    bytes_from_host: int = 0
    copies_to_host: int = 0
    bytes_to_host: int = 0
    libraries: tuple[tuple[str, int], ...] = ()

    def __str__(self) -> str:
        lines = [
            f"{self.device}: {self.programs:_} programs, {self.kernels:_} kernels, at least "
            f"{round(self.cycles):_} cycles",
            f"  {self.bytes_moved:_} bytes read and written by kernels",
            f"  {self.relayouts:_} relayouts, {self.relayout_bytes:_} bytes",
            f"  {self.copies_from_host:_} copies from the host, {self.bytes_from_host:_} bytes",
            f"  {self.copies_to_host:_} copies to the host, {self.bytes_to_host:_} bytes",
        ]
        lines += [f"  {count:_} host calls of {name}" for name, count in self.libraries]
        return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class ActivityReport:
    """Activity on devices and communication of this process.

    Attributes:
        devices: Report of each device, by device name.
        called: Number of kernel and program calls in this process, on all devices.
        messages: Number of messages that this process sent to other ranks of its teams.
        collectives: Number of collectives in which this process took part.
        exchanges: Number of rounds in which this process sent or received messages.
        overlapped: Number of exchanges that overlapped with computation.
        sent: Bytes that this process sent or passed to collectives, by purpose.
        gathered: Number of distributed arrays that were replicated on all ranks, by cause.
        waited: Seconds that this process waited for other ranks, by cause.
    """

    devices: dict[str, DeviceReport]
    called: int
    messages: int = 0
    collectives: int = 0
    exchanges: int = 0
    overlapped: int = 0
    sent: tuple[tuple[str, int], ...] = ()
    gathered: tuple[tuple[str, int], ...] = ()
    waited: tuple[tuple[str, float], ...] = ()

    def __str__(self) -> str:
        lines = [f"{self.called:_} kernel calls", *map(str, self.devices.values())]
        if self.messages or self.collectives:
            lines.append(f"{self.messages:_} messages sent, {self.collectives:_} collectives")
        if self.exchanges:
            lines.append(
                f"{self.exchanges:_} exchanges, {self.overlapped:_} overlapped with computation")
        lines += [f"  {count:_} bytes sent, {reason}" for reason, count in self.sent]
        lines += [f"  {count:_} arrays gathered for {reason}" for reason, count in self.gathered]
        lines += [f"  {seconds * 1e3:_.3f} ms waited, {reason}" for reason, seconds in self.waited]
        return "\n".join(lines)


def report(*arrays: Array) -> ActivityReport:
    """Report device and communication activity since the last reset, or of the given arrays.

    Args:
        arrays: Arrays whose evaluation is reported; lazy arrays are evaluated first. Default: all
            activity since the last reset.

    Returns:
        Report with the kernels and copies of each device as attributes; prints as text.

    Raises:
        ArrayTypeError: If an argument is not an array.

    >>> import tecomp.array as xp
    >>> x = xp.ones((64, 64), dtype="float32", device="stick128")
    >>> xp.report(x + x).devices["stick128"].programs
    1
    """
    if not arrays:
        known = _waits()
        waited = {} if known is None else known.seconds
        return ActivityReport(
            {name: _device(name, cost) for name, cost in costs.items()}, counters.called,
            counters.messages, counters.collectives, counters.exchanges, counters.overlapped,
            tuple(sorted(counters.sent.items())), tuple(sorted(counters.gathered.items())),
            tuple(sorted(waited.items())),
        )
    nodes = [node_of(x, "report") for x in arrays]
    evaluate(nodes)
    by_device: dict[str, DeviceCosts] = {}
    for stored in [node.stored for node in nodes if node.stored is not None]:
        spent = by_device.setdefault(str(stored.type.device), DeviceCosts())
        if stored.program is not None:
            spent.programs[stored.program] = 1
    total = sum(sum(spent.programs.values()) for spent in by_device.values())
    return ActivityReport({name: _device(name, spent) for name, spent in by_device.items()}, total)


def timeline(team: Any) -> ChromeTrace:
    """Return the timeline of all ranks of a team since the last reset, with one track per rank.

    This is a collective call: every rank of the team must make it. The timeline has the last 10,000
    kernels and the last 10,000 waits of each rank, with the cause of each wait. Gaps are Python
    code.

    Args:
        team: Team or its number.

    Returns:
        JSON trace for Perfetto and chrome://tracing, which a notebook displays as a figure. Times
        are from the clocks of the machines.

    Raises:
        TeamError: If the team is unknown.

    >>> import json
    >>> import tecomp.array as xp
    >>> from tecomp import dist
    >>> float(xp.sum(xp.ones(8, team=dist.world())))
    8.0
    >>> names = [event["args"]["name"] for event in json.loads(timeline(1))["traceEvents"][:2]]
    >>> names
    ['team 1', 'rank 0']
    """
    # Import lazily: programs without a team do not need the communication packages.
    from tecomp.array.distributed.message_queue import lanes_of

    return lanes_of(team, _cleared[0])


def reset() -> None:
    """Reset all counters of `report`, `timeline` and `xp.counters`.

    >>> reset()
    >>> report().devices
    {}
    """
    costs.clear()
    _cleared[0] = time()
    if (known := _waits()) is not None:
        known.clear()
    if lane.spans:
        lane.spans.clear()
    counters.compiled = counters.called = 0
    counters.exchanges = counters.overlapped = 0
    counters.messages = counters.collectives = 0
    for named in (counters.libraries, counters.gathered, counters.sent):
        named.clear()


def _waits() -> WaitLog | None:
    """Return the wait counters, or None if no team has loaded them."""
    loaded = sys.modules.get("tecomp.dist.runtime.call_tracking")
    return None if loaded is None else loaded.waits


def _device(name: str, spent: DeviceCosts) -> DeviceReport:
    known = [(program.report(), count) for program, count in spent.programs.items()]
    kernels = [(kernel, count) for found, count in known for kernel in found.kernels]
    return DeviceReport(
        name,
        _sum(count for _, count in known),
        _sum(count for _, count in kernels),
        float(sum(kernel.cycles * count for kernel, count in kernels)),
        _sum((kernel.reads + kernel.writes) * count for kernel, count in kernels),
        spent.relayouts + _sum(len(found.relayouts) * count for found, count in known),
        _sum(relayout.bytes * count for found, count in known for relayout in found.relayouts),
        spent.copies_from_host, spent.bytes_from_host, spent.copies_to_host, spent.bytes_to_host,
        tuple(sorted(spent.libraries.items())),
    )


def _sum(counts: Iterable[Any]) -> int:
    return sum(int(count) for count in counts)
