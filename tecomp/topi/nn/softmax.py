"""Softmax and its logarithm, along any axis."""

from __future__ import annotations

from tecomp import te
from tecomp.schedules import softmax as library
from tecomp.schedules.tiling.types import wide_type
from tecomp.topi.given import axis_of, check_float, tensor_of
from tecomp.topi.transform.views import transpose


def softmax(x: te.Tensor, axis: int = -1) -> te.Tensor:
    """`exp(x) / sum(exp(x))` along an axis, in the type of `x`.

    Args:
        x: floats; narrow ones are computed with in float32.
        axis: counted from the end if negative.

    Raises:
        DefinitionError: there is no such axis.
        TypeMismatchError: the elements are no floats.

    >>> softmax(te.placeholder((4, 8), name="A")).shape
    (4, 8)
    """
    rows, order = _rows(x, axis, "topi.nn.softmax")
    done = library.define(rows, name="T_softmax" if order is None else "T_softmax_rows")
    return done if order is None else transpose(done, order)


fast_softmax = softmax


def log_softmax(x: te.Tensor, axis: int = -1) -> te.Tensor:
    """The logarithm of `softmax` along an axis, without overflow in between.

    Args:
        x: floats; narrow ones are computed with in float32.
        axis: counted from the end if negative.

    Raises:
        DefinitionError: there is no such axis.
        TypeMismatchError: the elements are no floats.

    >>> log_softmax(te.placeholder((4, 8), name="A")).shape
    (4, 8)
    """
    rows, order = _rows(x, axis, "topi.nn.log_softmax")
    *outer, n = rows.shape
    wide = wide_type(rows.dtype)
    k, r = (te.reduce_axis((0, n), name=name) for name in ("k", "r"))
    most = te.compute(
        outer, lambda *i: te.max(te.cast(rows(*i, k), wide), axis=k), name="T_log_softmax_most")
    total = te.compute(
        outer, lambda *i: te.sum(te.exp(te.cast(rows(*i, r), wide) - most(*i)), axis=r),
        name="T_log_softmax_total",
    )
    done = te.compute(
        rows.shape,
        lambda *i: te.cast(
            te.cast(rows(*i), wide) - most(*i[:-1]) - te.log(total(*i[:-1])), rows.dtype),
        name="T_log_softmax",
    )
    return done if order is None else transpose(done, order)


def _rows(x: te.Tensor, axis: int, where: str) -> tuple[te.Tensor, list[int] | None]:
    """The tensor with an axis last, and the order that brings it back; None if it was."""
    x = tensor_of(x, where, "x")
    check_float(x, where)
    along = axis_of(axis, x.ndim, where)
    last = x.ndim - 1
    if along == last:
        return x, None
    order = list(range(x.ndim))
    order[along], order[last] = last, along
    return transpose(x, order), order
