"""Starts the comparison of ways to write an operator: `python tests/bench/written_ways.py`."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

if __name__ == "__main__":
    # Python puts this folder first; the modules call each other `tests.bench.*`.
    sys.path[0] = str(Path(__file__).parents[2])
    runpy.run_module("tests.bench.spellings.command", run_name="__main__")
