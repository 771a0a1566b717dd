"""Functions that are recorded once are called with arrays of a team in several partitions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import tecomp.array as xp
from tecomp import TecompError, dist
from tests.messages import Diagnostic, diagnostic
from tests.numerics import assert_close

TEAM = dist.world()
CALLS: list[str] = []


def standardised(x: Any, weights: Any) -> Any:
    """Combine element-wise operations, reductions, products, slices and a captured array."""
    CALLS.append("standardised")
    y = (x - xp.mean(x, axis=0)) / xp.std(x, axis=0)
    return {"product": y @ weights, "pairs": (y[1:] * y[:-1], x), "all": xp.sum(x) + OTHER}


OTHER = xp.asarray(2.5, team=TEAM)
random = np.random.default_rng(0)
run = xp.jit(standardised)
for shape in ((7, 3), (2, 3)):
    for placements in ([dist.Shard(0)], [dist.Shard(1)], [dist.Shard(0, block=1)], [dist.Replicate()]):
        data, weights = random.uniform(1, 2, size=shape), random.uniform(size=(3, 2))
        x = xp.asarray(data, team=TEAM, placements=placements)
        found = run(x, xp.asarray(weights, team=TEAM))
        y = (data - data.mean(axis=0)) / data.std(axis=0)
        assert_close(found["product"], y @ weights, rtol=1e-9, atol=1e-9)
        assert_close(found["pairs"][0], y[1:] * y[:-1], rtol=1e-9, atol=1e-9)
        assert_close(found["pairs"][1], data)
        assert_close(found["all"], data.sum() + 2.5, rtol=1e-12)
assert len(CALLS) == 2, CALLS  # recorded once per shape


@xp.jit
def steps(u: Any, before: Any) -> Any:
    neighbors = sum(xp.roll(u, shift, axis=0) for shift in (1, -1))
    return 2 * u - before + 0.1 * (neighbors - 2 * u), u


start = random.uniform(size=19)
u = before = xp.asarray(start, team=TEAM)
v = w = start
for _ in range(6):
    u, before = steps(u, before)
    v, w = 2 * v - w + 0.1 * (np.roll(v, 1) + np.roll(v, -1) - 2 * v), v
assert_close(u, v, rtol=1e-12)
assert u.team == 1


def refused(call: Callable[..., Any]) -> Diagnostic:
    try:
        call()
    except TecompError as error:
        return diagnostic(error)
    raise AssertionError(call)


assert refused(lambda: xp.jit(lambda x: -x if x[0] > 0 else x)(u)) == Diagnostic(
    "recording", where="jit")
sent = Diagnostic("recording", type="ptensor<19xfloat64, device='cpu', team=1>")

ordered, masked = xp.jit(xp.sort), xp.jit(lambda x: xp.sum(x[x > 0.5]) + x)
places = xp.asarray(np.array([0, -1, 3]), team=TEAM)


@xp.jit
def change(x: Any) -> Any:
    """Modify an argument and a captured array by slices and by index arrays."""
    global OTHER
    OTHER += 1
    x[places] = OTHER * 1
    x[1:5] *= 2
    return xp.linalg.svdvals(xp.reshape(x[:18], (6, 3))), x


for k in range(3):
    data = random.uniform(size=19)
    x = xp.asarray(data, team=TEAM)
    np.testing.assert_allclose(ordered(x), np.sort(data))
    np.testing.assert_allclose(masked(x), data[data > 0.5].sum() + data)
    values, same = change(x)
    data[[0, -1, 3]] = 3.5 + k
    data[1:5] *= 2
    assert same is x
    np.testing.assert_allclose(x, data)
    np.testing.assert_allclose(OTHER, 3.5 + k)
    np.testing.assert_allclose(values, np.linalg.svd(data[:18].reshape(6, 3), compute_uv=False))
assert refused(lambda: xp.jit(lambda x: xp.redistribute(x, [dist.Shard(0, block=1)]))(u)) == sent
if TEAM.rank == 0:
    print("recorded")
