"""Emit calls of external functions.

A C function receives addresses and numbers. A callback to Python receives the address of a block of
words with the layout of `tecomp.ir.extern.binding`. If a call fails, or if another failure was
recorded before, the function releases its memory and returns.
"""

from __future__ import annotations

from typing import Any

from tecomp.codegen.emit.expr import emit, run_rule
from tecomp.codegen.llvm.ir_builder import FunctionBuilder, begin_if, end_if
from tecomp.codegen.memory.vector_access import end_function
from tecomp.codegen.ops.arithmetic import cast, number_argument
from tecomp.codegen.ops.bounds_checks import check_axis, record
from tecomp.codegen.runtime.runtime_structs import RAISED, call_runtime
from tecomp.ir.arith.extents import start_and_strides
from tecomp.ir.arith.simplify import simplify
from tecomp.ir.extern.binding import words_of
from tecomp.ir.extern.registry import CallSignature, callee_of
from tecomp.ir.nodes.dtype import INT64, DType
from tecomp.ir.nodes.expr import Expr, logical_and
from tecomp.ir.nodes.stmt import ArrayArgument, CallingConvention, ExternCall, Stmt
from tecomp.ir.traversal.rewrite import contains

_DOUBLE = DType("float64")


def has_outside_calls(root: Stmt) -> bool:
    """Return whether a statement calls external functions."""
    return contains(ExternCall, root)


def emit_outside_call(code: FunctionBuilder, call: ExternCall) -> None:
    """Emit a call of an external function."""
    code.memo = [{}]
    if code.module.options.check_bounds:
        for array in call.arrays:
            _check_ends(code, array)
    emit_failure_check(code)
    callee = callee_of(call, code.module.name)
    symbol = code.module.outside(callee)
    if call.convention is CallingConvention.C:
        pairs = [_c_argument(code, item) for item in call.arguments if not isinstance(item, str)]
        kinds = ", ".join(kind for kind, _ in pairs)
        code.module.declarations.setdefault(f"declare void @{symbol}({kinds})")
        code.do(f"call void @{symbol}({', '.join(f'{kind} {value}' for kind, value in pairs)})")
        return
    words = _words(code, call, callee)
    number = code.op(f"call i64 @{symbol}(ptr {words})")
    failed, after = code.name("failed"), code.name("after")
    code.branch(code.op(f"icmp ne i64 {number}, 0"), failed, after)
    code.label(failed)
    site = code.module.site(f"the call of {call.function}")
    record(code, RAISED, str(site), number, "0")
    _stop(code)
    code.label(after)


def emit_failure_check(code: FunctionBuilder) -> None:
    """Emit an early return if a failure was recorded in this or another thread."""
    kind = code.op("load atomic i64, ptr %record monotonic, align 8")
    stop, after = code.name("stop"), code.name("after")
    code.branch(code.op(f"icmp ne i64 {kind}, 0"), stop, after)
    code.label(stop)
    _stop(code)
    code.label(after)


def _stop(code: FunctionBuilder) -> None:
    for address in reversed(code.on_heap):
        call_runtime(code, "release", [f"ptr {address}"])
    end_function(code)


def _check_ends(code: FunctionBuilder, array: ArrayArgument) -> None:
    """Emit bounds checks of the first and last element of an array that may be empty."""
    start, strides = start_and_strides(array)
    *rows, first = start
    steps = zip(array.shape, strides, strict=True)
    last = simplify(sum(((extent - 1) * stride for extent, stride in steps), first))
    nonempty = logical_and(*(extent > 0 for extent in array.shape))
    guard = begin_if(code, emit(code, nonempty))
    for index in (first, last):
        for axis, position in enumerate((*rows, index)):
            run_rule(code, check_axis(code, array.element.buffer, axis, position, None))
    end_if(code, guard)


def _c_argument(code: FunctionBuilder, argument: Expr | Stmt) -> tuple[str, str]:
    """Return type and operand of an argument in the C calling convention."""
    if isinstance(argument, ArrayArgument):
        start, _ = start_and_strides(argument)
        return "ptr", _address(code, argument, start)
    assert isinstance(argument, Expr)
    return number_argument(code, argument.dtype, emit(code, argument))


def _words(code: FunctionBuilder, call: ExternCall, callee: CallSignature) -> str:
    """Store the words of a callback and return their address."""
    code.module.declarations.setdefault(f"declare i64 @{code.module.outside(callee)}(ptr)")
    words = f"%{code.name('words')}"
    code.allocas.append(f"{words} = alloca [{max(words_of(callee), 1)} x i64], align 8")
    values = [value for argument in call.arguments for value in _handed_over(code, argument)]
    for number, (kind, value) in enumerate(values):
        slot = code.op(f"getelementptr i64, ptr {words}, i64 {number}")
        code.do(f"store {kind} {value}, ptr {slot}, align 8")
    return words


def _handed_over(code: FunctionBuilder, argument: Any) -> list[tuple[str, str]]:
    if isinstance(argument, str):
        return []
    if not isinstance(argument, ArrayArgument):
        dtype, value = argument.dtype, emit(code, argument)
        if dtype.is_float:
            return [("double", cast(code, value, dtype, _DOUBLE))]
        return [("i64", cast(code, value, dtype, INT64))]
    start, strides = start_and_strides(argument)
    numbers = (*argument.shape, *strides)
    return [
        ("ptr", _address(code, argument, start)), *(("i64", emit(code, n)) for n in numbers)
    ]


def _address(code: FunctionBuilder, array: ArrayArgument, start: tuple[Expr, ...]) -> str:
    """Emit the address of the first element, which may be in a separately allocated row."""
    buffer = array.element.buffer
    base = code.value_of(buffer.data)
    *rows, first = (emit(code, index) for index in start)
    for row in rows:
        slot = code.op(f"getelementptr ptr, ptr {base}, i64 {row}")
        base = code.op(f"load ptr, ptr {slot}, align 8")
    offset = code.op(f"mul i64 {first}, {buffer.dtype.bytes}")
    return code.op(f"getelementptr i8, ptr {base}, i64 {offset}")
