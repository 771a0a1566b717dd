"""Scans: results of a recurrence under every schedule that preserves the dependences."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import tecomp
from tecomp import te
from tecomp.compute import Tensor
from tecomp.errors import LowerError
from tecomp.ir import PrimFunc, evaluate
from tecomp.lowering import lower_all
from tecomp.scheduling.replay import replay
from tecomp.scheduling.schedule import Schedule
from tests.messages import Diagnostic, diagnostic

STEPS, WIDTH = 9, 10
X = te.placeholder((STEPS, WIDTH), name="X")
state = te.placeholder((STEPS, WIDTH), name="state")
first = te.compute((1, WIDTH), lambda _, i: X[0, i], name="first")
rule = te.compute((STEPS, WIDTH), lambda t, i: state[t - 1, i] + X[t, i], name="rule")
S = te.scan(first, rule, state, X, name="S")

Change = Callable[[Schedule], object]


def whole_numbers(*shape: int) -> Any:
    return np.random.default_rng(0).integers(-4, 5, shape).astype("float32")


def check(
    s: Schedule, args: Sequence[Any], arrays: Sequence[Any], expected: Any
) -> PrimFunc:
    """Check the interpreter after every pass, the compiled code and a replayed schedule."""
    lowered = lower_all(s, args)
    for name in ("nest", "lower_storage"):
        if any(stage.layout.maps for stage in s.state):
            continue
        result = np.full(expected.shape, 77, expected.dtype)
        evaluate(lowered.functions[name], [*arrays, result])
        np.testing.assert_array_equal(result, expected, name)
    replayed = replay(s.trace.to_json(), s.outputs)
    assert str(lower_all(replayed, args).final) == str(lowered.final)
    kernel = tecomp.build(s, args, check_bounds=True)
    result = np.full(expected.shape, 77, expected.dtype)
    kernel(*arrays, result)
    np.testing.assert_array_equal(result, expected)
    return lowered.functions["nest"]


def as_made(s: Schedule) -> None:
    del s


def inlined(s: Schedule) -> None:
    s[first].compute_inline()
    s[rule].compute_inline()


def as_tvm_has_it(s: Schedule) -> None:
    for stage in (first, rule):
        outer, inner = s[stage].split(stage.op.axis[1], factor=4)
        s[stage].bind(outer, te.thread_axis("blockIdx.x"))
        s[stage].bind(inner, te.thread_axis("threadIdx.x"))


def blocks_of_places(s: Schedule) -> None:
    inlined(s)
    t, i = s[S].op.axis
    outer, inner = s[S].split(i, factor=4)
    s[S].reorder(outer, t, inner)
    s[S].vectorize(inner)
    s[S].parallel(outer)


def rule_in_blocks(s: Schedule) -> None:
    t, i = s[S].op.axis
    outer, inner = s[S].split(i, factor=4)
    s[S].reorder(outer, t, inner)
    s[first].compute_at(s[S], outer)
    s[rule].vectorize(rule.op.axis[1])
    s[S].vectorize(inner)


def places_outside(s: Schedule) -> None:
    t, i = s[S].op.axis
    s[S].reorder(i, t)
    s[S].unroll(t)


def steps_in_groups(s: Schedule) -> None:
    t, i = s[S].op.axis
    outer, inner = s[S].split(t, factor=3)
    s[S].reorder(i, outer, inner)


def one_loop(s: Schedule) -> None:
    t, i = s[S].op.axis
    outer, inner = s[S].split(i, nparts=3)
    s[S].reorder(outer, inner, t)
    s[S].fuse(outer, inner)


def cached(s: Schedule) -> None:
    copy = s.cache_read(state, "local", [rule])
    s[copy].compute_at(s[rule], rule.op.axis[1])
    x = s.cache_read(X, "local", [rule])
    s[x].compute_at(s[S], S.op.axis[0])
    result = s.cache_write(rule, "local")
    s[result].compute_at(s[rule], rule.op.axis[1])


@pytest.mark.exhaustive(keep=4)
@pytest.mark.parametrize(
    "change",
    [as_made, inlined, as_tvm_has_it, blocks_of_places, rule_in_blocks, places_outside,
     steps_in_groups, one_loop, cached],
)  # fmt: skip
def test_every_order_gives_running_sums(change: Change) -> None:
    s = te.create_schedule(S)
    change(s)
    a = whole_numbers(STEPS, WIDTH)

    check(s, [X, S], [a], a.cumsum(0))


@pytest.mark.exhaustive(keep=4)
@pytest.mark.parametrize("change", [as_made, inlined, blocks_of_places])
@pytest.mark.parametrize(
    "layout",
    [lambda t, i: [i, t], lambda t, i: [i // 4, t, i % 4],
     lambda t, i: [(t + i) % STEPS, i]],
)  # fmt: skip
def test_a_layout_of_the_result_leaves_the_loops(change: Change, layout: Any) -> None:
    s = te.create_schedule(S)
    change(s)
    loops = s[S].leaf_iter_vars
    copy = te.compute((STEPS, WIDTH), lambda t, i: S[t, i] * 2, name="copy")
    assert s[S].transform_layout(layout) == s[S].op.axis
    assert s[S].leaf_iter_vars == loops
    whole = te.create_schedule(copy)
    change(whole)
    whole[S].transform_layout(layout)
    a = whole_numbers(STEPS, WIDTH)

    check(whole, [X, copy], [a], 2 * a.cumsum(0))
    kernel = tecomp.build(s, [X, S])
    stored: Any = kernel.func.params[1]
    result = np.zeros(stored.shape, "float32")
    kernel(a, result)
    np.testing.assert_array_equal(kernel.unpack(S, result), a.cumsum(0))


def test_a_scan_inside_a_loop_computes_the_places_that_are_read() -> None:
    copy = te.compute((STEPS, WIDTH), lambda t, i: S[STEPS - 1 - t, i], name="copy")
    s = te.create_schedule(copy)
    inlined(s)
    t, i = copy.op.axis
    outer, inner = s[copy].split(i, factor=4)
    s[copy].reorder(outer, t, inner)
    s[copy].parallel(outer)
    s[S].compute_at(s[copy], outer)
    s[S].set_scope("local")
    a = whole_numbers(STEPS, WIDTH)

    func = check(s, [X, copy], [a], a.cumsum(0)[::-1])
    assert "bounds=((0, 9), (i_outer * 4, 4))" in str(func)


def neighbours() -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Build a scan in which each element depends on two elements of the previous step."""
    before = te.placeholder((STEPS, WIDTH), name="before")
    start = te.compute((1, WIDTH), lambda t, i: X[t, i], name="start")
    step = te.compute(
        (STEPS, WIDTH),
        lambda t, i: before[t - 1, i] - before[t - 1, te.min(i + 1, WIDTH - 1)] + X[t, i],
        name="step",
    )
    return te.scan(start, step, before, name="N"), start, step, before


