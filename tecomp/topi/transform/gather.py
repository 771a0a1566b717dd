"""Operators that read at given positions: take, gather, where, masks, triangles."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tecomp import DefinitionError, te
from tecomp.ir.nodes.argument_checks import broadcast_shape, shape_text
from tecomp.topi import tag
from tecomp.topi.extents import Size, differ, element, product, unravel
from tecomp.topi.validation import (
    Operand,
    axis_of,
    check_integer,
    check_rank,
    constant_of,
    extent_of,
    integer_of,
    integers_of,
    one_of,
    shape_of,
    tensor_of,
    tensors_of,
    truth_of,
)


def take(
    a: te.Tensor,
    indices: te.Tensor,
    axis: int | None = None,
    batch_dims: int = 0,
    mode: str = "clip",
) -> te.Tensor:
    """Elements along an axis, or of all of `a` in a row.

    Args:
        a: the tensor.
        indices: integers, of any shape.
        axis: along which is taken; None for `a` as one row.
        batch_dims: how many of the first axes both tensors share.
        mode: of indices that are outside: `clip` to the nearest, `wrap` around, or `fast`, which
            refuses them when it runs.

    Returns:
        The shape of `a`, with that of `indices` in the place of the axis.

    Raises:
        DefinitionError: there is no such axis or mode, or the shared axes differ.
        TypeMismatchError: the indices are no integers.

    >>> A, i = te.placeholder((9, 8), name="A"), te.placeholder((3,), "int32", name="i")
    >>> take(A, i, 0).shape, take(A, i).shape
    ((3, 8), (3,))
    """
    where = "topi.take"
    a, indices = tensor_of(a, where, "a"), tensor_of(indices, where, "indices")
    check_integer(indices, where, "indices")
    one_of(mode, ("clip", "wrap", "fast"), where, "mode")
    if axis is None:
        count = product(a.shape)
        return te.compute(
            indices.shape,
            lambda *i: a(*unravel(_brought(indices(*i), count, mode), a.shape)),
            name="T_take", tag=tag.INJECTIVE,
        )
    along = axis_of(axis, a.ndim, where)
    shared = integer_of(batch_dims, where, "batch_dims")
    shared = shared + indices.ndim if shared < 0 else shared
    if not 0 <= shared <= min(along, indices.ndim) or any(
        map(differ, a.shape[:shared], indices.shape[:shared])
    ):
        raise DefinitionError(
            f"{where}: batch_dims is {shared}, axis {along}, and the shapes are "
            f"{shape_text(a.shape)} and {shape_text(indices.shape)}; the first batch_dims axes are "
            "those of both, before the axis",
            kind="shapes",
        )
    inner = indices.ndim - shared
    shape = (*a.shape[:along], *indices.shape[shared:], *a.shape[along + 1 :])

    def value(*i: te.Expr) -> te.Expr:
        index = indices(*i[:shared], *i[along : along + inner])
        return a(*i[:along], _brought(index, a.shape[along], mode), *i[along + inner :])

    return te.compute(shape, value, name="T_take", tag=tag.INJECTIVE)


def _brought(index: te.Expr, extent: Size, mode: str) -> te.Expr:
    """An index that is inside, as the mode says."""
    if mode == "fast":
        return index
    wide = te.cast(index, "int64")
    if mode == "clip":
        return te.max(te.min(wide, te.const(-1, "int64") + extent), te.const(0, "int64"))
    return wide % te.cast(extent, "int64")


def gather(data: te.Tensor, axis: int, indices: te.Tensor) -> te.Tensor:
    """`data[i, indices[i, j, k], k]` for `axis=1`, and so for others.

    Args:
        data: the tensor.
        axis: counted from the end if negative.
        indices: integers from 0 to below the extent, others are refused when it runs; of as many
            axes as `data`, none of them longer but `axis`.

    Returns:
        The shape of `indices`.

    Raises:
        DefinitionError: there is no such axis, or the shapes do not fit.
        TypeMismatchError: the indices are no integers.

    >>> A, i = te.placeholder((9, 8), name="A"), te.placeholder((9, 3), "int32", name="i")
    >>> gather(A, 1, i).shape
    (9, 3)
    """
    where = "topi.gather"
    data, indices = tensor_of(data, where), tensor_of(indices, where, "indices")
    check_integer(indices, where, "indices")
    along = axis_of(axis, data.ndim, where)
    pairs = list(zip(data.shape, indices.shape, strict=False))
    if indices.ndim != data.ndim or any(
        differ(a, b) for k, (a, b) in enumerate(pairs) if k != along
    ):
        raise DefinitionError(
            f"{where}: {data.name} has shape {shape_text(data.shape)} and indices "
            f"{shape_text(indices.shape)}; they have the same axes, but for axis {along}",
            kind="shapes",
        )
    return te.compute(
        indices.shape, lambda *i: data(*i[:along], indices(*i), *i[along + 1 :]),
        name="T_gather", tag=tag.INJECTIVE,
    )


def gather_nd(a: te.Tensor, indices: te.Tensor, batch_dims: int = 0) -> te.Tensor:
    """Elements, or parts, of `a` at places that are columns of `indices`.

    Args:
        a: the tensor.
        indices: integers; the first axis has one for each axis of `a` that is indexed. Those
            outside are refused when it runs.
        batch_dims: how many of the first axes of `a` are those of `indices` after the first.

    Returns:
        The axes of `indices` after the first, and those of `a` that are not indexed.

    Raises:
        DefinitionError: the shapes do not fit.
        TypeMismatchError: the indices are no integers.

    >>> A, i = te.placeholder((9, 8, 7), name="A"), te.placeholder((2, 5), "int32", name="i")
    >>> gather_nd(A, i).shape
    (5, 7)
    """
    where = "topi.gather_nd"
    a, indices = tensor_of(a, where, "a"), tensor_of(indices, where, "indices")
    check_integer(indices, where, "indices")
    shared = integer_of(batch_dims, where, "batch_dims", least=0)
    count = indices.shape[0] if indices.ndim else 0
    if not isinstance(count, int) or not indices.ndim or count + shared > a.ndim or (
        shared > indices.ndim - 1
    ) or any(map(differ, a.shape[:shared], indices.shape[1 : shared + 1])):
        raise DefinitionError(
            f"{where}: {a.name} has shape {shape_text(a.shape)} and indices "
            f"{shape_text(indices.shape)}, with batch_dims {shared}; the first axis of indices has "
            f"one number for each axis of {a.name} that is indexed",
            kind="shapes",
        )
    outer = indices.ndim - 1

    def value(*i: te.Expr) -> te.Expr:
        places = (indices(k, *i[:outer]) for k in range(count))
        return a(*i[:shared], *places, *i[outer:])

    shape = (*indices.shape[1:], *a.shape[shared + count :])
    return te.compute(shape, value, name="T_gather_nd", tag=tag.INJECTIVE)


def adv_index(data: te.Tensor, indices: Sequence[te.Tensor]) -> te.Tensor:
    """`data[indices[0], indices[1], ...]`, where indices are broadcast.

    Args:
        data: the tensor.
        indices: integers, for the first axes of `data`. Those outside are refused when it runs.

    Raises:
        DefinitionError: there are more of them than axes, or they do not broadcast.
        TypeMismatchError: they are no integers.

    >>> A, i = te.placeholder((9, 8, 7), name="A"), te.placeholder((5,), "int32", name="i")
    >>> adv_index(A, [i, i]).shape
    (5, 7)
    """
    where = "topi.adv_index"
    data, places = tensor_of(data, where), tensors_of(indices, where, "indices")
    for x in places:
        check_integer(x, where, x.name)
    if len(places) > data.ndim:
        raise DefinitionError(
            f"{where}: there are {len(places)} indices, and {data.name} has {data.ndim} axes; give "
            "one for each at most",
            kind="wrong-count",
        )
    outer = broadcast_shape([x.shape for x in places], where)

    def value(*i: te.Expr) -> te.Expr:
        own = i[: len(outer)]
        return data(*(element(x, own) for x in places), *i[len(outer) :])

    shape = (*outer, *data.shape[len(places) :])
    return te.compute(shape, value, name="advanced_index", tag=tag.INJECTIVE)


index_tensor = adv_index


def one_hot(
    indices: te.Tensor, on_value: Operand, off_value: Operand, depth: Size, axis: int, dtype: str
) -> te.Tensor:
    """`on_value` at the place that each index says, and `off_value` elsewhere.

    Args:
        indices: integers; those outside have no place.
        on_value: what is there.
        off_value: what is elsewhere.
        depth: extent of the new axis.
        axis: the new one; -1 for the last.
        dtype: type of the result.

    Raises:
        DefinitionError: there is no such place for an axis.
        TypeMismatchError: the indices are no integers.

    >>> one_hot(te.placeholder((4,), "int32", name="i"), 1, 0, 10, -1, "float32").shape
    (4, 10)
    """
    where = "topi.one_hot"
    indices = tensor_of(indices, where, "indices")
    check_integer(indices, where, "indices")
    along = axis_of(axis, indices.ndim + 1, where)
    on, off = (constant_of(x, dtype, where, what)
               for x, what in ((on_value, "on_value"), (off_value, "off_value")))  # fmt: skip
    depth = extent_of(depth, where, "depth")

    def value(*i: te.Expr) -> te.Expr:
        index = indices(*i[:along], *i[along + 1 :])
        return te.Select(te.cast(index, "int64") == i[along], on, off)

    shape = (*indices.shape[:along], depth, *indices.shape[along:])
    return te.compute(shape, value, name="T_one_hot", tag=tag.INJECTIVE)


def where(condition: te.Tensor, x: Operand, y: Operand) -> te.Tensor:
    """`x` where a condition holds, else `y`; all three are broadcast.

    Args:
        condition: bool, or numbers, which hold unless they are 0.
        x: a tensor, an expression or a number.
        y: as `x`.

    Raises:
        DefinitionError: the shapes do not broadcast.

    >>> A = te.placeholder((4, 8), name="A")
    >>> where(te.placeholder((4, 1), "bool", name="c"), A, 0).shape
    (4, 8)
    """
    condition = tensor_of(condition, "topi.where", "condition")
    shapes = [v.shape if isinstance(v, te.Tensor) else () for v in (condition, x, y)]
    shape = broadcast_shape(shapes, "topi.where")

    def value(*i: te.Expr) -> te.Expr:
        holds = element(condition, i)
        is_truth = condition.dtype.is_bool
        holds = holds if is_truth else holds != te.const(0, condition.dtype)
        return te.Select(holds, element(x, i), element(y, i))

    return te.compute(shape, value, name="T_where", tag=tag.BROADCAST)


def sequence_mask(
    data: te.Tensor, valid_length: te.Tensor, mask_value: float = 0, axis: int = 0
) -> te.Tensor:
    """Sequences with what is beyond their lengths replaced.

    Args:
        data: shape (length, batch, ...) for axis 0, (batch, length, ...) for axis 1.
        valid_length: integers, shape (batch,).
        mask_value: what replaces the rest.
        axis: 0 or 1, along the sequences.

    Raises:
        DefinitionError: the axis is another, or the shapes do not fit.

    >>> A, n = te.placeholder((9, 4), name="A"), te.placeholder((4,), "int32", name="n")
    >>> sequence_mask(A, n).shape
    (9, 4)
    """
    where_ = "topi.sequence_mask"
    data, length = tensor_of(data, where_), tensor_of(valid_length, where_, "valid_length")
    one_of(axis, (0, 1), where_, "axis")
    _check_batch(data, length, 1 - axis, where_, "valid_length")

    def value(*i: te.Expr) -> te.Expr:
        inside = i[axis] < length(i[1 - axis])
        return te.Select(inside, data(*i), te.const(mask_value, data.dtype))

    return te.compute(data.shape, value, name="T_sequence_mask", tag=tag.INJECTIVE)


def _check_batch(
    data: te.Tensor, lengths: te.Tensor, axis: int, where_: str, what: str
) -> None:
    if data.ndim > axis and lengths.ndim == 1 and not differ(lengths.shape[0], data.shape[axis]):
        return
    raise DefinitionError(
        f"{where_}: {what} has shape {shape_text(lengths.shape)} and {data.name} "
        f"{shape_text(data.shape)}; give one number for each index along axis {axis}",
        kind="shapes",
    )


def reverse_sequence(
    a: te.Tensor, seq_lengths: te.Tensor, seq_axis: int = 1, batch_axis: int = 0
) -> te.Tensor:
    """Sequences with their first elements, so many of each, in reverse.

    Args:
        a: the tensor.
        seq_lengths: integers, one for each sequence; from 1 to the extent, as others are taken.
        seq_axis: along the sequences.
        batch_axis: from one sequence to the next.

    Raises:
        DefinitionError: there is no such axis, or the shapes do not fit.

    >>> A, n = te.placeholder((4, 9), name="A"), te.placeholder((4,), "int32", name="n")
    >>> reverse_sequence(A, n).shape
    (4, 9)
    """
    where_ = "topi.reverse_sequence"
    a, lengths = tensor_of(a, where_, "a"), tensor_of(seq_lengths, where_, "seq_lengths")
    along = axis_of(seq_axis, a.ndim, where_, "seq_axis")
    batch = axis_of(batch_axis, a.ndim, where_, "batch_axis")
    _check_batch(a, lengths, batch, where_, "seq_lengths")

    def value(*i: te.Expr) -> te.Expr:
        count = te.cast(lengths(i[batch]), "int64")
        length = te.max(te.min(count, te.const(0, "int64") + a.shape[along]), 1)
        place = te.Select(i[along] < length, length - 1 - i[along], te.cast(i[along], "int64"))
        return a(*i[:along], place, *i[along + 1 :])

    return te.compute(a.shape, value, name="T_reverse_sequence", tag=tag.INJECTIVE)


def unravel_index(indices: te.Tensor, shape: te.Tensor | Sequence[Size]) -> te.Tensor:
    """The index of each element that is given by its number, as NumPy's.

    Args:
        indices: integers, of any shape.
        shape: extents, as a tensor of one axis or as numbers.

    Returns:
        The shape of `indices`, after an axis with one entry for each axis of `shape`.

    Raises:
        DefinitionError: the shape is no vector of known length.

    >>> unravel_index(te.placeholder((4,), "int32", name="i"), (3, 5)).shape
    (2, 4)
    """
    where_ = "topi.unravel_index"
    indices = tensor_of(indices, where_, "indices")
    check_integer(indices, where_, "indices")
    if isinstance(shape, te.Tensor):
        check_rank(shape, 1, where_, "shape")
        check_integer(shape, where_, "shape")
    count = shape.shape[0] if isinstance(shape, te.Tensor) else len(shape_of(shape))
    if not isinstance(count, int):
        raise DefinitionError(
            f"{where_}: shape has {count} entries; give it a number of them that is known",
            kind="shapes",
        )
    extents = [shape(k) if isinstance(shape, te.Tensor) else
               extent_of(shape_of(shape)[k], where_, f"shape[{k}]", least=1)
               for k in range(count)]

    def value(k: te.Expr, *i: te.Expr) -> te.Expr:
        result: te.Expr = te.const(0, indices.dtype)
        rest = indices(*i)
        for axis in reversed(range(count)):
            extent = te.cast(extents[axis], indices.dtype)
            result = te.Select(k == axis, rest % extent if axis else rest, result)
            rest = rest // extent
        return result

    return te.compute((count, *indices.shape), value, name="T_unravel", tag=tag.INJECTIVE)


def trilu(data: te.Tensor, k: Operand, upper: bool) -> te.Tensor:
    """The upper or the lower triangle of matrices, and 0 elsewhere.

    Args:
        data: shape (..., m, n).
        k: the diagonal that ends the triangle, so many columns to the right of the main one.
        upper: whether it is the upper triangle.

    Raises:
        DefinitionError: there are less than two axes.

    >>> trilu(te.placeholder((4, 4), name="A"), 0, True).shape
    (4, 4)
    """
    where_ = "topi.trilu"
    data, is_upper = tensor_of(data, where_), truth_of(upper, where_, "upper")
    _check_matrices(data, where_)
    if isinstance(k, te.Tensor):
        check_rank(k, 0, where_, "k")

    def value(*i: te.Expr) -> te.Expr:
        diagonal = te.cast(element(k, ()), "int64") + i[-2]
        inside = i[-1] >= diagonal if is_upper else i[-1] <= diagonal
        return te.Select(inside, data(*i), te.const(0, data.dtype))

    return te.compute(data.shape, value, name="trilu", tag=tag.INJECTIVE)


def _check_matrices(data: te.Tensor, where_: str) -> None:
    if data.ndim < 2:
        raise DefinitionError(
            f"{where_}: {data.name} has shape {shape_text(data.shape)}; give matrices, of two axes "
            "or more",
            kind="shapes",
        )


def matrix_set_diag(
    data: te.Tensor, diagonal: te.Tensor, k: int | Sequence[int] = 0, align: str = "RIGHT_LEFT"
) -> te.Tensor:
    """Matrices with other elements on a diagonal, or on several side by side.

    Args:
        data: shape (..., m, n).
        diagonal: shape (..., length), or (..., diagonals, length) for several, the uppermost first.
        k: which diagonal, so many columns to the right of the main one; or the first and the last.
        align: where shorter diagonals begin in a longer row: those above the main one, then those
            below it, each `LEFT` or `RIGHT`.

    Raises:
        DefinitionError: there is no such alignment, or the shapes do not fit.

    >>> A, d = te.placeholder((4, 5), name="A"), te.placeholder((4,), name="d")
    >>> matrix_set_diag(A, d).shape
    (4, 5)
    """
    where_ = "topi.matrix_set_diag"
    data, diagonal = tensor_of(data, where_), tensor_of(diagonal, where_, "diagonal")
    _check_matrices(data, where_)
    one_of(align, ("RIGHT_LEFT", "LEFT_RIGHT", "LEFT_LEFT", "RIGHT_RIGHT"), where_, "align")
    ends = tuple(k) if isinstance(k, list | tuple) else (k,)
    ends = integers_of(ends, 2 if len(ends) != 1 else 1, where_, "k")
    low, high = ends[0], ends[-1]
    several = low != high
    rows, columns = data.shape[-2:]
    wanted = data.ndim - 1 + several
    if diagonal.ndim != wanted or low > high or (
        several and differ(diagonal.shape[-2], high - low + 1)
    ):
        raise DefinitionError(
            f"{where_}: diagonal has shape {shape_text(diagonal.shape)}, for diagonals {low} to "
            f"{high} of {data.name}, shape {shape_text(data.shape)}; give it {wanted} axes, and a "
            "row for each diagonal",
            kind="shapes",
        )
    above, below = (side == "RIGHT" for side in align.split("_"))

    def value(*i: te.Expr) -> te.Expr:
        *outer, row, column = i
        which = column - row
        length = te.min(te.min(which, 0) + rows, columns - te.max(which, 0))
        spare = diagonal.shape[-1] - length
        is_right = te.Select(which >= 0, te.const(above, "bool"), te.const(below, "bool"))
        place = te.min(row, column) + te.Select(is_right, spare, spare * 0)
        own = (high - which, place) if several else (place,)
        return te.if_then_else(
            te.all(which >= low, which <= high), diagonal(*outer, *own), data(*i))

    return te.compute(data.shape, value, name="matrix_set_diag", tag=tag.INJECTIVE)


def shape(array: te.Tensor, dtype: str = "int32") -> te.Tensor:
    """The extents of a tensor, as a tensor of one axis.

    Args:
        array: the tensor.
        dtype: type of the result.

    >>> shape(te.placeholder((4, 8), name="A")).shape
    (2,)
    """
    array = tensor_of(array, "topi.shape", "array")

    def value(axis: te.Expr) -> te.Expr:
        result: Any = te.const(0, dtype)
        for k, extent in enumerate(array.shape):
            result = te.Select(axis == k, te.cast(extent, dtype), result)
        return te.cast(result, dtype)

    return te.compute((array.ndim,), value, name="T_shape", tag=tag.INJECTIVE)


def ndarray_size(array: te.Tensor, dtype: str = "int32") -> te.Tensor:
    """How many elements a tensor has, as a tensor of no axes.

    Args:
        array: the tensor.
        dtype: type of the result.

    >>> ndarray_size(te.placeholder((4, 8), name="A")).shape
    ()
    """
    array = tensor_of(array, "topi.ndarray_size", "array")
    count = product(array.shape)
    return te.compute(
        (), lambda: te.cast(count, dtype), name="T_ndarray_size", tag=tag.INJECTIVE
    )


tensor_size = ndarray_size

