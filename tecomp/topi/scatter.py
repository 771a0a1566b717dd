"""Scatter operators, defined as statements that store the updates sequentially."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tecomp import DefinitionError, te
from tecomp.ir.nodes.argument_checks import shape_text
from tecomp.topi.extents import Size, differ, equal
from tecomp.topi.validation import (
    Operand,
    axis_of,
    check_integer,
    constant_of,
    shape_of,
    tensor_of,
    validate_choice,
)

_COMBINED: dict[str, Callable[[te.Expr, te.Expr], te.Expr]] = {
    "update": lambda old, new: new,
    "add": lambda old, new: old + new,
    "mul": lambda old, new: old * new,
    "min": te.min,
    "max": te.max,
    "mean": lambda old, new: te.div(old + new, te.const(2, old.dtype)),
}


def scatter_elements(
    data: te.Tensor, indices: te.Tensor, updates: te.Tensor, axis: int = 0,
    reduction: str = "update",
) -> te.Tensor:
    """Copy `data` and store updates at indexed positions: `[indices[i, j], j]` for axis 0.

    Args:
        data: Input tensor.
        indices: Integer indices. Negative values count from the end; updates at out-of-bounds
            indices are skipped.
        updates: Updates with the shape of `indices` and the dtype of `data`.
        axis: Axis that is indexed; negative values count from the last axis.
        reduction: Combination of the old value and an update, in order of the updates: "update"
            stores the update, "add" the sum, "mul" the product, "min" or "max" the extreme, and
            "mean" half of the sum.

    Raises:
        DefinitionError: If `axis` is out of bounds, if `reduction` is unknown, or if the shapes or
            dtypes do not match.
        TypeMismatchError: If `indices` does not have an integer dtype.

    >>> A, i = te.placeholder((9, 8), name="A"), te.placeholder((2, 8), "int64", name="i")
    >>> scatter_elements(A, i, te.placeholder((2, 8), name="U")).shape
    (9, 8)
    """
    where = "topi.scatter_elements"
    data, dim = _check(data, indices, updates, reduction, where), 0
    dim = axis_of(axis, data.ndim, where)
    one, other = indices.shape, updates.shape
    fits = len(one) == len(other) == data.ndim and not any(map(differ, one, other)) and not any(
        k != dim and isinstance(n, int) and isinstance(m, int) and n > m
        for k, (n, m) in enumerate(zip(one, data.shape, strict=True)))
    if not fits:
        raise DefinitionError(
            "{where}: {data} has shape {shape}, indices {indices_shape} and updates "
            "{updates_shape}; the shapes of indices and updates must be equal, and must not "
            "exceed {data} except along axis {axis}",
            kind="shapes", where=where, data=data.name, shape=shape_text(data.shape),
            indices_shape=shape_text(one), updates_shape=shape_text(other), axis=dim,
        )

    def body(ins: Sequence[Any], out: Any) -> Any:
        def put(*i: te.Expr) -> Any:
            position, inside = _inside(ins[1][i], data.shape[dim])
            index = (*i[:dim], position, *i[dim + 1 :])
            return te.if_stmt(inside, out.store(index, _combine(reduction, out[index], ins[2][i])))

        return te.stmt_seq(_copy(data.shape, ins[0], out), _loops(one, put))

    return _scatter([data, indices, updates], body, "scatter_elements")


def scatter_nd(
    data: te.Tensor, indices: te.Tensor, updates: te.Tensor, mode: str
) -> te.Tensor:
    """Copy `data` and store updates, elements or slices, at the positions in columns of `indices`.

    Args:
        data: Input tensor.
        indices: Integer indices; the first axis has one entry per indexed axis of `data`. Negative
            values count from the end; updates at out-of-bounds positions are skipped.
        updates: Updates, whose shape consists of the axes of `indices` after the first and the axes
            of `data` that are not indexed; dtype of `data`.
        mode: Combination of the old value and an update: "update", "add", "mul", "min", "max" or
            "mean".

    Raises:
        DefinitionError: If `mode` is unknown, or if the shapes or dtypes do not match.
        TypeMismatchError: If `indices` does not have an integer dtype.

    >>> A, i = te.placeholder((9, 8), name="A"), te.placeholder((1, 5), "int64", name="i")
    >>> scatter_nd(A, i, te.placeholder((5, 8), name="U"), "add").shape
    (9, 8)
    """
    where = "topi.scatter_nd"
    data = _check(data, indices, updates, mode, where)
    count = indices.shape[0] if indices.ndim else -1
    expected = (*indices.shape[1:], *data.shape[count:]) if isinstance(count, int) else ()
    if not isinstance(count, int) or not 0 <= count <= data.ndim or len(expected) != (
        updates.ndim) or any(map(differ, updates.shape, expected)):
        raise DefinitionError(
            "{where}: {data} has shape {shape}, indices {indices_shape} and updates "
            "{updates_shape}; the first axis of indices must have one number per indexed axis, "
            "and updates must have the remaining axes of indices and {data}",
            kind="shapes", where=where, data=data.name, shape=shape_text(data.shape),
            indices_shape=shape_text(indices.shape), updates_shape=shape_text(updates.shape),
        )
    outer = indices.ndim - 1

    def body(ins: Sequence[Any], out: Any) -> Any:
        def put(*i: te.Expr) -> Any:
            found = [_inside(ins[1][(k, *i[:outer])], data.shape[k]) for k in range(count)]
            index = (*(position for position, _ in found), *i[outer:])
            stored = out.store(index, _combine(mode, out[index], ins[2][i]))
            return te.if_stmt(te.all(*(inside for _, inside in found)), stored) if found else stored

        return te.stmt_seq(_copy(data.shape, ins[0], out), _loops(updates.shape, put))

    return _scatter([data, indices, updates], body, "scatter_nd")


def sparse_to_dense(
    sparse_indices: te.Tensor, output_shape: Size | Sequence[Size], sparse_values: te.Tensor,
    default_value: Operand = 0,
) -> te.Tensor:
    """Create a tensor with given values at given positions and a default value elsewhere.

    Args:
        sparse_indices: Integer positions, one index per row, or a vector for a result of rank 1.
            Positions out of bounds are skipped.
        output_shape: Result shape.
        sparse_values: One value per position, or a scalar for all positions.
        default_value: Value of the other elements.

    Raises:
        DefinitionError: If the shapes do not match.
        TypeMismatchError: If `sparse_indices` does not have an integer dtype.

    >>> i, v = te.placeholder((3, 2), "int32", name="i"), te.placeholder((3,), name="v")
    >>> sparse_to_dense(i, (4, 5), v).shape
    (4, 5)
    """
    where = "topi.sparse_to_dense"
    positions, values = tensor_of(sparse_indices, where, "sparse_indices"), tensor_of(
        sparse_values, where, "sparse_values")
    check_integer(positions, where, "sparse_indices")
    shape = shape_of(output_shape)
    width = positions.shape[1] if positions.ndim == 2 else 1
    mismatched = positions.ndim > 2 or not equal(width, len(shape)) or values.ndim > 1
    if mismatched or (values.ndim and (
        not positions.ndim or differ(values.shape[0], positions.shape[0]))):
        raise DefinitionError(
            "{where}: sparse_indices has shape {shape} and sparse_values has shape "
            "{values_shape}, for a result of shape {result_shape}; pass one index per row, and one "
            "value per index",
            kind="shapes", where=where, shape=shape_text(positions.shape),
            values_shape=shape_text(values.shape), result_shape=shape_text(shape),
        )

    def body(ins: Sequence[Any], out: Any) -> Any:
        def put(*row: te.Expr) -> Any:
            checked = [_inside(ins[0][(*row, k) if positions.ndim == 2 else row], n, wrap=False)
                  for k, n in enumerate(shape)]
            value = ins[1][row if values.ndim else ()]
            stored = out.store(tuple(position for position, _ in checked), value)
            return te.if_stmt(te.all(*(inside for _, inside in checked)), stored)

        default = constant_of(default_value, values.dtype, where, "default_value")
        return te.stmt_seq(
            _loops(shape, lambda *i: out.store(i, default)), _loops(positions.shape[:1], put))

    result: te.Tensor = te.extern(
        shape, [positions, values], lambda ins, outs: body(ins, outs[0]), name="T_sparse_to_dense",
        dtype=values.dtype)
    return result


def _check(
    data: te.Tensor, indices: te.Tensor, updates: te.Tensor, mode: str, where: str
) -> te.Tensor:
    data = tensor_of(data, where)
    check_integer(tensor_of(indices, where, "indices"), where, "indices")
    tensor_of(updates, where, "updates")
    validate_choice(mode, tuple(_COMBINED), where, "the reduction")
    if updates.dtype != data.dtype:
        raise DefinitionError(
            "{where}: {data} has dtype {dtype}, but updates have dtype {updates_dtype}; convert "
            'them: topi.cast({updates}, "{dtype}")',
            kind="dtype", where=where, data=data.name, dtype=data.dtype,
            updates_dtype=updates.dtype, updates=updates.name,
        )
    return data


def _scatter(
    inputs: Sequence[te.Tensor], body: Callable[[Sequence[Any], Any], Any], name: str
) -> te.Tensor:
    result: te.Tensor = te.extern(
        inputs[0].shape, list(inputs), lambda ins, outs: body(ins, outs[0]), name=f"T_{name}",
        dtype=inputs[0].dtype)
    return result


def _combine(mode: str, old: te.Expr, new: te.Expr) -> te.Expr:
    return te.cast(_COMBINED[mode](old, new), old.dtype)


def _inside(index: te.Expr, extent: Size, *, wrap: bool = True) -> tuple[te.Expr, te.Expr]:
    """Return a non-negative index, and the condition that it is in bounds."""
    widened = te.cast(index, "int64")
    position = te.Select(widened < 0, widened + extent, widened) if wrap else widened
    return position, te.all(position >= 0, position < extent)


def _copy(shape: Sequence[Size], source: Any, out: Any) -> Any:
    return _loops(shape, lambda *i: out.store(i, source[i]))


def _loops(shape: Sequence[Size], body: Callable[..., Any], index: tuple[te.Expr, ...] = ()) -> Any:
    """Build a loop nest over all indices of a shape."""
    if len(index) == len(shape):
        return body(*index)
    return te.for_range(
        0, shape[len(index)], lambda i: _loops(shape, body, (*index, i)), name=f"i{len(index)}")
