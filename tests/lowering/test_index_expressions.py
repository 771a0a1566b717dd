"""Index operations whose result depends on the integer dtype agree with Python."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any

import numpy as np
import pytest

import tecomp
from tecomp import te
from tecomp.ir import BufferLoad, Expr, walk

SIZE = 7


def ones(number: int) -> int:
    return (number & 0xFFFFFFFF).bit_count()


def wrapped(number: int) -> int:
    return (number + 128) % 256 - 128


INDICES: dict[str, tuple[Callable[[Expr], Expr], Callable[[int], int]]] = {
    "ones": (te.popcount, ones),
    "ones of a negative number": (lambda i: te.popcount(i - 3) % SIZE, lambda i: ones(i - 3) % SIZE),
    "distance": (lambda i: te.abs(i - 3), lambda i: abs(i - 3)),
    "distance and ones": (
        lambda i: te.max(te.abs(i - 3), te.popcount(i)), lambda i: max(abs(i - 3), ones(i)),
    ),
    "ones in a condition": (
        lambda i: te.if_then_else(te.popcount(i - 1) > 5, 2, 1), lambda i: 2 if i == 0 else 1,
    ),
    "unsigned": (
        lambda i: ((i - 3).astype("uint32") >> 29).astype("int32") % SIZE,
        lambda i: ((i - 3 & 0xFFFFFFFF) >> 29) % SIZE,
    ),
    "narrow": (
        lambda i: (i * 64).astype("int8").astype("int32") % SIZE, lambda i: wrapped(i * 64) % SIZE,
    ),
    "inverted": (lambda i: ~i + SIZE, lambda i: ~i + SIZE),
    "shifted": (lambda i: (i - 3 >> 1) + 3, lambda i: (i - 3 >> 1) + 3),
}


@pytest.mark.parametrize(("index", "expected"), INDICES.values(), ids=INDICES.keys())
def test_index(index: Callable[[Expr], Expr], expected: Callable[[int], int]) -> None:
    A = te.placeholder((SIZE,), "int32", name="A")
    C = te.compute((SIZE,), lambda i: A[index(i)], name="C")
    a, c = np.arange(100, 100 + SIZE, dtype=np.int32), np.zeros(SIZE, np.int32)

    tecomp.build(te.create_schedule(C), [A, C])(a, c)

    assert c.tolist() == [100 + expected(i) for i in range(SIZE)]


GATHERS: dict[str, tuple[Callable[[Any, Expr], Any], Callable[[Any, Any], Any]]] = {
    "plain": (lambda A, at: A[at], lambda a, at: a[at]),
    "clamped": (
        lambda A, at: A[te.max(te.min(at, SIZE - 1), 0)], lambda a, at: a[np.clip(at, 0, SIZE - 1)],
    ),
    "moved": (lambda A, at: A[(at + 1) % SIZE], lambda a, at: a[(at + 1) % SIZE]),
    "wide": (lambda A, at: A[at.astype("int64")], lambda a, at: a[at]),
    "guarded": (
        lambda A, at: te.if_then_else(te.all(at >= 1, at < SIZE), A[at], 3),
        lambda a, at: np.where(at >= 1, a[at], 3),
    ),
    "chosen": (
        lambda A, at: te.Select(at >= 1, A[at], 3), lambda a, at: np.where(at >= 1, a[at], 3),
    ),
    "twice": (lambda A, at: A[(A[at] + at) % SIZE], lambda a, at: a[(a[at] + at) % SIZE]),
}


@pytest.mark.exhaustive(keep=1)
@pytest.mark.parametrize("depth", [1, 60])
@pytest.mark.parametrize("is_vector", [False, True])
@pytest.mark.parametrize("kind", GATHERS)
def test_indirect_reads(kind: str, is_vector: bool, depth: int) -> None:
    A = te.placeholder((SIZE,), "int32", name="A")
    read, expected = GATHERS[kind]

    def element(i: Expr) -> Any:
        return reduce(lambda at, _: read(A, at), range(depth), i)

    C = te.compute((SIZE,), element, name="C")
    s = te.create_schedule(C)
    if is_vector:
        s[C].vectorize(C.op.axis[0])
    a = np.random.default_rng(0).permutation(SIZE).astype(np.int32)
    c = np.zeros(SIZE, np.int32)

    tecomp.build(s, [A, C])(a, c)

    assert c.tolist() == reduce(
        lambda at, _: expected(a, at), range(depth), np.arange(SIZE, dtype=np.int32)
    ).tolist()


@pytest.mark.exhaustive
def test_reads_nested_deeper_than_python_calls() -> None:
    A = te.placeholder((SIZE,), "int32", name="A")
    C = te.compute((SIZE,), lambda i: reduce(lambda at, _: A[at], range(600), i), name="C")

    func = tecomp.lower(te.create_schedule(C), [A, C])

    assert sum(isinstance(node, BufferLoad) for node in walk(func.body)) == 600
    assert max(map(len, func.sites)) < 600
