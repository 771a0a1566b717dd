"""Registry of per-operation sharding rules, and resharding of operands."""

from __future__ import annotations

from collections.abc import Sequence
from functools import singledispatch
from itertools import count
from typing import Any
from weakref import WeakKeyDictionary
from zlib import crc32

import numpy as np

from tecomp.array.distributed.message_queue import moved_later, queue_of, seen_later, settle
from tecomp.array.distributed.partitions import (
    Cut,
    Window,
    cuts_of,
    everywhere,
    fits,
    is_same,
    of_cuts,
    row_of,
    usual,
)
from tecomp.array.graph.evaluate import FEWEST, cut, data_of, no_elements
from tecomp.array.graph.node import Buffer, Node, Shared, alone, leaf, local_type, part_of, record
from tecomp.array.graph.views import moved
from tecomp.array.single_controller.protocol import together
from tecomp.array.statistics import counters
from tecomp.dist.partition.partition import Partition
from tecomp.dist.partition.placements import Mesh
from tecomp.dist.runtime.team import COMPARES_ALL, team_of
from tecomp.ptensor.operation import Operation
from tecomp.ptensor.operations.manipulation import ExtractSlice
from tecomp.ptensor.types import PTensorType, numpy_dtype


def team_number(node: Node) -> int:
    """Return the number of the team of a node."""
    assert node.type.team is not None
    return node.type.team


def rank_of(node: Node) -> int:
    """Return the rank of this process in the team of a node."""
    return team_of(team_number(node)).rank


def waits_for(x: Shared, of: Sequence[Shared]) -> Shared:
    """Let an array wait for the pending messages of the arrays from which it is computed."""
    x.ticket = max([x.ticket, *[y.ticket for y in of]])
    # A shard without pending messages is local and can be evaluated at any time.
    if x.part.pending > FEWEST and x.ticket <= queue_of(team_number(x)).done:
        cut(x.part)
    return x


def as_shared(node: Node) -> Shared:
    """Return a node of a team as a node with a partition."""
    if isinstance(node, Shared):
        return node
    return Shared(node.type, alone(node), everywhere(node.type, row_of(team_number(node))))


def is_everywhere(x: Shared) -> bool:
    """Return whether every rank has all elements."""
    return cuts_of(x.partition) == ()


def in_one_piece(node: Node) -> Buffer:
    """Return the local elements as a contiguous array for messages."""
    return np.array(data_of(node), order="C", copy=None)


def brought(x: Shared, target: Partition) -> Shared:
    """Reshard an array; a replicated array is cut without communication."""
    if is_same(x.partition, target):
        return x
    if is_everywhere(x) and cuts_of(target) is not None:
        index: Any = target.local_slice(rank_of(x))
        op = ExtractSlice(tuple([(at.start, at.step, max(at.stop - at.start, 0)) for at in index]))
        return Shared(x.type, moved(op, x.part), target, x.ticket)
    if x.view is not None:
        base, starts, periodic = x.view
        made = seen(base, x.type, Window(starts, periodic, target))
        if made is not None:
            return made
    made = moved_later(x, target)
    made.view = x.view
    return made


def seen(base: Shared, type: PTensorType, window: Window) -> Shared | None:
    """Return a window of an array, received as a halo if it is close to the local shards."""
    if not fits(base.partition, window):
        return None
    made = seen_later(base, type, window, window.target)
    made.view = base, window.starts, window.periodic
    return made


def in_pieces(x: Shared) -> Shared:
    """Return an array whose axes are whole or in consecutive pieces, resharded if necessary."""
    return x if cuts_of(x.partition) is not None else brought(x, usual(x.type))


def in_rows(x: Shared) -> Shared:
    """Reshard an array along its first axis over a one-dimensional mesh."""
    return brought(x, usual(x.type))


def gathered(x: Shared, why: str) -> Shared:
    """Replicate an array on all ranks; count the gather if communication is necessary."""
    if is_everywhere(x):
        return x
    if x.type.size:
        counters.gathered[why] += 1
    return brought(x, everywhere(x.type, x.partition.mesh))


def whole_of(node: Node, why: str = "values") -> Buffer:
    """Return all elements of a distributed array on every rank."""
    if node.data is not None:
        return node.data
    if not isinstance(node, Shared):
        raise no_elements()
    return data_of(part_of(node)) if is_everywhere(node) else _collected(node, why)


@together
def _collected(x: Shared, why: str) -> Buffer:
    whole = gathered(x, why)
    settle((whole,))
    return data_of(whole.part)


