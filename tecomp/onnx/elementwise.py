"""Element-wise operators and reductions."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any

import numpy as np

from tecomp import te, topi
from tecomp.onnx.node import OpNode, operator
from tecomp.operations import ELEMENT_TYPES, ElementType, element_type

_UNARY: dict[str, Callable[[te.Tensor], Any]] = {
    "Abs": topi.abs, "Acos": topi.acos, "Acosh": topi.acosh, "Asin": topi.asin,
    "Asinh": topi.asinh, "Atan": topi.atan, "Atanh": topi.atanh, "BitwiseNot": topi.bitwise_not,
    "Ceil": topi.ceil, "Cos": topi.cos, "Cosh": topi.cosh, "Erf": topi.erf, "Exp": topi.exp,
    "Floor": topi.floor, "Identity": topi.identity, "IsNaN": topi.isnan, "Log": topi.log,
    "Neg": topi.negative, "Not": topi.logical_not, "Relu": topi.nn.relu,
    "Sigmoid": topi.sigmoid, "Sign": topi.sign, "Sin": topi.sin, "Sinh": topi.sinh,
    "Softplus": topi.nn.softplus, "Sqrt": topi.sqrt, "Tan": topi.tan, "Tanh": topi.tanh,
}
_BINARY: dict[str, Callable[[te.Tensor, te.Tensor], Any]] = {
    "Add": topi.add, "And": topi.logical_and, "BitwiseAnd": topi.bitwise_and,
    "BitwiseOr": topi.bitwise_or, "BitwiseXor": topi.bitwise_xor, "Equal": topi.equal,
    "Greater": topi.greater, "GreaterOrEqual": topi.greater_equal, "Less": topi.less,
    "LessOrEqual": topi.less_equal, "Mul": topi.multiply, "Or": topi.logical_or,
    "Sub": topi.subtract, "Xor": topi.logical_xor,
}
_VARIADIC = {"Max": topi.maximum, "Min": topi.minimum, "Sum": topi.add}


def _of_unary(function: Any) -> Callable[[OpNode], te.Tensor]:
    return lambda node: function(node.tensor(0))


def _of_binary(function: Callable[[te.Tensor, te.Tensor], Any]) -> Callable[[OpNode], te.Tensor]:
    return lambda node: function(node.tensor(0), node.tensor(1))


def _of_any_number(
    function: Callable[[te.Tensor, te.Tensor], Any]
) -> Callable[[OpNode], te.Tensor]:
    return lambda node: reduce(function, node.tensors())


_TABLES: tuple[tuple[dict[str, Any], Any], ...] = (
    (_UNARY, _of_unary), (_BINARY, _of_binary), (_VARIADIC, _of_any_number))
for _names, _translate in _TABLES:
    for _name, _function in _names.items():
        operator(_name)(_translate(_function))


def of_elements(x: te.Tensor, element: Callable[[te.Expr], te.Expr], name: str) -> te.Tensor:
    """Return a tensor with a function of each element."""
    result: te.Tensor = te.compute(x.shape, lambda *i: element(x(*i)), name=name)
    return result


@operator("Mean")
def _mean(node: OpNode) -> te.Tensor:
    return topi.multiply(reduce(topi.add, node.tensors()), 1 / len(node.inputs))


@operator("Reciprocal")
def _reciprocal(node: OpNode) -> te.Tensor:
    return of_elements(node.tensor(0), lambda x: te.const(1, x.dtype) / x, "reciprocal")


@operator("Div")
def _divide(node: OpNode) -> te.Tensor:
    x, y = node.tensor(0), node.tensor(1)
    # Quotients of integers are truncated.
    return topi.divide(x, y)


@operator("Mod")
def _mod(node: OpNode) -> te.Tensor:
    function = topi.mod if node.attribute("fmod", 0) else topi.floor_mod
    return function(node.tensor(0), node.tensor(1))


@operator("Pow")
def _power(node: OpNode) -> te.Tensor:
    x, y = node.tensor(0), node.tensor(1)
    exponent = node.inputs[1]
    if isinstance(exponent, np.ndarray) and exponent.size == 1 and exponent.item() == 2:
        return topi.multiply(x, x)
    return topi.cast(topi.power(x, topi.cast(y, str(x.dtype))), str(x.dtype))


@operator("BitShift")
def _shift(node: OpNode) -> te.Tensor:
    is_left = node.attribute("direction") == "LEFT"
    return (topi.left_shift if is_left else topi.right_shift)(node.tensor(0), node.tensor(1))


@operator("Where")
def _where(node: OpNode) -> te.Tensor:
    return topi.where(*node.tensors())


@operator("Clip")
def _clip(node: OpNode) -> te.Tensor:
    x = node.tensor(0)
    for position, name, function in ((1, "min", topi.maximum), (2, "max", topi.minimum)):
        if node.attribute(name) is not None:
            x = function(x, te.const(node.attribute(name), str(x.dtype)))
        elif node.has(position):
            x = function(x, node.tensor(position))
    return x


@operator("Cast", "CastLike")
def _cast(node: OpNode) -> te.Tensor:
    x = node.tensor(0)
    if node.kind == "CastLike":
        dtype = str(getattr(node.inputs[1], "dtype", None))
    else:
        dtype = node.dtype_attribute("to", "undefined")
    row = _ELEMENT_TYPES.get(dtype)
    if row is None:
        raise node.error("the dtype {dtype} is not supported", dtype=dtype)
    if row.kind == "float" and not row.is_signed:
        return _to_power_of_two(x, row, node)
    if row.kind.startswith("float") and row.bits <= 8 and node.attribute("saturate", 1):
        x = saturate(x, row.largest)
    if row.kind in ("int", "uint") and row.bits < 8:
        # Values out of range keep their low bits (ONNX, table of the operator Cast).
        return topi.cast(topi.cast(x, "int32"), dtype)
    return topi.cast(x, dtype)


_ELEMENT_TYPES = {row.name: row for row in ELEMENT_TYPES}


def saturate(x: te.Tensor, limit: float) -> te.Tensor:
    """Clip values to [-limit, limit]; NaN stays NaN (ONNX, operator Cast, attribute saturate)."""
    row = _ELEMENT_TYPES[str(x.dtype)]
    if row.bits <= 8 or not row.kind.startswith("float"):
        x = topi.cast(x, "float32")  # the limit may exceed the range of x

    def clip(value: te.Expr) -> te.Expr:
        bound = te.const(limit, x.dtype)
        return te.if_then_else(te.isnan(value), value, te.max(te.min(value, bound), -bound))

    return of_elements(x, clip, "saturated")


def _to_power_of_two(x: te.Tensor, row: ElementType, node: OpNode) -> te.Tensor:
    """Convert magnitudes to powers of two (ONNX, operator Cast, attribute round_mode)."""
    fraction = element_type("float32").fraction_bits
    infinity = te.const(element_type("float32").largest_code + 1, "uint32")
    nan = te.const(row.largest_code + 1, "uint32")
    largest = te.const(row.largest_code, "uint32") if node.attribute("saturate", 1) else nan
    half = 1 << fraction - 1
    offsets = {"up": 2 * half - 1, "down": 0, "nearest": half}
    mode = node.attribute("round_mode", "up")
    if mode not in offsets:
        raise node.error("the round_mode {mode} is not supported", mode=mode)
    offset = offsets[mode]

    def power(value: te.Expr) -> te.Expr:
        bits = te.reinterpret("uint32", te.cast(value, "float32")) & te.const(2**31 - 1, "uint32")
        shift: te.Expr = te.const(offset, "uint32")
        if offset == half:  # the smallest power is a subnormal number, which stays as it is
            shift = te.if_then_else(bits < te.const(2 * half, "uint32"), shift - 1, shift)
        code = te.min((bits + shift) >> fraction, largest)
        chosen = te.if_then_else(bits < infinity, code, nan)
        return te.reinterpret(row.name, te.cast(chosen, f"uint{row.bits}"))

    return of_elements(x, power, "power_of_two")


def _activation(
    name: str, element: Callable[..., te.Expr], **defaults: float
) -> None:
    def define(node: OpNode) -> te.Tensor:
        values = [node.attribute(key, default) for key, default in defaults.items()]
        return of_elements(
            node.tensor(0), lambda x: element(x, *(te.const(v, x.dtype) for v in values)), name)

    operator(name)(define)


def _zero(x: te.Expr) -> te.Expr:
    return te.const(0, x.dtype)


def _unit(x: te.Expr) -> te.Expr:
    return te.const(1, x.dtype)


def _between(x: te.Expr) -> te.Expr:
    return te.max(te.min(x, _unit(x)), _zero(x))


_activation("LeakyRelu", lambda x, a: te.select(x < _zero(x), a * x, x), alpha=0.01)
_activation("ThresholdedRelu", lambda x, a: te.select(x > a, x, _zero(x)), alpha=1.0)
_activation(
    "Elu", lambda x, a: te.select(x < _zero(x), a * (te.exp(x) - _unit(x)), x), alpha=1.0)
_activation(
    "Celu", lambda x, a: te.max(x, _zero(x)) + te.min(_zero(x), a * (te.exp(x / a) - _unit(x))),
    alpha=1.0,
)
_activation(
    "Selu", lambda x, a, g: g * te.select(x > _zero(x), x, a * (te.exp(x) - _unit(x))),
    alpha=1.67326319217681884765625, gamma=1.05070102214813232421875,
)
_activation("HardSigmoid", lambda x, a, b: _between(a * x + b), alpha=0.2, beta=0.5)
_activation(
    "HardSwish", lambda x: x * _between(x * te.const(1 / 6, x.dtype) + te.const(0.5, x.dtype)))
_activation("Softsign", lambda x: x / (_unit(x) + te.abs(x)))
_activation("Mish", lambda x: x * te.tanh(te.log(_unit(x) + te.exp(x))))


@operator("Gelu")
def _gelu(node: OpNode) -> te.Tensor:
    def exact(x: te.Expr) -> te.Expr:
        return x * te.const(0.5, x.dtype) * (_unit(x) + te.erf(x * te.const(0.5**0.5, x.dtype)))

    def approximate(x: te.Expr) -> te.Expr:
        inner = te.const((2 / np.pi) ** 0.5, x.dtype) * (
            x + te.const(0.044715, x.dtype) * x * x * x)
        return x * te.const(0.5, x.dtype) * (_unit(x) + te.tanh(inner))

    is_exact = node.attribute("approximate", "none") == "none"
    return of_elements(node.tensor(0), exact if is_exact else approximate, "gelu")


@operator("PRelu")
def _prelu(node: OpNode) -> te.Tensor:
    x, slope = node.tensor(0), node.tensor(1)
    return topi.where(topi.less(x, te.const(0, str(x.dtype))), topi.multiply(x, slope), x)


def _square_of(x: te.Tensor) -> te.Tensor:
    return topi.multiply(x, x)


def _mean_over(x: te.Tensor, axis: list[int] | None, keepdims: bool) -> te.Tensor:
    axes = range(len(x.shape)) if axis is None else axis
    count = reduce(lambda n, k: n * x.shape[k], axes, 1)
    total = topi.sum(x, axis, keepdims)
    if isinstance(count, int):
        return topi.divide(total, te.const(count, str(x.dtype)))
    return topi.divide(total, te.cast(count, str(x.dtype)))


_REDUCTIONS: dict[str, Callable[..., te.Tensor]] = {
    "ReduceSum": topi.sum, "ReduceMax": topi.max, "ReduceMin": topi.min, "ReduceProd": topi.prod,
    "ReduceMean": _mean_over,
    "ReduceL1": lambda x, *a: topi.sum(topi.abs(x), *a),
    "ReduceL2": lambda x, *a: topi.sqrt(topi.sum(_square_of(x), *a)),
    "ReduceSumSquare": lambda x, *a: topi.sum(_square_of(x), *a),
    "ReduceLogSum": lambda x, *a: topi.log(topi.sum(x, *a)),
    "ReduceLogSumExp": topi.logsumexp,
}


@operator(*_REDUCTIONS)
def _reduction(node: OpNode) -> te.Tensor:
    x, axes = node.tensor(0), node.axes()
    if not axes:
        if (axes is not None and node.attribute("noop_with_empty_axes", 0)) or (
            axes is None and node.attribute("noop_with_empty_axes", 0)
        ):
            axes = []
        else:
            axes = None
    if axes == []:
        return topi.identity(x)
    is_bool = str(x.dtype) == "bool"
    x = topi.cast(x, "uint8") if is_bool else x  # maxima of nothing are False
    result = _REDUCTIONS[node.kind](x, axes, bool(node.attribute("keepdims", 1)))
    return topi.cast(result, "bool") if is_bool else result


@operator("ArgMax", "ArgMin")
def _search(node: OpNode) -> te.Tensor:
    function = topi.argmax if node.kind == "ArgMax" else topi.argmin
    found = function(
        node.tensor(0), node.attribute("axis", 0), bool(node.attribute("keepdims", 1)),
        bool(node.attribute("select_last_index", 0)),
    )
    return topi.cast(found, "int64")


@operator("CumSum")
def _cumulative_sum(node: OpNode) -> te.Tensor:
    x, axis = node.tensor(0), int(node.known(1).item())
    is_reversed, exclusive = node.attribute("reverse", 0), bool(node.attribute("exclusive", 0))
    x = topi.flip(x, axis) if is_reversed else x
    total = topi.cumsum(x, axis, str(x.dtype), exclusive)
    return topi.flip(total, axis) if is_reversed else total


@operator("Softmax", "LogSoftmax")
def _softmax(node: OpNode) -> te.Tensor:
    x = node.tensor(0)
    function = topi.nn.softmax if node.kind == "Softmax" else topi.nn.log_softmax
    axis = node.attribute("axis", -1 if node.opset >= 13 else 1)
    if node.opset >= 13 or axis % len(x.shape) == len(x.shape) - 1:
        return function(x, axis)
    from tecomp.onnx.shapes import matrix_of
    return topi.reshape(function(matrix_of(x, axis), 1), x.shape)
