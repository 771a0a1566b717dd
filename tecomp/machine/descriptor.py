"""What the compiler needs to know about a machine. Data only: no code, no defaults but one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import lru_cache
from math import prod
from pathlib import Path
from types import MappingProxyType
from typing import Any

from tecomp.errors import CapacityError, TargetError
from tecomp.ir.dtype import DType
from tecomp.ir.stmt import Buffer
from tecomp.machine.host import host_caches, host_cores, host_vectors
from tecomp.machine.read import HOST, read_description
from tecomp.machine.registry import find_description


@dataclass(frozen=True, slots=True)
class Memory:
    """One memory, as seen by one core (`scope = "core"`) or by all of them (`"chip"`).

    Attributes:
        name: what `set_scope` and the scope of a buffer call it.
        scope: `chip` or `core`.
        rank: indices that an address has: 1 for flat memory, 2 for rows of a texture.
        alignment_bytes: multiple of this that allocations start at.
        capacity_bytes: what fits into it; None where no limit of its own is stated.
        source: where the numbers come from.
    """

    name: str
    scope: str
    rank: int
    alignment_bytes: int
    capacity_bytes: int | None
    source: str


@dataclass(frozen=True, slots=True)
class Core:
    """What one core computes with, as far as a schedule picks its tiles by it.

    Attributes:
        count: how many such cores there are.
        vector_bytes: of a vector register.
        vector_registers: how many there are.
        cache_bytes: the data caches that a core has or shares, the smallest first.
    """

    count: int
    vector_bytes: int
    vector_registers: int
    cache_bytes: tuple[int, ...]

    def lanes(self, dtype: str) -> int:
        """Values of a type that one vector holds.

        >>> Core(2, 32, 16, (32768,)).lanes("float32")
        8
        """
        return max(self.vector_bytes // DType(dtype).bytes, 1)


@dataclass(frozen=True, slots=True)
class Target:
    """A machine that code is generated for.

    Attributes:
        name: what `Target.load` calls it.
        description: one sentence.
        memories: its memories by name, in the order of the file.
        core: its vectors and caches; None where the description has none.
    """

    name: str
    description: str
    memories: Mapping[str, Memory]
    core: Core | None = None

    @classmethod
    def load(cls, name: str | Path) -> Target:
        """The target of that name, or the one that a TOML file describes.

        Args:
            name: one of `list_targets()`, or a path that ends in `.toml`.

        Raises:
            TargetError: there is no such target, or its description is malformed.

        >>> Target.load("cpu").memory("global.texture").rank
        2
        """
        path = Path(name) if str(name).endswith(".toml") else find_description(str(name))
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise TargetError(f"{path}: cannot be read ({error}); pass a TOML file") from error
        return _read_once(text, path.name)

    def memory(self, scope: str) -> Memory:
        """The memory called `scope`.

        Raises:
            TargetError: there is none of that name.
        """
        if scope not in self.memories:
            raise TargetError(self._no_memory(scope))
        return self.memories[scope]

    def _no_memory(self, scope: str) -> str:
        near = get_close_matches(scope, list(self.memories), n=1)
        hint = f"did you mean `{near[0]}`? " if near else ""
        return (
            f"target {self.name} has no memory `{scope}`; {hint}its memories are "
            f"{', '.join(self.memories)}"
        )

    def check_buffer(self, buffer: Buffer) -> Memory:
        """The memory that `buffer` lives in, which has addresses of as many indices as it has.

        The axis separators of a buffer cut its axes into groups, each of which becomes one
        physical axis.

        Raises:
            TargetError: the machine has no such memory, or that has addresses of another rank.
            CapacityError: the buffer alone is larger than that memory.
        """
        if buffer.scope not in self.memories:
            raise TargetError(f"{buffer.name}: {self._no_memory(buffer.scope)}")
        memory = self.memories[buffer.scope]
        rank = len(buffer.axis_separators) + 1
        if rank == memory.rank:
            self._check_capacity(buffer, memory)
            return memory
        others = [m.name for m in self.memories.values() if m.rank == rank]
        cure = f"use {memory.rank - 1} AXIS_SEPARATOR in its layout instead of {rank - 1}"
        if others:
            cure += f', or set_scope("{others[0]}")'
        raise TargetError(
            f"{buffer.name}: has {_axes(rank)}, but memory `{memory.name}` of target {self.name} "
            f"takes {_axes(memory.rank)}; {cure}"
        )

    def _check_capacity(self, buffer: Buffer, memory: Memory) -> None:
        extents = [extent for extent in buffer.shape if isinstance(extent, int)]
        if memory.capacity_bytes is None or len(extents) < len(buffer.shape):
            return
        size = prod(extents) * buffer.dtype.bytes
        if size > memory.capacity_bytes:
            shape = ", ".join(map(str, extents))
            raise CapacityError(
                f"{buffer.name}: {buffer.dtype}[{shape}] takes {size} bytes, but memory "
                f"`{memory.name}` of target {self.name} holds {memory.capacity_bytes}; use "
                "smaller tiles, or compute it closer to where it is used"
            )


def _axes(rank: int) -> str:
    return "1 physical axis" if rank == 1 else f"{rank} physical axes"


def read_target(text: str, source: str) -> Target:
    """Parse a target description in TOML; `source` names it in error messages.

    Raises:
        TargetError: a key is missing, unknown or of the wrong kind; the message names it.
    """
    described = read_description(text, source)
    memories = {
        name: Memory(
            name=name,
            scope=entry["scope"],
            rank=entry["rank"],
            alignment_bytes=entry["alignment_bytes"],
            capacity_bytes=entry.get("capacity_bytes"),
            source=entry["source"],
        )
        for name, entry in described["memory"].items()
    }
    core = _core(described["core"]) if "core" in described else None
    return Target(described["name"], described["description"], MappingProxyType(memories), core)


@lru_cache(maxsize=32)
def _read_once(text: str, source: str) -> Target:
    return read_target(text, source)


def _core(entry: Mapping[str, Any]) -> Core:
    def known(key: str, host: Any) -> Any:
        return host if entry[key] == HOST else entry[key]

    width, count = host_vectors()
    return Core(
        count=known("count", host_cores()),
        vector_bytes=known("vector_bytes", width),
        vector_registers=known("vector_registers", count),
        cache_bytes=tuple(known("cache_bytes", host_caches())),
    )
