"""The namespace of each version of the standard."""

from __future__ import annotations

import numpy as np
import pytest

import tecomp.array as xp
from tecomp.errors import ArrayValueError
from tests.messages import Diagnostic, diagnostic


def test_versions() -> None:
    x = xp.ones(3)
    assert xp.__array_api_version__ == "2024.12"
    for version in (None, "2021.12", "2024.12"):
        assert x.__array_namespace__(api_version=version) is xp
    newest = x.__array_namespace__(api_version="2025.12")
    assert newest.__array_api_version__ == "2025.12"
    with pytest.raises(ArrayValueError) as caught:
        x.__array_namespace__(api_version="2019.01")
    assert diagnostic(caught.value) == (
        Diagnostic(
            "array-value", version="2019.01",
            versions="2021.12, 2022.12, 2023.12, 2024.12, 2025.12",
        )
    )


def test_results_that_are_tuples_in_the_newest_version() -> None:
    newest = xp.ones(3).__array_namespace__(api_version="2025.12")
    x, y = xp.arange(3), xp.arange(2)
    assert isinstance(xp.meshgrid(x, y), list)
    for one, other in (
        (newest.meshgrid(x, y), np.meshgrid(np.arange(3), np.arange(2))),
        (newest.broadcast_arrays(x, y[:, None]),
         np.broadcast_arrays(np.arange(3), np.arange(2)[:, None])),
    ):
        assert isinstance(one, tuple)
        for actual, expected in zip(one, other, strict=True):
            np.testing.assert_array_equal(np.asarray(actual), expected)
    assert "cpu" in newest.__array_namespace_info__().devices()
    assert isinstance(newest.__array_namespace_info__().devices(), tuple)
    assert newest.sin is xp.sin
    assert {"meshgrid", "isin", "broadcast_shapes"} <= {*dir(newest)}
