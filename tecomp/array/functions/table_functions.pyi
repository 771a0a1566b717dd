"""Functions that tables define: element-wise functions and reductions along axes.

`table_functions.pyi` declares the functions for type checkers and editors. Write it with
`python -m tests.operations.stubs` after a change of a table.
"""

# Generated: `python -m tests.operations.stubs`.

from typing import Any, SupportsIndex

from tecomp.array.array_object import Array
from tecomp.array.weak_scalars import Scalar
from tecomp.ptensor.types import Axes

__all__ = [  # noqa: RUF022
    "abs",
    "acos",
    "acosh",
    "add",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "bitwise_and",
    "bitwise_invert",
    "bitwise_left_shift",
    "bitwise_or",
    "bitwise_right_shift",
    "bitwise_xor",
    "ceil",
    "conj",
    "copysign",
    "cos",
    "cosh",
    "digamma",
    "divide",
    "equal",
    "erfinv",
    "exp",
    "expm1",
    "floor",
    "floor_divide",
    "greater",
    "greater_equal",
    "hypot",
    "imag",
    "isfinite",
    "isinf",
    "isnan",
    "less",
    "less_equal",
    "lgamma",
    "log",
    "log10",
    "log1p",
    "log2",
    "logaddexp",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "maximum",
    "minimum",
    "multiply",
    "negative",
    "nextafter",
    "not_equal",
    "positive",
    "pow",
    "real",
    "reciprocal",
    "remainder",
    "round",
    "sign",
    "signbit",
    "sin",
    "sinh",
    "sqrt",
    "square",
    "subtract",
    "tan",
    "tanh",
    "trunc",
    "all",
    "any",
    "argmax",
    "argmin",
    "count_nonzero",
    "cumulative_prod",
    "cumulative_sum",
    "logsumexp",
    "max",
    "mean",
    "min",
    "prod",
    "std",
    "sum",
    "var",
]

# tecomp/operations/elementwise.py: "abs"
def abs(x: Array, /) -> Array:
    """Compute the absolute value element-wise; the result of a complex array is real.

    Args:
        x: Input array of numeric dtype, real or complex.

    Raises:
        ArrayTypeError: If `x` has an unsupported dtype.

    >>> import tecomp.array as xp
    >>> xp.abs(xp.asarray([-1.5, 2.0]))
    Array([1.5, 2. ], dtype=float64)
    """

# tecomp/operations/elementwise.py: "acos"
def acos(x: Array, /) -> Array:
    """Compute the inverse cosine element-wise, in radians; real results are in [0, pi].

    Args:
        x: Input array of floating-point dtype, real or complex.

    Raises:
        ArrayTypeError: If `x` has an unsupported dtype.

    >>> import tecomp.array as xp
    >>> xp.acos(xp.asarray([1.0, 0.0]))
    Array([0.        , 1.57079633], dtype=float64)
    """

# tecomp/operations/elementwise.py: "acosh"
def acosh(x: Array, /) -> Array:
    """Compute the inverse hyperbolic cosine element-wise; real results are at least 0.

    Args:
        x: Input array of floating-point dtype, real or complex.

    Raises:
        ArrayTypeError: If `x` has an unsupported dtype.

    >>> import tecomp.array as xp
    >>> xp.acosh(xp.asarray([1.0, 2.0]))
    Array([0.       , 1.3169579], dtype=float64)
    """

# tecomp/operations/elementwise.py: "add"
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

# tecomp/operations/elementwise.py: "asin"
def asin(x: Array, /) -> Array:
    """Compute the inverse sine element-wise, in radians; real results are in [-pi/2, pi/2].

    Args:
        x: Input array of floating-point dtype, real or complex.

    Raises:
        ArrayTypeError: If `x` has an unsupported dtype.

    >>> import tecomp.array as xp
    >>> xp.asin(xp.asarray([0.0, 1.0]))
    Array([0.        , 1.57079633], dtype=float64)
    """

# tecomp/operations/elementwise.py: "asinh"
def asinh(x: Array, /) -> Array:
    """Compute the inverse hyperbolic sine element-wise.

    Args:
        x: Input array of floating-point dtype, real or complex.

    Raises:
        ArrayTypeError: If `x` has an unsupported dtype.

    >>> import tecomp.array as xp
    >>> xp.asinh(xp.asarray([0.0, 1.0]))
    Array([0.        , 0.88137359], dtype=float64)
    """

