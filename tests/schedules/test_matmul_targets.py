"""Matrix products on scratchpad machines equal NumPy."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import tecomp
from tecomp import MatmulUnit, Target, te
from tecomp.driver import ScheduledKernel
from tecomp.errors import CapacityError, TargetError
from tecomp.ir import DType
from tecomp.machine import read_target
from tecomp.schedules import activations, matmul
from tests.messages import Diagnostic, diagnostic
from tests.numerics import assert_close
from tests.strategies.fenced import call_fenced
from tests.strategies.machines import ACCELERATORS, MATRIX_MACHINES, VECTOR_MACHINES, shipped

SIZES = [(1, 1, 1), (7, 33, 100), (100, 7, 1), (33, 100, 257), (257, 100, 33), (128, 64, 256)]

MADE_UP = read_target('''name = "made_up"
description = "three by two cores that multiply tiles of 6x10 and 12, in sticks of 40 bytes"

[grid]
core.row = 3
core.column = 2

[stick]
bytes = 40
padding = "stick"
source = "made up"

[memory.global]
scope = "host"
rank = 1
alignment_bytes = 64
source = "made up"

[memory.pool]
scope = "chip"
rank = 1
alignment_bytes = 8
capacity_bytes = 10_000_000
source = "made up"

[memory.desk]
scope = "core"
rank = 1
alignment_bytes = 8
capacity_bytes = 6_000
reserved_bytes = 100
source = "made up"

[link.in]
from = "global"
to = "pool"
scope = "chip"
bytes_per_cycle = 8
source = "made up"

[link.fetch]
from = "pool"
to = "desk"
scope = "core"
bytes_per_cycle = 8
source = "made up"

[engine.tiles]
kind = "matmul"
m = 6
n = 10
k = 12
inputs = ["bfloat16"]
accumulator = "float32"
a = ["k//3", "m", "k%3"]
b = ["n", "k"]
c = ["n", "m"]
cycles = { exact = 9 }
memory = "desk"
source = "made up"
''', "made_up.toml")


def load(machine: str | Target) -> Target:
    return machine if isinstance(machine, Target) else Target.load(machine)


def whole_numbers(shape: tuple[int, ...], dtype: str, seed: int) -> NDArray[Any]:
    """Return small integers, so that sums of products are exact in any order."""
    return np.random.default_rng(seed).integers(-4, 5, shape).astype(DType(dtype).numpy)


def run(
    machine: str | Target, m: int, k: int, n: int, dtype: str = "float16", **options: Any
) -> tuple[ScheduledKernel, te.Schedule]:
    """Build the product, run it on integers, and compare with NumPy."""
    target = load(machine)
    turn_a, turn_b = options.get("transpose_a", False), options.get("transpose_b", False)
    A = te.placeholder((k, m) if turn_a else (m, k), dtype, name="A")
    B = te.placeholder((n, k) if turn_b else (k, n), dtype, name="B")
    C = matmul.define(A, B, **{"out_dtype": "float32", **options})
    s = matmul.schedule(C, target)
    bias = options.get("bias")
    args = [A, B, *([] if bias is None else [bias]), C]
    kernel = tecomp.build(s, args, target=target)

    inputs = [whole_numbers(arg.shape, arg.dtype, seed) for seed, arg in enumerate(args)]
    arrays = [kernel.pack(arg, array) for arg, array in zip(args, inputs, strict=True)]
    call_fenced(kernel, *arrays)

    a, b = (array.astype(np.float64) for array in inputs[:2])
    expected = (a.T if turn_a else a) @ (b.T if turn_b else b)
    if bias is not None:
        expected = expected + inputs[2].astype(np.float64)
    if options.get("activation") is activations.relu:
        expected = np.maximum(expected, 0)
    actual = kernel.unpack(C, arrays[-1])
    np.testing.assert_array_equal(actual.astype(np.float64), expected)
    return kernel, s


@pytest.mark.exhaustive(keep=2, most=7)
@pytest.mark.parametrize("machine", MATRIX_MACHINES)
@pytest.mark.parametrize(("m", "k", "n"), SIZES)
def test_units(machine: str, m: int, k: int, n: int) -> None:
    _, s = run(machine, m, k, n)

    assert "tensorize" in str(s.trace)
    assert tecomp.check_constraints(s, machine) == ()


@pytest.mark.exhaustive(keep=3)
@pytest.mark.parametrize("machine", VECTOR_MACHINES)
@pytest.mark.parametrize(("m", "k", "n"), SIZES)
def test_vectors(machine: str, m: int, k: int, n: int) -> None:
    _, s = run(machine, m, k, n, "float32")

    assert "tensorize" not in str(s.trace)
    assert tecomp.check_constraints(s, machine) == ()


@pytest.mark.exhaustive(keep=2, most=8)
@pytest.mark.parametrize("machine", ACCELERATORS)
@pytest.mark.parametrize("order", [(True, False), (False, True)])
def test_transposed(machine: str, order: tuple[bool, bool]) -> None:
    run(machine, 65, 70, 100, transpose_a=order[0], transpose_b=order[1])


@pytest.mark.exhaustive(keep=2, most=8)
@pytest.mark.parametrize("machine", ACCELERATORS)
@pytest.mark.parametrize("out_dtype", ["float16", "float32"])
def test_both_transposed(machine: str, out_dtype: str) -> None:
    _, s = run(machine, 65, 70, 100, transpose_a=True, transpose_b=True, out_dtype=out_dtype)

    assert tecomp.check_constraints(s, machine) == ()


@pytest.mark.exhaustive(keep=1)
@pytest.mark.parametrize("machine", ACCELERATORS)
def test_batches_of_more_and_fewer_tiles_than_cores(machine: str) -> None:
    target = load(machine)
    for batch in (2, target.cores + 1):
        A = te.placeholder((batch, 5, 9), "float16", name="A")
        B = te.placeholder((batch, 9, 11), "float16", name="B")
        C = matmul.define(A, B, out_dtype="float32")
        kernel = tecomp.build(matmul.schedule(C, target), [A, B, C], target=target)
        a = whole_numbers((batch, 5, 9), "float16", 1)
        b = whole_numbers((batch, 9, 11), "float16", 2)
        arrays = [kernel.pack(A, a), kernel.pack(B, b), kernel.pack(C, np.zeros(C.shape, "f4"))]
        call_fenced(kernel, *arrays)
        np.testing.assert_array_equal(
            kernel.unpack(C, arrays[2]), a.astype("f4") @ b.astype("f4"))


@pytest.mark.exhaustive(keep=1)
@pytest.mark.parametrize("machine", ACCELERATORS)
def test_bias_activation_and_conversion(machine: str) -> None:
    bias = te.placeholder((100,), "float32", name="bias")
    _, s = run(machine, 65, 70, 100, bias=bias, activation=activations.relu)

    assert tecomp.check_constraints(s, machine) == ()


@pytest.mark.exhaustive(keep=2, most=6)
@pytest.mark.parametrize("machine", MATRIX_MACHINES)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_sums_are_float32(machine: str, dtype: str) -> None:
    """Factors are rounded once, accumulation is float32, and the result is rounded once."""
    target, kind = load(machine), DType(dtype).numpy
    A, B = (te.placeholder((90, 90), dtype, name=name) for name in "AB")
    C = matmul.define(
        A, B, out_dtype="float32", activation=lambda value: te.cast(value, dtype)
    )
    kernel = tecomp.build(matmul.schedule(C, target), [A, B, C], target=target)
    random = np.random.default_rng(0)
    a, b = (random.standard_normal((90, 90), np.float32).astype(kind) for _ in "ab")
    arrays = [kernel.pack(x, v) for x, v in ((A, a), (B, b), (C, np.zeros((90, 90), kind)))]

    call_fenced(kernel, *arrays)

    exact = a.astype(np.float64) @ b.astype(np.float64)
    actual = kernel.unpack(C, arrays[2])
    step = 2.0 ** (-11 if dtype == "float16" else -8)
    assert actual.dtype == kind
    assert_close(actual.astype(np.float64), exact, rtol=1.01 * step, atol=1e-4)


@pytest.mark.exhaustive(keep=1, most=3)
@pytest.mark.parametrize("machine", MATRIX_MACHINES)
def test_types_that_no_unit_takes(machine: str) -> None:
    unit: Any = load(machine).engine["matmul"]
    dtype = next(name for name in ("float32", "int32") if name not in unit.inputs)

    _, s = run(machine, 33, 40, 50, dtype, out_dtype=dtype)

    assert "tensorize" not in str(s.trace)


@pytest.mark.exhaustive(keep=1, most=3)
@pytest.mark.parametrize(("m", "k", "n"), [*SIZES, (60, 500, 70)])
def test_no_figure_of_a_machine_is_in_the_schedule(m: int, k: int, n: int) -> None:
    """Schedules adapt to other cores, tiles, sticks, tile axis orders and small memories."""
    _, s = run(MADE_UP, m, k, n, "bfloat16")

    assert "tensorize" in str(s.trace)


@pytest.mark.exhaustive(keep=1)
@pytest.mark.parametrize(("m", "k", "n"), [(1, 1, 1), (7, 33, 100), (33, 20, 57)])
def test_plug_in(m: int, k: int, n: int) -> None:
    """A plug-in target has integers, a 3-axis memory, and a unit with paired factor rows."""
    acme = Path(__file__).parents[1] / "plugins" / "acme" / "acme_target" / "acme.toml"
    _, s = run(Target.load(acme), m, k, n, "int16", out_dtype="int32", pairs=False)

    assert "tensorize" in str(s.trace)
    assert tecomp.check_constraints(s, Target.load(acme)) == ()


def test_padding_is_read_after_it_is_filled() -> None:
    """The functions from `fill_padding` on give the exact product in the interpreter."""
    A, B = te.placeholder((8, 17), "bfloat16", "A"), te.placeholder((17, 13), "bfloat16", "B")
    C = matmul.define(A, B, out_dtype="float32")
    kernel = tecomp.build(matmul.schedule(C, MADE_UP), [A, B, C], target=MADE_UP)
    a, b = whole_numbers((8, 17), "bfloat16", 0), whole_numbers((17, 13), "bfloat16", 1)
    inputs = [kernel.pack(A, a), kernel.pack(B, b)]
    for name in ("fill_padding", "simplify"):
        func = kernel.lowered.functions[name]
        arrays = [*inputs, kernel.pack(C, np.zeros((8, 13), np.float32))]
        tecomp.evaluate(func, arrays if name == "fill_padding" else [x.ravel() for x in arrays])
        np.testing.assert_array_equal(
            kernel.unpack(C, arrays[2]), a.astype("f4") @ b.astype("f4"), name)


@pytest.mark.exhaustive(keep=1, most=4)
@pytest.mark.parametrize("machine", MATRIX_MACHINES)
@pytest.mark.parametrize("tiles", [1, 8])
def test_smaller_scratchpads(machine: str, tiles: int) -> None:
    """Blocks fit the scratchpad; parts of the reduction axis are double-buffered."""
    target = load(machine)
    (unit,) = (each for each in target.engine.values() if isinstance(each, MatmulUnit))
    # Both factors twice, and the sums; a quarter is left for padding to sticks and rows.
    factors, sums = (unit.m + unit.n) * unit.k * 2, unit.m * unit.n * 4
    small = target.overridden(memory={unit.memory: {
        "capacity_bytes": tiles * (2 * factors + sums) * 5 // 4, "reserved_bytes": 0}},
        grid=dict.fromkeys(target.grid, 2))
    kernel, s = run(small, unit.m + 22, 3 * unit.k + 16, unit.n + 44)

    report = kernel.report()
    used = next(m for m in report.memories if m.memory == unit.memory)
    assert used.peak_bytes <= (small.memory(unit.memory).usable_bytes or 0)
    if tiles == 1:
        assert "double_buffer" in str(s.trace)


@pytest.mark.exhaustive
def test_oversized_tiles_suggest_a_fitting_tile() -> None:
    target = Target.load("stick128")
    A, B = te.placeholder((512, 2048), "float16", "A"), te.placeholder((2048, 512), "float16", "B")
    C = matmul.define(A, B, out_dtype="float32")
    s = matmul.schedule(C, target)
    small = target.overridden(memory={"lx": {"capacity_bytes": 131072, "reserved_bytes": 0}})

    with pytest.raises(CapacityError) as error:
        tecomp.build(s, [A, B, C], target=small)
    assert diagnostic(error.value) == (
        Diagnostic(
            "capacity", final="main", memory="lx", scope=" of each core", target="stick128",
            limit=131072, need=819200,
            named="B_lx: float16[32, 2, 64, 64], 524288 bytes; A_lx: float16[8, 32, 8, 64], 262144 bytes; matmul_lx: float32[8, 2, 2, 8, 32], 32768 bytes",
            remedy="s[matmul_lx].split(k, factor=256) instead of 2048 needs 131072",
        )
    )


def test_sizes_have_to_be_known() -> None:
    m = te.var("m")
    A, B = te.placeholder((m, 64), "float16", "A"), te.placeholder((64, 64), "float16", "B")

    with pytest.raises(TargetError) as error:
        matmul.schedule(matmul.define(A, B, out_dtype="float32"), Target.load("stick128"))
    assert diagnostic(error.value) == (
        Diagnostic("unbound-size", x="matmul", extent="m")
    )


@cache
def printed(machine: str) -> ScheduledKernel:
    """Return the kernel of the golden files, after a checked run."""
    return run(shipped(machine), 40, 70, 50, "float16" if machine in MATRIX_MACHINES else "float32")[0]


@pytest.mark.exhaustive(keep=1, most=8)
@pytest.mark.parametrize("machine", ["cpu", *ACCELERATORS])
@pytest.mark.parametrize("shown", ["ir", "report"])
def test_printed(machine: str, shown: str, golden: Callable[[object], None]) -> None:
    """The printed program and its cost report equal the golden files."""
    kernel = printed(machine)

    golden(kernel.report() if shown == "report" else kernel.lowered.functions["nest"])
