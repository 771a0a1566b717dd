"""Bounds of indices that are polynomials in symbolic sizes, with quotients and remainders.

Constant intervals and integer sets do not represent products of sizes, such as the extent `n * m`
of a flattened matrix and its index `i // m`. Here, an index has polynomials as bounds. A polynomial
is at least 0 if no coefficient is negative after each size is written as its lower bound plus a
natural number.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from tecomp.ir.nodes.expr import Binary, BinOp, Const, Expr, Var
from tecomp.ir.traversal.rewrite import fold

Monomial: TypeAlias = "tuple[int, ...]"
"""Numbers of the factors of a product of sizes, in ascending order; () for a constant."""

Bounds: TypeAlias = "tuple[Polynomial, Polynomial]"

_MAX_TERMS = 64
_MAX_STEPS = 16


@dataclass(frozen=True)
class Polynomial:
    """Sum of products of sizes: the nonzero coefficient of each product."""

    terms: Mapping[Monomial, int]

    @classmethod
    def constant(cls, value: int) -> Polynomial:
        """Return a polynomial without sizes."""
        return cls({(): value} if value else {})

    def plus(self, other: Polynomial, factor: int = 1) -> Polynomial:
        """Return `self + factor * other`."""
        total = Counter(self.terms)
        for product, c in other.terms.items():
            total[product] += factor * c
        return Polynomial({product: c for product, c in total.items() if c})

    def shifted(self, value: int) -> Polynomial:
        """Return `self + value`."""
        return self.plus(Polynomial.constant(value))

    def times(self, other: Polynomial) -> Polynomial:
        """Return `self * other`."""
        total: Counter[Monomial] = Counter()
        for a, x in self.terms.items():
            for b, y in other.terms.items():
                total[tuple(sorted((*a, *b)))] += x * y
        return Polynomial({product: c for product, c in total.items() if c})

    def value(self) -> int | None:
        """Return the value of a polynomial without sizes, else None."""
        return self.terms.get((), 0) if not any(self.terms) else None

    def key(self) -> frozenset[tuple[Monomial, int]]:
        """Return a hashable form."""
        return frozenset(self.terms.items())


_ONE = Polynomial.constant(1)


class SymbolicBounds:
    """Bounds of index expressions at the points of a nonempty domain.

    >>> n, m, i = Var("n"), Var("m"), Var("i")
    >>> known = SymbolicBounds([n, m])
    >>> known.add_axis(i, Const(0), n * m)
    >>> known.is_inside(i // m, n), known.is_inside(i % m, m), known.is_inside(i // n, n)
    (True, True, False)
    """

    def __init__(self, natural: Iterable[Expr], *, is_grouped: bool = False) -> None:
        """Record extents of arrays, which are at least 0.

        Args:
            natural: Extents of arrays.
            is_grouped: If True, sizes that occur only in a common product of an extent are one
                symbol. This proves other indices than with a symbol for each size.
        """
        self._numbers: dict[Any, int] = {}
        self._lower_bounds: dict[int, int] = {}
        self._quotients: dict[int, tuple[Polynomial, Polynomial]] = {}
        self._axes: dict[Var, Bounds | None] = {}
        # Products of factors of unknown signs.
        self._groups: dict[Monomial, int] = {}
        known = [a for a in map(self._polynomial, natural) if a is not None]
        for a in known:
            self._assume_affine(a.shifted(1))
        by_degree = sorted(known, key=lambda a: max(map(len, a.terms), default=0))
        for a in by_degree if is_grouped else ():
            self._add_group(self._product(a, _ONE))

    def add_axis(self, axis: Var, start: Expr, extent: Expr) -> None:
        """Record the range of an axis, which has at least one value.

        The extents of all axes must be recorded before `is_inside` is called.
        """
        first, count = self._polynomial(start), self._polynomial(extent)
        if count is not None:
            self._assume_positive(count)
        self._axes[axis] = None if first is None or count is None else (
            first, first.plus(count).shifted(-1))

    def is_inside(self, index: Expr, extent: Expr) -> bool:
        """Return whether `0 <= index < extent` is proved."""
        limit, bounds = self._polynomial(extent), self._bounds(index)
        if limit is None or bounds is None:
            return False
        return self._is_natural(bounds[0]) and self._is_natural(
            limit.plus(bounds[1], -1).shifted(-1))

    def _add_group(self, extent: Polynomial) -> None:
        """Add a symbol for the factors of unknown signs of an extent, if there are several."""
        for product in extent.terms:
            group = tuple(n for n in product if self._lower_bounds.get(n, -1) < 0)
            # A single factor of unknown sign is positive if the product is.
            if len(extent.terms) == 1 and len(set(group)) > 1:
                self._groups[group] = self._number(group)
                self._assume_affine(self._product(extent, _ONE).shifted(1))

    def _product(self, a: Polynomial, b: Polynomial) -> Polynomial:
        """Return `a * b`, with the symbols of known groups of factors."""
        product = a.times(b)
        for group, number in self._groups.items():
            if any(not Counter(group) - Counter(term) for term in product.terms):
                quotient, remainder = _divide(product, Polynomial({group: 1}))
                product = remainder.plus(quotient.times(Polynomial({(number,): 1})))
        return product

    def _number(self, key: Any) -> int:
        return self._numbers.setdefault(key, len(self._numbers))

    def _polynomial(self, expr: Expr) -> Polynomial | None:
        """Return an expression of sizes as a polynomial; None if an axis or a read occurs."""
        bounds = self._bounds(expr)
        return bounds[0] if bounds is not None and bounds[0] is bounds[1] else None

    def _bounds(self, root: Expr) -> Bounds | None:
        """Return the bounds of an expression, or None; the bounds of sizes are one object."""

        def rule(node: Expr, operands: list[Bounds | None]) -> Bounds | None:
            match node:
                case Const(int(value)) if node.dtype.is_integer:
                    return _exact(Polynomial.constant(value))
                case Var() if node in self._axes:
                    return self._axes[node]
                case Var() if node.dtype.is_integer:
                    return _exact(Polynomial({(self._number(node),): 1}))
                case Binary(op):
                    a, b = operands
                    found = None if a is None or b is None else self._binary_bounds(op, a, b)
                    is_large = found and max(len(bound.terms) for bound in found) > _MAX_TERMS
                    return None if is_large else found
            return None

        return fold(root, rule, lambda node: (node.a, node.b) if isinstance(node, Binary) else ())

    def _binary_bounds(self, op: BinOp, a: Bounds, b: Bounds) -> Bounds | None:
        is_exact = a[0] is a[1] and b[0] is b[1]
        match op:
            case BinOp.ADD:
                low = a[0].plus(b[0])
                return _exact(low) if is_exact else (low, a[1].plus(b[1]))
            case BinOp.SUB:
                low = a[0].plus(b[1], -1)
                return _exact(low) if is_exact else (low, a[1].plus(b[0], -1))
            case BinOp.MUL if is_exact:
                return _exact(self._product(a[0], b[0]))
            case BinOp.MUL if self._is_natural(a[0]) and self._is_natural(b[0]):
                return self._product(a[0], b[0]), self._product(a[1], b[1])
            case BinOp.FLOORDIV if b[0] is b[1] and self._is_natural(b[0].shifted(-1)):
                low = self._quotient(a[0], b[0])
                return _exact(low) if is_exact else (low, self._largest_quotient(a[1], b[0]))
            case BinOp.MOD if b[0] is b[1] and self._is_natural(b[0].shifted(-1)):
                last = b[0].shifted(-1)
                if self._is_natural(a[0]) and self._is_natural(last.plus(a[1], -1)):
                    return a
                if is_exact:
                    multiple = self._quotient(a[0], b[0]).times(b[0])
                    return _exact(a[0].plus(multiple, -1))
                return Polynomial.constant(0), last
        return None

    def _quotient(self, a: Polynomial, d: Polynomial) -> Polynomial:
        """Return `a // d` for `d >= 1`; a remainder that is not resolved gives a new symbol."""
        if (found := self._exact_quotient(a, d)) is not None:
            return found
        quotient, remainder = _divide(a, d)
        number = self._number((remainder.key(), d.key()))
        self._quotients[number] = remainder, d
        if self._is_natural(remainder):
            self._lower_bounds.setdefault(number, 0)
        return quotient.plus(Polynomial({(number,): 1}))

    def _exact_quotient(self, a: Polynomial, d: Polynomial) -> Polynomial | None:
        """Return `a // d` as a polynomial in the known symbols, or None."""
        quotient, rest = _divide(a, d)
        if self._is_natural(rest) and self._is_natural(d.plus(rest, -1).shifted(-1)):
            return quotient
        if self._is_natural(rest.plus(d)) and self._is_natural(rest.plus(_ONE).times(_MINUS)):
            return quotient.shifted(-1)
        return None

    def _largest_quotient(self, a: Polynomial, d: Polynomial) -> Polynomial:
        """Return an upper bound of `a // d` for `d >= 1`."""
        if (found := self._exact_quotient(a, d)) is not None:
            return found
        # Replace `divisor * (top // divisor)` by `top`.
        upper = self._relaxed(a.times(_MINUS))
        found = None if upper is None else self._exact_quotient(upper.times(_MINUS), d)
        return self._quotient(a, d) if found is None else found

    def _assume_positive(self, a: Polynomial) -> None:
        """Record what `a >= 1` implies for its factors."""
        if len(a.terms) == 1 and () not in a.terms:
            ((product, c),) = a.terms.items()
            self._assume_factors(product if c > 0 else ())
        expanded = self._expanded(a)
        if expanded is None or () in expanded.terms or min(expanded.terms.values(), default=0) < 0:
            self._assume_affine(a)
            return
        for number in set.intersection(*map(set, expanded.terms)) if expanded.terms else ():
            self._raise_lower_bound(number, self._lower_bounds[number] + 1)

    def _assume_factors(self, product: Monomial) -> None:
        """Record that all factors of a positive product are positive.

        Two negative factors have a positive product too, so at most one factor may be unknown.
        """
        unknown = {number for number in product if self._lower_bounds.get(number, -1) < 0}
        if len(unknown) > 1 or any(product.count(number) % 2 == 0 for number in unknown):
            return
        for number in set(product):
            self._raise_lower_bound(number, 1)

    def _raise_lower_bound(self, number: int, lower: int) -> None:
        self._lower_bounds[number] = max(self._lower_bounds.get(number, lower), lower)
        if number in self._quotients and lower >= 1:
            top, d = self._quotients[number]
            self._assume_positive(top.plus(d, -1).shifted(1))

    def _assume_affine(self, a: Polynomial) -> None:
        """Record the lower bound of the size or of the product in `c * product + k >= 1`."""
        products = [product for product in a.terms if product]
        if len(products) != 1 or a.terms[products[0]] < 0:
            return
        (product,) = products
        lower = -((a.terms.get((), 0) - 1) // a.terms[product])
        if len(product) == 1:
            self._raise_lower_bound(product[0], lower)
        elif lower >= 1:
            self._assume_factors(product)

    def _is_natural(self, a: Polynomial, steps: int = _MAX_STEPS) -> bool:
        """Return whether `a >= 0` is proved."""
        if len(a.terms) > _MAX_TERMS or steps == 0:
            return False
        expanded = self._expanded(a)
        if expanded is not None and min(expanded.terms.values(), default=0) >= 0:
            return True
        bound = self._relaxed(a)
        return bound is not None and self._is_natural(bound, steps - 1)

    def _relaxed(self, a: Polynomial) -> Polynomial | None:
        """Return a lower bound of `a` in which one quotient is replaced, or None."""
        found = (
            self._without(a, product, c, number)
            for product, c in a.terms.items() for number in product if number in self._quotients
        )
        return next((bound for bound in found if bound is not None), None)

    def _without(
        self, a: Polynomial, product: Monomial, c: int, number: int
    ) -> Polynomial | None:
        """Return a lower bound of `a` in which a quotient is replaced in one product, or None."""
        top, d = self._quotients[number]
        divisor = d.value()
        if divisor is None or c % divisor:
            return None
        others = list(product)
        others.remove(number)
        if any(self._lower_bounds.get(other, -1) < 0 for other in others):
            return None
        # top - divisor + 1 <= divisor * (top // divisor) <= top
        bound = top if c < 0 else top.plus(d, -1).shifted(1)
        rest = Polynomial({p: k for p, k in a.terms.items() if p != product})
        return rest.plus(bound.times(Polynomial({tuple(others): 1})), c // divisor)

    def _expanded(self, a: Polynomial) -> Polynomial | None:
        """Return `a` in terms of the excess of each size over its lower bound, or None."""
        total = Polynomial({})
        for product, c in a.terms.items():
            term = Polynomial.constant(c)
            for number in product:
                if number not in self._lower_bounds:
                    return None
                lower = self._lower_bounds[number]
                term = term.times(Polynomial({(number,): 1}).shifted(lower))
            total = total.plus(term)
        return total


_MINUS = Polynomial.constant(-1)


def _exact(a: Polynomial) -> Bounds:
    return a, a


def _divide(a: Polynomial, d: Polynomial) -> tuple[Polynomial, Polynomial]:
    """Return `q, r` with `a == q * d + r`; the leading product of `d` divides no term of `r`."""
    leading = max(d.terms, key=lambda product: (len(product), product))
    quotient = Polynomial({})
    for _ in range(_MAX_STEPS):
        steps = ((p, _step(p, c, d.terms[leading])) for p, c in a.terms.items()
                 if not Counter(leading) - Counter(p))
        found = next(((p, step) for p, step in steps if step), None)
        if found is None:
            break
        others = Counter(found[0]) - Counter(leading)
        factor = Polynomial({tuple(sorted(others.elements())): found[1]})
        quotient, a = quotient.plus(factor), a.plus(factor.times(d), -1)
    return quotient, a


def _step(product: Monomial, c: int, divisor: int) -> int:
    """Return a quotient of coefficients: rounded down for a constant, else towards 0."""
    return c // divisor if c > 0 or not product else -(-c // divisor)
