"""Invert index maps digit by digit.

Each step replaces an equation `form == value` by equivalent equations. Therefore the solution
proves that the layout is injective, and the conditions that were required of the physical index on
the way describe the physical indices without an element.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import gcd

from tecomp.ir.arith.intervals import floordiv_bound
from tecomp.ir.arith.quasi_affine import Digit, OpaqueTerm, QuasiAffine, Term
from tecomp.ir.nodes.expr import BinOp, CmpOp, Compare, Expr, index_value
from tecomp.ir.nodes.stmt import Extent
from tecomp.ir.nodes.structural_equality import structural_equal
from tecomp.poly.maps.image_extents import bounds_of
from tecomp.poly.sets.quasi_affine_reader import IndexReader, expr_of

# Sum of digits of the index, and its value as a sum of digits of the physical index.
Equation = tuple[QuasiAffine, QuasiAffine]


@dataclass(frozen=True, slots=True)
class Solution:
    """Solution of the equations of a layout.

    Attributes:
        indices: Index on each axis as a function of the physical index; None if a digit is free.
        free: (axis, factor) of the least digit on each axis that no equation depends on. Elements
            that differ only in such digits have the same physical index.
        misses: Conditions of which at least one holds at each physical index without an element,
            and none at any other. If a digit is free, some physical indices without an element may
            satisfy none.
    """

    indices: tuple[Expr, ...] | None
    free: tuple[tuple[int, int], ...]
    misses: tuple[Expr, ...]


@dataclass(slots=True)
class _Tile:
    """Digits of an axis from `low` up to `high`, with their value."""

    low: int
    high: int | None
    value: QuasiAffine


def solve(
    forms: Sequence[QuasiAffine],
    places: Sequence[Expr],
    reader: IndexReader,
    extents: Mapping[int, Extent],
    ends: Sequence[Extent],
) -> Solution | None:
    """Solve `forms[k] == places[k]` for the index on every axis; None if the method fails.

    Args:
        forms: Each axis of the physical index as a function of the index.
        places: Variable for each axis of the physical index.
        reader: Reader with the bounds that follow from `extents`.
        extents: Extents of the axes of the index, by position; none is 0.
        ends: Extents of the axes of the physical index.
    """
    state = _State(reader, extents, places, ends)
    pending: list[Equation] = [
        (form, state.places.digit(Digit(k))) for k, form in enumerate(forms)
    ]
    while pending:
        state.is_eager, state.changed = not state.changed, False
        worklist, pending = pending, []
        while worklist:
            form, value = worklist.pop(0)
            derived = state.step(form, value)
            if derived is None:
                pending.append((form, value))
            else:
                state.changed = True
                worklist = derived + worklist
        if state.is_eager and not state.changed:
            return None
    return state.solution()


class _State:
    def __init__(
        self,
        reader: IndexReader,
        extents: Mapping[int, Extent],
        variables: Sequence[Expr],
        ends: Sequence[Extent],
    ) -> None:
        self.reader = reader
        self.extents = extents
        self.variables = variables
        self.ends = ends
        self.places = IndexReader({}, bounds_of(ends))
        self.tiles: dict[int, list[_Tile]] = {axis: [] for axis in extents}
        self.values: dict[Term, QuasiAffine] = {}
        """Values of terms that are not digits of an axis."""
        self.explained: set[Term] = set()
        self.misses: list[Expr] = []
        self.changed = True
        # Whether to solve a remainder for a single digit, although it may be half of a `//`, `%`
        # pair.
        self.is_eager = False

    def step(self, form: QuasiAffine, value: QuasiAffine) -> list[Equation] | None:
        """Return simpler equations equivalent to `form == value`, or None if none are known yet."""
        term = form.single()
        if term is not None:
            if isinstance(term, Digit) and isinstance(term.of, int):
                return self._record(term, value)
            return self._open(term, value)
        known, unknown = self._parted(form)
        if not unknown.terms:
            self._require_equal(value, known)
            return []
        rest = self.places.plus(value, known, -1)
        term, n = max(unknown.terms.items(), key=lambda entry: abs(entry[1]))
        if len(unknown.terms) == 1:
            self._require_zero(self.places.mod(rest, abs(n)))
            return [(QuasiAffine({term: 1}), self._divided(rest.times(n // abs(n)), abs(n)))]
        others = unknown.plus(QuasiAffine({term: n}), -1)
        low, high = self.reader.interval(others)
        if low is None or high is None or high - low >= abs(n):
            return None
        # n*x + y with 0 <= y < n: x is the quotient and y the remainder.
        rest = rest.shifted(-low)
        quotient = self._divided(rest, abs(n))
        return [
            (QuasiAffine({term: 1}), quotient.times(n // abs(n))),
            (others.shifted(-low), self.places.mod(rest, abs(n))),
        ]

    def _parted(self, form: QuasiAffine) -> tuple[QuasiAffine, QuasiAffine]:
        """Return the value of the known terms of a sum, and the unknown rest."""
        known = [(QuasiAffine({}, form.const), 1)]
        unknown: dict[Term, int] = {}
        for term, n in form.terms.items():
            value = self._known_term(term)
            if value is not None:
                known.append((value, n))
            else:
                unknown[term] = n
        return self.places.normal(QuasiAffine.added(known)), QuasiAffine(unknown)

    def _known(self, form: QuasiAffine) -> QuasiAffine | None:
        known, unknown = self._parted(form)
        return None if unknown.terms else known

    def _known_term(self, term: Term) -> QuasiAffine | None:
        if isinstance(term, Digit) and isinstance(term.of, int):
            return self._digits(term.of, term.low, term.high)
        return self.values.get(term) or self._computed(term)

    def _computed(self, term: Term) -> QuasiAffine | None:
        if isinstance(term, OpaqueTerm):
            a, b = map(self._known, term.operands)
            return None if a is None or b is None else self.places.operation(term.op, a, b)
        value = self._known(term.whole)
        return None if value is None else self._digit_of(value, term.low, term.size)

    def _digit_of(self, value: QuasiAffine, low: int, size: int | None) -> QuasiAffine:
        value = self._divided(value, low)
        return value if size is None else self.places.mod(value, size)

    def _divided(self, value: QuasiAffine, divisor: int) -> QuasiAffine:
        """Return `value // divisor`, with the bounds that follow from those required of `value`."""
        if divisor == 1:
            return value
        quotient = self.places.floordiv(value, divisor)
        low, high = self.places.interval(value)
        self._assume(quotient, floordiv_bound(low, divisor), floordiv_bound(high, divisor))
        return quotient

    def _assume(self, value: QuasiAffine, low: int | None, high: int | None) -> None:
        if value.terms and self.places.interval(value) != (low, high):
            first = None if low is None else low - value.const
            last = None if high is None else high - value.const
            known = {**self.places.assumed, value.shifted(-value.const): (first, last)}
            self.places = replace(self.places, assumed=known)

    def _digits(self, axis: int, low: int, high: int | None) -> QuasiAffine | None:
        """Return the value of `(x // low) % (high // low)` if all of these digits are known."""
        end = self._end(axis)
        parts: list[tuple[QuasiAffine, int]] = []
        pos = low
        while (high is None or pos < high) and (end is None or pos < end):
            tile = next((t for t in self.tiles[axis] if _covers(t, pos)), None)
            if tile is None or pos % tile.low or (tile.high or 0) % pos:
                return None
            value = self._divided(tile.value, pos // tile.low)
            stop = tile.high
            if high is not None and (stop is None or high < stop):
                if high % pos or (tile.high or 0) % high:
                    return None
                value, stop = self.places.mod(value, high // pos), high
            parts.append((value, pos // low))
            if stop is None:
                break
            pos = stop
        return self.places.normal(QuasiAffine.added(parts))

    def _end(self, axis: int) -> int | None:
        extent = self.extents[axis]
        return extent if isinstance(extent, int) else None

    def _record(self, digit: Digit, value: QuasiAffine) -> list[Equation] | None:
        """Record digits; a digit that is known already becomes a condition."""
        assert isinstance(digit.of, int)
        tiles = self.tiles[digit.of]
        cuts = {digit.low, digit.high}
        for tile in tiles:
            cuts |= {cut for cut in (tile.low, tile.high) if _covers(digit, cut)}
        inner = sorted(cut for cut in cuts if cut is not None)
        steps = [*pairwise(inner)]
        if any(b % a for a, b in steps):
            return None
        pieces = [*steps, (inner[-1], None)] if digit.high is None else steps
        if digit.size is not None:
            self._require_below(value, digit.size)
        else:
            self._require_positive(value)
        for low, high in pieces:
            piece = self._digit_of(value, low // digit.low, None if high is None else high // low)
            known = self._digits(digit.of, low, high)
            if known is None and any(_covers(tile, low) for tile in tiles):
                return None
            if known is not None:
                self._require_equal(piece, known)
            else:
                tiles.append(_Tile(low, high, piece))
        return []

    def _open(self, term: Term, value: QuasiAffine) -> list[Equation] | None:
        """Express `term == value` by equations about the operands of `term`."""
        if term in self.explained:
            self._require_equal(value, self.values[term])
            return []
        if (computed := self._computed(term)) is not None:
            self._require_equal(value, computed)
            return []
        equations: list[Equation] | None = None
        if isinstance(term, Digit):
            equations = self._open_quotient(term, value) if term.low > 1 else (
                self._open_remainder(term, value))
        elif term.op is BinOp.BITXOR:
            for operand, other in (term.operands, term.operands[::-1]):
                if (known := self._known(other)) is not None:
                    return [(operand, self._xor(value, known))]
        if equations is None and term not in self.values:
            self.values[term] = value
            self.changed = True
        return equations

    def _xor(self, a: QuasiAffine, b: QuasiAffine) -> QuasiAffine:
        result = self.places.operation(BinOp.BITXOR, a, b)
        assert result is not None  # every bit operation has a form
        return result

    def _open_remainder(self, term: Digit, value: QuasiAffine) -> list[Equation] | None:
        """Solve `x % m == value`."""
        known, unknown = self._parted(term.whole)
        number = term.size
        assert number is not None
        low, high = self.reader.interval(unknown)
        if low is not None and high is not None and high - low < number:
            self._require_below(value, number)
            shifted = self.places.plus(value, known, -1)
            return [(unknown.shifted(-low), self.places.mod(shifted.shifted(-low), number))]
        if len(unknown.terms) != 1 or gcd(unknown.factor(), number) != 1:
            return None
        # (n*x + y) % m == v, where n has an inverse modulo m: x % m == (v - y) / n % m
        ((part, n),) = unknown.terms.items()
        unit = pow(n, -1, number)
        unit = unit - number if 2 * unit > number else unit
        low, high = self.reader.interval_of(part)
        if low is not None and high is not None and high - low < number:
            shift = low
        elif self.is_eager and isinstance(part, Digit) and isinstance(part.of, int) and (
            (part.size or 0) % number == 0
        ):
            part, shift = Digit(part.of, part.low, part.low * number), 0
        else:
            return None
        self._require_below(value, number)
        shifted = self.places.plus(value, known, -1).times(unit)
        found = self.places.mod(shifted.shifted(-shift), number)
        return [(QuasiAffine({part: 1}, -shift), found)]

    def _open_quotient(self, term: Digit, value: QuasiAffine) -> list[Equation] | None:
        """Combine `x // c` with a known `x % c` to an equation about x."""
        inner = term.whole if term.high is None else self.reader.mod(term.whole, term.high)
        remainder = self.reader.mod(inner, term.low)
        known = self._known(remainder)
        if known is None:
            return None
        partner = remainder.single()
        if partner is not None and partner in self.values:
            self._require_below(known, term.low)
            self.explained.add(partner)
        return [(inner, self.places.plus(known, value, term.low))]

    def _require_equal(self, a: QuasiAffine, b: QuasiAffine) -> None:
        if self.places.interval(self.places.plus(a, b, -1)) == (0, 0):
            return
        a, b = (a, b) if a.terms else (b, a)
        self._miss(CmpOp.NE, a, self._text(b))

    def _require_zero(self, value: QuasiAffine) -> None:
        if self.places.interval(value) != (0, 0):
            self._miss(CmpOp.NE, value, 0)

    def _require_positive(self, value: QuasiAffine) -> None:
        low, high = self.places.interval(value)
        if low is None or low < 0:
            self._miss(CmpOp.LT, value, 0)
            self._assume(value, 0, high)

    def _require_below(self, value: QuasiAffine, end: int) -> None:
        self._require_positive(value)
        if not self.places.is_within(value, end):
            self._miss(CmpOp.GE, value, end)
            self._assume(value, 0, end - 1)

    def _miss(self, op: CmpOp, value: QuasiAffine, other: Extent) -> None:
        self.misses.append(Compare(op, self._text(value), index_value(other)))

    def _text(self, value: QuasiAffine) -> Expr:
        return expr_of(value, self.variables)

    def solution(self) -> Solution:
        """Return the solution once no equation is left."""
        free = []
        indices = []
        for axis, extent in self.extents.items():
            index = self._digits(axis, 1, None)
            if index is None:
                free.append((axis, self._first_gap(axis)))
            else:
                self._require_in(index, extent)
                indices.append(self._text(index))
        return Solution(None if free else tuple(indices), tuple(free), tuple(self.misses))

    def _require_in(self, index: QuasiAffine, extent: Extent) -> None:
        if isinstance(extent, int):
            self._require_below(index, extent)
            return
        self._require_positive(index)
        digit = index.single()
        end = self.ends[digit.of] if (
            isinstance(digit, Digit) and isinstance(digit.of, int) and digit == Digit(digit.of)
        ) else None
        if not (isinstance(end, Expr) and structural_equal(end, extent)):
            self._miss(CmpOp.GE, index, extent)

    def _first_gap(self, axis: int) -> int:
        pos: int = 1
        while (tile := next((t for t in self.tiles[axis] if _covers(t, pos)), None)) is not None:
            assert tile.high is not None
            pos = tile.high
        return pos


def _covers(tile: _Tile | Digit, pos: int | None) -> bool:
    return pos is not None and tile.low <= pos and (tile.high is None or pos < tile.high)
