"""Set operations for loop generation: cut, fill, surround and shift, against point sets."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import reduce
from itertools import product
from typing import Any

import islpy as isl
from hypothesis import given
from hypothesis import strategies as st

from tecomp.ir import Const, Var
from tecomp.poly import (
    CONTEXT,
    LoopScope,
    Space,
    bounding_box,
    coalesce_convex,
    condition,
    convex_superset,
    equality_points,
    fill_gaps,
    find_shared_point,
    first_dims,
    first_point,
    fix,
    full_tiles,
    image,
    of_earlier_iterations,
    preimage,
    project_out_dim,
    project_out_first_dim,
    round_to_blocks,
)
from tests.strategies.draws import Draw
from tests.strategies.linear import Sum, box, sums

X, Y, N = Var("i"), Var("j"), Var("n")
SIZE = 6
PLANE = Space((X, Y))
NOWHERE = LoopScope.of_sizes(())
Point = tuple[int, ...]


class Region:
    """Points of a square where all sums of at least one case are non-negative."""

    def __init__(self, cases: Sequence[Sequence[Sum]]) -> None:
        self.cases = cases

    def as_set(self, space: Space = PLANE) -> isl.Set:
        square = space.box([(0, SIZE)] * 2)
        variables = (*space.params, *space.dims)[-2:] if len(self.cases[0][0].factors) == 2 else (
            *space.dims, *space.params)
        pieces = [
            reduce(isl.Set.intersect, (
                condition(item(variables) + X * 0 >= 0, space) for item in case), square)
            for case in self.cases
        ]
        return reduce(isl.Set.union, pieces)

    def points(self, *more: int) -> set[Point]:
        return {
            at for at in box((SIZE, SIZE))
            if any(all(item((*at, *more)) >= 0 for item in case) for case in self.cases)
        }

    def __repr__(self) -> str:
        return f"Region({self.cases})"


@st.composite
def areas(draw: Draw, variables: int = 2) -> Region:
    """Draw a few cases, some of them with strides."""
    count = draw(st.integers(1, 3))
    return Region([
        draw(st.lists(sums(variables, digits=True), min_size=1, max_size=2)) for _ in range(count)
    ])


def points_of(points: isl.Set) -> set[Point]:
    """Return the points of a set."""
    found: list[isl.Point] = []
    points.foreach_point(found.append)
    rank = points.dim(isl.dim_type.set)
    return {
        tuple(int(p.get_coordinate_val(isl.dim_type.set, k).to_python()) for k in range(rank))
        for p in found
    }


def ends(points: Iterable[Point]) -> list[tuple[int, int]]:
    return [(min(line), max(line)) for line in zip(*points, strict=True)]


@given(areas())
def test_regions_match_enumeration(region: Region) -> None:
    assert points_of(region.as_set()) == region.points()


@given(areas(), st.integers(0, SIZE))
def test_one_coordinate_is_fixed(region: Region, value: int) -> None:
    found = fix(region.as_set(), [Const(value)], NOWHERE)

    assert points_of(found) == {(y,) for x, y in region.points() if x == value}


@given(areas())
def test_dimensions_are_added_and_removed(region: Region) -> None:
    points = region.points()

    assert points_of(first_dims(region.as_set(), 1)) == {(x,) for x, _ in points}
    assert points_of(project_out_first_dim(region.as_set())) == {(y,) for _, y in points}
    whole = project_out_dim(region.as_set(), 1).intersect(PLANE.box([(0, SIZE)] * 2))
    assert points_of(whole) == {(x, y) for x, _ in points for y in range(SIZE)}


@given(areas(), st.lists(sums(2, digits=True), min_size=1, max_size=2))
def test_images_and_preimages(region: Region, places: list[Sum]) -> None:
    exprs = [place((X, Y)) + X * 0 for place in places]

    found = image(region.as_set(), exprs, PLANE)

    reached = {tuple(place(at) for place in places) for at in region.points()}
    assert points_of(found) == reached
    back = preimage(found, exprs, PLANE).intersect(PLANE.box([(0, SIZE)] * 2))
    assert points_of(back) == {
        at for at in box((SIZE, SIZE)) if tuple(place(at) for place in places) in reached
    }


@given(areas())
def test_region_hull_of_pieces(region: Region) -> None:
    points = region.points()
    if not points:
        return
    one = coalesce_convex(region.as_set(), NOWHERE)
    hull = convex_superset(region.as_set())
    filled = fill_gaps(region.as_set())

    assert points_of(one) == points
    assert hull.n_basic_set() == 1
    assert points <= points_of(hull.intersect(PLANE.box([(-SIZE, 3 * SIZE)] * 2)))
    if filled is not None:
        assert points <= points_of(filled)
        if region.as_set().n_basic_set() > 1:
            assert ends(points_of(filled)) == ends(points)


@given(areas(), st.integers(0, 1), st.integers(1, 4))
def test_values_of_a_block(region: Region, dim: int, size: int) -> None:
    expected = set()
    for at in region.points():
        first = at[dim] // size * size
        expected |= {(*at[:dim], value, *at[dim + 1 :]) for value in range(first, first + size)}

    assert points_of(round_to_blocks(region.as_set(), dim, size)) == expected


@given(areas(), st.sampled_from(([(1, SIZE)], [(0, SIZE)], [(0, SIZE), (1, SIZE)])))
def test_full_tiles(region: Region, tiled: list[tuple[int, int]]) -> None:
    """Full tiles are exactly the tiles whose points are all in the region."""
    points = region.points()
    dims = [dim for dim, _ in tiled]
    last = max(dims) + 1
    inside = {at[:last] for at in points}

    def is_full(at: Point) -> bool:
        whole = product(*(range(SIZE) if k in dims else [at[k]] for k in range(last)))
        return all(item in inside for item in whole)

    found = full_tiles(region.as_set(), tiled)

    full = {at for at in points if is_full(at)}
    if found is not None:
        assert points_of(found) == full
        assert full
        assert full != points


@given(areas())
def test_boxes_hold_their_points(region: Region) -> None:
    points = region.points()
    if not points:
        return

    found = bounding_box(region.as_set(), region.as_set(), NOWHERE, [Const(SIZE), Const(SIZE)])

    for (start, extent), (low, high) in zip(found, ends(points), strict=True):
        first, count = int(str(start)), int(str(extent))
        assert first <= low
        assert high < first + count


def test_ends_follow_from_digits_of_a_fused_loop() -> None:
    scope = NOWHERE.within(N, Const(30))
    # Of each of the rows of 300 elements, the 32 in one iteration of a loop over ten blocks per
    # row.
    points = isl.Set.read_from_str(
        CONTEXT,
        "[p0] -> { [i, j] : 0 <= p0 < 30 and 0 <= i < 3 and 0 <= j < 300 and "
        "10i <= p0 and 32p0 - 320i <= j < 32 + 32p0 - 320i }",
    )

    found = bounding_box(points, points, scope, [3, 300])

    ends = [(str(start), extent) for start, extent in found]
    assert ends == [("n // 10", 1), ("32 * (n % 10)", 32)]


@given(areas(3))
def test_elements_of_earlier_iterations(region: Region) -> None:
    scope = NOWHERE.within(N, Const(4))
    points = region.as_set(scope.space((X, Y)))

    found = of_earlier_iterations(points, N, scope)

    for now in range(4):
        here = found.fix_val(isl.dim_type.param, 0, now)
        expected: set[Point] = set()
        for before in range(now):
            expected |= region.points(before)
        assert points_of(here) == expected


@given(areas(3))
def test_iterations_that_meet(region: Region) -> None:
    """Overlapping iterations are found if there are any."""
    scope = NOWHERE.within(N, Const(4))
    points = region.as_set(scope.space((X, Y)))
    each = [region.points(now) for now in range(4)]
    meeting = {(a, b) for a in range(4) for b in range(a + 1, 4) if each[a] & each[b]}

    found = find_shared_point(points, scope, N)

    assert (found is None) == (not meeting)
    if found is not None:
        one, other, at = found
        assert (one, other) in meeting
        assert at == min(each[one] & each[other])


@given(areas())
def test_the_first_point(region: Region) -> None:
    points = region.points()
    if points:
        found = first_point(region.as_set(), PLANE)
        assert (found[X], found[Y]) == min(points)


@given(areas(), sums(2), sums(2))
def test_equality_domain_of_two_values(region: Region, a: Sum, b: Sum) -> None:
    pair: Any = a((X, Y)) + X * 0, b((X, Y)) + X * 0

    found = equality_points(region.as_set(), PLANE, [pair, (X * Y, X)])

    assert points_of(found) == {at for at in region.points() if a(at) == b(at)}


def test_a_scope_knows_nothing_of_unknowns_that_have_no_expression() -> None:
    # Each intersection with a scope would add these existentials again, so isl would not terminate.
    index = Var("i")
    inside = isl.Set.read_from_str(
        CONTEXT,
        "{ [d0] : 0 <= d0 <= 40 and exists (a, b : 0 <= a <= 3 and 5b <= d0 + 2a <= 5b + 1) }",
    )

    scope = LoopScope.of_sizes([]).enter([index], inside)

    assert str(scope.context) == "[p0] -> {  : 0 <= p0 <= 40 }"
