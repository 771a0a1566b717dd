"""Element-wise functions of `te` that are intrinsics: one for each row with `te`.

`elementwise.pyi` declares the functions for type checkers and editors. Write it with
`python -m tests.operations.stubs` after a change of the table.
"""

# Generated: `python -m tests.operations.stubs`.

from tecomp.compute.expr_like import Value
from tecomp.ir.nodes.expr import Expr

__all__ = [  # noqa: RUF022
    "acos",
    "acosh",
    "asin",
    "asinh",
    "atan",
    "atanh",
    "ceil",
    "cos",
    "cosh",
    "digamma",
    "erf",
    "erfinv",
    "exp",
    "exp2",
    "expm1",
    "fabs",
    "floor",
    "fmod",
    "hypot",
    "isfinite",
    "isinf",
    "isnan",
    "lgamma",
    "log",
    "log10",
    "log1p",
    "log2",
    "logaddexp",
    "nearbyint",
    "round",
    "rsqrt",
    "sigmoid",
    "sin",
    "sinh",
    "sqrt",
    "tan",
    "tanh",
    "trunc",
]

# tecomp/operations/elementwise.py: "acos"
def acos(x: Value) -> Expr:
    """Compute the inverse cosine of `x`, in [0, pi] radians.

    >>> from tecomp import te
    >>> te.acos(te.var("x", "float32"))
    acos(x)
    """

# tecomp/operations/elementwise.py: "acosh"
def acosh(x: Value) -> Expr:
    """Compute the non-negative inverse hyperbolic cosine of `x`.

    >>> from tecomp import te
    >>> te.acosh(te.var("x", "float32"))
    acosh(x)
    """

# tecomp/operations/elementwise.py: "asin"
def asin(x: Value) -> Expr:
    """Compute the inverse sine of `x`, in [-pi/2, pi/2] radians.

    >>> from tecomp import te
    >>> te.asin(te.var("x", "float32"))
    asin(x)
    """

# tecomp/operations/elementwise.py: "asinh"
def asinh(x: Value) -> Expr:
    """Compute the inverse hyperbolic sine of `x`.

    >>> from tecomp import te
    >>> te.asinh(te.var("x", "float32"))
    asinh(x)
    """

# tecomp/operations/elementwise.py: "atan"
def atan(x: Value) -> Expr:
    """Compute the inverse tangent of `x`, in [-pi/2, pi/2] radians.

    >>> from tecomp import te
    >>> te.atan(te.var("x", "float32"))
    atan(x)
    """

# tecomp/operations/elementwise.py: "atanh"
def atanh(x: Value) -> Expr:
    """Compute the inverse hyperbolic tangent of `x`.

    >>> from tecomp import te
    >>> te.atanh(te.var("x", "float32"))
    atanh(x)
    """

# tecomp/operations/elementwise.py: "ceil"
def ceil(x: Value) -> Expr:
    """Round `x` up to an integer, in the dtype of `x`.

    >>> from tecomp import te
    >>> te.ceil(te.var("x", "float32"))
    ceil(x)
    """

# tecomp/operations/elementwise.py: "cos"
def cos(x: Value) -> Expr:
    """Compute the cosine of an angle in radians.

    >>> from tecomp import te
    >>> te.cos(te.var("x", "float32"))
    cos(x)
    """

# tecomp/operations/elementwise.py: "cosh"
def cosh(x: Value) -> Expr:
    """Compute the hyperbolic cosine of `x`.

    >>> from tecomp import te
    >>> te.cosh(te.var("x", "float32"))
    cosh(x)
    """

# tecomp/operations/elementwise.py: "digamma"
def digamma(x: Value) -> Expr:
    """Compute the derivative of the logarithm of the gamma function of `x`.

    >>> from tecomp import te
    >>> te.digamma(te.var("x", "float32"))
    digamma(x)
    """

