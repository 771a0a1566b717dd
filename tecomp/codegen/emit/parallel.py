"""Outline parallel loops and choose their grain size."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from tecomp.codegen.emit.extern_calls import emit_failure_check, has_outside_calls
from tecomp.codegen.llvm.ir_builder import (
    WIDEST_VECTOR_BYTES,
    FunctionBuilder,
    PassSelection,
    register_type,
)
from tecomp.codegen.llvm.pass_selection import passes_for
from tecomp.codegen.memory.vector_access import end_function
from tecomp.codegen.ops.arithmetic import cast, non_negative_bits
from tecomp.codegen.runtime.runtime_structs import call_runtime
from tecomp.compute.access_relations import Accesses
from tecomp.ir.nodes.dtype import INT64
from tecomp.ir.nodes.expr import (
    Binary,
    BinOp,
    Broadcast,
    BufferLoad,
    Call,
    Cast,
    Const,
    Expr,
    Ramp,
    Var,
)
from tecomp.ir.nodes.stmt import Allocate, Buffer, BufferStore, DeclBuffer, For, ForKind, Stmt
from tecomp.ir.traversal.rewrite import children, nodes_of, post_order, statements_in, walk

_MIN_VECTOR_OPERATIONS = 1536
"""Vector operations whose run time exceeds the cost of handing work to another thread."""
_ZERO_COST_NODES = (Var, Const, Ramp, Broadcast, Cast)


def min_iterations_per_task(body: Stmt) -> int:
    """Return the minimum number of iterations that pay for a thread (grain size).

    The result is 1 if the work of an iteration is unknown.
    """
    cost = None if has_outside_calls(body) else _operations(body)
    return 1 if cost is None else -(-_MIN_VECTOR_OPERATIONS // max(cost, 1))


def _operations(body: Stmt) -> int | None:
    """Estimate the maximum operation count of a statement; None if it depends on sizes."""
    total: dict[int, int] = {}
    for node in post_order(body, parts=statements_in):
        inside = sum([total[id(part)] for part in statements_in(node)])
        if isinstance(node, For):
            times = _upper_bound(node.extent)
            if times is None:
                return None
            inside = times * (inside + 1)
        values = [part for part in _parts(node) if not isinstance(part, Stmt)]
        total[id(node)] = inside + sum(map(_own_cost, [node, *walk(*values, parts=_parts)]))
    return total[id(body)]


def _parts(node: Any) -> Sequence[Any]:
    """Return the computed operands of a node; address arithmetic is free."""
    if isinstance(node, BufferLoad):
        return ()
    return (node.value,) if isinstance(node, BufferStore) else children(node)


def _own_cost(node: Any) -> int:
    """Return the operation count of a node without its operands."""
    if isinstance(node, BufferLoad):
        return _accesses(node, node.indices)
    if isinstance(node, BufferStore):
        return _accesses(node.value, node.indices)
    if not isinstance(node, Expr) or isinstance(node, _ZERO_COST_NODES):
        return 0
    return _registers(node) * (Accesses.FUNCTION_COST if isinstance(node, Call) else 1)


def _accesses(value: Expr, indices: tuple[Expr, ...]) -> int:
    """Return the memory operations of an access; constant addresses are registers and free."""
    if all(map(_is_constant, indices)):
        return 0
    is_apart = any(index.dtype.lanes > 1 and not _is_dense(index) for index in indices)
    return int(value.dtype.lanes) if is_apart else _registers(value)


def _registers(value: Expr) -> int:
    """Return the number of vector registers that a value occupies."""
    return -(-int(value.dtype.bytes) // WIDEST_VECTOR_BYTES)


def _is_constant(index: Expr) -> bool:
    if isinstance(index, Ramp):
        return isinstance(index.base, Const) and isinstance(index.stride, Const)
    return isinstance(index.value if isinstance(index, Broadcast) else index, Const)


def _is_dense(index: Expr) -> bool:
    if isinstance(index, Ramp):
        return isinstance(index.stride, Const) and index.stride.value == 1
    return isinstance(index, Broadcast)


def _upper_bound(extent: Expr) -> int | None:
    """Return the syntactic upper bound of an extent, or None."""
    if isinstance(extent, Const):
        return max(int(extent.value), 0)
    if isinstance(extent, Binary) and extent.op is BinOp.MIN:
        known = [n for n in map(_upper_bound, (extent.a, extent.b)) if n is not None]
        return min(known, default=None)
    return None


def outline(
    code: FunctionBuilder, stmt: For, first: str, extent: str,
    emit_stmt: Callable[[FunctionBuilder, Stmt], None]
) -> None:
    """Outline the iterations of `stmt` into a function, and run it on the thread pool."""
    captured = [var for var in variables_used(stmt.body) if var in code.env]
    module = code.module
    module.outlined += 1
    name = f"{module.name}.parallel.{module.outlined}"
    kinds = [register_type(var.dtype) for var in captured]
    layout = "{ " + ", ".join(["ptr", *kinds]) + " }"
    _define_body(code, stmt, name, captured, emit_stmt)
    _define_entry(code, name, captured, layout)
    packed = f"%{code.name('captured')}"
    code.allocas.append(f"{packed} = alloca {layout}, align 64")
    operands = ["%record", *(code.env[var] for var in captured)]
    for field, (kind, operand) in enumerate(zip(["ptr", *kinds], operands, strict=True)):
        slot = code.op(f"getelementptr {layout}, ptr {packed}, i32 0, i32 {field}")
        code.do(f"store {kind} {operand}, ptr {slot}")
    begin = cast(code, first, stmt.min.dtype, INT64)
    count = cast(code, extent, stmt.extent.dtype, INT64)
    min_iters = f"i64 {min_iterations_per_task(stmt.body)}"
    args = [f"ptr @{name}", f"ptr {packed}", f"i64 {begin}", f"i64 {count}", min_iters]
    call_runtime(code, "parallel", args)
    if has_outside_calls(stmt.body):
        emit_failure_check(code)


def _define_body(
    code: FunctionBuilder,
    stmt: For,
    name: str,
    captured: list[Var],
    emit_stmt: Callable[[FunctionBuilder, Stmt], None],
) -> None:
    """Define the body function, with one parameter for each captured value."""
    inner = FunctionBuilder(
        code.module, {}, is_outlined=True,
        passes=passes_for(stmt, code.module.options, is_outlined=True),
        aligned=code.aligned, non_negative=code.non_negative,
    )
    for reserved in ("record", "thread", "begin", "end"):
        inner.name(reserved)
    parameters = ["ptr %record", "ptr %thread"]
    for var in captured:
        inner.env[var] = f"%{inner.name(var.name)}"
        parameters.append(parameter(var, inner.env[var]))
    start, stop = Var("begin"), Var("end")
    inner.env[start], inner.env[stop] = "%begin", "%end"
    if non_negative_bits(stmt.min, code.non_negative) is not None:
        inner.non_negative.add(start)
    if has_outside_calls(stmt.body):
        emit_failure_check(inner)
    emit_stmt(inner, For(stmt.loop_var, start, stop - start, ForKind.SERIAL, stmt.body))
    end_function(inner)
    head = ", ".join([*parameters, "i64 %begin", "i64 %end"])
    code.module.add(inner.function("internal void", f"{name}.body", head))


def _define_entry(code: FunctionBuilder, name: str, captured: list[Var], layout: str) -> None:
    """Define the function that the runtime calls: unpack captured values, call the body."""
    inner = FunctionBuilder(code.module, {}, passes=PassSelection.NONE)
    for reserved in ("thread", "captured", "begin", "end"):
        inner.name(reserved)
    arguments: list[str] = []
    for field, kind in enumerate(["ptr", *(register_type(var.dtype) for var in captured)]):
        slot = inner.op(f"getelementptr {layout}, ptr %captured, i32 0, i32 {field}")
        arguments.append(f"{kind} {inner.op(f'load {kind}, ptr {slot}')}")
    arguments[1:1] = ["ptr %thread"]
    arguments += ["i64 %begin", "i64 %end"]
    inner.do(f"call void @{name}.body({', '.join(arguments)})")
    inner.do("ret void")
    parameters = "ptr %thread, ptr %captured, i64 %begin, i64 %end"
    code.module.add(inner.function("internal void", name, parameters))


def parameter(var: Var, operand: str) -> str:
    """Return the declaration of a parameter.

    Buffers are `noalias`: dispatch has checked that written buffers do not overlap others.
    """
    return f"{register_type(var.dtype)}{' noalias' if var.dtype.kind == 'handle' else ''} {operand}"


def variables_used(root: Stmt) -> dict[Var, None]:
    """Return all variables in `root`, including buffer shapes, strides and data variables."""
    found: dict[Var, None] = {}
    buffers: set[int] = set()
    for node in walk(root):
        if isinstance(node, Var):
            found.setdefault(node)
        elif type(node) in (BufferLoad, BufferStore, Allocate, DeclBuffer):
            buffer = node.buffer
            if id(buffer) not in buffers:
                buffers.add(id(buffer))
                found.update(dict.fromkeys(_of_buffer(buffer)))
    return found


def _of_buffer(buffer: Buffer) -> Iterator[Var]:
    yield buffer.data
    for size in buffer.entries:
        if isinstance(size, Expr):
            yield from nodes_of(Var, size)
