"""Print the performance tables of docs/arrays.md: `python -m tests.bench.arrays_table FILE ...`.

The files are the output of `tests/bench/run.py array --json FILE`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.bench.record import Row, from_json, joined
from tests.bench.table import markdown, notes


def tables(rows: Sequence[Row]) -> str:
    """Return tables of chains and of one-time costs, and the goals that were missed."""
    chains = [row for row in rows if not row.goal.seconds]
    costs = [row for row in rows if row.goal.seconds]
    parts = [markdown(chains), markdown(costs), *(f"* {note}" for note in notes(rows))]
    return "\n\n".join(parts)


def main(files: Sequence[str]) -> None:
    """Print the tables."""
    records = [from_json(json.loads(Path(file).read_text(encoding="utf-8"))) for file in files]
    print(tables(joined(records).rows))


if __name__ == "__main__":
    main(sys.argv[1:])
