"""Loads and stores: strides, masks, vector dtypes, rows, allocations, and checked bounds."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tecomp.codegen import Kernel
from tecomp.errors import CallError, LowerError
from tecomp.ir import DType, parse
from tests.messages import Diagnostic, diagnostic
from tests.strategies.pairwise import pairwise

Both = Callable[..., Kernel]
RANDOM = np.random.default_rng(5)


def some(name: str, *shape: int) -> np.ndarray[Any, Any]:
    return (RANDOM.standard_normal(shape) * 9).astype(DType(name).numpy)


STRIDES = (1, -1, 2, -2, 3, -3, 4, 5, 0)


def copy_vectors(name: str, lanes: int, stride: int, target: str) -> str:
    """Return a copy with a stride, and a copy masked to the lanes before the fifth element."""
    first = max(-stride, 0) * (lanes - 1)
    where = f"ramp(i, 1, {lanes}) < broadcast(5, {lanes})"
    source, place = (f"ramp(i + {first}, {step}, {lanes})" for step in (stride, stride or 1))
    return f'''
        {target}[{place}] = A[{source}]
        store({target}_masked[{place}], A.load({source}, where={where}), where={where})'''


@pytest.mark.exhaustive(keep=2)
@pairwise(
    name=["float32", "float64", "float16", "bfloat16", "int8", "bool"],
    lanes=[2, 3, 4, 7, 8, 16, 31], check_bounds=[False, True],
)
def test_vector_access(both: Both, name: str, lanes: int, check_bounds: bool) -> None:
    targets = [f"O{k}{kind}" for k in range(len(STRIDES)) for kind in ("", "_masked")]
    buffers = ", ".join(f'{target}: Buffer("{name}", (200,))' for target in ("A", *targets))
    text = f"def f({buffers}):\n    for i in range(4):" + "".join(
        copy_vectors(name, lanes, stride, f"O{k}") for k, stride in enumerate(STRIDES)
    )
    arrays = [some(name, 200) for _ in range(1 + len(targets))]
    both(text, *arrays, check_bounds=check_bounds)


@pytest.mark.parametrize("index", [
    "ramp(i, 1, 8) + broadcast(i, 8)",
    "broadcast(i + 3, 8) + ramp(0, 1, 8)",
    "broadcast(40, 8) - ramp(i, 2, 8)",
    "ramp(1, 2, 8) * broadcast(2, 8)",
    "broadcast(2, 8) * ramp(i, 1, 8) - ramp(0, 1, 8)",
    "broadcast(i, 8) * broadcast(2, 8)",
    "cast(\"int64x8\", broadcast(cast(\"int32\", i), 8)) + ramp(0, 1, 8)",
    "ramp(i, 1, 8) // broadcast(2, 8)",
    "cast(\"int64x8\", cast(\"int32x8\", ramp(i, 1, 8)))",
    "ramp(i, i, 8)",
])
def test_indices_in_any_form(both: Both, index: str) -> None:
    text = f'''def f(A: Buffer("float32", (64,)), O: Buffer("float32", (64,))):
    for i in range(4):
        O[ramp(8 * i, 1, 8)] = A[{index}]
'''
    both(text, some("float32", 64), some("float32", 64))


@pytest.mark.exhaustive(keep=5)
@pytest.mark.parametrize("index", ["i", "ramp(i, 1, 4)", "ramp(i + 3, -1, 4)", "ramp(i, 2, 4)"])
@pytest.mark.parametrize("name", ["float32x4", "float32x3", "int8x5", "boolx2", "bfloat16x8"])
def test_vector_types(both: Both, name: str, index: str) -> None:
    lanes = DType(name).lanes
    text = f'''def f(A: Buffer("{name}", (16,)), O: Buffer("{name}", (16,))):
    for i in range(3):
        O[{index}] = A[{index}]
'''
    both(text, some(name, 16, lanes), some(name, 16, lanes))
    masked = 1 if index == "i" else 4
    mask = "i < 2" if masked == 1 else "ramp(i, 1, 4) < broadcast(3, 4)"
    text = text.replace(f"O[{index}] = A[{index}]",
                        f"store(O[{index}], A.load({index}, where={mask}), where={mask})")
    both(text, some(name, 16, lanes), some(name, 16, lanes))
    both(text, some(name, 16, lanes), some(name, 16, lanes), check_bounds=True)


@pytest.mark.parametrize("check_bounds", [False, True])
def test_mask_for_each_lane_of_a_vector_type(both: Both, check_bounds: bool) -> None:
    text = '''def f(A: Buffer("float32x2", (16,)), O: Buffer("float32x2", (16,))):
    store(O[ramp(0, 1, 4)], A.load(ramp(3, 2, 4), where=ramp(0, 1, 8) < broadcast(5, 8)), \
where=ramp(0, 1, 8) != broadcast(2, 8))
    store(O[9], A[7], where=ramp(0, 1, 2) == broadcast(1, 2))
'''
    both(text, some("float32", 16, 2), some("float32", 16, 2), check_bounds=check_bounds)


def test_gather_and_scatter(both: Both) -> None:
    text = '''def f(I: Buffer("int32", (14,)), A: Buffer("float32", (9,)), \
O: Buffer("float32", (14,)), P: Buffer("float32", (9,))):
    for i in range(2):
        O[ramp(7 * i, 1, 7)] = A[cast("int64x7", I[ramp(7 * i, 1, 7)])]
        P[cast("int64x7", I[ramp(7 * i, 1, 7)])] = A[ramp(0, 1, 7)]
'''
    places = RANDOM.integers(0, 9, 14).astype(np.int32)
    both(text, places, some("float32", 9), some("float32", 14), some("float32", 9))


@pytest.mark.parametrize("check_bounds", [False, True])
def test_predicate_guards_a_scalar(both: Both, check_bounds: bool) -> None:
    text = '''def f(A: Buffer("float32", (5,)), O: Buffer("float32", (9,))):
    for i in range(9):
        store(O[i], A.load(i - 2, where=i >= 2 and i < 7) + float32(1.0), where=i != 4)
'''
    both(text, some("float32", 5), some("float32", 9), check_bounds=check_bounds)


ROWS = '''def f(A: Buffer("{name}", (3, 4, 10), axis_separators=(0, 1)), \
O: Buffer("{name}", (10, 12), axis_separators=(0,), scope="global.texture")):
    for i in range(3):
        for j in range(4):
            for k in range(10):
                O[k, 4 * i + j] = A[i, j, k]
    for i in range(10):
        O[i, ramp(0, 1, 4)] = O[i, ramp(7, -1, 4)]
'''


@pytest.mark.parametrize("name", ["float32", "bool", "float64", "bfloat16"])
@pytest.mark.parametrize("check_bounds", [False, True])
def test_several_physical_axes(both: Both, name: str, check_bounds: bool) -> None:
    text = ROWS.format(name=name)
    both(text, some(name, 3, 4, 10), some(name, 10, 12), check_bounds=check_bounds)


@pytest.mark.parametrize("n", [0, 1, 3, 100])
@pytest.mark.parametrize("m", [0, 1, 7])
def test_allocations_of_any_kind(both: Both, n: int, m: int) -> None:
    text = '''def f(A: Buffer("float32", (n, m), axis_separators=(0,)), \
O: Buffer("float32", (n, m), axis_separators=(0,)), *, n: "int64", m: "int64"):
    with Allocate(Buffer("float32", (n, m), axis_separators=(0,))) as rows:
        with Allocate(Buffer("float32", (n * m,))) as flat:
            with Allocate(Buffer("float32", (8192,))) as large:
                with Allocate(Buffer("float32x3", (2,))) as small:
                    small[1] = broadcast(float32(2.0), 3)
                    large[8191] = float32(1.0)
                    for i in range(n):
                        for j in range(m):
                            rows[i, j] = A[i, j] * float32(2.0)
                            flat[i * m + j] = rows[i, j] + large[8191]
                    for i in range(n):
                        for j in range(m):
                            O[i, j] = rows[i, j] + flat[i * m + j]
'''
    both(text, some("float32", n, m), some("float32", n, m))
    both(text, some("float32", n, m), some("float32", n, m), check_bounds=True)


def test_constant_rows(both: Both) -> None:
    text = '''def f(O: Buffer("float32", (4,))):
    for k in range(3):
        with Allocate(Buffer("float32x4", (2, 3), axis_separators=(0,))) as T:
            T[1, 2] = broadcast(float32(2.0), 4)
            O[ramp(0, 1, 4)] = T[1, 2] * broadcast(cast("float32", k), 4)
'''
    both(text, some("float32", 4))


def test_axisless_buffers_and_views(both: Both) -> None:
    text = '''def f(A: Buffer("float32", ()), O: Buffer("float32", (8,))):
    with Allocate(Buffer("float32", ())) as t:
        t[()] = A[()] + float32(1.0)
        with DeclBuffer(Buffer("float32x4", (2,), data=O.data)) as V:
            V[1] = broadcast(t[()], 4)
'''
    both(text, np.array(3.5, np.float32), some("float32", 8))


def test_memory_that_cannot_be_had_is_an_error() -> None:
    text = '''def f(O: Buffer("float32", (4,)), n: "int64"):
    with Allocate(Buffer("float32", (n,))) as T:
        T[0] = float32(1.0)
        O[0] = T[0]
'''
    out = np.zeros(4, np.float32)

    with pytest.raises(CallError) as error:
        Kernel(parse(text))(out, 2**58)

    assert diagnostic(error.value) == (
        Diagnostic("out-of-memory", name="f", text="T", size="1152921504606846976 bytes")
    )
    assert not out.any()


@pytest.mark.parametrize(
    ("shape", "n"),
    [
        ("n * n * n,", 2**21),  # 2**63 elements, whose size in bytes is 0 in 64-bit words
        ("n * (n + 1) // 2 * n,", 2642246),
        ("max(n, 5) * min(n * n, n * n * n),", 2**21),
        ("select(n > 3, n * n * n, n),", 2**21),
        ("4611686018427387904,", 1),
        ("n * n, n * n", 2**16),
        ("n * n, 4611686018427387904", 4),
        ("4611686018427387904, 8", 4),
    ],
)
def test_products_of_sizes_do_not_wrap(shape: str, n: int) -> None:
    separators = ", axis_separators=(0,)" if not shape.endswith(",") else ""
    index = "0, 0" if separators else "0"
    text = f'''def f(O: Buffer("float32", (4,)), n: "int64"):
    with Allocate(Buffer("float32", ({shape}){separators})) as T:
        T[{index}] = float32(1.0)
        O[0] = T[{index}]
'''
    out = np.zeros(4, np.float32)

    with pytest.raises(CallError) as error:
        Kernel(parse(text))(out, n)

    assert diagnostic(error.value) == (
        Diagnostic("out-of-memory", name="f", text="T", size="9223372036854775807 bytes or more")
    )
    assert not out.any()


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("O[i + 2] = A[i]", Diagnostic("out-of-bounds", value=4, text="axis 0 of O[4]")),
        ("O[i] = A[i - 1]", Diagnostic("out-of-bounds", value=-1, text="axis 0 of A[4]")),
        ("O[ramp(i, 1, 4)] = A[ramp(0, 1, 4)]", Diagnostic(
            "out-of-bounds", value=4, text="axis 0 of O[4]",
        )),
        ("T[i, 1] = A[0]", Diagnostic("out-of-bounds", value=2, text="axis 0 of T[2, 3]")),
        ("T[0, 2 * i + 1] = A[0]", Diagnostic("out-of-bounds", value=3, text="axis 1 of T[2, 3]")),
        (
            "store(O[ramp(i, 1, 4)], A[ramp(0, 1, 4)], where=ramp(0, 1, 4) != broadcast(3, 4))",
            Diagnostic("out-of-bounds", value=4, text="axis 0 of O[4]"),
        ),
    ],
)
def test_checked_bounds(statement: str, expected: Diagnostic) -> None:
    func = parse(f'''def f(A: Buffer("float32", (4,)), O: Buffer("float32", (4,)), \
T: Buffer("float32", (2, 3), axis_separators=(0,))):
    for i in range(4):
        {statement}
''')
    kernel = Kernel(func, check_bounds=True)

    with pytest.raises(CallError) as error:
        kernel(some("float32", 4), some("float32", 4), some("float32", 2, 3))

    assert diagnostic(error.value) == expected


FLATTEN = "; run tecomp.apply_buffer_transforms and tecomp.flatten_buffer on the function first"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("""def f(A: Buffer("float32", (4, 4))):
    A[1, 2] = float32(0.0)
