"""Conditions, selections, and division under each of its names."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tecomp import te
from tecomp.errors import DefinitionError, TecompError, TypeMismatchError
from tecomp.ir import Call, Expr, Select
from tests.messages import Diagnostic, diagnostic

i = te.var("i")
j = te.var("j")
x = te.var("x", "float32")
k = te.reduce_axis((0, 5), name="k")
Z = te.placeholder((), "bool", name="Z")


def refusal(action: Callable[[], object]) -> TecompError:
    with pytest.raises(TecompError) as caught:
        action()
    assert caught.value.location is not None
    assert caught.value.location.file == __file__
    return caught.value


@pytest.mark.parametrize(
    ("expr", "text"),
    [
        (te.all(i > 1), "i > int32(1)"),
        (te.all(i > 1, j > 2, Z), "i > int32(1) and j > int32(2) and Z[()]"),
        (te.any(i > 1, j > 2), "i > int32(1) or j > int32(2)"),
        (te.all(te.any(i > 1, j > 2), Z), "(i > int32(1) or j > int32(2)) and Z[()]"),
        (te.all(i > 1, True), "i > int32(1) and True"),
        (te.logical_not(i == j), "not (i == j)"),
        (~(i > 1), "not (i > int32(1))"),
        ((i > 1) & (j > 2), "(i > int32(1)) & (j > int32(2))"),
        (te.if_then_else(i > 1, x, 0), "if_then_else(i > int32(1), x, float32(0.0))"),
        (te.select(i > 1, x, 0), "select(i > int32(1), x, float32(0.0))"),
        (te.Select(Z, i, j), "select(Z[()], i, j)"),
        (te.if_then_else(Z, Z, False), "if_then_else(Z[()], Z[()], False)"),
        (te.if_then_else(True, 1, 2.5), "if_then_else(True, float32(1.0), float32(2.5))"),
    ],
)
def test_conditions_and_choices(expr: Expr, text: str) -> None:
    assert str(expr) == text


def test_types_of_choices() -> None:
    guarded = te.if_then_else(i > 1, te.const(1, "float16"), te.const(1, "float64"))
    chosen = te.Select(i > 1, i, te.const(1, "int64"))

    assert isinstance(guarded, Call)
    assert (guarded.name, guarded.dtype) == ("if_then_else", "float64")
    assert isinstance(chosen, Select)
    assert chosen.dtype == "int64"


@pytest.mark.parametrize(
    ("action", "expected"),
    [
        (
            lambda: te.all(i > 1, axis=k),
            Diagnostic("reduction", caller="all", reducer="te.min"),
        ),
        (
            lambda: te.any(i > 1, axis=k),
            Diagnostic("reduction", caller="any", reducer="te.max"),
        ),
        (lambda: te.all(), Diagnostic("missing-input", caller="all")),
        (
            lambda: te.any([i > 1, j > 2]),  # type: ignore[arg-type]
            Diagnostic("reduction", caller="any"),
        ),
        (
            lambda: te.all(i > 1, k),
            Diagnostic("dtype", caller="te.all", dtype="int32"),
        ),
        (
            lambda: te.if_then_else(i, 1, 2),
            Diagnostic("dtype", caller="if_then_else", dtype="int32"),
        ),
        (
            lambda: te.Select(x, 1, 2),
            Diagnostic("dtype", caller="Select", dtype="float32"),
        ),
        (
            lambda: te.logical_not(i),
            Diagnostic("dtype", caller="te.logical_not", dtype="int32"),
        ),
        (
            lambda: 1 if i > 1 else 2,
            Diagnostic("symbolic-value", subject="i > int32(1)"),
        ),
        (
            lambda: te.if_then_else(i > 1, te.const(1, "float16"), te.const(1, "bfloat16")),
            Diagnostic("dtype", subject="if_then_else", dtype="float16", y_dtype="bfloat16"),
        ),
        (
            lambda: te.truncdiv(x, i),
            Diagnostic("dtype", caller="truncdiv", dtype="float32"),
        ),
        (
            lambda: te.truncmod(2.5, i),
            Diagnostic("dtype", caller="truncmod", dtype="float32"),
        ),
    ],
)
def test_invalid_arguments_are_rejected(action: Callable[[], object], expected: Diagnostic) -> None:
    error = refusal(action)

    assert isinstance(error, DefinitionError)
    assert diagnostic(error) == expected


def test_a_number_for_a_condition_is_a_type_error() -> None:
    assert isinstance(refusal(lambda: te.all(k)), TypeMismatchError)


@pytest.mark.parametrize(
    ("expr", "text"),
    [
        (te.floordiv(i, 4), "i // int32(4)"),
        (te.indexdiv(i, 4), "i // int32(4)"),
        (te.floormod(i, 4), "i % int32(4)"),
        (te.indexmod(i, 4), "i % int32(4)"),
        (te.div(x, 2), "x / float32(2.0)"),
        (te.div(i, 2.0), 'cast("float32", i) / float32(2.0)'),
        (te.floordiv(te.placeholder((), "int8", "S"), 4), 'cast("int32", S[()]) // int32(4)'),
        (te.floordiv(-7, 2), "int32(-4)"),
        (te.floormod(-7, 2), "int32(1)"),
        (te.truncdiv(te.var("u", "uint32"), te.var("v", "uint32")), "u // v"),
        (te.truncmod(te.var("u", "uint32"), te.var("v", "uint32")), "u % v"),
    ],
)
def test_division(expr: Expr, text: str) -> None:
    assert str(expr) == text


@pytest.mark.parametrize(
    "divide",
    [lambda x: x // 0, lambda x: x % 0, lambda x: te.floordiv(x, 0), lambda x: te.floormod(x, 0),
     lambda x: te.truncdiv(x, 0), lambda x: te.truncmod(x, 0), lambda x: te.div(x, 0),
     lambda x: te.indexdiv(x, te.const(0)), lambda x: te.indexmod(x, np.int32(0))],
)
@pytest.mark.parametrize(
    "value", [te.var("n"), te.placeholder((4,), "uint8", "A")[2], te.var("f", "bool")]
)
def test_integers_are_not_divided_by_0(divide: Callable[[Any], Expr], value: Any) -> None:
    with pytest.raises(DefinitionError) as error:
        divide(value)

    found = diagnostic(error.value)
    op, dividend = (found.parameters[name] for name in ("op", "a"))
    assert found == Diagnostic("division-by-zero", op=op, a=dividend)
    assert op in ("//", "%")
    assert dividend in (str(value), f'cast("int32", {value})')
    assert error.value.location is not None
    assert error.value.location.file == __file__


def test_long_dividends_are_abbreviated_in_messages() -> None:
    total: Any = te.var("n")
    for _ in range(60):
        total = total * te.var("m")

    with pytest.raises(DefinitionError) as error:
        total // 0
    assert diagnostic(error.value) == (
        Diagnostic(
            "division-by-zero", op="//",
            a="n * m * m_1 * m_2 * m_3 * m_4 * m_5 * m_6 * m_7 * m_8 * m_9 * m_10 * m_11 * m...",
        )
    )


def test_floats_are_divided_by_0() -> None:
    assert str(te.var("x", "float32") // 0) == "x // float32(0.0)"


def run(expr: Expr, **values: int) -> Any:
    """Evaluate the printed form in Python; division by 0, which gives 0, is not supported."""
    names = {
        "cast": lambda _, value: int(value),
        "int32": int,
        "int64": int,
        "select": lambda c, a, b: a if c else b,
    }
    return eval(str(expr), {"__builtins__": {}}, {**names, **values})


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_truncation_matches_c(dtype: str) -> None:
    a, b = te.var("a", dtype), te.var("b", dtype)
    quotient, rest, same = te.truncdiv(a, b), te.truncmod(a, b), te.div(a, b)

    for n in (-9, -8, -7, -1, 0, 1, 7, 8, 9):
        for d in (-9, -4, -3, -1, 1, 3, 4, 9):
            assert run(quotient, a=n, b=d) == run(same, a=n, b=d) == math.trunc(n / d)
            assert run(rest, a=n, b=d) == int(np.fmod(n, d))
    assert quotient.dtype == rest.dtype == same.dtype == dtype
