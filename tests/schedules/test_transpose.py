"""Transposed copies are what NumPy makes of them."""

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
    wanted = a.transpose(axes)
    result = np.full(wanted.shape, 111, a.dtype)
    call_fenced(kernel, a, result)

    np.testing.assert_array_equal(result, wanted)


@pytest.mark.parametrize("shape", [(1, 1), (2, 3), (7, 127), (64, 64), (130, 1000), (1023, 65)])
def test_matrices(shape: tuple[int, int], target: tecomp.Target) -> None:
    check(te.placeholder(shape, name="A"), values(shape), None, target)


@pytest.mark.parametrize(
    "axes",
    [(0, 1, 2), (0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0), (-1, 0, 1)],
)
@pytest.mark.parametrize("shape", [(5, 20, 33), (16, 3, 40)])
def test_axes(axes: tuple[int, ...], shape: tuple[int, ...], target: tecomp.Target) -> None:
    check(te.placeholder(shape, name="A"), values(shape), axes, target)


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


def test_sizes_known_at_the_call(target: tecomp.Target) -> None:
    A = te.placeholder((te.var("n"), te.var("m")), name="A")
    for shape in ((1, 1), (40, 8), (33, 130)):
        check(A, values(shape), None, target)


@pytest.mark.parametrize("axes", [(0,), (0, 0), (0, 1, 2)])
def test_wrong_axes_are_refused(axes: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="axes=") as error:
        transpose.define(te.placeholder((4, 5), name="A"), axes)

    assert str(error.value) == (
        f"transpose.define: axes={axes} of 2 axes; name each axis once"
    )
