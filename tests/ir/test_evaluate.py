"""The interpreter agrees with NumPy and rejects programs with undefined behaviour."""

from __future__ import annotations

import math
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray

from tecomp.errors import CallError, InternalError
from tecomp.ir import (
    Binary,
    BinOp,
    Buffer,
    BufferStore,
    Const,
    Expr,
    PrimFunc,
    Var,
    evaluate,
    parse,
    verify,
)
from tests.messages import Diagnostic, diagnostic
from tests.numerics import assert_close, assert_product

Array = NDArray[Any]


def run(text: str, *args: Any) -> None:
    func = parse(text)
    verify(func)
    evaluate(func, args)


def floats(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


MATMUL = """
def matmul(A: Buffer("float32", (n, m)), B: Buffer("float32", (m, 8)), \
C: Buffer("float32", (n, 8)), *, n: "int64", m: "int64"):
    for i in parallel(n):
        for j in vectorized(8):
            C[i, j] = float32(0.0)
            for k in range(m):
                C[i, j] = C[i, j] + A[i, k] * B[k, j]
"""


@pytest.mark.parametrize(("n", "m"), [(5, 3), (1, 1), (4, 0), (0, 4)])
def test_matmul_of_sizes_bound_from_the_arrays(n: int, m: int) -> None:
    a, b, c = floats(n, m), floats(m, 8, seed=1), floats(n, 8)

    run(MATMUL, a, b, c)

    assert_product(c, a, b)


def test_the_same_with_vectors() -> None:
    a, b, c = floats(5, 3), floats(3, 8, seed=1), floats(5, 8)

    run("""
def matmul(A: Buffer("float32", (5, 3)), B: Buffer("float32", (3, 8)), \
C: Buffer("float32", (5, 8))):
    for i in range(5):
        with Allocate(Buffer("float32x8", ())) as sum:
            sum[()] = broadcast(float32(0.0), 8)
            for k in range(3):
                sum[()] = sum[()] + broadcast(A[i, k], 8) * B[k, ramp(0, 1, 8)]
            C[i, ramp(0, 1, 8)] = sum[()]
""", a, b, c)

    assert_product(c, a, b)


def test_masked_tail() -> None:
    a, b = floats(11), np.full(11, 7, np.float32)

    run("""
def copy(A: Buffer("float32", (n,)), B: Buffer("float32", (n,)), *, n: "int64"):
    for io in range((n + 3) // 4):
        with Let(ramp(io * 4, 1, 4)) as at:
            with Let(at < broadcast(n, 4)) as inside:
                store(B[at], A.load(at, where=inside), where=inside)
""", a, b)

    np.testing.assert_array_equal(a, b)


def test_a_masked_read_gives_zero_and_reads_nothing() -> None:
    a, b = floats(2), np.full(4, 7, np.float32)

    run("""
def f(A: Buffer("float32", (2,)), B: Buffer("float32", (4,))):
    with Let(ramp(0, 1, 4) % broadcast(3, 4) != broadcast(0, 4)) as inside:
        B[ramp(0, 1, 4)] = A.load(ramp(-1, 1, 4), where=inside)
""", a, b)

    np.testing.assert_array_equal(b, [0, a[0], a[1], 0])


def test_masked_scalars() -> None:
    a, b = floats(2), np.full(3, 7, np.float32)

    run("""
def f(A: Buffer("float32", (2,)), B: Buffer("float32", (3,))):
    for i in range(-1, extent=5):
        store(B[i], A.load(i, where=i >= 0 and i < 2), where=i >= 0 and i < 3)
""", a, b)

    np.testing.assert_array_equal(b, [a[0], a[1], 0])


def test_gather_and_scatter() -> None:
    a, at, b = floats(6), np.array([5, 0, 3], np.int32), np.zeros(6, np.float32)

    run("""
def f(A: Buffer("float32", (6,)), at: Buffer("int32", (3,)), B: Buffer("float32", (6,))):
    with Let(A[at[ramp(0, 1, 3)]]) as x:
        B[at[ramp(0, 1, 3)]] = x + x
""", a, at, b)

    expected = np.zeros(6, np.float32)
    expected[at] = a[at] * 2
    np.testing.assert_array_equal(b, expected)


def test_vector_typed_buffers() -> None:
    a, b = floats(3, 4), np.zeros((3, 4), np.float32)

    run("""
def f(A: Buffer("float32x4", (3,)), B: Buffer("float32x4", (3,))):
    B[0] = A[2]
    B[ramp(1, 1, 2)] = A[ramp(1, -1, 2)]
""", a, b)

    np.testing.assert_array_equal(b, a[[2, 1, 0]])


def test_masked_vector_typed_buffers() -> None:
    a, b = floats(3, 2), np.zeros((3, 2), np.float32)

    run("""
def f(A: Buffer("float32x2", (3,)), B: Buffer("float32x2", (3,)), p: "bool"):
    store(B[0], A[0], where=ramp(0, 1, 2) < broadcast(1, 2))
    store(B[1], A[1], where=p)
    store(B[ramp(1, 1, 2)], A.load(ramp(1, 1, 2), where=ramp(0, 1, 2) > broadcast(0, 2)), \
where=ramp(0, 1, 4) > broadcast(2, 4))
""", a, b, False)

    np.testing.assert_array_equal(b, [[a[0, 0], 0], [0, 0], [0, a[2, 1]]])


@pytest.mark.parametrize("each", [1, 2, 4])
def test_lanes_are_evaluated_in_order(each: int) -> None:
    """If several active lanes store to one address, the value of the last lane remains."""
    kind = "float32" if each == 1 else f"float32x{each}"
    random, lanes = np.random.default_rng(each), 6
    for _ in range(20):
        at, mask = random.integers(0, 4, lanes), random.integers(0, 2, lanes * each)
        a, before = floats(3, 4, each, seed=1), floats(3, 4, each, seed=2)
        out, selected = before.copy(), np.zeros((lanes, each), np.float32)
        shaped = [x if each > 1 else x[..., 0] for x in (a, out)]
        run(f"""
def moved(A: Buffer("{kind}", (3, 4)), B: Buffer("{kind}", (3, 4)), \
C: Buffer("float32", ({lanes * each},)), at: Buffer("int64", ({lanes},)), \
mask: Buffer("int64", ({lanes * each},))):
    with Let(at[ramp(0, 1, {lanes})]) as places:
        with Let(mask[ramp(0, 1, {lanes * each})] != broadcast(0, {lanes * each})) as p:
            C[ramp(0, 1, {lanes * each})] = A.load(1, places, where=p)
            store(B[2, places], A[1, places], where=p)
""", shaped[0], shaped[1], selected.reshape(-1), at, mask)

        expected, read = before.copy(), np.zeros((lanes, each), np.float32)
        for lane, part in np.ndindex(lanes, each):
            if mask[lane * each + part]:
                read[lane, part] = a[1, at[lane], part]
                expected[2, at[lane], part] = a[1, at[lane], part]
        np.testing.assert_array_equal(selected, read)
        np.testing.assert_array_equal(out, expected)


def test_a_ramp_wraps_around() -> None:
    for kind, base, step in (("int8", 100, 50), ("uint64", 2**64 - 2, 3), ("int64", 2**62, 2**61)):
        found = np.zeros(4, kind)
        run(f"""
def ramps(A: Buffer("{kind}", (2,)), B: Buffer("{kind}", (4,))):
    B[ramp(0, 1, 4)] = ramp(A[0], A[1], 4)
""", np.array([base, step], kind), found)

        wrapped = [(base + k * step) % 2 ** (8 * found.itemsize) for k in range(4)]
        assert found.tolist() == np.array(wrapped, np.uint64).astype(kind).tolist()


def test_views_of_one_memory() -> None:
    a = floats(8)
    bits, strided = np.zeros(8, np.int32), np.zeros((2, 4), np.float32)
    before = a.copy()

    run("""
def f(A: Buffer("float32", (8,)), bits: Buffer("int32", (8,)), S: Buffer("float32", (2, 4))):
    with DeclBuffer(Buffer("int32", (8,), data=A.data)) as AsInt:
        for i in range(8):
            bits[i] = AsInt[i]
    with DeclBuffer(Buffer("float32", (4, 2), strides=(1, 4), data=A.data)) as T:
        for i in range(4):
            for j in range(2):
                S[j, i] = T[i, j]
    with DeclBuffer(Buffer("float32x4", (2,), data=A.data)) as V:
        V[1] = V[0]
""", a, bits, strided)

    np.testing.assert_array_equal(bits, before.view(np.int32))
    np.testing.assert_array_equal(strided, before.reshape(2, 4))
    np.testing.assert_array_equal(a, np.tile(before[:4], 2))


def test_strides_of_parameters_and_allocations() -> None:
    a, b = floats(6, 4)[::2], np.zeros((3, 4), np.float32)

    run("""
def f(A: Buffer("float32", (3, 4), strides=(8, 1)), B: Buffer("float32", (3, 4))):
    with Allocate(Buffer("float32", (3, 4), strides=(1, 5))) as T:
        for i in range(3):
            for j in range(4):
                T[i, j] = A[i, j]
        with DeclBuffer(Buffer("float32", (3, 4), strides=(1, 5), data=T.data)) as U:
            for i in range(3):
                for j in range(4):
                    B[i, j] = U[i, j]
    with DeclBuffer(Buffer("float32", (20,), data=A.data)) as flat:
        B[0, 0] = flat[8]
""", a, b)

    expected = a.copy()
    expected[0, 0] = a[1, 0]
    np.testing.assert_array_equal(b, expected)


def test_a_region_is_indexed_as_the_whole() -> None:
    a, b = floats(10), np.zeros(10, np.float32)

    run("""
def blur(A: Buffer("float32", (10,)), B: Buffer("float32", (10,))):
    for i in range(8):
        with BufferRealize(Buffer("float32", (10,)), bounds=((i, 3),)) as T:
            for k in range(i, extent=3):
                T[k] = A[k] * float32(2.0)
            B[i] = T[i] + T[i + 2]
""", a, b)

    assert_close(b[:8], 2 * a[:8] + 2 * a[2:], rtol=1e-6)


def test_unwritten_memory_shows() -> None:
    names = ["float16", "bfloat16", "float32", "float64", "int8", "int64", "uint8"]
    outputs = [np.zeros(1, ml_dtypes.bfloat16 if n == "bfloat16" else n) for n in names]
    for name, out in zip(names, outputs, strict=True):
        buffer = f'Buffer("{name}", (1,))'
        for place in (f"Allocate({buffer})", f"BufferRealize({buffer}, bounds=((0, 1),))"):
            run(f"""
def f(out: {buffer}):
    with {place} as t:
        out[0] = t[0]
""", out)

    assert all(np.isnan(out[0]) for out in outputs[:4])
    assert [int(out[0]) for out in outputs[4:]] == [-0x5B, -0x5A5A5A5A5A5A5A5B, 0xA5]


def test_a_parallel_loop_runs_backwards() -> None:
    a = np.arange(4, dtype=np.float32)

    run("""
def scan(A: Buffer("float32", (4,))):
    for i in parallel(1, extent=3):
        A[i] = A[i] + A[i - 1]
""", a)

    np.testing.assert_array_equal(a, [0, 1, 3, 5])


def test_conditions_guard_reads() -> None:
    a, b = floats(3), np.zeros(5, np.float32)

    run("""
def pad(A: Buffer("float32", (3,)), B: Buffer("float32", (5,))):
    for i in range(5):
        if i == 4:
            B[i] = float32(9.0)
        else:
            B[i] = if_then_else(i >= 1 and i < 4, A[i - 1], float32(0.0))
""", a, b)

    np.testing.assert_array_equal(b, [0, *a, 9])


REMEDY = "; correct the index in the function, or pass a larger array"


def test_a_select_guards_nothing() -> None:
    with pytest.raises(CallError) as error:
        run("""
def f(A: Buffer("float32", (3,)), n: "int64"):
    A[0] = select(n < 3, A[n], float32(0.0))
""", floats(3), 3)

    assert diagnostic(error.value) == Diagnostic(
        "out-of-bounds", name="A", index="3", shape=(3,), start="",
    )


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("A[0, n] = A[0, 0]", Diagnostic(
            "out-of-bounds", name="A", index="0, -1", shape=(2, 3), start="",
        )),
        ("A[0, 0] = A[n + 3, 0]", Diagnostic(
            "out-of-bounds", name="A", index="2, 0", shape=(2, 3), start="",
        )),
        ("A[0, ramp(1, 1, 4)] = broadcast(float32(0.0), 4)",
         Diagnostic("out-of-bounds", name="A", index="0, 3", shape=(2, 3), start="")),
        ("A[0, ramp(0, 1, 2)] = A[1, ramp(-1, 1, 2)]",
         Diagnostic("out-of-bounds", name="A", index="1, -1", shape=(2, 3), start="")),
    ],
)
def test_an_access_outside_of_a_buffer_is_an_error(body: str, expected: Diagnostic) -> None:
    with pytest.raises(CallError) as error:
        run(f'def f(A: Buffer("float32", (2, 3)), n: "int64"):\n    {body}', floats(2, 3), -1)

    assert diagnostic(error.value) == expected


