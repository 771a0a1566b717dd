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
    as_bool,
    axis_of,
    check_integer,
    check_rank,
    constant_of,
    extent_of,
    integer_of,
    integers_of,
    shape_of,
    tensor_of,
    tensors_of,
    validate_choice,
)


def take(
    a: te.Tensor,
    indices: te.Tensor,
    axis: int | None = None,
    batch_dims: int = 0,
    mode: str = "clip",
) -> te.Tensor:
    """Take elements along an axis by index, or from the flattened tensor.

    Args:
        a: Input tensor.
        indices: Integer indices of any shape.
        axis: Axis along which to take. None flattens `a`.
        batch_dims: Number of leading axes that `a` and `indices` share. Negative values count from
            the rank of `indices`.
        mode: Handling of out-of-bounds indices: "clip" clips to the nearest, "wrap" takes the
            remainder, "fast" raises an error at run time.

    Returns:
        Tensor with the shape of `a`, where the axis is replaced by the axes of `indices` that are
        not shared.

    Raises:
        DefinitionError: If `axis` is out of bounds, if `mode` is unknown, or if shared axes differ.
        TypeMismatchError: If `indices` does not have an integer dtype.

    >>> A, i = te.placeholder((9, 8), name="A"), te.placeholder((3,), "int32", name="i")
    >>> take(A, i, 0).shape, take(A, i).shape
    ((3, 8), (3,))
    """
    where = "topi.take"
    a, indices = tensor_of(a, where, "a"), tensor_of(indices, where, "indices")
    check_integer(indices, where, "indices")
    validate_choice(mode, ("clip", "wrap", "fast"), where, "mode")
    if axis is None:
        count = product(a.shape)
        return te.compute(
            indices.shape,
            lambda *i: a(*unravel(_clamp_index(indices(*i), count, mode), a.shape)),
            name="T_take", tag=tag.INJECTIVE,
        )
    dim = axis_of(axis, a.ndim, where)
    shared = integer_of(batch_dims, where, "batch_dims")
    shared = shared + indices.ndim if shared < 0 else shared
    if not 0 <= shared <= min(dim, indices.ndim) or any(
        map(differ, a.shape[:shared], indices.shape[:shared])
    ):
        raise DefinitionError(
            "{where}: batch_dims={shared} and axis={axis} do not match shapes {shape} and "
            "{indices_shape}; the first batch_dims axes must be equal in both shapes and must "
            "precede axis",
            kind="shapes", where=where, shared=shared, axis=dim, shape=shape_text(a.shape),
            indices_shape=shape_text(indices.shape),
        )
    inner = indices.ndim - shared
    shape = (*a.shape[:dim], *indices.shape[shared:], *a.shape[dim + 1 :])

    def value(*i: te.Expr) -> te.Expr:
        index = indices(*i[:shared], *i[dim : dim + inner])
        return a(*i[:dim], _clamp_index(index, a.shape[dim], mode), *i[dim + inner :])

    return te.compute(shape, value, name="T_take", tag=tag.INJECTIVE)


def _clamp_index(index: te.Expr, extent: Size, mode: str) -> te.Expr:
    """Map an index into bounds according to the mode."""
    if mode == "fast":
        return index
    widened = te.cast(index, "int64")
    if mode == "clip":
        return te.max(te.min(widened, te.const(-1, "int64") + extent), te.const(0, "int64"))
    return widened % te.cast(extent, "int64")


def gather(data: te.Tensor, axis: int, indices: te.Tensor) -> te.Tensor:
    """Gather elements along an axis: `data[i, indices[i, j, k], k]` for `axis=1`.

    Args:
        data: Input tensor.
        axis: Axis along which to gather; negative values count from the last axis.
        indices: Integer indices in [0, extent), with the rank of `data` and its extents along the
            other axes. An out-of-bounds index raises an error at run time.

    Returns:
        Tensor with the shape of `indices`.

    Raises:
        DefinitionError: If `axis` is out of bounds, or if the shapes do not match.
        TypeMismatchError: If `indices` does not have an integer dtype.

    >>> A, i = te.placeholder((9, 8), name="A"), te.placeholder((9, 3), "int32", name="i")
    >>> gather(A, 1, i).shape
    (9, 3)
    """
    where = "topi.gather"
    data, indices = tensor_of(data, where), tensor_of(indices, where, "indices")
    check_integer(indices, where, "indices")
    dim = axis_of(axis, data.ndim, where)
    pairs = list(zip(data.shape, indices.shape, strict=False))
    if indices.ndim != data.ndim or any(
        differ(a, b) for k, (a, b) in enumerate(pairs) if k != dim
    ):
        raise DefinitionError(
            "{where}: {data} has shape {shape} and indices has shape {indices_shape}; the shapes "
            "must be equal except along axis {axis}",
            kind="shapes", where=where, data=data.name, shape=shape_text(data.shape),
            indices_shape=shape_text(indices.shape), axis=dim,
        )
    return te.compute(
        indices.shape, lambda *i: data(*i[:dim], indices(*i), *i[dim + 1 :]),
        name="T_gather", tag=tag.INJECTIVE,
    )


