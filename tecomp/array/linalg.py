"""Linear algebra: the extension `linalg` of the standard."""

from __future__ import annotations

from math import inf
from typing import Any, Literal, NamedTuple, SupportsIndex

import numpy as np

from tecomp.array.array_object import Array, made, node_of
from tecomp.array.functions.creation import eye
from tecomp.array.functions.linear_algebra import matmul as matmul
from tecomp.array.functions.linear_algebra import matrix_transpose as matrix_transpose
from tecomp.array.functions.linear_algebra import tensordot as tensordot
from tecomp.array.functions.linear_algebra import vecdot as vecdot
from tecomp.array.graph.node import Node, record
from tecomp.array.library_fallback import library_call
from tecomp.array.validation import beside, diagonal_of, dtype_name, flag, integer, word
from tecomp.errors import ArrayTypeError, ArrayValueError
from tecomp.ptensor.operations.elementwise import (
    Cast,
    ElementwiseUnaryOp,
)
from tecomp.ptensor.operations.library_ops import Matrices, PseudoInverse, Rank, Solve
from tecomp.ptensor.operations.linear_algebra import (
    Cross,
    Diagonal,
    MatMul,
    Outer,
    Trace,
    need_matrices,
)
from tecomp.ptensor.operations.manipulation import Broadcast, Reshape
from tecomp.ptensor.operations.reduction import CountNonzero, Reduce
from tecomp.ptensor.types import COMPLEX, FLOATING, PART, Axes, axes_of, need_dtype, without

__all__ = [
    "cholesky", "cross", "det", "diagonal", "eig", "eigh", "eigvals", "eigvalsh", "inv", "matmul",
    "matrix_norm", "matrix_power", "matrix_rank", "matrix_transpose", "outer", "pinv", "qr",
    "slogdet", "solve", "svd", "svdvals", "tensordot", "trace", "vecdot", "vector_norm",
]


def __dir__() -> list[str]:
    """What a user types, and nothing that it is made with."""
    return sorted(__all__)


class EigResult(NamedTuple):
    """What `eig` gives."""

    eigenvalues: Array
    eigenvectors: Array


class EighResult(NamedTuple):
    """What `eigh` gives."""

    eigenvalues: Array
    eigenvectors: Array


class QRResult(NamedTuple):
    """What `qr` gives."""

    Q: Array
    R: Array


class SlogdetResult(NamedTuple):
    """What `slogdet` gives."""

    sign: Array
    logabsdet: Array


class SVDResult(NamedTuple):
    """What `svd` gives."""

    U: Array
    S: Array
    Vh: Array


def _called(kind: str, x: object, full: bool = False) -> list[Array]:
    return [made(node) for node in library_call(Matrices(kind, full), node_of(x, kind))]


def cholesky(x: Array, /, *, upper: bool = False) -> Array:
    """The triangular matrix whose product with its transpose, conjugated, is a matrix.

    Args:
        x: Hermitian matrices that are positive definite, shape (..., n, n), of floating-point
            numbers; the lower triangle is read, or the upper one.
        upper: whether the upper factor is wanted, and not the lower.

    Returns:
        The factors, of the same shape and type.

    Raises:
        ArrayTypeError: If `x` has an unsupported dtype.
        ArrayValueError: matrices are not square, or one is not positive definite.

    >>> import tecomp.array as xp
    >>> cholesky(xp.asarray([[4.0, 2.0], [2.0, 2.0]]))
    Array([[2., 0.],
           [1., 1.]], dtype=float64)
    """
    return _called("cholesky", x, flag(upper, "cholesky", "upper"))[0]


def cross(x1: Array, x2: Array, /, *, axis: SupportsIndex = -1) -> Array:
    """The cross products of vectors of three elements.

    Args:
        x1: the first vectors, of numbers.
        x2: the second; other axes than `axis` are broadcast.
        axis: along which they lie; counted from the last if the arrays have not as many axes.

    Returns:
        The broadcast shape.

    Raises:
        ArrayTypeError: If a dtype is not numeric.
        ArrayValueError: there is no such axis, it has not three elements, or shapes do not fit.
        DeviceMismatchError: If the operands are on different devices.
        TeamMismatchError: If the operands belong to different teams.

    >>> import tecomp.array as xp
    >>> cross(xp.asarray([1, 0, 0]), xp.asarray([0, 1, 0]))
    Array([0, 0, 1], dtype=int64)
    """
    first, second = node_of(x1, "cross", "x1"), node_of(x2, "cross", "x2")
    along = integer(axis, "cross", "axis")
    if along >= 0 and first.type.rank == second.type.rank:
        along -= first.type.rank
    return made(record(Cross(along), first, second))


