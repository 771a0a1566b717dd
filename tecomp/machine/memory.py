"""Memories, and what moves data between them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from tecomp.errors import TargetError
from tecomp.machine.fields import Alignment, Count, Key, MemoryName, Name, Number, Rate, Source

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
    rank: Count
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
        outstanding: requests that each has under way at one time; any number if not said.
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
