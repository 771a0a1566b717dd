"""Sorting and searching, by NumPy, which does it better than loops would.

Importing this registers the functions that programs call: one that was saved needs it as well.
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
    axis_of,
    check_integer,
    check_rank,
    integer_of,
    one_of,
    shape_of,
    tensor_of,
    truth_of,
)

Array = NDArray[Any]


def _keys(data: Array) -> Array:
    """Numbers of the same order, of a type that NumPy sorts with NaN as the greatest."""
    return data.astype(np.float32) if data.dtype.name == "bfloat16" else np.asarray(data)


def _order(data: Array, axis: int, is_ascend: bool) -> Array:
    """The places of the elements along an axis in order; of equal ones the former comes first."""
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
    rows, places = np.moveaxis(np.asarray(data), axis, -1), np.moveaxis(np.asarray(out), axis, -1)
    places[...] = np.arange(rows.shape[-1])
    for k in np.ndindex(*rows.shape[:-1]):
        n = min(max(int(count[k]), 0), rows.shape[-1])
        places[k][:n] = _order(rows[k][:n], 0, is_ascend)


def _too_many(count: int, axis: int, name: str, shape: Sequence[Size]) -> str:
    return (
        f"topi.topk: k is {count}, and axis {axis} of {name}, shape {shape_text(shape)}, has "
        f"{shape[axis]} elements; take so many at most"
    )


def _chosen(data: Array, out: Array, axis: int, is_ascend: bool) -> Array:
    """The places of as many elements as `out` takes."""
    count, extent = out.shape[axis], data.shape[axis]
    if count > extent:
        raise CallError(_too_many(count, axis, "the tensor", data.shape), kind="too-much")
    order = np.moveaxis(_order(data, axis, is_ascend), axis, 0)[:count]
    return np.moveaxis(order, 0, axis)


@register_func("tecomp.topi.topk", override=True)
def _topk(data: Array, values: Array, places: Array, axis: int, is_ascend: bool) -> None:
    chosen = _chosen(data, values, axis, is_ascend)
    values[...] = np.take_along_axis(np.asarray(data), chosen, axis)
    places[...] = chosen


@register_func("tecomp.topi.topk_values", override=True)
def _topk_values(data: Array, values: Array, axis: int, is_ascend: bool) -> None:
    chosen = _chosen(data, values, axis, is_ascend)
    values[...] = np.take_along_axis(np.asarray(data), chosen, axis)


@register_func("tecomp.topi.topk_indices", override=True)
def _topk_indices(data: Array, places: Array, axis: int, is_ascend: bool) -> None:
    places[...] = _chosen(data, places, axis, is_ascend)


@register_func("tecomp.topi.searchsorted", override=True)
def _searchsorted(sequence: Array, values: Array, out: Array, right: bool) -> None:
    keys, wanted = _keys(sequence), _keys(values)
    side: Literal["left", "right"] = "right" if right else "left"
    if sequence.ndim == 1:
        out[...] = np.searchsorted(keys, wanted, side)
        return
    for k in np.ndindex(*sequence.shape[:-1]):
        out[k] = np.searchsorted(keys[k], wanted[k], side)


@register_func("tecomp.topi.unique", override=True)
def _unique(
    is_sorted: bool, data: Array, values: Array, first: Array, inverse: Array, count: Array,
    counts: Array | None = None,
) -> None:
    keys = _keys(data)
    _, place, back, many = np.unique(
        keys, return_index=True, return_inverse=True, return_counts=True)
    order = np.arange(len(place)) if is_sorted else np.argsort(place)
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    n = count[0] = len(place)
    values[:n], first[:n] = np.asarray(data)[place[order]], place[order]
    values[n:], first[n:] = 0, len(data)
    if counts is not None:
        counts[:n], counts[n:] = many[order], 0
    inverse[...] = rank[back]


@register_func("tecomp.topi.argwhere", override=True)
def _argwhere(condition: Array, out: Array) -> None:
    found = np.argwhere(np.asarray(condition) != 0)
    if len(found) > len(out):
        raise CallError(
            f"topi.argwhere: {len(found)} elements of the condition are not 0, and output_shape "
            f"has {len(out)} rows; give a row for each",
            kind="too-much",
        )
    out[: len(found)], out[len(found) :] = found, 0


def argwhere(output_shape: te.Tensor | Sequence[Size], condition: te.Tensor) -> te.Tensor:
    """Return the indices of the elements that are not 0, a row for each.

    Args:
        output_shape: Tensor whose shape is that of the result, or the shape itself: as many rows
            as there are such elements, and a column for each axis of `condition`.
        condition: Input tensor.

    Returns:
        int32 indices in row-major order. Rows beyond the last element are 0.

    Raises:
        DefinitionError: If the shapes do not fit.

    >>> argwhere((3, 2), te.placeholder((4, 8), "bool", name="A")).shape
    (3, 2)
    """
    where = "topi.argwhere"
    condition = tensor_of(condition, where, "condition")
    shape = output_shape.shape if isinstance(output_shape, te.Tensor) else shape_of(output_shape)
    if len(shape) != 2 or differ(shape[1], condition.ndim):
        raise DefinitionError(
            f"{where}: output_shape is {shape_text(shape)}, and {condition.name} has shape "
            f"{shape_text(condition.shape)}; give a row for each element, and "
            f"{condition.ndim} columns",
            kind="shapes",
        )
    made: te.Tensor = te.extern(
        shape, [condition],
        lambda ins, outs: te.call_packed("tecomp.topi.argwhere", ins[0], outs[0]),
        name="T_argwhere", dtype="int32")
    return made


def sort(data: te.Tensor, axis: int = -1, is_ascend: bool = True) -> te.Tensor:
    """The elements along an axis in order; NaN is the greatest.

    Args:
        data: the tensor.
        axis: counted from the end if negative.
        is_ascend: whether the least comes first.

    Raises:
        DefinitionError: there is no such axis.

    >>> sort(te.placeholder((4, 8), name="A")).shape
    (4, 8)
    """
    data = tensor_of(data, "topi.sort")
    along = axis_of(axis, data.ndim, "topi.sort")
    return _called(data, data.dtype, "tecomp.topi.sort", along, is_ascend, "T_sort")


def argsort(
    data: te.Tensor, valid_count: te.Tensor | None = None, axis: int = -1, is_ascend: bool = True,
    dtype: str = "float32",
) -> te.Tensor:
    """The places of the elements along an axis in order; of equal ones the former comes first.

    Args:
        data: the tensor.
        valid_count: of how many elements of each row the order is meant; the rest stay where they
            are. It has the shape of `data` without the axis.
        axis: counted from the end if negative.
        is_ascend: whether the least comes first; NaN is the greatest.
        dtype: type of the places.

    Raises:
        DefinitionError: there is no such axis, or `valid_count` has another shape.

    >>> argsort(te.placeholder((4, 8), name="A"), dtype="int32").dtype
    'int32'
    """
    where = "topi.argsort"
    data = tensor_of(data, where)
    along = axis_of(axis, data.ndim, where)
    if valid_count is None:
        return _called(data, dtype, "tecomp.topi.argsort", along, is_ascend, "T_argsort")
    check_integer(tensor_of(valid_count, where, "valid_count"), where, "valid_count")
    rows = (*data.shape[:along], *data.shape[along + 1 :])
    if valid_count.ndim != len(rows) or any(map(differ, valid_count.shape, rows)):
        raise DefinitionError(
            f"{where}: valid_count has shape {shape_text(valid_count.shape)}, and {data.name} "
            f"without axis {along} {shape_text(rows)}; give one number for each row",
            kind="shapes",
        )
    up = truth_of(is_ascend, where, "is_ascend")
    made: te.Tensor = te.extern(
        data.shape, [data, valid_count],
        lambda ins, outs: te.call_packed(
            "tecomp.topi.argsort_valid", *ins, *outs, along, int(up)),
        name="T_argsort", dtype=dtype,
    )
    return made


def _called(
    data: te.Tensor, dtype: str, function: str, axis: int, is_ascend: bool, name: str
) -> te.Tensor:
    up = truth_of(is_ascend, f"topi.{name.removeprefix('T_')}", "is_ascend")
    made: te.Tensor = te.extern(
        data.shape, [data],
        lambda ins, outs: te.call_packed(function, ins[0], outs[0], axis, int(up)),
        name=name, dtype=dtype,
    )
    return made


def topk(
    data: te.Tensor, k: int = 1, axis: int = -1, ret_type: str = "both", is_ascend: bool = False,
    dtype: str = "int64",
) -> Any:
    """The greatest elements along an axis, the greatest first, and where they are.

    Args:
        data: the tensor.
        k: how many; all of them if less than 1.
        axis: counted from the end if negative.
        ret_type: `both`, `values` or `indices`.
        is_ascend: whether the least are meant, the least first; NaN is the greatest.
        dtype: type of the places.

    Returns:
        The elements and their places, or one of the two.

    Raises:
        DefinitionError: there is no such axis or `ret_type`, or there are not so many elements.
        CallError: there are not so many in a call, which says the extent.

    >>> [x.shape for x in topk(te.placeholder((4, 8), name="A"), 3)]
    [(4, 3), (4, 3)]
    """
    where = "topi.topk"
    data = tensor_of(data, where)
    one_of(ret_type, ("both", "values", "indices"), where, "ret_type")
    along = axis_of(axis, data.ndim, where)
    extent, wanted = data.shape[along], integer_of(k, where, "k")
    if isinstance(extent, int) and wanted > extent:
        raise DefinitionError(_too_many(wanted, along, data.name, data.shape), kind="shapes")
    count: Size = wanted if wanted >= 1 else extent
    shape = (*data.shape[:along], count, *data.shape[along + 1 :])
    types = {"values": data.dtype, "indices": dtype}
    up = truth_of(is_ascend, where, "is_ascend")
    kinds = list(types) if ret_type == "both" else [ret_type]
    function = "tecomp.topi.topk" if ret_type == "both" else f"tecomp.topi.topk_{ret_type}"
    made = te.extern(
        [shape] * len(kinds), [data],
        lambda ins, outs: te.call_packed(function, *ins, *outs, along, int(up)),
        name="T_topk", dtype=[types[kind] for kind in kinds],
    )
    return list(made) if ret_type == "both" else made


def searchsorted(
    sorted_sequence: te.Tensor, values: te.Tensor, right: bool = False, out_dtype: str = "int64"
) -> te.Tensor:
    """Where values go in between elements that are in order.

    Args:
        sorted_sequence: elements in order along the last axis.
        values: what is looked for; with the same leading axes, unless there is one sequence for
            all.
        right: whether values go after elements that are equal, not before.
        out_dtype: type of the places.

    Returns:
        The shape of `values`.

    Raises:
        DefinitionError: the shapes do not fit.

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
            f"{where}: sorted_sequence has shape {shape_text(sequence.shape)} and values "
            f"{shape_text(values.shape)}; give one sequence, or one for each row of values",
            kind="wrong-count",
        )
    after = truth_of(right, where, "right")
    made: te.Tensor = te.extern(
        values.shape, [sequence, values],
        lambda ins, outs: te.call_packed(
            "tecomp.topi.searchsorted", *ins, *outs, int(after)),
        name="T_searchsorted", dtype=out_dtype,
    )
    return made


