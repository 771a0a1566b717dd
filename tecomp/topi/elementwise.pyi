"""Element-wise functions of tensors: one for each row of the table of element-wise functions.

`elementwise.pyi` declares the functions for type checkers and editors. Write it with
`python -m tests.operations.stubs` after a change of the table.
"""

# Generated: `python -m tests.operations.stubs`.

from typing import overload

from tecomp.compute.tensor import Tensor
from tecomp.ir.nodes.expr import Expr
from tecomp.topi.validation import Operand

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
    "bitwise_not",
    "bitwise_or",
    "bitwise_xor",
    "ceil",
    "cos",
    "cosh",
    "digamma",
    "divide",
    "equal",
    "erf",
    "erfinv",
    "exp",
    "floor",
    "floor_divide",
    "floor_mod",
    "greater",
    "greater_equal",
    "identity",
    "isfinite",
    "isinf",
    "isnan",
    "left_shift",
    "less",
    "less_equal",
    "lgamma",
    "log",
    "log10",
    "log2",
    "log_add_exp",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "maximum",
    "minimum",
    "mod",
    "multiply",
    "negative",
    "not_equal",
    "power",
    "right_shift",
    "round",
    "rsqrt",
    "sigmoid",
    "sin",
    "sinh",
    "sqrt",
    "subtract",
    "tan",
    "tanh",
    "trunc",
]

# tecomp/operations/elementwise.py: "abs"
def abs(x: Tensor) -> Tensor:
    """Compute the absolute value element-wise.

    Args:
        x: Input tensor.

    Raises:
        TypeMismatchError: If `x` is not a tensor.

    >>> from tecomp import te, topi
    >>> topi.abs(te.placeholder((4, 8), name="A")).shape
    (4, 8)
    """

# tecomp/operations/elementwise.py: "acos"
def acos(x: Tensor) -> Tensor:
    """Compute the inverse cosine element-wise, in radians in [0, pi].

    Args:
        x: Input tensor of real floating-point dtype.

    Raises:
        TypeMismatchError: If `x` is not a tensor, or its dtype is unsupported.

    >>> from tecomp import te, topi
    >>> topi.acos(te.placeholder((4, 8), name="A")).shape
    (4, 8)
    """

# tecomp/operations/elementwise.py: "acosh"
def acosh(x: Tensor) -> Tensor:
    """Compute the inverse hyperbolic cosine element-wise; the result is non-negative.

    Args:
        x: Input tensor of real floating-point dtype.

    Raises:
        TypeMismatchError: If `x` is not a tensor, or its dtype is unsupported.

    >>> from tecomp import te, topi
    >>> topi.acosh(te.placeholder((4, 8), name="A")).shape
    (4, 8)
    """

# tecomp/operations/elementwise.py: "add"
@overload
def add(lhs: Tensor, rhs: Operand) -> Tensor:
    """Compute the sum element-wise.

    Args:
        lhs: Tensor, expression or number.
        rhs: Tensor, expression or number.

    Returns:
        Tensor of the broadcast shape, or an expression if neither operand is a tensor.
        The dtype is that of the type promotion of `te`.

    Raises:
        DefinitionError: If the shapes are not broadcast-compatible.
        TypeMismatchError: If an operand has an unsupported dtype, or no common dtype exists.

    >>> from tecomp import te, topi
    >>> A = te.placeholder((4, 8), name="A")
    >>> b = te.placeholder((8,), name="b")
    >>> topi.add(A, b).shape
    (4, 8)
    """
@overload
def add(lhs: Operand, rhs: Tensor) -> Tensor: ...
@overload
def add(lhs: Expr | float, rhs: Expr | float) -> Expr: ...

# tecomp/operations/elementwise.py: "asin"
def asin(x: Tensor) -> Tensor:
    """Compute the inverse sine element-wise, in radians in [-pi/2, pi/2].

    Args:
        x: Input tensor of real floating-point dtype.

    Raises:
        TypeMismatchError: If `x` is not a tensor, or its dtype is unsupported.

    >>> from tecomp import te, topi
    >>> topi.asin(te.placeholder((4, 8), name="A")).shape
    (4, 8)
    """

# tecomp/operations/elementwise.py: "asinh"
def asinh(x: Tensor) -> Tensor:
    """Compute the inverse hyperbolic sine element-wise.

    Args:
        x: Input tensor of real floating-point dtype.

    Raises:
        TypeMismatchError: If `x` is not a tensor, or its dtype is unsupported.

    >>> from tecomp import te, topi
    >>> topi.asinh(te.placeholder((4, 8), name="A")).shape
    (4, 8)
    """

# tecomp/operations/elementwise.py: "atan"
def atan(x: Tensor) -> Tensor:
    """Compute the inverse tangent element-wise, in radians in [-pi/2, pi/2].

    Args:
        x: Input tensor of real floating-point dtype.

    Raises:
        TypeMismatchError: If `x` is not a tensor, or its dtype is unsupported.

    >>> from tecomp import te, topi
    >>> topi.atan(te.placeholder((4, 8), name="A")).shape
    (4, 8)
    """

