"""Activations, norms, products, padding and block layouts of neural networks agree with NumPy."""

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
from tests.strategies.dtypes import FLOATS, FLOATS_WITH_ZERO, INTEGERS
from tests.topi.refusals import refused
from tests.topi.running import (
    Array,
    arrays_of,
    assert_results,
    compiled,
    given,
    interpreted,
    numpy_type,
    values,
)


@pytest.mark.parametrize("dtype", [*INTEGERS, *FLOATS_WITH_ZERO])
def test_rectified(dtype: str) -> None:
    a = values((3, 4), dtype)
    A = given(a)

    assert_results({nn.relu(A): np.maximum(a, 0).astype(a.dtype)}, {A: a})


@pytest.mark.parametrize("dtype", FLOATS_WITH_ZERO)
def test_activations(dtype: str) -> None:
    a = np.array([[-30, -2, -0.5], [0.5, 3, 30], [np.nan, -np.inf, np.inf]]).astype(numpy_type(dtype))
    s = values((3,), dtype, seed=1)
    A, S = given(a), given(s, "S")
    widened = a.astype("float64")
    slopes = s.astype("float64")
    slope = float(np.array(0.25).astype(a.dtype))  # 0 in float4_e2m1fn
    with np.errstate(all="ignore"):
        expected = {
            nn.leaky_relu(A, 0.25): np.where(widened > 0, widened, slope * widened),
            nn.softplus(A): np.where(widened > 20, widened, np.log1p(np.exp(widened))),
            nn.softplus(A, 2.0, 3.0): np.where(2 * widened > 3, widened, np.log1p(np.exp(2 * widened)) / 2),
            nn.prelu(A, S, -1): np.where(widened > 0, widened, widened * slopes),
            nn.bias_add(A, S, 0): widened + slopes[:, None],
            nn.bias_add(A, S): widened + slopes,
        }

    assert_results({x: y.astype(a.dtype) for x, y in expected.items()}, {A: a, S: s})


def test_scales_and_shifts() -> None:
    arrays = arrays_of((2, 3, 4, 3), (3,), (3,))
    (A, S, T), (a, s, t) = arrays, arrays.values()

    assert_results({
        nn.scale_shift_nchw(A, S, T): a * s[:, None, None] + t[:, None, None],
        nn.scale_shift_nhwc(A, S, T): a * s + t,
    }, arrays)


def softmax(x: Array, axis: int) -> Array:
    powers = np.exp(x - x.max(axis, keepdims=True))
    shares: Array = powers / powers.sum(axis, keepdims=True)
    return shares


