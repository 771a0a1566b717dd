"""Dtypes: names such as `float32` or `float32x4`, and the properties derived from them."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

import numpy as np

from tecomp.errors import TypeMismatchError, safe_repr
from tecomp.operations.element_types import SCALARS as SCALARS
from tecomp.operations.element_types import element_type

# As in TVM, a name without a width denotes the 32-bit type.
_WITHOUT_WIDTH = re.compile(r"(int|uint|float)(x[0-9]+)?")
# `x1` is not accepted, so that each scalar type has a single name.
_PATTERN = re.compile(rf"({'|'.join((*SCALARS, 'handle'))})(?:x([2-9]|[1-9][0-9]+))?")
_PREFIX = re.compile("[a-z]+")


class DType(str):
    """Dtype of a scalar or vector; a `str` equal to its canonical name.

    Attributes:
        kind: `bool`, `int`, `uint`, `float` (IEEE 754), `bfloat`, `minifloat` (a float of 8 bits or
            less) or `handle` (the address of a buffer).
        bits: Width of one lane in bits; 1 for bool.
        lanes: Number of vector lanes; 1 for a scalar.
        scalar: Dtype of one lane.
        is_float: Whether the dtype is floating-point, bfloat16 included.
        is_integer: Whether the dtype is a signed or unsigned integer; False for bool.
        is_bool: Whether the dtype is bool.
    """

    kind: str
    bits: int
    lanes: int
    scalar: DType
    is_float: bool
    is_integer: bool
    is_bool: bool

    # Each dtype is a singleton, so its frequently used properties are computed only once.
    __slots__ = ("bits", "is_bool", "is_float", "is_integer", "kind", "lanes", "scalar")

    def __new__(cls, name: str) -> DType:
        """Return the dtype called `name`; `int`, `uint` and `float` have 32 bits.

        Raises:
            TypeMismatchError: If `name` is not the name of a dtype.

        >>> DType("float"), DType("int")
        ('float32', 'int32')
        """
        if isinstance(name, cls):
            return name
        # The cache of `_parse` requires hashable arguments, which other objects may not be.
        return _parse(name if isinstance(name, str) else safe_repr(name))

    def __reduce__(self) -> tuple[type[DType], tuple[str]]:
        return DType, (str(self),)

    def with_lanes(self, lanes: int) -> DType:
        """Return the vector dtype with the same scalar dtype and the given number of lanes.

        >>> DType("float32").with_lanes(4)
        'float32x4'
        """
        if lanes == 1:
            return self.scalar
        return self if lanes == self.lanes else _parse(f"{self.scalar}x{lanes}")

    @property
    def bytes(self) -> int:
        """Size of all lanes in memory, in bytes; a lane takes at least one byte."""
        return max(self.bits, 8) // 8 * self.lanes

    @property
    def numpy(self) -> np.dtype[Any]:
        """NumPy dtype of one lane; ml_dtypes provides those that NumPy lacks, such as bfloat16."""
        name = str(self.scalar)
        if self.numpy_module == "np":
            return np.dtype(name)
        import ml_dtypes  # Lazy: the import takes 150 ms, and few programs use these dtypes.

        found: np.dtype[Any] = np.dtype(getattr(ml_dtypes, name))
        return found

    @property
    def numpy_module(self) -> str:
        """Module of the NumPy dtype of one lane: `np` or `ml_dtypes`."""
        return "np" if hasattr(np, self.scalar) else "ml_dtypes"


@cache
def _parse(name: str) -> DType:
    if short := _WITHOUT_WIDTH.fullmatch(name):
        return _parse(f"{short[1]}32{short[2] or ''}")
    match = _PATTERN.fullmatch(name)
    if match is None:
        raise TypeMismatchError(
            "`{name}` is not a valid dtype; valid dtypes are {scalars}",
            name=name, scalars=", ".join(SCALARS),
        )
    self = str.__new__(DType, name)
    base = match[1]
    self.bits = 64 if base == "handle" else element_type(base).bits
    self.is_float = base in SCALARS and element_type(base).kind == "float"
    is_minifloat = self.is_float and self.bits <= 8
    self.kind = "minifloat" if is_minifloat else _PREFIX.findall(base)[0]
    self.lanes = int(match[2] or 1)
    self.scalar = self if name == base else _parse(base)
    self.is_integer = self.kind in ("int", "uint")
    self.is_bool = self.kind == "bool"
    return self


BOOL = DType("bool")
INT32 = DType("int32")
INT64 = DType("int64")
UINT64 = DType("uint64")
FLOAT32 = DType("float32")
HANDLE = DType("handle")


def promote(a: DType, b: DType) -> DType | None:
    """Return the result dtype of `a op b`, or None if there is no common dtype.

    A float takes precedence over an integer regardless of widths. The wider of two floats or of two
    integers is selected; of two integers of equal width, the unsigned one. A scalar is broadcast to
    the lanes of the other operand.

    Source:
        `BinaryOpMatchTypes` of TVM 0.18. As in TVM, float16 and bfloat16 have no common dtype.

    >>> promote(DType("int64"), DType("float16")), promote(DType("uint8"), DType("int8"))
    ('float16', 'uint8')
    """
    if a == b:
        return a
    if a.lanes != b.lanes and 1 not in (a.lanes, b.lanes):
        return None
    lanes = max(a.lanes, b.lanes)
    scalar = _promote_scalars(a.scalar, b.scalar)
    return scalar.with_lanes(lanes) if scalar is not None else None


def _promote_scalars(a: DType, b: DType) -> DType | None:
    if a == b:
        return a
    if "handle" in (a.kind, b.kind):
        return None
    if a.is_float != b.is_float:
        return a if a.is_float else b
    if a.is_float:
        return None if a.bits == b.bits else max(a, b, key=lambda t: t.bits)
    return max(a, b, key=lambda t: (t.bits, t.kind == "uint"))


def represents_all(dtype: DType, other: DType) -> bool:
    """Return whether every value of `other` is representable in `dtype`, so that a cast is exact.

    >>> represents_all(DType("float32"), DType("int16")), represents_all(DType("uint16"),
    ...     DType("int8"))
    (True, False)
    """
    if dtype == other:
        return True
    if dtype.lanes != other.lanes or "handle" in (dtype.kind, other.kind):
        return False
    target, source = dtype.scalar, other.scalar
    target_row, source_row = element_type(target), element_type(source)
    if source.is_float:
        return target.is_float and target_row.represents_all(source_row)
    if target.is_float and not target_row.is_signed:
        return False
    if target.is_bool or (source.kind == "int" and target.kind == "uint"):
        return False
    # Magnitude bits exclude the sign bit of signed integers.
    required = source.bits - (source.kind == "int")
    bits = target_row.fraction_bits + 1 if target.is_float else target.bits - (target.kind == "int")
    return bool(bits >= required)
