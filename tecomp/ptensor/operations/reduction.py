"""Reductions, cumulative operations and argmin/argmax."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tecomp.errors import ArrayTypeError, ArrayValueError
from tecomp.ptensor.operation import Operation
from tecomp.ptensor.operations.base import Kinded
from tecomp.ptensor.types import (
    ALL,
    COMPLEX,
    FLOATING,
    NUMERIC,
    PART,
    REAL,
    SIGNED,
    UNSIGNED,
    PTensorType,
    axes_of,
    axis_of,
    need_dtype,
    without,
)

REDUCTIONS: Mapping[str, Sequence[str]] = {
    **dict.fromkeys(("max", "min"), REAL),
    **dict.fromkeys(("mean", "std", "var"), FLOATING),
    **dict.fromkeys(("prod", "sum"), NUMERIC),
}
"""The element types that each reduction takes."""


def accumulated(dtype: str, wanted: str | None, where: str) -> str:
    """The type of sums and products: small integers would overflow, and have 64 bits.

    Raises:
        ArrayTypeError: complex numbers are wanted as others.

    >>> [accumulated(dtype, None, "sum") for dtype in ("int8", "uint8", "float32")]
    ['int64', 'uint64', 'float32']
    """
    need_dtype(dtype, NUMERIC, where)
    if wanted is not None:
        need_dtype(wanted, NUMERIC, where, "dtype is")
        if dtype in COMPLEX and wanted not in COMPLEX:
            raise ArrayTypeError(
                f"{where}: the elements are {dtype}, which no {wanted} can hold; leave dtype out, "
                "or take a part of them first: real(x), imag(x)"
            )
        return wanted
    if dtype in SIGNED:
        return "int64"
    return "uint64" if dtype in UNSIGNED else dtype


@dataclass(frozen=True)
class Reduce(Kinded):
    """All elements along some axes, combined into one.

    Attributes:
        kind: how.
        axis: the axes; all of them if None.
        keepdims: whether they stay, with extent 1.
        correction: what is taken off the count of elements, for `var` and `std`.
        dtype: of the result, for `sum` and `prod`.

    >>> print(Reduce("sum", (0,)).infer(PTensorType((4, 5), "int8")))
    ptensor<5xint64>
    """

    name = "reduce"
    kinds = tuple(REDUCTIONS)
    axis: tuple[int, ...] | None = None
    keepdims: bool = False
    correction: float = 0
    dtype: str | None = None

    def infer(self, *operands: PTensorType) -> PTensorType:
        """The shape without these axes, in the type of the result."""
        (x,) = operands
        need_dtype(x.dtype, REDUCTIONS[self.kind], self.kind)
        axes = axes_of(self.axis, x.rank, self.kind)
        empty = [k for k in axes if x.shape[k] == 0]
        if empty and self.kind in ("max", "min"):
            raise ArrayValueError(
                f"{self.kind}: x has shape {x.shape}, and no element along axis {empty[0]}; give "
                "it one at least",
                kind="array-shapes",
            )
        return x.like(without(x.shape, axes, self.keepdims), self._result_dtype(x.dtype))

    def _result_dtype(self, dtype: str) -> str:
        if self.kind in ("prod", "sum"):
            return accumulated(dtype, self.dtype, self.kind)
        return PART.get(dtype, dtype) if self.kind in ("std", "var") else dtype


@dataclass(frozen=True)
class TruthTest(Kinded):
    """Whether any element along some axes is true, or all are; numbers are true unless 0.

    Attributes:
        kind: `any` or `all`.
        axis: the axes; all of them if None.
        keepdims: whether they stay, with extent 1.
    """

    name = "test"
    kinds = ("all", "any")
    axis: tuple[int, ...] | None = None
    keepdims: bool = False

    def infer(self, *operands: PTensorType) -> PTensorType:
        """The shape without these axes."""
        (x,) = operands
        need_dtype(x.dtype, ALL, self.kind)
        axes = axes_of(self.axis, x.rank, self.kind)
        return x.like(without(x.shape, axes, self.keepdims), "bool")


@dataclass(frozen=True)
class CountNonzero(Operation):
    """How many elements along some axes are not 0.

    Attributes:
        axis: the axes; all of them if None.
        keepdims: whether they stay, with extent 1.
    """

    name = "count_nonzero"
    axis: tuple[int, ...] | None = None
    keepdims: bool = False

    def infer(self, *operands: PTensorType) -> PTensorType:
        """The shape without these axes."""
        (x,) = operands
        axes = axes_of(self.axis, x.rank, self.name)
        return x.like(without(x.shape, axes, self.keepdims), "int64")


@dataclass(frozen=True)
class Cumulative(Kinded):
    """Each element combined with all before it along an axis.

    Attributes:
        kind: `sum` or `prod`.
        axis: along which.
        include_initial: whether the result begins with that of no element.
        dtype: of the result.

    >>> print(Cumulative("sum", 1, include_initial=True).infer(PTensorType((4, 5), "int8")))
    ptensor<4x6xint64>
    """

    name = "cumulative"
    counts = True
    kinds = ("prod", "sum")
    axis: int = 0
    include_initial: bool = False
    dtype: str | None = None

    @property
    def where(self) -> str:
        """What messages call it."""
        return f"cumulative_{self.kind}"

    def infer(self, *operands: PTensorType) -> PTensorType:
        """The same shape, or one element more along the axis."""
        (x,) = operands
        dtype = accumulated(x.dtype, self.dtype, self.where)
        axis = axis_of(self.axis, x.rank, self.where)
        more = int(self.include_initial)
        return x.like((*x.shape[:axis], x.shape[axis] + more, *x.shape[axis + 1 :]), dtype)


@dataclass(frozen=True)
class Diff(Operation):
    """What each element is more than the one before it along an axis.

    Attributes:
        axis: along which.
    """

    name = "diff"
    counts = True
    axis: int = -1

    def infer(self, *operands: PTensorType) -> PTensorType:
        """One element less along the axis, if there is one."""
        (x,) = operands
        need_dtype(x.dtype, NUMERIC, self.name)
        axis = axis_of(self.axis, x.rank, self.name)
        return x.like((*x.shape[:axis], max(x.shape[axis] - 1, 0), *x.shape[axis + 1 :]))


@dataclass(frozen=True)
class FindIndex(Kinded):
    """The index of the first greatest or least element; NaN is both.

    Attributes:
        kind: `argmax` or `argmin`.
        axis: along which; None to look at all elements as one row.
        keepdims: whether the axes stay, with extent 1.

    >>> print(FindIndex("argmax", 1).infer(PTensorType((4, 5), "float32")))
    ptensor<4xint64>
    """

    name = "find_index"
    kinds = ("argmax", "argmin")
    axis: int | None = None
    keepdims: bool = False

    def infer(self, *operands: PTensorType) -> PTensorType:
        """The shape without these axes."""
        (x,) = operands
        need_dtype(x.dtype, REAL, self.kind)
        axes = tuple(range(x.rank))
        if self.axis is not None:
            axes = (axis_of(self.axis, x.rank, self.kind),)
        empty = [k for k in axes if x.shape[k] == 0]
        if empty:
            raise ArrayValueError(
                f"{self.kind}: x has shape {x.shape}, and no element along axis {empty[0]}; give "
                "it one at least",
                kind="array-shapes",
            )
        return x.like(without(x.shape, axes, self.keepdims), "int64")
