"""Live ranges of buffers and their offsets in memory arenas."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from heapq import heappop, heappush
from math import lcm, prod

from tecomp.ir.arith.extents import round_up
from tecomp.ir.arith.quasi_affine_conversion import TermTable
from tecomp.ir.arith.simplify import constant_upper_bound
from tecomp.ir.nodes.dtype import INT64
from tecomp.ir.nodes.expr import BufferLoad, Expr, Ramp, Var, cast, is_const
from tecomp.ir.nodes.stmt import (
    Allocate,
    Buffer,
    BufferStore,
    DeclBuffer,
    For,
    ForKind,
    PrimFunc,
    Stmt,
)
from tecomp.ir.nodes.structural_equality import structural_equal
from tecomp.ir.traversal.rewrite import (
    Task,
    children,
    free_variables,
    nodes_of,
    run_trampoline,
    statements_in,
    walk,
)
from tecomp.machine.components import Memory


@dataclass(slots=True)
class Activation:
    """Sequential part of a program: a function, or one iteration of a parallel loop.

    Attributes:
        loop: Parallel loop; None for the function.
        outer: Enclosing activation; None for the function.
        first: Position of the first statement in program order.
        last: Position of the last statement.
        live_ranges: Allocations in this activation, excluding inner activations.
    """

    loop: For | None
    outer: Activation | None
    first: int = 0
    last: int = 0
    live_ranges: list[LiveRange] = field(default_factory=list)

    @property
    def cores(self) -> tuple[For, ...]:
        """Enclosing loops over cores, outermost first."""
        outer = () if self.outer is None else self.outer.cores
        return (*outer, self.loop) if self.loop is not None and self.loop.thread else outer


@dataclass(slots=True)
class LiveRange:
    """Allocation and its live range.

    Attributes:
        buffer: Allocated buffer.
        depth: Number of loops around the allocation.
        views: Other buffers in the same memory.
        first: Position of the first statement in the live range, in program order. None: unused.
        last: Position of the last statement in the live range.
        parallel_loop: Outermost loop over cores between the allocation and an access, if any.
        accesses: Accessing statements with the loops inside the allocation, in program order.
    """

    buffer: Buffer
    depth: int
    views: list[Buffer] = field(default_factory=list)
    first: int | None = None
    last: int = -1
    parallel_loop: For | None = None
    accesses: list[tuple[Stmt, tuple[For, ...]]] = field(default_factory=list)

    def used(self, first: int, last: int) -> None:
        """Extend the live range by statements `first` to `last`."""
        self.first = first if self.first is None else min(self.first, first)
        self.last = max(self.last, last)


@dataclass(slots=True)
class _LoopRange:
    node: For
    start: int
    needed: dict[Var, LiveRange] = field(default_factory=dict)


def activations_of(func: PrimFunc) -> list[Activation]:
    """Return the activations of a function with allocations, outer before inner.

    A buffer that is accessed in a loop inside its allocation is live in the whole loop.
    """
    walker = _Walker()
    walker.run(func.body)
    return [activation for activation in walker.activations if activation.live_ranges]


class _Walker:
    """Visitor of statements in program order that records live ranges."""

    def __init__(self) -> None:
        self.activations = [Activation(None, None)]
        self.open = [self.activations[0]]
        self.loops: list[_LoopRange] = []
        self.live: dict[Var, LiveRange] = {}
        self.position = 0

    def run(self, root: Stmt) -> None:
        """Visit all statements of `root`."""
        run_trampoline(self._visit(root))

    def _visit(self, node: Stmt) -> Task:
        self._enter(node)
        for child in statements_in(node):
            yield self._visit(child)
        self._leave(node)

    def _enter(self, node: Stmt) -> None:
        self.position += 1
        for data in dict.fromkeys(buffer.data for buffer in _accessed_buffers(node)):
            self._access(data, node)
        match node:
            case For():
                self.loops.append(_LoopRange(node, self.position))
                if node.kind is ForKind.PARALLEL:
                    self.activations.append(Activation(node, self.open[-1], self.position))
                    self.open.append(self.activations[-1])
            case Allocate(buffer):
                self.live[buffer.data] = live = LiveRange(buffer, len(self.loops))
                self.open[-1].live_ranges.append(live)
            case DeclBuffer(buffer) if buffer.data in self.live:
                self.live[buffer.data].views.append(buffer)

    def _leave(self, node: Stmt) -> None:
        match node:
            case For():
                loop = self.loops.pop()
                for live in loop.needed.values():
                    live.used(loop.start, self.position)
                if node.kind is ForKind.PARALLEL:
                    self.open.pop().last = self.position
            case Allocate(buffer):
                del self.live[buffer.data]

    def _access(self, data: Var, node: Stmt) -> None:
        live = self.live.get(data)
        if live is None:
            return
        inside = self.loops[live.depth:]
        live.accesses.append((node, tuple(loop.node for loop in inside)))
        if inside:
            inside[0].needed[data] = live
        live.used(self.position, self.position)
        if live.parallel_loop is None:
            live.parallel_loop = next((loop.node for loop in inside if loop.node.thread), None)


def _accessed_buffers(node: Stmt) -> Iterator[Buffer]:
    """Yield the buffers that a statement reads or writes directly."""
    if isinstance(node, BufferStore):
        yield node.buffer
    for child in children(node):
        if not isinstance(child, Stmt):
            yield from (part.buffer for part in nodes_of(BufferLoad, child))


@dataclass(frozen=True, slots=True)
class LiveInterval:
    """Size, alignment and live interval of a block of memory.

    Attributes:
        bytes: Size in bytes.
        step: Alignment of the offset in bytes.
        first: First step of the live interval.
        last: Last step of the live interval; less than `first` if the interval is empty.
    """

    bytes: int
    step: int
    first: int
    last: int


def assign_offsets(spans: Sequence[LiveInterval]) -> list[int]:
    """Return the offset of each span in bytes: the best first-fit result of several orders.

    Spans with overlapping live intervals share no byte.

    >>> assign_offsets(
    ...     [LiveInterval(8, 4, 0, 1), LiveInterval(6, 4, 1, 2), LiveInterval(8, 4, 2, 3)])
    [0, 8, 0]
    """
    orders: list[Callable[[int], tuple[int, ...]]] = [
        lambda k: (k,),
        lambda k: (-spans[k].bytes, k),
        lambda k: (spans[k].first - spans[k].last, -spans[k].bytes, k),
        lambda k: (spans[k].last, -spans[k].bytes, k),
    ]
    others, lower_bound = _interference_lists(spans), peak_live_bytes(spans)
    best: tuple[int, list[int]] | None = None
    for order in orders:
        offsets = _first_fit(spans, others, sorted(range(len(spans)), key=order))
        end = max((p + s.bytes for p, s in zip(offsets, spans, strict=True)), default=0)
        if best is None or end < best[0]:
            best = end, offsets
        if end == lower_bound:
            break
    return [] if best is None else best[1]


def peak_live_bytes(spans: Sequence[LiveInterval]) -> int:
    """Return the peak number of live bytes, a lower bound of the memory of any assignment.

    >>> peak_live_bytes(
    ...     [LiveInterval(8, 4, 0, 1), LiveInterval(6, 4, 1, 2), LiveInterval(8, 4, 2, 3)])
    14
    """
    changes: dict[int, int] = {}
    for span in spans:
        if span.first <= span.last:
            changes[span.first] = changes.get(span.first, 0) + span.bytes
            changes[span.last + 1] = changes.get(span.last + 1, 0) - span.bytes
    peak = live = 0
    for step in sorted(changes):
        live += changes[step]
        peak = max(peak, live)
    return peak


def _interference_lists(spans: Sequence[LiveInterval]) -> list[list[int]]:
    """Return the interference lists: for each span, the spans with overlapping live intervals."""
    found: list[list[int]] = [[] for _ in spans]
    live: list[tuple[int, int]] = []
    for k in sorted(range(len(spans)), key=lambda k: spans[k].first):
        if spans[k].first > spans[k].last:
            continue
        while live and live[0][0] < spans[k].first:
            heappop(live)
        for _, other in live:
            found[k].append(other)
            found[other].append(k)
        heappush(live, (spans[k].last, k))
    return found


def _first_fit(
    spans: Sequence[LiveInterval], others: Sequence[Sequence[int]], order: Sequence[int]
) -> list[int]:
    """Assign each span, in order, the lowest offset without overlap with interfering spans."""
    offsets: dict[int, int] = {}
    for k in order:
        used = sorted((offsets[o], offsets[o] + spans[o].bytes) for o in others[k] if o in offsets)
        offset = 0
        for start, end in used:
            if offset + spans[k].bytes <= start:
                break
            offset = max(offset, round_up(end, spans[k].step))
        offsets[k] = offset
    return [offsets[k] for k in range(len(spans))]


@dataclass(frozen=True, slots=True)
class ArenaSlot:
    """Buffer with an offset in an arena.

    Attributes:
        buffer: Allocated buffer.
        offset: Offset in the arena in bytes.
        bytes: Size in bytes.
        row: Row stride in bytes for several physical axes; the whole size for one axis.
        step: Alignment of the offset in bytes.
        first: Position of the first statement in the live range; None if unused.
        last: Position of the last statement in the live range.
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
        """Offset of the first byte after the buffer."""
        return self.offset + self.bytes


