"""Elements along axes combined into one: sums, products, extremes and where these are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias

from tecomp import DefinitionError, TypeMismatchError, te
from tecomp.ir.nodes.argument_checks import shape_text
from tecomp.schedules import argreduce, reduce
from tecomp.topi import tag
from tecomp.topi.extents import Size, equal, minus, product
from tecomp.topi.transform.views import flip, reshape, transpose
from tecomp.topi.validation import Axes, axes_of, shape_of, tensor_of, truth_of

Operation: TypeAlias = Literal["sum", "prod", "max", "min"]


def sum(data: te.Tensor, axis: Axes = None, keepdims: bool = False) -> te.Tensor:
    """The sum of all elements along axes; 0 of none.

    Args:
        data: the tensor. Truth is counted, in int32; narrow floats are added up in float32.
        axis: one axis or several, counted from the end if negative; all of them if None or empty.
        keepdims: whether these axes stay, with extent 1.

    Returns:
        The sums, in the type of `data`.

    Raises:
        DefinitionError: there is no such axis, or one is given twice.

    >>> A = te.placeholder((4, 5, 6), name="A")
    >>> sum(A, (0, -1)).shape, sum(A, 1, keepdims=True).shape
    ((5,), (4, 1, 6))
    """
    return reduced(data, axis, keepdims, "sum", "sum")


def prod(data: te.Tensor, axis: Axes = None, keepdims: bool = False) -> te.Tensor:
    """The product of all elements along axes; 1 of none.

    Args:
        data: the tensor. Truth is counted, in int32; narrow floats are multiplied in float32.
        axis: one axis or several, counted from the end if negative; all of them if None or empty.
        keepdims: whether these axes stay, with extent 1.

    Raises:
        DefinitionError: there is no such axis, or one is given twice.

    >>> k = te.reduce_axis((0, 4), name="k")
    >>> prod(te.placeholder((4, 8), name="A"), 1).shape
    (4,)
    """
    return reduced(data, axis, keepdims, "prod", "prod")


def max(data: te.Tensor, axis: Axes = None, keepdims: bool = False) -> te.Tensor:
    """The greatest element along axes; NaN if one is NaN, the least number of none.

    Args:
        data: the tensor.
        axis: one axis or several, counted from the end if negative; all of them if None or empty.
        keepdims: whether these axes stay, with extent 1.

    Raises:
        DefinitionError: there is no such axis, or one is given twice.

    >>> max(te.placeholder((4, 8), name="A"), 1).shape
    (4,)
    """
    return reduced(data, axis, keepdims, "max", "max")


def min(data: te.Tensor, axis: Axes = None, keepdims: bool = False) -> te.Tensor:
    """The least element along axes; NaN if one is NaN, the greatest number of none.

    Args:
        data: the tensor.
        axis: one axis or several, counted from the end if negative; all of them if None or empty.
        keepdims: whether these axes stay, with extent 1.

    Raises:
        DefinitionError: there is no such axis, or one is given twice.

    >>> min(te.placeholder((4, 8), name="A"), 1).shape
    (4,)
    """
    return reduced(data, axis, keepdims, "min", "min")


def all(data: te.Tensor, axis: Axes = None, keepdims: bool = False) -> te.Tensor:
    """Whether all conditions along axes hold; they do if there are none.

    Args:
        data: conditions, a tensor of bool.
        axis: one axis or several, counted from the end if negative; all of them if None or empty.
        keepdims: whether these axes stay, with extent 1.

    Raises:
        TypeMismatchError: `data` is not bool.

    >>> all(te.placeholder((4, 8), "bool", name="A"), 1).shape
    (4,)
    """
    return reduced(_conditions(data, "topi.all"), axis, keepdims, "min", "all")


def any(data: te.Tensor, axis: Axes = None, keepdims: bool = False) -> te.Tensor:
    """Whether any condition along axes holds; none does if there are none.

    Args:
        data: conditions, a tensor of bool.
        axis: one axis or several, counted from the end if negative; all of them if None or empty.
        keepdims: whether these axes stay, with extent 1.

    Raises:
        TypeMismatchError: `data` is not bool.

    >>> any(te.placeholder((4, 8), "bool", name="A"), 1).shape
    (4,)
    """
    return reduced(_conditions(data, "topi.any"), axis, keepdims, "max", "any")


def _conditions(data: te.Tensor, where: str) -> te.Tensor:
    data = tensor_of(data, where)
    if data.dtype.is_bool:
        return data
    raise TypeMismatchError(
        f"{where}: {data.name} is {data.dtype}, and these are conditions; compare it: "
        f"topi.not_equal({data.name}, 0)"
    )


def reduced(
    data: te.Tensor, axis: Axes, keepdims: bool, op: Operation, name: str
) -> te.Tensor:
    """The elements along axes combined; a copy if there are no axes."""
    where = f"topi.{name}"
    data = tensor_of(data, where)
    axes = axes_of(_given(axis), data.ndim, where)
    dtype = "int32" if data.dtype.is_bool and op in ("sum", "prod") else data.dtype
    if not axes:
        return te.compute(
            data.shape, lambda *i: te.cast(data(*i), dtype), name=f"T_{name}", tag=tag.ELEMWISE)
    result: te.Tensor = reduce.define(
        data, axes, op, keepdims=truth_of(keepdims, where, "keepdims"), out_dtype=dtype,
        name=f"T_{name}", tag=tag.COMM_REDUCE)
    return result


def _given(axis: Axes) -> Axes:
    """All axes are meant by None, and by a list of none."""
    return None if isinstance(axis, list | tuple) and not axis else axis


def argmax(
    data: te.Tensor, axis: Axes = None, keepdims: bool = False, select_last_index: bool = False
) -> te.Tensor:
    """Where the greatest element along axes is; NaN is greater than all others.

    Args:
        data: the tensor.
        axis: one axis or several, counted from the end if negative; all of them if None or empty.
            Of several, elements are counted in the order of memory.
        keepdims: whether these axes stay, with extent 1.
        select_last_index: of several that are greatest, whether the last is meant, not the first.

    Returns:
        Indices in int32.

    Raises:
        DefinitionError: there is no such axis, one is given twice, or there is no element.

    >>> A = te.placeholder((4, 5), name="A")
    >>> argmax(A).shape, argmax(A, 0).shape, argmax(A, 1, keepdims=True).shape
    ((), (5,), (4, 1))
    """
    return _found(data, axis, keepdims, select_last_index, "argmax")


def argmin(
    data: te.Tensor, axis: Axes = None, keepdims: bool = False, select_last_index: bool = False
) -> te.Tensor:
    """Where the least element along axes is, in int32; NaN is less than all others.

    Args:
        data: the tensor.
        axis: one axis or several, counted from the end if negative; all of them if None or empty.
            Of several, elements are counted in the order of memory.
        keepdims: whether these axes stay, with extent 1.
        select_last_index: of several that are least, whether the last is meant, not the first.

    Raises:
        DefinitionError: there is no such axis, one is given twice, or there is no element.

    >>> argmin(te.placeholder((4, 8), name="A"), 1).shape
    (4,)
    """
    return _found(data, axis, keepdims, select_last_index, "argmin")


def _found(
    data: te.Tensor, axis: Axes, keepdims: bool, last: bool, op: Literal["argmax", "argmin"]
) -> te.Tensor:
    where = f"topi.{op}"
    data = tensor_of(data, where)
    axes = axes_of(_given(axis), data.ndim, where)
    count = product(data.shape[k] for k in axes)
    if equal(count, 0):
        raise DefinitionError(
            f"{where}: {data.name} has shape {shape_text(data.shape)}, and no element along axis "
            f"{tuple(axes)}; give it one at least",
            kind="shapes",
        )
    rows, along = _one_axis(data, axes)
    last = truth_of(last, where, "select_last_index")
    keepdims = truth_of(keepdims, where, "keepdims")
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
    """The tensor with some of its axes as one, and which that is."""
    if len(axes) == 1:
        return data, axes[0]
    kept = [k for k in range(data.ndim) if k not in axes]
    order = [*kept, *axes]
    moved = data if order == list(range(data.ndim)) else transpose(data, order)
    shape: list[Size] = [data.shape[k] for k in kept]
    return reshape(moved, [*shape, product(data.shape[k] for k in axes)]), len(kept)


def collapse_sum(data: te.Tensor, target_shape: Size | Sequence[Size]) -> te.Tensor:
    """`data` added up to a shape that broadcasts to its own.

    Args:
        data: the tensor.
        target_shape: shape of the result; its extents, from the last, are those of `data`, or 1.

    Raises:
        DefinitionError: the shape does not.

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
            f"{where}: {data.name} has shape {shape_text(data.shape)}, to which "
            f"{shape_text(target)} does not broadcast; its extents, from the last, are those of "
            f"{data.name}, or 1",
            kind="shapes",
        )
    axes = [*range(spare), *own]
    if not axes:
        return data
    total = reduced(data, axes, True, "sum", "collapse_sum")
    return reshape(total, target)

