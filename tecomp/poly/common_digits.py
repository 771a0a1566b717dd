"""Digits in which the offsets of several layouts of one tensor are sums.

An axis is cut wherever one of the layouts cuts it, so that a copy is a loop over each digit, with a
step of its own in each memory. What is no such sum, such as a swizzle, stays an expression.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import gcd, prod
from typing import Any

from tecomp.ir.dtype import INT64
from tecomp.ir.expr import Binary, BinOp, Const, Expr, Var, binary
from tecomp.ir.extents import round_up
from tecomp.ir.rewrite import bottom_up, free_variables, substitute
from tecomp.ir.stmt import IndexMap
from tecomp.poly.extents import bounds_of
from tecomp.poly.forms import Form, Opaque, Part, Reader, Span

Box = tuple[tuple[int, int], ...]
"""For each digit the first value and how many there are."""


@dataclass(frozen=True, slots=True)
class Digit:
    """`(x // unit) % size` of an axis x.

    Attributes:
        var: what it is called in expressions.
    """

    var: Var
    unit: int
    size: int


@dataclass(frozen=True, slots=True)
class Axis:
    """An axis of known extent, the digits of the highest unit first."""

    extent: int
    digits: tuple[Digit, ...]

    def boxes(self) -> Iterator[Box]:
        """Values of the digits that make up all indices below the extent, apart from each other."""
        before: Box = ()
        rest = self.extent
        for k, digit in enumerate(self.digits):
            count, rest = divmod(rest, digit.unit)
            if count:
                yield (*before, (0, count), *((0, d.size) for d in self.digits[k + 1 :]))
            if not rest:
                return
            before = (*before, (count, 1))

    def outside(self, sizes: Mapping[Var, int]) -> Iterator[Box]:
        """Those of the values below `sizes`, at least those of the digits, that are no index."""
        before: Box = ()
        rest = self.extent
        for k, digit in enumerate(self.digits):
            count, rest = divmod(rest, digit.unit)
            if count:
                for box in _beyond(self.digits[k + 1 :], sizes):
                    yield (*before, (0, count), *box)
            used = count + (rest > 0)
            if used < sizes[digit.var]:
                lower = ((0, sizes[d.var]) for d in self.digits[k + 1 :])
                yield (*before, (used, sizes[digit.var] - used), *lower)
            if not rest:
                return
            before = (*before, (count, 1))


def _beyond(digits: Sequence[Digit], sizes: Mapping[Var, int]) -> Iterator[Box]:
    """Values below `sizes` of which at least one is no value of its digit."""
    before: Box = ()
    for k, digit in enumerate(digits):
        if digit.size < sizes[digit.var]:
            lower = ((0, sizes[d.var]) for d in digits[k + 1 :])
            yield (*before, (digit.size, sizes[digit.var] - digit.size), *lower)
        before = (*before, (0, digit.size))


@dataclass(frozen=True, slots=True)
class Offset:
    """How many places lie before an element: `const` + strides times digits + `rest`.

    Attributes:
        strides: of the digits that do not occur in the rest.
        rest: an expression of the other digits; None if there are none.
    """

    const: int
    strides: Mapping[Var, int]
    rest: Expr | None


@dataclass(frozen=True, slots=True)
class CommonDigits:
    """Axes in digits, and the offset in each of the layouts."""

    axes: tuple[Axis, ...]
    offsets: tuple[Offset, ...]


def common_digits(
    shape: Sequence[int], layouts: Sequence[tuple[IndexMap, Sequence[int]]]
) -> CommonDigits:
    """The digits of a tensor of `shape` for some layouts.

    Args:
        shape: extents, none of them 0.
        layouts: index maps, each with the extents of its results.
    """
    axes = [Var(f"i{k}", INT64) for k in range(len(shape))]
    extents = list(shape)
    offsets = [_offset(index_map, places, axes) for index_map, places in layouts]
    while True:
        reader = _reader(axes, extents)
        forms = [reader.form(offset) for offset in offsets]
        joined = next((j for form in forms for j in _joined(form, extents)), None)
        if joined is None:
            break
        axes, extents, offsets = _with_joined(joined, axes, extents, offsets)
    points: list[set[int]] = [set() for _ in axes]
    for form in forms:
        _collect(reader, form, points)
    cut = tuple(
        Axis(extent, _digits(var.name, extent, places))
        for var, extent, places in zip(axes, extents, points, strict=True)
    )
    values = {
        var: _sum([(digit.var, digit.unit) for digit in axis.digits])
        for var, axis in zip(axes, cut, strict=True)
    }
    digits = [digit for axis in cut for digit in axis.digits]
    fine = _reader([d.var for d in digits], [d.size for d in digits])
    return CommonDigits(
        cut, tuple(_read(fine, substitute(offset, values), digits) for offset in offsets)
    )


def _offset(index_map: IndexMap, places: Sequence[int], axes: Sequence[Var]) -> Expr:
    values = dict(zip(index_map.initial_indices, axes, strict=True))
    terms = []
    stride = 1
    for expr, extent in reversed(list(zip(index_map.final_indices, places, strict=True))):
        terms.append((bottom_up(substitute(expr, values), _masked), stride))
        stride *= extent
    return _sum(terms[::-1])


def _masked(node: Any) -> Expr | None:
    """`x & 56` as the digit that it is, `x // 8 % 8 * 8`."""
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


def _sum(terms: Sequence[tuple[Expr, int]], const: int = 0) -> Expr:
    total: Expr | None = Const(const, INT64) if const else None
    for expr, factor in terms:
        part = expr if factor == 1 else binary(BinOp.MUL, expr, Const(factor, INT64))
        total = part if total is None else binary(BinOp.ADD, total, part)
    return Const(0, INT64) if total is None else total


def _reader(axes: Sequence[Var], extents: Sequence[int]) -> Reader:
    return Reader({var: k for k, var in enumerate(axes)}, bounds_of(extents))


def _opaque(form: Form | None) -> Iterator[Opaque]:
    todo = [] if form is None else [part for part, _ in form.terms]
    while todo:
        part = todo.pop()
        if isinstance(part, Opaque):
            yield part
            todo += [inner for f in part.parts for inner, _ in f.terms]


def _joined(form: Form | None, extents: Sequence[int]) -> Iterator[list[int]]:
    """Axes of which a quotient or remainder takes the row-major number, outermost first."""
    for part in _opaque(form):
        terms = part.parts[0].terms
        whole = [(n, s.axis) for s, n in terms if isinstance(s, Span) and s.low == 1 and not s.high]
        whole.sort(reverse=True)
        last = len(whole) - 1
        if last < 1 or len(whole) < len(terms) or part.op not in (BinOp.FLOORDIV, BinOp.MOD):
            continue
        if all(
            whole[k][0] == whole[k + 1][0] * extents[whole[k + 1][1]] for k in range(last)
        ):
            yield [axis for _, axis in whole]


def _with_joined(
    joined: Sequence[int], axes: Sequence[Var], extents: Sequence[int], offsets: Sequence[Expr]
) -> tuple[list[Var], list[int], list[Expr]]:
    """One axis in the place of some."""
    row = Var("_".join(axes[k].name for k in joined), INT64)
    values: dict[Var, Expr] = {}
    unit = 1
    for k in reversed(joined):
        index = binary(BinOp.FLOORDIV, row, Const(unit, INT64)) if unit > 1 else row
        values[axes[k]] = binary(BinOp.MOD, index, Const(extents[k], INT64))
        unit *= extents[k]
    kept = [k for k in range(len(axes)) if k not in joined]
    return (
        [*(axes[k] for k in kept), row],
        [*(extents[k] for k in kept), prod(extents[k] for k in joined)],
        [substitute(offset, values) for offset in offsets],
    )


def _collect(reader: Reader, form: Form | None, points: Sequence[set[int]]) -> None:
    """Add where the axes are cut."""
    todo: list[Part] = [] if form is None else [part for part, _ in form.terms]
    while todo:
        part = todo.pop()
        if isinstance(part, Span):
            points[part.axis].update((part.low, part.high or part.low))
            continue
        todo += [inner for f in part.parts for inner, _ in f.terms]
        if part.op is BinOp.BITXOR:
            a, b = part.parts
            for one, other in ((a, b), (b, a)):
                for span, factor in one.terms:
                    if isinstance(span, Span):
                        points[span.axis].update(
                            span.low * (edge // factor)
                            for edge in _edges(reader, other)
                            if factor > 0 and edge % factor == 0
                        )


def _edges(reader: Reader, form: Form) -> tuple[int, ...]:
    """The lowest bit that a form can have, and the first above all of them; none where it is 0."""
    low, high = reader.range(form)
    if low is None or high is None or low < 0 or form == Form():
        return ()
    unit = gcd(form.const, *(n for _, n in form.terms))
    return (unit & -unit, 1 << high.bit_length())


def _digits(name: str, extent: int, points: set[int]) -> tuple[Digit, ...]:
    units = [1]
    for point in sorted(points):
        if not 1 < point < extent:
            continue
        if point % units[-1]:
            # Cuts that do not fit together: what they have in common.
            common = gcd(point, units[-1])
            units = [unit for unit in units if common % unit == 0 and unit < common] + [common]
        if point > units[-1]:
            units.append(point)
    ends = [*units[1:], round_up(extent, units[-1])]
    pairs = list(zip(units, ends, strict=True))
    return tuple(
        Digit(Var(f"{name}_{unit}" if len(units) > 1 else name, INT64), unit, end // unit)
        for unit, end in reversed(pairs)
    )


def _read(reader: Reader, offset: Expr, digits: Sequence[Digit]) -> Offset:
    form = reader.form(offset)
    if form is None:
        return Offset(0, {}, offset)
    form = _spread(reader, form)
    plain = {part.axis: n for part, n in form.terms if isinstance(part, Span) and _is_whole(part)}
    others = [(part, n) for part, n in form.terms if not (isinstance(part, Span)
                                                          and _is_whole(part))]
    bound = Form(0, tuple(others)).axes
    strides = {digits[k].var: n for k, n in plain.items() if k not in bound}
    variables = [digit.var for digit in digits]
    rest = [(_expr(part, variables), n) for part, n in others]
    rest += [(variables[k], n) for k, n in plain.items() if k in bound]
    return Offset(form.const, strides, _sum(rest) if rest else None)


def _is_whole(span: Span) -> bool:
    return span.low == 1 and span.high is None


def _spread(reader: Reader, form: Form) -> Form:
    """The form with what XOR leaves alone outside of it, and `x // n * n + x % n` as x."""
    total = Form(form.const)
    terms = dict(form.terms)
    for part, n in form.terms:
        if part not in terms:
            continue
        if isinstance(part, Opaque) and part.op is BinOp.MOD:
            quotient = Opaque(BinOp.FLOORDIV, part.parts, part.number)
            if terms.get(quotient) == n * part.number:
                total = reader.plus(total, part.parts[0], n)
                del terms[part], terms[quotient]
    for part, n in terms.items():
        value = Form(0, ((part, 1),))
        if isinstance(part, Opaque) and part.op is BinOp.BITXOR:
            value = _apart(reader, *part.parts)
        total = reader.plus(total, value, n)
    return total


def _apart(reader: Reader, a: Form, b: Form) -> Form:
    """`a ^ b`: bits of one that the other cannot have are added."""
    outside = Form()
    for _ in range(2):
        for edge in _edges(reader, b):
            high = Form(0, tuple((part, n) for part, n in a.terms if n % edge == 0))
            low = reader.plus(a, high, -1)
            least, most = reader.range(low)
            if least is None or most is None or least < 0 or most >= edge:
                continue
            is_top = edge == _edges(reader, b)[1]
            outside = reader.plus(outside, high if is_top else low)
            a = low if is_top else high
        a, b = b, a
    if Form() in (a, b):
        return reader.plus(reader.plus(outside, a), b)
    inner = reader.operation(BinOp.BITXOR, a, b)
    assert inner is not None
    return reader.plus(outside, inner)


def _expr(part: Part, variables: Sequence[Var]) -> Expr:
    if isinstance(part, Span):
        value: Expr = variables[part.axis]
        if part.low > 1:
            value = binary(BinOp.FLOORDIV, value, Const(part.low, INT64))
        return value if part.size is None else binary(BinOp.MOD, value, Const(part.size, INT64))
    operands = [
        _sum([(_expr(inner, variables), n) for inner, n in form.terms], form.const)
        for form in part.parts
    ]
    other = operands[1] if len(operands) > 1 else Const(part.number, INT64)
    return binary(part.op, operands[0], other)


def is_free_of(rest: Expr | None, var: Var) -> bool:
    """Whether the rest of an offset does not depend on a digit."""
    return rest is None or var not in free_variables(rest)
