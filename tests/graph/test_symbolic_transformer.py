"""A transformer layer of one compilation: prompts of any length, then token after token."""

from __future__ import annotations

from math import sqrt
from typing import Any

import numpy as np
import pytest

import tecomp
from tecomp import te, topi
from tecomp.graph import compilation_steps
from tecomp.graph import program as program_class
from tests.numerics import assert_close

Array = np.ndarray[Any, Any]
HEADS, KEY_HEADS, HEAD, HIDDEN = 4, 2, 8, 48
WIDTH = HEADS * HEAD
WEIGHTS = {
    "q": (WIDTH, WIDTH), "k": (WIDTH, KEY_HEADS * HEAD), "v": (WIDTH, KEY_HEADS * HEAD),
    "o": (WIDTH, WIDTH), "gate": (WIDTH, HIDDEN), "up": (WIDTH, HIDDEN), "down": (HIDDEN, WIDTH),
}
FREQUENCIES = 10000.0 ** (-np.arange(HEAD // 2) * 2.0 / HEAD)


def normalized(x: te.Tensor) -> te.Tensor:
    squares = topi.sum(topi.multiply(x, x), axis=1, keepdims=True)
    return topi.multiply(x, topi.rsqrt(topi.add(topi.multiply(squares, 1.0 / WIDTH), 1e-5)))


def rotated(x: te.Tensor, heads: int, first: Any, frequencies: te.Tensor) -> te.Tensor:
    """Split columns into heads, and rotate pairs of elements by angles of the position."""

    def element(i: Any, h: Any, e: Any) -> Any:
        half = HEAD // 2
        angle = te.cast(i + first, "float32") * frequencies[e % half]
        partner = te.if_then_else(e < half, -x[i, h * HEAD + (e + half) % HEAD],
                                  x[i, h * HEAD + (e + half) % HEAD])
        return x[i, h * HEAD + e] * te.cos(angle) + partner * te.sin(angle)

    result: te.Tensor = te.compute((x.shape[0], heads, HEAD), element, name="rotated")
    return result


def layer() -> tuple[list[te.Tensor], list[te.Tensor], dict[str, te.Tensor]]:
    """Return the outputs, the inputs and the constants of a layer of n new and m cached tokens."""
    n, m = te.var("n"), te.var("m")
    x = te.placeholder((n, WIDTH), name="x")
    caches = [te.placeholder((m, KEY_HEADS, HEAD), name=name) for name in ("keys", "values")]
    w = {name: te.placeholder(shape, name=name) for name, shape in WEIGHTS.items()}
    w["frequencies"] = te.placeholder((HEAD // 2,), name="frequencies")
    hidden = normalized(x)
    q = rotated(topi.matmul(hidden, w["q"]), HEADS, m, w["frequencies"])
    k = rotated(topi.matmul(hidden, w["k"]), KEY_HEADS, m, w["frequencies"])
    flat = topi.matmul(hidden, w["v"])
    v = te.compute((n, KEY_HEADS, HEAD), lambda i, h, e: flat[i, h * HEAD + e], name="v")
    keys, values = (topi.concatenate([old, new]) for old, new in zip(caches, (k, v), strict=True))
    e = te.reduce_axis((0, HEAD), name="e")
    group = HEADS // KEY_HEADS
    scores = te.compute(
        (HEADS, n, m + n), lambda h, i, j: te.sum(q[i, h, e] * keys[j, h // group, e], axis=e))
    causal = te.compute(
        (HEADS, n, m + n), lambda h, i, j: te.if_then_else(
            j <= m + i, scores[h, i, j] * (1 / sqrt(HEAD)), te.min_value("float32")))
    weights = topi.nn.softmax(causal)
    j = te.reduce_axis((0, m + n), name="j")
    attended = te.compute(
        (n, HEADS, HEAD),
        lambda i, h, e: te.sum(weights[h, i, j] * values[j, h // group, e], axis=j))
    joined = te.compute((n, WIDTH), lambda i, c: attended[i, c // HEAD, c % HEAD])
    y = topi.add(x, topi.matmul(joined, w["o"]))
    hidden = normalized(y)
    gate = topi.matmul(hidden, w["gate"])
    gated = topi.multiply(topi.multiply(gate, topi.sigmoid(gate)), topi.matmul(hidden, w["up"]))
    return [topi.add(y, topi.matmul(gated, w["down"])), keys, values], [x, *caches], w


def exact_layer(x: Array, keys: Array, values: Array, w: dict[str, Array]) -> list[Array]:
    n, m = len(x), len(keys)

    def norm(a: Array) -> Array:
        return np.asarray(a / np.sqrt((a * a).mean(-1, keepdims=True) + 1e-5))

    def rotate(a: Array) -> Array:
        angles = np.outer(np.arange(m, m + n), np.tile(FREQUENCIES, 2))[:, None]
        one, other = np.split(a, 2, axis=-1)
        partners = np.concatenate([-other, one], axis=-1)
        return np.asarray(a * np.cos(angles) + partners * np.sin(angles))

    hidden = norm(x)
    q = rotate((hidden @ w["q"]).reshape(n, HEADS, HEAD))
    keys = np.concatenate([keys, rotate((hidden @ w["k"]).reshape(n, KEY_HEADS, HEAD))])
    values = np.concatenate([values, (hidden @ w["v"]).reshape(n, KEY_HEADS, HEAD)])
    k, v = (np.repeat(a, HEADS // KEY_HEADS, axis=1) for a in (keys, values))
    scores = np.einsum("ihe,jhe->hij", q, k) / sqrt(HEAD)
    scores = np.where(np.arange(m + n) <= m + np.arange(n)[:, None], scores, -np.inf)
    powers = np.exp(scores - scores.max(-1, keepdims=True, initial=-1e30))
    weights = powers / powers.sum(-1, keepdims=True)
    y = x + np.einsum("hij,jhe->ihe", weights, v).reshape(n, WIDTH) @ w["o"]
    hidden = norm(y)
    gate = hidden @ w["gate"]
    return [y + (gate / (1 + np.exp(-gate)) * (hidden @ w["up"])) @ w["down"], keys, values]


PROMPTS = (0, 1, 2, 3, 5, 7, 8, 11, 13, 16, 17, 23, 31, 32, 47, 59, 64, 83, 100, 101)


def compiled_layer() -> tuple[Any, dict[str, Array]]:
    random = np.random.default_rng(3)
    outputs, inputs, placeholders = layer()
    w = {name: random.standard_normal(shape) / sqrt(shape[0]) for name, shape in WEIGHTS.items()}
    constants = {placeholders[name]: value.astype(np.float32) for name, value in w.items()}
    constants[placeholders["frequencies"]] = FREQUENCIES.astype(np.float32)
    return tecomp.compile(outputs, inputs, constants=constants), w


def check_decoding(program: Any, w: dict[str, Array], prompt: int, tokens: int) -> None:
    """Compare a prompt and tokens after it with the whole sequence."""
    random = np.random.default_rng(5)
    x = random.standard_normal((prompt + tokens, WIDTH), np.float32)
    keys = values = np.zeros((0, KEY_HEADS, HEAD), np.float32)
    rows = []
    for start, end in [(0, prompt), *[(k, k + 1) for k in range(prompt, prompt + tokens)]]:
        y, keys, values = program(x[start:end], keys, values)
        rows.append(y)

    empty = np.zeros((0, KEY_HEADS, HEAD))
    expected, exact_keys, exact_values = exact_layer(x.astype(float), empty, empty, w)
    assert_close(np.concatenate(rows), expected, rtol=1e-3, atol=1e-4)
    assert_close(keys, exact_keys, rtol=1e-3, atol=1e-4)
    assert_close(values, exact_values, rtol=1e-3, atol=1e-4)


@pytest.mark.exhaustive(keep=1)
@pytest.mark.parametrize(("compile_seconds", "count"), [(0.2, 1), (1e-9, 3)])
def test_all_lengths_take_at_most_three_compilations(
    monkeypatch: pytest.MonkeyPatch, compile_seconds: float, count: int
) -> None:
    """Prompts of 20 lengths and 200 tokens one after the other use one or a few programs.

    If compilation takes no time, frequent values of sizes are built in: no cached tokens, then one
    new token.
    """
    compilations: list[object] = []
    compile_native = compilation_steps.compile_native

    def counted(*args: Any, **options: Any) -> Any:
        compilations.append(args)
        return compile_native(*args, **options)

    monkeypatch.setenv("TECOMP_CACHE", "off")
    monkeypatch.setattr(program_class, "_COMPILED", compile_seconds)
    monkeypatch.setattr(compilation_steps, "compile_native", counted)
    program, w = compiled_layer()
    empty = np.zeros((0, KEY_HEADS, HEAD), np.float32)
    for length in PROMPTS:
        x = np.random.default_rng(length).standard_normal((length, WIDTH), np.float32)
        found = program(x, empty, empty)
        exact = exact_layer(x.astype(float), empty, empty, w)
        for got, expected in zip(found, exact, strict=True):
            assert got.shape == expected.shape
            assert_close(got, expected, rtol=1e-3, atol=1e-4)
    check_decoding(program, w, prompt=20, tokens=200)

    assert len(compilations) == count
