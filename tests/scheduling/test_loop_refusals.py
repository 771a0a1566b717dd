"""What split, tile, fuse, reorder and marks refuse, word for word."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tecomp import te
from tecomp.compute.tensor import Tensor
from tecomp.errors import ScheduleError
from tecomp.scheduling.schedule import Schedule

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


Case = tuple[Callable[[Schedule], None], Callable[[Schedule], object], str]

REFUSED: dict[str, Case] = {
    "factor 0": (
        nothing,
        lambda s: s[C].split(y, factor=0),
        "s[C].split(y): factor must be a positive integer, got 0",
    ),
    "a tail of another name": (
        nothing,
        lambda s: s[C].split(y, factor=4, tail="shift"),
        "s[C].split(y): tail is 'guard' or 'shift_inwards', not 'shift'",
    ),
    "a shifted tail of a reduction": (
        nothing,
        lambda s: s[R].split(R.op.axis[0], factor=4, tail="shift_inwards"),
        "s[R].split(i): tail='shift_inwards' computes some elements twice, which R does not allow: it "
        "adds to elements, or reads those before; leave it out, and the last part is guarded",
    ),
    "a shifted tail of places": (
        one_layout,
        lambda s: s[C].split(s[C].leaf_iter_vars[0], factor=4, tail="shift_inwards"),
        "s[C].split(y): tail='shift_inwards' is for axes of the tensor, but transform_layout made "
        "new loops; give it loops='logical', or leave it out",
    ),
    "a shifted tail of parts": (
        nothing,
        lambda s: s[C].split(y, nparts=5, tail="shift_inwards"),
        "s[C].split(y): tail='shift_inwards' makes parts of one length; give that as factor=",
    ),
    "a shifted tail longer than the loop": (
        nothing,
        lambda s: s[C].split(x, factor=11, tail="shift_inwards"),
        "s[C].split(x): tail='shift_inwards' takes a part of 11 iterations, but x runs 10 times, "
        "which is not known to be as many; take a smaller factor, or leave it out",
    ),
    "negative factor": (
        nothing,
        lambda s: s[C].split(y, factor=-4),
        "s[C].split(y): factor must be a positive integer, got -4",
    ),
    "a factor beyond all integers": (
        nothing,
        lambda s: s[C].split(y, factor=2**63),
        "s[C].split(y): factor must be less than 2**63, got 9223372036854775808",
    ),
    "nparts 0": (
        nothing,
        lambda s: s[C].split(y, nparts=0),
        "s[C].split(y): nparts must be a positive integer, got 0",
    ),
    "float factor": (
        nothing,
        lambda s: s[C].split(y, factor=2.5),  # type: ignore[arg-type]
        "s[C].split(y): factor must be a positive integer, got 2.5",
    ),
    "bool factor": (
        nothing,
        lambda s: s[C].split(y, factor=True),
        "s[C].split(y): factor must be a positive integer, got True",
    ),
    "factor of a constant 0": (
        nothing,
        lambda s: s[C].split(y, factor=te.const(0, "int32")),
        "s[C].split(y): factor must be a positive integer, got 0",
    ),
    "float expression as a factor": (
        nothing,
        lambda s: s[C].split(y, factor=te.const(2.0)),
        "s[C].split(y): factor must be a positive integer, got float32(2.0)",
    ),
    "factor and nparts": (
        nothing,
        lambda s: s[C].split(y, factor=2, nparts=3),
        "s[C].split(y): give exactly one of factor= and nparts=, got both",
    ),
    "neither factor nor nparts": (
        nothing,
        lambda s: s[C].split(y),
        "s[C].split(y): give exactly one of factor= and nparts=, got neither",
    ),
    "split of another stage's axis": (
        nothing,
        lambda s: s[C].split(P.op.axis[0], factor=2),
        "s[C].split: axis i does not belong to C; its loops are now x, y",
    ),
    "split of a reduction axis of another stage": (
        nothing,
        lambda s: s[C].split(k, factor=2),
        "s[C].split: axis k does not belong to C; its loops are now x, y",
    ),
    "split of a split axis": (
        one_split,
        lambda s: s[C].split(y, factor=2),
        "s[C].split: axis y was split into y.outer and y.inner already; its loops are now "
        "x, y.outer, y.inner",
    ),
    "split of a fused axis": (
        one_fuse,
        lambda s: s[C].split(x, factor=2),
        "s[C].split: axis x was fused into x.y.fused already; its loops are now x.y.fused",
    ),
    "split of an axis from before a layout": (
        one_layout,
        lambda s: s[C].split(x, factor=2),
        "s[C].split: axis x was replaced by y, x in transform_layout; use the axes that it "
        "returned",
    ),
    "split of a number": (
        nothing,
        lambda s: s[C].split(1, factor=2),  # type: ignore[arg-type]
        "s[C].split: expected an axis of C, got 1; the loops are x, y: take them from "
        "s[C].leaf_iter_vars",
    ),
    "split of a tensor": (
        nothing,
        lambda s: s[C].split(P, factor=2),  # type: ignore[arg-type]
        "s[C].split: expected an axis of C, got Tensor(P, shape=(10, 12), dtype=float32); the "
        "loops are x, y: take them from s[C].leaf_iter_vars",
    ),
    "reorder of a list": (
        nothing,
        lambda s: s[C].reorder([y, x]),  # type: ignore[arg-type]
        "s[C].reorder: expected an axis of C, got [y, x]; the loops are x, y: pass loops one by "
        "one, without a list",
    ),
    "split of a placeholder": (
        nothing,
        lambda s: s[A].split(x, factor=2),
        "s[A]: A is a placeholder; only computed stages have loops",
    ),
    "tile of one axis": (
        nothing,
        lambda s: s[C].tile(x, x, 2, 2),
        "s[C].tile(x, x): the two axes are one; use split for a single loop",
    ),
    "tile by 0": (
        nothing,
        lambda s: s[C].tile(x, y, 2, 0),
        "s[C].split(y): factor must be a positive integer, got 0",
    ),
    "fuse of loops in the wrong order": (
        nothing,
        lambda s: s[C].fuse(y, x),
        "s[C].fuse(y, x): the axes must be loops directly inside one another, outer to inner; the "
        "loops are x, y; reorder them first",
    ),
    "fuse of loops that are apart": (
        one_split,
        lambda s: s[C].fuse(x, s[C].leaf_iter_vars[2]),
        "s[C].fuse(x, y.inner): the axes must be loops directly inside one another, outer to "
        "inner; the loops are x, y.outer, y.inner; reorder them first",
    ),
    "fuse of one loop with itself": (
        nothing,
        lambda s: s[C].fuse(x, x),
        "s[C].fuse(x, x): the axes must be loops directly inside one another, outer to inner; the "
        "loops are x, y; reorder them first",
    ),
    "fuse of a split axis": (
        one_split,
        lambda s: s[C].fuse(x, y),
        "s[C].fuse: axis y was split into y.outer and y.inner already; its loops are now "
        "x, y.outer, y.inner",
    ),
    "fuse of nothing in a placeholder": (
        nothing,
        lambda s: s[A].fuse(),
        "s[A]: A is a placeholder; only computed stages have loops",
    ),
    "reorder with an axis twice": (
        nothing,
        lambda s: s[C].reorder(x, y, x),
        "s[C].reorder(x, y, x): x is named twice; name every loop once",
    ),
    "reorder of another stage's axis": (
        nothing,
        lambda s: s[C].reorder(x, P.op.axis[1]),
        "s[C].reorder: axis j does not belong to C; its loops are now x, y",
    ),
    "vectorize of a reduction": (
        nothing,
        lambda s: s[R].vectorize(k),
        "s[R].vectorize(k): k is a reduction axis, and its iterations update the same element of "
        "R; use rfactor to make partial results that can run side by side, then vectorize the "
        "axis of those",
    ),
    "parallel on a reduction": (
        nothing,
        lambda s: s[R].parallel(k),
        "s[R].parallel(k): k is a reduction axis, and its iterations update the same element of R; "
        "use rfactor to make partial results that can run side by side, then parallel the axis of "
        "those",
    ),
    "parallel on data fused with a reduction": (
        nothing,
        lambda s: s[R].bind(k, "blockIdx.x"),
        "s[R].bind(k): k is a reduction axis, and blocks cannot update one element together; use "
        "rfactor first, or bind it to threadIdx.x",
    ),
    "vectorize of a split axis": (
        one_split,
        lambda s: s[C].vectorize(y),
        "s[C].vectorize: axis y was split into y.outer and y.inner already; its loops are now "
        "x, y.outer, y.inner",
    ),
    "unroll of a fused axis": (
        one_fuse,
        lambda s: s[C].unroll(y),
        "s[C].unroll: axis y was fused into x.y.fused already; its loops are now x.y.fused",
    ),
    "parallel on another stage's axis": (
        nothing,
        lambda s: s[P].parallel(x),
        "s[P].parallel: axis x does not belong to P; its loops are now i, j",
    ),
    "a thread axis that does not exist": (
        nothing,
        lambda s: te.thread_axis((0, 4), "warpIdx.x"),
        f"te.thread_axis: there is no thread axis 'warpIdx.x'; they are {THREADS}",
    ),
    "bind to another number of threads": (
        nothing,
        lambda s: s[C].bind(x, te.thread_axis(32, "threadIdx.x")),
        "s[C].bind(x): threadIdx.x has 32 threads, but x runs 10 times; split it first, or give "
        "the thread axis no extent",
    ),
    "a thread axis without a tag": (
        nothing,
        lambda s: te.thread_axis(32),
        f"te.thread_axis: there is no thread axis ''; they are {THREADS}",
    ),
    "a thread axis of a broken number of threads": (
        nothing,
        lambda s: te.thread_axis(3.5, "threadIdx.x"),  # type: ignore[arg-type]
        "te.thread_axis threadIdx.x: the threads are 3.5; write how many there are, or (0, end)",
    ),
    "bind of a number": (
        nothing,
        lambda s: s[C].bind(x, 32),  # type: ignore[arg-type]
        f"s[C].bind(x): there is no thread axis 32; they are {THREADS}",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case: str, refusal: Any) -> None:
    before, action, message = REFUSED[case]
    s = te.create_schedule(R)
    before(s)

    error = refusal(s, lambda: action(s))

    assert isinstance(error, ScheduleError)
    assert error.message == message
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

    assert error.message == (
        "s[P].split: axis i does not belong to P; its loops are now i, j, where i is another axis of "
        "that name; take that"
    )
