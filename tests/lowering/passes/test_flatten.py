"""`flatten_buffer` computes one index for each physical axis."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import pytest

from tecomp.codegen import Kernel
from tecomp.errors import CallError, DefinitionError, InternalError, LowerError
from tecomp.ir import (
    INT64,
    Buffer,
    BufferLoad,
    BufferStore,
    Const,
    PrimFunc,
    Ramp,
    Var,
    evaluate,
    index_value,
    parse,
    verify,
)
from tecomp.lowering import flatten_buffer
from tests.messages import Diagnostic, diagnostic

Check = Callable[..., PrimFunc]


def test_row_major(check: Check) -> None:
    check(flatten_buffer, """
def f(A: Buffer("float32", (4, 5, 6)), B: Buffer("float32", (6, 20))):
    for i in range(4):
        for j in range(5):
            for k in range(6):
                B[k, i * 5 + j] = A[i, j, k] + float32(1.0)
""", """
def f(A: Buffer("float32", (120,)), B: Buffer("float32", (120,))):
    for i in range(4):
        for j in range(5):
            for k in range(6):
                B[k * 20 + i * 5 + j] = A[i * 30 + j * 6 + k] + float32(1.0)
""")


def test_separators(check: Check) -> None:
    """Three groups of axes become three physical axes; the last index is a vector."""
    check(flatten_buffer, """
def f(A: Buffer("float32", (2, 3, 4, 8), axis_separators=(0, 2))):
    for i in range(2):
        for j in range(3):
            A[i, j, 1, ramp(4, 1, 4)] = A[i, j, 2, ramp(0, 2, 4)]
""", """
def f(A: Buffer("float32", (2, 12, 8), axis_separators=(0, 1))):
    for i in range(2):
        for j in range(3):
            A[i, j * 4 + 1, ramp(4, 1, 4)] = A[i, j * 4 + 2, ramp(0, 2, 4)]
""")


def test_symbolic_shapes(check: Check) -> None:
    check(flatten_buffer, """
def f(A: Buffer("float32", (n, m, 4)), m: "int64", n: "int64"):
    for i in range(n):
        for j in range(m):
            A[i, j, ramp(0, 1, 4)] = A[n - 1 - i, j, ramp(0, 1, 4)]
""", """
def f(A: Buffer("float32", (n * m * 4,)), m: "int64", n: "int64"):
    for i in range(n):
        for j in range(m):
            A[ramp(i * m * 4 + j * 4, 1, 4)] = A[ramp((n - 1 - i) * m * 4 + j * 4, 1, 4)]
""", {"n": 3, "m": 2}, {"n": 0, "m": 2})


def test_rank_0_and_extent_0(check: Check) -> None:
    check(flatten_buffer, """
def f(A: Buffer("float32", ()), B: Buffer("float32", (0, 5))):
    A[()] = A[()] + float32(1.0)
    for i in range(0):
        B[i, 2] = A[()]
""", """
def f(A: Buffer("float32", (1,)), B: Buffer("float32", (0,))):
    A[0] = A[0] + float32(1.0)
    for i in range(0):
        B[i * 5 + 2] = A[0]
""")


def test_strides_of_allocations(check: Check) -> None:
    check(flatten_buffer, """
def f(A: Buffer("float32", (4, 8))):
    with Allocate(Buffer("float32", (4, 8), strides=(9, 1))) as T:
        for i in range(4):
            for j in range(8):
                T[i, j] = A[i, j]
        for i in range(4):
            for j in range(8):
                A[i, j] = T[3 - i, j]
""", """
def f(A: Buffer("float32", (32,))):
    with Allocate(Buffer("float32", (36,))) as T:
        for i in range(4):
            for j in range(8):
                T[i * 9 + j] = A[i * 8 + j]
        for i in range(4):
            for j in range(8):
                A[i * 8 + j] = T[j - i * 9 + 27]
""")


def test_views_and_vector_types(check: Check) -> None:
    check(flatten_buffer, """
def f(A: Buffer("float32", (4, 16))):
    with DeclBuffer(Buffer("float32x4", (4, 4), data=A.data)) as A4:
        for i in range(4):
            A4[i, 1] = A4[i, 2] + A4[i, 3]
""", """
def f(A: Buffer("float32", (64,))):
    with DeclBuffer(Buffer("float32x4", (16,), data=A.data)) as A4:
        for i in range(4):
            A4[i * 4 + 1] = A4[i * 4 + 2] + A4[i * 4 + 3]
""")


def test_views_of_other_extents_are_other_buffers(check: Check) -> None:
    """A read inside an index refers to the view that is declared in the same scope."""
    check(flatten_buffer, """
def f(I: Buffer("int64", (24,)), B: Buffer("int64", (2,))):
    with DeclBuffer(Buffer("int64", (2, 8), data=I.data)) as V:
        B[0] = V[1, V[0, 2] % 8]
    with DeclBuffer(Buffer("int64", (3, 8), data=I.data)) as V:
        B[1] = V[1, V[0, 2] % 8]
