"""Numbers that C functions take and give, as the calling conventions of C want them."""

from __future__ import annotations

from collections.abc import Sequence

from tecomp.codegen.llvm.emit import Code
from tecomp.codegen.llvm.types import register_type
from tecomp.ir.language.dtype import DType
from tecomp.ir.language.outside_call import Convention
from tecomp.ir.outside.callee import Callee, NumberType


def number_argument(code: Code, dtype: DType, value: str) -> tuple[str, str]:
    """The type and the operand of a number."""
    if dtype.is_bool:
        return "i8 zeroext", code.op(f"zext i1 {value} to i8")
    kind = register_type(dtype)
    if dtype.is_integer and dtype.bits < 32:
        return f"{kind} {'signext' if dtype.kind == 'int' else 'zeroext'}", value
    return kind, value


def outside_value(
    code: Code, function: str, result: DType, types: Sequence[DType], operands: Sequence[str]
) -> str:
    """The value of a C function of numbers, which follows from them alone."""
    kinds = tuple(map(NumberType, types))
    callee = Callee(function, Convention.C, kinds, code.module.name, result)
    symbol = code.module.outside(callee)
    pairs = zip(types, operands, strict=True)
    given = [number_argument(code, dtype, value) for dtype, value in pairs]
    kind = "i8" if result.is_bool else register_type(result)
    declared = ", ".join(each for each, _ in given)
    # It is pure: see the attributes of functions of the C math library.
    code.module.declarations.setdefault(f"declare {kind} @{symbol}({declared}) #1")
    passed = ", ".join(f"{each} {value}" for each, value in given)
    made = code.op(f"call {kind} @{symbol}({passed})")
    return code.op(f"icmp ne i8 {made}, 0") if result.is_bool else made
