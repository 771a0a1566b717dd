"""Initial values of reductions: from the first partial result, or stored by loops."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tecomp
from tecomp import te
from tecomp.ir import Buffer, BufferLoad, BufferStore, Var, evaluate, walk
from tecomp.lowering import lower_all
from tecomp.operations import COMBINERS
from tecomp.schedules import argreduce
from tests.numerics import assert_close


def in_parts(
    depth: Any, *, part: int = 4, combine: Any = te.sum, tiles: bool = True
) -> tuple[Any, list[Any]]:
    """Build 6 x 10 products reduced by `combine` in parts of the depth, each in 2 x 8 tiles."""
    A, B = te.placeholder((6, depth), name="A"), te.placeholder((depth, 10), name="B")
    k = te.reduce_axis((0, depth), name="k")
    C = te.compute((6, 10), lambda i, j: combine(A[i, k] * B[k, j], axis=k), name="C")
    s = te.create_schedule(C)
    outer, _ = s[C].split(k, factor=part)
    P: Any = s.rfactor(C, outer)
    s[P].set_scope("local")
    i, j = s[C].op.axis
    (outer,) = s[C].op.reduce_axis
    i, ii = s[C].split(i, factor=2)
    j, jj = s[C].split(j, factor=8)
    s[C].reorder(outer, j, i, ii, jj)
    s[C].unroll(ii)
    s[C].vectorize(jj)
    s[P].compute_at(s[C], i if tiles else outer)
    return s, [A, B, C]


def text_of(s: Any, args: list[Any]) -> str:
    return str(tecomp.lower(s, args, simple_mode=True))


@pytest.mark.exhaustive(keep=2)
@pytest.mark.parametrize("depth", [1, 4, 11])
@pytest.mark.parametrize("combine", [te.sum, te.max])
def test_the_first_part_stores(depth: int, combine: Any) -> None:
    s, args = in_parts(depth, combine=combine)
    a, b = (np.random.default_rng(0).standard_normal(t.shape, np.float32) for t in args[:2])
    products = a[:, :, None] * b[None]
    expected = products.sum(1) if combine is te.sum else products.max(1)

    for func in lower_all(s, args).functions.values():
        shapes = [p.shape for p in func.params if isinstance(p, Buffer)]
        inputs = [a, b, np.full((6, 10), np.nan, np.float32)]
        flat = [x.reshape(shape) for x, shape in zip(inputs, shapes, strict=True)]
        evaluate(func, flat)
        assert_close(flat[2].reshape(6, 10), expected, rtol=1e-5, atol=1e-5)
    c = np.full((6, 10), np.nan, np.float32)
    tecomp.build(s, args, check_bounds=True)(a, b, c)
    assert_close(c, expected, rtol=1e-5, atol=1e-5)


def test_one_condition_takes_the_place_of_a_pass() -> None:
    text = text_of(*in_parts(11))

    assert "if k_outer_v == 0:" in text
    assert text.index("for k_outer_v") < text.index("C[")


def test_loops_initialize_elements_outside_tiles() -> None:
    text = text_of(*in_parts(12, tiles=False))

    assert "k_outer_v == 0" not in text


def test_a_sum_that_may_be_empty_is_filled_with_zeros() -> None:
    n = te.var("n")
    s, args = in_parts(n)
    kernel = tecomp.build(s, args)
    for depth in (0, 5):
        a, b = np.ones((6, depth), np.float32), np.ones((depth, 10), np.float32)
        c = np.full((6, 10), np.nan, np.float32)
        kernel(a, b, c)
        np.testing.assert_array_equal(c, np.full((6, 10), depth, np.float32))


def of_four(
    combine: Any, *, dtype: str = "float32", last: Any = None, is_unrolled: bool = True
) -> tuple[Any, list[Any]]:
    """Reduce rows of 16 to 4 partial results each, combined by `combine` or by `last`."""
    A = te.placeholder((5, 16), dtype, name="A")
    outer, inner = te.reduce_axis((0, 4), name="outer"), te.reduce_axis((0, 4), name="inner")
    P = te.compute((5, 4), lambda i, j: combine(A[i, outer * 4 + j], axis=outer), name="P")
    B = te.compute((5,), lambda i: (last or combine)(P[i, inner], axis=inner), name="B")
    s = te.create_schedule(B)
    if is_unrolled:
        s[B].unroll(inner)
    return s, [A, B]


@pytest.mark.exhaustive(keep=5)
@pytest.mark.parametrize("name", [row.name for row in COMBINERS.values() if not row.is_logical])
@pytest.mark.parametrize("dtype", ["float32", "int32"])
def test_the_first_of_partial_results_is_stored(name: str, dtype: str) -> None:
    s, args = of_four(getattr(te, name), dtype=dtype)
    a = np.random.default_rng(0).integers(-3, 4, (5, 16)).astype(dtype)
    a[0], a[1, 3] = -0.0 if dtype == "float32" else 0, 7
    expected = getattr(np, name)(a, 1)

    for func in lower_all(s, args).functions.values():
        b = np.full(5, 99, dtype)
        shapes = [p.shape for p in func.params if isinstance(p, Buffer)]
        evaluate(func, [x.reshape(shape) for x, shape in zip((a, b), shapes, strict=True)])
        np.testing.assert_array_equal(b, expected)
    b = np.full(5, 99, dtype)
    tecomp.build(s, args, check_bounds=True)(a, b)
    np.testing.assert_array_equal(b, expected)
    assert stores_of_constants(s, args) == {"P"}


def stores_of_constants(s: Any, args: list[Any]) -> set[str]:
    """Return the buffers in which constants are stored."""
    func = tecomp.lower(s, args)
    stores = [node for node in walk(func.body) if isinstance(node, BufferStore)]
    return {
        node.buffer.name for node in stores
        if not any(isinstance(part, BufferLoad | Var) for part in walk(node.value))
    }


def test_the_first_of_partial_places_is_stored() -> None:
    """The index is 0 for rows that contain only -inf or only NaN."""
    A = te.placeholder((4, 16), name="A")
    k = te.reduce_axis((0, 16), name="k")
    place, _ = te.compute(
        (4,), lambda i: argreduce.first_of("float32", "argmax")((k, A[i, k]), axis=k), name="B")
    s = te.create_schedule(place)
    _, inner = s[place].split(k, factor=4)
    s.rfactor(place, inner, order=0)
    s[place].unroll(s[place].op.reduce_axis[0])
    args = [A, *place.op.outputs]
    a = np.random.default_rng(0).integers(0, 3, (4, 16)).astype(np.float32)
    a[0], a[1, 5:7], a[2] = -np.inf, np.nan, np.nan
    found, values = np.zeros(4, np.int32), np.zeros(4, np.float32)
    tecomp.build(s, args)(a, found, values)

    np.testing.assert_array_equal(found, a.argmax(1))
    assert not {x.name for x in place.op.outputs} & stores_of_constants(s, args)


def test_results_of_another_reducer_and_loops_have_an_initial_value() -> None:
    assert stores_of_constants(*of_four(te.sum)) == {"P"}
    assert stores_of_constants(*of_four(te.sum, last=te.max)) == {"P", "B"}
    assert stores_of_constants(*of_four(te.sum, is_unrolled=False)) == {"P", "B"}
