"""Element-wise functions of two operands.

Each function accepts the dtypes that the standard names and raises ArrayTypeError for other dtypes.
One operand may be a Python scalar, which is converted to the dtype of the array. Shapes are
broadcast; ArrayValueError is raised if they are not broadcast-compatible.
"""

from __future__ import annotations

from tecomp.array.array_object import Array, apply_binary, from_node, nodes_of_pair
from tecomp.array.graph.node import record
from tecomp.array.indexing.getitem import truth_of
from tecomp.array.weak_scalars import Scalar
from tecomp.ptensor.operations.elementwise import FUNCTIONS


def add(x1: Array | Scalar, x2: Array | Scalar, /) -> Array:
    """Compute the sum element-wise.

    Args:
        x1: Array of numeric dtype, or a Python scalar if `x2` is an array.
        x2: Array of numeric dtype, or a Python scalar if `x1` is an array.

    Raises:
        ArrayTypeError: If an operand has an unsupported dtype, or neither operand is an array.
        ArrayValueError: If the shapes are not broadcast-compatible.

    >>> import tecomp.array as xp
    >>> xp.add(xp.asarray([1, 2]), xp.asarray([10, 20]))
    Array([11, 22], dtype=int64)
    """
    return apply_binary(FUNCTIONS["add"], x1, x2)


def atan2(x1: Array | Scalar, x2: Array | Scalar, /) -> Array:
    """Compute the angle of the point (x2, x1) element-wise, in radians in [-pi, pi].

    Args:
        x1: Array of real floating-point dtype, or a Python scalar if `x2` is an array.
        x2: Array of real floating-point dtype, or a Python scalar if `x1` is an array.

    Raises:
        ArrayTypeError: If an operand has an unsupported dtype, or neither operand is an array.
        ArrayValueError: If the shapes are not broadcast-compatible.

    >>> import tecomp.array as xp
    >>> xp.atan2(xp.asarray([1.0, -1.0]), xp.asarray([1.0, -1.0]))
    Array([ 0.78539816, -2.35619449], dtype=float64)
    """
    return apply_binary(FUNCTIONS["atan2"], x1, x2)


def bitwise_and(x1: Array | Scalar, x2: Array | Scalar, /) -> Array:
    """Compute the bitwise AND element-wise.

    Args:
        x1: Array of integer or boolean dtype, or a Python scalar if `x2` is an array.
        x2: Array of integer or boolean dtype, or a Python scalar if `x1` is an array.

    Raises:
        ArrayTypeError: If an operand has an unsupported dtype, or neither operand is an array.
        ArrayValueError: If the shapes are not broadcast-compatible.

    >>> import tecomp.array as xp
    >>> xp.bitwise_and(xp.asarray([6, 5]), xp.asarray([3, 4]))
    Array([2, 4], dtype=int64)
    """
    return apply_binary(FUNCTIONS["bitwise_and"], x1, x2)


def bitwise_left_shift(x1: Array | Scalar, x2: Array | Scalar, /) -> Array:
    """Shift bits left element-wise; shifts by the bit width or more give 0.

    Args:
        x1: Array of integer dtype, or a Python scalar if `x2` is an array.
        x2: Array of integer dtype, or a Python scalar if `x1` is an array.

    Raises:
        ArrayTypeError: If an operand has an unsupported dtype, or neither operand is an array.
        ArrayValueError: If the shapes are not broadcast-compatible.

    >>> import tecomp.array as xp
    >>> xp.bitwise_left_shift(xp.asarray([1, 3]), xp.asarray([4, 1]))
    Array([16,  6], dtype=int64)
    """
    return apply_binary(FUNCTIONS["bitwise_left_shift"], x1, x2)


def bitwise_or(x1: Array | Scalar, x2: Array | Scalar, /) -> Array:
    """Compute the bitwise OR element-wise.

    Args:
        x1: Array of integer or boolean dtype, or a Python scalar if `x2` is an array.
        x2: Array of integer or boolean dtype, or a Python scalar if `x1` is an array.

    Raises:
        ArrayTypeError: If an operand has an unsupported dtype, or neither operand is an array.
        ArrayValueError: If the shapes are not broadcast-compatible.

    >>> import tecomp.array as xp
    >>> xp.bitwise_or(xp.asarray([6, 5]), xp.asarray([3, 4]))
    Array([7, 5], dtype=int64)
    """
    return apply_binary(FUNCTIONS["bitwise_or"], x1, x2)


