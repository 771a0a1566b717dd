"""Math functions: instructions where there are some, else formulas on vectors."""

from __future__ import annotations

from collections.abc import Sequence

from tecomp.codegen.llvm.emit import Code
from tecomp.codegen.llvm.types import literal, register_type, splat, suffix
from tecomp.codegen.math.dispatch import by_formula, has_formula
from tecomp.codegen.values.convert import narrow, wide_type, widen
from tecomp.errors import InternalError
from tecomp.ir.language.dtype import DType

_LLVM = {
    "sqrt": "sqrt",
    "floor": "floor",
    "ceil": "ceil",
    "round": "round",
    "nearbyint": "roundeven",
    "trunc": "trunc",
    "fabs": "fabs",
}


def call_function(code: Code, name: str, dtype: DType, args: Sequence[str]) -> str:
    """The call of math function `name` on operands of type `dtype`.

    Raises:
        InternalError: there is no such function.
    """
    if dtype.is_integer:
        return _integer_function(code, name, dtype, args)
    wide = wide_type(dtype)
    operands = [widen(code, arg, dtype) for arg in args]
    if name in ("isnan", "isinf", "isfinite"):
        return _classify(code, name, wide, operands[0])
    return narrow(code, _float_function(code, name, wide, operands), dtype)


def _integer_function(code: Code, name: str, dtype: DType, args: Sequence[str]) -> str:
    if has_formula(name, dtype):
        return by_formula(code, name, dtype, args)
    kind, value = register_type(dtype), args[0]
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
    raise InternalError(f"there is no function `{name}` of {dtype}")


def _constant(value: float, dtype: DType) -> str:
    return splat(literal(value, dtype.scalar), register_type(dtype.scalar), dtype.lanes)