# tecomp/operations/elementwise.py: "atan2"
@overload
def atan2(lhs: Tensor, rhs: Operand) -> Tensor:
    """Compute the angle of the point (rhs, lhs) element-wise, in radians in [-pi, pi].

    Args:
        lhs: Tensor, expression or number of real floating-point dtype.
        rhs: Tensor, expression or number of real floating-point dtype.

    Returns:
        Tensor of the broadcast shape, or an expression if neither operand is a tensor.
        The dtype is that of the type promotion of `te`.

    Raises:
        DefinitionError: If the shapes are not broadcast-compatible.
        TypeMismatchError: If an operand has an unsupported dtype, or no common dtype exists.

    >>> from tecomp import te, topi
    >>> A = te.placeholder((4, 8), name="A")
    >>> b = te.placeholder((8,), name="b")
    >>> topi.atan2(A, b).shape
    (4, 8)
    """
@overload
def atan2(lhs: Operand, rhs: Tensor) -> Tensor: ...
@overload
def atan2(lhs: Expr | float, rhs: Expr | float) -> Expr: ...

# tecomp/operations/elementwise.py: "atanh"
def atanh(x: Tensor) -> Tensor:
    """Compute the inverse hyperbolic tangent element-wise.

    Args:
        x: Input tensor of real floating-point dtype.

    Raises:
        TypeMismatchError: If `x` is not a tensor, or its dtype is unsupported.

    >>> from tecomp import te, topi
    >>> topi.atanh(te.placeholder((4, 8), name="A")).shape
    (4, 8)
    """

# tecomp/operations/elementwise.py: "bitwise_and"
@overload
def bitwise_and(lhs: Tensor, rhs: Operand) -> Tensor:
    """Compute the bitwise AND element-wise.

    Args:
        lhs: Tensor, expression or number of integer or boolean dtype.
        rhs: Tensor, expression or number of integer or boolean dtype.

    Returns:
        Tensor of the broadcast shape, or an expression if neither operand is a tensor.
        The dtype is that of the type promotion of `te`.

    Raises:
        DefinitionError: If the shapes are not broadcast-compatible.
        TypeMismatchError: If an operand has an unsupported dtype, or no common dtype exists.

    >>> from tecomp import te, topi
    >>> A = te.placeholder((4, 8), "int32", name="A")
    >>> b = te.placeholder((8,), "int32", name="b")
    >>> topi.bitwise_and(A, b).shape
    (4, 8)
    """
@overload
def bitwise_and(lhs: Operand, rhs: Tensor) -> Tensor: ...
@overload
def bitwise_and(lhs: Expr | float, rhs: Expr | float) -> Expr: ...

# tecomp/operations/elementwise.py: "bitwise_invert"
@overload
def bitwise_not(data: Tensor) -> Tensor:
    """Invert all bits element-wise; negate booleans logically.

    Args:
        data: Tensor, expression or number of integer or boolean dtype.

    Raises:
        TypeMismatchError: If `data` is not a tensor or a value, or its dtype is unsupported.

    >>> from tecomp import te, topi
    >>> topi.bitwise_not(te.placeholder((4, 8), "int32", name="A")).shape
    (4, 8)
    """
@overload
def bitwise_not(data: Expr | float) -> Expr: ...

# tecomp/operations/elementwise.py: "bitwise_or"
@overload
def bitwise_or(lhs: Tensor, rhs: Operand) -> Tensor:
    """Compute the bitwise OR element-wise.

    Args:
        lhs: Tensor, expression or number of integer or boolean dtype.
        rhs: Tensor, expression or number of integer or boolean dtype.

    Returns:
        Tensor of the broadcast shape, or an expression if neither operand is a tensor.
        The dtype is that of the type promotion of `te`.

    Raises:
        DefinitionError: If the shapes are not broadcast-compatible.
        TypeMismatchError: If an operand has an unsupported dtype, or no common dtype exists.

    >>> from tecomp import te, topi
    >>> A = te.placeholder((4, 8), "int32", name="A")
    >>> b = te.placeholder((8,), "int32", name="b")
    >>> topi.bitwise_or(A, b).shape
    (4, 8)
    """
@overload
def bitwise_or(lhs: Operand, rhs: Tensor) -> Tensor: ...
@overload
def bitwise_or(lhs: Expr | float, rhs: Expr | float) -> Expr: ...

# tecomp/operations/elementwise.py: "bitwise_xor"
@overload
def bitwise_xor(lhs: Tensor, rhs: Operand) -> Tensor:
    """Compute the bitwise XOR element-wise.

    Args:
        lhs: Tensor, expression or number of integer or boolean dtype.
        rhs: Tensor, expression or number of integer or boolean dtype.

    Returns:
        Tensor of the broadcast shape, or an expression if neither operand is a tensor.
        The dtype is that of the type promotion of `te`.

    Raises:
        DefinitionError: If the shapes are not broadcast-compatible.
        TypeMismatchError: If an operand has an unsupported dtype, or no common dtype exists.

    >>> from tecomp import te, topi
    >>> A = te.placeholder((4, 8), "int32", name="A")
    >>> b = te.placeholder((8,), "int32", name="b")
    >>> topi.bitwise_xor(A, b).shape
    (4, 8)
    """
@overload
def bitwise_xor(lhs: Operand, rhs: Tensor) -> Tensor: ...
@overload
def bitwise_xor(lhs: Expr | float, rhs: Expr | float) -> Expr: ...

# tecomp/operations/elementwise.py: "ceil"
def ceil(x: Tensor) -> Tensor:
    """Round up to an integer element-wise; the dtype is kept.

    Args:
        x: Input tensor.

    Raises:
        TypeMismatchError: If `x` is not a tensor.

    >>> from tecomp import te, topi
    >>> topi.ceil(te.placeholder((4, 8), name="A")).shape
    (4, 8)
    """

