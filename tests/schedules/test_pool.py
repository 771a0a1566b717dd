"""Pooling equals a loop over windows in NumPy."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import tecomp
from tecomp import te
from tecomp.schedules import pool
from tests.numerics import assert_close
from tests.strategies.fenced import call_fenced
from tests.strategies.machines import CORES
from tests.strategies.pairwise import pairwise


def pair(x: Any) -> tuple[int, int]:
    return x if isinstance(x, tuple) else (x, x)


def expected(x: np.ndarray, window: Any, op: str, *, stride: Any = None, padding: Any = 0,
             dilation: Any = 1, count_padding: bool = True) -> np.ndarray:
    """Return the NHWC pooling result."""
    (sy, sx), (py, px), (dy, dx) = pair(stride or window), pair(padding), pair(dilation)
    height, width = pair(window)
    pads = ((0, 0), (py, py), (px, px), (0, 0))
    neighbors = np.pad(x.astype(np.float64), pads, constant_values=-np.inf if op == "max" else 0)
    inside = np.pad(np.ones(x.shape), pads)
    rows = (neighbors.shape[1] - dy * (height - 1) - 1) // sy + 1
    columns = (neighbors.shape[2] - dx * (width - 1) - 1) // sx + 1
    out = np.empty((x.shape[0], rows, columns, x.shape[3]))
    for i in range(rows):
        for j in range(columns):
            y = slice(i * sy, i * sy + dy * (height - 1) + 1, dy)
            z = slice(j * sx, j * sx + dx * (width - 1) + 1, dx)
            seen = neighbors[:, y, z]
            count = height * width if count_padding else inside[:, y, z].sum((1, 2))
            out[:, i, j] = seen.max((1, 2)) if op == "max" else seen.sum((1, 2)) / count
    return out


def run(x: np.ndarray, target: tecomp.Target, window: Any, op: Any, layout: Any,
        **options: Any) -> np.ndarray:
    """Run pooling on NHWC images in any tested layout."""
    source = x if layout == "NHWC" else np.ascontiguousarray(x.transpose(0, 3, 1, 2))
    X = te.placeholder(source.shape, str(x.dtype), name="X")
    Y = pool.define(X, window, op, layout=layout, **options)
    kernel = tecomp.build(pool.schedule(Y, target), [X, Y])
    result = kernel.empty(Y)
    call_fenced(kernel, source, result)
    return result if layout == "NHWC" else result.transpose(0, 2, 3, 1)


def image(*shape: int, dtype: str = "float32") -> np.ndarray:
    return (np.random.default_rng(0).standard_normal(shape) * 20).astype(dtype)


@pytest.mark.exhaustive(keep=3)
@pairwise(
    form=[
        ((1, 1, 1), 1, {}), ((7, 9, 3), 2, {}), ((13, 37, 17), 3, {"stride": 2, "padding": 1}),
        ((12, 20, 33), (2, 3), {"stride": (1, 2), "padding": (1, 0)}),
        ((15, 14, 8), 3, {"stride": 1, "padding": 1, "dilation": 2}),
        ((20, 20, 5), 5, {"stride": 3}),
    ],
    layout=["NHWC", "NCHW"], op=["max", "mean"], target=CORES,
)
def test_windows(form: tuple[tuple[int, int, int], Any, dict[str, Any]], op: str,
                 layout: str, target: tecomp.Target) -> None:
    size, window, options = form
    x = image(2, *size)

    result = run(x, target, window, op, layout, **options)
    assert_close(result, expected(x, window, op, **options), rtol=1e-4, atol=1e-4)


@pytest.mark.exhaustive(keep=3)
@pytest.mark.parametrize("layout", ["NHWC", "NCHW"])
def test_a_mean_excluding_padding(layout: str, target: tecomp.Target) -> None:
    x = image(1, 11, 12, 7)
    options: dict[str, Any] = {"stride": 2, "padding": 1, "count_padding": False}

    result = run(x, target, 3, "mean", layout, **options)
    assert_close(result, expected(x, 3, "mean", **options), rtol=1e-4, atol=1e-4)


@pytest.mark.exhaustive(keep=3)
@pytest.mark.parametrize("dtype", ["int8", "float16", "float64"])
def test_types(dtype: str, target: tecomp.Target) -> None:
    x = image(1, 8, 9, 20, dtype=dtype)

    result = run(x, target, 3, "max", "NHWC", stride=2, padding=1)
    np.testing.assert_array_equal(result, expected(x, 3, "max", stride=2, padding=1))


@pytest.mark.exhaustive(keep=5)
@pytest.mark.parametrize("layout", ["NHWC", "NCHW"])
@pytest.mark.parametrize("op", ["max", "mean"])
def test_whole_images(layout: Any, op: Any, target: tecomp.Target) -> None:
    x = image(2, 7, 6, 19)
    axes = (1, 2) if layout == "NHWC" else (2, 3)
    X = te.placeholder(x.shape, name="X")
    Y = pool.whole(X, op, layout=layout)
    kernel = tecomp.build(pool.schedule(Y, target), [X, Y])
    result = kernel.empty(Y)
    call_fenced(kernel, x, result)

    reference = getattr(x, op)(axes, keepdims=True)
    assert_close(result, reference, rtol=1e-4, atol=1e-4)


@pytest.mark.exhaustive(keep=1)
def test_sizes_known_at_the_call(target: tecomp.Target) -> None:
    X = te.placeholder((1, te.var("h"), te.var("w"), te.var("c")), name="X")
    Y = pool.define(X, 3, stride=2, padding=1)
    kernel = tecomp.build(pool.schedule(Y, target), [X, Y])
    for size in ((5, 5, 1), (8, 30, 35)):
        x = image(1, *size)
        reference = expected(x, 3, "max", stride=2, padding=1)
        result = np.full(reference.shape, np.nan, np.float32)
        call_fenced(kernel, x, result)
        np.testing.assert_array_equal(result, reference)


def test_excessive_padding_is_rejected() -> None:
    with pytest.raises(ValueError, match="padding") as error:
        pool.define(te.placeholder((1, 8, 8, 4), name="X"), 2, padding=2)

    assert str(error.value) == (
        "pool.define: padding=(2, 2) exceeds half of window=(2, 2); reduce padding, or pass a "
        "larger window"
    )


@pytest.mark.parametrize(
    ("channels", "window", "loops"), [(16, 3, 0), (64, 3, 0), (64, 5, 2), (16, 5, 0), (16, 9, 2)]
)
def test_small_windows_of_few_vectors_are_written_out(
    channels: int, window: int, loops: int
) -> None:
    core = tecomp.Core(1, 64, 32, (32 * 1024, 1024 * 1024))
    target = tecomp.Target("pinned", "", tecomp.Target.load("cpu").memories, core)
    X = te.placeholder((1, 90, 90, channels), name="X")
    Y = pool.define(X, window, "mean")
    text = str(tecomp.lower(pool.schedule(Y, target), [X, Y]))

    assert len(re.findall(r"for [rs] in", text)) == loops


@pytest.mark.parametrize("stride", [1, 2])
def test_windows_of_symbolic_sizes_stay_in_registers(stride: int) -> None:
    """Each vector is initialized, reduced and stored in one branch, whole or masked."""
    c, h, w = te.size_var("c"), te.size_var("h"), te.size_var("w")
    x = te.placeholder((c, h * stride + 3 - stride, w * stride + 3 - stride), name="x")
    a, b = te.reduce_axis((0, 3), name="a"), te.reduce_axis((0, 3), name="b")
    y = te.compute(
        (c, h, w), lambda k, i, j: te.max(x[k, i * stride + a, j * stride + b], axis=[a, b]),
        name="y")
    kernel = tecomp.build(y, [x, y])

    tile = kernel.source().partition("as y_local:")[2]
    assert tile.count("if ") == 1
    assert "for" not in tile.partition("else:")[0]
    for shape in ((1, 1, 1), (2, 3, 7), (3, 5, 8), (2, 9, 33), (1, 0, 4), (2, 4, 40)):
        extents = shape[0], *(n * stride + 3 - stride for n in shape[1:])
        data, out = image(*extents), np.zeros(shape, np.float32)
        kernel(data, out)
        steps = [data[:, p:, q:][:, ::stride, ::stride][:, :shape[1], :shape[2]]
                 for p in range(3) for q in range(3)]
        np.testing.assert_array_equal(out, np.max(steps, axis=0))


@pytest.mark.exhaustive(keep=2)
@pytest.mark.parametrize(("window", "stride", "padding"), [(2, 2, 0), (3, 2, 1), (3, 3, 1)])
def test_windows_of_symbolic_images_stay_in_registers(
    window: int, stride: int, padding: int
) -> None:
    """The number of windows is a quotient, of which the tail is bounded and the padding a box."""
    X = te.placeholder((2, 3, te.size_var("h"), te.size_var("w")), name="X")
    Y = pool.define(X, window, stride=stride, padding=padding, layout="NCHW")
    kernel = tecomp.build(Y, [X, Y])

    padded, _, tile = kernel.source().partition("as pool_total:")
    assert tile
    assert "_outer in range(" not in tile
    assert "% broadcast(" not in padded
    for shape in ((2, 3, 7, 9), (2, 3, 12, 33), (2, 3, 17, 64), (2, 3, 16, 31)):
        data = image(*shape)
        extents = [(n + 2 * padding - window) // stride + 1 for n in shape[2:]]
        out = np.zeros((2, 3, *extents), np.float32)
        kernel(data, out)
        sides = ((0, 0), (0, 0), (padding, padding), (padding, padding))
        whole = np.pad(data, sides, constant_values=-np.inf)
        windows = np.lib.stride_tricks.sliding_window_view(whole, (window, window), (2, 3))
        np.testing.assert_array_equal(
            out, windows[:, :, ::stride, ::stride].max((-2, -1)))
