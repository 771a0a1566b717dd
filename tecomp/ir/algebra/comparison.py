"""Rules for extrema and comparisons of index sums.

Every rule states its identity. `x`, `y` stand for sums, `c`, `d`, `g`, `m` for positive constants.
The rules hold for integers of any size, so they are applied only where `Facts.is_exact` says that
nothing wraps around.
"""

from __future__ import annotations

from tecomp.ir.algebra.facts import Facts
from tecomp.ir.algebra.quasi_affine import QuasiAffine
from tecomp.ir.language.expr import Binary, BinOp, CmpOp, Compare, Expr
from tecomp.ir.language.operators import MIRRORED


def extremum(facts: Facts, op: BinOp, operands: list[Expr]) -> Expr:
    """The least (or greatest) of some values, without those that can never be it."""
    least = op is BinOp.MIN
    kept: list[tuple[Expr, QuasiAffine]] = []
    for operand in operands:
        total = facts.terms.sum_of(operand)
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


def _in_order(facts: Facts, a: QuasiAffine, b: QuasiAffine, *, least: bool) -> bool:
    return facts.is_exact(a) and (
        facts.at_most(a.plus(b, -1), 0) if least else facts.at_least(a.plus(b, -1), 0)
    )


def decide(facts: Facts, op: CmpOp, total: QuasiAffine) -> bool | None:
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


def _decide_equal(facts: Facts, total: QuasiAffine, *, answer: bool) -> bool | None:
    if not total.terms:
        return answer == (total.const == 0)
    # g*x + k != 0  where k is no multiple of g
    if total.const % total.factor():
        return not answer
    if facts.at_most(total, -1) or facts.at_least(total, 1):
        return not answer
    return answer if facts.interval(total) == (0, 0) else None


def comparison(facts: Facts, op: CmpOp, left: QuasiAffine, right: QuasiAffine) -> bool | Expr:
    """`left op right`, decided or with less to compute."""
    total = left.plus(right, -1)
    answer = decide(facts, op, total)
    if answer is not None:
        return answer
    total = _reduced(facts, op, total)
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


def _reduced(facts: Facts, op: CmpOp, total: QuasiAffine) -> QuasiAffine:
    """A sum with fewer or smaller terms that is on the same side of 0."""
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
            return _reduced(facts, CmpOp.LT, x).shifted(-shift)
    if (g := total.factor()) > 1:
        total = total.split(g)[0]
    return total.shifted(-shift)


def _quotient(total: QuasiAffine, g: int) -> QuasiAffine:
    return QuasiAffine({term: c // g for term, c in total.terms.items()}, total.const // g)
