"""Rewrite rules for floor division, modulo, min, max and comparisons."""

from __future__ import annotations

from collections.abc import Iterator
from math import gcd
from typing import Protocol

from tecomp.ir.arith.constraint_context import ConstraintContext
from tecomp.ir.arith.intervals import Interval
from tecomp.ir.arith.quasi_affine import Digit, OpaqueTerm, QuasiAffine, Term
from tecomp.ir.nodes.expr import Binary, BinOp, CmpOp, Compare, Const, Expr
from tecomp.ir.nodes.operators import MIRRORED


def extremum(facts: ConstraintContext, op: BinOp, operands: list[Expr]) -> Expr:
    """Return the minimum or maximum of operands without operands that are provably dominated."""
    is_min = op is BinOp.MIN
    candidates: list[tuple[Expr, QuasiAffine]] = []
    for operand in operands:
        total = facts.terms.sum_of(operand)
        if not facts.is_exact(total):
            candidates.append((operand, total))
            continue
        # min(a, b) == a  where a <= b
        if any(_in_order(facts, other, total, is_min=is_min) for _, other in candidates):
            continue
        candidates = [
            (expr, other) for expr, other in candidates
            if not _in_order(facts, total, other, is_min=is_min)
        ]
        candidates.append((operand, total))
    result = candidates[0][0]
    for operand, _ in candidates[1:]:
        result = Binary(op, result, operand)
    return result


def _in_order(facts: ConstraintContext, a: QuasiAffine, b: QuasiAffine, *, is_min: bool) -> bool:
    return facts.is_exact(a) and (
        facts.at_most(a.plus(b, -1), 0) if is_min else facts.at_least(a.plus(b, -1), 0)
    )


def decide_comparison(facts: ConstraintContext, op: CmpOp, total: QuasiAffine) -> bool | None:
    """Return whether `total op 0` holds, or None if undecided."""
    match op:
        case CmpOp.LT | CmpOp.GE:
            limit, answer = -1, op is CmpOp.LT
        case CmpOp.LE | CmpOp.GT:
            limit, answer = 0, op is CmpOp.LE
        case _:
            return _decide_equal(facts, total, answer=op is CmpOp.EQ)
    if facts.at_most(total, limit):
        return answer
    return not answer if facts.at_least(total, limit + 1) else None


def _decide_equal(facts: ConstraintContext, total: QuasiAffine, *, answer: bool) -> bool | None:
    if not total.terms:
        return answer == (total.const == 0)
    # g*x + k != 0  where k is not a multiple of g
    if total.const % total.factor():
        return not answer
    if facts.at_most(total, -1) or facts.at_least(total, 1):
        return not answer
    return answer if facts.interval(total) == (0, 0) else None


def comparison(
    facts: ConstraintContext, op: CmpOp, left: QuasiAffine, right: QuasiAffine
) -> bool | Expr:
    """Evaluate or simplify `left op right`."""
    total = left.plus(right, -1)
    answer = decide_comparison(facts, op, total)
    if answer is not None:
        return answer
    total = _reduce_comparison(facts, op, total)
    if all(c < 0 and term in left.terms for term, c in total.terms.items()):
        # -x < k == x > -k
        op, left, total = MIRRORED[op], left.times(-1), total.times(-1)
    on_left = {
        term: c for term, c in total.terms.items()
        if term in left.terms and (term not in right.terms or c > 0)
    }
    a = QuasiAffine(on_left)
    b = QuasiAffine({term: -c for term, c in total.terms.items() if term not in on_left})
    if not b.terms or (a.terms and total.const < 0):
        b = b.shifted(-total.const)
    else:
        a = a.shifted(total.const)
    return Compare(op, facts.terms.expr(a), facts.terms.expr(b))


def _reduce_comparison(facts: ConstraintContext, op: CmpOp, total: QuasiAffine) -> QuasiAffine:
    """Return a simpler sum with the same relation to 0."""
    if op in (CmpOp.EQ, CmpOp.NE):
        # g*x == 0 where x == 0
        return _quotient(total, total.factor())
    # x <= 0 where x - 1 < 0; x > 0 where x - 1 >= 0
    shift = -1 if op in (CmpOp.LE, CmpOp.GT) else 0
    total = total.shifted(shift)
    # g*x + r < 0 where x < 0, if 0 <= r < g
    for g in sorted({abs(c) for c in total.terms.values()} - {1}, reverse=True):
        x, r = total.split(g)
        if x.terms and facts.is_within(r, g):
            return _reduce_comparison(facts, CmpOp.LT, x).shifted(-shift)
    if (g := total.factor()) > 1:
        total = total.split(g)[0]
    return total.shifted(-shift)