@dataclass(frozen=True, slots=True)
class Arena:
    """Buffers of one memory in one activation of a program.

    Attributes:
        memory: Memory of the arena.
        loop: Parallel loop whose iterations each have such an arena; None for the function.
        placed: Buffers of the arena, in program order.
        outside: Bytes in use at the same time outside this arena: in enclosing arenas, and in
            copies of this arena on other cores for a shared memory.
    """

    memory: Memory
    loop: For | None
    placed: tuple[ArenaSlot, ...]
    outside: int = 0

    @property
    def bytes(self) -> int:
        """Size of the arena: the end of the last buffer."""
        return max((slot.end for slot in self.placed), default=0)

    @property
    def at_peak(self) -> tuple[ArenaSlot, ...]:
        """Buffers that are live together at the fullest point of the arena.

        Of buffers that share an offset by in-place reuse, only the first is listed.
        """
        moments = []
        for step in dict.fromkeys(slot.first or 0 for slot in self.placed):
            live = [slot for slot in self.placed if (slot.first or 0) <= step <= slot.last]
            moments.append(tuple({slot.offset: slot for slot in reversed(live)}.values())[::-1])
        return max(moments, key=_largest_demand, default=())

    @property
    def peak(self) -> int:
        """Bytes in use including `outside`."""
        return self.outside + self.bytes


