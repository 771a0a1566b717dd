"""Symbolic iteration counts equal execution, at any size."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tecomp.cost_model import AccessSequence, Counter, Frame, GuardCondition, Loop
from tecomp.ir import FLOAT32, INT64, Buffer, Const, Expr, Not, Var, logical_and
from tests.strategies.loop_nests import nests, value, visited

SIZE = FLOAT32.bytes


def watched(addresses: Sequence[int], block: int) -> tuple[int, int, int, int]:
    """Return accesses, runs, longest run and transactions of the addresses in order."""
    runs: list[list[int]] = []
    for address in addresses:
        if runs and address - runs[-1][-1] in (0, SIZE):
            runs[-1].append(address)
        else:
            runs.append([address])
    touched = [{b // block for a in run for b in (a, a + SIZE - 1)} for run in runs]
    longest = max((len(set(run)) for run in runs), default=0)
    return len(addresses), len(runs), longest, sum(map(len, touched))


def figures(found: AccessSequence) -> tuple[int, int, int, int]:
    return found.count, found.runs, found.longest, found.blocks


@given(nests(), st.sampled_from([4, 16, 12, 6]))
def test_random_loops(nest: tuple[list[Frame], Expr], block: int) -> None:
    frames, index = nest
    axes = [f.thread for f in frames if isinstance(f, Loop) and f.thread]
    buffer = Buffer("A", (1000,), FLOAT32)

    found = Counter(dict.fromkeys(axes, 4)).accesses(frames, buffer, (index,), block)

    cores = [(k,) for k in range(4)] if axes else [()]
    for core in cores:
        places = visited(frames, dict(zip(axes, core, strict=True)), {})
        addresses = [value(index, at) * SIZE for at in places]
        assert figures(found.get(core, AccessSequence())) == watched(addresses, block)


def loop(var: Var, low: Expr | int, end: Expr | int) -> Loop:
    start, stop = (Const(e, INT64) if isinstance(e, int) else e for e in (low, end))
    return Loop(var, start, stop - start, "")


X, Y, Z = Var("i"), Var("j"), Var("k")


@pytest.mark.exhaustive(keep=2)
@pytest.mark.parametrize(
    ("frames", "count"),
    [
        # Triangle.
        ([loop(X, 0, 2048), loop(Y, 0, X + 1)], 2048 * 2049 // 2),
        ([loop(X, 0, 2048), loop(Y, 0, 2048), GuardCondition(Y <= X)], 2048 * 2049 // 2),
        # Pyramid.
        ([loop(X, 0, 2048), loop(Y, 0, X + 1), loop(Z, 0, Y)], 2047 * 2048 * 2049 // 6),
        # Interior without border.
        ([loop(X, 0, 2048), loop(Y, 0, 2048), GuardCondition(logical_and(X >= 1, X < 2047)),
          GuardCondition(logical_and(Y >= 1, Y < 2047))], 2046 * 2046),
        # Border only.
        ([loop(X, 0, 2048), loop(Y, 0, 2048),
          GuardCondition(Not(logical_and(X >= 1, Y >= 1, X < 2047, Y < 2047)))], 2048**2 - 2046**2),
        # Band.
        ([loop(X, 0, 2048), loop(Y, 0, 2048), GuardCondition(Y - X <= 3), GuardCondition(X - Y <= 3)],
         7 * 2048 - 2 * (1 + 2 + 3)),
    ],
)
def test_size_does_not_matter(frames: list[Frame], count: int) -> None:
    counter = Counter({})
    buffer = Buffer("A", (2048 * 2048,), FLOAT32)

    found = counter.accesses(frames, buffer, (X * 2048 + Y,), 64)[()]

    assert found.count == count
    assert counter.iterations < 50_000
