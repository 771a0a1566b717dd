"""Steps of compiling a program."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from tecomp.compute.operation import Operation
from tecomp.compute.tensor import Tensor
from tecomp.driver.program_codegen import BackgroundCompiler, codes
from tecomp.errors import InternalError, TecompError
from tecomp.graph.compile_options import CompileRequest
from tecomp.graph.fusion import FusionGroup, group_inputs
from tecomp.graph.kernels import FusedKernel, KernelBuilder, KernelCall
from tecomp.graph.layout_result import ProgramLayouts
from tecomp.graph.linking import native_of
from tecomp.graph.memory_plan import ArenaPlan
from tecomp.graph.native_program import NativeProgram
from tecomp.graph.planning import ProgramPlan, choose_program_layouts, plan_program, requested_graph
from tecomp.graph.report import ProgramDetails
from tecomp.graph.shard_selection import PlannedKernels, keep_between_kernels
from tecomp.graph.work_division import division_outcomes
from tecomp.progress import progress


class _RefusedError(Exception):
    """Internal signal: a kernel cannot be compiled with the values assigned to scratchpads."""

    def __init__(self, result: Operation, reason: str) -> None:
        super().__init__(reason)
        self.result, self.reason = result, reason


def details_of(asked: CompileRequest) -> ProgramDetails:
    """Return the details of a program without generating machine code."""
    return details_from(plan_program(asked))


def layouts_of(asked: CompileRequest) -> ProgramLayouts:
    """Assign the layouts of a program."""
    return choose_program_layouts(asked, requested_graph(asked))


def compile_native(
    asked: CompileRequest, *, is_fresh: bool = False
) -> tuple[NativeProgram, ProgramDetails]:
    """Compile a program to machine code, and return the code with the program details.

    Args:
        asked: Compilation request.
        is_fresh: If True, do not use object code from the cache.
    """
    outline = plan_program(asked)
    builder = KernelBuilder(asked.target, outline.places)
    outline = keep_between_kernels(outline, partial(_planned, builder))
    with codes(is_fresh=is_fresh) as made:
        made_for = _planned(builder, outline, partial(_generate, made))
        outline, found = made_for.plan, made_for.kernels
        plan = outline.plan(_written_over(outline, found))
        pairs = list(zip(outline.groups, found, strict=True))
        native = native_of(
            asked.name, outline.graph, pairs, outline.known, plan, made, outline.stored,
            outline.packed,
        )
    return native, _details(outline, found, plan)


def details_from(outline: ProgramPlan, *, is_final: bool = False) -> ProgramDetails:
    """Return the program details for a plan, without generating machine code.

    Args:
        outline: Plan.
        is_final: Whether to keep the plan, without trials of values between kernels.
    """
    builder = KernelBuilder(outline.asked.target, outline.places)
    if not is_final:
        outline = keep_between_kernels(outline, partial(_planned, builder))
    found = _planned(builder, outline)
    plan = found.plan.plan(_written_over(found.plan, found.kernels))
    return _details(found.plan, found.kernels, plan)


def _generate(made: BackgroundCompiler, kernel: FusedKernel) -> None:
    """Enqueue the modules of a kernel for compilation."""
    for part in kernel.parts:
        made.add(part.module)


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
    stays, found = outline.residency, list[FusedKernel]()
    kernels = replace(
        builder, places=outline.places, wished=outline.wished, near=stays.cuts, held=stays.held
    )
    with progress(f"compile {outline.asked.name}", len(outline.groups)) as shown:
        for group in outline.groups:
            found.append(_kernel_of(group, outline, kernels))
            add(found[-1])
            shown.step()
    return tuple(found)


def _kernel_of(group: FusionGroup, outline: ProgramPlan, kernels: KernelBuilder) -> FusedKernel:
    try:
        return kernels.of(group, outline.known, outline.over(group))
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
    outline: ProgramPlan, kernels: Sequence[FusedKernel], plan: ArenaPlan
) -> ProgramDetails:
    pairs = [*zip(outline.groups, kernels, strict=True)]
    calls = [
        KernelCall(group, kernel.part, kernel.packed(group), group.result in outline.copies)
        for group, kernel in pairs
        if not outline.runs_once(group)
    ]
    graph = outline.graph
    refused = {group.result: kernel.refused for group, kernel in pairs}
    wishes = division_outcomes(outline.wished, refused, outline.of_hints)
    return ProgramDetails(
        graph.inputs, graph.outputs, tuple(calls), plan, outline.layouts, outline.stored, wishes
    )
