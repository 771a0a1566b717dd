"""Rooflines: speed of kernels and the limits set by computation and by each memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

from tecomp.cost_model.report import CostReport
from tecomp.drawing.drawable import Pictured
from tecomp.errors import CallError
from tecomp.machine.components import Rates

_MAX_NOISE_RATIO = 1.1
"""Ratio of speed to roof above which a deviation is not explained by measurement noise."""
_ROOF_SHARE = 0.999
"""Share of the roof above which a modelled speed counts as the roof itself."""
_OF_CORES = (
    "Solid lines are roofs of one core, dashed lines of several cores; a fused multiply-add counts "
    "as two operations."
)
_COMPULSORY = (
    "The intensity of a kernel is its operations per byte of compulsory traffic, in which each "
    "argument counts once."
)
_MEASURED = (
    "A filled dot is a measured time, the minimum of many calls; a ring is the lower bound of the "
    "model."
)


@dataclass(frozen=True, slots=True)
class Roof:
    """Upper bound of the speed of kernels.

    Attributes:
        name: Memory, link, or kind of computation.
        rate: Bytes or operations per second or per cycle.
        cores: Number of cores that share the rate. Default: 1.
    """

    name: str
    rate: float
    cores: int = 1

    @property
    def title(self) -> str:
        """Name with the number of cores if there are several."""
        return self.name if self.cores == 1 else f"{self.name}, {self.cores} cores"


@dataclass(frozen=True, slots=True)
class RooflinePoint:
    """Point of a roofline: a kernel, or its traffic with one memory.

    Attributes:
        kernel: Name of the kernel.
        memory: Name of the memory roof above the point.
        intensity: Operations per byte.
        speed: Operations per second or per cycle.
        bound: Maximum speed under the roofs; infinity if none is known.
        is_measured: Whether the time was measured, rather than modelled.
        is_main: Whether the memory is the one with the tightest bound.
    """

    kernel: str
    memory: str
    intensity: float
    speed: float
    bound: float
    is_measured: bool = False
    is_main: bool = True

    @property
    def share(self) -> float | None:
        """Ratio of speed to the bound of the roofs; None if no roof is known."""
        return None if self.bound == float("inf") else self.speed / self.bound

    def describe(self, speed: str) -> str:
        """Format a speed with its share; a modelled speed on the roof is an upper bound.

        >>> mark = RooflinePoint("main", "L1", 2.0, 5.0, 10.0)
        >>> mark.describe("5"), replace(mark, bound=5.0).describe("5")
        ('5, 50% of the roof', 'at most 5')
        """
        if self.share is None:
            return speed
        if not self.is_measured and self.share > _ROOF_SHARE:
            return f"at most {speed}"
        return f"{speed}, {self.share:.0%} of the roof"


@dataclass(frozen=True, slots=True)
class Roofline(Pictured):
    """Speeds of kernels on a machine and the roofs above them; `a + b` merges two rooflines.

    Attributes:
        target: Name of the target.
        unit: Unit of time: `second` or `cycle`.
        compute: Roofs of computation.
        memories: Roofs of memories, which are sloped: speed grows with operations per byte.
        marks: Points of the kernels.
        remarks: Remarks on the kernels and on the measurement.

    >>> from tecomp.machine.components import Rates
    >>> Roof("L1", 2e11).title, Roof("memory", 3e10, cores=4).title
    ('L1', 'memory, 4 cores')
    >>> naive, tiled = (
    ...     Roofline("cpu", "second", (Roof("float32 vectors", 1e11),), (Roof("L1", 2e11),),
    ...              (RooflinePoint(name, "L1", 10.0, speed, 1e11, is_measured=True),), ())
    ...     for name, speed in (("naive", 2e9), ("tiled", 5e10))
    ... )
    >>> print(naive + tiled)
    cpu, per second:
      float32 vectors: 1e+11 operations
      L1: 2e+11 bytes
    naive: 2e+09 operations, 2% of the roof; 10 per byte of L1
    tiled: 5e+10 operations, 50% of the roof; 10 per byte of L1
    >>> naive.target, naive.unit, naive.compute[0].rate, naive.memories[0].title, naive.remarks
    ('cpu', 'second', 100000000000.0, 'L1', ())
    >>> [(mark.kernel, round(mark.share, 2)) for mark in (naive + tiled).marks]
    [('naive', 0.02), ('tiled', 0.5)]
    """

    _drawn_by: ClassVar[str] = "report:draw_roofline"

    target: str
    unit: Literal["second", "cycle"]
    compute: tuple[Roof, ...]
    memories: tuple[Roof, ...]
    marks: tuple[RooflinePoint, ...]
    remarks: tuple[str, ...]

    def __repr__(self) -> str:
        return f"<Roofline of {self.target}: {', '.join(mark.kernel for mark in self.marks)}>"

    def __add__(self, other: Roofline) -> Roofline:
        if not isinstance(other, Roofline):
            return NotImplemented
        if (self.target, self.unit) != (other.target, other.unit):
            raise CallError(
                "roofline: the reports are of different targets, {target} and {other_target}; draw "
                "a separate plot for each",
                kind="conflicting-options", target=self.target, other_target=other.target,
            )
        return Roofline(
            self.target, self.unit, _highest(self.compute + other.compute),
            _highest(self.memories + other.memories), self.marks + other.marks,
            tuple(dict.fromkeys(self.remarks + other.remarks)),
        )

    def __str__(self) -> str:
        lines = [f"{self.target}, per {self.unit}:"]
        lines += [f"  {roof.title}: {roof.rate:.4g} operations" for roof in self.compute]
        lines += [f"  {roof.title}: {roof.rate:.4g} bytes" for roof in self.memories]
        for mark in self.marks:
            lines.append(f"{mark.kernel}: {mark.describe(f'{mark.speed:.4g} operations')}; "
                         f"{mark.intensity:.4g} per byte of {mark.memory}")
        return "\n".join([*lines, *self.remarks])


def roofline_of(report: CostReport, seconds: float | None = None, label: str
        | None = None) -> Roofline:
    """Return the roofline of one kernel.

    Args:
        report: Cost report of the kernel.
        seconds: Measured time of a call. Default: the time of the model.
        label: Name in the roofline. Default: the name of the kernel.
    """
    name = report.kernel if label is None else label
    if report.cache_bytes:
        return _of_processor(report, name, seconds)
    return _of_description(report, name)


def _of_description(report: CostReport, name: str) -> Roofline:
    """Return the roofline of a described machine in cycles, with one mark per memory and link."""
    operations = sum(core.operations for core in report.cores)
    computing = sum(core.computing for core in report.cores)
    traffic = _rates(report)
    if not operations or not computing or not report.cycles:
        return Roofline(report.target, "cycle", (), (), (), ("no operations",))
    peak, speed = operations / computing * report.available, operations / report.cycles
    remark = f"{name} executes {speed:,.4g} operations per cycle, {speed / peak:.1%} of the peak."
    if not traffic:
        unknown = f"{remark} The rates of its memories and links are unknown."
        return Roofline(report.target, "cycle", (), (), (), (unknown,))
    bounds = {resource: operations / count * rate for resource, (count, rate) in traffic.items()}
    tightest = min(bounds, key=lambda resource: bounds[resource])
    marks = tuple(
        RooflinePoint(name, resource, operations / count, speed, min(peak, bounds[resource]),
             is_main=resource == tightest)
        for resource, (count, _) in traffic.items()
    )
    return Roofline(
        report.target, "cycle", (Roof("compute", peak),),
        tuple(Roof(resource, rate) for resource, (_, rate) in traffic.items()), marks,
        (remark, "Rates are used bytes of all cores. The gap from a dot to its line is headroom."),
    )


def _rates(report: CostReport) -> dict[str, tuple[int, float]]:
    """Return the bytes moved and the bytes per cycle that are possible, by memory and link."""
    traffic = {f"{entry.memory} {entry.direction}": entry.bytes for entry in report.traffic}
    traffic |= {entry.link: entry.bytes for entry in report.links}
    found: dict[str, tuple[int, float]] = {}
    for name in report.shares:
        cycles = sum(core.cycles.get(name, 0.0) for core in report.cores)
        cores = report.available if cycles else 1
        cycles = cycles or report.chip.get(name, 0.0)
        if traffic.get(name) and cycles:
            found[name] = traffic[name], traffic[name] / cycles * cores
    return found


def _of_processor(report: CostReport, name: str, seconds: float | None) -> Roofline:
    """Return the roofline of a processor in seconds, with the measured rates of the target."""
    rates, dtype = report.rates, _type_of(report)
    if rates is None:
        unknown = (
            f"The rates of {report.target} are unknown; tecomp.calibrate() measures the host."
        )
        return Roofline(report.target, "second", (), (), (), (unknown,))
    cores = max(len(report.cores), 1)
    level = _level(report.compulsory_bytes // cores, report.cache_bytes)
    compute = _compute_roofs(rates, dtype)
    memories = tuple(
        Roof(level_name, rate)
        for level_name, rate in zip(rates.levels, rates.read_bytes_per_second, strict=True)
    )
    nearest = memories[level]
    peak = max((roof.rate for roof in compute), default=float("inf"))
    if cores > 1:
        compute += tuple(replace(roof, rate=peak * cores, cores=cores) for roof in compute[:1])
        memories += (replace(nearest, rate=nearest.rate * cores, cores=cores),)
    operations, nbytes = sum(report.operations.values()), report.compulsory_bytes
    min_seconds = max(operations / peak, nbytes / nearest.rate) / cores
    duration = min_seconds if seconds is None else seconds
    if not operations or not nbytes:
        return Roofline(report.target, "second", compute, memories, (),
                        (_OF_CORES, _no_mark(name, nbytes, duration, nearest.rate * cores)))
    mark = RooflinePoint(
        name,
        nearest.name,
        operations / nbytes,
        operations / duration,
        operations / min_seconds,
        seconds is not None,
    )
    return Roofline(report.target, "second", compute, memories, (mark,),
                    (_OF_CORES, _COMPULSORY, _MEASURED, *_doubts(mark, dtype, compute)))


def _compute_roofs(rates: Rates, dtype: str) -> tuple[Roof, ...]:
    """Return the roofs of computation: vector and scalar."""
    found = ((rates.flops, "vector"), (rates.scalar_flops, "scalar"))
    return tuple(Roof(f"{dtype} {kind}", peaks[dtype]) for peaks, kind in found if dtype in peaks)


def _level(size: int, caches: Sequence[int]) -> int:
    """Return the first memory level with a capacity of at least `size` bytes."""
    return next((k for k, cache in enumerate(caches) if size <= cache), len(caches))


def _type_of(report: CostReport) -> str:
    """Return the most frequent dtype, or the name of the most frequent dot-product instruction."""
    counts: Counter[str] = Counter()
    if dots := [name for name in report.operations if name.startswith("dot ")]:
        return max(dots, key=lambda key: report.operations[key])
    for name, count in report.operations.items():
        counts[name.rpartition(" ")[2]] += count
    return max(counts, key=lambda key: counts[key], default="float32")


def _doubts(mark: RooflinePoint, dtype: str, compute: Sequence[Roof]) -> Iterator[str]:
    if not compute:
        yield f"The peak rate for {dtype} is unknown."
    elif mark.speed > _MAX_NOISE_RATIO * mark.bound:
        yield (
            f"{mark.kernel} is above its roof: the machine was busy when the rates were measured, "
            "or the kernel uses other instructions. tecomp.calibrate(again=True) measures again."
        )


def _no_mark(name: str, nbytes: int, seconds: float, rate: float) -> str:
    if not nbytes or not seconds:
        return f"{name} executes no operations and moves no data."
    return (f"{name} executes no operations, and moves {nbytes / seconds:.4g} bytes per second, "
            f"{nbytes / seconds / rate:.0%} of the memory bandwidth.")


def _highest(roofs: Iterable[Roof]) -> tuple[Roof, ...]:
    """Return one roof per title, the highest of those with equal titles."""
    found: dict[str, Roof] = {}
    for roof in roofs:
        known = found.get(roof.title)
        found[roof.title] = roof if known is None or roof.rate > known.rate else known
    return tuple(found.values())