# tecomp/operations/elementwise.py: "atan"
def atan(x: Array, /) -> Array:
    """Compute the inverse tangent element-wise, in radians; real results are in [-pi/2, pi/2].

    Args:
        x: Input array of floating-point dtype, real or complex.

    Raises:
        ArrayTypeError: If `x` has an unsupported dtype.

    >>> import tecomp.array as xp
    >>> xp.atan(xp.asarray([0.0, 1.0]))
    Array([0.        , 0.78539816], dtype=float64)
    """

# tecomp/operations/elementwise.py: "atan2"
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

# tecomp/operations/elementwise.py: "atanh"
def atanh(x: Array, /) -> Array:
    """Compute the inverse hyperbolic tangent element-wise.

    Args:
        x: Input array of floating-point dtype, real or complex.

    Raises:
        ArrayTypeError: If `x` has an unsupported dtype.

    >>> import tecomp.array as xp
    >>> xp.atanh(xp.asarray([0.0, 0.5]))
    Array([0.        , 0.54930614], dtype=float64)
    """

# tecomp/operations/elementwise.py: "bitwise_and"
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

# tecomp/operations/elementwise.py: "bitwise_invert"
def bitwise_invert(x: Array, /) -> Array:
    """Invert all bits element-wise; negate booleans logically.

    Args:
        x: Input array of integer or boolean dtype.

    Raises:
        ArrayTypeError: If `x` has an unsupported dtype.

    >>> import tecomp.array as xp
    >>> xp.bitwise_invert(xp.asarray([0, -2]))
    Array([-1,  1], dtype=int64)
    """

# tecomp/operations/elementwise.py: "bitwise_left_shift"
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

# tecomp/operations/elementwise.py: "bitwise_or"
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

# tecomp/operations/elementwise.py: "bitwise_right_shift"
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

# tecomp/operations/elementwise.py: "bitwise_xor"
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

# tecomp/operations/elementwise.py: "ceil"
def ceil(x: Array, /) -> Array:
    """Round up to an integer element-wise; the dtype is kept.

    Args:
        x: Input array of real-valued dtype.

    Raises:
        ArrayTypeError: If `x` has an unsupported dtype.

    >>> import tecomp.array as xp
    >>> xp.ceil(xp.asarray([-1.5, 1.5]))
    Array([-1.,  2.], dtype=float64)
    """

# tecomp/operations/elementwise.py: "conj"
def conj(x: Array, /) -> Array:
    """Compute the complex conjugate element-wise; real arrays are returned unchanged.

    Args:
        x: Input array of numeric dtype, real or complex.

    Raises:
        ArrayTypeError: If `x` has an unsupported dtype.

    >>> import tecomp.array as xp
    >>> xp.conj(xp.asarray([1 + 2j]))
    Array([1.-2.j], dtype=complex128)
    """

# tecomp/operations/elementwise.py: "copysign"
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

# tecomp/operations/elementwise.py: "cos"
def cos(x: Array, /) -> Array:
    """Compute the cosine of angles in radians element-wise.

    Args:
        x: Input array of floating-point dtype, real or complex.

    Raises:
        ArrayTypeError: If `x` has an unsupported dtype.

    >>> import tecomp.array as xp
    >>> xp.cos(xp.asarray([0.0, 1.0]))
    Array([1.        , 0.54030231], dtype=float64)
    """

# tecomp/operations/elementwise.py: "cosh"
def cosh(x: Array, /) -> Array:
    """Compute the hyperbolic cosine element-wise.

    Args:
        x: Input array of floating-point dtype, real or complex.

    Raises:
        ArrayTypeError: If `x` has an unsupported dtype.

    >>> import tecomp.array as xp
    >>> xp.cosh(xp.asarray([0.0, 1.0]))
    Array([1.        , 1.54308063], dtype=float64)
    """

# tecomp/operations/elementwise.py: "digamma"
def digamma(x: Array, /) -> Array:
    """Compute the derivative of the logarithm of the gamma function element-wise.

    Args:
        x: Input array of real floating-point dtype.

    Raises:
        ArrayTypeError: If `x` has an unsupported dtype.

    >>> import tecomp.array as xp
    >>> xp.digamma(xp.asarray([0.5, 1.0]))
    Array([-1.96351003, -0.57721566], dtype=float64)
    """

# tecomp/operations/elementwise.py: "divide"
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

# tecomp/operations/elementwise.py: "equal"
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

# tecomp/operations/elementwise.py: "erfinv"
def erfinv(x: Array, /) -> Array:
    """Compute the inverse error function element-wise; NaN outside of [-1, 1].

    Args:
        x: Input array of real floating-point dtype.

    Raises:
        ArrayTypeError: If `x` has an unsupported dtype.

    >>> import tecomp.array as xp
    >>> xp.erfinv(xp.asarray([0.0, 0.5]))
    Array([0.        , 0.47693628], dtype=float64)
    """

