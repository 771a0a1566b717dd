"""Solve a layout for its indices, digit by digit: exact, and readable where it succeeds.

Each step replaces an equation `form == value` by equations that together say the same. So the
digits that are found prove the layout injective, and what had to be required of the place on the
way says which places hold no element.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import gcd

from tecomp.ir.equal import same
from tecomp.ir.expr import BinOp, CmpOp, Expr
from tecomp.ir.stmt import Extent
from tecomp.poly.forms import Form, Opaque, Part, Reader, Span
from tecomp.poly.values import Value, compare, total, xor

Equation = tuple[Form, Value]


@dataclass(frozen=True, slots=True)
class Solution:
    """What the equations of a layout say.

    Attributes:
        indices: the index on each axis as a function of the place; None if some digit is free.
        free: (axis, factor) of the least digit on each axis that no equation depends on:
            elements that differ in such digits alone share a place.
        misses: one of them holds at each place without an element, and at no other.
    """

    indices: tuple[Value, ...] | None
    free: tuple[tuple[int, int], ...]
    misses: tuple[Expr, ...]


@dataclass(slots=True)
class _Tile:
    """The digits of an axis from `low` up to `high`, and their value."""

    low: int
    high: int | None
    value: Value


def solve(
    forms: Sequence[Form],
    places: Sequence[Value],
    reader: Reader,
    extents: Mapping[int, Extent],
    ends: Sequence[Extent],
) -> Solution | None:
    """Find the index on every axis from `forms[k] == places[k]`, or None if that does not work.

    Args:
        forms: each axis of the place as a function of the index.
        places: each axis of the place, as variables.
        reader: with the bounds that follow from `extents`.
        extents: of the axes of the index, by number; none is 0.
        ends: of the axes of the place.
    """
    state = _State(reader, extents, dict(zip((p.base for p in places), ends, strict=True)))
    waiting: list[Equation] = list(zip(forms, places, strict=True))
    while waiting:
        state.is_eager, state.changed = not state.changed, False
        todo, waiting = waiting, []
        while todo:
            form, value = todo.pop(0)
            made = state.step(form, value)
            if made is None:
                waiting.append((form, value))
            else:
                state.changed = True
                todo = made + todo
        if state.is_eager and not state.changed:
            return None
    return state.solution()


class _State:
    def __init__(
        self, reader: Reader, extents: Mapping[int, Extent], ends: dict[Expr, Extent]
    ) -> None:
        self.reader = reader
        self.extents = extents
        self.ends = ends
        self.tiles: dict[int, list[_Tile]] = {axis: [] for axis in extents}
        self.opaque: dict[Opaque, Value] = {}
        self.explained: set[Opaque] = set()
        self.misses: list[Expr] = []
        self.changed = True
        # Whether to take one digit out of a remainder, which may be half of a pair instead.
        self.is_eager = False

    def step(self, form: Form, value: Value) -> list[Equation] | None:
        """Equations that say the same as `form == value` and are simpler, or None for now."""
        part = form.single()
        if isinstance(part, Span):
            return self._record(part, value)
        if isinstance(part, Opaque):
            return self._open(part, value)
        known, unknown = self._parted(form)
        rest = total([(value, 1), *((v, -n) for v, n in known)], -form.const)
        if not unknown:
            self._require_equal(value, total(known, form.const))
            return []
        if len(unknown) == 1:
            part, n = unknown[0]
            self._require_zero(rest.modulo(abs(n)))
            quotient = (rest if n > 0 else rest.negated()).floordiv(abs(n))
            return [(Form(0, ((part, 1),)), quotient)]
        part, n = max(unknown, key=lambda term: abs(term[1]))
        others = Form(0, tuple(term for term in unknown if term[0] is not part))
        low, high = self.reader.range(others)
        if low is None or high is None or high - low >= abs(n):
            return None
        # n*x + y with 0 <= y < n: x is the quotient, y the remainder.
        rest = total([(rest, 1)], -low)
        quotient = rest.floordiv(abs(n))
        return [
            (Form(0, ((part, 1),)), quotient if n > 0 else quotient.negated()),
            (Form(-low, others.terms), rest.modulo(abs(n))),
        ]

    def _parted(
        self, form: Form
    ) -> tuple[list[tuple[Value, int]], list[tuple[Part, int]]]:
        known, unknown = [], []
        for part, n in form.terms:
            value = self._known_part(part)
            if value is not None:
                known.append((value, n))
            else:
                unknown.append((part, n))
        return known, unknown

    def _known(self, form: Form) -> Value | None:
        known, unknown = self._parted(form)
        return None if unknown else total(known, form.const)

    def _known_part(self, part: Part) -> Value | None:
        if isinstance(part, Span):
            return self._digits(part.axis, part.low, part.high)
        return self.opaque.get(part) or self._computed(part)

    def _computed(self, part: Opaque) -> Value | None:
        inner = [self._known(form) for form in part.parts]
        match part.op, inner:
            case BinOp.FLOORDIV, [Value() as value]:
                return value.floordiv(part.number)
            case BinOp.MOD, [Value() as value]:
                return value.modulo(part.number)
            case BinOp.BITXOR, [Value() as a, Value() as b]:
                return xor(a, b)
        return None

    def _digits(self, axis: int, low: int, high: int | None) -> Value | None:
        """The value of `(x // low) % (high // low)`, if all of these digits are known."""
        end = self._end(axis)
        parts = []
        at = low
        while (high is None or at < high) and (end is None or at < end):
            tile = next((t for t in self.tiles[axis] if _covers(t, at)), None)
            if tile is None or at % tile.low or (tile.high or 0) % at:
                return None
            value = tile.value.floordiv(at // tile.low)
            stop = tile.high
            if high is not None and (stop is None or high < stop):
                if high % at or (tile.high or 0) % high:
                    return None
                value, stop = value.modulo(high // at), high
            parts.append((value, at // low))
            if stop is None:
                break
            at = stop
        return total(parts)

    def _end(self, axis: int) -> int | None:
        extent = self.extents[axis]
        return extent if isinstance(extent, int) else None

    def _record(self, span: Span, value: Value) -> list[Equation] | None:
        """Note digits; those that are known already become a condition."""
        tiles = self.tiles[span.axis]
        cuts = {span.low, span.high}
        for tile in tiles:
            cuts |= {cut for cut in (tile.low, tile.high) if _covers(span, cut)}
        inner = sorted(cut for cut in cuts if cut is not None)
        steps = [*pairwise(inner)]
        if any(b % a for a, b in steps):
            return None
        pieces = [*steps, (inner[-1], None)] if span.high is None else steps
        if span.size is not None:
            value = self._require_below(value, span.size)
        else:
            value = self._require_positive(value)
        for low, high in pieces:
            piece = value.floordiv(low // span.low)
            piece = piece if high is None else piece.modulo(high // low)
            known = self._digits(span.axis, low, high)
            if known is None and any(_covers(tile, low) for tile in tiles):
                return None
            if known is not None:
                self._require_equal(piece, known)
            else:
                tiles.append(_Tile(low, high, piece))
        return []

    def _open(self, part: Opaque, value: Value) -> list[Equation] | None:
        """`part == value`, said by what is inside `part`."""
        if part in self.explained:
            self._require_equal(value, self.opaque[part])
            return []
        if (computed := self._computed(part)) is not None:
            self._require_equal(value, computed)
            return []
        made: list[Equation] | None = None
        match part.op:
            case BinOp.MOD:
                made = self._open_remainder(part.parts[0], part.number, value)
            case BinOp.FLOORDIV:
                made = self._open_quotient(part, value)
            case BinOp.BITXOR:
                for one, other in (part.parts, part.parts[::-1]):
                    if (known := self._known(other)) is not None:
                        return [(one, xor(value, known))]
        if made is None and part not in self.opaque:
            self.opaque[part] = value
            self.changed = True
        return made

    def _open_remainder(self, inner: Form, number: int, value: Value) -> list[Equation] | None:
        known, unknown = self._parted(inner)
        moved = [(v, -n) for v, n in known]
        rest = Form(0, tuple(unknown))
        low, high = self.reader.range(rest)
        if low is not None and high is not None and high - low < number:
            value = self._require_below(value, number)
            shifted = total([(value, 1), *moved], -inner.const - low).modulo(number)
            return [(Form(-low, rest.terms), shifted)]
        if len(unknown) != 1 or gcd(unknown[0][1], number) != 1:
            return None
        # (n*x + y) % m == v  where n has an inverse modulo m: x % m == (v - y) / n % m
        part, n = unknown[0]
        unit = pow(n, -1, number)
        unit = unit - number if 2 * unit > number else unit
        low, high = self.reader.part_range(part)
        if low is not None and high is not None and high - low < number:
            shift = low
        elif self.is_eager and isinstance(part, Span) and (part.size or 0) % number == 0:
            part, shift = Span(part.axis, part.low, part.low * number), 0
        else:
            return None
        value = self._require_below(value, number)
        scaled = [(value, unit), *((v, unit * m) for v, m in moved)]
        found = total(scaled, -unit * inner.const - shift).modulo(number)
        return [(Form(-shift, ((part, 1),)), found)]

    def _open_quotient(self, part: Opaque, value: Value) -> list[Equation] | None:
        """`x // c` and `x % c` together are x."""
        inner = part.parts[0]
        remainder = self.reader.mod(inner, part.number)
        known = self._known(remainder)
        if known is None:
            return None
        partner = remainder.single()
        if isinstance(partner, Opaque) and partner in self.opaque:
            known = self._require_below(known, part.number)
            self.explained.add(partner)
        return [(inner, total([(value, part.number), (known, 1)]))]

    def _require_equal(self, a: Value, b: Value) -> None:
        if same(a.expr, b.expr):
            return
        number, other = (b.is_const(), a) if b.is_const() is not None else (a.is_const(), b)
        if number is not None:
            if other.is_const() != number:
                self.misses.append(compare(CmpOp.NE, other, number))
        else:
            self.misses.append(compare(CmpOp.NE, a, b.expr))

    def _require_zero(self, value: Value) -> None:
        if value.is_const() != 0:
            self.misses.append(compare(CmpOp.NE, value, 0))

    def _require_positive(self, value: Value) -> Value:
        low, high = value.range
        if low is not None and low >= 0:
            return value
        self.misses.append(compare(CmpOp.LT, value, 0))
        return value.within(0, high)

    def _require_below(self, value: Value, end: int) -> Value:
        value = self._require_positive(value)
        if value.is_below(end):
            return value
        self.misses.append(compare(CmpOp.GE, value, end))
        return value.within(0, end - 1)

    def solution(self) -> Solution:
        """What was found, when no equation is left."""
        free = []
        indices = []
        for axis, extent in self.extents.items():
            index = self._digits(axis, 1, None)
            if index is None:
                free.append((axis, self._first_gap(axis)))
            else:
                indices.append(self._require_in(index, extent))
        return Solution(None if free else tuple(indices), tuple(free), tuple(self.misses))

    def _require_in(self, index: Value, extent: Extent) -> Value:
        if isinstance(extent, int):
            return self._require_below(index, extent)
        index = self._require_positive(index)
        end = self.ends.get(index.base) if (index.div, index.mod) == (1, None) else None
        if not (isinstance(end, Expr) and same(end, extent)):
            self.misses.append(compare(CmpOp.GE, index, extent))
        return index

    def _first_gap(self, axis: int) -> int:
        at: int = 1
        while (tile := next((t for t in self.tiles[axis] if _covers(t, at)), None)) is not None:
            assert tile.high is not None
            at = tile.high
        return at


def _covers(tile: _Tile | Span, at: int | None) -> bool:
    return at is not None and tile.low <= at and (tile.high is None or at < tile.high)
