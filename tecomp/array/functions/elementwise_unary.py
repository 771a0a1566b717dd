"""Functions of the elements of one array, each result made of what is at its place.

Each takes arrays of the element types that the standard names, and raises ArrayTypeError for
others.
"""

from __future__ import annotations

from tecomp.array.array_object import Array, made, node_of
from tecomp.array.graph.node import record
from tecomp.array.indexing.getitem import truth_of
from tecomp.ptensor.operations.elementwise import FUNCTIONS


def abs(x: Array, /) -> Array:
    """The size of each element; that of a complex number is real.

    Args:
        x: numbers, real or complex.

    Raises:
        ArrayTypeError: `x` is of other elements.

    >>> import tecomp.array as xp
    >>> xp.abs(xp.asarray([-1.5, 2.0]))
    Array([1.5, 2. ], dtype=float64)
    """
    return _made_of("abs", x)


def acos(x: Array, /) -> Array:
    """The angle in [0, pi] whose cosine is the element.

    Args:
        x: floating-point numbers, real or complex.

    Raises:
        ArrayTypeError: `x` is of other elements.

    >>> import tecomp.array as xp
    >>> xp.acos(xp.asarray([1.0, 0.0]))
    Array([0.        , 1.57079633], dtype=float64)
    """
    return _made_of("acos", x)


def acosh(x: Array, /) -> Array:
    """The inverse of `cosh` of each element, at least 0.

    Args:
        x: floating-point numbers, real or complex.

    Raises:
        ArrayTypeError: `x` is of other elements.

    >>> import tecomp.array as xp
    >>> xp.acosh(xp.asarray([1.0, 2.0]))
    Array([0.       , 1.3169579], dtype=float64)
    """
    return _made_of("acosh", x)


def asin(x: Array, /) -> Array:
    """The angle in [-pi/2, pi/2] whose sine is the element.

    Args:
        x: floating-point numbers, real or complex.

    Raises:
        ArrayTypeError: `x` is of other elements.

    >>> import tecomp.array as xp
    >>> xp.asin(xp.asarray([0.0, 1.0]))
    Array([0.        , 1.57079633], dtype=float64)
    """
    return _made_of("asin", x)


def asinh(x: Array, /) -> Array:
    """The inverse of `sinh` of each element.

    Args:
        x: floating-point numbers, real or complex.

    Raises:
        ArrayTypeError: `x` is of other elements.

    >>> import tecomp.array as xp
    >>> xp.asinh(xp.asarray([0.0, 1.0]))
    Array([0.        , 0.88137359], dtype=float64)
    """
    return _made_of("asinh", x)


def atan(x: Array, /) -> Array:
    """The angle in [-pi/2, pi/2] whose tangent is the element.

    Args:
        x: floating-point numbers, real or complex.

    Raises:
        ArrayTypeError: `x` is of other elements.

    >>> import tecomp.array as xp
    >>> xp.atan(xp.asarray([0.0, 1.0]))
    Array([0.        , 0.78539816], dtype=float64)
    """
    return _made_of("atan", x)


def atanh(x: Array, /) -> Array:
    """The inverse of `tanh` of each element.

    Args:
        x: floating-point numbers, real or complex.

    Raises:
        ArrayTypeError: `x` is of other elements.

    >>> import tecomp.array as xp
    >>> xp.atanh(xp.asarray([0.0, 0.5]))
    Array([0.        , 0.54930614], dtype=float64)
    """
    return _made_of("atanh", x)


def bitwise_invert(x: Array, /) -> Array:
    """Each element with all bits turned over; of a truth value the other one.

    Args:
        x: integers or bool.

    Raises:
        ArrayTypeError: `x` is of other elements.

    >>> import tecomp.array as xp
    >>> xp.bitwise_invert(xp.asarray([0, -2]))
    Array([-1,  1], dtype=int64)
    """
    return _made_of("bitwise_invert", x)