def unique(
    data: te.Tensor, is_sorted: bool = True, return_counts: bool = False
) -> list[te.Tensor]:
    """The elements of a row that differ.

    Args:
        data: a row.
        is_sorted: whether they are in order; else as they come first.
        return_counts: whether is said how many there are of each.

    Returns:
        The elements; where each comes first; which of them each of `data` is; how many there are,
        as one number; and how many of each, if that is asked for. All but the number are as long as
        `data`: elements and counts end with 0, places with its length. Places are in int32.

    Raises:
        DefinitionError: `data` is no row.

    >>> [x.shape for x in unique(te.placeholder((9,), "int32", name="A"))]
    [(9,), (9,), (9,), (1,)]
    """
    where = "topi.unique"
    check_rank(tensor_of(data, where), 1, where, data.name, "a row")
    has_counts = truth_of(return_counts, where, "return_counts")
    in_order = truth_of(is_sorted, where, "is_sorted")
    shape = data.shape
    shapes = [shape, shape, shape, (1,), *([shape] if has_counts else [])]
    made = te.extern(
        shapes, [data],
        lambda ins, outs: te.call_packed("tecomp.topi.unique", int(in_order), *ins, *outs),
        name="T_unique", dtype=[data.dtype, *["int32"] * (len(shapes) - 1)],
    )
    return list(made)
