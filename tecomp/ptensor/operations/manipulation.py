"""Manipulation and indexing operations."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any, ClassVar

from tecomp.errors import ArrayIndexError, ArrayTypeError, ArrayValueError
from tecomp.ptensor.operation import AttributeOperand, PTensorOp, Several
from tecomp.ptensor.operations.base import Kinded, LibraryOperation
from tecomp.ptensor.types import (
    INTEGERS,
    PTensorType,
    Shape,
    axes_of,
    axis_of,
    broadcast_shapes,
    check_same_device_and_team,
    promote_types,
)

Slices = tuple[tuple[int, int, int], ...]
"""First index, step and count for each axis."""


@dataclass(frozen=True)
class ExtractSlice(PTensorOp):
    """Elements of a slice along each axis.

    Attributes:
        slice: First index, step and count for each axis.

    >>> print(ExtractSlice(((4, -2, 3),)).infer(PTensorType((5,), "int8")))
    ptensor<3xint8>
    """

    name = "extract_slice"
    counts = True

    slice: Slices

    def infer(self, *operands: PTensorType) -> PTensorType:
        """Return the type with the counts as shape."""
        (x,) = operands
        return x.like(_counts(self.slice, x.shape, self.name))


@dataclass(frozen=True)
class ExtractMask(PTensorOp):
    """Elements where the second operand is true; their number depends on the data.

    >>> x, mask = PTensorType((4, 5), "int8"), PTensorType((4,), "bool")
    >>> print(ExtractMask().infer(x, mask))
    ptensor<?x5xint8>
    """

    name = "extract_mask"
    takes = (2, 2)

    def infer(self, *operands: PTensorType) -> PTensorType:
        """Return the type with one axis in place of the axes of the mask."""
        check_same_device_and_team(operands, self.name)
        x, mask = operands
        if mask.dtype != "bool":
            raise ArrayTypeError(
                "{name}: the mask must have dtype bool, got {dtype}; use a comparison, x != 0",
                name=self.name, dtype=mask.dtype,
            )
        if mask.shape != x.shape[: mask.rank]:
            raise ArrayValueError(
                "{name}: mask shape {mask_shape} does not match the leading axes of x with shape "
                "{shape}",
                kind="array-shapes", name=self.name, shape=x.shape, mask_shape=mask.shape,
            )
        return x.like((None, *x.shape[mask.rank :]))  # type: ignore[arg-type]


@dataclass(frozen=True)
class Nonzero(Several):
    """Indices of nonzero elements: one tensor per axis.

    Source:
        RFC PTensor, "Operation details".

    >>> print(*Nonzero().results(PTensorType((4, 5), "int8")))
    ptensor<?xint64> ptensor<?xint64>
    """

    name = "nonzero"

    def results(self, *operands: PTensorType) -> tuple[PTensorType, ...]:
        """Return a one-dimensional type per axis, with a data-dependent extent."""
        (x,) = operands
        if not x.shape:
            raise ArrayValueError(
                "nonzero: x must have at least 1 axis, got 0", kind="array-shapes"
            )
        return (x.like((None,), "int64"),) * x.rank  # type: ignore[arg-type]


@dataclass(frozen=True)
class InsertSlice(PTensorOp):
    """First operand with the elements of a slice replaced by the second operand.

    Attributes:
        slice: First index, step and count for each axis.
    """

    name = "insert_slice"
    counts = True
    takes = (2, 2)

    slice: Slices

    def infer(self, *operands: PTensorType) -> PTensorType:
        """Return the type of the first operand."""
        check_same_device_and_team(operands, self.name)
        x, part = operands
        counts = _counts(self.slice, x.shape, self.name)
        if part.shape != counts:
            raise ArrayValueError(
                "{name}: the slice has shape {counts}, but the inserted operand has shape "
                "{shape}; make the shapes equal",
                kind="array-shapes", name=self.name, counts=counts, shape=part.shape,
            )
        return x.like(x.shape)


@dataclass(frozen=True)
class Take(PTensorOp):
    """Elements at indices; the further operands are index arrays for some axes.

    Attributes:
        axis: Indexed axes.
        place: Position of the index axes in the result.

    >>> x, i = PTensorType((4, 5, 6), "int8"), PTensorType((2, 3), "int64")
    >>> print(Take((1,), 1).infer(x, i))
    ptensor<4x2x3x6xint8>
    """

    name = "take"
    takes = (2, None)

    axis: tuple[int, ...]
    place: int

    def infer(self, *operands: PTensorType) -> PTensorType:
        """Return the type with the index axes inserted between the other axes."""
        check_same_device_and_team(operands, self.name)
        x, *indices = operands
        for index in indices:
            check_integers(index, self.name)
        index_shape = broadcast_shapes([index.shape for index in indices], self.name)
        others = [extent for axis, extent in enumerate(x.shape) if axis not in self.axis]
        return x.like((*others[: self.place], *index_shape, *others[self.place :]))


@dataclass(frozen=True)
class ScatterAdd(LibraryOperation):
    """Sums of elements at equal indices, the adjoint of `Take`; zeros at other indices.

    The terms of each sum are added in row-major order of the index arrays.

    Attributes:
        axis: Indexed axes of the result.
        place: Position of the index axes in the first operand.
        shape: Shape of the result.

    >>> g, i = PTensorType((4, 2, 3, 6), "float32"), PTensorType((2, 3), "int64")
    >>> print(ScatterAdd((1,), 1, (4, 5, 6)).infer(g, i))
    ptensor<4x5x6xfloat32>
    """

    name = "scatter_add"
    counts = True
    takes = (2, None)
    library = "numpy.add.at"

    axis: tuple[int, ...]
    place: int
    shape: Shape

    def results(self, *operands: PTensorType) -> tuple[PTensorType, ...]:
        """Return the type with the shape of the result."""
        g, *indices = operands
        taken = Take(self.axis, self.place).infer(g.like(self.shape), *indices)
        if taken.shape != g.shape:
            raise ArrayValueError(
                "{name}: the terms have shape {shape}, but the indices select elements of shape "
                "{taken}; make the shapes equal",
                kind="array-shapes", name=self.name, shape=g.shape, taken=taken.shape,
            )
        return (g.like(self.shape),)


@dataclass(frozen=True)
class TakeAlongAxis(PTensorOp):
    """Elements at indices along an axis; other axes correspond.

    Attributes:
        axis: Indexed axis.
    """

    name = "take_along_axis"
    takes = (2, 2)

    axis: int

    def infer(self, *operands: PTensorType) -> PTensorType:
        """Return the type with the shape of the indices, broadcast along the other axes."""
        check_same_device_and_team(operands, self.name)
        x, indices = operands
        check_integers(indices, self.name)
        if x.rank != indices.rank:
            raise ArrayValueError(
                "{name}: x has shape {shape}, but the indices have shape {indices_shape}; pass "
                "indices with the same number of axes as x",
                kind="array-shapes", name=self.name, shape=x.shape, indices_shape=indices.shape,
            )
        axis = axis_of(self.axis, x.rank, self.name)
        shapes: list[Shape] = [
            (*shape[:axis], 1, *shape[axis + 1 :]) for shape in (x.shape, indices.shape)
        ]
        shape = broadcast_shapes(shapes, self.name)
        return x.like((*shape[:axis], indices.shape[axis], *shape[axis + 1 :]))


def _counts(slices: Slices, shape: Shape, where: str) -> Shape:
    """Return the counts of slices.

    Raises:
        ArrayIndexError: If an index is out of bounds, or the number of slices is wrong.
    """
    if len(slices) != len(shape):
        raise ArrayIndexError(
            "{where}: shape {shape} has {rank} axes, but got {slice_count} slices; pass one slice "
            "per axis",
            where=where, shape=shape, rank=len(shape), slice_count=len(slices),
        )
    for axis, (extent, (start, step, count)) in enumerate(zip(shape, slices, strict=True)):
        ends = (start, start + (count - 1) * step) if count else ()
        if count < 0 or not all(0 <= end < extent for end in ends):
            raise ArrayIndexError(
                "{where}: {count} indices from {start} with step {step} are out of bounds for "
                "axis {axis} with size {extent}",
                where=where, count=count, start=start, step=step, axis=axis, extent=extent,
            )
    return tuple([count for _, _, count in slices])


def check_integers(index: PTensorType, where: str) -> None:
    """Check that indices have an integer dtype."""
    if index.dtype not in INTEGERS:
        raise ArrayTypeError(
            "{where}: indices must have an integer dtype, got {dtype}; use x[mask] for a boolean "
            "mask",
            where=where, dtype=index.dtype,
        )


Axes = tuple[int, ...]
"""Nonnegative axes."""


@dataclass(frozen=True)
class BroadcastOp(PTensorOp):
    """Broadcast to a shape: along axes of size 1, and along new leading axes.

    Attributes:
        shape: Shape of the result.

    >>> print(BroadcastOp((2, 3, 4)).infer(PTensorType((3, 1), "int8")))
    ptensor<2x3x4xint8>
    """

    name = "broadcast"

    shape: Shape

    @property
    def where(self) -> str:
        """Public name for error messages."""
        return "broadcast_to"

    def infer(self, *operands: PTensorType) -> PTensorType:
        """Return the type with the target shape."""
        (x,) = operands
        if broadcast_shapes([x.shape, self.shape], "broadcast_to") != self.shape:
            raise ArrayValueError(
                "broadcast_to: cannot broadcast shape {shape} to {subject_shape}; only axes of "
                "size 1 are repeated, and new axes are added before all others",
                kind="array-shapes", shape=x.shape, subject_shape=self.shape,
            )
        return x.like(self.shape)


@dataclass(frozen=True)
class Combine(Kinded):
    """Concatenation along an existing axis, or stack along a new axis.

    Attributes:
        kind: `concat` or `stack`.
        axis: Axis of the result.

    >>> a = PTensorType((2, 3), "int8")
    >>> print(Combine("concat", 1).infer(a, a), Combine("stack", 1).infer(a, a))
    ptensor<2x6xint8> ptensor<2x2x3xint8>
    """

    name = "combine"
    takes = (1, None)
    kinds = ("concat", "stack")

    axis: int

    def infer(self, *operands: PTensorType) -> PTensorType:
        """Return the type with the joined shape and the promoted dtype."""
        check_same_device_and_team(operands, self.kind)
        first = operands[0]
        axis = axis_of(self.axis, first.rank + (self.kind == "stack"), self.kind)
        dropped = axis if self.kind == "concat" else None
        for k, other in enumerate(operands):
            if _drop_axes(other.shape, dropped) != _drop_axes(first.shape, dropped):
                clause = "" if dropped is None else f" except along axis {axis}"
                raise ArrayValueError(
                    "{where}: array 0 has shape {shape}, but array {k} has shape {other_shape}; "
                    "pass arrays of equal shape{but}",
                    kind="array-shapes", where=self.kind, shape=first.shape, k=k,
                    other_shape=other.shape, but=clause,
                )
        extents = [x.shape[axis] for x in operands] if dropped is not None else [1] * len(operands)
        count: Any = None if None in extents else sum(extents)
        trailing = first.shape[axis if dropped is None else axis + 1 :]
        shape = (*first.shape[:axis], count, *trailing)
        return first.like(shape, promote_types([operand.dtype for operand in operands]))


def _drop_axes(shape: Shape, axis: int | None) -> tuple[int, ...]:
    return shape if axis is None else (*shape[:axis], len(shape), *shape[axis + 1 :])


@dataclass(frozen=True)
class ExpandDims(PTensorOp):
    """Insertion of axes of size 1.

    Attributes:
        axis: Positions of the new axes in the result, ascending.

    >>> print(ExpandDims((0, 2)).infer(PTensorType((4,), "int8")))
    ptensor<1x4x1xint8>
    """

    name = "expand_dims"

    axis: Axes

    def infer(self, *operands: PTensorType) -> PTensorType:
        """Return the type with the new axes."""
        (x,) = operands
        _check_axes(self.axis, x.rank + len(self.axis), self.name)
        shape = list(x.shape)
        for axis in self.axis:
            shape.insert(axis, 1)
        return x.like(tuple(shape))


@dataclass(frozen=True)
class Flip(PTensorOp):
    """Reversal of elements along axes.

    Attributes:
        axis: Axes.
    """

    name = "flip"

    axis: Axes

    def infer(self, *operands: PTensorType) -> PTensorType:
        """Return the type of the operand."""
        (x,) = operands
        _check_axes(self.axis, x.rank, self.name)
        return x.like(x.shape)


@dataclass(frozen=True)
class PermuteDims(PTensorOp):
    """Permutation of the axes.

    Attributes:
        axis: Axis of the operand for each axis of the result.

    >>> print(PermuteDims((1, 0)).infer(PTensorType((2, 3), "int8")))
    ptensor<3x2xint8>
    """

    name = "permute_dims"

    axis: Axes

    def infer(self, *operands: PTensorType) -> PTensorType:
        """Return the type with the permuted shape."""
        (x,) = operands
        if sorted(self.axis) != list(range(x.rank)):
            raise ArrayValueError(
                "permute_dims: axes {axis} is not a permutation of the axes of x with shape "
                "{shape}; pass each of its {rank} axes once",
                kind="array-shapes", axis=self.axis, shape=x.shape, rank=x.rank,
            )
        return x.like(tuple([x.shape[axis] for axis in self.axis]))


@dataclass(frozen=True)
class Reshape(PTensorOp):
    """Change of shape; elements stay in row-major order.

    Attributes:
        shape: Shape of the result.
        copy: Whether the result has its own memory; None for a copy only if necessary.
    """

    name = "reshape"
    counts = True

    shape: Shape
    copy: bool | None = None

    def infer(self, *operands: PTensorType) -> PTensorType:
        """Return the type with the new shape."""
        (x,) = operands
        if prod(self.shape) != x.size:
            raise ArrayValueError(
                "reshape: cannot reshape x of shape {shape} with {size} elements to "
                "{subject_shape} with {count} elements; pass a shape with the same number "
                "of elements, or -1 for an inferred size",
                kind="array-shapes", shape=x.shape, size=x.size, subject_shape=self.shape,
                count=prod(self.shape),
            )
        return x.like(self.shape)


@dataclass(frozen=True)
class Roll(PTensorOp):
    """Cyclic shift along axes.

    Attributes:
        shift: Number of elements for each axis; one number applies to all axes.
        axis: Axes.
    """

    name = "roll"
    open: ClassVar[tuple[str, ...]] = ("shift",)

    shift: tuple[int, ...]
    axis: Axes

    def __post_init__(self) -> None:
        if isinstance(self.shift, AttributeOperand):
            return
        shift = (self.shift,) if isinstance(self.shift, int) else self.shift
        if len(shift) == 1:
            shift *= len(self.axis)
        if len(shift) != len(self.axis):
            raise ArrayValueError(
                "roll: shift must have one number for each axis, got {shift} for axes {axis}",
                shift=shift, axis=self.axis,
            )
        object.__setattr__(self, "shift", shift)

    def infer(self, *operands: PTensorType) -> PTensorType:
        """Return the type of the operand."""
        (x,) = operands
        for axis in self.axis:
            axis_of(axis, x.rank, self.name)
        return x.like(x.shape)


@dataclass(frozen=True)
class Squeeze(PTensorOp):
    """Removal of axes of size 1.

    Attributes:
        axis: Axes.

    >>> print(Squeeze((0,)).infer(PTensorType((1, 4), "int8")))
    ptensor<4xint8>
    """

    name = "squeeze"

    axis: Axes

    def infer(self, *operands: PTensorType) -> PTensorType:
        """Return the type without the axes."""
        (x,) = operands
        _check_axes(self.axis, x.rank, self.name)
        for axis in self.axis:
            if x.shape[axis] != 1:
                raise ArrayValueError(
                    "squeeze: cannot remove axis {axis} of size {extent} from shape {shape}; pass "
                    "axes of size 1",
                    kind="array-shapes", shape=x.shape, extent=x.shape[axis], axis=axis,
                )
        return x.like(tuple([n for axis, n in enumerate(x.shape) if axis not in self.axis]))


@dataclass(frozen=True)
class Repeat(PTensorOp):
    """Repetition of each element along an axis.

    Attributes:
        repeats: Number of repetitions.
        axis: Axis.
    """

    name = "repeat"
    counts = True

    repeats: int
    axis: int

    def infer(self, *operands: PTensorType) -> PTensorType:
        """Return the type with the longer axis."""
        (x,) = operands
        if self.repeats < 0:
            raise ArrayValueError(
                "repeat: repeats must be nonnegative, got {repeats!r}",
                repeats=self.repeats,
            )
        axis = axis_of(self.axis, x.rank, self.name)
        return x.like((*x.shape[:axis], x.shape[axis] * self.repeats, *x.shape[axis + 1 :]))


@dataclass(frozen=True)
class TileOp(PTensorOp):
    """Repetition of the whole tensor along each axis.

    Attributes:
        repetitions: Number of repetitions for the last axes, and for new leading axes.
    """

    name = "tile"
    counts = True

    repetitions: tuple[int, ...]

    def infer(self, *operands: PTensorType) -> PTensorType:
        """Return the type with the extents multiplied by the repetitions."""
        (x,) = operands
        if any(count < 0 for count in self.repetitions):
            raise ArrayValueError(
                "tile: repetitions must be nonnegative, got {repetitions}",
                repetitions=self.repetitions,
            )
        rank = max(x.rank, len(self.repetitions))
        counts = (1,) * (rank - len(self.repetitions)) + self.repetitions
        extents = (1,) * (rank - x.rank) + x.shape
        return x.like(tuple([a * b for a, b in zip(extents, counts, strict=True)]))


def _check_axes(axes: Axes, rank: int, where: str) -> None:
    """Check that axes are in bounds, unique and ascending."""
    if axes_of(axes, rank, where) != axes:
        raise ArrayValueError(
            "{where}: axes must be nonnegative and in ascending order, got {axes}",
            where=where, axes=axes,
        )
