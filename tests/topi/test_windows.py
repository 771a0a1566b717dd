"""Convolutions and pooling of all layouts, strides, paddings and groups agree with NumPy."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np
import pytest

import tecomp
from tecomp import te
from tecomp.schedules import conv2d
from tecomp.topi import nn
from tests.messages import Diagnostic
from tests.numerics import assert_close
from tests.strategies.pairwise import pairwise
from tests.topi.refusals import refused
from tests.topi.running import Array, assert_results, compiled, given, numpy_type, values


def of(*parts: Any) -> Any:
    """Return the subscripts as an index tuple."""
    return parts


def convolution(
    x: Array, w: Array, steps: Sequence[int], before: Sequence[int], after: Sequence[int],
    apart: Sequence[int], groups: int = 1,
) -> Array:
    """Compute the convolution of (n, c, ...) with (o, i, ...) by one product per tap."""
    x, w = x.astype("float64"), w.astype("float64")
    x = np.pad(x, [(0, 0), (0, 0), *zip(before, after, strict=True)])
    sizes = [
        (n - a * (k - 1) - 1) // s + 1
        for n, k, s, a in zip(x.shape[2:], w.shape[2:], steps, apart, strict=True)]
    per_group = w.shape[0] // groups
    result = np.zeros((x.shape[0], w.shape[0], *sizes))
    for taps in product(*map(range, w.shape[2:])):
        at = tuple(
            slice(t * a, t * a + s * (m - 1) + 1, s)
            for t, a, s, m in zip(taps, apart, steps, sizes, strict=True))
        part = x[of(slice(None), slice(None), *at)]
        for g in range(groups):
            channels = slice(g * per_group, (g + 1) * per_group)
            depth = slice(g * w.shape[1], (g + 1) * w.shape[1])
            result[:, channels] += np.einsum(
                "nc...,oc->no...", part[:, depth], w[of(channels, slice(None), *taps)])
    return result


def check(result: Any, x: Array, w: Array, expected: Array, **options: Any) -> None:
    X, W = given(x, "X"), given(w, "W")
    output = result(X, W)
    assert_results({output: expected.astype(numpy_type(str(output.dtype)))}, {X: x, W: w}, **options)


CASES: list[tuple[int, int, int, Any]] = [
    (1, 1, 1, 0), (2, 1, 1, 1), (1, 2, 2, "SAME"), (2, 2, 1, "VALID"), (1, 1, 4, 1)]


@pytest.mark.exhaustive(keep=2)
@pytest.mark.parametrize(("step", "gap", "groups", "padding"), CASES)
@pytest.mark.parametrize("rank", [1, 2, 3])
def test_channels_first(rank: int, step: int, gap: int, groups: int, padding: Any) -> None:
    x = values((1 + (rank < 3), 4, 6, 5, 4)[: rank + 2], "int32", low=-3, high=3)
    w = values((8, 4 // groups, 3, 2, 2)[: rank + 2], "int32", low=-3, high=3, seed=1)
    reaches = [(k - 1) * gap for k in w.shape[2:]]
    before = [(r + 1) // 2 for r in reaches] if padding == "SAME" else [0] * rank
    after = [r // 2 for r in reaches] if padding == "SAME" else [0] * rank
    if isinstance(padding, int):
        before = after = [padding] * rank
    expected = convolution(x, w, [step] * rank, before, after, [gap] * rank, groups)
    layout = "NC" + "DHW"[-rank:]
    check(lambda X, W: nn.conv(X, W, step, padding, gap, groups, layout), x, w, expected)
    named = {
        1: lambda X, W: nn.group_conv1d_ncw(X, W, step, padding, gap, groups),
        2: lambda X, W: nn.group_conv2d_nchw(X, W, step, padding, gap, groups),
        3: lambda X, W: nn.conv3d_ncdhw(X, W, step, padding, gap, groups),
    }
    check(named[rank], x, w, expected)


@pytest.mark.exhaustive(keep=4)
@pytest.mark.parametrize(("step", "gap", "groups", "padding"), CASES[:3])
@pytest.mark.parametrize("rank", [1, 2, 3])
def test_channels_last(rank: int, step: int, gap: int, groups: int, padding: Any) -> None:
    x = values((1 + (rank < 3), 4, 6, 5, 4)[: rank + 2], "float32", low=-3, high=3)
    w = values((8, 4 // groups, 3, 2, 2)[: rank + 2], "float32", low=-3, high=3, seed=1)
    reaches = [(k - 1) * gap for k in w.shape[2:]]
    before = [(r + 1) // 2 for r in reaches] if padding == "SAME" else [padding] * rank
    after = [r // 2 for r in reaches] if padding == "SAME" else [padding] * rank
    expected = convolution(x, w, [step] * rank, before, after, [gap] * rank, groups)
    last, filters = np.moveaxis(x, 1, -1).copy(), np.moveaxis(w, (1, 0), (-2, -1)).copy()
    named = {
        1: lambda X, W: nn.group_conv1d_nwc(X, W, step, padding, gap, groups),
        2: lambda X, W: nn.group_conv2d_nhwc(X, W, step, padding, gap, groups),
        3: lambda X, W: nn.conv3d_ndhwc(X, W, step, padding, gap, groups),
    }
    check(named[rank], last, filters, np.moveaxis(expected, 1, -1))


def test_other_names_and_layouts() -> None:
    x, w = values((2, 4, 6, 7), "float32"), values((3, 4, 2, 3), "float32", seed=1)
    one = convolution(x, w, (1, 2), (1, 0), (2, 1), (1, 1))
    check(lambda X, W: nn.conv2d_nchw(X, W, (1, 2), (1, 0, 2, 1), 1), x, w, one)
    check(lambda X, W: nn.conv2d(X, W, (1, 2), (1, 0, 2, 1), (1, 1)), x, w, one)
    last, filters = x.transpose(0, 2, 3, 1).copy(), w.transpose(2, 3, 1, 0).copy()
    check(lambda X, W: nn.conv2d_nhwc(X, W, (1, 2), (1, 0, 2, 1), 1), last, filters,
          one.transpose(0, 2, 3, 1))
    check(lambda X, W: nn.conv2d(X, W, (1, 2), (1, 0, 2, 1), 1, "NHWC", "OIHW"), last, w,
          one.transpose(0, 2, 3, 1))
    check(lambda X, W: nn.conv2d_hwcn(X, W, (1, 2), (1, 0, 2, 1), 1),
          x.transpose(2, 3, 1, 0).copy(), filters, one.transpose(2, 3, 1, 0))
    row, taps = x[:, :, 0].copy(), w[:, :, 0].copy()
    line = convolution(row, taps, (1,), (0,), (0,), (1,))
    check(lambda X, W: nn.conv1d_ncw(X, W), row, taps, line)
    check(lambda X, W: nn.conv1d(X, W), row, taps, line)
    check(lambda X, W: nn.conv1d_nwc(X, W), row.transpose(0, 2, 1).copy(),
          taps.transpose(2, 1, 0).copy(), line.transpose(0, 2, 1))


@pytest.mark.parametrize(("dtype", "out"), [
    ("int8", "int32"), ("uint8", "int32"), ("float16", None), ("bfloat16", "float32"),
    ("float64", None), ("bool", None)])
def test_types(dtype: str, out: str | None) -> None:
    x, w = values((1, 2, 5, 5), dtype, low=-3, high=3), values((2, 2, 3, 3), dtype, low=-3, high=3)
    check(lambda X, W: nn.conv2d_nchw(X, W, 1, 1, 1, out), x, w,
          convolution(x, w, (1, 1), (1, 1), (1, 1), (1, 1)))


@pytest.mark.parametrize("each", [1, 2])
def test_depthwise(each: int) -> None:
    x, w = values((2, 3, 6, 5), "float32"), values((3, each, 3, 2), "float32", seed=1)
    expected = convolution(x, w.reshape(3 * each, 1, 3, 2), (2, 1), (1, 1), (1, 1), (1, 1), 3)
    check(lambda X, W: nn.depthwise_conv2d_nchw(X, W, (2, 1), 1, 1), x, w, expected)
    last, mapped = x.transpose(0, 2, 3, 1).copy(), expected.transpose(0, 2, 3, 1)
    check(lambda X, W: nn.depthwise_conv2d_nhwc(X, W, (2, 1), 1, 1), last,
          w.transpose(2, 3, 0, 1).copy(), mapped)
    check(lambda X, W: nn.depthwise_conv2d_nhwc(X, W, (2, 1), 1, 1, "HWIO"), last,
          w.transpose(2, 3, 1, 0).copy(), mapped)


@pytest.mark.exhaustive(keep=1)
@pytest.mark.parametrize(("step", "gap", "pad"), [(1, 1, 1), (2, 1, 0), (1, 2, 2)])
@pytest.mark.parametrize("dtype", ["float32", "int8"])
def test_channels_in_blocks(step: int, gap: int, pad: int, dtype: str) -> None:
    x = values((2, 6, 7, 6), dtype, low=-3, high=3)
    w = values((8, 6, 3, 2), dtype, low=-3, high=3, seed=1)
    out_dtype = "float32" if dtype == "float32" else "int32"
    expected = convolution(x, w, [step] * 2, [pad] * 2, [pad] * 2, [gap] * 2)
    blocks = x.reshape(2, 3, 2, 7, 6).transpose(0, 1, 3, 4, 2).copy()
    filters = w.reshape(2, 4, 3, 2, 3, 2).transpose(0, 2, 4, 5, 3, 1).copy()
    size = expected.shape
    expected = expected.reshape(2, 2, 4, *size[2:]).transpose(0, 1, 3, 4, 2).astype(out_dtype)
    X, W = (te.placeholder(a.shape, dtype, name=n) for a, n in ((blocks, "X"), (filters, "W")))
    Y = nn.conv2d_NCHWc(X, W, step, pad, gap, "NCHW2c", "NCHW4c", out_dtype)

    assert_results({Y: expected}, {X: blocks, W: filters})
    assert refused(lambda: nn.conv2d_NCHWc(X, W, 1, 0, 1, "NCHW4c", "NCHW4c")) == (
        Diagnostic(
            "shapes", where="topi.nn.conv2d_NCHWc", subject="layout", layout="NCHW4c", block="2",
            expected="NCHW2c",
        )
    )
    V = te.placeholder((2, 4, 3, 2, 2, 4), dtype, name="V")
    assert refused(lambda: nn.conv2d_NCHWc(X, V, 1, 0, 1, "NCHW2c", "NCHW4c")) == (
        Diagnostic(
            "shapes", where="topi.nn.conv2d_NCHWc", tensor="X", shape="(2, 3, 7, 6, 2)",
            layout="NCHWc", block_count="3", block_size="2", tensor_name="V",
            tensor_shape="(2, 4, 3, 2, 2, 4)", filters_layout="OIHWio", expected_count="4", expected_size="2",
        )
    )


def spread(
    x: Array, w: Array, step: int, pad: int, more: int, groups: int
) -> Array:
    """Compute the transposed convolution: scatter (n, i, ...) times the filters (i, o, ...)."""
    rank, selected, per_group = x.ndim - 2, x.shape[1] // groups, w.shape[1]
    sizes = [(n - 1) * step + k for n, k in zip(x.shape[2:], w.shape[2:], strict=True)]
    result = np.zeros((x.shape[0], per_group * groups, *(n + more for n in sizes)))
    for taps in product(*map(range, w.shape[2:])):
        at = tuple(
            slice(t, t + step * (n - 1) + 1, step)
            for t, n in zip(taps, x.shape[2:], strict=True))
        for g in range(groups):
            channels, depth = slice(g * per_group, (g + 1) * per_group), slice(g * selected, (g + 1) * selected)
            result[of(slice(None), channels, *at)] += np.einsum(
                "ni...,io->no...", x[:, depth], w[of(depth, slice(None), *taps)])
    cut = tuple(slice(pad, n + more - pad) for n in sizes)
    inner: Array = result[of(slice(None), slice(None), *cut[:rank])]
    return inner


@pytest.mark.exhaustive(keep=2)
@pytest.mark.parametrize(("step", "pad", "more", "groups"), [
    (1, 0, 0, 1), (2, 1, 1, 1), (3, 2, 0, 2), (2, 0, 1, 2)])
@pytest.mark.parametrize("rank", [1, 2, 3])
def test_transposed(rank: int, step: int, pad: int, more: int, groups: int) -> None:
    x = values((1 + (rank < 3), 4, 4, 3, 2)[: rank + 2], "float32", low=-3, high=3)
    w = values((4, 2, 3, 3, 2)[: rank + 2], "float32", low=-3, high=3, seed=1)
    expected = spread(x, w, step, pad, more, groups)
    grouped = {1: nn.group_conv1d_transpose_ncw, 2: nn.group_conv2d_transpose_nchw,
               3: nn.group_conv3d_transpose_ncdhw}[rank]
    check(lambda X, W: grouped(X, W, step, pad, "float32", more, groups), x, w, expected)
    if groups == 1:
        plain = {1: nn.conv1d_transpose_ncw, 2: nn.conv2d_transpose_nchw,
                 3: nn.conv3d_transpose_ncdhw}[rank]
        check(lambda X, W: plain(X, W, step, pad, "float32", more), x, w, expected)


@pytest.mark.parametrize("groups", [2, 4])
def test_symbolic_channel_groups(groups: int) -> None:
    c, o = te.var("c"), te.var("o")
    x = values((1, 2 * groups, 5, 4), "float32", low=-3, high=3)
    w = values((2 * groups, 3, 3, 2), "float32", low=-3, high=3, seed=1)
    X = te.placeholder((1, groups * c, 5, 4), name="X")
    W = te.placeholder((c * groups, o, 3, 2), name="W")
    Y = nn.group_conv2d_transpose_nchw(X, W, 2, 1, "float32", 1, groups)
    expected = spread(x, w, 2, 1, 1, groups)
    found = np.empty(expected.shape, "float32")

    tecomp.build(te.create_schedule(Y.op), [c, X, W, Y])(2, x, w, found)
    assert_close(found, expected, rtol=1e-5)

    w = values((3 * groups, 2, 3, 2), "float32", low=-3, high=3, seed=1)
    V = te.placeholder((o * groups, c, 3, 2), name="V")
    Y = nn.group_conv2d_nchw(X, V, 1, 0, 1, groups)
    expected = convolution(x, w, [1, 1], [0, 0], [0, 0], [1, 1], groups)
    found = np.empty(expected.shape, "float32")

    tecomp.build(te.create_schedule(Y.op), [o, X, V, Y])(3, x, w, found)
    assert_close(found, expected, rtol=1e-5)


def pooled(
    x: Array, kernel: Sequence[int], step: int, gap: int, pad: int, kind: str, ceil: bool,
    count_pad: bool,
) -> Array:
    """Pool (n, c, ...) window by window; with `ceil`, windows may extend beyond the end."""
    sizes = []
    for n, k in zip(x.shape[2:], kernel, strict=True):
        reach = gap * (k - 1) + 1
        room = n + 2 * pad - reach
        count = -(-room // step) + 1 if ceil else room // step + 1
        sizes.append(count - (ceil and (count - 1) * step >= n + pad))
    result = np.zeros((*x.shape[:2], *sizes))
    for place in product(*map(range, sizes)):
        inside, counts = [], []
        for taps in product(*map(range, kernel)):
            at = [p * step + t * gap - pad for p, t in zip(place, taps, strict=True)]
            if all(0 <= a < n for a, n in zip(at, x.shape[2:], strict=True)):
                inside.append(x[of(slice(None), slice(None), *at)])
            if all(-pad <= a < n + pad for a, n in zip(at, x.shape[2:], strict=True)):
                counts.append(at)
        stacked = np.stack(inside)
        count = len(counts) if count_pad else len(inside)
        result[of(slice(None), slice(None), *place)] = (
            stacked.max(0) if kind == "max" else stacked.sum(0) / count)
    return result


@pytest.mark.exhaustive(keep=8)
@pairwise(
    rank=[1, 2, 3], step=[1, 2, 3], gap=[1, 2], pad=[0, 1], kind=["max", "avg"],
    ceil=[False, True], count_pad=[False, True],
)
def test_pools(
    rank: int, step: int, gap: int, pad: int, kind: str, ceil: bool, count_pad: bool
) -> None:
    x = values((2, 3, 7, 6, 5)[: rank + 2], "float32")
    kernel = (3, 2, 2)[:rank]
    expected = pooled(x, kernel, step, gap, pad, kind, ceil, count_pad).astype("float32")
    X = given(x, "X")
    pool = {1: nn.pool1d, 2: nn.pool2d, 3: nn.pool3d}[rank]
    result = pool(X, kernel, [step] * rank, [gap] * rank, [pad] * (2 * rank), kind, ceil,
                count_include_pad=count_pad)
    assert_results({result: expected}, {X: x})


def test_pools_of_other_layouts_and_types() -> None:
    x = values((2, 6, 5, 3), "float32")
    X = given(x, "X")
    first = x.transpose(0, 3, 1, 2)
    expected = pooled(first, (2, 2), 2, 1, 0, "avg", False, True).transpose(0, 2, 3, 1)
    assert_results({nn.pool2d(X, 2, 2, 1, 0, "avg", layout="NHWC"): expected.astype("float32")},
                   {X: x})
    bytes_ = values((1, 2, 4, 4), "int8")
    Y = given(bytes_, "Y")
    assert_results({
        nn.pool2d(Y, 3, 1, 1, 1, "max"): pooled(
            bytes_, (3, 3), 1, 1, 1, "max", False, True).astype("int8"),
        nn.global_pool(Y, "max"): bytes_.max((2, 3), keepdims=True),
    }, {Y: bytes_})


@pytest.mark.parametrize("kind", ["max", "avg"])
def test_whole_and_adapted_pools(kind: str) -> None:
    x = values((2, 3, 7, 6), "float32")
    X = given(x, "X")
    reduce = np.max if kind == "max" else np.mean

    def adapted(rows: int, columns: int) -> Array:
        result = np.zeros((2, 3, rows, columns), "float32")
        for y, z in product(range(rows), range(columns)):
            part = x[:, :, y * 7 // rows : -(-(y + 1) * 7 // rows),
                     z * 6 // columns : -(-(z + 1) * 6 // columns)]
            result[:, :, y, z] = reduce(part, axis=(2, 3))
        return result

    row = x[:, :, :, 0].copy()
    R = given(row, "R")
    assert_results({
        nn.global_pool(X, kind): reduce(x, axis=(2, 3), keepdims=True),
        nn.adaptive_pool(X, (3, 4), kind): adapted(3, 4),
        nn.adaptive_pool(X, (7, 3), kind): adapted(7, 3),
        nn.adaptive_pool(X, 1, kind): adapted(1, 1),
    }, {X: x})
    assert_results({nn.adaptive_pool1d(R, 7, kind): row}, {R: row})


def test_windows_have_the_schedules_of_the_library() -> None:
    X, W = te.placeholder((1, 16, 14, 14), name="X"), te.placeholder((8, 16, 3, 3), name="W")
    Y, V = te.placeholder((1, 14, 14, 16), name="Y"), te.placeholder((3, 3, 16, 8), name="V")

    for result in (nn.conv2d_nchw(X, W, 1, 1, 1), nn.conv2d_nhwc(Y, V, 2, (1, 0, 0, 1), 1),
                 nn.group_conv2d_nchw(X, te.placeholder((8, 4, 3, 3)), 1, 1, 1, 4)):
        assert conv2d.describe(result).total is not None


def test_compiled() -> None:
    x, w = values((1, 16, 12, 12), "float32"), values((8, 16, 3, 3), "float32", seed=1)
    check(lambda X, W: nn.relu(nn.conv2d_nchw(X, W, 2, "SAME", 1)), x, w,
          np.maximum(convolution(x, w, (2, 2), (1, 1), (1, 1), (1, 1)), 0), run=compiled, rtol=1e-3)
    y, v = values((1, 4, 5, 5), "float32"), values((4, 2, 3, 3), "float32", seed=1)
    check(lambda X, W: nn.conv2d_transpose_nchw(X, W, 2, 1, "float32", 1), y, v,
          spread(y, v, 2, 1, 1, 1), run=compiled, rtol=1e-3)
    X = given(x, "X")
    assert_results({
        nn.pool2d(X, 3, 2, 1, 1, "avg", True, count_include_pad=False): pooled(
            x, (3, 3), 2, 1, 1, "avg", True, False).astype("float32"),
    }, {X: x}, run=compiled)


def test_symbolic_sizes() -> None:
    n, h = te.var("n"), te.var("h")
    X, W = te.placeholder((n, 3, h, 8), name="X"), te.placeholder((4, 3, 3, 3), name="W")
    outputs = [nn.conv2d_nchw(X, W, 1, "SAME", 1), nn.pool2d(X, 2, 2, 1, 0, "max"),
               nn.global_pool(X, "avg")]
    assert outputs[0].shape == (n, 4, h, 8)
    kernel = tecomp.build(outputs, [X, W, *outputs])
    for batch, rows in [(1, 3), (2, 6)]:
        x, w = values((batch, 3, rows, 8), "float32"), values((4, 3, 3, 3), "float32", seed=1)
        expected = [convolution(x, w, (1, 1), (1, 1), (1, 1), (1, 1)),
                  pooled(x, (2, 2), 2, 1, 0, "max", False, True), x.mean((2, 3), keepdims=True)]
        results = [np.full(part.shape, 77, "float32") for part in expected]
        kernel(x, w, *results)
        for result, right in zip(results, expected, strict=True):
            assert_close(result, right, rtol=1e-3, atol=1e-4)


def test_refusals() -> None:
    X, W = te.placeholder((1, 4, 6, 6), name="X"), te.placeholder((8, 3, 3, 3), name="W")
    V, K = te.placeholder((8, 4, 9, 3), name="V"), te.placeholder((1, 4, 6, 6), "int8", name="I")

    assert refused(lambda: nn.conv2d_nchw(X, W, 1, 0, 1)) == (
        Diagnostic(
            "shapes", where="topi.nn.conv2d_nchw", tensor="X", shape="(1, 4, 6, 6)",
            layout="NCHW", channel_count="4", tensor_name="W", tensor_shape="(8, 3, 3, 3)",
            filters_layout="OIHW", depth="3", total="8", parts=1,
        )
    )
    assert refused(lambda: nn.conv2d_nchw(X, V, 1, 0, 1)) == (
        Diagnostic(
            "shapes", where="topi.nn.conv2d_nchw", window=9, tensor="X", shape="(1, 4, 6, 6)",
            layout="NCHW", extent=6,
        )
    )
    assert refused(lambda: nn.conv2d(X, W, 1, 0, 1, "NCH")) == (
        Diagnostic(
            "shapes", where="topi.nn.conv2d", subject="data", shape="(1, 4, 6, 6)", rank=3,
            named=", NCH",
        )
    )
    assert refused(lambda: nn.conv2d_nchw(X, V, 1, "FULL", 1)) == (
        Diagnostic("shapes", where="topi.nn.conv2d_nchw", padding="FULL", reaches="(9, 3)")
    )
    assert refused(lambda: nn.conv2d_nchw(X, V, 0, 0, 1)) == (
        Diagnostic("invalid-value", where="topi.nn.conv2d_nchw", subject="strides", literal=0, minimum=1)
    )
    assert refused(lambda: nn.pool2d(X, 2, 2, 1, 0, "sum")) == (
        Diagnostic(
            "unknown-choice", where="topi.nn.pool2d", subject="pool_type", value="sum",
            known="'max', 'avg'",
        )
    )
    assert refused(lambda: nn.global_pool(K, "avg")) == (
        Diagnostic("dtype", where="topi.nn.global_pool", data="I", dtype="int8")
    )
    assert refused(lambda: nn.conv2d_transpose_nchw(X, W, 1, 0, "float32", 1)) == (
        Diagnostic("invalid-value", where="topi.nn.conv2d_transpose_nchw", output_padding=(1, 1), steps=(1, 1))
    )
    assert refused(lambda: nn.conv2d_transpose_nchw(X, W, 1, 0, "float32", 0)) == (
        Diagnostic(
            "shapes", where="topi.nn.conv2d_transpose_nchw", data="X", shape="(1, 4, 6, 6)",
            channel_count="4", kernel="W", kernel_shape="(8, 3, 3, 3)", expected_count="8", parts=1, multiple="",
        )
    )
    c = te.var("c")
    Y, V = te.placeholder((1, c, 6, 6), name="Y"), te.placeholder((c, 3, 3, 3), name="V")
    assert refused(lambda: nn.group_conv2d_transpose_nchw(Y, V, 1, 0, "float32", 0, 2)) == (
        Diagnostic(
            "shapes", where="topi.nn.group_conv2d_transpose_nchw", data="Y", shape="(1, c, 6, 6)",
            channel_count="c", kernel="V", kernel_shape="(c, 3, 3, 3)", expected_count="c", parts=2,
            multiple=", such as 2 * n",
        )
    )
    assert refused(lambda: nn.depthwise_conv2d_nchw(X, W, 1, 0, 1)) == (
        Diagnostic(
            "shapes", where="topi.nn.depthwise_conv2d_nchw", data="X", shape="(1, 4, 6, 6)",
            data_layout="NCHW", channel_count="4", kernel="W", kernel_shape="(8, 3, 3, 3)", filter_count="8",
        )
    )
    assert refused(lambda: nn.pool2d(X, 2, 2, 1, 0, "max", layout="NCWX")) == (
        Diagnostic(
            "duplicate-argument", where="topi.nn.pool2d", subject="data", layout="NCWX", letters="NCHW",
        )
    )
