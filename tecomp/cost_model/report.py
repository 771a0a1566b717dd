"""Modelled cost of a kernel: data classes, table, JSON and timeline."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from tecomp.cost_model.timeline import SLICES, Activity, Event, TimelineLane, timelines
from tecomp.drawing.chrome_trace import ChromeTrace, bar, lane_named, process_named, trace_of
from tecomp.drawing.drawable import Pictured, call_drawing_function
from tecomp.ir.nodes.printer import format_count
from tecomp.machine.components import Rates
from tecomp.machine.toml_reader import table_of

if TYPE_CHECKING:
    # Import lazily, with the first picture.
    from tecomp.drawing.svg import Svg

Direction = Literal["read", "write"]


@dataclass(frozen=True, slots=True)
class Traffic:
    """Traffic of one memory in one direction.

    Attributes:
        memory: Name of the memory.
        direction: `read` or `write`.
        bytes: Bytes of all accessed elements, with repeated accesses counted again.
        runs: Number of contiguous runs of accesses.
        longest_run_bytes: Bytes of the longest run.
        transactions: Number of blocks that the runs touch; None for a memory without transactions.
        per_core: Bytes of each core, in the order of cores.
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
    """Traffic of one link.

    Attributes:
        link: Name of the link.
        bytes: Bytes moved, in whole transactions of the memory that is read.
        transfers: Number of transfers; for a link with descriptors, the number of descriptors.
        bursts: Number of bursts, after runs are split at the maximum burst length of the link.
        hops: Maximum number of cores that a transfer passes.
    """

    link: str
    bytes: int
    transfers: int
    bursts: int
    hops: int


@dataclass(frozen=True, slots=True)
class Occupancy:
    """Occupancy of one memory.

    Attributes:
        memory: Name of the memory.
        peak_bytes: Maximum number of bytes in use simultaneously; per core for a private memory.
        usable_bytes: Capacity; None for no limit.
        padding_bytes: Bytes of padding in tensors that are stored in full.
    """

    memory: str
    peak_bytes: int
    usable_bytes: int | None
    padding_bytes: int


