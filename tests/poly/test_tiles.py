"""Tiles of index spaces, against enumeration: digits, missing points, overlaps and views."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import product

import islpy as isl
import pytest

from tecomp.ir import Const, Expr, Var
from tecomp.poly import (
    IterationTile,
    LoopScope,
    OperandAccess,
    Space,
    TileDigit,
    clash,
    digits_of,
    index_relation,
    missing_reduction_points,
    readable_condition,
    tile_of,
    values_at,
    view,
)
from tecomp.poly.maps import brute_force

OUTSIDE = LoopScope.of_sizes(())
X, Y = Var("x"), Var("y")
Point = tuple[int, int]


def at(expr: Expr, values: Mapping[Var, int]) -> int:
    return int(brute_force.values(expr, values))  # type: ignore[arg-type]  # numbers are arrays


def digit_values(digits: Sequence[TileDigit]) -> list[int]:
    return sorted(sum(p) for p in product(*(
        range(0, digit.stride * digit.extent, digit.stride) for digit in digits
    )))


@pytest.mark.parametrize(("start", "strides"), [(0, (1, 8)), (3, (1, 8)), (-2, (2, 12)), (0, (5, 1))])
def test_digits_are_the_values_from_the_start(start: int, strides: tuple[int, int]) -> None:
    for first, second in product(range(1, 5), range(1, 4)):
        space = Space((X, Y))
        box = space.box([(0, first), (0, second)])
        points = box.apply(index_relation([X * strides[0] + Y * strides[1] + start], space))

        found = digits_of(points, [Const(start)], [Var("v")], OUTSIDE)

        expected = {x * strides[0] + y * strides[1] for x, y in product(range(first), range(second))}
        if found is not None:
            assert digit_values(found[0]) == sorted(expected)
        else:
            # Sums collide, e.g. 5 = 5 * 1.
            assert len(expected) < first * second or strides[1] < strides[0] * first


def test_unbounded_values_have_no_digits() -> None:
    space = Space((X,))
    odd = space.box([(0, 2)]).union(space.box([(5, 1)]))

    assert digits_of(odd, [Const(0)], [X], OUTSIDE) is None
    assert digits_of(space.universe_set(), [Const(0)], [X], OUTSIDE) is None
    assert digits_of(space.box([(1, 3)]), [Const(0)], [X], OUTSIDE) is None


def tiles_at_random(count: int) -> list[tuple[IterationTile, list[Point], set[Point]]]:
    """Return random tiles at the edge of a small array, with all and with requested points."""
    draw, found = random.Random(4), []
    for _ in range(count):
        extents = [draw.randint(1, 4), draw.randint(1, 4)]
        shape = [draw.randint(1, 6), draw.randint(1, 6)]
        places = (X + draw.randint(0, 3), Y * draw.choice((1, 2)) + draw.randint(0, 2))
        array = Space((Var("i"), Var("j"))).box([(0, n) for n in shape])
        box = list(product(range(extents[0]), range(extents[1])))
        requested = {
            point for point in box
            if all(0 <= at(place, dict(zip((X, Y), point, strict=True))) < n
                   for place, n in zip(places, shape, strict=True))
        }
        tile = tile_of(array, places, (X, Y), extents, OUTSIDE)
        found.append((tile, box, requested))
    return found


def points_of(points: isl.Set, box: Sequence[Point]) -> set[Point]:
    """Return the points of a box that are in a set."""
    space = Space((X, Y))
    return {
        point for point in box
        if not space.box([(n, 1) for n in point]).intersect(points).is_empty()
    }


def test_requested_and_missing_elements() -> None:
    full = Counter[bool]()
    for tile, box, requested in tiles_at_random(60):
        assert points_of(tile.points, box) == requested
        # If no point is requested, there is no tile.
        assert points_of(tile.missing(), box) == (set(box) - requested if requested else set())
        if requested:
            assert tile.is_full() == (requested == set(box))
            full[tile.is_full()] += 1
        expected = {
            point for point in set(box) - requested
            if any((point[0], other) in requested for other in range(tile.extents[1]))
        }
        assert points_of(missing_reduction_points(tile, [Y]), box) == expected
    assert min(full.values()) > 10


def accesses(draw: random.Random) -> OperandAccess:
    def index() -> Expr:
        return X * draw.choice((0, 1, 2)) + Y * draw.choice((0, 1, 3)) + draw.randint(0, 2)

    return OperandAccess((index(), index()), (index(), index()))


def test_two_points_that_clash_and_views_where_none_do() -> None:
    draw, clashes = random.Random(6), Counter[bool]()
    indices = (Var("a"), Var("b"))
    for tile, box, _ in tiles_at_random(80):
        access = accesses(draw)
        reported: dict[tuple[int, ...], set[tuple[int, ...]]] = {}
        for point in box:
            where = dict(zip((X, Y), point, strict=True))
            own, other = (tuple(at(e, where) for e in side) for side in (access.operand_indices, access.tensor_indices))
            reported.setdefault(own, set()).add(other)

        found = clash(access, tile)

        clashes[found is None] += 1
        assert (found is None) == all(len(others) == 1 for others in reported.values())
        if found is not None:
            first, second = found
            assert [at(e, first) for e in access.operand_indices] == [at(e, second) for e in access.operand_indices]
            assert [at(e, first) for e in access.tensor_indices] != [at(e, second) for e in access.tensor_indices]
            continue
        seen = view(access, tile, indices)
        for element, (other,) in reported.items():
            where = dict(zip(indices, element, strict=True))
            assert tuple(at(e, where) for e in seen) == other
    assert min(clashes.values()) > 15


def test_readable_elements_match_requested_points() -> None:
    indices = (Var("a"), Var("b"))
    for tile, box, requested in tiles_at_random(40):
        access = OperandAccess((X, Y // 2), tile.coordinates)
        condition = readable_condition(access, tile, indices, None)
        expected = {(x, y // 2) for x, y in requested}
        for x, y in box:
            element = (x, y // 2)
            stored = at(condition, dict(zip(indices, element, strict=True)))
            assert bool(stored) == (element in expected)


def test_values_at_a_point() -> None:
    assert values_at([X * 3 + Y - 1, Y], Space((X, Y)), {X: 4, Y: 2}) == (13, 2)
