"""All errors of te.placeholder, te.compute, te.reduce_axis and te.var."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest

from tecomp import te
from tecomp.errors import TecompError
from tecomp.ir import SCALARS, Range
from tests.messages import Diagnostic, diagnostic

A = te.placeholder((4, 5), name="A")
n = te.var("n")
k = te.reduce_axis((0, 5), name="k")


def refusal(action: Callable[[], object]) -> Diagnostic:
    with pytest.raises(TecompError) as caught:
        action()
    assert caught.value.location is not None
    assert caught.value.location.file == __file__
    return diagnostic(caught.value)


SHAPES: list[tuple[Any, Diagnostic]] = [
    (
        (3, -1),
        Diagnostic("extent", where="te.placeholder P: axis 1 of the shape", value=-1, minimum=0),
    ),
    (
        -2,
        Diagnostic("extent", where="te.placeholder P: the shape", value=-2, minimum=0),
    ),
    (
        (2.5,),
        Diagnostic("extent", where="te.placeholder P: axis 0 of the shape", value=2.5, type_name="float"),
    ),
    (
        3.5,
        Diagnostic("extent", where="te.placeholder P: the shape", value=3.5, type_name="float"),
    ),
    (
        (math.nan,),
        Diagnostic(
            "extent", where="te.placeholder P: axis 0 of the shape", value="nan", type_name="float",
        ),
    ),
    (
        (True,),
        Diagnostic("extent", where="te.placeholder P: axis 0 of the shape", value=True, type_name="bool"),
    ),
    (
        (3, None),
        Diagnostic(
            "extent", where="te.placeholder P: axis 1 of the shape", value=None, type_name="NoneType",
        ),
    ),
    (
        (te.var("x", "float32"),),
        Diagnostic(
            "extent", where="te.placeholder P: axis 0 of the shape", value="x", type_name="float32",
        ),
    ),
    (
        (n > 2,),
        Diagnostic(
            "extent", where="te.placeholder P: axis 0 of the shape", value="n > int32(2)",
            type_name="bool",
        ),
    ),
    (
        (2**63,),
        Diagnostic(
            "extent", where="te.placeholder P: axis 0 of the shape", value=9223372036854775808,
            largest=9223372036854775807,
        ),
    ),
    (
        (k + 1,),
        Diagnostic(
            "extent", where="te.placeholder P: axis 0 of the shape", value="k + int32(1)",
            node="k",
        ),
    ),
    (
        (te.placeholder((), "int32", name="S") + 1,),
        Diagnostic(
            "extent", where="te.placeholder P: axis 0 of the shape", value="S[()] + int32(1)",
        ),
    ),
    (
        ((n * 0.5).astype("int32"),),
        Diagnostic(
            "extent", where="te.placeholder P: axis 0 of the shape",
            value='cast("int32", cast("float32", n) * float32(0.5))',
        ),
    ),
    (
        None,
        Diagnostic("extent", where="te.placeholder P", shape=None, type="NoneType"),
    ),
    (
        "34",
        Diagnostic("extent", where="te.placeholder P", shape="34", type="str"),
    ),
    (
        {3},
        Diagnostic("extent", where="te.placeholder P", shape="{3}", type="set"),
    ),
    (
        A,
        Diagnostic(
            "extent", where="te.placeholder P", shape="Tensor(A, shape=(4, 5), dtype=float32)",
            type="Tensor",
        ),
    ),
]


@pytest.mark.parametrize(("shape", "expected"), SHAPES)
def test_shapes_that_are_refused(shape: Any, expected: Diagnostic) -> None:
    assert refusal(lambda: te.placeholder(shape, name="P")) == expected
    where = expected.parameters["where"].replace("te.placeholder", "te.compute")
    assert refusal(lambda: te.compute(shape, lambda *i: 0, name="P")) == (
        Diagnostic(expected.kind, **{**expected.parameters, "where": where})
    )


@pytest.mark.parametrize(
    ("dtype", "expected"),
    [
        (
            "float33",
            Diagnostic(
                "dtype", name="float33",
                scalars=", ".join(SCALARS),
            ),
        ),
        (
            float,
            Diagnostic(
                "invalid-type", where="te.placeholder P", dtype="<class 'float'>", type="type",
            ),
        ),
        ("handle", Diagnostic("dtype", where="te.placeholder P")),
    ],
)
def test_types_that_are_refused(dtype: Any, expected: Diagnostic) -> None:
    assert refusal(lambda: te.placeholder((3,), dtype, "P")) == expected


INDEX_FUNCTIONS: list[tuple[Any, Diagnostic]] = [
    (
        lambda i: 0,
        Diagnostic("invalid-index-function", where="te.compute C", axes="2 axes", name_count=1, names="i"),
    ),
    (
        lambda i, j, k: 0,
        Diagnostic(
            "invalid-index-function", where="te.compute C", axes="2 axes", name_count=3, names="i, j, k",
        ),
    ),
    (
        lambda: 0,
        Diagnostic(
            "invalid-index-function", where="te.compute C", axes="2 axes", name_count=0, names="none",
        ),
    ),
    (
        lambda i, j, k, *rest: 0,
        Diagnostic(
            "invalid-index-function", where="te.compute C", axes="2 axes", name_count=3, names="i, j, k",
        ),
    ),
    (
        lambda i, j, *, scale: 0,
        Diagnostic("invalid-index-function", where="te.compute C", forced="scale"),
    ),
    (
        A[0, 0],
        Diagnostic(
            "invalid-index-function", where="te.compute C", fcompute="A[int32(0), int32(0)]",
            type="TensorLoad",
        ),
    ),
    (
        None,
        Diagnostic("invalid-index-function", where="te.compute C", fcompute=None, type="NoneType"),
    ),
    (
        dict,
        Diagnostic("invalid-index-function", where="te.compute C", fcompute="<class 'dict'>"),
    ),
    (
        lambda i, j: None,
        Diagnostic("invalid-index-function", where="te.compute C", value=None, type="NoneType"),
    ),
    (
        lambda i, j: (A[i, j], "x"),
        Diagnostic("invalid-index-function", where="te.compute C", value="x", type="str"),
    ),
    (
        lambda i, j: (),
        Diagnostic("invalid-index-function", where="te.compute C"),
    ),
    (
        lambda i, j: A,
        Diagnostic("tensor-as-scalar", name="A", shape="(4, 5)", example="A[i, j]"),
    ),
    (
        lambda i, j: A[i],
        Diagnostic(
            "index-count", tensor="A", axes="2 axes", shape="(4, 5)", count=1, noun="index",
            example="A[i, j]",
        ),
    ),
    (
        lambda i, j: A[i, k],
        Diagnostic("unbound-variable", where="te.compute C", node="k"),
    ),
    (
        lambda i, j: te.sum(A[i, k] + te.reduce_axis((0, 2), name="r"), axis=k),
        Diagnostic("unbound-variable", where="te.compute C", node="r"),
    ),
    (
        lambda i, j: A[te.compute((4,), lambda y: y).op.axis[0], j],
        Diagnostic("unbound-variable", where="te.compute C", node="y"),
    ),
    (
        lambda i, j: te.sum(A[i, k], axis=k) / 5,
        Diagnostic("nested-reduction", where="te.compute C"),
    ),
    (
        lambda i, j: te.max(te.sum(A[i, k], axis=k), axis=te.reduce_axis((0, 3))),
        Diagnostic("nested-reduction", where="te.compute C"),
    ),
    (
        lambda i, j: (te.sum(A[i, k], axis=k), te.sum(A[i, k] * 2, axis=k)),
        Diagnostic("nested-reduction", where="te.compute C"),
    ),
    (
        lambda i, j: (te.sum(A[i, k], axis=k), A[i, j]),
        Diagnostic("nested-reduction", where="te.compute C"),
    ),
    (
        lambda i, j: (A[i, j], te.sum(A[i, k], axis=k)),
        Diagnostic("nested-reduction", where="te.compute C"),
    ),
]


@pytest.mark.parametrize(("fcompute", "expected"), INDEX_FUNCTIONS)
def test_index_functions_that_are_refused(fcompute: Any, expected: Diagnostic) -> None:
    assert refusal(lambda: te.compute((4, 5), fcompute, name="C")) == expected


def test_varargs_names_that_do_not_fit() -> None:
    found = refusal(
        lambda: te.compute((4, 5), lambda *i: A(*i), name="C", varargs_names=["a", "b", "c"])
    )

    assert found == Diagnostic(
        "count-mismatch", where="te.compute C", given_count=3, varargs="a, b, c", free_count=2,
    )


@pytest.mark.parametrize(
    ("action", "expected"),
    [
        (
            lambda: te.reduce_axis((5, 3), name="r"),
            Diagnostic("extent", where="te.reduce_axis r", low=5, high=3),
        ),
        (
            lambda: te.reduce_axis((1, 2, 3), name="r"),
            Diagnostic("extent", where="te.reduce_axis r", dom=(1, 2, 3)),
        ),
        (
            lambda: te.reduce_axis(-1, name="r"),
            Diagnostic("extent", where="te.reduce_axis r: the extent", value=-1, minimum=0),
        ),
        (
            lambda: te.reduce_axis((0, 2.5), name="r"),
            Diagnostic("extent", where="te.reduce_axis r: the high end", value=2.5, type_name="float"),
        ),
        (
            lambda: te.reduce_axis("k"),
            Diagnostic("extent", where="te.reduce_axis rv: the extent", value="k", type_name="str"),
        ),
        (
            lambda: te.reduce_axis(Range(te.const(0), te.const(-4)), name="r"),
            Diagnostic("extent", where="te.reduce_axis r: the extent", value=-4, minimum=0),
        ),
        (
            lambda: te.reduce_axis(0, 8),  # type: ignore[arg-type]
            Diagnostic("invalid-type", name=8, dom=0),
        ),
        (
            lambda: te.placeholder((3,), name=""),
            Diagnostic("invalid-type", where="te.placeholder", name=""),
        ),
        (
            lambda: te.compute((3,), lambda i: i, name=3),  # type: ignore[call-overload]
            Diagnostic("invalid-type", where="te.compute", name=3),
        ),
        (
            lambda: te.var("x", "float32x4"),
            Diagnostic("invalid-type", name="x", dtype="float32x4"),
        ),
    ],
)
def test_other_refusals(action: Callable[[], object], expected: Diagnostic) -> None:
    assert refusal(action) == expected


def squared(times: int) -> Callable[[Any], Any]:
    """Return a function that applies `x * x + 1` to an element `times` times."""

    def element(i: Any) -> Any:
        x = te.placeholder((4,), name="A")[i]
        for _ in range(times):
            x = x * x + 1.0
        return x

    return element


def added(terms: int) -> Callable[[Any], Any]:
    def element(i: Any) -> Any:
        read = te.placeholder((4,), name="A")[i]
        total = read
        for _ in range(terms):
            total = total + read
        return total

    return element


@pytest.mark.exhaustive(keep=1)
@pytest.mark.parametrize(
    ("fcompute", "count"),
    [(squared(40_000), 80_000), (added(65_537), 65_537)],
)
def test_more_operations_than_can_be_compiled(fcompute: Callable[[Any], Any], count: int) -> None:
    assert refusal(lambda: te.compute((4,), fcompute, name="B")) == (
        Diagnostic("limit-exceeded", where="te.compute B", count=count, most_operations=65536)
    )


def test_as_many_operations_as_can_be_compiled() -> None:
    assert te.compute((4,), squared(1000), name="B").shape == (4,)
    assert te.compute((4,), added(8192), name="B").shape == (4,)
