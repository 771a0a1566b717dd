"""Builder of LLVM IR text: modules, functions, blocks, types and literals."""

from __future__ import annotations

import re
import struct
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum, auto
from functools import cache, lru_cache
from typing import Any

import numpy as np

from tecomp.errors import InternalError
from tecomp.ir.extern.registry import Callee
from tecomp.ir.nodes.dtype import DType
from tecomp.ir.nodes.expr import Expr, Var


class Passes(Enum):
    """How many of LLVM's passes pay for a function."""

    NONE = auto()
    """It only hands over what it is given: instructions one by one, in a fifth of the time."""
    FEW = auto()
    """Registers out of memory: nothing else was left to do."""
    LOOPS = auto()
    """Those that work on loops, besides."""
    ALL = auto()
    """Nearly all: its loops were left plain, to be made vectors."""


@dataclass(frozen=True, slots=True)
class Source:
    """A module, before LLVM's own passes.

    Attributes:
        text: LLVM IR.
        plain_loops: names of the functions that need all passes, which see the whole module.
        loop_work: names of the functions that need the passes for loops.
        inlined: names of the functions that become part of their callers.
        handed_over: names of the functions that only hand over what they are given.
    """

    text: str
    plain_loops: tuple[str, ...] = ()
    loop_work: tuple[str, ...] = ()
    inlined: tuple[str, ...] = ()
    handed_over: tuple[str, ...] = ()


_MOST_CHARACTERS = 256  # of a hint; LLVM cuts the names of values at 1,024 characters
_FLOATS = {16: "half", 32: "float", 64: "double"}


@cache
def register_type(dtype: DType) -> str:
    """What a value of `dtype` is while it is computed with."""
    return vector_of(_scalar(dtype), dtype.lanes)


@cache
def memory_type(dtype: DType) -> str:
    """What a value of `dtype` is in memory."""
    return vector_of("i8" if dtype.is_bool else _scalar(dtype), dtype.lanes)


def _scalar(dtype: DType) -> str:
    if dtype.kind == "handle":
        return "ptr"
    if dtype.kind == "float":
        return _FLOATS[dtype.bits]
    return f"i{dtype.bits}"


def vector_of(scalar: str, lanes: int) -> str:
    """LLVM's type of `lanes` values of type `scalar`.

    >>> vector_of("float", 4), vector_of("i8", 1)
    ('<4 x float>', 'i8')
    """
    return scalar if lanes == 1 else f"<{lanes} x {scalar}>"


def suffix(llvm_type: str) -> str:
    """What the name of an overloaded LLVM function has for a type.

    >>> suffix("<4 x float>"), suffix("i64"), suffix("<8 x ptr>")
    ('v4f32', 'i64', 'v8p0')
    """
    count, _, scalar = llvm_type.strip("<>").rpartition(" x ")
    short = {"half": "f16", "float": "f32", "double": "f64", "ptr": "p0"}.get(scalar, scalar)
    return f"v{count}{short}" if count else short


def literal(value: int | float | bool, dtype: DType) -> str:
    """`value` of scalar type `dtype` in LLVM's text, exact to the bit."""
    if dtype.is_bool:
        return "true" if value else "false"
    if dtype.is_integer:
        return str(int(value))
    bits = float_bits(float(value), dtype)
    if dtype.kind == "bfloat":
        return str(bits)
    if dtype.bits == 16:
        return f"0xH{bits:04X}"
    # LLVM writes a float as the double of the same value.
    wide = bits if dtype.bits == 64 else float_bits(_from_bits32(bits), DType("float64"))
    return f"0x{wide:016X}"


def float_bits(value: float, dtype: DType) -> int:
    """The bits of `value` rounded to the nearest even of a floating type, as an integer."""
    if dtype.bits == 64:
        return int.from_bytes(struct.pack("<d", value), "little")
    with np.errstate(over="ignore"):
        if dtype.kind == "bfloat":
            return _bfloat_bits(np.float32(value))
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
    """A literal in every lane."""
    return operand if lanes == 1 else f"splat ({scalar} {operand})"


