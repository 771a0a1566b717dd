"""Maximal contiguous runs of a copy."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, Literal, TypeAlias

import islpy as isl
import numpy as np
import numpy.typing as npt

from tecomp.errors import TecompError
from tecomp.ir.arith.intervals import Box
from tecomp.ir.nodes.expr import Var
from tecomp.poly.accesses.strided_nests import (
    AddressFunction,
    Nest,
    NotDigitsError,
    TooManyError,
    merge_nests,
    minimal_nests,
)
from tecomp.poly.sets.isl_context import CONTEXT, isl_work

Array: TypeAlias = "npt.NDArray[Any]"
Runs: TypeAlias = tuple[Array, Array, Array]
"""First addresses on either side, and lengths, in order of the first address."""

_MAX_LISTED_RUNS = 2**16
"""Maximum number of runs for which `nests_of_runs` searches loops."""


def enumerate_runs(
    first: AddressFunction, second: AddressFunction, axes: Sequence[Var], box: Box[int]
) -> Runs:
    """Return the maximal contiguous runs of the elements of a box."""
    shape = tuple(count for _, count in box)
    slices = tuple(slice(low, low + count) for low, count in box)
    points = list(np.ogrid[slices]) if slices else []
    a, b = (np.broadcast_to(side.at(axes, points), shape).ravel() for side in (first, second))
    return merge_maximal_runs(a, b, np.ones(a.shape, np.int64))


def merge_maximal_runs(a: Array, b: Array, lengths: Array) -> Runs:
    """Merge runs in any order into maximal contiguous runs."""
    if np.any(a[1:] < a[:-1]):
        order = np.argsort(a, kind="stable")
        a, b, lengths = a[order], b[order], lengths[order]
    is_adjacent = (a[1:] == a[:-1] + lengths[:-1]) & (b[1:] == b[:-1] + lengths[:-1])
    starts = np.flatnonzero(np.concatenate([np.ones(min(len(a), 1), bool), ~is_adjacent]))
    return a[starts], b[starts], np.add.reduceat(lengths, starts) if len(a) else lengths


def nests_of_runs(
    first: AddressFunction, second: AddressFunction, axes: Sequence[Var], box: Box[int]
) -> tuple[Nest, ...]:
    """Return nests that visit every element of a box once: its runs, and loops over equal runs.

    If there are more than `_MAX_LISTED_RUNS` runs, no loops over them are formed.
    """
    runs = enumerate_runs(first, second, axes, box)
    found = [
        Nest((length,), (1,), (1,), a, b)
        for a, b, length in zip(*(column.tolist() for column in runs), strict=True)
    ]
    if len(found) > _MAX_LISTED_RUNS:
        return tuple(found)
    looped = _merge_into_loops(found)
    while len(looped) < len(found):
        found, looped = looped, _merge_into_loops(looped)
    return merge_nests(found)


def _merge_into_loops(found: list[Nest]) -> list[Nest]:
    """Merge adjacent nests of equal form and distance into one nest with an additional loop."""
    merged: list[Nest] = []
    k = 0
    while k < len(found):
        nest, end = found[k], k + 1
        if end < len(found) and _form(found[end]) == _form(nest):
            step = _distance(nest, found[end])
            while (
                end < len(found)
                and _form(found[end]) == _form(nest)
                and _distance(found[end - 1], found[end]) == step
            ):
                end += 1
            nest = Nest(
                (end - k, *nest.ranges), (step[0], *nest.first), (step[1], *nest.second),
                nest.first_offset, nest.second_offset,
            )
        merged.append(nest)
        k = end
    return merged


def _form(nest: Nest) -> tuple[tuple[int, ...], ...]:
    return nest.ranges, nest.first, nest.second


def _distance(nest: Nest, other: Nest) -> tuple[int, int]:
    return other.first_offset - nest.first_offset, other.second_offset - nest.second_offset


Method: TypeAlias = Literal["sets", "counted", "part"]
Loop: TypeAlias = tuple[int, int, int]

MOST_NESTS = 96
"""Maximum number of nests from which `find_runs` derives the runs."""
MAX_ENUMERATED = 2**19
"""Maximum number of elements or runs that `find_runs` enumerates."""
_MAX_STEPS_PER_PAIR = 200
"""Search steps for one pair of run starts, after which an integer set decides."""
_MAX_STEPS = 100_000
"""Search steps for all pairs of run starts together."""
_BUDGET = 200_000
"""Limit of isl operations for all pairs of run starts together."""


class _UndecidedError(TecompError):
    """Exception for an exhausted budget of isl operations."""


@dataclass(frozen=True, slots=True)
class RunStatistics:
    """Number of runs of each length, number of elements counted, and method of counting."""

    lengths: Mapping[int, int]
    elements: int
    method: Method


@dataclass(frozen=True, slots=True)
class _Starts:
    """First elements of the runs of one length: loops with their strides, and first addresses."""

    length: int
    loops: tuple[Loop, ...]
    first: int
    second: int

    @property
    def count(self) -> int:
        return prod(count for count, _, _ in self.loops)


def find_runs(
    first: AddressFunction, second: AddressFunction, axes: Sequence[Var], box: Box[int]
) -> RunStatistics:
    """Find the contiguous runs of a box of elements in bounded time.

    Args:
        first: Addresses on the first side, different for all elements.
        second: Addresses on the second side.
        axes: Indices that occur on both sides.
        box: Start and extent of each index.

    Returns:
        All runs, found by integer sets or by counting. If the box is too large for both, the runs
        of the part of the box with the first values of its outer indices.
    """
    elements = prod(count for _, count in box)
    try:
        found = minimal_nests(first, second, axes, box, MOST_NESTS)
        lengths, method = _of_nests(found)
        return RunStatistics(lengths, elements, method)
    except (NotDigitsError, TooManyError):
        part = _part(box)
        lengths = Counter(enumerate_runs(first, second, axes, part)[2].tolist())
        n_elements = prod(count for _, count in part)
        return RunStatistics(lengths, n_elements, "counted" if n_elements == elements else "part")


def _part(box: Box[int]) -> Box[int]:
    """Return the part of a box that is enumerated: the first values of its outer indices."""
    part = list(box)
    for axis, (low, count) in enumerate(box):
        others = prod(n for _, n in part) // max(count, 1)
        if others * count <= MAX_ENUMERATED:
            break
        part[axis] = (low, max(MAX_ENUMERATED // others, 1))
    return part


def _of_nests(nests: Sequence[Nest]) -> tuple[Counter[int], Method]:
    """Count the runs of nests by length.

    Raises:
        TooManyError: If more than `MAX_ENUMERATED` runs must be enumerated.
    """
    starts = [_starts(nest) for nest in nests]
    mergeable = _mergeable_starts(starts)
    lengths: Counter[int] = Counter()
    if sum(starts[k].count for k in mergeable) > MAX_ENUMERATED:
        raise TooManyError
    for k, start_set in enumerate(starts):
        if k not in mergeable:
            lengths[start_set.length] += start_set.count
    if not mergeable:
        return lengths, "sets"
    columns = [_enumerate(starts[k]) for k in sorted(mergeable)]
    runs = merge_maximal_runs(*(np.concatenate(column) for column in zip(*columns, strict=True)))
    lengths.update(runs[2].tolist())
    return lengths, "counted"


def _starts(nest: Nest) -> _Starts:
    """Absorb into the run every loop whose stride equals the length of the run inside."""
    loops = [
        loop for loop in zip(nest.ranges, nest.first, nest.second, strict=True) if loop[0] > 1
    ]
    length = 1
    while inner := next((loop for loop in loops if loop[1:] == (length, length)), None):
        loops.remove(inner)
        length *= inner[0]
    return _Starts(length, tuple(loops), nest.first_offset, nest.second_offset)


def _enumerate(starts: _Starts) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    a, b = np.asarray([starts.first]), np.asarray([starts.second])
    for count, first, second in starts.loops:
        steps = np.arange(count)
        a = (a[:, None] + first * steps).ravel()
        b = (b[:, None] + second * steps).ravel()
    return a, b, np.full(len(a), starts.length)


def _mergeable_starts(starts: Sequence[_Starts]) -> set[int]:
    """Return the positions of `starts` with a run that ends where another run may start."""
    found: set[int] = set()
    work = _Work(_MAX_STEPS)
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
    """Number of search steps left."""

    remaining: int


@dataclass(frozen=True, slots=True)
class _Meeting:
    """Search problem: one integer in `[low, high]` for each term, such that the sums are `rests`.

    Attributes:
        terms: Low, high, and coefficient on either side; the greatest coefficients come first.
        rests: First addresses of the later run minus the end addresses of the earlier run.
    """

    terms: tuple[tuple[int, int, int, int], ...]
    rests: tuple[int, int]

    @classmethod
    def of(cls, before: _Starts, after: _Starts) -> _Meeting:
        """Return the problem for loop positions at which a run ends and another run starts."""
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
    """Return whether a solution exists, by a bounded search or else by an integer set.

    Raises:
        isl.Error: If both exceed their budget.
    """
    sum_ranges = _reach(meeting.terms)
    worklist = [(0, *meeting.rests)]
    before = work.remaining
    while worklist:
        k, first, second = worklist.pop()
        if k == len(meeting.terms):
            if first == second == 0:
                return True
            continue
        low, high, by_first, by_second = meeting.terms[k]
        (low_a, high_a), (low_b, high_b) = sum_ranges[k + 1]
        low, high = _multiples_in_range(low, high, by_first, first - high_a, first - low_a)
        low, high = _multiples_in_range(low, high, by_second, second - high_b, second - low_b)
        work.remaining -= max(high - low + 1, 1)
        if work.remaining < 0 or before - work.remaining > _MAX_STEPS_PER_PAIR:
            return not _is_impossible(meeting)
        worklist += [(k + 1, first - n * by_first, second - n * by_second)
                 for n in range(low, high + 1)]
    return False


def _reach(
    terms: Sequence[tuple[int, int, int, int]]
) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    """Return, for each suffix of the terms, the least and greatest sums on either side."""
    bounds = [((0, 0), (0, 0))]
    for low, high, *factors in reversed(terms):
        ends = [sorted((low * factor, high * factor)) for factor in factors]
        (a, b), (c, d) = bounds[-1]
        bounds.append(((a + ends[0][0], b + ends[0][1]), (c + ends[1][0], d + ends[1][1])))
    return bounds[::-1]


def _multiples_in_range(
    low: int, high: int, factor: int, lower: int, upper: int
) -> tuple[int, int]:
    """Return the range of numbers in `[low, high]` whose multiples are in `[least, most]`."""
    if factor == 0:
        return (low, high) if lower <= 0 <= upper else (1, 0)
    if factor < 0:
        factor, lower, upper = -factor, -upper, -lower
    return max(low, -(-lower // factor)), min(high, upper // factor)


def _is_impossible(meeting: _Meeting) -> bool:
    """Return whether an integer set proves that no solution exists.

    Raises:
        isl.Error: If the budget is exhausted.
    """
    space = isl.Space.set_alloc(CONTEXT, 0, len(meeting.terms))
    points = isl.BasicSet.universe(space)
    for k, (low, high, _, _) in enumerate(meeting.terms):
        points = points.add_constraint(_constraint(space, -low, {k: 1}, is_equal=False))
        points = points.add_constraint(_constraint(space, high, {k: -1}, is_equal=False))
    for side, remainder in enumerate(meeting.rests):
        steps = {k: term[2 + side] for k, term in enumerate(meeting.terms)}
        points = points.add_constraint(_constraint(space, -remainder, steps, is_equal=True))
    return bool(points.is_empty())


def _constraint(
    space: isl.Space, const: int, steps: Mapping[int, int], *, is_equal: bool
) -> isl.Constraint:
    local = isl.LocalSpace.from_space(space)
    result = (
        isl.Constraint.alloc_equality(local) if is_equal else isl.Constraint.alloc_inequality(local)
    )
    result = result.set_constant_val(isl.Val.int_from_si(CONTEXT, const))
    for k, step in steps.items():
        result = result.set_coefficient_val(isl.dim_type.set, k, isl.Val.int_from_si(CONTEXT, step))
    return result
