"""Element-wise mathematical functions; each returns a `Call` node or simpler expressions.

Functions that are intrinsics are defined from the table of element-wise functions. Functions with
rules of their own are written out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from tecomp.compute.expr_like import ExprLike, Value, value_of
from tecomp.errors import TypeMismatchError
from tecomp.ir.nodes import expr as ir
from tecomp.ir.nodes.dtype import BOOL, DType
from tecomp.ir.nodes.expr import (
    BinOp,
    Call,
    Const,
    Expr,
    as_expr,
    binary,
    const,
    match_types,
    select,
)
from tecomp.ir.nodes.operators import dot_type
from tecomp.operations.element_types import NARROW
from tecomp.operations.elementwise import elementwise_in
from tecomp.operations.formulas import Algebra
from tecomp.operations.rows import FLOATS, TO_BOOL, Op, with_name


class ExpressionAlgebra(Algebra):
    """Functions of expressions, for formulas of the table (see `tecomp.operations.formulas`).

    >>> from tecomp import te
    >>> ExpressionAlgebra().polynomial(te.var("x", "float64"), (1.0, 0.0, 3.0))
    (float64(3.0) * x + float64(0.0)) * x + float64(1.0)
    """

    def is_double(self, x: Expr) -> bool:
        """Return whether an expression has dtype float64."""
        return x.dtype.scalar == "float64"

    def where(self, condition: Expr, a: Expr, b: Expr) -> Expr:
        """Select `a` where the condition holds, and `b` elsewhere."""
        return select(condition, a, b)

    def equal(self, a: Expr, b: Expr | float) -> Expr:
        """Compare for equality."""
        return a.equal(b)

    def polynomial(self, x: Expr, coefficients: Sequence[float]) -> Expr:
        """Compute a polynomial by Horner's rule."""
        total = const(coefficients[-1], x.dtype)
        for coefficient in reversed(coefficients[:-1]):
            total = total * x + const(coefficient, x.dtype)
        return total

    def constant(self, value: float, x: Expr) -> Expr:
        """Return a number in the dtype of `x`."""
        return const(value, x.dtype)

    def wide(self, x: Expr) -> Expr:
        """Convert to float64."""
        return ir.cast(DType("float64").with_lanes(x.dtype.lanes), x)

    def narrow(self, value: Expr, x: Expr) -> Expr:
        """Convert a value of dtype float64 to the dtype of `x`."""
        return ir.cast(x.dtype, value)

    def maximum(self, a: Expr, b: Expr) -> Expr:
        """Return the larger value; NaN propagates."""
        return binary(BinOp.MAX, a, b)

    def minimum(self, a: Expr, b: Expr) -> Expr:
        """Return the smaller value; NaN propagates."""
        return binary(BinOp.MIN, a, b)

    def squared_magnitude(self, x: Expr) -> Expr:
        """Compute the square."""
        return x * x

    def finite(self, x: Expr) -> Expr:
        """Return a finite value, and 0 in place of infinities and NaN."""
        if not x.dtype.is_float:
            return x
        is_finite = Call("isfinite", (x,), BOOL.with_lanes(x.dtype.lanes))
        return select(is_finite, x, const(0, x.dtype))

    def function(self, name: str, *operands: Expr) -> Expr:
        """Compute the intrinsic function of a row."""
        return Call(name, operands, operands[0].dtype)


def formula_function(row: Op) -> Callable[..., Expr]:
    """Return the formula of a row as a function of expressions.

    Formulas of floats that have several steps are computed in float32 for narrower dtypes.

    >>> from tecomp import te
    >>> from tecomp.operations.elementwise import elementwise_in
    >>> formula_function(elementwise_in("topi")["left_shift"])(te.var("i"), te.var("j"))
    i << j
    """
    assert row.formula is not None
    formula = partial(row.formula, ExpressionAlgebra())
    if row.takes is not FLOATS:
        return formula

    def compute(*operands: Expr) -> Expr:
        dtype = operands[0].dtype
        if dtype.scalar in NARROW:
            wide = DType("float32").with_lanes(dtype.lanes)
            return ir.cast(dtype, formula(*[ir.cast(wide, operand) for operand in operands]))
        result: Expr = formula(*operands)
        return result

    return compute


def elementwise_functions(module: str) -> dict[str, Callable[..., Expr]]:
    """Return the functions of `te` that the table defines by name, as functions of a module.

    >>> elementwise_functions("tecomp.te")["exp"].__module__
    'tecomp.te'
    """
    found = {}
    for name, row in sorted(elementwise_in("te").items()):
        function = _define_unary(row) if row.arity == 1 else _define_binary(row)
        found[name] = with_name(function, name, module, _docstring(row))
    return found


