"""Convert counts to the cycles in which each resource of a machine is busy.

docs/cost-model.md describes the model. All figures of a machine come from its description.
"""

from __future__ import annotations

from collections import Counter as Totals
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from typing import TypeAlias

from tecomp.cost_model.access_sequence import AccessSequence
from tecomp.cost_model.access_sites import (
    AccessSites,
    ComputeSite,
    DataSources,
    Site,
    TileWork,
    cycles_of,
    sites_of,
    sources_of,
)
from tecomp.cost_model.interconnect import (
    Sources,
    cycles,
    distance,
    exchanges,
    hops,
    latency,
    link_between,
    outside_of_transfer,
)
from tecomp.cost_model.iteration_counting import Core, Counter, Frame, Loop
from tecomp.cost_model.report import CoreWork, CostReport, Direction, Occupancy, Traffic, Transfers
from tecomp.cost_model.timeline import Activity
from tecomp.ir.nodes.dtype import DType
from tecomp.ir.nodes.expr import Const, Var, is_const
from tecomp.ir.nodes.stmt import Buffer, PrimFunc
from tecomp.machine.components import Core as Processor
from tecomp.machine.components import Link, Memory, VectorUnit
from tecomp.machine.descriptor import Target
from tecomp.operations.elementwise import ELEMENTWISE

_COSTS = {row.call: row.cost for row in ELEMENTWISE if row.call}
"""Operations per element of each intrinsic; other operators take one."""
_PRIVATE_CACHES = 2  # cache levels per core; the others may be shared by all cores

SHARED = "core.x"
"""Grid axis for the cores of a processor."""


@dataclass(frozen=True, slots=True)
class CostModelInput:
    """Input of the cost model.

    Attributes:
        name: Name of the kernel.
        func: Flat function before vectorization, with constant sizes.
        peaks: Peak bytes in use, by memory.
        padding: Bytes of padding in tensors that are stored in full, by memory.
    """

    name: str
    func: PrimFunc
    peaks: Mapping[str, int]
    padding: Mapping[str, int]


def cost(program: CostModelInput, target: Target) -> CostReport:
    """Return the cost report of a program.

    Raises:
        TooManyIterationsError: If too many iterations must be counted one by one.
    """
    sites = sites_of(program.func, target.engine)
    model = _Model(target, sites)
    for site in sites.sites:
        model.access(site)
    for work in sites.works:
        model.compute(work)
    for tile in sites.tiles:
        model.tile(tile)
    return model.report(program)


@dataclass(slots=True)
class _Flow:
    """Accesses to one memory in one direction."""

    memory: Memory
    bytes: int = 0
    runs: int = 0
    longest: int = 0
    blocks: int = 0
    per_core: Totals[Core] = field(default_factory=Totals)


@dataclass(slots=True)
class _Transfers:
    """Traffic over one link."""

    bytes: int = 0
    transfers: int = 0
    bursts: int = 0
    hops: int = 0


@dataclass(slots=True)
class _Worker:
    """Work of one core, or of the shared resources."""

    operations: int = 0
    tiles: Totals[str] = field(default_factory=Totals)
    computing: float = 0.0
    parts: dict[tuple[int, int, str, str], float] = field(default_factory=dict)
    seconds_by_reason: dict[str, float] = field(default_factory=dict)

    def takes(self, statement: int, step: int, name: str, resource: str, cycles: float) -> None:
        """Add cycles of a resource to a step (see `Activity`) of a statement."""
        key = statement, step, name, resource
        self.parts[key] = self.parts.get(key, 0.0) + cycles

    def awaits(self, resource: str, cycles: float) -> None:
        """Record the latency until the first data of a resource arrive."""
        self.seconds_by_reason[resource] = max(self.seconds_by_reason.get(resource, 0.0), cycles)


_Moved: TypeAlias = tuple[Site, Mapping[Core, int]]
"""Access, and the bytes that each core moves for it."""


