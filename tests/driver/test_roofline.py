"""`kernel.roofline`: the position of a kernel, the roofs above it, and the text about both."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tecomp
from tecomp import te
from tecomp.driver import ScheduledKernel, profiling
from tecomp.errors import CallError
from tests.messages import Diagnostic, diagnostic
from tests.properties.test_timeline import demo

CPU = tecomp.Target.load(
    "cpu", grid={"core.x": 4}, clock_hz=1e9,
    core={"count": 4, "cache_bytes": [1 << 15, 1 << 20], "vector_bytes": 32},
    rates={"read_bytes_per_second": [2e11, 1e11, 2e10], "flops": {"float32": 1e11, "float64": 5e10},
           "scalar_flops": {"float32": 1e10}, "source": "made up"},
)


def product(n: int, dtype: str = "float32", *, is_parallel: bool = False, **options: Any) -> ScheduledKernel:
    A, B = (te.placeholder((n, n), dtype, name=name) for name in "AB")
    k = te.reduce_axis((0, n), name="k")
    C = te.compute((n, n), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")
    s = te.create_schedule(C)
    if is_parallel:
        s[C].parallel(C.op.axis[0])
    return tecomp.build(s, [A, B, C], **{"target": CPU, **options})


def test_compulsory_traffic_is_bound_by_the_smallest_fitting_cache() -> None:
    """A 32 x 32 matrix has 4 KB; three of them fit the first cache, but not three of 64 x 64."""
    for n, memory in ((32, "L1"), (64, "L2"), (512, "memory")):
        found = product(n).roofline()
        (mark,) = found.marks

        assert mark.intensity == 2 * n**3 / (3 * 4 * n * n)
        assert (mark.memory, mark.kernel, mark.is_measured) == (memory, "main", False)
        rate = {"L1": 2e11, "L2": 1e11, "memory": 2e10}[memory]
        assert mark.speed == mark.bound == pytest.approx(min(1e11, mark.intensity * rate))
        assert [(roof.title, roof.rate) for roof in found.compute] == [
            ("float32 vector", 1e11), ("float32 scalar", 1e10)]
        assert [(roof.title, roof.rate) for roof in found.memories] == [
            ("L1", 2e11), ("L2", 1e11), ("memory", 2e10)]


def test_several_cores_have_roofs_of_their_own() -> None:
    found = product(64, is_parallel=True).roofline()
    (mark,) = found.marks

    assert ("float32 vector, 4 cores", 4e11) in [(roof.title, roof.rate) for roof in found.compute]
    # The first cache of each core holds a quarter of the matrices.
    assert ("L1, 4 cores", 8e11) in [(roof.title, roof.rate) for roof in found.memories]
    assert mark.bound == 4e11


def test_a_measured_kernel_is_at_its_measured_rate() -> None:
    kernel = product(32)
    a, b, c = np.ones((3, 32, 32), "float32")
    (mark,) = kernel.roofline(a, b, c, measured=True, label="naive").marks

    assert (mark.kernel, mark.is_measured, mark.memory) == ("naive", True, "L1")
    assert mark.speed > 0
    np.testing.assert_array_equal(c, a @ b)


def test_roofline_sizes_from_arguments_or_names() -> None:
    n = te.var("n")
    A = te.placeholder((n,), name="A")
    B = te.compute((n,), lambda i: A[i] * A[i] + A[i], name="B")
    kernel = tecomp.build(te.create_schedule(B), [A, B], target=CPU)
    a, b = np.ones((2, 4096), "float32")

    assert [mark.intensity for mark in kernel.roofline(n=4096).marks] == [0.25]
    assert [mark.memory for mark in kernel.roofline(a, b, measured=True).marks] == ["L1"]
    assert [mark.memory for mark in kernel.roofline(measured=True, n=10**5).marks] == ["L2"]


def test_only_touched_bytes_count() -> None:
    A = te.placeholder((1000, 16), name="A")
    B = te.compute((16,), lambda i: A[3, i] * 2.0, name="B")
    (mark,) = tecomp.build(te.create_schedule(B), [A, B], target=CPU).roofline().marks

    assert mark.intensity == 16 / (2 * 64)


def test_missing_rates_of_the_host_are_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    requested: list[tecomp.Target] = []

    def calibrate(target: tecomp.Target) -> tecomp.Target:
        requested.append(target)
        return CPU

    monkeypatch.setattr(profiling, "calibrate", calibrate)
    cpu = tecomp.Target.load("cpu")

    assert product(32, target=cpu).roofline().memories == product(32).roofline().memories
    assert requested == [cpu, CPU]


def test_two_kernels_in_one_picture() -> None:
    both = product(32).roofline(label="small") + product(64, "float64").roofline(label="large")

    assert [mark.kernel for mark in both.marks] == ["small", "large"]
    assert [roof.title for roof in both.compute] == [
        "float32 vector", "float32 scalar", "float64 vector"]
    assert str(both) == """\
