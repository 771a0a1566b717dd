"""Functions of the elements of two tensors, which are broadcast as NumPy broadcasts arrays.

Of two expressions, or of an expression and a number, each is the expression.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tecomp import DefinitionError, te
from tecomp.ir.nodes.argument_checks import broadcast_shape, shape_text
from tecomp.topi import extents as sizes
from tecomp.topi import tag
from tecomp.topi.extents import Size, element, place
from tecomp.topi.type_stubs import of_one, of_two
from tecomp.topi.validation import Operand, operand_of, shape_of, tensor_of, value_of


def broadcast_to(data: te.Tensor, shape: Size | Sequence[Size]) -> te.Tensor:
    """`data` repeated along axes that it lacks, or whose extent is 1.

    Raises:
        DefinitionError: it cannot be broadcast to this shape.

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
            f"{where}: {data.name} has shape {shape_text(data.shape)}, which does not broadcast to "
            f"{shape_text(wanted)}; its extents, from the last, are 1 or those of the shape",
            kind="shapes",
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


@of_two
def add(lhs: Operand, rhs: Operand) -> Any:
    """`lhs + rhs`.

    Args:
        lhs: a tensor, an expression, or a number.
        rhs: as `lhs`.

    Returns:
        A tensor of the shape that both broadcast to; an expression if neither is a tensor. Types
        meet as in `te`.

    Raises:
        DefinitionError: the shapes do not broadcast.
        TypeMismatchError: the types do not meet, or cannot hold a number.

    >>> A, b = te.placeholder((4, 8), name="A"), te.placeholder((8,), name="b")
    >>> add(A, b).shape, add(A, 1).shape
    ((4, 8), (4, 8))
    """
    return _of_two(lhs, rhs, lambda x, y: x + y, "add")


@of_two
def subtract(lhs: Operand, rhs: Operand) -> Any:
    """`lhs - rhs`, as `add`.

    >>> subtract(te.placeholder((4, 8), name="A"), te.placeholder((8,), name="B")).shape
    (4, 8)
    """
    return _of_two(lhs, rhs, lambda x, y: x - y, "subtract")


@of_two
def multiply(lhs: Operand, rhs: Operand) -> Any:
    """`lhs * rhs`, as `add`.

    >>> multiply(te.placeholder((4, 8), name="A"), te.placeholder((8,), name="B")).shape
    (4, 8)
    """
    return _of_two(lhs, rhs, lambda x, y: x * y, "multiply")


@of_two
def divide(lhs: Operand, rhs: Operand) -> Any:
    """`lhs / rhs`; of two integers rounded towards zero, as `te.div`.

    >>> divide(te.placeholder((4, 8), name="A"), te.placeholder((8,), name="B")).shape
    (4, 8)
    """
    return _of_two(lhs, rhs, te.div, "divide")


@of_two
def floor_divide(lhs: Operand, rhs: Operand) -> Any:
    """`lhs // rhs`, rounded towards minus infinity; 0 where an integer is divided by 0.

    >>> floor_divide(te.placeholder((4, 8), name="A"), te.placeholder((8,), name="B")).shape
    (4, 8)
    """
    return _of_two(lhs, rhs, te.floordiv, "floor_divide")


@of_two
def mod(lhs: Operand, rhs: Operand) -> Any:
    """The remainder with the sign of `lhs`, as in C; 0 where an integer is divided by 0.

    Args:
        lhs: a tensor, an expression or a number.
        rhs: a tensor, an expression or a number.

    Raises:
        DefinitionError: the shapes do not broadcast.

    >>> mod(te.placeholder((4, 8), name="A"), te.placeholder((8,), name="B")).shape
    (4, 8)
    """
    return _of_two(lhs, rhs, _mod, "mod")


def _mod(x: Any, y: Any) -> te.Expr:
    is_float = any(_is_float(value) for value in (x, y))
    return te.fmod(x, y) if is_float else te.truncmod(x, y)


def _is_float(value: Any) -> bool:
    return isinstance(value, float) or bool(getattr(getattr(value, "dtype", None), "is_float", 0))


