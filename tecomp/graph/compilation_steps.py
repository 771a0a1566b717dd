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
from tecomp.graph.compile_options import Asked
from tecomp.graph.fusion import Group, border_of
from tecomp.graph.kernels import Call, GroupKernel, Kernels
from tecomp.graph.layout_result import Layouts
from tecomp.graph.linking import native_of
from tecomp.graph.memory_plan import Plan
from tecomp.graph.native_program import Native
from tecomp.graph.planning import Outline, graph_asked, layouts_chosen, outline_of
from tecomp.graph.report import Details
from tecomp.graph.work_division import wishes_of
from tecomp.progress import progress

Made = TypeVar("Made")


class _RefusedError(Exception):
    """Internal signal: a kernel cannot be compiled with the values assigned to scratchpads."""

    def __init__(self, result: Operation, reason: str) -> None:
        super().__init__(reason)
        self.result, self.reason = result, reason


def details_of(asked: Asked) -> Details:
    """Return the details of a program without generating machine code."""
    return _as_near_as_can_be(asked, details_from)


def layouts_of(asked: Asked) -> Layouts:
    """Assign the layouts of a program."""
    return layouts_chosen(asked, graph_asked(asked))


def compiled(asked: Asked, *, is_fresh: bool = False) -> tuple[Native, Details]:
    """Compile a program to machine code, and return the code with the program details.

    Args:
        asked: Compilation request.
        is_fresh: If True, do not use object code from the cache.
    """
    return _as_near_as_can_be(asked, partial(_compiled, is_fresh=is_fresh))


def _as_near_as_can_be(asked: Asked, make: Callable[[Outline], Made]) -> Made:
    """Run `make` with as many values resident in scratchpads as fit after lowering."""
    outline, refused = outline_of(asked), dict[Operation, str]()
    while True:
        try:
            return make(outline)
        except _RefusedError as error:
            refused[error.result] = error.reason
            outline = outline.without(refused)


def _kernels(outline: Outline, begin: Callable[[ModuleText], None]) -> Kernels:
    found = outline.residency
    return Kernels(
        outline.asked.target, begin, outline.places, outline.wished, found.cuts, found.held
    )


def _kernel_of(group: Group, outline: Outline, kernels: Kernels) -> GroupKernel:
    try:
        return kernels.of(group, outline.known, outline.over(group))
    except InternalError:
        raise
    except TecompError as error:
        if group.result not in outline.residency.cuts:
            raise
        raise _RefusedError(group.result, error.message) from None


def _compiled(outline: Outline, *, is_fresh: bool) -> tuple[Native, Details]:
    asked, found = outline.asked, list[GroupKernel]()
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


def details_from(outline: Outline) -> Details:
    """Return the program details for a plan, without generating machine code."""
    kernels = _kernels(outline, lambda _: None)
    found = [_kernel_of(group, outline, kernels) for group in outline.groups]
    return _details(outline, found, outline.plan(_written_over(outline, found)))


def _written_over(outline: Outline, kernels: Sequence[GroupKernel]) -> Mapping[Tensor, Tensor]:
    """Return the values that kernels write in place, each with the operand that it overwrites."""
    return {
        group.result.output(0): border_of(group)[kernel.over]
        for group, kernel in zip(outline.groups, kernels, strict=True) if kernel.over is not None
    }


def _details(outline: Outline, kernels: Sequence[GroupKernel], plan: Plan) -> Details:
    pairs = [*zip(outline.groups, kernels, strict=True)]
    calls = [
        Call(group, kernel.part, kernel.packed(group), group.result in outline.copies)
        for group, kernel in pairs
        if not outline.runs_once(group)
    ]
    graph = outline.graph
    refused = {group.result: kernel.refused for group, kernel in pairs}
    wishes = wishes_of(outline.wished, refused, outline.of_hints)
    return Details(
        graph.inputs, graph.outputs, tuple(calls), plan, outline.layouts, outline.stored, wishes
    )
