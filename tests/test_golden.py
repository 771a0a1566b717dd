"""Golden files are compared and not created implicitly, and none outlives its test."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
GOLDEN = TESTS / "golden"

SAMPLE = """
def test_printed(golden):
    golden("one line")
"""


@pytest.fixture
def sample(tmp_path: Path) -> Path:
    """Return a directory with one golden test and the golden file plugin of the project."""
    (tmp_path / "conftest.py").write_text((TESTS / "goldens.py").read_text(encoding="utf-8"))
    (tmp_path / "test_sample.py").write_text(SAMPLE)
    return tmp_path


def run(where: Path, *options: str, ci: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options, str(where)],
        cwd=where,
        env={**os.environ, "CI": ci},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.exhaustive
def test_a_missing_golden_file_fails_and_shows_the_text(sample: Path) -> None:
    done = run(sample)

    assert done.returncode == pytest.ExitCode.TESTS_FAILED
    assert "golden/test_sample/test_printed.txt; read this, then run" in done.stdout
    assert re.search(r"--update-golden:\nE +one line\n", done.stdout)
    assert not (sample / "golden").exists()


@pytest.mark.exhaustive
def test_update_writes_the_file_that_is_then_compared(sample: Path) -> None:
    updated = run(sample, "--update-golden")
    same = run(sample)
    path = sample / "golden" / "test_sample" / "test_printed.txt"
    written = path.read_text()
    path.write_text("another line\n")
    different = run(sample)

    assert updated.returncode == same.returncode == pytest.ExitCode.OK
    assert written == "one line\n"
    assert different.returncode == pytest.ExitCode.TESTS_FAILED


def test_update_is_refused_in_ci(sample: Path) -> None:
    done = run(sample, "--update-golden", ci="true")

    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert done.stderr.strip() == (
        "ERROR: --update-golden: refused where CI=true; "
        "run it on your machine, read the difference, and commit it"
    )
    assert not (sample / "golden").exists()


def test_no_golden_file_is_an_orphan(collected_goldens: dict[Path, set[str]]) -> None:
    """Every golden file belongs to a test; that of an uncollected test needs its test file."""
    orphans = []
    for path in sorted(path for path in GOLDEN.rglob("*") if path.is_file()):
        test_file = (TESTS / path.parent.relative_to(GOLDEN)).with_suffix(".py")
        known = collected_goldens.get(test_file)
        if not test_file.exists() or (known is not None and path.name not in known):
            orphans.append(str(path.relative_to(TESTS)))

    assert orphans == []
