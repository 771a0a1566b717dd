"""Narrow floats and packed integers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum

from tecomp.compute.define import compute
from tecomp.compute.intrinsics import cast, clip, fabs, nearbyint
from tecomp.compute.intrinsics import reinterpret as bits_of
from tecomp.compute.operators import any as any_of
from tecomp.compute.operators import select
from tecomp.compute.reduce import max as greater
from tecomp.compute.reduce import min as lesser
from tecomp.compute.tensor import Tensor
from tecomp.errors import LayoutError
from tecomp.ir.nodes.argument_checks import check_kind, whole_number
from tecomp.ir.nodes.dtype import FLOAT32, DType
from tecomp.ir.nodes.expr import Expr, as_expr, const
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


_SIGN = 0x80000000
_MAGNITUDE = 0x7FFFFFFF
_INFINITY = 0x7F800000
_NAN = 0x7FC00000
_FRACTION_BITS = 23
_BIAS = 127
_FLAG = "give True or False"


class Specials(Enum):
    """Which codes are no numbers."""

    IEEE = "the greatest exponent: infinity and NaN"
    FN = "all ones but the sign: NaN; there is no infinity"
    FNUZ = "the code of -0: NaN; there is no infinity and no -0"


class Ties(Enum):
    """Which of two neighbours a value half-way between them becomes."""

    EVEN = "the one whose last bit is 0"
    AWAY = "the one that is further from 0"


@dataclass(frozen=True)
class SmallFloat(Format):
    """A float of 8 or 16 bits: sign, exponent, fraction.

    Values are rounded to the nearest. What is greater than the greatest number, after rounding,
    becomes infinity, or NaN where there is none; with `saturate` it becomes that greatest number,
    as infinity does. NaN stays NaN.

    Attributes:
        exponent: bits of the exponent.
        fraction: bits of the fraction.
        bias: what the exponent is greater by than the power of 2.
        specials: which codes are no numbers.
        ties: where a value half-way between two goes.
        denormals: whether the least exponent is for numbers without the leading 1. Without them
            its numbers are like all others, but for the fraction 0, which is zero; what is less
            becomes zero.
        saturate: whether too great a value becomes the greatest number.
    """

    exponent: int = 0
    fraction: int = 0
    bias: int = 0
    specials: Specials = Specials.IEEE
    ties: Ties = Ties.EVEN
    denormals: bool = True
    saturate: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check_number("exponent", 1, 8)
        self._check_number("fraction", 1, _FRACTION_BITS - 1)
        self._check_number("bias", 0, _BIAS)
        for what, kind, cure in (
            ("specials", Specials, "give one of Specials"), ("ties", Ties, "give one of Ties"),
            ("denormals", bool, _FLAG), ("saturate", bool, _FLAG),
        ):
            check_kind(
                getattr(self, what), kind, f"format {self.name}: {what}", cure, LayoutError)
        bits = 1 + self.exponent + self.fraction
        if self.stored.kind != "uint" or self.stored.bits < bits:
            raise LayoutError(
                f"format {self.name}: a sign, {self.exponent} bits of exponent and {self.fraction} "
                f"of fraction are stored as {self.stored}; give an unsigned type of {bits} bits or "
                "more",
                kind="storage-format",
            )

    @property
    def values(self) -> DType:
        """float32, which holds them all."""
        return FLOAT32

    @property
    def _sign(self) -> int:
        return 1 << (self.exponent + self.fraction)

    @property
    def _nan(self) -> int:
        """The code of NaN, without the sign."""
        if self.specials is Specials.IEEE:
            return self._beyond | 1 << (self.fraction - 1)
        return self._sign if self.specials is Specials.FNUZ else self._beyond

    @property
    def _beyond(self) -> int:
        """The first magnitude that is no number."""
        if self.specials is Specials.IEEE:
            return self._sign - (1 << self.fraction)
        return self._sign if self.specials is Specials.FNUZ else self._sign - 1

    def _holds(self, value: float) -> bool:
        """Whether it is NaN, rounds to a number, or is infinite where there is a code for that."""
        if not math.isfinite(value):
            return math.isnan(value) or self.specials is Specials.IEEE
        exponent, fraction = divmod(self._beyond - 1, 1 << self.fraction)
        beyond = (1.0 + (fraction + 0.5) / (1 << self.fraction)) * 2.0 ** (exponent - self.bias)
        return abs(value) < beyond

    def _nearest(self, value: float) -> float:
        """The value, or the greatest number of its sign where there is none so great.

        >>> SmallFloat("e4m3", DType("uint8"), exponent=4, fraction=3, bias=7, specials=Specials.FN
        ...     ).nearest(-math.inf)
        -448.0
        """
        if self._holds(value):
            return value
        exponent, fraction = divmod(self._beyond - 1, 1 << self.fraction)
        greatest = (1.0 + fraction / (1 << self.fraction)) * 2.0 ** (exponent - self.bias)
        return math.copysign(greatest, value)

    def _encoded(self, value: Expr) -> Expr:
        """The code of a value, of any type."""
        bits = bits_of("uint32", _nearly(value))
        magnitude = bits & _u32(_MAGNITUDE)
        most = self._beyond - 1 if self.saturate else self._beyond
        number = lesser(self._rounded(magnitude), _u32(most))
        if self.specials is Specials.FNUZ and not self.saturate:
            number = select(number == _u32(most), _u32(self._nan), number)
        code = select(magnitude > _u32(_INFINITY), _u32(self._nan), number)
        sign = (bits & _u32(_SIGN)) >> _u32(31 - self.exponent - self.fraction)
        if self.specials is Specials.FNUZ:
            sign = select(number == _u32(0), _u32(0), sign)
        return cast(code | sign, self.stored)

    def _rounded(self, magnitude: Expr) -> Expr:
        """The code of a magnitude, as if there were codes for all greater numbers."""
        drop = _FRACTION_BITS - self.fraction
        half = _u32((1 << (drop - 1)) - (self.ties is Ties.EVEN))
        raised = magnitude + half
        if self.ties is Ties.EVEN:
            raised = raised + ((magnitude >> _u32(drop)) & _u32(1))
        base = (_BIAS - self.bias) << self.fraction
        normal = greater(raised >> _u32(drop), _u32(base)) - _u32(base)
        if not self.denormals:
            return normal
        # The last bit of this number counts what the last bit of a denormal counts, so that the
        # addition rounds (to even).
        unit = _u32((_BIAS + 1 - self.bias - self.fraction + _FRACTION_BITS) << _FRACTION_BITS)
        small = bits_of("float32", magnitude) + bits_of("float32", unit)
        is_small = magnitude < _u32((_BIAS + 1 - self.bias) << _FRACTION_BITS)
        return select(is_small, bits_of("uint32", small) - unit, normal)

    def _decoded(self, unit: Expr) -> Expr:
        """The float32 of a code."""
        code = cast(unit, "uint32")
        magnitude = code & _u32(self._sign - 1)
        drop = _FRACTION_BITS - self.fraction
        bits = (magnitude << _u32(drop)) + _u32((_BIAS - self.bias) << _FRACTION_BITS)
        if self.denormals:
            step = const(2.0 ** (1 - self.bias - self.fraction), FLOAT32)
            small = bits_of("uint32", cast(cast(magnitude, "int32"), FLOAT32) * step)
            bits = select(magnitude < _u32(1 << self.fraction), small, bits)
        else:
            bits = select(magnitude == _u32(0), _u32(0), bits)
        if self.specials is Specials.IEEE:
            bits = select(magnitude == _u32(self._beyond), _u32(_INFINITY), bits)
            bits = select(magnitude > _u32(self._beyond), _u32(_NAN), bits)
        elif self.specials is Specials.FN:
            bits = select(magnitude == _u32(self._nan), _u32(_NAN), bits)
        else:
            bits = select(code == _u32(self._nan), _u32(_NAN), bits)
        sign = (code & _u32(self._sign)) << _u32(31 - self.exponent - self.fraction)
        return bits_of("float32", bits | sign)


def _u32(value: int) -> Expr:
    return const(value, "uint32")


def _nearly(value: Expr) -> Expr:
    """A float32 that lies between the same numbers of fewer bits as `value`.

    A float64 is rounded to odd: towards zero, and what is lost is kept as a last bit, so that
    rounding it again gives what rounding once would.
    """
    dtype = value.dtype
    if dtype.is_bool or (dtype.is_integer and dtype.bits <= 16):
        return cast(value, FLOAT32)
    if dtype.is_float and dtype.bits <= 32:
        return cast(value, FLOAT32)
    exact = cast(value, "float64")
    near = cast(exact, FLOAT32)
    back = cast(near, "float64")
    bits = bits_of("uint32", near)
    outward = cast(fabs(back) > fabs(exact), "uint32")
    odd = (bits - outward) | cast(any_of(back != exact), "uint32")
    return bits_of("float32", select(exact == exact, odd, bits))
