"""Loops with tails shifted inwards: loops of the stage, and of stages computed inside."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import tecomp
from tecomp import te
from tecomp.scheduling.schedule import Schedule

A = te.placeholder((21, 50), "uint8", name="A")
B = te.compute((50, 21), lambda i, j: A[j, i], name="B")


def staged() -> tuple[Schedule, te.Tensor]:
    """Schedule tiles of 16 x 8 elements, transposed in squares of 8 and copied by rows."""
    s = te.create_schedule(B)
    tile = s.cache_write(B, "local")
    i, j = s[B].op.axis
    rows, row = s[B].split(i, 16, tail="shift_inwards")
    columns, column = s[B].split(j, 8, tail="shift_inwards")
    s[B].reorder(rows, columns, row, column)
    s[B].vectorize(column)
    s[tile].compute_at(s[B], columns)
    i, j = s[tile].op.axis
    rows, row = s[tile].split(i, 8, tail="shift_inwards")
    s[tile].reorder(rows, row, j)
    s[tile].unroll(row)
    s[tile].vectorize(j)
    return s, tile


def test_a_tile_inside_shifted_parts_has_their_size(golden: Callable[[object], None]) -> None:
    s, _ = staged()

    golden(tecomp.lower(s, [A, B], stop_after="lower_storage"))


def test_shifted_tail_values() -> None:
    s, _ = staged()
    array = np.random.default_rng(0).integers(0, 255, A.shape, np.uint8)
    out = np.zeros(B.shape, np.uint8)

    tecomp.build(s, [A, B])(array, out)

    np.testing.assert_array_equal(out, array.T)


def test_shifted_tails_are_guarded_for_partial_reads() -> None:
    P = te.compute((20,), lambda i: A[i, 0] + A[i, 1], name="P")
    C = te.compute((20,), lambda i: P[i] + P[i], name="C")
    s = te.create_schedule(C)
    outer, _ = s[C].split(C.op.axis[0], 3)
    s[P].split(P.op.axis[0], 8, tail="shift_inwards")
    s[P].compute_at(s[C], outer)
    array = np.random.default_rng(0).integers(0, 60, A.shape, np.uint8)
    out = np.zeros(20, np.uint8)

    tecomp.build(s, [A, C])(array, out)

    np.testing.assert_array_equal(out, 2 * (array[:20, 0] + array[:20, 1]))
    loops = str(tecomp.lower(s, [A, C], stop_after="nest"))
    assert "for i_inner in range(min(3, 20 - i_outer * 3)):" in loops


def test_first_writes_have_one_address_per_iteration() -> None:
    s = te.create_schedule(B)
    s[B].split(B.op.axis[0], 16, tail="shift_inwards")
    cache = s.cache_write(B, "local")
    array = np.random.default_rng(0).integers(0, 255, A.shape, np.uint8)
    out = np.zeros(B.shape, np.uint8)

    tecomp.build(s, [A, B])(array, out)

    assert cache.shape == (4, 16, 21)
    np.testing.assert_array_equal(out, array.T)
