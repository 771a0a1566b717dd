"""Programs on arrays of a team, which read as those for NumPy do: a stencil, and ridge regression."""

from __future__ import annotations

from typing import Any

import numpy as np

import tecomp.array as xp
from tecomp import dist

TEAM = dist.world()


def heat(u: Any, steps: int) -> Any:
    """Each inner point the mean of its neighbours, step by step; the rim stays."""
    for _ in range(steps):
        u[1:-1, 1:-1] = (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:]) * 0.25
    return u


def waves(array: Any, u: Any, steps: int) -> Any:
    """The wave equation on a torus."""
    before = u
    for _ in range(steps):
        around = sum(array.roll(u, shift, axis=axis) for shift in (1, -1) for axis in (0, 1))
        u, before = 2 * u - before + 0.1 * (around - 4 * u), u
    return u


def ridge(array: Any, x: Any, y: Any, identity: Any, weight: float) -> Any:
    """The coefficients of a regression on columns that are brought to mean 0 and deviation 1."""
    x = (x - array.mean(x, axis=0)) / array.std(x, axis=0)
    return array.linalg.solve(x.T @ x + weight * identity, x.T @ (y - array.mean(y)))


def means(array: Any, points: Any, centers: Any, steps: int) -> Any:
    """The centers of k-means."""
    for _ in range(steps):
        off = array.sum((points[:, None, :] - centers[None, :, :]) ** 2, axis=2)
        own = array.argmin(off, axis=1)[:, None] == array.arange(3, **of(points))[None, :]
        own = array.astype(own, array.float64)
        centers = (own.T @ points) / array.sum(own, axis=0)[:, None]
    return centers


def of(points: Any) -> dict[str, Any]:
    """The team that arrays beside an array are of."""
    return {"team": points.team} if isinstance(points, xp.Array) else {}


def together(data: Any, **placed: Any) -> Any:
    return xp.asarray(data, team=TEAM, **placed)


random = np.random.default_rng(0)
field = random.uniform(size=(23, 17))
np.testing.assert_allclose(heat(together(field), 8), heat(field.copy(), 8), rtol=1e-13)
np.testing.assert_allclose(waves(xp, together(field), 8), waves(np, field, 8), rtol=1e-12)

table, target = random.normal(size=(101, 5)), random.normal(size=101)
found = ridge(xp, together(table), together(target), xp.eye(5, team=TEAM), 0.1)
np.testing.assert_allclose(found, ridge(np, table, target, np.eye(5), 0.1), rtol=1e-11)
first = together(table[:3], placements=[dist.Replicate()])
np.testing.assert_allclose(
    means(xp, together(table), first, 5), means(np, table, table[:3], 5), rtol=1e-12)
assert set(xp.counters.counters.gathered) <= {"values", "numpy.linalg.solve"}
if TEAM.rank == 0:
    print("as with NumPy")
