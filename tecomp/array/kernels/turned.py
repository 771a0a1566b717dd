"""Operations on arrays whose axes are in another order in memory: the same with axes in that order.

Loops go along memory then, whatever the arrays look like, and one kernel serves all orders.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from tecomp.array.graph.node import Node, leaf
from tecomp.array.graph.pending import Pending, Step
from tecomp.array.graph.views import Chain, along, type_along
from tecomp.array.kernels.loops import Strides, strides_of
from tecomp.ptensor.axes import axes_of
from tecomp.ptensor.elements import is_elementwise
from tecomp.ptensor.operations.manipulation import ExpandDims, PermuteDims
from tecomp.ptensor.operations.reduction import CountNonzero, Reduce, TruthTest
from tecomp.ptensor.types import PTensorType, Shape

Order = tuple[int, ...]

_REDUCTIONS = (Reduce, TruthTest, CountNonzero)


@dataclass(frozen=True, slots=True)
class Turned:
    """Pending operations with the axes of all values in the order of memory.

    Attributes:
        work: the operations.
        sources: of each of its leaves, the leaf that it is a view of, and how.
        back: the axes of its results in the order that was asked for; None if they are in it.
    """

    work: Pending
    sources: tuple[tuple[int, Chain], ...]
    back: Order | None


def turned(work: Pending) -> Turned | None:
    """Elementwise operations and one reduction in the order of memory; None if they are in it."""
    at = [k for k, (op, _) in enumerate(work.steps) if not is_elementwise(op)]
    if len(at) > 1 or any(not isinstance(work.steps[k][0], _REDUCTIONS) for k in at):
        return None
    behind = at[0] if at else len(work.steps)
    first, last = _leaves(work.steps[: behind + 1]), _leaves(work.steps[behind + 1 :])
    shape = _shape(work, behind)
    if first & last or any(node.type.shape != shape for node in work.nodes[:behind]):
        return None
    strides = strides_of([work.leaves[k] for k in sorted(first)], shape)
    if strides is None or (order := memory_order(strides, shape)) == tuple(range(len(shape))):
        return None
    after, steps = order, list(work.steps)
    if at:
        op: Any = steps[behind][0]
        axes = axes_of(op.axis, len(shape), op.where)
        steps[behind] = replace(op, axis=tuple([order.index(k) for k in axes])), steps[behind][1]
        kept = [k for k in range(len(shape)) if k not in axes]
        after = order if op.keepdims else tuple([kept.index(k) for k in order if k in kept])
    orders = [order if k < behind else after for k in range(len(work.nodes))]
    if any(node.type.rank != len(own) for node, own in zip(work.nodes, orders, strict=True)):
        return None
    nodes = [
        Node(_type(node.type, own), None, (), None, 0, 0)
        for node, own in zip(work.nodes, orders, strict=True)
    ]
    views = [
        _view(order if k in first else after, node.type.rank) for k, node in enumerate(work.leaves)
    ]
    leaves = [
        leaf(along(chain, node.data), type_along(chain, node.type))
        for node, chain in zip(work.leaves, views, strict=True)
    ]
    made = Pending(leaves, nodes, tuple(steps), work.outputs)
    sources = tuple(enumerate(views))
    result = orders[work.outputs[0]]
    back = tuple([result.index(k) for k in range(len(result))])
    return Turned(made, sources, None if back == tuple(range(len(back))) else back)


def memory_order(strides: Sequence[Strides], shape: Shape) -> Order:
    """The order of axes in which arrays lie in memory, largest steps first.

    It is the order that they have, if that is it, or if there is no order that all agree on.

    >>> memory_order([(1, 20), (1, 0)], (20, 30)), memory_order([(1, 20), (30, 1)], (20, 30))
    ((1, 0), (0, 1))
    """
    plain = tuple(range(len(shape)))

    def falls(order: Order) -> bool:
        steps = [[abs(own[k]) for k in order if own[k] and shape[k] > 1] for own in strides]
        return all(own == sorted(own, reverse=True) for own in steps)

    if not strides or falls(plain):
        return plain
    whole = max(strides, key=lambda own: sum(map(bool, own)))
    order = tuple(sorted(plain, key=lambda k: (whole[k] != 0, -abs(whole[k]))))
    return order if falls(order) else plain


def _leaves(steps: Sequence[Step]) -> set[int]:
    return {-1 - k for _, places in steps for k in places if k < 0}


def _shape(work: Pending, behind: int) -> Shape:
    """The shape of what is reduced, or of all if nothing is."""
    if behind == len(work.steps):
        return work.nodes[0].type.shape
    (place,) = work.steps[behind][1]
    node = work.nodes[place] if place >= 0 else work.leaves[-1 - place]
    return node.type.shape


def _view(order: Order, rank: int) -> Chain:
    """How an array that has the last of the axes is seen with all of them, in an order."""
    missing = len(order) - rank
    return (*([ExpandDims(tuple(range(missing)))] if missing else ()), PermuteDims(order))


def _type(type: PTensorType, order: Order) -> PTensorType:
    return replace(type, shape=tuple([type.shape[k] for k in order]))
