"""Initialization of reductions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tecomp.compute.iter_var import IterVar
from tecomp.ir.nodes.expr import Const, Expr, Var
from tecomp.ir.nodes.stmt import ForKind, Stmt
from tecomp.lowering.loops.stage_body import combines_partial_results
from tecomp.lowering.loops.stage_context import StageContext
from tecomp.lowering.stages.definition import Definition, grid_axes, loop_kinds
from tecomp.lowering.stages.program import PreparedSchedule
from tecomp.poly.loops.ast_generation import scan
from tecomp.poly.loops.regions import LoopScope, equality_points, first_dims
from tecomp.poly.loops.tile_loops import full_tiles
from tecomp.poly.sets.to_isl import Points
from tecomp.scheduling.state import LayoutTransform, is_data, is_reduction


def initialize_reduction(
    work: StageContext,
    position: int,
    values: Mapping[IterVar, Expr],
    data: Points,
    scope: LoopScope,
) -> Stmt:
    """Build the loops that store the initial values of a reduction."""
    if not work.frame.data_loops_suffice:
        return _by_roots(work, values, scope)
    if work.resets:
        return _reset(work, position, values, data, scope)
    dims = tuple([leaf for leaf in work.leaves[position:] if is_data(leaf)])

    def store(point: Mapping[Var, Expr], copy: Points) -> Stmt:
        del copy
        loops = {**values, **{dim: point[dim] for dim in dims}}
        return work.body.initial(work.frame.root_values(loops))

    kinds = loop_kinds(work.definition.stage)
    return scan(
        data, scope.space(dims), store, kinds=kinds,
        threads=grid_axes(work.definition.stage), context=scope.context,
        isolated=full_tiles(data, _tiles(work, dims)),
    )


def _reset(
    work: StageContext,
    position: int,
    values: Mapping[IterVar, Expr],
    data: Points,
    scope: LoopScope,
) -> Stmt:
    """Store the initial values of a reduction with the reset form of the tensor intrinsic."""
    operation = work.operation
    assert operation is not None
    end = operation.position
    dims = tuple(leaf for leaf in work.leaves[position:end] if is_data(leaf))
    axes = work.definition.axis

    def start(point: Mapping[Var, Expr], copy: Points) -> Stmt:
        inside = scope.enter([point[dim] for dim in dims], copy)
        loops = {**values, **{dim: point[dim] for dim in dims}}
        pairs = [(value, loops[leaf]) for leaf, value in work.frame.values_of_data(tuple(loops))]
        points = equality_points(work.region, inside.space(axes), pairs)
        return operation.started(points, inside)

    kinds = loop_kinds(work.definition.stage)
    return scan(
        first_dims(data, len(dims)), scope.space(dims), start, kinds=kinds,
        threads=grid_axes(work.definition.stage),
        context=scope.context, isolated=work.full_part(data, position, end, only_data=True),
    )


def _tiles(work: StageContext, dims: tuple[IterVar, ...]) -> list[tuple[int, int]]:
    position = {leaf: k for k, leaf in enumerate(dims)}
    return [
        (position[work.leaves[k]], extent)
        for k, extent in work.tiles()
        if work.leaves[k] in position
    ]


def _by_roots(
    work: StageContext, values: Mapping[IterVar, Expr], scope: LoopScope
) -> Stmt:
    """Store initial values by root axes, for loops fused from data and reduction axes."""
    axes = work.definition.axis
    space = scope.space(axes)
    pairs = [
        (value, values[leaf])
        for leaf, value in work.frame.values_of_data(tuple(values))
    ]
    points = equality_points(work.region, space, pairs)

    def store(point: Mapping[Var, Expr], copy: Points) -> Stmt:
        del copy
        return work.body.initial({axis: point[axis] for axis in axes})

    return scan(points, space, store, context=scope.context)


def initializes_in_first_iteration(
    program: PreparedSchedule, definition: Definition, attached: Iterable[int]
) -> bool:
    """Return whether the first reduction step stores, so that no separate init loops are needed.

    If partial results are combined in unrolled loops, the first partial result is stored unchanged:
    an initial value would add one step to the dependence chain.

    If other stages are computed in data loops inside all reduction loops, a sum is computed tile by
    tile. Separate init loops would access all elements once more, while the cost of one condition
    for each tile is negligible.

    The reduction domain must be nonempty, and its first step must be the same for all elements.

    Args:
        program: Program that provides the extents.
        definition: Definition of the stage.
        attached: Positions in the loop order at which other stages are computed inside.
    """
    reduce, stage = definition.reduce, definition.stage
    if reduce is None or reduce.init:
        return False
    if not (isinstance(reduce.condition, Const) and reduce.condition.value is True):
        return False
    extents = [program.extent(axis.extent) for axis in definition.reduce_axis]
    if not all(isinstance(extent, int) and extent > 0 for extent in extents):
        return False
    if any(isinstance(relation, LayoutTransform) for relation in stage.relations):
        return False
    levels, inside = [k for k, leaf in enumerate(stage.leaves) if is_reduction(leaf)], [*attached]
    if not levels:
        return False
    if combines_partial_results(program, definition) and max(inside, default=0) <= levels[0]:
        return all(stage.marks.get(stage.leaves[k]) is ForKind.UNROLLED for k in levels)
    is_single = len(reduce.combiner.result) == 1
    return is_single and any(position > levels[-1] + 1 for position in inside)
