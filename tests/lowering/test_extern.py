"""User-defined statements as stages: on whole tensors, in any layout, at any attach point."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tecomp
from tecomp import te
from tecomp.compute import Tensor
from tecomp.errors import LowerError, ScheduleError
from tecomp.ir import evaluate
from tecomp.lowering import lower_all
from tecomp.scheduling.replay import replay
from tests.messages import Diagnostic, diagnostic

N = 9
A = te.placeholder((N, N), name="A")
P = te.compute((N, N), lambda i, j: A[i, j] + 1.0, name="P")


def triangle(ins: Any, outs: Any) -> Any:
    """Solve L x = b for a unit lower triangle L with b in column 0, and flag positive elements."""
    (left,), (x, count) = ins, outs

    def row(i: Any) -> Any:
        return te.stmt_seq(
            te.allocate((1,), "float32", lambda total: te.stmt_seq(
                total.store(0, left[i, 0]),
                te.for_range(0, i, lambda j: total.store(0, total[0] - left[i, j] * x[j]), "j"),
                x.store(i, total[0]),
            )),
            te.if_stmt(x[i] > 0.0, count.store(i, 1), count.store(i, 0)),
        )  # fmt: skip

    return te.for_range(0, N, row)


x, count = te.extern([(N,), (N,)], [P], triangle, name="x", dtype=["float32", "int8"])
both = te.compute((N,), lambda i: x[i] + count[N - 1 - i], name="both")


def expected(a: Any) -> Any:
    left, found = a + 1, np.zeros(N, "float32")
    for i in range(N):
        found[i] = left[i, 0] - left[i, :i] @ found[:i]
    return found, (found > 0).astype("int8")


def whole_numbers() -> Any:
    return np.random.default_rng(0).integers(-2, 2, (N, N)).astype("float32")


def check(s: te.Schedule) -> Any:
    """Check the interpreter after every pass, the compiled code and a replayed schedule."""
    a = whole_numbers()
    solved, positive = expected(a)
    reference = solved + positive[::-1]
    lowered = lower_all(s, [A, both])
    for func in lowered.functions.values():
        result = np.zeros(N, "float32")
        shape = [int(str(n)) for n in getattr(func.params[0], "shape", ())]
        evaluate(func, [a.reshape(shape), result])
        np.testing.assert_array_equal(result, reference)
    replayed = replay(s.trace.to_json(), s.outputs)
    assert str(lower_all(replayed, [A, both]).final) == str(lowered.final)
    result = np.zeros(N, "float32")
    tecomp.build(s, [A, both], check_bounds=True)(a, result)
    np.testing.assert_array_equal(result, reference)
    return lowered.functions["nest"]


def test_extern_stages_are_computed_once() -> None:
    check(te.create_schedule(both))


def test_results_may_be_arguments() -> None:
    kernel = tecomp.build(te.create_schedule(x), [A, x, count])
    a = whole_numbers()
    found, positive = np.zeros(N, "float32"), np.zeros(N, "int8")
    kernel(a, found, positive)

    np.testing.assert_array_equal(found, expected(a)[0])
    np.testing.assert_array_equal(positive, expected(a)[1])


def test_inputs_and_results_have_layouts_and_memories() -> None:
    s = te.create_schedule(both)
    s[P].transform_layout(lambda i, j: [j // 4, i, j % 4])
    assert s[x].transform_layout(lambda i: [(i + 3) % N]) == s[x].op.axis
    s[x].set_scope("local")

    check(s)


def test_attached_extern_stages_are_computed_completely() -> None:
    s = te.create_schedule(both)
    outer, _ = s[both].split(both.op.axis[0], factor=4)
    s[x].compute_at(s[both], outer)
    s[P].compute_at(s[both], outer)

    assert "for i_outer in range(3):\n        with BufferRealize" in str(check(s))


def test_caches_of_inputs_and_results() -> None:
    s = te.create_schedule(both)
    s.cache_read(P, "local", [x])
    s.cache_read(x, "local", [both])

    check(s)


def test_loops_may_run_at_once() -> None:
    n = te.var("n")
    B = te.placeholder((n,), name="B")

    def twice(ins: Any, outs: Any) -> Any:
        def tile(o: Any) -> Any:
            return te.for_range(
                0, 4, lambda i: outs[0].store(o * 4 + i, ins[0][o * 4 + i] * 2.0), "i", "vectorized"
            )

        return te.for_range(0, n // 4, tile, "o", "parallel")

    C = te.extern((n,), B, twice, name="C")
    b = np.arange(12, dtype="float32")
    result = np.zeros(12, "float32")
    kernel = tecomp.build(te.create_schedule(C), [B, C])
    kernel(b, result)

    np.testing.assert_array_equal(result, 2 * b)
    assert "for o in parallel(n // 4)" in str(kernel.lowered.functions["nest"])


def spread(ins: Any, outs: Any) -> Any:
    """Compute row sums, twice the transpose, and the sum of all elements."""
    (a,), (rows, turned, total) = ins, outs

    def row(i: Any) -> Any:
        def element(j: Any) -> Any:
            return te.stmt_seq(
                rows.store(i, rows[i] + a[i, j]), turned.store((j, i), a[i, j] * 2.0),
                total.store((), total[()] + a[i, j]),
            )

        return te.stmt_seq(rows.store(i, 0.0), te.for_range(0, 6, element))

    return te.stmt_seq(total.store((), 0.0), te.for_range(0, 4, row))


S = te.placeholder((4, 6), name="S")
rows, turned, total = te.extern([(4,), (6, 4), ()], S, spread, name="spread")
R = te.compute((4, 6), lambda i, j: rows[i] + turned[j, i] + total[()], name="R")


@pytest.mark.parametrize("variant", range(6))
def test_results_of_several_shapes(variant: int) -> None:
    s = te.create_schedule(R)
    if variant == 1:
        s[turned].compute_at(s[R], R.op.axis[0])
    if variant == 2:
        outer, inner = s[R].split(R.op.axis[1], factor=4)
        s[R].vectorize(inner)
        s[rows].compute_at(s[R], outer)
    if variant == 3:
        cache = s.cache_read(turned, "local", [R])
        s[cache].transform_layout(lambda i, j: [j, i])
        s[rows].set_scope("local")
    if variant == 4:
        s[R].parallel(R.op.axis[0])
        s[rows].compute_at(s[R], R.op.axis[0])
    if variant == 5:
        s[R].reorder(*reversed(R.op.axis))
        s[R].unroll(R.op.axis[0])
    a = np.arange(24, dtype="float32").reshape(4, 6)
    reference = a.sum(1)[:, None] + 2 * a + a.sum()
    lowered = lower_all(s, [S, R])
    for func in lowered.functions.values():
        flat = [np.array(x).reshape([int(str(n)) for n in getattr(p, "shape", ())])
                for x, p in zip((a, np.zeros_like(a)), func.params, strict=True)]  # fmt: skip
        evaluate(func, flat)
        np.testing.assert_array_equal(flat[1].reshape(4, 6), reference)
    result = np.zeros_like(a)
    tecomp.build(s, [S, R], check_bounds=variant % 2 == 0)(a, result)
    np.testing.assert_array_equal(result, reference)
    assert str(lower_all(replay(s.trace.to_json(), s.outputs), [S, R]).final) == str(lowered.final)


def test_results_of_several_shapes_are_arguments() -> None:
    a = np.arange(24, dtype="float32").reshape(4, 6)
    found = [np.zeros(4, "float32"), np.zeros((6, 4), "float32"), np.zeros((), "float32")]
    tecomp.build(te.create_schedule(rows), [S, rows, turned, total])(a, *found)
    reference = [a.sum(1), 2 * a.T, a.sum()]
    for actual, right in zip(found, reference, strict=True):
        np.testing.assert_array_equal(actual, right)
    for target in ("cpu", "stick128"):
        program = tecomp.compile([turned, R], [S], target=target)(a)
        np.testing.assert_array_equal(program[0], reference[1])
        np.testing.assert_array_equal(program[1], reference[0][:, None] + 2 * a + reference[2])


def test_one_layout_is_for_one_shape() -> None:
    s = te.create_schedule(R)
    with pytest.raises(ScheduleError) as error:
        s[rows].transform_layout(lambda i: [i // 2, i % 2])
    assert diagnostic(error.value) == Diagnostic(
        "pattern-mismatch", where="s[spread].transform_layout", stage="spread",
        shapes="spread_v0 (4,), spread_v1 (6, 4), spread_v2 ()",
    )
    with pytest.raises(ScheduleError) as error:
        s[rows].storage_align(R.op.axis[0], 8, 1)
    assert diagnostic(error.value) == Diagnostic(
        "pattern-mismatch", where="s[spread].storage_align", stage="spread",
        shapes="spread_v0 (4,), spread_v1 (6, 4), spread_v2 ()",
    )


def refused(s: te.Schedule, args: list[Tensor]) -> Diagnostic:
    with pytest.raises(LowerError) as error:
        tecomp.lower(s, args)
    return diagnostic(error.value)


def test_inputs_of_extern_stages_are_stored() -> None:
    s = te.create_schedule(both)
    s[P].compute_inline()

    assert refused(s, [A, both]) == (
        Diagnostic("requires-storage", stage="P", op="x")
    )


def test_iterations_at_once_do_not_share_a_result() -> None:
    s = te.create_schedule([both, x])
    s[x].compute_at(s[both], both.op.axis[0])
    s[both].parallel(both.op.axis[0])

    assert refused(s, [A, both, x, count]) == (
        Diagnostic("dependence-violation", call="s[both].parallel(i)", first=0, second=1, name="x", indices="0")
    )


def test_variables_are_arguments() -> None:
    m = te.var("m")
    B = te.placeholder((4,), name="B")
    C = te.extern((4,), B, lambda ins, outs: outs[0].store(0, ins[0][m]), name="C")

    assert refused(te.create_schedule(C), [B, C]) == (
        Diagnostic("argument-list", stage="C", var="m")
    )


def test_extern_stages_refuse_loop_primitives() -> None:
    s = te.create_schedule(both)

    def message(call: Any, *args: Any) -> Diagnostic:
        with pytest.raises(ScheduleError) as error:
            call(*args)
        return diagnostic(error.value)

    assert message(s[x].compute_inline) == (
        Diagnostic("requires-storage", where="s[x].compute_inline", stage="x", subject="is a te.extern")
    )
    assert message(s.cache_write, [x, count], "local") == (
        Diagnostic("pattern-mismatch", where="s.cache_write(x, 'local')", stage="x")
    )
    assert message(s[x].vectorize, x.op.axis[0]) == (
        Diagnostic(
            "unknown-loop", stage="x", call="vectorize",
            reason="axis i0 does not belong to x; its loops are now none",
        )
    )
