"""Linear algebra: the `linalg` extension of the standard."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, SupportsIndex

from tecomp.array.array_object import Array, from_node, node_of
from tecomp.array.functions.creation import eye
from tecomp.array.functions.linear_algebra import matmul as matmul
from tecomp.array.functions.linear_algebra import matrix_norm, vector_norm
from tecomp.array.functions.linear_algebra import matrix_transpose as matrix_transpose
from tecomp.array.functions.linear_algebra import tensordot as tensordot
from tecomp.array.functions.linear_algebra import vecdot as vecdot
from tecomp.array.graph.node import Node, record
from tecomp.array.library_fallback import call_library
from tecomp.array.validation import (
    check_bool,
    check_choice,
    diagonal_of,
    dtype_name,
    float64_of,
    integer,
)
from tecomp.array.weak_scalars import weak_scalar
from tecomp.errors import ArrayTypeError, ArrayValueError
from tecomp.ptensor.operations.library_ops import Matrices, PseudoInverse, Rank, Solve
from tecomp.ptensor.operations.linear_algebra import (
    Cross,
    Diagonal,
    MatMul,
    Outer,
    TraceOp,
    need_matrices,
)
from tecomp.ptensor.operations.manipulation import BroadcastOp
from tecomp.ptensor.types import FLOATING, PART, need_dtype

__all__ = [
    "cholesky", "cross", "det", "diagonal", "eig", "eigh", "eigvals", "eigvalsh", "inv", "matmul",
    "matrix_norm", "matrix_power", "matrix_rank", "matrix_transpose", "outer", "pinv", "qr",
    "slogdet", "solve", "svd", "svdvals", "tensordot", "trace", "vecdot", "vector_norm",
]


def __dir__() -> list[str]:
    """Return the public names of the module."""
    return sorted(__all__)


class EigResult(NamedTuple):
    """Result of `eig`."""

    eigenvalues: Array
    eigenvectors: Array


class EighResult(NamedTuple):
    """Result of `eigh`."""

    eigenvalues: Array
    eigenvectors: Array


class QRResult(NamedTuple):
    """Result of `qr`."""

    Q: Array
    R: Array


class SlogdetResult(NamedTuple):
    """Result of `slogdet`."""

    sign: Array
    logabsdet: Array


class SVDResult(NamedTuple):
    """Result of `svd`."""

    U: Array
    S: Array
    Vh: Array


def _call(kind: str, x: object, full: bool = False) -> list[Array]:
    return [from_node(node) for node in call_library(Matrices(kind, full), node_of(x, kind))]


def cholesky(x: Array, /, *, upper: bool = False) -> Array:
    """Compute the Cholesky factor of Hermitian positive-definite matrices.

    Args:
        x: Hermitian positive-definite matrices of shape (..., n, n) and floating-point dtype. Only
            the lower triangle is read, or with `upper` the upper triangle.
        upper: If True, return the upper factor, otherwise the lower factor. Default: False.

    Returns:
        Triangular factors of the shape and dtype of `x`.

    Raises:
        ArrayTypeError: If `x` has an unsupported dtype.
        ArrayValueError: If the matrices are not square, or a matrix is not positive definite.

    >>> import tecomp.array as xp
    >>> cholesky(xp.asarray([[4.0, 2.0], [2.0, 2.0]]))
    Array([[2., 0.],
           [1., 1.]], dtype=float64)
    """
    return _call("cholesky", x, check_bool(upper, "cholesky", "upper"))[0]


def cross(x1: Array, x2: Array, /, *, axis: SupportsIndex = -1) -> Array:
    """Compute the cross product of 3-element vectors.

    Args:
        x1: First array of vectors, of numeric dtype.
        x2: Second array of vectors. All axes except `axis` are broadcast.
        axis: Axis of the vectors, counted from the last axis if the arrays differ in rank. Default:
            -1.

    Returns:
        Array of the broadcast shape.

    Raises:
        ArrayTypeError: If a dtype is not numeric.
        ArrayValueError: If `axis` is out of bounds or does not have size 3, or the shapes do not
            match.
        DeviceMismatchError: If the operands are on different devices.
        TeamMismatchError: If the operands belong to different teams.

    >>> import tecomp.array as xp
    >>> cross(xp.asarray([1, 0, 0]), xp.asarray([0, 1, 0]))
    Array([0, 0, 1], dtype=int64)
    """
    first, second = node_of(x1, "cross", "x1"), node_of(x2, "cross", "x2")
    dim = integer(axis, "cross", "axis")
    if dim >= 0 and first.type.rank == second.type.rank:
        dim -= first.type.rank
    return from_node(record(Cross(dim), first, second))


def det(x: Array, /) -> Array:
    """Compute the determinant of each matrix.

    Args:
        x: Square matrices of shape (..., n, n) and floating-point dtype.

    Returns:
        Array of shape (...).

    Raises:
        ArrayTypeError: If `x` has an unsupported dtype.
        ArrayValueError: If the matrices are not square.

    >>> import tecomp.array as xp
    >>> det(xp.asarray([[2.0, 0.0], [0.0, 3.0]]))
    Array(6., dtype=float64)
    """
    return _call("det", x)[0]


def diagonal(x: Array, /, *, offset: SupportsIndex = 0) -> Array:
    """Return the elements of a diagonal of each matrix.

    Args:
        x: Matrices of shape (..., m, n).
        offset: Offset of the diagonal above the main diagonal. Default: 0.

    Returns:
        Array of shape (..., length of the diagonal).

    Raises:
        ArrayValueError: If `x` has fewer than two axes.

    >>> import tecomp.array as xp
    >>> diagonal(xp.asarray([[1, 2], [3, 4]]))
    Array([1, 4], dtype=int64)
    """
    op = Diagonal(integer(offset, "diagonal", "offset"))
    return from_node(record(op, node_of(x, "diagonal")))


def eig(x: Array, /) -> EigResult:
    """Compute eigenvalues and eigenvectors of square matrices.

    Args:
        x: Square matrices of shape (..., n, n) and floating-point dtype.

    Returns:
        `eigenvalues` of shape (..., n), unordered, and `eigenvectors` of shape (..., n, n), in
        columns. Both are complex.

    Raises:
        ArrayTypeError: If `x` has an unsupported dtype.
        ArrayValueError: If the matrices are not square, or the decomposition does not converge.

    >>> import tecomp.array as xp
    >>> eig(xp.asarray([[0.0, 1.0], [-1.0, 0.0]])).eigenvalues
    Array([0.+1.j, 0.-1.j], dtype=complex128)
    """
    return EigResult(*_call("eig", x))


def eigh(x: Array, /) -> EighResult:
    """Compute eigenvalues and eigenvectors of Hermitian matrices from the lower triangle.

    Args:
        x: Hermitian matrices of shape (..., n, n) and floating-point dtype.

    Returns:
        `eigenvalues` of shape (..., n), real, in ascending order, and `eigenvectors` of shape (...,
        n, n), in columns.

    Raises:
        ArrayTypeError: If `x` has an unsupported dtype.
        ArrayValueError: If the matrices are not square, or the decomposition does not converge.

    >>> import tecomp.array as xp
    >>> eigh(xp.asarray([[2.0, 0.0], [0.0, 1.0]])).eigenvalues
    Array([1., 2.], dtype=float64)
    """
    return EighResult(*_call("eigh", x))


def eigvals(x: Array, /) -> Array:
    """Compute eigenvalues of square matrices: complex, unordered, of shape (..., n).

    Args:
        x: Square matrices of shape (..., n, n) and floating-point dtype.

    >>> import tecomp.array as xp
    >>> eigvals(xp.asarray([[0.0, 1.0], [-1.0, 0.0]]))
    Array([0.+1.j, 0.-1.j], dtype=complex128)
    """
    return _call("eigvals", x)[0]


def eigvalsh(x: Array, /) -> Array:
    """Compute eigenvalues of Hermitian matrices from the lower triangle, in ascending order.

    Args:
        x: Hermitian matrices of shape (..., n, n) and floating-point dtype.

    >>> import tecomp.array as xp
    >>> eigvalsh(xp.asarray([[2.0, 0.0], [0.0, 1.0]]))
    Array([1., 2.], dtype=float64)
    """
    return _call("eigvalsh", x)[0]


def inv(x: Array, /) -> Array:
    """Compute the inverse of each matrix.

    Args:
        x: Square matrices of shape (..., n, n) and floating-point dtype.

    Returns:
        Array of the shape and dtype of `x`.

    Raises:
        ArrayTypeError: If `x` has an unsupported dtype.
        ArrayValueError: If the matrices are not square, or a matrix is singular.

    >>> import tecomp.array as xp
    >>> inv(xp.asarray([[2.0, 0.0], [0.0, 4.0]]))
    Array([[0.5 , 0.  ],
           [0.  , 0.25]], dtype=float64)
    """
    return _call("inv", x)[0]


def matrix_power(x: Array, n: SupportsIndex, /) -> Array:
    """Raise square matrices to an integer power.

    Args:
        x: Square matrices of shape (..., n, n) and floating-point dtype.
        n: Exponent. Negative exponents raise the inverses to the power -n.

    Returns:
        Array of the shape and dtype of `x`.

    Raises:
        ArrayTypeError: If `x` has an unsupported dtype, or `n` is not an integer.
        ArrayValueError: If the matrices are not square, or `n` is negative and a matrix is
            singular.

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
            "{where}: x must be a square matrix or a stack of square matrices, got shape {shape}",
            kind="array-shapes", where=where, shape=node.type.shape,
        )
    if times < 0:
        (node,) = call_library(Matrices("inv"), node)
        times = -times
    if times == 0:
        size, dtype = node.type.shape[-1], x.dtype
        identity = node_of(eye(size, dtype=dtype, device=node.type.device), where)
        return from_node(record(BroadcastOp(node.type.shape), identity))
    result: Node | None = None
    while times:
        if times % 2:
            result = node if result is None else record(MatMul(), result, node)
        times //= 2
        node = record(MatMul(), node, node) if times else node
    assert result is not None
    return from_node(result)


