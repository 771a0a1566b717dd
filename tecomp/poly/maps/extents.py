"""The shape that an index map gives: periods and ceilings where it has them, else the exact box.

`x % c` has the full period c and `x // c` the ceiling, also where an axis ends earlier: that is
how users ask for padding. Anything else gets as much as its greatest value needs.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

import numpy as np

from tecomp.errors import LayoutError
from tecomp.ir.algebra.extents import ceil_div, constant_shape, is_empty, plus, simplified, times
from tecomp.ir.algebra.intervals import Interval
from tecomp.ir.algebra.quasi_affine import Digit, Opaque, QuasiAffine, Term
from tecomp.ir.algebra.simplify import Ranges, simplify
from tecomp.ir.language.dtype import INT64
from tecomp.ir.language.expr import Binary, BinOp, Const, Expr, Var, binary
from tecomp.ir.language.stmt import Extent
from tecomp.ir.traversal.rewrite import free_variables
from tecomp.poly.maps import bits
from tecomp.poly.maps import enumerate as elements
from tecomp.poly.maps.cuts import Cell, TooManyError, fused, linear_cells
from tecomp.poly.maps.layout_sets import LayoutSet
from tecomp.poly.sets.affine import NotAffine
from tecomp.poly.sets.context import isl_work
from tecomp.poly.sets.reader import Reader

_MOST_CELLS = 128


def bounds_of(shape: Sequence[Extent]) -> list[Interval]:
    """Least and greatest index on each axis."""
    return [(0, n - 1 if isinstance(n, int) else None) for n in shape]


def extent_of(
    expr: Expr, form: QuasiAffine | None, reader: Reader, axes: Sequence[Var],
    shape: Sequence[Extent],
) -> Extent:
    """How many values from 0 on one result of an index map needs.

    Args:
        expr: the result.
        form: its form with periods, if it has one.
        reader: the reader of that form.
        axes: of the index.
        shape: their extents.

    Raises:
        LayoutError: it is negative somewhere.
    """
    match expr:
        case Binary(BinOp.MOD, _, Const(int(period))) if period > 0:
            return period
    if is_empty(shape) and is_empty(used_axes(expr, axes, shape)[1]):
        # No index, so no place; a period stays what it is.
        part = form.single() if form is not None else None
        return part.size or 0 if isinstance(part, Digit) else 0
    if not is_empty(shape):
        _refuse_negative(expr, form, reader, axes, shape)
    extent = count(form, shape) if form is not None else None
    extent = extent if extent is not None else _exact(expr, axes, shape)
    return max(extent, 0) if isinstance(extent, int) else extent


def _refuse_negative(
    expr: Expr, form: QuasiAffine | None, reader: Reader, axes: Sequence[Var],
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
    value = int(elements.values(expr, {var: np.asarray(n) for var, n in found.items()}))
    raise LayoutError(
        f"index map: `{expr}` is {value} at index {index}; places count from 0, so add "
        f"{-value} or more",
        kind="negative-place",
    )


def _first_negative(
    expr: Expr, axes: Sequence[Var], shape: Sequence[Extent]
) -> dict[Var, int] | None:
    some, sizes = used_axes(expr, axes, shape)
    if not elements.is_small([expr], some, sizes):
        with isl_work("index map", LayoutError), suppress(NotAffine):
            return LayoutSet((expr,), some, sizes).first_below_zero(0)
    constant = elements.few_enough([expr], some, sizes)
    (values,) = elements.over_box([expr], some, constant)
    below = np.flatnonzero(values < 0)
    if not below.size:
        return None
    return dict(zip(some, elements.unravel(int(below[0]), constant), strict=True))


def count(form: QuasiAffine, shape: Sequence[Extent]) -> Extent | None:
    """One more than the greatest value, if the parts of the form do not depend on each other."""
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
        return simplified(plus(total, const))
    return _from_zero_on(plus(total, const), shape)


def _from_zero_on(extent: Extent, shape: Sequence[Extent]) -> Extent:
    """`extent`, which may come out below 0 where an axis of `shape` has no index at all."""
    if isinstance(extent, int):
        return extent
    ranges: Ranges = {size: (0, None) for size in shape if isinstance(size, Var)}
    short = simplify(binary(BinOp.MAX, extent, Const(0, INT64)), ranges)
    return int(short.value) if isinstance(short, Const) else short


def _term_count(term: Term, shape: Sequence[Extent]) -> Extent | None:
    if isinstance(term, Opaque):
        return None
    if term.size is not None:
        return term.size
    inner = shape[term.of] if isinstance(term.of, int) else count(term.of, shape)
    return None if inner is None else ceil_div(inner, term.low)


def _are_independent(form: QuasiAffine) -> bool:
    """Whether no two terms depend on the same digits of an axis."""
    digits = [t for t in form.terms if isinstance(t, Digit) and t.unknown is not None]
    for k, a in enumerate(digits):
        for b in digits[:k]:
            if a.of == b.of and (b.high is None or b.high > a.low):
                return False
    axes = {digit.unknown for digit in digits}
    for term in form.terms:
        if term.unknown is None:
            used = QuasiAffine({term: 1}).unknowns
            if used & axes:
                return False
            axes |= used
    return True


def _exact(expr: Expr, axes: Sequence[Var], shape: Sequence[Extent]) -> Extent:
    some, sizes = used_axes(expr, axes, shape)
    if not elements.is_small([expr], some, sizes):
        with isl_work("index map", LayoutError), suppress(NotAffine):
            greatest = LayoutSet((expr,), some, sizes).greatest(0)
            return 0 if greatest is None else _from_zero_on(plus(greatest, 1), sizes)
        greatest = greatest_by_bits(expr, some, sizes)
        if greatest is not None:
            return greatest + 1
    constant = elements.few_enough([expr], some, sizes)
    (values,) = elements.over_box([expr], some, constant)
    return int(values.max()) + 1


def greatest_by_bits(expr: Expr, axes: Sequence[Var], shape: Sequence[Extent]) -> int | None:
    """The greatest value of bit operations: of bits by themselves, or of each value of a part."""
    sizes = constant_shape(shape)
    if sizes is None or any(var not in set(axes) for var in free_variables(expr)):
        return None
    found = bits.greatest(expr, axes, sizes)
    if found is not None:
        return found
    form = Reader({axis: k for k, axis in enumerate(axes)}, bounds_of(sizes)).form(expr)
    if form is None:
        return None
    try:
        cells = linear_cells(fused(Cell.of([form], [(0, n) for n in sizes])), _MOST_CELLS)
    except TooManyError:
        return None
    highs = (cell.reader.interval(cell.forms[0])[1] for cell in cells)
    return max(high for high in highs if high is not None)


def value_range(
    expr: Expr, axes: Sequence[Var], shape: Sequence[int]
) -> tuple[int, int]:
    """The least and the greatest value of `expr` over a box that is not empty.

    Raises:
        LayoutError: it combines bits, and the box is too large to look at every element.
    """
    numbers = {var: k for k, var in enumerate(axes)}
    form = Reader(numbers, bounds_of(shape)).form(expr)
    if form is not None and _is_of_digits(form):
        tops = [(_digits(term, shape) - 1) * n for term, n in form.terms.items()]
        lows, highs = ([pick(n, 0) for n in tops] for pick in (min, max))
        return form.const + sum(lows), form.const + sum(highs)
    negated = binary(BinOp.SUB, Const(0, INT64), expr)
    low, high = (_exact(e, axes, shape) for e in (negated, expr))
    assert isinstance(low, int)
    assert isinstance(high, int)
    return 1 - low, high - 1


def _is_of_digits(form: QuasiAffine) -> bool:
    """Whether it is a sum of one digit of each of its axes."""
    axes = [term.unknown for term in form.terms if term.unknown is not None]
    return len(axes) == len(form.terms) == len(form.unknowns)


def _digits(term: Term, shape: Sequence[int]) -> int:
    assert isinstance(term, Digit)
    assert isinstance(term.of, int)
    count = ceil_div(shape[term.of], term.low)
    return count if term.size is None else min(count, term.size)


def used_axes(
    expr: Expr, axes: Sequence[Var], shape: Sequence[Extent]
) -> tuple[tuple[Var, ...], tuple[Extent, ...]]:
    """The axes that `expr` depends on, and their extents."""
    used = free_variables(expr)
    kept = [k for k, axis in enumerate(axes) if axis in used]
    return tuple(axes[k] for k in kept), tuple(shape[k] for k in kept)
