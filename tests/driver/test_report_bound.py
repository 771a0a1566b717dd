"""The report for a CPU is a lower bound of the time of a kernel."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tecomp
from tecomp import te
from tecomp.cost_model import CostReport
from tecomp.driver import ScheduledKernel
from tecomp.machine import host_clock, host_cores
from tecomp.schedules import matmul, softmax
from tests.strategies.draws import Dice, Draws

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


def seconds_of(kernel: ScheduledKernel) -> tuple[float, float]:
    """Return the modelled time and the minimum of the measured times."""
    arguments = [np.ones([int(str(n)) for n in shape], np.dtype(str(p.dtype)))
                 for shape, p in zip(kernel.shapes.values(), kernel.signature, strict=True)]
    measured = kernel.timeit(*arguments, seconds=0.1).min
    modelled = kernel.report().seconds
    assert modelled is not None
    return modelled, measured


@pytest.mark.exhaustive(keep=3)
@pytest.mark.skipif(host_clock() is None, reason="the system does not tell the clock")
@pytest.mark.parametrize("name", KERNELS)
def test_reports_are_lower_bounds(name: str) -> None:
    modelled, measured = seconds_of(KERNELS[name]())

    assert 0 < modelled <= measured * TIMER_NOISE


FORMULAS: dict[str, Callable[..., te.Expr]] = {
    "copy": lambda a, b: a,
    "add": lambda a, b: a + b,
    "polynomial": lambda a, b: (a * a + b) * a + b,
    "exp": lambda a, b: te.exp(a) + b,
    "tanh": lambda a, b: te.tanh(a * b),
}


def drawn(seed: int, target: tecomp.Target) -> ScheduledKernel:
    """Draw an elementwise kernel or a sum, whose arguments fit one of the caches or none."""
    d = Draws(Dice(seed=seed))
    size = d.pick((1000, 6000, 40_000, 300_000, 2_000_000, 12_000_000)) + d.below(100)
    dtype, formula = d.pick(("float32", "float64")), FORMULAS[d.pick([*FORMULAS])]
    A, B = (te.placeholder((size,), dtype, name=name) for name in "AB")
    if d.chance(25):
        k = te.reduce_axis((0, size), name="k")
        C = te.compute((1,), lambda i: te.sum(formula(A[k], B[k]), axis=k), name="C")
    else:
        C = te.compute((size,), lambda i: formula(A[i], B[i]), name="C")
    if d.chance(50):
        return tecomp.build(C, [A, B, C], target=target)
    s = te.create_schedule(C)
    if len(s[C].op.reduce_axis) == 0:
        s[C].vectorize(s[C].split(s[C].op.axis[0], 64)[1])
    return tecomp.build(s, [A, B, C], target=target)


@pytest.mark.exhaustive(keep=3)
@pytest.mark.skipif(host_clock() is None, reason="the system does not tell the clock")
@pytest.mark.parametrize("is_calibrated", [False, True])
@pytest.mark.parametrize("seed", range(24))
def test_reports_are_lower_bounds_for_random_kernels(seed: int, *, is_calibrated: bool) -> None:
    plain = tecomp.Target.load("cpu")
    modelled, measured = seconds_of(drawn(seed, tecomp.calibrate(plain) if is_calibrated else plain))

    assert 0 < modelled <= measured * TIMER_NOISE


def addition(size: int, **tables: Any) -> CostReport:
    """Return the report of a float32 vector sum on a fictitious core with 8 lanes at 1 GHz."""
    target = tecomp.Target.load(
        "cpu", clock_hz=1e9, grid={"core.x": 2}, core={
            "count": 2, "vector_bytes": 32, "cache_bytes": [32768, 1 << 20, 1 << 25],
        }, **tables)
    A, B = (te.placeholder((size,), name=name) for name in "AB")
    C = te.compute((size,), lambda i: A[i] + B[i], name="C")
    s = te.create_schedule(C)
    outer, _ = s[C].split(C.op.axis[0], nparts=2)
    s[C].parallel(outer)
    return tecomp.build(s, [A, B, C], target=target).report()


RATES = {"read_bytes_per_second": [1e11, 5e10, 3e10, 1e10], "flops": {"float32": 6e10}, "source": "x"}


@pytest.mark.parametrize(("size", "resource", "cycles"), [
    # Per core: bytes that exceed the previous caches, divided by the rate of the level.
    (1 << 10, "L1", (1 << 12) / 128),
    (1 << 17, "L2", ((1 << 19) - (1 << 15)) / 64),
    (1 << 20, "L3", ((1 << 22) - (1 << 20)) / 48),
    (1 << 26, "memory", ((1 << 28) - (1 << 24)) / 32),
])
def test_the_level_that_binds_is_named(size: int, resource: str, cycles: float) -> None:
    report = addition(size)

    assert report.bound_by == resource
    assert report.cycles == pytest.approx(cycles)
    assert report.shares[resource] == 1.0
    assert report.makespan >= report.cycles
    assert f"bound by {resource}" in str(report)


def test_measured_rates_of_memory_bind_more() -> None:
    """10 GB/s are 10 bytes per cycle; the last cache may already hold part of each core's half."""
    report = addition(1 << 26, rates=RATES)

    assert report.bound_by == "memory"
    assert report.cycles == pytest.approx(((1 << 28) - (1 << 25)) / 10)
    assert addition(1 << 20, rates=RATES).cycles == addition(1 << 20).cycles


def test_67_million_elements_are_bound_by_memory() -> None:
    """The report of the host is bound by memory, with default and with measured rates."""
    caches = sum((tecomp.Target.load("cpu").core or tecomp.Core(1, 16, 16, (1,))).cache_bytes)
    if caches > 1 << 27:
        pytest.skip("the caches hold the arguments")
    A, B = (te.placeholder((8192, 8192), name=name) for name in "AB")
    C = te.compute((8192, 8192), lambda i, j: A[i, j] + B[i, j], name="C")
    for target in (tecomp.Target.load("cpu"), tecomp.calibrate()):
        report = tecomp.build(C, [A, B, C], target=target).report()

        assert report.bound_by == "memory"
        # 536 MB are read; vectors of 64 bytes compute for at most a tenth of the time.
        assert target.core is not None
        assert report.shares["compute"] < 6.4 / target.core.vector_bytes


def test_repeated_elements_are_moved_once() -> None:
    A = te.placeholder((64, 4096), name="A")
    C = te.compute((64, 4096), lambda i, j: A[0, j] + 1.0, name="C")
    target = tecomp.Target.load("cpu", core={"vector_bytes": 32}, clock_hz=1e9)
    report = tecomp.build(te.create_schedule(C), [A, C], target=target).report()

    # One row is read; more bytes are written.
    assert report.shares["L1"] * report.cycles == pytest.approx(64 * 4096 * 4 / 128)


def report_of(count: int, extent: int) -> CostReport:
    """Return the report of a parallel and a serial loop of `extent` iterations on `count` cores."""
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
    # Four operations per cycle on vectors of eight; one core runs the second loop.
    assert sorted(core.cycles["compute"] for core in report.cores) == [
        *[operations / used / 32] * (used - 1), operations / used / 32 + operations / 32]
    assert sum(core.operations for core in report.cores) == 2 * operations
    assert report.seconds == report.cycles / 1e9
    assert report.bound_by == "compute"
    assert sum(report.traffic[0].per_core) == report.traffic[0].bytes


def test_the_target_has_the_clock_of_the_machine() -> None:
    target = tecomp.Target.load("cpu")

    assert target.clock_hz == host_clock()
    assert target.cores == host_cores()
