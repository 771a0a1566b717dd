"""Loops that are counted from extents are those that sets would give."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tecomp
from tecomp import te
from tecomp.lowering.loops import nest
from tecomp.scheduling.schedule import Schedule
from tests.strategies.draws import Draw

SHAPE = (7, 12, 5)
A = te.placeholder(SHAPE, name="A")
B = te.compute(SHAPE, lambda i, j, k: A[i, j, k] + 1.0, name="B")


@st.composite
def schedules(draw: Draw) -> Schedule:
    """Splits, some of them shifted, fusions and marks of a stage, in any order of its loops."""
    s = te.create_schedule(B)
    for _ in range(draw(st.integers(1, 4))):
        loops = s[B].leaf_iter_vars
        place = draw(st.integers(0, len(loops) - 1))
        extent = loops[place].extent
        assert isinstance(extent, int)
        if draw(st.booleans()):
            tail = draw(st.sampled_from(["guard", "shift_inwards"]))
            s[B].split(loops[place], draw(st.integers(1, extent)), tail=tail)
        elif draw(st.booleans()):
            s[B].split(loops[place], nparts=draw(st.integers(1, extent)))
        elif draw(st.booleans()):
            s[B].reorder(*draw(st.permutations(loops)))
        elif place:
            s[B].fuse(loops[place - 1], loops[place])
    mark = draw(st.sampled_from(["parallel", "vectorize", "unroll"]))
    getattr(s[B], mark)(draw(st.sampled_from(s[B].leaf_iter_vars)))
    return s


def loops_of(s: Schedule) -> str:
    return str(tecomp.lower(s, [A, B], stop_after="nest").body)


@settings(max_examples=3 * settings().max_examples)
@given(schedules())
def test_they_are_the_same(s: Schedule) -> None:
    counted = loops_of(s)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(nest, "counted", lambda *_: None)
        asked = loops_of(s)

    assert counted == asked


def test_a_loop_is_counted_where_what_it_depends_on_is_outside_of_it() -> None:
    """The outer loop of a part that is cut short is cut short by what is further out."""
    s = te.create_schedule(B)
    outer, inner = s[B].split(B.op.axis[0], nparts=2)
    s[B].tile(inner, outer, 2, 5)

    assert loops_of(s).startswith("for i_inner_outer in range(2):\n    for ")


def test_a_loop_that_runs_at_once_and_is_cut_short_is_left_to_sets() -> None:
    s = te.create_schedule(B)
    s[B].vectorize(s[B].split(B.op.axis[1], 8)[1])

    assert loops_of(s).count("in vectorized(8)") == loops_of(s).count("in vectorized(4)") == 1
