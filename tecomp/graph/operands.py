"""Factors of products as tensors whose axes are those of the product: `Q[i, h * 64 + e]` as views.

A product whose factor has an axis that is counted by two of its loops is one of matrices all the
same: of those that a view shows, with an axis for each loop. What reads the view moves its elements
once, while it lays them out.
"""

from __future__ import annotations

from dataclasses import replace
from math import prod
from typing import Any

from tecomp.compute.accesses import accesses
from tecomp.compute.axis import IterVar
from tecomp.compute.define import compute
from tecomp.compute.operation import ComputeOp, Operation
from tecomp.compute.scan import ScanOp
from tecomp.compute.tensor import Tensor, TensorLoad
from tecomp.graph.sizes import elements_of
from tecomp.ir.algebra.extents import constant_shape
from tecomp.ir.language.expr import Expr, is_const
from tecomp.ir.traversal.rewrite import substitute, top_down, walk


def with_plain_factors(op: Operation) -> Operation:
    """The same operation, with views for what a sum of products reads at sums of its loops.

    >>> from tecomp import te
    >>> Q, K = te.placeholder((8, 6), name="Q"), te.placeholder((9, 6), name="K")
    >>> e = te.reduce_axis((0, 3), name="e")
    >>> S = te.compute(
    ...     (2, 8, 9), lambda h, i, j: te.sum(Q[i, h * 3 + e] * K[j, h * 3 + e], axis=e), name="S")
    >>> print(with_plain_factors(S.op))
    S[h, i, j] = sum(Q_view[h, i, e] * K_view[h, j, e], axis=[e])
    """
    if not isinstance(op, ComputeOp) or isinstance(op, ScanOp) or len(op.body) != 1:
        return op
    found = accesses(op.output(0))
    if found.reducer != "sum" or len(found.factors) != 2:
        return op
    compound = {
        read.tensor for read in found.factors
        if all(index.is_affine for index in read.index)
        and any(axis is None for axis in read.axes)
    }
    views: dict[int, Tensor] = {}

    def rule(node: Any) -> Expr | None:
        if not isinstance(node, TensorLoad) or node.tensor not in compound:
            return None
        axes = _loops(node, (*found.axis, *found.reduce_axis))
        if not _is_rearranged(node, axes):
            return None
        if id(node) not in views:
            views[id(node)] = _view(node, axes)
        return TensorLoad(views[id(node)], tuple(axes), node.location)

    body = top_down(op.body[0], rule)
    return replace(op, body=(body,)) if views else op


def _loops(load: TensorLoad, axes: tuple[IterVar, ...]) -> list[IterVar]:
    """The loops that an element depends on, in the order of the operation."""
    used = {id(node) for index in load.indices for node in walk(index)}
    return [axis for axis in axes if id(axis) in used]


def _is_rearranged(load: TensorLoad, axes: list[IterVar]) -> bool:
    """Whether there are no more values of the loops than elements: windows have many more.

    And all of the loops count from 0, as the axes of a tensor do.
    """
    extents = constant_shape([axis.extent for axis in axes])
    if extents is None or not all(is_const(axis.dom.min, 0) for axis in axes):
        return False
    return prod(extents) <= elements_of(load.tensor)


def _view(load: TensorLoad, axes: list[IterVar]) -> Tensor:
    def element(*indices: Expr) -> Expr:
        values = dict(zip(axes, indices, strict=True))
        return TensorLoad(
            load.tensor, tuple(substitute(index, values) for index in load.indices), load.location
        )

    made = compute(tuple(axis.extent for axis in axes), element, name=f"{load.tensor.name}_view")
    assert isinstance(made, Tensor)
    return made
