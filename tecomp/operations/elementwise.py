"""Table of the element-wise functions."""

from __future__ import annotations

from tecomp.operations import derivatives, formulas
from tecomp.operations.rows import (
    ALL,
    BITS,
    FLOATING,
    FLOATS,
    INTEGERS,
    NUMERIC,
    REAL,
    TO_BOOL,
    TO_FLOAT,
    TO_PART,
    TRUTH,
    UNCHANGED,
    Op,
)

UNARY = (
    Op(
        "abs", "Compute the absolute value element-wise; the result of a complex array is real.",
        NUMERIC, example="[-1.5, 2.0]", shown="Array([1.5, 2. ], dtype=float64)", gives=TO_PART,
        numpy="absolute", derivative=derivatives.absolute,
        surfaces="topi array",
        texts={"topi": "Compute the absolute value element-wise."},
    ),
    Op(
        "acos",
        "Compute the inverse cosine element-wise, in radians; real results are in [0, pi].",
        FLOATING, example="[1.0, 0.0]", shown="Array([0.        , 1.57079633], dtype=float64)",
        numpy="arccos", call="acos", derivative=derivatives.acos, ulps=(1.2, 1.2), cost=8,
        surfaces="te topi array",
        texts={
            "te": "Compute the inverse cosine of `x`, in [0, pi] radians.",
            "topi": "Compute the inverse cosine element-wise, in radians in [0, pi].",
        },
    ),
    Op(
        "acosh",
        "Compute the inverse hyperbolic cosine element-wise; real results are at least 0.",
        FLOATING, example="[1.0, 2.0]", shown="Array([0.       , 1.3169579], dtype=float64)",
        numpy="arccosh", call="acosh", derivative=derivatives.acosh, ulps=(0.51, 2.0), cost=8,
        surfaces="te topi array",
        texts={
            "te": "Compute the non-negative inverse hyperbolic cosine of `x`.",
            "topi": "Compute the inverse hyperbolic cosine element-wise; the result is "
            "non-negative.",
        },
    ),
    Op(
        "asin",
        "Compute the inverse sine element-wise, in radians; real results are in [-pi/2, pi/2].",
        FLOATING, example="[0.0, 1.0]", shown="Array([0.        , 1.57079633], dtype=float64)",
        numpy="arcsin", call="asin", derivative=derivatives.asin, ulps=(2.5, 2.6), cost=8,
        surfaces="te topi array",
        texts={
            "te": "Compute the inverse sine of `x`, in [-pi/2, pi/2] radians.",
            "topi": "Compute the inverse sine element-wise, in radians in [-pi/2, pi/2].",
        },
    ),
    Op(
        "asinh", "Compute the inverse hyperbolic sine element-wise.", FLOATING,
        example="[0.0, 1.0]", shown="Array([0.        , 0.88137359], dtype=float64)",
        numpy="arcsinh", call="asinh", derivative=derivatives.asinh, ulps=(0.51, 1.8), cost=8,
        surfaces="te topi array",
        texts={"te": "Compute the inverse hyperbolic sine of `x`."},
    ),
    Op(
        "atan",
        "Compute the inverse tangent element-wise, in radians; real results are in [-pi/2, pi/2].",
        FLOATING, example="[0.0, 1.0]", shown="Array([0.        , 0.78539816], dtype=float64)",
        numpy="arctan", call="atan", derivative=derivatives.atan, ulps=(1.6, 1.8), cost=8,
        surfaces="te topi array",
        texts={
            "te": "Compute the inverse tangent of `x`, in [-pi/2, pi/2] radians.",
            "topi": "Compute the inverse tangent element-wise, in radians in [-pi/2, pi/2].",
        },
    ),
    Op(
        "atanh", "Compute the inverse hyperbolic tangent element-wise.", FLOATING,
        example="[0.0, 0.5]", shown="Array([0.        , 0.54930614], dtype=float64)",
        numpy="arctanh", call="atanh", derivative=derivatives.atanh, ulps=(0.51, 2.2), cost=8,
        surfaces="te topi array",
        texts={"te": "Compute the inverse hyperbolic tangent of `x`."},
    ),
    Op(
        "bitwise_invert", "Invert all bits element-wise; negate booleans logically.", BITS,
        example="[0, -2]", shown="Array([-1,  1], dtype=int64)", numpy="invert",
        formula=lambda m, x: ~x, surfaces="topi:bitwise_not array",
    ),
    Op(
        "ceil", "Round up to an integer element-wise; the dtype is kept.", REAL,
        example="[-1.5, 1.5]", shown="Array([-1.,  2.], dtype=float64)", call="ceil",
        derivative=derivatives.zero,
        of_integers=UNCHANGED, surfaces="te topi array",
        texts={"te": "Round `x` up to an integer, in the dtype of `x`."},
    ),
    Op(
        "conj", "Compute the complex conjugate element-wise; real arrays are returned unchanged.",
        NUMERIC, example="[1 + 2j]", shown="Array([1.-2.j], dtype=complex128)", numpy="conjugate",
        derivative=derivatives.conj,
        surfaces="array",
    ),
    Op(
        "cos", "Compute the cosine of angles in radians element-wise.", FLOATING,
        example="[0.0, 1.0]", shown="Array([1.        , 0.54030231], dtype=float64)", call="cos",
        derivative=derivatives.cos,
        ulps=(1.6, 2.3), cost=8, surfaces="te topi array",
        texts={"te": "Compute the cosine of an angle in radians."},
    ),
    Op(
        "cosh", "Compute the hyperbolic cosine element-wise.", FLOATING, example="[0.0, 1.0]",
        shown="Array([1.        , 1.54308063], dtype=float64)", call="cosh",
        derivative=derivatives.cosh,
        ulps=(1.7, 1.7), cost=8, surfaces="te topi array",
        texts={"te": "Compute the hyperbolic cosine of `x`."},
    ),
    Op(
        "digamma",
        "Compute the derivative of the logarithm of the gamma function element-wise.",
        FLOATS, example="[0.5, 1.0]", shown="Array([-1.96351003, -0.57721566], dtype=float64)",
        numpy="scipy.special:digamma", call="digamma", formula=formulas.digamma, ulps=(0.51, 7.5),
        cost=64, surfaces="te topi array",
        texts={"te": "Compute the derivative of the logarithm of the gamma function of `x`."},
    ),
    Op(
        "erf", "Compute the error function element-wise.", FLOATS, numpy="scipy.special:erf",
        call="erf", derivative=derivatives.erf, ulps=(2.0, 2.0), cost=8, surfaces="te topi",
        texts={"te": "Compute the error function of `x`."},
    ),
    Op(
        "erfinv", "Compute the inverse error function element-wise; NaN outside of [-1, 1].",
        FLOATS, example="[0.0, 0.5]", shown="Array([0.        , 0.47693628], dtype=float64)",
        numpy="scipy.special:erfinv", call="erfinv", derivative=derivatives.erfinv,
        formula=formulas.erfinv, ulps=(4.5, 6.5),
        cost=32, surfaces="te topi array",
        texts={"te": "Compute the inverse error function of `x`; NaN outside of [-1, 1]."},
    ),
    Op(
        "exp", "Compute the exponential element-wise.", FLOATING, example="[0.0, 1.0]",
        shown="Array([1.        , 2.71828183], dtype=float64)", call="exp",
        derivative=derivatives.exp,
        ulps=(1.2, 1.2), cost=8, surfaces="te topi array",
        texts={"te": "Compute the exponential of `x`."},
    ),
    Op(
        "exp2", "Compute 2 to the power `x`.", FLOATS, call="exp2", derivative=derivatives.exp2,
        ulps=(1.3, 1.3),
        cost=8, surfaces="te",
    ),
    Op(
        "expm1", "Compute `exp(x) - 1` element-wise, accurately near zero.", FLOATING,
        example="[0.0, 1e-10]", shown="Array([0.e+00, 1.e-10], dtype=float64)", call="expm1",
        derivative=derivatives.expm1,
        ulps=(1.6, 2.2), cost=8, surfaces="te array",
        texts={"te": "Compute `exp(x) - 1`, accurately near zero."},
    ),
    Op(
        "fabs", "Compute the absolute value of a float.", FLOATS, call="fabs",
        derivative=derivatives.fabs,
        surfaces="te",
    ),
    Op(
        "floor", "Round down to an integer element-wise; the dtype is kept.", REAL,
        example="[-1.5, 1.5]", shown="Array([-2.,  1.], dtype=float64)", call="floor",
        derivative=derivatives.zero,
        of_integers=UNCHANGED, surfaces="te topi array",
        texts={"te": "Round `x` down to an integer, in the dtype of `x`."},
    ),
    Op(
        "imag", "Return the imaginary part element-wise.", NUMERIC, example="[1 + 2j]",
        shown="Array([2.], dtype=float64)", gives=TO_PART, derivative=derivatives.imag,
        surfaces="array",
    ),
    Op(
        "isfinite", "Test element-wise for values that are neither infinite nor NaN.", NUMERIC,
        example='[1.0, float("inf")]', shown="Array([ True, False], dtype=bool)", gives=TO_BOOL,
        call="isfinite", of_integers=True, surfaces="te topi array",
        texts={
            "te": "Return whether `x` is neither infinite nor NaN; True for integers.",
            "topi": "Test element-wise for finite values, which are neither infinite nor NaN.",
        },
    ),
    Op(
        "isinf",
        "Test element-wise for infinities, in the real or imaginary part of complex values.",
        NUMERIC, example='[1.0, float("inf")]', shown="Array([False,  True], dtype=bool)",
        gives=TO_BOOL, call="isinf", of_integers=False, surfaces="te topi array",
        texts={
            "te": "Return whether `x` is positive or negative infinity; False for integers.",
            "topi": "Test element-wise for infinities of either sign.",
        },
    ),
    Op(
        "isnan", "Test element-wise for NaN, in the real or imaginary part of complex values.",
        NUMERIC, example='[1.0, float("nan")]', shown="Array([False,  True], dtype=bool)",
        gives=TO_BOOL, call="isnan", of_integers=False, surfaces="te topi array",
        texts={
            "te": "Return whether `x` is NaN; False for integers.",
            "topi": "Test element-wise for NaN.",
        },
    ),
    Op(
        "lgamma",
        "Compute the logarithm of the absolute value of the gamma function element-wise.",
        FLOATS, example="[0.5, 4.0]", shown="Array([0.57236494, 1.79175947], dtype=float64)",
        numpy="scipy.special:gammaln", call="lgamma", derivative=derivatives.lgamma,
        formula=formulas.lgamma, ulps=(0.51, 5.5),
        cost=64, surfaces="te topi array",
        texts={"te": "Compute the logarithm of the absolute value of the gamma function of `x`."},
    ),
    Op(
        "log", "Compute the natural logarithm element-wise.", FLOATING, example="[1.0, 2.0]",
        shown="Array([0.        , 0.69314718], dtype=float64)", call="log",
        derivative=derivatives.natural_logarithm,
        ulps=(1.0, 1.0), cost=8, surfaces="te topi array",
        texts={"te": "Compute the natural logarithm of `x`."},
    ),
    Op(
        "log10", "Compute the base-10 logarithm element-wise.", FLOATING, example="[1.0, 100.0]",
        shown="Array([0., 2.], dtype=float64)", call="log10", derivative=derivatives.log10,
        ulps=(2.2, 2.2),
        cost=8, surfaces="te topi array",
        texts={"te": "Compute the base-10 logarithm of `x`."},
    ),
    Op(
        "log1p", "Compute `log(1 + x)` element-wise, accurately near zero.", FLOATING,
        example="[0.0, 1e-10]", shown="Array([0.e+00, 1.e-10], dtype=float64)", call="log1p",
        derivative=derivatives.log1p,
        ulps=(1.1, 1.2), cost=8, surfaces="te array",
        texts={"te": "Compute `log(1 + x)`, accurately near zero."},
    ),
    Op(
        "log2", "Compute the base-2 logarithm element-wise.", FLOATING, example="[1.0, 8.0]",
        shown="Array([0., 3.], dtype=float64)", call="log2", derivative=derivatives.log2,
        ulps=(2.1, 2.2),
        cost=8, surfaces="te topi array",
        texts={"te": "Compute the base-2 logarithm of `x`."},
    ),
    Op(
        "logical_not", "Compute the logical NOT element-wise.", TRUTH, example="[True, False]",
        shown="Array([False,  True], dtype=bool)", gives=TO_BOOL, surfaces="topi array",
    ),
    Op(
        "nearbyint",
        "Round to the nearest integer, ties to even, in the dtype of `x`; as `numpy.round`.",
        FLOATS, numpy="rint", call="nearbyint", derivative=derivatives.zero, of_integers=UNCHANGED,
        surfaces="te",
    ),
    Op(
        "negative", "Negate element-wise; unsigned integers wrap around.", NUMERIC,
        example="[1, -2]", shown="Array([-1,  2], dtype=int64)",
        formula=lambda m, x: -x, derivative=derivatives.negative,
        surfaces="topi array",
        texts={"topi": "Negate element-wise; bool gives int32."},
    ),
    Op(
        "positive", "Return the elements unchanged.", NUMERIC, example="[1, -2]",
        shown="Array([ 1, -2], dtype=int64)",
        formula=lambda m, x: x, derivative=derivatives.identity,
        surfaces="topi:identity array",
    ),
    Op(
        "real", "Return the real part element-wise.", NUMERIC, example="[1 + 2j]",
        shown="Array([1.], dtype=float64)", gives=TO_PART, derivative=derivatives.identity,
        surfaces="array",
    ),
    Op(
        "reciprocal", "Compute `1 / x` element-wise.", FLOATING, example="[0.5, 4.0]",
        shown="Array([2.  , 0.25], dtype=float64)", cost=8, derivative=derivatives.reciprocal,
        surfaces="array",
    ),
    Op(
        "round",
        "Round to the nearest integer element-wise, ties away from zero; the dtype is kept.",
        FLOATS, numpy=None, call="round", derivative=derivatives.zero, of_integers=UNCHANGED,
        surfaces="te topi",
        texts={
            "te": "Round to the nearest integer, ties away from zero, in the dtype of `x`; as in C "
            "and TVM.\n\n`te.nearbyint` rounds ties to the even integer, as `numpy.round` does.",
        },
    ),
    Op(
        "round",
        "Round to the nearest integer element-wise, with ties to even; the dtype is kept.",
        NUMERIC, example="[0.5, 1.5, 2.6]", shown="Array([0., 2., 3.], dtype=float64)",
        numpy="rint", derivative=derivatives.zero, surfaces="array",
    ),
    Op(
        "rsqrt", "Compute the reciprocal square root element-wise.", FLOATS, numpy=None,
        call="rsqrt", derivative=derivatives.rsqrt, cost=8, surfaces="te topi",
        texts={"te": "Compute the reciprocal square root of `x`."},
    ),
    Op(
        "sigmoid", "Compute `1 / (1 + exp(-x))` element-wise.", FLOATS,
        numpy="scipy.special:expit", call="sigmoid", derivative=derivatives.sigmoid,
        ulps=(2.5, 2.5), cost=8, surfaces="te topi",
        texts={"te": "Compute the logistic function `1 / (1 + exp(-x))`."},
    ),
    Op(
        "sign",
        "Return the sign element-wise: -1, 0 or 1 for real, `x / abs(x)` for complex values.",
        NUMERIC, example="[-3.0, 0.0, 2.0]", shown="Array([-1.,  0.,  1.], dtype=float64)",
        derivative=derivatives.sign,
        surfaces="array",
    ),
    Op(
        "signbit", "Return whether the sign bit is set element-wise, also for zeros and NaN.",
        FLOATS, example="[-0.0, 0.0]", shown="Array([ True, False], dtype=bool)", gives=TO_BOOL,
        surfaces="array",
    ),
    Op(
        "sin", "Compute the sine of angles in radians element-wise.", FLOATING,
        example="[0.0, 1.0]", shown="Array([0.        , 0.84147098], dtype=float64)", call="sin",
        derivative=derivatives.sin,
        ulps=(1.6, 2.3), cost=8, surfaces="te topi array",
        texts={"te": "Compute the sine of an angle in radians."},
    ),
    Op(
        "sinh", "Compute the hyperbolic sine element-wise.", FLOATING, example="[0.0, 1.0]",
        shown="Array([0.        , 1.17520119], dtype=float64)", call="sinh",
        derivative=derivatives.sinh,
        ulps=(1.7, 1.8), cost=8, surfaces="te topi array",
        texts={"te": "Compute the hyperbolic sine of `x`."},
    ),
    Op(
        "sqrt", "Compute the square root element-wise.", FLOATING, example="[4.0, 2.0]",
        shown="Array([2.        , 1.41421356], dtype=float64)", call="sqrt",
        derivative=derivatives.square_root,
        cost=8, surfaces="te topi array",
        texts={"te": "Compute the square root of `x`."},
    ),
    Op(
        "square", "Compute the square element-wise.", NUMERIC, example="[3, -2]",
        shown="Array([9, 4], dtype=int64)", formula=lambda m, x: x * x,
        derivative=derivatives.square, surfaces="array",
    ),
    Op(
        "tan", "Compute the tangent of angles in radians element-wise.", FLOATING,
        example="[0.0, 1.0]", shown="Array([0.        , 1.55740772], dtype=float64)", call="tan",
        derivative=derivatives.tan,
        ulps=(2.6, 3.2), cost=8, surfaces="te topi array",
        texts={"te": "Compute the tangent of an angle in radians."},
    ),
    Op(
        "tanh", "Compute the hyperbolic tangent element-wise.", FLOATING, example="[0.0, 1.0]",
        shown="Array([0.        , 0.76159416], dtype=float64)", call="tanh",
        derivative=derivatives.tanh,
        ulps=(2.4, 2.7), cost=8, surfaces="te topi array",
        texts={"te": "Compute the hyperbolic tangent of `x`."},
    ),
    Op(
        "trunc", "Round towards zero to an integer element-wise; the dtype is kept.", REAL,
        example="[-1.5, 1.5]", shown="Array([-1.,  1.], dtype=float64)", call="trunc",
        derivative=derivatives.zero,
        of_integers=UNCHANGED, surfaces="te topi array",
        texts={"te": "Round `x` towards zero to an integer, in the dtype of `x`."},
    ),
)

