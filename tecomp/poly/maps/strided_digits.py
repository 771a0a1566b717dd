"""Index maps whose results are strided digits of the axes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tecomp.ir.arith.extents import ceil_div
from tecomp.ir.arith.quasi_affine import Digit, QuasiAffine
from tecomp.ir.nodes.stmt import Extent
from tecomp.poly.maps.index_map import IndexMap


@dataclass(frozen=True, slots=True)
class StridedDigit:
    """A digit `(x // low) % size` of an index x, and how far apart its values lie in memory.

    Attributes:
        axis: number of the index.
        low: what a digit of 1 is worth.
        size: values of the digit, those that the index does not reach included.
        stride: places from one value to the next.
    """

    axis: int
    low: int
    size: int
    stride: int


def strided_digits(index_map: IndexMap, shape: Sequence[Extent]) -> tuple[StridedDigit, ...] | None:
    """The digits of which the offset of a place is the sum, or None if it is no such sum.

    Those of the first result come first, and within a result those of the greater factors.

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
            # A period of the whole result declares places.
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
