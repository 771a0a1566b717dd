"""Expressions in the hands of NumPy: operators keep types, other things say what to write."""

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

A = te.placeholder((4, 4), name="A")
S = te.placeholder((), "int16", name="S")
i, j = te.var("i"), te.var("j")
at: Any = i
X: Any = A[i, j]
LATER = ("NumPy computes with numbers that are there, and this has a value only when the kernel "
         "runs")
NO_INDEX = (
    "`i` has a value only when the kernel runs, and cannot index an array before; make the array an "
    "input, X = te.placeholder(array.shape, str(array.dtype)), and write X[...]"
)
NO_ELEMENT = (
    "`i` has a value only when the kernel runs, and is no int64 before; if it is to take elements of "
    "an array, make the array an input, X = te.placeholder(array.shape, str(array.dtype)), and write "
    "X[...]"
)
NO_NUMBER = (
    "`i` has a value only when the kernel runs, and cannot count or index things before; make what "
    "it indexes an input, X = te.placeholder(...), and write X[...]; make what it counts an axis, "
    "such as te.reduce_axis"
)


def write_at(index: Any) -> None:
    np.zeros((3, 4))[index] = 1.0


@pytest.mark.parametrize(
    ("made", "text"),
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
def test_operators(made: Callable[[], Any], text: str) -> None:
    assert str(made()) == text


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (lambda: np.exp(X), f"np.exp of `A[i, j]`: {LATER}; write te.exp"),
        (lambda: np.arcsin(X), f"np.arcsin of `A[i, j]`: {LATER}; write te.asin"),
        (lambda: np.maximum(0, X), f"np.maximum of `A[i, j]`: {LATER}; write te.max"),
        (lambda: np.float32(2) ** X, f"np.power of `A[i, j]`: {LATER}; write te.power"),
        (lambda: np.cbrt(S), f"np.cbrt of `{S}`: {LATER}; make it of the operators and functions of "
                             "te"),
        (lambda: np.sum(X), f"np.add.reduce of `A[i, j]`: {LATER}; reduce with te.sum, te.prod, "
                            "te.min or te.max over a te.reduce_axis"),
        (lambda: np.add(X, 1, dtype="float64"),
         f"np.add of `A[i, j]`: {LATER}; write the operator, without further arguments"),
        (lambda: X * np.arange(3),
         "expected an expression or a number, got an array of shape (3,); make it an input: X = "
         'te.placeholder((3,), "int64"), and write X[...]'),
        (lambda: np.arange(3) == X,
         "expected an expression or a number, got an array of shape (3,); make it an input: X = "
         'te.placeholder((3,), "int64"), and write X[...]'),
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
        (lambda: np.round(X), f"np.round of `A[i, j]`: {LATER}; make it of the operators and "
                              "functions of te"),
        (lambda: np.linalg.det(X), f"np.linalg.det of `A[i, j]`: {LATER}; make it of the operators "
                                   "and functions of te"),
        (lambda: np.delete(np.zeros(3), at), f"np.delete of `i`: {LATER}; make it of the operators "
                                             "and functions of te"),
        (lambda: np.zeros(3)[at:], NO_NUMBER),
        (lambda: [1, 2][i], NO_NUMBER),
        (lambda: range(i), NO_NUMBER),
    ],
)
def test_what_says_what_to_write(made: Callable[[], Any], message: str) -> None:
    with pytest.raises(TecompError) as caught:
        made()

    assert caught.value.message == message


WHOLE = "Tensor(A, shape=(4, 4), dtype=float32)"
PER_ELEMENT = (
    "write it for one element, te.compute(shape, lambda i: ...), and make arrays inputs: "
    "X = te.placeholder(array.shape, str(array.dtype))"
)
TENSOR: Any = A


