"""Turn realized regions into allocations of their own size."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from tecomp.ir.algebra.simplify import Ranges, constant_upper_bound, simplify
from tecomp.ir.language.expr import BinOp, BufferLoad, Expr, Var, binary, index_value, is_const
from tecomp.ir.language.stmt import (
    Allocate,
    Buffer,
    BufferRealize,
    BufferStore,
    Extent,
    PrimFunc,
    Range,
    Stmt,
)
from tecomp.ir.traversal.rewrite import bottom_up, children, walk
from tecomp.ir.traversal.tasks import Task, run
from tecomp.lowering.storage.scopes import rewrite_statements, size_ranges

Indices: TypeAlias = "tuple[Expr, ...]"


def lower_storage(func: PrimFunc, *, is_simple: bool = False) -> PrimFunc:
    """Replace every `BufferRealize` by an `Allocate` of just its region.

    Indices count from the start of the region. An extent that has a constant bound, such as
    `min(8, n - 8*io)`, is allocated at its bound, so that its memory has a size known at
    compile time. `aligns` become strides: that of the axis is `offset` modulo `factor`. Scope
    and separators stay. Views of the memory (`DeclBuffer`) keep the shape they declare.

    Args:
        func: any function.
        is_simple: whether it is as `simplify` leaves it; other memory is then left alone.
    """
    if not any(isinstance(node, BufferRealize) for node in walk(func.body)):
        return func
    body = run(_lowered(func.body, {}, _local_buffers(func)))
    return simplify(replace(func, body=body), since=func if is_simple else None)


def _local_buffers(func: PrimFunc) -> dict[int, Buffer]:
    """The buffers that have just the regions of realizations, by their ids."""
    found: dict[int, Buffer] = {}

    def rule(node: Stmt, ranges: Ranges) -> None:
        if isinstance(node, BufferRealize):
            found[id(node)] = local_buffer(node, ranges)

    rewrite_statements(func.body, rule, size_ranges(func))
    return found


def _lowered(root: Stmt, around: Mapping[Var, _Region], local: Mapping[int, Buffer]) -> Task:
    """A task that gives `root` with allocations, and with accesses to regions `around` it moved.

    What is inside of a region is rewritten by itself: memory may be realized in several places.
    """
    allocated: dict[int, Stmt] = {}
    for node in [*walk(root, parts=_outside_of_regions)]:
        if isinstance(node, BufferRealize):
            buffer = local[id(node)]
            region = _Region(node.buffer, buffer, from_start(node.bounds))
            body = yield _lowered(node.body, {**around, node.buffer.data: region}, local)
            allocated[id(node)] = Allocate(buffer, body)

    def rule(node: Any) -> Any:
        if isinstance(node, BufferRealize):
            return allocated[id(node)]
        if isinstance(node, BufferLoad | BufferStore) and node.buffer.data in around:
            return around[node.buffer.data].moved(node)
        return None

    return bottom_up(root, rule, _outside_of_regions)


def _outside_of_regions(node: Any) -> Sequence[Any]:
    return () if isinstance(node, BufferRealize) else children(node)


@dataclass(frozen=True, slots=True)
class _Region:
    """A part of a buffer that has a buffer of its own, with its elements at `place`."""

    whole: Buffer
    local: Buffer
    place: Callable[[Indices], Indices]

    def moved(self, node: BufferLoad | BufferStore) -> BufferLoad | BufferStore | None:
        """An access to the whole as one to the part; None where it is to a view of the memory."""
        if node.buffer is not self.whole and node.buffer != self.whole:
            return None
        if isinstance(node, BufferLoad):
            return BufferLoad(self.local, self.place(node.indices), node.predicate)
        return BufferStore(self.local, node.value, self.place(node.indices), node.predicate)


def local_buffer(node: BufferRealize, ranges: Ranges) -> Buffer:
    """The buffer that has just the region of `node`."""
    shape = tuple(_extent(part, ranges) for part in node.bounds)
    return replace(node.buffer, shape=shape, strides=_strides(node, shape))


def _extent(part: Range, ranges: Ranges) -> Extent:
    """A constant that is large enough, or else the extent itself; never less than 0."""
    most = constant_upper_bound(part.extent, ranges)
    if most is not None:
        return max(most, 0)
    return binary(BinOp.MAX, part.extent, 0)


def from_start(bounds: Sequence[Range]) -> Callable[[Indices], Indices]:
    """Indices of a whole buffer, counted from where a region of it begins."""

    def place(indices: Indices) -> Indices:
        return tuple(
            index if is_const(part.min, 0) else binary(BinOp.SUB, index, part.min)
            for index, part in zip(indices, bounds, strict=True)
        )

    return place


def rebased(
    body: Stmt, whole: Buffer, local: Buffer, place: Callable[[Indices], Indices]
) -> Stmt:
    """`body` with accesses to `whole` made to `local`, at `place` of their indices."""
    region = _Region(whole, local, place)

    def rule(node: Any) -> Any:
        is_access = isinstance(node, BufferLoad | BufferStore) and node.buffer.data is whole.data
        return region.moved(node) if is_access else None

    return bottom_up(body, rule)


def _strides(node: BufferRealize, shape: tuple[Extent, ...]) -> tuple[Extent, ...] | None:
    """Distances between elements along each axis; None where they are packed densely.

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
                # The least number that is not less and leaves `offset` modulo `factor`.
                dense = _plus(dense, _modulo(_minus(offset, dense), factor))
        strides.append(dense)
        dense = _times(dense, shape[axis])
    return tuple(reversed(strides))


def _plus(a: Extent, b: Extent) -> Extent:
    return a + b if isinstance(a, int) and isinstance(b, int) else index_value(a) + b


def _minus(a: Extent, b: Extent) -> Extent:
    return a - b if isinstance(a, int) and isinstance(b, int) else index_value(a) - b


def _times(a: Extent, b: Extent) -> Extent:
    return a * b if isinstance(a, int) and isinstance(b, int) else index_value(a) * b


def _modulo(a: Extent, b: int) -> Extent:
    return a % b
