"""Ending all processes, after the launcher has passed on why."""

from __future__ import annotations

import os
import sys
import time
from typing import NoReturn

from tecomp.dist.runtime.library import mpi

_PASSED_ON = 0.5
"""Seconds in which a launcher passes on what was written; what comes later may be lost."""


def end_all(message: str) -> NoReturn:
    """Say why, and end all processes."""
    sys.stderr.write(message)
    let_pass()
    mpi().COMM_WORLD.Abort(1)
    os._exit(1)


def let_pass() -> None:
    """Wait until the launcher has passed on what this process wrote."""
    sys.stdout.flush()
    sys.stderr.flush()
    time.sleep(_PASSED_ON)
