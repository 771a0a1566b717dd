"""Arena of programs with symbolic sizes: slots whose sizes are functions of size variables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import accumulate
from types import MappingProxyType

from tecomp.codegen.runtime.runtime_structs import ALIGNMENT
from tecomp.compute.tensor import Tensor
from tecomp.driver.static_shapes import extent_at
from tecomp.graph.memory_plan import ArenaBuffer, ArenaPlan
from tecomp.graph.sizes import symbolic_bytes
from tecomp.ir.arith.extents import round_up
from tecomp.ir.arith.simplify import simplify
from tecomp.ir.nodes.dtype import INT64
from tecomp.ir.nodes.expr import BinOp, Const, Var, binary, index_value
from tecomp.ir.nodes.printer import format_count, identifier
from tecomp.ir.nodes.stmt import Extent
from tecomp.ir.nodes.structural_equality import structural_equal
from tecomp.lowering.storage.memory_planner import LiveInterval, peak_live_bytes


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
            slot = next((k for k in free if _are_equal(slots[k], size)), free[0] if free else -1)
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


def _are_equal(a: Extent, b: Extent) -> bool:
    if isinstance(a, int) or isinstance(b, int):
        return isinstance(a, int) and isinstance(b, int) and a == b
    return structural_equal(a, b)


def _maximum(a: Extent, b: Extent) -> Extent:
    if isinstance(a, int) and isinstance(b, int):
        return max(a, b)
    if _are_equal(a, b):
        return a
    largest = simplify(binary(BinOp.MAX, index_value(a), index_value(b)))
    return int(largest.value) if isinstance(largest, Const) else largest


def _value(extent: Extent, sizes: Mapping[str, int]) -> int:
    value = extent_at(extent, sizes)
    assert value is not None, f"{extent} has no value for {sizes}"
    return value
