"""Manipulation and indexing operations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from tecomp.errors import ArrayIndexError, ArrayTypeError, ArrayValueError
from tecomp.ptensor.operation import Operation, Several
from tecomp.ptensor.operations.base import Kinded
from tecomp.ptensor.types import (
    INTEGERS,
    PTensorType,
    Shape,
    axes_of,
    axis_of,
    broadcast_shapes,
    check_together,
    meet,
)

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
class Nonzero(Several):
    """Indices of the nonzero elements: a tensor for each axis.

    Source:
        RFC PTensor, "Operation details".

    >>> print(*Nonzero().results(PTensorType((4, 5), "int8")))
    ptensor<?xint64> ptensor<?xint64>
    """

    name = "nonzero"

    def results(self, *operands: PTensorType) -> tuple[PTensorType, ...]:
        """A row for each axis; the number of nonzero elements is known when they are."""
        (x,) = operands
        if not x.shape:
            raise ArrayValueError(
                "nonzero: x has no axes; give one axis or more", kind="array-shapes"
            )
        return (x.like((None,), "int64"),) * x.rank  # type: ignore[arg-type]


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


Axes = tuple[int, ...]
"""Axes, counted from 0."""


@dataclass(frozen=True)
class Broadcast(Operation):
    """Repeated along axes of extent 1, and along new ones before all others.

    Attributes:
        shape: of the result.

    >>> print(Broadcast((2, 3, 4)).infer(PTensorType((3, 1), "int8")))
    ptensor<2x3x4xint8>
    """

    name = "broadcast"

    shape: Shape

    @property
    def where(self) -> str:
        """As users call it."""
        return "broadcast_to"

    def infer(self, *operands: PTensorType) -> PTensorType:
        """That shape."""
        (x,) = operands
        if broadcast_shapes([x.shape, self.shape], "broadcast_to") != self.shape:
            raise ArrayValueError(
                f"broadcast_to: x has shape {x.shape}, which does not broadcast to {self.shape}: "
                "only axes of extent 1 are repeated, and new ones go before all others",
                kind="array-shapes",
            )
        return x.like(self.shape)


@dataclass(frozen=True)
class Combine(Kinded):
    """Tensors as one, along an axis that they have or along a new one.

    Attributes:
        kind: `concat` or `stack`.
        axis: of the result.

    >>> a = PTensorType((2, 3), "int8")
    >>> print(Combine("concat", 1).infer(a, a), Combine("stack", 1).infer(a, a))
    ptensor<2x6xint8> ptensor<2x2x3xint8>
    """

    name = "combine"
    takes = (1, None)
    kinds = ("concat", "stack")

    axis: int

    def infer(self, *operands: PTensorType) -> PTensorType:
        """The joined shape, in the type that the elements meet in."""
        check_together(operands, self.kind)
        first = operands[0]
        axis = axis_of(self.axis, first.rank + (self.kind == "stack"), self.kind)
        along = axis if self.kind == "concat" else None
        for k, other in enumerate(operands):
            if _without(other.shape, along) != _without(first.shape, along):
                but = "" if along is None else f" except along axis {axis}"
                raise ArrayValueError(
                    f"{self.kind}: array 0 has shape {first.shape} and array {k} {other.shape}; "
                    f"give arrays of one shape{but}",
                    kind="array-shapes",
                )
        extents = [x.shape[axis] for x in operands] if along is not None else [1] * len(operands)
        count: Any = None if None in extents else sum(extents)
        rest = first.shape[axis if along is None else axis + 1 :]
        shape = (*first.shape[:axis], count, *rest)
        return first.like(shape, meet([operand.dtype for operand in operands]))


def _without(shape: Shape, axis: int | None) -> tuple[int, ...]:
    return shape if axis is None else (*shape[:axis], len(shape), *shape[axis + 1 :])


@dataclass(frozen=True)
class ExpandDims(Operation):
    """With axes of extent 1 put in.

    Attributes:
        axis: the places of these in the result, in order.

    >>> print(ExpandDims((0, 2)).infer(PTensorType((4,), "int8")))
    ptensor<1x4x1xint8>
    """

    name = "expand_dims"

    axis: Axes

    def infer(self, *operands: PTensorType) -> PTensorType:
        """The longer shape."""
        (x,) = operands
        _check_axes(self.axis, x.rank + len(self.axis), self.name)
        shape = list(x.shape)
        for axis in self.axis:
            shape.insert(axis, 1)
        return x.like(tuple(shape))


@dataclass(frozen=True)
class Flip(Operation):
    """With the elements along some axes in reverse.

    Attributes:
        axis: these.
    """

    name = "flip"

    axis: Axes

    def infer(self, *operands: PTensorType) -> PTensorType:
        """The same type."""
        (x,) = operands
        _check_axes(self.axis, x.rank, self.name)
        return x.like(x.shape)


@dataclass(frozen=True)
class PermuteDims(Operation):
    """With the axes in another order.

    Attributes:
        axis: for each axis of the result that of the operand.

    >>> print(PermuteDims((1, 0)).infer(PTensorType((2, 3), "int8")))
    ptensor<3x2xint8>
    """

    name = "permute_dims"

    axis: Axes

    def infer(self, *operands: PTensorType) -> PTensorType:
        """The shape in that order."""
        (x,) = operands
        if sorted(self.axis) != list(range(x.rank)):
            raise ArrayValueError(
                f"permute_dims: axes is {self.axis}, and x has shape {x.shape}; name each of its "
                f"{x.rank} axes once",
                kind="array-shapes",
            )
        return x.like(tuple([x.shape[axis] for axis in self.axis]))


@dataclass(frozen=True)
class Reshape(Operation):
    """The elements in their order, in another shape.

    Attributes:
        shape: of the result.
        copy: whether the result has memory of its own; None for where it has to.
    """

    name = "reshape"
    counts = True

    shape: Shape
    copy: bool | None = None

    def infer(self, *operands: PTensorType) -> PTensorType:
        """That shape."""
        (x,) = operands
        if prod(self.shape) != x.size:
            raise ArrayValueError(
                f"reshape: x has shape {x.shape}, {x.size} elements, and {self.shape} has "
                f"{prod(self.shape)}; give a shape of as many, where -1 stands for what is left",
                kind="array-shapes",
            )
        return x.like(self.shape)


@dataclass(frozen=True)
class Roll(Operation):
    """Shifted, with what leaves at one end coming in at the other.

    Attributes:
        shift: by how many elements along each axis.
        axis: these axes.
    """

    name = "roll"

    shift: tuple[int, ...]
    axis: Axes

    def infer(self, *operands: PTensorType) -> PTensorType:
        """The same type."""
        (x,) = operands
        for axis in self.axis:
            axis_of(axis, x.rank, self.name)
        return x.like(x.shape)


@dataclass(frozen=True)
class Squeeze(Operation):
    """Without some axes of extent 1.

    Attributes:
        axis: these.

    >>> print(Squeeze((0,)).infer(PTensorType((1, 4), "int8")))
    ptensor<4xint8>
    """

    name = "squeeze"

    axis: Axes

    def infer(self, *operands: PTensorType) -> PTensorType:
        """The shorter shape."""
        (x,) = operands
        _check_axes(self.axis, x.rank, self.name)
        for axis in self.axis:
            if x.shape[axis] != 1:
                raise ArrayValueError(
                    f"squeeze: x has shape {x.shape}, extent {x.shape[axis]} along axis {axis}; "
                    "name axes of extent 1",
                    kind="array-shapes",
                )
        return x.like(_kept(x.shape, self.axis))


def _kept(shape: Shape, out: Sequence[int]) -> Shape:
    return tuple([extent for axis, extent in enumerate(shape) if axis not in out])


@dataclass(frozen=True)
class Repeat(Operation):
    """Each element several times, one after the other.

    Attributes:
        repeats: how often.
        axis: along which.
    """

    name = "repeat"
    counts = True

    repeats: int
    axis: int

    def infer(self, *operands: PTensorType) -> PTensorType:
        """The shape, longer along that axis."""
        (x,) = operands
        if self.repeats < 0:
            raise ArrayValueError(
                f"repeat: repeats is {self.repeats}; give how often, 0 or more"
            )
        axis = axis_of(self.axis, x.rank, self.name)
        return x.like((*x.shape[:axis], x.shape[axis] * self.repeats, *x.shape[axis + 1 :]))


@dataclass(frozen=True)
class Tile(Operation):
    """The whole several times along each axis.

    Attributes:
        repetitions: for the last axes, or for new ones before the first too.
    """

    name = "tile"
    counts = True

    repetitions: tuple[int, ...]

    def infer(self, *operands: PTensorType) -> PTensorType:
        """The product of extents and repetitions."""
        (x,) = operands
        if any(count < 0 for count in self.repetitions):
            raise ArrayValueError(
                f"tile: repetitions is {self.repetitions}; give how often for each axis, 0 or more"
            )
        rank = max(x.rank, len(self.repetitions))
        counts = (1,) * (rank - len(self.repetitions)) + self.repetitions
        extents = (1,) * (rank - x.rank) + x.shape
        return x.like(tuple([a * b for a, b in zip(extents, counts, strict=True)]))


def _check_axes(axes: Axes, rank: int, where: str) -> None:
    """Refuse axes that are not there, named twice, or not in order."""
    if axes_of(axes, rank, where) != axes:
        raise ArrayValueError(f"{where}: axis is {axes}; name axes in order, from the first")
