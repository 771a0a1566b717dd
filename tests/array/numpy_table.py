"""Write the table of names in docs/numpy.md: `python -m tests.array.numpy_table`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import tecomp.numpy as np

DOCUMENT = Path(__file__).parents[2] / "docs" / "numpy.md"
BEGIN, END = "<!-- names -->\n", "<!-- end of names -->\n"
NAMESPACES = {"fft", "linalg", "ndarray", "random"}


def kind_of(name: str) -> str:
    """Return how a name is implemented."""
    name = np.ALIASES.get(name, name)
    if name in np.ON_HOST:
        return "computed by NumPy on the host"
    if name in np.UNCHANGED:
        return "NumPy's own: dtypes, constants, settings"
    if name in np.FUNCTIONS:
        return "parameters of NumPy over functions of `tecomp.array`"
    if name in np._ufuncs():
        return "element-wise, also with `out=`, `where=`, `.reduce`, `.outer`, `.at`"
    return "files" if name in np._IO else "functions of `tecomp.array`, arguments also by position"


def table() -> Iterator[str]:
    """Yield the lines of the table."""
    groups: dict[str, list[str]] = {}
    for name in dir(np):
        if name not in NAMESPACES:
            groups.setdefault(kind_of(name), []).append(name)
    yield "| implementation | names |\n"
    yield "| --- | --- |\n"
    for kind, names in sorted(groups.items()):
        yield f"| {kind} | {' '.join(f'`{name}`' for name in names)} |\n"


def document() -> str:
    """Return the page with the current table."""
    text = DOCUMENT.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    return before + BEGIN + "".join(table()) + END + rest.partition(END)[2]


if __name__ == "__main__":
    DOCUMENT.write_text(document(), encoding="utf-8")
