"""`lower_storage` allocates the footprint of each realized region."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from tecomp.errors import LowerError
from tecomp.ir import BufferRealize, PrimFunc, Range, index_value, parse, seq
from tecomp.lowering import double_buffers, lower_storage, roll_buffers
from tests.messages import Diagnostic, diagnostic

Check = Callable[..., PrimFunc]


def test_indices_count_from_the_start_of_the_region(check: Check) -> None:
    check(lower_storage, """
def f(A: Buffer("float32", (34, 8)), B: Buffer("float32", (32, 8))):
    for io in range(4):
        with BufferRealize(Buffer("float32", (34, 8), scope="local"), bounds=((io * 8, 10), (0, 8))) as T:
            for ii in range(10):
                for j in range(8):
                    T[io * 8 + ii, j] = A[io * 8 + ii, j] * float32(2.0)
            for ii in range(8):
                for j in range(8):
                    B[io * 8 + ii, j] = T[io * 8 + ii, j] + T[io * 8 + ii + 2, j]
""", """
def f(A: Buffer("float32", (34, 8)), B: Buffer("float32", (32, 8))):
    for io in range(4):
        with Allocate(Buffer("float32", (10, 8), scope="local")) as T:
            for ii in range(10):
                for j in range(8):
                    T[ii, j] = A[io * 8 + ii, j] * float32(2.0)
            for ii in range(8):
                for j in range(8):
                    B[io * 8 + ii, j] = T[ii, j] + T[ii + 2, j]
""", flat=False)


def test_bounded_and_symbolic_extents(check: Check) -> None:
    """A bounded tail is allocated at its bound; an unbounded extent stays an expression."""
    check(lower_storage, """