def det(x: Array, /) -> Array:
    """The determinants of square matrices.

    Args:
        x: shape (..., n, n), of floating-point numbers.

    Returns:
        Shape (...).

    Raises:
        ArrayTypeError: If `x` has an unsupported dtype.
        ArrayValueError: If the matrices are not square.

    >>> import tecomp.array as xp
    >>> det(xp.asarray([[2.0, 0.0], [0.0, 3.0]]))
    Array(6., dtype=float64)
    """
    return _called("det", x)[0]


def diagonal(x: Array, /, *, offset: SupportsIndex = 0) -> Array:
    """The elements of matrices on a diagonal.

    Args:
        x: Input array of shape (..., m, n).
        offset: how far the diagonal is above the main one.

    Returns:
        Shape (..., length of the diagonal).

    Raises:
        ArrayValueError: `x` has fewer axes than two.

    >>> import tecomp.array as xp
    >>> diagonal(xp.asarray([[1, 2], [3, 4]]))
    Array([1, 4], dtype=int64)
    """
    op = Diagonal(integer(offset, "diagonal", "offset"))
    return made(record(op, node_of(x, "diagonal")))


def eig(x: Array, /) -> EigResult:
    """The eigenvalues and eigenvectors of square matrices.

    Args:
        x: shape (..., n, n), of floating-point numbers.

    Returns:
        `eigenvalues`, shape (..., n), in no order, and `eigenvectors`, (..., n, n), in columns;
        both complex.

    Raises:
        ArrayTypeError: If `x` has an unsupported dtype.
        ArrayValueError: matrices are not square, or there is no result.

    >>> import tecomp.array as xp
    >>> eig(xp.asarray([[0.0, 1.0], [-1.0, 0.0]])).eigenvalues
    Array([0.+1.j, 0.-1.j], dtype=complex128)
    """
    return EigResult(*_called("eig", x))


def eigh(x: Array, /) -> EighResult:
    """The eigenvalues and eigenvectors of Hermitian matrices, whose lower triangle is read.

    Args:
        x: shape (..., n, n), of floating-point numbers.

    Returns:
        `eigenvalues`, shape (..., n), real, the least first, and `eigenvectors`, (..., n, n), in
        columns.

    Raises:
        ArrayTypeError: If `x` has an unsupported dtype.
        ArrayValueError: matrices are not square, or there is no result.

    >>> import tecomp.array as xp
    >>> eigh(xp.asarray([[2.0, 0.0], [0.0, 1.0]])).eigenvalues
    Array([1., 2.], dtype=float64)
    """
    return EighResult(*_called("eigh", x))


def eigvals(x: Array, /) -> Array:
    """The eigenvalues of square matrices, as `eig` gives them.

    >>> import tecomp.array as xp
    >>> eigvals(xp.asarray([[0.0, 1.0], [-1.0, 0.0]]))
    Array([0.+1.j, 0.-1.j], dtype=complex128)
    """
    return _called("eigvals", x)[0]


def eigvalsh(x: Array, /) -> Array:
    """The eigenvalues of Hermitian matrices, as `eigh` gives them.

    >>> import tecomp.array as xp
    >>> eigvalsh(xp.asarray([[2.0, 0.0], [0.0, 1.0]]))
    Array([1., 2.], dtype=float64)
    """
    return _called("eigvalsh", x)[0]


def inv(x: Array, /) -> Array:
    """The inverses of square matrices.

    Args:
        x: shape (..., n, n), of floating-point numbers.

    Returns:
        The same shape and type.

    Raises:
        ArrayTypeError: If `x` has an unsupported dtype.
        ArrayValueError: matrices are not square, or one has no inverse.

    >>> import tecomp.array as xp
    >>> inv(xp.asarray([[2.0, 0.0], [0.0, 4.0]]))
    Array([[0.5 , 0.  ],
           [0.  , 0.25]], dtype=float64)
    """
    return _called("inv", x)[0]