# tecomp/operations/elementwise.py: "cos"
def cos(x: Tensor) -> Tensor:
    """Compute the cosine of angles in radians element-wise.

    Args:
        x: Input tensor of real floating-point dtype.

    Raises:
        TypeMismatchError: If `x` is not a tensor, or its dtype is unsupported.

    >>> from tecomp import te, topi
    >>> topi.cos(te.placeholder((4, 8), name="A")).shape
    (4, 8)
    """

# tecomp/operations/elementwise.py: "cosh"
def cosh(x: Tensor) -> Tensor:
    """Compute the hyperbolic cosine element-wise.

    Args:
        x: Input tensor of real floating-point dtype.

    Raises:
        TypeMismatchError: If `x` is not a tensor, or its dtype is unsupported.

    >>> from tecomp import te, topi
    >>> topi.cosh(te.placeholder((4, 8), name="A")).shape
    (4, 8)
    """

# tecomp/operations/elementwise.py: "digamma"
def digamma(x: Tensor) -> Tensor:
    """Compute the derivative of the logarithm of the gamma function element-wise.

    Args:
        x: Input tensor of real floating-point dtype.

    Raises:
        TypeMismatchError: If `x` is not a tensor, or its dtype is unsupported.

    >>> from tecomp import te, topi
    >>> topi.digamma(te.placeholder((4, 8), name="A")).shape
    (4, 8)
    """

# tecomp/operations/elementwise.py: "divide"
@overload
def divide(lhs: Tensor, rhs: Operand) -> Tensor:
    """Divide element-wise; integers are rounded towards zero, as by `te.div`.

    Args:
        lhs: Tensor, expression or number.
        rhs: Tensor, expression or number.

    Returns:
        Tensor of the broadcast shape, or an expression if neither operand is a tensor.
        The dtype is that of the type promotion of `te`.

    Raises:
        DefinitionError: If the shapes are not broadcast-compatible.
        TypeMismatchError: If an operand has an unsupported dtype, or no common dtype exists.

    >>> from tecomp import te, topi
    >>> A = te.placeholder((4, 8), name="A")
    >>> b = te.placeholder((8,), name="b")
    >>> topi.divide(A, b).shape
    (4, 8)
    """
@overload
def divide(lhs: Operand, rhs: Tensor) -> Tensor: ...
@overload
def divide(lhs: Expr | float, rhs: Expr | float) -> Expr: ...

# tecomp/operations/elementwise.py: "equal"
@overload
def equal(lhs: Tensor, rhs: Operand) -> Tensor:
    """Compare element-wise for `lhs == rhs`.

    Args:
        lhs: Tensor, expression or number.
        rhs: Tensor, expression or number.

    Returns:
        Tensor of the broadcast shape, or an expression if neither operand is a tensor.
        The dtype is bool.

    Raises:
        DefinitionError: If the shapes are not broadcast-compatible.
        TypeMismatchError: If an operand has an unsupported dtype, or no common dtype exists.

    >>> from tecomp import te, topi
    >>> A = te.placeholder((4, 8), name="A")
    >>> b = te.placeholder((8,), name="b")
    >>> topi.equal(A, b).shape
    (4, 8)
    """
@overload
def equal(lhs: Operand, rhs: Tensor) -> Tensor: ...
@overload
def equal(lhs: Expr | float, rhs: Expr | float) -> Expr: ...

# tecomp/operations/elementwise.py: "erf"
def erf(x: Tensor) -> Tensor:
    """Compute the error function element-wise.

    Args:
        x: Input tensor of real floating-point dtype.

    Raises:
        TypeMismatchError: If `x` is not a tensor, or its dtype is unsupported.

    >>> from tecomp import te, topi
    >>> topi.erf(te.placeholder((4, 8), name="A")).shape
    (4, 8)
    """

# tecomp/operations/elementwise.py: "erfinv"
def erfinv(x: Tensor) -> Tensor:
    """Compute the inverse error function element-wise; NaN outside of [-1, 1].

    Args:
        x: Input tensor of real floating-point dtype.

    Raises:
        TypeMismatchError: If `x` is not a tensor, or its dtype is unsupported.

    >>> from tecomp import te, topi
    >>> topi.erfinv(te.placeholder((4, 8), name="A")).shape
    (4, 8)
    """

# tecomp/operations/elementwise.py: "exp"
def exp(x: Tensor) -> Tensor:
    """Compute the exponential element-wise.

    Args:
        x: Input tensor of real floating-point dtype.

    Raises:
        TypeMismatchError: If `x` is not a tensor, or its dtype is unsupported.

    >>> from tecomp import te, topi
    >>> topi.exp(te.placeholder((4, 8), name="A")).shape
    (4, 8)
    """

# tecomp/operations/elementwise.py: "floor"
def floor(x: Tensor) -> Tensor:
    """Round down to an integer element-wise; the dtype is kept.

    Args:
        x: Input tensor.

    Raises:
        TypeMismatchError: If `x` is not a tensor.

    >>> from tecomp import te, topi
    >>> topi.floor(te.placeholder((4, 8), name="A")).shape
    (4, 8)
    """

