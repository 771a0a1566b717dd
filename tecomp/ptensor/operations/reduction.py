"""Reductions, cumulative operations and argmin/argmax."""

from __future__ import annotations

from dataclasses import dataclass

from tecomp.errors import ArrayTypeError, ArrayValueError
from tecomp.operations.element_types import NARROW
from tecomp.operations.reductions import (
    CUMULATIVE,
    REDUCTIONS,
    TO_COUNT,
    TO_WIDE,
    Reduction,
    kinds_of,
)
from tecomp.operations.rows import TO_BOOL, TO_PART
from tecomp.ptensor.operation import PTensorOp
from tecomp.ptensor.operations.base import Kinded
from tecomp.ptensor.types import (
    COMPLEX,
    NUMERIC,
    PART,
    SIGNED,
    UNSIGNED,
    PTensorType,
    axes_of,
    axis_of,
    drop_axes,
    need_dtype,
)


def accumulator_dtype(dtype: str, requested: str | None, where: str) -> str:
    """Return the dtype of sums and products; small integers use 64 bits to avoid overflow.

    Raises:
        ArrayTypeError: If a complex dtype would be converted to another kind.

    >>> [accumulator_dtype(dtype, None, "sum") for dtype in ("int8", "uint8", "float32")]
    ['int64', 'uint64', 'float32']
    """
    need_dtype(dtype, NUMERIC, where)
    if requested is not None:
        need_dtype(requested, NUMERIC, where, "dtype is")
        if dtype in COMPLEX and requested not in COMPLEX:
            raise ArrayTypeError(
                "{where}: cannot reduce dtype {dtype} to {expected}; omit dtype, or convert to "
                "real values first: real(x) or imag(x)",
                where=where, dtype=dtype, expected=requested,
            )
        return requested
    if dtype in SIGNED:
        return "int64"
    return "uint64" if dtype in UNSIGNED else dtype


def te_accumulator_dtype(dtype: str, device: str | None) -> str:
    """Return the accumulation dtype, which is wider than the dtype of the elements for floats.

    float64 sums of float32 elements are exact to the last bit of float32. Only CPUs support this
    dtype.

    >>> te_accumulator_dtype("float32", "cpu"), te_accumulator_dtype("float16",
    ...     None), te_accumulator_dtype("int64", None)
    ('float64', 'float32', 'int64')
    """
    if dtype in NARROW:
        return "float32"
    return "float64" if dtype == "float32" and device in (None, "cpu") else dtype


def term_dtype(row: Reduction, dtype: str, wide: str) -> str:
    """Return the dtype in which the terms of a reduction are computed.

    Args:
        row: Row of the reduction.
        dtype: dtype of the elements, or of their parts.
        wide: dtype of sums.

    >>> term_dtype(REDUCTIONS["var"], "float32", "float64")
    'float64'
    """
    if not row.center or REDUCTIONS[row.center].combiner == "sum":
        return wide
    return "float32" if dtype in NARROW else dtype


@dataclass(frozen=True)
class AxisReduction(PTensorOp):
    """Reduction along axes, specified by a row of the table of reductions.

    Attributes:
        axis: Axes; all axes if None.
        keepdims: Whether to keep reduced axes with size 1.
    """

    axis: int | tuple[int, ...] | None = None
    keepdims: bool = False

    @property
    def row(self) -> Reduction:
        """Row of the reduction."""
        return REDUCTIONS[self.where]

    def infer(self, *operands: PTensorType) -> PTensorType:
        """Return the type without the axes, with the result dtype."""
        (x,) = operands
        row = self.row
        need_dtype(x.dtype, row.takes.dtypes, row.name)
        axes = axes_of(self.axis, x.rank, row.name)
        empty = [k for k in axes if x.shape[k] == 0]
        if empty and row.needs_elements:
            raise ArrayValueError(
                "{where}: cannot reduce an empty axis without an identity, got shape {shape} with "
                "size 0 along axis {empty}; pass at least 1 element",
                kind="array-shapes", where=row.name, shape=x.shape, empty=empty[0],
            )
        return x.like(drop_axes(x.shape, axes, self.keepdims), self._result_dtype(x.dtype))

    def _result_dtype(self, dtype: str) -> str:
        gives = self.row.gives
        if gives == TO_WIDE:
            return accumulator_dtype(dtype, getattr(self, "dtype", None), self.where)
        if gives == TO_PART:
            return PART.get(dtype, dtype)
        return {TO_BOOL: "bool", TO_COUNT: "int64"}.get(gives, dtype)


