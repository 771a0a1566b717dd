"""Table of math functions with vector implementations; fmod and integer powers."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from math import inf
from types import ModuleType

from tecomp.codegen.llvm.ir_builder import (
    WIDEST_VECTOR_BYTES,
    FunctionBuilder,
    register_type,
    shuffle_mask,
    vector_of,
)
from tecomp.codegen.math import exp_log, power_float32, power_float64, trigonometric
from tecomp.codegen.math.vector_values import (
    BoolVector,
    FloatVector,
    Formula,
    IntVector,
    call_libm_per_lane,
    call_outlined,
    fix_special_lanes,
    polynomial,
)
from tecomp.ir.nodes.dtype import DType
from tecomp.operations.elementwise import ELEMENTWISE
from tecomp.operations.formulas import Algebra


def power_of_signed(x: IntVector, y: IntVector) -> IntVector:
    """Emit the signed power `x**y` with wrap-around.

    A negative exponent gives the reciprocal rounded towards zero: 0 except for bases 1 and -1.
    A base of 0 gives 0.
    """
    is_negative = _compare(y, "slt", 0)
    # The powers of 1 and -1 depend only on the parity of the exponent, its lowest bit.
    result = _power(x, _select(is_negative, y & 1, y))
    is_unit = _compare(x, "eq", 1) | _compare(x, "eq", -1)
    return _select(is_negative & ~is_unit, x.constant(0), result)


def power_of_unsigned(x: IntVector, y: IntVector) -> IntVector:
    """Emit the unsigned power `x**y` with wrap-around."""
    return _power(x, y)


def _power(x: IntVector, y: IntVector) -> IntVector:
    """Emit x**y by binary exponentiation; y is unsigned."""
    code, kind = x.code, x.kind
    before, loop, after = code.block, code.name("loop"), code.name("after")
    total, square, remaining = (code.name(hint) for hint in ("total", "square", "rest"))
    code.jump(loop)
    code.label(loop)
    next_names = [f"%{code.name('next')}" for _ in range(3)]
    first = (x.constant(1), x, y)
    for name, start, next_value in zip((total, square, remaining), first, next_names, strict=True):
        code.do(f"%{name} = phi {kind} [ {start.operand}, %{before} ], [ {next_value}, %{loop} ]")
    result, factor, bits = (
        IntVector(code, f"%{name}", x.scalar, x.lanes) for name in (total, square, remaining)
    )
    product = result * _select((bits & 1).is_not(0), factor, x.constant(1))
    shifted = bits.unsigned_shift(1)
    for name, value in zip(next_names, (product, factor * factor, shifted), strict=True):
        code.do(f"{name} = add {kind} {value.operand}, {value.like(0)}")
    code.branch(shifted.is_not(0).any(), loop, after)
    code.label(after)
    return product


def _compare(x: IntVector, predicate: str, number: int) -> BoolVector:
    result = x.code.op(f"icmp {predicate} {x.kind} {x.operand}, {x.like(number)}")
    return BoolVector(x.code, result, x.lanes)


def _select(where: BoolVector, a: IntVector, b: IntVector) -> IntVector:
    text = f"select {where.kind} {where.operand}, {a.kind} {a.operand}, {b.kind} {b.operand}"
    return a.emit(text)


def fmod(x: FloatVector, y: FloatVector) -> FloatVector:
    """Emit `x - trunc(x / y) * y` with the sign of `x`; NaN for infinite x and for y = 0.

    Quotients that exceed the precision of float32 are computed in float64, and those that exceed
    the precision of float64 by the C library.
    """
    a, b = abs(x), abs(y)
    ratio = a / b
    remainder = (-ratio.intrinsic("trunc")).intrinsic("fma", b, a)
    remainder = (remainder < 0.0).select(remainder + b, remainder)
    # For infinite y, infinity times 0 would give NaN; the remainder of a finite x is x.
    fast = (b.is_equal(inf) & (a < inf)).select(a, remainder)
    is_special = (ratio > 2.0**x.format.mantissa) & (a < inf) & (b > 0.0)
    formula = _wider if x.scalar == "float" else _by_library
    return abs(fix_special_lanes(fast, is_special, "fmod.far", formula, (a, b))).with_bits(x.sign())


def _wider(a: FloatVector, b: FloatVector) -> FloatVector:
    widened = fmod(a.cast("fpext", "double"), b.cast("fpext", "double"))
    return widened.cast("fptrunc", "float")


def _by_library(a: FloatVector, b: FloatVector) -> FloatVector:
    return call_libm_per_lane("fmod", a, b)


def _formulas(*modules: ModuleType) -> dict[str, Formula]:
    """Return the functions of modules that are called as an intrinsic, by its name."""
    calls = {row.call for row in ELEMENTWISE if row.call}
    return {
        name: value for module in modules for name, value in vars(module).items()
        if name in calls and value.__module__ == module.__name__
    }


class _VectorAlgebra(Algebra):
    """Functions of vectors, for formulas of the table (see `Algebra`)."""

    def is_double(self, x: FloatVector) -> bool:
        return x.scalar == "double"

    def where(self, condition: BoolVector, a: FloatVector, b: FloatVector) -> FloatVector:
        return condition.select(a, b)

    def equal(self, a: FloatVector, b: FloatVector | float) -> BoolVector:
        return a.is_equal(b)

    def polynomial(self, x: FloatVector, coefficients: Sequence[float]) -> FloatVector:
        return polynomial(x, coefficients)

    def constant(self, value: float, x: FloatVector) -> FloatVector:
        return x.constant(value)

    def wide(self, x: FloatVector) -> FloatVector:
        return x if x.scalar == "double" else x.cast("fpext", "double")

    def narrow(self, value: FloatVector, x: FloatVector) -> FloatVector:
        return value if x.scalar == "double" else value.cast("fptrunc", x.scalar)

    def maximum(self, a: FloatVector, b: FloatVector) -> FloatVector:
        return a.intrinsic("maximum", b)

    def minimum(self, a: FloatVector, b: FloatVector) -> FloatVector:
        return a.intrinsic("minimum", b)

    def function(self, name: str, *operands: FloatVector) -> FloatVector:
        x, *others = operands
        formula = _formula(name, x.scalar)
        return call_outlined(name, formula, operands) if formula else x.intrinsic(name, *others)


_FORMULAS: dict[str, Formula] = {
    **_formulas(exp_log, power_float32, trigonometric), "pow": power_float32.power, "fmod": fmod,
    **{
        row.call: partial(row.formula, _VectorAlgebra())
        for row in ELEMENTWISE if row.call and row.formula
    },
}

# Functions with a separate float64 implementation, as float32 uses float64 arithmetic.
_DOUBLE: dict[str, Formula] = {**_formulas(power_float64), "pow": power_float64.power}

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
    full = vector_of(scalar, dtype.lanes)
    joined = "poison"
    for start in range(0, dtype.lanes, widest):
        count = min(widest, dtype.lanes - start)
        lanes = 1 << (count - 1).bit_length()
        kind = vector_of(scalar, lanes)
        cut = [_lanes_of(code, full, arg, dtype.lanes, start, count, lanes) for arg in args]
        part = _piece(code, name, dtype.kind, scalar, lanes, cut)
        if lanes == 1:
            joined = code.op(f"insertelement {full} {joined}, {scalar} {part}, i64 {start}")
            continue
        lane_map = [min(max(k - start, 0), lanes - 1) for k in range(dtype.lanes)]
        part = code.op(f"shufflevector {kind} {part}, {kind} poison, {shuffle_mask(lane_map)}")
        chosen = [k + dtype.lanes * (start <= k < start + count) for k in range(dtype.lanes)]
        joined = code.op(f"shufflevector {full} {joined}, {full} {part}, {shuffle_mask(chosen)}")
    return joined


def _lanes_of(
    code: FunctionBuilder, kind: str, value: str, in_lanes: int, start: int, count: int, lanes: int
) -> str:
    """Extract `count` lanes from `start` on, padded with zeros up to `lanes`."""
    if lanes == 1:
        return code.op(f"extractelement {kind} {value}, i64 {start}")
    mask = [start + k if k < count else in_lanes for k in range(lanes)]
    return code.op(f"shufflevector {kind} {value}, {kind} zeroinitializer, {shuffle_mask(mask)}")


def _piece(
    code: FunctionBuilder, name: str, numbers: str, scalar: str, lanes: int, args: Sequence[str]
) -> str:
    if numbers in _POWERS:
        integers = tuple(IntVector(code, arg, scalar, lanes) for arg in args)
        return call_outlined(f"{name}.{numbers}", _POWERS[numbers], integers).operand
    values = tuple(FloatVector(code, arg, scalar, lanes) for arg in args)
    formula = _formula(name, scalar)
    assert formula is not None, f"{name} has no formula"
    return call_outlined(name, formula, values).operand


def _formula(name: str, scalar: str) -> Formula | None:
    """Return the formula of an intrinsic, if it has one."""
    double = _DOUBLE.get(name) if scalar == "double" else None
    return double or _FORMULAS.get(name)
