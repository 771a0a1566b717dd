"""Functions beside the standard agree with NumPy, also on empty arrays and in other dtypes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tecomp.array as xp
import tecomp.numpy as tnp
from tecomp.errors import ArrayValueError
from tests.messages import Diagnostic, diagnostic
from tests.numerics import assert_close

random = np.random.default_rng(7)
VECTOR = random.uniform(-3, 3, 11)
MATRIX = random.uniform(-3, 3, (4, 5))
HOLES = np.where(random.uniform(size=(4, 5)) < 0.3, np.nan, MATRIX)
HOLES[:, :2] = MATRIX[:, :2]
COUNTS = random.integers(0, 6, 12)
CALLS: dict[str, Callable[[Any, Any], Any]] = {
    "bincount": lambda m, a: m.bincount(a(COUNTS), minlength=9),
    "bincount weights": lambda m, a: m.bincount(a(COUNTS), a(np.arange(12.0))),
    "convolve": lambda m, a: m.convolve(a(VECTOR), a(VECTOR[:3]), mode="same"),
    "correlate": lambda m, a: m.correlate(a(VECTOR), a(VECTOR[:3]), mode="full"),
    "diag vector": lambda m, a: m.diag(a(VECTOR), -2),
    "diag empty": lambda m, a: m.diag(a(VECTOR[:0])),
    "diag matrix": lambda m, a: m.diag(a(MATRIX), 2),
    "diag below": lambda m, a: m.diag(a(MATRIX), -1),
    "diag outside": lambda m, a: m.diag(a(MATRIX), 9),
    "digitize": lambda m, a: m.digitize(a(VECTOR), a(np.array([-1.0, 0, 1])), right=True),
    "gradient": lambda m, a: m.gradient(a(VECTOR), 0.5),
    "gradient axes": lambda m, a: list(m.gradient(a(MATRIX), 2.0, 3.0)),
    "gradient integers": lambda m, a: m.gradient(a(COUNTS)),
    "gradient second": lambda m, a: m.gradient(a(VECTOR), edge_order=2),
    "histogram": lambda m, a: list(m.histogram(a(VECTOR), 4, range=(-2, 2))),
    "histogram2d": lambda m, a: list(m.histogram2d(a(VECTOR), a(VECTOR), 3)),
    "interp": lambda m, a: m.interp(a(VECTOR), a(np.array([-1.0, 0, 2])), a(np.array([3.0, 1, 2]))),
    "isclose": lambda m, a: m.isclose(a(HOLES), a(HOLES + 1e-9), equal_nan=True),
    "isclose infinite": lambda m, a: m.isclose(
        a(np.array([np.inf, -np.inf, 1])), a(np.array([np.inf, np.inf, np.inf]))),
    "kron": lambda m, a: m.kron(a(MATRIX), a(VECTOR[:2])),
    "kron matrices": lambda m, a: m.kron(a(MATRIX[:2, :2]), a(MATRIX[:3, :2])),
    "median": lambda m, a: m.median(a(MATRIX), axis=1, keepdims=True),
    "median integers": lambda m, a: m.median(a(COUNTS)),
    "nan_to_num": lambda m, a: m.nan_to_num(
        a(np.array([np.nan, np.inf, -np.inf, 1])), nan=2.0, posinf=9.0),
    "nan_to_num complex": lambda m, a: m.nan_to_num(a(np.array([complex(np.nan, np.inf), 1j]))),
    "nan_to_num integers": lambda m, a: m.nan_to_num(a(COUNTS)),
    "nanmax": lambda m, a: m.nanmax(a(HOLES), axis=1),
    "nanmean": lambda m, a: m.nanmean(a(HOLES), axis=0),
    "nanmin": lambda m, a: m.nanmin(a(HOLES), axis=0, keepdims=True),
    "nansum": lambda m, a: m.nansum(a(HOLES), axis=(0, 1)),
    "nansum integers": lambda m, a: m.nansum(a(COUNTS)),
    "pad": lambda m, a: m.pad(a(MATRIX), ((1, 2), (0, 3)), constant_values=7),
    "pad empty": lambda m, a: m.pad(a(MATRIX[:0]), 1),
    "pad ramp": lambda m, a: m.pad(a(VECTOR), 3, mode="linear_ramp", end_values=1.0),
    "pad edge": lambda m, a: m.pad(a(MATRIX), (2, 3), mode="edge"),
    "pad reflect": lambda m, a: m.pad(a(MATRIX), (2, 3), mode="reflect"),
    "pad symmetric": lambda m, a: m.pad(a(MATRIX), (2, 3), mode="symmetric"),
    "pad wrap": lambda m, a: m.pad(a(MATRIX), (2, 3), mode="wrap"),
    "percentile": lambda m, a: m.percentile(a(MATRIX), [10, 50, 90], axis=0),
    "percentile method": lambda m, a: m.percentile(a(VECTOR), 30, method="nearest"),
    "quantile": lambda m, a: m.quantile(a(MATRIX), 0.3),
    "trapezoid": lambda m, a: m.trapezoid(a(MATRIX), dx=0.5, axis=0),
    "trapezoid points": lambda m, a: m.trapezoid(a(MATRIX), a(np.sort(VECTOR[:5]))),
    "trapezoid point arrays": lambda m, a: m.trapezoid(a(MATRIX), a(np.sort(MATRIX, axis=0)), axis=0),
    "tri": lambda m, a: m.tri(3, 4, k=1),
    "vander": lambda m, a: m.vander(a(VECTOR), 3),
    "vander integers": lambda m, a: m.vander(a(COUNTS), increasing=True),
}


def parts_of(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else [value]


@pytest.mark.numbers_alone
@pytest.mark.parametrize("name", CALLS)
def test_functions_agree_with_numpy(name: str) -> None:
    actual = parts_of(CALLS[name](xp, xp.asarray))
    expected = parts_of(CALLS[name](np, np.asarray))
    assert len(actual) == len(expected)
    for found, wanted in zip(actual, expected, strict=True):
        assert isinstance(found, xp.Array)
        wanted = np.asarray(wanted)
        assert (found.shape, found.dtype) == (wanted.shape, wanted.dtype)
        if wanted.dtype.kind in "fc":
            finite = np.abs(wanted[np.isfinite(wanted)])
            assert_close(np.asarray(found), wanted, 1e-14, magnitude=finite.max(initial=1.0))
        else:
            np.testing.assert_array_equal(np.asarray(found), wanted)


@pytest.mark.numbers_alone
@pytest.mark.parametrize("name", ["nanvar", "nanstd"])
def test_deviations_without_nan_agree_with_numpy(name: str) -> None:
    for correction in (0, 1):
        found = getattr(xp, name)(xp.asarray(HOLES), axis=1, correction=correction)
        wanted = getattr(np, name)(HOLES, axis=1, ddof=correction)
        assert_close(np.asarray(found), wanted, 1e-14, magnitude=9)


def test_slices_of_nan_alone_give_nan() -> None:
    x = xp.asarray(np.array([[np.nan, np.nan], [1.0, np.nan]]))
    for name in ("nanmax", "nanmin", "nanmean"):
        found = np.asarray(getattr(xp, name)(x, axis=1))
        np.testing.assert_array_equal(found, [np.nan, 1.0], err_msg=name)


@pytest.mark.numbers_alone
@pytest.mark.parametrize("name", ["cov", "corrcoef"])
def test_matrices_of_variables_agree_with_numpy(name: str) -> None:
    for data, rowvar in ((MATRIX, True), (MATRIX, False), (VECTOR, True), (MATRIX + 1j * MATRIX[::-1], True)):
        found = np.asarray(getattr(xp, name)(xp.asarray(data), rowvar=rowvar))
        wanted = getattr(np, name)(data, rowvar=rowvar)
        assert found.shape == wanted.shape
        assert_close(found, wanted, 1e-14, magnitude=20)


EQUATIONS = [
    ("bhid,bhjd->bhij", [(2, 2, 3, 4), (2, 2, 5, 4)]), ("ij->ji", [(3, 4)]), ("ij->", [(3, 4)]), ("ii->i", [(4, 4)]), ("ii", [(4, 4)]),
    ("ij,jk", [(3, 4), (4, 5)]), ("ij,kj->ik", [(3, 4), (5, 4)]), ("i,i", [(4,), (4,)]),
    ("i,j->ij", [(3,), (4,)]), ("bij,bjk->bik", [(2, 3, 4), (2, 4, 5)]),
    ("ij,j->i", [(3, 4), (4,)]), ("ij,ij->i", [(3, 4), (3, 4)]), ("...ij,...jk->...ik", [(2, 3, 4), (4, 5)]),
    ("ijk,jil->kl", [(3, 4, 5), (4, 3, 2)]), ("ij,jk,kl->il", [(3, 4), (4, 5), (5, 2)]),
    ("a,ab,abc->abc", [(2,), (2, 3), (2, 3, 4)]), ("ij,jk", [(3, 0), (0, 5)]),
    ("iij->j", [(3, 3, 2)]), ("...i->...", [(2, 3)]),
    ("ik,jk,lk->ijl", [(2, 3), (4, 3), (5, 3)]), ("ij,jk", [(3, 1), (4, 5)]),
]


@pytest.mark.numbers_alone
@pytest.mark.exhaustive(keep=9, most=len(EQUATIONS))
@pytest.mark.parametrize(("text", "shapes"), EQUATIONS)
def test_contractions_agree_with_numpy(text: str, shapes: list[tuple[int, ...]]) -> None:
    operands = [random.uniform(-1, 1, shape) for shape in shapes]
    found, wanted = xp.einsum(text, *map(xp.asarray, operands)), np.einsum(text, *operands)
    assert found.shape == wanted.shape
    terms = np.einsum(text, *map(np.abs, operands))
    assert_close(np.asarray(found), wanted, 1e-14, magnitude=terms)


def test_contractions_of_integers_and_booleans() -> None:
    a, b = random.integers(-9, 9, (3, 4)), random.integers(0, 2, (4, 2)).astype(bool)
    found = xp.einsum("ij,jk->ik", xp.asarray(a), xp.asarray(b))
    np.testing.assert_array_equal(np.asarray(found), np.einsum("ij,jk->ik", a, b.astype(int)))


def test_a_chain_is_contracted_in_pairs() -> None:
    """The product of a row, a matrix and a column never builds a matrix of all products."""
    size = 3000
    row, matrix = xp.ones(size), xp.ones((size, size))
    assert float(xp.einsum("i,ij,j->", row, matrix, row)) == size**2


@pytest.mark.parametrize("text", ["ij", "i,j", "ijk", "ij->k", "i1"])
def test_equations_that_do_not_match(text: str) -> None:
    with pytest.raises(ArrayValueError) as caught:
        xp.einsum(text, xp.ones((2, 3)), *[xp.ones(2)] * (text == "ij"))
    shapes = [(2, 3), *[(2,)] * (text == "ij")]
    assert diagnostic(caught.value) == Diagnostic("array-shapes", subscripts=text, shapes=shapes)


REFUSED: list[tuple[Callable[[], Any], Diagnostic]] = [
    (lambda: xp.pad(xp.ones((2, 3)), -1), Diagnostic("array-shapes", rank=2, width=-1)),
    (lambda: xp.gradient(xp.ones(1)), Diagnostic("array-shapes", axis=0, shape=(1,))),
    (lambda: xp.gradient(xp.ones((3, 3, 3)), 1.0, 2.0), Diagnostic("array-shapes", steps=2, axes=3)),
    (lambda: xp.diag(xp.ones((2, 2, 2))), Diagnostic("array-shapes", shape=(2, 2, 2))),
    (lambda: xp.einsum("ii", xp.ones((2, 3))), Diagnostic("array-shapes", letter="i", rows=2, extent=3)),
    (lambda: tnp.split(tnp.ones(5), 2), Diagnostic("array-shapes", axis=0, extent=5, count=2)),
    (lambda: tnp.array_split(tnp.ones(5), 0), Diagnostic("array-value", count=0)),
]


@pytest.mark.parametrize(("call", "expected"), REFUSED)
def test_bad_arguments(call: Callable[[], Any], expected: Diagnostic) -> None:
    with pytest.raises(ArrayValueError) as caught:
        call()
    assert diagnostic(caught.value) == expected


def test_calls_of_numpy_are_counted_and_not_recorded() -> None:
    counters = xp.statistics.counters
    before = counters.libraries["numpy.median"]
    fast = xp.jit(lambda x: xp.median(x) + 1)
    assert [float(fast(xp.asarray(VECTOR))) for _ in range(2)] == [np.median(VECTOR) + 1] * 2
    assert counters.libraries["numpy.median"] == before + 2


def test_calls_of_numpy_keep_the_device() -> None:
    x = xp.asarray(VECTOR.astype("float32"), device="stick128")
    assert xp.median(x).device == "stick128"
    assert xp.median(x).dtype.name == "float32"
    assert xp.bincount(xp.asarray(COUNTS.astype("int32"), device="stick128")).dtype == np.int32


def test_arguments_of_numpy_by_position_agree() -> None:
    condition, values = [True, False, True], [5.0, 6.0, 7.0]
    np.testing.assert_array_equal(np.asarray(tnp.compress(condition, values)), [5.0, 7.0])
    np.testing.assert_array_equal(
        np.asarray(tnp.array(values).compress(condition)), np.array(values).compress(condition))
    upper = np.array([[1.0, 2.0 + 1j], [0.0, 3.0]])
    eigenvalues: Any = np.linalg.eigvalsh
    for halves in ((), ("L",), ("U",)):
        found = tnp.linalg.eigvalsh(upper, *halves)
        assert_close(np.asarray(found), eigenvalues(upper, *halves), 1e-12)
    means = tnp.average(tnp.ones((2, 3)), axis=0, returned=True)
    expected = np.average(np.ones((2, 3)), axis=0, returned=True)
    for x, y in zip(means, expected, strict=True):
        np.testing.assert_array_equal(np.asarray(x), y)
