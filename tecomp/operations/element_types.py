"""Table of element types, and groups of dtypes that functions support."""

from __future__ import annotations

from functools import cache
from typing import Literal, NamedTuple, TypeAlias

Nonfinite: TypeAlias = Literal["IEEE754", "NanOnly", "NegativeZeroNan", "FiniteOnly"]


class ElementType(NamedTuple):
    """Row of an element type.

    Attributes:
        name: Name of the dtype.
        kind: `bool`, `int`, `uint`, `float` or `complex`.
        bits: Width in bits; 1 for bool, and of both parts for a complex dtype.
        fraction_bits: Explicit bits of the fraction of a float.
        exponent_bits: Bits of the exponent of a float.
        pair: Complex dtype whose parts hold every value of a float.
        nonfinite: Encodings of infinity and NaN of a float: those of IEEE 754, NaN only (all bits
            but the sign are ones), NaN only with the code of -0, or none.
        in_arrays: Whether `tecomp.array` has the dtype. Other dtypes are dtypes of tensors,
            kernels and storage formats.

    >>> element_type("bfloat16").fraction_bits, element_type("float32").largest_exponent
    (7, 127)
    """

    name: str
    kind: str
    bits: int
    fraction_bits: int = 0
    exponent_bits: int = 0
    pair: str = ""
    nonfinite: Nonfinite = "IEEE754"
    in_arrays: bool = True

    @property
    def bias(self) -> int:
        """Exponent bias of a float."""
        return (1 << (self.exponent_bits - 1)) - (self.nonfinite != "NegativeZeroNan")

    @property
    def is_signed(self) -> bool:
        """Whether a float has a sign bit; a float without it has neither zero nor subnormals."""
        return self.bits > self.exponent_bits + self.fraction_bits

    @property
    def largest_code(self) -> int:
        """Bit pattern of the largest finite value of a float."""
        codes = 1 << (self.exponent_bits + self.fraction_bits)
        excluded = {"IEEE754": 1 << self.fraction_bits, "NanOnly": 1}
        return codes - 1 - excluded.get(self.nonfinite, 0)

    @property
    def largest_exponent(self) -> int:
        """Exponent of the largest finite value of a float."""
        return _largest_exponent(self)

    @property
    def smallest_exponent(self) -> int:
        """Exponent of the smallest positive value of a float."""
        return 1 - self.bias - self.fraction_bits if self.is_signed else -self.bias

    @property
    def largest(self) -> float:
        """Largest finite value of a float."""
        units = 1 << self.fraction_bits
        return (1.0 + self.largest_code % units / units) * 2.0**self.largest_exponent

    @property
    def lowest(self) -> float:
        """Smallest finite value of a float, which is negative if the float has a sign."""
        return -self.largest if self.is_signed else 2.0**self.smallest_exponent

    @property
    def special_values(self) -> set[str]:
        """Values of a float that are not nonzero numbers: `0`, `-0`, `inf`, `nan`."""
        values = {
            "0": self.is_signed, "-0": self.is_signed and self.nonfinite != "NegativeZeroNan",
            "inf": self.nonfinite == "IEEE754", "nan": self.nonfinite != "FiniteOnly",
        }
        return {value for value, is_present in values.items() if is_present}

    def represents_all(self, source: ElementType) -> bool:
        """Return whether a float represents every value of another float.

        >>> element_type("float16").represents_all(element_type("float8_e5m2fnuz"))
        True
        >>> element_type("float8_e5m2fnuz").represents_all(element_type("float4_e2m1fn"))
        False
        """
        return (
            self.fraction_bits >= source.fraction_bits
            and self.smallest_exponent <= source.smallest_exponent
            and self.lowest <= source.lowest and source.largest <= self.largest
            and self.special_values >= source.special_values
        )


@cache
def _largest_exponent(row: ElementType) -> int:
    """Return the exponent of the largest finite value; the conversion of each constant reads it."""
    return (row.largest_code >> row.fraction_bits) - row.bias


