"""Index maps whose results are sums of strided digits of the axes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tecomp.ir.arith.extents import ceil_div
from tecomp.ir.arith.quasi_affine import Digit, QuasiAffine
from tecomp.ir.nodes.stmt import Extent
from tecomp.poly.maps.index_map import IndexMap


@dataclass(frozen=True, slots=True)
class StridedDigit:
    """Digit `(x // low) % size` of an index x, with its stride in memory.

    Attributes:
        axis: Position of the index.
        low: Weight of the digit in the index.
        size: Number of values of the digit, including values that the index does not reach.
        stride: Distance of consecutive values in memory, in elements.
    """

    axis: int
    low: int
    size: int
    stride: int


def strided_digits(index_map: IndexMap, shape: Sequence[Extent]) -> tuple[StridedDigit, ...] | None:
    """Return the digits whose strided sum is the memory offset, or None if there is no such sum.

    The digits of the first result come first; within a result, the greater strides come first.

    >>> strided_digits(IndexMap.from_func(lambda i, j: [j // 64, i, j % 64]), (10, 200))[0]
    StridedDigit(axis=1, low=64, size=4, stride=640)
    """
    analysis = index_map.on(shape)
    found: list[StridedDigit] = []
    stride = 1
    for form, size in reversed(list(zip(analysis.forms, analysis.ends, strict=True))):
        digits = None if form is None else _digits(form, shape, stride)
        if digits is None or not isinstance(size, int):
            return None
        if len(digits) == 1 and digits[0].stride == stride:
            # The period of a whole result declares its physical extent.
            (only,) = digits
            digits = [StridedDigit(only.axis, only.low, size, stride)]
        found[:0] = digits
        stride *= size
    return tuple(found)


def _digits(form: QuasiAffine, shape: Sequence[Extent], stride: int) -> list[StridedDigit] | None:
    digits: list[StridedDigit] = []
    for part, factor in form.terms.items():
        if not isinstance(part, Digit) or not isinstance(part.of, int):
            return None
        extent = shape[part.of]
        if not isinstance(extent, int):
            return None
        size = part.size or ceil_div(extent, part.low)
        digits.append(StridedDigit(part.of, part.low, size, factor * stride))
    return None if form.const else sorted(digits, key=lambda digit: -digit.stride)
