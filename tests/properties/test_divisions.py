"""Programs with random division hints are divided as requested, or rejected."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from random import Random
from typing import Any

import numpy as np
import pytest

import tecomp
from tecomp import te
from tecomp.errors import LayoutError
from tests.numerics import assert_close

Case = tuple[te.Tensor, list[te.Tensor], Callable[..., Any]]


def formula(n: int, m: int) -> Case:
    A = te.placeholder((n, m), name="A")
    B = te.compute((n, m), lambda i, j: A[i, j] * 2.0, name="B")
    C = te.compute((n, m), lambda i, j: B[i, j] + A[i, j], name="C")
    return C, [A], lambda a: 3.0 * a


def total(n: int, m: int) -> Case:
    A, k = te.placeholder((n, 40, m), name="A"), te.reduce_axis((0, 40), name="k")
    C = te.compute((n, m), lambda i, j: te.sum(A[i, k, j], axis=k), name="C")
    return C, [A], lambda a: a.sum(1)


def product(n: int, m: int) -> Case:
    A, W = te.placeholder((n, 64), name="A"), te.placeholder((64, m), name="W")
    k = te.reduce_axis((0, 64), name="k")
    C = te.compute((n, m), lambda i, j: te.sum(A[i, k] * W[k, j], axis=k), name="C")
    return C, [A, W], lambda a, w: a @ w


def softmax(n: int, m: int) -> Case:
    A = te.placeholder((n, m), name="A")
    r, k = te.reduce_axis((0, m), name="r"), te.reduce_axis((0, m), name="k")
    most = te.compute((n,), lambda i: te.max(A[i, r], axis=r), name="most")
    powers = te.compute((n, m), lambda i, j: te.exp(A[i, j] - most[i]), name="powers")
    whole = te.compute((n,), lambda i: te.sum(powers[i, k], axis=k), name="whole")
    C = te.compute((n, m), lambda i, j: powers[i, j] / whole[i], name="C")

    def expected(a: Any) -> Any:
        found = np.exp(a - a.max(1, keepdims=True))
        return found / found.sum(1, keepdims=True)

    return C, [A], expected


@pytest.mark.exhaustive(most=1)
@pytest.mark.parametrize("target", ["stick128", "tensix_wh"])
@pytest.mark.parametrize("make", [formula, total, product, softmax])
def test_division_hints_are_satisfied_or_rejected(make: Callable[..., Case], target: str) -> None:
    draw, selected = Random(f"{make.__name__} {target}"), 0
    reasons: list[str] = []
    kinds: set[str] = set()
    for _ in range(10):
        output, inputs, expected = make(draw.choice([64, 96, 200]), draw.choice([32, 64, 256]))
        cores = {"i": draw.choice([1, 2, 3, 4]), "j": draw.choice([1, 1, 2, 8])}
        tiles = {draw.choice("ij"): draw.choice([1, 2, 3])}
        if make in (total, product):
            cores |= draw.choice([{}, {"k": 2}, {"k": 4}])
            tiles |= draw.choice([{}, {"k": 2}])
        hints = [
            tecomp.hint(output, cores=cores, hard=True),
            tecomp.hint(output, num_tiles_per_dim=tiles, hard=True),
        ]
        try:
            program = tecomp.compile(output, inputs, target, hints=hints)
        except LayoutError as error:
            reasons.append(error.parameters["reason"].rsplit("; ", 1)[1])
            kinds.add(error.kind)
            continue
        selected += 1
        rng = np.random.default_rng(selected)
        values = [rng.integers(-3, 4, x.shape).astype("float32") for x in inputs]
        rtol = 1e-5 if make is softmax else 0
        assert_close(program(*values), expected(*values), rtol=rtol)
        assert prod(cores.values()) in [item.cores for item in program.report().kernels]
        assert all(wish.is_kept for wish in program.layouts.wishes)
    assert selected
    known = (
        "request a number that divides ", "request numbers that divide the grid extents, or divide",
        "request fewer parts", "omit axis j",
    )
    assert all(item.startswith(known) for item in reasons), reasons
    assert kinds <= {"layout-requirement"}