def gather_nd(a: te.Tensor, indices: te.Tensor, batch_dims: int = 0) -> te.Tensor:
    """Gather elements or slices of `a` at the positions in columns of `indices`.

    Args:
        a: Input tensor.
        indices: Integer indices; the first axis has one entry per indexed axis of `a`. An
            out-of-bounds index raises an error at run time.
        batch_dims: Number of leading axes of `a` that equal the axes of `indices` after the first.

    Returns:
        Tensor with the axes of `indices` after the first, followed by the axes of `a` that are not
        indexed.

    Raises:
        DefinitionError: If the shapes do not match.
        TypeMismatchError: If `indices` does not have an integer dtype.

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
            "{where}: {a} has shape {shape} and indices has shape {indices_shape}, with "
            "batch_dims={shared}; the first axis of indices must have one number per indexed axis "
            "of {a}",
            kind="shapes", where=where, a=a.name, shape=shape_text(a.shape),
            indices_shape=shape_text(indices.shape), shared=shared,
        )
    outer = indices.ndim - 1

    def value(*i: te.Expr) -> te.Expr:
        positions = (indices(k, *i[:outer]) for k in range(count))
        return a(*i[:shared], *positions, *i[outer:])

    shape = (*indices.shape[1:], *a.shape[shared + count :])
    return te.compute(shape, value, name="T_gather_nd", tag=tag.INJECTIVE)


def adv_index(data: te.Tensor, indices: Sequence[te.Tensor]) -> te.Tensor:
    """Index `data` by tensors: `data[indices[0], indices[1], ...]`; the indices are broadcast.

    Args:
        data: Input tensor.
        indices: Integer tensors for the first axes of `data`. An out-of-bounds index raises an
            error at run time.

    Raises:
        DefinitionError: If there are more index tensors than axes, or if their shapes are not
            broadcast-compatible.
        TypeMismatchError: If an index tensor does not have an integer dtype.

    >>> A, i = te.placeholder((9, 8, 7), name="A"), te.placeholder((5,), "int32", name="i")
    >>> adv_index(A, [i, i]).shape
    (5, 7)
    """
    where = "topi.adv_index"
    data, index_tensors = tensor_of(data, where), tensors_of(indices, where, "indices")
    for x in index_tensors:
        check_integer(x, where, x.name)
    if len(index_tensors) > data.ndim:
        raise DefinitionError(
            "{where}: got {place_count} indices, but {data} has {ndim} axes; pass at most one "
            "index per axis",
            kind="count-mismatch", where=where, place_count=len(index_tensors), data=data.name,
            ndim=data.ndim,
        )
    outer = broadcast_shape([x.shape for x in index_tensors], where)

    def value(*i: te.Expr) -> te.Expr:
        outer_index = i[: len(outer)]
        return data(*(element(x, outer_index) for x in index_tensors), *i[len(outer) :])

    shape = (*outer, *data.shape[len(index_tensors) :])
    return te.compute(shape, value, name="advanced_index", tag=tag.INJECTIVE)


index_tensor = adv_index


def one_hot(
    indices: te.Tensor, on_value: Operand, off_value: Operand, depth: Size, axis: int, dtype: str
) -> te.Tensor:
    """Return `on_value` where the position on a new axis equals the index, else `off_value`.

    Args:
        indices: Integer indices. An out-of-bounds index gives `off_value` everywhere.
        on_value: Value at the indexed position.
        off_value: Value at the other positions.
        depth: Extent of the new axis.
        axis: Position of the new axis in the result; -1 is the last axis.
        dtype: Result dtype.

    Raises:
        DefinitionError: If `axis` is out of bounds.
        TypeMismatchError: If `indices` does not have an integer dtype.

    >>> one_hot(te.placeholder((4,), "int32", name="i"), 1, 0, 10, -1, "float32").shape
    (4, 10)
    """
    where = "topi.one_hot"
    indices = tensor_of(indices, where, "indices")
    check_integer(indices, where, "indices")
    dim = axis_of(axis, indices.ndim + 1, where)
    on, off = (constant_of(x, dtype, where, name)
               for x, name in ((on_value, "on_value"), (off_value, "off_value")))  # fmt: skip
    depth = extent_of(depth, where, "depth")

    def value(*i: te.Expr) -> te.Expr:
        index = indices(*i[:dim], *i[dim + 1 :])
        return te.Select(te.cast(index, "int64") == i[dim], on, off)

    shape = (*indices.shape[:dim], depth, *indices.shape[dim:])
    return te.compute(shape, value, name="T_one_hot", tag=tag.INJECTIVE)


def where(condition: te.Tensor, x: Operand, y: Operand) -> te.Tensor:
    """Select elements from `x` where the condition is true and from `y` elsewhere.

    All three operands are broadcast.

    Args:
        condition: Condition tensor; nonzero numbers are true.
        x: Tensor, expression or number.
        y: Tensor, expression or number.

    Raises:
        DefinitionError: If the shapes are not broadcast-compatible.

    >>> A = te.placeholder((4, 8), name="A")
    >>> where(te.placeholder((4, 1), "bool", name="c"), A, 0).shape
    (4, 8)
    """
    condition = tensor_of(condition, "topi.where", "condition")
    shapes = [v.shape if isinstance(v, te.Tensor) else () for v in (condition, x, y)]
    shape = broadcast_shape(shapes, "topi.where")

    def value(*i: te.Expr) -> te.Expr:
        is_true = element(condition, i)
        is_truth = condition.dtype.is_bool
        is_true = is_true if is_truth else is_true != te.const(0, condition.dtype)
        return te.Select(is_true, element(x, i), element(y, i))

    return te.compute(shape, value, name="T_where", tag=tag.BROADCAST)


def sequence_mask(
    data: te.Tensor, valid_length: te.Tensor, mask_value: float = 0, axis: int = 0
) -> te.Tensor:
    """Replace the elements beyond the valid length of each sequence.

    Args:
        data: Input tensor, shape (length, batch, ...) for axis 0, (batch, length, ...) for axis 1.
        valid_length: Integer lengths, shape (batch,).
        mask_value: Replacement value.
        axis: Sequence axis, 0 or 1.

    Raises:
        DefinitionError: If `axis` is neither 0 nor 1, or if the shapes do not match.

    >>> A, n = te.placeholder((9, 4), name="A"), te.placeholder((4,), "int32", name="n")
    >>> sequence_mask(A, n).shape
    (9, 4)
    """
    caller = "topi.sequence_mask"
    data, length = tensor_of(data, caller), tensor_of(valid_length, caller, "valid_length")
    validate_choice(axis, (0, 1), caller, "axis")
    _check_batch(data, length, 1 - axis, caller, "valid_length")

    def value(*i: te.Expr) -> te.Expr:
        inside = i[axis] < length(i[1 - axis])
        return te.Select(inside, data(*i), te.const(mask_value, data.dtype))

    return te.compute(data.shape, value, name="T_sequence_mask", tag=tag.INJECTIVE)


def _check_batch(
    data: te.Tensor, lengths: te.Tensor, axis: int, caller: str, name: str
) -> None:
    if data.ndim > axis and lengths.ndim == 1 and not differ(lengths.shape[0], data.shape[axis]):
        return
    raise DefinitionError(
        "{where}: {subject} has shape {shape}, but {data} has shape {data_shape}; pass one number "
        "per index along axis {axis}",
        kind="shapes", where=caller, subject=name, shape=shape_text(lengths.shape), data=data.name,
        data_shape=shape_text(data.shape), axis=axis,
    )


def reverse_sequence(
    a: te.Tensor, seq_lengths: te.Tensor, seq_axis: int = 1, batch_axis: int = 0
) -> te.Tensor:
    """Reverse the leading elements of each sequence, up to its length.

    Args:
        a: Input tensor.
        seq_lengths: Integer lengths, one per sequence, clipped to [1, extent].
        seq_axis: Axis along the sequences.
        batch_axis: Axis over the sequences.

    Raises:
        DefinitionError: If an axis is out of bounds, or if the shapes do not match.

    >>> A, n = te.placeholder((4, 9), name="A"), te.placeholder((4,), "int32", name="n")
    >>> reverse_sequence(A, n).shape
    (4, 9)
    """
    caller = "topi.reverse_sequence"
    a, lengths = tensor_of(a, caller, "a"), tensor_of(seq_lengths, caller, "seq_lengths")
    dim = axis_of(seq_axis, a.ndim, caller, "seq_axis")
    batch = axis_of(batch_axis, a.ndim, caller, "batch_axis")
    _check_batch(a, lengths, batch, caller, "seq_lengths")

    def value(*i: te.Expr) -> te.Expr:
        count = te.cast(lengths(i[batch]), "int64")
        length = te.max(te.min(count, te.const(0, "int64") + a.shape[dim]), 1)
        position = te.Select(i[dim] < length, length - 1 - i[dim], te.cast(i[dim], "int64"))
        return a(*i[:dim], position, *i[dim + 1 :])

    return te.compute(a.shape, value, name="T_reverse_sequence", tag=tag.INJECTIVE)


def unravel_index(indices: te.Tensor, shape: te.Tensor | Sequence[Size]) -> te.Tensor:
    """Convert row-major linear indices to multi-dimensional indices, as `numpy.unravel_index`.

    Args:
        indices: Integer linear indices of any shape.
        shape: Extents, as an integer tensor of rank 1 or as numbers.

    Returns:
        Tensor with a first axis that has one entry per axis of `shape`, followed by the axes of
        `indices`.

    Raises:
        DefinitionError: If `shape` is a tensor without rank 1 or without constant length, or if an
            extent is less than 1.
        TypeMismatchError: If `indices` or `shape` does not have an integer dtype.

    >>> unravel_index(te.placeholder((4,), "int32", name="i"), (3, 5)).shape
    (2, 4)
    """
    caller = "topi.unravel_index"
    indices = tensor_of(indices, caller, "indices")
    check_integer(indices, caller, "indices")
    if isinstance(shape, te.Tensor):
        check_rank(shape, 1, caller, "shape")
        check_integer(shape, caller, "shape")
    count = shape.shape[0] if isinstance(shape, te.Tensor) else len(shape_of(shape))
    if not isinstance(count, int):
        raise DefinitionError(
            "{where}: shape has {count} entries, expected a constant number; pass a shape tensor "
            "of constant extent",
            kind="shapes", where=caller, count=count,
        )
    extents = [shape(k) if isinstance(shape, te.Tensor) else
               extent_of(shape_of(shape)[k], caller, f"shape[{k}]", least=1)
               for k in range(count)]

    def value(k: te.Expr, *i: te.Expr) -> te.Expr:
        result: te.Expr = te.const(0, indices.dtype)
        remaining = indices(*i)
        for axis in reversed(range(count)):
            extent = te.cast(extents[axis], indices.dtype)
            result = te.Select(k == axis, remaining % extent if axis else remaining, result)
            remaining = remaining // extent
        return result

    return te.compute((count, *indices.shape), value, name="T_unravel", tag=tag.INJECTIVE)


def trilu(data: te.Tensor, k: Operand, upper: bool) -> te.Tensor:
    """Return the upper or lower triangle of each matrix; other elements are zero.

    Args:
        data: Matrices, shape (..., m, n).
        k: Offset of the bounding diagonal to the right of the main diagonal.
        upper: If True, return the upper triangle, else the lower one.

    Raises:
        DefinitionError: If `data` has fewer than two axes.

    >>> trilu(te.placeholder((4, 4), name="A"), 0, True).shape
    (4, 4)
    """
    caller = "topi.trilu"
    data, is_upper = tensor_of(data, caller), as_bool(upper, caller, "upper")
    _check_matrices(data, caller)
    if isinstance(k, te.Tensor):
        check_rank(k, 0, caller, "k")

    def value(*i: te.Expr) -> te.Expr:
        diagonal = te.cast(element(k, ()), "int64") + i[-2]
        inside = i[-1] >= diagonal if is_upper else i[-1] <= diagonal
        return te.Select(inside, data(*i), te.const(0, data.dtype))

    return te.compute(data.shape, value, name="trilu", tag=tag.INJECTIVE)


def _check_matrices(data: te.Tensor, caller: str) -> None:
    if data.ndim < 2:
        raise DefinitionError(
            "{where}: {data} has shape {shape}, expected at least 2 axes; pass matrices",
            kind="shapes", where=caller, data=data.name, shape=shape_text(data.shape),
        )


def matrix_set_diag(
    data: te.Tensor, diagonal: te.Tensor, k: int | Sequence[int] = 0, align: str = "RIGHT_LEFT"
) -> te.Tensor:
    """Replace one diagonal or a band of diagonals of each matrix.

    Args:
        data: Matrices, shape (..., m, n).
        diagonal: New elements, shape (..., length), or (..., diagonals, length) for a band, with
            the uppermost diagonal first.
        k: Offset of the diagonal to the right of the main diagonal, or the lowest and the highest
            offset of a band.
        align: Alignment of shorter diagonals within a row of `diagonal`: "LEFT" or "RIGHT" for
            superdiagonals, then for subdiagonals, joined by "_". The main diagonal counts as a
            superdiagonal.

    Raises:
        DefinitionError: If `align` is unknown, or if the shapes do not match.

    >>> A, d = te.placeholder((4, 5), name="A"), te.placeholder((4,), name="d")
    >>> matrix_set_diag(A, d).shape
    (4, 5)
    """
    caller = "topi.matrix_set_diag"
    data, diagonal = tensor_of(data, caller), tensor_of(diagonal, caller, "diagonal")
    _check_matrices(data, caller)
    validate_choice(
        align, ("RIGHT_LEFT", "LEFT_RIGHT", "LEFT_LEFT", "RIGHT_RIGHT"), caller, "align"
    )
    ends = tuple(k) if isinstance(k, list | tuple) else (k,)
    ends = integers_of(ends, 2 if len(ends) != 1 else 1, caller, "k")
    low, high = ends[0], ends[-1]
    is_band = low != high
    rows, columns = data.shape[-2:]
    expected_ndim = data.ndim - 1 + is_band
    if diagonal.ndim != expected_ndim or low > high or (
        is_band and differ(diagonal.shape[-2], high - low + 1)
    ):
        raise DefinitionError(
            "{where}: diagonal has shape {shape}, but diagonals {low} to {high} of {data}, shape "
            "{data_shape}, require {expected} axes and one row per diagonal",
            kind="shapes", where=caller, shape=shape_text(diagonal.shape), low=low, high=high,
            data=data.name, data_shape=shape_text(data.shape), expected=expected_ndim,
        )
    upper, lower = (word == "RIGHT" for word in align.split("_"))

    def value(*i: te.Expr) -> te.Expr:
        *outer, row, column = i
        offset = column - row
        length = te.min(te.min(offset, 0) + rows, columns - te.max(offset, 0))
        spare = diagonal.shape[-1] - length
        is_right = te.Select(offset >= 0, te.const(upper, "bool"), te.const(lower, "bool"))
        position = te.min(row, column) + te.Select(is_right, spare, spare * 0)
        diagonal_index = (high - offset, position) if is_band else (position,)
        return te.if_then_else(
            te.all(offset >= low, offset <= high), diagonal(*outer, *diagonal_index), data(*i))

    return te.compute(data.shape, value, name="matrix_set_diag", tag=tag.INJECTIVE)


def shape(array: te.Tensor, dtype: str = "int32") -> te.Tensor:
    """Return the extents of a tensor as a tensor of rank 1.

    Args:
        array: Input tensor.
        dtype: Result dtype.

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
    """Return the number of elements of a tensor as a tensor of rank 0.

    Args:
        array: Input tensor.
        dtype: Result dtype.

    >>> ndarray_size(te.placeholder((4, 8), name="A")).shape
    ()
    """
    array = tensor_of(array, "topi.ndarray_size", "array")
    count = product(array.shape)
    return te.compute(
        (), lambda: te.cast(count, dtype), name="T_ndarray_size", tag=tag.INJECTIVE
    )


tensor_size = ndarray_size

