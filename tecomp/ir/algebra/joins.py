"""Quotients and remainders of the same thing put together, those by symbolic divisors included.

Every rule states its identity, as those of `tecomp.ir.algebra.division` do.
"""

from __future__ import annotations

from collections.abc import Iterator

from tecomp.ir.algebra.division import floordiv, joins
from tecomp.ir.algebra.facts import Facts
from tecomp.ir.algebra.quasi_affine import Digit, QuasiAffine, Term
from tecomp.ir.language.expr import Binary, BinOp, Const, Expr


def joined(facts: Facts, total: QuasiAffine) -> QuasiAffine:
    """`total` with quotients and remainders of the same thing put together again."""
    if len(total.terms) < 2:
        return total
    while (better := next(_better(facts, total), None)) is not None:
        total = better
    return total


def _better(facts: Facts, total: QuasiAffine) -> Iterator[QuasiAffine]:
    yield from joins(facts, total)
    for term, c in total.terms.items():
        if not isinstance(term, Digit) or term != Digit(term.of):
            continue
        match facts.terms.text(term):
            case Binary(BinOp.MUL):
                yield from _join_scaled(facts, total, term, c)
            case Binary(BinOp.MOD, y, m) if facts.at_least(facts.terms.sum_of(m), 1):
                # c * ((y // m) * m) + c * (y % m) == c*y  where m >= 1
                whole = Binary(BinOp.MUL, Binary(BinOp.FLOORDIV, y, m), m)
                yield from _completed(total, term, facts.terms.sum_of(whole), c,
                                      facts.terms.sum_of(y))


def _completed(
    total: QuasiAffine, term: Term, rest: QuasiAffine, c: int, whole: QuasiAffine
) -> Iterator[QuasiAffine]:
    """`total` with `c * whole` for `c * term + c * rest`, if it has both."""
    if total.has(rest, c):
        yield total.replaced((term, *rest.terms), whole.times(c)).shifted(-c * rest.const)


def _join_scaled(
    facts: Facts, total: QuasiAffine, term: Term, c: int
) -> Iterator[QuasiAffine]:
    """As for quotients and remainders themselves, where both are multiplied by the same."""
    terms = facts.terms
    factors = terms.factors(term)
    for k, factor in enumerate(factors):
        # c * (y // m) * m * z + c * (y % m) * z == c * y * z  where m >= 1
        if not (isinstance(factor, Binary) and factor.op is BinOp.MOD):
            continue
        y, m, scale = factor.a, factor.b, factors[:k] + factors[k + 1 :]
        left: list[Expr] = []
        if isinstance(m, Const) and m.value > 0 and facts.is_exact(terms.sum_of(y)):
            quotient, times = floordiv(facts, terms.sum_of(y), int(m.value)), int(m.value)
        elif facts.at_least(terms.sum_of(m), 1):
            quotient, times, left = terms.sum_of(Binary(BinOp.FLOORDIV, y, m)), 1, [m]
        else:
            continue
        if (alone := quotient.only()) is not None:
            text = terms.text(alone[0])
            whole = terms.product([text, *left, *scale]).times(alone[1] * times)
            yield from _completed(total, term, whole, c, terms.product([y, *scale]))
