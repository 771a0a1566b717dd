"""Matrix products, contractions, and norms of matrices and vectors."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from math import inf, prod
from typing import Literal, SupportsIndex

import numpy as np

from tecomp.array.array_object import Array, from_node, node_of, permuted_view
from tecomp.array.functions.data_types import astype
from tecomp.array.functions.manipulation import expand_dims, moveaxis, permute_dims, reshape
from tecomp.array.functions.table_functions import sum
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


def einsum(subscripts: str, /, *arrays: Array) -> Array:
    """Sum products of elements over the axes that have equal letters, as `numpy.einsum` does.

    Several arrays are contracted in pairs, in an order that `numpy.einsum_path` chooses. A pair is
    a product of matrices, or an element-wise product that is summed as it is computed.

    Args:
        subscripts: Letters for the axes of each array, and of the result: `"ij,jk->ik"`. Without
            `->`, the result has the letters that occur once, in alphabetical order. `...` stands
            for axes that are broadcast.
        arrays: Operands.

    Raises:
        ArrayTypeError: If the dtypes are not numeric.
        ArrayValueError: If the letters do not match the operands.

    >>> import tecomp.array as xp
    >>> x = xp.reshape(xp.arange(6), (2, 3))
    >>> einsum("ij,kj->ik", x, x), einsum("ij->j", x)
    (Array([[ 5, 14],
           [14, 50]], dtype=int64), Array([3, 5, 7], dtype=int64))
    """
    inputs, output = _letters(subscripts, arrays)
    operands = [_simplify(x, letters, output) for x, letters in zip(arrays, inputs, strict=True)]
    order: Sequence[tuple[int, ...]] = [tuple(range(len(operands)))]
    if len(operands) > 2:
        samples = [np.broadcast_to(np.empty(()), x.shape) for x, _ in operands]
        text = ",".join(letters for _, letters in operands) + "->" + output
        order = np.einsum_path(text, *samples, optimize="greedy")[0][1:]
    for step in order:
        chosen = [operands.pop(k) for k in sorted(step, reverse=True)]
        while len(chosen) > 1:
            rest = {*output}.union(*[letters for _, letters in [*operands, *chosen[:-2]]])
            second, first = chosen.pop(), chosen.pop()
            chosen.append(_contract(first, second, rest))
        operands.append(chosen[0])
    result, letters = operands[0]
    surplus = tuple([k for k, letter in enumerate(letters) if letter not in output])
    if surplus:
        result = sum(result, axis=surplus)
        letters = "".join([letter for letter in letters if letter in output])
    return permute_dims(result, tuple([letters.index(letter) for letter in output]))


def _letters(subscripts: str, arrays: Sequence[Array]) -> tuple[list[str], str]:
    """Return the letters of each operand and of the result, with letters in place of `...`."""
    text = subscripts.replace(" ", "")
    left, arrow, right = text.partition("->")
    inputs = left.split(",")
    ranks = [x.ndim - len(part.replace("...", "")) for x, part in zip(arrays, inputs, strict=False)]
    matches = len(inputs) == len(arrays) and all(
        rank == 0 or (rank > 0 and "..." in part) for rank, part in zip(ranks, inputs, strict=True))
    letters = text.replace("...", "").replace(",", "").replace("->", "")
    if not matches or (letters and not letters.isalpha()) or not {*right.replace("...", "")} <= {
            *left}:
        raise ArrayValueError(
            "einsum: {subscripts!r} does not match operands of shapes {shapes}; write a letter for "
            "each axis, as in 'ij,jk->ik'",
            kind="array-shapes", subscripts=subscripts, shapes=[x.shape for x in arrays],
        )
    rest = [chr(k) for k in range(ord("A"), ord("z") + 1) if chr(k).isalpha()]
    free = [letter for letter in rest if letter not in letters]
    dots = "".join(free[: max(ranks, default=0)])
    inputs = [
        part.replace("...", dots[len(dots) - rank :] if rank else "")
        for part, rank in zip(inputs, ranks, strict=True)
    ]
    if not arrow:
        once = sorted({letter for letter in letters if letters.count(letter) == 1})
        right = ("..." if dots else "") + "".join(once)
    return inputs, right.replace("...", dots)


def _simplify(x: Array, letters: str, output: str) -> tuple[Array, str]:
    """Replace axes with equal letters by their diagonal."""
    for letter in sorted({*letters}):
        while letters.count(letter) > 1:
            first = letters.index(letter)
            second = letters.index(letter, first + 1)
            x = moveaxis(x, (first, second), (-2, -1))
            extent = x.shape[-1]
            if x.shape[-2] != extent:
                raise ArrayValueError(
                    "einsum: letter {letter!r} stands for axes of sizes {rows} and {extent}",
                    kind="array-shapes", letter=letter, rows=x.shape[-2], extent=extent,
                )
            x = reshape(x, (*x.shape[:-2], extent * extent))[..., :: extent + 1]
            letters = letters[:first] + letters[first + 1 : second] + letters[second + 1 :] + letter
    if x.dtype == bool:
        x = astype(x, np.int64)
    return x, letters


def _contract(
    first: tuple[Array, str], second: tuple[Array, str], rest: set[str]
) -> tuple[Array, str]:
    """Contract two operands over the letters that neither the result nor other operands have."""
    first, second = (
        _sum_over(x, letters, {*letters} - rest - {*other})
        for (x, letters), (_, other) in ((first, second), (second, first))
    )
    (a, left), (b, right) = first, second
    shared = [letter for letter in left if letter in right]
    summed = [letter for letter in shared if letter not in rest]
    batch = [letter for letter in shared if letter in rest]
    rows = [letter for letter in left if letter not in shared]
    columns = [letter for letter in right if letter not in shared]
    sizes = dict(zip(right, b.shape, strict=True))
    sizes.update({k: n for k, n in zip(left, a.shape, strict=True) if n != 1 or k not in sizes})
    is_matmul = summed and (rows or columns) and all(
        x.shape[letters.index(k)] == sizes[k] for x, letters in (first, second) for k in shared)
    if is_matmul:
        groups = [prod([sizes[k] for k in names]) for names in (batch, rows, summed, columns)]
        a3 = reshape(_align(a, left, [*batch, *rows, *summed]), (groups[0], groups[1], groups[2]))
        b3 = reshape(_align(b, right, [*batch, *summed, *columns]), (
            groups[0], groups[2], groups[3]))
        product = matmul(a3, b3) if batch else matmul(a3[0], b3[0])
        names = [*batch, *rows, *columns]
        return reshape(product, [sizes[k] for k in names]), "".join(names)
    names = [*batch, *rows, *columns, *summed]
    product = _align(a, left, names) * _align(b, right, names)
    return _sum_over(product, "".join(names), {*summed})


def _align(x: Array, letters: str, names: Sequence[str]) -> Array:
    """Permute the axes to the order of the names; names that the array lacks get axes of size 1."""
    present = [name for name in names if name in letters]
    order = tuple([letters.index(name) for name in present])
    x = x if order == tuple(range(x.ndim)) else permute_dims(x, order)
    if len(present) == len(names):
        return x
    return expand_dims(x, axis=tuple([k for k, name in enumerate(names) if name not in letters]))


def _sum_over(x: Array, letters: str, names: set[str]) -> tuple[Array, str]:
    axes = tuple([k for k, letter in enumerate(letters) if letter in names])
    if not axes:
        return x, letters
    return sum(x, axis=axes), "".join([k for k in letters if k not in names])
