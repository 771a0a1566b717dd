"""Table of math functions with vector implementations."""

from __future__ import annotations

from collections.abc import Sequence

from tecomp.codegen.llvm.ir_builder import (
    WIDEST_VECTOR_BYTES,
    FunctionBuilder,
    register_type,
    shuffle_mask,
    vector_of,
)
from tecomp.codegen.math import power_float64
from tecomp.codegen.math.exact import fmod, power_of_signed, power_of_unsigned
from tecomp.codegen.math.exp_log import (
    cosh,
    erf,
    exp,
    exp2,
    expm1,
    log,
    log1p,
    log2,
    log10,
    sigmoid,
    sinh,
    tanh,
)
from tecomp.codegen.math.power_float32 import acosh, asinh, atanh, hypot, power
from tecomp.codegen.math.trigonometric import acos, asin, atan, atan2, cos, sin, tan
from tecomp.codegen.math.vector_values import FloatVector, Formula, IntVector, call_outlined
from tecomp.ir.nodes.dtype import DType

_FORMULAS: dict[str, Formula] = {
    "exp": exp, "exp2": exp2, "expm1": expm1, "sigmoid": sigmoid, "tanh": tanh,
    "sinh": sinh, "cosh": cosh, "erf": erf, "log": log, "log2": log2, "log10": log10,
    "log1p": log1p, "sin": sin, "cos": cos, "tan": tan, "asin": asin, "acos": acos, "atan": atan,
    "atan2": atan2, "pow": power, "hypot": hypot, "asinh": asinh, "acosh": acosh, "atanh": atanh,
    "fmod": fmod,
}

# Functions with a separate float64 implementation, as float32 uses float64 arithmetic.
_DOUBLE: dict[str, Formula] = {
    "pow": power_float64.power, "hypot": power_float64.hypot, "asinh": power_float64.asinh,
    "acosh": power_float64.acosh, "atanh": power_float64.atanh,
}

_POWERS = {"int": power_of_signed, "uint": power_of_unsigned}


def has_formula(name: str, dtype: DType) -> bool:
    """Return whether `emit_formula` supports the function for this dtype."""
    if dtype.is_integer:
        return name == "pow"
    return dtype.bits in (32, 64) and name in _FORMULAS


def emit_formula(code: FunctionBuilder, name: str, dtype: DType, args: Sequence[str]) -> str:
    """Emit the function in each lane; the result of a lane is independent of the lane count."""
    scalar = register_type(dtype.scalar)
    widest = 8 * WIDEST_VECTOR_BYTES // dtype.bits
    if dtype.lanes <= widest and dtype.lanes & dtype.lanes - 1 == 0:
        return _piece(code, name, dtype.kind, scalar, dtype.lanes, args)
    whole = vector_of(scalar, dtype.lanes)
    joined = "poison"
    for start in range(0, dtype.lanes, widest):
        count = min(widest, dtype.lanes - start)
        lanes = 1 << (count - 1).bit_length()
        kind = vector_of(scalar, lanes)
        cut = [_lanes_of(code, whole, arg, dtype.lanes, start, count, lanes) for arg in args]
        part = _piece(code, name, dtype.kind, scalar, lanes, cut)
        if lanes == 1:
            joined = code.op(f"insertelement {whole} {joined}, {scalar} {part}, i64 {start}")
            continue
        spread = [min(max(k - start, 0), lanes - 1) for k in range(dtype.lanes)]
        part = code.op(f"shufflevector {kind} {part}, {kind} poison, {shuffle_mask(spread)}")
        chosen = [k + dtype.lanes * (start <= k < start + count) for k in range(dtype.lanes)]
        joined = code.op(f"shufflevector {whole} {joined}, {whole} {part}, {shuffle_mask(chosen)}")
    return joined


def _lanes_of(
    code: FunctionBuilder, kind: str, value: str, given: int, start: int, count: int, lanes: int
) -> str:
    """Extract `count` lanes from `start` on, padded with zeros up to `lanes`."""
    if lanes == 1:
        return code.op(f"extractelement {kind} {value}, i64 {start}")
    mask = [start + k if k < count else given for k in range(lanes)]
    return code.op(f"shufflevector {kind} {value}, {kind} zeroinitializer, {shuffle_mask(mask)}")


def _piece(
    code: FunctionBuilder, name: str, numbers: str, scalar: str, lanes: int, args: Sequence[str]
) -> str:
    if numbers in _POWERS:
        whole = tuple(IntVector(code, arg, scalar, lanes) for arg in args)
        return call_outlined(f"{name}.{numbers}", _POWERS[numbers], whole).operand
    values = tuple(FloatVector(code, arg, scalar, lanes) for arg in args)
    formula = _DOUBLE.get(name) if scalar == "double" else None
    return call_outlined(name, formula or _FORMULAS[name], values).operand
