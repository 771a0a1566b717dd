"""Reductions along axes: sums, products, extremes and their positions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import isinf
from typing import Any

from tecomp import DefinitionError, TypeMismatchError, te
from tecomp.compute.intrinsics import ExpressionAlgebra
from tecomp.ir.nodes.argument_checks import shape_text
from tecomp.operations.parameters import arguments
from tecomp.operations.reductions import COMBINERS, REDUCTIONS, TO_WIDE, Reduction, reductions_in
from tecomp.operations.rows import with_name
from tecomp.schedules import argreduce, reduce
from tecomp.schedules.common import wide_type
from tecomp.te import Tensor
from tecomp.topi import tag
from tecomp.topi.extents import Size, equal, minus, product
from tecomp.topi.transform.views import flip, reshape, transpose
from tecomp.topi.validation import Axes, as_bool, axes_of, check_float, shape_of, tensor_of


def reductions(module: str) -> dict[str, Callable[..., Tensor]]:
    """Return the reductions by name, as functions of a module.

    >>> reductions("tecomp.topi")["max"](te.placeholder((4, 8), name="A"), 1).shape
    (4,)
    """
    return {
        name: with_name(_define_function(row), name, module, _docstring(row))
        for name, row in sorted(reductions_in("topi").items())
    }


def _define_function(row: Reduction) -> Callable[..., Tensor]:
    name: Any = row.name
    reducer: Any = COMBINERS[row.combiner].reducer

    def apply(data: Tensor, axis: Axes = None, keepdims: bool = False) -> Tensor:
        return define_reduction(data, axis, keepdims, reducer, name)

    def apply_to_terms(data: Tensor, axis: Axes = None, keepdims: bool = False) -> Tensor:
        return _define_terms(row, data, axis, keepdims)

    def apply_to_conditions(data: Tensor, axis: Axes = None, keepdims: bool = False) -> Tensor:
        return define_reduction(_conditions(data, f"topi.{name}"), axis, keepdims, reducer, name)

    def apply_to_index(
        data: Tensor, axis: Axes = None, keepdims: bool = False, select_last_index: bool = False
    ) -> Tensor:
        return _define_arg_reduction(data, axis, keepdims, select_last_index, name)

    if row.op == "find_index":
        return apply_to_index
    if row.term is not None:
        return apply_to_terms
    return apply_to_conditions if row.of_truth else apply


_DOCSTRING = """{text}
{empty}
Args:
    data: Input tensor{words}
{arguments}

Returns:
    {result}

Raises:
    DefinitionError: If `axis` is out of bounds or contains duplicates{problem}.{unsupported}