def neighbours_by_numpy(a: Any) -> Any:
    rows = [a[0]]
    for row in a[1:]:
        rows.append(rows[-1] - np.append(rows[-1][1:], rows[-1][-1]) + row)
    return np.stack(rows)


@pytest.mark.parametrize("parallel", [False, True])
def test_scan_indices_may_depend_on_other_indices(parallel: bool) -> None:
    N, start, step, _ = neighbours()
    s = te.create_schedule(N)
    s[start].compute_inline()
    s[step].compute_inline()
    if parallel:
        s[N].parallel(N.op.axis[1])
    a = whole_numbers(STEPS, WIDTH)

    check(s, [X, N], [a], neighbours_by_numpy(a))


def test_a_scan_of_neighbours_inside_a_loop_is_computed_whole() -> None:
    N, *_ = neighbours()
    copy = te.compute((WIDTH,), lambda i: N[STEPS - 1, i], name="copy")
    s = te.create_schedule(copy)
    s[N].compute_at(s[copy], copy.op.axis[0])
    a = whole_numbers(STEPS, WIDTH)

    func = check(s, [X, copy], [a], neighbours_by_numpy(a)[-1])
    assert "bounds=((0, 9), (0, 10))) as N" in str(func)


def test_several_states() -> None:
    steps, n = 6, 5
    W = te.placeholder((n, n), name="W")
    x = te.placeholder((steps, n), name="x")
    c, h = (te.placeholder((steps, n), name=name) for name in "ch")
    c0, h0 = (te.compute((1, n), lambda _, i: te.const(1.0), name=f"{m}0") for m in "ch")
    k = te.reduce_axis((0, n), name="k")
    product = te.compute(
        (steps, n), lambda t, i: te.sum(W[i, k] * h[t - 1, k], axis=k), name="product"
    )
    c1 = te.compute((steps, n), lambda t, i: c[t - 1, i] + product[t, i], name="c1")
    h1 = te.compute((steps, n), lambda t, i: te.max(c1[t, i] + x[t, i], 0.0), name="h1")
    C, H = te.scan([c0, h0], [c1, h1], [c, h], [x, W], name="S")
    s = te.create_schedule(H)
    s[product].compute_at(s[C], C.op.axis[0])
    w, a = whole_numbers(n, n), whole_numbers(steps, n)
    rows = [(np.ones(n, "float32"), np.ones(n, "float32"))]
    for row in a[1:]:
        new = rows[-1][0] + w @ rows[-1][1]
        rows.append((new, np.maximum(new + row, 0)))
    cells = np.zeros((steps, n), "float32")

    check(s, [W, x, C, H], [w, a, cells], np.stack([row[1] for row in rows]))
    np.testing.assert_array_equal(cells, np.stack([row[0] for row in rows]))


