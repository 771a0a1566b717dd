"""What a value is for the compiler: a tensor; complex numbers are two, of the parts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from tecomp import te
from tecomp.ptensor.types import Shape


@dataclass(frozen=True, slots=True)
class Complex:
    """A complex number: two expressions."""

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
    """A tensor of complex numbers: two tensors of one shape.

    Attributes:
        re: the real parts.
        im: the imaginary parts.
        pairs: what both are views of, if they lie side by side: it has an axis of two more.
    """

    re: te.Tensor
    im: te.Tensor
    pairs: te.Tensor | None = None


Element: TypeAlias = te.Expr | Complex
Value: TypeAlias = te.Tensor | ComplexTensor


def element_at(value: Value, index: Sequence[te.Expr | int]) -> Element:
    """The element of a value at an index."""
    if isinstance(value, ComplexTensor):
        return Complex(value.re(*index), value.im(*index))
    return value(*index)


def real(value: Element) -> te.Expr:
    """An element that is known to be real."""
    assert not isinstance(value, Complex)
    return value


def broadcast_at(value: Value, index: Sequence[te.Expr]) -> Element:
    """The element of a value at an index of a shape that it broadcasts to."""
    shape = shape_of(value)
    own = index[len(index) - len(shape) :]
    return element_at(value, [0 if n == 1 else i for n, i in zip(shape, own, strict=True)])


def shape_of(value: Value) -> tuple[te.Expr | int, ...]:
    """The extents of a value."""
    return value.re.shape if isinstance(value, ComplexTensor) else value.shape


def value_of(shape: Shape, element: Callable[..., Element], name: str) -> Value:
    """The value whose element at each index a function says; both parts of it are one stage."""
    parts: list[Element] = []

    def parted(*index: te.Expr) -> Any:
        made = element(*index)
        parts.append(made)
        return (made.re, made.im) if isinstance(made, Complex) else made

    result = te.compute(shape, parted, name=name)
    if isinstance(parts[0], Complex):
        return ComplexTensor(*result)
    tensor: te.Tensor = result
    return tensor


def paired(value: ComplexTensor, name: str) -> te.Tensor:
    """Both parts of complex numbers side by side, along one more axis."""
    if value.pairs is not None:
        return value.pairs
    made: te.Tensor = te.compute(
        (*value.re.shape, 2),
        lambda *i: te.select(i[-1] == 0, value.re(*i[:-1]), value.im(*i[:-1])), name=name)
    return made


def unpaired(pairs: te.Tensor) -> ComplexTensor:
    """Complex numbers whose parts lie side by side."""
    re, im = [
        te.compute(pairs.shape[:-1], lambda *i, part=part: pairs(*i, part), name=pairs.name)
        for part in (0, 1)
    ]
    return ComplexTensor(re, im, pairs)


def mapped(value: Value, function: Callable[[te.Tensor], te.Tensor]) -> Value:
    """A function that moves elements, of both parts."""
    if isinstance(value, ComplexTensor):
        return ComplexTensor(function(value.re), function(value.im))
    return function(value)


def either(condition: te.Expr, one: Element, other: Element) -> Element:
    """One element or another; the one that is not chosen is not read."""
    if isinstance(one, Complex) and isinstance(other, Complex):
        return Complex(
            te.if_then_else(condition, one.re, other.re),
            te.if_then_else(condition, one.im, other.im),
        )
    assert not isinstance(one, Complex)
    assert not isinstance(other, Complex)
    result: te.Expr = te.if_then_else(condition, one, other)
    return result
