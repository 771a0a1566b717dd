"""Rows as text, for the terminal and for the document."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import geometric_mean

from tests.bench.record import LIMIT, OURS, Row, duration, misses, peers_of

NONE = "-"
_WORST = 10


def legend(peers: Sequence[str]) -> str:
    """Return the heading of the columns of `line`."""
    names = "".join(f"{name:>14}" for name in peers)
    return f"{'case':<26}{'time':>10}{'rate':>14}{'of limit':>10}{names}"


def line(row: Row, rows: Sequence[Row], peers: Sequence[str]) -> str:
    """Return a row for the terminal, followed by missed goals and failures."""
    cells = "".join(f"{_times(row.against(name)):>14}" for name in peers)
    time = duration(row.ours) if row.ours is not None else NONE
    text = f"{row.case:<26}{time:>10}{rate(row):>14}{_share(row.of_limit()):>10}{cells}"
    lines = [text, *(f"    missed: {miss}" for miss in misses(row, rows))]
    if (gain := row.of_one_thread()) is not None:
        lines.append(f"    {gain:.2f} times as fast as one thread")
    lines += [
        f"    {result.peer}: {result.note}"
        for result in row.results
        if result.note and (result.failed or result.peer == OURS)
    ]
    return "\n".join(lines)


def ratios(found: Mapping[Row, float], subject: str, peer: str) -> list[str]:
    """Return the geometric mean of the speedups over a peer, and the worst ones."""
    if not found:
        return []
    worst = sorted(found.items(), key=lambda item: item[1])[:_WORST]
    return [
        f"{len(found)} {subject}: {geometric_mean(found.values()):.2f} times as fast as {peer} at the "
        f"geometric mean, {min(found.values()):.2f} at least; the worst:",
        *(f"{ratio:6.2f}x  {row.case}: {row.title}" for row, ratio in worst),
    ]


def rate(row: Row) -> str:
    """Return a rate in operations or bytes per second as text."""
    found = row.rate()
    if found is None:
        return NONE
    unit = "GB/s" if row.limit == "copy" else "Gop/s" if "int8" in row.title else "GFLOP/s"
    return f"{found / 1e9:.3g} {unit}"


def markdown(rows: Sequence[Row]) -> str:
    """Return a table of rows, with a column for each peer with results."""
    peers = [name for name in peers_of(rows) if any(row.best(name) for row in rows)]
    has_limit = any(row.best(LIMIT) for row in rows)
    has_threads = any(row.of_one_thread() for row in rows)
    head = ["case", "tecomp", "median"]
    head += ["rate", "of limit"] if has_limit else []
    head += ["of one thread"] if has_threads else []
    head += peers
    lines = [head, ["---", *["---:"] * (len(head) - 1)]]
    for row in rows:
        cells = [f"{row.title}{_mark(row, rows)}", *_own_times(row)]
        cells += [rate(row), _share(row.of_limit())] if has_limit else []
        cells += [_times(row.of_one_thread())] if has_threads else []
        best = row.best_peer()
        for name in peers:
            cell = _times(row.against(name))
            is_best = best is not None and best[0] == name and cell != NONE
            cells.append(f"**{cell}**" if is_best else cell)
        lines.append(cells)
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def notes(rows: Sequence[Row]) -> list[str]:
    """Return notes on missed goals, unmeasured contenders, and the fastest OpenBLAS kernels."""
    found = []
    for row in rows:
        found += [f"{row.title}: {miss}." for miss in misses(row, rows)]
        found += [
            f"{row.title}: not measured with {r.peer}: {r.note}."
            for r in row.results
            if r.note and (r.failed or r.peer == OURS)
        ]
    return found


def blas_cores(rows: Sequence[Row]) -> str:
    """Return which OpenBLAS kernels were the fastest, with counts."""
    counts: dict[str, int] = {}
    for row in rows:
        timed = [r for r in row.of("numpy") if r.minimum is not None]
        if len(timed) > 1:
            best = min(timed, key=lambda r: r.minimum or 0.0).detail
            counts[best] = counts.get(best, 0) + 1
    return ", ".join(f"{name} in {count}" for name, count in sorted(counts.items()))


def _own_times(row: Row) -> list[str]:
    timed = [r for r in row.of(OURS) if r.minimum is not None and r.median is not None]
    if not timed:
        return [NONE, NONE]
    return [duration(timed[0].minimum or 0.0), duration(timed[0].median or 0.0)]


def _mark(row: Row, rows: Sequence[Row]) -> str:
    """Return a mark for rows that missed a goal."""
    return " ▾" if misses(row, rows) else ""


def _share(value: float | None) -> str:
    return NONE if value is None else f"{value:.2f}"


def _times(value: float | None) -> str:
    return NONE if value is None else f"{value:.2f}x"
