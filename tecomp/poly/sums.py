"""Sums of multiples of variables, floors and remainders, and the shortest way to write them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import gcd
from typing import TypeAlias

from tecomp.ir.dtype import INT64
from tecomp.ir.expr import BinOp, Const, Expr, Var, binary, index_value

Atom: TypeAlias = int


@dataclass(frozen=True, slots=True)
class Sum:
    """`const` plus, for each atom, so many times that atom; atoms are numbered by a `Sums`."""

    const: int = 0
    terms: Mapping[Atom, int] = field(default_factory=dict)

    def plus(self, other: Sum, factor: int = 1) -> Sum:
        """`self + factor * other`."""
        terms = dict(self.terms)
        for atom, count in other.terms.items():
            terms[atom] = terms.get(atom, 0) + factor * count
        kept = {atom: count for atom, count in terms.items() if count}
        return Sum(self.const + factor * other.const, kept)

    def positive(self) -> Sum:
        """The terms with positive factors, without the constant."""
        return Sum(0, {atom: count for atom, count in self.terms.items() if count > 0})

    def negative(self) -> Sum:
        """The terms with negative factors, negated, without the constant."""
        return Sum(0, {atom: -count for atom, count in self.terms.items() if count < 0})

    @property
    def key(self) -> tuple[int, tuple[tuple[Atom, int], ...]]:
        """Equal for equal sums."""
        return self.const, tuple(sorted(self.terms.items()))


class Sums:
    """The atoms of some sums that belong together."""

    def __init__(self) -> None:
        """Begin without any atom."""
        self._written: list[Expr] = []
        self._floors: dict[Atom, tuple[Sum, int]] = {}
        self._by_key: dict[object, Atom] = {}

    def leaf(self, expr: Expr) -> Sum:
        """`expr` as an atom, or as a constant if it is one."""
        if isinstance(expr, Const):
            return Sum(int(expr.value))
        return Sum(0, {self._atom(expr if isinstance(expr, Var) else id(expr), expr): 1})

    def floordiv(self, value: Sum, divisor: int) -> Sum:
        """`value // divisor` for a positive divisor, with what needs no division taken out."""
        if divisor == 1:
            return value
        outside = Sum(
            value.const // divisor,
            {a: n // divisor for a, n in value.terms.items() if n % divisor == 0},
        )
        inside = value.plus(outside, -divisor)
        if not inside.terms:
            return outside
        common = gcd(divisor, *inside.terms.values())
        inside = Sum(inside.const // common, {a: n // common for a, n in inside.terms.items()})
        divisor //= common
        if all(divisor < 2 * n < 2 * divisor for n in inside.terms.values()):
            # (d*x - n*x + c) // d == x - (n*x - c + d - 1) // d, which isl makes of (n*x) // d
            outside = outside.plus(Sum(0, dict.fromkeys(inside.terms, 1)))
            less = {atom: divisor - n for atom, n in inside.terms.items()}
            rest = self.floordiv(Sum(divisor - 1 - inside.const, less), divisor)
            return outside.plus(rest, -1)
        inside, divisor = self._nested(inside, divisor)
        return outside.plus(self._floor(inside, divisor))

    def _nested(self, inside: Sum, divisor: int) -> tuple[Sum, int]:
        """`(k*x + y) // (k*m)` as `(x + y//k) // m` where `y // k` is there already."""
        for atom, (part, step) in self._floors.items():
            if divisor % step == 0 and step < divisor:
                rest = inside.plus(part, -1)
                if rest.terms and all(n % step == 0 for n in (rest.const, *rest.terms.values())):
                    outer = Sum(rest.const // step, {a: n // step for a, n in rest.terms.items()})
                    return outer.plus(Sum(0, {atom: 1})), divisor // step
        return inside, divisor

    def tidy(self, value: Sum) -> Sum:
        """`value` with floors written as remainders where that is shorter."""
        floors = [atom for atom in value.terms if atom in self._floors]
        for atom in sorted(floors, key=lambda a: -self._floors[a][1]):
            if atom in value.terms:
                value = self._as_remainder(value, atom)
        return value

    def expr(self, value: Sum) -> Expr:
        """`value` as an int64 expression, great factors first, what is taken away last."""
        value = self.tidy(value)
        terms = sorted(value.terms.items(), key=lambda term: (term[1] < 0, -abs(term[1]), term[0]))
        if not terms:
            return Const(value.const, INT64)
        total: Expr | None = None
        const = value.const
        for atom, factor in terms:
            size = abs(factor)
            part = self._written[atom]
            part = part if size == 1 else binary(BinOp.MUL, Const(size, INT64), part)
            if total is None and factor < 0:
                total, const = Const(const, INT64), 0
            total = part if total is None else binary(
                BinOp.ADD if factor > 0 else BinOp.SUB, total, part
            )
        assert total is not None
        if const:
            total = binary(BinOp.ADD if const > 0 else BinOp.SUB, total, Const(abs(const), INT64))
        return total

    def _atom(self, key: object, expr: Expr) -> Atom:
        atom = self._by_key.get(key)
        if atom is None:
            atom = self._by_key[key] = len(self._written)
            self._written.append(index_value(expr))
        return atom

    def _floor(self, inside: Sum, divisor: int) -> Sum:
        key = ("//", inside.key, divisor)
        if key not in self._by_key:
            whole = binary(BinOp.FLOORDIV, self.expr(inside), Const(divisor, INT64))
            self._floors[self._atom(key, whole)] = (inside, divisor)
        return Sum(0, {self._by_key[key]: 1})

    def _remainder(self, inside: Sum, divisor: int) -> Sum:
        if (inside.const + 1) % divisor == 0 and not inside.positive().terms:
            # (-1 - x) % c == c - 1 - x % c
            return Sum(divisor - 1).plus(self._remainder(inside.negative(), divisor), -1)
        key = ("%", inside.key, divisor)
        if key not in self._by_key:
            self._atom(key, binary(BinOp.MOD, self.expr(inside), Const(divisor, INT64)))
        return Sum(0, {self._by_key[key]: 1})

    def _as_remainder(self, value: Sum, atom: Atom) -> Sum:
        """`value` with `x // m` replaced by means of `x % m`, or of `(x // k) % (m / k)`.

        `m * (x // m) == x - x % m`, and `x // m == (x // k) // (m / k)` for a k that divides m.
        """
        inside, divisor = self._floors[atom]
        count = value.terms[atom]
        best = value
        for other in value.terms:
            part, step = self._floors.get(other, (None, 1))
            if part is None or divisor % step or step == divisor or part.key != inside.key:
                continue
            if count % (divisor // step) == 0:
                best = self._swap(value, atom, Sum(0, {other: 1}), divisor // step)
        if best is not value:
            return best
        if count % divisor == 0:
            swapped = self._swap(value, atom, inside, divisor)
            if len(swapped.terms) < len(value.terms):
                return swapped
        return value

    def _swap(self, value: Sum, atom: Atom, inside: Sum, divisor: int) -> Sum:
        count = value.terms[atom] // divisor
        value = value.plus(Sum(0, {atom: 1}), -value.terms[atom])
        return value.plus(inside, count).plus(self._remainder(inside, divisor), -count)
