"""Programs that do not fit into the memory of a machine, refused with what would make them fit."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from tecomp.codegen.runtime.structures import ALIGNMENT
from tecomp.compute.tensor import Tensor
from tecomp.errors import CapacityError
from tecomp.graph.memory import Plan, Value, plan_memory
from tecomp.ir.language.text import counted
from tecomp.machine.memory import Memory

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
