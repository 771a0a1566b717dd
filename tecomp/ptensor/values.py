"""Compiler representation of values: a tensor, or two tensors for the parts of complex numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from tecomp import te
from tecomp.ptensor.types import Shape


@dataclass(frozen=True, slots=True)
class Complex:
    """Complex number as two expressions."""

    re: te.Expr
    im: te.Expr

    def __add__(self, other: Complex) -> Complex:
        return Complex(self.re + other.re, self.im + other.im)

    def __sub__(self, other: Complex) -> Complex:
        return Complex(self.re - other.re, self.im - other.im)

    def __neg__(self) -> Complex:
        return Complex(-self.re, -self.im)

    def __mul__(self, other: Complex) -> Complex:
        return Complex(
            self.re * other.re - self.im * other.im, self.re * other.im + self.im * other.re
        )


@dataclass(frozen=True, slots=True)
class ComplexTensor:
    """Complex tensor as two tensors of one shape.

    Attributes:
        re: Real parts.
        im: Imaginary parts.
        pairs: Interleaved tensor of which both parts are views, with an additional axis of size 2;
            None if there is none.
    """

    re: te.Tensor
    im: te.Tensor
    pairs: te.Tensor | None = None


Element: TypeAlias = te.Expr | Complex
Value: TypeAlias = te.Tensor | ComplexTensor


def element_at(value: Value, index: Sequence[te.Expr | int]) -> Element:
    """Return the element of a value at an index."""
    if isinstance(value, ComplexTensor):
        return Complex(value.re(*index), value.im(*index))
    return value(*index)


def real(value: Element) -> te.Expr:
    """Return an element that is known to be real."""
    assert not isinstance(value, Complex)
    return value


def broadcast_at(value: Value, index: Sequence[te.Expr]) -> Element:
    """Return the element of a broadcast value at an index of the broadcast shape."""
    shape = shape_of(value)
    suffix = index[len(index) - len(shape) :]
    return element_at(value, [0 if n == 1 else i for n, i in zip(shape, suffix, strict=True)])


def shape_of(value: Value) -> tuple[te.Expr | int, ...]:
    """Return the shape of a value."""
    return value.re.shape if isinstance(value, ComplexTensor) else value.shape


def value_of(shape: Shape, element: Callable[..., Element], name: str) -> Value:
    """Define a value by a function of the index; both parts of a complex value form one stage."""
    parts: list[Element] = []

    def parted(*index: te.Expr) -> Any:
        value = element(*index)
        parts.append(value)
        return (value.re, value.im) if isinstance(value, Complex) else value

    result = te.compute(shape, parted, name=name)
    if isinstance(parts[0], Complex):
        return ComplexTensor(*result)
    tensor: te.Tensor = result
    return tensor


def interleave_complex(value: ComplexTensor, name: str) -> te.Tensor:
    """Interleave the parts of a complex value along a new last axis of size 2."""
    if value.pairs is not None:
        return value.pairs
    pairs: te.Tensor = te.compute(
        (*value.re.shape, 2),
        lambda *i: te.select(i[-1] == 0, value.re(*i[:-1]), value.im(*i[:-1])), name=name)
    return pairs


def deinterleave_complex(pairs: te.Tensor) -> ComplexTensor:
    """Return a complex value from an interleaved tensor."""
    re, im = [
        te.compute(pairs.shape[:-1], lambda *i, part=part: pairs(*i, part), name=pairs.name)
        for part in (0, 1)
    ]
    return ComplexTensor(re, im, pairs)


def map_parts(value: Value, function: Callable[[te.Tensor], te.Tensor]) -> Value:
    """Apply a data-movement function to a value, or to both parts of a complex value."""
    if isinstance(value, ComplexTensor):
        return ComplexTensor(function(value.re), function(value.im))
    return function(value)


def select_value(condition: te.Expr, on_true: Element, on_false: Element) -> Element:
    """Select one of two elements; the element that is not selected is not read."""
    if isinstance(on_true, Complex) and isinstance(on_false, Complex):
        return Complex(
            te.if_then_else(condition, on_true.re, on_false.re),
            te.if_then_else(condition, on_true.im, on_false.im),
        )
    assert not isinstance(on_true, Complex)
    assert not isinstance(on_false, Complex)
    result: te.Expr = te.if_then_else(condition, on_true, on_false)
    return result