def test_the_first_steps_may_be_several() -> None:
    n, steps = te.var("n"), te.var("steps")
    A = te.placeholder((2, n), name="A")
    out = te.placeholder((steps, n), name="out")
    rule = te.compute((steps, n), lambda t, i: out[t - 1, i] + out[t - 2, i], name="rule")
    F = te.scan(A, rule, out, name="F")
    s = te.create_schedule(F)
    s[rule].compute_inline()
    t, i = F.op.axis
    outer, inner = s[F].split(i, factor=4)
    s[F].reorder(outer, t, inner)
    s[F].vectorize(inner)
    a = np.ones((2, 6), "float32")
    rows = [1, 1, 2, 3, 5, 8, 13]

    check(s, [A, F], [a], np.repeat(np.array(rows, "float32")[:, None], 6, 1))


def test_a_scan_may_have_no_further_steps() -> None:
    out = te.placeholder((1, 4), name="out")
    A = te.placeholder((1, 4), name="A")
    rule = te.compute((1, 4), lambda t, i: out[t - 1, i], name="rule")
    F = te.scan(A, rule, out, name="F")
    a = whole_numbers(1, 4)

    check(te.create_schedule(F), [A, F], [a], a)


@pytest.mark.parametrize("n", [0, 1, 2, 3])
def test_a_scan_may_have_fewer_steps_than_its_start(n: int) -> None:
    steps = te.var("steps")
    A = te.placeholder((2, 3), name="A")
    out = te.placeholder((steps, 3), name="out")
    rule = te.compute((steps, 3), lambda t, i: out[t - 1, i] + out[t - 2, i], name="rule")
    F = te.scan(A, rule, out, name="F")
    a = whole_numbers(2, 3)

    check(te.create_schedule(F), [A, F], [a], np.stack([*a, a.sum(0)])[:n])


def test_scans_of_scans() -> None:
    second = te.placeholder((STEPS, WIDTH), name="second")
    start = te.compute((1, WIDTH), lambda t, i: S[t, i], name="start")
    add = te.compute((STEPS, WIDTH), lambda t, i: second[t - 1, i] + S[t, i], name="add")
    T = te.scan(start, add, second, name="T")
    s = te.create_schedule(T)
    a = whole_numbers(STEPS, WIDTH)

    check(s, [X, T], [a], a.cumsum(0).cumsum(0))


def test_a_scan_inside_of_a_scan() -> None:
    """Step t is the running sum of step t - 1 along its row, plus a row of X."""
    outer = te.placeholder((STEPS, WIDTH), name="outer")
    along = te.placeholder((WIDTH, STEPS), name="along")
    begin = te.compute((1, STEPS), lambda _, t: outer[t - 1, 0], name="begin")
    add = te.compute(
        (WIDTH, STEPS), lambda i, t: along[i - 1, t] + outer[t - 1, i], name="add"
    )
    inner = te.scan(begin, add, along, name="inner")
    step = te.compute((STEPS, WIDTH), lambda t, i: inner[i, t] + X[t, i], name="step")
    T = te.scan(first, step, outer, name="T")
    s = te.create_schedule(T)
    a = whole_numbers(STEPS, WIDTH)
    rows = [a[0]]
    for row in a[1:]:
        rows.append(rows[-1].cumsum() + row)

    check(s, [X, T], [a], np.stack(rows))


def refused(s: Schedule, args: Sequence[Any]) -> Diagnostic:
    with pytest.raises(LowerError) as error:
        tecomp.lower(s, list(args))
    return diagnostic(error.value)