# tecomp/operations/elementwise.py: "exp"
def exp(x: Array, /) -> Array:
    """Compute the exponential element-wise.

    Args:
        x: Input array of floating-point dtype, real or complex.

    Raises:
        ArrayTypeError: If `x` has an unsupported dtype.

    >>> import tecomp.array as xp
    >>> xp.exp(xp.asarray([0.0, 1.0]))
    Array([1.        , 2.71828183], dtype=float64)
    """

# tecomp/operations/elementwise.py: "expm1"
def expm1(x: Array, /) -> Array:
    """Compute `exp(x) - 1` element-wise, accurately near zero.

    Args:
        x: Input array of floating-point dtype, real or complex.

    Raises:
        ArrayTypeError: If `x` has an unsupported dtype.

    >>> import tecomp.array as xp
    >>> xp.expm1(xp.asarray([0.0, 1e-10]))
    Array([0.e+00, 1.e-10], dtype=float64)
    """

# tecomp/operations/elementwise.py: "floor"
def floor(x: Array, /) -> Array:
    """Round down to an integer element-wise; the dtype is kept.

    Args:
        x: Input array of real-valued dtype.

    Raises:
        ArrayTypeError: If `x` has an unsupported dtype.

    >>> import tecomp.array as xp
    >>> xp.floor(xp.asarray([-1.5, 1.5]))
    Array([-2.,  1.], dtype=float64)
    """

# tecomp/operations/elementwise.py: "floor_divide"
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

# tecomp/operations/elementwise.py: "greater"
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

# tecomp/operations/elementwise.py: "greater_equal"
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

# tecomp/operations/elementwise.py: "hypot"
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

# tecomp/operations/elementwise.py: "imag"
def imag(x: Array, /) -> Array:
    """Return the imaginary part element-wise.

    Args:
        x: Input array of numeric dtype, real or complex.

    Raises:
        ArrayTypeError: If `x` has an unsupported dtype.

    >>> import tecomp.array as xp
    >>> xp.imag(xp.asarray([1 + 2j]))
    Array([2.], dtype=float64)
    """

# tecomp/operations/elementwise.py: "isfinite"
def isfinite(x: Array, /) -> Array:
    """Test element-wise for values that are neither infinite nor NaN.

    Args:
        x: Input array of numeric dtype, real or complex.

    Raises:
        ArrayTypeError: If `x` has an unsupported dtype.

    >>> import tecomp.array as xp
    >>> xp.isfinite(xp.asarray([1.0, float("inf")]))
    Array([ True, False], dtype=bool)
    """

# tecomp/operations/elementwise.py: "isinf"
def isinf(x: Array, /) -> Array:
    """Test element-wise for infinities, in the real or imaginary part of complex values.

    Args:
        x: Input array of numeric dtype, real or complex.

    Raises:
        ArrayTypeError: If `x` has an unsupported dtype.

    >>> import tecomp.array as xp
    >>> xp.isinf(xp.asarray([1.0, float("inf")]))
    Array([False,  True], dtype=bool)
    """

# tecomp/operations/elementwise.py: "isnan"
def isnan(x: Array, /) -> Array:
    """Test element-wise for NaN, in the real or imaginary part of complex values.

    Args:
        x: Input array of numeric dtype, real or complex.

    Raises:
        ArrayTypeError: If `x` has an unsupported dtype.

    >>> import tecomp.array as xp
    >>> xp.isnan(xp.asarray([1.0, float("nan")]))
    Array([False,  True], dtype=bool)
    """

# tecomp/operations/elementwise.py: "less"
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

# tecomp/operations/elementwise.py: "less_equal"
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

# tecomp/operations/elementwise.py: "lgamma"
def lgamma(x: Array, /) -> Array:
    """Compute the logarithm of the absolute value of the gamma function element-wise.

    Args:
        x: Input array of real floating-point dtype.

    Raises:
        ArrayTypeError: If `x` has an unsupported dtype.

    >>> import tecomp.array as xp
    >>> xp.lgamma(xp.asarray([0.5, 4.0]))
    Array([0.57236494, 1.79175947], dtype=float64)
    """

# tecomp/operations/elementwise.py: "log"
def log(x: Array, /) -> Array:
    """Compute the natural logarithm element-wise.

    Args:
        x: Input array of floating-point dtype, real or complex.

    Raises:
        ArrayTypeError: If `x` has an unsupported dtype.

    >>> import tecomp.array as xp
    >>> xp.log(xp.asarray([1.0, 2.0]))
    Array([0.        , 0.69314718], dtype=float64)
    """

