"""Copies as nests of constant-stride loops.

The address of an element on each side is `offset + sum(strides[k] * exprs[k])`. Where expressions
are not linear, the box of indices is partitioned into cells (`tecomp.poly.maps.piecewise_linear`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from tecomp.ir.arith.intervals import Box
from tecomp.ir.arith.quasi_affine import Digit, QuasiAffine
from tecomp.ir.nodes.expr import Expr, Var
from tecomp.ir.traversal.rewrite import free_variables
from tecomp.poly.maps import brute_force
from tecomp.poly.maps.piecewise_linear import Cell, TooManyError, fuse_digit_pairs, linear_cells
from tecomp.poly.sets.quasi_affine_reader import IndexReader

__all__ = [
    "AddressFunction",
    "Nest",
    "NotDigitsError",
    "TooManyError",
    "merge_nests",
    "minimal_nests",
    "nests"
]


class NotDigitsError(Exception):
    """Exception for other operations than sums, quotients, remainders and bit operations."""


@dataclass(frozen=True, slots=True)
class AddressFunction:
    """Addresses on one side of a copy: `offset` plus the sum of `exprs` times `strides`."""

    exprs: tuple[Expr, ...]
    strides: tuple[int, ...]
    offset: int = 0

    def at(self, axes: Sequence[Var], points: Sequence[npt.ArrayLike]) -> npt.NDArray[Any]:
        """Return the addresses of points given by arrays of coordinates."""
        total = np.asarray(self.offset, np.int64)
        for value, stride in zip(self.parts_at(axes, points), self.strides, strict=True):
            total = total + stride * value
        return total

    def parts_at(
        self, axes: Sequence[Var], points: Sequence[npt.ArrayLike]
    ) -> list[npt.NDArray[Any]]:
        """Return the value of each of `exprs` at points given by arrays of coordinates."""
        where = {axis: np.asarray(x, np.int64) for axis, x in zip(axes, points, strict=True)}
        return [brute_force.values(expr, where) for expr in self.exprs]


@dataclass(frozen=True, slots=True)
class Nest:
    """Loop nest with extents, outermost first, and the stride of each loop on either side."""

    ranges: tuple[int, ...]
    first: tuple[int, ...]
    second: tuple[int, ...]
    first_offset: int = 0
    second_offset: int = 0

    @property
    def size(self) -> int:
        """Number of elements that the nest visits."""
        return prod(self.ranges)


def nests(
    first: AddressFunction, second: AddressFunction, axes: Sequence[Var], box: Box[int], limit: int
) -> tuple[Nest, ...]:
    """Return loop nests that visit every element of a box once, ordered by their first address.

    Loops are ordered by decreasing stride on the first side; these strides are nonnegative. The
    loops are the digits of the expressions of the first side. If these give more nests than the
    digits of the linear address, the digits of the linear address are used.

    Args:
        first: Addresses on the first side, different for all elements of the box.
        second: Addresses on the second side.
        axes: Indices that occur on both sides.
        box: Start and extent of each index.
        limit: Maximum number of nests.

    Raises:
        NotDigitsError: If an expression is not a sum of digits.
        TooManyError: If there are more than `limit` nests.
    """
    if any(count == 0 for _, count in box):
        return ()
    copy = _CopyProblem.of(first, second, axes, box)
    by_digits = copy.by_digits(box, limit)
    if by_digits is not None and len(by_digits) == 1:
        return by_digits
    try:
        by_addresses = copy.by_addresses(box, limit)
    except TooManyError:
        if by_digits is None:
            raise
        return by_digits
    return by_addresses if by_digits is None or len(by_addresses) < len(by_digits) else by_digits


def minimal_nests(
    first: AddressFunction, second: AddressFunction, axes: Sequence[Var], box: Box[int], limit: int
) -> tuple[Nest, ...]:
    """Return loop nests as `nests` does, always with the digits of the linear addresses.

    Raises:
        NotDigitsError: If an expression is not a sum of digits.
        TooManyError: If there are more than `limit` nests.
    """
    if any(count == 0 for _, count in box):
        return ()
    return _CopyProblem.of(first, second, axes, box).by_addresses(box, limit)


def _forms(side: AddressFunction, reader: IndexReader) -> tuple[QuasiAffine, ...]:
    found = []
    for expr in side.exprs:
        form = reader.form(expr)
        if form is None:
            raise NotDigitsError(expr)
        found.append(form)
    return tuple(found)


@dataclass(frozen=True, slots=True)
class _CopyProblem:
    first: AddressFunction
    second: AddressFunction
    axes: tuple[Var, ...]
    first_forms: tuple[QuasiAffine, ...]
    second_forms: tuple[QuasiAffine, ...]

    @classmethod
    def of(
        cls, first: AddressFunction, second: AddressFunction, axes: Sequence[Var], box: Box[int]
    ) -> _CopyProblem:
        bounds = [(low, low + count - 1) for low, count in box]
        reader = IndexReader({axis: k for k, axis in enumerate(axes)}, bounds)
        return cls(first, second, tuple(axes), _forms(first, reader), _forms(second, reader))

    def by_addresses(self, box: Box[int], limit: int) -> tuple[Nest, ...]:
        reader = IndexReader({}, [(low, low + count - 1) for low, count in box])
        flat = [
            _sum(self.first, self.first_forms, reader),
            _sum(self.second, self.second_forms, reader),
        ]
        cells = linear_cells(fuse_digit_pairs(Cell.of(flat, box)), limit)
        return self._nests(cells, (), [cell.forms for cell in cells])

    def by_digits(self, box: Box[int], limit: int) -> tuple[Nest, ...] | None:
        cell = Cell.of([*self.first_forms, *self.second_forms], box)
        try:
            cells = linear_cells(cell, limit)
        except TooManyError:
            return None
        n_first = len(self.first_forms)
        addresses = [
            (
                _sum(self.first, cell.forms[:n_first], cell.reader),
                _sum(self.second, cell.forms[n_first:], cell.reader),
            )
            for cell in cells
        ]
        return self._nests(cells, range(n_first), addresses)

    def _nests(
        self,
        cells: Sequence[Cell],
        digits: Sequence[int],
        addresses: Sequence[Sequence[QuasiAffine]],
    ) -> tuple[Nest, ...]:
        probes = _Probes(self, {unit for cell in cells for unit in cell.units})
        found: list[tuple[list[_NestLoop], int, int]] = []
        for cell, (first, second) in zip(cells, addresses, strict=True):
            steps = [_steps(form, cell) for form in (first, second)]
            loops = []
            for var in cell.live:
                position, *idle = probes.of[cell.units[var]]
                count = cell.counts[var]
                strides = [side[var] for side in steps] if count > 1 else idle
                loops.append(_NestLoop(count, strides[0], strides[1], position))
            found.append((loops, first.const, second.const))
        loop_at = {loop.position: loop for loops, _, _ in reversed(found) for loop in loops}
        for loops, _, _ in found:
            for k in {*digits} - {loop.position for loop in loops}:
                loops.append(replace(loop_at[k], count=1) if k in loop_at else probes.idle_loop(k))
        return merge_nests([_nest(*nest) for nest in found])


@dataclass(frozen=True, slots=True)
class _NestLoop:
    """Loop, and the position of the expression of the first side that it belongs to."""

    count: int
    first: int
    second: int
    position: int


class _Probes:
    """Address changes of single steps, for loops that run once."""

    def __init__(self, copy: _CopyProblem, units: set[tuple[int, ...]]) -> None:
        self._copy = copy
        self.of: dict[tuple[int, ...], tuple[int, int, int]] = {}
        """Step -> position of the first expression that it changes, and both address changes."""
        self._measure([(0,) * len(copy.axes), *units])

    def _measure(self, points: Sequence[tuple[int, ...]]) -> None:
        copy, shape = self._copy, (len(points),)
        where = [np.asarray([point[k] for point in points]) for k in range(len(copy.axes))]
        parts = [np.broadcast_to(part, shape) for part in copy.first.parts_at(copy.axes, where)]
        first = np.broadcast_to(copy.first.at(copy.axes, where), shape)
        second = np.broadcast_to(copy.second.at(copy.axes, where), shape)
        for k, point in enumerate(points):
            changed = [axis for axis, part in enumerate(parts) if part[k] != part[0]]
            position = changed[0] if changed else len(parts)
            self.of[point] = (position, int(first[k] - first[0]), int(second[k] - second[0]))

    def idle_loop(self, k: int) -> _NestLoop:
        """Return a loop of extent 1 over expression k of the first side, which no index reaches."""
        copy = self._copy
        unit = (0,) * len(copy.axes)
        if free_variables(copy.first.exprs[k]):
            numbers = {axis: n for n, axis in enumerate(copy.axes)}
            bounds = [(0, None)] * len(copy.axes)
            form = IndexReader(numbers, bounds, keeps_periods=True).form(copy.first.exprs[k])
            digit = next(iter(form.terms), None) if form is not None else None
            if isinstance(digit, Digit) and digit.unknown is not None:
                unit = tuple(digit.low * (n == digit.of) for n in range(len(copy.axes)))
                self._measure([(0,) * len(copy.axes), unit])
        second = self.of[unit][2]
        return _NestLoop(1, copy.first.strides[k], second, k)


def _sum(side: AddressFunction, forms: Sequence[QuasiAffine], reader: IndexReader) -> QuasiAffine:
    parts = [(QuasiAffine({}, side.offset), 1), *zip(forms, side.strides, strict=True)]
    return reader.normal(QuasiAffine.added(parts))


def _steps(form: QuasiAffine, cell: Cell) -> dict[int, int]:
    steps = dict.fromkeys(cell.live, 0)
    for term, n in form.terms.items():
        assert term.unknown is not None
        steps[term.unknown] = n
    return steps


def _nest(loops: Sequence[_NestLoop], first: int, second: int) -> Nest:
    """Order the loops, and reverse those with a negative stride on the first side."""
    forward = []
    for loop in loops:
        if loop.first < 0:
            first += loop.first * (loop.count - 1)
            second += loop.second * (loop.count - 1)
            loop = _NestLoop(loop.count, -loop.first, -loop.second, loop.position)
        forward.append(loop)
    forward.sort(key=lambda loop: (-loop.first, loop.position))
    return Nest(
        tuple(loop.count for loop in forward),
        tuple(loop.first for loop in forward),
        tuple(loop.second for loop in forward),
        first,
        second,
    )


def merge_nests(found: Sequence[Nest]) -> tuple[Nest, ...]:
    """Merge nests that continue each other, and order them by their first address."""
    left = sorted(found, key=_order)
    rank = max((len(nest.ranges) for nest in left), default=0)
    before = len(left) + 1
    while len(left) < before:
        before = len(left)
        for k in range(rank):
            left = _merged_along(left, k)
    return tuple(left)


def _merged_along(nests: Sequence[Nest], k: int) -> list[Nest]:
    """Merge nests, in order, that differ only in the extent of loop k and in their start."""
    starts = {_start(nest, k): nest for nest in nests if len(nest.ranges) > k}
    absorbed: set[Nest] = set()
    result = []
    for nest in nests:
        if nest in absorbed:
            continue
        while _moves(nest, k) and (after := starts.get(_start(_nest_after(nest, k), k))):
            absorbed.add(after)
            nest = replace(nest, ranges=_with(nest.ranges, k, nest.ranges[k] + after.ranges[k]))
        result.append(nest)
    return result


def _moves(nest: Nest, k: int) -> bool:
    """Return whether loop k changes an address; a loop that runs once may have strides of 0."""
    return len(nest.ranges) > k and (nest.first[k], nest.second[k]) != (0, 0)


def _start(nest: Nest, k: int) -> Nest:
    """Return a key that is equal for nests that differ only in the extent of loop k."""
    return replace(nest, ranges=_with(nest.ranges, k, 0))


def _nest_after(nest: Nest, k: int) -> Nest:
    """Return a nest that starts where loop k ends."""
    return replace(
        nest,
        first_offset=nest.first_offset + nest.ranges[k] * nest.first[k],
        second_offset=nest.second_offset + nest.ranges[k] * nest.second[k],
    )


def _with(numbers: tuple[int, ...], k: int, number: int) -> tuple[int, ...]:
    return (*numbers[:k], number, *numbers[k + 1 :])


def _order(nest: Nest) -> tuple[int, int]:
    return nest.first_offset, nest.second_offset
