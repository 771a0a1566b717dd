"""Tensors that follow from the index alone: ranges and windows of signals."""

from __future__ import annotations

import math
from typing import Any

from tecomp import DefinitionError, TypeMismatchError, te
from tecomp.schedules.tiling.types import wide_type
from tecomp.topi import tag
from tecomp.topi.given import Operand, constant_of, operand_of
from tecomp.topi.sizes import Size, ceil_div, minus


def arange(
    start: Operand, stop: Operand | None = None, step: Operand = 1, dtype: str = "float32"
) -> te.Tensor:
    """`start`, `start + step`, ... before `stop`.

    Args:
        start: the first; the numbers go from 0 to before it if there is no `stop`.
        stop: what they end before. It may be an expression of sizes, if the step is a number.
        step: from one to the next.
        dtype: type of the numbers.

    Raises:
        DefinitionError: the step is 0.
        TypeMismatchError: a bound is no number, and no size.

    >>> arange(2, 10, 3).shape, arange(5, dtype="int8").shape
    ((3,), (5,))
    """
    where = "topi.arange"
    first, last = (0, start) if stop is None else (start, stop)
    for given, what in ((first, "start"), (last, "stop"), (step, "step")):
        operand_of(given, where, what)
    count = _count(first, last, step)
    has_fraction = any(isinstance(x, float) for x in (first, step))
    kind = "float64" if has_fraction and "float" not in str(dtype) else wide_type(dtype)

    def value(i: te.Expr) -> te.Expr:
        low, by = (constant_of(x, kind, "topi.arange", what)
                   for x, what in ((first, "start"), (step, "step")))  # fmt: skip
        return te.cast(low + te.cast(i, kind) * by, dtype)

    return te.compute((count,), value, name="T_arange", tag=tag.INJECTIVE)


def _count(first: Operand, last: Operand, step: Operand) -> Size:
    numbers: list[Any] = [getattr(x, "value", x) for x in (first, last, step)]
    low, high, step = numbers
    if isinstance(step, int | float) and step == 0:
        raise DefinitionError(
            "topi.arange: step is 0; the numbers would not end", kind="wrong-number"
        )
    if any(isinstance(x, float) and not math.isfinite(x) for x in numbers):
        raise DefinitionError(
            f"topi.arange: it goes from {low} to {high} by {step}; give numbers that are finite",
            kind="wrong-number",
        )
    if all(isinstance(x, int | float) for x in numbers):
        known: int = max(math.ceil((high - low) / step), 0)
        return known
    if not isinstance(step, int) or any(isinstance(x, float | te.Tensor) for x in numbers):
        raise TypeMismatchError(
            f"topi.arange: from {low} to {high} by {step} there is no count that is known; give "
            "numbers, or sizes and an integer step"
        )
    length = minus(high, low) if step > 0 else minus(low, high)
    count: Size = te.max(ceil_div(length, abs(step)), 0)
    return count


def hamming_window(
    window_size: Size, periodic: bool, alpha: float, beta: float, dtype: str
) -> te.Tensor:
    """`alpha - beta * cos(2 * pi * i / n)` for a window of n, or of n + 1 if it is not periodic.

    Args:
        window_size: elements of the window.
        periodic: whether the cosine has its period after `window_size` elements, or after one less.
        alpha: the mean of the cosine.
        beta: its amplitude.
        dtype: type of the result.

    >>> hamming_window(16, True, 0.54, 0.46, "float32").shape
    (16,)
    """
    kind = wide_type(dtype)
    span = te.cast(window_size, kind) - te.const(0 if periodic else 1, kind)

    def value(i: te.Expr) -> te.Expr:
        if isinstance(window_size, int) and window_size == 1:
            return te.const(1, dtype)
        angle = te.cast(i, kind) * te.const(2 * math.pi, kind) / span
        return te.cast(te.const(alpha, kind) - te.const(beta, kind) * te.cos(angle), dtype)

    return te.compute((window_size,), value, name="T_hamming_window", tag=tag.INJECTIVE)
