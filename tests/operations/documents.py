"""Write the parts of documents that tables define: `python -m tests.operations.documents`.

A part stands between the comments `<!-- name -->` and `<!-- end of name -->`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import array_api_strict as strict

from tecomp.operations import elementwise_in
from tests.strategies.functions import ROWS

DOCUMENTS = Path(__file__).parents[2] / "docs"


def error_bounds(text: str) -> str:
    """Return the table of errors with the bounds of the rows, and the measured errors of `text`.

    Functions that were not measured have empty cells.
    """
    lines = text.strip().splitlines()
    cells = [re.split(r" *\| *", line.strip("| ")) for line in lines[2:]]
    measured = {name: errors for name, *errors in cells}
    names = [*[name for name in measured if name in ROWS], *sorted(ROWS.keys() - measured.keys())]
    for name in names:
        errors = measured.get(name, [""] * 6)
        single, double = [str(bound) if bound else "0" for bound in ROWS[name].ulps]
        measured[name] = [*errors[:2], single, *errors[3:5], double]
    table = [f"| {' | '.join([name, *measured[name]])} |" for name in names]
    return "\n".join([*lines[:2], *table]) + "\n"


def functions_beyond_the_standard(text: str) -> str:
    """Return the item of a list with the element-wise functions that the standard does not have."""
    names = [name for name in sorted(elementwise_in("array")) if not hasattr(strict, name)]
    *first, last = [f"`xp.{name}`" for name in names]
    return (
        f"* Element-wise functions beyond the standard: {', '.join(first)} and {last}, with the\n"
        "  [errors](vector-math.md) of the table.\n"
    )


PARTS: dict[tuple[str, str], Callable[[str], str]] = {
    ("vector-math.md", "errors"): error_bounds,
    ("arrays.md", "functions beyond the standard"): functions_beyond_the_standard,
}
"""Function of the present text of each part, by document and name."""


def written(document: str, text: str) -> str:
    """Return the text of a document with current parts."""
    for (file, name), part in PARTS.items():
        if file == document:
            begin, end = f"<!-- {name} -->\n", f"<!-- end of {name} -->\n"
            before, rest = text.split(begin)
            present, after = rest.split(end)
            text = f"{before}{begin}\n{part(present)}\n{end}{after}"
    return text


if __name__ == "__main__":
    for document in {document: None for document, _ in PARTS}:
        path = DOCUMENTS / document
        path.write_text(written(document, path.read_text(encoding="utf-8")), encoding="utf-8")
