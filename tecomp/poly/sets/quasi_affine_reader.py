"""Read index expressions as quasi-affine sums.

Most layouts are sums of digits of the axes. Extents, inverses and collisions of such a sum follow
directly from its digits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from operator import and_, or_, xor

from tecomp.ir.arith.intervals import UNKNOWN, Interval, digit_of, greater, interval_of_sum, less
from tecomp.ir.arith.quasi_affine import MAX_DEPTH, Digit, OpaqueTerm, QuasiAffine, Term
from tecomp.ir.arith.quasi_affine_conversion import format_sum
from tecomp.ir.arith.rewrite_rules import floordiv, modulo, recombine_digits
from tecomp.ir.nodes.dtype import INT64
from tecomp.ir.nodes.expr import Binary, BinOp, Cast, Const, Expr, Var, binary
from tecomp.ir.traversal.rewrite import fold

_OF_NUMBERS = {BinOp.BITXOR: xor, BinOp.BITAND: and_, BinOp.BITOR: or_}


@dataclass(frozen=True, slots=True)
class IndexReader:
    """Reader of expressions over a set of axes.

    Attributes:
        axes: Position of each axis variable.
        bounds: Least and greatest value of each axis; None where there is no bound.
        keeps_periods: If True, keep `x % 16` where `x < 16`. The value equals `x`, but the user
            requested an extent of 16.
        assumed: Bounds of sums without a constant, in addition to the bounds that follow from
            the axes.
    """

    axes: Mapping[Var, int]
    bounds: Sequence[Interval]
    keeps_periods: bool = False
    assumed: Mapping[QuasiAffine, Interval] = field(default_factory=dict)

    def form(self, root: Expr) -> QuasiAffine | None:
        """Return `root` as a sum, or None if it has an operation that a sum cannot express."""
        if isinstance(root, Var) and root in self.axes:
            return self.digit(Digit(self.axes[root]))
        return fold(root, self._node, _operands)

    def exact(self, form: QuasiAffine | None, expr: Expr) -> QuasiAffine | None:
        """Return the sum of `expr` without redundant periods, given its `form` with all periods."""
        if form is None or any(term.unknown is None for term in form.terms):
            return self.form(expr)
        parts = [(QuasiAffine({}, form.const), 1)]
        for term, n in form.terms.items():
            assert isinstance(term, Digit)
            quotient = Digit(term.of, term.low)
            ends = self.interval_of(quotient)
            is_whole = digit_of(ends, 1, term.size) == ends
            parts.append((QuasiAffine({quotient if is_whole else term: 1}), n))
        return self.normal(QuasiAffine.added(parts))

    def _node(self, node: Expr, operands: list[QuasiAffine | None]) -> QuasiAffine | None:
        match node:
            case Var() if node in self.axes:
                return self.digit(Digit(self.axes[node]))
            case Const(int() as value) if node.dtype.is_integer:
                return QuasiAffine({}, int(value))
            case Cast(dtype) if dtype.is_integer and operands[0] is not None:
                return operands[0] if node.value.dtype.is_integer else None
            case Binary(op):
                a, b = operands
                result = None if a is None or b is None else self.operation(op, a, b)
                return None if result is None or result.depth > MAX_DEPTH else result
        return None

    def operation(self, op: BinOp, a: QuasiAffine, b: QuasiAffine) -> QuasiAffine | None:
        """Return `a op b`, or None if a layout may not contain the operation."""
        match op:
            case BinOp.ADD:
                return self.plus(a, b)
            case BinOp.SUB:
                return self.plus(a, b, -1)
            case BinOp.MUL if not b.terms:
                return a.times(b.const)
            case BinOp.MUL if not a.terms:
                return b.times(a.const)
            case BinOp.FLOORDIV if not b.terms and b.const > 0:
                return self.floordiv(a, b.const)
            case BinOp.MOD if not b.terms and b.const > 0:
                return self.mod(a, b.const)
        return self._bits(op, a, b)

    def _bits(self, op: BinOp, a: QuasiAffine, b: QuasiAffine) -> QuasiAffine | None:
        if op in _OF_NUMBERS and not a.terms and not b.terms:
            return QuasiAffine({}, _OF_NUMBERS[op](a.const, b.const))
        if op in _OF_NUMBERS and not a.terms:
            a, b = b, a
        number = None if b.terms else b.const
        match op:
            case BinOp.SHL if number is not None and 0 <= number < 63:
                return a.times(2**number)
            case BinOp.SHR if number is not None and 0 <= number < 63:
                return self.floordiv(a, 2**number)
            case BinOp.BITAND if number is not None and _is_power(number + 1):
                return self.mod(a, number + 1)
            case BinOp.BITAND if number is not None and number < 0 and _is_power(-number):
                return self.plus(a, self.mod(a, -number), -1)
            case BinOp.BITXOR | BinOp.BITOR if number == 0:
                return a
            case BinOp.BITOR if self._are_disjoint(a, b) or self._are_disjoint(b, a):
                return self.plus(a, b)
            case BinOp.BITXOR | BinOp.BITAND | BinOp.BITOR:
                return QuasiAffine({OpaqueTerm(op, (a, b)): 1})
        return None

    def _are_disjoint(self, upper: QuasiAffine, lower: QuasiAffine) -> bool:
        low, high = self.interval(lower)
        if low is None or high is None or low < 0:
            return False
        unit = 1 << high.bit_length()
        at_least = self.interval(upper)[0]
        return at_least is not None and at_least >= 0 and all(
            n % unit == 0 for n in (upper.const, *upper.terms.values())
        )

    def digit(self, digit: Digit) -> QuasiAffine:
        """Return a digit as a sum, which is 0 if 0 is the only value of the digit."""
        is_zero = not self.keeps_periods and self.interval_of(digit) == (0, 0)
        return QuasiAffine() if is_zero else QuasiAffine({digit: 1})

    def plus(self, a: QuasiAffine, b: QuasiAffine, factor: int = 1) -> QuasiAffine:
        """Return `a + factor * b`."""
        return self.normal(a.plus(b, factor))

    def floordiv(self, a: QuasiAffine, divisor: int) -> QuasiAffine:
        """Return `a // divisor` for a positive divisor."""
        return self.normal(floordiv(self, a, divisor))

    def mod(self, a: QuasiAffine, divisor: int) -> QuasiAffine:
        """Return `a % divisor` for a positive divisor."""
        return self.normal(modulo(self, a, divisor))

    def normal(self, total: QuasiAffine) -> QuasiAffine:
        """Merge adjacent digits of `total`, remove terms that are always 0, and sort the terms."""
        if not total.terms:
            return total
        if not self.keeps_periods:
            nonzero = {t: n for t, n in total.terms.items() if self.interval_of(t) != (0, 0)}
            if len(nonzero) < len(total.terms):
                total = QuasiAffine(nonzero, total.const)
        if len(total.terms) < 2:
            return total
        total = recombine_digits(self, total)
        return QuasiAffine(dict(sorted(total.terms.items(), key=_order)), total.const)

    def is_exact(self, total: QuasiAffine) -> bool:
        """Return True: indices do not wrap around."""
        return True

    def is_within(self, total: QuasiAffine, end: int) -> bool:
        """Return whether `0 <= total < end` is certain."""
        low, high = self.interval(total)
        return low is not None and high is not None and low >= 0 and high < end

    def interval(self, total: QuasiAffine) -> Interval:
        """Return the bounds of a sum, with its terms taken as independent."""
        low, high = interval_of_sum(total.const, total.terms, self.interval_of)
        if self.assumed and total.terms:
            lower, upper = self.assumed.get(total.shifted(-total.const), UNKNOWN)
            low = greater(low, None if lower is None else lower + total.const)
            high = less(high, None if upper is None else upper + total.const)
        return low, high

    def interval_of(self, term: Term) -> Interval:
        """Return the bounds of one term."""
        if isinstance(term, OpaqueTerm):
            return self._interval_of_bits(term)
        if term.size is not None and self.keeps_periods:
            return 0, term.size - 1
        x = self.bounds[term.of] if isinstance(term.of, int) else self.interval(term.of)
        return digit_of(x, term.low, term.size)

    def _interval_of_bits(self, term: OpaqueTerm) -> Interval:
        (low, high), (low_b, high_b) = map(self.interval, term.operands)
        if low is None or low_b is None or high is None or high_b is None or min(low, low_b) < 0:
            return UNKNOWN
        if term.op is BinOp.BITAND:
            return 0, min(high, high_b)
        return 0, (1 << max(high, high_b).bit_length()) - 1


def expr_of(total: QuasiAffine, axes: Sequence[Expr]) -> Expr:
    """Return `total` as an expression, by descending coefficients with negative terms last."""
    total = _with_const_inside(total)
    texts = [(_text(term, axes), n) for term, n in total.terms.items()]
    texts.sort(key=lambda text: (text[1] < 0, -abs(text[1])))
    return format_sum(texts, total.const, numbers_first=True)


def _with_const_inside(total: QuasiAffine) -> QuasiAffine:
    """Rewrite `(x + c) // d - k` as `(x + c - k*d) // d`, which has a single constant."""
    if not total.const:
        return total
    for term, n in total.terms.items():
        if n == 1 and isinstance(term, Digit) and isinstance(term.of, QuasiAffine) and (
            term.high is None and term.of.const
        ):
            digit = Digit(term.of.shifted(total.const * term.low), term.low)
            return QuasiAffine(total.terms).replaced((term,), QuasiAffine({digit: 1}))
    return total


def _text(term: Term, axes: Sequence[Expr]) -> Expr:
    if isinstance(term, OpaqueTerm):
        a, b = (expr_of(operand, axes) for operand in term.operands)
        return Binary(term.op, a, b)
    if isinstance(term.of, int):
        value = axes[term.of]
    elif term.high is not None and 2 * term.of.const > term.high:
        value = expr_of(term.of.shifted(-term.high), axes)
    else:
        value = expr_of(term.of, axes)
    if term.low > 1:
        value = binary(BinOp.FLOORDIV, value, Const(term.low, INT64))
    return value if term.size is None else binary(BinOp.MOD, value, Const(term.size, INT64))


def _operands(node: Expr) -> tuple[Expr, ...]:
    if isinstance(node, Binary):
        return node.a, node.b
    return (node.value,) if isinstance(node, Cast) else ()


def _is_power(number: int) -> bool:
    return number > 0 and number & (number - 1) == 0


def _order(entry: tuple[Term, int]) -> tuple[int, int, int]:
    term = entry[0]
    if isinstance(term, OpaqueTerm) or not isinstance(term.of, int):
        return 1, 0, 0
    return 0, term.of, term.low
