"""Dtypes and type promotion of binary operations."""

from __future__ import annotations

import math
import pickle
from itertools import product
from typing import Any

import numpy as np
import pytest

from tecomp.errors import TypeMismatchError
from tecomp.ir import SCALARS, DType, promote, represents_all
from tests.messages import Diagnostic, diagnostic


@pytest.mark.parametrize(
    ("short", "name"),
    [("float", "float32"), ("int", "int32"), ("uint", "uint32"), ("floatx4", "float32x4")],
)
def test_a_name_without_a_width_has_32_bits(short: str, name: str) -> None:
    assert DType(short) is DType(name)
    assert str(DType(short)) == name


def test_a_dtype_equals_its_name() -> None:
    kind = DType("float32x4")

    assert kind == "float32x4"
    assert (kind.kind, kind.bits, kind.lanes, kind.bytes) == ("float", 32, 4, 16)
    assert kind.scalar == "float32"
    assert kind.with_lanes(8) == "float32x8"
    assert DType(kind) is kind
    assert pickle.loads(pickle.dumps(kind)).lanes == 4


@pytest.mark.parametrize("name", SCALARS)
def test_numpy_knows_every_type(name: str) -> None:
    kind = DType(name)

    assert str(kind.numpy) == name
    assert kind.numpy.itemsize == kind.bytes
    assert [kind.is_float, kind.is_integer, kind.is_bool].count(True) == 1


@pytest.mark.parametrize(
    "name",
    ["float31", "ints", "float32x", "bool8", "", "float32 ", "x4", "float32x0", "float32x1",
     "float32x04", "float32x\u0664", "int\uff18", None, [], {}],
)
def test_an_unknown_type_is_refused(name: Any) -> None:
    with pytest.raises(TypeMismatchError) as error:
        DType(name)

    assert diagnostic(error.value) == (
        Diagnostic(
            "dtype", name=str(name),
            scalars=", ".join(SCALARS),
        )
    )


# Results of BinaryOpMatchTypes in TVM 0.18; None where TVM raises an error.
PROMOTIONS = [
    ("int32", "int32", "int32"),
    ("int8", "int64", "int64"),
    ("uint8", "uint16", "uint16"),
    ("uint8", "int8", "uint8"),
    ("uint32", "int8", "uint32"),
    ("uint64", "int32", "uint64"),
    ("uint8", "int32", "int32"),
    ("uint8", "int16", "int16"),
    ("bool", "bool", "bool"),
    ("bool", "int8", "int8"),
    ("bool", "uint64", "uint64"),
    ("bool", "float16", "float16"),
    ("int64", "float16", "float16"),
    ("uint64", "bfloat16", "bfloat16"),
    ("float16", "float32", "float32"),
    ("bfloat16", "float64", "float64"),
    ("float32", "float64", "float64"),
    ("float16", "bfloat16", None),
    ("handle", "int64", None),
    ("float32x4", "float32", "float32x4"),
    ("float32x4", "int8x4", "float32x4"),
    ("int8", "float64x2", "float64x2"),
    ("int32x4", "int32x8", None),
    ("uint8x2", "int32x2", "int32x2"),
]


@pytest.mark.parametrize(("a", "b", "expected"), PROMOTIONS)
def test_promotion(a: str, b: str, expected: str | None) -> None:
    assert promote(DType(a), DType(b)) == expected
    assert promote(DType(b), DType(a)) == expected


def values(dtype: DType) -> Any:
    """Return all values of dtypes of at most 16 bits, and limit values of wider dtypes."""
    kind = dtype.numpy
    if dtype.is_bool:
        return np.array([False, True])
    if dtype.bits <= 16:
        return np.arange(2**dtype.bits).astype(f"uint{max(dtype.bits, 8)}").view(kind)
    if dtype.is_integer:
        return np.array([np.iinfo(kind).min, np.iinfo(kind).max], kind)
    info = np.finfo(kind)
    return np.array([info.max, info.tiny, 1 + info.eps, -0.0, np.inf, np.nan], kind)


def is_same(x: Any, y: Any) -> bool:
    """Return whether two numbers are equal, with the same sign of zeros, or both are NaN."""
    if x != x:
        return bool(y != y)
    # Python compares its numbers exactly, also integers with floats.
    return bool(x == y) and (x != 0 or math.copysign(1, x) == math.copysign(1, y))


@pytest.mark.exhaustive(keep=113)
@pytest.mark.parametrize(("source", "to"), list(product(SCALARS, SCALARS)))
def test_represents_all_matches_exact_casts(source: str, to: str) -> None:
    argument = values(DType(source))
    with np.errstate(all="ignore"):
        # ml_dtypes has no conversions between its own dtypes.
        between = np.float64 if DType(source).bits <= 8 else argument.dtype
        converted = argument.astype(between).astype(DType(to).numpy)
    is_exact = all(map(is_same, argument.tolist(), converted.tolist()))

    assert represents_all(DType(to), DType(source)) == is_exact
    assert represents_all(DType(f"{to}x4"), DType(f"{source}x4")) == is_exact


def test_a_type_of_other_lanes_or_an_address_holds_none() -> None:
    assert not represents_all(DType("int32x4"), DType("int8"))
    assert not represents_all(DType("int64"), DType("handle"))
    assert not represents_all(DType("handle"), DType("uint8"))
