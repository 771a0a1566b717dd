"""C interface of an exported function: parameters, argument checks in LLVM IR, and header.

The function checks its arguments, fills an argument block as calls from Python do, and runs the
compiled code. It returns 0, or `kind + 256 * number`: `number` is the position of an argument from
1 on, the position of a run-time check, or 0.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod

from tecomp.codegen.emit.allocation import bytes_of
from tecomp.codegen.emit.expr import emit
from tecomp.codegen.llvm.ir_builder import (
    FunctionBuilder,
    ModuleBuilder,
    Options,
    PassSelection,
    register_type,
)
from tecomp.codegen.runtime.runtime_structs import (
    FIRST_ARGUMENT_WORD,
    OUT_OF_BOUNDS,
    RECORD_WORD,
)
from tecomp.errors import CallError
from tecomp.export.runtime_library import rows_text
from tecomp.ir.nodes.dtype import DType
from tecomp.ir.nodes.expr import Expr, Var, integer_range
from tecomp.ir.nodes.stmt import Buffer, PrimFunc

NULL_POINTER, MISALIGNED, SIZE, OVERLAP, MEMORY, INDEX, PROCESSOR, THREADS, CLOSED, FILE = range(
    1, 11)
ERROR_NAMES = (
    "NULL_POINTER", "MISALIGNED", "INVALID_SIZE", "OVERLAP", "OUT_OF_MEMORY", "INDEX_OUT_OF_BOUNDS",
    "UNSUPPORTED_CPU", "INVALID_THREADS", "NOT_OPEN", "INVALID_FILE",
)
"""Names of the error kinds in headers; the first kind is 1."""
_NUMBER = 256
_MAX_BYTES = 2**56
_MAX_THREADS = 256

_KEYWORD_NAMES = """\
    alignas alignof and and_eq asm atomic_cancel atomic_commit atomic_noexcept auto bitand bitor
    bool break case catch char char8_t char16_t char32_t class compl concept const consteval
    constexpr constinit const_cast continue co_await co_return co_yield decltype default delete
    do double dynamic_cast else enum explicit export extern false float for friend goto if
    inline int long main mutable namespace new noexcept not not_eq nullptr operator or or_eq
    private protected public register reinterpret_cast requires restrict return short signed
    sizeof static static_assert static_cast struct switch template this thread_local throw true
    try typedef typeid typename typeof union unsigned using virtual void volatile wchar_t while
    xor xor_eq"""
_KEYWORDS = frozenset(_KEYWORD_NAMES.split())
_IDENTIFIER = re.compile(r"[A-Za-z][A-Za-z0-9_]*")


@dataclass(frozen=True, slots=True)
class ExportedArgument:
    """Argument of an exported function.

    Attributes:
        name: Name in C.
        buffer: Array as callers pass it; None for a number.
        physical: Array as the code accesses it; None for a number.
        var: Number; None for an array.
        declared: Dtype that a number was declared with.
        is_written: Whether the function writes the array.
        note: Layout of the array, for the header.
    """

    name: str
    buffer: Buffer | None = None
    physical: Buffer | None = None
    var: Var | None = None
    declared: DType | None = None
    is_written: bool = False
    note: str = ""

    @property
    def c_type(self) -> str:
        """C type of the parameter."""
        if self.buffer is None:
            assert self.var is not None
            return c_type(self.var.dtype)
        target = c_type(self.buffer.dtype.scalar)
        return f"{target} *" if self.is_written else f"const {target} *"

    @property
    def has_rows(self) -> bool:
        """Whether the code takes a table of row addresses."""
        return self.physical is not None and self.physical.index_count > 1


@dataclass(frozen=True, slots=True)
class ExportedFunction:
    """C function of a kernel or program.

    Attributes:
        name: Name in C.
        arguments: Parameters in order; sizes that no parameter states follow the others.
        sites: Texts of the run-time checks.
        is_parallel: Whether the code uses several threads.
        constants: Symbol of the constants of a program, whose address precedes the sizes among the
            words of the argument block; "" for kernels.
        is_mapped: Whether the symbol is a variable with the address of mapped constants.
    """

    name: str
    arguments: tuple[ExportedArgument, ...]
    sites: tuple[str, ...]
    is_parallel: bool
    constants: str = ""
    is_mapped: bool = False

    @property
    def prototype(self) -> str:
        """Declaration in C."""
        parameters = [
            f"{arg.c_type}{'' if arg.c_type.endswith('*') else ' '}{arg.name}"
            for arg in self.arguments
        ]
        return f"int {self.name}({', '.join(parameters) or 'void'})"


def c_type(dtype: DType) -> str:
    """Return the C type of an element.

    >>> c_type(DType("float32")), c_type(DType("bfloat16")), c_type(DType("bool"))
    ('float', 'uint16_t', 'uint8_t')
    """
    if dtype.is_bool:
        return "uint8_t"
    if dtype.is_integer:
        sign = "u" if str(dtype).startswith("u") else ""
        return f"{sign}int{8 * dtype.bytes}_t"
    known = {"float32": "float", "float64": "double"}
    return known.get(str(dtype), f"uint{8 * dtype.bytes}_t")


def function_name(name: str) -> str:
    """Return the name of a C function after checking it.

    Raises:
        CallError: If the name is not an identifier, or is reserved in C or C++.

    >>> function_name("gemm")
    'gemm'
    """
    if not _IDENTIFIER.fullmatch(name) or name in _KEYWORDS:
        raise CallError(
            "export: {name!r} is not usable as the name of a C function; pass name='...' to "
            "`tecomp.build` or to `export`",
            kind="invalid-value", name=name,
        )
    return name


def arguments_of_function(
    head: PrimFunc, signature: Sequence[Buffer | Var], written: Sequence[Var],
    notes: Mapping[int, str],
) -> tuple[ExportedArgument, ...]:
    """Return the arguments of a compiled function.

    Args:
        head: Compiled function; its statements are not used.
        signature: Parameters as callers pass them.
        written: Data variables of the arrays that the function writes.
        notes: Layouts of arrays by position.
    """
    used: set[str] = set()
    found: list[ExportedArgument] = []
    for position, (logical, physical) in enumerate(zip(signature, head.params, strict=True)):
        name = _parameter_name(logical.name, used)
        if isinstance(physical, Buffer) and isinstance(logical, Buffer):
            found.append(ExportedArgument(
                name, logical, physical, is_written=physical.data in written,
                note=notes.get(position, "")))
        elif isinstance(physical, Var):
            found.append(ExportedArgument(name, var=physical, declared=logical.dtype))
    found += [
        ExportedArgument(_parameter_name(var.name, used), var=var, declared=var.dtype)
        for var in head.sizes
    ]
    return tuple(found)


def _parameter_name(text: str, used: set[str]) -> str:
    name = re.sub(r"[^A-Za-z0-9_]", "_", text)
    name = name if _IDENTIFIER.match(name) else f"arg_{name}"
    while name in _KEYWORDS or name in used:
        name += "_"
    used.add(name)
    return name


@dataclass(frozen=True, slots=True)
class CodeVariant:
    """Compiled code for one CPU.

    Attributes:
        entry: Symbol of the function that takes the argument block.
        level: Level that the processor must have, from 1 on; 0 for no check.
    """

    entry: str
    level: int = 0


def function_text(
    function: ExportedFunction, variants: Sequence[CodeVariant], runtime: Mapping[str, str],
) -> str:
    """Return the LLVM IR of the C functions of a kernel.

    Args:
        function: Exported function.
        variants: Code for each CPU, the highest level first.
        runtime: Symbols of runtime functions; without `run` the code needs no memory or threads.
    """
    module = ModuleBuilder(function.name, Options(), [])
    code = FunctionBuilder(module, {}, passes=PassSelection.NONE)
    errors: dict[int, str] = {}
    parameters = []
    for argument in function.arguments:
        operand = f"%{code.name(f'{argument.name}.given')}"
        if argument.var is None:
            parameters.append(f"ptr {operand}")
        else:
            parameters.append(f"{_parameter_type(argument.var.dtype)} {operand}")
            code.env[argument.var] = _value(code, argument.var.dtype, operand)
    _check_numbers(code, function, errors)
    constants = _constants_address(code, function, errors)
    starts = _check_arrays(code, function, errors)
    _check_overlaps(code, function, starts, errors)
    block = _fill_block(code, function, starts, constants)
    status = _call(code, function, variants, runtime, block, errors)
    _return_status(code, function, status, block, errors)
    wrapper = code.function("i32", function.name, ", ".join(parameters))
    texts = [_error_text(function.name, errors)]
    if any(argument.has_rows for argument in function.arguments):
        positions = [k for k, argument in enumerate(function.arguments) if argument.has_rows]
        count, site = len(function.arguments), len(function.sites)
        texts += [rows_text(v.entry, positions, count, site, runtime) for v in variants]
    if "set_threads" in runtime:
        texts.append(_threads_text(function.name, runtime))
    declarations = "".join(f"{line}\n" for line in module.declarations)
    helpers = "\n".join(helper.text() for helper in module.functions.values())
    text = "\n".join([wrapper.text(), helpers, *texts, declarations])
    return text.replace(" #0 {", " #2 {")


def _parameter_type(dtype: DType) -> str:
    if dtype.is_bool:
        return "i8"
    return register_type(dtype) if str(dtype) in ("float32", "float64") else f"i{8 * dtype.bytes}"


def _value(code: FunctionBuilder, dtype: DType, operand: str) -> str:
    """Return the value of a number as the code computes with it; a bool is nonzero."""
    return code.op(f"icmp ne i8 {operand}, 0") if dtype.is_bool else operand


def _fail_if(code: FunctionBuilder, condition: str, status: int) -> None:
    """Return an error code if a condition holds."""
    failed, after = code.name("failed"), code.name("after")
    code.branch(condition, failed, after)
    code.label(failed)
    code.do(f"ret i32 {status}")
    code.label(after)


def _check_numbers(
    code: FunctionBuilder, function: ExportedFunction, errors: dict[int, str]
) -> None:
    """Check sizes against their declared dtypes and bounds."""
    for number, argument in enumerate(function.arguments, 1):
        var = argument.var
        if var is None or not var.dtype.is_integer or var.dtype.is_bool:
            continue
        kind, value = register_type(var.dtype), code.env[var]
        texts, conditions = [], []
        declared = argument.declared or var.dtype
        low, high = integer_range(declared if declared.is_integer else var.dtype)
        own_low, own_high = integer_range(var.dtype)
        bounds = var.bounds
        if bounds is not None:
            texts.append(f"must be {bounds}")
            low = max(low, bounds.minimum)
            high = high if bounds.maximum is None else min(high, bounds.maximum)
            if bounds.multiple > 1:
                rest = code.op(f"srem {kind} {value}, {bounds.multiple}")
                conditions.append(code.op(f"icmp ne {kind} {rest}, 0"))
        sign = "u" if str(var.dtype).startswith("u") else "s"
        if low > own_low:
            conditions.append(code.op(f"icmp {sign}lt {kind} {value}, {low}"))
        if high < own_high:
            conditions.append(code.op(f"icmp {sign}gt {kind} {value}, {high}"))
        if not texts:
            texts.append(f"must be between {low} and {high}")
        for condition in conditions:
            status = SIZE + _NUMBER * number
            errors[status] = f"argument {number} ({argument.name}) {', '.join(texts)}"
            _fail_if(code, condition, status)


@dataclass(frozen=True, slots=True)
class _Start:
    """First address of an array, and its size in bytes; None with declared strides."""

    address: str
    bytes: str | None


def _check_arrays(
    code: FunctionBuilder, function: ExportedFunction, errors: dict[int, str]
) -> list[_Start | None]:
    """Check pointers and sizes; return the first address of each array."""
    starts: list[_Start | None] = []
    for number, argument in enumerate(function.arguments, 1):
        buffer = argument.buffer
        if buffer is None:
            starts.append(None)
            continue
        pointer, where = f"%{argument.name}.given", f"argument {number} ({argument.name})"
        size = _size_in_bytes(code, argument, number, errors)
        missing = code.op(f"icmp eq ptr {pointer}, null")
        if not size.isdecimal():
            some = code.op(f"icmp ne i64 {size}, 0")
            missing = code.op(f"and i1 {missing}, {some}")
        if size != "0":
            errors[NULL_POINTER + _NUMBER * number] = f"{where} is a null pointer"
            _fail_if(code, missing, NULL_POINTER + _NUMBER * number)
        step = buffer.dtype.scalar.bytes
        if step > 1:
            address = code.op(f"ptrtoint ptr {pointer} to i64")
            rest = code.op(f"and i64 {address}, {step - 1}")
            errors[MISALIGNED + _NUMBER * number] = f"{where} is not aligned to {step} bytes"
            _fail_if(code, code.op(f"icmp ne i64 {rest}, 0"), MISALIGNED + _NUMBER * number)
        if buffer.has_offset:
            offset = _operand(code, buffer.elem_offset)
            distance = code.op(f"mul i64 {offset}, {step}")
            pointer = code.op(f"getelementptr i8, ptr {pointer}, i64 {distance}")
        starts.append(_Start(pointer, None if buffer.strides is not None else size))
    return starts


def _check_overlaps(
    code: FunctionBuilder, function: ExportedFunction, starts: Sequence[_Start | None],
    errors: dict[int, str],
) -> None:
    """Check that compact arrays that are written overlap no other compact array."""
    for number, (argument, start) in enumerate(zip(function.arguments, starts, strict=True), 1):
        for other, another in enumerate(starts, 1):
            is_ordered = other < number and function.arguments[other - 1].is_written
            if not argument.is_written or other == number or is_ordered:
                continue
            if start and another and start.bytes and another.bytes:
                _check_overlap(code, start, another, OVERLAP + _NUMBER * number)
                errors[OVERLAP + _NUMBER * number] = (
                    f"argument {number} ({argument.name}) is written and overlaps another argument")


def _size_in_bytes(
    code: FunctionBuilder, argument: ExportedArgument, number: int, errors: dict[int, str]
) -> str:
    """Return the size of a compact array, and check its extents if they are symbolic."""
    buffer = argument.buffer
    assert buffer is not None
    symbolic = [extent for extent in buffer.shape if isinstance(extent, Expr)]
    status = SIZE + _NUMBER * number
    for extent in symbolic:
        negative = code.op(f"icmp slt i64 {_operand(code, extent)}, 0")
        errors[status] = f"the sizes give argument {number} ({argument.name}) an invalid extent"
        _fail_if(code, negative, status)
    if not symbolic:
        return str(buffer.dtype.bytes * prod(n for n in buffer.shape if isinstance(n, int)))
    size, fits = bytes_of(code, buffer, _MAX_BYTES)
    _fail_if(code, code.op(f"xor i1 {fits}, true"), status)
    return size


def _operand(code: FunctionBuilder, value: int | Expr) -> str:
    """Emit a size as a 64-bit integer."""
    if isinstance(value, int):
        return str(value)
    code.memo = [{}]
    operand = emit(code, value)
    kind = register_type(value.dtype)
    return operand if kind == "i64" else code.op(f"sext {kind} {operand} to i64")


def _check_overlap(code: FunctionBuilder, a: _Start, b: _Start, status: int) -> None:
    first, second = (code.op(f"ptrtoint ptr {start.address} to i64") for start in (a, b))
    first_end = code.op(f"add i64 {first}, {a.bytes}")
    second_end = code.op(f"add i64 {second}, {b.bytes}")
    begins = code.op(f"icmp ult i64 {first}, {second_end}")
    ends = code.op(f"icmp ult i64 {second}, {first_end}")
    both = code.op(f"and i1 {begins}, {ends}")
    for size in (a.bytes, b.bytes):
        both = code.op(f"and i1 {both}, {code.op(f'icmp ne i64 {size}, 0')}")
    _fail_if(code, both, status)


def _fill_block(
    code: FunctionBuilder, function: ExportedFunction, starts: Sequence[_Start | None],
    constants: str,
) -> str:
    """Store the argument block; two words for each table of rows follow the arguments."""
    tables = [argument for argument in function.arguments if argument.has_rows]
    words = FIRST_ARGUMENT_WORD + len(function.arguments) + 2 * len(tables) + 1
    block = f"%{code.name('block')}"
    code.allocas.append(f"{block} = alloca [{words} x i64], align 64")
    for word in range(FIRST_ARGUMENT_WORD):
        _store(code, block, word, "i64", "0")
    word = FIRST_ARGUMENT_WORD
    for argument, start in zip(function.arguments, starts, strict=True):
        if start is not None:
            _store(code, block, word, "ptr", start.address)
        elif argument.var is not None:
            # Programs have no numbers but sizes, which follow the constants.
            position = word + 1 if constants else word
            _store(code, block, position, "i64", _word(code, argument.var))
        word += 1
    if constants:
        arrays = sum(start is not None for start in starts)
        _store(code, block, FIRST_ARGUMENT_WORD + arrays, "ptr", constants)
    word = FIRST_ARGUMENT_WORD + len(function.arguments)
    for argument in tables:
        assert argument.physical is not None
        *outer, row = argument.physical.shape
        count = "1"
        for axis in outer:
            count = code.op(f"mul i64 {count}, {_operand(code, axis)}")
        pitch = code.op(f"mul i64 {_operand(code, row)}, {argument.physical.dtype.bytes}")
        _store(code, block, word, "i64", count)
        _store(code, block, word + 1, "i64", pitch)
        word += 2
    return block


def _constants_address(
    code: FunctionBuilder, function: ExportedFunction, errors: dict[int, str]
) -> str:
    """Return the address of the constants of a program; "" for kernels."""
    if not function.constants or not function.is_mapped:
        return f"@{function.constants}" if function.constants else ""
    address = code.op(f"load atomic ptr, ptr @{function.constants} acquire, align 8")
    errors[CLOSED] = f"the constants are not loaded; call {function.name}_open first"
    _fail_if(code, code.op(f"icmp eq ptr {address}, null"), CLOSED)
    return address


def _store(code: FunctionBuilder, block: str, word: int, kind: str, operand: str) -> None:
    slot = code.op(f"getelementptr i64, ptr {block}, i64 {word}")
    code.do(f"store {kind} {operand}, ptr {slot}, align 8")


def _word(code: FunctionBuilder, var: Var) -> str:
    """Return the word of a number in the argument block."""
    kind, operand = _parameter_type(var.dtype), code.env[var]
    if var.dtype.is_bool:
        return code.op(f"zext i1 {operand} to i64")
    if kind in ("float", "double"):
        kind, operand = f"i{var.dtype.bits}", code.op(
            f"bitcast {kind} {operand} to i{var.dtype.bits}")
    return operand if kind == "i64" else code.op(f"sext {kind} {operand} to i64")


def _call(
    code: FunctionBuilder, function: ExportedFunction, variants: Sequence[CodeVariant],
    runtime: Mapping[str, str], block: str, errors: dict[int, str],
) -> str:
    """Run the code of the highest supported level; return the failure kind."""
    if "run" in runtime:
        code.do(f"call void @{runtime['prepare']}()")
    level = ""
    if any(variant.level for variant in variants):
        level = code.op(f"call i32 @{runtime['cpu_level']}()")
    has_rows = any(argument.has_rows for argument in function.arguments)
    results: list[tuple[str, str]] = []
    end = code.name("end")
    for variant in variants:
        following = ""
        if variant.level:
            run, following = code.name("run"), code.name("lower")
            code.branch(code.op(f"icmp uge i32 {level}, {variant.level}"), run, following)
            code.label(run)
        entry = f"{variant.entry}.rows" if has_rows else variant.entry
        if "run" in runtime:
            call = f"call i32 @{runtime['run']}(ptr @{entry}, ptr {block})"
        else:
            call = f"call i32 @{entry}(ptr {block})"
        results.append((code.op(call), code.block))
        code.jump(end)
        if following:
            code.label(following)
    if variants[-1].level:
        errors[PROCESSOR] = "the processor lacks instructions that the code requires"
        code.do(f"ret i32 {PROCESSOR}")
    code.label(end)
    choices = ", ".join(f"[ {operand}, %{block} ]" for operand, block in results)
    return code.op(f"phi i32 {choices}")


def _return_status(
    code: FunctionBuilder, function: ExportedFunction, status: str, block: str,
    errors: dict[int, str],
) -> None:
    """Return the error code of a failure that the code recorded, or 0."""
    failed, done = code.name("failed"), code.name("done")
    code.branch(code.op(f"icmp ne i32 {status}, 0"), failed, done)
    code.label(done)
    code.do("ret i32 0")
    code.label(failed)
    slot = code.op(f"getelementptr i64, ptr {block}, i64 {RECORD_WORD + 1}")
    site = code.op(f"trunc i64 {code.op(f'load i64, ptr {slot}')} to i32")
    number = code.op(f"mul i32 {code.op(f'add i32 {site}, 1')}, {_NUMBER}")
    is_index = code.op(f"icmp eq i32 {status}, {OUT_OF_BOUNDS}")
    kind = code.op(f"select i1 {is_index}, i32 {INDEX}, i32 {MEMORY}")
    code.do(f"ret i32 {code.op(f'add i32 {number}, {kind}')}")
    for position, text in enumerate(function.sites, 1):
        errors[INDEX + _NUMBER * position] = f"an index is out of bounds: {text}"
        errors[MEMORY + _NUMBER * position] = f"out of memory: {text}"
    if any(argument.has_rows for argument in function.arguments):
        position = len(function.sites) + 1
        errors[MEMORY + _NUMBER * position] = "out of memory: row addresses"


def _threads_text(name: str, runtime: Mapping[str, str]) -> str:
    return f"""\
