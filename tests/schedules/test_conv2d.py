"""Convolutions equal a loop over the taps, in all forms and sizes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import tecomp
from tecomp import te
from tecomp.ir import DType
from tecomp.schedules import activations, conv2d
from tests.messages import Diagnostic, diagnostic
from tests.numerics import assert_close
from tests.strategies.fenced import call_fenced
from tests.strategies.pairwise import pairwise

CPU = tecomp.Target.load("cpu")
SMALL = tecomp.Target(
    "small", "a core with short vectors and small caches", CPU.memories,
    tecomp.Core(2, 16, 8, (256, 8192)),
)


def reference(
    x: NDArray[Any], w: NDArray[Any], stride: int, padding: int, dilation: int, groups: int
) -> NDArray[Any]:
    """Compute the NHWC convolution in float64."""
    x = np.pad(x.astype(np.float64), ((0, 0), (padding, padding), (padding, padding), (0, 0)))
    taps_y, taps_x, depth, k = w.shape
    rows = (x.shape[1] - dilation * (taps_y - 1) - 1) // stride + 1
    columns = (x.shape[2] - dilation * (taps_x - 1) - 1) // stride + 1
    y = np.zeros((x.shape[0], rows, columns, k))
    for r in range(taps_y):
        for s in range(taps_x):
            seen = x[:, r * dilation:, s * dilation:][:, ::stride, ::stride][:, :rows, :columns]
            for group in range(groups):
                out = slice(group * k // groups, (group + 1) * k // groups)
                source = slice(group * depth, (group + 1) * depth)
                y[..., out] += seen[..., source] @ w[r, s, :, out]
    return y


def check(
    image: tuple[int, ...], taps: tuple[int, ...], target: tecomp.Target, layout: conv2d.Layout,
    *, bias: bool = False, stride: int = 1, padding: int = 0, dilation: int = 1, groups: int = 1,
    dtype: str = "float32", rtol: float = 1e-4,
) -> None:
    random, kind = np.random.default_rng(0), DType(dtype).numpy
    x, w = (random.standard_normal(shape, np.float32).astype(kind) for shape in (image, taps))
    expected = reference(x, w, stride, padding, dilation, groups)
    shift = random.standard_normal(taps[-1], np.float32).astype(kind)
    if bias:
        expected = np.maximum(expected + shift.astype(np.float64), 0)
    if layout == "NCHW":
        x, w = np.ascontiguousarray(x.transpose(0, 3, 1, 2)), np.ascontiguousarray(
            w.transpose(3, 2, 0, 1))
        expected = expected.transpose(0, 3, 1, 2)
    X, W = te.placeholder(x.shape, dtype, name="X"), te.placeholder(w.shape, dtype, name="W")
    B = te.placeholder(shift.shape, dtype, name="B")
    Y = conv2d.define(
        X, W, stride=stride, padding=padding, dilation=dilation, groups=groups, layout=layout,
        bias=B if bias else None, activation=activations.relu if bias else None,
    )
    args = [X, W, *([B] if bias else []), Y]
    kernel = tecomp.build(conv2d.schedule(Y, target), args)
    y = np.full(expected.shape, np.nan, kind)
    call_fenced(kernel, x, w, *([shift] if bias else []), y)

    assert_close(y.astype(np.float64), expected, rtol=rtol, atol=1e-4)


FORMS: dict[str, tuple[Any, Any, dict[str, Any]]] = {
    "3x3": ((1, 8, 8, 4), (3, 3, 4, 16), {"padding": 1}),
    "odd": ((2, 7, 13, 3), (3, 3, 3, 7), {"padding": 1, "bias": True}),
    "1x1": ((1, 9, 10, 5), (1, 1, 5, 17), {}),
    "stride": ((1, 11, 9, 4), (3, 3, 4, 8), {"stride": 2, "padding": 1}),
    "dilation": ((1, 12, 12, 2), (3, 3, 2, 8), {"dilation": 2}),
    "depthwise": ((1, 7, 7, 12), (3, 3, 1, 12), {"groups": 12, "padding": 1}),
    "groups": ((1, 6, 7, 8), (3, 3, 2, 32), {"groups": 4, "padding": 1, "bias": True}),
    "odd-groups": ((1, 6, 7, 10), (3, 3, 5, 14), {"groups": 2}),
    "one": ((1, 1, 1, 1), (1, 1, 1, 1), {}),
    "5x5": ((1, 5, 40, 3), (5, 5, 3, 2), {}),
    "rest": ((2, 6, 28, 3), (3, 3, 3, 7), {"padding": 1, "bias": True}),
    "far-rest": ((1, 6, 57, 3), (3, 3, 3, 7), {"stride": 2}),
    "phases": ((2, 13, 36, 6), (3, 3, 1, 6), {"groups": 6, "stride": 2, "padding": 1}),
    "three-phases": ((1, 9, 43, 3), (2, 5, 1, 3), {"groups": 3, "stride": 3}),
    "phases-apart": ((1, 12, 29, 4), (5, 3, 1, 8), {"groups": 4, "stride": 2, "dilation": 2}),
    "wide": ((1, 9, 15, 11), (1, 7, 11, 18), {}),
    "bare-rest": ((1, 9, 30, 3), (3, 3, 3, 7), {"dilation": 2, "bias": True}),
}


@pytest.mark.exhaustive(keep=3)
@pairwise(form=list(FORMS), layout=["NHWC", "NCHW"], target=[CPU, SMALL])
def test_forms(form: str, layout: conv2d.Layout, target: tecomp.Target) -> None:
    image, taps, options = FORMS[form]
    check(image, taps, target, layout, **options)


@pytest.mark.exhaustive(keep=1)
@pairwise(
    precision=[("float16", 11), ("bfloat16", 8)], groups=[1, 12], layout=["NHWC", "NCHW"]
)
def test_narrow_floats_are_rounded_once(
    precision: tuple[str, int], groups: int, layout: conv2d.Layout
) -> None:
    dtype, digits = precision
    for bias in (False, True):
        check((1, 9, 7, 12), (3, 3, 12 // groups, 24), SMALL, layout, bias=bias, padding=1,
              groups=groups, dtype=dtype, rtol=1.01 * 2.0**-digits)


QUICK = tecomp.Target(
    "quick", "a core that adds up products of bytes and of bfloat16 at once", CPU.memories,
    tecomp.Core(1, 32, 16, (2**12, 2**14), dots=("uint8*int8", "bfloat16*bfloat16")),
)


@pytest.mark.exhaustive(keep=1, most=3)
@pairwise(
    types=[("int8", "int8"), ("uint8", "int8"), ("uint8", "uint8"), ("bfloat16", "bfloat16")],
    target=[QUICK, SMALL], layout=["NHWC", "NCHW"],
)
def test_sums_wider_than_the_factors(
    types: tuple[str, str], target: tecomp.Target, layout: conv2d.Layout
) -> None:
    first, second = types
    total = "float32" if first == "bfloat16" else "int32"
    random, is_first = np.random.default_rng(0), layout == "NCHW"
    for image, taps, options in (
        ((1, 8, 9, 8), (3, 3, 8, 17), {"padding": 1}),
        ((2, 7, 13, 3), (3, 3, 3, 7), {"padding": 1, "stride": 2}),
        ((1, 9, 10, 5), (1, 1, 5, 35), {}),
        ((1, 9, 7, 6), (3, 2, 3, 8), {"groups": 2, "dilation": 2}),
    ):
        x, w = random.integers(0, 99, image), random.integers(0, 99, taps)
        x, w = x - (0 if first == "uint8" else 50), w - (0 if second == "uint8" else 50)
        form = {"stride": 1, "padding": 0, "dilation": 1, "groups": 1, **options}
        expected = reference(x, w, **form)
        if is_first:
            x, w, expected = (
                x.transpose(0, 3, 1, 2), w.transpose(3, 2, 0, 1), expected.transpose(0, 3, 1, 2))
        x, w = (np.ascontiguousarray(v).astype(DType(kind).numpy)
                for v, kind in ((x, first), (w, second)))
        X, W = te.placeholder(x.shape, first, "X"), te.placeholder(w.shape, second, "W")
        Y = conv2d.define(X, W, out_dtype=total, layout=layout, **options)
        y = np.zeros(expected.shape, total)
        call_fenced(tecomp.build(conv2d.schedule(Y, target), [X, W, Y]), x, w, y)
        np.testing.assert_array_equal(y, expected)


@pytest.mark.exhaustive(keep=1)
@pytest.mark.parametrize("layout", ["NHWC", "NCHW"])
def test_without_pairs_single_products_are_added_up(layout: conv2d.Layout) -> None:
    """Subnormals count without bfloat16 pair instructions, which flush subnormals to 0."""
    is_first = layout == "NCHW"
    X = te.placeholder((1, 4, 5, 5) if is_first else (1, 5, 5, 4), "bfloat16", "X")
    W = te.placeholder((6, 4, 3, 3) if is_first else (3, 3, 4, 6), "bfloat16", "W")
    x = np.full(X.shape, 2.0**-130).astype(X.dtype.numpy)
    w = np.full(W.shape, 2.0**20).astype(W.dtype.numpy)
    rows = np.array([2, 3, 3, 3, 2])
    taps = np.outer(rows, rows)[(None, None) if is_first else (None, ..., None)]
    for activation in (None, te.abs):
        schedules = []
        for pairs in (True, False):
            Y = conv2d.define(X, W, out_dtype="float32", layout=layout, padding=1, pairs=pairs,
                              activation=activation)
            schedules.append(conv2d.schedule(Y, QUICK))
        y = np.zeros(tuple(map(int, Y.shape)), np.float32)

        call_fenced(tecomp.build(schedules[1], [X, W, Y]), x, w, y)

        np.testing.assert_array_equal(y, np.broadcast_to(taps * 4 * 2.0**-110, y.shape))
        assert ["into_dots" in str(s.trace) for s in schedules] == [True, False]


@pytest.mark.parametrize(
    ("size", "stride", "by_channels"), [(5, 1, True), (12, 1, False), (13, 2, False)]
)
def test_filters_larger_than_caches_are_read_in_blocks(
    size: int, stride: int, by_channels: bool
) -> None:
    """Blocks of the image's channels are summed one after the other, and cores share filters."""
    target = tecomp.Target("small", "", CPU.memories, tecomp.Core(2, 32, 16, (2**14, 2**15)))
    X = te.placeholder((1, 24, size, size), name="X")
    W = te.placeholder((64, 24, 3, 3), name="W")
    p = conv2d.plan(conv2d.define(X, W, padding=1, stride=stride, layout="NCHW"), target)
    assert p.depth in (8, 16)
    assert (p.channels is not None) == by_channels
    check(
        (1, size, size, 24), (3, 3, 24, 64), target, "NCHW", bias=True, padding=1, stride=stride
    )


