"""Wishes that cannot be kept together: the fewest of them that are to be named."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

T = TypeVar("T")


def least_clash(wishes: Sequence[T], is_possible: Callable[[Sequence[T]], bool]) -> list[T]:
    """Wishes of which no one can be left out, that cannot be kept together.

    Args:
        wishes: which cannot; at least one.
        is_possible: whether some of them can.
    """
    left = list(wishes)
    for each in wishes:
        without = [other for other in left if other is not each]
        if without and not is_possible(without):
            left = without
    return left
