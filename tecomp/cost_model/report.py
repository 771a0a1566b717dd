"""What a kernel costs: data, a table, JSON and a timeline."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from tecomp.cost_model.timeline import SLICES, Activity, Event, Lane, timelines
from tecomp.drawing.chrome_trace import Trace, bar, lane_named, process_named, trace_of
from tecomp.drawing.drawable import Pictured, drawn_by
from tecomp.ir.nodes.printer import counted
from tecomp.machine.components import Rates
from tecomp.machine.toml_reader import table_of

if TYPE_CHECKING:
    # Loaded with the first picture.
    from tecomp.drawing.svg import Svg

Direction = Literal["read", "write"]


@dataclass(frozen=True, slots=True)
class Traffic:
    """What is read from, or written to, one memory.

    Attributes:
        memory: its name.
        direction: `read` or `write`.
        bytes: of all elements, each as often as it is accessed.
        runs: sequences of accesses to one element after the other.
        longest_run_bytes: of the longest of these.
        transactions: blocks that the runs touch; None where the memory moves any number of bytes.
        per_core: bytes, for each core in order.
    """

    memory: str
    direction: Direction
    bytes: int
    runs: int
    longest_run_bytes: int
    transactions: int | None
    per_core: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Transfers:
    """What goes over one link.

    Attributes:
        link: its name.
        bytes: whole transactions of the memory that is read.
        transfers: how often a copy begins: descriptors, where the link has those.
        bursts: pieces that the runs are cut into, none longer than the link's bursts.
        hops: the most cores that a transfer passes.
    """

    link: str
    bytes: int
    transfers: int
    bursts: int
    hops: int


@dataclass(frozen=True, slots=True)
class Occupancy:
    """What is in a memory.

    Attributes:
        memory: its name.
        peak_bytes: the most that is in use at one time, of one core for the memory of a core.
        usable_bytes: what there is; None for no limit.
        padding_bytes: places of whole tensors that hold no element.
    """

    memory: str
    peak_bytes: int
    usable_bytes: int | None
    padding_bytes: int


@dataclass(frozen=True, slots=True)
class CoreWork:
    """What one core does.

    Attributes:
        core: its coordinate on each axis of the grid.
        operations: on elements.
        tiles: operations of the machine that it does, by name.
        computing: cycles of its vector operations and of those of the machine, added up.
        cycles: how long each of its resources is busy.
        latency: cycles until the first data arrive.
        activities: of what it does, in the order of the program.
    """

    core: tuple[int, ...]
    operations: int
    tiles: Mapping[str, int]
    computing: float
    cycles: Mapping[str, float]
    latency: float
    activities: tuple[Activity, ...]

    @property
    def busy(self) -> float:
        """Cycles of its busiest resource, and the latency before."""
        return self.latency + max(self.cycles.values(), default=0.0)


@dataclass(frozen=True, slots=True)
class Report(Pictured):
    """What a kernel costs on a machine; `print` shows a table.

    Attributes:
        kernel: its name.
        target: the machine.
        axes: of the grid of cores that the kernel uses.
        available: cores that the machine has.
        cores: that have something to do, in order.
        traffic: for each memory and direction that is used.
        links: that something goes over.
        memories: that something is in.
        operations: on elements, by kind and type.
        tiles: operations of the machine that `tensorize` put in, by name.
        chip: cycles that the resources of the whole chip are busy.
        clock_hz: cycles of a second; None where the machine's description does not say.
        unknown: conditions, bounds and indices that depend on data, as they are written.
        calls: functions outside of the program that nobody said the work of: it is not counted.
        shared: what the chip does for all cores, in the order of the program.
        compulsory_bytes: of the arguments, each once: what has to be moved in any order of loops.
        cache_bytes: of the caches of a processor's core, the smallest first.
        rates: of a processor's core, if its description states them.
    """

    _drawn_by: ClassVar[str] = "report:draw_report"

    kernel: str
    target: str
    axes: tuple[str, ...]
    available: int
    cores: tuple[CoreWork, ...]
    traffic: tuple[Traffic, ...]
    links: tuple[Transfers, ...]
    memories: tuple[Occupancy, ...]
    operations: Mapping[str, int]
    tiles: Mapping[str, int]
    chip: Mapping[str, float]
    clock_hz: float | None
    unknown: tuple[str, ...]
    calls: tuple[str, ...] = ()
    shared: tuple[Activity, ...] = ()
    compulsory_bytes: int = 0
    cache_bytes: tuple[int, ...] = ()
    rates: Rates | None = None

    @property
    def cycles(self) -> float:
        """How long it takes at least: the time of the busiest core, or resource of the chip."""
        latency = max((core.latency for core in self.cores), default=0.0)
        busiest = max((core.busy for core in self.cores), default=0.0)
        return max(busiest, max(self.chip.values(), default=0.0) + latency)

    @property
    def makespan(self) -> float:
        """When the last part of the timeline has ended: no less than `cycles`.

        It is more where parts of the program wait for each other: phases without a common loop,
        or few iterations, of which the first ones overlap with nothing.
        """
        return max(
            (event.end for _, _, found in self.timelines() for event in found), default=0.0
        )

    @property
    def seconds(self) -> float | None:
        """`cycles` in seconds; None without a clock."""
        return None if self.clock_hz is None else self.cycles / self.clock_hz

    @property
    def bound_by(self) -> str:
        """The resource that is busy for the longest time: `compute`, a link or a memory."""
        shares = self.shares
        return max(shares, key=lambda name: shares[name], default="nothing")

    @property
    def shares(self) -> dict[str, float]:
        """For each resource, the part of the time that it is busy; of the core that has most."""
        found = dict(self.chip)
        for core in self.cores:
            for name, cycles in core.cycles.items():
                found[name] = max(found.get(name, 0.0), cycles)
        total = self.cycles
        return {name: cycles / total if total else 0.0 for name, cycles in found.items()}

    @property
    def imbalance(self) -> float:
        """Cycles of computing of the core that has most, as a multiple of the average."""
        work = [core.computing for core in self.cores]
        return max(work) * len(work) / sum(work) if sum(work) else 1.0

    def of(self, memory: str, direction: Direction) -> Traffic | None:
        """The traffic of a memory in one direction, if there is any."""
        found = (t for t in self.traffic if (t.memory, t.direction) == (memory, direction))
        return next(found, None)

    def __repr__(self) -> str:
        cores = counted(len(self.cores), "core")
        return f"<Report of {self.kernel} on {self.target}: {cores}, {_number(self.cycles)} cycles>"

    def to_json(self) -> str:
        """Everything as JSON, figures that follow from others included."""
        document = {
            **asdict(replace(self, rates=None)), "rates": table_of(self.rates),
            "cycles": self.cycles, "seconds": self.seconds,
            "bound_by": self.bound_by, "shares": self.shares, "imbalance": self.imbalance,
        }
        return json.dumps(document, indent=2)

    def timeline_picture(self) -> Svg:
        """When each resource of some cores works, as SVG; a part of `picture()`."""
        made: Svg = drawn_by("report:draw_timeline", self)
        return made

    def roofline_picture(self) -> Svg:
        """How fast the kernel is, and what compute and memories allow; a part of `picture()`."""
        made: Svg = drawn_by("report:draw_kernel_roofline", self)
        return made

    def timelines(self) -> list[tuple[str, tuple[Activity, ...], tuple[Event, ...]]]:
        """For each core, and at last for the chip: its name, what it does, and when, in cycles."""
        lanes = [Lane(core.activities, core.latency) for core in self.cores]
        # What the chip does first waits as long for its first data as the cores do.
        latency = max((core.latency for core in self.cores), default=0.0)
        found = timelines(lanes, Lane(self.shared, latency))
        names = [
            "core " + ",".join(map(str, core.core)) if self.axes else "core" for core in self.cores
        ]
        whole = list(zip([*names, "chip"], [*(lane.activities for lane in lanes), self.shared],
                         found, strict=True))
        return whole if self.shared else whole[:-1]

    def trace(self) -> Trace:
        """The modelled timeline as a trace that chrome://tracing and Perfetto open.

        Each core has a row for each of its resources, and so has the chip, for what it does for all
        of them. Resources work at the same time, but nothing begins before what it takes data from
        has ended; a part of the program is shown as slices, as its iterations are. Without a clock
        a cycle is shown as a microsecond.
        """
        scale = 1.0 if self.clock_hz is None else 1e6 / self.clock_hz
        events: list[dict[str, Any]] = []
        for process, (name, activities, found) in enumerate(self.timelines()):
            events.append(process_named(process, name))
            rows = {each: row for row, each in enumerate(dict.fromkeys(
                activity.resource for activity in activities))}
            events += [lane_named(process, row, resource) for resource, row in rows.items()]
            for event in found:
                activity = activities[event.activity]
                said = {"cycles": activity.cycles / SLICES, "statement": activity.statement,
                        "slice": event.slice}
                events.append(bar(
                    activity.name, activity.resource, event.start * scale,
                    (event.end - event.start) * scale, process=process,
                    lane=rows[activity.resource], said=said,
                ))
        return trace_of(events)

    def __str__(self) -> str:
        head = (
            f"{self.kernel} on {self.target}: {_number(self.cycles)} cycles{self._time()}, "
            f"bound by {self.bound_by}\n"
            f"{len(self.cores)} of {self.available} cores, "
            f"imbalance {self.imbalance:.2f}, operations {_counts(self.operations)}"
        )
        if self.tiles:
            head += f"\ntile operations {_counts(self.tiles)}"
        parts = [head, _table(*self._traffic_rows()), _table(*self._memory_rows()),
                 _table(*self._resource_rows())]
        if self.unknown:
            shown = ", ".join(f"`{text}`" for text in self.unknown[:3])
            parts.append(f"depends on data, counted as if always so: {shown}")
        if self.calls:
            parts.append(f"not counted, as nobody said what they compute: {', '.join(self.calls)}")
        return "\n\n".join(part for part in parts if part)

    def _time(self) -> str:
        if self.seconds is None:
            return ""
        return f" ({self.seconds * 1e6:.4g} us at {(self.clock_hz or 0) / 1e9:g} GHz)"

    def _traffic_rows(self) -> tuple[list[str], list[list[str]]]:
        return ["memory", "", "bytes", "transactions", "runs", "longest"], [
            [t.memory, t.direction, _number(t.bytes),
             "" if t.transactions is None else _number(t.transactions),
             _number(t.runs), _number(t.longest_run_bytes)]
            for t in self.traffic
        ]

    def _memory_rows(self) -> tuple[list[str], list[list[str]]]:
        return ["memory", "peak", "usable", "padding"], [
            [m.memory, _number(m.peak_bytes),
             "" if m.usable_bytes is None else _number(m.usable_bytes), _number(m.padding_bytes)]
            for m in self.memories
        ]

    def _resource_rows(self) -> tuple[list[str], list[list[str]]]:
        rows = []
        for name in dict.fromkeys(name for core in self.cores for name in core.cycles):
            cycles = [core.cycles.get(name, 0.0) for core in self.cores]
            rows.append([name, "core", _number(min(cycles)), _number(max(cycles))])
        rows += [[name, "chip", "", _number(cycles)] for name, cycles in self.chip.items()]
        shares = self.shares
        return ["resource", "of each", "least", "most cycles", "share"], [
            [*row, f"{shares[row[0]]:.0%}"] for row in rows
        ]


def _counts(found: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {_number(n)}" for name, n in found.items()) or "none"


def _number(value: float) -> str:
    return f"{value:_.1f}".removesuffix(".0") if isinstance(value, float) else f"{value:_}"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Columns of texts, the numbers to the right."""
    if not rows:
        return ""
    lines = [list(head), *map(list, rows)]
    widths = [max(len(line[k]) for line in lines) for k in range(len(head))]
    texts = []
    for line in lines:
        cells = [
            cell.ljust(width) if k < 2 and head[k] in ("memory", "", "resource", "of each")
            else cell.rjust(width)
            for k, (cell, width) in enumerate(zip(line, widths, strict=True))
        ]
        texts.append("  ".join(cells).rstrip())
    return "\n".join(texts)
