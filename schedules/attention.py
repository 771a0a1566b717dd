"""Attention: values weighted by the softmax of the scores of queries and keys.

Queries are processed in groups. The data of a group is stored key by key with the group's queries
as the contiguous axis. The maximum of a query thus stays in one lane, and both products read their
vectors sequentially without packing keys or values. The scores of a group stay in the second-level
cache. The exponentials are computed for one block of keys at a time, in the first-level cache,
immediately before the values of that block are weighted with them. The sums of all blocks are then
added.
"""

from __future__ import annotations

from math import e, inf, log2, sqrt
from pathlib import Path

from tecomp import Target, te
from tecomp.schedules.common import Size, wide_type
from tecomp.schedules.tiling.register_blocking import (
    RegisterTile,
    balanced_block_size,
    core_of,
    fill_registers,
    register_tile,
    transpose_squares,
)

_GROUP = 16
"""Queries of a group. With a causal mask, a group reads keys up to the last one any query sees."""
_MAX_KEYS_PER_BLOCK = 128
"""Maximum keys of a block, whose exponentials stay in the first-level cache."""


def define(
    Q: te.Tensor,
    K: te.Tensor,
    V: te.Tensor,
    *,
    scale: float | None = None,
    causal: bool = False,
    name: str = "attention",
) -> te.Tensor:
    """Define `softmax(Q @ K.T * scale) @ V`.

    float16 and bfloat16 are computed in float32, and the result is rounded once.

    Args:
        Q: Queries of shape (..., m, d).
        K: Keys of shape (..., n, d).
        V: Values of shape (..., n, c).
        scale: Factor of the scores. Default: 1 / sqrt(d).
        causal: Whether a query attends only to keys up to its own position; positions are aligned
            so that the last query attends to all keys.
        name: Name of the result.

    Returns:
        A tensor of shape (..., m, c).

    Raises:
        ValueError: If `scale` is None and d is known only at call time.

    Source:
        A. Vaswani et al., "Attention Is All You Need", arXiv:1706.03762, section 3.2.1.

    >>> Q, K, V = (te.placeholder((8, 512, 64), name=x) for x in "QKV")
    >>> define(Q, K, V).shape
    (8, 512, 64)
    """
    *batch, m, depth = Q.shape
    n, width = V.shape[-2:]
    dtype = wide_type(Q.dtype)
    if scale is None:
        if not isinstance(depth, int):
            raise ValueError("attention.define: the depth is dynamic; pass scale=")
        scale = 1 / sqrt(depth)
    shift = n - m if causal else None
    # exp2 takes fewer operations than exp, so log2(e) is folded into the scale.
    scores = _scores(Q, K, te.const(scale * log2(e), dtype), shift, name)
    totals = _totals(scores, V, shift, name)

    def mean(*x: te.Expr) -> te.Expr:
        *b, i, c = x
        g, lane = i // _GROUP, i % _GROUP
        share = te.const(1, dtype) / totals(*b, g, width, lane)
        return te.cast(totals(*b, g, c, lane) * share, Q.dtype)

    return te.compute((*batch, m, width), mean, name=name)


