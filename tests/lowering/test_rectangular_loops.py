"""Loops counted from extents equal the loops generated from integer sets."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tecomp
from tecomp import te
from tecomp.ir import parse
from tecomp.lowering.loops import loop_nest
from tecomp.scheduling.schedule import Schedule
from tests.strategies.draws import Draw

SHAPE = (7, 12, 5)
A = te.placeholder(SHAPE, name="A")
B = te.compute(SHAPE, lambda i, j, k: A[i, j, k] + 1.0, name="B")

h, m, n = te.var("h"), te.var("m"), te.var("n")
P = te.placeholder((h, m, n), name="P")
Q = te.compute((h, m, n), lambda i, j, k: P[i, j, k] + 1.0, name="Q")


@st.composite
def schedules(draw: Draw, B: te.Tensor = B) -> Schedule:
    """Draw splits, some with shifted tails, fusions and annotations, in any order of the loops."""
    s = te.create_schedule(B)
    for _ in range(draw(st.integers(1, 4))):
        loops = s[B].leaf_iter_vars
        place = draw(st.integers(0, len(loops) - 1))
        extent = loops[place].extent
        most = extent if isinstance(extent, int) else 8
        if draw(st.booleans()):
            tail = draw(st.sampled_from(["guard", "shift_inwards"]))
            tail = tail if isinstance(extent, int) else "guard"
            s[B].split(loops[place], draw(st.integers(1, most)), tail=tail)
        elif draw(st.booleans()):
            s[B].split(loops[place], nparts=draw(st.integers(1, most)))
        elif draw(st.booleans()):
            s[B].reorder(*draw(st.permutations(loops)))
        elif place:
            s[B].fuse(loops[place - 1], loops[place])
    mark = draw(st.sampled_from(["parallel", "vectorize", "unroll"]))
    getattr(s[B], mark)(draw(st.sampled_from(s[B].leaf_iter_vars)))
    return s


def loops_of(s: Schedule) -> str:
    return str(tecomp.lower(s, [A, B], stop_after="nest").body)


def visits(s: Schedule) -> np.ndarray[Any, Any]:
    """Return how often each element of B is computed: the statement adds 1 to it."""
    text = str(tecomp.lower(s, [A, B], stop_after="nest"))
    counts = np.zeros([int(n) for n in B.shape], "float32")
    assert text.count(" = A[") > 0
    tecomp.evaluate(parse(text.replace(" = A[", " = B[")), [np.zeros_like(counts), counts])
    return counts


@settings(max_examples=3 * settings().max_examples)
@given(schedules())
def test_rectangular_loops_keep_the_iterations(s: Schedule) -> None:
    found = visits(s)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loop_nest, "rectangular_loops", lambda *_: None)
        requested = visits(s)

    assert found.min() >= 1
    np.testing.assert_array_equal(found, requested)


@settings(max_examples=3 * settings().max_examples)
@given(schedules(Q), st.tuples(*[st.integers(0, 9)] * 3))
def test_sizes_are_counted_when_they_are_known(s: Schedule, shape: tuple[int, int, int]) -> None:
    p, q = np.random.default_rng(0).random(shape, np.float32), np.zeros(shape, np.float32)

    tecomp.evaluate(tecomp.lower(s, [P, Q], stop_after="nest"), [p, q])

    np.testing.assert_array_equal(q, p + np.float32(1))


def streamed(s: Schedule, fused: int) -> Schedule:
    """Schedule vectors along the last axes, in chunks of several vectors."""
    axes = s[Q].op.axis
    along = s[Q].fuse(*axes[-fused:]) if fused > 1 else axes[-1]
    chunk, inner = s[Q].split(along, factor=64)
    _, lane = s[Q].split(inner, factor=16)
    s[Q].vectorize(lane)
    s[Q].parallel(s[Q].fuse(*axes[: 3 - fused], chunk))
    return s


@pytest.mark.parametrize("fused", [1, 3])
def test_symbolic_vectors_need_no_set_query(fused: int) -> None:
    schedule = tecomp.lower(streamed(te.create_schedule(Q), fused), [P, Q], stop_after="nest")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loop_nest, "rectangular_loops", lambda *_: None)
        requested = tecomp.lower(streamed(te.create_schedule(Q), fused), [P, Q], stop_after="nest")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loop_nest, "all_elements", None)
        tecomp.lower(streamed(te.create_schedule(Q), fused), [P, Q], stop_after="nest")

    assert str(schedule) == str(requested)


def test_a_loop_is_counted_where_what_it_depends_on_is_outside_of_it() -> None:
    """The bound of a partial outer loop depends on loops further out."""
    s = te.create_schedule(B)
    outer, inner = s[B].split(B.op.axis[0], nparts=2)
    s[B].tile(inner, outer, 2, 5)

    assert loops_of(s).startswith("for i_inner_outer in range(2):\n    for ")


def test_a_loop_that_runs_at_once_and_is_cut_short_is_left_to_sets() -> None:
    s = te.create_schedule(B)
    s[B].vectorize(s[B].split(B.op.axis[1], 8)[1])

    assert loops_of(s).count("in vectorized(8)") == loops_of(s).count("in vectorized(4)") == 1
