"""Diagonals, traces and cross products of arrays of a team."""

from __future__ import annotations

from collections.abc import Sequence

from tecomp.array.graph.node import record
from tecomp.array.graph.shared import Shared
from tecomp.array.teams.partitions import Cut
from tecomp.array.teams.placing import aligned
from tecomp.array.teams.rules import by_cuts, cuts, number, rule, ruled, uncut
from tecomp.array.teams.transfers import in_pieces, in_rows, waits_for
from tecomp.ptensor.operations.linear_algebra import Cross, Diagonal, Trace
from tecomp.ptensor.operations.reduction import Reduce
from tecomp.ptensor.types import PTensorType


@rule.register
def _(op: Diagonal, xs: Sequence[Shared], type: PTensorType) -> Shared:
    x = in_pieces(xs[0])
    row = x.type.rank - 2
    inner = [cut for cut in cuts(x) if cut.axis >= row]
    if len(inner) > 1:
        return ruled(op, [in_rows(x)], type)
    made = [cut for cut in cuts(x) if cut.axis < row]
    offset = op.offset
    for cut in inner:
        first = cut.ends[number(x, cut)]
        # Of the diagonal a process has what is in its rows, or columns.
        offset += first if cut.axis == row else -first
        start = max(-op.offset, 0) if cut.axis == row else max(op.offset, 0)
        count = type.shape[-1]
        ends = tuple([min(max(end - start, 0), count) for end in cut.ends])
        made.append(Cut(row, cut.mesh_axis, ends))
    part = record(Diagonal(offset), x.part)
    return waits_for(by_cuts(type, part, x.partition.mesh, made), [x])


@rule.register
def _(op: Trace, xs: Sequence[Shared], type: PTensorType) -> Shared:
    (x,) = xs
    line = Diagonal(op.offset)
    total = Reduce("sum", (type.rank,), False, 0, op.dtype)
    return ruled(total, [ruled(line, [x], line.infer(x.type))], type)


@rule.register
def _(op: Cross, xs: Sequence[Shared], type: PTensorType) -> Shared:
    whole = [uncut(in_pieces(x), (x.type.rank + op.axis,)) for x in xs]
    given, mesh, made = aligned(whole, type)
    part = record(op, *[x.part for x in given])
    return waits_for(by_cuts(type, part, mesh, made), given)
