"""Prefetches for later iterations: cache lines, indices in bounds, and unchanged results."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tecomp
from tecomp import te
from tecomp.codegen import emit_assembly
from tecomp.errors import LowerError, ScheduleError
from tecomp.ir import Buffer, Prefetch, PrimFunc, walk
from tecomp.lowering import lower_all
from tecomp.scheduling.schedule import Schedule
from tests.messages import Diagnostic, diagnostic
from tests.numerics import assert_product


def product(rows: int, depth: int, columns: int) -> tuple[te.Tensor, te.Tensor, te.Tensor]:
    A, B = te.placeholder((rows, depth), name="A"), te.placeholder((depth, columns), name="B")
    k = te.reduce_axis((0, depth), name="k")
    C = te.compute((rows, columns), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")
    return A, B, C


A, B, C = product(20, 100, 40)
(k,) = C.op.reduce_axis
P = te.compute((20, 100), lambda i, j: A[i, j] * 2.0, name="P")
W = te.compute((18, 98), lambda i, j: P[i, j] + P[i + 2, j + 2], name="W")


def requests(func: PrimFunc) -> list[str]:
    return [str(node) for node in walk(func.body) if isinstance(node, Prefetch)]


def lines_of_rows(s: Schedule) -> None:
    s[C].prefetch(A, C.op.axis[0], 3)


def panels(s: Schedule) -> None:
    (C,) = (op.output(0) for op in s.outputs)
    A, B = C.op.input_tensors
    jo, ji = s[C].split(C.op.axis[1], factor=16)
    ko, ki = s[C].split(C.op.reduce_axis[0], factor=7)
    s[C].reorder(C.op.axis[0], jo, ko, ki, ji)
    s[C].vectorize(ji)
    s[C].unroll(ki)
    s[C].prefetch(B, ko, 1)
    s[C].prefetch(A, ko, 40)


def at_the_same_iteration(s: Schedule) -> None:
    s[C].prefetch(B, k, 0)


def packed(s: Schedule) -> None:
    s[B].transform_layout(lambda k, j: [j // 8, k, j % 8])
    jo, _ = s[C].split(C.op.axis[1], factor=8)
    s[C].prefetch(B, jo, 1)


def in_parallel(s: Schedule) -> None:
    s[C].parallel(C.op.axis[0])
    s[C].prefetch(A, C.op.axis[0], 1)


def fused(s: Schedule) -> None:
    s[C].prefetch(A, s[C].fuse(*C.op.axis), 5)


@pytest.mark.parametrize(
    ("decide", "expected"),
    [
        (lines_of_rows, ["prefetch(A[min(i + 3, 19), line * 16])"]),
        (at_the_same_iteration, ["prefetch(B[k, j])"]),
        (packed, ["prefetch(B[line, min(j_outer * 8 + 8, 39)])"]),
    ],
)
def test_prefetched_addresses(decide: Callable[[Schedule], None], expected: list[str]) -> None:
    s = te.create_schedule(C)
    decide(s)

    assert requests(tecomp.lower(s, [A, B, C], stop_after="nest")) == expected


@pytest.mark.parametrize(
    "decide", [lines_of_rows, panels, at_the_same_iteration, packed, in_parallel, fused]
)
def test_numbers_stay_the_same(decide: Callable[[Schedule], None]) -> None:
    rng = np.random.default_rng(3)
    a, b = rng.random((20, 100), "float32"), rng.random((100, 40), "float32")
    s = te.create_schedule(C)
    decide(s)
    stored = b
    if decide is packed:
        stored = b.reshape(100, 5, 8).transpose(1, 0, 2).copy()
    c = np.full((20, 40), np.nan, "float32")

    tecomp.build(s, [A, B, C], check_bounds=True)(a, stored, c)

    assert_product(c, a, b)


def test_prefetches_stay_in_bounds_after_every_pass() -> None:
    A, B, C = product(3, 30, 20)
    s = te.create_schedule(C)
    panels(s)
    a, b = np.ones((3, 30), "float32"), np.ones((30, 20), "float32")

    for func in lower_all(s, [A, B, C]).functions.values():
        c = np.zeros((3, 20), "float32")
        shapes = [p.shape for p in func.params if isinstance(p, Buffer)]
        sized: list[Any] = [np.reshape(x, s) for x, s in zip((a, b, c), shapes, strict=True)]
        tecomp.evaluate(func, sized)  # the interpreter rejects out-of-bounds indices
        assert (sized[2] == 30).all()
        assert requests(func)


def test_every_cache_line_of_the_box_is_prefetched() -> None:
    s = te.create_schedule(W)
    outer, _ = s[W].split(W.op.axis[0], factor=4)
    s[W].prefetch(P, outer, 1)
    func = tecomp.lower(s, [A, W], stop_after="nest")

    # The four rows of the next tile and the two rows after it, in 7 lines of 16 elements.
    assert requests(func) == ["prefetch(P[min(i_outer * 4 + line + 4, 19), line_1 * 16])"]
    assert "for line in range(6):" in str(func)
    assert "for line_1 in range(7):" in str(func)


@pytest.mark.parametrize("size", [0, 1, 5, 16, 40])
def test_any_size(size: int) -> None:
    n = te.var("n")
    X = te.placeholder((n, n), name="X")
    Y = te.compute((n, n), lambda i, j: X[j, i] + 1.0, name="Y")
    s = te.create_schedule(Y)
    jo, _ = s[Y].split(Y.op.axis[1], factor=4)
    s[Y].prefetch(X, jo, 1)
    s[Y].prefetch(X, Y.op.axis[0], 2)
    x = np.arange(size * size, dtype="float32").reshape(size, size)
    y = np.empty_like(x)

    tecomp.build(s, [X, Y], check_bounds=True)(x, y)

    np.testing.assert_array_equal(y, x.T + 1)


def test_the_instruction() -> None:
    s = te.create_schedule(C)
    panels(s)

    text = emit_assembly(
        tecomp.lower(s, [A, B, C]), triple="x86_64-unknown-linux-gnu", cpu="znver4"
    )

    assert "prefetcht0" in text


def test_a_prefetch_keeps_its_condition() -> None:
    func = tecomp.parse('''def f(A: Buffer("float32", (8,)), B: Buffer("float32", (8,))):
    for i in range(8):
        prefetch(A.load(i + 1, where=i < 7))
        B[i] = A[i]''')
    a, b = np.arange(8, dtype="float32"), np.zeros(8, "float32")
    tecomp.evaluate(func, [a, b])

    assert tecomp.parse(str(func)) == func
    np.testing.assert_array_equal(a, b)


def computed_inside(s: Schedule) -> None:
    s[P].compute_at(s[W], W.op.axis[0])
    s[W].prefetch(P, W.op.axis[0], 1)


def a_vector(s: Schedule) -> None:
    s[W].vectorize(W.op.axis[1])
    s[W].prefetch(P, W.op.axis[1], 1)


def copied(s: Schedule) -> None:
    s[W].prefetch(P, W.op.axis[0], 1)
    s.cache_read(P, "local", [W])


@pytest.mark.parametrize(
    ("decide", "expected"),
    [
        (computed_inside,
         Diagnostic("loop-carried", where="s[W].prefetch(P, i)", tensor="P")),
        (a_vector,
         Diagnostic("loop-carried", where="s[W].prefetch(P, j)", leaf="j")),
        (copied,
         Diagnostic("loop-carried", where="s[W].prefetch(P, i)", tensor="P")),
    ],
)
def test_errors_during_lowering(decide: Callable[[Schedule], None], expected: Diagnostic) -> None:
    s = te.create_schedule(W)
    decide(s)

    with pytest.raises(LowerError) as error:
        tecomp.lower(s, [A, W])

    assert diagnostic(error.value) == expected


def test_prefetch_limits_the_number_of_lines() -> None:
    X = te.placeholder((300, 300), name="X")
    r, c = te.reduce_axis((0, 300), name="r"), te.reduce_axis((0, 300), name="c")
    Y = te.compute((5,), lambda i: te.sum(X[r, c], axis=[r, c]), name="Y")
    s = te.create_schedule(Y)
    s[Y].prefetch(X, Y.op.axis[0], 1)

    with pytest.raises(LowerError) as error:
        tecomp.lower(s, [X, Y])

    assert diagnostic(error.value) == (
        Diagnostic(
            "loop-carried", where="s[Y].prefetch(X, i)", lines=5700, name="X",
            most_lines=4096,
        )
    )


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (lambda s: s[W].prefetch(B, W.op.axis[0], 1),
         Diagnostic("not-in-schedule", op="B", names="A, P, W")),
        (lambda s: s[P].prefetch(W, P.op.axis[0], 1),
         Diagnostic("no-consumer", where="s[P].prefetch(W, i)", stage="P", tensor="W", read="A")),
        (lambda s: s[W].prefetch(P, P.op.axis[0], 1),
         Diagnostic(
             "unknown-loop", stage="W", call="prefetch",
             reason="axis i does not belong to W; its loops are now i, j, where i is another axis of that name; use that",
         )),
        (lambda s: s[W].prefetch(P, W.op.axis[0], 1.5),
         Diagnostic("invalid-type", where="s[W].prefetch(P, i)", offset=1.5)),
        (lambda s: s[W].prefetch(P, W.op.axis[0], True),
         Diagnostic("invalid-type", where="s[W].prefetch(P, i)", offset=True)),
        (lambda s: s[W].prefetch("P", W.op.axis[0], 1),
         Diagnostic("invalid-type", where="s[W].prefetch", value="P")),
    ],
)
def test_errors_of_the_primitive(call: Callable[[Schedule], Any], expected: Diagnostic) -> None:
    s = te.create_schedule(W)
    with pytest.raises(ScheduleError) as error:
        call(s)

    assert diagnostic(error.value) == expected
    assert not s.trace.steps


def test_the_last_call_for_a_loop_counts_and_ends_with_it() -> None:
    s = te.create_schedule(W)
    i, _ = W.op.axis
    s[W].prefetch(P, i, 1)
    s[W].prefetch(P, i, 4)
    assert [ahead.offset for ahead in s.state.stage(W.op).prefetches] == [4]

    s[W].split(i, factor=4)
    assert s.state.stage(W.op).prefetches == ()
