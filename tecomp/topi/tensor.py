"""Tensors of one value, of ones on a diagonal, and sums of several tensors."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from tecomp import te
from tecomp.topi import tag
from tecomp.topi.broadcast import add
from tecomp.topi.given import (
    Operand,
    constant_of,
    extent_of,
    integer_of,
    shape_of,
    tensor_of,
    tensors_of,
)
from tecomp.topi.sizes import Size


def full(shape: Size | Sequence[Size], dtype: str, fill_value: Operand) -> te.Tensor:
    """A tensor whose elements are all `fill_value`.

    Raises:
        TypeMismatchError: the type cannot hold the value.

    >>> full((4, 8), "int8", 3).dtype
    'int8'
    """
    return _filled(shape_of(shape), dtype, fill_value, "topi.full")


def _filled(shape: tuple[Size, ...], dtype: str, fill_value: Operand, where: str) -> te.Tensor:
    value = constant_of(fill_value, dtype, where, "fill_value")
    return te.compute(shape, lambda *_: value, name="T_full", tag=tag.ELEMWISE)


def full_like(x: te.Tensor, fill_value: Operand) -> te.Tensor:
    """A tensor of the shape and type of `x`, whose elements are all `fill_value`.

    >>> full_like(te.placeholder((4, 8), "int8", name="A"), 3).shape
    (4, 8)
    """
    x = tensor_of(x, "topi.full_like", "x")
    return _filled(x.shape, x.dtype, fill_value, "topi.full_like")


def eye(n: Size, m: Size | None = None, k: int = 0, dtype: str = "float32") -> te.Tensor:
    """A matrix of ones on a diagonal, and zeros elsewhere.

    Args:
        n: rows.
        m: columns; as many as rows if None.
        k: of the diagonal: how many columns it lies to the right of the main one.
        dtype: type of an element.

    >>> eye(3, 5, k=1).shape
    (3, 5)
    """
    shift = integer_of(k, "topi.eye", "k")
    rows = extent_of(n, "topi.eye", "n")
    columns = rows if m is None else extent_of(m, "topi.eye", "m")
    return te.compute(
        (rows, columns), lambda i, j: te.cast(j - i == shift, dtype), name="T_eye",
        tag=tag.INJECTIVE,
    )


def elemwise_sum(xs: Sequence[te.Tensor]) -> te.Tensor:
    """The sum of several tensors, element by element.

    Raises:
        DefinitionError: there is none, or their shapes do not broadcast.

    >>> A = te.placeholder((4, 8), name="A")
    >>> elemwise_sum([A, A, A]).shape
    (4, 8)
    """
    total: te.Tensor = reduce(add, tensors_of(xs, "topi.elemwise_sum", "xs"))
    return total