""", Diagnostic(
    "lower", func="f", buffer="A", problem="has 2 axes, and axis_separators () for 1",
    lower_it="run tecomp.apply_buffer_transforms and tecomp.flatten_buffer on the function first",
)),
        ("""def f(A: Buffer("float32", (4, 4, 4), axis_separators=(0,))):
    with Allocate(Buffer("float32", (4,))) as T:
        T[0] = float32(0.0)
""", Diagnostic(
    "lower", func="f", buffer="A", problem="has 3 axes, and axis_separators (0,) for 2",
    lower_it="run tecomp.apply_buffer_transforms and tecomp.flatten_buffer on the function first",
)),
        ("""def f(A: Buffer("float32", (4,))):
    with Allocate(Buffer("float32", (4, 4))) as T:
        T[0, 0] = float32(0.0)
""", Diagnostic(
    "lower", func="f", buffer="T", problem="has 2 axes, and axis_separators () for 1",
    lower_it="run tecomp.apply_buffer_transforms and tecomp.flatten_buffer on the function first",
)),
        ("""def f(A: Buffer("float32", (4,), strides=(2,))):
    A[0] = float32(0.0)
""", Diagnostic(
    "lower", func="f", buffer="A", problem="has strides that are not in its indices",
    lower_it="run tecomp.apply_buffer_transforms and tecomp.flatten_buffer on the function first",
)),
        ("""@layout_transform_map(A=[lambda i: [3 - i]])