def test_blocks_of_channels_are_summed_in_one_order() -> None:
    """Sums are added in the same order, however the definition orders its reduction axes."""
    x, w = (np.random.default_rng(k).random(shape, np.float32)
            for k, shape in enumerate(((1, 64, 7, 7), (16, 64, 3, 3))))
    X, W = te.placeholder(x.shape, name="X"), te.placeholder(w.shape, name="W")
    target = tecomp.Target("small", "", CPU.memories, tecomp.Core(2, 32, 16, (2**14, 2**15)))
    results = []
    for order in ((0, 1, 2), (2, 1, 0), (1, 2, 0)):
        c, r, s = (te.reduce_axis((0, n), name=name) for n, name in ((64, "c"), (3, "r"), (3, "s")))
        axes = [(c, r, s)[k] for k in order]
        Y = te.compute((1, 16, 5, 5), lambda n, k, i, j, c=c, r=r, s=s, axes=axes: te.sum(
            X[n, c, i + r, j + s] * W[k, c, r, s], axis=axes), name="Y")
        assert conv2d.plan(Y, target).depth is not None
        results.append(np.empty((1, 16, 5, 5), np.float32))
        tecomp.build(conv2d.schedule(Y, target), [X, W, Y])(x, w, results[-1])
    assert all(np.array_equal(results[0], other) for other in results[1:])