@pytest.mark.exhaustive(keep=7, most=50)
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("shape", [(5,), (3, 4), (2, 3, 4), (0, 3), (1, 1)])
def test_softmax(shape: tuple[int, ...], dtype: str) -> None:
    a = values(shape, dtype)
    A = given(a)
    widened = a.astype("float64")
    expected = {}
    for axis in {-1, 0, len(shape) // 2}:
        if shape[axis]:
            expected[nn.softmax(A, axis)] = softmax(widened, axis).astype(a.dtype)
            expected[nn.log_softmax(A, axis)] = np.log(softmax(widened, axis)).astype(a.dtype)

    assert_results(expected, {A: a})


def test_softmax_of_large_numbers() -> None:
    a = np.array([[1e4, -1e4, 0], [np.nan, 1, 2], [-np.inf, 0, 0]], "float32")
    A = given(a)
    expected = np.array([[1, 0, 0], [np.nan] * 3, [0, 0.5, 0.5]], "float32")
    with np.errstate(all="ignore"):
        logarithms = np.array([[0, -2e4, -1e4], [np.nan] * 3, [-np.inf, *np.log([0.5, 0.5])]])

    assert_results({nn.softmax(A): expected, nn.log_softmax(A): logarithms.astype("float32")},
                   {A: a}, run=compiled)


def standard(a: Array, axes: Any, epsilon: float = 1e-5) -> Array:
    mean, var = a.mean(axes, keepdims=True), a.var(axes, keepdims=True)
    result: Array = (a - mean) / np.sqrt(var + epsilon)
    return result


@pytest.mark.exhaustive(keep=6)
@pytest.mark.parametrize("dtype", FLOATS)
def test_norms_of_layers(dtype: str) -> None:
    arrays = arrays_of((2, 3, 4), (4,), (4,), (3, 4), (3, 4), dtype=dtype)
    A, G, B, G2, B2 = arrays
    a, g, b, g2, b2 = (x.astype("float64") for x in arrays.values())
    roots = a / np.sqrt((a * a).mean(-1, keepdims=True) + 1e-5)
    both = a / np.sqrt((a * a).mean((1, 2), keepdims=True) + 1e-5)
    expected = {
        nn.layer_norm(A, G, B, -1): standard(a, -1) * g + b,
        nn.layer_norm(A, G, None, [2], 0.5): standard(a, -1, 0.5) * g,
        nn.layer_norm(A, G2, B2, [1, 2]): standard(a, (1, 2)) * g2 + b2,
        nn.rms_norm(A, G, -1): roots * g,
        nn.rms_norm(A, G2, (1, 2)): both * g2,
    }

    assert_results({x: y.astype(numpy_type(dtype)) for x, y in expected.items()}, arrays)


def test_norms_of_images() -> None:
    arrays = arrays_of((2, 4, 3, 5), (4,), (4,))
    (A, G, B), (a, g, b) = arrays, arrays.values()
    g4, b4 = g[:, None, None], b[:, None, None]
    groups = standard(a.reshape(2, 2, 2, 3, 5), (2, 3, 4)).reshape(a.shape)
    last = a.transpose(0, 2, 3, 1).copy()
    L = given(last, "L")

    assert_results({
        nn.instance_norm(A, G, B, 1, [2, 3]): standard(a, (2, 3)) * g4 + b4,
        nn.group_norm(A, G, B, 2, 1, [2, 3]): groups * g4 + b4,
        nn.group_norm(A, None, None, 2, 1, [2, 3]): groups,
    }, arrays)
    assert_results(
        {nn.group_norm(L, G, B, 2, -1, [1, 2]): (groups * g4 + b4).transpose(0, 2, 3, 1)},
        {L: last, G: g, B: b})


@pytest.mark.exhaustive(keep=1)
@pytest.mark.parametrize("order", [lambda c: 2 * c, lambda c: c * 2, lambda c: c * 6])
def test_group_norms_with_symbolic_groups(order: Callable[[Any], Any]) -> None:
    n, c = te.var("n"), te.var("c")
    channels = order(c)
    count = order(2)
    A = te.placeholder((n, channels, 3), name="A")
    G, B = te.placeholder((channels,), name="G"), te.placeholder((channels,), name="B")
    a, g, b = (arrays_of((2, count, 3), (count,), (count,))).values()
    expected = standard(a.reshape(2, 2, -1, 3), (2, 3)).reshape(a.shape) * g[:, None] + b[:, None]
    Y = nn.group_norm(A, G, B, 2, 1, [2])
    found = np.empty(a.shape, "float32")

    tecomp.build(Y, [c, A, G, B, Y])(2, a, g, b, found)
    assert_close(found, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("axis", [None, 1, -1])
def test_norms_of_batches(axis: int | None) -> None:
    arrays = arrays_of((2, 3, 4, 3), (3,), (3,), (3,), (3,))
    (A, G, B, M, V), (a, g, b, m, v) = arrays, arrays.values()
    v = np.abs(v) + 1
    arrays[V] = v
    along = 1 if axis is None else axis
    shape = [1, 1, 1, 1]
    shape[along] = 3
    g4, b4, m4, v4 = (x.reshape(shape) for x in (g, b, m, v))
    plain = nn.batch_norm(A, G, B, M, V, axis)
    assert plain[1:] == [M, V]
    assert_results({
        plain[0]: (a - m4) / np.sqrt(v4 + 1e-5) * g4 + b4,
        nn.batch_norm(A, G, B, M, V, axis, 0.5, False, False)[0]: (a - m4) / np.sqrt(v4 + 0.5),
    }, arrays)
    axes = tuple(k for k in range(4) if k != along % 4)
    trained = nn.batch_norm(A, G, B, M, V, axis, training=True, momentum=0.25)
    assert_results({
        trained[0]: standard(a, axes) * g4 + b4,
        trained[1]: 0.75 * m + 0.25 * a.mean(axes), trained[2]: 0.75 * v + 0.25 * a.var(axes),
    }, arrays, rtol=1e-4)


def test_norms_of_roots_and_neighbours() -> None:
    a = values((2, 7, 3), "float32")
    A = given(a)
    windows = np.lib.stride_tricks.sliding_window_view(
        np.pad(a * a, ((0, 0), (2, 2), (0, 0))), 5, 1).sum(-1)

    assert_results({
        nn.l2_normalize(A, 1e-3, [1, 2]): a / np.sqrt(
            np.maximum((a * a).sum((1, 2), keepdims=True), 1e-3)),
        nn.lrn(A, 5, 1, 0.1, 0.5, 2.0): a / (2 + 0.1 / 5 * windows) ** 0.5,
    }, {A: a})


@pytest.mark.parametrize("shape", [(1, 8, 5, 5), (1, 16, 27, 27), (2, 6, 13, 13), (1, 8, 54, 54)])
def test_local_response_normalization_of_any_size(shape: tuple[int, ...]) -> None:
    a = values(shape, "float32")
    A = given(a)
    windows = np.lib.stride_tricks.sliding_window_view(
        np.pad(a * a, ((0, 0), (2, 2), (0, 0), (0, 0))), 5, 1).sum(-1)
    result = np.empty_like(a)
    output = nn.lrn(A, 5)

    tecomp.build(output, [A, output])(a, result)

    expected = a.astype("float64") / (2 + 1e-4 / 5 * windows.astype("float64")) ** 0.75
    np.testing.assert_allclose(result, expected, rtol=1e-5)


def test_products() -> None:
    arrays = arrays_of((3, 4), (5, 4), (5,))
    (A, W, B), (a, w, b) = arrays, arrays.values()
    t = values((2, 2, 4), "float32")
    T = given(t, "T")
    assert_results({
        nn.dense(A, W): a @ w.T, nn.dense(A, W, B): a @ w.T + b,
        nn.matmul(A, W, B, transpose_b=True): a @ w.T + b,
        nn.dense(A, W, B, "float64"): (a @ w.T + b).astype("float64"),
    }, arrays)
    assert_results({nn.dense(T, W, B): t @ w.T + b}, {T: t, W: w, B: b})


def test_products_of_bytes() -> None:
    arrays = arrays_of((3, 40), (5, 40), dtype="int8")
    (A, W), (a, w) = arrays, arrays.values()

    assert_results({nn.dense(A, W, out_dtype="int32"): a.astype("int32") @ w.T.astype("int32")},
                   arrays)


def test_products_of_batches() -> None:
    arrays = arrays_of((2, 3, 4), (2, 5, 4), (1, 4, 5))
    (A, B, C), (a, b, c) = arrays, arrays.values()

    assert_results({
        nn.batch_matmul(A, B): a @ b.swapaxes(1, 2), nn.batch_matmul(A, C, transpose_b=False): a @ c,
        nn.batch_matmul(B, A): b @ a.swapaxes(1, 2),
    }, arrays)


@pytest.mark.parametrize("dtype", ["bool", *INTEGERS, *FLOATS])
def test_padding_of_all_types(dtype: str) -> None:
    a = values((2, 3), dtype)
    A = given(a)

    assert_results({nn.pad(A, [1, 0], [0, 2], 1): np.pad(
        a, ((1, 0), (0, 2)), constant_values=a.dtype.type(1))}, {A: a})


@pytest.mark.parametrize(("shape", "before", "after"), [
    ((), [], []), ((4,), [2], None), ((3, 4), [1, 0], [2, 3]), ((3, 4), [0, 0], [0, 0]),
    ((2, 3, 4), [1, 1, 1], [0, 2, 1])])
def test_padding(shape: tuple[int, ...], before: list[int], after: list[int] | None) -> None:
    a = values(shape, "int32")
    A = given(a)
    sides = list(zip(before, before if after is None else after, strict=True))
    expected: dict[te.Tensor, Any] = {nn.pad(A, before, after): np.pad(a, sides)} if shape else {}
    modes = {
        nn.replicate_pad(A, before, after): "edge", nn.circular_pad(A, before, after): "wrap",
        nn.mirror_pad(A, before, after): "symmetric",
    }
    if all(max(side) < n for side, n in zip(sides, shape, strict=True)):
        modes[nn.reflect_pad(A, before, after)] = "reflect"
        modes[nn.mirror_pad(A, before, after, "REFLECT")] = "reflect"
    for padded, mode in modes.items():
        expected[padded] = np.pad(a, sides, mode=mode) if shape else a  # type: ignore[call-overload]

    assert_results(expected, {A: a})


def test_gaps_and_rows() -> None:
    a = values((2, 3, 2), "int32")
    A = given(a)
    spread = np.full((3, 3, 4), 7, "int32")
    spread[::2, :, ::3] = a

    assert_results({nn.dilate(A, [2, 1, 3], 7): spread, nn.flatten(A): a.reshape(2, 6)}, {A: a})


def test_depth_and_space() -> None:
    a, d = values((2, 3, 4, 6), "int32"), values((2, 8, 3, 2), "int32")
    A, D = given(a), given(d, "D")
    deep = a.reshape(2, 3, 2, 2, 3, 2).transpose(0, 3, 5, 1, 2, 4).reshape(2, 12, 2, 3)
    columns = d.reshape(2, 2, 2, 2, 3, 2).transpose(0, 3, 4, 1, 5, 2).reshape(2, 2, 6, 4)
    channels = d.reshape(2, 2, 2, 2, 3, 2).transpose(0, 1, 4, 2, 5, 3).reshape(2, 2, 6, 4)
    last = d.transpose(0, 2, 3, 1).copy()
    L = given(last, "L")
    assert_results({nn.space_to_depth(A, 2): deep, nn.depth_to_space(nn.space_to_depth(A, 2), 2): a},
                   {A: a})
    assert_results({nn.depth_to_space(D, 2): columns, nn.depth_to_space(D, 2, mode="CRD"): channels},
                   {D: d})
    assert_results({
        nn.depth_to_space(L, 2, "NHWC"): columns.transpose(0, 2, 3, 1),
        nn.depth_to_space(L, 2, "NHWC", "CRD"): channels.transpose(0, 2, 3, 1),
        nn.space_to_depth(nn.depth_to_space(L, 2, "NHWC"), 2, "NHWC"): last,
    }, {L: last})


def test_batches_and_space() -> None:
    a = values((2, 4, 6, 3), "int32")
    A = given(a)
    moved = a.reshape(2, 2, 2, 2, 3, 3).transpose(2, 4, 0, 1, 3, 5).reshape(12, 2, 2, 3)
    there = nn.space_to_batch_nd(A, [2, 3], [0, 0], [0, 0])
    padded = nn.space_to_batch_nd(A, [3], [1], [1], 5)
    wide = np.pad(a, ((0, 0), (1, 1), (0, 0), (0, 0)), constant_values=5)

    assert_results({
        there: moved, nn.batch_to_space_nd(there, [2, 3], [0, 0], [0, 0]): a,
        nn.batch_to_space_nd(there, [2, 3], [1, 0], [0, 2]): a[:, 1:, :-2],
        padded: wide.reshape(2, 2, 3, 6, 3).transpose(2, 0, 1, 3, 4).reshape(6, 2, 6, 3),
    }, {A: a})


def test_order_of_equal_elements() -> None:
    a, b = values((2, 2), "int32"), values((2, 5), "int32", seed=1)
    A, B = given(a), given(b, "B")

    assert_results({nn.fifo_buffer(A, B, -1): np.hstack([b[:, 2:], a])}, {A: a, B: b})


def test_compiled_in_one_program() -> None:
    """In a small network, views are free and element-wise stages are fused with their product."""
    arrays = arrays_of((8, 12), (6, 12), (6,), (6,))
    (A, W, B, G), (a, w, b, g) = arrays, arrays.values()
    hidden = nn.relu(nn.dense(A, W, B))
    normed = nn.layer_norm(hidden, G, None, -1)
    h = np.maximum(a @ w.T + b, 0)

    assert_results({nn.softmax(topi.reshape(normed, (4, 12))): softmax(
        (standard(h, -1) * g).reshape(4, 12), -1)}, arrays, run=compiled, rtol=1e-4)


@pytest.mark.exhaustive
def test_symbolic_sizes() -> None:
    n, m = te.var("n"), te.var("m")
    A, W = te.placeholder((n, m), name="A"), te.placeholder((6, m), name="W")
    outputs = [nn.dense(A, W), nn.softmax(A, 0), nn.pad(A, [1, 0], [0, 2]),
               nn.layer_norm(A, None, None, -1), topi.add(nn.dilate(A, [1, 1]), A)]
    kernel = tecomp.build(outputs, [A, W, *outputs])
    for rows, columns in [(1, 1), (3, 7)]:
        a, w = values((rows, columns), "float32"), values((6, columns), "float32", seed=1)
        expected = [a @ w.T, softmax(a, 0), np.pad(a, ((1, 0), (0, 2))), standard(a, -1), 2 * a]
        results = [np.full(x.shape, 77, "float32") for x in expected]
        kernel(a, w, *results)
        for result, right in zip(results, expected, strict=True):
            assert_close(result, right, rtol=1e-4, atol=1e-5)


def test_blocks_and_mirrors_of_sizes_at_the_call() -> None:
    n, c = te.var("n"), te.var("c")
    A = te.placeholder((n, c, 4, 6), "int32", name="A")
    sides = ([1, 0, 2, 0], [1, 0, 1, 0])
    outputs = [
        nn.space_to_depth(A, 2), nn.depth_to_space(A, 2), nn.space_to_batch_nd(A, [2], [0], [0]),
        nn.batch_to_space_nd(A, [2], [0], [0]), nn.reflect_pad(A, *sides),
        nn.replicate_pad(A, *sides),
    ]
    func = tecomp.lower(te.create_schedule([x.op for x in outputs]), [A, *outputs], stop_after="nest")
    a = values((2, 4, 4, 6), "int32")
    S = given(a)
    pads = list(zip(*sides, strict=True))
    known = [nn.space_to_depth(S, 2), nn.depth_to_space(S, 2),
             nn.space_to_batch_nd(S, [2], [0], [0]), nn.batch_to_space_nd(S, [2], [0], [0])]
    right = [*interpreted(known, {S: a}), np.pad(a, pads, mode="reflect"),
             np.pad(a, pads, mode="edge")]
    results = [np.full_like(x, 77) for x in right]
    tecomp.evaluate(func, [a.copy(), *results])
    for result, one in zip(results, right, strict=True):
        np.testing.assert_array_equal(result, one)


@pytest.mark.parametrize("pad", [nn.replicate_pad, nn.circular_pad, nn.reflect_pad, nn.mirror_pad])
def test_an_axis_without_elements_has_none_to_pad_with(pad: Any) -> None:
    A = te.placeholder((4, 0), name="A")

    assert refused(lambda: pad(A, [0, 1])) == (
        Diagnostic(
            "shapes", where=f"topi.nn.{pad.__name__}", k=1, data="A", shape="(4, 0)", padding=1,
            limit=0,
        )
    )
    assert pad(A, [1, 0]).shape == (6, 0)


def test_refusals() -> None:
    A, i = te.placeholder((4, 6), name="A"), te.placeholder((6,), "int32", name="i")
    W, B = te.placeholder((5, 6), name="W"), te.placeholder((4,), name="B")

    assert refused(lambda: nn.softmax(i)) == (
        Diagnostic("dtype", where="topi.nn.softmax", x="i", dtype="int32")
    )
    assert refused(lambda: nn.dense(A, W, B)) == (
        Diagnostic("shapes", where="topi.nn.dense", shape="(4,)", columns="5")
    )
    assert refused(lambda: nn.batch_matmul(A, W)) == (
        Diagnostic(
            "shapes", where="topi.nn.batch_matmul", subject="tensor_a", shape="(4, 6)", rank=3,
            named=", a batch of matrices",
        )
    )
    assert refused(lambda: nn.pad(A, [1])) == (
        Diagnostic("shapes", where="topi.nn.pad", data="A", shape="(4, 6)", low=(1,), high=(1,))
    )
    assert refused(lambda: nn.reflect_pad(A, [4, 0])) == (
        Diagnostic(
            "shapes", where="topi.nn.reflect_pad", k=0, data="A", shape="(4, 6)", padding=4, limit=3,
        )
    )
    assert refused(lambda: nn.bias_add(A, B)) == (
        Diagnostic(
            "shapes", where="topi.nn.bias_add", subject="bias", shape="(4,)", axis=1, data="A",
            data_shape="(4, 6)", extent="6",
        )
    )
    assert refused(lambda: nn.layer_norm(A, B, None, -1)) == (
        Diagnostic(
            "shapes", where="topi.nn.layer_norm", subject="gamma", shape="(4,)", axes=(1,), data="A",
            data_shape="(4, 6)", expected="(6,)",
        )
    )
    assert refused(lambda: nn.group_norm(A, None, None, 4, 1, [1])) == (
        Diagnostic(
            "shapes", where="topi.nn.group_norm", extent="6", count=4,
            reason="do not divide the channels; pass another number of groups",
        )
    )
    C = te.placeholder((2, te.var("c")), name="C")
    assert refused(lambda: nn.group_norm(C, None, None, 4, 1, [])) == (
        Diagnostic(
            "shapes", where="topi.nn.group_norm", extent="c", count=4,
            reason="are not known to divide the channels; write the extent as a multiple, 4 * n",
        )
    )
    assert refused(lambda: nn.lrn(A, 4)) == (
        Diagnostic("invalid-value", where="topi.nn.lrn", width=4)
    )
    assert refused(lambda: nn.space_to_depth(A, 2)) == (
        Diagnostic(
            "shapes", where="topi.nn.space_to_depth", subject="data", shape="(4, 6)", rank=4,
            named=", NCHW",
        )
    )
    assert refused(lambda: nn.space_to_batch_nd(A, [4], [0], [0])) == (
        Diagnostic(
            "shapes", where="topi.nn.space_to_batch_nd", data="A", shape="(4, 6)", size=4,
            extent="6",
        )
    )
    assert refused(lambda: nn.fifo_buffer(A, W, 1)) == (
        Diagnostic(
            "shapes", where="topi.nn.fifo_buffer", shape="(4, 6)", before_shape="(5, 6)", axis=1,
        )
    )
    assert refused(lambda: nn.dilate(A, [2])) == (
        Diagnostic("count-mismatch", where="topi.nn.dilate", subject="strides", value_count=1, count=2)
    )


def test_numbers_of_channels_are_tensors() -> None:
    nothing: Any = None
    A, B = te.placeholder((2, 3, 4, 5), name="A"), te.placeholder((3,), name="B")

    assert refused(lambda: nn.bias_add(A, nothing)) == Diagnostic(
        "invalid-type", where="topi.nn.bias_add", subject="bias", value=None, type="NoneType",
    )
    assert refused(lambda: nn.prelu(A, nothing)) == Diagnostic(
        "invalid-type", where="topi.nn.prelu", subject="slope", value=None, type="NoneType",
    )
    assert refused(lambda: nn.scale_shift_nchw(A, nothing, B)) == (
        Diagnostic(
            "invalid-type", where="topi.nn.scale_shift_nchw", subject="Scale", value=None,
            type="NoneType",
        ))
    assert refused(lambda: nn.scale_shift_nhwc(A, B, nothing)) == (
        Diagnostic(
            "invalid-type", where="topi.nn.scale_shift_nhwc", subject="Shift", value=None,
            type="NoneType",
        ))
