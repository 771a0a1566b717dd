"""Fixtures with processes that run programs for the tests of a session."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.strategies.ranks import Pools


@pytest.fixture(scope="session")
def kernels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a kernel cache directory for all processes, most of which compile the same kernels."""
    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent  # shared by all xdist workers
    return folder / "kernels"


@pytest.fixture(scope="session")
def pools(kernels: Path) -> Iterator[Pools]:
    """Provide processes that persist until the session ends."""
    result = Pools(kernels)
    yield result
    result.end()
