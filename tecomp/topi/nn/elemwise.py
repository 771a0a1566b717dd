"""Activation functions and losses."""

from __future__ import annotations

from tecomp import DefinitionError, te
from tecomp.ir.nodes.argument_checks import shape_text
from tecomp.schedules.common import wide_type
from tecomp.topi import tag
from tecomp.topi.extents import differ, equal
from tecomp.topi.math import each
from tecomp.topi.reduction import reduced
from tecomp.topi.validation import (
    axis_of,
    check_float,
    check_integer,
    check_rank,
    integer_of,
    one_of,
    tensor_of,
)


def relu(x: te.Tensor) -> te.Tensor:
    """The greater of each element and 0; NaN stays.

    Args:
        x: the tensor.

    >>> print(relu(te.placeholder((4, 8), name="A")).op)
    T_relu[i0, i1] = max(A[i0, i1], float32(0.0))
    """
    return each(x, lambda value: te.max(value, te.const(0, value.dtype)), "relu")


def leaky_relu(x: te.Tensor, alpha: float) -> te.Tensor:
    """Each element, times `alpha` where it is not above 0.

    Args:
        x: floats.
        alpha: the factor.

    Raises:
        TypeMismatchError: the elements are no floats.

    >>> leaky_relu(te.placeholder((4, 8), name="A"), 0.1).shape
    (4, 8)
    """
    check_float(tensor_of(x, "topi.nn.leaky_relu", "x"), "topi.nn.leaky_relu")

    def of(value: te.Expr) -> te.Expr:
        zero = te.const(0, value.dtype)
        return te.Select(value > zero, value, value * te.const(alpha, value.dtype))

    return each(x, of, "leaky_relu")


def softplus(x: te.Tensor, beta: float = 1.0, threshold: float = 20.0) -> te.Tensor:
    """`log(1 + exp(beta * x)) / beta`, or x itself where `beta * x` is above a threshold.

    >>> softplus(te.placeholder((4, 8), name="A")).shape
    (4, 8)
    """
    check_float(tensor_of(x, "topi.nn.softplus", "x"), "topi.nn.softplus")
    wide = wide_type(x.dtype)

    def of(value: te.Expr) -> te.Expr:
        scaled = te.cast(value, wide) * te.const(beta, wide)
        soft = te.log1p(te.exp(te.min(scaled, te.const(threshold, wide)))) / te.const(beta, wide)
        return te.Select(
            scaled > te.const(threshold, wide), value, te.cast(soft, value.dtype))

    return each(x, of, "softplus")


def prelu(x: te.Tensor, slope: te.Tensor, axis: int = 1) -> te.Tensor:
    """Each element, times the slope of its channel where it is not above 0.

    Args:
        x: the tensor.
        slope: one number for each channel.
        axis: of the channels.

    Raises:
        DefinitionError: there is no such axis, or it has another extent than `slope`.

    >>> A, s = te.placeholder((2, 8, 4), name="A"), te.placeholder((8,), name="s")
    >>> prelu(A, s).shape
    (2, 8, 4)
    """
    where = "topi.nn.prelu"
    along = channels(x, axis, where, slope=tensor_of(slope, where, "slope"))

    def value(*i: te.Expr) -> te.Expr:
        element = x(*i)
        return te.Select(element > te.const(0, x.dtype), element, element * slope(i[along]))

    return te.compute(x.shape, value, name="T_prelu", tag=tag.BROADCAST)


def bias_add(data: te.Tensor, bias: te.Tensor, axis: int = 1) -> te.Tensor:
    """Each element plus the bias of its channel.

    Args:
        data: the tensor.
        bias: one number for each channel.
        axis: of the channels.

    Raises:
        DefinitionError: there is no such axis, or it has another extent than `bias`.

    >>> A, b = te.placeholder((2, 8, 4), name="A"), te.placeholder((8,), name="b")
    >>> bias_add(A, b).shape
    (2, 8, 4)
    """
    where = "topi.nn.bias_add"
    along = channels(data, axis, where, bias=tensor_of(bias, where, "bias"))
    return te.compute(
        data.shape, lambda *i: data(*i) + bias(i[along]), name="T_bias_add", tag=tag.BROADCAST)


def channels(data: te.Tensor, axis: int, where: str, **given: te.Tensor | None) -> int:
    """The axis of channels, for each of which some tensors have one number.

    Raises:
        DefinitionError: there is no such axis, or it has another extent than one of these.
    """
    data = tensor_of(data, where)
    along = axis_of(axis, data.ndim, where)
    for what, x in given.items():
        if x is None:
            continue
        check_rank(tensor_of(x, where, what), 1, where, what)
        if not equal(x.shape[0], data.shape[along]):
            raise DefinitionError(
                f"{where}: {what} has shape {shape_text(x.shape)}, and axis {along} of "
                f"{data.name}, shape {shape_text(data.shape)}, has extent {data.shape[along]}; "
                "give one number for each channel",
                kind="shapes",
            )
    return along