def f(A: Buffer("float32", (4,))):
    A[0] = float32(0.0)
""", Diagnostic(
    "lower", func="f", data="A", subject="layout maps",
    lower_it="run tecomp.apply_buffer_transforms and tecomp.flatten_buffer on the function first",
)),
        ("""@pad_value(A=lambda i: float32(0.0))
def f(A: Buffer("float32", (4,))):
    A[0] = float32(0.0)
""", Diagnostic(
    "lower", func="f", data="A", subject="a pad value",
    lower_it="run tecomp.apply_buffer_transforms and tecomp.flatten_buffer on the function first",
)),
        ("""def f(A: Buffer("float32", (4,))):
    with BufferRealize(Buffer("float32", (4,)), bounds=((0, 4),)) as T:
        T[0] = float32(0.0)
""", Diagnostic("lower", func="f", buffer="T")),
        ("""def f(A: Buffer("float32", (4, 8), axis_separators=(0,))):
    with DeclBuffer(Buffer("float32", (32,), data=A.data)) as V:
        V[0] = float32(0.0)
""", Diagnostic("lower", func="f", problem="`V` is 1-d after flattening, and its memory `A` is 2-d")),
        ("""def f(A: Buffer("float32", (4,))):
    with DeclBuffer(Buffer("float32x4", (2,), data=A.data)) as V:
        V[1] = broadcast(float32(0.0), 4)
