"""Rewrite a program with explicit layouts and insert the required relayouts.

Callers pass arrays in row-major order or in device layout. Operands that the target needs in
another layout are copied at the beginning of a call, or once if they are constants; results are
copied back at the end. Relayouts are copies between two layouts. Every copy is an operation of the
program, with a kernel of its own.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tecomp.compute.define import copy_of
from tecomp.compute.expression_analysis import post_order, substitute_inputs
from tecomp.compute.operation import ComputeOp, Operation
from tecomp.compute.scan import ScanOp
from tecomp.compute.tensor import Tensor, TensorLoad
from tecomp.graph.dag import ProgramGraph, readers_of
from tecomp.graph.fusion import FusionGroup
from tecomp.graph.layout_combinations import OperandSlot
from tecomp.graph.layout_problem import is_scattered
from tecomp.graph.layout_result import HintOutcome, ProgramLayouts
from tecomp.ir.nodes.expr import Expr
from tecomp.ir.traversal.rewrite import top_down
from tecomp.layout.core.layout import Layout
from tecomp.schedules.scratchpad.placement import HOST


@dataclass(frozen=True, slots=True)
class ProgramWithLayouts:
    """A program with explicit layouts.

    Attributes:
        graph: Operations, including copies.
        stored: Layout of each value that is not in row-major order.
        copy_operations: Copies, which form kernels of their own.
        requested_ops: Operations whose results must be in memory because their layouts were
            requested.
        replacements: Replacement of each value of the original program.
        copies: Copies between scratchpads and device memory, with their sources and readers.
    """

    graph: ProgramGraph
    stored: Mapping[Tensor, Layout]
    copy_operations: frozenset[Operation]
    requested_ops: frozenset[Operation]
    replacements: Mapping[Tensor, Tensor]
    copies: Mapping[Operation, tuple[Tensor, tuple[Operation, ...]]] = field(default_factory=dict)

    def with_copy(
        self, x: Tensor, readers: Container[Operation]
    ) -> tuple[ProgramWithLayouts, Mapping[Tensor, Tensor]]:
        """Copy a value between scratchpads and device memory for some of its readers.

        Args:
            x: Value in scratchpads.
            readers: Operations that read the copy in device memory. If there are none, the value is
                in device memory, and all readers read its copy in scratchpads.

        Returns:
            The program, and the replacements of its values.
        """
        name = f"{x.name}_copy" if readers else x.name
        copy = copy_of(x, name)
        replacements: dict[Tensor, Tensor] = {} if readers else {x: copy}
        for op in self.graph.operations:
            operands = {y: replacements[y] for y in op.input_tensors if y in replacements}
            subst = substitute_inputs([op], {**operands, x: copy} if op in readers else operands)
            replacements |= {y: subst[y] for y in op.outputs if y in subst}
        others = readers or self.graph.readers.get(x.op, ())
        other_ops = tuple(op for op in self.graph.operations if op in others)
        return self._moved(replacements, copy, x, other_ops), replacements

    def _moved(
        self, replacements: Mapping[Tensor, Tensor], copy: Tensor, x: Tensor,
        readers: tuple[Operation, ...],
    ) -> ProgramWithLayouts:
        def replaced(op: Operation) -> Operation:
            return replacements.get(op.output(0), op.output(0)).op

        graph = self.graph
        outputs = tuple(replacements.get(y, y) for y in graph.outputs)
        leaves = {y.op for y in (*graph.inputs, *graph.constants)}
        all_ops = post_order([y.op for y in outputs])
        leaves |= {y.op for op in all_ops if isinstance(op, ScanOp) for y in op.states}
        ops = tuple(op for op in all_ops if op not in leaves)
        stored = {replacements.get(y, y): layout for y, layout in self.stored.items()}
        stored |= {copy: stored[x]} if x in stored else {}
        copies = {
            replaced(op): (replacements.get(y, y), tuple(map(replaced, users)))
            for op, (y, users) in self.copies.items()
        }
        return ProgramWithLayouts(
            replace(graph, outputs=outputs, operations=ops, readers=readers_of(ops)),
            stored,
            frozenset(map(replaced, self.copy_operations)),
            frozenset({*map(replaced, self.requested_ops), x.op, copy.op}),
            {y: replacements.get(new, new) for y, new in self.replacements.items()},
            {**copies, copy.op: (x, tuple(map(replaced, readers)))},
        )

    def with_fused_kernels(
        self, layouts: ProgramLayouts, groups: Sequence[FusionGroup]
    ) -> ProgramLayouts:
        """Return the layouts, with the kernels into which hinted values were fused."""
        return replace(layouts, wishes=tuple(
            replace(wish, fused_kernels=self._fused_kernels(layouts, wish, groups))
            if isinstance(wish, HintOutcome) else wish
            for wish in layouts.wishes
        ))

    def _fused_kernels(
        self, layouts: ProgramLayouts, wish: HintOutcome, groups: Sequence[FusionGroup]
    ) -> tuple[str, ...]:
        op = self.replacements[layouts.graph.of(wish.hint.tensor)].op
        if any(group.result is op for group in groups):
            return ()
        return tuple(group.result.name for group in groups if op in group.operations)


def insert_relayouts(
    layouts: ProgramLayouts, packed: Container[Tensor] = frozenset(),
    resident: Container[Tensor] = frozenset()
) -> ProgramWithLayouts:
    """Insert the copies that the assigned layouts require.

    Args:
        layouts: Assigned layouts.
        packed: Inputs and outputs that the caller passes in device layout.
        resident: Values, including copies, that must stay in scratchpads.
    """
    making = _Making(layouts, packed, resident, {}, {}, {}, set())
    graph = layouts.graph
    for x in (*graph.inputs, *graph.constants):
        making.enter(x)
    for op in graph.operations:
        making.add(op)
    outputs = tuple(making.leave(x) for x in graph.outputs)
    leaves = {x.op for x in (*graph.inputs, *graph.constants)}
    all_ops = post_order([x.op for x in outputs])
    leaves |= {x.op for op in all_ops if isinstance(op, ScanOp) for x in op.states}
    ops = tuple(op for op in all_ops if op not in leaves)
    inside = replace(graph, outputs=outputs, operations=ops, readers=readers_of(ops))
    requested = frozenset(
        making.replacements[x].op
        for op in graph.operations
        if op in layouts.requested_ops
        for x in op.outputs
    )
    return ProgramWithLayouts(
        inside, making.stored, frozenset(making.copy_operations), requested, making.replacements
    )


@dataclass(frozen=True, slots=True)
class _Making:
    """State of relayout insertion.

    Attributes:
        layouts: Assigned layouts.
        packed: Inputs and outputs that the caller passes in device layout.
        resident_values: Values that must stay in scratchpads.
        replacements: Replacement of each value.
        relaid: Copy of a value in another layout, by value and layout.
        stored: Layouts of the values created so far, unless row-major.
        copy_operations: Copy operations.
    """

    layouts: ProgramLayouts
    packed: Container[Tensor]
    resident_values: Container[Tensor]
    replacements: dict[Tensor, Tensor]
    relaid: dict[tuple[Tensor, Layout], Tensor]
    stored: dict[Tensor, Layout]
    copy_operations: set[Operation]

    def enter(self, tensor: Tensor) -> None:
        """Add an input or constant in its device layout."""
        layout = self.layouts.of[tensor]
        if tensor in self.packed:
            if not is_passed_as(layout):
                self.stored[tensor] = layout
            self._add(tensor, tensor)
            return
        is_read = tensor.op in self.layouts.graph.readers
        self._add(tensor, self._copy(tensor, tensor.name, layout) if is_read else tensor)

    def leave(self, tensor: Tensor) -> Tensor:
        """Return an output in the form that the caller receives."""
        result = self.replacements[tensor]
        if tensor in self.packed:
            return result
        copies = self.layouts.copies_of(tensor) if self._is_scattered(tensor) else ()
        contiguous = (copy for copy in copies if not is_scattered(copy.layout, tensor))
        result = next((self.relaid[tensor, copy.layout] for copy in contiguous), result)
        return self._copy(result, tensor.name, None) if result in self.stored else result

    def _is_scattered(self, tensor: Tensor) -> bool:
        """Return whether the host would get an output element by element."""
        return tensor in self.layouts.layouts_or_views and is_scattered(
            self.layouts.layouts_or_views[tensor], tensor
        )

    def add(self, op: Operation) -> None:
        """Add an operation that reads the assigned copies."""
        rewritten = self._reading(op)
        for before, after in zip(op.outputs, rewritten, strict=True):
            storage = self.layouts.layouts_or_views[before]
            is_shown = before in self.layouts.shown
            if isinstance(storage, Layout) and not is_shown and not is_passed_as(storage):
                self.stored[after] = storage
            self._add(before, after)
        if op in self.layouts.copying and op.output(0) not in self.resident_values:
            self.copy_operations.add(rewritten[0].op)

    def _reading(self, op: Operation) -> tuple[Tensor, ...]:
        reads = self.layouts.reads[op]
        operands = {x: self.replacements[x] for x in op.input_tensors if x in self.replacements}
        for slot, layout in reads:
            if layout is not None and not slot.indices:
                operands[slot.tensor] = self.relaid[slot.tensor, layout]
        rewritten = op
        if isinstance(op, ComputeOp) and any(slot.indices for slot, _ in reads):
            rewritten = replace(op, body=tuple(self._with_copies(e, reads) for e in op.body))
        subst = substitute_inputs([rewritten], operands)
        return tuple(subst.get(x, x) for x in rewritten.outputs)

    def _with_copies(self, body: Expr, reads: Sequence[tuple[OperandSlot, Layout | None]]) -> Expr:
        """Return an expression in which loads are redirected to the copies assigned to them."""

        def rule(node: Any) -> Expr | None:
            if not isinstance(node, TensorLoad):
                return None
            for slot, layout in reads:
                if layout is not None and slot.indices and slot.has(node.tensor, node.indices):
                    copy = self.relaid[slot.tensor, layout]
                    return TensorLoad(copy, node.indices, node.location)
            return None

        return top_down(body, rule)

    def _add(self, tensor: Tensor, replacement: Tensor) -> None:
        """Record the replacement of a value, and add its copies in other layouts."""
        self.replacements[tensor] = replacement
        for copy in self.layouts.copies_of(tensor):
            source = tensor if copy.is_of_host else replacement
            relaid = self._copy(source, f"{tensor.name}_relaid", copy.layout)
            self.relaid[tensor, copy.layout] = relaid

    def _copy(self, tensor: Tensor, name: str, layout: Layout | None) -> Tensor:
        """Copy a tensor to a layout (None: row-major), unless it already has this layout."""
        if tensor not in self.stored and (layout is None or is_passed_as(layout)):
            return tensor
        copy = copy_of(tensor, name)
        self.copy_operations.add(copy.op)
        if layout is not None and not is_passed_as(layout):
            self.stored[copy] = layout
        return copy


def is_passed_as(layout: Layout) -> bool:
    """Return whether a layout is row-major in host memory, as callers pass NumPy arrays."""
    if layout.memory != HOST:
        return False
    index_map = layout.index_map
    axes, indices = index_map.initial_indices, index_map.final_indices
    return len(axes) == len(indices) and all(a is b for a, b in zip(axes, indices, strict=True))