# tecomp/operations/elementwise.py: "floor_divide"
@overload
def floor_divide(lhs: Tensor, rhs: Operand) -> Tensor:
    """Divide element-wise and round towards negative infinity; integers divided by 0 give 0.

    Args:
        lhs: Tensor, expression or number.
        rhs: Tensor, expression or number.

    Returns:
        Tensor of the broadcast shape, or an expression if neither operand is a tensor.
        The dtype is that of the type promotion of `te`.

    Raises:
        DefinitionError: If the shapes are not broadcast-compatible.
        TypeMismatchError: If an operand has an unsupported dtype, or no common dtype exists.

    >>> from tecomp import te, topi
    >>> A = te.placeholder((4, 8), name="A")
    >>> b = te.placeholder((8,), name="b")
    >>> topi.floor_divide(A, b).shape
    (4, 8)
    """
@overload
def floor_divide(lhs: Operand, rhs: Tensor) -> Tensor: ...
@overload
def floor_divide(lhs: Expr | float, rhs: Expr | float) -> Expr: ...

# tecomp/operations/elementwise.py: "remainder"
@overload
def floor_mod(lhs: Tensor, rhs: Operand) -> Tensor:
    """Compute the remainder of `floor_divide`, with the sign of `rhs`; integers modulo 0 give 0.

    Args:
        lhs: Tensor, expression or number.
        rhs: Tensor, expression or number.

    Returns:
        Tensor of the broadcast shape, or an expression if neither operand is a tensor.
        The dtype is that of the type promotion of `te`.

    Raises:
        DefinitionError: If the shapes are not broadcast-compatible.
        TypeMismatchError: If an operand has an unsupported dtype, or no common dtype exists.

    >>> from tecomp import te, topi
    >>> A = te.placeholder((4, 8), name="A")
    >>> b = te.placeholder((8,), name="b")
    >>> topi.floor_mod(A, b).shape
    (4, 8)
    """
@overload
def floor_mod(lhs: Operand, rhs: Tensor) -> Tensor: ...
@overload
def floor_mod(lhs: Expr | float, rhs: Expr | float) -> Expr: ...

# tecomp/operations/elementwise.py: "greater"
@overload
def greater(lhs: Tensor, rhs: Operand) -> Tensor:
    """Compare element-wise for `lhs > rhs`.

    Args:
        lhs: Tensor, expression or number.
        rhs: Tensor, expression or number.

    Returns:
        Tensor of the broadcast shape, or an expression if neither operand is a tensor.
        The dtype is bool.

    Raises:
        DefinitionError: If the shapes are not broadcast-compatible.
        TypeMismatchError: If an operand has an unsupported dtype, or no common dtype exists.

    >>> from tecomp import te, topi
    >>> A = te.placeholder((4, 8), name="A")
    >>> b = te.placeholder((8,), name="b")
    >>> topi.greater(A, b).shape
    (4, 8)
    """
@overload
def greater(lhs: Operand, rhs: Tensor) -> Tensor: ...
@overload
def greater(lhs: Expr | float, rhs: Expr | float) -> Expr: ...

# tecomp/operations/elementwise.py: "greater_equal"
@overload
def greater_equal(lhs: Tensor, rhs: Operand) -> Tensor:
    """Compare element-wise for `lhs >= rhs`.

    Args:
        lhs: Tensor, expression or number.
        rhs: Tensor, expression or number.

    Returns:
        Tensor of the broadcast shape, or an expression if neither operand is a tensor.
        The dtype is bool.

    Raises:
        DefinitionError: If the shapes are not broadcast-compatible.
        TypeMismatchError: If an operand has an unsupported dtype, or no common dtype exists.

    >>> from tecomp import te, topi
    >>> A = te.placeholder((4, 8), name="A")
    >>> b = te.placeholder((8,), name="b")
    >>> topi.greater_equal(A, b).shape
    (4, 8)
    """
@overload
def greater_equal(lhs: Operand, rhs: Tensor) -> Tensor: ...
@overload
def greater_equal(lhs: Expr | float, rhs: Expr | float) -> Expr: ...

# tecomp/operations/elementwise.py: "positive"
def identity(x: Tensor) -> Tensor:
    """Return the elements unchanged.

    Args:
        x: Input tensor.

    Raises:
        TypeMismatchError: If `x` is not a tensor.

    >>> from tecomp import te, topi
    >>> topi.identity(te.placeholder((4, 8), name="A")).shape
    (4, 8)
    """

# tecomp/operations/elementwise.py: "isfinite"
def isfinite(x: Tensor) -> Tensor:
    """Test element-wise for finite values, which are neither infinite nor NaN.

    Args:
        x: Input tensor.

    Raises:
        TypeMismatchError: If `x` is not a tensor.

    >>> from tecomp import te, topi
    >>> topi.isfinite(te.placeholder((4, 8), name="A")).dtype
    'bool'
    """

# tecomp/operations/elementwise.py: "isinf"
def isinf(x: Tensor) -> Tensor:
    """Test element-wise for infinities of either sign.

    Args:
        x: Input tensor.

    Raises:
        TypeMismatchError: If `x` is not a tensor.

    >>> from tecomp import te, topi
    >>> topi.isinf(te.placeholder((4, 8), name="A")).dtype
    'bool'
    """

# tecomp/operations/elementwise.py: "isnan"
def isnan(x: Tensor) -> Tensor:
    """Test element-wise for NaN.

    Args:
        x: Input tensor.

    Raises:
        TypeMismatchError: If `x` is not a tensor.

    >>> from tecomp import te, topi
    >>> topi.isnan(te.placeholder((4, 8), name="A")).dtype
    'bool'
    """

