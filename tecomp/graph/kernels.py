"""Schedule and lower fusion groups to kernels; deduplicate and label them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count

from tecomp.codegen.llvm.compiled import ModuleText
from tecomp.codegen.llvm.ir_builder import Options
from tecomp.compute.define import placeholder
from tecomp.compute.expression_analysis import rebuilt
from tecomp.compute.operation import Operation
from tecomp.compute.tensor import Tensor
from tecomp.constraints.user_hints import DivisionHint
from tecomp.driver.auto_schedule import scheduled
from tecomp.driver.build_cache import Build
from tecomp.driver.program_codegen import Part, part_of
from tecomp.graph.constant_folding import fold
from tecomp.graph.definition_keys import definition_key
from tecomp.graph.fusion import Group, border_of
from tecomp.graph.memory_plan import written_over
from tecomp.graph.sizes import bytes_of, sizes_of
from tecomp.graph.value_placement import Places
from tecomp.graph.work_division import Divided, agreed
from tecomp.ir.nodes.printer import identifier
from tecomp.ir.nodes.stmt import Buffer
from tecomp.lowering.pipeline import Lowered
from tecomp.machine.descriptor import Target
from tecomp.schedules.scratchpad.work_division import Cut, Cuts


@dataclass(frozen=True, slots=True)
class Packed:
    """What is made once of constants, in the order of a kernel.

    Attributes:
        source: the first constant that it follows from.
        shape: in memory, one extent for each axis of its layout.
        bytes: of it.
    """

    source: Tensor
    shape: tuple[int, ...]
    bytes: int


@dataclass(frozen=True, slots=True)
class Call:
    """One kernel of a program, in the order in which they run.

    Attributes:
        group: the operations that it computes.
        part: its code; equal groups have the same.
        packed: the constants that it takes in an order of its own.
        is_relayout: whether it copies a value to another layout, and computes nothing.
    """

    group: Group
    part: Part
    packed: tuple[Packed, ...] = ()
    is_relayout: bool = False


@dataclass(frozen=True, slots=True)
class Folded:
    """What a kernel takes that follows from constants: a copy of weights in the order of tiles.

    Attributes:
        part: computes it.
        sources: the positions, among what the group reads, of what it is computed from.
    """

    part: Part
    sources: tuple[int, ...]

    def of(self, source: Tensor) -> Packed:
        """What it is, where the first value that it is computed from is this one."""
        result = self.part.lowered.signature.params[-1]
        assert isinstance(result, Buffer)
        return Packed(source, sizes_of(result), bytes_of(result))


@dataclass(frozen=True, slots=True)
class GroupKernel:
    """The kernel of groups that are alike.

    Attributes:
        part: its code.
        reads: the positions, among what a group reads, of what it takes.
        folded: what follows from constants alone, which it takes then.
        over: the position of what its result is written over, which is then not passed.
        refused: the hints about divisions that are not kept, with the reasons.
    """

    part: Part
    reads: tuple[int, ...]
    folded: tuple[Folded, ...]
    over: int | None = None
    refused: Mapping[DivisionHint, str] = field(default_factory=dict)

    def packed(self, group: Group) -> tuple[Packed, ...]:
        """What is made of the constants of a group."""
        border = border_of(group)
        return tuple(each.of(border[each.sources[0]]) for each in self.folded if each.sources)


@dataclass(frozen=True, slots=True)
class Kernels:
    """Kernels in the making.

    Attributes:
        target: the machine.
        begin: called with each module as soon as there is one.
        places: where whole values are.
        wished: hints about the division of groups, by their results.
        near: by their results, how those are cut in which values stay in scratchpads: these values,
            and the result.
    """

    target: Target
    begin: Callable[[ModuleText], None]
    places: Places
    wished: Mapping[Operation, Sequence[Divided]] = field(default_factory=dict)
    near: Mapping[Operation, Cuts] = field(default_factory=dict)
    _known: dict[str, GroupKernel] = field(default_factory=dict)
    _number: Iterator[int] = field(default_factory=count)

    def of(
        self, group: Group, constants: Container[Tensor], over: Sequence[int] = ()
    ) -> GroupKernel:
        """The kernel of a group, the same for all that are alike.

        Args:
            group: what it computes.
            constants: what is the same in every call of it.
            over: the positions of what its result may be written over; on a processor it is, if
                each element is read just before it is stored.
        """
        border = border_of(group)
        if self.target.core is None:
            constants = ()  # What is in the memory of a core is there for a call.
        around = (*border, *group.result.outputs)
        stored = self.places.stored
        lying = repr([
            str(stored[x].index_map) if x in stored else self.places.is_outside(x) for x in around
        ])
        folding = "".join(str(int(x in constants)) for x in border) + lying
        # What is said of a hint names its value: kernels with hints are alike for the same alone.
        folding += "".join(f" {id(each.hint)}" for each in self.wished.get(group.result, ()))
        number = {op: k for k, op in enumerate(group.operations)}
        cuts = self.near.get(group.result, {}).items()
        folding += "".join(f" {number[x.op]} {sorted(cut.cores.items())}" for x, cut in cuts)
        key = folding + definition_key(group.operations, border)
        if key in self._known and self._known[key].part.has_places:
            # An error at run time says where the user wrote what fails.
            key = folding + definition_key(group.operations, border, with_places=True)
        for position in over if self.target.core is not None else ():
            found = self._of(f"{position} {key}", group, border, constants, position)
            if found.over is not None:
                return found
            self._known.setdefault(key, found)
        return self._of(key, group, border, constants)

    def _of(
        self, key: str, group: Group, border: Sequence[Tensor], constants: Container[Tensor],
        over: int | None = None,
    ) -> GroupKernel:
        if key not in self._known:
            made, refused = agreed(
                self.wished.get(group.result, ()),
                lambda cut: self._made(group, border, constants, over, cut),
            )
            self._known[key] = replace(made, refused=refused) if refused else made
        return self._known[key]

    def _made(
        self, group: Group, border: Sequence[Tensor], constants: Container[Tensor],
        over: int | None, cut: Cut | None,
    ) -> GroupKernel:
        own = {x: placeholder(x.shape, x.dtype, x.name) for x in border}
        moved = rebuilt(group.operations, own)
        results = [moved.get(x, x) for x in group.result.outputs]
        pairs = zip((*border, *group.result.outputs), (*own.values(), *results), strict=True)
        places = {new: self.places.of(x) for x, new in pairs}
        division = {moved[x]: each for x, each in self.near.get(group.result, {}).items()}
        for x in self.near.get(group.result, {}):
            if x in self.places.stored:
                places.setdefault(moved[x], self.places.of(x))
        maps = {x: place for x, place in places.items() if place is not None}
        near = [x for x in division if x not in results]
        division |= {} if cut is None else {results[0]: cut}
        schedule = scheduled(results, self.target, maps, division, near=near)
        args = [*own.values(), *results]
        asked = Build(schedule, args, group.result.name, self.target, Options())
        asked, folds = fold(asked, [own[x] for x in border if x in constants])
        folded = tuple(Folded(self._part(self._named(x)), sources) for x, sources in folds)
        asked = self._named(asked)
        reads = tuple(k for k, x in enumerate(own.values()) if x in asked.args)
        lowered = asked.lowered()
        merged = written_over(lowered, reads.index(over)) if over in reads else None
        if merged is None:
            return GroupKernel(self._part(asked, lowered), reads, folded)
        reads = tuple(k for k in reads if k != over)
        return GroupKernel(self._part(asked, merged), reads, folded, over)

    def _named(self, build: Build) -> Build:
        # The names of the functions of one program differ; those of tensors are any text.
        return replace(build, name=identifier(f"{build.name}_{next(self._number)}"))

    def _part(self, build: Build, lowered: Lowered | None = None) -> Part:
        part = part_of(build, lowered)
        self.begin(part.module)
        return part


def labels_of(calls: Sequence[Call]) -> Mapping[Operation, str]:
    """What each kernel is called, by its result.

    Args:
        calls: the kernels in order.
    """
    names = Counter(call.group.result.name for call in calls)
    seen = Counter[str]()
    found: dict[Operation, str] = {}
    for call in calls:
        result = call.group.result
        seen[result.name] += 1
        number = f"#{seen[result.name]}" if names[result.name] > 1 else ""
        found[result] = f"{result.name}{number}"
    return found
