"""Programs on several processes: how tests start them, and what has become of them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
PROGRAMS = ROOT / "tests" / "dist" / "programs"
LIMIT = 120
"""Seconds after which a program is ended; none needs more than a few, on an idle machine."""


def ran(
    program: str, n: int, *arguments: str, launcher: tuple[str, ...] | None = None,
    cache: Path | None = None,
) -> subprocess.CompletedProcess[str]:
    """What `n` processes did that ran a program of `tests/dist/programs`.

    Kernels are kept in the folder `cache`, if there is one.
    """
    kept = {} if cache is None else {"XDG_CACHE_HOME": str(cache), "TECOMP_CACHE": "on"}
    mpiexec = Path(sys.executable).parent / "mpiexec"
    command = launcher or (str(mpiexec), "-n", str(n), sys.executable, "-m", "mpi4py")
    return subprocess.run(
        [*command, str(PROGRAMS / f"{program}.py"), *arguments],
        env=os.environ | {
            "MPIEXEC_TIMEOUT": str(LIMIT), "OMP_NUM_THREADS": "1", "TECOMP_NUM_THREADS": "1",
            "PYTHONPATH": str(ROOT), **kept,
        },
        capture_output=True, text=True, timeout=LIMIT + 10, check=False,
    )


def printed(program: str, n: int, *arguments: str, cache: Path | None = None) -> list[str]:
    """The lines that such a program printed, which has to end well."""
    done = ran(program, n, *arguments, cache=cache)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()
