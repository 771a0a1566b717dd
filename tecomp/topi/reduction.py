"""Reductions along axes: sums, products, extremes and their positions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias

from tecomp import DefinitionError, TypeMismatchError, te
from tecomp.ir.nodes.argument_checks import shape_text
from tecomp.schedules import argreduce, reduce
from tecomp.topi import tag
from tecomp.topi.extents import Size, equal, minus, product
from tecomp.topi.transform.views import flip, reshape, transpose
from tecomp.topi.validation import Axes, as_bool, axes_of, shape_of, tensor_of

Operation: TypeAlias = Literal["sum", "prod", "max", "min"]


def sum(data: te.Tensor, axis: Axes = None, keepdims: bool = False) -> te.Tensor:
    """Compute the sum along the given axes; an empty reduction gives 0.

    Args:
        data: Input tensor. Booleans are counted as 0 and 1 in int32. float16 and bfloat16 are
            accumulated in float32.
        axis: Axis or axes to reduce. Negative values count from the last axis. Default: all axes,
            also for an empty list.
        keepdims: If True, keep reduced axes with extent 1.

    Returns:
        Sums in the dtype of `data`, or in int32 for bool.

    Raises:
        DefinitionError: If `axis` is out of bounds or contains duplicates.

    >>> A = te.placeholder((4, 5, 6), name="A")
    >>> sum(A, (0, -1)).shape, sum(A, 1, keepdims=True).shape
    ((5,), (4, 1, 6))
    """
    return define_reduction(data, axis, keepdims, "sum", "sum")


def prod(data: te.Tensor, axis: Axes = None, keepdims: bool = False) -> te.Tensor:
    """Compute the product along the given axes; an empty reduction gives 1.

    Args:
        data: Input tensor. Booleans are multiplied as 0 and 1 in int32. float16 and bfloat16 are
            multiplied in float32.
        axis: Axis or axes to reduce. Negative values count from the last axis. Default: all axes,
            also for an empty list.
        keepdims: If True, keep reduced axes with extent 1.

    Raises:
        DefinitionError: If `axis` is out of bounds or contains duplicates.

    >>> k = te.reduce_axis((0, 4), name="k")
    >>> prod(te.placeholder((4, 8), name="A"), 1).shape
    (4,)
    """
    return define_reduction(data, axis, keepdims, "prod", "prod")


def max(data: te.Tensor, axis: Axes = None, keepdims: bool = False) -> te.Tensor:
    """Compute the maximum along the given axes; NaN propagates.

    An empty reduction gives the smallest value of the dtype, -infinity for floating-point dtypes.

    Args:
        data: Input tensor.
        axis: Axis or axes to reduce. Negative values count from the last axis. Default: all axes,
            also for an empty list.
        keepdims: If True, keep reduced axes with extent 1.

    Raises:
        DefinitionError: If `axis` is out of bounds or contains duplicates.

    >>> max(te.placeholder((4, 8), name="A"), 1).shape
    (4,)
    """
    return define_reduction(data, axis, keepdims, "max", "max")


def min(data: te.Tensor, axis: Axes = None, keepdims: bool = False) -> te.Tensor:
    """Compute the minimum along the given axes; NaN propagates.

    An empty reduction gives the largest value of the dtype, infinity for floating-point dtypes.

    Args:
        data: Input tensor.
        axis: Axis or axes to reduce. Negative values count from the last axis. Default: all axes,
            also for an empty list.
        keepdims: If True, keep reduced axes with extent 1.

    Raises:
        DefinitionError: If `axis` is out of bounds or contains duplicates.

    >>> min(te.placeholder((4, 8), name="A"), 1).shape
    (4,)
    """
    return define_reduction(data, axis, keepdims, "min", "min")


def all(data: te.Tensor, axis: Axes = None, keepdims: bool = False) -> te.Tensor:
    """Test whether all elements along the given axes are true; an empty reduction gives True.

    Args:
        data: Input tensor, bool.
        axis: Axis or axes to reduce. Negative values count from the last axis. Default: all axes,
            also for an empty list.
        keepdims: If True, keep reduced axes with extent 1.

    Raises:
        DefinitionError: If `axis` is out of bounds or contains duplicates.
        TypeMismatchError: If `data` is not bool.

    >>> all(te.placeholder((4, 8), "bool", name="A"), 1).shape
    (4,)
    """
    return define_reduction(_conditions(data, "topi.all"), axis, keepdims, "min", "all")


def any(data: te.Tensor, axis: Axes = None, keepdims: bool = False) -> te.Tensor:
    """Test whether any element along the given axes is true; an empty reduction gives False.

    Args:
        data: Input tensor, bool.
        axis: Axis or axes to reduce. Negative values count from the last axis. Default: all axes,
            also for an empty list.
        keepdims: If True, keep reduced axes with extent 1.

    Raises:
        DefinitionError: If `axis` is out of bounds or contains duplicates.
        TypeMismatchError: If `data` is not bool.

    >>> any(te.placeholder((4, 8), "bool", name="A"), 1).shape
    (4,)
    """
    return define_reduction(_conditions(data, "topi.any"), axis, keepdims, "max", "any")


def _conditions(data: te.Tensor, where: str) -> te.Tensor:
    data = tensor_of(data, where)
    if data.dtype.is_bool:
        return data
    raise TypeMismatchError(
        "{where}: {data} has dtype {dtype}, expected bool; compare it: topi.not_equal({data}, 0)",
        where=where, data=data.name, dtype=data.dtype,
    )


def define_reduction(
    data: te.Tensor, axis: Axes, keepdims: bool, op: Operation, name: str
) -> te.Tensor:
    """Reduce `data` along the given axes; copy and cast a tensor of rank 0."""
    where = f"topi.{name}"
    data = tensor_of(data, where)
    axes = axes_of(_axes_or_none(axis), data.ndim, where)
    dtype = "int32" if data.dtype.is_bool and op in ("sum", "prod") else data.dtype
    if not axes:
        return te.compute(
            data.shape, lambda *i: te.cast(data(*i), dtype), name=f"T_{name}", tag=tag.ELEMWISE)
    result: te.Tensor = reduce.define(
        data, axes, op, keepdims=as_bool(keepdims, where, "keepdims"), out_dtype=dtype,
        name=f"T_{name}", tag=tag.COMM_REDUCE)
    return result


def _axes_or_none(axis: Axes) -> Axes:
    """Return `axis`, or None, which means all axes, for an empty list."""
    return None if isinstance(axis, list | tuple) and not axis else axis


def argmax(
    data: te.Tensor, axis: Axes = None, keepdims: bool = False, select_last_index: bool = False
) -> te.Tensor:
    """Return the index of the maximum along the given axes; NaN counts as the maximum.

    Args:
        data: Input tensor.
        axis: Axis or axes to reduce. Negative values count from the last axis. Several axes are
            indexed jointly, in row-major order. Default: all axes, also for an empty list.
        keepdims: If True, keep reduced axes with extent 1.
        select_last_index: If True, return the last of several equal maxima, else the first.

    Returns:
        int32 indices.

    Raises:
        DefinitionError: If `axis` is out of bounds or contains duplicates, or if the reduction is
            known to be empty.

    >>> A = te.placeholder((4, 5), name="A")
    >>> argmax(A).shape, argmax(A, 0).shape, argmax(A, 1, keepdims=True).shape
    ((), (5,), (4, 1))
    """
    return _define_arg_reduction(data, axis, keepdims, select_last_index, "argmax")


def argmin(
    data: te.Tensor, axis: Axes = None, keepdims: bool = False, select_last_index: bool = False
) -> te.Tensor:
    """Return the index of the minimum along the given axes; NaN counts as the minimum.

    Args:
        data: Input tensor.
        axis: Axis or axes to reduce. Negative values count from the last axis. Several axes are
            indexed jointly, in row-major order. Default: all axes, also for an empty list.
        keepdims: If True, keep reduced axes with extent 1.
        select_last_index: If True, return the last of several equal minima, else the first.

    Returns:
        int32 indices.

    Raises:
        DefinitionError: If `axis` is out of bounds or contains duplicates, or if the reduction is
            known to be empty.

    >>> argmin(te.placeholder((4, 8), name="A"), 1).shape
    (4,)
    """
    return _define_arg_reduction(data, axis, keepdims, select_last_index, "argmin")


def _define_arg_reduction(
    data: te.Tensor, axis: Axes, keepdims: bool, last: bool, op: Literal["argmax", "argmin"]
) -> te.Tensor:
    where = f"topi.{op}"
    data = tensor_of(data, where)
    axes = axes_of(_axes_or_none(axis), data.ndim, where)
    count = product(data.shape[k] for k in axes)
    if equal(count, 0):
        raise DefinitionError(
            "{where}: {data} of shape {shape} has no elements along axes {axes}; pass at least "
            "one element",
            kind="shapes", where=where, data=data.name, shape=shape_text(data.shape),
            axes=tuple(axes),
        )
    rows, along = _one_axis(data, axes)
    last = as_bool(last, where, "select_last_index")
    keepdims = as_bool(keepdims, where, "keepdims")
    rows = flip(rows, along) if last else rows
    place = argreduce.define(rows, along, op, out_dtype="int32", name=f"T_{op}_found")
    kept = [k for k in range(data.ndim) if k not in axes]

    def value(*i: te.Expr) -> te.Expr:
        found = place(*(i[k] for k in kept)) if keepdims else place(*i)
        return te.cast(minus(count, 1) - found if last else found, "int32")

    shape = tuple(
        1 if k in axes else n for k, n in enumerate(data.shape) if keepdims or k not in axes)
    return te.compute(shape, value, name=f"T_{op}", tag=tag.COMM_REDUCE_IDX)


def _one_axis(data: te.Tensor, axes: Sequence[int]) -> tuple[te.Tensor, int]:
    """Merge `axes` into one axis; return the tensor and the position of the merged axis."""
    if len(axes) == 1:
        return data, axes[0]
    kept = [k for k in range(data.ndim) if k not in axes]
    order = [*kept, *axes]
    moved = data if order == list(range(data.ndim)) else transpose(data, order)
    shape: list[Size] = [data.shape[k] for k in kept]
    return reshape(moved, [*shape, product(data.shape[k] for k in axes)]), len(kept)


def collapse_sum(data: te.Tensor, target_shape: Size | Sequence[Size]) -> te.Tensor:
    """Sum `data` to a shape that broadcasts to the shape of `data`.

    Args:
        data: Input tensor.
        target_shape: Result shape. Aligned at the last axis, each extent equals that of `data` or
            is 1.

    Raises:
        DefinitionError: If `target_shape` does not broadcast to the shape of `data`.

    >>> collapse_sum(te.placeholder((4, 5, 6), name="A"), (5, 1)).shape
    (5, 1)
    """
    where = "topi.collapse_sum"
    data, target = tensor_of(data, where), shape_of(target_shape)
    spare = data.ndim - len(target)
    pairs = list(zip(data.shape[spare:], target, strict=True)) if spare >= 0 else []
    own = [k for k, (a, b) in enumerate(pairs, spare) if not equal(a, b)]
    if spare < 0 or [k for k in own if not equal(target[k - spare], 1)]:
        raise DefinitionError(
            "{where}: target shape {target} does not broadcast to {data}, shape {shape}; each "
            "extent, aligned at the last axis, must be that of {data}, or 1",
            kind="shapes", where=where, data=data.name, shape=shape_text(data.shape),
            target=shape_text(target),
        )
    axes = [*range(spare), *own]
    if not axes:
        return data
    total = define_reduction(data, axes, True, "sum", "collapse_sum")
    return reshape(total, target)