def test_an_access_outside_of_a_region_is_an_error() -> None:
    with pytest.raises(CallError) as error:
        run("""
def f(n: "int64"):
    with BufferRealize(Buffer("int32", (10, 4)), bounds=((n, 3), (0, 4))) as T:
        T[4, 0] = T[n + 3, 1]
""", 4)

    assert diagnostic(error.value) == Diagnostic(
        "out-of-bounds", name="T", index="7, 1", shape=(3, 4), start=" starting at (4, 0)",
    )


def test_a_view_of_a_negative_extent_is_an_error() -> None:
    with pytest.raises(CallError) as error:
        run("""
def f(A: Buffer("float32", (3,)), n: "int64"):
    with DeclBuffer(Buffer("float32", (n - 5,), data=A.data)) as B:
        pass
""", floats(3), 3)

    assert diagnostic(error.value) == Diagnostic("out-of-bounds", name="B", shape=(-2,))


def test_a_view_larger_than_its_memory_is_an_error() -> None:
    with pytest.raises(CallError) as error:
        run("""
def f(A: Buffer("float32", (3,)), n: "int64"):
    with DeclBuffer(Buffer("int8", (n,), data=A.data)) as B:
        pass
""", floats(3), 13)

    assert diagnostic(error.value) == Diagnostic(
        "out-of-bounds", name="B", shape=(13,), needed=13, size=12,
    )


