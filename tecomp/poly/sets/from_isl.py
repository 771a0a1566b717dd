"""Convert isl objects to expressions.

isl represents a remainder by a floor and merges all terms into one affine form. The conversion
recovers remainders, so that `j - 4*floor(j/4)` is written as `j % 4`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import gcd

import islpy as isl

from tecomp.ir.arith.intervals import UNKNOWN
from tecomp.ir.arith.quasi_affine import Digit, QuasiAffine
from tecomp.ir.nodes.dtype import BOOL, INT64
from tecomp.ir.nodes.expr import (
    BinOp,
    CmpOp,
    Compare,
    Const,
    Expr,
    Select,
    binary,
    cast,
    index_value,
    logical_and,
    logical_or,
)
from tecomp.poly.sets.isl_context import SHARE, Undecided, within_budget
from tecomp.poly.sets.isl_expressions import python_int
from tecomp.poly.sets.quasi_affine_reader import IndexReader, expr_of


def to_expr(value: isl.PwAff | isl.Aff, names: Mapping[str, Expr]) -> Expr:
    """Return `value` as an int64 expression, which is unspecified outside the domain of `value`.

    Args:
        value: Function that is an integer on its whole domain.
        names: Expressions for the dimensions `d0, d1, ...` (by position, independent of their
            names in isl) and for the parameters (by their names in isl).
    """
    sums = _AffineReader(names)
    if isinstance(value, isl.Aff) or value.isa_aff():
        aff = value if isinstance(value, isl.Aff) else value.as_aff()
        return sums.expr(sums.of(aff))
    pieces = _distinct_pieces(value.coalesce())
    if len(pieces) == 1:
        return sums.expr(sums.of(pieces[0][1]))
    texts = [sums.expr(sums.of(aff)) for _, aff in pieces]
    for op, smaller in ((BinOp.MIN, True), (BinOp.MAX, False)):
        if _is_extremum(pieces, smaller):
            chain = texts[0]
            for text in texts[1:]:
                chain = binary(op, chain, text)
            return chain
    domain = value.domain()
    chain = texts[-1]
    for (where, _), text in zip(reversed(pieces[:-1]), reversed(texts[:-1]), strict=True):
        chain = Select(set_to_condition(where.gist(domain), names), text, chain)
        domain = domain.union(where)
    return chain


def set_to_condition(points: isl.Set, names: Mapping[str, Expr]) -> Expr:
    """Return a bool expression that is true for the points in `points`; `names` as in `to_expr`.

    Raises:
        Undecided: If isl exceeds its share of the budget while it simplifies the conditions.
    """
    known = within_budget(lambda: _in_conditions(points), 4 * SHARE)
    if known is None:
        raise Undecided
    sums = _AffineReader(names)
    if known.is_empty():
        return Const(False, BOOL)
    parts = []
    for basic in known.get_basic_sets():
        conditions = []
        for constraint in basic.get_constraints():
            if not constraint.is_div_constraint():
                left = sums.of(constraint.get_aff())
                conditions.append(_comparison(left, constraint.is_equality(), sums))
        parts.append(logical_and(*conditions))
    return logical_or(*parts)


def _in_conditions(points: isl.Set) -> isl.Set:
    """Simplify `points` to few constraints and make each existential variable a quotient."""
    return points.detect_equalities().coalesce().compute_divs().remove_redundancies()


def ast_expr(expr: isl.AstExpr, names: Mapping[str, Expr]) -> Expr:
    """Convert an expression of isl's AST generator; `names` maps identifiers to expressions.

    isl writes a condition that is always true (false) as the number 1 (0), and so does the result.
    """
    root: list[Expr] = []
    worklist: list[tuple[isl.AstExpr, list[Expr], list[Expr] | None]] = [(expr, root, None)]
    while worklist:
        node, dest, operands = worklist.pop()
        kind = isl.ast_expr_type(node.get_type())
        if kind == isl.ast_expr_type.int:
            dest.append(index_value(python_int(node.get_val())))
        elif kind == isl.ast_expr_type.id:
            dest.append(index_value(names[node.get_id().get_name()]))
        elif operands is None:
            args: list[Expr] = []
            worklist.append((node, dest, args))
            count = node.get_op_n_arg()
            worklist.extend((node.get_op_arg(k), args, None) for k in reversed(range(count)))
        else:
            dest.append(_operation(node, operands))
    return root[0]


def _operation(node: isl.AstExpr, operands: list[Expr]) -> Expr:
    op = isl.ast_expr_op_type
    kind = isl.ast_expr_op_type(node.get_op_type())
    if kind in (op.cond, op.select):
        return Select(_truth(operands[0]), *operands[1:])
    if kind == op.minus:
        return binary(BinOp.SUB, Const(0, INT64), operands[0])
    if kind == op.zdiv_r:
        # isl only compares this remainder with zero, so its sign does not matter.
        return binary(BinOp.MOD, *operands)
    build = _BINARY.get(kind)
    if build is None:
        raise ValueError(f"no expression for {node.to_C_str()}")
    result = operands[0]
    for operand in operands[1:]:
        result = build(result, operand)
    return result


def _truth(value: Expr) -> Expr:
    if value.dtype.is_bool:
        return value
    return cast(BOOL, value)


def _logic(op: BinOp) -> Callable[[Expr, Expr], Expr]:
    return lambda a, b: binary(op, _truth(a), _truth(b))


def _arithmetic(op: BinOp) -> Callable[[Expr, Expr], Expr]:
    return lambda a, b: binary(op, a, b)


def _compare(op: CmpOp) -> Callable[[Expr, Expr], Expr]:
    return lambda a, b: Compare(op, a, b)


_OP = isl.ast_expr_op_type
# The islpy stubs omit `and` and `or`, which are Python keywords; 0 and 2 are their values.
_BINARY: dict[isl.ast_expr_op_type, Callable[[Expr, Expr], Expr]] = {
    _OP.add: _arithmetic(BinOp.ADD),
    _OP.sub: _arithmetic(BinOp.SUB),
    _OP.mul: _arithmetic(BinOp.MUL),
    # isl emits `div` for exact divisions and `pdiv_*` for nonnegative dividends only.
    _OP.div: _arithmetic(BinOp.FLOORDIV),
    _OP.fdiv_q: _arithmetic(BinOp.FLOORDIV),
    _OP.pdiv_q: _arithmetic(BinOp.FLOORDIV),
    _OP.pdiv_r: _arithmetic(BinOp.MOD),
    _OP.min: _arithmetic(BinOp.MIN),
    _OP.max: _arithmetic(BinOp.MAX),
    _OP.and_then: _logic(BinOp.AND),
    _OP.or_else: _logic(BinOp.OR),
    _OP.eq: _compare(CmpOp.EQ),
    _OP.le: _compare(CmpOp.LE),
    _OP.lt: _compare(CmpOp.LT),
    _OP.ge: _compare(CmpOp.GE),
    _OP.gt: _compare(CmpOp.GT),
    _OP(0): _logic(BinOp.AND),
    _OP(2): _logic(BinOp.OR),
}


def _distinct_pieces(value: isl.PwAff) -> list[tuple[isl.Set, isl.Aff]]:
    """Return the pieces with equal functions merged, in order of the number of basic sets."""
    pieces: list[tuple[isl.Set, isl.Aff]] = []
    for where, aff in value.get_pieces():
        for k, (others, known) in enumerate(pieces):
            if known.plain_is_equal(aff):
                pieces[k] = (others.union(where).coalesce(), known)
                break
        else:
            pieces.append((where, aff))
    return sorted(pieces, key=lambda piece: piece[0].n_basic_set())


def _is_extremum(pieces: Sequence[tuple[isl.Set, isl.Aff]], smaller: bool) -> bool:
    for where, aff in pieces:
        for _, other in pieces:
            if other is not aff:
                wins = aff.le_set(other) if smaller else aff.ge_set(other)
                if not where.is_subset(wins):
                    return False
    return True


class _AffineReader:
    """Converter from isl affine functions to quasi-affine sums of the expressions in `names`."""

    def __init__(self, names: Mapping[str, Expr]) -> None:
        self._texts: list[Expr] = []
        self._leaves: dict[str, QuasiAffine] = {}
        numbers: dict[int, int] = {}
        for name, expr in names.items():
            if isinstance(expr, Const):
                self._leaves[name] = QuasiAffine({}, int(expr.value))
                continue
            number = numbers.setdefault(id(expr), len(numbers))
            if number == len(self._texts):
                self._texts.append(index_value(expr))
            self._leaves[name] = QuasiAffine({Digit(number): 1})
        self._reader = IndexReader({}, [UNKNOWN] * len(self._texts))
        self._quotients: dict[Digit, None] = {}

    def expr(self, total: QuasiAffine) -> Expr:
        """Return a sum as an expression."""
        return expr_of(total, self._texts)

    def of(self, aff: isl.Aff) -> QuasiAffine:
        """Return the sum for `aff`, rounded down if `aff` has a denominator."""
        floors: list[QuasiAffine] = []
        for k in range(aff.dim(isl.dim_type.div)):
            floors.append(self._one(aff.get_div(k), floors))
        return self._one(aff, floors)

    def _one(self, aff: isl.Aff, floors: Sequence[QuasiAffine]) -> QuasiAffine:
        denominator = python_int(aff.get_denominator_val())
        scaled = aff.scale_val(denominator) if denominator != 1 else aff
        parts = [(QuasiAffine({}, python_int(scaled.get_constant_val())), 1)]
        for kind in (isl.dim_type.in_, isl.dim_type.param):
            for k in range(scaled.dim(kind)):
                if factor := python_int(scaled.get_coefficient_val(kind, k)):
                    name = f"d{k}" if kind == isl.dim_type.in_ else scaled.get_dim_name(kind, k)
                    parts.append((self._leaves[str(name)], factor))
        for k, floor in enumerate(floors):
            if factor := python_int(scaled.get_coefficient_val(isl.dim_type.div, k)):
                parts.append((floor, factor))
        total = self._tidy(self._reader.normal(QuasiAffine.added(parts)))
        return total if denominator == 1 else self._quotient(total, denominator)

    def _quotient(self, total: QuasiAffine, d: int) -> QuasiAffine:
        quotient, rest = total.split(d)
        divisor = gcd(d, rest.factor())
        rest, d = rest.split(divisor)[0], d // divisor
        if rest.terms and all(d < 2 * n < 2 * d for n in rest.terms.values()):
            # isl may write (n*x) // d as the left-hand side; restore the right-hand side:
            # (d*x - n*x + c) // d == x - (n*x - c + d - 1) // d
            mirrored = QuasiAffine({t: d - n for t, n in rest.terms.items()}, d - 1 - rest.const)
            outside = quotient.plus(QuasiAffine(dict.fromkeys(rest.terms, 1)))
            return self._reader.plus(outside, self._quotient(mirrored, d), -1)
        found = self._reader.floordiv(*self._nested(rest, d))
        for term in found.terms:
            if isinstance(term, Digit) and _is_quotient(term):
                self._quotients[term] = None
        return self._reader.plus(quotient, found)

    def _tidy(self, total: QuasiAffine) -> QuasiAffine:
        """Rewrite quotients in `total` as remainders where the sum becomes shorter."""
        quotients = [t for t in total.terms if isinstance(t, Digit) and _is_quotient(t)]
        for digit in sorted(quotients, key=lambda digit: -digit.low):
            if digit in total.terms:
                total = self._as_remainder(total, digit)
        return total

    def _as_remainder(self, total: QuasiAffine, digit: Digit) -> QuasiAffine:
        """Replace `x // m` in `total` by means of `x % m`, or of `(x // k) % (m / k)`.

        The identities are `m * (x // m) == x - x % m` and, if `k` divides `m`,
        `x // m == (x // k) // (m / k)`.
        """
        count = total.terms[digit]
        for other in total.terms:
            if not isinstance(other, Digit) or not _is_quotient(other) or other.of != digit.of:
                continue
            step, rest = divmod(digit.low, other.low)
            if not rest and step > 1 and count % step == 0:
                return self._swap(total, digit, QuasiAffine({other: 1}), step)
        if count % digit.low:
            return total
        swapped = self._swap(total, digit, digit.whole, digit.low)
        return swapped if len(swapped.terms) < len(total.terms) else total

    def _swap(self, total: QuasiAffine, digit: Digit, x: QuasiAffine, m: int) -> QuasiAffine:
        """Replace `m` times the digit by `x - x % m` in `total`."""
        count = total.terms[digit]
        remainder = self._reader.mod(x, m)
        changed = [(QuasiAffine({digit: 1}), -count), (x, count // m), (remainder, -count // m)]
        return QuasiAffine.added([(total, 1), *changed])

    def _nested(self, total: QuasiAffine, d: int) -> tuple[QuasiAffine, int]:
        """Rewrite `(k*x + y) // (k*m)` as `(x + y//k) // m` if `y // k` exists already."""
        for digit in self._quotients:
            if d % digit.low == 0 and digit.low < d:
                outer, inner = total.plus(digit.whole, -1).split(digit.low)
                if outer.terms and not inner.terms and not inner.const:
                    return outer.plus(QuasiAffine({digit: 1})), d // digit.low
        return total, d


def _is_quotient(digit: Digit) -> bool:
    return digit.low > 1 and digit.high is None


def _comparison(total: QuasiAffine, is_equality: bool, sums: _AffineReader) -> Expr:
    """Return `total == 0` or `total >= 0` as a comparison without negative coefficients."""
    positive = QuasiAffine({term: n for term, n in total.terms.items() if n > 0})
    negative = QuasiAffine({term: -n for term, n in total.terms.items() if n < 0})
    if not positive.terms:
        op = CmpOp.EQ if is_equality else CmpOp.LT
        bound = total.const + (0 if is_equality else 1)
        return Compare(op, sums.expr(negative), Const(bound, INT64))
    if not negative.terms:
        op = CmpOp.EQ if is_equality else CmpOp.GE
        return Compare(op, sums.expr(positive), Const(-total.const, INT64))
    if is_equality:
        left, right = (negative, positive) if total.const > 0 else (positive, negative)
        right = right.shifted(abs(total.const))
        return Compare(CmpOp.EQ, sums.expr(left), sums.expr(right))
    if total.const == -1:
        return Compare(CmpOp.LT, sums.expr(negative), sums.expr(positive))
    if total.const < 0:
        return Compare(CmpOp.LE, sums.expr(negative.shifted(-total.const)), sums.expr(positive))
    return Compare(CmpOp.LE, sums.expr(negative), sums.expr(positive.shifted(total.const)))
