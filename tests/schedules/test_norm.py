"""Layer norm and RMS norm equal NumPy for all sizes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tecomp
from tecomp import te
from tecomp.schedules import norm
from tests.numerics import assert_close
from tests.strategies.fenced import call_fenced


def layer_norm(a: np.ndarray) -> np.ndarray:
    a = a.astype(np.float64)
    return np.asarray((a - a.mean(-1, keepdims=True)) / np.sqrt(a.var(-1, keepdims=True) + 1e-5))


def rms_norm(a: np.ndarray) -> np.ndarray:
    a = a.astype(np.float64)
    return np.asarray(a / np.sqrt((a * a).mean(-1, keepdims=True) + 1e-5))


def run(args: list[te.Tensor], output: te.Tensor, inputs: list[np.ndarray],
        target: tecomp.Target) -> np.ndarray:
    kernel = tecomp.build(norm.schedule(output, target), [*args, output])
    result = np.full_like(inputs[0], np.nan)
    call_fenced(kernel, *inputs, result)
    return result


@pytest.mark.exhaustive(keep=3)
@pytest.mark.parametrize(
    "shape",
    [(1, 1), (5, 2), (3, 7), (2, 127), (4, 1000), (2, 1023), (2, 3, 40), (2, 5000),
     (9, 10), (20, 5), (3, 9, 17), (16, 31)],
)
def test_sizes(shape: tuple[int, ...], target: tecomp.Target) -> None:
    A, g, h = (te.placeholder(s, name=n) for s, n in ((shape, "A"), (shape[-1:], "g"),
                                                       (shape[-1:], "h")))
    random = np.random.default_rng(0)
    a, scale, shift = (random.standard_normal(s, np.float32) for s in (shape, *2 * (shape[-1:],)))

    layer = run([A, g, h], norm.layer_norm(A, g, h), [a, scale, shift], target)
    assert_close(layer, layer_norm(a) * scale + shift, rtol=1e-3, atol=1e-4)
    rms = run([A, g], norm.rms_norm(A, g), [a, scale], target)
    assert_close(rms, rms_norm(a) * scale, rtol=1e-4, atol=1e-5)


def test_without_scale_and_shift(target: tecomp.Target) -> None:
    A = te.placeholder((6, 45), name="A")
    a = np.random.default_rng(0).standard_normal((6, 45), np.float32)

    assert_close(run([A], norm.layer_norm(A), [a], target), layer_norm(a), atol=1e-4)
    assert_close(run([A], norm.rms_norm(A), [a], target), rms_norm(a), atol=1e-4)


def test_a_large_mean_costs_no_digits(target: tecomp.Target) -> None:
    A = te.placeholder((2, 64), name="A")
    a = (np.arange(128).reshape(2, 64) % 2 + 4096).astype(np.float32)

    assert_close(run([A], norm.layer_norm(A), [a], target), layer_norm(a), atol=1e-4)


def test_half(target: tecomp.Target) -> None:
    A = te.placeholder((6, 45), "float16", name="A")
    a = np.random.default_rng(0).standard_normal((6, 45)).astype("float16")

    assert_close(run([A], norm.layer_norm(A), [a], target), layer_norm(a), atol=4e-3)


@pytest.mark.exhaustive(keep=1)
@pytest.mark.parametrize(
    ("define", "expected", "near"),
    [(norm.rms_norm, rms_norm, 1e-4), (norm.layer_norm, layer_norm, 1e-3)],
    ids=["rms_norm", "layer_norm"],
)
def test_sizes_known_at_the_call(
    define: Any, expected: Any, near: float, target: tecomp.Target
) -> None:
    A = te.placeholder((te.var("n"), te.var("m")), name="A")
    output = define(A)
    kernel = tecomp.build(norm.schedule(output, target), [A, output])
    for shape in ((1, 1), (3, 700), (65, 9)):
        a = np.random.default_rng(0).standard_normal(shape, np.float32)
        result = np.full_like(a, np.nan)
        call_fenced(kernel, a, result)
        assert_close(result, expected(a), atol=near)
