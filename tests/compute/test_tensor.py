"""Tensor indexing and arithmetic: results and errors."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tecomp
from tecomp import te
from tecomp.compute import Tensor, TensorLoad
from tecomp.errors import DefinitionError, TecompError, TypeMismatchError
from tecomp.ir import Compare, Expr, structural_equal, substitute
from tests.messages import Diagnostic, diagnostic

A = te.placeholder((4, 5), name="A")
S = te.placeholder((), "int64", name="S")
V = te.placeholder((7,), name="V")
X = te.placeholder((2, 2, 2, 2, 2), name="X")
i = te.var("i")
f = te.var("f", "float32")


def refusal(action: Callable[[], object]) -> TecompError:
    with pytest.raises(TecompError) as caught:
        action()
    return caught.value


def test_attributes() -> None:
    n = te.var("n")
    t = te.placeholder((n, 3), "float16", name="T")

    assert t.shape[0] is n
    assert t.shape[1] == 3
    assert (t.ndim, t.dtype, t.name) == (2, "float16", "T")
    assert t.op.output(0) is t
    assert t.value_index == 0


def test_extents_that_are_known_are_ints_with_a_value() -> None:
    B = te.compute(A.shape, lambda *i: A(*i) + 1.0, name="B")
    extents: Any = B.shape

    assert [n.value for n in extents] == [4, 5]
    assert type(extents[0] * 2) is int
    assert repr(extents) == json.dumps(extents).replace("[", "(").replace("]", ")") == "(4, 5)"
    assert pickle.loads(pickle.dumps(extents)) == (4, 5)
    a, b = np.ones((4, 5), "float32"), np.zeros([n.value for n in extents], "float32")
    s = te.create_schedule(B)
    s[B].split(B.op.axis[0], factor=B.shape[0])
    tecomp.replay(s.trace.to_json(), B)
    tecomp.build(s, [A, B])(a, b)
    np.testing.assert_array_equal(b, a + 1)


@pytest.mark.parametrize(
    ("tensor", "text"),
    [
        (A, "Tensor(A, shape=(4, 5), dtype=float32)"),
        (V, "Tensor(V, shape=(7,), dtype=float32)"),
        (S, "Tensor(S, shape=(), dtype=int64)"),
    ],
)
def test_repr_is_one_line(tensor: Tensor, text: str) -> None:
    assert repr(tensor) == text


@pytest.mark.parametrize(
    ("load", "text"),
    [
        (A[i, 2], "A[i, int32(2)]"),
        (A(i, 2), "A[i, int32(2)]"),
        (A[i][2], "A[i, int32(2)]"),
        (A[np.int64(3), np.int8(1)], "A[3, int8(1)]"),
        (A[S, i + 1], "A[S[()], i + int32(1)]"),
        (S[()], "S[()]"),
        (S(), "S[()]"),
        (V[i], "V[i]"),
        (X[0][1][i][1, 0], "X[int32(0), int32(1), i, int32(1), int32(0)]"),
    ],
)
def test_indexing(load: Expr, text: str) -> None:
    assert isinstance(load, TensorLoad)
    assert str(load) == text
    assert load.dtype == load.tensor.dtype


def test_an_axis_is_an_index() -> None:
    c = te.compute((4, 5), lambda i, j: A[i, j])
    load = A[c.op.axis[0], c.op.axis[1].var]

    assert isinstance(load, TensorLoad)
    assert load.indices == c.op.axis


def test_a_load_has_its_source_location() -> None:
    load = A[i, 3]

    assert isinstance(load, TensorLoad)
    assert load.location is not None
    assert load.location.text == "A[i, 3]"
    assert load.location.file == __file__


def test_a_rewritten_load_keeps_its_source_location() -> None:
    load = A[i, 3]
    substituted = substitute(load, {i: te.var("j")})

    assert isinstance(load, TensorLoad)
    assert isinstance(substituted, TensorLoad)
    assert str(substituted) == "A[j, int32(3)]"
    assert substituted.location is load.location


def test_equal_loads_compare_equal() -> None:
    other = te.placeholder((4, 5), name="A")

    assert structural_equal(A[i, 3], A(i, 3))
    assert not structural_equal(A[i, 3], A[i, 4])
    assert not structural_equal(A[i, 3], other[i, 3])


def test_equality_matches_the_output() -> None:
    twin = te.placeholder((4, 5), name="A")
    first, second = te.compute((4,), lambda i: (A[i, 0], A[i, 1]), name="P")

    assert Tensor(A.op, 0) == A
    assert hash(A) == hash(Tensor(A.op, 0))
    assert twin != A
    assert first != second
    assert first == Tensor(second.op, 0)
    assert A != "A"
    assert {A: 1, twin: 2}[Tensor(A.op, 0)] == 1


@pytest.mark.parametrize(
    ("expr", "text"),
    [
        (S + 1, "S[()] + 1"),
        (1 + S, "1 + S[()]"),
        (S - 1, "S[()] - 1"),
        (1 - S, "1 - S[()]"),
        (S * 2, "S[()] * 2"),
        (2 * S, "2 * S[()]"),
        (S / 2.0, 'cast("float32", S[()]) / float32(2.0)'),
        (2.0 / S, 'float32(2.0) / cast("float32", S[()])'),
        (S // 2, "S[()] // 2"),
        (2 // S, "2 // S[()]"),
        (S % 2, "S[()] % 2"),
        (2 % S, "2 % S[()]"),
        (S & 2, "S[()] & 2"),
        (2 & S, "2 & S[()]"),
        (S | 2, "S[()] | 2"),
        (2 | S, "2 | S[()]"),
        (S ^ 2, "S[()] ^ 2"),
        (2 ^ S, "2 ^ S[()]"),
        (S << 2, "S[()] << 2"),
        (2 << S, "2 << S[()]"),
        (S >> 2, "S[()] >> 2"),
        (2 >> S, "2 >> S[()]"),
        (-S, "0 - S[()]"),
        (+S, "S[()]"),
        (~S, "S[()] ^ -1"),
        (S < 3, "S[()] < 3"),
        (S <= 3, "S[()] <= 3"),
        (S > 3, "S[()] > 3"),
        (S >= 3, "S[()] >= 3"),
        (S.equal(3), "S[()] == 3"),
        (S.astype("float32"), 'cast("float32", S[()])'),
        (S + S, "S[()] + S[()]"),
        (A[i, 0] + S, 'A[i, int32(0)] + cast("float32", S[()])'),
        (i + S, 'cast("int64", i) + S[()]'),
    ],
)
def test_a_tensor_of_no_axes_is_a_number(expr: Any, text: str) -> None:
    assert str(expr.as_expr() if isinstance(expr, Tensor) else expr) == text


@pytest.mark.parametrize(
    ("comparison", "text"),
    [
        (S == 1, "S[()] == 1"),
        (S != 1, "S[()] != 1"),
        (i == S, 'S[()] == cast("int64", i)'),
        (np.int64(1) == S, "1 == S[()]"),
    ],
)
def test_comparison_with_a_number_is_a_condition(comparison: Any, text: str) -> None:
    assert isinstance(comparison, Compare)
    assert str(comparison) == text


def test_numpy_scalars_keep_their_type_on_either_side() -> None:
    for product in (A[i, 0] * np.float64(2), np.float64(2) * A[i, 0]):
        assert product.dtype == "float64"
    assert (np.float64(2) * te.placeholder(()) + np.float64(1)).dtype == "float64"


@pytest.mark.parametrize(
    ("action", "expected"),
    [
        (
            lambda: A[i, 1.5],
            Diagnostic(
                "index-type", tensor="A", axis=1, index=1.5, type="float",
                remedy='convert it with .astype("int32") if that is intended',
            ),
        ),
        (
            lambda: A[f, 1],
            Diagnostic(
                "index-type", tensor="A", axis=0, index="f", type="float32",
                remedy='convert it with .astype("int32") if that is intended',
            ),
        ),
        (
            lambda: A[A[0, 0], 1],
            Diagnostic(
                "index-type", tensor="A", axis=0, index="A[int32(0), int32(0)]", type="float32",
                remedy='convert it with .astype("int32") if that is intended',
            ),
        ),
        (
            lambda: A[True, 1],
            Diagnostic(
                "index-type", tensor="A", axis=0, index=True, type="bool",
                remedy='convert it with .astype("int32") if that is intended',
            ),
        ),
        (
            lambda: A[np.True_, 1],
            Diagnostic(
                "index-type", tensor="A", axis=0, index="True", type="bool",
                remedy='convert it with .astype("int32") if that is intended',
            ),
        ),
        (
            lambda: A[i > 2, 1],
            Diagnostic(
                "index-type", tensor="A", axis=0, index="i > int32(2)", type="bool",
                remedy='convert it with .astype("int32") if that is intended',
            ),
        ),
        (
            lambda: A[np.float32(2), 1],
            Diagnostic(
                "index-type", tensor="A", axis=0, index="2.0", type="float32",
                remedy='convert it with .astype("int32") if that is intended',
            ),
        ),
        (
            lambda: A[None, 1],
            Diagnostic(
                "index-type", tensor="A", axis=0, index=None, type="NoneType",
                remedy="write A[i, j]",
            ),
        ),
        (
            lambda: A["i", 1],
            Diagnostic(
                "index-type", tensor="A", axis=0, index="i", type="str", remedy="write A[i, j]",
            ),
        ),
        (
            lambda: A["i":3, 1],
            Diagnostic(
                "index-type", tensor="A", axis=0, index="i", type="str", remedy="write A[i, j]",
            ),
        ),
        (
            lambda: A[1:3:2, 1],
            Diagnostic("index-type", tensor="A", axis=0, index="slice(1, 3, 2)"),
        ),
        (
            lambda: A[i][...],
            Diagnostic(
                "index-type", tensor="A", axis=1, index="Ellipsis", type="ellipsis",
                remedy="write A[i, j]",
            ),
        ),
        (
            lambda: X[[1], 0],
            Diagnostic(
                "index-type", tensor="X", axis=0, index=[1], type="list",
                remedy="write X[i0, i1, i2, i3, i4]",
            ),
        ),
        (
            lambda: A[V, 1],
            Diagnostic("tensor-as-scalar", name="V", shape="(7,)", example="V[i]"),
        ),
    ],
)
def test_an_index_is_an_integer(action: Callable[[], object], expected: Diagnostic) -> None:
    error = refusal(action)

    assert isinstance(error, TypeMismatchError)
    assert diagnostic(error) == expected


@pytest.mark.parametrize(
    ("action", "expected"),
    [
        (
            lambda: A[i, 1, 2],
            Diagnostic(
                "index-count", tensor="A", axes="2 axes", shape="(4, 5)", count=3, noun="indices",
                example="A[i, j]",
            ),
        ),
        (lambda: A[i][1, 2], Diagnostic(
            "index-count", tensor="A", axes="2 axes", shape="(4, 5)", count=3, noun="indices",
            example="A[i, j]",
        )),
        (lambda: A(i), Diagnostic(
            "index-count", tensor="A", axes="2 axes", shape="(4, 5)", count=1, noun="index",
            example="A[i, j]",
        )),
        (lambda: A(), Diagnostic(
            "index-count", tensor="A", axes="2 axes", shape="(4, 5)", count=0, noun="indices",
            example="A[i, j]",
        )),
        (lambda: A[()], Diagnostic(
            "index-count", tensor="A", axes="2 axes", shape="(4, 5)", count=0, noun="indices",
            example="A[i, j]",
        )),
        (lambda: A[i] + 1, Diagnostic(
            "index-count", tensor="A", axes="2 axes", shape="(4, 5)", count=1, noun="index",
            example="A[i, j]",
        )),
        (lambda: V[i][1], Diagnostic(
            "index-count", tensor="V", axes="1 axis", shape="(7,)", count=2, noun="indices",
            example="V[i]",
        )),
        (lambda: list(V[i]), Diagnostic(
            "index-count", tensor="V", axes="1 axis", shape="(7,)", count=2, noun="indices",
            example="V[i]",
        )),
        (lambda: V[i, 1], Diagnostic(
            "index-count", tensor="V", axes="1 axis", shape="(7,)", count=2, noun="indices",
            example="V[i]",
        )),
        (lambda: S[0], Diagnostic(
            "index-count", tensor="S", axes="0 axes", shape="()", count=1, noun="index",
            example="S[()]",
        )),
    ],
)
def test_the_number_of_indices(action: Callable[[], object], expected: Diagnostic) -> None:
    error = refusal(action)

    assert isinstance(error, DefinitionError)
    assert diagnostic(error) == expected


@pytest.mark.parametrize(
    "action",
    [
        lambda: A < 3,
        lambda: A == 3,
        lambda: te.exp(A),
        lambda: te.if_then_else(i > 1, A, 0),
    ],
)
def test_a_tensor_with_axes_is_no_number(action: Callable[[], object]) -> None:
    error = refusal(action)

    assert diagnostic(error) == Diagnostic("tensor-as-scalar", name="A", shape="(4, 5)", example="A[i, j]")


@pytest.mark.parametrize("action", [lambda: list(A), lambda: list(A[i])])
def test_a_tensor_cannot_be_iterated_over(action: Callable[[], object]) -> None:
    error = refusal(action)

    assert diagnostic(error) == (
        Diagnostic("tensor-as-scalar", name="A", shape="(4, 5)", example="A[i, j]")
    )


def test_a_refusal_shows_the_line_of_the_user() -> None:
    error = refusal(lambda: te.compute((4,), lambda i: A[i, 0.5] + 1))

    lines = str(error).splitlines()
    assert lines[2].lstrip().startswith("error = refusal(lambda: te.compute((4,), lambda i: A[i, 0.5]")
    assert lines[2][lines[3].index("^") : lines[3].rindex("^") + 1] == "A[i, 0.5]"
    assert error.location is not None
    assert error.location.file == __file__


def test_repr_of_a_slice() -> None:
    assert repr(A[i]) == "TensorSlice(A[i] of shape (4, 5))"
