"""Parallel loops: the body becomes a function of a range, which the runtime's threads share."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tecomp.codegen.functions.outside import has_outside_calls, stop_if_failed
from tecomp.codegen.functions.work import least_iterations
from tecomp.codegen.llvm.emit import Code
from tecomp.codegen.llvm.passes import passes_for
from tecomp.codegen.llvm.source import Passes
from tecomp.codegen.llvm.types import register_type
from tecomp.codegen.memory.stream import end_function
from tecomp.codegen.runtime.table import call_runtime
from tecomp.codegen.values.convert import cast
from tecomp.ir.language.dtype import INT64
from tecomp.ir.language.expr import BufferLoad, Expr, Var
from tecomp.ir.language.stmt import Allocate, Buffer, BufferStore, DeclBuffer, For, ForKind, Stmt
from tecomp.ir.traversal.rewrite import walk


def outline(
    code: Code, stmt: For, first: str, extent: str, emit_stmt: Callable[[Code, Stmt], None]
) -> None:
    """Put the iterations of `stmt` into a function of their own, and run it over all threads."""
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
    for place, (kind, operand) in enumerate(zip(["ptr", *kinds], operands, strict=True)):
        slot = code.op(f"getelementptr {layout}, ptr {packed}, i32 0, i32 {place}")
        code.do(f"store {kind} {operand}, ptr {slot}")
    begin = cast(code, first, stmt.min.dtype, INT64)
    count = cast(code, extent, stmt.extent.dtype, INT64)
    least = f"i64 {least_iterations(stmt.body)}"
    given = [f"ptr @{name}", f"ptr {packed}", f"i64 {begin}", f"i64 {count}", least]
    call_runtime(code, "parallel", given)
    if has_outside_calls(stmt.body):
        stop_if_failed(code)


def _define_body(
    code: Code,
    stmt: For,
    name: str,
    captured: list[Var],
    emit_stmt: Callable[[Code, Stmt], None],
) -> None:
    """The function that has each captured value as a parameter of its own."""
    inner = Code(
        code.module, {}, is_outlined=True,
        passes=passes_for(stmt, code.module.options, is_outlined=True),
        aligned=code.aligned,
    )
    for reserved in ("record", "thread", "begin", "end"):
        inner.name(reserved)
    parameters = ["ptr %record", "ptr %thread"]
    for var in captured:
        inner.env[var] = f"%{inner.name(var.name)}"
        parameters.append(parameter(var, inner.env[var]))
    start, stop = Var("begin"), Var("end")
    inner.env[start], inner.env[stop] = "%begin", "%end"
    if has_outside_calls(stmt.body):
        stop_if_failed(inner)
    emit_stmt(inner, For(stmt.loop_var, start, stop - start, ForKind.SERIAL, stmt.body))
    end_function(inner)
    head = ", ".join([*parameters, "i64 %begin", "i64 %end"])
    code.module.add(inner.function("internal void", f"{name}.body", head))


def _define_entry(code: Code, name: str, captured: list[Var], layout: str) -> None:
    """The function that the runtime calls: takes the captured values out of their record."""
    inner = Code(code.module, {}, passes=Passes.NONE)
    for reserved in ("thread", "captured", "begin", "end"):
        inner.name(reserved)
    arguments: list[str] = []
    for place, kind in enumerate(["ptr", *(register_type(var.dtype) for var in captured)]):
        slot = inner.op(f"getelementptr {layout}, ptr %captured, i32 0, i32 {place}")
        arguments.append(f"{kind} {inner.op(f'load {kind}, ptr {slot}')}")
    arguments[1:1] = ["ptr %thread"]
    arguments += ["i64 %begin", "i64 %end"]
    inner.do(f"call void @{name}.body({', '.join(arguments)})")
    inner.do("ret void")
    parameters = "ptr %thread, ptr %captured, i64 %begin, i64 %end"
    code.module.add(inner.function("internal void", name, parameters))


def parameter(var: Var, operand: str) -> str:
    """The declaration of a parameter.

    Buffers do not overlap where one of them is written: the caller has checked it.
    """
    return f"{register_type(var.dtype)}{' noalias' if var.dtype.kind == 'handle' else ''} {operand}"


def variables_used(root: Stmt) -> dict[Var, None]:
    """All variables in `root`, with those in the shapes of its buffers and their addresses."""
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
    for size in (*buffer.shape, *(buffer.strides or ())):
        if isinstance(size, Expr):
            yield from (node for node in walk(size) if isinstance(node, Var))
