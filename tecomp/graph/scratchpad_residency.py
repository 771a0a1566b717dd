"""Keep values in scratchpads between kernels.

Kernels are visited from last to first. A kernel whose result is only read by kernels of one core
loop joins that loop if its result can be divided as the readers access it. The readers determine
the division. A reader that no other kernel has joined yet may be divided along fewer axes. The
cost of the changed division, in bytes, must be less than the traffic saved: one store, and one load
per reader.

A value with requested shards stays in the scratchpads in any case: within one kernel if all its
readers join it, else from kernel to kernel. Readers whose cores have other parts read a copy in
device memory, and so do the shards if the cores that compute the value divide it into other parts
(`ReshardError`).
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod

from tecomp.compute.access_relations import accesses
from tecomp.compute.define import placeholder
from tecomp.compute.expression_analysis import substitute_inputs
from tecomp.compute.operation import Operation
from tecomp.compute.tensor import Tensor
from tecomp.cost_model.interconnect import link_between
from tecomp.errors import LayoutError
from tecomp.graph.dag import ProgramGraph
from tecomp.graph.fusion import FusionGroup, group_inputs
from tecomp.graph.sizes import bytes_of, sizes_of
from tecomp.graph.value_placement import (
    ReshardError,
    ResidencyExclusions,
    ResidentValue,
    Spill,
    SpillKind,
    ValueLocations,
)
from tecomp.graph.work_division import (
    DividedKernel,
    FusedKernels,
    UndividedReason,
    division_of,
    division_text,
    format_extents,
)
from tecomp.ir.arith.extents import ceil_div
from tecomp.layout.sharding.shard_layout import ShardLayout
from tecomp.schedules.analysis.stages import is_same
from tecomp.schedules.fusion.scratchpad import DividedResult
from tecomp.schedules.scratchpad.placement import Placement, placement_of
from tecomp.schedules.scratchpad.work_division import DivisionSpec


@dataclass(frozen=True, slots=True)
class Residency:
    """Result of scratchpad residency.

    Attributes:
        groups: Groups that become kernels; some merge several of the original groups.
        cuts: Division of the resident values and of the result of each group, by its result.
        residents: Values that stay in scratchpads within a kernel.
        spills: Other values, with the reasons.
        resident_layouts: Layouts of the values that stay in scratchpads from kernel to kernel.
        resident_bytes: Bytes of such values on a core that a kernel neither reads nor computes, by
            the result of the kernel.
        candidates: For spilled values with several readers, and for copies of values in shards,
            that could stay in scratchpads from kernel to kernel, the numbers of parts along each
            axis for which a reader finds its part on its own core.
    """

    groups: tuple[FusionGroup, ...]
    cuts: Mapping[Operation, Mapping[Tensor, DivisionSpec]] = field(default_factory=dict)
    residents: tuple[ResidentValue, ...] = ()
    spills: tuple[Spill, ...] = ()
    resident_layouts: Mapping[Tensor, ShardLayout] = field(default_factory=dict)
    resident_bytes: Mapping[Operation, int] = field(default_factory=dict)
    candidates: Mapping[Tensor, tuple[tuple[int, ...], ...]] = field(default_factory=dict)


def residency(
    groups: Sequence[FusionGroup], graph: ProgramGraph, locations: ValueLocations,
    exclusions: ResidencyExclusions
) -> Residency:
    """Choose the values that stay in scratchpads.

    Args:
        groups: Groups in execution order, without groups of constants.
        graph: Operations of the program.
        locations: Storage of the values in memory.
        exclusions: Constraints on the storage of values.

    Raises:
        LayoutError: If a value cannot be in the requested shards.
        ReshardError: If a reader needs a copy of such a value.
    """
    placement = placement_of(locations.target)
    if placement is None:
        return Residency(tuple(groups))
    return _Chooser(groups, graph, locations, placement, exclusions).choose()

_BETWEEN_KERNELS: Container[SpillKind] = ("readers", "limit", "capacity", "division", "copied")
"""Reasons for which a value may still stay in scratchpads from kernel to kernel."""

_MAX_RESIDENT_VALUES = 8
"""Maximum number of resident values per kernel; lowering time grows faster than linearly."""


class _Chooser:
    """Greedy choice of resident values.

    Attributes:
        readers: Numbers of the kernels that read each value.
        joints: Core loop of each kernel.
        resident_layouts: Values that stay in scratchpads from kernel to kernel.
        resident_bytes: Bytes of such values on a core while each kernel runs.
        fixed: Kernels whose division is that of such values.
    """

    def __init__(
        self, groups: Sequence[FusionGroup], graph: ProgramGraph, locations: ValueLocations,
        placement: Placement,
        exclusions: ResidencyExclusions,
    ) -> None:
        self.groups, self.graph, self.places = groups, graph, locations
        layouts = {x: layout for x in locations.stored if (layout := locations.of(x)) is not None}
        self.where, self.barred = replace(placement, tensor_layouts=layouts), exclusions
        self.readers: dict[Tensor, list[int]] = {}
        for k, group in enumerate(groups):
            for x in group_inputs(group):
                self.readers.setdefault(x, []).append(k)
        self.joints: dict[int, FusedKernels] = {}
        self.resident_layouts: dict[Tensor, ShardLayout] = {}
        self.resident_bytes = dict.fromkeys(range(len(groups)), 0)
        self.fixed: set[int] = set()
        self.candidates: dict[Tensor, tuple[tuple[int, ...], ...]] = {}

    def choose(self) -> Residency:
        """Visit all kernels and return the choice."""
        spills: list[Spill] = []
        for k in reversed(range(len(self.groups))):
            reason = self._place(k)
            if reason is not None and self.groups[k].result.output(0) in self.barred.shards:
                self._keep_result(k, reason)
            elif reason is not None:
                read = [x for x in self.groups[k].result.outputs if x in self.readers]
                spills += [Spill(x, bytes_of(x, self.places.stored), *reason) for x in read]
                is_copy = self.groups[k].result in self.barred.copies
                if (is_copy or reason[0] in _BETWEEN_KERNELS) and (found := self._divisions(k)):
                    self.candidates[self.groups[k].result.output(0)] = found
        for x in self.graph.inputs:
            if x in self.barred.shards and x in self.readers:
                self._keep(x, 0, None)
        return self._result(tuple(reversed(spills)))

    def _keep_result(self, k: int, reason: UndividedReason) -> None:
        """Keep the result of a kernel in scratchpads for other kernels.

        Raises:
            LayoutError: If no kernel can compute or copy the requested shards.
            ReshardError: If the kernel computes other parts, or a reader needs a copy.
        """
        group = self.groups[k]
        x = group.result.output(0)
        view = self._view(k, DivisionSpec(dict(enumerate(self.barred.shards[x].count))))
        refused = self.barred.refused.get(group.result)
        is_hinted = group.result in self.barred.hinted
        if not isinstance(view.division, DividedResult) or refused is not None or is_hinted:
            if group.result not in self.barred.copies:
                raise ReshardError(x, ())
            undivided = reason if isinstance(view.division, DividedResult) else view.division
            raise self._refusal(x, undivided[1] if refused is None else refused)
        self.joints[k] = FusedKernels(k, {k: view})
        self._keep(x, k, k)

    def _keep(self, x: Tensor, first: int, producer: int | None) -> None:
        """Keep a value in scratchpads between kernels.

        Args:
            x: Value.
            first: Number of the first kernel at whose time the value is in scratchpads.
            producer: Number of the kernel that computes the value, if it is no input.

        Raises:
            LayoutError: If the value does not fit beside the values of a kernel.
            ReshardError: If a reader needs a copy of the value.
        """
        readers, shards = self.readers.get(x, []), self.barred.shards[x]
        found = {r: self._on_same_cores(r, x, shards.count) for r in readers}
        found |= {r: self.joints[r].members[r] for r in readers if self._exchanges(r, x)}
        others = [self.groups[r] for r, view in found.items() if view is None]
        for group in others:
            if group.result in self.barred.copies:
                (reason,) = [self._reads_memory(r, x) for r in readers if self.groups[r] is group]
                raise self._refusal(x, "no cores copy it" if reason is None else reason[1])
        if others:
            ops = [op for group in others for op in group.operations if x in op.input_tensors]
            raise ReshardError(x, ops)
        for r, view in found.items():
            assert view is not None
            joint = self.joints[r]
            self.joints[r] = replace(joint, members={**joint.members, r: view})
        self.fixed |= {*readers, *(() if producer is None else (producer,))}
        is_argument = x in self.graph.outputs or producer is None
        last = max((self.joints[r].last for r in readers), default=first)
        last = len(self.groups) - 1 if is_argument else last
        size = shards.layout.shard_nbytes
        for m in range(first, last + 1):
            self._check_room(x, m, size)
            self.resident_bytes[m] += size
        self.resident_layouts[x] = shards.layout

    def _check_room(self, x: Tensor, m: int, size: int) -> None:
        """Check that a kernel fits into the scratchpads beside a value that stays there.

        Raises:
            LayoutError: If the kernel does not fit.
        """
        joint = self.joints[m]
        view, others = joint.members[m], self.resident_bytes[m] + joint.taken.get(m, 0)
        if size + others < self.where.scratchpad_bytes:
            if not isinstance(view.division, DividedResult):
                return
            if isinstance(self._view(m, view.cut, size + others).division, DividedResult):
                return
        raise self._refusal(x, self._capacity_reason(size, others))

    def _divisions(self, k: int) -> tuple[tuple[int, ...], ...]:
        """Return the numbers of parts of a result for which a reader finds its part on its core."""
        x = self.groups[k].result.output(0)
        readers = self.readers.get(x, [])
        if len(readers) < 2 and self.groups[k].result not in self.barred.copies:
            return ()
        views = [self.joints[r].members[r] for r in readers if self._reads_memory(r, x) is None]
        found = [division.count for view in views if (division := view.division_of(x)) is not None]
        result_division = self.joints[k].members[k].division
        if isinstance(result_division, DividedResult):
            found.append(tuple(result_division.outline.count))
        return tuple(
            count for count in dict.fromkeys(found)
            if prod(count) > 1 and any(self._on_same_cores(r, x, count) for r in readers)
        )

    def _on_same_cores(self, r: int, x: Tensor, count: Sequence[int]) -> DividedKernel | None:
        """Return a reader divided such that each core reads the shard that it has, or None."""
        if self._reads_memory(r, x) is not None:
            return None
        joint = self.joints[r]
        found = [joint.members[r]]
        if not joint.resident_bytes and r not in self.fixed:
            found.append(self._sharded(joint, x, count).members[r])
        return next((view for view in found if self._is_on_same_cores(view, x, count)), None)

    @staticmethod
    def _is_on_same_cores(view: DividedKernel, x: Tensor, count: Sequence[int]) -> bool:
        division = view.division_of(x)
        if division is None or division.count != tuple(count):
            return False
        # Parts are assigned to cores in the order of the axes.
        pairs = zip(division.count, division.cores, strict=True)
        axes = [axis for count, axis in pairs if count > 1 and axis is not None]
        return axes == sorted(axes)

    def _refusal(self, x: Tensor, reason: str) -> LayoutError:
        return LayoutError(
            "layouts: {x} cannot stay in `{scratchpad}` in shards {count}: {reason}; use another "
            "grid, or remove its layout",
            kind="layout-requirement", x=x.name, scratchpad=self.where.scratchpad,
            count=format_extents(self.barred.shards[x].count), reason=reason,
        )

    def _result(self, spills: tuple[Spill, ...]) -> Residency:
        order = {op: k for k, op in enumerate(self.graph.operations)}
        groups: list[FusionGroup] = []
        cuts: dict[Operation, Mapping[Tensor, DivisionSpec]] = {}
        residents: list[ResidentValue] = []
        for k, group in enumerate(self.groups):
            joint = self.joints[k]
            if not joint.resident_bytes:
                groups.append(group)
                if k in self.fixed:
                    cuts[group.result] = {group.result.output(0): joint.members[k].cut}
            elif k == joint.last:
                members = {op for member in joint.members for op in self.groups[member].operations}
                groups.append(FusionGroup(tuple(sorted(members, key=order.__getitem__))))
                result = group.result.output(0)
                cuts[group.result] = {**joint.cuts, result: joint.members[k].cut}
                residents += self._residents(joint, result)
        outside_bytes = (
            {group.result: self._held_outside(group) for group in groups}
            if self.resident_layouts
            else {}
        )
        residents += map(self._resident_between, self.resident_layouts)
        return Residency(
            tuple(groups),
            cuts,
            tuple(residents),
            spills,
            self.resident_layouts,
            outside_bytes,
            self.candidates,
        )

    def _resident_between(self, x: Tensor) -> ResidentValue:
        """Return the description of a value that stays in scratchpads from kernel to kernel."""
        last = max(self.readers.get(x, [0]))
        return ResidentValue(
            x, bytes_of(x, self.places.stored), self.resident_layouts[x].shard_nbytes,
            self.barred.shards[x].count, self.groups[last].result.output(0), is_between=True,
        )

    def _held_outside(self, group: FusionGroup) -> int:
        """Return the bytes of kept values on a core that a kernel neither reads nor computes."""
        (k,) = [k for k, other in enumerate(self.groups) if other.result is group.result]
        used = {*group_inputs(group), *group.result.outputs}
        return self.resident_bytes[k] - sum(
            layout.shard_nbytes for x, layout in self.resident_layouts.items() if x in used
        )

    def _residents(self, joint: FusedKernels, kernel: Tensor) -> list[ResidentValue]:
        return [
            ResidentValue(
                x, bytes_of(x, self.places.stored), size, tuple(joint.cuts[x].cores.values()),
                kernel,
            )
            for x, size in reversed([*joint.resident_bytes.items()])
        ]

    def _place(self, k: int) -> UndividedReason | None:
        """Assign a kernel to a core loop; return the reason if its result must be stored."""
        best = self._view(k, DivisionSpec())
        reason = self._in_memory(k, best) or self._read_from_memory(k) or self._is_sent(k)
        found = self._joined(k, best) if reason is None else reason
        if isinstance(found, FusedKernels):
            for member in found.members:
                self.joints[member] = found
            return None
        self.joints[k] = FusedKernels(k, {k: best})
        return found

    def _in_memory(self, k: int, best: DividedKernel) -> UndividedReason | None:
        """Return the reason why a result must be stored regardless of its readers, or None."""
        op, barred = self.groups[k].result, self.barred
        x = op.output(0)
        layout = self.places.stored.get(x)
        if x in self.graph.outputs:
            return "result", "it is an output"
        if op in barred.relayouts:
            if any(self.places.is_outside(y) for y in group_inputs(self.groups[k])):
                return "host", "it is copied from the host"
            return "relayout", "it is a relayout"
        if op in barred.requested_ops and x not in barred.shards:
            return "requested", "its layout is requested"
        if op in barred.hinted:
            return "hint", "a hint specifies its division"
        if layout is not None and layout.pad_value is not None:
            return "padding", f"its padding holds {layout.pad_value:g}"
        if op.num_outputs > 1:
            return "steps", f"its kernel computes {op.num_outputs} values"
        return None if isinstance(best.division, DividedResult) else best.division

    def _is_sent(self, k: int) -> UndividedReason | None:
        """Return a reason if a kernel only copies shards to the shards of other cores."""
        reads = group_inputs(self.groups[k])
        if len(reads) != 1 or not self._exchanges(k, reads[0]):
            return None
        return "relayout", "cores exchange its shards"

    def _exchanges(self, r: int, x: Tensor) -> bool:
        """Return whether a kernel copies a value in shards to other shards, from core to core."""
        group, shards, refused = self.groups[r], self.barred.shards, self.barred.refused
        result = group.result.output(0)
        if x not in shards or result not in shards or group.result in refused:
            return False
        name = self.where.scratchpad
        has_link = link_between(self.places.target, name, name) is not None
        is_other = shards[x].count != shards[result].count
        return has_link and is_other and len(group.operations) == 1 and _is_copy(result)

    def _read_from_memory(self, k: int) -> UndividedReason | None:
        """Return the reason why a reader requires a value in memory; None if no reader does."""
        x = self.groups[k].result.output(0)
        reasons = (self._reads_memory(r, x) for r in self.readers.get(x, ()))
        return next((reason for reason in reasons if reason is not None), None)

    def _reads_memory(self, r: int, x: Tensor) -> UndividedReason | None:
        """Return the reason why a kernel reads a value from memory under any division, or None."""
        op, view = self.groups[r].result, self.joints[r].members[r]
        if op in self.barred.relayouts:
            if self.places.is_outside(op.output(0)):
                return "host", "it is copied to the host"
            return "relayout", f"{op.name} relayouts it"
        if op in self.barred.hinted:
            return "hint", f"a hint specifies the division of its reader {op.name}"
        if not isinstance(view.division, DividedResult):
            kind, text = view.division
            return kind, f"its reader {op.name} cannot keep it: {text}"
        if view.operand_placeholders[x] in view.division.gathered_inputs:
            return "gather", f"{op.name} gathers from it"
        if view.operand_placeholders[x] not in view.division.input_boxes:
            return "copied", f"{op.name} reads a permuted copy of it"
        refused = self.barred.refused.get(self.groups[self.joints[r].last].result)
        return None if refused is None else ("capacity", refused)

    def _joined(self, k: int, best: DividedKernel) -> FusedKernels | UndividedReason | None:
        """Return the core loop of the readers with a kernel added, or the reason why that fails."""
        x = self.groups[k].result.output(0)
        readers = self.readers.get(x, ())
        if not readers:
            return None
        last = dict.fromkeys(self.joints[r].last for r in readers)
        if len(last) > 1:
            names = " and ".join(division_text(self.joints[r].members[r]) for r in readers)
            return "readers", f"its readers {names} have separate core loops"
        joint = self.joints[readers[0]]
        if len(joint.resident_bytes) == _MAX_RESIDENT_VALUES:
            name = joint.members[joint.last].name
            return "limit", f"{name} has {_MAX_RESIDENT_VALUES} resident values already"
        shards = self.barred.shards.get(x)
        if shards is not None:
            joined = self._attempt(k, best, self._sharded(joint, x, shards.count), None)
            if not isinstance(joined, FusedKernels):
                return joined
            parts = tuple(joined.cuts[x].cores.values())
            if parts == shards.count:
                return joined
            return "division", f"its readers require the division {format_extents(parts)}"
        found = self._attempt(k, best, joint, 0)
        if isinstance(found, FusedKernels) or joint.resident_bytes or joint.last in self.fixed:
            return found
        narrowed = self._narrowed(joint, x)
        if narrowed is None:
            return found
        other, cost = narrowed
        retried = self._attempt(k, best, other, cost)
        return retried if isinstance(retried, FusedKernels) else found

    def _sharded(self, joint: FusedKernels, x: Tensor, counts: Sequence[int]) -> FusedKernels:
        """Divide the single kernel of a core loop to match the shards of an operand."""
        view = joint.members[joint.last]
        is_fixed = bool(joint.resident_bytes) or joint.last in self.fixed
        if is_fixed or not isinstance(view.division, DividedResult):
            return joint
        axes, cores = view.division.axes, dict[int, int]()
        for span, count in zip(
            view.division.input_boxes[view.operand_placeholders[x]], counts, strict=True
        ):
            terms = span.terms or ()
            dims = [k for k, axis in enumerate(axes) if any(axis is var for var, _ in terms)]
            if count > 1 and len(dims) == 1:
                cores[dims[0]] = count
        other = self._view(joint.last, DivisionSpec(cores or {0: 1}))
        found = isinstance(other.division, DividedResult)
        return replace(joint, members={joint.last: other}) if found else joint

    def _narrowed(self, joint: FusedKernels, x: Tensor) -> tuple[FusedKernels, int] | None:
        """Return a single-kernel loop divided along fewer axes to match a value, and its cost."""
        view = joint.members[joint.last]
        assert isinstance(view.division, DividedResult)
        min_extents = view.division.least_for(view.operand_placeholders[x], self.where.units(x))
        other = self._view(joint.last, DivisionSpec(min_extents=min_extents))
        if not isinstance(other.division, DividedResult):
            return None
        return replace(joint, members={joint.last: other}), other.cost(view)

    def _attempt(
        self, k: int, best: DividedKernel, joint: FusedKernels, cost: int | None
    ) -> FusedKernels | UndividedReason:
        """Return a core loop with a kernel added, or the reason why that fails.

        Args:
            k: Kernel number.
            best: Kernel with its best division on its own.
            joint: Core loop of the kernels that read the result.
            cost: Traffic in bytes that changed divisions of the loop cost so far; None to accept
                any cost.
        """
        x = self.groups[k].result.output(0)
        readers = [joint.members[r] for r in self.readers[x]]
        found = [view.division_of(x) for view in readers]
        division, first = found[0], readers[0]
        if division is None or any(other != division for other in found):
            first = readers[found.index(None)] if None in found else readers[-1]
            full, part = format_extents(sizes_of(x)), format_extents(first.part_of(x))
            return "division", (
                f"it is divided {best.parts}, but for {division_text(first)} a core reads {part} "
                f"of its {full} elements"
            )
        size = self._bytes_near(x, division.count)
        cut = DivisionSpec(dict(enumerate(division.count)))
        kernel = self._view(k, cut, size) if size < self.where.scratchpad_bytes else best
        if not isinstance(kernel.division, DividedResult) or kernel is best:
            is_full = kernel is best or kernel.division[0] == "capacity"
            return ("capacity", self._capacity_reason(size, 0)) if is_full else kernel.division
        parts = zip(division.count, kernel.division.outline.core, first.part_of(x), strict=True)
        if any(count > 1 and actual != part for count, actual, part in parts):
            return "division", (
                f"it is divided {best.parts}, but {division_text(first)} reads parts of "
                f"{format_extents(first.part_of(x))}, which would split sticks or tiles"
            )
        total, saved = (cost or 0) + kernel.cost(best), (1 + len(readers)) * kernel.size
        if cost is not None and total >= saved:
            return "division", (
                f"it is divided {best.parts}, but {division_text(first)} reads it divided "
                f"{kernel.parts}; this division costs {total:_} bytes and saves {saved:_}"
            )
        return self._within_capacity(k, replace(kernel, cores=division.cores), joint, size)

    def _within_capacity(
        self, k: int, kernel: DividedKernel, joint: FusedKernels, size: int
    ) -> FusedKernels | UndividedReason:
        """Add a kernel to a core loop if its result fits into the scratchpads while it is live."""
        x = self.groups[k].result.output(0)
        last = max(self.readers[x])
        used = {k: size} | {
            m: joint.taken.get(m, 0) + (size if m <= last else 0) for m in joint.members
        }
        # Values that are kept while the kernel runs leave less free memory.
        other_bytes = max(self.resident_bytes[m] for m in (k, *joint.members))
        for m in (k, *(m for m in joint.members if m <= last)):
            if used[m] + other_bytes >= self.where.scratchpad_bytes:
                return "capacity", self._capacity_reason(size, used[m] + other_bytes - size)
        for r in self.readers[x]:
            view = self._view(r, joint.members[r].cut, used[r] + other_bytes)
            if not isinstance(view.division, DividedResult):
                return "capacity", self._capacity_reason(size, used[r] + other_bytes - size)
        cuts = {**joint.cuts, x: DivisionSpec(kernel.cut.cores)}
        return FusedKernels(
            joint.last, {k: kernel, **joint.members}, {**joint.resident_bytes, x: size}, used, cuts
        )

    def _capacity_reason(self, size: int, others: int) -> str:
        others_text = f" and {others:_} bytes of other values" if others else ""
        return (
            f"its {size:_} bytes per core{others_text} leave no space for its readers in "
            f"{self.where.scratchpad}, which has {self.where.scratchpad_bytes:_} bytes per core"
        )

    def _bytes_near(self, x: Tensor, count: Sequence[int]) -> int:
        part = [ceil_div(n, parts) for n, parts in zip(sizes_of(x), count, strict=True)]
        return int(self.where.bytes_near(x, part))

    def _view(self, k: int, cut: DivisionSpec, used: int = 0) -> DividedKernel:
        """Divide a kernel.

        Args:
            k: Kernel number.
            cut: Requested division.
            used: Bytes of the scratchpads that other values occupy.
        """
        group = self.groups[k]
        x = group.result.output(0)
        inputs = {y: placeholder(y.shape, y.dtype, y.name) for y in group_inputs(group)}
        result = substitute_inputs(group.operations, inputs).get(x, x)
        locations = {new: self.places.of(old) for old, new in (*inputs.items(), (x, result))}
        layouts = {new: layout for new, layout in locations.items() if layout is not None}
        placement = replace(
            self.where, tensor_layouts=layouts, scratchpad_bytes=self.where.scratchpad_bytes - used,
            cuts={} if cut == DivisionSpec() else {result: cut},
        )
        size, cores = bytes_of(x, self.places.stored), tuple(range(len(x.shape)))
        return DividedKernel(x.name, division_of(result, placement), inputs, size, cores)


def _is_copy(x: Tensor) -> bool:
    """Return whether a value is a copy of another one with the same indices and dtype."""
    found = accesses(x)
    if found.reduce_axis or len(found.factors) != 1 or len(found.reads) != 1:
        return False
    (read,) = found.reads
    return is_same(read.axes, found.axis) and read.tensor.dtype == x.dtype
