"""Element-wise operators, reductions and scans of ATen."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from math import pi, prod, sqrt
from typing import Any

import torch

from tecomp import te, topi
from tecomp.torch.operator_calls import (
    OPERATORS,
    AtenCall,
    as_dtype,
    axes_of,
    axis_of,
    operator,
)

_SAME_NAMES = (
    "abs", "acos", "acosh", "asin", "asinh", "atan", "atanh", "bitwise_not", "ceil", "cos", "cosh",
    "digamma", "erf", "erfinv", "exp", "floor", "isinf", "isnan", "lgamma", "log", "log10", "log2",
    "logical_not", "rsqrt", "sigmoid", "sign", "sin", "sinh", "sqrt", "tan", "tanh", "trunc",
)
_UNARY: dict[str, Callable[..., Any]] = {name: getattr(topi, name) for name in _SAME_NAMES} | {
    "neg": topi.negative, "relu": topi.nn.relu,
}
_BINARY: dict[str, Callable[..., Any]] = {
    "mul": topi.multiply, "maximum": topi.maximum, "minimum": topi.minimum, "atan2": topi.atan2,
    "remainder": topi.floor_mod, "bitwise_and": topi.bitwise_and, "bitwise_or": topi.bitwise_or,
    "bitwise_xor": topi.bitwise_xor, "logical_and": topi.logical_and,
    "logical_or": topi.logical_or, "logical_xor": topi.logical_xor, "eq": topi.equal,
    "ne": topi.not_equal, "lt": topi.less, "le": topi.less_equal, "gt": topi.greater,
    "ge": topi.greater_equal, "fmod": topi.mod,
}
_EXPRESSIONS: dict[str, Callable[[te.Expr], te.Expr]] = {
    "expm1": te.expm1, "log1p": te.log1p, "exp2": te.exp2,
    "reciprocal": lambda x: te.const(1, x.dtype) / x,
    "square": lambda x: x * x,
    "round": te.nearbyint,
    "silu": lambda x: x * te.sigmoid(x),
}


def _operand_dtype(call: AtenCall) -> str:
    """Return the dtype in which operands are compared or combined, by PyTorch's promotion."""
    if call.dtype != "bool":
        return call.dtype
    values: list[Any] = [
        x for x in call.operands if isinstance(x, torch.Tensor | bool | int | float)]
    if len(values) == 1:
        return _dtype_name(values[0].dtype)
    return _dtype_name(torch.result_type(values[0], values[1]))


def _dtype_name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def _unary(name: str) -> Callable[..., Any]:
    def define(call: AtenCall, x: te.Tensor, **attributes: Any) -> Any:
        dtype = str(x.dtype) if call.dtype == "bool" else call.dtype
        if name == "logical_not":
            dtype = "bool"
        return as_dtype(_UNARY[name](as_dtype(x, dtype)), call.dtype)

    return define


def _of_elements(name: str) -> Callable[..., Any]:
    def define(call: AtenCall, x: te.Tensor, **attributes: Any) -> Any:
        y = as_dtype(x, call.dtype)
        return call.compute(lambda *index: _EXPRESSIONS[name](y(*index)))

    return define


def _binary(name: str) -> Callable[..., Any]:
    def define(call: AtenCall, x: Any, y: Any) -> Any:
        dtype = "bool" if name.startswith("logical") else _operand_dtype(call)
        return as_dtype(_BINARY[name](as_dtype(x, dtype), as_dtype(y, dtype)), call.dtype)

    return define


OPERATORS.update({f"aten.{name}": _unary(name) for name in _UNARY})
OPERATORS.update({f"aten.{name}": _of_elements(name) for name in _EXPRESSIONS})
OPERATORS.update({f"aten.{name}": _binary(name) for name in _BINARY})


@operator("add", "sub", "rsub")
def _sum(call: AtenCall, x: Any, y: Any, alpha: Any = 1) -> Any:
    x, y = as_dtype(x, call.dtype), as_dtype(y, call.dtype)
    if call.name.startswith("aten.rsub"):
        x, y = y, x
    if alpha != 1:
        y = topi.multiply(y, te.const(alpha, call.dtype))
    return topi.add(x, y) if call.name.startswith("aten.add") else topi.subtract(x, y)


@operator("div")
def _quotient(call: AtenCall, x: Any, y: Any, rounding_mode: str | None = None) -> Any:
    x, y = as_dtype(x, call.dtype), as_dtype(y, call.dtype)
    is_float = "float" in call.dtype
    if rounding_mode == "floor":
        return topi.floor_divide(x, y)
    if rounding_mode == "trunc":
        call.require(is_float, "integer division that truncates is not supported")
        return topi.trunc(topi.divide(x, y))
    return topi.divide(x, y)


