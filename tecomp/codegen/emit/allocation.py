"""Stack and heap allocation of buffers, with overflow-safe sizes."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any

from tecomp.codegen.emit.expr import emit
from tecomp.codegen.llvm.ir_builder import FunctionBuilder
from tecomp.codegen.ops.bounds_checks import record
from tecomp.codegen.runtime.runtime_structs import ALIGNMENT, OUT_OF_MEMORY, call_runtime
from tecomp.ir.nodes.dtype import DType
from tecomp.ir.nodes.expr import (
    Binary,
    BinOp,
    Cast,
    CmpOp,
    Compare,
    Const,
    Expr,
    Select,
    binary,
    index_value,
)
from tecomp.ir.nodes.stmt import Buffer, Extent
from tecomp.ir.traversal.rewrite import fold

_DOUBLE = DType("float64")
_EXACT_ENOUGH = (BinOp.ADD, BinOp.SUB, BinOp.MUL, BinOp.MIN, BinOp.MAX)


def bytes_of(code: FunctionBuilder, buffer: Buffer, limit: int) -> tuple[str, str]:
    """Emit the approximate size of a buffer in bytes, and whether it is at most `limit`.

    The size is computed in float64, because products of 64-bit integers wrap around and would seem
    to fit into memory.
    """
    total: Expr = Const(float(buffer.dtype.bytes), _DOUBLE)
    for extent in buffer.shape:
        factor = Const(float(extent), _DOUBLE) if isinstance(extent, int) else _estimate(extent)
        total = binary(BinOp.MUL, total, binary(BinOp.MAX, factor, Const(0.0, _DOUBLE)))
    fits = emit(code, Compare(CmpOp.LE, total, Const(float(limit), _DOUBLE)))
    size = code.call("i64", "llvm.fptosi.sat.i64.f64", [("double", emit(code, total))])
    return size, fits


def _estimate(extent: Expr) -> Expr:
    """Convert an integer expression to float64, which does not wrap around."""
    return fold(extent, _in_floats, _operands)


def _operands(node: Any) -> tuple[Expr, ...]:
    match node:
        case Binary(op, a, b) if op in _EXACT_ENOUGH:
            return a, b
        case Binary(BinOp.FLOORDIV, a, Const(value)) if value > 0:
            return a, node.b
        case Select(_, a, b):
            return a, b
    return ()


def _in_floats(node: Any, parts: list[Expr]) -> Expr:
    match node:
        case Const(value):
            return Const(float(value), _DOUBLE)
        case Binary(BinOp.FLOORDIV) if parts:
            return binary(BinOp.DIV, *parts)
        case Binary(op) if parts:
            return binary(op, *parts)
        case Select(condition):
            return Select(condition, *parts)
    return Cast(_DOUBLE, node)


STACK_BUFFER_BYTES = 16 * 1024
STACK_TOTAL_BYTES = 256 * 1024
"""Maximum stack bytes of one function; some systems give threads only 512 KiB."""
_MAX_BYTES = 2**56
_UNADDRESSABLE_BYTES = str(2**62 + 2**61)
"""Sizes beyond the address space, without and with the overhead of rows."""
_STACK_ALIGNMENT = 64


@dataclass(frozen=True, slots=True)
class AllocationBlock:
    """Address of an allocation; on the heap, `after` is the label to jump to without memory."""

    address: str
    after: str | None = None


def begin_allocation(code: FunctionBuilder, buffer: Buffer) -> AllocationBlock:
    """Allocate memory; code up to `end_allocation` runs only if the allocation succeeds."""
    known = [extent for extent in buffer.shape if isinstance(extent, int)]
    if len(buffer.shape) <= 1 and len(known) == len(buffer.shape):
        size = max(prod(known), 1) * buffer.dtype.bytes
        if size <= STACK_BUFFER_BYTES and code.stack_bytes + size <= STACK_TOTAL_BYTES:
            return _on_stack(code, buffer, size)
    code.aligned[buffer.data] = ALIGNMENT
    words = [_product(code, buffer.shape[-1:], buffer.dtype.bytes)]
    if len(buffer.shape) > 1:
        words.insert(0, _product(code, buffer.shape[:-1], 1))
    needed, words = _checked_size(code, buffer, words)
    name = "allocate" if len(words) == 1 else "allocate_rows"
    address = call_runtime(code, name, [f"i64 {word}" for word in words], buffer.name)
    missing, present, after = code.name("missing"), code.name("there"), code.name("after")
    code.branch(code.op(f"icmp eq ptr {address}, null"), missing, present)
    code.label(missing)
    record(code, OUT_OF_MEMORY, str(code.module.site(buffer.name)), needed, "0")
    code.jump(after)
    code.label(present)
    code.on_heap.append(address)
    return AllocationBlock(address, after)


def _checked_size(code: FunctionBuilder, buffer: Buffer, words: list[str]) -> tuple[str, list[str]]:
    """Return the size, and the rows and bytes to request: an unsatisfiable size on overflow."""
    extents = [extent for extent in buffer.shape if isinstance(extent, int)]
    if len(extents) == len(buffer.shape):
        size = prod(extents) * buffer.dtype.bytes
        if size <= _MAX_BYTES:
            return str(size), words
        return str(min(size, 2**63 - 1)), [*("1" for _ in words[1:]), _UNADDRESSABLE_BYTES]
    size_operand, fits = bytes_of(code, buffer, _MAX_BYTES)
    row = code.op(f"select i1 {fits}, i64 {words[-1]}, i64 {_UNADDRESSABLE_BYTES}")
    return size_operand, [
        *(code.op(f"select i1 {fits}, i64 {rows}, i64 1") for rows in words[:-1]), row
    ]


def end_allocation(code: FunctionBuilder, allocation: AllocationBlock) -> None:
    """Release the memory of an allocation."""
    if allocation.after is None:
        code.do(f"call void @llvm.lifetime.end.p0(ptr {allocation.address})")
        return
    code.on_heap.pop()
    call_runtime(code, "release", [f"ptr {allocation.address}"])
    code.jump(allocation.after)
    code.label(allocation.after)


def _on_stack(code: FunctionBuilder, buffer: Buffer, size: int) -> AllocationBlock:
    code.stack_bytes += size
    address = f"%{code.name(buffer.name)}"
    code.on_stack[address] = size
    code.aligned[buffer.data] = _STACK_ALIGNMENT
    code.allocas.append(f"{address} = alloca [{size} x i8], align {_STACK_ALIGNMENT}")
    code.module.declare("void", "llvm.lifetime.start.p0", ["ptr"])
    code.module.declare("void", "llvm.lifetime.end.p0", ["ptr"])
    code.do(f"call void @llvm.lifetime.start.p0(ptr {address})")
    return AllocationBlock(address)


def _product(code: FunctionBuilder, shape: tuple[Extent, ...], factor: int) -> str:
    """Emit the product of extents and a factor; a negative extent counts as 0."""
    result = str(factor * prod(n for n in shape if isinstance(n, int)))
    for extent in shape:
        if isinstance(extent, int):
            continue
        value = emit(code, index_value(extent))
        positive = code.call("i64", "llvm.smax.i64", [("i64", value), ("i64", "0")])
        result = code.op(f"mul i64 {result}, {positive}")
    return result
