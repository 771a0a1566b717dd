"""Builder of LLVM IR text: modules, functions, blocks, types and literals."""

from __future__ import annotations

import re
import struct
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum, auto
from functools import cache
from typing import Any

import numpy as np

from tecomp.caches import memoize
from tecomp.errors import InternalError
from tecomp.ir.extern.registry import CallSignature
from tecomp.ir.nodes.dtype import DType
from tecomp.ir.nodes.expr import Expr, Var


class PassSelection(Enum):
    """Sets of LLVM passes that pay for a function."""

    NONE = auto()
    """No passes, for functions that only forward arguments; a fifth of the compile time."""
    FEW = auto()
    """Promotion of memory to registers (SROA) only."""
    LOOPS = auto()
    """The function simplification pipeline, which includes loop passes."""
    ALL = auto()
    """The module pipeline with loop vectorization and unrolling, for plain loops."""


@dataclass(frozen=True, slots=True)
class LlvmSource:
    """LLVM module before the passes of LLVM.

    Attributes:
        text: LLVM IR.
        plain_loops: Names of the functions that need all passes, which run on the whole module.
        loop_work: Names of the functions that need the loop passes.
        inlined: Names of the functions to inline.
        handed_over: Names of the functions that only forward their arguments.
    """

    text: str
    plain_loops: tuple[str, ...] = ()
    loop_work: tuple[str, ...] = ()
    inlined: tuple[str, ...] = ()
    handed_over: tuple[str, ...] = ()


WIDEST_VECTOR_BYTES = 64
"""Bytes of the widest vector register; LLVM splits such vectors on narrower machines."""
_MAX_NAME_CHARACTERS = 256  # maximum length of a name hint; LLVM truncates value names at 1,024
_FLOATS = {16: "half", 32: "float", 64: "double"}


@cache
def register_type(dtype: DType) -> str:
    """Return the LLVM type of a value of `dtype` in registers."""
    return vector_of(_scalar(dtype), dtype.lanes)


@cache
def memory_type(dtype: DType) -> str:
    """Return the LLVM type of a value of `dtype` in memory, where a lane takes whole bytes."""
    return vector_of("i8" if dtype.bits < 8 else _scalar(dtype), dtype.lanes)


def _scalar(dtype: DType) -> str:
    if dtype.kind == "handle":
        return "ptr"
    if dtype.kind == "float":
        return _FLOATS[dtype.bits]
    return f"i{dtype.bits}"


def vector_of(scalar: str, lanes: int) -> str:
    """Return the LLVM type of `lanes` values of type `scalar`.

    >>> vector_of("float", 4), vector_of("i8", 1)
    ('<4 x float>', 'i8')
    """
    return scalar if lanes == 1 else f"<{lanes} x {scalar}>"


def suffix(llvm_type: str) -> str:
    """Return the name suffix of an overloaded LLVM intrinsic for a type.

    >>> suffix("<4 x float>"), suffix("i64"), suffix("<8 x ptr>")
    ('v4f32', 'i64', 'v8p0')
    """
    count, _, scalar = llvm_type.strip("<>").rpartition(" x ")
    short = {"half": "f16", "float": "f32", "double": "f64", "ptr": "p0"}.get(scalar, scalar)
    return f"v{count}{short}" if count else short


def literal(value: int | float | bool, dtype: DType) -> str:
    """Return the LLVM literal of `value` in the scalar `dtype`, exact to the bit."""
    if dtype.is_bool:
        return "true" if value else "false"
    if dtype.is_integer:
        return str(int(value))
    bits = float_bits(float(value), dtype)
    if dtype.kind != "float":
        return str(bits)
    if dtype.bits == 16:
        return f"0xH{bits:04X}"
    # The LLVM literal of a float is the bit pattern of the equal double.
    double_bits = bits if dtype.bits == 64 else float_bits(_from_bits32(bits), DType("float64"))
    return f"0x{double_bits:016X}"


def float_bits(value: float, dtype: DType) -> int:
    """Return the bits of `value` rounded to a floating-point dtype (ties to even)."""
    if dtype.bits == 64:
        return int.from_bytes(struct.pack("<d", value), "little")
    with np.errstate(over="ignore"):
        if dtype.kind == "bfloat":
            return _bfloat_bits(np.float32(value))
        if dtype.kind == "minifloat":
            return int(np.float32(value).astype(dtype.numpy).view(np.uint8))
        narrow = np.float16(value) if dtype.bits == 16 else np.float32(value)
    return int.from_bytes(narrow.tobytes(), "little")


def _bfloat_bits(value: np.float32) -> int:
    bits = int(value.view(np.uint32))
    if value != value:
        return 0x7FC0 | bits >> 16
    return (bits + 0x7FFF + (bits >> 16 & 1)) >> 16


