"""NumPy functions called with our arrays return our arrays or raise an error."""

from __future__ import annotations

from collections.abc import Callable
from inspect import signature
from typing import Any
from zlib import crc32

import numpy as np
import pytest

import tecomp.array as xp
from tecomp.array import Array
from tecomp.array.interop import numpy_dispatch
from tecomp.errors import ArrayTypeError
from tests.array.conformance.calls import MAKERS
from tests.array.conformance.draws import Draw
from tests.array.conformance.tries import fault_of
from tests.messages import Diagnostic, diagnostic


def numpys(name: str) -> Any:
    place: Any = np
    for part in name.split("."):
        place = getattr(place, part, None)
    return place


WITHOUT_ARRAYS = {
    "arange", "broadcast_shapes", "can_cast", "eye", "fft.fftfreq", "fft.rfftfreq", "full",
    "linspace", "ones", "result_type", "zeros",
}


def is_numpys(name: str) -> bool:
    """Return whether NumPy's function with that name takes the arguments of a random call."""
    if name in WITHOUT_ARRAYS or numpys(name) is None:
        return False
    return MAKERS[name](Draw([0, crc32(name.encode())]), name).oracle is None


DRAWN = [name for name in MAKERS if is_numpys(name)]


@pytest.mark.exhaustive(keep=9)
@pytest.mark.parametrize("name", DRAWN)
def test_drawn_calls_of_numpys_functions(name: str) -> None:
    for k in range(2):
        assert fault_of(name, (11, k), namespace=np) == ""


DISPATCHED = {
    f"{value.__module__}.{value.__name__}".removeprefix("numpy.")
    for module in (np, np.fft, np.linalg) for value in vars(module).values()
    if hasattr(value, "_implementation")
}
"""Names of NumPy functions that dispatch on the class of their arguments."""


def equivalents() -> set[str]:
    """Return the names of the functions of the namespace that replace NumPy functions."""
    names = {numpy_dispatch._ALIASES.get(name, name) for name in DISPATCHED}
    return {name for name in names if numpy_dispatch.equivalent_of(name, xp)}


def test_calls_are_drawn_of_most_functions() -> None:
    assert len(DRAWN) > 100
    assert len(equivalents()) > 70
    assert {*numpy_dispatch._ALIASES} - {"amax", "amin", "around"} <= DISPATCHED
    drawn = {*MAKERS, *ELSEWHERE}
    assert {name for name in equivalents() if name.removeprefix("linalg.") not in drawn} <= drawn


ELSEWHERE = {
    *["allclose", "array_equal", "bincount", "convolve", "corrcoef", "correlate", "cov", "diag", "digitize", "einsum", "gradient", "histogram", "histogram2d", "interp", "isclose", "kron", "median", "nan_to_num", "nanmax", "nanmean", "nanmin", "nanstd", "nansum", "nanvar", "pad", "percentile", "quantile", "trapezoid", "vander"],
    "empty_like", "linalg.eig", "linalg.eigh", "linalg.eigvals", "linalg.qr", "linalg.svd",
    "linalg.tensordot",
}
"""Functions whose results are not unique or unspecified, and those of test_numerical.py."""


@pytest.mark.exhaustive(keep=52)
@pytest.mark.parametrize("dtype", ["bool", "int32", "float64", "complex128"])
@pytest.mark.parametrize("name", sorted({
    value.__name__ for value in vars(np).values() if isinstance(value, np.ufunc)}))
def test_universal_functions_give_arrays_or_are_refused(name: str, dtype: str) -> None:
    ufunc = getattr(np, name)
    data = [np.array([[1, 2], [3, 4]]).astype(dtype) for _ in range(ufunc.nin)]
    if name not in numpy_dispatch._UFUNCS:
        with pytest.raises(ArrayTypeError) as caught:
            ufunc(*map(xp.asarray, data))
        assert diagnostic(caught.value) == Diagnostic("not-an-array", where=f"np.{name}", remedy="")
        return
    try:
        actual = ufunc(*map(xp.asarray, data))
    except ArrayTypeError:  # unsupported dtype, which the tests of the function cover
        return
    assert isinstance(actual, Array)
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(np.asarray(actual), ufunc(*data), rtol=1e-12)


X = np.array([[3.0, 1.0, 2.0], [6.0, 5.0, 4.0]])