def zero(dtype: DType) -> str:
    """The zero of a type, in registers."""
    if dtype.lanes > 1:
        return "zeroinitializer"
    return literal(0, dtype)


def lane_numbers(lanes: int, scalar: str = "i64", factor: int = 1) -> str:
    """`<0, factor, 2 * factor, ...>` as a literal."""
    return "<" + ", ".join(f"{scalar} {k * factor}" for k in range(lanes)) + ">"


def shuffle_mask(lanes: list[int]) -> str:
    """The mask operand of a `shufflevector`."""
    return f"<{len(lanes)} x i32> <" + ", ".join(f"i32 {k}" for k in lanes) + ">"


# Explicit vectors of 512 bits stay whole on machines that would otherwise split them. The C
# library's functions set `errno`, which nobody reads here. `!0` marks what never changes, `!1` what
# goes past the caches.
TAIL = """\
attributes #0 = { nounwind "prefer-vector-width"="512" }
attributes #1 = { nounwind willreturn memory(none) }

!0 = !{}
!1 = !{i32 1}
"""

# Instructions whose result depends on nothing but their text.
_PURE = frozenset((
    "add", "and", "ashr", "bitcast", "extractelement", "fadd", "fcmp", "fdiv", "fmul", "fpext",
    "fptrunc", "fsub", "getelementptr", "icmp", "insertelement", "lshr", "mul", "or", "select",
    "sext", "shl", "shufflevector", "sitofp", "sub", "trunc", "uitofp", "xor", "zext",
))  # fmt: skip


@dataclass(frozen=True, slots=True)
class Options:
    """How code is generated.

    Attributes:
        check_bounds: check every access against the shape of its buffer at run time.
        fast_math: let LLVM reorder sums and use reciprocals and approximations, and let `min` and
            `max` of NaN and a number be either.
        fp_contract: let a product and a sum become one fused operation, rounded once.
    """

    check_bounds: bool = False
    fast_math: bool = False
    fp_contract: bool = True

    @property
    def flags(self) -> str:
        """Flags of `fadd`, `fsub` and `fmul`, with a space after them."""
        if self.fast_math:
            return "reassoc nsz arcp contract afn "
        return "contract " if self.fp_contract else ""


@dataclass(frozen=True, slots=True)
class Function:
    """A function as LLVM IR.

    Attributes:
        name: of it in the module.
        head: result and linkage.
        parameters: their types and names.
        body: blocks, from the first on.
        passes: those of LLVM's that pay here.
        is_helper: whether it does so little that it may become part of its callers.
        attributes: what LLVM is told of it besides.
    """

    name: str
    head: str
    parameters: str
    body: str
    passes: Passes = Passes.FEW
    is_helper: bool = False
    attributes: str = ""

    def text(self, *, is_inlined: bool = False) -> str:
        """The definition."""
        words = [self.attributes, "#0", "alwaysinline" if is_inlined else ""]
        attributes = " ".join(word for word in words if word)
        signature = f"{self.head} @{self.name}({self.parameters})"
        return f"define {signature} {attributes} {{\n{self.body}}}\n"


