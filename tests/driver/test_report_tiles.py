"""Reports of programs with tile operations of the target, and the data that these move."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import tecomp
from tecomp import te
from tecomp.cost_model import CostReport
from tecomp.driver import ScheduledKernel
from tecomp.errors import TargetError
from tecomp.machine import Target, read_target
from tests.messages import Diagnostic, diagnostic
from tests.strategies.intrinsics import tile_product
from tests.strategies.machines import MATRIX_MACHINES

UNIT = '''name = "tiled"
description = "two cores that multiply tiles"

[grid]
core.x = 2

[memory.global]
scope = "chip"
rank = 1
alignment_bytes = 64
transaction_bytes = 32
source = "assumed"

[engine.product]
kind = "matmul"
m = 4
n = 16
k = 8
inputs = ["float32", "float16"]
accumulator = "float32"
a = ["m", "k"]
b = ["k", "n"]
c = ["m", "n"]
cycles = { exact = 10, fast = 4 }
modes = { float16 = "fast" }
memory = "global"
instances = 2
source = "assumed"

[engine.lanes]
kind = "vector"
width_bytes = 64
types = ["float32"]
cycles = { default = 1, double = 3 }
memory = "global"
source = "assumed"
'''
TILED = read_target(UNIT, "tiled.toml")


def program(
    intrin: te.TensorIntrin, rows: int = 16, columns: int = 32, dtype: str = "float32"
) -> tuple[te.Schedule, list[te.Tensor]]:
    """Build C = A B with a depth of 32 in tiles, with rows of tiles divided among two cores."""
    k = te.reduce_axis((0, 32), name="k")
    A = te.placeholder((rows, 32), dtype, name="A")
    B = te.placeholder((32, columns), dtype, name="B")
    C = te.compute(
        (rows, columns), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")
    s = te.create_schedule(C)
    m, n, depth = intrin.tile
    i, j = s[C].op.axis
    io, jo, ii, ji = s[C].tile(i, j, m, n)
    ko, ki = s[C].split(k, factor=depth)
    core, io = s[C].split(io, factor=-(-rows // m // 2))
    s[C].reorder(core, io, jo, ko, ii, ji, ki)
    s[C].bind(core, te.thread_axis("core.x"))
    s[C].tensorize(ii, intrin)
    return s, [A, B, C]


def report_of(intrin: te.TensorIntrin, dtype: str = "float32", **sizes: int) -> CostReport:
    return tecomp.build(*program(intrin, dtype=dtype, **sizes), target=TILED).report()


def test_tile_operations(
    golden: Callable[[object], None], agrees: Callable[..., ScheduledKernel]
) -> None:
    s, (A, B, C) = program(tile_product(4, 16, 8, unit="product"))
    rng = np.random.default_rng(3)
    a, b = (rng.integers(-4, 5, shape).astype("float32") for shape in ((16, 32), (32, 32)))

    kernel = agrees(s, [A, B, C], {A: a, B: b, C: a @ b}, target=TILED)

    report = kernel.report()
    golden(report)
    # 4 x 2 result tiles and 4 depth tiles, half of them per core; each reads each operand once.
    assert report.tiles == {"multiply": 32}
    assert [dict(core.tiles) for core in report.cores] == [{"multiply": 16}] * 2
    assert report.operations == {}
    read, written = report.of("global", "read"), report.of("global", "write")
    assert read is not None
    assert written is not None
    assert read.bytes == 32 * (4 * 8 + 8 * 16 + 4 * 16) * 4
    assert written.bytes == (32 * 4 * 16 + 16 * 32) * 4  # includes the initial zeros
    assert [core.cycles["product unit"] for core in report.cores] == [16 * 10 / 2] * 2


def test_partial_tiles_count_as_full_operations(
    agrees: Callable[..., ScheduledKernel]
) -> None:
    s, (A, B, C) = program(tile_product(4, 16, 8, unit="product"), 12, 20)
    rng = np.random.default_rng(3)
    a, b = (rng.integers(-4, 5, shape).astype("float32") for shape in ((12, 32), (32, 20)))

    report = agrees(s, [A, B, C], {A: a, B: b, C: a @ b}, target=TILED).report()

    assert [dict(core.tiles) for core in report.cores] == [{"multiply": 16}, {"multiply": 8}]
    assert report.imbalance == 4 / 3
    written = report.of("global", "write")
    assert written is not None
    assert written.bytes == (4 + 1) * 12 * 20 * 4


@pytest.mark.exhaustive(keep=4)
@pytest.mark.parametrize(
    ("tile", "dtype", "mode", "cycles"),
    [
        ((4, 16, 8), "float32", "", 16 * 10),
        ((4, 16, 8), "float32", "fast", 16 * 4),
        ((4, 16, 8), "float16", "", 16 * 4),
        ((4, 16, 8), "float16", "exact", 16 * 10),
        # Each operation of the program takes two by two tiles of the unit.
        ((8, 32, 8), "float32", "", 4 * 4 * 10),
        # Partial tiles of the unit take as long as full tiles.
        ((4, 16, 4), "float32", "", 32 * 10),
    ],
)
def test_cycles(tile: tuple[int, int, int], dtype: str, mode: str, cycles: float) -> None:
    report = report_of(tile_product(*tile, dtype=dtype, unit="product", mode=mode), dtype)

    assert [core.cycles["product unit"] for core in report.cores] == [cycles / 2] * 2


@pytest.mark.parametrize(("unit", "dtype"), [("", "float32"), ("other", "float32"),
                                             ("product", "float64")])
def test_without_a_unit_the_statements_count(unit: str, dtype: str) -> None:
    report = report_of(tile_product(4, 16, 8, dtype=dtype, unit=unit), dtype)

    count = 16 * 32 * 32
    assert report.operations == {f"add {dtype}": count, f"mul {dtype}": count}
    assert report.tiles == {"multiply": 32}
    traffic = report.of("global", "read")
    assert traffic is not None
    assert traffic.bytes == 3 * int(dtype[-2:]) // 8 * count


def test_an_unknown_unit_mode() -> None:
    kernel = tecomp.build(*program(tile_product(4, 16, 8, unit="product", mode="hifi")), target=TILED)

    with pytest.raises(TargetError) as error:
        kernel.report()
    assert diagnostic(error.value) == (
        Diagnostic("unsupported-by-target", op="multiply", unit="product", mode="hifi", cycles="exact, fast")
    )


@pytest.mark.parametrize("entry", ['float64 = "fast"', 'float16 = "hifi"'])
def test_modes_are_for_inputs_and_among_cycles(entry: str) -> None:
    with pytest.raises(TargetError) as error:
        read_target(UNIT.replace('float16 = "fast"', entry), "tiled.toml")
    assert diagnostic(error.value) == Diagnostic(
        "target", source="tiled.toml", line=":14", section="[engine.product]: ",
        reason=f"unit `product` has `{entry}` in modes, but dtypes must be among its inputs "
               "float32, float16 and modes among its cycles exact, fast",
    )


def test_a_vector_unit() -> None:
    x = te.placeholder((40,), name="x")
    y = te.compute((40,), lambda i: x[i] * 2.0, name="y")

    def double(ins: Sequence[te.Operand], outs: Sequence[te.Operand]) -> Any:
        return te.for_range(0, 40, lambda i: outs[0].store(i, ins[0][i] + ins[0][i]))

    A = te.placeholder((4, 40), name="A")
    B = te.compute((4, 40), lambda i, j: A[i, j] * 2.0, name="B")
    s = te.create_schedule(B)
    s[B].tensorize(B.op.axis[1], te.decl_tensor_intrin(y.op, double, "double", unit="lanes"))

    report = tecomp.build(s, [A, B], target=TILED).report()

    assert report.tiles == {"double": 4}
    # 40 values are three vectors of 16 lanes.
    assert report.cores[0].cycles == {"lanes unit": 4 * 3 * 3}


def test_json_and_trace_have_them() -> None:
    report = report_of(tile_product(4, 16, 8, unit="product"))

    assert '"tiles": {\n    "multiply": 32\n  }' in report.to_json()
    assert '"name": "multiply", "cat": "product unit"' in report.trace()


@pytest.mark.exhaustive
def test_targets_describe_unit_operands() -> None:
    """Reports contain the figures of the target descriptions."""
    for name in MATRIX_MACHINES:
        target = Target.load(name)
        unit: Any = target.engine["matmul"]
        dtype = unit.inputs[0]
        intrin = tile_product(unit.m, unit.n, unit.k, dtype=dtype, unit="matmul", check="later")
        k = te.reduce_axis((0, unit.k), name="k")
        A = te.placeholder((unit.m, unit.k), dtype, name="A")
        B = te.placeholder((unit.k, unit.n), dtype, name="B")
        C = te.compute(
            (unit.m, unit.n), lambda i, j, A=A, B=B, k=k: te.sum(A[i, k] * B[k, j], axis=k))
        s = te.create_schedule(C)
        s[C].tensorize(C.op.axis[0], intrin)

        report = tecomp.build(s, [A, B, C], target=target).report()

        assert report.tiles == {"multiply": 1}
        usual = next(iter(unit.cycles.values()))
        assert report.cores[0].cycles["matmul unit"] == usual / unit.instances
