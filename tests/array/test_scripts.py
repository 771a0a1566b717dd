"""Scripts for NumPy run with `tecomp.numpy`, and agree."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import tecomp.numpy as tnp
from tests.array.scripts import SCRIPTS
from tests.numerics import assert_close

CHEAP = {
    "dynamic_programming", "heat", "life", "number_formats",
    "running_totals", "sieve", "strided_views",
}
"""Scripts that compile few kernels."""


def values_of(results: Any) -> Iterator[Any]:
    """Yield the numbers, arrays and texts of nested results."""
    if isinstance(results, list | tuple):
        for result in results:
            yield from values_of(result)
    else:
        yield results


def check(script: Callable[[Any, int], Any]) -> None:
    size = SCRIPTS[script][0]
    found, expected = (list(values_of(script(module, size))) for module in (tnp, np))
    assert len(found) == len(expected) > 0
    for k, (actual, wanted) in enumerate(zip(found, expected, strict=True)):
        if isinstance(wanted, str):
            assert actual == wanted
            continue
        wanted = np.asarray(wanted)
        assert np.shape(actual) == wanted.shape
        magnitude = np.abs(wanted[np.isfinite(wanted)]).max(initial=1e-3)
        assert_close(np.asarray(actual), wanted, 1e-9, magnitude=magnitude, err_msg=f"result {k}")


@pytest.mark.numbers_alone
@pytest.mark.parametrize(
    "script", [f for f in SCRIPTS if f.__name__ in CHEAP], ids=lambda f: f.__name__)
def test_scripts_agree_with_numpy(script: Callable[[Any, int], Any]) -> None:
    check(script)


@pytest.mark.numbers_alone
@pytest.mark.exhaustive(most=len(SCRIPTS))
@pytest.mark.parametrize(
    "script", [f for f in SCRIPTS if f.__name__ not in CHEAP], ids=lambda f: f.__name__)
def test_longer_scripts_agree_with_numpy(script: Callable[[Any, int], Any]) -> None:
    check(script)
