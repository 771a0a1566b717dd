"""Products of matrices, vectors and tensors."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import SupportsIndex

from tecomp.array.array_object import Array, made, node_of, turned_array
from tecomp.array.graph.node import record
from tecomp.errors import ArrayTypeError, ArrayValueError
from tecomp.ptensor.operations.linear_algebra import MatMul, MatrixTranspose, TensorDot, VecDot


def matmul(x1: Array, x2: Array, /) -> Array:
    """The product of matrices, as `x1 @ x2`.

    Args:
        x1: matrices, shape (..., m, k), or a vector, (k,).
        x2: matrices, shape (..., k, n), or a vector, (k,); leading axes are broadcast.

    Returns:
        The products, (..., m, n), without the axes that a vector has not.

    Raises:
        ArrayTypeError: elements are no numbers.
        ArrayValueError: shapes do not fit.
        DeviceMismatchError: If the operands are on different devices.
        TeamMismatchError: If the operands belong to different teams.

    >>> import tecomp.array as xp
    >>> matmul(xp.asarray([[1, 2], [3, 4]]), xp.asarray([5, 6]))
    Array([17, 39], dtype=int64)
    """
    where = "matmul"
    return made(record(MatMul(), node_of(x1, where, "x1"), node_of(x2, where, "x2")))


def matrix_transpose(x: Array, /) -> Array:
    """Matrices with their rows as columns.

    Args:
        x: matrices, shape (..., m, n).

    Returns:
        Shape (..., n, m).

    Raises:
        ArrayValueError: `x` has fewer axes than two.

    >>> import tecomp.array as xp
    >>> matrix_transpose(xp.asarray([[1, 2], [3, 4]]))
    Array([[1, 3],
           [2, 4]], dtype=int64)
    """
    node_of(x, "matrix_transpose")
    return turned_array(x, MatrixTranspose())


def vecdot(x1: Array, x2: Array, /, *, axis: SupportsIndex = -1) -> Array:
    """The products of vectors, the first conjugated; other axes are broadcast.

    Args:
        x1: the first vectors.
        x2: the second.
        axis: along which they lie, counted from the last, so negative.

    Returns:
        The products, without the axis.

    Raises:
        ArrayTypeError: elements are no numbers.
        ArrayValueError: shapes do not fit, or the axis is none of both.
        DeviceMismatchError: If the operands are on different devices.
        TeamMismatchError: If the operands belong to different teams.

    >>> import tecomp.array as xp
    >>> vecdot(xp.asarray([1j, 2]), xp.asarray([1j, 3]))
    Array(7.+0.j, dtype=complex128)
    """
    op = VecDot(_integer(axis, "vecdot", "axis"))
    return made(record(op, node_of(x1, "vecdot", "x1"), node_of(x2, "vecdot", "x2")))


def tensordot(
    x1: Array, x2: Array, /, *, axes: int | tuple[Sequence[int], Sequence[int]] = 2
) -> Array:
    """The sums of products along axes of both arrays.

    Args:
        x1: the first array.
        x2: the second.
        axes: so many of the last axes of `x1` and the first of `x2`; or the axes of each.

    Returns:
        The sums, with all other axes, those of `x1` first.

    Raises:
        ArrayTypeError: elements are no numbers.
        ArrayIndexError: If `axis` is out of bounds.
        ArrayValueError: extents differ.
        DeviceMismatchError: If the operands are on different devices.
        TeamMismatchError: If the operands belong to different teams.

    >>> import tecomp.array as xp
    >>> tensordot(xp.asarray([1, 2, 3]), xp.asarray([4, 5, 6]), axes=1)
    Array(32, dtype=int64)
    """
    first, second = node_of(x1, "tensordot", "x1"), node_of(x2, "tensordot", "x2")
    pair = _pair(axes, first.type.rank, second.type.rank)
    return made(record(TensorDot(pair), first, second))


def _pair(axes: object, first: int, second: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    where = "tensordot"
    if isinstance(axes, Sequence):
        if len(axes) != 2 or not all(isinstance(own, Sequence) for own in axes):
            raise ArrayTypeError(
                f"{where}: axes is {axes!r}; give a number of axes, or (axes of x1, axes of x2)"
            )
        one, other = (tuple([_integer(k, where, "an axis") for k in own]) for own in axes)
        return one, other
    count = _integer(axes, where, "axes")
    if not 0 <= count <= min(first, second):
        raise ArrayValueError(
            f"{where}: axes is {count}, and the arrays have {first} and {second} axes; give a "
            f"number from 0 to {min(first, second)}"
        )
    return tuple(range(first - count, first)), tuple(range(count))


def _integer(value: object, where: str, what: str) -> int:
    try:
        return operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        raise ArrayTypeError(f"{where}: {what} is {value!r}; give an integer") from None
