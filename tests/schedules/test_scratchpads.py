"""Any program on scratchpad machines: results, cores, capacity and errors."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tecomp
from tecomp import CapacityError, Target, te
from tecomp.schedules import auto, matmul, softmax
from tecomp.schedules.scratchpad import placement_of
from tests.messages import Diagnostic, diagnostic
from tests.numerics import assert_close, assert_product
from tests.strategies.te_programs import draw_program

ACME = Path(__file__).parents[1] / "plugins" / "acme" / "acme_target" / "acme.toml"
MACHINES = {name: name for name in ("stick128", "tensix_wh", "texture2d", "vtcm2d")}
MACHINES["acme"] = str(ACME)
SMALL = {"stick128": 2048, "tensix_wh": 40960, "texture2d": 1024, "acme": 1024}
RANDOM = np.random.default_rng(0)


def run(s: te.Schedule, args: list[te.Tensor], inputs: list[Any], target: Target) -> Any:
    """Return the result of a schedule for arrays of all arguments but the last, and its report."""
    kernel = tecomp.build(s, args, target)
    result = kernel.empty(args[-1])
    kernel(*(kernel.pack(x, value) for x, value in zip(args, inputs, strict=False)), result)
    return kernel.unpack(args[-1], result), kernel.report()


def with_capacity(name: str, size: int) -> Target:
    """Return a target with the given scratchpad capacity in bytes."""
    target = Target.load(MACHINES[name])
    where = placement_of(target)
    assert where is not None
    return target.overridden(
        memory={where.scratchpad: {"capacity_bytes": size, "reserved_bytes": 0}})


def check(seed: int, target: Target) -> None:
    program = draw_program(seed)
    output, expected = program.values[-1]
    inputs, source = program.needed([output])
    if not inputs or output in inputs:
        return

    found, _ = run(auto(output, target), [*inputs, output], source, target)

    assert_close(found, expected, rtol=2e-3, atol=2e-4)


@pytest.mark.exhaustive(keep=1)
@pytest.mark.parametrize("name", MACHINES)
@pytest.mark.parametrize("seed", [55])
def test_random_programs(name: str, seed: int) -> None:
    check(seed, Target.load(MACHINES[name]))


@pytest.mark.exhaustive(keep=1)
@pytest.mark.parametrize(
    ("name", "seed"), [("stick128", 14), ("tensix_wh", 14), ("texture2d", 76), ("acme", 76)]
)
def test_random_programs_in_small_scratchpads(name: str, seed: int) -> None:
    """Random programs in small scratchpads: blocks, split reductions and double buffering."""
    check(seed, with_capacity(name, SMALL[name]))


def axis(extent: int, name: str) -> te.IterVar:
    found: te.IterVar = te.reduce_axis((0, extent), name=name)
    return found


A, B = te.placeholder((64, 96), name="A"), te.placeholder((96,), name="B")
INDEX = te.placeholder((40,), "int32", name="I")
k, r, p, q = axis(96, "k"), axis(64, "r"), axis(2, "p"), axis(3, "q")
STATE = te.placeholder(A.shape, name="state")
START = te.compute((1, 96), lambda _, j: A[0, j], name="start")
STEP = te.compute(A.shape, lambda t, j: STATE[t - 1, j] + A[t, j], name="step")


def windows(a: Any) -> Any:
    return np.lib.stride_tricks.sliding_window_view(a, (2, 3))[::2].max((2, 3))


def made(shape: tuple[int, ...], of: Callable[..., te.Expr]) -> te.Tensor:
    found = te.compute(shape, of, name="C")
    assert isinstance(found, te.Tensor)
    return found


KINDS: dict[str, tuple[list[te.Tensor], te.Tensor, Callable[..., Any]]] = {
    "elementwise": (
        [A], made((64, 96), lambda i, j: te.max(A[i, j] * 2.0, 0.5)), lambda a: np.maximum(a * 2, 0.5),
    ),
    "broadcast": ([A, B], made((64, 96), lambda i, j: A[i, j] + B[j]), lambda a, b: a + b),
    "rows": ([A], made((64,), lambda i: te.sum(A[i, k], axis=k)), lambda a: a.sum(1)),
    "columns": ([A], made((96,), lambda j: te.max(A[r, j], axis=r)), lambda a: a.max(0)),
    "all": ([A], made((), lambda: te.sum(A[r, k], axis=[r, k])), lambda a: a.sum()),
    "transpose": ([A], made((96, 64), lambda i, j: A[j, i]), lambda a: a.T),
    "pooling": (
        [A], made((32, 94), lambda i, j: te.max(A[2 * i + p, j + q], axis=[p, q])), windows,
    ),
    "gather": (
        [A, INDEX], made((40, 96), lambda i, j: A[INDEX[i], j] * 2.0), lambda a, i: a[i] * 2,
    ),
    "condition": (
        [A],
        made((64, 100), lambda i, j: te.if_then_else(
            te.all(j >= 2, j < 98), A[i, j - 2], te.const(0, "float32"))),
        lambda a: np.pad(a, ((0, 0), (2, 2))),
    ),
    "scan": ([A], te.scan(START, STEP, STATE, [A], name="C"), lambda a: np.cumsum(a, 0)),
}
ALONE = ("all", "scan")  # These run on one core.


@pytest.mark.exhaustive(keep=2)
@pytest.mark.parametrize("name", MACHINES)
@pytest.mark.parametrize("kind", KINDS)
def test_kinds_of_programs(name: str, kind: str) -> None:
    target = Target.load(MACHINES[name])
    where = placement_of(target)
    inputs, output, by_numpy = KINDS[kind]
    arrays = [
        RANDOM.random([int(n) for n in x.shape], np.float32) if x.dtype == "float32"
        else RANDOM.integers(0, 64, [int(n) for n in x.shape]).astype(x.dtype.numpy)
        for x in inputs
    ]

    s = auto(output, target)
    found, report = run(s, [*inputs, output], arrays, target)

    assert_close(found, by_numpy(*arrays), rtol=1e-5)
    if kind not in ALONE:
        assert 'thread="core.' in str(tecomp.lower(s, [*inputs, output]))
        assert where is not None
        assert any(t.memory == where.scratchpad and t.bytes for t in report.traffic)


@pytest.mark.exhaustive
def test_attention() -> None:
    Q, K, V = (te.placeholder((33, 20), name=name) for name in "QKV")
    e, j = te.reduce_axis((0, 20), name="e"), te.reduce_axis((0, 33), name="j")
    S = te.compute((33, 33), lambda i, k: te.sum(Q[i, e] * K[k, e], axis=e), name="S")
    P = softmax.define(te.compute(S.shape, lambda i, k: S[i, k] * 0.25, name="scaled"))
    Y = te.compute((33, 20), lambda i, f: te.sum(P[i, j] * V[j, f], axis=j), name="Y")
    q, k, v = RANDOM.random((3, 33, 20), np.float32)
    target = Target.load("stick128")

    found, _ = run(auto(Y, target), [Q, K, V, Y], [q, k, v], target)

    powers = np.exp(q @ k.T / 4)
    assert_close(found, powers / powers.sum(1, keepdims=True) @ v, rtol=1e-4)


@pytest.mark.exhaustive(keep=2)
@pytest.mark.parametrize("name", ["stick128", "acme"])
@pytest.mark.parametrize("shape", [(0, 8), (4, 0)])
def test_tensors_without_elements(name: str, shape: tuple[int, int]) -> None:
    X, n = te.placeholder(shape, name="X"), te.reduce_axis((0, shape[1]), name="n")
    C = te.compute(shape[:1], lambda i: te.sum(X[i, n], axis=n), name="C")
    x = np.empty(shape, np.float32)

    found, _ = run(auto(C, Target.load(MACHINES[name])), [X, C], [x], Target.load(MACHINES[name]))

    np.testing.assert_array_equal(found, x.sum(1))
    np.testing.assert_array_equal(tecomp.compile(C, [X], MACHINES[name])(x), x.sum(1))


def test_products_of_a_program_match_the_unit() -> None:
    A, B = (te.placeholder((64, 64), "float16", name=name) for name in "AB")
    k, r = te.reduce_axis((0, 64), name="k"), te.reduce_axis((0, 64), name="r")

    def product(x: te.Tensor, y: te.Tensor, axis: te.IterVar, name: str) -> te.Tensor:
        return te.compute((64, 64), lambda i, j: te.sum(
            x[i, axis].astype("float32") * y[axis, j].astype("float32"), axis=axis), name=name)

    first = product(A, B, k, "first")
    half = te.compute((64, 64), lambda i, j: te.max(first[i, j], 0.0).astype("float16"), name="h")
    C = product(half, B, r, "C")
    target = Target.load("stick128")
    a, b = (RANDOM.random((2, 64, 64)) / 8).astype(np.float16)

    found, report = run(auto(C, target), [A, B, C], [a, b], target)

    widened = np.maximum(a.astype("f4") @ b.astype("f4"), 0).astype("f2").astype("f4")
    assert_product(found, widened, b, rtol=2e-3)
    assert report.tiles == {"matmul_float16": 2 * 8}


def test_loads_overlap_with_computation() -> None:
    A = te.placeholder((64, 4096), name="A")
    C = te.compute(A.shape, lambda i, j: A[i, j] + 1.0, name="C")
    target = with_capacity("stick128", 8192)
    s = auto(C, target)

    text = str(tecomp.lower(s, [A, C], stop_after="double_buffers"))

    assert re.search(r'\(2, \d+, \d+, 32\), scope="lx"\)\) as A_lx', text)


@pytest.mark.exhaustive(keep=1)
@pytest.mark.parametrize("shape", [(2048, 64), (4, 2048)])
def test_cores_share_a_reduction(shape: tuple[int, int]) -> None:
    """A reduction is divided among cores, with formulas before and after it on the same data."""
    target = Target.load("stick128")
    X = te.placeholder(shape, name="X")
    long = int(shape[0] < shape[1])
    n = te.reduce_axis((0, shape[long]), name="n")
    Z = te.compute(shape, lambda i, j: X[i, j] + 1.0, name="Z")
    total = te.compute(
        (shape[1 - long],), lambda i: te.sum(Z[i, n] if long else Z[n, i], axis=n), name="total")
    C = te.compute(
        total.shape, lambda i: total[i] * (X[i, 0] if long else X[0, i]), name="C")
    x = RANDOM.random(shape, np.float32)

    found, report = run(auto(C, target), [X, C], [x], target)

    first = x[:, 0] if long else x[0]
    assert_close(found, (x + 1).sum(long) * first, rtol=1e-5)
    assert len(report.cores) == 32


def test_transposed_values_are_read_in_memory_order() -> None:
    """Row sums read whole sticks from the device and store them transposed in the scratchpad."""
    target = Target.load("stick128")
    _, output, _ = KINDS["rows"]
    kernel = tecomp.build(auto(output, target), [A, output], target)

    read = kernel.report().of("ddr", "read")

    assert read is not None
    assert read.transactions is not None
    assert 64 * 3 <= read.transactions < 64 * 3 + 10  # and the partial results


def test_scratchpad_too_small_for_one_element() -> None:
    A, B = te.placeholder((8, 100), name="A"), te.placeholder((100,), name="B")
    C = te.compute(A.shape, lambda i, j: A[i, j] + B[j], name="C")
    with pytest.raises(CapacityError) as error:
        auto(C, with_capacity("stick128", 256))

    assert diagnostic(error.value) == (
        Diagnostic(
            "capacity", output="C", need=384, scratchpad="lx", target="stick128", free_bytes=256,
            listed="A: float32, 128 bytes, B: float32, 128 bytes, C: float32, 128 bytes",
        )
    )


def test_scattered_reads_stay_in_memory() -> None:
    """A matrix times its transpose has no scratchpad copy if row and column blocks do not fit."""
    A, k = te.placeholder((300, 40), name="A"), te.reduce_axis((0, 40), name="k")
    C = te.compute((300, 300), lambda i, j: te.sum(A[i, k] * A[j, k], axis=k), name="C")
    target = with_capacity("stick128", 4096)
    a = RANDOM.random((300, 40), np.float32)

    found, _ = run(auto(C, target), [A, C], [a], target)

    assert_product(found, a, a.T)


@pytest.mark.exhaustive(keep=7)
@pytest.mark.parametrize("kind", ["elementwise", "broadcast", "columns", "transpose"])
@pytest.mark.parametrize("name", ["stick128", "tensix_wh", "vtcm2d"])
def test_constraints_of_the_machine_are_satisfied(kind: str, name: str) -> None:
    _, output, _ = KINDS[kind]
    target = Target.load(MACHINES[name])

    assert tecomp.check_constraints(auto(output, target), target) == ()


@pytest.mark.exhaustive(keep=1)
@pytest.mark.parametrize("machine", ["stick128", "tensix_wh", "neuroncore_v2"])
@pytest.mark.parametrize("terms", [1, 2])
def test_results_are_written_over_operands_that_die(machine: str, terms: int) -> None:
    """The part of a core is a single block if the scratchpad holds all of it but the result."""
    target = Target.load(machine)
    where = placement_of(target)
    assert where is not None
    shape, part_bytes = (128 * target.cores, 128), 128 * 128 * 2
    buffers = 2 if terms == 1 else terms + 2  # operands of the maximum, and terms of a sum
    small = target.overridden(memory={where.scratchpad: {
        "capacity_bytes": buffers * part_bytes, "reserved_bytes": 0}})
    A, B = te.placeholder((terms, *shape), "float16", "A"), te.placeholder(shape, "float16", "B")
    k = te.reduce_axis((0, terms), name="k")
    S = te.compute(shape, lambda i, j: te.sum(A[k, i, j], axis=k), name="S")
    P = te.placeholder(shape, "float16", "P")
    X = P if terms == 1 else S
    C = te.compute(shape, lambda i, j: te.max(X[i, j], B[i, j]), name="C")
    a = RANDOM.integers(-9, 10, (terms, *shape)).astype("f2")
    b = RANDOM.integers(-9, 10, shape).astype("f2")
    s = auto(C, small)

    found, report = run(
        s, [P if terms == 1 else A, B, C], [a[0] if terms == 1 else a, b], small)

    np.testing.assert_array_equal(found, np.maximum(a.sum(0), b))
    used = next(m for m in report.memories if m.memory == where.scratchpad)
    assert used.peak_bytes == (terms + 1) * part_bytes
    assert "double_buffer" not in str(s.trace)


@pytest.mark.exhaustive(keep=1)
@pytest.mark.parametrize("shape", [(130, 130, 100), (256, 256, 256)])
@pytest.mark.parametrize("capacity", [16384, 40960, 65536])
@pytest.mark.parametrize("terms", [0, 1])
def test_epilogues_use_the_memory_of_dead_factors(
    shape: tuple[int, int, int], capacity: int, terms: int
) -> None:
    """Blocks of factors fill the scratchpad, and blocks of the depth are whole sticks."""
    target = Target.load("stick128").overridden(memory={
        "lx": {"capacity_bytes": capacity, "reserved_bytes": 0}})
    m, k, n = shape
    A, B = te.placeholder((m, k), name="A"), te.placeholder((k, n), name="B")
    D = te.placeholder((m, n), name="D")
    total = matmul.define(A, B)
    C = te.compute((m, n), lambda i, j: te.max(total[i, j], D[i, j] if terms else 0.0), name="C")
    a, b, d = (RANDOM.integers(-9, 10, size).astype("f4") for size in ((m, k), (k, n), (m, n)))

    found, report = run(auto(C, target), [A, B, *[D][:terms], C], [a, b, *[d][:terms]], target)

    np.testing.assert_array_equal(found, np.maximum(a @ b, d if terms else 0))
    _, plain = run(auto(total, target), [A, B, total], [a, b], target)
    extra = m * n * 4 if terms else 0
    assert _bytes_loaded(report) == _bytes_loaded(plain) + extra


def _bytes_loaded(report: Any) -> int:
    """Return the bytes that a kernel reads in device memory."""
    return sum(t.bytes for t in report.traffic if (t.memory, t.direction) == ("ddr", "read"))
