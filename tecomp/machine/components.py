"""Compute units, memories, links and measured rates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Annotated, Literal

from tecomp.errors import TargetError
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
    Key,
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


_FARTHER = 0.75  # the rate of a cache, at most, by that of the cache before it
DotName = Annotated[str, OneOf("pair of types", DOTS)]


@dataclass(frozen=True, slots=True)
class Core:
    """What one core computes with, as far as a schedule picks its tiles by it.

    Attributes:
        count: how many such cores there are.
        vector_bytes: of a vector register.
        vector_registers: how many there are.
        cache_bytes: the data caches that a core has or shares, the smallest first.
        source: where the numbers come from.
        vector_operations: on vectors that a core does in a cycle at most; a fused product and sum
            count as two.
        dots: what one instruction multiplies and adds up to 32 bits, as `te.dot` does, by the
            types of its factors: `uint8*int8`, `int8*int8`, `uint8*uint8`, `bfloat16*bfloat16`.
        load_operations: loads of whole vectors, or stores, of a core in a cycle at most.
        line_bytes_per_cycle: bytes of a core in a cycle at most, from a cache behind the first.
        memory_bytes_per_cycle: bytes of a core in a cycle at most, from memory.

    >>> core = Core(4, 32, 16, (32768, 524288), source="a manual", dots=("uint8*int8",))
    >>> core.count, core.vector_bytes, core.vector_registers, core.cache_bytes
    (4, 32, 16, (32768, 524288))
    >>> core.vector_operations, core.dots, core.source
    (1, ('uint8*int8',), 'a manual')
    >>> core.load_operations, core.line_bytes_per_cycle, core.memory_bytes_per_cycle
    (4, 64.0, 32.0)
    """

    count: Annotated[CoreCount, FromHost(host_cores)]
    vector_bytes: Annotated[VectorBytes, FromHost(host_vector_bytes)]
    vector_registers: Annotated[RegisterCount, FromHost(host_vector_registers)]
    cache_bytes: Annotated[tuple[Count, ...], FromHost(host_caches)]
    source: Source = ""
    dots: Annotated[tuple[DotName, ...], FromHost(host_dots)] = ()
    vector_operations: Count = 1
    # Limits that no known processor exceeds, so that they give lower bounds of times.
    load_operations: Count = 4
    line_bytes_per_cycle: Rate = 64.0
    memory_bytes_per_cycle: Rate = 32.0

    def __post_init__(self) -> None:
        check_fields(self)

    @property
    def second_cache(self) -> int:
        """Bytes of the second cache, or of the only one.

        >>> Core(2, 32, 16, (32768, 524288)).second_cache, Core(2, 32, 16, (32768,)).second_cache
        (524288, 32768)
        """
        return self.cache_bytes[:2][-1]

    @property
    def level_bytes_per_cycle(self) -> tuple[float, ...]:
        """Bytes that a core gets in a cycle at most, of each of its caches and of memory.

        >>> Core(2, 32, 16, (32768, 524288, 1 << 25)).level_bytes_per_cycle
        (128.0, 64.0, 48.0, 32.0)
        """
        rates = [float(self.load_operations * self.vector_bytes)]
        for _ in self.cache_bytes[1:]:
            rates.append(min(self.line_bytes_per_cycle, _FARTHER * rates[-1]))
        return (*rates, self.memory_bytes_per_cycle)

    def lanes(self, dtype: str) -> int:
        """Values of a type that one vector holds.

        >>> Core(2, 32, 16, (32768,)).lanes("float32")
        8
        """
        return max(self.vector_bytes // DType(dtype).bytes, 1)


@dataclass(frozen=True, slots=True)
class MatmulUnit:
    """A unit that does c[m, n] += a[m, k] * b[k, n] for tiles of one size.

    Attributes:
        kind: `matmul`.
        name: what the description calls it.
        m: rows of a and c.
        n: columns of b and c.
        k: columns of a, rows of b.
        inputs: types that a and b may have, both the same.
        accumulator: type of c.
        a: axes of a tile of a in memory, the innermost last.
        b: the same for b.
        c: the same for c.
        cycles: of one tile operation for each fidelity, the usual one first.
        memory: where the operands are.
        source: where the numbers come from.
        instances: such units in one core.
        modes: which of the fidelities is the usual one for a type of a and b, if not the first.

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

    def __post_init__(self) -> None:
        for dtype, mode in self.modes.items():
            if dtype not in self.inputs or mode not in self.cycles:
                raise TargetError(
                    f"unit `{self.name}` has `{dtype} = \"{mode}\"` in modes; they are for its "
                    f"inputs {', '.join(self.inputs)} and among its cycles "
                    f"{', '.join(self.cycles)}"
                )