@of_two
def floor_mod(lhs: Operand, rhs: Operand) -> Any:
    """The remainder with the sign of `rhs`; 0 where an integer is divided by 0.

    Args:
        lhs: a tensor, an expression or a number.
        rhs: a tensor, an expression or a number.

    Raises:
        DefinitionError: the shapes do not broadcast.

    >>> floor_mod(te.placeholder((4, 8), name="A"), te.placeholder((8,), name="B")).shape
    (4, 8)
    """
    return _of_two(lhs, rhs, te.floormod, "floor_mod")


@of_two
def maximum(lhs: Operand, rhs: Operand) -> Any:
    """The greater of two elements; NaN if one is NaN.

    Args:
        lhs: a tensor, an expression or a number.
        rhs: a tensor, an expression or a number.

    Raises:
        DefinitionError: the shapes do not broadcast.

    >>> maximum(te.placeholder((4, 8), name="A"), te.placeholder((8,), name="B")).shape
    (4, 8)
    """
    return _of_two(lhs, rhs, te.max, "maximum")


@of_two
def minimum(lhs: Operand, rhs: Operand) -> Any:
    """The lesser of two elements; NaN if one is NaN.

    Args:
        lhs: a tensor, an expression or a number.
        rhs: a tensor, an expression or a number.

    Raises:
        DefinitionError: the shapes do not broadcast.

    >>> minimum(te.placeholder((4, 8), name="A"), te.placeholder((8,), name="B")).shape
    (4, 8)
    """
    return _of_two(lhs, rhs, te.min, "minimum")


@of_two
def power(lhs: Operand, rhs: Operand) -> Any:
    """`lhs` to the power `rhs`.

    Of two integers it wraps; to a negative power it is rounded towards zero, and 0 of 0.

    >>> power(te.placeholder((4,), "int8", name="A"), 3).dtype
    'int32'
    """
    return _of_two(lhs, rhs, _power, "power")


def _power(x: Any, y: Any) -> te.Expr:
    total = x + y  # of the type in which both meet
    if not isinstance(total, te.Expr) or total.dtype.is_float:
        return te.power(x, y)
    base, exponent = (te.cast(value, total.dtype) for value in (x, y))
    return te.power(base, exponent)


@of_two
def atan2(lhs: Operand, rhs: Operand) -> Any:
    """The angle of the point (rhs, lhs), in [-pi, pi].

    >>> atan2(te.placeholder((4, 8), name="A"), te.placeholder((8,), name="B")).shape
    (4, 8)
    """
    return _of_two(lhs, rhs, te.atan2, "atan2")


@of_two
def log_add_exp(lhs: Operand, rhs: Operand) -> Any:
    """`log(exp(lhs) + exp(rhs))` without overflow in between.

    >>> log_add_exp(te.placeholder((4, 8), name="A"), te.placeholder((8,), name="B")).shape
    (4, 8)
    """
    return _of_two(lhs, rhs, te.logaddexp, "log_add_exp")


@of_two
def left_shift(lhs: Operand, rhs: Operand) -> Any:
    """`lhs << rhs` of integers, as `te` has it.

    >>> left_shift(te.placeholder((4, 8), "int32", name="A"), 3).shape
    (4, 8)
    """
    return _of_two(lhs, rhs, lambda x, y: x << y, "left_shift")


@of_two
def right_shift(lhs: Operand, rhs: Operand) -> Any:
    """`lhs >> rhs` of integers, as `te` has it; the sign stays.

    >>> right_shift(te.placeholder((4, 8), "int32", name="A"), 3).shape
    (4, 8)
    """
    return _of_two(lhs, rhs, lambda x, y: x >> y, "right_shift")


@of_two
def greater(lhs: Operand, rhs: Operand) -> Any:
    """Whether `lhs > rhs`, in bool.

    >>> greater(te.placeholder((4, 8), name="A"), te.placeholder((8,), name="B")).shape
    (4, 8)
    """
    return _of_two(lhs, rhs, lambda x, y: x > y, "greater")


@of_two
def greater_equal(lhs: Operand, rhs: Operand) -> Any:
    """Whether `lhs >= rhs`, in bool.

    >>> greater_equal(te.placeholder((4, 8), name="A"), te.placeholder((8,), name="B")).shape
    (4, 8)
    """
    return _of_two(lhs, rhs, lambda x, y: x >= y, "greater_equal")


@of_two
def less(lhs: Operand, rhs: Operand) -> Any:
    """Whether `lhs < rhs`, in bool.

    >>> less(te.placeholder((4, 8), name="A"), te.placeholder((8,), name="B")).shape
    (4, 8)
    """
    return _of_two(lhs, rhs, lambda x, y: x < y, "less")


