"""Fourier transforms and matrix decompositions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from tecomp.errors import ArrayValueError
from tecomp.ptensor.operations.base import Kinded, LibraryOperation
from tecomp.ptensor.operations.linear_algebra import need_matrices
from tecomp.ptensor.types import (
    COMPLEX,
    PART,
    WHOLE,
    PTensorType,
    Shape,
    axis_of,
    broadcast_shapes,
    check_same_device_and_team,
    need_dtype,
    promote_types,
)

_REAL = ("float32", "float64")
NORMS = ("backward", "ortho", "forward")

TAKEN: Mapping[str, Sequence[str]] = {
    **dict.fromkeys(("fft", "ifft", "fftn", "ifftn"), (*_REAL, *COMPLEX)),
    **dict.fromkeys(("rfft", "rfftn", "ihfft"), _REAL),
    **dict.fromkeys(("irfft", "irfftn", "hfft"), (*_REAL, *COMPLEX)),
}
"""Supported dtypes of each transform."""


@dataclass(frozen=True)
class FourierTransformOp(Kinded, LibraryOperation):
    """Discrete Fourier transform along axes.

    Attributes:
        kind: Name of the transform.
        sizes: Length of the transform along each axis; axes are truncated or zero-padded.
        axes: Axes; the last one is halved if one side is real.
        norm: Normalization mode.

    >>> x = PTensorType((4, 10), "float32")
    >>> print(FourierTransformOp("rfft", (None,), (-1,)).infer(x))
    ptensor<4x6xcomplex64>
    """

    name = "fft"
    counts = True
    kinds = tuple(TAKEN)
    halved: ClassVar[Sequence[str]] = ("rfft", "rfftn", "ihfft")
    real: ClassVar[Sequence[str]] = ("irfft", "irfftn", "hfft")

    sizes: tuple[int | None, ...]
    axes: tuple[int, ...]
    norm: str = "backward"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.norm not in NORMS:
            raise ArrayValueError(
                "{where}: norm must be one of {norms}, got {norm!r}",
                where=self.kind, norm=self.norm, norms=", ".join(NORMS),
            )
        if len(self.sizes) != len(self.axes):
            raise ArrayValueError(
                "{where}: s {sizes!r} and axes {axes} differ in length; pass one size per axis",
                where=self.kind, sizes=self.sizes, axes=self.axes,
            )

    @property
    def library(self) -> str:  # type: ignore[override]
        """Library function that computes the transform."""
        return f"numpy.fft.{self.kind}"

    def results(self, *operands: PTensorType) -> tuple[PTensorType, ...]:
        """Return the type with the transform lengths and a complex or real dtype."""
        (x,) = operands
        need_dtype(x.dtype, TAKEN[self.kind], self.kind)
        parts = PART if self.kind in self.real else WHOLE
        return (x.like(self._shape(x), parts.get(x.dtype, x.dtype)),)

    def _shape(self, x: PTensorType) -> Shape:
        shape = list(x.shape)
        for k, (axis, size) in enumerate(zip(self.axes, self.sizes, strict=True)):
            dim = axis_of(axis, x.rank, self.kind)
            is_last = k == len(self.axes) - 1
            grows = is_last and self.kind in self.real
            count = size if size is not None else 2 * (shape[dim] - 1) if grows else shape[dim]
            if count < 1:
                raise ArrayValueError(
                    "{where}: cannot transform {count} elements along axis {axis} of shape "
                    "{shape}; at least 1 element is required",
                    where=self.kind, count=count, axis=axis, shape=x.shape,
                )
            shape[dim] = count // 2 + 1 if is_last and self.kind in self.halved else count
        return tuple(shape)


_TAKEN = ("float32", "float64", *COMPLEX)
_Results = tuple[tuple[Shape, str], ...]
_Rule = Callable[["Matrices", PTensorType], _Results]


def _value(_: Matrices, x: PTensorType) -> _Results:
    return ((x.shape[:-2], x.dtype),)


def _same_results(_: Matrices, x: PTensorType) -> _Results:
    return ((x.shape, x.dtype),)


def _real(x: PTensorType) -> str:
    return PART.get(x.dtype, x.dtype)


def _full_shape_name(x: PTensorType) -> str:
    return WHOLE.get(x.dtype, x.dtype)


def _qr(op: Matrices, x: PTensorType) -> _Results:
    *outer, rows, columns = x.shape
    middle = rows if op.full else min(rows, columns)
    return ((*outer, rows, middle), x.dtype), ((*outer, middle, columns), x.dtype)


def _svd(op: Matrices, x: PTensorType) -> _Results:
    *outer, rows, columns = x.shape
    smaller = min(rows, columns)
    left, right = (rows, columns) if op.full else (smaller, smaller)
    return (
        ((*outer, rows, left), x.dtype), ((*outer, smaller), _real(x)),
        ((*outer, right, columns), x.dtype),
    )


_RULES: Mapping[str, _Rule] = {
    "cholesky": _same_results,
    "det": _value,
    "eig": lambda _, x: ((x.shape[:-1], _full_shape_name(x)), (x.shape, _full_shape_name(x))),
    "eigh": lambda _, x: ((x.shape[:-1], _real(x)), (x.shape, x.dtype)),
    "eigvals": lambda _, x: ((x.shape[:-1], _full_shape_name(x)),),
    "eigvalsh": lambda _, x: ((x.shape[:-1], _real(x)),),
    "inv": _same_results,
    "qr": _qr,
    "slogdet": lambda _, x: ((x.shape[:-2], x.dtype), (x.shape[:-2], _real(x))),
    "svd": _svd,
    "svdvals": lambda _, x: (((*x.shape[:-2], min(x.shape[-2:])), _real(x)),),
}
_SQUARE = ("cholesky", "det", "eig", "eigh", "eigvals", "eigvalsh", "inv", "slogdet")


@dataclass(frozen=True)
class Matrices(Kinded, LibraryOperation):
    """Function of matrices; leading axes are batch axes.

    Attributes:
        kind: Name of the function.
        full: For `qr` and `svd`, whether the orthogonal matrices are square; for `cholesky`,
            whether to return the upper factor.

    >>> print(Matrices("inv").infer(PTensorType((7, 4, 4), "float32")))
    ptensor<7x4x4xfloat32>
    """

    name = "matrices"
    counts = True
    kinds = tuple(_RULES)

    full: bool = False

    @property
    def library(self) -> str:  # type: ignore[override]
        """Library function that computes the operation."""
        return f"numpy.linalg.{self.kind}"

    def results(self, *operands: PTensorType) -> tuple[PTensorType, ...]:
        """Return the types of all results."""
        x = operands[0]
        need_dtype(x.dtype, _TAKEN, self.kind)
        need_matrices(x, self.kind)
        if self.kind in _SQUARE and x.shape[-1] != x.shape[-2]:
            raise ArrayValueError(
                "{where}: x must be a square matrix or a stack of square matrices, got shape "
                "{shape}",
                kind="array-shapes", where=self.kind, shape=x.shape,
            )
        return tuple([x.like(shape, dtype) for shape, dtype in _RULES[self.kind](self, x)])


@dataclass(frozen=True)
class Solve(LibraryOperation):
    """Solution of linear systems; leading axes are broadcast."""

    name = "solve"
    takes = (2, 2)
    library = "numpy.linalg.solve"

    def results(self, *operands: PTensorType) -> tuple[PTensorType, ...]:
        """Return the type of the solutions, with broadcast leading axes."""
        check_same_device_and_team(operands, self.name)
        a, b = operands
        for x in operands:
            need_dtype(x.dtype, _TAKEN, self.name)
        need_matrices(a, self.name)
        if a.shape[-1] != a.shape[-2]:
            raise ArrayValueError(
                "solve: x1 must be a square matrix or a stack of square matrices, got shape "
                "{shape}",
                kind="array-shapes", shape=a.shape,
            )
        dtype = promote_types([a.dtype, b.dtype])
        b_axes = 1 if b.rank == 1 else 2
        if b.rank == 0 or b.shape[-b_axes] != a.shape[-1]:
            raise ArrayValueError(
                "solve: shapes {shape} and {b_shape} do not match; x2 must have {extent} rows, as "
                "many as x1",
                kind="array-shapes", shape=a.shape, b_shape=b.shape, extent=a.shape[-1],
            )
        if b_axes == 1:
            return (a.like(a.shape[:-1], dtype),)
        outer = broadcast_shapes([a.shape[:-2], b.shape[:-2]], self.name)
        return (a.like((*outer, *b.shape[-2:]), dtype),)


@dataclass(frozen=True)
class PseudoInverse(LibraryOperation):
    """Moore-Penrose pseudo-inverse of matrices.

    The second operand is the relative tolerance below which singular values count as 0.
    """

    name = "pinv"
    takes = (1, 2)
    library = "numpy.linalg.pinv"

    def results(self, *operands: PTensorType) -> tuple[PTensorType, ...]:
        """Return the type with the last two axes exchanged."""
        check_same_device_and_team(operands, self.name)
        x = _with_tolerance(operands, self.name)
        *outer, rows, columns = x.shape
        return (x.like((*outer, columns, rows)),)


@dataclass(frozen=True)
class Rank(LibraryOperation):
    """Rank of matrices.

    The second operand is the relative tolerance below which singular values count as 0.
    """

    name = "matrix_rank"
    takes = (1, 2)
    library = "numpy.linalg.matrix_rank"

    def results(self, *operands: PTensorType) -> tuple[PTensorType, ...]:
        """Return the type without the last two axes."""
        check_same_device_and_team(operands, self.name)
        x = _with_tolerance(operands, self.name)
        return (x.like(x.shape[:-2], "int64"),)


def _with_tolerance(operands: tuple[PTensorType, ...], where: str) -> PTensorType:
    x, *tolerance = operands
    need_dtype(x.dtype, _TAKEN, where)
    need_matrices(x, where)
    for rtol in tolerance:
        need_dtype(rtol.dtype, ("float32", "float64"), where, "rtol is")
        if broadcast_shapes([rtol.shape, x.shape[:-2]], where) != x.shape[:-2]:
            raise ArrayValueError(
                "{where}: rtol of shape {shape} does not broadcast to the stack of matrices of "
                "shape {extent}; pass one tolerance, or one per matrix",
                kind="array-shapes", where=where, shape=rtol.shape, extent=x.shape[:-2],
            )
    return x
