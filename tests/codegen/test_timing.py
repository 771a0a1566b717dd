"""`Kernel.timeit`: measured times, effects on inputs and outputs, and errors."""

from __future__ import annotations

import time
from typing import Any, cast

import numpy as np
import pytest

import tecomp
from tecomp import te
from tecomp.codegen import Kernel, Timing, time_call
from tecomp.errors import CallError
from tecomp.ir import parse
from tests.messages import Diagnostic, diagnostic

SQUARE = Kernel(parse('''def square(A: Buffer("float32", (64,)), B: Buffer("float32", (64,))):
    for i in range(64):
        B[i] = A[i] * A[i]
'''))


def test_inputs_stay_and_outputs_are_written() -> None:
    a, b = np.arange(64, dtype=np.float32), np.zeros(64, np.float32)

    timing = SQUARE.timeit(a, b, seconds=0.02)

    assert (a == np.arange(64)).all()
    assert (b == a * a).all()
    assert 1e-8 < timing.min <= timing.median < 1e-2
    assert timing.runs > 100


def test_long_calls_are_measured_one_by_one() -> None:
    calls: list[float] = []

    def call(seconds: float) -> None:
        calls.append(seconds)
        time.sleep(seconds)

    timing = time_call(call, (0.01,), 0.001)

    assert timing.runs == 5
    assert len(calls) == 7
    assert 0.01 <= timing.min <= timing.median < 0.5


def test_the_first_calls_do_not_count() -> None:
    durations = iter([0.2, 0.05])

    timing = time_call(lambda: time.sleep(next(durations, 0.001)), (), 0.01)

    assert timing.median < 0.05


def test_timings_are_recorded() -> None:
    start = time.perf_counter()

    timing = time_call(lambda: None, (), 0.1)

    assert 0.1 < time.perf_counter() - start < 2
    assert timing.runs > 10_000
    assert timing.min < 1e-6


@pytest.mark.parametrize("seconds", [0, -1, float("nan"), float("inf"), True, "1", None])
def test_refused_seconds(seconds: Any) -> None:
    with pytest.raises(CallError) as error:
        SQUARE.timeit(np.zeros(64, np.float32), np.zeros(64, np.float32), seconds=seconds)

    assert diagnostic(error.value) == Diagnostic("call", seconds=seconds)


def test_refused_arguments() -> None:
    with pytest.raises(CallError) as error:
        SQUARE.timeit(np.zeros(64, np.float32))

    assert diagnostic(error.value) == (
        Diagnostic(
            "argument-count", name="square", signature_count=2, names="A, B", count=1,
            note="; B must also be passed, to be written in place",
        )
    )


def test_programs_are_measured_as_kernels_are() -> None:
    A = te.placeholder((64,), name="A")
    B = te.compute((64,), lambda i: A[i] * A[i], name="B")
    program = tecomp.compile(B, [A])
    a, b = np.arange(64, dtype=np.float32), np.zeros(64, np.float32)

    assert program.timeit(a, seconds=0.01).runs >= 5
    timing = program.timeit(a, out=b, seconds=0.01)

    assert 0 < timing.min <= timing.median
    np.testing.assert_array_equal(b, a * a)
    with pytest.raises(CallError) as error:
        program.timeit(a, seconds=0)
    assert diagnostic(error.value) == (
        Diagnostic("call", seconds=0)
    )
    with pytest.raises(CallError) as error:
        program.timeit(a, out=[b, b])
    assert diagnostic(error.value) == Diagnostic(
        "argument-count", kernel="program", arrays="1 array", names="B", given_count=2,
    )


def test_timings_are_values() -> None:
    timing = Timing(1e-6, 2e-6, 10)

    assert timing == Timing(1e-6, 2e-6, 10)
    assert repr(timing) == "Timing(min=1e-06, median=2e-06, runs=10)"
    with pytest.raises(AttributeError):
        cast(Any, timing).min = 0
