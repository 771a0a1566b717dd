"""Elements that are different from one another, and those that are among others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from tecomp.ptensor.operations.library import LibraryOperation
from tecomp.ptensor.promotion import ALL, need_dtype
from tecomp.ptensor.types import PTensorType, check_together

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