# tecomp/operations/elementwise.py: "erf"
def erf(x: Value) -> Expr:
    """Compute the error function of `x`.

    >>> from tecomp import te
    >>> te.erf(te.var("x", "float32"))
    erf(x)
    """

# tecomp/operations/elementwise.py: "erfinv"
def erfinv(x: Value) -> Expr:
    """Compute the inverse error function of `x`; NaN outside of [-1, 1].

    >>> from tecomp import te
    >>> te.erfinv(te.var("x", "float32"))
    erfinv(x)
    """

# tecomp/operations/elementwise.py: "exp"
def exp(x: Value) -> Expr:
    """Compute the exponential of `x`.

    >>> from tecomp import te
    >>> te.exp(te.var("x", "float32"))
    exp(x)
    """

# tecomp/operations/elementwise.py: "exp2"
def exp2(x: Value) -> Expr:
    """Compute 2 to the power `x`.

    >>> from tecomp import te
    >>> te.exp2(te.var("x", "float32"))
    exp2(x)
    """

# tecomp/operations/elementwise.py: "expm1"
def expm1(x: Value) -> Expr:
    """Compute `exp(x) - 1`, accurately near zero.

    >>> from tecomp import te
    >>> te.expm1(te.var("x", "float32"))
    expm1(x)
    """

# tecomp/operations/elementwise.py: "fabs"
def fabs(x: Value) -> Expr:
    """Compute the absolute value of a float.

    >>> from tecomp import te
    >>> te.fabs(te.var("x", "float32"))
    fabs(x)
    """

# tecomp/operations/elementwise.py: "floor"
def floor(x: Value) -> Expr:
    """Round `x` down to an integer, in the dtype of `x`.

    >>> from tecomp import te
    >>> te.floor(te.var("x", "float32"))
    floor(x)
    """

# tecomp/operations/elementwise.py: "fmod"
def fmod(x: Value, y: Value) -> Expr:
    """Compute the remainder of `x / y` rounded towards zero, with the sign of `x`, as in C.

    >>> from tecomp import te
    >>> te.fmod(te.var("x", "float32"), te.var("y", "float32"))
    fmod(x, y)
    """

# tecomp/operations/elementwise.py: "hypot"
def hypot(x: Value, y: Value) -> Expr:
    """Compute `sqrt(x * x + y * y)` without intermediate overflow.

    >>> from tecomp import te
    >>> te.hypot(te.var("x", "float32"), te.var("y", "float32"))
    hypot(x, y)
    """

# tecomp/operations/elementwise.py: "isfinite"
def isfinite(x: Value) -> Expr:
    """Return whether `x` is neither infinite nor NaN; True for integers.

    >>> from tecomp import te
    >>> te.isfinite(te.var("x", "float32"))
    isfinite(x)
    """

# tecomp/operations/elementwise.py: "isinf"
def isinf(x: Value) -> Expr:
    """Return whether `x` is positive or negative infinity; False for integers.

    >>> from tecomp import te
    >>> te.isinf(te.var("x", "float32"))
    isinf(x)
    """

# tecomp/operations/elementwise.py: "isnan"
def isnan(x: Value) -> Expr:
    """Return whether `x` is NaN; False for integers.

    >>> from tecomp import te
    >>> te.isnan(te.var("x", "float32"))
    isnan(x)
    """

# tecomp/operations/elementwise.py: "lgamma"
def lgamma(x: Value) -> Expr:
    """Compute the logarithm of the absolute value of the gamma function of `x`.

    >>> from tecomp import te
    >>> te.lgamma(te.var("x", "float32"))
    lgamma(x)
    """

# tecomp/operations/elementwise.py: "log"
def log(x: Value) -> Expr:
    """Compute the natural logarithm of `x`.

    >>> from tecomp import te
    >>> te.log(te.var("x", "float32"))
    log(x)
    """