def f(A: Buffer("float32", (n,)), B: Buffer("float32", (n,)), *, n: "int64"):
    with BufferRealize(Buffer("float32", (n,)), bounds=((0, n),)) as T:
        for i in range(n):
            T[i] = A[i]
        for io in range((n + 7) // 8):
            with BufferRealize(Buffer("float32", (n,)), bounds=((io * 8, min(8, n - io * 8)),)) as U:
                for ii in range(min(8, n - io * 8)):
                    U[io * 8 + ii] = T[io * 8 + ii]
                for ii in range(min(8, n - io * 8)):
                    B[io * 8 + ii] = U[io * 8 + ii]
""", """
def f(A: Buffer("float32", (n,)), B: Buffer("float32", (n,)), *, n: "int64"):
    with Allocate(Buffer("float32", (n,))) as T:
        for i in range(n):
            T[i] = A[i]
        for io in range((n + 7) // 8):
            with Allocate(Buffer("float32", (8,))) as U:
                for ii in range(min(8, n - io * 8)):
                    U[ii] = T[io * 8 + ii]
                for ii in range(min(8, n - io * 8)):
                    B[io * 8 + ii] = U[ii]
""", {"n": 0}, {"n": 1}, {"n": 19}, flat=False)


def test_alignment_becomes_strides(check: Check) -> None:
    """The stride of axis 0 is 3 modulo 8 and becomes 11; the stride of axis 1 stays 1."""
    check(lower_storage, """
def f(A: Buffer("float32", (4, 10))):
    with BufferRealize(Buffer("float32", (4, 10)), bounds=((0, 4), (0, 10)), aligns=((0, 8, 3),)) as T:
        for i in range(4):
            for j in range(10):
                T[i, j] = A[i, j]
        for i in range(4):
            for j in range(10):
                A[i, j] = T[3 - i, j]
""", """
def f(A: Buffer("float32", (4, 10))):
    with Allocate(Buffer("float32", (4, 10), strides=(11, 1))) as T:
        for i in range(4):
            for j in range(10):
                T[i, j] = A[i, j]
        for i in range(4):
            for j in range(10):
                A[i, j] = T[3 - i, j]
""", flat=False)


def test_separators_and_empty_regions(check: Check) -> None:
    check(lower_storage, """
def f(A: Buffer("float32", (8,))):
    with BufferRealize(Buffer("float32", (4, 8), scope="global.texture", axis_separators=(0,)), bounds=((2, 1), (0, 8))) as T:
        for j in range(8):
            T[2, j] = A[j]
        for j in range(8):
            A[j] = T[2, 7 - j]
    for i in range(0):
        with BufferRealize(Buffer("float32", (4,)), bounds=((0, 0),)) as U:
            U[i] = A[i]
""", """
def f(A: Buffer("float32", (8,))):
    with Allocate(Buffer("float32", (1, 8), scope="global.texture", axis_separators=(0,))) as T:
        for j in range(8):
            T[0, j] = A[j]
        for j in range(8):
            A[j] = T[0, 7 - j]
""", flat=False)


def test_one_buffer_in_two_regions() -> None:
    """Unrolled copies realize one buffer with different bounds; one index is used in both."""
    func = parse("""
def f(A: Buffer("float32", (12,)), B: Buffer("float32", (12,))):
    with BufferRealize(Buffer("float32", (12,)), bounds=((4, 4),)) as T:
        with BufferRealize(Buffer("float32", (12,)), bounds=((2, 9),)) as U:
            for i in range(4):
                T[i + 4] = A[i + 4]
                U[i + 4] = T[i + 4]
                B[i + 4] = T[i + 4] + U[i + 4]
""")
    realized = func.body
    assert isinstance(realized, BufferRealize)
    other = replace(realized, bounds=(Range(index_value(0), index_value(12)),))
    lowered = lower_storage(replace(func, body=seq(realized, other)))

    assert f"{lowered}\n" == '''\
def f(A: Buffer("float32", (12,)), B: Buffer("float32", (12,))):
    with Allocate(Buffer("float32", (4,))) as T:
        with Allocate(Buffer("float32", (9,))) as U:
            for i in range(4):
                T[i] = A[i + 4]
                U[i + 2] = T[i]
                B[i + 4] = T[i] + U[i + 2]
    with Allocate(Buffer("float32", (12,))) as T:
        with Allocate(Buffer("float32", (9,))) as U:
            for i in range(4):
                T[i + 4] = A[i + 4]
                U[i + 2] = T[i + 4]
                B[i + 4] = T[i + 4] + U[i + 2]
'''


def test_views_of_a_region_count_from_its_start(check: Check) -> None:
    check(lower_storage, """
def f(A: Buffer("float32", (32, 8))):
    for io in range(4):
        with BufferRealize(Buffer("float32", (32, 8)), bounds=((io * 8, 8), (0, 8))) as T:
            with DeclBuffer(Buffer("float32", (64,), data=T.data)) as V:
                for k in range(64):
                    V[k] = cast("float32", k)
                A[io, 0] = T[io * 8 + 1, 2]
""", """
def f(A: Buffer("float32", (32, 8))):
    for io in range(4):
        with Allocate(Buffer("float32", (8, 8))) as T:
            with DeclBuffer(Buffer("float32", (64,), data=T.data)) as V:
                for k in range(64):
                    V[k] = cast("float32", k)
                A[io, 0] = T[1, 2]
""", flat=False)


def test_a_view_equal_to_its_memory_stays_a_view(check: Check) -> None:
    """A view equal to its memory except for its name is declared inside the allocation."""
    check(lower_storage, """
def f(A: Buffer("float32", (4, 8))):
    with BufferRealize(Buffer("float32", (4, 8)), bounds=((0, 4), (0, 8))) as T:
        with DeclBuffer(Buffer("float32", (4, 8), data=T.data)) as V:
            V[1, 2] = A[0, 0]
            A[1, 2] = T[1, 2]
""", """
def f(A: Buffer("float32", (4, 8))):
    with Allocate(Buffer("float32", (4, 8))) as T:
        with DeclBuffer(Buffer("float32", (4, 8), data=T.data)) as V:
            V[1, 2] = A[0, 0]
            A[1, 2] = T[1, 2]
""", flat=False)


ROWS_DIFFER = (
    Diagnostic("lower", view="V", buffer="T")
)
IN_TURN = (
    Diagnostic("lower", buffer="V", viewed_buffer="T")
)


@pytest.mark.parametrize(
    ("lower", "more", "expected"),
    [
        (lower_storage, "bounds=((0, 4), (0, 8)), aligns=((0, 16, 1),)", ROWS_DIFFER),
        (lower_storage, "bounds=((0, 4), (0, min(8, n - i)))", ROWS_DIFFER),
        (double_buffers, "bounds=((0, 4), (0, 8)), ahead=i", IN_TURN),
        (roll_buffers, "bounds=((0, 4), (0, 8)), carried=i", IN_TURN),
    ],
)
def test_views_that_do_not_see_the_elements_of_their_region(
    lower: Callable[[PrimFunc], PrimFunc], more: str, expected: Diagnostic
) -> None:
    func = parse(f"""
def f(A: Buffer("float32", (n,)), *, n: "int64"):
    for i in range(n):
        with BufferRealize(Buffer("float32", (4, 8)), {more}) as T:
            with DeclBuffer(Buffer("float32", (32,), data=T.data)) as V:
                T[0, 1] = A[i]
                A[i] = V[1]
""")
    with pytest.raises(LowerError) as error:
        lower(func)

    assert diagnostic(error.value) == expected
