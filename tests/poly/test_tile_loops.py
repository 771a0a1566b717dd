"""Loops over tiled lines: generated without isl's AST, each point once, in order."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product

import islpy as isl
import numpy as np
import pytest

from tecomp.ir import (
    INT64,
    Buffer,
    BufferLoad,
    BufferStore,
    Const,
    Expr,
    For,
    PrimFunc,
    Stmt,
    Var,
    evaluate,
    seq,
    walk,
)
from tecomp.poly import CONTEXT, Space, scan, tiles_of

N, M = Var("n"), Var("m")
COUNT = Buffer("count", (1,), INT64)
MOST = 4000


@dataclass(frozen=True)
class Lines:
    """Product of lines, of which some are split into full tiles and a remainder.

    Attributes:
        rank: Number of dimensions.
        points: Conditions on the points, in isl syntax.
        full: Conditions on points in full tiles, if these have separate loops; otherwise None.
    """

    rank: int
    points: str
    full: str | None

    def set(self, more: str | None = None) -> isl.Set:
        dims = ", ".join(f"d{k}" for k in range(self.rank))
        text = " and ".join(filter(None, (self.points, more)))
        return isl.Set.read_from_str(CONTEXT, f"[p0, p1] -> {{ [{dims}] : {text} }}")


def context(text: str) -> isl.Set:
    return isl.Set.read_from_str(CONTEXT, f"[p0, p1] -> {{ : {text} }}")


def loops(lines: Lines, known: isl.Set | None) -> tuple[Stmt, list[isl.Set]]:
    """Return loops that record the visited points and the number of the statement copy."""
    space = Space(tuple(Var(f"i{k}") for k in range(lines.rank)), (N, M))
    order = Buffer("order", (MOST, lines.rank + 1), INT64)
    copies: list[isl.Set] = []

    def body(at: Mapping[Var, Expr], points: isl.Set) -> Stmt:
        row = BufferLoad(COUNT, (Const(0),))
        values = (*(at[dim] for dim in space.dims), Const(len(copies)))
        copies.append(points)
        notes = (BufferStore(order, value, (row, Const(k))) for k, value in enumerate(values))
        return seq(*notes, BufferStore(COUNT, row + 1, (Const(0),)))

    full = None if lines.full is None else lines.set(lines.full)
    assert tiles_of(lines.set(), full, known) is not None
    return scan(lines.set(), space, body, isolated=full, context=known), copies


def visited(lines: Lines, result: Stmt, sizes: tuple[int, int]) -> list[tuple[int, ...]]:
    order = Buffer("order", (MOST, lines.rank + 1), INT64)
    found = next((n.buffer for n in walk(result) if isinstance(n, BufferStore)
                  and n.buffer.name == "order"), order)
    count, rows = np.zeros(1, "int64"), np.zeros((MOST, lines.rank + 1), "int64")
    evaluate(PrimFunc("f", (COUNT, found, N, M), result), [count, rows, *sizes])
    return [tuple(map(int, row)) for row in rows[: count[0]]]


def inside(points: isl.Set, sizes: tuple[int, int]) -> list[tuple[int, ...]]:
    """Return the points for the given sizes, in order."""
    for k, size in enumerate(sizes):
        points = points.fix_val(isl.dim_type.param, k, size)
    found: list[tuple[int, ...]] = []
    rank = points.dim(isl.dim_type.set)
    points.project_out(isl.dim_type.param, 0, 2).foreach_point(lambda point: found.append(tuple(
        int(point.get_coordinate_val(isl.dim_type.set, k).to_python()) for k in range(rank))))
    return sorted(found)


def assert_visits(lines: Lines, known: str, sizes: Sequence[tuple[int, int]]) -> Stmt:
    result, copies = loops(lines, context(known))
    for pair in sizes:
        rows = visited(lines, result, pair)
        assert [row[:-1] for row in rows] == inside(lines.set(), pair), pair
        for k, copy in enumerate(copies):
            assert [row[:-1] for row in rows if row[-1] == k] == inside(copy, pair), pair
    return result


SIZES = [*product((0, 1, 3, 4, 7, 8, 9, 16, 23), (0, 1, 2))]
TILES = Lines(
    2, "0 <= d0 < 3 and 0 <= d1 < 4 and 4d0 + d1 < p0 - 8p1", "4d0 + 4 <= p0 - 8p1")


def test_a_chunk_has_full_tiles_and_a_partial_one() -> None:
    result = assert_visits(TILES, "p0 >= 0 and p1 >= 0 and 8p1 < p0",
                         [(n, m) for n, m in SIZES if 8 * m < n])

    assert [str(node).splitlines()[0] for node in walk(result) if isinstance(node, For)] == [
        "for i0 in range(min(3, n // 4 - 2 * m)):",
        "for i1 in range(4):",
        "for i1 in range(n % 4):",
    ]


def test_lines_may_be_empty() -> None:
    assert_visits(TILES, "", [(n - 5, m) for n, m in SIZES])


def test_tiles_of_two_lines_inside_each_other() -> None:
    """Nested tiles give three loop forms: full in both, cut in the inner, cut in the outer."""
    lines = Lines(
        4, "0 <= d0 and 0 <= d1 and 0 <= d2 < 3 and 0 <= d3 < 4 and 3d1 + d2 < p1"
        " and 4d0 + d3 < p0", "4d0 + 4 <= p0 and 3d1 + 3 <= p1")

    result = assert_visits(lines, "p0 >= 0 and p1 >= 0", [*product((0, 3, 4, 9), (0, 2, 3, 7))])

    stores = [node for node in walk(result) if isinstance(node, BufferStore)]
    assert sum(store.buffer is COUNT for store in stores) == 3


def random_lines(rng: random.Random) -> Lines:
    """Return one or two lines of one to three dimensions, interleaved."""
    steps, points, full = [], [], []
    count = rng.randint(1, 2)
    chains = [
        [rng.randint(1, 4) for _ in range(rng.randint(1, 3 if count == 1 else 2))]
        for _ in range(count)
    ]
    owner = [k for k, chain in enumerate(chains) for _ in chain]
    rng.shuffle(owner)
    for k, chain in enumerate(chains):
        dims = [d for d, each in enumerate(owner) if each == k]
        sizes = [int(np.prod(chain[j + 1 :])) for j in range(len(chain))]
        steps = [f"{size}d{d}" for size, d in zip(sizes, dims, strict=True)]
        length = (f"p{k}", f"p{k} - {rng.randint(1, 3)}", f"3p{k} - 5p{1 - k}")[rng.randint(0, 2)]
        points.append(f"{' + '.join(steps)} < {length}")
        points += [f"0 <= d{d}" for d in dims]
        points += [f"d{d} < {size}" for d, size in zip(dims[1:], chain[1:], strict=True)]
        if rng.random() < 0.7:
            points.append(f"d{dims[0]} < {rng.randint(1, 3)}")
        if len(dims) > 1 and rng.random() < 0.7:
            full.append(f"{steps[0]} + {sizes[0]} <= {length}")
    if rng.random() < 0.3:
        owner.append(count)
        points.append(f"0 <= d{len(owner) - 1} < {rng.randint(1, 3)}")
    return Lines(len(owner), " and ".join(points), " and ".join(full) or None)


@pytest.mark.exhaustive(most=1)
@pytest.mark.parametrize("part", range(4))
def test_lines_at_random(part: int) -> None:
    rng = random.Random(part)
    result = 0
    for _ in range(60):
        lines = random_lines(rng)
        known = rng.choice(["", "p0 >= 0 and p1 >= 0", "p0 > 0 and p1 > 0"])
        least = 1 if ">" in known else 0
        full = None if lines.full is None else lines.set(lines.full)
        if lines.set().is_empty() or tiles_of(lines.set(), full, context(known)) is None:
            continue
        result += 1
        assert_visits(lines, known, [
            (n, m) for n in (least, 1, 3, 7) for m in (least, 2, 4)])
    assert result > 40


@pytest.mark.parametrize(
    ("points", "full"),
    [
        ("0 <= d0 < p0 and 0 <= d1 <= d0", None),
        ("0 <= d0 < p0 and 1 <= d1 and d1 < p1", None),
        ("0 <= d0 and 0 <= d1 < 4 and 4d0 + d1 < p0 and d0 + d1 < p1", None),
        ("(0 <= d0 < p0 or d0 = p1) and 0 <= d1 < 4", None),
        ("0 <= d0 and 0 <= d1 < 4 and 4d0 + d1 < p0", "4d0 + 8 <= p0"),
        ("0 <= d0 and 0 <= d1 < 4 and 5d0 + d1 < p0", "5d0 + 4 <= p0"),
        ("0 <= d0 and 0 <= d1 < 4 and 4d0 + d1 < p0 and d0 mod 2 = 0", None),
        ("0 <= d0 and 0 <= d1 < 4 and d1 < p0", None),
    ],
    ids=["triangle", "start", "two-lines", "union", "less", "overlap", "modulo", "no-end"],
)
def test_non_linear_tile_domains(points: str, full: str | None) -> None:
    lines = Lines(2, points, full)
    isolated = None if full is None else lines.set(full)

    assert tiles_of(lines.set(), isolated, None) is None


def test_a_circle_of_conditions_holds_no_points() -> None:
    """Cyclic strict conditions are recognized as empty, though no pair of them is contradictory."""
    text = "{ [a, b, c, d] : a <= b and b <= c and c <= d and d < a }"
    points = isl.Set.read_from_str(CONTEXT, text)
    assert points.n_basic_set() == 1

    assert tiles_of(points, None, None) is None
    assert scan(points, Space(tuple(map(Var, "abcd"))), lambda at, _: seq()) == seq()