# tecomp/operations/elementwise.py: "bitwise_left_shift"
@overload
def left_shift(lhs: Tensor, rhs: Operand) -> Tensor:
    """Shift bits left element-wise; shifts by the bit width or more give 0.

    Args:
        lhs: Tensor, expression or number of integer dtype.
        rhs: Tensor, expression or number of integer dtype.

    Returns:
        Tensor of the broadcast shape, or an expression if neither operand is a tensor.
        The dtype is that of the type promotion of `te`.

    Raises:
        DefinitionError: If the shapes are not broadcast-compatible.
        TypeMismatchError: If an operand has an unsupported dtype, or no common dtype exists.

    >>> from tecomp import te, topi
    >>> A = te.placeholder((4, 8), "int32", name="A")
    >>> b = te.placeholder((8,), "int32", name="b")
    >>> topi.left_shift(A, b).shape
    (4, 8)
    """
@overload
def left_shift(lhs: Operand, rhs: Tensor) -> Tensor: ...
@overload
def left_shift(lhs: Expr | float, rhs: Expr | float) -> Expr: ...

# tecomp/operations/elementwise.py: "less"
@overload
def less(lhs: Tensor, rhs: Operand) -> Tensor:
    """Compare element-wise for `lhs < rhs`.

    Args:
        lhs: Tensor, expression or number.
        rhs: Tensor, expression or number.

    Returns:
        Tensor of the broadcast shape, or an expression if neither operand is a tensor.
        The dtype is bool.

    Raises:
        DefinitionError: If the shapes are not broadcast-compatible.
        TypeMismatchError: If an operand has an unsupported dtype, or no common dtype exists.

    >>> from tecomp import te, topi
    >>> A = te.placeholder((4, 8), name="A")
    >>> b = te.placeholder((8,), name="b")
    >>> topi.less(A, b).shape
    (4, 8)
    """
@overload
def less(lhs: Operand, rhs: Tensor) -> Tensor: ...
@overload
def less(lhs: Expr | float, rhs: Expr | float) -> Expr: ...

# tecomp/operations/elementwise.py: "less_equal"
@overload
def less_equal(lhs: Tensor, rhs: Operand) -> Tensor:
    """Compare element-wise for `lhs <= rhs`.

    Args:
        lhs: Tensor, expression or number.
        rhs: Tensor, expression or number.

    Returns:
        Tensor of the broadcast shape, or an expression if neither operand is a tensor.
        The dtype is bool.

    Raises:
        DefinitionError: If the shapes are not broadcast-compatible.
        TypeMismatchError: If an operand has an unsupported dtype, or no common dtype exists.

    >>> from tecomp import te, topi
    >>> A = te.placeholder((4, 8), name="A")
    >>> b = te.placeholder((8,), name="b")
    >>> topi.less_equal(A, b).shape
    (4, 8)
    """
@overload
def less_equal(lhs: Operand, rhs: Tensor) -> Tensor: ...
@overload
def less_equal(lhs: Expr | float, rhs: Expr | float) -> Expr: ...

# tecomp/operations/elementwise.py: "lgamma"
def lgamma(x: Tensor) -> Tensor:
    """Compute the logarithm of the absolute value of the gamma function element-wise.

    Args:
        x: Input tensor of real floating-point dtype.

    Raises:
        TypeMismatchError: If `x` is not a tensor, or its dtype is unsupported.

    >>> from tecomp import te, topi
    >>> topi.lgamma(te.placeholder((4, 8), name="A")).shape
    (4, 8)
    """

# tecomp/operations/elementwise.py: "log"
def log(x: Tensor) -> Tensor:
    """Compute the natural logarithm element-wise.

    Args:
        x: Input tensor of real floating-point dtype.

    Raises:
        TypeMismatchError: If `x` is not a tensor, or its dtype is unsupported.

    >>> from tecomp import te, topi
    >>> topi.log(te.placeholder((4, 8), name="A")).shape
    (4, 8)
    """

# tecomp/operations/elementwise.py: "log10"
def log10(x: Tensor) -> Tensor:
    """Compute the base-10 logarithm element-wise.

    Args:
        x: Input tensor of real floating-point dtype.

    Raises:
        TypeMismatchError: If `x` is not a tensor, or its dtype is unsupported.

    >>> from tecomp import te, topi
    >>> topi.log10(te.placeholder((4, 8), name="A")).shape
    (4, 8)
    """

# tecomp/operations/elementwise.py: "log2"
def log2(x: Tensor) -> Tensor:
    """Compute the base-2 logarithm element-wise.

    Args:
        x: Input tensor of real floating-point dtype.

    Raises:
        TypeMismatchError: If `x` is not a tensor, or its dtype is unsupported.

    >>> from tecomp import te, topi
    >>> topi.log2(te.placeholder((4, 8), name="A")).shape
    (4, 8)
    """

# tecomp/operations/elementwise.py: "logaddexp"
@overload
def log_add_exp(lhs: Tensor, rhs: Operand) -> Tensor:
    """Compute `log(exp(lhs) + exp(rhs))` element-wise without intermediate overflow.

    Args:
        lhs: Tensor, expression or number of real floating-point dtype.
        rhs: Tensor, expression or number of real floating-point dtype.

    Returns:
        Tensor of the broadcast shape, or an expression if neither operand is a tensor.
        The dtype is that of the type promotion of `te`.

    Raises:
        DefinitionError: If the shapes are not broadcast-compatible.
        TypeMismatchError: If an operand has an unsupported dtype, or no common dtype exists.

    >>> from tecomp import te, topi
    >>> A = te.placeholder((4, 8), name="A")
    >>> b = te.placeholder((8,), name="b")
    >>> topi.log_add_exp(A, b).shape
    (4, 8)
    """
