"""Operators, comparisons, dtype conversions and math calls with Python semantics."""

from __future__ import annotations

from collections.abc import Container, Sequence

from tecomp.codegen.llvm.ir_builder import (
    FunctionBuilder,
    literal,
    register_type,
    splat,
    suffix,
    vector_of,
    zero,
)
from tecomp.codegen.math.minifloat import decode_minifloat, encode_minifloat
from tecomp.codegen.math.registry import emit_formula, has_formula
from tecomp.errors import InternalError
from tecomp.ir.extern.registry import CallSignature, NumberType
from tecomp.ir.nodes.dtype import FLOAT32, INT64, DType
from tecomp.ir.nodes.expr import Binary, BinOp, CmpOp, Const, Expr, Var, integer_range
from tecomp.ir.nodes.stmt import CallingConvention
from tecomp.operations.element_types import element_type


def is_narrow(dtype: DType) -> bool:
    """Return whether arithmetic on `dtype` uses float32 with rounding after every operation."""
    return dtype.is_float and dtype.bits <= 16


def wide_type(dtype: DType) -> DType:
    """Return the dtype in which arithmetic on `dtype` is computed."""
    return FLOAT32.with_lanes(dtype.lanes) if is_narrow(dtype) else dtype


def widen(code: FunctionBuilder, value: str, dtype: DType) -> str:
    """Convert `value` to the dtype in which arithmetic on `dtype` is computed."""
    if not is_narrow(dtype):
        return value
    wide = register_type(wide_type(dtype))
    if dtype.kind == "float":
        return code.op(f"fpext {register_type(dtype)} {value} to {wide}")
    if dtype.kind == "minifloat":
        return decode_minifloat(code, value, element_type(dtype.scalar), dtype.lanes)
    bits = vector_of("i32", dtype.lanes)
    extended = code.op(f"zext {register_type(dtype)} {value} to {bits}")
    shifted = code.op(f"shl {bits} {extended}, {splat('16', 'i32', dtype.lanes)}")
    return code.op(f"bitcast {bits} {shifted} to {wide}")


def narrow(code: FunctionBuilder, value: str, dtype: DType) -> str:
    """Round `value` from `wide_type(dtype)` to `dtype`."""
    if not is_narrow(dtype):
        return value
    wide = register_type(wide_type(dtype))
    if dtype.kind == "float":
        return code.op(f"fptrunc {wide} {value} to {register_type(dtype)}")
    if dtype.kind == "minifloat":
        return encode_minifloat(code, value, element_type(dtype.scalar), dtype.lanes)
    return _round_to_bfloat(code, value, dtype.lanes)


def _round_to_bfloat(code: FunctionBuilder, value: str, lanes: int) -> str:
    """Round a float32 to bfloat16 bits, ties to even; NaN is preserved."""
    wide, bits = vector_of("float", lanes), vector_of("i32", lanes)

    def each(number: int) -> str:
        return splat(str(number), "i32", lanes)

    raw = code.op(f"bitcast {wide} {value} to {bits}")
    upper = code.op(f"lshr {bits} {raw}, {each(16)}")
    odd = code.op(f"and {bits} {upper}, {each(1)}")
    bias = code.op(f"add {bits} {odd}, {each(0x7FFF)}")
    rounded = code.op(f"add {bits} {raw}, {bias}")
    truncated = code.op(f"lshr {bits} {rounded}, {each(16)}")
    quiet = code.op(f"or {bits} {upper}, {each(0x7FC0)}")
    nan = code.op(f"fcmp uno {wide} {value}, {value}")
    chosen = select(code, nan, quiet, truncated, bits, lanes)
    return code.op(f"trunc {bits} {chosen} to {vector_of('i16', lanes)}")


def select(code: FunctionBuilder, condition: str, a: str, b: str, kind: str, lanes: int) -> str:
    """Select `a` where `condition` holds, else `b`; all have `lanes` lanes."""
    return code.op(f"select {vector_of('i1', lanes)} {condition}, {kind} {a}, {kind} {b}")


def cast(code: FunctionBuilder, value: str, source: DType, target: DType) -> str:
    """Convert `value` from dtype `source` to `target` with the same lane count."""
    if source == target:
        return value
    if target.is_bool:
        return _to_bool(code, value, source)
    if source.is_float and target.is_float:
        return _float_to_float(code, value, source, target)
    if source.is_float:
        return _float_to_int(code, value, source, target)
    if target.is_float:
        opcode = "sitofp" if source.kind == "int" else "uitofp"
        wide = wide_type(target)
        raw = code.op(f"{opcode} {register_type(source)} {value} to {register_type(wide)}")
        return narrow(code, raw, target)
    return _int_to_int(code, value, source, target)