@dataclass(frozen=True)
class ReduceOp(AxisReduction, Kinded):
    """Reduction along axes.

    Attributes:
        kind: Name of the reduction.
        axis: Axes; all axes if None.
        keepdims: Whether to keep reduced axes with size 1.
        correction: Number subtracted from the count of elements, for `var` and `std`.
        dtype: dtype of the result, for `sum` and `prod`.

    >>> print(ReduceOp("sum", (0,)).infer(PTensorType((4, 5), "int8")))
    ptensor<5xint64>
    """

    name = "reduce"
    kinds = kinds_of(name)
    axis: tuple[int, ...] | None = None
    correction: float = 0
    dtype: str | None = None


@dataclass(frozen=True)
class TruthTest(AxisReduction, Kinded):
    """Test whether any or all elements along axes are true; nonzero numbers are true.

    Attributes:
        kind: `any` or `all`.
        axis: Axes; all axes if None.
        keepdims: Whether to keep reduced axes with size 1.
    """

    name = "test"
    kinds = kinds_of(name)
    axis: tuple[int, ...] | None = None


@dataclass(frozen=True)
class CountNonzero(AxisReduction):
    """Number of nonzero elements along axes.

    Attributes:
        axis: Axes; all axes if None.
        keepdims: Whether to keep reduced axes with size 1.
    """

    name = "count_nonzero"
    axis: tuple[int, ...] | None = None


@dataclass(frozen=True)
class FindIndex(AxisReduction, Kinded):
    """Index of the first maximum or minimum; NaN counts as both.

    Attributes:
        kind: `argmax` or `argmin`.
        axis: Axis; None to search the flattened tensor.
        keepdims: Whether to keep reduced axes with size 1.

    >>> print(FindIndex("argmax", 1).infer(PTensorType((4, 5), "float32")))
    ptensor<4xint64>
    """

    name = "find_index"
    kinds = kinds_of(name)
    axis: int | None = None


@dataclass(frozen=True)
class Cumulative(Kinded):
    """Cumulative sum or product along an axis.

    Attributes:
        kind: `sum` or `prod`.
        axis: Axis.
        include_initial: Whether the result begins with the initial value.
        dtype: dtype of the result.

    >>> print(Cumulative("sum", 1, include_initial=True).infer(PTensorType((4, 5), "int8")))
    ptensor<4x6xint64>
    """

    name = "cumulative"
    counts = True
    kinds = CUMULATIVE
    axis: int = 0
    include_initial: bool = False
    dtype: str | None = None

    @property
    def where(self) -> str:
        """Name for error messages."""
        return f"cumulative_{self.kind}"

    def infer(self, *operands: PTensorType) -> PTensorType:
        """Return the operand type; `include_initial` adds an element along the axis."""
        (x,) = operands
        dtype = accumulator_dtype(x.dtype, self.dtype, self.where)
        axis = axis_of(self.axis, x.rank, self.where)
        added = int(self.include_initial)
        return x.like((*x.shape[:axis], x.shape[axis] + added, *x.shape[axis + 1 :]), dtype)


@dataclass(frozen=True)
class Diff(PTensorOp):
    """Differences of adjacent elements along an axis.

    Attributes:
        axis: Axis.
    """

    name = "diff"
    counts = True
    axis: int = -1

    def infer(self, *operands: PTensorType) -> PTensorType:
        """Return the type with one element less along the axis, or an empty axis."""
        (x,) = operands
        need_dtype(x.dtype, NUMERIC, self.name)
        axis = axis_of(self.axis, x.rank, self.name)
        return x.like((*x.shape[:axis], max(x.shape[axis] - 1, 0), *x.shape[axis + 1 :]))