def bitwise_right_shift(x1: Array | Scalar, x2: Array | Scalar, /) -> Array:
    """Shift bits right element-wise, with sign extension.

    Args:
        x1: Array of integer dtype, or a Python scalar if `x2` is an array.
        x2: Array of integer dtype, or a Python scalar if `x1` is an array.

    Raises:
        ArrayTypeError: If an operand has an unsupported dtype, or neither operand is an array.
        ArrayValueError: If the shapes are not broadcast-compatible.

    >>> import tecomp.array as xp
    >>> xp.bitwise_right_shift(xp.asarray([16, -3]), xp.asarray([2, 1]))
    Array([ 4, -2], dtype=int64)
    """
    return apply_binary(FUNCTIONS["bitwise_right_shift"], x1, x2)


def bitwise_xor(x1: Array | Scalar, x2: Array | Scalar, /) -> Array:
    """Compute the bitwise XOR element-wise.

    Args:
        x1: Array of integer or boolean dtype, or a Python scalar if `x2` is an array.
        x2: Array of integer or boolean dtype, or a Python scalar if `x1` is an array.

    Raises:
        ArrayTypeError: If an operand has an unsupported dtype, or neither operand is an array.
        ArrayValueError: If the shapes are not broadcast-compatible.

    >>> import tecomp.array as xp
    >>> xp.bitwise_xor(xp.asarray([6, 5]), xp.asarray([3, 4]))
    Array([5, 1], dtype=int64)
    """
    return apply_binary(FUNCTIONS["bitwise_xor"], x1, x2)


def copysign(x1: Array | Scalar, x2: Array | Scalar, /) -> Array:
    """Combine the magnitude of `x1` with the sign of `x2` element-wise.

    Args:
        x1: Array of real floating-point dtype, or a Python scalar if `x2` is an array.
        x2: Array of real floating-point dtype, or a Python scalar if `x1` is an array.

    Raises:
        ArrayTypeError: If an operand has an unsupported dtype, or neither operand is an array.
        ArrayValueError: If the shapes are not broadcast-compatible.

    >>> import tecomp.array as xp
    >>> xp.copysign(xp.asarray([1.0, 2.0]), xp.asarray([-0.0, 3.0]))
    Array([-1.,  2.], dtype=float64)
    """
    return apply_binary(FUNCTIONS["copysign"], x1, x2)


def divide(x1: Array | Scalar, x2: Array | Scalar, /) -> Array:
    """Divide element-wise; integers give float64.

    Args:
        x1: Array of numeric dtype, or a Python scalar if `x2` is an array.
        x2: Array of numeric dtype, or a Python scalar if `x1` is an array.

    Raises:
        ArrayTypeError: If an operand has an unsupported dtype, or neither operand is an array.
        ArrayValueError: If the shapes are not broadcast-compatible.

    >>> import tecomp.array as xp
    >>> xp.divide(xp.asarray([1.0, 2.0]), xp.asarray([4.0, 0.5]))
    Array([0.25, 4.  ], dtype=float64)
    """
    return apply_binary(FUNCTIONS["divide"], x1, x2)


def equal(x1: Array | Scalar, x2: Array | Scalar, /) -> Array:
    """Compare element-wise for `x1 == x2`.

    Args:
        x1: Array of any dtype, or a Python scalar if `x2` is an array.
        x2: Array of any dtype, or a Python scalar if `x1` is an array.

    Raises:
        ArrayTypeError: If an operand has an unsupported dtype, or neither operand is an array.
        ArrayValueError: If the shapes are not broadcast-compatible.

    >>> import tecomp.array as xp
    >>> xp.equal(xp.asarray([1, 2]), xp.asarray([1, 3]))
    Array([ True, False], dtype=bool)
    """
    return apply_binary(FUNCTIONS["equal"], x1, x2)


def floor_divide(x1: Array | Scalar, x2: Array | Scalar, /) -> Array:
    """Divide and round down element-wise; the dtype is kept, integers divided by 0 give 0.

    Args:
        x1: Array of real-valued dtype, or a Python scalar if `x2` is an array.
        x2: Array of real-valued dtype, or a Python scalar if `x1` is an array.

    Raises:
        ArrayTypeError: If an operand has an unsupported dtype, or neither operand is an array.
        ArrayValueError: If the shapes are not broadcast-compatible.

    >>> import tecomp.array as xp
    >>> xp.floor_divide(xp.asarray([7, -7]), xp.asarray([2, 2]))
    Array([ 3, -4], dtype=int64)
    """
    return apply_binary(FUNCTIONS["floor_divide"], x1, x2)


