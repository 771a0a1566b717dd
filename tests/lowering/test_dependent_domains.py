"""Reductions with axis-dependent domains, and reducers that read elements: loops and results."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tecomp
from tecomp import te
from tecomp.errors import DefinitionError
from tests.messages import Diagnostic, diagnostic
from tests.numerics import assert_close

A = te.placeholder((8, 10), name="A")
B = te.placeholder((8,), name="B")
DATA = np.random.default_rng(5).random((8, 10)).astype("float32")
STARTS = np.random.default_rng(6).random(8).astype("float32")

# Bounds of a sum along row i, in te and in Python.
DOMAINS: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "before": (lambda i: (0, i), lambda i: (0, i)),
    "behind": (lambda i: (i, 10), lambda i: (i, 10)),
    "window": (lambda i: (i // 2, i + 2), lambda i: (i // 2, i + 2)),
    "clipped": (lambda i: (te.max(i - 3, 0), te.min(i + 1, 6)),
                lambda i: (max(i - 3, 0), min(i + 1, 6))),
    "backwards": (lambda i: (7 - i, 10 - i), lambda i: (7 - i, 10 - i)),
    "digits": (lambda i: (i % 3, i % 3 + 2), lambda i: (i % 3, i % 3 + 2)),
}


def row_sums(of: Callable[[Any], Any]) -> te.Tensor:
    def element(i: Any) -> Any:
        k = te.reduce_axis(of(i), "k")
        return te.sum(A[i, k], axis=k)

    result: te.Tensor = te.compute((8,), element, name="C")
    return result


def split(s: te.Schedule, C: te.Tensor) -> None:
    s[C].split(C.op.reduce_axis[0], factor=3)


def factored(s: te.Schedule, C: te.Tensor) -> None:
    s.rfactor(C, s[C].split(C.op.reduce_axis[0], factor=3)[1])


def outside(s: te.Schedule, C: te.Tensor) -> None:
    s[C].reorder(C.op.reduce_axis[0], C.op.axis[0])
    s[C].vectorize(C.op.axis[0])


def cached(s: te.Schedule, C: te.Tensor) -> None:
    local: Any = s.cache_write(C, "local")
    s[local].compute_at(s[C], s[C].split(C.op.axis[0], factor=3)[0])


@pytest.mark.exhaustive(keep=6)
@pytest.mark.parametrize("domain", DOMAINS)
@pytest.mark.parametrize("decide", [lambda s, C: None, split, factored, outside, cached])
def test_numbers(agrees: Any, domain: str, decide: Callable[[te.Schedule, te.Tensor], None]) -> None:
    of, plain = DOMAINS[domain]
    C = row_sums(of)
    s = te.create_schedule(C)
    decide(s, C)

    expected = [DATA[i, slice(*plain(i))].sum() for i in range(8)]
    agrees(s, [A, C], {A: DATA, C: np.array(expected, "float32")}, rtol=1e-5)


@pytest.mark.exhaustive(keep=7)
@pytest.mark.parametrize("seed", range(12))
def test_any_sums_of_axes(agrees: Any, seed: int) -> None:
    """Two data axes and one reduction axis determine the bounds of another reduction axis."""
    draw = random.Random(seed)
    X = te.placeholder((5, 6), name="X")
    low = [draw.randint(-2, 2) for _ in range(4)]
    more = [draw.randint(-1, 2) for _ in range(4)]

    def ends(i: Any, j: Any, r: Any) -> tuple[Any, Any]:
        first = low[0] + low[1] * i + low[2] * j + low[3] * r
        return first, first + more[0] + more[1] * i + more[2] * j + more[3] * r

    r = te.reduce_axis((0, 3), name="r")

    def element(i: Any, j: Any) -> Any:
        k = te.reduce_axis(ends(i, j, r), "k")
        return te.sum(X[i, j] + k.astype("float32") * 2.0, axis=[r, k], where=k % 2 == 0)

    C = te.compute((5, 6), element, name="C")
    x = np.arange(30, dtype="float32").reshape(5, 6)
    expected = np.zeros((5, 6), "float32")
    for i, j in np.ndindex(5, 6):
        expected[i, j] = sum(
            x[i, j] + 2.0 * k for q in range(3) for k in range(*ends(i, j, q)) if k % 2 == 0)

    agrees(te.create_schedule(C), [X, C], {X: x, C: expected})


def test_loops_have_the_iterations_that_count() -> None:
    C = row_sums(lambda i: (0, i + 1))
    k = C.op.reduce_axis[0]

    assert str(C.op) == "C[i] = sum(A[i, k], axis=[k], where=k < i + int32(1))"
    assert (k.name, k.extent, k.low) == ("k", 8, 0)
    assert str(tecomp.lower(te.create_schedule(C), [A, C], stop_after="nest").body) == (
        "for i in range(8):\n"
        "    C[i] = float32(0.0)\n"
        "    for k in range(i + 1):\n"
        "        C[i] = C[i] + A[i, k]"
    )


def test_sizes_that_are_open_and_programs() -> None:
    n = te.var("n")
    X = te.placeholder((n, n), name="X")

    def element(i: Any) -> Any:
        k = te.reduce_axis((0, i + 1), "k")
        return te.sum(X[i, k], axis=k)

    C = te.compute((n,), element, name="C")
    x, out = np.random.default_rng(0).random((7, 7)).astype("float32"), np.zeros(7, "float32")
    tecomp.build(te.create_schedule(C), [X, C], check_bounds=True)(x, out)
    assert_close(out, np.tril(x).sum(1), rtol=1e-5)

    T = row_sums(lambda i: (0, i + 1))
    expected = np.tril(DATA[:, :8]).sum(1)
    assert_close(tecomp.compile([T], [A])(DATA), expected, rtol=1e-5)


@pytest.mark.parametrize(
    ("of", "expected"),
    [
        (lambda i: (0, B[i]), Diagnostic(
            "reduction", where="te.reduce_axis k: the high end", end="B[i]",
        )),
        (lambda i: (i * i * te.var("m"), 3), Diagnostic(
            "reduction", where="te.reduce_axis k: the low end", end="i * i * m", extremum="least",
        )),
    ],
)
def test_domains_that_are_refused(of: Callable[[Any], Any], expected: Diagnostic) -> None:
    with pytest.raises(DefinitionError) as error:
        te.compute((8,), lambda i: te.sum(A[i, 0], axis=te.reduce_axis(of(i), "k")))
    assert diagnostic(error.value) == expected


P = te.compute((8,), lambda i: B[i] * 2.0, name="P")


def greatest(argument: Callable[[Any], Any], start: Callable[[Any], Any]) -> te.Tensor:
    """Build the maximum of each row and of values that the reducer and its identity read."""
    k = te.reduce_axis((0, 10), name="k")
    return te.compute((8,), lambda i: te.comm_reducer(
        lambda x, y: te.max(te.max(x, y), argument(i)), lambda t: start(i), name="greatest",
    )(A[i, k], axis=k), name="G")


def inlined(s: te.Schedule, G: te.Tensor) -> None:
    s[P].compute_inline()


def placed(s: te.Schedule, G: te.Tensor) -> None:
    s[P].compute_at(s[G], G.op.axis[0])


@pytest.mark.exhaustive(keep=6, most=18)
@pytest.mark.parametrize("decide", [lambda s, G: None, split, factored, cached, inlined, placed])
@pytest.mark.parametrize(
    ("argument", "start", "expected"),
    [
        (lambda i: P[i], lambda i: te.const(-1.0), lambda: 2 * STARTS),
        (lambda i: 0.0, lambda i: P[i] + 0.5, lambda: 2 * STARTS + np.float32(0.5)),
        (lambda i: P[7 - i], lambda i: i.astype("float32") * 0.1 + P[i] * 0.0,
         lambda: np.maximum(2 * STARTS[::-1], np.arange(8, dtype="float32") * np.float32(0.1))),
    ],
)
def test_reducers_that_use_elements(
    agrees: Any, argument: Any, start: Any, expected: Any,
    decide: Callable[[te.Schedule, te.Tensor], None],
) -> None:
    G = greatest(argument, start)
    s = te.create_schedule(G)
    if any(stage.op is P.op for stage in s.stages):
        decide(s, G)

    agrees(s, [A, B, G], {A: DATA, B: STARTS, G: np.maximum(DATA.max(1), expected())}, rtol=1e-6)


def test_printed_form_of_argument_reducers() -> None:
    assert str(greatest(lambda i: P[i], lambda i: te.const(0.0)).op) == (
        "G[i] = greatest(A[i, k], axis=[k], given=P[i])"
    )
