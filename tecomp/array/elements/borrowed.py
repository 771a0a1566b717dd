"""Memory of others, which arrays read and never write."""

from __future__ import annotations

from typing import Any

import numpy as np

from tecomp.array.graph.node import Buffer


class Borrowed:
    """What keeps memory of others alive, at the bottom of all views of it.

    Attributes:
        source: the array that has it.
        read_only: whether its owner refuses writes, so that assignment is refused too.
    """

    __slots__ = ("__array_interface__", "read_only", "source")

    def __init__(self, source: Buffer) -> None:
        place = source.__array_interface__
        self.source = source
        self.read_only = not source.flags.writeable
        self.__array_interface__ = {**place, "data": (place["data"][0], True)}


def borrow(source: Buffer) -> Buffer:
    """A view of memory of others.

    >>> borrow(np.ones(3)).flags.writeable
    False
    """
    stored: np.dtype[Any] = source.dtype
    if stored.kind == "V":  # no letter of NumPy's stands for bfloat16
        return np.asarray(Borrowed(source.view(f"u{stored.itemsize}"))).view(stored)
    return np.asarray(Borrowed(source))


def owner_of(data: Buffer) -> Buffer:
    """The array that has the memory of a view, or that borrows it."""
    while isinstance(data.base, np.ndarray):
        data = data.base
    return data


def is_borrowed(data: Buffer) -> bool:
    """Whether these elements are in memory of others."""
    return isinstance(owner_of(data).base, Borrowed)


def is_read_only(data: Buffer) -> bool:
    """Whether these elements are in memory whose owner refuses writes."""
    base = owner_of(data).base
    return isinstance(base, Borrowed) and base.read_only
