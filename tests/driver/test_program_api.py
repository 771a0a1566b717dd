"""Programs written for TVM's `te`, built and compared with NumPy after every pass."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray

import tecomp
from tecomp import te
from tecomp.compute import IterVar
from tecomp.driver import ScheduledKernel
from tests.numerics import assert_product

Agrees = Callable[..., ScheduledKernel]
Array = NDArray[Any]
FLOAT32 = 1e-5  # relative tolerance; sums of up to a few hundred products of values around 1


def normal(*shape: int, dtype: str = "float32") -> Array:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(dtype)


def test_vector_add(agrees: Agrees) -> None:
    """The first program of many tutorials, with a tail."""
    n = 1023
    A = te.placeholder((n,), name="A")
    B = te.placeholder((n,), name="B")
    C = te.compute(A.shape, lambda i: A[i] + B[i], name="C")
    s = te.create_schedule(C.op)
    outer, inner = s[C].split(C.op.axis[0], factor=8)
    s[C].parallel(outer)
    s[C].vectorize(inner)
    a, b = normal(n), normal(n)[::-1].copy()

    agrees(s, [A, B, C], {A: a, B: b, C: a + b})


def test_vector_add_of_any_size(agrees: Agrees) -> None:
    n = te.var("n")
    A = te.placeholder((n,), name="A")
    B = te.placeholder((n,), name="B")
    C = te.compute(A.shape, lambda i: A[i] + B[i], name="C")
    s = te.create_schedule(C.op)
    outer, inner = s[C].split(C.op.axis[0], factor=16)
    s[C].parallel(outer)
    s[C].vectorize(inner)

    for size in (0, 1, 2, 3, 7, 15, 16, 17, 127):
        a, b = normal(size), normal(size) * 3
        agrees(s, [A, B, C], {A: a, B: b, C: a + b})


def test_broadcast_add(agrees: Agrees) -> None:
    A = te.placeholder((7, 1, 9), name="A")
    B = te.placeholder((5, 9), name="B")
    C = te.compute((7, 5, 9), lambda i, j, k: A[i, 0, k] + B[j, k], name="C")
    s = te.create_schedule(C.op)
    fused = s[C].fuse(*s[C].op.axis[:2])
    s[C].parallel(fused)
    s[C].vectorize(s[C].op.axis[2])
    a, b = normal(7, 1, 9), normal(5, 9)

    agrees(s, [A, B, C], {A: a, B: b, C: a + b})


def convolution(x: Array, w: Array, stride: int = 1, pad: int = 0) -> Array:
    """Compute a convolution in NCHW by its definition."""
    x = np.pad(x, ((0, 0), (0, 0), (pad, pad), (pad, pad)))
    windows = np.lib.stride_tricks.sliding_window_view(x, w.shape[2:], axis=(2, 3))
    result: Array = np.einsum("nchwij,ocij->nohw", windows[:, :, ::stride, ::stride], w)
    return result


def padded(X: te.Tensor, pad: int) -> te.Tensor:
    """Pad the last two axes of `X` with zeros."""
    n, c, h, w = X.shape
    result: te.Tensor = te.compute(
        (n, c, h + 2 * pad, w + 2 * pad),
        lambda n, c, y, x: te.if_then_else(
            te.all(y >= pad, y - pad < h, x >= pad, x - pad < w),
            X[n, c, y - pad, x - pad], 0.0,
        ),
        name="pad",
    )
    return result


@pytest.mark.exhaustive(keep=1)
@pytest.mark.parametrize("stride", [1, 2])
def test_conv2d(stride: int, agrees: Agrees) -> None:
    X = te.placeholder((1, 2, 9, 7), name="X")
    W = te.placeholder((3, 2, 3, 3), name="W")
    P = padded(X, 1)
    rc, ry, rx = te.reduce_axis((0, 2)), te.reduce_axis((0, 3)), te.reduce_axis((0, 3))
    height, width = 8 // stride + 1, 6 // stride + 1
    Y = te.compute(
        (1, 3, height, width),
        lambda n, f, y, x: te.sum(
            P[n, rc, y * stride + ry, x * stride + rx] * W[f, rc, ry, rx], axis=[rc, ry, rx]
        ),
        name="Y",
    )
    s = te.create_schedule(Y.op)
    n, f, y, x = s[Y].op.axis
    yo, yi = s[Y].split(y, factor=4)
    s[Y].reorder(n, yo, f, rc, yi, ry, rx, x)
    s[P].compute_at(s[Y], yo)
    s[Y].vectorize(x)
    x_, w_ = normal(1, 2, 9, 7), normal(3, 2, 3, 3)

    agrees(s, [X, W, Y], {X: x_, W: w_, Y: convolution(x_, w_, stride, 1)}, rtol=FLOAT32)


def test_depthwise_conv2d(agrees: Agrees) -> None:
    X = te.placeholder((1, 8, 10, 10), name="X")
    W = te.placeholder((8, 3, 3), name="W")
    ry, rx = te.reduce_axis((0, 3), "ry"), te.reduce_axis((0, 3), "rx")
    Y = te.compute(
        (1, 8, 8, 8),
        lambda n, c, y, x: te.sum(X[n, c, y + ry, x + rx] * W[c, ry, rx], axis=[ry, rx]),
        name="Y",
    )
    Z = te.compute(Y.shape, lambda *i: te.max(Y[i], 0.0), name="relu")
    s = te.create_schedule(Z.op)
    _, c, y, x = s[Z].op.axis
    s[Y].compute_at(s[Z], y)
    s[Y].reorder(ry, rx, s[Y].op.axis[3])
    s[Y].vectorize(s[Y].op.axis[3])
    s[Z].vectorize(x)
    s[Z].parallel(c)
    x_, w_ = normal(1, 8, 10, 10), normal(8, 3, 3)
    each = [convolution(x_[:, c : c + 1], w_[c][None, None]) for c in range(8)]

    expected = np.maximum(np.concatenate(each, axis=1), 0)
    agrees(s, [X, W, Z], {X: x_, W: w_, Z: expected}, rtol=FLOAT32)


def test_max_pool(agrees: Agrees) -> None:
    X = te.placeholder((2, 4, 9, 9), name="X")
    ry, rx = te.reduce_axis((0, 3), "ry"), te.reduce_axis((0, 3), "rx")
    Y = te.compute(
        (2, 4, 4, 4),
        lambda n, c, y, x: te.max(X[n, c, y * 2 + ry, x * 2 + rx], axis=[ry, rx]),
        name="Y",
    )
    s = te.create_schedule(Y.op)
    s[Y].parallel(s[Y].fuse(*s[Y].op.axis[:2]))
    x = normal(2, 4, 9, 9)
    windows = np.lib.stride_tricks.sliding_window_view(x, (3, 3), axis=(2, 3))

    agrees(s, [X, Y], {X: x, Y: windows[:, :, ::2, ::2].max(axis=(-2, -1))})


def test_softmax(agrees: Agrees) -> None:
    m, n = 6, 33
    X = te.placeholder((m, n), name="X")
    k, k2 = te.reduce_axis((0, n), "k"), te.reduce_axis((0, n), "k2")
    top = te.compute((m,), lambda i: te.max(X[i, k], axis=k), name="top")
    e = te.compute((m, n), lambda i, j: te.exp(X[i, j] - top[i]), name="e")
    total = te.compute((m,), lambda i: te.sum(e[i, k2], axis=k2), name="total")
    Y = te.compute((m, n), lambda i, j: e[i, j] / total[i], name="Y")
    s = te.create_schedule(Y.op)
    i, _ = s[Y].op.axis
    for stage in (total, e, top):
        s[stage].compute_at(s[Y], i)
    s[Y].parallel(i)
    _, inner = s[e].split(s[e].op.axis[1], factor=8)
    s[e].vectorize(inner)
    x = normal(m, n)
    ex = np.exp(x - x.max(axis=1, keepdims=True))

    agrees(s, [X, Y], {X: x, Y: ex / ex.sum(axis=1, keepdims=True)}, rtol=FLOAT32)


def test_layer_norm(agrees: Agrees) -> None:
    m, n = 5, 24
    X = te.placeholder((m, n), name="X")
    gamma, beta = te.placeholder((n,), name="gamma"), te.placeholder((n,), name="beta")
    k = te.reduce_axis((0, n), "k")
    k2 = te.reduce_axis((0, n), "k2")
    mean = te.compute((m,), lambda i: te.sum(X[i, k] / float(n), axis=k), name="mean")
    centred = te.compute((m, n), lambda i, j: X[i, j] - mean[i], name="centred")
    var = te.compute(
        (m,), lambda i: te.sum(centred[i, k2] * centred[i, k2] / float(n), axis=k2), name="var"
    )
    Y = te.compute(
        (m, n), lambda i, j: centred[i, j] * te.rsqrt(var[i] + 1e-5) * gamma[j] + beta[j], name="Y"
    )
    s = te.create_schedule(Y.op)
    s[centred].compute_inline()
    s[mean].compute_at(s[Y], s[Y].op.axis[0])
    s[var].compute_at(s[Y], s[Y].op.axis[0])
    s[Y].vectorize(s[Y].op.axis[1])
    x, g, b = normal(m, n), normal(n), normal(n)[::-1].copy()
    c = x - x.mean(axis=1, keepdims=True)
    y = c / np.sqrt((c * c).mean(axis=1, keepdims=True) + 1e-5) * g + b

    agrees(s, [X, gamma, beta, Y], {X: x, gamma: g, beta: b, Y: y}, rtol=FLOAT32)


def test_argmax(agrees: Agrees) -> None:
    """The argmax of TVM's tutorial on tuple reductions."""
    m, n = 4, 30

    def fcombine(x: Any, y: Any) -> Any:
        lhs = te.Select((x[1] >= y[1]), x[0], y[0])
        rhs = te.Select((x[1] >= y[1]), x[1], y[1])
        return lhs, rhs

    def fidentity(t0: str, t1: str) -> Any:
        return te.const(-1, t0), te.min_value(t1)

    argmax = te.comm_reducer(fcombine, fidentity, name="argmax")
    idx = te.placeholder((m, n), name="idx", dtype="int32")
    val = te.placeholder((m, n), name="val", dtype="int32")
    k = te.reduce_axis((0, n), "k")
    T0, T1 = te.compute((m,), lambda i: argmax((idx[i, k], val[i, k]), axis=k), name="T")
    s = te.create_schedule(T0.op)
    values = np.random.default_rng(0).integers(-50, 50, (m, n), dtype="int32")
    places = np.broadcast_to(np.arange(n, dtype="int32"), (m, n)).copy()

    agrees(
        s, [idx, val, T0, T1],
        {idx: places, val: values, T0: values.argmax(axis=1).astype("int32"),
         T1: values.max(axis=1)},
    )


