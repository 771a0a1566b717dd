"""Binary operators and comparisons on operands: what Python means by them, and no trap ever."""

from __future__ import annotations

from tecomp.codegen.llvm.emit import Code
from tecomp.codegen.llvm.types import literal, register_type, splat, suffix, vector_of, zero
from tecomp.codegen.math.dispatch import by_formula
from tecomp.codegen.values.convert import narrow, select, splat_int, wide_type, widen
from tecomp.ir.language.dtype import DType
from tecomp.ir.language.expr import BinOp, CmpOp

_FLOAT = {BinOp.ADD: "fadd", BinOp.SUB: "fsub", BinOp.MUL: "fmul", BinOp.DIV: "fdiv"}
_INTEGER = {
    BinOp.ADD: "add",
    BinOp.SUB: "sub",
    BinOp.MUL: "mul",
    BinOp.AND: "and",
    BinOp.OR: "or",
    BinOp.BITAND: "and",
    BinOp.BITOR: "or",
    BinOp.BITXOR: "xor",
}
_SIGNED = {CmpOp.LT: "slt", CmpOp.LE: "sle", CmpOp.GT: "sgt", CmpOp.GE: "sge"}
_UNSIGNED = {CmpOp.LT: "ult", CmpOp.LE: "ule", CmpOp.GT: "ugt", CmpOp.GE: "uge"}
_ORDERED = {
    CmpOp.EQ: "oeq",
    CmpOp.NE: "une",
    CmpOp.LT: "olt",
    CmpOp.LE: "ole",
    CmpOp.GT: "ogt",
    CmpOp.GE: "oge",
}


def compare(code: Code, op: CmpOp, dtype: DType, a: str, b: str) -> str:
    """`a op b` of two operands of type `dtype`; a comparison with NaN is false, `!=` true."""
    if dtype.is_float:
        wide = register_type(wide_type(dtype))
        x, y = widen(code, a, dtype), widen(code, b, dtype)
        return code.op(f"fcmp {_ORDERED[op]} {wide} {x}, {y}")
    if op in (CmpOp.EQ, CmpOp.NE):
        word = "eq" if op is CmpOp.EQ else "ne"
    else:
        word = (_SIGNED if dtype.kind == "int" else _UNSIGNED)[op]
    return code.op(f"icmp {word} {register_type(dtype)} {a}, {b}")


def binary(code: Code, op: BinOp, dtype: DType, a: str, b: str, constant: int | None) -> str:
    """`a op b`; `constant` is the value of `b` where it is a literal integer."""
    if dtype.is_float:
        wide = wide_type(dtype)
        x, y = widen(code, a, dtype), widen(code, b, dtype)
        return narrow(code, _float_binary(code, op, wide, x, y), dtype)
    if op in _INTEGER:
        return code.op(f"{_INTEGER[op]} {register_type(dtype)} {a}, {b}")
    if op in (BinOp.MIN, BinOp.MAX):
        return _integer_extreme(code, op, dtype, a, b)
    if op in (BinOp.SHL, BinOp.SHR):
        return _shift(code, op, dtype, a, b, constant)
    if constant is not None and constant not in (0, -1):
        return _divide_by_constant(code, op, dtype, a, constant)
    return _divide(code, op, dtype, a, b)


def _float_binary(code: Code, op: BinOp, dtype: DType, a: str, b: str) -> str:
    kind, flags = register_type(dtype), code.module.options.flags
    if op in _FLOAT:
        if op is BinOp.DIV and not code.module.options.fast_math:
            flags = ""
        return code.op(f"{_FLOAT[op]} {flags}{kind} {a}, {b}")
    if op in (BinOp.MIN, BinOp.MAX):
        if code.module.options.fast_math:
            # One instruction where `minimum` takes three; of a NaN and a number it gives either.
            word = "olt" if op is BinOp.MIN else "ogt"
            first = code.op(f"fcmp {word} {kind} {a}, {b}")
            return select(code, first, a, b, kind, dtype.lanes)
        word = "minimum" if op is BinOp.MIN else "maximum"
        target = code.module.declare(kind, f"llvm.{word}.{suffix(kind)}", [kind, kind])
        # Which of two zeros comes out is open in NumPy too, and deciding it costs instructions.
        return code.op(f"call nsz {kind} {target}({kind} {a}, {kind} {b})")
    return _float_floor(code, op, dtype, a, b)