""", """
def f(I: Buffer("int64", (24,)), B: Buffer("int64", (2,))):
    with DeclBuffer(Buffer("int64", (16,), data=I.data)) as V:
        B[0] = V[V[2] % 8 + 8]
    with DeclBuffer(Buffer("int64", (24,), data=I.data)) as V:
        B[1] = V[V[2] % 8 + 8]
""")


def test_strides_and_a_symbolic_extent(check: Check) -> None:
    """A tensor of `n` rows with a padded row stride, as `storage_align` produces."""
    check(flatten_buffer, """
def f(B: Buffer("float32", (n, 3)), n: "int64"):
    with Allocate(Buffer("float32", (n, 3), strides=(5, 1))) as A:
        for i in range(n):
            A[i, 2] = float32(1.0)
            B[i, 2] = A[i, 2]
""", """
def f(B: Buffer("float32", (n * 3,)), n: "int64"):
    with Allocate(Buffer("float32", (n * 5,))) as A:
        for i in range(n):
            A[i * 5 + 2] = float32(1.0)
            B[i * 3 + 2] = A[i * 5 + 2]
""", {"n": 4}, {"n": 0})


def test_a_gather_stays_a_vector() -> None:
    """A scalar index is broadcast to the lanes of an index vector that is not a ramp."""
    lanes = Ramp(index_value(0), index_value(1), 4)
    A, idx = Buffer("A", (8, 16)), Buffer("idx", (4,), INT64)
    store = BufferStore(A, BufferLoad(A, (Const(1), BufferLoad(idx, (lanes,)))), (Const(2), lanes))

    flat = flatten_buffer(PrimFunc("f", (A, idx), store))

    assert str(flat.body) == (
        "A[ramp(32, 1, 4)] = A[broadcast(16, 4) + idx[ramp(0, 1, 4)]]")


def test_refusals() -> None:
    mapped = parse("""
@layout_transform_map(A=[lambda i, j: [j, i]])
def f(A: Buffer("float32", (4, 8))):
    pass
""")
    realized = parse("""
def f():
    with BufferRealize(Buffer("float32", (4, 8)), bounds=((0, 4), (0, 8))) as T:
        T[1, 2] = float32(0.0)
""")
    padded = parse("""
@pad_value(A=lambda i, j: float32(0.0))
def f(A: Buffer("float32", (4, 8))):
    pass
""")
    for func, expected in [
        (mapped, Diagnostic("lower", data="A", unlowered="layout maps", step="apply_buffer_transforms")),
        (padded, Diagnostic("lower", data="A", unlowered="a pad value", step="fill_padding")),
        (realized, Diagnostic("lower", buffer="T")),
    ]:
        with pytest.raises(LowerError) as error:
            flatten_buffer(func)
        assert diagnostic(error.value) == expected


def test_separators_that_leave_a_group_empty() -> None:
    A = Buffer("A", (4, 8), axis_separators=(1,))

    with pytest.raises(DefinitionError) as error:
        flatten_buffer(PrimFunc("f", (A,), BufferStore(A, Const(0), (Var("i"), Var("j")))))

    assert diagnostic(error.value) == (
        Diagnostic("layout", cuts=[1], rank=2)
    )


def test_more_places_than_indices_count() -> None:
    """More than 2**63 - 1 elements are rejected: an index would overflow and not parse back."""
    A = Buffer("A", (8, 2**60))

    with pytest.raises(LowerError) as error:
        flatten_buffer(PrimFunc("f", (A,), BufferStore(A, Const(0), (Var("i"), Var("j")))))

    assert diagnostic(error.value) == (
        Diagnostic("limit-exceeded", buffer="A", count=9223372036854775808)
    )


def test_views_of_memory_with_several_axes(check: Check) -> None:
    """Views flatten to the rank of their memory; a view can have fewer and shorter rows."""
    check(flatten_buffer, """
def f(A: Buffer("float32", (8, 8), axis_separators=(0,))):
    with DeclBuffer(Buffer("float32", (2, 3, 2, 3), axis_separators=(1,), data=A.data)) as V:
        V[1, 2, 1, 0] = V[0, 1, 1, 2]
""", """
def f(A: Buffer("float32", (8, 8), axis_separators=(0,))):
    with DeclBuffer(Buffer("float32", (6, 6), axis_separators=(0,), data=A.data)) as V:
        V[5, 3] = V[1, 5]
""")


@pytest.mark.parametrize(
    ("view", "problem"),
    [
        ('(64,)', "`V` is 1-d after flattening, and its memory `A` is 2-d"),
        ('(8, 8)', "`V` is 1-d after flattening, and its memory `A` is 2-d"),
        ('(2, 2, 8), axis_separators=(0, 1)',
         "`V` is 3-d after flattening, and its memory `A` is 2-d"),
        ('(4, 16), axis_separators=(0,)',
         "a row of `V` takes 64 bytes, and one of its memory `A` takes 32"),
        ('(9, 8), axis_separators=(0,)', "`V` has 9 rows, and its memory `A` has 8"),
    ],
)
def test_views_with_another_addressing_are_refused(view: str, problem: str) -> None:
    """A view with other rows would read a table of rows as elements, or past the end of a row."""
    func = parse(f"""
