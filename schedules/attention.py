"""Attention: rows of values, weighted by the softmax of what queries and keys have in common.

For a block of queries, all scores are kept in the second cache. They are stored key by key, so that
a vector holds the scores of several queries for one key: then the maximum and the sum of a query
stay in a lane, and both products read their vectors in order, without packing keys or values.
"""

from __future__ import annotations

from math import sqrt

from tecomp import Target, te
from tecomp.schedules.fold import one
from tecomp.schedules.tiles import (
    RegisterTile,
    ceil_div,
    core_of,
    fill_registers,
    product,
    register_tile,
    walk_squares,
    walk_tiles,
)

_GROUP = 64
"""Queries that look at the same keys, where later keys are hidden; those beyond get weight 0."""
_VECTORS = 4
"""Vectors of maxima or sums that are under way at once."""
_KEYS_AT_ONCE = 256
"""Keys whose values stay in the first caches while they are added up."""


def define(
    Q: te.Tensor,
    K: te.Tensor,
    V: te.Tensor,
    *,
    scale: float | None = None,
    causal: bool = False,
    name: str = "attention",
) -> te.Tensor:
    """`softmax(Q @ K.T * scale) @ V`.

    Args:
        Q: queries, shape (..., m, d).
        K: keys, shape (..., n, d).
        V: values, shape (..., n, c).
        scale: of the scores; 1 / sqrt(d) if None.
        causal: whether a query sees only the keys up to its own place, the last query all of them.
        name: of the result.

    Returns:
        Shape (..., m, c).

    Source:
        A. Vaswani et al., "Attention Is All You Need", arXiv:1706.03762, section 3.2.1.

    >>> Q, K, V = (te.placeholder((8, 512, 64), name=x) for x in "QKV")
    >>> define(Q, K, V).shape
    (8, 512, 64)
    """
    *batch, m, depth = Q.shape
    n, width = V.shape[-2:]
    dtype = Q.dtype
    if scale is None:
        if not isinstance(depth, int):
            raise ValueError("attention.define: the depth is known at the call only; give scale=")
        scale = 1 / sqrt(depth)
    factor = te.const(scale, dtype)
    k = te.reduce_axis((0, depth), name="k")
    runs = [te.reduce_axis((0, n), name=f"key{step}") for step in range(3)]

    def seen(value: te.Expr, j: te.Expr, i: te.Expr, other: te.Expr) -> te.Expr:
        return te.Select(j <= i + (n - m), value, other) if causal else value

    def in_group(j: te.Expr, i: te.Expr) -> te.Expr | None:
        return j <= i // _GROUP * _GROUP + (_GROUP - 1 + n - m) if causal else None

    queries = te.compute(
        (*batch, depth, m), lambda *x: Q(*x[:-2], x[-1], x[-2]) * factor, name=f"{name}_queries"
    )
    scores = te.compute(
        (*batch, n, m),
        lambda *x: te.sum(K(*x[:-2], x[-2], k) * queries(*x[:-2], k, x[-1]), axis=k),
        name=f"{name}_scores",
    )
    most = te.compute(
        (*batch, m),
        lambda *x: te.max(
            seen(scores(*x[:-1], runs[0], x[-1]), runs[0], x[-1], te.min_value(dtype)),
            axis=runs[0], where=in_group(runs[0], x[-1]),
        ),
        name=f"{name}_most",
    )
    powers = te.compute(
        (*batch, n, m),
        lambda *x: seen(
            te.exp(scores(*x) - most(*x[:-2], x[-1])), x[-2], x[-1], te.const(0, dtype)
        ),
        name=f"{name}_powers",
    )
    total = te.compute(
        (*batch, m),
        lambda *x: te.sum(
            powers(*x[:-1], runs[1], x[-1]), axis=runs[1], where=in_group(runs[1], x[-1])
        ),
        name=f"{name}_total",
    )
    sums = te.compute(
        (*batch, width, m),
        lambda *x: te.sum(
            V(*x[:-2], runs[2], x[-2]) * powers(*x[:-2], runs[2], x[-1]),
            axis=runs[2], where=in_group(runs[2], x[-1]),
        ),
        name=f"{name}_sums",
    )
    share = te.compute(
        (*batch, m), lambda *x: te.const(1, dtype) / total(*x), name=f"{name}_share"
    )
    return te.compute(
        (*batch, m, width),
        lambda *x: sums(*x[:-2], x[-1], x[-2]) * share(*x[:-1]),
        name=name,
    )


