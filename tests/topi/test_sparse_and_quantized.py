"""Sparse products, binary networks, simulated quantization, argwhere and Fourier transforms."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse

import tecomp
from tecomp import te, topi
from tests.messages import Diagnostic, diagnostic
from tests.topi.running import assert_results, compiled, given, interpreted, values

RUNS = pytest.mark.parametrize("run", [interpreted, compiled])


def sparse(shape: tuple[int, int], density: float, seed: int, dtype: str = "float32") -> Any:
    """Draw a CSR matrix of small integers."""
    dice = np.random.default_rng(seed)
    full = dice.integers(1, 9, shape) * (dice.random(shape) < density)
    return scipy.sparse.csr_matrix(full.astype(dtype))


def placed(matrix: Any, index: str) -> dict[te.Tensor, Any]:
    return {
        given(array, name): array for name, array in [
            ("data", matrix.data), ("indices", matrix.indices.astype(index)), ("indptr", matrix.indptr.astype(index))]
    }


@pytest.mark.exhaustive(keep=20, most=48)
@RUNS
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32"])
@pytest.mark.parametrize(("shape", "density"), [((5, 7), 0.4), ((1, 3), 1.0), ((6, 4), 0.0), ((9, 9), 0.2)])
@pytest.mark.parametrize("is_left", [False, True])
def test_sparse_dense_of_rows(
    shape: tuple[int, int], density: float, dtype: str, is_left: bool, run: Callable[..., Any]
) -> None:
    W, x = sparse(shape, density, 1, dtype), values((3, shape[1]), dtype)
    arrays = {given(x, "X"): x, **placed(W, "int32")}
    expected = W.toarray() @ x.T if is_left else x @ W.toarray().T
    X, d, i, p = arrays
    result = topi.nn.sparse_dense(X, d, i, p, sparse_lhs=is_left)

    assert_results({result: expected}, arrays, run=run)


@RUNS
@pytest.mark.parametrize("is_left", [False, True])
@pytest.mark.parametrize("block", [(2, 3), (1, 4), (4, 1)])
def test_sparse_dense_of_blocks(block: tuple[int, int], is_left: bool, run: Callable[..., Any]) -> None:
    full = np.kron(np.random.default_rng(0).random((3, 2)) < 0.5, np.ones(block)) * values(
        (3 * block[0], 2 * block[1]), "float32", low=1)
    W = scipy.sparse.bsr_matrix(full.astype("float32"), blocksize=block)
    x = values((5, full.shape[1]), "float32")
    arrays = {given(x, "X"): x, **placed(W, "int64")}
    expected = W.toarray() @ x.T if is_left else x @ W.toarray().T
    X, d, i, p = arrays
    result = topi.nn.sparse_dense(X, d, i, p, sparse_lhs=is_left)

    assert_results({result: expected}, arrays, run=run)


def test_columns_that_are_not_there_are_left_out() -> None:
    x = values((2, 4), "float32")
    arrays = {
        given(x, "X"): x,
        **{given(a, name): a for name, a in [
            ("d", np.array([2, 3, 4], "float32")), ("i", np.array([1, -1, 10**9], "int64")),
            ("p", np.array([-5, 1, 99], "int64"))]},
    }
    expected = np.stack([2 * x[:, 1], 0 * x[:, 0]], axis=1)

    X, d, i, p = arrays

    assert_results({topi.nn.sparse_dense(X, d, i, p): expected}, arrays, run=compiled)


@RUNS
@pytest.mark.parametrize("seed", range(3))
def test_sparse_transpose(seed: int, run: Callable[..., Any]) -> None:
    W = sparse((6, 6), 0.3, seed)
    expected = scipy.sparse.csr_matrix(W.T)
    expected.sort_indices()
    arrays = placed(W, "int32")
    result = topi.nn.sparse_transpose(*arrays)

    assert_results(dict(zip(result, (expected.data, expected.indices, expected.indptr), strict=True)), arrays, run=run)


@pytest.mark.exhaustive(keep=6)
@RUNS
@pytest.mark.parametrize(("shape", "axis"), [((3, 64), None), ((32,), 0), ((2, 96, 3), 1), ((64, 2), -2)])
def test_signs_are_packed(shape: tuple[int, ...], axis: int | None, run: Callable[..., Any]) -> None:
    x = values(shape, "float32")
    along = -1 if axis is None else axis
    rows = np.moveaxis(x >= 0, along, -1)
    words = np.ascontiguousarray(np.packbits(rows, axis=-1)).view(">u4").astype("uint32")
    A = given(x)
    arrays = {A: x}

    assert_results({topi.nn.binarize_pack(A, axis): np.moveaxis(words, -1, along)}, arrays, run=run)


@pytest.mark.exhaustive(keep=1)
@RUNS
def test_products_of_packed_signs(run: Callable[..., Any]) -> None:
    x, w = values((4, 96), "float32"), values((5, 96), "float32", seed=1)
    arrays = {given(x, "A"): x, given(w, "W"): w}
    A, W = [topi.nn.binarize_pack(item) for item in arrays]
    signs = [np.where(item >= 0, 1, -1) for item in (x, w)]
    result = topi.nn.binary_dense(A, W)

    assert result.dtype == "float32"
    assert_results({result: (signs[0] @ signs[1].T).astype("float32")}, arrays, run=run)


LIMITS = {"int8": (-128, 127), "uint8": (0, 255), "int32": (-(2**31), 2**31 - 1)}


@pytest.mark.exhaustive(keep=16)
@RUNS
@pytest.mark.parametrize("dtype", topi.nn.SQNN_DTYPE_TO_CODE)
@pytest.mark.parametrize(("channels", "axis"), [((), -1), ((1,), 0), ((5,), -1), ((3,), 0)])
def test_simulated_quantization(dtype: str, channels: tuple[int, ...], axis: int, run: Callable[..., Any]) -> None:
    x = values((3, 5), "float32", low=-300, high=300)
    scale = np.asarray(np.random.default_rng(0).integers(1, 5, channels) / 4, "float32")
    zero = np.asarray(np.random.default_rng(1).integers(-3, 9, channels), "int32")
    code = np.array(topi.nn.SQNN_DTYPE_TO_CODE[dtype], "int32")
    arrays = {given(x, "A"): x, given(code, "code"): code, given(scale, "s"): scale, given(zero, "z"): zero}
    s, z = [np.reshape(item, (-1, 1)) if axis == 0 else item for item in (scale, zero)]
    steps = np.round(x / s)
    # Ties are rounded away from 0, as by te.round.
    steps = np.where(np.abs(x / s) % 1 == 0.5, np.trunc(x / s) + np.sign(x), steps)
    packed, back = x, x
    if dtype != "disable":
        packed, back = np.clip(steps + z, *LIMITS[dtype]), (x - z) * s
    A, c, S, Z = arrays

    assert_results({
        topi.nn.simulated_quantize(A, c, S, Z, axis): packed.astype("float32"),
        topi.nn.simulated_dequantize(A, c, S, Z, axis): back.astype("float32"),
    }, arrays, run=run)


@pytest.mark.exhaustive(keep=7)
@RUNS
@pytest.mark.parametrize("shape", [(), (5,), (3, 4), (2, 3, 2), (2, 1, 2, 3, 2)])
def test_argwhere(shape: tuple[int, ...], run: Callable[..., Any]) -> None:
    for dtype in ("bool", "int32", "float32"):
        x = values(shape, dtype, low=-1, high=2)
        found = np.argwhere(x).astype("int32")
        arrays = {given(x): x}
        (A,) = arrays
        more = np.concatenate([found, np.zeros((2, len(shape)), "int32")])
        assert_results({
            topi.argwhere(te.placeholder(found.shape, "int32"), A): found, topi.argwhere(more.shape, A): more,
        }, arrays, run=run)


def test_argwhere_of_too_few_rows() -> None:
    A = te.placeholder((4,), name="A")
    program = tecomp.compile([topi.argwhere((2, 1), A)], [A])
    with pytest.raises(tecomp.CallError) as error:
        program(np.ones(4, "float32"))
    assert diagnostic(error.value) == Diagnostic("limit-exceeded", found_count=4, out_count=2)


@RUNS
@pytest.mark.parametrize("inverse", [False, True, te.const(1, "int32")])
@pytest.mark.parametrize(("shape", "dtype"), [
    ((8,), "float32"), ((3, 7), "float64"), ((2, 1), "float32"), ((2, 3, 12), "float16")])
def test_dft(shape: tuple[int, ...], dtype: str, inverse: Any, run: Callable[..., Any]) -> None:
    re, im = values(shape, dtype), values(shape, dtype, seed=1)
    R, I_ = given(re, "re"), given(im, "im")
    arrays = {R: re, I_: im}
    given_ = re.astype("complex128") + 1j * im
    n = shape[-1]
    sign = -1 if inverse is False else 1
    turn = np.exp(sign * 2j * np.pi * np.outer(np.arange(n), np.arange(n)) / n)
    expected = given_ @ turn / (1 if inverse is False else n)
    result = topi.dft(R, I_, inverse)
    for found, part in zip(run(result, arrays), (expected.real, expected.imag), strict=True):
        assert found.dtype == dtype
        eps = float(np.finfo(dtype).eps)
        bound = 8 * eps * np.abs(given_).sum(axis=-1, keepdims=True)
        assert (np.abs(found - part) <= bound).all()


D, J, P = te.placeholder((5,), name="d"), te.placeholder((5,), "int32", name="i"), te.placeholder((4,), "int32", name="p")
X, U = te.placeholder((8, 16), name="X"), te.placeholder((4, 2), "uint32", name="U")
CODE, S = te.placeholder((), "int32", name="code"), te.placeholder((3,), name="s")


@pytest.mark.parametrize(("action", "expected"), [
    (lambda: topi.nn.sparse_dense(X, D, te.placeholder((4,), "int32"), P),
     Diagnostic(
         "shapes", where="topi.nn.sparse_dense", shape="(5,)", indices_shape="(4,)",
         pointers_shape="(4,)",
     )),
    (lambda: topi.nn.sparse_dense(X, te.placeholder((5,), "float64", name="d"), J, P),
     Diagnostic(
         "dtype", where="topi.nn.sparse_dense", dtype="float32", data_dtype="float64",
         data="d",
     )),
    (lambda: topi.nn.binarize_pack(X),
     Diagnostic(
         "shapes", where="topi.nn.binarize_pack", data="X", shape="(8, 16)", axis=1, bits=32,
     )),
    (lambda: topi.nn.binary_dense(U, X),
     Diagnostic(
         "shapes", where="topi.nn.binary_dense", dtype="uint32", shape="(4, 2)",
         weight_dtype="float32", weight_shape="(8, 16)",
     )),
    (lambda: topi.nn.simulated_dequantize(X, te.placeholder((2,), "int32"), S, S),
     Diagnostic("shapes", where="topi.nn.simulated_dequantize", subject="in_dtype", shape="(2,)")),
    (lambda: topi.nn.simulated_dequantize(X, CODE),
     Diagnostic("missing-input", where="topi.nn.simulated_dequantize", prefix="input")),
    (lambda: topi.nn.simulated_quantize(X, CODE, S, S),
     Diagnostic(
         "shapes", where="topi.nn.simulated_quantize", prefix="output", subject="scale",
         value_shape="(3,)", data="X", shape="(8, 16)", axis=1,
     )),
    (lambda: topi.argwhere((3, 1), X),
     Diagnostic(
         "shapes", where="topi.argwhere", shape="(3, 1)", condition="X",
         condition_shape="(8, 16)", ndim=2,
     )),
    (lambda: topi.dft(X, te.placeholder((8, 15)), False),
     Diagnostic(
         "shapes", where="topi.dft", dtype="float32", shape="(8, 16)", im_data_dtype="float32",
         im_data_shape="(8, 15)",
     )),
])  # fmt: skip
def test_mismatched_operands_are_rejected(action: Callable[[], object], expected: Diagnostic) -> None:
    with pytest.raises(tecomp.DefinitionError) as error:
        action()
    assert diagnostic(error.value) == expected


@pytest.mark.parametrize(("indices", "pointers", "expected"), [
    ([0, 1, 5], [0, 1, 2, 3], Diagnostic("call", last=2)),
    ([0, 1, 2], [0, 2, 1, 3], Diagnostic("call", column_count=3)),
])
def test_invalid_sparse_matrices_are_rejected(
    indices: list[int], pointers: list[int], expected: Diagnostic
) -> None:
    given_ = [np.ones(3, "float32"), np.array(indices, "int32"), np.array(pointers, "int32")]
    inputs = [given(each, name) for each, name in zip(given_, "dip", strict=True)]
    program = tecomp.compile(list(topi.nn.sparse_transpose(*inputs)), inputs)
    with pytest.raises(tecomp.CallError) as error:
        program(*given_)
    assert diagnostic(error.value) == expected
