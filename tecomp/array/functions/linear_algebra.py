"""Matrix products, and norms of matrices and vectors."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from math import inf
from typing import Literal, SupportsIndex

import numpy as np

from tecomp.array.array_object import Array, from_node, node_of, permuted_view
from tecomp.array.graph.node import Node, record
from tecomp.array.library_fallback import call_library
from tecomp.array.validation import (
    check_bool,
    float64_of,
)
from tecomp.errors import ArrayTypeError, ArrayValueError
from tecomp.ptensor.operations.elementwise import (
    CastOp,
    ElementwiseUnaryOp,
)
from tecomp.ptensor.operations.library_ops import Matrices
from tecomp.ptensor.operations.linear_algebra import (
    MatMul,
    MatrixTranspose,
    TensorDot,
    VecDot,
    need_matrices,
)
from tecomp.ptensor.operations.manipulation import Reshape
from tecomp.ptensor.operations.reduction import CountNonzero, ReduceOp
from tecomp.ptensor.types import COMPLEX, FLOATING, Axes, axes_of, drop_axes, need_dtype


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
        if len(axes) != 2 or not all(isinstance(group, Sequence) for group in axes):
            raise ArrayTypeError(
                "{where}: axes must be an integer or a pair (axes of x1, axes of x2), got {axes!r}",
                where=where, axes=axes,
            )
        one, other = (tuple([_integer(k, where, "an axis") for k in group]) for group in axes)
        return one, other
    count = _integer(axes, where, "axes")
    if not 0 <= count <= min(first, second):
        raise ArrayValueError(
            "{where}: axes is {count!r}, which is out of range for operands with {first} and "
            "{second} axes; pass a number from 0 to {max_count}",
            where=where, count=count, first=first, second=second, max_count=min(first, second),
        )
    return tuple(range(first - count, first)), tuple(range(count))


def _integer(value: object, where: str, subject: str) -> int:
    try:
        return operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        raise ArrayTypeError(
            "{where}: {subject} must be an integer, got {value!r}",
            where=where, subject=subject, value=value,
        ) from None


def matrix_norm(
    x: Array, /, *, keepdims: bool = False, ord: float | Literal["fro", "nuc"] | None = "fro"
) -> Array:
    """Compute the norm of each matrix.

    Args:
        x: Matrices of shape (..., m, n) and floating-point dtype.
        keepdims: If True, keep the last two axes with size 1.
        ord: Norm: `fro` (or None) for the Frobenius norm; `nuc` for the nuclear norm, the sum of
            the singular values; 2 and -2 for the greatest and least singular value; 1 and -1 for
            the greatest and least absolute column sum; inf and -inf for the greatest and least
            absolute row sum. Default: `fro`.

    Returns:
        Real array of shape (...).

    Raises:
        ArrayTypeError: If `x` has an unsupported dtype.
        ArrayValueError: If `x` has fewer than two axes, `ord` is unknown, or the maximum or minimum
            of an empty matrix is required.

    >>> import tecomp.array as xp
    >>> x = xp.asarray([[3.0, 0.0], [4.0, 0.0]])
    >>> matrix_norm(x), matrix_norm(x, ord=1)
    (Array(5., dtype=float64), Array(7., dtype=float64))
    """
    where = "matrix_norm"
    node = node_of(x, where)
    need_dtype(node.type.dtype, FLOATING, where)
    need_matrices(node.type, where)
    rank, keepdims = node.type.rank, check_bool(keepdims, where, "keepdims")
    if not isinstance(ord, str | int | float | np.generic | None):
        raise _unknown_norm(ord)
    if ord is None or ord == "fro":
        return from_node(_euclidean(node, (rank - 2, rank - 1), keepdims))
    if ord in ("nuc", 2, -2):
        (values,) = call_library(Matrices("svdvals"), node)
        kind = {"nuc": "sum", 2: "max", -2: "min"}[ord]
        found = record(ReduceOp(kind, (rank - 2,)), values)
        shape = drop_axes(node.type.shape, (rank - 2, rank - 1), keepdims)
        return from_node(record(Reshape(shape), found) if keepdims else found)
    if ord not in (1, -1, inf, -inf):
        raise _unknown_norm(ord)
    added, other = (rank - 2, rank - 1) if ord in (1, -1) else (rank - 1, rank - 2)
    sums = record(ReduceOp("sum", (added,), True), _magnitudes(node))
    found = record(ReduceOp("max" if ord > 0 else "min", (other,), True), sums)
    if keepdims:
        return from_node(found)
    return from_node(record(Reshape(node.type.shape[:-2]), found))


def _unknown_norm(ord: object) -> ArrayValueError:
    return ArrayValueError(
        "matrix_norm: ord must be 'fro', 'nuc', 1, -1, 2, -2, inf or -inf, got {ord!r}",
        ord=ord,
    )


def _magnitudes(node: Node) -> Node:
    return record(ElementwiseUnaryOp("abs"), node)


def _euclidean(node: Node, axes: tuple[int, ...], keepdims: bool) -> Node:
    """Return the square root of the sum of squared magnitudes."""
    magnitudes = _magnitudes(node) if node.type.dtype in COMPLEX else node
    squares = record(ElementwiseUnaryOp("square"), magnitudes)
    total = record(ReduceOp("sum", axes, keepdims), squares)
    return record(ElementwiseUnaryOp("sqrt"), total)


def vector_norm(
    x: Array, /, *, axis: Axes = None, keepdims: bool = False, ord: float = 2
) -> Array:
    """Compute the norm of vectors along the given axes.

    Args:
        x: Input array of floating-point dtype, real or complex.
        axis: Axis or axes of the vectors. Default: all axes.
        keepdims: If True, keep reduced axes with size 1.
        ord: Norm: 2 for the Euclidean norm; 1 for the sum of magnitudes; inf and -inf for the
            greatest and least magnitude; 0 for the number of nonzero elements; any other number p
            for the p-norm, the p-th root of the sum of p-th powers of magnitudes. Default: 2.

    Returns:
        Real array without the axes of the vectors.

    Raises:
        ArrayTypeError: If `x` has an unsupported dtype, or `ord` is not a number.
        ArrayIndexError: If `axis` is out of bounds.
        ArrayValueError: If the greatest or least magnitude of an empty vector is required.

    >>> import tecomp.array as xp
    >>> vector_norm(xp.asarray([3.0, 4.0])), vector_norm(xp.asarray([3.0, 4.0]), ord=1)
    (Array(5., dtype=float64), Array(7., dtype=float64))
    """
    where = "vector_norm"
    node = node_of(x, where)
    need_dtype(node.type.dtype, FLOATING, where)
    if not isinstance(ord, int | float):
        raise ArrayTypeError(
            "{where}: ord must be a Python number, got {ord!r}",
            where=where, ord=ord,
        )
    axes, keep = axes_of(axis, node.type.rank, where), check_bool(keepdims, where, "keepdims")
    if ord == 2:
        return from_node(_euclidean(node, axes, keep))
    magnitudes = _magnitudes(node)
    if ord in (inf, -inf):
        return from_node(record(ReduceOp("max" if ord > 0 else "min", axes, keep), magnitudes))
    if ord == 0:
        count = record(CountNonzero(axes, keep), node)
        return from_node(record(CastOp(magnitudes.type.dtype), count))
    if ord == 1:
        return from_node(record(ReduceOp("sum", axes, keep), magnitudes))
    power = float64_of(ord, where, "ord")
    total = from_node(
        record(ReduceOp("sum", axes, keep), node_of(from_node(magnitudes) ** power, where)))
    return total ** (1 / power)
