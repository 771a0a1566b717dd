"""Programs that do not fit into the memory of a machine, refused with what would make them fit."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from tecomp.codegen.runtime.structures import ALIGNMENT
from tecomp.compute.tensor import Tensor
from tecomp.errors import CapacityError
from tecomp.graph.memory import Plan, Value, plan_memory
from tecomp.graph.sizes import bytes_of
from tecomp.ir.language.text import counted
from tecomp.layout.descriptions.layout import Layout
from tecomp.machine.memory import Memory


def check_fits(
    name: str,
    memory: Memory,
    arguments: Sequence[Tensor],
    what: str,
    lifetimes: Mapping[Tensor, tuple[int, int]],
    plan: Plan,
    stored: Mapping[Tensor, Layout],
    over: Mapping[Tensor, Tensor],
) -> None:
    """Refuse a program whose values take more than there is.

    Args:
        name: of the program.
        memory: where all of them are.
        arguments: what is there all the time.
        what: what that is, such as inputs and outputs.
        lifetimes: of each value between kernels the first and the last kernel that needs it.
        plan: where these are.
        stored: the layouts of those that are not in the order of NumPy.
        over: what values are written over.

    Raises:
        CapacityError: names what is needed where most is, and the least that has to go.
    """
    capacity = memory.usable_bytes
    outside = sum(bytes_of(x, stored) for x in arguments)
    if capacity is None or outside + plan.bytes <= capacity:
        return
    message = (
        f"compile: {name} takes {outside + plan.bytes} bytes of {memory.name}, which has "
        f"{capacity}: {outside} for {what}, {plan.bytes} between kernels"
    )
    live = _at_peak(plan)
    if live:
        named = ", ".join(f"{value.tensor.name} ({value.bytes})" for value in live)
        message += f", where {named} are needed at one time"
    room = capacity - outside

    def fits(gone: Sequence[Value]) -> bool:
        left = dict(lifetimes)
        for value in gone:
            del left[value.tensor]
        kept = {x: old for x, old in over.items() if x in left and old in left}
        return plan_memory(left, ALIGNMENT, stored, kept).bytes <= room

    raise CapacityError(f"{message}; {_cure(live, room, fits)}")


def _at_peak(plan: Plan) -> list[Value]:
    """The values that are needed together where these are most, the largest first."""
    sets = [plan.live(now) for now in sorted({value.first for value in plan.values})]
    fullest = max(sets, key=lambda live: sum(v.bytes for v in live), default=())
    return sorted(fullest, key=lambda v: -v.bytes)


def _cure(
    live: Sequence[Value], room: int, fits: Callable[[Sequence[Value]], bool]
) -> str:
    """The fewest bytes of the values at the peak without which the others fit."""
    if room < 0:
        return f"make what is passed smaller by {counted(-room, 'byte')}"
    smallest_first = sorted(live, key=lambda value: value.bytes)
    for value in smallest_first:
        if fits([value]):
            return f"without {value.tensor.name} it fits: make it smaller, or compute it again"
    gone: list[Value] = []
    for value in reversed(smallest_first):
        gone.append(value)
        if fits(gone):
            names = ", ".join(each.tensor.name for each in gone)
            return f"without {names} it fits: make them smaller, or compute them again"
    return "other values take more than there is, too: cut the program in several"
