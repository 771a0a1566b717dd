"""Sorting and set operations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from tecomp.errors import ArrayTypeError, ArrayValueError
from tecomp.ptensor.operations.base import LibraryOperation
from tecomp.ptensor.types import (
    ALL,
    INTEGERS,
    REAL,
    PTensorType,
    axis_of,
    check_same_device_and_team,
    need_dtype,
    promote_types,
)

_OPEN: Any = (None,)
"""One-dimensional shape with a data-dependent extent."""


class _Unique(LibraryOperation):
    library = "numpy.unique"
    parts: ClassVar[tuple[str, ...]]

    def results(self, *operands: PTensorType) -> tuple[PTensorType, ...]:
        """Return the types of the unique values and of the further results."""
        (x,) = operands
        need_dtype(x.dtype, ALL, self.name)
        types = {
            "values": x.like(_OPEN), "indices": x.like(_OPEN, "int64"),
            "inverse": x.like(x.shape, "int64"), "counts": x.like(_OPEN, "int64"),
        }
        return tuple([types[part] for part in self.parts])


@dataclass(frozen=True)
class UniqueAll(_Unique):
    """Unique values with indices of first occurrences, inverse indices and counts."""

    name = "unique_all"
    parts = ("values", "indices", "inverse", "counts")


@dataclass(frozen=True)
class UniqueCounts(_Unique):
    """Unique values with counts."""

    name = "unique_counts"
    parts = ("values", "counts")


@dataclass(frozen=True)
class UniqueInverse(_Unique):
    """Unique values with inverse indices."""

    name = "unique_inverse"
    parts = ("values", "inverse")


@dataclass(frozen=True)
class UniqueValues(_Unique):
    """Unique values."""

    name = "unique_values"
    parts = ("values",)


@dataclass(frozen=True)
class IsIn(LibraryOperation):
    """Element-wise membership of the first operand in the second.

    Attributes:
        invert: Whether to test for absence.
    """

    name = "isin"
    takes = (2, 2)
    library = "numpy.isin"
    invert: bool = False

    def results(self, *operands: PTensorType) -> tuple[PTensorType, ...]:
        """Return bool in the shape of the first operand."""
        check_same_device_and_team(operands, self.name)
        return (operands[0].like(operands[0].shape, "bool"),)


@dataclass(frozen=True)
class Sort(LibraryOperation):
    """Sort along an axis; NaN sorts as the greatest value.

    Attributes:
        axis: Axis.
        descending: Whether to sort in descending order.
        stable: Whether equal elements keep their relative order.

    >>> print(Sort(0).infer(PTensorType((4, 5), "float32")))
    ptensor<4x5xfloat32>
    """

    name = "sort"
    library = "numpy.sort"
    axis: int = -1
    descending: bool = False
    stable: bool = True

    def results(self, *operands: PTensorType) -> tuple[PTensorType, ...]:
        """Return the type of the operand."""
        (x,) = operands
        need_dtype(x.dtype, REAL, self.name)
        axis_of(self.axis, x.rank, self.name)
        return (x.like(x.shape),)


@dataclass(frozen=True)
class Argsort(LibraryOperation):
    """Indices that sort along an axis.

    Attributes:
        axis: Axis.
        descending: Whether to sort in descending order.
        stable: Whether equal elements keep their relative order.
    """

    name = "argsort"
    library = "numpy.argsort"
    axis: int = -1
    descending: bool = False
    stable: bool = True

    def results(self, *operands: PTensorType) -> tuple[PTensorType, ...]:
        """Return the index dtype in the shape of the operand."""
        (x,) = operands
        need_dtype(x.dtype, REAL, self.name)
        axis_of(self.axis, x.rank, self.name)
        return (x.like(x.shape, "int64"),)


@dataclass(frozen=True)
class SearchSorted(LibraryOperation):
    """Insertion positions of the second operand in the first operand, which is sorted.

    A third operand gives the indices that sort the first operand.

    Attributes:
        kind: `left` for the first valid position, `right` for the last.
    """

    name = "searchsorted"
    takes = (2, 3)
    library = "numpy.searchsorted"
    kind: str = "left"

    def __post_init__(self) -> None:
        if self.kind not in ("left", "right"):
            raise ArrayValueError(
                "searchsorted: side must be 'left' or 'right', got {form!r}",
                form=self.kind,
            )

    def results(self, *operands: PTensorType) -> tuple[PTensorType, ...]:
        """Return the index dtype in the shape of the second operand."""
        check_same_device_and_team(operands, self.name)
        x, values, *sorter = operands
        for array in (x, values):
            need_dtype(array.dtype, REAL, self.name)
        promote_types([x.dtype, values.dtype])
        if x.rank != 1:
            raise ArrayValueError(
                "searchsorted: x1 must be a sorted array with 1 axis, got shape {shape}",
                kind="array-shapes", shape=x.shape,
            )
        for array in sorter:
            if array.dtype not in INTEGERS or array.shape != x.shape:
                raise ArrayTypeError(
                    "searchsorted: sorter is {sorter}, expected integers of the same shape as x1 "
                    "{x}; pass xp.argsort(x1)",
                    sorter=array, x=x,
                )
        return (values.like(values.shape, "int64"),)
