"""Rewrite the definitions of a kernel such that their axes follow the order in memory.

Runs before a kernel is scheduled for a processor. The scheduler recognizes operators and their
contiguous axes by the order of the axes of tensors, so a value that is stored in another order
would otherwise be packed and vectorized along an axis that is not contiguous.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tecomp.compute.access_relations import accesses
from tecomp.compute.affine_index import Affine
from tecomp.compute.define import placeholder
from tecomp.compute.operation import ComputeOp, Operation
from tecomp.compute.tensor import Tensor, TensorLoad
from tecomp.graph.dag import ProgramGraph
from tecomp.graph.sizes import sizes_of
from tecomp.ir.nodes.expr import Expr
from tecomp.ir.nodes.stmt import IndexMapNode
from tecomp.ir.traversal.rewrite import bottom_up
from tecomp.layout.core.layout import Layout
from tecomp.poly.maps.index_map import IndexMap
from tecomp.schedules.analysis.convolution import convolution_of, windows_of

Order = tuple[int, ...]
"""Axis of a tensor for each axis in memory."""


def permutation_of(index_map: IndexMapNode) -> Order | None:
    """Return the axis of a tensor for each axis in memory; None if a map does more than permute.

    >>> permutation_of(IndexMap.from_func(lambda n, c, h, w: [n, h, w, c]))
    (0, 2, 3, 1)
    >>> permutation_of(IndexMap.from_func(lambda i, j: [j // 4, i, j % 4])) is None
    True
    """
    axes = index_map.initial_indices
    order = [
        next((k for k, axis in enumerate(axes) if axis is index), -1)
        for index in index_map.final_indices
    ]
    is_order = sorted(order) == list(range(len(axes))) and not index_map.axis_separators
    return tuple(order) if is_order else None


def layouts_between_kernels(
    graph: ProgramGraph, stored: Mapping[Tensor, Layout], fixed: Collection[Operation]
) -> dict[Tensor, Layout]:
    """Return layouts of values that follow the permuted layouts of adjacent values.

    Args:
        graph: Operations.
        stored: Layouts of the values that are not in row-major order.
        fixed: Operations whose results keep their layouts.
    """
    outputs = {x.op for x in graph.outputs}
    orders = _Orders.of(
        {x: layout.index_map for x, layout in stored.items()},
        [x for op in (*fixed, *outputs) for x in op.outputs],
    )
    orders.propagate(graph.operations)
    return {
        x: Layout.of(sizes_of(x), x.dtype, _index_map(order))
        for x, order in orders.known.items()
        if x not in stored and not _is_identity(order)
    }


def _index_map(order: Order) -> IndexMap:
    return IndexMap.from_func(lambda *i: [i[k] for k in order], len(order))


@dataclass(frozen=True, slots=True)
class OrderedDefinitions:
    """Definitions of a kernel, with axes in the order in memory.

    Attributes:
        made: Replacement of each tensor that changes.
        places: Layouts of tensors that the order of the axes does not express.
    """

    made: Mapping[Tensor, Tensor]
    places: Mapping[Tensor, Layout | IndexMap]


def follow_memory_order(
    operations: Sequence[Operation], inputs: Sequence[Tensor],
    layouts: Mapping[Tensor, Layout | IndexMap],
) -> OrderedDefinitions:
    """Permute the axes of tensors to their order in memory.

    Values inside the kernel follow the values that they are computed from, or their readers. The
    definitions remain if a convolution or a windowed reduction would not be recognized afterwards.

    Args:
        operations: Operations of a kernel, producers before consumers; the last one computes the
            results.
        inputs: Tensors that the operations read from memory.
        layouts: Layouts of inputs and results.
    """
    unchanged = OrderedDefinitions({}, layouts)
    maps = {
        x: v.index_map if isinstance(v, Layout) else v for x, v in layouts.items()
    }
    if not all(type(op) is ComputeOp for op in operations):
        return unchanged
    orders = _Orders.of(maps, operations[-1].outputs)
    if all(map(_is_identity, orders.known.values())):
        return unchanged
    orders.propagate(operations)
    rewritten = orders.rewrite(operations, inputs)
    before = [x for op in operations if op.reduce_axis for x in op.outputs[:1]]
    if any(_kind(x) != _kind(rewritten.get(x, x)) for x in before):
        return unchanged
    others = {rewritten.get(x, x): layout for x, layout in layouts.items() if x not in orders.known}
    return OrderedDefinitions(rewritten, others)


def _kind(x: Tensor) -> str:
    """Return the kind of reductions that are recognized by the order of their axes."""
    if convolution_of(x) is not None:
        return "convolution"
    return "windows" if windows_of(x) is not None else ""


@dataclass(frozen=True, slots=True)
class _Orders:
    """Orders of the axes of values in memory.

    Attributes:
        known: Order of the axes of each value that has one.
        fixed: Values whose layouts do more than permute axes.
    """

    known: dict[Tensor, Order]
    fixed: Collection[Tensor]

    @staticmethod
    def of(maps: Mapping[Tensor, IndexMapNode], others: Sequence[Tensor]) -> _Orders:
        """Return the orders of values with index maps; `others` without one are row-major."""
        found = {x: permutation_of(index_map) for x, index_map in maps.items()}
        known = {x: tuple(range(len(x.shape))) for x in others if x not in maps}
        known |= {x: order for x, order in found.items() if order is not None}
        return _Orders(known, {x for x in maps if x not in known})

    def propagate(self, operations: Sequence[Operation]) -> None:
        """Choose the orders of other values: first like their operands, then like their readers."""
        for op in operations:
            self._follow_operand(op)
        for op in reversed(operations):
            self._lead_operands(op)

    def _follow_operand(self, op: Operation) -> None:
        """Order the axes of an element-wise value like those of its first permuted operand."""
        if op.reduce_axis or not self._is_free(op):
            return
        for read in accesses(op.output(0)).reads:
            order = self.known.get(read.tensor, ())
            axes = [_axis(op, index) for index in read.index]
            if not _is_identity(order) and sorted(axes) == list(range(len(op.axis))):
                self.known.update(dict.fromkeys(op.outputs, tuple(axes[k] for k in order)))
                return

    def _lead_operands(self, op: Operation) -> None:
        """Order the axes of the values that a permuted value reads like its own."""
        order = self.known.get(op.output(0), ())
        if _is_identity(order):
            return
        for read in accesses(op.output(0)).reads:
            axes = [_axis(op, index) for index in read.index]
            if self._is_free(read.tensor.op) and sorted(axes) == sorted(order):
                ranked = sorted(range(len(axes)), key=lambda k: order.index(axes[k]))
                self.known.update(dict.fromkeys(read.tensor.op.outputs, tuple(ranked)))

    def _is_free(self, op: Operation) -> bool:
        """Return whether the order of the outputs of an operation is not determined yet."""
        return type(op) is ComputeOp and not any(
            x in self.known or x in self.fixed for x in op.outputs
        )

    def rewrite(
        self, operations: Sequence[Operation], inputs: Sequence[Tensor]
    ) -> dict[Tensor, Tensor]:
        """Return the replacement of each tensor that changes."""
        replaced = {
            x: placeholder([x.shape[k] for k in self.known[x]], x.dtype, x.name)
            for x in inputs if not _is_identity(self.known.get(x, ()))
        }
        for op in operations:
            assert isinstance(op, ComputeOp)
            order = self.known.get(op.output(0), tuple(range(len(op.axis))))
            if _is_identity(order) and not any(x in replaced for x in op.input_tensors):
                continue
            reordered = replace(
                op, axis=tuple(op.axis[k] for k in order),
                body=tuple(self._redirected(value, replaced) for value in op.body),
            )
            replaced.update(zip(op.outputs, reordered.outputs, strict=True))
        return replaced

    def _redirected(self, value: Expr, replaced: Mapping[Tensor, Tensor]) -> Expr:
        """Return an expression that loads from the replacements."""

        def rule(node: Any) -> Expr | None:
            if not isinstance(node, TensorLoad) or node.tensor not in replaced:
                return None
            order = self.known.get(node.tensor, tuple(range(len(node.indices))))
            indices = tuple(node.indices[k] for k in order)
            return TensorLoad(replaced[node.tensor], indices, node.location)

        return bottom_up(value, rule)


def _axis(op: Operation, index: Affine) -> int:
    """Return the only data-parallel axis in an index with coefficient; -1 if there is none."""
    axes = [k for k, axis in enumerate(op.axis) if index.coefficient(axis)]
    return axes[0] if len(axes) == 1 else -1


def _is_identity(order: Order) -> bool:
    return order == tuple(range(len(order)))
