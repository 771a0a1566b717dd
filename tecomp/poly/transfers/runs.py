"""Contiguous runs of a copy: elements that follow each other on both sides.

A run ends where the next address of the first side holds no element, or one that is elsewhere on
the second. The nests of a copy say how long runs are, and integer sets say whether the end of one
meets the start of another. Where that is too much work, elements are looked at instead.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Literal, TypeAlias

import islpy as isl
import numpy as np

from tecomp.errors import TecompError
from tecomp.ir.algebra.intervals import Box
from tecomp.ir.language.expr import Var
from tecomp.poly.sets.context import CONTEXT, isl_work
from tecomp.poly.transfers.counted_runs import joined, listed_runs
from tecomp.poly.transfers.nests import Nest, NotDigitsError, Side, TooManyError, fewest_nests

Method: TypeAlias = Literal["sets", "counted", "part"]
Loop: TypeAlias = tuple[int, int, int]

MOST_NESTS = 96
MOST_COUNTED = 2**19
_MOST_TRIED = 200
_MOST_STEPS = 100_000
_BUDGET = 200_000


class _UndecidedError(TecompError):
    """The budget for integer sets is used up."""


@dataclass(frozen=True, slots=True)
class Found:
    """How many runs there are of each length, of how many elements, and how that was found."""

    lengths: Mapping[int, int]
    elements: int
    method: Method


@dataclass(frozen=True, slots=True)
class _Starts:
    """The first elements of runs of one length: loops, their strides and where they begin."""

    length: int
    loops: tuple[Loop, ...]
    first: int
    second: int

    @property
    def count(self) -> int:
        return prod(count for count, _, _ in self.loops)


def find_runs(first: Side, second: Side, axes: Sequence[Var], box: Box[int]) -> Found:
    """The runs of a box of elements, in bounded time.

    Args:
        first: addresses, different for all elements.
        second: addresses.
        axes: the indices that occur in both.
        box: where each index starts and how many values it has.

    Returns:
        All runs, by sets or by counting; or those of the part of the box that has the first
        values of its outer indices, if it is too large for both.
    """
    elements = prod(count for _, count in box)
    try:
        found = fewest_nests(first, second, axes, box, MOST_NESTS)
        lengths, method = _of_nests(found)
        return Found(lengths, elements, method)
    except (NotDigitsError, TooManyError):
        part = _part(box)
        lengths = Counter(listed_runs(first, second, axes, part)[2].tolist())
        counted = prod(count for _, count in part)
        return Found(lengths, counted, "counted" if counted == elements else "part")


def _part(box: Box[int]) -> Box[int]:
    """As much of a box as is looked at: the first values of its outer indices."""
    part = list(box)
    for axis, (low, count) in enumerate(box):
        others = prod(n for _, n in part) // max(count, 1)
        if others * count <= MOST_COUNTED:
            break
        part[axis] = (low, max(MOST_COUNTED // others, 1))
    return part


def _of_nests(nests: Sequence[Nest]) -> tuple[Counter[int], Method]:
    """The runs of nests.

    Raises:
        TooManyError: too many have to be looked at one by one.
    """
    starts = [_starts(nest) for nest in nests]
    meeting = _meeting(starts)
    lengths: Counter[int] = Counter()
    if sum(starts[k].count for k in meeting) > MOST_COUNTED:
        raise TooManyError
    for k, some in enumerate(starts):
        if k not in meeting:
            lengths[some.length] += some.count
    if not meeting:
        return lengths, "sets"
    columns = [_listed(starts[k]) for k in sorted(meeting)]
    runs = joined(*(np.concatenate(column) for column in zip(*columns, strict=True)))
    lengths.update(runs[2].tolist())
    return lengths, "counted"


def _starts(nest: Nest) -> _Starts:
    """Loops that go on where the one inside them ends belong to the run."""
    loops = [
        loop for loop in zip(nest.ranges, nest.first, nest.second, strict=True) if loop[0] > 1
    ]
    length = 1
    while inner := next((loop for loop in loops if loop[1:] == (length, length)), None):
        loops.remove(inner)
        length *= inner[0]
    return _Starts(length, tuple(loops), nest.first_offset, nest.second_offset)


def _listed(starts: _Starts) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    a, b = np.asarray([starts.first]), np.asarray([starts.second])
    for count, first, second in starts.loops:
        steps = np.arange(count)
        a = (a[:, None] + first * steps).ravel()
        b = (b[:, None] + second * steps).ravel()
    return a, b, np.full(len(a), starts.length)


def _meeting(starts: Sequence[_Starts]) -> set[int]:
    """Those of which some run may end where one of another, or of the same, starts."""
    found: set[int] = set()
    work = _Work(_MOST_STEPS)
    try:
        with isl_work("runs", _UndecidedError, _BUDGET):
            for k, before in enumerate(starts):
                for m, after in enumerate(starts):
                    if not {k, m} <= found and _meet(_Meeting.of(before, after), work):
                        found |= {k, m}
    except _UndecidedError:
        return set(range(len(starts)))
    return found


@dataclass(slots=True)
class _Work:
    """Steps that may still be made in searches."""

    left: int


@dataclass(frozen=True, slots=True)
class _Meeting:
    """Whole numbers from `low` to `high`, one for each term, whose sums are to be `rests`.

    Attributes:
        terms: low, high, and factor in the sum for either side; great factors first.
        rests: first addresses of the run after less those after the run before.
    """

    terms: tuple[tuple[int, int, int, int], ...]
    rests: tuple[int, int]

    @classmethod
    def of(cls, before: _Starts, after: _Starts) -> _Meeting:
        """How many steps the loops of both have made where a run ends and another starts."""
        spans: dict[tuple[int, int], tuple[int, int]] = {}
        for loops, is_before in ((before.loops, True), (after.loops, False)):
            for count, *steps in loops:
                key = (steps[0], steps[1])
                low, high = spans.get(key, (0, 0))
                spans[key] = (low, high + count - 1) if is_before else (low - count + 1, high)
        terms = sorted(
            ((low, high, *key) for key, (low, high) in spans.items()), key=lambda t: -t[2]
        )
        return cls(tuple(terms), (
            after.first - before.first - before.length,
            after.second - before.second - before.length,
        ))


def _meet(meeting: _Meeting, work: _Work) -> bool:
    """Whether there are such numbers: by trying them in turn, or else by an integer set.

    Raises:
        isl.Error: both take too long.
    """
    reach = _reach(meeting.terms)
    todo = [(0, *meeting.rests)]
    before = work.left
    while todo:
        k, first, second = todo.pop()
        if k == len(meeting.terms):
            if first == second == 0:
                return True
            continue
        low, high, by_first, by_second = meeting.terms[k]
        (low_a, high_a), (low_b, high_b) = reach[k + 1]
        low, high = _within(low, high, by_first, first - high_a, first - low_a)
        low, high = _within(low, high, by_second, second - high_b, second - low_b)
        work.left -= max(high - low + 1, 1)
        if work.left < 0 or before - work.left > _MOST_TRIED:
            return not _is_impossible(meeting)
        todo += [(k + 1, first - n * by_first, second - n * by_second)
                 for n in range(low, high + 1)]
    return False


def _reach(
    terms: Sequence[tuple[int, int, int, int]]
) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    """The least and greatest sums that the terms from each on can make, for either side."""
    bounds = [((0, 0), (0, 0))]
    for low, high, *factors in reversed(terms):
        ends = [sorted((low * factor, high * factor)) for factor in factors]
        (a, b), (c, d) = bounds[-1]
        bounds.append(((a + ends[0][0], b + ends[0][1]), (c + ends[1][0], d + ends[1][1])))
    return bounds[::-1]


def _within(low: int, high: int, factor: int, least: int, most: int) -> tuple[int, int]:
    """The numbers from low to high whose product with `factor` lies in `[least, most]`."""
    if factor == 0:
        return (low, high) if least <= 0 <= most else (1, 0)
    if factor < 0:
        factor, least, most = -factor, -most, -least
    return max(low, -(-least // factor)), min(high, most // factor)


def _is_impossible(meeting: _Meeting) -> bool:
    """Whether an integer set says that there are no such numbers.

    Raises:
        isl.Error: the budget is used up.
    """
    space = isl.Space.set_alloc(CONTEXT, 0, len(meeting.terms))
    points = isl.BasicSet.universe(space)
    for k, (low, high, _, _) in enumerate(meeting.terms):
        points = points.add_constraint(_constraint(space, -low, {k: 1}, is_equal=False))
        points = points.add_constraint(_constraint(space, high, {k: -1}, is_equal=False))
    for side, rest in enumerate(meeting.rests):
        steps = {k: term[2 + side] for k, term in enumerate(meeting.terms)}
        points = points.add_constraint(_constraint(space, -rest, steps, is_equal=True))
    return bool(points.is_empty())


def _constraint(
    space: isl.Space, const: int, steps: Mapping[int, int], *, is_equal: bool
) -> isl.Constraint:
    local = isl.LocalSpace.from_space(space)
    made = (
        isl.Constraint.alloc_equality(local) if is_equal else isl.Constraint.alloc_inequality(local)
    )
    made = made.set_constant_val(isl.Val.int_from_si(CONTEXT, const))
    for k, step in steps.items():
        made = made.set_coefficient_val(isl.dim_type.set, k, isl.Val.int_from_si(CONTEXT, step))
    return made
