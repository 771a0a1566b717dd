"""Vector values with overloaded operators, and out-of-line helper functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias, TypeVar

from tecomp.codegen.llvm.ir_builder import (
    FunctionBuilder,
    LlvmFunction,
    begin_if,
    end_if,
    literal,
    splat,
    suffix,
    vector_of,
)
from tecomp.ir.nodes.dtype import DType
from tecomp.operations.element_types import ELEMENT_TYPES

_BITS = {"float": 32, "double": 64, **{f"i{row.bits}": row.bits for row in ELEMENT_TYPES}}


@dataclass(frozen=True, slots=True)
class FloatFormat:
    """Floating-point format: `mantissa` stored bits, and above them the exponent with `bias`."""

    mantissa: int
    bias: int

    @property
    def rounder(self) -> float:
        """Constant whose addition leaves the nearest integer in the lowest bits."""
        return 1.5 * 2.0**self.mantissa

    @property
    def tiny(self) -> float:
        """Smallest positive normal number."""
        return 2.0 ** (1 - self.bias)


FORMATS = {"float": FloatFormat(23, 127), "double": FloatFormat(52, 1023)}


@dataclass(frozen=True, slots=True, eq=False)
class BoolVector:
    """Boolean vector."""

    code: FunctionBuilder
    operand: str
    lanes: int

    @property
    def kind(self) -> str:
        """LLVM type."""
        return vector_of("i1", self.lanes)

    def _with(self, text: str) -> BoolVector:
        return BoolVector(self.code, self.code.op(text), self.lanes)

    def __and__(self, other: BoolVector) -> BoolVector:
        return self._with(f"and {self.kind} {self.operand}, {other.operand}")

    def __or__(self, other: BoolVector) -> BoolVector:
        return self._with(f"or {self.kind} {self.operand}, {other.operand}")

    def __xor__(self, other: BoolVector) -> BoolVector:
        return self._with(f"xor {self.kind} {self.operand}, {other.operand}")

    def __invert__(self) -> BoolVector:
        return self._with(f"xor {self.kind} {self.operand}, {splat('true', 'i1', self.lanes)}")

    def any(self) -> str:
        """Emit whether the condition holds in any lane, as one `i1`."""
        if self.lanes == 1:
            return self.operand
        name = f"llvm.vector.reduce.or.{suffix(self.kind)}"
        return self.code.call("i1", name, [(self.kind, self.operand)])

    def select(self, a: FloatVector, b: FloatVector | float) -> FloatVector:
        """Select `a` where the condition holds, else `b`."""
        other = a.like(b)
        texts = (f"{self.kind} {self.operand}", f"{a.kind} {a.operand}", f"{a.kind} {other}")
        return a.emit(f"select {', '.join(texts)}")


@dataclass(frozen=True, slots=True, eq=False)
class IntVector:
    """Integer vector; `>>` and comparisons are signed."""

    code: FunctionBuilder
    operand: str
    scalar: str
    lanes: int

    @property
    def kind(self) -> str:
        """LLVM type."""
        return vector_of(self.scalar, self.lanes)

    def like(self, value: IntVector | int) -> str:
        """Return the operand of `value`; a number is broadcast to all lanes."""
        if isinstance(value, IntVector):
            return value.operand
        bits = _BITS[self.scalar]
        signed = (value + (1 << bits - 1)) % (1 << bits) - (1 << bits - 1)
        return splat(str(signed), self.scalar, self.lanes)

    def constant(self, value: int) -> IntVector:
        """Return a vector with one number in every lane."""
        return IntVector(self.code, self.like(value), self.scalar, self.lanes)

    def emit(self, text: str) -> IntVector:
        """Emit an instruction whose result has the type of this vector."""
        return IntVector(self.code, self.code.op(text), self.scalar, self.lanes)

    def _with(self, op: str, other: IntVector | int) -> IntVector:
        return self.emit(f"{op} {self.kind} {self.operand}, {self.like(other)}")

    def __add__(self, other: IntVector | int) -> IntVector:
        return self._with("add", other)

    def __sub__(self, other: IntVector | int) -> IntVector:
        return self._with("sub", other)

    def __rsub__(self, other: int) -> IntVector:
        return IntVector(self.code, self.like(other), self.scalar, self.lanes) - self

    def __mul__(self, other: IntVector | int) -> IntVector:
        return self._with("mul", other)

    def __and__(self, other: IntVector | int) -> IntVector:
        return self._with("and", other)

    def __or__(self, other: IntVector | int) -> IntVector:
        return self._with("or", other)

    def __xor__(self, other: IntVector | int) -> IntVector:
        return self._with("xor", other)

    def __lshift__(self, other: IntVector | int) -> IntVector:
        return self._with("shl", other)

    def __rshift__(self, other: IntVector | int) -> IntVector:
        return self._with("ashr", other)

    def unsigned_shift(self, other: int) -> IntVector:
        """Shift right logically."""
        return self._with("lshr", other)

    def is_not(self, number: int) -> BoolVector:
        """Compare with a number for inequality."""
        text = f"icmp ne {self.kind} {self.operand}, {self.like(number)}"
        return BoolVector(self.code, self.code.op(text), self.lanes)

    def cast(self, op: str, scalar: str) -> IntVector:
        """Extend (`zext`, `sext`) or truncate (`trunc`) to another width."""
        kind = vector_of(scalar, self.lanes)
        result = self.code.op(f"{op} {self.kind} {self.operand} to {kind}")
        return IntVector(self.code, result, scalar, self.lanes)

    def real(self) -> FloatVector:
        """Reinterpret the bits as floating-point numbers."""
        return self._to("bitcast")

    def number(self) -> FloatVector:
        """Convert to floating point."""
        return self._to("sitofp")

    def _to(self, op: str) -> FloatVector:
        scalar = {32: "float", 64: "double"}[_BITS[self.scalar]]
        kind = vector_of(scalar, self.lanes)
        result = self.code.op(f"{op} {self.kind} {self.operand} to {kind}")
        return FloatVector(self.code, result, scalar, self.lanes)


@dataclass(frozen=True, slots=True, eq=False)
class FloatVector:
    """Floating-point vector; comparisons with NaN are false."""

    code: FunctionBuilder
    operand: str
    scalar: str
    lanes: int

    @property
    def kind(self) -> str:
        """LLVM type."""
        return vector_of(self.scalar, self.lanes)

    @property
    def format(self) -> FloatFormat:
        """Floating-point format of the elements."""
        return FORMATS[self.scalar]

    @property
    def sign_place(self) -> int:
        """Position of the sign bit."""
        return self._bits - 1

    @property
    def _bits(self) -> int:
        return _BITS[self.scalar]

    def like(self, value: FloatVector | float) -> str:
        """Return the operand of `value`; a number is broadcast to all lanes."""
        if isinstance(value, FloatVector):
            return value.operand
        return splat(literal(value, DType(f"float{self._bits}")), self.scalar, self.lanes)

    def constant(self, value: float) -> FloatVector:
        """Return a vector with one number in every lane."""
        return FloatVector(self.code, self.like(value), self.scalar, self.lanes)

    def emit(self, text: str) -> FloatVector:
        """Emit an instruction whose result has the type of this vector."""
        return FloatVector(self.code, self.code.op(text), self.scalar, self.lanes)

    def __add__(self, other: FloatVector | float) -> FloatVector:
        return self.emit(f"fadd {self.kind} {self.operand}, {self.like(other)}")

    def __sub__(self, other: FloatVector | float) -> FloatVector:
        return self.emit(f"fsub {self.kind} {self.operand}, {self.like(other)}")

    def __mul__(self, other: FloatVector | float) -> FloatVector:
        return self.emit(f"fmul {self.kind} {self.operand}, {self.like(other)}")

    def __truediv__(self, other: FloatVector | float) -> FloatVector:
        return self.emit(f"fdiv {self.kind} {self.operand}, {self.like(other)}")

    def __radd__(self, other: float) -> FloatVector:
        return self + other

    def __rmul__(self, other: float) -> FloatVector:
        return self * other

    def __rsub__(self, other: float) -> FloatVector:
        return self.constant(other) - self

    def __rtruediv__(self, other: float) -> FloatVector:
        return self.constant(other) / self

    def __neg__(self) -> FloatVector:
        return self.emit(f"fneg {self.kind} {self.operand}")

    def __abs__(self) -> FloatVector:
        return self.intrinsic("fabs")

    def __lt__(self, other: FloatVector | float) -> BoolVector:
        return self._compare("olt", other)

    def __gt__(self, other: FloatVector | float) -> BoolVector:
        return self._compare("ogt", other)

    def __le__(self, other: FloatVector | float) -> BoolVector:
        return self._compare("ole", other)

    def is_equal(self, other: FloatVector | float) -> BoolVector:
        """Compare for equality; False for NaN."""
        return self._compare("oeq", other)

    def is_nan(self) -> BoolVector:
        """Test for NaN."""
        return self._compare("uno", self)

    def _compare(self, predicate: str, other: FloatVector | float) -> BoolVector:
        text = f"fcmp {predicate} {self.kind} {self.operand}, {self.like(other)}"
        return BoolVector(self.code, self.code.op(text), self.lanes)

    def intrinsic(self, name: str, *others: FloatVector) -> FloatVector:
        """Emit an LLVM intrinsic such as fabs, sqrt, trunc, floor or fma."""
        values = [(self.kind, value.operand) for value in (self, *others)]
        result = self.code.call(self.kind, f"llvm.{name}.{suffix(self.kind)}", values)
        return FloatVector(self.code, result, self.scalar, self.lanes)

    def at_most(self, bound: float) -> FloatVector:
        """Return the minimum with a constant, one `minps` on x86; NaN is preserved."""
        return (self.constant(bound) < self).select(self.constant(bound), self)

    def at_least(self, bound: float) -> FloatVector:
        """Return the maximum with a constant; NaN is preserved."""
        return (self.constant(bound) > self).select(self.constant(bound), self)

    def bits(self) -> IntVector:
        """Reinterpret the bits as integers."""
        scalar = f"i{self._bits}"
        kind = vector_of(scalar, self.lanes)
        result = self.code.op(f"bitcast {self.kind} {self.operand} to {kind}")
        return IntVector(self.code, result, scalar, self.lanes)

    def sign(self) -> IntVector:
        """Return the sign bit in place, all other bits zero."""
        return self.bits() & 1 << self._bits - 1

    def with_bits(self, bits: IntVector) -> FloatVector:
        """Set additional bits, for example the sign of a nonnegative number."""
        return (self.bits() | bits).real()

    def flipped(self, sign: IntVector) -> FloatVector:
        """Negate where the sign bit of `sign` is set."""
        return (self.bits() ^ sign).real()

    def cast(self, op: str, scalar: str) -> FloatVector:
        """Convert to the other precision (`fpext`, `fptrunc`)."""
        result = self.code.op(f"{op} {self.kind} {self.operand} to {vector_of(scalar, self.lanes)}")
        return FloatVector(self.code, result, scalar, self.lanes)


Coefficients: TypeAlias = Sequence[float]


def fma(a: FloatVector, b: FloatVector | float, c: FloatVector | float) -> FloatVector:
    """Emit `a * b + c`, fused if the machine supports FMA."""
    values = [(a.kind, operand) for operand in (a.operand, a.like(b), a.like(c))]
    result = a.code.call(a.kind, f"llvm.fmuladd.{suffix(a.kind)}", values)
    return FloatVector(a.code, result, a.scalar, a.lanes)


def polynomial(x: FloatVector, coefficients: Coefficients, *, group: int = 2) -> FloatVector:
    """Emit the polynomial with the sum of `coefficients[k] * x**k`.

    With `by=2`, Horner's rule in x**2 halves the length of the dependence chain. `by=4` shortens it
    further for polynomials on the critical path, with a slightly larger error.
    """
    if len(coefficients) < 4:
        return _horner(x, coefficients)
    square = x * x
    parts = [_horner(x, coefficients[k : k + 2]) for k in range(0, len(coefficients), 2)]
    if group == 4:
        parts = [_horner(square, parts[k : k + 2]) for k in range(0, len(parts), 2)]
        square = square * square
    total = parts.pop()
    while parts:
        total = fma(total, square, parts.pop())
    return total


def _horner(x: FloatVector, coefficients: Sequence[FloatVector | float]) -> FloatVector:
    last = coefficients[-1]
    total = last if isinstance(last, FloatVector) else x.constant(last)
    for coefficient in reversed(coefficients[:-1]):
        total = fma(total, x, coefficient)
    return total


Formula: TypeAlias = Callable[..., FloatVector]
Numbers = TypeVar("Numbers", FloatVector, IntVector)
_RARE = "noinline cold"


def fix_special_lanes(
    fast: FloatVector, is_special: BoolVector, name: str, formula: Formula,
    arguments: tuple[FloatVector, ...]
) -> FloatVector:
    """Replace `fast` by `formula(*arguments)` in the lanes where `is_special` holds.

    The formula is an out-of-line function that is called only if there is such a lane.
    """
    code = fast.code
    guard = begin_if(code, is_special.any())
    special = _call(name, formula, arguments, is_rare=True)
    mixed = is_special.select(special, fast)
    joined = end_if(code, guard, mixed.operand, fast.kind, fast.operand)
    return FloatVector(code, joined, fast.scalar, fast.lanes)


def call_outlined(
    name: str, formula: Callable[..., Numbers], arguments: tuple[Numbers, ...]
) -> Numbers:
    """Emit a call of a helper function for `formula`, shared by all calls with this name."""
    return _call(name, formula, arguments, is_rare=False)


def _call(
    name: str, formula: Callable[..., Numbers], arguments: tuple[Numbers, ...], *, is_rare: bool
) -> Numbers:
    first = arguments[0]
    module, symbol = first.code.module, f"tecomp.{name}.{suffix(first.kind)}"
    if symbol not in module.functions:
        helper = _helper(symbol, formula, arguments)
        module.add(replace(helper, is_helper=not is_rare, attributes=_RARE if is_rare else ""))
    module.calls[symbol] += 1
    operands = ", ".join(f"{value.kind} {value.operand}" for value in arguments)
    return first.emit(f"call {first.kind} @{symbol}({operands})")


def _helper(
    symbol: str, formula: Callable[..., Numbers], arguments: tuple[Numbers, ...]
) -> LlvmFunction:
    first = arguments[0]
    code = FunctionBuilder(first.code.module, {})
    inside = []
    for k, value in enumerate(arguments):
        code.name(f"x{k}")
        inside.append(replace(value, code=code, operand=f"%x{k}"))
    code.do(f"ret {first.kind} {formula(*inside).operand}")
    parameters = ", ".join(f"{value.kind} {value.operand}" for value in inside)
    return code.function(f"internal {first.kind}", symbol, parameters)


def call_libm_per_lane(name: str, *arguments: FloatVector) -> FloatVector:
    """Emit calls of the scalar C library function `name` for each lane."""
    x, code = arguments[0], arguments[0].code
    symbol = name if x.scalar == "double" else f"{name}f"
    if x.lanes == 1:
        single = code.call(x.scalar, symbol, [(x.scalar, value.operand) for value in arguments])
        return FloatVector(code, single, x.scalar, 1)
    result = "poison"
    for lane in range(x.lanes):
        values = [
            code.op(f"extractelement {x.kind} {value.operand}, i64 {lane}") for value in arguments
        ]
        single = code.call(x.scalar, symbol, [(x.scalar, value) for value in values])
        result = code.op(f"insertelement {x.kind} {result}, {x.scalar} {single}, i64 {lane}")
    return FloatVector(code, result, x.scalar, x.lanes)
