"""Reductions over any axes equal NumPy."""

from __future__ import annotations

from typing import Any, get_args

import numpy as np
import pytest

import tecomp
from tecomp import te
from tecomp.ir import BufferLoad, Const, For, ForKind, walk
from tecomp.schedules import reduce
from tests.messages import Diagnostic, diagnostic
from tests.numerics import assert_close
from tests.strategies.fenced import call_fenced
from tests.strategies.machines import CORES
from tests.strategies.pairwise import pairwise

CPU = tecomp.Target.load("cpu")


def run(shape: tuple[int, ...], axis: Any, op: Any, target: tecomp.Target,
        dtype: str = "float32", **options: Any) -> np.ndarray:
    A = te.placeholder(shape, dtype, name="A")
    B = reduce.define(A, axis, op, **options)
    kernel = tecomp.build(reduce.schedule(B, target), [A, B])
    result = kernel.empty(B)
    call_fenced(kernel, values(shape, dtype), result)
    return result


def values(shape: tuple[int, ...], dtype: str = "float32") -> np.ndarray:
    random = np.random.default_rng(0)
    if np.dtype(dtype).kind == "f":
        return random.standard_normal(shape).astype(dtype)
    return random.integers(-50, 50, shape).astype(dtype)


@pytest.mark.exhaustive(keep=6)
@pairwise(n=[1, 2, 3, 7, 127, 1000, 1023], axis=[0, 1, None], target=CORES)
def test_sizes(n: int, axis: int | None, target: tecomp.Target) -> None:
    a = values((n, 37)).astype(np.float64)

    assert_close(run((n, 37), axis, "sum", target), a.sum(axis), atol=1e-3)


@pytest.mark.exhaustive(keep=4)
@pairwise(
    axis=[0, 1, 2, (0, 1), (0, 2), (1, 2), (0, 1, 2), -1],
    op=[*get_args(reduce.Operation)], target=CORES,
)
def test_axes(axis: int | tuple[int, ...], op: str, target: tecomp.Target) -> None:
    shape = (3, 40, 33)
    a = values(shape).astype(np.float64)
    expected = getattr(np, op)(a, axis=axis)

    assert_close(run(shape, axis, op, target), expected, rtol=1e-4, atol=1e-4)


@pytest.mark.exhaustive(keep=4)
@pytest.mark.parametrize("axis", [(0, 2), (1, 3), (2,)])
def test_axes_stay_with_extent_1(axis: tuple[int, ...], target: tecomp.Target) -> None:
    a = values((2, 5, 6, 19))
    result = run((2, 5, 6, 19), axis, "mean", target, keepdims=True)

    assert_close(result, a.mean(axis, keepdims=True), rtol=1e-4, atol=1e-5)


@pytest.mark.exhaustive(keep=2)
@pairwise(
    form=[((100, 3), 0), ((101, 7), 0), ((9, 2), 0), ((5, 33, 9), 1), ((6, 7, 5), (0, 1)),
          ((40, 11), (0,)), ((3, 2, 20, 6), (1, 2))],
    keepdims=[False, True], target=CORES,
)
def test_few_columns(
    form: tuple[tuple[int, ...], Any], keepdims: bool, target: tecomp.Target
) -> None:
    shape, axis = form
    a = values(shape).astype(np.float64)
    for op in ("mean", "max"):
        expected = getattr(np, op)(a, axis, keepdims=keepdims)
        result = run(shape, axis, op, target, keepdims=keepdims)
        assert_close(result, expected, rtol=1e-4, atol=1e-5)
    whole = values(shape, "int8").sum(axis, dtype="int32", keepdims=keepdims)

    result = run(shape, axis, "sum", target, "int8", out_dtype="int32", keepdims=keepdims)
    np.testing.assert_array_equal(result, whole)


def test_a_sum_is_shared_in_parts(target: tecomp.Target) -> None:
    n = 300_000
    a = values((n,)).astype(np.float64)

    assert_close(run((n,), None, "sum", target), a.sum(), atol=0.05)


@pytest.mark.exhaustive(keep=2)
@pytest.mark.parametrize("axis", [0, 1])
def test_types(axis: int, target: tecomp.Target) -> None:
    shape = (30, 50)
    total = run(shape, axis, "sum", target, "int8", out_dtype="int32")
    np.testing.assert_array_equal(total, values(shape, "int8").sum(axis, dtype="int32"))
    half = run(shape, axis, "sum", target, "float16")
    expected = values(shape, "float16").astype(np.float64).sum(axis)
    assert_close(half, expected, rtol=2e-3, atol=1e-2)
    most = run(shape, axis, "max", target, "int64")
    np.testing.assert_array_equal(most, values(shape, "int64").max(axis))


