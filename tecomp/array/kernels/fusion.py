"""Partition pending operations into fused kernels.

Values between two parts are stored in memory. A part computes a stored value from other stored
values and leaves; element-wise operations of one shape share a part.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.lib.stride_tricks import as_strided

from tecomp.array.graph.node import Buffer, Node, materialized_node
from tecomp.array.graph.pending import PendingGraph, Step
from tecomp.array.graph.views import Chain, apply_view_chain, is_view
from tecomp.array.kernels.anchor_kernels import ContractionCore, reduces_rows
from tecomp.array.kernels.strided_operands import dense
from tecomp.operations.elementwise import elementwise_in
from tecomp.ptensor.formulas.tables import is_elementwise
from tecomp.ptensor.operation import PTensorOp
from tecomp.ptensor.operations.elementwise import POWERS, Elementwise
from tecomp.ptensor.operations.reduction import AxisReduction, Cumulative
from tecomp.ptensor.types import PART, PTensorType, Shape, numpy_dtype

_MAX_RECOMPUTED_WORK = 4
"""Work per element below which recomputation is cheaper than storing and reading a value."""
_COSTS = {
    **{name: row.cost for name, row in elementwise_in("array").items()},
    **dict.fromkeys(POWERS, elementwise_in("array")["sqrt"].cost),
}
"""Work per element of each element-wise function."""


@dataclass(frozen=True, slots=True)
class KernelRegion:
    """Part of pending operations that one kernel computes.

    Attributes:
        work: Operations of the part; values stored by other parts are leaves, with memory of that
            shape.
        sources: Position of each leaf in the whole.
        outputs: Position of each result in the whole.
        positions: Position of each operation in the whole.
    """

    work: PendingGraph
    sources: tuple[int, ...]
    outputs: tuple[int, ...]
    positions: tuple[int, ...]

    @property
    def split_positions(self) -> list[int]:
        """Positions in the whole of the values to store next, so that the part is split.

        The split first separates the epilogue of an anchor operation, then its prologue, then the
        operands of views, and then the results of views.
        """
        steps, local = self.work.steps, range(len(self.work.steps))
        found = [
            [k for k in local if is_anchor(steps[k][0]) and k not in self.work.outputs],
            _operands([steps[k] for k in local if is_anchor(steps[k][0])]),
            _operands([steps[k] for k in local if is_view(steps[k][0])]),
            [k for k in local if is_view(steps[k][0])],
        ]
        stored = {self.positions[k] for k in self.work.outputs}
        for candidates in found:
            inside = [self.positions[k] for k in candidates if self.positions[k] not in stored]
            if inside:
                return inside
        return []


def _operands(steps: Iterable[Step]) -> list[int]:
    return [position for _, positions in steps for position in positions if position >= 0]


def is_anchor(op: PTensorOp) -> bool:
    """Return whether an operation is neither element-wise nor a view."""
    return not is_elementwise(op) and not is_view(op)


def accepts_prologue(op: PTensorOp) -> bool:
    """Return whether the kernel of an operation can compute an element-wise prologue."""
    return isinstance(op, AxisReduction | Cumulative)


def accepts_epilogue(op: PTensorOp) -> bool:
    """Return whether the kernel of an operation can compute an element-wise epilogue."""
    return accepts_prologue(op) or isinstance(op, ContractionCore)


def must_materialize(work: PendingGraph) -> set[int]:
    """Return the positions that must be stored, or that are cheaper to store than to recompute."""
    readers: list[list[int]] = [[] for _ in work.steps]
    for k, (_, positions) in enumerate(work.steps):
        for position in positions:
            if position >= 0:
                readers[position].append(k)
    found = _Stored(work, readers, _row_groups(work, readers))
    for k in reversed(range(len(work.steps))):
        found.look_at(k)
    return found.places


def _row_groups(work: PendingGraph, readers: Sequence[Sequence[int]]) -> dict[int, int]:
    """Return the values that a kernel computes row by row, each with the result of the kernel.

    As in the fuser of schedules, rows are computed by element-wise operations and reductions along
    the last axes, which only operations on the same rows read.
    """
    found: dict[int, int] = {}
    reductions = [k for k, (op, _) in enumerate(work.steps) if reduces_rows(op)]
    for k in reversed(range(min(reductions, default=len(work.steps)), len(work.steps))):
        if k in found or not is_elementwise(work.steps[k][0]) or not work.nodes[k].type.rank:
            continue
        members = _rows_of(work, readers, k, reductions)
        if not members.isdisjoint(reductions):
            found |= dict.fromkeys(members - {k}, k)
    return found


def _rows_of(
    work: PendingGraph, readers: Sequence[Sequence[int]], result: int, reductions: Sequence[int]
) -> set[int]:
    """Return the operations that can be computed for each row of a result, and nowhere else."""
    shape = work.nodes[result].type.shape
    rows = [k for k in reductions if k < result and _reduces_rows_of(work, k, shape)]
    members = {result}
    if not rows:
        return members
    values = work.nodes[rows[-1]].type.shape
    pending = {*work.steps[result][1]}
    while pending and (k := max(pending)) >= 0:
        pending.remove(k)
        op, operands = work.steps[k]
        found = work.nodes[k].type.shape
        if is_anchor(op):
            is_part = found == values and k in rows
        else:
            is_part = is_elementwise(op) and found in (shape, values)
        if is_part and k not in work.outputs and members.issuperset(readers[k]):
            members.add(k)
            pending.update(operands)
    return members


def _reduces_rows_of(work: PendingGraph, k: int, shape: Shape) -> bool:
    """Return whether an operation reduces the last axes of an operand of a shape to size 1."""
    operand, result = work.steps[k][1][0], work.nodes[k].type.shape
    x = work.nodes[operand] if operand >= 0 else work.leaves[-1 - operand]
    if x.type.shape != shape:
        return False
    leading = next((k for k, (a, b) in enumerate(zip(result, shape, strict=True)) if a != b), None)
    return leading is not None and set(result[leading:]) == {1}


class _Stored:
    """Set of stored values, determined from the results back to the leaves."""

    def __init__(
        self, work: PendingGraph, readers: list[list[int]], rows: Mapping[int, int]
    ) -> None:
        self.work, self.readers, self.rows = work, readers, rows
        self.places = {*work.outputs}
        self.row_results = {*rows.values()}
        self.homes: list[set[int]] = [set() for _ in work.steps]
        self.with_core: set[int] = set()
        self.read_plainly: set[int] = set()

    def look_at(self, k: int) -> None:
        op, _ = self.work.steps[k]
        if k in self.rows:
            self.homes[k] = {self.rows[k]}
            self.with_core |= self.homes[k]
            return
        homes = self.homes[k]
        for reader in self.readers[k]:
            homes |= {reader} if reader in self.places else self.homes[reader]
        if k in self.row_results or (k not in self.places and self._has_to(k)):
            self.places.add(k)
        if k in self.places:
            homes = {k}
        if is_anchor(op):
            self.with_core |= homes

    def _has_to(self, k: int) -> bool:
        op, homes = self.work.steps[k][0], self.homes[k]
        readers = [(self.work.steps[r][0], self.work.nodes[r].type.shape) for r in self.readers[k]]
        shape = self.work.nodes[k].type.shape
        if self._is_read_plainly(k):
            return True
        if any(is_elementwise(reader) and other_shape != shape for reader, other_shape in readers):
            return True
        if is_anchor(op):
            return (
                len(homes) > 1 or bool(homes & self.with_core) or not accepts_epilogue(op)
                or not all(is_elementwise(reader) for reader, _ in readers)
            )
        return len(homes) > 1 and self._cost(k) > _MAX_RECOMPUTED_WORK

    def _is_read_plainly(self, k: int) -> bool:
        """Return whether a reader, perhaps through views, is an anchor without a prologue."""
        for reader in self.readers[k]:
            op = self.work.steps[reader][0]
            is_seen = is_view(op) and reader in self.read_plainly
            if is_seen or (is_anchor(op) and not accepts_prologue(op)):
                self.read_plainly.add(k)
                return True
        return False

    def _cost(self, k: int) -> int:
        """Return the work per element with unstored operands; stop above `_MAX_RECOMPUTED_WORK`."""
        cost, visited, pending = 0, {k}, [k]
        while pending and cost <= _MAX_RECOMPUTED_WORK:
            op, operands = self.work.steps[pending.pop()]
            cost += _work(op)
            pending += [p for p in operands if p >= 0 and p not in self.places and p not in visited]
            visited.update(pending)
        return cost


def _work(op: PTensorOp) -> int:
    if isinstance(op, Elementwise):
        return _COSTS[op.kind]
    return 0 if is_view(op) else 1


@dataclass(slots=True)
class _FusionGroup:
    """Stored values that form a part: element-wise values of one shape, or a single other value."""

    kind: object
    outputs: list[int] = field(default_factory=list)
    nodes: set[int] = field(default_factory=set)


def partition_into_kernels(work: PendingGraph, stored: set[int]) -> list[KernelRegion]:
    """Return the parts in topological order.

    Args:
        work: Pending operations.
        stored: Positions of the stored values, including the results.
    """
    groups: list[_FusionGroup] = []
    group_of: dict[int, int] = {}
    for position in sorted(stored):
        nodes = _cone(work, position, stored)
        needs = {group_of[p] for k in nodes for p in work.steps[k][1] if p in group_of}
        kind = _kind(work, position, nodes)
        group_of[position] = _place_among(groups, kind, max(needs, default=-1))
        groups[group_of[position]].outputs.append(position)
        groups[group_of[position]].nodes.update(nodes)
    memory: dict[int, Node] = {}
    parts = []
    for group in groups:
        parts.append(_part(work, group, memory))
        for position in group.outputs:
            ptype = work.nodes[position].type
            view = view_among(parts[-1].work)
            memory[position] = materialized_node(_stand_in(ptype) if view is None else view, ptype)
    return parts


def _stand_in(ptype: PTensorType) -> Buffer:
    """Return a contiguous array for planning that occupies a single element."""
    element = np.empty(1, numpy_dtype(ptype.dtype))
    strides = [n * element.itemsize for n in dense(ptype.shape)]
    return as_strided(element, ptype.shape, strides, writeable=False)


def view_among(work: PendingGraph) -> Buffer | None:
    """Return the result of operations as a view of a leaf; None if they are more than views."""
    chain = chain_of(work)
    return apply_view_chain(chain, work.leaves[0].data) if chain else None


def chain_of(work: PendingGraph) -> Chain:
    """Return operations as a chain on one leaf; empty if they are not a chain."""
    expected = [(-1,), *[(k,) for k in range(len(work.steps) - 1)]]
    if [operands for _, operands in work.steps] != expected:
        return ()
    return tuple([op for op, _ in work.steps])


def _kind(work: PendingGraph, position: int, nodes: Sequence[int]) -> object:
    """Return a key that is equal for values that may share a kernel; None for no sharing."""
    if any(not is_elementwise(work.steps[k][0]) for k in nodes):
        return None
    ptype = work.nodes[position].type
    return ptype.shape, ptype.dtype in PART


def _place_among(groups: list[_FusionGroup], kind: object, last: int) -> int:
    """Return the group of a value whose operands are in the groups up to `last`."""
    for k in range(max(last, 0), len(groups)):
        if kind is not None and groups[k].kind == kind:
            return k
    groups.append(_FusionGroup(kind))
    return len(groups) - 1


def _cone(work: PendingGraph, position: int, stored: set[int]) -> list[int]:
    found, worklist = {position}, [position]
    while worklist:
        for p in work.steps[worklist.pop()][1]:
            if p >= 0 and p not in stored and p not in found:
                found.add(p)
                worklist.append(p)
    return sorted(found)


def _part(work: PendingGraph, group: _FusionGroup, memory: dict[int, Node]) -> KernelRegion:
    positions, before = _in_order(work, group)
    number = {position: k for k, position in enumerate(positions)}
    leaves: list[Node] = []
    sources: list[int] = []
    known: dict[tuple[int, bool], int] = {}
    steps = []
    for k, position in enumerate(positions):
        op, operands = work.steps[position]
        local_operands = []
        for p in operands:
            # A value that is read in prologue and epilogue becomes two leaves with different loops.
            key = p, k >= before
            if p not in number and key not in known:
                leaves.append(memory[p] if p >= 0 else work.leaves[-1 - p])
                sources.append(p)
                known[key] = -len(leaves)
            local_operands.append(number[p] if p in number else known[key])
        steps.append((op, tuple(local_operands)))
    nodes = [work.nodes[position] for position in positions]
    outputs = tuple([number[position] for position in group.outputs])
    region_work = PendingGraph(leaves, nodes, tuple(steps), outputs)
    return KernelRegion(region_work, tuple(sources), tuple(group.outputs), tuple(positions))


def _in_order(work: PendingGraph, group: _FusionGroup) -> tuple[list[int], int]:
    """Return the operations with the prologue and anchor first, and the number of these."""
    order = sorted(group.nodes)
    cores = [k for k in order if is_anchor(work.steps[k][0])]
    if not cores:
        return order, 0
    first = {k for k in _cone(work, cores[0], {*range(len(work.steps))} - group.nodes)}
    return [*sorted(first), *[k for k in order if k not in first]], len(first)
