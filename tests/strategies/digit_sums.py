"""Random sums of index digits, nested in digits of such sums, over small boxes."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import product

from tecomp.ir import INT64, Binary, BinOp, Expr, Var

Box = tuple[tuple[int, int], ...]


def indices(count: int) -> tuple[Var, ...]:
    """Return `count` index variables."""
    return tuple(Var(f"x{k}", INT64) for k in range(count))


def draw_box(draw: random.Random, most: int = 200) -> Box:
    """Draw `(low, count)` of one to three indices, with at most `most` points in total."""
    box: list[tuple[int, int]] = []
    for _ in range(draw.randint(1, 3)):
        count = draw.randint(1, max(min(12, most), 1))
        most //= count
        box.append((draw.choice((0, 0, 0, 1, 5)), count))
    return tuple(box)


def points_of(box: Box) -> list[tuple[int, ...]]:
    """Return all points of a box in lexicographic order."""
    return list(product(*(range(low, low + count) for low, count in box)))


def draw_sum(draw: random.Random, axes: Sequence[Var], depth: int = 2) -> Expr:
    """Draw a sum of multiples of digits; a digit may be of a nested sum or an XOR of two terms."""
    total: Expr = draw_term(draw, axes, depth)
    for _ in range(draw.randint(0, 2)):
        total = total + draw_term(draw, axes, depth) * draw.choice((1, 2, 3, 4, 8))
    return total + draw.choice((0, 0, 1, 7))


def draw_term(draw: random.Random, axes: Sequence[Var], depth: int) -> Expr:
    """Draw one term of a sum."""
    base: Expr = draw.choice(axes)
    if depth > 0 and draw.random() < 0.4:
        base = draw_sum(draw, axes, depth - 1)
    if depth > 0 and draw.random() < 0.15:
        return Binary(BinOp.BITXOR, base, draw_sum(draw, axes, 0))
    if draw.random() < 0.6:
        base = base // draw.choice((2, 3, 4, 5))
    return base % draw.choice((2, 3, 4, 7)) if draw.random() < 0.6 else base

