"""The document about speed, and its chart, from a record."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.bench.chart import chart
from tests.bench.record import Record
from tests.bench.table import blas_cores, markdown, notes

_TITLES = {
    "matmul": "Products of matrices",
    "conv2d": "Convolutions",
    "pool": "Pooling",
    "blur": "A blur",
    "rows": "Functions of elements and rows",
    "reduce": "Reductions",
    "attention": "Attention",
    "layout": "Questions about layouts",
    "dma": "Nests of copies",
    "runs": "Contiguous runs",
    "relayout": "From one layout to another",
    "target": "Reading targets",
    "threads": "Two threads",
    "compile": "Compiling",
    "cached": "Compiling what was compiled before",
    "call": "Calling",
}

_HOW_TO_READ = """\
## How to read this

- **tecomp** is the shortest time of a call, **median** the middle one. All contenders of a row are
  processes of their own, on the same cores, that take turns; what disturbs one disturbs all. So
  compare within a row, and rows by their ratios.
- **of limit** is the share of what the machine does in the same turns: for products and
  convolutions a loop of multiply-add instructions over registers; for what the memory bounds, a
  `memcpy` that reads and writes as many bytes in all. What only reads may exceed 1: a copy also
  writes.
- A column with a **peer's name** says how many times as fast as the peer tecomp is; above 1 tecomp
  is faster. The fastest peer is in bold. NumPy is the best of all kernels that its OpenBLAS has for
  this processor (`OPENBLAS_CORETYPE`).
- Peers run in the form that their documents recommend: compiled and warm, images channels-last,
  results into existing arrays where they can, and with an allocator that keeps its memory. Inputs
  are converted outside the timing, and results are compared with NumPy in float64 before it.
- Where the memory is the limit, calls take turns with several sets of inputs that no cache holds.
- Compiling is the time from a definition to something that can be called, in a process that has
  compiled something else before; each measurement is a new process. A peer that leaves a product or
  a convolution to a library has little to compile there.
- **▾** marks rows that fall short of what this project asks of itself; see the end.
"""


def write_report(record: Record, path: Path) -> None:
    """Write the document, and the chart beside it."""
    picture = path.with_suffix(".svg")
    path.write_text(document(record, picture.name), encoding="utf-8")
    picture.write_text(chart(record.rows), encoding="utf-8")


def _how_measured(record: Record) -> str:
    if "\n" in record.command:
        return "Rounds, times and clocks are those of each command:"
    clock = ", in time of the processor:" if record.clock == "cpu" else ":"
    return f"{record.rounds} rounds of {record.seconds:g} s for each contender and row{clock}"


def document(record: Record, picture: str) -> str:
    """The text of the document."""
    families = list(dict.fromkeys(row.family for row in record.rows))
    versions = ", ".join(f"{name} {version}" for name, version in record.versions.items())
    parts = [
        "# Speed", "",
        "<!-- Written by tests/bench/run.py; edit that. -->", "",
        f"Measured on {machine_text(record.machine)}.",
        f"With {versions}.",
        _how_measured(record), "",
        "```bash", record.command, "```", "",
    ]
    if record.note:
        parts += [f"**{record.note}**", ""]
    parts += [f"![How many times as fast as each peer tecomp is]({picture})", "", _HOW_TO_READ]
    for family in families:
        rows = [row for row in record.rows if row.family == family]
        parts += [f"## {_TITLES.get(family, family)}", "", markdown(rows), ""]
    if best := blas_cores(record.rows):
        parts += [f"The fastest kernels of OpenBLAS, by rows: {best}.", ""]
    if short := notes(record.rows):
        parts += ["## What falls short", "", *(f"- {note}" for note in short), ""]
    return "\n".join(parts)


def machine_text(machine: Mapping[str, Any]) -> str:
    """The machine in a sentence."""
    caches = " / ".join(f"{size // 1024} KB" for size in machine["cache_bytes"])
    vectors = machine["vector_bytes"]
    return (
        f"{machine['cpu']}, {machine['cores']} cores"
        + (f", vectors of {vectors * 8} bits" if vectors else "")
        + (f", caches of {caches}" if caches else "")
        + f"; {machine['system']}, Python {machine['python']}"
    )