CHECKED = """
@sites("f.py:3: A[at[i]] (axis 0 of A[4])")
def gather(A: Buffer("float32", (4,)), at: Buffer("int64", (4,)), B: Buffer("float32", (4,)), \
n: "int64"):
"""
SCALAR = CHECKED + """\
    for i in range(4):
        B[i] = A.load(at[i], where=i < n and check_index(at[i], 4, 0))
"""
VECTOR = CHECKED + """\
    with Let(ramp(0, 1, 4)) as i:
        B[i] = A.load(at[i], where=i < broadcast(n, 4) and check_index(at[i], broadcast(4, 4), \
broadcast(0, 4)))
"""


@pytest.mark.parametrize("text", [SCALAR, VECTOR])
def test_guarded_run_time_checks(text: str) -> None:
    a, at, b = floats(4), np.array([3, 0, 4, -1]), np.full(4, 7, np.float32)

    run(text, a, at, b, 2)

    np.testing.assert_array_equal(b, [a[3], a[0], 0, 0])


@pytest.mark.parametrize("text", [SCALAR, VECTOR])
@pytest.mark.parametrize("bad", [4, -1, 2**40])
def test_a_failed_run_time_check_names_index_and_site(text: str, bad: int) -> None:
    with pytest.raises(CallError) as error:
        run(text, floats(4), np.array([3, 0, bad, 1]), floats(4), 3)

    assert diagnostic(error.value) == (
        Diagnostic("out-of-bounds", index=bad, site="f.py:3: A[at[i]] (axis 0 of A[4])")
    )


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        ((floats(4),), Diagnostic("argument-count", func="f", param_count=3, arg_count=1)),
        ((floats(4).tolist(), floats(16), 1), Diagnostic(
            "argument-mismatch", func="f", buffer="A", dtype="float32", value="list",
        )),
        ((floats(4).astype(float), floats(16), 1), Diagnostic(
            "argument-mismatch", func="f", buffer="A", dtype="float32", value="float64 array",
        )),
        ((floats(4, 1), floats(16), 1),
         Diagnostic("argument-mismatch", func="f", buffer="A", dtype="float32", rank=1, shape=(4, 1))),
        ((floats(4), floats(15), 1), Diagnostic(
            "argument-mismatch", func="f", name="B", shape=(16,), array_shape=(15,),
        )),
    ],
)
def test_arguments_that_do_not_fit(args: tuple[Any, ...], expected: Diagnostic) -> None:
    with pytest.raises(CallError) as error:
        run('def f(A: Buffer("float32", (n,)), B: Buffer("float32", (n * 4,)), m: "int32", *, '
            'n: "int64"):\n    pass', *args)

    assert diagnostic(error.value) == expected


