"""Functions of one tensor agree with NumPy for all dtypes and shapes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import tecomp
from tecomp import te, topi
from tecomp.ir import SCALARS
from tecomp.operations import elementwise_in
from tests.messages import Diagnostic
from tests.strategies.dtypes import FLOATS, INTEGERS, WITH_ZERO, in_dtype
from tests.strategies.functions import EXACT
from tests.topi.refusals import refused
from tests.topi.running import SHAPES, Array, assert_results, compiled, given, numpy_type, values

_ROWS = {name: row for name, row in elementwise_in("topi").items() if row.call in EXACT and row.arity == 1}
OF_FLOATS: dict[str, Callable[[Array], Array]] = {
    "sqrt": np.sqrt, "rsqrt": lambda x: 1 / np.sqrt(x),
    **{name: EXACT[row.call] for name, row in _ROWS.items()},
    **{f"fast_{name}": EXACT[name] for name in ("erf", "exp", "tanh")},
}
OF_ALL: dict[str, Callable[[Array], Array]] = {
    "identity": lambda x: x, "floor": np.floor, "ceil": np.ceil, "trunc": np.trunc,
    "abs": np.abs, "isnan": lambda x: x != x, "isfinite": np.isfinite, "isinf": np.isinf,
    "round": lambda x: np.copysign(np.floor(np.abs(x) + 0.5), x) if x.dtype.kind == "f" else x,
}


def floats(dtype: str) -> Array:
    numbers = [-np.inf, -2.5, -1.5, -1.0, -0.5, -0.25, 0.0, 0.25, 0.5, 0.75, 1.0, 1.5, 2.5, 3.0,
               np.inf, np.nan]
    return np.array(numbers).astype(numpy_type(dtype))


@pytest.mark.exhaustive(keep=7)
@pytest.mark.parametrize("dtype", FLOATS)
def test_functions_of_floats(dtype: str) -> None:
    a = floats(dtype)
    A = given(a)
    with np.errstate(all="ignore"):
        widened = a.astype("float64")
        expected = {
            getattr(topi, name)(A): function(widened).astype(a.dtype)
            for name, function in OF_FLOATS.items()
        } | {
            getattr(topi, name)(A): (
                function(widened) if name.startswith("is") else function(widened).astype(a.dtype))
            for name, function in OF_ALL.items()
        }

    assert_results(expected, {A: a})


@pytest.mark.parametrize("dtype", ["bool", *INTEGERS])
def test_functions_of_integers(dtype: str) -> None:
    a = values((3, 5), dtype)
    A = given(a)
    expected = {
        getattr(topi, name)(A): (
            in_dtype(function)(a) if name in ("isnan", "isinf", "isfinite", "identity", "abs") else a)
        for name, function in OF_ALL.items()
    }

    assert_results(expected, {A: a})


@pytest.mark.parametrize("dtype", WITH_ZERO)
def test_signs_and_bounds(dtype: str) -> None:
    a = values((4, 6), dtype, low=-20, high=20)
    A = given(a)
    signed = np.sign(a.astype("float64")).astype(a.dtype)
    low, high = (0, 1) if dtype in ("bool", "int2", "uint2") else (2, 6)
    expected = {topi.sign(A): signed, topi.clip(A, low, high): in_dtype(lambda x: np.clip(x, low, high))(a).astype(a.dtype)}
    if dtype != "bool":
        expected[topi.negative(A)] = in_dtype(np.negative)(a)

    assert_results(expected, {A: a})


def test_the_negative_of_truth_counts() -> None:
    a = values((5,), "bool")
    A = given(a)

    assert_results({topi.negative(A): -a.astype("int32")}, {A: a})


def test_nan_stays_nan() -> None:
    a = np.array([np.nan, -0.0, 1.0], "float32")
    A = given(a)

    assert_results({topi.sign(A): np.sign(a), topi.clip(A, -1.0, 0.5): np.clip(a, -1.0, 0.5)},
                   {A: a}, run=compiled)


@pytest.mark.parametrize("shape", SHAPES)
def test_any_shape(shape: tuple[int, ...]) -> None:
    a = values(shape, "float32")
    A = given(a)

    assert_results({topi.exp(A): np.exp(a), topi.cast(A, "int16"): a.astype("int16")}, {A: a})


def test_compiled() -> None:
    a = values((7, 9), "float32")
    A = given(a)
    expected = {
        topi.tanh(topi.negative(A)): np.tanh(-a),
        topi.cast(topi.round(A), "int8"): np.copysign(np.floor(np.abs(a) + 0.5), a).astype("int8"),
    }

    assert_results(expected, {A: a}, run=compiled)


def test_symbolic_sizes() -> None:
    n, m = te.var("n"), te.var("m")
    A = te.placeholder((n, m), name="A")
    B = topi.clip(topi.abs(A), 1, 5)
    kernel = tecomp.build(B, [A, B])
    for shape in [(0, 3), (1, 1), (5, 37)]:
        a, result = values(shape, "float32"), np.full(shape, 77, "float32")
        kernel(a, result)
        np.testing.assert_array_equal(result, np.clip(np.abs(a), 1, 5))


def test_expressions_are_converted_as_tensors_are() -> None:
    i = te.var("i")

    assert str(topi.cast(i, "float32")) == str(te.cast(i, "float32"))


def test_bits_are_read_in_another_type() -> None:
    a = values((6,), "float32")
    A = given(a)

    assert_results({topi.reinterpret(A, "int32"): a.view("int32")}, {A: a})


@pytest.mark.parametrize("dtype", ["int32", "int64", "uint8"])
def test_exponents_of_powers_of_two(dtype: str) -> None:
    a = np.array([1, 2, 3, 4, 5, 7, 8, 9, 63, 64, 65, 127], dtype)
    A = given(a)

    assert_results({topi.ceil_log2(A): np.ceil(np.log2(a.astype("float64"))).astype(dtype)}, {A: a})


@pytest.mark.parametrize("dtype", ["int64", "uint64"])
def test_exponents_of_integers_that_float64_rounds(dtype: str) -> None:
    values = [2**k + step for k in (24, 48, 49, 52, 53, 62) for step in (-1, 0, 1)]
    a = np.array(values, dtype)
    A = given(a)

    expected = np.array([(value - 1).bit_length() for value in values], dtype)
    assert_results({topi.ceil_log2(A): expected}, {A: a})


def test_exponents_of_floats() -> None:
    a = np.array([0.5, 1, 3, 8], "float32")
    A = given(a)

    assert_results({topi.ceil_log2(A): np.ceil(np.log2(a))}, {A: a})


@pytest.mark.parametrize("shift", [-3, 0, 2])
def test_products_of_fixed_point(shift: int) -> None:
    a, factor = np.array([-(2**20), -5, -1, 0, 1, 3, 2**19], "int32"), 3 * 2**28 + 1
    A = given(a)
    exact = a.astype("int64") * 2 ** max(shift, 0) * factor
    right = 31 + max(-shift, 0)
    expected = np.array([(int(x) + 2 ** (right - 1)) >> right for x in exact], "int32")

    assert_results({topi.fixed_point_multiply(A, factor, shift): expected}, {A: a})


def test_refusals() -> None:
    A, B = te.placeholder((3,), "int32", name="A"), te.placeholder((3,), "uint8", name="B")

    assert refused(lambda: topi.exp(A)) == (
        Diagnostic("dtype", name="exp", dtype="int32")
    )
    assert refused(lambda: topi.exp(1.0)) == (  # type: ignore[arg-type]
        Diagnostic("invalid-type", where="topi.exp", subject="x", value=1.0, type="float")
    )
    assert refused(lambda: topi.clip(B, 0, 256)) == (
        Diagnostic(
            "literal", where="topi.clip", subject="a_max",
            reason="256 is out of range for uint8 (0 to 255)",
        )
    )
    assert refused(lambda: topi.clip(A, -0.5, 3)) == (
        Diagnostic(
            "literal", where="topi.clip", subject="a_min",
            reason="-0.5 is not a valid int32; pass a representable number, or use another dtype",
        )
    )
    assert refused(lambda: topi.cast(A, "real")) == (
        Diagnostic(
            "dtype", name="real",
            scalars=", ".join(SCALARS),
        )
    )
    assert refused(lambda: topi.fixed_point_multiply(A, 0.5, 1)) == (  # type: ignore[arg-type]
        Diagnostic(
            "invalid-type", where="topi.fixed_point_multiply", subject="multiplier", value=0.5,
            type="float",
        )
    )


def test_a_numpy_float_makes_the_remainder_a_float() -> None:
    a = np.array([7, -7, 5], "int32")
    X = te.placeholder((3,), "int32", name="X")

    remainder = topi.mod(X, np.float32(2.5))  # type: ignore[call-overload]

    assert_results({remainder: np.fmod(a, np.float32(2.5)).astype("float32")}, {X: a})
