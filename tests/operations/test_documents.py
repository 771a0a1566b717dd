"""Documents agree with the table of element-wise functions."""

from __future__ import annotations

import re
from pathlib import Path

import array_api_strict as strict

from tecomp.operations.elementwise import elementwise_in
from tests.strategies.functions import ROWS

DOCUMENTS = Path(__file__).parents[2] / "docs"


def test_bounds_of_errors_are_those_of_the_rows() -> None:
    text = (DOCUMENTS / "vector-math.md").read_text(encoding="utf-8").split("## Accuracy")[1].split("\n## ")[0]
    cells = [re.split(r" *\| *", line.strip("| ")) for line in text.splitlines() if line[:2] == "| "]
    bounds = {row[0]: (float(row[3]), float(row[6])) for row in cells[2:]}

    assert bounds == {name: row.ulps for name, row in ROWS.items()}


def test_functions_beyond_the_standard_are_listed() -> None:
    text = (DOCUMENTS / "arrays.md").read_text(encoding="utf-8")
    listed = text.split("functions beyond the standard:")[1].split("\n* ")[0]

    names = {name for name in elementwise_in("array") if not hasattr(strict, name)}
    assert set(re.findall(r"`xp\.(\w+)`", listed)) == names