_WIDTHS = (8, 16, 32, 64)

ELEMENT_TYPES = (
    ElementType("bool", "bool", 1),
    ElementType("int2", "int", 2, in_arrays=False),
    ElementType("int4", "int", 4, in_arrays=False),
    *(ElementType(f"int{bits}", "int", bits) for bits in _WIDTHS),
    ElementType("uint2", "uint", 2, in_arrays=False),
    ElementType("uint4", "uint", 4, in_arrays=False),
    *(ElementType(f"uint{bits}", "uint", bits) for bits in _WIDTHS),
    ElementType("float4_e2m1fn", "float", 4, 1, 2, nonfinite="FiniteOnly", in_arrays=False),
    ElementType("float8_e4m3fn", "float", 8, 3, 4, nonfinite="NanOnly", in_arrays=False),
    ElementType(
        "float8_e4m3fnuz", "float", 8, 3, 4, nonfinite="NegativeZeroNan", in_arrays=False),
    ElementType("float8_e5m2", "float", 8, 2, 5, in_arrays=False),
    ElementType(
        "float8_e5m2fnuz", "float", 8, 2, 5, nonfinite="NegativeZeroNan", in_arrays=False),
    ElementType("float8_e8m0fnu", "float", 8, 0, 8, nonfinite="NanOnly", in_arrays=False),
    ElementType("float16", "float", 16, 10, 5, "complex64"),
    ElementType("bfloat16", "float", 16, 7, 8, "complex64"),
    ElementType("float32", "float", 32, 23, 8, "complex64"),
    ElementType("float64", "float", 64, 52, 11, "complex128"),
    ElementType("complex64", "complex", 64),
    ElementType("complex128", "complex", 128),
)
"""All element types; messages list dtypes in this order."""

_BY_NAME = {row.name: row for row in ELEMENT_TYPES}


def element_type(name: str) -> ElementType:
    """Return the row of a dtype."""
    return _BY_NAME[name]


def dtypes_of(*kinds: str) -> tuple[str, ...]:
    """Return the names of the array dtypes of the given kinds.

    >>> dtypes_of("bool", "complex")
    ('bool', 'complex64', 'complex128')
    """
    return tuple([row.name for row in ELEMENT_TYPES if row.kind in kinds and row.in_arrays])


BOOLEAN = dtypes_of("bool")
SIGNED = dtypes_of("int")
UNSIGNED = dtypes_of("uint")
INTEGERS = dtypes_of("int", "uint")
FLOATS = dtypes_of("float")
COMPLEX = dtypes_of("complex")
REAL = dtypes_of("int", "uint", "float")
FLOATING = dtypes_of("float", "complex")
NUMERIC = dtypes_of("int", "uint", "float", "complex")
ALL = dtypes_of("bool", "int", "uint", "float", "complex")

SCALARS = tuple([row.name for row in ELEMENT_TYPES if row.kind != "complex"])
"""Dtypes of scalars in programs."""

NARROW = tuple([row.name for row in ELEMENT_TYPES if row.kind == "float" and row.bits < 32])
"""Floating-point dtypes whose functions and sums are computed in float32."""

PART = {row.name: f"float{row.bits // 2}" for row in ELEMENT_TYPES if row.kind == "complex"}
"""Dtype of the real and imaginary parts, which are stored adjacently."""

_MLIR_KINDS = {"bool": "i", "int": "i", "uint": "ui", "float": "f"}

MLIR_NAMES = {
    row.name: "bf16" if row.name == "bfloat16" else f"{_MLIR_KINDS[row.kind]}{row.bits}"
    for row in ELEMENT_TYPES if row.kind in _MLIR_KINDS and row.in_arrays
}
"""Names of real array dtypes in MLIR."""

WHOLE = {row.name: row.pair for row in ELEMENT_TYPES if row.pair}
"""Complex dtype that type promotion gives for a float and a complex number."""