# tecomp/operations/elementwise.py: "log10"
def log10(x: Array, /) -> Array:
    """Compute the base-10 logarithm element-wise.

    Args:
        x: Input array of floating-point dtype, real or complex.

    Raises:
        ArrayTypeError: If `x` has an unsupported dtype.

    >>> import tecomp.array as xp
    >>> xp.log10(xp.asarray([1.0, 100.0]))
    Array([0., 2.], dtype=float64)
    """

# tecomp/operations/elementwise.py: "log1p"
def log1p(x: Array, /) -> Array:
    """Compute `log(1 + x)` element-wise, accurately near zero.

    Args:
        x: Input array of floating-point dtype, real or complex.

    Raises:
        ArrayTypeError: If `x` has an unsupported dtype.

    >>> import tecomp.array as xp
    >>> xp.log1p(xp.asarray([0.0, 1e-10]))
    Array([0.e+00, 1.e-10], dtype=float64)
    """

# tecomp/operations/elementwise.py: "log2"
def log2(x: Array, /) -> Array:
    """Compute the base-2 logarithm element-wise.

    Args:
        x: Input array of floating-point dtype, real or complex.

    Raises:
        ArrayTypeError: If `x` has an unsupported dtype.

    >>> import tecomp.array as xp
    >>> xp.log2(xp.asarray([1.0, 8.0]))
    Array([0., 3.], dtype=float64)
    """

# tecomp/operations/elementwise.py: "logaddexp"
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

# tecomp/operations/elementwise.py: "logical_and"
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

# tecomp/operations/elementwise.py: "logical_not"
def logical_not(x: Array, /) -> Array:
    """Compute the logical NOT element-wise.

    Args:
        x: Input array of any dtype. Nonzero numbers count as True.

    >>> import tecomp.array as xp
    >>> xp.logical_not(xp.asarray([True, False]))
    Array([False,  True], dtype=bool)
    """

# tecomp/operations/elementwise.py: "logical_or"
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

# tecomp/operations/elementwise.py: "logical_xor"
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

# tecomp/operations/elementwise.py: "maximum"
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

# tecomp/operations/elementwise.py: "minimum"
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

# tecomp/operations/elementwise.py: "multiply"
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

# tecomp/operations/elementwise.py: "negative"
def negative(x: Array, /) -> Array:
    """Negate element-wise; unsigned integers wrap around.

    Args:
        x: Input array of numeric dtype, real or complex.

    Raises:
        ArrayTypeError: If `x` has an unsupported dtype.

    >>> import tecomp.array as xp
    >>> xp.negative(xp.asarray([1, -2]))
    Array([-1,  2], dtype=int64)
    """

# tecomp/operations/elementwise.py: "nextafter"
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

# tecomp/operations/elementwise.py: "not_equal"
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

# tecomp/operations/elementwise.py: "positive"
def positive(x: Array, /) -> Array:
    """Return the elements unchanged.

    Args:
        x: Input array of numeric dtype, real or complex.

    Raises:
        ArrayTypeError: If `x` has an unsupported dtype.

    >>> import tecomp.array as xp
    >>> xp.positive(xp.asarray([1, -2]))
    Array([ 1, -2], dtype=int64)
    """

# tecomp/operations/elementwise.py: "pow"
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

# tecomp/operations/elementwise.py: "real"
def real(x: Array, /) -> Array:
    """Return the real part element-wise.

    Args:
        x: Input array of numeric dtype, real or complex.

    Raises:
        ArrayTypeError: If `x` has an unsupported dtype.

    >>> import tecomp.array as xp
    >>> xp.real(xp.asarray([1 + 2j]))
    Array([1.], dtype=float64)
    """

# tecomp/operations/elementwise.py: "reciprocal"
def reciprocal(x: Array, /) -> Array:
    """Compute `1 / x` element-wise.

    Args:
        x: Input array of floating-point dtype, real or complex.

    Raises:
        ArrayTypeError: If `x` has an unsupported dtype.

    >>> import tecomp.array as xp
    >>> xp.reciprocal(xp.asarray([0.5, 4.0]))
    Array([2.  , 0.25], dtype=float64)
    """

# tecomp/operations/elementwise.py: "remainder"
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

