"""Random linear sums that can be evaluated on integers and on expressions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from hypothesis import strategies as st

from tests.strategies.draws import Draw


@dataclass(frozen=True)
class Sum:
    """Sum `const + factors[0] * x[0] + factors[1] * x[1] + ...`, or a digit of this sum."""

    factors: tuple[int, ...]
    const: int = 0
    divisor: int = 1
    modulus: int = 0

    def __call__(self, x: Sequence[Any]) -> Any:
        """Evaluate the sum; the result is an int or an expression, like the operands."""
        total: Any = self.const
        for factor, value in zip(self.factors, x, strict=True):
            if factor:
                total = value * factor + total
        total = total // self.divisor if self.divisor > 1 else total
        return total % self.modulus if self.modulus else total


@st.composite
def sums(draw: Draw, count: int, most: int = 3, *, digits: bool = False) -> Sum:
    """Draw a sum of `count` variables; with `digits`, sometimes a digit of the sum."""
    factors = tuple(draw(st.integers(-1, most)) for _ in range(count))
    const = draw(st.integers(-2, 4))
    if not digits or draw(st.integers(0, 2)):
        return Sum(factors, const)
    return Sum(factors, const, draw(st.integers(1, 3)), draw(st.sampled_from((0, 0, 2, 3))))


def box(extents: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """Return all points of a box in lexicographic order."""
    return product(*map(range, extents))