def matrix_norm(
    x: Array, /, *, keepdims: bool = False, ord: float | Literal["fro", "nuc"] | None = "fro"
) -> Array:
    """The norms of matrices.

    Args:
        x: shape (..., m, n), of floating-point numbers.
        keepdims: whether the last two axes stay, with extent 1.
        ord: `fro` for the root of the squares of all elements; `nuc` for the sum of the singular
            values; 2 and -2 for the greatest and the least of them; 1 and -1 for the greatest and
            the least sum of a column, inf and -inf for those of a row. As `fro` if None.

    Returns:
        Real numbers, shape (...).

    Raises:
        ArrayTypeError: If `x` has an unsupported dtype.
        ArrayValueError: `x` has fewer axes than two, there is no such norm, or no element of which
            it is the greatest.

    >>> import tecomp.array as xp
    >>> x = xp.asarray([[3.0, 0.0], [4.0, 0.0]])
    >>> matrix_norm(x), matrix_norm(x, ord=1)
    (Array(5., dtype=float64), Array(7., dtype=float64))
    """
    where = "matrix_norm"
    node = node_of(x, where)
    need_dtype(node.type.dtype, FLOATING, where)
    need_matrices(node.type, where)
    rank, keepdims = node.type.rank, flag(keepdims, where, "keepdims")
    if not isinstance(ord, str | int | float | np.generic | None):
        raise _no_norm(ord)
    if ord is None or ord == "fro":
        return made(_euclidean(node, (rank - 2, rank - 1), keepdims))
    if ord in ("nuc", 2, -2):
        (values,) = library_call(Matrices("svdvals"), node)
        kind = {"nuc": "sum", 2: "max", -2: "min"}[ord]
        found = record(Reduce(kind, (rank - 2,)), values)
        shape = without(node.type.shape, (rank - 2, rank - 1), keepdims)
        return made(record(Reshape(shape), found) if keepdims else found)
    if ord not in (1, -1, inf, -inf):
        raise _no_norm(ord)
    added, other = (rank - 2, rank - 1) if ord in (1, -1) else (rank - 1, rank - 2)
    sums = record(Reduce("sum", (added,), True), _sizes(node))
    found = record(Reduce("max" if ord > 0 else "min", (other,), True), sums)
    if keepdims:
        return made(found)
    return made(record(Reshape(node.type.shape[:-2]), found))


def _no_norm(ord: object) -> ArrayValueError:
    return ArrayValueError(
        f"matrix_norm: ord is {ord!r}; give 'fro', 'nuc', 1, -1, 2, -2, inf or -inf"
    )


def _sizes(node: Node) -> Node:
    return record(ElementwiseUnaryOp("abs"), node)


def _euclidean(node: Node, axes: tuple[int, ...], keepdims: bool) -> Node:
    """The root of the sum of all squares."""
    sizes = _sizes(node) if node.type.dtype in COMPLEX else node
    squares = record(ElementwiseUnaryOp("square"), sizes)
    total = record(Reduce("sum", axes, keepdims), squares)
    return record(ElementwiseUnaryOp("sqrt"), total)


def matrix_power(x: Array, n: SupportsIndex, /) -> Array:
    """Square matrices multiplied by themselves.

    Args:
        x: shape (..., n, n), of floating-point numbers.
        n: how often; of the inverses if it is below 0.

    Returns:
        The same shape and type.

    Raises:
        ArrayTypeError: If `x` has an unsupported dtype, or `n` is not an integer.
        ArrayValueError: matrices are not square, or one has no inverse and needs it.

    >>> import tecomp.array as xp
    >>> matrix_power(xp.asarray([[1.0, 1.0], [0.0, 1.0]]), 5)
    Array([[1., 5.],
           [0., 1.]], dtype=float64)
    """
    where = "matrix_power"
    node, times = node_of(x, where), integer(n, where, "n")
    need_dtype(node.type.dtype, FLOATING, where)
    need_matrices(node.type, where)
    if node.type.shape[-1] != node.type.shape[-2]:
        raise ArrayValueError(
            f"{where}: x has shape {node.type.shape}; give square matrices, as many rows as "
            "columns",
            kind="array-shapes",
        )
    if times < 0:
        (node,) = library_call(Matrices("inv"), node)
        times = -times
    if times == 0:
        size, dtype = node.type.shape[-1], x.dtype
        identity = node_of(eye(size, dtype=dtype, device=node.type.device), where)
        return made(record(Broadcast(node.type.shape), identity))
    result: Node | None = None
    while times:
        if times % 2:
            result = node if result is None else record(MatMul(), result, node)
        times //= 2
        node = record(MatMul(), node, node) if times else node
    assert result is not None
    return made(result)


def matrix_rank(x: Array, /, *, rtol: float | Array | None = None) -> Array:
    """How many rows of matrices do not follow from one another.

    Args:
        x: shape (..., m, n), of floating-point numbers.
        rtol: singular values up to this part of the greatest count as 0; the greater of m and n
            times the precision if None.

    Returns:
        Counts, int64, shape (...).

    Raises:
        ArrayTypeError: If `x` has an unsupported dtype.
        ArrayValueError: `x` has fewer axes than two, or `rtol` is not one for each matrix.
        DeviceMismatchError: If the operands are on different devices.
        TeamMismatchError: If the operands belong to different teams.

    >>> import tecomp.array as xp
    >>> matrix_rank(xp.asarray([[1.0, 2.0], [2.0, 4.0]]))
    Array(1, dtype=int64)
    """
    node = node_of(x, "matrix_rank")
    (result,) = library_call(Rank(), node, *_tolerance(rtol, node, "matrix_rank"))
    return made(result)