def f(A: Buffer("float32", (8, 8), axis_separators=(0,))):
    with DeclBuffer(Buffer("float32", {view}, data=A.data)) as V:
        A[0, 0] = float32(4.0)
""")
    with pytest.raises(LowerError) as error:
        flatten_buffer(func)
    with pytest.raises(InternalError) as malformed:
        verify(func)

    assert diagnostic(error.value) == (
        Diagnostic("lower", problem=problem)
    )
    node = f'with DeclBuffer(Buffer("float32", {view}, data=A.data)) as V:'
    assert diagnostic(malformed.value) == (
        Diagnostic("internal", function="f", node=node, problem=problem)
    )


OFFSET = """
def f(A: Buffer("float32", (40,)), B: Buffer("float32", (3, 4)), o: "int64"):
    with DeclBuffer(Buffer("float32", (3, 4), strides=(8, 1), elem_offset=o + 2, data=A.data)) as V:
        for i in range(3):
            for j in vectorized(4):
                B[i, j] = V[i, j]
                V[i, j] = float32(0.0)
"""


def test_indices_of_a_view_include_its_offset() -> None:
    func = flatten_buffer(parse(OFFSET))
    assert flatten_buffer(func) == func
    verify(func, flat=True)
    memory = np.arange(40, dtype=np.float32)
    part = np.lib.stride_tricks.as_strided(memory[5:], (3, 4), (32, 4))
    expected = part.copy()

    for run in (
        partial(evaluate, parse(OFFSET)), partial(evaluate, func), partial(_call, Kernel(func))
    ):
        found, rows = memory.copy(), np.zeros((3, 4), np.float32)
        run([found, rows if run.args == (parse(OFFSET),) else rows.reshape(-1), 3])
        np.testing.assert_array_equal(rows, expected)
        assert found.sum() == memory.sum() - expected.sum()


def test_a_view_that_begins_before_its_memory() -> None:
    arrays = [np.zeros(40, np.float32), np.zeros((3, 4), np.float32)]
    with pytest.raises(CallError) as error:
        evaluate(parse(OFFSET), [*arrays, -3])

    assert diagnostic(error.value) == (
        Diagnostic("out-of-bounds", name="V", offset=1)
    )


def test_an_offset_needs_one_physical_axis() -> None:
    func = parse("""
def f(A: Buffer("float32", (8, 8), axis_separators=(0,))):
    with DeclBuffer(Buffer("float32", (2, 8), axis_separators=(0,), elem_offset=8, data=A.data)) as V:
        A[0, 0] = V[0, 0]
""")
    with pytest.raises(LowerError) as error:
        flatten_buffer(func)

    assert diagnostic(error.value) == (
        Diagnostic(
            "lower", problem="`V` has an elem_offset and 2 physical axes; an offset needs 1 axis",
        )
    )


STRIDED = """
def f(A: Buffer("float32", (3, n), strides=(6, 1)), O: Buffer("float32", (4,)), n: "int64"):
    with DeclBuffer(Buffer("float32", (3, n), strides=(6, 1), data=A.data)) as V:
        with DeclBuffer(Buffer("float32", (3, 4), strides=(6, 1), data=A.data)) as W:
            O[0] = V[2, 1] + A[2, 1]
            V[1, 1] = float32(50.0)
            O[1] = A[1, 1]
            A[0, 2] = float32(60.0)
            O[2] = W[0, 2]
"""


def _call(kernel: Kernel, args: Sequence[Any]) -> None:
    kernel(*args)


def test_a_view_with_the_strides_of_a_parameter_is_no_parameter() -> None:
    """A view equal to a parameter except for its name flattens to one axis; the parameter is kept.

    Both extents end at the last element, because memory after that element may not exist.
    """
    func = flatten_buffer(parse(STRIDED))

    assert str(func) == """\
def f(A: Buffer("float32", (3, n), strides=(6, 1), flat=True), O: Buffer("float32", (4,)), n: "int64"):
    with DeclBuffer(Buffer("float32", (select(n <= 0, 0, n + 12),), data=A.data)) as V:
        with DeclBuffer(Buffer("float32", (16,), data=A.data)) as W:
            O[0] = V[13] + A[13]
            V[7] = float32(50.0)
            O[1] = A[7]
            A[2] = float32(60.0)
            O[2] = W[2]"""
    verify(func, flat=True)
    kernel = Kernel(func)
    for run in (
        partial(evaluate, parse(STRIDED)), partial(evaluate, func), partial(_call, kernel)
    ):
        memory, found = np.arange(18, dtype=np.float32), np.zeros(4, np.float32)
        run([np.lib.stride_tricks.as_strided(memory, (3, 4), (24, 4)), found, 4])
        np.testing.assert_array_equal(found, [26.0, 50.0, 60.0, 0.0])
