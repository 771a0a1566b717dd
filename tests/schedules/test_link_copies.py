"""Copies over memory links, and the reports of programs that use them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import tecomp
from tecomp import LowerError, Target, TargetError, te
from tecomp.cost_model import CostReport
from tecomp.ir import DType
from tecomp.machine import read_target
from tecomp.operations import SAME, elementwise_in
from tecomp.schedules.intrinsics.accelerator import (
    copy_intrinsic,
    vector_intrinsic,
    vector_intrinsics,
)
from tecomp.schedules.scratchpad import placement_of, sizes_of
from tests.messages import Diagnostic, diagnostic
from tests.numerics import assert_close

# Without sticks or tiles, the transfer unit is a burst.
TOY = read_target('''name = "toy"
description = "two cores with scratchpads, that are filled by bursts"

[grid]
core.x = 2

[memory.global]
scope = "host"
rank = 1
alignment_bytes = 64
source = "made up"

[memory.dram]
scope = "chip"
rank = 1
alignment_bytes = 32
transaction_bytes = 32
source = "made up"

[memory.pad]
scope = "core"
rank = 1
alignment_bytes = 32
capacity_bytes = 65_536
source = "made up"

[link.down]
from = "global"
to = "dram"
scope = "chip"
bytes_per_cycle = 8
source = "made up"

[link.fill]
from = "dram"
to = "pad"
scope = "core"
bytes_per_cycle = 16
burst_bytes = 256
source = "made up"

[link.drain]
from = "pad"
to = "dram"
scope = "core"
bytes_per_cycle = 16
source = "made up"

[link.across]
from = "pad"
to = "pad"
scope = "core"
bytes_per_cycle = 16
source = "made up"

[engine.alu]
kind = "vector"
width_bytes = 64
types = ["float32", "int16"]
cycles = { default = 1, exp = 5, div = 7, twist = 9 }
memory = "pad"
source = "made up"
''', "toy.toml")


class Sum:
    """C = A + B with operands copied to scratchpads, added there, and copied back.

    The sum consists of plain loops or of tensorized operations of the target.
    """

    def __init__(self, name: str, dtype: str, shape: tuple[int, int], unit: str) -> None:
        self.target = Target.load(name)
        where = placement_of(self.target)
        assert where is not None
        self.where, self.dtype, self.shape, self.unit = where, dtype, shape, unit

    def build(self, *, is_tensorized: bool) -> tuple[Any, list[te.Tensor]]:
        where, shape = self.where, self.shape
        A, B = (te.placeholder(shape, self.dtype, name=name) for name in "AB")
        C = te.compute(shape, lambda i, j: A[i, j] + B[i, j], name="C")
        s = te.create_schedule(C)
        for x in (A, B, C):
            where.put(s, x)
        total = s.cache_write(C, where.scratchpad)
        height, width = where.unit(self.dtype)
        i, row = s[C].split(C.op.axis[0], factor=height)
        j, column = s[C].split(C.op.axis[1], factor=width)
        s[C].reorder(i, j, row, column)
        step = where.share(s, C, s[C].fuse(i, j))
        for x in (*(s.cache_read(x, where.scratchpad, [total]) for x in (A, B)), total):
            s[x].set_scope(where.scratchpad)
            loops = s[x].transform_layout(where.layout(shape, self.dtype))
            s[x].compute_at(s[C], step)
            if is_tensorized:
                self.tensorize(s, x, loops, is_copy=x is not total)
        if is_tensorized:
            copy = copy_intrinsic(self.target, "store", self.dtype)
            s[C].tensorize(row if height > 1 else column, copy)
        else:
            where.traverse(s, C, [row], column)
        return tecomp.build(s, [A, B, C], target=self.target), [A, B, C]

    def tensorize(
        self, s: te.Schedule, x: te.Tensor, loops: Any, *, is_copy: bool
    ) -> None:
        if is_copy:
            intrin = copy_intrinsic(self.target, "load", self.dtype)
            # A tile has four loops, a stick has one.
            s[x].tensorize(loops[-len(intrin.tile)], intrin)
            return
        intrin = vector_intrinsic(self.target, self.unit, "add", self.dtype)
        lanes = s[x].fuse(*loops[-2:])
        s[x].tensorize(s[x].split(lanes, factor=intrin.tile[0])[1], intrin)

    def report(self, *, is_tensorized: bool) -> CostReport:
        kernel, tensors = self.build(is_tensorized=is_tensorized)
        rng = np.random.default_rng(1)
        kind = DType(self.dtype).numpy
        a, b = (rng.integers(-9, 9, self.shape).astype(kind) for _ in range(2))
        packed = [kernel.pack(x, array) for x, array in zip(tensors, (a, b, a * 0), strict=True)]

        kernel(*packed)

        np.testing.assert_array_equal(kernel.unpack(tensors[2], packed[2]), a + b)
        report: CostReport = kernel.report()
        return report


@pytest.mark.exhaustive(keep=1)
@pytest.mark.parametrize(
    ("name", "unit", "dtype", "shape", "tiles"),
    [
        ("stick128", "sfu", "float16", (64, 256),
         {"load_copy_float16": 512, "sfu_add_float16": 256, "store_copy_float16": 256}),
        ("stick128", "sfu", "float32", (33, 96),
         {"load_copy_float32": 198, "sfu_add_float32": 99, "store_copy_float32": 99}),
        ("tensix_wh", "sfpu", "bfloat16", (64, 128),
         {"load_copy_bfloat16": 16, "sfpu_add_bfloat16": 128, "store_copy_bfloat16": 8}),
    ],
)
def test_link_copies_match_copy_loops(
    name: str, unit: str, dtype: str, shape: tuple[int, int], tiles: dict[str, int],
) -> None:
    program = Sum(name, dtype, shape, unit)

    plain, result = (program.report(is_tensorized=value) for value in (False, True))

    assert plain.tiles == {}
    assert result.tiles == tiles
    assert result.links == plain.links
    assert result.memories == plain.memories
    assert result.of(program.where.device, "read") == plain.of(program.where.device, "read")
    assert result.of(program.where.device, "write") == plain.of(program.where.device, "write")
    assert result.operations == {}
    # The lane count is the same whether the unit is named or inferred.
    assert [c.cycles[f"{unit} unit"] for c in result.cores] == pytest.approx(
        [c.cycles["compute"] for c in plain.cores])


def test_the_report_of_a_program_of_operations(golden: Callable[[object], None]) -> None:
    program = Sum("tensix_wh", "bfloat16", (64, 128), "sfpu")

    golden(program.report(is_tensorized=True))


def copied(size: int, link: str, scopes: tuple[str, str]) -> tuple[te.Schedule, list[te.Tensor]]:
    """Return B = A through two memories, the second copied from the first in bursts."""
    A = te.placeholder((size,), "float32", name="A")
    B = te.compute((size,), lambda i: A[i], name="B")
    s = te.create_schedule(B)
    first, second = scopes
    source = s.cache_read(A, first, [B]) if first != "global" else A
    copy = s.cache_read(source, second, [B])
    intrin = copy_intrinsic(TOY, link, "float32")
    s[copy].tensorize(s[copy].split(copy.op.axis[0], factor=intrin.tile[0])[1], intrin)
    return s, [A, B]


def run(s: te.Schedule, tensors: list[te.Tensor]) -> CostReport:
    kernel = tecomp.build(s, tensors, target=TOY)
    a = np.arange(sizes_of(tensors[0])[0], dtype=np.float32)
    b = np.zeros_like(a)
    kernel(a, b)
    np.testing.assert_array_equal(b, a)
    return kernel.report()


@pytest.mark.parametrize(
    ("link", "scopes", "size", "pieces"),
    # 64 floats are one burst of `fill`; `drain` has no burst and uses its memory alignment.
    [("fill", ("dram", "pad"), 640, 10), ("fill", ("dram", "pad"), 600, 10),
     ("drain", ("pad", "dram"), 640, 80), ("down", ("global", "dram"), 640, 40)],
)
def test_a_burst_of_a_custom_machine(
    link: str, scopes: tuple[str, str], size: int, pieces: int
) -> None:
    report = run(*copied(size, link, scopes))

    assert report.tiles == {f"{link}_copy_float32": pieces}
    moved = {item.link: item.bytes for item in report.links}
    assert moved[link] == size * 4


def test_operands_in_other_memories_are_refused() -> None:
    with pytest.raises(LowerError) as error:
        run(*copied(640, "fill", ("pad", "dram")))

    assert diagnostic(error.value) == (
        Diagnostic(
            "tensorize", where="s[A.pad.dram].tensorize(ax0.inner, fill_copy_float32)",
            buffer="a", scope="dram", tensor="A.pad", here="pad",
        )
    )


@pytest.mark.parametrize(
    ("link", "hint"), [("fil", {"suggestion": "fill"}), ("across", {"known": "down, fill, drain"})]
)
def test_links_that_copy_nothing(link: str, hint: dict[str, str]) -> None:
    with pytest.raises(TargetError) as error:
        copy_intrinsic(TOY, link, "float32")

    assert diagnostic(error.value) == Diagnostic("unsupported-by-target", target="toy", link=link, **hint)


def vector(operation: str, dtype: str, *, with_number: bool = False) -> Any:
    """Return the result of an intrinsic on two tiles, and the NumPy result."""
    intrin = vector_intrinsic(TOY, "alu", operation, dtype, with_number=with_number)
    count = len(intrin.inputs)
    ins = [te.placeholder((2, 40), dtype, name=name) for name in "AB"[:count]]
    functions: dict[str, Any] = {
        "add": lambda x, y: x + y, "sub": lambda x, y: x - y, "mul": lambda x, y: x * y,
        "div": lambda x, y: x / y, "max": te.max, "min": te.min, "exp": te.exp,
    }
    exact: dict[str, Any] = {
        "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide,
        "max": np.maximum, "min": np.minimum, "exp": np.exp,
    }
    number = [te.const(3, dtype)] if with_number else []
    C = te.compute(
        (2, 40), lambda i, j: functions[operation](*(x[i, j] for x in ins), *number), name="C")
    s = te.create_schedule(C)
    s[C].tensorize(s[C].split(C.op.axis[1], factor=intrin.tile[0])[1], intrin)
    kernel = tecomp.build(s, [*ins, C], target=TOY)
    rng = np.random.default_rng(2)
    arrays = [rng.integers(1, 9, (2, 40)).astype(dtype) for _ in ins]
    out = np.zeros((2, 40), dtype)
    kernel(*arrays, out)
    expected = exact[operation](*arrays, *([np.asarray(3, dtype)] if with_number else []))
    assert_close(out, expected, rtol=1e-6)
    return kernel.report()


@pytest.mark.exhaustive(keep=8)
@pytest.mark.parametrize(
    ("operation", "dtype", "cycles"),
    # 40 floats are three vectors of 16 lanes, 40 int16 two of 32.
    [("add", "float32", 6), ("sub", "float32", 6), ("mul", "float32", 6), ("max", "float32", 6),
     ("min", "float32", 6), ("div", "float32", 6 * 7), ("exp", "float32", 6 * 5),
     ("add", "int16", 4), ("min", "int16", 4)],
)
def test_vectors_of_a_custom_machine(operation: str, dtype: str, cycles: int) -> None:
    report = vector(operation, dtype)

    lanes = 64 // DType(dtype).bytes
    assert report.tiles == {f"alu_{operation}_{dtype}": 2 * -(-40 // lanes)}
    assert report.operations == {}
    assert report.cores[0].cycles["alu unit"] == cycles


def test_units_compute_the_intrinsics_that_they_list() -> None:
    """A unit may list any intrinsic function of one float, as defined by the rows."""
    names = [row.call for row in elementwise_in("te").values()
             if row.call and row.arity == 1 and row.gives == SAME]
    alu = TOY.engine["alu"]
    assert isinstance(alu, tecomp.VectorUnit)
    unit = replace(alu, cycles={"default": 1.0, **dict.fromkeys(names, 9.0)})
    target = replace(TOY, engine={**TOY.engine, "alu": unit})

    found = [intrin.name for intrin in vector_intrinsics(target)]

    assert {"erfinv", "lgamma", "round"} < set(names)
    assert {f"alu_{name}_float32" for name in names} < set(found)
    assert not {f"alu_{name}_int16" for name in names} & set(found)


@pytest.mark.parametrize("operation", ["add", "mul", "max", "min"])
def test_the_same_number_for_all_lanes(operation: str) -> None:
    report = vector(operation, "float32", with_number=True)

    assert report.tiles == {f"alu_{operation}_number_float32": 6}


@pytest.mark.parametrize(
    ("unit", "operation", "dtype", "with_number", "expected"),
    [
        ("alv", "add", "float32", False,
         Diagnostic("unsupported-by-target", target="toy", unit="alv", units="alu")),
        ("alu", "log", "float32", False,
         Diagnostic(
             "unsupported-by-target", unit="alu", target="toy", operation="log", dtype="float32",
             number="", possible="add, sub, mul, max, min, exp, div",
         )),
        ("alu", "sub", "int16", True,
         Diagnostic(
             "unsupported-by-target", unit="alu", target="toy", operation="sub", dtype="int16",
             number=" and a number", possible="add, mul, max, min",
         )),
        ("alu", "add", "float16", False,
         Diagnostic(
             "unsupported-by-target", unit="alu", target="toy", dtype="float16", types="float32, int16",
         )),
    ],
)
def test_operations_without_a_unit(
    unit: str, operation: str, dtype: str, with_number: bool, expected: Diagnostic
) -> None:
    with pytest.raises(TargetError) as error:
        vector_intrinsic(TOY, unit, operation, dtype, with_number=with_number)

    assert diagnostic(error.value) == expected
