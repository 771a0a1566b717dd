"""Convert expressions to quasi-affine sums and back."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from tecomp.ir.arith.quasi_affine import MAX_DEPTH, Digit, OpaqueTerm, QuasiAffine, Term
from tecomp.ir.nodes.dtype import INT64
from tecomp.ir.nodes.expr import (
    Binary,
    BinOp,
    Broadcast,
    BufferLoad,
    Call,
    Cast,
    Compare,
    Const,
    Expr,
    Ramp,
    Var,
)
from tecomp.ir.traversal.rewrite import children

_INDEX_OPS = (BinOp.ADD, BinOp.SUB, BinOp.MUL, BinOp.FLOORDIV, BinOp.MOD)


def format_sum(
    terms: Sequence[tuple[Expr, int]], const: int, *, numbers_first: bool = False
) -> Expr:
    """Return the expression of a sum of terms times nonzero coefficients, plus a constant.

    Args:
        terms: Expressions with their nonzero coefficients.
        const: Constant summand.
        numbers_first: If True, print `4 * x` instead of `x * 4`. Default: False.
    """
    remaining = list(terms)
    head = next((k for k, (_, n) in enumerate(remaining) if n > 0), None)
    total = Const(const, INT64) if head is None else _scale(*remaining.pop(head), numbers_first)
    for expr, n in remaining:
        part = _scale(expr, abs(n), numbers_first)
        total = Binary(BinOp.ADD if n > 0 else BinOp.SUB, total, part)
    if head is None or not const:
        return total
    return Binary(BinOp.ADD if const > 0 else BinOp.SUB, total, Const(abs(const), INT64))


def same_spelling(a: Expr, b: Expr) -> bool:
    """Return whether two sums have the same syntax tree over identical unknowns."""
    worklist = [(a, b)]
    while worklist:
        x, y = worklist.pop()
        if x is y:
            continue
        match x, y:
            case Binary(op, p, q), Binary(other, r, s) if op is other and op in _INDEX_OPS:
                worklist += [(p, r), (q, s)]
            case Const(value), Const(other) if value == other and x.dtype == y.dtype:
                pass
            case _:
                return False
    return True


def _scale(expr: Expr, coefficient: int, number_first: bool) -> Expr:
    if coefficient == 1:
        return expr
    number = Const(coefficient, INT64)
    return Binary(BinOp.MUL, number, expr) if number_first else Binary(BinOp.MUL, expr, number)


_SUMS = (BinOp.ADD, BinOp.SUB, BinOp.MUL)
_DIVISIONS = (BinOp.FLOORDIV, BinOp.MOD)
MAX_FACTORS = 64
"""Maximum number of factors of a product; repeated squares double the number at each level."""


class TermTable:
    """Table of the key of each expression and of the sum of each int64 scalar, for one analysis.

    Attributes:
        data: Keys of the values that depend on the contents of buffers.
    """

    def __init__(self) -> None:
        self._ids: dict[Any, int] = {}
        # Each entry holds a reference to its node, so that the id is not reused.
        self._keys: dict[int, tuple[Expr, int]] = {}
        self._sums: dict[int, tuple[Expr, QuasiAffine]] = {}
        self._texts: dict[Term, Expr] = {}
        self._factors: dict[int, tuple[int, ...]] = {}
        # A product keeps the factor order of its first occurrence.
        self._products: dict[int, Expr] = {}
        self._single: dict[int, Expr] = {}
        self.data: set[int] = set()
        self._written: dict[tuple[Any, ...], Expr] = {}

    def mark_data(self, var: Var) -> None:
        """Record that the value of `var` depends on the contents of a buffer."""
        self.data.add(self.key(var))

    def is_data(self, key: int) -> bool:
        """Return whether the value of an expression depends on the contents of a buffer."""
        return key in self.data

    def of_data(self, total: QuasiAffine) -> QuasiAffine:
        """Return the terms that depend on the contents of buffers, and the constant."""
        terms = {t: c for t, c in total.terms.items() if self._depends_on_data(t)}
        return QuasiAffine(terms, total.const)

    def _depends_on_data(self, term: Term) -> bool:
        if isinstance(term, Digit) and isinstance(term.of, int):
            return term.of in self.data
        return not self.data.isdisjoint(QuasiAffine({term: 1}).unknowns)

    def key(self, expr: Expr) -> int:
        """Return a number that is equal for equal trees; the order of summands is ignored."""
        found = self._keys.get(id(expr))
        if found is None:
            self._visit(expr)
            found = self._keys[id(expr)]
        return found[1]

    def sum_of(self, expr: Expr) -> QuasiAffine:
        """Return the sum that an int64 scalar expression denotes, without simplification."""
        found = self._sums.get(id(expr))
        if found is None:
            self._visit(expr)
            found = self._sums[id(expr)]
        return found[1]

    def factors(self, term: Term) -> list[Expr]:
        """Return the factors of a term that is a product; an empty list for other terms."""
        number = _number_of(term)
        return [self._single[f] for f in self._factors.get(-1 if number is None else number, ())]

    def product(self, factors: Iterable[Expr]) -> QuasiAffine:
        """Return the product of expressions as a sum."""
        first, *others = factors
        for other in others:
            first = Binary(BinOp.MUL, first, other)
        return self.sum_of(first)

    def listed(self, total: QuasiAffine) -> list[tuple[Expr, int]]:
        """Return the expressions of the terms of a sum, with their coefficients."""
        return [self._scaled_text(term, c) for term, c in total.terms.items()]

    def _scaled_text(self, term: Term, coefficient: int) -> tuple[Expr, int]:
        """Return the expression of a term with its coefficient, and `n` for `n // 16 * 16`."""
        if isinstance(term, Digit) and isinstance(term.of, int) and term.high is None:
            whole = self._texts[Digit(term.of)]
            if term.low > 1 and term.low == _multiple_of(whole) and coefficient % term.low == 0:
                return whole, coefficient // term.low
        return self.text(term), coefficient

    def var(self, term: Term) -> Var | None:
        """Return the variable if a term is a plain variable, else None."""
        number = _number_of(term)
        text = None if number is None else self._texts[term]
        return text if isinstance(text, Var) else None

    def expr(self, total: QuasiAffine, like: Expr | None = None) -> Expr:
        """Return the expression of a sum: the first positive term first, the constant last.

        Sums with equal terms in the same order give the identical object. The first conversion
        adopts `like` if its spelling is the same.
        """
        form = (*total.terms.items(), total.const)
        found = self._written.get(form)
        if found is None:
            found = format_sum(self.listed(total), total.const)
            if like is not None and same_spelling(found, like):
                found = like
            self._written[form] = found
            self._sums.setdefault(id(found), (found, total))
        return found

    def text(self, term: Term) -> Expr:
        """Return the expression of a term, the identical object for each call."""
        found = self._texts.get(term)
        if found is None:
            found = self._texts[term] = self._text(term)
            self._sums.setdefault(id(found), (found, QuasiAffine({term: 1})))
        return found

    def _text(self, term: Term) -> Expr:
        assert isinstance(term, Digit)
        if term.low == 1:
            text = self._whole_text(term.of)
        elif term.high is not None and isinstance(term.of, QuasiAffine) and not (
            self._depends_on_data(term)
        ):
            # Print (x + c*k) // c % d as (x // c + k) % d if nothing can overflow.
            k, rest = divmod(term.of.const, term.low)
            inner = Digit(QuasiAffine(term.of.terms, rest), term.low)
            text = self.expr(QuasiAffine({inner: 1}, k))
        elif term.high is not None:
            text = self.text(Digit(term.of, term.low))
        else:
            text = Binary(BinOp.FLOORDIV, self._whole_text(term.of), Const(term.low, INT64))
        return text if term.size is None else Binary(BinOp.MOD, text, Const(term.size, INT64))

    def _whole_text(self, dividend: int | QuasiAffine) -> Expr:
        return self._texts[Digit(dividend)] if isinstance(dividend, int) else self.expr(dividend)

    def _visit(self, root: Expr) -> None:
        """Enter `root` and all nodes below it into the table, children first."""
        worklist: list[Expr | None] = [root]
        while worklist:
            node = worklist.pop()
            if node is None:  # the children of the next node have been entered
                node = worklist.pop()
                assert node is not None
            elif not isinstance(node, Var | Const) and (
                id(node) not in self._keys and id(node) not in self._sums
            ):
                worklist += (node, None, *children(node)[::-1])
                continue
            if id(node) not in self._keys:
                self._enter(node)

    def _enter(self, node: Expr) -> None:
        """Record the key of a node whose children are recorded, and the sum of an index."""
        is_index, total = node.dtype == INT64, None
        if is_index:
            known = self._sums.get(id(node))
            total = self._sum_of(node) if known is None else known[1]
        if total is not None:
            number = self._number_of_sum(total)
            is_data = bool(self.data) and not self.data.isdisjoint(total.unknowns)
        else:
            keys = [self._keys[id(child)][1] for child in children(node)]
            signature = (type(node).__name__, node.dtype, *_payload(node), *keys)
            number = self._ids.setdefault(signature, len(self._ids))
            is_data = isinstance(node, BufferLoad) or not self.data.isdisjoint(keys)
            if is_index:
                term = Digit(number)
                self._texts.setdefault(term, node)
                total = QuasiAffine({term: 1})
                if (m := _multiple_of(node)) > 1:
                    # n == m * (n // m), so that quotients and remainders by divisors of m vanish.
                    total = QuasiAffine({Digit(number, m): m})
                    number = self._number_of_sum(total)
        if total is not None:
            self._sums.setdefault(id(node), (node, total))
        if is_data:
            self.data.add(number)
        self._keys[id(node)] = (node, number)

    def _number_of_sum(self, total: QuasiAffine) -> int:
        term = total.single()
        number = None if term is None else _number_of(term)
        if number is not None:
            return number
        signature = ("sum", frozenset(total.terms.items()), total.const)
        return self._ids.setdefault(signature, len(self._ids))

    def _sum_of(self, node: Expr) -> QuasiAffine | None:
        if isinstance(node, Const):
            return QuasiAffine({}, int(node.value))
        if not isinstance(node, Binary):
            return None
        if node.op in _DIVISIONS:
            return self._digit(node)
        if node.op not in _SUMS:
            return None
        a, b = self._sums[id(node.a)][1], self._sums[id(node.b)][1]
        if node.op is BinOp.ADD:
            return a.plus(b)
        if node.op is BinOp.SUB:
            return a.plus(b, -1)
        if not b.terms:
            return a.times(b.const)
        return b.times(a.const) if not a.terms else self._product(node, a, b)

    def _digit(self, node: Binary) -> QuasiAffine | None:
        """Return a quotient or remainder of a non-constant sum by a constant above 1, else None."""
        total = self._sums[id(node.a)][1]
        if not isinstance(node.b, Const) or node.b.value < 2 or not total.terms:
            return None
        if total.depth >= MAX_DEPTH:
            return None
        term = _digit_of(total, node.op, int(node.b.value))
        if term not in self._texts:
            spelling = self._text(term)
            self._texts[term] = node if same_spelling(spelling, node) else spelling
            text = self._texts[term]
            self._sums.setdefault(id(text), (text, QuasiAffine({term: 1})))
        return QuasiAffine({term: 1})

    def _product(self, node: Binary, a: QuasiAffine, b: QuasiAffine) -> QuasiAffine | None:
        """Return `(c*x) * (d*y)` as `(c*d) * (x*y)`, independent of the order of the factors.

        Return None above `MAX_FACTORS` factors, as repeated squaring doubles the count at each
        level.
        """
        parts: list[int] = []
        factors: list[tuple[Expr, int]] = []
        for operand, total in ((node.a, a), (node.b, b)):
            single = total.only()
            expr, c = self._scaled_text(*single) if single else (operand, 1)
            if single is None or c != single[1]:
                key = self.key(expr)
            else:
                key = self._number_of_sum(QuasiAffine({single[0]: 1}))
            if key not in self._factors:
                self._single.setdefault(key, expr)
            parts.extend(self._factors.get(key, (key,)))
            factors.append((expr, c))
        if len(parts) > MAX_FACTORS:
            return None
        (x, c), (y, d) = factors
        ordered = tuple(sorted(parts))
        number = self._ids.setdefault(("*", *ordered), len(self._ids))
        self._factors[number] = ordered
        atom = self._products.get(number)
        total = QuasiAffine({Digit(number): 1})
        if atom is None:
            atom = node if (c, d) == (1, 1) else Binary(BinOp.MUL, x, y)
            self._products[number] = atom
            self._texts[Digit(number)] = atom
            self._keys.setdefault(id(atom), (atom, number))
            self._sums.setdefault(id(atom), (atom, total))
        if not self.data.isdisjoint(parts) or not self.data.isdisjoint(a.unknowns | b.unknowns):
            self.data.add(number)
        return total.times(c * d)


def _number_of(term: Term) -> int | None:
    """Return the number of the unknown if a term is a plain unknown, else None."""
    if isinstance(term, OpaqueTerm) or term.low != 1 or term.high is not None:
        return None
    return term.unknown


def _multiple_of(expr: Expr) -> int:
    """Return the declared divisor of a size variable, and 1 for other expressions."""
    return expr.bounds.multiple if isinstance(expr, Var) and expr.bounds is not None else 1


def _digit_of(total: QuasiAffine, op: BinOp, d: int) -> Digit:
    """Return `total // d` or `total % d` as a digit; digits of a digit are merged."""
    term = total.single()
    if isinstance(term, Digit) and (term.high is None or term.high % (term.low * d) == 0):
        if op is BinOp.MOD:
            return Digit(term.of, term.low, term.low * d)
        return Digit(term.of, term.low * d, term.high)
    return Digit(total, d) if op is BinOp.FLOORDIV else Digit(total, 1, d)


def _payload(node: Expr) -> tuple[Any, ...]:
    """Return the attributes of a node that distinguish it from nodes with equal children."""
    match node:
        case Var():
            return (id(node),)
        case Const(value):
            # In Python, 1 == 1.0 == True and 0.0 == -0.0, so the key includes type and repr.
            return (value,) if type(value) is int else (type(value).__name__, repr(value))
        case Binary() | Compare():
            return (node.op,)
        case Call(name):
            return (name,)
        case Ramp() | Broadcast():
            return (node.lanes,)
        case BufferLoad(buffer, _, predicate):
            # Equal keys share one expression object, so loads from different views of a buffer
            # (declared elsewhere, or with simplified extents) need different keys.
            is_fixed = buffer.strides is None and not buffer.has_offset and all(
                isinstance(n, int) for n in buffer.shape)
            view = buffer.shape if is_fixed else id(buffer)
            return (id(buffer.data), buffer.name, predicate is None, view)
        case Cast():
            return ()
    return ()
