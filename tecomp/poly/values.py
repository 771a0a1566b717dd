"""Expressions of known range, as they arise when a layout is solved for its indices."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tecomp.ir.dtype import INT64
from tecomp.ir.expr import Binary, BinOp, CmpOp, Compare, Const, Expr, binary


@dataclass(frozen=True, slots=True)
class Value:
    """`(base // div) % mod`; `base` lies from `low` to `high`, None where that is unknown.

    Attributes:
        sum: where `base` is a sum and nothing is done to it yet: its parts times their factors,
            and its constant, so that a further sum can be joined with it.
    """

    base: Expr
    low: int | None
    high: int | None
    div: int = 1
    mod: int | None = None
    sum: tuple[tuple[tuple[Value, int], ...], int] | None = None

    @property
    def range(self) -> tuple[int | None, int | None]:
        """Least and greatest value."""
        low = None if self.low is None else self.low // self.div
        high = None if self.high is None else self.high // self.div
        if self.mod is None or (low is not None and high is not None and low >= 0
                                and high < self.mod):
            return low, high
        return 0, self.mod - 1

    @property
    def expr(self) -> Expr:
        """The value as an expression."""
        whole = self.base
        if self.div != 1:
            whole = binary(BinOp.FLOORDIV, whole, Const(self.div, INT64))
        if self.mod is None or Value(self.base, self.low, self.high, self.div).is_below(self.mod):
            return whole
        return binary(BinOp.MOD, whole, Const(self.mod, INT64))

    def is_below(self, end: int) -> bool:
        """Whether it is known to lie in `[0, end)`."""
        low, high = self.range
        return low is not None and high is not None and low >= 0 and high < end

    def floordiv(self, divisor: int) -> Value:
        """`self // divisor`."""
        if divisor == 1:
            return self
        if self.mod is None:
            return Value(self.base, self.low, self.high, self.div * divisor)
        if self.mod % divisor == 0:
            return Value(self.base, self.low, self.high, self.div * divisor, self.mod // divisor)
        return Value(self.expr, *self.range, divisor)

    def modulo(self, divisor: int) -> Value:
        """`self % divisor`."""
        if self.is_below(divisor):
            return self
        if self.mod is None or self.mod % divisor == 0:
            return Value(self.base, self.low, self.high, self.div, divisor)
        return Value(self.expr, *self.range, 1, divisor)

    def negated(self) -> Value:
        """`-self`."""
        return total([(self, -1)])

    def within(self, low: int | None, high: int | None) -> Value:
        """The same value, now known to lie between the two."""
        if (self.div, self.mod) == (1, None):
            return Value(self.base, low, high, sum=self.sum)
        return Value(self.expr, low, high)

    def is_const(self) -> int | None:
        """The number that it is, if it is one."""
        low, high = self.range
        return low if low == high else None


def constant(number: int) -> Value:
    """A number."""
    return Value(Const(number, INT64), number, number)


def total(parts: Iterable[tuple[Value, int]], const: int = 0) -> Value:
    """The sum of each value times its factor, and `const`."""
    given = tuple(parts)
    if len(given) == 1 and given[0][1] == 1 and const == 0:
        return given[0][0]
    flat: dict[tuple[int, int, int | None], tuple[Value, int]] = {}
    for value, factor in given:
        inner, offset = value.sum or (((value, 1),), 0)
        const += factor * offset
        for part, n in inner:
            key = id(part.base), part.div, part.mod
            flat[key] = part, factor * n + flat.get(key, (part, 0))[1]
    merged = _joined(flat.values())
    if len(merged) == 1 and merged[0][1] == 1 and const == 0:
        return merged[0][0]
    low: int | None = const
    high: int | None = const
    offset_of_sum = const
    made: Expr | None = None
    # What is added before what is taken away: no sum begins with a minus that could be avoided.
    for value, factor in sorted(merged, key=lambda part: part[1] < 0):
        first, last = value.range if factor > 0 else value.range[::-1]
        low = None if low is None or first is None else low + factor * first
        high = None if high is None or last is None else high + factor * last
        if made is None and factor < 0:
            made, const = Const(const, INT64), 0
        made = _plus(made, value.expr, factor)
    if made is None:
        return constant(const)
    if const:
        made = _plus(made, Const(abs(const), INT64), 1 if const > 0 else -1)
    return Value(made, low, high, sum=(tuple(merged), offset_of_sum))


def _plus(made: Expr | None, expr: Expr, factor: int) -> Expr:
    size = abs(factor)
    if isinstance(expr, Const):
        part: Expr = Const(size * int(expr.value), INT64)
    else:
        part = expr if size == 1 else binary(BinOp.MUL, Const(size, INT64), expr)
    if made is None:
        return part
    return binary(BinOp.ADD if factor > 0 else BinOp.SUB, made, part)


def _joined(parts: Iterable[tuple[Value, int]]) -> list[tuple[Value, int]]:
    """The parts with neighbouring digits of one base put together; great factors first."""
    todo = sorted(((v, n) for v, n in parts if n), key=lambda part: abs(part[1]))
    done: list[tuple[Value, int]] = []
    while todo:
        value, factor = todo.pop(0)
        for k, (other, n) in enumerate(todo):
            joined = _join(value, other) if n == factor * (value.mod or 0) else None
            if joined is not None:
                todo[k] = joined, factor
                todo.sort(key=lambda part: abs(part[1]))
                break
        else:
            done.append((value, factor))
    return done[::-1]


def _join(low: Value, high: Value) -> Value | None:
    if low.base is not high.base or low.mod is None or high.div != low.div * low.mod:
        return None
    mod = None if high.mod is None else low.mod * high.mod
    return Value(low.base, low.low, low.high, low.div, mod)


def compare(op: CmpOp, value: Value, number: int | Expr) -> Expr:
    """`value op number`."""
    return Compare(op, value.expr, Const(number, INT64) if isinstance(number, int) else number)


def xor(a: Value, b: Value) -> Value:
    """`a ^ b`."""
    if (number := a.is_const()) is not None:
        a, b = b, a
    if (number := b.is_const()) == 0:
        return a
    expr = Binary(BinOp.BITXOR, a.expr, Const(number, INT64) if number is not None else b.expr)
    (low, high), (least, most) = a.range, b.range
    if low is None or least is None or high is None or most is None or min(low, least) < 0:
        return Value(expr, None, None)
    return Value(expr, 0, (1 << max(high, most).bit_length()) - 1)