# tecomp/operations/elementwise.py: "round"
def round(x: Array, /) -> Array:
    """Round to the nearest integer element-wise, with ties to even; the dtype is kept.

    Args:
        x: Input array of numeric dtype, real or complex.

    Raises:
        ArrayTypeError: If `x` has an unsupported dtype.

    >>> import tecomp.array as xp
    >>> xp.round(xp.asarray([0.5, 1.5, 2.6]))
    Array([0., 2., 3.], dtype=float64)
    """

# tecomp/operations/elementwise.py: "sign"
def sign(x: Array, /) -> Array:
    """Return the sign element-wise: -1, 0 or 1 for real, `x / abs(x)` for complex values.

    Args:
        x: Input array of numeric dtype, real or complex.

    Raises:
        ArrayTypeError: If `x` has an unsupported dtype.

    >>> import tecomp.array as xp
    >>> xp.sign(xp.asarray([-3.0, 0.0, 2.0]))
    Array([-1.,  0.,  1.], dtype=float64)
    """

# tecomp/operations/elementwise.py: "signbit"
def signbit(x: Array, /) -> Array:
    """Return whether the sign bit is set element-wise, also for zeros and NaN.

    Args:
        x: Input array of real floating-point dtype.

    Raises:
        ArrayTypeError: If `x` has an unsupported dtype.

    >>> import tecomp.array as xp
    >>> xp.signbit(xp.asarray([-0.0, 0.0]))
    Array([ True, False], dtype=bool)
    """

# tecomp/operations/elementwise.py: "sin"
def sin(x: Array, /) -> Array:
    """Compute the sine of angles in radians element-wise.

    Args:
        x: Input array of floating-point dtype, real or complex.

    Raises:
        ArrayTypeError: If `x` has an unsupported dtype.

    >>> import tecomp.array as xp
    >>> xp.sin(xp.asarray([0.0, 1.0]))
    Array([0.        , 0.84147098], dtype=float64)
    """

# tecomp/operations/elementwise.py: "sinh"
def sinh(x: Array, /) -> Array:
    """Compute the hyperbolic sine element-wise.

    Args:
        x: Input array of floating-point dtype, real or complex.

    Raises:
        ArrayTypeError: If `x` has an unsupported dtype.

    >>> import tecomp.array as xp
    >>> xp.sinh(xp.asarray([0.0, 1.0]))
    Array([0.        , 1.17520119], dtype=float64)
    """

# tecomp/operations/elementwise.py: "sqrt"
def sqrt(x: Array, /) -> Array:
    """Compute the square root element-wise.

    Args:
        x: Input array of floating-point dtype, real or complex.

    Raises:
        ArrayTypeError: If `x` has an unsupported dtype.

    >>> import tecomp.array as xp
    >>> xp.sqrt(xp.asarray([4.0, 2.0]))
    Array([2.        , 1.41421356], dtype=float64)
    """

# tecomp/operations/elementwise.py: "square"
def square(x: Array, /) -> Array:
    """Compute the square element-wise.

    Args:
        x: Input array of numeric dtype, real or complex.

    Raises:
        ArrayTypeError: If `x` has an unsupported dtype.

    >>> import tecomp.array as xp
    >>> xp.square(xp.asarray([3, -2]))
    Array([9, 4], dtype=int64)
    """

# tecomp/operations/elementwise.py: "subtract"
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

# tecomp/operations/elementwise.py: "tan"
def tan(x: Array, /) -> Array:
    """Compute the tangent of angles in radians element-wise.

    Args:
        x: Input array of floating-point dtype, real or complex.

    Raises:
        ArrayTypeError: If `x` has an unsupported dtype.

    >>> import tecomp.array as xp
    >>> xp.tan(xp.asarray([0.0, 1.0]))
    Array([0.        , 1.55740772], dtype=float64)
    """

# tecomp/operations/elementwise.py: "tanh"
def tanh(x: Array, /) -> Array:
    """Compute the hyperbolic tangent element-wise.

    Args:
        x: Input array of floating-point dtype, real or complex.

    Raises:
        ArrayTypeError: If `x` has an unsupported dtype.

    >>> import tecomp.array as xp
    >>> xp.tanh(xp.asarray([0.0, 1.0]))
    Array([0.        , 0.76159416], dtype=float64)
    """

# tecomp/operations/elementwise.py: "trunc"
def trunc(x: Array, /) -> Array:
    """Round towards zero to an integer element-wise; the dtype is kept.

    Args:
        x: Input array of real-valued dtype.

    Raises:
        ArrayTypeError: If `x` has an unsupported dtype.

    >>> import tecomp.array as xp
    >>> xp.trunc(xp.asarray([-1.5, 1.5]))
    Array([-1.,  1.], dtype=float64)
    """