def divided(node: Node, partition: Partition | None = None) -> Shared:
    """Shard a replicated array; each rank keeps its shard."""
    x = as_shared(node)
    return brought(x, usual(x.type) if partition is None else partition)


def like_operands(results: tuple[Node, ...], operands: tuple[Node, ...]) -> tuple[Node, ...]:
    """Shard replicated results if an operand is sharded."""
    if all(is_everywhere(as_shared(operand)) for operand in operands):
        return results
    return tuple([divided(result) for result in results])


def record_together(op: Operation, type: PTensorType, operands: Sequence[Node]) -> Node:
    """Record an operation on distributed arrays.

    Communication is initiated now; local computation of each rank is recorded.

    Args:
        op: Operation.
        type: Type of the result.
        operands: Operands of one team.
    """
    assert type.team is not None
    if COMPARES_ALL:
        team_of(type.team).began(_said(op, type, operands))
    queue_of(type.team).step(op.where)
    made = ruled(op, [as_shared(node) for node in operands], type)
    if COMPARES_ALL:
        _number_of(made)
    return made


_counts = count()
_numbers: WeakKeyDictionary[Shared, int] = WeakKeyDictionary()
"""Sequence numbers of distributed arrays, in the order of recording, for cross-rank checks."""


def _number_of(x: Shared) -> int:
    if x not in _numbers:
        _numbers[x] = next(_counts)
    return _numbers[x]


def _said(op: Operation, type: PTensorType, operands: Sequence[Node]) -> str:
    """Return a description of an operation that must be equal on all ranks."""
    given = ", ".join([_named(node) for node in operands])
    return f"{op.where} {given} -> {type.dtype}{[*type.shape]}, {op}"


def _named(node: Node) -> str:
    if isinstance(node, Shared):
        return f"%{_number_of(node)}"
    if node.data is None:
        return f"{node.type.dtype}{[*node.type.shape]}"
    if node.data.size == 1:
        return str(node.data.reshape(-1)[0])
    return f"{node.type.dtype}{[*node.type.shape]} #{crc32(node.data.tobytes()):08x}"


def ruled(op: Operation, xs: Sequence[Shared], type: PTensorType) -> Shared:
    """Apply the sharding rule of an operation to sharded operands.

    The result waits for pending messages of its operands and for messages that the rule adds.
    """
    assert type.team is not None
    queue = queue_of(type.team)
    before = queue.last
    made = rule(op, xs, type)
    if made.made_of is not None:
        return made
    if queue.last > before:
        made.ticket = queue.last
    return waits_for(made, xs)


@singledispatch
def rule(op: Operation, xs: Sequence[Shared], type: PTensorType) -> Shared:
    """Apply the sharding rule registered for an operation; the default gathers all operands."""
    return on_all_elements(op, xs, type)


def on_all_elements(op: Operation, xs: Sequence[Shared], type: PTensorType) -> Shared:
    """Gather all operands, compute the operation on every rank, and shard the result."""
    whole = [gathered(x, op.where) for x in xs]
    part = record(op, *[x.part for x in whole])
    result = waits_for(Shared(type, part, everywhere(type, mesh_of(xs))), whole)
    return result if all(map(is_everywhere, xs)) else brought(result, usual(type))


def without_elements(type: PTensorType, mesh: Mesh) -> Shared:
    """Return an empty distributed array."""
    data = np.empty(type.shape, numpy_dtype(type.dtype))
    return Shared(type, leaf(data, local_type(type, type.shape)), everywhere(type, mesh))


def mesh_of(xs: Sequence[Shared]) -> Mesh:
    """Return the mesh of the first sharded operand."""
    return next((x for x in xs if not is_everywhere(x)), xs[0]).partition.mesh


def cuts(x: Shared) -> tuple[Cut, ...]:
    """Return the cuts of an array in consecutive pieces."""
    found = cuts_of(x.partition)
    assert found is not None
    return found


def number(x: Shared, cut: Cut) -> int:
    """Return the number of the local piece of a cut."""
    return x.partition.mesh.coordinates(rank_of(x))[cut.mesh_axis]


def uncut(x: Shared, axes: Sequence[int]) -> Shared:
    """Reshard an array so that some axes are not cut."""
    kept = [cut for cut in cuts(x) if cut.axis not in axes]
    if len(kept) == len(cuts(x)):
        return x
    return brought(x, of_cuts(x.type, x.partition.mesh, kept))


def by_cuts(type: PTensorType, part: Node, mesh: Mesh, made: Sequence[Cut]) -> Shared:
    """Return a distributed array from local shards and cuts."""
    return Shared(type, part, of_cuts(type, mesh, made))
