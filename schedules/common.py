"""Extent arithmetic, accumulator dtypes, and `first_legal` over alternative schedules."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from copy import copy
from typing import TypeAlias

from tecomp import ScheduleError, te

Size: TypeAlias = "int | te.Expr"
"""An extent: a number, or what the arguments say."""


def product(sizes: Iterable[Size]) -> Size:
    """All sizes multiplied together."""
    result: Size = 1
    for size in sizes:
        result = result * size
    return result


def ceil_div(n: int, factor: int) -> int:
    """`n / factor`, rounded up."""
    return -(-n // factor)


def round_up(n: int, multiple: int) -> int:
    """The least multiple of a number that is not below `n`.

    >>> round_up(10, 4), round_up(12, 4)
    (12, 12)
    """
    return ceil_div(n, multiple) * multiple


def is_one(extent: Size) -> bool:
    """Whether an axis has one element, whatever the arguments."""
    return isinstance(extent, int) and extent == 1


def same_shape(a: Sequence[Size], b: Sequence[Size]) -> bool:
    """Whether two shapes are known to be equal."""
    return len(a) == len(b) and all(
        x == y if isinstance(x, int) and isinstance(y, int) else x is y
        for x, y in zip(a, b, strict=True)
    )


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


def wide_type(dtype: str) -> str:
    """The type in which values of a type are added up: at least float32, for floats.

    >>> wide_type("float16"), wide_type("float64"), wide_type("int8")
    ('float32', 'float64', 'int8')
    """
    return "float32" if str(dtype) in ("float16", "bfloat16") else str(dtype)
