"""Math function calls by LLVM intrinsics or vector formulas, and calls of scalar C functions."""

from __future__ import annotations

from collections.abc import Sequence

from tecomp.codegen.llvm.ir_builder import FunctionBuilder, literal, register_type, splat, suffix
from tecomp.codegen.math.registry import emit_formula, has_formula
from tecomp.codegen.ops.arithmetic import narrow, wide_type, widen
from tecomp.errors import InternalError
from tecomp.ir.extern.registry import CallSignature, NumberType
from tecomp.ir.nodes.dtype import DType
from tecomp.ir.nodes.stmt import CallingConvention

_LLVM = {
    "sqrt": "sqrt",
    "floor": "floor",
    "ceil": "ceil",
    "round": "round",
    "nearbyint": "roundeven",
    "trunc": "trunc",
    "fabs": "fabs",
}


def call_function(code: FunctionBuilder, name: str, dtype: DType, args: Sequence[str]) -> str:
    """Emit the math function `name` on operands of `dtype`.

    Raises:
        InternalError: If there is no such function for `dtype`.
    """
    if dtype.is_integer:
        return _integer_function(code, name, dtype, args)
    wide = wide_type(dtype)
    operands = [widen(code, arg, dtype) for arg in args]
    if name in ("isnan", "isinf", "isfinite"):
        return _classify(code, name, wide, operands[0])
    return narrow(code, _float_function(code, name, wide, operands), dtype)


def _integer_function(code: FunctionBuilder, name: str, dtype: DType, args: Sequence[str]) -> str:
    if has_formula(name, dtype):
        return emit_formula(code, name, dtype, args)
    kind, value = register_type(dtype), args[0]
    if name == "popcount":
        return code.call(kind, f"llvm.ctpop.{suffix(kind)}", [(kind, value)])
    if name == "abs" and dtype.kind == "uint":
        return value
    if name == "abs":
        return code.call(kind, f"llvm.abs.{suffix(kind)}", [(kind, value), ("i1", "false")])
    raise InternalError("function `{name}` is not supported for {dtype}", name=name, dtype=dtype)


def _classify(code: FunctionBuilder, name: str, dtype: DType, value: str) -> str:
    kind = register_type(dtype)
    if name == "isnan":
        return code.op(f"fcmp uno {kind} {value}, {value}")
    size = code.call(kind, f"llvm.fabs.{suffix(kind)}", [(kind, value)])
    infinity = _constant(float("inf"), dtype)
    return code.op(f"fcmp {'oeq' if name == 'isinf' else 'olt'} {kind} {size}, {infinity}")


def _float_function(code: FunctionBuilder, name: str, dtype: DType, args: Sequence[str]) -> str:
    kind, one = register_type(dtype), _constant(1.0, dtype)
    if name in _LLVM:
        return code.call(kind, f"llvm.{_LLVM[name]}.{suffix(kind)}", [(kind, args[0])])
    if name == "rsqrt":
        return code.op(f"fdiv {kind} {one}, {_float_function(code, 'sqrt', dtype, args)}")
    if has_formula(name, dtype):
        return emit_formula(code, name, dtype, args)
    raise InternalError("function `{name}` is not supported for {dtype}", name=name, dtype=dtype)


def _constant(value: float, dtype: DType) -> str:
    return splat(literal(value, dtype.scalar), register_type(dtype.scalar), dtype.lanes)


def number_argument(code: FunctionBuilder, dtype: DType, value: str) -> tuple[str, str]:
    """Return type and operand of a scalar argument in the C calling convention."""
    if dtype.is_bool:
        return "i8 zeroext", code.op(f"zext i1 {value} to i8")
    kind = register_type(dtype)
    if dtype.is_integer and dtype.bits < 32:
        return f"{kind} {'signext' if dtype.kind == 'int' else 'zeroext'}", value
    return kind, value


def outside_value(
    code: FunctionBuilder, function: str, result: DType, types: Sequence[DType],
    operands: Sequence[str]
) -> str:
    """Emit a call of a pure C function of scalars and return its value."""
    kinds = tuple(map(NumberType, types))
    callee = CallSignature(function, CallingConvention.C, kinds, code.module.name, result)
    symbol = code.module.outside(callee)
    pairs = zip(types, operands, strict=True)
    given = [number_argument(code, dtype, value) for dtype, value in pairs]
    kind = "i8" if result.is_bool else register_type(result)
    declared = ", ".join(each for each, _ in given)
    # Attribute group #1 declares the function pure, as for the C math library.
    code.module.declarations.setdefault(f"declare {kind} @{symbol}({declared}) #1")
    passed = ", ".join(f"{each} {value}" for each, value in given)
    made = code.op(f"call {kind} @{symbol}({passed})")
    return code.op(f"icmp ne i8 {made}, 0") if result.is_bool else made
