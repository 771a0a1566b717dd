"""Attention, rotary embeddings, and the fused operators of transformers in com.microsoft."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import sqrt
from typing import Any

import numpy as np

from tecomp import te, topi
from tecomp.onnx.layers import product
from tecomp.onnx.node import MICROSOFT, OpNode, apply, operator

Mask = Callable[[te.Expr, te.Expr, te.Expr, te.Expr], te.Expr]
"""Condition that a query attends a key: function of the batch, head, query and key."""
_MINUS_INFINITY = float("-inf")


def split_heads(x: te.Tensor, heads: int) -> te.Tensor:
    """Return (batch, length, heads * size) as (batch, heads, length, size)."""
    batch, length, width = x.shape
    return topi.transpose(topi.reshape(x, (batch, length, heads, width // heads)), (0, 2, 1, 3))


def merge_heads(x: te.Tensor) -> te.Tensor:
    """Return (batch, heads, length, size) as (batch, length, heads * size)."""
    batch, heads, length, size = x.shape
    return topi.reshape(topi.transpose(x, (0, 2, 1, 3)), (batch, length, heads * size))


def scaled_scores(q: te.Tensor, k: te.Tensor, scale: float) -> te.Tensor:
    """Return the products of queries and keys; several heads of queries may share keys."""
    batch, heads, rows, size = q.shape
    group = heads // k.shape[1]
    scaled = topi.multiply(q, te.const(scale, str(q.dtype)))
    at = te.reduce_axis((0, size), name="k")
    result: te.Tensor = te.compute(
        (batch, heads, rows, k.shape[2]),
        lambda b, h, i, j: te.sum(
            scaled(b, h, i, at) * k(b, h // group if group > 1 else h, j, at), axis=at),
        name="scores")
    return result


def weighted_values(weights: te.Tensor, v: te.Tensor) -> te.Tensor:
    """Return the sums of values with weights of (batch, heads, queries, keys)."""
    batch, heads, rows, columns = weights.shape
    group = heads // v.shape[1]
    at = te.reduce_axis((0, columns), name="k")
    result: te.Tensor = te.compute(
        (batch, heads, rows, v.shape[3]),
        lambda b, h, i, j: te.sum(
            weights(b, h, i, at) * v(b, h // group if group > 1 else h, at, j), axis=at),
        name="attention")
    return result


def with_masks(scores: te.Tensor, masks: Sequence[Mask]) -> te.Tensor:
    """Return scores that are minus infinity where a mask excludes the key."""
    if not masks:
        return scores
    excluded = te.const(_MINUS_INFINITY, str(scores.dtype))
    result: te.Tensor = te.compute(
        scores.shape, lambda *i: te.select(
            te.all(*(mask(*i) for mask in masks)), scores(*i), excluded), name="masked")
    return result


def attention_weights(scores: te.Tensor, may_exclude_all: bool) -> te.Tensor:
    """Return the softmax along the last axis; rows without any key are zero."""
    weights: te.Tensor = topi.nn.softmax(scores, -1)
    if not may_exclude_all:
        return weights
    best = topi.max(scores, -1, True)
    zero, low = (te.const(x, str(scores.dtype)) for x in (0, _MINUS_INFINITY))
    result: te.Tensor = te.compute(
        weights.shape, lambda b, h, i, j: te.select(
            te.all(best(b, h, i, 0) > low), weights(b, h, i, j), zero), name="weights")
    return result


def add_bias(scores: te.Tensor, bias: te.Tensor) -> te.Tensor:
    """Add a bias that broadcasts to the scores; keys after its end are excluded."""
    rank = len(bias.shape)
    if rank < 2 or _is_same(bias.shape[-1], scores.shape[-1]) or _is_same(bias.shape[-1], 1):
        return topi.add(scores, bias)
    excluded = te.const(_MINUS_INFINITY, str(scores.dtype))

    def element(*index: te.Expr) -> te.Expr:
        value = bias(*_broadcast_index(bias, index))
        return te.if_then_else(index[-1] < bias.shape[-1], scores(*index) + value, excluded)

    result: te.Tensor = te.compute(scores.shape, element, name="biased")
    return result


def _is_same(a: Any, b: Any) -> bool:
    return a is b or (isinstance(a, int) and isinstance(b, int) and a == b)


def _broadcast_index(x: te.Tensor, index: Sequence[te.Expr]) -> list[te.Expr]:
    local = index[len(index) - len(x.shape):]
    return [te.const(0, "int32") if _is_same(n, 1) else i
            for i, n in zip(local, x.shape, strict=True)]


def mask_of_tensor(mask: te.Tensor) -> Mask:
    """Return the condition of a boolean mask that broadcasts; keys after its end are excluded."""
    def allows(*index: te.Expr) -> te.Expr:
        value = mask(*_broadcast_index(mask, index))
        if _is_same(mask.shape[-1], 1):
            return value
        return te.if_then_else(index[-1] < mask.shape[-1], value, te.const(False, "bool"))

    return allows


def concat_past(node: OpNode, position: int, new: te.Tensor) -> te.Tensor:
    """Return keys or values after those of a cache, if there is one."""
    return topi.concatenate([node.tensor(position), new], 2) if node.has(position) else new


@operator("Attention")
def _attention(node: OpNode) -> list[te.Tensor | None]:
    q, k, v = (node.tensor(position) for position in range(3))
    is_flat = len(q.shape) == 3
    if is_flat:
        q = split_heads(q, node.attribute("q_num_heads"))
        k, v = (split_heads(x, node.attribute("kv_num_heads")) for x in (k, v))
    present_k, present_v = concat_past(node, 4, k), concat_past(node, 5, v)
    scale = node.attribute("scale", 1 / sqrt(q.shape[-1]))
    dtype = str(q.dtype)
    raw = scaled_scores(q, present_k, scale)
    stages, cap = [raw], node.attribute("softcap", 0.0)
    if cap:
        limit = te.const(cap, dtype)
        stages.append(topi.multiply(topi.tanh(topi.divide(raw, limit)), limit))
    else:
        stages.append(raw)
    masks, bias = _masks(node, q, k), None
    if node.has(3):
        given = node.tensor(3)
        if str(given.dtype) == "bool":
            masks.append(mask_of_tensor(given))
        else:
            bias = given
    biased = stages[1] if bias is None else add_bias(stages[1], topi.cast(bias, dtype))
    masked = with_masks(biased, masks)
    stages.append(masked)
    precision = node.dtype_attribute("softmax_precision", dtype)
    weights = topi.cast(attention_weights(
        topi.cast(masked, precision), node.has(3) or node.has(6) or len(masks) > 0), dtype)
    stages.append(weights)
    found = weighted_values(weights, present_v)
    mode = node.attribute("qk_matmul_output_mode", 0)
    extra = topi.identity(stages[mode]) if node.returns(3) else None
    return [merge_heads(found) if is_flat else found,
            present_k if node.returns(1) else None, present_v if node.returns(2) else None, extra]


def _masks(node: OpNode, q: te.Tensor, k: te.Tensor) -> list[Mask]:
    """Return the conditions of causality, windows and padded caches."""
    masks: list[Mask] = []
    rows = q.shape[2]
    lengths = node.tensor(6) if node.has(6) else None
    past: Any = node.tensor(4).shape[2] if node.has(4) else 0

    def offset(b: te.Expr) -> Any:
        return te.cast(lengths(b), "int64") - rows if lengths is not None else past

    def position(b: te.Expr, i: te.Expr) -> Any:
        return te.cast(i, "int64") + offset(b)

    if lengths is not None:
        masks.append(lambda b, h, i, j: te.cast(j, "int64") < te.cast(lengths(b), "int64"))
    if node.attribute("is_causal", 0):
        masks.append(lambda b, h, i, j: te.cast(j, "int64") <= position(b, i))
    left, right = (node.attribute(f"{side}_window_size", -1) for side in ("left", "right"))
    if left >= 0:
        masks.append(lambda b, h, i, j: te.cast(j, "int64") >= position(b, i) - left)
    if right >= 0:
        masks.append(lambda b, h, i, j: te.cast(j, "int64") <= position(b, i) + right)
    return masks


# Rotary embeddings

def rotate(
    x: te.Tensor, cos: Callable[[te.Expr, te.Expr, te.Expr], te.Expr],
    sin: Callable[[te.Expr, te.Expr, te.Expr], te.Expr], width: Any, interleaved: bool,
) -> te.Tensor:
    """Rotate pairs of elements of (batch, heads, length, size).

    Args:
        x: Queries or keys.
        cos: Cosine of the batch, position in the sequence and pair.
        sin: Sine.
        width: Number of elements that are rotated.
        interleaved: Whether the elements of a pair are adjacent, rather than half of `width` apart.
    """
    half, dtype = width // 2, x.dtype

    def element(b: te.Expr, h: te.Expr, t: te.Expr, d: te.Expr) -> te.Expr:
        pair = d // 2 if interleaved else d % half
        is_first = (d % 2).equal(0) if interleaved else d < half
        other = te.select(is_first, d + 1, d - 1) if interleaved else te.select(
            is_first, d + half, d - half)
        inside = d < width
        partner = x(b, h, t, te.max(te.min(other, x.shape[3] - 1), 0))
        angle = te.min(pair, half - 1)
        sign = te.select(is_first, te.const(-1, dtype), te.const(1, dtype))
        turned = x(b, h, t, d) * cos(b, t, angle) + sign * partner * sin(b, t, angle)
        return te.select(inside, turned, x(b, h, t, d))

    result: te.Tensor = te.compute(x.shape, element, name="rotary")
    return result


def _rotary_tables(
    cos: te.Tensor, sin: te.Tensor, positions: te.Tensor | None
) -> tuple[Any, Any]:
    """Return functions of the batch, the position in the sequence and the pair."""
    def reader(table: te.Tensor) -> Callable[[te.Expr, te.Expr, te.Expr], te.Expr]:
        if positions is None:
            return lambda b, t, k: table(b, t, k) if len(table.shape) == 3 else table(t, k)
        if len(positions.shape) == 2:
            return lambda b, t, k: table(positions(b, t), k)
        return lambda b, t, k: table(positions(0) + te.cast(t, str(positions.dtype)), k)

    return reader(cos), reader(sin)


@operator("RotaryEmbedding")
def _rotary(node: OpNode) -> te.Tensor:
    x, cos, sin = (node.tensor(k) for k in range(3))
    return _rotary_embedding(node, x, cos, sin, node.tensor(3) if node.has(3) else None)


@operator("RotaryEmbedding", domain=MICROSOFT)
def _rotary_with_positions(node: OpNode) -> te.Tensor:
    x, positions, cos, sin = node.tensors()
    return _rotary_embedding(node, x, cos, sin, positions)


def _rotary_embedding(
    node: OpNode, x: te.Tensor, cos: te.Tensor, sin: te.Tensor, positions: te.Tensor | None
) -> te.Tensor:
    is_flat = len(x.shape) == 3
    heads = node.attribute("num_heads", 0)
    if is_flat and not heads:
        half = cos.shape[-1]
        heads = x.shape[-1] // (2 * half)
    x = split_heads(x, heads) if is_flat else x
    width = node.attribute("rotary_embedding_dim", 0) or x.shape[3]
    found = rotate(
        x, *_rotary_tables(cos, sin, positions), width, bool(node.attribute("interleaved", 0)))
    return merge_heads(found) if is_flat else found


# Attention of com.microsoft

def _bias_part(bias: te.Tensor, x: te.Tensor, first: Any) -> te.Tensor:
    size = x.shape[-1]
    part: te.Tensor = te.compute((size,), lambda i: bias(i + first), name="bias")
    return topi.add(x, part)


def _causal(past: Any) -> Mask:
    return lambda b, h, i, j: te.cast(j, "int64") <= te.cast(i, "int64") + past


def _attend(
    q: te.Tensor, k: te.Tensor, v: te.Tensor, scale: float, masks: Sequence[Mask],
    bias: te.Tensor | None = None, cap: float = 0.0,
) -> te.Tensor:
    """Return the attention of (batch, heads, length, size)."""
    scores = scaled_scores(q, k, scale)
    if cap:
        limit = te.const(cap, str(q.dtype))
        scores = topi.multiply(topi.tanh(topi.divide(scores, limit)), limit)
    scores = scores if bias is None else topi.add(scores, bias)
    return weighted_values(attention_weights(with_masks(scores, masks), False), v)


def _padding_masks(mask: te.Tensor, keys: Any) -> list[Mask]:
    """Return the conditions of an integer mask: lengths, or ones for keys to attend."""
    zero = te.const(0, str(mask.dtype))
    match len(mask.shape):
        case 1:
            return [lambda b, h, i, j: te.cast(j, str(mask.dtype)) < mask(b)]
        case 2:
            return [lambda b, h, i, j: mask(b, j) > zero]
        case 3:
            return [lambda b, h, i, j: mask(b, i, j) > zero]
    del keys
    return [lambda b, h, i, j: mask(b, 0, i, j) > zero]


def _finite_masks(node: OpNode, masks: Sequence[Mask], scores_like: te.Tensor) -> te.Tensor | None:
    """Return a bias for masks, which com.microsoft adds as a finite number."""
    if not masks:
        return None
    low = te.const(node.attribute("mask_filter_value", -10000.0), str(scores_like.dtype))
    zero = te.const(0, str(scores_like.dtype))
    result: te.Tensor = te.compute(
        scores_like.shape, lambda *i: te.select(
            te.all(*(mask(*i) for mask in masks)), zero, low), name="mask_bias")
    return result


@operator("Attention", domain=MICROSOFT)
def _packed_attention(node: OpNode) -> list[te.Tensor | None]:
    x, weights = node.tensor(0), node.tensor(1)
    heads = node.attribute("num_heads")
    total = product(x, weights)
    if node.has(2):
        total = topi.add(total, node.tensor(2))
    width = weights.shape[1]
    sizes = node.attribute("qkv_hidden_sizes", [width // 3] * 3)
    q, k, v = (split_heads(part, heads) for part in topi.split(
        total, [sizes[0], sizes[0] + sizes[1]], 2))
    past: Any = 0
    if node.has(4):
        cache = node.tensor(4)  # (2, batch, heads, length, size)
        past = cache.shape[3]
        old_k, old_v = (topi.squeeze(part, [0]) for part in topi.split(cache, [1], 0))
        k, v = topi.concatenate([old_k, k], 2), topi.concatenate([old_v, v], 2)
    scale = node.attribute("scale", 0.0) or 1 / sqrt(sizes[0] // heads)
    scores = scaled_scores(q, k, scale)
    if node.has(3):
        bias = _finite_masks(node, _padding_masks(node.tensor(3), k.shape[2]), scores)
        scores = scores if bias is None else topi.add(scores, bias)
    if node.has(5):
        scores = topi.add(scores, node.tensor(5))
    masks = [_causal(past)] if node.attribute("unidirectional", 0) else []
    found = weighted_values(attention_weights(with_masks(scores, masks), False), v)
    present = topi.stack([k, v], 0) if node.returns(1) else None
    return [merge_heads(found), present]


@operator("MultiHeadAttention", domain=MICROSOFT)
def _multi_head_attention(node: OpNode) -> list[te.Tensor | None]:
    heads, q = node.attribute("num_heads"), node.tensor(0)
    if len(q.shape) == 5:  # packed (batch, length, heads, 3, size)
        q, k, v = (topi.transpose(topi.squeeze(x, [3]), (0, 2, 1, 3))
                   for x in topi.split(q, [1, 2], 3))
    else:
        if not node.has(1):
            raise node.error("the keys are missing")
        k = node.tensor(1)
        bias = node.tensor(3) if node.has(3) else None
        width = q.shape[2]
        q = split_heads(q if bias is None else _bias_part(bias, q, 0), heads)
        if len(k.shape) == 5:  # packed (batch, length, heads, 2, size)
            k, v = (topi.transpose(topi.squeeze(x, [3]), (0, 2, 1, 3))
                    for x in topi.split(k, [1], 3))
        elif len(k.shape) == 4:  # keys of an encoder, with heads
            v = node.tensor(2)
        else:
            v = node.tensor(2)
            if bias is not None:
                k, v = _bias_part(bias, k, width), _bias_part(bias, v, 2 * width)
            k, v = split_heads(k, heads), split_heads(v, heads)
    past: Any = node.tensor(6).shape[2] if node.has(6) else 0
    k, v = concat_past(node, 6, k), concat_past(node, 7, v)
    scores = scaled_scores(q, k, node.attribute("scale", 0.0) or 1 / sqrt(q.shape[3]))
    if node.has(4):
        bias = _finite_masks(node, _padding_masks(node.tensor(4), k.shape[2]), scores)
        scores = scores if bias is None else topi.add(scores, bias)
    if node.has(5):
        scores = topi.add(scores, node.tensor(5))
    masks = [_causal(past)] if node.attribute("unidirectional", 0) else []
    found = weighted_values(attention_weights(with_masks(scores, masks), False), v)
    return [merge_heads(found), k if node.returns(1) else None, v if node.returns(2) else None]


@operator("GroupQueryAttention", domain=MICROSOFT)
def _group_query_attention(node: OpNode) -> list[te.Tensor | None]:
    heads, groups = node.attribute("num_heads"), node.attribute("kv_num_heads")
    q, lengths = node.tensor(0), node.tensor(5)
    batch, rows = q.shape[:2]
    if node.has(1):
        k, v = node.tensor(1), node.tensor(2)
    else:  # packed along the last axis
        size = q.shape[2] // (heads + 2 * groups)
        q, k, v = topi.split(q, [heads * size, (heads + groups) * size], 2)
    q, k, v = split_heads(q, heads), split_heads(k, groups), split_heads(v, groups)
    length = len(lengths.shape)

    def before(b: te.Expr) -> te.Expr:
        """Return the number of keys of the cache in use; `seqlens_k` is the total less one."""
        last = lengths(b) if length == 1 else lengths(b, 0)
        return te.cast(last, "int64") + 1 - rows

    if node.attribute("do_rotary", 0):
        cos, sin = node.tensor(7), node.tensor(8)
        positions: te.Tensor = te.compute(
            (batch, rows), lambda b, t: before(b) + te.cast(t, "int64"), name="positions")
        tables = _rotary_tables(cos, sin, positions)
        interleaved = bool(node.attribute("rotary_interleaved", 0))
        q, k = (rotate(x, *tables, 2 * cos.shape[1], interleaved) for x in (q, k))
    if node.has(3):
        total = node.number(6)
        old = node.tensor(3).shape[2]
        size = max(int(total), old) if isinstance(total, int | np.integer) and isinstance(
            old, int) else total
        k, v = (_updated_cache(node.tensor(p), x, before, size) for p, x in ((3, k), (4, v)))
    masks: list[Mask] = [
        lambda b, h, i, j: te.cast(j, "int64") <= before(b) + te.cast(i, "int64")]
    window = node.attribute("local_window_size", -1)
    if window > 0:
        masks.append(lambda b, h, i, j: te.cast(j, "int64") > before(b) + te.cast(
            i, "int64") - window)
    found = _attend(
        q, k, v, node.attribute("scale", 0.0) or 1 / sqrt(q.shape[3]), masks,
        cap=node.attribute("softcap", 0.0))
    return [merge_heads(found), k if node.returns(1) else None, v if node.returns(2) else None]


def _updated_cache(
    cache: te.Tensor, new: te.Tensor, before: Callable[[te.Expr], te.Expr], size: Any
) -> te.Tensor:
    """Return keys or values, with new ones after those of the cache in use."""
    def element(b: te.Expr, h: te.Expr, t: te.Expr, d: te.Expr) -> te.Expr:
        at = te.cast(t, "int64") - before(b)
        is_new = te.all(at >= 0, at < new.shape[2])
        is_old = te.all(t < cache.shape[2])
        zero = te.const(0, new.dtype)
        inner = te.if_then_else(is_old, cache(b, h, t, d), zero)
        return te.if_then_else(is_new, new(b, h, te.cast(at, "int64"), d), inner)

    batch, heads, _, width = cache.shape
    result: te.Tensor = te.compute((batch, heads, size, width), element, name="cache")
    return result


# Normalization and activations of com.microsoft

@operator("SkipLayerNormalization", "SkipSimplifiedLayerNormalization", domain=MICROSOFT)
def _skip_normalization(node: OpNode) -> list[te.Tensor | None]:
    is_simple = node.kind.startswith("SkipSimplified")
    x = topi.add(node.tensor(0), node.tensor(1))
    if node.has(3 if is_simple else 4):
        x = topi.add(x, node.tensor(3 if is_simple else 4))
    axes, epsilon = [len(x.shape) - 1], node.attribute("epsilon", 1e-5 if is_simple else 1e-12)
    if is_simple:
        found = topi.nn.rms_norm(x, node.tensor(2), axes, epsilon)
    else:
        beta = node.tensor(3) if node.has(3) else None
        found = topi.nn.layer_norm(x, node.tensor(2), beta, axes, epsilon)
    if node.returns(1) or node.returns(2):
        raise node.error("the mean and the deviation are not supported as outputs")
    return [found, None, None, x if node.returns(3) else None]


@operator("EmbedLayerNormalization", domain=MICROSOFT)
def _embedding(node: OpNode) -> list[te.Tensor | None]:
    words = node.tensor(0)
    total = topi.take(node.tensor(2), words, 0)
    if node.has(8):
        positions = topi.take(node.tensor(3), node.tensor(8), 0)
    else:
        table = node.tensor(3)
        positions = te.compute(
            (words.shape[1], table.shape[1]), lambda t, d: table(t, d), name="positions")
    total = topi.add(total, positions)
    if node.has(4):
        kinds = node.tensor(1) if node.has(1) else None
        table = node.tensor(4)
        segments = topi.take(table, kinds, 0) if kinds is not None else te.compute(
            (table.shape[1],), lambda d: table(0, d), name="segment")
        total = topi.add(total, segments)
    found = topi.nn.layer_norm(
        total, node.tensor(5), node.tensor(6), [2], node.attribute("epsilon", 1e-12))
    lengths = None
    if node.returns(1):
        mask = node.tensor(7) if node.has(7) else topi.full(
            words.shape[:1], "int32", te.const(0, "int32"))
        lengths = topi.sum(mask, 1) if node.has(7) else mask
    return [found, lengths, total if node.returns(2) else None]


@operator("Gelu", "FastGelu", "BiasGelu", "QuickGelu", domain=MICROSOFT)
def _gelu(node: OpNode) -> te.Tensor:
    x = node.tensor(0)
    if node.kind == "QuickGelu":
        alpha = te.const(node.attribute("alpha", 1.702), str(x.dtype))
        return topi.multiply(x, topi.sigmoid(topi.multiply(x, alpha)))
    x = topi.add(x, node.tensor(1)) if node.has(1) else x
    return apply("Gelu", node, [x], approximate="tanh" if node.kind == "FastGelu" else "none")


@operator("FusedMatMul", domain=MICROSOFT)
def _fused_product(node: OpNode) -> te.Tensor:
    x, y = node.tensor(0), node.tensor(1)
    if any(node.attribute(f"transBatch{side}", 0) for side in "AB"):
        raise node.error("transposed batches are not supported")
    x, y = (_with_last_exchanged(z) if node.attribute(f"trans{side}", 0) else z
            for z, side in ((x, "A"), (y, "B")))
    found = product(x, y)
    alpha = node.attribute("alpha", 1.0)
    return found if alpha == 1.0 else topi.multiply(found, te.const(alpha, str(found.dtype)))


def _with_last_exchanged(x: te.Tensor) -> te.Tensor:
    rank = len(x.shape)
    return topi.transpose(x, [*range(rank - 2), rank - 1, rank - 2])


@operator("FusedConv", "FusedGemm", domain=MICROSOFT)
def _fused_activation(node: OpNode) -> te.Tensor:
    attributes = dict(node.attributes)
    name = attributes.pop("activation", "")
    parameters = attributes.pop("activation_params", [])
    inputs = [*node.inputs]
    extra = node.tensor(3) if node.kind == "FusedConv" and node.has(3) else None
    x = apply(node.kind.removeprefix("Fused"), node, inputs[:3], **attributes)
    x = x if extra is None else topi.add(x, extra)
    names = {"LeakyRelu": ["alpha"], "Clip": ["min", "max"], "HardSigmoid": ["alpha", "beta"]}
    return x if not name else apply(
        name, node, [x], **dict(zip(names.get(name, []), parameters, strict=False)))


# Weights of few bits

@operator("MatMulNBits", domain=MICROSOFT)
def _product_with_few_bits(node: OpNode) -> te.Tensor:
    x, packed, scales = (node.tensor(k) for k in range(3))
    size, columns = node.attribute("K"), node.attribute("N")
    bits, block = node.attribute("bits", 4), node.attribute("block_size")
    if bits not in (2, 4, 8):
        raise node.error("weights of {bits} bits are not supported", bits=bits)
    if node.has(4):
        raise node.error("g_idx is not supported")
    blocks = -(-size // block)
    scales = topi.reshape(scales, (columns, blocks))
    dtype = str(x.dtype)
    zero = _zero_points(node, columns, blocks, bits, dtype)

    def element(k: te.Expr, n: te.Expr) -> te.Expr:
        value = _unpack(lambda at: packed(n, k // block, at), k % block, bits)
        return (te.cast(value, dtype) - zero(n, k // block)) * scales(n, k // block)

    weights: te.Tensor = te.compute((size, columns), element, name="weights")
    found = product(x, weights)
    return topi.add(found, node.tensor(5)) if node.has(5) else found


def _unpack(read: Callable[[te.Expr], te.Expr], k: te.Expr, bits: int) -> Any:
    """Return number k of those that bytes hold, lowest bits first, as int32."""
    count = 8 // bits
    if count == 1:
        return te.cast(read(k), "int32")
    byte = te.cast(read(k // count), "int32")
    return (byte >> te.cast(k % count * bits, "int32")) & (2**bits - 1)


def _zero_points(
    node: OpNode, columns: int, blocks: int, bits: int, dtype: str
) -> Callable[[te.Expr, te.Expr], te.Expr]:
    if not node.has(3):
        return lambda n, b: te.const(2**(bits - 1), dtype)
    zero = node.tensor(3)
    if str(zero.dtype) != "uint8":
        plain = topi.reshape(zero, (columns, blocks))
        return lambda n, b: plain(n, b)
    row = -(-blocks * bits // 8)
    table = topi.reshape(zero, (columns, row))
    return lambda n, b: te.cast(_unpack(lambda at: table(n, at), b, bits), dtype)