cpu, per second:
  float32 vector: 1e+11 operations
  float32 scalar: 1e+10 operations
  float64 vector: 5e+10 operations
  L1: 2e+11 bytes
  L2: 1e+11 bytes
  memory: 2e+10 bytes
small: at most 1e+11 operations; 5.333 per byte of L1
large: at most 5e+10 operations; 5.333 per byte of L2
Solid lines are roofs of one core, dashed lines of several cores; a fused multiply-add counts \
as two operations.
The intensity of a kernel is its operations per byte of compulsory traffic, in which each argument \
counts once.
A filled dot is a measured time, the minimum of many calls; a ring is the lower bound of the model."""


def test_a_machine_that_is_described_has_cycles() -> None:
    report = demo("stick128").report()
    found = demo("stick128").roofline()

    assert found.unit == "cycle"
    assert {roof.name for roof in found.memories} <= {*report.shares}
    assert [mark.kernel for mark in found.marks if mark.is_main] == ["main"]
    assert all(mark.speed <= mark.bound * 1.001 for mark in found.marks)
    with pytest.raises(CallError) as caught:
        found + product(32).roofline()
    assert diagnostic(caught.value) == (
        Diagnostic("conflicting-options", target="stick128", other_target="cpu")
    )


def test_kernels_without_operations_have_no_mark() -> None:
    A = te.placeholder((1024,), name="A")
    B = te.compute((1024,), lambda i: A[i], name="B")
    found = tecomp.build(te.create_schedule(B), [A, B], target=CPU).roofline()

    assert found.marks == ()
    assert found.remarks[-1] == (
        "main executes no operations, and moves 2e+11 bytes per second, 100% of the memory bandwidth.")


def test_a_type_without_a_peak_is_named() -> None:
    found = product(32, "int64").roofline()

    assert found.compute == ()
    assert [mark.bound for mark in found.marks] == [pytest.approx(found.marks[0].intensity * 2e11)]
    assert found.remarks[-1] == "The peak rate for int64 is unknown."


def test_dot_product_instructions_have_their_own_roof() -> None:
    """A dot-product instruction does more work than a fused multiply-add."""
    A, B = (te.placeholder((64, 64), dtype, name=name) for name, dtype in (("A", "uint8"), ("B", "int8")))
    k = te.reduce_axis((0, 64), name="k")
    C = te.compute(
        (64, 64), lambda i, j: te.sum(A[i, k].astype("int32") * B[k, j].astype("int32"), axis=k), name="C")
    s = te.create_schedule(C)
    s.into_dots(C, k, "uint8x4", "int8x4")
    rates = {"flops": {"int32": 1e11}, "scalar_flops": None}
    kernel = tecomp.build(s, [A, B, C], target=CPU.overridden(rates=rates))

    assert kernel.roofline().compute == ()
    assert kernel.roofline().remarks[-1] == "The peak rate for dot int32 is unknown."


def test_a_rate_above_the_roofline_is_flagged() -> None:
    slow = CPU.overridden(rates={"read_bytes_per_second": [3.0, 2.0, 1.0], "flops": {"float32": 1.0},
                                 "scalar_flops": None})
    a, b, c = np.ones((3, 32, 32), "float32")
    found = product(32, target=slow).roofline(a, b, c, measured=True)

    assert found.remarks[-1] == (
        "main is above its roof: the machine was busy when the rates were measured, or the kernel uses "
        "other instructions. tecomp.calibrate(again=True) measures again."
    )


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (lambda: product(32).roofline(1), Diagnostic("conflicting-options", where="main.roofline")),
        (lambda: product(32).roofline(measured=1),  # type: ignore[arg-type]
         Diagnostic(
             "invalid-type", where="main.roofline: measured", value=1,
             remedy="pass True or False",
         )),
        (lambda: product(32).roofline(label=3),  # type: ignore[arg-type]
         Diagnostic(
             "invalid-type", where="main.roofline: label", value=3,
             remedy="pass a string, or omit it",
         )),
        (lambda: product(32).roofline(n=3), Diagnostic(
            "unbound-size", where="report", func="main", size="n", names="none",
        )),
        (lambda: product(32).roofline(1, measured=True, n=3),
         Diagnostic("conflicting-options", where="main.roofline", sizes="n")),
        (lambda: demo("stick128").roofline(measured=True), Diagnostic(
            "conflicting-options", where="main.roofline", target="stick128",
        )),
    ],
)
def test_invalid_arguments_are_rejected(call: Any, expected: Diagnostic) -> None:
    with pytest.raises(CallError) as caught:
        call()

    assert diagnostic(caught.value) == expected
