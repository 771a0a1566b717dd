"""Decisions made before code generation: layouts, groups, residency."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from tecomp.compute.operation import Operation
from tecomp.compute.tensor import Tensor
from tecomp.constraints.user_hints import DivisionHint
from tecomp.errors import LayoutError
from tecomp.graph.compile_options import CompileRequest
from tecomp.graph.dag import ProgramGraph, check_constant_sizes, graph_of
from tecomp.graph.fusion import (
    FusionGroup,
    combine_siblings,
    form_fusion_groups,
    group_inputs,
)
from tecomp.graph.insert_relayouts import ProgramWithLayouts, insert_relayouts
from tecomp.graph.kernels import compile_time_constants
from tecomp.graph.layout_assignment import choose_layouts
from tecomp.graph.layout_candidates import candidates, has_layouts
from tecomp.graph.layout_demands import copy_resident_inputs, is_near, shards_of
from tecomp.graph.layout_result import InsertedCopy, ProgramLayouts
from tecomp.graph.memory_plan import (
    ArenaPlan,
    MemoryDemand,
    SymbolicArenaPlan,
    check_fits,
    in_place_candidates,
    lifetimes_of,
    plan_symbolic_memory,
)
from tecomp.graph.physical_order import layouts_between_kernels
from tecomp.graph.scratchpad_residency import Residency, residency
from tecomp.graph.sizes import bytes_of, elements_of, plain_layout, sizes_of
from tecomp.graph.value_placement import ReshardError, ResidencyExclusions, Shards, ValueLocations
from tecomp.graph.work_division import KernelDivision, apply_division_hints
from tecomp.layout.core.layout import Layout
from tecomp.schedules.scratchpad.placement import device_of

_PASSED_VALUES = "inputs, outputs and constants"


@dataclass(frozen=True, slots=True)
class ProgramPlan:
    """Decisions made before code generation.

    Attributes:
        request: Compile request.
        graph: Operations, including relayouts.
        parts: Fusion groups before scratchpad residency merges them.
        known: Values that depend on constants only and are computed once.
        assigned_layouts: Layout assignment; None if layouts do not matter.
        laid_out_program: Program with explicit layouts and copies; None if layouts do not matter.
        division_hints: Division hints of each group, by its result.
        of_hints: Operation that computes the hinted value of each division hint.
        residency: Kernels of a program call, and the values that stay in scratchpads.
        lifetimes: First and last kernel that needs each value between these kernels.
        shards: Values of the program that must be in scratchpads, with their shards.
        copy_shards: Shards of the copies of such values for readers of other parts; copies of other
            values are in device memory.
    """

    request: CompileRequest
    graph: ProgramGraph
    parts: tuple[FusionGroup, ...]
    known: frozenset[Tensor]
    assigned_layouts: ProgramLayouts | None
    laid_out_program: ProgramWithLayouts | None
    division_hints: Mapping[Operation, Sequence[KernelDivision]]
    of_hints: Mapping[DivisionHint, Operation]
    residency: Residency
    lifetimes: Mapping[Tensor, tuple[int, int]]
    shards: Mapping[Tensor, Shards]
    copy_shards: Mapping[Tensor, Shards] = field(default_factory=dict)

    @property
    def groups(self) -> tuple[FusionGroup, ...]:
        """Groups that become kernels, in execution order; groups of constants come first."""
        known = (group for group in self.parts if self.runs_once(group))
        return (*known, *self.residency.groups)

    @property
    def layouts(self) -> ProgramLayouts | None:
        """Layouts of all values, and kernels of hinted values; None if layouts do not matter."""
        if self.assigned_layouts is None or self.laid_out_program is None:
            return None
        found = self.laid_out_program.with_fused_kernels(self.assigned_layouts, self.groups)
        if not self.shards:
            return found
        local: dict[Tensor, Layout] = {x: shards.layout for x, shards in self.shards.items()}
        local |= {
            x: layout for x, layout in self.request.layouts.items()
            if is_near(layout, self.request.target) and x in self.graph.inputs
        }
        return replace(
            found, of={**found.of, **local}, layouts_or_views={**found.layouts_or_views, **local},
            reshards=tuple(self._reshards(self.laid_out_program)),
        )

    def _reshards(self, program: ProgramWithLayouts) -> Iterator[InsertedCopy]:
        """Yield the copies of values in scratchpads that readers of other parts read."""
        before = {program.replacements.get(x, x): x for x in self.shards}
        for op, (source, readers) in program.copies.items():
            copy = op.output(0)
            x = before[source] if source in before else before[copy]
            shards, other = self.shards[x].layout, source if copy in before else copy
            outside: Layout = program.stored.get(other, plain_layout(x))
            if source in before and x in self.copy_shards:
                outside = self.copy_shards[x].layout
            source_layout, dest = (shards, outside) if source in before else (outside, shards)
            yield InsertedCopy(x, source_layout, dest, readers, elements_of(x))

    @property
    def stored(self) -> Mapping[Tensor, Layout]:
        """Layouts of values in memory that are not in row-major order."""
        return (
            {}
            if self.laid_out_program is None
            else {**self.laid_out_program.stored, **self.residency.resident_layouts}
        )

    @property
    def copies(self) -> frozenset[Operation]:
        """Operations that copy values to other layouts."""
        return (
            frozenset() if self.laid_out_program is None else self.laid_out_program.copy_operations
        )

    @property
    def locations(self) -> ValueLocations:
        """Storage of the values in memory."""
        graph = self.graph
        arguments = frozenset((*graph.inputs, *graph.outputs, *graph.constants))
        return ValueLocations(self.request.target, self.stored, arguments.difference(self.packed))

    @property
    def packed(self) -> tuple[Tensor, ...]:
        """Inputs and outputs that the caller passes in device layout, in the requested order."""
        before = (*self.request.inputs, *self.request.outputs)
        current = dict(zip(before, (*self.graph.inputs, *self.graph.outputs), strict=True))
        return tuple(current[x] for x in self.request.packed)

    def value(self, x: Tensor) -> Tensor:
        """Return the tensor that represents a value of the program."""
        program = self.laid_out_program
        return x if program is None else program.replacements.get(x, x)

    def in_place_positions(self, group: FusionGroup) -> tuple[int, ...]:
        """Return the positions of the operands that the result of a group may overwrite."""
        lifetime = self.lifetimes.get(group.result.output(0))
        return in_place_candidates(group, lifetime[0], self.lifetimes) if lifetime else ()

    def runs_once(self, group: FusionGroup) -> bool:
        """Return whether a group is computed once, when constants are packed."""
        return self.known.issuperset(group.result.outputs)

    def without(self, refused: Mapping[Operation, str]) -> ProgramPlan:
        """Return the plan without resident values in the given kernels.

        Values in shards get copies in device memory for readers of other parts.

        Args:
            refused: Reason for each kernel, by its result.

        Raises:
            LayoutError: If a value cannot be in the requested shards.
        """
        program = self.laid_out_program
        replacements = {} if program is None else program.replacements
        exclusions = ResidencyExclusions(
            self.copies,
            frozenset() if program is None else program.requested_ops,
            self.division_hints.keys(),
            refused,
            {replacements.get(x, x): shards for x, shards in self.shards.items()}
            | self._resident_copies(),
            frozenset() if program is None else frozenset(program.copies),
        )
        parts = [group for group in self.parts if not self.runs_once(group)]
        locations = replace(self, residency=Residency(())).locations
        try:
            found = residency(parts, self.graph, locations, exclusions)
        except ReshardError as reshard:
            assert program is not None
            if reshard.tensor in self._resident_copies():
                raise LayoutError(
                    "layouts: the copy {x} in shards {count} has a reader of other parts; use "
                    "another grid, or remove its layout",
                    kind="layout-requirement", x=reshard.tensor.name,
                    count=" x ".join(map(str, exclusions.shards[reshard.tensor].count)),
                ) from None
            copied, subst = program.with_copy(reshard.tensor, reshard.readers)
            left = {subst.get(op.output(0), op.output(0)).op: text for op, text in refused.items()}
            return self.with_groups(copied).without(left)
        return replace(
            self, residency=found, lifetimes=lifetimes_of(self.graph, found.groups)
        )

    def _resident_copies(self) -> dict[Tensor, Shards]:
        """Return the copies for readers of other parts that are in scratchpads."""
        program = self.laid_out_program
        if program is None or not self.copy_shards:
            return {}
        replacements = program.replacements
        by_value = {replacements.get(x, x): shards for x, shards in self.copy_shards.items()}
        return {
            op.output(0): by_value[source]
            for op, (source, _) in program.copies.items() if source in by_value
        }

    def with_shards(
        self, shards: Mapping[Tensor, Shards], copy_shards: Mapping[Tensor, Shards]
    ) -> ProgramPlan:
        """Return the plan with other values in scratchpads from kernel to kernel.

        Args:
            shards: Values of the program that must be in scratchpads, with their shards.
            copy_shards: Shards of the copies of such values for readers of other parts.

        Raises:
            LayoutError: If a value cannot be in the given shards.
        """
        assert self.assigned_layouts is not None
        program = insert_relayouts(
            self.assigned_layouts,
            frozenset(map(self.assigned_layouts.graph.of, self.request.packed)),
            shards,
        )
        plan = replace(self, shards=shards, copy_shards=copy_shards)
        return plan.with_groups(program).without({})

    def with_groups(self, prog: ProgramWithLayouts) -> ProgramPlan:
        """Return the plan for a program with explicit layouts, with its fusion groups."""
        assert self.assigned_layouts is not None
        original, replacements = self.assigned_layouts.graph, dict(prog.replacements)
        stored = {replacements.get(x, x).op for x in self.shards} | {*prog.copies}
        groups = form_fusion_groups(
            prog.graph, self.request.target, prog.copy_operations, prog.requested_ops, stored,
            prog.stored,
        )
        known = compile_time_constants(prog.graph, groups)
        for x in self.shards:
            if replacements.get(x, x) in known:
                raise LayoutError(
                    "layouts: {x} depends only on constants and is computed once, but shards in "
                    "scratchpads exist for one call only; remove its layout",
                    kind="layout-requirement", x=x.name,
                )
        hinted = {hint: original.of(hint.tensor) for hint in self.request.division_hints}
        return replace(
            self,
            graph=prog.graph,
            parts=groups,
            known=known,
            laid_out_program=prog,
            division_hints=apply_division_hints(
                self.request.division_hints, original, replacements, groups
            ),
            of_hints={hint: replacements.get(x, x).op for hint, x in hinted.items()},
        )

    def plan(self, in_place: Mapping[Tensor, Tensor]) -> ArenaPlan | SymbolicArenaPlan:
        """Compute the memory plan of the values between kernels, with the given in-place results.

        Raises:
            CapacityError: If the memory of the target is too small.
        """
        request, graph = self.request, self.graph
        if graph.sizes:
            return plan_symbolic_memory(self.lifetimes, graph.sizes, in_place)
        sizes = {x: bytes_of(x, self.stored) for x in self.lifetimes}
        demand = MemoryDemand(self.lifetimes, sizes, in_place)
        plan = replace(
            demand.plan, residents=self.residency.residents, spills=self.residency.spills
        )
        memory = request.target.memories.get(device_of(request.target))
        if memory is not None:
            resident, contents = (*graph.inputs, *graph.outputs, *graph.constants), _PASSED_VALUES
            if memory is not request.target.memories.get("global"):
                # Arguments of the caller are in host memory, which is a separate memory.
                resident = (*self.packed, *self.known.difference(graph.constants))
                contents = "packed arguments and constants" if self.packed else "constants"
            outside = sum(bytes_of(x, self.stored) for x in resident)
            check_fits(request.name, memory, outside, contents, demand, plan)
        return plan


def requested_graph(request: CompileRequest) -> ProgramGraph:
    """Build the operation graph of a compile request, with copies of inputs to scratchpads."""
    graph = graph_of(request.outputs, request.inputs, list(request.constants), request.target)
    if request.target.core is None:
        check_constant_sizes(graph, f"the target {request.target.name}")
    elif request.is_laid_out or request.hints:
        check_constant_sizes(graph, "a layout or hint")
    return copy_resident_inputs(graph, request.target, request.layouts, request.packed)


def choose_program_layouts(request: CompileRequest, graph: ProgramGraph) -> ProgramLayouts:
    """Assign the layouts of a compile request."""
    specs = dict(request.layouts)
    if has_layouts(request.target):
        # Arguments in device layout need a standard layout of the target: they cannot be views.
        specs |= {
            x: candidates(request.target, sizes_of(x), x.dtype)
            for x in request.packed if x not in specs
        }
    return choose_layouts(
        graph, request.target, specs, request.stick_hints, relayouts=request.relayouts
    )


def plan_program(request: CompileRequest) -> ProgramPlan:
    """Make all decisions that precede code generation.

    Raises:
        CapacityError: If the memory of the target is too small.
        LayoutError: If hints or layouts cannot be honoured.
    """
    graph = requested_graph(request)
    if request.is_laid_out:
        chosen = choose_program_layouts(request, graph)
        shards = shards_of(chosen.graph, request.target, request.layouts, request.packed)
        program = insert_relayouts(chosen, frozenset(map(chosen.graph.of, request.packed)), shards)
        if request.target.core is not None:
            copied = program.copy_operations | program.requested_ops
            inner_layouts = layouts_between_kernels(program.graph, program.stored, copied)
            program = replace(program, stored={**program.stored, **inner_layouts})
        initial = ProgramPlan(
            request, graph, (), frozenset(), chosen, program, {}, {}, Residency(()), {}, shards)
        grouped = initial.with_groups(program)
    else:
        if request.target.core is not None and not request.hints:
            graph = combine_siblings(graph, request.target)
        groups = form_fusion_groups(graph, request.target)
        hinted = {hint: graph.of(hint.tensor) for hint in request.division_hints}
        grouped = ProgramPlan(
            request, graph, groups, compile_time_constants(graph, groups), None, None,
            apply_division_hints(request.division_hints, graph, {}, groups),
            {hint: x.op for hint, x in hinted.items()}, Residency(()), {}, {},
        )
    found = grouped.without({})
    # Check capacity with all possible in-place results: if this does not fit, nothing does.
    found.plan({
        group.result.output(0): group_inputs(group)[position]
        for group in found.residency.groups for position in found.in_place_positions(group)[:1]
    })
    return found
