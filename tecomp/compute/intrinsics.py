"""Element-wise mathematical functions; each returns a `Call` node or simpler expressions.

Functions that are intrinsics are defined from the table of element-wise functions. Functions with
rules of their own are written out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tecomp.compute.expr_like import ExprLike, Value, value_of
from tecomp.compute.expression_algebra import formula_function
from tecomp.errors import TypeMismatchError
from tecomp.ir.nodes import expr as ir
from tecomp.ir.nodes.dtype import BOOL, DType
from tecomp.ir.nodes.expr import BinOp, Call, Const, Expr, as_expr, binary, const, match_types
from tecomp.ir.nodes.operators import dot_type
from tecomp.operations.elementwise import elementwise_in
from tecomp.operations.rows import TO_BOOL, Op, with_name


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
