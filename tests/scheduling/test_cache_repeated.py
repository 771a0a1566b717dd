"""cache_repeated computes repeated subexpressions along an axis once for adjacent rows."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest

import tecomp
from tecomp import te
from tecomp.machine import host_vector_bytes
from tecomp.schedules import auto
from tests.messages import Diagnostic, diagnostic
from tests.numerics import assert_close

A, C = te.placeholder((4, 9), name="A"), te.placeholder((4,), name="C")
B = te.compute((4, 9), lambda i, j: (A[i, j] - C[i] * 0.5) / te.sqrt(C[i] + 1.0), name="B")
guarded = te.compute(
    (4, 9), lambda i, j: te.if_then_else(i > 0, A[i, j] * te.exp(C[i - 1]), 0.0), name="guarded")
k = te.reduce_axis((0, 9), name="k")
total = te.compute((4,), lambda i: te.sum(A[i, k], axis=k), name="total")


def test_the_longest_subexpression_is_cached_first() -> None:
    s = te.create_schedule(B)
    j = B.op.axis[1]

    first, second = s.cache_repeated(B, j, "local"), s.cache_repeated(B, j, "local")

    assert [str(s[x].op) for x in (first, second, B)] == [
        "B_repeated[i] = sqrt(C[i] + float32(1.0))",
        "B_repeated[i] = C[i] * float32(0.5)",
        "B[i, j] = (A[i, j] - B_repeated[i]) / B_repeated_1[i]",
    ]
    assert s[first].scope == "local"
    assert tecomp.replay(s.trace.to_json(), B).trace.to_json() == s.trace.to_json()


REFUSED = {
    "nothing": (
        B, B.op.axis[0], Diagnostic("pattern-mismatch", where="s.cache_repeated(B, i, 'local')")),
    "under a condition": (
        guarded, guarded.op.axis[1], Diagnostic(
            "pattern-mismatch", where="s.cache_repeated(guarded, j, 'local')",
        )),
    "another axis": (
        B, k, Diagnostic(
            "unknown-loop", where="s.cache_repeated(B, k, 'local')", stage="B", names="i, j",
        )),
    "a reduction": (
        total, total.op.axis[0], Diagnostic(
            "pattern-mismatch", where="s.cache_repeated(total, i, 'local')", stage="total",
        )),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str, refusal: Any) -> None:
    tensor, axis, expected = REFUSED[name]
    s = te.create_schedule(tensor)

    assert diagnostic(refusal(s, lambda: s.cache_repeated(tensor, axis, "local"))) == expected


@pytest.mark.exhaustive(keep=4)
@pytest.mark.parametrize("seed", range(16))
def test_short_rows_with_formulas_of_their_values(seed: int) -> None:
    dice = Random(seed)
    lanes = host_vector_bytes() // 4
    rows, columns = dice.choice([16, 33, 100]), dice.choice([5, lanes, 5 * lanes // 2])
    X = te.placeholder((rows, columns), name="X")
    r = te.reduce_axis((0, columns), name="r")
    most = te.compute((rows,), lambda i: te.max(X[i, r], axis=r), name="most")
    forms = [
        (lambda i: te.exp(most[i] * 0.1) + 1.0, lambda m: np.exp(m * np.float32(0.1)) + 1),
        (lambda i: 1.0 / te.sqrt(most[i] * most[i] + 1.0), lambda m: 1 / np.sqrt(m * m + 1)),
        (lambda i: most[i], lambda m: m),
    ]
    actual, expected = zip(*dice.choices(forms, k=2), strict=True)
    under = dice.random() < 0.3

    def value(i: Any, j: Any) -> Any:
        element = (X[i, j] - actual[0](i)) * actual[1](i)
        return te.if_then_else(j > 1, element, actual[0](i)) if under else element

    Y = te.compute((rows, columns), value, name="Y")
    x = np.random.default_rng(seed).standard_normal((rows, columns), np.float32)
    first, second = (form(x.max(1, keepdims=True)) for form in expected)
    whole = (x - first) * second
    if under:
        whole[:, :2] = np.broadcast_to(first, whole.shape)[:, :2]
    out = np.empty_like(x)

    tecomp.build(Y, [X, Y])(x, out)

    assert_close(out, whole, rtol=1e-5, atol=1e-6)
    is_repeated = any(form is not forms[2][0] for form in actual)
    if not under:
        assert ("cache_repeated" in str(auto(Y, "cpu").trace)) == is_repeated
