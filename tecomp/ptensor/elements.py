"""What elementwise operations compute, as an expression of the elements."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tecomp import te
from tecomp.ptensor.operation import Operation
from tecomp.ptensor.operations.elementwise import Cast, Elementwise, Where
from tecomp.ptensor.promotion import COMPLEX, PART, meet
from tecomp.ptensor.values import Complex, Element

_UNARY: Mapping[str, Callable[..., Any]] = {
    "exp": te.exp, "log": te.log, "sqrt": te.sqrt, "sin": te.sin, "cos": te.cos, "tanh": te.tanh,
    "negative": lambda x: -x, "square": lambda x: x * x, "positive": lambda x: x, "abs": te.abs,
}
_BINARY: Mapping[str, Callable[..., Any]] = {
    "add": lambda x, y: x + y,
    "subtract": lambda x, y: x - y,
    "multiply": lambda x, y: x * y,
    "divide": lambda x, y: x / y,
    "maximum": te.max,
    "minimum": te.min,
    "less": lambda x, y: x < y,
    "greater": lambda x, y: x > y,
    "equal": lambda x, y: x == y,
}


def converted(value: Element, source: str, target: str) -> Element:
    """An element in another type."""
    if source == target:
        return value
    if target in COMPLEX:
        part = PART[target]
        if isinstance(value, Complex):
            return Complex(te.cast(value.re, part), te.cast(value.im, part))
        return Complex(te.cast(value, part), te.const(0.0, part))
    if isinstance(value, Complex):
        raise AssertionError("complex numbers are converted to complex numbers only")
    return te.cast(value, target)


def element(op: Operation, operands: Sequence[Element], dtypes: Sequence[str]) -> Element:
    """The element of an elementwise operation's result.

    Args:
        op: the operation.
        operands: the elements of its operands.
        dtypes: their types.
    """
    if isinstance(op, Cast):
        return converted(operands[0], dtypes[0], op.dtype)
    if isinstance(op, Where):
        return _where(operands, dtypes)
    assert isinstance(op, Elementwise)
    dtype = op.computed_in(dtypes)
    values = [converted(v, d, dtype) for v, d in zip(operands, dtypes, strict=True)]
    functions = _UNARY if len(values) == 1 else _BINARY
    result: Element = functions[op.kind](*values)
    return result


def _where(operands: Sequence[Element], dtypes: Sequence[str]) -> Element:
    dtype = meet(dtypes[1:])
    condition, *cases = operands
    assert not isinstance(condition, Complex)
    one, other = (converted(v, d, dtype) for v, d in zip(cases, dtypes[1:], strict=True))
    if isinstance(one, Complex) and isinstance(other, Complex):
        return Complex(
            te.select(condition, one.re, other.re), te.select(condition, one.im, other.im)
        )
    assert not isinstance(one, Complex)
    assert not isinstance(other, Complex)
    return te.select(condition, one, other)


def is_elementwise(op: Operation) -> bool:
    """Whether an element of the result is made of those at its own place."""
    return isinstance(op, Elementwise | Cast | Where)
