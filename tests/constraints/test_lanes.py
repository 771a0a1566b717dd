"""Lane decisions against enumeration of all element pairs in NumPy."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

import tecomp
from tecomp import check_constraints, te
from tecomp.machine import LaneAccess

CPU = tecomp.Target.load("cpu")
RULE = LaneAccess("lane_access", "elementwise", ("consecutive", "broadcast"), "a test")
MACHINE = replace(CPU, rules=(RULE,))


def sticks(shape: tuple[int, ...], dim: int) -> tecomp.Layout:
    """Return a layout in sticks of 8 elements along an axis."""
    return tecomp.Layout.of(
        shape, "float16", lambda *i: [i[1 - dim], i[dim] // 8, i[dim] % 8]
    )


def strided(
    shape: tuple[int, ...], starts: list[int], steps: list[int], order: list[int]
) -> tuple[te.Tensor, te.Tensor]:
    """Return a tensor and a result that reads it at `start + step * axis` along each axis."""
    sizes = [starts[d] + steps[d] * (shape[order[d]] - 1) + 1 for d in range(2)]
    X = te.placeholder(sizes, "float16", name="X")

    def element(*i: Any) -> Any:
        return te.exp(X[tuple(starts[d] + steps[d] * i[order[d]] for d in range(2))])

    return X, te.compute(shape, element, name="C")


def test_lanes_against_numpy() -> None:
    """Lane decisions for random transposes, slices, strides and broadcasts equal enumeration."""
    random = np.random.default_rng(3)
    verdicts = []
    for _ in range(60):
        shape = tuple(int(n) for n in random.integers(5, 20, 2))
        order = [int(n) for n in random.permutation(2)]
        steps = [int(n) for n in random.choice([0, 1, 1, 1, 2], 2)]
        starts = [int(n) for n in random.choice([0, 0, 8, 3], 2)]
        actual, expected = (int(n) for n in random.integers(0, 2, 2))
        X, C = strided(shape, starts, steps, order)
        size = tuple(int(n) for n in X.shape if isinstance(n, int))
        layouts = {C: sticks(shape, actual), X: sticks(size, expected)}
        points = np.stack(np.meshgrid(*map(np.arange, shape), indexing="ij"), -1).reshape(-1, 2)
        elements = np.stack([starts[d] + steps[d] * points[:, order[d]] for d in range(2)], -1)
        a, b = ((e[:, 1 - d], e[:, d] // 8, e[:, d] % 8)
                for e, d in ((points, actual), (elements, expected)))
        first, second = np.nonzero(
            (a[0][:, None] == a[0]) & (a[1][:, None] == a[1]) & (a[2][:, None] + 1 == a[2])
        )
        same = all((part[first] == part[second]).all() for part in b)
        follows = (b[0][first] == b[0][second]).all() and (b[1][first] == b[1][second]).all() and (
            b[2][first] + 1 == b[2][second]).all()
        fits = same or (follows and len(set(b[2] - a[2])) == 1)
        verdicts.append(bool(fits))

        assert (check_constraints(C, MACHINE, layouts) == ()) is bool(fits)
    assert 5 < sum(verdicts) < 55
