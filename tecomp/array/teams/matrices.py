"""Matrices and transforms of arrays of a team whose other axes alone are cut."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tecomp.array.graph.node import Buffer, Node
from tecomp.array.graph.shared import Shared
from tecomp.array.teams.collectives import told
from tecomp.array.teams.libraries import call, elements, of_data, of_parts
from tecomp.array.teams.partitions import of_cuts
from tecomp.array.teams.rules import cuts
from tecomp.array.teams.transfers import brought, in_pieces, team_number
from tecomp.errors import ArrayValueError
from tecomp.ptensor.operations.fft import Transform
from tecomp.ptensor.operations.library import LibraryOperation
from tecomp.ptensor.operations.linalg import Matrices, Solve


@of_parts.register
def _(op: Matrices, xs: Sequence[Shared]) -> tuple[Node, ...] | None:
    x = in_pieces(xs[0])
    return _of_batches(op, x, (elements(x),)) if _is_batch(x) else None


@of_parts.register
def _(op: Solve, xs: Sequence[Shared]) -> tuple[Node, ...] | None:
    a, b = in_pieces(xs[0]), xs[1]
    if not _is_batch(a) or a.type.shape[:-2] != b.type.shape[:-2]:
        return None
    b = brought(b, of_cuts(b.type, a.partition.mesh, cuts(a)))
    return _of_batches(op, a, (elements(a), elements(b)), b)


def _is_batch(x: Shared) -> bool:
    """Whether each matrix is whole, on one process."""
    return bool(cuts(x)) and all(cut.axis < x.type.rank - 2 for cut in cuts(x))


def _of_batches(
    op: LibraryOperation, x: Shared, data: Sequence[Buffer], *more: Shared
) -> tuple[Node, ...] | None:
    """The results for the matrices of this process; None if there is none for some of any."""
    types = op.results(x.type, *[each.type for each in more])
    found: tuple[Buffer, ...] = ()
    failed = False
    try:
        found = call(op, *data)
    except ArrayValueError:
        failed = True
    # What all matrices say on one process is said again then, on all processes.
    if told(team_number(x), np.array([failed])).any():
        return None
    return tuple([
        of_data(type, part, x, cuts(x)) for type, part in zip(types, found, strict=True)
    ])


@of_parts.register
def _(op: Transform, xs: Sequence[Shared]) -> tuple[Node, ...] | None:
    x = in_pieces(xs[0])
    axes = {axis % x.type.rank for axis in op.axes}
    if not cuts(x) or any(cut.axis in axes for cut in cuts(x)):
        return None
    (type,) = op.results(x.type)
    (data,) = call(op, elements(x))
    return (of_data(type, data, x, cuts(x)),)
