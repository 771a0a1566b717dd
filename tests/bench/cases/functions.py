"""Float64 oracles of the cases."""

from __future__ import annotations

import math

import numpy as np

from tests.bench.case import Array

_erf = np.vectorize(math.erf, otypes=[float])


def gelu(x: Array) -> Array:
    """Compute GELU by the erf of the standard library."""
    return np.asarray(0.5 * x * (1.0 + _erf(x / math.sqrt(2.0))))


def softmax(x: Array) -> Array:
    """Compute softmax over the last axis."""
    powers = np.exp(x - x.max(axis=-1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=-1, keepdims=True))


def layer_norm(x: Array, scale: Array, shift: Array) -> Array:
    """Compute layer norm over the last axis."""
    centred = x - x.mean(axis=-1, keepdims=True)
    variance = (centred * centred).mean(axis=-1, keepdims=True)
    return np.asarray(centred / np.sqrt(variance + EPSILON) * scale + shift)


def rms_norm(x: Array, scale: Array) -> Array:
    """Compute RMS norm over the last axis."""
    return np.asarray(x / np.sqrt((x * x).mean(axis=-1, keepdims=True) + EPSILON) * scale)


def attention(q: Array, k: Array, v: Array) -> Array:
    """Compute attention of arrays of shape (heads, tokens, features)."""
    return np.asarray(softmax(q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1])) @ v)


def blur(image: Array) -> Array:
    """Compute the mean of 3x3 pixels; the result is smaller by two along both axes."""
    rows = (image[:-2] + image[1:-1] + image[2:]) / 3.0
    return np.asarray((rows[:, :-2] + rows[:, 1:-1] + rows[:, 2:]) / 3.0)


def conv2d(x: Array, w: Array, *, stride: int, padding: int, groups: int) -> Array:
    """Compute a channels-last convolution; filters are (rows, columns, group channels, results)."""
    x = np.pad(x, ((0, 0), (padding, padding), (padding, padding), (0, 0)))
    taps_y, taps_x, depth, results = w.shape
    rows = (x.shape[1] - taps_y) // stride + 1
    columns = (x.shape[2] - taps_x) // stride + 1
    total = np.zeros((x.shape[0], rows, columns, results))
    per_group = results // groups
    for r in range(taps_y):
        for s in range(taps_x):
            seen = x[:, r : r + rows * stride : stride, s : s + columns * stride : stride]
            for g in range(groups if depth > 1 else 1):
                to = slice(g * per_group, (g + 1) * per_group)
                if depth == 1 and groups == results:
                    total += seen * w[r, s, 0]
                else:
                    total[..., to] += seen[..., g * depth : (g + 1) * depth] @ w[r, s, :, to]
    return total


def pool(x: Array, *, op: str, window: int, stride: int, padding: int) -> Array:
    """Compute pooling with square windows over channels-last images."""
    neighbors = np.pad(x, ((0, 0), (padding, padding), (padding, padding), (0, 0)),
                    constant_values=-np.inf if op == "max" else 0.0)
    views = np.lib.stride_tricks.sliding_window_view(neighbors, (window, window), axis=(1, 2))
    views = views[:, ::stride, ::stride]
    return np.asarray(views.max((-1, -2)) if op == "max" else views.mean((-1, -2)))


EPSILON = 1e-5
