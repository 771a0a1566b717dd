"""Operators of neural networks: products, convolutions, pooling and normalization."""

from __future__ import annotations

from collections.abc import Sequence
from math import floor
from typing import Any

from tecomp import te, topi
from tecomp.onnx.node import MICROSOFT, OpNode, apply, operator
from tecomp.onnx.shapes import product_of
from tecomp.onnx.vision import pool_with_indices, resample, sample_grid

_NCX = {1: "NCW", 2: "NCHW", 3: "NCDHW"}


@operator("MatMul")
def _matmul(node: OpNode) -> te.Tensor:
    return product(node.tensor(0), node.tensor(1))


def product(x: te.Tensor, y: te.Tensor) -> te.Tensor:
    """Return the matrix product of NumPy, with broadcast batches and vectors."""
    if len(x.shape) == 1:
        found = product(topi.expand_dims(x, 0), y)
        return topi.squeeze(found, [len(found.shape) - (1 if len(y.shape) == 1 else 2)])
    if len(y.shape) == 1:
        found = product(x, topi.expand_dims(y, 1))
        return topi.squeeze(found, [len(found.shape) - 1])
    if len(x.shape) == len(y.shape) == 2:
        return topi.matmul(x, y)
    if len(y.shape) == 2:  # the batch is part of the rows
        rows = topi.reshape(x, (product_of(x.shape[:-1]), x.shape[-1]))
        return topi.reshape(topi.matmul(rows, y), (*x.shape[:-1], y.shape[-1]))
    rank = max(len(x.shape), len(y.shape))
    heads: list[list[Any]] = [[1] * (rank - len(z.shape)) + [*z.shape[:-2]] for z in (x, y)]
    batch = [b if isinstance(a, int) and a == 1 else a for a, b in zip(*heads, strict=True)]
    k = te.reduce_axis((0, x.shape[-1]), name="k")

    def element(*index: te.Expr) -> te.Expr:
        *outer, i, j = index
        rows, columns = (
            [te.const(0, "int32") if isinstance(n, int) and n == 1 else at
             for at, n in zip(outer, head, strict=True)][rank - len(z.shape):]
            for z, head in zip((x, y), heads, strict=True)
        )
        return te.sum(x(*rows, i, k) * y(*columns, k, j), axis=k)

    result: te.Tensor = te.compute(
        (*batch, x.shape[-2], y.shape[-1]), element, name="batch_product")
    return result


@operator("Gemm")
def _gemm(node: OpNode) -> te.Tensor:
    found = topi.matmul(
        node.tensor(0), node.tensor(1), bool(node.attribute("transA", 0)),
        bool(node.attribute("transB", 0)),
    )
    dtype = str(found.dtype)
    if (alpha := node.attribute("alpha", 1.0)) != 1.0:
        found = topi.multiply(found, te.const(alpha, dtype))
    if not node.has(2):
        return found
    bias, beta = node.tensor(2), node.attribute("beta", 1.0)
    return topi.add(
        found, bias if beta == 1.0 else topi.multiply(bias, te.const(beta, dtype)))