# tecomp/operations/reductions.py: "all"
def all(x: Array, /, *, axis: Axes = None, keepdims: bool = False) -> Array:
    """Test whether all elements along the given axes are true; nonzero numbers are true.

    Args:
        x: Input array.
        axis: Axis or axes along which to compute. Negative values count from the last axis.
            Default: all axes.
        keepdims: If True, keep reduced axes with size 1.

    Returns:
        Array of dtype bool; an empty reduction gives True.

    Raises:
        ArrayIndexError: If `axis` is out of bounds.
        ArrayValueError: If `axis` contains duplicates.

    >>> import tecomp.array as xp
    >>> xp.all(xp.asarray([[1, 0], [2, 3]]), axis=1)
    Array([False,  True], dtype=bool)
    """

# tecomp/operations/reductions.py: "any"
def any(x: Array, /, *, axis: Axes = None, keepdims: bool = False) -> Array:
    """Test whether any element along the given axes is true; nonzero numbers are true.

    Args:
        x: Input array.
        axis: Axis or axes along which to compute. Negative values count from the last axis.
            Default: all axes.
        keepdims: If True, keep reduced axes with size 1.

    Returns:
        Array of dtype bool; an empty reduction gives False.

    Raises:
        ArrayIndexError: If `axis` is out of bounds.
        ArrayValueError: If `axis` contains duplicates.

    >>> import tecomp.array as xp
    >>> xp.any(xp.asarray([[1, 0], [0, 0]]), axis=1)
    Array([ True, False], dtype=bool)
    """

# tecomp/operations/reductions.py: "argmax"
def argmax(x: Array, /, *, axis: SupportsIndex | None = None, keepdims: bool = False) -> Array:
    """Return the index of the first maximum along an axis; NaN counts as the maximum.

    Args:
        x: Input array of real-valued dtype.
        axis: Axis of nonzero size along which to search. Default: search the flattened array.
        keepdims: If True, keep reduced axes with size 1.

    Returns:
        Indices of dtype int64.

    Raises:
        ArrayTypeError: If `x` has an unsupported dtype.
        ArrayIndexError: If `axis` is out of bounds.
        ArrayValueError: If there is no element to search.

    >>> import tecomp.array as xp
    >>> xp.argmax(xp.asarray([[1, 5, 3], [4, 2, 6]]), axis=1)
    Array([1, 2], dtype=int64)
    """

# tecomp/operations/reductions.py: "argmin"
def argmin(x: Array, /, *, axis: SupportsIndex | None = None, keepdims: bool = False) -> Array:
    """Return the index of the first minimum along an axis; NaN counts as the minimum.

    Args:
        x: Input array of real-valued dtype.
        axis: Axis of nonzero size along which to search. Default: search the flattened array.
        keepdims: If True, keep reduced axes with size 1.

    Returns:
        Indices of dtype int64.

    Raises:
        ArrayTypeError: If `x` has an unsupported dtype.
        ArrayIndexError: If `axis` is out of bounds.
        ArrayValueError: If there is no element to search.

    >>> import tecomp.array as xp
    >>> xp.argmin(xp.asarray([[1, 5, 3], [4, 2, 6]]))
    Array(0, dtype=int64)
    """

# tecomp/operations/reductions.py: "count_nonzero"
def count_nonzero(x: Array, /, *, axis: Axes = None, keepdims: bool = False) -> Array:
    """Count nonzero elements along the given axes.

    Args:
        x: Input array.
        axis: Axis or axes along which to compute. Negative values count from the last axis.
            Default: all axes.
        keepdims: If True, keep reduced axes with size 1.

    Returns:
        Counts of dtype int64.

    Raises:
        ArrayIndexError: If `axis` is out of bounds.
        ArrayValueError: If `axis` contains duplicates.

    >>> import tecomp.array as xp
    >>> xp.count_nonzero(xp.asarray([[1, 0, 3], [0, 0, 6]]), axis=1)
    Array([2, 1], dtype=int64)
    """

