"""Operations of libraries on arrays of a team: the rules for those that are called on parts."""

from __future__ import annotations

from collections.abc import Sequence
from functools import singledispatch
from itertools import accumulate

import numpy as np

from tecomp.array.counters import counters
from tecomp.array.graph.evaluate import data_of
from tecomp.array.graph.node import Buffer, Node, leaf
from tecomp.array.graph.shared import Shared, local_type
from tecomp.array.teams.collectives import told
from tecomp.array.teams.partitions import Cut, of_cuts, row_of
from tecomp.array.teams.queue import queue_of, settle
from tecomp.array.teams.rules import cuts, ruled
from tecomp.array.teams.transfers import as_shared, in_rows, team_number
from tecomp.ptensor.libraries import compute
from tecomp.ptensor.operations.library import LibraryOperation
from tecomp.ptensor.operations.manipulation import Reshape
from tecomp.ptensor.types import PTensorType


def called(op: LibraryOperation, operands: Sequence[Node]) -> tuple[Node, ...] | None:
    """The results of an operation of a library on parts; None if it needs whole arrays."""
    queue_of(team_number(operands[0])).step(op.where)
    return of_parts(op, [as_shared(node) for node in operands])


@singledispatch
def of_parts(op: LibraryOperation, xs: Sequence[Shared]) -> tuple[Node, ...] | None:
    """The same by the rule for such operations."""
    return None


def elements(x: Shared) -> Buffer:
    """What this process has, computed."""
    settle((x,))
    return data_of(x.part)


def call(op: LibraryOperation, *data: Buffer) -> tuple[Buffer, ...]:
    """The results of an operation, whose call is counted."""
    counters.libraries[op.library] += 1
    return compute(op, *data)


def of_data(type: PTensorType, data: Buffer, x: Shared, made: Sequence[Cut]) -> Shared:
    """An array of what each process has found."""
    target = of_cuts(type, x.partition.mesh, made)
    data = np.asarray(data, target.dtype)
    return Shared(type, leaf(data, local_type(type, data.shape)), target)


def row(x: Shared, data: Buffer, dtype: str) -> Shared:
    """A row of what processes have found, of any lengths, one after the other."""
    team = team_number(x)
    ends = (0, *accumulate(told(team, np.array([len(data)])).tolist()))
    type = x.type.like((ends[-1],), dtype)
    target = of_cuts(type, row_of(team), [Cut(0, 0, ends)])
    data = np.asarray(data, target.dtype)
    return Shared(type, leaf(data, local_type(type, data.shape)), target)


def in_one_row(x: Shared) -> Shared:
    """An array as a row, in pieces of all processes; what had one axis already, has it."""
    if x.type.rank != 1:
        type = x.type.like((x.type.size,))
        x = ruled(Reshape(type.shape), [x], type)
    return x if x.partition.mesh.ndim == 1 and cuts(x) else in_rows(x)