def matrix_rank(x: Array, /, *, rtol: float | Array | None = None) -> Array:
    """Return the rank of each matrix.

    Args:
        x: Matrices of shape (..., m, n) and floating-point dtype.
        rtol: Singular values up to `rtol` times the greatest singular value count as 0. Default:
            max(m, n) times the machine epsilon.

    Returns:
        Ranks of dtype int64 and shape (...).

    Raises:
        ArrayTypeError: If `x` has an unsupported dtype.
        ArrayValueError: If `x` has fewer than two axes, or `rtol` does not have one value per
            matrix.
        DeviceMismatchError: If the operands are on different devices.
        TeamMismatchError: If the operands belong to different teams.

    >>> import tecomp.array as xp
    >>> matrix_rank(xp.asarray([[1.0, 2.0], [2.0, 4.0]]))
    Array(1, dtype=int64)
    """
    node = node_of(x, "matrix_rank")
    (result,) = call_library(Rank(), node, *_tolerance(rtol, node, "matrix_rank"))
    return from_node(result)


def _tolerance(rtol: object, node: Node, where: str) -> tuple[Node, ...]:
    """Return the tolerance as a tuple of operands, which is empty without a tolerance."""
    if rtol is None:
        return ()
    if isinstance(rtol, Array):
        return (node_of(rtol, where, "rtol"),)
    if isinstance(rtol, int | float):
        real_type = node.type.like((), PART.get(node.type.dtype, node.type.dtype))
        number = weak_scalar(real_type, float64_of(rtol, where, "rtol"), where)
        assert number is not None
        return (number,)
    raise ArrayTypeError(
        "{where}: rtol must be a Python number or an array, got {rtol!r}",
        where=where, rtol=rtol,
    )


