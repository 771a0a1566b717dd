"""Recover the factors of fused loops with symbolic extents.

A fused loop `f` of `n * m` iterations is not an affine function of its factors, nor are the factors
affine in `f`. Sets therefore use the factors as coordinates. The generated loops iterate over `f`
or the loops that `f` was split into, and each factor is computed as a mixed-radix digit of `f`
inside them.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import mul
from typing import NoReturn

from tecomp.compute.iter_var import IterVar
from tecomp.compute.operation import Operation
from tecomp.ir.arith.extents import divisor
from tecomp.ir.nodes.dtype import INT64
from tecomp.ir.nodes.expr import Const, Expr, Var, index_value
from tecomp.ir.nodes.stmt import Extent, ForKind, Stmt
from tecomp.ir.traversal.rewrite import substitute
from tecomp.lowering.loops.iteration_frame import StageFrame
from tecomp.lowering.loops.rectangular_loops import wrap_in_guards
from tecomp.lowering.stages.definition import concurrent_loop_vars, grid_axes, loop_kinds
from tecomp.lowering.stages.program import PreparedSchedule
from tecomp.poly.loops.ast_generation import scan
from tecomp.poly.loops.regions import LoopScope, first_dims, fix, image, is_same
from tecomp.poly.loops.tile_loops import full_tiles
from tecomp.poly.sets.to_isl import Points
from tecomp.scheduling.loop_relations import Frame, derive_frames, derived_from_axes, recover
from tecomp.scheduling.state import (
    ComputedAt,
    Fuse,
    LayoutTransform,
    Relation,
    Split,
    StageState,
    is_reduction,
)

_TILES = (ForKind.VECTORIZED, ForKind.UNROLLED)


@dataclass(frozen=True, slots=True)
class FactoredLoop:
    """Fused loop together with its factors.

    Attributes:
        parts: Factors of the fused loop.
        fused: Fused loop.
        loops: Fused loop, or the loops that it was split into, in loop order.
        splits: Splits that produced `loops`.
        stage: Stage as scheduled.
    """

    parts: tuple[IterVar, ...]
    fused: IterVar
    loops: tuple[IterVar, ...]
    splits: tuple[Split, ...]
    stage: StageState


Groups = Mapping[Operation, tuple[FactoredLoop, ...]]


def unfuse_symbolic_loops(program: PreparedSchedule) -> tuple[PreparedSchedule, Groups]:
    """Replace fused loops of symbolic extents in `program` by their factors; return both."""
    found: dict[Operation, tuple[FactoredLoop, ...]] = {}
    for definition in program.definitions.values():
        stage = definition.stage
        if (groups := _groups_of(program, stage)) and definition.scan_axis is None:
            found[stage.key] = groups
    if not found:
        return program, found
    definitions = dict(program.definitions)
    state = program.state
    for definition in program.definitions.values():
        stage = _with_parts(definition.stage, found.get(definition.stage.key, ()))
        stage = _attached_to_parts(stage, found)
        definitions[stage.key] = replace(definition, stage=stage)
        state = state.update(stage)
    return replace(program, definitions=definitions, state=state), found


def _groups_of(program: PreparedSchedule, stage: StageState) -> tuple[FactoredLoop, ...]:
    """Return the fused loops to replace; empty if another feature of the stage is not affine."""
    fusions = [r for r in stage.relations if isinstance(r, Fuse)]
    if not fusions or stage.tensorized is not None:
        return ()
    if any(isinstance(r, LayoutTransform) for r in stage.relations):
        return ()
    inner = {part for fuse in fusions for part in fuse.parts}
    last = [fuse for fuse in fusions if not _is_fused_again(fuse.fused, inner, stage.relations)]
    found = []
    for fuse in last:
        parts = _all_parts(fuse, fusions)
        if all(_is_number(program, stage, part) for part in parts[1:]):
            continue
        group = _group(fuse.fused, parts, stage)
        if group is None or not _is_free(program, stage, group):
            return ()
        found.append(group)
    return tuple(found)


def _is_fused_again(
    axis: IterVar, inner: set[IterVar], relations: Sequence[Relation]
) -> bool:
    """Return whether a fused loop, or a loop split from it, was fused again."""
    derived = {axis}
    for relation in relations:
        if isinstance(relation, Split) and relation.parent in derived:
            derived |= {relation.outer, relation.inner}
    return bool(derived & inner)


def _all_parts(fuse: Fuse, fusions: Sequence[Fuse]) -> tuple[IterVar, ...]:
    """Return the factors of a fusion; nested fusions are flattened."""
    parts = list(fuse.parts)
    for other in reversed(fusions):
        if other.fused in parts and other.parts:
            position = parts.index(other.fused)
            parts[position : position + 1] = other.parts
    return tuple(parts)


def _is_number(program: PreparedSchedule, stage: StageState, axis: IterVar) -> bool:
    """Return whether the extent of a loop is constant."""
    for relation in reversed(stage.relations):
        match relation:
            case Split(_, _, inner) if inner is axis:
                return isinstance(relation.factor, int)
            case Split(_, outer, _) if outer is axis and relation.nparts is not None:
                return isinstance(relation.nparts, int)
            case Split(parent, outer, _) if outer is axis:
                axis = parent
            case Fuse(_, fused) if fused is axis:
                return False
    return isinstance(program.extent(axis.extent), int)


def _group(fused: IterVar, parts: tuple[IterVar, ...], stage: StageState) -> FactoredLoop | None:
    """Return the group of a fused loop if its loops are adjacent and split by constants."""
    if len({is_reduction(part) for part in parts}) != 1:
        return None
    derived, splits = {fused}, []
    for relation in stage.relations:
        if isinstance(relation, Split) and relation.parent in derived:
            if not isinstance(relation.factor, int):
                return None
            splits.append(relation)
            derived |= {relation.outer, relation.inner}
    positions = [k for k, leaf in enumerate(stage.leaves) if leaf in derived]
    if positions != list(range(positions[0], positions[0] + len(positions))):
        return None
    leaves = stage.leaves[positions[0] : positions[-1] + 1]
    return FactoredLoop(parts, fused, leaves, tuple(splits), stage)


def _is_free(program: PreparedSchedule, stage: StageState, group: FactoredLoop) -> bool:
    """Return whether nothing is attached between the loops or requires their variables."""
    hinted = {*(request.axis for request in stage.prefetches), *(axis for axis, _ in stage.pragmas)}
    attached_axes = {axis for axis, _ in program.attached(stage.key)} & set(group.loops[:-1])
    if hinted & set(group.loops) or attached_axes:
        return False
    return not any(
        d.stage.is_rolling or d.stage.is_doubled for _, d in program.attached(stage.key)
    )


def _with_parts(stage: StageState, groups: Sequence[FactoredLoop]) -> StageState:
    """Return `stage` without the fusions and splits of the groups."""
    leaves = list(stage.leaves)
    removed: set[Relation] = set()
    for group in groups:
        position = leaves.index(group.loops[0])
        leaves[position : position + len(group.loops)] = group.parts
        removed.update(group.splits)
        worklist = [group.fused]
        while worklist:
            fused = worklist.pop()
            fuse = next(
                (r for r in stage.relations if isinstance(r, Fuse) and r.fused is fused), None
            )
            # A loop fused from no loops is a factor itself.
            if fuse is not None and fuse.parts:
                removed.add(fuse)
                worklist += fuse.parts
    relations = tuple(r for r in stage.relations if r not in removed)
    return replace(stage, leaves=tuple(leaves), relations=relations)


def _attached_to_parts(
    stage: StageState, found: Mapping[Operation, Sequence[FactoredLoop]]
) -> StageState:
    """Attach `stage` to the last factor if it was attached to the last loop of a group."""
    if not isinstance(stage.attach, ComputedAt):
        return stage
    for group in found.get(stage.attach.stage, ()):
        if stage.attach.axis is group.loops[-1]:
            return replace(stage, attach=ComputedAt(stage.attach.stage, group.parts[-1]))
    return stage


def is_plain(group: FactoredLoop, frame: StageFrame) -> bool:
    """Return whether all factors but the first have constant extents, so that `fused` is affine."""
    return all(isinstance(frame.frames[part].extent, int) for part in group.parts[1:])


def are_boxes(
    groups: Sequence[FactoredLoop],
    frame: StageFrame,
    leaves: Sequence[IterVar],
    points: Points,
    scope: LoopScope,
) -> bool:
    """Return whether the factors of each group span a full box, independent of outer loops.

    Args:
        groups: Groups of the stage.
        frame: Axes and loops of the stage.
        leaves: Loops that are the dimensions of `points`.
        points: Iterations that correspond to an element.
        scope: Scope around the loops.
    """
    for group in groups:
        pos = leaves.index(group.parts[0]) if group.parts[0] in leaves else None
        if pos is None:
            continue
        ranges = [(Const(0), frame.frames[part].extent) for part in group.parts]
        box = scope.space(group.parts).box(ranges)
        outer, inner = first_dims(points, pos), first_dims(points, pos + len(group.parts))
        if not is_same(outer.flat_product(box), inner, scope):
            return False
    return True


def walk(
    group: FactoredLoop,
    frame: StageFrame,
    scope: LoopScope,
    inner: Callable[[Mapping[IterVar, Var], LoopScope], Stmt],
) -> Stmt:
    """Build the loops of a group.

    Args:
        group: Group to iterate over.
        frame: Frame with the extents of the factors.
        scope: Scope around the loops.
        inner: Function that builds the body from the factor variables and the inner scope.
    """
    extents = [frame.frames[part].extent for part in group.parts]
    now = {part: Var(part.name) for part in group.parts}
    inside = scope
    for part, extent in zip(group.parts, extents, strict=True):
        inside = inside.within(now[part], index_value(extent))
    for leaf in group.loops:
        inside = inside.running_at_once([
            pair for var in now.values() for pair in concurrent_loop_vars(group.stage, {leaf: var})
        ])
    statement = inner(now, inside)

    size = Var("size", INT64)

    def body(fused: Expr) -> Stmt:
        values = _digits(fused, extents)
        return substitute(statement, dict(zip(now.values(), values, strict=True)))

    loops = _loops(group, size, replace(scope, params=(*scope.params, size)), body)
    # The guard prevents division by 0 and lets quotients and remainders be recombined.
    conditions = [extent > 0 for extent in extents[1:] if isinstance(extent, Expr)]
    return wrap_in_guards(conditions, substitute(loops, {size: index_value(reduce(mul, extents))}))


def _digits(fused: Expr, extents: Sequence[Extent]) -> list[Expr]:
    """Return the factors of a fused loop value as mixed-radix digits."""
    found: list[Expr] = []
    for extent in map(divisor, reversed(extents[1:])):
        found.append(fused % extent)
        fused = fused // extent
    return [fused, *reversed(found)]


def _loops(group: FactoredLoop, size: Var, scope: LoopScope, body: Callable[[Expr], Stmt]) -> Stmt:
    """Build the loops of a group over `size` iterations; `body` takes the fused loop value."""
    frames, values = derive_frames(group.splits, {group.fused: Frame(Const(0), size)}, _of_layout)
    space = scope.space((group.fused,))
    points = image(
        space.box([(Const(0), size)]), [values[leaf] for leaf in group.loops], space
    ).intersect_params(scope.context)
    kinds, threads = loop_kinds(group.stage), grid_axes(group.stage)
    tiles = _tiles(group, frames)
    cut = loops_around_tiles(group.loops, {group.loops[k] for k, _ in tiles})
    outer, inner = group.loops[:cut], group.loops[cut:]

    def chunk(known: Mapping[Var, Expr], copy: Points) -> Stmt:
        chosen = [known[leaf] for leaf in outer]
        inside = scope.enter(chosen, copy)
        rest = fix(points, chosen, inside)

        def element(point: Mapping[Var, Expr], copy: Points) -> Stmt:
            del copy
            loops = {leaf: point[leaf] if leaf in point else known[leaf] for leaf in group.loops}
            return body(recover(group.splits, frames, loops, _of_layout)[group.fused])

        return scan(
            rest, inside.space(inner), element, kinds=kinds, threads=threads,
            context=inside.context,
            isolated=full_tiles(rest, [(k - cut, extent) for k, extent in tiles if k >= cut]),
        )

    if not outer:
        return chunk({}, points)
    return scan(
        first_dims(points, cut), scope.space(outer), chunk, kinds=kinds, threads=threads,
        context=scope.context,
    )


def loops_around_tiles(leaves: Sequence[IterVar], tiles: Container[IterVar]) -> int:
    """Return the number of loops around the loop that iterates over tiles.

    All loops belong to one axis of symbolic extent, and the last iteration of the outer loops may
    contain no full tile. Generated together, the loops would be emitted in three versions;
    generated inside the outer loops, two versions suffice.
    """
    walking = [k for k, leaf in enumerate(leaves) if leaf not in tiles]
    return walking[-1] if walking and len(walking) < len(leaves) else 0


def loops_around_symbolic_tiles(stage: StageState, frame: StageFrame) -> list[int]:
    """Return `loops_around_tiles` as a list, for an axis of symbolic extent."""
    splits = [r for r in stage.relations if isinstance(r, Split)]
    derived = {axis for split in splits for axis in (split.outer, split.inner)}
    for root in (split.parent for split in splits if split.parent not in derived):
        if isinstance(frame.frames[root].extent, int):
            continue
        root_leaves = {leaf for leaf in stage.leaves if root in derived_from_axes([leaf], splits)}
        leaves = stage.leaves[: len(root_leaves)]
        tiles = {leaf for leaf in leaves if stage.marks.get(leaf) in _TILES}
        if root_leaves == set(leaves) and tiles and (cut := loops_around_tiles(leaves, tiles)):
            return [cut]
    return []


def _of_layout(*_: object) -> NoReturn:
    raise AssertionError("no layout lies between the loops of a group")


def _tiles(group: FactoredLoop, frames: Mapping[IterVar, Frame]) -> list[tuple[int, int]]:
    """Return position and extent of vectorized and unrolled loops of constant extent above 1."""
    return [
        (k, extent) for k, leaf in enumerate(group.loops)
        if group.stage.marks.get(leaf) in _TILES
        and isinstance(extent := frames[leaf].extent, int) and extent > 1
    ]
