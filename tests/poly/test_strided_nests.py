"""Nests of copies and their runs, against enumeration of all elements of a small box."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import product

import numpy as np
import pytest

from tecomp.ir import Expr, Var
from tecomp.poly import (
    AddressFunction,
    Nest,
    NotDigitsError,
    TooManyError,
    find_runs,
    minimal_nests,
    nests,
)
from tecomp.poly.accesses import contiguous_runs as runs_module
from tests.strategies.digit_sums import Box, draw_box, draw_sum, indices, points_of

Find = Callable[..., tuple[Nest, ...]]


def draw_copy(draw: random.Random) -> tuple[AddressFunction, AddressFunction, tuple[Var, ...], Box]:
    """Return a copy whose first side has one address per element and whose second is arbitrary."""
    while True:
        box = draw_box(draw)
        axes = indices(len(box))
        sides = [draw_side(draw, axes, box) for _ in range(2)]
        first = sides[0].at(axes, [*np.array(points_of(box)).T])
        if len(np.unique(first)) == len(first):
            return sides[0], sides[1], axes, box


def draw_side(draw: random.Random, axes: Sequence[Var], box: Box) -> AddressFunction:
    """Return rows of index digits, as in tiled layouts, or an arbitrary sum of digits."""
    if draw.random() < 0.25:
        return AddressFunction((draw_sum(draw, axes),), (1,), draw.choice((0, 3)))
    exprs: list[Expr] = []
    for axis, (low, count) in zip(axes, box, strict=True):
        size = draw.choice((1, 2, 3, 4, 5, 8))
        offset = axis - low
        exprs += [offset] if size == 1 or size >= count else [offset // size, offset % size]
    draw.shuffle(exprs)
    strides, step = [], 1
    for _ in exprs:
        strides.append(step * draw.choice((1, 1, 1, -1)))
        step *= draw.choice((8, 9, 12))
    return AddressFunction(tuple(exprs), tuple(strides), draw.choice((0, 0, 5)))


def pairs_of(first: AddressFunction, second: AddressFunction, axes: Sequence[Var], box: Box) -> list[tuple[int, int]]:
    points = [*np.array(points_of(box)).T]
    return sorted(zip(first.at(axes, points).tolist(), second.at(axes, points).tolist(), strict=True))


def visited(nest: Nest) -> list[tuple[int, int]]:
    found = []
    for at in product(*map(range, nest.ranges)):
        found.append((
            nest.first_offset + sum(n * step for n, step in zip(at, nest.first, strict=True)),
            nest.second_offset + sum(n * step for n, step in zip(at, nest.second, strict=True)),
        ))
    return found


@pytest.mark.exhaustive
@pytest.mark.parametrize("find", [nests, minimal_nests])
def test_every_element_is_visited_once(find: Find) -> None:
    draw, sizes = random.Random(2), Counter[int]()
    for _ in range(150):
        first, second, axes, box = draw_copy(draw)
        found = find(first, second, axes, box, 10_000)

        assert sorted(pair for nest in found for pair in visited(nest)) == (
            pairs_of(first, second, axes, box))
        assert [n.first_offset for n in found] == sorted(n.first_offset for n in found)
        for nest in found:
            assert list(nest.first) == sorted(nest.first, reverse=True)
            assert min(nest.first, default=0) >= 0
        sizes[min(len(found), 3)] += 1
    assert min(sizes[1], sizes[2] + sizes[3]) > 20


def test_an_empty_box_takes_no_nest() -> None:
    (x,) = indices(1)
    side = AddressFunction((x,), (1,))

    assert nests(side, side, (x,), ((0, 0),), 1) == ()
    assert minimal_nests(side, side, (x,), ((0, 0),), 1) == ()


@pytest.mark.parametrize("find", [nests, minimal_nests])
def test_unsupported_strided_nests_are_rejected(find: Find) -> None:
    x, y = indices(2)
    row, scattered = AddressFunction((x,), (1,)), AddressFunction((x * 5 % 13,), (1,))

    with pytest.raises(TooManyError):
        find(row, scattered, (x,), ((0, 13),), 2)
    with pytest.raises(NotDigitsError):
        find(AddressFunction((x, y), (4, 1)), AddressFunction((x * y,), (1,)), (x, y), ((0, 3), (0, 4)), 9)


def run_lengths(pairs: Sequence[tuple[int, int]]) -> Counter[int]:
    """Return lengths of runs that advance by one on both sides, ordered by the first side."""
    lengths: list[int] = []
    before = None
    for a, b in pairs:
        if before == (a - 1, b - 1):
            lengths[-1] += 1
        else:
            lengths.append(1)
        before = (a, b)
    return Counter(lengths)


@pytest.mark.exhaustive
def test_runs_match_all_elements(monkeypatch: pytest.MonkeyPatch) -> None:
    draw, methods = random.Random(3), Counter[str]()
    for k in range(200):
        first, second, axes, box = draw_copy(draw)
        pairs = pairs_of(first, second, axes, box)
        # Low limits alternately force the fallback to integer sets and the fallback to elements.
        monkeypatch.setattr(runs_module, "_MAX_STEPS_PER_PAIR", 200 if k % 3 else 0)
        monkeypatch.setattr(runs_module, "MOST_NESTS", 96 if k % 5 else 1)

        found = find_runs(first, second, axes, box)

        assert (Counter(found.lengths), found.elements) == (run_lengths(pairs), len(pairs)), k
        methods[found.method] += 1
    assert min(methods["sets"], methods["counted"]) > 20


def test_large_boxes_are_sampled_at_the_first_outer_indices(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    x, y = indices(2)
    row, mixed = AddressFunction((x, y), (8, 1)), AddressFunction((x, y * 5 % 8), (8, 1))
    monkeypatch.setattr(runs_module, "MOST_NESTS", 1)
    monkeypatch.setattr(runs_module, "MAX_ENUMERATED", 24)

    found = find_runs(row, mixed, (x, y), ((0, 10), (0, 8)))

    assert (found.method, found.elements) == ("part", 24)
    assert Counter(found.lengths) == run_lengths(pairs_of(row, mixed, (x, y), ((0, 3), (0, 8))))