def _scale_shift(
    data: te.Tensor, scale: te.Tensor, shift: te.Tensor, axis: int, name: str
) -> te.Tensor:
    where = f"topi.nn.{name}"
    along = channels(
        data, axis, where, Scale=tensor_of(scale, where, "Scale"),
        Shift=tensor_of(shift, where, "Shift"),
    )
    return te.compute(
        data.shape, lambda *i: data(*i) * scale(i[along]) + shift(i[along]), name="ScaleShift",
        tag=tag.BROADCAST,
    )


def scale_shift_nchw(Input: te.Tensor, Scale: te.Tensor, Shift: te.Tensor) -> te.Tensor:
    """Images, channels first, times one number for each channel, plus another.

    Args:
        Input: images (n, c, h, w).
        Scale: factors, shape (c,).
        Shift: summands, shape (c,).

    Raises:
        DefinitionError: they are not one for each channel.

    >>> X = te.placeholder((1, 3, 8, 8), name="X")
    >>> scale_shift_nchw(X, te.placeholder((3,)), te.placeholder((3,))).shape
    (1, 3, 8, 8)
    """
    return _scale_shift(Input, Scale, Shift, 1, "scale_shift_nchw")


def scale_shift_nhwc(Input: te.Tensor, Scale: te.Tensor, Shift: te.Tensor) -> te.Tensor:
    """Images, channels last, times one number for each channel, plus another.

    Args:
        Input: images (n, h, w, c).
        Scale: factors, shape (c,).
        Shift: summands, shape (c,).

    Raises:
        DefinitionError: they are not one for each channel.

    >>> X = te.placeholder((1, 8, 8, 3), name="X")
    >>> scale_shift_nhwc(X, te.placeholder((3,)), te.placeholder((3,))).shape
    (1, 8, 8, 3)
    """
    return _scale_shift(Input, Scale, Shift, -1, "scale_shift_nhwc")


def nll_loss(
    predictions: te.Tensor, targets: te.Tensor, weights: te.Tensor, reduction: str,
    ignore_index: int,
) -> te.Tensor:
    """The logarithms of probabilities of what is right, negated and weighted.

    Args:
        predictions: logarithms of probabilities, shape (n, classes, ...), or (classes,).
        targets: which class is right, shape (n, ...), or ().
        weights: of the classes.
        reduction: `mean` by weight, `sum`, or `none`.
        ignore_index: a target that does not count.

    Raises:
        DefinitionError: there is no such reduction, or the shapes do not fit.
        TypeMismatchError: the targets are no integers, or the predictions no floats.

    >>> P, T = te.placeholder((4, 8), name="P"), te.placeholder((4,), "int32", name="T")
    >>> nll_loss(P, T, te.placeholder((8,), name="w"), "mean", -100).shape
    ()
    """
    where = "topi.nn.nll_loss"
    predictions = tensor_of(predictions, where, "predictions")
    check_float(predictions, where)
    check_integer(tensor_of(targets, where, "targets"), where, "targets")
    one_of(reduction, ("mean", "sum", "none"), where, "reduction")
    along = 0 if predictions.ndim == 1 else 1
    channels(predictions, along, where, weights=tensor_of(weights, where, "weights"))
    rest = (*predictions.shape[:along], *predictions.shape[along + 1 :])
    if targets.ndim != len(rest) or any(map(differ, targets.shape, rest)):
        raise DefinitionError(
            f"{where}: predictions has shape {shape_text(predictions.shape)} and targets "
            f"{shape_text(targets.shape)}; give one target for each prediction: {shape_text(rest)}",
            kind="shapes",
        )
    ignored = integer_of(ignore_index, where, "ignore_index")
    zero = te.const(0, predictions.dtype)

    def weight(*i: te.Expr) -> te.Expr:
        target = targets(*i)
        return te.if_then_else(target == ignored, zero, weights(target))

    def loss(*i: te.Expr) -> te.Expr:
        target = targets(*i)
        chosen = predictions(*i[:along], target, *i[along:])
        return te.if_then_else(target == ignored, zero, -chosen * weights(target))

    losses = te.compute(targets.shape, loss, name="nll_loss", tag=tag.INJECTIVE)
    if reduction == "none":
        return losses
    total = reduced(losses, None, False, "sum", "nll_loss")
    if reduction == "sum":
        return total
    shares = te.compute(targets.shape, weight, name="nll_weight", tag=tag.INJECTIVE)
    count = reduced(shares, None, False, "sum", "nll_weight")
    return te.compute((), lambda: total() / count(), name="nll_loss_mean", tag=tag.ELEMWISE)
