"""Scripts in single-controller mode: NumPy-style control flow, and ways in which scripts end."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

import numpy as np

import tecomp.array as xp
from tecomp import TecompError, dist
from tests.dist.programs import failing
from tests.messages import diagnostic
from tests.numerics import assert_close, assert_product

team = dist.world()


def branches() -> None:
    """Let values control the flow: Newton's method, sorting, masks and assignments."""
    start = np.random.default_rng(0).uniform(1, 9, size=(11, 3))
    x = xp.asarray(start, team=team)
    root = x
    rounds = 0
    while float(xp.max(xp.abs(root * root - x))) > 1e-12:
        root = (root + x / root) / 2
        rounds += 1
    assert_close(np.asarray(root), np.sqrt(start), rtol=1e-12)
    least = xp.sort(xp.reshape(x, (-1,)))[:5]
    np.testing.assert_array_equal(np.asarray(least), np.sort(start.reshape(-1))[:5])
    expected = start.copy()
    for k in range(3):
        column = x[:, k]
        if column[0] > 4:
            x[1:4, k] = 0.0
            expected[1:4, k] = 0.0
        else:
            x[:, k] = xp.flip(column)
            expected[:, k] = expected[::-1, k]
    x[x > 5] = -1.0
    expected[expected > 5] = -1.0
    np.testing.assert_array_equal(np.asarray(x), expected)
    held = [x + k for k in range(1000)]
    del held
    both = x.T @ x
    assert_product(np.asarray(both), expected.T, expected, rtol=1e-13)
    assert (x.team, both.team) == (1, 1)
    assert both.partition.mesh.size == team.size
    reloaded = xp.asarray(json.loads(json.dumps(expected.tolist())), team=team, placements=[dist.Shard(1)])
    assert bool(xp.all(reloaded == x))
    did = [event for event in json.loads(xp.timeline(team))["traceEvents"] if event["ph"] == "X"]
    assert {event["tid"] for event in did if event["cat"] == "kernel"} == {*range(team.size)}
    print("all right", rounds, team)


def refusals() -> None:
    """Print the errors of collective calls and of calls that each process rejects."""
    x = xp.ones((4, 2), team=team)
    for call in (
        lambda: xp.redistribute(x, [dist.Shard(7)]), x.to_local, lambda: xp.from_local([1.0], team),
        lambda: dist.allreduce(team, np.ones(2)), lambda: team.split(0),
        lambda: xp.ones(5, team=team, placements=[Own(0)]),
    ):
        try:
            call()
        except TecompError as error:
            print(diagnostic(error))
    print(float(xp.sum(x)))


def raises() -> None:
    x = xp.ones(5, team=team)
    raise ValueError(f"the sum is {float(xp.sum(x))}")


class Own(dist.Shard):
    """Placement class of the script, which no other process can import."""


def worker_raises() -> None:
    """Fail on another process only, as a process with less memory does."""
    x = xp.ones(5, team=team, placements=[failing.Elsewhere(0)])
    while True:
        x = x + xp.sum(x)


def ends_early() -> None:
    x = xp.ones(5, team=team)
    xp.eval(x + 1)
    sys.exit(int(sys.argv[2]))


def leaves() -> None:
    xp.eval(xp.ones(5, team=team) + 1)
    os._exit(0)


def asks() -> None:
    x = xp.arange(int(input("how many? ")), team=team)
    time.sleep(0.3)
    print(int(xp.sum(x)), input("and? "))


def hangs() -> None:
    xp.eval(xp.ones(5, team=team) + 1)
    Path(sys.argv[2]).write_text(str(os.getpid()))
    while True:
        time.sleep(0.1)


{
    f.__name__: f
    for f in (branches, refusals, raises, worker_raises, ends_early, leaves, asks, hangs)
}[sys.argv[1]]()
