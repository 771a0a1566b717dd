"""The box of places that a box of indices is mapped into, while outer loops run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import gcd

from tecomp.errors import LayoutError
from tecomp.ir.dtype import INT64
from tecomp.ir.expr import BinOp, Const, Expr, Var, binary, index_value
from tecomp.ir.extents import plus, simplified, times
from tecomp.ir.rewrite import free_variables, substitute
from tecomp.ir.simplify import Ranges, bounds, simplify
from tecomp.ir.stmt import Extent, Range
from tecomp.poly.extents import bounds_of, count
from tecomp.poly.forms import Form, Opaque, Part, Reader, Span


def box_of(
    exprs: Sequence[Expr], axes: Sequence[Var], region: Sequence[Range], outer: Ranges
) -> tuple[Range, ...]:
    """For each of `exprs`, where its values start and how many it has at most.

    Args:
        exprs: functions of `axes`.
        axes: the indices, which run over `region`.
        region: a start, in terms of other variables, and an extent for each axis.
        outer: least and greatest value of those variables; None where unbounded.

    Raises:
        LayoutError: no bounds of a result are known.
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
    for expr in exprs:
        low, extent = _values_of(substitute(expr, shifted), inner, sizes, limits)
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
) -> tuple[Expr, Extent]:
    others = tuple(var for var in free_variables(expr) if var not in set(inner))
    variables = (*inner, *others)
    limits = [*bounds_of(sizes), *(bounds(var, outer) for var in others)]
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
        raise LayoutError(
            f"index map: no bounds of `{expr}` are known; use constant extents, or + // % by "
            "constants only"
        )
    return Const(low, INT64), high - low + 1


@dataclass(frozen=True, slots=True)
class _Window:
    """Forms in two kinds of variables: `n_inner` that start at 0, then outer ones."""

    reader: Reader
    variables: tuple[Var, ...]
    n_inner: int
    sizes: tuple[Extent, ...]

    def values(self, form: Form) -> tuple[Expr, Extent] | None:
        """Where the values of `form` start and how many there are at most."""
        low: Expr = Const(form.const, INT64)
        extent: Extent = 1
        symbolic: list[tuple[Part, int]] = []
        for part, n in form.terms:
            kinds = {axis < self.n_inner for axis in Form(0, ((part, 1),)).axes}
            if kinds == {False}:
                low = _plus(low, n, self._written(Form(0, ((part, 1),))))
                continue
            first, width = self._inside(part) if kinds == {True} else self._across(part)
            if first is None:
                return None
            if width is None:
                symbolic.append((part, n))
                continue
            extent = plus(extent, times(width, abs(n)))
            low = _plus(low, n, first if n > 0 else _plus(first, 1, index_value(width)))
        if not symbolic:
            return low, extent
        # Inner indices count from 0, so these do too.
        total = count(Form(0, tuple(symbolic)), self.sizes)
        if total is None or any(not self._is_inside(part) for part, _ in symbolic):
            return None
        return low, plus(plus(total, extent), -1)

    def _is_inside(self, part: Part) -> bool:
        return all(axis < self.n_inner for axis in Form(0, ((part, 1),)).axes)

    def _inside(self, part: Part) -> tuple[Expr | None, int | None]:
        low, high = self.reader.part_range(part)
        if low is None:
            return None, None
        return Const(low, INT64), None if high is None else high - low

    def _across(self, part: Part) -> tuple[Expr | None, Extent | None]:
        """Start and width of a quotient or remainder in which both kinds of variables meet."""
        assert isinstance(part, Opaque)
        low, high = self.reader.part_range(part)
        anywhere = None if low is None or high is None else high - low
        if part.op is BinOp.FLOORDIV:
            window = self._quotient(part.parts[0], part.number)
            if window is not None and (anywhere is None or _is_less(window[1], anywhere)):
                return window
        return (None, None) if low is None or anywhere is None else (Const(low, INT64), anywhere)

    def _quotient(self, form: Form, divisor: int) -> tuple[Expr, Extent] | None:
        fixed = [(p, n) for p, n in form.terms if not self._touches_inside(p)]
        moving = Form(0, tuple((p, n) for p, n in form.terms if self._touches_inside(p)))
        low, high = self.reader.range(moving)
        last: Extent | None = high
        if high is None and all(self._is_inside(part) for part, _ in moving.terms):
            total = count(moving, self.sizes)
            last = None if total is None else plus(total, -1)
        if low is None or last is None:
            return None
        start = Form(form.const + low, tuple(fixed))
        # The start is this much more than a multiple of the divisor, at most.
        step = gcd(divisor, *(n for _, n in fixed))
        furthest = divisor - step + start.const % step
        whole = binary(BinOp.FLOORDIV, self._written(start), Const(divisor, INT64))
        return whole, plus(last, furthest - low) // divisor

    def _touches_inside(self, part: Part) -> bool:
        return any(axis < self.n_inner for axis in Form(0, ((part, 1),)).axes)

    def _written(self, form: Form) -> Expr:
        total: Expr = Const(form.const, INT64)
        for part, n in form.terms:
            total = _plus(total, n, self._written_part(part))
        return total

    def _written_part(self, part: Part) -> Expr:
        if isinstance(part, Span):
            value = binary(
                BinOp.FLOORDIV, self.variables[part.axis], Const(part.low, INT64)
            )
            return value if part.size is None else binary(
                BinOp.MOD, value, Const(part.size, INT64)
            )
        operands = [self._written(form) for form in part.parts]
        if len(operands) == 1:
            operands.append(Const(part.number, INT64))
        return binary(part.op, *operands)


def _is_less(a: Extent, b: int) -> bool:
    return isinstance(a, int) and a < b


def _plus(total: Expr, factor: int, term: Expr) -> Expr:
    return binary(BinOp.ADD, total, binary(BinOp.MUL, Const(factor, INT64), term))
