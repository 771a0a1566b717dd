"""The steps of compiling: operations, groups, kernels, memory, and one function that runs all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tecomp.compute.operation import Operation
from tecomp.compute.tensor import Tensor
from tecomp.constraints.divisions import DivisionHint
from tecomp.driver.codes import codes
from tecomp.driver.progress import progress
from tecomp.graph.asked import Asked
from tecomp.graph.call import Call
from tecomp.graph.capacity import Needed, check_fits
from tecomp.graph.constants import known_once
from tecomp.graph.dag import Graph, graph_of
from tecomp.graph.details import Details
from tecomp.graph.divisions import Divided, divided, wishes_of
from tecomp.graph.groups import Group, border_of, groups_of
from tecomp.graph.in_place import candidates
from tecomp.graph.kernels import GroupKernel, Kernels
from tecomp.graph.laid import laid
from tecomp.graph.layouts import choose_layouts
from tecomp.graph.linking import native_of
from tecomp.graph.memory import Plan, lifetimes_of
from tecomp.graph.native import Native
from tecomp.graph.outcome import Layouts
from tecomp.graph.sizes import bytes_of
from tecomp.layout.descriptions.layout import Layout
from tecomp.schedules.scratchpads.placement import device_of

_PASSED = "inputs, outputs and constants"


def details_of(asked: Asked) -> Details:
    """What a program is made of, without its machine code."""
    outline = _outline(asked)
    kernels = Kernels(asked.target, lambda _: None, outline.stored, outline.arguments,
                      outline.wished)
    found = [kernels.of(group, outline.known, outline.over(group)) for group in outline.groups]
    return _details(outline, found, _plan(asked, outline, _written_over(outline, found)))


def layouts_of(asked: Asked) -> Layouts:
    """The layouts of a program."""
    return _chosen(asked, _graph(asked))


def _graph(asked: Asked) -> Graph:
    return graph_of(asked.outputs, asked.inputs, list(asked.constants), asked.target)


def _chosen(asked: Asked, graph: Graph) -> Layouts:
    return choose_layouts(
        graph, asked.target, asked.layouts, asked.stick_hints, relayouts=asked.relayouts
    )


@dataclass(frozen=True, slots=True)
class _Outline:
    """What is decided before there are kernels.

    Attributes:
        graph: the operations.
        groups: those that become a kernel each, in the order in which they run.
        known: what follows from constants alone, and is computed once.
        lifetimes: of each value between kernels the first and the last kernel that needs it.
        apart: the copies between layouts.
        layouts: of all values, if the machine cares.
        stored: the layouts of those in memory that are not in the order of NumPy.
        wished: hints about divisions, by the results of the groups that they are for.
        of_hints: what stands for the value of each.
    """

    graph: Graph
    groups: tuple[Group, ...]
    known: frozenset[Tensor]
    lifetimes: Mapping[Tensor, tuple[int, int]]
    apart: frozenset[Operation]
    layouts: Layouts | None
    stored: Mapping[Tensor, Layout]
    wished: Mapping[Operation, Sequence[Divided]]
    of_hints: Mapping[DivisionHint, Operation]

    @property
    def arguments(self) -> frozenset[Tensor]:
        """What the caller passes."""
        return frozenset((*self.graph.inputs, *self.graph.outputs, *self.graph.constants))

    def over(self, group: Group) -> tuple[int, ...]:
        """The positions of what the result of a group may be written over."""
        made = self.lifetimes.get(group.result.output(0))
        return candidates(group, made[0], self.lifetimes) if made else ()

    def runs_once(self, group: Group) -> bool:
        """Whether a group is computed when constants are laid out."""
        return self.known.issuperset(group.result.outputs)


def _outline(asked: Asked) -> _Outline:
    graph = written = _graph(asked)
    stands = dict[Tensor, Tensor]()
    layouts, apart, stored = None, frozenset[Operation](), dict[Tensor, Layout]()
    if asked.is_laid_out:
        chosen = _chosen(asked, graph)
        made = laid(chosen)
        graph, apart, stored = made.graph, made.apart, dict(made.stored)
        groups = groups_of(graph, apart, made.asked)
        layouts, stands = made.homes(chosen, groups), dict(made.made)
        written = chosen.graph
    else:
        groups = groups_of(graph)
    known = known_once(graph, groups)
    each = [group for group in groups if not known.issuperset(group.result.outputs)]
    lifetimes = lifetimes_of(graph, each)
    wished = divided(asked.division_hints, written, stands, groups)
    hinted = {hint: written.of(hint.tensor) for hint in asked.division_hints}
    of_hints = {hint: stands.get(x, x).op for hint, x in hinted.items()}
    outline = _Outline(
        graph, groups, known, lifetimes, apart, layouts, stored, wished, of_hints
    )
    # Whatever is written over what: then it does not fit in any case.
    least = {
        group.result.output(0): border_of(group)[position]
        for group in each for position in outline.over(group)[:1]
    }
    _plan(asked, outline, least)
    return outline


def _written_over(
    outline: _Outline, kernels: Sequence[GroupKernel]
) -> dict[Tensor, Tensor]:
    """The values that kernels write over others, with those."""
    return {
        group.result.output(0): border_of(group)[kernel.over]
        for group, kernel in zip(outline.groups, kernels, strict=True) if kernel.over is not None
    }


def _plan(asked: Asked, outline: _Outline, over: Mapping[Tensor, Tensor]) -> Plan:
    """Where the values between kernels are, those in one place that are written over each other.

    Raises:
        CapacityError: the machine has too little memory.
    """
    sizes = {x: bytes_of(x, outline.stored) for x in outline.lifetimes}
    needed = Needed(outline.lifetimes, sizes, over)
    plan = needed.plan
    memory, graph = asked.target.memories.get(device_of(asked.target)), outline.graph
    if memory is not None:
        resident, what = (*graph.inputs, *graph.outputs, *graph.constants), _PASSED
        if memory is not asked.target.memories.get("global"):
            # What callers pass is in another one.
            resident, what = tuple(outline.known.difference(graph.constants)), "constants"
        outside = sum(bytes_of(x, outline.stored) for x in resident)
        check_fits(asked.name, memory, outside, what, needed, plan)
    return plan


def compiled(asked: Asked) -> tuple[Native, Details]:
    """The machine code of a program, and what it is made of."""
    outline = _outline(asked)
    found: list[GroupKernel] = []
    with progress(f"compile {asked.name}", len(outline.groups)) as shown, codes() as made:
        kernels = Kernels(asked.target, made.add, outline.stored, outline.arguments,
                          outline.wished)
        for group in outline.groups:
            found.append(kernels.of(group, outline.known, outline.over(group)))
            shown.step()
        plan = _plan(asked, outline, _written_over(outline, found))
        pairs = list(zip(outline.groups, found, strict=True))
        native = native_of(asked.name, outline.graph, pairs, outline.known, plan, made,
                           outline.stored)
    return native, _details(outline, found, plan)


def _details(outline: _Outline, kernels: Sequence[GroupKernel], plan: Plan) -> Details:
    pairs = [*zip(outline.groups, kernels, strict=True)]
    calls = [
        Call(group, kernel.part, kernel.packed(group), group.result in outline.apart)
        for group, kernel in pairs
        if not outline.runs_once(group)
    ]
    graph = outline.graph
    refused = {group.result: kernel.refused for group, kernel in pairs}
    wishes = wishes_of(outline.wished, refused, outline.of_hints)
    return Details(
        graph.inputs, graph.outputs, tuple(calls), plan, outline.layouts, outline.stored, wishes
    )
