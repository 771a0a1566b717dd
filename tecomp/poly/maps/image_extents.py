"""Images of index maps: extents, bounding boxes and properties decided with integer sets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from math import gcd

import islpy as isl
import numpy as np

from tecomp.errors import LayoutError
from tecomp.ir.arith.extents import ceil_div, constant_shape, is_empty, plus, simplify_extent, times
from tecomp.ir.arith.intervals import Interval
from tecomp.ir.arith.quasi_affine import Digit, OpaqueTerm, QuasiAffine, Term
from tecomp.ir.arith.simplify import Ranges, bounds, simplify
from tecomp.ir.nodes.dtype import INT64
from tecomp.ir.nodes.expr import Binary, BinOp, Const, Expr, Var, binary, index_value
from tecomp.ir.nodes.stmt import Extent, Range
from tecomp.ir.traversal.rewrite import free_variables, substitute
from tecomp.poly.maps import bit_matrix, brute_force
from tecomp.poly.maps.piecewise_linear import Cell, TooManyError, fuse_digit_pairs, linear_cells
from tecomp.poly.sets.from_isl import set_to_condition, to_expr
from tecomp.poly.sets.isl_context import isl_work
from tecomp.poly.sets.isl_expressions import python_int
from tecomp.poly.sets.quasi_affine_reader import IndexReader, expr_of
from tecomp.poly.sets.to_isl import (
    NotAffine,
    Products,
    Space,
    condition,
    first_point,
    index_relation,
    products_of,
    pw_aff,
)

_DIM = isl.dim_type.set


@dataclass(frozen=True)
class LayoutSet:
    """Map `exprs` of the indices `axes`, which range over the box `[0, extents)`.

    All properties raise NotAffine if an expression is not quasi-affine. A non-affine part of an
    extent, such as a product of sizes, is treated as a number of unknown value.
    """

    exprs: tuple[Expr, ...]
    axes: tuple[Var, ...]
    extents: tuple[Extent, ...]

    @cached_property
    def _products(self) -> Products:
        symbolic = [extent for extent in self.extents if isinstance(extent, Expr)]
        return products_of(symbolic, (v for extent in symbolic for v in free_variables(extent)))

    @cached_property
    def _sizes(self) -> tuple[Extent, ...]:
        return self._named(self.extents)

    def _named(self, extents: Sequence[Extent]) -> tuple[Extent, ...]:
        named = self._products.named
        return tuple(n if isinstance(n, int) else named(n) for n in extents)

    def _in_sizes(self, expr: Expr) -> Expr:
        return substitute(expr, dict(self._products.values))

    @cached_property
    def space(self) -> Space:
        """Space of the indices, with every other variable as a parameter."""
        others: dict[Var, None] = {}
        for expr in (*self._sizes, *self.exprs):
            if isinstance(expr, Expr):
                others.update(free_variables(expr))
        return Space(self.axes, tuple(var for var in others if var not in set(self.axes)))

    @cached_property
    def _box(self) -> isl.Set:
        return self.space.box([(0, size) for size in self._sizes])

    @cached_property
    def relation(self) -> isl.Map:
        """Relation `{ index -> physical index }`."""
        return index_relation(self.exprs, self.space).intersect_domain(self._box)

    def is_injective(self) -> bool:
        """Return whether the map is injective for all values of the parameters."""
        return bool(self.relation.is_injective())

    def first_collision(self) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
        """Return the first two indices with the same image, for the least such parameters."""
        if self.is_injective():
            return None
        pairs = self.relation.apply_range(self.relation.reverse())
        clashes = pairs.subtract(isl.Map.identity(pairs.get_space()))
        twins = tuple(Var(axis.name) for axis in self.axes)
        space = Space((*self.axes, *twins), self.space.params)
        found = first_point(clashes.wrap().flatten(), space)
        return tuple(found[a] for a in self.axes), tuple(found[a] for a in twins)

    def inverse(self, index: Sequence[Var]) -> tuple[Expr, ...]:
        """Return each index in terms of the physical index, for an injective map."""
        found = isl.PwMultiAff.from_map(self.relation.reverse()).coalesce()
        names = {**Space(tuple(index), self.space.params).names}
        exprs = (to_expr(found.get_at(k), names) for k in range(len(self.axes)))
        return tuple(self._in_sizes(expr) for expr in exprs)

    def misses(self, index: Sequence[Var], ends: Sequence[Extent]) -> Expr:
        """Return the condition under which a physical index in `[0, ends)` has no element."""
        space = Space(tuple(index), self.space.params)
        box = space.box([(0, end) for end in self._named(ends)])
        occupied = self.relation.range()
        empty = box.subtract(occupied).coalesce().gist(box)
        return self._in_sizes(set_to_condition(empty, {**space.names}))

    def is_never(self, conditions: Sequence[Expr], index: Sequence[Var],
                 ends: Sequence[Extent]) -> bool:
        """Return whether none of `conditions` is satisfiable in the box `[0, ends)` of `index`."""
        space = Space(tuple(index), self.space.params)
        box = space.box([(0, end) for end in self._named(ends)])
        named = self._products.named
        return all(condition(named(c), space).intersect(box).is_empty() for c in conditions)

    def count_places(self) -> int:
        """Return the number of physical indices with an element; the extents must be constants."""
        return python_int(self.relation.range().count_val())

    def greatest(self, k: int) -> Extent | None:
        """Return the greatest value of expression k, or None if there is no index."""
        if self._box.is_empty():
            return None
        top = self.relation.range().dim_max(k)
        found = to_expr(top.coalesce(), {**self.space.names})
        return int(found.value) if isinstance(found, Const) else self._in_sizes(found)

    def first_below_zero(self, k: int) -> dict[Var, int] | None:
        """Return the first index, with the least parameters, where expression k is negative."""
        value = pw_aff(self.exprs[k], self.space)
        zero = pw_aff(0, self.space)
        negative = value.lt_set(zero).intersect(self._box)
        if negative.is_empty():
            return None
        return first_point(negative, self.space)

    def same_as(self, exprs: Sequence[Expr]) -> bool:
        """Return whether `exprs`, of the same axes, have equal values on the whole box."""
        other = LayoutSet(tuple(exprs), self.axes, self.extents)
        space = Space(self.axes, tuple(dict.fromkeys((*self.space.params, *other.space.params))))
        box = space.box([(0, size) for size in self._sizes])
        return all(
            pw_aff(a, space).ne_set(pw_aff(b, space)).intersect(box).is_empty()
            for a, b in zip(self.exprs, exprs, strict=True)
        )


_MAX_CELLS = 128
"""Maximum number of linear cells used to find the greatest value of bit operations."""


def bounds_of(shape: Sequence[Extent]) -> list[Interval]:
    """Return the least and greatest index of each axis; None for a symbolic upper bound."""
    return [(0, n - 1 if isinstance(n, int) else None) for n in shape]


def extent_of(
    expr: Expr, form: QuasiAffine | None, reader: IndexReader, axes: Sequence[Var],
    shape: Sequence[Extent],
) -> Extent:
    """Return the extent, counted from 0, that one result of an index map needs.

    Args:
        expr: Result expression.
        form: Form of the result with periods; None if it has none.
        reader: Reader of that form.
        axes: Axes of the index.
        shape: Extents of the axes.

    Raises:
        LayoutError: If the result is negative for some index.
    """
    match expr:
        case Binary(BinOp.MOD, _, Const(int(period))) if period > 0:
            return period
    if is_empty(shape) and is_empty(dependent_axes(expr, axes, shape)[1]):
        # Without an index there are no values; a declared period keeps its size.
        part = form.single() if form is not None else None
        return part.size or 0 if isinstance(part, Digit) else 0
    if not is_empty(shape):
        _refuse_negative(expr, form, reader, axes, shape)
    extent = count(form, shape) if form is not None else None
    extent = extent if extent is not None else _exact(expr, axes, shape)
    return max(extent, 0) if isinstance(extent, int) else extent


def _refuse_negative(
    expr: Expr, form: QuasiAffine | None, reader: IndexReader, axes: Sequence[Var],
    shape: Sequence[Extent],
) -> None:
    if form is not None:
        low = reader.interval(form)[0]
        if low is not None and low >= 0:
            return
    found = _first_negative(expr, axes, shape)
    if found is None:
        return
    index = tuple(found.get(axis, 0) for axis in axes)
    value = int(brute_force.values(expr, {var: np.asarray(n) for var, n in found.items()}))
    raise LayoutError(
        "index map: `{expr}` is {value} at index {index}, but physical indices must be "
        "non-negative; add {positive} or more",
        kind="negative-address", expr=expr, value=value, index=index, positive=-value,
    )


def _first_negative(
    expr: Expr, axes: Sequence[Var], shape: Sequence[Extent]
) -> dict[Var, int] | None:
    used_axes, sizes = dependent_axes(expr, axes, shape)
    if not brute_force.is_small([expr], used_axes, sizes):
        with isl_work("index map", LayoutError), suppress(NotAffine):
            return LayoutSet((expr,), used_axes, sizes).first_below_zero(0)
    constant = brute_force.is_enumerable([expr], used_axes, sizes)
    (values,) = brute_force.evaluate_over_box([expr], used_axes, constant)
    negative = np.flatnonzero(values < 0)
    if not negative.size:
        return None
    return dict(zip(used_axes, brute_force.unravel(int(negative[0]), constant), strict=True))


def count(form: QuasiAffine, shape: Sequence[Extent]) -> Extent | None:
    """Return the greatest value plus one if the terms of the form are independent, else None."""
    if any(n < 0 for n in form.terms.values()) or not _are_independent(form):
        return None
    const = form.const + 1
    total: Extent = 0
    for term, n in form.terms.items():
        size = _term_count(term, shape)
        if size is None:
            return None
        const -= n
        if isinstance(size, int):
            const += n * size
        else:
            total = plus(total, times(size, n))
    if isinstance(total, int) or const >= 0:
        return simplify_extent(plus(total, const))
    return _from_zero_on(plus(total, const), shape)


def _from_zero_on(extent: Extent, shape: Sequence[Extent]) -> Extent:
    """Clamp `extent`, which may be negative where an axis of `shape` is empty, to 0."""
    if isinstance(extent, int):
        return extent
    ranges: Ranges = {size: (0, None) for size in shape if isinstance(size, Var)}
    short = simplify(binary(BinOp.MAX, extent, Const(0, INT64)), ranges)
    return int(short.value) if isinstance(short, Const) else short


def _term_count(term: Term, shape: Sequence[Extent]) -> Extent | None:
    if isinstance(term, OpaqueTerm):
        return None
    if term.size is not None:
        return term.size
    inner = shape[term.of] if isinstance(term.of, int) else count(term.of, shape)
    return None if inner is None else ceil_div(inner, term.low)


def _are_independent(form: QuasiAffine) -> bool:
    """Return whether no two terms depend on the same digits of an axis."""
    digits = [t for t in form.terms if isinstance(t, Digit) and t.unknown is not None]
    for k, a in enumerate(digits):
        for b in digits[:k]:
            if a.of == b.of and (b.high is None or b.high > a.low):
                return False
    axes = {digit.unknown for digit in digits}
    for term in form.terms:
        if term.unknown is None:
            unknowns = QuasiAffine({term: 1}).unknowns
            if unknowns & axes:
                return False
            axes |= unknowns
    return True


def _exact(expr: Expr, axes: Sequence[Var], shape: Sequence[Extent]) -> Extent:
    used_axes, sizes = dependent_axes(expr, axes, shape)
    if not brute_force.is_small([expr], used_axes, sizes):
        with isl_work("index map", LayoutError), suppress(NotAffine):
            greatest = LayoutSet((expr,), used_axes, sizes).greatest(0)
            return 0 if greatest is None else _from_zero_on(plus(greatest, 1), sizes)
        greatest = greatest_by_bits(expr, used_axes, sizes)
        if greatest is not None:
            return greatest + 1
    constant = brute_force.is_enumerable([expr], used_axes, sizes)
    (values,) = brute_force.evaluate_over_box([expr], used_axes, constant)
    return int(values.max()) + 1


def greatest_by_bits(expr: Expr, axes: Sequence[Var], shape: Sequence[Extent]) -> int | None:
    """Return the greatest value of bit operations, by GF(2) elimination or on linear cells."""
    sizes = constant_shape(shape)
    if sizes is None or any(var not in set(axes) for var in free_variables(expr)):
        return None
    found = bit_matrix.greatest(expr, axes, sizes)
    if found is not None:
        return found
    form = IndexReader({axis: k for k, axis in enumerate(axes)}, bounds_of(sizes)).form(expr)
    if form is None:
        return None
    try:
        cells = linear_cells(
            fuse_digit_pairs(Cell.of([form], [(0, n) for n in sizes])), _MAX_CELLS
        )
    except TooManyError:
        return None
    highs = (cell.reader.interval(cell.forms[0])[1] for cell in cells)
    return max(high for high in highs if high is not None)


def value_range(
    expr: Expr, axes: Sequence[Var], shape: Sequence[int]
) -> tuple[int, int]:
    """Return the least and the greatest value of `expr` over a nonempty box.

    Raises:
        LayoutError: If `expr` has bit operations and the box is too large for enumeration.
    """
    numbers = {var: k for k, var in enumerate(axes)}
    form = IndexReader(numbers, bounds_of(shape)).form(expr)
    if form is not None and _is_of_digits(form):
        extremes = [(_digits(term, shape) - 1) * n for term, n in form.terms.items()]
        lows, highs = ([pick(n, 0) for n in extremes] for pick in (min, max))
        return form.const + sum(lows), form.const + sum(highs)
    negated = binary(BinOp.SUB, Const(0, INT64), expr)
    low, high = (_exact(e, axes, shape) for e in (negated, expr))
    assert isinstance(low, int)
    assert isinstance(high, int)
    return 1 - low, high - 1


def _is_of_digits(form: QuasiAffine) -> bool:
    """Return whether a form is a sum with one digit for each of its axes."""
    axes = [term.unknown for term in form.terms if term.unknown is not None]
    return len(axes) == len(form.terms) == len(form.unknowns)


def _digits(term: Term, shape: Sequence[int]) -> int:
    assert isinstance(term, Digit)
    assert isinstance(term.of, int)
    count = ceil_div(shape[term.of], term.low)
    return count if term.size is None else min(count, term.size)


def dependent_axes(
    expr: Expr, axes: Sequence[Var], shape: Sequence[Extent]
) -> tuple[tuple[Var, ...], tuple[Extent, ...]]:
    """Return the axes that `expr` depends on, and their extents."""
    used = free_variables(expr)
    positions = [k for k, axis in enumerate(axes) if axis in used]
    return tuple(axes[k] for k in positions), tuple(shape[k] for k in positions)


def box_of(
    exprs: Sequence[Expr],
    axes: Sequence[Var],
    region: Sequence[Range],
    outer: Ranges,
    extents: Callable[[], Sequence[Extent]] | None = None,
) -> tuple[Range, ...]:
    """Return the start and an upper bound of the extent of the values of each of `exprs`.

    Args:
        exprs: Functions of `axes`.
        axes: Indices, which range over `region`.
        region: Start, in terms of other variables, and extent of each axis.
        outer: Least and greatest value of these variables; None where unbounded.
        extents: Function that returns the extent, counted from 0, of each of `exprs` over the whole
            tensor. It applies where bounds are unknown, as for XOR of an index with symbolic
            bounds.

    Raises:
        LayoutError: If the bounds of a result are unknown and `extents` is None.
    """
    inner = tuple(Var(axis.name) for axis in axes)
    starts = [_name_start(part.min, outer) for part in region]
    bindings = {start: part.min for start, part in zip(starts, region, strict=True)
             if isinstance(start, Var) and start is not part.min}
    limits = {**outer, **{var: bounds(start, outer) for var, start in bindings.items()}}
    shifted = {
        axis: simplify(binary(BinOp.ADD, start, var), limits)
        for axis, var, start in zip(axes, inner, starts, strict=True)
    }
    sizes = tuple(simplify_extent(part.extent) for part in region)
    found = []
    for k, expr in enumerate(exprs):
        offset_expr = substitute(expr, shifted)
        values = _values_of(offset_expr, inner, sizes, limits)
        if values is None and extents is not None:
            values = Const(0, INT64), extents()[k]
        if values is None:
            raise LayoutError(
                "index map: the bounds of `{moved}` cannot be inferred; use constant extents, or "
                "only + // % by constants",
                kind="limit-exceeded", moved=offset_expr,
            )
        low, extent = values
        low, extent = substitute(low, bindings), substitute(index_value(extent), bindings)
        found.append(Range(simplify(low, outer), index_value(simplify_extent(extent))))
    return tuple(found)


def _name_start(start: Expr, outer: Ranges) -> Expr:
    """Return `start`, or a new variable if `start` is not quasi-affine."""
    variables = tuple(free_variables(start))
    limits = [bounds(var, outer) for var in variables]
    form = IndexReader({var: k for k, var in enumerate(variables)}, limits).form(start)
    return Var("start") if form is None else start


def _values_of(
    expr: Expr, inner: tuple[Var, ...], sizes: tuple[Extent, ...], outer: Ranges
) -> tuple[Expr, Extent] | None:
    others = tuple(var for var in free_variables(expr) if var not in set(inner))
    variables = (*inner, *others)
    limits: list[Interval] = [*bounds_of(sizes), *(bounds(var, outer) for var in others)]
    reader = IndexReader({var: k for k, var in enumerate(variables)}, limits)
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
    """Sums over `n_inner` inner variables, which start at 0, followed by outer variables."""

    reader: IndexReader
    variables: tuple[Var, ...]
    n_inner: int
    sizes: tuple[Extent, ...]

    def values(self, form: QuasiAffine) -> tuple[Expr, Extent] | None:
        """Return the start and an upper bound of the extent of the values of `form`."""
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
        # Inner indices count from 0, and so do these terms.
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
        """Return start and width of a term that depends on both inner and outer variables."""
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
        varying = QuasiAffine({t: n for t, n in form.terms.items() if self._touches_inside(t)})
        fixed = form.plus(varying, -1)
        low, high = self.reader.interval(varying)
        last: Extent | None = high
        if high is None and all(map(self._is_inside, varying.terms)):
            total = count(varying, self.sizes)
            last = None if total is None else plus(total, -1)
        if low is None or last is None:
            return None
        start = fixed.shifted(low)
        # Upper bound of the offset of the start from a multiple of the divisor.
        step = gcd(divisor, *fixed.terms.values())
        furthest = divisor - step + start.const % step
        quotient = binary(BinOp.FLOORDIV, expr_of(start, self.variables), Const(divisor, INT64))
        return quotient, plus(last, furthest - low) // divisor

    def _touches_inside(self, term: Term) -> bool:
        return any(axis < self.n_inner for axis in QuasiAffine({term: 1}).unknowns)


def _is_less(a: Extent, b: int) -> bool:
    return isinstance(a, int) and a < b


def _plus(total: Expr, factor: int, term: Expr) -> Expr:
    return binary(BinOp.ADD, total, binary(BinOp.MUL, Const(factor, INT64), term))
