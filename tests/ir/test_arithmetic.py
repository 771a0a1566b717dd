"""Arithmetic rules of operators and functions, compared with NumPy where its rules are equal."""

from __future__ import annotations

import math
from collections.abc import Callable
from importlib import import_module
from itertools import product
from typing import Any

import numpy as np
import pytest
import scipy.special

from tecomp.ir import (
    INTRINSICS,
    BinOp,
    CmpOp,
    DType,
    binary_function,
    call_function,
    cast_function,
    compare_function,
    constant,
    integer_range,
    result_type,
    saturating_conversion,
    wrap_to_dtype,
)
from tecomp.operations import ELEMENTWISE, element_type
from tests.numerics import assert_close
from tests.strategies.dtypes import FLOATS, INTEGERS
from tests.strategies.functions import EXACT


def samples(dtype: DType) -> list[int]:
    low, high = integer_range(dtype)
    chosen = {low, low + 1, -7, -2, -1, 0, 1, 2, 3, 7, dtype.bits, dtype.bits - 1, high - 1, high}
    return sorted(value for value in chosen if low <= value <= high)


def expected(op: BinOp, dtype: DType, a: int, b: int) -> int:
    """Return the result computed with unbounded Python integers."""
    amount = b % 2**dtype.bits
    exact: dict[BinOp, Callable[[], int]] = {
        BinOp.ADD: lambda: a + b,
        BinOp.SUB: lambda: a - b,
        BinOp.MUL: lambda: a * b,
        BinOp.FLOORDIV: lambda: a // b if b else 0,
        BinOp.MOD: lambda: a % b if b else 0,
        BinOp.MIN: lambda: min(a, b),
        BinOp.MAX: lambda: max(a, b),
        BinOp.BITAND: lambda: a & b,
        BinOp.BITOR: lambda: a | b,
        BinOp.BITXOR: lambda: a ^ b,
        BinOp.SHL: lambda: a << amount if amount < dtype.bits else 0,
        BinOp.SHR: lambda: a >> min(amount, dtype.bits),
    }
    low, _ = integer_range(dtype)
    wrapped: int = (exact[op]() - low) % 2**dtype.bits + low
    return wrapped


INTEGER_OPS = [op for op in BinOp if op not in (BinOp.DIV, BinOp.AND, BinOp.OR)]


@pytest.mark.exhaustive(keep=127)
@pytest.mark.parametrize("name", INTEGERS)
@pytest.mark.parametrize("op", INTEGER_OPS)
def test_integer_operators(op: BinOp, name: str) -> None:
    dtype = DType(name)
    pairs = list(product(samples(dtype), repeat=2))
    scalar = binary_function(op, dtype)
    vector = binary_function(op, dtype.with_lanes(len(pairs)))
    expected_result = [expected(op, dtype, a, b) for a, b in pairs]

    with np.errstate(all="ignore"):
        lanes = vector(*(np.array(side, dtype.numpy) for side in zip(*pairs, strict=True)))

    assert [scalar(a, b) for a, b in pairs] == expected_result
    assert lanes.tolist() == expected_result
    assert lanes.dtype == dtype.numpy


def test_the_rules_for_integers_in_numbers() -> None:
    int32 = DType("int32")
    divide, modulo = (binary_function(op, int32) for op in (BinOp.FLOORDIV, BinOp.MOD))
    shift = binary_function(BinOp.SHR, int32)

    assert (divide(-7, 2), modulo(-7, 2), divide(7, -2), modulo(7, -2)) == (-4, 1, -4, -1)
    assert (divide(5, 0), modulo(5, 0), divide(-(2**31), -1)) == (0, 0, -(2**31))
    assert (shift(-5, 32), shift(-5, -1), shift(5, 99)) == (-1, -1, 0)


# Operands: False/False, False/True, True/False, True/True.
TRUTH_TABLES = {
    BinOp.AND: [0, 0, 0, 1],
    BinOp.BITAND: [0, 0, 0, 1],
    BinOp.MIN: [0, 0, 0, 1],
    BinOp.OR: [0, 1, 1, 1],
    BinOp.BITOR: [0, 1, 1, 1],
    BinOp.MAX: [0, 1, 1, 1],
    BinOp.BITXOR: [0, 1, 1, 0],
    BinOp.SHL: [0, 0, 1, 0],
    BinOp.SHR: [0, 0, 1, 0],
}


@pytest.mark.parametrize(("op", "expected_result"), TRUTH_TABLES.items())
def test_operators_of_truth_values(op: BinOp, expected_result: list[int]) -> None:
    pairs = list(product([False, True], repeat=2))
    a, b = (np.array(side) for side in zip(*pairs, strict=True))

    assert [binary_function(op, DType("bool"))(x, y) for x, y in pairs] == expected_result
    assert binary_function(op, DType("boolx4"))(a, b).tolist() == expected_result


