"""Products of matrices, vectors and tensors."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import SupportsIndex

from tecomp.array.array_object import Array, from_node, node_of, permuted_view
from tecomp.array.graph.node import record
from tecomp.errors import ArrayTypeError, ArrayValueError
from tecomp.ptensor.operations.linear_algebra import MatMul, MatrixTranspose, TensorDot, VecDot


def matmul(x1: Array, x2: Array, /) -> Array:
    """Compute the matrix product `x1 @ x2`; leading axes are broadcast.

    Args:
        x1: Matrices of shape (..., m, k), or a vector of shape (k,).
        x2: Matrices of shape (..., k, n), or a vector of shape (k,).

    Returns:
        Array of shape (..., m, n), without the axis that a vector operand lacks.

    Raises:
        ArrayTypeError: If a dtype is not numeric.
        ArrayValueError: If the shapes do not match.
        DeviceMismatchError: If the operands are on different devices.
        TeamMismatchError: If the operands belong to different teams.

    >>> import tecomp.array as xp
    >>> matmul(xp.asarray([[1, 2], [3, 4]]), xp.asarray([5, 6]))
    Array([17, 39], dtype=int64)
    """
    where = "matmul"
    return from_node(record(MatMul(), node_of(x1, where, "x1"), node_of(x2, where, "x2")))


def matrix_transpose(x: Array, /) -> Array:
    """Transpose the last two axes.

    Args:
        x: Matrices of shape (..., m, n).

    Returns:
        Array of shape (..., n, m).

    Raises:
        ArrayValueError: If `x` has fewer than two axes.

    >>> import tecomp.array as xp
    >>> matrix_transpose(xp.asarray([[1, 2], [3, 4]]))
    Array([[1, 3],
           [2, 4]], dtype=int64)
    """
    node_of(x, "matrix_transpose")
    return permuted_view(x, MatrixTranspose())


def vecdot(x1: Array, x2: Array, /, *, axis: SupportsIndex = -1) -> Array:
    """Compute the vector dot product along an axis, with `x1` conjugated; other axes are broadcast.

    Args:
        x1: First array of vectors, conjugated if complex.
        x2: Second array of vectors.
        axis: Axis of the vectors, counted from the last axis, so negative. Default: -1.

    Returns:
        Array of the broadcast shape without the axis.

    Raises:
        ArrayTypeError: If a dtype is not numeric.
        ArrayValueError: If the shapes do not match, or `axis` is out of bounds for an operand.
        DeviceMismatchError: If the operands are on different devices.
        TeamMismatchError: If the operands belong to different teams.

    >>> import tecomp.array as xp
    >>> vecdot(xp.asarray([1j, 2]), xp.asarray([1j, 3]))
    Array(7.+0.j, dtype=complex128)
    """
    op = VecDot(_integer(axis, "vecdot", "axis"))
    return from_node(record(op, node_of(x1, "vecdot", "x1"), node_of(x2, "vecdot", "x2")))


def tensordot(
    x1: Array, x2: Array, /, *, axes: int | tuple[Sequence[int], Sequence[int]] = 2
) -> Array:
    """Contract the given axes of two arrays.

    Args:
        x1: First array.
        x2: Second array.
        axes: Number of last axes of `x1` and first axes of `x2` to contract, or a pair of axis
            sequences for `x1` and `x2`. Default: 2.

    Returns:
        Array of all other axes, first the axes of `x1`, then the axes of `x2`.

    Raises:
        ArrayTypeError: If a dtype is not numeric.
        ArrayIndexError: If an axis is out of bounds.
        ArrayValueError: If the extents of contracted axes differ.
        DeviceMismatchError: If the operands are on different devices.
        TeamMismatchError: If the operands belong to different teams.

    >>> import tecomp.array as xp
    >>> tensordot(xp.asarray([1, 2, 3]), xp.asarray([4, 5, 6]), axes=1)
    Array(32, dtype=int64)
    """
    first, second = node_of(x1, "tensordot", "x1"), node_of(x2, "tensordot", "x2")
    pair = _pair(axes, first.type.rank, second.type.rank)
    return from_node(record(TensorDot(pair), first, second))


def _pair(axes: object, first: int, second: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    where = "tensordot"
    if isinstance(axes, Sequence):
        if len(axes) != 2 or not all(isinstance(own, Sequence) for own in axes):
            raise ArrayTypeError(
                "{where}: axes must be an integer or a pair (axes of x1, axes of x2), got {axes!r}",
                where=where, axes=axes,
            )
        one, other = (tuple([_integer(k, where, "an axis") for k in own]) for own in axes)
        return one, other
    count = _integer(axes, where, "axes")
    if not 0 <= count <= min(first, second):
        raise ArrayValueError(
            "{where}: axes is {count!r}, which is out of range for operands with {first} and "
            "{second} axes; pass a number from 0 to {first2}",
            where=where, count=count, first=first, second=second, first2=min(first, second),
        )
    return tuple(range(first - count, first)), tuple(range(count))


def _integer(value: object, where: str, what: str) -> int:
    try:
        return operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        raise ArrayTypeError(
            "{where}: {what} must be an integer, got {value!r}",
            where=where, what=what, value=value,
        ) from None
