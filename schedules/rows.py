"""Stages that belong to a row: what is computed for each row of the result, inside its loop."""

from __future__ import annotations

from tecomp import Target, te
from tecomp.schedules.fold import fold
from tecomp.schedules.tiles import lanes_of


def walk_rows(s: te.Schedule, output: te.Tensor, target: Target) -> te.IterVar:
    """Walk through each row of `output` in vectors, and share the rows; returns their loop."""
    *rows, columns = s[output].op.axis
    _, lane = s[output].split(columns, factor=lanes_of(output, columns, target))
    s[output].vectorize(lane)
    row = s[output].fuse(*rows)
    s[output].parallel(row)
    return row


def reduce_row(
    s: te.Schedule, x: te.Tensor, output: te.Tensor, row: te.IterVar, target: Target
) -> None:
    """Reduce a row in vectors of partial results, where `output` needs it."""
    s[x].compute_at(s[output], row)
    s[x].set_scope("local")
    fold(s, x, s[x].op.reduce_axis[-1], s[x].fuse(*s[x].op.axis), target)


def keep_row(
    s: te.Schedule, x: te.Tensor, output: te.Tensor, row: te.IterVar, target: Target
) -> None:
    """Compute a row in vectors, where `output` needs it; it stays in the first cache."""
    s[x].compute_at(s[output], row)
    columns = s[x].op.axis[-1]
    _, lane = s[x].split(columns, factor=lanes_of(x, columns, target))
    s[x].vectorize(lane)


def keep_value(s: te.Schedule, x: te.Tensor, output: te.Tensor, row: te.IterVar) -> None:
    """Compute a value that all elements of a row use, once for the row."""
    s[x].compute_at(s[output], row)
    s[x].set_scope("local")
