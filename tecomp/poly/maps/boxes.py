"""The box of places that a box of indices is mapped into, while outer loops run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import gcd

from tecomp.errors import LayoutError
from tecomp.ir.algebra.extents import plus, simplified, times
from tecomp.ir.algebra.intervals import Interval
from tecomp.ir.algebra.quasi_affine import Digit, QuasiAffine, Term
from tecomp.ir.algebra.simplify import Ranges, bounds, simplify
from tecomp.ir.language.dtype import INT64
from tecomp.ir.language.expr import BinOp, Const, Expr, Var, binary, index_value
from tecomp.ir.language.stmt import Extent, Range
from tecomp.ir.traversal.rewrite import free_variables, substitute
from tecomp.poly.maps.extents import bounds_of, count
from tecomp.poly.sets.reader import Reader, expr_of


def box_of(
    exprs: Sequence[Expr],
    axes: Sequence[Var],
    region: Sequence[Range],
    outer: Ranges,
    whole: Callable[[], Sequence[Extent]] | None = None,
) -> tuple[Range, ...]:
    """For each of `exprs`, where its values start and how many it has at most.

    Args:
        exprs: functions of `axes`.
        axes: the indices, which run over `region`.
        region: a start, in terms of other variables, and an extent for each axis.
        outer: least and greatest value of those variables; None where unbounded.
        whole: gives for each of `exprs` how many values from 0 on it has at all, which hold where
            no bounds are known, as for XOR of an index that is known in terms of sizes only.

    Raises:
        LayoutError: no bounds of a result are known, and none are given.
    """
    inner = tuple(Var(axis.name) for axis in axes)
    starts = [_named(part.min, outer) for part in region]
    meant = {start: part.min for start, part in zip(starts, region, strict=True)
             if isinstance(start, Var) and start is not part.min}
    limits = {**outer, **{var: bounds(start, outer) for var, start in meant.items()}}
    shifted = {
        axis: simplify(binary(BinOp.ADD, start, var), limits)
        for axis, var, start in zip(axes, inner, starts, strict=True)
    }
    sizes = tuple(simplified(part.extent) for part in region)
    found = []
    for k, expr in enumerate(exprs):
        moved = substitute(expr, shifted)
        values = _values_of(moved, inner, sizes, limits)
        if values is None and whole is not None:
            values = Const(0, INT64), whole()[k]
        if values is None:
            raise LayoutError(
                f"index map: no bounds of `{moved}` are known; use constant extents, or + // % by "
                "constants only",
                kind="too-much",
            )
        low, extent = values
        low, extent = substitute(low, meant), substitute(index_value(extent), meant)
        found.append(Range(simplify(low, outer), index_value(simplified(extent))))
    return tuple(found)


def _named(start: Expr, outer: Ranges) -> Expr:
    """`start`, or a variable for it where it is divided by what is no number."""
    variables = tuple(free_variables(start))
    limits = [bounds(var, outer) for var in variables]
    form = Reader({var: k for k, var in enumerate(variables)}, limits).form(start)
    return Var("start") if form is None else start


def _values_of(
    expr: Expr, inner: tuple[Var, ...], sizes: tuple[Extent, ...], outer: Ranges
) -> tuple[Expr, Extent] | None:
    others = tuple(var for var in free_variables(expr) if var not in set(inner))
    variables = (*inner, *others)
    limits: list[Interval] = [*bounds_of(sizes), *(bounds(var, outer) for var in others)]
    reader = Reader({var: k for k, var in enumerate(variables)}, limits)
    form = reader.form(expr)
    found = _Window(reader, variables, len(inner), sizes).values(form) if form else None
    if found is not None:
        return found
    ranges = dict(outer)
    ranges.update(
        (var, (0, n - 1 if isinstance(n, int) else binary(BinOp.SUB, n, Const(1, INT64))))
        for var, n in zip(inner, sizes, strict=True)
    )
    low, high = bounds(expr, ranges)
    if low is None or high is None:
        return None
    return Const(low, INT64), high - low + 1


@dataclass(frozen=True, slots=True)
class _Window:
    """Sums in two kinds of variables: `n_inner` that start at 0, then outer ones."""

    reader: Reader
    variables: tuple[Var, ...]
    n_inner: int
    sizes: tuple[Extent, ...]

    def values(self, form: QuasiAffine) -> tuple[Expr, Extent] | None:
        """Where the values of `form` start and how many there are at most."""
        low: Expr = Const(form.const, INT64)
        extent: Extent = 1
        symbolic: dict[Term, int] = {}
        for term, n in form.terms.items():
            if not self._touches_inside(term):
                low = _plus(low, n, expr_of(QuasiAffine({term: 1}), self.variables))
                continue
            is_inside = self._is_inside(term)
            first, width = self._inside(term) if is_inside else self._across(term)
            if first is None:
                return None
            if width is None:
                symbolic[term] = n
                continue
            extent = plus(extent, times(width, abs(n)))
            low = _plus(low, n, first if n > 0 else _plus(first, 1, index_value(width)))
        if not symbolic:
            return low, extent
        # Inner indices count from 0, so these do too.
        total = count(QuasiAffine(symbolic), self.sizes)
        if total is None or not all(map(self._is_inside, symbolic)):
            return None
        return low, plus(plus(total, extent), -1)

    def _is_inside(self, term: Term) -> bool:
        return all(axis < self.n_inner for axis in QuasiAffine({term: 1}).unknowns)

    def _inside(self, term: Term) -> tuple[Expr | None, int | None]:
        low, high = self.reader.interval_of(term)
        if low is None:
            return None, None
        return Const(low, INT64), None if high is None else high - low

    def _across(self, term: Term) -> tuple[Expr | None, Extent | None]:
        """Start and width of a quotient or remainder in which both kinds of variables meet."""
        low, high = self.reader.interval_of(term)
        anywhere = None if low is None or high is None else high - low
        if isinstance(term, Digit) and term.low > 1:
            inner = term.whole
            if term.high is not None:
                inner = QuasiAffine({Digit(term.of, 1, term.high): 1})
            window = self._quotient(inner, term.low)
            if window is not None and (anywhere is None or _is_less(window[1], anywhere)):
                return window
        return (None, None) if low is None or anywhere is None else (Const(low, INT64), anywhere)

    def _quotient(self, form: QuasiAffine, divisor: int) -> tuple[Expr, Extent] | None:
        moving = QuasiAffine({t: n for t, n in form.terms.items() if self._touches_inside(t)})
        fixed = form.plus(moving, -1)
        low, high = self.reader.interval(moving)
        last: Extent | None = high
        if high is None and all(map(self._is_inside, moving.terms)):
            total = count(moving, self.sizes)
            last = None if total is None else plus(total, -1)
        if low is None or last is None:
            return None
        start = fixed.shifted(low)
        # The start is this much more than a multiple of the divisor, at most.
        step = gcd(divisor, *fixed.terms.values())
        furthest = divisor - step + start.const % step
        whole = binary(BinOp.FLOORDIV, expr_of(start, self.variables), Const(divisor, INT64))
        return whole, plus(last, furthest - low) // divisor

    def _touches_inside(self, term: Term) -> bool:
        return any(axis < self.n_inner for axis in QuasiAffine({term: 1}).unknowns)


def _is_less(a: Extent, b: int) -> bool:
    return isinstance(a, int) and a < b


def _plus(total: Expr, factor: int, term: Expr) -> Expr:
    return binary(BinOp.ADD, total, binary(BinOp.MUL, Const(factor, INT64), term))