def _define_unary(row: Op) -> Callable[[Value], Expr]:
    name, call, of_integers, is_test = row.name, row.call, row.of_integers, row.gives == TO_BOOL
    where = f"te.{name}: "

    def apply(x: Value) -> Expr:
        node = value_of(x, where)
        dtype = node.dtype
        truth = BOOL.with_lanes(dtype.lanes) if is_test else dtype
        if not dtype.is_float and of_integers is not None:
            return node if isinstance(of_integers, str) else const(of_integers, truth)
        _require_float(name, node)
        return Call(call, (node,), truth)

    return apply


def _define_binary(row: Op) -> Callable[[Value, Value], Expr]:
    name, formula = row.name, None if row.call else formula_function(row)

    def apply(x: Value, y: Value) -> Expr:
        return _call_of_two(name, x, y)

    def apply_formula(x: Value, y: Value) -> Expr:
        assert formula is not None
        return formula(*_floats(name, x, y))

    return apply_formula if formula else apply


def expression_function(row: Op) -> Callable[..., Expr] | None:
    """Return the function of expressions that a row defines, if it has an intrinsic or a formula.

    >>> from tecomp import te
    >>> expression_function(elementwise_in("topi")["left_shift"])(te.var("i"), te.var("j"))
    i << j
    """
    if row.call == "pow":
        return power
    if row.call or row.is_in("te"):
        return _define_unary(row) if row.arity == 1 else _define_binary(row)
    return formula_function(row) if row.formula else None


def _call_of_two(name: str, x: Value, y: Value) -> Expr:
    a, b = _floats(name, x, y)
    return Call(name, (a, b), a.dtype)


def _floats(name: str, x: Value, y: Value) -> tuple[Expr, Expr]:
    """Return the operands of a function of two floats in their common dtype."""
    where = f"te.{name}"
    a, b = match_types(value_of(x, f"{where}: "), value_of(y, f"{where}: "), where)
    _require_float(name, a)
    return a, b


def _docstring(row: Op) -> str:
    names = ("x", "y")[: row.arity]
    arguments = ", ".join(f'te.var("{name}", "float32")' for name in names)
    shown = f"\n{row.call}({', '.join(names)})" if row.call else ".dtype\n'float32'"
    return (
        f"{row.text_in('te')}\n\n>>> from tecomp import te\n"
        f">>> te.{row.name}({arguments}){shown}\n"
    )


def _require_float(name: str, node: Expr) -> None:
    if not node.dtype.is_float:
        raise TypeMismatchError(
            "te.{name} expects a float, got {dtype}; convert it, for example with "
            '.astype("float32")',
            name=name, dtype=node.dtype,
        )


def atan2(y: Value, x: Value) -> Expr:
    """Compute the angle of the point (x, y), in [-pi, pi] radians.

    >>> from tecomp import te
    >>> te.atan2(te.var("x", "float32"), te.var("y", "float32"))
    atan2(x, y)
    """
    return _call_of_two("atan2", y, x)


def power(x: Value, y: Value) -> Expr:
    """Compute `x` to the power `y`.

    Integer powers wrap around on overflow. A negative integer power is rounded towards zero, and is
    0 for a base of 0. A constant non-negative integer power is expanded into multiplications.

    >>> from tecomp import te
    >>> te.power(te.var("x", "float32"), te.var("y", "float32"))
    pow(x, y)
    >>> te.power(te.var("n", "int32"), 3)
    n * (n * n)
    """
    a, b = match_types(value_of(x, "te.pow: "), value_of(y, "te.pow: "), "te.pow")
    if not a.dtype.is_integer:
        return _call_of_two("pow", a, b)
    if isinstance(b, Const) and b.value >= 0:
        return _products(a, int(b.value))
    return Call("pow", (a, b), a.dtype)


def _products(x: Expr, power: int) -> Expr:
    """Return x**y by repeated squaring: the product of x**(2**b) over the set bits b of y."""
    total, square = None, x
    for bit in range(power.bit_length()):
        if bit:
            square = binary(BinOp.MUL, square, square)
        if power >> bit & 1:
            total = square if total is None else binary(BinOp.MUL, total, square)
    return const(1, x.dtype) if total is None else total


pow = power


def abs(x: Value) -> Expr:
    """Compute the absolute value; the smallest value of a signed integer dtype is unchanged.

    >>> from tecomp import te
    >>> te.abs(te.var("x", "float32"))
    fabs(x)
    """
    node = value_of(x)
    if node.dtype.kind in ("uint", "bool"):
        return node
    if node.dtype.is_integer:
        return Call("abs", (node,), node.dtype)
    _require_float("fabs", node)
    return Call("fabs", (node,), node.dtype)