def _quotient(total: QuasiAffine, g: int) -> QuasiAffine:
    return QuasiAffine({term: c // g for term, c in total.terms.items()}, total.const // g)


class FactsProtocol(Protocol):
    """Bounds queries that the division rules need."""

    @property
    def keeps_periods(self) -> bool:
        """If True, keep `x % d` even if `0 <= x < d`."""

    def interval(self, total: QuasiAffine) -> Interval:
        """Return the minimum and maximum of a sum, as far as constants determine them."""

    def is_within(self, total: QuasiAffine, end: int) -> bool:
        """Return whether `0 <= total < end` is proved."""

    def is_exact(self, total: QuasiAffine) -> bool:
        """Return whether the sum provably does not wrap around."""


def floordiv(known: FactsProtocol, total: QuasiAffine, d: int) -> QuasiAffine:
    """Return `total // d` for a constant `d > 0`."""
    # (d*q + r) // d == q + r // d
    quotient, rest = total.split(d)
    if (k := _only_quotient(known, rest, d)) is not None:
        return quotient.shifted(k)
    # (g*x + r) // (g*c) == x // c  where 0 <= r < g
    for g in _divisors(rest, d):
        x, r = rest.split(g)
        if known.is_within(r, g):
            return quotient.plus(floordiv(known, x, d // g))
    if _is_mirrored(rest, d):
        # (d - 1 - x) // d == -(x // d)
        return quotient.plus(floordiv(known, rest.times(-1).shifted(d - 1), d), -1)
    if (digit := _divisible(rest.single(), d)) is not None:
        return quotient.plus(_rewrite_digit_quotient(known, digit, d))
    if (y := _lift_constant(known, rest)) is not None:
        # (x // c + k) // d == (x + c*k) // (c*d)
        return quotient.plus(floordiv(known, y[0], y[1] * d))
    if (k := _carry(known, rest, d)) is not None:
        # (x + c) // d == x // d + k  where k*d <= x % d + c < (k + 1)*d
        return quotient.plus(floordiv(known, rest.shifted(-rest.const), d)).shifted(k)
    return quotient.plus(QuasiAffine({Digit(rest, d): 1}))


def modulo(known: FactsProtocol, total: QuasiAffine, d: int) -> QuasiAffine:
    """Return `total % d` for a constant `d > 0`."""
    rest = _reduce_dividend(known, total, d)
    if not rest.terms:
        return rest
    if not known.keeps_periods and (k := _only_quotient(known, rest, d)) is not None:
        return rest.shifted(-k * d)
    if _is_mirrored(rest, d):
        # (d - 1 - x) % d == d - 1 - x % d
        return modulo(known, rest.times(-1).shifted(d - 1), d).times(-1).shifted(d - 1)
    term = rest.single()
    if isinstance(term, Digit) and term.size is not None and term.size <= d:
        return rest
    if (digit := _divisible(term, d)) is not None:
        return _remainder(known, digit, d)
    # (g*x + r) % (g*c) == g * (x % c) + r  where 0 <= r < g
    for g in _divisors(rest, d):
        x, r = rest.split(g)
        if known.is_within(r, g):
            return modulo(known, x, d // g).times(g).plus(r)
    if (k := _carry(known, rest, d)) is not None:
        # (x + c) % d == x % d + c - k*d  where k*d <= x % d + c < (k + 1)*d
        return modulo(known, rest.shifted(-rest.const), d).shifted(rest.const - k * d)
    if (y := _lift_constant(known, rest)) is not None:
        # (x // c + k) % d == (x + c*k) // c % d
        return QuasiAffine({Digit(y[0], y[1], y[1] * d): 1})
    return QuasiAffine({Digit(rest, 1, d): 1})


def _is_mirrored(rest: QuasiAffine, d: int) -> bool:
    return rest.const == d - 1 and all(c < 0 for c in rest.terms.values())


def _divisible(term: Term | None, d: int) -> Digit | None:
    """Return `term` if it is a digit whose quotient and remainder by `d` are digits, else None."""
    if not isinstance(term, Digit) or (term.high is not None and term.high % (term.low * d)):
        return None
    return term


def _rewrite_digit_quotient(known: FactsProtocol, digit: Digit, d: int) -> QuasiAffine:
    """Return `(x // l % (d*m)) // d` as `x // (l*d) % m`."""
    x, low, high = digit.of, digit.low * d, digit.high
    if isinstance(x, int) or not known.is_exact(x):
        return QuasiAffine({Digit(x, low, high): 1})
    quotient = floordiv(known, x, low)
    return quotient if high is None else modulo(known, quotient, high // low)


def _remainder(known: FactsProtocol, digit: Digit, d: int) -> QuasiAffine:
    """Return `(x // l % (d*m)) % d` as `x // l % d`."""
    x, low = digit.of, digit.low
    if isinstance(x, int) or not known.is_exact(x):
        return QuasiAffine({Digit(x, low, low * d): 1})
    if low == 1:
        return modulo(known, x, d)
    return QuasiAffine({Digit(QuasiAffine(x.terms, x.const % (low * d)), low, low * d): 1})


def _lift_constant(known: FactsProtocol, total: QuasiAffine) -> tuple[QuasiAffine, int] | None:
    """Return `(x + c*k, c)` for a sum `x // c + k`, else None."""
    match total.shifted(-total.const).single():
        case Digit(_, low, None) as digit if low > 1 and known.is_exact(digit.whole):
            lifted = digit.whole.shifted(total.const * low)
            return (lifted, low) if known.is_exact(lifted) else None
    return None


def recombine_digits(known: FactsProtocol, total: QuasiAffine) -> QuasiAffine:
    """Recombine adjacent digits of the same sum until no rule applies."""
    while (better := next(recombine_divmod(known, total), None)) is not None:
        total = better
    return total


def recombine_divmod(known: FactsProtocol, total: QuasiAffine) -> Iterator[QuasiAffine]:
    """Yield the sums that result from combining two terms of `total`."""
    digits = [term for term in total.terms if isinstance(term, Digit)]
    if len({digit.of for digit in digits}) < len(digits):
        for low in digits:
            yield from _neighbours(known, total, low, [d for d in digits if d.of == low.of])
    for digit in digits:
        if isinstance(digit.of, QuasiAffine) and known.is_exact(digit.of):
            yield from _complete_digit(known, total, digit, digit.of)


def _neighbours(
    known: FactsProtocol, total: QuasiAffine, low: Digit, others: list[Digit]
) -> Iterator[QuasiAffine]:
    n = total.terms[low]
    for high in others:
        if high.low == low.low or high.low % low.low:
            continue
        step = high.low // low.low
        if high.low == low.high and total.terms[high] == n * step:
            # n * (x // l % s) + n*s * (x // (l*s) % t) == n * (x // l % (s*t))
            merged = _digit_as_sum(known, Digit(low.of, low.low, high.high))
            yield total.replaced((low, high), merged.times(n))
        elif high.high == low.high and total.terms[high] == -n * step:
            # n * (x // l % (s*t)) - n*s * (x // (l*s) % t) == n * (x // l % s)
            digit = Digit(low.of, low.low, high.low)
            yield total.replaced((low, high), QuasiAffine({digit: n}))


def _digit_as_sum(known: FactsProtocol, digit: Digit) -> QuasiAffine:
    """Return a digit as a sum; an unbounded digit of a sum is replaced by the quotient itself."""
    if digit.high is not None or isinstance(digit.of, int):
        return QuasiAffine({digit: 1})
    return digit.of if digit.low == 1 else floordiv(known, digit.of, digit.low)


def _complete_digit(
    known: FactsProtocol, total: QuasiAffine, digit: Digit, y: QuasiAffine
) -> Iterator[QuasiAffine]:
    """Yield sums in which a digit of `y` is combined with the complementary part of `y`.

    The complementary part may be a multiple of `y` itself or a differently written quotient.
    """
    c = total.terms[digit]
    if digit.high is None and c % digit.low == 0:
        # c*y - (c*m) * (y // m) == c * (y % m)
        k = -c // digit.low
        if total.has(y, k):
            remainder = modulo(known, y, digit.low).times(k)
            yield total.replaced((*y.terms, digit), remainder).shifted(-k * y.const)
    if digit.low != 1 or digit.high is None:
        return
    m = digit.high
    quotient = floordiv(known, y, m)
    for other, k in total.terms.items():
        if k != c * m or not isinstance(other, Digit):
            continue
        if quotient.shifted(-quotient.const).single() == other:
            # (c*m) * (y // m) + c * (y % m) == c*y
            merged = y.shifted(-quotient.const * m).times(c)
            yield total.replaced((digit, other), merged)
        elif other.size is not None and modulo(known, quotient, other.size).single() == other:
            # (c*m) * ((y // m) % n) + c * (y % m) == c * (y % (m*n))
            merged = modulo(known, y, m * other.size).times(c)
            yield total.replaced((digit, other), merged)


def _only_quotient(known: FactsProtocol, total: QuasiAffine, d: int) -> int | None:
    """Return the value of `total // d` if the bounds determine it, else None."""
    low, high = known.interval(total)
    if low is not None and high is not None:
        return low // d if low // d == high // d else None
    return 0 if known.is_within(total, d) else None


def _carry(known: FactsProtocol, total: QuasiAffine, d: int) -> int | None:
    """Return the carry that the constant of `total` adds to the quotient, or None if undecided."""
    if not total.const:
        return None
    remainder = modulo(known, total.shifted(-total.const), d)
    return _only_quotient(known, remainder.shifted(total.const), d)


def _divisors(total: QuasiAffine, d: int) -> list[int]:
    """Return the common divisors above 1 of `d` and each coefficient, in descending order."""
    return sorted({gcd(c, d) for c in total.terms.values()} - {1}, reverse=True)


def _reduce_dividend(known: FactsProtocol, total: QuasiAffine, d: int) -> QuasiAffine:
    """Return a sum with fewer or simpler terms and the same remainder by `d`."""
    # (d*q + r) % d == r % d
    rest = total.split(d)[1]
    # (c * (x // l % m)) % d == (c * (x // l)) % d  where c*m is a multiple of d
    if all(isinstance(term, OpaqueTerm) or term.high is None for term in rest.terms):
        return rest
    parts: list[tuple[QuasiAffine, int]] = [(QuasiAffine({}, rest.const), 1)]
    for term, c in rest.terms.items():
        part = QuasiAffine({term: 1})
        if isinstance(term, Digit) and term.size is not None and c * term.size % d == 0 and (
            isinstance(term.of, int) or known.is_exact(term.of)
        ):
            part = _digit_as_sum(known, Digit(term.of, term.low))
        parts.append((part, c))
    expanded = QuasiAffine.added(parts)
    return expanded.split(d)[1] if known.is_exact(expanded) else rest


def recombine_terms(facts: ConstraintContext, total: QuasiAffine) -> QuasiAffine:
    """Recombine quotients and remainders of the same expression until no rule applies."""
    if len(total.terms) < 2:
        return total
    while (better := next(_better(facts, total), None)) is not None:
        total = better
    return total


def _better(facts: ConstraintContext, total: QuasiAffine) -> Iterator[QuasiAffine]:
    yield from recombine_divmod(facts, total)
    for term, c in total.terms.items():
        if not isinstance(term, Digit) or term != Digit(term.of):
            continue
        match facts.terms.text(term):
            case Binary(BinOp.MUL):
                yield from _join_scaled(facts, total, term, c)
            case Binary(BinOp.MOD, y, m) if facts.at_least(facts.terms.sum_of(m), 1):
                # c * ((y // m) * m) + c * (y % m) == c*y  where m >= 1
                product = Binary(BinOp.MUL, Binary(BinOp.FLOORDIV, y, m), m)
                yield from _complete_product(total, term, facts.terms.sum_of(product), c,
                                      facts.terms.sum_of(y))


def _complete_product(
    total: QuasiAffine, term: Term, rest: QuasiAffine, c: int, product: QuasiAffine
) -> Iterator[QuasiAffine]:
    """Yield `total` with `c * term + c * rest` replaced by `c * whole`, if both parts occur."""
    if total.has(rest, c):
        yield total.replaced((term, *rest.terms), product.times(c)).shifted(-c * rest.const)


def _join_scaled(
    facts: ConstraintContext, total: QuasiAffine, term: Term, c: int
) -> Iterator[QuasiAffine]:
    """Yield sums in which a quotient and a remainder with common symbolic factors are combined."""
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
        if (single := quotient.only()) is not None:
            text = terms.text(single[0])
            product = terms.product([text, *left, *scale]).times(single[1] * times)
            yield from _complete_product(total, term, product, c, terms.product([y, *scale]))
