"""Steps of compiling a program."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TypeVar

from tecomp.codegen.llvm.compiled import ModuleText
from tecomp.compute.operation import Operation
from tecomp.compute.tensor import Tensor
from tecomp.driver.program_codegen import codes
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
from tecomp.graph.work_division import division_outcomes
from tecomp.progress import progress

Made = TypeVar("Made")


class _RefusedError(Exception):
    """Internal signal: a kernel cannot be compiled with the values assigned to scratchpads."""

    def __init__(self, result: Operation, reason: str) -> None:
        super().__init__(reason)
        self.result, self.reason = result, reason


def details_of(asked: CompileRequest) -> ProgramDetails:
    """Return the details of a program without generating machine code."""
    return _as_near_as_can_be(asked, details_from)


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
    return _as_near_as_can_be(asked, partial(_compile, is_fresh=is_fresh))


def _as_near_as_can_be(asked: CompileRequest, make: Callable[[ProgramPlan], Made]) -> Made:
    """Run `make` with as many values resident in scratchpads as fit after lowering."""
    outline, refused = plan_program(asked), dict[Operation, str]()
    while True:
        try:
            return make(outline)
        except _RefusedError as error:
            refused[error.result] = error.reason
            outline = outline.without(refused)


def _kernels(outline: ProgramPlan, begin: Callable[[ModuleText], None]) -> KernelBuilder:
    found = outline.residency
    return KernelBuilder(
        outline.asked.target, begin, outline.places, outline.wished, found.cuts, found.held
    )


def _kernel_of(group: FusionGroup, outline: ProgramPlan, kernels: KernelBuilder) -> FusedKernel:
    try:
        return kernels.of(group, outline.known, outline.over(group))
    except InternalError:
        raise
    except TecompError as error:
        if group.result not in outline.residency.cuts:
            raise
        raise _RefusedError(group.result, error.message) from None


def _compile(outline: ProgramPlan, *, is_fresh: bool) -> tuple[NativeProgram, ProgramDetails]:
    asked, found = outline.asked, list[FusedKernel]()
    shown_as, count = f"compile {asked.name}", len(outline.groups)
    with progress(shown_as, count) as shown, codes(is_fresh=is_fresh) as made:
        kernels = _kernels(outline, made.add)
        for group in outline.groups:
            found.append(_kernel_of(group, outline, kernels))
            shown.step()
        plan = outline.plan(_written_over(outline, found))
        pairs = list(zip(outline.groups, found, strict=True))
        native = native_of(
            asked.name, outline.graph, pairs, outline.known, plan, made, outline.stored,
            outline.packed,
        )
    return native, _details(outline, found, plan)


def details_from(outline: ProgramPlan) -> ProgramDetails:
    """Return the program details for a plan, without generating machine code."""
    kernels = _kernels(outline, lambda _: None)
    found = [_kernel_of(group, outline, kernels) for group in outline.groups]
    return _details(outline, found, outline.plan(_written_over(outline, found)))


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
