"""Latency of layout queries: all properties, DMA nests and runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tests.bench.case import Array, Case, Goal

Map = Callable[..., Sequence[Any]]

_QUESTIONS, _SWIZZLED, _RUNS = 0.002, 0.050, 1.0
_SQUARE = (4096, 4096)


def _number(value: int) -> Callable[[Array], Array]:
    return lambda _: np.asarray(value, np.int64)


def _case(
    kind: str, name: str, subject: str, function: Map, shape: Sequence[int], answer: int, seconds: float,
    **options: Any,
) -> Case:
    """Return a case for the time of one uncached query.

    `answer` is the result by hand: the number of padding places, nests or runs.
    """
    return Case(
        f"{kind}/{name}", f"{subject} on {'x'.join(map(str, shape))}", kind, ((1,),),
        _number(answer), result_dtype="int64",
        options={"map": function, "shape": shape, **options}, goal=Goal(seconds=seconds),
    )


def _layout(
    name: str, subject: str, function: Map, shape: Sequence[int], padding: int,
    seconds: float = _QUESTIONS,
) -> Case:
    """Return a case for construction, extents, injectivity, padding and inverse together."""
    return _case("layout", name, subject, function, shape, padding, seconds)


def _shards(cores: int) -> Map:
    n = 4096 // cores
    return lambda i, j: [i // n, j // n, i % n, j % n]


def _coprime(*sizes: int) -> Map:
    return lambda *i: [
        *(x // n for x, n in zip(i, sizes, strict=True)),
        *(x % n for x, n in zip(i, sizes, strict=True)),
    ]


CASES = (
    _layout("transpose", "transpose", lambda i, j: [j, i], (1024, 1024), 0),
    _layout(
        "sticks", "sticks, all padded", lambda i, j, k: [j % 128, k // 64, i % 64, k % 64],
        (5, 100, 150), 128 * 3 * 64 * 64 - 75000,
    ),
    _layout(
        "nChw16c", "nChw16c, last block not full", lambda n, c, h, w: [n, c // 16, h, w, c % 16],
        (8, 130, 28, 28), 8 * 14 * 28 * 28,
    ),
    _layout(
        "tiles", "T(8,128)(2,1)", lambda i, j: [i // 8, j // 128, i % 8 // 2, j % 128, i % 2],
        _SQUARE, 0,
    ),
    _layout(
        "faces", "8x8 cores, tiles of four faces",
        lambda i, j: [i // 512, j // 512, i % 512 // 32, j % 512 // 32,
                      i % 32 // 16, j % 32 // 16, i % 16, j % 16],
        _SQUARE, 0,
    ),
    _layout(
        "seven", "seven axes as three",
        lambda a, b, c, d, e, f, g: [(a * 3 + b) * 64 + c, (d * 5 + e) * 30 + f, g],
        (16, 3, 64, 7, 5, 30, 11), 0,
    ),
    _layout(
        "xor", "exclusive or of chunks", lambda i, j: [i, (j // 8) ^ (i % 8), j % 8], _SQUARE, 0,
        _SWIZZLED,
    ),
    _layout(
        "xor-odd", "exclusive or of chunks, no power of two",
        lambda i, j: [i, (j // 8) ^ (i % 8), j % 8], (4093, 4003), 4093 * (504 * 8 - 4003),
        _SWIZZLED,
    ),
    _layout(
        "xor-offset", "Swizzle<3,3,3> of an offset",
        lambda i, j: [(i * 4096 + j) ^ ((i * 4096 + j >> 6 & 7) << 3)], _SQUARE, 0, _SWIZZLED,
    ),
    _case(
        "dma", "sticks", "nests of sticks", lambda i, j, k: [j, k // 64, i, k % 64],
        (5, 100, 150), 2, _SWIZZLED,
    ),
    _case(
        "dma", "swizzle", "nests of an exclusive or",
        lambda i, j: [i, (j // 8) ^ (i % 8), j % 8], _SQUARE, 8, _SWIZZLED,
    ),
    _case(
        "runs", "reshard", "8x8 cores to 4x4", _shards(8), _SQUARE, 4096 * 8, _RUNS,
        to=_shards(4), grid=(0, 1),
    ),
    _case(
        "runs", "reshape", "to 768x128x128 on 8x8 cores",
        lambda n, c, h, w: [((n * 24 + c) * 128 + h) // 12288, w // 16,
                            ((n * 24 + c) * 128 + h) % 12288, w % 16],
        (32, 24, 128, 128), 786432, _RUNS, grid=(0, 1),
        to=lambda n, c, h, w: [(n * 24 + c) // 96, h // 16, (n * 24 + c) % 96, h % 16, w],
    ),
    _case(
        "runs", "coprime", "coprime tiles", _coprime(5, 7, 11, 2, 3, 2), (13, 11, 17, 7, 5, 3),
        170170, _RUNS, to=_coprime(3, 4, 5, 3, 2, 3),
    ),
)
