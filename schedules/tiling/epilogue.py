"""What follows a sum of products: a bias, an activation, and one rounding."""

from __future__ import annotations

from collections.abc import Callable

from tecomp import te
from tecomp.schedules.tiling.types import wide_type


def finished(
    total: te.Tensor,
    dtype: str,
    bias: te.Tensor | None,
    along: int,
    activation: Callable[[te.Expr], te.Expr] | None,
    name: str,
) -> te.Tensor:
    """`activation(total + bias)`, computed in `wide_type(dtype)` and rounded to `dtype` at last.

    Args:
        total: the sums.
        dtype: of the result.
        bias: one value for each index along an axis, or None.
        along: the number of that axis.
        activation: applied to each element, or None.
        name: of the result.

    >>> total = te.placeholder((4, 8), "float32", name="total")
    >>> finished(total, "float16", None, 1, None, "C").dtype
    'float16'
    """
    wide = wide_type(dtype)

    def finish(*axes: te.Expr) -> te.Expr:
        value: te.Expr = total(*axes)
        if bias is not None:
            shift = bias(axes[along])
            value = value + (shift if wide == dtype else te.cast(shift, wide))
        value = activation(value) if activation is not None else value
        return value if wide == dtype else te.cast(value, dtype)

    return te.compute(total.shape, finish, name=name)
