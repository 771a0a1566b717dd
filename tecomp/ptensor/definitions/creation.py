"""Tensors that are made of numbers: an element is a function of its index."""

from __future__ import annotations

from collections.abc import Sequence

from tecomp import te, topi
from tecomp.ptensor.definitions.define import define
from tecomp.ptensor.elements import converted
from tecomp.ptensor.operations.creation import (
    Arange,
    Create,
    CreateLike,
    ExtractTriangle,
    Eye,
    Linspace,
)
from tecomp.ptensor.promotion import COMPLEX, INTEGERS
from tecomp.ptensor.types import PTensorType
from tecomp.ptensor.values import Complex, Element, Value, element_at, mapped, value_of

Types = Sequence[PTensorType]


@define.register
def _(op: Arange, operands: Sequence[Value], types: Types, result: PTensorType) -> Value:
    start, step = op.start, op.step
    exact = isinstance(start, int) and isinstance(step, int) and result.dtype in INTEGERS
    wide = "float64"
    if exact:
        wide = "uint64" if result.dtype == "uint64" else "int64"
    if wide == "uint64":  # sums wrap around, so that steps below 0 lead down
        start, step = start % 2**64, step % 2**64

    def at(i: te.Expr) -> Element:
        number = te.const(start, wide) + te.cast(i, wide) * te.const(step, wide)
        return converted(number, wide, result.dtype)

    return value_of(result.shape, at, op.name)


@define.register
def _(op: Create, operands: Sequence[Value], types: Types, result: PTensorType) -> Value:
    return _filled(operands[0], types[0], result, op.name)


@define.register
def _(op: CreateLike, operands: Sequence[Value], types: Types, result: PTensorType) -> Value:
    return _filled(operands[1], types[1], result, op.name)


def _filled(value: Value, given: PTensorType, result: PTensorType, name: str) -> Value:
    def at(*_: te.Expr) -> Element:
        return converted(element_at(value, ()), given.dtype, result.dtype)

    return value_of(result.shape, at, name)


@define.register
def _(op: Eye, operands: Sequence[Value], types: Types, result: PTensorType) -> Value:
    def at(i: te.Expr, j: te.Expr) -> Element:
        return converted(te.cast(j - i == op.k, "int8"), "int8", result.dtype)

    return value_of(result.shape, at, op.name)


@define.register
def _(op: Linspace, operands: Sequence[Value], types: Types, result: PTensorType) -> Value:
    # Computed in the widest type, so that the last number is `stop` itself.
    intervals = max(op.n - 1 if op.endpoint else op.n, 1)
    last = op.n - 1 if op.endpoint and op.n > 1 else -1

    def part(i: te.Expr, start: float, stop: float) -> te.Expr:
        whole, count = te.const(stop, "float64"), te.const(float(intervals), "float64")
        first = te.const(start, "float64")
        number = first + te.cast(i, "float64") * ((whole - first) / count)
        return te.select(i == last, whole, number)

    def at(i: te.Expr) -> Element:
        start, stop = complex(op.start), complex(op.stop)
        real = part(i, start.real, stop.real)
        if result.dtype not in COMPLEX:
            return converted(real, "float64", result.dtype)
        both = Complex(real, part(i, start.imag, stop.imag))
        return converted(both, "complex128", result.dtype)

    return value_of(result.shape, at, op.name)


@define.register
def _(op: ExtractTriangle, operands: Sequence[Value], types: Types, result: PTensorType) -> Value:
    return mapped(operands[0], lambda x: topi.trilu(x, op.k, op.kind == "upper"))
