"""A run without arguments collects every directory of tests."""

from __future__ import annotations

from fnmatch import fnmatch
from pathlib import Path

import pytest

ROOT = Path(__file__).parent


def test_no_directory_of_tests_is_left_out(request: pytest.FixtureRequest) -> None:
    """By default pytest leaves out directories named `build`, `dist` and `venv`."""
    patterns = request.config.getini("norecursedirs")
    names = {name for path in ROOT.rglob("test_*.py") for name in path.relative_to(ROOT).parts[:-1]}

    assert "dist" in names
    assert [name for name in sorted(names) if any(fnmatch(name, one) for one in patterns)] == []
