"""The primitive cache_repeated: what a formula repeats along an axis becomes a stage of its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tecomp.compute.affine import axes_of
from tecomp.compute.axis import IterKind, IterVar, make_axis
from tecomp.compute.operation import ComputeOp
from tecomp.compute.tensor import Tensor, TensorLoad
from tecomp.errors import ScheduleError
from tecomp.ir.language.equal import same
from tecomp.ir.language.expr import Call, Cast, Const, Expr, Var
from tecomp.ir.traversal.rewrite import children, substitute, top_down, walk
from tecomp.scheduling.caches import read_as_defined
from tecomp.scheduling.place import check_loops, check_scope
from tecomp.scheduling.state import State, initial_stage, is_map


def cache_repeated(
    state: State, tensor: Tensor, axis: IterVar, scope: str
) -> tuple[State, Tensor]:
    """Compute first what a formula computes again for each value of an axis: the longest such part.

    See `Schedule.cache_repeated`.

    Returns:
        The new state; the part, which has all other axes.
    """
    stage = state.stage(tensor.op)
    where = f"s.cache_repeated({stage.name}, {getattr(axis, 'name', axis)}, {scope!r})"
    check_scope(scope, where)
    check_loops(stage, where)
    if not is_map(stage.op) or len(stage.op.outputs) > 1:
        raise ScheduleError(
            f"{where}: {stage.name} is no formula of elements; give one", kind="not-this-form"
        )
    compute = stage.compute
    others = [own for own in compute.axis if own is not axis]
    if len(others) == len(compute.axis):
        names = ", ".join(own.name for own in compute.axis)
        raise ScheduleError(
            f"{where}: {stage.name} has no such axis; its axes are {names}", kind="no-such-loop"
        )
    found = [node for node in walk(*compute.body, parts=_computed) if _is_part(node, others)]
    if not others or not found:
        raise ScheduleError(
            f"{where}: nothing is the same for all values of this axis, but not for those of the "
            "others; leave it as it is",
            kind="not-this-form",
        )
    chosen = max(found, key=lambda node: sum(1 for _ in walk(node)))
    axes = [make_axis(own.name, 0, own.extent, IterKind.DATA) for own in others]
    moved: dict[Var, Expr] = dict(zip(others, axes, strict=True))
    op = ComputeOp(
        f"{stage.name}_repeated", tuple(axes), (substitute(chosen, moved),),
        location=compute.location,
    )
    element = TensorLoad(op.output(0), tuple(others), compute.location)
    state = state.insert(initial_stage(op, is_output=False, scope=scope), before=stage.key)
    state = state.redefine(stage, compute.rewritten(lambda value: top_down(
        value, lambda node: element if type(node) is type(chosen) and same(node, chosen) else None
    )))
    return read_as_defined(state, state.stage(stage.key)), op.output(0)


def _computed(node: Any) -> Sequence[Any]:
    """What is computed for a node wherever it is; indices of elements are not counted."""
    if isinstance(node, TensorLoad):
        return ()
    return node.args[:1] if _is_guarding(node) else children(node)


def _is_guarding(node: Any) -> bool:
    """Whether parts of a value are computed under a condition only."""
    return isinstance(node, Call) and node.name == "if_then_else"


def _is_part(node: Any, axes: Sequence[IterVar]) -> bool:
    """Whether a value is computed from elements, and depends on these axes and no others."""
    if not isinstance(node, Expr) or isinstance(node, TensorLoad | Const | Var | Cast):
        return False
    is_made = any(isinstance(part, TensorLoad) for part in walk(node, parts=_computed))
    is_value = is_made and not _is_guarding(node) and not node.dtype.is_bool
    return is_value and set(axes_of(node)) == set(axes)
