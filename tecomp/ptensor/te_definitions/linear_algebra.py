"""Products of matrices, vectors and tensors: real products use the definitions of the library.

A complex product consists of four real products, so that each uses the fastest kernel.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tecomp import te
from tecomp.ptensor.operations.linear_algebra import (
    Cross,
    Diagonal,
    MatMul,
    MatrixTranspose,
    Outer,
    TensorDot,
    TraceOp,
    VecDot,
    diagonal_length,
)
from tecomp.ptensor.operations.reduction import te_accumulator_dtype
from tecomp.ptensor.te_definitions.creation import define
from tecomp.ptensor.te_definitions.reduction import (
    ReductionDomain,
    as_dtype,
    narrow_value,
    widen_element,
)
from tecomp.ptensor.types import PART, PTensorType, Shape, broadcast_shapes
from tecomp.ptensor.values import (
    Complex,
    ComplexTensor,
    Element,
    Value,
    broadcast_at,
    element_at,
    real,
    value_of,
)
from tecomp.schedules.common import wide_type
from tecomp.topi import tensordot
from tecomp.topi.contraction import define_matmul

Operands = Sequence[Value]
Types = Sequence[PTensorType]


def _convert(operands: Operands, types: Types, dtype: str) -> list[Value]:
    return [as_dtype(x, x_type, dtype) for x, x_type in zip(operands, types, strict=True)]


def _by_parts(x: Value, y: Value, product: Callable[[te.Tensor, te.Tensor], te.Tensor]) -> Value:
    """Define a bilinear product from the real and imaginary parts of its operands."""
    if not isinstance(x, ComplexTensor) or not isinstance(y, ComplexTensor):
        assert isinstance(x, te.Tensor)
        assert isinstance(y, te.Tensor)
        return product(x, y)
    re_re, im_im = product(x.re, y.re), product(x.im, y.im)
    re_im, im_re = product(x.re, y.im), product(x.im, y.re)
    return value_of(
        re_re.shape,  # type: ignore[arg-type]
        lambda *i: Complex(re_re(*i) - im_im(*i), re_im(*i) + im_re(*i)), "product",
    )


@define.register
def _(op: MatMul, operands: Operands, types: Types, result: PTensorType) -> Value:
    x, y = _convert(operands, types, result.dtype)
    if types[0].rank > 1 and types[1].rank > 1:
        return _by_parts(
            x, y, lambda a, b: define_matmul(a, b, False, False, str(a.dtype), op.name, op.name))
    is_row = types[0].rank == 1

    def factors(*index: te.Expr) -> tuple[Element, Element]:
        *outer, k = index
        if is_row:
            column = (*outer[:-1], k, outer[-1]) if outer else (k,)
            return element_at(x, (k,)), element_at(y, column)
        return element_at(x, (*outer, k)), element_at(y, (k,))

    shape = (*result.shape, types[0].shape[-1])
    return _sums(shape, len(shape) - 1, factors, result, op.name)


def _sums(
    shape: Shape, axis: int, factors: Callable[..., tuple[Element, Element]],
    result: PTensorType, name: str,
) -> Value:
    """Sum products along an axis, in the accumulation dtype of matrix products."""
    wide_dtype = wide_type(PART.get(result.dtype, result.dtype))

    def product(*i: te.Expr) -> Element:
        a, b = factors(*i)
        return times(widen_element(a, wide_dtype), widen_element(b, wide_dtype))

    total = ReductionDomain(shape, (axis,), keepdims=False).sums(product, wide_dtype, name)
    return narrow_value(total, result, name)


@define.register
def _(op: TensorDot, operands: Operands, types: Types, result: PTensorType) -> Value:
    x, y = _convert(operands, types, result.dtype)
    axes = op.places(types[0], types[1])
    return _by_parts(x, y, lambda a, b: tensordot(a, b, axes))


@define.register
def _(op: VecDot, operands: Operands, types: Types, result: PTensorType) -> Value:
    x, y = _convert(operands, types, result.dtype)
    shape = broadcast_shapes([x_type.shape for x_type in types], op.name)

    def factors(*i: te.Expr) -> tuple[Element, Element]:
        a, b = broadcast_at(x, i), broadcast_at(y, i)
        return Complex(a.re, -a.im) if isinstance(a, Complex) else a, b

    return _sums(shape, len(shape) + op.axis, factors, result, op.name)


def times(x: Element, y: Element) -> Element:
    """Multiply two elements, both complex or both real."""
    if isinstance(x, Complex) and isinstance(y, Complex):
        return x * y
    return real(x) * real(y)


@define.register
def _(op: Outer, operands: Operands, types: Types, result: PTensorType) -> Value:
    x, y = _convert(operands, types, result.dtype)

    def at(i: te.Expr, j: te.Expr) -> Element:
        return times(element_at(x, [i]), element_at(y, [j]))

    return value_of(result.shape, at, op.name)


@define.register
def _(op: MatrixTranspose, operands: Operands, types: Types, result: PTensorType) -> Value:
    (x,) = operands
    return value_of(result.shape, lambda *i: element_at(x, (*i[:-2], i[-1], i[-2])), op.name)


def _diagonal(x: Value, shape: Shape, offset: int) -> Value:
    down, right = max(-offset, 0), max(offset, 0)
    return value_of(
        shape, lambda *i: element_at(x, (*i[:-1], i[-1] + down, i[-1] + right)), "diagonal"
    )


@define.register
def _(op: Diagonal, operands: Operands, types: Types, result: PTensorType) -> Value:
    return _diagonal(operands[0], result.shape, op.offset)


@define.register
def _(op: TraceOp, operands: Operands, types: Types, result: PTensorType) -> Value:
    (x,), (x_type,) = operands, types
    length = diagonal_length(x_type.shape, op.offset)
    shape = (*x_type.shape[:-2], length)
    parts = _diagonal(as_dtype(x, x_type, result.dtype), shape, op.offset)
    rows = ReductionDomain(shape, (len(shape) - 1,), keepdims=False)
    wide_dtype = te_accumulator_dtype(PART.get(result.dtype, result.dtype), result.device)
    total = rows.sums(lambda *i: element_at(parts, i), wide_dtype, op.name)
    return narrow_value(total, result, op.name)


@define.register
def _(op: Cross, operands: Operands, types: Types, result: PTensorType) -> Value:
    x, y = _convert(operands, types, result.dtype)

    def at(*i: te.Expr) -> Element:
        next_index, prev_index = (
            [te.indexmod(k + n, 3) if j == op.axis else k for j, k in enumerate(i, -len(i))]
            for n in (1, 2)
        )
        first = times(broadcast_at(x, next_index), broadcast_at(y, prev_index))
        second = times(broadcast_at(x, prev_index), broadcast_at(y, next_index))
        if isinstance(first, Complex) and isinstance(second, Complex):
            return first - second
        return real(first) - real(second)

    return value_of(result.shape, at, op.name)
