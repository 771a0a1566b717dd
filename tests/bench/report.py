"""Performance document and its chart, from a record."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.bench.chart import chart
from tests.bench.record import Record
from tests.bench.table import blas_cores, markdown, notes

_TITLES = {
    "matmul": "Matrix products",
    "conv2d": "Convolutions",
    "pool": "Pooling",
    "blur": "Stencils",
    "rows": "Element-wise and row-wise operators",
    "reduce": "Reductions",
    "attention": "Attention",
    "layout": "Layout queries",
    "dma": "DMA descriptors",
    "runs": "Contiguous runs",
    "relayout": "Relayouts",
    "target": "Loading of targets",
    "threads": "Two threads",
    "compile": "Compilation",
    "cached": "Warm compilation",
    "call": "Call overhead",
}

_HOW_TO_READ = """\
## Methodology

- **tecomp** is the minimum time of a call, **median** the median time. All systems of a row run in
  separate processes, on the same cores, alternately, so that disturbances affect all of them. Compare
  times within a row, and rows by their ratios.
- **of limit** is the fraction of the peak rate, measured in the same turns. For products and
  convolutions the peak is a loop of multiply-add instructions on registers. For cases that are bound
  by memory it is a `memcpy` that reads and writes the same total number of bytes. Cases that only
  read may exceed 1, because a copy also writes.
- A column with a **peer's name** is the speedup of tecomp over the peer; above 1 tecomp is faster.
  The fastest peer is in bold. NumPy is measured with all kernels that its OpenBLAS has for this CPU
  (`OPENBLAS_CORETYPE`), and the best one counts.
- Peers run in the form that their documentation recommends: compiled and warm, images channels-last,
  results in existing arrays where supported, and with an allocator that retains its memory. Inputs
  are converted outside of the timed region, and results are first compared with NumPy in float64.
- Where memory is the limit, calls alternate between several sets of inputs that fit in no cache.
- Compile time is the time from a definition to a callable, in a process that has compiled another
  program before. Each measurement uses a new process. A peer that calls a library for a product or a
  convolution has little to compile.
- **▾** marks rows that do not reach the performance targets of this project, see the last section.
"""


def write_report(record: Record, path: Path) -> None:
    """Write the document, and the chart next to it."""
    picture = path.with_suffix(".svg")
    path.write_text(document(record, picture.name), encoding="utf-8")
    picture.write_text(chart(record.rows), encoding="utf-8")


def _how_measured(record: Record) -> str:
    if "\n" in record.command:
        return "Each command states its rounds, time per round and clock:"
    clock = ", in CPU time:" if record.clock == "cpu" else ":"
    return f"{record.rounds} rounds of {record.seconds:g} s for each system and row{clock}"


def document(record: Record, picture: str) -> str:
    """Return the text of the document."""
    families = list(dict.fromkeys(row.family for row in record.rows))
    versions = ", ".join(f"{name} {version}" for name, version in record.versions.items())
    parts = [
        "# Performance", "",
        "<!-- Written by tests/bench/run.py. Edit tests/bench/report.py instead. -->", "",
        f"Measured on {machine_text(record.machine)}.",
        f"With {versions}.",
        _how_measured(record), "",
        "```bash", record.command, "```", "",
    ]
    if record.note:
        parts += [f"**{record.note}**", ""]
    parts += [f"![Speedup of tecomp over each peer]({picture})", "", _HOW_TO_READ]
    for family in families:
        rows = [row for row in record.rows if row.family == family]
        parts += [f"## {_TITLES.get(family, family)}", "", markdown(rows), ""]
    if best := blas_cores(record.rows):
        parts += [f"Number of rows for which each kernel of OpenBLAS is the fastest: {best}.", ""]
    if short := notes(record.rows):
        parts += ["## Known performance gaps", "", *(f"- {note}" for note in short), ""]
    return "\n".join(parts)


def machine_text(machine: Mapping[str, Any]) -> str:
    """Return the machine description as a sentence."""
    caches = " / ".join(f"{size // 1024} KB" for size in machine["cache_bytes"])
    vectors = machine["vector_bytes"]
    return (
        f"{machine['cpu']}, {machine['cores']} cores"
        + (f", vectors of {vectors * 8} bits" if vectors else "")
        + (f", caches of {caches}" if caches else "")
        + f"; {machine['system']}, Python {machine['python']}"
    )
