"""Scatters agree with sequential Python loops."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tecomp
from tecomp import te, topi
from tecomp.topi import nn
from tests.messages import Diagnostic
from tests.numerics import assert_close
from tests.topi.refusals import refused
from tests.topi.running import Array, assert_results, compiled, given, values

COMBINED: dict[str, Callable[[Any, Any], Any]] = {
    "update": lambda old, new: new, "add": lambda old, new: old + new,
    "mul": lambda old, new: old * new, "min": min, "max": max,
    "mean": lambda old, new: (old + new) / 2,
}


def by_elements(a: Array, i: Array, u: Array, axis: int, mode: str) -> Array:
    result = a.copy()
    for at in np.ndindex(*i.shape):
        place = list(at)
        place[axis] = int(i[at]) + (a.shape[axis] if i[at] < 0 else 0)
        if 0 <= place[axis] < a.shape[axis]:
            result[tuple(place)] = COMBINED[mode](result[tuple(place)], u[at])
    return result


@pytest.mark.parametrize("mode", list(COMBINED))
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_elements(axis: int, mode: str) -> None:
    a, i, u = values((4, 5), "float32"), values((3, 4), "int32", low=-7, high=7), values(
        (3, 4), "float32", seed=1)
    A, Index, U = given(a), given(i, "i"), given(u, "U")
    arrays = {A: a, Index: i, U: u}

    assert_results({topi.scatter_elements(A, Index, U, axis=axis, reduction=mode): by_elements(
        a, i, u, axis, mode)}, arrays)


@pytest.mark.parametrize("shape", [(4,), (2, 3, 2), (3, 0)])
@pytest.mark.parametrize("dtype", ["int8", "uint16", "float64", "bool"])
def test_types_and_shapes(shape: tuple[int, ...], dtype: str) -> None:
    a, i = values(shape, dtype), values(shape, "int64", low=0, high=max(shape[0], 1))
    u = values(shape, dtype, seed=1)
    A, Index, U = given(a), given(i, "i"), given(u, "U")
    arrays = {A: a, Index: i, U: u}

    assert_results({topi.scatter_elements(A, Index, U): by_elements(a, i, u, 0, "update"),
                    topi.scatter_elements(A, Index, U, reduction="max"): by_elements(a, i, u, 0, "max")},
                   arrays)


@pytest.mark.parametrize("count", [0, 1, 2])
@pytest.mark.parametrize("mode", ["update", "add", "min"])
def test_parts(count: int, mode: str) -> None:
    a = values((3, 4, 2), "int32")
    i = values((count, 5), "int64", low=-4, high=4)
    u = values((5, *a.shape[count:]), "int32", seed=1)
    A, Index, U = given(a), given(i, "i"), given(u, "U")
    arrays = {A: a, Index: i, U: u}
    expected = a.copy()
    for k in range(5):
        place = [int(n) + (extent if n < 0 else 0) for n, extent in zip(i[:, k], a.shape, strict=False)]
        if all(0 <= n < extent for n, extent in zip(place, a.shape, strict=False)):
            part = expected[tuple(place)]
            new = {"update": u[k], "add": part + u[k], "min": np.minimum(part, u[k])}[mode]
            expected[tuple(place)] = new

    assert_results({topi.scatter_nd(A, Index, U, mode): expected}, arrays)


def test_few_places() -> None:
    rows, numbers = np.array([[0, 1], [2, 2], [1, 9]], "int32"), np.array([3, 1], "int64")
    v, one = np.array([5, 6, 7], "float32"), np.array(8, "float32")
    R, N, V, S = given(rows, "R"), given(numbers, "N"), given(v, "V"), given(one, "S")
    grid = np.full((3, 4), -1, "float32")
    grid[0, 1], grid[2, 2] = 5, 6
    line = np.zeros(4, "float32")
    line[[3, 1]] = 8

    assert_results({topi.sparse_to_dense(R, (3, 4), V, -1): grid,
                    topi.sparse_to_dense(N, (4,), S): line}, {R: rows, N: numbers, V: v, S: one})


def test_compiled_with_sizes_at_the_call() -> None:
    n, m = te.var("n"), te.var("m")
    A, Index = te.placeholder((n,), name="A"), te.placeholder((1, m), "int32", name="i")
    U = te.placeholder((m,), name="U")
    B = topi.scatter_nd(A, Index, U, "add")
    kernel = tecomp.build(te.create_schedule(B.op), [A, Index, U, B])
    for size, count in [(4, 3), (1, 5), (7, 0)]:
        a, u = values((size,), "float32"), values((count,), "float32", seed=1)
        i = values((1, count), "int32", low=-size, high=size)
        expected, result = a.copy(), np.full(size, 77, "float32")
        np.add.at(expected, i[0], u)
        kernel(a, i, u, result)
        assert_close(result, expected, rtol=1e-6)
    a, u, i = values((6,), "float32"), values((2,), "float32", seed=1), np.array([[1, 4]], "int32")
    A, Index, U = given(a), given(i, "i"), given(u, "U")
    arrays = {A: a, Index: i, U: u}
    expected = a.copy()
    expected[[1, 4]] = u
    assert_results({topi.negative(topi.scatter_nd(A, Index, U, "update")): -expected}, arrays, run=compiled)


@pytest.mark.parametrize("rest", [(), (3,)])
def test_losses(rest: tuple[int, ...]) -> None:
    p, t = values((4, 5, *rest), "float32"), values((4, *rest), "int32", low=0, high=5)
    w = np.abs(values((5,), "float32", seed=1)) + 1
    t.flat[0] = -100
    P, T, W = given(p, "P"), given(t, "T"), given(w, "w")
    counts = t != -100
    share = np.where(counts, w[t * counts], 0)
    losses = -np.take_along_axis(p, (t * counts)[:, None], 1)[:, 0] * share

    assert_results({
        nn.nll_loss(P, T, W, "none", -100): losses.astype("float32"),
        nn.nll_loss(P, T, W, "sum", -100): losses.sum().astype("float32"),
        nn.nll_loss(P, T, W, "mean", -100): np.asarray(losses.sum() / share.sum()).astype("float32"),
    }, {P: p, T: t, W: w})


def test_refusals() -> None:
    A, i = te.placeholder((4, 6), name="A"), te.placeholder((2, 6), "int32", name="i")
    U, D = te.placeholder((2, 6), name="U"), te.placeholder((2, 6), "float64", name="D")

    assert refused(lambda: topi.scatter_elements(A, i, A)) == (
        Diagnostic(
            "shapes", where="topi.scatter_elements", data="A", shape="(4, 6)", indices_shape="(2, 6)",
            updates_shape="(4, 6)", axis=0,
        )
    )
    assert refused(lambda: topi.scatter_elements(A, i, D)) == (
        Diagnostic(
            "dtype", where="topi.scatter_elements", data="A", dtype="float32",
            updates_dtype="float64", updates="D",
        )
    )
    assert refused(lambda: topi.scatter_elements(A, i, U, 0, "last")) == (
        Diagnostic(
            "unknown-choice", where="topi.scatter_elements", subject="the reduction", value="last",
            known="'update', 'add', 'mul', 'min', 'max', 'mean'",
        )
    )
    assert refused(lambda: topi.scatter_nd(A, i, U, "add")) == (
        Diagnostic(
            "shapes", where="topi.scatter_nd", data="A", shape="(4, 6)", indices_shape="(2, 6)",
            updates_shape="(2, 6)",
        )
    )
    assert refused(lambda: topi.sparse_to_dense(i, (3, 4), U)) == (
        Diagnostic(
            "shapes", where="topi.sparse_to_dense", shape="(2, 6)", values_shape="(2, 6)",
            result_shape="(3, 4)",
        )
    )
    assert refused(lambda: nn.nll_loss(A, i, U, "mean", 0)) == (
        Diagnostic(
            "shapes", where="topi.nn.nll_loss", subject="weights", shape="(2, 6)", rank=1, named="",
        )
    )
