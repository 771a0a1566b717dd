"""Steps of compiling a program: planning, kernels and linking to one native function."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

from tecomp.codegen.emit.kernel_sequence import ArenaValue, SequenceArgument
from tecomp.codegen.runtime.runtime_structs import ALIGNMENT
from tecomp.compute.operation import Operation
from tecomp.compute.tensor import Tensor
from tecomp.driver.program_codegen import (
    BackgroundCompiler,
    ProgramKernel,
    ProgramSequence,
    codes,
    sequence_code,
)
from tecomp.errors import InternalError, TecompError
from tecomp.graph.compile_options import CompileRequest
from tecomp.graph.definition_keys import definitions_text
from tecomp.graph.fusion import FusionGroup, group_inputs
from tecomp.graph.kernels import ConstantPool, FusedKernel, KernelBuilder, KernelCall
from tecomp.graph.layout_result import ProgramLayouts
from tecomp.graph.memory_plan import ArenaPlan, SymbolicArenaPlan
from tecomp.graph.planning import ProgramPlan, choose_program_layouts, plan_program, requested_graph
from tecomp.graph.report import ProgramDetails
from tecomp.graph.serialization import NativeProgram
from tecomp.graph.shard_selection import PlannedKernels, keep_between_kernels
from tecomp.graph.sizes import bytes_of, in_int64, plain_layout
from tecomp.graph.work_division import division_outcomes
from tecomp.ir.nodes.dtype import DType
from tecomp.ir.nodes.expr import Var
from tecomp.ir.nodes.stmt import Buffer
from tecomp.layout.core.layout import Layout
from tecomp.progress import progress

if TYPE_CHECKING:
    from tecomp.export.program_export import ExportedProgram


class _RefusedError(Exception):
    """Internal signal: a kernel cannot be compiled with the values assigned to scratchpads."""

    def __init__(self, result: Operation, reason: str) -> None:
        super().__init__(reason)
        self.result, self.reason = result, reason


def details_of(request: CompileRequest) -> ProgramDetails:
    """Return the details of a program without generating machine code."""
    return details_from(plan_program(request))


def layouts_of(request: CompileRequest) -> ProgramLayouts:
    """Assign the layouts of a program."""
    return choose_program_layouts(request, requested_graph(request))


def compile_native(
    request: CompileRequest, *, is_fresh: bool = False
) -> tuple[NativeProgram, ProgramDetails]:
    """Compile a program to machine code, and return the code with the program details.

    Args:
        request: Compilation request.
        is_fresh: If True, do not use object code from the cache.
    """
    builder, outline = _outline_of(request)
    with codes(is_fresh=is_fresh) as compiler:
        planned, plan = _planned_memory(builder, outline, partial(_generate, compiler))
        native = native_of(request.name, planned, plan, compiler)
    return native, _details(planned.plan, planned.kernels, plan)


def exported_program(request: CompileRequest, constants: bytes) -> ExportedProgram:
    """Plan a program again, and return its parts for the export as C code.

    Args:
        request: Compilation request.
        constants: Contents of the constant pool.

    Raises:
        CallError: If the target is simulated.
    """
    # Import lazily: compilation does not need the export.
    from tecomp.export.kernel_export import check_target
    from tecomp.export.program_export import ExportedKernel, ExportedProgram

    check_target(request.name, request.target)

    planned, plan = _planned_memory(*_outline_of(request))
    steps, params = _steps_of(planned, plan)
    sequence = _call_sequence(request.name, planned, plan, steps, params)
    kernels = [
        ExportedKernel(part.lowered.final, part.build.options, part.module)
        for part in sequence.parts
    ]
    return ExportedProgram(
        sequence.head, tuple(params), sequence.written, tuple(kernels), sequence.module, constants,
        sequence.is_parallel,
    )


def _outline_of(request: CompileRequest) -> tuple[KernelBuilder, ProgramPlan]:
    """Return the plan of a program, and the cache of its kernels."""
    outline = plan_program(request)
    builder = KernelBuilder(request.target, outline.locations)
    return builder, keep_between_kernels(outline, partial(_planned, builder))


def _planned_memory(
    builder: KernelBuilder, outline: ProgramPlan,
    add: Callable[[FusedKernel], None] = lambda kernel: None,
) -> tuple[PlannedKernels, ArenaPlan | SymbolicArenaPlan]:
    """Return the kernels of a program, and the memory plan of the values between kernels."""
    planned = _planned(builder, outline, add)
    return planned, planned.plan.plan(_written_over(planned.plan, planned.kernels))


def details_from(outline: ProgramPlan, *, is_final: bool = False) -> ProgramDetails:
    """Return the program details for a plan, without generating machine code.

    Args:
        outline: Plan.
        is_final: Whether to keep the plan, without trials of values between kernels.
    """
    builder = KernelBuilder(outline.request.target, outline.locations)
    if not is_final:
        outline = keep_between_kernels(outline, partial(_planned, builder))
    found = _planned(builder, outline)
    plan = found.plan.plan(_written_over(found.plan, found.kernels))
    return _details(found.plan, found.kernels, plan)


def _generate(compiler: BackgroundCompiler, kernel: FusedKernel) -> None:
    """Enqueue the modules of a kernel for compilation."""
    for part in kernel.parts:
        compiler.add(part.module)


def _planned(
    builder: KernelBuilder, outline: ProgramPlan,
    add: Callable[[FusedKernel], None] = lambda kernel: None,
) -> PlannedKernels:
    """Return the kernels of a plan with as many resident values as fit after lowering.

    Args:
        builder: Cache of kernels, which all plans of a program share.
        outline: Plan.
        add: Callback that receives each kernel as soon as it is complete.
    """
    refused = dict[Operation, str]()
    while True:
        try:
            return PlannedKernels(outline, _kernels_of(builder, outline, add))
        except _RefusedError as error:
            refused[error.result] = error.reason
            outline = outline.without(refused)


def _kernels_of(
    builder: KernelBuilder, outline: ProgramPlan, add: Callable[[FusedKernel], None]
) -> tuple[FusedKernel, ...]:
    residency, found = outline.residency, list[FusedKernel]()
    kernels = replace(
        builder,
        locations=outline.locations,
        division_hints=outline.division_hints,
        resident_divisions=residency.cuts,
        resident_bytes=residency.resident_bytes,
    )
    with progress(f"compile {outline.request.name}", len(outline.groups)) as bar:
        for group in outline.groups:
            found.append(_kernel_of(group, outline, kernels))
            add(found[-1])
            bar.step()
    return tuple(found)


def _kernel_of(group: FusionGroup, outline: ProgramPlan, kernels: KernelBuilder) -> FusedKernel:
    try:
        return kernels.of(group, outline.known, outline.in_place_positions(group))
    except InternalError:
        raise
    except TecompError as error:
        if group.result not in outline.residency.cuts:
            raise
        raise _RefusedError(group.result, error.message) from None


def _written_over(outline: ProgramPlan, kernels: Sequence[FusedKernel]) -> Mapping[Tensor, Tensor]:
    """Return the values that kernels write in place, each with the operand that it overwrites."""
    return {
        group.result.output(0): group_inputs(group)[kernel.over]
        for group, kernel in zip(outline.groups, kernels, strict=True) if kernel.over is not None
    }


def _details(
    outline: ProgramPlan, kernels: Sequence[FusedKernel], plan: ArenaPlan | SymbolicArenaPlan
) -> ProgramDetails:
    pairs = [*zip(outline.groups, kernels, strict=True)]
    calls = [
        KernelCall(group, kernel.kernel, kernel.packed(group), group.result in outline.copies)
        for group, kernel in pairs
        if not outline.runs_once(group)
    ]
    graph = outline.graph
    refused = {group.result: kernel.refused for group, kernel in pairs}
    wishes = division_outcomes(outline.division_hints, refused, outline.of_hints)
    return ProgramDetails(
        graph.inputs, graph.outputs, tuple(calls), plan, outline.layouts, outline.stored, wishes
    )


Step = tuple[ProgramKernel, Sequence[SequenceArgument | ArenaValue]]


def native_of(
    name: str, planned: PlannedKernels, plan: ArenaPlan | SymbolicArenaPlan,
    codes: BackgroundCompiler,
) -> NativeProgram:
    """Link the kernels of a program to machine code.

    Args:
        name: Program name.
        planned: Kernels, in execution order.
        plan: Memory plan of the values between kernels.
        codes: Collector of the machine code of kernels.
    """
    outline = planned.plan
    steps, params = _steps_of(planned, plan)
    run = sequence_code(_call_sequence(name, planned, plan, steps, params), codes)
    sources = [_buffer(tensor, {}, {}) for tensor in steps.sources]
    data = params[-1]
    pack = sequence_code(
        ProgramSequence(
            f"{name}_constants", steps.packing_calls, [data, *sources], [data], ()), codes
    ) if steps.packing_calls else None
    positions = {tensor: k for k, tensor in enumerate(outline.graph.constants)}
    stored = outline.stored
    return NativeProgram(
        run, pack, tuple(positions[x] for x in steps.sources),
        tuple((positions[x], offset) for x, offset in steps.copied.items()),
        steps.pool.end, len(steps.program_calls),
        _text_of([stored.get(x, plain_layout(x)) for x in outline.packed]),
    )


def _steps_of(
    planned: PlannedKernels, plan: ArenaPlan | SymbolicArenaPlan
) -> tuple[_Steps, list[Buffer]]:
    """Return the kernel calls of a program, and its parameters; the last is the constant pool."""
    outline = planned.plan
    graph, stored = outline.graph, outline.stored
    arguments = (*graph.inputs, *graph.outputs)
    where: dict[Tensor, SequenceArgument | ArenaValue] = {x: SequenceArgument(k) for k, x
        in enumerate(arguments)}
    variables: Mapping[Var, Var] = {}
    if isinstance(plan, SymbolicArenaPlan):
        where |= {value.tensor: ArenaValue(0, value.slot) for value in plan.values}
        variables = plan.variables
    else:
        where |= {value.tensor: ArenaValue(value.offset) for value in plan.values}
    steps = _Steps(frozenset(graph.constants), outline.known, where, len(arguments), stored)
    for group, kernel in zip(outline.groups, planned.kernels, strict=True):
        steps.add(group, kernel)
    params = [_buffer(tensor, stored, variables) for tensor in arguments]
    data = Buffer("constants", (max(steps.pool.end, 1),), DType("uint8"))
    return steps, [*params, data]


def _call_sequence(
    name: str, planned: PlannedKernels, plan: ArenaPlan | SymbolicArenaPlan, steps: _Steps,
    params: Sequence[Buffer],
) -> ProgramSequence:
    """Return the function of a program call."""
    results = params[len(planned.plan.graph.inputs) : -1]
    slots = plan.slots if isinstance(plan, SymbolicArenaPlan) else (plan.bytes,)
    return ProgramSequence(name, steps.program_calls, params, results, slots)


@dataclass(slots=True)
class _Steps:
    """Kernel calls for packing constants and for program calls, with the locations of operands.

    Attributes:
        constants: Constants.
        known: Values that depend on constants only, including the constants.
        where: Locations of call arguments and of values between kernels.
        last: Position of the constant pool among the call arguments.
        stored: Layouts of values that are not in row-major order.
        pool: Allocator of the constant pool.
        packing_calls: Kernel calls that pack constants; their first argument is the constant pool.
        program_calls: Kernel calls of a program call.
        sources: Positions of constants among the arguments of the packing code.
        copied: Offsets of the constants that program calls read unpacked.
    """

    constants: frozenset[Tensor]
    known: frozenset[Tensor]
    where: Mapping[Tensor, SequenceArgument | ArenaValue]
    last: int
    stored: Mapping[Tensor, Layout]
    pool: ConstantPool = field(default_factory=lambda: ConstantPool(ALIGNMENT))
    packing_calls: list[Step] = field(default_factory=list)
    program_calls: list[Step] = field(default_factory=list)
    sources: dict[Tensor, int] = field(default_factory=dict)
    copied: dict[Tensor, int] = field(default_factory=dict)

    def add(self, group: FusionGroup, kernel: FusedKernel) -> None:
        """Append a kernel call; the kernels that it depends on must have been added."""
        operands = group_inputs(group)
        results = group.result.outputs
        folded = [self._folded(kernel, number, operands) for number in range(len(kernel.folded))]
        is_constant = self.known.issuperset(results)
        argument_of = self._packing_argument if is_constant else self._call_argument
        reads = [argument_of(operands[k]) for k in kernel.reads]
        pool = 0 if is_constant else self.last
        folded_args = [SequenceArgument(pool, offset) for offset in folded]
        step = kernel.kernel, [*reads, *folded_args, *map(argument_of, results)]
        (self.packing_calls if is_constant else self.program_calls).append(step)

    def _folded(self, kernel: FusedKernel, number: int, inputs: Sequence[Tensor]) -> int:
        """Return the offset of a folded operand, and add its kernel call on first use."""
        folded = kernel.folded[number]
        sources = [inputs[k] for k in folded.sources]
        key = (id(kernel), number, *sources)
        is_new = key not in self.pool.places
        offset = self.pool.offset(key, _result_bytes(folded.kernel))
        if is_new:
            operands = [*map(self._packing_argument, sources), SequenceArgument(0, offset)]
            self.packing_calls.append((folded.kernel, operands))
        return offset

    def _packing_argument(self, tensor: Tensor) -> SequenceArgument | ArenaValue:
        """Return the location of a value during packing."""
        if tensor in self.constants:
            return SequenceArgument(self.sources.setdefault(tensor, len(self.sources) + 1))
        return SequenceArgument(0, self.pool.offset(tensor, bytes_of(tensor, self.stored)))

    def _call_argument(self, tensor: Tensor) -> SequenceArgument | ArenaValue:
        """Return the location of a value during a program call."""
        if tensor not in self.known:
            return self.where[tensor]
        offset = self.pool.offset(tensor, bytes_of(tensor, self.stored))
        if tensor in self.constants:
            self.copied[tensor] = offset
        return SequenceArgument(self.last, offset)


def _result_bytes(part: ProgramKernel) -> int:
    """Return the size in bytes of the last parameter of a kernel, in its layout."""
    result = part.lowered.final.params[-1]
    assert isinstance(result, Buffer)
    return bytes_of(result)


def _text_of(layouts: Sequence[Layout]) -> str:
    return definitions_text(tuple(layouts)) if layouts else ""


def _buffer(
    tensor: Tensor, stored: Mapping[Tensor, Layout], variables: Mapping[Var, Var]
) -> Buffer:
    """Return the buffer of an argument, in row-major order or in device layout.

    Args:
        tensor: Argument.
        stored: Layouts of values that are not in row-major order.
        variables: int64 variable of each size variable.
    """
    if tensor in stored:
        return Buffer(tensor.name, stored[tensor].physical_shape, tensor.dtype)
    shape = tuple(in_int64(extent, variables) for extent in tensor.shape)
    return Buffer(tensor.name, shape, tensor.dtype)
