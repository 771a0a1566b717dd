"""Reductions: contents, identities and errors."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tecomp import te
from tecomp.compute import Reduce
from tecomp.errors import TecompError
from tecomp.ir import Const, Expr, bottom_up, free_variables, structural_equal, substitute
from tests.messages import Diagnostic, diagnostic

A = te.placeholder((4, 5), name="A")
I8 = te.placeholder((4, 5), "int8", name="I8")
Z = te.placeholder((4, 5), "bool", name="Z")
i = te.var("i")
k = te.reduce_axis((0, 5), name="k")
r = te.reduce_axis((0, 4), name="r")

n, m = te.var("n"), te.var("m")
added = te.comm_reducer(lambda x, y: x + y, lambda dtype: te.const(0, dtype), name="added")

argmax = te.comm_reducer(
    lambda x, y: (
        te.Select(x[1] >= y[1], x[0], y[0]),
        te.Select(x[1] >= y[1], x[1], y[1]),
    ),
    lambda index, value: (te.const(-1, index), te.min_value(value)),
    name="argmax",
)


def reduction(expr: object) -> Reduce:
    assert isinstance(expr, Reduce)
    return expr


def identity(expr: object) -> object:
    (value,) = reduction(expr).combiner.identity
    assert isinstance(value, Const)
    assert value.dtype == reduction(expr).dtype
    return value.value


def refusal(action: Callable[[], object]) -> Diagnostic:
    with pytest.raises(TecompError) as caught:
        action()
    assert caught.value.location is not None
    assert caught.value.location.file == __file__
    return diagnostic(caught.value)


@pytest.mark.parametrize(
    ("expr", "text"),
    [
        (te.sum(A[i, k], axis=k), "sum(A[i, k], axis=[k])"),
        (te.sum(A[i, k], k), "sum(A[i, k], axis=[k])"),
        (te.prod(A[r, k], axis=[r, k]), "prod(A[r, k], axis=[r, k])"),
        (te.max(A[r, k], (k, r)), "max(A[r, k], axis=[k, r])"),
        (te.min(A[i, k], axis=k, where=k > i), "min(A[i, k], axis=[k], where=k > i)"),
        (
            te.sum(A[i, k], axis=k, init=1),
            "sum(A[i, k], axis=[k], init=float32(1.0))",
        ),
        (
            te.sum(A[i, k], k, te.all(k > 1, k < 3), A[i, 0]),
            "sum(A[i, k], axis=[k], where=k > int32(1) and k < int32(3), init=A[i, int32(0)])",
        ),
        (te.sum(1, axis=k), "sum(int32(1), axis=[k])"),
        (te.sum(k, axis=k), "sum(k, axis=[k])"),
        (te.sum(te.placeholder((), name="S"), axis=k), "sum(S[()], axis=[k])"),
        (te.max(Z[i, k], axis=k), "max(Z[i, k], axis=[k])"),
        (argmax((k, A[i, k]), axis=k)[1], "argmax((k, A[i, k]), axis=[k])[1]"),
        (
            argmax((k, A[i, k]), k, None, (7, 0.5))[0],
            "argmax((k, A[i, k]), axis=[k], init=(int32(7), float32(0.5)))[0]",
        ),
    ],
)
def test_reductions(expr: Expr, text: str) -> None:
    assert str(reduction(expr)) == text


@pytest.mark.parametrize(
    ("reducer", "values"),
    [
        (te.sum, {"int8": 0, "uint8": 0, "int64": 0, "float16": 0.0, "bfloat16": 0.0}),
        (te.prod, {"int8": 1, "uint8": 1, "int64": 1, "float32": 1.0, "float64": 1.0}),
        (
            te.min,
            {
                "bool": True,
                "int8": 127,
                "uint8": 255,
                "int64": 2**63 - 1,
                "float16": math.inf,
                "bfloat16": math.inf,
                "float64": math.inf,
            },
        ),
        (
            te.max,
            {
                "bool": False,
                "int8": -128,
                "uint16": 0,
                "int32": -(2**31),
                "float16": -math.inf,
                "float32": -math.inf,
            },
        ),
    ],
)
def test_identities(reducer: Callable[..., Expr], values: dict[str, object]) -> None:
    result = {dtype: identity(reducer(te.placeholder((5,), dtype)[k], axis=k)) for dtype in values}

    assert result == values


@pytest.mark.parametrize(
    ("reducer", "text"),
    [
        (te.sum, "x + y"),
        (te.prod, "x * y"),
        (te.min, "min(x, y)"),
        (te.max, "max(x, y)"),
    ],
)
def test_combinations(reducer: Callable[..., Expr], text: str) -> None:
    combiner = reduction(reducer(I8[i, k], axis=k)).combiner

    assert str(combiner.result[0]) == text
    assert combiner.result[0].dtype == "int8"
    assert combiner.result[0].a is combiner.lhs[0]  # type: ignore[attr-defined]
    assert combiner.result[0].b is combiner.rhs[0]  # type: ignore[attr-defined]


def test_a_reduction_of_a_tuple_shares_all_but_the_index() -> None:
    index, value = argmax((k, A[i, k]), axis=k)
    a, b = reduction(index), reduction(value)

    assert a.combiner is b.combiner
    assert a.source is b.source
    assert (a.value_index, b.value_index) == (0, 1)
    assert (a.dtype, b.dtype) == ("int32", "float32")
    assert [var.name for var in a.combiner.lhs] == ["x_0", "x_1"]
    assert str(a.combiner.result[0]) == "select(x_1 >= y_1, x_0, y_0)"
    assert str(a.combiner.identity[0]) == "int32(-1)"
    assert isinstance(a.combiner.identity[1], Const)
    assert a.combiner.identity[1].value == np.finfo(np.float32).min


def test_an_argmax_has_two_outputs() -> None:
    index, value = te.compute((4,), lambda i: argmax((k, A[i, k]), axis=k), name="M")

    assert (index.dtype, value.dtype) == ("int32", "float32")
    assert str(index.op) == "M_v0[i], M_v1[i] = argmax((k, A[i, k]), axis=[k])"
    assert index.op.reduce_axis == (k,)
    assert index.op.input_tensors == (A,)


def test_part_of_a_tuple_is_no_element() -> None:
    found = refusal(lambda: te.compute((4,), lambda i: argmax((k, A[i, k]), axis=k)[1], name="M"))

    assert found == (
        Diagnostic("nested-reduction", where="te.compute M", value_index=1, values=2)
    )


def test_the_values_of_a_tuple_stay_in_order() -> None:
    found = refusal(
        lambda: te.compute((4,), lambda i: argmax((k, A[i, k]), axis=k)[::-1], name="M")
    )

    assert found == (
        Diagnostic("nested-reduction", where="te.compute M")
    )


def test_a_reducer_of_one_value() -> None:
    either = te.comm_reducer(lambda x, y: x | y, lambda dtype: 0, name="either")
    result = reduction(either(I8[i, k], axis=k))

    assert str(result) == "either(I8[i, k], axis=[k])"
    assert str(result.combiner.identity[0]) == "int8(0)"
    assert str(te.comm_reducer(lambda x, y: x, lambda t: 0)(I8[i, k], k)).startswith("reduce(")


def test_a_reduction_has_its_source_location() -> None:
    location = reduction(te.sum(A[i, k], axis=k)).location

    assert location is not None
    assert location.text == "te.sum(A[i, k], axis=k)"


def test_rewriting_goes_inside_and_leaves_the_axes() -> None:
    result = reduction(te.sum(A[i, k], axis=k, where=k > i, init=A[i, 0]))
    substituted = substitute(result, {i: te.var("j")})

    assert str(substituted) == "sum(A[j, k], axis=[k], where=k > j, init=A[j, int32(0)])"
    assert substituted.axis is result.axis
    assert substituted.location is result.location
    assert bottom_up(result, lambda node: None) is result
    assert list(free_variables(result)) == [i, k]


def test_reductions_are_compared_by_structure() -> None:
    def build() -> Reduce:
        return reduction(te.sum(A[i, k], axis=k))

    assert structural_equal(build(), build())
    assert not structural_equal(build(), reduction(te.prod(A[i, k], axis=k)))
    assert not structural_equal(build(), replace(build(), condition=k > 1))


@pytest.mark.parametrize(
    ("expr", "text"),
    [
        (te.max(A[i, 0], 0), "max(A[i, int32(0)], float32(0.0))"),
        (te.min(i, 3), "min(i, int32(3))"),
        (te.min(3, 4), "int32(3)"),
        (te.max(te.placeholder((), name="S"), i), 'max(S[()], cast("float32", i))'),
    ],
)
def test_reducer_of_two_expressions_is_elementwise(expr: Expr, text: str) -> None:
    assert str(expr) == text


def test_an_axis_of_the_result_is_a_number() -> None:
    tensor = te.compute((4,), lambda x: te.max(3 - x, x), name="T")

    assert str(tensor.op) == "T[x] = max(int32(3) - x, x)"


def result_axis() -> Any:
    return te.compute((4,), lambda x: x).op.axis[0]


REFUSALS: list[tuple[Callable[[], object], Diagnostic]] = [
    (
        lambda: te.sum(A[i, k], axis=[k, k]),
        Diagnostic("duplicate-argument", caller="te.sum", item="k"),
    ),
    (
        lambda: te.sum(A[i, k], axis=[]),
        Diagnostic("missing-input", caller="te.sum"),
    ),
    (
        lambda: te.sum(A[i, k], axis=1),
        Diagnostic("reduction", caller="te.sum", item=1, type="int"),
    ),
    *(
        (
            lambda reducer=reducer: reducer(A[i, k]),
            Diagnostic("reduction", caller=f"te.{reducer.__name__}", item=None, type="NoneType"),
        )
        for reducer in (te.sum, te.prod, te.min, te.max)
    ),
    (
        lambda: te.sum(A[i, k], axis="i"),  # type: ignore[arg-type]
        Diagnostic("reduction", caller="te.sum", item="i", type="str"),
    ),
    (
        lambda: te.prod(A[i, k], axis=result_axis()),
        Diagnostic("reduction", caller="te.prod", item="x"),
    ),
    (
        lambda: te.max(A[i, k], axis=[result_axis()]),
        Diagnostic("reduction", caller="te.max", item="x"),
    ),
    (
        lambda: te.sum(Z[i, k], axis=k),
        Diagnostic("dtype", caller="sum", dtype="bool"),
    ),
    (
        lambda: te.sum(A, axis=k),
        Diagnostic("tensor-as-scalar", name="A", shape="(4, 5)", example="A[i, j]"),
    ),
    (
        lambda: te.sum(A[i, k], axis=k, where=k),
        Diagnostic("dtype", caller="te.sum(where=)", dtype="int32"),
    ),
    (
        lambda: te.sum(A[i, k], axis=k, init=A[i, k]),
        Diagnostic("reduction", caller="te.sum", node="k"),
    ),
    (
        lambda: te.sum(A[i, k], axis=k, init=i),
        Diagnostic("dtype", subject="te.sum: init=", which="", dtype="int32", expected_dtype="float32"),
    ),
    (
        lambda: te.sum(I8[i, k], axis=k, init=300),
        Diagnostic("literal", value=300, dtype="int8", low=-128, high=127),
    ),
    (
        lambda: te.sum(A[i, k], axis=k, init=(1, 2)),  # type: ignore[arg-type]
        Diagnostic("reduction", subject="te.sum: init=", count="a tuple of 2", expected="one value"),
    ),
    (
        lambda: argmax((k, A[i, k]), axis=k, init=0),
        Diagnostic("reduction", subject="argmax: init=", count="one value", expected="a tuple of 2"),
    ),
    (
        lambda: argmax((), axis=k),
        Diagnostic("missing-input", caller="argmax"),
    ),
    (
        lambda: te.max(A[i, 0], A[i, 1], where=A[i, 2] > 0),
        Diagnostic("reduction", op="max"),
    ),
    (
        lambda: te.sum(A[i, k], k, None, None, A[i, 1]),
        Diagnostic("reduction", caller="te.sum", verb="is", arguments="1 argument"),
    ),
    (
        lambda: argmax((k, A[i, k]), (k + 1,)),
        Diagnostic("reduction", caller="argmax", result_count=2, other_count=1),
    ),
    (
        lambda: te.comm_reducer(lambda x, y: (x, y), lambda t: 0, "both")(A[i, k], axis=k),
        Diagnostic(
            "reduction", subject="both: the combination", count="a tuple of 2", expected="one value",
        ),
    ),
    (
        lambda: te.comm_reducer(lambda x, y: x[0], lambda a, b: (0, 0), "one")((k, k), axis=k),
        Diagnostic(
            "reduction", subject="one: the combination", count="one value", expected="a tuple of 2",
        ),
    ),
    (
        lambda: te.comm_reducer(lambda x, y: x + y, lambda t: (0, 0), "add")(A[i, k], axis=k),
        Diagnostic("reduction", subject="add: the identity", count="a tuple of 2", expected="one value"),
    ),
    (
        lambda: te.comm_reducer(lambda x, y: x + y * 2.0, lambda t: 0, "add")(I8[i, k], axis=k),
        Diagnostic(
            "dtype", subject="add: the combination", which="", dtype="float32", expected_dtype="int8",
        ),
    ),
    (
        lambda: te.comm_reducer(lambda x, y: (x[0], x[1] > y[1]), lambda a, b: (0, 0), "most")(
            (k, A[i, k]), axis=k
        ),
        Diagnostic(
            "dtype", subject="most: the combination", which=" of value 1", dtype="bool",
            expected_dtype="float32",
        ),
    ),
    (
        lambda: te.comm_reducer(lambda x, y: x + y * k, lambda t: 0, "f")(A[i, k], axis=k),
        Diagnostic("reduction", caller="f", node="k"),
    ),
    (
        lambda: te.comm_reducer(lambda x, y: x + y * A[k, 0], lambda t: 0, "f")(A[i, k], axis=k),
        Diagnostic("reduction", caller="f", node="k"),
    ),
]


@pytest.mark.parametrize(("action", "expected"), REFUSALS)
def test_invalid_arguments_are_rejected(action: Callable[[], object], expected: Diagnostic) -> None:
    assert refusal(action) == expected


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: added(n, te.const(2)), "n + int32(2)"),
        (lambda: added(n, m, n), "n + m + n"),
        (lambda: te.sum(n, m, n, m), "n + m + n + m"),
        (lambda: te.prod(n, m), "n * m"),
        (lambda: te.max(n, m, 3), "max(max(n, m), int32(3))"),
        (lambda: te.min(n, m, n, 1, m), "min(min(min(min(n, m), n), int32(1)), m)"),
    ],
)
def test_reducer_combines_all_expressions(make: Callable[[], Any], text: str) -> None:
    assert str(make()) == text


def test_reducer_combines_all_tuples(agrees: Any) -> None:
    X = te.placeholder((6, 4), name="X")
    index, value = te.compute(
        (6,), lambda i: argmax((0, X[i, 0]), (1, X[i, 1]), (2, X[i, 2])), name="M")
    x = np.random.default_rng(5).permutation(24).reshape(6, 4).astype("float32")

    agrees(te.create_schedule(index.op), [X, index, value], {
        X: x, index: x[:, :3].argmax(1).astype("int32"), value: x[:, :3].max(1)})
