"""Copies between shards of two grids, from core to core."""

from __future__ import annotations

from dataclasses import replace

import islpy as isl
import numpy as np
import pytest

import tecomp
from tecomp import ShardLayout, Target, te
from tecomp.cost_model import iteration_counting
from tests.numerics import assert_close

MACHINE = Target.load("tensix_wh")


def shards(shape: tuple[int, ...], *grid: int) -> ShardLayout:
    linear = None if len(shape) == len(grid) else (lambda a, b, c: [a * shape[1] + b, c])
    return ShardLayout(shape, "float32", linear, grid=grid, tile=(32, 32))


def chain(
    shape: tuple[int, ...], first: ShardLayout, second: ShardLayout
) -> tuple[te.Tensor, te.Tensor, te.Tensor]:
    """Return X, E = exp(X) in shards, and T = 2 E, computed from a copy in other shards."""
    X = te.placeholder(shape, name="X")
    E = te.compute(shape, lambda *i: te.exp(X[i]), name="E")
    R = tecomp.relayout_to(E, second, name="R")
    T = te.compute(shape, lambda *i: R[i] * 2.0, name="T")
    return X, E, T


def grids(random: np.random.Generator, shape: tuple[int, int]) -> tuple[int, int]:
    """Return a random grid of parts of whole tiles that are not empty, on 8x8 cores."""
    every = [
        [
            n for n in (1, 2, 4, 8)
            if n == 1 or (-(-extent // n) % 32 == 0 and extent > (n - 1) * -(-extent // n))
        ]
        for extent in shape
    ]
    rows, columns = (int(random.choice(counts)) for counts in every)
    return rows, columns


@pytest.mark.exhaustive(keep=1)
@pytest.mark.parametrize("seed", range(8))
def test_random_shards_to_random_shards(seed: int) -> None:
    random = np.random.default_rng(seed)
    tiles = tuple(int(n) for n in random.integers(1, 9, 2))
    shape = (int(32 * tiles[0] - random.integers(0, 2)), int(32 * tiles[1] - random.integers(0, 2)))
    first, second = (shards(shape, *grids(random, shape)) for _ in range(2))
    X, E, T = chain(shape, first, second)
    program = tecomp.compile(T, [X], MACHINE, layouts={E: first})

    x = random.uniform(-1, 1, shape).astype("float32")
    assert_close(program(x), np.exp(x) * 2, 1e-5)
    found = {resident.tensor.name: resident.parts for resident in program.memory.residents}
    assert found == {"E": first.grid, "R": second.grid}
    assert not program.layouts.reshards
    if first.grid == second.grid:
        return
    (copy,) = (call for call in program.kernels if call.group.result.name == "R")
    assert {param.scope for param in copy.kernel.lowered.final.params} == {"l1"}


def test_collapsed_axes() -> None:
    shape = (3, 64, 96)
    first, second = shards(shape, 6, 3), shards(shape, 3, 1)
    X, E, T = chain(shape, first, second)
    program = tecomp.compile(T, [X], MACHINE, layouts={E: first})

    x = np.random.default_rng(0).uniform(-1, 1, shape).astype("float32")
    assert_close(program(x), np.exp(x) * 2, 1e-5)
    found = {resident.tensor.name: resident.parts for resident in program.memory.residents}
    assert found == {"E": (3, 2, 3), "R": (3, 1, 1)}


@pytest.mark.exhaustive(keep=1)
@pytest.mark.parametrize("turned", [False, True])
def test_ragged_shards_need_no_set_subtraction(
    turned: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All copied elements have an owner, which inclusion shows in a quarter of the time."""
    shape, grids = (190, 250), [(6, 1), (1, 8)][::-1 if turned else 1]
    first, second = (shards(shape, *grid) for grid in grids)
    X, E, T = chain(shape, first, second)
    subtracted: list[isl.Map] = []
    subtract = isl.Map.subtract_range

    def recorded(map_: isl.Map, elements: isl.Set) -> isl.Map:
        subtracted.append(map_)
        return subtract(map_, elements)

    monkeypatch.setattr(isl.Map, "subtract_range", recorded)
    program = tecomp.compile(T, [X], MACHINE, layouts={E: first})
    report = program.report()

    assert not subtracted
    assert report.cycles > 0
    x = np.random.default_rng(0).uniform(-1, 1, shape).astype("float32")
    assert_close(program(x), np.exp(x) * 2, 1e-5)


def test_packed_arguments() -> None:
    """Between arguments in shards, the only kernel exchanges them."""
    shape = (256, 128)
    first, second = shards(shape, 8, 4), shards(shape, 2, 2)
    X = te.placeholder(shape, name="X")
    R = tecomp.relayout_to(X, second, name="R")
    program = tecomp.compile(R, [X], MACHINE, layouts={X: first}, packed=[X, R])

    x = np.random.default_rng(0).standard_normal(shape, dtype="float32")
    np.testing.assert_array_equal(second.unpack(program(first.pack(x))), x)
    (call,) = program.kernels
    report = call.kernel.report()
    assert {transfer.link for transfer in report.links} == {"noc"}
    # Parts 8 x 4 are on cores (y, x), and parts 2 x 2 on cores (2 y + x, 0).
    row, column = np.indices(shape)
    before = np.stack([row // 32, column // 32])
    after = np.stack([row // 128 * 2 + column // 64, np.zeros(shape, int)])
    moved = int((before != after).any(0).sum()) * x.itemsize
    assert sum(transfer.bytes for transfer in report.links) == moved


def test_ragged_shards_are_counted_by_intervals(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each core owns one interval of addresses, so no element is counted on its own."""
    first, second = shards((191, 255), 3, 8), shards((191, 255), 6, 4)
    X, E, T = chain((191, 255), first, second)
    program = tecomp.compile(T, [X], MACHINE, layouts={E: first})
    (copy,) = (call for call in program.kernels if call.group.result.name == "R")

    monkeypatch.setattr(iteration_counting, "BUDGET", 50_000)
    report = copy.kernel.report()
    row, column = np.indices((192, 256))
    # Parts 3 x 8 are on cores (column, row) of parts, and parts 6 x 4 on cores (row, column).
    moved = (column // 32 != row // 32) | (row // 64 != column // 64)
    least, most = int(moved[:191, :255].sum()) * 4, int(moved[:191].sum()) * 4
    assert least <= sum(transfer.bytes for transfer in report.links) <= most


def test_without_links_between_cores_the_copy_passes_through_memory() -> None:
    target = replace(MACHINE, links={k: v for k, v in MACHINE.links.items() if k != "noc"})
    shape = (128, 128)
    first, second = shards(shape, 4, 4), shards(shape, 2, 1)
    X, E, T = chain(shape, first, second)
    program = tecomp.compile(T, [X], target, layouts={E: first})

    x = np.random.default_rng(0).uniform(-1, 1, shape).astype("float32")
    assert_close(program(x), np.exp(x) * 2, 1e-5)
    assert [copy.tensor.name for copy in program.layouts.reshards] == ["E"]
