"""Operators of neural networks in ATen: products, convolutions, pooling and normalization."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from math import sqrt
from typing import Any

from tecomp import te, topi
from tecomp.torch.operator_calls import AtenCall, as_dtype, operator

_NCX = {1: "NCW", 2: "NCHW", 3: "NCDHW"}
_TRANSPOSED = {
    1: topi.nn.group_conv1d_transpose_ncw, 2: topi.nn.group_conv2d_transpose_nchw,
    3: topi.nn.group_conv3d_transpose_ncdhw,
}


@operator("mm")
def _matmul(call: AtenCall, x: te.Tensor, y: te.Tensor) -> te.Tensor:
    return topi.matmul(x, y)


@operator("bmm")
def _batch_matmul(call: AtenCall, x: te.Tensor, y: te.Tensor) -> te.Tensor:
    k = te.reduce_axis((0, x.shape[2]), name="k")
    return call.compute(lambda b, i, j: te.sum(x[b, i, k] * y[b, k, j], axis=k))


@operator("addmm", "baddbmm")
def _product_and_term(
    call: AtenCall, term: te.Tensor, x: te.Tensor, y: te.Tensor, *, beta: Any = 1, alpha: Any = 1
) -> Any:
    product = (_matmul if len(x.shape) == 2 else _batch_matmul)(call, x, y)
    if alpha != 1:
        product = topi.multiply(product, te.const(alpha, call.dtype))
    if beta == 0:
        return product
    if beta != 1:
        term = topi.multiply(term, te.const(beta, call.dtype))
    return topi.add(product, term)


@operator("mv", "dot")
def _vector_product(call: AtenCall, x: te.Tensor, y: te.Tensor) -> te.Tensor:
    k = te.reduce_axis((0, y.shape[0]), name="k")
    return call.compute(lambda *i: te.sum(x(*i, k) * y[k], axis=k))


@operator("_scaled_dot_product_flash_attention_for_cpu")
def _attention(
    call: AtenCall, query: te.Tensor, key: te.Tensor, value: te.Tensor, dropout: float = 0.0,
    is_causal: bool = False, *, attn_mask: te.Tensor | None = None, scale: float | None = None,
) -> list[Any]:
    call.require(not dropout, "dropout is not supported")
    call.require(1 not in call.used, "the logarithms of the sums are not supported")
    batch, heads, rows, size = query.shape
    columns, dtype = key.shape[2], str(query.dtype)
    factor = te.const(1 / sqrt(size) if scale is None else scale, dtype)
    k = te.reduce_axis((0, size), name="k")
    scores = te.compute(
        (batch, heads, rows, columns),
        lambda b, h, i, j: te.sum(query[b, h, i, k] * key[b, h, j, k], axis=k), name="scores")
    lowest = te.const(float("-inf"), dtype)

    def masked(b: te.Expr, h: te.Expr, i: te.Expr, j: te.Expr) -> te.Expr:
        score = scores[b, h, i, j] * factor
        if attn_mask is not None:
            score = score + attn_mask(*_broadcast_index(attn_mask.shape, (b, h, i, j)))
        return te.select(j <= i, score, lowest) if is_causal else score

    weights = topi.nn.softmax(te.compute(scores.shape, masked, name="masked"), -1)
    j = te.reduce_axis((0, columns), name="j")
    found = te.compute(
        call.shape, lambda b, h, i, d: te.sum(weights[b, h, i, j] * value[b, h, j, d], axis=j),
        name="attention")
    return [found, None]


def _broadcast_index(shape: Sequence[Any], index: Sequence[te.Expr]) -> list[Any]:
    """Return the index in an operand that is broadcast."""
    return [
        0 if isinstance(n, int) and n == 1 else at
        for n, at in zip(shape, index[len(index) - len(shape):], strict=True)
    ]


@operator("convolution")
def _convolution(
    call: AtenCall, x: te.Tensor, w: te.Tensor, bias: te.Tensor | None, stride: Sequence[int],
    padding: Sequence[int], dilation: Sequence[int], transposed: bool,
    output_padding: Sequence[int], groups: int,
) -> te.Tensor:
    count = len(w.shape) - 2
    call.require(count in _NCX, "convolutions have 1 to 3 spatial axes")
    call.require(len(x.shape) == count + 2, "images without a batch are not supported")
    stride, padding, dilation = (
        list(p) * count if len(p) == 1 else list(p) for p in (stride, padding, dilation))
    if transposed:
        found = _transposed_convolution(call, x, w, stride, padding, dilation, groups)
    else:
        found = topi.nn.conv(x, w, stride, padding + padding, dilation, groups, _NCX[count])
    return found if bias is None else topi.nn.bias_add(found, bias, 1)


def _transposed_convolution(
    call: AtenCall, x: te.Tensor, w: te.Tensor, stride: Sequence[int], padding: Sequence[int],
    dilation: Sequence[int], groups: int,
) -> te.Tensor:
    count, zero = len(stride), te.const(0, call.dtype)
    if any(n != 1 for n in dilation):
        w = topi.nn.dilate(w, [1, 1, *dilation], te.const(0, str(w.dtype)))
    full = _TRANSPOSED[count](
        x, w, stride, [0] * 2 * count, None, [0] * count, groups)

    def element(n: te.Expr, c: te.Expr, *at: te.Expr) -> te.Expr:
        index = [i + p for i, p in zip(at, padding, strict=True)]
        inside = [i < size for i, size in zip(index, full.shape[2:], strict=True)]
        return te.if_then_else(te.all(*inside), full(n, c, *index), zero)

    return call.compute(element)


@operator("max_pool2d_with_indices", "max_pool3d_with_indices")
def _max_pool(
    call: AtenCall, x: te.Tensor, kernel: Sequence[int], stride: Sequence[int] = (),
    padding: Sequence[int] = (0,), dilation: Sequence[int] = (1,), ceil_mode: bool = False,
) -> list[Any]:
    call.require(1 not in call.used, "the positions of maxima are not supported")
    return [_pool(call, x, "max", kernel, stride, padding, dilation, ceil_mode, True), None]


@operator("avg_pool1d", "avg_pool2d", "avg_pool3d")
def _average_pool(
    call: AtenCall, x: te.Tensor, kernel: Sequence[int], stride: Sequence[int] = (),
    padding: Sequence[int] = (0,), ceil_mode: bool = False, count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> te.Tensor:
    call.require(divisor_override is None, "the argument divisor_override is not supported")
    return _pool(call, x, "avg", kernel, stride, padding, (1,), ceil_mode, count_include_pad)


def _pool(
    call: AtenCall, x: te.Tensor, kind: str, kernel: Sequence[int], stride: Sequence[int],
    padding: Sequence[int], dilation: Sequence[int], ceil_mode: bool, count_include_pad: bool,
) -> te.Tensor:
    count = int(call.name.split("pool")[1][0])
    call.require(len(x.shape) == count + 2, "images without a batch are not supported")
    function = {1: topi.nn.pool1d, 2: topi.nn.pool2d, 3: topi.nn.pool3d}[count]
    kernel, stride, padding, dilation = (
        list(p) * count if len(p) == 1 else list(p)
        for p in (kernel, stride or kernel, padding, dilation))
    return function(
        x, kernel, stride, dilation, padding + padding, kind, ceil_mode, _NCX[count],
        count_include_pad)


@operator("_adaptive_avg_pool2d", "_adaptive_avg_pool3d")
def _adaptive_pool(call: AtenCall, x: te.Tensor, size: Sequence[int]) -> te.Tensor:
    count = len(size)
    call.require(len(x.shape) == count + 2, "images without a batch are not supported")
    function = topi.nn.adaptive_pool if count == 2 else topi.nn.adaptive_pool3d
    return function(x, list(size), "avg", _NCX[count])


def _channel_vector(x: te.Tensor, values: te.Tensor) -> te.Tensor:
    """Return a vector in a shape that broadcasts along axis 1 of `x`."""
    return topi.reshape(values, [1, values.shape[0]] + [1] * (len(x.shape) - 2))


@operator("_native_batch_norm_legit_no_training")
def _batch_norm(
    call: AtenCall, x: te.Tensor, weight: te.Tensor | None, bias: te.Tensor | None, mean: te.Tensor,
    variance: te.Tensor, momentum: float, eps: float,
) -> list[Any]:
    dtype = str(variance.dtype)
    scale = topi.rsqrt(topi.add(variance, te.const(eps, dtype)))
    if weight is not None:
        scale = topi.multiply(scale, weight)
    offset = topi.negative(topi.multiply(mean, scale))
    if bias is not None:
        offset = topi.add(offset, bias)
    scaled = topi.multiply(as_dtype(x, dtype), _channel_vector(x, scale))
    found = topi.add(scaled, _channel_vector(x, offset))
    return [as_dtype(found, call.dtype), None, None]


@operator("native_layer_norm")
def _layer_norm(
    call: AtenCall, x: te.Tensor, shape: Sequence[Any], weight: te.Tensor | None,
    bias: te.Tensor | None, eps: float,
) -> list[Any]:
    axes = [*range(len(x.shape) - len(shape), len(x.shape))]
    mean, scale, normalized = _normalized(as_dtype(x, _wide(x)), axes, eps)
    if weight is not None:
        normalized = topi.multiply(normalized, as_dtype(weight, str(normalized.dtype)))
    if bias is not None:
        normalized = topi.add(normalized, as_dtype(bias, str(normalized.dtype)))
    return [as_dtype(normalized, call.dtype), mean, scale]


@operator("native_group_norm")
def _group_norm(
    call: AtenCall, x: te.Tensor, weight: te.Tensor | None, bias: te.Tensor | None, batch: Any,
    channels: Any, size: Any, groups: int, eps: float,
) -> list[Any]:
    grouped = topi.reshape(as_dtype(x, _wide(x)), (batch, groups, channels // groups * size))
    mean, scale, normalized = _normalized(grouped, [2], eps)
    found = topi.reshape(normalized, tuple(x.shape))
    if weight is not None:
        found = topi.multiply(found, as_dtype(_channel_vector(x, weight), str(found.dtype)))
    if bias is not None:
        found = topi.add(found, as_dtype(_channel_vector(x, bias), str(found.dtype)))
    statistics = [topi.reshape(v, (batch, groups)) if k in call.used else None
                  for k, v in ((1, mean), (2, scale))]
    return [as_dtype(found, call.dtype), *statistics]


def _wide(x: te.Tensor) -> str:
    """Return the dtype in which statistics are computed."""
    return "float64" if str(x.dtype) == "float64" else "float32"


def _normalized(
    x: te.Tensor, axes: Sequence[int], eps: float
) -> tuple[te.Tensor, te.Tensor, te.Tensor]:
    """Return the mean, the reciprocal of the deviation, and the normalized tensor."""
    count = reduce(lambda a, b: a * b, [x.shape[k] for k in axes])
    divisor = as_dtype(count, str(x.dtype))
    mean = topi.divide(topi.sum(x, axes, True), divisor)
    centered = topi.subtract(x, mean)
    variance = topi.divide(topi.sum(topi.multiply(centered, centered), axes, True), divisor)
    scale = topi.rsqrt(topi.add(variance, te.const(eps, str(x.dtype))))
    return mean, scale, topi.multiply(centered, scale)


@operator("embedding")
def _embedding(
    call: AtenCall, weight: te.Tensor, indices: te.Tensor, *attributes: Any
) -> te.Tensor:
    rank = len(indices.shape)
    return call.compute(lambda *at: weight(indices(*at[:rank]), at[rank]))


@operator("upsample_nearest2d", "upsample_nearest1d")
def _nearest(call: AtenCall, x: te.Tensor, *attributes: Any) -> te.Tensor:
    sizes = list(zip(x.shape[2:], call.shape[2:], strict=True))
    call.require(
        all(isinstance(n, int) for pair in sizes for n in pair) and
        all(m % n == 0 for n, m in sizes), "the scale is not an integer")
    return call.compute(lambda n, c, *at: x(
        n, c, *(i // (m // k) for i, (k, m) in zip(at, sizes, strict=True))))
