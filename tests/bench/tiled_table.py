"""Print the layout table of docs/tiled-tensors.md: `python -m tests.bench.tiled_table`.

The table shows modelled cycles of kernels on `stick128` without host transfers: with row-major
values, with values in the sticks of the machine, and as `tecomp.compile` chooses.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping

import numpy as np

from tecomp import Layout, StickLayout, Target, te
from tecomp.compute import post_order
from tecomp.graph import details_of, validate_request
from tests.bench.layouts_table import Network, encoder

MACHINE = Target.load("stick128")
SIZE = 1024


def rows(x: te.Tensor) -> Layout:
    """Return the row-major layout in sticks: the sticks of one row after the other."""
    lanes = 128 // te.const(0, x.dtype).dtype.bytes
    shape = [int(n) for n in x.shape]
    return Layout.of(shape, x.dtype, lambda *i: [*i[:-1], i[-1] // lanes, i[-1] % lanes], memory="ddr")


def sticks(x: te.Tensor) -> Layout:
    """Return the layout of the machine: the first sticks of all rows, then the second ones."""
    return StickLayout.for_target(MACHINE, [int(n) for n in x.shape], x.dtype, pad_all_dims=False)


def values(output: te.Tensor) -> list[te.Tensor]:
    """Return values in full sticks; vectors have only one order."""
    every = [op.output(0) for op in post_order([output.op])]
    return [x for x in every if len(x.shape) > 1 and not _is_along_lanes(x)]


def _is_along_lanes(x: te.Tensor) -> bool:
    """Return whether a reduction produces sparse sticks."""
    return bool(getattr(x.op, "reduce_axis", ())) and len(x.op.input_tensors) == 1


def operations() -> Iterator[tuple[str, Network]]:
    """Return operations on matrices of two-byte values."""
    X, W = (te.placeholder((SIZE, SIZE), "float16", name=name) for name in "XW")
    k = te.reduce_axis((0, SIZE), name="k")
    yield "exp", ([X], [], te.compute(X.shape, lambda i, j: te.exp(X[i, j]), name="Y"))
    yield "sum of two", ([X, W], [], te.compute(X.shape, lambda i, j: X[i, j] + W[i, j], name="Y"))
    yield "maxima of columns", (
        [X], [], te.compute((SIZE,), lambda j: te.max(X[k, j], axis=k), name="Y"))
    yield "maxima of rows", (
        [X], [], te.compute((SIZE,), lambda i: te.max(X[i, k], axis=k), name="Y"))
    yield "product", ([X, W], [], te.compute(X.shape, lambda i, j: te.sum(
        te.cast(X[i, k], "float32") * te.cast(W[k, j], "float32"), axis=k), name="Y"))


def cycles(program: Network, argument: Mapping[te.Tensor, Layout]) -> float:
    """Return the cycles of the kernels of a program without host transfers."""
    passed, constants, output = program
    known = {x: np.zeros([int(n) for n in x.shape], str(x.dtype)) for x in constants}
    requested = validate_request([output], passed, MACHINE, known, "program", argument)
    report = details_of(requested).report("program", MACHINE, 0, measured=False)
    return sum(kernel.cycles for kernel in report.kernels if not kernel.bound_by.startswith("host"))


def row(name: str, program: Network) -> str:
    """Return a row of the table."""
    actual = values(program[2])
    found = [cycles(program, {x: place(x) for x in actual}) for place in (rows, sticks)]
    found.append(cycles(program, {}))
    return f"| {name} | {' | '.join(f'{item:,.0f}' for item in found)} |"


def main() -> None:
    """Print the table."""
    print("| program | in rows | in sticks | chosen |")
    print("| --- | ---: | ---: | ---: |")
    for name, program in (*operations(), ("encoder layer", encoder())):
        print(row(name, program))
        sys.stdout.flush()


if __name__ == "__main__":
    main()
