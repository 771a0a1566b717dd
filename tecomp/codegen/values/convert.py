"""Conversions between element types.

Integers wrap, floats that an integer type cannot hold become the nearest value that it can and
NaN becomes 0, and everything but zero is true.
"""

from __future__ import annotations

from tecomp.codegen.llvm.emit import Code
from tecomp.codegen.llvm.types import literal, register_type, splat, suffix, vector_of, zero
from tecomp.ir.language.dtype import FLOAT32, DType
from tecomp.ir.language.expr import integer_range


def is_narrow(dtype: DType) -> bool:
    """Whether arithmetic on `dtype` is done in float32 and rounded after every operation."""
    return dtype.is_float and dtype.bits == 16


def wide_type(dtype: DType) -> DType:
    """The type that arithmetic on `dtype` is done in."""
    return FLOAT32.with_lanes(dtype.lanes) if is_narrow(dtype) else dtype


def widen(code: Code, value: str, dtype: DType) -> str:
    """`value` in the type that arithmetic on it is done in."""
    if not is_narrow(dtype):
        return value
    wide = register_type(wide_type(dtype))
    if dtype.kind == "float":
        return code.op(f"fpext {register_type(dtype)} {value} to {wide}")
    bits = vector_of("i32", dtype.lanes)
    extended = code.op(f"zext {register_type(dtype)} {value} to {bits}")
    shifted = code.op(f"shl {bits} {extended}, {splat('16', 'i32', dtype.lanes)}")
    return code.op(f"bitcast {bits} {shifted} to {wide}")


def narrow(code: Code, value: str, dtype: DType) -> str:
    """`value`, computed in `wide_type(dtype)`, rounded to `dtype`."""
    if not is_narrow(dtype):
        return value
    wide = register_type(wide_type(dtype))
    if dtype.kind == "float":
        return code.op(f"fptrunc {wide} {value} to {register_type(dtype)}")
    return _round_to_bfloat(code, value, dtype.lanes)


def _round_to_bfloat(code: Code, value: str, lanes: int) -> str:
    """The upper 16 bits of a float32, rounded to the nearest, ties to even; NaN stays NaN."""
    wide, bits = vector_of("float", lanes), vector_of("i32", lanes)

    def each(number: int) -> str:
        return splat(str(number), "i32", lanes)

    raw = code.op(f"bitcast {wide} {value} to {bits}")
    upper = code.op(f"lshr {bits} {raw}, {each(16)}")
    odd = code.op(f"and {bits} {upper}, {each(1)}")
    half = code.op(f"add {bits} {odd}, {each(0x7FFF)}")
    rounded = code.op(f"add {bits} {raw}, {half}")
    kept = code.op(f"lshr {bits} {rounded}, {each(16)}")
    quiet = code.op(f"or {bits} {upper}, {each(0x7FC0)}")
    nan = code.op(f"fcmp uno {wide} {value}, {value}")
    chosen = select(code, nan, quiet, kept, bits, lanes)
    return code.op(f"trunc {bits} {chosen} to {vector_of('i16', lanes)}")


def select(code: Code, condition: str, a: str, b: str, kind: str, lanes: int) -> str:
    """`a` where `condition` holds, else `b`; all have `lanes` lanes."""
    return code.op(f"select {vector_of('i1', lanes)} {condition}, {kind} {a}, {kind} {b}")


def cast(code: Code, value: str, source: DType, target: DType) -> str:
    """`value` of type `source` converted to `target`, which has as many lanes."""
    if source == target:
        return value
    if target.is_bool:
        return _to_bool(code, value, source)
    if source.is_float and target.is_float:
        return _float_to_float(code, value, source, target)
    if source.is_float:
        return _float_to_int(code, value, source, target)
    if target.is_float:
        word = "sitofp" if source.kind == "int" else "uitofp"
        wide = wide_type(target)
        raw = code.op(f"{word} {register_type(source)} {value} to {register_type(wide)}")
        return narrow(code, raw, target)
    return _int_to_int(code, value, source, target)


def _to_bool(code: Code, value: str, source: DType) -> str:
    if source.is_float:
        wide = wide_type(source)
        zero = splat(literal(0.0, wide.scalar), register_type(wide.scalar), wide.lanes)
        return code.op(f"fcmp une {register_type(wide)} {widen(code, value, source)}, {zero}")
    return code.op(f"icmp ne {register_type(source)} {value}, {splat_int(0, source)}")


