"""Results that are put together of the elements of several arrays, part by part."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tecomp.array.graph.node import Buffer
from tecomp.array.graph.pending import Pending
from tecomp.array.graph.views import view_of
from tecomp.array.kernels.copies import copy, order_of
from tecomp.ptensor.axes import axis_of
from tecomp.ptensor.operations.indexing import ExtractSlice, InsertSlice
from tecomp.ptensor.operations.manipulation import Combine
from tecomp.ptensor.types import Shape


@dataclass(frozen=True, slots=True)
class Placed:
    """Arrays whose elements come to places of one result, the last of them at last.

    Attributes:
        shape: of the result.
        dtype: of its elements.
        pieces: of each array, its number and its place in the result.
        order: of the axes of the result in memory.
        back: the places of its axes in that order.
    """

    shape: Shape
    dtype: np.dtype[Any]
    pieces: tuple[tuple[int, ExtractSlice | None], ...]
    order: tuple[int, ...]
    back: tuple[int, ...]

    def __call__(self, leaves: Sequence[Buffer]) -> Sequence[Buffer]:
        """The result, of the elements of the leaves."""
        lying = np.empty([self.shape[k] for k in self.order], self.dtype)
        result = lying.transpose(self.back)
        for number, place in self.pieces:
            target = result if place is None else view_of(place, result)
            assert target is not None
            copy(leaves[number], target)
        return (result,)


def placed_by(work: Pending, in_order: bool) -> Placed | None:
    """How one operation is done by copies; None if it is none that puts arrays together.

    Args:
        work: the operation.
        in_order: whether the result has to lie in the order of its axes, and not as arrays do.
    """
    ((op, places),) = work.steps
    (result,) = work.nodes
    types = [work.leaves[-1 - place].type for place in places]
    if any(type.dtype != result.type.dtype for type in types):
        return None
    if isinstance(op, InsertSlice):
        keys = [None, ExtractSlice(op.slice)]
    elif isinstance(op, Combine) and op.kind == "concat":
        keys = [*_one_after_the_other(op, [type.shape for type in types])]
    else:
        return None
    pieces = tuple([(-1 - place, key) for place, key in zip(places, keys, strict=True)])
    arrays = [node.data for node in work.leaves if node.data is not None]
    shape = result.type.shape
    plain = tuple(range(len(shape)))
    order = plain if in_order else order_of(arrays, shape)
    back = tuple([order.index(k) for k in plain])
    return Placed(shape, arrays[0].dtype, pieces, order, back)


def _one_after_the_other(op: Combine, shapes: Sequence[Shape]) -> Sequence[ExtractSlice]:
    axis = axis_of(op.axis, len(shapes[0]), op.where)
    found, first = [], 0
    for shape in shapes:
        found.append(ExtractSlice(tuple([
            (first if k == axis else 0, 1, n) for k, n in enumerate(shape)])))
        first += shape[axis]
    return found
