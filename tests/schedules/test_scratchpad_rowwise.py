"""Softmax and layer norm on scratchpad machines: results, padding, chunks, cores, goldens."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tecomp
from tecomp import CapacityError, TargetError, te
from tecomp.schedules import norm, softmax
from tests.messages import Diagnostic, diagnostic
from tests.numerics import assert_close
from tests.strategies.fenced import call_fenced
from tests.strategies.machines import ACCELERATORS, shipped

SCRATCHPADS = {"neuroncore_v2": "sbuf", "stick128": "lx", "tensix_bh": "l1", "tensix_wh": "l1",
               "texture2d": "local", "vtcm2d": "global.vtcm"}
TOLERANCE = {"float32": 2e-5, "float16": 2e-3, "bfloat16": 2e-2}
RANDOM = np.random.default_rng(0)


class Case:
    """Operator with arguments and expected result."""

    def __init__(self, name: str, shape: tuple[int, ...], dtype: str = "float32") -> None:
        self.dtype = dtype
        kind = np.dtype(getattr(ml_dtypes, dtype, dtype))
        self.arrays = [(RANDOM.standard_normal(shape) * 5).astype(kind)]
        A = te.placeholder(shape, dtype, name="A")
        x = self.arrays[0].astype(np.float64)
        if name == "softmax":
            self.tensors = [A, softmax.define(A)]
            powers = np.exp(x - x.max(-1, keepdims=True))
            exact = powers / powers.sum(-1, keepdims=True)
        else:
            columns = [te.placeholder(shape[-1:], dtype, name=item) for item in ("scale", "shift")]
            self.arrays += [RANDOM.standard_normal(shape[-1:]).astype(kind) for _ in columns]
            self.tensors = [A, *columns, norm.layer_norm(A, *columns)]
            scale, shift = (array.astype(np.float64) for array in self.arrays[1:])
            centred = x - x.mean(-1, keepdims=True)
            exact = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5) * scale + shift
        self.schedule_of = softmax.schedule if name == "softmax" else norm.schedule
        self.exact = exact

    def scheduled(self, target: tecomp.Target) -> te.Schedule:
        s: te.Schedule = self.schedule_of(self.tensors[-1], target)
        return s

    def built(self, target: tecomp.Target) -> Any:
        return tecomp.build(self.scheduled(target), self.tensors, target=target)

    def packed(self, kernel: Any) -> list[np.ndarray[Any, Any]]:
        """Return the packed arguments of a kernel, with the result filled with NaN."""
        result = np.full(self.exact.shape, np.nan, self.arrays[0].dtype)
        source = zip(self.tensors, [*self.arrays, result], strict=True)
        return [kernel.pack(tensor, array) for tensor, array in source]

    def check(self, kernel: Any, packed: Sequence[np.ndarray[Any, Any]]) -> None:
        call_fenced(kernel, *packed)
        result = kernel.unpack(self.tensors[-1], packed[-1]).astype(np.float64)
        allowed = TOLERANCE[self.dtype]
        assert_close(result, self.exact, rtol=allowed, atol=allowed)


@cache
def built(
    operator: str, shape: tuple[int, ...], machine: str, dtype: str = "float32"
) -> tuple[Case, Any]:
    """Return a case and its kernel, memoized for all tests."""
    case = Case(operator, shape, dtype)
    return case, case.built(tecomp.Target.load(machine))


def cut_down(name: str, capacity: int) -> tecomp.Target:
    """Return a target with smaller scratchpads."""
    pad = {"capacity_bytes": capacity, "reserved_bytes": 0}
    return tecomp.Target.load(name).overridden(memory={SCRATCHPADS[name]: pad})


@pytest.fixture(params=ACCELERATORS)
def machine(request: pytest.FixtureRequest) -> str:
    """Return the name of a target with scratchpads."""
    name: str = request.param
    return name


@pytest.mark.exhaustive(keep=2)
@pytest.mark.parametrize("operator", ["softmax", "layer_norm"])
@pytest.mark.parametrize("shape", [(1, 1), (7, 33), (100, 257), (70,), (2, 3, 40)])
def test_sizes(machine: str, operator: str, shape: tuple[int, ...]) -> None:
    case, kernel = built(operator, shape, machine)

    case.check(kernel, case.packed(kernel))


@pytest.mark.exhaustive(keep=2)
@pytest.mark.parametrize("operator", ["softmax", "layer_norm"])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_types(machine: str, operator: str, dtype: str) -> None:
    case, kernel = built(operator, (40, 130), machine, dtype)

    case.check(kernel, case.packed(kernel))


@pytest.mark.exhaustive(keep=1)
@pytest.mark.parametrize("operator", ["softmax", "layer_norm"])
def test_every_pass_agrees(
    agrees: Callable[..., object], machine: str, operator: str
) -> None:
    case = Case(operator, (5, 37))
    target = tecomp.Target.load(machine)
    values = dict(zip(case.tensors, [*case.arrays, case.exact.astype("float32")], strict=True))

    agrees(case.scheduled(target), case.tensors, values, 2e-5, target=target)


@pytest.mark.exhaustive(keep=3, most=24)
@pytest.mark.parametrize("operator", ["softmax", "layer_norm"])
@pytest.mark.parametrize("rubbish", [np.nan, np.inf])
def test_padding_disturbs_nothing(machine: str, operator: str, rubbish: float) -> None:
    """The result does not depend on values in the padding of sticks and tiles."""
    case, kernel = built(operator, (7, 33), machine)
    packed = case.packed(kernel)
    for tensor, array in zip(case.tensors[:-1], packed, strict=False):
        ones = np.ones([int(n) for n in tensor.shape if isinstance(n, int)], array.dtype)
        array[kernel.pack(tensor, ones) == 0] = rubbish

    case.check(kernel, packed)


@pytest.mark.exhaustive(keep=1)
@pytest.mark.parametrize("operator", ["softmax", "layer_norm"])
@pytest.mark.parametrize(
    ("name", "capacity"),
    [("stick128", 4096), ("tensix_wh", 65536), ("texture2d", 4096), ("vtcm2d", 65536)],
)
def test_long_rows_are_split(operator: str, name: str, capacity: int) -> None:
    case = Case(operator, (35, 1000))
    kernel = case.built(cut_down(name, capacity))

    case.check(kernel, case.packed(kernel))
    peaks = {m.memory: m.peak_bytes for m in kernel.report().memories}
    assert capacity // 4 < peaks[SCRATCHPADS[name]] <= capacity


@pytest.mark.parametrize("name", ["stick128", "texture2d"])
def test_one_stick_a_piece(name: str) -> None:
    case = Case("softmax", (3, 100))
    kernel = case.built(cut_down(name, 384))

    case.check(kernel, case.packed(kernel))


@pytest.mark.exhaustive
def test_scratchpad_too_small_for_a_block() -> None:
    with pytest.raises(CapacityError) as error:
        Case("softmax", (1, 40)).built(cut_down("stick128", 128))
    assert diagnostic(error.value) == (
        Diagnostic(
            "capacity", final="main", memory="lx", scope=" of each core", target="stick128",
            limit=128, need=260,
            named="A_lx: float32[1, 1, 32], 128 bytes; softmax_powers_lx: float32[1, 1, 32], 128 bytes; softmax_most: float32[1, 1], 4 bytes",
            remedy="use smaller tiles, or compute it closer to where it is used",
        )
    )


@pytest.mark.exhaustive(keep=6)
@pytest.mark.parametrize("operator", ["softmax", "layer_norm"])
@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_machine_constraints_are_satisfied(machine: str, operator: str, dtype: str) -> None:
    """Target rules hold: operands share their lanes, and per-row values are in sparse sticks."""
    case = Case(operator, (40, 200), dtype)
    target = tecomp.Target.load(machine)

    assert tecomp.check_constraints(case.scheduled(target), target) == ()


@pytest.mark.exhaustive(keep=3)
@pytest.mark.parametrize("operator", ["softmax", "layer_norm"])
def test_cores_have_even_work(machine: str, operator: str) -> None:
    """Work is balanced for any row length, with one block per core and full rows if they fit."""
    target = tecomp.Target.load(machine)
    tile = 1 if target.tile is None else target.tile.rows
    case = Case(operator, (target.cores * tile, 64), "float16")

    report = case.built(target).report()
    assert len(report.cores) == target.cores
    assert report.imbalance == 1.0


def test_blocks_are_as_long_as_makes_all_cores_busy() -> None:
    """Blocks of 12 x 128 rows are balanced: blocks of 43 rows would be two for some cores."""
    case = Case("softmax", (12, 128, 64))

    report = case.built(tecomp.Target.load("stick128")).report()
    assert len(report.cores) == 32
    assert report.imbalance == 1.0


@pytest.mark.exhaustive(keep=2)
def test_rows_are_read_once_where_they_fit(machine: str) -> None:
    target = tecomp.Target.load(machine)
    case = Case("layer_norm", (64, 96), "float32")
    report = case.built(target).report()

    reads = [t for t in report.traffic if t.direction == "read" and t.memory != SCRATCHPADS[machine]]
    writes = [t for t in report.traffic if t.direction == "write"
              and t.memory != SCRATCHPADS[machine]]  # fmt: skip
    cores = len(report.cores)
    assert sum(t.bytes for t in writes) == 64 * 96 * 4
    assert 64 * 96 * 4 < sum(t.bytes for t in reads) <= 64 * 96 * 4 + 4 * cores * 2 * 96 * 4


@pytest.mark.exhaustive(keep=2)
@pytest.mark.parametrize(
    ("name", "rows"), [("stick128", 1), ("tensix_wh", 32), ("neuroncore_v2", 128)])
def test_rows_computed_in_place_are_read_once(name: str, rows: int) -> None:
    """Powers and results overwrite the rows that they read last, so two blocks of rows suffice."""
    case = Case("softmax", (128, 512))
    values = 16384 if name == "neuroncore_v2" else 0
    kernel = case.built(cut_down(name, 2 * rows * 512 * 4 + values))

    traffic = kernel.report().traffic
    reads = [t for t in traffic if t.direction == "read" and t.memory != SCRATCHPADS[name]]
    assert sum(t.bytes for t in reads) == 128 * 512 * 4
    case.check(kernel, case.packed(kernel))


def test_sizes_that_are_known_at_the_call(machine: str) -> None:
    A = te.placeholder((te.var("n"), 8), name="A")
    with pytest.raises(TargetError) as error:
        softmax.schedule(softmax.define(A), tecomp.Target.load(machine))
    assert diagnostic(error.value) == (
        Diagnostic("unbound-size", x="softmax", extent="n")
    )


@cache
def golden_case(operator: str) -> Case:
    """Return the program of the golden files."""
    return Case(operator, (40, 130), "float16")


@cache
def golden_kernel(operator: str, name: str) -> Any:
    """Return the kernel of the golden program on a target."""
    case = golden_case(operator)
    return tecomp.build(case.scheduled(shipped(name)), case.tensors, shipped(name), operator)


SHIPPED = pytest.mark.parametrize("name", ["cpu", *ACCELERATORS])


@pytest.mark.exhaustive(keep=2)
@SHIPPED
@pytest.mark.parametrize("operator", ["softmax", "layer_norm"])
def test_golden_ir(golden: Callable[[object], None], name: str, operator: str) -> None:
    case = golden_case(operator)

    golden(tecomp.lower(case.scheduled(shipped(name)), case.tensors, name=operator))


@pytest.mark.exhaustive(keep=1)
@SHIPPED
@pytest.mark.parametrize("operator", ["softmax", "layer_norm"])
def test_golden_report(golden: Callable[[object], None], name: str, operator: str) -> None:
    golden(golden_kernel(operator, name).report())


@pytest.mark.exhaustive(keep=2)
@SHIPPED
@pytest.mark.parametrize("operator", ["softmax", "layer_norm"])
def test_the_goldens_run(name: str, operator: str) -> None:
    case, kernel = golden_case(operator), golden_kernel(operator, name)

    case.check(kernel, case.packed(kernel))
