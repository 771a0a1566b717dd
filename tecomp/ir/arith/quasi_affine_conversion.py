"""Convert expressions to quasi-affine sums and back."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from tecomp.ir.arith.quasi_affine import DEEPEST, Digit, Opaque, QuasiAffine, Term
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
from tecomp.ir.traversal.rewrite import children, post_order

_INDEX_OPS = (BinOp.ADD, BinOp.SUB, BinOp.MUL, BinOp.FLOORDIV, BinOp.MOD)


def written(
    terms: Sequence[tuple[Expr, int]], const: int, *, numbers_first: bool = False
) -> Expr:
    """The sum of each expression times its coefficient, none of which is 0, and a constant.

    Args:
        terms: the expressions and their coefficients.
        const: the constant.
        numbers_first: whether to write `4 * x` rather than `x * 4`.
    """
    rest = list(terms)
    head = next((k for k, (_, n) in enumerate(rest) if n > 0), None)
    total = Const(const, INT64) if head is None else _scaled(*rest.pop(head), numbers_first)
    for expr, n in rest:
        part = _scaled(expr, abs(n), numbers_first)
        total = Binary(BinOp.ADD if n > 0 else BinOp.SUB, total, part)
    if head is None or not const:
        return total
    return Binary(BinOp.ADD if const > 0 else BinOp.SUB, total, Const(abs(const), INT64))


def spelled_alike(a: Expr, b: Expr) -> bool:
    """Whether two sums are written in the same way, of the same unknowns."""
    todo = [(a, b)]
    while todo:
        x, y = todo.pop()
        if x is y:
            continue
        match x, y:
            case Binary(op, p, q), Binary(other, r, s) if op is other and op in _INDEX_OPS:
                todo += [(p, r), (q, s)]
            case Const(value), Const(other) if value == other and x.dtype == y.dtype:
                pass
            case _:
                return False
    return True


def _scaled(expr: Expr, coefficient: int, number_first: bool) -> Expr:
    if coefficient == 1:
        return expr
    number = Const(coefficient, INT64)
    return Binary(BinOp.MUL, number, expr) if number_first else Binary(BinOp.MUL, expr, number)


_SUMS = (BinOp.ADD, BinOp.SUB, BinOp.MUL)
_DIVISIONS = (BinOp.FLOORDIV, BinOp.MOD)
_MOST_FACTORS = 64


class Terms:
    """Gives every tree its key and every int64 scalar its sum, for the time of one analysis."""

    def __init__(self) -> None:
        self._ids: dict[Any, int] = {}
        # The node is kept beside its key so that its id is not given to another.
        self._keys: dict[int, tuple[Expr, int]] = {}
        self._sums: dict[int, tuple[Expr, QuasiAffine]] = {}
        self._texts: dict[Term, Expr] = {}
        self._factors: dict[int, tuple[int, ...]] = {}
        # A product is written in one way, that in which it came first.
        self._products: dict[int, Expr] = {}
        self._single: dict[int, Expr] = {}
        self._data: set[int] = set()
        self._written: dict[tuple[Any, ...], Expr] = {}

    def mark_data(self, var: Var) -> None:
        """`var` has a value that comes from the contents of a buffer."""
        self._data.add(self.key(var))

    def is_data(self, key: int) -> bool:
        """Whether the value of a tree depends on the contents of a buffer."""
        return key in self._data

    def of_data(self, total: QuasiAffine) -> QuasiAffine:
        """The terms that depend on the contents of buffers, and the constant."""
        terms = {t: c for t, c in total.terms.items() if self._depends_on_data(t)}
        return QuasiAffine(terms, total.const)

    def _depends_on_data(self, term: Term) -> bool:
        if isinstance(term, Digit) and isinstance(term.of, int):
            return term.of in self._data
        return not self._data.isdisjoint(QuasiAffine({term: 1}).unknowns)

    @property
    def has_data(self) -> bool:
        """Whether there is any value that depends on the contents of a buffer."""
        return bool(self._data)

    def key(self, expr: Expr) -> int:
        """The same number for the same tree; sums are the same in any order."""
        found = self._keys.get(id(expr))
        if found is None:
            self._visit(expr)
            found = self._keys[id(expr)]
        return found[1]

    def sum_of(self, expr: Expr) -> QuasiAffine:
        """`expr`, an int64 scalar, as a sum of what is written; nothing is simplified."""
        found = self._sums.get(id(expr))
        if found is None:
            self._visit(expr)
            found = self._sums[id(expr)]
        return found[1]

    def factors(self, term: Term) -> list[Expr]:
        """What a term is the product of; nothing if it is none."""
        number = _number_of(term)
        return [self._single[f] for f in self._factors.get(-1 if number is None else number, ())]

    def product(self, factors: Iterable[Expr]) -> QuasiAffine:
        """The product of some expressions."""
        first, *others = factors
        for other in others:
            first = Binary(BinOp.MUL, first, other)
        return self.sum_of(first)

    def listed(self, total: QuasiAffine) -> list[tuple[Expr, int]]:
        """The terms of a sum, written out, and their coefficients."""
        return [(self.text(term), c) for term, c in total.terms.items()]

    def var(self, term: Term) -> Var | None:
        """The variable that a term is, if it is one."""
        number = _number_of(term)
        text = None if number is None else self._texts[term]
        return text if isinstance(text, Var) else None

    def expr(self, total: QuasiAffine, like: Expr | None = None) -> Expr:
        """The sum written out: the first positive term first, the constant last.

        The same sum is the same object each time; `like` itself where it is written so.
        """
        form = (*total.terms.items(), total.const)
        found = self._written.get(form)
        if found is None:
            found = written(self.listed(total), total.const)
            if like is not None and spelled_alike(found, like):
                found = like
            self._written[form] = found
            self._sums.setdefault(id(found), (found, total))
        return found

    def text(self, term: Term) -> Expr:
        """A term written out, the same object each time."""
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
            # (x + c*k) // c % d is written (x // c + k) % d, where nothing wraps around.
            k, rest = divmod(term.of.const, term.low)
            inner = Digit(QuasiAffine(term.of.terms, rest), term.low)
            text = self.expr(QuasiAffine({inner: 1}, k))
        elif term.high is not None:
            text = self.text(Digit(term.of, term.low))
        else:
            text = Binary(BinOp.FLOORDIV, self._whole_text(term.of), Const(term.low, INT64))
        return text if term.size is None else Binary(BinOp.MOD, text, Const(term.size, INT64))

    def _whole_text(self, of: int | QuasiAffine) -> Expr:
        return self._texts[Digit(of)] if isinstance(of, int) else self.expr(of)

    def _visit(self, root: Expr) -> None:
        for node in post_order(root, parts=self._unknown_parts):
            if id(node) not in self._keys:
                self._enter(node)

    def _unknown_parts(self, node: Expr) -> Sequence[Expr]:
        """What has to be entered before `node`."""
        return () if id(node) in self._keys or id(node) in self._sums else children(node)

    def _enter(self, node: Expr) -> None:
        if node.dtype == INT64:
            if id(node) not in self._sums:
                total = self._sum_of(node)
                self._sums[id(node)] = node, self._unknown(node) if total is None else total
            total = self._sums[id(node)][1]
            number = self._number_of_sum(total)
            is_data = not self._data.isdisjoint(total.unknowns) if self._data else False
        else:
            number = self._number(self._signature(node))
            is_data = isinstance(node, BufferLoad) or self._has_data(node)
        if is_data:
            self._data.add(number)
        self._keys[id(node)] = (node, number)

    def _unknown(self, node: Expr) -> QuasiAffine:
        """`node` as an unknown."""
        number = self._number(self._signature(node))
        if isinstance(node, BufferLoad) or self._has_data(node):
            self._data.add(number)
        term = Digit(number)
        self._texts.setdefault(term, node)
        return QuasiAffine({term: 1})

    def _has_data(self, node: Expr) -> bool:
        return bool(self._data) and any(
            self._keys[id(child)][1] in self._data for child in children(node)
        )

    def _number_of_sum(self, total: QuasiAffine) -> int:
        term = total.single()
        number = None if term is None else _number_of(term)
        if number is not None:
            return number
        return self._number(("sum", frozenset(total.terms.items()), total.const))

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
        """A quotient or a remainder by a number above 1, of what is no number itself."""
        total = self._sums[id(node.a)][1]
        if not isinstance(node.b, Const) or node.b.value < 2 or not total.terms:
            return None
        if total.depth >= DEEPEST:
            return None
        term = _digit_of(total, node.op, int(node.b.value))
        if term not in self._texts:
            made = self._text(term)
            self._texts[term] = node if spelled_alike(made, node) else made
            text = self._texts[term]
            self._sums.setdefault(id(text), (text, QuasiAffine({term: 1})))
        return QuasiAffine({term: 1})

    def _product(self, node: Binary, a: QuasiAffine, b: QuasiAffine) -> QuasiAffine | None:
        """`(c*x) * (d*y)` as `(c*d) * (x*y)`, in whatever order the factors are written.

        None for one of very many factors: a square of squares has twice as many at each level.
        """
        parts: list[int] = []
        factors: list[tuple[Expr, int]] = []
        for side, total in ((node.a, a), (node.b, b)):
            alone = total.only()
            expr, c = (self.text(alone[0]), alone[1]) if alone else (side, 1)
            key = self._number_of_sum(QuasiAffine({alone[0]: 1})) if alone else self.key(side)
            if key not in self._factors:
                self._single.setdefault(key, expr)
            parts.extend(self._factors.get(key, (key,)))
            factors.append((expr, c))
        if len(parts) > _MOST_FACTORS:
            return None
        (x, c), (y, d) = factors
        ordered = tuple(sorted(parts))
        number = self._number(("*", *ordered))
        self._factors[number] = ordered
        atom = self._products.get(number)
        total = QuasiAffine({Digit(number): 1})
        if atom is None:
            atom = node if (c, d) == (1, 1) else Binary(BinOp.MUL, x, y)
            self._products[number] = atom
            self._texts[Digit(number)] = atom
            self._keys.setdefault(id(atom), (atom, number))
            self._sums.setdefault(id(atom), (atom, total))
        if not self._data.isdisjoint(parts) or not self._data.isdisjoint(a.unknowns | b.unknowns):
            self._data.add(number)
        return total.times(c * d)

    def _signature(self, node: Expr) -> tuple[Any, ...]:
        return (type(node).__name__, node.dtype, *_payload(node),
                *(self._keys[id(child)][1] for child in children(node)))

    def _number(self, signature: tuple[Any, ...]) -> int:
        return self._ids.setdefault(signature, len(self._ids))


def _number_of(term: Term) -> int | None:
    """The number of the unknown that a term is all of."""
    if isinstance(term, Opaque) or term.low != 1 or term.high is not None:
        return None
    return term.unknown


def _digit_of(total: QuasiAffine, op: BinOp, d: int) -> Digit:
    """`total // d` or `total % d`, a digit of the same thing where `total` is a digit."""
    term = total.single()
    if isinstance(term, Digit) and (term.high is None or term.high % (term.low * d) == 0):
        if op is BinOp.MOD:
            return Digit(term.of, term.low, term.low * d)
        return Digit(term.of, term.low * d, term.high)
    return Digit(total, d) if op is BinOp.FLOORDIV else Digit(total, 1, d)


def _payload(node: Expr) -> tuple[Any, ...]:
    """What a node says beside its children."""
    match node:
        case Var():
            return (id(node),)
        case Const(value):
            # 1, 1.0 and True are equal, and so are zeros of either sign.
            return (value,) if type(value) is int else (type(value).__name__, repr(value))
        case Binary() | Compare():
            return (node.op,)
        case Call(name):
            return (name,)
        case Ramp() | Broadcast():
            return (node.lanes,)
        case BufferLoad(buffer, _, predicate):
            # The same tree is the same object: one that loads from another view of the memory,
            # declared elsewhere or with simpler extents, is not the one that came first.
            is_fixed = buffer.strides is None and all(isinstance(n, int) for n in buffer.shape)
            view = buffer.shape if is_fixed else id(buffer)
            return (id(buffer.data), buffer.name, predicate is None, view)
        case Cast():
            return ()
    return ()
