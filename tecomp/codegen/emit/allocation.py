"""Stack and heap allocation of buffers, with overflow-safe sizes."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any

from tecomp.codegen.emit.expr import emit
from tecomp.codegen.llvm.ir_builder import Code
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


def bytes_of(code: Code, buffer: Buffer, most: int) -> tuple[str, str]:
    """The bytes of a buffer with symbolic extents, about, and whether that is no more than `most`.

    Sizes are whole numbers of 64 bits: their products wrap, and seem to fit into memory then.
    """
    total: Expr = Const(float(buffer.dtype.bytes), _DOUBLE)
    for extent in buffer.shape:
        factor = Const(float(extent), _DOUBLE) if isinstance(extent, int) else _estimate(extent)
        total = binary(BinOp.MUL, total, binary(BinOp.MAX, factor, Const(0.0, _DOUBLE)))
    fits = emit(code, Compare(CmpOp.LE, total, Const(float(most), _DOUBLE)))
    size = code.call("i64", "llvm.fptosi.sat.i64.f64", [("double", emit(code, total))])
    return size, fits


def _estimate(extent: Expr) -> Expr:
    """An integer expression, computed in a type that does not wrap."""
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
"""What one function may take of its stack; threads have as little as 512 KiB on some systems."""
_MOST = 2**56
_TOO_MANY = str(2**62 + 2**61)
"""Bytes that no address reaches, with and without what rows take beside their elements."""
_STACK_ALIGNMENT = 64


@dataclass(frozen=True, slots=True)
class Place:
    """Where an allocation is; on the heap, `after` is where to go on if there is no memory."""

    address: str
    after: str | None = None


def open_allocation(code: Code, buffer: Buffer) -> Place:
    """Get memory; what is emitted until `close_allocation` runs only if there is some."""
    known = [extent for extent in buffer.shape if isinstance(extent, int)]
    if len(buffer.shape) <= 1 and len(known) == len(buffer.shape):
        size = max(prod(known), 1) * buffer.dtype.bytes
        if size <= STACK_BUFFER_BYTES and code.stack_bytes + size <= STACK_TOTAL_BYTES:
            return _on_stack(code, buffer, size)
    code.aligned[buffer.data] = ALIGNMENT
    words = [_product(code, buffer.shape[-1:], buffer.dtype.bytes)]
    if len(buffer.shape) > 1:
        words.insert(0, _product(code, buffer.shape[:-1], 1))
    needed, words = _bounded(code, buffer, words)
    name = "allocate" if len(words) == 1 else "allocate_rows"
    address = call_runtime(code, name, [f"i64 {word}" for word in words], buffer.name)
    missing, there, after = code.name("missing"), code.name("there"), code.name("after")
    code.branch(code.op(f"icmp eq ptr {address}, null"), missing, there)
    code.label(missing)
    record(code, OUT_OF_MEMORY, str(code.module.site(buffer.name)), needed, "0")
    code.jump(after)
    code.label(there)
    code.on_heap.append(address)
    return Place(address, after)


def _bounded(code: Code, buffer: Buffer, words: list[str]) -> tuple[str, list[str]]:
    """The bytes of a buffer, and rows and bytes to ask for: too many where these wrapped."""
    extents = [extent for extent in buffer.shape if isinstance(extent, int)]
    if len(extents) == len(buffer.shape):
        size = prod(extents) * buffer.dtype.bytes
        if size <= _MOST:
            return str(size), words
        return str(min(size, 2**63 - 1)), [*("1" for _ in words[1:]), _TOO_MANY]
    size_operand, fits = bytes_of(code, buffer, _MOST)
    row = code.op(f"select i1 {fits}, i64 {words[-1]}, i64 {_TOO_MANY}")
    return size_operand, [
        *(code.op(f"select i1 {fits}, i64 {rows}, i64 1") for rows in words[:-1]), row
    ]


def close_allocation(code: Code, place: Place) -> None:
    """Give the memory back."""
    if place.after is None:
        code.do(f"call void @llvm.lifetime.end.p0(ptr {place.address})")
        return
    code.on_heap.pop()
    call_runtime(code, "release", [f"ptr {place.address}"])
    code.jump(place.after)
    code.label(place.after)


def _on_stack(code: Code, buffer: Buffer, size: int) -> Place:
    code.stack_bytes += size
    address = f"%{code.name(buffer.name)}"
    code.on_stack[address] = size
    code.aligned[buffer.data] = _STACK_ALIGNMENT
    code.allocas.append(f"{address} = alloca [{size} x i8], align {_STACK_ALIGNMENT}")
    code.module.declare("void", "llvm.lifetime.start.p0", ["ptr"])
    code.module.declare("void", "llvm.lifetime.end.p0", ["ptr"])
    code.do(f"call void @llvm.lifetime.start.p0(ptr {address})")
    return Place(address)


def _product(code: Code, shape: tuple[Extent, ...], factor: int) -> str:
    """Extents multiplied together; a negative extent counts as 0."""
    result = str(factor * prod(n for n in shape if isinstance(n, int)))
    for extent in shape:
        if isinstance(extent, int):
            continue
        value = emit(code, index_value(extent))
        positive = code.call("i64", "llvm.smax.i64", [("i64", value), ("i64", "0")])
        result = code.op(f"mul i64 {result}, {positive}")
    return result