def _tolerance(rtol: object, node: Node, where: str) -> tuple[Node, ...]:
    """A second operand, if a tolerance is given."""
    if rtol is None:
        return ()
    if isinstance(rtol, Array):
        return (node_of(rtol, where, "rtol"),)
    if isinstance(rtol, int | float):
        real = node.type.like((), PART.get(node.type.dtype, node.type.dtype))
        number = beside(real, float(rtol), where)
        assert number is not None
        return (number,)
    raise ArrayTypeError(f"{where}: rtol is {rtol!r}; give a number of Python, or an array")


def outer(x1: Array, x2: Array, /) -> Array:
    """Each element of a vector multiplied by each of another.

    Args:
        x1: m elements, numbers.
        x2: n elements.

    Returns:
        Shape (m, n).

    Raises:
        ArrayTypeError: If a dtype is not numeric.
        ArrayValueError: one is no vector.
        DeviceMismatchError: If the operands are on different devices.
        TeamMismatchError: If the operands belong to different teams.

    >>> import tecomp.array as xp
    >>> outer(xp.asarray([1, 2]), xp.asarray([3, 4]))
    Array([[3, 4],
           [6, 8]], dtype=int64)
    """
    return made(record(Outer(), node_of(x1, "outer", "x1"), node_of(x2, "outer", "x2")))


def pinv(x: Array, /, *, rtol: float | Array | None = None) -> Array:
    """What comes nearest to the inverses of matrices.

    Args:
        x: shape (..., m, n), of floating-point numbers.
        rtol: singular values up to this part of the greatest count as 0; the greater of m and n
            times the precision if None.

    Returns:
        Shape (..., n, m).

    Raises:
        ArrayTypeError: If `x` has an unsupported dtype.
        ArrayValueError: `x` has fewer axes than two, or `rtol` is not one for each matrix.
        DeviceMismatchError: If the operands are on different devices.
        TeamMismatchError: If the operands belong to different teams.

    >>> import tecomp.array as xp
    >>> pinv(xp.asarray([[2.0], [0.0]]))
    Array([[0.5, 0. ]], dtype=float64)
    """
    node = node_of(x, "pinv")
    (result,) = library_call(PseudoInverse(), node, *_tolerance(rtol, node, "pinv"))
    return made(result)


def qr(x: Array, /, *, mode: Literal["reduced", "complete"] = "reduced") -> QRResult:
    """Matrices as products of orthonormal ones and upper triangles.

    Args:
        x: shape (..., m, n), of floating-point numbers.
        mode: `reduced` for as many columns of `Q` as the least of m and n, `complete` for m.

    Returns:
        `Q` and `R`.

    Raises:
        ArrayTypeError: If `x` has an unsupported dtype.
        ArrayValueError: `x` has fewer axes than two, or there is no such mode.

    >>> import tecomp.array as xp
    >>> qr(xp.ones((5, 2))).Q.shape, qr(xp.ones((5, 2)), mode="complete").Q.shape
    ((5, 2), (5, 5))
    """
    is_complete = word(mode, ("reduced", "complete"), "qr", "mode") == "complete"
    return QRResult(*_called("qr", x, is_complete))


def slogdet(x: Array, /) -> SlogdetResult:
    """The signs of determinants, and the logarithms of their sizes.

    Args:
        x: square matrices, shape (..., n, n), of floating-point numbers.

    Returns:
        `sign`, of absolute value 1, or 0, and `logabsdet`, real; both of shape (...).

    Raises:
        ArrayTypeError: If `x` has an unsupported dtype.
        ArrayValueError: If the matrices are not square.

    >>> import tecomp.array as xp
    >>> slogdet(xp.asarray([[0.0, 1.0], [1.0, 0.0]])).sign
    Array(-1., dtype=float64)
    """
    return SlogdetResult(*_called("slogdet", x))


