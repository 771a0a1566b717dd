"""Bounds and facts known at a program point.

Facts are loop bounds, path conditions and let-bound values. Queries ask whether a sum is at most a
constant. They are answered from constant intervals first, and then by substituting the symbolic
bounds of inner variables, which may refer to outer variables.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import gcd
from typing import Any

from tecomp.ir.arith.intervals import (
    UNKNOWN,
    Interval,
    digit_of,
    greater,
    interval_of_sum,
    less,
    max_bound,
    min_bound,
    product,
)
from tecomp.ir.arith.quasi_affine import Digit, QuasiAffine, Term
from tecomp.ir.arith.quasi_affine_conversion import TermTable
from tecomp.ir.nodes.dtype import INT64
from tecomp.ir.nodes.expr import (
    Binary,
    BinOp,
    Call,
    Cast,
    CmpOp,
    Compare,
    Const,
    Expr,
    Not,
    Select,
    Var,
    integer_range,
)
from tecomp.ir.nodes.operators import OPPOSITE
from tecomp.ir.nodes.stmt import Buffer

_STEPS = 48
_DEPTH = 10
# Maximum number of repeated visits, per statement, of shared expressions under other conditions.
_MAX_REVISITS = 64


@dataclass(frozen=True, slots=True, eq=False)
class _VariableBounds:
    """Bounds of one variable: constant interval, symbolic lower and symbolic upper bounds."""

    depth: int
    interval: Interval
    low: tuple[QuasiAffine, ...] = ()
    high: tuple[QuasiAffine, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class _UpperBounds:
    """Upper bounds of `scale` times a sum: the largest of them if `needs_all`, otherwise each."""

    sums: list[QuasiAffine]
    needs_all: bool
    scale: int = 1


class ConstraintContext:
    """Facts that hold at the current program point; `enter` and `leave` delimit inner scopes.

    Attributes:
        terms: Keys and sums of expressions.
        values: Substitutions of variables by simpler expressions.
        memo: Results by node id, valid as long as the facts do not change.
        buffers: Simplified declarations of buffers with symbolic extents, by `buffer_key`.
        simple: Ids of nodes that are already simplified under the facts of their context.
        keeps_periods: False: `x % d` is simplified to x if `0 <= x < d`.
    """

    keeps_periods = False

    def __init__(self) -> None:
        self.terms = TermTable()
        self.values: dict[Var, Expr] = {}
        self.memo: dict[int, tuple[Any, Any]] = {}
        self.buffers: dict[tuple[Any, ...], Buffer] = {}
        self.simple: frozenset[int] = frozenset()
        self._facts: dict[Term, _VariableBounds] = {}
        self._sums: dict[frozenset[tuple[Term, int]], Interval] = {}
        self._holds: dict[int, bool] = {}
        self._intervals: dict[Term, Interval] = {}
        self._nesting = 0
        self.begin()

    def begin(self) -> None:
        """Reset the visit counts at the start of a statement."""
        # Nodes that were visited under a condition, and the number of repeated visits.
        self._visited: dict[int, Any] = {}
        self._revisit = 0

    def enter(self, node: Any = None) -> Any:
        """Open a scope for further facts and return the state that `leave` restores.

        Args:
            node: Expression that is analyzed in the scope, if any. A shared expression is analyzed
                under each combination of conditions, which is exponential in the nesting depth.
                Therefore, after `_MAX_REVISITS` repeated visits, no scope is opened for an
                expression visited before, and the result is None.
        """
        if node is not None:
            if id(node) in self._visited:
                if self._revisit == _MAX_REVISITS:
                    return None
                self._revisit += 1
            self._visited[id(node)] = node
        state = (self.values, self.memo, self._facts, self._sums, self._holds, self._intervals,
                 self.buffers)
        self.values, self._facts = dict(self.values), dict(self._facts)
        self.buffers = dict(self.buffers)
        self._sums, self._holds = dict(self._sums), dict(self._holds)
        self.memo, self._intervals = {}, {}
        return state

    def leave(self, state: Any) -> None:
        """Restore the facts that held before `enter`."""
        (self.values, self.memo, self._facts, self._sums, self._holds, self._intervals,
         self.buffers) = state

    def buffer_key(self, buffer: Buffer) -> tuple[Any, ...] | None:
        """Return a key that distinguishes views of one memory; None if all extents are constant."""
        extents = buffer.entries
        if all(isinstance(extent, int) for extent in extents):
            return None
        return (buffer.data, buffer.dtype, buffer.axis_separators, len(buffer.shape),
                *(n if isinstance(n, int) else ("expr", self.terms.key(n)) for n in extents))

    def buffer(self, buffer: Buffer) -> Buffer:
        """Return the simplified declaration of `buffer`, if there is one."""
        if not self.buffers:
            return buffer
        key = self.buffer_key(buffer)
        return buffer if key is None else self.buffers.get(key, buffer)

    def bind(self, var: Var, low: QuasiAffine | None, high: QuasiAffine | None) -> None:
        """Record `low <= var <= high`; None means unbounded."""
        interval = (
            self.interval(low)[0] if low is not None else None,
            self.interval(high)[1] if high is not None else None,
        )
        single = self.terms.sum_of(var).only()
        assert single is not None
        term, multiple = single
        self._facts[term] = _VariableBounds(
            len(self._facts), digit_of(interval, multiple, None),
            (low,) if low is not None and low.terms else (),
            (high,) if high is not None and high.terms else (),
        )
        self.memo, self._intervals = {}, {}

    def assume(self, condition: Expr, *, holds: bool = True) -> None:
        """Assume that `condition` is true, or false if `holds` is False."""
        worklist = [(condition, holds)]
        while worklist:
            node, truth = worklist.pop()
            match node:
                case Binary(BinOp.AND, a, b) if truth:
                    worklist += [(b, truth), (a, truth)]
                case Binary(BinOp.OR, a, b) if not truth:
                    worklist += [(b, truth), (a, truth)]
                case Not(a):
                    worklist.append((a, not truth))
                case _ if node.dtype.lanes == 1 and not self.is_data(node):
                    self._holds[self.terms.key(node)] = truth
                    if isinstance(node, Compare) and node.a.dtype == INT64:
                        op = node.op if truth else OPPOSITE[node.op]
                        left, right = self.terms.sum_of(node.a), self.terms.sum_of(node.b)
                        if self.is_exact(left) and self.is_exact(right):
                            self._compared(op, left.plus(right, -1))
        self.memo, self._intervals = {}, {}

    def tells(self, condition: Expr) -> bool:
        """Return whether a part of `condition` constrains indices and can therefore be assumed.

        Conditions on data give no facts. Opening a scope for them would discard the memo and double
        the work at each nesting level.
        """
        worklist = [condition]
        while worklist:
            node = worklist.pop()
            match node:
                case Binary(BinOp.AND | BinOp.OR, a, b):
                    worklist += [a, b]
                case Not(a):
                    worklist.append(a)
                case _ if node.dtype.lanes == 1 and not self.is_data(node):
                    return True
        return False

    def truth(self, condition: Expr) -> bool | None:
        """Return the assumed truth value of `condition`, or None if there is none."""
        return self._holds.get(self.terms.key(condition))

    def _compared(self, op: CmpOp, total: QuasiAffine) -> None:
        if not total.terms:
            return
        if op in (CmpOp.LT, CmpOp.LE, CmpOp.EQ):
            self._at_most(total, -1 if op is CmpOp.LT else 0)
        if op in (CmpOp.GT, CmpOp.GE, CmpOp.EQ):
            self._at_most(total.times(-1), -1 if op is CmpOp.GT else 0)

    def _at_most(self, total: QuasiAffine, limit: int) -> None:
        """Record `total <= limit`."""
        limit -= total.const
        parts, scale = _canonical(total)
        low, high = self._sums.get(parts, UNKNOWN)
        if scale < 0:
            # -c*x <= k == x >= -(k // c)
            self._sums[parts] = (greater(low, -(limit // -scale)), high)
        else:
            # c*x <= k == x <= k // c
            self._sums[parts] = (low, less(high, limit // scale))
        inner = max(total.terms, key=self._depth)
        c = total.terms[inner]
        if self.terms.var(inner) is None:
            return
        known = self._facts.get(
            inner, _VariableBounds(len(self._facts), self._term_interval(inner))
        )
        rest = _drop_term(total, inner, -limit)
        # c*x + rest <= 0 implies x <= -rest/c for positive c and x >= rest/-c for negative c.
        low, high = known.interval
        lows, highs = known.low, known.high
        if c > 0:
            rest_min = self.interval(rest)[0]
            high = less(high, -rest_min // c if rest_min is not None else None)
            highs = (*highs, rest.times(-1)) if c == 1 and rest.terms else highs
        else:
            rest_min = self.interval(rest)[0]
            low = greater(low, -(-rest_min // -c) if rest_min is not None else None)
            lows = (*lows, rest) if c == -1 and rest.terms else lows
        self._facts[inner] = _VariableBounds(known.depth, (low, high), lows[-4:], highs[-4:])
        self.memo, self._intervals = {}, {}

    def _depth(self, term: Term) -> int:
        known = self._facts.get(term)
        return known.depth if known else (-1 if self.terms.var(term) is None else 0)

    def is_exact(self, total: QuasiAffine) -> bool:
        """Return whether a sum provably does not overflow int64.

        Index variables are assumed not to overflow; values loaded from memory are arbitrary.
        """
        if not self.terms.data:
            return True
        data = self.terms.of_data(total)
        if not data.terms:
            return True
        low, high = self.interval(data)
        type_min, type_max = integer_range(INT64)
        return low is not None and high is not None and type_min <= low and high <= type_max

    def is_data(self, expr: Expr) -> bool:
        """Return whether the value of `expr` depends on the contents of a buffer."""
        return self.terms.is_data(self.terms.key(expr))

    def let(self, var: Var, value: Expr) -> None:
        """Record that `var` is bound to `value`."""
        if self.is_data(value):
            self.terms.mark_data(var)
        elif var.dtype == INT64:
            total = self.terms.sum_of(value)
            self.bind(var, total, total)

    def interval(self, total: QuasiAffine) -> Interval:
        """Return the minimum and maximum of a sum, as far as constants determine them."""
        if not total.terms:
            return total.const, total.const
        low, high = interval_of_sum(total.const, total.terms, self._interval_of)
        if self._sums:
            parts, scale = _canonical(total)
            lower, upper = self._sums.get(parts, UNKNOWN)
            if scale < 0:
                lower, upper = upper, lower
            low = greater(low, None if lower is None else scale * lower + total.const)
            high = less(high, None if upper is None else scale * upper + total.const)
        return low, high

    def is_within(self, total: QuasiAffine, end: int) -> bool:
        """Return whether `0 <= total < end` is proved."""
        return self.at_least(total, 0) and self.at_most(total, end - 1)

    def at_most(self, total: QuasiAffine, limit: int) -> bool:
        """Return whether `total <= limit` is proved."""
        return self._search(total, limit, [_STEPS], _DEPTH)

    def at_least(self, total: QuasiAffine, limit: int) -> bool:
        """Return whether `total >= limit` is proved."""
        return self.at_most(total.times(-1), -limit)

    def _search(self, total: QuasiAffine, limit: int, steps: list[int], depth: int) -> bool:
        high = self.interval(total)[1]
        if high is not None and high <= limit:
            return True
        steps[0] -= 1
        if steps[0] < 0 or depth == 0:
            return False
        chosen = self._next(total)
        if chosen is None:
            return False
        decide: Callable[[Any], bool] = all if chosen.needs_all else any
        # total <= limit if scale * total < scale * (limit + 1)
        limit = chosen.scale * (limit + 1) - 1
        return decide(self._search(bound, limit, steps, depth - 1) for bound in chosen.sums)

    def greatest(self, total: QuasiAffine) -> int | None:
        """Return the smallest constant upper bound of `total` that the search finds, or None."""
        return self._greatest(total, [_STEPS], _DEPTH)

    def _greatest(self, total: QuasiAffine, steps: list[int], depth: int) -> int | None:
        high = self.interval(total)[1]
        steps[0] -= 1
        chosen = self._next(total) if steps[0] > 0 and depth > 0 and len(total.terms) > 1 else None
        if chosen is None:
            return high
        found = [self._greatest(bound, steps, depth - 1) for bound in chosen.sums]
        known = [value // chosen.scale for value in found if value is not None]
        if chosen.needs_all and len(known) == len(found):
            return less(high, max(known))
        return less(high, min(known)) if known and not chosen.needs_all else high

    def _next(self, total: QuasiAffine) -> _UpperBounds | None:
        """Return upper bounds of `total` without one of its terms."""
        best: tuple[int, Term] | None = None
        for term, c in total.terms.items():
            rank = self._rank(term, c)
            if rank is not None and (best is None or rank > best[0]):
                best = (rank, term)
        return self._bounds(total, best[1]) if best else None

    def _rank(self, term: Term, c: int) -> int | None:
        """Return the substitution priority: choices, inner before outer variables, quotients."""
        if isinstance(term, Digit) and term.low > 1:
            return 0 if term.high is None else None
        match self.terms.text(term):
            case Binary(BinOp.MIN | BinOp.MAX) | Select():
                return 1 << 30
            case Call("if_then_else"):
                return 1 << 30
            case Var():
                known = self._facts.get(term)
                has = known and (known.high if c > 0 else known.low)
                return known.depth + 1 if known and has else None
        return None

    def _bounds(self, total: QuasiAffine, term: Term) -> _UpperBounds:
        c = total.terms[term]
        rest = _drop_term(total, term, total.const)
        if isinstance(term, Digit) and term.low > 1:
            # (x - d + 1) / d <= x // d <= x / d
            bound = term.whole if c > 0 else term.whole.shifted(1 - term.low)
            common = gcd(c, term.low)
            scale = term.low // common
            return _UpperBounds([rest.times(scale).plus(bound, c // common)], True, scale)
        sum_of = self.terms.sum_of
        match self.terms.text(term):
            case Binary(BinOp.MIN | BinOp.MAX as op, a, b):
                sums = [rest.plus(sum_of(a), c), rest.plus(sum_of(b), c)]
                return _UpperBounds(sums, (op is BinOp.MIN) != (c > 0))
            case Select(_, a, b) | Call("if_then_else", (_, a, b)):
                return _UpperBounds([rest.plus(sum_of(a), c), rest.plus(sum_of(b), c)], True)
        known = self._facts[term]
        forms = [rest.plus(form, c) for form in (known.high if c > 0 else known.low)]
        number = known.interval[1 if c > 0 else 0]
        if number is not None:
            forms.append(rest.shifted(c * number))
        return _UpperBounds(forms, False)

    def _interval_of(self, term: Term) -> Interval:
        known = self._facts.get(term)
        if known is not None:
            return known.interval
        found = self._intervals.get(term)
        if found is None:
            # Limit the recursion depth for deeply nested terms.
            self._nesting += 1
            found = self._term_interval(term) if self._nesting < _DEPTH else (
                self._any(self.terms.text(term)))
            self._nesting -= 1
            self._intervals[term] = found
        return found

    def _any(self, atom: Expr) -> Interval:
        return integer_range(INT64) if self.is_data(atom) else UNKNOWN

    def _value(self, expr: Expr) -> Interval:
        """Return the interval of an operand; data operands can wrap around."""
        return self._value_of(self.terms.sum_of(expr))

    def _value_of(self, total: QuasiAffine) -> Interval:
        return self.interval(total) if self.is_exact(total) else integer_range(INT64)

    def _term_interval(self, term: Term) -> Interval:
        if not isinstance(term, Digit) or (term.low == 1 and term.high is None):
            return self._unknown_interval(self.terms.text(term))
        return digit_of(self._value_of(term.whole), term.low, term.size)

    def _unknown_interval(self, atom: Expr) -> Interval:
        match atom:
            case Var():
                return self._any(atom)
            case Binary(BinOp.MIN | BinOp.MAX as op, a, b):
                x, y = self._value(a), self._value(b)
                if op is BinOp.MIN:
                    return min_bound(x[0], y[0]), less(x[1], y[1])
                return greater(x[0], y[0]), max_bound(x[1], y[1])
            case Binary(BinOp.MUL, a, b):
                return self._within(atom, product(self._value(a), self._value(b)))
            case Binary(BinOp.BITAND, _, Const(mask)) if mask >= 0:
                return 0, int(mask)
            case Select(_, a, b) | Call("if_then_else", (_, a, b)):
                x, y = self._value(a), self._value(b)
                return min_bound(x[0], y[0]), max_bound(x[1], y[1])
            case Cast(_, value) if value.dtype.bits < 64 and not value.dtype.is_float:
                return (0, 1) if value.dtype.is_bool else integer_range(value.dtype)
        return self._any(atom)

    def _within(self, atom: Expr, interval: Interval) -> Interval:
        type_min, type_max = integer_range(INT64)
        low, high = interval
        fits = low is not None and high is not None and type_min <= low and high <= type_max
        return interval if fits or not self.is_data(atom) else (type_min, type_max)


def _drop_term(total: QuasiAffine, term: Term, const: int) -> QuasiAffine:
    """Return `const` plus the terms of `total` other than `term`."""
    return QuasiAffine({other: c for other, c in total.terms.items() if other != term}, const)


def _canonical(total: QuasiAffine) -> tuple[frozenset[tuple[Term, int]], int]:
    """Return the terms divided by their signed common factor, and this factor.

    A sum and its multiples, including negative ones, give the same terms.
    """
    if len(total.terms) == 1:
        ((term, scale),) = total.terms.items()
        return frozenset(((term, 1),)), scale
    scale = total.factor()
    if total.terms[min(total.terms, key=hash)] < 0:
        scale = -scale
    parts = total.terms.items()
    return frozenset(parts if scale == 1 else [(term, c // scale) for term, c in parts]), scale
