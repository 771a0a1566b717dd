"""Python operators build typed nodes, and invalid operands are rejected."""

from __future__ import annotations

import math
import typing
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tecomp.errors import TypeMismatchError
from tecomp.ir import (
    BOOL,
    FLOAT32,
    INT32,
    INT64,
    Binary,
    BinOp,
    Broadcast,
    Cast,
    CmpOp,
    Compare,
    Const,
    DType,
    Expr,
    Not,
    Select,
    Var,
    as_expr,
    binary,
    cast,
    condition_of,
    const,
    if_then_else,
    index_value,
    logical_and,
    logical_or,
    select,
    structural_equal,
)
from tests.messages import Diagnostic, diagnostic

I = Var("i")  # noqa: E741
N = Var("n", INT32)
X = Var("x", FLOAT32)
D = Var("d", DType("float64"))
P = Var("p", BOOL)
V = Var("v", DType("float32x4"))
H = Var("h", DType("handle"))


@pytest.mark.parametrize(
    ("result", "text", "dtype"),
    [
        (I + 1, "i + 1", "int64"),
        (1 - I, "1 - i", "int64"),
        (N * 2, "n * int32(2)", "int32"),
        (N + I, 'cast("int64", n) + i', "int64"),
        (N + 2**40, 'cast("int64", n) + 1099511627776', "int64"),
        (X / 3, "x / float32(3.0)", "float32"),
        (2.5 * X, "float32(2.5) * x", "float32"),
        (D + 0.1, "d + float64(0.1)", "float64"),
        (X + D, 'cast("float64", x) + d', "float64"),
        (I + X, 'cast("float32", i) + x', "float32"),
        (I // 4 % 3, "i // 4 % 3", "int64"),
        (7 // I, "7 // i", "int64"),
        (7 % I, "7 % i", "int64"),
        (-I, "0 - i", "int64"),
        (-X, "x * float32(-1.0)", "float32"),
        (-Var("b", DType("int8")), "int8(0) - b", "int8"),
        (-Var("u", DType("uint32x4")), "broadcast(uint32(0), 4) - u", "uint32x4"),
        (-P, 'int32(0) - cast("int32", p)', "int32"),
        (+X, "x", "float32"),
        (~I, "i ^ -1", "int64"),
        (~Var("u", DType("uint8")), "u ^ uint8(255)", "uint8"),
        (~P, "not p", "bool"),
        (I & 1 | I ^ 2, "i & 1 | i ^ 2", "int64"),
        (I << 3 >> 1, "i << 3 >> 1", "int64"),
        (1 << I, "1 << i", "int64"),
        (8 >> I, "8 >> i", "int64"),
        (1 & I, "1 & i", "int64"),
        (1 | I, "1 | i", "int64"),
        (1 ^ I, "1 ^ i", "int64"),
        (P & (I < 3), "p & (i < 3)", "bool"),
        (P + P, 'cast("int32", p) + cast("int32", p)', "int32"),
        (I <= 3, "i <= 3", "bool"),
        (I > N, 'i > cast("int64", n)', "bool"),
        (I >= 3, "i >= 3", "bool"),
        (X.equal(0.5), "x == float32(0.5)", "bool"),
        (Var("x", FLOAT32) != np.float64(0.5), 'cast("float64", x) != float64(0.5)', "bool"),
        (I.equal(3), "i == 3", "bool"),
        (V * 2, "v * broadcast(float32(2.0), 4)", "float32x4"),
        (V < X, "v < broadcast(x, 4)", "boolx4"),
        (X.astype("int8"), 'cast("int8", x)', "int8"),
        (binary(BinOp.MIN, I, 3), "min(i, 3)", "int64"),
        (binary(BinOp.MAX, X, I), 'max(x, cast("float32", i))', "float32"),
        (logical_and(P, I < 3, I > 0), "p and i < 3 and i > 0", "bool"),
        (logical_or(P, I < 3), "p or i < 3", "bool"),
        (logical_and(), "True", "bool"),
        (logical_or(), "False", "bool"),
        (select(P, I, 1), "select(p, i, 1)", "int64"),
        (select(P, V, 0), "select(broadcast(p, 4), v, broadcast(float32(0.0), 4))", "float32x4"),
        (if_then_else(P, X, 0), "if_then_else(p, x, float32(0.0))", "float32"),
        (const(1, "int8x4"), "broadcast(int8(1), 4)", "int8x4"),
        (np.float64(2) * X, 'float64(2.0) * cast("float64", x)', "float64"),
        (np.int64(2) + N, '2 + cast("int64", n)', "int64"),
        (as_expr(np.float16(0.1)), "float16(0.0999755859375)", "float16"),
        (index_value(5), "5", "int64"),
        (index_value(N), 'cast("int64", n)', "int64"),
    ],
)
def test_operators(result: Expr, text: str, dtype: str) -> None:
    assert str(result) == repr(result) == text
    assert result.dtype == dtype


@pytest.mark.parametrize(
    ("op", "a", "b", "expected"),
    [
        (BinOp.ADD, 2, 3, 5),
        (BinOp.FLOORDIV, -7, 2, -4),
        (BinOp.MOD, -7, 2, 1),
        (BinOp.SHL, 1, 4, 16),
        (BinOp.MIN, 4, 2, 2),
    ],
)
def test_integer_literals_are_computed(op: BinOp, a: int, b: int, expected: int) -> None:
    folded = binary(op, a, b)

    assert structural_equal(folded, Const(expected, INT32))


@pytest.mark.parametrize(
    ("op", "a", "b"),
    [
        (BinOp.ADD, 2**31 - 1, 1),
        (BinOp.FLOORDIV, 1, 0),
        (BinOp.MOD, 1, 0),
        (BinOp.SHL, 1, 32),
        (BinOp.SHR, 1, -1),
        (BinOp.ADD, 0.5, 0.25),
    ],
)
def test_operations_without_plain_results_are_not_folded(op: BinOp, a: float, b: float) -> None:
    assert isinstance(binary(op, a, b), Binary)


def test_a_literal_is_converted_from_its_exact_value() -> None:
    assert structural_equal(cast("float64", 0.1), Const(0.1, DType("float64")))
    assert isinstance(cast("int8", 300), Cast)
    assert isinstance(cast("int8", 1.5), Cast)
    assert structural_equal(cast("float32", const(0, "int32")), Const(0.0, FLOAT32))


def test_a_literal_has_the_value_of_its_type() -> None:
    assert type(Const(1, FLOAT32).value) is float
    assert type(Const(True, INT64).value) is int
    assert type(Const(1, BOOL).value) is bool


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda: I / 2, Diagnostic("dtype", dtype="int64")),
        (lambda: X & 1, Diagnostic("dtype", op="&", dtype="float32")),
        (lambda: ~X, Diagnostic("dtype", dtype="float32")),
        (lambda: binary(BinOp.AND, I, P), Diagnostic("dtype", op="and", dtype="int64")),
        (lambda: H + H, Diagnostic("dtype", op="+")),
        (lambda: Var("a", DType("float16")) + Var("b", DType("bfloat16")),
         Diagnostic("dtype", subject="`+`", dtype="float16", y_dtype="bfloat16")),
        (lambda: as_expr(typing.cast(Any, "1")),
         Diagnostic("invalid-type", where="", value="1", type="str")),
        (lambda: Var("a", DType("uint32")) > -1,
         Diagnostic("literal", subject="`>`", dtype="uint32", node=-1, expected_dtype="uint32")),
        (lambda: Var("a", DType("float16")) * 70000,
         Diagnostic("literal", subject="`*`", dtype="float16", node=70000, expected_dtype="float16")),
        (lambda: Var("a", DType("float32")) * 1e39,
         Diagnostic("literal", subject="`*`", dtype="float32", node=1e+39, expected_dtype="float32")),
        (lambda: const(300, "int8"), Diagnostic(
            "literal", value=300, dtype="int8", low=-128, high=127,
        )),
        (lambda: const(1.5, "int8"), Diagnostic("literal", value=1.5, dtype="int8")),
        (lambda: const(typing.cast(Any, None), "int8"),
         Diagnostic("literal", value=None, dtype="int8")),
        (lambda: const(typing.cast(Any, "1"), "float32"),
         Diagnostic("literal", value="1", dtype="float32")),
        (lambda: const(10**400, "float32"), Diagnostic("literal", value="10000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000", dtype="float32")),
        (lambda: as_expr(2**64), Diagnostic(
            "literal", value=2 ** 64, dtype="int64", low=-2 ** 63, high=2 ** 63 - 1,
        )),
        (lambda: cast("float32x8", V), Diagnostic(
            "dtype", dtype="float32x4", expected="float32x8",
        )),
        (lambda: condition_of(I, "Select"), Diagnostic("dtype", caller="Select", dtype="int64")),
        (lambda: bool(I < 3), Diagnostic("symbolic-value", subject="i < 3")),
    ],
)
def test_invalid_operands_are_rejected(make: Callable[[], object], expected: Diagnostic) -> None:
    with pytest.raises(TypeMismatchError) as error:
        make()

    assert diagnostic(error.value) == expected


