"""Primitives that rewrite definitions: merge_reduction, merge_formula, narrow_reduction."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import prod
from typing import Any

from tecomp.compute import reduce as reducers
from tecomp.compute.access_relations import accesses
from tecomp.compute.iter_var import IterKind, IterVar, make_axis
from tecomp.compute.operation import ComputeOp
from tecomp.compute.reduce import Reduce
from tecomp.compute.tensor import Tensor, TensorLoad
from tecomp.errors import ScheduleError, safe_repr
from tecomp.ir.nodes.dtype import DType
from tecomp.ir.nodes.expr import Binary, BinOp, Call, Cast, Const, Expr, Select, Var, cast, const
from tecomp.ir.nodes.operators import integer_range
from tecomp.ir.traversal.rewrite import bottom_up, fold, substitute
from tecomp.scheduling.cache_stages import check_plain_reduction, redirect_readers, with_body
from tecomp.scheduling.compute_location import direct_consumers
from tecomp.scheduling.state import ComputedAt, ScheduleState, StageState, initial_stage, is_map


def merge_reduction(state: ScheduleState, tensor: Tensor) -> tuple[ScheduleState, None]:
    """Merge a reduction of a reduction into one reduction over the axes of both.

    See `Schedule.merge_reduction`.
    """
    stage = state.stage(tensor.op)
    where = f"s.merge_reduction({stage.name})"
    outer = check_plain_reduction(stage, where, "only such reductions can be merged")
    (load,) = outer.source
    producer = state.find(load.tensor.op) if isinstance(load, TensorLoad) else None
    if producer is None or producer.is_placeholder or not isinstance(load, TensorLoad):
        raise ScheduleError(
            "{where}: `{load}` is not an element of a reduction; pass a reduction of a reduction",
            kind="pattern-mismatch", where=where, load=load,
        )
    inner = check_plain_reduction(producer, where, "only such reductions can be merged")
    _check_loops_of(state, (stage, producer), where, "merging creates new loops; call "
                                                   "merge_reduction first")
    kinds = [accesses(s.op.output(0)).reducer for s in (stage, producer)]
    if kinds[0] is None or kinds[0] != kinds[1]:
        raise ScheduleError(
            "{where}: {stage} and {inside} do not use the same reducer of sum, prod, min and max "
            "and cannot be merged; keep them separate",
            kind="pattern-mismatch", where=where, stage=stage.name, inside=producer.name,
        )
    fresh = {axis: IterVar(axis.name, dom=axis.dom, kind=axis.kind) for axis in inner.axis}
    mapping: dict[Var, Expr] = dict(zip(producer.compute.axis, load.indices, strict=True))
    source = substitute(inner.source[0], {**mapping, **fresh})
    axes = (*outer.axis, *fresh.values())
    body = Reduce(outer.combiner, (source,), axes, Const(True, outer.condition.dtype), (), 0)
    state = state.redefine(
        replace(stage, leaves=(*stage.leaves, *fresh.values())), with_body(stage.compute, (body,))
    )
    if not producer.is_output and not direct_consumers(state, producer):
        state = replace(state, stages=tuple(x for x in state if x.key is not producer.key))
    return redirect_readers(state, state.stage(stage.key)), None


def merge_formula(state: ScheduleState, tensor: Tensor) -> tuple[ScheduleState, None]:
    """Substitute the definition of a stage into its readers, and remove the stage.

    See `Schedule.merge_formula`.
    """
    stage = state.stage(tensor.op)
    where = f"s.merge_formula({stage.name})"
    if stage.is_output or not is_map(stage.op) or len(stage.op.outputs) > 1:
        raise ScheduleError(
            "{where}: {stage} is not an element-wise, single-output intermediate stage; pass such "
            "a stage",
            kind="pattern-mismatch", where=where, stage=stage.name,
        )
    for reader in direct_consumers(state, stage):
        if type(reader.op) is not ComputeOp:
            raise ScheduleError(
                "{where}: {reader} is neither a te.compute formula nor a reduction and reads its "
                "operands from memory; keep the stage",
                kind="pattern-mismatch", where=where, reader=reader.name,
            )
    _check_loops_of(state, (stage,), where, "merging uses the loops of its readers; call "
                                            "merge_formula first")
    readers = direct_consumers(state, stage)
    value, axes = stage.compute.body[0], stage.compute.axis

    def rule(node: object) -> Expr | None:
        if not isinstance(node, TensorLoad) or state.find(node.tensor.op) is not stage:
            return None
        mapping: dict[Var, Expr] = dict(zip(axes, node.indices, strict=True))
        return substitute(value, mapping)

    changed = state
    for reader in readers:
        changed = changed.redefine(
            reader, reader.compute.rewritten(lambda body: bottom_up(body, rule)))
    changed = replace(changed, stages=tuple(x for x in changed if x.key is not stage.key))
    for reader in readers:
        changed = redirect_readers(changed, changed.stage(reader.key))
    return changed, None


def _check_loops_of(
    state: ScheduleState, stages: tuple[StageState, ...], where: str, what_to_do: str
) -> None:
    """Raise if loops of the stages were changed, or other stages are computed at their loops.

    Raises:
        ScheduleError: If either is the case.
    """
    loops = {leaf for stage in stages for leaf in stage.leaves}
    changed = [stage.name for stage in stages if stage.leaves != stage.compute.loops]
    nested = [x.name for x in state if isinstance(x.attach, ComputedAt) and x.attach.axis in loops]
    if changed or nested:
        reason = (
            f"the loops of {changed[0]} were changed" if changed
            else f"{nested[0]} is computed in their loops"
        )
        raise ScheduleError(
            "{where}: {subject}, but {what_to_do}",
            where=where, subject=reason, what_to_do=what_to_do,
        )


_Range = tuple[int, int]
_REDUCERS: dict[str, Callable[..., Expr]] = {
    "sum": reducers.sum, "min": reducers.min, "max": reducers.max,
}


def narrow_reduction(
    state: ScheduleState, tensor: Tensor, dtype: str
) -> tuple[ScheduleState, Tensor]:
    """Reduce integers in a narrower dtype that holds every result, and widen the result.

    See `Schedule.narrow_reduction`.

    Returns:
        The new state and the reduction in the narrower dtype.
    """
    stage = state.stage(tensor.op)
    where = f"s.narrow_reduction({stage.name}, {safe_repr(dtype)})"
    reduce = check_plain_reduction(stage, where, "only such reductions can be narrowed")
    kind = accesses(stage.op.output(0)).reducer
    target = const(0, dtype).dtype
    if not target.is_integer or not reduce.dtype.is_integer or kind not in _REDUCERS:
        raise ScheduleError(
            "{where}: {stage} is not an integer sum, min or max that can be narrowed to the "
            "integer dtype {dtype}; keep its dtype",
            kind="pattern-mismatch", where=where, stage=stage.name, dtype=dtype,
        )
    if stage.leaves != stage.compute.loops:
        raise ScheduleError(
            "{where}: the loops of {stage} were changed; call narrow_reduction first",
            kind="primitive-order", where=where, stage=stage.name,
        )
    found = fold(reduce.source[0], _range_of)
    extents = [axis.extent for axis in reduce.axis]
    known = [n for n in extents if isinstance(n, int) and n > 0]
    if len(known) == len(extents) and kind == "sum":
        found = min(found[0] * prod(known), 0), max(found[1] * prod(known), 0)
    if len(known) < len(extents) or not _holds(target, found):
        raise ScheduleError(
            "{where}: cannot prove that the results of {stage}, from {found} to {upper}, fit; use "
            "a dtype that holds them",
            kind="pattern-mismatch", where=where, stage=stage.name, found=found[0], upper=found[1],
        )
    axes = [make_axis(axis.name, 0, axis.extent, IterKind.DATA) for axis in stage.compute.axis]
    mapping: dict[Var, Expr] = dict(zip(stage.compute.axis, axes, strict=True))
    term = substitute(_narrow_term(reduce.source[0], target), mapping)
    body = _REDUCERS[kind](term, axis=list(reduce.axis))
    location = stage.compute.location
    op = ComputeOp(f"{stage.name}_narrow", tuple(axes), (body,), location=location)
    element = TensorLoad(op.output(0), tuple(stage.compute.axis), location)
    state = state.insert(initial_stage(op, is_output=False), before=stage.key)
    widened = with_body(stage.compute, (cast(reduce.dtype, element),))
    state = state.redefine(replace(stage, leaves=widened.axis), widened)
    return redirect_readers(state, state.stage(stage.key)), op.output(0)


def _holds(dtype: DType, values: _Range) -> bool:
    low, high = integer_range(dtype)
    return low <= values[0] and values[1] <= high


def _range_of(node: Any, parts: list[_Range]) -> _Range:
    """Return an interval that contains an integer value; fold rule over its expression.

    An unknown or overflowing operation gives the full range of its dtype. Values that are not
    integers give (0, 0), booleans (0, 1).
    """
    if not isinstance(node, Expr) or not node.dtype.is_integer:
        return 0, int(isinstance(node, Expr) and node.dtype.is_bool)
    found = _known_range(node, parts)
    full_range = integer_range(node.dtype)
    return found if found is not None and _holds(node.dtype, found) else full_range


def _known_range(node: Any, parts: list[_Range]) -> _Range | None:
    match node:
        case Const(value):
            return int(value), int(value)
        case IterVar() if isinstance(node.extent, int) and isinstance(node.dom.min, Const):
            low = int(node.dom.min.value)
            return low, low + max(node.extent - 1, 0)
        case Cast() if node.value.dtype.is_integer or node.value.dtype.is_bool:
            return parts[-1]
        case Select() | Call("if_then_else"):
            return min(parts[-2][0], parts[-1][0]), max(parts[-2][1], parts[-1][1])
        case Binary(BinOp.ADD):
            return parts[0][0] + parts[1][0], parts[0][1] + parts[1][1]
        case Binary(BinOp.SUB):
            return parts[0][0] - parts[1][1], parts[0][1] - parts[1][0]
        case Binary(BinOp.MUL):
            corners = [a * b for a in parts[0] for b in parts[1]]
            return min(corners), max(corners)
        case Binary(BinOp.MIN):
            return min(parts[0][0], parts[1][0]), min(parts[0][1], parts[1][1])
        case Binary(BinOp.MAX):
            return max(parts[0][0], parts[1][0]), max(parts[0][1], parts[1][1])
    return None


def _narrow_term(term: Expr, dtype: DType) -> Expr:
    """Return a term in a narrower dtype; casts move into the branches of selections."""

    def rule(node: Any, parts: list[Expr]) -> Expr:
        match node:
            case Const(value) if node.dtype.is_integer:
                return const(int(value), dtype)
            case Cast() if node.value.dtype.is_integer or node.value.dtype.is_bool:
                return cast(dtype, node.value)
            case Select(condition):
                return Select(condition, parts[0], parts[1])
            case Call("if_then_else", (condition, _, _)):
                return replace(node, args=(condition, parts[0], parts[1]), dtype=dtype)
        return cast(dtype, node)

    def chosen(node: Any) -> tuple[Expr, ...]:
        match node:
            case Select(_, a, b) | Call("if_then_else", (_, a, b)):
                return a, b
        return ()

    return fold(term, rule, chosen)
