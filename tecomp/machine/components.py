"""Compute units, memories, links and measured rates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Annotated, ClassVar, Literal

from tecomp.errors import CapacityError, TargetError
from tecomp.ir.nodes.dtype import DType
from tecomp.machine.host import (
    DOTS,
    host_caches,
    host_cores,
    host_dots,
    host_vector_bytes,
    host_vector_registers,
)
from tecomp.machine.schema import (
    Alignment,
    CoreCount,
    Count,
    DTypeName,
    FromHost,
    KeyName,
    Matches,
    MemoryName,
    Name,
    Number,
    OneOf,
    Rank,
    Rate,
    RegisterCount,
    Source,
    TileExtent,
    VectorBytes,
)
from tecomp.machine.toml_reader import check_fields

TileAxis = Annotated[
    str, Matches(r"[mnk]((//|%)[1-9]\d{0,8})?", "m, n, k or a part of one such as k//4 and k%4")
]


_FARTHER = 0.75  # upper bound of the bandwidth of a cache relative to the next smaller cache
DotName = Annotated[str, OneOf("pair of types", DOTS)]


@dataclass(frozen=True, slots=True)
class Core:
    """Compute resources of one core, as far as schedules choose tiles by them.

    Attributes:
        count: Number of such cores.
        vector_bytes: Size of a vector register in bytes.
        vector_registers: Number of vector registers.
        cache_bytes: Sizes of the private or shared data caches of a core, the smallest first.
        source: Source of the numbers.
        vector_operations: Maximum vector operations of a core per cycle; a fused multiply-add
            counts as two.
        dots: Dtype pairs of dot-product instructions, which accumulate to 32 bits as `te.dot`:
            `uint8*int8`, `int8*int8`, `uint8*uint8`, `bfloat16*bfloat16`.
        load_operations: Maximum vector loads or stores of a core per cycle.
        line_bytes_per_cycle: Maximum bytes per cycle of a core from a cache behind the first.
        memory_bytes_per_cycle: Maximum bytes per cycle of a core from memory.

    >>> core = Core(4, 32, 16, (32768, 524288), source="a manual", dots=("uint8*int8",))
    >>> core.count, core.vector_bytes, core.vector_registers, core.cache_bytes
    (4, 32, 16, (32768, 524288))
    >>> core.vector_operations, core.dots, core.source
    (1, ('uint8*int8',), 'a manual')
    >>> core.load_operations, core.line_bytes_per_cycle, core.memory_bytes_per_cycle
    (4, 64.0, 32.0)
    """

    LINE_BYTES: ClassVar[int] = 64
    """Bytes of a cache line, the unit of transfers between caches, on x86-64 and most Arm cores."""
    PAGE_BYTES: ClassVar[int] = 4096
    """Bytes of the smallest memory page.

    Addresses at a distance of a multiple of a page map to the same set of the first-level cache.
    """

    count: Annotated[CoreCount, FromHost(host_cores)]
    vector_bytes: Annotated[VectorBytes, FromHost(host_vector_bytes)]
    vector_registers: Annotated[RegisterCount, FromHost(host_vector_registers)]
    cache_bytes: Annotated[tuple[Count, ...], FromHost(host_caches)]
    source: Source = ""
    dots: Annotated[tuple[DotName, ...], FromHost(host_dots)] = ()
    vector_operations: Count = 1
    # Defaults that no known processor exceeds, so that the model gives lower bounds of times.
    load_operations: Count = 4
    line_bytes_per_cycle: Rate = 64.0
    memory_bytes_per_cycle: Rate = 32.0

    def __post_init__(self) -> None:
        check_fields(self)

    @property
    def second_cache(self) -> int:
        """Size of the second cache in bytes, or of the only one.

        >>> Core(2, 32, 16, (32768, 524288)).second_cache, Core(2, 32, 16, (32768,)).second_cache
        (524288, 32768)
        """
        return self.cache_bytes[:2][-1]

    @property
    def level_bytes_per_cycle(self) -> tuple[float, ...]:
        """Maximum bytes per cycle of a core from each of its caches and from memory.

        >>> Core(2, 32, 16, (32768, 524288, 1 << 25)).level_bytes_per_cycle
        (128.0, 64.0, 48.0, 32.0)
        """
        rates = [float(self.load_operations * self.vector_bytes)]
        for _ in self.cache_bytes[1:]:
            rates.append(min(self.line_bytes_per_cycle, _FARTHER * rates[-1]))
        return (*rates, self.memory_bytes_per_cycle)

    def lanes(self, dtype: str) -> int:
        """Return the number of elements of a dtype per vector.

        >>> Core(2, 32, 16, (32768,)).lanes("float32")
        8
        """
        return max(self.vector_bytes // DType(dtype).bytes, 1)


@dataclass(frozen=True, slots=True)
class MatmulUnit:
    """A matrix unit that computes c[m, n] += a[m, k] * b[k, n] for tiles of one size.

    Attributes:
        kind: `matmul`.
        name: Name in the description.
        m: Rows of a and c.
        n: Columns of b and c.
        k: Columns of a and rows of b.
        inputs: Supported dtypes of a and b, which must be equal.
        accumulator: Dtype of c.
        a: Axes of a tile of a in memory, the innermost last.
        b: Axes of a tile of b in memory, the innermost last.
        c: Axes of a tile of c in memory, the innermost last.
        cycles: Cycles per tile operation by fidelity, the default fidelity first.
        memory: Memory of the operands.
        source: Source of the numbers.
        instances: Number of such units per core.
        modes: Default fidelity by dtype of a and b, if not the first one.
        accumulator_memory: Memory of c. Default: the memory of the operands.

    >>> from tecomp import Target
    >>> unit = Target.load("tensix_wh").engine["matmul"]
    >>> unit.kind, unit.name, (unit.m, unit.n, unit.k), unit.instances, unit.memory
    ('matmul', 'matmul', (32, 32, 32), 1, 'l1')
    >>> unit.inputs, unit.accumulator, unit.modes == {}
    (('bfloat16', 'float16'), 'float32', True)
    >>> dict(unit.cycles)
    {'hifi4': 64.0, 'hifi3': 48.0, 'hifi2': 32.0, 'lofi': 16.0}
    >>> unit.a, unit.b, unit.c, len(unit.source) > 0
    (('m', 'k'), ('k', 'n'), ('m', 'n'), True)
    >>> neuron = Target.load("neuroncore_v2").engine["matmul"]
    >>> unit.sums_memory, neuron.sums_memory, neuron.accumulator_memory
    ('l1', 'psum', 'psum')
    """

    kind: Literal["matmul"]
    name: Name
    m: TileExtent
    n: TileExtent
    k: TileExtent
    inputs: tuple[DTypeName, ...]
    accumulator: DTypeName
    a: tuple[TileAxis, ...]
    b: tuple[TileAxis, ...]
    c: tuple[TileAxis, ...]
    cycles: Mapping[str, Rate]
    memory: MemoryName
    source: Source
    instances: Count = 1
    modes: Mapping[DTypeName, str] = field(default_factory=dict)
    accumulator_memory: MemoryName | None = None

    @property
    def sums_memory(self) -> str:
        """Memory of c."""
        return self.accumulator_memory or self.memory

    def __post_init__(self) -> None:
        for dtype, mode in self.modes.items():
            if dtype not in self.inputs or mode not in self.cycles:
                raise TargetError(
                    'unit `{name}` has `{dtype} = "{mode}"` in modes, but dtypes must be among its '
                    'inputs {inputs} and modes among its cycles {cycles}',
                    name=self.name, dtype=dtype, mode=mode, inputs=", ".join(self.inputs),
                    cycles=", ".join(self.cycles),
                )


@dataclass(frozen=True, slots=True)
class VectorUnit:
    """A unit that applies one operation to all lanes of a vector.

    Attributes:
        kind: `vector`.
        name: Name in the description.
        width_bytes: Size of a vector in bytes.
        types: Supported dtypes of the lanes.
        cycles: Cycles per vector operation: `default`, and exceptions by the IR name of the
            operation, such as `exp`.
        memory: Memory of the operands.
        source: Source of the numbers.
        instances: Number of such units per core.
        max_lanes: Maximum number of lanes, for units that process as many elements of narrow
            dtypes as of wide ones. Default: no limit other than `width_bytes`.

    >>> from tecomp import Target
    >>> unit = Target.load("tensix_wh").engine["sfpu"]
    >>> unit.kind, unit.name, unit.width_bytes, unit.types, unit.instances, unit.memory
    ('vector', 'sfpu', 128, ('float32', 'bfloat16', 'float16', 'int32'), 1, 'dst')
    >>> unit.cycles["default"], len(unit.source) > 0, unit.max_lanes
    (2.0, True, None)
    """

    kind: Literal["vector"]
    name: Name
    width_bytes: VectorBytes
    types: tuple[DTypeName, ...]
    cycles: Mapping[str, Rate]
    memory: MemoryName
    source: Source
    instances: Count = 1
    max_lanes: Count | None = None

    def lanes(self, dtype: str) -> int:
        """Return the number of elements of a dtype per vector.

        Raises:
            TypeMismatchError: If the dtype does not exist.

        >>> from tecomp import Target
        >>> Target.load("tensix_wh").engine["sfpu"].lanes("float32")
        32
        >>> unit = Target.load("neuroncore_v2").engine["vector"]
        >>> unit.lanes("float32"), unit.lanes("bfloat16")
        (128, 128)
        """
        lanes = max(self.width_bytes // DType(dtype).bytes, 1)
        return lanes if self.max_lanes is None else min(lanes, self.max_lanes)


Unit = MatmulUnit | VectorUnit


Scope = Literal["host", "chip", "core"]


@dataclass(frozen=True, slots=True)
class Memory:
    """A memory of the caller (`scope = "host"`), of all cores (`"chip"`) or of one core (`"core"`).

    Attributes:
        name: Name for `set_scope` and buffer scopes.
        scope: `host`, `chip` or `core`.
        rank: Number of indices of an address: 1 for flat memory, 2 for rows of a texture.
        takes_flat: Whether buffers with one index may also be stored in the memory.
        alignment_bytes: Alignment of allocations.
        capacity_bytes: Capacity of one instance; None if no limit is stated.
        source: Source of the numbers.
        reserved_bytes: Part of the capacity of each instance that is unavailable to programs.
        instances: Number of equal parts, such as banks or channels, over which a buffer may spread.
        read_bytes_per_cycle: Read bandwidth shared by all readers, which for a core memory are
            those of its core.
        write_bytes_per_cycle: Write bandwidth shared by all writers.
        latency_cycles: Cycles from a request to the first byte.
        transaction_bytes: Minimum transfer size; every transfer is a multiple of it.
        rows: Number of rows of a memory of rank 2, such as the partitions of an SRAM. The bytes of
            a row that a buffer takes are taken in all rows. Default: any number of rows, each of
            them allocated separately.
    """

    name: Name
    scope: Scope
    rank: Rank
    alignment_bytes: Alignment
    capacity_bytes: Count | None
    source: Source
    takes_flat: bool = False
    reserved_bytes: Number = 0
    instances: Count = 1
    read_bytes_per_cycle: Rate | None = None
    write_bytes_per_cycle: Rate | None = None
    latency_cycles: Number | None = None
    transaction_bytes: Count | None = None
    rows: Count | None = None

    def __post_init__(self) -> None:
        if self.rows is not None and (
            self.rank != 2 or self.takes_flat
            or any((n or 0) % self.rows for n in (self.capacity_bytes, self.reserved_bytes))
        ):
            raise TargetError(
                "memory `{name}` has rows = {rows}, which requires rank = 2, no takes_flat, and "
                "multiples of it as capacity_bytes and reserved_bytes",
                name=self.name, rows=self.rows,
            )
        if self.capacity_bytes is None and (self.reserved_bytes or self.instances > 1):
            raise TargetError(
                "memory `{name}` has reserved_bytes or instances but no capacity_bytes; specify "
                "the capacity of one instance",
                name=self.name,
            )
        if self.capacity_bytes is not None and self.reserved_bytes >= self.capacity_bytes:
            raise TargetError(
                "memory `{name}` reserves {reserved_bytes} of its {capacity_bytes} bytes; leave "
                "some bytes for programs",
                name=self.name, reserved_bytes=self.reserved_bytes,
                capacity_bytes=self.capacity_bytes,
            )

    def takes(self, rank: int) -> bool:
        """Return whether buffers with `rank` physical axes may be stored in the memory."""
        return rank == self.rank or (rank == 1 and self.takes_flat)

    def allocated_rows(self, buffer: str, rows: int) -> int:
        """Return the number of rows that a buffer takes.

        Args:
            buffer: Name of the buffer, for messages.
            rows: Number of its rows.

        Raises:
            CapacityError: If the memory has fewer rows.

        >>> from tecomp import Target
        >>> vtcm, sbuf = Target.load("vtcm2d"), Target.load("neuroncore_v2")
        >>> memories = vtcm.memory("global.vtcm"), sbuf.memory("sbuf")
        >>> [memory.allocated_rows("A", 5) for memory in memories]
        [5, 128]
        """
        if self.rows is None:
            return rows
        if rows > self.rows:
            raise CapacityError(
                "{buffer}: has {rows} rows, but memory `{memory}` has {limit}; put the index "
                "modulo {limit} before AXIS_SEPARATOR in its layout",
                buffer=buffer, rows=rows, memory=self.name, limit=self.rows,
            )
        return self.rows

    @property
    def axes(self) -> str:
        """Number of physical axes of buffers, for messages."""
        flat = "1 or " if self.takes_flat and self.rank > 1 else ""
        return "1 physical axis" if self.rank == 1 else f"{flat}{self.rank} physical axes"

    @property
    def usable_bytes(self) -> int | None:
        """Capacity of all instances without reserved bytes; None without a limit.

        >>> Memory("lx", "core", 1, 128, 2048, "assumed", reserved_bytes=48).usable_bytes
        2000
        """
        if self.capacity_bytes is None:
            return None
        return (self.capacity_bytes - self.reserved_bytes) * self.instances


@dataclass(frozen=True, slots=True)
class Link:
    """A data path from one memory to another: a DMA engine, a network or a load port.

    Attributes:
        name: Name in the description.
        from_: Source memory.
        to: Destination memory.
        scope: Whether the link exists once per chip or once per core.
        bytes_per_cycle: Peak bandwidth of each instance.
        source: Source of the numbers.
        latency_cycles: Cycles from the start of a transfer to its first byte.
        hop_cycles: Cycles per core that a transfer passes.
        burst_bytes: Maximum burst size.
        max_loops: Maximum depth of the loop nest of a descriptor.
        instances: Number of instances.
        outstanding: Maximum number of requests in flight per instance, each of which has the
            latency of the link and of the source memory. Default: unlimited.
        ports: Coordinates of the cores next to which the link reaches a chip memory.
        topology: Whether the grid axes wrap around (`torus`) or not (`mesh`).
    """

    name: Name
    from_: Annotated[MemoryName, KeyName("from")]
    to: MemoryName
    scope: Literal["chip", "core"]
    bytes_per_cycle: Rate
    source: Source
    latency_cycles: Number = 0
    hop_cycles: Number = 0
    burst_bytes: Count | None = None
    max_loops: Count | None = None
    instances: Count = 1
    outstanding: Count | None = None
    ports: tuple[tuple[Number, ...], ...] = ()
    topology: Literal["mesh", "torus"] = "mesh"


@dataclass(frozen=True, slots=True)
class Rates:
    """Throughput of one processor core per second, measured or taken from a manual.

    Attributes:
        read_bytes_per_second: Read bandwidth of each cache of `core.cache_bytes`, in order,
            followed by the bandwidth of memory.
        flops: Vector operations per second by dtype; a fused multiply-add counts as two.
        scalar_flops: Scalar operations per second by dtype.
        source: Source of the numbers.

    >>> rates = Rates((2e11, 3e10), {"float32": 1e11}, source="a manual")
    >>> rates.read_bytes_per_second, rates.flops["float32"], dict(rates.scalar_flops)
    ((200000000000.0, 30000000000.0), 100000000000.0, {})
    >>> rates.source, rates.levels
    ('a manual', ('L1', 'memory'))
    """

    read_bytes_per_second: tuple[Rate, ...]
    flops: Mapping[DTypeName, Rate]
    scalar_flops: Mapping[DTypeName, Rate] = field(default_factory=dict)
    source: Source = ""

    def __post_init__(self) -> None:
        check_fields(self)
        for inner, outer in pairwise(self.read_bytes_per_second):
            if inner < outer:
                raise TargetError(
                    "read_bytes_per_second has {inner_rate:g} before {outer_rate:g}, but a cache "
                    "must not be slower than the next level; list the caches first, from the "
                    "smallest on, and memory last",
                    inner_rate=inner, outer_rate=outer,
                )
        for dtype, scalar in self.scalar_flops.items():
            vector = self.flops.get(dtype, scalar)
            if scalar > vector:
                raise TargetError(
                    "scalar_flops has {scalar:g} for {dtype}, but flops has {vector:g}; vector "
                    "rates must not be lower than scalar rates",
                    scalar=scalar, dtype=dtype, vector=vector,
                )

    @property
    def levels(self) -> tuple[str, ...]:
        """Names of the caches, followed by "memory".

        >>> Rates((3.0, 2.0, 1.0), {}).levels
        ('L1', 'L2', 'memory')
        """
        caches = range(1, len(self.read_bytes_per_second))
        return (*(f"L{k}" for k in caches), "memory")