def _largest_demand(slots: Sequence[ArenaSlot]) -> tuple[int, int]:
    return max((slot.end for slot in slots), default=0), sum(slot.bytes for slot in slots)


def plan_arenas(func: PrimFunc, memories: Mapping[str, Memory]) -> tuple[Arena, ...]:
    """Assign the allocations of a function to arenas.

    An arena belongs to the memory of one core or of the chip, and to the whole function or one
    iteration of a parallel loop. Buffers with overlapping live ranges get disjoint offsets; other
    buffers may share memory. Offsets are multiples of the alignment of the memory.

    Args:
        func: Flat function. Allocations of symbolic size are not assigned to an arena.
        memories: Memories by buffer scope; memories without a capacity have no arena.

    Returns:
        Arenas, outer before inner. Buffers in a core memory that several cores access are excluded.
    """
    found: list[Arena] = []
    known: dict[tuple[int, str], Arena] = {}
    for activation in activations_of(func):
        for name in dict.fromkeys(live.buffer.scope for live in activation.live_ranges):
            memory = memories.get(name)
            if memory is None or memory.capacity_bytes is None:
                continue
            parts = [
                live for live in activation.live_ranges if live.buffer.scope == name
                and is_sized(live.buffer) and not (memory.scope == "core" and live.parallel_loop)
            ]
            if not parts:
                continue
            outer_bytes = _enclosing_arena_bytes(activation, name, known)
            copies = 1 if memory.scope == "core" else _rounds(activation)
            arena = Arena(memory, activation.loop, _pack(parts, memory), outer_bytes)
            known[id(activation), name] = arena
            found.append(replace(arena, outside=outer_bytes + (copies - 1) * arena.bytes))
    return tuple(found)


