"""Index expressions as sums of digits: `(x // low) % (high // low)` of the axes, times factors.

Most layouts are made of nothing else, and for those extents, inverses and collisions can be read
off. What is no digit stays in the sum as an opaque part, with the operation that it comes from.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import gcd
from operator import and_, or_, xor
from typing import TypeAlias

from tecomp.ir.expr import Binary, BinOp, Cast, Const, Expr, Var
from tecomp.ir.rewrite import fold

Bounds: TypeAlias = "tuple[int | None, int | None]"
Part: TypeAlias = "Span | Opaque"


_DEEPEST = 64
"""Operations inside one another that a form has; forms are compared by recursion."""

_OF_NUMBERS = {BinOp.BITXOR: xor, BinOp.BITAND: and_, BinOp.BITOR: or_}


@dataclass(frozen=True, slots=True)
class Span:
    """The digits of axis number `axis` from `low` up to `high`: `(x // low) % (high // low)`.

    Without a `high` it is all from `low` on, `x // low`.
    """

    axis: int
    low: int = 1
    high: int | None = None

    @property
    def size(self) -> int | None:
        """How many values it has on an axis without bounds."""
        return None if self.high is None else self.high // self.low


@dataclass(frozen=True, slots=True)
class Opaque:
    """`parts[0] // number`, `parts[0] % number`, or a bit operation of two parts."""

    op: BinOp
    parts: tuple[Form, ...]
    number: int = 0


@dataclass(frozen=True)
class Form:
    """`const` plus a factor times each part; no factor is 0."""

    const: int = 0
    terms: tuple[tuple[Part, int], ...] = ()

    @cached_property
    def axes(self) -> frozenset[int]:
        """Numbers of the axes that occur."""
        found: set[int] = set()
        for part, _ in self.terms:
            if isinstance(part, Span):
                found.add(part.axis)
            else:
                for inner in part.parts:
                    found |= inner.axes
        return frozenset(found)

    @cached_property
    def depth(self) -> int:
        """How many operations lie inside one another."""
        inner = [form.depth for part, _ in self.terms if isinstance(part, Opaque)
                 for form in part.parts]
        return 1 + max(inner) if inner else 0

    def single(self) -> Part | None:
        """The part that this form is, if it is one."""
        if self.const == 0 and len(self.terms) == 1 and self.terms[0][1] == 1:
            return self.terms[0][0]
        return None


@dataclass(frozen=True, slots=True)
class Reader:
    """How expressions over some axes are read.

    Attributes:
        axes: number of each axis variable.
        bounds: least and greatest value of each axis; None where there is no bound.
        drops_periods: whether `x % 16` is read as `x` where x is below 16. It is the same
            value, but an extent of 16 is what the user asked for.
    """

    axes: Mapping[Var, int]
    bounds: Sequence[Bounds]
    drops_periods: bool = True

    def form(self, root: Expr) -> Form | None:
        """`root` as a form, or None if there is an operation that no form has."""
        if isinstance(root, Var) and root in self.axes:
            return self.make(0, {Span(self.axes[root]): 1})
        return fold(root, self._node, _operands)

    def exact(self, form: Form | None, expr: Expr) -> Form | None:
        """The form of `expr`, given its form with periods."""
        if form is None or any(isinstance(part, Opaque) for part, _ in form.terms):
            return self.form(expr)
        terms: dict[Part, int] = {}
        for part, n in form.terms:
            assert isinstance(part, Span)
            last = self.bounds[part.axis][1]
            if part.size is not None and last is not None and last < (part.high or 0):
                part = Span(part.axis, part.low)
            terms[part] = terms.get(part, 0) + n
        return self.make(form.const, terms)

    def _node(self, node: Expr, operands: list[Form | None]) -> Form | None:
        match node:
            case Var() if node in self.axes:
                return self.make(0, {Span(self.axes[node]): 1})
            case Const(int() as value) if node.dtype.is_integer:
                return Form(int(value))
            case Cast(dtype) if dtype.is_integer and operands[0] is not None:
                return operands[0] if node.value.dtype.is_integer else None
            case Binary(op):
                a, b = operands
                made = None if a is None or b is None else self.operation(op, a, b)
                return None if made is None or made.depth > _DEEPEST else made
        return None

    def operation(self, op: BinOp, a: Form, b: Form) -> Form | None:
        """`a op b`, or None if it is none of the operations that a layout may have."""
        match op:
            case BinOp.ADD:
                return self.plus(a, b)
            case BinOp.SUB:
                return self.plus(a, b, -1)
            case BinOp.MUL if not b.terms:
                return scaled(a, b.const)
            case BinOp.MUL if not a.terms:
                return scaled(b, a.const)
            case BinOp.FLOORDIV if not b.terms and b.const > 0:
                return self.floordiv(a, b.const)
            case BinOp.MOD if not b.terms and b.const > 0:
                return self.mod(a, b.const)
        return self._bits(op, a, b)

    def _bits(self, op: BinOp, a: Form, b: Form) -> Form | None:
        if op in _OF_NUMBERS and not a.terms and not b.terms:
            return Form(_OF_NUMBERS[op](a.const, b.const))
        if op in _OF_NUMBERS and not a.terms:
            a, b = b, a
        number = None if b.terms else b.const
        match op:
            case BinOp.SHL if number is not None and 0 <= number < 63:
                return scaled(a, 2**number)
            case BinOp.SHR if number is not None and 0 <= number < 63:
                return self.floordiv(a, 2**number)
            case BinOp.BITAND if number is not None and _is_power(number + 1):
                return self.mod(a, number + 1)
            case BinOp.BITAND if number is not None and number < 0 and _is_power(-number):
                return self.plus(a, self.mod(a, -number), -1)
            case BinOp.BITXOR | BinOp.BITOR if number == 0:
                return a
            case BinOp.BITOR if self._are_disjoint(a, b) or self._are_disjoint(b, a):
                return self.plus(a, b)
            case BinOp.BITXOR | BinOp.BITAND | BinOp.BITOR:
                return Form(0, ((Opaque(op, (a, b)), 1),))
        return None

    def _are_disjoint(self, upper: Form, lower: Form) -> bool:
        low, high = self.range(lower)
        if low is None or high is None or low < 0:
            return False
        unit = 1 << high.bit_length()
        at_least = self.range(upper)[0]
        return at_least is not None and at_least >= 0 and all(
            n % unit == 0 for n in (upper.const, *(n for _, n in upper.terms))
        )

    def plus(self, a: Form, b: Form, factor: int = 1) -> Form:
        """`a + factor * b`."""
        terms = dict(a.terms)
        for part, n in b.terms:
            terms[part] = terms.get(part, 0) + factor * n
        return self.make(a.const + factor * b.const, terms)

    def make(self, const: int, terms: Mapping[Part, int]) -> Form:
        """The form of some terms: neighbouring digits are joined, what is always 0 is gone."""
        if len(terms) == 1:
            ((part, n),) = terms.items()
            is_zero = n == 0 or (self.drops_periods and self.part_range(part) == (0, 0))
            return Form(const) if is_zero else Form(const, ((part, n),))
        kept = {part: n for part, n in terms.items() if n}
        if self.drops_periods:
            kept = {part: n for part, n in kept.items() if self.part_range(part) != (0, 0)}
        if len({part.axis for part in kept if isinstance(part, Span)}) < len(kept):
            _join(kept)
        return Form(const, tuple(sorted(kept.items(), key=_order)))

    def floordiv(self, a: Form, divisor: int) -> Form:
        """`a // divisor` for a positive divisor."""
        outside = self.make(a.const // divisor, _multiples(a, divisor, divisor))
        rest = a
        if outside.const or outside.terms:
            rest = self.make(a.const % divisor, _others(a, divisor))
        outer = self._without_low_part(rest, divisor)
        if outer is not None:
            unit, high = outer
            return self.plus(outside, self.floordiv(high, divisor // unit))
        if not rest.terms or self._is_within(rest, divisor):
            return outside
        part = rest.single()
        if isinstance(part, Span) and (part.size is None or part.size % divisor == 0):
            digits = Span(part.axis, part.low * divisor, part.high)
            return self.plus(outside, self.make(0, {digits: 1}))
        if isinstance(part, Opaque) and part.op is BinOp.FLOORDIV:
            return self.plus(outside, self.floordiv(part.parts[0], part.number * divisor))
        return self.plus(outside, Form(0, ((Opaque(BinOp.FLOORDIV, (rest,), divisor), 1),)))

    def mod(self, a: Form, divisor: int) -> Form:
        """`a % divisor` for a positive divisor."""
        rest = self.make(a.const % divisor, _others(a, divisor))
        if not rest.terms:
            return rest
        part = rest.single()
        if self.drops_periods and self._is_within(rest, divisor):
            return rest
        if isinstance(part, Span):
            size = part.size
            if size is None or size % divisor == 0:
                return self.make(0, {Span(part.axis, part.low, part.low * divisor): 1})
            if size <= divisor:
                return rest
        if isinstance(part, Opaque) and part.op is BinOp.MOD and part.number % divisor == 0:
            return self.mod(part.parts[0], divisor)
        if isinstance(part, Opaque) and part.op is BinOp.FLOORDIV:
            # (x // c) % d == (x % (c * d)) // c
            return self.floordiv(self.mod(part.parts[0], part.number * divisor), part.number)
        outer = self._without_low_part(rest, divisor)
        if outer is not None:
            unit, high = outer
            low = self.plus(rest, high, -unit)
            return self.plus(low, scaled(self.mod(high, divisor // unit), unit))
        return Form(0, ((Opaque(BinOp.MOD, (rest,), divisor), 1),))

    def _without_low_part(self, rest: Form, divisor: int) -> tuple[int, Form] | None:
        """`(unit, high)` with `rest == unit * high + low` and `0 <= low < unit`, for // and %."""
        units = {gcd(divisor, n) for _, n in rest.terms} - {1}
        for unit in sorted(units):
            high = self.make(rest.const // unit, _multiples(rest, unit, unit))
            if high.terms and self._is_within(self.plus(rest, high, -unit), unit):
                return unit, high
        return None

    def _is_within(self, form: Form, end: int) -> bool:
        low, high = self.range(form)
        return low is not None and high is not None and low >= 0 and high < end

    def range(self, form: Form) -> Bounds:
        """Bounds of a form, taking its parts as independent."""
        low: int | None = form.const
        high: int | None = form.const
        for part, n in form.terms:
            first, last = self.part_range(part)
            if n < 0:
                first, last = last, first
            low = None if low is None or first is None else low + n * first
            high = None if high is None or last is None else high + n * last
        return low, high

    def part_range(self, part: Part) -> Bounds:
        """Bounds of one part."""
        if isinstance(part, Opaque):
            return self._opaque_range(part)
        size = part.size
        if size is not None and not self.drops_periods:
            return 0, size - 1
        low, high = self.bounds[part.axis]
        low = None if low is None else low // part.low
        high = None if high is None else high // part.low
        if size is None or (low is not None and high is not None and low >= 0 and high < size):
            return low, high
        return 0, size - 1

    def _opaque_range(self, part: Opaque) -> Bounds:
        ranges = [self.range(form) for form in part.parts]
        low, high = ranges[0]
        if part.op is BinOp.MOD:
            return 0, part.number - 1
        if part.op is BinOp.FLOORDIV:
            return (
                None if low is None else low // part.number,
                None if high is None else high // part.number,
            )
        lows, highs = [r[0] for r in ranges], [r[1] for r in ranges]
        if any(n is None or n < 0 for n in lows) or any(n is None for n in highs):
            return None, None
        if part.op is BinOp.BITAND:
            return 0, min(n for n in highs if n is not None)
        return 0, (1 << max(n.bit_length() for n in highs if n is not None)) - 1


def scaled(form: Form, factor: int) -> Form:
    """`factor * form`."""
    if factor == 0:
        return Form()
    return Form(form.const * factor, tuple((part, n * factor) for part, n in form.terms))


def _operands(node: Expr) -> tuple[Expr, ...]:
    if isinstance(node, Binary):
        return node.a, node.b
    return (node.value,) if isinstance(node, Cast) else ()


def _multiples(form: Form, divisor: int, unit: int) -> dict[Part, int]:
    return {part: n // unit for part, n in form.terms if n % divisor == 0}


def _others(form: Form, divisor: int) -> dict[Part, int]:
    return {part: n for part, n in form.terms if n % divisor}


def _is_power(number: int) -> bool:
    return number > 0 and number & (number - 1) == 0


def _order(term: tuple[Part, int]) -> tuple[int, int, int]:
    part = term[0]
    return (0, part.axis, part.low) if isinstance(part, Span) else (1, 0, 0)


def _join(terms: dict[Part, int]) -> None:
    """`n * low digits + (n * their size) * next digits` is n times both."""
    spans = sorted(
        (part for part in terms if isinstance(part, Span)), key=lambda span: (span.axis, span.low)
    )
    while spans:
        low = spans.pop(0)
        for high in spans:
            factor = terms.get(low, 0) * (low.size or 0)
            if (high.axis, high.low) == (low.axis, low.high) and terms[high] == factor:
                factor = terms.pop(low)
                del terms[high]
                joined = Span(low.axis, low.low, high.high)
                terms[joined] = terms.get(joined, 0) + factor
                spans.remove(high)
                spans.insert(0, joined)
                break
