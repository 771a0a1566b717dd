"""Declared bounds of size variables: calls check them, and loops over multiples have no tails."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tecomp
from tecomp import te, topi
from tecomp.errors import CallError, DefinitionError, TypeMismatchError
from tecomp.ir import SizeBounds
from tests.messages import Diagnostic, diagnostic
from tests.numerics import assert_close

BOUNDS: list[dict[str, Any]] = [
    {"multiple": 16}, {"multiple": 24}, {"minimum": 1}, {"maximum": 100},
    {"minimum": 20, "maximum": 96, "multiple": 4}, {"minimum": 48, "maximum": 48},
]


def split_in_vectors(n: te.Var, factor: int = 16) -> tuple[te.Schedule, list[te.Tensor]]:
    A = te.placeholder((n, 3), name="A")
    B = te.compute((n, 3), lambda i, j: A[i, j] * 2.0 + 1.0, name="B")
    C = te.compute((3, n), lambda j, i: B[i, j] + 1.0, name="C")
    s = te.create_schedule(C)
    s[C].vectorize(s[C].split(C.op.axis[1], factor)[1])
    s[B].compute_at(s[C], C.op.axis[0])
    return s, [A, C]


def admitted(bounds: dict[str, Any], sizes: list[int]) -> list[int]:
    declared = SizeBounds(**bounds)
    return [size for size in sizes if declared.admits(size)]


@pytest.mark.exhaustive(keep=10)
@pytest.mark.parametrize("factor", [8, 16, 32])
@pytest.mark.parametrize("bounds", BOUNDS, ids=str)
def test_kernels_of_declared_bounds(bounds: dict[str, Any], factor: int) -> None:
    s, args = split_in_vectors(te.var("n", **bounds), factor)
    kernel, random = tecomp.build(s, args), np.random.default_rng(0)
    sizes = admitted(bounds, [0, 1, 4, 16, 20, 24, 47, 48, 52, 64, 72, 96, 100, 144])
    assert sizes
    for size in sizes:
        a, c = random.standard_normal((size, 3), np.float32), np.zeros((3, size), np.float32)
        kernel(a, c)
        assert_close(c, a.T * 2 + 2, rtol=1e-6)


@pytest.mark.parametrize(("factor", "has_tail"), [(4, False), (16, False), (32, True)])
def test_loops_over_multiples_have_no_tail(factor: int, has_tail: bool) -> None:
    n = te.var("n", multiple=16)
    A = te.placeholder((n,), name="A")
    B = te.compute((n,), lambda i: A[i] + 1.0, name="B")
    s = te.create_schedule(B)
    s[B].vectorize(s[B].split(B.op.axis[0], factor)[1])

    text = str(tecomp.lower(s, [A, B]))
    assert ("if " in text) is has_tail
    assert "where=" not in text  # the rest of 16 elements is a vector, too


def test_minimum_and_maximum_remove_conditions() -> None:
    n = te.var("n", minimum=8, maximum=16)
    A = te.placeholder((n,), name="A")
    B = te.compute((n,), lambda i: te.if_then_else(
        te.all(i < 16, n >= 8), A[i], 0.0), name="B")

    assert "if" not in str(tecomp.lower(te.create_schedule(B), [A, B]))


@pytest.mark.exhaustive(keep=1)
@pytest.mark.parametrize("bounds", BOUNDS, ids=str)
def test_programs_of_declared_bounds(bounds: dict[str, Any]) -> None:
    n = te.var("n", **bounds)
    X, Y = te.placeholder((n, 40), name="X"), te.placeholder((40, n), name="Y")
    weights = topi.nn.softmax(topi.matmul(X, Y))
    program = tecomp.compile([topi.matmul(weights, X), topi.sum(X, axis=0)], [X, Y])
    random = np.random.default_rng(0)
    for size in admitted(bounds, [0, 1, 16, 24, 48, 52, 96, 144]):
        x, y = random.standard_normal((2, size, 40), np.float32)
        result, total = program(x, y.T.copy())
        powers = np.exp(x.astype(float) @ y.T)
        exact = powers / powers.sum(1, keepdims=True) @ x
        assert_close(result, exact, rtol=1e-4, atol=1e-4)
        assert_close(total, x.sum(0, dtype=float), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("size", [0, 24, 112])
def test_calls_check_declared_bounds(size: int) -> None:
    n = te.var("n", minimum=16, maximum=96, multiple=16)
    A = te.placeholder((n,), name="A")
    B = te.compute((n,), lambda i: A[i] + 1.0, name="B")
    kernel = tecomp.build(te.create_schedule(B), [A, B], name="plus")
    program = tecomp.compile(B, [A], name="plus")
    a, b = np.zeros(size, np.float32), np.full(size, 7, np.float32)

    calls: list[Callable[[], object]] = [lambda: kernel(a, b), lambda: program(a)]
    for call in calls:
        with pytest.raises(CallError) as error:
            call()
        assert diagnostic(error.value) == Diagnostic(
            "argument-mismatch", kernel="plus", var="n",
            bounds=">= 16 and <= 96 and a multiple of 16", value=size, source="axis 0 of A",
        )
    assert (b == 7).all()


def test_scalar_arguments_have_bounds() -> None:
    k = te.var("k", minimum=2, maximum=4)
    A = te.placeholder((8,), name="A")
    B = te.compute((8,), lambda i: A[i] * te.cast(k, "float32"), name="B")
    kernel = tecomp.build(te.create_schedule(B), [A, k, B], name="scale")
    a, b = np.ones(8, np.float32), np.zeros(8, np.float32)

    kernel(a, 3, b)
    assert (b == 3).all()
    with pytest.raises(CallError) as error:
        kernel(a, 5, b)
    assert diagnostic(error.value) == Diagnostic(
        "argument-mismatch", kernel="scale", var="k", bounds=">= 2 and <= 4", value=5,
        source="argument 1",
    )


def test_kernels_of_other_bounds_are_not_shared() -> None:
    for multiple in (16, 1, 8):
        s, args = split_in_vectors(te.var("n", multiple=multiple))
        kernel = tecomp.build(s, args)
        size = multiple * 3
        a, c = np.ones((size, 3), np.float32), np.zeros((3, size), np.float32)
        kernel(a, c)
        assert (c == 4).all()


@pytest.mark.parametrize(("bounds", "error", "expected"), [
    ({"minimum": 5, "maximum": 4}, DefinitionError, Diagnostic(
        "invalid-value", where="te.var n", minimum=5, maximum=4, multiple=1)),
    ({"minimum": 17, "maximum": 31, "multiple": 16}, DefinitionError, Diagnostic(
        "invalid-value", where="te.var n", minimum=17, maximum=31, multiple=16)),
    ({"multiple": 0}, DefinitionError, Diagnostic(
        "invalid-value", where="te.var n", minimum=0, maximum=2**63 - 1, multiple=0)),
    ({"minimum": -1}, DefinitionError, Diagnostic(
        "invalid-value", where="te.var n", minimum=-1, maximum=2**63 - 1, multiple=1)),
    ({"multiple": 1.5}, TypeMismatchError, Diagnostic(
        "invalid-type", where="te.var n: multiple", value=1.5)),
    ({"dtype": "float32", "maximum": 3}, DefinitionError, Diagnostic(
        "invalid-value", where="te.var n", dtype="float32")),
])
def test_bounds_that_are_rejected(
    bounds: dict[str, Any], error: type[Exception], expected: Diagnostic
) -> None:
    with pytest.raises(error) as caught:
        te.var("n", **bounds)

    assert diagnostic(caught.value) == expected
