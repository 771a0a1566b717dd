"""Operations along axes, of any sizes: which loops they go along, and what they compute."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from tecomp import te
from tecomp.ptensor.axes import axes_of
from tecomp.ptensor.definitions import define
from tecomp.ptensor.operation import Operation
from tecomp.ptensor.operations.reduction import CountNonzero, Cumulative, Reduce, TruthTest
from tecomp.ptensor.operations.searching import FindIndex
from tecomp.ptensor.types import PTensorType
from tecomp.schedules.tiling.types import wide_type


@dataclass(frozen=True)
class SumOfProducts(Operation):
    """Products of two arrays of one shape, added up along axes as those of matrices are.

    Attributes:
        axis: the axes.

    >>> x = PTensorType((4, 5, 6), "float32")
    >>> print(SumOfProducts((1,)).infer(x, x))
    ptensor<4x6xfloat32>
    """

    dialect = "kernel"
    name = "sum_of_products"
    takes = (2, 2)
    axis: tuple[int, ...]

    def infer(self, *operands: PTensorType) -> PTensorType:
        """The shape without these axes."""
        shape = operands[0].shape
        return operands[0].like(tuple([n for k, n in enumerate(shape) if k not in self.axis]))


CORES = (CountNonzero, Cumulative, FindIndex, Reduce, SumOfProducts, TruthTest)
"""The operations for which there are kernels."""


def is_slow(op: Operation) -> bool:
    """Whether its kernel for all sizes takes several times as long to build as one for some."""
    return isinstance(op, Cumulative | FindIndex | SumOfProducts)


def is_known(op: Operation, n_along: int) -> bool:
    """Whether there is a kernel for an operation along so many loops.

    Moments are means and sums, of which others make use too.
    """
    if isinstance(op, Cumulative):
        return n_along < 2 and not op.include_initial
    if isinstance(op, Reduce) and op.kind in ("var", "std"):
        return False
    return isinstance(op, CORES) and (n_along < 2 or not isinstance(op, FindIndex))


def axes_along(op: Any, rank: int) -> tuple[int, ...]:
    """The axes of the operands along which an operation is done."""
    return axes_of(op.axis, rank, op.where)


def result_loops(op: Operation, along: Sequence[int], rank: int) -> tuple[int, ...]:
    """The loops that go along the result, of those that go along the operands."""
    return tuple([k for k in range(rank) if k not in along or isinstance(op, Cumulative)])


def on_a_row(op: Any) -> Operation:
    """The operation along the one axis of a row: what it is, wherever it is done."""
    if isinstance(op, Cumulative):
        return replace(op, axis=0)
    if isinstance(op, FindIndex):
        return replace(op, axis=0, keepdims=False)
    if isinstance(op, SumOfProducts):
        return replace(op, axis=(0,))
    return replace(op, axis=(0,), keepdims=False)  # type: ignore[no-any-return]


def defined_core(
    op: Any, along: tuple[int, ...], x: te.Tensor, given: PTensorType, result: PTensorType
) -> te.Tensor:
    """An operation along loops as tensors of `te`.

    Args:
        op: the operation, of a row.
        along: the loops; none where the axis has one element.
        x: what it is done to.
        given: its extents and type.
        result: the type of the result.
    """
    if not isinstance(op, FindIndex | Cumulative):
        op = replace(op, axis=along)
    elif along:
        op = replace(op, axis=along[0])
    else:
        return _alone(op, x, result)
    made: Any = define(op, [x], [given], result)
    return made  # type: ignore[no-any-return]


def _alone(op: Operation, x: te.Tensor, result: PTensorType) -> te.Tensor:
    def element(*index: te.Expr) -> te.Expr:
        if isinstance(op, FindIndex):
            return te.const(0, result.dtype)
        return te.cast(x(*index), result.dtype)

    made: te.Tensor = te.compute(result.shape, element, name="alone")
    return made


def sum_of_products(
    factors: Any, sizes: Sequence[Any], along: Sequence[int], dtype: str
) -> te.Tensor:
    """Products added up in the type that those of matrices are added up in.

    Args:
        factors: the two factors at an index of the loops.
        sizes: of the loops.
        along: those that are added up.
        dtype: of the result.
    """
    runs = {k: te.reduce_axis((0, sizes[k]), name=f"k{k}") for k in along}
    wide = wide_type(dtype)

    def total(*index: te.Expr) -> te.Expr:
        own = iter(index)
        x, y = factors([runs[k] if k in runs else next(own) for k in range(len(sizes))])
        terms = te.cast(x, wide) * te.cast(y, wide)
        made: te.Expr = te.sum(terms, axis=list(runs.values())) if runs else terms
        return made

    kept = [n for k, n in enumerate(sizes) if k not in runs]
    found: te.Tensor = te.compute(kept, total, name="product")
    if wide == dtype:
        return found
    narrow: te.Tensor = te.compute(kept, lambda *i: te.cast(found(*i), dtype), name="narrow")
    return narrow
