"""Rows that processes have, sent to those that own their places, and answers sent back."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tecomp.array.graph.evaluate import data_of
from tecomp.array.graph.node import Buffer
from tecomp.array.graph.shared import Shared
from tecomp.array.teams.collectives import dealt
from tecomp.array.teams.partitions import Cut, cuts_of, of_cuts, usual
from tecomp.array.teams.placing import Aligned, aligned, lowered
from tecomp.array.teams.queue import settle
from tecomp.array.teams.rules import number
from tecomp.array.teams.transfers import rank_of
from tecomp.dist.runtime.team import team_of
from tecomp.ptensor.operations.indexing import Take
from tecomp.ptensor.types import broadcast_shapes


class Routes:
    """The way from what processes have to those that own it, and back.

    Attributes:
        team: its number.
        owners: the rank for each row of what this process has.
    """

    def __init__(self, team: int, owners: Buffer) -> None:
        self._team = team
        self._order = np.argsort(owners, kind="stable")
        counts = np.bincount(owners, minlength=team_of(team).size)
        self._ends = np.cumsum(counts)[:-1]

    def sent(self, rows: Buffer) -> list[Buffer]:
        """What all processes have for this one, in the order of ranks; theirs in its order."""
        return dealt(self._team, np.split(rows[self._order], self._ends))

    def answered(self, made: Sequence[Buffer]) -> Buffer:
        """What owners have made of the rows that were sent, one for each, in their order."""
        found = np.concatenate(dealt(self._team, made))
        rows = np.empty_like(found)
        rows[self._order] = found
        return rows


class Given:
    """Indices of elements, of which each process has some.

    Attributes:
        mesh: the processes.
        cuts: of the shape to which all of them broadcast.
        shape: of what this process has.
        rows: one for each element, a column for each axis that is indexed.
    """

    def __init__(self, op: Take, x: Shared, indices: Sequence[Shared]) -> None:
        shape = broadcast_shapes([index.type.shape for index in indices], op.where)
        type = x.type.like(shape, "int64")
        xs, self.mesh, self.cuts = aligned(indices, type)
        if self.mesh.ndim > 1 or (shape and not self.cuts):
            target = usual(type)
            self.mesh, self.cuts = target.mesh, cuts_of(target) or ()
            xs = [lowered(each, shape, Aligned(self.mesh, self.cuts)) for each in xs]
        settle((x, *xs))
        self.shape = of_cuts(type, self.mesh, self.cuts).local_shape(rank_of(x))
        columns = [np.broadcast_to(data_of(each.part), self.shape).reshape(-1) for each in xs]
        self.rows = np.stack(columns, axis=1)

    def row(self, k: int) -> Buffer:
        """The indices of one axis."""
        return self.rows[:, k]


def owners(cut: Cut, places: Buffer) -> Buffer:
    """Which of the pieces of an axis has each index."""
    return np.searchsorted(np.array(cut.ends[1:]), places, "right")


def in_front(data: Buffer, axes: Sequence[int]) -> Buffer:
    """A view of a part with the axes in front that are indexed."""
    return np.moveaxis(data, axes, range(len(axes)))


def key_of(op: Take, x: Shared, cut: Cut, rows: Buffer) -> tuple[Buffer, ...]:
    """Indices as those of the part of this process."""
    first = cut.ends[number(x, cut)]
    return tuple([
        rows[:, k] - (first if axis == cut.axis else 0) for k, axis in enumerate(op.axis)
    ])