""", Diagnostic("lower", func="f", problem="`V` takes 32 bytes, and its memory `A` takes 16")),
    ],
)
def test_functions_that_are_not_flat_are_refused(text: str, expected: Diagnostic) -> None:
    """The functions are written by hand, so the error is not an internal one."""
    with pytest.raises(LowerError) as error:
        Kernel(parse(text))

    assert diagnostic(error.value) == expected


@pytest.mark.parametrize("name", ["float32", "bfloat16", "bool", "int64"])
@pytest.mark.parametrize("start", [0, 3])
def test_masked_access_to_registers(both: Both, name: str, start: int) -> None:
    """A stack buffer stays in registers although the last lanes are masked."""
    kernel = both(f'''def f(A: Buffer("{name}", (64,)), B: Buffer("{name}", (64,))):
    with Allocate(Buffer("{name}", (24,))) as own:
        for i in range(3):
            own[ramp(i * 8, 1, 8)] = A[ramp(i * 8, 1, 8)]
    with Allocate(Buffer("{name}", (16,))) as held:
        held[ramp(0, 1, 16)] = A[ramp(40, 1, 16)]
        for i in range(5):
            with Let(ramp(i, 1, 8) < broadcast(6, 8)) as mask:
                store(held[ramp({start}, 1, 8)], A[ramp(i * 8, 1, 8)], where=mask)
                B[ramp(i * 8, 1, 8)] = held.load(ramp({start}, 1, 8), where=mask)
        B[ramp(40, 1, 16)] = held[ramp(0, 1, 16)]
''', some(name, 64), some(name, 64))

    assert "masked" not in kernel.source("llvm")


def test_masked_access_beyond_the_end_of_registers(both: Both) -> None:
    """The active lanes are in bounds; memory of the other lanes must not be accessed."""
    kernel = both('''def f(A: Buffer("float32", (8,))):
    with Allocate(Buffer("float32", (16,))) as held:
        with Let(ramp(0, 1, 8) < broadcast(6, 8)) as mask:
            held[ramp(0, 1, 16)] = broadcast(float32(1.0), 16)
            store(held[ramp(10, 1, 8)], A[ramp(0, 1, 8)], where=mask)
            A[ramp(0, 1, 8)] = held.load(ramp(10, 1, 8), where=mask)
''', some("float32", 8))

    # Other stores are masked or partial: only `A` is written by a whole vector.
    assert kernel.source("llvm").count("store <8 x float>") == 1


@pytest.mark.parametrize(("name", "first"), [("float32", 0), ("int8", 0), ("float32", 9)])
def test_elements_apart_by_numbers_share_a_sum(both: Both, name: str, first: int) -> None:
    """LLVM takes quadratic time in the number of elements to find the common base."""
    places = " + ".join(f"A[j * 40 + i * 3 {k - first:+d}]" for k in range(24))
    kernel = both(f'''def f(A: Buffer("{name}", (400,)), B: Buffer("{name}", (64,))):
    for j in range(8):
        for i in range(5):
            if j * 40 + i * 3 - {first} >= 0:
                B[j * 8 + i] = {places}
''', some(name, 400), some(name, 64))

    lines = kernel.compiled.llvm_ir.splitlines()
    inside = lines[next(k for k, line in enumerate(lines) if line.startswith("then")):]
    assert sum(" add i64 " in line for line in inside) < 8


def test_masked_reads_of_no_lane_stay_where_memory_is(both: Both) -> None:
    """CPUs are a hundred times slower on an empty masked load from unmapped memory."""
    kernel = both('''def f(A: Buffer("float32", (8,)), B: Buffer("float32", (512,))):
    for i in range(32):
        with Let(ramp(i * 16, 1, 16) < broadcast(8, 16)) as mask:
            B[ramp(i * 16, 1, 16)] = A.load(ramp(i * 16, 1, 16), where=mask)
''', some("float32", 8), some("float32", 512))

    text = kernel.compiled.llvm_ir
    (place,) = re.findall(r"call <16 x float> @llvm\.masked\.load\S*\(ptr align 4 (%\S+),", text)
    assert re.search(rf"{re.escape(place)} = select i1 %\S+, ptr %\S+, ptr %", text)
