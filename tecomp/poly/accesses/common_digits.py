"""Mixed-radix decomposition shared by several layouts.

An axis is split wherever one of the layouts splits it, so that a copy is a loop over each digit,
with a stride in each memory. Any other offset, such as that of a swizzle, stays an expression.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import gcd, prod
from typing import Any

from tecomp.ir.arith.extents import round_up
from tecomp.ir.arith.intervals import Box
from tecomp.ir.arith.quasi_affine import Digit, OpaqueTerm, QuasiAffine, Term
from tecomp.ir.arith.quasi_affine_conversion import format_sum
from tecomp.ir.nodes.dtype import INT64
from tecomp.ir.nodes.expr import Binary, BinOp, Const, Expr, Var, binary
from tecomp.ir.nodes.stmt import IndexMapNode
from tecomp.ir.traversal.rewrite import bottom_up, substitute
from tecomp.poly.maps.image_extents import bounds_of
from tecomp.poly.sets.quasi_affine_reader import IndexReader, expr_of

Weighted = list[tuple[Expr, int]]


@dataclass(frozen=True, slots=True)
class LoopDigit:
    """Digit `(x // unit) % size` of an axis x.

    Attributes:
        var: Variable of the digit in expressions.
        unit: Weight of the digit.
        size: Number of values.
    """

    var: Var
    unit: int
    size: int


@dataclass(frozen=True, slots=True)
class DigitAxis:
    """Axis of constant extent as mixed-radix digits, the digit of the highest unit first."""

    extent: int
    digits: tuple[LoopDigit, ...]

    def boxes(self) -> Iterator[Box[int]]:
        """Yield disjoint boxes of digit values that cover all indices below the extent."""
        before: Box[int] = ()
        remainder = self.extent
        for k, digit in enumerate(self.digits):
            count, remainder = divmod(remainder, digit.unit)
            if count:
                yield (*before, (0, count), *((0, d.size) for d in self.digits[k + 1 :]))
            if not remainder:
                return
            before = (*before, (count, 1))

    def outside(self, sizes: Mapping[Var, int]) -> Iterator[Box[int]]:
        """Yield disjoint boxes of digit values below `sizes` that are not indices of the axis.

        Args:
            sizes: Number of values of each digit in memory, not less than the size of the digit.
        """
        before: Box[int] = ()
        remainder = self.extent
        for k, digit in enumerate(self.digits):
            count, remainder = divmod(remainder, digit.unit)
            if count:
                for box in _beyond(self.digits[k + 1 :], sizes):
                    yield (*before, (0, count), *box)
            used = count + (remainder > 0)
            if used < sizes[digit.var]:
                lower = ((0, sizes[d.var]) for d in self.digits[k + 1 :])
                yield (*before, (used, sizes[digit.var] - used), *lower)
            if not remainder:
                return
            before = (*before, (count, 1))


def _beyond(digits: Sequence[LoopDigit], sizes: Mapping[Var, int]) -> Iterator[Box[int]]:
    """Yield disjoint boxes of values below `sizes` of which one or more exceed their digit."""
    before: Box[int] = ()
    for k, digit in enumerate(digits):
        if digit.size < sizes[digit.var]:
            lower = ((0, sizes[d.var]) for d in digits[k + 1 :])
            yield (*before, (digit.size, sizes[digit.var] - digit.size), *lower)
        before = (*before, (0, digit.size))


@dataclass(frozen=True, slots=True)
class Offset:
    """Offset of an element in memory: `const` + strides times digits + `remainder`.

    Attributes:
        const: Constant part.
        strides: Strides of the digits that do not occur in `remainder`.
        remainder: Expression of the other digits; None if there are none.
    """

    const: int
    strides: Mapping[Var, int]
    remainder: Expr | None


@dataclass(frozen=True, slots=True)
class CommonDigits:
    """Axes as digits, and the offset in each of the layouts."""

    axes: tuple[DigitAxis, ...]
    offsets: tuple[Offset, ...]


def common_digits(
    shape: Sequence[int], layouts: Sequence[tuple[IndexMapNode, Sequence[int]]]
) -> CommonDigits:
    """Return the common digits of a tensor of `shape` for several layouts.

    Args:
        shape: Extents, none of which is 0.
        layouts: Index maps, each with the extents of its results.
    """
    axes = [Var(f"i{k}", INT64) for k in range(len(shape))]
    extents = list(shape)
    weighted = [_with_strides(index_map, sizes, axes) for index_map, sizes in layouts]
    while True:
        reader = _reader(axes, extents)
        # Read results separately: in a sum, a quotient and a remainder merge to their number.
        forms = [reader.form(expr) for terms in weighted for expr, _ in terms]
        joined = next((j for form in forms for j in _axes_to_join(form, extents)), None)
        if joined is None:
            break
        axes, extents, weighted = _with_joined(joined, axes, extents, weighted)
    offsets = [format_sum(terms, 0) for terms in weighted]
    points: list[set[int]] = [set() for _ in axes]
    for offset in offsets:
        _collect(reader, reader.form(offset), points)
    digit_axes = tuple(
        DigitAxis(extent, _digits(var.name, extent, split_points))
        for var, extent, split_points in zip(axes, extents, points, strict=True)
    )
    values = {
        var: format_sum([(digit.var, digit.unit) for digit in axis.digits], 0)
        for var, axis in zip(axes, digit_axes, strict=True)
    }
    digits = [digit for axis in digit_axes for digit in axis.digits]
    refined = _reader([d.var for d in digits], [d.size for d in digits])
    return CommonDigits(
        digit_axes, tuple(_read(refined, substitute(offset, values), digits) for offset in offsets)
    )


def _with_strides(index_map: IndexMapNode, extents: Sequence[int], axes: Sequence[Var]) -> Weighted:
    """Return each result with its stride in memory, in elements."""
    values = dict(zip(index_map.initial_indices, axes, strict=True))
    terms = []
    stride = 1
    for expr, extent in reversed(list(zip(index_map.final_indices, extents, strict=True))):
        terms.append((bottom_up(substitute(expr, values), _mask_as_digit), stride))
        stride *= extent
    return terms[::-1]


def _mask_as_digit(node: Any) -> Expr | None:
    """Rewrite `x & 56` as the digit `x // 8 % 8 * 8`."""
    if not isinstance(node, Binary) or node.op is not BinOp.BITAND:
        return None
    value, mask = (node.b, node.a) if isinstance(node.a, Const) else (node.a, node.b)
    if not isinstance(mask, Const) or mask.value <= 0:
        return None
    unit = int(mask.value) & -int(mask.value)
    size = int(mask.value) // unit + 1
    if size & (size - 1):
        return None
    digit = binary(BinOp.FLOORDIV, value, Const(unit, INT64)) if unit > 1 else value
    digit = binary(BinOp.MOD, digit, Const(size, INT64))
    return binary(BinOp.MUL, digit, Const(unit, INT64)) if unit > 1 else digit


def _reader(axes: Sequence[Var], extents: Sequence[int]) -> IndexReader:
    return IndexReader({var: k for k, var in enumerate(axes)}, bounds_of(extents))


def _terms(form: QuasiAffine | None) -> Iterator[Term]:
    """Yield all terms of a sum and of its nested sums."""
    worklist = [] if form is None else list(form.terms)
    while worklist:
        term = worklist.pop()
        yield term
        if isinstance(term, OpaqueTerm):
            worklist += [inner for operand in term.operands for inner in operand.terms]
        elif isinstance(term.of, QuasiAffine):
            worklist += term.of.terms


def _axes_to_join(form: QuasiAffine | None, extents: Sequence[int]) -> Iterator[list[int]]:
    """Yield axes whose row-major index a quotient or remainder divides, outermost first."""
    for term in _terms(form):
        if isinstance(term, OpaqueTerm) or not isinstance(term.of, QuasiAffine):
            continue
        terms = term.of.terms
        scaled = [(n, axis) for inner, n in terms.items() if (axis := _axis(inner)) is not None]
        scaled.sort(reverse=True)
        last = len(scaled) - 1
        if last < 1 or len(scaled) < len(terms):
            continue
        if all(
            scaled[k][0] == scaled[k + 1][0] * extents[scaled[k + 1][1]] for k in range(last)
        ):
            yield [axis for _, axis in scaled]


def _with_joined(
    joined: Sequence[int], axes: Sequence[Var], extents: Sequence[int],
    weighted: Sequence[Weighted],
) -> tuple[list[Var], list[int], list[Weighted]]:
    """Replace several axes by one axis, their row-major index."""
    row = Var("_".join(axes[k].name for k in joined), INT64)
    values: dict[Var, Expr] = {}
    unit = 1
    for k in reversed(joined):
        index = binary(BinOp.FLOORDIV, row, Const(unit, INT64)) if unit > 1 else row
        values[axes[k]] = binary(BinOp.MOD, index, Const(extents[k], INT64))
        unit *= extents[k]
    remaining = [k for k in range(len(axes)) if k not in joined]
    return (
        [*(axes[k] for k in remaining), row],
        [*(extents[k] for k in remaining), prod(extents[k] for k in joined)],
        [[(substitute(expr, values), n) for expr, n in terms] for terms in weighted],
    )


def _collect(reader: IndexReader, form: QuasiAffine | None, points: Sequence[set[int]]) -> None:
    """Add the positions at which the axes are split to `points`."""
    for term in _terms(form):
        if isinstance(term, OpaqueTerm):
            a, b = term.operands
            if term.op is BinOp.BITXOR:
                _collect_bits(reader, a, b, points)
                _collect_bits(reader, b, a, points)
        elif isinstance(term.of, int):
            points[term.of].update((term.low, term.high or term.low))


def _collect_bits(
    reader: IndexReader, left: QuasiAffine, right: QuasiAffine, points: Sequence[set[int]]
) -> None:
    """Split the digits of one operand where the bits of the other operand begin and end."""
    for term, factor in left.terms.items():
        if isinstance(term, Digit) and isinstance(term.of, int):
            points[term.of].update(
                term.low * (edge // factor)
                for edge in _edges(reader, right)
                if factor > 0 and edge % factor == 0
            )


def _edges(reader: IndexReader, form: QuasiAffine) -> tuple[int, ...]:
    """Return the lowest bit that a sum can have and the bit above the highest; () if it is 0."""
    low, high = reader.interval(form)
    if low is None or high is None or low < 0 or form == QuasiAffine():
        return ()
    unit = gcd(form.const, form.factor())
    return (unit & -unit, 1 << high.bit_length())


def _digits(name: str, extent: int, points: set[int]) -> tuple[LoopDigit, ...]:
    units = [1]
    for point in sorted(points):
        if not 1 < point < extent:
            continue
        if point % units[-1]:
            # Splits that do not divide each other are replaced by their common divisor.
            common = gcd(point, units[-1])
            units = [unit for unit in units if common % unit == 0 and unit < common] + [common]
        if point > units[-1]:
            units.append(point)
    ends = [*units[1:], round_up(extent, units[-1])]
    pairs = list(zip(units, ends, strict=True))
    return tuple(
        LoopDigit(Var(f"{name}_{unit}" if len(units) > 1 else name, INT64), unit, end // unit)
        for unit, end in reversed(pairs)
    )


def _read(reader: IndexReader, offset: Expr, digits: Sequence[LoopDigit]) -> Offset:
    form = reader.form(offset)
    if form is None:
        return Offset(0, {}, offset)
    form = _split_xor(reader, form)
    factors = {axis: n for term, n in form.terms.items() if (axis := _axis(term)) is not None}
    others = QuasiAffine({term: n for term, n in form.terms.items() if _axis(term) is None})
    bound = others.unknowns
    strides = {digits[k].var: n for k, n in factors.items() if k not in bound}
    variables = [digit.var for digit in digits]
    remainder = others.plus(QuasiAffine({Digit(k): n for k, n in factors.items() if k in bound}))
    return Offset(form.const, strides, expr_of(remainder, variables) if remainder.terms else None)


def _axis(term: Term) -> int | None:
    """Return the axis if a term is the whole index of an axis, otherwise None."""
    return term.unknown if isinstance(term, Digit) and term == Digit(term.of) else None


def _split_xor(reader: IndexReader, form: QuasiAffine) -> QuasiAffine:
    """Move the bits that XOR does not change out of the XOR terms of a sum."""
    parts = [(QuasiAffine({}, form.const), 1)]
    for term, n in form.terms.items():
        part = QuasiAffine({term: 1})
        if isinstance(term, OpaqueTerm) and term.op is BinOp.BITXOR:
            part = _xor_as_sum(reader, *term.operands)
        parts.append((part, n))
    return reader.normal(QuasiAffine.added(parts))


def _xor_as_sum(reader: IndexReader, a: QuasiAffine, b: QuasiAffine) -> QuasiAffine:
    """Return `a ^ b`, where bits of one operand that the other cannot have are added instead."""
    outside = QuasiAffine()
    for _ in range(2):
        for edge in _edges(reader, b):
            high = QuasiAffine({term: n for term, n in a.terms.items() if n % edge == 0})
            low = reader.plus(a, high, -1)
            lower, upper = reader.interval(low)
            if lower is None or upper is None or lower < 0 or upper >= edge:
                continue
            is_top = edge == _edges(reader, b)[1]
            outside = reader.plus(outside, high if is_top else low)
            a = low if is_top else high
        a, b = b, a
    if QuasiAffine() in (a, b):
        return reader.plus(reader.plus(outside, a), b)
    inner = reader.operation(BinOp.BITXOR, a, b)
    assert inner is not None
    return reader.plus(outside, inner)


Dims = tuple[tuple[int, int], ...]


def padding_boxes(
    axes: Sequence[DigitAxis], offset: Offset, volume: int
) -> list[tuple[int, Dims]] | None:
    """Return the padding of a layout, provided that memory is counted by the digits of the axes.

    Args:
        axes: Axes of the tensor.
        offset: Offset of an element.
        volume: Number of elements of the memory.

    Returns:
        Disjoint boxes: the first offset, and count and stride of each dimension. None if a digit
        has no integral size in memory.
    """
    sizes = _memory_sizes(axes, offset, volume)
    if sizes is None:
        return None
    strides: Mapping[Var, int] = offset.strides
    min_stride = min(strides.values(), default=volume)
    if min_stride > 1:
        # The gap between two elements belongs to no digit: add a digit of which only 0 is used.
        gap = LoopDigit(Var("between", INT64), 1, 1)
        axes = [*axes, DigitAxis(1, (gap,))]
        sizes[gap.var] = min_stride
        strides = {**strides, gap.var: 1}
    order = sorted(axes, key=lambda a: -max((strides.get(d.var, 0) for d in a.digits), default=0))
    found: list[tuple[int, Dims]] = []
    for k, axis in enumerate(order):
        for outside in axis.outside(sizes):
            values: list[Sequence[Box[int]]] = [
                *(list(before.boxes()) for before in order[:k]),
                [outside],
                *([tuple((0, sizes[d.var]) for d in after.digits)] for after in order[k + 1 :]),
            ]
            found += [_place_box(order, box, strides) for box in product(*values)]
    return found


def _memory_sizes(axes: Sequence[DigitAxis], offset: Offset, volume: int) -> dict[Var, int] | None:
    """Return the number of values of each digit in memory; None if strides do not divide."""
    digits = {digit.var: digit for axis in axes for digit in axis.digits}
    if offset.remainder is not None or offset.const or min(offset.strides.values(), default=1) <= 0:
        return None
    sizes = dict.fromkeys(digits, 1)
    order = sorted(offset.strides, key=lambda var: offset.strides[var])
    ends = [*(offset.strides[var] for var in order), volume][1:]
    for var, end in zip(order, ends, strict=True):
        size, remainder = divmod(end, offset.strides[var])
        if remainder or size < digits[var].size:
            return None
        sizes[var] = size
    return sizes


def _place_box(
    axes: Sequence[DigitAxis], box: Sequence[Box[int]], strides: Mapping[Var, int]
) -> tuple[int, Dims]:
    start, dims = 0, []
    for axis, values in zip(axes, box, strict=True):
        for digit, (first, count) in zip(axis.digits, values, strict=True):
            step = strides.get(digit.var, 0)
            start += first * step
            dims.append((count, step))
    return start, tuple(dims)