class _Model:
    """Accumulator of traffic and work over the sites of a program."""

    def __init__(self, target: Target, sites: AccessSites) -> None:
        self.target = target
        self.sites = sites
        self.counter = Counter({axis: target.grid.get(axis, 1) for axis in sites.axes})
        self.accessed: Totals[Var] = Totals()
        self.moved: list[_Moved] = []
        self.flows: dict[tuple[str, Direction], _Flow] = {}
        self.workers: dict[Core, _Worker] = {}
        self.operations: Totals[str] = Totals()
        self.chip: dict[str, float] = {}
        self.shared = _Worker()
        self.links: dict[str, _Transfers] = {}
        self.sources = exchanges(sites, target)
        frames = (*(site.frames for site in sites.sites), *(work.frames for work in sites.works))
        self.is_shared = not sites.axes and any(cores_among(group, target) > 1 for group in frames)

    def access(self, site: Site) -> None:
        """Add the traffic of one access site."""
        memory = self.target.memory(site.buffer.scope)
        if (sources := self.sources.get(id(site))) is not None:
            self._exchange(site, memory, sources)
            return
        link = self._link_of(site, memory)
        found = self._accesses(site, memory, link)
        for core, accesses in found.items():
            self._flow(site, memory, accesses, core, core)
        if link is not None:
            self._transfer(site, link, found, memory)

    def _exchange(self, site: Site, memory: Memory, sources: Sources) -> None:
        """Add a copy from the memory of one core to that of another."""
        link = link_between(self.target, memory.name, memory.name)
        for source, guard in sources:
            part = replace(site, frames=(*site.frames, guard))
            found = self._accesses(part, memory, link)
            for core, accesses in found.items():
                self._flow(site, memory, accesses, source, core)
            remote = {core: accesses for core, accesses in found.items() if core != source}
            if link is not None:
                self._transfer(part, link, remote, memory, source)

    def _accesses(
        self, site: Site, memory: Memory, link: Link | None
    ) -> dict[Core, AccessSequence]:
        return self.counter.accesses(
            site.frames, site.buffer, site.indices, memory.transaction_bytes,
            link.burst_bytes if link is not None else None,
        )

    def _flow(
        self, site: Site, memory: Memory, accesses: AccessSequence, owner: Core, user: Core
    ) -> None:
        """Add accesses of core `user` to memory of core `owner`, or to memory of the chip."""
        flow = self.flows.setdefault((memory.name, site.direction), _Flow(memory))
        size = site.buffer.dtype.bytes
        flow.bytes += accesses.count * size
        self.accessed[site.buffer.data] += accesses.count * size
        flow.runs += accesses.runs
        flow.longest = max(flow.longest, accesses.longest * size)
        flow.blocks += accesses.blocks
        if self.target.core is not None:
            self.moved.append((site, {
                core: count * size
                for core, count in self._shared(site.frames, owner, accesses.count) if count}))
        for core, count in self._shared(site.frames, owner, accesses.count):
            flow.per_core[core] += count * size
            if self.is_shared:
                self._worker(core)
        if site.direction == "read" and memory.latency_cycles:
            self._worker(user).awaits(memory.name, memory.latency_cycles)
        self._busy(site, owner, memory, _transferred_bytes(accesses, size, memory))

    def _link_of(self, site: Site, memory: Memory) -> Link | None:
        """Return the link from the memory that is read to the memory that is written, or None."""
        if site.direction == "write" or site.target is None:
            return None
        dest = site.target.scope
        return link_between(self.target, memory.name, dest) if dest != memory.name else None

    def _busy(self, site: Site, core: Core, memory: Memory, nbytes: int) -> None:
        reads = site.direction == "read"
        rate = memory.read_bytes_per_cycle if reads else memory.write_bytes_per_cycle
        if rate is not None:
            resource = f"{memory.name} {site.direction}"
            self._take(site, core, resource, nbytes / rate, is_shared=memory.scope != "core")

    def _transfer(
        self, site: Site, link: Link, found: Mapping[Core, AccessSequence], memory: Memory,
        source: Core | None = None,
    ) -> None:
        """Add a transfer over a link, from the memory of core `source` if the memory is private."""
        begins = self.counter.times(outside_of_transfer(self.counter.terms, site, link))
        total = self.links.setdefault(link.name, _Transfers())
        grid = self.target.grid
        for core, accesses in found.items():
            if source is None:
                hop_count = hops(link, self._place(core), grid)
            else:
                hop_count = distance(link, self._place(core), self._place(source), grid)
            nbytes = _transferred_bytes(accesses, site.buffer.dtype.bytes, memory)
            transfers = min(begins[core], accesses.count)
            total.bytes += nbytes
            total.transfers += transfers
            total.bursts += accesses.bursts
            total.hops = max(total.hops, hop_count)
            delay = latency(link, hop_count)
            if delay:
                self._worker(core).awaits(link.name, delay)
            requests = transfers if link.burst_bytes is None else accesses.bursts
            # A request waits for the link and for the memory that it reads.
            busy = cycles(link, nbytes, requests, delay + (memory.latency_cycles or 0))
            self._take(site, core, link.name, busy, is_shared=link.scope == "chip")

    def _place(self, core: Core) -> list[int]:
        """Return the coordinates of a core on all axes of the target's grid."""
        known = dict(zip(self.sites.axes, core, strict=True))
        return [known.get(axis, 0) for axis in self.target.grid]

    def _worker(self, core: Core) -> _Worker:
        return self.workers.setdefault(core, _Worker())

    def _take(
        self, site: Site, core: Core, resource: str, cycles: float, *, is_shared: bool
    ) -> None:
        name = (site.target or site.buffer).name
        step = 2 if site.direction == "write" else 0
        if is_shared:
            self.chip[resource] = self.chip.get(resource, 0.0) + cycles
        worker = self.shared if is_shared else self._worker(core)
        worker.takes(site.statement, step, name, resource, cycles)

    def compute(self, work: ComputeSite) -> None:
        """Add the operations of one statement."""
        for position, total in self.counter.times(work.frames).items():
            for core, times in self._shared(work.frames, position, total):
                worker = self._worker(core)
                cycles = 0.0
                for (name, dtype), count in work.operations:
                    self.operations[f"{name} {dtype}"] += count * times
                    worker.operations += count * times
                    cycles += count * times * self._cycles(name, dtype)
                worker.computing += cycles
                worker.takes(work.statement, 1, work.name, "compute", cycles)

    def _shared(
        self, frames: Sequence[Frame], position: Core, total: int
    ) -> Iterator[tuple[Core, int]]:
        """Yield the share of `total` of each core; cores of a processor share parallel loops."""
        if not self.is_shared:
            yield position, total
            return
        among = cores_among(frames, self.target)
        for core in range(among):
            yield (core,), total * (core + 1) // among - total * core // among

    def tile(self, work: TileWork) -> None:
        """Add the cycles that a tensor operation takes on its unit."""
        name = work.operation.name
        for core, times in self.counter.times(work.frames).items():
            worker = self._worker(core)
            worker.tiles[name] += times
            if work.unit is not None:
                cycles = times * cycles_of(work.operation, work.unit)
                worker.computing += cycles
                worker.takes(work.statement, 1, name, f"{work.unit.name} unit", cycles)

    def _cycles(self, name: str, dtype: str) -> float:
        """Return the cycles of one operation on one element."""
        units = [unit for unit in self.target.engine.values()
                 if isinstance(unit, VectorUnit) and dtype in unit.types]
        # A unit that lists the operation executes it; the first unit executes all others.
        for unit in (*(unit for unit in units if name in unit.cycles), *units):
            op_cycles = unit.cycles.get(name, unit.cycles.get("default", 1.0))
            return op_cycles / (unit.lanes(dtype) * unit.instances)
        if self.target.core is not None:
            core = self.target.core
            operations = _COSTS.get(name, 1)
            return operations / (core.lanes(DType(dtype)) * core.vector_operations)
        return 1.0

    def report(self, program: CostModelInput) -> CostReport:
        """Return the report of all accumulated costs."""
        self._add_levels(program.func)
        order = sorted(self.workers)
        after = sources_of(self.sites, self.sources)
        return CostReport(
            program.name, self.target.name,
            (SHARED,) if self.is_shared else self.sites.axes, self.target.cores,
            tuple(_core_work(core, self.workers[core], after) for core in order),
            tuple(self._traffic(order)),
            tuple(Transfers(name, total.bytes, total.transfers, total.bursts, total.hops)
                  for name, total in self.links.items()),
            tuple(self._memories(program)),
            dict(sorted(self.operations.items())), _tiles(self.workers.values()),
            dict(self.chip), self.target.clock_hz, self.sites.unknown, self.sites.calls,
            _core_work((), self.shared, after).activities, self._compulsory(program.func),
            self.target.core.cache_bytes if self.target.core is not None else (),
            self.target.rates,
        )

    def _compulsory(self, func: PrimFunc) -> int:
        """Return the bytes of arguments, each counted once, limited to the bytes accessed."""
        return sum(min(size, self.accessed[data]) for data, size in _argument_bytes(func).items())

    def _add_levels(self, func: PrimFunc) -> None:
        """Add the cycles of caches and memory of a processor, with each argument moved once.

        Reads and writes may overlap, so only the direction with more bytes counts.
        """
        core = self.target.core
        if core is None:
            return
        sizes = _argument_bytes(func)
        of_arguments = [entry for entry in self.moved if entry[0].buffer.data in sizes]
        directions = [
            [entry for entry in of_arguments if (entry[0].direction == "read") is is_read]
            for is_read in (True, False)
        ]
        traffic = max(directions, key=lambda group: _bytes_once(group, sizes))
        cores = len({core for _, per_core in traffic for core in per_core})
        for name, cost in self._levels(core, _bytes_once(traffic, sizes), cores):
            self._spread(name, cost, traffic)

    def _levels(self, core: Processor, size: int, cores: int) -> Iterator[tuple[str, float]]:
        """Yield a lower bound of the cycles per core to move `size` bytes, for each memory level.

        The contents of the caches in front of a level may be there before the call. Each core has
        `_PRIVATE_CACHES` caches of its own and shares the others. For memory, a measured rate is
        applied as well, because it is lower than the architectural limit. For caches only the limit
        applies, because measured cache rates are pessimistic when other work runs concurrently.
        """
        rates, clock = self.target.rates, self.target.clock_hz
        cached = 0
        for level, rate in enumerate(core.level_bytes_per_cycle):
            is_memory = level == len(core.cache_bytes)
            cost = (size - cached) / rate / max(cores, 1)
            if is_memory and rates is not None and clock is not None:
                per_core = size / max(cores, 1) - core.cache_bytes[-1]
                cost = max(cost, per_core * clock / rates.read_bytes_per_second[-1])
            if cost > 0:
                yield "memory" if is_memory else f"L{level + 1}", cost
            if not is_memory:
                cached = core.cache_bytes[level] * (cores if level < _PRIVATE_CACHES else 1)

    def _spread(
        self, resource: str, cycles: float, traffic: Sequence[_Moved]
    ) -> None:
        """Distribute cycles to every core that moves bytes, in proportion to its accesses."""
        totals: Totals[Core] = Totals()
        for _, per_core in traffic:
            totals.update(per_core)
        for site, per_core in traffic:
            for core, count in per_core.items():
                share = cycles * count / totals[core]
                self._take(site, core, resource, share, is_shared=False)

    def _traffic(self, order: list[Core]) -> list[Traffic]:
        names = list(self.target.memories)
        found = sorted(self.flows.items(), key=lambda item: (names.index(item[0][0]), item[0][1]))
        return [
            Traffic(
                name, direction, flow.bytes, flow.runs, flow.longest,
                None if flow.memory.transaction_bytes is None else flow.blocks,
                tuple(flow.per_core[core] for core in order),
            )
            for (name, direction), flow in found if flow.bytes
        ]

    def _memories(self, program: CostModelInput) -> list[Occupancy]:
        return [
            Occupancy(memory.name, program.peaks.get(memory.name, 0), memory.usable_bytes,
                      program.padding.get(memory.name, 0))
            for memory in self.target.memories.values()
            if program.peaks.get(memory.name) or program.padding.get(memory.name)
        ]


