"""Element-wise functions of two tensors, with NumPy broadcasting.

If neither operand is a tensor, the result is an expression.
"""

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
    as_binary_op,
    as_unary_op,
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
    data, wanted = tensor_of(data, where), shape_of(shape)
    extents = [1] * (len(wanted) - data.ndim) + list(data.shape)
    fits = len(wanted) >= data.ndim and all(
        sizes.equal(extent, 1) or sizes.equal(extent, target)
        for extent, target in zip(extents, wanted, strict=True)
    )
    if not fits:
        raise DefinitionError(
            "{where}: {data} of shape {shape} does not broadcast to {wanted}; each extent, "
            "aligned at the last axis, must be 1 or equal to that of the target shape",
            kind="shapes", where=where, data=data.name, shape=shape_text(data.shape),
            wanted=shape_text(wanted),
        )
    return te.compute(
        wanted, lambda *i: data(*place(data, i)), name="T_broadcast_to", tag=tag.BROADCAST
    )


def _of_two(
    lhs: Operand, rhs: Operand, function: Callable[[Any, Any], te.Expr], name: str
) -> Any:
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


def _of_one(data: Operand, function: Callable[[Any], te.Expr], name: str) -> Any:
    data = operand_of(data, f"topi.{name}", "data")
    if not isinstance(data, te.Tensor):
        return function(value_of(data))
    return te.compute(
        data.shape, lambda *i: function(data(*i)), name=f"T_{name}", tag=tag.ELEMWISE
    )


@as_binary_op
def add(lhs: Operand, rhs: Operand) -> Any:
    """Compute the sum element-wise.

    Args:
        lhs: Tensor, expression or number.
        rhs: Tensor, expression or number.

    Returns:
        Tensor of the broadcast shape, or an expression if neither operand is a tensor. The dtype
        follows the type promotion of `te`.

    Raises:
        DefinitionError: If the shapes are not broadcast-compatible.
        TypeMismatchError: If the dtypes have no common dtype, or if a number is not representable
            in it.

    >>> A, b = te.placeholder((4, 8), name="A"), te.placeholder((8,), name="b")
    >>> add(A, b).shape, add(A, 1).shape
    ((4, 8), (4, 8))
    """
    return _of_two(lhs, rhs, lambda x, y: x + y, "add")


@as_binary_op
def subtract(lhs: Operand, rhs: Operand) -> Any:
    """Compute the difference `lhs - rhs` element-wise.

    >>> subtract(te.placeholder((4, 8), name="A"), te.placeholder((8,), name="B")).shape
    (4, 8)
    """
    return _of_two(lhs, rhs, lambda x, y: x - y, "subtract")


@as_binary_op
def multiply(lhs: Operand, rhs: Operand) -> Any:
    """Compute the product element-wise.

    >>> multiply(te.placeholder((4, 8), name="A"), te.placeholder((8,), name="B")).shape
    (4, 8)
    """
    return _of_two(lhs, rhs, lambda x, y: x * y, "multiply")


@as_binary_op
def divide(lhs: Operand, rhs: Operand) -> Any:
    """Divide element-wise; integers are rounded towards zero, as by `te.div`.

    >>> divide(te.placeholder((4, 8), name="A"), te.placeholder((8,), name="B")).shape
    (4, 8)
    """
    return _of_two(lhs, rhs, te.div, "divide")


@as_binary_op
def floor_divide(lhs: Operand, rhs: Operand) -> Any:
    """Divide element-wise and round towards negative infinity; integer division by zero gives 0.

    >>> floor_divide(te.placeholder((4, 8), name="A"), te.placeholder((8,), name="B")).shape
    (4, 8)
    """
    return _of_two(lhs, rhs, te.floordiv, "floor_divide")


@as_binary_op
def mod(lhs: Operand, rhs: Operand) -> Any:
    """Compute the remainder of truncated division element-wise; it has the sign of `lhs`, as in C.

    Integer division by zero gives 0.

    Args:
        lhs: Tensor, expression or number.
        rhs: Tensor, expression or number.

    Raises:
        DefinitionError: If the shapes are not broadcast-compatible.

    >>> mod(te.placeholder((4, 8), name="A"), te.placeholder((8,), name="B")).shape
    (4, 8)
    """
    return _of_two(lhs, rhs, _mod, "mod")


def _mod(x: Any, y: Any) -> te.Expr:
    is_float = any(_is_float(value) for value in (x, y))
    return te.fmod(x, y) if is_float else te.truncmod(x, y)


def _is_float(value: Any) -> bool:
    return isinstance(value, float) or bool(getattr(getattr(value, "dtype", None), "is_float", 0))


