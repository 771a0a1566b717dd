"""Several ways to schedule the same: the first that no primitive refuses is taken."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from copy import copy
from typing import TypeAlias

from tecomp import ScheduleError, te

Walk: TypeAlias = Callable[[te.Schedule], None]
"""Gives some stages of a schedule their loops."""


def first_taken(s: te.Schedule, walks: Iterable[Walk]) -> te.Schedule | None:
    """The schedule after the first of some walks that raises no ScheduleError.

    Args:
        s: the schedule, which stays as it is.
        walks: the best first.

    Returns:
        A new schedule; None if there is no such walk.

    >>> A = te.placeholder((8,), name="A")
    >>> B = te.compute((8,), lambda i: A[i] + 1, name="B")
    >>> s = te.create_schedule(B.op)
    >>> walks = [lambda s: s[B].compute_inline(), lambda s: s[B].unroll(B.op.axis[0])]
    >>> print(first_taken(s, walks).trace)
    def schedule(B):
        s = te.create_schedule(B.op)
        i, = s[B].op.axis
        s[B].unroll(i)
        return s
    <BLANKLINE>
    """
    for walk in walks:
        trial = copy(s)
        try:
            walk(trial)
        except ScheduleError:
            # A primitive refused: the stages around have another form than this walk expects.
            continue
        return trial
    return None
