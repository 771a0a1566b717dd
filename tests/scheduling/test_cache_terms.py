"""cache_terms computes common terms of several stages once; programs with repeated terms use it."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np
import pytest

import tecomp
from tecomp import te
from tecomp.schedules import auto
from tests.messages import Diagnostic, diagnostic
from tests.numerics import assert_close

A = te.placeholder((4, 6), name="A")
h, l, m = (te.reduce_axis((0, n), name=x) for x, n in (("h", 6), ("l", 6), ("m", 4)))  # noqa: E741
most = te.compute((4,), lambda i: te.max(A[i, h], axis=h), name="most")
total = te.compute((4,), lambda i: te.sum(te.exp(A[i, l] - most[i]), axis=l), name="total")
Y = te.compute((4, 6), lambda i, j: te.exp(A[i, j] - most[i]) / total[i] + 1.0, name="Y")
column = te.compute((6,), lambda j: te.sum(te.exp(A[m, j]), axis=m), name="column")


def test_the_terms_are_a_stage_that_both_read() -> None:
    s = te.create_schedule(Y)

    s.cache_terms(total, "global", Y)

    assert [str(stage.op) for stage in s.stages[2:]] == [
        "total_terms[i, l] = exp(A[i, l] - most[i])",
        "total[i] = sum(total_terms[i, l], axis=[l])",
        "Y[i, j] = total_terms[i, j] / total[i] + float32(1.0)",
    ]
    assert tecomp.replay(s.trace.to_json(), Y).trace.to_json() == s.trace.to_json()


def test_stages_before_the_reduction_read_the_terms() -> None:
    first = te.compute((4, 6), lambda i, j: te.exp(A[i, j] - most[i]) * 2.0, name="first")
    added = te.compute((4, 6), lambda i, j: first[i, j] / total[i], name="added")
    s = te.create_schedule(added)

    s.cache_terms(total, "global", [first])

    names = [stage.op.name for stage in s.stages]
    assert names.index("total_terms") < min(names.index("first"), names.index("total"))
    assert str(s[first].op) == "first[i, j] = total_terms[i, j] * float32(2.0)"


def test_column_terms_have_the_axes_of_their_operands() -> None:
    s = te.create_schedule(column)

    assert str(s[s.cache_terms(column, "global", [])].op) == "column_terms[m, j] = exp(A[m, j])"


REFUSED: dict[str, tuple[te.Tensor, list[te.Tensor], Diagnostic]] = {
    "elements": (
        most, [], Diagnostic("pattern-mismatch", where="s.cache_terms(most, 'global')", term="A[i, h]")),
    "other terms": (
        total, [most], Diagnostic(
            "pattern-mismatch", where="s.cache_terms(total, 'global')", state="most",
            term="exp(A[i, l] - most[i])",
        )),
    "no reduction": (
        Y, [], Diagnostic(
            "pattern-mismatch", where="s.cache_terms(Y, 'global')", stage="Y",
            reason="only unconditionally computed terms can be cached",
        )),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str, refusal: Any) -> None:
    tensor, readers, expected = REFUSED[name]
    s = te.create_schedule(Y)

    assert diagnostic(refusal(s, lambda: s.cache_terms(tensor, "global", readers))) == expected


def test_computes_terms_of_axes_of_the_same_extents_alone() -> None:
    wide = te.placeholder((4, 7), name="wide")
    n = te.reduce_axis((0, 6), name="n")
    part = te.compute((4,), lambda i: te.sum(te.exp(wide[i, n]), axis=n), name="part")
    whole = te.compute((4, 7), lambda i, j: te.exp(wide[i, j]) + part[i], name="whole")
    turned = te.compute((4, 6), lambda i, j: te.exp(wide[i, j + 1]) + part[i], name="turned")

    assert not any(tecomp.computes_terms(x, part) for x in (whole, turned, A, part.op.input_tensors[0]))
    assert tecomp.computes_terms(Y, total)
    assert not tecomp.computes_terms(Y, A)


_FORMULAS: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "exp": (te.exp, np.exp), "tanh": (te.tanh, np.tanh),
    "square": (lambda x: te.sqrt(x * x + 1.0) * te.sigmoid(x),
               lambda x: np.sqrt(x * x + 1) / (1 + np.exp(-x))),
}


@pytest.mark.exhaustive(keep=2)
@pytest.mark.parametrize("seed", range(12))
def test_rows_whose_terms_are_written_several_times(seed: int) -> None:
    dice = Random(seed)
    rows, columns = dice.choice([5, 33, 64]), dice.choice([7, 40, 130, 500])
    value, expected = _FORMULAS[dice.choice(list(_FORMULAS))]
    X = te.placeholder((rows, columns), name="X")
    runs = [te.reduce_axis((0, columns), name="k") for _ in range(3)]
    moved = te.compute((rows,), lambda i: te.min(X[i, runs[0]], axis=runs[0]), name="moved")

    def term(i: Any, j: Any) -> Any:
        return value(X[i, j] - moved[i])

    first = te.compute((rows,), lambda i: te.sum(term(i, runs[1]), axis=runs[1]), name="first")
    second = te.compute((rows,), lambda i: te.max(term(i, runs[2]), axis=runs[2]), name="second")
    several = dice.random() < 0.5
    Z = te.compute((rows, columns), lambda i, j: (
        term(i, j) / first[i] * (second[i] if several else 1.0)), name="Z")
    a = np.random.default_rng(seed).standard_normal((rows, columns)).astype(np.float32)
    t = expected(a - a.min(1, keepdims=True))
    out = np.empty_like(a)

    tecomp.build(Z, [X, Z])(a, out)

    reference = t / t.sum(1, keepdims=True) * (t.max(1, keepdims=True) if several else 1)
    assert_close(out, reference, rtol=1e-5, atol=1e-7)
    assert str(auto(Z, "cpu").trace).count("cache_terms") == 1
