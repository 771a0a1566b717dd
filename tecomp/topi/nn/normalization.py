"""Normalization operators and softmax."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tecomp import DefinitionError, te
from tecomp.ir.nodes.argument_checks import shape_text
from tecomp.schedules import norm as norm_library
from tecomp.schedules import softmax as softmax_library
from tecomp.schedules.common import wide_type
from tecomp.topi import tag
from tecomp.topi.extents import Size, equal, is_multiple, product, quotient
from tecomp.topi.nn.elemwise import channels
from tecomp.topi.transform.views import reshape, transpose
from tecomp.topi.validation import (
    Axes,
    axes_of,
    axis_of,
    check_float,
    float_of,
    integer_of,
    tensor_of,
)


def batch_norm(
    data: te.Tensor,
    gamma: te.Tensor,
    beta: te.Tensor,
    moving_mean: te.Tensor,
    moving_var: te.Tensor,
    axis: int | None = None,
    epsilon: float | None = None,
    center: bool | None = None,
    scale: bool | None = None,
    training: bool | None = None,
    momentum: float | None = None,
) -> list[te.Tensor]:
    """Compute `(data - mean) / sqrt(var + epsilon) * gamma + beta` with statistics per channel.

    Args:
        data: Input tensor, floating-point.
        gamma: Factors, one per channel.
        beta: Summands, one per channel.
        moving_mean: Moving means, one per channel; the means of the normalization unless
            `training`.
        moving_var: Moving variances, one per channel; the variances of the normalization unless
            `training`.
        axis: Channel axis. Default: 1.
        epsilon: Small number that keeps the divisor nonzero. Default: 1e-5.
        center: If True, add `beta`. Default: True.
        scale: If True, multiply by `gamma`. Default: True.
        training: If True, normalize by the mean and variance of `data`. Default: False.
        momentum: Weight of the statistics of `data` in the updated moving statistics. Default: 0.1.

    Returns:
        List of the result, the updated moving means and the updated moving variances.

    Raises:
        DefinitionError: If `axis` is out of bounds, or if its extent differs from the extent of a
            weight.
        TypeMismatchError: If `data` is not floating-point.

    >>> A, c = te.placeholder((2, 8, 4, 4), name="A"), te.placeholder((8,), name="c")
    >>> [x.shape for x in batch_norm(A, c, c, c, c)]
    [(2, 8, 4, 4), (8,), (8,)]
    """
    where = "topi.nn.batch_norm"
    channel = channels(
        data, 1 if axis is None else axis, where, gamma=gamma, beta=beta, moving_mean=moving_mean,
        moving_var=moving_var)
    check_float(data, where)
    mean, var = moving_mean, moving_var
    if training:
        mean, var = _moments(data, [k for k in range(data.ndim) if k != channel], "T_batch_norm")
    dtype = wide_type(data.dtype)
    eps = te.const(1e-5 if epsilon is None else epsilon, dtype)

    def value(*i: te.Expr) -> te.Expr:
        c = i[channel]
        x = (te.cast(data(*i), dtype) - te.cast(mean(c), dtype)) * (
            te.const(1, dtype) / te.sqrt(te.cast(var(c), dtype) + eps))
        x = x if scale is False else x * te.cast(gamma(c), dtype)
        x = x if center is False else x + te.cast(beta(c), dtype)
        return te.cast(x, data.dtype)

    result = te.compute(data.shape, value, name="T_batch_norm", tag=tag.BROADCAST)
    if not training:
        return [result, moving_mean, moving_var]
    weight = 0.1 if momentum is None else momentum
    new_mean = _move_axis(moving_mean, mean, weight, "mean")
    return [result, new_mean, _move_axis(moving_var, var, weight, "var")]


def _move_axis(before: te.Tensor, current: te.Tensor, weight: float, name: str) -> te.Tensor:
    kind = before.dtype

    def value(c: te.Expr) -> te.Expr:
        return before(c) * te.const(1 - weight, kind) + te.cast(current(c), kind) * te.const(
            weight, kind)

    return te.compute(before.shape, value, name=f"T_batch_norm_moving_{name}", tag=tag.BROADCAST)


def _moments(
    data: te.Tensor, axes: Sequence[int], name: str
) -> tuple[te.Tensor, te.Tensor]:
    """Define mean and variance along axes in the wide dtype, the variance by a second pass."""
    dtype = wide_type(data.dtype)
    retained = [k for k in range(data.ndim) if k not in axes]
    shape = tuple(data.shape[k] for k in retained)
    count = te.cast(product(data.shape[k] for k in axes), dtype)

    def total(summand: Callable[[te.Expr, Any], te.Expr], suffix: str) -> te.Tensor:
        runs = {k: te.reduce_axis((0, data.shape[k]), name=f"k{k}") for k in axes}

        def at(*i: te.Expr) -> te.Expr:
            index_of = dict(zip(retained, i, strict=True)) | runs
            element = te.cast(data(*(index_of[k] for k in range(data.ndim))), dtype)
            return te.sum(summand(element, i), axis=list(runs.values()))

        return te.compute(shape, at, name=f"{name}_{suffix}")

    sums = total(lambda x, _: x, "sum")
    mean = te.compute(shape, lambda *i: sums(*i) / count, name=f"{name}_mean")
    squares = total(lambda x, i: (x - mean(*i)) * (x - mean(*i)), "squares")
    return mean, te.compute(shape, lambda *i: squares(*i) / count, name=f"{name}_var")


def _standardize(
    data: te.Tensor, axes: Sequence[int], epsilon: float, name: str,
    finish: Callable[[te.Expr, Sequence[te.Expr]], te.Expr],
) -> te.Tensor:
    """Define `finish((data - mean) / sqrt(var + epsilon), index)` with moments along axes."""
    dtype = wide_type(data.dtype)
    mean, var = _moments(data, axes, name)
    retained = [k for k in range(data.ndim) if k not in axes]
    rate = te.compute(
        var.shape, lambda *i: te.const(1, dtype) / te.sqrt(var(*i) + te.const(epsilon, dtype)),
        name=f"{name}_rate",
    )

    def value(*i: te.Expr) -> te.Expr:
        outer = [i[k] for k in retained]
        x = (te.cast(data(*i), dtype) - mean(*outer)) * rate(*outer)
        return te.cast(finish(x, i), data.dtype)

    return te.compute(data.shape, value, name=name, tag=tag.INJECTIVE)


def _scale(
    x: te.Expr, index: Sequence[te.Expr], scale: te.Tensor | None, shift: te.Tensor | None
) -> te.Expr:
    """Return `x * scale + shift`; None omits a factor or summand."""
    x = x if scale is None else x * te.cast(scale(*index), x.dtype)
    return x if shift is None else x + te.cast(shift(*index), x.dtype)


def _check_weights(
    data: te.Tensor, axes: Sequence[int], where: str, **weights: te.Tensor | None
) -> None:
    """Raise if the shape of a weight differs from the extents of the axes."""
    expected = [data.shape[k] for k in axes]
    for name, x in weights.items():
        if x is None:
            continue
        shape = tensor_of(x, where, name).shape
        if len(shape) != len(expected) or not all(map(equal, shape, expected)):
            raise DefinitionError(
                "{where}: {subject} has shape {shape}, but axes {axes} of {data}, shape "
                "{data_shape}, have extents {expected}; pass one number per element",
                kind="shapes", where=where, subject=name, shape=shape_text(shape), axes=tuple(axes),
                data=data.name, data_shape=shape_text(data.shape), expected=shape_text(expected),
            )


def layer_norm(
    data: te.Tensor,
    gamma: te.Tensor | None,
    beta: te.Tensor | None,
    axis: Axes,
    epsilon: float = 1e-5,
) -> te.Tensor:
    """Compute `(data - mean) / sqrt(variance + epsilon) * gamma + beta` along the given axes.

    Args:
        data: Input tensor, floating-point. float16 and bfloat16 are computed in float32.
        gamma: Factors with the extents of the axes. None means 1.
        beta: Summands with the extents of the axes. None means 0.
        axis: Axis or axes of the mean and variance.
        epsilon: Small number that keeps the divisor nonzero.

    Raises:
        DefinitionError: If an axis is out of bounds, if no axis is given, or if the shape of a
            weight does not match.
        TypeMismatchError: If `data` is not floating-point.

    >>> A, g = te.placeholder((4, 8), name="A"), te.placeholder((8,), name="g")
    >>> layer_norm(A, g, None, -1).shape
    (4, 8)
    """
    where = "topi.nn.layer_norm"
    data, axes = _check_axes(data, axis, where, gamma=gamma, beta=beta)
    if axes == [data.ndim - 1]:
        done: te.Tensor = norm_library.layer_norm(
            data, gamma, beta, epsilon=epsilon, name="T_layer_norm")
        return done
    return _standardize(
        data, axes, epsilon, "T_layer_norm",
        lambda x, i: _scale(x, [i[k] for k in axes], gamma, beta))


def rms_norm(
    data: te.Tensor, weight: te.Tensor | None, axis: Axes, epsilon: float = 1e-5
) -> te.Tensor:
    """Compute `data / sqrt(mean(data * data) + epsilon) * weight` along the given axes.

    Args:
        data: Input tensor, floating-point. float16 and bfloat16 are computed in float32.
        weight: Factors with the extents of the axes. None means 1.
        axis: Axis or axes of the mean.
        epsilon: Small number that keeps the divisor nonzero.

    Raises:
        DefinitionError: If an axis is out of bounds, if no axis is given, or if the shape of a
            weight does not match.
        TypeMismatchError: If `data` is not floating-point.

    >>> rms_norm(te.placeholder((4, 8), name="A"), te.placeholder((8,), name="w"), [1]).shape
    (4, 8)
    """
    where = "topi.nn.rms_norm"
    data, axes = _check_axes(data, axis, where, weight=weight)
    if axes == [data.ndim - 1]:
        result: te.Tensor = norm_library.rms_norm(data, weight, epsilon=epsilon, name="T_rms_norm")
        return result
    dtype = wide_type(data.dtype)
    count = te.cast(product(data.shape[k] for k in axes), dtype)
    squares = _squares(data, axes, "T_rms_norm_squares")
    retained = [k for k in range(data.ndim) if k not in axes]

    def value(*i: te.Expr) -> te.Expr:
        mean = squares(*(i[k] for k in retained)) / count
        x = te.cast(data(*i), dtype) / te.sqrt(mean + te.const(epsilon, dtype))
        return te.cast(_scale(x, [i[k] for k in axes], weight, None), data.dtype)

    return te.compute(data.shape, value, name="T_rms_norm", tag=tag.INJECTIVE)


def _check_axes(
    data: te.Tensor, axis: Axes, where: str, **weights: te.Tensor | None
) -> tuple[te.Tensor, list[int]]:
    data = tensor_of(data, where)
    check_float(data, where)
    axes = axes_of(axis, data.ndim, where)
    if not axes:
        raise DefinitionError(
            "{where}: axis must name at least one axis, got {axis}",
            kind="missing-input", where=where, axis=axis,
        )
    _check_weights(data, axes, where, **weights)
    return data, axes


def _squares(data: te.Tensor, axes: Sequence[int], name: str) -> te.Tensor:
    """Define the sum of squares along axes in the wide dtype."""
    dtype = wide_type(data.dtype)
    retained = [k for k in range(data.ndim) if k not in axes]
    runs = {k: te.reduce_axis((0, data.shape[k]), name=f"k{k}") for k in axes}

    def total(*i: te.Expr) -> te.Expr:
        index_of: dict[int, Any] = dict(zip(retained, i, strict=True)) | runs
        x = te.cast(data(*(index_of[k] for k in range(data.ndim))), dtype)
        return te.sum(x * x, axis=list(runs.values()))

    return te.compute(tuple(data.shape[k] for k in retained), total, name=name)


def instance_norm(
    data: te.Tensor, gamma: te.Tensor, beta: te.Tensor, channel_axis: int, axis: Axes,
    epsilon: float = 1e-5,
) -> te.Tensor:
    """Normalize along the given axes, with a factor and a summand per channel.

    Args:
        data: Input tensor, floating-point. float16 and bfloat16 are computed in float32.
        gamma: Factors, one per channel. None means 1.
        beta: Summands, one per channel. None means 0.
        channel_axis: Channel axis.
        axis: Axis or axes of the mean and variance.
        epsilon: Small number that keeps the divisor nonzero.

    Raises:
        DefinitionError: If an axis is out of bounds, if no axis is given, or if the shape of a
            weight does not match.
        TypeMismatchError: If `data` is not floating-point.

    >>> A, c = te.placeholder((2, 8, 4, 4), name="A"), te.placeholder((8,), name="c")
    >>> instance_norm(A, c, c, 1, [2, 3]).shape
    (2, 8, 4, 4)
    """
    where = "topi.nn.instance_norm"
    data, axes = _check_axes(data, axis, where)
    channel = channels(data, channel_axis, where, gamma=gamma, beta=beta)
    return _standardize(
        data, axes, epsilon, "T_instance_norm",
        lambda x, i: _scale(x, [i[channel]], gamma, beta))


def group_norm(
    data: te.Tensor, gamma: te.Tensor | None, beta: te.Tensor | None, num_groups: int,
    channel_axis: int, axes: Sequence[int], epsilon: float = 1e-5,
) -> te.Tensor:
    """Normalize along the given axes and channel groups, with a factor and a summand per channel.

    Args:
        data: Input tensor, floating-point. float16 and bfloat16 are computed in float32.
        gamma: Factors, one per channel. None means 1.
        beta: Summands, one per channel. None means 0.
        num_groups: Number of channel groups.
        channel_axis: Channel axis.
        axes: Axes of the mean and variance, besides the channels of a group.
        epsilon: Small number that keeps the divisor nonzero.

    Raises:
        DefinitionError: If an axis is out of bounds, if the shape of a weight does not match, or if
            `num_groups` is not known to divide the channels.
        TypeMismatchError: If `data` is not floating-point.

    >>> A, c = te.placeholder((2, 8, 4, 4), name="A"), te.placeholder((8,), name="c")
    >>> group_norm(A, c, c, 2, 1, [2, 3]).shape
    (2, 8, 4, 4)
    """
    where = "topi.nn.group_norm"
    data = tensor_of(data, where)
    check_float(data, where)
    channel = channels(data, channel_axis, where, gamma=gamma, beta=beta)
    other_axes = [k for k in axes_of(axes, data.ndim, where, "axes") if k != channel]
    count, extent = integer_of(num_groups, where, "num_groups", least=1), data.shape[channel]
    if not is_multiple(extent, count):
        reason = "do not divide the channels; pass another number of groups"
        if not isinstance(extent, int):
            reason = (
                "are not known to divide the channels; write the extent as a multiple, "
                f"{count} * n"
            )
        raise DefinitionError(
            "{where}: got {extent} channels and {count} groups, which {reason}",
            kind="shapes", where=where, extent=extent, count=count, reason=reason,
        )
    group_size = quotient(extent, count)
    shape: list[Size] = [*data.shape[:channel], count, group_size, *data.shape[channel + 1 :]]
    runs = [channel + 1, *(k + (k > channel) for k in other_axes)]

    def finish(x: te.Expr, i: Sequence[te.Expr]) -> te.Expr:
        return _scale(x, [i[channel] * group_size + i[channel + 1]], gamma, beta)

    grouped = _standardize(reshape(data, shape), runs, epsilon, "T_group_norm", finish)
    return reshape(grouped, data.shape)


def l2_normalize(data: te.Tensor, eps: float, axis: Axes = None) -> te.Tensor:
    """Compute `data / sqrt(max(sum(data * data), eps))` along the given axes.

    Args:
        data: Input tensor, floating-point. float16 and bfloat16 are computed in float32.
        eps: Lower bound of the sum of squares, which keeps the divisor nonzero.
        axis: Axis or axes of the sum. Negative values count from the last axis. Default: all axes.

    Raises:
        DefinitionError: If an axis is out of bounds, or if there is no axis.
        TypeMismatchError: If `data` is not floating-point.

    >>> l2_normalize(te.placeholder((4, 8), name="A"), 1e-12, 1).shape
    (4, 8)
    """
    where = "topi.nn.l2_normalize"
    data, axes = _check_axes(data, axis, where)
    dtype = wide_type(data.dtype)
    squares = _squares(data, axes, "T_l2_normalize_squares")
    retained = [k for k in range(data.ndim) if k not in axes]

    def value(*i: te.Expr) -> te.Expr:
        total = te.max(squares(*(i[k] for k in retained)), te.const(eps, dtype))
        return te.cast(te.cast(data(*i), dtype) / te.sqrt(total), data.dtype)

    return te.compute(data.shape, value, name="T_l2_normalize", tag=tag.INJECTIVE)


def lrn(
    data: te.Tensor, size: int, axis: int = 1, alpha: float = 0.0001, beta: float = 0.75,
    bias: float = 2,
) -> te.Tensor:
    """Compute local response normalization: `data / (bias + alpha / size * squares) ** beta`.

    The sum `squares` runs over a centered window along the axis.

    Args:
        data: Input tensor, floating-point.
        size: Window extent, odd.
        axis: Axis of the window.
        alpha: Weight of the squares.
        beta: Exponent.
        bias: Summand.

    Raises:
        DefinitionError: If `axis` is out of bounds, or if `size` is even.
        TypeMismatchError: If `data` is not floating-point.

    >>> lrn(te.placeholder((1, 8, 4, 4), name="A"), 5).shape
    (1, 8, 4, 4)
    """
    where = "topi.nn.lrn"
    data = tensor_of(data, where)
    check_float(data, where)
    dim = axis_of(axis, data.ndim, where)
    width = integer_of(size, where, "size", least=1)
    if width % 2 == 0:
        raise DefinitionError(
            "{where}: size must be odd, got {width}",
            kind="invalid-value", where=where, width=width,
        )
    weight, power, base = (
        float_of(value, where, name)
        for value, name in ((alpha, "alpha"), (beta, "beta"), (bias, "bias")))
    dtype = wide_type(data.dtype)
    k = te.reduce_axis((0, width), name="k")

    def squares(*i: te.Expr) -> te.Expr:
        position = i[dim] + k - width // 2
        inside = te.all(position >= 0, position < data.shape[dim])
        x = te.cast(te.if_then_else(
            inside, data(*i[:dim], position, *i[dim + 1 :]), te.const(0, data.dtype)), dtype)
        return te.sum(x * x, axis=k)

    total = te.compute(data.shape, squares, name="T_lrn_squares")

    def value(*i: te.Expr) -> te.Expr:
        scale = te.const(base, dtype) + te.const(weight / width, dtype) * total(*i)
        return te.cast(
            te.cast(data(*i), dtype) / te.power(scale, te.const(power, dtype)), data.dtype)

    return te.compute(data.shape, value, name="T_lrn", tag=tag.INJECTIVE)


def softmax(x: te.Tensor, axis: int = -1) -> te.Tensor:
    """Compute `exp(x) / sum(exp(x))` along an axis; the dtype is kept.

    Args:
        x: Input tensor, floating-point. float16 and bfloat16 are computed in float32.
        axis: Axis; negative values count from the last axis.

    Raises:
        DefinitionError: If `axis` is out of bounds.
        TypeMismatchError: If `x` is not floating-point.

    >>> softmax(te.placeholder((4, 8), name="A")).shape
    (4, 8)
    """
    rows, order = _rows(x, axis, "topi.nn.softmax")
    done = softmax_library.define(rows, name="T_softmax" if order is None else "T_softmax_rows")
    return done if order is None else transpose(done, order)


fast_softmax = softmax


def log_softmax(x: te.Tensor, axis: int = -1) -> te.Tensor:
    """Compute the logarithm of `softmax` along an axis without intermediate overflow.

    Args:
        x: Input tensor, floating-point. float16 and bfloat16 are computed in float32.
        axis: Axis; negative values count from the last axis.

    Raises:
        DefinitionError: If `axis` is out of bounds.
        TypeMismatchError: If `x` is not floating-point.

    >>> log_softmax(te.placeholder((4, 8), name="A")).shape
    (4, 8)
    """
    rows, order = _rows(x, axis, "topi.nn.log_softmax")
    *outer, n = rows.shape
    dtype = wide_type(rows.dtype)
    k, r = (te.reduce_axis((0, n), name=name) for name in ("k", "r"))
    row_max = te.compute(
        outer, lambda *i: te.max(te.cast(rows(*i, k), dtype), axis=k), name="T_log_softmax_most")
    total = te.compute(
        outer, lambda *i: te.sum(te.exp(te.cast(rows(*i, r), dtype) - row_max(*i)), axis=r),
        name="T_log_softmax_total",
    )
    result = te.compute(
        rows.shape,
        lambda *i: te.cast(
            te.cast(rows(*i), dtype) - row_max(*i[:-1]) - te.log(total(*i[:-1])), rows.dtype),
        name="T_log_softmax",
    )
    return result if order is None else transpose(result, order)


def _rows(x: te.Tensor, axis: int, where: str) -> tuple[te.Tensor, list[int] | None]:
    """Swap an axis with the last one; return the tensor and the permutation, None for the last."""
    x = tensor_of(x, where, "x")
    check_float(x, where)
    dim = axis_of(axis, x.ndim, where)
    last = x.ndim - 1
    if dim == last:
        return x, None
    order = list(range(x.ndim))
    order[dim], order[last] = last, dim
    return transpose(x, order), order
