"""Matrix decompositions and functions based on them agree with NumPy."""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import Any

import numpy as np
import pytest

import tecomp.array as xp
from tecomp.array.array_object import Array
from tecomp.errors import ArrayTypeError, ArrayValueError, DeviceMismatchError, TeamMismatchError
from tests.array.drawn import NUMBERS, Data, array, check, draw
from tests.messages import Diagnostic, diagnostic
from tests.numerics import assert_close
from tests.strategies.dtypes import standard

FLOATING = standard("real floating", "complex floating")
SHAPES = [(3, 3), (2, 4, 4), (0, 3, 3), (0, 0)]


def near(actual: Array, expected: Any, size: float = 1) -> None:
    """Check equality up to the rounding error of a decomposition."""
    expected = np.asarray(expected)
    assert (actual.dtype, actual.shape) == (expected.dtype, expected.shape)
    off = 200 * np.finfo(expected.dtype).eps * size
    assert_close(np.asarray(actual), expected, rtol=off, atol=off)


def adjoint(x: Data) -> Data:
    transposed: Data = np.conj(np.matrix_transpose(x))
    return transposed


def square(shape: tuple[int, ...], dtype: str) -> Data:
    """Return well-conditioned square matrices."""
    x: Data = (draw(shape, dtype) + 8 * np.eye(shape[-1], dtype=dtype)).astype(dtype)
    return x


@pytest.mark.exhaustive(keep=2)
@pytest.mark.parametrize("dtype", FLOATING)
@pytest.mark.parametrize("shape", SHAPES)
def test_square_matrices(dtype: str, shape: tuple[int, ...]) -> None:
    x = square(shape, dtype)
    near(xp.linalg.det(array(x)), np.linalg.det(x), 1000)
    near(xp.linalg.inv(array(x)), np.linalg.inv(x))
    sign, size = xp.linalg.slogdet(array(x))
    near(sign, np.linalg.slogdet(x)[0])
    near(size, np.linalg.slogdet(x)[1])
    whole = "complex64" if dtype in ("float32", "complex64") else "complex128"
    values, vectors = xp.linalg.eig(array(x))
    assert (values.dtype, vectors.dtype) == (np.dtype(whole), np.dtype(whole))
    near(array(x.astype(whole)) @ vectors, np.asarray(vectors) * np.asarray(values)[..., None, :], 9)
    near(xp.linalg.eigvals(array(x)), np.asarray(values), 9)
    for n in (0, 1, 2, 5, -2):
        scaled = x / 8
        near(xp.linalg.matrix_power(array(scaled), n), np.linalg.matrix_power(scaled, n), 9)


@pytest.mark.exhaustive(keep=8)
@pytest.mark.parametrize("dtype", FLOATING)
@pytest.mark.parametrize("shape", SHAPES)
def test_hermitian_matrices(dtype: str, shape: tuple[int, ...]) -> None:
    x = square(shape, dtype)
    whole = (x @ adjoint(x)).astype(dtype)
    values, vectors = xp.linalg.eigh(array(whole))
    near(values, np.linalg.eigvalsh(whole), 100)
    near(xp.linalg.eigvalsh(array(whole)), np.linalg.eigvalsh(whole), 100)
    near(array(whole) @ vectors, np.asarray(vectors) * np.asarray(values)[..., None, :], 100)
    near(xp.linalg.cholesky(array(whole)), np.linalg.cholesky(whole))
    near(xp.linalg.cholesky(array(whole), upper=True), np.linalg.cholesky(whole, upper=True))