def _from_bits32(bits: int) -> float:
    return float(struct.unpack("<f", bits.to_bytes(4, "little"))[0])


def splat(operand: str, scalar: str, lanes: int) -> str:
    """Return the literal with `operand` in every lane."""
    return operand if lanes == 1 else f"splat ({scalar} {operand})"


def zero(dtype: DType) -> str:
    """Return the zero of a dtype in registers."""
    if dtype.lanes > 1:
        return "zeroinitializer"
    return literal(0, dtype)


def lane_numbers(lanes: int, scalar: str = "i64", factor: int = 1) -> str:
    """Return the vector literal `<0, factor, 2 * factor, ...>`."""
    return "<" + ", ".join(f"{scalar} {k * factor}" for k in range(lanes)) + ">"


def shuffle_mask(lanes: Sequence[int | None]) -> str:
    """Return the mask operand of a `shufflevector`; None is an unspecified lane."""
    chosen = ", ".join([f"i32 {'poison' if k is None else k}" for k in lanes])
    return f"<{len(lanes)} x i32> <{chosen}>"


# "prefer-vector-width" keeps explicit 512-bit vectors whole on machines that would otherwise split
# them. C library functions set `errno`, which is never read here, so #1 declares them free of side
# effects. `!0` marks invariant loads, `!1` non-temporal stores.
TAIL = """\
attributes #0 = { nounwind "prefer-vector-width"="512" }
attributes #1 = { nounwind willreturn memory(none) }

!0 = !{}
!1 = !{i32 1}
"""

# Instructions whose result depends on their operands only.
_PURE = frozenset((
    "add", "and", "ashr", "bitcast", "extractelement", "fadd", "fcmp", "fdiv", "fmul", "fpext",
    "fptrunc", "fsub", "getelementptr", "icmp", "insertelement", "lshr", "mul", "or", "select",
    "sext", "shl", "shufflevector", "sitofp", "sub", "trunc", "udiv", "uitofp", "xor", "zext",
))  # fmt: skip


@dataclass(frozen=True, slots=True)
class Options:
    """Code generation options.

    Attributes:
        check_bounds: Whether to check every access against the shape of its buffer at run time.
            Default: False.
        fast_math: Whether LLVM may reorder sums and use reciprocals and approximations, and `min`
            and `max` of NaN and a number may return either. Default: False.
        fp_contract: Whether a product and a sum may become one fused operation, rounded once.
            Default: True.
    """

    check_bounds: bool = False
    fast_math: bool = False
    fp_contract: bool = True

    @property
    def flags(self) -> str:
        """Flags of `fadd`, `fsub` and `fmul`, with a trailing space."""
        if self.fast_math:
            return "reassoc nsz arcp contract afn "
        return "contract " if self.fp_contract else ""


@dataclass(frozen=True, slots=True)
class LlvmFunction:
    """Function as LLVM IR.

    Attributes:
        name: Name in the module.
        head: Linkage and result type.
        parameters: Types and names of the parameters.
        body: Text of the basic blocks.
        passes: LLVM passes that pay for this function.
        is_helper: Whether the function is a candidate for inlining.
        attributes: Additional function attributes.
    """

    name: str
    head: str
    parameters: str
    body: str
    passes: PassSelection = PassSelection.FEW
    is_helper: bool = False
    attributes: str = ""

    def text(self, *, is_inlined: bool = False) -> str:
        """Return the text of the definition."""
        words = [self.attributes, "#0", "alwaysinline" if is_inlined else ""]
        attributes = " ".join([word for word in words if word])
        signature = f"{self.head} @{self.name}({self.parameters})"
        return f"define {signature} {attributes} {{\n{self.body}}}\n"


