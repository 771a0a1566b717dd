"""Functions of two broadcast tensors agree with NumPy for all dtypes and shapes."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tecomp
from tecomp import te, topi
from tecomp.ir import SCALARS, DType
from tests.messages import Diagnostic, diagnostic
from tests.strategies.dtypes import FLOATS, INTEGERS, in_dtype
from tests.topi.refusals import refused
from tests.topi.running import Array, assert_results, compiled, given, numpy_type, values

Function = Callable[[Array, Array], Array]
COMPARISONS: dict[str, Function] = {
    "greater": np.greater, "greater_equal": np.greater_equal, "less": np.less,
    "less_equal": np.less_equal, "equal": np.equal, "not_equal": np.not_equal,
}
EXTREMES: dict[str, Function] = {"maximum": np.maximum, "minimum": np.minimum}
SUMS: dict[str, Function] = {"add": np.add, "subtract": np.subtract, "multiply": np.multiply}
BITS: dict[str, Function] = {
    "bitwise_and": np.bitwise_and, "bitwise_or": np.bitwise_or, "bitwise_xor": np.bitwise_xor,
}
LOGIC: dict[str, Function] = {
    "logical_and": np.logical_and, "logical_or": np.logical_or, "logical_xor": np.logical_xor,
}
PAIRS: list[tuple[tuple[int, ...], tuple[int, ...]]] = [
    ((), ()), ((), (3,)), ((4,), ()), ((2, 3), (3,)), ((2, 1), (1, 3)), ((1,), (2, 2, 3)),
    ((0, 3), (1, 3)), ((2, 1, 3), (4, 1)), ((1, 0), (5, 1)), ((2, 3, 1, 2), (3, 4, 1)), ((1,), (1,)),
]


def check(functions: dict[str, Function], a: Array, b: Array, **options: Any) -> None:
    A, B = given(a), given(b, "B")
    with np.errstate(all="ignore"):
        expected = {
            getattr(topi, name)(A, B): in_dtype(function)(a, b) for name, function in functions.items()
        }
    assert_results(expected, {A: a, B: b}, **options)


@pytest.mark.parametrize("dtype", SCALARS)
def test_types(dtype: str) -> None:
    a, b = values((3, 4), dtype, seed=1), values((4,), dtype, seed=2)
    check(COMPARISONS | EXTREMES | (SUMS if dtype != "bool" else BITS | LOGIC), a, b)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integers(dtype: str) -> None:
    a, b = values((30,), dtype, seed=1), values((30,), dtype, seed=2)
    check(BITS, a, b)
    shift = np.abs(b.astype("int64")) % min(6, 2 ** (DType(dtype).bits - 1))
    check({"left_shift": np.left_shift, "right_shift": np.right_shift}, a, shift.astype(a.dtype))
    with np.errstate(all="ignore"):
        quotient = np.trunc(a.astype("float64") / np.where(b == 0, 1, b.astype("int64")))
    check({
        "floor_divide": np.floor_divide, "floor_mod": np.mod, "mod": np.fmod,
        "divide": lambda x, y: np.where(y == 0, 0, quotient).astype(x.dtype),
    }, a, b)


@pytest.mark.exhaustive(keep=5)
@pytest.mark.parametrize("dtype", FLOATS)
def test_floats(dtype: str) -> None:
    numbers = np.array([-np.inf, -7.5, -1.0, -0.5, 0.0, 0.5, 1.0, 3.0, np.inf, np.nan])
    a, b = (x.ravel().astype(numpy_type(dtype)) for x in np.meshgrid(numbers, numbers))

    def wide(function: Function) -> Function:
        return lambda x, y: function(
            x.astype("float64"), y.astype("float64")).astype(numpy_type(dtype))

    functions: dict[str, Function] = {
        **SUMS, **EXTREMES, "divide": np.divide, "mod": np.fmod, "atan2": np.arctan2,
        "log_add_exp": np.logaddexp,
    }
    check({name: wide(function) for name, function in functions.items()}, a, b)
    # Compiled only: the interpreter uses NumPy, which computes roots if the exponent is one number.
    check({"power": wide(np.power)}, a, b, run=compiled)
    check(COMPARISONS, a, b)


def test_quotients_of_floats_rounded_down() -> None:
    a, b = values((50,), "float32", seed=1), values((50,), "float32", seed=2)
    b[b == 0] = 0.25
    check({"floor_divide": np.floor_divide, "floor_mod": np.mod}, a, b)


@pytest.mark.parametrize(("one", "other"), PAIRS)
def test_shapes(one: tuple[int, ...], other: tuple[int, ...]) -> None:
    check({**SUMS, "less": np.less}, values(one, "int16", seed=1), values(other, "int16", seed=2))


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "uint64", "int64"])
def test_powers_of_integers(dtype: str) -> None:
    a, b = (
        x.ravel().astype(dtype) for x in np.meshgrid(values((8,), dtype), np.arange(0, 12))
    )
    check({"power": np.power}, a, b)
    if dtype.startswith("int"):
        base = np.array([-2, -1, -1, 0, 1, 2], dtype)
        exponent = np.array([-1, -3, -2, -1, -128, -2], dtype)
        check({"power": lambda x, y: np.array([0, -1, 1, 0, 1, 0], dtype)}, base, exponent)


def test_numbers_and_expressions() -> None:
    a = values((2, 3), "int16")
    A, n = given(a), te.const(3, "int16")

    assert_results({
        topi.add(A, 1): a.astype("int32") + 1, topi.subtract(10, A): 10 - a.astype("int32"),
        topi.multiply(n, A): a * np.int16(3), topi.maximum(A, n): np.maximum(a, np.int16(3)),
        topi.divide(A, 2.0): (a / np.float32(2)).astype("float32"),
    }, {A: a})
    i = te.var("i")
    assert str(topi.add(i, 1)) == "i + int32(1)"
    assert str(topi.logical_not(i > 0)) == "not (i > int32(0))"
    assert str(topi.bitwise_not(i)) == str(~i)


def test_types_meet_as_in_te() -> None:
    A, B = te.placeholder((3,), "int32", name="A"), te.placeholder((3,), "float16", name="B")
    C, D = te.placeholder((3,), "uint32", name="C"), te.placeholder((3,), "bool", name="D")

    assert [topi.add(A, x).dtype for x in (B, C, D)] == ["float16", "uint32", "int32"]
    assert topi.add(D, D).dtype == "int32"
    assert topi.less(A, B).dtype == "bool"


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int64"])
def test_the_other_bits(dtype: str) -> None:
    a = values((5,), dtype)
    A = given(a)
    expected: dict[te.Tensor, Array] = {topi.bitwise_not(A): ~a}
    if dtype == "bool":
        expected[topi.logical_not(A)] = ~a

    assert_results(expected, {A: a})


@pytest.mark.parametrize(("shape", "wide"), [
    ((), (2, 3)), ((1,), (0,)), ((3,), (2, 3)), ((2, 1), (2, 4)), ((2, 3), (2, 3)),
    ((1, 3), (4, 2, 3)),
])
def test_repetition(shape: tuple[int, ...], wide: tuple[int, ...]) -> None:
    a = values(shape, "float32")
    A = given(a)

    assert_results({topi.broadcast_to(A, wide): np.broadcast_to(a, wide)}, {A: a})


def test_compiled() -> None:
    a, b = values((5, 1, 9), "float32", seed=1), values((4, 1), "float32", seed=2)
    check({**SUMS, **EXTREMES, **COMPARISONS}, a, b, run=compiled)
    x, y = values((40,), "int32", seed=1), values((40,), "int32", seed=2)
    check({"power": lambda p, q: np.where(
        q < 0, np.where(p == 1, 1, np.where(p == -1, 1 - 2 * (q % 2), 0)),
        np.power(p, np.maximum(q, 0))), "floor_mod": np.mod, "mod": np.fmod},
        x, y, run=compiled)


def test_symbolic_sizes() -> None:
    n, m = te.var("n"), te.var("m")
    A, b = te.placeholder((n, 1, m), name="A"), te.placeholder((5, 1), name="b")
    C = topi.add(topi.multiply(A, 2.0), b)
    kernel = tecomp.build(C, [A, b, C])
    for rows, columns in [(0, 3), (1, 1), (3, 37)]:
        x, y = values((rows, 1, columns), "float32"), values((5, 1), "float32")
        result = np.full((rows, 5, columns), 77, "float32")
        kernel(x, y, result)
        np.testing.assert_array_equal(result, 2 * x + y)


def test_repetition_is_no_copy() -> None:
    a, b = values((4, 1), "float32"), values((4, 6), "float32")
    A, B = given(a), given(b, "B")
    total = topi.add(topi.broadcast_to(A, (4, 6)), B)
    program = tecomp.compile(total, [A, B])

    np.testing.assert_array_equal(program(a, b), operator.add(a, b))
    assert len(program.kernels) == 1


def test_refusals() -> None:
    n, m = te.var("n"), te.var("m")
    A, B = te.placeholder((4, 3), name="A"), te.placeholder((2, 3), name="B")
    C, D = te.placeholder((n, 3), name="C"), te.placeholder((m, 3), name="D")
    H, G = te.placeholder((3,), "float16", name="H"), te.placeholder((3,), "bfloat16", name="G")

    assert refused(lambda: topi.add(A, B)) == (
        Diagnostic(
            "shapes", where="topi.add", shapes="(4, 3) and (2, 3)", axis=-2, extent="4",
            other_extent="2",
        )
    )
    assert refused(lambda: topi.less(C, D)) == (
        Diagnostic(
            "shapes", where="topi.less", shapes="(n, 3) and (m, 3)", axis=-2, extent="n",
            other_extent="m",
        )
    )
    assert refused(lambda: topi.broadcast_to(A, (4, 6))) == (
        Diagnostic("shapes", where="topi.broadcast_to", data="A", shape="(4, 3)", expected="(4, 6)")
    )
    assert refused(lambda: topi.add(H, G)) == (
        Diagnostic("dtype", subject="`+`", dtype="float16", y_dtype="bfloat16")
    )
    assert refused(lambda: topi.left_shift(A, 1)) == Diagnostic(
        "dtype", op="<<", dtype="float32",
    )
    assert refused(lambda: topi.logical_and(A, A)) == (
        Diagnostic("dtype", caller="te.all", dtype="float32")
    )


def test_operands_that_are_none() -> None:
    A = te.placeholder((3,), name="A")
    wrong: Any
    for wrong in ("x", None, [1, 2]):
        with pytest.raises(tecomp.TypeMismatchError) as error:
            topi.add(A, wrong)
        assert diagnostic(error.value) == Diagnostic(
            "invalid-type", where="topi.add", subject="rhs", value=wrong, type=type(wrong).__name__)


def test_sums_of_sizes_are_equal_in_any_order() -> None:
    n = te.var("n")
    A = te.placeholder((n, 1), name="A")
    B = te.compute((n + 1, 1), lambda i, j: A[te.min(i, n - 1), j], name="B")
    C = topi.broadcast_to(B, (1 + n, 2))
    a = np.arange(3, dtype=np.float32)[:, None]
    c = np.zeros((4, 2), np.float32)
    tecomp.build(C, [A, C])(a, c)
    np.testing.assert_array_equal(c, np.concatenate([a, a[-1:]]).repeat(2, 1))
    assert refused(lambda: topi.broadcast_to(B, (2 + n, 2))).kind == "shapes"
