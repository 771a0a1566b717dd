"""Golden files: compare printed forms, update on demand, and detect orphans.

The module depends only on pytest, so that its own tests are fast.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
GOLDEN = TESTS / "golden"
COLLECTED = pytest.StashKey[dict[Path, set[str]]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="rewrite tests/golden")


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--update-golden") and os.environ.get("CI", "").lower() in ("1", "true"):
        raise pytest.UsageError(
            "--update-golden: refused where CI=true; "
            "run it on your machine, read the difference, and commit it"
        )


def golden_path(test_file: Path, test_name: str) -> Path:
    """Return the golden file of a test: `tests/golden/<folder>/<test file>/<test>.txt`."""
    name = re.sub(r"[^\w.=]+", "-", test_name).rstrip("-")
    return GOLDEN / test_file.relative_to(TESTS).with_suffix("") / f"{name}.txt"


@pytest.hookimpl(tryfirst=True)  # before -k deselects items
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Record which golden files each collected test file uses."""
    collected: dict[Path, set[str]] = {}
    for item in items:
        names = collected.setdefault(item.path, set())
        if "golden" in getattr(item, "fixturenames", ()):
            names.add(golden_path(item.path, item.name).name)
    config.stash[COLLECTED] = collected


@pytest.fixture
def collected_goldens(request: pytest.FixtureRequest) -> dict[Path, set[str]]:
    """Return the names of the golden files in use, for each collected test file."""
    return request.config.stash[COLLECTED]


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[object], None]:
    """Return a function that compares a printed form with the golden file, once per test."""
    path = golden_path(request.path, request.node.name)

    def check(actual: object) -> None:
        text = f"{actual}".rstrip("\n") + "\n"
        if request.config.getoption("--update-golden"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        if not path.exists():
            pytest.fail(
                f"no golden file {path.relative_to(TESTS.parent)}; "
                f"read this, then run pytest --update-golden:\n{text}"
            )
        assert text == path.read_text(encoding="utf-8")

    return check
