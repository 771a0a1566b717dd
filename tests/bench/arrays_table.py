"""The tables of speed in docs/arrays.md: `python -m tests.bench.arrays_table FILE ...`.

The files are what `tests/bench/run.py array --json FILE` wrote.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.bench.record import Row, from_json, joined
from tests.bench.table import markdown, notes


def tables(rows: Sequence[Row]) -> str:
    """A table of chains and one of what is paid once, and what was asked and is not so."""
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
