"""Preimages of random reads contain each iteration that reads an element exactly once."""

from __future__ import annotations

import operator
from random import Random
from typing import Any, TypeAlias

import numpy as np
import pytest

from tecomp import te
from tecomp.compute.preimages import preimage
from tecomp.ir import BinOp, CmpOp, Expr, Var
from tecomp.ir.nodes.expr import Binary, Compare, Const, Not
from tecomp.ir.traversal.rewrite import fold

Array: TypeAlias = np.ndarray[Any, Any]
BINARY: dict[BinOp, Any] = {
    BinOp.ADD: operator.add, BinOp.SUB: operator.sub, BinOp.MUL: operator.mul,
    BinOp.FLOORDIV: operator.floordiv, BinOp.MOD: operator.mod, BinOp.MIN: np.minimum, BinOp.MAX: np.maximum,
    BinOp.AND: operator.and_, BinOp.OR: operator.or_,
}
COMPARE = {
    CmpOp.EQ: operator.eq, CmpOp.NE: operator.ne, CmpOp.LT: operator.lt, CmpOp.LE: operator.le,
    CmpOp.GT: operator.gt, CmpOp.GE: operator.ge,
}


def value(expr: Expr, known: dict[Var, Array]) -> Any:
    """Compute an integer expression for all values of its variables in NumPy."""

    def rule(node: Any, parts: list[Any]) -> Any:
        if isinstance(node, Const):
            return node.value
        if isinstance(node, Var):
            return known[node]
        if isinstance(node, Binary):
            return BINARY[node.op](*parts)
        if isinstance(node, Compare):
            return COMPARE[node.op](*parts)
        return np.logical_not(parts[0]) if isinstance(node, Not) else parts[0]

    return fold(expr, rule)


def random_index(dice: Random, axes: list[Any]) -> Expr:
    """Return an affine index, or a digit of an axis."""
    index: Any = te.const(dice.randint(-2, 3), "int32")
    kind = dice.random()
    if kind > 0.9:
        inner: Any = te.const(dice.randint(-2, 3), "int32")
        for axis in axes:
            inner = inner + axis * dice.choice((0, 1, 1, 2, 4, -1))
        digits = (inner // 6, inner // 2 % 3, inner % 2, inner // 2, inner % 6)
        found: Expr = index + dice.choice(digits) * dice.choice((1, 1, 2))
        return found
    for axis in dice.sample(axes, dice.randint(0 if kind < 0.2 else 1, min(3, len(axes)))):
        if kind > 0.8:
            index = index + (axis // 2 if dice.random() < 0.5 else axis % 2)
        else:
            index = index + axis * dice.choice((1, 1, 1, -1, 2, 3, -2, 4, 6, 12))
    total: Expr = index
    return total


def points(variables: list[Any], bounds: list[tuple[int, int]]) -> dict[Var, Array]:
    """Return the values of variables at all points of a box."""
    grid = np.indices([extent for _, extent in bounds]).reshape(len(bounds), -1)
    return {v: row + low for v, row, (low, _) in zip(variables, grid, bounds, strict=True)}


def bounds_of(axes: Any) -> list[tuple[int, int]]:
    return [(int(axis.low), int(axis.extent)) for axis in axes]


def table(columns: list[Any], length: int) -> Array:
    """Return the rows of columns in order."""
    rows = np.stack([np.broadcast_to(column, length) for column in columns], axis=1)
    return rows[np.lexsort(rows.T[::-1])]


@pytest.mark.exhaustive(keep=1)
@pytest.mark.parametrize("start", range(0, 300, 50))
def test_each_iteration_is_visited_once(start: int) -> None:
    for seed in range(start, start + 50):
        check(seed)


def check(seed: int) -> None:
    """Compare a random read, inverted, with all of its iterations."""
    dice = Random(seed)
    axes = [
        te.reduce_axis((low, low + dice.randint(1, 6)), f"k{n}")
        for n, low in enumerate(dice.choice((0, 0, 0, 1, -2)) for _ in range(dice.randint(1, 4)))
    ]
    iterations = points(axes, bounds_of(axes))
    count = len(next(iter(iterations.values())))
    indices = [random_index(dice, axes) for _ in range(dice.randint(1, 3))]
    found = [np.broadcast_to(value(index, iterations), count) for index in indices]
    indices = [index - int(place.min()) for index, place in zip(indices, found, strict=True)]
    places = [place - place.min() for place in found]
    shape = [int(place.max()) + 1 + dice.randint(0, 2) for place in places]
    element = [te.var(f"a{d}") for d in range(len(indices))]

    inverse = preimage(indices, axes, element, shape)

    known = points([*element, *inverse.axes], [*((0, n) for n in shape), *bounds_of(inverse.axes)])
    candidates = len(next(iter(known.values())))
    is_read = np.ones(candidates, bool)
    for condition in inverse.conditions:
        is_read &= value(condition, known)
    columns = [*(known[a] for a in element), *(value(inverse.values[k], known) for k in axes)]
    actual = [np.broadcast_to(column, candidates)[is_read] for column in columns]
    np.testing.assert_array_equal(
        table(actual, int(is_read.sum())), table([*places, *iterations.values()], count),
        err_msg=f"seed {seed}: {indices}")
