"""All errors of split, tile, fuse, reorder and loop annotations."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tecomp import te
from tecomp.compute import Tensor
from tecomp.errors import ScheduleError
from tecomp.scheduling.schedule import Schedule
from tests.messages import Diagnostic, diagnostic

A = te.placeholder((10, 12), name="A")
k = te.reduce_axis((0, 12), name="k")
P = te.compute((10, 12), lambda i, j: A[i, j] * 2.0, name="P")
C = te.compute((10, 12), lambda x, y: P[x, y] + 1.0, name="C")
R = te.compute((10,), lambda i: te.sum(C[i, k], axis=k), name="R")
x, y = C.op.axis

THREADS = (
    "blockIdx.x, blockIdx.y, blockIdx.z, threadIdx.x, threadIdx.y, threadIdx.z, vthread, "
    "vthread.x, vthread.y, vthread.z, and core.NAME for the axes of a target's grid"
)


def one_split(s: Schedule) -> None:
    s[C].split(y, factor=4)


def one_fuse(s: Schedule) -> None:
    s[C].fuse(x, y)


def one_layout(s: Schedule) -> None:
    s[C].transform_layout(lambda a, b: [b, a])


def nothing(s: Schedule) -> None:
    assert s.trace.steps == ()


Case = tuple[Callable[[Schedule], None], Callable[[Schedule], object], Diagnostic]

REFUSED: dict[str, Case] = {
    "factor 0": (
        nothing,
        lambda s: s[C].split(y, factor=0),
        Diagnostic("invalid-value", where="s[C].split(y)", subject="factor", number=0),
    ),
    "a tail of another name": (
        nothing,
        lambda s: s[C].split(y, factor=4, tail="shift"),
        Diagnostic("unknown-choice", where="s[C].split(y)", tail="shift"),
    ),
    "a shifted tail of a reduction": (
        nothing,
        lambda s: s[R].split(R.op.axis[0], factor=4, tail="shift_inwards"),
        Diagnostic("not-parallelizable", where="s[R].split(i)", option="tail='shift_inwards'", stage="R"),
    ),
    "a shifted tail of places": (
        one_layout,
        lambda s: s[C].split(s[C].leaf_iter_vars[0], factor=4, tail="shift_inwards"),
        Diagnostic("conflicting-options", where="s[C].split(y)", option="tail='shift_inwards'"),
    ),
    "a shifted tail of parts": (
        nothing,
        lambda s: s[C].split(y, nparts=5, tail="shift_inwards"),
        Diagnostic("conflicting-options", where="s[C].split(y)", option="tail='shift_inwards'"),
    ),
    "a shifted tail longer than the loop": (
        nothing,
        lambda s: s[C].split(x, factor=11, tail="shift_inwards"),
        Diagnostic(
            "invalid-value", where="s[C].split(x)", option="tail='shift_inwards'", factor=11,
            axis="x", extent=10,
        ),
    ),
    "negative factor": (
        nothing,
        lambda s: s[C].split(y, factor=-4),
        Diagnostic("invalid-value", where="s[C].split(y)", subject="factor", number=-4),
    ),
    "a factor beyond all integers": (
        nothing,
        lambda s: s[C].split(y, factor=2**63),
        Diagnostic("limit-exceeded", where="s[C].split(y)", subject="factor", number=9223372036854775808),
    ),
    "nparts 0": (
        nothing,
        lambda s: s[C].split(y, nparts=0),
        Diagnostic("invalid-value", where="s[C].split(y)", subject="nparts", number=0),
    ),
    "float factor": (
        nothing,
        lambda s: s[C].split(y, factor=2.5),  # type: ignore[arg-type]
        Diagnostic("invalid-value", where="s[C].split(y)", subject="factor", value=2.5),
    ),
    "bool factor": (
        nothing,
        lambda s: s[C].split(y, factor=True),
        Diagnostic("invalid-value", where="s[C].split(y)", subject="factor", value=True),
    ),
    "factor of a constant 0": (
        nothing,
        lambda s: s[C].split(y, factor=te.const(0, "int32")),
        Diagnostic("invalid-value", where="s[C].split(y)", subject="factor", number=0),
    ),
    "float expression as a factor": (
        nothing,
        lambda s: s[C].split(y, factor=te.const(2.0)),
        Diagnostic("invalid-value", where="s[C].split(y)", subject="factor", value="float32(2.0)"),
    ),
    "factor and nparts": (
        nothing,
        lambda s: s[C].split(y, factor=2, nparts=3),
        Diagnostic("conflicting-options", where="s[C].split(y)", value="both"),
    ),
    "neither factor nor nparts": (
        nothing,
        lambda s: s[C].split(y),
        Diagnostic("conflicting-options", where="s[C].split(y)", value="neither"),
    ),
    "split of another stage's axis": (
        nothing,
        lambda s: s[C].split(P.op.axis[0], factor=2),
        Diagnostic(
            "unknown-loop", stage="C", call="split",
            reason="axis i does not belong to C; its loops are now x, y",
        ),
    ),
    "split of a reduction axis of another stage": (
        nothing,
        lambda s: s[C].split(k, factor=2),
        Diagnostic(
            "unknown-loop", stage="C", call="split",
            reason="axis k does not belong to C; its loops are now x, y",
        ),
    ),
    "split of a split axis": (
        one_split,
        lambda s: s[C].split(y, factor=2),
        Diagnostic(
            "unknown-loop", stage="C", call="split",
            reason="axis y was split into y.outer and y.inner already; its loops are now x, y.outer, y.inner",
        ),
    ),
    "split of a fused axis": (
        one_fuse,
        lambda s: s[C].split(x, factor=2),
        Diagnostic(
            "unknown-loop", stage="C", call="split",
            reason="axis x was fused into x.y.fused already; its loops are now x.y.fused",
        ),
    ),
    "split of an axis from before a layout": (
        one_layout,
        lambda s: s[C].split(x, factor=2),
        Diagnostic(
            "unknown-loop", stage="C", call="split",
            reason="axis x was replaced by y, x in transform_layout; use the axes that it returned",
        ),
    ),
    "split of a number": (
        nothing,
        lambda s: s[C].split(1, factor=2),  # type: ignore[arg-type]
        Diagnostic(
            "unknown-loop", stage="C", call="split", axis=1, leaves="x, y",
            hint="take them from s[C].leaf_iter_vars",
        ),
    ),
    "split of a tensor": (
        nothing,
        lambda s: s[C].split(P, factor=2),  # type: ignore[arg-type]
        Diagnostic(
            "unknown-loop", stage="C", call="split",
            axis="Tensor(P, shape=(10, 12), dtype=float32)", leaves="x, y",
            hint="take them from s[C].leaf_iter_vars",
        ),
    ),
    "reorder of a list": (
        nothing,
        lambda s: s[C].reorder([y, x]),  # type: ignore[arg-type]
        Diagnostic(
            "unknown-loop", stage="C", call="reorder", axis="[y, x]", leaves="x, y",
            hint="pass loops one by one, without a list",
        ),
    ),
    "split of a placeholder": (
        nothing,
        lambda s: s[A].split(x, factor=2),
        Diagnostic("unknown-loop", name="A"),
    ),
    "tile of one axis": (
        nothing,
        lambda s: s[C].tile(x, x, 2, 2),
        Diagnostic("duplicate-argument", name="C", x_parent="x", y_parent="x"),
    ),
    "tile by 0": (
        nothing,
        lambda s: s[C].tile(x, y, 2, 0),
        Diagnostic("invalid-value", where="s[C].split(y)", subject="factor", number=0),
    ),
    "fuse of loops in the wrong order": (
        nothing,
        lambda s: s[C].fuse(y, x),
        Diagnostic("not-nested", stage="C", axes="y, x", loops="x, y"),
    ),
    "fuse of loops that are apart": (
        one_split,
        lambda s: s[C].fuse(x, s[C].leaf_iter_vars[2]),
        Diagnostic("not-nested", stage="C", axes="x, y.inner", loops="x, y.outer, y.inner"),
    ),
    "fuse of one loop with itself": (
        nothing,
        lambda s: s[C].fuse(x, x),
        Diagnostic("not-nested", stage="C", axes="x, x", loops="x, y"),
    ),
    "fuse of a split axis": (
        one_split,
        lambda s: s[C].fuse(x, y),
        Diagnostic(
            "unknown-loop", stage="C", call="fuse",
            reason="axis y was split into y.outer and y.inner already; its loops are now x, y.outer, y.inner",
        ),
    ),
    "fuse of nothing in a placeholder": (
        nothing,
        lambda s: s[A].fuse(),
        Diagnostic("unknown-loop", name="A"),
    ),
    "reorder with an axis twice": (
        nothing,
        lambda s: s[C].reorder(x, y, x),
        Diagnostic("duplicate-argument", stage="C", axes="x, y, x", axis="x"),
    ),
    "reorder of another stage's axis": (
        nothing,
        lambda s: s[C].reorder(x, P.op.axis[1]),
        Diagnostic(
            "unknown-loop", stage="C", call="reorder",
            reason="axis j does not belong to C; its loops are now x, y",
        ),
    ),
    "vectorize of a reduction": (
        nothing,
        lambda s: s[R].vectorize(k),
        Diagnostic("not-parallelizable", stage="R", call="vectorize", axis="k"),
    ),
    "parallel on a reduction": (
        nothing,
        lambda s: s[R].parallel(k),
        Diagnostic("not-parallelizable", stage="R", call="parallel", axis="k"),
    ),
    "parallel on data fused with a reduction": (
        nothing,
        lambda s: s[R].bind(k, "blockIdx.x"),
        Diagnostic(
            "not-parallelizable", where="s[R].bind(k)", axis="k", caller="blocks",
            remedy=", or bind it to threadIdx.x",
        ),
    ),
    "vectorize of a split axis": (
        one_split,
        lambda s: s[C].vectorize(y),
        Diagnostic(
            "unknown-loop", stage="C", call="vectorize",
            reason="axis y was split into y.outer and y.inner already; its loops are now x, y.outer, y.inner",
        ),
    ),
    "unroll of a fused axis": (
        one_fuse,
        lambda s: s[C].unroll(y),
        Diagnostic(
            "unknown-loop", stage="C", call="unroll",
            reason="axis y was fused into x.y.fused already; its loops are now x.y.fused",
        ),
    ),
    "parallel on another stage's axis": (
        nothing,
        lambda s: s[P].parallel(x),
        Diagnostic(
            "unknown-loop", stage="P", call="parallel",
            reason="axis x does not belong to P; its loops are now i, j",
        ),
    ),
    "a thread axis that does not exist": (
        nothing,
        lambda s: te.thread_axis((0, 4), "warpIdx.x"),
        Diagnostic(
            "thread-axis", where="te.thread_axis", tag="warpIdx.x",
            blocks="blockIdx.x, blockIdx.y, blockIdx.z, threadIdx.x, threadIdx.y, threadIdx.z, vthread, vthread.x, vthread.y, vthread.z",
        ),
    ),
    "bind to another number of threads": (
        nothing,
        lambda s: s[C].bind(x, te.thread_axis(32, "threadIdx.x")),
        Diagnostic("thread-axis", stage="C", axis="x", tag="threadIdx.x", threads=32, extent=10),
    ),
    "a thread axis without a tag": (
        nothing,
        lambda s: te.thread_axis(32),
        Diagnostic(
            "thread-axis", where="te.thread_axis", tag="",
            blocks="blockIdx.x, blockIdx.y, blockIdx.z, threadIdx.x, threadIdx.y, threadIdx.z, vthread, vthread.x, vthread.y, vthread.z",
        ),
    ),
    "a thread axis of a broken number of threads": (
        nothing,
        lambda s: te.thread_axis(3.5, "threadIdx.x"),  # type: ignore[arg-type]
        Diagnostic("thread-axis", tag="threadIdx.x", dom=3.5),
    ),
    "bind of a number": (
        nothing,
        lambda s: s[C].bind(x, 32),  # type: ignore[arg-type]
        Diagnostic(
            "thread-axis", where="s[C].bind(x)", tag=32,
            blocks="blockIdx.x, blockIdx.y, blockIdx.z, threadIdx.x, threadIdx.y, threadIdx.z, vthread, vthread.x, vthread.y, vthread.z",
        ),
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case: str, refusal: Any) -> None:
    before, action, expected = REFUSED[case]
    s = te.create_schedule(R)
    before(s)

    error = refusal(s, lambda: action(s))

    assert isinstance(error, ScheduleError)
    assert diagnostic(error) == expected
    assert error.location is not None
    assert Path(error.location.file) == Path(__file__)


def test_the_place_in_the_source_is_shown(refusal: Any) -> None:
    s = te.create_schedule(R)

    def action() -> None:
        s[C].split(y, factor=0)

    error = refusal(s, action)

    line = action.__code__.co_firstlineno + 1
    assert str(error) == (
        "s[C].split(y): factor must be a positive integer, got 0\n"
        f"  at {__file__}:{line}\n"
        "    s[C].split(y, factor=0)\n"
        "    ^^^^^^^^^^^^^^^^^^^^^^^\n"
        "  TE0006: `tecomp explain TE0006` tells more"
    )


def test_an_axis_of_a_tensor_with_an_equal_definition_is_another_axis(refusal: Any) -> None:
    def make() -> Tensor:
        return te.compute((10, 12), lambda i, j: A[i, j] * 2.0, name="P")

    first, second = make(), make()
    s = te.create_schedule(first)

    error = refusal(s, lambda: s[first].split(second.op.axis[0], factor=2))

    assert diagnostic(error) == (
        Diagnostic(
            "unknown-loop", stage="P", call="split",
            reason="axis i does not belong to P; its loops are now i, j, where i is another axis of that name; use that",
        )
    )
