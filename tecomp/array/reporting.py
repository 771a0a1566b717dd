"""`report`: what arrays cost on the machines where they are, by the models of these."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import dataclass
from importlib import import_module
from time import time
from typing import TYPE_CHECKING, Any

from tecomp.array.array_object import Array, node_of
from tecomp.array.graph.evaluate import evaluate, lane
from tecomp.array.statistics import Costs, costs, counters

if TYPE_CHECKING:
    from tecomp.dist.runtime.call_tracking import Waits
    from tecomp.drawing.chrome_trace import Trace

_cleared = [0.0]
"""When the last reset was, in seconds of `time.time`."""


@dataclass(frozen=True, slots=True)
class DeviceReport:
    """What was done on one device.

    Attributes:
        device: which.
        programs: calls of programs.
        kernels: that these ran.
        cycles: of these, at least, by the model of the machine.
        bytes_moved: that kernels read and wrote in the memory of the device, by the model.
        relayouts: copies to other layouts.
        relayout_bytes: that the compiler's own of these wrote.
        copies_from_host: arrays that were brought there.
        bytes_from_host: with their padding.
        copies_to_host: arrays that were read.
        bytes_to_host: with their padding.
        libraries: calls of functions of libraries, which run on the host, with their names.
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
        lines += [f"  {count:_} calls of {name} on the host" for name, count in self.libraries]
        return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class Report:
    """What was done on devices.

    Attributes:
        devices: a report for each, by its name.
        called: calls of kernels and programs in this process, everywhere.
        messages: that this process sent to others of its teams.
        collectives: messages that all processes of a team took part in.
        exchanges: rounds in which this process sent messages, or got some.
        overlapped: those of them that were on their way while it computed what needs none.
        sent: bytes that this process sent, or gave to collectives, by what for.
        gathered: arrays of teams that every process got all of, by what asked for them.
        waited: seconds in which this process waited for others of its teams, by what for.
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
        lines = [f"{self.called:_} calls of kernels", *map(str, self.devices.values())]
        if self.messages or self.collectives:
            lines.append(f"{self.messages:_} messages sent, {self.collectives:_} collectives")
        if self.exchanges:
            lines.append(
                f"{self.exchanges:_} exchanges, {self.overlapped:_} while something was computed")
        lines += [f"  {count:_} bytes sent, {why}" for why, count in self.sent]
        lines += [f"  {count:_} arrays gathered for {why}" for why, count in self.gathered]
        lines += [f"  {seconds * 1e3:_.3f} ms of waiting, {why}" for why, seconds in self.waited]
        return "\n".join(lines)


def report(*arrays: Array) -> Report:
    """What was done on devices, and sent, since the last reset; or what computed some arrays.

    Args:
        arrays: whose computation is of interest, which are computed if they are not yet; all that
            was done if there are none.

    Returns:
        For each device what was run and copied, as attributes, and as text when printed.

    Raises:
        ArrayTypeError: something is no array.

    >>> import tecomp.array as xp
    >>> x = xp.ones((64, 64), dtype="float32", device="stick128")
    >>> xp.report(x + x).devices["stick128"].programs
    1
    """
    if not arrays:
        known = _waits()
        waited = {} if known is None else known.seconds
        return Report(
            {name: _device(name, each) for name, each in costs.items()}, counters.called,
            counters.messages, counters.collectives, counters.exchanges, counters.overlapped,
            tuple(sorted(counters.sent.items())), tuple(sorted(counters.gathered.items())),
            tuple(sorted(waited.items())),
        )
    nodes = [node_of(x, "report") for x in arrays]
    evaluate(nodes)
    made: dict[str, Costs] = {}
    for stored in [node.stored for node in nodes if node.stored is not None]:
        own = made.setdefault(str(stored.type.device), Costs())
        if stored.program is not None:
            own.programs[stored.program] = 1
    total = sum(sum(own.programs.values()) for own in made.values())
    return Report({name: _device(name, own) for name, own in made.items()}, total)


def timeline(team: Any) -> Trace:
    """What the processes of a team did since the last reset: a lane for each, for Perfetto.

    All processes of the team have to call it. Kernels are in it, and waiting for others with what
    it was for, the last 10,000 of each; what is between them is Python.

    Args:
        team: the team, or its number.

    Returns:
        JSON, which chrome://tracing opens too, and a notebook shows as a picture. Times are those
        of the clocks of machines.

    Raises:
        TeamError: there is no such team.

    >>> import json
    >>> import tecomp.array as xp
    >>> from tecomp import dist
    >>> float(xp.sum(xp.ones(8, team=dist.world())))
    8.0
    >>> names = [event["args"]["name"] for event in json.loads(timeline(1))["traceEvents"][:2]]
    >>> names
    ['team 1', 'rank 0']
    """
    # Known by name: who has no team does not wait for what teams need.
    found: Trace = import_module("tecomp.array.distributed.timeline").lanes_of(team, _cleared[0])
    return found


def reset() -> None:
    """Count from 0 again what is done: for `report`, `timeline` and `xp.counters`.

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


def _waits() -> Waits | None:
    """What is known of waiting, which loads with the first team: before, nobody waits."""
    loaded = sys.modules.get("tecomp.dist.runtime.call_tracking")
    return None if loaded is None else loaded.waits


def _device(name: str, own: Costs) -> DeviceReport:
    known = [(program.report(), count) for program, count in own.programs.items()]
    kernels = [(kernel, count) for found, count in known for kernel in found.kernels]
    return DeviceReport(
        name,
        _sum(count for _, count in known),
        _sum(count for _, count in kernels),
        float(sum(kernel.cycles * count for kernel, count in kernels)),
        _sum((kernel.reads + kernel.writes) * count for kernel, count in kernels),
        own.relayouts + _sum(len(found.relayouts) * count for found, count in known),
        _sum(each.bytes * count for found, count in known for each in found.relayouts),
        own.copies_from_host, own.bytes_from_host, own.copies_to_host, own.bytes_to_host,
        tuple(sorted(own.libraries.items())),
    )


def _sum(counts: Iterable[Any]) -> int:
    return sum(int(count) for count in counts)
