"""Start the benchmark of random shapes: `python tests/bench/random_shapes.py`."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

if __name__ == "__main__":
    # Python puts this folder first in the path; the modules import each other as `tests.bench.*`.
    sys.path[0] = str(Path(__file__).parents[2])
    runpy.run_module("tests.bench.random_command", run_name="__main__")
