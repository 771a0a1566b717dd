"""LLVM's names for element types, in registers and in memory, and its spelling of literals.

A bool is one bit in a register and one byte in memory. A bfloat16 is held as its 16 bits: the
conversions are then a few integer instructions on every machine, and not a call into a runtime
library that the process may not have.
"""

from __future__ import annotations

import struct
from functools import cache

import numpy as np

from tecomp.ir.language.dtype import DType

_FLOATS = {16: "half", 32: "float", 64: "double"}


@cache
def register_type(dtype: DType) -> str:
    """What a value of `dtype` is while it is computed with."""
    return vector_of(_scalar(dtype), dtype.lanes)


@cache
def memory_type(dtype: DType) -> str:
    """What a value of `dtype` is in memory."""
    return vector_of("i8" if dtype.is_bool else _scalar(dtype), dtype.lanes)


def _scalar(dtype: DType) -> str:
    if dtype.kind == "handle":
        return "ptr"
    if dtype.kind == "float":
        return _FLOATS[dtype.bits]
    return f"i{dtype.bits}"


def vector_of(scalar: str, lanes: int) -> str:
    """LLVM's type of `lanes` values of type `scalar`.

    >>> vector_of("float", 4), vector_of("i8", 1)
    ('<4 x float>', 'i8')
    """
    return scalar if lanes == 1 else f"<{lanes} x {scalar}>"


def suffix(llvm_type: str) -> str:
    """What the name of an overloaded LLVM function has for a type.

    >>> suffix("<4 x float>"), suffix("i64"), suffix("<8 x ptr>")
    ('v4f32', 'i64', 'v8p0')
    """
    count, _, scalar = llvm_type.strip("<>").rpartition(" x ")
    short = {"half": "f16", "float": "f32", "double": "f64", "ptr": "p0"}.get(scalar, scalar)
    return f"v{count}{short}" if count else short


def literal(value: int | float | bool, dtype: DType) -> str:
    """`value` of scalar type `dtype` in LLVM's text, exact to the bit."""
    if dtype.is_bool:
        return "true" if value else "false"
    if dtype.is_integer:
        return str(int(value))
    bits = float_bits(float(value), dtype)
    if dtype.kind == "bfloat":
        return str(bits)
    if dtype.bits == 16:
        return f"0xH{bits:04X}"
    # LLVM writes a float as the double of the same value.
    wide = bits if dtype.bits == 64 else float_bits(_from_bits32(bits), DType("float64"))
    return f"0x{wide:016X}"


def float_bits(value: float, dtype: DType) -> int:
    """The bits of `value` rounded to the nearest even of a floating type, as an integer."""
    if dtype.bits == 64:
        return int.from_bytes(struct.pack("<d", value), "little")
    with np.errstate(over="ignore"):
        if dtype.kind == "bfloat":
            return _bfloat_bits(np.float32(value))
        narrow = np.float16(value) if dtype.bits == 16 else np.float32(value)
    return int.from_bytes(narrow.tobytes(), "little")


def _bfloat_bits(value: np.float32) -> int:
    bits = int(value.view(np.uint32))
    if value != value:
        return 0x7FC0 | bits >> 16
    return (bits + 0x7FFF + (bits >> 16 & 1)) >> 16


def _from_bits32(bits: int) -> float:
    return float(struct.unpack("<f", bits.to_bytes(4, "little"))[0])


def splat(operand: str, scalar: str, lanes: int) -> str:
    """A literal in every lane."""
    return operand if lanes == 1 else f"splat ({scalar} {operand})"


def zero(dtype: DType) -> str:
    """The zero of a type, in registers."""
    if dtype.lanes > 1:
        return "zeroinitializer"
    return literal(0, dtype)


def lane_numbers(lanes: int, scalar: str = "i64", factor: int = 1) -> str:
    """`<0, factor, 2 * factor, ...>` as a literal."""
    return "<" + ", ".join(f"{scalar} {k * factor}" for k in range(lanes)) + ">"


def shuffle_mask(lanes: list[int]) -> str:
    """The mask operand of a `shufflevector`."""
    return f"<{len(lanes)} x i32> <" + ", ".join(f"i32 {k}" for k in lanes) + ">"
