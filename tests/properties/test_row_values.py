"""Dependent row-wise values in programs without a schedule."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import tecomp
from tecomp import te
from tecomp.schedules import argreduce, auto
from tests.numerics import assert_close

Array = NDArray[Any]


def over(x: te.Tensor, value: Callable[..., Any], name: str, op: Any = te.sum) -> te.Tensor:
    """Define a reduction along the last axis of a value with the shape of `x`."""
    k = te.reduce_axis((0, x.shape[-1]), name="k")
    result = te.compute(x.shape[:-1], lambda *i: op(value(*i, k), axis=k), name=name)
    assert isinstance(result, te.Tensor)
    return result


def log_of_sum(x: te.Tensor) -> te.Tensor:
    most = over(x, x, "most", te.max)
    total = over(x, lambda *i: te.exp(x(*i) - most(*i[:-1])), "total")
    return te.compute(most.shape, lambda *i: te.log(total(*i)) + most(*i), name="B")


def place(x: te.Tensor) -> te.Tensor:
    most, k = over(x, x, "most", te.max), te.reduce_axis((0, x.shape[-1]), name="k")
    end = te.cast(x.shape[-1], "int64")
    return te.compute(most.shape, lambda *i: te.min(te.if_then_else(
        x(*i, k) == most(*i), te.cast(k, "int64"), end), axis=k), name="B")


def spread(x: te.Tensor) -> te.Tensor:
    mean = over(x, x, "mean")
    moved = te.compute(
        x.shape, lambda *i: x(*i) - mean(*i[:-1]) / te.cast(x.shape[-1], "float32"), name="moved")
    squares = over(x, lambda *i: moved(*i) * moved(*i), "squares")
    return te.compute(mean.shape, lambda *i: te.sqrt(squares(*i)), name="B")


WAYS: dict[str, tuple[Callable[[te.Tensor], te.Tensor], Callable[[Array], Array]]] = {
    "log of sum": (log_of_sum, lambda x: np.log(np.exp(x.astype(np.float64)).sum(-1))),
    "place": (place, lambda x: x.argmax(-1)),
    "spread": (spread, lambda x: x.std(-1) * np.sqrt(x.shape[-1])),
    "as the library": (argreduce.define, lambda x: x.argmax(-1)),
}


@pytest.mark.exhaustive(keep=1)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("seed", range(6))
def test_values_of_rows(way: str, seed: int) -> None:
    dice = Random(f"{seed} {way}")
    define, expected = WAYS[way]
    shape = [*dice.choice([(1,), (7,), (40,), (3, 18)]), dice.choice([5, 64, 100, 700, 3000])]
    sizes: list[Any] = [*shape[:-1], te.var("n")] if dice.random() < 0.3 else [*shape]
    A = te.placeholder(sizes, name="A")
    B = define(A)
    a = np.random.default_rng(seed).integers(-9, 9, shape).astype(np.float32)
    b = np.empty(shape[:-1], B.dtype.numpy)

    tecomp.build(B, [A, B])(a, b)

    assert_close(b, expected(a), rtol=1e-4)


def test_rows_are_reread_while_cached() -> None:
    A = te.placeholder((100, 1000), name="A")
    B = log_of_sum(A)

    text = str(tecomp.lower(auto(B, "cpu"), [A, B]))

    assert text.count("parallel(") == 1


def test_a_product_of_rows_is_none_of_their_values() -> None:
    A, C = te.placeholder((100, 100), name="A"), te.placeholder((100, 100), name="C")
    k = te.reduce_axis((0, 100), name="k")
    P = te.compute((100, 100), lambda i, j: te.sum(A[i, k] * C[j, k], axis=k), name="P")
    B = over(P, P, "B", te.max)

    assert "s[P].compute_at(" not in str(auto(B, "cpu").trace)
