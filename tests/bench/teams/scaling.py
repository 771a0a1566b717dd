"""Draw the modelled weak scaling of a stencil and a matrix product to 1,024 processes.

Each process has the same work (weak scaling). The parameters of the model are constants below:

- A process computes at `RATE` elements of the stencil and `FLOPS` operations of the product per
  second, independent of other processes: the rates of one process of the benchmark alone.
- A message takes `LATENCY` seconds and `1 / BANDWIDTH` per byte. Messages of one process are
  serial; messages of different processes do not share bandwidth.
- The stencil sends a row to each of two neighbours, or a side to each of four. The product gathers
  the second operand (rows), or rows and columns of blocks (SUMMA).
- Nothing is overlapped, except in the curves that say so: there messages proceed while the process
  computes elements that need no message. This holds over a network, but not if MPI copies messages
  by the CPU. The ring accumulates a product with the rows of each process, at `MEMORY` bytes per
  second.

`python -m tests.bench.teams.scaling docs/teams-scaling.svg`
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from math import isqrt
from pathlib import Path

RATE, FLOPS = 7.5e8, 5.0e10
LATENCY, BANDWIDTH, MEMORY = 2e-6, 1.0e10, 1.0e10
SIDE, ORDER = 2000, 1200
"""Rows and columns of the stencil part, and of the product part, of one process."""
COUNTS = (1, 4, 16, 64, 256, 1024)


def message(nbytes: float) -> float:
    """Return the seconds of one message."""
    return LATENCY + nbytes / BANDWIDTH


def stencil_rows(count: int) -> float:
    """Return the compute fraction of the time for a stencil in row blocks.

    The array has `SIDE * sqrt(count)` rows and columns, so the rows get longer.
    """
    work = SIDE * SIDE / RATE
    return work / (work + (2 * message(8 * SIDE * isqrt(count)) if count > 1 else 0))


def stencil_meanwhile(count: int) -> float:
    """Return the fraction with messages overlapped by all rows but two."""
    work, columns = SIDE * SIDE / RATE, SIDE * isqrt(count)
    core = work - 2 * columns / RATE
    return work / (max(core, 2 * message(8 * columns) if count > 1 else 0) + work - core)


def stencil_blocks(count: int) -> float:
    """Return the fraction for a stencil in square blocks."""
    work = SIDE * SIDE / RATE
    return work / (work + (4 * message(8 * SIDE) if count > 1 else 0))


def product_rows(count: int) -> float:
    """Return the fraction for a matrix product whose second factor is gathered."""
    order = ORDER * isqrt(count)
    work = 2 * order**3 / count / FLOPS
    sent = (count - 1) * message(8 * order * order / count)
    return work / (work + sent)


def product_blocks(count: int) -> float:
    """Return the fraction for a matrix product in blocks of rows and columns."""
    order, side = ORDER * isqrt(count), isqrt(count)
    work = 2 * order**3 / count / FLOPS
    sent = 2 * (side - 1) * message(8 * order * order / count)
    return work / (work + sent)


def product_ring(count: int) -> float:
    """Return the fraction for a ring: rows of one process, while the next ones are transferred."""
    order = ORDER * isqrt(count)
    work = 2 * order**3 / count / FLOPS
    added = 3 * 8 * order * order / count / MEMORY
    step = max(work / count + added, message(8 * order * order / count))
    return work / (work + (count - 1) * (step - work / count))


BLUE, RED = "#1b6ca8", "#b3541e"
CURVES: dict[str, tuple[Callable[[int], float], str, str]] = {
    "stencil, rows, overlapped": (stencil_meanwhile, BLUE, "1 3"),
    "stencil, squares": (stencil_blocks, BLUE, ""),
    "stencil, rows": (stencil_rows, BLUE, "5 4"),
    "product, blocks (SUMMA)": (product_blocks, RED, ""),
    "product, ring, overlapped": (product_ring, RED, "1 3"),
    "product, rows": (product_rows, RED, "5 4"),
}


def picture() -> str:
    """Return the curves as SVG."""
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
    parts.append(f'<text x="{left}" y="18">share of the time that is spent on what one process would do</text>')
    below = 0.0
    for name, (curve, colour, dash) in sorted(
        CURVES.items(), key=lambda item: -item[1][0](COUNTS[-1])
    ):
        line = [top + height * (1 - curve(count)) for count in COUNTS]
        path = "L".join([f"{at:.1f} {down:.1f}" for at, down in zip(x, line, strict=True)])
        dashed = f' stroke-dasharray="{dash}"' if dash else ""
        parts.append(f'<path d="M{path}" fill="none" stroke="{colour}" stroke-width="2"{dashed}/>')
        below = max(line[-1] + 4, below + 14)  # next to the end of the line, below other names
        parts.append(f'<text x="{x[-1] + 8:.1f}" y="{below:.1f}" fill="{colour}">{name}</text>')
    return "\n".join([*parts, "</svg>\n"])


def main(arguments: Sequence[str]) -> int:
    """Write the picture, and print its numbers."""
    Path(arguments[0]).write_text(picture())
    print("| | " + " | ".join(map(str, COUNTS)) + " |")
    for name, (curve, _, _) in CURVES.items():
        print(f"| {name} | " + " | ".join(f"{curve(count):.1%}" for count in COUNTS) + " |")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
