"""Plan the buffers between kernels; in-place results; capacity errors."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import ClassVar

from tecomp.codegen.runtime.runtime_structs import ALIGNMENT
from tecomp.compute.access_relations import accesses
from tecomp.compute.extern import ExternOp
from tecomp.compute.scan import ScanOp
from tecomp.compute.tensor import Tensor
from tecomp.cost_model.access_sites import Site, sites_of
from tecomp.cost_model.iteration_counting import Counter, TooManyIterationsError
from tecomp.drawing.drawable import Pictured
from tecomp.errors import CapacityError
from tecomp.graph.dag import Graph
from tecomp.graph.fusion import Group, border_of
from tecomp.graph.sizes import elements_of
from tecomp.graph.value_placement import Resident, Spill
from tecomp.ir.arith.extents import round_up
from tecomp.ir.nodes.expr import BufferLoad
from tecomp.ir.nodes.printer import counted
from tecomp.ir.nodes.stmt import Buffer, PrimFunc
from tecomp.ir.nodes.structural_equality import same
from tecomp.ir.traversal.rewrite import walk
from tecomp.lowering.pipeline import Lowered
from tecomp.lowering.storage.buffer_rewrite import map_buffers
from tecomp.lowering.storage.memory_planner import Span, most_at_once, places_of
from tecomp.machine.components import Memory


def candidates(
    group: Group, number: int, lifetimes: Mapping[Tensor, tuple[int, int]]
) -> tuple[int, ...]:
    """The positions, among what a group reads, of what its result may be written over.

    That is what no later kernel needs, of the same size, which is read where an element is
    computed. Whether a schedule keeps it so is another question.

    Args:
        group: the operations of a kernel.
        number: of the kernel, among those that run in each call.
        lifetimes: of each value between kernels the first and the last kernel that needs it.
    """
    results = group.result.outputs
    if len(results) != 1 or results[0] not in lifetimes:
        return ()
    (result,) = results
    return tuple(
        k for k, x in enumerate(border_of(group))
        if x in lifetimes and lifetimes[x][1] == number and x.dtype == result.dtype
        and x.shape == result.shape and _is_read_in_place(group, x)
    )


def _is_read_in_place(group: Group, x: Tensor) -> bool:
    readers = [op for op in group.operations if x in op.input_tensors]
    return all(
        not isinstance(op, ExternOp | ScanOp) and op.num_outputs == 1 and not op.reduce_axis
        and all(
            len(read.axes) == len(op.axis)
            and all(a is b for a, b in zip(read.axes, op.axis, strict=True))
            for read in accesses(op.output(0)).reads if read.tensor == x
        )
        for op in readers
    )


def written_over(lowered: Lowered, position: int) -> Lowered | None:
    """A kernel that writes its last parameter over another one, which is no parameter any more.

    Args:
        lowered: the kernel after each pass.
        position: of the parameter that is written over.

    Returns:
        The kernel; None if an element may be read when it was stored already.
    """
    func = lowered.final
    flat = lowered.functions["flatten_buffer"]
    old, new = func.params[position], func.params[-1]
    if not (isinstance(old, Buffer) and isinstance(new, Buffer)) or old.shape != new.shape:
        return None
    if not _stores_last(flat, position):
        return None
    body = map_buffers(func.body, lambda buffer: new if buffer.data is old.data else buffer)
    params = tuple(param for k, param in enumerate(func.params) if k != position)
    return Lowered({**lowered.functions, "in_place": replace(func, params=params, body=body)})


def _stores_last(func: PrimFunc, position: int) -> bool:
    """Whether each element of a parameter is read just before it is stored in the last one."""
    old, new = func.params[position], func.params[-1]
    assert isinstance(old, Buffer)
    assert isinstance(new, Buffer)
    found = sites_of(func, {})
    reads = [site for site in found.sites if site.buffer.data is old.data]
    stores = [site for site in found.sites if site.buffer.data is new.data]
    is_in_order = all(site.direction == "write" for site in stores) and all(
        site.direction == "read" and site.target is not None and site.target.data is new.data
        and same(site.indices, site.target_indices) for site in reads
    )
    return is_in_order and not found.unknown and _times(stores) == elements_of(new)


def _times(stores: Sequence[Site]) -> int | None:
    """How often elements are stored; None if that depends on data, or is too much to count."""
    if any(isinstance(node, BufferLoad) for site in stores for node in walk(*site.indices)):
        return None
    counter = Counter({})
    try:
        return sum(sum(counter.times(site.frames).values()) for site in stores)
    except TooManyIterationsError:
        return None


@dataclass(frozen=True, slots=True)
class Value:
    """A value between kernels.

    Attributes:
        tensor: what it is.
        bytes: that it takes.
        first: number of the kernel that makes it.
        last: number of the last one that reads it.
        offset: its first byte in the arena.
    """

    tensor: Tensor
    bytes: int
    first: int
    last: int
    offset: int


@dataclass(frozen=True, slots=True)
class Plan(Pictured):
    """An arena for all values between kernels.

    Attributes:
        values: in the order of their offsets.
        bytes: of the arena.
        lower_bound: bytes of the values that are needed at one time, where these are most.
        residents: values that are not there, but stay in scratchpads.
        spills: why the others do not, on a machine with scratchpads.
    """

    _drawn_by: ClassVar[str] = "program:draw_memory_plan"

    values: tuple[Value, ...]
    bytes: int
    lower_bound: int
    residents: tuple[Resident, ...] = ()
    spills: tuple[Spill, ...] = ()

    def __repr__(self) -> str:
        return f"<Plan of {self.bytes:_} bytes for {counted(len(self.values), 'value')}>"

    def live(self, number: int) -> tuple[Value, ...]:
        """The values that take bytes while a kernel runs: of those in one place the latest."""
        # They are in the order in which they are made where they are in one place.
        now = (value for value in self.values if value.first <= number <= value.last)
        return tuple({value.offset: value for value in now}.values())


def lifetimes_of(graph: Graph, groups: Sequence[Group]) -> dict[Tensor, tuple[int, int]]:
    """The first and the last kernel that needs each value between kernels."""
    number = {op: k for k, group in enumerate(groups) for op in group.operations}
    found: dict[Tensor, tuple[int, int]] = {}
    for k, group in enumerate(groups):
        last = max((number[reader] for reader in graph.readers[group.result]), default=k)
        for tensor in group.result.outputs:
            if tensor not in graph.outputs:
                found[tensor] = (k, last)
    return found


def plan_memory(
    lifetimes: Mapping[Tensor, tuple[int, int]],
    alignment: int,
    sizes: Mapping[Tensor, int],
    over: Mapping[Tensor, Tensor] = MappingProxyType({}),
) -> Plan:
    """Offsets of values, no two of which share a byte while both are needed.

    Args:
        lifetimes: of each value the first and the last kernel that needs it, as they are made.
        alignment: bytes that each offset is a multiple of.
        sizes: bytes of each value.
        over: what values are written over, each of the same size and for the last time needed
            then.
    """
    homes: dict[Tensor, Tensor] = {}
    spans: dict[Tensor, Span] = {}
    for tensor, (first, last) in lifetimes.items():
        home = homes[tensor] = homes[over[tensor]] if tensor in over else tensor
        size = round_up(max(sizes[tensor], 1), alignment)
        span = spans.get(home, Span(size, alignment, first, last))
        spans[home] = replace(span, last=max(span.last, last))
    places = dict(zip(spans, places_of([*spans.values()]), strict=True))
    values = [
        Value(tensor, spans[homes[tensor]].bytes, first, last, places[homes[tensor]])
        for tensor, (first, last) in lifetimes.items()
    ]
    values.sort(key=lambda value: (value.offset, value.first))
    total = max((value.offset + value.bytes for value in values), default=0)
    return Plan(tuple(values), total, most_at_once([*spans.values()]))


_MOST = 16
"""Values that are looked for and named together: each costs a plan."""


@dataclass(frozen=True, slots=True)
class Needed:
    """The values between kernels.

    Attributes:
        lifetimes: of each the first and the last kernel that needs it.
        sizes: bytes of each.
        over: what values are written over.
    """

    lifetimes: Mapping[Tensor, tuple[int, int]]
    sizes: Mapping[Tensor, int]
    over: Mapping[Tensor, Tensor]

    @property
    def plan(self) -> Plan:
        """Where they are."""
        return plan_memory(self.lifetimes, ALIGNMENT, self.sizes, self.over)

    def without(self, gone: Collection[Tensor]) -> Needed:
        """The others alone."""
        out = set(gone)
        left = {x: life for x, life in self.lifetimes.items() if x not in out}
        kept = {x: old for x, old in self.over.items() if x in left and old in left}
        return replace(self, lifetimes=left, over=kept)

    def with_size(self, tensor: Tensor, size: int) -> Needed:
        """The same values with another size of one, which has a place of its own then."""
        kept = {x: old for x, old in self.over.items() if tensor not in (x, old)}
        return replace(self, sizes={**self.sizes, tensor: size}, over=kept)


def check_fits(
    name: str, memory: Memory, outside: int, what: str, needed: Needed, plan: Plan
) -> None:
    """Refuse a program whose values take more than there is.

    Args:
        name: of the program.
        memory: where all of them are.
        outside: bytes of what is there all the time.
        what: what that is, such as inputs and outputs.
        needed: the values between kernels.
        plan: where these are.

    Raises:
        CapacityError: names what is needed where most is, and the least that has to change.
    """
    capacity = memory.usable_bytes
    if capacity is None or outside + plan.bytes <= capacity:
        return
    message = (
        f"compile: {name} takes {outside + plan.bytes} bytes of {memory.name}, which has "
        f"{capacity}: {outside} for {what}, {plan.bytes} between kernels"
    )
    live = _at_peak(plan)
    if live:
        named = ", ".join(f"{value.tensor.name} ({value.bytes})" for value in live)
        message += f", where {named} {'is' if len(live) == 1 else 'are'} needed at one time"
    raise CapacityError(f"{message}; {_cure(live, needed, capacity - outside)}")


def _at_peak(plan: Plan) -> list[Value]:
    """The values that are needed together where these are most, the largest first."""
    sets = [plan.live(now) for now in sorted({value.first for value in plan.values})]
    fullest = max(sets, key=lambda live: sum(v.bytes for v in live), default=())
    return sorted(fullest, key=lambda v: -v.bytes)


def _cure(live: Sequence[Value], needed: Needed, room: int) -> str:
    """The smallest change that makes the values fit into some bytes."""
    if room < 0:
        return f"make what is passed smaller by {counted(-room, 'byte')}"
    for value in reversed(live):
        if _fits(needed.without([value.tensor]), room):
            return (
                f"without {value.tensor.name} it fits: {_smaller(value, needed, room)}compute it "
                "again where it is read"
            )
    gone = _fewest(needed, room)
    if len(gone) > _MOST:
        return f"more than {_MOST} values would have to go: cut the program in several"
    names, small = ", ".join(x.name for x in gone), needed
    for x in gone:
        small = small.with_size(x, 0)
    how = "make them smaller, or " if _fits(small, room) else ""
    return f"without {names} it fits: {how}compute them again where they are read"


def _smaller(value: Value, needed: Needed, room: int) -> str:
    """By how many bytes a value has to be smaller, if that is enough."""
    size = needed.sizes[value.tensor]
    least, most = 1, size
    if not _fits(needed.with_size(value.tensor, 0), room):
        return ""
    while least < most:
        middle = (least + most) // 2
        if _fits(needed.with_size(value.tensor, size - middle), room):
            most = middle
        else:
            least = middle + 1
    return f"make it smaller by {counted(most, 'byte')}, or "


def _fewest(needed: Needed, room: int) -> list[Tensor]:
    """Values, none of which can stay, without which the others fit: the largest of each peak.

    If there are too many to name, the first of them, one too many.
    """
    gone: list[Tensor] = []
    while not _fits(left := needed.without(gone), room):
        if len(gone) > _MOST:
            return gone
        gone.append(_at_peak(left.plan)[0].tensor)
    for x in list(gone):
        others = [each for each in gone if each is not x]
        gone = others if _fits(needed.without(others), room) else gone
    return gone


def _fits(needed: Needed, room: int) -> bool:
    return needed.plan.bytes <= room
