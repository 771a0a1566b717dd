"""Tails that are shifted inwards compute every element without masks."""

from __future__ import annotations

from collections import Counter

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import tecomp
from tecomp import te
from tecomp.ir import BufferStore, evaluate, walk
from tests.strategies.draws import Draw


@st.composite
def shifted(draw: Draw) -> tuple[te.Schedule, list[te.Tensor]]:
    """Draw a stencil and its producer, split with shifted tails, some more than once."""
    shape = (draw(st.integers(3, 19)), draw(st.integers(3, 19)))
    A = te.placeholder((shape[0] + 1, shape[1] + 2), "int32", name="A")
    P = te.compute(A.shape, lambda i, j: A[i, j] * 3, name="P")
    C = te.compute(shape, lambda i, j: P[i, j + 2] + P[i + 1, j], name="C")
    s = te.create_schedule(C)
    inside = _split(draw, s[C])
    place = draw(st.sampled_from(["root", "inline", "inside"]))
    if place == "inline":
        s[P].compute_inline()
    elif place == "inside":
        s[P].compute_at(s[C], draw(st.sampled_from(inside)))
    if place != "inline":
        _split(draw, s[P])
    return s, [A, C]


def _split(draw: Draw, stage: te.Stage) -> list[te.IterVar]:
    """Split the axes and return the loops outside of the parallel or vectorized ones."""
    outer, inner = [], []
    for axis in stage.op.axis:
        most = axis.extent
        assert isinstance(most, int)
        neighbors, loop = stage.split(axis, draw(st.integers(1, most)), tail="shift_inwards")
        if draw(st.booleans()):
            assert isinstance(loop.extent, int)
            repeated = draw(st.integers(1, loop.extent))
            middle, loop = stage.split(loop, repeated, tail=draw(st.sampled_from(["guard", "shift_inwards"])))
            outer += [neighbors, middle]
        elif draw(st.booleans()):
            outer += stage.split(neighbors, draw(st.integers(1, 4)))
        else:
            outer.append(neighbors)
        inner.append(loop)
    if draw(st.booleans()):
        outer = draw(st.permutations(outer))
    stage.reorder(*outer, *inner)
    marks = [stage.unroll, draw(st.sampled_from([stage.vectorize, stage.unroll]))]
    for mark, loop in zip(marks, inner, strict=True):
        mark(loop)
    if draw(st.booleans()):
        stage.parallel(outer[0])
    return outer


@settings(max_examples=settings().max_examples // 2)
@given(shifted())
def test_every_element_is_computed(case: tuple[te.Schedule, list[te.Tensor]]) -> None:
    s, (A, C) = case
    lowered = tecomp.lower_all(s, [A, C])
    array = np.random.default_rng(0).integers(0, 99, A.shape, np.int32)
    rows, columns = C.shape
    expected = 3 * (array[:rows, 2:] + array[1:, :columns])

    for func in (lowered.functions["nest"], lowered.final):
        out = np.full(C.shape, -1, np.int32)
        flat = func is lowered.final
        evaluate(func, [array.reshape(-1) if flat else array, out.reshape(-1) if flat else out])
        np.testing.assert_array_equal(out, expected)
    out = np.full(C.shape, -1, np.int32)
    tecomp.build(s, [A, C])(array, out)
    np.testing.assert_array_equal(out, expected)


@given(st.integers(1, 40), st.data())
def test_no_vector_has_a_mask(extent: int, data: st.DataObject) -> None:
    factor = data.draw(st.integers(1, extent))
    A = te.placeholder((extent,), name="A")
    B = te.compute((extent,), lambda i: A[i] + 1.0, name="B")
    s = te.create_schedule(B)
    s[B].vectorize(s[B].split(B.op.axis[0], factor, tail="shift_inwards")[1])
    stores = [n for n in walk(tecomp.lower(s, [A, B]).body) if isinstance(n, BufferStore)]

    assert Counter(store.predicate for store in stores) == {None: 1}
    assert {store.value.dtype.lanes for store in stores} == {factor}