def ceil(x: Array, /) -> Array:
    """The least integer not below each element, in its type.

    Args:
        x: real numbers.

    Raises:
        ArrayTypeError: `x` is of other elements.

    >>> import tecomp.array as xp
    >>> xp.ceil(xp.asarray([-1.5, 1.5]))
    Array([-1.,  2.], dtype=float64)
    """
    return _made_of("ceil", x)


def conj(x: Array, /) -> Array:
    """The complex conjugate of each element; real numbers stay.

    Args:
        x: numbers, real or complex.

    Raises:
        ArrayTypeError: `x` is of other elements.

    >>> import tecomp.array as xp
    >>> xp.conj(xp.asarray([1 + 2j]))
    Array([1.-2.j], dtype=complex128)
    """
    return _made_of("conj", x)


def cos(x: Array, /) -> Array:
    """The cosine of each element, an angle in radians.

    Args:
        x: floating-point numbers, real or complex.

    Raises:
        ArrayTypeError: `x` is of other elements.

    >>> import tecomp.array as xp
    >>> xp.cos(xp.asarray([0.0, 1.0]))
    Array([1.        , 0.54030231], dtype=float64)
    """
    return _made_of("cos", x)


def cosh(x: Array, /) -> Array:
    """The hyperbolic cosine of each element.

    Args:
        x: floating-point numbers, real or complex.

    Raises:
        ArrayTypeError: `x` is of other elements.

    >>> import tecomp.array as xp
    >>> xp.cosh(xp.asarray([0.0, 1.0]))
    Array([1.        , 1.54308063], dtype=float64)
    """
    return _made_of("cosh", x)


def exp(x: Array, /) -> Array:
    """Euler's number to the power of each element.

    Args:
        x: floating-point numbers, real or complex.

    Raises:
        ArrayTypeError: `x` is of other elements.

    >>> import tecomp.array as xp
    >>> xp.exp(xp.asarray([0.0, 1.0]))
    Array([1.        , 2.71828183], dtype=float64)
    """
    return _made_of("exp", x)


def expm1(x: Array, /) -> Array:
    """`exp(x) - 1` of each element, exact for small ones too.

    Args:
        x: floating-point numbers, real or complex.

    Raises:
        ArrayTypeError: `x` is of other elements.

    >>> import tecomp.array as xp
    >>> xp.expm1(xp.asarray([0.0, 1e-10]))
    Array([0.e+00, 1.e-10], dtype=float64)
    """
    return _made_of("expm1", x)


def floor(x: Array, /) -> Array:
    """The greatest integer not above each element, in its type.

    Args:
        x: real numbers.

    Raises:
        ArrayTypeError: `x` is of other elements.

    >>> import tecomp.array as xp
    >>> xp.floor(xp.asarray([-1.5, 1.5]))
    Array([-2.,  1.], dtype=float64)
    """
    return _made_of("floor", x)


def imag(x: Array, /) -> Array:
    """The imaginary part of each element.

    Args:
        x: numbers, real or complex.

    Raises:
        ArrayTypeError: `x` is of other elements.

    >>> import tecomp.array as xp
    >>> xp.imag(xp.asarray([1 + 2j]))
    Array([2.], dtype=float64)
    """
    return _made_of("imag", x)


def isfinite(x: Array, /) -> Array:
    """Whether each element is neither infinite nor NaN.

    Args:
        x: numbers, real or complex.

    Raises:
        ArrayTypeError: `x` is of other elements.

    >>> import tecomp.array as xp
    >>> xp.isfinite(xp.asarray([1.0, float("inf")]))
    Array([ True, False], dtype=bool)
    """
    return _made_of("isfinite", x)


def isinf(x: Array, /) -> Array:
    """Whether each element, or a part of it, is infinite.

    Args:
        x: numbers, real or complex.

    Raises:
        ArrayTypeError: `x` is of other elements.

    >>> import tecomp.array as xp
    >>> xp.isinf(xp.asarray([1.0, float("inf")]))
    Array([False,  True], dtype=bool)
    """
    return _made_of("isinf", x)