@pytest.mark.exhaustive(keep=10)
@pytest.mark.parametrize("call", [
    lambda x: np.sum(x, 0), lambda x: np.sum(x, axis=1, keepdims=True, out=None),
    lambda x: np.mean(x, (0, 1)), lambda x: np.std(x, ddof=1), lambda x: np.var(x, correction=1),
    lambda x: np.concatenate([x, x]), lambda x: np.concatenate((x, x), 1), lambda x: np.stack([x, x], 2),
    lambda x: np.clip(x, 2, 4), lambda x: np.clip(x, max=3), lambda x: np.transpose(x),
    lambda x: np.transpose(x[None], (2, 0, 1)), lambda x: np.swapaxes(x[None], 0, 2),
    lambda x: np.squeeze(x[:1]), lambda x: np.ravel(x), lambda x: np.unique(x > 2),
    lambda x: np.unique(np.where(x > 2, float("nan"), x)), lambda x: np.where(x > 2, x, 0),
    lambda x: np.sort(x, 0, kind="stable"), lambda x: np.argsort(x, stable=True),
    lambda x: np.argmax(x, 1), lambda x: np.amax(x, 0), lambda x: np.cumsum(x, 1),
    lambda x: np.diff(x, 1, 0), lambda x: np.reshape(x, (3, 2)), lambda x: np.moveaxis(x, 0, 1),
    lambda x: np.broadcast_to(x, (2, 2, 3)), lambda x: np.zeros_like(x), lambda x: np.ones_like(x, int),
    lambda x: np.full_like(x, 7), lambda x: np.tile(x, (2, 1)), lambda x: np.repeat(x, 2, 1),
    lambda x: np.roll(x, 1), lambda x: np.flip(x, 1), lambda x: np.round(x / 4), lambda x: np.tril(x, 1),
    lambda x: np.searchsorted(np.sort(x[0]), x[1], "right"), lambda x: np.isin(x, x[0]),
    lambda x: np.count_nonzero(x > 2, 1), lambda x: np.tensordot(x, x, ([1], [1])),
    lambda x: np.fft.fft(x, 4), lambda x: np.fft.rfftn(x), lambda x: np.linalg.inv(x[:, :2]),
    lambda x: np.linalg.vecdot(x, x), lambda x: np.linalg.matmul(x, x.T),
    lambda x: np.linalg.svd(x, compute_uv=True)[1], lambda x: np.linalg.solve(x[:, :2], x),
    lambda x: np.meshgrid(x[0], x[1])[1], lambda x: np.take_along_axis(x, np.argsort(x), 1),
    lambda x: np.nonzero(x > 2)[0], lambda x: np.vecdot(x, x), lambda x: np.float64(2) / x,
    lambda x: np.imag(x * 1j), lambda x: np.astype(x, np.int8), lambda x: x.astype("int8"),
])
def test_arguments_match_numpy(call: Callable[[Any], Any]) -> None:
    actual, expected = call(xp.asarray(X)), call(X)
    assert isinstance(actual, Array)
    assert (actual.dtype, actual.shape) == (expected.dtype, expected.shape)
    np.testing.assert_allclose(np.asarray(actual), expected, rtol=1e-12)


def test_parameters_without_a_signature() -> None:
    """Functions in C have no signature before NumPy 2.4; arguments then match by position."""
    with pytest.raises(ValueError, match="signature"):
        signature(max)

    names = numpy_dispatch._parameters(max, xp.where).names

    assert [*names.items()] == [(name, name) for name in ("condition", "x1", "x2")]


def test_numpy_shape_and_dtype_need_no_evaluation() -> None:
    pending = xp.asarray(X) + 1
    assert (np.shape(pending), np.ndim(pending), np.size(pending)) == ((2, 3), 2, 6)
    assert np.result_type(pending, np.complex64) == np.complex128
    assert not np.iscomplexobj(pending)
    assert pending._node.op is not None


def test_elements_are_compared_and_converted() -> None:
    x = xp.asarray(X)
    assert np.array_equal(x, X)
    assert np.allclose(x, X + 1e-12)
    np.testing.assert_array_equal(x, X)
    for copied in (np.atleast_2d(x), np.copy(x)):
        assert type(copied) is np.ndarray
        copied[0, 0] = 99.0
    assert float(x[0, 0]) == 3.0


def test_small_arrays_are_copied_and_large_ones_are_read_only() -> None:
    small, large = xp.ones(2048) + 1, xp.ones(2049) + 1
    data = np.asarray(small)
    data[0] = 99.0
    assert float(small[0]) == 2.0
    assert not np.asarray(large).flags.writeable
    assert np.shares_memory(np.asarray(large), np.asarray(large))
    assert not np.asarray(small, copy=False).flags.writeable


REFUSED: dict[str, tuple[Callable[[Any], Any], Diagnostic]] = {
    "unwrap": (np.unwrap, Diagnostic("not-an-array", where="np.unwrap", remedy="")),
    "vectorize": (lambda x: np.hstack([x, x]),
                  Diagnostic(
                      "not-an-array", where="np.hstack",
                      remedy="write xp.concat or xp.stack with an axis, or ",
                  )),
    "fmod": (lambda x: np.fmod(x, 2), Diagnostic("not-an-array", where="np.fmod", remedy="")),
    "out": (lambda x: np.add(x, 1, out=x), Diagnostic(
        "array-type", where="np.add", function="add", argument="out",
    )),
    "where": (lambda x: np.sum(x, where=x > 1), Diagnostic(
        "array-type", where="np.sum", function="sum", argument="where",
    )),
    "decimals": (lambda x: np.round(x, 2), Diagnostic(
        "array-type", where="np.round", function="round", argument="decimals",
    )),
    "reduce": (np.add.reduce, Diagnostic(
        "array-type", where="np.add", method="reduce", functions="xp.sum",
    )),
    "outer": (lambda x: np.add.outer(x, x), Diagnostic(
        "array-type", where="np.add", method="outer", functions="functions of xp",
    )),
    "mixed": (lambda x: np.concatenate([x, X]), Diagnostic(
        "not-an-array", where="concat", subject="array 1", type="ndarray",
    )),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refusals(name: str) -> None:
    call, expected = REFUSED[name]
    with pytest.raises(ArrayTypeError) as caught:
        call(xp.asarray(X))
    assert diagnostic(caught.value) == expected