@as_binary_op
def floor_mod(lhs: Operand, rhs: Operand) -> Any:
    """Compute the remainder of `floor_divide` element-wise; it has the sign of `rhs`.

    Integer division by zero gives 0.

    Args:
        lhs: Tensor, expression or number.
        rhs: Tensor, expression or number.

    Raises:
        DefinitionError: If the shapes are not broadcast-compatible.

    >>> floor_mod(te.placeholder((4, 8), name="A"), te.placeholder((8,), name="B")).shape
    (4, 8)
    """
    return _of_two(lhs, rhs, te.floormod, "floor_mod")


@as_binary_op
def maximum(lhs: Operand, rhs: Operand) -> Any:
    """Return the larger operand element-wise; NaN propagates.

    Args:
        lhs: Tensor, expression or number.
        rhs: Tensor, expression or number.

    Raises:
        DefinitionError: If the shapes are not broadcast-compatible.

    >>> maximum(te.placeholder((4, 8), name="A"), te.placeholder((8,), name="B")).shape
    (4, 8)
    """
    return _of_two(lhs, rhs, te.max, "maximum")


@as_binary_op
def minimum(lhs: Operand, rhs: Operand) -> Any:
    """Return the smaller operand element-wise; NaN propagates.

    Args:
        lhs: Tensor, expression or number.
        rhs: Tensor, expression or number.

    Raises:
        DefinitionError: If the shapes are not broadcast-compatible.

    >>> minimum(te.placeholder((4, 8), name="A"), te.placeholder((8,), name="B")).shape
    (4, 8)
    """
    return _of_two(lhs, rhs, te.min, "minimum")


@as_binary_op
def power(lhs: Operand, rhs: Operand) -> Any:
    """Raise `lhs` to the power `rhs` element-wise.

    Integer powers wrap around on overflow. A negative exponent of an integer rounds the result
    towards zero, and gives 0 for a base of 0.

    >>> power(te.placeholder((4,), "int8", name="A"), 3).dtype
    'int32'
    """
    return _of_two(lhs, rhs, _power, "power")


def _power(x: Any, y: Any) -> te.Expr:
    total = x + y  # has the common dtype of both operands
    if not isinstance(total, te.Expr) or total.dtype.is_float:
        return te.power(x, y)
    base, exponent = (te.cast(value, total.dtype) for value in (x, y))
    return te.power(base, exponent)


@as_binary_op
def atan2(lhs: Operand, rhs: Operand) -> Any:
    """Compute the angle of the point (rhs, lhs) in [-pi, pi] element-wise, with quadrant.

    >>> atan2(te.placeholder((4, 8), name="A"), te.placeholder((8,), name="B")).shape
    (4, 8)
    """
    return _of_two(lhs, rhs, te.atan2, "atan2")


@as_binary_op
def log_add_exp(lhs: Operand, rhs: Operand) -> Any:
    """Compute `log(exp(lhs) + exp(rhs))` element-wise without intermediate overflow.

    >>> log_add_exp(te.placeholder((4, 8), name="A"), te.placeholder((8,), name="B")).shape
    (4, 8)
    """
    return _of_two(lhs, rhs, te.logaddexp, "log_add_exp")


@as_binary_op
def left_shift(lhs: Operand, rhs: Operand) -> Any:
    """Shift integer bits left element-wise, with the semantics of `<<` in `te`.

    >>> left_shift(te.placeholder((4, 8), "int32", name="A"), 3).shape
    (4, 8)
    """
    return _of_two(lhs, rhs, lambda x, y: x << y, "left_shift")


@as_binary_op
def right_shift(lhs: Operand, rhs: Operand) -> Any:
    """Shift integer bits right element-wise, with the semantics of `>>` in `te`; the sign is kept.

    >>> right_shift(te.placeholder((4, 8), "int32", name="A"), 3).shape
    (4, 8)
    """
    return _of_two(lhs, rhs, lambda x, y: x >> y, "right_shift")


@as_binary_op
def greater(lhs: Operand, rhs: Operand) -> Any:
    """Compare element-wise for the relation `lhs > rhs`; the result is bool.

    >>> greater(te.placeholder((4, 8), name="A"), te.placeholder((8,), name="B")).shape
    (4, 8)
    """
    return _of_two(lhs, rhs, lambda x, y: x > y, "greater")


@as_binary_op
def greater_equal(lhs: Operand, rhs: Operand) -> Any:
    """Compare element-wise for the relation `lhs >= rhs`; the result is bool.

    >>> greater_equal(te.placeholder((4, 8), name="A"), te.placeholder((8,), name="B")).shape
    (4, 8)
    """
    return _of_two(lhs, rhs, lambda x, y: x >= y, "greater_equal")


@as_binary_op
def less(lhs: Operand, rhs: Operand) -> Any:
    """Compare element-wise for the relation `lhs < rhs`; the result is bool.

    >>> less(te.placeholder((4, 8), name="A"), te.placeholder((8,), name="B")).shape
    (4, 8)
    """
    return _of_two(lhs, rhs, lambda x, y: x < y, "less")