@dataclass(slots=True)
class ModuleBuilder:
    """Module under construction: functions and the entities that they refer to.

    Attributes:
        name: Name of the module.
        options: Code generation options.
        sites: Texts of run-time errors; a failed check records an index into this list.
        dots: Function that returns the dot product instructions of the machine; called on demand.
        has_masks: Function that returns whether the machine has masked vector loads and stores;
            called on demand.
        has_fma: Function that returns whether the machine has FMA; called on demand.
        functions: Functions besides the body and the entry, by name.
        constants: Constant tables, by name.
        calls: Number of calls of each helper, by name.
        declarations: Declarations of external functions.
        outlined: Number of outlined parallel loops.
        called_symbols: Symbols of the external functions that are called.
        line_of: Source lines of statements by id, for line comments.
    """

    name: str
    options: Options
    sites: list[str]
    dots: Callable[[], Mapping[tuple[str, str], Any]] = dict
    has_masks: Callable[[], bool] = bool
    has_fma: Callable[[], bool] = bool
    functions: dict[str, LlvmFunction] = field(default_factory=dict)
    constants: dict[str, str] = field(default_factory=dict)
    calls: Counter[str] = field(default_factory=Counter)
    declarations: dict[str, None] = field(default_factory=dict)
    outlined: int = 0
    called_symbols: dict[CallSignature, str] = field(default_factory=dict)
    line_of: Mapping[int, int] = field(default_factory=dict)

    def add(self, function: LlvmFunction) -> None:
        """Add a function to the module."""
        self.functions[function.name] = function

    def declare(self, result: str, name: str, arguments: Sequence[str]) -> str:
        """Declare an LLVM intrinsic or C library function; return its symbol."""
        # Functions that are not LLVM intrinsics belong to the C math library.
        pure = "" if name.startswith("llvm.") else " #1"
        # Alignment is an attribute of the call, not of the declaration.
        kinds = ", ".join([kind.partition(" align ")[0] for kind in arguments])
        self.declarations.setdefault(f"declare {result} @{name}({kinds}){pure}")
        return f"@{name}"

    def outside(self, callee: CallSignature) -> str:
        """Return the symbol of an external function."""
        return self.called_symbols.setdefault(
            callee, f"{self.name}.outside.{len(self.called_symbols)}"
        )

    def site(self, text: str) -> int:
        """Return the site number of `text`; add the text if it is new."""
        if text not in self.sites:
            self.sites.append(text)
        return self.sites.index(text)


@memoize("codegen.names")
def plain_name(name: str) -> str:
    """Return `name` as a valid unquoted LLVM identifier.

    >>> plain_name("C.local"), plain_name("größe")
    ('C.local', 'gr__e')
    """
    return re.sub(r"[^A-Za-z0-9_.]", "_", name)