def greater(x1: Array | Scalar, x2: Array | Scalar, /) -> Array:
    """Compare element-wise for `x1 > x2`.

    Args:
        x1: Array of real-valued dtype, or a Python scalar if `x2` is an array.
        x2: Array of real-valued dtype, or a Python scalar if `x1` is an array.

    Raises:
        ArrayTypeError: If an operand has an unsupported dtype, or neither operand is an array.
        ArrayValueError: If the shapes are not broadcast-compatible.

    >>> import tecomp.array as xp
    >>> xp.greater(xp.asarray([1, 2]), xp.asarray([0, 3]))
    Array([ True, False], dtype=bool)
    """
    return apply_binary(FUNCTIONS["greater"], x1, x2)


def greater_equal(x1: Array | Scalar, x2: Array | Scalar, /) -> Array:
    """Compare element-wise for `x1 >= x2`.

    Args:
        x1: Array of real-valued dtype, or a Python scalar if `x2` is an array.
        x2: Array of real-valued dtype, or a Python scalar if `x1` is an array.

    Raises:
        ArrayTypeError: If an operand has an unsupported dtype, or neither operand is an array.
        ArrayValueError: If the shapes are not broadcast-compatible.

    >>> import tecomp.array as xp
    >>> xp.greater_equal(xp.asarray([1, 2]), xp.asarray([1, 3]))
    Array([ True, False], dtype=bool)
    """
    return apply_binary(FUNCTIONS["greater_equal"], x1, x2)


def hypot(x1: Array | Scalar, x2: Array | Scalar, /) -> Array:
    """Compute `sqrt(x1 * x1 + x2 * x2)` element-wise without intermediate overflow.

    Args:
        x1: Array of real floating-point dtype, or a Python scalar if `x2` is an array.
        x2: Array of real floating-point dtype, or a Python scalar if `x1` is an array.

    Raises:
        ArrayTypeError: If an operand has an unsupported dtype, or neither operand is an array.
        ArrayValueError: If the shapes are not broadcast-compatible.

    >>> import tecomp.array as xp
    >>> xp.hypot(xp.asarray([3.0, 5.0]), xp.asarray([4.0, 12.0]))
    Array([ 5., 13.], dtype=float64)
    """
    return apply_binary(FUNCTIONS["hypot"], x1, x2)


def less(x1: Array | Scalar, x2: Array | Scalar, /) -> Array:
    """Compare element-wise for `x1 < x2`.

    Args:
        x1: Array of real-valued dtype, or a Python scalar if `x2` is an array.
        x2: Array of real-valued dtype, or a Python scalar if `x1` is an array.

    Raises:
        ArrayTypeError: If an operand has an unsupported dtype, or neither operand is an array.
        ArrayValueError: If the shapes are not broadcast-compatible.

    >>> import tecomp.array as xp
    >>> xp.less(xp.asarray([1, 2]), xp.asarray([0, 3]))
    Array([False,  True], dtype=bool)
    """
    return apply_binary(FUNCTIONS["less"], x1, x2)


def less_equal(x1: Array | Scalar, x2: Array | Scalar, /) -> Array:
    """Compare element-wise for `x1 <= x2`.

    Args:
        x1: Array of real-valued dtype, or a Python scalar if `x2` is an array.
        x2: Array of real-valued dtype, or a Python scalar if `x1` is an array.

    Raises:
        ArrayTypeError: If an operand has an unsupported dtype, or neither operand is an array.
        ArrayValueError: If the shapes are not broadcast-compatible.

    >>> import tecomp.array as xp
    >>> xp.less_equal(xp.asarray([1, 2]), xp.asarray([1, 3]))
    Array([ True,  True], dtype=bool)
    """
    return apply_binary(FUNCTIONS["less_equal"], x1, x2)