def test_a_comparison_of_variables_is_their_identity() -> None:
    other = Var("i")

    assert bool(I.equal(I))
    assert not bool(other == I)
    assert bool(other != I)
    assert I in [other, I]
    assert I not in [other, N]


@pytest.mark.parametrize(
    ("compared", "holds"),
    [
        (const(1, "int32") == 1, True), (const(1, "int32") != 1, False),
        (const(1.5, "float32") < 2, True), (const(3, "int8") >= 4, False),
        (const(True, "bool") == False, False),  # noqa: E712  (it builds a node)
    ],
)
def test_a_comparison_of_literals_has_a_truth_value(compared: Expr, holds: bool) -> None:
    assert bool(compared) is holds


def test_comparisons_with_foreign_objects_return_not_implemented() -> None:
    assert I.__eq__(None) is NotImplemented
    assert I.__ne__("i") is NotImplemented


def test_types_that_follow_from_operands() -> None:
    assert Compare(CmpOp.LT, V, V).dtype == "boolx4"
    assert Not(P).dtype == "bool"
    assert Select(P, X, X).dtype == "float32"
    assert Broadcast(V, 2).dtype == "float32x8"


def test_special_values_are_printed_exactly() -> None:
    assert str(const(math.nan, "float32")) == 'float32("nan")'
    assert str(const(-math.inf, "float16")) == 'float16("-inf")'
    assert str(const(-0.0, "float64")) == "float64(-0.0)"
    assert str(const(-(2**63), "int64")) == "-9223372036854775808"
