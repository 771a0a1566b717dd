"""Transposed copies equal NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import tecomp
from tecomp import te
from tecomp.schedules import transpose
from tests.strategies.fenced import call_fenced


def values(shape: tuple[int, ...], dtype: str = "float32") -> np.ndarray:
    return np.random.default_rng(0).integers(-100, 100, shape).astype(dtype)


def check(A: te.Tensor, a: np.ndarray, axes: tuple[int, ...] | None, target: tecomp.Target) -> None:
    B = transpose.define(A, axes)
    kernel = tecomp.build(transpose.schedule(B, target), [A, B])
    expected = a.transpose(axes)
    result = np.full(expected.shape, 111, a.dtype)
    call_fenced(kernel, a, result)

    np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("shape", [(1, 1), (2, 3), (7, 127), (64, 64), (130, 1000), (1023, 65)])
def test_matrices(shape: tuple[int, int], target: tecomp.Target) -> None:
    check(te.placeholder(shape, name="A"), values(shape), None, target)


@pytest.mark.exhaustive(keep=12, most=28)
@pytest.mark.parametrize(
    "axes",
    [(0, 1, 2), (0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0), (-1, 0, 1)],
)
@pytest.mark.parametrize("shape", [(5, 20, 33), (16, 3, 40)])
def test_axes(axes: tuple[int, ...], shape: tuple[int, ...], target: tecomp.Target) -> None:
    check(te.placeholder(shape, name="A"), values(shape), axes, target)


@pytest.mark.exhaustive(keep=43)
@pytest.mark.parametrize("axes", [(0, 1, 2), (0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0)])
@pytest.mark.parametrize("shape", [(16, 0, 33), (0, 16, 16), (16, 16, 0), (0, 0, 33), (33, 0, 0)])
def test_no_elements(
    shape: tuple[int, ...], axes: tuple[int, ...], target: tecomp.Target
) -> None:
    check(te.placeholder(shape, name="A"), values(shape), axes, target)


@pytest.mark.parametrize("axes", [(0, 2, 3, 1), (0, 3, 1, 2), (1, 0, 2, 3), (3, 2, 1, 0)])
def test_four_axes(axes: tuple[int, ...], target: tecomp.Target) -> None:
    shape = (2, 17, 5, 24)
    check(te.placeholder(shape, name="A"), values(shape), axes, target)


@pytest.mark.parametrize("dtype", ["int8", "float16", "float64", "bool"])
def test_types(dtype: str, target: tecomp.Target) -> None:
    check(te.placeholder((70, 90), dtype, name="A"), values((70, 90), dtype), None, target)


def test_few_axes(target: tecomp.Target) -> None:
    check(te.placeholder((9,), name="A"), values((9,)), None, target)
    check(te.placeholder((), name="A"), values(()), None, target)


@pytest.mark.exhaustive(keep=1)
def test_sizes_known_at_the_call(target: tecomp.Target) -> None:
    A = te.placeholder((te.var("n"), te.var("m")), name="A")
    for shape in ((1, 1), (40, 8), (33, 130)):
        check(A, values(shape), None, target)


@pytest.mark.parametrize("axes", [(0,), (0, 0), (0, 1, 2)])
def test_wrong_axes_are_refused(axes: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="axes=") as error:
        transpose.define(te.placeholder((4, 5), name="A"), axes)

    assert str(error.value) == (
        f"transpose.define: axes={axes} of 2 axes is not a permutation; pass each axis once"
    )


def test_formulas_that_do_more_than_move_are_no_tiles() -> None:
    """Formulas with arithmetic are not transposed in tiles, as each row would repeat their code."""
    A = te.placeholder((64, 48), name="A")

    def of(count: int) -> te.Tensor:
        def element(i: te.Expr, j: te.Expr) -> te.Expr:
            x = A[j, i]
            for k in range(count):
                x = x * 0.5 + te.if_then_else(i + k < 48, A[j, i + k], 0.0)
            return x

        return te.compute((48, 64), element, name="formula")

    assert [transpose.describe(of(count)) for count in (1, 4, 40)] == [0, 0, None]


def test_symbolic_extents_are_distinct(target: tecomp.Target) -> None:
    m = te.var("m")
    A = te.placeholder((16, m * m), name="A")
    B = te.compute((m * m, 4, 15), lambda i, j, k: A[j, i] + A[k, i], name="B")
    kernel = tecomp.build(transpose.schedule(B, target), [m, A, B])
    for size in (0, 1, 3, 9):
        a = np.random.default_rng(0).uniform(size=(16, size * size)).astype("float32")
        b = np.full((size * size, 4, 15), np.nan, np.float32)

        kernel(size, a, b)

        np.testing.assert_array_equal(b, a.T[:, :4, None] + a.T[:, None, :15])
