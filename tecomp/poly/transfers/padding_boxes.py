"""Padding of a layout as boxes of memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product

from tecomp.ir.arith.intervals import Box
from tecomp.ir.nodes.dtype import INT64
from tecomp.ir.nodes.expr import Var
from tecomp.poly.transfers.common_digits import DigitAxis, LoopDigit, Offset

Dims = tuple[tuple[int, int], ...]


def empty_boxes(
    axes: Sequence[DigitAxis], offset: Offset, places: int
) -> list[tuple[int, Dims]] | None:
    """Return the padding of a layout, provided that memory is counted by the digits of the axes.

    Args:
        axes: Axes of the tensor.
        offset: Offset of an element.
        places: Number of elements of the memory.

    Returns:
        Disjoint boxes: the first offset, and count and stride of each dimension. None if a digit
        has no integral size in memory.
    """
    sizes = _sizes(axes, offset, places)
    if sizes is None:
        return None
    strides: Mapping[Var, int] = offset.strides
    least = min(strides.values(), default=places)
    if least > 1:
        # The gap between two elements belongs to no digit: add a digit of which only 0 is used.
        between = LoopDigit(Var("between", INT64), 1, 1)
        axes = [*axes, DigitAxis(1, (between,))]
        sizes[between.var] = least
        strides = {**strides, between.var: 1}
    order = sorted(axes, key=lambda a: -max((strides.get(d.var, 0) for d in a.digits), default=0))
    found: list[tuple[int, Dims]] = []
    for k, axis in enumerate(order):
        for outside in axis.outside(sizes):
            values: list[Sequence[Box[int]]] = [
                *(list(before.boxes()) for before in order[:k]),
                [outside],
                *([tuple((0, sizes[d.var]) for d in after.digits)] for after in order[k + 1 :]),
            ]
            found += [_place_box(order, box, strides) for box in product(*values)]
    return found


def _sizes(axes: Sequence[DigitAxis], offset: Offset, places: int) -> dict[Var, int] | None:
    """Return the number of values of each digit in memory; None if strides do not divide."""
    digits = {digit.var: digit for axis in axes for digit in axis.digits}
    if offset.rest is not None or offset.const or min(offset.strides.values(), default=1) <= 0:
        return None
    sizes = dict.fromkeys(digits, 1)
    order = sorted(offset.strides, key=lambda var: offset.strides[var])
    ends = [*(offset.strides[var] for var in order), places][1:]
    for var, end in zip(order, ends, strict=True):
        size, rest = divmod(end, offset.strides[var])
        if rest or size < digits[var].size:
            return None
        sizes[var] = size
    return sizes


def _place_box(
    axes: Sequence[DigitAxis], box: Sequence[Box[int]], strides: Mapping[Var, int]
) -> tuple[int, Dims]:
    start, dims = 0, []
    for axis, values in zip(axes, box, strict=True):
        for digit, (first, count) in zip(axis.digits, values, strict=True):
            step = strides.get(digit.var, 0)
            start += first * step
            dims.append((count, step))
    return start, tuple(dims)
