"""Automatic scheduling: recognize the kind of each stage from its accesses and schedule it.

Stages are partitioned into fusion groups. An element-wise stage is inlined into its readers if that
adds little or no work. Rows that depend on rows, as in a softmax, are computed row by row. The
element-wise epilogue of a reduction is fused with it. Each group has a separate loop nest: the nest
that the library provides for its kind, or generic loops in memory order if no kind is recognized.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import MappingProxyType

from tecomp import Choices, ScheduleError, Target, accesses, knob, te
from tecomp.schedules.analysis.convolution import (
    Convolution,
    WindowReduction,
    convolution_of,
    windows_of,
)
from tecomp.schedules.analysis.matmul import Product, product_of
from tecomp.schedules.analysis.pointwise_chains import (
    NO_STRIDES,
    Strides,
    factors_to_materialize,
    find_shared_terms,
)
from tecomp.schedules.analysis.reduction import (
    ReductionPattern,
    is_of_reductions,
    match_grouped_scan,
    reduction_of,
)
from tecomp.schedules.analysis.stages import (
    by_loops,
    is_pointwise,
    is_result,
    is_scan,
    is_untouched,
    readers_of,
    strip_cast,
)
from tecomp.schedules.common import Walk, first_legal
from tecomp.schedules.conv2d import convolution_at_root
from tecomp.schedules.cumsum import groups_at_root
from tecomp.schedules.fusion.generic_loops import generic_reduction_at_root, is_shared_in_tiles
from tecomp.schedules.fusion.groups import FusedStages, find_transposed_terms, groups_of, program_of
from tecomp.schedules.fusion.scratchpad import on_scratchpads
from tecomp.schedules.pool import windows_at_root
from tecomp.schedules.reduce import across_rows, reduce_at_root
from tecomp.schedules.rowwise import rows_at_root, values_at_root
from tecomp.schedules.scratchpad.placement import NO_LAYOUTS, Layouts, placement_of
from tecomp.schedules.scratchpad.work_division import Cuts, DivisionSpec
from tecomp.schedules.tiling.gemm_loops import product_at_root
from tecomp.schedules.tiling.reduction import NO_BOUNDS, Bounds, declared_maximum
from tecomp.schedules.tiling.register_blocking import core_of
from tecomp.schedules.tiling.traversal import walk_steps, walk_transposed
from tecomp.schedules.transpose import formula_at_root

_WIDE, _NARROW = "int64", "int32"
_MIN_HORIZONTAL_ELEMENTS = 40
"""Minimum row length for which a horizontal reduction is faster than transposing.

40 float64 take 13 ns a row either way in the first-level cache, but 15 ns instead of 36 in memory.
"""
_MAX_TRANSPOSED_ELEMENTS, _TRANSPOSED_VECTORS = 80, 2
"""Maximum elements and vectors of a row of narrow elements that is transposed.

Elements of 1 and 2 bytes are transposed as fast as wider ones, but their horizontal searches
combine more lanes: with AVX-512, rows of 40 int8 take 4.0 ns transposed and 7.1 otherwise.
"""
_MAX_TRANSPOSED_BYTES = 1024
"""Maximum bytes of a row of symbolic length that is transposed if vectors have 32 bytes.

