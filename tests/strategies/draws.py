"""The choices that a program, a schedule or a layout is made of."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

from hypothesis import strategies as st

T = TypeVar("T")
Draw: TypeAlias = "Callable[[st.SearchStrategy[Any]], Any]"


@dataclass
class Draws:
    """Choices, each drawn by hypothesis; the first or the least is what they shrink to."""

    draw: Draw

    def pick(self, options: Sequence[T]) -> T:
        """One of the options."""
        chosen: T = self.draw(st.sampled_from(options))
        return chosen

    def number(self, low: int, high: int) -> int:
        """A number, both ends included."""
        drawn: int = self.draw(st.integers(low, high))
        return drawn

    def chance(self, percent: int) -> bool:
        """True in so many of 100 cases."""
        return self.number(0, 99) >= 100 - percent

    def shuffled(self, items: Sequence[T]) -> list[T]:
        """The same in any order."""
        return list(self.draw(st.permutations(items)))
