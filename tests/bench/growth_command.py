"""Measure compile time of 10 to 1,000 operations: `python tests/bench/growth.py`."""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Mapping, Sequence
from math import log10
from pathlib import Path

import tecomp
from tecomp import te
from tecomp.compute import post_order
from tecomp.drawing import Canvas
from tests.bench.programs_of_size import KINDS, different

COUNTS = (10, 30, 100, 300, 1000)
_MOST_KERNELS = 100
_COLOURS = ("#4a9ad9", "#f1a136", "#37b588")
_LEFT, _TOP, _WIDTH, _HEIGHT = 70.0, 60.0, 520.0, 300.0
_LEAST, _MOST = -2.0, 2.0
"""Range of the time axis in powers of ten seconds."""


def seconds(value: te.Tensor) -> float:
    """Return the compile time in seconds of a program that is in no cache."""
    source = next(op for op in post_order([value.op]) if not op.input_tensors and op.name == "X")
    start = time.perf_counter()
    tecomp.compile(value, [source.output(0)])
    return time.perf_counter() - start


def measured(counts: Sequence[int], turns: int) -> dict[str, list[float]]:
    """Return the minimum time of several runs per kind and number of operations.

    Programs of pairwise different kernels have only the smaller numbers of operations.
    """
    os.environ["TECOMP_CACHE"] = "off"
    for make in KINDS.values():
        seconds(make(10))
    return {
        kind: [
            min(seconds(make(count)) for _ in range(turns)) for count in counts
            if make is not different or count <= _MOST_KERNELS
        ]
        for kind, make in KINDS.items()
    }


def table(counts: Sequence[int], found: Mapping[str, Sequence[float]]) -> str:
    """Return a table of milliseconds per operation."""
    lines = ["operations  " + "  ".join(f"{kind:>24}" for kind in found)]
    for k, count in enumerate(counts):
        each = (
            f"{values[k]:.3f} s, {1e3 * values[k] / count:.2f} ms each" if k < len(values) else ""
            for values in found.values()
        )
        lines.append(f"{count:>10}  " + "  ".join(f"{text:>24}" for text in each))
    return "\n".join(lines)


def picture(counts: Sequence[int], found: Mapping[str, Sequence[float]]) -> str:
    """Draw both axes logarithmically, so that linear growth is parallel to the grey lines."""
    canvas = Canvas()
    canvas.text(_LEFT, 30, "Seconds to compile a program", size=16, style="bold")
    for power in range(int(_LEAST), int(_MOST) + 1):
        y = _place(1, 10.0**power)[1]
        canvas.line([(_LEFT, y), (_LEFT + _WIDTH, y)], "#dfe3e8")
        canvas.text(_LEFT - 8, y + 4, f"{10.0**power:g}", style="soft", anchor="end")
    for count in counts:
        x, y = _place(count, 10.0**_LEAST)
        canvas.text(x, y + 18, f"{count:_}", style="soft", anchor="middle")
    canvas.text(_LEFT + _WIDTH / 2, _TOP + _HEIGHT + 40, "operations", style="soft", anchor="middle")
    for cost in (1e-3, 1e-2, 1e-1):
        ends = [_place(n, cost * n) for n in (10, 1000)]
        canvas.line(ends, "#aab2bd")
    for number, (kind, values) in enumerate(found.items()):
        points = [_place(n, value) for n, value in zip(counts, values, strict=False)]
        canvas.line(points, _COLOURS[number])
        for x, y in points:
            canvas.box(x - 3, y - 3, 6, 6, _COLOURS[number])
        canvas.text(points[-1][0] + 14, points[-1][1] + 4, kind)
    return canvas.finished("seconds to compile a program, by the number of its operations")


def _place(count: float, value: float) -> tuple[float, float]:
    across = (log10(count) - 1) / 2 if count > 1 else 0
    up = (log10(value) - _LEAST) / (_MOST - _LEAST)
    return _LEFT + _WIDTH * across, _TOP + _HEIGHT * (1 - min(max(up, 0), 1))


def main() -> None:
    """Measure, print, and write the picture on request."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=3, help="the least of so many is shown")
    parser.add_argument("--write", type=Path, help="where the picture goes; nowhere by default")
    options = parser.parse_args()
    found = measured(COUNTS, options.turns)
    print(table(COUNTS, found))
    if options.write:
        options.write.write_text(picture(COUNTS, found) + "\n")


if __name__ == "__main__":
    main()