Rows of 33, 63 and 200 float32 take 9, 12 and 47 ns in a cache, and 14, 23 and 62 ns otherwise.
"""
_MAX_SHUFFLED_BYTES = 32
"""Bytes of the widest vectors of which processors shuffle two in a cycle."""


@dataclass(frozen=True)
class _ScheduleInput:
    """Context in which loops are generated.

    Attributes:
        target: Target.
        group_results: Results of all fusion groups.
        strides: Strides of the tensors for which the caller passes strided arrays.
        bounds: Expected upper bounds of symbolic sizes.
        constants: Arguments that are equal in every call.
    """

    target: Target
    group_results: frozenset[te.Tensor]
    strides: Strides
    bounds: Bounds
    constants: Collection[te.Tensor]


def auto(
    outputs: te.Tensor | Sequence[te.Tensor],
    target: str | Path | Target,
    layouts: Layouts = NO_LAYOUTS,
    division: Cuts = MappingProxyType({}),
    strides: Strides = NO_STRIDES,
    near: Collection[te.Tensor] = (),
    bounds: Bounds = NO_BOUNDS,
    constants: Collection[te.Tensor] = (),
) -> te.Schedule:
    """Return a schedule for a program without a user schedule.

    The `trace` of the result prints as a schedule that can be adopted and edited.

    Args:
        outputs: Result tensor or tensors of the program.
        target: Target: its name, a description, or a path to one. On a target with scratchpads, the
            cores compute blocks in their scratchpads.
        layouts: Layouts of tensors passed by the caller that are not in their default order.
            Default: none.
        division: Work division per result tensor: the number of cores that share it, and the number
            of blocks in which each core computes its region. It is followed exactly. Default:
            chosen automatically.
        strides: Strides, in elements per axis, of tensors for which the caller passes strided
            arrays; a stride that is known only at call time is an expression. Default: none.
        near: Values that stay resident in scratchpads: each core computes the elements that it
            reads of them, for its region of the single result. All of them and the result must be
            in `division`. Default: none.
        bounds: Expected upper bounds of symbolic sizes, for example of short rows. They choose
            loops; results are correct for larger sizes too.
        constants: Arguments that are equal in every call, so that packed copies of them are made
            once. Default: none.

    Raises:
        ScheduleError: If there are no outputs or an output is not a tensor, if a tensor in
            `division` has no separate loop nest or shares its kernel with a loop nest that is not
            divided, if the target of a division has no scratchpads, or if the values in `near`
            cannot stay resident.
        LayoutError: If a layout does not fit its tensor.
        CapacityError: If the inputs of a single element do not fit the scratchpad.
        TargetError: If scratchpads need an extent that is known only at call time, if a result
            cannot be divided as requested, or if the target is not found.

    >>> A = te.placeholder((100, 200), name="A")
    >>> k = te.reduce_axis((0, 200), name="k")
    >>> total = te.compute((100,), lambda i: te.sum(te.exp(A[i, k]), axis=k), name="total")
    >>> B = te.compute((100,), lambda i: te.log(total[i]), name="B")
    >>> s = auto(B, "cpu")
    >>> s[total].leaf_iter_vars != total.op.axis
    True
    """
    s: te.Schedule = by_loops(outputs)
    if not s.outputs:
        raise ScheduleError(
            "auto: got no results; pass one or more tensors", kind="missing-input"
        )
    results = list(outputs) if isinstance(outputs, list | tuple) else [outputs]
    target = Target.of(target)
    _check_wishes(division, near)
    where = placement_of(target, layouts)
    if where is not None:
        where = replace(where, cuts=division, resident_tensors=frozenset(near))
        scratchpads: te.Schedule = on_scratchpads(results, where)
        return scratchpads
    if division:
        raise ScheduleError(
            "auto: division of {next} is not supported: target {target} has no scratchpads, and "
            "its threads share loops dynamically; omit division",
            kind="indivisible", next=next(iter(division)).name, target=target.name,
        )
    if target.core is not None:
        s = _in_caches(s, target, strides, bounds, constants)
    for x, layout in layouts.items():
        s[x].transform_layout(layout, loops="logical")
    return s


def _check_wishes(division: Cuts, near: Collection[te.Tensor]) -> None:
    """Raise if `division` or `near` has the wrong type.

    Raises:
        ScheduleError: If `division` does not map tensors to cuts, or `near` is not a collection of
            tensors.
    """
    if not isinstance(division, Mapping) or not all(
        isinstance(x, te.Tensor) and isinstance(cut, DivisionSpec) for x, cut in division.items()
    ):
        raise ScheduleError(
            "auto: division must map each tensor to a Cut, got {division!r}",
            kind="invalid-type", division=division,
        )
    if not isinstance(near, Collection) or not all(isinstance(x, te.Tensor) for x in near):
        raise ScheduleError(
            "auto: near must list the tensors that stay in scratchpads, got {suggestion!r}",
            kind="invalid-type", suggestion=near,
        )


def _in_caches(
    s: te.Schedule, target: Target, strides: Strides, bounds: Bounds,
    constants: Collection[te.Tensor],
) -> te.Schedule:
    """Return the schedule with loop nests for a CPU."""
    _merge_reductions(s)
    _narrow_reductions(s)
    for stage in s.stages:
        for factors in factors_to_materialize(stage.op.output(0)):
            s.cache_factor(stage.op.output(0), factors, "global")
    while (transposed := find_transposed_terms(program_of(s))) is not None:
        s.merge_formula(transposed)
    groups, inlined = groups_of(program_of(s), target)
    if any([_share_terms(s, group) for group in groups]):
        groups, inlined = groups_of(program_of(s), target)
    for x in inlined:
        s[x].compute_inline()
    results = frozenset([group.output for group in groups])
    setup = _ScheduleInput(target, results, strides, bounds, constants)
    choices, numbers = Choices.active(), {x.op: k for k, x in enumerate(s.stages)}
    for group in groups:
        with choices.within(str(numbers[group.output.op])):
            s = _schedule_group(s, group, setup)
    return s


def _merge_reductions(s: te.Schedule) -> None:
    """Merge nested reductions, whose terms then form longer contiguous rows."""
    for x in [stage.op.output(0) for stage in s.stages if stage.op.reduce_axis]:
        while s[x].op.reduce_axis and len(s[x].op.input_tensors) == 1:
            current = s[x].op.output(0)
            (source,) = current.op.input_tensors
            if is_result(s, source) or not is_of_reductions(current, readers_of(s, source)):
                break
            s.merge_reduction(x)


def _narrow_reductions(s: te.Schedule) -> None:
    """Narrow reductions of indices and counts to int32 where they fit, for twice the lanes."""
    for x in [stage.op.output(0) for stage in s.stages if stage.op.reduce_axis]:
        if x.op.num_outputs > 1 or x.dtype != _WIDE or accesses(x).factors:
            continue
        try:
            s.narrow_reduction(x, _NARROW)
        except ScheduleError:
            # The reduction is of another kind, or its values may need the full range of int64.
            continue


def _share_terms(s: te.Schedule, group: FusedStages) -> bool:
    """Materialize common subexpressions of the stages of a row; return whether any were found."""
    found = find_shared_terms([*group.rows, group.output]) if not group.is_value else {}
    for x, readers in found.items():
        s.cache_terms(x, "global", readers)
    return bool(found)


def _schedule_group(s: te.Schedule, group: FusedStages, setup: _ScheduleInput) -> te.Schedule:
    """Return the schedule with the loop nest of a group, by the first legal candidate.

    If no candidate is legal, the stages of the rows are scheduled as separate groups.
    """
    for x in group.chain[1:-1]:
        s[x].compute_inline()
    walks = _walks(group, setup)
    if len(walks) > 1:
        first = knob("loops", [*walks])
        walks = {first: walks[first], **walks}
    found: te.Schedule | None = first_legal(s, walks.values())
    if found is not None:
        return found
    for x in group.rows:
        s = _schedule_group(s, FusedStages(x, (x,)), setup)
    if not group.rows:
        return s
    return _schedule_group(s, FusedStages(group.output, group.chain), setup)


def _walks(group: FusedStages, setup: _ScheduleInput) -> dict[str, Walk]:
    """Return the scheduling candidates of a group by name, best first."""
    output, chain, target = group.output, group.chain, setup.target
    if group.rows:
        return {"rows": _rows(group, target)}
    if not chain[-1].op.reduce_axis:
        return _elements(output, setup)
    reduction = reduction_of(output, chain)
    generic = partial(_schedule_any, chain, target)
    row_walk: Walk | None = None if reduction is None else partial(_reduction, reduction, setup)
    if accesses(chain[-1]).reducer is None:
        return {**_walks_of_search(reduction, row_walk, setup), "generic": generic}
    found: dict[str, Walk] = {}
    if (product := product_of(output, chain, any_terms=True)) is not None:
        found["product"] = partial(_product, product, setup)
    if (convolution := convolution_of(output, chain)) is not None:
        found["convolution"] = partial(_convolution, convolution, target)
    if (windows := windows_of(output, chain)) is not None:
        found["windows"] = partial(_windows, windows, target)
    if is_shared_in_tiles(chain[-1]):
        found["generic"] = generic
    if row_walk is not None:
        found["reduction"] = row_walk
    return {**found, "generic": generic}


def _walks_of_search(
    d: ReductionPattern | None, row_walk: Walk | None, setup: _ScheduleInput
) -> dict[str, Walk]:
    """Return the candidates of a custom reducer that come before the generic loops.

    Custom reducers may depend on the order, for example to take the first of equal values.
    """
    if d is not None and d.columns:
        return {"across": partial(_across, d, setup.target)}
    if d is None or row_walk is None or not _is_by_lanes(d):
        return {}
    if _is_long(d, setup):
        return {"reduction": row_walk}
    return {"reduction": row_walk} if knob("by_lanes", [False, True]) else {}


def _is_by_lanes(d: ReductionPattern) -> bool:
    """Return whether a custom reducer may reduce rows lane by lane.

    A search reducer carries a value that orders equal elements of two lanes.
    """
    total = accesses(d.total)
    return bool((total.rising is not None or total.is_apart) and d.adjacent > 0)


def _is_long(d: ReductionPattern, setup: _ScheduleInput) -> bool:
    """Return whether rows are long enough to be reduced lane by lane."""
    total, row = accesses(d.total), d.runs[-1].extent
    width = min(x.dtype.bytes for x in d.total.op.input_tensors)
    vector_bytes = core_of(setup.target).vector_bytes
    if isinstance(row, int):
        min_row = max(
            _MIN_HORIZONTAL_ELEMENTS,
            min(_TRANSPOSED_VECTORS * vector_bytes // width, _MAX_TRANSPOSED_ELEMENTS),
        )
        is_long = row >= min_row
    else:
        bound = setup.bounds.get(row, declared_maximum(row))
        is_short = bound is not None and bound * width <= _MAX_TRANSPOSED_BYTES
        is_long = not is_short or total.rising is None or vector_bytes > _MAX_SHUFFLED_BYTES
    return bool(is_long)


def _rows(group: FusedStages, target: Target) -> Walk:
    if (scan := match_grouped_scan(group.output)) is not None and scan.sums in group.rows:
        return lambda s: groups_at_root(s, scan, target)
    if is_scan(group.rows[0]):
        return lambda s: walk_transposed(s, group.output, group.rows[0], target)
    walk = values_at_root if group.is_value else rows_at_root
    return lambda s: walk(s, group.output, group.rows, target)


def _elements(output: te.Tensor, setup: _ScheduleInput) -> dict[str, Walk]:
    """Return the scheduling candidates of a scan or of an element-wise stage."""
    if is_scan(output) and output.shape:
        return {"steps": lambda s: walk_steps(s, output, setup.target, setup.group_results)}
    if is_pointwise(output) and output.shape:
        return {
            "formula": lambda s: formula_at_root(
                s, output, setup.target, setup.group_results, setup.strides)
        }
    return {}


def _product(d: Product, setup: _ScheduleInput, s: te.Schedule) -> None:
    product_at_root(s, d, setup.target, constants=setup.constants)
    _walk_operands(s, (d.rows.tensor, d.columns.tensor), setup.target)


def _convolution(d: Convolution, target: Target, s: te.Schedule) -> None:
    convolution_at_root(s, d, target)
    _walk_operands(s, (d.image, d.weights), target)


def _schedule_any(chain: Sequence[te.Tensor], target: Target, s: te.Schedule) -> None:
    generic_reduction_at_root(s, chain, target)


def _reduction(d: ReductionPattern, setup: _ScheduleInput, s: te.Schedule) -> None:
    reduce_at_root(s, d, setup.target, setup.bounds)


def _across(d: ReductionPattern, target: Target, s: te.Schedule) -> None:
    across_rows(s, d.output, d.total, d.columns, target)


def _windows(d: WindowReduction, target: Target, s: te.Schedule) -> None:
    windows_at_root(s, d, target)
    _walk_operands(s, (d.image,), target)


def _walk_operands(s: te.Schedule, operands: Sequence[te.Tensor], target: Target) -> None:
    """Schedule operands that were to be packed for their reader but are read unpacked."""
    for x in dict.fromkeys(operands):
        if is_pointwise(x) and is_untouched(s, x) and strip_cast(x) is x:
            formula_at_root(s, x, target)
