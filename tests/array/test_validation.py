"""Validation of options: arrays in place of scalars, and structures that contain themselves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tecomp.array as xp
from tecomp.array import Array
from tecomp.errors import ArrayTypeError, ArrayValueError
from tests.messages import Diagnostic, diagnostic

MANY = np.asarray([1.0, 2.0])
WORDS: dict[str, tuple[Callable[[Array, Any], Any], Diagnostic]] = {
    "indexing": (lambda x, v: xp.meshgrid(x, indexing=v), Diagnostic(
        "array-value", where="meshgrid", subject="indexing", value="[1. 2.]", name="'xy'",
        other_name="'ij'",
    )),
    "mode": (lambda x, v: xp.linalg.qr(x, mode=v), Diagnostic(
        "array-value", where="qr", subject="mode", value="[1. 2.]", name="'reduced'",
        other_name="'complete'",
    )),
    "norm": (lambda x, v: xp.fft.fft(x, norm=v), Diagnostic(
        "array-value", where="fft", subject="norm", value="[1. 2.]", name="'backward', 'ortho'",
        other_name="'forward'",
    )),
    "ord": (lambda x, v: xp.linalg.matrix_norm(xp.ones((2, 2)), ord=v), Diagnostic(
        "array-value", ord="[1. 2.]",
    )),
    "side": (lambda x, v: xp.searchsorted(x, x, side=v), Diagnostic(
        "array-value", where="searchsorted", subject="side", value="[1. 2.]", name="'left'",
        other_name="'right'",
    )),
}
FLAGS: dict[str, Callable[[Array, Any], Any]] = {
    "__array__ copy": lambda x, v: x.__array__(copy=v),
    "__dlpack__ copy": lambda x, v: x.__dlpack__(copy=v),
    "all keepdims": lambda x, v: xp.all(x, keepdims=v),
    "argmax keepdims": lambda x, v: xp.argmax(x, keepdims=v),
    "argsort descending": lambda x, v: xp.argsort(x, descending=v),
    "asarray copy": lambda x, v: xp.asarray([1.0], copy=v),
    "astype copy": lambda x, v: xp.astype(x, xp.float64, copy=v),
    "cholesky upper": lambda x, v: xp.linalg.cholesky(xp.ones((1, 1)), upper=v),
    "count_nonzero keepdims": lambda x, v: xp.count_nonzero(x, keepdims=v),
    "cumulative_sum include_initial": lambda x, v: xp.cumulative_sum(x, include_initial=v),
    "from_dlpack copy": lambda x, v: xp.from_dlpack(MANY, copy=v),
    "isin invert": lambda x, v: xp.isin(x, x, invert=v),
    "linspace endpoint": lambda x, v: xp.linspace(0, 1, 3, endpoint=v),
    "matrix_norm keepdims": lambda x, v: xp.linalg.matrix_norm(xp.ones((2, 2)), keepdims=v),
    "reshape copy": lambda x, v: xp.reshape(x, (2, 1), copy=v),
    "sort stable": lambda x, v: xp.sort(x, stable=v),
    "sum keepdims": lambda x, v: xp.sum(x, keepdims=v),
    "svd full_matrices": lambda x, v: xp.linalg.svd(xp.ones((2, 2)), full_matrices=v),
    "vector_norm keepdims": lambda x, v: xp.linalg.vector_norm(x, keepdims=v),
}


@pytest.mark.parametrize("name", FLAGS)
@pytest.mark.parametrize("value", [MANY, xp.asarray(MANY)], ids=["numpy", "ours"])
def test_an_array_is_neither_true_nor_false(name: str, value: Any) -> None:
    where, subject = name.split()

    with pytest.raises(ArrayTypeError) as error:
        FLAGS[name](xp.asarray(MANY), value)

    assert diagnostic(error.value) == Diagnostic(
        "array-type", where=where, subject=subject, value=str(value), type=type(value).__name__)


@pytest.mark.exhaustive(keep=17)
@pytest.mark.parametrize("name", FLAGS)
def test_an_array_of_one_element_may_be_one_value(name: str) -> None:
    result, expected = (FLAGS[name](xp.asarray(MANY), value) for value in (np.asarray([True]), True))

    if not isinstance(result, Array | np.ndarray | tuple):  # a capsule: memory without a text
        assert type(result) is type(expected)
        return
    for one, other in zip(*(x if isinstance(x, tuple) else (x,) for x in (result, expected)), strict=True):
        np.testing.assert_array_equal(np.asarray(one), np.asarray(other))
        assert (one.shape, one.dtype) == (other.shape, other.dtype)


@pytest.mark.parametrize("name", WORDS)
def test_an_array_is_no_word(name: str) -> None:
    call, expected = WORDS[name]

    with pytest.raises(ArrayValueError) as error:
        call(xp.asarray(MANY), MANY)

    assert diagnostic(error.value) == expected


def test_copy_may_be_falsy() -> None:
    with pytest.raises(ArrayValueError) as error:
        xp.asarray([1.0], copy=0)  # type: ignore[arg-type]

    assert diagnostic(error.value) == Diagnostic("copy-needed", where="asarray", type="list")


def itself(x: Array) -> list[Any]:
    found: list[Any] = [x]
    found += [found, found]
    return found


def deep(x: Array) -> Any:
    found: Any = x
    for _ in range(100_000):
        found = (found,)
    return found


@pytest.mark.parametrize("make", [itself, deep, lambda x: {"a": itself(x)}])
def test_structures_that_hold_themselves(make: Callable[[Array], Any]) -> None:
    def function(x: Array, source: Any = None) -> Any:
        return make(x) if source is None else x

    x = xp.ones(2)
    for args, subject in (((x,), "results"), ((x, make(x)), "arguments")):
        with pytest.raises(ArrayTypeError) as error:
            xp.jit(function)(*args)

        assert diagnostic(error.value) == (
            Diagnostic("array-type", where=f"jit function: {subject}", deepest=100)
        )
