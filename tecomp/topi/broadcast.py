"""Broadcasting of tensors, as in NumPy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tecomp import DefinitionError, te
from tecomp.ir.nodes.argument_checks import broadcast_shape, shape_text
from tecomp.topi import extents as sizes
from tecomp.topi import tag
from tecomp.topi.extents import Size, element, place
from tecomp.topi.validation import (
    Operand,
    operand_of,
    shape_of,
    tensor_of,
    value_of,
)


def broadcast_to(data: te.Tensor, shape: Size | Sequence[Size]) -> te.Tensor:
    """Broadcast `data` to a shape: repeat it along missing axes and axes of extent 1.

    Raises:
        DefinitionError: If `data` cannot be broadcast to `shape`.

    >>> broadcast_to(te.placeholder((4, 1), name="A"), (2, 4, 8)).shape
    (2, 4, 8)
    """
    where = "topi.broadcast_to"
    data, target_shape = tensor_of(data, where), shape_of(shape)
    extents = [1] * (len(target_shape) - data.ndim) + list(data.shape)
    fits = len(target_shape) >= data.ndim and all(
        sizes.equal(extent, 1) or sizes.equal(extent, target)
        for extent, target in zip(extents, target_shape, strict=True)
    )
    if not fits:
        raise DefinitionError(
            "{where}: {data} of shape {shape} does not broadcast to {expected}; each extent, "
            "aligned at the last axis, must be 1 or equal to that of the target shape",
            kind="shapes", where=where, data=data.name, shape=shape_text(data.shape),
            expected=shape_text(target_shape),
        )
    return te.compute(
        target_shape, lambda *i: data(*place(data, i)), name="T_broadcast_to", tag=tag.BROADCAST
    )


def define_broadcast(
    lhs: Operand, rhs: Operand, function: Callable[[Any, Any], te.Expr], name: str
) -> te.Tensor | te.Expr:
    """Apply a function of two operands element-wise, with broadcasting.

    >>> define_broadcast(te.placeholder((4, 8), name="A"), 1, te.div, "divide").op.tag
    'broadcast'
    """
    where = f"topi.{name}"
    lhs, rhs = operand_of(lhs, where, "lhs"), operand_of(rhs, where, "rhs")
    if not isinstance(lhs, te.Tensor) and not isinstance(rhs, te.Tensor):
        return function(value_of(lhs), value_of(rhs))
    shapes = [x.shape if isinstance(x, te.Tensor) else () for x in (lhs, rhs)]
    shape = broadcast_shape(shapes, where)
    return te.compute(
        shape, lambda *i: function(element(lhs, i), element(rhs, i)), name=f"T_{name}",
        tag=tag.BROADCAST,
    )


def define_unary(
    data: Operand, function: Callable[[Any], te.Expr], name: str
) -> te.Tensor | te.Expr:
    """Apply a function element-wise to a tensor, or to an expression or a number.

    >>> define_unary(te.var("x", "int8"), lambda x: ~x, "bitwise_not").dtype
    'int8'
    """
    data = operand_of(data, f"topi.{name}", "data")
    if not isinstance(data, te.Tensor):
        return function(value_of(data))
    return te.compute(
        data.shape, lambda *i: function(data(*i)), name=f"T_{name}", tag=tag.ELEMWISE
    )
