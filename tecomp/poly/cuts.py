"""Cut a box of indices into boxes on which index expressions are linear.

A box is a product of variables that count from 0, and holds expressions of them as forms. A cut
replaces a variable by others so that the new boxes have the points of the old one, each once: by
two digits and a rest, by two intervals, or by each of its values.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import gcd

from tecomp.ir.expr import BinOp
from tecomp.poly.enumerate import LIMIT
from tecomp.poly.forms import Form, Opaque, Part, Reader, Span, scaled

# How a variable is written anew: a constant, and factor and count of each new variable.
Value = tuple[int, tuple[tuple[int, int], ...]]
Cut = tuple[int, tuple[Value, ...]]

_BIT_OPS = (BinOp.BITXOR, BinOp.BITAND, BinOp.BITOR)


class TooManyError(Exception):
    """There would be more boxes than allowed."""


@dataclass(frozen=True, slots=True)
class Box:
    """Variables and expressions of them.

    Attributes:
        forms: the expressions.
        counts: how many values each variable has, by its number; those replaced included.
        live: numbers of the variables that are not replaced.
        units: how far one step of each variable goes along each of the indices.
    """

    forms: tuple[Form, ...]
    counts: tuple[int, ...]
    live: tuple[int, ...]
    units: tuple[tuple[int, ...], ...]

    @classmethod
    def of(cls, forms: Sequence[Form], region: Sequence[tuple[int, int]]) -> Box:
        """The box of indices that start at `low` and have `count` values each.

        Args:
            forms: read with these bounds.
            region: `(low, count)` of each index, none of them empty.
        """
        rank = len(region)
        units = tuple(tuple(int(k == axis) for k in range(rank)) for axis in range(rank))
        ends = tuple(low + count for low, count in region)
        box = cls(tuple(forms), ends, tuple(range(rank)), units)
        for axis, (low, count) in enumerate(region):
            if low:
                box = box.replaced(axis, (low, ((1, count),)))
        return box

    @property
    def reader(self) -> Reader:
        """How expressions of its variables are read."""
        return Reader({}, [(0, count - 1) for count in self.counts])

    @property
    def is_linear(self) -> bool:
        """Whether all expressions are."""
        return all(self._unsolved(form) is None for form in self.forms)

    def replaced(self, var: int, value: Value) -> Box:
        """The part of the box where a variable is written so."""
        shift, digits = value
        first = len(self.counts)
        new = range(first, first + len(digits))
        counts = (*self.counts, *(count for _, count in digits))
        reader = Reader({}, [(0, count - 1) for count in counts])
        spans: dict[Part, int] = {
            Span(k): factor for k, (factor, _) in zip(new, digits, strict=True)
        }
        values = {var: reader.make(shift, spans)}
        forms = tuple(
            rebuilt(form, values, reader) if var in form.axes else form for form in self.forms
        )
        at = self.live.index(var)
        live = (*self.live[:at], *new, *self.live[at + 1 :])
        units = tuple(tuple(factor * n for n in self.units[var]) for factor, _ in digits)
        return Box(forms, counts, live, (*self.units, *units))

    def parts(self, cut: Cut) -> list[Box]:
        """What a cut makes of it."""
        var, values = cut
        return [self.replaced(var, value) for value in values]

    def cut(self) -> Cut | None:
        """A cut that brings the expressions nearer to being linear; None if they are."""
        for form in self.forms:
            part = self._unsolved(form)
            if isinstance(part, Span):
                at = part.low if part.low > 1 else part.high
                assert at is not None
                return part.axis, _digits(self.counts[part.axis], at)
            if isinstance(part, Opaque):
                return self._bits(part) if part.op in _BIT_OPS else self._division(part)
        return None

    def _unsolved(self, form: Form) -> Part | None:
        """A part that is not linear, all of whose operands are."""
        found: Part | None = None
        while True:
            part = next((part for part, _ in form.terms if not self._is_plain(part)), None)
            if part is None or isinstance(part, Span):
                return part or found
            found = part
            bent = [
                inner for inner in part.parts
                if not all(self._is_plain(other) for other, _ in inner.terms)
            ]
            if not bent:
                return found
            form = bent[0]

    def _is_plain(self, part: Part) -> bool:
        return isinstance(part, Span) and part.low == 1 and (
            part.high is None or part.high >= self.counts[part.axis]
        )

    def _division(self, part: Opaque) -> Cut:
        """For `x // d` and `x % d` of a linear x, none of whose factors is a multiple of d."""
        (form,) = part.parts
        terms = [(inner.axis, n) for inner, n in form.terms if isinstance(inner, Span)]
        divisor = part.number
        if len(terms) == 1:
            return self._alone(*terms[0], form.const % divisor, divisor)
        for var, n in terms:
            period = divisor // gcd(n, divisor)
            if 1 < period < self.counts[var]:
                return var, _digits(self.counts[var], period)
        return self._each([var for var, _ in terms])

    def _alone(self, var: int, n: int, const: int, divisor: int) -> Cut:
        """For `(n * var + const)` divided by `divisor`, with `0 <= const < divisor`."""
        count = self.counts[var]
        period = divisor // gcd(n, divisor)
        if n > 0:
            is_start, end = const < n, -(-(divisor - const) // n)
        else:
            is_start, end = const >= divisor + n, const // -n + 1
        if is_start and count > period:
            return var, _digits(count, period)
        if not 0 < end < count:
            return self._each([var])
        return var, ((0, ((1, end),)), (end, ((1, count - end),)))

    def _bits(self, part: Opaque) -> Cut:
        """For `x ^ y`, `x & y` and `x | y` of linear x and y."""
        a, b = part.parts
        if not a.terms:
            a, b = b, a
        used = {inner.axis for form in (a, b) for inner, _ in form.terms if isinstance(inner, Span)}
        if a.single() is None or (b.terms and b.single() is None):
            return self._each(used)
        (var,) = a.axes
        if not b.terms:
            width = _same_bits(b.const)
            if b.const < 0 or 2**width >= self.counts[var]:
                return self._each(used)
            return var, _digits(self.counts[var], 2**width)
        (other,) = b.axes
        small, large = sorted((var, other), key=lambda v: self.counts[v])
        unit = 1 << (self.counts[small] - 1).bit_length()
        if unit < self.counts[large]:
            return large, _digits(self.counts[large], unit)
        return self._each([small])

    def _each(self, among: Sequence[int] | set[int]) -> Cut:
        """A box for each value of the variable that has the fewest.

        Raises:
            TooManyError: even that has more than anybody would look at.
        """
        var = min(sorted(among), key=lambda v: self.counts[v])
        if self.counts[var] > LIMIT:
            raise TooManyError
        return var, tuple((k, ((1, 1),)) for k in range(self.counts[var]))


def linear_boxes(box: Box, limit: int) -> list[Box]:
    """Boxes on which all expressions are linear.

    Raises:
        TooManyError: there are more than `limit`.
    """
    done: list[Box] = []
    todo = [box]
    while todo:
        box = todo.pop()
        cut = box.cut()
        if cut is None:
            done.append(box)
            continue
        if len(done) + len(todo) + len(cut[1]) > limit:
            raise TooManyError
        todo += reversed(box.parts(cut))
    return done


def fused(box: Box) -> Box:
    """The same box with two variables as the digits of one, where that is not less linear.

    So `(200 * i + j) // 64` with `j < 200` is the quotient of one number.
    """
    if box.is_linear:
        return box
    for a in box.live:
        for b in box.live:
            if a != b and (joined := _joined(box, a, b)) is not None:
                return fused(joined)
    return box


def _joined(box: Box, high: int, low: int) -> Box | None:
    size = box.counts[low]
    new = len(box.counts)
    counts = (*box.counts, box.counts[high] * size)
    reader = Reader({}, [(0, count - 1) for count in counts])
    values = {high: Form(0, ((Span(new, size), 1),)), low: Form(0, ((Span(new, 1, size), 1),))}
    forms = tuple(rebuilt(form, values, reader) for form in box.forms)
    if sum(map(_bends, forms)) > sum(map(_bends, box.forms)):
        return None
    live = tuple(new if v == low else v for v in box.live if v != high)
    return Box(forms, counts, live, (*box.units, box.units[low]))


def _bends(form: Form) -> int:
    """How many digits and operations occur in a form."""
    count, todo = 0, [form]
    while todo:
        for part, _ in todo.pop().terms:
            count += isinstance(part, Opaque) or part.low > 1 or part.high is not None
            if isinstance(part, Opaque):
                todo += part.parts
    return count


def rebuilt(form: Form, values: Mapping[int, Form], reader: Reader) -> Form:
    """`form` with other forms for some of its variables."""
    total = Form(form.const)
    for part, n in form.terms:
        total = reader.plus(total, _rebuilt_part(part, values, reader), n)
    return total


def _rebuilt_part(part: Part, values: Mapping[int, Form], reader: Reader) -> Form:
    if isinstance(part, Span):
        value = values.get(part.axis)
        if value is None:
            return reader.make(0, {part: 1})
        value = reader.floordiv(value, part.low)
        return value if part.size is None else reader.mod(value, part.size)
    operands = [rebuilt(inner, values, reader) for inner in part.parts]
    if part.op is BinOp.FLOORDIV:
        return reader.floordiv(operands[0], part.number)
    if part.op is BinOp.MOD:
        return reader.mod(operands[0], part.number)
    return _bit_operation(part.op, operands[0], operands[1], reader)


def _bit_operation(op: BinOp, a: Form, b: Form, reader: Reader) -> Form:
    """`a op b`, split where digits of both end at the same bit."""
    if not a.terms:
        a, b = b, a
    if not a.terms:
        return Form(_on_numbers(op, a.const, b.const))
    for unit in _units(a, b):
        tops = [_multiples(form, unit) for form in (a, b)]
        rests = [reader.plus(form, top, -unit) for form, top in zip((a, b), tops, strict=True)]
        if (tops[0].terms or tops[1].terms) and all(_fits(rest, unit, reader) for rest in rests):
            high = _bit_operation(op, tops[0], tops[1], reader)
            low = _bit_operation(op, rests[0], rests[1], reader)
            return reader.plus(low, scaled(high, unit))
    if not b.terms and b.const > 0 and b.const & (b.const + 1) == 0 and _fits(
        a, b.const + 1, reader
    ):
        if op is BinOp.BITXOR:
            return reader.plus(Form(b.const), a, -1)
        return a if op is BinOp.BITAND else b
    if not b.terms and b.const == 0:
        return Form() if op is BinOp.BITAND else a
    made = reader.operation(op, a, b)
    assert made is not None  # there is a form for every bit operation of two forms
    return made


def _units(a: Form, b: Form) -> list[int]:
    factors = {n & -n for form in (a, b) for _, n in form.terms}
    return sorted(factors - {1}, reverse=True)


def _multiples(form: Form, unit: int) -> Form:
    terms = tuple((part, n // unit) for part, n in form.terms if n % unit == 0)
    return Form(form.const // unit, terms)


def _fits(form: Form, end: int, reader: Reader) -> bool:
    low, high = reader.range(form)
    return low is not None and high is not None and low >= 0 and high < end


def _on_numbers(op: BinOp, a: int, b: int) -> int:
    if op is BinOp.BITXOR:
        return a ^ b
    return a & b if op is BinOp.BITAND else a | b


def _digits(count: int, unit: int) -> tuple[Value, ...]:
    """All of `unit * q + r`, then what is left of the last q."""
    whole, rest = divmod(count, unit)
    full: Value = (0, ((unit, whole), (1, unit)))
    tail: Value = (whole * unit, ((unit, 1), (1, rest)))
    return (*((full,) if whole else ()), *((tail,) if rest else ()))


def _same_bits(number: int) -> int:
    """How many of the lowest bits are the same."""
    flipped = ~number if number & 1 else number
    return (flipped & -flipped).bit_length() - 1 if flipped else 64
