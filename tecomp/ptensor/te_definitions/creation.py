"""Creation and element-wise operations in `te`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import singledispatch

import numpy as np

from tecomp import te, topi
from tecomp.ptensor.formulas.tables import convert_element, element
from tecomp.ptensor.operation import PTensorOp
from tecomp.ptensor.operations.creation import (
    Arange,
    Create,
    CreateLike,
    ExtractTriangle,
    Eye,
    Linspace,
)
from tecomp.ptensor.operations.elementwise import CastOp, Elementwise, WhereOp
from tecomp.ptensor.types import COMPLEX, INTEGERS, PTensorType
from tecomp.ptensor.values import (
    Complex,
    Element,
    Value,
    broadcast_at,
    element_at,
    map_parts,
    value_of,
)


@singledispatch
def define(
    op: PTensorOp, operands: Sequence[Value], types: Sequence[PTensorType], result: PTensorType
) -> Value:
    """Define the result of an operation as tensors of `te`.

    Args:
        op: Operation.
        operands: Operands.
        types: Types of the operands.
        result: Type of the result.
    """
    raise NotImplementedError(f"{op.name} has no definition in te")


Types = Sequence[PTensorType]


@singledispatch
def numbers_of(op: PTensorOp) -> tuple[np.generic, ...]:
    """Return the numbers from which the elements of a generated tensor are computed."""
    raise NotImplementedError(f"{op.name} is not made of numbers")


@singledispatch
def element_of(op: PTensorOp, numbers: Sequence[te.Expr], index: Sequence[te.Expr]) -> Element:
    """Return an element of a generated tensor.

    Args:
        op: Operation, of which only the dtype is read.
        numbers: Result of `numbers_of`.
        index: Index of the element.
    """
    raise NotImplementedError(f"{op.name} is not made of numbers")


@define.register(Arange)
@define.register(Eye)
@define.register(Linspace)
def _(op: PTensorOp, operands: Sequence[Value], types: Types, result: PTensorType) -> Value:
    numbers = [te.const(number.item(), number.dtype.name) for number in numbers_of(op)]
    return value_of(result.shape, lambda *i: element_of(op, numbers, i), op.name)


@numbers_of.register
def _(op: Arange) -> tuple[np.generic, ...]:
    start, step = op.start, op.step
    if isinstance(start, int) and isinstance(step, int) and op.dtype in INTEGERS:
        # 64-bit arithmetic wraps around, so large numbers and negative steps are exact.
        row = np.array([start % 2**64, step % 2**64], np.uint64)
        row = row if op.dtype == "uint64" else row.view(np.int64)
        return row[0], row[1]
    return np.float64(start), np.float64(step)


@element_of.register
def _(op: Arange, numbers: Sequence[te.Expr], index: Sequence[te.Expr]) -> Element:
    (start, step), (i,) = numbers, index
    return convert_element(start + te.cast(i, step.dtype) * step, step.dtype, op.dtype)


@numbers_of.register
def _(op: Eye) -> tuple[np.generic, ...]:
    return (np.int64(max(min(op.k, 2**62), -(2**62))),)


@element_of.register
def _(op: Eye, numbers: Sequence[te.Expr], index: Sequence[te.Expr]) -> Element:
    (k,), (i, j) = numbers, index
    return convert_element(te.cast(te.cast(j, "int64") - i == k, "int8"), "int8", op.dtype)


@numbers_of.register
def _(op: Linspace) -> tuple[np.generic, ...]:
    start, stop = complex(op.start), complex(op.stop)
    intervals = np.float64(max(op.n - 1 if op.endpoint else op.n, 1))
    last = op.n - 1 if op.endpoint and op.n > 1 else -1
    found = _steps(start.real, stop.real, intervals)
    if op.dtype in COMPLEX:
        found += _steps(start.imag, stop.imag, intervals)
    return (*found, np.int64(last))


def _steps(start: float, stop: float, intervals: np.float64) -> tuple[np.float64, ...]:
    """Return first number, step, last number, and the scale of the first two."""
    first, last = np.float64(start), np.float64(stop)
    with np.errstate(all="ignore"):
        if not np.isfinite(last - first) and np.isfinite(first) and np.isfinite(last):
            # The distance overflows, but half of the distance does not.
            return first / 2, (last / 2 - first / 2) / intervals, last, np.float64(2)
        return first, (last - first) / intervals, last, np.float64(1)


@element_of.register
def _(op: Linspace, numbers: Sequence[te.Expr], index: Sequence[te.Expr]) -> Element:
    # Compute in the widest dtype; the last number is exactly `stop`.
    *steps, last = numbers
    (i,) = index

    def part(start: te.Expr, step: te.Expr, stop: te.Expr, scale: te.Expr) -> te.Expr:
        number = (start + te.cast(i, "float64") * step) * scale
        return te.select(te.cast(i, "int64") == last, stop, number)

    real = part(*steps[:4])
    if op.dtype not in COMPLEX:
        return convert_element(real, "float64", op.dtype)
    return convert_element(Complex(real, part(*steps[4:])), "complex128", op.dtype)


@define.register
def _(op: Create, operands: Sequence[Value], types: Types, result: PTensorType) -> Value:
    return _fill(operands[0], types[0], result, op.name)


@define.register
def _(op: CreateLike, operands: Sequence[Value], types: Types, result: PTensorType) -> Value:
    return _fill(operands[1], types[1], result, op.name)


def _fill(value: Value, value_type: PTensorType, result: PTensorType, name: str) -> Value:
    def at(*_: te.Expr) -> Element:
        return convert_element(element_at(value, ()), value_type.dtype, result.dtype)

    return value_of(result.shape, at, name)


@define.register
def _(op: ExtractTriangle, operands: Sequence[Value], types: Types, result: PTensorType) -> Value:
    return map_parts(operands[0], lambda x: topi.trilu(x, op.k, op.kind == "upper"))


@define.register(Elementwise)
@define.register(CastOp)
@define.register(WhereOp)
def _(
    op: PTensorOp, operands: Sequence[Value], types: Sequence[PTensorType], result: PTensorType
) -> Value:
    dtypes = [t.dtype for t in types]

    def at(*index: te.Expr) -> Element:
        return element(op, [broadcast_at(v, index) for v in operands], dtypes)

    return value_of(result.shape, at, op.where)