@pytest.mark.exhaustive(keep=3)
@pytest.mark.parametrize("axis", [0, 1, None])
def test_sizes_known_at_the_call(axis: int | None, target: tecomp.Target) -> None:
    A = te.placeholder((te.var("n"), te.var("m")), name="A")
    B = reduce.define(A, axis, "mean")
    kernel = tecomp.build(reduce.schedule(B, target), [A, B])
    for shape in ((1, 1), (3, 700), (65, 9)):
        a = values(shape)
        expected = np.asarray(a.mean(axis))
        result = np.full(expected.shape, np.nan, np.float32)
        call_fenced(kernel, a, result)
        assert_close(result, expected, rtol=1e-4, atol=1e-5)


def test_nan_propagates(target: tecomp.Target) -> None:
    A = te.placeholder((4, 100), name="A")
    B = reduce.define(A, 1, "max")
    a = values((4, 100))
    a[2, 3] = np.nan
    kernel = tecomp.build(reduce.schedule(B, target), [A, B])
    result = kernel.empty(B)
    call_fenced(kernel, a, result)

    np.testing.assert_array_equal(result, a.max(1))


@pytest.mark.parametrize(
    ("shape", "blocks"), [((300, 5120), 3), ((9600, 5120), 2), ((9600, 100_000), 4)]
)
def test_rows_from_memory_are_read_in_long_stretches(shape: tuple[int, int], blocks: int) -> None:
    core = tecomp.Core(2, 64, 32, (32 * 1024, 1024 * 1024, 32 * 1024 * 1024))
    target = tecomp.Target("pinned", "", tecomp.Target.load("cpu").memories, core)
    A = te.placeholder(shape, name="A")
    B = reduce.define(A, 0)
    func = tecomp.lower(reduce.schedule(B, target), [A, B])
    shared = next(x for x in walk(func.body) if isinstance(x, For) and x.kind is ForKind.PARALLEL)

    assert isinstance(shared.extent, Const)
    assert shared.extent.value == blocks


@pytest.mark.exhaustive(keep=8)
@pytest.mark.parametrize(
    ("shape", "axis", "vectors"),
    [((1000, 160), 1, 2), ((96, 5120), 1, 4),
     ((96, 512), 0, 8), ((3600, 512), 0, 8), ((9600, 512), 0, 1), ((9600, 1024), 0, 1),
     ((9600, 2048), 0, 8), ((9600, 5120), 0, 8), ((396, 120), None, 4), ((40, 9, 11), None, 4)],
)
def test_rows_are_read_side_by_side_where_caches_keep_up(
    shape: tuple[int, ...], axis: int | None, vectors: int
) -> None:
    core = tecomp.Core(2, 64, 32, (32 * 1024, 1024 * 1024, 32 * 1024 * 1024))
    target = tecomp.Target("pinned", "", tecomp.Target.load("cpu").memories, core)
    A = te.placeholder(shape, name="A")
    B = reduce.define(A, axis)
    func = tecomp.lower(reduce.schedule(B, target), [A, B])
    inside = [
        sum(isinstance(node, BufferLoad) and node.buffer.name == "A" for node in walk(loop))
        for loop in walk(func.body)
        if isinstance(loop, For) and not any(isinstance(x, For) for x in walk(loop.body))
    ]

    assert max(inside) == vectors