def _to_bool(code: FunctionBuilder, value: str, source: DType) -> str:
    if source.is_float:
        wide = wide_type(source)
        zero = splat(literal(0.0, wide.scalar), register_type(wide.scalar), wide.lanes)
        return code.op(f"fcmp une {register_type(wide)} {widen(code, value, source)}, {zero}")
    return code.op(f"icmp ne {register_type(source)} {value}, {splat_int(0, source)}")


def splat_int(number: int, dtype: DType) -> str:
    """Return the literal with `number` in each lane of an integer dtype."""
    return splat(str(number), register_type(dtype.scalar), dtype.lanes)


def _int_to_int(code: FunctionBuilder, value: str, source: DType, target: DType) -> str:
    if source.bits == target.bits:
        return value
    wider = "sext" if source.kind == "int" else "zext"
    opcode = "trunc" if source.bits > target.bits else wider
    return code.op(f"{opcode} {register_type(source)} {value} to {register_type(target)}")


def _float_to_int(code: FunctionBuilder, value: str, source: DType, target: DType) -> str:
    """Emit a saturating conversion with comparisons and selects; NaN gives 0.

    The saturating intrinsic of LLVM scalarizes vectors. If the largest integer of the target is not
    representable in the source dtype, values above are treated as 0 (as NaN) and replaced at the
    end.
    """
    wide, lanes = wide_type(source), source.lanes
    kind, result = register_type(wide), register_type(target)
    low, high = integer_range(target)
    is_exact = high < 1 << (53 if wide.bits == 64 else 24)
    lower, upper = (
        splat(literal(float(bound), wide.scalar), register_type(wide.scalar), lanes)
        for bound in (low, high if is_exact else high + 1)
    )
    number = widen(code, value, source)
    # Ordered comparisons with NaN are false.
    test = f"ord {kind} {number}, {number}" if is_exact else f"olt {kind} {number}, {upper}"
    safe = select(code, code.op(f"fcmp {test}"), number, zero(wide), kind, lanes)
    is_above = code.op(f"fcmp olt {kind} {lower}, {safe}")
    safe = select(code, is_above, safe, lower, kind, lanes)
    if is_exact:
        is_below = code.op(f"fcmp olt {kind} {safe}, {upper}")
        safe = select(code, is_below, safe, upper, kind, lanes)
    # CPUs convert vectors to 32 bits or more; narrower results are truncated.
    step = target if target.bits >= 32 else DType("int32").with_lanes(lanes)
    opcode = "fptosi" if step.kind == "int" else "fptoui"
    integer = code.op(f"{opcode} {kind} {safe} to {register_type(step)}")
    integer = _int_to_int(code, integer, step, target)
    if is_exact:
        return integer
    overflows = code.op(f"fcmp oge {kind} {number}, {upper}")
    return select(code, overflows, splat_int(high, target), integer, result, lanes)


def _float_to_float(code: FunctionBuilder, value: str, source: DType, target: DType) -> str:
    if source.bits == 64 and is_narrow(target):
        single = FLOAT32.with_lanes(source.lanes)
        if target.kind == "float":
            return narrow(code, _round_to_odd(code, value, source.lanes), target)
        return narrow(code, _float_to_float(code, value, source, single), target)
    wide = widen(code, value, source)
    start, stop = wide_type(source), wide_type(target)
    if start.bits != stop.bits:
        opcode = "fpext" if start.bits < stop.bits else "fptrunc"
        wide = code.op(f"{opcode} {register_type(start)} {wide} to {register_type(stop)}")
    return narrow(code, wide, target)