def logaddexp(x1: Array | Scalar, x2: Array | Scalar, /) -> Array:
    """Compute `log(exp(x1) + exp(x2))` element-wise without intermediate overflow.

    Args:
        x1: Array of real floating-point dtype, or a Python scalar if `x2` is an array.
        x2: Array of real floating-point dtype, or a Python scalar if `x1` is an array.

    Raises:
        ArrayTypeError: If an operand has an unsupported dtype, or neither operand is an array.
        ArrayValueError: If the shapes are not broadcast-compatible.

    >>> import tecomp.array as xp
    >>> xp.logaddexp(xp.asarray([0.0, 1000.0]), xp.asarray([0.0, 1000.0]))
    Array([6.93147181e-01, 1.00069315e+03], dtype=float64)
    """
    return apply_binary(FUNCTIONS["logaddexp"], x1, x2)


def logical_and(x1: Array | Scalar, x2: Array | Scalar, /) -> Array:
    """Compute the logical AND element-wise.

    Args:
        x1: Array, or a Python scalar if `x2` is an array. Nonzero numbers count as True.
        x2: Array, or a Python scalar if `x1` is an array. Nonzero numbers count as True.

    Raises:
        ArrayTypeError: If neither operand is an array.
        ArrayValueError: If the shapes are not broadcast-compatible.

    >>> import tecomp.array as xp
    >>> xp.logical_and(xp.asarray([True, True]), xp.asarray([True, False]))
    Array([ True, False], dtype=bool)
    """
    return _logical("logical_and", x1, x2)


def logical_or(x1: Array | Scalar, x2: Array | Scalar, /) -> Array:
    """Compute the logical OR element-wise.

    Args:
        x1: Array, or a Python scalar if `x2` is an array. Nonzero numbers count as True.
        x2: Array, or a Python scalar if `x1` is an array. Nonzero numbers count as True.

    Raises:
        ArrayTypeError: If neither operand is an array.
        ArrayValueError: If the shapes are not broadcast-compatible.

    >>> import tecomp.array as xp
    >>> xp.logical_or(xp.asarray([True, False]), xp.asarray([False, False]))
    Array([ True, False], dtype=bool)
    """
    return _logical("logical_or", x1, x2)


def logical_xor(x1: Array | Scalar, x2: Array | Scalar, /) -> Array:
    """Compute the logical XOR element-wise.

    Args:
        x1: Array, or a Python scalar if `x2` is an array. Nonzero numbers count as True.
        x2: Array, or a Python scalar if `x1` is an array. Nonzero numbers count as True.

    Raises:
        ArrayTypeError: If neither operand is an array.
        ArrayValueError: If the shapes are not broadcast-compatible.

    >>> import tecomp.array as xp
    >>> xp.logical_xor(xp.asarray([True, True]), xp.asarray([True, False]))
    Array([False,  True], dtype=bool)
    """
    return _logical("logical_xor", x1, x2)


def maximum(x1: Array | Scalar, x2: Array | Scalar, /) -> Array:
    """Return the larger operand element-wise; NaN propagates.

    Args:
        x1: Array of real-valued dtype, or a Python scalar if `x2` is an array.
        x2: Array of real-valued dtype, or a Python scalar if `x1` is an array.

    Raises:
        ArrayTypeError: If an operand has an unsupported dtype, or neither operand is an array.
        ArrayValueError: If the shapes are not broadcast-compatible.

    >>> import tecomp.array as xp
    >>> xp.maximum(xp.asarray([1, 2]), xp.asarray([0, 3]))
    Array([1, 3], dtype=int64)
    """
    return apply_binary(FUNCTIONS["maximum"], x1, x2)


def minimum(x1: Array | Scalar, x2: Array | Scalar, /) -> Array:
    """Return the smaller operand element-wise; NaN propagates.

    Args:
        x1: Array of real-valued dtype, or a Python scalar if `x2` is an array.
        x2: Array of real-valued dtype, or a Python scalar if `x1` is an array.

    Raises:
        ArrayTypeError: If an operand has an unsupported dtype, or neither operand is an array.
        ArrayValueError: If the shapes are not broadcast-compatible.

    >>> import tecomp.array as xp
    >>> xp.minimum(xp.asarray([1, 2]), xp.asarray([0, 3]))
    Array([0, 2], dtype=int64)
    """
    return apply_binary(FUNCTIONS["minimum"], x1, x2)


