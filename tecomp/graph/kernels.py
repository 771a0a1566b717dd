"""Schedule and lower fusion groups to kernels; deduplicate them and fold constants."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from itertools import count

from tecomp.codegen.llvm.ir_builder import Options
from tecomp.compute.access_relations import variables_in, variables_of
from tecomp.compute.define import placeholder
from tecomp.compute.expression_analysis import substitute_inputs
from tecomp.compute.operation import Operation
from tecomp.compute.tensor import Tensor
from tecomp.constraints.user_hints import DivisionHint
from tecomp.driver.auto_schedule import SchedulingProblem, build_default_schedule
from tecomp.driver.build_cache import BuildRequest
from tecomp.driver.program_codegen import ProgramKernel, part_of
from tecomp.graph.dag import ProgramGraph
from tecomp.graph.definition_keys import definition_key
from tecomp.graph.fusion import FusionGroup, group_inputs
from tecomp.graph.memory_plan import reuse_input_buffer
from tecomp.graph.physical_order import follow_memory_order
from tecomp.graph.sizes import bytes_of, sizes_of
from tecomp.graph.value_placement import ValueLocations
from tecomp.graph.work_division import KernelDivision, compile_with_hints
from tecomp.ir.arith.extents import round_up
from tecomp.ir.nodes.expr import Var
from tecomp.ir.nodes.printer import identifier
from tecomp.ir.nodes.stmt import Buffer
from tecomp.lowering.pipeline import LoweringResult
from tecomp.machine.descriptor import Target
from tecomp.schedules.scratchpad.placement import placement_of
from tecomp.schedules.scratchpad.work_division import Cuts, DivisionSpec
from tecomp.scheduling.schedule import Schedule
from tecomp.scheduling.split_schedule import consumers_schedule, producers_schedule, stages_of
from tecomp.scheduling.state import ScheduleState, StageState


@dataclass(frozen=True, slots=True)
class PackedConstants:
    """A constant that was packed once into the layout that a kernel requires.

    Attributes:
        source: First constant that the packed value depends on.
        shape: Physical shape in memory.
        bytes: Size in bytes.
    """

    source: Tensor
    shape: tuple[int, ...]
    bytes: int


@dataclass(frozen=True, slots=True)
class KernelCall:
    """One kernel call of a program.

    Attributes:
        group: Operations that the kernel computes.
        kernel: Compiled kernel; equal groups share it.
        packed: Packed constants that the kernel takes.
        is_relayout: Whether the kernel only copies a value to another layout.
    """

    group: FusionGroup
    kernel: ProgramKernel
    packed: tuple[PackedConstants, ...] = ()
    is_relayout: bool = False


@dataclass(frozen=True, slots=True)
class FoldedOperand:
    """A kernel operand that depends on constants only, such as weights packed into tiles.

    Attributes:
        kernel: Kernel that computes the operand.
        sources: Positions, among the operands of the group, of the constants that it reads.
    """

    kernel: ProgramKernel
    sources: tuple[int, ...]

    def of(self, source: Tensor) -> PackedConstants:
        """Describe the packed constant, given its first source."""
        result = self.kernel.lowered.signature.params[-1]
        assert isinstance(result, Buffer)
        return PackedConstants(source, sizes_of(result), bytes_of(result))


@dataclass(frozen=True, slots=True)
class FusedKernel:
    """Kernel of equal fusion groups.

    Attributes:
        kernel: Compiled kernel.
        reads: Positions, among the operands of a group, of the operands that the kernel takes.
        folded: Operands that depend on constants only, which follow `reads`.
        over: Position of the operand that the result overwrites and that is therefore not passed.
        refused: Division hints that were not honoured, with the reasons.
    """

    kernel: ProgramKernel
    reads: tuple[int, ...]
    folded: tuple[FoldedOperand, ...]
    over: int | None = None
    refused: Mapping[DivisionHint, str] = field(default_factory=dict)

    @property
    def parts(self) -> tuple[ProgramKernel, ...]:
        """Kernels of the folded operands and of the results."""
        return (*(operand.kernel for operand in self.folded), self.kernel)

    def packed(self, group: FusionGroup) -> tuple[PackedConstants, ...]:
        """Return the packed constants of a group."""
        border = group_inputs(group)
        return tuple(item.of(border[item.sources[0]]) for item in self.folded if item.sources)


@dataclass(frozen=True, slots=True)
class KernelDefinition:
    """Definition of a kernel of a program, before it has a schedule.

    Attributes:
        problem: Arguments of the automatic scheduler.
        args: Tensors and size variables, in the parameter order of the kernel.
        name: Name of the kernel.
    """

    problem: SchedulingProblem
    args: tuple[object, ...]
    name: str

    def split(self) -> tuple[BuildRequest, tuple[tuple[BuildRequest, tuple[int, ...]], ...]]:
        """Schedule the kernel, and split the stages off that depend on constants only."""
        p = self.problem
        schedule = build_default_schedule(
            p.outputs, p.target, p.layouts, p.division, p.strides, p.near, p.bounds, p.constants)
        request = BuildRequest(schedule, self.args, self.name, p.target, Options())
        return fold(request, p.constants)


_DEFINITIONS: ContextVar[list[KernelDefinition] | None] = ContextVar(
    "tecomp_kernel_definitions", default=None)


@contextmanager
def collect_definitions() -> Iterator[list[KernelDefinition]]:
    """Collect the definitions of the kernels that are compiled in this block."""
    found: list[KernelDefinition] = []
    token = _DEFINITIONS.set(found)
    try:
        yield found
    finally:
        _DEFINITIONS.reset(token)


@dataclass(frozen=True, slots=True)
class KernelBuilder:
    """Cache of the kernels of a program, by structural key.

    Attributes:
        target: Target.
        locations: Storage of the values in memory.
        division_hints: Division hints of each group, by its result.
        resident_divisions: For groups with resident values, by their results: the division of these
            values and of the result.
        resident_bytes: Bytes on each core of values that stay in scratchpads and that a group
            neither reads nor computes, by its result.
    """

    target: Target
    locations: ValueLocations
    division_hints: Mapping[Operation, Sequence[KernelDivision]] = field(default_factory=dict)
    resident_divisions: Mapping[Operation, Cuts] = field(default_factory=dict)
    resident_bytes: Mapping[Operation, int] = field(default_factory=dict)
    _kernels_by_key: dict[str, FusedKernel] = field(default_factory=dict)
    _number: Iterator[int] = field(default_factory=count)

    def of(
        self, group: FusionGroup, constants: Container[Tensor], overwritable: Sequence[int] = ()
    ) -> FusedKernel:
        """Return the kernel of a group; equal groups share one kernel.

        Args:
            group: Operations to compute.
            constants: Tensors that are equal in every call.
            overwritable: Positions of operands that the result may overwrite. On processors it does
                if each element is read directly before the result is stored.
        """
        border = group_inputs(group)
        if self.target.core is None:
            constants = ()  # core memories keep nothing between calls
        tensors = (*border, *group.result.outputs)
        stored = self.locations.stored
        placements = repr([
            (str(stored[x].index_map), self.locations.is_near(x)) if x in stored
            else self.locations.is_outside(x) for x in tensors
        ])
        folding = "".join(str(int(x in constants)) for x in border) + placements
        # Hint outcomes name the hinted value, so groups share a kernel only if they share hints.
        folding += "".join(
            f" {id(spec.hint)}" for spec in self.division_hints.get(group.result, ())
        )
        number = {op: k for k, op in enumerate(group.operations)}
        cuts = self.resident_divisions.get(group.result, {}).items()
        folding += "".join(f" {number[x.op]} {sorted(cut.cores.items())}" for x, cut in cuts)
        folding += f" {self.resident_bytes.get(group.result, 0)}"
        key = folding + definition_key(group.operations, border)
        if key in self._kernels_by_key and self._kernels_by_key[key].kernel.has_places:
            # Run-time errors report source locations, so the key must include them.
            key = folding + definition_key(group.operations, border, with_places=True)
        for position in overwritable if self.target.core is not None else ():
            found = self._of(f"{position} {key}", group, border, constants, position)
            if found.over is not None:
                return found
            self._kernels_by_key.setdefault(key, found)
        return self._of(key, group, border, constants)

    def _of(
        self, key: str, group: FusionGroup, border: Sequence[Tensor], constants: Container[Tensor],
        reused: int | None = None,
    ) -> FusedKernel:
        if key not in self._kernels_by_key:
            kernel, refused = compile_with_hints(
                self.division_hints.get(group.result, ()),
                lambda cut: self._made(group, border, constants, reused, cut),
            )
            self._kernels_by_key[key] = replace(kernel, refused=refused) if refused else kernel
        return self._kernels_by_key[key]

    def _made(
        self, group: FusionGroup, border: Sequence[Tensor], constants: Container[Tensor],
        reused: int | None, cut: DivisionSpec | None,
    ) -> FusedKernel:
        inputs = {x: placeholder(x.shape, x.dtype, x.name) for x in border}
        subst = substitute_inputs(group.operations, inputs)
        results = [subst.get(x, x) for x in group.result.outputs]
        pairs = zip((*border, *group.result.outputs), (*inputs.values(), *results), strict=True)
        locations = {new: self.locations.of(x) for x, new in pairs}
        division = {
            subst[x]: spec for x, spec in self.resident_divisions.get(group.result, {}).items()
        }
        for x in self.resident_divisions.get(group.result, {}):
            if x in self.locations.stored:
                locations.setdefault(subst[x], self.locations.of(x))
        maps = {x: location for x, location in locations.items() if location is not None}
        if self.target.core is not None:
            inside = [subst.get(op.output(0), op.output(0)).op for op in group.operations]
            ordered = follow_memory_order(inside, [*inputs.values()], maps)
            inputs = {x: ordered.made.get(new, new) for x, new in inputs.items()}
            results, maps = [ordered.made.get(x, x) for x in results], dict(ordered.places)
        intermediates = [x for x in division if x not in results]
        division |= {} if cut is None else {results[0]: cut}
        target = _with_less_room(self.target, self.resident_bytes.get(group.result, 0))
        definition = KernelDefinition(
            SchedulingProblem(
                tuple(results), target, maps, division, near=tuple(intermediates),
                constants=tuple([inputs[x] for x in border if x in constants])),
            (*inputs.values(), *results, *_free_sizes(group)), group.result.name,
        )
        if (collected := _DEFINITIONS.get()) is not None:
            collected.append(definition)
        request, folds = definition.split()
        folded = tuple(FoldedOperand(self._part(self._named(x)), sources) for x, sources in folds)
        request = self._named(request)
        reads = tuple(k for k, x in enumerate(inputs.values()) if x in request.args)
        lowered = request.lowered()
        merged = reuse_input_buffer(lowered, reads.index(reused)) if reused in reads else None
        if merged is None:
            return FusedKernel(self._part(request, lowered), reads, folded)
        reads = tuple(k for k in reads if k != reused)
        return FusedKernel(self._part(request, merged), reads, folded, reused)

    def _named(self, build: BuildRequest) -> BuildRequest:
        # Function names are unique in a program; tensor names are arbitrary text.
        return replace(build, name=identifier(f"{build.name}_{next(self._number)}"))

    def _part(self, build: BuildRequest, lowered: LoweringResult | None = None) -> ProgramKernel:
        return part_of(build, lowered)


def _free_sizes(group: FusionGroup) -> list[Var]:
    """Return the size variables of a group that no extent of its arguments equals."""
    arguments = (*group_inputs(group), *group.result.outputs)
    extents = [extent for x in arguments for extent in x.shape]
    used = [var for extent in extents for var in variables_in(extent)]
    used += [var for op in group.operations for var in variables_of(op)]
    bound = {extent for extent in extents if isinstance(extent, Var)}
    return [var for var in dict.fromkeys(used) if var not in bound]


def _with_less_room(target: Target, occupied: int) -> Target:
    """Return a target whose scratchpads have fewer bytes, because other values occupy them."""
    placement = placement_of(target) if occupied else None
    if placement is None:
        return target
    memory = target.memory(placement.scratchpad)
    reduced = replace(memory, reserved_bytes=memory.reserved_bytes + occupied)
    return replace(target, memories={**target.memories, memory.name: reduced})


def labels_of(calls: Sequence[KernelCall]) -> Mapping[Operation, str]:
    """Return a unique label of each kernel, by its result.

    Args:
        calls: Kernel calls in order.
    """
    names = Counter(call.group.result.name for call in calls)
    seen = Counter[str]()
    labels: dict[Operation, str] = {}
    for call in calls:
        result = call.group.result
        seen[result.name] += 1
        number = f"#{seen[result.name]}" if names[result.name] > 1 else ""
        labels[result] = f"{result.name}{number}"
    return labels


def compile_time_constants(graph: ProgramGraph, groups: Sequence[FusionGroup]) -> frozenset[Tensor]:
    """Return the constants and the results of groups that depend on constants only."""
    known = set(graph.constants)
    for group in groups:
        is_asked_for = not set(graph.outputs).isdisjoint(group.result.outputs)
        has_sizes = any(variables_of(op) for op in group.operations)
        if not is_asked_for and not has_sizes and all(x in known for x in group_inputs(group)):
            known.update(group.result.outputs)
    return frozenset(known)


def fold(
    request: BuildRequest, constants: Sequence[Tensor]
) -> tuple[BuildRequest, tuple[tuple[BuildRequest, tuple[int, ...]], ...]]:
    """Split the stages that depend on constants only off a kernel.

    Args:
        request: Build request of the kernel.
        constants: Arguments that are equal in every call.

    Returns:
        The remaining kernel, whose arguments are the inputs that it still reads, the folded stages
        in order, the results and the scalars; and, for each folded stage, the kernel that computes
        it with the positions of its operands among the original arguments.
    """
    state = request.schedule.state
    stages = stages_of(state, constants)
    if not stages:
        return request, ()
    remaining, folded_inputs = consumers_schedule(state, stages)
    reads = [x for x in request.args if isinstance(x, Tensor) and _is_read(remaining, x)]
    results = [x for x in request.args if isinstance(x, Tensor) and x.op in state.outputs]
    scalars = [x for x in request.args if isinstance(x, Var)]
    args = [*reads, *(folded_inputs[stage.key] for stage in stages), *results, *scalars]
    folded = tuple(_fold(request, producers_schedule(state, stage), stage) for stage in stages)
    return replace(request, program=Schedule(remaining), args=args), folded


def _is_read(state: ScheduleState, tensor: Tensor) -> bool:
    stage = state.find(tensor.op)
    return stage is not None and stage.is_placeholder


def _fold(
    request: BuildRequest, state: ScheduleState, stage: StageState
) -> tuple[BuildRequest, tuple[int, ...]]:
    sources = [
        (k, x) for k, x in enumerate(request.args) if isinstance(x, Tensor) and _is_read(state, x)
    ]
    args = [*(x for _, x in sources), stage.op.output(0)]
    build = replace(request, program=Schedule(state), args=args)
    return build, tuple(k for k, _ in sources)


@dataclass(slots=True)
class ConstantPool:
    """Pool of constants of a program: an allocator of consecutive aligned regions.

    Attributes:
        alignment: Alignment of each constant in bytes.
        end: Number of allocated bytes.
        places: Byte offset of each constant, by its key.
    """

    alignment: int
    end: int = 0
    places: dict[object, int] = field(default_factory=dict)

    def offset(self, key: object, size: int) -> int:
        """Return the byte offset of a constant of `size` bytes, allocating it on first use."""
        if key not in self.places:
            self.places[key] = self.end
            self.end = round_up(self.end + size, self.alignment)
        return self.places[key]