define i32 @{name}_set_threads(i32 %count) #2 {{
entry:
  %is.positive = icmp sgt i32 %count, 0
  %is.small = icmp sle i32 %count, {_MAX_THREADS}
  %is.valid = and i1 %is.positive, %is.small
  br i1 %is.valid, label %set, label %invalid
set:
  %wide = sext i32 %count to i64
  call void @{runtime["set_threads"]}(i64 %wide)
  ret i32 0
invalid:
  ret i32 {THREADS}
}}
define i32 @{name}_threads() #2 {{
entry:
  %count = call i64 @{runtime["thread_count"]}()
  %short = trunc i64 %count to i32
  ret i32 %short
}}
"""


def _error_text(name: str, errors: Mapping[int, str]) -> str:
    """Return the function that describes an error code."""
    texts = {0: "no error", **errors, THREADS: f"the number of threads must be 1 to {_MAX_THREADS}"}
    if CLOSED in errors:
        texts[FILE] = "the file of constants cannot be mapped, or belongs to another program"
    constants, cases, blocks = [], [], []
    for status, text in {**texts, -1: "unknown error code"}.items():
        number = "unknown" if status < 0 else str(status)
        content = text.encode() + b"\0"
        escaped = "".join(
            chr(byte) if chr(byte).isascii() and chr(byte).isalnum() else f"\\{byte:02X}"
            for byte in content
        )
        constants.append(
            f"@{name}.text.{number} = private unnamed_addr constant [{len(content)} x i8] "
            f'c"{escaped}"')
        blocks.append(f"text.{number}:\n  ret ptr @{name}.text.{number}")
        if status >= 0:
            cases.append(f"    i32 {status}, label %text.{status}")
    return "\n".join([
        *constants, f"define ptr @{name}_error_text(i32 %status) #2 {{", "entry:",
        "  switch i32 %status, label %text.unknown [", *cases, "  ]", *blocks, "}", "",
    ])
