"""Layer normalization and RMS normalization along the last axis.

A row is read from memory once and stays in the first-level cache while it is traversed for its
mean, its variance and the result.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tecomp import Target, te
from tecomp.schedules.common import wide_type
from tecomp.schedules.rowwise import schedule_rows


def layer_norm(
    A: te.Tensor,
    scale: te.Tensor | None = None,
    shift: te.Tensor | None = None,
    *,
    epsilon: float = 1e-5,
    name: str = "layer_norm",
) -> te.Tensor:
    """Define `(A - mean) / sqrt(variance + epsilon) * scale + shift` along the last axis.

    The variance is computed from the differences from the mean, which avoids cancellation.

    Args:
        A: Input tensor.
        scale: One factor per column. Default: 1.
        shift: One summand per column. Default: 0.
        epsilon: Summand that prevents division by 0 in rows of equal values. Default: 1e-5.
        name: Name of the result.

    Source:
        J. L. Ba, J. R. Kiros, G. E. Hinton, "Layer Normalization", arXiv:1607.06450, section 3.

    >>> layer_norm(te.placeholder((4, 8), name="A")).shape
    (4, 8)
    """
    *rows, n = A.shape
    wide_dtype = wide_type(A.dtype)
    k, r = (te.reduce_axis((0, n), name=axis) for axis in ("k", "r"))
    count = te.cast(n, wide_dtype)
    total = te.compute(
        rows, lambda *i: te.sum(te.cast(A(*i, k), wide_dtype), axis=k), name=f"{name}_total"
    )
    mean = te.compute(rows, lambda *i: total(*i) / count, name=f"{name}_mean")

    def difference(*i: te.Expr) -> te.Expr:
        return te.cast(A(*i), wide_dtype) - mean(*i[:-1])

    squares = te.compute(
        rows, lambda *i: te.sum(difference(*i, r) * difference(*i, r), axis=r),
        name=f"{name}_squares",
    )
    return _normalize(A, difference, squares, scale, shift, epsilon, name)


def rms_norm(
    A: te.Tensor,
    scale: te.Tensor | None = None,
    *,
    epsilon: float = 1e-5,
    name: str = "rms_norm",
) -> te.Tensor:
    """Define `A / sqrt(mean(A * A) + epsilon) * scale` along the last axis.

    The arguments are the same as in `layer_norm`.

    Source:
        B. Zhang, R. Sennrich, "Root Mean Square Layer Normalization", arXiv:1910.07467, section 4.

    >>> rms_norm(te.placeholder((4, 8), name="A")).shape
    (4, 8)
    """
    *rows, n = A.shape
    r = te.reduce_axis((0, n), name="r")

    def value(*i: te.Expr) -> te.Expr:
        return te.cast(A(*i), wide_type(A.dtype))

    squares = te.compute(
        rows, lambda *i: te.sum(value(*i, r) * value(*i, r), axis=r), name=f"{name}_squares"
    )
    return _normalize(A, value, squares, scale, None, epsilon, name)


def _normalize(
    A: te.Tensor,
    value: Callable[..., te.Expr],
    squares: te.Tensor,
    scale: te.Tensor | None,
    shift: te.Tensor | None,
    epsilon: float,
    name: str,
) -> te.Tensor:
    """Divide `value` by the root of the mean of `squares`, then scale and shift the quotient."""
    wide_dtype = wide_type(A.dtype)

    def factor(*i: te.Expr) -> te.Expr:
        mean = squares(*i) / te.cast(A.shape[-1], wide_dtype)
        return te.const(1, wide_dtype) / te.sqrt(mean + te.const(epsilon, wide_dtype))

    rate = te.compute(squares.shape, factor, name=f"{name}_rate")

    def result(*i: te.Expr) -> te.Expr:
        x = value(*i) * rate(*i[:-1])
        x = x if scale is None else x * te.cast(scale(i[-1]), wide_dtype)
        x = x if shift is None else x + te.cast(shift(i[-1]), wide_dtype)
        return te.cast(x, A.dtype)

    return te.compute(A.shape, result, name=name)


def schedule(output: te.Tensor, target: str | Path | Target) -> te.Schedule:
    """Return a schedule for the result of `layer_norm` or of `rms_norm`."""
    done: te.Schedule = schedule_rows(output, Target.of(target))
    return done
