"""Work division over cores: even parts of whole sticks within address spans."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from math import prod

import numpy as np
import pytest

import tecomp
from tecomp import IndexMap, Layout, StickFormat, StickLayout, Target, TecompError, te
from tecomp.schedules import auto, softmax
from tecomp.schedules.scratchpad import (
    DivisionSpec,
    Placement,
    divide,
    divide_depth,
    parts_of_depth,
    placement_of,
    plan,
    shares_of,
    work_of,
)
from tests.messages import Diagnostic, diagnostic

CORES = {"core.x": 32}


@pytest.mark.parametrize(
    ("pieces", "count"),
    [
        ((16, 16), (16, 2)),
        ((128, 4), (32, 1)),  # a sum of 128x256 values of two bytes, in sticks
        ((64, 4), (32, 1)),  # the rows of a softmax
        ((4, 1), (4, 1)),
        ((3, 5), (3, 5)),
        ((6, 5), (6, 5)),
        ((1,), (1,)),
        ((12, 12), (12, 2)),  # 24 cores have six each; with 32, one core would have six as well
    ],
)
def test_parts_are_even_and_the_longest_axis_is_cut_first(
    pieces: tuple[int, ...], count: tuple[int, ...]
) -> None:
    found = divide(pieces, CORES)

    assert found.count == count
    assert all(n % size == 0 for n, size in zip(pieces, found.part, strict=True))


def test_uneven_parts_are_chosen_if_smaller() -> None:
    found = divide((37,), CORES)

    assert (found.part, found.count) == ((2,), (19,))


@pytest.mark.parametrize("grid", [{"x": 7}, {"x": 2, "y": 3}, {"x": 2, "y": 3, "z": 2}])
def test_no_division_has_smaller_parts(grid: dict[str, int]) -> None:
    cores = prod(grid.values())
    for pieces in product(range(1, 9), repeat=2):
        found = divide(pieces, grid)
        possible = [
            part for part in product(*(range(1, n + 1) for n in pieces))
            if shares_of(counts(pieces, part), grid) is not None
        ]

        assert prod(found.part) == min(map(prod, possible)), pieces
        assert found.cores <= cores
        for axis, many in enumerate(found.count):
            assert prod(n for _, n in found.shares.get(axis, ())) == many
        for name, size in grid.items():
            used = [n for many in found.shares.values() for axis, n in many if axis == name]
            assert prod(used) <= size


def counts(pieces: Sequence[int], part: Sequence[int]) -> list[int]:
    return [-(-n // size) for n, size in zip(pieces, part, strict=True)]


@pytest.mark.parametrize(("limit", "count"), [(268_431_360, (32, 1)), (8192, (8, 4))])
def test_spans_of_a_core_are_limited(limit: int, count: tuple[int, int]) -> None:
    """A span limit divides columns too: rows of sticks span the matrix, column parts do not."""
    where = placement_of(Target.load("stick128").overridden(limits={"span_bytes": limit}))
    assert where is not None
    A = te.placeholder((128, 128), name="A")
    C = te.compute(A.shape, lambda i, j: A[i, j] + 1.0, name="C")

    assert plan(work_of(C, None, [C], {A}), where).division.count == count


@pytest.mark.parametrize(
    ("pieces", "depth", "parts"),
    [
        ((4,), (8,), (8,)),
        ((4,), (8, 2), (8, 1)),  # one axis only
        ((4,), (3, 5), (1, 5)),
        ((4,), (11,), (1,)),  # even parts only
        ((128, 4), (64,), (1,)),  # every core already has a part of the result
    ],
)
def test_cores_that_are_left_share_a_reduction(
    pieces: tuple[int, ...], depth: tuple[int, ...], parts: tuple[int, ...]
) -> None:
    left = CORES["core.x"] // divide(pieces, CORES).cores

    assert divide_depth(depth, left) == parts


@pytest.mark.parametrize(
    ("shape", "axis", "parts"),
    [
        ((4096, 64), 0, 16),  # columns in two sticks
        ((4, 8192), 1, 32),  # between sticks of the rows
        ((4, 8190), 1, None),  # the last stick is padded
        ((4096, 2048), 0, None),
        ((4, 2), 0, None),  # not profitable
    ],
)
def test_reductions_are_shared_where_it_pays(
    shape: tuple[int, int], axis: int, parts: int | None
) -> None:
    where = placement_of(Target.load("stick128"))
    assert where is not None
    A, k = te.placeholder(shape, name="A"), te.reduce_axis((0, shape[axis]), name="k")
    C = te.compute(
        (shape[1 - axis],), lambda i: te.sum(A[k, i] if axis == 0 else A[i, k], axis=k), name="C")

    found = parts_of_depth(work_of(C, C, [C], {A}), where)

    assert found == (None if parts is None else (k, parts))


def test_sticks_are_not_cut() -> None:
    where = placement_of(Target.load("stick128"))
    assert where is not None
    A = te.placeholder((5, 200), "float16", name="A")
    C = te.compute(A.shape, lambda i, j: A[i, j] * A[i, j], name="C")

    found = plan(work_of(C, None, [C], {A}), where)

    assert found.division.count == (5, 4)
    assert found.core == (1, 64)


def cut(x: te.Tensor, how: DivisionSpec) -> Placement:
    where = placement_of(Target.load("stick128"))
    assert where is not None
    return replace(where, cuts={x: how})


def squares(*shape: int) -> tuple[te.Tensor, te.Tensor]:
    A = te.placeholder(shape, "float16", name="A")
    return A, te.compute(shape, lambda i, j: A[i, j] * A[i, j], name="C")


def test_requested_parts_and_blocks_are_used() -> None:
    A, C = squares(60, 256)
    how = DivisionSpec(cores={0: 5, 1: 2}, tiles={0: 3})

    found = plan(work_of(C, None, [C], {A}), cut(C, how))

    assert found.division.count == (5, 2)
    assert (found.core, found.block) == ((12, 128), (4, 128))


def test_requested_reduction_blocks_are_used() -> None:
    A = te.placeholder((64, 8, 256), name="A")
    q, k = te.reduce_axis((0, 8), name="q"), te.reduce_axis((0, 256), name="k")
    C = te.compute((64,), lambda i: te.sum(A[i, q, k], axis=[q, k]), name="C")
    w = work_of(C, C, [C], {A})

    assert plan(w, cut(C, DivisionSpec())).depth == {q: 8, k: 256}
    assert plan(w, cut(C, DivisionSpec(tiles={1: 4, 2: 2}))).depth == {q: 2, k: 128}
    assert plan(w, cut(C, DivisionSpec(cores={0: 2}, tiles={2: 8}))).depth == {q: 8, k: 32}


def test_requested_reduction_parts_are_assigned_to_cores() -> None:
    A = te.placeholder((64, 256), name="A")
    k = te.reduce_axis((0, 256), name="k")
    C = te.compute((64,), lambda i: te.sum(A[i, k], axis=k), name="C")
    s = auto(C, Target.load("stick128"), division={C: DivisionSpec(cores={0: 2, 1: 4})})
    kernel = tecomp.build(s, [A, C], target="stick128")
    a, c = np.random.default_rng(0).integers(-4, 5, (64, 256)).astype("float32"), kernel.empty(C)
    kernel(kernel.pack(A, a), c)

    assert [x.op.name for x in s.stages].count("C.rf") == 1
    np.testing.assert_array_equal(kernel.unpack(C, c), a.sum(1))
    assert len(kernel.report().cores) == 8


def test_unrequested_divisions_are_unchanged() -> None:
    A, C = squares(1024, 4096)
    w = work_of(C, None, [C], {A})
    free, requested = plan(w, cut(A, DivisionSpec())), plan(w, cut(C, DivisionSpec(tiles={0: 16})))

    assert requested.division == free.division
    assert requested.core == free.core == (32, 4096)
    assert requested.block[0] == 2


@pytest.mark.parametrize(
    ("shape", "how", "expected"),
    [
        ((8192, 32768), DivisionSpec(cores={1: 2}, tiles={0: 8192}),
         Diagnostic(
             "indivisible", output="C", target="stick128", limit=268431360, core="8192 x 16384",
             subject=268435456, far="C",
         )),
        ((1024, 1024), DivisionSpec(cores={0: 1}, tiles={0: 1, 1: 1}),
         Diagnostic(
             "capacity", output="C", block="1024 x 1024", need=4194304, scratchpad="lx",
             target="stick128", free_bytes=2031616,
         )),
        ((9, 64), DivisionSpec(cores={0: 5, 1: 2}),
         Diagnostic("indivisible", x="C", count=2, axis="j", pieces=1, subject="sticks or tiles of 64")),
        ((9, 64), DivisionSpec(cores={0: 7}),
         Diagnostic("indivisible", x="C", count=7, axis="i", pieces=9, subject="values")),
        ((9, 64), DivisionSpec(cores={2: 7}),
         Diagnostic("indivisible", x="C", rank=2, reduced="", count=7, axis=2)),
        ((9, 64), DivisionSpec(tiles={0: 0}),
         Diagnostic("indivisible", x="C", rank=2, reduced="", count=0, axis=0)),
    ],
)
def test_divisions_that_cannot_be(shape: tuple[int, int], how: DivisionSpec, expected: Diagnostic) -> None:
    _, C = squares(*shape)
    with pytest.raises(TecompError) as error:
        auto(C, Target.load("stick128"), division={C: how})

    assert diagnostic(error.value) == expected


def test_stages_without_loops_are_not_divided() -> None:
    A, B = squares(8, 64)
    C = te.compute(B.shape, lambda i, j: B[i, j] + A[i, j], name="D")
    with pytest.raises(TecompError) as error:
        auto(C, Target.load("stick128"), division={B: DivisionSpec(cores={0: 2})})

    assert diagnostic(error.value) == (
        Diagnostic("indivisible", x="C")
    )


def test_a_division_consists_of_splits() -> None:
    _, C = squares(8, 64)
    with pytest.raises(TecompError) as error:
        auto(C, Target.load("stick128"), division={C: 4})

    assert diagnostic(error.value) == (
        Diagnostic("invalid-type", division="{Tensor(C, shape=(8, 64), dtype=float16): 4}")
    )


def drawn_layout(random: np.random.Generator, shape: Sequence[int]) -> IndexMap:
    """Return dense or sparse sticks along a random axis, which is padded to whole sticks."""
    order = [int(axis) for axis in random.permutation(len(shape))]
    padded = [-(-n // 32) * 32 if axis == order[-1] else n for axis, n in enumerate(shape)]
    form = StickFormat.Sparse if random.random() < 0.3 else StickFormat.Dense
    layout = StickLayout(padded, "float32", order, form, size=shape)
    return layout.index_map


@pytest.mark.exhaustive(keep=2)
@pytest.mark.parametrize("seed", range(60))
def test_no_stick_is_written_by_two_cores(seed: int) -> None:
    """No stick is written by two cores, for any stick axis of the result."""
    random = np.random.default_rng(seed)
    shape = tuple(int(n) for n in random.choice([1, 3, 32, 50, 64, 96], random.integers(1, 4)))
    A = te.placeholder(shape, name="A")
    C = te.compute(shape, lambda *i: A(*i) + 1.0, name="C")
    data = drawn_layout(random, shape)
    where = placement_of(Target.load("stick128"), {C: data})
    assert where is not None

    core = plan(work_of(C, None, [C], {A}), where).core

    stick = Layout.of(shape, "float32", data).offsets() // 32
    index = np.indices(shape).reshape(len(shape), -1)
    parts = np.stack([axis // n for axis, n in zip(index, core, strict=True)])
    cores = np.ravel_multi_index(list(parts), parts.max(1) + 1)
    pairs = np.unique(np.stack([stick.ravel(), cores]), axis=1)
    assert pairs.shape[1] == len(np.unique(stick))


@pytest.mark.exhaustive(keep=1)
@pytest.mark.parametrize("seed", range(12))
def test_results_in_any_layout(seed: int) -> None:
    """Row sums, column sums and formulas support arguments in any layout."""
    random = np.random.default_rng(seed)
    m, n = (int(n) for n in random.choice([3, 32, 50, 64, 96], 2))
    axis = int(random.integers(3))
    A, B = te.placeholder((m, n), name="A"), te.placeholder((m, n), name="B")
    k = te.reduce_axis((0, (m, n, 1)[axis]), name="k")
    C = [
        te.compute((n,), lambda j: te.sum(A[k, j] * B[k, j], axis=k), name="C"),
        te.compute((m,), lambda i: te.sum(A[i, k] * B[i, k], axis=k), name="C"),
        te.compute((m, n), lambda i, j: A[i, j] * B[i, j] + 1.0, name="C"),
    ][axis]
    target = Target.load("stick128")
    layouts = {x: drawn_layout(random, [int(extent) for extent in x.shape]) for x in (A, B, C)}
    kernel = tecomp.build(auto(C, target, layouts), [A, B, C], target)
    a, b = (random.integers(-4, 5, (m, n)).astype("float32") for _ in range(2))
    c = kernel.empty(C)
    kernel(kernel.pack(A, a), kernel.pack(B, b), c)

    expected = a * b + 1 if axis == 2 else (a * b).sum(axis)
    np.testing.assert_array_equal(kernel.unpack(C, c), expected)


def sums_of_rows() -> tuple[te.Tensor, te.Tensor]:
    A, k = te.placeholder((64, 256), "float16", name="A"), te.reduce_axis((0, 256), name="k")
    return A, te.compute((64,), lambda i: te.sum(A[i, k], axis=k), name="B")


@pytest.mark.exhaustive(keep=2)
@pytest.mark.parametrize(("parts", "cores"), [(None, 32), (2, 2), (16, 16)])
def test_sums_of_rows_are_for_all_cores(parts: int | None, cores: int) -> None:
    """Row sums give one element per stick, so any division of rows is valid."""
    A, B = sums_of_rows()
    hints = [] if parts is None else [tecomp.hint(B, cores={"i": parts}, hard=True)]
    program = tecomp.compile(B, [A], "stick128", hints=hints)
    x = np.random.default_rng(0).integers(-4, 5, (64, 256)).astype("float16")

    kernel = program.report().kernels[1]

    assert kernel.cores == cores
    assert "reduction" not in [value.kind for value in program.memory.spills]
    np.testing.assert_array_equal(program(x), x.astype("float64").sum(1).astype("float16"))


@pytest.mark.exhaustive(keep=1)
@pytest.mark.parametrize("machine", ["stick128", "vtcm2d", "neuroncore_v2"])
def test_values_of_rows_may_have_an_axis_of_extent_1(machine: str) -> None:
    """Kept axes of reductions change neither the kernels of a normalization nor their cycles."""
    X, k = te.placeholder((256, 96), name="X"), te.reduce_axis((0, 96), name="k")
    S = te.compute((256,), lambda i: te.sum(X[i, k] * X[i, k], axis=k), name="S")
    T = te.compute((256, 1), lambda i, j: te.sum(X[i, k] * X[i, k], axis=k), name="T")
    Y = te.compute(X.shape, lambda i, j: X[i, j] / te.sqrt(S[i]), name="Y")
    Z = te.compute(X.shape, lambda i, j: X[i, j] / te.sqrt(T[i, 0]), name="Z")
    x = np.random.default_rng(0).standard_normal((256, 96)).astype("float32")

    without, kept = (tecomp.compile(result, [X], machine) for result in (Y, Z))

    assert [kernel.cycles for kernel in kept.report().kernels] == [
        kernel.cycles for kernel in without.report().kernels]
    assert not {"S", "T"} & {value.tensor.name for value in kept.memory.values}
    np.testing.assert_allclose(
        kept(x), x / np.sqrt(np.square(x, dtype="float64").sum(1, keepdims=True)), rtol=1e-5)


@pytest.mark.exhaustive(keep=1)
@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_a_softmax_stays_in_scratchpads(dtype: str) -> None:
    """One kernel computes maxima, sums and scales of the rows of each core."""
    A = te.placeholder((64, 256), dtype, name="A")
    program = tecomp.compile(softmax.define(A), [A], "stick128")
    x = np.random.default_rng(0).standard_normal((64, 256)).astype(dtype)

    kernel = program.report().kernels[1]
    assert (len(program.report().kernels), kernel.cores) == (3, 32)  # with two host copies
    assert (kernel.reads, kernel.writes) == (x.nbytes, x.nbytes)
    assert {value.kind for value in program.memory.spills} == {"host"}
    exact = np.exp(x.astype("float64"))
    exact /= exact.sum(1, keepdims=True)
    np.testing.assert_allclose(program(x), exact, rtol=2e-3, atol=1e-6)