BINARY = (
    Op(
        "add", "Compute the sum element-wise.", NUMERIC, example="[1, 2], [10, 20]",
        shown="Array([11, 22], dtype=int64)", arity=2, derivative=derivatives.add,
        formula=lambda m, x, y: x + y, surfaces="topi array",
    ),
    Op(
        "atan2", "Compute the angle of the point (x2, x1) element-wise, in radians in [-pi, pi].",
        FLOATS, example="[1.0, -1.0], [1.0, -1.0]",
        shown="Array([ 0.78539816, -2.35619449], dtype=float64)", arity=2, numpy="arctan2",
        call="atan2", derivative=derivatives.atan2, ulps=(1.6, 1.8), cost=8, surfaces="topi array",
    ),
    Op(
        "bitwise_and", "Compute the bitwise AND element-wise.", BITS, example="[6, 5], [3, 4]",
        shown="Array([2, 4], dtype=int64)", arity=2,
        formula=lambda m, x, y: x & y, surfaces="topi array",
    ),
    Op(
        "bitwise_left_shift",
        "Shift bits left element-wise; shifts by the bit width or more give 0.", INTEGERS,
        example="[1, 3], [4, 1]", shown="Array([16,  6], dtype=int64)", arity=2,
        numpy="left_shift", formula=lambda m, x, y: x << y, surfaces="topi:left_shift array",
    ),
    Op(
        "bitwise_or", "Compute the bitwise OR element-wise.", BITS, example="[6, 5], [3, 4]",
        shown="Array([7, 5], dtype=int64)", arity=2,
        formula=lambda m, x, y: x | y, surfaces="topi array",
    ),
    Op(
        "bitwise_right_shift", "Shift bits right element-wise, with sign extension.", INTEGERS,
        example="[16, -3], [2, 1]", shown="Array([ 4, -2], dtype=int64)", arity=2,
        numpy="right_shift", formula=lambda m, x, y: x >> y, surfaces="topi:right_shift array",
    ),
    Op(
        "bitwise_xor", "Compute the bitwise XOR element-wise.", BITS, example="[6, 5], [3, 4]",
        shown="Array([5, 1], dtype=int64)", arity=2,
        formula=lambda m, x, y: x ^ y, surfaces="topi array",
    ),
    Op(
        "copysign", "Combine the magnitude of `x1` with the sign of `x2` element-wise.", FLOATS,
        example="[1.0, 2.0], [-0.0, 3.0]", shown="Array([-1.,  2.], dtype=float64)", arity=2,
        derivative=derivatives.copysign,
        surfaces="array",
    ),
    Op(
        "divide", "Divide element-wise; integers give float64.", NUMERIC,
        example="[1.0, 2.0], [4.0, 0.5]", shown="Array([0.25, 4.  ], dtype=float64)", arity=2,
        derivative=derivatives.divide,
        gives=TO_FLOAT, cost=8, formula=lambda m, x, y: x / y, surfaces="array",
    ),
    Op(
        "divide", "Divide element-wise; integers are rounded towards zero, as by `te.div`.", REAL,
        arity=2, numpy=None, cost=8, surfaces="topi",
    ),
    Op(
        "equal", "Compare element-wise for `x1 == x2`.", ALL, example="[1, 2], [1, 3]",
        shown="Array([ True, False], dtype=bool)", arity=2, gives=TO_BOOL,
        formula=lambda m, x, y: x == y, surfaces="topi array",
    ),
    Op(
        "floor_divide",
        "Divide and round down element-wise; the dtype is kept, integers divided by 0 give 0.",
        REAL, example="[7, -7], [2, 2]", shown="Array([ 3, -4], dtype=int64)", arity=2,
        derivative=derivatives.floor_divide,
        cost=8, surfaces="array",
    ),
    Op(
        "floor_divide",
        "Divide element-wise and round towards negative infinity; integers divided by 0 give 0.",
        REAL, arity=2, cost=8, surfaces="topi",
    ),
    Op(
        "fmod",
        "Compute the remainder of `x / y` rounded towards zero, with the sign of `x`, as in C.",
        FLOATS, arity=2, call="fmod", derivative=derivatives.fmod, cost=8, surfaces="te",
    ),
    Op(
        "greater", "Compare element-wise for `x1 > x2`.", REAL, example="[1, 2], [0, 3]",
        shown="Array([ True, False], dtype=bool)", arity=2, gives=TO_BOOL,
        formula=lambda m, x, y: x > y, surfaces="topi array",
    ),
    Op(
        "greater_equal", "Compare element-wise for `x1 >= x2`.", REAL, example="[1, 2], [1, 3]",
        shown="Array([ True, False], dtype=bool)", arity=2, gives=TO_BOOL,
        formula=lambda m, x, y: x >= y, surfaces="topi array",
    ),
    Op(
        "hypot", "Compute `sqrt(x1 * x1 + x2 * x2)` element-wise without intermediate overflow.",
        FLOATS, example="[3.0, 5.0], [4.0, 12.0]", shown="Array([ 5., 13.], dtype=float64)",
        arity=2, call="hypot", derivative=derivatives.hypot, ulps=(0.51, 1.3), cost=8,
        surfaces="te array",
        texts={"te": "Compute `sqrt(x * x + y * y)` without intermediate overflow."},
    ),
    Op(
        "less", "Compare element-wise for `x1 < x2`.", REAL, example="[1, 2], [0, 3]",
        shown="Array([False,  True], dtype=bool)", arity=2, gives=TO_BOOL,
        formula=lambda m, x, y: x < y, surfaces="topi array",
    ),
    Op(
        "less_equal", "Compare element-wise for `x1 <= x2`.", REAL, example="[1, 2], [1, 3]",
        shown="Array([ True,  True], dtype=bool)", arity=2, gives=TO_BOOL,
        formula=lambda m, x, y: x <= y, surfaces="topi array",
    ),
    Op(
        "logaddexp",
        "Compute `log(exp(x1) + exp(x2))` element-wise without intermediate overflow.", FLOATS,
        example="[0.0, 1000.0], [0.0, 1000.0]",
        shown="Array([6.93147181e-01, 1.00069315e+03], dtype=float64)", arity=2, cost=8,
        formula=formulas.logaddexp, ulps=(1.5, 1.5),
        derivative=derivatives.logaddexp,
        surfaces="te topi:log_add_exp array",
        texts={"te": "Compute `log(exp(x) + exp(y))` without intermediate overflow."},
    ),
    Op(
        "logical_and", "Compute the logical AND element-wise.", TRUTH,
        example="[True, True], [True, False]", shown="Array([ True, False], dtype=bool)", arity=2,
        gives=TO_BOOL, surfaces="topi array",
    ),
    Op(
        "logical_or", "Compute the logical OR element-wise.", TRUTH,
        example="[True, False], [False, False]", shown="Array([ True, False], dtype=bool)",
        arity=2, gives=TO_BOOL, surfaces="topi array",
    ),
    Op(
        "logical_xor", "Compute the logical XOR element-wise.", TRUTH,
        example="[True, True], [True, False]", shown="Array([False,  True], dtype=bool)", arity=2,
        gives=TO_BOOL, surfaces="topi array",
    ),
    Op(
        "maximum", "Return the larger operand element-wise; NaN propagates.", REAL,
        example="[1, 2], [0, 3]", shown="Array([1, 3], dtype=int64)", arity=2,
        derivative=derivatives.maximum,
        surfaces="topi array",
    ),
    Op(
        "minimum", "Return the smaller operand element-wise; NaN propagates.", REAL,
        example="[1, 2], [0, 3]", shown="Array([0, 2], dtype=int64)", arity=2,
        derivative=derivatives.minimum,
        surfaces="topi array",
    ),
    Op(
        "mod",
        "Compute the remainder of `divide`, with the sign of `x1`; integers modulo 0 give 0.",
        REAL, arity=2, numpy="fmod", cost=8, surfaces="topi",
    ),
    Op(
        "multiply", "Compute the product element-wise.", NUMERIC, example="[1, 2], [10, 20]",
        shown="Array([10, 40], dtype=int64)", arity=2, derivative=derivatives.multiply,
        formula=lambda m, x, y: x * y, surfaces="topi array",
    ),
    Op(
        "nextafter", "Return the next representable value after `x1` towards `x2` element-wise.",
        FLOATS, example="[1.0, 1.0], [2.0, 1.0]", shown="Array([1., 1.], dtype=float64)", arity=2,
        cost=8, surfaces="array",
    ),
    Op(
        "not_equal", "Compare element-wise for `x1 != x2`.", ALL, example="[1, 2], [1, 3]",
        shown="Array([False,  True], dtype=bool)", arity=2, gives=TO_BOOL,
        formula=lambda m, x, y: x != y, surfaces="topi array",
    ),
    Op(
        "pow", "Raise `x1` to the power `x2` element-wise.", NUMERIC, example="[2, 3], [10, 2]",
        shown="Array([1024,    9], dtype=int64)", arity=2, numpy="power", call="pow",
        derivative=derivatives.power,
        ulps=(0.51, 2.2), cost=8, surfaces="topi:power array",
        texts={
            "topi": "Raise `x1` to the power `x2` element-wise.\n\nInteger powers wrap around on "
            "overflow. A negative exponent of an integer rounds the\nresult towards zero, and "
            "gives 0 for a base of 0.",
        },
    ),
    Op(
        "remainder",
        "Compute the remainder of `floor_divide`, with the sign of `x2`; integers modulo 0 give 0.",
        REAL, example="[7, -7], [2, 2]", shown="Array([1, 1], dtype=int64)", arity=2,
        derivative=derivatives.remainder,
        cost=8, surfaces="topi:floor_mod array",
    ),
    Op(
        "subtract", "Compute the difference `x1 - x2` element-wise.", NUMERIC,
        example="[1, 2], [10, 20]", shown="Array([ -9, -18], dtype=int64)", arity=2,
        derivative=derivatives.subtract,
        formula=lambda m, x, y: x - y, surfaces="topi array",
    ),
)

ELEMENTWISE = (*UNARY, *BINARY)
"""All rows. A name occurs twice if namespaces give it different meanings, such as `round`."""


def elementwise_in(surface: str) -> dict[str, Op]:
    """Return the rows of the functions that a namespace has, by name.

    >>> elementwise_in("array")["round"].numpy, elementwise_in("te")["round"].numpy
    ('rint', None)
    >>> elementwise_in("topi")["power"].name
    'pow'
    """
    return {row.name_in(surface): row for row in ELEMENTWISE if row.is_in(surface)}
