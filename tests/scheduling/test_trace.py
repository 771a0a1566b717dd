"""A trace reproduces the schedule from JSON and as Python, for every primitive."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tecomp
from tecomp import te
from tecomp.compute import Tensor
from tecomp.lowering import build_nest, prepare
from tecomp.scheduling.replay import replay
from tecomp.scheduling.schedule import Schedule

n = te.var("n")
m = te.var("m")
A = te.placeholder((12, 10), name="A")
W = te.placeholder((n, m), name="W")
k = te.reduce_axis((0, 10), name="k")
P = te.compute((12, 10), lambda i, j: A[i, j] * 2.0, name="P")
C = te.compute((12, 10), lambda i, j: P[i, j] + 1.0, name="C")
R = te.compute((12,), lambda i: te.sum(P[i, k], axis=k), name="R")
V = te.compute((n, m), lambda i, j: W[i, j] + 1.0, name="V")
N = te.compute((n, m), lambda n, m: W[n, m] + 1.0, name="n")
T = te.compute((12, 10), lambda i, j: (P[i, j], P[i, j] + 1.0), name="T")
argmax = te.comm_reducer(
    lambda x, y: [te.Select(x[1] >= y[1], x[x_y], y[x_y]) for x_y in (0, 1)],
    lambda index, value: [te.const(-1, index), te.min_value(value)],
    name="argmax",
)
M = te.compute((12,), lambda i: argmax((k, A[i, k]), axis=k), name="M")


def tensor(value: Any) -> Tensor:
    assert isinstance(value, Tensor)
    return value


def splits(s: Schedule) -> None:
    i, j = s[C].op.axis
    outer, inner = s[C].split(j, factor=4)
    s[C].split(i, nparts=5)
    s[C].split(outer, 2)
    s[C].vectorize(inner)


def tiles(s: Schedule) -> None:
    i, j = s[C].op.axis
    xo, yo, xi, yi = s[C].tile(i, j, 4, 5)
    s[C].reorder(yo, xo, yi, xi)
    s[C].unroll(xi)
    s[C].parallel(yo)


def fusions(s: Schedule) -> None:
    i, j = s[C].op.axis
    fused = s[C].fuse(i, j)
    s[C].fuse()
    s[C].fuse(fused)
    outer, inner = s[C].split(fused, factor=7)
    s[C].bind(outer, te.thread_axis("blockIdx.x"))
    s[C].bind(inner, te.thread_axis("threadIdx.x"))


def places(s: Schedule) -> None:
    s[P].compute_at(s[C], s[C].op.axis[0])
    s[P].set_scope("local")
    s[P].storage_align(P.op.axis[0], 8, 1)
    s[P].double_buffer()


def inlined(s: Schedule) -> None:
    s[P].compute_inline()


def hinted(s: Schedule) -> None:
    outer, _ = s[C].split(C.op.axis[0], factor=4)
    s[C].prefetch(P, outer, 2)
    s[P].prefetch(A, P.op.axis[0], 1)
    s[P].pragma(P.op.axis[0], "auto_unroll_max_step", 16)
    s[P].pragma(P.op.axis[0], "unroll_explicit")


def root_again(s: Schedule) -> None:
    s[P].compute_inline()
    s[P].compute_root()


def cached_reads(s: Schedule) -> None:
    AA = s.cache_read(A, "shared", [P])
    AL = s.cache_read(AA, "local", [P])
    s[AL].compute_at(s[P], P.op.axis[1])
    s[AA].compute_at(s[P], P.op.axis[0])
    s[AA].transform_layout(lambda i, j: [j, i])


def cached_write(s: Schedule) -> None:
    CC = tensor(s.cache_write(C, "local"))
    i, j = s[CC].op.axis
    s[CC].reorder(j, i)
    s[CC].compute_at(s[C], s[C].op.axis[0])


def layouts(s: Schedule) -> None:
    s[A].transform_layout(lambda i, j: [j // 4, i, te.AXIS_SEPARATOR, j % 4])
    outer, i, inner = s[C].transform_layout(
        lambda i, j: [j // 4, te.AXIS_SEPARATOR, i, j % 4], pad_value=-1.5
    )
    s[C].vectorize(inner)
    s[P].compute_at(s[C], outer)
    s[C].reorder(i, outer)


def layouts_that_compose(s: Schedule) -> None:
    s[C].transform_layout(lambda i, j: [j, te.AXIS_SEPARATOR, i])
    axes = s[C].transform_layout(lambda j, i: [j // 3, i // 5, j % 3, i % 5])
    s[C].fuse(*axes[:2])
    s[A].transform_layout(lambda *i: [i[1], i[0]])


def layout_with_a_pad_function(s: Schedule) -> None:
    s[C].transform_layout(
        lambda i, j: [i, j // 4, j % 4],
        pad_value=lambda i, jo, ji: te.exp(i.astype("float32")) + te.max(jo, ji) * 0.5,
    )


def layout_with_a_pad_function_of_zero(s: Schedule) -> None:
    s[C].transform_layout(lambda i, j: [i // 8, j, i % 8], pad_value=lambda *i: 0.0)


def layout_of_one_axis(s: Schedule) -> None:
    (single,) = s[R].transform_layout(lambda i: [11 - i])
    s[R].split(single, factor=5)


def layout_keeps_loops(s: Schedule) -> None:
    outer, _ = s[C].split(C.op.axis[0], factor=5)
    s[C].transform_layout(lambda i, j: [j, i], loops="logical")
    s[P].compute_at(s[C], outer)


def layout_with_a_constant(s: Schedule) -> None:
    s[C].transform_layout(lambda i, j: [i, 0, j])


def index_map(s: Schedule) -> None:
    s[C].transform_layout(tecomp.IndexMap.from_func(lambda i, j: [j, i]))


def swizzle(s: Schedule) -> None:
    s[C].transform_layout(lambda i, j: [i, (i + j) % 10])


def factored(s: Schedule) -> None:
    outer, inner = s[R].split(k, factor=4)
    RF = tensor(s.rfactor(R, outer, 1))
    s[RF].compute_at(s[R], s[R].op.axis[0])
    (rest,) = s[RF].op.reduce_axis
    s[RF].unroll(rest)
    s[R].unroll(s[R].op.reduce_axis[0])
    assert inner is rest


def factored_by_default(s: Schedule) -> None:
    RF = tensor(s.rfactor(R, k))
    s[RF].parallel(s[RF].op.axis[0])


def data_and_reduction(s: Schedule) -> None:
    fused = s[R].fuse(R.op.axis[0], k)
    outer, _ = s[R].split(fused, factor=16)
    s[P].compute_at(s[R], outer)


def symbolic(s: Schedule) -> None:
    i, j = V.op.axis
    outer, inner = s[V].split(i, nparts=n // 2 + 1)
    s[V].split(j, factor=te.const(4, "int32"))
    s[V].reorder(inner, outer)


def sizes_called_like_axes(s: Schedule) -> None:
    outer, _ = s[N].split(N.op.axis[0], factor=n + 1)
    s[N].fuse(outer)


def symbolic_layout(s: Schedule) -> None:
    s[W].transform_layout(lambda i, j: [j // 8, i, j % 8])
    s[V].transform_layout(lambda i, j: [j // 8, i, j % 8], pad_value=0.0)


def several_outputs(s: Schedule) -> None:
    first, second = s.cache_write(list(T), "local")
    s[first].compute_at(s[T[0]], T[1].op.axis[0])
    s[second].vectorize(s[second].op.axis[1])
    s[T[1]].reorder(*reversed(T[0].op.axis))


def tuples(s: Schedule) -> None:
    outer, _ = s[M[0]].split(k, factor=4)
    first, second = s.rfactor(M[1], outer)
    s[second].compute_at(s[M[0]], s[M[1]].op.axis[0])
    assert first.op is second.op


def two_outputs(s: Schedule) -> None:
    outer, _ = s[R].split(R.op.axis[0], factor=5)
    s[C].fuse(*C.op.axis)
    s[R].parallel(outer)


def numbers_of_numpy(s: Schedule) -> None:
    s[C].split(C.op.axis[0], factor=int(np.int64(5)))
    s[P].split(P.op.axis[0], factor=np.int64(5))  # type: ignore[arg-type]
    s[P].storage_align(P.op.axis[1], 4, 1)


def pad_values_without_a_literal(s: Schedule) -> None:
    s[C].transform_layout(lambda i, j: [i // 5, j, i % 5], pad_value=-np.inf)
    s[P].transform_layout(lambda i, j: [i // 5, j, i % 5], pad_value=te.const(np.inf))


def a_pad_function_of_infinity(s: Schedule) -> None:
    s[C].transform_layout(
        lambda i, j: [i // 5, j, i % 5],
        pad_value=lambda io, j, ii: te.Select(ii > j, te.const(np.inf), te.const(1.0)),
    )


def a_composed_map(s: Schedule) -> None:
    wide = te.IndexMap.from_func(lambda i, j: [i, j % 16])
    halves = te.IndexMap.from_func(lambda i, j: [j // 8, i, j % 8])
    s[C].transform_layout(wide.then(halves), pad_value=-1.0)
    s[A].transform_layout(wide.then(halves).then(wide_again()))


def wide_again() -> te.IndexMap:
    return te.IndexMap.from_func(lambda a, b, c: [a, te.AXIS_SEPARATOR, b * 8 + c])


Decide = Callable[[Schedule], None]
CASES: list[tuple[Decide, tuple[Tensor, ...], list[Any]]] = [
    *(
        (decide, (C,), [A, C])
        for decide in (
            splits, tiles, fusions, places, hinted, inlined, root_again, cached_reads, cached_write,
            layouts, layouts_that_compose, layout_with_a_pad_function,
            layout_with_a_pad_function_of_zero, layout_keeps_loops, layout_with_a_constant,
            index_map, swizzle, numbers_of_numpy, pad_values_without_a_literal,
            a_pad_function_of_infinity, a_composed_map,
        )
    ),
    *(
        (decide, (R,), [A, R])
        for decide in (layout_of_one_axis, factored, factored_by_default, data_and_reduction)
    ),
    (symbolic, (V,), [W, V]),
    (symbolic_layout, (V,), [W, V]),
    (sizes_called_like_axes, (N,), [W, N]),
    (several_outputs, T[:1], [A, *T]),
    (tuples, M[:1], [A, *M]),
    (two_outputs, (C, R), [A, C, R]),
]
IDS = [f"{decide.__name__}-{len(outputs)}" for decide, outputs, _ in CASES]


def text_of(s: Schedule, args: list[Any]) -> str:
    return str(build_nest(prepare(s, args), "main"))


@pytest.mark.exhaustive(keep=16)
@pytest.mark.parametrize(("decide", "outputs", "args"), CASES, ids=IDS)
def test_json_replays(decide: Decide, outputs: tuple[Tensor, ...], args: list[Any]) -> None:
    s = te.create_schedule(list(outputs))
    decide(s)
    document = s.trace.to_json()

    replayed = replay(document, list(outputs))

    assert replayed.trace.to_json() == document
    assert str(replayed.trace) == str(s.trace)
    assert text_of(replayed, args) == text_of(s, args)


@pytest.mark.exhaustive(keep=16)
@pytest.mark.parametrize(("decide", "outputs", "args"), CASES, ids=IDS)
def test_python_replays(decide: Decide, outputs: tuple[Tensor, ...], args: list[Any]) -> None:
    s = te.create_schedule(list(outputs))
    decide(s)
    names: dict[str, Any] = {"te": te}

    exec(str(s.trace), names)
    repeated = names["schedule"](*outputs)

    assert repeated.trace.to_json() == s.trace.to_json()
    assert text_of(repeated, args) == text_of(s, args)


def test_a_trace_reads_like_a_program() -> None:
    s = te.create_schedule(C)
    tiles(s)
    layouts_of = s.cache_read(A, "local", [P])
    s[layouts_of].transform_layout(lambda i, j: [j // 4, te.AXIS_SEPARATOR, i, j % 4])

    assert str(s.trace) == (
        "def schedule(C):\n"
        "    s = te.create_schedule(C.op)\n"
        "    i, j = s[C].op.axis\n"
        "    i_outer, j_outer, i_inner, j_inner = s[C].tile(i, j, 4, 5)\n"
        "    s[C].reorder(j_outer, i_outer, j_inner, i_inner)\n"
        "    s[C].unroll(i_inner)\n"
        "    s[C].parallel(j_outer)\n"
        '    A = s.tensor("A")\n'
        '    P = s.tensor("P")\n'
        "    A_local = s.cache_read(A, 'local', [P])\n"
        "    ax1_outer, ax0, ax1_inner = s[A_local].transform_layout("
        "lambda i, j: [j // 4, te.AXIS_SEPARATOR, i, j % 4])\n"
        "    return s\n"
    )


def test_names_that_python_or_the_trace_uses_are_avoided() -> None:
    X = te.placeholder((4,), name="lambda")
    Y = te.compute((4,), lambda s: X[s] + 1.0, name="te")
    s = te.create_schedule(Y)
    s[Y].split(Y.op.axis[0], factor=2)
    s.cache_read(X, "local", [Y])
    names: dict[str, Any] = {"te": te}

    exec(str(s.trace), names)

    assert names["schedule"](Y).trace.to_json() == s.trace.to_json()


def test_an_empty_trace() -> None:
    s = te.create_schedule(C)

    assert s.trace.steps == ()
    assert json.loads(s.trace.to_json()) == {"tecomp_trace": 1, "outputs": ["C"], "steps": []}
    assert replay(s.trace.to_json(), C).trace.to_json() == s.trace.to_json()


def test_a_trace_fits_another_computation_of_the_same_form() -> None:
    s = te.create_schedule(C)
    splits(s)
    P2 = te.compute((24, 20), lambda i, j: te.exp(A[i % 12, j % 10]), name="P")
    C2 = te.compute((24, 20), lambda i, j: P2[i, j] - 1.0, name="C")

    replayed = replay(s.trace.to_json(), C2)

    assert [axis.extent for axis in replayed[C2].leaf_iter_vars] == [5, 5, 3, 2, 4]


def test_lists_are_copied_at_the_call() -> None:
    A = te.placeholder((8,), name="A")
    B = te.compute((8,), lambda i: A[i] + 1.0, name="B")
    s = te.create_schedule(B)
    readers = [B]
    s.cache_read(A, "local", readers)
    readers.clear()

    assert 's.cache_read(A, "local", [B])' in str(s.trace).replace("'", '"')


def test_the_trace_grows_with_the_schedule() -> None:
    A = te.placeholder((8,), name="A")
    B = te.compute((8,), lambda i: A[i] + 1.0, name="B")
    s = te.create_schedule(B)
    before = s.trace
    s[B].split(s[B].op.axis[0], factor=4)

    assert before.steps == ()
    assert [step.call for step in s.trace.steps] == ["split"]


def test_a_stage_is_found_by_the_name_that_the_trace_has_for_it() -> None:
    A = te.placeholder((8,), name="A")
    first = te.compute((8,), lambda i: A[i] * 2.0, name="B")
    second = te.compute((8,), lambda i: first[i] + 1.0, name="B")
    s = te.create_schedule(second)
    cache = s.cache_write(second, "local")

    offered = s._ipython_key_completions_()

    assert offered == ["A", "B", "B_1", "B_local"]
    assert [s[name] for name in offered] == [s[A], s[first], s[second], s[cache]]


def test_calls_have_user_source_locations() -> None:
    """Each call records the location of the caller; calls by a replay have no location."""
    A = te.placeholder((8,), name="A")
    B = te.compute((8,), lambda i: A[i] * 2.0, name="B")
    C = te.compute((8,), lambda i: B[i] + 1.0, name="C")
    s = te.create_schedule(C)
    s[C].split(C.op.axis[0], factor=4)
    s[C].vectorize(s[C].leaf_iter_vars[1])
    s[B].set_scope("local")
    s.create_group(outputs=B, inputs=A).compute_at(s[C], s[C].leaf_iter_vars[0])
    s.cache_read(A, "local", [B])
    s.merge_formula(B)

    places = [place for _, place in s.calls]

    lines = [place.line for place in places if place is not None]
    assert lines == [lines[0] + k for k in (0, 1, 2, 3, 3, 4, 5)]
    assert {place.file for place in places if place is not None} == {__file__}
    assert {place for _, place in replay(s.trace.to_json(), C).calls} == {None}
