"""Differences of adjacent elements agree with NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import tecomp.array as xp
from tecomp.errors import ArrayValueError
from tests.array.drawn import NUMBERS, array, check, draw
from tests.messages import Diagnostic, diagnostic


@pytest.mark.exhaustive(keep=2)
@pytest.mark.parametrize("dtype", NUMBERS)
def test_differences(dtype: str) -> None:
    x, n = draw((3, 5), dtype), NUMBERS.index(dtype) % 3
    check(xp.diff(array(x), n=n), np.diff(x, n))
    check(xp.diff(array(x), axis=0, prepend=array(x[:1])), np.diff(x, axis=0, prepend=x[:1]))
    both = xp.diff(array(x), append=array(x[:, :2].copy()), prepend=array(x[:, :1].copy()))
    check(both, np.diff(x, append=x[:, :2], prepend=x[:, :1]))


@pytest.mark.parametrize("shape", [(0,), (1,), (2, 0)])
def test_differences_of_few_elements(shape: tuple[int, ...]) -> None:
    x = draw(shape, "float32")
    for n in (0, 1, 4):
        check(xp.diff(array(x), n=n), np.diff(x, n))


def test_repetitions_may_be_positional() -> None:
    x = draw((3, 5), "float64")
    check(xp.diff(array(x), 2, axis=0), np.diff(x, 2, axis=0))


def test_refusals() -> None:
    with pytest.raises(ArrayValueError) as refused:
        xp.diff(array(np.zeros(3)), n=-1)
    assert diagnostic(refused.value) == Diagnostic("array-value", times=-1)