@of_two
def less_equal(lhs: Operand, rhs: Operand) -> Any:
    """Whether `lhs <= rhs`, in bool.

    >>> less_equal(te.placeholder((4, 8), name="A"), te.placeholder((8,), name="B")).shape
    (4, 8)
    """
    return _of_two(lhs, rhs, lambda x, y: x <= y, "less_equal")


@of_two
def equal(lhs: Operand, rhs: Operand) -> Any:
    """Whether `lhs == rhs`, in bool.

    >>> equal(te.placeholder((4, 8), name="A"), te.placeholder((8,), name="B")).shape
    (4, 8)
    """
    return _of_two(lhs, rhs, lambda x, y: x == y, "equal")


@of_two
def not_equal(lhs: Operand, rhs: Operand) -> Any:
    """Whether `lhs != rhs`, in bool.

    >>> not_equal(te.placeholder((4, 8), name="A"), te.placeholder((8,), name="B")).shape
    (4, 8)
    """
    return _of_two(lhs, rhs, lambda x, y: x != y, "not_equal")


@of_two
def logical_and(lhs: Operand, rhs: Operand) -> Any:
    """Whether both conditions hold.

    Args:
        lhs: conditions: a tensor or an expression of bool.
        rhs: conditions: a tensor or an expression of bool.

    Raises:
        DefinitionError: the shapes do not broadcast.

    >>> X = te.placeholder((4, 8), "bool", name="A")
    >>> W = te.placeholder((8,), "bool", name="W")
    >>> logical_and(X, W).shape
    (4, 8)
    """
    return _of_two(lhs, rhs, te.all, "logical_and")


@of_two
def logical_or(lhs: Operand, rhs: Operand) -> Any:
    """Whether one of two conditions holds, or both.

    Args:
        lhs: conditions: a tensor or an expression of bool.
        rhs: conditions: a tensor or an expression of bool.

    Raises:
        DefinitionError: the shapes do not broadcast.

    >>> X = te.placeholder((4, 8), "bool", name="A")
    >>> W = te.placeholder((8,), "bool", name="W")
    >>> logical_or(X, W).shape
    (4, 8)
    """
    return _of_two(lhs, rhs, te.any, "logical_or")


@of_two
def logical_xor(lhs: Operand, rhs: Operand) -> Any:
    """Whether one of two conditions holds, and not both.

    Args:
        lhs: conditions: a tensor or an expression of bool.
        rhs: conditions: a tensor or an expression of bool.

    Raises:
        DefinitionError: the shapes do not broadcast.

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


@of_one
def logical_not(data: Operand) -> Any:
    """Whether a condition does not hold.

    Args:
        data: conditions: a tensor or an expression of bool.

    >>> logical_not(te.placeholder((4, 8), "bool", name="A")).dtype
    'bool'
    """
    return _of_one(data, te.logical_not, "logical_not")


@of_two
def bitwise_and(lhs: Operand, rhs: Operand) -> Any:
    """`lhs & rhs` of integers or bool.

    >>> bitwise_and(te.placeholder((4, 8), "int32", name="A"), 3).shape
    (4, 8)
    """
    return _of_two(lhs, rhs, lambda x, y: x & y, "bitwise_and")


@of_two
def bitwise_or(lhs: Operand, rhs: Operand) -> Any:
    """`lhs | rhs` of integers or bool.

    >>> bitwise_or(te.placeholder((4, 8), "int32", name="A"), 3).shape
    (4, 8)
    """
    return _of_two(lhs, rhs, lambda x, y: x | y, "bitwise_or")


@of_two
def bitwise_xor(lhs: Operand, rhs: Operand) -> Any:
    """`lhs ^ rhs` of integers or bool.

    >>> bitwise_xor(te.placeholder((4, 8), "int32", name="A"), 3).shape
    (4, 8)
    """
    return _of_two(lhs, rhs, lambda x, y: x ^ y, "bitwise_xor")


@of_one
def bitwise_not(data: Operand) -> Any:
    """`~data` of integers or bool.

    >>> bitwise_not(te.placeholder((4, 8), "int32", name="A")).dtype
    'int32'
    """
    return _of_one(data, lambda x: ~x, "bitwise_not")
