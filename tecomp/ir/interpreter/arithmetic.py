"""Semantics of every operator and intrinsic on scalars and vectors.

A scalar integer is a Python int in the range of its dtype, and a boolean is a bool. A scalar float
is a NumPy scalar, so that it rounds like its dtype. A vector is a NumPy array.

NumPy and ml_dtypes compute floats of 16 bits or less in float32 and round after every operation, as
compiled code does. Overflow and invalid operations are not errors: call these functions inside
`np.errstate(all="ignore")`.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from tecomp.ir.nodes.dtype import DType
from tecomp.ir.nodes.expr import BinOp, CmpOp, integer_range
from tecomp.ir.nodes.operators import COMPARISONS
from tecomp.operations.elementwise import ELEMENTWISE
from tecomp.operations.formulas import NumpyAlgebra

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


def wrap_to_dtype(dtype: DType) -> Unary:
    """Return a function that wraps an int to the range of `dtype`, modulo 2**bits."""
    low, high = integer_range(dtype)
    size = 1 << dtype.bits

    def wrap(value: int) -> int:
        return value if low <= value <= high else (value - low) % size + low

    return wrap


def constant(value: float | int | bool, dtype: DType) -> Data:
    """Return the run-time value of a literal."""
    if not dtype.is_float:
        return value
    with np.errstate(over="ignore"):
        return dtype.numpy.type(value)


def lanewise(function: Unary, dtype: DType) -> Unary:
    """Apply a function on Python values to each lane of a vector; the result has dtype `dtype`."""
    kind = dtype.numpy
    return lambda vector: np.array([function(lane) for lane in vector.tolist()], kind)


def binary_function(op: BinOp, dtype: DType) -> Dyadic:
    """Return the function that evaluates `a op b` for operands of `dtype`."""
    if dtype.is_float:
        return _float_function(op)
    if dtype.lanes == 1:
        return _bool_function(op) if dtype.is_bool else _integer_function(op, dtype.scalar)
    # ml_dtypes has no bitwise operators for integers of less than 8 bits.
    has_operators = dtype.is_bool or dtype.bits >= 8
    if op in _PLAIN and has_operators:
        return _PLAIN[op]
    if op in (BinOp.MIN, BinOp.MAX) and has_operators:
        return np.minimum if op is BinOp.MIN else np.maximum
    return _lanes_of_two(binary_function(op, dtype.scalar), dtype)


def _lanes_of_two(scalar: Dyadic, dtype: DType) -> Dyadic:
    """Apply a binary function on Python values lane by lane, or return it for scalar dtypes."""
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
    wrap = wrap_to_dtype(dtype)
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
    raw = _PLAIN[op]
    return lambda a, b: wrap(raw(a, b))


def _shift(op: BinOp, dtype: DType) -> Dyadic:
    wrap, bits = wrap_to_dtype(dtype), dtype.bits

    def left(a: int, b: int) -> int:
        return wrap(a << b) if 0 <= b < bits else 0

    def right(a: int, b: int) -> int:
        return a >> (b if 0 <= b < bits else bits)

    return left if op is BinOp.SHL else right


def compare_function(op: CmpOp, dtype: DType) -> Dyadic:
    """Return the function that evaluates the comparison `a op b` for operands of `dtype`."""
    compare = COMPARISONS[op]
    if dtype.lanes == 1 and dtype.is_float:
        return lambda a, b: bool(compare(a, b))
    return compare


def cast_function(source: DType, target: DType) -> Unary:
    """Return the conversion between two dtypes with equal lanes.

    Float to integer conversion truncates and saturates at the integer range; NaN gives 0.
    """
    kind = target.numpy
    if target.is_bool:
        # ml_dtypes compares integers of less than 8 bits only with each other.
        return (lambda v: v.astype(bool)) if source.lanes > 1 else (lambda v: bool(v != 0))
    if target.is_float:
        source_kind = source.numpy
        # No conversions between dtypes of ml_dtypes; float64 holds every value of narrow dtypes.
        steps = (np.float64, kind) if source.bits < 16 else (kind,)

        def to_float(value: Data) -> Data:
            for step in (source_kind, *steps):
                value = np.asarray(value).astype(step)
            return value[()]

        return to_float
    if source.is_float:
        convert = saturating_conversion(target.scalar)
        return lanewise(convert, target) if source.lanes > 1 else lambda v: convert(float(v))
    wrap = wrap_to_dtype(target.scalar)
    wide = np.int64 if source.bits < 8 else source.numpy
    return (lambda v: v.astype(wide).astype(kind)) if source.lanes > 1 else lambda v: wrap(int(v))


def reinterpret_function(source: DType, target: DType) -> Unary:
    """Return the function that reinterprets the bits of a value as another dtype."""

    def read(value: Data) -> Data:
        array = np.asarray(value, source.numpy).reshape(-1)
        raw = _unpack_bits(_pack_bits(array, source.bits), target.bits)
        result = raw.view(target.numpy)[: target.lanes]
        if target.lanes > 1:
            return result
        return result[0] if target.is_float else int(result[0])

    return read


def _pack_bits(values: Data, bits: int) -> Data:
    """Return the bytes of values in registers, where those of less than 8 bits are adjacent."""
    raw = values.view(np.uint8)
    if bits >= 8:
        return raw
    return np.packbits(np.unpackbits(raw[:, None], axis=1, count=bits, bitorder="little").ravel(),
                       bitorder="little")


def _unpack_bits(raw: Data, bits: int) -> Data:
    """Return the bytes in memory of values in registers."""
    if bits >= 8:
        return raw
    elements = np.unpackbits(raw, bitorder="little").reshape(-1, bits)
    return np.packbits(elements, axis=1, bitorder="little").ravel()


def saturating_conversion(dtype: DType) -> Unary:
    """Return the conversion from float to integer: truncating, saturating, with 0 for NaN."""
    low, high = integer_range(dtype)

    def convert(value: float) -> int:
        if math.isfinite(value):
            return min(max(math.trunc(value), low), high)
        return 0 if math.isnan(value) else high if value > 0 else low

    return convert


def call_function(name: str, dtype: DType) -> Callable[..., Data]:
    """Return the function that evaluates an intrinsic whose first argument has dtype `dtype`.

    Floats narrower than 64 bits are evaluated in float64 and rounded, so the result is at least as
    accurate as that of compiled code.
    """
    if name in ("isnan", "isinf", "isfinite"):
        test = getattr(np, name)
        return test if dtype.lanes > 1 else lambda x: bool(test(x))
    if name in ("popcount", "abs"):
        scalar_call = _popcount(dtype.scalar) if name == "popcount" else _absolute(dtype.scalar)
        return lanewise(scalar_call, dtype) if dtype.lanes > 1 else scalar_call
    if name == "pow" and dtype.is_integer:
        return _lanes_of_two(_power(dtype.scalar), dtype)
    if name == "dot":
        return _dot(dtype)
    if name == "join":
        return lambda *parts: np.concatenate([np.atleast_1d(x) for x in parts]).astype(dtype.numpy)
    function, kind = _MATH[name], dtype.numpy
    # Narrower floats are rounded to float32 first, as in compiled code.
    steps = [np.dtype(np.float32), kind] if dtype.bits <= 16 else [kind]

    def call(*arguments: Data) -> Data:
        value = function(*(np.asarray(a).astype(np.float64) for a in arguments))
        for step in steps:
            value = np.asarray(value).astype(step)
        return value[()]

    return call


def _dot(dtype: DType) -> Dyadic:
    """Return the function that sums products within groups of 32 bits; int32 sums wrap around."""
    group = 32 // dtype.bits
    wide_type, narrow_type = (np.float32, np.float32) if dtype.is_float else (np.int64, np.int32)

    def call(a: Data, b: Data) -> Data:
        products = (a.astype(wide_type) * b.astype(wide_type)).reshape(-1, group)
        sums = products.sum(axis=1, dtype=wide_type).astype(narrow_type)
        if sums.size > 1:
            return sums
        return sums[0] if dtype.is_float else int(sums[0])

    return call


def _popcount(dtype: DType) -> Unary:
    mask, wrap = (1 << dtype.bits) - 1, wrap_to_dtype(dtype)
    return lambda value: wrap((value & mask).bit_count())


def _power(dtype: DType) -> Dyadic:
    """Return the integer power with wrap-around.

    For a negative exponent, the exact power is truncated towards zero, and base 0 gives 0.
    """
    wrap = wrap_to_dtype(dtype)

    def power(x: int, y: int) -> int:
        if y >= 0:
            return int(wrap(pow(x, y, 1 << dtype.bits)))
        return int(x ** (y % 2)) if x in (1, -1) else 0

    return power


def _absolute(dtype: DType) -> Unary:
    wrap = wrap_to_dtype(dtype)
    return lambda value: wrap(abs(value))


def _sigmoid(x: Data) -> Data:
    return 1.0 / (1.0 + np.exp(-x))


def _rsqrt(x: Data) -> Data:
    return 1.0 / np.sqrt(x)


def _erf(x: Data) -> Data:
    return np.array([math.erf(lane) for lane in x.ravel().tolist()]).reshape(x.shape)


def _half_away(x: Data) -> Data:
    truncated = np.trunc(x)
    # This is exact, unlike `floor(x + 0.5)`, where the sum is rounded.
    return np.where(np.abs(x - truncated) >= 0.5, truncated + np.copysign(1.0, x), truncated)


_MATH: dict[str, Callable[..., Data]] = {
    **{row.call: getattr(np, row.numpy_name) for row in ELEMENTWISE if row.call and row.numpy_name},
    **{
        row.call: partial(row.formula, NumpyAlgebra())
        for row in ELEMENTWISE if row.call and row.formula
    },
    "round": _half_away,
    "rsqrt": _rsqrt,
    "sigmoid": _sigmoid,
    "erf": _erf,
}
