"""Choose values that stay in scratchpads from kernel to kernel.

Runs after values were assigned to the scratchpads of single kernels. A value that several kernels
read is tried in the shards that its kernels compute or read. It stays in scratchpads if the program
takes fewer modelled cycles with it, including the copies for readers of other parts and the blocks
of other kernels, which have less space meanwhile. Such a copy is in device memory, or in the shards
of these readers if the target has links between cores.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import permutations

from tecomp.compute.tensor import Tensor
from tecomp.cost_model.interconnect import link_between
from tecomp.driver.program_codegen import ProgramKernel
from tecomp.errors import TecompError
from tecomp.graph.kernels import FusedKernel
from tecomp.graph.layout_demands import check_near, parts_along
from tecomp.graph.planning import ProgramPlan
from tecomp.graph.sizes import bytes_of, sizes_of
from tecomp.graph.value_placement import Shards, Spill
from tecomp.layout.sharding.shard_layout import ShardLayout
from tecomp.layout.sharding.tt_notation import MEMORY_SPACES
from tecomp.machine.descriptor import Target
from tecomp.schedules.scratchpad.placement import placement_of

_MAX_VALUES = 4
"""Maximum number of values that are tried, largest first; each trial plans the program again."""
_MAX_DIVISIONS = 2
"""Maximum number of divisions into shards that are tried for each value."""


@dataclass(frozen=True, slots=True)
class PlannedKernels:
    """A plan, and the kernels of its groups.

    Attributes:
        plan: Plan.
        kernels: Kernels, in the order of the groups.
    """

    plan: ProgramPlan
    kernels: tuple[FusedKernel, ...]

    @property
    def calls(self) -> list[ProgramKernel]:
        """Kernels of a program call."""
        pairs = zip(self.plan.groups, self.kernels, strict=True)
        return [kernel.kernel for group, kernel in pairs if not self.plan.runs_once(group)]


@dataclass(frozen=True, slots=True)
class _Costs:
    """Modelled cycles of kernels, computed once for each.

    Attributes:
        known: Kernel and its cycles, by the identity of the kernel.
    """

    known: dict[int, tuple[ProgramKernel, float]] = field(default_factory=dict)

    def difference(self, found: PlannedKernels, other: PlannedKernels) -> float:
        """Return the cycles of a program above those of another; common kernels cancel."""
        counts: dict[int, int] = {}
        parts = {id(part): part for part in (*found.calls, *other.calls)}
        for part in found.calls:
            counts[id(part)] = counts.get(id(part), 0) + 1
        for part in other.calls:
            counts[id(part)] = counts.get(id(part), 0) - 1
        return sum(n * self._cycles(parts[key]) for key, n in counts.items() if n)

    def _cycles(self, part: ProgramKernel) -> float:
        if id(part) not in self.known:
            self.known[id(part)] = part, part.report().cycles
        return self.known[id(part)][1]


def keep_between_kernels(
    plan: ProgramPlan, make: Callable[[ProgramPlan], PlannedKernels]
) -> ProgramPlan:
    """Return the plan with the values in scratchpads that make the program faster.

    Args:
        plan: Plan with the values that stay within kernels.
        make: Function that generates the kernels of a plan, without the values that do not fit
            after lowering.
    """
    where = placement_of(plan.request.target)
    if plan.laid_out_program is None or where is None or where.scratchpad not in MEMORY_SPACES:
        return plan
    if not plan.residency.candidates:
        return plan
    found, costs, spills = make(plan), _Costs(), dict[Tensor, Spill]()
    # An accepted trial replaces tensors, so the first spills are looked up in the first plan.
    initial = found.plan
    for x, divisions in list(_copy_candidates(initial)):
        found = _best_copy(found, x, divisions, make, costs)
    known = {spill.tensor: spill for spill in initial.residency.spills}
    for x, divisions in list(_candidates(initial)):
        spill = known[initial.value(x)]
        found, spills[x] = _best(found, x, spill, divisions, make, costs)
    return _with_reasons(found.plan, spills)


def _with_reasons(plan: ProgramPlan, spills: Mapping[Tensor, Spill]) -> ProgramPlan:
    """Return the plan with the results of the trials of values in memory."""
    tried = {plan.value(x): spill for x, spill in spills.items()}
    updated = tuple(
        replace(tried[old.tensor], tensor=old.tensor) if old.tensor in tried else old
        for old in plan.residency.spills
    )
    return replace(plan, residency=replace(plan.residency, spills=updated))


def _candidates(plan: ProgramPlan) -> Iterator[tuple[Tensor, Sequence[tuple[int, ...]]]]:
    """Yield the values of the program to try, largest first, with the numbers of their parts."""
    assert plan.laid_out_program is not None
    origins = {value: x for x, value in plan.laid_out_program.replacements.items()}
    items = [x for x in plan.residency.candidates if x in origins and origins[x] not in plan.shards]
    items.sort(key=lambda x: -bytes_of(x, plan.stored))
    for x in items[:_MAX_VALUES]:
        yield origins[x], plan.residency.candidates[x][:_MAX_DIVISIONS]


def _copy_candidates(plan: ProgramPlan) -> Iterator[tuple[Tensor, Sequence[tuple[int, ...]]]]:
    """Yield the values in requested shards that readers copy, with the numbers of their parts."""
    program = plan.laid_out_program
    assert program is not None
    if not _has_core_links(plan.request.target):
        return
    requested = {program.replacements.get(x, x): x for x in plan.shards}
    for op, (source, _) in program.copies.items():
        copy = op.output(0)
        if source in requested and copy in plan.residency.candidates:
            yield requested[source], plan.residency.candidates[copy][:_MAX_DIVISIONS]


def _best_copy(
    before: PlannedKernels, x: Tensor, divisions: Sequence[tuple[int, ...]],
    make: Callable[[ProgramPlan], PlannedKernels], costs: _Costs,
) -> PlannedKernels:
    """Return the fastest program with a copy of a value in memory or in shards."""
    best, least, plan = before, 0.0, before.plan
    for count in divisions:
        try:
            layout = _shards(x, count, plan.request.target)
            if layout is None or count == plan.shards[x].count:
                continue
            copies = {**plan.copy_shards, x: Shards(layout, count)}
            trial = make(plan.with_shards(plan.shards, copies))
            extra = costs.difference(trial, before)
        except TecompError:
            continue
        if extra < least:
            best, least = trial, extra
    return best


def _best(
    before: PlannedKernels, x: Tensor, spill: Spill, divisions: Sequence[tuple[int, ...]],
    make: Callable[[ProgramPlan], PlannedKernels], costs: _Costs,
) -> tuple[PlannedKernels, Spill]:
    """Return the fastest program with a value in memory or in shards, and the results of trials."""
    best, least, reasons, kind = before, 0.0, [spill.reason], spill.kind
    copied = set[tuple[int, ...]]()
    for count, other in _trials(divisions, before.plan.request.target):
        if other is not None and count not in copied:
            continue
        parts = f"in shards {_text(count)}" + (
            "" if other is None else f", with a copy in shards {_text(other)}"
        )
        try:
            trial = _trial(before, x, count, other, make)
            if trial is None:
                continue
            extra = costs.difference(trial, before)
        except TecompError as error:
            reasons.append(f"not {parts}: {error.message}")
            continue
        program = trial.plan.laid_out_program
        if program is not None and program.copies:
            copied.add(count)
        if extra < least:
            best, least = trial, extra
        kind = "cost"
        reasons.append(f"{parts}, the program takes {extra:_.0f} cycles more")
    return best, replace(spill, kind=kind, reason="; ".join(reasons))


def _trials(
    divisions: Sequence[tuple[int, ...]], target: Target
) -> Iterator[tuple[tuple[int, ...], tuple[int, ...] | None]]:
    """Yield the parts of a value, and those of its copy for other readers; None in device memory.

    Copies from shards to shards require links between cores.
    """
    yield from ((count, None) for count in divisions)
    if _has_core_links(target):
        yield from permutations(divisions, 2)


def _has_core_links(target: Target) -> bool:
    """Return whether cores can copy data from the scratchpads of other cores."""
    where = placement_of(target)
    return where is not None and (
        link_between(target, where.scratchpad, where.scratchpad) is not None
    )


def _trial(
    before: PlannedKernels, x: Tensor, count: tuple[int, ...], other: tuple[int, ...] | None,
    make: Callable[[ProgramPlan], PlannedKernels],
) -> PlannedKernels | None:
    """Return the program with a value in shards; None if cores cannot compute the shards."""
    plan = before.plan
    layout = _shards(x, count, plan.request.target)
    further = None if other is None else _shards(x, other, plan.request.target)
    if layout is None or (other is not None and further is None):
        return None
    copies = dict(plan.copy_shards)
    if other is not None and further is not None:
        copies[x] = Shards(further, other)
    return make(plan.with_shards({**plan.shards, x: Shards(layout, count)}, copies))


def _text(count: Sequence[int]) -> str:
    return " x ".join(map(str, count))


def _shards(x: Tensor, count: tuple[int, ...], target: Target) -> ShardLayout | None:
    """Return the layout of a value in equal boxes; None if cores cannot compute them."""
    where, tile = placement_of(target), target.tile
    assert where is not None
    layout = ShardLayout(
        sizes_of(x), str(x.dtype), lambda *i: list(i), grid=count, memory_space=where.scratchpad,
        tile=None if tile is None else (tile.rows, tile.columns),
    )
    check_near(x, layout, target)
    return layout if parts_along(layout) == count else None
