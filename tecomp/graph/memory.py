"""Where the values between kernels lie: in few bytes, as their lifetimes allow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import ClassVar

from tecomp.compute.tensor import Tensor
from tecomp.drawing.pictured import Pictured
from tecomp.graph.dag import Graph
from tecomp.graph.groups import Group
from tecomp.graph.spills import Resident, Spill
from tecomp.ir.algebra.extents import round_up
from tecomp.ir.language.text import counted
from tecomp.lowering.storage.spans import Span, most_at_once, places_of


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

    _drawn_by: ClassVar[str] = "plan:drawn"

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