# tecomp/operations/reductions.py: "prod"
def cumulative_prod(
    x: Array,
    /,
    *,
    axis: SupportsIndex | None = None,
    dtype: Any = None,
    include_initial: bool = False,
) -> Array:
    """Compute the cumulative product along an axis.

    Args:
        x: Input array of numeric or boolean dtype. Booleans count as 0 and 1.
        axis: Axis along which to accumulate. Default: the only axis of a one-dimensional array.
        dtype: Result dtype. Default: the dtype of `x`; 64-bit for integers and booleans.
        include_initial: If True, the result begins with the initial value 1.

    Returns:
        Array of the shape of `x`; with `include_initial`, the axis is longer by 1.

    Raises:
        ArrayTypeError: If `x` has an unsupported dtype.
        ArrayIndexError: If `axis` is out of bounds.
        ArrayValueError: If `axis` is None and `x` does not have exactly one axis.

    >>> import tecomp.array as xp
    >>> xp.cumulative_prod(xp.asarray([1, 2, 3]), include_initial=True)
    Array([1, 1, 2, 6], dtype=int64)
    """

# tecomp/operations/reductions.py: "sum"
def cumulative_sum(
    x: Array,
    /,
    *,
    axis: SupportsIndex | None = None,
    dtype: Any = None,
    include_initial: bool = False,
) -> Array:
    """Compute the cumulative sum along an axis.

    Args:
        x: Input array of numeric or boolean dtype. Booleans count as 0 and 1.
        axis: Axis along which to accumulate. Default: the only axis of a one-dimensional array.
        dtype: Result dtype. Default: the dtype of `x`; 64-bit for integers and booleans.
        include_initial: If True, the result begins with the initial value 0.

    Returns:
        Array of the shape of `x`; with `include_initial`, the axis is longer by 1.

    Raises:
        ArrayTypeError: If `x` has an unsupported dtype.
        ArrayIndexError: If `axis` is out of bounds.
        ArrayValueError: If `axis` is None and `x` does not have exactly one axis.

    >>> import tecomp.array as xp
    >>> xp.cumulative_sum(xp.asarray([1, 2, 3]), include_initial=True)
    Array([0, 1, 3, 6], dtype=int64)
    """

# tecomp/operations/reductions.py: "logsumexp"
def logsumexp(x: Array, /, *, axis: Axes = None, keepdims: bool = False) -> Array:
    """Compute `log(sum(exp(x)))` along the given axes without intermediate overflow.

    Args:
        x: Input array of real floating-point dtype.
        axis: Axis or axes along which to compute. Negative values count from the last axis.
            Default: all axes.
        keepdims: If True, keep reduced axes with size 1.

    Returns:
        Array of logarithms; an empty reduction gives -infinity.

    Raises:
        ArrayTypeError: If `x` has an unsupported dtype.
        ArrayIndexError: If `axis` is out of bounds.
        ArrayValueError: If `axis` contains duplicates.

    >>> import tecomp.array as xp
    >>> xp.logsumexp(xp.asarray([1000.0, 1000.0]))
    Array(1000.69314718, dtype=float64)
    """

# tecomp/operations/reductions.py: "max"
def max(x: Array, /, *, axis: Axes = None, keepdims: bool = False) -> Array:
    """Compute the maximum along the given axes; NaN propagates.

    Args:
        x: Input array of real-valued dtype.
        axis: Axis or axes of nonzero size along which to compute. Negative values count from the
            last axis. Default: all axes.
        keepdims: If True, keep reduced axes with size 1.

    Returns:
        Array of maxima.

    Raises:
        ArrayTypeError: If `x` has an unsupported dtype.
        ArrayIndexError: If `axis` is out of bounds.
        ArrayValueError: If an axis has size 0, or `axis` contains duplicates.

    >>> import tecomp.array as xp
    >>> xp.max(xp.asarray([[1, 5, 3], [4, 2, 6]]), axis=1)
    Array([5, 6], dtype=int64)
    """

# tecomp/operations/reductions.py: "mean"
def mean(x: Array, /, *, axis: Axes = None, keepdims: bool = False) -> Array:
    """Compute the arithmetic mean along the given axes; an empty reduction gives NaN.

    Args:
        x: Input array of floating-point dtype, real or complex.
        axis: Axis or axes along which to compute. Negative values count from the last axis.
            Default: all axes.
        keepdims: If True, keep reduced axes with size 1.

    Returns:
        Array of means.

    Raises:
        ArrayTypeError: If `x` has an unsupported dtype.
        ArrayIndexError: If `axis` is out of bounds.
        ArrayValueError: If `axis` contains duplicates.

    >>> import tecomp.array as xp
    >>> xp.mean(xp.asarray([1.0, 2.0, 6.0]))
    Array(3., dtype=float64)
    """