def test_rfactor_sum(agrees: Agrees) -> None:
    n, m = 6, 70
    A = te.placeholder((n, m), name="A", dtype="int32")
    k = te.reduce_axis((0, m), "k")
    B = te.compute((n,), lambda i: te.sum(A[i, k], axis=k), name="B")
    s = te.create_schedule(B.op)
    _, ki = s[B].split(B.op.reduce_axis[0], factor=16)
    BF = s.rfactor(B, ki)
    assert isinstance(BF, te.Tensor)
    s[BF].compute_at(s[B], s[B].op.axis[0])
    a = np.arange(n * m, dtype="int32").reshape(n, m)

    agrees(s, [A, B], {A: a, B: a.sum(axis=1, dtype="int32")})


def test_embedding_lookup(agrees: Agrees) -> None:
    table = te.placeholder((20, 12), name="table")
    ids = te.placeholder((2, 7), name="ids", dtype="int64")
    Y = te.compute((2, 7, 12), lambda b, t, d: table[ids[b, t], d], name="Y")
    s = te.create_schedule(Y.op)
    s[Y].vectorize(s[Y].op.axis[2])
    rows, picked = normal(20, 12), np.random.default_rng(0).integers(0, 20, (2, 7))

    agrees(s, [table, ids, Y], {table: rows, ids: picked, Y: rows[picked]})


