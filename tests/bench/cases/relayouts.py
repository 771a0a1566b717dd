"""Copies of tensors between layouts, with sizes within and beyond the cache."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from tests.bench.case import Array, Case, Goal

Map = Callable[..., list[Any]]

_WIDTHS = {"float16": 2, "float32": 4}


def rows(*index: Any) -> list[Any]:
    """Return the row-major index map."""
    return list(index)


def _copy(
    name: str, title: str, cut: tuple[int, ...], axes: tuple[int, ...], dtype: str,
    shape: tuple[int, ...], source: Map, result: Map, share: float,
) -> Case:
    """Return a copy that reshapes an array to `cut` and permutes its axes.

    Args:
        name: Name of the case.
        title: Description of the copy.
        cut: Shape of the source with split axes.
        axes: Permutation of these axes in the result.
        dtype: Dtype of the tensor.
        shape: Shape of the tensor.
        source: Index map of the source.
        result: Index map of the result.
        share: Required fraction of the rate of memcpy.
    """

    def oracle(x: Array) -> Array:
        return np.ascontiguousarray(x.reshape(cut).transpose(axes))

    return Case(
        f"relayout/{name}", f"{title}, {dtype}", "relayout", (cut,), oracle, dtype=dtype,
        result_dtype=dtype, bytes=2 * prod(cut) * _WIDTHS[dtype], limit="copy",
        options={"axes": axes, "shape": shape, "source": source, "result": result},
        goal=Goal(of_limit=share, of_peers=(("numpy", 3.0), ("torch", 2.0))),
    )


def _sticks(n: int, share: float) -> Case:
    return _copy(
        f"stick-{n}", f"{n}x{n} to sticks of 128 bytes", (n, n // 64, 64), (1, 0, 2), "float16",
        (n, n), rows, lambda i, j: [j // 64, i, j % 64], share,
    )


def _tiles(n: int, share: float) -> Case:
    return _copy(
        f"tile-{n}", f"{n}x{n} to tiles of 32x32", (n // 32, 32, n // 32, 32), (0, 2, 1, 3),
        "float32", (n, n), rows, lambda i, j: [i // 32, j // 32, i % 32, j % 32], share,
    )


def _blocks(n: int, k: int, h: int, w: int) -> list[Any]:
    return [n, k // 16, h, w, k % 16]


def _channels_last(size: int, share: float) -> Case:
    return _copy(
        f"nhwc-blocks-{size}", f"NHWC to nChw16c, 128x{size}x{size}", (size * size, 8, 16),
        (1, 0, 2), "float32", (1, 128, size, size), lambda n, k, h, w: [n, h, w, k], _blocks,
        share,
    )


def _channels_first(size: int) -> Case:
    return _copy(
        f"nchw-blocks-{size}", f"NCHW to nChw16c, 128x{size}x{size}", (8, 16, size * size),
        (0, 2, 1), "float32", (1, 128, size, size), rows, _blocks, 0.6,
    )


def _transpose(n: int, dtype: str) -> Case:
    return _copy(
        f"transpose-{n}-{dtype}", f"{n}x{n} transposed", (n, n), (1, 0), dtype, (n, n), rows,
        lambda i, j: [j, i], 0.4,
    )


CASES = (
    _sticks(256, 0.8), _sticks(4096, 0.9),
    _tiles(256, 0.8), _tiles(4096, 0.9),
    _channels_last(28, 0.8), _channels_last(320, 0.9),
    _channels_first(28), _channels_first(320),
    _transpose(4096, "float16"), _transpose(4096, "float32"),
)
