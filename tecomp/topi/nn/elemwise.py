"""Activation functions and losses."""

from __future__ import annotations

from tecomp import DefinitionError, te
from tecomp.ir.nodes.argument_checks import shape_text
from tecomp.schedules.common import wide_type
from tecomp.topi import tag
from tecomp.topi.extents import differ, equal
from tecomp.topi.math import define_elementwise
from tecomp.topi.reduction import define_reduction
from tecomp.topi.validation import (
    axis_of,
    check_float,
    check_integer,
    check_rank,
    integer_of,
    tensor_of,
    validate_choice,
)


def relu(x: te.Tensor) -> te.Tensor:
    """Compute `max(x, 0)` element-wise; NaN propagates.

    Args:
        x: Input tensor.

    >>> print(relu(te.placeholder((4, 8), name="A")).op)
    T_relu[i0, i1] = max(A[i0, i1], float32(0.0))
    """
    return define_elementwise(x, lambda value: te.max(value, te.const(0, value.dtype)), "relu")


def leaky_relu(x: te.Tensor, alpha: float) -> te.Tensor:
    """Multiply the elements that are not positive by `alpha`.

    Args:
        x: Input tensor, floating-point.
        alpha: Factor.

    Raises:
        TypeMismatchError: If `x` is not floating-point.

    >>> leaky_relu(te.placeholder((4, 8), name="A"), 0.1).shape
    (4, 8)
    """
    check_float(tensor_of(x, "topi.nn.leaky_relu", "x"), "topi.nn.leaky_relu")

    def of(value: te.Expr) -> te.Expr:
        zero = te.const(0, value.dtype)
        return te.Select(value > zero, value, value * te.const(alpha, value.dtype))

    return define_elementwise(x, of, "leaky_relu")


def softplus(x: te.Tensor, beta: float = 1.0, threshold: float = 20.0) -> te.Tensor:
    """Compute `log(1 + exp(beta * x)) / beta`, or `x` where `beta * x` exceeds the threshold.

    float16 and bfloat16 are computed in float32.

    Raises:
        TypeMismatchError: If `x` is not floating-point.

    >>> softplus(te.placeholder((4, 8), name="A")).shape
    (4, 8)
    """
    check_float(tensor_of(x, "topi.nn.softplus", "x"), "topi.nn.softplus")
    dtype = wide_type(x.dtype)

    def of(value: te.Expr) -> te.Expr:
        scaled = te.cast(value, dtype) * te.const(beta, dtype)
        soft = te.log1p(te.exp(te.min(scaled, te.const(threshold, dtype)))) / te.const(beta, dtype)
        return te.Select(
            scaled > te.const(threshold, dtype), value, te.cast(soft, value.dtype))

    return define_elementwise(x, of, "softplus")


def prelu(x: te.Tensor, slope: te.Tensor, axis: int = 1) -> te.Tensor:
    """Multiply the elements that are not positive by the slope of their channel.

    Args:
        x: Input tensor.
        slope: Slopes, one per channel.
        axis: Channel axis.

    Raises:
        DefinitionError: If `axis` is out of bounds, or if its extent differs from the extent of
            `slope`.

    >>> A, s = te.placeholder((2, 8, 4), name="A"), te.placeholder((8,), name="s")
    >>> prelu(A, s).shape
    (2, 8, 4)
    """
    where = "topi.nn.prelu"
    channel = channels(x, axis, where, slope=tensor_of(slope, where, "slope"))

    def value(*i: te.Expr) -> te.Expr:
        element = x(*i)
        return te.Select(element > te.const(0, x.dtype), element, element * slope(i[channel]))

    return te.compute(x.shape, value, name="T_prelu", tag=tag.BROADCAST)


def bias_add(data: te.Tensor, bias: te.Tensor, axis: int = 1) -> te.Tensor:
    """Add the bias of its channel to each element.

    Args:
        data: Input tensor.
        bias: Biases, one per channel.
        axis: Channel axis.

    Raises:
        DefinitionError: If `axis` is out of bounds, or if its extent differs from the extent of
            `bias`.

    >>> A, b = te.placeholder((2, 8, 4), name="A"), te.placeholder((8,), name="b")
    >>> bias_add(A, b).shape
    (2, 8, 4)
    """
    where = "topi.nn.bias_add"
    channel = channels(data, axis, where, bias=tensor_of(bias, where, "bias"))
    return te.compute(
        data.shape, lambda *i: data(*i) + bias(i[channel]), name="T_bias_add", tag=tag.BROADCAST)


def channels(data: te.Tensor, axis: int, where: str, **weights: te.Tensor | None) -> int:
    """Return the channel axis after checking the tensors with one number per channel.

    Raises:
        DefinitionError: If `axis` is out of bounds, or if its extent differs from the extent of a
            tensor.
    """
    data = tensor_of(data, where)
    channel = axis_of(axis, data.ndim, where)
    for name, x in weights.items():
        if x is None:
            continue
        check_rank(tensor_of(x, where, name), 1, where, name)
        if not equal(x.shape[0], data.shape[channel]):
            raise DefinitionError(
                "{where}: {subject} has shape {shape}, but axis {axis} of {data}, shape "
                "{data_shape}, has extent {extent}; pass one number per channel",
                kind="shapes", where=where, subject=name, shape=shape_text(x.shape), axis=channel,
                data=data.name, data_shape=shape_text(data.shape), extent=data.shape[channel],
            )
    return channel


