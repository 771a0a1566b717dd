"""Random shapes of operators that PyTorch has too: unbiased sizes, fixed seeds."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from math import prod
from random import Random
from typing import Any

import numpy as np

from tests.bench.case import Array, Case
from tests.bench.cases.functions import conv2d, gelu, layer_norm, pool, softmax

_SEED = 20
_MOST_FLOPS, _MOST_VALUES = 2_000_000_000, 4_000_000
"""Limits of a case; larger ones are redrawn, as 160 cases are measured within two minutes."""


def _size(random: Random, least: int, most: int) -> int:
    """Return a log-uniform size: as many between 8 and 16 as between 64 and 128."""
    return round(least * math.pow(most / least, random.random()))


def _images(random: Random) -> tuple[int, int, int, int]:
    """Return a random shape of a batch of channels-last images."""
    height, width = _size(random, 7, 112), _size(random, 7, 112)
    return _size(random, 1, 4), height, width, _size(random, 1, 256)


def _product(random: Random) -> Case:
    m, k, n = (_size(random, 4, 1500) for _ in "mkn")
    batch = (_size(random, 2, 32),) if random.random() < 0.25 else ()
    size = "x".join(map(str, (*batch, m, k, n)))
    return Case("", f"matmul {size}", "matmul", ((*batch, m, k), (*batch, k, n)), np.matmul,
                terms=k, flops=2 * prod(batch) * m * k * n)


def _convolution(random: Random) -> Case:
    images, taps = _images(random), random.choice((1, 3, 3, 5, 7))
    channels, stride = images[3], random.choice((1, 1, 2))
    is_depthwise = channels > 1 and random.random() < 0.2
    results, groups = (channels, channels) if is_depthwise else (_size(random, 1, 256), 1)
    options: dict[str, Any] = {"stride": stride, "padding": taps // 2, "groups": groups}
    shapes = (images, (taps, taps, channels // groups, results))
    terms = taps * taps * channels // groups
    title = (f"{taps}x{taps} convolution of {'x'.join(map(str, images))} to {results} channels"
             f"{', depthwise' if is_depthwise else ''}{', stride 2' if stride > 1 else ''}")
    return Case("", title, "conv2d", shapes, partial(conv2d, **options), terms=terms,
                flops=2 * prod(images[:3]) // stride**2 * terms * results, options=options)


def _pooling(random: Random) -> Case:
    images, window = _images(random), random.choice((2, 3, 5))
    options: dict[str, Any] = {
        "op": random.choice(("max", "mean")), "window": window,
        "stride": random.randint(1, window), "padding": random.randint(0, window // 2),
    }
    title = (f"{options['op']} of {window}x{window} in {'x'.join(map(str, images))}, "
             f"stride {options['stride']}, padding {options['padding']}")
    return Case("", title, "pool", (images,), partial(pool, **options),
                terms=window * window, options=options)


def _reduction(op: str, random: Random) -> Case:
    shape = tuple(_size(random, 4, 2000) for _ in range(random.choice((2, 2, 3))))
    # A single sum may be close to 0, so its error has no useful relative scale.
    axis = random.choice((*range(len(shape)), *(() if op == "sum" else (None,))))
    terms = prod(shape) if axis is None else shape[axis]
    title = f"{op} over {'everything' if axis is None else f'axis {axis}'} of {_text(shape)}"
    return Case("", title, "reduce", (shape,),
                lambda x: np.asarray(getattr(np, op)(x, axis=axis)),
                terms=terms, options={"op": op, "axis": axis})


def _rows(kind: str, oracle: Callable[..., Array], further: int, random: Random) -> Case:
    shape = _size(random, 4, 3000), _size(random, 4, 3000)
    return Case("", f"{kind} of {_text(shape)}", kind, (shape, *further * [shape[1:]]), oracle,
                terms=shape[1])


def _transpose(random: Random) -> Case:
    shape = tuple(_size(random, 4, 1500) for _ in range(random.choice((2, 2, 3))))
    axes = list(range(len(shape)))
    while axes == sorted(axes):
        random.shuffle(axes)
    dtype = random.choice(("float32", "float16"))
    return Case("", f"{dtype} {_text(shape)} with axes {axes}", "transpose", (shape,),
                lambda x: x.transpose(axes), dtype=dtype, result_dtype=dtype,
                options={"axes": axes})


def _text(shape: tuple[int, ...]) -> str:
    return "x".join(map(str, shape))


_DRAWS: tuple[tuple[str, int, Callable[[Random], Case]], ...] = (
    ("matmul", 32, _product),
    ("conv2d", 32, _convolution),
    ("pool", 16, _pooling),
    ("sum", 16, partial(_reduction, "sum")),
    ("max", 16, partial(_reduction, "max")),
    ("softmax", 16, partial(_rows, "softmax", softmax, 0)),
    ("gelu", 8, partial(_rows, "gelu", gelu, 0)),
    ("layer_norm", 8, partial(_rows, "layer_norm", layer_norm, 2)),
    ("transpose", 16, _transpose),
)


def _drawn() -> Iterator[Case]:
    for name, count, draw in _DRAWS:
        random = Random(f"{name} {_SEED}")
        found = 0
        while found < count:
            case = draw(random)
            if case.flops <= _MOST_FLOPS and all(prod(s) <= _MOST_VALUES for s in case.shapes):
                yield replace(case, name=f"drawn/{name}-{found}")
                found += 1


CASES = tuple(_drawn())
