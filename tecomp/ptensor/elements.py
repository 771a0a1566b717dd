"""What elementwise operations compute, as an expression of the elements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tecomp import te
from tecomp.ptensor.formulas import complex, real
from tecomp.ptensor.operation import Operation
from tecomp.ptensor.operations.elementwise import Cast, Elementwise, Where
from tecomp.ptensor.promotion import COMPLEX, PART, meet
from tecomp.ptensor.values import Complex, Element


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
        assert target == "bool", "complex numbers have no order"
        return te.any(te.cast(value.re, target), te.cast(value.im, target))
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
    values: list[Any] = [converted(v, d, dtype) for v, d in zip(operands, dtypes, strict=True)]
    if dtype not in COMPLEX:
        return (real.UNARY if op.arity == 1 else real.BINARY)[op.kind](*values)
    if op.kind in complex.NARROW:
        return _of_complex(op, values)
    # The parts in float64 have room for squares, and for the digits that differences lose.
    wide = [converted(v, dtype, "complex128") for v in values]
    return converted(_of_complex(op, wide), "complex128", dtype)


def _of_complex(op: Elementwise, values: Sequence[Any]) -> Element:
    return (complex.UNARY if op.arity == 1 else complex.BINARY)[op.kind](*values)


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
