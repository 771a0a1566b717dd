"""Scratchpad residency between kernels: resident values, saved bytes, and reasons against it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tecomp
from tecomp import te
from tecomp.driver import CompiledProgram
from tecomp.graph import Residency, SpillKind
from tests.numerics import assert_close

Array = np.ndarray[Any, Any]
ACME = str(Path(__file__).parents[1] / "plugins" / "acme" / "acme_target" / "acme.toml")
ROWS, COLUMNS = 96, 64
random = np.random.default_rng(0)


def given(rows: int = ROWS, columns: int = COLUMNS) -> te.Tensor:
    return te.placeholder((rows, columns), name="X")


def parts_of_rows(x: te.Tensor) -> tuple[te.Tensor, te.Tensor, te.Tensor]:
    """Return exponentials, their row sums, and each exponential divided by its row sum.

    Row sums along two axes are kernels of their own: one kernel computes all of a softmax.
    """
    k, r = te.reduce_axis((0, x.shape[1] // 8), name="k"), te.reduce_axis((0, 8), name="r")
    powers = te.compute(x.shape, lambda i, j: te.exp(x[i, j]), name="powers")
    total = te.compute(
        (x.shape[0], 1), lambda i, j: te.sum(powers[i, k * 8 + r], axis=(k, r)), name="total")
    part = te.compute(x.shape, lambda i, j: powers[i, j] / total[i, 0], name="part")
    return powers, total, part


def product(x: te.Tensor, w: te.Tensor, name: str) -> te.Tensor:
    k = te.reduce_axis((0, x.shape[1]), name="k")
    return te.compute(
        (x.shape[0], w.shape[1]), lambda i, j: te.sum(x[i, k] * w[k, j], axis=k), name=name
    )


def in_memory(groups: Any, *_: object) -> Residency:
    """Return the decision that keeps all values in device memory."""
    return Residency(tuple(groups))


def moved(program: CompiledProgram) -> int:
    """Return the total bytes that kernels read and write."""
    return sum(kernel.reads + kernel.writes for kernel in program.report().kernels)


def names(program: CompiledProgram) -> list[str]:
    return [resident.tensor.name for resident in program.memory.residents]


@pytest.mark.exhaustive(keep=1)
@pytest.mark.parametrize(("machine", "rows"), [("stick128", 96), ("tensix_wh", 2048), (ACME, 96)])
def test_values_read_by_their_producers_stay_resident(
    machine: str, rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    X = given(rows)
    _, _, part = parts_of_rows(X)
    program = tecomp.compile(part, [X], machine)
    monkeypatch.setattr("tecomp.graph.planning.residency", in_memory)
    stored = tecomp.compile(part, [X], machine)
    x = random.standard_normal((rows, COLUMNS)).astype("float32")

    expected = np.exp(x) / np.exp(x).sum(1, keepdims=True)
    assert_close(program(x), expected, rtol=1e-4)
    np.testing.assert_array_equal(program(x), stored(x))
    assert names(program) == ["powers", "total"]
    powers, total = (resident.bytes for resident in program.memory.residents)
    # One store of each value; two kernels load the powers, and one loads the sums.
    assert moved(stored) - moved(program) == 3 * powers + 2 * total
    assert program.memory.bytes < stored.memory.bytes
    assert not {"powers", "total"} & {value.tensor.name for value in program.memory.values}
    assert program.report().cycles <= stored.report().cycles


@pytest.mark.exhaustive(keep=1)
@pytest.mark.parametrize("machine", ["stick128", ACME])
def test_products_stay(machine: str) -> None:
    """A product stays resident if its rows are divided as its sum of squares requires."""
    X, W = given(), te.placeholder((COLUMNS, 32), name="W")
    H = product(X, W, "H")
    r = te.reduce_axis((0, 32), name="r")
    S = te.compute((ROWS, 1), lambda i, j: te.sum(H[i, r] * H[i, r], axis=r), name="S")
    Y = te.compute((ROWS, 32), lambda i, j: H[i, j] / te.sqrt(S[i, 0] + 1.0), name="Y")
    x, w = (random.standard_normal(n).astype("float32") for n in ((ROWS, COLUMNS), (COLUMNS, 32)))

    program = tecomp.compile(Y, [X], machine, constants={W: w})

    expected = (x @ w) / np.sqrt(((x @ w) ** 2).sum(1, keepdims=True) + 1)
    assert_close(program(x), expected, rtol=1e-3, atol=1e-4)
    assert names(program) == ["H", "S"]


def test_a_kernel_is_split_along_fewer_axes_for_its_operands() -> None:
    """A batched product uses fewer division axes than optimal so that its factor stays resident."""
    heads, size, depth = 12, 128, 64
    X = te.placeholder((heads, size, size), name="X")
    V = te.placeholder((size, heads, depth), name="V")
    k, r = te.reduce_axis((0, size), name="k"), te.reduce_axis((0, size), name="r")
    powers = te.compute(X.shape, lambda h, i, j: te.exp(X[h, i, j]), name="powers")
    total = te.compute(
        (heads, size, 1), lambda h, i, j: te.sum(powers[h, i, k], axis=k), name="total")
    part = te.compute(
        X.shape, lambda h, i, j: powers[h, i, j] / total[h, i, 0], name="part")
    Y = te.compute((size, heads, depth), lambda i, h, f: te.sum(
        part[h, i, r] * V[r, h, f], axis=r), name="Y")
    x, v = (random.standard_normal([int(n) for n in y.shape]).astype("float32") for y in (X, V))

    program = tecomp.compile(Y, [X, V], "tensix_wh")

    e = np.exp(x)
    expected = np.einsum("hir,rhf->ihf", e / e.sum(2, keepdims=True), v)
    assert_close(program(x, v), expected, rtol=1e-3, atol=1e-4)
    assert [resident.parts for resident in program.memory.residents] == [(12, 4, 1)] * 3


def test_values_read_along_both_axes_are_in_memory() -> None:
    """A value that is read transposed goes to memory: the reads of a core are other blocks."""
    X, size = given(128, 128), 128
    powers = te.compute((size, size), lambda i, j: te.exp(X[i, j]), name="powers")
    Y = te.compute((size, size), lambda i, j: powers[i, j] + powers[j, i], name="Y")
    x = random.standard_normal((size, size)).astype("float32")

    program = tecomp.compile(Y, [X], "tensix_wh")

    assert_close(program(x), np.exp(x) + np.exp(x).T, rtol=1e-4)
    assert names(program) == []


Asked = tuple[te.Tensor | list[te.Tensor], list[te.Tensor], dict[str, Any]]
"""Outputs, inputs and compile options."""


def rows(columns: int = COLUMNS) -> Asked:
    X = given(64, columns)
    return parts_of_rows(X)[2], [X], {}


def summed_along_steps() -> Asked:
    """Return a scan, whose values have row-major layouts."""
    X = given()
    _, _, part = parts_of_rows(X)
    state = te.placeholder(X.shape, name="state")
    first = te.compute((1, COLUMNS), lambda t, j: part[0, j], name="first")
    step = te.compute(X.shape, lambda t, j: state[t - 1, j] + part[t, j], name="step")
    summed = te.scan(first, step, state, name="summed")
    doubled = te.compute(X.shape, lambda i, j: summed[i, j] * 2.0, name="doubled")
    return [summed, doubled], [X], {}


def in_a_layout() -> Asked:
    X = given()
    powers, _, part = parts_of_rows(X)
    return part, [X], {"layouts": {powers: "default"}}


def with_padding() -> Asked:
    """Return a product that also sums the zero padding of its factors."""
    A, B = (te.placeholder((100, n), "float16", name=name) for n, name in ((100, "A"), (64, "B")))
    powers = te.compute((100, 100), lambda i, j: te.exp(A[i, j]), name="powers")
    result = product(powers, B, "made")
    return te.compute((100, 64), lambda i, j: result[i, j] + powers[i, j], name="Y"), [A, B], {}


def as_hinted(of: int) -> Asked:
    X = given()
    every = parts_of_rows(X)
    return every[2], [X], {"hints": [tecomp.hint(every[of], cores={"i": 8})]}


def with_places() -> Asked:
    """Return the maximum of each row with its index: one reduction with two results."""
    X = given()
    k = te.reduce_axis((0, COLUMNS), name="k")
    greatest = te.comm_reducer(
        lambda a, b: (te.select(a[1] >= b[1], a[0], b[0]), te.select(a[1] >= b[1], a[1], b[1])),
        lambda s, t: (te.const(-1, s), te.min_value(t)), name="greatest",
    )
    places, values = te.compute(
        (ROWS,), lambda i: greatest((te.cast(k, "int32"), X[i, k]), axis=k), name="greatest")
    return te.compute((ROWS,), lambda i: values[i] + places[i].astype("float32"), name="Y"), [X], {}


def of_long_rows() -> Asked:
    X = given(8, 8192)
    return parts_of_rows(X)[2], [X], {}


def gathered() -> Asked:
    X, places = given(), te.placeholder((ROWS,), "int32", name="places")
    powers, total, _ = parts_of_rows(X)
    Y = te.compute((ROWS, COLUMNS), lambda i, j: powers[places[i], j] + total[i, 0], name="Y")
    return Y, [X, places], {}


def reshaped() -> Asked:
    X, W = given(), te.placeholder((32, 32), name="W")
    _, _, part = parts_of_rows(X)
    halves = te.compute((2 * ROWS, 32), lambda i, j: part[i // 2, i % 2 * 32 + j], name="halves")
    return product(halves, W, "Y"), [X, W], {}


def multiplied() -> Asked:
    X, W = given(128), te.placeholder((COLUMNS, 64), name="W")
    return product(parts_of_rows(X)[2], W, "Y"), [X, W], {}


def normed_products() -> Asked:
    """Return a normalized product: whole rows on a core would require all of the other factor."""
    X, W = given(64, 512), te.placeholder((512, 512), name="W")
    return parts_of_rows(product(X, W, "made"))[2], [X, W], {}


def read_by_two() -> Asked:
    X, W = given(), te.placeholder((COLUMNS, 256), name="W")
    _, _, part = parts_of_rows(X)
    Z = te.compute(part.shape, lambda i, j: part[i, j] * 2.0 + X[i, j], name="Z")
    return [product(part, W, "Y"), Z], [X, W], {}


def in_a_row() -> Asked:
    X = given()
    x = X
    for _ in range(5):
        _, _, x = parts_of_rows(x)
    return x, [X], {}


def of_scratchpads(size: int) -> tecomp.Target:
    """Return a target with the given scratchpad capacity in bytes."""
    room = {"lx": {"capacity_bytes": size, "reserved_bytes": 0}}
    return tecomp.Target.load("stick128").overridden(memory=room)


SPILLS: list[tuple[Callable[[], Asked], str, SpillKind, str]] = [
    (rows, "X", "host", "it is copied from the host"),
    (rows, "part", "host", "it is copied to the host"),
    (summed_along_steps, "summed", "result", "it is an output"),
    (summed_along_steps, "part", "relayout", "part_relaid relayouts it"),
    (summed_along_steps, "part_relaid", "relayout", "it is a relayout"),
    (in_a_layout, "powers", "requested", "its layout is requested"),
    (partial(as_hinted, 0), "powers", "hint", "a hint specifies its division"),
    (partial(as_hinted, 2), "total", "hint", "a hint specifies the division of its reader part"),
    (with_places, "greatest_v0", "steps", "its kernel computes 2 values"),
    (of_long_rows, "total", "reduction", "4 cores split its reduction along k"),
    (of_long_rows, "powers", "reduction",
     "its reader total cannot keep it: 4 cores split its reduction along k"),
    (gathered, "powers", "gather", "Y gathers from it"),
    (reshaped, "total", "division",
     "it is divided 32 x 1, but for halves (divided 32 x 1) a core reads 96 x 1 of its 96 x 1 "
     "elements"),
    (multiplied, "part", "division",
     "it is divided 32 x 1, but for Y (divided 16 x 2) a core reads 8 x 64 of its 128 x 64 elements"),
    (normed_products, "powers", "division",
     "it is divided 2 x 16, but total (divided 32 x 1) reads it divided 32 x 1; this division "
     "costs 29_491_200 bytes and saves 393_216"),
    (read_by_two, "part", "readers",
     "its readers Y (divided 4 x 8) and Z (divided 32 x 1) have separate core loops"),
    (in_a_row, "total", "limit", "part has 8 resident values already"),
]


@pytest.mark.exhaustive(keep=1)
@pytest.mark.parametrize(("requested", "name", "kind", "reason"), SPILLS)
def test_the_reason_of_each_spill(
    requested: Callable[[], Asked], name: str, kind: SpillKind, reason: str
) -> None:
    output, inputs, more = requested()
    check_spill(tecomp.compile(output, inputs, "stick128", **more), name, kind, reason)


@pytest.mark.exhaustive
def test_values_with_pad_values_are_in_memory() -> None:
    output, inputs, _ = with_padding()
    check_spill(
        tecomp.compile(output, inputs, "tensix_wh"), "powers", "padding", "its padding holds 0")


def test_large_values_are_spilled() -> None:
    output, inputs, _ = rows(512)
    check_spill(
        tecomp.compile(output, inputs, of_scratchpads(4096)), "powers", "capacity",
        "its 4_096 bytes per core leave no space for its readers in lx, which has 4_096 bytes per "
        "core",
    )


def check_spill(program: CompiledProgram, name: str, kind: SpillKind, reason: str) -> None:
    found = [item for item in program.memory.spills if item.tensor.name == name]
    assert (kind, reason) in [(item.kind, item.reason) for item in found]
    assert f"{kind}: {reason}" in str(program.report())
