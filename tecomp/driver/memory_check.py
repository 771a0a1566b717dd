"""Check memory capacities and the core grid of the target, and place buffers in memories."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from math import prod
from typing import TYPE_CHECKING, TypeAlias

from tecomp.driver.advice import suggest_smaller_tile
from tecomp.driver.static_shapes import in_numbers
from tecomp.errors import CapacityError, TargetError
from tecomp.ir.nodes.expr import BufferLoad, Var
from tecomp.ir.nodes.stmt import Allocate, Buffer, BufferStore, Extent, For, PrimFunc, Stmt
from tecomp.ir.traversal.rewrite import statements_in, walk
from tecomp.lowering.pipeline import LoweringResult
from tecomp.lowering.storage.allocation import place_buffers
from tecomp.lowering.storage.buffer_rewrite import rename_duplicates
from tecomp.lowering.storage.memory_planner import Arena, bytes_of, is_sized, plan_arenas
from tecomp.machine.components import Link, Memory
from tecomp.machine.descriptor import Target
from tecomp.poly.accesses.access_conflicts import (
    CoreAccess,
    CoreSharing,
    find_shared_element,
    spans,
)
from tecomp.poly.sets.isl_context import isl_work
from tecomp.poly.sets.to_isl import NotAffine
from tecomp.scheduling.schedule import Schedule
from tecomp.scheduling.state import ComputedAt, ScheduleState, StageState
from tecomp.scheduling.threads import is_grid_axis

if TYPE_CHECKING:
    from tecomp.cost_model.interconnect import BufferUses


def check_grid(state: ScheduleState, target: Target) -> None:
    """Raise if a loop is bound to a grid axis that does not exist, is too short or is in use.

    Raises:
        TargetError: If the axis does not exist, has fewer cores than the loop has iterations, or an
            enclosing loop is bound to the axis.
    """
    for stage in state:
        outer_tags = _thread_tags_around(stage, state)
        for leaf, tag in stage.threads.items():
            if not is_grid_axis(tag):
                continue
            loop = f"s[{stage.name}].bind({leaf.name})"
            if tag in outer_tags:
                raise TargetError(
                    "{loop}: this loop is inside {outer_loop}, which is bound to the same core "
                    "axis `{tag}`; bind only one of them, or bind them to two axes",
                    kind="cores", loop=loop, outer_loop=outer_tags[tag], tag=tag,
                )
            target.check_axis(tag, leaf.extent if isinstance(leaf.extent, int) else None, loop)


def _thread_tags_around(stage: StageState, state: ScheduleState) -> dict[str, str]:
    """Return the thread tags of the consumer loops around a stage, with text for each loop."""
    found: dict[str, str] = {}
    while isinstance(attach := stage.attach, ComputedAt):
        stage = state.stage(attach.stage)
        for leaf in stage.leaves:
            if leaf in stage.threads:
                found.setdefault(stage.threads[leaf], f"loop {leaf.name} of {stage.name}")
            if leaf is attach.axis:
                break
    return found


Shape: TypeAlias = tuple[Extent, ...]
Known: TypeAlias = "Callable[[PrimFunc], PrimFunc]"


@dataclass(frozen=True, slots=True)
class ResidentBuffer:
    """Buffer that occupies a memory for the whole run.

    Attributes:
        buffer: Argument, or buffer that is distributed over the memories of all cores.
        memory: Memory of the buffer.
        bytes: Bytes of the buffer in one instance of the memory.
    """

    buffer: Buffer
    memory: Memory
    bytes: int


@dataclass(frozen=True, slots=True)
class MemoryPlan:
    """Buffers in the memories of a target.

    Attributes:
        residents: Buffers that occupy a memory for the whole run.
        arenas: Arenas of buffers with limited live ranges.
        func: Function to which the arenas belong: the result of the previous pass.
    """

    residents: tuple[ResidentBuffer, ...]
    arenas: tuple[Arena, ...]
    func: PrimFunc

    def peak(self, name: str) -> int:
        """Return the peak usage of a memory in bytes."""
        fixed = sum(resident.bytes for resident in self.residents if resident.memory.name == name)
        return fixed + max((a.peak for a in self.arenas if a.memory.name == name), default=0)


def place_in_memories(
    schedule: Schedule, args: Sequence[object], lowered: LoweringResult, target: Target, *,
    guards: bool
) -> LoweringResult:
    """Add a pass that places buffers, if the target has memories of limited capacity.

    Raises:
        TargetError: If the target does not have a memory, cores share data in a memory that belongs
            to one core, or a core cannot address the elements of a buffer that it uses.
        CapacityError: If the buffers that are live at the same time exceed a memory.
    """
    check_memories(lowered.final, target)
    _check_spans(lowered, target)
    if all(memory.capacity_bytes is None for memory in target.memories.values()):
        return lowered
    memory_plan = plan(lowered, target)
    _check_capacities(schedule, args, lowered, memory_plan, target)
    placed_func = place_buffers(memory_plan.func, memory_plan.arenas, guards=guards)
    return LoweringResult({**lowered.functions, "place_buffers": placed_func})


def check_fits(
    schedule: Schedule,
    args: Sequence[object],
    lowered: LoweringResult,
    target: Target,
    sizes: Mapping[str, int],
) -> None:
    """Raise if a program exceeds a memory for given sizes, by name.

    Raises:
        CapacityError: If the peak usage exceeds the capacity of a memory.
        TargetError: If a core cannot address the elements of a buffer that it uses.
    """
    known = partial(in_numbers, sizes=sizes)
    _check_spans(lowered, target, known)
    _check_capacities(
        schedule, args, lowered, plan(lowered, target, known), target, known)


def _check_spans(
    lowered: LoweringResult, target: Target, known: Known = lambda func: func
) -> None:
    """Raise if a core uses elements of a buffer that are too far apart for its addresses.

    The check applies to memories of the chip, and not to copies from and to the host, which cores
    do not execute. Buffers of symbolic sizes are checked by each call.

    Raises:
        TargetError: If the span of a buffer on a core exceeds the limit of the target.
    """
    limit = None if target.limits is None else target.limits.span_bytes
    if limit is None:
        return
    func = known(lowered.functions["lower_storage"])
    buffers = [param for param in func.params if isinstance(param, Buffer)]
    buffers += [node.buffer for node in _allocations(func.body)]
    large = [
        buffer for buffer in buffers
        if _bytes(buffer) > limit and target.memory(buffer.scope).scope == "chip"
    ]
    if not large:  # the usual case, in which the accesses are not analyzed
        return
    from tecomp.cost_model.access_sites import sites_of
    from tecomp.cost_model.interconnect import uses_by_core_loop

    sites = sites_of(func, {})
    copies = {
        site.statement for site in sites.sites if target.memory(site.buffer.scope).scope == "host"
    }
    by_cores = tuple(site for site in sites.sites if site.statement not in copies)
    uses = uses_by_core_loop(replace(sites, sites=by_cores))
    for buffer in large:
        span = max((_span(buffer, use) for use in uses.get(buffer.data, ())), default=0)
        if span > limit:
            shape = ", ".join(map(str, buffer.shape))
            raise TargetError(
                "{func}: a core of target {target} can address {limit} bytes of a tensor, but "
                "accesses elements of {buffer} within a range of {span} bytes ({scalar}[{shape}] "
                "in `{scope}`); bind a loop along its outermost axis in memory to more cores, or "
                "compute the result as several smaller tensors",
                kind="cores", func=func.name, target=target.name, limit=limit, buffer=buffer.name,
                span=span, scalar=buffer.dtype.scalar, shape=shape, scope=buffer.scope,
            )


def _bytes(buffer: Buffer) -> int:
    """Return the bytes of a buffer of constant shape; 0 for a symbolic shape."""
    extents = [extent for extent in buffer.shape if isinstance(extent, int)]
    return prod(extents) * buffer.dtype.bytes if len(extents) == len(buffer.shape) else 0


def _span(buffer: Buffer, uses: Sequence[CoreAccess]) -> int:
    """Return the bytes of a buffer that a core spans in one loop over cores.

    The span is rounded up to whole indices of the outermost axis that varies, as the hardware
    counts. An index that depends on data may have any value.
    """
    shape = [int(str(extent)) for extent in buffer.shape]
    with isl_work("build", TargetError):
        try:
            widths: Sequence[int] = spans(uses)
        except NotAffine:
            widths = shape
    outer = next((k for k, width in enumerate(widths) if width > 1), len(shape) - 1)
    return widths[outer] * prod(shape[outer + 1 :]) * buffer.dtype.bytes


def is_open(lowered: LoweringResult, target: Target) -> bool:
    """Return whether a memory of limited capacity holds a buffer of symbolic size."""
    func = lowered.functions["flatten_buffer"]
    allocated = (node.buffer for node in _allocations(func.body))
    return any(
        not is_sized(buffer) and target.memory(buffer.scope).capacity_bytes is not None
        for buffer in (*(p for p in func.params if isinstance(p, Buffer)), *allocated)
    )


def check_memories(func: PrimFunc, target: Target) -> None:
    """Raise if a buffer is in a memory that the target does not have, or has an unsupported rank.

    Raises:
        TargetError: If a buffer is invalid; the message names the buffer, the memory and the rank.
    """
    allocated = (node.buffer for node in _allocations(func.body))
    for buffer in (*(param for param in func.params if isinstance(param, Buffer)), *allocated):
        # Capacity is checked later, for all buffers that are live together and per core.
        with suppress(CapacityError):
            target.check_buffer(buffer)


def plan(lowered: LoweringResult, target: Target, known: Known = lambda func: func) -> MemoryPlan:
    """Assign buffers to memories, resident or in arenas.

    Args:
        lowered: Function after each pass.
        target: Target with the memories.
        known: Function that substitutes sizes known at the call. Default: no substitution.

    Raises:
        TargetError: If cores share data in a memory that belongs to one core.
    """
    passes = [func for name, func in lowered.functions.items() if name != "place_buffers"]
    func = rename_duplicates(known(passes[-1]))
    flat = known(lowered.functions["flatten_buffer"])
    residents = _residents(flat, target, _shapes(lowered))
    return MemoryPlan(tuple(residents), plan_arenas(func, target.memories), func)


def _shapes(lowered: LoweringResult) -> dict[Var, Shape]:
    """Return the shapes of buffers before flattening, by data variable."""
    shapes = {
        node.buffer.data: node.buffer.shape
        for node in _allocations(lowered.functions["lower_storage"].body)
    }
    shapes.update((p.data, p.shape) for p in lowered.signature.params if isinstance(p, Buffer))
    return shapes


def _residents(
    func: PrimFunc, target: Target, shapes: Mapping[Var, Shape]
) -> Iterator[ResidentBuffer]:
    from tecomp.cost_model.access_sites import sites_of
    from tecomp.cost_model.interconnect import BufferUses, uses_of

    sites = sites_of(func, {})
    uses = uses_of(sites)
    crossing = {crossed.data for crossed in _allocated_around_cores(func)}
    params = [param for param in func.params if isinstance(param, Buffer)]
    for buffer in (*params, *_allocated_around_cores(func)):
        memory = target.memory(buffer.scope)
        if memory.scope == "core" and (buffer.data in crossing or buffer.data in uses):
            buffer_uses = uses.get(buffer.data) or BufferUses()
            shape = shapes.get(buffer.data, buffer.shape)
            part = _part_of_a_core(buffer, shape, memory, buffer_uses, sites.axes, target)
            yield ResidentBuffer(buffer, memory, part)
        elif buffer.data not in crossing and memory.capacity_bytes is not None and is_sized(buffer):
            yield ResidentBuffer(buffer, memory, bytes_of(buffer, memory))


def _part_of_a_core(
    buffer: Buffer, shape: Shape, memory: Memory, uses: BufferUses, axes: Sequence[str],
    target: Target
) -> int:
    """Return the bytes of a buffer on one core, if no other core uses them.

    Raises:
        TargetError: If cores share an element, or the access of cores is not affine.
    """
    where = f"{buffer.name}: memory `{memory.name}` of target {target.name} is private to each core"
    from tecomp.cost_model.interconnect import link_between

    link = link_between(target, memory.name, memory.name)
    if not axes:
        return bytes_of(buffer, memory) if is_sized(buffer) else 0
    remedy = _cure(memory, link, axes)
    with isl_work("build", TargetError):
        try:
            sharing = find_shared_element(uses.local_accesses, uses.copies)
            if link is None and sharing.cores is None and uses.copies:
                sharing = find_shared_element((*uses.local_accesses, *uses.copies))
                remedy = f"the target has no link from `{memory.name}` to `{memory.name}`; {remedy}"
        except NotAffine as error:
            raise TargetError(
                "{where}, but the elements that each core uses depend on `{expr}`, which is not "
                "affine; {remedy}",
                kind="cores", where=where, expr=error.expr, remedy=remedy,
            ) from None
    if sharing.cores is not None:
        raise TargetError(
            "{where}, but {buffer}; {remedy}",
            kind="cores", where=where, buffer=_clash(buffer, shape, sharing, axes), remedy=remedy,
        )
    return prod(sharing.span) * buffer.dtype.bytes


def _cure(memory: Memory, link: Link | None, axes: Sequence[str]) -> str:
    """Return the remedy for an element that several cores use, for the error message."""
    inside = f"or compute it inside the loop bound to {axes[-1]}"
    if link is None:
        return f"copy it to a memory of the chip first, {inside}"
    return (
        f"copy it over link `{link.name}` into `{memory.name}`, in a loop over cores after the one "
        f"that computes it, {inside}"
    )


def _clash(buffer: Buffer, shape: Shape, found: CoreSharing, axes: Sequence[str]) -> str:
    assert found.cores is not None
    element = ", ".join(map(str, _in_shape(found.index, shape)))
    first, second = (
        " ".join(f"{axis}={value}" for axis, value in zip(axes, core, strict=True))
        for core in found.cores
    )
    return f"element [{element}] of {buffer.name} is used by {first} and by {second}"


def _in_shape(index: tuple[int, ...], shape: Shape) -> tuple[int, ...]:
    """Convert a flat index to an index of the original shape, if the shape is constant."""
    extents = [extent for extent in shape if isinstance(extent, int)]
    if len(index) > 1 or len(extents) < len(shape):
        return index
    (flat,) = index
    indices = []
    for extent in reversed(extents):
        flat, remainder = divmod(flat, extent)
        indices.append(remainder)
    return tuple(reversed(indices))


def _allocated_around_cores(func: PrimFunc) -> list[Buffer]:
    """Return the buffers allocated outside of a loop over cores that uses them."""
    found: list[Buffer] = []
    for node in _allocations(func.body):
        nodes = walk(node.body, parts=statements_in)
        inner = (loop for loop in nodes if isinstance(loop, For) and loop.thread)
        if any(
            isinstance(access, BufferLoad | BufferStore) and access.buffer.data is node.buffer.data
            for loop in inner for access in walk(loop)
        ):
            found.append(node.buffer)
    return found


def _allocations(root: Stmt) -> Iterator[Allocate]:
    # Visit statements only: most nodes are expressions, which contain no allocations.
    return (n for n in walk(root, parts=statements_in) if isinstance(n, Allocate))


def _check_capacities(
    schedule: Schedule,
    args: Sequence[object],
    lowered: LoweringResult,
    memory_plan: MemoryPlan,
    target: Target,
    known: Known = lambda func: func,
) -> None:
    for memory in target.memories.values():
        limit = memory.usable_bytes
        required = memory_plan.peak(memory.name)
        if limit is None or required <= limit:
            continue
        per_core = " of each core" if memory.scope == "core" else ""
        named = "; ".join(_largest(lowered, memory_plan, memory))

        def usage(changed: Schedule, lowering: LoweringResult, name: str = memory.name) -> int:
            check_grid(changed.state, target)
            return plan(lowering, target, known).peak(name)

        raise CapacityError(
            "{final}: memory `{memory}`{scope} of target {target} holds {limit} bytes, but {need} "
            "are needed at one time ({named}); {remedy}",
            final=lowered.final.name, memory=memory.name, scope=per_core, target=target.name,
            limit=limit, need=required, named=named,
            remedy=suggest_smaller_tile(schedule, args, lowered.final.name, usage, limit),
        )


def _largest(lowered: LoweringResult, memory_plan: MemoryPlan, memory: Memory) -> list[str]:
    """Return text for the largest three buffers at the peak of a memory, with shape and bytes."""
    arenas = [arena for arena in memory_plan.arenas if arena.memory is memory]
    parts = [(item.buffer, item.bytes) for item in memory_plan.residents if item.memory is memory]
    if arenas:
        fullest = max(arenas, key=lambda arena: arena.peak)
        parts += [(item.buffer, item.bytes) for item in fullest.at_peak]
    shapes = _shapes(lowered)
    texts = []
    for buffer, size in sorted(parts, key=lambda part: -part[1])[:3]:
        shape = ", ".join(map(str, shapes.get(buffer.data, buffer.shape)))
        texts.append(f"{buffer.name}: {buffer.dtype.scalar}[{shape}], {size} bytes")
    return texts
