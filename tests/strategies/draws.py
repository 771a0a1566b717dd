"""Random choices for programs, schedules and layouts."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias, TypeVar

import hypothesis
from hypothesis import strategies as st

T = TypeVar("T")
Draw: TypeAlias = "Callable[[st.SearchStrategy[Any]], Any]"


@dataclass
class Dice:
    """Source of choices without Hypothesis: given numbers first, then numbers from a seed.

    Attributes:
        first_numbers: First numbers.
        seed: Seed of the numbers after `first_numbers`; None makes them 0.
        rolled: All numbers so far.
    """

    first_numbers: Sequence[int] = ()
    seed: int | None = None
    rolled: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)

    def below(self, count: int) -> int:
        """Draw an integer from 0 to `count - 1`."""
        at = len(self.rolled)
        if at < len(self.first_numbers):
            number = min(self.first_numbers[at], count - 1)
        else:
            number = 0 if self.seed is None else self._random.randrange(count)
        self.rolled.append(number)
        return number


@dataclass
class Draws:
    """Choices from Hypothesis or `Dice`; they shrink to the first option or the lowest number."""

    draw: Draw | Dice

    def below(self, count: int) -> int:
        """Draw an integer from 0 to `count - 1`."""
        if isinstance(self.draw, Dice):
            return self.draw.below(count)
        drawn: int = self.draw(st.integers(0, count - 1))
        return drawn

    def pick(self, options: Sequence[T]) -> T:
        """Draw one of the options."""
        return options[self.below(len(options))]

    def number(self, low: int, high: int) -> int:
        """Draw an integer from `low` to `high`, both included."""
        return low + self.below(high - low + 1)

    def chance(self, percent: int) -> bool:
        """Draw True with a probability of `percent` percent."""
        return self.below(100) >= 100 - percent

    def shuffled(self, items: Sequence[T]) -> list[T]:
        """Draw a permutation of the items."""
        left = list(items)
        return [left.pop(self.below(len(left))) for _ in items]


def event(text: str) -> None:
    """Record an event for the Hypothesis statistics of a test."""
    if hypothesis.currently_in_test_context():
        hypothesis.event(text)
