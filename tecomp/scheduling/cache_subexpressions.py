"""Primitives that materialize subexpressions: cache_factor, cache_terms, cache_repeated."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce as reduce_by
from operator import add, mul
from typing import Any

from tecomp.compute.access_relations import access_of
from tecomp.compute.affine_index import Affine, affine_of, axes_of
from tecomp.compute.expression_analysis import (
    ProductFactor,
    explicit_factors,
    has_term,
    match_axis_substitution,
)
from tecomp.compute.iter_var import IterKind, IterVar, make_axis
from tecomp.compute.operation import ComputeOp, Operation
from tecomp.compute.tensor import Tensor, TensorLoad
from tecomp.errors import ScheduleError, safe_repr, safe_str
from tecomp.ir.nodes.expr import (
    Binary,
    Call,
    Cast,
    Const,
    Expr,
    Var,
    as_expr,
    cast,
    const,
    is_const,
)
from tecomp.ir.nodes.structural_equality import structural_equal
from tecomp.ir.traversal.rewrite import children, nodes_of, substitute, top_down, walk
from tecomp.scheduling.cache_stages import check_plain_reduction, redirect_readers, with_body
from tecomp.scheduling.compute_location import check_loops, check_scope
from tecomp.scheduling.state import ScheduleState, StageState, initial_stage, is_map


def cache_factor(
    state: ScheduleState, tensor: Tensor, factors: Sequence[int], scope: str
) -> tuple[ScheduleState, Tensor]:
    """Hoist a product of factors out of the terms of a reduction into a stage of its own.

    See `Schedule.cache_factor`.

    Returns:
        The new state and the product of the factors.
    """
    stage = state.stage(tensor.op)
    where = f"s.cache_factor({stage.name}, {safe_repr(list(factors))}, {safe_repr(scope)})"
    check_scope(scope, where)
    reduce = check_plain_reduction(
        stage, where, "only the factors of unconditionally computed terms can be cached")
    present = explicit_factors(reduce.source[0])
    chosen = sorted(set(factors))
    if not chosen or len(chosen) >= len(present) or not all(0 <= k < len(present) for k in chosen):
        raise ScheduleError(
            "{where}: the terms have {every_count} factors; select some of 0 to {last}, but not "
            "all",
            kind="unknown-loop", where=where, every_count=len(present), last=len(present) - 1,
        )
    value = _product_of_factors([present[k] for k in chosen])
    sums = sums_of(value)
    if not sums:
        raise ScheduleError(
            "{where}: `{value}` does not depend on any axis, so there is nothing to cache",
            kind="pattern-mismatch", where=where, value=value,
        )
    cached = stage_of(stage, value, sums, f"{stage.name}_factor")
    element = TensorLoad(cached, tuple(axis_sum.index for axis_sum in sums), stage.compute.location)
    remaining = [
        ProductFactor(element, divides=False) if k == chosen[0] else factor
        for k, factor in enumerate(present) if k == chosen[0] or k not in chosen
    ]
    state = state.insert(
        initial_stage(cached.op, is_output=False, scope=scope), before=stage.key)
    body = replace(reduce, source=(_product_of_factors(remaining),))
    state = state.redefine(stage, with_body(stage.compute, (body,)))
    return redirect_readers(state, state.stage(stage.key)), cached


@dataclass(frozen=True, slots=True)
class Sum:
    """Sum of axes that becomes one axis of the new stage.

    Attributes:
        axes: Axes of the reduction or of its result, each with its coefficient.
    """

    axes: tuple[tuple[IterVar, int], ...]

    @property
    def low(self) -> Expr:
        """Minimum of the sum."""
        return reduce_by(add, [as_expr(axis.low) * step for axis, step in self.axes])

    @property
    def index(self) -> Expr:
        """Index along the axis of the new stage: the sum minus its minimum."""
        offsets = [axis if is_const(axis.dom.min, 0) else axis - axis.low for axis, _ in self.axes]
        return reduce_by(add, [
            offset if step == 1 else offset * step
            for offset, (_, step) in zip(offsets, self.axes, strict=True)
        ])

    def axis(self) -> IterVar:
        """Return a new axis that covers all values of the sum, starting from 0."""
        name = self.axes[-1][0].name
        if len(self.axes) == 1:
            return make_axis(name, 0, self.axes[0][0].extent, IterKind.DATA)
        upper = sum(step * (_number(axis) - 1) for axis, step in self.axes)
        return make_axis(name, 0, upper + 1, IterKind.DATA)

    def instead(self, value: Expr, axis: IterVar) -> Expr:
        """Return `value` with `axis` in place of this sum and of its integer multiples."""
        index = axis if is_const(self.low, 0) else axis + self.low
        if len(self.axes) == 1:
            return substitute(value, {self.axes[0][0]: index})

        unit_axis = next(summand for summand, step in self.axes if step == 1)

        def rule(node: object) -> Expr | None:
            if not isinstance(node, Binary) or not node.dtype.is_integer:
                return None
            found = affine_of(node)
            times = found.coefficient(unit_axis)
            if not times or any(found.coefficient(a) != times * step for a, step in self.axes):
                return None
            summands = {summand for summand, _ in self.axes}
            others = [(term, step) for term, step in found.terms if term not in summands]
            constant = [] if found.const == 0 else [const(found.const, node.dtype)]
            terms = [(cast(node.dtype, term), step) for term, step in [(index, times), *others]]
            return reduce_by(add, [*(x if n == 1 else x * n for x, n in terms), *constant])

        return top_down(value, rule)


def _product_of_factors(factors: Sequence[ProductFactor]) -> Expr:
    """Return the product of the multiplying factors divided by the product of the dividing ones."""
    multipliers, divisors = (
        [f.value for f in factors if f.divides is divides] for divides in (False, True)
    )
    product = reduce_by(mul, multipliers) if multipliers else const(1, divisors[0].dtype)
    return product / reduce_by(mul, divisors) if divisors else product


def sums_of(value: Expr) -> list[Sum]:
    """Return the axes of the new stage, in index order of the load with the most axes.

    Axes that this load does not index come first.
    """
    value_axes = axes_of(value)
    loads = nodes_of(TensorLoad, value)
    main = max(loads, key=lambda load: len(axes_of(load)), default=None)
    found = [] if main is None else [
        axis_sum for index in access_of(main).index for axis_sum in _sums_of(index, value)
    ]
    covered = [axis for axis_sum in found for axis, _ in axis_sum.axes]
    if len(set(covered)) < len(covered):
        found, covered = [], []
    uncovered = [Sum(((axis, 1),)) for axis in value_axes if axis not in covered]
    return [*uncovered, *found]


def _sums_of(index: Affine, value: Expr) -> list[Sum]:
    """Return one sum for all axes of an index if `value` depends only on it, else one per axis."""
    separate = [Sum(((axis, 1),)) for axis in index.axes]
    axes = tuple((axis, index.coefficient(axis) or 0) for axis in index.axes)
    if not index.is_window or not _is_dense(axes):
        return separate
    combined = Sum(axes)
    remaining = axes_of(combined.instead(value, combined.axis()))
    return separate if any(axis in remaining for axis, _ in axes) else [combined]


def _is_dense(axes: Sequence[tuple[IterVar, int]]) -> bool:
    """Return whether the weighted sum of the axes takes every integer up to its maximum."""
    upper = 0
    for axis, step in sorted(axes, key=lambda term: term[1]):
        if not isinstance(axis.extent, int) or axis.extent < 1 or not 1 <= step <= upper + 1:
            return False
        upper += step * (axis.extent - 1)
    return any(step == 1 for _, step in axes)


def _number(axis: IterVar) -> int:
    assert isinstance(axis.extent, int)
    return axis.extent


def stage_of(stage: StageState, value: Expr, sums: Sequence[Sum], name: str) -> Tensor:
    """Return the tensor of a new stage that computes `value`, with one axis for each sum."""
    axes = tuple(axis_sum.axis() for axis_sum in sums)
    body = value
    for axis_sum, axis in zip(sums, axes, strict=True):
        body = axis_sum.instead(body, axis)
    location = stage.compute.location
    op = ComputeOp(name, axes, (body,), location=location)
    return op.output(0)


def cache_repeated(
    state: ScheduleState, tensor: Tensor, axis: IterVar, scope: str
) -> tuple[ScheduleState, Tensor]:
    """Hoist the largest subexpression that is invariant along an axis into its own stage.

    See `Schedule.cache_repeated`.

    Returns:
        The new state and the hoisted subexpression, as a tensor over all other axes.
    """
    stage = state.stage(tensor.op)
    axis_name = safe_str(getattr(axis, "name", axis))
    where = f"s.cache_repeated({stage.name}, {axis_name}, {safe_repr(scope)})"
    check_scope(scope, where)
    check_loops(stage, where)
    if not is_map(stage.op) or len(stage.op.outputs) > 1:
        raise ScheduleError(
            "{where}: {stage} is not an element-wise computation; pass an element-wise stage",
            kind="pattern-mismatch", where=where, stage=stage.name,
        )
    compute = stage.compute
    others = [a for a in compute.axis if a is not axis]
    if len(others) == len(compute.axis):
        names = ", ".join(a.name for a in compute.axis)
        raise ScheduleError(
            "{where}: the axis does not belong to {stage}; its axes are {names}",
            kind="unknown-loop", where=where, stage=stage.name, names=names,
        )
    found = [node for node in walk(*compute.body, parts=_unconditional_operands)
        if _is_part(node, others)]
    if not others or not found:
        raise ScheduleError(
            "{where}: no subexpression is invariant along this axis only; do not cache along it",
            kind="pattern-mismatch", where=where,
        )
    chosen = max(found, key=lambda node: sum(1 for _ in walk(node)))
    axes = [make_axis(a.name, 0, a.extent, IterKind.DATA) for a in others]
    mapping: dict[Var, Expr] = dict(zip(others, axes, strict=True))
    op = ComputeOp(
        f"{stage.name}_repeated", tuple(axes), (substitute(chosen, mapping),),
        location=compute.location,
    )
    element = TensorLoad(op.output(0), tuple(others), compute.location)
    state = state.insert(initial_stage(op, is_output=False, scope=scope), before=stage.key)
    state = state.redefine(stage, compute.rewritten(lambda value: top_down(
        value, lambda node: element if type(node) is type(chosen) and structural_equal(node, chosen)
        else None
    )))
    return redirect_readers(state, state.stage(stage.key)), op.output(0)


def _unconditional_operands(node: Any) -> Sequence[Any]:
    """Return the operands that are evaluated unconditionally, without the indices of loads."""
    if isinstance(node, TensorLoad):
        return ()
    return node.args[:1] if _is_guarding(node) else children(node)


def _is_guarding(node: Any) -> bool:
    """Return whether operands of a node are evaluated conditionally."""
    return isinstance(node, Call) and node.name == "if_then_else"


def _is_part(node: Any, axes: Sequence[IterVar]) -> bool:
    """Return whether a value is computed from tensor elements and depends on exactly `axes`.

    Plain loads, casts, booleans and conditional expressions do not qualify.
    """
    if not isinstance(node, Expr) or isinstance(node, TensorLoad | Const | Var | Cast):
        return False
    reads_tensor = any(isinstance(part, TensorLoad) for part
        in walk(node, parts=_unconditional_operands))
    is_value = reads_tensor and not _is_guarding(node) and not node.dtype.is_bool
    return is_value and set(axes_of(node)) == set(axes)


def cache_terms(
    state: ScheduleState, tensor: Tensor, scope: str, readers: Sequence[Operation]
) -> tuple[ScheduleState, Tensor]:
    """Materialize the terms of a reduction in a stage that other stages can read too.

    See `Schedule.cache_terms`.

    Returns:
        The new state and the terms.
    """
    stage = state.stage(tensor.op)
    where = f"s.cache_terms({stage.name}, {safe_repr(scope)})"
    check_scope(scope, where)
    reduce = check_plain_reduction(
        stage, where, "only unconditionally computed terms can be cached")
    term = reduce.source[0]
    sums = sums_of(term)
    if isinstance(term, TensorLoad) or not sums:
        raise ScheduleError(
            "{where}: each term is `{term}`, so there is nothing to cache; remove the call",
            kind="pattern-mismatch", where=where, term=term,
        )
    others = tuple(dict.fromkeys(state.stage(key).key for key in readers))
    for key in others:
        if not has_term(state.stage(key).compute, term):
            raise ScheduleError(
                "{where}: {state} does not compute `{term}` over axes of the same extents; remove "
                "it from the readers",
                kind="pattern-mismatch", where=where, state=state.stage(key).name, term=term,
            )
    cached = stage_of(stage, term, sums, f"{stage.name}_terms")
    reader_keys = {stage.key, *others}
    first = next(entry.key for entry in state if entry.key in reader_keys)
    state = state.insert(initial_stage(cached.op, is_output=False, scope=scope), before=first)
    for key in (stage.key, *others):
        reader = state.stage(key)
        state = state.redefine(reader, reader.compute.rewritten(
            lambda value: top_down(value, lambda node: _element(node, term, cached, sums))))
    for key in (stage.key, *others):
        state = redirect_readers(state, state.stage(key))
    return state, cached


def _element(node: object, term: Expr, cached: Tensor, sums: Sequence[Sum]) -> Expr | None:
    """Return the load from the new stage that replaces a value, or None if it is not the term."""
    axes = match_axis_substitution(node, term)
    if axes is None or not isinstance(node, Expr):
        return None
    indices = tuple(substitute(axis_sum.index, axes) for axis_sum in sums)
    location = next(part.location for part in nodes_of(TensorLoad, node))
    return TensorLoad(cached, indices, location)
