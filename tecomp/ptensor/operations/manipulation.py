"""The same elements at other places, or in another shape."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from tecomp.errors import ArrayValueError
from tecomp.ptensor.axes import axes_of, axis_of
from tecomp.ptensor.operation import Operation
from tecomp.ptensor.operations.kinds import Kinded
from tecomp.ptensor.promotion import meet
from tecomp.ptensor.types import PTensorType, Shape, broadcast_shapes, check_together

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
