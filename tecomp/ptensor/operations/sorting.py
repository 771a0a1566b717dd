"""Elements in order."""

from __future__ import annotations

from dataclasses import dataclass

from tecomp.errors import ArrayTypeError, ArrayValueError
from tecomp.ptensor.axes import axis_of
from tecomp.ptensor.operations.library import LibraryOperation
from tecomp.ptensor.promotion import INTEGERS, REAL, meet, need_dtype
from tecomp.ptensor.types import PTensorType, check_together


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