def test_inputs_of_scan_steps_are_computed_before() -> None:
    N, start, step, _ = neighbours()
    s = te.create_schedule(N)
    s[start].compute_inline()
    s[step].compute_inline()
    t, i = N.op.axis
    outer, inner = s[N].split(i, factor=4)
    s[N].reorder(outer, t, inner)

    message = refused(s, [X, N])
    assert message == (
        Diagnostic(
            "dependence-violation", name="N", values="i.outer = 0, t = 0, i.inner = 3", definition="N[0, 4]",
        )
    )


def test_steps_of_a_group_stay_in_order() -> None:
    s = te.create_schedule(S)
    inlined(s)
    outer, inner = s[S].split(S.op.axis[0], factor=3)
    s[S].reorder(inner, outer)

    message = refused(s, [X, S])
    assert message == (
        Diagnostic(
            "dependence-violation", name="S", values="t.inner = 0, t.outer = 1, i = 0", definition="S[3, 0]",
        )
    )


def test_stages_of_a_step_are_computed_in_it() -> None:
    s = te.create_schedule(S)
    t, i = S.op.axis
    outer, inner = s[S].split(i, factor=4)
    s[S].reorder(outer, t, inner)
    s[rule].compute_at(s[S], outer)

    message = refused(s, [X, S])
    assert message == (
        Diagnostic("dependence-violation", name="S", values="i.outer = 0", definition="S[0, 0]")
    )


def test_dependent_scan_indices_are_not_parallel() -> None:
    N, _, step, _ = neighbours()
    s = te.create_schedule(N)
    s[step].compute_inline()
    t, i = N.op.axis
    s[N].reorder(i, t)
    s[N].parallel(i)

    message = refused(s, [X, N])
    assert message == (
        Diagnostic("dependence-violation", call="s[N].parallel(i)", values="i = 0, t = 0", definition="N[0, 1]")
    )


def test_the_start_is_computed_before_the_steps() -> None:
    s = te.create_schedule(S)
    s[first].compute_at(s[S], S.op.axis[0])

    message = refused(s, [X, S])
    assert message == (
        Diagnostic(
            "dependence-violation", where="s[first].compute_at(s[S], t)", subject="the start", parent="S",
            name="first", loops="over steps",
        )
    )


def test_a_step_reads_earlier_ones() -> None:
    rule = te.compute((STEPS, WIDTH), lambda t, i: state[t, i] + 1.0, name="rule")
    late = te.scan(first, rule, state, name="late")

    message = refused(te.create_schedule(late), [X, late])
    assert message == (
        Diagnostic("dependence-violation", scan="late", index="1, 0", element="late[1, 0]", step="t")
    )


MIXED = "lambda t, i: [t ^ i % 4, i // 4, i % 4]"


def test_a_layout_can_hide_step_dependences() -> None:
    """The recurrence is valid, but its cache has a layout that integer sets cannot represent."""
    s = te.create_schedule(S)
    s[rule].transform_layout(eval(MIXED))
    s.cache_write(rule, "local")

    assert refused(s, [X, S]) == (
        Diagnostic("dependence-violation", scan="S", reader="rule", tensor="rule.local")
    )


def test_a_cache_from_before_the_layout_hides_nothing() -> None:
    s = te.create_schedule(S)
    cache = s.cache_write(rule, "local")
    s[cache].transform_layout(eval(MIXED))
    x = whole_numbers(STEPS, WIDTH)

    check(s, [X, S], [x], x.cumsum(0))


def test_producers_leave_the_step_loop_with_their_readers() -> None:
    """Two steps are computed at once, where each step depends on the step two before."""
    early = te.compute((STEPS, WIDTH), lambda t, i: state[t - 2, i] + X[t, i], name="early")
    two = te.compute((2, WIDTH), lambda t, i: X[t, i], name="two")
    E = te.scan(two, early, state, name="E")
    s = te.create_schedule(E)
    cache = s.cache_read(early, "local", [E])
    outer, _ = s[E].split(E.op.axis[0], factor=2)
    s[cache].compute_at(s[E], outer)
    x = whole_numbers(STEPS, WIDTH)
    expected = x.copy()
    for k in range(2, STEPS):
        expected[k] += expected[k - 2]

    check(s, [X, E], [x], expected)


def test_a_cache_of_several_steps_is_refused_where_each_follows_from_the_last() -> None:
    s = te.create_schedule(S)
    cache = s.cache_read(rule, "local", [S])
    outer, _ = s[S].split(S.op.axis[0], factor=2)
    s[cache].compute_at(s[S], outer)

    assert refused(s, [X, S]) == (
        Diagnostic("dependence-violation", name="S", values="t.outer = 0", definition="S[1, 0]")
    )


