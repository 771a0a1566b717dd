"""Sorting and searching, computed by NumPy instead of generated loops.

Importing this module registers the packed functions that compiled programs call. Running a saved
program requires this import too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from tecomp import CallError, DefinitionError, register_func, te
from tecomp.ir.nodes.argument_checks import shape_text
from tecomp.topi.extents import Size, differ
from tecomp.topi.validation import (
    as_bool,
    axis_of,
    check_integer,
    check_rank,
    integer_of,
    shape_of,
    tensor_of,
    validate_choice,
)

Array = NDArray[Any]


def _keys(data: Array) -> Array:
    """Convert bfloat16 to float32, which NumPy sorts with NaN last; keep other dtypes."""
    return data.astype(np.float32) if data.dtype.name == "bfloat16" else np.asarray(data)


def _order(data: Array, axis: int, is_ascend: bool) -> Array:
    """Return the indices that sort along an axis, stable in both directions."""
    keys = _keys(data)
    if is_ascend:
        return np.argsort(keys, axis, kind="stable")
    backwards = np.argsort(np.flip(keys, axis), axis, kind="stable")
    return np.flip(data.shape[axis] - 1 - backwards, axis)


@register_func("tecomp.topi.sort", override=True)
def _sort(data: Array, out: Array, axis: int, is_ascend: bool) -> None:
    out[...] = np.take_along_axis(np.asarray(data), _order(data, axis, is_ascend), axis)


@register_func("tecomp.topi.argsort", override=True)
def _argsort(data: Array, out: Array, axis: int, is_ascend: bool) -> None:
    out[...] = _order(data, axis, is_ascend)


@register_func("tecomp.topi.argsort_valid", override=True)
def _argsort_valid(data: Array, count: Array, out: Array, axis: int, is_ascend: bool) -> None:
    rows, indices = np.moveaxis(np.asarray(data), axis, -1), np.moveaxis(np.asarray(out), axis, -1)
    indices[...] = np.arange(rows.shape[-1])
    for k in np.ndindex(*rows.shape[:-1]):
        n = min(max(int(count[k]), 0), rows.shape[-1])
        indices[k][:n] = _order(rows[k][:n], 0, is_ascend)


_TOO_MANY = (
    "topi.topk: k={count} exceeds the {extent} elements of axis {axis} of {name}, shape {shape}; "
    "pass a smaller k"
)


def _choose_first(data: Array, out: Array, axis: int, is_ascend: bool) -> Array:
    """Return the indices of the first elements in sorted order, as many as `out` has."""
    count, extent = out.shape[axis], data.shape[axis]
    if count > extent:
        raise CallError(
            _TOO_MANY, kind="limit-exceeded", count=count, axis=axis, name="the tensor",
            shape=shape_text(data.shape), extent=extent,
        )
    order = np.moveaxis(_order(data, axis, is_ascend), axis, 0)[:count]
    return np.moveaxis(order, 0, axis)


@register_func("tecomp.topi.topk", override=True)
def _topk(data: Array, values: Array, indices: Array, axis: int, is_ascend: bool) -> None:
    chosen = _choose_first(data, values, axis, is_ascend)
    values[...] = np.take_along_axis(np.asarray(data), chosen, axis)
    indices[...] = chosen


@register_func("tecomp.topi.topk_values", override=True)
def _topk_values(data: Array, values: Array, axis: int, is_ascend: bool) -> None:
    chosen = _choose_first(data, values, axis, is_ascend)
    values[...] = np.take_along_axis(np.asarray(data), chosen, axis)


@register_func("tecomp.topi.topk_indices", override=True)
def _topk_indices(data: Array, indices: Array, axis: int, is_ascend: bool) -> None:
    indices[...] = _choose_first(data, indices, axis, is_ascend)


@register_func("tecomp.topi.searchsorted", override=True)
def _searchsorted(sequence: Array, values: Array, out: Array, right: bool) -> None:
    keys, queries = _keys(sequence), _keys(values)
    side: Literal["left", "right"] = "right" if right else "left"
    if sequence.ndim == 1:
        out[...] = np.searchsorted(keys, queries, side)
        return
    for k in np.ndindex(*sequence.shape[:-1]):
        out[k] = np.searchsorted(keys[k], queries[k], side)


@register_func("tecomp.topi.unique", override=True)
def _unique(
    is_sorted: bool, data: Array, values: Array, first: Array, inverse: Array, count: Array,
    counts: Array | None = None,
) -> None:
    keys = _keys(data)
    _, first_index, inverse_index, occurrences = np.unique(
        keys, return_index=True, return_inverse=True, return_counts=True)
    order = np.arange(len(first_index)) if is_sorted else np.argsort(first_index)
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    n = count[0] = len(first_index)
    values[:n], first[:n] = np.asarray(data)[first_index[order]], first_index[order]
    values[n:], first[n:] = 0, len(data)
    if counts is not None:
        counts[:n], counts[n:] = occurrences[order], 0
    inverse[...] = rank[inverse_index]


@register_func("tecomp.topi.argwhere", override=True)
def _argwhere(condition: Array, out: Array) -> None:
    found = np.argwhere(np.asarray(condition) != 0)
    if len(found) > len(out):
        raise CallError(
            "topi.argwhere: {found_count} elements of the condition are nonzero, but output_shape "
            "has {out_count} rows; pass one row per nonzero element",
            kind="limit-exceeded", found_count=len(found), out_count=len(out),
        )
    out[: len(found)], out[len(found) :] = found, 0


def argwhere(output_shape: te.Tensor | Sequence[Size], condition: te.Tensor) -> te.Tensor:
    """Return the indices of nonzero elements, one row per element.

    Args:
        output_shape: Result shape, or a tensor with the result shape: one row per nonzero element
            and one column per axis of `condition`.
        condition: Input tensor.

    Returns:
        int32 indices in row-major order. Unused rows are 0.

    Raises:
        DefinitionError: If `output_shape` does not have rank 2 and one column per axis.
        CallError: If a call finds more nonzero elements than `output_shape` has rows.

    >>> argwhere((3, 2), te.placeholder((4, 8), "bool", name="A")).shape
    (3, 2)
    """
    where = "topi.argwhere"
    condition = tensor_of(condition, where, "condition")
    shape = output_shape.shape if isinstance(output_shape, te.Tensor) else shape_of(output_shape)
    if len(shape) != 2 or differ(shape[1], condition.ndim):
        raise DefinitionError(
            "{where}: output_shape {shape} does not match {condition}, shape {condition_shape}; "
            "pass one row per element, and {ndim} columns",
            kind="shapes", where=where, shape=shape_text(shape), condition=condition.name,
            condition_shape=shape_text(condition.shape), ndim=condition.ndim,
        )
    result: te.Tensor = te.extern(
        shape, [condition],
        lambda ins, outs: te.call_packed("tecomp.topi.argwhere", ins[0], outs[0]),
        name="T_argwhere", dtype="int32")
    return result


def sort(data: te.Tensor, axis: int = -1, is_ascend: bool = True) -> te.Tensor:
    """Return the elements sorted along an axis; NaN counts as the largest value.

    Args:
        data: Input tensor.
        axis: Axis; negative values count from the last axis.
        is_ascend: If True, sort in ascending order.

    Raises:
        DefinitionError: If `axis` is out of bounds.

    >>> sort(te.placeholder((4, 8), name="A")).shape
    (4, 8)
    """
    data = tensor_of(data, "topi.sort")
    dim = axis_of(axis, data.ndim, "topi.sort")
    return _call_sort(data, data.dtype, "tecomp.topi.sort", dim, is_ascend, "T_sort")


def argsort(
    data: te.Tensor, valid_count: te.Tensor | None = None, axis: int = -1, is_ascend: bool = True,
    dtype: str = "float32",
) -> te.Tensor:
    """Return the indices that sort the elements along an axis; the sort is stable.

    Args:
        data: Input tensor.
        valid_count: Number of leading elements of each row to sort, integers with the shape of
            `data` without the axis. The other elements keep their positions. Default: all elements.
        axis: Axis; negative values count from the last axis.
        is_ascend: If True, sort in ascending order. NaN counts as the largest value.
        dtype: dtype of the indices.

    Raises:
        DefinitionError: If `axis` is out of bounds, or if `valid_count` has another shape.
        TypeMismatchError: If `valid_count` does not have an integer dtype.

    >>> argsort(te.placeholder((4, 8), name="A"), dtype="int32").dtype
    'int32'
    """
    where = "topi.argsort"
    data = tensor_of(data, where)
    dim = axis_of(axis, data.ndim, where)
    if valid_count is None:
        return _call_sort(data, dtype, "tecomp.topi.argsort", dim, is_ascend, "T_argsort")
    check_integer(tensor_of(valid_count, where, "valid_count"), where, "valid_count")
    rows = (*data.shape[:dim], *data.shape[dim + 1 :])
    if valid_count.ndim != len(rows) or any(map(differ, valid_count.shape, rows)):
        raise DefinitionError(
            "{where}: valid_count has shape {shape}, but {data} without axis {axis} has shape "
            "{rows}; pass one number per row",
            kind="shapes", where=where, shape=shape_text(valid_count.shape), data=data.name,
            axis=dim, rows=shape_text(rows),
        )
    ascending = as_bool(is_ascend, where, "is_ascend")
    result: te.Tensor = te.extern(
        data.shape, [data, valid_count],
        lambda ins, outs: te.call_packed(
            "tecomp.topi.argsort_valid", *ins, *outs, dim, int(ascending)),
        name="T_argsort", dtype=dtype,
    )
    return result


def _call_sort(
    data: te.Tensor, dtype: str, function: str, axis: int, is_ascend: bool, name: str
) -> te.Tensor:
    ascending = as_bool(is_ascend, f"topi.{name.removeprefix('T_')}", "is_ascend")
    result: te.Tensor = te.extern(
        data.shape, [data],
        lambda ins, outs: te.call_packed(function, ins[0], outs[0], axis, int(ascending)),
        name=name, dtype=dtype,
    )
    return result


def topk(
    data: te.Tensor, k: int = 1, axis: int = -1, ret_type: str = "both", is_ascend: bool = False,
    dtype: str = "int64",
) -> Any:
    """Return the k largest elements along an axis in descending order, and their indices.

    Args:
        data: Input tensor.
        k: Number of elements; all elements if less than 1.
        axis: Axis; negative values count from the last axis.
        ret_type: "both", "values" or "indices".
        is_ascend: If True, return the smallest elements in ascending order. NaN counts as the
            largest value.
        dtype: dtype of the indices.

    Returns:
        List of values and indices, or one of these tensors.

    Raises:
        DefinitionError: If `axis` is out of bounds, if `ret_type` is unknown, or if `k` exceeds a
            known extent.
        CallError: If `k` exceeds an extent that is bound at call time.

    >>> [x.shape for x in topk(te.placeholder((4, 8), name="A"), 3)]
    [(4, 3), (4, 3)]
    """
    where = "topi.topk"
    data = tensor_of(data, where)
    validate_choice(ret_type, ("both", "values", "indices"), where, "ret_type")
    dim = axis_of(axis, data.ndim, where)
    extent, requested = data.shape[dim], integer_of(k, where, "k")
    if isinstance(extent, int) and requested > extent:
        raise DefinitionError(
            _TOO_MANY, kind="shapes", count=requested, axis=dim, name=data.name,
            shape=shape_text(data.shape), extent=extent,
        )
    count: Size = requested if requested >= 1 else extent
    shape = (*data.shape[:dim], count, *data.shape[dim + 1 :])
    types = {"values": data.dtype, "indices": dtype}
    ascending = as_bool(is_ascend, where, "is_ascend")
    kinds = list(types) if ret_type == "both" else [ret_type]
    function = "tecomp.topi.topk" if ret_type == "both" else f"tecomp.topi.topk_{ret_type}"
    result = te.extern(
        [shape] * len(kinds), [data],
        lambda ins, outs: te.call_packed(function, *ins, *outs, dim, int(ascending)),
        name="T_topk", dtype=[types[kind] for kind in kinds],
    )
    return list(result) if ret_type == "both" else result


def searchsorted(
    sorted_sequence: te.Tensor, values: te.Tensor, right: bool = False, out_dtype: str = "int64"
) -> te.Tensor:
    """Return insertion positions into a sorted tensor.

    Args:
        sorted_sequence: Elements sorted along the last axis.
        values: Values to search for. Their leading axes equal those of `sorted_sequence`, unless it
            has rank 1.
        right: If True, insert after equal elements, else before.
        out_dtype: dtype of the positions.

    Returns:
        Positions with the shape of `values`.

    Raises:
        DefinitionError: If the shapes do not match.

    >>> s, v = te.placeholder((9,), name="s"), te.placeholder((2, 3), name="v")
    >>> searchsorted(s, v).shape
    (2, 3)
    """
    where = "topi.searchsorted"
    sequence = tensor_of(sorted_sequence, where, "sorted_sequence")
    values = tensor_of(values, where, "values")
    fits = sequence.ndim == 1 or (sequence.ndim > 1 and sequence.ndim == values.ndim and not any(
        map(differ, sequence.shape[:-1], values.shape[:-1])))
    if not fits:
        raise DefinitionError(
            "{where}: sorted_sequence has shape {shape} and values has shape {values_shape}; pass "
            "one sequence, or one per row of values",
            kind="count-mismatch", where=where, shape=shape_text(sequence.shape),
            values_shape=shape_text(values.shape),
        )
    after = as_bool(right, where, "right")
    result: te.Tensor = te.extern(
        values.shape, [sequence, values],
        lambda ins, outs: te.call_packed(
            "tecomp.topi.searchsorted", *ins, *outs, int(after)),
        name="T_searchsorted", dtype=out_dtype,
    )
    return result


def unique(
    data: te.Tensor, is_sorted: bool = True, return_counts: bool = False
) -> list[te.Tensor]:
    """Return the unique elements of a vector, with their indices and counts.

    Args:
        data: Input tensor of rank 1.
        is_sorted: If True, return the elements in ascending order, else in order of first
            occurrence.
        return_counts: If True, return the count of each element too.

    Returns:
        Unique elements, index of the first occurrence of each, inverse indices, number of unique
        elements in shape (1,), and the counts if requested. All but the number have the length of
        `data`: unused elements and counts are 0, and unused first-occurrence indices are the length
        of `data`. Indices, number and counts are int32.

    Raises:
        DefinitionError: If `data` does not have rank 1.

    >>> [x.shape for x in unique(te.placeholder((9,), "int32", name="A"))]
    [(9,), (9,), (9,), (1,)]
    """
    where = "topi.unique"
    check_rank(tensor_of(data, where), 1, where, data.name, "a row")
    has_counts = as_bool(return_counts, where, "return_counts")
    in_order = as_bool(is_sorted, where, "is_sorted")
    shape = data.shape
    shapes = [shape, shape, shape, (1,), *([shape] if has_counts else [])]
    result = te.extern(
        shapes, [data],
        lambda ins, outs: te.call_packed("tecomp.topi.unique", int(in_order), *ins, *outs),
        name="T_unique", dtype=[data.dtype, *["int32"] * (len(shapes) - 1)],
    )
    return list(result)
