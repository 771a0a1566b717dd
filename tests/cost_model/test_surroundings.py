"""Loops with conditions folded into their bounds reach a site equally often."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product

import pytest
from hypothesis import given

from tecomp.cost_model import (
    CountedLoop,
    Counter,
    Frame,
    GuardCondition,
    Loop,
    Surroundings,
    depth_of,
    is_known,
    known_outside_loop,
    surroundings_of,
)
from tecomp.ir import (
    INT64,
    Buffer,
    BufferLoad,
    CmpOp,
    Compare,
    Const,
    Expr,
    Not,
    Var,
    logical_and,
    logical_or,
)
from tests.strategies.loop_nests import nests, value, visited

X, Y, Z = Var("i"), Var("j"), Var("k")


def reached(neighbors: Surroundings, core: Mapping[str, int]) -> Iterator[dict[Var, int]]:
    """Yield the values of the variables at each execution of the site."""
    if all(value(condition, {}) for condition in neighbors.conditions):
        yield from _inside(neighbors.loops, core, {})


def _inside(
    loops: Sequence[CountedLoop], core: Mapping[str, int], at: Mapping[Var, int]
) -> Iterator[dict[Var, int]]:
    if not loops:
        yield dict(at)
        return
    first, *rest = loops
    for k in range(value(first.low, at), value(first.end, at)):
        here = {**at, first.var: k}
        if first.thread and core[first.thread] != k:
            continue
        if all(value(condition, here) for condition in first.conditions):
            yield from _inside(rest, core, here)


@given(nests())
def test_the_same_points_in_the_same_order(nest: tuple[list[Frame], Expr]) -> None:
    frames, _ = nest
    neighbors = surroundings_of(Counter({}).terms, frames)

    for k in range(4):
        core = {"core.x": k}
        assert list(reached(neighbors, core)) == list(visited(frames, core, {}))


@given(nests())
def test_conditions_are_attached_to_the_defining_loop(nest: tuple[list[Frame], Expr]) -> None:
    frames, _ = nest
    neighbors = surroundings_of(Counter({}).terms, frames)
    depths = {level.var: k for k, level in enumerate(neighbors.loops)}

    for k, level in enumerate(neighbors.loops):
        assert max(depth_of(level.low, depths), depth_of(level.end, depths)) < k
        assert {depth_of(condition, depths) for condition in level.conditions} <= {k}
    assert all(depth_of(condition, depths) == -1 for condition in neighbors.conditions)


def loop(var: Var, extent: Expr | int) -> Loop:
    return Loop(var, Const(0, INT64), extent if isinstance(extent, Expr) else Const(extent, INT64), "")


@pytest.mark.parametrize("op", CmpOp)
def test_every_comparison(op: CmpOp) -> None:
    """All comparisons of a multiple of the variable with a number are folded correctly."""
    for factor, other in product((-3, -1, 1, 2), range(-7, 8)):
        frames: list[Frame] = [loop(X, 5), GuardCondition(Compare(op, X * factor + 1, Const(other, INT64)))]
        neighbors = surroundings_of(Counter({}).terms, frames)

        assert list(reached(neighbors, {})) == list(visited(frames, {}, {})), (factor, other)
        assert neighbors.loops[0].conditions == [] or op is CmpOp.NE


def test_linear_conditions_are_bounds() -> None:
    border = Not(logical_or(X < 2, X * 3 > 20))
    neighbors = surroundings_of(Counter({}).terms, [
        loop(X, 100), GuardCondition(border), loop(Y, 100), GuardCondition(logical_and(Y * 2 < X, Y >= 1)),
    ])

    assert neighbors.conditions == ()
    assert [level.conditions for level in neighbors.loops] == [[], []]
    assert (value(neighbors.loops[0].low, {}), value(neighbors.loops[0].end, {})) == (2, 7)
    ends = [(value(neighbors.loops[1].low, {X: x}), value(neighbors.loops[1].end, {X: x}))
            for x in (2, 5, 6)]  # fmt: skip
    assert ends == [(1, 1), (1, 3), (1, 3)]


def test_data_dependent_conditions_are_omitted() -> None:
    """A data-dependent condition counts as true, and a data-dependent loop as empty."""
    element = BufferLoad(Buffer("A", (9,), INT64), (X,))
    neighbors = surroundings_of(Counter({}).terms, [
        loop(X, 9), GuardCondition(element > 0), loop(Y, element), loop(Z, 3),
    ])

    assert not is_known(element, [X])
    assert [value(level.end, {}) for level in neighbors.loops] == [9, 0, 3]
    assert [level.conditions for level in neighbors.loops] == [[], [], []]


def test_the_largest_parts_that_are_known_outside() -> None:
    depths = {X: 0, Y: 1, Z: 2}
    inner = (X * 3 + 1) % 5

    found = known_outside_loop([Z + inner * Y, Z * 2, X + 1], depths, 2)

    assert {str(item) for item in found} == {"(i * 3 + 1) % 5 * j", "i + 1"}
    assert {str(item) for item in known_outside_loop([Z + inner * Y], depths, 1)} == {str(inner)}
