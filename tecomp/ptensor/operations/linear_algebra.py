"""Products of matrices, vectors and tensors, and parts of matrices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tecomp.errors import ArrayValueError
from tecomp.ptensor.operation import PTensorOp
from tecomp.ptensor.operations.reduction import accumulator_dtype
from tecomp.ptensor.types import (
    NUMERIC,
    PTensorType,
    Shape,
    axis_of,
    broadcast_shapes,
    check_same_device_and_team,
    need_dtype,
    promote_types,
)


def _product_dtype(operands: Sequence[PTensorType], where: str) -> str:
    """Return the promoted dtype of a product."""
    check_same_device_and_team(operands, where)
    for operand in operands:
        need_dtype(operand.dtype, NUMERIC, where)
    return promote_types([operand.dtype for operand in operands])


def need_matrices(x: PTensorType, where: str) -> None:
    """Check that an operand has at least two axes.

    Raises:
        ArrayValueError: If `x` has fewer than two axes.
    """
    if x.rank < 2:
        raise ArrayValueError(
            "{where}: x must have at least 2 axes, got shape {shape}",
            kind="array-shapes", where=where, shape=x.shape,
        )


def _need_equal(first: PTensorType, axis: int, second: PTensorType, other: int, where: str) -> None:
    if first.shape[axis] != second.shape[other]:
        raise ArrayValueError(
            "{where}: contracted axes of shapes {shape} and {second_shape} have different sizes: "
            "{extent} and {other_extent}",
            kind="array-shapes", where=where, shape=first.shape, second_shape=second.shape,
            extent=first.shape[axis], other_extent=second.shape[other],
        )


def _need_shared_axis(axis: int, x: PTensorType, y: PTensorType, where: str) -> None:
    """Check that both operands have an axis, counted from the last axis."""
    rank = min(x.rank, y.rank)
    if not -rank <= axis < 0:
        raise ArrayValueError(
            "{where}: axis {axis!r} is out of bounds for shapes {shape} and {y_shape}; the axis "
            "is counted from the last axis of both, so pass a number from {first} to -1",
            where=where, axis=axis, shape=x.shape, y_shape=y.shape, first=-rank,
        )


@dataclass(frozen=True)
class MatMul(PTensorOp):
    """Matrix product; leading axes are broadcast, one-dimensional operands are vectors.

    >>> x, y = PTensorType((7, 1, 4, 5), "float32"), PTensorType((3, 5, 6), "float32")
    >>> print(MatMul().infer(x, y))
    ptensor<7x3x4x6xfloat32>
    """

    name = "matmul"
    takes = (2, 2)

    def infer(self, *operands: PTensorType) -> PTensorType:
        """Return the type with the rows of the first and the columns of the second operand."""
        x, y = operands
        dtype = _product_dtype(operands, self.name)
        if not x.shape or not y.shape:
            raise ArrayValueError(
                "matmul: operands must have at least 1 axis, got shapes {shape} and {y_shape}; "
                "use * to multiply by a scalar",
                kind="array-shapes", shape=x.shape, y_shape=y.shape,
            )
        _need_equal(x, x.rank - 1, y, max(y.rank - 2, 0), self.name)
        outer = broadcast_shapes([x.shape[:-2], y.shape[:-2]], self.name)
        rows, columns = x.shape[-2:-1], y.shape[-1:] if y.rank > 1 else ()
        return x.like((*outer, *rows, *columns), dtype)


@dataclass(frozen=True)
class MatrixTranspose(PTensorOp):
    """Transpose of the last two axes."""

    name = "matrix_transpose"

    def infer(self, *operands: PTensorType) -> PTensorType:
        """Return the type with the last two extents exchanged."""
        (x,) = operands
        need_matrices(x, self.name)
        *outer, rows, columns = x.shape
        return x.like((*outer, columns, rows))


@dataclass(frozen=True)
class VecDot(PTensorOp):
    """Vector dot product along an axis; the first operand is conjugated.

    Attributes:
        axis: Negative axis, counted from the last axis; other axes are broadcast.
    """

    name = "vecdot"
    takes = (2, 2)
    axis: int = -1

    def infer(self, *operands: PTensorType) -> PTensorType:
        """Return the type with the broadcast shape without the axis."""
        x, y = operands
        dtype = _product_dtype(operands, self.name)
        _need_shared_axis(self.axis, x, y, self.name)
        _need_equal(x, self.axis, y, self.axis, self.name)
        shape = broadcast_shapes([x.shape, y.shape], self.name)
        axis = len(shape) + self.axis
        return x.like((*shape[:axis], *shape[axis + 1 :]), dtype)


@dataclass(frozen=True)
class TensorDot(PTensorOp):
    """Contraction of several axes of both operands.

    Attributes:
        axes: Contracted axes of the first operand, and the corresponding axes of the second.
    """

    name = "tensor_dot"
    takes = (2, 2)
    axes: tuple[tuple[int, ...], tuple[int, ...]]

    @property
    def where(self) -> str:
        """Name for error messages."""
        return "tensordot"

    def infer(self, *operands: PTensorType) -> PTensorType:
        """Return the type with the other axes of the first and the second operand."""
        x, y = operands
        dtype = _product_dtype(operands, self.where)
        first, second = self.places(x, y)
        for k, j in zip(first, second, strict=True):
            _need_equal(x, k, y, j, self.where)
        free = [n for k, n in enumerate(x.shape) if k not in first]
        return x.like((*free, *(n for k, n in enumerate(y.shape) if k not in second)), dtype)

    def places(self, x: PTensorType, y: PTensorType) -> tuple[Sequence[int], Sequence[int]]:
        """Return the nonnegative contracted axes of each operand."""
        if len(self.axes[0]) != len(self.axes[1]):
            raise ArrayValueError(
                "tensordot: the two parts of axes {axes} differ in length; pass as many axes of "
                "x1 as of x2, (axes of x1, axes of x2)",
                axes=self.axes,
            )
        pair = [
            [axis_of(k, operand.rank, self.where, f"an axis of {name}") for k in axes]
            for axes, operand, name in zip(self.axes, (x, y), ("x1", "x2"), strict=True)
        ]
        if any(len(set(axes)) < len(axes) for axes in pair):
            raise ArrayValueError(
                "tensordot: axes {axes} contains duplicate axes; pass each axis once",
                axes=self.axes,
            )
        return pair[0], pair[1]


@dataclass(frozen=True)
class Outer(PTensorOp):
    """Outer product of two vectors."""

    name = "outer"
    takes = (2, 2)

    def infer(self, *operands: PTensorType) -> PTensorType:
        """Return the type of the matrix."""
        x, y = operands
        dtype = _product_dtype(operands, self.name)
        if x.rank != 1 or y.rank != 1:
            raise ArrayValueError(
                "outer: operands must have 1 axis, got shapes {shape} and {y_shape}",
                kind="array-shapes", shape=x.shape, y_shape=y.shape,
            )
        return x.like((*x.shape, *y.shape), dtype)


@dataclass(frozen=True)
class Diagonal(PTensorOp):
    """Diagonal of each matrix.

    Attributes:
        offset: Offset of the diagonal above the main diagonal.
    """

    name = "diagonal"
    counts = True
    offset: int = 0

    def infer(self, *operands: PTensorType) -> PTensorType:
        """Return the type with one axis in place of the last two."""
        (x,) = operands
        need_matrices(x, self.name)
        return x.like((*x.shape[:-2], diagonal_length(x.shape, self.offset)))


def diagonal_length(shape: Shape, offset: int) -> int:
    """Return the number of elements of a diagonal.

    >>> diagonal_length((3, 5), 1), diagonal_length((3, 5), -2), diagonal_length((3, 5), 9)
    (3, 1, 0)
    """
    rows, columns = shape[-2:]
    return max(min(rows + min(offset, 0), columns - max(offset, 0)), 0)


@dataclass(frozen=True)
class TraceOp(PTensorOp):
    """Sum of a diagonal of each matrix.

    Attributes:
        offset: Offset of the diagonal above the main diagonal.
        dtype: dtype of the result.
    """

    name = "trace"
    offset: int = 0
    dtype: str | None = None

    def infer(self, *operands: PTensorType) -> PTensorType:
        """Return the type without the last two axes."""
        (x,) = operands
        need_matrices(x, self.name)
        return x.like(x.shape[:-2], accumulator_dtype(x.dtype, self.dtype, self.name))


@dataclass(frozen=True)
class Cross(PTensorOp):
    """Cross product of 3-element vectors.

    Attributes:
        axis: Negative axis, counted from the last axis; other axes are broadcast.
    """

    name = "cross"
    takes = (2, 2)
    axis: int = -1

    def infer(self, *operands: PTensorType) -> PTensorType:
        """Return the type with the broadcast shape."""
        x, y = operands
        dtype = _product_dtype(operands, self.name)
        _need_shared_axis(self.axis, x, y, self.name)
        for operand in operands:
            if operand.shape[self.axis] != 3:
                raise ArrayValueError(
                    "cross: shapes are {shape} and {y_shape}; axis {axis} must have size 3, got "
                    "{extent}",
                    kind="array-shapes", shape=x.shape, y_shape=y.shape, axis=self.axis,
                    extent=operand.shape[self.axis],
                )
        return x.like(broadcast_shapes([x.shape, y.shape], self.name), dtype)
