"""Double buffers: printed code, results after each pass, and rejected schedules."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tecomp
from tecomp import te
from tecomp.errors import LowerError, ScheduleError
from tecomp.ir import Buffer
from tecomp.lowering import double_buffers, lower_all
from tecomp.scheduling.schedule import Schedule
from tests.messages import Diagnostic, diagnostic

A = te.placeholder((10, 12), name="A")
k = te.reduce_axis((0, 12), name="k")
P = te.compute((10, 12), lambda i, j: A[i, j] * 2.0, name="P")
Q = te.compute((10, 12), lambda i, j: P[i, j] + 1.0, name="Q")
R = te.compute((10,), lambda i: te.sum(Q[i, k], axis=k), name="R")
W = te.compute((7, 10), lambda i, j: P[i, j] + P[i + 3, j + 2], name="W")
T = te.compute((10,), lambda i: (A[i, 0], A[i, 1]), name="T")
U = te.compute((10,), lambda z: T[0][z] + T[1][z], name="U")


def rows(s: Schedule) -> None:
    s[Q].compute_at(s[R], R.op.axis[0])
    s[P].compute_inline()
    s[Q].double_buffer()


def tiles_of_a_reduction(s: Schedule) -> None:
    outer, inner = s[R].split(k, factor=5)
    s[R].reorder(outer, R.op.axis[0], inner)
    s[P].compute_inline()
    s[Q].compute_at(s[R], outer)
    s[Q].vectorize(Q.op.axis[1])
    s[Q].double_buffer()


def one_in_the_other(s: Schedule) -> None:
    outer, _ = s[R].split(R.op.axis[0], factor=4)
    s[Q].compute_at(s[R], outer)
    s[P].compute_at(s[Q], Q.op.axis[0])
    s[P].double_buffer()
    s[Q].double_buffer()
    s[Q].storage_align(Q.op.axis[0], 16, 5)


def in_a_layout(s: Schedule) -> None:
    s[Q].transform_layout(lambda i, j: [j // 5, i, j % 5], pad_value=0.0)
    s[P].compute_inline()
    outer, inner = s[R].split(R.op.axis[0], factor=3)
    s[Q].compute_at(s[R], outer)
    s[Q].double_buffer()
    s[R].unroll(outer)
    s[R].unroll(inner)


def in_rows(s: Schedule) -> None:
    s[Q].set_scope("global.texture")
    s[Q].transform_layout(lambda i, j: [j % 4, te.AXIS_SEPARATOR, i, j // 4])
    s[P].compute_inline()
    outer, _ = s[R].split(R.op.axis[0], factor=3)
    s[Q].compute_at(s[R], outer)
    s[Q].double_buffer()


def in_threads(s: Schedule) -> None:
    outer, inner = s[R].split(R.op.axis[0], factor=4)
    s[R].parallel(outer)
    s[P].compute_inline()
    s[Q].compute_at(s[R], inner)
    s[Q].double_buffer()


def a_single_iteration(s: Schedule) -> None:
    s[Q].compute_at(s[R], s[R].fuse())
    s[Q].double_buffer()


def overlapping(s: Schedule) -> None:
    outer, inner = s[W].split(W.op.axis[0], factor=3)
    s[P].compute_at(s[W], outer)
    s[P].double_buffer()
    s[W].vectorize(W.op.axis[1])
    s[W].unroll(inner)


CASES = [
    (R, rows), (R, tiles_of_a_reduction), (R, one_in_the_other), (R, in_a_layout), (R, in_rows),
    (R, in_threads), (R, a_single_iteration), (W, overlapping),
]


@pytest.mark.exhaustive(keep=3)
@pytest.mark.parametrize(("output", "decide"), CASES)
def test_numbers_stay_the_same_after_every_pass(
    output: Any, decide: Callable[[Schedule], None]
) -> None:
    s = te.create_schedule(output)
    decide(s)
    a = np.arange(120, dtype="float32").reshape(10, 12)
    expected = (2 * a + 1).sum(1) if output is R else 2 * a[:7, :10] + 2 * a[3:, 2:]

    for name, func in lower_all(s, [A, output]).functions.items():
        assert tecomp.parse(str(func)) == func, name
        found = np.full(expected.shape, np.nan, "float32")
        shapes = [p.shape for p in func.params if isinstance(p, Buffer)]
        sized: list[Any] = [np.reshape(x, s) for x, s in zip((a, found), shapes, strict=True)]
        tecomp.evaluate(func, sized)
        np.testing.assert_array_equal(sized[1].reshape(expected.shape), expected, name)
    found = np.full(expected.shape, np.nan, "float32")
    tecomp.build(s, [A, output], check_bounds=True)(a, found)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(("output", "decide"), CASES)
def test_a_second_run_changes_nothing(output: Any, decide: Callable[[Schedule], None]) -> None:
    s = te.create_schedule(output)
    decide(s)
    func = tecomp.lower(s, [A, output], stop_after="double_buffers")

    assert double_buffers(func) is func
    assert ("(2, " in str(func)) is (decide not in (a_single_iteration, in_rows))


def test_both_copies_share_the_rows_of_a_memory() -> None:
    """The copies extend the last physical axis, because a memory may have a fixed number of rows."""
    s = te.create_schedule(R)
    in_rows(s)

    func = tecomp.lower(s, [A, R])

    assert '"float32", (4, 18)' in str(func)


@pytest.mark.parametrize("size", [0, 1, 2, 3, 9])
def test_any_number_of_iterations(size: int) -> None:
    n = te.var("n")
    X = te.placeholder((n, 5), name="X")
    Y = te.compute((n, 5), lambda i, j: X[i, j] + 1.0, name="Y")
    Z = te.compute((n, 5), lambda i, j: Y[i, 4 - j] * 2.0, name="Z")
    s = te.create_schedule(Z)
    outer, _ = s[Z].split(Z.op.axis[0], factor=2)
    s[Y].compute_at(s[Z], outer)
    s[Y].double_buffer()
    x = np.arange(size * 5, dtype="float32").reshape(size, 5)
    z = np.empty_like(x)

    tecomp.build(s, [X, Z], check_bounds=True)(x, z)

    np.testing.assert_array_equal(z, (x[:, ::-1] + 1) * 2)


def at_the_root(s: Schedule) -> None:
    s[Q].double_buffer()


def in_parallel(s: Schedule) -> None:
    rows(s)
    s[R].parallel(R.op.axis[0])


def side_by_side(s: Schedule) -> None:
    s[P].compute_at(s[R], R.op.axis[0])
    s[Q].compute_at(s[R], R.op.axis[0])
    s[Q].double_buffer()


@pytest.mark.parametrize(
    ("decide", "expected"),
    [
        (at_the_root,
         Diagnostic("loop-carried", where="s[Q].double_buffer", stage="Q")),
        (in_parallel,
         Diagnostic("loop-carried", where="s[Q].double_buffer", axis="i", parent="R")),
        (side_by_side,
         Diagnostic("loop-carried", tensor="Q", buffer="P", name="Q")),
    ],
)
def test_errors_during_lowering(decide: Callable[[Schedule], None], expected: Diagnostic) -> None:
    s = te.create_schedule(R)
    decide(s)

    with pytest.raises(LowerError) as error:
        tecomp.lower(s, [A, R])

    assert diagnostic(error.value) == expected


def test_memory_of_the_caller() -> None:
    s = te.create_schedule(R)
    s[Q].compute_at(s[R], R.op.axis[0])
    s[Q].double_buffer()

    with pytest.raises(LowerError) as error:
        tecomp.lower(s, [A, Q, R])

    assert diagnostic(error.value) == (
        Diagnostic("loop-carried", where="s[Q].double_buffer", stage="Q")
    )


@pytest.mark.parametrize(
    ("tensor", "expected"),
    [
        (R, Diagnostic("requires-storage", where="s[R].double_buffer", stage="R")),
        (T, Diagnostic("pattern-mismatch", where="s[T].double_buffer", stage="T")),
        (A, Diagnostic("requires-storage", stage="A", call="double_buffer")),
    ],
)
def test_errors_of_the_primitive(tensor: Any, expected: Diagnostic) -> None:
    s = te.create_schedule([R, U])

    with pytest.raises(ScheduleError) as error:
        s[T[0] if tensor is T else tensor].double_buffer()

    assert diagnostic(error.value) == expected
