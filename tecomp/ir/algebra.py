"""Rules for quotients, remainders, extrema and comparisons of index sums.

Every rule states its identity. `x`, `y` stand for sums, `c`, `d`, `g`, `m` for positive constants.
All divisions round down. The rules hold for integers of any size, so they are applied only where
`Facts.is_exact` says that nothing wraps around.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import gcd

from tecomp.ir.dtype import INT64
from tecomp.ir.expr import Binary, BinOp, CmpOp, Compare, Const, Expr
from tecomp.ir.facts import Facts
from tecomp.ir.linear import Linear
from tecomp.ir.operators import MIRRORED


def floordiv(facts: Facts, total: Linear, d: int) -> Linear:
    """`total // d` for a constant `d > 0`."""
    # (d*q + r) // d == q + r // d
    whole, rest = total.split(d)
    if (k := _only_quotient(facts, rest, d)) is not None:
        return whole.shifted(k)
    # (g*x + r) // (g*c) == x // c  where 0 <= r < g
    for g in _divisors(rest, d):
        x, r = rest.split(g)
        if _within(facts, r, g):
            return whole.plus(floordiv(facts, x, d // g))
    match rest.only():
        case (Binary(BinOp.MOD, y, Const(m)), 1) if m % d == 0:
            # (y % (d*c)) // d == (y // d) % c
            inner = floordiv(facts, facts.terms.linear(y), d)
            return whole.plus(modulo(facts, inner, int(m) // d))
    match rest.shifted(-rest.const).only():
        case (Binary(BinOp.FLOORDIV, y, Const(c)), 1) if c > 0:
            # (y // c + k) // d == (y + c*k) // (c*d)
            shifted = facts.terms.linear(y).shifted(rest.const * int(c))
            return whole.plus(floordiv(facts, shifted, int(c) * d))
    if (k := _carry(facts, rest, d)) is not None:
        # (x + c) // d == x // d + k  where k*d <= x % d + c < (k + 1)*d
        return whole.plus(floordiv(facts, rest.shifted(-rest.const), d)).shifted(k)
    return whole.plus(_atom(facts, BinOp.FLOORDIV, rest, d))


def modulo(facts: Facts, total: Linear, d: int) -> Linear:
    """`total % d` for a constant `d > 0`."""
    # (d*q + r) % d == r % d
    rest = _without_remainders(facts, total, d).split(d)[1]
    if (k := _only_quotient(facts, rest, d)) is not None:
        return rest.shifted(-k * d)
    # (g*x + r) % (g*c) == g * (x % c) + r  where 0 <= r < g
    for g in _divisors(rest, d):
        x, r = rest.split(g)
        if _within(facts, r, g):
            return modulo(facts, x, d // g).times(g).plus(r)
    if (k := _carry(facts, rest, d)) is not None:
        # (x + c) % d == x % d + c - k*d  where k*d <= x % d + c < (k + 1)*d
        return modulo(facts, rest.shifted(-rest.const), d).shifted(rest.const - k * d)
    return _atom(facts, BinOp.MOD, rest, d)


def joined(facts: Facts, total: Linear) -> Linear:
    """`total` with quotients and remainders of the same thing put together again."""
    while (better := next(_joins(facts, total), None)) is not None:
        total = better
    return total


def _joins(facts: Facts, total: Linear) -> Iterator[Linear]:
    for key, (atom, c) in total.terms.items():
        match atom:
            case Binary(BinOp.MUL):
                yield from _join_scaled(facts, total, key, c)
            case Binary(BinOp.MOD, y, Const(m)) if m > 0:
                yield from _join_remainder(facts, total, key, y, int(m), c)
            case Binary(BinOp.MOD, y, m) if facts.at_least(facts.terms.linear(m), 1):
                # c * ((y // m) * m) + c * (y % m) == c*y  where m >= 1
                whole = Binary(BinOp.MUL, Binary(BinOp.FLOORDIV, y, m), m)
                yield from _completed(total, key, facts.terms.linear(whole), c,
                                      facts.terms.linear(y))
            case Binary(BinOp.FLOORDIV, y, Const(m)) if m > 0 and c % m == 0:
                # c*y - (c*m) * (y // m) == c * (y % m)
                numerator, k = facts.terms.linear(y), -c // int(m)
                if numerator.terms and facts.is_exact(numerator) and all(
                    total.terms.get(part, (None, 0))[1] == k * n
                    for part, (_, n) in numerator.terms.items()
                ):
                    remainder = modulo(facts, numerator, int(m)).times(k)
                    gone = total.replaced((*numerator.terms, key), remainder)
                    yield gone.shifted(-k * numerator.const)


def _completed(total: Linear, key: int, rest: Linear, c: int, whole: Linear) -> Iterator[Linear]:
    """`total` with `c * whole` for `c * x + c * rest`, if it has both; x is the atom of `key`."""
    if rest.terms and all(
        total.terms.get(part, (None, 0))[1] == c * k for part, (_, k) in rest.terms.items()
    ):
        yield total.replaced((key, *rest.terms), whole.times(c)).shifted(-c * rest.const)


def _join_scaled(facts: Facts, total: Linear, key: int, c: int) -> Iterator[Linear]:
    """As for quotients and remainders themselves, where both are multiplied by the same."""
    terms = facts.terms
    factors = terms.factors(key)
    for k, factor in enumerate(factors):
        # c * (y // m) * m * z + c * (y % m) * z == c * y * z  where m >= 1
        if not (isinstance(factor, Binary) and factor.op is BinOp.MOD):
            continue
        y, m, scale = factor.a, factor.b, factors[:k] + factors[k + 1 :]
        if isinstance(m, Const) and m.value > 0 and facts.is_exact(terms.linear(y)):
            quotient, times, left = floordiv(facts, terms.linear(y), int(m.value)), int(m.value), []
        elif facts.at_least(terms.linear(m), 1):
            quotient, times, left = terms.linear(Binary(BinOp.FLOORDIV, y, m)), 1, [m]
        else:
            continue
        if (alone := quotient.only()) is not None:
            whole = terms.product([alone[0], *left, *scale]).times(alone[1] * times)
            yield from _completed(total, key, whole, c, terms.product([y, *scale]))


def _join_remainder(
    facts: Facts, total: Linear, key: int, y: Expr, m: int, c: int
) -> Iterator[Linear]:
    numerator = facts.terms.linear(y)
    if not facts.is_exact(numerator):
        return
    quotient = floordiv(facts, numerator, m)
    # (c*m) * (y // m) + c * (y % m) == c*y
    if (alone := quotient.only()) is not None and alone[1] == 1:
        other = next(iter(quotient.terms))
        if total.terms.get(other, (None, 0))[1] == c * m:
            yield total.replaced((key, other), numerator.times(c))
    # (c*m) * ((y // m) % n) + c * (y % m) == c * (y % (m*n))
    for other, (atom, k) in total.terms.items():
        match atom:
            case Binary(BinOp.MOD, z, Const(n)) if k == c * m and n > 0:
                if not quotient.plus(facts.terms.linear(z), -1).terms and (
                    quotient.const == facts.terms.linear(z).const
                ):
                    whole = modulo(facts, numerator, m * int(n)).times(c)
                    yield total.replaced((key, other), whole)


def _atom(facts: Facts, op: BinOp, numerator: Linear, d: int) -> Linear:
    return facts.terms.atom(Binary(op, facts.terms.expr(numerator), Const(d, INT64)))


def _only_quotient(facts: Facts, total: Linear, d: int) -> int | None:
    """The one value that `total // d` can have, if it is certain."""
    low, high = facts.interval(total)
    if low is not None and high is not None:
        return low // d if low // d == high // d else None
    return 0 if _within(facts, total, d) else None


def _carry(facts: Facts, total: Linear, d: int) -> int | None:
    """What adding the constant of `total` adds to the quotient of the rest, if it is certain."""
    if not total.const:
        return None
    remainder = modulo(facts, total.shifted(-total.const), d)
    return _only_quotient(facts, remainder.shifted(total.const), d)


def _within(facts: Facts, total: Linear, end: int) -> bool:
    """Whether `0 <= total < end` is certain."""
    return facts.at_least(total, 0) and facts.at_most(total, end - 1)


def _divisors(total: Linear, d: int) -> list[int]:
    """What some coefficient has in common with `d`, greatest first."""
    return sorted({gcd(c, d) for _, c in total.terms.values()} - {1}, reverse=True)


def _without_remainders(facts: Facts, total: Linear, d: int) -> Linear:
    # (c * (y % m)) % d == (c*y) % d  where c*m is a multiple of d
    result = Linear({}, total.const)
    for key, (atom, c) in total.terms.items():
        match atom:
            case Binary(BinOp.MOD, y, Const(m)) if m > 0 and c * m % d == 0 and facts.is_exact(
                facts.terms.linear(y)
            ):
                result = result.plus(facts.terms.linear(y), c)
            case _:
                result = result.plus(Linear({key: (atom, c)}))
    return result


def extremum(facts: Facts, op: BinOp, operands: list[Expr]) -> Expr:
    """The least (or greatest) of some values, without those that can never be it."""
    least = op is BinOp.MIN
    kept: list[tuple[Expr, Linear]] = []
    for operand in operands:
        total = facts.terms.linear(operand)
        if not facts.is_exact(total):
            kept.append((operand, total))
            continue
        # min(a, b) == a  where a <= b
        if any(_in_order(facts, other, total, least=least) for _, other in kept):
            continue
        kept = [
            (expr, other) for expr, other in kept
            if not _in_order(facts, total, other, least=least)
        ]
        kept.append((operand, total))
    result = kept[0][0]
    for operand, _ in kept[1:]:
        result = Binary(op, result, operand)
    return result


def _in_order(facts: Facts, a: Linear, b: Linear, *, least: bool) -> bool:
    return facts.is_exact(a) and (
        facts.at_most(a.plus(b, -1), 0) if least else facts.at_least(a.plus(b, -1), 0)
    )


def decide(facts: Facts, op: CmpOp, total: Linear) -> bool | None:
    """Whether `total op 0`, if it is certain."""
    match op:
        case CmpOp.LT | CmpOp.GE:
            less, answer = -1, op is CmpOp.LT
        case CmpOp.LE | CmpOp.GT:
            less, answer = 0, op is CmpOp.LE
        case _:
            return _decide_equal(facts, total, answer=op is CmpOp.EQ)
    if facts.at_most(total, less):
        return answer
    return not answer if facts.at_least(total, less + 1) else None


def _decide_equal(facts: Facts, total: Linear, *, answer: bool) -> bool | None:
    if not total.terms:
        return answer == (total.const == 0)
    # g*x + k != 0  where k is no multiple of g
    if total.const % total.factor():
        return not answer
    if facts.at_most(total, -1) or facts.at_least(total, 1):
        return not answer
    return answer if facts.interval(total) == (0, 0) else None


def comparison(facts: Facts, op: CmpOp, left: Linear, right: Linear) -> bool | Expr:
    """`left op right`, decided or with less to compute."""
    total = left.plus(right, -1)
    answer = decide(facts, op, total)
    if answer is not None:
        return answer
    total = _reduced(facts, op, total)
    if all(c < 0 and key in left.terms for key, (_, c) in total.terms.items()):
        # -x < k == x > -k
        op, left, total = MIRRORED[op], left.times(-1), total.times(-1)
    a, b = Linear(), Linear()
    for key, (atom, c) in total.terms.items():
        if key in left.terms and (key not in right.terms or c > 0):
            a = a.plus(Linear({key: (atom, c)}))
        else:
            b = b.plus(Linear({key: (atom, -c)}))
    if not b.terms or (a.terms and total.const < 0):
        b = b.shifted(-total.const)
    else:
        a = a.shifted(total.const)
    return Compare(op, facts.terms.expr(a), facts.terms.expr(b))


def _reduced(facts: Facts, op: CmpOp, total: Linear) -> Linear:
    """A sum with fewer or smaller terms that is on the same side of 0."""
    if op in (CmpOp.EQ, CmpOp.NE):
        # g*x == 0 where x == 0
        return _quotient(total, total.factor())
    # x <= 0 where x - 1 < 0; x > 0 where x - 1 >= 0
    shift = -1 if op in (CmpOp.LE, CmpOp.GT) else 0
    total = total.shifted(shift)
    # g*x + r < 0 where x < 0, if 0 <= r < g
    for g in sorted({abs(c) for _, c in total.terms.values()} - {1}, reverse=True):
        x, r = total.split(g)
        if x.terms and _within(facts, r, g):
            return _reduced(facts, CmpOp.LT, x).shifted(-shift)
    if (g := total.factor()) > 1:
        total = total.split(g)[0]
    return total.shifted(-shift)


def _quotient(total: Linear, g: int) -> Linear:
    terms = {key: (atom, c // g) for key, (atom, c) in total.terms.items()}
    return Linear(terms, total.const // g)
