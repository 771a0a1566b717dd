"""The steps of compiling: operations, groups, kernels, memory, and one function that runs all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tecomp.codegen.runtime.structures import ALIGNMENT
from tecomp.compute.tensor import Tensor
from tecomp.driver.codes import codes
from tecomp.driver.progress import progress
from tecomp.graph.asked import Asked
from tecomp.graph.capacity import check_fits
from tecomp.graph.constants import known_once
from tecomp.graph.dag import Graph, graph_of
from tecomp.graph.details import Call, Details
from tecomp.graph.groups import Group, groups_of
from tecomp.graph.kernels import GroupKernel, Kernels
from tecomp.graph.linking import native_of
from tecomp.graph.memory import Plan, lifetimes_of, plan_memory
from tecomp.graph.native import Native


def details_of(asked: Asked) -> Details:
    """What a program is made of, without its machine code."""
    outline = _outline(asked)
    kernels = Kernels(asked.target, lambda _: None)
    return _details(outline, [kernels.of(group, outline.known) for group in outline.groups])


@dataclass(frozen=True, slots=True)
class _Outline:
    """What is decided before there are kernels.

    Attributes:
        graph: the operations.
        groups: those that become a kernel each, in the order in which they run.
        known: what follows from constants alone, and is computed once.
        plan: where the values between kernels are.
    """

    graph: Graph
    groups: tuple[Group, ...]
    known: frozenset[Tensor]
    plan: Plan

    def runs_once(self, group: Group) -> bool:
        """Whether a group is computed when constants are laid out."""
        return self.known.issuperset(group.result.outputs)


def _outline(asked: Asked) -> _Outline:
    graph = graph_of(asked.outputs, asked.inputs, list(asked.constants))
    groups = groups_of(graph)
    known = known_once(graph, groups)
    each = [group for group in groups if not known.issuperset(group.result.outputs)]
    lifetimes = lifetimes_of(graph, each)
    plan = plan_memory(lifetimes, ALIGNMENT)
    memory = asked.target.memories.get("global")
    if memory is not None:
        passed = (*graph.inputs, *graph.outputs, *graph.constants)
        check_fits(asked.name, memory, passed, lifetimes, plan)
    return _Outline(graph, groups, known, plan)


def compiled(asked: Asked) -> tuple[Native, Details]:
    """The machine code of a program, and what it is made of."""
    outline = _outline(asked)
    found: list[GroupKernel] = []
    with progress(f"compile {asked.name}", len(outline.groups)) as shown, codes() as made:
        kernels = Kernels(asked.target, made.add)
        for group in outline.groups:
            found.append(kernels.of(group, outline.known))
            shown.step()
        pairs = list(zip(outline.groups, found, strict=True))
        native = native_of(asked.name, outline.graph, pairs, outline.known, outline.plan, made)
    return native, _details(outline, found)


def _details(outline: _Outline, kernels: Sequence[GroupKernel]) -> Details:
    pairs = zip(outline.groups, kernels, strict=True)
    calls = [Call(group, k.part) for group, k in pairs if not outline.runs_once(group)]
    return Details(tuple(calls), outline.plan)
