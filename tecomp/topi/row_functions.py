"""Define the element-wise functions of the namespace from their table."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from tecomp import te
from tecomp.compute.intrinsics import expression_function
from tecomp.operations.elementwise import elementwise_in
from tecomp.operations.rows import BITS, FLOATING, FLOATS, INTEGERS, TO_BOOL, TRUTH, Op, with_name
from tecomp.te import Expr, Tensor
from tecomp.topi.broadcast import define_broadcast, define_unary
from tecomp.topi.math import define_elementwise
from tecomp.topi.validation import Operand, value_of


def elementwise_functions(module: str) -> dict[str, Callable[..., Tensor | Expr]]:
    """Return the element-wise functions by name, as functions of a module.

    >>> elementwise_functions("tecomp.topi")["exp"].__module__
    'tecomp.topi'
    """
    found = {}
    for name, row in sorted(elementwise_in("topi").items()):
        define = _define_binary if row.arity == 2 else _define_unary
        if _takes_expressions(row):
            define = _define_unary_of_operands
        function = _OWN.get(name) or expression_function(row)
        assert function is not None, f"topi.{name} has no formula"
        found[name] = with_name(define(function, name), name, module, _docstring(row, name))
    return found


def _takes_expressions(row: Op) -> bool:
    """Return whether a function of one operand takes expressions besides tensors, as in TVM."""
    return row.arity == 1 and row.takes in (TRUTH, BITS)


def _define_unary(function: Callable[..., Expr], name: str) -> Callable[..., Any]:
    def apply(x: Tensor) -> Tensor:
        return define_elementwise(x, function, name)

    return apply


def _define_unary_of_operands(function: Callable[..., Expr], name: str) -> Callable[..., Any]:
    def apply(data: Operand) -> Tensor | Expr:
        return define_unary(data, function, name)

    return apply


def _define_binary(function: Callable[..., Expr], name: str) -> Callable[..., Any]:
    def apply(lhs: Operand, rhs: Operand) -> Tensor | Expr:
        return define_broadcast(lhs, rhs, function, name)

    return apply


def _exclusive_or(x: Any, y: Any) -> Expr:
    return te.any(te.all(x, te.logical_not(y)), te.all(te.logical_not(x), y))


def _mod(x: Any, y: Any) -> Expr:
    is_float = any(value_of(value).dtype.is_float for value in (x, y))
    return te.fmod(x, y) if is_float else te.truncmod(x, y)


def _power(x: Any, y: Any) -> Expr:
    total = x + y  # has the common dtype of both operands
    if not isinstance(total, Expr) or total.dtype.is_float:
        return te.power(x, y)
    base, exponent = (te.cast(value, total.dtype) for value in (x, y))
    return te.power(base, exponent)


_OWN: Mapping[str, Callable[..., Expr]] = MappingProxyType({
    "abs": te.abs, "divide": te.div, "floor_divide": te.floordiv, "floor_mod": te.floormod,
    "logical_and": te.all, "logical_not": te.logical_not,
    "logical_or": te.any, "logical_xor": _exclusive_or, "maximum": te.max, "minimum": te.min,
    "mod": _mod, "power": _power,
})
"""Functions of expressions whose rows have neither an intrinsic nor a formula for all dtypes."""

_UNARY = """{text}

Args:
    {parameter}: {operand}{words}.

Raises:
    TypeMismatchError: If `{parameter}` is not {operands}{problem}.

>>> from tecomp import te, topi
>>> {call}
{shown}
"""
_BINARY = """{text}

Args:
    lhs: Tensor, expression or number{words}.
    rhs: Tensor, expression or number{words}.

Returns:
    Tensor of the broadcast shape, or an expression if neither operand is a tensor.
    The dtype is {result}.

Raises:
    DefinitionError: If the shapes are not broadcast-compatible.
    TypeMismatchError: If an operand has an unsupported dtype, or no common dtype exists.

>>> from tecomp import te, topi
>>> A = te.placeholder((4, 8), {dtype}name="A")
>>> b = te.placeholder((8,), {dtype}name="b")
>>> topi.{name}(A, b).shape
(4, 8)
"""
_EXAMPLE_DTYPES = MappingProxyType({TRUTH: "bool", BITS: "int32", INTEGERS: "int32"})


def _docstring(row: Op, name: str) -> str:
    text = row.text_in("topi").replace("x1", "lhs").replace("x2", "rhs")
    words = f" of {_words(row)}" if _words(row) else ""
    dtype = f'"{_EXAMPLE_DTYPES[row.takes]}", ' if row.takes in _EXAMPLE_DTYPES else ""
    if row.arity == 2:
        result = "bool" if row.gives == TO_BOOL else "that of the type promotion of `te`"
        return _BINARY.format(text=text, words=words, result=result, dtype=dtype, name=name)
    has_operands, is_test = _takes_expressions(row), row.gives == TO_BOOL
    call = f'topi.{name}(te.placeholder((4, 8), {dtype}name="A"))'
    return _UNARY.format(
        text=text, parameter="data" if has_operands else "x", words=words,
        operand="Tensor, expression or number" if has_operands else "Input tensor",
        operands="a tensor or a value" if has_operands else "a tensor",
        problem=", or its dtype is unsupported" if words else "",
        call=f"{call}.{'dtype' if is_test else 'shape'}", shown="'bool'" if is_test else "(4, 8)",
    )


def _words(row: Op) -> str:
    """Return the description of the supported dtypes; it is empty if all dtypes are supported."""
    if row.takes in (FLOATS, FLOATING) and row.of_integers is None:
        return FLOATS.words
    return {TRUTH: "dtype bool", BITS: BITS.words, INTEGERS: INTEGERS.words}.get(row.takes, "")
