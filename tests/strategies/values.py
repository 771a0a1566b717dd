"""Texts of expressions with dtype and bounds, and operations that keep the bounds small."""

from __future__ import annotations

from dataclasses import dataclass, replace

from tecomp.operations import BOOLEAN, FLOATS, INTEGERS

TYPES = ("float32", "int32", *INTEGERS, *FLOATS, *BOOLEAN)
"""Dtypes of random expressions; float32 and int32 are drawn more often than others."""

# Integers up to this bound, and half-integers up to half of it, are exact in these dtypes.
_EXACT = {"float16": 1024, "bfloat16": 128, "float32": 2**20, "float64": 2**40}


@dataclass(frozen=True)
class Value:
    """Text of an expression with its dtype and its minimum and maximum value."""

    text: str
    dtype: str
    low: float
    high: float

    @property
    def range(self) -> tuple[str, float, float]:
        """dtype, minimum and maximum."""
        return self.dtype, self.low, self.high


def full_range(dtype: str) -> tuple[float, float]:
    """Return the range of an integer dtype, or the exact integer range of a float dtype."""
    if dtype == "bool":
        return 0, 1
    if dtype in FLOATS:
        return -_EXACT[dtype], _EXACT[dtype]
    bits = int(dtype.removeprefix("u").removeprefix("int"))
    if dtype.startswith("u"):
        return 0, 2**bits - 1
    return -(2 ** (bits - 1)), 2 ** (bits - 1) - 1


def literal(value: float, dtype: str) -> Value:
    """Return the literal of a number, or of a Boolean for bool."""
    if dtype == "bool":
        return Value(f'te.const({bool(value)}, "bool")', dtype, bool(value), bool(value))
    return Value(f'te.const({value}, "{dtype}")', dtype, value, value)


def tamed(value: Value, bound: int = 8) -> Value:
    """Clip `value` to [-bound, bound] if it can exceed this interval."""
    low = max(-bound, full_range(value.dtype)[0])
    if low <= value.low and value.high <= bound:
        return value
    a, b = literal(low, value.dtype), literal(bound, value.dtype)
    text = f"te.min(te.max({value.text}, {a.text}), {b.text})"
    return Value(text, value.dtype, max(low, min(value.low, bound)),
                 min(bound, max(value.high, low)))


def limited(value: Value, dtype: str) -> Value:
    """Clip `value` if `dtype` cannot represent all of its values exactly."""
    low, high = full_range(dtype)
    return value if low <= value.low and value.high <= high else tamed(value)


def as_type(value: Value, dtype: str) -> Value:
    """Convert `value` to `dtype`."""
    if value.dtype == dtype:
        return value
    if dtype == "bool":
        return Value(f'te.cast({value.text}, "bool")', dtype, 0, 1)
    if dtype in FLOATS:
        value = limited(value, dtype)
    elif value.dtype in FLOATS:
        value = limited(tamed(value), dtype)
        # NaN becomes 0.
        value = replace(value, low=min(value.low, 0), high=max(value.high, 0))
    low, high = full_range(dtype)
    text = f'te.cast({value.text}, "{dtype}")'
    if value.low < low or value.high > high:
        return Value(text, dtype, low, high)
    return Value(text, dtype, value.low, value.high)


def common_type(a: str, b: str) -> str | None:
    """Return the common dtype of two operands as in TVM; None for bool and incompatible dtypes."""
    if a == b:
        return a
    if "bool" in (a, b):
        return None
    if a in FLOATS or b in FLOATS:
        if a not in FLOATS or b not in FLOATS:
            return a if a in FLOATS else b
        widths = {"float16": 16, "bfloat16": 16, "float32": 32, "float64": 64}
        return None if widths[a] == widths[b] else max(a, b, key=widths.__getitem__)
    bits = max(int(t.removeprefix("u").removeprefix("int")) for t in (a, b))
    return f"uint{bits}" if a[0] == b[0] == "u" else f"int{bits}"


def arithmetic(op: str, a: Value, b: Value) -> Value:
    """Return `a op b` for operands of one dtype; operands are clipped to keep it exact."""
    low, high = _interval(op, a, b)
    if a.dtype in FLOATS and not full_range(a.dtype)[0] <= low <= high <= full_range(a.dtype)[1]:
        a, b = tamed(a), tamed(b)
        low, high = _interval(op, a, b)
    least, most = full_range(a.dtype)
    if low < least or high > most:
        low, high = least, most
    return Value(f"({a.text} {op} {b.text})", a.dtype, low, high)


def _interval(op: str, a: Value, b: Value) -> tuple[float, float]:
    match op:
        case "+":
            return a.low + b.low, a.high + b.high
        case "-":
            return a.low - b.high, a.high - b.low
    ends = [0.0 if 0 in (x, y) else x * y for x in (a.low, a.high) for y in (b.low, b.high)]
    return min(ends), max(ends)
