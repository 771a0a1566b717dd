"""Integers of few bits, several to a byte."""

from __future__ import annotations

from dataclasses import dataclass

from tecomp.compute.define import compute
from tecomp.compute.intrinsics import cast, clip, nearbyint
from tecomp.compute.intrinsics import reinterpret as bits_of
from tecomp.compute.reduce import min as lesser
from tecomp.compute.tensor import Tensor
from tecomp.errors import LayoutError
from tecomp.ir.language.dtype import DType
from tecomp.ir.language.expr import Expr, as_expr, const
from tecomp.ir.language.given import check_kind, whole_number
from tecomp.layout.formats.format import Format


@dataclass(frozen=True)
class PackedInt(Format):
    """An integer of 2 or 4 bits; the first of a byte is in its lowest bits.

    Floats are rounded to the nearest integer, to even where two are as near. What lies outside
    the range becomes the nearest that lies inside; NaN becomes 0.

    Attributes:
        bits: how many.
        signed: whether it is in two's complement.
    """

    bits: int = 4
    signed: bool = True

    @classmethod
    def of(cls, bits: int, *, signed: bool) -> PackedInt:
        """The integer of so many bits.

        Raises:
            LayoutError: a byte does not hold some of them, or `signed` is no truth.

        >>> PackedInt.of(4, signed=True).encode_array([-8, 7, 1, -1, 99, -99]).tolist()
        [120, 241, 135]
        """
        if whole_number(bits) not in (2, 4):
            raise LayoutError(
                f"packed integer: {bits!r} bits; a byte holds whole integers of 2 or 4",
                kind="storage-format",
            )
        check_kind(signed, bool, "packed integer: signed", "give True or False", LayoutError)
        name = f"{'' if signed else 'u'}int{bits}"
        return cls(name, DType("uint8"), elements=8 // bits, bits=bits, signed=signed)

    @property
    def values(self) -> DType:
        """int8 or uint8."""
        return DType("int8" if self.signed else "uint8")

    @property
    def range(self) -> tuple[int, int]:
        """The least and the greatest value."""
        return (-1 << (self.bits - 1), (1 << (self.bits - 1)) - 1) if self.signed else (
            0, (1 << self.bits) - 1)

    def _holds(self, value: float) -> bool:
        """Whether it is an integer of so many bits."""
        low, high = self.range
        return low <= value <= high and value == int(value)

    def _encode(self, values: Tensor) -> Tensor:
        """Bytes that hold `values`."""
        count = self._blocks(values, self.elements, "elements")

        def byte(*i: Expr) -> Expr:
            *lead, j = i
            whole = const(0, "uint8")
            for k in range(self.elements):
                code = self._code(values[(*lead, j * self.elements + k)])
                whole = whole | (code << const(k * self.bits, "uint8"))
            return whole

        return compute((*values.shape[:-1], count), byte, name=f"{values.name}_{self.name}")

    def _decode(self, stored: Tensor, dtype: DType) -> Tensor:
        """The values in bytes."""
        count = self._blocks(stored, self.units, "units") * self.elements
        top = const(8 - self.bits, "uint8")

        def value(*i: Expr) -> Expr:
            *lead, j = i
            down = cast(j % self.elements * self.bits, "uint8")
            code = ((stored[(*lead, j // self.elements)] >> down) << top)
            # The shift back fills with the sign where there is one.
            whole = bits_of(self.values, code) if self.signed else code
            return cast(whole >> cast(top, self.values), dtype)

        return compute((*stored.shape[:-1], count), value, name=f"{stored.name}_values")

    def _code(self, value: Expr) -> Expr:
        low, high = self.range
        if value.dtype.is_bool:
            value = cast(value, "uint8")
        if value.dtype.is_float:
            value = cast(nearbyint(value), "int32")
        if value.dtype.kind == "uint":
            inside = lesser(value, as_expr(high, value.dtype))
        else:
            inside = clip(value, low, high)
        return cast(inside, "uint8") & const((1 << self.bits) - 1, "uint8")
