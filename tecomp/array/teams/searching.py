"""Where elements belong in a row of a team that is in order."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tecomp.array.graph.node import Buffer, Node
from tecomp.array.graph.shared import Shared
from tecomp.array.teams.asking import first_of
from tecomp.array.teams.collectives import added_up, told
from tecomp.array.teams.libraries import call, elements, in_one_row, of_data, of_parts
from tecomp.array.teams.partitions import everywhere
from tecomp.array.teams.routes import Routes
from tecomp.array.teams.rules import cuts, number, ruled
from tecomp.array.teams.transfers import brought, in_pieces, is_everywhere, team_number
from tecomp.ptensor.libraries import wrong_sorter
from tecomp.ptensor.operations.elementwise import Cast
from tecomp.ptensor.operations.indexing import Take
from tecomp.ptensor.operations.sorting import SearchSorted


@of_parts.register
def _(op: SearchSorted, xs: Sequence[Shared]) -> tuple[Node, ...]:
    (type,) = op.results(*[x.type for x in xs])
    line, values, *sorter = [in_pieces(x) for x in xs]
    for each in sorter:
        line = _in_order(line, each)
    return (of_data(type, _found(op, line, values), values, cuts(values)),)


def _in_order(line: Shared, sorter: Shared) -> Shared:
    """The elements of a row at the places that a sorter says.

    Raises:
        ArrayIndexError: one of these is out of bounds.
    """
    data = elements(sorter)
    outside = first_of(sorter, data[(data < 0) | (data >= line.type.size)])
    if outside is not None:
        raise wrong_sorter(outside, line.type.size)
    places = ruled(Cast("int64"), [sorter], sorter.type.like(sorter.type.shape, "int64"))
    return ruled(Take((0,), 0), [line, places], line.type.like(line.type.shape))


def _found(op: SearchSorted, line: Shared, values: Shared) -> Buffer:
    """The places of what this process has of the values."""
    if is_everywhere(line) or not line.type.size:
        return call(op, elements(brought(line, everywhere(line.type, line.partition.mesh))),
                    elements(values))[0]
    line = in_one_row(line)
    if is_everywhere(values):
        # Each process counts what is before them in its part.
        return added_up(team_number(line), call(op, elements(line), elements(values))[0])
    size = line.partition.mesh.size
    if line.type.size * size <= 2 * values.type.size:
        return call(op, elements(brought(line, everywhere(line.type, line.partition.mesh))),
                    elements(values))[0]
    return _asked(op, line, elements(values))


def _asked(op: SearchSorted, line: Shared, values: Buffer) -> Buffer:
    """The places, of the processes whose parts of the row have them."""
    team, (cut,) = team_number(line), cuts(line)
    data = elements(line)
    lasts = told(team, data[-1:])
    filled = np.flatnonzero(cut.sizes)
    row = values.reshape(-1)
    (part,) = call(op, lasts, row)
    routes = Routes(team, filled[np.minimum(part, len(filled) - 1)])
    first = cut.ends[number(line, cut)]
    places = [call(op, data, each)[0] + first for each in routes.sent(row)]
    return routes.answered(places).reshape(values.shape)
