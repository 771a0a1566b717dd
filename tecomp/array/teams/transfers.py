"""Arrays of a team by another partition: what is sent for that is collected first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tecomp.array.control.together import together
from tecomp.array.counters import counters
from tecomp.array.graph.cuts import FEWEST, cut
from tecomp.array.graph.evaluate import data_of, no_elements
from tecomp.array.graph.node import Buffer, Node
from tecomp.array.graph.shared import Shared, alone, part_of
from tecomp.array.graph.views import moved
from tecomp.array.teams.partitions import cuts_of, everywhere, is_same, row_of, usual
from tecomp.array.teams.queue import moved_later, queue_of, seen_later, settle
from tecomp.array.teams.windows import Window, fits
from tecomp.dist.partition.partition import Partition
from tecomp.dist.runtime.team import team_of
from tecomp.ptensor.operations.indexing import ExtractSlice
from tecomp.ptensor.types import PTensorType


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
