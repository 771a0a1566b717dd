"""Draw the architecture: packages by layer, and the imports between packages.

`python -m tests.architecture docs/architecture.svg` writes the picture.
"""

from __future__ import annotations

import sys
from pathlib import Path

from tecomp.drawing import MARGIN, Canvas, Svg, colour, head, legend
from tests.test_layers import INSIDE, LAYERS, files_of, inner_imports

ROW, CELL = 20.0, 18.0
NAMES, INNER = 132.0, 400.0
"""Widths of the columns with the packages and with their sub-packages."""


def packages() -> list[tuple[int, str]]:
    """Return all packages with the number of their layer, highest layer first."""
    found = [(height, room) for height, layer in enumerate(LAYERS) for room in sorted(layer)]
    return sorted(found, key=lambda item: (-item[0], item[1]))


def imported_by(room: str) -> set[str]:
    """Return the other packages that the files of a package import."""
    return {entry.package for path in files_of(room) for entry in inner_imports(path)} - {room}


def inside(room: str) -> str:
    """Return the sub-packages of a large package, highest layer first."""
    layers = reversed(INSIDE.get(room, []))
    names = (", ".join(sorted(layer - {"__init__"})) for layer in layers)
    return " / ".join(filter(None, names))


def picture() -> Svg:
    """Draw a row per package, and a column per imported package."""
    canvas, listed = Canvas(), packages()
    y = head(
        canvas, "Packages and their imports",
        "Highest layer first; packages in one band are one layer. A mark is an import in the code: all are right of "
        "the package itself, as imports only point downwards.",
    ) + 34
    x = MARGIN + NAMES + INNER + 24
    for row, (height, room) in enumerate(listed):
        top = y + row * ROW
        if not row or listed[row - 1][0] != height:
            _band(canvas, top, sum(item[0] == height for item in listed), len(listed), height)
        canvas.text(MARGIN + 4, top + 14, room, size=12, style="mono bold", width=NAMES)
        canvas.text(MARGIN + NAMES, top + 14, inside(room), size=10, style="soft", width=INNER)
        canvas.text(x - 6, top + 14, str(row + 1), size=10, style="soft", anchor="end")
        canvas.text(x + row * CELL + CELL / 2, y - 6, str(row + 1), size=10, style="soft", anchor="middle")
        _marks(canvas, x, top, row, [name for _, name in listed])
    legend(canvas, y + len(listed) * ROW + 16, [
        (colour(0, 2), "the package of the row imports that of the column"), ("pad", "the package itself")])
    return canvas.finished("Packages of tecomp in layers, and their imports")


def _band(canvas: Canvas, top: float, count: int, rows: int, height: int) -> None:
    """Draw the background of a layer; odd layers are shaded."""
    width = NAMES + INNER + 24 + rows * CELL
    if height % 2:
        canvas.box(MARGIN, top, width, count * ROW, "plain")


def _marks(canvas: Canvas, x: float, top: float, row: int, names: list[str]) -> None:
    used = imported_by(names[row])
    for column, name in enumerate(names):
        place = x + column * CELL + 2, top + 3, CELL - 4, ROW - 6
        if column == row:
            canvas.box(*place, "pad", name)
        elif name in used:
            canvas.box(*place, colour(0, 2), f"{names[row]} imports {name}")


if __name__ == "__main__":
    picture().save(Path(sys.argv[1]))
