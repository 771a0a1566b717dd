"""Extent arithmetic, accumulator dtypes, and selection of the first legal schedule."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from copy import copy
from typing import TypeAlias

from tecomp import Choices, ScheduleError, te
from tecomp.errors import safe_str

Size: TypeAlias = "int | te.Expr"
"""Extent of an axis: an int, or an expression that is known only at call time."""


def product(sizes: Iterable[Size]) -> Size:
    """Return the product of all sizes."""
    result: Size = 1
    for size in sizes:
        result = result * size
    return result


def ceil_div(n: int, factor: int) -> int:
    """Return `n / factor`, rounded up."""
    return -(-n // factor)


def round_up(n: int, multiple: int) -> int:
    """Return the smallest multiple of `multiple` that is at least `n`.

    >>> round_up(10, 4), round_up(12, 4)
    (12, 12)
    """
    return ceil_div(n, multiple) * multiple


def values_around(value: int, unit: int = 1, maximum: int | None = None) -> list[int]:
    """Return the values of a knob around the value that a model chose, which comes first.

    Args:
        value: Choice of the model.
        unit: Number of which the other values are multiples. Default: 1.
        maximum: Largest other value. Default: no limit.

    >>> values_around(96, 16), values_around(3), values_around(8, maximum=16)
    ([96, 48, 192, 32, 384], [3, 1, 6, 12], [8, 4, 16, 2])
    """
    scaled = (value // 2, value * 2, value // 4, value * 4)
    others = [max(round_up(size, unit), unit) for size in scaled]
    return [*dict.fromkeys([value, *(n for n in others if maximum is None or n <= maximum)])]


def is_one(extent: Size) -> bool:
    """Return whether an extent is statically known to be 1."""
    return isinstance(extent, int) and extent == 1


def same_shape(a: Sequence[Size], b: Sequence[Size]) -> bool:
    """Return whether two shapes are statically known to be equal."""
    return len(a) == len(b) and all(
        x == y if isinstance(x, int) and isinstance(y, int) else x is y
        for x, y in zip(a, b, strict=True)
    )


Walk: TypeAlias = Callable[[te.Schedule], None]
"""Scheduling candidate: a function that schedules the loops of some stages in place."""


def first_legal(s: te.Schedule, walks: Iterable[Walk]) -> te.Schedule | None:
    """Apply the first scheduling candidate that raises no ScheduleError to a copy of a schedule.

    Args:
        s: Schedule, which is not modified.
        walks: Scheduling candidates, best first.

    Returns:
        A new schedule; None if every candidate raises a ScheduleError.

    >>> A = te.placeholder((8,), name="A")
    >>> B = te.compute((8,), lambda i: A[i] + 1, name="B")
    >>> s = te.create_schedule(B.op)
    >>> walks = [lambda s: s[B].compute_inline(), lambda s: s[B].unroll(B.op.axis[0])]
    >>> print(first_legal(s, walks).trace)
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
            with Choices.active().attempt():
                walk(trial)
        except ScheduleError:
            # A primitive raised an error: the surrounding stages do not have the form that this
            # candidate requires.
            continue
        return trial
    return None


def wide_type(dtype: str) -> str:
    """Return the accumulator dtype of a dtype: at least float32 for floating-point dtypes.

    >>> wide_type("float16"), wide_type("float64"), wide_type("int8")
    ('float32', 'float64', 'int8')
    """
    name = safe_str(dtype)
    kind = te.const(1, name).dtype
    return "float32" if kind.is_float and kind.bits < 32 else name
