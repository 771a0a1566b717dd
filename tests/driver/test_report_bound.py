"""The report of a processor is a lower bound of the time that a kernel takes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import tecomp
from tecomp import te
from tecomp.cost_model.report import Report
from tecomp.driver.build import ScheduledKernel
from tecomp.machine.host import host_clock, host_cores
from tecomp.schedules import matmul, softmax

TIMER_NOISE = 1.02


def plain_product(*, is_parallel: bool) -> ScheduledKernel:
    A = te.placeholder((256, 256), name="A")
    B = te.placeholder((256, 256), name="B")
    k = te.reduce_axis((0, 256), name="k")
    C = te.compute((256, 256), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")
    s = te.create_schedule(C.op)
    i, j = s[C].op.axis
    outer, _, inner, last = s[C].tile(i, j, 8, 32)
    s[C].reorder(outer, k, inner, last)
    s[C].vectorize(last)
    if is_parallel:
        s[C].parallel(outer)
    return tecomp.build(s, [A, B, C])


def best_product(dtype: str) -> ScheduledKernel:
    A = te.placeholder((512, 512), dtype, name="A")
    B = te.placeholder((512, 512), dtype, name="B")
    C = matmul.define(A, B)
    return tecomp.build(matmul.schedule(C, tecomp.Target.load("cpu")), [A, B, C])


def elementwise(dtype: str) -> ScheduledKernel:
    A = te.placeholder((64, 1024), dtype, name="A")
    B = te.compute((64, 1024), lambda i, j: (A[i, j] + A[i, j]) * A[i, j] + A[i, j], name="B")
    s = te.create_schedule(B.op)
    _, inner = s[B].split(B.op.axis[1], 64)
    s[B].vectorize(inner)
    return tecomp.build(s, [A, B])


def sums() -> ScheduledKernel:
    A = te.placeholder((64, 1024), name="A")
    k = te.reduce_axis((0, 64), name="k")
    B = te.compute((1024,), lambda j: te.sum(A[k, j], axis=k), name="B")
    return tecomp.build(te.create_schedule(B.op), [A, B])


def rows() -> ScheduledKernel:
    A = te.placeholder((512, 512), name="A")
    B = softmax.define(A)
    return tecomp.build(softmax.schedule(B, tecomp.Target.load("cpu")), [A, B])


KERNELS: dict[str, Callable[[], ScheduledKernel]] = {
    "plain product": lambda: plain_product(is_parallel=False),
    "parallel product": lambda: plain_product(is_parallel=True),
    "best product": lambda: best_product("float32"),
    "best product of doubles": lambda: best_product("float64"),
    "elementwise": lambda: elementwise("float32"),
    "elementwise bytes": lambda: elementwise("int8"),
    "sums": sums,
    "softmax": rows,
}


@pytest.mark.skipif(host_clock() is None, reason="the system does not tell the clock")
@pytest.mark.parametrize("name", KERNELS)
def test_no_kernel_is_quicker_than_its_report(name: str) -> None:
    kernel = KERNELS[name]()
    arguments = [np.ones([int(str(n)) for n in shape], np.dtype(str(p.dtype)))
                 for shape, p in zip(kernel.shapes.values(), kernel.signature, strict=True)]
    measured = kernel.timeit(*arguments, seconds=0.1).min
    modelled = kernel.report().seconds

    assert modelled is not None
    assert 0 < modelled <= measured * TIMER_NOISE


def report_of(count: int, extent: int) -> Report:
    """Of a sum in a parallel loop of so many iterations, and of one that is not, on so many cores."""
    target = tecomp.Target.load("cpu", core={"count": count, "vector_bytes": 32}, clock_hz=1e9)
    A = te.placeholder((extent, 64), name="A")
    B = te.compute((extent, 64), lambda i, j: A[i, j] + 1.0, name="B")
    C = te.compute((extent, 64), lambda i, j: B[i, j] * 2.0, name="C")
    s = te.create_schedule(C.op)
    s[B].parallel(B.op.axis[0])
    return tecomp.build(s, [A, C], target=target).report()


@pytest.mark.parametrize(("count", "extent", "used"), [(4, 16, 4), (4, 3, 3), (1, 16, 1)])
def test_cores_share_parallel_loops(count: int, extent: int, used: int) -> None:
    report = report_of(count, extent)
    operations = extent * 64

    assert len(report.cores) == used
    # Four operations a cycle on vectors of eight; the second loop is that of one core.
    assert sorted(core.cycles["compute"] for core in report.cores) == [
        *[operations / used / 32] * (used - 1), operations / used / 32 + operations / 32]
    assert sum(core.operations for core in report.cores) == 2 * operations
    assert report.seconds == report.cycles / 1e9
    assert report.shares == {"compute": 1.0}
    assert sum(report.traffic[0].per_core) == report.traffic[0].bytes


def test_the_target_has_the_clock_of_the_machine() -> None:
    target = tecomp.Target.load("cpu")

    assert target.clock_hz == host_clock()
    assert target.cores == host_cores()
