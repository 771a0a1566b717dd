"""Where allocated buffers are in the memories of a machine: one arena for each core or chip."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import lcm, prod

from tecomp.ir.algebra.extents import round_up
from tecomp.ir.language.stmt import Buffer, For, PrimFunc
from tecomp.lowering.storage.lifetimes import Activation, Held, activations_of
from tecomp.lowering.storage.spans import Span, places_of
from tecomp.machine.memory import Memory


@dataclass(frozen=True, slots=True)
class Placed:
    """A buffer in an arena.

    Attributes:
        buffer: as it is allocated.
        offset: its first byte in the arena.
        bytes: that it takes.
        row: bytes from one row to the next, where it has several physical axes; else all of it.
        step: what its offset is a multiple of.
        first: the first statement that needs it, counted in program order; None if none does.
        last: the last one.
    """

    buffer: Buffer
    offset: int
    bytes: int
    row: int
    step: int
    first: int | None
    last: int

    @property
    def end(self) -> int:
        """The first byte after it."""
        return self.offset + self.bytes


@dataclass(frozen=True, slots=True)
class Arena:
    """The buffers of one memory in one activation of a program.

    Attributes:
        memory: where it is.
        loop: the parallel loop of which each iteration has such an arena; None for the function.
        placed: what is in it, in program order.
        outside: bytes of the arenas around it that are in use as well.
    """

    memory: Memory
    loop: For | None
    placed: tuple[Placed, ...]
    outside: int = 0

    @property
    def bytes(self) -> int:
        """From its start to the end of the last buffer."""
        return max((each.end for each in self.placed), default=0)

    @property
    def at_peak(self) -> tuple[Placed, ...]:
        """The buffers that are needed together where the arena is fullest."""
        moments = [
            tuple(each for each in self.placed if (each.first or 0) <= now <= each.last)
            for now in dict.fromkeys(each.first or 0 for each in self.placed)
        ]
        return max(moments, key=_fullness, default=())

    @property
    def peak(self) -> int:
        """Bytes in use together with the arenas around it."""
        return self.outside + self.bytes


def _fullness(held: Sequence[Placed]) -> tuple[int, int]:
    return max((each.end for each in held), default=0), sum(each.bytes for each in held)


def plan_arenas(func: PrimFunc, memories: Mapping[str, Memory]) -> tuple[Arena, ...]:
    """The arenas of a function.

    An arena is for the memory of one core, or of the chip, in the whole function or in one
    iteration of a parallel loop. Buffers that are needed at one time are beside each other, others
    may share their places. Offsets are multiples of the memory's alignment.

    Args:
        func: a flat function. Allocations whose size is not known before it runs have no place.
        memories: by the scope of buffers; those without a capacity have no arena.

    Returns:
        The arenas, outer before inner. Buffers of a core that many cores use parts of are in none.
    """
    found: list[Arena] = []
    known: dict[tuple[int, str], Arena] = {}
    for activation in activations_of(func):
        for name in dict.fromkeys(held.buffer.scope for held in activation.held):
            memory = memories.get(name)
            if memory is None or memory.capacity_bytes is None:
                continue
            parts = [
                held for held in activation.held if held.buffer.scope == name
                and is_sized(held.buffer) and not (memory.scope == "core" and held.crosses)
            ]
            if not parts:
                continue
            around = _around(activation, name, known)
            copies = 1 if memory.scope == "core" else _rounds(activation)
            arena = Arena(memory, activation.loop, _pack(parts, memory), around)
            known[id(activation), name] = arena
            found.append(replace(arena, outside=around + (copies - 1) * arena.bytes))
    return tuple(found)


def _around(
    activation: Activation, name: str, known: Mapping[tuple[int, str], Arena]
) -> int:
    """Bytes of the arena around that are in use while an activation runs."""
    outer = activation.outer
    while outer is not None:
        if (arena := known.get((id(outer), name))) is not None:
            return arena.outside + max((
                each.end for each in arena.placed
                if (each.first or 0) <= activation.last and activation.first <= each.last
            ), default=0)
        outer = outer.outer
    return 0


def _rounds(activation: Activation) -> int:
    """How many cores run the activation side by side, as far as that is known."""
    extents = [getattr(loop.extent, "value", 1) for loop in activation.cores]
    return prod(int(extent) for extent in extents)


def is_sized(buffer: Buffer) -> bool:
    """Whether all extents are numbers."""
    return all(isinstance(extent, int) for extent in buffer.shape)


def bytes_of(buffer: Buffer, memory: Memory) -> int:
    """What a buffer takes in a memory; each row of one with several physical axes is aligned."""
    extents = [extent for extent in buffer.shape if isinstance(extent, int)]
    return prod(extents[:-1]) * row_bytes(buffer, memory.alignment_bytes)


def row_bytes(buffer: Buffer, step: int) -> int:
    """From one row of a buffer to the next, a multiple of `step`; all of one that has one axis."""
    extent = buffer.shape[-1]
    size = extent * buffer.dtype.bytes if isinstance(extent, int) else 0
    if len(buffer.shape) == 1:
        return size
    return round_up(size, step)


def _pack(parts: Sequence[Held], memory: Memory) -> tuple[Placed, ...]:
    """Buffers with their places."""
    steps = [_step(held, memory) for held in parts]
    rows = [row_bytes(held.buffer, step) for held, step in zip(parts, steps, strict=True)]
    sizes = [
        row * prod(extent for extent in held.buffer.shape[:-1] if isinstance(extent, int))
        for held, row in zip(parts, rows, strict=True)
    ]
    spans = [
        Span(size, step, 0 if held.first is None else held.first, held.last)
        for held, size, step in zip(parts, sizes, steps, strict=True)
    ]
    return tuple(
        Placed(held.buffer, place, size, row, step, held.first, held.last)
        for held, place, size, row, step in zip(
            parts, places_of(spans), sizes, rows, steps, strict=True
        )
    )


def _step(held: Held, memory: Memory) -> int:
    types = (buffer.dtype for buffer in (held.buffer, *held.views))
    return lcm(memory.alignment_bytes, *(dtype.bytes for dtype in types))