def test_strides_and_sizes_that_do_not_fit() -> None:
    with pytest.raises(CallError) as strided:
        run('def f(A: Buffer("float32", (3, 4), strides=(8, 1))):\n    pass', floats(3, 4))
    with pytest.raises(CallError) as unbound:
        run('def f(A: Buffer("float32", (n * 2,)), *, n: "int64"):\n    pass', floats(4))

    with pytest.raises(CallError) as transposed:
        run('def f(A: Buffer("float32", (3, 4))):\n    pass', floats(4, 3).T)
    with pytest.raises(CallError) as lanes:
        run('def f(A: Buffer("float32x2", (3,))):\n    pass', floats(2, 3).T)

    assert diagnostic(strided.value) == Diagnostic(
        "argument-mismatch", func="f", name="A", expected=(8, 1), found=(4, 1),
    )
    assert diagnostic(transposed.value) == Diagnostic(
        "argument-mismatch", func="f", name="A", expected=(4, 1), found=(1, 3),
    )
    assert diagnostic(lanes.value) == Diagnostic(
        "argument-mismatch", func="f", name="A", expected=(2, 1), found=(1, 3),
    )
    assert diagnostic(unbound.value) == Diagnostic("unbound-size", func="f", size="n")


def test_scalar_arguments_take_their_type() -> None:
    out = np.zeros(3, np.float64)

    run("""
def f(out: Buffer("float64", (3,)), i: "int8", x: "float16", p: "bool"):
    out[0] = cast("float64", i)
    out[1] = cast("float64", x)
    out[2] = cast("float64", p)
""", out, 300, 0.1, 2)

    np.testing.assert_array_equal(out, [44, float(np.float16(0.1)), 1])