def test_a_tile_that_fits_the_image_is_chosen() -> None:
    X, W = te.placeholder((1, 14, 14, 64), name="X"), te.placeholder((3, 3, 64, 64), name="W")
    wide = tecomp.Target("wide", "", CPU.memories, tecomp.Core(1, 64, 32, (2**15, 2**20)))
    p = conv2d.plan(conv2d.define(X, W), wide)

    assert 12 % p.tile.rows == 64 % p.tile.columns == 0
    assert 8 <= p.tile.rows * p.tile.vectors <= 32 - p.tile.vectors - 1


@pytest.mark.parametrize(("lanes", "registers"), [(8, 16), (16, 32)])
def test_tiles_of_odd_channel_counts_have_little_padding(lanes: int, registers: int) -> None:
    core = tecomp.Core(1, 4 * lanes, registers, (2**15, 2**20))
    for channels in (34, 74, 100, 167):
        X = te.placeholder((1, 28, 28, 64), name="X")
        W = te.placeholder((3, 3, 64, channels), name="W")
        p = conv2d.plan(conv2d.define(X, W, padding=1), tecomp.Target("t", "", {}, core))
        computed = -(-channels // p.tile.columns) * p.tile.columns

        assert computed <= -(-channels // lanes) * lanes * 1.2
        assert p.tile.rows * p.tile.vectors >= 8


def test_images_of_a_size_known_at_the_call() -> None:
    h, w = te.var("h"), te.var("w")
    X, W = te.placeholder((1, h, w, 3), name="X"), te.placeholder((3, 3, 3, 8), name="W")
    Y = conv2d.define(X, W)
    kernel = tecomp.build(conv2d.schedule(Y, CPU), [X, W, Y])
    for size in ((3, 3), (9, 20), (16, 5)):
        x = np.random.default_rng(0).standard_normal((1, *size, 3), np.float32)
        taps = np.random.default_rng(1).standard_normal((3, 3, 3, 8), np.float32)
        y = np.full((1, size[0] - 2, size[1] - 2, 8), np.nan, np.float32)
        call_fenced(kernel, x, taps, y)
        assert_close(y, reference(x, taps, 1, 0, 1, 1), rtol=1e-4, atol=1e-4)


@pytest.mark.exhaustive(keep=1)
@pytest.mark.parametrize("order", ["rsc", "csr"])
@pytest.mark.parametrize("first", [False, True])
def test_a_convolution_written_in_te_is_scheduled_as_that_of_the_library(
    first: bool, order: str
) -> None:
    shape = (1, 16, 20, 20) if first else (1, 20, 20, 16)
    filters = (32, 16, 3, 3) if first else (3, 3, 16, 32)
    X, W = te.placeholder(shape, name="X"), te.placeholder(filters, name="W")
    r, s, c = (te.reduce_axis((0, n), name=x) for n, x in ((3, "r"), (3, "s"), (16, "c")))
    runs = {"r": r, "s": s, "c": c}

    def at(n: te.Expr, y: te.Expr, x: te.Expr, k: te.Expr) -> te.Expr:
        y, x = 2 * y + r, x * 2 + s
        value, weight = (X[n, c, y, x], W[k, c, r, s]) if first else (X[n, y, x, c], W[r, s, c, k])
        product = value * weight if order == "rsc" else weight * value
        return te.sum(product, axis=[runs[name] for name in order])

    plain = te.compute(
        (1, 32, 9, 9) if first else (1, 9, 9, 32),
        (lambda n, k, y, x: at(n, y, x, k)) if first else (lambda n, y, x, k: at(n, y, x, k)),
        name="conv2d",
    )
    output = conv2d.define(X, W, stride=2, layout="NCHW" if first else "NHWC")

    roles = [conv2d.describe(Y) for Y in (plain, output)]
    assert roles[0].steps == roles[1].steps == (2, 2)
    assert (roles[0].image, roles[0].weights) == (roles[1].image, roles[1].weights)
    assert conv2d.plan(plain, CPU) == conv2d.plan(output, CPU)
    x, w = (np.random.default_rng(0).integers(-3, 4, t.shape).astype("f4") for t in (X, W))
    results = []
    for Y in (plain, output):
        results.append(np.empty(Y.shape, np.float32))
        tecomp.build(conv2d.schedule(Y, CPU), [X, W, Y])(x, w, results[-1])
    np.testing.assert_array_equal(results[0], results[1])


def test_non_convolutions_are_rejected() -> None:
    X, r = te.placeholder((1, 9, 9, 4), name="X"), te.reduce_axis((0, 3), name="r")
    Y = te.compute((1, 7, 9, 4), lambda n, y, x, c: te.sum(X[n, y + r, x, c], axis=r), name="Y")

    with pytest.raises(tecomp.ScheduleError) as error:
        conv2d.schedule(Y, CPU)

    assert diagnostic(error.value) == (
        Diagnostic("pattern-mismatch", caller="conv2d.schedule", op="Y")
    )
