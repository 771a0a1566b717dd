"""Expressions keep their dtype in NumPy operators; other NumPy functions raise with a remedy."""

from __future__ import annotations

import contextlib
import operator
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tecomp import te
from tecomp.errors import TecompError
from tests.messages import Diagnostic, diagnostic

A = te.placeholder((4, 4), name="A")
S = te.placeholder((), "int16", name="S")
i, j = te.var("i"), te.var("j")
at: Any = i
X: Any = A[i, j]
NO_INDEX = (
    Diagnostic("symbolic-value", subject="i")
)
NO_ELEMENT = (
    Diagnostic("symbolic-value", subject="i", dtype="int64")
)
NO_NUMBER = (
    Diagnostic("symbolic-value", subject="i")
)


def write_at(index: Any) -> None:
    np.zeros((3, 4))[index] = 1.0


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: np.float32(2) * X, "float32(2.0) * A[i, j]"),
        (lambda: np.float64(2) - X, 'float64(2.0) - cast("float64", A[i, j])'),
        (lambda: np.int8(2) < S, "int16(2) < S[()]"),
        (lambda: np.add(X, 1), "A[i, j] + float32(1.0)"),
        (lambda: np.negative(i), "int32(0) - i"),
        (lambda: X + np.array(1.5), 'cast("float64", A[i, j]) + float64(1.5)'),
        (lambda: np.multiply.reduce(np.array([i, 4])), "i * int32(4)"),
    ],
)
def test_operators(make: Callable[[], Any], text: str) -> None:
    assert str(make()) == text


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda: np.exp(X), Diagnostic(
            "symbolic-value", where="np.exp", value="A[i, j]", instead="write te.exp",
        )),
        (lambda: np.arcsin(X), Diagnostic(
            "symbolic-value", where="np.arcsin", value="A[i, j]", instead="write te.asin",
        )),
        (lambda: np.maximum(0, X), Diagnostic(
            "symbolic-value", where="np.maximum", value="A[i, j]", instead="write te.max",
        )),
        (lambda: np.float32(2) ** X, Diagnostic(
            "symbolic-value", where="np.power", value="A[i, j]", instead="write te.power",
        )),
        (lambda: np.cbrt(S), Diagnostic(
            "symbolic-value", where="np.cbrt", value=str(S),
            instead="use the operators and functions of te",
        )),
        (lambda: np.sum(X), Diagnostic(
            "symbolic-value", where="np.add.reduce", value="A[i, j]",
            instead="reduce with te.sum, te.prod, te.min or te.max over a te.reduce_axis",
        )),
        (lambda: np.add(X, 1, dtype="float64"),
         Diagnostic(
             "symbolic-value", where="np.add", value="A[i, j]",
             instead="use the operator, without further arguments",
         )),
        (lambda: X * np.arange(3),
         Diagnostic("invalid-type", where="", shape=(3,), dtype="int64")),
        (lambda: np.arange(3) == X,
         Diagnostic("invalid-type", where="", shape=(3,), dtype="int64")),
        (lambda: np.arange(64)[i], NO_INDEX),
        (lambda: np.zeros((3, 4))[0, i], NO_INDEX),
        (lambda: operator.getitem(np.arange(64), at), NO_INDEX),
        (lambda: np.zeros(3).flat[at], NO_INDEX),
        (lambda: write_at(i), NO_INDEX),
        (lambda: write_at((slice(None), i)), NO_INDEX),
        (lambda: np.take(np.zeros(3), at), NO_ELEMENT),
        (lambda: np.zeros(3).take(at), NO_ELEMENT),
        (lambda: np.zeros(3).put(at, 1), NO_ELEMENT),
        (lambda: np.array([at, 1], "int64"), NO_ELEMENT),
        (lambda: np.round(X), Diagnostic("symbolic-value", function="np.round", value="A[i, j]")),
        (lambda: np.linalg.det(X), Diagnostic(
            "symbolic-value", function="np.linalg.det", value="A[i, j]",
        )),
        (lambda: np.delete(np.zeros(3), at), Diagnostic(
            "symbolic-value", function="np.delete", value="i",
        )),
        (lambda: np.zeros(3)[at:], NO_NUMBER),
        (lambda: [1, 2][i], NO_NUMBER),
        (lambda: range(i), NO_NUMBER),
    ],
)
def test_unsupported_numpy_functions_suggest_a_replacement(make: Callable[[], Any], expected: Diagnostic) -> None:
    with pytest.raises(TecompError) as caught:
        make()

    assert diagnostic(caught.value) == expected


WHOLE = "Tensor(A, shape=(4, 4), dtype=float32)"
PER_ELEMENT = (
    "write it per element, te.compute(shape, lambda i: ...), and declare arrays as inputs: "
    "X = te.placeholder(array.shape, str(array.dtype))"
)
TENSOR: Any = A


