"""Attention equals NumPy for any number of queries and keys and any depth."""

from __future__ import annotations

import numpy as np
import pytest

import tecomp
from tecomp import te
from tecomp.schedules import attention
from tests.numerics import assert_close
from tests.strategies.fenced import call_fenced
from tests.strategies.machines import CORES
from tests.strategies.pairwise import pairwise


def expected(q: np.ndarray, k: np.ndarray, v: np.ndarray, *, causal: bool) -> np.ndarray:
    q, k, v = (x.astype(np.float64) for x in (q, k, v))
    scores = q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])
    if causal:
        m, n = scores.shape[-2:]
        seen = np.arange(n) <= np.arange(m)[:, None] + n - m
        scores = np.where(seen, scores, -np.inf)
    powers = np.exp(scores - scores.max(-1, keepdims=True))
    return np.asarray(powers / powers.sum(-1, keepdims=True) @ v)


def run(
    shapes: list[tuple[int, ...]], target: tecomp.Target, *, causal: bool, size: float = 1.0
) -> tuple[np.ndarray, np.ndarray]:
    tensors = [te.placeholder(shape, name=name) for shape, name in zip(shapes, "QKV", strict=True)]
    output = attention.define(*tensors, causal=causal)
    kernel = tecomp.build(attention.schedule(output, target), [*tensors, output])
    random = np.random.default_rng(0)
    inputs = [random.standard_normal(shape, np.float32) * np.float32(size) for shape in shapes]
    result = np.full((*shapes[0][:-1], shapes[2][-1]), np.nan, np.float32)
    call_fenced(kernel, *inputs, result)
    return result, expected(*inputs, causal=causal)


@pytest.mark.exhaustive(keep=2, most=10)
@pairwise(
    form=[
        ((), 1, 1, 1, 1), ((), 1, 300, 16, 16), ((2,), 16, 16, 8, 8), ((1,), 33, 70, 20, 9),
        ((2, 2), 20, 20, 4, 33), ((1,), 127, 129, 64, 64), ((1,), 7, 600, 3, 5),
        ((1, 2), 65, 65, 12, 24),
    ],
    target=CORES, causal=[False, True],
)
def test_sizes(
    form: tuple[tuple[int, ...], int, int, int, int], target: tecomp.Target, causal: bool
) -> None:
    batch, m, n, depth, width = form
    shapes = [(*batch, m, depth), (*batch, n, depth), (*batch, n, width)]

    result, reference = run(shapes, target, causal=causal)
    assert_close(result, reference, rtol=1e-3, atol=1e-5)


@pytest.mark.exhaustive(keep=1)
@pairwise(
    precision=[("float64", 1e-12), ("float16", 2e-3), ("bfloat16", 1e-2)],
    causal=[False, True], target=CORES,
)
def test_types(precision: tuple[str, float], target: tecomp.Target, causal: bool) -> None:
    dtype, rtol = precision
    shapes = [(2, 37, 24), (2, 150, 24), (2, 150, 20)]
    tensors = [te.placeholder(x, dtype, name=y) for x, y in zip(shapes, "QKV", strict=True)]
    output = attention.define(*tensors, causal=causal)
    kernel = tecomp.build(attention.schedule(output, target), [*tensors, output])
    random = np.random.default_rng(0)
    numpy = output.dtype.numpy
    inputs = [random.standard_normal(shape).astype(numpy) for shape in shapes]
    result = np.zeros((2, 37, 20), numpy)
    call_fenced(kernel, *inputs, result)

    assert_close(
        result.astype(np.float64), expected(*inputs, causal=causal), rtol=rtol, atol=rtol / 4
    )


@pytest.mark.exhaustive(keep=1)
@pytest.mark.filterwarnings("ignore:invalid value")
def test_queries_that_see_no_key_have_no_mean(target: tecomp.Target) -> None:
    result, reference = run([(45, 8), (20, 8), (20, 9)], target, causal=True)

    assert np.isnan(reference).all(-1).sum() == 25
    assert_close(result, reference, rtol=1e-3, atol=1e-5)


@pytest.mark.exhaustive(keep=1)
def test_hidden_keys_are_not_read(target: tecomp.Target) -> None:
    """A query block reads no key or value beyond its last visible one."""
    m, size = 80, 16
    Q, K, V = (te.placeholder((m, size), name=x) for x in "QKV")
    output = attention.define(Q, K, V, causal=True)
    kernel = tecomp.build(attention.schedule(output, target), [Q, K, V, output])
    random = np.random.default_rng(0)
    inputs = [random.standard_normal((m, size), np.float32) for _ in range(3)]
    reference = expected(*inputs, causal=True)
    inputs[2][64:] = np.nan
    result = np.zeros((m, size), np.float32)
    call_fenced(kernel, *inputs, result)

    assert_close(result[:64], reference[:64], rtol=1e-3, atol=1e-5)
    assert np.isnan(result[64:]).all()


@pytest.mark.exhaustive(keep=1)
def test_large_scores(target: tecomp.Target) -> None:
    result, reference = run([(9, 8), (30, 8), (30, 8)], target, causal=True, size=30)

    assert_close(result, reference, rtol=1e-3, atol=1e-3)


@pytest.mark.exhaustive(keep=1)
def test_sizes_known_at_the_call(target: tecomp.Target) -> None:
    m, n = te.var("m"), te.var("n")
    Q, K, V = (te.placeholder((2, x, 16), name=y) for x, y in ((m, "Q"), (n, "K"), (n, "V")))
    output = attention.define(Q, K, V)
    kernel = tecomp.build(attention.schedule(output, target), [Q, K, V, output])
    random = np.random.default_rng(0)
    for queries, keys in ((1, 1), (30, 300)):
        inputs = [random.standard_normal((2, x, 16), np.float32) for x in (queries, keys, keys)]
        result = np.full((2, queries, 16), np.nan, np.float32)
        call_fenced(kernel, *inputs, result)
        assert_close(result, expected(*inputs, causal=False), rtol=1e-3, atol=1e-5)


def test_a_depth_that_is_not_known_needs_a_scale() -> None:
    Q = te.placeholder((4, te.var("d")), name="Q")

    with pytest.raises(ValueError, match="scale") as error:
        attention.define(Q, Q, Q)

    assert str(error.value) == (
        "attention.define: the depth is dynamic; pass scale="
    )