def outer(x1: Array, x2: Array, /) -> Array:
    """Compute the outer product of two vectors.

    Args:
        x1: Vector of m elements and numeric dtype.
        x2: Vector of n elements and numeric dtype.

    Returns:
        Array of shape (m, n).

    Raises:
        ArrayTypeError: If a dtype is not numeric.
        ArrayValueError: If an operand is not one-dimensional.
        DeviceMismatchError: If the operands are on different devices.
        TeamMismatchError: If the operands belong to different teams.

    >>> import tecomp.array as xp
    >>> outer(xp.asarray([1, 2]), xp.asarray([3, 4]))
    Array([[3, 4],
           [6, 8]], dtype=int64)
    """
    return from_node(record(Outer(), node_of(x1, "outer", "x1"), node_of(x2, "outer", "x2")))


def pinv(x: Array, /, *, rtol: float | Array | None = None) -> Array:
    """Compute the Moore-Penrose pseudo-inverse of each matrix.

    Args:
        x: Matrices of shape (..., m, n) and floating-point dtype.
        rtol: Singular values up to `rtol` times the greatest singular value count as 0. Default:
            max(m, n) times the machine epsilon.

    Returns:
        Array of shape (..., n, m).

    Raises:
        ArrayTypeError: If `x` has an unsupported dtype.
        ArrayValueError: If `x` has fewer than two axes, or `rtol` does not have one value per
            matrix.
        DeviceMismatchError: If the operands are on different devices.
        TeamMismatchError: If the operands belong to different teams.

    >>> import tecomp.array as xp
    >>> pinv(xp.asarray([[2.0], [0.0]]))
    Array([[0.5, 0. ]], dtype=float64)
    """
    node = node_of(x, "pinv")
    (result,) = call_library(PseudoInverse(), node, *_tolerance(rtol, node, "pinv"))
    return from_node(result)


