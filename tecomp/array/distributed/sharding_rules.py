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
    """The team of a node that has one."""
    assert node.type.team is not None
    return node.type.team


def rank_of(node: Node) -> int:
    """The rank of this process in the team of a node."""
    return team_of(team_number(node)).rank


def waits_for(x: Shared, of: Sequence[Shared]) -> Shared:
    """An array that waits for the messages that others wait for, of which it is made."""
    x.ticket = max([x.ticket, *[y.ticket for y in of]])
    # What waits for nothing is computed by this process alone, whenever it likes to.
    if x.part.pending > FEWEST and x.ticket <= queue_of(team_number(x)).done:
        cut(x.part)
    return x


def as_shared(node: Node) -> Shared:
    """A node of a team with its partition."""
    if isinstance(node, Shared):
        return node
    return Shared(node.type, alone(node), everywhere(node.type, row_of(team_number(node))))


def is_everywhere(x: Shared) -> bool:
    """Whether every process has all elements."""
    return cuts_of(x.partition) == ()


def in_one_piece(node: Node) -> Buffer:
    """The elements of a node of this process, as messages take them."""
    return np.array(data_of(node), order="C", copy=None)


def brought(x: Shared, target: Partition) -> Shared:
    """An array by another partition; what is everywhere is cut without a message."""
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
    """A part of an array where it is wanted, if that is beside the parts of processes."""
    if not fits(base.partition, window):
        return None
    made = seen_later(base, type, window, window.target)
    made.view = base, window.starts, window.periodic
    return made


def in_pieces(x: Shared) -> Shared:
    """An array whose axes are cut into consecutive pieces, or not at all."""
    return x if cuts_of(x.partition) is not None else brought(x, usual(x.type))


def in_rows(x: Shared) -> Shared:
    """An array whose first axis is cut, for all processes in a row."""
    return brought(x, usual(x.type))


def gathered(x: Shared, why: str) -> Shared:
    """An array with all of its elements on every process; counted, if they were not."""
    if is_everywhere(x):
        return x
    if x.type.size:
        counters.gathered[why] += 1
    return brought(x, everywhere(x.type, x.partition.mesh))


def whole_of(node: Node, why: str = "values") -> Buffer:
    """All elements of an array of a team, on every process."""
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
    """An array that every process has all of, of which each keeps a part."""
    x = as_shared(node)
    return brought(x, usual(x.type) if partition is None else partition)


def like_operands(results: tuple[Node, ...], operands: tuple[Node, ...]) -> tuple[Node, ...]:
    """Results of which every process has all elements, divided if an operand was."""
    if all(is_everywhere(as_shared(operand)) for operand in operands):
        return results
    return tuple([divided(result) for result in results])


def record_together(op: Operation, type: PTensorType, operands: Sequence[Node]) -> Node:
    """The result of an operation on arrays of a team.

    What is sent between processes is sent now; what a process computes of its part is recorded.

    Args:
        op: Operation.
        type: of the result.
        operands: of one team.
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
"""Arrays of teams, in the order in which they were recorded or first read, for comparisons."""


def _number_of(x: Shared) -> int:
    if x not in _numbers:
        _numbers[x] = next(_counts)
    return _numbers[x]


def _said(op: Operation, type: PTensorType, operands: Sequence[Node]) -> str:
    """An operation with all that has to be the same on all processes: operands and constants."""
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
    """The same, for operands with partitions.

    The result waits for what is sent for its operands, and for what a rule asked for.
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
    """What is done for such operations; without a rule, on all elements on each process."""
    return on_all_elements(op, xs, type)


def on_all_elements(op: Operation, xs: Sequence[Shared], type: PTensorType) -> Shared:
    """All operands gathered, the operation on all of their elements, and the result divided."""
    whole = [gathered(x, op.where) for x in xs]
    part = record(op, *[x.part for x in whole])
    result = waits_for(Shared(type, part, everywhere(type, mesh_of(xs))), whole)
    return result if all(map(is_everywhere, xs)) else brought(result, usual(type))


def without_elements(type: PTensorType, mesh: Mesh) -> Shared:
    """An array of no elements."""
    data = np.empty(type.shape, numpy_dtype(type.dtype))
    return Shared(type, leaf(data, local_type(type, type.shape)), everywhere(type, mesh))


def mesh_of(xs: Sequence[Shared]) -> Mesh:
    """The processes as the first operand has them that is divided."""
    return next((x for x in xs if not is_everywhere(x)), xs[0]).partition.mesh


def cuts(x: Shared) -> tuple[Cut, ...]:
    """How the axes of an array are cut that is in pieces."""
    found = cuts_of(x.partition)
    assert found is not None
    return found


def number(x: Shared, cut: Cut) -> int:
    """Which of the pieces this process has."""
    return x.partition.mesh.coordinates(rank_of(x))[cut.mesh_axis]


def uncut(x: Shared, axes: Sequence[int]) -> Shared:
    """An array that is not cut along some axes."""
    kept = [cut for cut in cuts(x) if cut.axis not in axes]
    if len(kept) == len(cuts(x)):
        return x
    return brought(x, of_cuts(x.type, x.partition.mesh, kept))


def by_cuts(type: PTensorType, part: Node, mesh: Mesh, made: Sequence[Cut]) -> Shared:
    """An array of parts by cuts of its axes."""
    return Shared(type, part, of_cuts(type, mesh, made))
