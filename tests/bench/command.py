"""Command line: `python tests/bench/run.py [case ...] [--peers ...] [--threads N] ...`."""

from __future__ import annotations

import argparse
import json
import shlex
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from tests.bench.case import BenchError, Case
from tests.bench.catalogue import choose
from tests.bench.contender import PEERS, choose_peers
from tests.bench.machine import description
from tests.bench.record import Record, Row, from_json, joined, to_json
from tests.bench.report import write_report
from tests.bench.runner import crew, measure_all
from tests.bench.table import legend, line
from tests.bench.teams import run as teams

TEAMS = "dist"
"""Family of multi-process cases; `--threads` is their number of processes."""
PROGRAM = "python tests/bench/run.py"


def parser() -> argparse.ArgumentParser:
    """Return the argument parser."""
    made = argparse.ArgumentParser(
        prog=PROGRAM, description="Measure against the machine's limits and against peers.",
    )
    made.add_argument("case", nargs="*", help="a case, a family or a pattern; all without any; dist "
                      "alone for the cases on --threads processes")
    made.add_argument("--peers", nargs="*", metavar="PEER", help="of " + ", ".join(
        peer.name for peer in PEERS) + "; all that are installed without this")
    made.add_argument("--threads", type=_count, default=1, help="and cores, of each contender")
    made.add_argument("--rounds", type=_count, default=7, help="turns of each contender")
    made.add_argument("--time", type=float, default=0.2, help="seconds of a turn")
    made.add_argument("--clock", choices=("wall", "cpu"), default="wall", help="cpu: count only the "
                      "time that a process had a processor, where others load the machine")
    made.add_argument("--json", type=Path, metavar="FILE", help="write what was measured")
    made.add_argument("--read", type=Path, nargs="+", metavar="FILE", help="measure nothing, read "
                      "these; of a case that several have, the last counts")
    made.add_argument("--write", type=Path, metavar="FILE", help="write the document, and beside "
                      "it the chart, as docs/performance.md")
    made.add_argument("--note", default="", help="printed in the document")
    made.add_argument("--list", action="store_true", help="only show the cases and the peers")
    return made


def _count(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{number} is not positive")
    return number


def main(arguments: Sequence[str]) -> int:
    """Return the exit status: 0, 1 if a result of tecomp was wrong, or 2 for an invalid request."""
    asked = parser().parse_args(arguments)
    if asked.case == [TEAMS]:
        return _of_teams(asked)
    try:
        cases = choose(asked.case)
        if asked.list:
            print(listing(cases))
            return 0
        if asked.read:
            record = joined(list(map(_read, asked.read)))
            record = replace(record, note=asked.note or record.note)
        else:
            record = _measured(asked, cases, arguments)
    except BenchError as error:
        print(error, file=sys.stderr)
        return 2
    if asked.json:
        asked.json.write_text(json.dumps(to_json(record), indent=1) + "\n", encoding="utf-8")
    if asked.write:
        write_report(record, asked.write)
    return int(any(result.failed for row in record.rows for result in row.of("tecomp")))


def _of_teams(asked: argparse.Namespace) -> int:
    """Print the separate table of cases that all processes of a team compute together."""
    names = [peer.name for peer in PEERS if peer.is_installed] if asked.peers is None else asked.peers
    peers = [peer for peer, package in teams.PEERS.items() if package in names]
    return teams.tell(asked.threads, sys.executable, peers)


def listing(cases: Sequence[Case]) -> str:
    """Return names and titles of cases, and the available peers."""
    width = max(len(case.name) for case in cases)
    lines = [f"{case.name:<{width}}  {case.title}" for case in cases]
    names = [peer.name + ("" if peer.is_installed else " (not installed)") for peer in PEERS]
    return "\n".join([*lines, "", f"peers: {', '.join(names)}"])


def command_text(arguments: Sequence[str]) -> str:
    """Return the command that reproduces a record, without arguments of a single occasion."""
    kept, words = [], iter(arguments)
    for word in words:
        if word in ("--json", "--write", "--note"):
            next(words, None)
        elif not word.startswith(("--json=", "--write=", "--note=")):
            kept.append(word)
    return shlex.join([*PROGRAM.split(), *kept, "--write", "docs/performance.md"])


def _read(path: Path) -> Record:
    try:
        return from_json(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise BenchError(
            f"bench: {path} holds no record of a run; pass a file that --json wrote"
        ) from error


def _measured(asked: argparse.Namespace, cases: list[Case], arguments: Sequence[str]) -> Record:
    peers = choose_peers(asked.peers)
    if asked.clock == "cpu" and asked.threads > 1:
        raise BenchError(
            "bench: --clock cpu adds up the time of all threads; leave it out, or ask for one thread"
        )
    with crew(peers, asked.threads, asked.clock) as team:
        rows: list[Row] = []
        print(legend([peer.name for peer in peers]))

        def tell(row: Row) -> None:
            rows.append(row)
            print(line(row, rows, [peer.name for peer in peers]), flush=True)

        measure_all(cases, team, asked.rounds, asked.time, tell)
        return Record(
            description(), team.versions(), command_text(arguments), asked.note,
            asked.rounds, asked.time, asked.clock, tuple(rows),
        )


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
