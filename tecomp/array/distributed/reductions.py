"""Reductions and cumulative operations of distributed arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate
from math import prod
from typing import Any

import numpy as np

from tecomp.array.distributed.message_queue import arriving, before, settle, told, told_later
from tecomp.array.distributed.partitions import Cut, of_cuts
from tecomp.array.distributed.sharding_rules import (
    by_cuts,
    cuts,
    in_one_piece,
    in_pieces,
    in_rows,
    number,
    on_all_elements,
    rank_of,
    rule,
    ruled,
    team_number,
)
from tecomp.array.graph.evaluate import data_of, evaluate
from tecomp.array.graph.node import Node, Shared, leaf, local_type, record
from tecomp.dist.partition.partition import Partition
from tecomp.dist.partition.placements import Partial, Placement
from tecomp.dist.partition.redistribution import redistribution
from tecomp.ptensor.operation import Operation
from tecomp.ptensor.operations.elementwise import FUNCTIONS, Cast
from tecomp.ptensor.operations.manipulation import Squeeze, Take, TakeAlongAxis
from tecomp.ptensor.operations.reduction import (
    CountNonzero,
    Cumulative,
    FindIndex,
    Reduce,
    TruthTest,
)
from tecomp.ptensor.types import FLOATS, PTensorType, axes_of, numpy_dtype


@rule.register(TruthTest)
@rule.register(CountNonzero)
def _(op: TruthTest | CountNonzero, xs: Sequence[Shared], type: PTensorType) -> Shared:
    how = op.kind if isinstance(op, TruthTest) else "sum"
    return _combined(op, how, in_pieces(xs[0]), type, op.axis, op.keepdims)


@rule.register(Reduce)
def _(op: Reduce, xs: Sequence[Shared], type: PTensorType) -> Shared:
    x = in_pieces(xs[0])
    axes = axes_of(op.axis, x.type.rank, op.kind)
    reduced = [cut for cut in cuts(x) if cut.axis in axes]
    if op.kind in ("max", "min", "prod", "sum") or not reduced:
        return _combined(op, op.kind, x, type, op.axis, op.keepdims)
    if op.kind == "mean":
        total = _combined(replace(op, kind="sum"), "sum", x, type, op.axis, op.keepdims)
        count = prod(x.type.shape[axis] for axis in axes)
        part = record(FUNCTIONS["divide"], total.part, _number(count, total.part.type))
        return Shared(type, part, total.partition, total.ticket)
    if not x.type.size:
        return on_all_elements(op, xs, type)
    if x.partition.mesh.ndim > 1:
        return ruled(op, [in_rows(x)], type)
    return _spread(op, x, type, axes, reduced[0])


def _number(value: float, type: PTensorType) -> Node:
    return leaf(np.array(value, numpy_dtype(type.dtype)), type.like(()))


def _combined(
    op: Any, how: str, x: Shared, type: PTensorType, axis: Any, keepdims: bool
) -> Shared:
    """Reduce shards locally, and then across the ranks along the cut axes."""
    axes = axes_of(axis, x.type.rank, op.where)
    mesh, found = x.partition.mesh, cuts(x)
    kept = [
        cut._replace(axis=cut.axis - (0 if keepdims else sum(k < cut.axis for k in axes)))
        for cut in found if cut.axis not in axes
    ]
    part = _of_part(op, how, x, type, axes, kept)
    target = of_cuts(type, mesh, kept)
    if len(kept) == len(found):
        return Shared(type, part, target, x.ticket)
    placed: list[Placement] = list(target.placements)
    for cut in found:
        if cut.axis in axes:
            placed[cut.mesh_axis] = Partial(how)
    partial = Partition(type.shape, target.dtype, mesh, placed)
    return arriving(type, target, part, redistribution(partial, target), x.ticket)


def _of_part(
    op: Operation, how: str, x: Shared, type: PTensorType, axes: Sequence[int], kept: Sequence[Cut]
) -> Node:
    """Reduce the local shard; an empty shard gives the neutral element."""
    shape = x.part.type.shape
    if how in ("max", "min") and any(shape[axis] == 0 for axis in axes):
        target = of_cuts(type, x.partition.mesh, kept)
        extents = target.local_shape(rank_of(x))
        return leaf(np.full(extents, outermost(how, type.dtype)), local_type(type, extents))
    return record(op, x.part)


def outermost(how: str, dtype: str) -> Any:
    """Return the neutral element of `max` or `min` for a dtype."""
    if dtype in FLOATS:
        return numpy_dtype(dtype).type(-np.inf if how == "max" else np.inf)
    info = np.iinfo(dtype)
    return numpy_dtype(dtype).type(info.min if how == "max" else info.max)


def _spread(
    op: Reduce, x: Shared, type: PTensorType, axes: tuple[int, ...], cut: Cut
) -> Shared:
    """Combine local means and variances, computed in one pass and sent in one message."""
    whole = prod(x.type.shape[axis] for axis in axes)
    each = prod(x.type.shape[axis] for axis in axes if axis != cut.axis)
    counts = [size * each for size in cut.sizes]
    parts = _moments(op, x, axes, counts[number(x, cut)])
    (means, first), (variances, second) = [told_later(type, part, x.ticket) for part in parts]
    filled = tuple([k for k, n in enumerate(counts) if n])
    if len(filled) < len(counts):
        rows = leaf(np.array(filled), local_type(type, ()).like((len(filled),), "int64"))
        means, variances = [record(Take((0,), 0), node, rows) for node in (means, variances)]
    weights = np.array([n for n in counts if n], numpy_dtype(type.dtype))
    weights = weights.reshape(-1, *(1,) * len(type.shape))
    weight = leaf(weights, local_type(type, weights.shape))
    part = _merged(op, type, means, variances, weight, whole)
    return Shared(type, part, of_cuts(type, x.partition.mesh, ()), max(first, second))


def _moments(op: Reduce, x: Shared, axes: tuple[int, ...], count: int) -> list[Node]:
    """Return mean and variance of the shard; arbitrary values if it is empty."""
    ops = [Reduce(kind, axes, op.keepdims) for kind in ("mean", "var")]
    if count:
        return [record(one, x.part) for one in ops]
    types = [one.infer(x.part.type) for one in ops]
    return [leaf(np.zeros(type.shape, numpy_dtype(type.dtype)), type) for type in types]


def _merged(
    op: Reduce, type: PTensorType, means: Node, variances: Node, weight: Node, count: int
) -> Node:
    """Return the total variance, from the means and variances of shards.

    Source:
        Chan, Golub and LeVeque, "Algorithms for computing the sample variance", 1983.
    """
    call, first = FUNCTIONS, (0,)
    place = local_type(type, ())
    rows = Reduce("sum", first)
    mean = record(rows, record(call["multiply"], means, weight))
    mean = record(call["divide"], mean, _number(count, mean.type))
    off = record(call["square"], record(call["abs"], record(call["subtract"], means, mean)))
    spread = record(call["add"], record(call["abs"], variances), off)
    total = record(rows, record(call["multiply"], spread, weight))
    rest = max(count - op.correction, 0)
    result = record(call["divide"], total, _number(rest if count else 0, place))
    if rest == 0:
        nan = _number(float("nan"), place)
        result = record(call["add"], result, nan)
    return record(call["sqrt"], result) if op.kind == "std" else record(Cast(type.dtype), result)


@rule.register
def _(op: FindIndex, xs: Sequence[Shared], type: PTensorType) -> Shared:
    x = in_pieces(xs[0])
    axes = axes_of(op.axis, x.type.rank, op.kind)
    found = [cut for cut in cuts(x) if cut.axis in axes]
    if not found:
        return _combined(op, "sum", x, type, op.axis, op.keepdims)
    leads = op.axis is not None or prod(x.type.shape[: found[0].axis]) == 1
    if x.partition.mesh.ndim > 1 or not leads:
        return ruled(op, [in_rows(x)], type)
    return _first(op, x, type, found[0])


def _first(op: FindIndex, x: Shared, type: PTensorType, cut: Cut) -> Shared:
    """Return the first extreme value of the shards, in rank order."""
    axes = None if op.axis is None else (op.axis,)
    behind = 1 if op.axis is not None else prod(x.type.shape[cut.axis + 1 :])
    values = np.empty((0, *type.shape), numpy_dtype(x.type.dtype))
    places = np.empty((0, *type.shape), np.int64)
    settle((x,))
    if x.part.type.shape[cut.axis]:
        value = record(Reduce(op.kind[3:], axes, op.keepdims), x.part)
        place = record(op, x.part)
        evaluate((value, place))
        values = data_of(value)[None]
        places = data_of(place)[None] + cut.ends[rank_of(x)] * behind
    team = team_number(x)
    values, places = told(team, values), told(team, places)
    own = local_type(x.type, values.shape)
    winner = record(FindIndex(op.kind, 0, True), leaf(values, own))
    chosen = record(TakeAlongAxis(0), leaf(places, own.like(own.shape, "int64")), winner)
    return by_cuts(type, record(Squeeze((0,)), chosen), x.partition.mesh, ())


@rule.register
def _(op: Cumulative, xs: Sequence[Shared], type: PTensorType) -> Shared:
    x = in_pieces(xs[0])
    mesh = x.partition.mesh
    found = next((cut for cut in cuts(x) if cut.axis == op.axis), None)
    if found is None:
        return by_cuts(type, record(op, x.part), mesh, cuts(x))
    if mesh.ndim > 1:
        return ruled(op, [in_rows(x)], type)
    settle((x,))
    # The initial value is the first element of the result, on the first rank.
    leads = op.include_initial and number(x, found) == 0
    part = record(Cumulative(op.kind, op.axis, leads, op.dtype), x.part)
    total = record(Reduce(op.kind, (op.axis,), True, 0, type.dtype), x.part)
    earlier = before(team_number(x), in_one_piece(total), op.kind)
    if earlier is not None:
        other = leaf(earlier, local_type(type, earlier.shape))
        part = record(FUNCTIONS["add" if op.kind == "sum" else "multiply"], part, other)
    sizes = list(found.sizes)
    sizes[0] += op.include_initial
    return by_cuts(type, part, mesh, [found._replace(ends=(0, *accumulate(sizes)))])
