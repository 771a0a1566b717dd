"""merge_reduction and merge_formula merge two operations, and reject all other pairs."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np
import pytest

import tecomp
from tecomp import te
from tecomp.schedules import auto
from tecomp.scheduling.schedule import Schedule
from tests.messages import Diagnostic, diagnostic

A = te.placeholder((4, 5, 6), name="A")
h, l = te.reduce_axis((0, 5), name="h"), te.reduce_axis((0, 6), name="l")  # noqa: E741
B = te.compute((4, 5), lambda i, j: te.sum(A[i, j, l], axis=l), name="B")
C = te.compute((4,), lambda i: te.sum(B[i, h], axis=h), name="C")
D = te.compute((4,), lambda i: te.max(B[i, h], axis=h), name="D")
E = te.compute((4,), lambda i: te.sum(B[i, h] * 2.0, axis=h), name="E")
F = te.compute((4,), lambda i: te.sum(B[i, h], axis=h, where=h > 2), name="F")
G = te.compute((4,), lambda i: te.sum(A[i, h, 0], axis=h), name="G")


def test_the_terms_have_loops_of_their_own() -> None:
    s = te.create_schedule(C)

    s.merge_reduction(C)

    assert [stage.op.name for stage in s.stages] == ["A", "C"]
    assert str(s[C].op) == "C[i] = sum(A[i, h, l], axis=[h, l])"
    assert [axis.name for axis in s[C].leaf_iter_vars] == ["i", "h", "l"]
    assert tecomp.replay(s.trace.to_json(), C).trace.to_json() == s.trace.to_json()


def test_stages_with_other_readers_are_preserved() -> None:
    s = te.create_schedule([C, D])

    s.merge_reduction(C)

    assert [stage.op.name for stage in s.stages] == ["A", "B", "C", "D"]


REFUSED: dict[str, tuple[te.Tensor, Callable[[Schedule], object], Diagnostic]] = {
    "elements that are given": (
        G, lambda s: None, Diagnostic(
            "pattern-mismatch", where="s.merge_reduction(G)", load="A[i, h, int32(0)]",
        )),
    "formulas of elements": (
        E, lambda s: None, Diagnostic(
            "pattern-mismatch", where="s.merge_reduction(E)", load="B[i, h] * float32(2.0)",
        )),
    "another reducer": (
        D, lambda s: None, Diagnostic(
            "pattern-mismatch", where="s.merge_reduction(D)", stage="D", inside="B",
        )),
    "a condition": (
        F, lambda s: None, Diagnostic(
            "pattern-mismatch", where="s.merge_reduction(F)", stage="F", reason="only such reductions can be merged",
        )),
    "other loops": (
        C, lambda s: s[B].split(B.op.axis[0], factor=2), Diagnostic(
            "schedule", where="s.merge_reduction(C)", subject="the loops of B were changed",
            what_to_do="merging creates new loops; call merge_reduction first",
        )),
    "stages inside": (
        C, lambda s: s[B].compute_at(s[C], C.op.axis[0]), Diagnostic(
            "schedule", where="s.merge_reduction(C)", subject="B is computed in their loops",
            what_to_do="merging creates new loops; call merge_reduction first",
        )),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str, refusal: Any) -> None:
    tensor, before, expected = REFUSED[name]
    s = te.create_schedule(tensor)
    before(s)

    assert diagnostic(refusal(s, lambda: s.merge_reduction(tensor))) == expected


@pytest.mark.exhaustive(keep=7)
@pytest.mark.parametrize("seed", range(16))
def test_reductions_of_reductions(seed: int) -> None:
    dice = Random(seed)
    shape = [dice.choice([1, 3, 7, 28, 40]) for _ in range(dice.randint(2, 4))]
    X = te.placeholder(shape, name="X")
    x, a = X, np.random.default_rng(seed).integers(-9, 9, shape).astype(np.float32)
    expected = a
    name = dice.choice(["sum", "max", "min"])
    reducer = {"sum": te.sum, "max": te.max, "min": te.min}[name]
    for _ in range(dice.randint(2, len(shape))):
        at = dice.randrange(len(x.shape))
        k = te.reduce_axis((0, x.shape[at]), name="k")
        source = x

        def value(*i: Any, x: Any = source, k: Any = k, at: int = at) -> Any:
            return reducer(x(*i[:at], k, *i[at:]), axis=k)

        result = te.compute((*x.shape[:at], *x.shape[at + 1 :]), value, name="R")
        assert isinstance(result, te.Tensor)
        x, expected = result, getattr(expected, name)(at)
    out = np.empty(expected.shape, np.float32)

    tecomp.build(x, [X, x])(a, out)

    np.testing.assert_array_equal(out, expected)
    assert "merge_reduction" in str(auto(x, "cpu").trace)


T = te.compute((6, 5, 4), lambda i, j, k: A[k, j, i] * 2.0, name="T")
U = te.compute((5, 4), lambda j, k: te.sum(T[l, j, k], axis=l), name="U")
V = te.compute((6, 5), lambda i, j: T[i, j, 3] + T[i, 4 - j, 0], name="V")
W = te.extern((6, 5, 4), [T], lambda ins, outs: te.call_packed("f", ins[0], outs[0]), name="W")


def test_a_formula_is_part_of_all_that_read_it() -> None:
    s = te.create_schedule([U, V])

    s.merge_formula(T)

    assert [str(stage.op) for stage in s.stages[1:]] == [
        "U[j, k] = sum(A[k, j, l] * float32(2.0), axis=[l])",
        "V[i, j] = A[int32(3), j, i] * float32(2.0) + A[int32(0), int32(4) - j, i] * float32(2.0)",
    ]
    assert [read.axes[-1] is l for read in tecomp.accesses(s[U].op.output(0)).reads] == [True]
    assert tecomp.replay(s.trace.to_json(), [U, V]).trace.to_json() == s.trace.to_json()


NO_FORMULAS: dict[str, tuple[list[te.Tensor], te.Tensor, Callable[[Schedule], object], Diagnostic]] = {
    "a result": (
        [T], T, lambda s: None, Diagnostic("pattern-mismatch", where="s.merge_formula(T)", stage="T")),
    "a reduction": (
        [C], B, lambda s: None, Diagnostic("pattern-mismatch", where="s.merge_formula(B)", stage="B")),
    "what statements read": (
        [W], T, lambda s: None, Diagnostic("pattern-mismatch", where="s.merge_formula(T)", reader="W")),
    "other loops": (
        [U], T, lambda s: s[T].split(T.op.axis[0], factor=2), Diagnostic(
            "schedule", where="s.merge_formula(T)", subject="the loops of T were changed",
            what_to_do="merging uses the loops of its readers; call merge_formula first",
        )),
}


@pytest.mark.parametrize("name", NO_FORMULAS)
def test_no_formulas(name: str, refusal: Any) -> None:
    results, tensor, before, expected = NO_FORMULAS[name]
    s = te.create_schedule(results)
    before(s)

    assert diagnostic(refusal(s, lambda: s.merge_formula(tensor))) == expected


@pytest.mark.exhaustive(keep=5)
@pytest.mark.parametrize("seed", range(16))
def test_reductions_of_transposed_expressions(seed: int) -> None:
    """Reductions read views and element-wise stages with permuted axes."""
    dice = Random(seed)
    shape = [dice.choice([3, 17, 40, 64]) for _ in range(dice.choice([2, 3]))]
    X = te.placeholder(shape, name="X")
    a = np.random.default_rng(seed).integers(-9, 9, shape).astype(np.float32)
    order = dice.sample(range(len(shape)), len(shape))
    positions = [order.index(k) for k in range(len(shape))]
    x = te.compute([shape[k] for k in order], lambda *i: X(*(i[k] for k in positions)), name="turned")
    expected = a.transpose(order)
    if dice.random() < 0.5:
        source = x
        x, expected = te.compute(x.shape, lambda *i: source(*i) * 2.0 + 1.0, name="scaled"), expected * 2 + 1
    at = dice.randrange(len(shape))
    k = te.reduce_axis((0, x.shape[at]), name="k")
    name = dice.choice(["sum", "max", "argmax"])
    last = x

    def term(*i: Any) -> Any:
        return last(*i[:at], k, *i[at:])

    rest = (*x.shape[:at], *x.shape[at + 1 :])
    if name == "argmax":
        first = te.comm_reducer(
            lambda p, q: [te.Select(p[1] >= q[1], p[n], q[n]) for n in (0, 1)],
            lambda index, value: [te.const(-1, index), te.min_value(value)], name="first")
        place, _ = te.compute(rest, lambda *i: first((k, term(*i)), axis=k), name="place")
        R = te.compute(rest, lambda *i: te.cast(place(*i), "int64"), name="R")
    else:
        reducer = {"sum": te.sum, "max": te.max}[name]
        R = te.compute(rest, lambda *i: reducer(term(*i), axis=k), name="R")
    out = np.empty([int(str(n)) for n in rest], str(R.dtype))

    tecomp.build(R, [X, R])(a, out)

    np.testing.assert_array_equal(out, getattr(expected, name)(at))
    is_turned = order[-1] != len(shape) - 1
    assert ("merge_formula" in str(auto(R, "cpu").trace)) == is_turned