@dataclass(slots=True)
class Module:
    """The functions of one module, and what they refer to.

    Attributes:
        sites: texts of run-time errors; a failing check records a position in it.
        dots: tells which instructions for dot products the machine has; asked for only where there
            are some.
        has_masks: tells whether it loads and stores vectors under a mask in one step, likewise.
        has_fma: tells whether it multiplies and adds with one rounding, likewise.
        functions: those besides the body and the entry, by name.
        constants: tables in memory, by name.
        calls: how often helpers are called, by name.
        outlined: how many parallel loops have become functions.
        called: the functions outside of the program that are called, and their symbols.
        line_of: lines of statements by id, for comments that say where instructions come from.
    """

    name: str
    options: Options
    sites: list[str]
    dots: Callable[[], Mapping[tuple[str, str], Any]] = dict
    has_masks: Callable[[], bool] = bool
    has_fma: Callable[[], bool] = bool
    functions: dict[str, Function] = field(default_factory=dict)
    constants: dict[str, str] = field(default_factory=dict)
    calls: Counter[str] = field(default_factory=Counter)
    declarations: dict[str, None] = field(default_factory=dict)
    outlined: int = 0
    called: dict[Callee, str] = field(default_factory=dict)
    line_of: Mapping[int, int] = field(default_factory=dict)

    def add(self, function: Function) -> None:
        """Put a function into the module."""
        self.functions[function.name] = function

    def declare(self, result: str, name: str, arguments: Sequence[str]) -> str:
        """Make an outside function known; returns its name."""
        # What is not LLVM's own is a function of the C math library.
        pure = "" if name.startswith("llvm.") else " #1"
        # How far an address is aligned is for each call to say.
        kinds = ", ".join(kind.partition(" align ")[0] for kind in arguments)
        self.declarations.setdefault(f"declare {result} @{name}({kinds}){pure}")
        return f"@{name}"

    def outside(self, callee: Callee) -> str:
        """The symbol of a function outside of the program."""
        return self.called.setdefault(callee, f"{self.name}.outside.{len(self.called)}")

    def site(self, text: str) -> int:
        """The number under which `text` is recorded."""
        if text not in self.sites:
            self.sites.append(text)
        return self.sites.index(text)


@lru_cache
def plain_name(name: str) -> str:
    """`name` as LLVM takes it without quotes.

    >>> plain_name("C.local"), plain_name("größe")
    ('C.local', 'gr__e')
    """
    return re.sub(r"[^A-Za-z0-9_.]", "_", name)


