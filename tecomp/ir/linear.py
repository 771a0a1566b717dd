"""Integer index arithmetic as sums: `coefficient * atom + ... + constant`.

An atom is anything that is not itself such a sum: a variable, a load, a quotient, a remainder, a
minimum, a product of two unknowns. Atoms are told apart by an integer key, the same for the same
tree, so that adding two sums is adding two dictionaries.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import gcd
from typing import Any

from tecomp.ir.dtype import INT64
from tecomp.ir.expr import (
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
from tecomp.ir.rewrite import children

_SUMS = (BinOp.ADD, BinOp.SUB, BinOp.MUL)


@dataclass(frozen=True, slots=True, eq=False)
class Linear:
    """`const` plus each `coefficient * atom` of `terms`, in the order they were written.

    Attributes:
        terms: key of the atom -> (atom, coefficient); no coefficient is 0.
        const: the constant.
    """

    terms: Mapping[int, tuple[Expr, int]] = field(default_factory=dict)
    const: int = 0

    def plus(self, other: Linear, factor: int = 1) -> Linear:
        """`self + factor * other`."""
        terms = dict(self.terms)
        for key, (atom, coefficient) in other.terms.items():
            total = factor * coefficient + (terms[key][1] if key in terms else 0)
            if total:
                terms[key] = (atom, total)
            else:
                terms.pop(key, None)
        return Linear(terms, self.const + factor * other.const)

    @classmethod
    def added(cls, parts: Iterable[tuple[Linear, int]]) -> Linear:
        """The sum of each part times its factor, as `plus` one after another gives it."""
        terms: dict[int, tuple[Expr, int]] = {}
        const = 0
        for part, factor in parts:
            const += factor * part.const
            for key, (atom, coefficient) in part.terms.items():
                known = terms.get(key)
                total = factor * coefficient + (0 if known is None else known[1])
                if total:
                    terms[key] = (atom, total)
                elif known is not None:
                    del terms[key]
        return cls(terms, const)

    def times(self, factor: int) -> Linear:
        """`factor * self`."""
        if factor == 1:
            return self
        if factor == 0:
            return Linear()
        terms = {key: (atom, c * factor) for key, (atom, c) in self.terms.items()}
        return Linear(terms, self.const * factor)

    def shifted(self, amount: int) -> Linear:
        """`self + amount`."""
        return Linear(self.terms, self.const + amount)

    def split(self, divisor: int) -> tuple[Linear, Linear]:
        """`(q, r)` with `self == divisor * q + r`, where no coefficient of r is a multiple.

        The constant of r lies in `[0, divisor)`.
        """
        whole, rest = divmod(self.const, divisor)
        multiples, others = {}, {}
        for key, (atom, c) in self.terms.items():
            if c % divisor == 0:
                multiples[key] = (atom, c // divisor)
            else:
                others[key] = (atom, c)
        return Linear(multiples, whole), Linear(others, rest)

    def only(self) -> tuple[Expr, int] | None:
        """The atom and its coefficient, if there is exactly one and no constant."""
        return next(iter(self.terms.values())) if len(self.terms) == 1 and not self.const else None

    def factor(self) -> int:
        """Greatest common divisor of the coefficients; 0 if there are none."""
        return gcd(*(c for _, c in self.terms.values()))

    def replaced(self, keys: Iterable[int], by: Linear) -> Linear:
        """`self` with the terms of `keys` taken out and `by` put where the first of them was."""
        gone = set(keys)
        merged = Linear({}, self.const)
        placed = False
        for key, term in self.terms.items():
            if key not in gone:
                merged = merged.plus(Linear({key: term}))
            elif not placed:
                merged, placed = merged.plus(by), True
        return merged


class Terms:
    """Gives every tree its key and every int64 scalar its sum, for the time of one analysis."""

    def __init__(self) -> None:
        self._ids: dict[Any, int] = {}
        # The node is kept beside its key so that its id is not given to another.
        self._keys: dict[int, tuple[Expr, int]] = {}
        self._linear: dict[int, tuple[Expr, Linear]] = {}
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

    def key(self, expr: Expr) -> int:
        """The same number for the same tree; sums are the same in any order."""
        found = self._keys.get(id(expr))
        if found is None:
            self._visit(expr)
            found = self._keys[id(expr)]
        return found[1]

    def linear(self, expr: Expr) -> Linear:
        """`expr`, an int64 scalar, as a sum of what is written; nothing is simplified."""
        found = self._linear.get(id(expr))
        if found is None:
            self._visit(expr)
            found = self._linear[id(expr)]
        return found[1]

    def factors(self, key: int) -> list[Expr]:
        """What an atom is the product of; nothing if it is none."""
        return [self._single[factor] for factor in self._factors.get(key, ())]

    def product(self, factors: Iterable[Expr]) -> Linear:
        """The product of some atoms."""
        first, *others = factors
        for other in others:
            first = Binary(BinOp.MUL, first, other)
        return self.linear(first)

    def atom(self, expr: Expr) -> Linear:
        """`1 * expr`."""
        return Linear({self.key(expr): (expr, 1)})

    def expr(self, total: Linear, like: Expr | None = None) -> Expr:
        """The sum written out: the first positive term first, the constant last.

        The same sum is the same object each time; `like` itself where it is written so.
        """
        form = (*[(key, term[1]) for key, term in total.terms.items()], total.const)
        written = self._written.get(form)
        if written is None:
            written = like if like is not None and _is_written(total, like) else _written(total)
            self._written[form] = written
            self._linear.setdefault(id(written), (written, total))
        return written

    def _visit(self, root: Expr) -> None:
        todo = [root]
        while todo:
            node = todo[-1]
            if id(node) in self._keys:
                todo.pop()
                continue
            if id(node) not in self._linear and (
                waiting := [c for c in children(node) if id(c) not in self._keys]
            ):
                todo.extend(waiting)
                continue
            self._enter(node)
            todo.pop()

    def _enter(self, node: Expr) -> None:
        if node.dtype == INT64:
            if id(node) not in self._linear:
                total = self._sum_of(node)
                if total is None:
                    number = self._number(self._signature(node))
                    total = Linear({number: (node, 1)})
                self._linear[id(node)] = (node, total)
            total = self._linear[id(node)][1]
            alone = total.only()
            if alone is not None and alone[1] == 1:
                number = next(iter(total.terms))
            elif not total.terms:
                number = self._number(("sum", total.const))
            else:
                parts = frozenset([(key, term[1]) for key, term in total.terms.items()])
                number = self._number(("sum", parts, total.const))
        else:
            number = self._number(self._signature(node))
        if self._depends(node):
            self._data.add(number)
        self._keys[id(node)] = (node, number)

    def _depends(self, node: Expr) -> bool:
        if isinstance(node, BufferLoad):
            return True
        if not self._data:
            return False
        if id(node) in self._linear and not self._is_atom(node):
            return any(key in self._data for key in self._linear[id(node)][1].terms)
        return any(self._keys[id(child)][1] in self._data for child in children(node))

    def _is_atom(self, node: Expr) -> bool:
        alone = self._linear[id(node)][1].only()
        return alone is not None and alone[0] is node

    def _sum_of(self, node: Expr) -> Linear | None:
        if isinstance(node, Const):
            return Linear({}, int(node.value))
        if not isinstance(node, Binary) or node.op not in _SUMS:
            return None
        a, b = self._linear[id(node.a)][1], self._linear[id(node.b)][1]
        if node.op is BinOp.ADD:
            return a.plus(b)
        if node.op is BinOp.SUB:
            return a.plus(b, -1)
        if not b.terms:
            return a.times(b.const)
        return b.times(a.const) if not a.terms else self._product(node, a, b)

    def _product(self, node: Binary, a: Linear, b: Linear) -> Linear:
        """`(c*x) * (d*y)` as `(c*d) * (x*y)`, in whatever order the factors are written."""
        parts: list[int] = []
        factors: list[tuple[Expr, int]] = []
        for side, total in ((node.a, a), (node.b, b)):
            alone = total.only()
            key = next(iter(total.terms)) if alone else self._keys[id(side)][1]
            if key not in self._factors:
                self._single.setdefault(key, alone[0] if alone else side)
            parts.extend(self._factors.get(key, (key,)))
            factors.append(alone or (side, 1))
        (x, c), (y, d) = factors
        ordered = tuple(sorted(parts))
        number = self._number(("*", *ordered))
        self._factors[number] = ordered
        atom = self._products.get(number)
        if atom is None:
            atom = node if (c, d) == (1, 1) else Binary(BinOp.MUL, x, y)
            self._products[number] = atom
            self._keys.setdefault(id(atom), (atom, number))
            self._linear.setdefault(id(atom), (atom, Linear({number: (atom, 1)})))
        if not self._data.isdisjoint(parts):
            self._data.add(number)
        return Linear({number: (atom, c * d)})

    def _signature(self, node: Expr) -> tuple[Any, ...]:
        return (type(node).__name__, node.dtype, *_payload(node),
                *(self._keys[id(child)][1] for child in children(node)))

    def _number(self, signature: tuple[Any, ...]) -> int:
        return self._ids.setdefault(signature, len(self._ids))


def _in_order(total: Linear) -> tuple[list[tuple[Expr, int]], bool]:
    """The terms as they are written, and whether the first of them stands without a sign."""
    terms = list(total.terms.values())
    head = next((i for i, (_, c) in enumerate(terms) if c > 0), None)
    if head:
        terms.insert(0, terms.pop(head))
    return terms, head is not None


def _written(total: Linear) -> Expr:
    terms, has_head = _in_order(total)
    written = _scaled(*terms.pop(0)) if has_head else Const(total.const, INT64)
    for atom, c in terms:
        op = BinOp.ADD if c > 0 else BinOp.SUB
        written = Binary(op, written, _scaled(atom, abs(c)))
    if has_head and total.const:
        op = BinOp.ADD if total.const > 0 else BinOp.SUB
        written = Binary(op, written, Const(abs(total.const), INT64))
    return written


def _is_written(total: Linear, text: Expr) -> bool:
    """Whether `text` is what `total` is written as, of the same atoms."""
    terms, has_head = _in_order(total)
    if has_head and total.const:
        op = BinOp.ADD if total.const > 0 else BinOp.SUB
        match text:
            case Binary(written, rest, Const(value)) if written is op and value == abs(total.const):
                text = rest
            case _:
                return False
    while len(terms) > has_head:
        atom, c = terms.pop()
        match text:
            case Binary(op, rest, term) if op is (BinOp.ADD if c > 0 else BinOp.SUB):
                if not _is_scaled(atom, abs(c), term):
                    return False
                text = rest
            case _:
                return False
    if has_head:
        return _is_scaled(*terms[0], text)
    return isinstance(text, Const) and text.value == total.const


def _is_scaled(atom: Expr, coefficient: int, text: Expr) -> bool:
    if coefficient == 1:
        return _alike(atom, text)
    match text:
        case Binary(BinOp.MUL, inner, Const(value)):
            return value == coefficient and _alike(atom, inner)
    return False


def _alike(a: Expr, b: Expr) -> bool:
    """Whether two sums are written in the same way, of the same atoms."""
    todo = [(a, b)]
    while todo:
        x, y = todo.pop()
        if x is y:
            continue
        match x, y:
            case Binary(op, p, q), Binary(other, r, s) if op is other and op in _SUMS:
                todo += [(p, r), (q, s)]
            case Const(value), Const(other) if value == other and x.dtype == y.dtype:
                pass
            case _:
                return False
    return True


def _scaled(atom: Expr, coefficient: int) -> Expr:
    return atom if coefficient == 1 else Binary(BinOp.MUL, atom, Const(coefficient, INT64))


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
            return (id(buffer.data), buffer.name, predicate is None)
        case Cast():
            return ()
    return ()
