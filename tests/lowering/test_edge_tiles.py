"""Edge tiles are computed in full if their inputs are in memory, and only then."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tecomp
from tecomp import te
from tecomp.ir import Buffer, evaluate
from tecomp.lowering import lower_all
from tests.numerics import assert_close, assert_product


def packed_product(
    m: int | te.Expr, n: int | te.Expr, depth: int, *, pack: bool = True, turned: bool = False, skewed: bool = False
) -> tuple[Any, list[Any]]:
    """Build a matrix product in 2 x 8 register tiles; `pack` packs the operands into tiles."""
    A = te.placeholder((m, depth), name="A")
    B = te.placeholder((depth, n), name="B")
    k = te.reduce_axis((0, depth), name="k")
    C = te.compute((m, n), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")
    s = te.create_schedule(C)
    T = s.cache_write(C, "local")
    if pack:
        AA = s.cache_read(A, "global", [T])
        s[AA].transform_layout(lambda i, k: [i // 2, k, i % 2])
        BB = s.cache_read(B, "global", [T])
        s[BB].transform_layout(lambda k, j: [j // 8, k, j % 8])
    i, j = s[C].op.axis
    _, jo, ii, ji = s[C].tile(i, j, 2, 8)
    s[C].unroll(ii)
    s[C].vectorize(ji)
    s[T].compute_at(s[C], jo)
    i, j = s[T].op.axis
    if turned:
        j, i = s[T].transform_layout(lambda i, j: [j, i])
    if skewed:
        i, j = s[T].transform_layout(lambda i, j: [i + j, j])
    (k,) = s[T].op.reduce_axis
    s[T].reorder(k, i, j)
    s[T].unroll(i)
    s[T].vectorize(j)
    return s, [A, B, C]


def check(s: Any, args: list[Any]) -> None:
    a, b = (np.random.default_rng(0).standard_normal(t.shape, np.float32) for t in args[:2])
    lowered = lower_all(s, args)
    for func in lowered.functions.values():
        inputs = [a, b, np.full(args[2].shape, np.nan, np.float32)]
        shapes = [p.shape for p in func.params if isinstance(p, Buffer)]
        flat = [x.reshape(shape) for x, shape in zip(inputs, shapes, strict=True)]
        evaluate(func, flat)
        assert_product(flat[2].reshape(args[2].shape), a, b)
    c = np.full(args[2].shape, np.nan, np.float32)
    tecomp.build(s, args, check_bounds=True)(a, b, c)
    assert_product(c, a, b)


@pytest.mark.exhaustive(keep=2)
@pytest.mark.parametrize("size", [1, 2, 3, 7, 8, 9, 17])
def test_packed_tiles_have_one_form_at_every_size(size: int) -> None:
    s, args = packed_product(size, size, 5)
    text = str(tecomp.lower(s, args))
    tile = text.partition("as C_local:")[2].partition(" C[")[0]

    assert tile.count("for k in range(5):") == 1
    assert "where=" not in tile
    check(s, args)


@pytest.mark.parametrize("turned", [False, True])
def test_packed_tiles_have_one_form_where_sizes_are_open(turned: bool) -> None:
    s, args = packed_product(te.size_var("m"), te.size_var("n"), 5, turned=turned)
    text = str(tecomp.lower(s, args))
    tile = text.partition("as C_local:")[2].partition(" C[")[0]
    kernel = tecomp.build(s, args, check_bounds=True)

    assert tile.count("for k in range(5):") == 1
    assert "where=" not in tile.partition("for k in range(5):")[2].partition("if ")[0]
    for m, n in ((1, 1), (2, 8), (3, 7), (9, 17), (16, 33), (0, 5), (5, 0)):
        a = np.random.default_rng(m).standard_normal((m, 5), np.float32)
        b = np.random.default_rng(n).standard_normal((5, n), np.float32)
        c = np.full((m, n), np.nan, np.float32)
        kernel(a, b, c)
        assert_product(c, a, b)


@pytest.mark.exhaustive(keep=1)
@pytest.mark.parametrize("size", [3, 9, 17])
def test_a_layout_that_exchanges_axes_keeps_tiles_whole(size: int) -> None:
    s, args = packed_product(size, size, 5, turned=True)
    text = str(tecomp.lower(s, args))
    tile = text.partition("as C_local:")[2].partition(" C[")[0]

    assert tile.count("for k in range(5):") == 1
    assert "where=" not in tile
    check(s, args)


def test_a_layout_that_mixes_axes_has_no_tiles() -> None:
    s, args = packed_product(9, 9, 5, skewed=True)

    check(s, args)


def test_padding_of_one_map_is_none_that_the_map_before_cannot_reach() -> None:
    # `i + 2 * j` leaves memory after its last position, but `7 - i` maps no index from 8 on.
    P = te.placeholder((8,), "int16", name="P")
    T = te.compute((8,), lambda i: P[i] + 1, name="T")
    U = te.compute((8,), lambda i: T[i] * 2, name="U")
    s = te.create_schedule(U)
    s[T].transform_layout(lambda i: [7 - i, 2])
    s[T].transform_layout(lambda i, j: [i + 2 * j, i + j])

    lowered = lower_all(s, [P, U])

    assert 'Buffer("int32", (12, 10))' in str(lowered.functions["apply_buffer_transforms"])
    p, u = np.arange(8, dtype=np.int16), np.zeros(8, np.int32)
    tecomp.build(s, [P, U])(p, u)
    np.testing.assert_array_equal(u, (p + 1) * 2)


def test_a_layout_with_repeated_positions_is_lowered_at_once() -> None:
    # isl would take minutes to compute the indices of the positions outside of the tensor.
    T = te.compute((7, 17), lambda i, j: i * 17 + j, name="T")
    U = te.compute((7, 17), lambda i, j: T[i, j] + 1, name="U")
    s = te.create_schedule(U)
    s[T].transform_layout(lambda i, j: [0, (i + j + 1) % 23, (j + 1) % 17], loops="logical")

    kernel = tecomp.build(s, [U])

    u = np.zeros((7, 17), np.int32)
    kernel(u)
    np.testing.assert_array_equal(u, np.arange(1, 7 * 17 + 1).reshape(7, 17))


def test_stages_without_tiles_are_not_analysed(monkeypatch: pytest.MonkeyPatch) -> None:
    # If isl describes a region only by unknowns, even comparing the set with itself may not end.
    A = te.placeholder((10,), name="A")
    T = te.compute((10,), lambda i: A[i] + 1.0, name="T")
    U = te.compute((10,), lambda i: T[i] * 2.0, name="U")
    s = te.create_schedule(U)
    outer, _ = s[U].split(U.op.axis[0], factor=4)
    s[T].compute_at(s[U], outer)
    requested: list[object] = []
    monkeypatch.setattr("tecomp.lowering.stages.edge_tiles.is_inside", lambda *a: requested.append(a))

    assert "as T:" in str(tecomp.lower(s, [A, U], stop_after="nest"))
    assert not requested


def test_operands_that_end_at_the_edge_are_not_read_beyond() -> None:
    s, args = packed_product(3, 11, 5, pack=False)

    assert "B.load(" in str(tecomp.lower(s, args))
    check(s, args)


def test_data_dependent_indices_are_not_evaluated_in_padding() -> None:
    P = te.placeholder((5,), "int32", name="P")
    A = te.placeholder((5,), name="A")
    J = te.compute((5,), lambda i: P[i], name="J")
    G = te.compute((5,), lambda i: A[J[i]], name="G")
    D = te.compute((5,), lambda i: G[i] + 1.0, name="D")
    s = te.create_schedule(D)
    s[J].transform_layout(lambda i: [i // 4, i % 4])
    io, _ = s[D].split(D.op.axis[0], factor=4)
    s[G].compute_at(s[D], io)
    s[G].vectorize(s[G].op.axis[0])

    d = np.zeros(5, np.float32)
    tecomp.build(s, [P, A, D])(
        np.array([4, 3, 2, 1, 0], np.int32), np.arange(5, dtype=np.float32), d
    )

    np.testing.assert_array_equal(d, [5, 4, 3, 2, 1])


def test_symbolic_sizes() -> None:
    n = te.var("n")
    A = te.placeholder((n,), name="A")
    B = te.compute((n,), lambda i: A[i] * 2.0, name="B")
    C = te.compute((n,), lambda i: B[i] + 1.0, name="C")
    s = te.create_schedule(C)
    io, ii = s[C].split(C.op.axis[0], factor=8)
    s[C].vectorize(ii)
    s[B].compute_at(s[C], io)
    s[B].vectorize(s[B].op.axis[0])
    kernel = tecomp.build(s, [A, C], check_bounds=True)
    for size in (0, 1, 7, 8, 9, 100):
        a = np.arange(size, dtype=np.float32)
        c = np.full(size, np.nan, np.float32)
        kernel(a, c)
        np.testing.assert_array_equal(c, a * 2 + 1)


def test_the_axis_of_a_packed_operand_is_complete() -> None:
    A = te.placeholder((3, 5), name="A")
    B = te.placeholder((5, 11), name="B")
    k = te.reduce_axis((0, 5), name="k")
    C = te.compute((3, 11), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")
    s = te.create_schedule(C)
    T = s.cache_write(C, "local")
    BB = s.cache_read(B, "global", [T])
    s[BB].transform_layout(lambda k, j: [j // 8, k, j % 8])
    i, j = s[C].op.axis
    _, jo, ii, ji = s[C].tile(i, j, 2, 8)
    s[C].unroll(ii)
    s[C].vectorize(ji)
    s[T].compute_at(s[C], jo)
    i, j = s[T].op.axis
    s[T].reorder(*s[T].op.reduce_axis, i, j)
    s[T].unroll(i)
    s[T].vectorize(j)
    text = str(tecomp.lower(s, [A, B, C])).partition("as C_local:")[2]
    tile = text.partition("if i_outer == 0 and j_outer == 0:")[0]

    assert tile.count("if i_outer == 0:") == 1
    assert "ramp(0, 1, 3)" not in tile
    check(s, [A, B, C])


def test_places_that_a_remainder_declares_are_no_tile() -> None:
    """Row i of 5 is stored at i % 32, like row i + 32, so the other positions are no edge tile."""
    A = te.placeholder((5, 8), name="A")
    B = te.compute((5, 8), lambda i, j: A[i, j] + 1.0, name="B")
    C = te.compute((5, 8), lambda i, j: B[i, j] * 2.0, name="C")
    s = te.create_schedule(C)
    s[B].transform_layout(lambda i, j: [i % 32, j], loops="logical")
    s[B].compute_at(s[C], C.op.axis[0])
    a = np.arange(40, dtype="float32").reshape(5, 8)
    c = np.full((5, 8), np.nan, np.float32)

    tecomp.build(s, [A, C], check_bounds=True)(a, c)
    np.testing.assert_array_equal(c, (a + 1) * 2)


@pytest.mark.parametrize("columns", [8, 9])
def test_one_element_with_a_conditional_block(columns: int) -> None:
    """The block index (i + j) % 8 // 3 is piecewise, so any block of the tensor may be needed."""
    A = te.placeholder((8,), name="A")
    T = te.compute((8,), lambda i: A[i] * 2.0, name="T")
    B = te.compute((10, columns), lambda i, j: T[(i + j) % 8] + 1.0, name="B")
    s = te.create_schedule(B)
    s[T].transform_layout(lambda i: [i // 3, i % 3])
    s[T].compute_at(s[B], B.op.axis[1])
    a, b = np.arange(8, dtype=np.float32), np.zeros((10, columns), np.float32)
    tecomp.build(s, [A, B], check_bounds=True)(a, b)

    np.testing.assert_array_equal(b, a[np.add.outer(range(10), range(columns)) % 8] * 2 + 1)


def staircase(rows: int, columns: int) -> tuple[Any, list[Any]]:
    """Build sums of row prefixes, whose terms are computed in tiles of four."""
    A = te.placeholder((rows, columns), name="A")
    k = te.reduce_axis((0, columns), name="k")
    P = te.compute((rows, columns), lambda i, j: A[i, j] * 2.0, name="P")
    D = te.compute((rows, columns), lambda i, j: P[i, j] + 1.0, name="D")
    C = te.compute((rows,), lambda i: te.sum(D[i, k], axis=k, where=k <= 5 * i), name="C")
    s = te.create_schedule(C)
    s[D].compute_at(s[C], C.op.axis[0])
    tiles, j = s[D].split(D.op.axis[1], factor=4)
    s[D].unroll(j)
    s[P].set_scope("local")
    s[P].compute_at(s[D], tiles)
    s[P].unroll(P.op.axis[1])
    return s, [A, C]


def test_tiles_end_with_the_one_that_holds_the_last_element() -> None:
    """Inputs of a tile are computed inside the tile, from elements that are in memory."""
    s, args = staircase(5, 24)
    text = str(tecomp.lower(s, args))

    assert "for j_outer in range(i * 5 // 4 + 1):" in text
    assert text.count("if ") == 1, "where the memory of D ends, which has 21 elements"
    a, c = np.random.default_rng(0).standard_normal((5, 24), np.float32), np.zeros(5, np.float32)
    tecomp.build(s, args, check_bounds=True)(a, c)
    terms = [2 * a[i, : 5 * i + 1].astype("float64") + 1 for i in range(5)]
    magnitude = [np.abs(term).sum() for term in terms]
    assert_close(c, [term.sum() for term in terms], rtol=1e-6, magnitude=magnitude)


def test_the_last_tile_ends_with_the_memory_that_it_reads() -> None:
    s, args = staircase(5, 21)
    a, c = np.random.default_rng(0).standard_normal((5, 21), np.float32), np.zeros(5, np.float32)
    tecomp.build(s, args, check_bounds=True)(a, c)

    terms = [2 * a[i, : 5 * i + 1].astype("float64") + 1 for i in range(5)]
    magnitude = [np.abs(term).sum() for term in terms]
    assert_close(c, [term.sum() for term in terms], rtol=1e-6, magnitude=magnitude)


@pytest.mark.exhaustive(keep=3)
@pytest.mark.parametrize("depth", [12, 24, 50, 300])
def test_maps_of_many_remainders(depth: int) -> None:
    def remainders(i: Any) -> list[Any]:
        for k in range(depth):
            i = i % (400 - k)
        return [i]

    A = te.placeholder((5,), name="A")
    B = te.compute((5,), lambda i: A[i] + 1, name="B")
    s = te.create_schedule(B)
    s[A].transform_layout(remainders)
    s[B].transform_layout(remainders)
    a, b = np.arange(5, dtype=np.float32), np.zeros(5, np.float32)
    tecomp.build(s, [A, B])(a, b, layouts="logical")
    np.testing.assert_array_equal(b, a + 1)
