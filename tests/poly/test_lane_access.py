"""Stick and lane access patterns, against enumeration of all pairs of points."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from hypothesis import given
from hypothesis import strategies as st

from tecomp.ir import Expr, Var
from tecomp.poly import LaneAddresses
from tecomp.poly.accesses import lane_access
from tests.strategies.draws import Draw
from tests.strategies.linear import Sum, box, sums

AXES = X, Y, Z = Var("i"), Var("j"), Var("k")
KEPT = 2  # axes of the result; the last one is reduced
Point = tuple[int, ...]


class Operand:
    """Stick and lane of the element of each point."""

    def __init__(self, extents: Point, stick: Sum, lane: Sum) -> None:
        self.extents = extents
        self.parts = stick, lane

    def places(self) -> LaneAddresses:
        return LaneAddresses(AXES, self.extents, tuple(part(AXES) + X * 0 for part in self.parts))

    def at(self, point: Point) -> Point:
        return tuple(part(point) for part in self.parts)

    def __repr__(self) -> str:
        return f"Operand({self.extents}, {self.parts})"


@st.composite
def operations(draw: Draw) -> tuple[Operand, Operand]:
    extents = tuple(draw(st.integers(1, 5)) for _ in AXES)
    results = []
    for _ in "ab":
        # Random sums rarely have adjacent lanes; blocks of one axis have many.
        lane = draw(st.one_of(
            sums(3, 1), st.sampled_from((Sum((0, 1, 0), 0, 1, 4), Sum((0, 1, 0), 0, 1, 2)))))
        stick = draw(st.one_of(
            sums(3, digits=True), st.sampled_from((Sum((0, 1, 0), 0, 4), Sum((1, 0, 0))))))
        results.append(Operand(extents, stick, lane))
    return results[0], results[1]


def neighbours(out: Operand, axis: int) -> Iterator[tuple[Point, Point]]:
    """Return pairs of points whose elements are in adjacent lanes of one stick."""
    for a in box(out.extents):
        for b in box(out.extents):
            (stick, lane), (other, following) = out.at(a), out.at(b)
            if stick == other and following == lane + 1 and a[axis:] == b[axis:]:
                yield a, b


def point(found: Mapping[Var, int]) -> Point:
    return tuple(found[axis] for axis in AXES)


def agrees(
    found: lane_access.Pair | None, pairs: list[tuple[Point, Point]],
    is_one: Callable[[Point, Point], bool] | None = None,
) -> None:
    """Check that a pair is found if and only if one exists, and that it is one of the pairs."""
    assert (found is None) == (not pairs)
    if found is not None:
        shown = point(found[0]), point(found[1])
        assert shown in pairs or (is_one is not None and is_one(*shown))


@given(operations())
def test_neighbouring_lanes(operation: tuple[Operand, Operand]) -> None:
    out, operand = operation
    near = list(neighbours(out, KEPT))

    assert lane_access.has_lanes(out.places(), KEPT) == bool(near)
    agrees(
        lane_access.not_broadcast(out.places(), operand.places(), KEPT),
        [(a, b) for a, b in near if operand.at(a) != operand.at(b)],
    )


@given(operations())
def test_consecutive_lanes(operation: tuple[Operand, Operand]) -> None:
    out, operand = operation
    apart = []
    for a, b in neighbours(out, KEPT):
        (stick, lane), (other, following) = operand.at(a), operand.at(b)
        if (stick, lane + 1) != (other, following):
            apart.append((a, b))
    found = lane_access.not_consecutive(out.places(), operand.places(), KEPT)
    shifts = {operand.at(a)[1] - out.at(a)[1] for a in box(out.extents)}
    if apart:
        agrees(found, apart)
        return
    assert (found is not None) == (len(shifts) > 1)
    if found is not None:
        moved = {operand.at(at)[1] - out.at(at)[1] for at in map(point, found)}
        assert len(moved) == 2


@given(operations(), sums(3), st.integers(2, 4))
def test_offsets_of_first_lanes(
    operation: tuple[Operand, Operand], offset: Sum, multiple: int
) -> None:
    out, _ = operation
    bad = [a for a in box(out.extents) if out.at(a)[1] == 0 and offset(a) % multiple]
    text: Expr = offset(AXES) + X * 0

    found = lane_access.find_unaligned_point(out.places(), text, multiple)

    assert (None if found is None else point(found)) == min(bad, default=None)


@given(operations())
def test_alone_in_a_stick(operation: tuple[Operand, Operand]) -> None:
    out, _ = operation
    points = list(box(out.extents))
    shared = [
        (a, b) for a in points for b in points
        if out.at(a)[0] == out.at(b)[0] and out.at(a) != out.at(b)
    ]
    elsewhere = [(a, a) for a in points if out.at(a)[1]]

    agrees(lane_access.find_stick_conflict(out.places()), shared or elsewhere)


@given(operations(), st.integers(0, 2))
def test_axes_along_lanes(operation: tuple[Operand, Operand], axis: int) -> None:
    out, _ = operation
    moves = [
        (a, (*a[:axis], a[axis] + 1, *a[axis + 1 :])) for a in box(out.extents)
        if a[axis] + 1 < out.extents[axis]
    ]
    steps = [out.at(b) == (out.at(a)[0], out.at(a)[1] + 1) for a, b in moves]
    starts = [out.at(b)[1] == 0 for _, b in moves]

    found = out.places().runs_along(axis)

    assert found == (any(steps) and all(map(max, zip(steps, starts, strict=True))))
