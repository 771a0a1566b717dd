"""Floats of few bits: 8-bit floats and DLFloat16, converted by integer operations on their bits."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum

from tecomp.compute.intrinsics import cast, fabs, reinterpret
from tecomp.compute.logic import any as any_of
from tecomp.compute.logic import select
from tecomp.compute.reduce import max as greater
from tecomp.compute.reduce import min as lesser
from tecomp.errors import LayoutError
from tecomp.ir.language.dtype import FLOAT32, DType
from tecomp.ir.language.expr import Expr, const
from tecomp.ir.language.given import check_kind
from tecomp.layout.formats.format import Format

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
        bits = reinterpret("uint32", _nearly(value))
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
        small = reinterpret("float32", magnitude) + reinterpret("float32", unit)
        is_small = magnitude < _u32((_BIAS + 1 - self.bias) << _FRACTION_BITS)
        return select(is_small, reinterpret("uint32", small) - unit, normal)

    def _decoded(self, unit: Expr) -> Expr:
        """The float32 of a code."""
        code = cast(unit, "uint32")
        magnitude = code & _u32(self._sign - 1)
        drop = _FRACTION_BITS - self.fraction
        bits = (magnitude << _u32(drop)) + _u32((_BIAS - self.bias) << _FRACTION_BITS)
        if self.denormals:
            step = const(2.0 ** (1 - self.bias - self.fraction), FLOAT32)
            small = reinterpret("uint32", cast(cast(magnitude, "int32"), FLOAT32) * step)
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
        return reinterpret("float32", bits | sign)


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
    bits = reinterpret("uint32", near)
    outward = cast(fabs(back) > fabs(exact), "uint32")
    odd = (bits - outward) | cast(any_of(back != exact), "uint32")
    return reinterpret("float32", select(exact == exact, odd, bits))