def _float_floor(code: Code, op: BinOp, dtype: DType, a: str, b: str) -> str:
    """Floor division or modulo of floats; the divisor 0 gives what `/` and `fmod` give.

    Source:
        `npy_divmod` of NumPy 2.4, numpy/_core/src/npymath/npy_math_internal.h.src.
    """
    kind, lanes = register_type(dtype), dtype.lanes
    sign = f"llvm.copysign.{suffix(kind)}"
    none, one, half = (
        splat(literal(x, dtype.scalar), register_type(dtype.scalar), lanes) for x in (0.0, 1.0, 0.5)
    )
    rest = by_formula(code, "fmod", dtype, (a, b))
    by_zero = code.op(f"fcmp oeq {kind} {b}, {none}")
    exact = code.op(f"fcmp oeq {kind} {rest}, {none}")
    low_rest = code.op(f"fcmp olt {kind} {rest}, {none}")
    low_divisor = code.op(f"fcmp olt {kind} {b}, {none}")
    mask = register_type(DType("bool").with_lanes(lanes))
    differ = code.op(f"xor {mask} {low_rest}, {low_divisor}")
    inexact = code.op(f"xor {mask} {exact}, {splat('true', 'i1', lanes)}")
    moved = code.op(f"and {mask} {differ}, {inexact}")
    if op is BinOp.MOD:
        shifted = code.op(f"fadd {kind} {rest}, {b}")
        signed = code.call(kind, sign, [(kind, none), (kind, b)])
        whole = select(code, exact, signed, rest, kind, lanes)
        result = select(code, moved, shifted, whole, kind, lanes)
        return select(code, by_zero, rest, result, kind, lanes)
    less = code.op(f"fsub {kind} {a}, {rest}")
    quotient = code.op(f"fdiv {kind} {less}, {b}")
    lower = code.op(f"fsub {kind} {quotient}, {one}")
    quotient = select(code, moved, lower, quotient, kind, lanes)
    floor = code.call(kind, f"llvm.floor.{suffix(kind)}", [(kind, quotient)])
    gap = code.op(f"fsub {kind} {quotient}, {floor}")
    far = code.op(f"fcmp ogt {kind} {gap}, {half}")
    upper = code.op(f"fadd {kind} {floor}, {one}")
    nearest = select(code, far, upper, floor, kind, lanes)
    ratio = code.op(f"fdiv {kind} {a}, {b}")
    is_none = code.op(f"fcmp oeq {kind} {quotient}, {none}")
    signed = code.call(kind, sign, [(kind, none), (kind, ratio)])
    result = select(code, is_none, signed, nearest, kind, lanes)
    return select(code, by_zero, ratio, result, kind, lanes)


def _integer_extreme(code: Code, op: BinOp, dtype: DType, a: str, b: str) -> str:
    kind = register_type(dtype)
    if dtype.is_bool:
        return code.op(f"{'and' if op is BinOp.MIN else 'or'} {kind} {a}, {b}")
    sign = "s" if dtype.kind == "int" else "u"
    name = f"llvm.{sign}{op.value}.{suffix(kind)}"
    return code.call(kind, name, [(kind, a), (kind, b)])


def _shift(code: Code, op: BinOp, dtype: DType, a: str, b: str, constant: int | None) -> str:
    """A shift by as many bits as there are, or more, shifts all of them out."""
    kind, lanes = register_type(dtype), dtype.lanes
    word = "shl" if op is BinOp.SHL else "ashr" if dtype.kind == "int" else "lshr"
    if constant is not None and 0 <= constant < dtype.bits:
        return code.op(f"{word} {kind} {a}, {b}")
    if word == "ashr":
        most = splat_int(dtype.bits - 1, dtype)
        amount = code.call(kind, f"llvm.umin.{suffix(kind)}", [(kind, b), (kind, most)])
        return code.op(f"ashr {kind} {a}, {amount}")
    fits = code.op(f"icmp ult {kind} {b}, {splat_int(dtype.bits, dtype)}")
    amount = select(code, fits, b, zero(dtype), kind, lanes)
    shifted = code.op(f"{word} {kind} {a}, {amount}")
    return select(code, fits, shifted, zero(dtype), kind, lanes)


