"""Named storage formats: narrow floats and packed integers."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from enum import Enum

from tecomp.compute.define import compute
from tecomp.compute.elementwise import fabs, nearbyint
from tecomp.compute.intrinsics import cast, clip
from tecomp.compute.intrinsics import reinterpret as bits_of
from tecomp.compute.operators import any as any_of
from tecomp.compute.operators import select
from tecomp.compute.reduce import max as greater
from tecomp.compute.reduce import min as lesser
from tecomp.compute.tensor import Tensor
from tecomp.errors import LayoutError
from tecomp.ir.nodes.argument_checks import as_int, check_kind, is_one_of
from tecomp.ir.nodes.dtype import FLOAT32, SCALARS, DType
from tecomp.ir.nodes.expr import Expr, as_expr, const
from tecomp.layout.formats.block_float import BlockFloat
from tecomp.layout.formats.format import Format
from tecomp.operations.element_types import ELEMENT_TYPES, ElementType


@dataclass(frozen=True)
class PackedInt(Format):
    """Packed integer of 2 or 4 bits; the first of a byte is in its lowest bits.

    Floats are rounded to nearest, ties to even. Values out of range saturate; NaN becomes 0.

    Attributes:
        bits: Number of bits.
        signed: Whether the integer is signed (two's complement).
    """

    bits: int = 4
    signed: bool = True

    @classmethod
    def of(cls, bits: int, *, signed: bool) -> PackedInt:
        """Return the packed integer format with a given number of bits.

        Raises:
            LayoutError: If `bits` is not 2 or 4, or `signed` is not a bool.

        >>> PackedInt.of(4, signed=True).encode_array([-8, 7, 1, -1, 99, -99]).tolist()
        [120, 241, 135]
        """
        if as_int(bits) not in (2, 4):
            raise LayoutError(
                "packed integer: bits must be 2 or 4, so that a byte holds whole integers, got "
                "{bits!r}",
                kind="storage-format", bits=bits,
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
        """Minimum and maximum value."""
        return (-1 << (self.bits - 1), (1 << (self.bits - 1)) - 1) if self.signed else (
            0, (1 << self.bits) - 1)

    def _holds(self, value: float) -> bool:
        """Return whether a value is an integer in range."""
        low, high = self.range
        return low <= value <= high and value == int(value)

    def _encode(self, values: Tensor) -> Tensor:
        """Return the bytes that encode `values`."""
        count = self._blocks(values, self.elements, "elements")

        def byte(*i: Expr) -> Expr:
            *outer, j = i
            packed = const(0, "uint8")
            for k in range(self.elements):
                code = self._code(values[(*outer, j * self.elements + k)])
                packed = packed | (code << const(k * self.bits, "uint8"))
            return packed

        return compute((*values.shape[:-1], count), byte, name=f"{values.name}_{self.name}")

    def _decode(self, stored: Tensor, dtype: DType) -> Tensor:
        """Return the values in bytes."""
        count = self._blocks(stored, self.units, "units") * self.elements
        top = const(8 - self.bits, "uint8")

        def value(*i: Expr) -> Expr:
            *outer, j = i
            shift = cast(j % self.elements * self.bits, "uint8")
            code = ((stored[(*outer, j // self.elements)] >> shift) << top)
            # Shifting back is arithmetic for signed formats, which extends the sign.
            extended = bits_of(self.values, code) if self.signed else code
            return cast(extended >> cast(top, self.values), dtype)

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


@dataclass(frozen=True)
class PackedFloat(Format):
    """Float of 4 bits, two in a byte; the first of a byte is in its lowest bits.

    Values are converted as by `te.cast` to `values`.

    Attributes:
        dtype: Dtype of an element.
    """

    dtype: str = ""

    @classmethod
    def of(cls, dtype: str) -> PackedFloat:
        """Return the format that packs the elements of a dtype of 4 bits.

        >>> PackedFloat.of("float4_e2m1fn").encode_array([1.0, -6.0]).tolist()
        [242]
        """
        return cls(dtype, DType("uint8"), elements=8 // DType(dtype).bits, dtype=dtype)

    @property
    def values(self) -> DType:
        """Dtype of an element."""
        return DType(self.dtype)

    def _encode(self, values: Tensor) -> Tensor:
        """Return the bytes that encode `values`."""
        count, bits = self._blocks(values, self.elements, "elements"), self.values.bits

        def byte(*i: Expr) -> Expr:
            *outer, j = i
            byte = const(0, "uint8")
            for k in range(self.elements):
                element = cast(values[(*outer, j * self.elements + k)], self.values)
                code = cast(bits_of(f"uint{bits}", element), "uint8")
                byte = byte | (code << const(k * bits, "uint8"))
            return byte

        return compute((*values.shape[:-1], count), byte, name=f"{values.name}_{self.name}")

    def _decode(self, stored: Tensor, dtype: DType) -> Tensor:
        """Return the values in bytes."""
        count = self._blocks(stored, self.units, "units") * self.elements
        code = DType(f"uint{self.values.bits}")

        def value(*i: Expr) -> Expr:
            *outer, j = i
            down = cast(j % self.elements * code.bits, "uint8")
            element = cast(stored[(*outer, j // self.elements)] >> down, code)
            return cast(bits_of(self.values, element), dtype)

        return compute((*stored.shape[:-1], count), value, name=f"{stored.name}_values")


_SIGN = 0x80000000
_MAGNITUDE = 0x7FFFFFFF
_INFINITY = 0x7F800000
_NAN = 0x7FC00000
_FRACTION_BITS = 23
_BIAS = 127
_FLAG = "give True or False"


class SpecialCodes(Enum):
    """Codes of a narrow float that are not numbers."""

    IEEE = "maximum exponent encodes infinity and NaN"
    FN = "all ones except the sign encodes NaN; no infinity"
    FNUZ = "code of -0 encodes NaN; no infinity and no -0"


class TieBreaking(Enum):
    """Tie-breaking rule for values half-way between two neighbours."""

    EVEN = "round to the value with last bit 0"
    AWAY = "round away from 0"


@dataclass(frozen=True)
class SmallFloat(Format):
    """A float of 8 or 16 bits: sign, exponent, fraction.

    Values are rounded to nearest. A value that exceeds the largest number after rounding becomes
    infinity, or NaN if the format has no infinity; with `saturate` such values and infinities
    become the largest number. NaN stays NaN.

    Attributes:
        exponent: Bits of the exponent.
        fraction: Bits of the fraction.
        bias: Exponent bias.
        specials: Codes that are not numbers.
        ties: Tie-breaking rule.
        denormals: Whether the smallest exponent encodes denormals. If False, it encodes normal
            numbers, except that fraction 0 is zero; smaller values are flushed to zero.
        saturate: Whether values out of range become the largest number.
    """

    exponent: int = 0
    fraction: int = 0
    bias: int = 0
    specials: SpecialCodes = SpecialCodes.IEEE
    ties: TieBreaking = TieBreaking.EVEN
    denormals: bool = True
    saturate: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check_number("exponent", 1, 8)
        self._check_number("fraction", 1, _FRACTION_BITS - 1)
        self._check_number("bias", 0, _BIAS)
        for field, kind, remedy in (
            ("specials", SpecialCodes, "give one of Specials"),
            ("ties", TieBreaking, "give one of Ties"),
            ("denormals", bool, _FLAG), ("saturate", bool, _FLAG),
        ):
            check_kind(
                getattr(self, field), kind, f"format {self.name}: {field}", remedy, LayoutError)
        bits = 1 + self.exponent + self.fraction
        if self.stored.kind != "uint" or self.stored.bits < bits:
            raise LayoutError(
                "format {name}: a sign, {exponent} exponent bits and {fraction} fraction bits do "
                "not fit in {stored}; use an unsigned type of {bits} bits or more",
                kind="storage-format", name=self.name, exponent=self.exponent,
                fraction=self.fraction, stored=self.stored, bits=bits,
            )

    @property
    def values(self) -> DType:
        """float32, which represents all values."""
        return FLOAT32

    @property
    def _sign(self) -> int:
        return 1 << (self.exponent + self.fraction)

    @property
    def _nan(self) -> int:
        """Code of NaN, without the sign."""
        if self.specials is SpecialCodes.IEEE:
            return self._beyond | 1 << (self.fraction - 1)
        return self._sign if self.specials is SpecialCodes.FNUZ else self._beyond

    @property
    def _beyond(self) -> int:
        """Smallest magnitude code that is not a number."""
        if self.specials is SpecialCodes.IEEE:
            return self._sign - (1 << self.fraction)
        return self._sign if self.specials is SpecialCodes.FNUZ else self._sign - 1

    def _holds(self, value: float) -> bool:
        """Return whether a value is NaN, in range after rounding, or an encodable infinity."""
        # `math.isfinite` raises OverflowError for integers beyond float64.
        if not isinstance(value, int) and not math.isfinite(value):
            return math.isnan(value) or self.specials is SpecialCodes.IEEE
        exponent, fraction = divmod(self._beyond - 1, 1 << self.fraction)
        limit = (1.0 + (fraction + 0.5) / (1 << self.fraction)) * 2.0 ** (exponent - self.bias)
        return abs(value) < limit

    def _nearest(self, value: float) -> float:
        """Return the value, clamped to the largest number of its sign if out of range.

        >>> SmallFloat("e4m3", DType("uint8"), exponent=4, fraction=3, bias=7,
        ...     specials=SpecialCodes.FN
        ...     ).nearest(-math.inf)
        -448.0
        """
        if self._holds(value):
            return value
        exponent, fraction = divmod(self._beyond - 1, 1 << self.fraction)
        greatest = (1.0 + fraction / (1 << self.fraction)) * 2.0 ** (exponent - self.bias)
        return greatest if value > 0 else -greatest

    def _encoded(self, value: Expr) -> Expr:
        """Return the code of a value of any dtype."""
        bits = bits_of("uint32", _nearly(value))
        magnitude = bits & _u32(_MAGNITUDE)
        max_code = self._beyond - 1 if self.saturate else self._beyond
        number = lesser(self._rounded(magnitude), _u32(max_code))
        if self.specials is SpecialCodes.FNUZ and not self.saturate:
            number = select(number == _u32(max_code), _u32(self._nan), number)
        code = select(magnitude > _u32(_INFINITY), _u32(self._nan), number)
        sign = (bits & _u32(_SIGN)) >> _u32(31 - self.exponent - self.fraction)
        if self.specials is SpecialCodes.FNUZ:
            sign = select(number == _u32(0), _u32(0), sign)
        return cast(code | sign, self.stored)

    def _rounded(self, magnitude: Expr) -> Expr:
        """Return the code of a magnitude, as if the exponent were unbounded."""
        drop = _FRACTION_BITS - self.fraction
        half = _u32((1 << (drop - 1)) - (self.ties is TieBreaking.EVEN))
        raised = magnitude + half
        if self.ties is TieBreaking.EVEN:
            raised = raised + ((magnitude >> _u32(drop)) & _u32(1))
        base = (_BIAS - self.bias) << self.fraction
        normal = greater(raised >> _u32(drop), _u32(base)) - _u32(base)
        if not self.denormals:
            return normal
        # The last bit of this float has the weight of the last bit of a denormal, so that the float
        # addition performs the rounding (to even).
        unit = _u32((_BIAS + 1 - self.bias - self.fraction + _FRACTION_BITS) << _FRACTION_BITS)
        small = bits_of("float32", magnitude) + bits_of("float32", unit)
        is_small = magnitude < _u32((_BIAS + 1 - self.bias) << _FRACTION_BITS)
        return select(is_small, bits_of("uint32", small) - unit, normal)

    def _decoded(self, unit: Expr) -> Expr:
        """Return the float32 value of a code."""
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
        if self.specials is SpecialCodes.IEEE:
            bits = select(magnitude == _u32(self._beyond), _u32(_INFINITY), bits)
            bits = select(magnitude > _u32(self._beyond), _u32(_NAN), bits)
        elif self.specials is SpecialCodes.FN:
            bits = select(magnitude == _u32(self._nan), _u32(_NAN), bits)
        else:
            bits = select(code == _u32(self._nan), _u32(_NAN), bits)
        sign = (code & _u32(self._sign)) << _u32(31 - self.exponent - self.fraction)
        return bits_of("float32", bits | sign)


def _u32(value: int) -> Expr:
    return const(value, "uint32")


def _nearly(value: Expr) -> Expr:
    """Return a float32 that rounds to narrower floats like `value`.

    A float64 is rounded to odd: truncated, with the lost bits recorded in the last bit, so that a
    second rounding gives the result of a single rounding.
    """
    dtype = value.dtype
    if dtype.is_bool or (dtype.is_integer and dtype.bits <= 16):
        return cast(value, FLOAT32)
    if dtype.is_float and dtype.bits <= 32:
        return cast(value, FLOAT32)
    exact = cast(value, "float64")
    narrowed = cast(exact, FLOAT32)
    widened = cast(narrowed, "float64")
    bits = bits_of("uint32", narrowed)
    outward = cast(fabs(widened) > fabs(exact), "uint32")
    odd = (bits - outward) | cast(any_of(widened != exact), "uint32")
    return bits_of("float32", select(exact == exact, odd, bits))


_SPECIALS = {
    "IEEE754": SpecialCodes.IEEE, "NanOnly": SpecialCodes.FN, "NegativeZeroNan": SpecialCodes.FNUZ,
}


def _format_of(row: ElementType) -> Format:
    """Return the format that stores the elements of a dtype of at most 8 bits."""
    if row.kind != "float":
        return PackedInt.of(row.bits, signed=row.kind == "int")
    if row.bits < 8:
        return PackedFloat.of(row.name)
    return SmallFloat(
        row.name, DType("uint8"), exponent=row.exponent_bits, fraction=row.fraction_bits,
        bias=row.bias, specials=_SPECIALS[row.nonfinite],
    )


_OF_DTYPES = {
    row.name: _format_of(row) for row in ELEMENT_TYPES if not row.in_arrays and row.is_signed
}
"""Formats of dtypes of tensors; a float without a sign is stored as it is."""

FLOAT8_E4M3FN = _OF_DTYPES["float8_e4m3fn"]
FLOAT8_E5M2 = _OF_DTYPES["float8_e5m2"]
FLOAT8_E5M2FNUZ = _OF_DTYPES["float8_e5m2fnuz"]
DLFLOAT16 = SmallFloat(
    "dlfloat16", DType("uint16"), exponent=6, fraction=9, bias=31, specials=SpecialCodes.FN,
    ties=TieBreaking.AWAY, denormals=False,
)
BFP8 = BlockFloat.of(8)
BFP4 = BlockFloat.of(4)
BFP2 = BlockFloat.of(2)
INT4 = _OF_DTYPES["int4"]
UINT4 = _OF_DTYPES["uint4"]

NAMED_FORMATS = {
    **_OF_DTYPES, **{storage.name: storage for storage in (DLFLOAT16, BFP8, BFP4, BFP2)},
}
"""Storage formats by name, besides the dtypes."""


def storage_format(name: str) -> Format:
    """Return the storage format with a given name; dtype names are formats too.

    `dlfloat16` is the 16-bit float of IBM's accelerators: 1 sign bit, 6 exponent bits (bias 31), 9
    fraction bits, no denormals, one code for infinity and NaN (all ones), ties away from 0.

    Raises:
        LayoutError: If there is no such format.

    Source:
        DLFloat16: A. Agrawal et al., DLFloat (ARITH 2019), and the conversions of onnx-mlir's
        NNPA accelerator. Floats of 8 bits: ml_dtypes; OCP 8-bit floating point.

    >>> storage_format("float8_e5m2").encode_array([1.0, 3.3, 1e9]).tolist()
    [60, 67, 124]
    >>> storage_format("bfp8").storage_shape((4, 32, 32))
    (4, 1088)
    """
    if is_one_of(name, NAMED_FORMATS):
        return NAMED_FORMATS[name]
    if is_one_of(name, SCALARS):
        return Format.plain(name)
    raise LayoutError(
        "storage: unknown format `{name}`; available formats: {named}",
        kind="storage-format", name=name,
        named=", ".join(dict.fromkeys((*NAMED_FORMATS, *SCALARS))),
    )


_SHARED = {"bfp_bf8": BFP8, "bfp_bf4": BFP4, "bfp_bf2": BFP2}
_SHORT = {storage.name: name for name, storage in _SHARED.items()}

BFP_TILES: dict[str, Format] = {
    **{name: replace(storage, name=name) for name, storage in _SHARED.items()},
    **{
        f"bfp_f{bits}": replace(BlockFloat.of(bits, exponent_bits=5), name=f"bfp_f{bits}")
        for bits in (8, 4, 2)
    },
}
"""Block floating-point formats for tiles of 32x32: 16 elements share a one-byte exponent.

Formats with `bf` have exponents of bfloat16, formats with `f` exponents of float16.
"""


def format_named(name: str) -> Format:
    """Return the format with a given name: one of `BFP_TILES`, or as by `storage_format`.

    Raises:
        LayoutError: If there is no such format.

    >>> format_named("bfp_bf8").units, format_named("bfp8").name, format_named("float16").units
    (1088, 'bfp_bf8', 1)
    """
    called = _SHORT[name] if is_one_of(name, _SHORT) else name
    return BFP_TILES[called] if is_one_of(called, BFP_TILES) else storage_format(called)