def qr(x: Array, /, *, mode: Literal["reduced", "complete"] = "reduced") -> QRResult:
    """Compute the QR decomposition of each matrix.

    Args:
        x: Matrices of shape (..., m, n) and floating-point dtype.
        mode: `reduced` for min(m, n) columns of `Q`, `complete` for m columns. Default: `reduced`.

    Returns:
        `Q` with orthonormal columns and upper triangular `R`.

    Raises:
        ArrayTypeError: If `x` has an unsupported dtype.
        ArrayValueError: If `x` has fewer than two axes, or `mode` is unknown.

    >>> import tecomp.array as xp
    >>> qr(xp.ones((5, 2))).Q.shape, qr(xp.ones((5, 2)), mode="complete").Q.shape
    ((5, 2), (5, 5))
    """
    is_complete = check_choice(mode, ("reduced", "complete"), "qr", "mode") == "complete"
    return QRResult(*_call("qr", x, is_complete))


def slogdet(x: Array, /) -> SlogdetResult:
    """Compute the sign and the logarithm of the magnitude of each determinant.

    Args:
        x: Square matrices of shape (..., n, n) and floating-point dtype.

    Returns:
        `sign`, of magnitude 1 or 0, and `logabsdet`, real; both of shape (...).

    Raises:
        ArrayTypeError: If `x` has an unsupported dtype.
        ArrayValueError: If the matrices are not square.

    >>> import tecomp.array as xp
    >>> slogdet(xp.asarray([[0.0, 1.0], [1.0, 0.0]])).sign
    Array(-1., dtype=float64)
    """
    return SlogdetResult(*_call("slogdet", x))


def solve(x1: Array, x2: Array, /) -> Array:
    """Solve the linear system `x1 @ x = x2` for `x`.

    Args:
        x1: Square matrices of shape (..., n, n) and floating-point dtype.
        x2: Right-hand sides: a vector of shape (n,), or matrices of shape (..., n, k).

    Returns:
        Solutions in the shape of `x2`; leading axes are broadcast.

    Raises:
        ArrayTypeError: If an operand has an unsupported dtype.
        ArrayValueError: If the shapes do not match, or a matrix is singular.
        DeviceMismatchError: If the operands are on different devices.
        TeamMismatchError: If the operands belong to different teams.

    >>> import tecomp.array as xp
    >>> solve(xp.asarray([[2.0, 0.0], [0.0, 4.0]]), xp.asarray([2.0, 2.0]))
    Array([1. , 0.5], dtype=float64)
    """
    nodes = node_of(x1, "solve", "x1"), node_of(x2, "solve", "x2")
    (result,) = call_library(Solve(), *nodes)
    return from_node(result)


def svd(x: Array, /, *, full_matrices: bool = True) -> SVDResult:
    """Compute the singular value decomposition of each matrix.

    Args:
        x: Matrices of shape (..., m, n) and floating-point dtype.
        full_matrices: If True, `U` and `Vh` are square; otherwise, they have min(m, n) columns and
            rows. Default: True.

    Returns:
        `U`; `S`, real singular values in descending order; and `Vh`.

    Raises:
        ArrayTypeError: If `x` has an unsupported dtype.
        ArrayValueError: If `x` has fewer than two axes, or the decomposition does not converge.

    >>> import tecomp.array as xp
    >>> svd(xp.asarray([[0.0, 2.0], [3.0, 0.0]])).S
    Array([3., 2.], dtype=float64)
    """
    return SVDResult(*_call("svd", x, check_bool(full_matrices, "svd", "full_matrices")))


def svdvals(x: Array, /) -> Array:
    """Compute the singular values of each matrix, in descending order.

    Args:
        x: Matrices of shape (..., m, n) and floating-point dtype.

    >>> import tecomp.array as xp
    >>> svdvals(xp.asarray([[0.0, 2.0], [3.0, 0.0]]))
    Array([3., 2.], dtype=float64)
    """
    return _call("svdvals", x)[0]


def trace(x: Array, /, *, offset: SupportsIndex = 0, dtype: Any = None) -> Array:
    """Sum the elements of a diagonal of each matrix.

    Args:
        x: Matrices of shape (..., m, n) and numeric dtype.
        offset: Offset of the diagonal above the main diagonal. Default: 0.
        dtype: Result dtype. Default: the dtype of `x`; 64-bit for integers.

    Returns:
        Array of shape (...).

    Raises:
        ArrayTypeError: If `x` has an unsupported dtype.
        ArrayValueError: If `x` has fewer than two axes.

    >>> import tecomp.array as xp
    >>> trace(xp.asarray([[1, 2], [3, 4]]))
    Array(5, dtype=int64)
    """
    requested = None if dtype is None else dtype_name(dtype, "trace")
    node = node_of(x, "trace")
    op = TraceOp(diagonal_of(offset, node.type.shape, "trace", "offset"), requested)
    return from_node(record(op, node))
