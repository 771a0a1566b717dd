"""How a stencil and a product of matrices scale to 1,024 processes, by a model, as a picture.

Each process has the same work (weak scaling). The model, whose numbers are arguments below:

- A process computes at `RATE` elements of the stencil and `FLOPS` operations of the product per
  second, whatever others do: as one process of the benchmark alone.
- A message takes `LATENCY` seconds and `1 / BANDWIDTH` per byte; messages of one process follow
  each other, those of different processes do not disturb each other.
- Nothing is overlapped. The stencil sends a row to each of two neighbours, or a side to each of
  four. The product gathers the second operand (rows), or rows and columns of blocks (SUMMA).

`python -m tests.bench.teams.scaling docs/teams-scaling.svg`
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from math import isqrt
from pathlib import Path

RATE, FLOPS = 7.5e8, 5.0e10
LATENCY, BANDWIDTH = 2e-6, 1.0e10
SIDE, ORDER = 2000, 1200
"""Rows and columns of the stencil's part, and of the product's, of one process."""
COUNTS = (1, 4, 16, 64, 256, 1024)


def message(nbytes: float) -> float:
    """Seconds of one message."""
    return LATENCY + nbytes / BANDWIDTH


def stencil_rows(count: int) -> float:
    """The share of the time in which elements are computed, cut into rows.

    The array has `SIDE * sqrt(count)` rows and columns, so that rows get longer.
    """
    work = SIDE * SIDE / RATE
    return work / (work + (2 * message(8 * SIDE * isqrt(count)) if count > 1 else 0))


def stencil_blocks(count: int) -> float:
    """The same, cut into squares."""
    work = SIDE * SIDE / RATE
    return work / (work + (4 * message(8 * SIDE) if count > 1 else 0))


def product_rows(count: int) -> float:
    """The same for a product of matrices, of which the second is gathered."""
    order = ORDER * isqrt(count)
    work = 2 * order**3 / count / FLOPS
    sent = (count - 1) * message(8 * order * order / count)
    return work / (work + sent)


def product_blocks(count: int) -> float:
    """The same by blocks of rows and of columns."""
    order, side = ORDER * isqrt(count), isqrt(count)
    work = 2 * order**3 / count / FLOPS
    sent = 2 * (side - 1) * message(8 * order * order / count)
    return work / (work + sent)


CURVES: dict[str, Callable[[int], float]] = {
    "stencil, rows": stencil_rows, "stencil, squares": stencil_blocks,
    "product, rows": product_rows, "product, blocks (SUMMA)": product_blocks,
}
COLOURS = ("#1b6ca8", "#1b6ca8", "#b3541e", "#b3541e")


def picture() -> str:
    """The curves as SVG."""
    left, top, width, height = 60, 30, 480, 260
    x = [left + width * k / (len(COUNTS) - 1) for k in range(len(COUNTS))]
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {left + width + 200} '
        f'{top + height + 50}" font-family="sans-serif" font-size="12">',
        f'<rect width="{left + width + 200}" height="{top + height + 50}" fill="white"/>',
    ]
    for share in (0, 0.25, 0.5, 0.75, 1):
        y = top + height * (1 - share)
        parts.append(f'<path d="M{left} {y:.1f}h{width}" stroke="#ddd"/>')
        parts.append(f'<text x="{left - 8}" y="{y + 4:.1f}" text-anchor="end">{share:.0%}</text>')
    for at, count in zip(x, COUNTS, strict=True):
        parts.append(f'<text x="{at:.1f}" y="{top + height + 18}" text-anchor="middle">{count}</text>')
    parts.append(
        f'<text x="{left + width / 2}" y="{top + height + 38}" text-anchor="middle">processes, each '
        "with the same work</text>")
    parts.append(f'<text x="{left}" y="18">share of the time that is not spent on messages</text>')
    for k, ((name, curve), colour) in enumerate(zip(CURVES.items(), COLOURS, strict=True)):
        line = [top + height * (1 - curve(count)) for count in COUNTS]
        path = "L".join([f"{at:.1f} {down:.1f}" for at, down in zip(x, line, strict=True)])
        dash = "" if k % 2 else ' stroke-dasharray="5 4"'
        parts.append(f'<path d="M{path}" fill="none" stroke="{colour}" stroke-width="2"{dash}/>')
        below = line[-1] + (4 if k != 1 else -6)
        parts.append(f'<text x="{x[-1] + 8:.1f}" y="{below:.1f}">{name}</text>')
    return "\n".join([*parts, "</svg>\n"])


def main(arguments: Sequence[str]) -> int:
    """Write the picture, and print its numbers."""
    Path(arguments[0]).write_text(picture())
    print("| | " + " | ".join(map(str, COUNTS)) + " |")
    for name, curve in CURVES.items():
        print(f"| {name} | " + " | ".join(f"{curve(count):.1%}" for count in COUNTS) + " |")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