def multiply(x1: Array | Scalar, x2: Array | Scalar, /) -> Array:
    """Compute the product element-wise.

    Args:
        x1: Array of numeric dtype, or a Python scalar if `x2` is an array.
        x2: Array of numeric dtype, or a Python scalar if `x1` is an array.

    Raises:
        ArrayTypeError: If an operand has an unsupported dtype, or neither operand is an array.
        ArrayValueError: If the shapes are not broadcast-compatible.

    >>> import tecomp.array as xp
    >>> xp.multiply(xp.asarray([1, 2]), xp.asarray([10, 20]))
    Array([10, 40], dtype=int64)
    """
    return apply_binary(FUNCTIONS["multiply"], x1, x2)


def nextafter(x1: Array | Scalar, x2: Array | Scalar, /) -> Array:
    """Return the next representable value after `x1` towards `x2` element-wise.

    Args:
        x1: Array of real floating-point dtype, or a Python scalar if `x2` is an array.
        x2: Array of real floating-point dtype, or a Python scalar if `x1` is an array.

    Raises:
        ArrayTypeError: If an operand has an unsupported dtype, or neither operand is an array.
        ArrayValueError: If the shapes are not broadcast-compatible.

    >>> import tecomp.array as xp
    >>> xp.nextafter(xp.asarray([1.0, 1.0]), xp.asarray([2.0, 1.0]))
    Array([1., 1.], dtype=float64)
    """
    return apply_binary(FUNCTIONS["nextafter"], x1, x2)


def not_equal(x1: Array | Scalar, x2: Array | Scalar, /) -> Array:
    """Compare element-wise for `x1 != x2`.

    Args:
        x1: Array of any dtype, or a Python scalar if `x2` is an array.
        x2: Array of any dtype, or a Python scalar if `x1` is an array.

    Raises:
        ArrayTypeError: If an operand has an unsupported dtype, or neither operand is an array.
        ArrayValueError: If the shapes are not broadcast-compatible.

    >>> import tecomp.array as xp
    >>> xp.not_equal(xp.asarray([1, 2]), xp.asarray([1, 3]))
    Array([False,  True], dtype=bool)
    """
    return apply_binary(FUNCTIONS["not_equal"], x1, x2)


def pow(x1: Array | Scalar, x2: Array | Scalar, /) -> Array:
    """Raise `x1` to the power `x2` element-wise.

    Args:
        x1: Array of numeric dtype, or a Python scalar if `x2` is an array.
        x2: Array of numeric dtype, or a Python scalar if `x1` is an array.

    Raises:
        ArrayTypeError: If an operand has an unsupported dtype, or neither operand is an array.
        ArrayValueError: If the shapes are not broadcast-compatible.

    >>> import tecomp.array as xp
    >>> xp.pow(xp.asarray([2, 3]), xp.asarray([10, 2]))
    Array([1024,    9], dtype=int64)
    """
    return apply_binary(FUNCTIONS["pow"], x1, x2)


def remainder(x1: Array | Scalar, x2: Array | Scalar, /) -> Array:
    """Compute the remainder of `floor_divide`, with the sign of `x2`; integers modulo 0 give 0.

    Args:
        x1: Array of real-valued dtype, or a Python scalar if `x2` is an array.
        x2: Array of real-valued dtype, or a Python scalar if `x1` is an array.

    Raises:
        ArrayTypeError: If an operand has an unsupported dtype, or neither operand is an array.
        ArrayValueError: If the shapes are not broadcast-compatible.

    >>> import tecomp.array as xp
    >>> xp.remainder(xp.asarray([7, -7]), xp.asarray([2, 2]))
    Array([1, 1], dtype=int64)
    """
    return apply_binary(FUNCTIONS["remainder"], x1, x2)


def subtract(x1: Array | Scalar, x2: Array | Scalar, /) -> Array:
    """Compute the difference `x1 - x2` element-wise.

    Args:
        x1: Array of numeric dtype, or a Python scalar if `x2` is an array.
        x2: Array of numeric dtype, or a Python scalar if `x1` is an array.

    Raises:
        ArrayTypeError: If an operand has an unsupported dtype, or neither operand is an array.
        ArrayValueError: If the shapes are not broadcast-compatible.

    >>> import tecomp.array as xp
    >>> xp.subtract(xp.asarray([1, 2]), xp.asarray([10, 20]))
    Array([ -9, -18], dtype=int64)
    """
    return apply_binary(FUNCTIONS["subtract"], x1, x2)


def _logical(kind: str, x1: Array | Scalar, x2: Array | Scalar) -> Array:
    one, other = nodes_of_pair(x1, x2, kind)
    return from_node(record(FUNCTIONS[kind], truth_of(one), truth_of(other)))
