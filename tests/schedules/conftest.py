"""Targets that schedules are tried on."""

from __future__ import annotations

import pytest

import tecomp
from tests.strategies.machines import CORES


@pytest.fixture(params=CORES, ids=[core.name for core in CORES])
def target(request: pytest.FixtureRequest) -> tecomp.Target:
    """The machine at hand, and one whose small caches cut little sizes into many blocks."""
    chosen: tecomp.Target = request.param
    return chosen