def test_deep_and_shared_expressions_neither_recurse_nor_repeat() -> None:
    n = Var("n")
    deep: Expr = n
    for _ in range(20_000):
        deep = Binary(BinOp.ADD, deep, n)
    for _ in range(60):
        deep = Binary(BinOp.ADD, deep, deep)
    out = Buffer("out", (1,), n.dtype)
    result = np.zeros(1, np.int64)

    evaluate(PrimFunc("f", (n, out), BufferStore(out, deep, (Const(0),))), [1, result])

    assert int(result[0]) == (20_001 << 60) % 2**64 - (2**64 if (20_001 << 60) % 2**64 >> 63 else 0)


def test_nested_untaken_branches_are_not_evaluated() -> None:
    a = floats(3)
    arm = "A[n + 3]" + " + A[n + 3]" * 300

    run(f"""
def f(A: Buffer("float32", (3,)), n: "int64"):
    A[0] = if_then_else(n < 0, {arm}, float32(1.0))
""", a, 0)

    assert a[0] == 1


def test_a_let_is_the_value_at_that_time() -> None:
    a = floats(2, 4)
    before = a.copy()

    run("""
def swap(A: Buffer("float32x4", (2,))):
    with Let(A[0]) as t:
        A[0] = A[1]
        A[1] = t
""", a)

    np.testing.assert_array_equal(a, before[::-1])


