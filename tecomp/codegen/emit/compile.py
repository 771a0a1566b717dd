"""Compile a PrimFunc to an LLVM module and machine code."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from tecomp.codegen.emit.parallel import parameter
from tecomp.codegen.emit.pre_emission_passes import (
    branch_on_masks,
    hoist_divisions,
    promote_accumulators,
)
from tecomp.codegen.emit.stmt import emit_stmt
from tecomp.codegen.llvm.code_cache import machine_code
from tecomp.codegen.llvm.compiled import CompiledFunction, KernelInterface, ModuleText
from tecomp.codegen.llvm.ir_builder import (
    TAIL,
    FunctionBuilder,
    LlvmFunction,
    LlvmSource,
    ModuleBuilder,
    Options,
    PassSelection,
    plain_name,
    register_type,
)
from tecomp.codegen.llvm.jit import LlvmTarget, assembly, dots_of, has_fma, has_masks
from tecomp.codegen.llvm.pass_selection import passes_for
from tecomp.codegen.memory.vector_access import end_function
from tecomp.codegen.ops.vector_legalization import legalize_vectors
from tecomp.codegen.runtime.runtime_structs import FIRST_ARGUMENT_WORD, RECORD_WORD
from tecomp.errors import LowerError
from tecomp.ir.extern.binding import bind
from tecomp.ir.nodes.dtype import DType
from tecomp.ir.nodes.expr import Var
from tecomp.ir.nodes.stmt import (
    Allocate,
    Buffer,
    BufferRealize,
    BufferStore,
    DeclBuffer,
    For,
    ForKind,
    PrimFunc,
    SeqStmt,
    view_problem,
)
from tecomp.ir.traversal.analyses import lines_of, views_with_memory
from tecomp.ir.traversal.rewrite import nodes_of, statements_in, walk
from tecomp.progress import log_duration

_INLINED_LINES = 500
_LOWER_IT = "run tecomp.apply_buffer_transforms and tecomp.flatten_buffer on the function first"


def module_text(func: PrimFunc, options: Options, machine: LlvmTarget | None = None) -> ModuleText:
    """Return the LLVM IR of `func`, whose buffers are flat.

    Args:
        func: Function with one buffer axis for each physical axis.
        options: Code generation options.
        machine: Target machine. Default: the host.
    """
    return _module_text(_of_whole_vectors(_prepared(func), options), options, machine, {})


def module_with_lines(func: PrimFunc, options: Options) -> tuple[list[PrimFunc], LlvmSource]:
    """Return the functions after the final passes, and an LLVM module with line comments.

    Returns:
        Functions after each final pass, and the module of the last function for the host, with the
        comments that `line_table` reads.
    """
    versions = [func, _prepared(func)]
    versions.append(_of_whole_vectors(versions[-1], options))
    return versions, _module_text(versions[-1], options, None, lines_of(versions[-1])).source


def _module_text(
    func: PrimFunc, options: Options, machine: LlvmTarget | None, line_of: Mapping[int, int]
) -> ModuleText:
    name, target = plain_name(func.name), machine or LlvmTarget()
    module = ModuleBuilder(name, options, list(func.sites), lambda: dots_of(target),
                    lambda: has_masks(target), lambda: has_fma(target), line_of=line_of)
    is_one_call = isinstance(func.body, For) and func.body.kind is ForKind.PARALLEL
    passes = PassSelection.NONE if is_one_call else passes_for(func.body, module.options)
    code = FunctionBuilder(module, {}, passes=passes)
    for reserved in ("record", "thread"):
        code.name(reserved)
    parameters = ["ptr %record", "ptr %thread"]
    for var in arguments_of(func):
        code.env[var] = f"%{code.name(var.name)}"
        parameters.append(parameter(var, code.env[var]))
    emit_stmt(code, func.body)
    end_function(code)
    body = code.function("internal void", f"{module.name}.body", ", ".join(parameters))
    source = _source(module, [_entry(module, func), body])
    calls = tuple([(symbol, signature) for signature, symbol in module.called_symbols.items()])
    return ModuleText(source, f"{name}.entry", tuple(module.sites), module.outlined > 0, calls)


def _prepared(func: PrimFunc) -> PrimFunc:
    return hoist_divisions(branch_on_masks(func))


def _of_whole_vectors(func: PrimFunc, options: Options) -> PrimFunc:
    vectors = legalize_vectors(func)
    # Bounds checks must stay at their accesses, so accumulators are not promoted.
    return vectors if vectors is func or options.check_bounds else promote_accumulators(vectors)


def _source(module: ModuleBuilder, functions: Sequence[LlvmFunction]) -> LlvmSource:
    """Return the module with the given functions and its own."""
    functions = [*functions, *module.functions.values()]
    inlined = tuple([
        f.name for f in functions
        if f.is_helper and (f.body.count("\n") + 1) * module.calls[f.name] <= _INLINED_LINES
    ])
    definitions = "\n".join([f.text(is_inlined=f.name in inlined) for f in functions])
    constants = "".join([f"{name} = {value}\n" for name, value in module.constants.items()])
    declarations = "".join([f"{line}\n" for line in module.declarations])
    text = "\n".join([part for part in (definitions, constants, declarations, TAIL) if part])
    return LlvmSource(
        text,
        plain_loops=tuple([f.name for f in functions if f.passes is PassSelection.ALL]),
        loop_work=tuple([f.name for f in functions if f.passes is PassSelection.LOOPS]),
        inlined=inlined,
        handed_over=tuple([f.name for f in functions if f.passes is PassSelection.NONE]),
    )


def arguments_of(func: PrimFunc) -> tuple[Var, ...]:
    """Return the variables of the argument block after the failure record."""
    params = (p.data if isinstance(p, Buffer) else p for p in func.params)
    return (*params, *func.sizes)


def output_params(func: PrimFunc) -> frozenset[Var]:
    """Return the data variables of the buffers that `func` writes."""
    return frozenset([node.buffer.data for node in nodes_of(BufferStore, func.body)])


def _entry(module: ModuleBuilder, func: PrimFunc) -> LlvmFunction:
    """Build the entry function: it unpacks the arguments and returns the failure kind, or 0."""
    code = FunctionBuilder(module, {}, passes=PassSelection.NONE)
    code.name("arguments")
    record = code.op(f"getelementptr i64, ptr %arguments, i64 {RECORD_WORD}", "record")
    thread = code.op("load ptr, ptr %arguments", "thread")
    operands = [f"ptr {record}", f"ptr {thread}"]
    for word, var in enumerate(arguments_of(func), FIRST_ARGUMENT_WORD):
        slot = code.op(f"getelementptr i64, ptr %arguments, i64 {word}")
        operands.append(f"{register_type(var.dtype)} {_unpack(code, slot, var.dtype)}")
    code.do(f"call void @{module.name}.body({', '.join(operands)})")
    status = code.op(f"load i64, ptr {record}")
    code.do(f"ret i32 {code.op(f'trunc i64 {status} to i32')}")
    return code.function("i32", f"{module.name}.entry", "ptr %arguments")


def _unpack(code: FunctionBuilder, slot: str, dtype: DType) -> str:
    kind = register_type(dtype)
    if dtype.kind == "handle":
        return code.op(f"load ptr, ptr {slot}")
    word = code.op(f"load i64, ptr {slot}")
    if dtype.is_bool:
        return code.op(f"icmp ne i64 {word}, 0")
    bits = word if dtype.bits == 64 else code.op(f"trunc i64 {word} to i{dtype.bits}")
    if dtype.kind == "float":
        return code.op(f"bitcast i{dtype.bits} {bits} to {kind}")
    return bits


def check_flat(func: PrimFunc) -> None:
    """Raise if a function has buffers that are not flat, as a handwritten function may have.

    Raises:
        LowerError: If layout maps, pad values or realized regions remain, if a buffer has axes that
            are not physical, or if a view has other physical axes than its memory.

    Source:
        transform_layout RFC: a code generator checks the rank of the buffers that it acts on.
    """
    for subject, entries in (("layout maps", func.layout_maps), ("a pad value", func.pad_values)):
        for data, _ in entries:
            raise LowerError(
                "{func}: `{data}` still has {subject}; {lower_it}",
                func=func.name, data=data.name, subject=subject, lower_it=_LOWER_IT,
            )
    stmts = [*walk(func.body, parts=statements_in)]
    declared = [n.buffer for n in stmts if isinstance(n, Allocate | DeclBuffer | BufferRealize)]
    # The call adds the offset of a parameter to its address.
    parameters = [replace(p, elem_offset=0) for p in func.params if isinstance(p, Buffer)]
    for buffer in (*parameters, *declared):
        if problem := _not_physical(buffer):
            raise LowerError(
                "{func}: `{buffer}` {problem}; {lower_it}",
                func=func.name, buffer=buffer.name, problem=problem, lower_it=_LOWER_IT,
            )
    for node in stmts:
        if isinstance(node, BufferRealize):
            raise LowerError(
                "{func}: `{buffer}` is realized in a region (BufferRealize); use Allocate instead",
                func=func.name, buffer=node.buffer.name,
            )
    for view, memory in views_with_memory(func):
        if problem := view_problem(view, memory):
            raise LowerError(
                "{func}: {problem}; declare a view with the physical axes of its memory",
                func=func.name, problem=problem,
            )


def _not_physical(buffer: Buffer) -> str:
    if buffer.flat:
        return ""
    axes, groups = len(buffer.shape), len(buffer.axis_separators) + 1
    if max(axes, 1) != groups:
        return f"has {axes} axes, and axis_separators {buffer.axis_separators} for {groups}"
    if buffer.has_offset:
        return "has an elem_offset that is not in its indices"
    return "has strides that are not in its indices" if buffer.strides is not None else ""


def compile_function(
    func: PrimFunc,
    *,
    check_bounds: bool = False,
    fast_math: bool = False,
    fp_contract: bool = True,
) -> CompiledFunction:
    """Compile `func` for the host.

    Args:
        func: Flat function: buffers are accessed with one index for each physical axis.
        check_bounds: Whether to check each access against the shape of its buffer at run time.
            Default: False.
        fast_math: Whether to allow reordered sums, division by multiplication with a reciprocal,
            and either operand as the `min` or `max` of NaN and a number. Default: False.
        fp_contract: Whether to allow `a * b + c` with a single rounding (FMA). Default: True.

    Raises:
        DefinitionError: If a called function is not registered, or has another signature.
        LowerError: If `func` is not flat.
        InternalError: If `func` contains a node that should have been lowered.
    """
    check_flat(func)
    options = Options(check_bounds, fast_math, fp_contract)
    with log_duration(f"make LLVM code of {func.name}"):
        module = module_text(func, options)
    linked = machine_code(module.source, module.entry, outside=bind(module.calls))
    return CompiledFunction(interface_of(func, module), linked, options, lambda: func, module)


def interface_of(func: PrimFunc, module: ModuleText) -> KernelInterface:
    """Return the interface of `func`, whose LLVM module is `module`."""
    head = PrimFunc(func.name, func.params, SeqStmt(()), func.sizes, sites=func.sites)
    written = tuple(output_params(func))
    return KernelInterface(
        head, written, module.entry, module.sites, module.is_parallel, module.calls)


def emit_assembly(
    func: PrimFunc,
    *,
    triple: str = "",
    cpu: str = "",
    features: str = "",
    check_bounds: bool = False,
    fast_math: bool = False,
    fp_contract: bool = True,
) -> str:
    """Return the assembly text of `func` for any target of LLVM.

    Args:
        func: Flat function.
        triple: Target triple, such as `aarch64-linux-gnu`. Default: the host.
        cpu: CPU model, such as `neoverse-v2`.
        features: Additional CPU features, such as `+sve2`.
        check_bounds: See `compile_function`.
        fast_math: See `compile_function`.
        fp_contract: See `compile_function`.
    """
    check_flat(func)
    machine = LlvmTarget(triple, cpu, features)
    module = module_text(func, Options(check_bounds, fast_math, fp_contract), machine)
    return assembly(module.source, machine)
