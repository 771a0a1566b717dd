"""Cumulative sums and products along an axis."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tecomp import TypeMismatchError, te
from tecomp.compute.intrinsics import formula_function
from tecomp.errors import safe_str
from tecomp.operations.elementwise import elementwise_in
from tecomp.operations.parameters import CUMULATIVE_PARAMETERS, arguments
from tecomp.operations.reductions import COMBINERS, CUMULATIVE, REDUCTIONS, Reduction
from tecomp.operations.rows import with_name
from tecomp.schedules import cumsum as library
from tecomp.schedules.common import wide_type
from tecomp.te import Tensor
from tecomp.topi.transform.views import reshape
from tecomp.topi.validation import as_bool, axis_of, tensor_of


def cumulative_functions(module: str) -> dict[str, Callable[..., Tensor]]:
    """Return the cumulative functions by name, as functions of a module.

    >>> cumulative_functions("tecomp.topi")["cumsum"](te.placeholder((4, 9), name="A")).shape
    (36,)
    """
    return {
        name: with_name(_define_cumulative(REDUCTIONS[kind]), name, module, _docstring(kind))
        for kind in sorted(CUMULATIVE) for name in [f"cum{kind}"]
    }


def _define_cumulative(row: Reduction) -> Callable[..., Tensor]:
    combiner, name = COMBINERS[row.combiner], f"cum{row.name}"
    combine = formula_function(elementwise_in("topi")[combiner.ufunc])

    def apply_sum(
        data: Tensor, axis: int | None = None, dtype: str | None = None,
        exclusive: bool | None = None,
    ) -> Tensor:
        return _define_sums(data, axis, dtype, exclusive)

    def apply(
        data: Tensor, axis: int | None = None, dtype: str | None = None,
        exclusive: bool | None = None,
    ) -> Tensor:
        return scanop(data, combine, combiner.identity, name, axis, dtype, exclusive)

    return apply_sum if row.combiner == "sum" else apply


def _define_sums(
    data: Tensor, axis: int | None, dtype: str | None, exclusive: bool | None
) -> Tensor:
    rows, dim = _rows(data, axis, "topi.cumsum")
    kind = _type(rows, dtype)
    if rows.dtype.is_bool:
        mask = rows
        rows = te.compute(
            mask.shape, lambda *i: te.cast(mask(*i), kind), name="T_cumsum_counted")
    result: Tensor = library.define(
        rows, dim, exclusive=as_bool(exclusive, "topi.cumsum", "exclusive"), out_dtype=kind,
        name="T_cumsum")
    return result


_DOCSTRING = """Compute the cumulative {noun} along an axis.

Args:
    data: Input tensor. float16 and bfloat16 are accumulated in float32.
{arguments}

Raises:
    DefinitionError: If `axis` is out of bounds.

>>> from tecomp import te, topi
>>> A = te.placeholder((4, 9), name="A")
>>> topi.cum{kind}(A, 1).shape, topi.cum{kind}(A).shape
((4, 9), (36,))
"""


def _docstring(kind: str) -> str:
    lines = arguments("topi", CUMULATIVE_PARAMETERS)
    return _DOCSTRING.format(noun=REDUCTIONS[kind].noun, arguments=lines, kind=kind)


def scanop(
    data: Tensor,
    binop: Callable[[Any, Any], Any],
    identity_value: Any,
    op_name: str,
    axis: int | None = None,
    dtype: str | None = None,
    exclusive: bool | None = None,
) -> Tensor:
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
    rows: Tensor, dim: int, wide_dtype: str, binop: Callable[[Any, Any], Any], start: te.Expr,
    op_name: str, *, exclusive: bool,
) -> Tensor:
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


def _rows(data: Tensor, axis: int | None, where: str) -> tuple[Tensor, int]:
    data = tensor_of(data, where)
    if axis is None:
        return reshape(data, (-1,)), 0
    return data, axis_of(axis, data.ndim, where)


def _type(data: Tensor, dtype: str | None) -> str:
    if dtype is None:
        return "int32" if data.dtype.is_bool else data.dtype
    return dtype
