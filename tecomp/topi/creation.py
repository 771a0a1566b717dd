"""Operators that create tensors: full, eye, arange, window functions, sums of several tensors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import reduce
from typing import Any

from tecomp import DefinitionError, TypeMismatchError, te
from tecomp.schedules.common import wide_type
from tecomp.topi import tag
from tecomp.topi.elementwise import add
from tecomp.topi.extents import Size, ceil_div, minus
from tecomp.topi.validation import (
    Operand,
    constant_of,
    extent_of,
    integer_of,
    operand_of,
    shape_of,
    tensor_of,
    tensors_of,
)


def full(shape: Size | Sequence[Size], dtype: str, fill_value: Operand) -> te.Tensor:
    """Return a tensor filled with one value.

    Raises:
        TypeMismatchError: If `fill_value` is not representable in `dtype`.

    >>> full((4, 8), "int8", 3).dtype
    'int8'
    """
    return _fill(shape_of(shape), dtype, fill_value, "topi.full")


def _fill(shape: tuple[Size, ...], dtype: str, fill_value: Operand, where: str) -> te.Tensor:
    value = constant_of(fill_value, dtype, where, "fill_value")
    return te.compute(shape, lambda *_: value, name="T_full", tag=tag.ELEMWISE)


def full_like(x: te.Tensor, fill_value: Operand) -> te.Tensor:
    """Return a tensor filled with one value, with the shape and dtype of `x`.

    >>> full_like(te.placeholder((4, 8), "int8", name="A"), 3).shape
    (4, 8)
    """
    x = tensor_of(x, "topi.full_like", "x")
    return _fill(x.shape, x.dtype, fill_value, "topi.full_like")


def eye(n: Size, m: Size | None = None, k: int = 0, dtype: str = "float32") -> te.Tensor:
    """Return a matrix with ones on one diagonal and zeros elsewhere.

    Args:
        n: Number of rows.
        m: Number of columns. Default: `n`.
        k: Offset of the diagonal to the right of the main diagonal.
        dtype: Result dtype.

    >>> eye(3, 5, k=1).shape
    (3, 5)
    """
    shift = integer_of(k, "topi.eye", "k")
    rows = extent_of(n, "topi.eye", "n")
    columns = rows if m is None else extent_of(m, "topi.eye", "m")
    return te.compute(
        (rows, columns), lambda i, j: te.cast(j - i == shift, dtype), name="T_eye",
        tag=tag.INJECTIVE,
    )


def elemwise_sum(xs: Sequence[te.Tensor]) -> te.Tensor:
    """Compute the element-wise sum of several tensors.

    Raises:
        DefinitionError: If `xs` is empty, or if the shapes are not broadcast-compatible.

    >>> A = te.placeholder((4, 8), name="A")
    >>> elemwise_sum([A, A, A]).shape
    (4, 8)
    """
    total: te.Tensor = reduce(add, tensors_of(xs, "topi.elemwise_sum", "xs"))
    return total


def arange(
    start: Operand, stop: Operand | None = None, step: Operand = 1, dtype: str = "float32"
) -> te.Tensor:
    """Return evenly spaced values in the half-open interval [start, stop).

    Args:
        start: First value. If `stop` is None, it is the end of an interval that starts at 0.
        stop: End of the interval, exclusive. It may be an expression of size variables if `step` is
            an integer.
        step: Difference between adjacent values.
        dtype: Result dtype.

    Raises:
        DefinitionError: If `step` is 0, or if a bound is not finite.
        TypeMismatchError: If a bound is neither a number nor an expression of size variables, or if
            symbolic bounds have a step that is not an integer.

    >>> arange(2, 10, 3).shape, arange(5, dtype="int8").shape
    ((3,), (5,))
    """
    where = "topi.arange"
    first, last = (0, start) if stop is None else (start, stop)
    for operand, name in ((first, "start"), (last, "stop"), (step, "step")):
        operand_of(operand, where, name)
    count = _count(first, last, step)
    has_fraction = any(isinstance(x, float) for x in (first, step))
    kind = "float64" if has_fraction and "float" not in str(dtype) else wide_type(dtype)

    def value(i: te.Expr) -> te.Expr:
        low, delta = (constant_of(x, kind, "topi.arange", name)
                   for x, name in ((first, "start"), (step, "step")))  # fmt: skip
        return te.cast(low + te.cast(i, kind) * delta, dtype)

    return te.compute((count,), value, name="T_arange", tag=tag.INJECTIVE)


def _count(first: Operand, last: Operand, step: Operand) -> Size:
    numbers: list[Any] = [getattr(x, "value", x) for x in (first, last, step)]
    low, high, step = numbers
    if isinstance(step, int | float) and step == 0:
        raise DefinitionError(
            "topi.arange: step must not be 0", kind="invalid-value"
        )
    if any(isinstance(x, float) and not math.isfinite(x) for x in numbers):
        raise DefinitionError(
            "topi.arange: start, stop and step must be finite, got {low}, {high} and {step}",
            kind="invalid-value", low=low, high=high, step=step,
        )
    if all(isinstance(x, int) for x in numbers):
        n_steps: int = max(-((low - high) // step), 0)
        return n_steps
    if all(isinstance(x, int | float) for x in numbers):
        try:
            known: int = max(math.ceil((high - low) / step), 0)
        except OverflowError:  # an integer beyond float64
            raise DefinitionError(
                "topi.arange: the range from {low} to {high} with step {step} exceeds float64; "
                "pass smaller numbers",
                kind="invalid-value", low=low, high=high, step=step,
            ) from None
        return known
    if not isinstance(step, int) or any(isinstance(x, float | te.Tensor) for x in numbers):
        raise TypeMismatchError(
            "topi.arange: the number of elements from {low} to {high} with step {step} cannot be "
            "inferred; pass numbers, or sizes with an integer step",
            low=low, high=high, step=step,
        )
    length = minus(high, low) if step > 0 else minus(low, high)
    count: Size = te.max(ceil_div(length, abs(step)), 0)
    return count


def hamming_window(
    window_size: Size, periodic: bool, alpha: float, beta: float, dtype: str
) -> te.Tensor:
    """Compute `alpha - beta * cos(2 * pi * i / n)`, where n is the period of the window.

    Args:
        window_size: Number of elements.
        periodic: If True, the period is `window_size` elements, else `window_size - 1`.
        alpha: Mean of the cosine.
        beta: Amplitude of the cosine.
        dtype: Result dtype.

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