@pytest.mark.exhaustive(keep=4)
@pytest.mark.parametrize(
    ("length", "bound", "rows"),
    [(64, None, 2), (128, None, 2), (129, None, 1), (None, 256, 4), (None, 257, 1),
     (None, None, 1)],
)
def test_lanes_of_short_rows_are_reduced_together(
    length: int | None, bound: int | None, rows: int
) -> None:
    """Rows are read one after the other: interleaved loads of several rows defeat prefetchers."""
    core = tecomp.Core(2, 64, 32, (32 * 1024, 1024 * 1024, 32 * 1024 * 1024))
    target = tecomp.Target("pinned", "", tecomp.Target.load("cpu").memories, core)
    n = te.size_var("n")
    A = te.placeholder((1000, length or n), name="A")
    B = reduce.define(A, 1, "max")
    bounds = {} if bound is None else {n: bound}
    func = tecomp.lower(reduce.schedule(B, target, bounds), [A, B])
    shared = next(x for x in walk(func.body) if isinstance(x, For) and x.kind is ForKind.PARALLEL)
    inside = [
        sum(isinstance(node, BufferLoad) and node.buffer.name == "A" for node in walk(loop))
        for loop in walk(shared.body)
        if isinstance(loop, For) and not any(isinstance(x, For) for x in walk(loop.body))
    ]

    assert isinstance(shared.extent, Const)
    assert shared.extent.value == 1000 // rows
    assert max(inside, default=0) <= (4 if rows == 1 else 1)


@pytest.mark.parametrize(("dtype", "columns"), [("int8", 40), ("int16", 40)])
def test_results_of_interleaved_rows_are_combined_without_a_loop(dtype: str, columns: int) -> None:
    """A loop over rows would load lanes together that were stored row by row."""
    core = tecomp.Core(2, 64, 32, (32 * 1024, 1024 * 1024, 32 * 1024 * 1024))
    target = tecomp.Target("pinned", "", tecomp.Target.load("cpu").memories, core)
    A = te.placeholder((te.size_var("m"), columns), dtype, name="A")
    B = reduce.define(A, 1, "max")
    func = tecomp.lower(reduce.schedule(B, target), [A, B])

    assert [node.kind for node in walk(func.body) if isinstance(node, For)] == [ForKind.PARALLEL]


@pytest.mark.exhaustive(keep=2)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("op", ["sum", "max", "min"])
def test_lengths_beyond_their_expected_bound(op: Any, dtype: str) -> None:
    m, n = te.size_var("m"), te.size_var("n")
    A = te.placeholder((m, n), dtype, name="A")
    B = reduce.define(A, 1, op)
    kernel = tecomp.build(B, [A, B], bounds={n: 40})
    random = np.random.default_rng(0)
    for rows in (1, 3, 4, 5, 33):
        for length in (1, 7, 8, 9, 31, 32, 33, 40, 41, 64, 100, 1000):
            a = random.integers(-50, 50, (rows, length)).astype(dtype)
            if op != "sum":
                a[random.integers(rows), random.integers(length)] = np.nan
            b = np.empty(rows, dtype)
            kernel(a, b)
            np.testing.assert_array_equal(b, getattr(np, op)(a, axis=1))


@pytest.mark.parametrize("axis", [2, (0, 0), -3])
def test_wrong_axes_are_refused(axis: Any) -> None:
    A = te.placeholder((4, 5), name="A")

    with pytest.raises(ValueError, match="axis=") as error:
        reduce.define(A, axis)

    assert str(error.value) == (
        f"reduce.define: axis={axis} of 2 axes is out of bounds or contains duplicates; "
        "pass numbers from -2 to 1, each axis once"
    )


def test_no_axis_is_refused() -> None:
    with pytest.raises(ValueError, match="no axis") as error:
        reduce.define(te.placeholder((4,), name="A"), ())

    assert str(error.value) == "reduce.define: got no axis to reduce; pass at least one axis"


def test_reduction_roles_match_operands() -> None:
    A = te.placeholder((7, 8, 9), name="A")
    b = te.placeholder((9,), name="b")
    i, j, k = (te.reduce_axis((0, n), name=x) for n, x in ((7, "i"), (8, "j"), (9, "k")))

    def found(shape: tuple[int, ...], value: Any) -> tuple[list[str], int, int]:
        d = reduce.describe(te.compute(shape, value, name="C"))
        return [run.name for run in d.runs], d.adjacent, d.columns

    assert found((7,), lambda x: te.sum(A[x, j, k] * b[k], axis=[k, j])) == (["j", "k"], 2, 0)
    assert found((8,), lambda x: te.max(te.exp(A[i, x, k]), axis=[k, i])) == (["i", "k"], 1, 0)
    assert found((8, 9), lambda x, y: te.sum(b[y] + A[i, x, y], axis=i)) == (["i"], 0, 2)
    assert found((1, 9), lambda _, y: te.sum(A[i, j, y], axis=[i, j])) == (["i", "j"], 0, 1)


