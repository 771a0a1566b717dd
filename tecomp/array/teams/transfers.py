"""Arrays of a team brought to another partition: messages are sent when this is called."""

from __future__ import annotations

from typing import Any

import numpy as np

from tecomp.array.counters import counters
from tecomp.array.graph.cuts import FEWEST, cut
from tecomp.array.graph.evaluate import data_of
from tecomp.array.graph.node import Buffer, Node, leaf
from tecomp.array.graph.shared import Shared, alone, local_type
from tecomp.array.graph.views import moved
from tecomp.array.teams.partitions import cuts_of, everywhere, is_same, row_of, usual
from tecomp.dist.partition.partition import Partition
from tecomp.dist.runtime.locals import redistribute
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


def shared(type: PTensorType, part: Node, partition: Partition) -> Shared:
    """An array of a team."""
    if part.pending > FEWEST:
        cut(part)
    return Shared(type, part, partition)


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
        return shared(x.type, moved(op, x.part), target)
    made = redistribute(team_number(x), x.partition, target, in_one_piece(x.part))
    return Shared(x.type, leaf(made, local_type(x.type, made.shape)), target)


def in_pieces(x: Shared) -> Shared:
    """An array whose axes are cut into consecutive pieces, or not at all."""
    return x if cuts_of(x.partition) is not None else brought(x, usual(x.type))


def gathered(x: Shared, why: str) -> Shared:
    """An array with all of its elements on every process; counted, if they were not."""
    if is_everywhere(x):
        return x
    counters.gathered[why] += 1
    return brought(x, everywhere(x.type, x.partition.mesh))


def whole_of(node: Node, why: str = "values") -> Buffer:
    """All elements of an array of a team, on every process."""
    if node.data is not None:
        return node.data
    assert isinstance(node, Shared)
    return data_of(gathered(node, why).part)


def divided(node: Node, partition: Partition | None = None) -> Shared:
    """An array that every process has all of, of which each keeps a part."""
    x = as_shared(node)
    return brought(x, usual(x.type) if partition is None else partition)


def like_operands(results: tuple[Node, ...], operands: tuple[Node, ...]) -> tuple[Node, ...]:
    """Results of which every process has all elements, divided if an operand was."""
    if all(is_everywhere(as_shared(operand)) for operand in operands):
        return results
    return tuple([divided(result) for result in results])
