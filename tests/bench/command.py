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
    result = argparse.ArgumentParser(
        prog=PROGRAM, description="Measure against the machine's limits and against peers.",
    )
    result.add_argument("case", nargs="*", help="a case, a family or a pattern; all without any; dist "
                      "alone for the cases on --threads processes")
    result.add_argument("--peers", nargs="*", metavar="PEER", help="of " + ", ".join(
        peer.name for peer in PEERS) + "; all that are installed without this")
    result.add_argument("--threads", type=_count, default=1, help="and cores, of each contender")
    result.add_argument("--rounds", type=_count, default=7, help="turns of each contender")
    result.add_argument("--time", type=float, default=0.2, help="seconds of a turn")
    result.add_argument("--clock", choices=("wall", "cpu"), default="wall", help="cpu: count only the "
                      "time that a process had a processor, where others load the machine")
    result.add_argument("--json", type=Path, metavar="FILE", help="write what was measured")
    result.add_argument("--read", type=Path, nargs="+", metavar="FILE", help="measure nothing, read "
                      "these; of a case that several have, the last counts")
    result.add_argument("--write", type=Path, metavar="FILE", help="write the document, and beside "
                      "it the chart, as docs/performance.md")
    result.add_argument("--note", default="", help="printed in the document")
    result.add_argument("--list", action="store_true", help="only show the cases and the peers")
    return result


def _count(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{number} is not positive")
    return number


def main(arguments: Sequence[str]) -> int:
    """Return the exit status: 0, 1 if a result of tecomp was wrong, or 2 for an invalid request."""
    options = parser().parse_args(arguments)
    if options.case == [TEAMS]:
        return _of_teams(options)
    try:
        cases = choose(options.case)
        if options.list:
            print(listing(cases))
            return 0
        if options.read:
            record = joined(list(map(_read, options.read)))
            record = replace(record, note=options.note or record.note)
        else:
            record = _measured(options, cases, arguments)
    except BenchError as error:
        print(error, file=sys.stderr)
        return 2
    if options.json:
        options.json.write_text(json.dumps(to_json(record), indent=1) + "\n", encoding="utf-8")
    if options.write:
        write_report(record, options.write)
    return int(any(result.failed for row in record.rows for result in row.of("tecomp")))


def _of_teams(options: argparse.Namespace) -> int:
    """Print the separate table of cases that all processes of a team compute together."""
    names = [peer.name for peer in PEERS if peer.is_installed] if options.peers is None else options.peers
    peers = [peer for peer, package in teams.PEERS.items() if package in names]
    return teams.tell(options.threads, sys.executable, peers)


def listing(cases: Sequence[Case]) -> str:
    """Return names and titles of cases, and the available peers."""
    width = max(len(case.name) for case in cases)
    lines = [f"{case.name:<{width}}  {case.title}" for case in cases]
    names = [peer.name + ("" if peer.is_installed else " (not installed)") for peer in PEERS]
    return "\n".join([*lines, "", f"peers: {', '.join(names)}"])


def command_text(arguments: Sequence[str]) -> str:
    """Return the command that reproduces a record, without arguments of a single occasion."""
    remaining, words = [], iter(arguments)
    for word in words:
        if word in ("--json", "--write", "--note"):
            next(words, None)
        elif not word.startswith(("--json=", "--write=", "--note=")):
            remaining.append(word)
    return shlex.join([*PROGRAM.split(), *remaining, "--write", "docs/performance.md"])


def _read(path: Path) -> Record:
    try:
        return from_json(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise BenchError(
            f"bench: {path} holds no record of a run; pass a file that --json wrote"
        ) from error


def _measured(options: argparse.Namespace, cases: list[Case], arguments: Sequence[str]) -> Record:
    peers = choose_peers(options.peers)
    if options.clock == "cpu" and options.threads > 1:
        raise BenchError(
            "bench: --clock cpu adds up the time of all threads; leave it out, or ask for one thread"
        )
    with crew(peers, options.threads, options.clock) as team:
        rows: list[Row] = []
        print(legend([peer.name for peer in peers]))

        def tell(row: Row) -> None:
            rows.append(row)
            print(line(row, rows, [peer.name for peer in peers]), flush=True)

        measure_all(cases, team, options.rounds, options.time, tell)
        return Record(
            description(), team.versions(), command_text(arguments), options.note,
            options.rounds, options.time, options.clock, tuple(rows),
        )


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