@overload
def log_add_exp(lhs: Operand, rhs: Tensor) -> Tensor: ...
@overload
def log_add_exp(lhs: Expr | float, rhs: Expr | float) -> Expr: ...

# tecomp/operations/elementwise.py: "logical_and"
@overload
def logical_and(lhs: Tensor, rhs: Operand) -> Tensor:
    """Compute the logical AND element-wise.

    Args:
        lhs: Tensor, expression or number of dtype bool.
        rhs: Tensor, expression or number of dtype bool.

    Returns:
        Tensor of the broadcast shape, or an expression if neither operand is a tensor.
        The dtype is bool.

    Raises:
        DefinitionError: If the shapes are not broadcast-compatible.
        TypeMismatchError: If an operand has an unsupported dtype, or no common dtype exists.

    >>> from tecomp import te, topi
    >>> A = te.placeholder((4, 8), "bool", name="A")
    >>> b = te.placeholder((8,), "bool", name="b")
    >>> topi.logical_and(A, b).shape
    (4, 8)
    """
@overload
def logical_and(lhs: Operand, rhs: Tensor) -> Tensor: ...
@overload
def logical_and(lhs: Expr | float, rhs: Expr | float) -> Expr: ...

# tecomp/operations/elementwise.py: "logical_not"
@overload
def logical_not(data: Tensor) -> Tensor:
    """Compute the logical NOT element-wise.

    Args:
        data: Tensor, expression or number of dtype bool.

    Raises:
        TypeMismatchError: If `data` is not a tensor or a value, or its dtype is unsupported.

    >>> from tecomp import te, topi
    >>> topi.logical_not(te.placeholder((4, 8), "bool", name="A")).dtype
    'bool'
    """
@overload
def logical_not(data: Expr | float) -> Expr: ...

# tecomp/operations/elementwise.py: "logical_or"
@overload
def logical_or(lhs: Tensor, rhs: Operand) -> Tensor:
    """Compute the logical OR element-wise.

    Args:
        lhs: Tensor, expression or number of dtype bool.
        rhs: Tensor, expression or number of dtype bool.

    Returns:
        Tensor of the broadcast shape, or an expression if neither operand is a tensor.
        The dtype is bool.

    Raises:
        DefinitionError: If the shapes are not broadcast-compatible.
        TypeMismatchError: If an operand has an unsupported dtype, or no common dtype exists.

    >>> from tecomp import te, topi
    >>> A = te.placeholder((4, 8), "bool", name="A")
    >>> b = te.placeholder((8,), "bool", name="b")
    >>> topi.logical_or(A, b).shape
    (4, 8)
    """
@overload
def logical_or(lhs: Operand, rhs: Tensor) -> Tensor: ...
@overload
def logical_or(lhs: Expr | float, rhs: Expr | float) -> Expr: ...

# tecomp/operations/elementwise.py: "logical_xor"
@overload
def logical_xor(lhs: Tensor, rhs: Operand) -> Tensor:
    """Compute the logical XOR element-wise.

    Args:
        lhs: Tensor, expression or number of dtype bool.
        rhs: Tensor, expression or number of dtype bool.

    Returns:
        Tensor of the broadcast shape, or an expression if neither operand is a tensor.
        The dtype is bool.

    Raises:
        DefinitionError: If the shapes are not broadcast-compatible.
        TypeMismatchError: If an operand has an unsupported dtype, or no common dtype exists.

    >>> from tecomp import te, topi
    >>> A = te.placeholder((4, 8), "bool", name="A")
    >>> b = te.placeholder((8,), "bool", name="b")
    >>> topi.logical_xor(A, b).shape
    (4, 8)
    """
@overload
def logical_xor(lhs: Operand, rhs: Tensor) -> Tensor: ...
@overload
def logical_xor(lhs: Expr | float, rhs: Expr | float) -> Expr: ...

# tecomp/operations/elementwise.py: "maximum"
@overload
def maximum(lhs: Tensor, rhs: Operand) -> Tensor:
    """Return the larger operand element-wise; NaN propagates.

    Args:
        lhs: Tensor, expression or number.
        rhs: Tensor, expression or number.

    Returns:
        Tensor of the broadcast shape, or an expression if neither operand is a tensor.
        The dtype is that of the type promotion of `te`.

    Raises:
        DefinitionError: If the shapes are not broadcast-compatible.
        TypeMismatchError: If an operand has an unsupported dtype, or no common dtype exists.

    >>> from tecomp import te, topi
    >>> A = te.placeholder((4, 8), name="A")
    >>> b = te.placeholder((8,), name="b")
    >>> topi.maximum(A, b).shape
    (4, 8)
    """
@overload
def maximum(lhs: Operand, rhs: Tensor) -> Tensor: ...
@overload
def maximum(lhs: Expr | float, rhs: Expr | float) -> Expr: ...

# tecomp/operations/elementwise.py: "minimum"
@overload
def minimum(lhs: Tensor, rhs: Operand) -> Tensor:
    """Return the smaller operand element-wise; NaN propagates.

    Args:
        lhs: Tensor, expression or number.
        rhs: Tensor, expression or number.

    Returns:
        Tensor of the broadcast shape, or an expression if neither operand is a tensor.
        The dtype is that of the type promotion of `te`.

    Raises:
        DefinitionError: If the shapes are not broadcast-compatible.
        TypeMismatchError: If an operand has an unsupported dtype, or no common dtype exists.

    >>> from tecomp import te, topi
    >>> A = te.placeholder((4, 8), name="A")
    >>> b = te.placeholder((8,), name="b")
    >>> topi.minimum(A, b).shape
    (4, 8)
    """
