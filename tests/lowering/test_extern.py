"""Statements of the user's as stages: on whole tensors, in any layout and place."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tecomp
from tecomp import te
from tecomp.compute.tensor import Tensor
from tecomp.errors import LowerError, ScheduleError
from tecomp.ir.interpreter.evaluate import evaluate
from tecomp.lowering.pipeline import lower_all
from tecomp.scheduling.replay import replay

N = 9
A = te.placeholder((N, N), name="A")
P = te.compute((N, N), lambda i, j: A[i, j] + 1.0, name="P")


def triangle(ins: Any, outs: Any) -> Any:
    """X of L x = b for a lower triangle L with ones, where b is the first column."""
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
    """The interpreter after every pass, the compiled code and a replayed schedule agree."""
    a = whole_numbers()
    solved, positive = expected(a)
    wanted = solved + positive[::-1]
    lowered = lower_all(s, [A, both])
    for func in lowered.functions.values():
        result = np.zeros(N, "float32")
        shape = [int(str(n)) for n in getattr(func.params[0], "shape", ())]
        evaluate(func, [a.reshape(shape), result])
        np.testing.assert_array_equal(result, wanted)
    again = replay(s.trace.to_json(), s.outputs)
    assert str(lower_all(again, [A, both]).final) == str(lowered.final)
    result = np.zeros(N, "float32")
    tecomp.build(s, [A, both], check_bounds=True)(a, result)
    np.testing.assert_array_equal(result, wanted)
    return lowered.functions["nest"]


def test_it_is_computed_once() -> None:
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


def test_it_is_computed_whole_inside_a_loop() -> None:
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


def refused(s: te.Schedule, args: list[Tensor]) -> str:
    with pytest.raises(LowerError) as error:
        tecomp.lower(s, args)
    return error.value.message


def test_what_it_reads_has_memory() -> None:
    s = te.create_schedule(both)
    s[P].compute_inline()

    assert refused(s, [A, both]) == (
        "s[P].compute_inline: x is a te.extern, whose statements read P from memory; do not inline "
        "it"
    )


def test_iterations_at_once_do_not_share_a_result() -> None:
    s = te.create_schedule([both, x])
    s[x].compute_at(s[both], both.op.axis[0])
    s[both].parallel(both.op.axis[0])

    assert refused(s, [A, both, x, count]) == (
        "s[both].parallel(i): iterations 0 and 1 both write x[0], which the caller passes; compute "
        "x at the root"
    )


def test_variables_are_arguments() -> None:
    m = te.var("m")
    B = te.placeholder((4,), name="B")
    C = te.extern((4,), B, lambda ins, outs: outs[0].store(0, ins[0][m]), name="C")

    assert refused(te.create_schedule(C), [B, C]) == (
        "lower: C depends on m, which no argument determines; add m itself to the arguments"
    )


def test_primitives_that_it_has_no_loops_or_expressions_for() -> None:
    s = te.create_schedule(both)

    def message(call: Any, *args: Any) -> str:
        with pytest.raises(ScheduleError) as error:
            call(*args)
        return error.value.message

    assert message(s[x].compute_inline) == (
        "s[x].compute_inline: x is a te.extern and needs memory for its results; use compute_at "
        "with an inner loop of its consumer instead"
    )
    assert message(s.cache_write, [x, count], "local") == (
        "s.cache_write(x, 'local'): x is a te.extern, whose statements store to it; make a "
        "te.compute that copies the result"
    )
    assert message(s[x].vectorize, x.op.axis[0]) == (
        "s[x].vectorize: axis i0 does not belong to x; its loops are now none"
    )
