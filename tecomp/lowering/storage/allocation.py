"""Passes `lower_storage` and `place_buffers`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import lcm
from typing import Any, TypeAlias

from tecomp.errors import LowerError
from tecomp.ir.arith.simplify import Ranges, constant_upper_bound, simplify
from tecomp.ir.nodes.dtype import BOOL, INT64, DType
from tecomp.ir.nodes.expr import (
    Binary,
    BinOp,
    Broadcast,
    BufferLoad,
    Call,
    CmpOp,
    Compare,
    Const,
    Expr,
    Ramp,
    Select,
    Var,
    binary,
    cast,
    index_value,
    is_const,
)
from tecomp.ir.nodes.stmt import (
    Allocate,
    Buffer,
    BufferRealize,
    BufferStore,
    DeclBuffer,
    Extent,
    For,
    ForKind,
    IfThenElse,
    PrimFunc,
    Range,
    Stmt,
    seq,
)
from tecomp.ir.traversal.rewrite import (
    Task,
    bottom_up,
    children,
    contains,
    nodes_of,
    run_trampoline,
    walk,
)
from tecomp.lowering.storage.buffer_rewrite import rewrite_statements, size_ranges
from tecomp.lowering.storage.memory_planner import Arena, ArenaSlot

Indices: TypeAlias = "tuple[Expr, ...]"


def lower_storage(func: PrimFunc, *, is_simple: bool = False) -> PrimFunc:
    """Replace every `BufferRealize` by an `Allocate` of its region.

    Indices become relative to the start of the region. An extent with a constant upper bound, such
    as `min(8, n - 8*io)`, is allocated at its bound, so that the size is known at compile time.
    `aligns` become strides: the stride of the axis is `offset` modulo `factor`. Scope and axis
    separators are kept. Views of the memory (`DeclBuffer`) keep their declared shape, and are also
    relative to the start of the region.

    Args:
        func: Function to rewrite.
        is_simple: Whether `func` is already simplified; other parts then stay as they are.

    Raises:
        LowerError: If the allocation of a memory with a view has longer rows than the region.
    """
    if not contains(BufferRealize, func.body):
        return func
    local = _local_buffers(func)
    body = run_trampoline(
        _lower_realizations(func.body, _Around({}, _checked_views(func, local)), local))
    return simplify(replace(func, body=body), since=func if is_simple else None)


def _local_buffers(func: PrimFunc) -> dict[int, Buffer]:
    """Return the local buffers of realized regions, by the id of the realization."""
    found: dict[int, Buffer] = {}

    def rule(node: Stmt, ranges: Ranges) -> None:
        if isinstance(node, BufferRealize):
            found[id(node)] = local_buffer(node, ranges)

    rewrite_statements(func.body, rule, size_ranges(func))
    return found


def _checked_views(func: PrimFunc, local: Mapping[int, Buffer]) -> dict[int, Buffer]:
    """Return the views of a function by id, and check that regions are allocated densely."""
    views = [n.buffer for n in nodes_of(DeclBuffer, func.body)]
    for node in walk(func.body) if views else ():
        if isinstance(node, BufferRealize) and not _has_rows_of(local[id(node)], node):
            for view in views:
                if view.data is node.buffer.data:
                    raise LowerError(
                        "lower_storage: `{view}` is a view of `{buffer}`, whose rows are longer in "
                        "memory than in the realized region; omit aligns and use bounds with "
                        "constant extents, or access it without the view",
                        view=view.name, buffer=node.buffer.name,
                    )
    return {id(view): view for view in views}


def _has_rows_of(local: Buffer, node: BufferRealize) -> bool:
    """Return whether a local buffer is dense: no strides, and exact inner extents."""
    return local.strides is None and all(
        not isinstance(extent, int) or is_const(part.extent, extent)
        for extent, part in zip(local.shape[1:], node.bounds[1:], strict=True)
    )


@dataclass(frozen=True, slots=True)
class _Around:
    """Regions around a statement by data variable, and views of the function by id."""

    regions: Mapping[Var, _Region]
    views: Mapping[int, Buffer]

    def region(self, node: Any) -> _Region | None:
        """Return the region whose whole buffer a node accesses, or None."""
        if isinstance(node, BufferLoad | BufferStore) and id(node.buffer) not in self.views:
            return self.regions.get(node.buffer.data)
        return None


def _lower_realizations(root: Stmt, enclosing: _Around, local: Mapping[int, Buffer]) -> Task:
    """Return a task that replaces realizations in `root` by allocations and rebases accesses.

    The body of each region is rewritten separately, because a memory may be realized repeatedly.
    """
    allocated: dict[int, Stmt] = {}
    for node in [*walk(root, parts=_outside_of_regions)]:
        if isinstance(node, BufferRealize):
            buffer = local[id(node)]
            region = _Region(node.buffer, buffer, from_start(node.bounds))
            regions = {**enclosing.regions, node.buffer.data: region}
            body = yield _lower_realizations(node.body, replace(enclosing, regions=regions), local)
            allocated[id(node)] = Allocate(buffer, body)

    def rule(node: Any) -> Any:
        if isinstance(node, BufferRealize):
            return allocated[id(node)]
        region = enclosing.region(node)
        return None if region is None else region.rebased(node)

    return bottom_up(root, rule, _outside_of_regions)


def _outside_of_regions(node: Any) -> Sequence[Any]:
    return () if isinstance(node, BufferRealize) else children(node)


@dataclass(frozen=True, slots=True)
class _Region:
    """Region of a buffer with its own local buffer; `place` maps the indices."""

    full_buffer: Buffer
    local: Buffer
    place: Callable[[Indices], Indices]

    def rebased(self, node: BufferLoad | BufferStore) -> BufferLoad | BufferStore | None:
        """Rebase an access from the whole buffer to the local buffer; None for a view."""
        if node.buffer is not self.full_buffer and node.buffer != self.full_buffer:
            return None
        if isinstance(node, BufferLoad):
            return BufferLoad(self.local, self.place(node.indices), node.predicate)
        return BufferStore(self.local, node.value, self.place(node.indices), node.predicate)


def local_buffer(node: BufferRealize, ranges: Ranges) -> Buffer:
    """Return a buffer for the region of `node`."""
    shape = tuple([_extent(part, ranges) for part in node.bounds])
    return replace(node.buffer, shape=shape, strides=_strides(node, shape))


def _extent(part: Range, ranges: Ranges) -> Extent:
    """Return the constant upper bound of an extent, or the extent itself; at least 0."""
    upper = constant_upper_bound(part.extent, ranges)
    if upper is not None:
        return max(upper, 0)
    return binary(BinOp.MAX, part.extent, 0)


def from_start(bounds: Sequence[Range]) -> Callable[[Indices], Indices]:
    """Return a function that makes indices relative to the start of a region."""

    def place(indices: Indices) -> Indices:
        return tuple([
            index if is_const(part.min, 0) else binary(BinOp.SUB, index, part.min)
            for index, part in zip(indices, bounds, strict=True)
        ])

    return place


def rebase_accesses(
    body: Stmt, source: Buffer, local: Buffer, remap: Callable[[Indices], Indices]
) -> Stmt:
    """Rebase the accesses in `body` from `source` to `local`, with indices mapped by `remap`.

    Raises:
        LowerError: If `body` has a view of the memory.
    """
    for node in walk(body):
        if isinstance(node, DeclBuffer) and node.buffer.data is source.data:
            raise LowerError(
                "lower: `{buffer}` is a view of `{viewed_buffer}`, which is reused across "
                "iterations; access it without the view, or omit ahead and carried",
                buffer=node.buffer.name, viewed_buffer=source.name,
            )
    region = _Region(source, local, remap)

    def rule(node: Any) -> Any:
        is_access = isinstance(node, BufferLoad | BufferStore) and node.buffer.data is source.data
        return region.rebased(node) if is_access else None

    return bottom_up(body, rule)


def _strides(node: BufferRealize, shape: tuple[Extent, ...]) -> tuple[Extent, ...] | None:
    """Return the strides of each axis; None for a dense buffer.

    Source:
        `storage_align` of TVM: `StorageFlattener` adds the least padding from the inside out.
    """
    if not node.aligns:
        return None
    ends = {*node.buffer.axis_separators, len(shape) - 1}
    strides: list[Extent] = []
    dense: Extent = 1
    for axis in reversed(range(len(shape))):
        if axis in ends:
            dense = 1
        for aligned, factor, offset in node.aligns:
            if aligned == axis:
                # Round up to the next number that is `offset` modulo `factor`.
                dense = _add_extents(dense, _subtract_extents(offset, dense) % factor)
        strides.append(dense)
        dense = _times(dense, shape[axis])
    return tuple(reversed(strides))


def _add_extents(a: Extent, b: Extent) -> Extent:
    return a + b if isinstance(a, int) and isinstance(b, int) else index_value(a) + b


def _subtract_extents(a: Extent, b: Extent) -> Extent:
    return a - b if isinstance(a, int) and isinstance(b, int) else index_value(a) - b


def _times(a: Extent, b: Extent) -> Extent:
    return a * b if isinstance(a, int) and isinstance(b, int) else index_value(a) * b


_PATTERN = 0xA5
UINT8 = DType("uint8")


def place_buffers(func: PrimFunc, arenas: Sequence[Arena], *, guards: bool = False) -> PrimFunc:
    """Allocate the arenas in `func`, and make its buffers views of them.

    A view has one index. The rows of a memory with several physical axes are consecutive, each row
    aligned.

    Args:
        func: Flat function.
        arenas: Result of `plan_arenas` for `func`.
        guards: Whether to put guard bytes before and after each arena. If a guard byte is
            overwritten, the call fails when the region ends. Default: False.
    """
    filled = [arena for arena in arenas if arena.bytes]
    if not filled:
        return func
    work = _Placing(func, guards)
    for arena in filled:
        work.add(arena)
    body = bottom_up(func.body, work.rule)
    for arena_buffer in work.inside.get(None, []):
        body = arena_buffer.allocate_arena(body)
    return replace(func, body=body, sites=tuple(work.sites))


class _Made:
    """Buffer of an arena: `margin` guard bytes, the arena, `margin` guard bytes."""

    def __init__(self, arena: Arena, margin: int, site: int) -> None:
        self.bytes = arena.bytes
        self.margin = margin
        self.site = site
        memory = arena.memory.name
        self.buffer = Buffer(f"{memory}.arena", (self.bytes + 2 * margin,), UINT8, memory)

    def allocate_arena(self, body: Stmt) -> Stmt:
        """Allocate the arena around `body`, with guard stores and checks."""
        if not self.margin:
            return Allocate(self.buffer, body)
        return Allocate(self.buffer, seq(*self._filled(), body, *self._checked()))

    def _filled(self) -> list[Stmt]:
        return [self._margin(start, lambda pos: BufferStore(
            self.buffer, Const(_PATTERN, UINT8), (pos,))) for start in self._starts()]

    def _checked(self) -> list[Stmt]:
        def check(pos: Expr) -> Stmt:
            is_kept = Compare(CmpOp.EQ, BufferLoad(self.buffer, (pos,)), Const(_PATTERN, UINT8))
            offset = binary(BinOp.SUB, pos, index_value(self.margin))
            index = Select(is_kept, index_value(0), offset)
            site = Const(self.site, INT64)
            in_bounds = Call("check_index", (index, index_value(self.bytes), site), BOOL)
            return IfThenElse(in_bounds, seq())

        return [self._margin(start, check) for start in self._starts()]

    def _starts(self) -> tuple[int, int]:
        return 0, self.margin + self.bytes

    def _margin(self, start: int, statement: Any) -> Stmt:
        var = Var("guard", INT64)
        pos = var if start == 0 else binary(BinOp.ADD, var, index_value(start))
        return For(var, index_value(0), index_value(self.margin), ForKind.SERIAL, statement(pos))


class _Placing:
    """Arenas of a function, and the views that replace its buffers."""

    def __init__(self, func: PrimFunc, guards: bool) -> None:
        self.guards = guards
        self.sites = list(func.sites)
        self.inside: dict[Var | None, list[_Made]] = {}
        self._places: dict[Var, tuple[ArenaSlot, _Made]] = {}
        self._views: dict[int, tuple[Buffer, Buffer]] = {}

    def add(self, arena: Arena) -> None:
        """Create the buffer of an arena."""
        steps = (placement.step for placement in arena.placed)
        margin = lcm(arena.memory.alignment_bytes, 64, *steps) if self.guards else 0
        site = len(self.sites)
        if self.guards:
            name = arena.memory.name
            self.sites.append(f"the {arena.bytes} bytes of the arena in memory `{name}`")
        arena_buffer = _Made(arena, margin, site)
        var = arena.loop.loop_var if arena.loop is not None else None
        self.inside.setdefault(var, []).append(arena_buffer)
        for placement in arena.placed:
            self._places[placement.buffer.data] = placement, arena_buffer

    def rule(self, node: Any) -> Any:
        """Rewrite a node to arena views; a rule for `bottom_up`."""
        match node:
            case BufferLoad(buffer, indices, predicate) if buffer.data in self._places:
                return BufferLoad(self._view(buffer), self._moved(buffer, indices), predicate)
            case BufferStore(buffer, value, indices, mask) if buffer.data in self._places:
                return BufferStore(self._view(buffer), value, self._moved(buffer, indices), mask)
            case Allocate(buffer, body) | DeclBuffer(buffer, body) if buffer.data in self._places:
                return DeclBuffer(self._view(buffer), body)
            case For() if node.loop_var in self.inside:
                body = node.body
                for arena_buffer in self.inside[node.loop_var]:
                    body = arena_buffer.allocate_arena(body)
                return replace(node, body=body)
        return None

    def _start(self, buffer: Buffer) -> int:
        """Return the index of the first element in the arena."""
        placement, arena_buffer = self._places[buffer.data]
        return (placement.offset + arena_buffer.margin) // buffer.dtype.bytes

    def _view(self, buffer: Buffer) -> Buffer:
        if id(buffer) not in self._views:
            placement, arena_buffer = self._places[buffer.data]
            shape = (self._start(buffer) + placement.bytes // buffer.dtype.bytes,)
            view = replace(buffer, shape=shape, axis_separators=(), data=arena_buffer.buffer.data)
            self._views[id(buffer)] = buffer, view
        return self._views[id(buffer)][1]

    def _moved(self, buffer: Buffer, indices: tuple[Expr, ...]) -> tuple[Expr, ...]:
        *rows, index = indices
        placement, _ = self._places[buffer.data]
        step = placement.row // buffer.dtype.bytes
        for row, extent in zip(reversed(rows), (1, *reversed(buffer.shape[1:-1])), strict=False):
            assert isinstance(extent, int)
            step *= extent
            index = _advance_index(index, binary(BinOp.MUL, row, step))
        start = self._start(buffer)
        return (_advance_index(index, index_value(start)) if start else index,)


def _advance_index(index: Expr, amount: Expr) -> Expr:
    """Add a scalar `amount` to an index of any lane count."""
    match index:
        case Const():
            return binary(BinOp.ADD, index, amount) if isinstance(amount, Const) else binary(
                BinOp.ADD, amount, index)
        case Ramp(base, stride, lanes):
            return Ramp(_advance_index(base, amount), stride, lanes)
        case Broadcast(value, lanes):
            return Broadcast(_advance_index(value, amount), lanes)
    lanes = index.dtype.lanes
    further = cast(index.dtype.scalar, amount)
    return Binary(BinOp.ADD, index, Broadcast(further, lanes) if lanes > 1 else further)
