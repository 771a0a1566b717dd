"""narrow_reduction reduces integers in the narrowest dtype that holds them."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest

import tecomp
from tecomp import te
from tecomp.schedules import auto
from tests.messages import Diagnostic, diagnostic

A = te.placeholder((4, 9), name="A")
B = te.placeholder((4, 9), "int64", name="B")
k = te.reduce_axis((0, 9), name="k")
place = te.compute((4,), lambda i: te.min(te.if_then_else(
    A[i, k] > 0.0, te.cast(k, "int64"), te.const(9, "int64")), axis=k), name="place")
count = te.compute((4,), lambda i: te.sum(te.cast(A[i, k] > 0.0, "int64"), axis=k), name="count")
given = te.compute((4,), lambda i: te.max(B[i, k] + 1, axis=k), name="given")
some = te.compute((4,), lambda i: te.max(te.cast(k, "int64"), axis=k, where=k > 3), name="some")
floats = te.compute((4,), lambda i: te.max(A[i, k], axis=k), name="floats")


def test_the_result_is_widened() -> None:
    s = te.create_schedule(place)

    s.narrow_reduction(place, "int32")

    assert [str(stage.op) for stage in s.stages[1:]] == [
        "place_narrow[i] = min(if_then_else(A[i, k] > float32(0.0), k, int32(9)), axis=[k])",
        'place[i] = cast("int64", place_narrow[i])',
    ]
    assert s[place].leaf_iter_vars == place.op.axis
    assert tecomp.replay(s.trace.to_json(), place).trace.to_json() == s.trace.to_json()


REFUSED = {
    "values that are given": (
        given, "int32", Diagnostic(
            "pattern-mismatch", where="s.narrow_reduction(given, 'int32')", stage="given",
            found=-9223372036854775808, upper=9223372036854775807,
        )),
    "a type that is too narrow": (
        te.compute((4,), lambda i: te.sum(te.cast(k, "int64") * 2, axis=k), name="sums"), "int8",
        Diagnostic(
            "pattern-mismatch", where="s.narrow_reduction(sums, 'int8')", stage="sums", found=0,
            upper=144,
        )),
    "floats": (
        floats, "int32", Diagnostic(
            "pattern-mismatch", where="s.narrow_reduction(floats, 'int32')", stage="floats",
            dtype="int32",
        )),
    "a condition": (
        some, "int32", Diagnostic(
            "pattern-mismatch", where="s.narrow_reduction(some, 'int32')", stage="some",
            reason="only such reductions can be narrowed",
        )),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str, refusal: Any) -> None:
    tensor, dtype, expected = REFUSED[name]
    s = te.create_schedule(tensor)

    assert diagnostic(refusal(s, lambda: s.narrow_reduction(tensor, dtype))) == expected


def test_refused_loops(refusal: Any) -> None:
    s = te.create_schedule(count)
    s[count].split(k, factor=3)

    assert diagnostic(refusal(s, lambda: s.narrow_reduction(count, "int32"))) == (
        Diagnostic("primitive-order", where="s.narrow_reduction(count, 'int32')", stage="count"))


@pytest.mark.exhaustive(keep=6)
@pytest.mark.parametrize("seed", range(20))
def test_random_integers(seed: int) -> None:
    """Indices, counts and expressions of them are narrowed unless their range is too large."""
    dice = Random(seed)
    rows, columns = dice.choice([3, 20]), dice.choice([5, 64, 300])
    X, r = te.placeholder((rows, columns), name="X"), te.reduce_axis((0, columns), name="r")
    step, first = dice.choice([1, -3, 2**30]), dice.choice([0, 7, -(2**31)])
    name = dice.choice(["min", "max", "sum"])
    end = dice.choice([columns, -1, 2**33])

    def term(i: Any) -> Any:
        value = te.cast(r, "int64") * te.const(step, "int64") + te.const(first, "int64")
        return te.Select(X[i, r] > 0.5, value, te.const(end, "int64"))

    reducer = {"min": te.min, "max": te.max, "sum": te.sum}[name]
    Y = te.compute((rows,), lambda i: reducer(term(i), axis=r), name="Y")
    x = np.random.default_rng(seed).random((rows, columns), np.float32)
    each = np.where(x > 0.5, np.arange(columns, dtype=np.int64) * step + first, end)
    out = np.empty(rows, np.int64)

    tecomp.build(Y, [X, Y])(x, out)

    np.testing.assert_array_equal(out, getattr(each, name)(1))
    last = (columns - 1) * step + first
    low, high = min(first, last, end), max(first, last, end)
    if name == "sum":
        low, high = min(low * columns, 0), max(high * columns, 0)
    fits = low >= -(2**31) and high < 2**31
    assert ("narrow_reduction" in str(auto(Y, "cpu").trace)) == fits
