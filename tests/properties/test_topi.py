"""Random programs of topi functions agree with NumPy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from tecomp import te, topi
from tecomp.topi import nn
from tests.topi.running import Array, compiled, given, interpreted

Draw = np.random.Generator
PROGRAMS, COMPILED = 48, 4
"""Number of programs, and the interval at which a program is also compiled."""
_MOST = 300
"""Maximum number of elements of a value."""


@dataclass(frozen=True)
class Pair:
    """Tensor with its expected value."""

    tensor: te.Tensor
    array: Array


Step = Callable[[Draw, Pair], Pair | None]


def axis(draw: Draw, x: Pair) -> int:
    """Draw an axis, counted from either end."""
    return int(draw.integers(-x.array.ndim, x.array.ndim))


def unary(draw: Draw, x: Pair) -> Pair:
    name, function = [
        ("negative", np.negative), ("abs", np.abs), ("sign", np.sign),
        ("bitwise_not", np.invert)][int(draw.integers(4))]
    return Pair(getattr(topi, name)(x.tensor), function(x.array))


def binary(draw: Draw, x: Pair) -> Pair | None:
    """Combine `x` with its maximum along an axis, which broadcasts along that axis."""
    if not x.array.ndim or 0 in x.array.shape:
        return None
    k = axis(draw, x)
    other, array = topi.max(x.tensor, k, True), x.array.max(k, keepdims=True)
    name, function = [
        ("add", np.add), ("subtract", np.subtract), ("maximum", np.maximum),
        ("bitwise_xor", np.bitwise_xor)][int(draw.integers(4))]
    return Pair(getattr(topi, name)(x.tensor, other), function(x.array, array))


def transposed(draw: Draw, x: Pair) -> Pair:
    order = [int(k) for k in draw.permutation(x.array.ndim)]
    return Pair(topi.transpose(x.tensor, order), x.array.transpose(order))


def reshaped(draw: Draw, x: Pair) -> Pair:
    shape, rest = [], x.array.size
    for factor in draw.permutation([2, 3, 1, 2]):
        if rest and rest % factor == 0:
            shape.append(int(factor))
            rest //= int(factor)
    shape.append(rest)
    order = [shape[k] for k in draw.permutation(len(shape))]
    return Pair(topi.reshape(x.tensor, order), x.array.reshape(order))


def flipped(draw: Draw, x: Pair) -> Pair | None:
    if not x.array.ndim:
        return None
    k = axis(draw, x)
    return Pair(topi.flip(x.tensor, k), np.flip(x.array, k))


def widened(draw: Draw, x: Pair) -> Pair:
    k = int(draw.integers(-x.array.ndim - 1, x.array.ndim + 1))
    return Pair(topi.expand_dims(x.tensor, k), np.expand_dims(x.array, k))


def squeezed(draw: Draw, x: Pair) -> Pair:
    return Pair(topi.squeeze(x.tensor), x.array.squeeze())


def sliced(draw: Draw, x: Pair) -> Pair:
    begin, end = ([int(n) for n in draw.integers(-4, 5, x.array.ndim)] for _ in range(2))
    steps = [int(n) for n in draw.choice([1, 1, 2, -1, -2], x.array.ndim)]
    parts = tuple(map(slice, begin, end, steps))
    return Pair(topi.strided_slice(x.tensor, begin, end, steps), x.array[parts])


def joined(draw: Draw, x: Pair) -> Pair | None:
    if not x.array.ndim:
        return None
    k = axis(draw, x)
    part = topi.split(x.tensor, [x.array.shape[k] // 2], k)[1]
    half = np.split(x.array, [x.array.shape[k] // 2], k)[1]
    return Pair(topi.concatenate([part, x.tensor], k), np.concatenate([half, x.array], k))


def stacked(draw: Draw, x: Pair) -> Pair:
    k = int(draw.integers(-x.array.ndim - 1, x.array.ndim + 1))
    other = topi.bitwise_not(x.tensor)
    return Pair(topi.stack([x.tensor, other], k), np.stack([x.array, ~x.array], k))


def repeated(draw: Draw, x: Pair) -> Pair | None:
    if not x.array.ndim:
        return None
    k, count = axis(draw, x), int(draw.integers(1, 4))
    if draw.integers(2):
        return Pair(topi.repeat(x.tensor, count, k), np.repeat(x.array, count, k))
    return Pair(topi.tile(x.tensor, count), np.tile(x.array, count))


def reduced(draw: Draw, x: Pair) -> Pair | None:
    if not x.array.ndim:
        return None
    k, keep = axis(draw, x), bool(draw.integers(2))
    if x.array.shape[k] and draw.integers(2):
        found = x.array.argmax(k)
        place = np.expand_dims(found, k) if keep else found
        return Pair(topi.argmax(x.tensor, k, keep), np.asarray(place).astype("int32"))
    total = x.array.sum(k, keepdims=keep, dtype="int32")
    return Pair(topi.sum(x.tensor, k, keep), np.asarray(total))


def running(draw: Draw, x: Pair) -> Pair | None:
    if not x.array.ndim:
        return None
    k = axis(draw, x)
    return Pair(topi.cumsum(x.tensor, k), x.array.cumsum(k, dtype="int32"))


def padded(draw: Draw, x: Pair) -> Pair:
    sides = [tuple(int(n) for n in draw.integers(0, 3, 2)) for _ in x.array.shape]
    low, high = [a for a, _ in sides], [b for _, b in sides]
    array = np.pad(x.array, sides, constant_values=np.int32(7)) if sides else x.array
    return Pair(nn.pad(x.tensor, low, high, 7), array)


def chosen(draw: Draw, x: Pair) -> Pair:
    bound = int(draw.integers(-9, 9))
    selected = topi.where(topi.greater(x.tensor, bound), x.tensor, bound)
    return Pair(selected, np.where(x.array > bound, x.array, np.int32(bound)))


def tamed(draw: Draw, x: Pair) -> Pair:
    return Pair(topi.floor_mod(x.tensor, 11), x.array % 11)


STEPS: list[Step] = [
    unary, binary, transposed, reshaped, flipped, widened, squeezed, sliced, joined, stacked,
    repeated, reduced, running, padded, chosen, tamed]


def program(seed: int) -> tuple[te.Tensor, Array, Pair]:
    """Return a placeholder, its value, and the result of several random functions."""
    draw = np.random.default_rng(seed)
    shape = [int(n) for n in draw.choice([1, 2, 3, 4, 6], draw.integers(1, 4))]
    array = draw.integers(-9, 9, shape).astype("int32")
    tensor = given(array)
    value = Pair(tensor, array)
    for _ in range(draw.integers(2, 7)):
        step: Any = STEPS[draw.integers(len(STEPS))]
        with np.errstate(all="ignore"):
            result = step(draw, value)
        if result is not None and result.array.size <= _MOST and result.array.ndim <= 5:
            value = result
    return tensor, array, value


@pytest.mark.exhaustive(keep=6)
@pytest.mark.parametrize("seed", range(PROGRAMS))
def test_programs_of_functions(seed: int) -> None:
    tensor, array, value = program(seed)
    if value.tensor is tensor:
        value = Pair(topi.identity(tensor), array)
    assert value.tensor.shape == value.array.shape
    (result,) = interpreted([value.tensor], {tensor: array})
    np.testing.assert_array_equal(result, value.array, strict=True)
    if seed % COMPILED:
        return
    (result,) = compiled([value.tensor], {tensor: array})
    np.testing.assert_array_equal(result, value.array, strict=True)
