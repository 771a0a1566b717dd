"""Conversions between float32 and floats of 8 bits or less, which are stored as integers."""

from __future__ import annotations

from tecomp.codegen.llvm.ir_builder import FunctionBuilder
from tecomp.codegen.math.vector_values import FORMATS, BoolVector, FloatVector, IntVector
from tecomp.operations.element_types import ElementType

_FLOAT32 = FORMATS["float"]
_SIGN = 0x80000000
_MAGNITUDE = 0x7FFFFFFF
_INFINITY = 0x7F800000
_NAN = 0x7FC00000


def decode_minifloat(code: FunctionBuilder, value: str, row: ElementType, lanes: int) -> str:
    """Emit the float32 value of a bit pattern."""
    raw = IntVector(code, value, f"i{row.bits}", lanes).cast("zext", "i32")
    magnitude = raw & (1 << row.exponent_bits + row.fraction_bits) - 1
    rebias = (_FLOAT32.bias - row.bias) << _FLOAT32.mantissa
    normal = (magnitude << _FLOAT32.mantissa - row.fraction_bits) + rebias
    bits = _choose(_less(magnitude, 1 << row.fraction_bits), _decode_small(magnitude, row), normal)
    if row.nonfinite == "IEEE754":
        bits = _choose(_less(magnitude, row.largest_code + 1), bits, raw.constant(_INFINITY))
    if row.nonfinite in ("IEEE754", "NanOnly"):
        last = row.largest_code + (row.nonfinite == "IEEE754")
        bits = _choose(_less(magnitude, last + 1), bits, raw.constant(_NAN))
    if not row.is_signed:
        return bits.real().operand
    sign = (raw & 1 << row.bits - 1) << 32 - row.bits
    signed = bits | sign
    if row.nonfinite == "NegativeZeroNan":
        signed = _choose(_equal(raw, row.largest_code + 1), raw.constant(_SIGN | _NAN), signed)
    return signed.real().operand


def _decode_small(magnitude: IntVector, row: ElementType) -> IntVector:
    """Return the float32 bits of codes whose exponent is 0: subnormals, or the smallest power."""
    if row.is_signed:
        return (magnitude.number() * 2.0**row.smallest_exponent).bits()
    shift = _FLOAT32.bias - 1 + _FLOAT32.mantissa + row.smallest_exponent
    return magnitude.constant(1 << shift)


def encode_minifloat(code: FunctionBuilder, value: str, row: ElementType, lanes: int) -> str:
    """Emit the bit pattern of a float32, rounded to nearest, ties to even.

    A value out of range becomes infinity, NaN if the format has no infinity, or the largest number
    if it has neither. NaN becomes zero of the opposite sign if the format has no NaN. Zeros and
    negative numbers become NaN if the format has no sign. The results are those of ml_dtypes.
    """
    bits = FloatVector(code, value, "float", lanes).bits()
    magnitude = bits & _MAGNITUDE
    largest = row.largest_code + (row.nonfinite != "FiniteOnly")
    rounded = _round(magnitude, row)
    number = _choose(_less(rounded, largest), rounded, rounded.constant(largest))
    if not row.is_signed:
        chosen = _choose(_less(bits, 1), bits.constant(largest), number)
        return chosen.cast("trunc", f"i{row.bits}").operand
    sign = bits.unsigned_shift(32 - row.bits) & 1 << row.bits - 1
    if row.nonfinite == "NegativeZeroNan":
        sign = _choose(_less(number, 1), sign.constant(0), sign)
    chosen = _choose(_less(magnitude, _INFINITY + 1), number | sign, _encode_nan(sign, row))
    return chosen.cast("trunc", f"i{row.bits}").operand


def _encode_nan(sign: IntVector, row: ElementType) -> IntVector:
    """Return the code of NaN with a sign, or zero of the opposite sign if the format has no NaN."""
    if row.nonfinite == "FiniteOnly":
        return sign ^ 1 << row.bits - 1
    if row.nonfinite == "IEEE754":
        # The first bit of the fraction marks a quiet NaN.
        return sign | row.largest_code + 1 | 1 << row.fraction_bits - 1
    return sign | row.largest_code + 1


def _round(magnitude: IntVector, row: ElementType) -> IntVector:
    """Return the code of a magnitude, as if the exponent were unbounded."""
    drop = _FLOAT32.mantissa - row.fraction_bits
    odd = magnitude.unsigned_shift(drop) & 1
    if not row.fraction_bits:  # the last bit is the leading one, which subnormals lack
        odd = _choose(_less(magnitude, 1 << drop), odd.constant(0), odd.constant(1))
    raised = (magnitude + odd) + ((1 << drop - 1) - 1)
    rebias = (_FLOAT32.bias - row.bias) << row.fraction_bits
    normal = raised.unsigned_shift(drop) - rebias
    if not row.is_signed:
        return normal
    # The last bit of this float has the weight of the last bit of a subnormal code, so that the
    # addition rounds.
    exponent = 1 - row.bias - row.fraction_bits + _FLOAT32.mantissa
    unit = exponent + _FLOAT32.bias << _FLOAT32.mantissa
    small = (magnitude.real() + magnitude.constant(unit).real()).bits() - unit
    least_normal = _FLOAT32.bias + 1 - row.bias << _FLOAT32.mantissa
    return _choose(_less(magnitude, least_normal), small, normal)


def _less(a: IntVector, bound: int) -> BoolVector:
    return _compare("slt", a, bound)


def _equal(a: IntVector, value: int) -> BoolVector:
    return _compare("eq", a, value)


def _compare(predicate: str, a: IntVector, b: int) -> BoolVector:
    test = a.code.op(f"icmp {predicate} {a.kind} {a.operand}, {a.like(b)}")
    return BoolVector(a.code, test, a.lanes)


def _choose(test: BoolVector, a: IntVector, b: IntVector) -> IntVector:
    texts = (f"{test.kind} {test.operand}", f"{a.kind} {a.operand}", f"{b.kind} {b.operand}")
    return a.emit(f"select {', '.join(texts)}")
