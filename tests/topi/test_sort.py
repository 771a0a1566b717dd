"""Sorts, searches and unique elements agree with NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tecomp
from tecomp import te, topi
from tests.messages import Diagnostic, diagnostic
from tests.strategies.dtypes import WITH_ZERO
from tests.topi.refusals import refused
from tests.topi.running import Array, assert_results, compiled, given, values


def order(a: Array, axis: int, is_ascend: bool) -> Array:
    """Return the stable sorting permutation."""
    keys = a.astype("float64")
    return np.argsort(keys if is_ascend else -keys, axis, kind="stable")


@pytest.mark.parametrize("dtype", WITH_ZERO)
def test_types(dtype: str) -> None:
    a = values((3, 7), dtype, low=-3, high=3)
    A = given(a)
    expected: dict[te.Tensor, Any] = {}
    for is_ascend in (True, False):
        places = order(a, 1, is_ascend)
        top = topi.topk(A, 3, 1, is_ascend=is_ascend)
        expected |= {
            topi.sort(A, 1, is_ascend): np.take_along_axis(a, places, 1),
            topi.argsort(A, None, 1, is_ascend, "int32"): places.astype("int32"),
            top[0]: np.take_along_axis(a, places[:, :3], 1), top[1]: places[:, :3],
        }

    assert_results(expected, {A: a})


@pytest.mark.parametrize("shape", [(5,), (1,), (0,), (2, 0), (2, 3, 4)])
def test_axes(shape: tuple[int, ...]) -> None:
    a = values(shape, "float32", low=-2, high=2)
    A = given(a)
    expected: dict[te.Tensor, Any] = {}
    for axis in range(-len(shape), len(shape)):
        places = order(a, axis, True)
        expected |= {
            topi.sort(A, axis): np.sort(a, axis),
            topi.argsort(A, axis=axis): places.astype("float32"),
            topi.topk(A, 0, axis, "indices", True): places,
            topi.topk(A, min(1, shape[axis]), axis, "values"): np.flip(np.sort(a, axis), axis).take(
                range(min(1, shape[axis])), axis),
        }

    assert_results(expected, {A: a})


def test_nan_is_the_greatest() -> None:
    a = np.array([1, np.nan, -np.inf, 3, np.nan, np.inf], "float32")
    A = given(a)

    assert_results({
        topi.sort(A): np.sort(a), topi.sort(A, is_ascend=False): np.sort(a)[::-1],
        topi.argsort(A, is_ascend=False, dtype="int8"): np.array([1, 4, 5, 3, 0, 2], "int8"),
    }, {A: a})


def test_only_some_are_ordered() -> None:
    a, n = values((3, 5), "float32"), np.array([2, 9, 0], "int32")
    A, N = given(a), given(n, "n")
    expected = np.tile(np.arange(5), (3, 1))
    for k, count in enumerate([2, 5, 0]):
        expected[k, :count] = np.argsort(a[k, :count], kind="stable")

    assert_results({topi.argsort(A, N, 1, dtype="int32"): expected.astype("int32")}, {A: a, N: n})
    B = given(a.T.copy(), "B")
    assert_results({topi.argsort(B, N, 0, dtype="int32"): expected.T.astype("int32")},
                   {B: a.T.copy(), N: n})


@pytest.mark.parametrize("right", [False, True])
@pytest.mark.parametrize("dtype", ["int32", "float32", "bfloat16"])
def test_places_in_between(dtype: str, right: bool) -> None:
    side: Any = "right" if right else "left"
    rows, v = np.sort(values((3, 8), dtype), 1), values((3, 4), dtype, seed=1)
    row = rows[0].copy()
    S, R, V = given(rows, "S"), given(row, "R"), given(v, "V")
    keys, widened = rows.astype("float64"), v.astype("float64")

    assert_results({
        topi.searchsorted(S, V, right): np.stack(
            [np.searchsorted(keys[k], widened[k], side) for k in range(3)]),
        topi.searchsorted(R, V, right, "int32"): np.searchsorted(keys[0], widened, side).astype("int32"),
    }, {S: rows, R: row, V: v})


@pytest.mark.parametrize("is_sorted", [True, False])
@pytest.mark.parametrize("dtype", ["int32", "float32", "bool"])
def test_elements_that_differ(dtype: str, is_sorted: bool) -> None:
    a = values((12,), dtype, low=-2, high=3)
    A = given(a)
    found, first, inverse, counts = np.unique(
        a, return_index=True, return_inverse=True, return_counts=True)
    places = np.arange(len(found)) if is_sorted else np.argsort(first)
    n = len(found)
    rest = [0] * (12 - n)
    result = topi.unique(A, is_sorted, return_counts=True)
    expected = [
        np.array([*found[places], *rest], dtype), np.array([*first[places], *[12] * (12 - n)]),
        np.argsort(places)[inverse], np.array([n]), np.array([*counts[places], *rest])]

    assert_results({
        x: y if k == 0 else y.astype("int32")
        for k, (x, y) in enumerate(zip(result, expected, strict=True))}, {A: a})
    four = topi.unique(A, is_sorted)
    assert_results({four[0]: expected[0], four[1]: expected[1].astype("int32"),
                    four[2]: expected[2].astype("int32"), four[3]: expected[3].astype("int32")}, {A: a})


def test_compiled_with_producers_and_consumers() -> None:
    a = values((4, 6), "float32")
    A = given(a)
    best, places = topi.topk(topi.negative(A), 2)

    assert_results({topi.multiply(best, 2.0): 2 * -np.sort(a, 1)[:, :2],
                    topi.cast(places, "int8"): np.argsort(a, 1, kind="stable")[:, :2].astype("int8")},
                   {A: a}, run=compiled)


def test_symbolic_sizes() -> None:
    n, m = te.var("n"), te.var("m")
    A = te.placeholder((n, m), name="A")
    outputs = [topi.sort(A, 0), topi.argsort(A, dtype="int32")]
    kernel = tecomp.build(te.create_schedule([x.op for x in outputs]), [A, *outputs])
    for shape in [(3, 4), (1, 1), (0, 2)]:
        a = values(shape, "float32")
        results = [np.full(shape, 77, "float32"), np.full(shape, 77, "int32")]
        kernel(a, *results)
        np.testing.assert_array_equal(results[0], np.sort(a, 0))
        np.testing.assert_array_equal(results[1], np.argsort(a, 1, kind="stable"))


@pytest.mark.parametrize("ret_type", ["values", "indices", "both"])
def test_top_k_with_symbolic_k(ret_type: str) -> None:
    n = te.var("n")
    A = te.placeholder((n, 5), name="A")
    created = topi.topk(A, 2, 0, ret_type)
    outputs = created if ret_type == "both" else [created]
    kernel = tecomp.build(outputs, [A, *outputs])
    a = values((4, 5), "float32")
    order = np.argsort(-a, 0, kind="stable")[:2]
    expected = {"values": [np.take_along_axis(a, order, 0)], "indices": [order]}
    expected["both"] = expected["values"] + expected["indices"]
    results = [np.full((2, 5), 77, x.dtype) for x in outputs]

    kernel(a, *results)

    for result, right in zip(results, expected[ret_type], strict=True):
        np.testing.assert_array_equal(result, right)
    with pytest.raises(tecomp.CallError) as error:
        kernel(a[:1], *results)
    assert diagnostic(error.value) == (
        Diagnostic("limit-exceeded", count=2, axis=0, name="the tensor", shape="(1, 5)", extent=1)
    )


def test_refusals() -> None:
    A, v = te.placeholder((4, 6), name="A"), te.placeholder((6,), "int32", name="v")

    assert refused(lambda: topi.sort(A, 2)) == (
        Diagnostic(
            "unknown-choice", where="topi.sort", subject="axis", number=2,
            rank="the tensor has 2 axes; pass a number from -2 to 1",
        )
    )
    assert refused(lambda: topi.argsort(A, v)) == (
        Diagnostic("shapes", where="topi.argsort", shape="(6,)", data="A", axis=1, rows="(4,)")
    )
    assert refused(lambda: topi.topk(A, 7)) == (
        Diagnostic("shapes", count=7, axis=1, name="A", shape="(4, 6)", extent="6")
    )
    assert refused(lambda: topi.topk(A, 1, ret_type="all")) == (
        Diagnostic(
            "unknown-choice", where="topi.topk", subject="ret_type", value="all",
            known="'both', 'values', 'indices'",
        )
    )
    assert refused(lambda: topi.searchsorted(A, v)) == (
        Diagnostic("count-mismatch", where="topi.searchsorted", shape="(4, 6)", values_shape="(6,)")
    )
    assert refused(lambda: topi.unique(A)) == (
        Diagnostic("shapes", where="topi.unique", subject="A", shape="(4, 6)", rank=1, named=", a row")
    )
