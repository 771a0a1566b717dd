"""Print the table of docs/source-documents.md: `python -m tests.bench.convolution_layouts [ROUNDS]`.

The table compares one definition that is stored in the layout of another with the definition that
has this layout.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np

import tecomp
from tecomp import Layout, te, topi
from tecomp.driver import CompiledProgram
from tests.numerics import assert_close

SHAPES = ((64, 64, 28, 3), (32, 64, 56, 3), (128, 128, 14, 3), (256, 64, 28, 1), (16, 32, 112, 5))
"""Input channels, output channels, side of the image and of the filter."""
LANES = 16
"""Channels in the last axis of NCHWc."""

Shape = tuple[int, int, int, int]
Map = Callable[..., list[Any]]
Call = Callable[[], object]


def nhwc(n: Any, c: Any, h: Any, w: Any) -> list[Any]:
    return [n, h, w, c]


def hwio(o: Any, i: Any, h: Any, w: Any) -> list[Any]:
    return [h, w, i, o]


def blocks(n: Any, c: Any, h: Any, w: Any) -> list[Any]:
    return [n, c // LANES, h, w, c % LANES]


def filter_blocks(o: Any, i: Any, h: Any, w: Any) -> list[Any]:
    return [o // LANES, i // LANES, h, w, i % LANES, o % LANES]


def placeholders(shape: Shape) -> tuple[te.Tensor, te.Tensor, int]:
    """Return the NCHW image, the filter, and the padding that keeps the size of the image."""
    inputs, outputs, side, taps = shape
    X = te.placeholder((1, inputs, side, side), name="X")
    return X, te.placeholder((outputs, inputs, taps, taps), name="W"), taps // 2


def stored(shape: Shape, image: Map, weights: Map) -> CompiledProgram:
    """Compile `conv2d_nchw` for tensors in other layouts."""
    X, W, padding = placeholders(shape)
    Y = topi.nn.conv2d_nchw(X, W, 1, padding, 1)
    layouts = {
        x: Layout.of([int(n) for n in x.shape], "float32", m)
        for x, m in ((X, image), (W, weights), (Y, image))
    }
    return tecomp.compile([Y], [X, W], "cpu", packed=[X, W, Y], layouts=layouts)


def compiled(
    definition: Callable[..., te.Tensor], shape: Shape, x: Any, w: Any
) -> CompiledProgram:
    """Compile a definition for arrays in its own layout."""
    X, W = te.placeholder(x.shape, name="X"), te.placeholder(w.shape, name="W")
    return tecomp.compile([definition(X, W, 1, shape[3] // 2, 1)], [X, W], "cpu")


def alternate(calls: list[Call], rounds: int) -> list[list[float]]:
    """Return the seconds of each call in each round; calls of a round follow one another."""
    times: list[list[float]] = [[] for _ in calls]
    for _ in range(rounds):
        for call, found in zip(calls, times, strict=True):
            start = perf_counter()
            call()
            found.append(perf_counter() - start)
    return times


def row(shape: Shape, rounds: int) -> str:
    """Return the times of a shape in all layouts."""
    inputs, outputs, side, taps = shape
    random = np.random.default_rng(0)
    image = random.random((1, inputs, side, side), dtype=np.float32)
    weights = random.random((outputs, inputs, taps, taps), dtype=np.float32)
    x, w = (np.ascontiguousarray(a) for a in (image.transpose(0, 2, 3, 1), weights.transpose(2, 3, 1, 0)))
    xb = np.ascontiguousarray(image.reshape(1, -1, LANES, side, side).transpose(0, 1, 3, 4, 2))
    wb = np.ascontiguousarray(weights.reshape(
        outputs // LANES, LANES, inputs // LANES, LANES, taps, taps).transpose(0, 2, 4, 5, 3, 1))
    own, as_nhwc = compiled(topi.nn.conv2d_nhwc, shape, x, w), stored(shape, nhwc, hwio)
    rows, as_blocks = compiled(topi.nn.conv2d_nchw, shape, image, weights), stored(
        shape, blocks, filter_blocks)
    expected = own(x, w)
    assert_close(as_nhwc(x, w), expected, rtol=1e-4)
    assert_close(
        np.asarray(as_blocks(xb, wb)).transpose(0, 2, 3, 1, 4).reshape(expected.shape), expected,
        rtol=1e-4)
    times = alternate([
        lambda: own(x, w), lambda: as_nhwc(x, w), lambda: rows(image, weights),
        lambda: as_blocks(xb, wb),
    ], rounds)
    columns = " | ".join(f"{min(found) * 1e3:.3f} / {median(found) * 1e3:.3f}" for found in times)
    ratio = min(times[1]) / min(times[0]), min(times[3]) / min(times[2])
    name = f"{inputs} to {outputs}, {side} x {side}, {taps} x {taps}"
    return f"| {name} | {columns} | {ratio[0]:.2f} | {ratio[1]:.2f} |"


def main() -> None:
    """Print the table."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 60
    print("| channels, image, filter | `conv2d_nhwc` | `conv2d_nchw` in NHWC | `conv2d_nchw` | "
          "`conv2d_nchw` in NCHWc | NHWC | NCHWc |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: |")
    for shape in SHAPES:
        print(row(shape, rounds), flush=True)


if __name__ == "__main__":
    main()
