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
    check_together,
    meet,
    need_dtype,
)

_OPEN: Any = (None,)
"""The shape of a row whose extent depends on values."""


class _Unique(LibraryOperation):
    library = "numpy.unique"
    parts: ClassVar[tuple[str, ...]]

    def results(self, *operands: PTensorType) -> tuple[PTensorType, ...]:
        """The elements, and what else there is of each."""
        (x,) = operands
        need_dtype(x.dtype, ALL, self.name)
        types = {
            "values": x.like(_OPEN), "indices": x.like(_OPEN, "int64"),
            "inverse": x.like(x.shape, "int64"), "counts": x.like(_OPEN, "int64"),
        }
        return tuple([types[part] for part in self.parts])


@dataclass(frozen=True)
class UniqueAll(_Unique):
    """The elements that are different, where the first of each is, which each is, and how many."""

    name = "unique_all"
    parts = ("values", "indices", "inverse", "counts")


@dataclass(frozen=True)
class UniqueCounts(_Unique):
    """The elements that are different, and how many there are of each."""

    name = "unique_counts"
    parts = ("values", "counts")


@dataclass(frozen=True)
class UniqueInverse(_Unique):
    """The elements that are different, and which of them each element is."""

    name = "unique_inverse"
    parts = ("values", "inverse")


@dataclass(frozen=True)
class UniqueValues(_Unique):
    """The elements that are different."""

    name = "unique_values"
    parts = ("values",)


@dataclass(frozen=True)
class IsIn(LibraryOperation):
    """Whether each element of the first operand is one of the second.

    Attributes:
        invert: whether it is asked if it is none.
    """

    name = "isin"
    takes = (2, 2)
    library = "numpy.isin"
    invert: bool = False

    def results(self, *operands: PTensorType) -> tuple[PTensorType, ...]:
        """The shape of the first operand."""
        check_together(operands, self.name)
        return (operands[0].like(operands[0].shape, "bool"),)


@dataclass(frozen=True)
class Sort(LibraryOperation):
    """The elements along an axis in order; NaN is greater than all others.

    Attributes:
        axis: along which.
        descending: whether the greatest is the first.
        stable: whether equal elements stay in the order in which they are.

    >>> print(Sort(0).infer(PTensorType((4, 5), "float32")))
    ptensor<4x5xfloat32>
    """

    name = "sort"
    library = "numpy.sort"
    axis: int = -1
    descending: bool = False
    stable: bool = True

    def results(self, *operands: PTensorType) -> tuple[PTensorType, ...]:
        """The same type."""
        (x,) = operands
        need_dtype(x.dtype, REAL, self.name)
        axis_of(self.axis, x.rank, self.name)
        return (x.like(x.shape),)


@dataclass(frozen=True)
class Argsort(LibraryOperation):
    """Where the elements are that `sort` gives.

    Attributes:
        axis: along which.
        descending: whether the greatest is the first.
        stable: whether equal elements stay in the order in which they are.
    """

    name = "argsort"
    library = "numpy.argsort"
    axis: int = -1
    descending: bool = False
    stable: bool = True

    def results(self, *operands: PTensorType) -> tuple[PTensorType, ...]:
        """The same shape."""
        (x,) = operands
        need_dtype(x.dtype, REAL, self.name)
        axis_of(self.axis, x.rank, self.name)
        return (x.like(x.shape, "int64"),)


@dataclass(frozen=True)
class SearchSorted(LibraryOperation):
    """Where elements of the second operand belong in the first, which is in order.

    A third operand says where the elements of the first are, in order.

    Attributes:
        kind: `left` for the first place where an element can be put in, `right` for the last.
    """

    name = "searchsorted"
    takes = (2, 3)
    library = "numpy.searchsorted"
    kind: str = "left"

    def __post_init__(self) -> None:
        if self.kind not in ("left", "right"):
            raise ArrayValueError(
                f"searchsorted: side is {self.kind!r}; give 'left' or 'right'"
            )

    def results(self, *operands: PTensorType) -> tuple[PTensorType, ...]:
        """The shape of the second operand."""
        check_together(operands, self.name)
        x, values, *sorter = operands
        for each in (x, values):
            need_dtype(each.dtype, REAL, self.name)
        meet([x.dtype, values.dtype])
        if x.rank != 1:
            raise ArrayValueError(
                f"searchsorted: x1 has shape {x.shape}; give a row in order, of one axis",
                kind="array-shapes",
            )
        for each in sorter:
            if each.dtype not in INTEGERS or each.shape != x.shape:
                raise ArrayTypeError(
                    f"searchsorted: the sorter is {each} for x1 {x}; give as many integers as x1 "
                    "has elements: xp.argsort(x1)"
                )
        return (values.like(values.shape, "int64"),)
