"""`import tecomp` is quick: what is slow to load waits until it is needed."""

from __future__ import annotations

import subprocess
import sys

import pytest

SLOW = {"click", "hypothesis", "llvmlite", "matplotlib", "ml_dtypes", "mpi4py", "networkx", "pytest", "scipy"}


def loaded_by(statement: str) -> set[str]:
    """Top-level names of the modules in a fresh interpreter after one statement."""
    program = f"{statement}\nimport sys\nprint(*{{name.split('.')[0] for name in sys.modules}})"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return set(done.stdout.split())


@pytest.mark.parametrize("statement", ["import tecomp", "from tecomp import te", "from tecomp import dist"])
def test_importing_loads_nothing_slow(statement: str) -> None:
    loaded = loaded_by(statement)

    assert "tecomp" in loaded
    assert loaded & SLOW == set()


def test_the_command_line_loads_nothing_slow() -> None:
    assert loaded_by("import tecomp.cli") & SLOW == {"click"}
