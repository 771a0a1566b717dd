"""Conversions between float32 and floats of 8 bits or less, which are stored as integers."""

from __future__ import annotations

from tecomp.codegen.llvm.ir_builder import FunctionBuilder
from tecomp.codegen.math.vector_values import FORMATS, BoolVector, FloatVector, IntVector
from tecomp.operations.element_types import ElementType

_FLOAT32 = FORMATS["float"]
_MAGNITUDE = 0x7FFFFFFF
_INFINITY = 0x7F800000
_NAN = 0x7FC00000


def decode_minifloat(code: FunctionBuilder, value: str, row: ElementType, lanes: int) -> str:
    """Emit the float32 value of a bit pattern."""
    raw = IntVector(code, value, f"i{row.bits}", lanes).cast("zext", "i32")
    magnitude = raw & (1 << (row.bits - 1)) - 1
    rebias = (_FLOAT32.bias - row.bias) << _FLOAT32.mantissa
    normal = (magnitude << _FLOAT32.mantissa - row.fraction_bits) + rebias
    step = 2.0 ** (1 - row.bias - row.fraction_bits)
    bits = _choose(_less(magnitude, 1 << row.fraction_bits),
                   (magnitude.number() * step).bits(), normal)
    if row.nonfinite == "IEEE754":
        bits = _choose(_less(magnitude, row.largest_code + 1), bits, raw.constant(_INFINITY))
    if row.nonfinite != "FiniteOnly":
        last = row.largest_code + (row.nonfinite == "IEEE754")
        bits = _choose(_less(magnitude, last + 1), bits, raw.constant(_NAN))
    sign = (raw & 1 << row.bits - 1) << 32 - row.bits
    return (bits | sign).real().operand


def encode_minifloat(code: FunctionBuilder, value: str, row: ElementType, lanes: int) -> str:
    """Emit the bit pattern of a float32, rounded to nearest, ties to even.

    A value out of range becomes infinity, NaN if the format has no infinity, or the largest number
    if it has neither. NaN becomes zero of the opposite sign if the format has no NaN, as in
    ml_dtypes.
    """
    bits = FloatVector(code, value, "float", lanes).bits()
    magnitude = bits & _MAGNITUDE
    largest = row.largest_code + (row.nonfinite != "FiniteOnly")
    rounded = _round(magnitude, row)
    number = _choose(_less(rounded, largest), rounded, rounded.constant(largest))
    sign = bits.unsigned_shift(32 - row.bits) & 1 << row.bits - 1
    quiet = {
        # The first bit of the fraction marks a quiet NaN.
        "IEEE754": sign | row.largest_code + 1 | 1 << row.fraction_bits - 1,
        "NanOnly": sign | row.largest_code + 1,
        "FiniteOnly": sign ^ 1 << row.bits - 1,
    }[row.nonfinite]
    chosen = _choose(_less(magnitude, _INFINITY + 1), number | sign, quiet)
    return chosen.cast("trunc", f"i{row.bits}").operand


def _round(magnitude: IntVector, row: ElementType) -> IntVector:
    """Return the code of a magnitude, as if the exponent were unbounded."""
    drop = _FLOAT32.mantissa - row.fraction_bits
    odd = magnitude.unsigned_shift(drop) & 1
    raised = (magnitude + odd) + ((1 << drop - 1) - 1)
    rebias = (_FLOAT32.bias - row.bias) << row.fraction_bits
    normal = raised.unsigned_shift(drop) - rebias
    # The last bit of this float has the weight of the last bit of a subnormal code, so that the
    # addition rounds.
    exponent = 1 - row.bias - row.fraction_bits + _FLOAT32.mantissa
    unit = exponent + _FLOAT32.bias << _FLOAT32.mantissa
    small = (magnitude.real() + magnitude.constant(unit).real()).bits() - unit
    least_normal = _FLOAT32.bias + 1 - row.bias << _FLOAT32.mantissa
    return _choose(_less(magnitude, least_normal), small, normal)


def _less(a: IntVector, bound: int) -> BoolVector:
    return BoolVector(a.code, a.code.op(f"icmp slt {a.kind} {a.operand}, {a.like(bound)}"), a.lanes)


def _choose(test: BoolVector, a: IntVector, b: IntVector) -> IntVector:
    texts = (f"{test.kind} {test.operand}", f"{a.kind} {a.operand}", f"{b.kind} {b.operand}")
    return a.emit(f"select {', '.join(texts)}")