def test_cumulative_sum_as_a_product_with_a_triangle(agrees: Agrees) -> None:
    n = 25
    A = te.placeholder((n,), name="A", dtype="int32")
    k = te.reduce_axis((0, n), "k")
    B = te.compute((n,), lambda i: te.sum(A[k], axis=k, where=k <= i), name="B")
    a = np.arange(n, dtype="int32") ** 2

    agrees(te.create_schedule(B.op), [A, B], {A: a, B: np.cumsum(a, dtype="int32")})


@pytest.mark.parametrize("axes", [(1, 0, 2), (2, 1, 0), (0, 2, 1)])
def test_transpose(axes: tuple[int, ...], agrees: Agrees) -> None:
    shape = (5, 9, 12)
    A = te.placeholder(shape, name="A")
    back = np.argsort(axes)
    B = te.compute(
        [shape[axis] for axis in axes], lambda *i: A[tuple(i[int(k)] for k in back)], name="B"
    )
    s = te.create_schedule(B.op)
    _, y, z = s[B].op.axis
    s[B].tile(y, z, 4, 4)
    a = normal(*shape)

    agrees(s, [A, B], {A: a, B: a.transpose(axes)})


def test_dot_of_int8_in_int32(agrees: Agrees) -> None:
    A = te.placeholder((5, 16), name="A", dtype="int8")
    B = te.placeholder((12, 16), name="B", dtype="int8")
    k = te.reduce_axis((0, 16), "k")
    C = te.compute(
        (5, 12),
        lambda i, j: te.sum(A[i, k].astype("int32") * B[j, k].astype("int32"), axis=k), name="C",
    )
    s = te.create_schedule(C.op)
    _, j = s[C].op.axis
    _, ji = s[C].split(j, factor=8)
    s[C].reorder(k, ji)
    s[C].vectorize(ji)
    a, b = (np.random.default_rng(x).integers(-128, 128, (rows, 16), "int8")
            for x, rows in ((0, 5), (1, 12)))

    agrees(s, [A, B, C], {A: a, B: b, C: a.astype("int32") @ b.T.astype("int32")})


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_precision(dtype: str, agrees: Agrees) -> None:
    numpy = np.dtype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)
    A = te.placeholder((9, 16), name="A", dtype=dtype)
    k = te.reduce_axis((0, 16), "k")
    B = te.compute((9, 16), lambda i, j: A[i, j] * A[i, j] + te.const(1, dtype), name="B")
    C = te.compute((9,), lambda i: te.sum(A[i, k].astype("float32"), axis=k), name="C")
    s = te.create_schedule([B.op, C.op])
    s[B].vectorize(s[B].op.axis[1])
    a = normal(9, 16).astype(numpy)

    agrees(
        s, [A, B, C],
        {A: a, B: a * a + numpy.type(1), C: a.astype("float32").sum(axis=1)}, rtol=FLOAT32,
    )


def test_tiles_of_tiles_that_do_not_divide() -> None:
    """Six splits of each axis, whose factors do not divide: simple as sums, hard as quotients."""
    A = te.placeholder((61, 31), name="A")
    B = te.placeholder((31, 127), name="B")
    k = te.reduce_axis((0, 31), name="k")
    C = te.compute((61, 127), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")
    s = te.create_schedule(C.op)

    def tiles(axis: IterVar, factors: tuple[int, ...]) -> list[IterVar]:
        loops = [axis]
        for factor in factors:
            loops += s[C].split(loops.pop(), factor=factor)
        return loops

    rows, columns = (tiles(axis, factors) for axis, factors in zip(
        C.op.axis, [(32, 16, 8, 4, 3, 2), (100, 50, 25, 7, 5, 2)], strict=True))
    order = [loop for pair in zip(rows, columns, strict=True) for loop in pair]
    s[C].reorder(*order[:6], *tiles(k, (9, 5, 2)), *order[6:])
    a, b, c = normal(61, 31), normal(31, 127), np.empty((61, 127), np.float32)

    tecomp.build(s, [A, B, C])(a, b, c)

    assert_product(c, a, b)
