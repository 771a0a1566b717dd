"""Coordinates of grids: several tensors at once, each repeated along the axes of the others."""

from __future__ import annotations

from dataclasses import dataclass

from tecomp.errors import ArrayValueError
from tecomp.ptensor.operation import Several
from tecomp.ptensor.types import PTensorType, Shape, check_together


@dataclass(frozen=True)
class MeshGrid(Several):
    """Each operand along an axis of its own, repeated along those of the others.

    Attributes:
        indexing: `ij` for the axes in order, `xy` for the first two exchanged.

    >>> row, column = PTensorType((4,), "int8"), PTensorType((3,), "int64")
    >>> print(*MeshGrid("xy").results(row, column))
    ptensor<3x4xint8> ptensor<3x4xint64>
    """

    name = "meshgrid"
    takes = (1, None)

    indexing: str = "xy"

    def __post_init__(self) -> None:
        if self.indexing not in ("xy", "ij"):
            raise ArrayValueError(f"meshgrid: indexing is {self.indexing!r}; give 'xy' or 'ij'")

    def results(self, *operands: PTensorType) -> tuple[PTensorType, ...]:
        """The grid, in the element type of each operand."""
        for k, each in enumerate(operands):
            if each.rank > 1:
                raise ArrayValueError(
                    f"{self.name}: array {k} has shape {each.shape}; give arrays of one axis",
                    kind="array-shapes",
                )
        check_together(operands, self.name)
        order = self.order(len(operands))
        shape: Shape = tuple([operands[k].shape[0] if operands[k].rank else 1 for k in order])
        return tuple([each.like(shape) for each in operands])

    def order(self, count: int) -> tuple[int, ...]:
        """For each axis of the grid, the operand that lies along it."""
        order = list(range(count))
        if self.indexing == "xy":
            order[:2] = reversed(order[:2])
        return tuple(order)
