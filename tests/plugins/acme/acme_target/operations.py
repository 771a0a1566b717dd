"""Intrinsics of the ACME target, for the entry point `tecomp.intrinsics`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tecomp
from tecomp import te


def intrinsics(target: tecomp.Target) -> list[Any]:
    """Return the tile product of the unit `mac`."""
    unit: Any = target.engine["mac"]
    a = te.placeholder((unit.m, unit.k), unit.inputs[0], name="a")
    b = te.placeholder((unit.k, unit.n), unit.inputs[0], name="b")
    k = te.reduce_axis((0, unit.k), name="k")
    c = te.compute(
        (unit.m, unit.n),
        lambda i, j: te.sum(
            a[i, k].astype(unit.accumulator) * b[k, j].astype(unit.accumulator), axis=k
        ),
        name="c",
    )

    def zero(out: Any) -> Any:
        return te.for_range(0, unit.m, lambda i: te.for_range(
            0, unit.n, lambda j: out.store((i, j), te.const(0, unit.accumulator))
        ))

    def add(ins: Sequence[Any], out: Any) -> Any:
        def one(i: Any, j: Any, r: Any) -> Any:
            left, right = (x.astype(unit.accumulator) for x in (ins[0][i, r], ins[1][r, j]))
            return out.store((i, j), out[i, j] + left * right)

        return te.for_range(0, unit.m, lambda i: te.for_range(
            0, unit.n, lambda j: te.for_range(0, unit.k, lambda r: one(i, j, r))
        ))

    def run(ins: Sequence[Any], outs: Sequence[Any]) -> Any:
        start, more = zero(outs[0]), add(ins, outs[0])
        return te.stmt_seq(start, more), start, more

    return [te.decl_tensor_intrin(c.op, run, name="mac")]