@pytest.mark.exhaustive(keep=6)
@pytest.mark.parametrize("dtype", FLOATING)
@pytest.mark.parametrize("shape", [(3, 4), (2, 4, 3), (0, 3, 2), (3, 0)])
def test_matrices_of_any_shape(dtype: str, shape: tuple[int, ...]) -> None:
    x = draw(shape, dtype)
    for full in (False, True):
        u, s, vh = xp.linalg.svd(array(x), full_matrices=full)
        expected = np.linalg.svd(x, full_matrices=full)
        assert (u.shape, vh.shape) == (expected.U.shape, expected.Vh.shape)
        near(s, expected.S, 9)
        k = min(shape[-2:])
        result = np.asarray(u)[..., :k] * np.asarray(s)[..., None, :] @ np.asarray(vh)[..., :k, :]
        near(array(result.astype(dtype)), x, 9)
        mode: Any = "complete" if full else "reduced"
        q, r = xp.linalg.qr(array(x), mode=mode)
        assert (q.shape, r.shape) == tuple(part.shape for part in np.linalg.qr(x, mode))
        near(q @ r, x, 9)
    near(xp.linalg.svdvals(array(x)), np.linalg.svdvals(x), 9)
    if 0 in shape[-2:]:
        return
    near(xp.linalg.pinv(array(x)), np.linalg.pinv(x), 9)
    near(xp.linalg.pinv(array(x), rtol=0.5), np.linalg.pinv(x, rtol=0.5), 9)
    check(xp.linalg.matrix_rank(array(x)), np.linalg.matrix_rank(x))
    tolerance = np.full(shape[:-2], 0.5, x.real.dtype)
    check(
        xp.linalg.matrix_rank(array(x), rtol=array(tolerance)),
        np.linalg.matrix_rank(x, rtol=tolerance),
    )


@pytest.mark.parametrize("dtype", FLOATING)
@pytest.mark.parametrize(
    ("first", "second"),
    [((3, 3), (3,)), ((3, 3), (3, 2)), ((2, 1, 3, 3), (5, 3, 1)), ((2, 3, 3), (3,)),
     ((0, 0), (0, 2))])
def test_equations(dtype: str, first: tuple[int, ...], second: tuple[int, ...]) -> None:
    a, b = square(first, dtype), draw(second, dtype)
    near(xp.linalg.solve(array(a), array(b)), np.linalg.solve(a, b))


@pytest.mark.exhaustive(keep=4)
@pytest.mark.parametrize("dtype", FLOATING)
@pytest.mark.parametrize("ord", ["fro", "nuc", 1, -1, 2, -2, inf, -inf])
def test_norms_of_matrices(dtype: str, ord: Any) -> None:
    x = draw((2, 3, 4), dtype)
    for keepdims in (False, True):
        expected = np.linalg.matrix_norm(x, ord=ord, keepdims=keepdims)
        near(xp.linalg.matrix_norm(array(x), ord=ord, keepdims=keepdims), expected, 9)


@pytest.mark.exhaustive(keep=1, most=9)
@pytest.mark.parametrize("dtype", FLOATING)
@pytest.mark.parametrize("ord", [2, 1, 0, inf, -inf, 3, -2, 0.5])
def test_norms_of_vectors(dtype: str, ord: Any) -> None:
    x = draw((2, 3, 4), dtype) + np.asarray(9, dtype)
    ways: list[tuple[Any, bool]] = [(None, False), (0, True), ((0, 2), False)]
    for axis, keepdims in ways:
        expected = np.linalg.vector_norm(x, axis=axis, ord=ord, keepdims=keepdims)
        near(xp.linalg.vector_norm(array(x), axis=axis, ord=ord, keepdims=keepdims), expected, 99)


@pytest.mark.exhaustive(keep=1)
@pytest.mark.parametrize("dtype", NUMBERS)
def test_parts_and_products(dtype: str) -> None:
    x, y = draw((2, 4, 3), dtype), draw((1, 3), dtype, 1)
    offset = NUMBERS.index(dtype) % 7 - 3
    check(xp.linalg.diagonal(array(x), offset=offset), np.linalg.diagonal(x, offset=offset))
    expected = np.sum(np.linalg.diagonal(x, offset=offset), axis=-1)
    check(xp.linalg.trace(array(x), offset=offset), expected)
    check(xp.linalg.outer(array(x[0, 0]), array(y[0])), np.outer(x[0, 0], y[0]))
    check(xp.linalg.cross(array(x[0]), array(y)), np.cross(x[0], y))
    up = np.ascontiguousarray(np.moveaxis(x, -1, 0))
    check(xp.linalg.cross(array(up), array(up[::-1].copy()), axis=0),
          np.cross(up, up[::-1], axis=0))


