"""Programs for picture tests."""

from __future__ import annotations

from functools import cache

import tecomp
from tecomp import te
from tecomp.driver import ScheduledKernel
from tecomp.scheduling.schedule import Schedule


def rectified() -> tuple[Schedule, list[te.Tensor]]:
    """Return a tiled schedule of a matrix product with ReLU, with one loop of each kind."""
    A = te.placeholder((64, 64), name="A")
    B = te.placeholder((64, 64), name="B")
    k = te.reduce_axis((0, 64), name="k")
    C = te.compute((64, 64), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")
    D = te.compute((64, 64), lambda i, j: te.max(C[i, j], 0.0), name="D")
    s = te.create_schedule(D.op)
    rows, columns, _, inner = s[D].tile(D.op.axis[0], D.op.axis[1], 16, 16)
    s[C].compute_at(s[D], columns)
    outer, few = s[C].split(k, 4)
    i, j = C.op.axis
    s[C].reorder(outer, i, few, j)
    s[C].unroll(few)
    s[C].vectorize(j)
    s[D].parallel(rows)
    s[D].vectorize(inner)
    return s, [A, B, D]


@cache
def kernel() -> ScheduledKernel:
    """Return the kernel of `rectified`, built for the host."""
    return tecomp.build(*rectified())


def named(name: str) -> Schedule:
    """Return a schedule of two stages with the given name."""
    A = te.placeholder((8,), name=name)
    B = te.compute((8,), lambda i: A[i] + 1.0, name=f"{name}_1")
    return te.create_schedule(B.op)
