"""`vectorize_loops` replaces loops by vector statements, with masks for partial vectors."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest

from tecomp.ir import PrimFunc, parse
from tecomp.lowering import vectorize_loops

Check = Callable[..., PrimFunc]


def test_ramps_and_scalars(check: Check) -> None:
    """Lane-invariant values stay scalar."""
    check(vectorize_loops, """
def f(A: Buffer("float32", (64,)), B: Buffer("float32", (64,)), C: Buffer("float32", (8,))):
    for i in range(8):
        for j in vectorized(8):
            B[i * 8 + j] = A[i * 8 + 7 - j] * (C[i] + float32(1.0)) + A[j * 2] + cast("float32", j + i)
""", """
def f(A: Buffer("float32", (64,)), B: Buffer("float32", (64,)), C: Buffer("float32", (8,))):
    for i in range(8):
        B[ramp(i * 8, 1, 8)] = A[ramp(i * 8 + 7, -1, 8)] * broadcast(C[i] + float32(1.0), 8) + A[ramp(0, 2, 8)] + cast("float32x8", ramp(i, 1, 8))
""")


def test_reduction_into_a_row(check: Check) -> None:
    check(vectorize_loops, """
def f(A: Buffer("float32", (4,)), B: Buffer("float32", (64,)), C: Buffer("float32", (16,))):
    for j in vectorized(16):
        C[j] = float32(0.0)
        for k in range(4):
            C[j] = C[j] + A[k] * B[k * 16 + j]
""", """
def f(A: Buffer("float32", (4,)), B: Buffer("float32", (64,)), C: Buffer("float32", (16,))):
    C[ramp(0, 1, 16)] = broadcast(float32(0.0), 16)
    for k in range(4):
        C[ramp(0, 1, 16)] = C[ramp(0, 1, 16)] + broadcast(A[k], 16) * B[ramp(k * 16, 1, 16)]
""")


def test_quotients_and_remainders_of_ramps(check: Check) -> None:
    """Aligned quotients and remainders become ramps or scalars; others are computed per lane."""
    check(vectorize_loops, """
