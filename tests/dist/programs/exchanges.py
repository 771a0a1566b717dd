"""Programs on arrays of a team send as few messages as a hand-written program."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import numpy as np

import tecomp.array as xp
from tecomp import dist
from tecomp.array.distributed import windows_of
from tests.numerics import assert_close

TEAM = dist.world()
N, RANK = TEAM.size, TEAM.rank
COUNTERS = xp.statistics.counters
NEIGHBOURS = (RANK > 0) + (RANK < N - 1)
RING = {1: 0, 2: 1}.get(N, 2)


def on_team(data: Any, **placed: Any) -> Any:
    return xp.asarray(data, team=TEAM, **placed)


def counted(work: Any) -> tuple[int, int, int, int]:
    """Return the exchanges, messages, collectives and bytes of a computation."""
    before = COUNTERS.exchanges, COUNTERS.messages, COUNTERS.collectives
    sent = COUNTERS.sent.total()
    result = work()
    xp.eval(*result if isinstance(result, tuple) else (result,))
    after = COUNTERS.exchanges, COUNTERS.messages, COUNTERS.collectives
    found = [b - a for a, b in zip(before, after, strict=True)]
    return found[0], found[1], found[2], COUNTERS.sent.total() - sent


def star(x: Any, radius: int) -> Any:
    """Compute the inner points as a weighted sum of neighbours along both axes."""
    n, m = x.shape
    inner = slice(radius, n - radius), slice(radius, m - radius)
    total = x[inner] * 0.5
    for k in range(1, radius + 1):
        for along, across in ((k, 0), (-k, 0), (0, k), (0, -k)):
            rows = slice(radius + along, n - radius + along)
            columns = slice(radius + across, m - radius + across)
            total = total + x[rows, columns] * (0.1 / k)
    return total


def stencils() -> None:
    """A star stencil of any radius needs one exchange with one message to each neighbour."""
    data = np.random.default_rng(1).random((48, 40))
    for radius in (1, 2, 4):
        for placed, width in ((dist.Shard(0), 40), (dist.Shard(1), 48)):
            x = on_team(data, placements=[placed])
            results: list[Any] = []
            found = counted(lambda x=x, radius=radius, results=results: results.append(star(x, radius)) or results[0])
            assert found == (int(N > 1), NEIGHBOURS, 0, NEIGHBOURS * radius * width * 8), found
            assert_close(
                np.asarray(results[0]), star(data, radius), rtol=1e-14, magnitude=np.abs(data).max() * 17)


def steps() -> None:
    """In-place steps and steps on a torus need one exchange each, however slices are written."""

    def heat(u: Any) -> Any:
        u[2:-2, 2:-2] = star(u, 2)
        return u

    def waves(array: Any, u: Any, before: Any) -> tuple[Any, Any]:
        neighbors = sum(array.roll(u, shift, axis=axis) for shift in (1, -1) for axis in (0, 1))
        return 2 * u - before + 0.1 * (neighbors - 4 * u), u

    data = np.random.default_rng(2).random((40, 24))
    u, expected = on_team(data), data.copy()
    found = counted(lambda: [heat(u) for _ in range(5)][-1])
    assert found[:3] == (5 * (N > 1), 5 * NEIGHBOURS, 0), found
    for _ in range(5):
        heat(expected)
    assert_close(np.asarray(u), expected, rtol=1e-13, magnitude=np.abs(data).max())

    pair, other = (on_team(data), on_team(data)), (data, data)

    def run() -> tuple[Any, Any]:
        nonlocal pair
        for _ in range(5):
            pair = waves(xp, *pair)
        return pair

    found = counted(run)
    assert found[:3] == (5 * (N > 1), 5 * RING, 0), found
    for _ in range(5):
        other = waves(np, *other)
    assert_close(np.asarray(pair[0]), other[0], rtol=1e-12, magnitude=np.abs(data).max())


def several() -> None:
    """The halos of several arrays are sent together."""
    data = np.random.default_rng(3).random((33, 5))
    x, y = on_team(data), on_team(data.astype("float32"))
    found = counted(lambda: (x[1:] - x[:-1], y[2:] + y[:-2]))
    assert found[0] == (N > 1), found
    assert found[1] <= 2, found


def reductions() -> None:
    """Sums of several arrays are one collective; variances also need only one."""
    data = np.random.default_rng(4).random((30, 4))
    x, y = on_team(data), on_team(data * 2)
    once = int(N > 1)
    assert counted(lambda: (xp.sum(x), xp.mean(y, axis=0), xp.sum(x * y, axis=0)))[2] == once
    assert counted(lambda: (xp.var(x, axis=0), xp.std(y), xp.var(x * y)))[2] == once
    total = xp.sum(x) + xp.var(x)
    assert_close(np.asarray(total), data.sum() + data.var(), rtol=1e-13)
    assert any(name.startswith("all_reduce for sum") for name in COUNTERS.sent), COUNTERS.sent
    message = str(xp.report())
    assert N == 1 or ("collectives" in message and "bytes sent, all_reduce for sum" in message), message


def plans() -> None:
    """The message plan of a repeated step is computed once."""
    u = on_team(np.ones((40, 8)))
    for k in range(12):
        u[1:-1] = (u[2:] + u[:-2]) * 0.5
        xp.eval(u)
        if k == 2:
            known = windows_of.cache_info().misses
    assert windows_of.cache_info().misses == known


def explained() -> None:
    """`explain` shows messages with their bytes."""
    x = on_team(np.ones((24, 5)))
    explanation = xp.explain(x[1:] + x[:-1])
    if N > 1:
        assert explanation.messages == (
            f"halo for add: {(N - 1) * 40} bytes in {N - 1} messages",), explanation.messages
        assert "communication\n" in str(explanation)
    else:
        assert explanation.messages == ("halo for add: 0 bytes in 0 messages",) or not explanation.messages


def timed() -> None:
    """The report gives waiting times by operation, and the timeline has a lane per process."""
    xp.reset()
    x = on_team(np.random.default_rng(5).random((24, 5)))
    for _ in range(3):
        x = (xp.roll(x, 1, axis=0) + xp.roll(x, -1, axis=0)) / 2
    assert 0 < float(xp.sum(x)) < 120
    xp.eval(xp.sort(x[:, 0]))
    waited = dict(xp.report().waited)
    assert set(waited) == ({"roll", "sum", "sort"} if N > 1 else set()), waited
    assert all(f" ms waited, {why}" in str(xp.report()) for why in waited)

    lanes: dict[str, list[Any]] = {}
    for event in json.loads(xp.timeline(TEAM))["traceEvents"][1:]:
        if event["ph"] == "M":
            lane = lanes.setdefault(event["args"]["name"], [])
            continue
        assert lanes[f"rank {event['tid']}"] is lane
        lane.append(event)
    assert list(lanes) == [f"rank {rank}" for rank in range(N)]
    for own in lanes.values():
        named = {event["name"] for event in own}
        assert {f"waits for {why}" for why in waited} <= named, named
        assert {event["cat"] for event in own} == ({"kernel", "waits"} if N > 1 else {"kernel"})
        for event, after in pairwise(own):
            assert event["ts"] + event["dur"] <= after["ts"] + 1, (event, after)
    xp.reset()
    assert xp.report().waited == ()


for part in (explained, timed, stencils, steps, several, reductions, plans):
    part()
if RANK == 0:
    print("as few as by hand")
