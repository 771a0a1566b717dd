"""Indices with operations that depend on the type they are made in: as Python computes them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import tecomp
from tecomp import te
from tecomp.ir.language.expr import Expr

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


@pytest.mark.parametrize(("index", "wanted"), INDICES.values(), ids=INDICES.keys())
def test_index(index: Callable[[Expr], Expr], wanted: Callable[[int], int]) -> None:
    A = te.placeholder((SIZE,), "int32", name="A")
    C = te.compute((SIZE,), lambda i: A[index(i)], name="C")
    a, c = np.arange(100, 100 + SIZE, dtype=np.int32), np.zeros(SIZE, np.int32)

    tecomp.build(te.create_schedule(C), [A, C])(a, c)

    assert c.tolist() == [100 + wanted(i) for i in range(SIZE)]