@pytest.mark.parametrize("name", FLOATS)
@np.errstate(divide="ignore", invalid="ignore")  # small types round to zeros
def test_float_operators_are_numpys(name: str) -> None:
    kind = DType(name).numpy
    a, b = np.random.default_rng(0).standard_normal((2, 50)).astype(kind)
    numpy = {BinOp.ADD: np.add, BinOp.SUB: np.subtract, BinOp.MUL: np.multiply,
             BinOp.DIV: np.divide, BinOp.MIN: np.minimum, BinOp.MAX: np.maximum,
             BinOp.FLOORDIV: np.floor_divide, BinOp.MOD: np.remainder}

    for op, function in numpy.items():
        expected_result = function(a, b)
        scalar = binary_function(op, DType(name))
        vector = binary_function(op, DType(name).with_lanes(50))
        one_by_one = np.array([scalar(x, y) for x, y in zip(a, b, strict=True)])
        assert one_by_one.dtype == kind
        for found in (one_by_one, vector(a, b)):
            np.testing.assert_array_equal(found.astype(float), expected_result.astype(float))


@pytest.mark.parametrize("name", [n for n in FLOATS if element_type(n).nonfinite != "FiniteOnly"])
def test_min_and_max_propagate_nan(name: str) -> None:
    dtype = DType(name)
    one, nan = constant(1.0, dtype), constant(math.nan, dtype)

    with np.errstate(all="ignore"):
        found = [binary_function(op, dtype)(*pair) for op in (BinOp.MIN, BinOp.MAX)
                 for pair in ((one, nan), (nan, one))]

    assert all(map(np.isnan, found))


@pytest.mark.parametrize("op", CmpOp)
def test_comparisons(op: CmpOp) -> None:
    expected_result = {
        CmpOp.EQ: [False, True, False], CmpOp.NE: [True, False, True],
        CmpOp.LT: [True, False, False], CmpOp.LE: [True, True, False],
        CmpOp.GT: [False, False, False], CmpOp.GE: [False, True, False],
    }[op]
    pairs = [(1.0, 2.0), (2.0, 2.0), (2.0, math.nan)]
    scalar = compare_function(op, DType("float32"))
    a, b = (np.array(side, np.float32) for side in zip(*pairs, strict=True))

    assert [scalar(np.float32(x), np.float32(y)) for x, y in pairs] == expected_result
    assert compare_function(op, DType("float32x3"))(a, b).tolist() == expected_result
    assert compare_function(op, DType("int8"))(-1, 3) == expected_result[0]


@pytest.mark.parametrize(
    ("value", "target", "expected_result"),
    [
        (1.9, "int8", 1),
        (-1.9, "int8", -1),
        (1e9, "int8", 127),
        (-1e9, "int8", -128),
        (-3.0, "uint8", 0),
        (math.inf, "int64", 2**63 - 1),
        (-math.inf, "int64", -(2**63)),
        (math.nan, "int32", 0),
        (1e30, "uint64", 2**64 - 1),
        (0.5, "bool", True),
        (-0.0, "bool", False),
        (math.nan, "bool", True),
    ],
)
def test_floats_become_the_nearest_value(value: float, target: str, expected_result: int) -> None:
    vector = cast_function(DType("float64x2"), DType(target).with_lanes(2))

    assert cast_function(DType("float64"), DType(target))(np.float64(value)) == expected_result
    assert vector(np.array([value, 0.0])).tolist() == [expected_result, 0]


@pytest.mark.parametrize("source", INTEGERS)
@pytest.mark.parametrize("target", INTEGERS)
def test_integers_wrap(source: str, target: str) -> None:
    values = samples(DType(source))
    low, bits = integer_range(DType(target))[0], DType(target).bits
    expected_result = [(value - low) % 2**bits + low for value in values]
    scalar = cast_function(DType(source), DType(target))
    vector = cast_function(DType(source).with_lanes(9), DType(target).with_lanes(9))

    assert [scalar(value) for value in values] == expected_result
    assert vector(np.array(values, source)).tolist() == expected_result


@pytest.mark.parametrize("target", FLOATS)
@pytest.mark.parametrize("source", ["bool", "int8", "int64", "uint64", "float16", "float64"])
def test_conversions_to_floats_are_numpys(source: str, target: str) -> None:
    kind = DType(target).numpy
    scalar = cast_function(DType(source), DType(target))

    with np.errstate(all="ignore"):
        values = np.array([0, 1, 100, 2**24 + 1, 3]).astype(source)
        argument = values if DType(source).is_float else values.tolist()
        result = np.array([scalar(value) for value in argument])
        # NumPy does not recognize the NaN of small types.
        np.testing.assert_array_equal(result.astype(float), values.astype(kind).astype(float))

    assert result.dtype == kind


def test_truth_values_convert() -> None:
    assert cast_function(DType("bool"), DType("int8"))(True) == 1
    assert cast_function(DType("int8"), DType("bool"))(-3) is True
    assert cast_function(DType("int8x2"), DType("boolx2"))(np.array([0, 2])).tolist() == [0, 1]


