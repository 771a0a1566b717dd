"""Sums, extrema, cumulative sums and indices of extrema agree with NumPy."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np
import pytest

import tecomp
from tecomp import TypeMismatchError, te, topi
from tecomp.operations import reductions_in
from tests.messages import Diagnostic, diagnostic
from tests.numerics import assert_close
from tests.operations.references import numpy_reduction, takes
from tests.strategies.dtypes import FLOATS, INTEGERS
from tests.topi.refusals import refused
from tests.topi.running import SHAPES, Array, assert_results, compiled, given, values

NAMESPACE = reductions_in("topi")


def references(dtype: str) -> dict[str, Callable[..., Any]]:
    """Return the references of the reductions of numbers that support a dtype."""
    return {
        name: numpy_reduction(row) for name, row in NAMESPACE.items()
        if row.op == "reduce" and takes(row, dtype)
    }


def axes_of(rank: int) -> list[Any]:
    """Return None, each axis from either end, and sets of several axes."""
    several = [axes for count in (2, 3) for axes in combinations(range(rank), count)]
    return [None, *range(-rank, rank), *several]


@pytest.mark.exhaustive(keep=5)
@pytest.mark.parametrize("shape", [shape for shape in SHAPES if 0 not in shape])
def test_axes(shape: tuple[int, ...]) -> None:
    a = values(shape, "int64")
    A = given(a)
    expected: dict[te.Tensor, Any] = {
        getattr(topi, name)(A, axis, keep): function(a, axis=axis, keepdims=keep)
        for name, function in references("int64").items() for axis in axes_of(len(shape))
        for keep in (False, True)
    }

    assert_results(expected, {A: a})


@pytest.mark.parametrize("dtype", [*INTEGERS, *FLOATS])
def test_types(dtype: str) -> None:
    a = values((3, 5), dtype, low=-3, high=3)
    A = given(a)
    widened = a.astype("float64" if dtype in FLOATS else "int64")
    with np.errstate(all="ignore"):
        expected = {
            getattr(topi, name)(A, 1): np.asarray(function(widened, axis=1)).astype(a.dtype)
            for name, function in references(dtype).items()
        }

    assert_results(expected, {A: a})


def test_truth() -> None:
    a = values((4, 3), "bool")
    A = given(a)

    assert_results({
        topi.all(A): a.all(), topi.any(A, 0): a.any(0), topi.all(A, -1, True): a.all(-1, keepdims=True),
        topi.sum(A, 1): a.sum(1, dtype="int32"), topi.prod(A): a.prod(dtype="int32"),
        topi.max(A, 0): a.any(0),
    }, {A: a})


def test_reductions_of_no_elements() -> None:
    a, b = np.zeros((3, 0), "float32"), np.zeros((0,), "bool")
    A, B = given(a), given(b, "B")

    assert_results({
        topi.sum(A, 1): np.zeros(3, "float32"), topi.prod(A): np.float32(1),
        topi.max(A, 1): np.full(3, -np.inf, "float32"), topi.sum(A, 0): np.zeros(0, "float32"),
        topi.min(topi.cast(A, "int8"), 1): np.full(3, 127, "int8"),
        topi.logsumexp(A, 1): np.full(3, -np.inf, "float32"),
    }, {A: a})
    assert_results({topi.all(B): np.True_, topi.any(B): np.False_}, {B: b})


def test_nan() -> None:
    a = np.array([[1, np.nan, 3], [-np.inf, 2, np.inf]], "float32")
    A = given(a)

    assert_results({
        topi.max(A, 1): a.max(1), topi.min(A, 0): a.min(0), topi.sum(A): a.sum(),
        topi.argmax(A, 1): np.array([1, 2], "int32"), topi.argmin(A, 1): np.array([1, 0], "int32"),
    }, {A: a}, run=compiled)


FOUND = {"argmax": np.argmax, "argmin": np.argmin}


@pytest.mark.exhaustive(keep=2)
@pytest.mark.parametrize("shape", [shape for shape in SHAPES if 0 not in shape])
def test_argmax_and_argmin(shape: tuple[int, ...]) -> None:
    a = values(shape, "int32", low=-2, high=2)
    A = given(a)
    expected: dict[te.Tensor, Any] = {}
    for name, function in FOUND.items():
        for axis in [None, *range(-len(shape), len(shape))]:
            last = a if axis is None else np.flip(a, axis)
            extent = a.size if axis is None else a.shape[axis]
            first = function(a, axis=axis)
            from_end = extent - 1 - function(last.ravel()[::-1] if axis is None else last, axis=axis)
            result = partial(getattr(topi, name), A, axis)
            expected[result()] = np.asarray(first).astype("int32")
            expected[result(select_last_index=True)] = np.asarray(from_end).astype("int32")
            if axis is not None:
                expected[result(keepdims=True)] = np.expand_dims(first, axis).astype("int32")

    assert_results(expected, {A: a})


@pytest.mark.exhaustive(keep=14)
@pytest.mark.parametrize("dtype", ["bool", *INTEGERS, *FLOATS])
def test_types_of_extremes(dtype: str) -> None:
    a = values((4, 7), dtype, low=-2, high=2)
    A = given(a)
    plain = a.astype("float32") if dtype in FLOATS else a

    assert_results({topi.argmax(A, 1): plain.argmax(1).astype("int32"),
                    topi.argmin(A, 0): plain.argmin(0).astype("int32")}, {A: a})


def test_several_axes_are_counted_as_one() -> None:
    a = values((2, 3, 4), "int32", low=-40, high=40)
    A = given(a)
    rows = a.transpose(1, 0, 2).reshape(3, 8)

    assert_results({
        topi.argmax(A, (0, 2)): rows.argmax(1).astype("int32"),
        topi.argmin(A, (2, 0), True): rows.argmin(1).astype("int32")[None, :, None],
    }, {A: a})


@pytest.mark.parametrize(("shape", "target"), [
    ((2, 3, 4), (3, 1)), ((2, 3, 4), (1, 1, 4)), ((2, 3), (2, 3)), ((2, 3), ()), ((3, 0), (3, 1))])
def test_sums_to_a_shape(shape: tuple[int, ...], target: tuple[int, ...]) -> None:
    a = values(shape, "int32")
    A = given(a)
    expected = a
    if shape != target:
        spare = len(shape) - len(target)
        expected = a.sum(tuple(range(spare)), dtype="int32")
        axes = tuple(k for k, n in enumerate(target) if n != expected.shape[k])
        expected = expected.sum(axes, keepdims=True, dtype="int32")

    assert_results({topi.identity(topi.collapse_sum(A, target)): expected}, {A: a})


def exclusive(sums: Array, axis: int, start: int) -> Array:
    """Convert inclusive scans to exclusive ones."""
    moved = np.moveaxis(sums, axis, 0)
    shifted = np.full_like(moved, start)
    shifted[1:] = moved[:-1]
    return np.moveaxis(shifted, 0, axis)


@pytest.mark.exhaustive(keep=1)
@pytest.mark.parametrize("shape", [(5,), (2, 3), (3, 0), (0, 3), (2, 3, 2, 2), (2, 40)])
def test_running_sums(shape: tuple[int, ...]) -> None:
    a = values(shape, "int32", low=-3, high=3)
    A = given(a)
    expected: dict[te.Tensor, Any] = {topi.cumsum(A): a.cumsum(dtype="int32")}
    for axis in range(-len(shape), len(shape)):
        sums, products = a.cumsum(axis, dtype="int32"), a.cumprod(axis, dtype="int32")
        expected |= {
            topi.cumsum(A, axis): sums, topi.cumprod(A, axis): products,
            topi.cumsum(A, axis, exclusive=True): exclusive(sums, axis, 0),
            topi.cumprod(A, axis, exclusive=True): exclusive(products, axis, 1),
        }

    assert_results(expected, {A: a})


@pytest.mark.exhaustive(keep=11)
@pytest.mark.parametrize("dtype", ["bool", *INTEGERS, *FLOATS])
def test_types_of_running_sums(dtype: str) -> None:
    a = values((3, 6), dtype, low=-2, high=2)
    A = given(a)
    kind = "int32" if dtype == "bool" else a.dtype
    with np.errstate(all="ignore"):
        sums, products = (
            function(a.astype("float64"), axis=1).astype(kind) if dtype in FLOATS else
            function(a, axis=1, dtype=kind) for function in (np.cumsum, np.cumprod))

    assert_results({
        topi.cumsum(A, 1): sums, topi.cumprod(A, 1): products,
        topi.cumsum(A, 0, "float64"): a.astype("float64").cumsum(0),
    }, {A: a})


def test_scans_of_ones_own() -> None:
    a = values((4, 9), "float32")
    A = given(a)
    result = topi.scanop(A, te.max, -np.inf, "cummax", 1)

    assert_results({result: np.maximum.accumulate(a, 1)}, {A: a}, run=compiled)


def test_a_number_is_its_own_sum() -> None:
    a = values((), "float32")
    A = given(a)

    assert_results({topi.cumsum(A): a.reshape(1), topi.sum(A): a, topi.argmax(A): np.int32(0)},
                   {A: a})


def test_compiled() -> None:
    a = values((6, 50), "float32")
    A = given(a)

    assert_results({
        topi.sum(A, 1): a.sum(1), topi.argmax(A, 0): a.argmax(0).astype("int32"),
        topi.cumprod(topi.multiply(A, 0.1), 1): np.cumprod(a * np.float32(0.1), 1),
        topi.cumsum(A): a.cumsum(), topi.argmin(A): np.int32(a.argmin()),
    }, {A: a}, run=compiled)


@pytest.mark.exhaustive
def test_symbolic_sizes() -> None:
    n, m = te.var("n"), te.var("m")
    A = te.placeholder((n, m), name="A")
    outputs = [topi.sum(A), topi.max(A, 1, True), topi.argmin(A), topi.cumsum(A, 1),
               topi.cumprod(A, 0)]
    kernel = tecomp.build(outputs, [A, *outputs])
    for shape in [(1, 1), (3, 7), (2, 70)]:
        a = values(shape, "float32", low=-2, high=2)
        expected = [a.sum(), a.max(1, keepdims=True), np.int32(a.argmin()), a.cumsum(1), a.cumprod(0)]
        results = [np.full(np.shape(x), 77, x.dtype) for x in expected]
        kernel(a, *results)
        for result, right in zip(results, expected, strict=True):
            assert_close(result, right, rtol=1e-5)


@pytest.mark.exhaustive(keep=1)
@pytest.mark.parametrize("target", ["stick128", "tensix_wh"])
def test_on_machines_without_wide_integers(target: str) -> None:
    a = values((32, 64), "float16")
    A = given(a)
    program = tecomp.compile([topi.argmax(A, 1), topi.max(A, 1)], [A], target)
    places, most = program(a)

    np.testing.assert_array_equal(places, a.argmax(1))
    np.testing.assert_array_equal(most, a.max(1))


def test_refusals() -> None:
    A, E = te.placeholder((4, 6), name="A"), te.placeholder((4, 0), name="E")

    assert refused(lambda: topi.sum(A, 2)) == (
        Diagnostic(
            "unknown-choice", where="topi.sum", subject="axis", number=2,
            rank="the tensor has 2 axes; pass a number from -2 to 1",
        )
    )
    assert refused(lambda: topi.max(A, (0, 0))) == (
        Diagnostic("duplicate-argument", where="topi.max", subject="axis", axis=(0, 0), rank=2)
    )
    assert refused(lambda: topi.all(A)) == (
        Diagnostic("dtype", where="topi.all", data="A", dtype="float32")
    )
    assert refused(lambda: topi.logsumexp(topi.cast(A, "int8"))) == (
        Diagnostic("dtype", where="topi.logsumexp", x="T_cast", dtype="int8")
    )
    assert refused(lambda: topi.argmax(E, 1)) == (
        Diagnostic("shapes", where="topi.argmax", data="E", shape="(4, 0)", axes=(1,))
    )
    assert refused(lambda: topi.cumsum(A, -3)) == (
        Diagnostic(
            "unknown-choice", where="topi.cumsum", subject="axis", number=-3,
            rank="the tensor has 2 axes; pass a number from -2 to 1",
        )
    )
    assert refused(lambda: topi.collapse_sum(A, (2, 6))) == (
        Diagnostic("shapes", where="topi.collapse_sum", data="A", shape="(4, 6)", target="(2, 6)")
    )
    assert refused(lambda: topi.sum(A, 1.0)) == (  # type: ignore[arg-type]
        Diagnostic("invalid-type", where="topi.sum", subject="axis", value=1.0, type="float")
    )


@pytest.mark.parametrize("dtype", ["float32", "float16", "int8"])
@pytest.mark.parametrize("name", NAMESPACE)
def test_reductions_are_tagged(name: str, dtype: str) -> None:
    row = NAMESPACE[name]
    A = te.placeholder((3, 4), "bool" if row.of_truth else dtype, name="A")
    if not row.of_truth and not takes(row, dtype):
        with pytest.raises(TypeMismatchError) as error:
            getattr(topi, name)(A, 1)
        assert diagnostic(error.value) == (
            Diagnostic("dtype", where=f"topi.{name}", x="A", dtype=dtype))
        return
    result: Any = getattr(topi, name)(A, 1)

    assert result.op.tag == ("comm_reduce_idx" if name.startswith("arg") else "comm_reduce")


def test_keepdims_is_checked_for_tensors_without_axes() -> None:
    S = te.placeholder((), name="S")

    found = refused(lambda: topi.sum(S, keepdims="yes"), TypeMismatchError)  # type: ignore[arg-type]

    assert found.kind == "invalid-type"
