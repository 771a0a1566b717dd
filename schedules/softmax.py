"""Softmax along the last axis.

The schedule traverses each row four times while it stays in the first-level cache: for the maximum,
which is subtracted so that no exponential overflows, for the exponentials, for their sum, and for
the quotients.
"""

from __future__ import annotations

from pathlib import Path

from tecomp import Target, te
from tecomp.schedules.common import wide_type
from tecomp.schedules.rowwise import schedule_rows


def define(A: te.Tensor, *, name: str = "softmax") -> te.Tensor:
    """Define `exp(A) / sum(exp(A))` along the last axis, in the dtype of `A`.

    >>> define(te.placeholder((4, 8), name="A")).shape
    (4, 8)
    """
    *rows, n = A.shape
    dtype = wide_type(A.dtype)
    k, r = (te.reduce_axis((0, n), name=axis) for axis in ("k", "r"))
    peak = te.compute(
        rows, lambda *i: te.max(te.cast(A(*i, k), dtype), axis=k), name=f"{name}_most"
    )
    powers = te.compute(
        A.shape, lambda *i: te.exp(te.cast(A(*i), dtype) - peak(*i[:-1])), name=f"{name}_powers"
    )
    total = te.compute(rows, lambda *i: te.sum(powers(*i, r), axis=r), name=f"{name}_total")
    scale = te.compute(rows, lambda *i: te.const(1, dtype) / total(*i), name=f"{name}_scale")
    return te.compute(
        A.shape, lambda *i: te.cast(powers(*i) * scale(*i[:-1]), A.dtype), name=name
    )


def schedule(output: te.Tensor, target: str | Path | Target) -> te.Schedule:
    """Return a schedule for the result of `define`."""
    done: te.Schedule = schedule_rows(output, Target.of(target))
    return done