def _round_to_odd(code: FunctionBuilder, value: str, lanes: int) -> str:
    """Round a float64 to float32 with round-to-odd, which makes a second rounding exact.

    Source:
        S. Boldo, G. Melquiond, "Emulation of FMA and correctly rounded sums: proved algorithms
        using rounding to odd", IEEE Transactions on Computers 57(4), 2008, theorem 2.
    """
    double, single = vector_of("double", lanes), vector_of("float", lanes)
    bits = vector_of("i32", lanes)
    rounded = code.op(f"fptrunc {double} {value} to {single}")
    widened = code.op(f"fpext {single} {rounded} to {double}")
    size = code.call(double, f"llvm.fabs.{suffix(double)}", [(double, value)])
    size_back = code.call(double, f"llvm.fabs.{suffix(double)}", [(double, widened)])
    raw = code.op(f"bitcast {single} {rounded} to {bits}")
    is_larger = code.op(f"fcmp ogt {double} {size_back}, {size}")
    step = code.op(f"zext {vector_of('i1', lanes)} {is_larger} to {bits}")
    truncated = code.op(f"sub {bits} {raw}, {step}")
    inexact = code.op(f"fcmp one {double} {widened}, {value}")
    sticky = code.op(f"zext {vector_of('i1', lanes)} {inexact} to {bits}")
    odd = code.op(f"or {bits} {truncated}, {sticky}")
    return code.op(f"bitcast {bits} {odd} to {single}")


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


def compare(code: FunctionBuilder, op: CmpOp, dtype: DType, a: str, b: str) -> str:
    """Emit the comparison `a op b` in `dtype`; with NaN it is false, except `!=`."""
    if dtype.is_float:
        wide = register_type(wide_type(dtype))
        x, y = widen(code, a, dtype), widen(code, b, dtype)
        return code.op(f"fcmp {_ORDERED[op]} {wide} {x}, {y}")
    if op in (CmpOp.EQ, CmpOp.NE):
        predicate = "eq" if op is CmpOp.EQ else "ne"
    else:
        predicate = (_SIGNED if dtype.kind == "int" else _UNSIGNED)[op]
    return code.op(f"icmp {predicate} {register_type(dtype)} {a}, {b}")


def binary(code: FunctionBuilder, op: BinOp, dtype: DType, a: str, b: str, constant: int
        | None) -> str:
    """Emit `a op b` in `dtype`; `constant` is the value of `b` if it is an integer literal."""
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


def _float_binary(code: FunctionBuilder, op: BinOp, dtype: DType, a: str, b: str) -> str:
    kind, flags = register_type(dtype), code.module.options.flags
    if op in _FLOAT:
        if op is BinOp.DIV and not code.module.options.fast_math:
            flags = ""
        return code.op(f"{_FLOAT[op]} {flags}{kind} {a}, {b}")
    if op in (BinOp.MIN, BinOp.MAX):
        if code.module.options.fast_math:
            # One instruction instead of three for `minimum`; NaN and a number give either.
            name = "olt" if op is BinOp.MIN else "ogt"
            first = code.op(f"fcmp {name} {kind} {a}, {b}")
            return select(code, first, a, b, kind, dtype.lanes)
        name = "minimum" if op is BinOp.MIN else "maximum"
        target = code.module.declare(kind, f"llvm.{name}.{suffix(kind)}", [kind, kind])
        # The sign of a zero result is also unspecified in NumPy; `nsz` saves instructions.
        return code.op(f"call nsz {kind} {target}({kind} {a}, {kind} {b})")
    return _float_floor(code, op, dtype, a, b)


def _float_floor(code: FunctionBuilder, op: BinOp, dtype: DType, a: str, b: str) -> str:
    """Emit floor division or modulo of floats; a zero divisor gives the result of `/` or `fmod`.

    Source:
        `npy_divmod` of NumPy 2.4, numpy/_core/src/npymath/npy_math_internal.h.src.
    """
    kind, lanes = register_type(dtype), dtype.lanes
    sign = f"llvm.copysign.{suffix(kind)}"
    none, one, half = (
        splat(literal(x, dtype.scalar), register_type(dtype.scalar), lanes) for x in (0.0, 1.0, 0.5)
    )
    remainder = emit_formula(code, "fmod", dtype, (a, b))
    by_zero = code.op(f"fcmp oeq {kind} {b}, {none}")
    exact = code.op(f"fcmp oeq {kind} {remainder}, {none}")
    low_rest = code.op(f"fcmp olt {kind} {remainder}, {none}")
    low_divisor = code.op(f"fcmp olt {kind} {b}, {none}")
    mask = register_type(DType("bool").with_lanes(lanes))
    differ = code.op(f"xor {mask} {low_rest}, {low_divisor}")
    inexact = code.op(f"xor {mask} {exact}, {splat('true', 'i1', lanes)}")
    adjusts = code.op(f"and {mask} {differ}, {inexact}")
    if op is BinOp.MOD:
        shifted = code.op(f"fadd {kind} {remainder}, {b}")
        signed = code.call(kind, sign, [(kind, none), (kind, b)])
        modulo = select(code, exact, signed, remainder, kind, lanes)
        result = select(code, adjusts, shifted, modulo, kind, lanes)
        return select(code, by_zero, remainder, result, kind, lanes)
    dividend = code.op(f"fsub {kind} {a}, {remainder}")
    quotient = code.op(f"fdiv {kind} {dividend}, {b}")
    lower = code.op(f"fsub {kind} {quotient}, {one}")
    quotient = select(code, adjusts, lower, quotient, kind, lanes)
    floor = code.call(kind, f"llvm.floor.{suffix(kind)}", [(kind, quotient)])
    gap = code.op(f"fsub {kind} {quotient}, {floor}")
    rounds_up = code.op(f"fcmp ogt {kind} {gap}, {half}")
    upper = code.op(f"fadd {kind} {floor}, {one}")
    nearest = select(code, rounds_up, upper, floor, kind, lanes)
    ratio = code.op(f"fdiv {kind} {a}, {b}")
    is_none = code.op(f"fcmp oeq {kind} {quotient}, {none}")
    signed = code.call(kind, sign, [(kind, none), (kind, ratio)])
    result = select(code, is_none, signed, nearest, kind, lanes)
    return select(code, by_zero, ratio, result, kind, lanes)


