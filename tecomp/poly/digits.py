"""Index maps whose results are sums of digits of the axes, as those of most layouts are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tecomp.ir.extents import ceil_div
from tecomp.ir.quasi_affine import Digit, QuasiAffine
from tecomp.ir.stmt import Extent
from tecomp.poly.index_map import IndexMap


@dataclass(frozen=True, slots=True)
class Step:
    """A digit `(x // low) % size` of an index x, and how far one step of it goes in memory.

    Attributes:
        axis: number of the index.
        low: what one step of the digit is worth.
        size: values of the digit, those that the index does not reach included.
        stride: places from one value to the next.
    """

    axis: int
    low: int
    size: int
    stride: int


def steps_of(index_map: IndexMap, shape: Sequence[Extent]) -> tuple[Step, ...] | None:
    """The digits of which the offset of a place is the sum, or None if it is no such sum.

    Those of the first result come first, and within a result those of the greater factors.

    >>> steps_of(IndexMap.from_func(lambda i, j: [j // 64, i, j % 64]), (10, 200))[0]
    Step(axis=1, low=64, size=4, stride=640)
    """
    analysis = index_map.on(shape)
    found: list[Step] = []
    stride = 1
    for form, size in reversed(list(zip(analysis.forms, analysis.ends, strict=True))):
        steps = None if form is None else _steps(form, shape, stride)
        if steps is None or not isinstance(size, int):
            return None
        if len(steps) == 1 and steps[0].stride == stride:
            # A period of the whole result declares places.
            (only,) = steps
            steps = [Step(only.axis, only.low, size, stride)]
        found[:0] = steps
        stride *= size
    return tuple(found)


def _steps(form: QuasiAffine, shape: Sequence[Extent], stride: int) -> list[Step] | None:
    steps: list[Step] = []
    for part, factor in form.terms.items():
        if not isinstance(part, Digit) or not isinstance(part.of, int):
            return None
        extent = shape[part.of]
        if not isinstance(extent, int):
            return None
        size = part.size or ceil_div(extent, part.low)
        steps.append(Step(part.of, part.low, size, factor * stride))
    return None if form.const else sorted(steps, key=lambda step: -step.stride)