def popcount(x: Value) -> Expr:
    """Count the set bits of an integer, in the dtype of `x`.

    Raises:
        TypeMismatchError: If `x` is not an integer.

    >>> from tecomp import te
    >>> te.popcount(te.var("x", "uint8"))
    popcount(x)
    """
    node = value_of(x)
    if not node.dtype.is_integer:
        raise TypeMismatchError("te.popcount expects an integer, got {dtype}", dtype=node.dtype)
    return Call("popcount", (node,), node.dtype)


def dot(a: Value, b: Value) -> Expr:
    """Compute the dot product of two 32-bit vectors, which are elements of vector-dtype tensors.

    Four int8 or uint8 lanes, also of mixed signedness, and two int16 lanes give an int32, which
    wraps around on overflow. Two bfloat16 lanes give a float32 with unspecified rounding order.
    Processors have instructions for these dot products; `te.sum(te.dot(...))` accumulates them.

    >>> from tecomp import te
    >>> A = te.placeholder((8, 16), dtype="int16x2", name="A")
    >>> B = te.placeholder((16, 64), dtype="int16x2", name="B")
    >>> k = te.reduce_axis((0, 16), name="k")
    >>> C = te.compute((8, 64), lambda i, j: te.sum(te.dot(A[i, k], B[k, j]), axis=k), name="C")
    >>> C.dtype
    'int32'

    Raises:
        TypeMismatchError: If the operands are not such vectors.
    """
    x, y = value_of(a), value_of(b)
    sum_type = dot_type(x.dtype, y.dtype)
    if sum_type is None or sum_type.lanes > 1:
        raise TypeMismatchError(
            "te.dot expects two packed 32-bit vectors such as int8x4, int16x2 or bfloat16x2, got "
            "{dtype} and {y_dtype}; use such a dtype for the placeholders, the last axis of their "
            "arrays then holds the lanes of a vector",
            dtype=x.dtype, y_dtype=y.dtype,
        )
    return Call("dot", (x, y), sum_type)


def concat_vectors(parts: Sequence[Expr]) -> Expr:
    """Concatenate a power-of-two number of values of one dtype into a vector."""
    values = list(parts)
    while len(values) > 1:
        values = [
            Call("join", (a, b), a.dtype.with_lanes(2 * a.dtype.lanes))
            for a, b in zip(values[::2], values[1::2], strict=True)
        ]
    return values[0]


def reinterpret(dtype: str, x: Value) -> Expr:
    """Reinterpret the bits of `x` in a dtype of the same size; lane 0 has the lowest bits.

    >>> from tecomp import te
    >>> A = te.placeholder((8,), name="A")
    >>> te.reinterpret("int32", A[0]).dtype, te.reinterpret("int16x2", A[0]).dtype
    ('int32', 'int16x2')

    Raises:
        TypeMismatchError: If the dtypes differ in size, or one of them is bool.
    """
    node, target = value_of(x), DType(dtype)
    bits = {kind.bits * kind.lanes for kind in (node.dtype, target)}
    if len(bits) > 1 or target.is_bool or node.dtype.is_bool:
        raise TypeMismatchError(
            "te.reinterpret requires non-bool dtypes of equal size, got {dtype} and {target}; use "
            "te.cast to convert to the nearest value",
            dtype=node.dtype, target=target,
        )
    return Call("reinterpret", (node,), target)


def clip(x: Value, a_min: Value, a_max: Value) -> Expr:
    """Limit `x` to the interval [a_min, a_max]; Python numbers take the dtype of `x`.

    Raises:
        TypeMismatchError: If the dtype of `x` cannot hold a bound.

    >>> from tecomp import te
    >>> te.clip(te.var("x", "float32"), 0, 6)
    min(max(x, float32(0.0)), float32(6.0))
    """
    node = value_of(x)
    low, high = (
        bound if isinstance(bound, Expr | ExprLike) else as_expr(bound, node.dtype)
        for bound in (a_min, a_max)
    )
    raised = binary(BinOp.MAX, node, value_of(low))
    return binary(BinOp.MIN, raised, value_of(high))


def cast(expr: Value, dtype: str) -> Expr:
    """Cast `expr` to `dtype`, the same as `expr.astype(dtype)`.

    A float out of the range of an integer dtype saturates, and NaN becomes 0. Integers wrap around.
    A cast to bool gives True for every value except zero.

    >>> from tecomp import te
    >>> te.cast(te.var("x", "float32"), "int8")
    cast("int8", x)
    """
    return ir.cast(dtype, value_of(expr))
