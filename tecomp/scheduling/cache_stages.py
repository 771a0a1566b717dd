"""Primitives that insert stages: cache_read, cache_write, rfactor."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tecomp.compute.affine_index import affine_of, axes_of
from tecomp.compute.expression_analysis import in_order
from tecomp.compute.extern import ExternOp
from tecomp.compute.iter_var import IterKind, IterVar, make_axis
from tecomp.compute.operation import ComputeOp, Operation
from tecomp.compute.reduce import CommReducer, Reduce
from tecomp.compute.scan import ScanOp
from tecomp.compute.tensor import Tensor, TensorLoad
from tecomp.compute.tensor_compute import TensorComputeOp
from tecomp.errors import ScheduleError, safe_repr, safe_str
from tecomp.ir.nodes.argument_checks import as_int
from tecomp.ir.nodes.dtype import BOOL
from tecomp.ir.nodes.expr import (
    Const,
    Expr,
    Var,
    const,
    if_then_else,
    index_value,
    is_const,
    logical_and,
)
from tecomp.ir.nodes.stmt import Range
from tecomp.ir.traversal.rewrite import bottom_up, contains, substitute
from tecomp.scheduling.compute_location import check_loops, check_scope, direct_consumers
from tecomp.scheduling.loop_relations import Iterations, iterations
from tecomp.scheduling.state import (
    ComputedAt,
    Fuse,
    LayoutTransform,
    Relation,
    ScheduleState,
    Split,
    StageState,
    drop_annotations,
    initial_stage,
    is_reduction,
    leaf_position,
)


def cache_read(
    state: ScheduleState, tensor: Tensor, scope: str, readers: Sequence[Operation]
) -> tuple[ScheduleState, Tensor]:
    """Insert a stage that copies a tensor into memory `scope`, and redirect `readers` to it.

    See `Schedule.cache_read`.

    Returns:
        The new state and the copy.
    """
    source = state.stage(tensor.op)
    check_scope(scope, f"s.cache_read({source.name})")
    where = f"s.cache_read({source.name}, {safe_repr(scope)})"
    if not readers:
        raise ScheduleError(
            "{where}: no readers given; pass at least one stage that reads the copy",
            kind="missing-input", where=where,
        )
    for key in readers:
        reader = state.stage(key)
        if not any(_is_output_of(state, t, source, tensor) for t in reader.op.input_tensors):
            names = ", ".join(s.name for s in direct_consumers(state, source)) or "nothing"
            raise ScheduleError(
                "{where}: {reader} does not read {source}; readers of {source}: {names}",
                kind="no-consumer", where=where, reader=reader.name, source=source.name,
                names=names,
            )
    name = f"{source.name}.{scope}"
    axes = tuple(
        IterVar(f"ax{k}", dom=Range(Const(0), index_value(extent)), kind=IterKind.DATA)
        for k, extent in enumerate(tensor.shape)
    )
    load = TensorLoad(tensor, axes, tensor.op.location)
    copy = ComputeOp(name, axes, (load,), location=tensor.op.location)
    cached = copy.output(0)
    after = next(k for k, s in enumerate(state.stages) if s.key is source.key) + 1
    stages = (
        *state.stages[:after],
        initial_stage(copy, is_output=False, scope=scope),
        *state.stages[after:],
    )
    state = replace(state, stages=stages)
    for key in dict.fromkeys(readers):
        reader = state.stage(key)
        state = state.redefine(reader, _redirect_loads(reader.compute, state, tensor, cached))
    return state, cached


def cache_write(
    state: ScheduleState, target: Tensor | Sequence[Tensor], scope: str
) -> tuple[ScheduleState, Tensor | tuple[Tensor, ...]]:
    """Compute a stage into memory `scope`, and copy the result to the original tensor.

    See `Schedule.cache_write`.

    Returns:
        The new state, and the cache or a tuple with one cache per output if a list was given.
    """
    tensors = [target] if isinstance(target, Tensor) else list(target)
    stage = state.stage(tensors[0].op)
    check_scope(scope, f"s.cache_write({stage.name})")
    where = f"s.cache_write({stage.name}, {safe_repr(scope)})"
    _check_cached(state, stage, tensors, where)
    compute = stage.compute
    reset = _begun_anew(state, stage, where)
    name = f"{stage.name}.{scope}"
    define = _cached_calls if isinstance(compute, TensorComputeOp) else _cached_loops
    cache_op, indices = define(stage, name)
    caches = cache_op.outputs
    copies = tuple([TensorLoad(cache, indices, compute.location) for cache in caches])
    state = state.insert(initial_stage(cache_op, is_output=False, scope=scope), before=stage.key)
    state = state.redefine(reset, with_body(compute, copies))
    return state, caches[0] if isinstance(target, Tensor) else caches


def _cached_loops(stage: StageState, name: str) -> tuple[ComputeOp, tuple[Expr, ...]]:
    """Return the cache operation with one axis per data loop, and its indices for an element."""
    compute = stage.compute
    leaves = [leaf for leaf in stage.leaves if not is_reduction(leaf)]
    roots = set(compute.axis)
    axes = {
        leaf: _for_cache(leaf)
        if leaf in roots else make_axis(f"{leaf.name}.c", 0, leaf.extent, IterKind.DATA)
        for leaf in leaves
    }
    relations = [r for r in stage.relations if not _is_reduction_relation(r)]
    found = iterations(compute.axis, relations, {
        leaf: index_value(axis) - leaf.dom.min for leaf, axis in axes.items()
    })
    body = tuple([_at_iterations(value, found) for value in compute.body])
    cached = ComputeOp(
        name, tuple(axes.values()), body, compute.tag, compute.attrs, compute.location)
    return cached, tuple([found.loops[leaf] for leaf in leaves])


def _cached_calls(stage: StageState, name: str) -> tuple[ComputeOp, tuple[Expr, ...]]:
    """Return the same as `_cached_loops` for a stage computed by an intrinsic, over its axes."""
    compute = stage.compute
    axes = {axis: _for_cache(axis) for axis in compute.axis}
    rewritten = compute.rewritten(lambda value: substitute(value, axes))
    return replace(rewritten, name=name, axis=tuple(axes.values())), compute.axis


def _for_cache(axis: IterVar) -> IterVar:
    return IterVar(f"{axis.name}.c", axis.dtype, dom=axis.dom, kind=IterKind.DATA)


def _check_cached(
    state: ScheduleState, stage: StageState, tensors: Sequence[Tensor], where: str
) -> None:
    """Raise if `cache_write` does not support the stage.

    Raises:
        ScheduleError: If `tensors` are not all outputs of `stage`, the stage is a scan or a
            `te.extern`, a reduction axis was split or fused, or any axis was split or fused in a
            stage that calls an intrinsic.
    """
    compute = stage.compute
    if {state.stage(t.op).key for t in tensors} != {stage.key} or len(
        {t.value_index for t in tensors}
    ) != compute.num_outputs:
        raise ScheduleError(
            "{where}: {stage} has {num_outputs} outputs; pass all of them, and no other tensors",
            kind="count-mismatch", where=where, num_outputs=compute.num_outputs, stage=stage.name,
        )
    if isinstance(compute, ScanOp):
        raise ScheduleError(
            "{where}: {stage} is a scan, which reads its own earlier results, and cannot be "
            "cached; add a te.compute that copies the result",
            kind="pattern-mismatch", where=where, stage=stage.name,
        )
    if isinstance(compute, ExternOp):
        raise ScheduleError(
            "{where}: {stage} is a te.extern, whose statements store to it directly, and cannot be "
            "cached; add a te.compute that copies the result",
            kind="pattern-mismatch", where=where, stage=stage.name,
        )
    # The axes of an intrinsic call determine its tiles, so all loops of the call must be intact.
    required = compute.loops if isinstance(compute, TensorComputeOp) else compute.reduce_axis
    missing = [axis for axis in required if axis not in set(stage.leaves)]
    if missing:
        kind = "reduction axis" if is_reduction(missing[0]) else "axis"
        raise ScheduleError(
            "{where}: {axis_kind} {missing} was already split or fused; call cache_write first and "
            "split the axes of the cache stage",
            kind="primitive-order", where=where, axis_kind=kind, missing=missing[0].name,
        )


def _begun_anew(state: ScheduleState, stage: StageState, where: str) -> StageState:
    """Return `stage` with its loops reset to the data loops of its layout, without annotations.

    Raises:
        ScheduleError: If another stage is computed at one of its loops, or the stage is tensorized.
    """
    layouts = tuple([r for r in stage.relations if isinstance(r, LayoutTransform)])
    leaves = layouts[-1].after if layouts else stage.compute.axis
    removed = set(stage.leaves) - set(leaves)
    for other in state:
        if isinstance(other.attach, ComputedAt) and other.attach.axis in removed:
            raise ScheduleError(
                "{where}: {other} is computed at loop {axis} of {stage}, whose loops cache_write "
                "resets; call cache_write before compute_at",
                kind="primitive-order", where=where, other=other.name, axis=other.attach.axis.name,
                stage=stage.name,
            )
    if stage.tensorized is not None:
        raise ScheduleError(
            "{where}: {stage} is tensorized at {axis}, but its computation moves to the cache "
            "stage; call cache_write first and tensorize the cache stage",
            kind="primitive-order", where=where, stage=stage.name, axis=stage.tensorized.axis.name,
        )
    return drop_annotations(replace(stage, leaves=leaves, relations=layouts), *removed)


def _at_iterations(value: Expr, found: Iterations) -> Expr:
    """Rewrite a body of a stage over its loops; iterations outside the domain give 0."""
    body = substitute(value, found.axes)
    if not found.conditions:
        return body
    inside = logical_and(*found.conditions)
    if not isinstance(body, Reduce):
        return if_then_else(inside, body, const(0, body.dtype))
    init = tuple(if_then_else(inside, x, const(0, x.dtype)) for x in body.init)
    return replace(body, condition=_guard_condition(found.conditions, body.condition), init=init)


def _guard_condition(conditions: Sequence[Expr], condition: Expr) -> Expr:
    """Return `conditions` and `condition`, where loads in `condition` are guarded by the others."""
    if conditions and contains(TensorLoad, condition):
        # The condition loads elements and must not read out of bounds. `logical_and` does not
        # guard its operands, so use `if_then_else`.
        condition = if_then_else(logical_and(*conditions), condition, Const(False, BOOL))
    return logical_and(*conditions, condition)


def rfactor(
    state: ScheduleState, tensor: Tensor, axis: IterVar, factor_axis: int = 0, *, order: int
    | None = None
) -> tuple[ScheduleState, Tensor | tuple[Tensor, ...]]:
    """Factor a reduction loop into partial results, which a second reduction combines.

    See `Schedule.rfactor`.

    Returns:
        The new state, and the partial results, one tensor per output if there are several.
    """
    stage = state.stage(tensor.op)
    compute = stage.compute
    reduce, position = _checked_rfactor(stage, axis, factor_axis)
    combiner = _combiner(stage, reduce, axis, order)
    factored, loops = _factored_op(stage, compute, reduce, axis, position)
    partial = factored.outputs
    combined = make_axis(f"{axis.name}.v", 0, axis.extent, IterKind.REDUCE)
    indices = (*compute.axis[:position], combined, *compute.axis[position:])
    loads = tuple(TensorLoad(t, indices, compute.location) for t in partial)
    body = tuple(
        Reduce(
            combiner, loads, (combined,), Const(True, reduce.condition.dtype), reduce.init, k,
            invariants=reduce.invariants,
        )
        for k in range(compute.num_outputs)
    )
    data_leaves = tuple(leaf for leaf in stage.leaves if not is_reduction(leaf))
    relations = tuple(r for r in stage.relations if not _is_reduction_relation(r))
    reset = drop_annotations(
        replace(stage, leaves=(*data_leaves, combined), relations=relations),
        *(leaf for leaf in stage.leaves if is_reduction(leaf)),
    )
    first = replace(
        initial_stage(factored, is_output=False), leaves=(*factored.axis, *loops))
    state = state.insert(first, before=stage.key)
    state = state.redefine(reset, with_body(compute, body))
    return state, partial if len(partial) > 1 else partial[0]


def _checked_rfactor(stage: StageState, axis: IterVar, factor_axis: int) -> tuple[Reduce, int]:
    """Return the reduction of `stage` and the non-negative position of the new axis.

    Raises:
        ScheduleError: If `rfactor` does not support the stage, the axis or the position.
    """
    where = f"s.rfactor({stage.name}, {safe_str(getattr(axis, 'name', axis))})"
    reduce = stage.compute.body[0]
    check_loops(stage, where)
    if not isinstance(reduce, Reduce):
        raise ScheduleError(
            "{where}: {stage} is not a reduction",
            kind="pattern-mismatch", where=where, stage=stage.name,
        )
    leaf_position(stage, axis, "rfactor")
    if not is_reduction(axis):
        raise ScheduleError(
            "{where}: {axis} is not a reduction axis",
            kind="pattern-mismatch", where=where, axis=axis.name,
        )
    if mixed := [leaf for leaf in stage.leaves if leaf in _over_data_too(stage)]:
        raise ScheduleError(
            "{where}: {mixed} was fused from data and reduction axes, so its iterations do not "
            "each belong to one partial result; call rfactor before fuse",
            kind="primitive-order", where=where, mixed=mixed[0].name,
        )
    rank = len(stage.compute.axis)
    if not isinstance(factor_axis, int) or not -rank - 1 <= factor_axis <= rank:
        raise ScheduleError(
            "{where}: factor_axis must be between {lowest} and {rank}, got {factor_axis!r}",
            kind="invalid-value", where=where, lowest=-rank - 1, rank=rank,
            factor_axis=factor_axis,
        )
    return reduce, factor_axis % (rank + 1)


def _combiner(
    stage: StageState, reduce: Reduce, axis: IterVar, order: object
) -> CommReducer:
    """Return the reducer of partial results, ordered by `order` or by an index among the values."""
    if order is not None:
        return _in_order(stage, reduce, axis, order)
    values = enumerate(reduce.source if len(reduce.source) > 1 else ())
    found = (k for k, value in values if _increases(value, reduce.axis))
    index = next(found, None)
    return reduce.combiner if index is None else in_order(reduce.combiner, index)


def _increases(value: Expr, axes: Sequence[IterVar]) -> bool:
    """Return whether a value is an integer that increases with every iteration of a reduction."""
    if not value.dtype.is_integer:
        return False
    form = affine_of(value)
    if any(not isinstance(term, Var) and set(axes_of(term)) & set(axes) for term, _ in form.terms):
        return False
    steps = dict(form.terms)
    span = 0
    for axis in reversed(axes):
        is_known = isinstance(axis.extent, int)
        if is_known and axis.extent == 1:
            continue
        step = steps.get(axis, 0)
        if step <= span or (not is_known and axis is not axes[0]):
            return False
        span += step * (axis.extent - 1) if isinstance(axis.extent, int) else 0
    return True


def _in_order(stage: StageState, reduce: Reduce, axis: IterVar, order: object) -> CommReducer:
    """Return the reducer of partial results that orders operands by value number `order`.

    Raises:
        ScheduleError: If `order` is out of range.
    """
    count, number = len(reduce.source), as_int(order)
    if number is None or not 0 <= number < count:
        raise ScheduleError(
            "s.rfactor({stage}, {axis}): order={order!r} is not the index of a reduced value of "
            "{stage}; pass 0 to {last}, or None",
            kind="invalid-value", stage=stage.name, axis=axis.name, order=order, last=count - 1,
        )
    return in_order(reduce.combiner, number)


def _from_zero(axis: IterVar) -> IterVar:
    """Return the axis itself if it starts at 0, else a new axis of the same extent from 0."""
    is_so = isinstance(axis.low, int) and axis.low == 0
    return axis if is_so else make_axis(axis.name, 0, axis.extent, IterKind.REDUCE)


def _factored_op(
    stage: StageState, compute: ComputeOp, reduce: Reduce, axis: IterVar, position: int
) -> tuple[ComputeOp, tuple[IterVar, ...]]:
    """Return the operation that computes one partial result per iteration of `axis`, and its loops.

    The loops are the reduction loops in their current order. The reduction axes are the unsplit
    axes followed by all others, as in TVM.
    """
    relations = [r for r in stage.relations if _is_reduction_relation(r)]
    leaves = [leaf for leaf in stage.leaves if is_reduction(leaf)]
    data = tuple(IterVar(a.name, dom=a.dom, kind=IterKind.DATA) for a in compute.axis)
    # Loops start at 0, also if their root axes start at another value.
    factor = make_axis(axis.name, 0, axis.extent, IterKind.DATA)
    remaining = {a: _from_zero(a) for a in leaves if a is not axis}
    loops: dict[IterVar, Expr] = {a: index_value(remaining.get(a, factor)) for a in leaves}
    found = iterations(compute.reduce_axis, relations, loops)
    values = {**dict(zip(compute.axis, data, strict=True)), **found.axes}
    condition = _guard_condition(found.conditions, substitute(reduce.condition, values))
    source = tuple(substitute(value, values) for value in reduce.source)
    invariants = tuple(substitute(value, values) for value in reduce.invariants)
    partial = replace(reduce, source=source, condition=condition, init=(), invariants=invariants)
    if remaining:
        order = [*(a for a in compute.reduce_axis if a in remaining), *remaining]
        partial_axes = tuple(dict.fromkeys(remaining[a] for a in order))
        body: tuple[Expr, ...] = tuple(
            replace(partial, axis=partial_axes, value_index=k)
            for k in range(compute.num_outputs)
        )
    else:
        body = tuple(
            if_then_else(condition, value, identity)
            for value, identity in zip(source, partial.identity, strict=True)
        )
    axes = (*data[:position], factor, *data[position:])
    name = f"{stage.name}.rf"
    op = ComputeOp(name, axes, body, compute.tag, compute.attrs, compute.location)
    return op, tuple(remaining.values())


def _over_data_too(stage: StageState) -> set[IterVar]:
    """Return the reduction loops fused with data loops, and all loops split or fused from them."""
    mixed: set[IterVar] = set()
    for relation in stage.relations:
        match relation:
            case Split(parent, outer, inner) if parent in mixed:
                mixed |= {outer, inner}
            case Fuse(parts, fused) if is_reduction(fused):
                if any(part in mixed or not is_reduction(part) for part in parts):
                    mixed.add(fused)
    return mixed


def _is_reduction_relation(relation: Relation) -> bool:
    match relation:
        case Split(parent):
            return is_reduction(parent)
        case Fuse(parts, fused):
            return bool(parts) and is_reduction(fused)
    return False


def check_plain_reduction(stage: StageState, where: str, reason: str) -> Reduce:
    """Return the reduction of a stage, if it has one value, no condition and no initial value.

    Args:
        stage: Stage of the reduction.
        where: Primitive call, for error messages.
        reason: Reason or remedy that ends the error message.

    Raises:
        ScheduleError: If the stage is not such a reduction, or calls an intrinsic.
    """
    check_loops(stage, where)
    reduce = stage.compute.body[0]
    if not isinstance(reduce, Reduce) or len(stage.compute.body) > 1 or reduce.init or (
        not is_const(reduce.condition, True)
    ):
        raise ScheduleError(
            "{where}: {stage} is not a single-output reduction without where= and init=; {reason}",
            kind="pattern-mismatch", where=where, stage=stage.name, reason=reason,
        )
    return reduce


def with_body(op: ComputeOp, body: tuple[Expr, ...]) -> ComputeOp:
    """Return `op` with another body."""
    return ComputeOp(op.name, op.axis, body, op.tag, op.attrs, op.location)


def _redirect_loads(
    op: ComputeOp, state: ScheduleState, tensor: Tensor, cached: Tensor
) -> ComputeOp:
    """Return `op` with loads of `cached` in place of loads of `tensor`."""
    return op.rewritten(lambda value: _read_instead(value, state, tensor, cached))


def redirect_readers(state: ScheduleState, stage: StageState) -> ScheduleState:
    """Redirect all direct and indirect readers of a stage to its current definition."""
    changed = {stage.key}

    def rule(node: object) -> Expr | None:
        if not isinstance(node, TensorLoad):
            return None
        source = state.find(node.tensor.op)
        if source is None or source.key not in changed:
            return None
        current = source.op.output(node.tensor.value_index)
        return TensorLoad(current, node.indices, node.location)

    for reader in state:
        sources = (state.find(x.op) for x in reader.op.input_tensors)
        if not isinstance(reader.op, ComputeOp) or not any(
            source is not None and source.key in changed for source in sources
        ):
            continue
        changed.add(reader.key)
        rewritten: ComputeOp = reader.op.rewritten(lambda value: bottom_up(value, rule))
        state = state.redefine(reader, rewritten)
    return state


def _read_instead(body: Expr, state: ScheduleState, tensor: Tensor, cached: Tensor) -> Expr:
    source = state.stage(tensor.op)

    def rule(node: object) -> Expr | None:
        if isinstance(node, TensorLoad) and _is_output_of(state, node.tensor, source, tensor):
            return TensorLoad(cached, node.indices, node.location)
        return None

    return bottom_up(body, rule)


def _is_output_of(
    state: ScheduleState, candidate: Tensor, source: StageState, tensor: Tensor
) -> bool:
    same_stage = state.find(candidate.op) is source
    return same_stage and candidate.value_index == tensor.value_index
