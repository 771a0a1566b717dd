"""Matrix products equal NumPy in all forms and sizes."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import tecomp
from tecomp import te
from tecomp.ir import DType
from tecomp.schedules import activations, auto, matmul
from tecomp.schedules.common import round_up
from tests.messages import Diagnostic, diagnostic
from tests.numerics import assert_close, assert_product
from tests.strategies.fenced import call_fenced
from tests.strategies.machines import CORES
from tests.strategies.pairwise import pairwise

CPU, SMALL = CORES


def run(a: tuple[int, ...], b: tuple[int, ...], target: tecomp.Target, **options: Any) -> None:
    A, B = te.placeholder(a, name="A"), te.placeholder(b, name="B")
    C = matmul.define(A, B, **options)
    args = [A, B, *([options["bias"]] if options.get("bias") is not None else [])]
    kernel = tecomp.build(matmul.schedule(C, target), [*args, C])
    random = np.random.default_rng(0)
    inputs = [random.standard_normal(t.shape, np.float32) for t in args]
    c = np.full([int(n) for n in C.shape], np.nan, np.float32)
    call_fenced(kernel, *inputs, c)

    x, y = (t.astype(np.float64) for t in inputs[:2])
    x = x.swapaxes(-1, -2) if options.get("transpose_a") else x
    y = y.swapaxes(-1, -2) if options.get("transpose_b") else y
    expected = x @ y
    if len(inputs) > 2:
        expected = expected + inputs[2]
    if options.get("activation") is activations.relu:
        expected = np.maximum(expected, 0)
    assert_close(c, expected, rtol=1e-4, atol=1e-3)


@pytest.mark.exhaustive(keep=4)
@pytest.mark.parametrize("target", [CPU, SMALL], ids=["cpu", "small"])
@pytest.mark.parametrize(
    ("m", "k", "n"),
    [(1, 1, 1), (7, 3, 5), (64, 64, 64), (127, 130, 61), (1, 300, 70), (200, 9, 2), (3, 700, 129),
     (90, 33, 5), (90, 33, 14)],
)
def test_sizes(m: int, k: int, n: int, target: tecomp.Target) -> None:
    run((m, k), (k, n), target)


@pairwise(target=CORES, transpose_a=[False, True], transpose_b=[False, True])
def test_transposed(transpose_a: bool, transpose_b: bool, target: tecomp.Target) -> None:
    a = (50, 37) if transpose_a else (37, 50)
    b = (41, 50) if transpose_b else (50, 41)
    run(a, b, target, transpose_a=transpose_a, transpose_b=transpose_b)


@pytest.mark.exhaustive(keep=1, most=8)
@pairwise(
    size=[(1, 1), (1, 41), (5, 3), (9, 41), (30, 1), (3, 8)], transpose_a=[False, True],
    transpose_b=[False, True], target=CORES,
)
def test_few_rows_or_columns(
    size: tuple[int, int], transpose_a: bool, transpose_b: bool, target: tecomp.Target
) -> None:
    m, n = size
    for k in (1, 7, 300):
        a, b = (k, m) if transpose_a else (m, k), (n, k) if transpose_b else (k, n)
        run(a, b, target, transpose_a=transpose_a, transpose_b=transpose_b)
    run((2, *a), (2, *b), target, transpose_a=transpose_a, transpose_b=transpose_b)


@pytest.mark.exhaustive(keep=2)
@pytest.mark.parametrize("target", [CPU, SMALL], ids=["cpu", "small"])
@pytest.mark.parametrize("batch", [(3,), (2, 3)])
def test_batches(batch: tuple[int, ...], target: tecomp.Target) -> None:
    run((*batch, 17, 20), (*batch, 20, 19), target)


@pytest.mark.exhaustive(keep=3)
@pytest.mark.parametrize("target", [CPU, SMALL], ids=["cpu", "small"])
@pytest.mark.parametrize("batch", [(), (3,)])
def test_bias_and_activation(batch: tuple[int, ...], target: tecomp.Target) -> None:
    bias = te.placeholder((35,), name="bias")
    run((*batch, 21, 90), (*batch, 90, 35), target, bias=bias, activation=activations.relu)


SMALL_TYPES = [("int8", "int8"), ("uint8", "int8"), ("int16", "int16"), ("bfloat16", "bfloat16")]


@pytest.mark.exhaustive(keep=1, most=5)
@pairwise(
    types=SMALL_TYPES, order=[(False, False), (True, False), (False, True)], target=CORES
)
def test_sums_wider_than_the_factors(
    types: tuple[str, str], order: tuple[bool, bool], target: tecomp.Target
) -> None:
    (first, second), (turn_a, turn_b) = types, order
    wide = "float32" if first == "bfloat16" else "int32"
    random = np.random.default_rng(0)
    for m, k, n in ((1, 1, 1), (7, 3, 5), (33, 131, 61), (3, 300, 40)):
        x, y = (random.integers(0, 100, shape) for shape in ((m, k), (k, n)))
        y = y - 50
        a = np.ascontiguousarray(x.T if turn_a else x).astype(DType(first).numpy)
        b = np.ascontiguousarray(y.T if turn_b else y).astype(DType(second).numpy)
        A, B = te.placeholder(a.shape, first, "A"), te.placeholder(b.shape, second, "B")
        C = matmul.define(A, B, transpose_a=turn_a, transpose_b=turn_b, out_dtype=wide)
        c = np.zeros((m, n), wide)
        call_fenced(tecomp.build(matmul.schedule(C, target), [A, B, C]), a, b, c)
        np.testing.assert_array_equal(c, x @ y)


@pytest.mark.exhaustive(keep=1)
@pairwise(batch=[(), (2,)], precision=[("float16", 11), ("bfloat16", 8)], target=CORES)
def test_narrow_floats_are_rounded_once(
    batch: tuple[int, ...], precision: tuple[str, int], target: tecomp.Target
) -> None:
    dtype, digits = precision
    random, kind = np.random.default_rng(0), DType(dtype).numpy
    a, b, shift = (
        random.standard_normal(shape).astype(kind)
        for shape in ((*batch, 21, 300), (*batch, 300, 35), (35,))
    )
    A, B = te.placeholder(a.shape, dtype, "A"), te.placeholder(b.shape, dtype, "B")
    bias = te.placeholder(shift.shape, dtype, "bias")
    C = matmul.define(A, B, bias=bias, activation=activations.relu)
    c = np.zeros((*batch, 21, 35), kind)
    call_fenced(tecomp.build(matmul.schedule(C, target), [A, B, bias, C]), a, b, shift, c)

    exact = np.maximum(a.astype("f8") @ b.astype("f8") + shift.astype("f8"), 0)
    assert_close(c.astype("f8"), exact, rtol=1.01 * 2.0**-digits, atol=1e-4)


def test_integers_of_sizes_known_at_the_call() -> None:
    m, k, n = te.var("m"), te.var("k"), te.var("n")
    A, B = te.placeholder((m, k), "int8", "A"), te.placeholder((k, n), "int8", "B")
    C = matmul.define(A, B, out_dtype="int32")
    kernel = tecomp.build(matmul.schedule(C, SMALL), [A, B, C])
    for shape in ((1, 1, 1), (7, 201, 33), (40, 64, 16)):
        a = np.random.default_rng(0).integers(-128, 128, shape[:2]).astype(np.int8)
        b = np.random.default_rng(1).integers(-128, 128, shape[1:]).astype(np.int8)
        c = np.zeros((shape[0], shape[2]), np.int32)
        call_fenced(kernel, a, b, c)
        np.testing.assert_array_equal(c, a.astype(np.int32) @ b.astype(np.int32))


def test_a_matrix_with_itself() -> None:
    A = te.placeholder((40, 40), name="A")
    C = matmul.define(A, A, transpose_b=True)
    a = np.random.default_rng(0).standard_normal((40, 40), np.float32)
    c = np.zeros((40, 40), np.float32)
    call_fenced(tecomp.build(matmul.schedule(C, SMALL), [A, C]), a, c)

    assert_product(c, a, a.T)


def test_sizes_known_at_the_call() -> None:
    m, k, n = te.var("m"), te.var("k"), te.var("n")
    A, B = te.placeholder((m, k), name="A"), te.placeholder((k, n), name="B")
    C = matmul.define(A, B)
    kernel = tecomp.build(matmul.schedule(C, SMALL), [A, B, C])
    for shape in ((1, 1, 1), (7, 200, 33), (40, 64, 16)):
        a = np.random.default_rng(0).standard_normal(shape[:2], np.float32)
        b = np.random.default_rng(1).standard_normal(shape[1:], np.float32)
        c = np.full((shape[0], shape[2]), np.nan, np.float32)
        call_fenced(kernel, a, b, c)
        assert_product(c, a, b)


@pytest.mark.exhaustive(keep=10)
@pytest.mark.parametrize("batch", [(), (0,), (2,)])
@pytest.mark.parametrize("sizes", [(0, 5, 7), (3, 0, 7), (3, 5, 0), (0, 0, 1)])
def test_any_size_may_be_none(batch: tuple[int, ...], sizes: tuple[int, int, int]) -> None:
    m, k, n = sizes
    for options in ({}, {"transpose_b": True}, {"activation": activations.relu}):
        b = (n, k) if "transpose_b" in options else (k, n)
        run((*batch, m, k), (*batch, *b), CPU, **options)


@pytest.mark.exhaustive(keep=1)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    "core", [tecomp.Core(1, 64, 32, (32768, 1 << 20)), tecomp.Core(1, 32, 16, (32768, 1 << 18))],
    ids=["64 bytes", "32 bytes"],
)
def test_no_number_of_columns_wastes_vectors(core: tecomp.Core, dtype: str) -> None:
    target = replace(CPU, core=core)
    for n in range(1, 400):
        A, B = te.placeholder((256, 256), dtype, name="A"), te.placeholder((256, n), dtype, name="B")
        tile = matmul.plan(matmul.define(A, B), target).tile
        computed = round_up(n, tile.columns)
        if n < tile.columns:
            # A narrow product is one vector of a power-of-two lane count or a full tile of vectors.
            computed = n if n % tile.lanes == 0 else max(1 << (n - 1).bit_length(), tile.lanes)
        assert computed <= 1.06 * round_up(n, tile.lanes), (n, tile)


@pytest.mark.exhaustive(keep=3)
@pytest.mark.parametrize(
    ("batch", "m", "k", "n", "options", "is_read"),
    [((), 33, 64, 64, {}, True), ((3,), 900, 64, 64, {}, True), ((), 900, 50, 48, {}, True),
     ((), 900, 64, 60, {}, False), ((), 900, 256, 64, {}, False), ((), 33, 256, 64, {}, True),
     ((), 33, 64, 64, {"transpose_b": True}, False), ((), 33, 256, 60, {}, False),
     ((2,), 5, 100, 101, {}, True), ((), 13, 30, 3, {}, True), ((), 4, 100, 101, {}, False),
     ((), 8, 300, 300, {}, False), ((), 1, 64, 64, {}, False)],
)
def test_few_columns_are_not_packed(
    batch: tuple[int, ...], m: int, k: int, n: int, options: dict[str, bool], *, is_read: bool
) -> None:
    target = replace(CPU, core=tecomp.Core(1, 64, 32, (32768, 1 << 20)))
    b = (*batch, n, k) if options else (*batch, k, n)
    A, B = te.placeholder((*batch, m, k), name="A"), te.placeholder(b, name="B")
    assert matmul.plan(matmul.define(A, B, **options), target).read_columns == is_read
    run((*batch, m, k), b, target, **options)


@pytest.mark.parametrize(
    ("depth", "rows"), [(1024, 8), (1025, 8), (1040, 13), (512, 13), (1016, 13), (1072, 13)]
)
def test_unpacked_rows_fit_into_the_first_cache(
    depth: int, rows: int
) -> None:
    target = replace(CPU, core=tecomp.Core(1, 64, 32, (32768, 1 << 20)))
    A, B = te.placeholder((1040, depth), name="A"), te.placeholder((depth, 128), name="B")
    assert matmul.plan(matmul.define(A, B), target).tile.rows == rows


@pytest.mark.exhaustive(keep=4)
@pytest.mark.parametrize("n", [33, 50, 300, 1000, "n"])
def test_columns_are_shared_in_whole_tiles(n: int | str) -> None:
    target = replace(CPU, core=tecomp.Core(4, 64, 32, (32768, 1 << 20)))
    columns = te.var("n") if isinstance(n, str) else n
    A, B = te.placeholder((16, 64), name="A"), te.placeholder((64, columns), name="B")
    C = matmul.define(A, B)
    p = matmul.plan(C, target)
    text = str(tecomp.lower(matmul.schedule(C, target), [A, B, C]))

    assert p.part_columns is not None
    assert p.part_columns % p.tile.columns == 0
    # The tile of sums has constant extents for any symbolic size.
    sums = re.findall(r'Allocate\(Buffer\("float32", \((.*?),\), scope="local"\)', text)
    assert sums == [str(p.tile.rows * p.tile.columns)]


def test_blocks_are_even_and_shared() -> None:
    A, B = te.placeholder((1000, 3000), name="A"), te.placeholder((3000, 500), name="B")
    p = matmul.plan(matmul.define(A, B), SMALL)

    assert p.is_split
    assert p.depth <= 8192 // 8
    assert p.block_rows % p.tile.rows == 0
    assert p.block_rows * 2 <= 1000 + 2 * p.tile.rows


def test_a_target_without_a_core_is_refused() -> None:
    A = te.placeholder((4, 4), name="A")
    bare = tecomp.Target("bare", "no core", CPU.memories)

    with pytest.raises(tecomp.TargetError) as error:
        matmul.schedule(matmul.define(A, A), bare)

    assert diagnostic(error.value) == (
        Diagnostic("unsupported-by-target", target="bare")
    )


@pytest.mark.exhaustive(keep=2)
@pytest.mark.parametrize("transpose_a", [False, True])
@pytest.mark.parametrize("transpose_b", [False, True])
@pytest.mark.parametrize(("m", "k", "n"), [(64, 700, 600), (3, 700, 129)])
def test_a_product_written_in_te_is_scheduled_as_that_of_the_library(
    m: int, k: int, n: int, transpose_a: bool, transpose_b: bool
) -> None:
    A = te.placeholder((k, m) if transpose_a else (m, k), name="A")
    B = te.placeholder((n, k) if transpose_b else (k, n), name="B")
    r = te.reduce_axis((0, k), name="k")
    plain = te.compute(
        (m, n),
        lambda i0, i1: te.sum(
            A(*(r, i0) if transpose_a else (i0, r)) * B(*(i1, r) if transpose_b else (r, i1)),
            axis=r,
        ),
        name="matmul",
    )
    output = matmul.define(A, B, transpose_a=transpose_a, transpose_b=transpose_b)

    lowered = [str(tecomp.lower(matmul.schedule(C, CPU), [A, B, C])) for C in (plain, output)]

    assert lowered[0] == lowered[1]


@pytest.mark.parametrize("transposed", [False, True])
def test_a_matrix_times_itself(transposed: bool) -> None:
    A = te.placeholder((60, 60), name="A")
    k = te.reduce_axis((0, 60), name="k")
    C = te.compute(
        (60, 60), lambda i, j: te.sum(A[i, k] * (A[j, k] if transposed else A[k, j]), axis=k)
    )
    a, c = np.random.default_rng(0).random((60, 60), np.float32), np.empty((60, 60), np.float32)

    tecomp.build(matmul.schedule(C, SMALL), [A, C])(a, c)

    assert_product(c, a, a.T if transposed else a)


def test_non_products_are_rejected() -> None:
    A = te.placeholder((8, 8), name="A")
    k = te.reduce_axis((0, 7), name="k")
    C = te.compute((8, 7), lambda i, j: te.sum(A[i, k] * A[k + 1, j], axis=k), name="C")

    with pytest.raises(tecomp.ScheduleError) as error:
        matmul.schedule(C, CPU)

    assert diagnostic(error.value) == (
        Diagnostic("pattern-mismatch", caller="matmul.schedule", op="C")
    )


@pytest.mark.exhaustive(keep=3)
@pytest.mark.parametrize("is_scaled", [False, True])
@pytest.mark.parametrize(("rows", "is_transposed"), [(1, False), (1, True), (3, True), (3, False)])
def test_weights_of_4_bits_are_unpacked_where_they_are_read(
    rows: int, is_transposed: bool, is_scaled: bool
) -> None:
    """A product of few rows stores no unpacked weights that exceed the second-level cache."""
    depth, columns = 512, 384
    shape = (depth, columns) if is_transposed else (columns, depth)
    W = te.placeholder((shape[0], shape[1] // 2), "uint8", name="W")
    scale = te.placeholder((shape[0], shape[1] // 32), name="scale")
    A = te.placeholder((rows, depth), name="A")
    weights = tecomp.storage_format("int4").decode(W, "float32")
    if is_scaled:
        unpacked = weights
        weights = te.compute(
            shape, lambda i, j: unpacked[i, j] * scale[i, j // 32], name="weights")
    B = matmul.define(A, weights, transpose_b=not is_transposed)
    args = [A, W, *([scale] if is_scaled else []), B]
    random = np.random.default_rng(0)
    values = random.integers(-8, 8, shape).astype(np.int8)
    scales = random.integers(1, 4, scale.shape).astype(np.float32)
    a, b = random.integers(-3, 4, A.shape).astype(np.float32), np.empty(B.shape, np.float32)

    s = auto(B, SMALL)
    text = str(tecomp.lower(s, args))
    tecomp.build(s, args)(
        a, tecomp.storage_format("int4").encode_array(values), *([scales] if is_scaled else []), b)

    sizes = [int(size) for size in re.findall(r"Allocate\(Buffer\(\"\w+\", \((\d+),\)", text)]
    assert max(sizes, default=0) < depth * columns // 8
    floats = values * (scales.repeat(32, 1) if is_scaled else np.float32(1))
    np.testing.assert_array_equal(b, a @ (floats if is_transposed else floats.T))
