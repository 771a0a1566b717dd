"""Element-wise functions of one array.

Each function accepts the dtypes that the standard names and raises ArrayTypeError for other dtypes.
"""

from __future__ import annotations

from tecomp.array.array_object import Array, from_node, node_of
from tecomp.array.graph.node import record
from tecomp.array.indexing.getitem import truth_of
from tecomp.ptensor.operations.elementwise import FUNCTIONS


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
    return _made_of("abs", x)


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
    return _made_of("acos", x)


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
    return _made_of("acosh", x)


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
    return _made_of("asin", x)


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
    return _made_of("asinh", x)


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
    return _made_of("atan", x)


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
    return _made_of("atanh", x)


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
    return _made_of("bitwise_invert", x)


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
    return _made_of("ceil", x)


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
    return _made_of("conj", x)


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
    return _made_of("cos", x)


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
    return _made_of("cosh", x)


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
    return _made_of("exp", x)


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
    return _made_of("expm1", x)


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
    return _made_of("floor", x)


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
    return _made_of("imag", x)


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
    return _made_of("isfinite", x)


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
    return _made_of("isinf", x)


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
    return _made_of("isnan", x)


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
    return _made_of("log", x)


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
    return _made_of("log1p", x)


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
    return _made_of("log2", x)


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
    return _made_of("log10", x)


def logical_not(x: Array, /) -> Array:
    """Compute the logical NOT element-wise.

    Args:
        x: Input array of any dtype. Nonzero numbers count as True.

    >>> import tecomp.array as xp
    >>> xp.logical_not(xp.asarray([True, False]))
    Array([False,  True], dtype=bool)
    """
    return from_node(record(FUNCTIONS["logical_not"], truth_of(node_of(x, "logical_not"))))


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
    return _made_of("negative", x)


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
    return _made_of("positive", x)


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
    return _made_of("real", x)


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
    return _made_of("reciprocal", x)


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
    return _made_of("round", x)


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
    return _made_of("sign", x)


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
    return _made_of("signbit", x)


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
    return _made_of("sin", x)


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
    return _made_of("sinh", x)


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
    return _made_of("square", x)


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
    return _made_of("sqrt", x)


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
    return _made_of("tan", x)


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
    return _made_of("tanh", x)


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
    return _made_of("trunc", x)


def _made_of(kind: str, x: Array) -> Array:
    return from_node(record(FUNCTIONS[kind], node_of(x, kind)))