@as_binary_op
def less_equal(lhs: Operand, rhs: Operand) -> Any:
    """Compare element-wise for the relation `lhs <= rhs`; the result is bool.

    >>> less_equal(te.placeholder((4, 8), name="A"), te.placeholder((8,), name="B")).shape
    (4, 8)
    """
    return _of_two(lhs, rhs, lambda x, y: x <= y, "less_equal")


@as_binary_op
def equal(lhs: Operand, rhs: Operand) -> Any:
    """Compare element-wise for the relation `lhs == rhs`; the result is bool.

    >>> equal(te.placeholder((4, 8), name="A"), te.placeholder((8,), name="B")).shape
    (4, 8)
    """
    return _of_two(lhs, rhs, lambda x, y: x == y, "equal")


@as_binary_op
def not_equal(lhs: Operand, rhs: Operand) -> Any:
    """Compare element-wise for the relation `lhs != rhs`; the result is bool.

    >>> not_equal(te.placeholder((4, 8), name="A"), te.placeholder((8,), name="B")).shape
    (4, 8)
    """
    return _of_two(lhs, rhs, lambda x, y: x != y, "not_equal")


@as_binary_op
def logical_and(lhs: Operand, rhs: Operand) -> Any:
    """Compute the logical AND element-wise.

    Args:
        lhs: Condition, a tensor or an expression of dtype bool.
        rhs: Condition, a tensor or an expression of dtype bool.

    Raises:
        DefinitionError: If the shapes are not broadcast-compatible.

    >>> X = te.placeholder((4, 8), "bool", name="A")
    >>> W = te.placeholder((8,), "bool", name="W")
    >>> logical_and(X, W).shape
    (4, 8)
    """
    return _of_two(lhs, rhs, te.all, "logical_and")


@as_binary_op
def logical_or(lhs: Operand, rhs: Operand) -> Any:
    """Compute the logical OR element-wise.

    Args:
        lhs: Condition, a tensor or an expression of dtype bool.
        rhs: Condition, a tensor or an expression of dtype bool.

    Raises:
        DefinitionError: If the shapes are not broadcast-compatible.

    >>> X = te.placeholder((4, 8), "bool", name="A")
    >>> W = te.placeholder((8,), "bool", name="W")
    >>> logical_or(X, W).shape
    (4, 8)
    """
    return _of_two(lhs, rhs, te.any, "logical_or")


@as_binary_op
def logical_xor(lhs: Operand, rhs: Operand) -> Any:
    """Compute the logical XOR element-wise.

    Args:
        lhs: Condition, a tensor or an expression of dtype bool.
        rhs: Condition, a tensor or an expression of dtype bool.

    Raises:
        DefinitionError: If the shapes are not broadcast-compatible.

    >>> X = te.placeholder((4, 8), "bool", name="A")
    >>> W = te.placeholder((8,), "bool", name="W")
    >>> logical_xor(X, W).shape
    (4, 8)
    """
    return _of_two(
        lhs, rhs,
        lambda x, y: te.any(te.all(x, te.logical_not(y)), te.all(te.logical_not(x), y)),
        "logical_xor",
    )


@as_unary_op
def logical_not(data: Operand) -> Any:
    """Compute the logical NOT element-wise.

    Args:
        data: Condition, a tensor or an expression of dtype bool.

    >>> logical_not(te.placeholder((4, 8), "bool", name="A")).dtype
    'bool'
    """
    return _of_one(data, te.logical_not, "logical_not")


@as_binary_op
def bitwise_and(lhs: Operand, rhs: Operand) -> Any:
    """Compute the bitwise AND of integers or booleans element-wise.

    >>> bitwise_and(te.placeholder((4, 8), "int32", name="A"), 3).shape
    (4, 8)
    """
    return _of_two(lhs, rhs, lambda x, y: x & y, "bitwise_and")


@as_binary_op
def bitwise_or(lhs: Operand, rhs: Operand) -> Any:
    """Compute the bitwise OR of integers or booleans element-wise.

    >>> bitwise_or(te.placeholder((4, 8), "int32", name="A"), 3).shape
    (4, 8)
    """
    return _of_two(lhs, rhs, lambda x, y: x | y, "bitwise_or")


@as_binary_op
def bitwise_xor(lhs: Operand, rhs: Operand) -> Any:
    """Compute the bitwise XOR of integers or booleans element-wise.

    >>> bitwise_xor(te.placeholder((4, 8), "int32", name="A"), 3).shape
    (4, 8)
    """
    return _of_two(lhs, rhs, lambda x, y: x ^ y, "bitwise_xor")


@as_unary_op
def bitwise_not(data: Operand) -> Any:
    """Invert all bits of integers element-wise; negate booleans.

    >>> bitwise_not(te.placeholder((4, 8), "int32", name="A")).dtype
    'int32'
    """
    return _of_one(data, lambda x: ~x, "bitwise_not")