def _padding(node: OpNode, x: te.Tensor, kernel: Sequence[int]) -> list[int]:
    """Return the padding before all spatial axes, then after them."""
    count = len(kernel)
    pads, mode = node.attribute("pads", [0] * 2 * count), node.attribute("auto_pad", "NOTSET")
    if mode in ("NOTSET", ""):
        return list(pads)
    if mode == "VALID":
        return [0] * 2 * count
    strides = node.attribute("strides", [1] * count)
    dilations = node.attribute("dilations", [1] * count)
    before, after = [], []
    for n, k, stride, dilation in zip(x.shape[2:], kernel, strides, dilations, strict=True):
        if not isinstance(n, int):
            raise node.error("auto_pad requires constant sizes")
        total = max((-(-n // stride) - 1) * stride + (k - 1) * dilation + 1 - n, 0)
        low = total // 2 if mode == "SAME_UPPER" else total - total // 2
        before.append(low)
        after.append(total - low)
    return before + after


@operator("Conv")
def _convolution(node: OpNode) -> te.Tensor:
    x, w = node.tensor(0), node.tensor(1)
    kernel = [n for n in w.shape[2:] if isinstance(n, int)]
    count = len(kernel)
    if count not in _NCX:
        raise node.error("convolutions have 1 to 3 spatial axes, got {count}", count=count)
    found = topi.nn.conv(
        x, w, node.attribute("strides", [1] * count), _padding(node, x, kernel),
        node.attribute("dilations", [1] * count), node.attribute("group", 1), _NCX[count],
    )
    return topi.nn.bias_add(found, node.tensor(2), 1) if node.has(2) else found


@operator("MaxPool", "AveragePool")
def _pool(node: OpNode) -> te.Tensor | list[te.Tensor]:
    x, kernel = node.tensor(0), node.attribute("kernel_shape")
    if node.returns(1):
        return pool_with_indices(node, x, _padding(node, x, kernel))
    count = len(kernel)
    function = {1: topi.nn.pool1d, 2: topi.nn.pool2d, 3: topi.nn.pool3d}[count]
    is_max = node.kind == "MaxPool"
    return function(
        x, kernel, node.attribute("strides", [1] * count),
        node.attribute("dilations", [1] * count), _padding(node, x, kernel),
        "max" if is_max else "avg", bool(node.attribute("ceil_mode", 0)), _NCX[count],
        bool(node.attribute("count_include_pad", 0)),
    )


@operator("GlobalAveragePool", "GlobalMaxPool")
def _global_pool(node: OpNode) -> te.Tensor:
    x = node.tensor(0)
    axes = [*range(2, len(x.shape))]
    if node.kind == "GlobalMaxPool":
        return topi.max(x, axes, keepdims=True)
    count = product_of(x.shape[2:])
    total = topi.sum(x, axes, keepdims=True)
    return topi.divide(total, te.const(count, str(x.dtype)) if isinstance(count, int) else
        te.cast(count, str(x.dtype)))


def _channel_vector(x: te.Tensor, values: te.Tensor, axis: int = 1) -> te.Tensor:
    """Return a vector in a shape that broadcasts along one axis of `x`."""
    return topi.reshape(values, [1] * axis + [values.shape[0]] + [1] * (len(x.shape) - axis - 1))


@operator("BatchNormalization")
def _batch_normalization(node: OpNode) -> te.Tensor | list[te.Tensor]:
    x, scale, bias, mean, variance = node.tensors()
    if node.attribute("training_mode", 0):
        return _batch_statistics(node, x, scale, bias, mean, variance)
    epsilon = te.const(node.attribute("epsilon", 1e-5), str(x.dtype))
    # Factors depend on constants only, and are computed once.
    factor = topi.multiply(scale, topi.rsqrt(topi.add(variance, epsilon)))
    shift = topi.subtract(bias, topi.multiply(mean, factor))
    return topi.add(topi.multiply(x, _channel_vector(x, factor)), _channel_vector(x, shift))


def _batch_statistics(
    node: OpNode, x: te.Tensor, scale: te.Tensor, bias: te.Tensor, mean: te.Tensor,
    variance: te.Tensor,
) -> list[te.Tensor]:
    """Return the normalized batch, and the running mean and variance."""
    axes = [k for k in range(len(x.shape)) if k != 1]
    kind = "float32" if str(x.dtype) in ("float16", "bfloat16") else str(x.dtype)
    wide = topi.cast(x, kind)
    own_mean = mean_of(wide, axes)
    centered = topi.subtract(wide, own_mean)
    own_variance = mean_of(topi.multiply(centered, centered), axes)
    factor = topi.rsqrt(topi.add(own_variance, te.const(node.attribute("epsilon", 1e-5), kind)))
    y = topi.add(
        topi.multiply(topi.multiply(centered, factor), _channel_vector(x, topi.cast(scale, kind))),
        _channel_vector(x, topi.cast(bias, kind)))

    def running(old: te.Tensor, new: te.Tensor) -> te.Tensor:
        momentum, dtype = node.attribute("momentum", 0.9), str(old.dtype)
        return topi.add(topi.multiply(old, te.const(momentum, dtype)), topi.multiply(
            topi.cast(topi.reshape(new, old.shape), dtype), te.const(1 - momentum, dtype)))

    return [topi.cast(y, str(x.dtype)), running(mean, own_mean), running(variance, own_variance)]


def mean_of(x: te.Tensor, axes: Sequence[int]) -> te.Tensor:
    """Return the mean along axes, which are kept with size 1."""
    count = product_of([x.shape[k] for k in axes])
    dtype = str(x.dtype)
    size = te.const(count, dtype) if isinstance(count, int) else te.cast(count, dtype)
    return topi.divide(topi.sum(x, [*axes], True), size)


@operator("SimplifiedLayerNormalization", domain=MICROSOFT)
@operator("LayerNormalization", "RMSNormalization")
def _layer_normalization(node: OpNode) -> te.Tensor | list[te.Tensor | None]:
    x = node.tensor(0)
    axes = [*range(node.axis(len(x.shape), -1), len(x.shape))]
    epsilon = node.attribute("epsilon", 1e-5)
    if node.kind != "LayerNormalization":
        return topi.nn.rms_norm(x, node.tensor(1), axes, epsilon)
    bias = node.tensor(2) if node.has(2) else None
    found = topi.nn.layer_norm(x, node.tensor(1), bias, axes, epsilon)
    if not node.returns(1) and not node.returns(2):
        return found
    wide = topi.cast(x, node.dtype_attribute("stash_type", "float32"))
    mean = mean_of(wide, axes)
    centered = topi.subtract(wide, mean)
    variance = mean_of(topi.multiply(centered, centered), axes)
    return [found, mean, topi.rsqrt(topi.add(variance, te.const(epsilon, str(wide.dtype))))]


@operator("InstanceNormalization")
def _instance_normalization(node: OpNode) -> te.Tensor:
    x, scale, bias = node.tensors()
    return topi.nn.instance_norm(
        x, scale, bias, 1, [*range(2, len(x.shape))], node.attribute("epsilon", 1e-5))


@operator("LRN")
def _local_response(node: OpNode) -> te.Tensor:
    return topi.nn.lrn(
        node.tensor(0), node.attribute("size"), 1, node.attribute("alpha", 1e-4),
        node.attribute("beta", 0.75), node.attribute("bias", 1.0),
    )


@operator("Dropout")
def _dropout(node: OpNode) -> list[te.Tensor | None]:
    if node.has(2) and node.known(2).any() and node.number(1, 0.5) != 0:
        raise node.error("random masks are drawn on the host")
    x = node.tensor(0)
    mask = topi.full(x.shape, "bool", te.const(True, "bool")) if node.returns(1) else None
    return [topi.identity(x), mask]


_TRANSPOSED: dict[int, Any] = {
    1: topi.nn.group_conv1d_transpose_ncw, 2: topi.nn.group_conv2d_transpose_nchw,
    3: topi.nn.group_conv3d_transpose_ncdhw,
}


@operator("ConvTranspose")
def _transposed_convolution(node: OpNode) -> te.Tensor:
    x, w = node.tensor(0), node.tensor(1)
    count = len(x.shape) - 2
    strides = node.attribute("strides", [1] * count)
    dilations = node.attribute("dilations", [1] * count)
    extra = list(node.attribute("output_padding", [0] * count))
    if count not in _TRANSPOSED:
        raise node.error("convolutions have 1 to 3 spatial axes, got {count}", count=count)
    if any(n != 1 for n in dilations):
        w = topi.nn.dilate(w, [1, 1, *dilations], te.const(0, str(w.dtype)))
    pads = list(node.attribute("pads", [0] * 2 * count))
    full = [(n - 1) * s + k for n, s, k in zip(x.shape[2:], strides, w.shape[2:], strict=True)]
    mode, shape = node.attribute("auto_pad", "NOTSET"), node.attribute("output_shape")
    if shape is not None or mode.startswith("SAME"):
        sizes = shape or [n * s for n, s in zip(x.shape[2:], strides, strict=True)]
        for k, (size, result) in enumerate(zip(full, sizes[-count:], strict=True)):
            total = size + extra[k] - result
            extra[k] += max(-total, 0)
            total = max(total, 0)
            low = total // 2 if mode == "SAME_UPPER" else total - total // 2
            pads[k], pads[count + k] = low, total - low
    found = _TRANSPOSED[count](
        x, w, strides, [0] * 2 * count, None, [0] * count, node.attribute("group", 1))
    # Padding removes elements at both ends; output padding appends some.
    after = [e - p for e, p in zip(extra, pads[count:], strict=True)]
    appended = [max(n, 0) for n in after]
    if any(appended):
        found = topi.nn.pad(
            found, [0] * (count + 2), [0, 0, *appended], te.const(0, str(found.dtype)))
    ends = [n + e - p for n, e, p in zip(full, extra, pads[count:], strict=True)]
    if any(pads):
        found = topi.strided_slice(found, pads[:count], ends, axes=[*range(2, count + 2)])
    return topi.nn.bias_add(found, node.tensor(2), 1) if node.has(2) else found


@operator("GlobalLpPool")
def _global_norm(node: OpNode) -> te.Tensor:
    x, p = node.tensor(0), float(node.attribute("p", 2))
    dtype = str(x.dtype)
    powers = topi.power(topi.abs(x), te.const(p, dtype))
    total = topi.sum(powers, [*range(2, len(x.shape))], True)
    return topi.power(total, te.const(1 / p, dtype))


@operator("LpPool")
def _norm_of_windows(node: OpNode) -> te.Tensor:
    x, p = node.tensor(0), float(node.attribute("p", 2))
    dtype, count = str(x.dtype), 1
    for size in node.attribute("kernel_shape"):
        count *= size
    powers = topi.power(topi.abs(x), te.const(p, dtype))
    attributes = {**node.attributes, "count_include_pad": 1}
    if attributes.pop("ceil_mode", 0):
        raise node.error("ceil_mode is not supported")
    mean = apply("AveragePool", node, [powers], **attributes)
    result: te.Tensor = topi.power(
        topi.multiply(mean, te.const(count, dtype)), te.const(1 / p, dtype))
    return result


@operator("GridSample")
def _grid_sample(node: OpNode) -> te.Tensor:
    x, grid = node.tensors()
    count = len(x.shape) - 2
    modes = {"linear": "bilinear", "cubic": "bicubic"}
    mode = node.attribute("mode", "linear" if node.opset >= 20 else "bilinear")
    axes = [0, count + 1, *range(1, count + 1)]
    padding = node.attribute("padding_mode", "zeros")
    if count != 2 or mode in ("cubic", "bicubic") or padding == "reflection":
        plain = {"bilinear": "linear", "bicubic": "cubic"}.get(mode, mode)
        return sample_grid(node, x, grid, plain)
    return topi.image.grid_sample(
        x, topi.transpose(grid, axes), modes.get(mode, mode), {2: "NCHW", 3: "NCDHW"}[count],
        node.attribute("padding_mode", "zeros"), bool(node.attribute("align_corners", 0)),
    )


_RESIZED: dict[int, Any] = {
    1: topi.image.resize1d, 2: topi.image.resize2d, 3: topi.image.resize3d,
}
_LAYOUTS = {1: "NCW", 2: "NCHW", 3: "NCDHW"}


@operator("Resize", "Upsample")
def _resize(node: OpNode) -> te.Tensor:
    x = node.tensor(0)
    count = len(x.shape) - 2
    is_old = node.kind == "Upsample" or node.opset < 11
    axes = [k % len(x.shape) for k in node.attribute("axes", range(len(x.shape)))]
    extents, scales = _resized_extents(node, x, axes, 1 if is_old else 2)
    transform = node.attribute(
        "coordinate_transformation_mode", "asymmetric" if is_old else "half_pixel")
    mode = node.attribute("mode", "nearest")
    is_exact = all(n * s == e for n, s, e in zip(x.shape, scales, extents, strict=True))
    if is_exact and transform == "half_pixel_symmetric":
        transform = "half_pixel"  # equal for scales that give integer sizes
    is_plain = count in _RESIZED and extents[:2] == [*x.shape[:2]]
    if not is_plain or not is_exact or node.attribute("antialias", 0):
        return resample(node, x, extents, scales, transform)
    roi = [0.0] * count + [1.0] * count
    if transform == "tf_crop_and_resize":
        bounds = node.numbers(1)
        for position, axis in enumerate(axes):
            if axis >= 2:
                roi[axis - 2] = bounds[position]
                roi[count + axis - 2] = bounds[len(axes) + position]
    result: te.Tensor = _RESIZED[count](
        x, roi, extents[2:], _LAYOUTS[count], "nearest_neighbor" if mode == "nearest" else mode,
        transform, node.attribute("nearest_mode", "floor" if is_old else "round_prefer_floor"),
        node.attribute("cubic_coeff_a", -0.75), node.attribute("exclude_outside", 0),
        node.attribute("extrapolation_value", 0.0),
    )
    return result


def _resized_extents(
    node: OpNode, x: te.Tensor, axes: list[int], position: int
) -> tuple[list[int], list[float]]:
    """Return extents and scales from scales, the input at `position`, or sizes, the next one."""
    extents = [n for n in x.shape if isinstance(n, int)]
    if len(extents) < len(x.shape):
        raise node.error("images must have constant sizes")
    scales, old = [1.0] * len(extents), [*extents]
    if sizes := node.numbers(position + 1):
        policy = node.attribute("keep_aspect_ratio_policy", "stretch")
        ratios = [size / old[axis] for axis, size in zip(axes, sizes, strict=True)]
        if policy != "stretch":
            ratio = min(ratios) if policy == "not_larger" else max(ratios)
            sizes = [floor(ratio * old[axis] + 0.5) for axis in axes]
        for axis, size in zip(axes, sizes, strict=True):
            extents[axis] = size
            scales[axis] = ratio if policy != "stretch" else size / old[axis]
        return extents, scales
    given = node.attribute("scales") or node.numbers(position)
    for axis, scale in zip(axes, given, strict=True):
        scales[axis], extents[axis] = scale, floor(old[axis] * scale)
    return extents, scales