>>> from tecomp import te, topi
>>> A = te.placeholder((4, 5, 6), {dtype}name="A")
>>> topi.{name}(A, 0).shape, topi.{name}(A, (0, -1), keepdims=True).shape
((5, 6), (1, 5, 1))
"""
_EMPTY = """
An empty reduction gives the {limit} value of the dtype, {infinity} for floating-point dtypes.
"""
_UNSUPPORTED = """
    TypeMismatchError: If `data` {problem}."""


def _docstring(row: Reduction) -> str:
    is_index, is_wide = row.op == "find_index", row.gives == TO_WIDE
    identity = COMBINERS[row.combiner].identity
    empty = "" if is_index or not isinf(identity) else _EMPTY.format(
        limit="largest" if identity > 0 else "smallest",
        infinity="infinity" if identity > 0 else "-infinity")
    words = ", bool." if row.of_truth else f", {row.takes.words}." if row.term else "."
    if is_wide:
        words = (
            ". Booleans count as 0 and 1 in int32. float16 and bfloat16 are\n"
            "        accumulated in float32."
        )
    return _DOCSTRING.format(
        text=row.text_in("topi"), empty=empty, words=words, name=row.name,
        arguments=arguments("topi", row.params),
        result="int32 indices." if is_index else
        "Tensor of dtype bool." if row.of_truth else
        row.returns.replace("Array", "Tensor") if row.term else
        "Tensor of the dtype of `data`, or of int32 for bool." if is_wide else
        "Tensor of the dtype of `data`.",
        problem=", or if the reduction is\n        known to be empty" if is_index else "",
        unsupported=_UNSUPPORTED.format(problem="is not bool") if row.of_truth else
        _UNSUPPORTED.format(problem="has an unsupported dtype") if row.term else "",
        dtype='"bool", ' if row.of_truth else "",
    )


def _conditions(data: Tensor, where: str) -> Tensor:
    data = tensor_of(data, where)
    if data.dtype.is_bool:
        return data
    raise TypeMismatchError(
        "{where}: {data} has dtype {dtype}, expected bool; compare it: topi.not_equal({data}, 0)",
        where=where, data=data.name, dtype=data.dtype,
    )


def define_reduction(
    data: Tensor, axis: Axes, keepdims: bool, op: reduce.Operation, name: str
) -> Tensor:
    """Reduce `data` along the given axes; copy and cast a tensor of rank 0."""
    where = f"topi.{name}"
    data = tensor_of(data, where)
    axes = axes_of(_axes_or_none(axis), data.ndim, where)
    keepdims = as_bool(keepdims, where, "keepdims")
    dtype = "int32" if data.dtype.is_bool and op in ("sum", "prod") else data.dtype
    if not axes:
        return te.compute(
            data.shape, lambda *i: te.cast(data(*i), dtype), name=f"T_{name}", tag=tag.ELEMWISE)
    result: Tensor = reduce.define(
        data, axes, op, keepdims=keepdims, out_dtype=dtype,
        name=f"T_{name}", tag=tag.COMM_REDUCE)
    return result


def _define_terms(row: Reduction, data: Tensor, axis: Axes, keepdims: bool) -> Tensor:
    """Define a reduction of terms: the center if it has one, the total, and the result."""
    where, name, m = f"topi.{row.name}", f"T_{row.name}", ExpressionAlgebra()
    data = tensor_of(data, where)
    check_float(data, where)
    keepdims = as_bool(keepdims, where, "keepdims")
    axes = axes_of(_axes_or_none(axis), data.ndim, where)
    wide, term, finish = wide_type(data.dtype), row.term, row.finish
    assert term is not None
    center = _define_center(row, data, axis)

    def center_at(index: Sequence[Any]) -> Any:
        return None if center is None else te.cast(center(*index), wide)

    def element(*i: te.Expr) -> te.Expr:
        center_index = [0 if k in axes else index for k, index in enumerate(i)]
        value: te.Expr = term(m, te.cast(data(*i), wide), center_at(center_index))
        return value

    terms = te.compute(data.shape, element, name=f"{name}_terms", tag=tag.INJECTIVE)
    reducer: Any = COMBINERS[row.combiner].reducer
    total = define_reduction(terms, axis, keepdims, reducer, f"{row.name}_total")

    def count() -> te.Expr:
        return te.cast(product(data.shape[k] for k in axes), wide)

    def result(*i: te.Expr) -> te.Expr:
        indices = iter(i)
        index = [next(indices) if keepdims or k not in axes else 0 for k in range(data.ndim)]
        value = total(*i)
        if finish is not None:
            value = finish(m, value, count, lambda: center_at(index))
        return te.cast(value, data.dtype)

    return te.compute(total.shape, result, name=name, tag=tag.COMM_REDUCE)


def _define_center(row: Reduction, data: Tensor, axis: Axes) -> Tensor | None:
    """Define the center of a reduction with kept axes; return None if it has no center."""
    if not row.center:
        return None
    assert REDUCTIONS[row.center].is_associative
    reducer: Any = COMBINERS[REDUCTIONS[row.center].combiner].reducer
    return define_reduction(data, axis, True, reducer, f"{row.name}_{row.center}")


def _axes_or_none(axis: Axes) -> Axes:
    """Return `axis`, or None, which means all axes, for an empty list."""
    return None if isinstance(axis, list | tuple) and not axis else axis


def _define_arg_reduction(
    data: Tensor, axis: Axes, keepdims: bool, last: bool, op: argreduce.Operation
) -> Tensor:
    where = f"topi.{op}"
    data = tensor_of(data, where)
    axes = axes_of(_axes_or_none(axis), data.ndim, where)
    count = product(data.shape[k] for k in axes)
    if equal(count, 0):
        raise DefinitionError(
            "{where}: {data} of shape {shape} has no elements along axes {axes}; pass at least "
            "one element",
            kind="shapes", where=where, data=data.name, shape=shape_text(data.shape),
            axes=tuple(axes),
        )
    rows, dim = _one_axis(data, axes)
    last = as_bool(last, where, "select_last_index")
    keepdims = as_bool(keepdims, where, "keepdims")
    rows = flip(rows, dim) if last else rows
    position = argreduce.define(rows, dim, op, out_dtype="int32", name=f"T_{op}_found")
    retained = [k for k in range(data.ndim) if k not in axes]

    def value(*i: te.Expr) -> te.Expr:
        found = position(*(i[k] for k in retained)) if keepdims else position(*i)
        return te.cast(minus(count, 1) - found if last else found, "int32")

    shape = tuple(
        1 if k in axes else n for k, n in enumerate(data.shape) if keepdims or k not in axes)
    return te.compute(shape, value, name=f"T_{op}", tag=tag.COMM_REDUCE_IDX)


def _one_axis(data: Tensor, axes: Sequence[int]) -> tuple[Tensor, int]:
    """Merge `axes` into one axis; return the tensor and the position of the merged axis."""
    if len(axes) == 1:
        return data, axes[0]
    retained = [k for k in range(data.ndim) if k not in axes]
    order = [*retained, *axes]
    permuted = data if order == list(range(data.ndim)) else transpose(data, order)
    shape: list[Size] = [data.shape[k] for k in retained]
    return reshape(permuted, [*shape, product(data.shape[k] for k in axes)]), len(retained)


def collapse_sum(data: Tensor, target_shape: Size | Sequence[Size]) -> Tensor:
    """Sum `data` to a shape that broadcasts to the shape of `data`.

    Args:
        data: Input tensor.
        target_shape: Result shape. Aligned at the last axis, each extent equals that of `data` or
            is 1.

    Raises:
        DefinitionError: If `target_shape` does not broadcast to the shape of `data`.

    >>> collapse_sum(te.placeholder((4, 5, 6), name="A"), (5, 1)).shape
    (5, 1)
    """
    where = "topi.collapse_sum"
    data, target = tensor_of(data, where), shape_of(target_shape)
    spare = data.ndim - len(target)
    pairs = list(zip(data.shape[spare:], target, strict=True)) if spare >= 0 else []
    reduced = [k for k, (a, b) in enumerate(pairs, spare) if not equal(a, b)]
    if spare < 0 or [k for k in reduced if not equal(target[k - spare], 1)]:
        raise DefinitionError(
            "{where}: target shape {target} does not broadcast to {data}, shape {shape}; each "
            "extent, aligned at the last axis, must be that of {data}, or 1",
            kind="shapes", where=where, data=data.name, shape=shape_text(data.shape),
            target=shape_text(target),
        )
    axes = [*range(spare), *reduced]
    if not axes:
        return data
    total = define_reduction(data, axes, True, "sum", "collapse_sum")
    return reshape(total, target)

