"""Push views to the leaves and permute axes into memory order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from numpy.lib.stride_tricks import as_strided

from tecomp.array.graph.node import Buffer, Node, materialized_node
from tecomp.array.graph.pending import PendingGraph, Step
from tecomp.array.graph.views import Chain, apply_view_chain, is_view, type_along
from tecomp.array.kernels.strided_operands import Strides, strides_of
from tecomp.ptensor.formulas.tables import is_elementwise
from tecomp.ptensor.operation import PTensorOp
from tecomp.ptensor.operations.manipulation import BroadcastOp, ExpandDims, PermuteDims
from tecomp.ptensor.operations.reduction import AxisReduction, FindIndex
from tecomp.ptensor.types import Shape, axes_of

_MAX_GROWTH = 2
"""Maximum growth of the number of operations when several views of one value are required."""


@dataclass(frozen=True, slots=True)
class PushedGraph:
    """Pending operations without view operations.

    Attributes:
        work: Operations on views of the leaves.
        sources: For each leaf of `work`, the original leaf and the view operations on it.
    """

    work: PendingGraph
    sources: tuple[tuple[int, Chain], ...]


def push_views_to_leaves(work: PendingGraph) -> PushedGraph | None:
    """Push view operations to the leaves; return None if there are none, or a view needs a copy."""
    moves = [is_view(op) for op, _ in work.steps]
    if not any(moves):
        return None
    required = _requested_chains(work, moves)
    if required is None or sum(map(len, required)) > _MAX_GROWTH * len(work.steps):
        return None
    return _PushdownRewriter(work, moves).built(required)


def _requested_chains(work: PendingGraph, moves: list[bool]) -> list[list[Chain]] | None:
    """Return the view chains in which each value is required; for outputs the empty chain."""
    required: list[list[Chain]] = [[] for _ in work.steps]
    for position in work.outputs:
        required[position].append(())
    for k in reversed(range(len(work.steps))):
        op, positions = work.steps[k]
        for chain in required[k]:
            if not moves[k] and chain and not is_elementwise(op):
                return None
            for position in positions:
                if position >= 0:
                    request = _way(work, k, position, chain, moves[k])
                    if request not in required[position]:
                        required[position].append(request)
    return required


def _way(work: PendingGraph, k: int, position: int, chain: Chain, is_move: bool) -> Chain:
    """Return the view chain for an operand, given the view chain of the result."""
    if is_move:
        return (work.steps[k][0], *chain)
    if not chain:
        return ()
    x_shape = (work.nodes[position] if position >= 0 else work.leaves[-1 - position]).type.shape
    shape = work.nodes[k].type.shape
    return chain if x_shape == shape else (BroadcastOp(shape), *chain)


class _PushdownRewriter:
    """Builder of the remaining operations and the views that they read."""

    def __init__(self, work: PendingGraph, moves: list[bool]) -> None:
        self.work, self.moves = work, moves
        self.leaves: list[Node] = []
        self.nodes: list[Node] = []
        self.steps: list[tuple[PTensorOp, tuple[int, ...]]] = []
        self.sources: list[tuple[int, Chain]] = []
        self.places: dict[tuple[int, Chain], int] = {}

    def built(self, required: list[list[Chain]]) -> PushedGraph | None:
        for k, chains in enumerate(required):
            for chain in chains:
                if not self._add(k, chain):
                    return None
        outputs = tuple([self.places[position, ()] for position in self.work.outputs])
        if min(outputs) < 0 or len({*outputs}) < len(outputs):
            return None  # an output is a view of a leaf, or two outputs are equal
        work = PendingGraph(self.leaves, self.nodes, tuple(self.steps), outputs)
        return PushedGraph(work, tuple(self.sources))

    def _add(self, k: int, chain: Chain) -> bool:
        op, positions = self.work.steps[k]
        resolved = [self._place(p, _way(self.work, k, p, chain, self.moves[k])) for p in positions]
        operands = [position for position in resolved if position is not None]
        if len(operands) < len(positions):
            return False
        if self.moves[k]:
            self.places[k, chain] = operands[0]
            return True
        ptype = type_along(chain, self.work.nodes[k].type)
        self.places[k, chain] = len(self.nodes)
        self.nodes.append(Node(ptype, None, (), None, 0, 0))
        self.steps.append((op, tuple(operands)))
        return True

    def _place(self, position: int, chain: Chain) -> int | None:
        """Return the position of an operand; None if it is not a view of a leaf."""
        if (position, chain) in self.places or position >= 0:
            return self.places[position, chain]
        node = self.work.leaves[-1 - position]
        data = apply_view_chain(chain, node.data)
        if data is None:
            return None
        self.sources.append((-1 - position, chain))
        self.leaves.append(materialized_node(data, type_along(chain, node.type)))
        self.places[position, chain] = -len(self.leaves)
        return self.places[position, chain]


@dataclass(frozen=True, slots=True)
class PermutedArray:
    """Contiguous array with permuted axes.

    Attributes:
        order: Axes from the largest to the smallest stride.
    """

    order: tuple[int, ...]

    def extents(self, shape: Shape) -> Shape:
        """Return the shape of the memory."""
        return tuple([shape[axis] for axis in self.order])

    def index_of(self, index: Sequence[Any]) -> tuple[Any, ...]:
        """Return the index of an element in the memory."""
        return tuple([index[axis] for axis in self.order])

    def memory(self, data: Buffer) -> Buffer:
        """Return the memory in row-major order."""
        return data.transpose(self.order)


@dataclass(frozen=True, slots=True)
class StridedArray:
    """Strided array, as a one-dimensional range of memory and an affine address.

    Attributes:
        span: Number of elements of the memory range.
        start: Offset of the element with all indices 0.
        strides: Strides along the axes, in elements.
    """

    span: int
    start: int
    strides: tuple[int, ...]

    def extents(self, shape: Shape) -> Shape:
        """Return the shape of the memory."""
        return (self.span,)

    def index_of(self, index: Sequence[Any]) -> tuple[Any, ...]:
        """Return the index of an element in the memory."""
        result: Any = self.start
        for i, stride in zip(index, self.strides, strict=True):
            if stride:
                result = result + i * stride
        return (result,)

    def memory(self, data: Buffer) -> Buffer:
        """Return the memory range as a one-dimensional array."""
        first = data[tuple([
            slice(n - 1, None) if stride < 0 else slice(0, 1)
            for n, stride in zip(data.shape, self.strides, strict=True)
        ])]
        return as_strided(first, (self.span,), (data.itemsize,), subok=False, writeable=False)


def describe_strides(data: Buffer) -> StridedArray | PermutedArray | None:
    """Return the memory order of an array; None if it is contiguous row-major.

    >>> import numpy as np
    >>> describe_strides(np.arange(6)[::-2])
    StridedArray(span=5, start=4, strides=(-2,))
    >>> describe_strides(np.zeros((2, 3, 4)).transpose(1, 2, 0))
    PermutedArray(order=(2, 0, 1))
    """
    if data.flags.c_contiguous:
        return None
    order = tuple(sorted(range(data.ndim), key=lambda axis: -data.strides[axis]))
    if data.transpose(order).flags.c_contiguous:
        return PermutedArray(order)
    strides = [
        0 if extent == 1 else stride // data.itemsize
        for extent, stride in zip(data.shape, data.strides, strict=True)
    ]
    ends = [(n - 1) * stride for n, stride in zip(data.shape, strides, strict=True)]
    offset = -sum(end for end in ends if end < 0)
    span = offset + sum(end for end in ends if end > 0) + 1
    return StridedArray(span, offset, tuple(strides))


Order = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class PermutedGraph:
    """Pending operations with the axes of all values in memory order.

    Attributes:
        work: Permuted operations.
        sources: For each leaf of `work`, the original leaf and the view operations on it.
        result_permutation: Permutation from the axes of the results to the requested order; None
            for the identity.
    """

    work: PendingGraph
    sources: tuple[tuple[int, Chain], ...]
    result_permutation: Order | None


def _has_axes(op: PTensorOp) -> bool:
    """Return whether an operation is a reduction along any number of axes."""
    return isinstance(op, AxisReduction) and not isinstance(op, FindIndex)


def permute_to_memory_order(work: PendingGraph) -> PermutedGraph | None:
    """Permute element-wise operations and one reduction into memory order; None if already so."""
    anchors = [k for k, (op, _) in enumerate(work.steps) if not is_elementwise(op)]
    if len(anchors) > 1 or any(not _has_axes(work.steps[k][0]) for k in anchors):
        return None
    split = anchors[0] if anchors else len(work.steps)
    first, last = _leaves(work.steps[: split + 1]), _leaves(work.steps[split + 1 :])
    shape = _shape(work, split)
    if first & last or any(node.type.shape != shape for node in work.nodes[:split]):
        return None
    strides = strides_of([work.leaves[k] for k in sorted(first)], shape)
    if strides is None or (order := memory_order(strides, shape)) == tuple(range(len(shape))):
        return None
    after, steps = order, list(work.steps)
    if anchors:
        op: Any = steps[split][0]
        axes = axes_of(op.axis, len(shape), op.where)
        steps[split] = replace(op, axis=tuple([order.index(k) for k in axes])), steps[split][1]
        retained = [k for k in range(len(shape)) if k not in axes]
        after = order if op.keepdims else tuple([retained.index(k) for k in order if k in retained])
    orders = [order if k < split else after for k in range(len(work.nodes))]
    if any(node.type.rank != len(perm) for node, perm in zip(work.nodes, orders, strict=True)):
        return None
    nodes = [
        Node(
            replace(node.type, shape=tuple([node.type.shape[k] for k in perm])),
            None, (), None, 0, 0,
        )
        for node, perm in zip(work.nodes, orders, strict=True)
    ]
    views = [
        _view(order if k in first else after, node.type.rank) for k, node in enumerate(work.leaves)
    ]
    leaves = [
        materialized_node(apply_view_chain(chain, node.data), type_along(chain, node.type))
        for node, chain in zip(work.leaves, views, strict=True)
    ]
    graph = PendingGraph(leaves, nodes, tuple(steps), work.outputs)
    sources = tuple(enumerate(views))
    result = orders[work.outputs[0]]
    inverse = tuple([result.index(k) for k in range(len(result))])
    return PermutedGraph(graph, sources, None if inverse == tuple(range(len(inverse))) else inverse)


def memory_order(strides: Sequence[Strides], shape: Shape) -> Order:
    """Return the axis order of arrays in memory, largest strides first.

    Return the identity if it is a valid order, or if no order is valid for all arrays.

    >>> memory_order([(1, 20), (1, 0)], (20, 30)), memory_order([(1, 20), (30, 1)], (20, 30))
    ((1, 0), (0, 1))
    """
    identity = tuple(range(len(shape)))

    def falls(order: Order) -> bool:
        steps = [[abs(row[k]) for k in order if row[k] and shape[k] > 1] for row in strides]
        return all(row == sorted(row, reverse=True) for row in steps)

    if not strides or falls(identity):
        return identity
    densest = max(strides, key=lambda row: sum(map(bool, row)))
    order = tuple(sorted(identity, key=lambda k: (densest[k] != 0, -abs(densest[k]))))
    return order if falls(order) else identity


def _leaves(steps: Sequence[Step]) -> set[int]:
    return {-1 - k for _, operands in steps for k in operands if k < 0}


def _shape(work: PendingGraph, split: int) -> Shape:
    """Return the shape of the operand of the reduction, or of all values if there is none."""
    if split == len(work.steps):
        return work.nodes[0].type.shape
    (position,) = work.steps[split][1]
    node = work.nodes[position] if position >= 0 else work.leaves[-1 - position]
    return node.type.shape


def _view(order: Order, rank: int) -> Chain:
    """Return the view chain that adds missing leading axes and permutes the axes."""
    missing = len(order) - rank
    return (*([ExpandDims(tuple(range(missing)))] if missing else ()), PermuteDims(order))
