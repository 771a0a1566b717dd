"""Quasi-affine sums: a constant plus integer multiples of digits.

A digit is `(x // low) % (high // low)` of an unknown x or of another quasi-affine sum. Unknowns are
symbols that are identified by integers; the code that builds a sum defines their meaning, for
example axes of an index map or opaque expressions of a program.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from math import gcd
from typing import NamedTuple, TypeAlias

from tecomp.ir.nodes.operators import BinOp

Term: TypeAlias = "Digit | OpaqueTerm"

MAX_DEPTH = 64
"""Maximum nesting depth of sums; the limit exists because sums are compared recursively."""


class Digit(NamedTuple):
    """Mixed-radix digit `(x // low) % (high // low)`, or `x // low` if `high` is None.

    Attributes:
        of: Number of an unknown, or a sum that is not a digit itself.
        low: Weight of the digit: the divisor of x.
        high: Weight of the next digit, a multiple of `low`; None if the digit is unbounded.
    """

    of: int | QuasiAffine
    low: int = 1
    high: int | None = None

    @property
    def size(self) -> int | None:
        """Number of values of the digit for unbounded x; None if `high` is None."""
        return None if self.high is None else self.high // self.low

    @property
    def unknown(self) -> int | None:
        """Number of the unknown of the digit; None if it is a digit of a sum."""
        return None if isinstance(self.of, QuasiAffine) else self.of

    @property
    def whole(self) -> QuasiAffine:
        """Sum of which the digit is taken."""
        return self.of if isinstance(self.of, QuasiAffine) else QuasiAffine({Digit(self.of): 1})


@dataclass(frozen=True, slots=True)
class OpaqueTerm:
    """Term that is not quasi-affine: a bitwise operation on two sums."""

    op: BinOp
    operands: tuple[QuasiAffine, QuasiAffine]

    @property
    def unknown(self) -> None:
        """None, because the term is not a digit of an unknown."""


@dataclass(frozen=True, slots=True, eq=False)
class QuasiAffine:
    """Quasi-affine sum: `const` plus the terms times their coefficients.

    Equality and hash do not depend on the order of the terms.

    Attributes:
        terms: Nonzero coefficient of each term, in the order of the source expression.
        const: Constant summand.
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
        """Nesting depth: 0 for a sum without digits of other sums."""
        try:
            return self._depth
        except AttributeError:
            depth = max((1 + total.depth for total in self._inner()), default=0)
            object.__setattr__(self, "_depth", depth)
            return depth

    @property
    def unknowns(self) -> frozenset[int]:
        """Numbers of all unknowns that occur in the sum, including nested sums."""
        try:
            return self._unknowns
        except AttributeError:
            direct = (t.of for t in self.terms if isinstance(t, Digit) and isinstance(t.of, int))
            found = frozenset(direct).union(*(total.unknowns for total in self._inner()))
            object.__setattr__(self, "_unknowns", found)
            return found

    def _inner(self) -> Iterator[QuasiAffine]:
        for term in self.terms:
            if isinstance(term, OpaqueTerm):
                yield from term.operands
            elif isinstance(term.of, QuasiAffine):
                yield term.of

    @classmethod
    def of(cls, term: Term, coefficient: int = 1) -> QuasiAffine:
        """Return the sum `coefficient * term`."""
        return cls({term: coefficient})

    @classmethod
    def added(cls, parts: Iterable[tuple[QuasiAffine, int]]) -> QuasiAffine:
        """Return the sum of each part times its factor, with the term order of repeated `plus`."""
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
        """Return `self + factor * other`."""
        terms = dict(self.terms)
        for term, coefficient in other.terms.items():
            total = terms.get(term, 0) + factor * coefficient
            if total:
                terms[term] = total
            else:
                terms.pop(term, None)
        return QuasiAffine(terms, self.const + factor * other.const)

    def times(self, factor: int) -> QuasiAffine:
        """Return `factor * self`."""
        if factor == 1:
            return self
        if factor == 0:
            return QuasiAffine()
        return QuasiAffine({t: c * factor for t, c in self.terms.items()}, self.const * factor)

    def shifted(self, amount: int) -> QuasiAffine:
        """Return `self + amount`."""
        return QuasiAffine(self.terms, self.const + amount)

    def split(self, divisor: int) -> tuple[QuasiAffine, QuasiAffine]:
        """Return `(q, r)` with `self == divisor * q + r`.

        No coefficient of r is a multiple of `divisor`, and the constant of r is in `[0, divisor)`.
        """
        quotient, remainder = divmod(self.const, divisor)
        multiples, others = {}, {}
        for term, c in self.terms.items():
            if c % divisor == 0:
                multiples[term] = c // divisor
            else:
                others[term] = c
        return QuasiAffine(multiples, quotient), QuasiAffine(others, remainder)

    def only(self) -> tuple[Term, int] | None:
        """Return the term and its coefficient if there is only one and no constant, else None."""
        return next(iter(self.terms.items())) if len(self.terms) == 1 and not self.const else None

    def single(self) -> Term | None:
        """Return the term if the sum consists of one term with coefficient 1, else None."""
        if len(self.terms) != 1 or self.const:
            return None
        ((term, coefficient),) = self.terms.items()
        return term if coefficient == 1 else None

    def factor(self) -> int:
        """Return the greatest common divisor of the coefficients; 0 if there are no terms."""
        return gcd(*self.terms.values())

    def has(self, part: QuasiAffine, factor: int) -> bool:
        """Return whether `part` has terms and this sum contains all terms of `factor * part`."""
        return bool(part.terms) and all(
            self.terms.get(term) == factor * c for term, c in part.terms.items()
        )

    def replaced(self, old: Iterable[Term], new: QuasiAffine) -> QuasiAffine:
        """Return the sum with the terms `old` replaced by `new`, at the position of the first."""
        dropped = set(old)
        parts: list[tuple[QuasiAffine, int]] = [(QuasiAffine({}, self.const), 1)]
        is_placed = False
        for term, c in self.terms.items():
            if term not in dropped:
                parts.append((QuasiAffine({term: c}), 1))
            elif not is_placed:
                parts.append((new, 1))
                is_placed = True
        return QuasiAffine.added(parts)
