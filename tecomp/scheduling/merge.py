"""The primitives merge_reduction and merge_formula: two operations become one."""

from __future__ import annotations

from dataclasses import replace

from tecomp.compute.accesses import accesses
from tecomp.compute.axis import IterVar
from tecomp.compute.operation import ComputeOp
from tecomp.compute.reduce import Reduce
from tecomp.compute.tensor import Tensor, TensorLoad
from tecomp.errors import ScheduleError
from tecomp.ir.language.expr import Const, Expr, Var
from tecomp.ir.traversal.rewrite import bottom_up, substitute
from tecomp.scheduling.caches import read_as_defined, redefined, whole_reduction
from tecomp.scheduling.place import direct_consumers
from tecomp.scheduling.state import At, StageState, State, is_map


def merge_reduction(state: State, tensor: Tensor) -> tuple[State, None]:
    """Reduce the terms of the reduction whose elements a stage reduces, by the same reducer.

    See `Schedule.merge_reduction`.
    """
    stage = state.stage(tensor.op)
    where = f"s.merge_reduction({stage.name})"
    outer = whole_reduction(stage, where, "only such are one")
    (load,) = outer.source
    inside = state.find(load.tensor.op) if isinstance(load, TensorLoad) else None
    if inside is None or inside.is_placeholder or not isinstance(load, TensorLoad):
        raise ScheduleError(
            f"{where}: `{load}` is no element of a reduction; give one of such",
            kind="not-this-form",
        )
    inner = whole_reduction(inside, where, "only such are one")
    _check_loops_of(state, (stage, inside), where, "the terms have new ones; merge them first")
    kinds = [accesses(each.op.output(0)).reducer for each in (stage, inside)]
    if kinds[0] is None or kinds[0] != kinds[1]:
        raise ScheduleError(
            f"{where}: {stage.name} and {inside.name} are not combined by the same of sum, prod, "
            "min and max; leave them apart",
            kind="not-this-form",
        )
    fresh = {axis: IterVar(axis.name, dom=axis.dom, kind=axis.kind) for axis in inner.axis}
    moved: dict[Var, Expr] = dict(zip(inside.compute.axis, load.indices, strict=True))
    source = substitute(inner.source[0], {**moved, **fresh})
    axes = (*outer.axis, *fresh.values())
    body = Reduce(outer.combiner, (source,), axes, Const(True, outer.condition.dtype), (), 0)
    state = state.redefine(
        replace(stage, leaves=(*stage.leaves, *fresh.values())), redefined(stage.compute, (body,))
    )
    if not inside.is_output and not direct_consumers(state, inside):
        state = replace(state, stages=tuple(x for x in state if x.key is not inside.key))
    return read_as_defined(state, state.stage(stage.key)), None


def merge_formula(state: State, tensor: Tensor) -> tuple[State, None]:
    """Make a formula of elements part of the operations that read it, and remove its stage.

    See `Schedule.merge_formula`.
    """
    stage = state.stage(tensor.op)
    where = f"s.merge_formula({stage.name})"
    if stage.is_output or not is_map(stage.op) or len(stage.op.outputs) > 1:
        raise ScheduleError(
            f"{where}: {stage.name} is no formula of elements that others read alone; give one",
            kind="not-this-form",
        )
    for reader in direct_consumers(state, stage):
        if type(reader.op) is not ComputeOp:
            raise ScheduleError(
                f"{where}: {reader.name} is no formula and no reduction, and needs what it reads "
                "in memory; leave it there",
                kind="not-this-form",
            )
    _check_loops_of(state, (stage,), where, "its readers have their own; merge it first")
    readers = direct_consumers(state, stage)
    value, axes = stage.compute.body[0], stage.compute.axis

    def rule(node: object) -> Expr | None:
        if not isinstance(node, TensorLoad) or state.find(node.tensor.op) is not stage:
            return None
        place: dict[Var, Expr] = dict(zip(axes, node.indices, strict=True))
        return substitute(value, place)

    changed = state
    for reader in readers:
        changed = changed.redefine(
            reader, reader.compute.rewritten(lambda body: bottom_up(body, rule)))
    changed = replace(changed, stages=tuple(x for x in changed if x.key is not stage.key))
    for reader in readers:
        changed = read_as_defined(changed, changed.stage(reader.key))
    return changed, None


def _check_loops_of(
    state: State, stages: tuple[StageState, ...], where: str, what_to_do: str
) -> None:
    """Refuse stages whose loops were changed, or in whose loops others are computed."""
    own = {leaf for stage in stages for leaf in stage.leaves}
    changed = [stage.name for stage in stages if stage.leaves != stage.compute.loops]
    inside = [x.name for x in state if isinstance(x.attach, At) and x.attach.axis in own]
    if changed or inside:
        what = (
            f"the loops of {changed[0]} were changed" if changed
            else f"{inside[0]} is computed in their loops"
        )
        raise ScheduleError(f"{where}: {what}, and {what_to_do}")
