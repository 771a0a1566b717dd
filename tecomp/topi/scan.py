"""Cumulative sums and products along an axis."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tecomp import TypeMismatchError, te
from tecomp.errors import safe_str
from tecomp.schedules import cumsum as library
from tecomp.schedules.common import wide_type
from tecomp.topi.transform.views import reshape
from tecomp.topi.validation import as_bool, axis_of, tensor_of


def cumsum(
    data: te.Tensor,
    axis: int | None = None,
    dtype: str | None = None,
    exclusive: bool | None = None,
) -> te.Tensor:
    """Compute the cumulative sum along an axis.

    Args:
        data: Input tensor. float16 and bfloat16 are accumulated in float32.
        axis: Axis along which to accumulate. Negative values count from the last axis. None
            flattens `data`.
        dtype: Result dtype. Default: the dtype of `data`, or int32 for bool.
        exclusive: If True, exclude each element from its own result.

    Raises:
        DefinitionError: If `axis` is out of bounds.

    >>> A = te.placeholder((4, 9), name="A")
    >>> cumsum(A, 1).shape, cumsum(A).shape
    ((4, 9), (36,))
    """
    rows, dim = _rows(data, axis, "topi.cumsum")
    kind = _type(rows, dtype)
    if rows.dtype.is_bool:
        mask = rows
        rows = te.compute(
            mask.shape, lambda *i: te.cast(mask(*i), kind), name="T_cumsum_counted")
    result: te.Tensor = library.define(
        rows, dim, exclusive=as_bool(exclusive, "topi.cumsum", "exclusive"), out_dtype=kind,
        name="T_cumsum")
    return result


def cumprod(
    data: te.Tensor,
    axis: int | None = None,
    dtype: str | None = None,
    exclusive: bool | None = None,
) -> te.Tensor:
    """Compute the cumulative product along an axis.

    Args:
        data: Input tensor. float16 and bfloat16 are multiplied in float32.
        axis: Axis along which to accumulate. Negative values count from the last axis. None
            flattens `data`.
        dtype: Result dtype. Default: the dtype of `data`, or int32 for bool.
        exclusive: If True, exclude each element from its own result.

    Raises:
        DefinitionError: If `axis` is out of bounds.

    >>> cumprod(te.placeholder((4, 8), name="A"), 1).shape
    (4, 8)
    """
    return scanop(data, lambda x, y: x * y, 1, "cumprod", axis, dtype, exclusive)


def scanop(
    data: te.Tensor,
    binop: Callable[[Any, Any], Any],
    identity_value: Any,
    op_name: str,
    axis: int | None = None,
    dtype: str | None = None,
    exclusive: bool | None = None,
) -> te.Tensor:
    """Compute a sequential scan along an axis with a binary operator.

    Args:
        data: Input tensor.
        binop: Function that combines the previous result with the next element.
        identity_value: Initial value, used if `exclusive` is True.
        op_name: Name of the operation.
        axis: Axis along which to accumulate. Negative values count from the last axis. None
            flattens `data`.
        dtype: Result dtype. Default: the dtype of `data`, or int32 for bool.
        exclusive: If True, exclude each element from its own result.

    Raises:
        DefinitionError: If `axis` is out of bounds.
        TypeMismatchError: If `binop` is not callable.

    >>> A = te.placeholder((4, 9), name="A")
    >>> scanop(A, te.max, float("-inf"), "cummax", 1).shape
    (4, 9)
    """
    op_name = safe_str(op_name)
    rows, dim = _rows(data, axis, f"topi.{op_name}")
    if not callable(binop):
        raise TypeMismatchError(
            "topi.{op_name}: binop must be a function of two values, got {binop!r} ({type})",
            kind="invalid-type", op_name=op_name, binop=binop, type=type(binop).__name__,
        )
    exclusive = as_bool(exclusive, f"topi.{op_name}", "exclusive")
    kind = _type(rows, dtype)
    wide_dtype = wide_type(kind)
    start = identity_value if isinstance(identity_value, te.Expr) else te.const(
        identity_value, wide_dtype)
    scanned = _steps(rows, dim, wide_dtype, binop, start, op_name, exclusive=exclusive)
    return te.compute(
        rows.shape, lambda *i: te.cast(scanned(i[dim], *i[:dim], *i[dim + 1 :]), kind),
        name=f"T_{op_name}",
    )


def _steps(
    rows: te.Tensor, dim: int, wide_dtype: str, binop: Callable[[Any, Any], Any], start: te.Expr,
    op_name: str, *, exclusive: bool,
) -> te.Tensor:
    """Define the scan in the accumulation dtype, with the scanned axis first."""
    steps, others = rows.shape[dim], (*rows.shape[:dim], *rows.shape[dim + 1 :])

    def element(t: te.Expr, *i: te.Expr) -> te.Expr:
        return te.cast(rows(*i[:dim], t, *i[dim:]), wide_dtype)

    shape = (steps, *others)
    # A scan of an empty axis has no initial step.
    first = (min(steps, 1) if isinstance(steps, int) else 1, *others)
    state = te.placeholder(shape, wide_dtype, name=f"{op_name}_state")
    init = te.compute(
        first, lambda t, *i: te.cast(start, wide_dtype) if exclusive else element(t, *i),
        name=f"{op_name}_start",
    )
    step = te.compute(
        shape,
        lambda t, *i: binop(state(t - 1, *i), element(t - 1 if exclusive else t, *i)),
        name=f"{op_name}_step",
    )
    return te.scan(init, step, state, [rows], name=f"{op_name}_scan")


def _rows(data: te.Tensor, axis: int | None, where: str) -> tuple[te.Tensor, int]:
    data = tensor_of(data, where)
    if axis is None:
        return reshape(data, (-1,)), 0
    return data, axis_of(axis, data.ndim, where)


def _type(data: te.Tensor, dtype: str | None) -> str:
    if dtype is None:
        return "int32" if data.dtype.is_bool else data.dtype
    return dtype
