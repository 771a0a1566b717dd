"""XOR layouts: inverses and maximum values, against enumeration of all indices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tecomp.ir import Expr, Var
from tecomp.poly import greatest, invert
from tests.strategies.draws import Draw
from tests.strategies.linear import box
from tests.strategies.reference import number

AXES = X, Y = Var("i"), Var("j")
P, Q = Var("p"), Var("q")


class Swizzle:
    """Sequence of steps that each update one index by bits of both."""

    def __init__(self, extents: tuple[int, int], steps: Sequence[tuple[int, int, int]]) -> None:
        self.extents = extents
        self.steps = steps

    def __call__(self, x: Sequence[Any]) -> list[Any]:
        places = list(x)
        for axis, shift, left in self.steps:
            other = places[1 - axis]
            moved = (other << shift) if left else (other >> shift)
            # The mask keeps all bits inside of the box.
            places[axis] = places[axis] ^ (moved & (self.extents[axis] - 1))
        return places

    def __repr__(self) -> str:
        return f"Swizzle({self.extents}, {self.steps})"


@st.composite
def swizzles(draw: Draw) -> Swizzle:
    extents = draw(st.sampled_from((4, 8, 16))), draw(st.sampled_from((4, 8, 16)))
    step = st.tuples(st.integers(0, 1), st.integers(0, 3), st.integers(0, 1))
    return Swizzle(extents, draw(st.lists(step, max_size=4)))


def values(exprs: Sequence[Expr], at: dict[Var, int]) -> tuple[int, ...]:
    return tuple(number(expr, at) for expr in exprs)


@given(swizzles())
def test_every_index_is_found_again(swizzle: Swizzle) -> None:
    back = invert(swizzle(AXES), AXES, swizzle.extents, (P, Q))

    assert back is not None
    for at in box(swizzle.extents):
        p, q = swizzle(at)
        assert values(back, {P: p, Q: q}) == at


@given(swizzles())
def test_the_greatest_place(swizzle: Swizzle) -> None:
    for k, expr in enumerate(swizzle(AXES)):
        found = greatest(expr, AXES, swizzle.extents)

        assert found == max(swizzle(at)[k] for at in box(swizzle.extents))


@pytest.mark.parametrize(
    ("exprs", "extents"),
    [
        ([X ^ Y, X ^ Y], (4, 4)),
        ([X & 1, Y], (4, 4)),
        ([(X ^ Y) & 3, Y], (8, 8)),
        ([X * X, Y], (4, 4)),
        ([X + Y, Y], (4, 4)),
    ],
    ids=["twice", "lost-bit", "cut", "square", "carry"],
)
def test_invalid_bit_matrices(exprs: list[Expr], extents: tuple[int, int]) -> None:
    assert invert(exprs, AXES, extents, (P, Q)) is None


@pytest.mark.parametrize("extents", [(3, 4), (5, 7), (6, 2)])
def test_extents_between_powers_of_two(extents: tuple[int, int]) -> None:
    """The inverse holds in the rounded box; the maximum value depends on more than bits."""
    exprs = [X ^ (Y >> 1), Y]
    back = invert(exprs, AXES, extents, (P, Q))

    assert back is not None
    for i, j in box((8, 8)):
        if i < 1 << (extents[0] - 1).bit_length() and j < 1 << (extents[1] - 1).bit_length():
            assert values(back, {P: i ^ (j >> 1), Q: j}) == (i, j)
    assert greatest(exprs[0], AXES, extents) is None
