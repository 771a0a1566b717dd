"""Math functions: instructions where there are some, formulas on vectors, else the C library.

Functions of the C library know single values only and are called lane by lane.
"""

from __future__ import annotations

from collections.abc import Sequence

from tecomp.codegen.convert import narrow, wide_type, widen
from tecomp.codegen.emit import Code
from tecomp.codegen.types import literal, register_type, splat, suffix
from tecomp.codegen.vector_math.dispatch import by_formula, has_formula
from tecomp.errors import InternalError
from tecomp.ir.dtype import DType

_LLVM = {
    "sqrt": "sqrt",
    "floor": "floor",
    "ceil": "ceil",
    "round": "roundeven",
    "trunc": "trunc",
    "fabs": "fabs",
}
_LIBRARY = (
    *("exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "erf", "pow", "hypot"),
    *("sin", "cos", "tan", "asin", "acos", "atan", "atan2"),
    *("sinh", "cosh", "tanh", "asinh", "acosh", "atanh"),
)


def call_function(code: Code, name: str, dtype: DType, args: Sequence[str]) -> str:
    """The call of math function `name` on operands of type `dtype`.

    Raises:
        InternalError: there is no such function.
    """
    if dtype.is_integer:
        return _integer_function(code, name, dtype, args[0])
    wide = wide_type(dtype)
    operands = [widen(code, arg, dtype) for arg in args]
    if name in ("isnan", "isinf", "isfinite"):
        return _classify(code, name, wide, operands[0])
    return narrow(code, _float_function(code, name, wide, operands), dtype)


def _integer_function(code: Code, name: str, dtype: DType, value: str) -> str:
    kind = register_type(dtype)
    if name == "popcount":
        return code.call(kind, f"llvm.ctpop.{suffix(kind)}", [(kind, value)])
    if name == "abs" and dtype.kind == "uint":
        return value
    if name == "abs":
        return code.call(kind, f"llvm.abs.{suffix(kind)}", [(kind, value), ("i1", "false")])
    raise InternalError(f"there is no function `{name}` of {dtype}")


def _classify(code: Code, name: str, dtype: DType, value: str) -> str:
    kind = register_type(dtype)
    if name == "isnan":
        return code.op(f"fcmp uno {kind} {value}, {value}")
    size = code.call(kind, f"llvm.fabs.{suffix(kind)}", [(kind, value)])
    infinity = _constant(float("inf"), dtype)
    return code.op(f"fcmp {'oeq' if name == 'isinf' else 'olt'} {kind} {size}, {infinity}")


def _float_function(code: Code, name: str, dtype: DType, args: Sequence[str]) -> str:
    kind, one = register_type(dtype), _constant(1.0, dtype)
    if name in _LLVM:
        return code.call(kind, f"llvm.{_LLVM[name]}.{suffix(kind)}", [(kind, args[0])])
    if name == "rsqrt":
        return code.op(f"fdiv {kind} {one}, {_float_function(code, 'sqrt', dtype, args)}")
    if has_formula(name, dtype):
        return by_formula(code, name, dtype, args)
    if name == "sigmoid":
        negative = code.op(f"fneg {kind} {args[0]}")
        grown = _lane_by_lane(code, "exp", dtype, [negative])
        below = code.op(f"fadd {kind} {grown}, {one}")
        return code.op(f"fdiv {kind} {one}, {below}")
    if name == "fmod":
        return code.op(f"frem {kind} {args[0]}, {args[1]}")
    if name in _LIBRARY:
        return _lane_by_lane(code, name, dtype, args)
    raise InternalError(f"there is no function `{name}` of {dtype}")


def _constant(value: float, dtype: DType) -> str:
    return splat(literal(value, dtype.scalar), register_type(dtype.scalar), dtype.lanes)


def _lane_by_lane(code: Code, name: str, dtype: DType, args: Sequence[str]) -> str:
    """A function of the C library on every lane; it knows single values only."""
    symbol = name if dtype.bits == 64 else f"{name}f"
    scalar, vector = register_type(dtype.scalar), register_type(dtype)
    if dtype.lanes == 1:
        return code.call(scalar, symbol, [(scalar, arg) for arg in args])
    result = "poison"
    for lane in range(dtype.lanes):
        single = [code.op(f"extractelement {vector} {arg}, i64 {lane}") for arg in args]
        value = code.call(scalar, symbol, [(scalar, x) for x in single])
        result = code.op(f"insertelement {vector} {result}, {scalar} {value}, i64 {lane}")
    return result