# tecomp/operations/reductions.py: "min"
def min(x: Array, /, *, axis: Axes = None, keepdims: bool = False) -> Array:
    """Compute the minimum along the given axes; NaN propagates.

    Args:
        x: Input array of real-valued dtype.
        axis: Axis or axes of nonzero size along which to compute. Negative values count from the
            last axis. Default: all axes.
        keepdims: If True, keep reduced axes with size 1.

    Returns:
        Array of minima.

    Raises:
        ArrayTypeError: If `x` has an unsupported dtype.
        ArrayIndexError: If `axis` is out of bounds.
        ArrayValueError: If an axis has size 0, or `axis` contains duplicates.

    >>> import tecomp.array as xp
    >>> xp.min(xp.asarray([[1, 5, 3], [4, 2, 6]]), axis=1)
    Array([1, 2], dtype=int64)
    """

# tecomp/operations/reductions.py: "prod"
def prod(x: Array, /, *, axis: Axes = None, dtype: Any = None, keepdims: bool = False) -> Array:
    """Compute the product along the given axes; an empty reduction gives 1.

    Args:
        x: Input array of numeric or boolean dtype. Booleans count as 0 and 1.
        axis: Axis or axes along which to compute. Negative values count from the last axis.
            Default: all axes.
        dtype: Result dtype. Default: the dtype of `x`; 64-bit for integers and booleans.
        keepdims: If True, keep reduced axes with size 1.

    Returns:
        Array of products.

    Raises:
        ArrayTypeError: If `x` has an unsupported dtype.
        ArrayIndexError: If `axis` is out of bounds.
        ArrayValueError: If `axis` contains duplicates.

    >>> import tecomp.array as xp
    >>> xp.prod(xp.asarray([1.5, 2.0, 4.0]))
    Array(12., dtype=float64)
    """

# tecomp/operations/reductions.py: "std"
def std(
    x: Array, /, *, axis: Axes = None, correction: float = 0.0, keepdims: bool = False
) -> Array:
    """Compute the standard deviation along the given axes: the square root of `var`.

    Args:
        x: Input array of floating-point dtype, real or complex.
        axis: Axis or axes along which to compute. Negative values count from the last axis.
            Default: all axes.
        correction: Number subtracted from the count of elements in the divisor. 1 gives the sample
            estimate. Default: 0.
        keepdims: If True, keep reduced axes with size 1.

    Returns:
        Standard deviations of real dtype; NaN where the count of elements does not exceed
        `correction`.

    Raises:
        ArrayTypeError: If `x` has an unsupported dtype.
        ArrayIndexError: If `axis` is out of bounds.
        ArrayValueError: If `axis` contains duplicates.

    >>> import tecomp.array as xp
    >>> xp.std(xp.asarray([1.0, 1.0, 5.0, 5.0]))
    Array(2., dtype=float64)
    """

# tecomp/operations/reductions.py: "sum"
def sum(x: Array, /, *, axis: Axes = None, dtype: Any = None, keepdims: bool = False) -> Array:
    """Compute the sum along the given axes; an empty reduction gives 0.

    Args:
        x: Input array of numeric or boolean dtype. Booleans count as 0 and 1.
        axis: Axis or axes along which to compute. Negative values count from the last axis.
            Default: all axes.
        dtype: Result dtype. Default: the dtype of `x`; 64-bit for integers and booleans.
        keepdims: If True, keep reduced axes with size 1.

    Returns:
        Array of sums.

    Raises:
        ArrayTypeError: If `x` has an unsupported dtype.
        ArrayIndexError: If `axis` is out of bounds.
        ArrayValueError: If `axis` contains duplicates.

    >>> import tecomp.array as xp
    >>> xp.sum(xp.asarray([[1, 2, 3], [4, 5, 6]]), axis=0)
    Array([5, 7, 9], dtype=int64)
    """

# tecomp/operations/reductions.py: "var"
def var(
    x: Array, /, *, axis: Axes = None, correction: float = 0.0, keepdims: bool = False
) -> Array:
    """Compute the variance along the given axes: the mean squared deviation from the mean.

    Args:
        x: Input array of floating-point dtype, real or complex.
        axis: Axis or axes along which to compute. Negative values count from the last axis.
            Default: all axes.
        correction: Number subtracted from the count of elements in the divisor. 1 gives the sample
            estimate. Default: 0.
        keepdims: If True, keep reduced axes with size 1.

    Returns:
        Variances of real dtype; NaN where the count of elements does not exceed `correction`.

    Raises:
        ArrayTypeError: If `x` has an unsupported dtype.
        ArrayIndexError: If `axis` is out of bounds.
        ArrayValueError: If `axis` contains duplicates.

    >>> import tecomp.array as xp
    >>> xp.var(xp.asarray([1.0, 2.0, 6.0]), correction=1)
    Array(7., dtype=float64)
    """