def _argument_bytes(func: PrimFunc) -> dict[Var, int]:
    """Return the bytes of each argument by data variable; axes with stride 0 count once."""
    found: dict[Var, int] = {}
    for param in func.params:
        if isinstance(param, Buffer):
            strides = param.strides or (1,) * len(param.shape)
            elements = prod(
                extent for extent, stride in zip(param.shape, strides, strict=True)
                if isinstance(extent, int) and not is_const(stride, 0))
            found[param.data] = elements * param.dtype.bytes
    return found


def _bytes_once(traffic: Sequence[_Moved], sizes: Mapping[Var, int]) -> int:
    """Return the bytes of arguments that are accessed, each counted once."""
    accessed: Totals[Var] = Totals()
    for site, per_core in traffic:
        accessed[site.buffer.data] += sum(per_core.values())
    return sum(min(sizes[data], count) for data, count in accessed.items())


def cores_among(frames: Sequence[Frame], target: Target) -> int:
    """Return the number of cores that share the outermost parallel loop of a processor."""
    if target.core is not None:
        for frame in frames:
            if isinstance(frame, Loop) and frame.is_parallel:
                iterations = int(frame.extent.value) if isinstance(frame.extent, Const) else None
                num_cores = target.core.count
                return num_cores if iterations is None else max(min(num_cores, iterations), 1)
    return 1


def _transferred_bytes(accesses: AccessSequence, size: int, memory: Memory) -> int:
    """Return the bytes that the memory moves: whole transactions if it has transactions."""
    block = memory.transaction_bytes
    return max(accesses.count * size, accesses.blocks * block if block else 0)


def _core_work(core: Core, worker: _Worker, after: Mapping[int, DataSources]) -> CoreWork:
    cycles: dict[str, float] = {}
    parts = []
    for key, amount in sorted(worker.parts.items(), key=lambda item: item[0][:2]):
        statement, step, name, resource = key
        cycles[resource] = cycles.get(resource, 0.0) + amount
        sources = after.get(statement, DataSources())
        parts.append(Activity(name, resource, amount, statement, step,
                              tuple(sources.iterations.items()), tuple(sources.everywhere)))
    return CoreWork(
        core, worker.operations, dict(sorted(worker.tiles.items())), worker.computing, cycles,
        sum(worker.seconds_by_reason.values()), tuple(parts),
    )


def _tiles(workers: Iterable[_Worker]) -> dict[str, int]:
    total: Totals[str] = Totals()
    for worker in workers:
        total.update(worker.tiles)
    return dict(sorted(total.items()))
