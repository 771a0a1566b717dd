"""Programs as array expressions, for each library with NumPy-like functions."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

from tests.bench.case import Array
from tests.bench.cases.functions import conv2d, pool
from tests.bench.programs.describe import Description
from tests.bench.programs.formulas import FORMULAS


class Library:
    """NumPy functions; subclasses adapt names and forms for other libraries.

    Attributes:
        m: Namespace of the functions that formulas call.
    """

    m: Any = SimpleNamespace(
        exp=np.exp, tanh=np.tanh, sqrt=np.sqrt, log=np.log, sin=np.sin, abs=np.abs,
        maximum=np.maximum, minimum=np.minimum, where=np.where,
    )

    def transpose(self, x: Any, axes: Sequence[int]) -> Any:
        """Permute the axes."""
        return np.transpose(x, axes)

    def reshape(self, x: Any, shape: Sequence[int]) -> Any:
        """Reshape an array."""
        return x.reshape(shape)

    def reduce(self, x: Any, op: str, axes: tuple[int, ...], keepdims: bool) -> Any:
        """Compute `sum`, `mean`, `max` or `min` over some axes."""
        return getattr(np, op)(x, axis=axes, keepdims=keepdims)

    def product(self, letters: str, x: Any, y: Any) -> Any:
        """Compute an einsum of two arrays."""
        return np.einsum(letters, x, y, optimize=True)

    def conv2d(self, x: Any, w: Any, *, stride: int, padding: int, groups: int) -> Any:
        """Compute a channels-last convolution; filters are (rows, columns, group channels, n)."""
        return conv2d(x, w, stride=stride, padding=padding, groups=groups).astype(x.dtype)

    def pool(self, x: Any, *, op: str, window: int, stride: int, padding: int = 0) -> Any:
        """Pool channels-last images."""
        return pool(x, op=op, window=window, stride=stride, padding=padding)

    def scan(self, x: Any, op: str, axis: int) -> Any:
        """Compute the cumulative `sum` or `max`."""
        return (np.cumsum if op == "sum" else np.maximum.accumulate)(x, axis=axis)

    def pad(self, x: Any, width: int) -> Any:
        """Pad the last two axes with zeros."""
        return np.pad(x, [(0, 0)] * (x.ndim - 2) + [(width, width)] * 2)

    def concatenate(self, parts: Sequence[Any], axis: int) -> Any:
        """Concatenate arrays along an axis."""
        return np.concatenate(parts, axis=axis)

    def repeat(self, x: Any, count: int, axis: int) -> Any:
        """Repeat each element along an axis."""
        return np.repeat(x, count, axis=axis)

    def flip(self, x: Any, axis: int) -> Any:
        """Reverse an axis."""
        return np.flip(x, axis=axis)

    def cast(self, x: Any, dtype: str) -> Any:
        """Cast to another dtype."""
        return x.astype(dtype)

    def arange(self, count: int) -> Any:
        """Return consecutive integers from 0."""
        return np.arange(count)


def _softmax(lib: Library, x: Any, *, axis: int, form: str) -> Any:
    most = lib.reduce(x, "max", (axis,), True)
    powers = lib.m.exp(x - most)
    total = lib.reduce(powers, "sum", (axis,), True)
    return x - most - lib.m.log(total) if form == "log" else powers / total


def _norm(lib: Library, x: Any, *, form: str) -> Any:
    count = 1.0 / x.shape[-1]
    if form == "layer":
        x = x - lib.reduce(x, "sum", (-1,), True) * count
    elif form == "l1":
        return x / (lib.reduce(lib.m.abs(x), "sum", (-1,), True) + 1e-5)
    elif form == "range":
        low, high = (lib.reduce(x, op, (-1,), True) for op in ("min", "max"))
        return (x - low) / (high - low + 1e-5)
    return x / lib.m.sqrt(lib.reduce(x * x, "sum", (-1,), True) * count + 1e-5)


def _distance(lib: Library, x: Any, y: Any, *, form: str) -> Any:
    far = x[:, None, :] - y[None, :, :]
    if form == "squares":
        return lib.reduce(far * far, "sum", (-1,), False)
    return lib.reduce(lib.m.abs(far), "sum" if form == "city" else "max", (-1,), False)


def _stencil(lib: Library, x: Any, *, form: str) -> Any:
    inner = x[..., 1:-1, 1:-1]
    up, down = x[..., :-2, 1:-1], x[..., 2:, 1:-1]
    left, right = x[..., 1:-1, :-2], x[..., 1:-1, 2:]
    if form == "cross":
        return inner + 0.2 * (up + down + left + right - 4.0 * inner)
    if form == "edges":
        return lib.m.abs(right - left) + lib.m.abs(down - up)
    return lib.m.maximum(lib.m.maximum(up, down), lib.m.maximum(left, lib.m.maximum(inner, right)))


def _smooth(lib: Library, x: Any, *, taps: Sequence[float]) -> Any:
    count = x.shape[-1] - len(taps) + 1
    total = x[..., :count] * taps[0]
    for k, tap in enumerate(taps[1:], 1):
        total = total + x[..., k : k + count] * tap
    return total


def _mask(lib: Library, x: Any, *, form: str) -> Any:
    i, j = lib.arange(x.shape[-2])[:, None], lib.arange(x.shape[-1])[None, :]
    if form == "causal":
        return lib.m.where(j <= i, x, -1e9)
    if form == "band":
        return lib.m.where((i - j < 8) & (j - i < 8), x, 0.0)
    return lib.m.where((i + j) % 2 == 0, x, -x)


def _halves(_: Library, x: Any, *, form: str) -> Any:
    half = x.shape[-1] // 2
    return x[..., :half] if form == "first" else x[..., 1::2]


KINDS: dict[str, Callable[..., Any]] = {
    "formula": lambda lib, *x, name: FORMULAS[name](lib.m, *x),
    "reduce": lambda lib, x, *, op, axes, keepdims: lib.reduce(x, op, axes, keepdims),
    "product": lambda lib, x, y, *, letters: lib.product(letters, x, y),
    "conv2d": lambda lib, x, w, **options: lib.conv2d(x, w, **options),
    "pool": lambda lib, x, **options: lib.pool(x, **options),
    "scan": lambda lib, x, *, op, axis: lib.scan(x, op, axis),
    "pad": lambda lib, x, *, width: lib.pad(x, width),
    "concatenate": lambda lib, *x, axis: lib.concatenate(x, axis),
    "repeat": lambda lib, x, *, count, axis: lib.repeat(x, count, axis),
    "flip": lambda lib, x, *, axis: lib.flip(x, axis),
    "cast": lambda lib, x, *, dtype: lib.cast(x, dtype),
    "transpose": lambda lib, x, *, axes: lib.transpose(x, axes),
    "reshape": lambda lib, x, *, shape: lib.reshape(x, shape),
    "rows": lambda _, x, index: x[index],
    "softmax": _softmax, "norm": _norm, "distance": _distance, "stencil": _stencil,
    "smooth": _smooth, "mask": _mask, "halves": _halves,
}


def function(program: Description, library: Library) -> Callable[..., Any]:
    """Return a function of the inputs that computes a program with a library."""

    def run(*inputs: Any) -> Any:
        values = list(inputs)
        for step in program.steps:
            operands = (values[k] for k in step.operands)
            values.append(KINDS[step.kind](library, *operands, **step.options))
        return values[-1]

    return run


def oracle(program: Description) -> Callable[..., Array]:
    """Return the NumPy function of a program, for inputs of any precision."""
    run = function(program, Library())
    return lambda *inputs: np.asarray(run(*inputs))


def root(count: int) -> float:
    """Return the scale of weights for sums of the given number of terms."""
    return 1.0 / math.sqrt(count)
