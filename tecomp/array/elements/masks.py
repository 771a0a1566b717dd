"""The places where masks are true."""

from __future__ import annotations

from math import prod

import numpy as np

from tecomp.array.elements.places import places_of
from tecomp.array.elements.writes import in_order
from tecomp.array.graph.devices import default_dtype
from tecomp.array.graph.evaluate import data_of
from tecomp.array.graph.node import Node, leaf, record, teams
from tecomp.ptensor.operations.elementwise import ElementwiseBinaryOp, ElementwiseBinaryTest
from tecomp.ptensor.types import numpy_dtype


def truth_of(node: Node) -> Node:
    """Whether each element is not 0."""
    type = node.type
    if type.dtype == "bool":
        return node
    zero = leaf(np.zeros((), numpy_dtype(type.dtype)), type.like(()))
    return record(ElementwiseBinaryTest("not_equal"), node, zero)


def row_of_places(mask: Node) -> Node:
    """The places where a mask is true, as a row of numbers in the order of its elements."""
    if mask.type.team is not None:
        return teams().places(mask)
    places = places_of(in_order(data_of(mask)).reshape(-1))
    dtype = default_dtype("int64", mask.type.device)
    data = places.astype(numpy_dtype(dtype), copy=False)
    return leaf(data, mask.type.like((places.size,), dtype))


def places_in(mask: Node) -> list[Node]:
    """The indices along each axis where a mask is true."""
    places = row_of_places(mask)
    shape, dtype = mask.type.shape, numpy_dtype(places.type.dtype)
    result = []
    for axis, extent in enumerate(shape):
        index = places
        if axis < len(shape) - 1:
            count = max(prod(shape[axis + 1 :]), 1)
            behind = leaf(np.array(count, dtype), places.type.like(()))
            index = record(ElementwiseBinaryOp("floor_divide"), places, behind)
        if axis:
            own = leaf(np.array(max(extent, 1), dtype), places.type.like(()))
            index = record(ElementwiseBinaryOp("remainder"), index, own)
        result.append(index)
    return result
