"""Processes that run programs for the tests of a session."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.strategies.ranks import Pools


@pytest.fixture(scope="session")
def kernels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of kernels for all processes, most of which compute the same."""
    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent  # one for all workers
    return folder / "kernels"


@pytest.fixture(scope="session")
def pools(kernels: Path) -> Iterator[Pools]:
    """Processes that stay until the session ends."""
    made = Pools(kernels)
    yield made
    made.end()
