"""Routes over a core grid, outstanding requests, and the extent of one transfer."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tecomp.cost_model import (
    Counter,
    Frame,
    GuardCondition,
    Loop,
    Site,
    cycles,
    distance,
    hops,
    latency,
    outside_of_transfer,
)
from tecomp.ir import FLOAT32, INT64, Buffer, Const, Expr, Var
from tecomp.machine import Link

Core = tuple[int, ...]


def link(**figures: object) -> Link:
    known = {"from_": "ddr", "to": "lx", "scope": "core", "bytes_per_cycle": 8, "source": "assumed"}
    return Link("load", **{**known, **figures})  # type: ignore[arg-type]


def steps_from(start: Core, grid: Mapping[str, int], *, is_torus: bool) -> dict[Core, int]:
    """Return the number of hops to each core, by breadth-first search."""
    found = {start: 0}
    worklist = deque([start])
    while worklist:
        here = worklist.popleft()
        for axis, count in enumerate(grid.values()):
            for move in (-1, 1):
                to = here[axis] + move
                to = to % count if is_torus else to
                there = (*here[:axis], to, *here[axis + 1 :])
                if 0 <= to < count and there not in found:
                    found[there] = found[here] + 1
                    worklist.append(there)
    return found


@pytest.mark.parametrize("topology", ["mesh", "torus"])
@pytest.mark.parametrize("extents", [(1,), (2,), (7,), (4, 5), (2, 3, 4)])
def test_the_shortest_way(topology: str, extents: Core) -> None:
    grid = {f"core.{k}": n for k, n in enumerate(extents)}
    cores = list(product(*map(range, extents)))
    ports = (cores[0], cores[len(cores) // 2])
    found = link(topology=topology, ports=ports)
    ways = {port: steps_from(port, grid, is_torus=topology == "torus") for port in cores}

    for here in cores:
        assert {there: distance(found, here, there, grid) for there in cores} == ways[here]
        assert hops(found, here, grid) == min(ways[port][here] for port in ports)
        assert hops(link(), here, grid) == 0


def test_each_hop_adds_latency() -> None:
    slow = link(latency_cycles=20, hop_cycles=3)

    assert [latency(slow, passed) for passed in (0, 1, 7)] == [20, 23, 41]


def simulated(requests: int, size: int, rate: int, delay: int, outstanding: int) -> float:
    """Return the completion time of requests; transfers are serial, latencies overlap."""
    free = [0.0] * outstanding
    moving = 0.0
    for _ in range(requests):
        first = min(range(outstanding), key=lambda k: free[k])
        moving = max(free[first] + delay, moving) + size / rate
        free[first] = moving
    return moving


@given(
    st.integers(1, 200), st.integers(1, 64), st.integers(1, 16), st.integers(0, 100),
    st.integers(1, 8),
)
def test_requests_under_way(
    requests: int, size: int, rate: int, delay: int, outstanding: int
) -> None:
    found = cycles(
        link(bytes_per_cycle=rate, outstanding=outstanding), requests * size, requests, delay)

    # The estimate may omit the first latency and the last transfer, which overlap with nothing.
    done = simulated(requests, size, rate, delay, outstanding)
    assert found <= done + 1e-6
    assert done <= found + delay + size / rate + 1e-6


def test_instances_share_and_any_number_is_under_way() -> None:
    assert cycles(link(), 800, 10, 1000) == 100
    assert cycles(link(instances=4), 800, 10, 1000) == 25
    assert cycles(link(instances=4, outstanding=2), 800, 10, 1000) == (10 * 1000 + 100) / 2 / 4


def is_described(places: Sequence[Core], loops: int) -> bool:
    """Return whether nested loops with one stride per memory visit the places in order."""
    count = len(places)
    if count == 1:
        return True
    if not loops:
        return False
    for size in range(1, count):
        if count % size:
            continue
        groups = [places[k : k + size] for k in range(0, count, size)]
        steps = [tuple(b - a for a, b in zip(groups[0][0], group[0], strict=True))
                 for group in groups]  # fmt: skip
        is_regular = all(step == tuple(k * n for n in steps[1]) for k, step in enumerate(steps))
        same = all(
            place == tuple(a + b for a, b in zip(first, step, strict=True))
            for group, step in zip(groups, steps, strict=True)
            for place, first in zip(group, groups[0], strict=True)
        )
        if is_regular and same and is_described(groups[0], loops - 1):
            return True
    return False


VARIABLES = [Var(name) for name in "ijkl"]
SOURCE, TARGET = Buffer("A", (10**6,), FLOAT32), Buffer("B", (10**6,), FLOAT32)


def copy(frames: Sequence[Frame], strides: Sequence[Sequence[int]]) -> Site:
    """Return a copy of one element from one memory to another."""
    places: list[Expr] = []
    for factors in strides:
        total: Expr = Const(0, INT64)
        for var, factor in zip(VARIABLES, factors, strict=False):
            total = total + var * factor
        places.append(total)
    return Site("read", SOURCE, (places[0],), tuple(frames), 1, TARGET, (places[1],), is_copy=True)


def around(var: Var, extent: int, thread: str = "", *, is_alone: bool = True) -> Loop:
    return Loop(var, Const(0, INT64), Const(extent, INT64), thread, is_alone)


STRIDES = st.sampled_from((0, 1, 2, 3, 4, 6, 8, 12, 24))


@given(
    st.lists(st.tuples(st.integers(2, 4), STRIDES, STRIDES), min_size=1, max_size=4),
    st.integers(1, 3),
)
def test_a_transfer_has_as_many_loops_as_the_link_takes(
    loops: list[tuple[int, int, int]], most: int
) -> None:
    frames = [around(var, extent) for var, (extent, _, _) in zip(VARIABLES, loops, strict=False)]
    site = copy(frames, [[loop[k] for loop in loops] for k in (1, 2)])

    outside = len(outside_of_transfer(Counter({}).terms, site, link(max_loops=most)))

    def places(first: int) -> list[Core]:
        """Return the offsets in both memories that the loops from a given depth on visit."""
        inside = loops[first:]
        return [
            tuple(sum(n * loop[k] for n, loop in zip(at, inside, strict=True)) for k in (1, 2))
            for at in product(*(range(extent) for extent, _, _ in inside))
        ]

    assert is_described(places(outside), most)
    assert not outside or not is_described(places(outside - 1), most)
    assert outside_of_transfer(Counter({}).terms, site, link()) == ()


def test_other_statements_and_cores_end_a_transfer() -> None:
    x, y, z, _ = VARIABLES
    strides = [[100, 10, 1], [100, 10, 1]]
    alone: list[Frame] = [around(x, 2), around(y, 3), around(z, 4)]
    shared: list[Frame] = [around(x, 2), around(y, 3, is_alone=False), around(z, 4)]
    bound: list[Frame] = [around(x, 2), around(y, 3, "core.x"), around(z, 4)]
    guarded: list[Frame] = [alone[0], GuardCondition(x < 1), *alone[1:]]
    terms = Counter({}).terms

    assert outside_of_transfer(terms, copy(alone, strides), link()) == ()
    assert outside_of_transfer(terms, copy(shared, strides), link()) == tuple(shared[:2])
    assert outside_of_transfer(terms, copy(bound, strides), link()) == tuple(bound[:2])
    assert outside_of_transfer(terms, copy(guarded, strides), link()) == ()
    two = outside_of_transfer(terms, copy(guarded, strides), link(max_loops=2))
    assert two == tuple(guarded[:2])