@overload
def minimum(lhs: Operand, rhs: Tensor) -> Tensor: ...
@overload
def minimum(lhs: Expr | float, rhs: Expr | float) -> Expr: ...

# tecomp/operations/elementwise.py: "mod"
@overload
def mod(lhs: Tensor, rhs: Operand) -> Tensor:
    """Compute the remainder of `divide`, with the sign of `lhs`; integers modulo 0 give 0.

    Args:
        lhs: Tensor, expression or number.
        rhs: Tensor, expression or number.

    Returns:
        Tensor of the broadcast shape, or an expression if neither operand is a tensor.
        The dtype is that of the type promotion of `te`.

    Raises:
        DefinitionError: If the shapes are not broadcast-compatible.
        TypeMismatchError: If an operand has an unsupported dtype, or no common dtype exists.

    >>> from tecomp import te, topi
    >>> A = te.placeholder((4, 8), name="A")
    >>> b = te.placeholder((8,), name="b")
    >>> topi.mod(A, b).shape
    (4, 8)
    """
@overload
def mod(lhs: Operand, rhs: Tensor) -> Tensor: ...
@overload
def mod(lhs: Expr | float, rhs: Expr | float) -> Expr: ...

# tecomp/operations/elementwise.py: "multiply"
@overload
def multiply(lhs: Tensor, rhs: Operand) -> Tensor:
    """Compute the product element-wise.

    Args:
        lhs: Tensor, expression or number.
        rhs: Tensor, expression or number.

    Returns:
        Tensor of the broadcast shape, or an expression if neither operand is a tensor.
        The dtype is that of the type promotion of `te`.

    Raises:
        DefinitionError: If the shapes are not broadcast-compatible.
        TypeMismatchError: If an operand has an unsupported dtype, or no common dtype exists.

    >>> from tecomp import te, topi
    >>> A = te.placeholder((4, 8), name="A")
    >>> b = te.placeholder((8,), name="b")
    >>> topi.multiply(A, b).shape
    (4, 8)
    """
@overload
def multiply(lhs: Operand, rhs: Tensor) -> Tensor: ...
@overload
def multiply(lhs: Expr | float, rhs: Expr | float) -> Expr: ...

# tecomp/operations/elementwise.py: "negative"
def negative(x: Tensor) -> Tensor:
    """Negate element-wise; bool gives int32.

    Args:
        x: Input tensor.

    Raises:
        TypeMismatchError: If `x` is not a tensor.

    >>> from tecomp import te, topi
    >>> topi.negative(te.placeholder((4, 8), name="A")).shape
    (4, 8)
    """

# tecomp/operations/elementwise.py: "not_equal"
@overload
def not_equal(lhs: Tensor, rhs: Operand) -> Tensor:
    """Compare element-wise for `lhs != rhs`.

    Args:
        lhs: Tensor, expression or number.
        rhs: Tensor, expression or number.

    Returns:
        Tensor of the broadcast shape, or an expression if neither operand is a tensor.
        The dtype is bool.

    Raises:
        DefinitionError: If the shapes are not broadcast-compatible.
        TypeMismatchError: If an operand has an unsupported dtype, or no common dtype exists.

    >>> from tecomp import te, topi
    >>> A = te.placeholder((4, 8), name="A")
    >>> b = te.placeholder((8,), name="b")
    >>> topi.not_equal(A, b).shape
    (4, 8)
    """
@overload
def not_equal(lhs: Operand, rhs: Tensor) -> Tensor: ...
@overload
def not_equal(lhs: Expr | float, rhs: Expr | float) -> Expr: ...

# tecomp/operations/elementwise.py: "pow"
@overload
def power(lhs: Tensor, rhs: Operand) -> Tensor:
    """Raise `lhs` to the power `rhs` element-wise.

    Integer powers wrap around on overflow. A negative exponent of an integer rounds the
    result towards zero, and gives 0 for a base of 0.

    Args:
        lhs: Tensor, expression or number.
        rhs: Tensor, expression or number.

    Returns:
        Tensor of the broadcast shape, or an expression if neither operand is a tensor.
        The dtype is that of the type promotion of `te`.

    Raises:
        DefinitionError: If the shapes are not broadcast-compatible.
        TypeMismatchError: If an operand has an unsupported dtype, or no common dtype exists.

    >>> from tecomp import te, topi
    >>> A = te.placeholder((4, 8), name="A")
    >>> b = te.placeholder((8,), name="b")
    >>> topi.power(A, b).shape
    (4, 8)
    """
@overload
def power(lhs: Operand, rhs: Tensor) -> Tensor: ...
@overload
def power(lhs: Expr | float, rhs: Expr | float) -> Expr: ...

# tecomp/operations/elementwise.py: "bitwise_right_shift"
@overload
def right_shift(lhs: Tensor, rhs: Operand) -> Tensor:
    """Shift bits right element-wise, with sign extension.

    Args:
        lhs: Tensor, expression or number of integer dtype.
        rhs: Tensor, expression or number of integer dtype.

    Returns:
        Tensor of the broadcast shape, or an expression if neither operand is a tensor.
        The dtype is that of the type promotion of `te`.

    Raises:
        DefinitionError: If the shapes are not broadcast-compatible.
        TypeMismatchError: If an operand has an unsupported dtype, or no common dtype exists.

    >>> from tecomp import te, topi
    >>> A = te.placeholder((4, 8), "int32", name="A")
    >>> b = te.placeholder((8,), "int32", name="b")
    >>> topi.right_shift(A, b).shape
    (4, 8)
    """
