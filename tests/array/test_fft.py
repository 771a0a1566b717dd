"""Fourier transforms agree with NumPy."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tecomp.array as xp
from tecomp.errors import ArrayIndexError, ArrayTypeError, ArrayValueError
from tests.array.drawn import array, check, draw
from tests.messages import Diagnostic, diagnostic
from tests.strategies.dtypes import standard

REAL, COMPLEX = standard("real floating"), standard("complex floating")
PARAMETERS = {name: {*inspect.signature(getattr(xp.fft, name)).parameters} for name in xp.fft.__all__}


def having(parameters: str) -> list[str]:
    """Return the functions with the given parameters."""
    return [name for name, names in PARAMETERS.items() if {*parameters.split()} == names]


def dtypes_of(name: str) -> tuple[str, ...]:
    """Return the dtypes of arguments; transforms of real numbers do not take complex ones."""
    return REAL if name.startswith(("rfft", "ihfft")) else (*REAL, *COMPLEX)


ONE, MANY = having("x n axis norm"), having("x s axes norm")
NORMS = ["backward", "ortho", "forward"]


@pytest.mark.parametrize(("name", "dtype"), [(n, d) for n in ONE for d in dtypes_of(n)])
def test_transforms_along_an_axis(name: str, dtype: str) -> None:
    x = draw((4, 6), dtype)
    for k, axis in enumerate((-1, 0)):
        for n in (None, 3, 9):
            actual = getattr(xp.fft, name)(array(x), n=n, axis=axis, norm=NORMS[k])
            check(actual, getattr(np.fft, name)(x, n, axis, NORMS[k]))


@pytest.mark.parametrize(("name", "dtype"), [(n, d) for n in MANY for d in dtypes_of(n)])
def test_transforms_along_several_axes(name: str, dtype: str) -> None:
    x = draw((3, 4, 6), dtype)
    for s, axes in [
        (None, None), (None, (0, 2)), ((2, 5), (1, -1)), ((3, 4, 4), (0, 1, 2)), (None, (-1,)),
    ]:
        actual = getattr(xp.fft, name)(array(x), s=s, axes=axes, norm="ortho")
        check(actual, getattr(np.fft, name)(x, s, axes, "ortho"))
    check(getattr(xp.fft, name)(array(x), s=(2, 4)), getattr(np.fft, name)(x, (2, 4), (-2, -1)))


@pytest.mark.parametrize("name", having("n d dtype device"))
@pytest.mark.parametrize("n", [1, 4, 7])
def test_frequencies(name: str, n: int) -> None:
    check(getattr(xp.fft, name)(n, d=0.25), getattr(np.fft, name)(n, 0.25))
    actual = getattr(xp.fft, name)(n, dtype=xp.asarray([1], dtype=np.float32).dtype, device="cpu")
    check(actual, getattr(np.fft, name)(n).astype("float32"))


@pytest.mark.parametrize("name", having("x axes"))
@pytest.mark.parametrize("axes", [None, 0, (0, -1), ()])
def test_shifts(name: str, axes: Any) -> None:
    for dtype in ("int16", "complex64"):
        x = draw((3, 4), dtype)
        check(getattr(xp.fft, name)(array(x), axes=axes), getattr(np.fft, name)(x, axes))


def test_refusals() -> None:
    x: Any = array(np.zeros((2, 3), "complex64"))
    no_norm: Any = "half"
    refused_calls: list[tuple[Callable[[], Any], type[Exception], Diagnostic]] = [
        (lambda: xp.fft.rfft(x), ArrayTypeError,
         Diagnostic(
             "array-type", where="rfft", subject="the element dtype is", dtype="complex64",
             supported="float32, float64",
         )),
        (lambda: xp.fft.fft(x, axis=2), ArrayIndexError,
         Diagnostic(
             "array-index", where="fft", subject="axis", value=2, rank=2, numbers="from -2 to 1",
         )),
        (lambda: xp.fft.fft(x, n=0), ArrayValueError,
         Diagnostic("array-value", where="fft", count=0, axis=1, shape=(2, 3))),
        (lambda: xp.fft.fft(x, norm=no_norm), ArrayValueError,
         Diagnostic(
             "array-value", where="fft", subject="norm", value="half", name="'backward', 'ortho'",
             other_name="'forward'",
         )),
        (lambda: xp.fft.fftn(x, s=(1, 2), axes=(0,)), ArrayValueError,
         Diagnostic("array-value", where="fftn", sizes=(1, 2), axes=(0,))),
        (lambda: xp.fft.fftn(array(np.zeros(()))), ArrayValueError,
         Diagnostic("array-shapes", where="fftn", shape=())),
        (lambda: xp.fft.fftfreq(0), ArrayValueError,
         Diagnostic("array-value", where="fftfreq", count=0, d=1.0)),
        (lambda: xp.fft.fftfreq(3, d=no_norm), ArrayTypeError,
         Diagnostic("array-type", where="fftfreq", d="half", type="str")),
        (lambda: xp.fft.rfftfreq(3, d=10**400), ArrayValueError,
         Diagnostic("array-value", where="rfftfreq")),
        (lambda: xp.fft.fftfreq(3, dtype=np.int32), ArrayTypeError,
         Diagnostic(
             "array-type", where="fftfreq", name="int32",
             floats="float16, bfloat16, float32, float64",
         )),
    ]
    for call, kind, expected in refused_calls:
        with pytest.raises(kind) as refused:
            call()
        assert diagnostic(refused.value) == expected
