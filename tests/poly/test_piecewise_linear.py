"""Piecewise linear cells partition a box, and the expressions are linear on each cell."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from itertools import product

import numpy as np
import pytest

from tecomp.ir import Digit, Expr, QuasiAffine, Var
from tecomp.poly import Cell, IndexReader, TooManyError, fuse_digit_pairs, linear_cells
from tecomp.poly.maps import brute_force
from tests.strategies.digit_sums import draw_box, draw_sum, indices, points_of


def cell_of(exprs: Sequence[Expr], axes: tuple[Var, ...], box: tuple[tuple[int, int], ...]) -> Cell:
    reader = IndexReader(
        {axis: k for k, axis in enumerate(axes)}, [(low, low + n - 1) for low, n in box]
    )
    forms = [reader.form(expr) for expr in exprs]
    assert all(form is not None for form in forms)
    return Cell.of([form for form in forms if form is not None], box)


def value(form: QuasiAffine, at: dict[int, int]) -> int:
    """Return the value of a sum of whole variables."""
    total = form.const
    for term, factor in form.terms.items():
        assert isinstance(term, Digit)
        assert isinstance(term.of, int)
        assert term.low == 1
        total += factor * at[term.of]
    return total


def values_in(cell: Cell) -> Counter[tuple[int, ...]]:
    """Return the multiset of expression values over the points of a cell."""
    ranges = [range(cell.counts[var]) for var in cell.live]
    return Counter(
        tuple(value(form, dict(zip(cell.live, at, strict=True))) for form in cell.forms)
        for at in product(*ranges)
    )


@pytest.mark.exhaustive
@pytest.mark.parametrize("is_fused", [False, True])
def test_every_point_is_in_one_cell_with_its_values(is_fused: bool) -> None:
    draw, cut = random.Random(0), 0
    for _ in range(150):
        box = draw_box(draw)
        axes = indices(len(box))
        exprs = [*axes, draw_sum(draw, axes), draw_sum(draw, axes)]
        whole = cell_of(exprs, axes, box)

        cells = linear_cells(fuse_digit_pairs(whole) if is_fused else whole, 10_000)

        found: Counter[tuple[int, ...]] = Counter()
        for cell in cells:
            assert cell.is_linear
            found += values_in(cell)
        at = dict(zip(axes, np.array(points_of(box)).T, strict=True))
        columns = [brute_force.values(expr, at).tolist() for expr in exprs]
        assert found == Counter(zip(*columns, strict=True))
        cut += len(cells) > 1
    assert cut > 30


def test_units_are_the_steps_along_the_indices() -> None:
    draw = random.Random(1)
    for _ in range(60):
        box = draw_box(draw)
        axes = indices(len(box))
        cells = linear_cells(cell_of([*axes, draw_sum(draw, axes)], axes, box), 10_000)
        for cell in cells:
            start = dict.fromkeys(cell.live, 0)
            for var in cell.live:
                if cell.counts[var] > 1:
                    moved = [value(form, {**start, var: 1}) - value(form, start)
                             for form in cell.forms[: len(axes)]]
                    assert tuple(moved) == cell.units[var]


def test_more_cells_than_allowed_are_refused() -> None:
    (x,) = indices(1)
    whole = cell_of([x * 5 % 7 // 3], (x,), ((0, 12),))

    assert len(linear_cells(whole, 12)) > 3
    with pytest.raises(TooManyError):
        linear_cells(whole, 3)
