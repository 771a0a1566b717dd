"""Partition operations into fusion groups, and combine groups that read the same values."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from graphlib import TopologicalSorter

from tecomp.compute.access_relations import variables_of
from tecomp.compute.define import compute
from tecomp.compute.extern import ExternOp
from tecomp.compute.operation import ComputeOp, Operation
from tecomp.compute.scan import ScanOp
from tecomp.compute.tensor import Tensor, TensorLoad
from tecomp.graph.dag import ProgramGraph, graph_with, steps_of_scans
from tecomp.graph.sizes import are_equal
from tecomp.ir.nodes.expr import Expr, Var
from tecomp.ir.traversal.rewrite import nodes_of, substitute, top_down
from tecomp.machine.descriptor import Target
from tecomp.schedules.fusion.groups import StageGraph, groups_of
from tecomp.schedules.scratchpad.placement import NO_LAYOUTS, Layouts


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
    graph: ProgramGraph, target: Target, isolated: Container[Operation] = (),
    stored: Iterable[Operation] = (), retained: Container[Operation] = (),
    layouts: Layouts = NO_LAYOUTS,
) -> tuple[FusionGroup, ...]:
    """Partition the operations into fusion groups, in topological order.

    The fuser of schedules decides, so that a program and a single kernel compute equal loop nests;
    each of its loop nests becomes a kernel.

    Args:
        graph: Operations.
        target: Target.
        isolated: Operations that form groups of their own, together with the views that they read.
        stored: Operations whose results must be in memory.
        retained: Views among `stored` that their readers must not recompute.
        layouts: Layouts of values that do not have the default layout of the target.
    """
    steps = steps_of_scans(graph.operations)
    outputs = {*stored, *(tensor.op for tensor in graph.outputs)}
    apart = {op for op in graph.operations if op in isolated or any(
        reader in isolated and not _is_view(op) for reader in graph.readers[op])}
    results = frozenset(op.output(0) for op in {*outputs, *apart, *_folded(graph)})
    stages = tuple(op.output(0) for op in graph.operations)
    readers = {op.output(0): [y.output(0) for y in graph.readers[op]] for op in graph.operations}
    nests, _ = groups_of(
        StageGraph(stages, readers, results), target, is_resident=target.core is None,
        layouts=layouts)
    heads = {nest.output.op for nest in nests}
    groups: dict[Operation, dict[Operation, None]] = {}
    for op in reversed(graph.operations):
        found = {group: None for reader in graph.readers[op] for group in groups[reader]}
        if op in steps:
            found = groups[steps[op]]
        elif op in outputs:
            is_root = op in isolated or op in retained or not _is_view(op)
            found = {op: None} | ({} if is_root else found)
        elif op in heads or op in apart:
            found = {op: None}
        groups[op] = found
    members: dict[Operation, list[Operation]] = {}
    for op in graph.operations:
        for group in groups[op]:
            members.setdefault(group, []).append(op)
    # Groups keep the order of the graph, which is topological for their results too.
    return tuple(FusionGroup(tuple(members[op])) for op in graph.operations if op in members)


def computed_constants(graph: ProgramGraph) -> dict[Operation, None]:
    """Return the operations that depend on constants only, in topological order."""
    known = {x.op for x in graph.constants}
    found: dict[Operation, None] = {}
    for op in graph.operations:
        if op.input_tensors and not variables_of(op) and all(
            x.op in known or x.op in found for x in op.input_tensors
        ):
            found[op] = None
    return found


def _folded(graph: ProgramGraph) -> Iterator[Operation]:
    """Yield the computed constants that other operations read; they are computed once."""
    known = computed_constants(graph)
    for op in known:
        if not _is_view(op) and not known.keys() >= {*graph.readers[op]}:
            yield op


def _is_view(op: Operation) -> bool:
    """Return whether an operation is a view: a pure index mapping of one tensor."""
    if not isinstance(op, ComputeOp) or isinstance(op, ScanOp | ExternOp):
        return False
    return op.num_outputs == 1 and isinstance(op.body[0], TensorLoad)


_MAX_OPERATIONS = 64
"""Maximum operations of the combined kernels."""
_MAX_RESULTS = 4
"""Maximum results of a kernel, each of which is a stream of stores."""


def combine_siblings(graph: ProgramGraph, target: Target) -> ProgramGraph:
    """Combine element-wise kernels of one shape that read the same values in one order.

    The combined kernel loads these values once. A value that only combined kernels read is not
    stored at all. Kernels between which there is a path of other kernels are not combined.
    """
    groups = form_fusion_groups(graph, target)
    siblings = _Siblings(graph, groups)
    siblings.combine()
    found = [cluster for cluster in siblings.clusters if len(cluster.groups) > 1]
    return _rewritten(graph, found) if found else graph


@dataclass(eq=False)
class _Cluster:
    """Kernels that are combined.

    Attributes:
        groups: Groups in topological order; those whose values nothing else reads are not stored.
        stored: Groups whose values other kernels or callers read.
    """

    groups: list[FusionGroup]
    stored: list[FusionGroup] = field(default_factory=list)

    @property
    def size(self) -> int:
        """Number of operations."""
        return sum(len(group.operations) for group in self.groups)


class _Siblings:
    """State of horizontal fusion.

    Attributes:
        values: Element of each element-wise group in terms of the values that it reads.
        clusters: Element-wise kernels, combined so far.
    """

    def __init__(self, graph: ProgramGraph, groups: Sequence[FusionGroup]) -> None:
        self.outputs = {x.op for x in graph.outputs}
        excluded = {*steps_of_scans(graph.operations), *computed_constants(graph)}
        self.producer = {group.result: group for group in groups}
        self.reads = {group: _producers(group, self.producer) for group in groups}
        self.readers: dict[FusionGroup, list[FusionGroup]] = {group: [] for group in groups}
        for group, producers in self.reads.items():
            for producer in producers:
                self.readers[producer].append(group)
        self.values = {
            group: _Elements(group).of_result() for group in groups
            if _is_elementwise(group) and not excluded & set(group.operations)
        }
        self.clusters = [_Cluster([group]) for group in self.values]
        self.of = {cluster.groups[0]: cluster for cluster in self.clusters}

    def combine(self) -> None:
        """Combine kernels of equal depth, then values with the kernels that read them."""
        level = self._depths()
        first: dict[tuple[int, Tensor], _Cluster] = {}
        for cluster in [*self.clusters]:
            (group,) = cluster.groups
            shape = group.result.output(0).shape
            reads = [
                (level[group], load.tensor) for load in self._loads_in_order(group)
                if are_equal(load.tensor.shape, shape)
            ]
            other = next((first[read] for read in reads if read in first), None)
            if other is not None and self._fits(other, cluster):
                cluster = self._merge(other, cluster)
            first.update(dict.fromkeys(reads, cluster))
        for group in reversed([*self.values]):
            self._combine_with_reader(group)
        for cluster in self.clusters:
            cluster.stored = [
                group for group in cluster.groups if group.result in self.outputs
                or any(self.of.get(reader) is not cluster for reader in self.readers[group])
            ]

    def _combine_with_reader(self, group: FusionGroup) -> None:
        """Combine a value with an element-wise kernel that reads it, one level above."""
        cluster, x = self.of[group], group.result.output(0)
        if len(self.readers[group]) + (group.result in self.outputs) < 2:
            return  # the fuser had a reason to store the value
        candidates = [
            reader for reader in self.readers[group] if reader in self.of
            and self.of[reader] is not cluster and self._fits(cluster, self.of[reader])
            and all(
                self._reads_in_order(other, x) for other in self.of[reader].groups
                if other in self.readers[group]
            )
        ]
        level = self._depths() if candidates else {}
        for reader in candidates:
            if level[reader] == level[group] + 1:
                self._merge(cluster, self.of[reader])
                return

    def _depths(self) -> dict[FusionGroup, int]:
        """Return the length of the longest path to each group; combined groups count as one.

        There is no path between kernels of equal depth, and no path of several kernels between
        kernels of successive depths, so combining them makes no cycle.
        """
        sorter: TopologicalSorter[object] = TopologicalSorter()
        for group, producers in self.reads.items():
            node = self._node(group)
            sorter.add(node, *(n for n in map(self._node, producers) if n is not node))
        depth: dict[object, int] = {}
        above: dict[object, set[object]] = {}
        for group, producers in self.reads.items():
            above.setdefault(self._node(group), set()).update(map(self._node, producers))
        for node in sorter.static_order():
            depth[node] = max((depth[n] + 1 for n in above[node] if n is not node), default=0)
        return {group: depth[self._node(group)] for group in self.reads}

    def _node(self, group: FusionGroup) -> object:
        return self.of.get(group, group)

    def _reads_in_order(self, group: FusionGroup, x: Tensor) -> bool:
        """Return whether each read of `x` is at the index of the element that is computed."""
        loads = [load for load in nodes_of(TensorLoad, self.values[group]) if load.tensor == x]
        in_order = {*map(id, self._loads_in_order(group))}
        return are_equal(x.shape, group.result.output(0).shape) and bool(loads) and all(
            id(load) in in_order for load in loads
        )

    def _loads_in_order(self, group: FusionGroup) -> list[TensorLoad]:
        axes = group.result.axis
        return [
            load for load in nodes_of(TensorLoad, self.values[group])
            if len(load.indices) == len(axes)
            and all(a is b for a, b in zip(load.indices, axes, strict=True))
        ]

    def _fits(self, cluster: _Cluster, other: _Cluster) -> bool:
        groups = [*cluster.groups, *other.groups]
        inside = {*groups}
        results = sum(
            group.result in self.outputs or not inside.issuperset(self.readers[group])
            for group in groups
        )
        widths = {group.result.output(0).dtype.bits for group in groups}
        is_small = cluster.size + other.size <= _MAX_OPERATIONS and results <= _MAX_RESULTS
        return is_small and len(widths) == 1

    def _merge(self, first: _Cluster, second: _Cluster) -> _Cluster:
        self.clusters.remove(second)
        first.groups += second.groups
        self.of.update(dict.fromkeys(second.groups, first))
        return first


class _Elements:
    """Composition of the operations of an element-wise group."""

    def __init__(self, group: FusionGroup) -> None:
        self.group = group
        self.inside = {*group.operations}

    def of_result(self) -> Expr:
        """Return the element of the result at the index of its axes."""
        result = self.group.result
        assert isinstance(result, ComputeOp)
        return self._inlined(result.body[0])

    def _inlined(self, expr: Expr) -> Expr:
        return top_down(expr, self._value)

    def _value(self, node: object) -> Expr | None:
        if not isinstance(node, TensorLoad) or node.tensor.op not in self.inside:
            return None
        op = node.tensor.op
        assert isinstance(op, ComputeOp)
        indices = [self._inlined(index) for index in node.indices]
        values: Mapping[Var, Expr] = dict(zip(op.axis, indices, strict=True))
        return self._inlined(substitute(op.body[0], values))


def _producers(
    group: FusionGroup, producer: Mapping[Operation, FusionGroup]
) -> list[FusionGroup]:
    found = (producer.get(x.op) for x in group_inputs(group))
    return [other for other in dict.fromkeys(found) if other is not None]


def _is_elementwise(group: FusionGroup) -> bool:
    """Return whether all operations are single element-wise results, and there are not many."""
    return len(group.operations) <= _MAX_OPERATIONS // 2 and bool(group.result.axis) and all(
        isinstance(op, ComputeOp) and not isinstance(op, ScanOp | ExternOp)
        and op.num_outputs == 1 and not op.reduce_axis for op in group.operations
    )


def _rewritten(graph: ProgramGraph, clusters: Sequence[_Cluster]) -> ProgramGraph:
    """Return the program in which each cluster is one operation of several results."""
    of = {group.result: cluster for cluster in clusters for group in cluster.groups}
    done: dict[Tensor, Tensor] = {}
    combined: dict[_Cluster, Mapping[Operation, Tensor]] = {}

    def change(before: Operation, rebuilt: Operation) -> Operation | tuple[Tensor, ...]:
        cluster = of.get(before)
        if cluster is None or all(group.result is not before for group in cluster.stored):
            done.update(zip(before.outputs, rebuilt.outputs, strict=True))
            return rebuilt
        if cluster not in combined:
            combined[cluster] = _combine(cluster, done)
        done[before.output(0)] = combined[cluster][before]
        return (done[before.output(0)],)

    operations = tuple(_in_order(graph, of))
    return graph_with(replace(graph, operations=operations), change)


def _in_order(
    graph: ProgramGraph, of: Mapping[Operation, _Cluster]
) -> Iterator[Operation]:
    """Yield the operations in topological order, with what a cluster reads before its results."""
    sorter: TopologicalSorter[_Cluster | Operation] = TopologicalSorter()
    members: dict[_Cluster | Operation, list[Operation]] = {}
    known = {*graph.operations}
    for op in graph.operations:
        node = of.get(op, op)
        members.setdefault(node, []).append(op)
        reads = op.input_tensors
        if isinstance(node, _Cluster):
            # Operations inside the groups are part of the combined operation.
            (group,) = (group for group in node.groups if group.result is op)
            reads = tuple(group_inputs(group))
        producers = (of.get(x.op, x.op) for x in reads if x.op in known)
        sorter.add(node, *(other for other in producers if other is not node))
    for node in sorter.static_order():
        yield from members[node]


def _combine(cluster: _Cluster, done: Mapping[Tensor, Tensor]) -> Mapping[Operation, Tensor]:
    """Return the results of the operation that computes a cluster."""
    first, *_ = cluster.stored
    inside = {group.result: group for group in cluster.groups}
    elements: dict[FusionGroup, Expr] = {}

    def define(*index: Expr) -> tuple[Expr, ...]:
        def value(node: object) -> Expr | None:
            if not isinstance(node, TensorLoad):
                return None
            if node.tensor.op in inside:
                assert len(node.indices) == len(index)
                return elements[inside[node.tensor.op]]
            indices = [top_down(i, value) for i in node.indices]
            return TensorLoad(done.get(node.tensor, node.tensor), tuple(indices))

        for group in cluster.groups:
            values = dict(zip(group.result.axis, index, strict=True))
            elements[group] = top_down(substitute(_Elements(group).of_result(), values), value)
        return tuple(elements[group] for group in cluster.stored)

    name = "_".join(group.result.name for group in cluster.stored)
    defined = compute(first.result.output(0).shape, define, name=name)
    results = defined if isinstance(defined, tuple) else (defined,)
    return {group.result: x for group, x in zip(cluster.stored, results, strict=True)}