def _enclosing_arena_bytes(
    activation: Activation, name: str, known: Mapping[tuple[int, str], Arena]
) -> int:
    """Return the bytes of enclosing arenas that are in use while an activation runs."""
    outer = activation.outer
    while outer is not None:
        if (arena := known.get((id(outer), name))) is not None:
            return arena.outside + max((
                slot.end for slot in arena.placed
                if (slot.first or 0) <= activation.last and activation.first <= slot.last
            ), default=0)
        outer = outer.outer
    return 0


def _rounds(activation: Activation) -> int:
    """Return the number of cores that run the activation concurrently; symbolic extents count 1."""
    extents = [getattr(loop.extent, "value", 1) for loop in activation.cores]
    return prod(int(extent) for extent in extents)


def is_sized(buffer: Buffer) -> bool:
    """Return whether all extents are constant."""
    return all(isinstance(extent, int) for extent in buffer.shape)


def bytes_of(buffer: Buffer, memory: Memory) -> int:
    """Return the bytes of a buffer in a memory; rows of several physical axes are aligned."""
    extents = [extent for extent in buffer.shape if isinstance(extent, int)]
    rows = memory.allocated_rows(buffer.name, prod(extents[:-1]))
    return rows * row_bytes(buffer, memory.alignment_bytes)


def row_bytes(buffer: Buffer, step: int) -> int:
    """Return the row stride in bytes, a multiple of `step`; the whole size for one axis."""
    extent = buffer.shape[-1]
    size = extent * buffer.dtype.bytes if isinstance(extent, int) else 0
    if len(buffer.shape) == 1:
        return size
    return round_up(size, step)


def _pack(parts: Sequence[LiveRange], memory: Memory) -> tuple[ArenaSlot, ...]:
    """Assign offsets to buffers; a buffer computed in place of another shares its offset."""
    steps = [_step(live, memory) for live in parts]
    rows = [row_bytes(live.buffer, step) for live, step in zip(parts, steps, strict=True)]
    sizes = [
        row * memory.allocated_rows(
            live.buffer.name,
            prod(extent for extent in live.buffer.shape[:-1] if isinstance(extent, int)),
        )
        for live, row in zip(parts, rows, strict=True)
    ]
    owners = _owners(parts)
    heirs = [[k for k, owner in enumerate(owners) if owner == group] for group in sorted({*owners})]
    spans = [
        LiveInterval(
            max(sizes[k] for k in group), (memory.rows or 1) * lcm(*(steps[k] for k in group)),
            parts[group[0]].first or 0, parts[group[-1]].last,
        )
        for group in heirs
    ]
    offsets = {
        k: start for group, start in zip(heirs, assign_offsets(spans), strict=True) for k in group
    }
    return tuple(
        ArenaSlot(live.buffer, offsets[k], sizes[k], rows[k], steps[k], live.first, live.last)
        for k, live in enumerate(parts)
    )


