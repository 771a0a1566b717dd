"""Quasi-affine sums: a constant and multiples of digits.

A digit is `(x // low) % (high // low)` of an unknown x or of another such sum. Unknowns are
numbers; who makes a sum knows what they stand for: axes of an index map, expressions of a program.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from math import gcd
from typing import NamedTuple, TypeAlias

from tecomp.ir.nodes.operators import BinOp

Term: TypeAlias = "Digit | Opaque"

DEEPEST = 64
"""Sums inside one another that there may be: they are compared by recursion."""


class Digit(NamedTuple):
    """`(x // low) % (high // low)`, or all of `x // low` where there is no `high`.

    Attributes:
        of: the number of an unknown, or a sum, which is no digit itself.
        low: what one step of the digit is worth.
        high: a multiple of `low`.
    """

    of: int | QuasiAffine
    low: int = 1
    high: int | None = None

    @property
    def size(self) -> int | None:
        """How many values it has where x is unbounded; None if so has it."""
        return None if self.high is None else self.high // self.low

    @property
    def unknown(self) -> int | None:
        """The number of the unknown that it is a digit of."""
        return None if isinstance(self.of, QuasiAffine) else self.of

    @property
    def whole(self) -> QuasiAffine:
        """The sum that it is a digit of."""
        return self.of if isinstance(self.of, QuasiAffine) else QuasiAffine({Digit(self.of): 1})


@dataclass(frozen=True, slots=True)
class Opaque:
    """A bit operation of two sums."""

    op: BinOp
    operands: tuple[QuasiAffine, QuasiAffine]

    @property
    def unknown(self) -> None:
        """It is no digit of an unknown."""


@dataclass(frozen=True, slots=True, eq=False)
class QuasiAffine:
    """`const` plus a coefficient times each term; sums of the same are equal in any order.

    Attributes:
        terms: the coefficient of each term, none of them 0, in the order they were written.
        const: the constant.
    """

    terms: Mapping[Term, int] = field(default_factory=dict)
    const: int = 0
    _hash: int = field(init=False, repr=False)
    _depth: int = field(init=False, repr=False)
    _unknowns: frozenset[int] = field(init=False, repr=False)

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, QuasiAffine):
            return NotImplemented
        return self.const == other.const and self.terms == other.terms

    def __hash__(self) -> int:
        try:
            return self._hash
        except AttributeError:
            object.__setattr__(self, "_hash", hash((self.const, frozenset(self.terms.items()))))
            return self._hash

    @property
    def depth(self) -> int:
        """How many sums lie inside one another."""
        try:
            return self._depth
        except AttributeError:
            depth = max((1 + total.depth for total in self._inner()), default=0)
            object.__setattr__(self, "_depth", depth)
            return depth

    @property
    def unknowns(self) -> frozenset[int]:
        """The numbers of all unknowns that occur."""
        try:
            return self._unknowns
        except AttributeError:
            own = (t.of for t in self.terms if isinstance(t, Digit) and isinstance(t.of, int))
            found = frozenset(own).union(*(total.unknowns for total in self._inner()))
            object.__setattr__(self, "_unknowns", found)
            return found

    def _inner(self) -> Iterator[QuasiAffine]:
        for term in self.terms:
            if isinstance(term, Opaque):
                yield from term.operands
            elif isinstance(term.of, QuasiAffine):
                yield term.of

    @classmethod
    def of(cls, term: Term, coefficient: int = 1) -> QuasiAffine:
        """`coefficient * term`."""
        return cls({term: coefficient})

    @classmethod
    def added(cls, parts: Iterable[tuple[QuasiAffine, int]]) -> QuasiAffine:
        """The sum of each part times its factor, as `plus` one after another gives it."""
        terms: dict[Term, int] = {}
        const = 0
        for part, factor in parts:
            const += factor * part.const
            for term, coefficient in part.terms.items():
                known = terms.get(term, 0)
                total = factor * coefficient + known
                if total:
                    terms[term] = total
                elif known:
                    del terms[term]
        return cls(terms, const)

    def plus(self, other: QuasiAffine, factor: int = 1) -> QuasiAffine:
        """`self + factor * other`."""
        terms = dict(self.terms)
        for term, coefficient in other.terms.items():
            total = terms.get(term, 0) + factor * coefficient
            if total:
                terms[term] = total
            else:
                terms.pop(term, None)
        return QuasiAffine(terms, self.const + factor * other.const)

    def times(self, factor: int) -> QuasiAffine:
        """`factor * self`."""
        if factor == 1:
            return self
        if factor == 0:
            return QuasiAffine()
        return QuasiAffine({t: c * factor for t, c in self.terms.items()}, self.const * factor)

    def shifted(self, amount: int) -> QuasiAffine:
        """`self + amount`."""
        return QuasiAffine(self.terms, self.const + amount)

    def split(self, divisor: int) -> tuple[QuasiAffine, QuasiAffine]:
        """`(q, r)` with `self == divisor * q + r`, where no coefficient of r is a multiple.

        The constant of r lies in `[0, divisor)`.
        """
        whole, rest = divmod(self.const, divisor)
        multiples, others = {}, {}
        for term, c in self.terms.items():
            if c % divisor == 0:
                multiples[term] = c // divisor
            else:
                others[term] = c
        return QuasiAffine(multiples, whole), QuasiAffine(others, rest)

    def only(self) -> tuple[Term, int] | None:
        """The term and its coefficient, if there is exactly one and no constant."""
        return next(iter(self.terms.items())) if len(self.terms) == 1 and not self.const else None

    def single(self) -> Term | None:
        """The term that this sum is, if it is one."""
        alone = self.only()
        return alone[0] if alone is not None and alone[1] == 1 else None

    def factor(self) -> int:
        """Greatest common divisor of the coefficients; 0 if there are none."""
        return gcd(*self.terms.values())

    def has(self, part: QuasiAffine, factor: int) -> bool:
        """Whether the terms of `factor * part`, of which there are some, are terms of this."""
        return bool(part.terms) and all(
            self.terms.get(term) == factor * c for term, c in part.terms.items()
        )

    def replaced(self, gone: Iterable[Term], by: QuasiAffine) -> QuasiAffine:
        """`self` without some terms, and `by` put where the first of them was."""
        out = set(gone)
        parts: list[tuple[QuasiAffine, int]] = [(QuasiAffine({}, self.const), 1)]
        placed = False
        for term, c in self.terms.items():
            if term not in out:
                parts.append((QuasiAffine({term: c}), 1))
            elif not placed:
                parts.append((by, 1))
                placed = True
        return QuasiAffine.added(parts)