def isnan(x: Array, /) -> Array:
    """Whether each element, or a part of it, is no number.

    Args:
        x: numbers, real or complex.

    Raises:
        ArrayTypeError: `x` is of other elements.

    >>> import tecomp.array as xp
    >>> xp.isnan(xp.asarray([1.0, float("nan")]))
    Array([False,  True], dtype=bool)
    """
    return _made_of("isnan", x)


def log(x: Array, /) -> Array:
    """The natural logarithm of each element.

    Args:
        x: floating-point numbers, real or complex.

    Raises:
        ArrayTypeError: `x` is of other elements.

    >>> import tecomp.array as xp
    >>> xp.log(xp.asarray([1.0, 2.0]))
    Array([0.        , 0.69314718], dtype=float64)
    """
    return _made_of("log", x)


def log1p(x: Array, /) -> Array:
    """`log(1 + x)` of each element, exact for small ones too.

    Args:
        x: floating-point numbers, real or complex.

    Raises:
        ArrayTypeError: `x` is of other elements.

    >>> import tecomp.array as xp
    >>> xp.log1p(xp.asarray([0.0, 1e-10]))
    Array([0.e+00, 1.e-10], dtype=float64)
    """
    return _made_of("log1p", x)


def log2(x: Array, /) -> Array:
    """The logarithm to base 2 of each element.

    Args:
        x: floating-point numbers, real or complex.

    Raises:
        ArrayTypeError: `x` is of other elements.

    >>> import tecomp.array as xp
    >>> xp.log2(xp.asarray([1.0, 8.0]))
    Array([0., 3.], dtype=float64)
    """
    return _made_of("log2", x)


def log10(x: Array, /) -> Array:
    """The logarithm to base 10 of each element.

    Args:
        x: floating-point numbers, real or complex.

    Raises:
        ArrayTypeError: `x` is of other elements.

    >>> import tecomp.array as xp
    >>> xp.log10(xp.asarray([1.0, 100.0]))
    Array([0., 2.], dtype=float64)
    """
    return _made_of("log10", x)


def logical_not(x: Array, /) -> Array:
    """Whether each element is False.

    Args:
        x: an array; numbers are true unless they are 0.

    >>> import tecomp.array as xp
    >>> xp.logical_not(xp.asarray([True, False]))
    Array([False,  True], dtype=bool)
    """
    return made(record(FUNCTIONS["logical_not"], truth_of(node_of(x, "logical_not"))))


def negative(x: Array, /) -> Array:
    """Each element with the other sign; unsigned integers wrap.

    Args:
        x: numbers, real or complex.

    Raises:
        ArrayTypeError: `x` is of other elements.

    >>> import tecomp.array as xp
    >>> xp.negative(xp.asarray([1, -2]))
    Array([-1,  2], dtype=int64)
    """
    return _made_of("negative", x)


def positive(x: Array, /) -> Array:
    """Each element as it is.

    Args:
        x: numbers, real or complex.

    Raises:
        ArrayTypeError: `x` is of other elements.

    >>> import tecomp.array as xp
    >>> xp.positive(xp.asarray([1, -2]))
    Array([ 1, -2], dtype=int64)
    """
    return _made_of("positive", x)


def real(x: Array, /) -> Array:
    """The real part of each element.

    Args:
        x: numbers, real or complex.

    Raises:
        ArrayTypeError: `x` is of other elements.

    >>> import tecomp.array as xp
    >>> xp.real(xp.asarray([1 + 2j]))
    Array([1.], dtype=float64)
    """
    return _made_of("real", x)


def reciprocal(x: Array, /) -> Array:
    """1 divided by each element.

    Args:
        x: floating-point numbers, real or complex.

    Raises:
        ArrayTypeError: `x` is of other elements.

    >>> import tecomp.array as xp
    >>> xp.reciprocal(xp.asarray([0.5, 4.0]))
    Array([2.  , 0.25], dtype=float64)
    """
    return _made_of("reciprocal", x)


def round(x: Array, /) -> Array:
    """The integer nearest to each element, of two the even one, in its type.

    Args:
        x: numbers, real or complex.

    Raises:
        ArrayTypeError: `x` is of other elements.

    >>> import tecomp.array as xp
    >>> xp.round(xp.asarray([0.5, 1.5, 2.6]))
    Array([0., 2., 3.], dtype=float64)
    """
    return _made_of("round", x)


