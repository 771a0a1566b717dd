"""Partition operations into fusion groups."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from tecomp.compute.access_relations import Access, Accesses, accesses
from tecomp.compute.extern import ExternOp
from tecomp.compute.iter_var import IterVar
from tecomp.compute.operation import ComputeOp, Operation
from tecomp.compute.scan import ScanOp
from tecomp.compute.tensor import Tensor, TensorLoad
from tecomp.graph.dag import ProgramGraph, steps_of_scans
from tecomp.schedules.analysis.reduction import match_grouped_scan


@dataclass(frozen=True, slots=True)
class FusionGroup:
    """A fusion group: operations that one kernel computes.

    Attributes:
        operations: Operations in topological order; the last one computes the results, the only
            values that other groups read. A view is duplicated into each group that reads it.
    """

    operations: tuple[Operation, ...]

    @property
    def result(self) -> Operation:
        """Operation that computes the results of the group."""
        return self.operations[-1]


def group_inputs(group: FusionGroup) -> list[Tensor]:
    """Return the tensors that a group reads from outside."""
    inside = set(group.operations)
    states = {x for op in group.operations if isinstance(op, ScanOp) for x in op.states}
    reads = (x for op in group.operations for x in op.input_tensors if x.op not in inside)
    return [x for x in dict.fromkeys(reads) if x not in states]


def form_fusion_groups(
    graph: ProgramGraph, isolated: Container[Operation] = (), stored: Iterable[Operation] = (),
    parts: Mapping[Operation, Operation] = MappingProxyType({}),
    retained: Container[Operation] = (),
) -> tuple[FusionGroup, ...]:
    """Partition the operations into fusion groups, in topological order.

    An operation joins the group of its readers if there is exactly one such group, all readers
    access it element-wise, and none needs a whole row before its own elements. A view joins every
    group that reads it. The steps of a scan belong to the group of the scan.

    Args:
        graph: Operations.
        isolated: Operations that form groups of their own, together with the views that they read.
        stored: Operations whose results must be in memory.
        parts: Operations that must join the group of another operation, with that operation.
        retained: Views among `stored` that their readers must not recompute.
    """
    steps = steps_of_scans(graph.operations)
    groups: dict[Operation, dict[Operation, None]] = {}
    reductions: dict[Operation, list[Operation]] = {op: [] for op in graph.operations}
    outputs = {*stored, *(tensor.op for tensor in graph.outputs)}
    for op in reversed(graph.operations):
        readers = graph.readers[op]
        found = {group: None for reader in readers for group in groups[reader]}
        if (host := parts.get(op)) is not None:
            found = groups[host]
        elif op in steps:
            found = {steps[op]: None}
        elif op in outputs:
            is_root = op in isolated or op in retained or not _is_view(op)
            found = {op: None} | ({} if is_root else found)
        elif op in isolated or (not _is_view(op) and not (
            len(found) == 1 and all(r not in isolated and _fits(op, r) for r in readers)
        )):  # fmt: skip
            found = {op: None}
        if op.reduce_axis and not all(_may_reduce(op, reductions[group]) for group in found):
            found = {op: None}
        for group in found:
            reductions[group] += [op] if op.reduce_axis else []
        groups[op] = found
    members: dict[Operation, list[Operation]] = {}
    for op in graph.operations:
        for group in groups[op]:
            members.setdefault(group, []).append(op)
    # Groups keep the order of the graph, which is topological for their results too.
    return tuple(FusionGroup(tuple(members[op])) for op in graph.operations if op in members)


def scan_only_operations(graph: ProgramGraph) -> dict[Operation, Operation]:
    """Return the operations of scans inside of grouped rows, each with the result of its scan.

    Separate kernels would move all intermediate values of such a scan through memory.
    """
    found: dict[Operation, Operation] = {}
    outputs = {tensor.op for tensor in graph.outputs}
    for op in graph.operations:
        d = match_grouped_scan(op.output(0))
        if d is None:
            continue
        rules = [x.op for scan in (d.sums, d.before) for x in scan.op.input_tensors]
        members = {d.columns.op, d.sums.op, d.totals.op, d.before.op, *rules}
        inside = {op, *members}
        is_private = not outputs & members and members.issubset(graph.readers)
        if is_private and all(reader in inside for x in members for reader in graph.readers[x]):
            found |= dict.fromkeys(members, op)
    return found


def _is_view(op: Operation) -> bool:
    """Return whether an operation is a view: a pure index mapping of one tensor."""
    return _is_plain(op) and isinstance(op, ComputeOp) and isinstance(op.body[0], TensorLoad)


def _fits(op: Operation, reader: Operation) -> bool:
    """Return whether an operation can be computed inside the loops of a reader."""
    if not _is_plain(op) or not _is_computed(reader):
        return False
    producer, consumer = accesses(op.output(0)), accesses(reader.output(0))
    reads = [read for read in consumer.reads if read.tensor.op is op]
    if producer.reduce_axis:
        return not consumer.reduce_axis and all(_is_in_place(read, consumer.axis) for read in reads)
    return all(_is_once(read, consumer) for read in reads)


def _may_reduce(op: Operation, others: Sequence[Operation]) -> bool:
    """Return whether an operation can share a group with the given reductions.

    A reduction that reuses its operands profits from tiles of its own, which exclude the row loops
    of other reductions.
    """
    if not op.reduce_axis or not others:
        return True
    return not any(_reads_again(reduction) for reduction in (op, *others))


def _reads_again(op: Operation) -> bool:
    found = accesses(op.output(0))
    return any(not _is_once(read, found) for read in found.reads if len(read.index) > 1)


def _is_plain(op: Operation) -> bool:
    return _is_computed(op) and op.num_outputs == 1


def _is_computed(op: Operation) -> bool:
    return isinstance(op, ComputeOp) and not isinstance(op, ScanOp | ExternOp)


def _is_in_place(read: Access, axes: Sequence[IterVar]) -> bool:
    """Return whether an element is read at the same indices at which it is used."""
    read_axes = [axis for axis in read.axes if axis is not None]
    return len(read_axes) == len(read.index) and _in_order(read_axes, axes)


def _is_once(read: Access, accesses: Accesses) -> bool:
    """Return whether the reader reads each element at most once, in any order."""
    read_axes = {axis for axis in read.axes if axis is not None}
    loops = (*accesses.axis, *accesses.reduce_axis)
    return len(read_axes) == len(read.index) and all(
        axis in read_axes or (isinstance(axis.extent, int) and axis.extent == 1) for axis in loops
    )


def _in_order(read_axes: Sequence[IterVar], axes: Sequence[IterVar]) -> bool:
    positions = [k for axis in read_axes for k, other in enumerate(axes) if other is axis]
    return positions == sorted(positions) and len(positions) == len(read_axes)
