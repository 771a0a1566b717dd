"""Operators on quantized values: scales with zero points, and products of integers."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx

from tecomp import te, topi
from tecomp.onnx.elementwise import saturate
from tecomp.onnx.layers import product
from tecomp.onnx.node import OpNode, apply, operator
from tecomp.operations import element_type

_BOUNDS = {"int8": (-128, 127), "uint8": (0, 255), "int16": (-(2**15), 2**15 - 1),
           "uint16": (0, 2**16 - 1), "int2": (-2, 1), "uint2": (0, 3), "int4": (-8, 7),
           "uint4": (0, 15)}
_SMALL_FLOATS = {"float8_e4m3fn", "float8_e5m2", "float4_e2m1fn"}


def nearest(x: te.Tensor) -> te.Tensor:
    """Round to the nearest integers, ties to even ones."""
    result: te.Tensor = te.compute(x.shape, lambda *i: te.nearbyint(x(*i)), name="nearest")
    return result


@operator("Round")
def _round(node: OpNode) -> te.Tensor:
    return nearest(node.tensor(0))


def _along_axis(parameter: te.Tensor, x: te.Tensor, axis: int, block: int) -> te.Tensor:
    """Return a scale or zero point in a shape that broadcasts to `x`."""
    rank = len(x.shape)
    if len(parameter.shape) == 0 or parameter.shape == (1,):
        return topi.reshape(parameter, ())
    if len(parameter.shape) == 1:
        shape: list[Any] = [1] * rank
        shape[axis % rank] = parameter.shape[0]
        return topi.reshape(parameter, shape)
    if not block:
        return parameter
    repeated = topi.repeat(parameter, block, axis % rank)
    size = x.shape[axis % rank]
    return topi.strided_slice(repeated, [0], [size], axes=[axis % rank])


def _quantized(
    x: te.Tensor, scale: te.Tensor, zero: te.Tensor | None, dtype: str
) -> te.Tensor:
    """Return `round(x / scale) + zero`, clipped to the range of the dtype."""
    low, high = _BOUNDS[dtype]
    steps = nearest(topi.divide(x, scale))
    if zero is not None:
        steps = topi.add(steps, topi.cast(zero, str(steps.dtype)))
    number = str(steps.dtype)
    clipped = topi.minimum(topi.maximum(steps, te.const(low, number)), te.const(high, number))
    if dtype in ("int2", "uint2", "int4", "uint4"):
        clipped = topi.cast(clipped, "int32")
    return topi.cast(clipped, dtype)


@operator("QuantizeLinear")
def _quantize(node: OpNode) -> te.Tensor:
    x, axis, block = node.tensor(0), node.attribute("axis", 1), node.attribute("block_size", 0)
    zero = _along_axis(node.tensor(2), x, axis, block) if node.has(2) else None
    given = node.attribute("output_dtype", 0)
    dtype = str(zero.dtype) if zero is not None else (
        str(onnx.helper.tensor_dtype_to_np_dtype(given)) if given else "uint8")
    if dtype not in {*_BOUNDS, *_SMALL_FLOATS}:
        raise node.error("the dtype {dtype} is not supported", dtype=dtype)
    scale = _along_axis(node.tensor(1), x, axis, block)
    if dtype in _SMALL_FLOATS:
        scaled = topi.divide(topi.cast(x, str(scale.dtype)), scale)
        if zero is not None:
            scaled = topi.add(scaled, topi.cast(zero, str(scale.dtype)))
        return topi.cast(saturate(scaled, element_type(dtype).largest), dtype)
    return _quantized(topi.cast(x, str(scale.dtype)), scale, zero, dtype)


@operator("DequantizeLinear")
def _dequantize(node: OpNode) -> te.Tensor:
    x, axis, block = node.tensor(0), node.attribute("axis", 1), node.attribute("block_size", 0)
    if str(x.dtype) not in {*_BOUNDS, *_SMALL_FLOATS, "int32"}:
        raise node.error("the dtype {dtype} is not supported", dtype=x.dtype)
    scale = _along_axis(node.tensor(1), x, axis, block)
    kind = "float32" if str(x.dtype) in _SMALL_FLOATS else "int32"
    steps: Any = topi.cast(x, kind)
    if node.has(2):
        zero = _along_axis(node.tensor(2), x, axis, block)
        steps = topi.subtract(steps, topi.cast(zero, kind))
    return topi.multiply(topi.cast(steps, str(scale.dtype)), scale)


def _centered(node: OpNode, position: int, zero: int, axis: int) -> te.Tensor:
    """Return an input as int32 without its zero point."""
    x: te.Tensor = topi.cast(node.tensor(position), "int32")
    if not node.has(zero):
        return x
    known = node.inputs[zero]
    if isinstance(known, np.ndarray) and not known.any():
        return x
    result: te.Tensor = topi.subtract(
        x, topi.cast(_along_axis(node.tensor(zero), x, axis, 0), "int32"))
    return result


@operator("MatMulInteger")
def _integer_product(node: OpNode) -> te.Tensor:
    result: te.Tensor = product(_centered(node, 0, 2, -2), _centered(node, 1, 3, -1))
    return result


@operator("QLinearMatMul")
def _quantized_product(node: OpNode) -> te.Tensor:
    total = product(_centered(node, 0, 2, -2), _centered(node, 3, 5, -1))
    x, y = node.tensor(0), node.tensor(3)
    scales = topi.multiply(
        _along_axis(node.tensor(1), x, -2, 0),
        _along_axis(node.tensor(4), y, -1, 0))
    return _rescaled(node, total, scales, 6)


def _rescaled(node: OpNode, total: te.Tensor, scales: te.Tensor, position: int) -> te.Tensor:
    """Return sums of products in the quantization of the result."""
    factor = topi.divide(scales, _along_axis(node.tensor(position), total, 1, 0))
    zero = node.tensor(position + 1)
    low, high = _BOUNDS[str(zero.dtype)]
    dtype = str(factor.dtype)
    steps = topi.add(
        nearest(topi.multiply(topi.cast(total, dtype), factor)),
        topi.cast(_along_axis(zero, total, 1, 0), dtype))
    clipped = topi.minimum(topi.maximum(steps, te.const(low, dtype)), te.const(high, dtype))
    return topi.cast(clipped, str(zero.dtype))


def _convolution(node: OpNode, x: te.Tensor, w: te.Tensor) -> te.Tensor:
    return apply("Conv", node, [x, w], **node.attributes)


@operator("ConvInteger")
def _integer_convolution(node: OpNode) -> te.Tensor:
    return _convolution(node, _centered(node, 0, 2, 1), _centered(node, 1, 3, 0))


@operator("QLinearConv")
def _quantized_convolution(node: OpNode) -> te.Tensor:
    total = _convolution(node, _centered(node, 0, 2, 1), _centered(node, 3, 5, 0))
    if node.has(8):
        total = topi.nn.bias_add(total, node.tensor(8), 1)
    scales = topi.multiply(
        _along_axis(node.tensor(1), total, 1, 0),
        _along_axis(node.tensor(4), total, 1, 0))
    return _rescaled(node, total, scales, 6)
