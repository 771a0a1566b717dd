"""Fourier transforms beside NumPy's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tecomp.array as xp
from tecomp.errors import ArrayIndexError, ArrayTypeError, ArrayValueError
from tests.array.drawn import array, check, draw

REAL, COMPLEX = ["float32", "float64"], ["complex64", "complex128"]
ONE = {
    "fft": [*REAL, *COMPLEX], "ifft": [*REAL, *COMPLEX], "rfft": REAL, "irfft": [*REAL, *COMPLEX],
    "hfft": [*REAL, *COMPLEX], "ihfft": REAL,
}
MANY = {"fftn": [*REAL, *COMPLEX], "ifftn": [*REAL, *COMPLEX], "rfftn": REAL, "irfftn": COMPLEX}
NORMS = ["backward", "ortho", "forward"]


@pytest.mark.parametrize(("name", "dtype"), [(n, d) for n, ds in ONE.items() for d in ds])
def test_transforms_along_an_axis(name: str, dtype: str) -> None:
    x = draw((4, 6), dtype)
    for k, axis in enumerate((-1, 0)):
        for n in (None, 3, 9):
            got = getattr(xp.fft, name)(array(x), n=n, axis=axis, norm=NORMS[k])
            check(got, getattr(np.fft, name)(x, n, axis, NORMS[k]))


@pytest.mark.parametrize(("name", "dtype"), [(n, d) for n, ds in MANY.items() for d in ds])
def test_transforms_along_several_axes(name: str, dtype: str) -> None:
    x = draw((3, 4, 6), dtype)
    for s, axes in [
        (None, None), (None, (0, 2)), ((2, 5), (1, -1)), ((3, 4, 4), (0, 1, 2)), (None, (-1,)),
    ]:
        got = getattr(xp.fft, name)(array(x), s=s, axes=axes, norm="ortho")
        check(got, getattr(np.fft, name)(x, s, axes, "ortho"))
    check(getattr(xp.fft, name)(array(x), s=(2, 4)), getattr(np.fft, name)(x, (2, 4), (-2, -1)))


@pytest.mark.parametrize("name", ["fftfreq", "rfftfreq"])
@pytest.mark.parametrize("n", [1, 4, 7])
def test_frequencies(name: str, n: int) -> None:
    check(getattr(xp.fft, name)(n, d=0.25), getattr(np.fft, name)(n, 0.25))
    got = getattr(xp.fft, name)(n, dtype=xp.asarray([1], dtype=np.float32).dtype, device="cpu")
    check(got, getattr(np.fft, name)(n).astype("float32"))


@pytest.mark.parametrize("name", ["fftshift", "ifftshift"])
@pytest.mark.parametrize("axes", [None, 0, (0, -1), ()])
def test_shifts(name: str, axes: Any) -> None:
    for dtype in ("int16", "complex64"):
        x = draw((3, 4), dtype)
        check(getattr(xp.fft, name)(array(x), axes=axes), getattr(np.fft, name)(x, axes))


def test_refusals() -> None:
    x: Any = array(np.zeros((2, 3), "complex64"))
    no_norm: Any = "half"
    refused_calls: list[tuple[Callable[[], Any], type[Exception], str]] = [
        (lambda: xp.fft.rfft(x), ArrayTypeError,
         "rfft: the elements are complex64, and it takes float32, float64; convert them, "
         "xp.astype(x, dtype)"),
        (lambda: xp.fft.fft(x, axis=2), ArrayIndexError,
         "fft: axis is 2 of 2 axes; there are from -2 to 1"),
        (lambda: xp.fft.fft(x, n=0), ArrayValueError,
         "fft: 0 elements are transformed along axis 1 of shape (2, 3); give one at least"),
        (lambda: xp.fft.fft(x, norm=no_norm), ArrayValueError,
         "fft: norm is 'half'; give 'backward', 'ortho' or 'forward'"),
        (lambda: xp.fft.fftn(x, s=(1, 2), axes=(0,)), ArrayValueError,
         "fftn: s is (1, 2) for axes (0,); give a size for each axis"),
        (lambda: xp.fft.fftn(array(np.zeros(()))), ArrayValueError,
         "fftn: x has shape (), and no axis to transform along; give one"),
        (lambda: xp.fft.fftfreq(0), ArrayValueError,
         "fftfreq: n is 0 and d is 1.0; give 1 or more, and not 0"),
        (lambda: xp.fft.fftfreq(3, d=no_norm), ArrayTypeError,
         "fftfreq: d is 'half', str; give a real number"),
        (lambda: xp.fft.rfftfreq(3, d=10**400), ArrayValueError,
         "rfftfreq: d is more than a float holds; give a smaller one"),
        (lambda: xp.fft.fftfreq(3, dtype=np.int32), ArrayTypeError,
         "fftfreq: dtype is int32, and it takes float16, bfloat16, float32, float64"),
    ]
    for call, kind, message in refused_calls:
        with pytest.raises(kind) as refused:
            call()
        assert getattr(refused.value, "message", "") == message