def test_bfloat16_rounds_after_every_operation() -> None:
    a = np.array([1.0, 1 / 256, -1.0, math.nan], ml_dtypes.bfloat16)
    out = np.zeros(3, ml_dtypes.bfloat16)

    run("""
def f(A: Buffer("bfloat16", (4,)), out: Buffer("bfloat16", (3,))):
    out[0] = A[0] + A[1] + A[2]
    out[1] = max(A[0], A[3])
    out[2] = exp(A[0])
""", a, out)

    assert float(out[0]) == 0
    assert math.isnan(float(out[1]))
    assert float(out[2]) == 2.71875


@pytest.mark.parametrize(
    ("view", "expected"),
    [
        ("(n + 4, 8)", Diagnostic(
            "out-of-bounds", name="V", shape=(9, 8), rows=9, row_bytes=32, size=256,
        )),
        ("(8, n + 4)", Diagnostic("out-of-bounds", name="V", shape=(9,), needed=36, size=32)),
    ],
)
def test_views_with_more_or_longer_rows_than_their_memory(view: str, expected: Diagnostic) -> None:
    func = parse(f"""
def f(A: Buffer("float32", (8, 8), axis_separators=(0,)), n: "int64"):
    with DeclBuffer(Buffer("float32", {view}, axis_separators=(0,), data=A.data)) as V:
        V[0, 0] = float32(1.0)
""")
    with pytest.raises(CallError) as error:
        evaluate(func, [np.zeros((8, 8), np.float32), 5])

    assert diagnostic(error.value) == expected


@pytest.mark.parametrize("n", [0, 1, 3])
def test_rows_of_a_view_start_where_those_of_its_memory_do(n: int) -> None:
    func = parse("""
def f(A: Buffer("float32", (n, 2, 5), axis_separators=(1,)), *, n: "int64"):
    with DeclBuffer(Buffer("float32x2", (2, n, 2), axis_separators=(1,), data=A.data)) as V:
        for i in range(n):
            V[0, i, 1] = broadcast(cast("float32", i + 1), 2)
""")
    a = np.zeros((n, 2, 5), np.float32)
    expected = a.copy()
    expected.reshape(-1, 5)[:n, 2:4] = np.arange(1, n + 1)[:, None]

    evaluate(func, [a])

    np.testing.assert_array_equal(a, expected)


@pytest.mark.parametrize(
    "view", ['(64,), data=A.data', '(4, 2, 8), axis_separators=(0, 1), data=A.data']
)
def test_views_of_another_rank_are_rejected_as_by_the_compiler(view: str) -> None:
    func = parse(f"""
def f(A: Buffer("float32", (8, 8), axis_separators=(0,))):
    with DeclBuffer(Buffer("float32", {view})) as V:
        V[{"0" if view.startswith("(64") else "0, 0, 0"}] = float32(1.0)
""")
    a = np.zeros((8, 8), np.float32)
    with pytest.raises(InternalError) as expected:
        verify(func)
    with pytest.raises(InternalError) as error:
        evaluate(func, [a])

    assert error.value.message == expected.value.message
    assert not a.any()