@pytest.mark.exhaustive(keep=2)
@pytest.mark.parametrize("shape", [(0, 4), (1, 4), (7, 3), (7, 0)])
def test_steps_known_at_the_call_may_be_none(shape: tuple[int, int]) -> None:
    """Stages that only the initial steps read are not computed if there are no steps."""
    m, n = te.var("m"), te.var("n")
    source, own = te.placeholder((m, n), name="given"), te.placeholder((m, n), name="own")
    twice = te.compute((1, n), lambda _, i: source[0, i] * 2.0, name="twice")
    start = te.compute((1, n), lambda _, i: twice[0, n - 1 - i], name="start")
    step = te.compute((m, n), lambda t, i: own[t - 1, i] + source[t, i], name="step")
    R = te.scan(start, step, own, name="R")
    s = te.create_schedule(R)
    s[twice].transform_layout(lambda t, i: [i, t])
    x = whole_numbers(*shape)
    expected = x.copy()
    expected[:1] = 2 * x[:1, ::-1]

    check(s, [source, R], [x], expected.cumsum(0))


@pytest.mark.exhaustive(keep=2)
@pytest.mark.parametrize("shape", [(0, 4), (1, 4), (7, 3), (7, 0), (7, 5)])
def test_places_may_be_split_into_parts_of_any_size(shape: tuple[int, int]) -> None:
    """The length of the parts is known only at the call, so no set describes which loops run."""
    m, n = te.var("m"), te.var("n")
    source, own = te.placeholder((m, n), name="given"), te.placeholder((m, n), name="own")
    start = te.compute((1, n), lambda _, i: source[0, i] * 2.0, name="start")
    step = te.compute((m, n), lambda t, i: own[t - 1, i] + source[t, i], name="step")
    R = te.scan(start, step, own, name="R")
    s = te.create_schedule(R)
    s[R].split(R.op.axis[1], nparts=2)
    x = whole_numbers(*shape)
    expected = x.copy()
    expected[:1] *= 2

    check(s, [source, R], [x], expected.cumsum(0))


@pytest.mark.exhaustive(keep=2)
@pytest.mark.parametrize("steps", [0, 1, 5])
def test_initial_steps_with_external_readers(steps: int) -> None:
    """If there are no steps, nothing reads the initial steps, and they are not computed."""
    m = te.var("m")
    source, own = te.placeholder((m, 3), name="given"), te.placeholder((m, 3), name="own")
    start = te.compute((1, 3), lambda t, i: source[t, i], name="start")
    step = te.compute((m, 3), lambda t, i: own[t - 1, i] + source[t, i], name="step")
    R = te.scan(start, step, own, name="R")
    both = te.compute((m, 3), lambda t, i: R[t, i] - start[0, i], name="both")

    x = whole_numbers(steps, 3)
    check(te.create_schedule(both), [source, both], [x], x.cumsum(0) - x[:1])
    kernel = tecomp.build(te.create_schedule(both), [source, start, both])
    first, found = np.zeros((1, 3), "float32"), np.zeros_like(x)
    if steps:
        kernel(x, first, found)
        np.testing.assert_array_equal(found, x.cumsum(0) - x[:1])
        return
    with pytest.raises(tecomp.CallError) as error:
        kernel(x, first, found)
    line = start.op.location.line if start.op.location else 0
    assert diagnostic(error.value) == Diagnostic(
        "out-of-bounds", value=0, text=f"{__file__}:{line}: given[t, i] (axis 0 of given[m, 3])",
    )


def test_scans_require_enough_initial_steps() -> None:
    rule = te.compute((STEPS, WIDTH), lambda t, i: state[t - 2, i] + 1.0, name="rule")
    few = te.scan(first, rule, state, name="few")

    message = refused(te.create_schedule(few), [X, few])
    assert message == (
        Diagnostic(
            "out-of-bounds-read", stage="rule", load="state[t - 2, i]", tensor="state", shape="9, 10",
            axis=0, index="t - 2", value=-1, point=" at t = 1, i = 0",
        )
    )


def test_states_are_no_arguments() -> None:
    message = refused(te.create_schedule(S), [X, state, S])
    assert message == (
        Diagnostic("argument-list", position=1, arg="state", name="S")
    )