def test_a_reduction_written_in_te_is_scheduled_as_that_of_the_library() -> None:
    A = te.placeholder((300, 500), name="A")
    r, c = te.reduce_axis((0, 300), name="k0"), te.reduce_axis((0, 500), name="k1")
    plain = [
        te.compute((500,), lambda i0: te.sum(A[r, i0], axis=r), name="sum"),
        te.compute((300,), lambda i0: te.sum(A[i0, c], axis=c), name="sum"),
    ]

    for axis, C in enumerate(plain):
        output = reduce.define(A, axis)
        lowered = [str(tecomp.lower(reduce.schedule(x, CPU), [A, x])) for x in (C, output)]
        assert lowered[0] == lowered[1]


def test_non_contiguous_reductions_are_rejected() -> None:
    A, k = te.placeholder((7, 8, 9), name="A"), te.reduce_axis((0, 8), name="k")
    C = te.compute((9, 7), lambda j, i: te.sum(A[i, k, j], axis=k), name="C")

    with pytest.raises(tecomp.ScheduleError) as error:
        reduce.schedule(C, CPU)

    assert diagnostic(error.value) == (
        Diagnostic("pattern-mismatch", caller="reduce.schedule", op="C")
    )


TINY = [(17, 2), (33, 3), (3, 40, 4), (5, 19, 4), (64, 1, 3), (2, 7, 3), (30, 5)]


@pytest.mark.exhaustive(keep=3)
@pairwise(shape=TINY, dtype=["float32", "float64", "int16"], op=["sum", "max"], target=CORES)
def test_tiny_rows(shape: tuple[int, ...], dtype: str, op: Any, target: tecomp.Target) -> None:
    expected = getattr(np, op)(values(shape, dtype).astype(np.float64), axis=-1)
    assert_close(run(shape, -1, op, target, dtype), expected, rtol=1e-5, atol=1e-5)

    x = te.placeholder(shape, dtype, name="x")
    total = reduce.define(x, axis=-1, op=op)
    twice = te.compute(total.shape, lambda *i: total(*i) + total(*i), name="twice")
    kernel = tecomp.build(twice, [x, twice], target)
    result = kernel.empty(twice)
    call_fenced(kernel, values(shape, dtype), result)
    assert_close(result, 2 * expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("rows", [64, None])
def test_tiny_rows_are_reduced_by_vectors_across_them(rows: int | None) -> None:
    x = te.placeholder((rows or te.size_var("m"), 3), name="x")
    total = reduce.define(x, axis=-1, op="sum")
    kernel = tecomp.build(reduce.schedule(total, CPU), [x, total])
    loads = [node for node in walk(kernel.lowered.final.body) if isinstance(node, BufferLoad)
             and node.buffer.name == "x" and node.predicate is None]
    assert CPU.core is not None
    lanes = CPU.core.lanes(total.dtype)
    assert len(loads) == 3
    assert all(str(node.indices[0]).endswith(f", 3, {lanes})") for node in loads)


@pytest.mark.exhaustive(keep=4)
@pytest.mark.parametrize("target", CORES, ids=["cpu", "small"])
@pytest.mark.parametrize("columns", [2, 3, 5, 7, 13, 20, 27])
@pytest.mark.parametrize(("op", "dtype"), [("sum", "float64"), ("max", "float32"), ("sum", "int32")])
def test_an_open_number_of_short_rows(
    op: Any, dtype: str, columns: int, target: tecomp.Target
) -> None:
    A = te.placeholder((te.size_var("m"), columns), dtype, name="A")
    B = reduce.define(A, 0, op)
    kernel = tecomp.build(reduce.schedule(B, target), [A, B])
    for rows in (1, 2, 7, 8, 9, 15, 16, 17, 31, 33, 100, 1000):
        a, result = values((rows, columns), dtype), np.zeros(columns, dtype)
        call_fenced(kernel, a, result)
        assert_close(result, getattr(a, op)(0), atol=1e-9)


@pytest.mark.parametrize("columns", [3, 5, 20])
def test_short_rows_fill_vectors_whether_their_number_is_known_or_not(columns: int) -> None:
    def stores(rows: Any) -> set[str]:
        A = te.placeholder((rows, columns), name="A")
        B = reduce.define(A, 0, "max")
        func = tecomp.lower(reduce.schedule(B, CORES[0]), [A, B])
        return {str(node.dtype) for node in walk(func.body) if isinstance(node, BufferLoad)}

    assert stores(te.size_var("m")) == stores(1600)
