"""Stages of cache_read, cache_write and rfactor, and errors."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tecomp
from tecomp import te
from tecomp.compute import IterKind, Tensor
from tecomp.errors import ScheduleError
from tecomp.scheduling.schedule import Schedule
from tests.messages import Diagnostic, diagnostic

A = te.placeholder((10, 12), name="A")
k = te.reduce_axis((0, 12), name="k")
P = te.compute((10, 12), lambda i, j: A[i, j] * 2.0, name="P")
Q = te.compute((10, 12), lambda i, j: A[i, j] + P[i, j], name="Q")
R = te.compute((10,), lambda i: te.sum(Q[i, k], axis=k), name="R")
T = te.compute((10,), lambda i: (R[i], R[i] + 1.0), name="T")

argmax = te.comm_reducer(
    lambda x, y: [te.Select(x[1] >= y[1], x[n], y[n]) for n in (0, 1)],
    lambda index, value: [te.const(-1, index), te.min_value(value)],
    name="argmax",
)


def stages(s: Schedule) -> list[str]:
    return [stage.op.name for stage in s.stages]


def tensor(value: Any) -> Tensor:
    assert isinstance(value, Tensor)
    return value


def test_cache_read_copies_for_the_readers_that_are_named() -> None:
    s = te.create_schedule(R)

    AA = s.cache_read(A, "local", [Q])

    assert (AA.name, AA.shape, AA.dtype) == ("A.local", (10, 12), "float32")
    assert stages(s) == ["A", "A.local", "P", "Q", "R"]
    assert s[AA].scope == "local"
    assert str(s[AA].op) == "A_local[ax0, ax1] = A[ax0, ax1]"
    assert str(s[Q].op) == "Q[i, j] = A_local[i, j] + P[i, j]"
    assert str(s[P].op) == "P[i, j] = A[i, j] * float32(2.0)"


@pytest.mark.parametrize("readers", [Q, Q.op, [Q], (Q.op,), [Q, Q]])
def test_cache_read_names_readers_as_stages_are_named(readers: Any) -> None:
    s = te.create_schedule(R)

    AA = s.cache_read(A, "local", readers)

    assert s[Q].op.input_tensors == (AA, P)


def test_cache_read_of_a_cache() -> None:
    s = te.create_schedule(R)
    AA = s.cache_read(A, "shared", [Q])

    AL = s.cache_read(AA, "local", [Q])

    assert stages(s) == ["A", "A.shared", "A.shared.local", "P", "Q", "R"]
    assert s[Q].op.input_tensors == (AL, P)


def test_cache_read_keeps_the_loops_of_the_reader() -> None:
    s = te.create_schedule(R)
    outer, inner = s[Q].split(Q.op.axis[1], factor=4)

    s.cache_read(A, "local", [Q])

    assert s[Q].leaf_iter_vars == (Q.op.axis[0], outer, inner)


def test_cache_read_of_one_output_of_several() -> None:
    U = te.compute((10,), lambda i: T[0][i] * T[1][i], name="U")
    s = te.create_schedule(U)

    s.cache_read(T[1], "local", [U])

    assert str(s[U].op) == "U[i] = T_v0[i] * T_local[i]"


def test_cache_write_moves_the_computation() -> None:
    s = te.create_schedule(R)

    RR = tensor(s.cache_write(R, "local"))

    assert RR.name == "R.local"
    assert s[RR].scope == "local"
    assert stages(s) == ["A", "P", "Q", "R.local", "R"]
    assert str(s[RR].op) == "R_local[i_c] = sum(Q[i_c, k], axis=[k])"
    assert str(s[R].op) == "R[i] = R_local[i]"
    assert s[RR].leaf_iter_vars == (s[RR].op.axis[0], k)
    assert s[R].leaf_iter_vars == R.op.axis


def test_a_cache_has_the_order_and_shape_of_the_loops() -> None:
    s = te.create_schedule(P)
    i, j = P.op.axis
    s[P].vectorize(s[P].tile(i, j, 5, 4)[3])

    PP = tensor(s.cache_write(P, "local"))

    assert PP.shape == (2, 3, 5, 4)
    assert [axis.name for axis in s[PP].op.axis] == [
        "i.outer.c", "j.outer.c", "i.inner.c", "j.inner.c"
    ]
    assert str(s[P].op) == (
        'P[i, j] = P_local[cast("int32", cast("int64", i) // 5), cast("int32", cast("int64", j) // '
        '4), cast("int32", cast("int64", i) % 5), cast("int32", cast("int64", j) % 4)]'
    )
    assert s[P].leaf_iter_vars == P.op.axis
    assert s.state.stage(P.op).marks == {}


def test_a_cache_in_another_order_reads_and_is_read_at_the_axes() -> None:
    s = te.create_schedule(P)
    s[P].reorder(*reversed(P.op.axis))

    PP = tensor(s.cache_write(P, "local"))

    assert (str(s[PP].op), str(s[P].op)) == (
        "P_local[j_c, i_c] = A[i_c, j_c] * float32(2.0)", "P[i, j] = P_local[j, i]"
    )


def test_a_cache_is_0_where_its_loops_are_at_no_element() -> None:
    s = te.create_schedule(R)
    s[R].split(R.op.axis[0], factor=4)

    RR = tensor(s.cache_write(R, "local"))

    assert RR.shape == (3, 4)
    assert str(s[RR].op) == (
        'R_local[i_outer_c, i_inner_c] = sum(Q[cast("int32", cast("int64", i_outer_c) * 4 + '
        'cast("int64", i_inner_c)), k], axis=[k], where=cast("int64", i_outer_c) * 4 + '
        'cast("int64", i_inner_c) < 10 and True)'
    )


def test_caches_have_the_layout_of_their_stage() -> None:
    s = te.create_schedule(P)
    physical = s[P].transform_layout(lambda i, j: [j // 4, i, j % 4])

    PP = tensor(s.cache_write(P, "local"))

    assert PP.shape == (3, 10, 4)
    assert s[P].leaf_iter_vars == physical


def test_cache_write_takes_marks_off_the_reduction() -> None:
    s = te.create_schedule(R)
    s[R].unroll(k)

    s.cache_write(R, "local")

    assert s.state.stage(R.op).marks == {}


def test_cache_write_of_several_outputs() -> None:
    s = te.create_schedule(T[0])

    caches = s.cache_write(list(T), "local")

    assert isinstance(caches, tuple)
    assert [cache.name for cache in caches] == ["T.local_v0", "T.local_v1"]
    assert s[T[0]].op.input_tensors == caches


def test_consumers_read_the_tensor_and_not_its_cache() -> None:
    s = te.create_schedule(T[0])

    s.cache_write(R, "local")

    assert s[T[0]].op.input_tensors == (R,)


@pytest.mark.parametrize("factor_axis", [0, 1, -1, -2])
def test_rfactor_makes_the_loop_an_axis(factor_axis: int) -> None:
    s = te.create_schedule(R)
    outer, _ = s[R].split(k, factor=4)

    RF = tensor(s.rfactor(R, outer, factor_axis))

    place = factor_axis % 2
    assert RF.name == "R.rf"
    assert RF.shape == ((3, 10), (10, 3))[place]
    assert [axis.name for axis in s[RF].op.axis] == (["k.outer", "i"], ["i", "k.outer"])[place]
    assert [axis.name for axis in s[RF].op.reduce_axis] == ["k.inner"]
    assert stages(s) == ["A", "P", "Q", "R.rf", "R"]
    (combined,) = s[R].op.reduce_axis
    assert (combined.name, combined.extent, combined.kind) == ("k.outer.v", 3, IterKind.REDUCE)
    assert s[R].leaf_iter_vars == (R.op.axis[0], combined)


def test_rfactor_keeps_the_other_axes_of_the_reduction() -> None:
    k1, k2 = te.reduce_axis((0, 12), name="k1"), te.reduce_axis((0, 6), name="k2")
    k3 = te.reduce_axis((2, 5), name="k3")
    B = te.placeholder((4, 12, 6, 5), name="B")
    S = te.compute((4,), lambda i: te.sum(B[i, k1, k2, k3], axis=[k1, k2, k3]), name="S")
    s = te.create_schedule(S)
    outer, inner = s[S].split(k1, factor=4)

    SF = tensor(s.rfactor(S, inner))
    s[SF].reorder(k2, outer)

    first, from_zero, last = s[SF].op.reduce_axis
    assert (first, last) == (k2, outer)
    assert (from_zero.name, from_zero.low, from_zero.extent) == ("k3", 0, 3)


def test_rfactor_puts_unsplit_reduction_axes_first() -> None:
    k1, k2 = te.reduce_axis((0, 12), name="k1"), te.reduce_axis((0, 6), name="k2")
    k3 = te.reduce_axis((0, 3), name="k3")
    B = te.placeholder((4, 12, 6, 3), name="B")
    S = te.compute((4,), lambda i: te.sum(B[i, k1, k2, k3], axis=[k1, k2, k3]), name="S")
    s = te.create_schedule(S)
    outer, inner = s[S].split(k1, factor=4)
    s[S].reorder(k3, outer, inner)

    SF = tensor(s.rfactor(S, inner))

    assert s[SF].op.reduce_axis == (k2, k3, outer)
    assert s[SF].leaf_iter_vars == (*s[SF].op.axis, k3, outer, k2)
    replayed = tecomp.replay(s.trace.to_json(), S)
    assert replayed.trace.to_json() == s.trace.to_json()


def test_rfactor_keeps_the_data_loops_of_the_tensor() -> None:
    s = te.create_schedule(R)
    outer, inner = s[R].split(R.op.axis[0], factor=4)
    s[R].parallel(outer)

    s.rfactor(R, k)

    assert s[R].leaf_iter_vars == (outer, inner, s[R].op.reduce_axis[0])
    assert list(s.state.stage(R.op).marks) == [outer]


def test_rfactor_of_a_tuple_gives_a_tensor_for_each_value() -> None:
    index, value = te.compute((10,), lambda i: argmax((k, A[i, k]), axis=k), name="M")
    s = te.create_schedule(index)
    outer, _ = s[value].split(k, factor=4)

    factored = s.rfactor(index, outer)

    assert isinstance(factored, tuple)
    assert [(t.name, t.dtype) for t in factored] == [("M.rf_v0", "int32"), ("M.rf_v1", "float32")]


def test_rfactor_combines_in_the_order_of_a_value() -> None:
    index, value = te.compute((10,), lambda i: argmax((k, A[i, k]), axis=k), name="M")
    s = te.create_schedule(index)
    _, inner = s[value].split(k, factor=4)

    s.rfactor(index, inner, order=0)

    a = np.ones((10, 12), np.float32)
    found, most = np.empty(10, np.int32), np.empty(10, np.float32)
    tecomp.build(s, [A, index, value])(a, found, most)
    assert (found == 0).all()
    assert s.trace.to_python().count("order=0") == 1


STARTED = te.compute((10,), lambda i: te.sum(A[i, k], axis=k, init=1.0), name="S")


def nothing(s: Schedule) -> None:
    assert s.trace.steps == ()


def split(s: Schedule) -> None:
    assert s[R].split(k, factor=4)


REFUSED: dict[str, tuple[Callable[[Schedule], None], Callable[[Schedule], object], Diagnostic]] = {
    "cache_read for nobody": (
        nothing,
        lambda s: s.cache_read(A, "local", []),
        Diagnostic("missing-input", where="s.cache_read(A, 'local')"),
    ),
    "cache_read for a stage that does not read": (
        nothing,
        lambda s: s.cache_read(A, "local", [P, R]),
        Diagnostic(
            "no-consumer", where="s.cache_read(A, 'local')", reader="R", source="A", names="P, Q",
        ),
    ),
    "cache_read into a scope that is no name": (
        nothing,
        lambda s: s.cache_read(A, 3, [P]),  # type: ignore[arg-type]
        Diagnostic("invalid-type", where="s.cache_read(A)", scope=3),
    ),
    "cache_read of an operation": (
        nothing,
        lambda s: s.cache_read(A.op, "local", [P]),  # type: ignore[arg-type]
        Diagnostic(
            "invalid-type", where="s.cache_read", value='A = placeholder((10, 12), "float32")',
        ),
    ),
    "cache_read for something else": (
        nothing,
        lambda s: s.cache_read(A, "local", ["P"]),  # type: ignore[list-item]
        Diagnostic("invalid-type", where="s.cache_read", handle="P"),
    ),
    "cache_read of a tensor from elsewhere": (
        nothing,
        lambda s: s.cache_read(STARTED, "local", [P]),
        Diagnostic("not-in-schedule", op="S", names="A, P, Q, R, T"),
    ),
    "cache_write of a placeholder": (
        nothing,
        lambda s: s.cache_write(A, "local"),
        Diagnostic("unknown-loop", name="A"),
    ),
    "cache_write after the reduction was split": (
        split,
        lambda s: s.cache_write(R, "local"),
        Diagnostic(
            "primitive-order", where="s.cache_write(R, 'local')", axis_kind="reduction axis", missing="k",
        ),
    ),
    "cache_write of a stage that another is computed in": (
        lambda s: s[P].compute_at(s[Q], s[Q].split(Q.op.axis[0], factor=2)[0]),
        lambda s: s.cache_write(Q, "local"),
        Diagnostic(
            "primitive-order", where="s.cache_write(Q, 'local')", other="P", axis="i.outer", stage="Q",
        ),
    ),
    "cache_write of one output of two": (
        nothing,
        lambda s: s.cache_write(T[0], "local"),
        Diagnostic("count-mismatch", where="s.cache_write(T, 'local')", num_outputs=2, stage="T"),
    ),
    "cache_write of two stages": (
        nothing,
        lambda s: s.cache_write([P, Q], "local"),
        Diagnostic("count-mismatch", where="s.cache_write(P, 'local')", num_outputs=1, stage="P"),
    ),
    "cache_write of nothing": (
        nothing,
        lambda s: s.cache_write([], "local"),
        Diagnostic("missing-input"),
    ),
    "cache_write into a scope that is no name": (
        nothing,
        lambda s: s.cache_write(R, ""),
        Diagnostic("invalid-type", where="s.cache_write(R)", scope=""),
    ),
    "rfactor of a stage that reduces nothing": (
        nothing,
        lambda s: s.rfactor(P, P.op.axis[0]),
        Diagnostic("pattern-mismatch", where="s.rfactor(P, i)", stage="P"),
    ),
    "rfactor of a data axis": (
        nothing,
        lambda s: s.rfactor(R, R.op.axis[0]),
        Diagnostic("pattern-mismatch", where="s.rfactor(R, i)", axis="i"),
    ),
    "rfactor of a split axis": (
        split,
        lambda s: s.rfactor(R, k),
        Diagnostic(
            "unknown-loop", stage="R", call="rfactor",
            reason="axis k was split into k.outer and k.inner already; its loops are now i, k.outer, k.inner",
        ),
    ),
    "rfactor of no axis": (
        nothing,
        lambda s: s.rfactor(R, 0),  # type: ignore[arg-type]
        Diagnostic(
            "unknown-loop", stage="R", call="rfactor", axis=0, leaves="i, k",
            hint="take them from s[R].leaf_iter_vars",
        ),
    ),
    "rfactor to a place that is not there": (
        nothing,
        lambda s: s.rfactor(R, k, 2),
        Diagnostic("invalid-value", where="s.rfactor(R, k)", lowest=-2, rank=1, factor_axis=2),
    ),
    "rfactor to a place that is no number": (
        nothing,
        lambda s: s.rfactor(R, k, 0.5),  # type: ignore[arg-type]
        Diagnostic("invalid-value", where="s.rfactor(R, k)", lowest=-2, rank=1, factor_axis=0.5),
    ),
    "rfactor of a loop over data and reduction": (
        lambda s: assert_true(s[R].fuse(R.op.axis[0], k)),
        lambda s: s.rfactor(R, s[R].leaf_iter_vars[0]),
        Diagnostic("primitive-order", where="s.rfactor(R, i.k.fused)", mixed="i.k.fused"),
    ),
}


def assert_true(value: object) -> None:
    assert value is not None


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case: str, refusal: Any) -> None:
    before, action, expected = REFUSED[case]
    s = te.create_schedule(T[0])
    before(s)

    error = refusal(s, lambda: action(s))

    assert isinstance(error, ScheduleError)
    assert diagnostic(error) == expected
    assert error.location is not None
    assert Path(error.location.file) == Path(__file__)


@pytest.mark.parametrize("order", [2, -1, "0", True])
def test_rfactor_in_the_order_of_no_value_is_refused(refusal: Any, order: Any) -> None:
    s = te.create_schedule(R)

    error = refusal(s, lambda: s.rfactor(R, k, order=order))

    assert diagnostic(error) == (
        Diagnostic("invalid-value", stage="R", axis="k", order=order, last=0)
    )


@pytest.mark.parametrize("factor", [None, 3])
def test_rfactor_with_a_start_value(agrees: Any, factor: int | None) -> None:
    """Only the final reduction starts from the initial value; other loops are kept."""
    X, b = te.placeholder((4, 7, 2), name="X"), te.placeholder((4,), name="b")
    r, q = te.reduce_axis((0, 7), name="r"), te.reduce_axis((0, 2), name="q")
    S = te.compute(
        (4,), lambda i: te.sum(X[i, r, q], axis=[r, q], where=r != 3, init=b[i] * 2.0), name="S")
    s = te.create_schedule(S)
    io, _ = s[S].split(S.op.axis[0], factor=3)
    loop = r if factor is None else s[S].split(r, factor=factor)[1]
    partial: Any = s.rfactor(S, loop)
    s[partial].compute_at(s[S], io)

    assert [axis.name for axis in s[S].leaf_iter_vars] == ["i.outer", "i.inner", f"{loop.name}.v"]
    assert str(s[S].op) == (
        f"S[i] = sum(S_rf[{'r_v' if factor is None else 'r_inner_v'}, i], "
        f"axis=[{'r_v' if factor is None else 'r_inner_v'}], init=b[i] * float32(2.0))"
    )
    x, start = np.arange(56, dtype="float32").reshape(4, 7, 2), np.arange(4, dtype="float32")
    expected = np.delete(x, 3, 1).sum((1, 2)) + 2 * start
    agrees(s, [X, b, S], {X: x, b: start, S: expected})
