"""The choices that a program, a schedule or a layout is made of."""

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
    """Choices without hypothesis: those that are given, then those that a seed makes.

    Attributes:
        given: numbers to begin with.
        seed: what the other numbers follow from; None where they are 0.
        rolled: all numbers so far.
    """

    given: Sequence[int] = ()
    seed: int | None = None
    rolled: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)

    def below(self, count: int) -> int:
        """A number from 0 to `count - 1`."""
        at = len(self.rolled)
        if at < len(self.given):
            number = min(self.given[at], count - 1)
        else:
            number = 0 if self.seed is None else self._random.randrange(count)
        self.rolled.append(number)
        return number


@dataclass
class Draws:
    """Choices, drawn by hypothesis or rolled; the first or the least is what they shrink to."""

    draw: Draw | Dice

    def below(self, count: int) -> int:
        """A number from 0 to `count - 1`."""
        if isinstance(self.draw, Dice):
            return self.draw.below(count)
        drawn: int = self.draw(st.integers(0, count - 1))
        return drawn

    def pick(self, options: Sequence[T]) -> T:
        """One of the options."""
        return options[self.below(len(options))]

    def number(self, low: int, high: int) -> int:
        """A number, both ends included."""
        return low + self.below(high - low + 1)

    def chance(self, percent: int) -> bool:
        """True in so many of 100 cases."""
        return self.below(100) >= 100 - percent

    def shuffled(self, items: Sequence[T]) -> list[T]:
        """The same in any order."""
        left = list(items)
        return [left.pop(self.below(len(left))) for _ in items]


def event(text: str) -> None:
    """Note for the statistics of a test what came up."""
    if hypothesis.currently_in_test_context():
        hypothesis.event(text)
