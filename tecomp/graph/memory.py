"""Where the values between kernels lie: as few bytes as their lifetimes allow, found best fit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod

from tecomp.compute.tensor import Tensor
from tecomp.graph.dag import Graph
from tecomp.graph.groups import Group
from tecomp.ir.algebra.extents import round_up


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
class Plan:
    """An arena for all values between kernels.

    Attributes:
        values: in the order of their offsets.
        bytes: of the arena.
        lower_bound: bytes of the values that are needed at one time, where these are most.
    """

    values: tuple[Value, ...]
    bytes: int
    lower_bound: int


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
    lifetimes: Mapping[Tensor, tuple[int, int]], alignment: int
) -> Plan:
    """Offsets of values, no two of which share a byte while both are needed.

    Args:
        lifetimes: of each value the first and the last kernel that needs it.
        alignment: bytes that each offset is a multiple of.
    """
    placed: list[Value] = []
    sized = {tensor: round_up(max(bytes_of(tensor), 1), alignment) for tensor in lifetimes}
    # The largest first: what is small finds room between.
    for tensor in sorted(lifetimes, key=lambda x: -sized[x]):
        first, last = lifetimes[tensor]
        size = sized[tensor]
        beside = [v for v in placed if v.first <= last and first <= v.last]
        offset = _best_gap(sorted((v.offset, v.offset + v.bytes) for v in beside), size)
        placed.append(Value(tensor, size, first, last, offset))
    ordered = tuple(sorted(placed, key=lambda v: (v.offset, v.first)))
    total = max((v.offset + v.bytes for v in ordered), default=0)
    moments = {v.first for v in ordered}
    least = max((sum(v.bytes for v in ordered if v.first <= now <= v.last) for now in moments),
                default=0)
    return Plan(ordered, total, least)


def bytes_of(tensor: Tensor) -> int:
    """Bytes of a tensor whose sizes are numbers."""
    return prod(n for n in tensor.shape if isinstance(n, int)) * tensor.dtype.bytes


def _best_gap(taken: Sequence[tuple[int, int]], size: int) -> int:
    """The start of the smallest gap between ranges that holds so many bytes."""
    best, room, end = None, None, 0
    for low, high in taken:
        if low - end >= size and (room is None or low - end < room):
            best, room = end, low - end
        end = max(end, high)
    return end if best is None else best