def _divide_by_constant(code: Code, op: BinOp, dtype: DType, a: str, divisor: int) -> str:
    kind = register_type(dtype)
    if divisor > 0 and divisor & (divisor - 1) == 0:
        # The floor of a division by a power of two is a shift, for negative numbers too.
        if op is BinOp.MOD:
            return code.op(f"and {kind} {a}, {splat_int(divisor - 1, dtype)}")
        word = "ashr" if dtype.kind == "int" else "lshr"
        return code.op(f"{word} {kind} {a}, {splat_int(divisor.bit_length() - 1, dtype)}")
    return _floor_divide(code, op, dtype, a, splat_int(divisor, dtype))


def _divide(code: Code, op: BinOp, dtype: DType, a: str, b: str) -> str:
    """Division by a divisor that may be 0, which gives 0, or -1, which may overflow and wraps."""
    kind, lanes = register_type(dtype), dtype.lanes
    by_zero = code.op(f"icmp eq {kind} {b}, {zero(dtype)}")
    if dtype.kind == "uint":
        safe = select(code, by_zero, splat_int(1, dtype), b, kind, lanes)
        result = _floor_divide(code, op, dtype, a, safe, is_known=False)
        return select(code, by_zero, zero(dtype), result, kind, lanes)
    by_minus = code.op(f"icmp eq {kind} {b}, {splat_int(-1, dtype)}")
    either = code.op(f"or {register_type(DType('bool').with_lanes(lanes))} {by_zero}, {by_minus}")
    safe = select(code, either, splat_int(1, dtype), b, kind, lanes)
    result = _floor_divide(code, op, dtype, a, safe, is_known=False)
    if op is BinOp.MOD:
        # The remainder by the 1 that stands in for 0 and -1 is 0 already.
        return result
    negated = code.op(f"sub {kind} {zero(dtype)}, {a}")
    signed = select(code, by_minus, negated, result, kind, lanes)
    return select(code, by_zero, zero(dtype), signed, kind, lanes)


def _floor_divide(
    code: Code, op: BinOp, dtype: DType, a: str, b: str, *, is_known: bool = True
) -> str:
    """Floor division or modulo by a divisor that is neither 0 nor -1."""
    kind, lanes = register_type(dtype), dtype.lanes
    by_floats = not is_known and lanes > 1 and dtype.bits < 64
    if dtype.kind == "uint" and not by_floats:
        return code.op(f"{'urem' if op is BinOp.MOD else 'udiv'} {kind} {a}, {b}")
    if by_floats:
        quotient = _quotient_of_floats(code, dtype, a, b)
        if dtype.kind == "uint" and op is not BinOp.MOD:
            return quotient
    else:
        quotient = code.op(f"sdiv {kind} {a}, {b}")
    product = code.op(f"mul {kind} {quotient}, {b}")
    rest = code.op(f"sub {kind} {a}, {product}")
    if dtype.kind == "uint":
        return rest
    inexact = code.op(f"icmp ne {kind} {rest}, {zero(dtype)}")
    mixed = code.op(f"xor {kind} {rest}, {b}")
    opposite = code.op(f"icmp slt {kind} {mixed}, {zero(dtype)}")
    mask = register_type(DType("bool").with_lanes(lanes))
    down = code.op(f"and {mask} {inexact}, {opposite}")
    if op is BinOp.MOD:
        lifted = code.op(f"add {kind} {rest}, {b}")
        return select(code, down, lifted, rest, kind, lanes)
    lower = code.op(f"sub {kind} {quotient}, {splat_int(1, dtype)}")
    return select(code, down, lower, quotient, kind, lanes)


def _quotient_of_floats(code: Code, dtype: DType, a: str, b: str) -> str:
    """The quotient of vectors without its fraction.

    No processor divides vectors of integers: each lane would be taken out and put back. Floats with
    more digits than both operands never round a quotient up to the next integer.
    """
    kind, lanes = register_type(dtype), dtype.lanes
    wide = vector_of("float" if dtype.bits < 32 else "double", lanes)
    whole = vector_of("i32", lanes)
    sign = "s" if dtype.kind == "int" else "u"
    x, y = (code.op(f"{sign}itofp {kind} {operand} to {wide}") for operand in (a, b))
    ratio = code.op(f"fdiv {wide} {x}, {y}")
    if dtype.bits == 32:
        return code.op(f"fpto{sign}i {wide} {ratio} to {whole}")
    quotient = code.op(f"fptosi {wide} {ratio} to {whole}")
    return code.op(f"trunc {whole} {quotient} to {kind}")
