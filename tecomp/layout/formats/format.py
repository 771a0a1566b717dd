"""How numbers are stored: the type in memory, and blocks of them that share bytes."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any, ClassVar, Protocol, TypeAlias

import numpy as np

from tecomp.compute.define import compute
from tecomp.compute.intrinsics import cast
from tecomp.compute.tensor import Tensor
from tecomp.errors import LayoutError
from tecomp.ir.dtype import DType
from tecomp.ir.expr import Expr
from tecomp.ir.operators import holds

Array: TypeAlias = np.ndarray[Any, Any]


class Converter(Protocol):
    """What compiles conversions of arrays; `tecomp.copies.conversion` is what there is.

    It stands above the driver, and formats, which only describe, below the compiler.
    """

    def encoded(self, storage: Format, array: Array) -> Array:
        """See `Format.encode_array`."""

    def decoded(self, storage: Format, array: Array, dtype: DType) -> Array:
        """See `Format.decode_array`."""


@dataclass(frozen=True)
class Format:
    """How the elements of a tensor are stored.

    This class stores each element by itself, converted to the type in memory as `te.cast` does.
    The classes below it pack, round or share exponents.

    Attributes:
        name: such as `float32` or `bfp8`.
        stored: type of one unit of memory.
        elements: how many elements make a block.
        units: how many units of memory a block takes.
    """

    converter: ClassVar[Converter]
    """What compiles `encode_array` and `decode_array`; the front door puts it in."""

    name: str
    stored: DType
    elements: int = 1
    units: int = 1

    @classmethod
    def plain(cls, dtype: str) -> Format:
        """Each element by itself, as `dtype`."""
        return Format(str(dtype), DType(dtype))

    @property
    def values(self) -> DType:
        """A type that holds every value of the format, which is what `decode` gives."""
        return self.stored

    def holds(self, value: float) -> bool:
        """Whether a number stays what it is when it is stored, but for a float's rounding."""
        return holds(self.values, value)

    def nearest(self, value: float) -> float:
        """The number that there is in place of one that the format does not have: the greatest."""
        return value

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

    def encoded(self, value: Expr) -> Expr:
        """One element as it is stored, where a block is one element.

        Raises:
            LayoutError: elements are stored in blocks.
        """
        self._refuse_blocks("encode")
        return cast(value, self.stored)

    def decoded(self, unit: Expr) -> Expr:
        """The element that a unit of memory holds, where a block is one element.

        Raises:
            LayoutError: elements are stored in blocks.
        """
        self._refuse_blocks("decode")
        return unit

    def encode(self, values: Tensor) -> Tensor:
        """Memory that holds `values`; the last axis becomes units of whole blocks.

        Raises:
            LayoutError: the last axis has no whole number of blocks.

        >>> from tecomp import te
        >>> A = te.placeholder((8, 64), name="A")
        >>> Format.plain("float16").encode(A).dtype
        'float16'
        """
        return compute(
            values.shape, lambda *i: self.encoded(values[i]), name=f"{values.name}_{self.name}"
        )

    def decode(self, stored: Tensor, dtype: str | None = None) -> Tensor:
        """The values that memory holds, as `dtype`, else as `self.values`.

        Raises:
            LayoutError: the last axis has no whole number of blocks.
        """
        target = DType(dtype or self.values)
        return compute(
            stored.shape, lambda *i: cast(self.decoded(stored[i]), target),
            name=f"{stored.name}_values",
        )

    def quantise(self, values: Tensor) -> Tensor:
        """What becomes of `values` when they are stored and read again, in their own type.

        >>> from tecomp import te
        >>> A = te.placeholder((8,), name="A")
        >>> Format.plain("bfloat16").quantise(A).dtype
        'float32'
        """
        return self.decode(self.encode(values), values.dtype)

    def encode_array(self, array: Any) -> np.ndarray[Any, Any]:
        """An array as it is stored, by a compiled kernel; see `encode`.

        >>> Format.plain("int8").encode_array(np.float32([1.5, -300, np.nan]))
        array([   1, -128,    0], dtype=int8)
        """
        return self.converter.encoded(self, np.asarray(array))

    def decode_array(self, array: Any, dtype: str | None = None) -> np.ndarray[Any, Any]:
        """The values of an array in memory, by a compiled kernel; see `decode`."""
        return self.converter.decoded(self, np.asarray(array), DType(dtype or self.values))

    def _refuse_blocks(self, what: str) -> None:
        if (self.elements, self.units) != (1, 1):
            raise LayoutError(
                f"format {self.name}: {self.elements} elements are stored together, so none has "
                f"a place of its own; {what} a tensor"
            )

    def blocks(self, tensor: Tensor, size: int, what: str) -> Any:
        """How many runs of `size` the last axis of a tensor has.

        Raises:
            LayoutError: it is no whole number.
        """
        last = tensor.shape[-1] if tensor.shape else 1
        if isinstance(last, int) and last % size:
            raise LayoutError(
                f"format {self.name}: the last axis of {tensor.name}{list(tensor.shape)} is no "
                f"whole number of blocks of {size} {what}; pad it, or merge the last axes"
            )
        return last // size