def splat_int(number: int, dtype: DType) -> str:
    """`number` in each lane of an integer type."""
    return splat(str(number), register_type(dtype.scalar), dtype.lanes)


def _int_to_int(code: Code, value: str, source: DType, target: DType) -> str:
    if source.bits == target.bits:
        return value
    wider = "sext" if source.kind == "int" else "zext"
    word = "trunc" if source.bits > target.bits else wider
    return code.op(f"{word} {register_type(source)} {value} to {register_type(target)}")


def _float_to_int(code: Code, value: str, source: DType, target: DType) -> str:
    """LLVM's own saturating conversion takes vectors apart; comparisons and selections do not.

    The greatest integer of a wide type is no number of the floating type. Then what is beyond is
    replaced in the end, and until then it is 0, like NaN.
    """
    wide, lanes = wide_type(source), source.lanes
    kind, result = register_type(wide), register_type(target)
    low, high = integer_range(target)
    is_exact = high < 1 << (53 if wide.bits == 64 else 24)
    least, most = (
        splat(literal(float(bound), wide.scalar), register_type(wide.scalar), lanes)
        for bound in (low, high if is_exact else high + 1)
    )
    number = widen(code, value, source)
    # Comparisons with NaN do not hold.
    test = f"ord {kind} {number}, {number}" if is_exact else f"olt {kind} {number}, {most}"
    safe = select(code, code.op(f"fcmp {test}"), number, zero(wide), kind, lanes)
    above = code.op(f"fcmp olt {kind} {least}, {safe}")
    safe = select(code, above, safe, least, kind, lanes)
    if is_exact:
        below = code.op(f"fcmp olt {kind} {safe}, {most}")
        safe = select(code, below, safe, most, kind, lanes)
    # Processors convert vectors to 32 bits and more; narrower types are cut from those.
    step = target if target.bits >= 32 else DType("int32").with_lanes(lanes)
    word = "fptosi" if step.kind == "int" else "fptoui"
    whole = code.op(f"{word} {kind} {safe} to {register_type(step)}")
    whole = _int_to_int(code, whole, step, target)
    if is_exact:
        return whole
    beyond = code.op(f"fcmp oge {kind} {number}, {most}")
    return select(code, beyond, splat_int(high, target), whole, result, lanes)


def _float_to_float(code: Code, value: str, source: DType, target: DType) -> str:
    if source.bits == 64 and is_narrow(target):
        single = FLOAT32.with_lanes(source.lanes)
        if target.kind == "float":
            return narrow(code, _round_to_odd(code, value, source.lanes), target)
        return narrow(code, _float_to_float(code, value, source, single), target)
    wide = widen(code, value, source)
    start, stop = wide_type(source), wide_type(target)
    if start.bits != stop.bits:
        word = "fpext" if start.bits < stop.bits else "fptrunc"
        wide = code.op(f"{word} {register_type(start)} {wide} to {register_type(stop)}")
    return narrow(code, wide, target)


def _round_to_odd(code: Code, value: str, lanes: int) -> str:
    """A float64 as the float32 from which rounding once more gives what rounding once would.

    Source:
        S. Boldo, G. Melquiond, "Emulation of FMA and correctly rounded sums: proved algorithms
        using rounding to odd", IEEE Transactions on Computers 57(4), 2008, theorem 2.
    """
    double, single = vector_of("double", lanes), vector_of("float", lanes)
    bits = vector_of("i32", lanes)
    near = code.op(f"fptrunc {double} {value} to {single}")
    back = code.op(f"fpext {single} {near} to {double}")
    size = code.call(double, f"llvm.fabs.{suffix(double)}", [(double, value)])
    size_back = code.call(double, f"llvm.fabs.{suffix(double)}", [(double, back)])
    raw = code.op(f"bitcast {single} {near} to {bits}")
    too_far = code.op(f"fcmp ogt {double} {size_back}, {size}")
    step = code.op(f"zext {vector_of('i1', lanes)} {too_far} to {bits}")
    below = code.op(f"sub {bits} {raw}, {step}")
    inexact = code.op(f"fcmp one {double} {back}, {value}")
    sticky = code.op(f"zext {vector_of('i1', lanes)} {inexact} to {bits}")
    odd = code.op(f"or {bits} {below}, {sticky}")
    return code.op(f"bitcast {bits} {odd} to {single}")