def f(A: Buffer("int64", (64,)), B: Buffer("int64", (64,))):
    for i in range(16):
        for j in vectorized(4):
            B[i * 4 + j] = A[(i * 4 + j) // 4] + A[(i * 4 + j) % 4] + A[j * 8 // 4] + (i * 4 + j) % 8
    for i in range(16):
        for j in vectorized(4):
            B[i * 4 + j] = A[(i * 2 + j) // 4]
""", """
def f(A: Buffer("int64", (64,)), B: Buffer("int64", (64,))):
    for i in range(16):
        B[ramp(i * 4, 1, 4)] = broadcast(A[i], 4) + A[ramp(0, 1, 4)] + A[ramp(0, 2, 4)] + broadcast(i % 2 * 4, 4) + ramp(0, 1, 4)
    for i in range(16):
        B[ramp(i * 4, 1, 4)] = A[ramp(i * 2, 1, 4) // broadcast(4, 4)]
""")


def test_a_tail_is_masked(check: Check) -> None:
    """Full vectors need no mask."""
    check(vectorize_loops, """
def f(A: Buffer("float32", (n,)), B: Buffer("float32", (n,)), *, n: "int64"):
    for io in range((n + 7) // 8):
        for ii in vectorized(min(8, n - io * 8)):
            B[io * 8 + ii] = A[io * 8 + ii] + A[0]
""", """
def f(A: Buffer("float32", (n,)), B: Buffer("float32", (n,)), *, n: "int64"):
    for io in range((n + 7) // 8):
        if n - io * 8 >= 8:
            B[ramp(io * 8, 1, 8)] = A[ramp(io * 8, 1, 8)] + broadcast(A[0], 8)
        else:
            mask = ramp(0, 1, 8) < broadcast(n - io * 8, 8)
            store(B[ramp(io * 8, 1, 8)], A.load(ramp(io * 8, 1, 8), where=mask) + broadcast(A[0], 8), where=mask)
""", {"n": 0}, {"n": 1}, {"n": 8}, {"n": 29})


def test_possibly_empty_tails_are_guarded(check: Check) -> None:
    check(vectorize_loops, """
def f(A: Buffer("float32", (n,)), B: Buffer("float32", (1,)), *, n: "int64"):
    for i in vectorized(min(4, n)):
        A[i] = B[0]
""", """
def f(A: Buffer("float32", (n,)), B: Buffer("float32", (1,)), *, n: "int64"):
    if min(4, n) > 0:
        mask = ramp(0, 1, 4) < broadcast(n, 4)
        store(A[ramp(0, 1, 4)], broadcast(B[0], 4), where=mask)
""", {"n": 0}, {"n": 3}, {"n": 9})


def test_wide_and_unbounded_loops_are_cut(check: Check) -> None:
    check(partial(vectorize_loops, max_lanes=8), """
def f(A: Buffer("float32", (20,)), B: Buffer("float32", (n,)), *, n: "int64"):
    for i in vectorized(20):
        A[i] = float32(1.0)
    for i in vectorized(n):
        B[i] = float32(2.0)
""", """
def f(A: Buffer("float32", (20,)), B: Buffer("float32", (n,)), *, n: "int64"):
    for i_outer in range(2):
        A[ramp(i_outer * 8, 1, 8)] = broadcast(float32(1.0), 8)
    A[ramp(16, 1, 4)] = broadcast(float32(1.0), 4)
    for i_outer in range(n // 8):
        B[ramp(i_outer * 8, 1, 8)] = broadcast(float32(2.0), 8)
    if n % 8 > 0:
        mask = ramp(0, 1, 8) < broadcast(n % 8, 8)
        store(B[ramp(n // 8 * 8, 1, 8)], broadcast(float32(2.0), 8), where=mask)
""", {"n": 0}, {"n": 7}, {"n": 8}, {"n": 27})


def test_an_extent_below_zero_is_an_empty_loop(check: Check) -> None:
    """A loop of negative extent has no iteration, although its remainder may be positive."""
    check(partial(vectorize_loops, max_lanes=8), """
def f(A: Buffer("float32", (n,)), *, n: "int64"):
    for i in vectorized(n - 16):
        A[i] = float32(1.0)
""", """
def f(A: Buffer("float32", (n,)), *, n: "int64"):
    for i_outer in range(n // 8 - 2):
        A[ramp(i_outer * 8, 1, 8)] = broadcast(float32(1.0), 8)
    if n - 16 > 0:
        if n % 8 > 0:
            mask = ramp(0, 1, 8) < broadcast(n % 8, 8)
            store(A[ramp(n // 8 * 8 - 16, 1, 8)], broadcast(float32(1.0), 8), where=mask)
""", {"n": 3}, {"n": 16}, {"n": 23}, {"n": 50})


def test_conditions_become_masks(check: Check) -> None:
    """Lane-invariant conditions stay branches; most iterations need no mask."""
    check(vectorize_loops, """
def f(A: Buffer("float32", (10,)), B: Buffer("float32", (64,)), m: "int64"):
    for i in range(8):
        for j in vectorized(8):
            if i < 7 and i + j < 10:
                B[i * 8 + j] = A[i + j]
            if m > j:
                B[i * 8 + j] = B[i * 8 + j] + float32(1.0)
            else:
                B[i * 8 + j] = float32(0.0)
""", """
def f(A: Buffer("float32", (10,)), B: Buffer("float32", (64,)), m: "int64"):
    for i in range(8):
        if i < 7:
            if i + 7 < 10:
                B[ramp(i * 8, 1, 8)] = A[ramp(i, 1, 8)]
            else:
                mask = ramp(i, 1, 8) < broadcast(10, 8)
                store(B[ramp(i * 8, 1, 8)], A.load(ramp(i, 1, 8), where=mask), where=mask)
        holds = broadcast(m, 8) > ramp(0, 1, 8)
        store(B[ramp(i * 8, 1, 8)], B[ramp(i * 8, 1, 8)] + broadcast(float32(1.0), 8), where=holds)
        store(B[ramp(i * 8, 1, 8)], broadcast(float32(0.0), 8), where=not holds)
""", {"m": 3})


def test_guarded_reads_are_masked(check: Check) -> None:
    """Even a lane-invariant read is masked if there may be no active lane."""
    check(vectorize_loops, """
def f(A: Buffer("float32", (8,)), B: Buffer("float32", (10,)), k: "int64"):
    for j in vectorized(10):
        B[j] = if_then_else(1 <= j and j < 9, A[j - 1], float32(0.0)) + if_then_else(j < k, A[k + 3], A[0])
""", """
def f(A: Buffer("float32", (8,)), B: Buffer("float32", (10,)), k: "int64"):
    B[ramp(0, 1, 10)] = select(broadcast(1, 10) <= ramp(0, 1, 10) and ramp(0, 1, 10) < broadcast(9, 10), A.load(ramp(-1, 1, 10), where=broadcast(1, 10) <= ramp(0, 1, 10) and ramp(0, 1, 10) < broadcast(9, 10)), broadcast(float32(0.0), 10)) + select(ramp(0, 1, 10) < broadcast(k, 10), A.load(broadcast(k + 3, 10), where=ramp(0, 1, 10) < broadcast(k, 10)), broadcast(A[0], 10))
""", {"k": 2}, {"k": -5})


def test_a_choice_for_all_lanes_stays_lazy(check: Check) -> None:
    check(vectorize_loops, """
def f(A: Buffer("float32", (8,)), B: Buffer("float32", (32,))):
    for i in range(4):
        for j in vectorized(8):
            B[i * 8 + j] = if_then_else(i < 1, A[i * 8 + j], float32(0.0))
""", """
def f(A: Buffer("float32", (8,)), B: Buffer("float32", (32,))):
    for i in range(4):
        B[ramp(i * 8, 1, 8)] = if_then_else(i < 1, A[ramp(i * 8, 1, 8)], broadcast(float32(0.0), 8))
""")


def test_values_and_memory_of_each_lane(check: Check) -> None:
    """The copies of a buffer are adjacent in memory; index arithmetic is substituted, not bound."""
    check(vectorize_loops, """
def f(A: Buffer("float32", (32,)), B: Buffer("float32", (4,))):
    for j in vectorized(4):
        k = j * 2
        x = A[k + 1]
        with Allocate(Buffer("float32", (2,))) as T:
            T[0] = x
            T[1] = T[0] + x
            for r in range(2):
                B[j] = T[r] + A[k]
""", """
def f(A: Buffer("float32", (32,)), B: Buffer("float32", (4,))):
    x = A[ramp(1, 2, 4)]
    with Allocate(Buffer("float32", (8,))) as T:
        T[ramp(0, 1, 4)] = x
        T[ramp(4, 1, 4)] = T[ramp(0, 1, 4)] + x
        for r in range(2):
            B[ramp(0, 1, 4)] = T[ramp(r * 4, 1, 4)] + A[ramp(0, 2, 4)]
""")


def test_inner_loops_with_bounds_of_their_own(check: Check) -> None:
    """In a triangular nest, the inner loop covers all rows and a mask selects the active lanes."""
    check(vectorize_loops, """
def f(A: Buffer("float32", (64,)), B: Buffer("float32", (8,))):
    for j in vectorized(8):
        for k in range(j + 1):
            B[j] = B[j] + A[k * 8 + j]
""", """
def f(A: Buffer("float32", (64,)), B: Buffer("float32", (8,))):
    for k in range(8):
        mask = broadcast(k, 8) < ramp(1, 1, 8)
        store(B[ramp(0, 1, 8)], B[ramp(0, 1, 8)] + A[ramp(k * 8, 1, 8)], where=mask)
""")


def test_only_the_innermost_of_two(check: Check) -> None:
    check(vectorize_loops, """
def f(A: Buffer("float32", (32,))):
    for i in vectorized(4):
        for j in vectorized(8):
            A[i * 8 + j] = float32(1.0)
""", """
def f(A: Buffer("float32", (32,))):
    for i in range(4):
        A[ramp(i * 8, 1, 8)] = broadcast(float32(1.0), 8)
""")


def test_statements_without_a_vector_form_run_lane_by_lane(check: Check) -> None:
    """Vectors in the first of two physical axes, and stores of all lanes to one element."""
    check(vectorize_loops, """
def f(A: Buffer("float32", (8, 4), axis_separators=(0,)), B: Buffer("float32", (8,)), C: Buffer("float32", (1,))):
    for j in vectorized(8):
        B[j] = B[j] + float32(1.0)
        A[j, 2] = B[j]
        if j < 5:
            C[0] = C[0] + A[j, 1]
""", """
def f(A: Buffer("float32", (8, 4), axis_separators=(0,)), B: Buffer("float32", (8,)), C: Buffer("float32", (1,))):
    B[ramp(0, 1, 8)] = B[ramp(0, 1, 8)] + broadcast(float32(1.0), 8)
    for j in range(8):
        A[j, 2] = B[j]
    mask = ramp(0, 1, 8) < broadcast(5, 8)
    for j in range(8):
        if j < 5:
            C[0] = C[0] + A[j, 1]
""")


def test_a_row_that_some_lanes_may_read_is_chosen_lane_by_lane(check: Check) -> None:
    """The row index is the same in all lanes, but valid only in the active lanes."""
    check(vectorize_loops, """
def f(P: Buffer("float32", (3, 3), axis_separators=(0,)), I: Buffer("int64", (8,)), B: Buffer("float32", (8,))):
    for j in vectorized(8):
        B[j] = P[I[0] & 1, 2]
    for j in vectorized(8):
        B[j] = if_then_else(I[j] > 5, P[I[0] & 1, 2], float32(0.0))
    for j in vectorized(8):
        if I[j] > 5:
            B[j] = P[I[0] & 1, 2]
""", """
def f(P: Buffer("float32", (3, 3), axis_separators=(0,)), I: Buffer("int64", (8,)), B: Buffer("float32", (8,))):
    B[ramp(0, 1, 8)] = broadcast(P[I[0] & 1, 2], 8)
    for j in range(8):
        B[j] = if_then_else(I[j] > 5, P[I[0] & 1, 2], float32(0.0))
    for j in range(8):
        if I[j] > 5:
            B[j] = P[I[0] & 1, 2]
""")


def test_vector_types_run_lane_by_lane(check: Check) -> None:
    check(vectorize_loops, """
def f(A: Buffer("float32x4", (8,)), B: Buffer("float32x4", (8,))):
    for j in vectorized(8):
        B[j] = A[7 - j] + A[0]
""", """
def f(A: Buffer("float32x4", (8,)), B: Buffer("float32x4", (8,))):
    for j in range(8):
        B[j] = A[7 - j] + A[0]
""")


def test_index_checks_apply_to_active_lanes(check: Check) -> None:
    check(vectorize_loops, """
@sites("t.py:1: A[idx[i]]")
def f(A: Buffer("float32", (9,)), idx: Buffer("int64", (n,)), B: Buffer("float32", (n,)), *, n: "int64"):
    for i in vectorized(min(4, n)):
        B[i] = A.load(idx[i] * 0 + 3, where=check_index(idx[i] * 0 + 3, 9, 0))
        B[i] = A.load(idx[i] & 7, where=check_index(idx[i] & 7, 9, 0))
        B[i] = A.load(idx[i] // 9 + 2, where=check_index(idx[i] // 9 + 2, 9, 0))
""", """
@sites("t.py:1: A[idx[i]]")
def f(A: Buffer("float32", (9,)), idx: Buffer("int64", (n,)), B: Buffer("float32", (n,)), *, n: "int64"):
    if min(4, n) > 0:
        mask = ramp(0, 1, 4) < broadcast(n, 4)
        store(B[ramp(0, 1, 4)], broadcast(A[3], 4), where=mask)
        store(B[ramp(0, 1, 4)], A.load(idx.load(ramp(0, 1, 4), where=mask) & broadcast(7, 4), where=mask), where=mask)
        store(B[ramp(0, 1, 4)], A.load(idx.load(ramp(0, 1, 4), where=mask) // broadcast(9, 4) + broadcast(2, 4), where=mask and check_index(idx.load(ramp(0, 1, 4), where=mask) // broadcast(9, 4) + broadcast(2, 4), broadcast(9, 4), 0)), where=mask)
""", {"n": 0}, {"n": 3}, {"n": 6})


@pytest.mark.parametrize("extent", [0, 1])
def test_loops_of_at_most_one_turn(check: Check, extent: int) -> None:
    body = "    A[5] = float32(1.0)" if extent else "    pass"
    check(vectorize_loops, f"""
def f(A: Buffer("float32", (8,))):
    for i in vectorized(5, extent={extent}):
        A[i] = float32(1.0)
""", f"""
def f(A: Buffer("float32", (8,))):
{body}
""")


def test_a_view_of_memory_inside_keeps_the_loop_serial() -> None:
    func = parse("""
def f(A: Buffer("float32", (8,))):
    for i in vectorized(8):
        with Allocate(Buffer("float32", (4,))) as T:
            with DeclBuffer(Buffer("float32x4", (1,), data=T.data)) as T4:
                T4[0] = broadcast(A[i], 4)
                A[i] = T[3]
""")

    assert str(vectorize_loops(func)) == str(func).replace("vectorized", "range")


def test_checks_of_uniform_reads_apply_to_active_lanes(check: Check) -> None:
    """One index differs between lanes and the other does not; inactive lanes read nothing."""
    check(vectorize_loops, """
@sites("t.py:1: A[idx[i], at[0]]")
def f(A: Buffer("float32", (117,)), idx: Buffer("int64", (8,)), at: Buffer("int64", (1,)), B: Buffer("float32", (8,))):
    for i in vectorized(8):
        B[i] = if_then_else(idx[i] > 99, A.load(idx[i] * 13 + at[0], where=check_index(idx[i], 9, 0) and check_index(at[0] - 99, 13, 0)), float32(1.0))
""", """
@sites("t.py:1: A[idx[i], at[0]]")
def f(A: Buffer("float32", (117,)), idx: Buffer("int64", (8,)), at: Buffer("int64", (1,)), B: Buffer("float32", (8,))):
    B[ramp(0, 1, 8)] = select(idx[ramp(0, 1, 8)] > broadcast(99, 8), A.load(idx[ramp(0, 1, 8)] * broadcast(13, 8) + broadcast(at[0], 8), where=idx[ramp(0, 1, 8)] > broadcast(99, 8) and (check_index(idx[ramp(0, 1, 8)], broadcast(9, 8), 0) and check_index(broadcast(at[0] - 99, 8), broadcast(13, 8), 0))), broadcast(float32(1.0), 8))
""")


def test_ends_of_vectors_have_whole_registers_and_one_form(check: Check) -> None:
    """A remainder has only a masked form in whole registers; full vectors have their own branch."""
    check(vectorize_loops, """
def f(A: Buffer("float32", (n,)), B: Buffer("float32", (m,)), *, n: "int64", m: "int64"):
    for i in vectorized(n % 8):
        A[n // 8 * 8 + i] = float32(1.0)
    with Allocate(Buffer("float32", (16,), scope="local")) as T:
        for i in range((n + 7) // 8):
            if i * 8 + 8 <= n and m > 1:
                for k in unrolled(2):
                    for j in vectorized(8):
                        T[k * 8 + j] = A[i * 8 + j]
            else:
                for k in unrolled(min(2, m)):
                    for j in vectorized(min(8, n - i * 8)):
                        T[k * 8 + j] = A[i * 8 + j]
""", """
def f(A: Buffer("float32", (n,)), B: Buffer("float32", (m,)), *, n: "int64", m: "int64"):
    if n % 8 > 0:
        mask = ramp(0, 1, 8) < broadcast(n % 8, 8)
        store(A[ramp(n // 8 * 8, 1, 8)], broadcast(float32(1.0), 8), where=mask)
    with Allocate(Buffer("float32", (16,), scope="local")) as T:
        for i in range((n + 7) // 8):
            if i * 8 + 8 <= n and m > 1:
                for k in unrolled(2):
                    T[ramp(k * 8, 1, 8)] = A[ramp(i * 8, 1, 8)]
            else:
                for k in unrolled(min(2, m)):
                    mask = ramp(0, 1, 8) < broadcast(n - i * 8, 8)
                    store(T[ramp(k * 8, 1, 8)], A.load(ramp(i * 8, 1, 8), where=mask), where=mask)
""", {"n": 0, "m": 2}, {"n": 13, "m": 2}, {"n": 16, "m": 1})


def test_copies_of_narrow_elements_have_a_form_without_masks(check: Check) -> None:
    """Only the last copy has inactive lanes, and some processors load narrow elements in parts."""
    check(vectorize_loops, """
def f(A: Buffer("int8", (n,)), B: Buffer("float32", (n,)), C: Buffer("int32", (8,)), *, n: "int64"):
    with Allocate(Buffer("int32", (8,), scope="local")) as T:
        for k in unrolled((n % 8 + 3) // 4):
            for j in vectorized(min(4, n % 8 - k * 4)):
                T[k * 4 + j] = cast("int32", A[k * 4 + j])
        C[0] = T[0]
        for k in unrolled((n % 8 + 3) // 4):
            for j in vectorized(min(4, n % 8 - k * 4)):
                T[k * 4 + j] = cast("int32", B[k * 4 + j])
        C[1] = T[0]
""", """
def f(A: Buffer("int8", (n,)), B: Buffer("float32", (n,)), C: Buffer("int32", (8,)), *, n: "int64"):
    with Allocate(Buffer("int32", (8,), scope="local")) as T:
        for k in unrolled((n % 8 + 3) // 4):
            if n % 8 - k * 4 >= 4:
                T[ramp(k * 4, 1, 4)] = cast("int32x4", A[ramp(k * 4, 1, 4)])
            else:
                mask = ramp(0, 1, 4) < broadcast(n % 8 - k * 4, 4)
                store(T[ramp(k * 4, 1, 4)], cast("int32x4", A.load(ramp(k * 4, 1, 4), where=mask)), where=mask)
        C[0] = T[0]
        for k in unrolled((n % 8 + 3) // 4):
            mask = ramp(0, 1, 4) < broadcast(n % 8 - k * 4, 4)
            store(T[ramp(k * 4, 1, 4)], cast("int32x4", B.load(ramp(k * 4, 1, 4), where=mask)), where=mask)
        C[1] = T[0]
""", {"n": 1}, {"n": 4}, {"n": 5}, {"n": 15})