@dataclass(slots=True)
class FunctionBuilder:
    """Function under construction.

    Attributes:
        module: Module of the function.
        env: Operand of every variable in scope; for a data variable, its address.
        is_outlined: Whether this is the body of a parallel loop; inner loops run serially.
        passes: LLVM passes that pay for this function.
        streams: Whether there are non-temporal stores; see `memory.vector_access`.
        allocas: Stack allocations of the entry block.
        lines: Lines of the body so far.
        block: Label of the current basic block.
        memo: Operands of the expressions of the current statement, one scope per open branch.
        loop_invariants: Operands of expressions that were computed before the current loop.
        holding: Conditions of the enclosing branches, which hold in the current block.
        nonempty: Masks whose first lane is active.
        non_negative: Variables that are not negative.
        stack_bytes: Stack bytes allocated so far.
        loaded: Variables whose values depend on loads.
        columns: Loads and stores, by id, that belong to a register transpose; see
            `memory.register_transpose`.
        on_stack: Sizes in bytes of stack allocations, by address.
        on_heap: Addresses of heap memory to release, in order of allocation.
        aligned: Known alignment of memory allocated by this call, by data variable.
        computed: Operands of the pure instructions of the current block, by instruction text.
        loaded_operands: Operands of loads in the current block, by memory and text; see `read`.
    """

    module: ModuleBuilder
    env: dict[Var, str]
    is_outlined: bool = False
    passes: PassSelection = PassSelection.FEW
    streams: bool = False
    allocas: list[str] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    block: str = "entry"
    memo: list[dict[int, tuple[Expr, str]]] = field(default_factory=lambda: [{}])
    loop_invariants: dict[int, tuple[Expr, str]] = field(default_factory=dict)
    holding: tuple[Expr, ...] = ()
    nonempty: set[Var] = field(default_factory=set)
    non_negative: set[Var] = field(default_factory=set)
    stack_bytes: int = 0
    loaded: set[Var] = field(default_factory=set)
    columns: dict[int, Any] = field(default_factory=dict)
    on_stack: dict[str, int] = field(default_factory=dict)
    on_heap: list[str] = field(default_factory=list)
    aligned: dict[Var, int] = field(default_factory=dict)
    computed: dict[str, str] = field(default_factory=dict)
    loaded_operands: dict[Var, dict[str, str]] = field(default_factory=dict)
    _counts: dict[str, int] = field(default_factory=lambda: {"entry": 1})

    def name(self, hint: str) -> str:
        """Return a unique name within the function, based on `hint`."""
        base = plain_name(hint)[:_MAX_NAME_CHARACTERS]
        count = self._counts.get(base)
        if count is None:
            self._counts[base] = 1
            return base
        while (unique := f"{base}.{count}") in self._counts:
            count += 1
        self._counts[base] = count + 1
        self._counts[unique] = 1
        return unique

    def do(self, text: str) -> None:
        """Add an instruction without a result that may write any memory."""
        self.loaded_operands.clear()
        self.lines.append(f"  {text}")

    def op(self, text: str, hint: str = "t") -> str:
        """Return the result of an instruction; a pure instruction is reused within a block.

        Unrolled code repeats many instructions, and LLVM would take long to eliminate them.
        """
        is_pure = text[: text.find(" ")] in _PURE
        if is_pure and (known := self.computed.get(text)) is not None:
            return known
        operand = f"%{self.name(hint)}"
        self.lines.append(f"  {operand} = {text}")
        if is_pure:
            self.computed[text] = operand
        return operand

    def read(self, text: str, memory: Var) -> str:
        """Return the result of a load; it is reused until `memory` may have changed."""
        loaded = self.loaded_operands.setdefault(memory, {})
        if text not in loaded:
            loaded[text] = self.op(text)
        return loaded[text]

    def write(self, text: str, memory: Var) -> None:
        """Add a store to `memory`, which does not alias other memory (see `emit.parallel`)."""
        self.loaded_operands.pop(memory, None)
        self.lines.append(f"  {text}")

    def call(self, result: str, function: str, arguments: Sequence[tuple[str, str]]) -> str:
        """Call an intrinsic or library function with (type, operand) pairs; return the result."""
        target = self.module.declare(result, function, [kind for kind, _ in arguments])
        return self.op(f"call {result} {target}({_join(arguments)})")

    def run(self, function: str, arguments: Sequence[tuple[str, str]]) -> None:
        """Call an intrinsic or library function without a result."""
        target = self.module.declare("void", function, [kind for kind, _ in arguments])
        self.do(f"call void {target}({_join(arguments)})")

    def label(self, name: str) -> None:
        """Start the basic block `name`."""
        self.lines.append(f"{name}:")
        self.block = name
        self.computed.clear()
        self.loaded_operands.clear()

    def branch(self, condition: str, then: str, otherwise: str) -> None:
        """End the block with a conditional branch."""
        self.do(f"br i1 {condition}, label %{then}, label %{otherwise}")

    def jump(self, target: str) -> None:
        """End the block with an unconditional branch."""
        self.do(f"br label %{target}")

    def known(self, expr: Expr) -> str | None:
        """Return the memoized operand of `expr` in this statement or an enclosing loop, or None."""
        for scope in (self.loop_invariants, *reversed(self.memo)):
            if (found := scope.get(id(expr))) is not None:
                return found[1]
        return None

    def remember(self, expr: Expr, operand: str) -> None:
        """Memoize the operand of `expr`."""
        self.memo[-1][id(expr)] = (expr, operand)

    def value_of(self, var: Var) -> str:
        """Return the operand of a variable.

        Raises:
            InternalError: If `var` is not in scope.
        """
        if var not in self.env:
            raise InternalError("`{var}` is used but not defined", var=var.name)
        return self.env[var]

    @contextmanager
    def bound(self, var: Var, operand: str) -> Iterator[None]:
        """Bind `var` to `operand` within the `with` block."""
        before = self.env.get(var)
        self.env[var] = operand
        yield
        if before is None:
            del self.env[var]
        else:
            self.env[var] = before

    def function(self, head: str, name: str, parameters: str) -> LlvmFunction:
        """Return the finished function; `head` is its linkage and result type."""
        allocas = [f"  {line}" for line in self.allocas]
        body = "\n".join(["entry:", *allocas, *self.lines, ""])
        return LlvmFunction(name, head, parameters, body, self.passes)


@dataclass(frozen=True, slots=True)
class OpenBranch:
    """Open conditional block: predecessor label and label after the block."""

    before: str
    after: str


def begin_if(code: FunctionBuilder, condition: str) -> OpenBranch:
    """Start a conditional block that runs if `condition`, an i1 operand, holds."""
    then, after = code.name("then"), code.name("after")
    guard = OpenBranch(code.block, after)
    code.branch(condition, then, after)
    code.label(then)
    code.memo.append({})
    return guard


def end_if(
    code: FunctionBuilder, guard: OpenBranch, value: str = "", kind: str = "", other: str = ""
) -> str:
    """End a conditional block; return the phi of `value` (executed) and `other` (skipped)."""
    code.memo.pop()
    last = code.block
    code.jump(guard.after)
    code.label(guard.after)
    if not kind:
        return ""
    return code.op(f"phi {kind} [ {value}, %{last} ], [ {other}, %{guard.before} ]")


def broadcast(code: FunctionBuilder, value: str, scalar: str, lanes: int) -> str:
    """Broadcast a value of LLVM type `scalar` to all lanes."""
    if lanes == 1:
        return value
    kind = vector_of(scalar, lanes)
    first = code.op(f"insertelement {kind} poison, {scalar} {value}, i64 0")
    everywhere = f"<{lanes} x i32> zeroinitializer"
    return code.op(f"shufflevector {kind} {first}, {kind} poison, {everywhere}")


def _join(arguments: Sequence[tuple[str, str]]) -> str:
    return ", ".join(f"{kind} {operand}" for kind, operand in arguments)
