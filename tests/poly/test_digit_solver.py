"""Layouts solved for the index: inverse, free digits and padding, at every address."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Sequence
from itertools import product

import numpy as np

from tecomp.ir import Expr, Var
from tecomp.poly import IndexReader, Solution, bounds_of, solve
from tecomp.poly.maps import brute_force
from tests.strategies.digit_sums import draw_sum, indices


def draw_layout(draw: random.Random, axes: Sequence[Var], shape: Sequence[int]) -> list[Expr]:
    """Return random layout expressions: digits of the axes, fused, shifted, dropped, or any sum."""
    digits: list[Expr] = []
    for axis, extent in zip(axes, shape, strict=True):
        size = draw.choice((1, 2, 3, 4))
        digits += [axis] if size == 1 or size >= extent else [axis // size, axis % size]
    draw.shuffle(digits)
    if len(digits) > 1 and draw.random() < 0.2:
        digits.pop()
    results: list[Expr] = []
    for digit in digits:
        if results and draw.random() < 0.4:
            results[-1] = results[-1] * draw.choice((4, 12)) + digit
        else:
            results.append(digit * draw.choice((1, 1, 1, 2)) + draw.choice((0, 0, 3)))
    return [*results, draw_sum(draw, axes, 1)] if draw.random() < 0.3 else results


def solved(forms: Sequence[Expr], axes: Sequence[Var], shape: Sequence[int], places: Sequence[Var],
           ends: Sequence[int]) -> Solution | None:
    reader = IndexReader({axis: k for k, axis in enumerate(axes)}, bounds_of(shape))
    read = [reader.form(form) for form in forms]
    known = [form for form in read if form is not None]
    assert len(known) == len(read)
    return solve(known, places, reader, dict(enumerate(shape)), ends)


def test_solved_digits_invert_the_map() -> None:
    draw, kinds = random.Random(5), Counter[str]()
    for _ in range(400):
        shape = [draw.randint(1, 7) for _ in range(draw.randint(1, 3))]
        axes = indices(len(shape))
        forms = draw_layout(draw, axes, shape)
        points = np.array(list(product(*map(range, shape))))
        at = dict(zip(axes, points.T, strict=True))
        columns = [np.broadcast_to(brute_force.values(f, at), len(points)) for f in forms]
        ends = [int(column.max()) + draw.choice((1, 1, 2)) for column in columns]
        if np.prod(ends) > 20_000:
            continue
        places = tuple(Var(f"p{k}") for k in range(len(forms)))

        found = solved(forms, axes, shape, places, ends)

        if found is None:
            kinds["unsolved"] += 1
            continue
        stored = defaultdict(list)
        for point, place in zip(points.tolist(), zip(*columns, strict=True), strict=True):
            stored[tuple(map(int, place))].append(point)
        assert_inverse(found, stored, places, ends)
        has_free = found.indices is None
        kinds["free" if has_free else "padded" if len(stored) < np.prod(ends) else "full"] += 1
        for axis, factor in found.free:
            assert_shared(stored, axis, factor, shape)
    assert min(kinds[kind] for kind in ("free", "padded", "full", "unsolved")) > 15, kinds


def assert_inverse(
    found: Solution, stored: dict[tuple[int, ...], list[list[int]]], places: Sequence[Var],
    ends: Sequence[int],
) -> None:
    """Check that addresses without a miss condition hold the element given by the indices.

    The ranges of free digits are not checked.
    """
    grid = np.array(list(product(*map(range, ends))))
    at = dict(zip(places, grid.T, strict=True))
    missed = np.zeros(len(grid), bool)
    for condition in found.misses:
        missed |= np.broadcast_to(brute_force.values(condition, at), len(grid)).astype(bool)
    there = {tuple(place) for place in grid[~missed].tolist()}
    if found.indices is None:
        assert set(stored) <= there
        return
    assert set(stored) == there
    reported = np.array([np.broadcast_to(brute_force.values(e, at), len(grid)) for e in found.indices]).T
    for place, point, is_missed in zip(grid.tolist(), reported.tolist(), missed, strict=True):
        if not is_missed:
            assert stored[tuple(place)] == [point]


def assert_shared(
    stored: dict[tuple[int, ...], list[list[int]]], axis: int, factor: int, shape: Sequence[int]
) -> None:
    """Check that two elements that differ in a free digit alone share an address."""
    if factor < shape[axis]:
        there = {tuple(point): place for place, points in stored.items() for point in points}
        first = [0] * len(shape)
        second = [*first]
        second[axis] = factor
        assert there[tuple(first)] == there[tuple(second)]
