"""Softmax: exponentials of the elements of a row, divided by their sum.

Four walks through a row, which stays in the first cache: the maximum, which is subtracted so that
no exponential overflows; the exponentials; their sum; the quotients.
"""

from __future__ import annotations

from tecomp import Target, te
from tecomp.schedules.placement import placement_of
from tecomp.schedules.row_blocks import schedule_rows
from tecomp.schedules.rows import (
    are_short,
    keep_row,
    keep_value,
    reduce_row,
    side_by_side,
    walk_rows,
)


def define(A: te.Tensor, *, name: str = "softmax") -> te.Tensor:
    """`exp(A) / sum(exp(A))` along the last axis, in the type of `A`.

    >>> define(te.placeholder((4, 8), name="A")).shape
    (4, 8)
    """
    *rows, n = A.shape
    wide = "float32" if A.dtype in ("float16", "bfloat16") else A.dtype
    k, r = (te.reduce_axis((0, n), name=axis) for axis in ("k", "r"))
    most = te.compute(
        rows, lambda *i: te.max(te.cast(A(*i, k), wide), axis=k), name=f"{name}_most"
    )
    powers = te.compute(
        A.shape, lambda *i: te.exp(te.cast(A(*i), wide) - most(*i[:-1])), name=f"{name}_powers"
    )
    total = te.compute(rows, lambda *i: te.sum(powers(*i, r), axis=r), name=f"{name}_total")
    scale = te.compute(rows, lambda *i: te.const(1, wide) / total(*i), name=f"{name}_scale")
    return te.compute(
        A.shape, lambda *i: te.cast(powers(*i) * scale(*i[:-1]), A.dtype), name=name
    )


def schedule(output: te.Tensor, target: Target) -> te.Schedule:
    """A schedule for the result of `define`."""
    s = te.create_schedule(output)
    where = placement_of(target)
    if where is not None:
        schedule_rows(s, output, where)
        return s
    if are_short(output, target):
        side_by_side(s, output, target)
        return s
    most, powers, total, scale = (
        s.tensor(f"{output.name}_{part}") for part in ("most", "powers", "total", "scale")
    )
    row = walk_rows(s, output, target)
    keep_value(s, scale, output, row)
    reduce_row(s, total, output, row, target)
    keep_row(s, powers, output, row, target)
    reduce_row(s, most, output, row, target)
    return s
