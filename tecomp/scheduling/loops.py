"""Primitives on the loops of one stage: split, fuse, reorder, tile, annotations and binding."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce
from types import MappingProxyType

from tecomp.compute.iter_var import IterKind, IterVar
from tecomp.compute.operation import Operation
from tecomp.errors import ScheduleError
from tecomp.ir.nodes.argument_checks import as_int, check_kind, is_one_of
from tecomp.ir.nodes.expr import Const, Expr, index_value
from tecomp.ir.nodes.stmt import Extent, ForKind, Range
from tecomp.ir.traversal.rewrite import free_variables
from tecomp.scheduling.loop_relations import split_extents
from tecomp.scheduling.state import (
    ComputedAt,
    Fuse,
    LayoutTransform,
    ScheduleState,
    Split,
    StageState,
    drop_annotations,
    is_map,
    is_reduction,
    is_scan,
    leaf_position,
)
from tecomp.scheduling.threads import BLOCKS, check_tag, is_grid_axis, is_parallel

TAILS = ("guard", "shift_inwards")
"""Strategies for a last part of a split that is shorter than the other parts."""


def split(
    state: ScheduleState,
    key: Operation,
    axis: IterVar,
    factor: Extent | None = None,
    nparts: Extent | None = None,
    disable_predication: bool = False,
    tail: str = "guard",
) -> tuple[ScheduleState, tuple[IterVar, IterVar]]:
    """Split a loop into an outer and an inner loop.

    See `Stage.split`.

    Returns:
        The new state, and the outer and the inner loop.
    """
    stage = state.stage(key)
    call = "split"
    position = leaf_position(stage, axis, call)
    where = f"s[{stage.name}].split({axis.name})"
    if (factor is None) == (nparts is None):
        specified = "both" if factor is not None else "neither"
        raise ScheduleError(
            "{where}: specify exactly one of factor= and nparts=, got {value}",
            kind="conflicting-options", where=where, value=specified,
        )
    if factor is not None:
        factor = _positive(factor, "factor", where)
    else:
        nparts = _positive(nparts, "nparts", where)
    outer_extent, inner_extent = split_extents(axis.extent, factor, nparts)
    check_kind(disable_predication, bool, f"{where}: disable_predication",
               "pass True or False", ScheduleError)
    outer = _derive(f"{axis.name}.outer", outer_extent, axis.kind)
    inner = _derive(f"{axis.name}.inner", inner_extent, axis.kind)
    leaves = (*stage.leaves[:position], outer, inner, *stage.leaves[position + 1 :])
    if not is_one_of(tail, TAILS):
        raise ScheduleError(
            "{where}: tail must be 'guard' or 'shift_inwards', got {tail!r}",
            kind="unknown-choice", where=where, tail=tail,
        )
    is_shifted = tail == "shift_inwards"
    if disable_predication and not is_shifted:
        is_shifted = not _is_product(axis.extent, outer_extent, inner_extent)
    if is_shifted:
        option = "tail='shift_inwards'" if tail == "shift_inwards" else "disable_predication=True"
        _check_shifted(stage, axis, factor, where, option)
    relation = Split(axis, outer, inner, factor, nparts, is_shifted)
    changed = replace(stage, leaves=leaves, relations=(*stage.relations, relation))
    state = _placed_in(state.update(drop_annotations(changed, axis)), key, (axis,), inner)
    return state, (outer, inner)


def _check_shifted(
    stage: StageState, axis: IterVar, factor: Extent | None, where: str, option: str
) -> None:
    """Raise if the last part of a split cannot be shifted to an earlier start.

    Raises:
        ScheduleError: If the stage is not element-wise, has loops made by `transform_layout`, or
            the factor is not a constant that is at most the constant extent.
    """
    if not is_map(stage.op):
        raise ScheduleError(
            "{where}: {option} computes some elements twice, which {stage} does not support "
            "because it accumulates into elements or reads earlier ones; remove the option to "
            "guard the last part instead",
            kind="not-parallelizable", where=where, option=option, stage=stage.name,
        )
    if any(isinstance(relation, LayoutTransform) for relation in stage.relations):
        raise ScheduleError(
            "{where}: {option} requires axes of the tensor, but transform_layout created new "
            "loops; pass loops='logical' to transform_layout, or remove the option",
            kind="conflicting-options", where=where, option=option,
        )
    if factor is None:
        raise ScheduleError(
            "{where}: {option} requires parts of equal length; pass the length as factor=",
            kind="conflicting-options", where=where, option=option,
        )
    extent = axis.extent
    if not (isinstance(factor, int) and isinstance(extent, int) and factor <= extent):
        raise ScheduleError(
            "{where}: {option} requires a constant factor that does not exceed the constant "
            "extent, but the factor is {factor} and {axis} has extent {extent}; use a smaller "
            "factor, or remove the option",
            kind="invalid-value", where=where, option=option, factor=factor, axis=axis.name,
            extent=extent,
        )


def fuse(state: ScheduleState, key: Operation, *axes: IterVar) -> tuple[ScheduleState, IterVar]:
    """Fuse perfectly nested adjacent loops into one loop.

    See `Stage.fuse`.

    Returns:
        The new state and the fused loop. It is a reduction loop if one of its parts is.
    """
    stage = state.stage(key)
    if not axes:
        fused = _derive("singleton", 1, IterKind.DATA)
        stage.compute  # noqa: B018  (raises for a placeholder)
        relation = Fuse((), fused)
        return state.update(
            replace(stage, leaves=(fused, *stage.leaves), relations=(*stage.relations, relation))
        ), fused
    positions = [leaf_position(stage, axis, "fuse") for axis in axes]
    first = positions[0]
    if positions != list(range(first, first + len(axes))):
        loops = ", ".join(leaf.name for leaf in stage.leaves)
        raise ScheduleError(
            "s[{stage}].fuse({axes}): axes must be perfectly nested loops, outer to inner, but the "
            "loops are {loops}; call reorder first",
            kind="not-nested", stage=stage.name, axes=_list(axes), loops=loops,
        )
    if len(axes) == 1:
        return state, axes[0]
    extent: Extent = axes[0].extent
    for axis in axes[1:]:
        extent = extent * axis.extent
    kind = IterKind.REDUCE if any(map(is_reduction, axes)) else IterKind.DATA
    if any(map(is_scan, axes)):
        steps = next(axis for axis in axes if is_scan(axis))
        if not all(map(is_scan, axes)):
            raise ScheduleError(
                "s[{stage}].fuse({axes}): {steps} is the step axis of a scan, which is sequential; "
                "fuse only loops within a step, or only step axes",
                kind="not-nested", stage=stage.name, axes=_list(axes), steps=steps.name,
            )
        kind = IterKind.SCAN
    name = reduce(lambda outer, inner: f"{outer}.{inner}.fused", (axis.name for axis in axes))
    fused = _derive(name, extent, kind)
    leaves = (*stage.leaves[:first], fused, *stage.leaves[first + len(axes) :])
    relation = Fuse(tuple(axes), fused)
    changed = replace(stage, leaves=leaves, relations=(*stage.relations, relation))
    return _placed_in(state.update(drop_annotations(changed, *axes)), key, axes, fused), fused


def _placed_in(
    state: ScheduleState, key: Operation, removed: Sequence[IterVar], loop: IterVar
) -> ScheduleState:
    """Reattach stages and groups from the removed loops of a stage to `loop`."""
    owner = state.stage(key).key
    for stage in state:
        attach = stage.attach
        if isinstance(attach, ComputedAt) and attach.stage is owner and attach.axis in removed:
            state = state.update(replace(stage, attach=replace(attach, axis=loop)))
    groups = {
        group: replace(item, attach=replace(item.attach, axis=loop))
        if isinstance(item.attach, ComputedAt) and item.attach.stage is owner and item.attach.axis
        in removed
        else item
        for group, item in state.groups.items()
    }
    return replace(state, groups=MappingProxyType(groups)) if groups else state


def reorder(state: ScheduleState, key: Operation, *axes: IterVar) -> tuple[ScheduleState, None]:
    """Permute the given loops among the positions that they occupy in the nest.

    See `Stage.reorder`.
    """
    stage = state.stage(key)
    positions = [leaf_position(stage, axis, "reorder") for axis in axes]
    for k, position in enumerate(positions):
        if position in positions[:k]:
            raise ScheduleError(
                "s[{stage}].reorder({axes}): duplicate axis {axis}; pass every loop once",
                kind="duplicate-argument", stage=stage.name, axes=_list(axes), axis=axes[k].name,
            )
    leaves = list(stage.leaves)
    for position, axis in zip(sorted(positions), axes, strict=True):
        leaves[position] = axis
    return state.update(replace(stage, leaves=tuple(leaves))), None


def tile(
    state: ScheduleState,
    key: Operation,
    x_parent: IterVar,
    y_parent: IterVar,
    x_factor: Extent,
    y_factor: Extent,
) -> tuple[ScheduleState, tuple[IterVar, IterVar, IterVar, IterVar]]:
    """Tile two loops: split both and reorder to x outer, y outer, x inner, y inner.

    See `Stage.tile`.

    Returns:
        The new state, and the loops x outer, y outer, x inner, y inner.
    """
    if x_parent is y_parent:
        name = state.stage(key).name
        raise ScheduleError(
            "s[{name}].tile({x_parent}, {y_parent}): the two axes are the same; use split for a "
            "single loop",
            kind="duplicate-argument", name=name, x_parent=x_parent.name, y_parent=y_parent.name,
        )
    state, (xo, xi) = split(state, key, x_parent, factor=x_factor)
    state, (yo, yi) = split(state, key, y_parent, factor=y_factor)
    state, _ = reorder(state, key, xo, yo, xi, yi)
    return state, (xo, yo, xi, yi)


def unroll_and_jam(
    state: ScheduleState, key: Operation, axis: IterVar, factor: int, tail: str = "guard"
) -> tuple[ScheduleState, tuple[IterVar, IterVar]]:
    """Unroll a loop by a factor and jam the copies of the loops inside it.

    See `Stage.unroll_and_jam`.

    Returns:
        The new state, the loop over groups of iterations, and the unrolled loop.
    """
    stage = state.stage(key)
    position = leaf_position(stage, axis, "unroll_and_jam")
    where = f"s[{stage.name}].unroll_and_jam({axis.name})"
    if not isinstance(_positive(factor, "factor", where), int):
        raise ScheduleError(
            "{where}: factor must be a positive integer, got {factor!r}",
            kind="invalid-value", where=where, factor=factor,
        )
    inside = stage.leaves[position + 1 :]
    if is_scan(axis):
        raise ScheduleError(
            "{where}: {axis} is the step axis of a scan, which is sequential; unroll_and_jam a "
            "loop over the elements of a step",
            kind="not-parallelizable", where=where, axis=axis.name,
        )
    if is_reduction(axis) and any(map(is_reduction, inside)):
        raise ScheduleError(
            "{where}: {axis} is a reduction axis around the reduction axis {inner}, and jamming "
            "would accumulate in another order; reorder them first, or unroll_and_jam a data axis",
            kind="not-parallelizable", where=where, axis=axis.name,
            inner=next(filter(is_reduction, inside)).name,
        )
    state, (outer, inner) = split(state, key, axis, factor=factor, tail=tail)
    state, _ = reorder(state, key, *_loops_to_jam(stage, inside), inner)
    state, _ = mark(state, key, inner, ForKind.UNROLLED)
    return state, (outer, inner)


def _loops_to_jam(stage: StageState, inside: tuple[IterVar, ...]) -> tuple[IterVar, ...]:
    """Return the given loops without the innermost vectorized loops and tensorized nest."""
    last = len(inside)
    while last and stage.marks.get(inside[last - 1]) is ForKind.VECTORIZED:
        last -= 1
    if stage.tensorized is not None and stage.tensorized.axis in inside:
        last = min(last, inside.index(stage.tensorized.axis))
    return inside[:last]


def mark(
    state: ScheduleState, key: Operation, axis: IterVar, kind: ForKind
) -> tuple[ScheduleState, None]:
    """Annotate a loop as parallel, vectorized or unrolled.

    See `Stage.vectorize`, `parallel` and `unroll`.
    """
    call = {
        ForKind.VECTORIZED: "vectorize", ForKind.PARALLEL: "parallel", ForKind.UNROLLED: "unroll",
    }[kind]
    stage = state.stage(key)
    leaf_position(stage, axis, call)
    if is_scan(axis) and kind is not ForKind.UNROLLED:
        raise ScheduleError(
            "s[{stage}].{call}({axis}): {axis} is the step axis of a scan, which is sequential; "
            "apply {call} to a loop over the elements of a step",
            kind="not-parallelizable", stage=stage.name, call=call, axis=axis.name,
        )
    if is_reduction(axis) and kind is not ForKind.UNROLLED:
        raise ScheduleError(
            "s[{stage}].{call}({axis}): {axis} is a reduction axis, and its iterations update the "
            "same element of {stage}; use rfactor to create independent partial results, then "
            "apply {call} to their axis",
            kind="not-parallelizable", stage=stage.name, call=call, axis=axis.name,
        )
    marks = MappingProxyType({**stage.marks, axis: kind})
    return state.update(replace(stage, marks=marks)), None


def bind(
    state: ScheduleState, key: Operation, axis: IterVar, tag: str
) -> tuple[ScheduleState, None]:
    """Bind a loop to a thread axis or to an axis of the core grid of the target.

    See `Stage.bind`.
    """
    stage = state.stage(key)
    leaf_position(stage, axis, "bind")
    where = f"s[{stage.name}].bind({axis.name})"
    check_tag(tag, where)
    if is_scan(axis) and is_parallel(tag):
        raise ScheduleError(
            "{where}: {axis} is the step axis of a scan, which is sequential; bind a loop over the "
            "elements of a step",
            kind="not-parallelizable", where=where, axis=axis.name,
        )
    if is_reduction(axis) and is_parallel(tag):
        workers, remedy = "cores", ""
        if tag in BLOCKS:
            workers, remedy = "blocks", ", or bind it to threadIdx.x"
        raise ScheduleError(
            "{where}: {axis} is a reduction axis, and {caller} cannot update the same element in "
            "parallel; use rfactor first{remedy}",
            kind="not-parallelizable", where=where, axis=axis.name, caller=workers, remedy=remedy,
        )
    for other, bound in stage.threads.items():
        if is_grid_axis(tag) and bound == tag and other is not axis:
            raise ScheduleError(
                "{where}: loop {other} is already bound to {tag}; fuse the two loops first, or "
                "bind this one to another axis",
                kind="thread-axis", where=where, tag=tag, other=other.name,
            )
    threads = MappingProxyType({**stage.threads, axis: tag})
    return state.update(replace(stage, threads=threads)), None


def loop_of_thread_axis(stage: StageState, tag: str, where: str) -> IterVar:
    """Return the loop of a stage bound to a thread axis, the innermost if there are several.

    Raises:
        ScheduleError: If no loop of the stage is bound to the thread axis.
    """
    for leaf in reversed(stage.leaves):
        if stage.threads.get(leaf) == tag:
            return leaf
    tags = ", ".join(dict.fromkeys(stage.threads.values())) or "none"
    raise ScheduleError(
        "{where}: no loop of {stage} is bound to {tag}; its loops are bound to {tags}; bind one, "
        "or pass a loop",
        kind="thread-axis", where=where, stage=stage.name, tag=tag, tags=tags,
    )


def check_threads(
    state: ScheduleState, key: Operation, axis: IterVar, tag: str, threads: int | None
) -> None:
    """Raise if the extents of a loop and of the thread axis to bind are known and differ.

    Raises:
        ScheduleError: If the extents differ, or `axis` is not a loop of this stage.
    """
    stage = state.stage(key)
    leaf_position(stage, axis, "bind")
    if threads is not None and isinstance(axis.extent, int) and axis.extent != threads:
        raise ScheduleError(
            "s[{stage}].bind({axis}): {tag} has {threads} threads, but {axis} has extent {extent}; "
            "split it first, or create the thread axis without an extent",
            kind="thread-axis", stage=stage.name, axis=axis.name, tag=tag, threads=threads,
            extent=axis.extent,
        )


def _positive(value: object, name: str, where: str) -> Extent:
    if isinstance(value, Expr) and value.dtype.is_integer:
        return value if not isinstance(value, Const) else _positive(value.value, name, where)
    number = None if isinstance(value, Expr) else as_int(value)
    if number is None:
        raise ScheduleError(
            "{where}: {subject} must be a positive integer, got {value!r}",
            kind="invalid-value", where=where, subject=name, value=value,
        )
    if number < 1:
        raise ScheduleError(
            "{where}: {subject} must be a positive integer, got {number!r}",
            kind="invalid-value", where=where, subject=name, number=number,
        )
    if number >= 2**63:
        raise ScheduleError(
            "{where}: {subject} must be less than 2**63, got {number!r}",
            kind="limit-exceeded", where=where, subject=name, number=number,
        )
    return number


def _is_product(extent: Extent, outer: Extent, inner: Extent) -> bool:
    """Return whether `extent` is proved to equal `outer * inner` for all sizes."""
    if isinstance(extent, int):
        return isinstance(outer, int) and isinstance(inner, int) and extent == outer * inner
    differs = index_value(extent) != index_value(outer) * index_value(inner)
    # Import lazily: only symbolic extents need isl.
    import tecomp.poly.sets.to_isl as sets
    try:
        where = sets.condition(differs, sets.Space(tuple(free_variables(differs))))
        return bool(where.is_empty())
    except sets.NotAffine:
        return False


def _derive(name: str, extent: Extent, kind: IterKind) -> IterVar:
    # A symbolic extent keeps its dtype, like the extent of a root axis, and is not cast.
    count = index_value(extent) if isinstance(extent, int) else extent
    return IterVar(name, dom=Range(Const(0), count), kind=kind)


def _list(axes: Sequence[IterVar]) -> str:
    return ", ".join(axis.name for axis in axes)
