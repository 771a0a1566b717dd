"""Running sums and products of arrays of a team: of parts, and what is before each of them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

from tecomp.array.graph.node import leaf, record
from tecomp.array.graph.shared import Shared, local_type
from tecomp.array.teams.collectives import before
from tecomp.array.teams.queue import settle
from tecomp.array.teams.rules import by_cuts, cuts, number, rule, ruled
from tecomp.array.teams.transfers import in_one_piece, in_pieces, in_rows, team_number
from tecomp.ptensor.operations.elementwise import FUNCTIONS
from tecomp.ptensor.operations.reduction import Cumulative, Reduce
from tecomp.ptensor.types import PTensorType


@rule.register
def _(op: Cumulative, xs: Sequence[Shared], type: PTensorType) -> Shared:
    x = in_pieces(xs[0])
    mesh = x.partition.mesh
    found = next((cut for cut in cuts(x) if cut.axis == op.axis), None)
    if found is None:
        return by_cuts(type, record(op, x.part), mesh, cuts(x))
    if mesh.ndim > 1:
        return ruled(op, [in_rows(x)], type)
    settle((x,))
    # What comes before all elements is the first of the result, on the first process.
    leads = op.include_initial and number(x, found) == 0
    part = record(Cumulative(op.kind, op.axis, leads, op.dtype), x.part)
    total = record(Reduce(op.kind, (op.axis,), True, 0, type.dtype), x.part)
    earlier = before(team_number(x), in_one_piece(total), op.kind)
    if earlier is not None:
        other = leaf(earlier, local_type(type, earlier.shape))
        part = record(FUNCTIONS["add" if op.kind == "sum" else "multiply"], part, other)
    sizes = list(found.sizes)
    sizes[0] += op.include_initial
    return by_cuts(type, part, mesh, [found._replace(ends=(0, *accumulate(sizes)))])
