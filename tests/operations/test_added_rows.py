"""A function, a reduction and a dtype are one row of the tables each."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path


def test_new_rows_work_in_all_namespaces() -> None:
    """Expressions, operators, arrays, interpreter and compiled code have what the rows define."""
    result = subprocess.run(
        [sys.executable, "-m", "tests.operations.added_rows"], check=False, text=True,
        capture_output=True, cwd=Path(__file__).parents[2], env={**os.environ, "TECOMP_CACHE": "off"},
    )

    assert (result.returncode, result.stderr) == (0, "")
