"""Command line of random shapes: speedup over PyTorch."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from tests.bench.cases.drawn import CASES
from tests.bench.contender import choose_peers
from tests.bench.record import Row
from tests.bench.runner import crew, measure_all
from tests.bench.table import line, ratios


def summary(rows: Sequence[Row]) -> str:
    """Return geometric mean, minimum, and the worst ratios with their cases.

    If a contender could not run a case, its note replaces the ratio.
    """
    found = {row: ratio for row in rows if (ratio := row.against("torch")) is not None}
    lines = [f"{row.case}: {note}" for row in rows if row not in found for note in _notes(row)]
    return "\n".join([*lines, *ratios(found, "cases", "torch")])


def _notes(row: Row) -> list[str]:
    return [f"{result.peer}: {result.note}" for result in row.results if result.note]


def main(arguments: Sequence[str]) -> int:
    """Return the exit status: 0, or 1 if a contender could not run a case."""
    parser = argparse.ArgumentParser(prog="python tests/bench/random_shapes.py")
    parser.add_argument("--rounds", type=int, default=3, help="turns of each contender")
    parser.add_argument("--time", type=float, default=0.02, help="seconds of a turn")
    options = parser.parse_args(arguments)
    with crew(choose_peers(["torch"]), 1) as team:
        rows = measure_all(CASES, team, options.rounds, options.time,
                           lambda row: print(line(row, [row], ["torch"]), flush=True))
    print(summary(rows))
    return int(any(row.against("torch") is None for row in rows))


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
