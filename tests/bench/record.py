"""Measurement records as stored in files, and the ratios computed from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from tests.bench.case import Goal

OURS, LIMIT = "tecomp", "limit"


@dataclass(frozen=True)
class Result:
    """Result of one contender.

    Attributes:
        peer: Name of the peer.
        detail: Variant among contenders of the same name.
        threads: Number of threads.
        minimum: Minimum time in seconds; None if it was not timed.
        median: Median time in seconds; None if it was not timed.
        runs: Number of measured times.
        note: Reason why it was not timed.
        failed: If True, the reason is a fault.
    """

    peer: str
    detail: str = ""
    threads: int = 1
    minimum: float | None = None
    median: float | None = None
    runs: int = 0
    note: str = ""
    failed: bool = False


@dataclass(frozen=True)
class Row:
    """Results of all contenders for a case; other attributes are those of the case."""

    case: str
    title: str
    flops: int
    bytes: int
    limit: str
    goal: Goal
    threads: int
    results: tuple[Result, ...]

    @property
    def family(self) -> str:
        """Part of the name before the slash."""
        return self.case.partition("/")[0]

    @property
    def ours(self) -> float | None:
        """Minimum time of tecomp."""
        return self.best(OURS)

    def of(self, peer: str) -> list[Result]:
        """Return the results of a peer with the number of threads of the row."""
        return [r for r in self.results if r.peer == peer and r.threads == self.threads]

    def best(self, peer: str) -> float | None:
        """Return the minimum time of a peer over its variants."""
        times = [r.minimum for r in self.of(peer) if r.minimum is not None]
        return min(times, default=None)

    def best_peer(self, names: Sequence[str] = ()) -> tuple[str, float] | None:
        """Return the fastest peer except tecomp, and its time; without names, among all peers."""
        times = {name: self.best(name) for name in names or peers_of([self])}
        found = [(time, name) for name, time in times.items() if time is not None]
        return min(found)[::-1] if found else None

    def rate(self) -> float | None:
        """Return operations or bytes per second; None if the case has no such limit."""
        amount = self.flops if self.limit == "fma" else self.bytes
        return amount / self.ours if self.ours and self.limit != "none" else None

    def of_limit(self) -> float | None:
        """Return the fraction of the machine's limit that tecomp reaches."""
        return ratio(self.best(LIMIT), self.ours)

    def against(self, peer: str) -> float | None:
        """Return the speedup of tecomp over a peer."""
        return ratio(self.best(peer), self.ours)

    def of_best(self) -> float | None:
        """Return the speedup of tecomp over the fastest peer of the goal."""
        best = self.best_peer(self.goal.peers)
        return ratio(best[1] if best else None, self.ours)

    def of_one_thread(self) -> float | None:
        """Return the speedup over one thread; None if that was not measured."""
        times = [r.minimum for r in self.results if r.peer == OURS and r.threads == 1]
        return ratio(next(iter(times), None), self.ours) if self.threads > 1 else None


def joined(records: Sequence[Record]) -> Record:
    """Merge records of one machine; for duplicate cases the last record counts."""
    if len(records) == 1:
        return records[0]
    last = records[-1]
    rows = {row.case: row for record in records for row in record.rows}
    files = [f"{number}.json" for number in range(len(records))]
    write = "--write docs/performance.md"
    parts = [r.command.replace(write, f"--json {f}") for r, f in zip(records, files, strict=True)]
    program = last.command.partition("run.py")[0] + "run.py"
    return replace(
        last, rows=tuple(rows.values()),
        versions={name: text for record in records for name, text in record.versions.items()},
        command="\n".join([*parts, f"{program} --read {' '.join(files)} {write}"]),
    )


def ratio(other: float | None, actual: float | None) -> float | None:
    """Return `other / ours`; None if one of them is unknown."""
    return other / actual if other is not None and actual else None


def peers_of(rows: Sequence[Row]) -> list[str]:
    """Return the names of all peers, in the order of the results."""
    names = dict.fromkeys(result.peer for row in rows for result in row.results)
    return [name for name in names if name not in (OURS, LIMIT)]


def misses(row: Row, rows: Sequence[Row]) -> list[str]:
    """Return the missed goals of a row, each as a sentence with the figures."""
    if row.ours is None:
        return []
    goal, found = row.goal, []
    description = f"of {', '.join(goal.peers)}" if goal.peers else "peer"
    for name, requested, have in (
        ("of the limit", goal.of_limit, row.of_limit()),
        (f"x the best {description}", goal.of_best, row.of_best()),
        ("x one thread", goal.of_one_thread, row.of_one_thread()),
        *((f"x {peer}", times, row.against(peer)) for peer, times in goal.of_peers),
    ):
        if requested is not None and have is not None and have < requested:
            found.append(f"{have:.2f} {name}, target {requested:g}")
    if goal.seconds is not None and row.ours > goal.seconds:
        found.append(f"{duration(row.ours)}, target {duration(goal.seconds)}")
    if goal.of_case is not None:
        name, requested = goal.of_case
        other = next((r.rate() for r in rows if r.case == name), None)
        have = ratio(row.rate(), other)
        if have is not None and have < requested:
            found.append(f"{have:.2f} of the rate of {name}, target {requested:g}")
    return found


def duration(seconds: float) -> str:
    """Return a duration as text in seconds, milliseconds or microseconds.

    >>> duration(0.00123), duration(4.5e-7), duration(12)
    ('1.23 ms', '0.45 µs', '12 s')
    """
    for unit, scale in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= scale:
            return f"{seconds / scale:.3g} {unit}"
    return f"{seconds / 1e-6:.3g} µs"


@dataclass(frozen=True)
class Record:
    """Record of a run.

    Attributes:
        machine: Description of the machine.
        versions: Versions of the packages.
        command: Command that reproduces the record.
        note: Further remarks for readers.
        rounds: Number of turns of each contender.
        seconds: Duration of a turn.
        clock: `wall` or `cpu`.
        rows: Measured rows.
    """

    machine: Mapping[str, Any]
    versions: Mapping[str, str]
    command: str
    note: str
    rounds: int
    seconds: float
    clock: str = "wall"
    rows: tuple[Row, ...] = field(default=())


def to_json(record: Record) -> dict[str, Any]:
    """Return the JSON text that `from_json` reads."""
    return asdict(record)


def from_json(data: Mapping[str, Any]) -> Record:
    """Return the record of a JSON text."""
    rows = []
    for row in data["rows"]:
        case = row["goal"]["of_case"]
        goal = Goal(**{
            **row["goal"], "of_case": tuple(case) if case else None,
            "peers": tuple(row["goal"]["peers"]),
            "of_peers": tuple(map(tuple, row["goal"].get("of_peers", ()))),
        })
        results = tuple(Result(**result) for result in row["results"])
        rows.append(Row(**{**row, "goal": goal, "results": results}))
    return Record(**{**data, "rows": tuple(rows)})
