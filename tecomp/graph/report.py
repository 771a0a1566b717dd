"""Program reports: kernels, memory, edges, cost and timeline."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Literal, TypeAlias

from tecomp.compute.tensor import Tensor
from tecomp.cost_model.report import CostReport
from tecomp.drawing.chrome_trace import ChromeTrace, bar, lane_named, level, process_named, trace_of
from tecomp.driver.program_codegen import copy_rate
from tecomp.graph.fusion import group_inputs
from tecomp.graph.kernels import KernelCall, labels_of
from tecomp.graph.layout_candidates import is_one_to_a_row
from tecomp.graph.layout_result import DivisionHintOutcome, ProgramLayouts
from tecomp.graph.memory_plan import ArenaPlan, SymbolicArenaPlan
from tecomp.graph.sizes import bytes_of
from tecomp.graph.value_placement import ResidentValue, Spill
from tecomp.ir.nodes.printer import format_count
from tecomp.layout.core.layout import Layout
from tecomp.machine.descriptor import Target

Kind: TypeAlias = Literal["input", "constant", "value", "copy", "output"]


@dataclass(frozen=True, slots=True)
class KernelReport:
    """Report on one kernel call.

    Attributes:
        name: Name of the result, numbered if several kernels have results of that name.
        operations: Names of the operations that the kernel computes.
        reads: Number of bytes of the operands.
        writes: Number of bytes of the results.
        bound: Lower bound of the time in seconds, by the cost model; None without a clock rate.
        bound_by: Resource that is busy longest.
        seconds: Minimum measured time in seconds; None if not measured.
        cycles: Lower bound of the time in cycles, by the cost model.
        cores: Number of cores with scratchpads that take part; 0 on processors.
        imbalance: Maximum compute cycles of a core divided by the average.
        tiles: Number of tile and vector operations of the matrix and vector units.
        copy_seconds: Time in seconds in which the host copies as many bytes as the kernel reads and
            writes; None if not measured, or if these bytes fit into a cache.
        calls: External functions without a declared cost, which are not counted.
    """

    name: str
    operations: tuple[str, ...]
    reads: int
    writes: int
    bound: float | None
    bound_by: str
    seconds: float | None = None
    cycles: float = 0.0
    cores: int = 0
    imbalance: float = 1.0
    tiles: int = 0
    copy_seconds: float | None = None
    calls: tuple[str, ...] = ()

    @property
    def rate(self) -> float | None:
        """Measured bytes read and written per second; None if not measured."""
        return (self.reads + self.writes) / self.seconds if self.seconds else None

    @property
    def limit(self) -> tuple[str, float] | None:
        """Limiting resource and the seconds for which it is busy, as far as known."""
        found = [] if self.bound is None else [(self.bound_by, self.bound)]
        found += [] if self.copy_seconds is None else [("memory", self.copy_seconds)]
        return max(found, key=lambda pair: pair[1], default=None)

    @property
    def achieved(self) -> float | None:
        """Share of the measured time for which the limiting resource was busy.

        None if unknown, or if the target is emulated on this host.
        """
        if self.limit is None or not self.seconds or self.cores:
            return None
        return self.limit[1] / self.seconds


@dataclass(frozen=True, slots=True)
class EdgeReport:
    """Report on a value that kernels read or compute.

    Attributes:
        name: Name of the value.
        kind: Kind of the value; "copy" is a value in another layout.
        made_by: Kernel that computes the value; empty for inputs and constants.
        read_by: Kernels that read the value; empty for a result.
        bytes: Size in bytes, including padding.
        layout: Formula of the physical indices.
        is_spread: Whether each stick or tile row holds one element.
    """

    name: str
    kind: Kind
    made_by: str
    read_by: tuple[str, ...]
    bytes: int
    layout: str
    is_spread: bool = False


@dataclass(frozen=True, slots=True)
class RelayoutReport:
    """Report on a relayout.

    Attributes:
        name: Name of the value.
        readers: Operations that read the copy; none if only the host gets it.
        source: Layout of the value.
        layout: Layout of the copy.
        elements: Number of elements moved, or of padding elements filled; 0 for constants.
        bytes: Number of bytes written, including padding.
    """

    name: str
    readers: tuple[str, ...]
    source: str
    layout: str
    elements: int
    bytes: int


@dataclass(frozen=True, slots=True)
class ProgramReport:
    """Cost report of a program; `print` shows tables.

    Attributes:
        program: Program name.
        target: Target name.
        kernels: Kernel calls in order.
        distinct: Number of distinct kernels.
        arena_bytes: Size of the arena between kernels in bytes.
        max_live_bytes: Maximum number of bytes that are live simultaneously.
        constants: Size of the constants in bytes.
        edges: Values that kernels read or compute.
        relayouts: Copies of values in other layouts.
        residents: Values that stay in scratchpads and are not stored to memory.
        spills: Reasons why other values do not, on targets with scratchpads.
        copy_rate: Bytes per second that a copy by all threads reads and writes beyond the caches;
            None if not measured.
    """

    program: str
    target: str
    kernels: tuple[KernelReport, ...]
    distinct: int
    arena_bytes: int
    max_live_bytes: int
    constants: int
    edges: tuple[EdgeReport, ...] = ()
    relayouts: tuple[RelayoutReport, ...] = ()
    residents: tuple[ResidentValue, ...] = ()
    spills: tuple[Spill, ...] = ()
    copy_rate: float | None = None

    @property
    def bound(self) -> float | None:
        """Lower bound of the time of all kernels in sequence, in seconds; None if unknown."""
        bounds = [kernel.bound for kernel in self.kernels if kernel.bound is not None]
        return sum(bounds) if len(bounds) == len(self.kernels) else None

    @property
    def cycles(self) -> float:
        """Lower bound of the time of all kernels in sequence, in cycles."""
        return sum(kernel.cycles for kernel in self.kernels)

    @property
    def seconds(self) -> float | None:
        """Measured time of all kernels in seconds; None if not measured."""
        found = [kernel.seconds for kernel in self.kernels if kernel.seconds is not None]
        return sum(found) if found and len(found) == len(self.kernels) else None

    @property
    def _head(self) -> str:
        calls, kernels = (
            format_count(len(self.kernels), "call"),
            format_count(self.distinct, "kernel"),
        )
        return f"{self.program} on {self.target}: {calls} of {kernels}"

    def __repr__(self) -> str:
        return f"<ProgramReport of {self._head}>"

    def __str__(self) -> str:
        head = self._head
        if self.bound is not None:
            head += f", at least {_time(self.bound)}"
        if self.seconds is not None:
            head += f", measured {_time(self.seconds)}"
        memory = (
            f"{self.arena_bytes:_} bytes between kernels, at least {self.max_live_bytes:_} live at "
            f"the peak; {self.constants:_} bytes of constants"
        )
        notes = (
            *self._moved_bytes_text(), *self._resident_text(), *self._sharded_text(),
            *self._uncounted_text(),
        )
        lines = [head, memory, *notes, ""]
        lines += _table(self._rows(), (0, 1, 5))
        lines += ["", *_table(self._edge_rows(), (0, 1, 2, 3, 5))]
        if self.residents or self.spills:
            lines += ["", *_table(self._near_rows(), (0, 1, 3))]
        return "\n".join(lines)

    def _uncounted_text(self) -> list[str]:
        names = dict.fromkeys(name for kernel in self.kernels for name in kernel.calls)
        return [f"not counted (unknown cost): {', '.join(names)}"] * bool(names)

    def _moved_bytes_text(self) -> list[str]:
        if not self.relayouts:
            return []
        count = format_count(len(self.relayouts), "relayout")
        elements = sum(relayout.elements for relayout in self.relayouts)
        n_bytes = sum(relayout.bytes for relayout in self.relayouts)
        return [f"{count}: {elements:_} elements moved, {n_bytes:_} bytes written"]

    def _resident_text(self) -> list[str]:
        if not self.residents:
            return []
        count = format_count(len(self.residents), "value")
        verb = "stays" if len(self.residents) == 1 else "stay"
        saved = sum(resident.bytes for resident in self.residents)
        return [f"{count} {verb} in scratchpads: {saved:_} bytes not stored to memory"]

    def _sharded_text(self) -> list[str]:
        found = [f"{edge.name} ({edge.bytes:_} bytes)" for edge in self.edges if edge.is_spread]
        label = "one element per stick or tile row"
        return [f"{label}: {', '.join(found)}"] * bool(found)

    def _rows(self) -> list[list[str]]:
        is_measured = self.seconds is not None
        rows = [["kernel", "operations", "reads", "writes", "at least", "bound by", "share"]]
        rows[0] += ["measured", "achieved"] * is_measured
        has_grid = any(item.cores for item in self.kernels)
        rows[0] += ["cycles", "cores", "imbalance", "tiles"] * has_grid
        total = self.seconds or self.bound or 0.0
        for item in self.kernels:
            seconds = item.seconds if is_measured else item.bound
            share = f"{100 * seconds / total:.0f}%" if seconds is not None and total else "-"
            bound = "-" if item.bound is None else _time(item.bound)
            row = [item.name, " ".join(item.operations), f"{item.reads:_}", f"{item.writes:_}"]
            row += [bound, item.limit[0] if item.limit else item.bound_by, share]
            if is_measured and item.seconds is not None:
                achieved = "-" if item.achieved is None else f"{100 * item.achieved:.0f}%"
                row += [_time(item.seconds), achieved]
            if has_grid:
                row += [f"{item.cycles:_.0f}", f"{item.cores}", f"{item.imbalance:.2f}"]
                row.append(f"{item.tiles:_}")
            rows.append(row)
        return rows

    def _edge_rows(self) -> list[list[str]]:
        rows = [["value", "kind", "from", "to", "bytes", "layout"]]
        for edge in self.edges:
            users = " ".join(edge.read_by)
            rows.append([edge.name, edge.kind, edge.made_by, users, f"{edge.bytes:_}", edge.layout])
        return rows


    def _near_rows(self) -> list[list[str]]:
        rows = [["value", "location", "bytes", "reason"]]
        for value in self.residents:
            rows.append([value.tensor.name, "scratchpads", f"{value.bytes:_}", value.reason])
        for spill in self.spills:
            rows.append([
                spill.tensor.name, "memory", f"{spill.bytes:_}", f"{spill.kind}: {spill.reason}"
            ])
        return rows


def _time(seconds: float) -> str:
    for unit, factor in (("s", 1.0), ("ms", 1e3), ("us", 1e6)):
        if seconds * factor >= 1.0:
            return f"{seconds * factor:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns"


def _table(rows: Sequence[Sequence[str]], left: Container[int]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            cell.ljust(width) if k in left else cell.rjust(width)
            for k, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def edges_of(
    inputs: Sequence[Tensor], outputs: Sequence[Tensor], calls: Sequence[KernelCall],
    stored: Mapping[Tensor, Layout], sizes: Mapping[str, int] = MappingProxyType({}),
) -> tuple[EdgeReport, ...]:
    """Report the values that kernels read or compute, in order of first use.

    Args:
        inputs: Inputs.
        outputs: Outputs.
        calls: Kernel calls in order.
        stored: Layouts of values that are not in row-major order.
        sizes: Values of all size variables. Default: none.
    """
    found: dict[object, EdgeReport] = {}
    labels = labels_of(calls)

    def enter(x: Tensor, kind: Kind, made_by: str = "") -> None:
        layout = stored.get(x)
        found[x] = EdgeReport(
            x.name, kind, made_by, (), bytes_of(x, stored, sizes), _text(layout),
            layout is not None and is_one_to_a_row(layout),
        )

    def read(key: object, name: str) -> None:
        found[key] = replace(found[key], read_by=(*found[key].read_by, name))

    for x in inputs:
        enter(x, "input")
    for call in calls:
        name = labels[call.group.result]
        packed = {pack.source for pack in call.packed}
        for x in group_inputs(call.group):
            if x not in found and x not in packed:
                enter(x, "constant")  # neither an input nor computed, hence a constant
            if x not in packed:
                read(x, name)
        for pack in call.packed:
            text, key = f"packed at build time, as {list(pack.shape)}", (pack.source, pack.shape)
            report = EdgeReport(pack.source.name, "constant", "", (), pack.bytes, text)
            found.setdefault(key, report)
            read(key, name)
        for x in call.group.result.outputs:
            enter(x, "output" if x in outputs else "copy" if call.is_relayout else "value", name)
    return tuple(found.values())


def relayouts_of(layouts: ProgramLayouts | None) -> Iterator[RelayoutReport]:
    """Yield the reports of the relayouts."""
    copies = (*layouts.relayouts, *layouts.for_host, *layouts.reshards) if layouts else ()
    for copy in copies:
        readers = tuple(op.name for op in copy.readers)
        yield RelayoutReport(
            copy.tensor.name, readers, _text(copy.source), _text(copy.layout), copy.elements,
            copy.nbytes,
        )


def _text(layout: Layout | None) -> str:
    if layout is None:
        return "row-major"
    text = layout.index_map.formula
    return text if layout.pad_value is None else f"{text}, {layout.pad_value:g} in padding"


_DEFAULT_SECONDS = 1e-6
"""Seconds assumed for a kernel without measured or modelled time."""


def trace(report: ProgramReport, plan: ArenaPlan) -> ChromeTrace:
    """Build the trace of a program.

    Args:
        report: Kernels in order, with measured times or lower bounds.
        plan: Memory plan of the values between kernels.
    """
    events = [
        process_named(0, f"{report.program} on {report.target}"), lane_named(0, 0, "kernels"),
    ]
    now = 0.0
    for number, kernel in enumerate(report.kernels):
        live = sum(value.bytes for value in plan.live(number))
        events.append(level("bytes between kernels", now * 1e6, "bytes", live))
        seconds = kernel.seconds or kernel.bound or _DEFAULT_SECONDS
        events.append(bar(
            kernel.name, kernel.bound_by, now * 1e6, seconds * 1e6, details=_describe(kernel)))
        now += seconds
    events.append(level("bytes between kernels", now * 1e6, "bytes", 0))
    return trace_of(events)


def _describe(kernel: KernelReport) -> dict[str, Any]:
    fields = {
        "operations": " ".join(kernel.operations), "reads": kernel.reads, "writes": kernel.writes,
        "least": kernel.bound, "measured": kernel.seconds,
    }
    return {name: value for name, value in fields.items() if value is not None}


@dataclass(frozen=True, slots=True)
class ProgramDetails:
    """Inspection data of a program.

    Attributes:
        inputs: Inputs.
        outputs: Outputs.
        kernels: Kernel calls in order.
        memory: Memory plan of the values between kernels.
        layouts: Layouts of all values; None if layouts do not matter on the target.
        stored: Layouts of values in memory that are not in row-major order.
        division_outcomes: Division hints and their outcomes.
    """

    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    kernels: tuple[KernelCall, ...]
    memory: ArenaPlan | SymbolicArenaPlan
    layouts: ProgramLayouts | None
    stored: Mapping[Tensor, Layout]
    division_outcomes: tuple[DivisionHintOutcome, ...]

    def arena(self, sizes: Mapping[str, int]) -> ArenaPlan:
        """Return the memory plan for the given values of all size variables."""
        memory = self.memory
        return memory.at(sizes) if isinstance(memory, SymbolicArenaPlan) else memory

    def report(
        self, name: str, target: Target, constants: int,
        sizes: Mapping[str, int] = MappingProxyType({}), *, measured: bool,
    ) -> ProgramReport:
        """Report the cost of the program.

        Args:
            name: Program name.
            target: Target.
            constants: Size of the constants in bytes.
            sizes: Values of all size variables. Default: none.
            measured: Whether to time each kernel briefly.

        Raises:
            LowerError: If there are too many iterations to count.
        """
        costs: dict[int, tuple[CostReport, float | None]] = {}
        for call in self.kernels:
            if id(call.kernel) not in costs:
                seconds = call.kernel.measured(sizes) if measured else None
                costs[id(call.kernel)] = call.kernel.report(sizes), seconds
        # The memory bandwidth of the host does not describe an emulated target.
        rate = copy_rate(target) if measured and target.core is not None else None
        labels, memory = labels_of(self.kernels), self.arena(sizes)
        kernels = tuple(
            _kernel_report(call, name, self.stored, sizes, *costs[id(call.kernel)], rate)
            for call, name in ((call, labels[call.group.result]) for call in self.kernels)
        )
        return ProgramReport(
            name, target.name, kernels, len(costs), memory.bytes, memory.lower_bound,
            constants, edges_of(self.inputs, self.outputs, self.kernels, self.stored, sizes),
            tuple(relayouts_of(self.layouts)), memory.residents, memory.spills, rate,
        )

    def timeline(self, report: ProgramReport, sizes: Mapping[str, int]) -> ChromeTrace:
        """Build the trace of the program with the times of a report for the given sizes."""
        return trace(report, self.arena(sizes))


def _kernel_report(
    call: KernelCall, name: str, stored: Mapping[Tensor, Layout], sizes: Mapping[str, int],
    report: CostReport, seconds: float | None, copy_rate: float | None,
) -> KernelReport:
    group, target = call.group, call.kernel.build.target
    reads = sum(bytes_of(x, stored, sizes) for x in group_inputs(group))
    writes = sum(bytes_of(x, stored, sizes) for x in group.result.outputs)
    core = None if target is None else target.core
    # Targets without a cached core have many cores with memories of their own.
    cache_size = 0 if core is None else max(core.cache_bytes, default=0)
    copied = (reads + writes) / copy_rate if copy_rate and reads + writes > cache_size else None
    return KernelReport(
        name, tuple(op.name for op in group.operations), reads, writes,
        report.seconds, report.bound_by, seconds, report.cycles,
        len(report.cores) if core is None else 0, report.imbalance, sum(report.tiles.values()),
        copied, report.calls,
    )
