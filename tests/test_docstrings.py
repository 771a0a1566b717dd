"""All examples in docstrings run and print the documented output."""

from __future__ import annotations

import doctest
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FOLDERS = {"tecomp": "", "schedules": "tecomp.", "targets": "tecomp."}
"""Folders of modules, with the package prefix under which each is installed."""
MODULES = [
    package + ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
    for folder, package in FOLDERS.items()
    for path in sorted((ROOT / folder).rglob("*.py"))
    if ">>> " in path.read_text(encoding="utf-8")
]
STUBS = [
    ".".join(path.relative_to(ROOT).with_suffix("").parts)
    for path in sorted((ROOT / "tecomp").rglob("*.pyi"))
]
"""Modules whose functions are defined from tables."""


WITH_MPI = [
    name for name in MODULES
    if name.startswith(("tecomp.dist.runtime", "tecomp.dist.fault_tolerance"))
]


@pytest.mark.exhaustive(keep=5)
@pytest.mark.parametrize("module", sorted({*MODULES} - {*WITH_MPI}))
def test_docstring_examples_match(module: str) -> None:
    if module.startswith("tecomp.torch"):
        pytest.importorskip("torch")
    result = doctest.testmod(import_module(module))

    assert result.failed == 0
    assert result.attempted > 0


@pytest.mark.exhaustive(keep=1)
@pytest.mark.parametrize("module", STUBS)
def test_generated_docstring_examples_match(module: str) -> None:
    found = import_module(module)
    finder, runner = doctest.DocTestFinder(), doctest.DocTestRunner()
    for name in found.__all__:
        for test in finder.find(getattr(found, name), name, globs=dict(vars(found))):
            result = runner.run(test)
            assert (result.failed, result.attempted > 0) == (0, True), name


def test_team_docstring_examples_match() -> None:
    # MPI stays initialized for the lifetime of a process, so it runs in a subprocess.
    script = (
        "import doctest, importlib, sys\n"
        "results = [doctest.testmod(importlib.import_module(name)) for name in sys.argv[1:]]\n"
        "sys.exit(any(result.failed or not result.attempted for result in results))\n"
    )

    done = subprocess.run(
        [sys.executable, "-c", script, *WITH_MPI], capture_output=True, text=True, check=False,
        timeout=120,
    )

    assert (done.stdout, done.returncode) == ("", 0)
