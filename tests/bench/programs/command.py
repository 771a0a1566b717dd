"""Command line of random programs: speedup over the best peer."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from tests.bench.cases.programs import random_cases
from tests.bench.contender import choose_peers
from tests.bench.record import Row
from tests.bench.runner import crew, measure_all
from tests.bench.table import line, ratios

PEERS = ("numpy", "torch.compile", "jax")


def summary(rows: Sequence[Row]) -> str:
    """Return geometric mean, minimum, and the worst ratios with their programs."""
    lines = [
        f"{row.case}: {result.peer}: {result.note}"
        for row in rows for result in row.results if result.failed
    ]
    found = {row: ratio for row in rows if (ratio := row.of_best()) is not None}
    return "\n".join([*lines, *ratios(found, "programs", "the best peer")])


def main(arguments: Sequence[str]) -> int:
    """Return the exit status: 0, or 1 if a result was wrong or a program was too slow."""
    parser = argparse.ArgumentParser(prog="python tests/bench/random_programs.py")
    parser.add_argument("--seed", type=int, default=0, help="of the first program of each kind")
    parser.add_argument("--count", type=int, default=60, help="of programs, of all kinds in turn")
    parser.add_argument("--peers", nargs="*", default=PEERS, help="who takes part")
    parser.add_argument("--rounds", type=int, default=3, help="turns of each contender")
    parser.add_argument("--time", type=float, default=0.02, help="seconds of a turn")
    options = parser.parse_args(arguments)
    names = list(options.peers)
    with crew(choose_peers(names), 1) as team:
        rows = measure_all(
            random_cases(options.seed, options.count), team, options.rounds, options.time,
            lambda row: print(line(row, [row], names), flush=True))
    print(summary(rows))
    found = [row.of_best() for row in rows]
    return int(any(ratio is None or ratio < (row.goal.of_best or 0)
                   for ratio, row in zip(found, rows, strict=True)))


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