def solve(x1: Array, x2: Array, /) -> Array:
    """What matrices are to be multiplied by to give others.

    Args:
        x1: square matrices, shape (..., n, n), of floating-point numbers.
        x2: what they are to give: a vector, shape (n,), or matrices, (..., n, k).

    Returns:
        The solutions, in the shape of `x2`; leading axes are broadcast.

    Raises:
        ArrayTypeError: elements are others.
        ArrayValueError: shapes do not fit, or a matrix has no inverse.
        DeviceMismatchError: If the operands are on different devices.
        TeamMismatchError: If the operands belong to different teams.

    >>> import tecomp.array as xp
    >>> solve(xp.asarray([[2.0, 0.0], [0.0, 4.0]]), xp.asarray([2.0, 2.0]))
    Array([1. , 0.5], dtype=float64)
    """
    nodes = node_of(x1, "solve", "x1"), node_of(x2, "solve", "x2")
    (result,) = library_call(Solve(), *nodes)
    return made(result)


def svd(x: Array, /, *, full_matrices: bool = True) -> SVDResult:
    """Matrices as products of orthonormal ones, and of their singular values between them.

    Args:
        x: shape (..., m, n), of floating-point numbers.
        full_matrices: whether `U` and `Vh` are square, or have only what belongs to the values.

    Returns:
        `U`, `S`, real, the greatest first, and `Vh`.

    Raises:
        ArrayTypeError: If `x` has an unsupported dtype.
        ArrayValueError: `x` has fewer axes than two, or there is no result.

    >>> import tecomp.array as xp
    >>> svd(xp.asarray([[0.0, 2.0], [3.0, 0.0]])).S
    Array([3., 2.], dtype=float64)
    """
    return SVDResult(*_called("svd", x, flag(full_matrices, "svd", "full_matrices")))


def svdvals(x: Array, /) -> Array:
    """The singular values of matrices, as `svd` gives them.

    >>> import tecomp.array as xp
    >>> svdvals(xp.asarray([[0.0, 2.0], [3.0, 0.0]]))
    Array([3., 2.], dtype=float64)
    """
    return _called("svdvals", x)[0]


def trace(x: Array, /, *, offset: SupportsIndex = 0, dtype: Any = None) -> Array:
    """The sums of the elements of matrices on a diagonal.

    Args:
        x: shape (..., m, n), of numbers.
        offset: how far the diagonal is above the main one.
        dtype: the element type of the result; that of `x` if None, and 64 bits for integers.

    Returns:
        Shape (...).

    Raises:
        ArrayTypeError: If `x` has an unsupported dtype.
        ArrayValueError: `x` has fewer axes than two.

    >>> import tecomp.array as xp
    >>> trace(xp.asarray([[1, 2], [3, 4]]))
    Array(5, dtype=int64)
    """
    wanted = None if dtype is None else dtype_name(dtype, "trace")
    node = node_of(x, "trace")
    op = Trace(diagonal_of(offset, node.type.shape, "trace", "offset"), wanted)
    return made(record(op, node))


def vector_norm(
    x: Array, /, *, axis: Axes = None, keepdims: bool = False, ord: float = 2
) -> Array:
    """The norms of vectors.

    Args:
        x: Input array of floating-point dtype, real or complex.
        axis: along which they lie: one axis or several; all of them if None.
        keepdims: If True, keep reduced axes with size 1.
        ord: 2 for the root of the squares of all elements; 1 for the sum of their sizes; inf and
            -inf for the greatest and the least size; 0 for how many are not 0; any other number p
            for the p-th root of the sum of the p-th powers of sizes.

    Returns:
        Real numbers.

    Raises:
        ArrayTypeError: `x` is of other elements, or `ord` is no number.
        ArrayIndexError: If `axis` is out of bounds.
        ArrayValueError: there is no element of which it is the greatest.

    >>> import tecomp.array as xp
    >>> vector_norm(xp.asarray([3.0, 4.0])), vector_norm(xp.asarray([3.0, 4.0]), ord=1)
    (Array(5., dtype=float64), Array(7., dtype=float64))
    """
    where = "vector_norm"
    node = node_of(x, where)
    need_dtype(node.type.dtype, FLOATING, where)
    if not isinstance(ord, int | float):
        raise ArrayTypeError(f"{where}: ord is {ord!r}; give a number of Python")
    axes, keeps = axes_of(axis, node.type.rank, where), flag(keepdims, where, "keepdims")
    if ord == 2:
        return made(_euclidean(node, axes, keeps))
    sizes = _sizes(node)
    if ord in (inf, -inf):
        return made(record(Reduce("max" if ord > 0 else "min", axes, keeps), sizes))
    if ord == 0:
        count = record(CountNonzero(axes, keeps), node)
        return made(record(Cast(sizes.type.dtype), count))
    if ord == 1:
        return made(record(Reduce("sum", axes, keeps), sizes))
    powers = made(sizes) ** float(ord)
    total = made(record(Reduce("sum", axes, keeps), node_of(powers, where)))
    return total ** (1 / float(ord))
