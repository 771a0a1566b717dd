"""What was measured, as it is written to a file, and the ratios that follow from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from tests.bench.case import Goal

OURS, LIMIT = "tecomp", "limit"


@dataclass(frozen=True)
class Result:
    """What one contender did.

    Attributes:
        peer: its name.
        detail: what sets it apart from others of that name.
        threads: how many it had.
        minimum: the shortest time in seconds; None if it was not timed.
        median: half of the times were shorter.
        runs: how many times were taken.
        note: why it was not timed.
        failed: whether that is a fault.
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
    """What all contenders did for a case; the attributes are those of the case."""

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
        """What stands before the slash."""
        return self.case.partition("/")[0]

    @property
    def ours(self) -> float | None:
        """Our shortest time."""
        return self.best(OURS)

    def of(self, peer: str) -> list[Result]:
        """The results of a peer, without those of other numbers of threads."""
        return [r for r in self.results if r.peer == peer and r.threads == self.threads]

    def best(self, peer: str) -> float | None:
        """The shortest time of a peer, in whichever form."""
        times = [r.minimum for r in self.of(peer) if r.minimum is not None]
        return min(times, default=None)

    def best_peer(self, names: Sequence[str] = ()) -> tuple[str, float] | None:
        """Who was fastest, apart from us, and the time; of all if no names are given."""
        times = {name: self.best(name) for name in names or peers_of([self])}
        found = [(time, name) for name, time in times.items() if time is not None]
        return min(found)[::-1] if found else None

    def rate(self) -> float | None:
        """Operations or bytes in a second; None where neither counts."""
        amount = self.flops if self.limit == "fma" else self.bytes
        return amount / self.ours if self.ours and self.limit != "none" else None

    def of_limit(self) -> float | None:
        """Our share of the machine's limit."""
        return ratio(self.best(LIMIT), self.ours)

    def against(self, peer: str) -> float | None:
        """How many times as fast as a peer we are."""
        return ratio(self.best(peer), self.ours)

    def of_best(self) -> float | None:
        """How many times as fast as the fastest of those who count we are."""
        best = self.best_peer(self.goal.peers)
        return ratio(best[1] if best else None, self.ours)

    def of_one_thread(self) -> float | None:
        """How many times as fast as with one thread; None where that was not measured."""
        times = [r.minimum for r in self.results if r.peer == OURS and r.threads == 1]
        return ratio(next(iter(times), None), self.ours) if self.threads > 1 else None


def joined(records: Sequence[Record]) -> Record:
    """The rows of several records of one machine; of a case that several have, the last counts."""
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


def ratio(other: float | None, ours: float | None) -> float | None:
    """How often ours fits into the other; None if one is not known."""
    return other / ours if other is not None and ours else None


def peers_of(rows: Sequence[Row]) -> list[str]:
    """The names of all peers, in the order in which they were asked."""
    names = dict.fromkeys(result.peer for row in rows for result in row.results)
    return [name for name in names if name not in (OURS, LIMIT)]


def misses(row: Row, rows: Sequence[Row]) -> list[str]:
    """What was asked of a row and is not so, each as a sentence with the figures."""
    if row.ours is None:
        return []
    goal, found = row.goal, []
    whose = f"of {', '.join(goal.peers)}" if goal.peers else "peer"
    for name, asked, have in (
        ("of the limit", goal.of_limit, row.of_limit()),
        (f"x the best {whose}", goal.of_best, row.of_best()),
        ("x one thread", goal.of_one_thread, row.of_one_thread()),
        *((f"x {peer}", times, row.against(peer)) for peer, times in goal.of_peers),
    ):
        if asked is not None and have is not None and have < asked:
            found.append(f"{have:.2f} {name}, target {asked:g}")
    if goal.seconds is not None and row.ours > goal.seconds:
        found.append(f"{duration(row.ours)}, target {duration(goal.seconds)}")
    if goal.of_case is not None:
        name, asked = goal.of_case
        other = next((r.rate() for r in rows if r.case == name), None)
        have = ratio(row.rate(), other)
        if have is not None and have < asked:
            found.append(f"{have:.2f} of the rate of {name}, target {asked:g}")
    return found


def duration(seconds: float) -> str:
    """Seconds in a unit that suits them.

    >>> duration(0.00123), duration(4.5e-7), duration(12)
    ('1.23 ms', '0.45 µs', '12 s')
    """
    for unit, scale in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= scale:
            return f"{seconds / scale:.3g} {unit}"
    return f"{seconds / 1e-6:.3g} µs"


@dataclass(frozen=True)
class Record:
    """A run.

    Attributes:
        machine: what it ran on.
        versions: of the packages that took part.
        command: that prints such a record again.
        note: what else a reader has to know.
        rounds: how often each contender had its turn.
        seconds: how long a turn was.
        clock: `wall` or `cpu`.
        rows: what was measured.
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
    """What `from_json` reads."""
    return asdict(record)


def from_json(data: Mapping[str, Any]) -> Record:
    """A record that was written to a file."""
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