def sign(x: Array, /) -> Array:
    """1, 0 or -1, as each element is greater than 0, 0, or less; of a complex one its direction.

    Args:
        x: numbers, real or complex.

    Raises:
        ArrayTypeError: `x` is of other elements.

    >>> import tecomp.array as xp
    >>> xp.sign(xp.asarray([-3.0, 0.0, 2.0]))
    Array([-1.,  0.,  1.], dtype=float64)
    """
    return _made_of("sign", x)


def signbit(x: Array, /) -> Array:
    """Whether the sign of each element is minus; zeros and NaN have one too.

    Args:
        x: real floating-point numbers.

    Raises:
        ArrayTypeError: `x` is of other elements.

    >>> import tecomp.array as xp
    >>> xp.signbit(xp.asarray([-0.0, 0.0]))
    Array([ True, False], dtype=bool)
    """
    return _made_of("signbit", x)


def sin(x: Array, /) -> Array:
    """The sine of each element, an angle in radians.

    Args:
        x: floating-point numbers, real or complex.

    Raises:
        ArrayTypeError: `x` is of other elements.

    >>> import tecomp.array as xp
    >>> xp.sin(xp.asarray([0.0, 1.0]))
    Array([0.        , 0.84147098], dtype=float64)
    """
    return _made_of("sin", x)


def sinh(x: Array, /) -> Array:
    """The hyperbolic sine of each element.

    Args:
        x: floating-point numbers, real or complex.

    Raises:
        ArrayTypeError: `x` is of other elements.

    >>> import tecomp.array as xp
    >>> xp.sinh(xp.asarray([0.0, 1.0]))
    Array([0.        , 1.17520119], dtype=float64)
    """
    return _made_of("sinh", x)


def square(x: Array, /) -> Array:
    """Each element times itself.

    Args:
        x: numbers, real or complex.

    Raises:
        ArrayTypeError: `x` is of other elements.

    >>> import tecomp.array as xp
    >>> xp.square(xp.asarray([3, -2]))
    Array([9, 4], dtype=int64)
    """
    return _made_of("square", x)


def sqrt(x: Array, /) -> Array:
    """The square root of each element.

    Args:
        x: floating-point numbers, real or complex.

    Raises:
        ArrayTypeError: `x` is of other elements.

    >>> import tecomp.array as xp
    >>> xp.sqrt(xp.asarray([4.0, 2.0]))
    Array([2.        , 1.41421356], dtype=float64)
    """
    return _made_of("sqrt", x)


def tan(x: Array, /) -> Array:
    """The tangent of each element, an angle in radians.

    Args:
        x: floating-point numbers, real or complex.

    Raises:
        ArrayTypeError: `x` is of other elements.

    >>> import tecomp.array as xp
    >>> xp.tan(xp.asarray([0.0, 1.0]))
    Array([0.        , 1.55740772], dtype=float64)
    """
    return _made_of("tan", x)


def tanh(x: Array, /) -> Array:
    """The hyperbolic tangent of each element.

    Args:
        x: floating-point numbers, real or complex.

    Raises:
        ArrayTypeError: `x` is of other elements.

    >>> import tecomp.array as xp
    >>> xp.tanh(xp.asarray([0.0, 1.0]))
    Array([0.        , 0.76159416], dtype=float64)
    """
    return _made_of("tanh", x)


def trunc(x: Array, /) -> Array:
    """Each element without its fraction, in its type.

    Args:
        x: real numbers.

    Raises:
        ArrayTypeError: `x` is of other elements.

    >>> import tecomp.array as xp
    >>> xp.trunc(xp.asarray([-1.5, 1.5]))
    Array([-1.,  1.], dtype=float64)
    """
    return _made_of("trunc", x)


def _made_of(kind: str, x: Array) -> Array:
    return made(record(FUNCTIONS[kind], node_of(x, kind)))