def test_trace_of_narrow_integers_is_wide() -> None:
    x = np.full((2, 2), 100, "int8")
    check(xp.linalg.trace(array(x)), np.int64(200))
    check(xp.linalg.trace(array(x), dtype=np.float32), np.float32(200))


def test_refusals() -> None:
    x: Any = array(np.ones((2, 3)))
    s: Any = array(np.ones((2, 2)))
    no_mode: Any = "raw"
    refused_calls: list[tuple[Callable[[], Any], type[Exception], Diagnostic]] = [
        (lambda: xp.linalg.inv(x), ArrayValueError,
         Diagnostic("array-shapes", where="inv", shape=(2, 3))),
        (lambda: xp.linalg.inv(s), ArrayValueError,
         Diagnostic(
             "array-value", where="inv", library="numpy.linalg.inv", shapes="(2, 2)",
             reason="Singular matrix",
         )),
        (lambda: xp.linalg.cholesky(array(-np.eye(2))), ArrayValueError,
         Diagnostic(
             "array-value", where="cholesky", library="numpy.linalg.cholesky", shapes="(2, 2)",
             reason="Matrix is not positive definite",
         )),
        (lambda: xp.linalg.det(array(np.ones((2, 2), "int32"))), ArrayTypeError,
         Diagnostic(
             "array-type", where="det", subject="the element dtype is", dtype="int32",
             supported="float32, float64, complex64, complex128",
         )),
        (lambda: xp.linalg.svd(x[0]), ArrayValueError,
         Diagnostic("array-shapes", where="svd", shape=(3,))),
        (lambda: xp.linalg.qr(x, mode=no_mode), ArrayValueError,
         Diagnostic(
             "array-value", where="qr", subject="mode", value="raw", name="'reduced'",
             other_name="'complete'",
         )),
        (lambda: xp.linalg.solve(s, array(np.ones(3))), ArrayValueError,
         Diagnostic("array-shapes", shape=(2, 2), b_shape=(3,), extent=2)),
        (lambda: xp.linalg.matrix_norm(x, ord=3), ArrayValueError,
         Diagnostic("array-value", ord=3)),
        (lambda: xp.linalg.vector_norm(x, ord="fro"), ArrayTypeError,  # type: ignore[arg-type]
         Diagnostic("array-type", where="vector_norm", ord="fro")),
        (lambda: xp.linalg.cross(x, array(np.ones((2, 2)))), ArrayValueError,
         Diagnostic("array-shapes", shape=(2, 3), y_shape=(2, 2), axis=-1, extent=2)),
        (lambda: xp.linalg.outer(x, x), ArrayValueError,
         Diagnostic("array-shapes", shape=(2, 3), y_shape=(2, 3))),
        (lambda: xp.linalg.matrix_rank(x, rtol=array(np.ones(4))), ArrayValueError,
         Diagnostic("array-shapes", where="matrix_rank", shape=(4,), extent=())),
    ]
    for call, kind, expected in refused_calls:
        with pytest.raises(kind) as refused:
            call()
        assert diagnostic(refused.value) == expected


@pytest.mark.parametrize("function", [
    xp.linalg.solve, xp.linalg.outer, xp.linalg.cross, xp.linalg.matmul, xp.linalg.vecdot,
    xp.linalg.tensordot, xp.isin, xp.searchsorted,
    lambda x, y: xp.diff(x, prepend=y), lambda x, y: xp.linalg.pinv(x, rtol=y),
    lambda x, y: xp.linalg.matrix_rank(x, rtol=y), lambda x, y: xp.searchsorted(x, x, sorter=y),
])
def test_operands_must_be_on_one_device(function: Any) -> None:
    x = np.ones((3, 3))
    with pytest.raises(DeviceMismatchError):
        function(array(x), array(x, device="stick128"))
    with pytest.raises(TeamMismatchError):
        function(array(x, team=1), array(x, team=2))
