"""compute_at computes exactly the footprint, counted per element, for every form of access."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from itertools import product
from typing import Any, TypeAlias

import numpy as np
import pytest
from numpy.typing import NDArray

from tecomp import te
from tecomp.compute import IterVar, Tensor
from tecomp.errors import LowerError
from tecomp.scheduling.schedule import Schedule
from tests.messages import Diagnostic, diagnostic

Index: TypeAlias = "tuple[Any, ...]"
Where: TypeAlias = "Callable[..., Sequence[Index]]"
ROWS, COLUMNS = 5, 7

ACCESSES: dict[str, tuple[tuple[int, ...], Where]] = {
    "same": ((ROWS, COLUMNS), lambda i, j: [(i, j)]),
    "transposed": ((COLUMNS, ROWS), lambda i, j: [(j, i)]),
    "halo": (
        (ROWS + 2, COLUMNS + 2),
        lambda i, j: [(i + y, j + x) for y in range(3) for x in range(3)],
    ),
    "two far apart": ((ROWS, 20), lambda i, j: [(i, j), (i, j + 13)]),
    "reversed": ((ROWS, COLUMNS), lambda i, j: [(ROWS - 1 - i, COLUMNS - 1 - j)]),
    "reversed halo": ((ROWS, COLUMNS + 2), lambda i, j: [(ROWS - 1 - i, 8 - j), (i, j)]),
    "strided": ((2 * ROWS, 3 * COLUMNS), lambda i, j: [(2 * i, 3 * j)]),
    "strided halo": ((2 * ROWS, 3 * COLUMNS + 1), lambda i, j: [(2 * i, 3 * j + x) for x in (0, 1)]),
    "dilated": ((ROWS, COLUMNS + 12), lambda i, j: [(i, j + 6 * x) for x in range(3)]),
    "diagonal": ((ROWS, ROWS + COLUMNS - 1), lambda i, j: [(i, i + j)]),
    "sheared": ((ROWS, 2 * ROWS + COLUMNS), lambda i, j: [(i, 2 * (ROWS - 1 - i) + j)]),
    "row": ((ROWS,), lambda i, j: [(i,)]),
    "column": ((COLUMNS,), lambda i, j: [(j,)]),
    "one element": ((4, 4), lambda i, j: [(2, 3)]),
    "0-d": ((), lambda i, j: [()]),
    "divided": ((3, 3), lambda i, j: [(i // 2, j // 3)]),
    "remainder": ((3, 4), lambda i, j: [(i % 3, j % 4)]),
    "far out and near": ((ROWS, COLUMNS), lambda i, j: [(i, j), (0, j), (i, 0)]),
}
"""Shape of a producer, and the elements that element (i, j) of the consumer reads."""

LEAVES: dict[str, Callable[[int, int], Index]] = {
    "io": lambda i, j: (i // 2,),
    "jo": lambda i, j: (i // 2, j // 3),
    "ii": lambda i, j: (i // 2, j // 3, i % 2),
    "ji": lambda i, j: (i // 2, j // 3, i % 2, j % 3),
}
"""Attach points in a consumer tiled by 2x3: values of the loops down to a loop, per element."""


def tiled(s: Schedule, tensor: Tensor) -> dict[str, IterVar]:
    i, j = tensor.op.axis
    return dict(zip(LEAVES, s[tensor].tile(i, j, 2, 3), strict=True))


def total(values: Sequence[Any]) -> Any:
    result = values[0]
    for value in values[1:]:
        result = result + value
    return result


def expected_counts(shape: Index, where: Where, leaf: Callable[[int, int], Index]) -> NDArray[Any]:
    """Return the number of tiles that read each element."""
    needed = {(leaf(i, j), at) for i, j in np.ndindex(ROWS, COLUMNS) for at in where(i, j)}
    tally = Counter(at for _, at in needed)
    counts = np.zeros(shape, np.int32)
    for at, times in tally.items():
        counts[at] = times
    return counts


@pytest.mark.exhaustive(keep=6)
@pytest.mark.parametrize("leaf", LEAVES)
@pytest.mark.parametrize("access", ACCESSES)
def test_footprint_at_a_leaf(access: str, leaf: str, run: Any, count: Any) -> None:
    shape, where = ACCESSES[access]
    A = te.placeholder(shape, name="A")
    P = te.compute(shape, lambda *at: A[at or ()] * 2.0 if at else A() * 2.0, name="P")
    C = te.compute(
        (ROWS, COLUMNS), lambda i, j: total([P(*at) for at in where(i, j)]), name="C"
    )
    s = te.create_schedule(C)
    leaves = tiled(s, C)
    s[P].compute_at(s[C], leaves[leaf])
    a = np.random.default_rng(1).integers(0, 9, shape).astype(np.float32)
    c = np.full((ROWS, COLUMNS), np.nan, np.float32)

    run(s, [A, C], a, c)
    counts = count(s, [A, C], P, a, c)

    for i, j in np.ndindex(c.shape):
        assert c[i, j] == total([a[at] * 2 for at in where(i, j)])
    np.testing.assert_array_equal(counts, expected_counts(shape, where, LEAVES[leaf]))


@pytest.mark.parametrize("leaf", LEAVES)
def test_guarded_reads_count_under_their_condition(leaf: str, count: Any) -> None:
    P_shape = (ROWS, COLUMNS)
    A = te.placeholder(P_shape, name="A")
    P = te.compute(P_shape, lambda i, j: A[i, j] * 2.0, name="P")
    C = te.compute(
        (ROWS, COLUMNS),
        lambda i, j: te.if_then_else(te.all(i >= 1, j < COLUMNS - 2), P[i - 1, j + 2], 0.0),
        name="C",
    )
    s = te.create_schedule(C)
    leaves = tiled(s, C)
    s[P].compute_at(s[C], leaves[leaf])
    a = np.random.default_rng(1).integers(0, 9, P_shape).astype(np.float32)
    c = np.full(P_shape, np.nan, np.float32)

    counts = count(s, [A, C], P, a, c)

    def where(i: int, j: int) -> list[Index]:
        return [(i - 1, j + 2)] if i >= 1 and j < COLUMNS - 2 else []

    np.testing.assert_array_equal(counts, expected_counts(P_shape, where, LEAVES[leaf]))
    padded = np.zeros(P_shape, np.float32)
    padded[1:, :-2] = 2 * a[:-1, 2:]
    np.testing.assert_array_equal(c, padded)


@pytest.mark.parametrize("at", ["i", "k", "ko", "ki"])
def test_inside_a_reduction(at: str, count: Any) -> None:
    """A producer of a matrix product operand is attached to a reduction loop."""
    m, n, depth = 3, 4, 7
    A = te.placeholder((m, depth), name="A")
    B = te.placeholder((depth, n), name="B")
    P = te.compute((depth, n), lambda k, j: B[k, j] + 1.0, name="P")
    k = te.reduce_axis((0, depth), name="k")
    C = te.compute((m, n), lambda i, j: te.sum(A[i, k] * P[k, j], axis=k), name="C")
    s = te.create_schedule(C)
    i, j = s[C].op.axis
    loops = {"i": i, "k": k}
    if at in ("ko", "ki"):
        ko, ki = s[C].split(k, factor=3)
        s[C].reorder(i, ko, j, ki)
        loops |= {"ko": ko, "ki": ki}
    else:
        s[C].reorder(i, k, j)
    s[P].compute_at(s[C], loops[at])
    a = np.random.default_rng(1).integers(0, 9, (m, depth)).astype(np.float32)
    b = np.random.default_rng(2).integers(0, 9, (depth, n)).astype(np.float32)
    c = np.full((m, n), np.nan, np.float32)

    counts = count(s, [A, B, C], P, a, b, c)

    np.testing.assert_array_equal(c, a @ (b + 1))
    np.testing.assert_array_equal(counts, np.full((depth, n), m))


def test_conditions_limit_the_footprint(count: Any) -> None:
    n = 6
    A = te.placeholder((n, n), name="A")
    P = te.compute((n, n), lambda i, j: A[i, j] * 2.0, name="P")
    k = te.reduce_axis((0, n), name="k")
    C = te.compute((n,), lambda i: te.sum(P[i, k], axis=k, where=k <= i), name="C")
    s = te.create_schedule(C)
    s[P].compute_at(s[C], C.op.axis[0])
    a = np.arange(n * n, dtype=np.float32).reshape(n, n)
    c = np.full(n, np.nan, np.float32)

    counts = count(s, [A, C], P, a, c)

    np.testing.assert_array_equal(c, 2 * np.tril(a).sum(1))
    np.testing.assert_array_equal(counts, np.tril(np.ones((n, n), np.int32)))


def test_a_chain_is_needed_only_as_far_as_the_last_stage_reads(count: Any) -> None:
    n = 11
    A = te.placeholder((n + 4,), name="A")
    P = te.compute((n + 4,), lambda i: A[i] + 1.0, name="P")
    Q = te.compute((n + 2,), lambda i: P[i] + P[i + 2], name="Q")
    C = te.compute((n,), lambda i: Q[i] + Q[i + 2], name="C")
    s = te.create_schedule(C)
    outer, _ = s[C].split(C.op.axis[0], factor=4)
    s[Q].compute_at(s[C], outer)
    s[P].compute_at(s[C], outer)
    a = np.arange(n + 4, dtype=np.float32)
    c = np.full(n, np.nan, np.float32)

    counts = count(s, [A, C], P, a, c)

    q = (a[:-2] + 1) + (a[2:] + 1)
    np.testing.assert_array_equal(c, q[:-2] + q[2:])
    tiles = [range(t, min(t + 4, n)) for t in range(0, n, 4)]
    expected = np.zeros(n + 4, np.int32)
    for tile in tiles:
        for element in {i + x for i in tile for x in (0, 2, 4)}:
            expected[element] += 1
    np.testing.assert_array_equal(counts, expected)


@pytest.mark.parametrize("nested", [False, True])
def test_two_consumers_in_one_loop_share_a_footprint(nested: bool, count: Any) -> None:
    n = 10
    A = te.placeholder((n + 5,), name="A")
    P = te.compute((n + 5,), lambda i: A[i] + 1.0, name="P")
    Q = te.compute((n,), lambda i: P[i + 5] * 2.0, name="Q")
    C = te.compute((n,), lambda i: Q[i] + P[i], name="C")
    s = te.create_schedule(C)
    outer, inner = s[C].split(C.op.axis[0], factor=4)
    s[P].compute_at(s[C], outer)
    s[Q].compute_at(s[C], inner if nested else outer)
    a = np.arange(n + 5, dtype=np.float32)
    c = np.full(n, np.nan, np.float32)

    counts = count(s, [A, C], P, a, c)

    np.testing.assert_array_equal(c, (a[5:] + 1) * 2 + a[:-5] + 1)
    expected = np.zeros(n + 5, np.int32)
    for start in range(0, n, 4):
        tile = range(start, min(start + 4, n))
        for element in {*tile, *(i + 5 for i in tile)}:
            expected[element] += 1
    np.testing.assert_array_equal(counts, expected)


def test_a_consumer_outside_the_loop_is_refused(nest: Any) -> None:
    A = te.placeholder((8,), name="A")
    P = te.compute((8,), lambda i: A[i] + 1.0, name="P")
    Q = te.compute((8,), lambda i: P[i] * 2.0, name="Q")
    C = te.compute((8,), lambda i: Q[i] + P[i], name="C")
    s = te.create_schedule(C)
    s[P].compute_at(s[C], C.op.axis[0])

    with pytest.raises(LowerError) as caught:
        nest(s, [A, C])

    assert diagnostic(caught.value) == (
        Diagnostic("dependence-violation", where="s[P].compute_at(s[C], i)", stage="Q", name="P")
    )


def test_the_realized_region_is_the_box_around_the_footprint(nest: Any, realized: Any) -> None:
    A = te.placeholder((10, 10), name="A")
    P = te.compute((10, 10), lambda i, j: A[i, j] * 2.0, name="P")
    C = te.compute((8, 8), lambda i, j: P[i, j] + P[i + 2, j + 2], name="C")
    s = te.create_schedule(C)
    outer, _ = s[C].split(C.op.axis[0], factor=4)
    s[P].compute_at(s[C], outer)

    func = nest(s, [A, C])

    assert realized(func, "P") == ["i_outer * 4+6, 0+10"]


@pytest.mark.parametrize(("step", "bounds"), [(1, "i * 3+3"), (4, "i * 3+9")])
def test_the_region_of_a_strided_read(step: int, bounds: str, nest: Any, realized: Any) -> None:
    A = te.placeholder((40,), name="A")
    P = te.compute((40,), lambda i: A[i] * 2.0, name="P")
    k = te.reduce_axis((0, 3), name="k")
    C = te.compute((5,), lambda i: te.sum(P[3 * i + step * k], axis=k), name="C")
    s = te.create_schedule(C)
    s[P].compute_at(s[C], C.op.axis[0])

    assert realized(nest(s, [A, C]), "P") == [bounds]


@pytest.mark.parametrize("fused", [False, True])
@pytest.mark.parametrize("blocks", [2, 3, 5])
def test_the_region_of_a_read_under_a_condition(
    blocks: int, fused: bool, nest: Any, realized: Any
) -> None:
    """The region is one tile also for few blocks, where a minimum is a list of constant cases."""
    rows = 7 * blocks
    A = te.placeholder((rows, 6), name="A")
    P = te.compute((rows, 6), lambda i, j: A[i, j] * 2.0, name="P")
    C = te.compute(
        (rows, 6), lambda i, j: te.if_then_else(i > 0, P[i - 1, j], 1.0), name="C")
    s = te.create_schedule(C)
    i, j = C.op.axis
    i_outer, j_outer, _, _ = s[C].tile(i, j, 7, 3)
    place = s[C].fuse(i_outer, j_outer) if fused else j_outer
    s[P].compute_at(s[C], place)

    (region,) = realized(nest(s, [A, C]), "P")

    extents = [part.rpartition("+")[2] for part in region.split(", ")]
    assert extents == ["7", "3"]


def test_every_leaf_of_a_fused_consumer(count: Any) -> None:
    rows, columns = 3, 5
    A = te.placeholder((rows, columns + 1), name="A")
    P = te.compute((rows, columns + 1), lambda i, j: A[i, j] + 1.0, name="P")
    C = te.compute((rows, columns), lambda i, j: P[i, j] + P[i, j + 1], name="C")
    s = te.create_schedule(C)
    outer, _ = s[C].split(s[C].fuse(*C.op.axis), factor=4)
    s[P].compute_at(s[C], outer)
    a = np.arange(rows * (columns + 1), dtype=np.float32).reshape(rows, columns + 1)
    c = np.full((rows, columns), np.nan, np.float32)

    counts = count(s, [A, C], P, a, c)

    np.testing.assert_array_equal(c, a[:, :-1] + a[:, 1:] + 2)
    expected = np.zeros((rows, columns + 1), np.int32)
    needed = {
        ((i * columns + j) // 4, i, j + x)
        for i, j, x in product(range(rows), range(columns), range(2))
    }
    for _, i, j in needed:
        expected[i, j] += 1
    np.testing.assert_array_equal(counts, expected)