def _scores(
    Q: te.Tensor, K: te.Tensor, factor: te.Expr, shift: Size | None, name: str
) -> te.Tensor:
    """Return the scores of all keys for each group of queries; masked scores are -inf."""
    *batch, m, depth = Q.shape
    n, dtype = K.shape[-2], factor.dtype
    shape = (*batch, (m + _GROUP - 1) // _GROUP, n, _GROUP)
    k = te.reduce_axis((0, depth), name="k")

    def query(*x: te.Expr) -> te.Expr:
        *b, g, d, lane = x
        i = g * _GROUP + lane
        return te.if_then_else(i < m, te.cast(Q(*b, i, d), dtype) * factor, te.const(0, dtype))

    queries = te.compute((*shape[:-2], depth, _GROUP), query, name=f"{name}_queries")

    def multiplied(*x: te.Expr) -> te.Expr:
        *b, g, j, lane = x
        return te.sum(te.cast(K(*b, j, k), dtype) * queries(*b, g, k, lane), axis=k)

    products = te.compute(shape, multiplied, name=f"{name}_products")

    def score(*x: te.Expr) -> te.Expr:
        *_, g, j, lane = x
        if shift is None:
            return products(*x)
        return te.Select(j <= g * _GROUP + lane + shift, products(*x), te.const(-inf, dtype))

    return te.compute(shape, score, name=f"{name}_scores")


def _totals(scores: te.Tensor, V: te.Tensor, shift: Size | None, name: str) -> te.Tensor:
    """Return the weighted sums of values for each group, followed by the sums of the weights."""
    *batch, groups, n, _ = scores.shape
    width, dtype = V.shape[-1], scores.dtype
    size = balanced_block_size(n, _MAX_KEYS_PER_BLOCK)
    parts = (n + size - 1) // size
    key, part = te.reduce_axis((0, n), name="key"), te.reduce_axis((0, parts), name="part")
    offset, weight_offset = (te.reduce_axis((0, size), name=x) for x in ("place", "again"))

    def seen(j: te.Expr, g: te.Expr) -> te.Expr:
        return j < n if shift is None else te.all(j < n, j <= g * _GROUP + (_GROUP - 1 + shift))

    peak = te.compute(
        (*batch, groups, _GROUP),
        lambda *x: te.max(scores(*x[:-1], key, x[-1]), axis=key, where=seen(key, x[-2])),
        name=f"{name}_most",
    )
    powers = te.compute(
        scores.shape, lambda *x: te.exp2(scores(*x) - peak(*x[:-2], x[-1])), name=f"{name}_powers"
    )

    def weighted(*x: te.Expr) -> te.Expr:
        *b, g, p, c, lane = x
        j = p * size + offset
        value = te.cast(V(*b, j, c), dtype) * powers(*b, g, j, lane)
        return te.sum(value, axis=offset, where=seen(j, g))

    def weight(*x: te.Expr) -> te.Expr:
        *b, g, p, lane = x
        j = p * size + weight_offset
        return te.sum(powers(*b, g, j, lane), axis=weight_offset, where=seen(j, g))

    def of_all_parts(*x: te.Expr) -> te.Expr:
        *b, g, c, lane = x
        value = te.if_then_else(c < width, sums(*b, g, part, c, lane), weights(*b, g, part, lane))
        return te.sum(value, axis=part, where=seen(part * size, g))

    sums = te.compute((*batch, groups, parts, width, _GROUP), weighted, name=f"{name}_sums")
    weights = te.compute((*batch, groups, parts, _GROUP), weight, name=f"{name}_weights")
    return te.compute((*batch, groups, width + 1, _GROUP), of_all_parts, name=f"{name}_totals")


def schedule(output: te.Tensor, target: str | Path | Target) -> te.Schedule:
    """Return a schedule for the result of `define`."""
    target = Target.of(target)
    s = te.create_schedule(output)
    queries, products, scores, peak, powers, sums, weights, totals = _stages(output)
    lanes = core_of(target).lanes(sums.dtype)
    tile = register_tile(target, sums.dtype, vectors=max(_GROUP // lanes, 1))
    *batch, i, c = s[output].op.axis
    group, i = s[output].split(i, factor=_GROUP)
    transpose_squares(s[output], i, c, lanes)
    group = s[output].fuse(*batch, group)
    s[output].parallel(group)
    for x in (totals, peak, scores, queries):
        s[x].compute_at(s[output], group)
    part = _multiply_values(s, sums, totals, tile)
    for x in (powers, weights):
        s[x].compute_at(s[totals], part)
    s[powers].vectorize(s[powers].op.axis[-1])
    for x in (peak, weights):
        _down(s, x)
    _multiply_keys(s, products, scores, tile)
    transpose_squares(s[queries], *s[queries].op.axis[-2:], lanes)
    return s


def _stages(output: te.Tensor) -> tuple[te.Tensor, ...]:
    """Return the stages in order of computation, found through the inputs of their readers."""
    (totals,) = output.op.input_tensors
    # `sums` has an axis for the columns of V, `weights` has not.
    weights, sums = sorted(totals.op.input_tensors, key=lambda x: len(x.shape))
    (powers,) = weights.op.input_tensors
    peak, scores = sorted(powers.op.input_tensors, key=lambda x: len(x.shape))
    (products,) = scores.op.input_tensors
    (queries,) = (x for x in products.op.input_tensors if x.op.input_tensors)
    return queries, products, scores, peak, powers, sums, weights, totals


def _multiply_keys(
    s: te.Schedule, products: te.Tensor, scores: te.Tensor, tile: RegisterTile
) -> None:
    """Compute the scores of a few keys, whose sums stay in registers."""
    stage = s[scores]
    rows, j = stage.split(stage.op.axis[-2], factor=tile.rows)
    stage.unroll(j)
    stage.vectorize(stage.op.axis[-1])
    s[products].set_scope("local")
    fill_registers(s, products, scores, rows)


def _multiply_values(
    s: te.Schedule, sums: te.Tensor, totals: te.Tensor, tile: RegisterTile
) -> te.IterVar:
    """Accumulate weighted values in registers for one block of keys.

    Returns:
        The loop over the blocks of keys.
    """
    stage = s[totals]
    (part,) = stage.op.reduce_axis
    *outer, c, lane = stage.op.axis
    rows, c = stage.split(c, factor=tile.rows)
    stage.reorder(*outer, part, rows, c, lane)
    stage.unroll(c)
    stage.vectorize(lane)
    s[sums].set_scope("local")
    fill_registers(s, sums, totals, rows)
    return part


def _down(s: te.Schedule, x: te.Tensor) -> None:
    """Reduce over keys, with the queries of a group as lanes."""
    stage = s[x]
    *outer, lane = stage.op.axis
    stage.reorder(*outer, *stage.op.reduce_axis, lane)
    stage.vectorize(lane)
