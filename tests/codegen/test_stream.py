"""Non-temporal stores: where they are used, their requirements, and their results."""

from __future__ import annotations

import re

import numpy as np
import pytest

import tecomp
from tecomp import te
from tecomp.codegen import Kernel, emit_assembly
from tecomp.ir import Buffer, PrimFunc, parse
from tecomp.schedules import elementwise, transpose

X86 = "x86_64-unknown-linux-gnu"


def copy(lanes: int, kind: str = "range") -> PrimFunc:
    return parse(f'''def f(X: Buffer("float32", (240,)), O: Buffer("float32", (240,), scope="global.stream")):
    for i in {kind}({240 // lanes}):
        O[ramp({lanes} * i, 1, {lanes})] = X[ramp({lanes} * i, 1, {lanes})]
''')


@pytest.mark.parametrize("lanes", [4, 8, 16, 20])
@pytest.mark.parametrize("offset", [0, 1, 4])
def test_results_are_right_at_any_address(lanes: int, offset: int) -> None:
    x = np.arange(240, dtype=np.float32)
    memory = np.full(280, -1, np.float32)
    start = -memory.ctypes.data // 4 % 16 + offset

    Kernel(copy(lanes, "parallel"))(x, memory[start : start + 240])

    np.testing.assert_array_equal(memory[start : start + 240], x)
    assert (np.delete(memory, range(start, start + 240)) == -1).all()


@pytest.mark.parametrize(
    ("lanes", "cpu", "stores"),
    [(4, "haswell", 1), (8, "haswell", 2), (16, "znver3", 4), (16, "skylake-avx512", 4)],
)
def test_vectors_go_past_the_caches(lanes: int, cpu: str, stores: int) -> None:
    """Stores have 16 bytes, as arrays are seldom aligned to more; the CPU combines the lines."""
    text = emit_assembly(copy(lanes), triple=X86, cpu=cpu)

    assert len(re.findall(r"vmovntps|vmovntdq", text)) == stores
    assert text.count("mfence") + len(re.findall(r"lock\s+orl", text)) == 1


def test_every_thread_waits_for_its_stores() -> None:
    text = emit_assembly(copy(8, "parallel"), triple=X86, cpu="haswell")

    body = text[text.index("f.parallel.1.body:"):]
    assert re.search(r"vmovntps(.|\n)*(mfence|lock\s+orl)", body[: body.index("retq")])


@pytest.mark.parametrize("lanes", [1, 3])
def test_parts_of_vectors_do_not(lanes: int) -> None:
    place = f"ramp({lanes} * i, 1, {lanes})" if lanes > 1 else "i"
    func = parse(f'''def f(X: Buffer("float32", (240,)), O: Buffer("float32", (240,), scope="global.stream")):
    for i in range({240 // lanes}):
        O[{place}] = X[{place}]
''')

    assert not re.search(r"movnt|mfence|lock", emit_assembly(func, triple=X86, cpu="haswell"))


@pytest.mark.parametrize(("rows", "scope"), [(511, "global"), (512, "global.stream")])
def test_results_as_large_as_the_last_cache_go_past_it(rows: int, scope: str) -> None:
    core = tecomp.Core(2, 32, 16, (32 * 1024, 2 * 1024 * 1024))
    target = tecomp.Target("small", "", tecomp.Target.load("cpu").memories, core)
    A = te.placeholder((rows, 1024), name="A")
    double = elementwise.define(lambda x: x + x, A)
    transposed = transpose.define(A)

    s, across = elementwise.schedule(double, target), transpose.schedule(transposed, target)

    assert [buffer.scope for buffer in tecomp.lower(s, [A, double]).params
            if isinstance(buffer, Buffer)] == ["global", scope]
    assert "stream" not in str(tecomp.lower(across, [A, transposed]))
    a = np.ones((rows, 1024), np.float32)
    result = np.zeros_like(a)
    tecomp.build(s, [A, double], target, check_bounds=True)(a, result)
    assert (result == 2).all()


@pytest.mark.parametrize(
    ("shape", "past"),
    [((4096, 4096), True), ((16_000_000,), True), ((2000, 2000, 6), False), ((4100, 4099), True),
     ((2000, 2000, 16), True)],
)
def test_rows_of_parts_of_lines_go_through_the_caches(shape: tuple[int, ...], past: bool) -> None:
    """Short rows that are not whole cache lines would be written to memory in partial lines."""
    x, y = te.placeholder((*shape[:-2], shape[-1]), name="x"), te.placeholder(shape[1:], name="y")
    result = te.compute(
        shape,
        (lambda i, j, k: x[i, k] - y[j, k]) if len(shape) == 3 else lambda *i: x[i[-1]] * 2.0,
        name="result",
    )
    text = str(elementwise.schedule(result, "cpu").trace)
    assert ("global.stream" in text) == past