@pytest.mark.parametrize(
    ("make", "use"),
    [
        (lambda: np.take(np.zeros(3), TENSOR), "be an array of int64"),
        (lambda: np.zeros(3).take(TENSOR), "be an array of int64"),
        (lambda: np.asarray(TENSOR, "float32"), "be an array of float32"),
        (lambda: np.arange(64)[TENSOR], "index an array"),
        (lambda: write_at(TENSOR), "index an array"),
        (lambda: range(TENSOR), None),
    ],
)
def test_whole_tensors_are_no_numbers(make: Callable[[], Any], use: str | None) -> None:
    with pytest.raises(TecompError) as caught:
        make()

    uses = {} if use is None else {"use": use}
    assert diagnostic(caught.value) == (
        Diagnostic("symbolic-value", subject=WHOLE, **uses, instead=PER_ELEMENT)
    )


@pytest.mark.parametrize("name", ["round", "where", "linalg.det", "zeros_like"])
def test_functions_of_whole_tensors_name_the_replacement(name: str) -> None:
    function = operator.attrgetter(name)(np)

    with pytest.raises(TecompError) as caught:
        function(TENSOR)

    assert diagnostic(caught.value) == (
        Diagnostic("symbolic-value", function=f"np.{name}", subject=WHOLE, instead=PER_ELEMENT)
    )


def test_arrays_hold_tensors() -> None:
    assert np.array([A, S], object).tolist() == [A, S]
    assert np.asarray(S).item() is S
    for many in (A, A[i], A[0:2]):
        for argument in (many, [many, many]):
            with pytest.raises(TecompError) as refused:
                np.asarray(argument)
            assert diagnostic(refused.value) == (
                Diagnostic("symbolic-value", subject=str(many))
            )


def test_literals_count_and_arrays_hold_expressions() -> None:
    assert [1, 2, 3][te.const(1)] == 2
    elements = np.array([i, X])
    assert elements.dtype == object
    assert elements[0] is i
    assert elements[1] is X


def test_literals_take_elements() -> None:
    assert np.take(np.arange(3) * 10, te.const(2)) == 20
    assert np.array(te.const(2.5), "float32") == 2.5
    with pytest.raises(TypeError, match="Cannot cast"):
        np.take(np.arange(3), te.const(1.5))


def test_functions_that_compute_with_objects_do_so() -> None:
    assert str(np.dot(at, 2)) == "i * int32(2)"
    assert np.stack([at, X]).tolist() == [i, X]
    assert np.full(2, at).tolist() == [i, i]


# Exclude np.save and similar functions, which write files.
DISPATCHED = [
    name for name in dir(np)
    if hasattr(getattr(np, name), "_implementation") and "save" not in name
]


@pytest.mark.parametrize("name", DISPATCHED)
def test_every_function_of_arrays_works_or_is_refused(name: str) -> None:
    function = getattr(np, name)
    assert len(DISPATCHED) > 200
    for argument in ((at,), (X,), (at, X), (at, 1), (at, np.zeros(3)), (at, 0, 1)):
        with (
            contextlib.suppress(TecompError), np.errstate(all="ignore"), warnings.catch_warnings(),
        ):
            # Some NumPy functions are deprecated.
            warnings.simplefilter("ignore", DeprecationWarning)
            X.__array_function__(function, (), argument, {})


def test_arrays_after_a_refused_conversion() -> None:
    with pytest.raises(TecompError):
        [1, 2][i]
    assert np.array(i).dtype == object
    with contextlib.suppress(TecompError):
        np.arange(3)[i]
    assert np.array(i).item() is i


@pytest.mark.parametrize("name", [n for n in dir(np) if isinstance(getattr(np, n), np.ufunc)])
def test_every_function_of_numpy_is_an_operator_or_refused(name: str) -> None:
    ufunc = getattr(np, name)
    whole = ufunc.__name__ in ("invert", "bitwise_and", "bitwise_or", "bitwise_xor", "left_shift",
                               "right_shift")
    inputs = [i if whole else X] * ufunc.nin
    result: Any = None
    with contextlib.suppress(TecompError):
        result = ufunc(*inputs)
    if result is None:
        with pytest.raises(TecompError) as caught:
            ufunc(*inputs)
        instead = caught.value.parameters["instead"]
        assert diagnostic(caught.value) == Diagnostic(
            "symbolic-value", where=f"np.{ufunc.__name__}", value="A[i, j]", instead=instead
        )
        assert not instead.startswith("write te.") or hasattr(te, instead.removeprefix("write te."))
    else:
        assert isinstance(result, te.Expr)
