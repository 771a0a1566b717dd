"""Loops that store what a reduction starts from."""

from __future__ import annotations

from collections.abc import Mapping

from tecomp.compute.axis import IterVar
from tecomp.ir.language.expr import Expr, Var
from tecomp.ir.language.stmt import Stmt
from tecomp.lowering.loops.work import StageWork
from tecomp.lowering.stages.kinds import grid_axes, loop_kinds
from tecomp.poly.loops.full_tiles import full_tiles
from tecomp.poly.loops.regions import where_equal
from tecomp.poly.loops.scan import scan
from tecomp.poly.loops.scopes import Scope, first_dims
from tecomp.poly.sets.point_sets import Points
from tecomp.scheduling.state import is_data


def initialise(
    work: StageWork,
    position: int,
    values: Mapping[IterVar, Expr],
    data: Points,
    scope: Scope,
) -> Stmt:
    """Loops that store the initial values of a reduction."""
    if not work.frame.data_loops_suffice:
        return _by_roots(work, values, scope)
    if work.resets:
        return _reset(work, position, values, data, scope)
    dims = tuple(leaf for leaf in work.leaves[position:] if is_data(leaf))

    def store(point: Mapping[Var, Expr], copy: Points) -> Stmt:
        del copy
        now = {**values, **{dim: point[dim] for dim in dims}}
        return work.body.initial(work.frame.root_values(now))

    kinds = loop_kinds(work.definition.stage)
    return scan(
        data, scope.space(dims), store, kinds=kinds,
        threads=grid_axes(work.definition.stage), context=scope.context,
        isolated=full_tiles(data, _tiles(work, dims)),
    )


def _reset(
    work: StageWork,
    position: int,
    values: Mapping[IterVar, Expr],
    data: Points,
    scope: Scope,
) -> Stmt:
    """The initial values of a reduction by the operation that then adds to them."""
    operation = work.operation
    assert operation is not None
    end = operation.position
    dims = tuple(leaf for leaf in work.leaves[position:end] if is_data(leaf))
    axes = work.definition.axis

    def start(point: Mapping[Var, Expr], copy: Points) -> Stmt:
        inside = scope.enter([point[dim] for dim in dims], copy)
        now = {**values, **{dim: point[dim] for dim in dims}}
        pairs = [(value, now[leaf]) for leaf, value in work.frame.values_of_data(tuple(now))]
        points = where_equal(work.region, inside.space(axes), pairs)
        return operation.started(points, inside)

    kinds = loop_kinds(work.definition.stage)
    return scan(
        first_dims(data, len(dims)), scope.space(dims), start, kinds=kinds,
        threads=grid_axes(work.definition.stage),
        context=scope.context, isolated=work.full_part(data, position, end, only_data=True),
    )


def _tiles(work: StageWork, dims: tuple[IterVar, ...]) -> list[tuple[int, int]]:
    position = {leaf: k for k, leaf in enumerate(dims)}
    return [
        (position[work.leaves[k]], extent)
        for k, extent in work.tiles()
        if work.leaves[k] in position
    ]


def _by_roots(
    work: StageWork, values: Mapping[IterVar, Expr], scope: Scope
) -> Stmt:
    """Initial values where a loop runs over data and reduction at once: by root axes."""
    axes = work.definition.axis
    space = scope.space(axes)
    pairs = [
        (value, values[leaf])
        for leaf, value in work.frame.values_of_data(tuple(values))
    ]
    points = where_equal(work.region, space, pairs)

    def store(point: Mapping[Var, Expr], copy: Points) -> Stmt:
        del copy
        return work.body.initial({axis: point[axis] for axis in axes})

    return scan(points, space, store, context=scope.context)