def _integer_extreme(code: FunctionBuilder, op: BinOp, dtype: DType, a: str, b: str) -> str:
    kind = register_type(dtype)
    if dtype.is_bool:
        return code.op(f"{'and' if op is BinOp.MIN else 'or'} {kind} {a}, {b}")
    sign = "s" if dtype.kind == "int" else "u"
    name = f"llvm.{sign}{op.value}.{suffix(kind)}"
    return code.call(kind, name, [(kind, a), (kind, b)])


def _shift(code: FunctionBuilder, op: BinOp, dtype: DType, a: str, b: str, constant: int
        | None) -> str:
    """Emit a shift; amounts of at least the bit width shift all bits out."""
    kind, lanes = register_type(dtype), dtype.lanes
    opcode = "shl" if op is BinOp.SHL else "ashr" if dtype.kind == "int" else "lshr"
    if constant is not None and 0 <= constant < dtype.bits:
        return code.op(f"{opcode} {kind} {a}, {b}")
    if opcode == "ashr":
        max_shift = splat_int(dtype.bits - 1, dtype)
        amount = code.call(kind, f"llvm.umin.{suffix(kind)}", [(kind, b), (kind, max_shift)])
        return code.op(f"ashr {kind} {a}, {amount}")
    in_range = code.op(f"icmp ult {kind} {b}, {splat_int(dtype.bits, dtype)}")
    amount = select(code, in_range, b, zero(dtype), kind, lanes)
    shifted = code.op(f"{opcode} {kind} {a}, {amount}")
    return select(code, in_range, shifted, zero(dtype), kind, lanes)


def is_power_of_two(number: int) -> bool:
    """Return whether division by an integer is a shift.

    >>> [n for n in range(-2, 9) if is_power_of_two(n)]
    [1, 2, 4, 8]
    """
    return number > 0 and number & (number - 1) == 0


def _divide_by_constant(
    code: FunctionBuilder, op: BinOp, dtype: DType, a: str, divisor: int
) -> str:
    kind = register_type(dtype)
    if is_power_of_two(divisor):
        # Floor division by a power of two is an arithmetic shift, also for negative numbers.
        if op is BinOp.MOD:
            return code.op(f"and {kind} {a}, {splat_int(divisor - 1, dtype)}")
        opcode = "ashr" if dtype.kind == "int" else "lshr"
        return code.op(f"{opcode} {kind} {a}, {splat_int(divisor.bit_length() - 1, dtype)}")
    return _floor_divide(code, op, dtype, a, splat_int(divisor, dtype))


_VARIABLE_BITS, _INDEX_BITS = 40, 62
"""Assumed bits of a variable that counts iterations or elements, and maximum bits of an index."""