def _scale_shift(
    data: te.Tensor, scale: te.Tensor, shift: te.Tensor, axis: int, name: str
) -> te.Tensor:
    where = f"topi.nn.{name}"
    channel = channels(
        data, axis, where, Scale=tensor_of(scale, where, "Scale"),
        Shift=tensor_of(shift, where, "Shift"),
    )
    return te.compute(
        data.shape, lambda *i: data(*i) * scale(i[channel]) + shift(i[channel]), name="ScaleShift",
        tag=tag.BROADCAST,
    )


def scale_shift_nchw(Input: te.Tensor, Scale: te.Tensor, Shift: te.Tensor) -> te.Tensor:
    """Scale and shift each channel of images, layout NCHW.

    Args:
        Input: Images (n, c, h, w).
        Scale: Factors, shape (c,).
        Shift: Summands, shape (c,).

    Raises:
        DefinitionError: If `Scale` or `Shift` does not have one number per channel.

    >>> X = te.placeholder((1, 3, 8, 8), name="X")
    >>> scale_shift_nchw(X, te.placeholder((3,)), te.placeholder((3,))).shape
    (1, 3, 8, 8)
    """
    return _scale_shift(Input, Scale, Shift, 1, "scale_shift_nchw")


def scale_shift_nhwc(Input: te.Tensor, Scale: te.Tensor, Shift: te.Tensor) -> te.Tensor:
    """Scale and shift each channel of images, layout NHWC.

    Args:
        Input: Images (n, h, w, c).
        Scale: Factors, shape (c,).
        Shift: Summands, shape (c,).

    Raises:
        DefinitionError: If `Scale` or `Shift` does not have one number per channel.

    >>> X = te.placeholder((1, 8, 8, 3), name="X")
    >>> scale_shift_nhwc(X, te.placeholder((3,)), te.placeholder((3,))).shape
    (1, 8, 8, 3)
    """
    return _scale_shift(Input, Scale, Shift, -1, "scale_shift_nhwc")


def nll_loss(
    predictions: te.Tensor, targets: te.Tensor, weights: te.Tensor, reduction: str,
    ignore_index: int,
) -> te.Tensor:
    """Compute the weighted negative log-likelihood loss.

    Args:
        predictions: Log-probabilities, shape (n, classes, ...) or (classes,), floating-point.
        targets: Integer class indices, shape (n, ...) or ().
        weights: Class weights, shape (classes,).
        reduction: "mean" for the weighted mean, "sum" or "none".
        ignore_index: Target value that is ignored.

    Raises:
        DefinitionError: If `reduction` is unknown, or if the shapes do not match.
        TypeMismatchError: If `targets` does not have an integer dtype, or if `predictions` is not
            floating-point.

    >>> P, T = te.placeholder((4, 8), name="P"), te.placeholder((4,), "int32", name="T")
    >>> nll_loss(P, T, te.placeholder((8,), name="w"), "mean", -100).shape
    ()
    """
    where = "topi.nn.nll_loss"
    predictions = tensor_of(predictions, where, "predictions")
    check_float(predictions, where)
    check_integer(tensor_of(targets, where, "targets"), where, "targets")
    validate_choice(reduction, ("mean", "sum", "none"), where, "reduction")
    channel = 0 if predictions.ndim == 1 else 1
    channels(predictions, channel, where, weights=tensor_of(weights, where, "weights"))
    target_shape = (*predictions.shape[:channel], *predictions.shape[channel + 1 :])
    if targets.ndim != len(target_shape) or any(map(differ, targets.shape, target_shape)):
        raise DefinitionError(
            "{where}: predictions has shape {shape} and targets has shape {targets_shape}, "
            "expected {rest}; pass one target per prediction",
            kind="shapes", where=where, shape=shape_text(predictions.shape),
            targets_shape=shape_text(targets.shape), rest=shape_text(target_shape),
        )
    ignored = integer_of(ignore_index, where, "ignore_index")
    zero = te.const(0, predictions.dtype)

    def weight(*i: te.Expr) -> te.Expr:
        target = targets(*i)
        return te.if_then_else(target == ignored, zero, weights(target))

    def loss(*i: te.Expr) -> te.Expr:
        target = targets(*i)
        chosen = predictions(*i[:channel], target, *i[channel:])
        return te.if_then_else(target == ignored, zero, -chosen * weights(target))

    losses = te.compute(targets.shape, loss, name="nll_loss", tag=tag.INJECTIVE)
    if reduction == "none":
        return losses
    total = define_reduction(losses, None, False, "sum", "nll_loss")
    if reduction == "sum":
        return total
    shares = te.compute(targets.shape, weight, name="nll_weight", tag=tag.INJECTIVE)
    count = define_reduction(shares, None, False, "sum", "nll_weight")
    return te.compute((), lambda: total() / count(), name="nll_loss_mean", tag=tag.ELEMWISE)
