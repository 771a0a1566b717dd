"""Targets on which schedules are tested."""

from __future__ import annotations

import pytest

import tecomp
from tests.strategies.machines import CORES


@pytest.fixture(params=CORES, ids=[core.name for core in CORES])
def target(request: pytest.FixtureRequest) -> tecomp.Target:
    """Return the host target, or a target whose small caches split small sizes into many blocks."""
    chosen: tecomp.Target = request.param
    return chosen