def non_negative_bits(expr: Expr, non_negative: Container[Var]) -> int | None:
    """Return the bits of an int64 index that is known not to be negative; None for others.

    Args:
        expr: Scalar expression.
        non_negative: Variables that are not negative.

    >>> i = Var("i", INT64)
    >>> non_negative_bits((i + 3) // 5, {i}), non_negative_bits(i - 3, {i})
    (39, None)
    """
    if isinstance(expr, Var):
        return _VARIABLE_BITS if expr in non_negative else None
    if isinstance(expr, Const):
        return int(expr.value).bit_length() if expr.dtype == INT64 and expr.value >= 0 else None
    if not isinstance(expr, Binary) or expr.dtype != INT64:
        return None
    a, b = (non_negative_bits(part, non_negative) for part in (expr.a, expr.b))
    if a is None or b is None:
        return None
    match expr.op:
        case BinOp.ADD:
            bits = max(a, b) + 1
        case BinOp.MUL:
            bits = a + b
        case BinOp.FLOORDIV if isinstance(expr.b, Const) and b > 0:
            bits = max(a - b + 1, 0)
        case BinOp.MOD if isinstance(expr.b, Const) and b > 0:
            bits = min(a, b)
        case BinOp.MIN | BinOp.MAX:
            bits = max(a, b)
        case _:
            return None
    return bits if bits <= _INDEX_BITS else None


def divide_unsigned(code: FunctionBuilder, op: BinOp, a: str, divisor: int) -> str:
    """Emit the quotient or remainder of an int64 that is not negative."""
    quotient = code.op(f"udiv i64 {a}, {divisor}")
    if op is BinOp.FLOORDIV:
        return quotient
    product = code.op(f"mul i64 {quotient}, {divisor}")
    return code.op(f"sub i64 {a}, {product}")


def _divide(code: FunctionBuilder, op: BinOp, dtype: DType, a: str, b: str) -> str:
    """Emit division by an unknown divisor: 0 gives 0, and overflow with -1 wraps around."""
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
        # Divisors 0 and -1 were replaced by 1, whose remainder is already 0.
        return result
    negated = code.op(f"sub {kind} {zero(dtype)}, {a}")
    signed = select(code, by_minus, negated, result, kind, lanes)
    return select(code, by_zero, zero(dtype), signed, kind, lanes)


def _floor_divide(
    code: FunctionBuilder, op: BinOp, dtype: DType, a: str, b: str, *, is_known: bool = True
) -> str:
    """Emit floor division or modulo by a divisor that is neither 0 nor -1."""
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
    remainder = code.op(f"sub {kind} {a}, {product}")
    if dtype.kind == "uint":
        return remainder
    inexact = code.op(f"icmp ne {kind} {remainder}, {zero(dtype)}")
    mixed = code.op(f"xor {kind} {remainder}, {b}")
    opposite = code.op(f"icmp slt {kind} {mixed}, {zero(dtype)}")
    mask = register_type(DType("bool").with_lanes(lanes))
    rounds_down = code.op(f"and {mask} {inexact}, {opposite}")
    if op is BinOp.MOD:
        lifted = code.op(f"add {kind} {remainder}, {b}")
        return select(code, rounds_down, lifted, remainder, kind, lanes)
    lower = code.op(f"sub {kind} {quotient}, {splat_int(1, dtype)}")
    return select(code, rounds_down, lower, quotient, kind, lanes)


def _quotient_of_floats(code: FunctionBuilder, dtype: DType, a: str, b: str) -> str:
    """Emit the truncated quotient of integer vectors with floating-point division.

    CPUs have no integer vector division, so LLVM would scalarize it. A float format with more
    precision than both operands never rounds a quotient up to the next integer.
    """
    kind, lanes = register_type(dtype), dtype.lanes
    wide = vector_of("float" if dtype.bits < 32 else "double", lanes)
    int_kind = vector_of("i32", lanes)
    sign = "s" if dtype.kind == "int" else "u"
    x, y = (code.op(f"{sign}itofp {kind} {operand} to {wide}") for operand in (a, b))
    ratio = code.op(f"fdiv {wide} {x}, {y}")
    if dtype.bits == 32:
        return code.op(f"fpto{sign}i {wide} {ratio} to {int_kind}")
    quotient = code.op(f"fptosi {wide} {ratio} to {int_kind}")
    return code.op(f"trunc {int_kind} {quotient} to {kind}")


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
    args = [number_argument(code, dtype, value) for dtype, value in pairs]
    kind = "i8" if result.is_bool else register_type(result)
    declared = ", ".join(arg_kind for arg_kind, _ in args)
    # Attribute group #1 declares the function pure, as for the C math library.
    code.module.declarations.setdefault(f"declare {kind} @{symbol}({declared}) #1")
    arg_text = ", ".join(f"{arg_kind} {value}" for arg_kind, value in args)
    raw = code.op(f"call {kind} @{symbol}({arg_text})")
    return code.op(f"icmp ne i8 {raw}, 0") if result.is_bool else raw
