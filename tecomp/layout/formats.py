"""How numbers are stored: the type in memory, and blocks of them that share bytes."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from tecomp.errors import LayoutError
from tecomp.ir.dtype import DType


@dataclass(frozen=True)
class Format:
    """How the elements of a tensor are stored.

    Attributes:
        name: such as `float32` or `bfp8_b`.
        stored: type of one unit of memory.
        elements: how many elements make a block.
        units: how many units of memory a block takes.
    """

    name: str
    stored: DType
    elements: int = 1
    units: int = 1

    @classmethod
    def plain(cls, dtype: str) -> Format:
        """Each element by itself, as `dtype`."""
        return cls(str(dtype), DType(dtype))

    def storage_shape(self, physical_shape: tuple[int, ...]) -> tuple[int, ...]:
        """The shape of memory in units: the last axes, which make whole blocks, become one.

        Raises:
            LayoutError: the places are no whole blocks.

        >>> Format("int4", DType("uint8"), elements=2).storage_shape((8, 64))
        (8, 32)
        """
        if self.elements == 1:
            return (*physical_shape[:-1], physical_shape[-1] * self.units) if (
                self.units > 1
            ) else physical_shape
        for axis in reversed(range(len(physical_shape))):
            places = prod(physical_shape[axis:])
            if places % self.elements == 0:
                return (*physical_shape[:axis], places // self.elements * self.units)
        raise LayoutError(
            f"format {self.name}: a block holds {self.elements} elements, and the last axes of "
            f"{list(physical_shape)} make no whole blocks; pad them to a multiple"
        )

    def bytes(self, physical_shape: tuple[int, ...]) -> int:
        """Size in memory."""
        return prod(self.storage_shape(physical_shape)) * self.stored.bytes