def test_a_state_belongs_to_one_scan() -> None:
    other = te.scan(first, rule, state, name="other")
    both = te.compute((WIDTH,), lambda i: S[0, i] + other[0, i], name="both")

    message = refused(te.create_schedule(both), [X, both])
    assert message == (
        Diagnostic("dependence-violation", tensor="state", other="S", stage="other")
    )


def test_layouts_match_the_scan() -> None:
    s = te.create_schedule(S)
    s[state].transform_layout(lambda t, i: [i, t])

    message = refused(s, [X, S])
    assert message == (
        Diagnostic("dependence-violation", tensor="state", stage="S")
    )


def test_stages_after_the_scan_are_not_computed_in_steps() -> None:
    both = te.compute((STEPS, WIDTH), lambda t, i: S[t, i] + rule[t, i], name="both")

    message = refused(te.create_schedule(both), [X, both])
    assert message == (
        Diagnostic("dependence-violation", where="s[rule].compute_at(s[S], t)", stage="both", name="rule")
    )


def test_a_rule_that_reads_no_state() -> None:
    """The initial step differs from the other steps, and no step depends on another."""
    plain = te.compute((STEPS, WIDTH), lambda t, i: X[t, i] * 2.0, name="plain")
    free = te.scan(first, plain, state, name="free")
    x = whole_numbers(STEPS, WIDTH)

    check(te.create_schedule(free), [X, free], [x], np.concatenate([x[:1], x[1:] * 2]))


@pytest.mark.parametrize("is_beside", [False, True])
def test_a_rule_is_not_computed_outside_of_its_scan(is_beside: bool) -> None:
    last = te.compute((WIDTH,), lambda i: S[STEPS - 1, i], name="last")
    s = te.create_schedule(last.op)
    (i,) = last.op.axis
    s[rule].compute_at(s[last], i)
    if is_beside:
        s[S].compute_at(s[last], i)

    assert refused(s, [X, last]) == (
        Diagnostic("dependence-violation", stage="rule", of="last", axis="i", name="S")
    )


@pytest.mark.exhaustive(keep=5)
@pytest.mark.parametrize("rows", [3, 4, 6])
@pytest.mark.parametrize("steps", [1, 2, 3, 5])
def test_first_steps_computed_in_blocks_around_groups_of_steps(rows: int, steps: int) -> None:
    # Groups are counted from the first later step, and have no space for the initial steps.
    held = te.placeholder((rows, 5), "int32", name="held")
    A = te.placeholder((2, 5), "int32", name="A")
    start = te.compute((2, 5), lambda t, i: A[t, i] * 2, name="start")
    later = te.compute((rows, 5), lambda t, i: held[t - 2, i] + 1, name="later")
    sums = te.scan(start, later, held, name="sums")
    s = te.create_schedule(sums)
    t, i = s[sums].op.axis
    block, *_ = s[sums].tile(i, t, 3, steps)
    s[start].compute_at(s[sums], block)

    text = str(tecomp.lower(s, [A, sums], stop_after="nest"))
    kernel = tecomp.build(s, [A, sums])

    assert "bounds=((0, 2), (i_outer * 3, 3))) as start:" in text
    a, found = np.arange(10, dtype=np.int32).reshape(2, 5), np.zeros((rows, 5), np.int32)
    kernel(a, found)
    expected = a[np.arange(rows) % 2] * 2 + np.arange(rows)[:, None] // 2
    np.testing.assert_array_equal(found, expected)


def test_a_scan_that_is_passed_and_computed_where_nothing_is_read_is_refused() -> None:
    A = te.placeholder((1, 4), "int32", name="A")
    held = te.placeholder((1, 4), "int32", name="held")
    start = te.compute((1, 4), lambda t, i: A[t, i], name="start")
    later = te.compute((1, 4), lambda t, i: held[t - 1, i] + 1, name="later")
    sums = te.scan(start, later, held, name="sums")
    copy = te.compute((4,), lambda i: sums[0, i], name="copy")
    k = te.reduce_axis((0, 4), name="k")
    most = te.compute(
        (), lambda: te.max(te.if_then_else(k < 2, copy[k], 0), axis=k, where=k > 2), name="most"
    )
    s = te.create_schedule([sums.op, most.op])
    s[copy].compute_at(s[most], most.op.reduce_axis[0])
    s[sums].compute_at(s[copy], copy.op.axis[0])

    assert refused(s, [A, sums, most]) == (
        Diagnostic("dependence-violation", name="sums")
    )
