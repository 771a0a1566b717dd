"""Arrays of a team: creation, partitions and invalid arguments."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tecomp.array as xp
from tecomp import dist
from tecomp.errors import ArrayValueError, TeamError, TeamMismatchError, TecompError
from tests.messages import Diagnostic, diagnostic
from tests.numerics import assert_close

TEAM = dist.world()
N, RANK = TEAM.size, TEAM.rank
ROW = dist.Mesh((N,))
COUNTERS = xp.statistics.counters


def equal(array: Any, expected: Any, rtol: float = 0) -> None:
    found = np.asarray(array)
    assert found.dtype == np.asarray(expected).dtype, (found.dtype, expected)
    assert_close(found, expected, rtol=rtol)


def makes() -> None:
    """Each process creates its shard, for any partition."""
    equal(xp.arange(11, team=TEAM), np.arange(11))
    equal(xp.arange(0.5, 4, 0.3, team=1), np.arange(0.5, 4, 0.3), 1e-15)
    equal(xp.arange(7, 1, -2, team=TEAM, dtype=xp.int8), np.arange(7, 1, -2).astype(np.int8))
    equal(xp.linspace(1, 2, 9, team=TEAM), np.linspace(1, 2, 9), 1e-15)
    equal(xp.linspace(1, 2j, 5, team=TEAM), np.linspace(1, 2j, 5), 1e-15)
    equal(xp.eye(5, 7, k=1, team=TEAM), np.eye(5, 7, 1))
    equal(xp.eye(5, 7, k=1, team=TEAM, placements=[dist.Shard(1)]), np.eye(5, 7, 1))
    equal(xp.arange(9, team=TEAM, placements=[dist.Shard(0, block=2)]), np.arange(9))
    equal(xp.zeros((4, 3), team=TEAM, placements=dist.Shard(1)), np.zeros((4, 3)))
    equal(xp.full(5, 7, team=TEAM) + xp.full_like(xp.ones(5, team=TEAM), 2.5), np.full(5, 9.5))
    equal(xp.full((2, 3), xp.arange(3, team=TEAM), team=TEAM), np.full((2, 3), np.arange(3)))
    equal(xp.zeros((), team=TEAM), 0.0)
    assert xp.zeros((), team=TEAM).partition.placements == (dist.Replicate(),)
    for cut in (dist.Shard(0), dist.Shard(1, block=1), dist.Replicate()):
        x = xp.asarray(np.arange(15).reshape(5, 3), team=TEAM, placements=[cut])
        assert x.partition == dist.Partition((5, 3), "int64", ROW, [cut])
        assert x.to_local().shape == x.partition.local_shape(RANK)
        assert x.to_local().team is None
        equal(x, np.arange(15).reshape(5, 3))


def draws() -> None:
    """Random numbers are those of one process."""
    key = xp.random.key(3)
    equal(xp.random.uniform(key, (7, 3), team=TEAM), np.asarray(xp.random.uniform(key, (7, 3))))
    for cut in (dist.Shard(0), dist.Shard(0, block=1), dist.Replicate()):
        x = xp.random.integers(key, 11, high=100, team=TEAM, placements=[cut])
        assert x.partition.placements == (cut,)
        equal(x, np.asarray(xp.random.integers(key, 11, high=100)))


def parts() -> None:
    """Local arrays become distributed arrays and vice versa."""
    x = xp.from_local(np.full((RANK, 2), float(RANK)), TEAM)
    whole = np.repeat(np.arange(N), np.arange(N)).astype(float)[:, None] + np.zeros(2)
    equal(x, whole)
    equal(x + xp.asarray(whole, team=TEAM), whole * 2)
    equal(xp.sum(x * 2), whole.sum() * 2)
    columns = xp.from_local(xp.ones((2, 1)) * RANK, TEAM, axis=1)
    equal(columns, np.zeros((2, 1)) + np.arange(N, dtype=float))
    partial = dist.Partition((3,), "float64", ROW, [dist.Partial("sum")])
    equal(xp.from_local(np.arange(3.0), 1, partition=partial), np.arange(3.0) * N)
    y = xp.gather(columns)
    assert y.team is None
    assert y.shape == (2, N)
    assert float(columns[1, N - 1]) == N - 1
    assert repr(columns) == repr(y)
    moved = xp.redistribute(columns, [dist.Shard(0)])
    assert moved.partition.placements == (dist.Shard(0),)
    equal(moved, np.asarray(columns))


def meshes() -> None:
    """Meshes with two axes."""
    mesh = dist.Mesh((2, 2) if N == 4 else (N, 1))
    data = np.arange(63.0).reshape(9, 7) % 11
    plane = dist.Partition(data.shape, data.dtype, mesh, [dist.Shard(0), dist.Shard(1)])
    x, y = xp.asarray(data, team=TEAM, placements=plane), xp.asarray(data, team=TEAM)
    assert x.partition == plane
    equal(x + y, data * 2)
    equal(x - xp.mean(x, axis=0), data - data.mean(0), 1e-13)
    equal(xp.max(x), data.max())
    equal(xp.sum(x, axis=1), data.sum(1))
    equal(x[1:, ::2].T, data[1:, ::2].T)
    equal(xp.roll(x, (1, -2), axis=(0, 1)), np.roll(data, (1, -2), (0, 1)))
    equal(xp.concat([x, x[2:]]), np.concatenate([data, data[2:]]))
    equal(xp.flip(x), data[::-1, ::-1])
    equal(x @ x.T, data @ data.T)
    equal(xp.var(x, axis=0), data.var(0), 1e-13)
    equal(xp.cumulative_sum(x, axis=0), data.cumsum(0))
    equal(xp.argmax(x, axis=1), data.argmax(1))
    equal(xp.reshape(x, (7, 9)), data.reshape(7, 9))


def counts() -> None:
    """Gathers are counted by function; other operations gather nothing."""
    x = xp.asarray(np.arange(24.0).reshape(8, 3), team=TEAM)
    COUNTERS.gathered.clear()
    y = (x * 2 + 1)[1:] - xp.roll(x, 1, axis=0)[:-1]
    z = xp.sum(y) + xp.var(x) + xp.sum(x.T @ x) + xp.cumulative_sum(x[:, 0])[-1]
    assert z.partition.placements == (dist.Replicate(),)
    assert not COUNTERS.gathered
    xp.linalg.det(x[:3])
    xp.linalg.trace(x)
    if N > 1:
        assert dict(COUNTERS.gathered) == {"numpy.linalg.det": 1}, COUNTERS.gathered
        assert "1 arrays gathered for numpy.linalg.det" in str(COUNTERS)
    before = COUNTERS.called
    w = xp.exp(x) * 2 - x
    xp.eval(w)
    assert COUNTERS.called == before + (w.to_local().size > 0)
    assert len(xp.explain(x * 2 + 1).function.body) == 2


def views() -> None:
    """A write to a view changes the array; pickled arrays have no team."""
    x, expected = (make(np.arange(24.0).reshape(8, 3)) for make in (on_team, np.array))
    for array in (x, expected):
        y = array[1:7]
        y[0] = 5
        array.T[0, 3:] = -1
        y += 1
        y[1:3, ::-1] = array[2:4] + 0
        y[y > 20] = 0
        equal(y, np.asarray(array)[1:7])
    equal(x, expected)
    copied = copy.deepcopy(x)
    x[0] = 9
    equal(copied, expected)
    stored = pickle.loads(pickle.dumps(x))
    assert stored.team is None
    equal(stored, np.asarray(x))


def on_team(data: Any) -> Any:
    return xp.asarray(data, team=TEAM)


def refused(kind: type[TecompError], expected: Diagnostic, case: Callable[[], Any]) -> None:
    with pytest.raises(kind) as error:
        case()
    assert diagnostic(error.value) == expected, diagnostic(error.value)


def refuses() -> None:
    """Different teams, and partitions of another shape, are rejected."""
    x, alone = xp.ones(4, team=TEAM), xp.ones(4)
    other = xp.ones(4, team=TEAM.split(0))
    text = "ptensor<4xfloat64, device='cpu'{}>"
    one, none, two = (text.format(team) for team in (", team=1", "", f", team={other.team}"))

    def mixed(first: str, second: str) -> Diagnostic:
        return Diagnostic("team-mismatch", where="add", first=first, k=1, other=second)

    refused(TeamMismatchError, mixed(one, none), lambda: x + alone)
    refused(TeamMismatchError, mixed(one, two), lambda: x + other)
    refused(TeamMismatchError, mixed(two, one), lambda: other + x)
    refused(ArrayValueError, Diagnostic("array-value", where="asarray", team=other.team, number_of=1),
            lambda: xp.asarray(other, team=TEAM))
    refused(ArrayValueError, Diagnostic(
        "array-value", where="zeros", named="float64[4]", view="",
        type="ptensor<5xfloat64, device='cpu', team=1>",
    ), lambda: xp.zeros(5, team=TEAM, placements=x.partition))
    refused(ArrayValueError, Diagnostic(
        "array-value", where="ones", placements="[Partial('sum')]",
    ), lambda: xp.ones(5, team=TEAM, placements=[dist.Partial("sum")]))
    for name, make in (
        ("asarray", lambda: xp.asarray(1, placements=[dist.Replicate()])),
        ("zeros", lambda: xp.zeros(1, placements=[dist.Replicate()])),
        ("eye", lambda: xp.eye(1, placements=[dist.Replicate()])),
    ):
        refused(ArrayValueError, Diagnostic("array-value", where=name), make)
    refused(ArrayValueError, Diagnostic("array-value", type=none),
            lambda: xp.redistribute(alone, [dist.Shard(0)]))
    refused(ArrayValueError, Diagnostic("array-value", type=one), lambda: xp.from_local(x, TEAM))
    refused(TeamError, Diagnostic("team", team=77, known="1, 2"), lambda: xp.ones(3, team=77))


for part in (makes, draws, parts, meshes, counts, views, refuses):
    part()
if RANK == 0:
    print("all right")
