"""Quotients, remainders and joins of quasi-affine sums, enumerated over all small values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from operator import and_, or_, xor

import pytest
from hypothesis import given, note, settings
from hypothesis import strategies as st

from tecomp.ir import (
    BinOp,
    Digit,
    Interval,
    OpaqueTerm,
    QuasiAffine,
    Term,
    floordiv,
    modulo,
    recombine_digits,
)
from tecomp.poly import IndexReader
from tests.strategies.draws import Draws

Point = tuple[int, ...]
BITS: dict[BinOp, Callable[[int, int], int]] = {
    BinOp.BITXOR: xor, BinOp.BITAND: and_, BinOp.BITOR: or_,
}


def value(total: QuasiAffine, at: Point) -> int:
    """Evaluate a sum at one point."""
    return total.const + sum(n * term_value(term, at) for term, n in total.terms.items())


def term_value(term: Term, at: Point) -> int:
    if isinstance(term, OpaqueTerm):
        a, b = (value(operand, at) for operand in term.operands)
        return BITS[term.op](a, b)
    x = at[term.of] if isinstance(term.of, int) else value(term.of, at)
    whole = x // term.low
    return whole if term.size is None else whole % term.size


@dataclass
class Sums(Draws):
    """Draw unsimplified sums of up to three unknowns."""

    def reader(self) -> tuple[IndexReader, list[range]]:
        """Draw bounds of the unknowns; return a reader with the bounds, and the possible values."""
        bounds: list[Interval] = []
        values = []
        for _ in range(3):
            low, count = self.pick((0, 0, 0, 1, -3)), self.number(1, 9)
            values.append(range(low, low + count))
            last = low + count - 1
            bounds.append(self.pick(((low, last), (low, last), (low, None), (None, None))))
        return IndexReader({}, bounds, keeps_periods=self.chance(30)), values

    def total(self, depth: int = 2) -> QuasiAffine:
        """Draw a sum of up to three terms; `depth` limits the nesting of sums."""
        parts = [(QuasiAffine({}, self.number(-9, 9)), 1)]
        for _ in range(self.number(1, 3)):
            coefficient = self.pick((1, 1, -1, 2, 3, 4, -4, 6, 8, -12))
            parts.append((QuasiAffine({self.term(depth): 1}), coefficient))
        return QuasiAffine.added(parts)

    def term(self, depth: int) -> Term:
        """Draw a digit of an unknown or of a sum, or an opaque term."""
        low = self.pick((1, 1, 2, 3, 4))
        high = self.pick((None, None, low * 2, low * 3, low * 4))
        if depth and self.chance(30):
            inner = self.total(depth - 1)
            if inner.terms and (low, high) != (1, None):
                return Digit(inner, low, high)
        if depth and self.chance(8):
            return OpaqueTerm(self.pick((*BITS,)), (self.total(depth - 1), self.total(depth - 1)))
        return Digit(self.number(0, 2), low, high)


@st.composite
def sums(draw: st.DrawFn) -> tuple[IndexReader, list[range], QuasiAffine, int]:
    """Draw a reader, the values of the unknowns, a sum and a divisor."""
    drawn = Sums(draw)
    reader, values = drawn.reader()
    return reader, values, drawn.total(), drawn.pick((1, 2, 3, 4, 6, 8, 12))


@settings(max_examples=10 * settings().max_examples)
@given(sums())
def test_operations_have_their_documented_values(
    case: tuple[IndexReader, list[range], QuasiAffine, int],
) -> None:
    reader, values, total, d = case
    quotient, remainder = floordiv(reader, total, d), modulo(reader, total, d)
    normal, whole = recombine_digits(reader, total), reader.normal(total)
    part, rest = total.split(d)
    back = reader.plus(remainder, quotient, d)
    note(f"{total} by {d}: quotient {quotient}, remainder {remainder}, joined {normal}")
    low, high = reader.interval(total)
    for at in product(*values):
        expected = value(total, at)
        assert value(quotient, at) == expected // d, at
        assert value(remainder, at) == expected % d, at
        for same in (normal, whole, back, part.times(d).plus(rest)):
            assert value(same, at) == expected, (at, same)
        assert low is None or low <= expected
        assert high is None or expected <= high


@settings(max_examples=5 * settings().max_examples)
@given(sums(), sums())
def test_sums_of_the_same_terms_are_equal_in_any_order(
    one: tuple[IndexReader, list[range], QuasiAffine, int],
    other: tuple[IndexReader, list[range], QuasiAffine, int],
) -> None:
    a, b, n = one[2], other[2], one[3]
    both = a.plus(b, n)
    turned = b.times(n).plus(a)
    assert both == turned
    assert hash(both) == hash(turned)
    assert both == QuasiAffine.added([(b, n), (a, 1)])
    assert both.plus(a, -1).plus(b, -n) == QuasiAffine()
    assert both.unknowns <= a.unknowns | b.unknowns
    assert all(both.terms.values())


X, Y = QuasiAffine({Digit(0): 1}), QuasiAffine({Digit(1): 1})
SUM = X.plus(Y)
FREE = IndexReader({}, [(None, None), (None, None)])


@pytest.mark.parametrize(("found", "expected"), [
    (floordiv(FREE, floordiv(FREE, X, 4), 2), QuasiAffine({Digit(0, 8): 1})),
    (modulo(FREE, floordiv(FREE, X, 4), 2), QuasiAffine({Digit(0, 4, 8): 1})),
    (floordiv(FREE, modulo(FREE, X, 8), 4), QuasiAffine({Digit(0, 4, 8): 1})),
    (modulo(FREE, floordiv(FREE, SUM, 4), 2), QuasiAffine({Digit(SUM, 4, 8): 1})),
    (floordiv(FREE, modulo(FREE, SUM, 8), 4), QuasiAffine({Digit(SUM, 4, 8): 1})),
    (floordiv(FREE, floordiv(FREE, X, 4).shifted(3), 8),
     QuasiAffine({Digit(X.shifted(12), 32): 1})),
    (modulo(FREE, X.times(-1).shifted(3), 4), QuasiAffine({Digit(0, 1, 4): -1}, 3)),
    (FREE.plus(floordiv(FREE, SUM, 4).times(4), modulo(FREE, SUM, 4)), SUM),
    (FREE.plus(SUM, floordiv(FREE, SUM, 4), -4), QuasiAffine({Digit(SUM, 1, 4): 1})),
    (FREE.plus(X, floordiv(FREE, X, 4), -4), QuasiAffine({Digit(0, 1, 4): 1})),
])
def test_equivalent_expressions_compare_equal(found: QuasiAffine, expected: QuasiAffine) -> None:
    assert found == expected
