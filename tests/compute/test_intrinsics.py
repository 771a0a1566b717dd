"""Element-wise functions: resulting calls, dtypes and errors."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from tecomp import te
from tecomp.errors import TecompError
from tecomp.ir import INTRINSICS, SCALARS, Call, Const, Expr, result_type
from tecomp.operations import TO_BOOL, UNCHANGED, elementwise_in
from tests.messages import Diagnostic, diagnostic
from tests.strategies.dtypes import FLOATS, NUMPY_FLOATS

INTEGERS = ["int8", "int64", "uint8", "uint64"]

ROWS = elementwise_in("te")
UNARY = [name for name, row in ROWS.items() if row.arity == 1 and row.gives != TO_BOOL]
OF_FLOATS = [name for name in UNARY if ROWS[name].of_integers is None]
ROUNDING = [name for name in UNARY if ROWS[name].of_integers == UNCHANGED]
TESTS = [name for name, row in ROWS.items() if row.gives == TO_BOOL]


def element(dtype: str, name: str = "A") -> Expr:
    return te.placeholder((), dtype, name)()


def refusal(action: Callable[[], object]) -> Diagnostic:
    with pytest.raises(TecompError) as caught:
        action()
    assert caught.value.location is not None
    assert caught.value.location.file == __file__
    return diagnostic(caught.value)


@pytest.mark.exhaustive(keep=266)
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", UNARY)
def test_functions_of_one_float(name: str, dtype: str) -> None:
    call = getattr(te, name)(element(dtype))

    assert isinstance(call, Call)
    assert (call.name, call.dtype) == (name, dtype)
    assert result_type(name, [arg.dtype for arg in call.args]) == dtype


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(
    ("name", "called"),
    [("power", "pow"), ("pow", "pow"), ("atan2", "atan2"), ("hypot", "hypot"), ("fmod", "fmod")],
)
def test_functions_of_two_floats(name: str, called: str, dtype: str) -> None:
    call = getattr(te, name)(element(dtype, "A"), element(dtype, "B"))

    assert isinstance(call, Call)
    assert (call.name, call.dtype, str(call)) == (called, dtype, f"{called}(A[()], B[()])")


@pytest.mark.parametrize("name", TESTS)
def test_tests(name: str) -> None:
    call = getattr(te, name)(element("float16"))
    lanes = getattr(te, name)(element("float32x4"))

    assert (call.name, call.dtype, lanes.dtype) == (name, "bool", "boolx4")
    assert result_type(name, [lanes.args[0].dtype]) == "boolx4"


def test_every_function_of_the_language_can_be_written() -> None:
    special = {"if_then_else", "check_index", "join"}

    assert {name for name in INTRINSICS if name not in special and not hasattr(te, name)} == set()


def test_the_arguments_meet_in_one_type() -> None:
    assert str(te.pow(element("float64"), 2)) == "pow(A[()], float64(2.0))"
    assert str(te.pow(2, element("float16"))) == "pow(float16(2.0), A[()])"
    assert str(te.hypot(element("float32"), element("int8", "B"))) == (
        'hypot(A[()], cast("float32", B[()]))'
    )
    assert te.fmod(element("float32"), element("float64", "B")).dtype == "float64"
    assert te.exp(2.0).dtype == "float32"
    assert te.exp(te.placeholder((), name="S")).dtype == "float32"


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("name", ROUNDING)
def test_rounding_leaves_integers_alone(name: str, dtype: str) -> None:
    value = element(dtype)

    assert getattr(te, name)(value) is value


@pytest.mark.parametrize(
    ("dtype", "text"),
    [
        ("float32", "fabs(A[()])"),
        ("bfloat16", "fabs(A[()])"),
        ("int8", "abs(A[()])"),
        ("uint8", "A[()]"),
    ],
)
def test_absolute_value(dtype: str, text: str) -> None:
    assert str(te.abs(element(dtype))) == text
    assert te.abs(element(dtype)).dtype == dtype


@pytest.mark.parametrize(
    ("name", "truth"), [("isnan", "False"), ("isinf", "False"), ("isfinite", "True")]
)
def test_integers_are_finite_numbers(name: str, truth: str) -> None:
    assert str(getattr(te, name)(element("int32"))) == truth


@pytest.mark.parametrize("dtype", INTEGERS)
def test_popcount(dtype: str) -> None:
    assert te.popcount(element(dtype)).dtype == dtype
    assert str(te.popcount(element(dtype))) == "popcount(A[()])"


@pytest.mark.parametrize(
    ("expr", "text"),
    [
        (te.clip(element("float32"), 0, 6), "min(max(A[()], float32(0.0)), float32(6.0))"),
        (te.clip(element("int8"), -3, 7), "min(max(A[()], int8(-3)), int8(7))"),
        (te.clip(element("float64"), 0.1, 1), "min(max(A[()], float64(0.1)), float64(1.0))"),
        (
            te.clip(element("int8"), element("int8", "B"), np.int64(7)),
            "min(max(A[()], B[()]), int8(7))",
        ),
        (
            te.clip(element("int8"), te.placeholder((), "int8", name="L"), 7),
            "min(max(A[()], L[()]), int8(7))",
        ),
    ],
)
def test_clip(expr: Expr, text: str) -> None:
    assert str(expr) == text


@pytest.mark.parametrize("name", OF_FLOATS)
def test_integers_are_refused(name: str) -> None:
    message = (
        Diagnostic("dtype", name=name, dtype="int32")
    )

    assert refusal(lambda: getattr(te, name)(element("int32"))) == message
    assert refusal(lambda: getattr(te, name)(2)) == message


@pytest.mark.parametrize("name", ["atan2", "hypot", "fmod", "logaddexp"])
def test_two_integers_are_refused(name: str) -> None:
    assert refusal(lambda: getattr(te, name)(element("int64"), 2)) == (
        Diagnostic("dtype", name=name, dtype="int64")
    )


@pytest.mark.parametrize(
    ("power", "text"),
    [
        (0, "int32(1)"), (1, "n"), (2, "n * n"), (3, "n * (n * n)"), (4, "n * n * (n * n)"),
        (5, "n * (n * n * (n * n))"), (-1, "pow(n, int32(-1))"), (te.var("k", "int32"), "pow(n, k)"),
    ],
)
def test_powers_of_integers_that_are_known_are_products(power: Expr | int, text: str) -> None:
    assert str(te.power(te.var("n", "int32"), power)) == text


def test_powers_of_conditions_are_refused() -> None:
    assert refusal(lambda: te.power(element("bool"), element("bool"))) == (
        Diagnostic("dtype", name="pow", dtype="bool")
    )


@pytest.mark.parametrize("name", [*ROUNDING, "abs"])
def test_conditions_are_whole_and_not_negative(name: str) -> None:
    condition = element("bool")

    assert getattr(te, name)(condition) is condition


def test_conditions_are_numbers() -> None:
    condition = element("bool")
    tests = (te.isnan(condition), te.isinf(condition), te.isfinite(condition))

    assert list(map(str, tests)) == ["False", "False", "True"]


@pytest.mark.parametrize("name", OF_FLOATS)
def test_conditions_are_refused(name: str) -> None:
    assert refusal(lambda: getattr(te, name)(element("bool"))) == (
        Diagnostic("dtype", name=name, dtype="bool")
    )


@pytest.mark.parametrize(
    ("action", "expected"),
    [
        (
            lambda: te.popcount(element("float32")),
            Diagnostic("dtype", dtype="float32"),
        ),
        (
            lambda: te.clip(element("uint8"), -1, 3),
            Diagnostic("literal", value=-1, dtype="uint8", low=0, high=255),
        ),
        (
            lambda: te.clip(element("int8"), 0, 2.5),
            Diagnostic("literal", value=2.5, dtype="int8"),
        ),
        (
            lambda: te.exp("x"),  # type: ignore[arg-type]
            Diagnostic("invalid-type", where="te.exp: ", value="x", type="str"),
        ),
        (
            lambda: te.power(element("float32"), None),  # type: ignore[arg-type]
            Diagnostic("invalid-type", where="te.pow: ", value=None, type="NoneType"),
        ),
        (
            lambda: te.atan2(element("float16"), element("bfloat16", "B")),
            Diagnostic("dtype", subject="te.atan2", dtype="float16", y_dtype="bfloat16"),
        ),
        (
            lambda: te.cast(element("float32"), "float33"),
            Diagnostic(
                "dtype", name="float33",
                scalars=", ".join(SCALARS),
            ),
        ),
        (lambda: te.infinity("int8"), Diagnostic("dtype", caller="infinity", dtype="int8")),
        (lambda: te.max_value("handle"), Diagnostic("dtype", caller="max_value", dtype="handle")),
        (lambda: te.min_value("handle"), Diagnostic("dtype", caller="min_value", dtype="handle")),
    ],
)
def test_other_refusals(action: Callable[[], object], expected: Diagnostic) -> None:
    assert refusal(action) == expected


def test_casts() -> None:
    assert str(te.cast(element("int8"), "float32")) == 'cast("float32", A[()])'
    assert str(te.cast(3, "float16")) == "float16(3.0)"
    assert str(element("int8").astype("float32")) == 'cast("float32", A[()])'


def number(expr: Expr) -> object:
    assert isinstance(expr, Const)
    return expr.value


@pytest.mark.parametrize("dtype", NUMPY_FLOATS)
def test_limits_of_floats(dtype: str) -> None:
    info = np.finfo(dtype)

    assert number(te.max_value(dtype)) == float(info.max)
    assert number(te.min_value(dtype)) == float(info.min)
    assert number(te.infinity(dtype)) == math.inf
    assert te.max_value(dtype).dtype == te.infinity(dtype).dtype == dtype


def test_limits_of_bfloat16() -> None:
    assert number(te.max_value("bfloat16")) == 3.3895313892515355e38
    assert number(te.min_value("bfloat16")) == -3.3895313892515355e38


@pytest.mark.parametrize("dtype", ["int8", "int64", "uint8", "uint64"])
def test_limits_of_integers(dtype: str) -> None:
    info = np.iinfo(dtype)

    assert number(te.max_value(dtype)) == info.max
    assert number(te.min_value(dtype)) == info.min


def test_limits_of_truth() -> None:
    assert number(te.max_value("bool")) is True
    assert number(te.min_value("bool")) is False
    assert number(te.infinity()) == math.inf
