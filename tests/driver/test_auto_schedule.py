"""A program without a schedule that was built before needs no new search for a schedule."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tecomp
from tecomp import te
from tecomp.codegen import process
from tecomp.codegen.llvm import code_cache as cached_code
from tecomp.driver import ScheduledKernel, build_cache, build_default_schedule
from tests.messages import Diagnostic, diagnostic
from tests.numerics import assert_close

Program = tuple[list[te.Tensor], list[Any], dict[str, Any]]


@pytest.fixture(autouse=True)
def store(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    process()  # create the process-wide runtime before the test, as the first kernel call caches it
    monkeypatch.setenv("TECOMP_CACHE", "on")
    monkeypatch.setenv("TECOMP_CACHE_DIR", str(tmp_path))
    forget()


def forget() -> None:
    """Clear the caches of the process, as in a new process."""
    build_cache.COMPILED.clear()
    cached_code.LINKED.clear()


def formula(factor: float = 2.0) -> Program:
    n = te.size_var("n")
    A, W = te.placeholder((n,), name="A"), te.placeholder((3,), name="W")
    B = te.compute((n,), lambda i: te.exp(A[i]) * factor, name="B")
    return [B], [A, W, B], {}  # nothing reads W


def rows() -> Program:
    A = te.placeholder((20, 30), name="A")
    k = te.reduce_axis((0, 30), name="k")
    B = te.compute((20,), lambda i: te.sum(A[i, k], axis=k), name="B")
    C = te.compute((20, 30), lambda i, j: A[i, j] - B[i], name="C")
    return [B, C], [A, B, C], {}


def strided() -> Program:
    A = te.placeholder((20, 30), name="A")
    B = te.compute((20, 30), lambda i, j: A[i, j] + 1.0, name="B")
    binds = {A: te.decl_buffer(A.shape, A.dtype, strides=[te.var("s"), 1])}
    return [B], [A, B], {"binds": binds}


def gathered() -> Program:
    A, I = te.placeholder((20,), name="A"), te.placeholder((5,), "int32", name="I")  # noqa: E741
    B = te.compute((5,), lambda i: A[I[i]], name="B")
    return [B], [A, I, B], {}


PROGRAMS = {"formula": formula, "rows": rows, "strided": strided, "gathered": gathered}


def built(program: Program) -> ScheduledKernel:
    outputs, args, options = program
    return tecomp.build(outputs, args, **options)


def arrays(name: str) -> list[np.ndarray[Any, Any]]:
    """Return the arguments of a program; outputs are zero."""
    random = np.random.default_rng(0)
    if name == "formula":
        return [random.random(17, np.float32), np.zeros(3, np.float32), np.zeros(17, np.float32)]
    if name == "gathered":
        return [random.random(20, np.float32), np.array([3, 1, 4, 1, 5], np.int32),
                np.zeros(5, np.float32)]
    a = random.random((20, 60), np.float32)[:, :30]
    if name == "strided":
        return [a, np.zeros((20, 30), np.float32)]
    return [a.copy(), np.zeros(20, np.float32), np.zeros((20, 30), np.float32)]


@pytest.fixture
def sought(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Record the outputs for which a schedule is searched."""
    found: list[object] = []
    before = build_default_schedule

    def noted(outputs: Any, *args: Any, **options: Any) -> te.Schedule:
        found.append(outputs)
        return before(outputs, *args, **options)

    monkeypatch.setattr("tecomp.driver.build_cache.build_default_schedule", noted)
    return found


@pytest.mark.exhaustive(keep=7)
@pytest.mark.parametrize("is_new", [False, True], ids=["in memory", "on disk"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_cached_programs_are_found_before_scheduling(
    name: str, is_new: bool, sought: list[object]
) -> None:
    first, expected = built(PROGRAMS[name]()), arrays(name)
    first(*expected)
    assert len(sought) == 1
    if is_new:
        forget()

    second, inputs = built(PROGRAMS[name]()), arrays(name)
    second(*inputs)

    for a, b in zip(expected, inputs, strict=True):
        np.testing.assert_array_equal(a, b)
    assert len(sought) == 1
    assert str(second.signature) == str(first.signature)
    assert repr(second) == repr(first)
    assert len(sought) == 1


@pytest.mark.exhaustive(keep=3)
@pytest.mark.parametrize("name", PROGRAMS)
def test_cached_kernels_provide_their_schedule_on_request(name: str) -> None:
    first = built(PROGRAMS[name]())
    forget()
    second = built(PROGRAMS[name]())

    assert str(second.schedule.trace) == str(first.schedule.trace)
    assert str(second.lowered) == str(first.lowered)
    assert second.source("llvm") == first.source("llvm")
    args = PROGRAMS[name]()[1]
    with pytest.raises(tecomp.CallError) as refused:
        second.pack(args[0], np.zeros(3))
    known = {
        "formula": "W, A, B", "rows": "A, B.local, B, C", "strided": "A, B",
        "gathered": "A, I, B",
    }
    assert diagnostic(refused.value) == Diagnostic(
        "not-in-schedule", name="main", tensor=str(args[0]), known=known[name],
    )


def test_arguments_are_checked_as_for_a_new_kernel() -> None:
    found = []
    for _ in range(2):
        with pytest.raises(tecomp.CallError) as refused:
            built(rows())(np.zeros((20, 30), np.float32), np.zeros(20), np.zeros((20, 30), np.float32))
        found.append(diagnostic(refused.value))
        forget()
    assert found == 2 * [Diagnostic(
        "argument-mismatch", where="argument 1 (B) of main", parameter="float32[20]", shape="float64[20]",
        scalar="np.float32",
    )]


def test_other_programs_and_other_libraries_are_not_found(
    sought: list[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    built(formula())
    built(formula(3.0))
    assert len(sought) == 2
    monkeypatch.setattr("tecomp.driver.build_cache.schedules", lambda: "another library")
    built(formula())
    assert len(sought) == 3


def test_a_found_kernel_goes_to_another_process_and_is_checked() -> None:
    built(rows())
    forget()
    a, b, c = arrays("rows")
    pickle.loads(pickle.dumps(built(rows())))(a, b, c)
    assert_close(b, a.sum(axis=1), rtol=1e-5)

    outputs, args, _ = rows()
    for _ in range(2):
        forget()
        tecomp.build(outputs, args, verify=True)(a, b, c)
    terms = np.abs(a).sum(axis=1)[:, None]
    assert_close(c, a - a.sum(axis=1)[:, None], rtol=1e-6, magnitude=terms)


def test_disabled_cache_stores_nothing(
    sought: list[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TECOMP_CACHE", "off")
    built(rows())
    built(rows())
    assert len(sought) == 2