def _owners(parts: Sequence[LiveRange]) -> list[int]:
    """Return, for each buffer, the number of the first buffer of its in-place chain."""
    owners = list(range(len(parts)))
    reused: set[int] = set()
    for k, child in enumerate(parts):
        for j, parent in enumerate(parts[:k]):
            if j not in reused and is_written_over(parent, child):
                owners[k] = owners[j]
                reused.add(j)
                break
    return owners


def is_written_over(parent: LiveRange, child: LiveRange) -> bool:
    """Return whether `child` may be computed in place in the memory of `parent`.

    This holds if one statement is the last to read `parent` and the first to store `child`, and if
    each element is stored once, at the index at which it is read. Then no overwritten element is
    read again. Both buffers must be allocated at the same loop depth, and have rows of equal shape
    if they have several physical axes.
    """
    if not (parent.accesses and child.accesses) or parent.depth != child.depth:
        return False
    (last, loops), (first, _) = parent.accesses[-1], child.accesses[0]
    if last is not first or not isinstance(last, BufferStore):
        return False
    if last.buffer.data is not child.buffer.data:
        return False
    if parent.views or child.views or parent.buffer.dtype.bytes != child.buffer.dtype.bytes:
        return False
    is_flat = len(parent.buffer.shape) == len(child.buffer.shape) == 1
    if not is_flat and parent.buffer.shape[1:] != child.buffer.shape[1:]:
        return False
    nest = loops[0] if loops else None
    if any(enclosing[:1] == (nest,) for _, enclosing in parent.accesses[:-1]):
        return False
    reads = nodes_of(BufferLoad, last.value)
    reads = [node for node in reads if node.buffer.data in (parent.buffer.data, child.buffer.data)]
    return all(
        node.buffer.data is parent.buffer.data and structural_equal(node.indices, last.indices)
        for node in reads
    ) and _stores_once(last.indices, loops)


def _stores_once(indices: Sequence[Expr], loops: Sequence[For]) -> bool:
    """Return whether indices are injective over loops, each over the loops that it depends on."""
    extents = _max_extents(loops)
    if extents is None:
        return False
    for index in indices:
        used: dict[Expr, int] = {
            var: extents.pop(var) for var in free_variables(index) if var in extents
        }
        if not _is_injective(index, used):
            return False
    return all(extent <= 1 for extent in extents.values())


def _max_extents(loops: Sequence[For]) -> dict[Var, int] | None:
    """Return the maximum extent of each loop, outer loops first; None if an extent is unbounded."""
    ranges: dict[Var, tuple[Expr, Expr]] = {}
    found: dict[Var, int] = {}
    for loop in loops:
        extent = constant_upper_bound(loop.extent, ranges)
        if extent is None:
            return None
        found[loop.loop_var] = extent
        ranges[loop.loop_var] = loop.min, loop.min + loop.extent - 1
    return found


def _is_injective(index: Expr, extents: Mapping[Expr, int]) -> bool:
    """Return whether an index is injective over loops: its terms are mixed-radix digits."""
    lanes = index.dtype.lanes
    if lanes > 1 and not (isinstance(index, Ramp) and is_const(index.stride, 1)):
        return False
    terms = TermTable()
    total = terms.sum_of(cast(INT64, index.base if isinstance(index, Ramp) else index))
    steps: list[tuple[int, int]] = []
    missing = {**extents}
    for expr, step in terms.listed(total):
        if expr in missing:
            steps.append((abs(step), missing.pop(expr)))
        elif any(node in extents for node in walk(expr)):
            return False
    span = lanes
    for step, extent in sorted(steps):
        if extent > 1 and step < span:
            return False
        span = max(span, step * (extent - 1) + span)
    return all(extent <= 1 for extent in missing.values())


def _step(live: LiveRange, memory: Memory) -> int:
    types = (buffer.dtype for buffer in (live.buffer, *live.views))
    return lcm(memory.alignment_bytes, *(dtype.bytes for dtype in types))
