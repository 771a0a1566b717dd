"""Targets that schedules are tried on."""

from __future__ import annotations

import pytest

import tecomp

CPU = tecomp.Target.load("cpu")
SMALL = tecomp.Target(
    "small", "a core with small caches, so that little sizes are cut into many blocks",
    CPU.memories, tecomp.Core(2, 16, 16, (256, 8192)),
)


@pytest.fixture(params=[CPU, SMALL], ids=["cpu", "small"])
def target(request: pytest.FixtureRequest) -> tecomp.Target:
    """The machine at hand, and one whose small caches cut little sizes into many blocks."""
    chosen: tecomp.Target = request.param
    return chosen
