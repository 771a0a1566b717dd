"""`unroll_loops` replaces a loop by one copy of its body for each iteration."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest

import tecomp
from tecomp import te
from tecomp.errors import LowerError
from tecomp.ir import BufferStore, For, IfThenElse, PrimFunc, parse, walk
from tecomp.lowering import unroll_loops
from tests.messages import Diagnostic, diagnostic

Check = Callable[..., PrimFunc]


def test_copies_in_order(check: Check) -> None:
    check(unroll_loops, """
def f(A: Buffer("float32", (64,))):
    for i in range(4):
        for j in unrolled(2, extent=2):
            for k in unrolled(2):
                A[i * 16 + j * 4 + k] = A[j * 4 + k * 2] + float32(1.0)
""", """
def f(A: Buffer("float32", (64,))):
    for i in range(4):
        A[i * 16 + 8] = A[8] + float32(1.0)
        A[i * 16 + 8 + 1] = A[10] + float32(1.0)
        A[i * 16 + 12] = A[12] + float32(1.0)
        A[i * 16 + 12 + 1] = A[14] + float32(1.0)
""")


def test_unroll_requires_a_bounded_extent(check: Check) -> None:
    check(unroll_loops, """
def f(A: Buffer("float32", (n,)), *, n: "int64"):
    for io in range((n + 2) // 3):
        for ii in unrolled(min(3, n - io * 3)):
            A[io * 3 + ii] = A[io * 3 + ii] + float32(1.0)
""", """
def f(A: Buffer("float32", (n,)), *, n: "int64"):
    for io in range((n + 2) // 3):
        if n - io * 3 >= 3:
            A[io * 3] = A[io * 3] + float32(1.0)
            A[io * 3 + 1] = A[io * 3 + 1] + float32(1.0)
            A[io * 3 + 2] = A[io * 3 + 2] + float32(1.0)
        else:
            for ii in range(min(3, n - io * 3)):
                A[io * 3 + ii] = A[io * 3 + ii] + float32(1.0)
""", {"n": 0}, {"n": 1}, {"n": 7})


def test_iterations_with_registers_of_their_own_are_copies_under_conditions(check: Check) -> None:
    check(unroll_loops, """
def f(A: Buffer("float32", (n,)), *, n: "int64"):
    with Allocate(Buffer("float32", (2,), scope="local")) as T:
        for io in range((n + 1) // 2):
            for ii in unrolled(min(2, n - io * 2)):
                T[ii] = A[io * 2 + ii] + float32(1.0)
            for ii in unrolled(min(2, n - io * 2)):
                A[io * 2 + ii] = T[ii]
""", """
def f(A: Buffer("float32", (n,)), *, n: "int64"):
    with Allocate(Buffer("float32", (2,), scope="local")) as T:
        for io in range((n + 1) // 2):
            if n - io * 2 >= 2:
                T[0] = A[io * 2] + float32(1.0)
                T[1] = A[io * 2 + 1] + float32(1.0)
            else:
                if n - io * 2 > 0:
                    T[0] = A[io * 2] + float32(1.0)
                if n - io * 2 > 1:
                    T[1] = A[io * 2 + 1] + float32(1.0)
            if n - io * 2 >= 2:
                A[io * 2] = T[0]
                A[io * 2 + 1] = T[1]
            else:
                if n - io * 2 > 0:
                    A[io * 2] = T[0]
                if n - io * 2 > 1:
                    A[io * 2 + 1] = T[1]
""", {"n": 0}, {"n": 1}, {"n": 5})


def test_remainders_are_not_specialized_again(check: Check) -> None:
    check(unroll_loops, """
def f(A: Buffer("float32", (n,)), M: Buffer("float32", (m,)), *, n: "int64", m: "int64"):
    for io in range((n + 1) // 2):
        if io * 2 + 2 <= n and m > 3:
            for ii in unrolled(2):
                A[io * 2 + ii] = A[io * 2 + ii] + float32(1.0)
        else:
            for ii in unrolled(min(2, n - io * 2)):
                A[io * 2 + ii] = A[io * 2 + ii] + float32(1.0)
""", """
def f(A: Buffer("float32", (n,)), M: Buffer("float32", (m,)), *, n: "int64", m: "int64"):
    for io in range((n + 1) // 2):
        if io * 2 + 2 <= n and m > 3:
            A[io * 2] = A[io * 2] + float32(1.0)
            A[io * 2 + 1] = A[io * 2 + 1] + float32(1.0)
        else:
            for ii in range(min(2, n - io * 2)):
                A[io * 2 + ii] = A[io * 2 + ii] + float32(1.0)
""", {"n": 0, "m": 4}, {"n": 5, "m": 4}, {"n": 4, "m": 0})


def test_conditionally_bounded_register_indices_are_unrolled(
    check: Check
) -> None:
    check(unroll_loops, """
def f(A: Buffer("float32", (n,)), B: Buffer("float32", (n,)), *, n: "int64"):
    with Allocate(Buffer("float32", (3,), scope="local")) as T:
        for io in range((n + 2) // 3):
            if io * 3 + 3 <= n:
                for ii in unrolled(3):
                    T[ii] = A[io * 3 + ii] + float32(1.0)
            else:
                for ii in unrolled(n - io * 3):
                    T[ii] = A[io * 3 + ii] + float32(1.0)
            if io * 3 + 3 <= n:
                for ii in unrolled(3):
                    B[io * 3 + ii] = T[ii]
            if io * 3 + 2 >= n:
                for ii in unrolled(n - io * 3):
                    B[io * 3 + ii] = T[ii]
        for io in range((n + 2) // 3):
            if io * 3 + 3 > n:
                for ii in unrolled(n - io * 3):
                    A[io * 3 + ii] = A[io * 3 + ii] + float32(1.0)
            for ii in unrolled(n - io * 3):
                B[io * 3 + ii] = B[io * 3 + ii] + float32(1.0)
""", """
def f(A: Buffer("float32", (n,)), B: Buffer("float32", (n,)), *, n: "int64"):
    with Allocate(Buffer("float32", (3,), scope="local")) as T:
        for io in range((n + 2) // 3):
            if io * 3 + 3 <= n:
                T[0] = A[io * 3] + float32(1.0)
                T[1] = A[io * 3 + 1] + float32(1.0)
                T[2] = A[io * 3 + 2] + float32(1.0)
            else:
                if n - io * 3 > 0:
                    T[0] = A[io * 3] + float32(1.0)
                if n - io * 3 > 1:
                    T[1] = A[io * 3 + 1] + float32(1.0)
            if io * 3 + 3 <= n:
                B[io * 3] = T[0]
                B[io * 3 + 1] = T[1]
                B[io * 3 + 2] = T[2]
            if io * 3 + 2 >= n:
                if n - io * 3 > 0:
                    B[io * 3] = T[0]
                if n - io * 3 > 1:
                    B[io * 3 + 1] = T[1]
        for io in range((n + 2) // 3):
            if io * 3 + 3 > n:
                for ii in range(n - io * 3):
                    A[io * 3 + ii] = A[io * 3 + ii] + float32(1.0)
            for ii in range(n - io * 3):
                B[io * 3 + ii] = B[io * 3 + ii] + float32(1.0)
""", {"n": 0}, {"n": 1}, {"n": 2}, {"n": 3}, {"n": 7}, {"n": 8})


def test_partial_vectors_stay_in_a_loop(check: Check) -> None:
    """A loop-invariant mask is bound once, before the loop; divisions stay in place."""
    check(unroll_loops, """
def f(A: Buffer("float32", (32,)), M: Buffer("float32", (n, m)), *, n: "int64", m: "int64"):
    for i in unrolled(4):
        with Let(ramp(0, 1, 8) < broadcast(n, 8)) as mask:
            store(A[ramp(i * 8, 1, 8)], broadcast(float32(1.0), 8), where=mask)
    for i in unrolled(min(2, n)):
        with Let(n // m) as q:
            A[i + q] = float32(1.0)
""", """
def f(A: Buffer("float32", (32,)), M: Buffer("float32", (n, m)), *, n: "int64", m: "int64"):
    with Let(ramp(0, 1, 8) < broadcast(n, 8)) as mask:
        for i in range(4):
            store(A[ramp(i * 8, 1, 8)], broadcast(float32(1.0), 8), where=mask)
    if n >= 2:
        with Let(n // m) as q:
            A[q] = float32(1.0)
        q = n // m
        A[1 + q] = float32(1.0)
    else:
        for i in range(min(2, n)):
            q = n // m
            A[i + q] = float32(1.0)
""", {"n": 3, "m": 2}, {"n": 0, "m": 1})


def test_memory_inside_depends_on_the_turn(check: Check) -> None:
    check(unroll_loops, """
def f(A: Buffer("float32", (4,))):
    for i in unrolled(2):
        with Allocate(Buffer("float32", (i + 1,))) as T:
            T[i] = A[i]
            A[i + 2] = T[i]
""", """
def f(A: Buffer("float32", (4,))):
    with Allocate(Buffer("float32", (1,))) as T:
        T[0] = A[0]
        A[2] = T[0]
    with Allocate(Buffer("float32", (2,))) as T:
        T[1] = A[1]
        A[3] = T[1]
""")


def test_past_the_limit_a_loop_of_unknown_extent_is_serial(check: Check) -> None:
    """The innermost loop is within the limit; loops of unknown extent become serial."""
    check(partial(unroll_loops, limit=4), """
def f(A: Buffer("float32", (n, 8)), *, n: "int64"):
    for i in unrolled(n):
        for j in unrolled(min(2, n)):
            for k in unrolled(3):
                A[i, j * 4 + k] = float32(1.0)
""", """
def f(A: Buffer("float32", (n, 8)), *, n: "int64"):
    for i in range(n):
        for j in range(min(2, n)):
            A[i, j * 4] = float32(1.0)
            A[i, j * 4 + 1] = float32(1.0)
            A[i, j * 4 + 2] = float32(1.0)
""", {"n": 3}, flat=False)


def test_past_the_limit_a_loop_of_known_extent_is_refused() -> None:
    func = parse("""
def f(A: Buffer("float32", (100, 100))):
    for i in unrolled(100):
        for j in unrolled(100):
            A[i, j] = float32(1.0)
""")

    with pytest.raises(LowerError) as error:
        unroll_loops(func)
    assert diagnostic(error.value) == (
        Diagnostic(
            "limit-exceeded", loop_var="i", trip_count=100, statements=100, unrolled_count=10000,
            limit=4096,
        )
    )


def test_a_million_iterations_are_refused() -> None:
    A = te.placeholder((1000000,), name="A")
    B = te.compute(A.shape, lambda i: A[i] + 1.0, name="B")
    s = te.create_schedule(B.op)
    s[B].unroll(B.op.axis[0])

    with pytest.raises(LowerError) as error:
        tecomp.build(s, [A, B])
    assert diagnostic(error.value) == (
        Diagnostic(
            "limit-exceeded", loop_var="i", trip_count=1000000, statements=1, unrolled_count=1000000,
            limit=4096,
        )
    )


def test_a_long_axis_of_which_a_part_is_computed_is_unrolled() -> None:
    """The loop covers only the rows that one output row reads, whatever the tensor's extent."""
    A = te.placeholder((5002, 8), name="A")
    B = te.compute((5002, 8), lambda i, j: A[i, j] + 1.0, name="B")
    C = te.compute((5000, 8), lambda i, j: B[i, j] + B[i + 2, j], name="C")
    s = te.create_schedule(C.op)
    s[B].compute_at(s[C], C.op.axis[0])
    s[B].unroll(B.op.axis[0])

    assert "for i in range(3)" not in str(tecomp.lower(s, [A, C]))


def test_unroll_pragmas_are_limited_to_the_extent() -> None:
    A = te.placeholder((8192,), name="A")
    B = te.compute(A.shape, lambda i: A[i] + 1.0, name="B")
    s = te.create_schedule(B.op)
    outer, _ = s[B].split(B.op.axis[0], nparts=1)
    s[B].pragma(outer, "auto_unroll_max_step", 1000000)

    assert "for i_inner in range(8192)" in str(tecomp.lower(s, [A, B]))


def test_thousands_of_copies_do_not_exhaust_the_stack() -> None:
    func = parse("""
def f(A: Buffer("float32", (4096,))):
    for i in unrolled(4096):
        A[i] = float32(1.0)
""")

    assert str(unroll_loops(func)).count("\n") == 4096


def test_invariant_conditions_are_evaluated_once(check: Check) -> None:
    check(unroll_loops, """
def f(A: Buffer("float32", (8,)), B: Buffer("float32", (8,)), m: "int64"):
    for i in range(8):
        if m > 3:
            A[i] = float32(1.0)
        else:
            if m > 2:
                A[i] = float32(2.0)
    for i in range(8):
        if A[0] > float32(1.0):
            A[i] = float32(0.0)
""", """
def f(A: Buffer("float32", (8,)), B: Buffer("float32", (8,)), m: "int64"):
    if m > 3:
        for i in range(8):
            A[i] = float32(1.0)
    else:
        if m > 2:
            for i in range(8):
                A[i] = float32(2.0)
    for i in range(8):
        if A[0] > float32(1.0):
            A[i] = float32(0.0)
""", {"m": 3}, {"m": 9})


def test_loops_around_many_guarded_copies_are_split_by_the_extent(check: Check) -> None:
    """Sums of a partial tile of 6 rows; each version of the loop `k` tests at most 4 extents."""
    func = check(unroll_loops, """
def f(A: Buffer("float32", (n * 5,)), B: Buffer("float32", (n,)), *, n: "int64"):
    for io in range((n + 5) // 6):
        with Allocate(Buffer("float32", (6,), scope="local")) as T:
            for ii in unrolled(min(6, n - io * 6)):
                T[ii] = float32(0.0)
            for k in range(5):
                for ii in unrolled(min(6, n - io * 6)):
                    T[ii] = T[ii] + A[(io * 6 + ii) * 5 + k]
            for ii in unrolled(min(6, n - io * 6)):
                B[io * 6 + ii] = T[ii]
""", """
def f(A: Buffer("float32", (n * 5,)), B: Buffer("float32", (n,)), *, n: "int64"):
    for io in range((n + 5) // 6):
        with Allocate(Buffer("float32", (6,), scope="local")) as T:
            if n - io * 6 >= 6:
                T[0] = float32(0.0)
                T[1] = float32(0.0)
                T[2] = float32(0.0)
                T[3] = float32(0.0)
                T[4] = float32(0.0)
                T[5] = float32(0.0)
            else:
                if n - io * 6 > 0:
                    T[0] = float32(0.0)
                if n - io * 6 > 1:
                    T[1] = float32(0.0)
                if n - io * 6 > 2:
                    T[2] = float32(0.0)
                if n - io * 6 > 3:
                    T[3] = float32(0.0)
                if n - io * 6 > 4:
                    T[4] = float32(0.0)
                if n - io * 6 > 5:
                    T[5] = float32(0.0)
            if n - io * 6 >= 6:
                for k in range(5):
                    T[0] = T[0] + A[io * 6 * 5 + k]
                    T[1] = T[1] + A[(io * 6 + 1) * 5 + k]
                    T[2] = T[2] + A[(io * 6 + 2) * 5 + k]
                    T[3] = T[3] + A[(io * 6 + 3) * 5 + k]
                    T[4] = T[4] + A[(io * 6 + 4) * 5 + k]
                    T[5] = T[5] + A[(io * 6 + 5) * 5 + k]
            else:
                if n - io * 6 > 4:
                    for k in range(5):
                        T[0] = T[0] + A[io * 6 * 5 + k]
                        T[1] = T[1] + A[(io * 6 + 1) * 5 + k]
                        T[2] = T[2] + A[(io * 6 + 2) * 5 + k]
                        T[3] = T[3] + A[(io * 6 + 3) * 5 + k]
                        T[4] = T[4] + A[(io * 6 + 4) * 5 + k]
                        if n - io * 6 > 5:
                            T[5] = T[5] + A[(io * 6 + 5) * 5 + k]
                else:
                    for k in range(5):
                        if n - io * 6 > 0:
                            T[0] = T[0] + A[io * 6 * 5 + k]
                        if n - io * 6 > 1:
                            T[1] = T[1] + A[(io * 6 + 1) * 5 + k]
                        if n - io * 6 > 2:
                            T[2] = T[2] + A[(io * 6 + 2) * 5 + k]
                        if n - io * 6 > 3:
                            T[3] = T[3] + A[(io * 6 + 3) * 5 + k]
            if n - io * 6 >= 6:
                B[io * 6] = T[0]
                B[io * 6 + 1] = T[1]
                B[io * 6 + 2] = T[2]
                B[io * 6 + 3] = T[3]
                B[io * 6 + 4] = T[4]
                B[io * 6 + 5] = T[5]
            else:
                if n - io * 6 > 0:
                    B[io * 6] = T[0]
                if n - io * 6 > 1:
                    B[io * 6 + 1] = T[1]
                if n - io * 6 > 2:
                    B[io * 6 + 2] = T[2]
                if n - io * 6 > 3:
                    B[io * 6 + 3] = T[3]
                if n - io * 6 > 4:
                    B[io * 6 + 4] = T[4]
                if n - io * 6 > 5:
                    B[io * 6 + 5] = T[5]
""", *({"n": n} for n in range(14)))
    loops = [node for node in walk(func.body) if isinstance(node, For) and node.loop_var.name == "k"]
    stores = [sum(isinstance(node, BufferStore) for node in walk(loop.body)) for loop in loops]
    guards = [sum(isinstance(node, IfThenElse) for node in walk(loop.body)) for loop in loops]
    assert stores == [6, 6, 4], str(func)
    assert guards == [0, 1, 4], str(func)


def test_a_loop_remains_without_iterations_of_an_unrolled_loop() -> None:
    func = unroll_loops(parse("""
def f(A: Buffer("float32", (8,))):
    for i in range(2):
        for j in unrolled(0):
            A[i * 4 + j] = float32(1.0)
"""))

    assert not any(isinstance(node, BufferStore) for node in walk(func.body))
