"""Bounds that are polynomials in sizes, compared with all points of small domains."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from random import Random

import pytest

from tecomp.ir import INT64, Binary, BinOp, Const, Expr, SymbolicBounds, Var, binary, const

n, m, k = SIZES = [Var(name, INT64) for name in "nmk"]
i, j = AXES = [Var(name, INT64) for name in "ij"]
OPERATIONS: dict[BinOp, Callable[[int, int], int]] = {
    BinOp.ADD: lambda a, b: a + b,
    BinOp.SUB: lambda a, b: a - b,
    BinOp.MUL: lambda a, b: a * b,
    BinOp.FLOORDIV: lambda a, b: a // b if b else 0,
    BinOp.MOD: lambda a, b: a % b if b else 0,
}


def is_inside(
    natural: Sequence[Expr], extents: Sequence[Expr], index: Expr, extent: Expr
) -> bool:
    found = [SymbolicBounds(natural, is_grouped=flag) for flag in (False, True)]
    for known, (axis, count) in itertools.product(found, [*zip(AXES, extents, strict=False)]):
        known.add_axis(axis, const(0, INT64), count)
    return any(known.is_inside(index, extent) for known in found)


PROVED: dict[str, tuple[Sequence[Expr], Sequence[Expr], Expr, Expr]] = {
    "row of a matrix": ([n, m], [n * m], i // m, n),
    "column of a matrix": ([n, m], [n * m], i % m, m),
    "quotient by a product": ([n, m, k], [n * m * k], i // (m * k), n),
    "remainder by a product": ([n, m, k], [n * m * k], i % (m * k), m * k),
    "middle digit": ([n, m, k], [n * m * k], i % (m * k) // k, m),
    "place of an element": ([n, m], [n, m], i * m + j, n * m),
    "transposed place": ([n, m], [n * m], i % n * m + i // n, n * m),
    "extents of products only": ([k, n * m, k * n * m], [k * (n * m)], i // (n * m), k),
    "sums of sizes": ([n, m + 1], [n * (m + 1)], i // (m + 1), n),
    "divided extent": ([n, m], [n * m // 4, const(4, INT64)], (i * 4 + j) // m, n),
    "from the end": ([n, m], [n * m], n - 1 - i // m, n),
    "quotient of quotients": ([n, m, k], [n * m * k], i // k // m, n),
}


@pytest.mark.parametrize("name", PROVED)
def test_indices_that_are_inside(name: str) -> None:
    natural, extents, index, extent = PROVED[name]

    assert is_inside(natural, extents, index, extent)
    assert not is_inside(natural, extents, index + 1, extent)
    assert not is_inside(natural, extents, index - 1, extent)


@pytest.mark.parametrize(
    ("natural", "extents", "index", "extent"),
    [
        ([n, m], [m], i % n, n),  # n can be 0
        ([n * m], [n * m], i // m, n),  # both sizes can be negative
        ([n, m], [n * m + 1], i // m, n),
        ([n, m], [n], i // m, (n + m - 1) // m),  # m can be 0
    ],
)
def test_indices_that_may_be_outside(
    natural: Sequence[Expr], extents: Sequence[Expr], index: Expr, extent: Expr
) -> None:
    assert not is_inside(natural, extents, index, extent)


def value(expr: Expr, values: Mapping[Expr, int]) -> int:
    if isinstance(expr, Const):
        return int(expr.value)
    if isinstance(expr, Binary):
        return OPERATIONS[expr.op](value(expr.a, values), value(expr.b, values))
    return values[expr]


class Maker:
    """Generate random expressions of sizes and axes."""

    def __init__(self, seed: int) -> None:
        self.dice = Random(seed)

    def size(self, depth: int) -> Expr:
        if depth == 0 or self.dice.random() < 0.3:
            return self.dice.choice([*SIZES, *SIZES, const(self.dice.randrange(5), INT64)])
        op = self.dice.choice([BinOp.MUL, *OPERATIONS])
        return binary(op, self.size(depth - 1), self.size(depth - 1))

    def index(self, depth: int) -> Expr:
        if depth == 0 or self.dice.random() < 0.2:
            return self.dice.choice([*AXES, *AXES, self.size(1)])
        op = self.dice.choice([BinOp.FLOORDIV, BinOp.MOD, *OPERATIONS])
        is_sum = op in (BinOp.ADD, BinOp.SUB)
        other = self.index(depth - 1) if is_sum else self.size(self.dice.randrange(3))
        return binary(op, self.index(depth - 1), other)


@pytest.mark.exhaustive(keep=2)
@pytest.mark.parametrize("seed", range(20))
def test_proved_indices_are_inside_at_all_points(seed: int) -> None:
    proved = 0
    for case in range(40):
        maker = Maker(1000 * seed + case)
        dice = maker.dice
        natural = [maker.size(2) for _ in range(dice.randrange(3))]
        natural += dice.sample(SIZES, dice.randrange(4))
        extents = [maker.size(2), maker.size(2)]
        for _ in range(8):
            index = maker.index(dice.choice([1, 1, 3]))
            limit = dice.choice([maker.size(1), maker.size(2), *extents, *SIZES])
            if is_inside(natural, extents, index, limit):
                proved += 1
                check(index, limit, natural, extents)

    assert proved > 3


def check(index: Expr, limit: Expr, natural: Sequence[Expr], extents: Sequence[Expr]) -> None:
    """Check `0 <= index < limit` at the corners and the middle of each domain."""
    for numbers in itertools.product(range(-2, 5), repeat=3):
        values: dict[Expr, int] = dict(zip(SIZES, numbers, strict=True))
        counts = [value(extent, values) for extent in extents]
        if min(counts) < 1 or max(counts) > 40 or any(value(e, values) < 0 for e in natural):
            continue
        end = value(limit, values)
        for point in itertools.product(*(sorted({0, c // 2, c - 1}) for c in counts)):
            values.update(zip(AXES, point, strict=True))
            assert 0 <= value(index, values) < end, (index, limit, natural, extents, values)