@pytest.mark.parametrize(
    ("made", "what"),
    [
        (lambda: np.take(np.zeros(3), TENSOR), "cannot be an array of int64"),
        (lambda: np.zeros(3).take(TENSOR), "cannot be an array of int64"),
        (lambda: np.asarray(TENSOR, "float32"), "cannot be an array of float32"),
        (lambda: np.arange(64)[TENSOR], "cannot index an array"),
        (lambda: write_at(TENSOR), "cannot index an array"),
        (lambda: range(TENSOR), "cannot count or index things"),
    ],
)
def test_whole_tensors_are_no_numbers(made: Callable[[], Any], what: str) -> None:
    with pytest.raises(TecompError) as caught:
        made()

    assert caught.value.message == (
        f"`{WHOLE}` has no elements before the kernel runs, and {what}; {PER_ELEMENT}"
    )


@pytest.mark.parametrize("name", ["round", "where", "linalg.det", "zeros_like"])
def test_functions_of_whole_tensors_say_what_to_write(name: str) -> None:
    function = operator.attrgetter(name)(np)

    with pytest.raises(TecompError) as caught:
        function(TENSOR)

    assert caught.value.message == (
        f"np.{name} of `{WHOLE}`: NumPy computes with numbers that are there, and a tensor has "
        f"none before the kernel runs; {PER_ELEMENT}"
    )


def test_arrays_hold_tensors() -> None:
    assert np.array([A, S], object).tolist() == [A, S]
    assert np.asarray(S).item() is S
    for many in (A, A[i], A[0:2]):
        for given in (many, [many, many]):
            with pytest.raises(TecompError) as refused:
                np.asarray(given)
            assert refused.value.message == (
                f"`{many!r}` has no elements before the kernel runs, and cannot become an array of "
                "NumPy; run a kernel and read its output, or keep the object, "
                "np.asarray(x, dtype=object)"
            )


def test_literals_count_and_arrays_hold_expressions() -> None:
    assert [1, 2, 3][te.const(1)] == 2
    held = np.array([i, X])
    assert held.dtype == object
    assert held[0] is i
    assert held[1] is X


def test_literals_take_elements() -> None:
    assert np.take(np.arange(3) * 10, te.const(2)) == 20
    assert np.array(te.const(2.5), "float32") == 2.5
    with pytest.raises(TypeError, match="Cannot cast"):
        np.take(np.arange(3), te.const(1.5))


def test_functions_that_compute_with_objects_do_so() -> None:
    assert str(np.dot(at, 2)) == "i * int32(2)"
    assert np.stack([at, X]).tolist() == [i, X]
    assert np.full(2, at).tolist() == [i, i]


# np.save and its like write files.
DISPATCHED = [
    name for name in dir(np)
    if hasattr(getattr(np, name), "_implementation") and "save" not in name
]


@pytest.mark.parametrize("name", DISPATCHED)
def test_every_function_of_arrays_works_or_is_refused(name: str) -> None:
    function = getattr(np, name)
    assert len(DISPATCHED) > 200
    for given in ((at,), (X,), (at, X), (at, 1), (at, np.zeros(3)), (at, 0, 1)):
        with (
            contextlib.suppress(TecompError), np.errstate(all="ignore"), warnings.catch_warnings(),
        ):
            # NumPy gives up some of its functions.
            warnings.simplefilter("ignore", DeprecationWarning)
            X.__array_function__(function, (), given, {})


def test_an_array_is_made_of_what_was_refused_to_be_a_number_before() -> None:
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
    given = [i if whole else X] * ufunc.nin
    made: Any = None
    told = f"np.{ufunc.__name__} of `A[i, j]`: {LATER}; "
    with contextlib.suppress(TecompError):
        made = ufunc(*given)
    if made is None:
        with pytest.raises(TecompError) as caught:
            ufunc(*given)
        assert caught.value.message.startswith(told)
        word = caught.value.message.removeprefix(told)
        assert not word.startswith("write te.") or hasattr(te, word.removeprefix("write te."))
    else:
        assert isinstance(made, te.Expr)
