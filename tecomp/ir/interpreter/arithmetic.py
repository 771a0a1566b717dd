"""What every operator and function computes, on one value or on a vector of them.

A scalar integer is a Python int in the range of its type and a truth value a bool; a scalar float
is a NumPy scalar, so that it rounds as its type does. A vector is a NumPy array.

NumPy computes float16 and bfloat16 in float32 and rounds after every operation, as compiled
code does. Overflow and the like are no errors here: call these inside `np.errstate(all="ignore")`.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from tecomp.ir.nodes.dtype import DType
from tecomp.ir.nodes.expr import BinOp, CmpOp, integer_range
from tecomp.ir.nodes.operators import COMPARISONS

Data: TypeAlias = Any
Unary: TypeAlias = Callable[[Data], Data]
Dyadic: TypeAlias = Callable[[Data, Data], Data]

_PLAIN: dict[BinOp, Dyadic] = {
    BinOp.ADD: operator.add,
    BinOp.SUB: operator.sub,
    BinOp.MUL: operator.mul,
    BinOp.DIV: operator.truediv,
    BinOp.BITAND: operator.and_,
    BinOp.BITOR: operator.or_,
    BinOp.BITXOR: operator.xor,
    BinOp.AND: operator.and_,
    BinOp.OR: operator.or_,
}


def wrapping(dtype: DType) -> Unary:
    """The function that brings an int into the range of `dtype`, modulo its width."""
    low, high = integer_range(dtype)
    size = 1 << dtype.bits

    def wrap(value: int) -> int:
        return value if low <= value <= high else (value - low) % size + low

    return wrap


def constant(value: float | int | bool, dtype: DType) -> Data:
    """A literal as a value."""
    if not dtype.is_float:
        return value
    with np.errstate(over="ignore"):
        return dtype.numpy.type(value)


def lanewise(function: Unary, dtype: DType) -> Unary:
    """`function` of Python values on each lane of a vector, giving a vector of `dtype`."""
    kind = dtype.numpy
    return lambda vector: np.array([function(lane) for lane in vector.tolist()], kind)


def binary_function(op: BinOp, dtype: DType) -> Dyadic:
    """What `a op b` computes for operands of `dtype`."""
    if dtype.is_float:
        return _float_function(op)
    if dtype.lanes == 1:
        return _bool_function(op) if dtype.is_bool else _integer_function(op, dtype.scalar)
    if op in _PLAIN:
        return _PLAIN[op]
    if op in (BinOp.MIN, BinOp.MAX):
        return np.minimum if op is BinOp.MIN else np.maximum
    return _lanes_of_two(binary_function(op, dtype.scalar), dtype)


def _lanes_of_two(scalar: Dyadic, dtype: DType) -> Dyadic:
    """`scalar` of Python values on each lane of two vectors; itself of two numbers."""
    kind = dtype.numpy

    def lanes(a: Data, b: Data) -> Data:
        pairs = zip(a.tolist(), b.tolist(), strict=True)
        return np.array([scalar(x, y) for x, y in pairs], kind)

    return lanes if dtype.lanes > 1 else scalar


def _float_function(op: BinOp) -> Dyadic:
    if op in (BinOp.FLOORDIV, BinOp.MOD):
        return np.floor_divide if op is BinOp.FLOORDIV else np.remainder
    if op in (BinOp.MIN, BinOp.MAX):
        return np.minimum if op is BinOp.MIN else np.maximum
    return _PLAIN[op]


def _bool_function(op: BinOp) -> Dyadic:
    if op in (BinOp.SHL, BinOp.SHR):
        return lambda a, b: a and not b
    if op in (BinOp.MIN, BinOp.MAX):
        return operator.and_ if op is BinOp.MIN else operator.or_
    return _PLAIN[op]


def _integer_function(op: BinOp, dtype: DType) -> Dyadic:
    wrap = wrapping(dtype)
    match op:
        case BinOp.BITAND | BinOp.BITOR | BinOp.BITXOR:
            return _PLAIN[op]
        case BinOp.MIN:
            return min
        case BinOp.MAX:
            return max
        case BinOp.FLOORDIV:
            return lambda a, b: wrap(a // b) if b else 0
        case BinOp.MOD:
            return lambda a, b: a % b if b else 0
        case BinOp.SHL | BinOp.SHR:
            return _shift(op, dtype)
    plain = _PLAIN[op]
    return lambda a, b: wrap(plain(a, b))


def _shift(op: BinOp, dtype: DType) -> Dyadic:
    wrap, bits = wrapping(dtype), dtype.bits

    def left(a: int, b: int) -> int:
        return wrap(a << b) if 0 <= b < bits else 0

    def right(a: int, b: int) -> int:
        return a >> (b if 0 <= b < bits else bits)

    return left if op is BinOp.SHL else right


def compare_function(op: CmpOp, dtype: DType) -> Dyadic:
    """What `a op b` computes for operands of `dtype`."""
    plain = COMPARISONS[op]
    if dtype.lanes == 1 and dtype.is_float:
        return lambda a, b: bool(plain(a, b))
    return plain


def cast_function(source: DType, target: DType) -> Unary:
    """The conversion from one type to another of as many lanes.

    A float that an integer type cannot hold becomes the nearest that it can, NaN becomes 0.
    """
    kind = target.numpy
    if target.is_bool:
        return (lambda v: v != 0) if source.lanes > 1 else (lambda v: bool(v != 0))
    if target.is_float:
        given = source.numpy
        return lambda v: np.asarray(v, given).astype(kind)[()]
    if source.is_float:
        one = saturating(target.scalar)
        return lanewise(one, target) if source.lanes > 1 else lambda v: one(float(v))
    wrap = wrapping(target.scalar)
    return (lambda v: v.astype(kind)) if source.lanes > 1 else lambda v: wrap(int(v))


def reinterpreted(source: DType, target: DType) -> Unary:
    """The function that reads the bits of a value of one type as one of another."""

    def read(value: Data) -> Data:
        result = np.asarray(value, source.numpy).reshape(-1).view(target.numpy)
        if target.lanes > 1:
            return result
        return result[0] if target.is_float else int(result[0])

    return read


def saturating(dtype: DType) -> Unary:
    """The function that makes an integer of a float: towards zero, and within the range."""
    low, high = integer_range(dtype)

    def convert(value: float) -> int:
        if math.isfinite(value):
            return min(max(math.trunc(value), low), high)
        return 0 if math.isnan(value) else high if value > 0 else low

    return convert


def call_function(name: str, dtype: DType) -> Callable[..., Data]:
    """What a function of `tecomp.ir.nodes.operators` computes for a first argument of `dtype`.

    Floats narrower than 64 bits are computed in 64 and rounded, so this is at least as good as
    what is compiled.
    """
    if name in ("isnan", "isinf", "isfinite"):
        test = getattr(np, name)
        return test if dtype.lanes > 1 else lambda x: bool(test(x))
    if name in ("popcount", "abs"):
        one = _popcount(dtype.scalar) if name == "popcount" else _absolute(dtype.scalar)
        return lanewise(one, dtype) if dtype.lanes > 1 else one
    if name == "pow" and dtype.is_integer:
        return _lanes_of_two(_power(dtype.scalar), dtype)
    if name == "dot":
        return _dot(dtype)
    if name == "join":
        return lambda *parts: np.concatenate([np.atleast_1d(x) for x in parts]).astype(dtype.numpy)
    function, kind = _MATH[name], dtype.numpy
    # float16 and bfloat16 are rounded to float32 on the way, see above.
    steps = [np.dtype(np.float32), kind] if dtype.bits == 16 else [kind]

    def call(*arguments: Data) -> Data:
        value = function(*(np.asarray(a).astype(np.float64) for a in arguments))
        for step in steps:
            value = np.asarray(value).astype(step)
        return value[()]

    return call


def _dot(dtype: DType) -> Dyadic:
    """Sums of products of the numbers in 32 bits; of int32 they wrap."""
    group = 32 // dtype.bits
    wide, narrow = (np.float32, np.float32) if dtype.is_float else (np.int64, np.int32)

    def call(a: Data, b: Data) -> Data:
        products = (a.astype(wide) * b.astype(wide)).reshape(-1, group)
        sums = products.sum(axis=1, dtype=wide).astype(narrow)
        if sums.size > 1:
            return sums
        return sums[0] if dtype.is_float else int(sums[0])

    return call


def _popcount(dtype: DType) -> Unary:
    mask = (1 << dtype.bits) - 1
    return lambda value: (value & mask).bit_count()


def _power(dtype: DType) -> Dyadic:
    """Powers that wrap; negative ones are rounded towards zero, and 0 of 0."""
    wrap = wrapping(dtype)

    def power(x: int, y: int) -> int:
        if y >= 0:
            return int(wrap(pow(x, y, 1 << dtype.bits)))
        return int(x ** (y % 2)) if x in (1, -1) else 0

    return power


def _absolute(dtype: DType) -> Unary:
    wrap = wrapping(dtype)
    return lambda value: wrap(abs(value))


def _sigmoid(x: Data) -> Data:
    return 1.0 / (1.0 + np.exp(-x))


def _rsqrt(x: Data) -> Data:
    return 1.0 / np.sqrt(x)


def _erf(x: Data) -> Data:
    return np.array([math.erf(lane) for lane in x.ravel().tolist()]).reshape(x.shape)


def _half_away(x: Data) -> Data:
    whole = np.trunc(x)
    # Exact, unlike `floor(x + 0.5)`.
    return np.where(np.abs(x - whole) >= 0.5, whole + np.copysign(1.0, x), whole)


_CIRCULAR = ("sin", "cos", "tan", "sinh", "cosh", "tanh")
_MATH: dict[str, Callable[..., Data]] = {
    **{name: getattr(np, name) for name in ("exp", "exp2", "expm1", "log", "log2", "log10")},
    **{name: getattr(np, name) for name in ("log1p", "sqrt", "hypot", "fmod", "fabs")},
    **{name: getattr(np, name) for name in (*_CIRCULAR, "floor", "ceil", "trunc")},
    **{f"a{name}": getattr(np, f"arc{name}") for name in _CIRCULAR},
    "round": _half_away,
    "nearbyint": np.rint,
    "pow": np.power,
    "atan2": np.arctan2,
    "rsqrt": _rsqrt,
    "sigmoid": _sigmoid,
    "erf": _erf,
}