@dataclass(frozen=True, slots=True)
class CoreWork:
    """Work of one core.

    Attributes:
        core: Coordinates of the core in the grid.
        operations: Number of operations on elements.
        tiles: Number of tensor operations, by name.
        computing: Total cycles of vector and tensor operations.
        cycles: Busy cycles of each resource.
        latency: Cycles until the first data arrive.
        activities: Activities in program order.
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
        """Busy cycles of the busiest resource, plus the initial latency."""
        return self.latency + max(self.cycles.values(), default=0.0)


@dataclass(frozen=True, slots=True)
class CostReport(Pictured):
    """Modelled cost of a kernel on a target; `print` shows a table.

    Attributes:
        kernel: Name of the kernel.
        target: Name of the target.
        axes: Axes of the core grid that the kernel uses.
        available: Number of cores of the target.
        cores: Work of each core that is used, in order.
        traffic: Traffic of each memory and direction that is used.
        links: Traffic of each link that is used.
        memories: Occupancy of each memory that is used.
        operations: Number of operations on elements, by kind and dtype.
        tiles: Number of tensor operations inserted by `tensorize`, by name.
        chip: Busy cycles of the resources shared by all cores.
        clock_hz: Clock frequency in Hz; None if the target does not state one.
        unknown: Conditions, bounds and indices that depend on data, as text.
        calls: External functions without a declared amount of work, which is not counted.
        shared: Activities of shared resources, in program order.
        compulsory_bytes: Bytes of the arguments, each counted once: the minimum traffic of any
            order of loops.
        cache_bytes: Sizes of the caches of a processor core, the smallest first.
        rates: Measured rates of a processor core, if the target states any.
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
        """Lower bound of the execution time: cycles of the busiest core or shared resource."""
        latency = max((core.latency for core in self.cores), default=0.0)
        busiest = max((core.busy for core in self.cores), default=0.0)
        return max(busiest, max(self.chip.values(), default=0.0) + latency)

    @property
    def makespan(self) -> float:
        """End of the last event of the timeline in cycles; not less than `cycles`.

        It exceeds `cycles` where parts of the program wait for each other: phases without a common
        loop, or loops with few iterations, the first of which do not overlap with other work.
        """
        return max(
            (event.end for _, _, found in self.timelines() for event in found), default=0.0
        )

    @property
    def seconds(self) -> float | None:
        """`cycles` in seconds; None without a clock frequency."""
        return None if self.clock_hz is None else self.cycles / self.clock_hz

    @property
    def bound_by(self) -> str:
        """Resource with the most busy cycles: `compute`, a link or a memory with its direction."""
        shares = self.shares
        return max(shares, key=lambda name: shares[name], default="nothing")

    @property
    def shares(self) -> dict[str, float]:
        """Fraction of `cycles` in which each resource is busy, on the core that uses it most."""
        found = dict(self.chip)
        for core in self.cores:
            for name, cycles in core.cycles.items():
                found[name] = max(found.get(name, 0.0), cycles)
        total = self.cycles
        return {name: cycles / total if total else 0.0 for name, cycles in found.items()}

    @property
    def imbalance(self) -> float:
        """Maximum over average of the computing cycles of all cores."""
        work = [core.computing for core in self.cores]
        return max(work) * len(work) / sum(work) if sum(work) else 1.0

    def of(self, memory: str, direction: Direction) -> Traffic | None:
        """Return the traffic of a memory in one direction, or None if there is none."""
        found = (t for t in self.traffic if (t.memory, t.direction) == (memory, direction))
        return next(found, None)

    def __repr__(self) -> str:
        cores = format_count(len(self.cores), "core")
        return f"<Report of {self.kernel} on {self.target}: {cores}, {_number(self.cycles)} cycles>"

    def to_json(self) -> str:
        """Return the report as JSON, including derived figures."""
        document = {
            **asdict(replace(self, rates=None)), "rates": table_of(self.rates),
            "cycles": self.cycles, "seconds": self.seconds,
            "bound_by": self.bound_by, "shares": self.shares, "imbalance": self.imbalance,
        }
        return json.dumps(document, indent=2)

    def timeline_picture(self) -> Svg:
        """Return an SVG timeline of the resources of some cores; a part of `picture()`."""
        svg: Svg = call_drawing_function("report:draw_timeline", self)
        return svg

    def roofline_picture(self) -> Svg:
        """Return an SVG roofline of the kernel; a part of `picture()`."""
        svg: Svg = call_drawing_function("report:draw_kernel_roofline", self)
        return svg

    def timelines(self) -> list[tuple[str, tuple[Activity, ...], tuple[Event, ...]]]:
        """Return name, activities and events (in cycles) of each core, and of the chip if used."""
        lanes = [TimelineLane(core.activities, core.latency) for core in self.cores]
        # Shared resources wait for their first data as long as the slowest core does.
        latency = max((core.latency for core in self.cores), default=0.0)
        found = timelines(lanes, TimelineLane(self.shared, latency))
        names = [
            "core " + ",".join(map(str, core.core)) if self.axes else "core" for core in self.cores
        ]
        rows = list(zip([*names, "chip"], [*(lane.activities for lane in lanes), self.shared],
                         found, strict=True))
        return rows if self.shared else rows[:-1]

    def trace(self) -> ChromeTrace:
        """Return the modelled timeline as a trace for chrome://tracing and Perfetto.

        Each core has a row for each of its resources, and so has the chip for shared resources.
        Resources work concurrently, subject to data dependences. Each activity is shown as slices,
        which represent groups of iterations. Without a clock frequency, one cycle is shown as one
        microsecond.
        """
        scale = 1.0 if self.clock_hz is None else 1e6 / self.clock_hz
        events: list[dict[str, Any]] = []
        for process, (name, activities, found) in enumerate(self.timelines()):
            events.append(process_named(process, name))
            rows = {unit: row for row, unit in enumerate(dict.fromkeys(
                activity.resource for activity in activities))}
            events += [lane_named(process, row, resource) for resource, row in rows.items()]
            for event in found:
                activity = activities[event.activity]
                details = {"cycles": activity.cycles / SLICES, "statement": activity.statement,
                        "slice": event.slice}
                events.append(bar(
                    activity.name, activity.resource, event.start * scale,
                    (event.end - event.start) * scale, process=process,
                    lane=rows[activity.resource], details=details,
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
            examples = ", ".join(f"`{text}`" for text in self.unknown[:3])
            parts.append(
                "data-dependent (assumed: conditions true, loops empty, gathered elements not "
                f"contiguous): {examples}")
        if self.calls:
            parts.append(f"not counted (unknown cost): {', '.join(self.calls)}")
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
        return ["resource", "per", "minimum", "maximum cycles", "share"], [
            [*row, f"{shares[row[0]]:.0%}"] for row in rows
        ]


def _counts(found: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {_number(n)}" for name, n in found.items()) or "none"


def _number(value: float) -> str:
    return f"{value:_.1f}".removesuffix(".0") if isinstance(value, float) else f"{value:_}"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Format columns of text, with numbers aligned to the right."""
    if not rows:
        return ""
    lines = [list(head), *map(list, rows)]
    widths = [max(len(line[k]) for line in lines) for k in range(len(head))]
    texts = []
    for line in lines:
        cells = [
            cell.ljust(width) if k < 2 and head[k] in ("memory", "", "resource", "per")
            else cell.rjust(width)
            for k, (cell, width) in enumerate(zip(line, widths, strict=True))
        ]
        texts.append("  ".join(cells).rstrip())
    return "\n".join(texts)
