"""Loops bound to the core grid run, and grid axes that the target lacks are rejected."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import tecomp
from tecomp import te
from tecomp.compute import Tensor
from tecomp.errors import CapacityError, ScheduleError, TargetError
from tecomp.ir import Expr, For, ForKind, walk
from tecomp.machine import Target
from tecomp.scheduling.schedule import Schedule
from tests.messages import Diagnostic, diagnostic

WORMHOLE = Target.load("tensix_wh")


def doubled(n: int | Expr = 40, m: int = 24) -> tuple[Tensor, Tensor]:
    A = te.placeholder((n, m), name="A")
    return A, te.compute((n, m), lambda i, j: A[i, j] * 2.0, name="B")


def test_cores_run_side_by_side() -> None:
    A, B = doubled()
    s = te.create_schedule(B.op)
    L = s.cache_read(A, "l1", [B])
    i, j = s[B].op.axis
    (io, ii), (jo, ji) = s[B].split(i, nparts=WORMHOLE.grid["core.y"]), s[B].split(j, factor=3)
    s[B].reorder(io, jo, ii, ji)
    s[B].bind(io, te.thread_axis("core.y"))
    s[B].bind(jo, te.thread_axis("core.x"))
    s[L].compute_at(s[B], jo)
    kernel = tecomp.build(s, [A, B], target="tensix_wh")
    a, b = np.random.default_rng(1).random((40, 24), "float32"), np.empty((40, 24), "float32")
    kernel(a, b)

    loops = [node for node in walk(kernel.lowered.final.body) if isinstance(node, For)]
    assert [str(loop.extent) for loop in loops if loop.kind is ForKind.PARALLEL] == ["8", "8"]
    np.testing.assert_array_equal(b, 2 * a)


def built(change: Callable[[Schedule, Tensor, Tensor], None], n: int | Expr = 40) -> None:
    A, B = doubled(n)
    s = te.create_schedule(B.op)
    change(s, A, B)
    tecomp.build(s, [A, B], target=WORMHOLE)


def too_many(s: Schedule, A: Tensor, B: Tensor) -> None:
    s[B].bind(s[B].op.axis[0], te.thread_axis("core.y"))


def no_such_axis(s: Schedule, A: Tensor, B: Tensor) -> None:
    s[B].bind(s[B].op.axis[0], te.thread_axis("core.z"))


def one_in_another(s: Schedule, A: Tensor, B: Tensor) -> None:
    L = s.cache_read(A, "l1", [B])
    outer, _ = s[B].split(s[B].op.axis[0], nparts=8)
    s[B].bind(outer, te.thread_axis("core.y"))
    s[L].compute_at(s[B], outer)
    s[L].bind(s[L].op.axis[0], te.thread_axis("core.y"))


def no_memory(s: Schedule, A: Tensor, B: Tensor) -> None:
    s.cache_read(A, "lx", [B])


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (too_many,
         Diagnostic(
             "cores", loop="s[B].bind(i)", axis="core.y", name="tensix_wh", cores="8 cores",
             extent=40, core_count=8,
         )),
        (no_such_axis,
         Diagnostic(
             "unsupported-by-target", loop="s[B].bind(i)", name="tensix_wh", axis="core.z",
             hint="did you mean `core.y`? ", axes="core.y (8), core.x (8)",
         )),
        (one_in_another,
         Diagnostic("cores", loop="s[A.l1].bind(ax0)", outer_loop="loop i.outer of B", tag="core.y")),
        (no_memory,
         Diagnostic(
             "unsupported-by-target", buffer="A_lx",
             problem="target tensix_wh has no memory `lx`; its memories are global, dram, l1, dst",
         )),
    ],
    ids=str.split("too-many none nested memory"),
)
def test_missing_grid_axes_are_rejected(
    change: Callable[[Schedule, Tensor, Tensor], None], expected: Diagnostic
) -> None:
    with pytest.raises(TargetError) as error:
        built(change)

    assert diagnostic(error.value) == expected


def test_an_axis_of_one_core() -> None:
    target = Target.load("stick128").overridden(grid={"core.x": 1})

    with pytest.raises(TargetError) as error:
        target.check_axis("core.x", 2, "s[B].bind(i)")

    assert diagnostic(error.value) == (
        Diagnostic(
            "cores", loop="s[B].bind(i)", axis="core.x", name="stick128", cores="1 core",
            extent=2, core_count=1,
        )
    )


def test_a_loop_of_unknown_length_is_refused() -> None:
    with pytest.raises(TargetError) as error:
        built(too_many, te.var("n"))

    assert diagnostic(error.value) == (
        Diagnostic(
            "cores", loop="s[B].bind(i)", axis="core.y", name="tensix_wh", cores="8 cores",
            core_count=8,
        )
    )


def test_a_target_without_a_grid() -> None:
    A, B = doubled()
    s = te.create_schedule(B.op)
    s[B].bind(s[B].op.axis[0], te.thread_axis("core.x"))
    with pytest.raises(TargetError) as error:
        tecomp.build(s, [A, B], target=Target.load("cpu").overridden(grid=None))

    assert diagnostic(error.value) == (
        Diagnostic(
            "unsupported-by-target", loop="s[B].bind(i)", name="cpu", axis="core.x", hint="", axes="none",
        )
    )


def test_two_loops_of_one_axis_are_refused() -> None:
    _, B = doubled()
    s = te.create_schedule(B.op)
    i, j = s[B].op.axis
    s[B].bind(i, te.thread_axis("core.x"))
    with pytest.raises(ScheduleError) as error:
        s[B].bind(j, te.thread_axis("core.x"))

    assert diagnostic(error.value) == (
        Diagnostic("thread-axis", where="s[B].bind(j)", tag="core.x", other="i")
    )


def test_cores_do_not_share_a_reduction() -> None:
    A = te.placeholder((8, 8), name="A")
    k = te.reduce_axis((0, 8), name="k")
    R = te.compute((8,), lambda i: te.sum(A[i, k], axis=k), name="R")
    with pytest.raises(ScheduleError) as error:
        te.create_schedule(R.op)[R].bind(k, te.thread_axis("core.x"))

    assert diagnostic(error.value) == (
        Diagnostic("not-parallelizable", where="s[R].bind(k)", axis="k", caller="cores", remedy="")
    )


def test_a_buffer_is_refused_at_one_byte_more() -> None:
    room = Target.load("stick128").memory("lx").usable_bytes
    assert room is not None
    for more in (0, 1):
        A = te.placeholder((room + more,), name="A", dtype="int8")
        B = te.compute(A.shape, lambda i, A=A: A[i], name="B")
        C = te.compute(A.shape, lambda i, B=B: B[i], name="C")
        s = te.create_schedule(C.op)
        s[B].set_scope("lx")
        if not more:
            assert tecomp.build(s, [A, C], target="stick128").name == "main"
            continue
        with pytest.raises(CapacityError) as error:
            tecomp.build(s, [A, C], target="stick128")

        assert diagnostic(error.value) == (
            Diagnostic(
                "capacity", final="main", memory="lx", scope=" of each core", target="stick128",
                limit=room, need=room + 1, named="B: int8[2031617], 2031617 bytes",
                remedy="use smaller tiles, or compute it closer to where it is used",
            )
        )