@operator("floor_divide")
def _floor_quotient(call: AtenCall, x: Any, y: Any) -> Any:
    return topi.floor_divide(as_dtype(x, call.dtype), as_dtype(y, call.dtype))


@operator("pow")
def _power(call: AtenCall, x: Any, y: Any) -> Any:
    dtype = call.dtype
    if isinstance(y, int | float) and not isinstance(y, bool) and y in (0.5, 1, 2, 3):
        base = as_dtype(x, dtype)
        if y == 0.5:
            return topi.sqrt(base)
        return reduce(topi.multiply, [base] * int(y)) if y > 1 else topi.identity(base)
    return topi.power(as_dtype(x, dtype), as_dtype(y, dtype))


@operator("gelu")
def _gelu(call: AtenCall, x: te.Tensor, approximate: str = "none") -> Any:
    def element(value: te.Expr) -> te.Expr:
        if approximate == "none":
            return 0.5 * value * (1.0 + te.erf(value * sqrt(0.5)))
        inner = sqrt(2 / pi) * (value + 0.044715 * value * value * value)
        return 0.5 * value * (1.0 + te.tanh(inner))

    return call.compute(lambda *index: element(x(*index)))


@operator("leaky_relu")
def _leaky_relu(call: AtenCall, x: te.Tensor, slope: float = 0.01) -> Any:
    return topi.nn.leaky_relu(x, slope)


@operator("elu")
def _elu(
    call: AtenCall, x: te.Tensor, alpha: float = 1.0, scale: float = 1.0, input_scale: float = 1.0
) -> Any:
    def element(value: te.Expr) -> te.Expr:
        negative = te.expm1(value * input_scale) * (alpha * scale)
        return te.select(value > 0.0, value * scale, negative)

    return call.compute(lambda *index: element(x(*index)))


@operator("hardtanh")
def _hardtanh(call: AtenCall, x: te.Tensor, low: float = -1.0, high: float = 1.0) -> Any:
    return _clamp(call, x, low, high)


@operator("clamp")
def _clamp(call: AtenCall, x: te.Tensor, low: Any = None, high: Any = None) -> Any:
    # PyTorch propagates NaN, as maximum and minimum do.
    x = as_dtype(x, call.dtype)
    if low is not None:
        x = topi.maximum(x, as_dtype(low, call.dtype))
    return x if high is None else topi.minimum(x, as_dtype(high, call.dtype))


@operator("where")
def _where(call: AtenCall, condition: te.Tensor, x: Any, y: Any) -> Any:
    shapes = [
        topi.broadcast_to(v, call.shape) if isinstance(v, te.Tensor) and len(v.shape) == 0 else v
        for v in (as_dtype(x, call.dtype), as_dtype(y, call.dtype))
    ]
    return topi.where(condition, *shapes)


@operator("threshold_backward")
def _threshold_backward(
    call: AtenCall, g: te.Tensor, x: te.Tensor, threshold: float
) -> Any:
    zero = te.const(0, call.dtype)
    return call.compute(lambda *at: te.select(x(*at) <= threshold, zero, g(*at)))


@operator("gelu_backward")
def _gelu_backward(
    call: AtenCall, g: te.Tensor, x: te.Tensor, approximate: str = "none"
) -> Any:
    def element(value: te.Expr) -> te.Expr:
        if approximate == "none":
            density = te.exp(-0.5 * value * value) * (1.0 / sqrt(2 * pi))
            return 0.5 * (1.0 + te.erf(value * sqrt(0.5))) + value * density
        factor = sqrt(2 / pi)
        y = te.tanh(factor * (value + 0.044715 * value * value * value))
        slope = factor * (1.0 + 3 * 0.044715 * value * value)
        return 0.5 * (1.0 + y) + 0.5 * value * (1.0 - y * y) * slope

    return call.compute(lambda *index: g(*index) * element(x(*index)))


@operator("sigmoid_backward")
def _sigmoid_backward(call: AtenCall, g: te.Tensor, y: te.Tensor) -> Any:
    return call.compute(lambda *at: g(*at) * (1.0 - y(*at)) * y(*at))


@operator("tanh_backward")
def _tanh_backward(call: AtenCall, g: te.Tensor, y: te.Tensor) -> Any:
    return call.compute(lambda *at: g(*at) * (1.0 - y(*at) * y(*at)))


