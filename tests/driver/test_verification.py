"""`build(..., verify=True)`: comparison with the interpreter, and the pass that changed results."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import tecomp
from tecomp import te
from tecomp.ir import BufferStore, Const, For, PrimFunc, bottom_up, map_body
from tecomp.lowering import pipeline
from tests.messages import Diagnostic, diagnostic

N = te.var("n")


def program(extent: Any = 6) -> tuple[te.Schedule, list[te.Tensor]]:
    A = te.placeholder((extent, 5), name="A")
    B = te.compute((extent, 5), lambda i, j: A[i, j] * 2.0 + te.sqrt(A[i, j] * A[i, j]), name="B")
    s = te.create_schedule(B)
    s[B].transform_layout(lambda i, j: [j // 2, i, j % 2])
    s[A].transform_layout(lambda i, j: [j, i])
    return s, [A, B]


def arrays(kernel: Any, A: te.Tensor, B: te.Tensor, n: int = 6) -> tuple[Any, Any, Any]:
    a = np.arange(5 * n, dtype="float32").reshape(n, 5)
    return a, kernel.pack(A, a), kernel.empty(B, n=n)


@pytest.mark.parametrize("extent", [6, N])
def test_verify_keeps_correct_results(extent: Any) -> None:
    s, (A, B) = program(extent)
    kernel = tecomp.build(s, [A, B], verify=True)
    a, stored, result = arrays(kernel, A, B)
    kernel(stored, result)
    logical = np.empty_like(a)
    kernel(a, logical, layouts="logical")

    np.testing.assert_array_equal(kernel.unpack(B, result, n=6), 3 * a)
    np.testing.assert_array_equal(logical, 3 * a)


def broken(func: PrimFunc) -> PrimFunc:
    """Add 1 to the elements of B that are stored at last index 9."""
    def wrong(node: Any) -> Any:
        if isinstance(node, BufferStore) and node.buffer.name == "B":
            last = node.indices[-1]
            return replace(node, value=node.value + te.if_then_else(last.equal(9), 1.0, 0.0))
        return None
    return map_body(func, lambda body: bottom_up(body, wrong))


def break_pass(
    monkeypatch: pytest.MonkeyPatch, name: str, change: Callable[[PrimFunc], PrimFunc] = broken
) -> None:
    def wrong(step: pipeline.Pass) -> pipeline.Pass:
        return replace(step, run=lambda func: change(step.run(func)), on_simple=None)

    passes = tuple(wrong(step) if step.name == name else step for step in pipeline.PASSES)
    monkeypatch.setattr(pipeline, "PASSES", passes)
    monkeypatch.setenv("TECOMP_CACHE", "off")


@pytest.mark.exhaustive(keep=7)
@pytest.mark.parametrize("name", ["flatten_buffer", "pack_reads", "unroll_loops", "simplify"])
@pytest.mark.parametrize("extent", [6, N])
def test_the_pass_that_changes_numbers_is_named(
    monkeypatch: pytest.MonkeyPatch, name: str, extent: Any
) -> None:
    break_pass(monkeypatch, name)
    s, (A, B) = program(extent)
    kernel = tecomp.build(s, [A, B], verify=True)
    a, stored, result = arrays(kernel, A, B)
    with pytest.raises(tecomp.InternalError) as caught:
        kernel(stored, result)

    # Position 9 in rows of 6 pairs is [0, 4, 1], which is the element [4, 1].
    assert a[4, 1] == 21
    assert caught.value.code == "TE0012"
    assert diagnostic(caught.value) == Diagnostic(
        "verification-failed",
        description="main: B[4, 1], at [0, 4, 1] in memory, is 64.0, but the interpreter has 63.0",
        culprit=f"the results changed in the pass {name}",
    )


def longer(node: Any) -> Any:
    """Add one iteration to a loop of constant extent."""
    is_known = isinstance(node, For) and isinstance(node.extent, Const)
    return replace(node, extent=Const(node.extent.value + 1, node.extent.dtype)) if is_known else None


@pytest.mark.parametrize("name", ["flatten_buffer", "pack_reads", "unroll_loops", "simplify"])
def test_out_of_bounds_code_is_not_run(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    break_pass(monkeypatch, name, lambda func: map_body(func, lambda body: bottom_up(body, longer)))
    A = te.placeholder((6, 5), name="A")
    near = te.compute((6, 5), lambda i, j: A[i, j] * 2.0, name="near")
    B = te.compute((6, 5), lambda i, j: near[i, j] + 1.0, name="B")
    s = te.create_schedule(B)
    s[near].compute_at(s[B], B.op.axis[0])
    kernel = tecomp.build(s, [A, B], verify=True)
    result = np.full((6, 5), 7, "float32")
    with pytest.raises(tecomp.InternalError) as caught:
        kernel(np.ones((6, 5), "float32"), result)

    assert (result == 7).all()
    assert diagnostic(caught.value) == (
        Diagnostic(
            "verification-failed", name="main", pass_name=name, fault="near[5] is out of bounds: shape (5,)",
        )
    )


def test_arguments_are_refused_as_without_it() -> None:
    s, (A, B) = program()
    kernel = tecomp.build(s, [A, B], verify=True)
    for arguments in ((), (np.zeros(3), 4)):
        with pytest.raises(tecomp.CallError) as caught:
            kernel(*arguments)
        with pytest.raises(tecomp.CallError) as plain:
            tecomp.build(s, [A, B])(*arguments)
        assert diagnostic(caught.value) == diagnostic(plain.value)


def test_verify_reports_wrong_generated_code(monkeypatch: pytest.MonkeyPatch) -> None:
    A = te.placeholder((4,), "int32", name="A")
    B = te.compute((4,), lambda i: A[i] + 1, name="B")
    kernel = tecomp.build(te.create_schedule(B), [A, B], verify=True)
    result = np.zeros(4, "int32")
    quick = kernel._checked_call

    def wrong() -> Any:
        run = quick()

        def call(*arguments: Any) -> Any:
            outcome = run(*arguments)
            arguments[1][2] += 5
            return outcome
        return call

    monkeypatch.setattr(type(kernel), "_checked_call", lambda self: wrong())
    with pytest.raises(tecomp.InternalError) as caught:
        kernel(np.arange(4, dtype="int32"), result)

    assert diagnostic(caught.value) == (
        Diagnostic(
            "verification-failed", description="main: B[2] is 8, but the interpreter has 3",
            culprit="the results are correct after all passes, but the code generated from the last one changes them",
        )
    )


def test_arrays_with_gaps_are_not_compared() -> None:
    A = te.placeholder((4,), name="A")
    B = te.compute((4,), lambda i: A[i] + 1.0, name="B")
    gaps = {A: te.decl_buffer(A.shape, A.dtype, strides=[te.var("s")])}
    with pytest.raises(tecomp.LowerError) as caught:
        tecomp.build(te.create_schedule(B), [A, B], binds=gaps, verify=True)

    assert diagnostic(caught.value) == Diagnostic("conflicting-options")
