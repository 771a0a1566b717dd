"""Axes as users give them: counted from either end, one or several."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import TypeAlias

from tecomp.errors import ArrayIndexError, ArrayTypeError, ArrayValueError
from tecomp.ptensor.types import Shape

Axes: TypeAlias = int | Sequence[int] | None


def axis_of(axis: object, rank: int, where: str, what: str = "axis") -> int:
    """An axis, counted from the first.

    Args:
        axis: counted from the last if negative.
        rank: how many axes there are.
        where: the operation, for messages.
        what: the argument, for messages.

    Raises:
        ArrayTypeError: it is no integer.
        ArrayIndexError: there is no such axis.

    >>> axis_of(-1, 3, "sum")
    2
    """
    try:
        given = operator.index(axis)  # type: ignore[arg-type]
    except TypeError:
        raise ArrayTypeError(
            f"{where}: {what} is {axis!r}; give an integer, the number of an axis"
        ) from None
    if -rank <= given < rank:
        return given % rank
    numbers = f"from {-rank} to {rank - 1}" if rank else "none: the array has no axes"
    raise ArrayIndexError(f"{where}: {what} is {given} of {rank} axes; there are {numbers}")


def axes_of(axis: Axes, rank: int, where: str) -> tuple[int, ...]:
    """Several axes in their order, each counted from the first.

    Args:
        axis: one or several; all of them if None.
        rank: how many axes there are.
        where: the operation, for messages.

    Raises:
        ArrayTypeError: one is no integer.
        ArrayIndexError: there is no such axis.
        ArrayValueError: one is given twice.

    >>> axes_of((-1, 0), 3, "sum"), axes_of(None, 2, "sum"), axes_of((), 2, "sum")
    ((0, 2), (0, 1), ())
    """
    if axis is None:
        return tuple(range(rank))
    given = axis if isinstance(axis, list | tuple) else (axis,)
    found = sorted([axis_of(k, rank, where) for k in given])
    if len(set(found)) < len(found):
        raise ArrayValueError(
            f"{where}: axis is {tuple(given)} of {rank} axes, which has one twice; give each once"
        )
    return tuple(found)


def without(shape: Shape, axes: Sequence[int], keepdims: bool) -> Shape:
    """A shape whose axes are gone, or have extent 1.

    >>> without((4, 5, 6), (0, 2), False), without((4, 5, 6), (0, 2), True)
    ((5,), (1, 5, 1))
    """
    return tuple([
        1 if k in axes else n for k, n in enumerate(shape) if keepdims or k not in axes
    ])
