"""Reads that can be out of bounds: rejected with a point, guarded, or checked at run time."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tecomp
from tecomp import te
from tecomp.compute import Tensor
from tecomp.errors import CallError, LowerError
from tecomp.ir import BufferLoad, walk
from tests.messages import Diagnostic, diagnostic

HERE = Path(__file__).name

A = te.placeholder((8,), name="A")
M = te.placeholder((4, 6), name="M")
n = te.var("n")
S = te.placeholder((n,), name="S")
k = te.reduce_axis((0, 4), name="k")
r = te.reduce_axis((2, 7), name="r")

REFUSED: dict[str, tuple[Callable[[], Tensor], Diagnostic]] = {
    "past the end": (
        lambda: te.compute((8,), lambda i: A[i + 3], name="C"),
        Diagnostic(
            "out-of-bounds-read", stage="C", load="A[i + 3]", tensor="A", shape="8", axis=0,
            index="i + 3", value=8, point=" at i = 5",
        ),
    ),
    "before the start": (
        lambda: te.compute((8,), lambda i: A[i - 1], name="C"),
        Diagnostic(
            "out-of-bounds-read", stage="C", load="A[i - 1]", tensor="A", shape="8", axis=0,
            index="i - 1", value=-1, point=" at i = 0",
        ),
    ),
    "second index": (
        lambda: te.compute((4, 6), lambda i, j: M[i, i + j], name="C"),
        Diagnostic(
            "out-of-bounds-read", stage="C", load="M[i, i + j]", tensor="M", shape="4, 6", axis=1,
            index="i + j", value=6, point=" at i = 1, j = 5",
        ),
    ),
    "strided": (
        lambda: te.compute((5,), lambda i: A[2 * i], name="C"),
        Diagnostic(
            "out-of-bounds-read", stage="C", load="A[2 * i]", tensor="A", shape="8", axis=0,
            index="2 * i", value=8, point=" at i = 4",
        ),
    ),
    "reversed": (
        lambda: te.compute((8,), lambda i: A[8 - i], name="C"),
        Diagnostic(
            "out-of-bounds-read", stage="C", load="A[8 - i]", tensor="A", shape="8", axis=0,
            index="8 - i", value=8, point=" at i = 0",
        ),
    ),
    "in a reduction": (
        lambda: te.compute((6,), lambda i: te.sum(A[i + k], axis=k), name="C"),
        Diagnostic(
            "out-of-bounds-read", stage="C", load="A[i + k]", tensor="A", shape="8", axis=0,
            index="i + k", value=8, point=" at i = 5, k = 3",
        ),
    ),
    "a reduction that starts late": (
        lambda: te.compute((2,), lambda i: te.sum(A[r + i + 1], axis=r), name="C"),
        Diagnostic(
            "out-of-bounds-read", stage="C", load="A[r + i + 1]", tensor="A", shape="8", axis=0,
            index="r + i + 1", value=8, point=" at i = 1, r = 6",
        ),
    ),
    "a constant": (
        lambda: te.compute((2,), lambda i: A[9], name="C"),
        Diagnostic(
            "out-of-bounds-read", stage="C", load="A[9]", tensor="A", shape="8", axis=0, index="9",
            value=9, point=" at i = 0",
        ),
    ),
    "nowhere at all": (
        lambda: te.compute((), lambda: A[8], name="C"),
        Diagnostic(
            "out-of-bounds-read", stage="C", load="A[8]", tensor="A", shape="8", axis=0, index="8",
            value=8, point="",
        ),
    ),
    "guard that is too weak": (
        lambda: te.compute((8,), lambda i: te.if_then_else(i > 0, A[i - 2], 0.0), name="C"),
        Diagnostic(
            "out-of-bounds-read", stage="C", load="A[i - 2]", tensor="A", shape="8", axis=0,
            index="i - 2", value=-1, point=" at i = 1",
        ),
    ),
    "Select does not guard": (
        lambda: te.compute((8,), lambda i: te.Select(i > 0, A[i - 1], te.const(0.0)), name="C"),
        Diagnostic(
            "out-of-bounds-read", stage="C", load="A[i - 1]", tensor="A", shape="8", axis=0,
            index="i - 1", value=-1, point=" at i = 0",
        ),
    ),
    "symbolic size": (
        lambda: te.compute((n,), lambda i: S[i + 1], name="C"),
        Diagnostic(
            "out-of-bounds-read", stage="C", load="S[i + 1]", tensor="S", shape="n", axis=0,
            index="i + 1", value=1, point=" at n = 1, i = 0",
        ),
    ),
    "where= that is too weak": (
        lambda: te.compute((8,), lambda i: te.sum(A[i + k], axis=k, where=i + k <= 8), name="C"),
        Diagnostic(
            "out-of-bounds-read", stage="C", load="A[i + k]", tensor="A", shape="8", axis=0,
            index="i + k", value=8, point=" at i = 5, k = 3",
        ),
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_read_that_can_leave_the_tensor_is_refused(case: str, nest: Any) -> None:
    make, expected = REFUSED[case]
    C = make()
    s = te.create_schedule(C)
    arguments = [*C.op.input_tensors, C]

    with pytest.raises(LowerError) as caught:
        nest(s, arguments)

    assert diagnostic(caught.value) == expected


@pytest.mark.parametrize(("condition", "value"), [("all", 0), ("negative", -1)])
def test_a_refusal_that_depends_on_a_number_without_bounds(
    nest: Any, condition: str, value: int
) -> None:
    """A scalar that is not an extent has no minimum, so the point has the value nearest to 0."""
    expected = n < 0 if condition == "negative" else te.any(n < 5, n >= 0)
    C = te.compute((8,), lambda i: te.if_then_else(expected, A[i + 1], 0.0), name="C")
    s = te.create_schedule(C)

    with pytest.raises(LowerError) as caught:
        nest(s, [n, A, C])

    assert diagnostic(caught.value) == Diagnostic(
        "out-of-bounds-read", stage="C", load="A[i + 1]", tensor="A", shape="8", axis=0, index="i + 1",
        value=8, point=f" at n = {value}, i = 7",
    )


def test_a_refusal_shows_the_read_in_the_source(nest: Any) -> None:
    C = te.compute((8,), lambda i: A[i] + A[i + 1], name="C")
    s = te.create_schedule(C)

    with pytest.raises(LowerError) as caught:
        nest(s, [A, C])

    location = caught.value.location
    assert location is not None
    assert Path(location.file).name == HERE
    assert location.text == "A[i + 1]"
    lines = str(caught.value).splitlines()
    assert lines[1].endswith(f"{HERE}:{location.line}")
    assert lines[2][lines[3].index("^") : lines[3].rindex("^") + 1] == "A[i + 1]"


def test_a_read_is_checked_also_where_its_stage_is_inlined(nest: Any) -> None:
    P = te.compute((8,), lambda i: A[i] + 1.0, name="P")
    C = te.compute((8,), lambda i: P[i + 2], name="C")
    s = te.create_schedule(C)
    s[P].compute_inline()

    with pytest.raises(LowerError) as caught:
        nest(s, [A, C])

    assert diagnostic(caught.value) == (
        Diagnostic(
            "out-of-bounds-read", stage="C", load="A[i + 2]", tensor="A", shape="8", axis=0,
            index="i + 2", value=8, point=" at i = 6",
        )
    )


INSIDE: dict[str, Callable[[], tuple[Tensor, Callable[[Any], Any]]]] = {
    "guarded on the left": lambda: (
        te.compute((8,), lambda i: te.if_then_else(i >= 1, A[i - 1], 0.0), name="C"),
        lambda a: np.concatenate([[0], a[:-1]]),
    ),
    "guarded on the right by the other branch": lambda: (
        te.compute((8,), lambda i: te.if_then_else(i >= 7, -1.0, A[i + 1]), name="C"),
        lambda a: np.concatenate([a[1:], [-1]]),
    ),
    "guarded by all": lambda: (
        te.compute(
            (12,), lambda i: te.if_then_else(te.all(i >= 2, i < 10), A[i - 2], 0.0), name="C"
        ),
        lambda a: np.pad(a, 2),
    ),
    "guarded by any": lambda: (
        te.compute(
            (12,), lambda i: te.if_then_else(te.any(i < 2, i >= 10), 0.0, A[i - 2]), name="C"
        ),
        lambda a: np.pad(a, 2),
    ),
    "guarded twice": lambda: (
        te.compute(
            (12,),
            lambda i: te.if_then_else(i >= 2, te.if_then_else(i < 10, A[i - 2], 0.0), 0.0),
            name="C",
        ),
        lambda a: np.pad(a, 2),
    ),
    "reversed": lambda: (te.compute((8,), lambda i: A[7 - i], name="C"), lambda a: a[::-1]),
    "strided": lambda: (te.compute((4,), lambda i: A[2 * i + 1], name="C"), lambda a: a[1::2]),
    "clamped": lambda: (
        te.compute((12,), lambda i: A[te.max(0, te.min(i - 2, 7))], name="C"),
        lambda a: np.pad(a, 2, mode="edge"),
    ),
    "wrapped": lambda: (
        te.compute((8,), lambda i: A[(i - 3) % 8], name="C"), lambda a: np.roll(a, 3),
    ),
    "in a reduction with where=": lambda: (
        te.compute((8,), lambda i: te.sum(A[i + k], axis=k, where=i + k < 8), name="C"),
        lambda a: np.array([a[i : i + 4].sum() for i in range(8)]),
    ),
    "a reduction that starts late": lambda: (
        te.compute((2,), lambda i: te.sum(A[r + i], axis=r), name="C"),
        lambda a: np.array([a[2:7].sum(), a[3:8].sum()]),
    ),
}


@pytest.mark.parametrize("case", INSIDE)
def test_a_read_that_stays_inside_needs_no_check(case: str, run: Any) -> None:
    C, oracle = INSIDE[case]()
    s = te.create_schedule(C)
    a = np.arange(1, 9, dtype=np.float32)
    c = np.full([int(str(extent)) for extent in C.shape], np.nan, np.float32)

    func = run(s, [A, C], a, c)

    assert func.sites == ()
    np.testing.assert_array_equal(c, oracle(a))


def test_symbolic_sizes_are_not_negative(run: Any) -> None:
    C = te.compute((n,), lambda i: S[n - 1 - i], name="C")
    s = te.create_schedule(C)
    a = np.arange(5, dtype=np.float32)
    c = np.full(5, np.nan, np.float32)

    func = run(s, [S, C], a, c)

    assert func.sites == ()
    np.testing.assert_array_equal(c, a[::-1])


IDX = te.placeholder((5,), "int32", name="IDX")


@pytest.mark.parametrize("vectorized", [False, True])
def test_symbolic_bounds_are_checked_at_run_time(vectorized: bool) -> None:
    m = te.var("m")
    B = te.placeholder((m,), name="B")
    C = te.compute((m,), lambda i: S[0] + S[n - 1] + B[i], name="C")
    s = te.create_schedule(C)
    if vectorized:
        s[C].vectorize(s[C].split(C.op.axis[0], 4)[1])
    kernel = tecomp.build(s, [S, B, C])

    for count, length in ((1, 6), (3, 5), (0, 0), (2, 0)):
        source, b = np.arange(1, count + 1, dtype="float32"), np.ones(length, "float32")
        c = np.zeros_like(b)
        kernel(source, b, c)
        np.testing.assert_array_equal(c, b + source[:1].sum() + source[-1:].sum() if length else b)
    with pytest.raises(CallError) as error:
        kernel(np.zeros(0, "float32"), np.ones(6, "float32"), np.zeros(6, "float32"))
    line = C.op.location.line if C.op.location else 0
    assert diagnostic(error.value) == (
        Diagnostic("out-of-bounds", value=0, text=f"{__file__}:{line}: S[0] (axis 0 of S[n])")
    )


def test_a_gather_is_checked_at_run_time(run: Any) -> None:
    C = te.compute((5, 6), lambda i, j: M[IDX[i], j] * 2.0, name="C")
    s = te.create_schedule(C)
    m = np.arange(24, dtype=np.float32).reshape(4, 6)
    index = np.array([3, 0, 2, 2, 1], np.int32)
    c = np.full((5, 6), np.nan, np.float32)

    func = run(s, [M, IDX, C], m, index, c)

    np.testing.assert_array_equal(c, m[index] * 2)
    (site,) = func.sites
    line = C.op.location.line if C.op.location else 0
    assert site.endswith(f"{HERE}:{line}: M[IDX[i], j] (axis 0 of M[4, 6])")


def test_a_gather_of_a_tensor_of_computed_size_in_two_branches() -> None:
    P = te.placeholder((n * 2,), name="P")

    def value(i: Any) -> Any:
        gathered = P[IDX[i]]
        return te.if_then_else(i < 3, gathered, gathered + 1.0)

    C = te.compute((5,), value, name="C")
    kernel = tecomp.build(te.create_schedule(C), [P, IDX, C, n])
    p, index = np.arange(4, dtype=np.float32), np.array([3, 0, 2, 2, 1], np.int32)
    c = np.empty(5, np.float32)
    kernel(p, index, c, 2)

    np.testing.assert_array_equal(c, p[index] + np.array([0, 0, 0, 1, 1], np.float32))


@pytest.mark.parametrize("bad", [-1, 4])
def test_a_gather_out_of_bounds_is_an_error(bad: int, run: Any) -> None:
    C = te.compute((5, 6), lambda i, j: M[IDX[i], j] * 2.0, name="C")
    s = te.create_schedule(C)
    m = np.zeros((4, 6), np.float32)
    index = np.array([3, 0, bad, 2, 1], np.int32)
    c = np.zeros((5, 6), np.float32)

    with pytest.raises(CallError) as caught:
        run(s, [M, IDX, C], m, index, c)

    line = C.op.location.line if C.op.location else 0
    assert diagnostic(caught.value) == Diagnostic(
        "out-of-bounds", index=bad, site=f"{__file__}:{line}: M[IDX[i], j] (axis 0 of M[4, 6])",
    )


def test_only_the_axes_that_need_it_are_checked(nest: Any) -> None:
    J = te.placeholder((5,), "int32", name="J")
    C = te.compute((5, 3), lambda i, j: M[IDX[i], 2 * j] + M[2, J[i]], name="C")
    s = te.create_schedule(C)

    func = nest(s, [M, IDX, J, C])

    guarded = [
        node for node in walk(func.body)
        if isinstance(node, BufferLoad) and node.predicate is not None
    ]
    assert len(guarded) == 2
    assert [site.partition(": ")[2] for site in func.sites] == [
        "M[IDX[i], 2 * j] (axis 0 of M[4, 6])",
        "M[2, J[i]] (axis 1 of M[4, 6])",
    ]


def test_a_guard_on_data_is_no_proof_but_still_a_guard(run: Any) -> None:
    """Sets cannot represent the guard, so the read is checked, but only where the guard holds."""
    C = te.compute((8,), lambda i: te.if_then_else(A[i] > 3.0, A[i + 1], -1.0), name="C")
    s = te.create_schedule(C)
    a = np.array([1, 5, 2, 9, 0, 4, 7, 3], np.float32)
    c = np.full(8, np.nan, np.float32)

    func = run(s, [A, C], a, c)

    assert len(func.sites) == 1
    np.testing.assert_array_equal(c, [-1, 2, -1, 0, -1, 7, 3, -1])
    with pytest.raises(CallError) as error:
        run(s, [A, C], np.full(8, 9, np.float32), c)
    line = C.op.location.line if C.op.location else 0
    assert diagnostic(error.value) == (
        Diagnostic("out-of-bounds", index=8, site=f"{__file__}:{line}: A[i + 1] (axis 0 of A[8])")
    )


def test_a_gather_of_a_producer_computes_all_of_it(count: Any) -> None:
    P = te.compute((4, 6), lambda i, j: M[i, j] + 1.0, name="P")
    C = te.compute((5, 6), lambda i, j: P[IDX[i], j], name="C")
    s = te.create_schedule(C)
    s[P].compute_at(s[C], C.op.axis[0])
    m = np.arange(24, dtype=np.float32).reshape(4, 6)
    index = np.array([3, 0, 2, 2, 1], np.int32)
    c = np.full((5, 6), np.nan, np.float32)

    counts = count(s, [M, IDX, C], P, m, index, c)

    np.testing.assert_array_equal(c, m[index] + 1)
    np.testing.assert_array_equal(counts, np.full((4, 6), 5))