def test_wrapping_and_saturating() -> None:
    assert [wrap_to_dtype(DType("int8"))(v) for v in (127, 128, -129, 256)] == [127, -128, 127, 0]
    assert [wrap_to_dtype(DType("uint8"))(v) for v in (255, 256, -1)] == [255, 0, 255]
    assert [saturating_conversion(DType("uint16"))(v) for v in (1e9, -1.0, 2.5)] == [65535, 0, 2]


X = np.linspace(0.05, 0.95, 16)
WANTED: dict[str, Any] = {
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "sigmoid": scipy.special.expit,
    "erf": scipy.special.erf,
    "round": lambda x: np.floor(x + 0.5),
    "nearbyint": np.rint,
    "pow": np.power,
    "atan2": np.arctan2,
    **{f"a{name}": getattr(np, f"arc{name}") for name in ("sin", "cos", "tan", "sinh", "tanh")},
    "acosh": np.arccosh,
}


ROWS = {row.call: row for row in ELEMENTWISE if row.call}


def reference(name: str) -> Callable[..., Any]:
    """Return the function of NumPy, SciPy or mpmath that computes the intrinsic of a row."""
    row = ROWS[name]
    if name in EXACT:
        return EXACT[name]
    module, _, function = (row.numpy or row.name).rpartition(":")
    found: Callable[..., Any] = getattr(import_module(module or "numpy"), function)
    return found


@pytest.mark.exhaustive(keep=100)
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", [n for n, f in INTRINSICS.items() if f.takes == "float"])
@np.errstate(divide="ignore", invalid="ignore")  # small types round to poles
def test_functions(name: str, dtype: str) -> None:
    kind = DType(dtype)
    arguments = [X.astype(kind.numpy)] * INTRINSICS[name].arguments
    if name == "acosh":
        arguments = [argument + argument.dtype.type(1) for argument in arguments]
    widened = [argument.astype(np.float64) for argument in arguments]
    expected_result = WANTED.get(name) or reference(name)
    step = 2.0 ** -element_type(dtype).fraction_bits

    vector = call_function(name, kind.with_lanes(16))(*arguments)
    scalar = [call_function(name, kind)(*item) for item in zip(*arguments, strict=True)]

    assert vector.dtype == ("bool" if INTRINSICS[name].result_rule == "bool" else kind.numpy)
    np.testing.assert_array_equal(vector.astype(float), np.array(scalar).astype(float))
    # A formula is computed in float64, with the errors that its row allows in this dtype.
    ulps = max(1.0, ROWS[name].ulps[1]) if dtype == "float64" and ROWS[name].formula else 1.0
    # Types without infinities saturate.
    rounded = expected_result(*widened) if vector.dtype == bool else expected_result(*widened).astype(vector.dtype)
    assert_close(vector.astype(float), rounded.astype(float), rtol=ulps * step, atol=step / 8)


def test_halves_are_rounded_and_classes_are_seen() -> None:
    kind = DType("float32")
    special = np.array([0.5, 1.5, 2.5, -0.5], np.float32)

    assert call_function("nearbyint", kind.with_lanes(4))(special).tolist() == [0, 2, 2, 0]
    assert call_function("round", kind.with_lanes(4))(special).tolist() == [1, 2, 3, -1]
    assert call_function("isnan", kind)(np.float32(math.nan)) is True
    assert call_function("isinf", kind)(np.float32(-math.inf)) is True
    assert call_function("isfinite", kind)(np.float32(math.inf)) is False
    assert call_function("fmod", kind)(np.float32(-7), np.float32(3)) == -1


@pytest.mark.parametrize("name", INTEGERS)
def test_functions_of_integers(name: str) -> None:
    dtype = DType(name)
    values = samples(dtype)
    vector = dtype.with_lanes(len(values))
    ones = [wrap_to_dtype(dtype)(bin(value % 2**dtype.bits).count("1")) for value in values]
    sizes = [wrap_to_dtype(dtype)(abs(value)) for value in values]

    assert [call_function("popcount", dtype)(value) for value in values] == ones
    assert [call_function("abs", dtype)(value) for value in values] == sizes
    assert call_function("popcount", vector)(np.array(values, name)).tolist() == ones
    assert call_function("abs", vector)(np.array(values, name)).tolist() == sizes


@pytest.mark.parametrize(
    ("name", "arguments", "expected_result"),
    [
        ("exp", ["float32x4"], "float32x4"),
        ("isnan", ["float16x2"], "boolx2"),
        ("pow", ["float64", "float64"], "float64"),
        ("popcount", ["uint8"], "uint8"),
        ("if_then_else", ["bool", "int8", "int8"], "int8"),
        ("check_index", ["int32x8", "int32x8", "int64"], "boolx8"),
        ("exp", [], None),
        ("exp", ["float32", "float32"], None),
        ("nothing", ["float32"], None),
    ],
)
def test_types_of_results(name: str, arguments: list[str], expected_result: str | None) -> None:
    assert result_type(name, [DType(argument) for argument in arguments]) == expected_result
