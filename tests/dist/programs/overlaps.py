"""Stencils that compute the core during halo exchange give bit-identical results.

Programs are random: one to three axes, any radius, uneven and empty shards, one or two mesh axes,
periodic or not, steps that return new arrays or write in place.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

import tecomp.array as xp
from tecomp import dist
from tecomp.array.distributed import overlap
from tecomp.errors import ArrayMemoryError
from tests.messages import Diagnostic, diagnostic
from tests.numerics import assert_close

TEAM = dist.world()
N, RANK = TEAM.size, TEAM.rank
COUNTERS = xp.statistics.counters
Taps = list[tuple[tuple[int, ...], float]]


@contextmanager
def always(expected: bool) -> Iterator[None]:
    """Force or forbid overlap, whatever was measured."""
    before = overlap.OverlapDecision.is_profitable
    overlap.OverlapDecision.is_profitable = lambda self: expected  # type: ignore[method-assign]
    try:
        yield
    finally:
        overlap.OverlapDecision.is_profitable = before  # type: ignore[method-assign]


def taps(random: np.random.Generator, rank: int) -> Taps:
    """Draw a stencil: offsets from an element, with weights.

    Products with powers of two are exact. Sums of products would otherwise depend on which product
    LLVM fuses with an addition, and it may choose another one for a part of an array.
    """
    radius = [int(random.integers(0, 4)) for _ in range(rank)]
    return [
        (tuple([int(random.integers(-r, r + 1)) for r in radius]),
         float(random.choice([-1.0, 1.0])) * 2.0 ** int(random.integers(-3, 1)))
        for _ in range(random.integers(2, 6))
    ]


def rolled(array: Any, u: Any, stencil: Taps) -> Any:
    """Sum shifted arrays on a torus."""
    total = u * 0.5
    for shift, weight in stencil:
        by = [(s, axis) for axis, s in enumerate(shift) if s]
        moved = array.roll(u, tuple(s for s, _ in by), axis=tuple(a for _, a in by)) if by else u
        total = total + moved * weight
    return total


def sliced(array: Any, u: Any, stencil: Taps) -> Any:
    """Sum slices, which gives a smaller array."""
    widths = [max([abs(shift[axis]) for shift, _ in stencil]) for axis in range(u.ndim)]
    total = None
    for shift, weight in [((0,) * u.ndim, 0.5), *stencil]:
        part = u[tuple([
            slice(w + s, n - w + s) for w, s, n in zip(widths, shift, u.shape, strict=True)])]
        total = part * weight if total is None else total + part * weight
    return total


def written(array: Any, u: Any, stencil: Taps) -> Any:
    """Write the sum of slices to the inner elements of a copy."""
    widths = [max([abs(shift[axis]) for shift, _ in stencil]) for axis in range(u.ndim)]
    result = u + 0
    inner = tuple([slice(w, n - w) for w, n in zip(widths, u.shape, strict=True)])
    result[inner] = sliced(array, u, stencil)
    return result


KINDS: tuple[Callable[[Any, Any, Taps], Any], ...] = (rolled, sliced, written)


def placement(random: np.random.Generator, axis: int, n: int, count: int) -> dist.Placement:
    """Draw blocks or shards of any sizes, some of them empty."""
    if random.integers(2):
        return dist.Shard(axis)
    ends = np.sort(random.integers(0, n + 1, count - 1))
    return dist.Shard(axis, sizes=np.diff([0, *ends, n]).tolist())


def partition(random: np.random.Generator, shape: tuple[int, ...]) -> dist.Partition:
    """Draw a partition along one or two axes."""
    counts = (2, 2) if N == 4 and len(shape) > 1 and random.integers(2) else (N,)
    placed = [
        placement(random, int(axis), shape[axis], count)
        for axis, count in zip(random.permutation(len(shape)), counts, strict=False)
    ]
    return dist.Partition(shape, "float64", dist.Mesh(counts), placed)


def steps(array: Any, u: Any, kind: Callable[[Any, Any, Taps], Any], drawn: list[Taps]) -> Any:
    """Return the array after several steps."""
    for stencil in drawn:
        u = kind(array, u, stencil)
    return u


def draw(seed: int) -> int:
    """Run a program with and without overlap, and return the number of overlapped exchanges."""
    random = np.random.default_rng(seed)
    rank = int(random.integers(1, 4))
    shape = tuple([int(n) for n in random.integers(*((60, 90) if rank == 1 else (17, 40)), rank)])
    kind = KINDS[random.integers(len(KINDS))]
    one = taps(random, rank)
    drawn = [one if random.integers(4) else taps(random, rank) for _ in range(2)]
    data = random.normal(size=shape)
    where = partition(random, shape)
    found = []
    for expected in (False, True):
        COUNTERS.overlapped = 0
        with always(expected):
            u = steps(xp, xp.asarray(data, team=TEAM, copy=True, placements=where), kind, drawn)
            found.append(np.asarray(u))
    assert found[0].tobytes() == found[1].tobytes(), (seed, where, shape, kind, drawn)
    assert_close(found[1], steps(np, data, kind, drawn), rtol=1e-11, atol=1e-11)
    return COUNTERS.overlapped


def often() -> None:
    """A long loop with specialized kernels is bit-identical, with one exchange per step."""
    data = np.random.default_rng(5).random((40, 30))
    stencil: Taps = [((1, 0), 0.25), ((-1, 0), 0.5), ((0, 1), 0.125), ((0, -1), 0.0625)]
    for kind in KINDS[0], KINDS[2]:
        found = []
        for expected in (False, True):
            xp.reset()
            with always(expected):
                u = xp.asarray(data, team=TEAM, copy=True)
                for _ in range(40):
                    u = kind(xp, u, stencil)
                    xp.eval(u)
                found.append(np.asarray(u.to_local()))
            report = xp.report()
            assert report.exchanges == 40 * (N > 1), report
            assert report.overlapped == (40 * (N > 1) if expected else 0), report
        assert found[0].tobytes() == found[1].tobytes(), kind
    assert N == 1 or "40 exchanges, 40 overlapped with computation" in str(report), report


def seen() -> None:
    """The timeline shows the core before the waiting time and the border after it."""
    x = xp.asarray(np.ones((24, 5)), team=TEAM)
    xp.eval(x[1:] + x[:-1])
    xp.reset()
    with always(True):
        xp.eval(x[1:] + x[:-1])
    events = [
        (event["name"], event["tid"]) for event in json.loads(xp.timeline(TEAM))["traceEvents"]
        if event["ph"] == "X"
    ]
    for rank in range(N):
        names = [name for name, tid in events if tid == rank]
        # The rank of the first of two adjacent rows computes their sum.
        waits = ["waits for add"] if N > 1 else []
        border = ["add (border)"] if rank < N - 1 else []
        assert names == (["add (core)", *waits, *border] if N > 1 else ["add"]), (rank, names)


def fails() -> None:
    """An allocation failure is raised on all ranks, which can continue afterwards."""
    data = np.arange(120.0).reshape(24, 5)
    for expected in (False, True):
        with always(expected):
            x = xp.asarray(data, team=TEAM)
            u = x[1:] + x[:-1]
            large = xp.roll(xp.broadcast_to(u[:, None, None], (23, 10**6, 10**5, 5)) + 1, 1, axis=0)
            try:
                xp.eval(large)
            except ArrayMemoryError as error:
                found = diagnostic(error)
                rows = found.parameters["shape"][0]
                assert found == Diagnostic(
                    "out-of-memory", shape=(rows, 10**6, 10**5, 5), dtype="float64",
                    bytes=rows * 5 * 10**11 * 8,
                ), found
            else:
                raise AssertionError("there is memory for it")
            np.testing.assert_array_equal(np.asarray(u), data[1:] + data[:-1])
            np.testing.assert_array_equal(np.asarray(xp.roll(x, 1, axis=0)), np.roll(data, 1, 0))


def measured() -> None:
    """Overlap is off without waiting time, in short programs, and where it is slower."""
    assert asked(waited=1e-6, plain=2e-3, cut=1e-3) == (0, 0), "there was no waiting"
    assert asked(waited=1e-3, plain=2e-3, cut=1e-3) == (32, 900), "it was faster"
    assert asked(waited=1e-3, plain=2e-3, cut=3e-3) == (32, 0), "it was slower"


def asked(waited: float, plain: float, cut: float) -> tuple[int, int]:
    """Return the number of overlapped exchanges during the trial and in the second round."""
    choice, found = overlap.OverlapDecision(), []
    for _ in range(1836):
        found.append(choice.is_profitable())
        choice.record_overlap(cut) if found[-1] else choice.record_waiting(waited, plain)
    # No overlap during the first 339 exchanges: 23 for kernels, 300 until 0.3 s of waiting, 16 to
    # measure.
    assert not any(found[:339])
    return sum(found[:371]), sum(found[-900:])


def main(first: int, count: int) -> None:
    """Run programs with consecutive seeds, and the parts without a seed."""
    overlapped = sum([draw(seed) for seed in range(first, first + count)])
    everywhere = int(dist.allreduce(TEAM, np.array([overlapped]))[0])
    assert everywhere > 0 or N == 1
    for part in (often, seen, fails, measured):
        part()


main(*(int(word) for word in sys.argv[1:3]))
if RANK == 0:
    print("the same bits")