@dataclass(frozen=True, slots=True)
class VectorUnit:
    """A unit that does one operation on all lanes of a vector.

    Attributes:
        kind: `vector`.
        name: what the description calls it.
        width_bytes: of one vector.
        types: that its lanes may have.
        cycles: of one vector operation: `default`, and those of other operations by their name in
            the IR, such as `exp`.
        memory: where the operands are.
        source: where the numbers come from.
        instances: such units in one core.

    >>> from tecomp import Target
    >>> unit = Target.load("tensix_wh").engine["sfpu"]
    >>> unit.kind, unit.name, unit.width_bytes, unit.types, unit.instances, unit.memory
    ('vector', 'sfpu', 128, ('float32', 'bfloat16', 'float16', 'int32'), 1, 'dst')
    >>> unit.cycles["default"], len(unit.source) > 0
    (2.0, True)
    """

    kind: Literal["vector"]
    name: Name
    width_bytes: VectorBytes
    types: tuple[DTypeName, ...]
    cycles: Mapping[str, Rate]
    memory: MemoryName
    source: Source
    instances: Count = 1

    def lanes(self, dtype: str) -> int:
        """Values of a type that one vector holds.

        Raises:
            TypeMismatchError: there is no such type.

        >>> from tecomp import Target
        >>> Target.load("tensix_wh").engine["sfpu"].lanes("float32")
        32
        """
        return max(self.width_bytes // DType(dtype).bytes, 1)


Unit = MatmulUnit | VectorUnit


Scope = Literal["host", "chip", "core"]


@dataclass(frozen=True, slots=True)
class Memory:
    """One memory: of the caller (`scope = "host"`), of all cores (`"chip"`) or of one (`"core"`).

    Attributes:
        name: what `set_scope` and the scope of a buffer call it.
        scope: `host`, `chip` or `core`.
        rank: indices that an address has: 1 for flat memory, 2 for rows of a texture.
        takes_flat: whether buffers with one index may lie there too.
        alignment_bytes: multiple of this that allocations start at.
        capacity_bytes: what one instance holds; None where no limit of its own is stated.
        source: where the numbers come from.
        reserved_bytes: of the capacity of each instance, what programs cannot have.
        instances: equal parts, such as banks or channels, that a buffer may spread over.
        read_bytes_per_cycle: that its readers get together, for a memory of a core those of it.
        write_bytes_per_cycle: the same for writers.
        latency_cycles: from asking to the first byte.
        transaction_bytes: what is moved at least, and a multiple of it.
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

    def __post_init__(self) -> None:
        if self.capacity_bytes is None and (self.reserved_bytes or self.instances > 1):
            raise TargetError(
                f"memory `{self.name}` has reserved_bytes or instances but no capacity_bytes; say "
                "what one instance holds"
            )
        if self.capacity_bytes is not None and self.reserved_bytes >= self.capacity_bytes:
            raise TargetError(
                f"memory `{self.name}` reserves {self.reserved_bytes} of its "
                f"{self.capacity_bytes} bytes; leave some for programs"
            )

    def takes(self, rank: int) -> bool:
        """Whether buffers with so many physical axes may lie there."""
        return rank == self.rank or (rank == 1 and self.takes_flat)

    @property
    def axes(self) -> str:
        """How many physical axes buffers have, for messages."""
        flat = "1 or " if self.takes_flat and self.rank > 1 else ""
        return "1 physical axis" if self.rank == 1 else f"{flat}{self.rank} physical axes"

    @property
    def usable_bytes(self) -> int | None:
        """What programs may have: all instances without what is reserved; None without a limit.

        >>> Memory("lx", "core", 1, 128, 2048, "assumed", reserved_bytes=48).usable_bytes
        2000
        """
        if self.capacity_bytes is None:
            return None
        return (self.capacity_bytes - self.reserved_bytes) * self.instances


@dataclass(frozen=True, slots=True)
class Link:
    """What moves data from one memory to another: a DMA engine, a network, a load port.

    Attributes:
        name: what the description calls it.
        from_: the memory that is read.
        to: the memory that is written.
        scope: whether there is one for the chip, or one for each core.
        bytes_per_cycle: at best, of each.
        source: where the numbers come from.
        latency_cycles: from the start of a transfer to its first byte.
        hop_cycles: for each core that a transfer passes on its way.
        burst_bytes: the longest run that is moved at once.
        max_loops: nested loops that one descriptor has.
        instances: how many there are.
        outstanding: requests that each has under way at one time; any number if not said. Each
            waits for the link and for the memory that it reads.
        ports: cores next to which it reaches a memory of the chip: a coordinate for each axis.
        topology: whether the last core along an axis of the grid is next to the first (`torus`).
    """

    name: Name
    from_: Annotated[MemoryName, Key("from")]
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
    """What one core of a processor does in a second, measured or taken from a manual.

    Attributes:
        read_bytes_per_second: bytes that it reads in a second: of each of the caches
            `core.cache_bytes`, in their order, and at last of memory.
        flops: operations in a second with vectors, by the type of their elements; a fused product
            and sum are two.
        scalar_flops: the same of one element at a time.
        source: where the numbers come from.

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
        for near, far in pairwise(self.read_bytes_per_second):
            if near < far:
                raise TargetError(
                    f"read_bytes_per_second has {near:g} before {far:g}, but a cache is no slower "
                    "than what lies behind it; list the caches first, the smallest one of all, and "
                    "memory at last"
                )
        for dtype, scalar in self.scalar_flops.items():
            vector = self.flops.get(dtype, scalar)
            if scalar > vector:
                raise TargetError(
                    f"scalar_flops has {scalar:g} for {dtype}, but flops {vector:g}; vectors are "
                    "no slower than single elements"
                )

    @property
    def levels(self) -> tuple[str, ...]:
        """What the caches are called, and memory behind them.

        >>> Rates((3.0, 2.0, 1.0), {}).levels
        ('L1', 'L2', 'memory')
        """
        caches = range(1, len(self.read_bytes_per_second))
        return (*(f"L{k}" for k in caches), "memory")