def schedule(output: te.Tensor, target: Target) -> te.Schedule:
    """A schedule for the result of `define`."""
    s = te.create_schedule(output)
    queries, scores, most, powers, total, share, sums = (
        s.tensor(f"{output.name}_{part}")
        for part in ("queries", "scores", "most", "powers", "total", "share", "sums")
    )
    tile = register_tile(target, output.dtype)
    *batch, i, c = s[output].op.axis
    block, i = s[output].split(i, factor=_block(output, scores, tile.columns, target))
    walk_squares(s[output], i, c, tile.lanes)
    block = s[output].fuse(*batch, block)
    s[output].parallel(block)
    _multiply_values(s, sums, output, block, tile)
    for x in (total, most):
        s[x].compute_at(s[output], block)
        _down_columns(s, x, tile)
    for x in (share, powers):
        s[x].compute_at(s[output], block)
        _, lane = s[x].split(s[x].op.axis[-1], factor=tile.columns)
        s[x].vectorize(lane)
    s[queries].compute_at(s[output], block)
    walk_squares(s[queries], *s[queries].op.axis[-2:], tile.lanes)
    s[scores].compute_at(s[output], block)
    _multiply_keys(s, scores, tile)
    return s


def _block(output: te.Tensor, scores: te.Tensor, columns: int, target: Target) -> int:
    """How many queries at a time: their scores and powers take half of the second cache."""
    n, (*batch, m, _) = scores.shape[-2], output.shape
    core = core_of(target)
    second = core.cache_bytes[min(1, len(core.cache_bytes) - 1)]
    most = _GROUP
    if isinstance(n, int):
        most = min(second // 4 // (max(n, 1) * output.dtype.bytes), _GROUP)
    blocks = product(batch)
    if isinstance(m, int) and isinstance(blocks, int):
        most = min(most, ceil_div(m * blocks, core.count))
    size = columns
    while 2 * size <= most:
        size *= 2
    return size


def _multiply_keys(s: te.Schedule, scores: te.Tensor, tile: RegisterTile) -> None:
    """Scores of a few keys for the queries, whose sums stay in registers."""
    sums = s.cache_write(scores, "local")
    assert isinstance(sums, te.Tensor)
    fill_registers(s, sums, scores, _walk_tiles(s, scores, tile))


def _multiply_values(
    s: te.Schedule, sums: te.Tensor, output: te.Tensor, block: te.IterVar, tile: RegisterTile
) -> None:
    """Sums of weighted values for the queries, over a part of the keys at a time."""
    s[sums].compute_at(s[output], block)
    (key,) = s[sums].op.reduce_axis
    outer, _ = s[sums].split(key, factor=_KEYS_AT_ONCE)
    part = one(s.rfactor(sums, outer))
    s[part].set_scope("local")
    fill_registers(s, part, sums, _walk_tiles(s, sums, tile))


def _walk_tiles(s: te.Schedule, driver: te.Tensor, tile: RegisterTile) -> te.IterVar:
    """Loops over tiles of rows and columns, the parts of a sum around them."""
    stage = s[driver]
    *batch, i, j = stage.op.axis
    columns: te.IterVar
    rows, columns, inside = walk_tiles(stage, i, j, tile)
    stage.reorder(*batch, *stage.op.reduce_axis, rows, columns, *inside)
    return columns


def _down_columns(s: te.Schedule, x: te.Tensor, tile: RegisterTile) -> None:
    """Reduce over the keys, for the queries of a few vectors at once: one waits for the other."""
    several, lane = s[x].split(s[x].op.axis[-1], factor=_VECTORS * tile.lanes)
    vector, lane = s[x].split(lane, factor=tile.lanes)
    s[x].unroll(vector)
    s[x].vectorize(lane)
    held = s.cache_write(x, "local")
    assert isinstance(held, te.Tensor)
    stage = s[held]
    stage.compute_at(s[x], several)
    *outer, i = stage.op.axis
    vector, lane = stage.split(i, factor=tile.lanes)
    stage.reorder(*outer, *stage.op.reduce_axis, vector, lane)
    stage.unroll(vector)
    stage.vectorize(lane)
