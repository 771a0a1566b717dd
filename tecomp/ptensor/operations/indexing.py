"""Elements of a tensor by their index, and others in their place."""

from __future__ import annotations

from dataclasses import dataclass

from tecomp.errors import ArrayIndexError, ArrayTypeError, ArrayValueError
from tecomp.ptensor.axes import axis_of
from tecomp.ptensor.operation import Operation
from tecomp.ptensor.promotion import INTEGERS
from tecomp.ptensor.types import PTensorType, Shape, broadcast_shapes, check_together

Slices = tuple[tuple[int, int, int], ...]
"""For each axis the first index, from one to the next, and how many."""


@dataclass(frozen=True)
class ExtractSlice(Operation):
    """The elements at indices that count on along each axis.

    Attributes:
        slice: for each axis the first index, the step, and how many there are.

    >>> print(ExtractSlice(((4, -2, 3),)).infer(PTensorType((5,), "int8")))
    ptensor<3xint8>
    """

    name = "extract_slice"
    counts = True

    slice: Slices

    def infer(self, *operands: PTensorType) -> PTensorType:
        """The counts."""
        (x,) = operands
        return x.like(_counts(self.slice, x.shape, self.name))


@dataclass(frozen=True)
class ExtractMask(Operation):
    """The elements where the second operand is true; how many, the elements say.

    >>> x, mask = PTensorType((4, 5), "int8"), PTensorType((4,), "bool")
    >>> print(ExtractMask().infer(x, mask))
    ptensor<?x5xint8>
    """

    name = "extract_mask"
    takes = (2, 2)

    def infer(self, *operands: PTensorType) -> PTensorType:
        """One axis in place of those of the mask."""
        check_together(operands, self.name)
        x, mask = operands
        if mask.dtype != "bool":
            raise ArrayTypeError(
                f"{self.name}: the mask is {mask.dtype}; it takes bool: compare it, x != 0"
            )
        if mask.shape != x.shape[: mask.rank]:
            raise ArrayValueError(
                f"{self.name}: x has shape {x.shape} and the mask {mask.shape}; give a mask of the "
                "extents of the first axes",
                kind="array-shapes",
            )
        return x.like((None, *x.shape[mask.rank :]))  # type: ignore[arg-type]


@dataclass(frozen=True)
class Nonzero(Operation):
    """The indices along one axis of the elements that are not 0.

    Attributes:
        axis: which.

    >>> print(Nonzero(0).infer(PTensorType((4, 5), "int8")))
    ptensor<?xint64>
    """

    name = "nonzero"

    axis: int

    def infer(self, *operands: PTensorType) -> PTensorType:
        """A row, whose length the elements say."""
        return operands[0].like((None,), "int64")  # type: ignore[arg-type]


@dataclass(frozen=True)
class InsertSlice(Operation):
    """The first operand, with the second in place of elements whose indices count on.

    Attributes:
        slice: for each axis the first index, the step, and how many there are.
    """

    name = "insert_slice"
    counts = True
    takes = (2, 2)

    slice: Slices

    def infer(self, *operands: PTensorType) -> PTensorType:
        """The type of the first operand."""
        check_together(operands, self.name)
        x, part = operands
        counts = _counts(self.slice, x.shape, self.name)
        if part.shape != counts:
            raise ArrayValueError(
                f"{self.name}: the slice has shape {counts}, and the part {part.shape}; give a "
                "part of that shape",
                kind="array-shapes",
            )
        return x.like(x.shape)


@dataclass(frozen=True)
class Take(Operation):
    """The elements at indices that the other operands say, one for each of some axes.

    Attributes:
        axis: the axes that are indexed.
        place: where the axes of the indices are in the result.

    >>> x, i = PTensorType((4, 5, 6), "int8"), PTensorType((2, 3), "int64")
    >>> print(Take((1,), 1).infer(x, i))
    ptensor<4x2x3x6xint8>
    """

    name = "take"
    takes = (2, None)

    axis: tuple[int, ...]
    place: int

    def infer(self, *operands: PTensorType) -> PTensorType:
        """The axes of the indices, in between those that are not indexed."""
        check_together(operands, self.name)
        x, *indices = operands
        for index in indices:
            check_integers(index, self.name)
        middle = broadcast_shapes([index.shape for index in indices], self.name)
        rest = [extent for axis, extent in enumerate(x.shape) if axis not in self.axis]
        return x.like((*rest[: self.place], *middle, *rest[self.place :]))


@dataclass(frozen=True)
class TakeAlongAxis(Operation):
    """The elements at indices along one axis, at the same places of the others.

    Attributes:
        axis: that is indexed.
    """

    name = "take_along_axis"
    takes = (2, 2)

    axis: int

    def infer(self, *operands: PTensorType) -> PTensorType:
        """The shape of the indices, broadcast to that of the elements along the other axes."""
        check_together(operands, self.name)
        x, indices = operands
        check_integers(indices, self.name)
        if x.rank != indices.rank:
            raise ArrayValueError(
                f"{self.name}: x has shape {x.shape} and the indices {indices.shape}; give indices "
                "of as many axes",
                kind="array-shapes",
            )
        axis = axis_of(self.axis, x.rank, self.name)
        shapes: list[Shape] = [
            (*shape[:axis], 1, *shape[axis + 1 :]) for shape in (x.shape, indices.shape)
        ]
        shape = broadcast_shapes(shapes, self.name)
        return x.like((*shape[:axis], indices.shape[axis], *shape[axis + 1 :]))


def _counts(slices: Slices, shape: Shape, where: str) -> Shape:
    """How many elements there are along each axis.

    Raises:
        ArrayIndexError: an index is out of bounds, or there is no slice for an axis.
    """
    if len(slices) != len(shape):
        raise ArrayIndexError(
            f"{where}: the shape {shape} has {len(shape)} axes, and there are {len(slices)} "
            "slices; give one for each axis"
        )
    for axis, (extent, (start, step, count)) in enumerate(zip(shape, slices, strict=True)):
        ends = (start, start + (count - 1) * step) if count else ()
        if count < 0 or not all(0 <= end < extent for end in ends):
            raise ArrayIndexError(
                f"{where}: {count} indices from {start} in steps of {step} are out of bounds along "
                f"axis {axis}, whose extent is {extent}"
            )
    return tuple([count for _, _, count in slices])


def check_integers(index: PTensorType, where: str) -> None:
    """Refuse indices that are no integers."""
    if index.dtype not in INTEGERS:
        raise ArrayTypeError(
            f"{where}: the indices are {index.dtype}; give integers, or a bool mask as x[mask]"
        )
