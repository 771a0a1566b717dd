"""Convolutions, pooling and a blur."""

from __future__ import annotations

from functools import partial
from typing import Any

from tests.bench.case import Case, Goal
from tests.bench.cases.functions import blur, conv2d, pool


def convolution(
    name: str, channels: int, size: int, taps: int, *,
    results: int = 0, stride: int = 1, groups: int = 1, threads: int = 0, goal: Goal | None = None,
) -> Case:
    """Return a convolution of one size x size image, with zero padding that keeps the size."""
    results = results or channels
    padding = taps // 2
    out = (size + 2 * padding - taps) // stride + 1
    options = {"stride": stride, "padding": padding, "groups": groups}
    terms = taps * taps * channels // groups
    form = "depthwise " if groups > 1 else ""
    pace = f", stride {stride}" if stride > 1 else ""
    return Case(
        name, f"{form}{taps}x{taps}, {channels}x{size}x{size} to {results} channels{pace}",
        "conv2d", ((1, size, size, channels), (taps, taps, channels // groups, results)),
        partial(conv2d, stride=stride, padding=padding, groups=groups), terms=terms, options=options,
        flops=2 * out * out * results * terms,
        bytes=4 * (size * size * channels + out * out * results), limit="fma",
        goal=goal or Goal(of_best=1.0, peers=("torch",)), threads=threads,
    )


def pooling(op: str) -> Case:
    """Return a 3x3 pooling case with stride 2 and padding."""
    size, channels, out = 112, 64, 56
    options: dict[str, Any] = {"op": op, "window": 3, "stride": 2, "padding": 1}
    return Case(
        f"pool/{op}", f"{op} of 3x3, {channels}x{size}x{size}, stride 2", "pool",
        ((1, size, size, channels),), partial(pool, **options), terms=9, options=options,
        flops=9 * out * out * channels, bytes=4 * channels * (size * size + out * out),
        limit="copy", goal=Goal(of_best=1.0),
    )


ROWS, COLUMNS = 4096, 2048

CASES = (
    convolution("conv2d/3x3-64x56", 64, 56, 3),
    convolution("conv2d/3x3-128x28", 128, 28, 3),
    convolution("conv2d/3x3-256x14", 256, 14, 3),
    convolution("conv2d/1x1-256x28", 256, 28, 1),
    convolution("conv2d/depthwise-128x56", 128, 56, 3, groups=128),
    convolution("conv2d/stride2-64x56", 64, 56, 3, results=128, stride=2),
    pooling("max"),
    pooling("mean"),
    Case(
        "blur/3x3", f"3x3 mean, {ROWS}x{COLUMNS}", "blur", ((ROWS + 2, COLUMNS + 2),), blur,
        terms=9, flops=6 * ROWS * COLUMNS, bytes=8 * ROWS * COLUMNS, limit="copy",
        goal=Goal(of_best=1.3, peers=("halide",)),
    ),
)