# tecomp/operations/elementwise.py: "log10"
def log10(x: Value) -> Expr:
    """Compute the base-10 logarithm of `x`.

    >>> from tecomp import te
    >>> te.log10(te.var("x", "float32"))
    log10(x)
    """

# tecomp/operations/elementwise.py: "log1p"
def log1p(x: Value) -> Expr:
    """Compute `log(1 + x)`, accurately near zero.

    >>> from tecomp import te
    >>> te.log1p(te.var("x", "float32"))
    log1p(x)
    """

# tecomp/operations/elementwise.py: "log2"
def log2(x: Value) -> Expr:
    """Compute the base-2 logarithm of `x`.

    >>> from tecomp import te
    >>> te.log2(te.var("x", "float32"))
    log2(x)
    """

# tecomp/operations/elementwise.py: "logaddexp"
def logaddexp(x: Value, y: Value) -> Expr:
    """Compute `log(exp(x) + exp(y))` without intermediate overflow.

    >>> from tecomp import te
    >>> te.logaddexp(te.var("x", "float32"), te.var("y", "float32")).dtype
    'float32'
    """

# tecomp/operations/elementwise.py: "nearbyint"
def nearbyint(x: Value) -> Expr:
    """Round to the nearest integer, ties to even, in the dtype of `x`; as `numpy.round`.

    >>> from tecomp import te
    >>> te.nearbyint(te.var("x", "float32"))
    nearbyint(x)
    """

# tecomp/operations/elementwise.py: "round"
def round(x: Value) -> Expr:
    """Round to the nearest integer, ties away from zero, in the dtype of `x`; as in C and TVM.

    `te.nearbyint` rounds ties to the even integer, as `numpy.round` does.

    >>> from tecomp import te
    >>> te.round(te.var("x", "float32"))
    round(x)
    """

# tecomp/operations/elementwise.py: "rsqrt"
def rsqrt(x: Value) -> Expr:
    """Compute the reciprocal square root of `x`.

    >>> from tecomp import te
    >>> te.rsqrt(te.var("x", "float32"))
    rsqrt(x)
    """

# tecomp/operations/elementwise.py: "sigmoid"
def sigmoid(x: Value) -> Expr:
    """Compute the logistic function `1 / (1 + exp(-x))`.

    >>> from tecomp import te
    >>> te.sigmoid(te.var("x", "float32"))
    sigmoid(x)
    """

# tecomp/operations/elementwise.py: "sin"
def sin(x: Value) -> Expr:
    """Compute the sine of an angle in radians.

    >>> from tecomp import te
    >>> te.sin(te.var("x", "float32"))
    sin(x)
    """

# tecomp/operations/elementwise.py: "sinh"
def sinh(x: Value) -> Expr:
    """Compute the hyperbolic sine of `x`.

    >>> from tecomp import te
    >>> te.sinh(te.var("x", "float32"))
    sinh(x)
    """

# tecomp/operations/elementwise.py: "sqrt"
def sqrt(x: Value) -> Expr:
    """Compute the square root of `x`.

    >>> from tecomp import te
    >>> te.sqrt(te.var("x", "float32"))
    sqrt(x)
    """

# tecomp/operations/elementwise.py: "tan"
def tan(x: Value) -> Expr:
    """Compute the tangent of an angle in radians.

    >>> from tecomp import te
    >>> te.tan(te.var("x", "float32"))
    tan(x)
    """

# tecomp/operations/elementwise.py: "tanh"
def tanh(x: Value) -> Expr:
    """Compute the hyperbolic tangent of `x`.

    >>> from tecomp import te
    >>> te.tanh(te.var("x", "float32"))
    tanh(x)
    """

# tecomp/operations/elementwise.py: "trunc"
def trunc(x: Value) -> Expr:
    """Round `x` towards zero to an integer, in the dtype of `x`.

    >>> from tecomp import te
    >>> te.trunc(te.var("x", "float32"))
    trunc(x)
    """
