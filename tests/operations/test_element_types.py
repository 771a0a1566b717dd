"""The table of element types agrees with NumPy and ml_dtypes."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tecomp.ir import DType, integer_range
from tecomp.ir.nodes import SCALARS
from tecomp.operations import ALL, ELEMENT_TYPES, PART, WHOLE, ElementType
from tecomp.ptensor import numpy_dtype

NAMES = {"b": "bool", "i": "int", "u": "uint", "f": "float", "V": "float", "c": "complex"}


@pytest.mark.parametrize("row", ELEMENT_TYPES, ids=lambda row: row.name)
def test_rows_match_numpy(row: ElementType) -> None:
    dtype = numpy_dtype(row.name)

    is_integer = dtype.kind == "V" and "float" not in row.name
    kind = row.name.rstrip("24") if is_integer else NAMES[dtype.kind]
    assert (dtype.name, kind) == (row.name, row.kind)
    if is_integer:
        iinfo: Any = ml_dtypes.iinfo
        limits = iinfo(dtype)
        assert (limits.bits, limits.min, limits.max) == (row.bits, *integer_range(DType(row.name)))
    assert row.kind == "bool" or 8 * dtype.itemsize == max(row.bits, 8)


@pytest.mark.parametrize(
    "row", [row for row in ELEMENT_TYPES if row.kind == "float"], ids=lambda row: row.name
)
def test_formats_of_floats_match_numpy(row: ElementType) -> None:
    finfo: Any = ml_dtypes.finfo
    limits = finfo(numpy_dtype(row.name))

    assert (row.fraction_bits, row.exponent_bits) == (limits.nmant, limits.nexp)
    assert (row.largest, row.largest_exponent) == (float(limits.max), limits.maxexp - 1)
    assert (row.lowest, 2.0**row.smallest_exponent) == (
        float(limits.min), float(limits.smallest_subnormal))
    assert not row.is_signed or row.bias == 1 - limits.minexp
    if row.in_arrays:
        assert WHOLE[row.name] == np.promote_types("complex64", np.dtype(f"f{max(row.bits, 32) // 8}"))


def test_parts_match_numpy() -> None:
    assert {name: np.ones((), name).real.dtype.name for name in PART} == PART


def test_dtypes_of_expressions_are_those_without_parts() -> None:
    extra = [row.name for row in ELEMENT_TYPES if not row.in_arrays]
    assert [name for name in (*SCALARS, *PART) if name not in extra] == [*ALL]
    assert [DType(name).bits for name in SCALARS] == [
        row.bits for row in ELEMENT_TYPES if row.name in SCALARS]