@dataclass(slots=True)
class Code:
    """One function in the making.

    Attributes:
        env: operand of every variable in scope; of a buffer's `data`, its address.
        memo: operands of the expressions of the statement at hand, a scope per open branch.
        settled: operands of expressions that were computed before the loop at hand.
        is_outlined: whether this is the body of a parallel loop; loops inside it run serially.
        passes: those of LLVM's that have something to do here.
        streams: whether there are stores past the caches; see `stream`.
        loaded: variables whose values depend on what was read from memory.
        columns: loads and stores, by id, that are parts of a square; see `transposes`.
        on_stack: bytes of the memory that this function has on its stack, by address.
        on_heap: addresses of memory that is to be given back, the last one first.
        aligned: what the addresses of memory that was made for this call are multiples of.
        computed: operands of the pure instructions of the block at hand, by their text.
        held: operands of what that block has loaded, by memory and text; see `read`.
    """

    module: Module
    env: dict[Var, str]
    is_outlined: bool = False
    passes: Passes = Passes.FEW
    streams: bool = False
    allocas: list[str] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    block: str = "entry"
    memo: list[dict[int, tuple[Expr, str]]] = field(default_factory=lambda: [{}])
    settled: dict[int, tuple[Expr, str]] = field(default_factory=dict)
    stack_bytes: int = 0
    loaded: set[Var] = field(default_factory=set)
    columns: dict[int, Any] = field(default_factory=dict)
    on_stack: dict[str, int] = field(default_factory=dict)
    on_heap: list[str] = field(default_factory=list)
    aligned: dict[Var, int] = field(default_factory=dict)
    computed: dict[str, str] = field(default_factory=dict)
    held: dict[Var, dict[str, str]] = field(default_factory=dict)
    _counts: dict[str, int] = field(default_factory=lambda: {"entry": 1})

    def name(self, hint: str) -> str:
        """A name that nothing else in the function has."""
        base = plain_name(hint)[:_MOST_CHARACTERS]
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
        """Add an instruction that gives no value, and may write anywhere."""
        self.held.clear()
        self.lines.append(f"  {text}")

    def op(self, text: str, hint: str = "t") -> str:
        """The operand that holds the value of an instruction, which is added if it is new.

        Unrolled code says the same again and again, which LLVM would take long to find out.
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
        """The operand of a load from `memory`, which is added if something may have changed."""
        held = self.held.setdefault(memory, {})
        if text not in held:
            held[text] = self.op(text)
        return held[text]

    def write(self, text: str, memory: Var) -> None:
        """Add a store to `memory`, with which no other overlaps: see `emit.parallel`."""
        self.held.pop(memory, None)
        self.lines.append(f"  {text}")

    def call(self, result: str, function: str, arguments: Sequence[tuple[str, str]]) -> str:
        """Call an outside function with (type, operand) pairs; returns the result's operand."""
        target = self.module.declare(result, function, [kind for kind, _ in arguments])
        return self.op(f"call {result} {target}({_joined(arguments)})")

    def run(self, function: str, arguments: Sequence[tuple[str, str]]) -> None:
        """Call an outside function that gives nothing."""
        target = self.module.declare("void", function, [kind for kind, _ in arguments])
        self.do(f"call void {target}({_joined(arguments)})")

    def label(self, name: str) -> None:
        """Start the block `name`, which needs a branch to it."""
        self.lines.append(f"{name}:")
        self.block = name
        self.computed.clear()
        self.held.clear()

    def branch(self, condition: str, then: str, other: str) -> None:
        """End the block with a two-way branch."""
        self.do(f"br i1 {condition}, label %{then}, label %{other}")

    def jump(self, target: str) -> None:
        """End the block."""
        self.do(f"br label %{target}")

    def known(self, expr: Expr) -> str | None:
        """The operand of `expr` if the statement at hand, or a loop around, has computed it."""
        for scope in (self.settled, *reversed(self.memo)):
            if (found := scope.get(id(expr))) is not None:
                return found[1]
        return None

    def remember(self, expr: Expr, operand: str) -> None:
        """Note that `expr` has been computed."""
        self.memo[-1][id(expr)] = (expr, operand)

    def value_of(self, var: Var) -> str:
        """The operand of a variable.

        Raises:
            InternalError: it is not in scope.
        """
        if var not in self.env:
            raise InternalError(f"`{var.name}` is used where nothing binds it")
        return self.env[var]

    @contextmanager
    def bound(self, var: Var, operand: str) -> Iterator[None]:
        """`var` is `operand` inside the `with`."""
        before = self.env.get(var)
        self.env[var] = operand
        yield
        if before is None:
            del self.env[var]
        else:
            self.env[var] = before

    def function(self, head: str, name: str, parameters: str) -> Function:
        """The whole function; `head` is its linkage and result."""
        allocas = [f"  {line}" for line in self.allocas]
        body = "".join(f"{line}\n" for line in ["entry:", *allocas, *self.lines])
        return Function(name, head, parameters, body, self.passes)


@dataclass(frozen=True, slots=True)
class Guard:
    """An open branch: code up to `close` runs where the condition held."""

    before: str
    after: str


def open_guard(code: Code, condition: str) -> Guard:
    """Start code that runs only where `condition`, an i1 operand, holds."""
    then, after = code.name("then"), code.name("after")
    guard = Guard(code.block, after)
    code.branch(condition, then, after)
    code.label(then)
    code.memo.append({})
    return guard


def close_guard(code: Code, guard: Guard, value: str = "", kind: str = "", other: str = "") -> str:
    """End a guarded part; returns `value` where it ran, and `other` where it did not."""
    code.memo.pop()
    last = code.block
    code.jump(guard.after)
    code.label(guard.after)
    if not kind:
        return ""
    return code.op(f"phi {kind} [ {value}, %{last} ], [ {other}, %{guard.before} ]")


def broadcast(code: Code, value: str, scalar: str, lanes: int) -> str:
    """The one value, of LLVM type `scalar`, in every lane."""
    if lanes == 1:
        return value
    kind = vector_of(scalar, lanes)
    first = code.op(f"insertelement {kind} poison, {scalar} {value}, i64 0")
    everywhere = f"<{lanes} x i32> zeroinitializer"
    return code.op(f"shufflevector {kind} {first}, {kind} poison, {everywhere}")


def _joined(arguments: Sequence[tuple[str, str]]) -> str:
    return ", ".join(f"{kind} {operand}" for kind, operand in arguments)