@overload
def right_shift(lhs: Operand, rhs: Tensor) -> Tensor: ...
@overload
def right_shift(lhs: Expr | float, rhs: Expr | float) -> Expr: ...

# tecomp/operations/elementwise.py: "round"
def round(x: Tensor) -> Tensor:
    """Round to the nearest integer element-wise, ties away from zero; the dtype is kept.

    Args:
        x: Input tensor.

    Raises:
        TypeMismatchError: If `x` is not a tensor.

    >>> from tecomp import te, topi
    >>> topi.round(te.placeholder((4, 8), name="A")).shape
    (4, 8)
    """

# tecomp/operations/elementwise.py: "rsqrt"
def rsqrt(x: Tensor) -> Tensor:
    """Compute the reciprocal square root element-wise.

    Args:
        x: Input tensor of real floating-point dtype.

    Raises:
        TypeMismatchError: If `x` is not a tensor, or its dtype is unsupported.

    >>> from tecomp import te, topi
    >>> topi.rsqrt(te.placeholder((4, 8), name="A")).shape
    (4, 8)
    """

# tecomp/operations/elementwise.py: "sigmoid"
def sigmoid(x: Tensor) -> Tensor:
    """Compute `1 / (1 + exp(-x))` element-wise.

    Args:
        x: Input tensor of real floating-point dtype.

    Raises:
        TypeMismatchError: If `x` is not a tensor, or its dtype is unsupported.

    >>> from tecomp import te, topi
    >>> topi.sigmoid(te.placeholder((4, 8), name="A")).shape
    (4, 8)
    """

# tecomp/operations/elementwise.py: "sin"
def sin(x: Tensor) -> Tensor:
    """Compute the sine of angles in radians element-wise.

    Args:
        x: Input tensor of real floating-point dtype.

    Raises:
        TypeMismatchError: If `x` is not a tensor, or its dtype is unsupported.

    >>> from tecomp import te, topi
    >>> topi.sin(te.placeholder((4, 8), name="A")).shape
    (4, 8)
    """

# tecomp/operations/elementwise.py: "sinh"
def sinh(x: Tensor) -> Tensor:
    """Compute the hyperbolic sine element-wise.

    Args:
        x: Input tensor of real floating-point dtype.

    Raises:
        TypeMismatchError: If `x` is not a tensor, or its dtype is unsupported.

    >>> from tecomp import te, topi
    >>> topi.sinh(te.placeholder((4, 8), name="A")).shape
    (4, 8)
    """

# tecomp/operations/elementwise.py: "sqrt"
def sqrt(x: Tensor) -> Tensor:
    """Compute the square root element-wise.

    Args:
        x: Input tensor of real floating-point dtype.

    Raises:
        TypeMismatchError: If `x` is not a tensor, or its dtype is unsupported.

    >>> from tecomp import te, topi
    >>> topi.sqrt(te.placeholder((4, 8), name="A")).shape
    (4, 8)
    """

# tecomp/operations/elementwise.py: "subtract"
@overload
def subtract(lhs: Tensor, rhs: Operand) -> Tensor:
    """Compute the difference `lhs - rhs` element-wise.

    Args:
        lhs: Tensor, expression or number.
        rhs: Tensor, expression or number.

    Returns:
        Tensor of the broadcast shape, or an expression if neither operand is a tensor.
        The dtype is that of the type promotion of `te`.

    Raises:
        DefinitionError: If the shapes are not broadcast-compatible.
        TypeMismatchError: If an operand has an unsupported dtype, or no common dtype exists.

    >>> from tecomp import te, topi
    >>> A = te.placeholder((4, 8), name="A")
    >>> b = te.placeholder((8,), name="b")
    >>> topi.subtract(A, b).shape
    (4, 8)
    """
@overload
def subtract(lhs: Operand, rhs: Tensor) -> Tensor: ...
@overload
def subtract(lhs: Expr | float, rhs: Expr | float) -> Expr: ...

# tecomp/operations/elementwise.py: "tan"
def tan(x: Tensor) -> Tensor:
    """Compute the tangent of angles in radians element-wise.

    Args:
        x: Input tensor of real floating-point dtype.

    Raises:
        TypeMismatchError: If `x` is not a tensor, or its dtype is unsupported.

    >>> from tecomp import te, topi
    >>> topi.tan(te.placeholder((4, 8), name="A")).shape
    (4, 8)
    """

# tecomp/operations/elementwise.py: "tanh"
def tanh(x: Tensor) -> Tensor:
    """Compute the hyperbolic tangent element-wise.

    Args:
        x: Input tensor of real floating-point dtype.

    Raises:
        TypeMismatchError: If `x` is not a tensor, or its dtype is unsupported.

    >>> from tecomp import te, topi
    >>> topi.tanh(te.placeholder((4, 8), name="A")).shape
    (4, 8)
    """

# tecomp/operations/elementwise.py: "trunc"
def trunc(x: Tensor) -> Tensor:
    """Round towards zero to an integer element-wise; the dtype is kept.

    Args:
        x: Input tensor.

    Raises:
        TypeMismatchError: If `x` is not a tensor.

    >>> from tecomp import te, topi
    >>> topi.trunc(te.placeholder((4, 8), name="A")).shape
    (4, 8)
    """