@operator("_to_copy", "clone", "alias", "detach", "lift_fresh_copy")
def _convert(call: AtenCall, x: te.Tensor, **attributes: Any) -> Any:
    return as_dtype(x, call.dtype)


def _reduction(
    name: str, function: Callable[..., te.Tensor]
) -> Callable[..., Any]:
    def define(
        call: AtenCall, x: te.Tensor, dim: Any = None, keepdim: bool = False, **attributes: Any
    ) -> Any:
        if not len(x.shape):
            return as_dtype(x, call.dtype)
        if name in ("any", "all"):
            x = as_dtype(x, "bool") if str(x.dtype) != "bool" else x
        elif name in ("sum", "prod", "mean"):
            x = as_dtype(x, call.dtype)
        axes = axes_of(dim, len(x.shape))
        return as_dtype(function(x, axes, keepdims=bool(keepdim)), call.dtype)

    return define


def _count(x: te.Tensor, axes: Sequence[int]) -> Any:
    """Return the number of elements along axes."""
    return prod([x.shape[k] for k in axes])


def _mean(x: te.Tensor, axes: Sequence[int], keepdims: bool) -> Any:
    count = _count(x, axes)
    return topi.divide(topi.sum(x, axes, keepdims), as_dtype(count, str(x.dtype)))


OPERATORS.update({
    f"aten.{name}": _reduction(name, function) for name, function in (
        ("sum", topi.sum), ("prod", topi.prod), ("mean", _mean), ("amax", topi.max),
        ("amin", topi.min), ("any", topi.any), ("all", topi.all),
    )
})


@operator("argmax", "argmin")
def _position(
    call: AtenCall, x: te.Tensor, dim: int | None = None, keepdim: bool = False
) -> Any:
    function = topi.argmax if "argmax" in call.name else topi.argmin
    call.require(dim is not None and len(x.shape), "arguments without `dim` are not supported")
    return as_dtype(function(x, axis_of(dim or 0, len(x.shape)), keepdim), call.dtype)


@operator("max.dim", "min.dim")
def _extremum(
    call: AtenCall, x: te.Tensor, dim: int, keepdim: bool = False
) -> list[te.Tensor]:
    axis = axis_of(dim, len(x.shape))
    best, place = (
        (topi.max, topi.argmax) if "max" in call.name else (topi.min, topi.argmin))
    return [best(x, axis, keepdim), as_dtype(place(x, axis, keepdim), "int64")]


@operator("var.correction", "var_mean.correction")
def _variance(
    call: AtenCall, x: te.Tensor, dim: Any = None, *, correction: Any = None, keepdim: bool = False
) -> Any:
    axes = axes_of(dim, len(x.shape))
    mean = _mean(x, axes, True)
    deviation = topi.subtract(x, mean)
    count = _count(x, axes)
    divisor = count - (1 if correction is None else correction)
    total = topi.sum(topi.multiply(deviation, deviation), axes, keepdim)
    variance = topi.divide(total, as_dtype(divisor, str(x.dtype)))
    if call.name.startswith("aten.var."):
        return variance
    return [variance, mean if keepdim else _mean(x, axes, False)]


@operator("_softmax", "_log_softmax")
def _softmax(call: AtenCall, x: te.Tensor, dim: int, half_to_float: bool) -> Any:
    function = topi.nn.log_softmax if "log" in call.name else topi.nn.softmax
    return function(as_dtype(x, call.dtype), axis_of(dim, len(x.shape)))


@operator("cumsum")
def _cumsum(call: AtenCall, x: te.Tensor, dim: int, **attributes: Any) -> Any:
    return topi.cumsum(as_dtype(x, call.dtype), axis_of(dim, len(x.shape)))


@operator("topk")
def _topk(
    call: AtenCall, x: te.Tensor, k: int, dim: int = -1, largest: bool = True,
    is_sorted: bool = True,
) -> list[te.Tensor]:
    call.require(isinstance(k, int), "a symbolic number of elements is not supported")
    return list(topi.topk(x, k, axis_of(dim, len(x.shape)), "both", not largest))


@operator("sort", "sort.stable")
def _sort(
    call: AtenCall, x: te.Tensor, dim: int = -1, descending: bool = False, **attributes: Any
) -> list[te.Tensor]:
    axis = axis_of(dim, len(x.shape))
    return [
        topi.sort(x, axis, not descending),
        topi.argsort(x, axis=axis, is_ascend=not descending, dtype="int64"),
    ]


