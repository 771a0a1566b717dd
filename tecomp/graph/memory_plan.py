"""Memory plans: buffers of programs with constant and symbolic sizes in an arena."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
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
from tecomp.driver.static_shapes import extent_at
from tecomp.errors import CapacityError
from tecomp.graph.dag import ProgramGraph
from tecomp.graph.fusion import FusionGroup, group_inputs
from tecomp.graph.sizes import are_equal, elements_of, symbolic_bytes
from tecomp.graph.value_placement import ResidentValue, Spill
from tecomp.ir.arith.extents import constant_shape, round_up
from tecomp.ir.arith.simplify import simplify
from tecomp.ir.nodes.dtype import INT64
from tecomp.ir.nodes.expr import BinOp, BufferLoad, Const, Var, binary, index_value
from tecomp.ir.nodes.printer import format_count, identifier
from tecomp.ir.nodes.stmt import Buffer, Extent, PrimFunc
from tecomp.ir.nodes.structural_equality import structural_equal
from tecomp.ir.traversal.rewrite import walk
from tecomp.lowering.pipeline import LoweringResult
from tecomp.lowering.storage.buffer_rewrite import map_buffers
from tecomp.lowering.storage.memory_planner import LiveInterval, assign_offsets, peak_live_bytes
from tecomp.machine.components import Memory


def in_place_candidates(
    group: FusionGroup, number: int, lifetimes: Mapping[Tensor, tuple[int, int]]
) -> tuple[int, ...]:
    """Return the positions of the operands of a group that its result may overwrite.

    Such an operand has the same dtype and constant shape, is needed by no later kernel, and is read
    at the index that is computed. Whether the schedule preserves this order is checked separately.

    Args:
        group: Operations of a kernel.
        number: Number of the kernel among the kernels of a program call.
        lifetimes: First and last kernel that needs each value between kernels.
    """
    results = group.result.outputs
    if len(results) != 1 or results[0] not in lifetimes:
        return ()
    (result,) = results
    shape = constant_shape(result.shape)
    if shape is None:
        return ()
    return tuple(
        k for k, x in enumerate(group_inputs(group))
        if x in lifetimes and lifetimes[x][1] == number and x.dtype == result.dtype
        and constant_shape(x.shape) == shape and _is_read_in_place(group, x)
    )


def _is_read_in_place(group: FusionGroup, x: Tensor) -> bool:
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


def reuse_input_buffer(lowered: LoweringResult, position: int) -> LoweringResult | None:
    """Rewrite a kernel so that its result overwrites an operand, which is no longer a parameter.

    Args:
        lowered: Kernel after each lowering pass.
        position: Position of the parameter to overwrite.

    Returns:
        The rewritten kernel; None if an element might be read after it was overwritten.
    """
    func = lowered.final
    flat = lowered.functions["flatten_buffer"]
    old, new = func.params[position], func.params[-1]
    if not (isinstance(old, Buffer) and isinstance(new, Buffer)):
        return None
    # The stores are counted, so sizes must be constant.
    shape = constant_shape(new.shape)
    if shape is None or constant_shape(old.shape) != shape:
        return None
    if not _stores_last(flat, position):
        return None
    body = map_buffers(func.body, lambda buffer: new if buffer.data is old.data else buffer)
    params = tuple(param for k, param in enumerate(func.params) if k != position)
    return LoweringResult(
        {**lowered.functions, "in_place": replace(func, params=params, body=body)})


def _stores_last(func: PrimFunc, position: int) -> bool:
    """Return whether each element of a parameter is read only just before its result is stored."""
    old, new = func.params[position], func.params[-1]
    assert isinstance(old, Buffer)
    assert isinstance(new, Buffer)
    found = sites_of(func, {})
    reads = [site for site in found.sites if site.buffer.data is old.data]
    stores = [site for site in found.sites if site.buffer.data is new.data]
    is_in_order = all(site.direction == "write" for site in stores) and all(
        site.direction == "read" and site.target is not None and site.target.data is new.data
        and structural_equal(site.indices, site.target_indices) for site in reads
    )
    return is_in_order and not found.unknown and _times(stores) == elements_of(new)


def _times(stores: Sequence[Site]) -> int | None:
    """Return the number of stores; None if it depends on data or is too large to count."""
    if any(isinstance(node, BufferLoad) for site in stores for node in walk(*site.indices)):
        return None
    counter = Counter({})
    try:
        return sum(sum(counter.times(site.frames).values()) for site in stores)
    except TooManyIterationsError:
        return None


@dataclass(frozen=True, slots=True)
class ArenaBuffer:
    """A value between kernels.

    Attributes:
        tensor: Tensor.
        bytes: Size in bytes.
        first: Number of the kernel that computes the value.
        last: Number of the last kernel that reads the value.
        offset: Offset in the arena in bytes.
    """

    tensor: Tensor
    bytes: int
    first: int
    last: int
    offset: int


@dataclass(frozen=True, slots=True)
class ArenaPlan(Pictured):
    """Arena of the values between kernels.

    Attributes:
        values: Values, ordered by offset.
        bytes: Size of the arena in bytes.
        lower_bound: Maximum number of bytes that are live simultaneously.
        residents: Values that stay in scratchpads instead of the arena.
        spills: Reasons why other values do not, on targets with scratchpads.
    """

    _drawn_by: ClassVar[str] = "program:draw_memory_plan"

    values: tuple[ArenaBuffer, ...]
    bytes: int
    lower_bound: int
    residents: tuple[ResidentValue, ...] = ()
    spills: tuple[Spill, ...] = ()

    def __repr__(self) -> str:
        return f"<Plan of {self.bytes:_} bytes for {format_count(len(self.values), 'value')}>"

    def live(self, number: int) -> tuple[ArenaBuffer, ...]:
        """Return the values live during a kernel; of an in-place chain only the latest value."""
        # Values with equal offset are ordered by their first kernel.
        active = (value for value in self.values if value.first <= number <= value.last)
        return tuple({value.offset: value for value in active}.values())


def lifetimes_of(
    graph: ProgramGraph, groups: Sequence[FusionGroup]
) -> dict[Tensor, tuple[int, int]]:
    """Return the first and the last kernel that needs each value between kernels."""
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
    reuses: Mapping[Tensor, Tensor] = MappingProxyType({}),
) -> ArenaPlan:
    """Assign arena offsets such that values with overlapping live ranges share no byte.

    Args:
        lifetimes: First and last kernel that needs each value, in order of computation.
        alignment: Alignment of offsets in bytes.
        sizes: Size of each value in bytes.
        reuses: Operand that each in-place result overwrites; it has the same size, and its last use
            is that kernel.
    """
    roots: dict[Tensor, Tensor] = {}
    spans: dict[Tensor, LiveInterval] = {}
    for tensor, (first, last) in lifetimes.items():
        root = roots[tensor] = roots[reuses[tensor]] if tensor in reuses else tensor
        size = round_up(max(sizes[tensor], 1), alignment)
        span = spans.get(root, LiveInterval(size, alignment, first, last))
        spans[root] = replace(span, last=max(span.last, last))
    offsets = dict(zip(spans, assign_offsets([*spans.values()]), strict=True))
    values = [
        ArenaBuffer(tensor, spans[roots[tensor]].bytes, first, last, offsets[roots[tensor]])
        for tensor, (first, last) in lifetimes.items()
    ]
    values.sort(key=lambda value: (value.offset, value.first))
    total = max((value.offset + value.bytes for value in values), default=0)
    return ArenaPlan(tuple(values), total, peak_live_bytes([*spans.values()]))


_MAX_PROPOSED_VALUES = 16
"""Maximum number of values in a proposed remedy; each candidate costs a memory plan."""


@dataclass(frozen=True, slots=True)
class MemoryDemand:
    """Values between kernels, as input to the memory planner.

    Attributes:
        lifetimes: First and last kernel that needs each value.
        sizes: Size of each value in bytes.
        over: Operand that each in-place result overwrites.
    """

    lifetimes: Mapping[Tensor, tuple[int, int]]
    sizes: Mapping[Tensor, int]
    over: Mapping[Tensor, Tensor]

    @property
    def plan(self) -> ArenaPlan:
        """Memory plan of the values."""
        return plan_memory(self.lifetimes, ALIGNMENT, self.sizes, self.over)

    def without(self, removed: Collection[Tensor]) -> MemoryDemand:
        """Return the values without the given ones."""
        out = set(removed)
        remaining = {x: life for x, life in self.lifetimes.items() if x not in out}
        in_place = {x: old for x, old in self.over.items() if x in remaining and old in remaining}
        return replace(self, lifetimes=remaining, over=in_place)

    def with_size(self, tensor: Tensor, size: int) -> MemoryDemand:
        """Return the values with a changed size of one of them, which is no longer in place."""
        in_place = {x: old for x, old in self.over.items() if tensor not in (x, old)}
        return replace(self, sizes={**self.sizes, tensor: size}, over=in_place)


def check_fits(
    name: str, memory: Memory, outside: int, contents: str, demand: MemoryDemand, plan: ArenaPlan
) -> None:
    """Check that a program fits into its memory.

    Args:
        name: Program name.
        memory: Memory of the values.
        outside: Number of bytes that are occupied permanently.
        contents: Description of the permanent contents, such as inputs and outputs.
        demand: Values between kernels.
        plan: Memory plan of these values.

    Raises:
        CapacityError: If the program does not fit. The message names the live values at the peak
            and the smallest sufficient change.
    """
    capacity = memory.usable_bytes
    if capacity is None or outside + plan.bytes <= capacity:
        return
    message = (
        f"compile: {name} needs {outside + plan.bytes} bytes of {memory.name}, which has "
        f"{capacity}: {outside} for {contents}, {plan.bytes} between kernels"
    )
    live = _at_peak(plan)
    if live:
        named = ", ".join(f"{value.tensor.name} ({value.bytes})" for value in live)
        message += f"; {named} {'is' if len(live) == 1 else 'are'} live at the peak"
    raise CapacityError(
        "{message}; {remedy}",
        message=message, remedy=_cure(live, demand, capacity - outside),
    )


def _at_peak(plan: ArenaPlan) -> list[ArenaBuffer]:
    """Return the live values at the memory peak, the largest first."""
    live_sets = [plan.live(number) for number in sorted({value.first for value in plan.values})]
    fullest = max(live_sets, key=lambda live: sum(v.bytes for v in live), default=())
    return sorted(fullest, key=lambda v: -v.bytes)


def _cure(live: Sequence[ArenaBuffer], demand: MemoryDemand, capacity: int) -> str:
    """Describe the smallest change that makes the values fit into `capacity` bytes."""
    if capacity < 0:
        return f"reduce the size of the arguments by {format_count(-capacity, 'byte')}"
    for value in reversed(live):
        if _fits(demand.without([value.tensor]), capacity):
            return (
                f"without {value.tensor.name} it fits: {_smaller(value, demand, capacity)}"
                "recompute it where it is read"
            )
    removed = _fewest(demand, capacity)
    if len(removed) > _MAX_PROPOSED_VALUES:
        return (
            f"more than {_MAX_PROPOSED_VALUES} values would have to be removed: "
            "split the program into several"
        )
    names, shrunk = ", ".join(x.name for x in removed), demand
    for x in removed:
        shrunk = shrunk.with_size(x, 0)
    alternative = "reduce their sizes, or " if _fits(shrunk, capacity) else ""
    return f"without {names} it fits: {alternative}recompute them where they are read"


def _smaller(value: ArenaBuffer, demand: MemoryDemand, capacity: int) -> str:
    """Return the reduction in bytes that suffices for a value, as text; empty if none does."""
    size = demand.sizes[value.tensor]
    low, high = 1, size
    if not _fits(demand.with_size(value.tensor, 0), capacity):
        return ""
    while low < high:
        middle = (low + high) // 2
        if _fits(demand.with_size(value.tensor, size - middle), capacity):
            high = middle
        else:
            low = middle + 1
    return f"reduce its size by {format_count(high, 'byte')}, or "


def _fewest(demand: MemoryDemand, capacity: int) -> list[Tensor]:
    """Return a minimal set of values without which the others fit, the largest of each peak.

    If there are too many to name, return the first `_MAX_PROPOSED_VALUES + 1` of them.
    """
    removed: list[Tensor] = []
    while not _fits(remaining := demand.without(removed), capacity):
        if len(removed) > _MAX_PROPOSED_VALUES:
            return removed
        removed.append(_at_peak(remaining.plan)[0].tensor)
    for x in list(removed):
        others = [other for other in removed if other is not x]
        removed = others if _fits(demand.without(others), capacity) else removed
    return removed


def _fits(demand: MemoryDemand, capacity: int) -> bool:
    return demand.plan.bytes <= capacity


@dataclass(frozen=True, slots=True)
class SlotValue:
    """A value between kernels.

    Attributes:
        tensor: Tensor.
        bytes: Size in bytes.
        first: Number of the kernel that computes the value.
        last: Number of the last kernel that reads the value.
        slot: Number of the slot in the arena.
    """

    tensor: Tensor
    bytes: Extent
    first: int
    last: int
    slot: int


@dataclass(frozen=True, slots=True)
class SymbolicArenaPlan:
    """Arena whose consecutive slots have sizes that are evaluated in each call.

    Attributes:
        values: Values, in order of computation.
        slots: Size of each slot in bytes, in int64 arithmetic; multiples of the alignment.
        variables: int64 variable of each size variable.
    """

    values: tuple[SlotValue, ...]
    slots: tuple[Extent, ...]
    variables: Mapping[Var, Var]

    def __repr__(self) -> str:
        values, slots = (format_count(len(x), name) for x, name in (
            (self.values, "value"), (self.slots, "slot")))
        return f"<Plan of {values} in {slots}>"

    def at(self, sizes: Mapping[str, int]) -> ArenaPlan:
        """Return the plan for the given values of all size variables.

        >>> from tecomp import te
        >>> n = te.var("n")
        >>> plan = plan_symbolic_memory({te.placeholder((n,), name="A"): (0, 1)}, [n])
        >>> plan.at({"n": 100}).bytes
        512
        """
        slots = [_value(slot, sizes) for slot in self.slots]
        offsets = [0, *accumulate(slots)]
        buffers = tuple(
            ArenaBuffer(
                value.tensor, round_up(max(_value(value.bytes, sizes), 1), ALIGNMENT), value.first,
                value.last, offsets[value.slot],
            )
            for value in sorted(self.values, key=lambda value: (value.slot, value.first))
        )
        live = [LiveInterval(x.bytes, ALIGNMENT, x.first, x.last) for x in buffers]
        return ArenaPlan(buffers, offsets[-1], peak_live_bytes(live))


def plan_symbolic_memory(
    lifetimes: Mapping[Tensor, tuple[int, int]], sizes: Iterable[Var],
    reuses: Mapping[Tensor, Tensor] = MappingProxyType({}),
) -> SymbolicArenaPlan:
    """Assign slots such that values with overlapping live ranges share no slot.

    A value takes a free slot, preferably of a value of equal size; the slot has the size of its
    largest value for any sizes, so reuse never increases the arena.

    Args:
        lifetimes: First and last kernel that needs each value, in order of computation.
        sizes: Size variables.
        reuses: Operand that each in-place result overwrites.
    """
    variables = {var: Var(identifier(var.name), INT64, bounds=var.bounds) for var in sizes}
    ends: list[int] = []
    slots: list[Extent] = []
    number: dict[Tensor, int] = {}
    values: list[SlotValue] = []
    for x, (first, last) in lifetimes.items():
        required = symbolic_bytes(x, variables)
        size = _align_size(required)
        if x in reuses:
            slot = number[reuses[x]]
        else:
            free = [k for k, end in enumerate(ends) if end < first]
            slot = next((k for k in free if are_equal([slots[k]], [size])), free[0] if free else -1)
        if slot < 0:
            slot = len(slots)
            slots.append(size)
            ends.append(last)
        slots[slot] = _maximum(slots[slot], size)
        ends[slot], number[x] = max(ends[slot], last), slot
        values.append(SlotValue(x, required, first, last, slot))
    return SymbolicArenaPlan(tuple(values), tuple(slots), variables)


def _align_size(size: Extent) -> Extent:
    if isinstance(size, int):
        return round_up(max(size, 1), ALIGNMENT)
    blocks = binary(BinOp.FLOORDIV, size + (ALIGNMENT - 1), index_value(ALIGNMENT))
    # An empty value needs an address too, and the arena must not be empty.
    blocks = binary(BinOp.MAX, blocks, index_value(1))
    return simplify(binary(BinOp.MUL, blocks, index_value(ALIGNMENT)))


def _maximum(a: Extent, b: Extent) -> Extent:
    if isinstance(a, int) and isinstance(b, int):
        return max(a, b)
    if are_equal([a], [b]):
        return a
    largest = simplify(binary(BinOp.MAX, index_value(a), index_value(b)))
    return int(largest.value) if isinstance(largest, Const) else largest


def _value(extent: Extent, sizes: Mapping[str, int]) -> int:
    value = extent_at(extent, sizes)
    assert value is not None, f"{extent} has no value for {sizes}"
    return value
