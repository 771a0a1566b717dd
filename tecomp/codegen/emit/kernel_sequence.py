"""Emit a sequence of kernels as one function.

Each kernel receives an argument block on the stack, as from a regular caller. The first failure
ends the sequence, and its record becomes the record of the sequence. The sites of the sequence are
the concatenated sites of all kernels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from tecomp.codegen.emit.expr import emit
from tecomp.codegen.llvm.compiled import ModuleText
from tecomp.codegen.llvm.ir_builder import (
    TAIL,
    FunctionBuilder,
    LlvmFunction,
    LlvmSource,
    ModuleBuilder,
    Options,
    PassSelection,
    plain_name,
)
from tecomp.codegen.runtime.runtime_structs import (
    FAILURE,
    FIRST_ARGUMENT_WORD,
    OUT_OF_MEMORY,
    RECORD_WORD,
    TABLE,
)
from tecomp.ir.nodes.expr import Expr, Var

_POINTER = 8
_FILLER = "fill.rows"

_ARENA_NAME = "values between kernels"
"""Site text of the memory between kernels, for out-of-memory failures."""


@dataclass(frozen=True, slots=True)
class SequenceArgument:
    """Argument `position` of the sequence, from byte `offset` on."""

    position: int
    offset: int = 0


@dataclass(frozen=True, slots=True)
class SequenceSize:
    """Size variable `position` of the sequence, passed as a word."""

    position: int


@dataclass(frozen=True, slots=True)
class ArenaValue:
    """Intermediate value between kernels, at `offset` bytes in slot `slot` of the arena."""

    offset: int
    slot: int = 0


@dataclass(frozen=True, slots=True)
class RowPitch:
    """Rows of an argument with several physical axes: `count` rows of `bytes` bytes each."""

    count: int
    bytes: int


@dataclass(frozen=True, slots=True)
class SequenceCall:
    """Call of a kernel in a sequence.

    Attributes:
        entry: Name of the native function that takes the argument block.
        arguments: Arguments in the order of the kernel.
        sites: Texts of the site numbers in failure records.
        rows: Rows of each argument that is passed as a row table; None for other arguments.
    """

    entry: str
    arguments: tuple[SequenceArgument | ArenaValue | SequenceSize, ...]
    sites: tuple[str, ...] = ()
    rows: tuple[RowPitch | None, ...] = ()

    @property
    def table_bytes(self) -> int:
        """Size of all row tables in bytes."""
        return sum(_POINTER * table.count for table in self.rows if table is not None)


def sequence_text(
    name: str, steps: Sequence[SequenceCall], count: int, slots: Sequence[int | Expr],
    sizes: Sequence[Var] = (), *, is_parallel: bool,
) -> ModuleText:
    """Return LLVM IR that calls the kernels in order; it must be linked with their entries.

    Args:
        name: Name of the sequence.
        steps: Kernel calls.
        count: Number of arrays among the arguments of the sequence; the sizes follow them.
        slots: Bytes of each slot of the arena, the memory of values between kernels. Symbolic slots
            are functions of the sizes, evaluated in each call.
        sizes: Size variables of the sequence. Default: none.
        is_parallel: Whether a kernel can use more than one thread.
    """
    max_args = max((len(step.arguments) for step in steps), default=0)
    table_bytes = max((step.table_bytes for step in steps), default=0)
    sites = (*(site for step in steps for site in step.sites), _ARENA_NAME)
    lines = [
        "entry:",
        f"  %block = alloca [{FIRST_ARGUMENT_WORD + max_args} x i64], align 64",
        f"  %record = {_word('%arguments', RECORD_WORD)}",
        "  %thread = load ptr, ptr %arguments",
        *(line for k in range(count) for line in _argument(k)),
        *(line for k in range(len(sizes)) for line in _size(k, count)),
    ]
    starts, functions = _emit_slots(lines, slots, sizes)
    tables = starts.pop()
    amount = _emit_sum(lines, tables, table_bytes)
    lines += _emit_allocation(amount, len(sites) - 1)
    lines += ["  br label %step.0", "step.0:"]
    first_sites = [0, *accumulate(len(step.sites) for step in steps)][: len(steps)]
    for number, step in enumerate(steps):
        lines += _emit_call(number, step, starts, tables)
    lines += [
        "  br label %end",
        "failed:",
        *_copy_failure_record(first_sites),
        "  br label %end",
        "end:",
    ]
    lines += ["  %kind = load i64, ptr %record", "  %status = trunc i64 %kind to i32"]
    if amount != "0":
        lines += _call_of_table("release", ["ptr %held"])
    lines.append("  ret i32 %status")
    body = "".join(f"{line}\n" for line in lines)
    called = dict.fromkeys(step.entry for step in steps)
    entries = "".join(f"declare i32 @{entry}(ptr)\n" for entry in called)
    # The suffix distinguishes the sequence from every kernel name.
    function = LlvmFunction(f"{plain_name(name)}.sequence", "i32", "ptr %arguments", body)
    filled = _filler().text() if any(any(step.rows) for step in steps) else ""
    evaluated = [slot_function.text() for slot_function in functions]
    text = "\n".join([filled, *evaluated, function.text(), entries, TAIL])
    return ModuleText(LlvmSource(text), function.name, sites, is_parallel)


def _word(block: str, number: int) -> str:
    return f"getelementptr i64, ptr {block}, i64 {number}"


def _argument(position: int) -> list[str]:
    slot = f"%at.{position}"
    return [
        f"  {slot} = {_word('%arguments', FIRST_ARGUMENT_WORD + position)}",
        f"  %given.{position} = load ptr, ptr {slot}",
    ]


def _size(position: int, count: int) -> list[str]:
    slot = f"%word.{position}"
    return [
        f"  {slot} = {_word('%arguments', FIRST_ARGUMENT_WORD + count + position)}",
        f"  %size.{position} = load i64, ptr {slot}",
    ]


def _emit_slots(
    lines: list[str], slots: Sequence[int | Expr], sizes: Sequence[Var]
) -> tuple[list[str], list[LlvmFunction]]:
    """Emit the start of each slot, and return the starts, the end, and functions that they call.

    Starts are operands: numbers as far as all slots before are constant.
    """
    functions = list[LlvmFunction]()
    starts = ["0"]
    for number, slot in enumerate(slots):
        operand = str(slot)
        if isinstance(slot, Expr):
            functions.append(_size_function(f"slot.{number}", slot, sizes))
            operand = f"%bytes.{number}"
            arguments = ", ".join(f"i64 %size.{k}" for k in range(len(sizes)))
            lines.append(f"  {operand} = call i64 @{functions[-1].name}({arguments})")
        starts.append(_emit_sum(lines, starts[-1], operand))
    return starts, functions


def _emit_sum(lines: list[str], a: str, b: str | int) -> str:
    """Emit the sum of two operands, folded for numbers; return its operand."""
    if a.isdecimal() and str(b).isdecimal():
        return str(int(a) + int(b))
    if str(b) == "0":
        return a
    operand = f"%sum.{len(lines)}"
    lines.append(f"  {operand} = add i64 {a}, {b}")
    return operand


def _size_function(name: str, value: Expr, sizes: Sequence[Var]) -> LlvmFunction:
    """Return a function that evaluates an expression of the sizes."""
    module = ModuleBuilder(name, Options(), [])
    code = FunctionBuilder(module, {}, passes=PassSelection.NONE)
    code.env.update({var: f"%{code.name(var.name)}" for var in sizes})
    parameters = ", ".join(f"i64 {code.env[var]}" for var in sizes)
    code.do(f"ret i64 {emit(code, value)}")
    return code.function("internal i64", name, parameters)


def _emit_allocation(amount: str, site: int) -> list[str]:
    """Emit the allocation of intermediate memory, or the out-of-memory failure."""
    if amount == "0":
        return []
    failure = [f"i64 {word}" for word in (OUT_OF_MEMORY, site, amount, 0)]
    return [
        *_call_of_table("allocate", [f"i64 {amount}"], "%held"),
        "  %is.missing = icmp eq ptr %held, null",
        "  br i1 %is.missing, label %missing, label %start",
        "missing:",
        *_call_of_table("record", ["ptr %record", *failure]),
        f"  ret i32 {OUT_OF_MEMORY}",
        "start:",
    ]


def _call_of_table(function: str, arguments: Sequence[str], result: str = "") -> list[str]:
    """Emit a call of a runtime function, with the thread state as first argument."""
    args = ", ".join(["ptr %thread", *arguments])
    kind = f"{result} = call ptr" if result else "call void"
    table, slot, code = (f"%{part}.{function}" for part in ("table", "slot", "code"))
    return [
        f"  {table} = load ptr, ptr %thread",
        f"  {slot} = getelementptr ptr, ptr {table}, i64 {TABLE.field_index(function)}",
        f"  {code} = load ptr, ptr {slot}",
        f"  {kind} {code}({args})",
    ]


def _emit_call(
    number: int, step: SequenceCall, starts: Sequence[str], tables: str
) -> list[str]:
    """Emit the call of a kernel; its row tables start at byte `tables` of the held memory."""
    lines = ["  store ptr %thread, ptr %block"]
    lines += [f"  %failure.{number} = {_word('%block', RECORD_WORD)}"]
    lines += [f"  store i64 0, ptr %failure.{number}"]
    for k, argument in enumerate(step.arguments):
        address, slot = f"%address.{number}.{k}", f"%place.{number}.{k}"
        if isinstance(argument, SequenceSize):
            lines += [
                f"  {slot} = {_word('%block', FIRST_ARGUMENT_WORD + k)}",
                f"  store i64 %size.{argument.position}, ptr {slot}",
            ]
            continue
        base, offset = "%held", str(argument.offset)
        if isinstance(argument, SequenceArgument):
            base = f"%given.{argument.position}"
        elif starts[argument.slot] != "0":
            offset = _emit_sum(lines, starts[argument.slot], argument.offset)
        lines.append(f"  {address} = getelementptr i8, ptr {base}, i64 {offset}")
        if k < len(step.rows) and (rows := step.rows[k]) is not None:
            table = f"%table.{number}.{k}"
            args = f"ptr {table}, ptr {address}, i64 {rows.count}, i64 {rows.bytes}"
            lines += [
                f"  {table} = getelementptr i8, ptr %held, i64 {tables}",
                f"  call void @{_FILLER}({args})",
            ]
            address, tables = table, _emit_sum(lines, tables, _POINTER * rows.count)
        lines += [
            f"  {slot} = {_word('%block', FIRST_ARGUMENT_WORD + k)}",
            f"  store ptr {address}, ptr {slot}",
        ]
    return [
        *lines,
        f"  %status.{number} = call i32 @{step.entry}(ptr %block)",
        f"  %bad.{number} = icmp ne i32 %status.{number}, 0",
        f"  br i1 %bad.{number}, label %failed, label %step.{number + 1}",
        f"step.{number + 1}:",
    ]


def _filler() -> LlvmFunction:
    """Return the helper function that fills a table with the addresses of consecutive rows."""
    lines = [
        "entry:", "  %is.none = icmp eq i64 %count, 0",
        "  br i1 %is.none, label %end, label %row", "row:",
        "  %number = phi i64 [ 0, %entry ], [ %next, %row ]",
        "  %offset = mul i64 %number, %bytes",
        "  %start = getelementptr i8, ptr %first, i64 %offset",
        "  %place = getelementptr ptr, ptr %table, i64 %number",
        "  store ptr %start, ptr %place",
        "  %next = add i64 %number, 1",
        "  %is.last = icmp eq i64 %next, %count",
        "  br i1 %is.last, label %end, label %row", "end:", "  ret void",
    ]
    body = "".join(f"{line}\n" for line in lines)
    parameters = "ptr %table, ptr %first, i64 %count, i64 %bytes"
    return LlvmFunction(_FILLER, "internal void", parameters, body)


def _copy_failure_record(first_sites: Sequence[int]) -> list[str]:
    """Copy the failure record of a kernel, with its site number shifted into the sequence."""
    if not first_sites:
        return []
    known = ", ".join(f"[ {first}, %step.{number} ]" for number, first in enumerate(first_sites))
    lines = [f"  %first = phi i64 {known}"]
    for k, field in enumerate(FAILURE.names):
        lines += [
            f"  %from.{field} = {_word('%block', RECORD_WORD + k)}",
            f"  %own.{field} = load i64, ptr %from.{field}",
            f"  %to.{field} = {_word('%record', k)}",
        ]
        value = f"%own.{field}"
        if field == "site":
            lines.append("  %site = add i64 %own.site, %first")
            value = "%site"
        lines.append(f"  store i64 {value}, ptr %to.{field}")
    return lines
