"""Evaluate pending nodes, on demand or when the recording grows too long."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from time import perf_counter
from types import CodeType, FrameType
from typing import TYPE_CHECKING, Any

from tecomp.array.graph.node import (
    Buffer,
    Node,
    distributed_hooks,
    empty,
    looking,
    no_memory,
    parts_of,
    traces,
    tracing,
)
from tecomp.array.graph.pending import (
    PendingGraph,
    by_device,
    is_busy,
    mark_computing,
    pending_graph_of,
    pieces_of,
    unmark_computing,
    wait,
    writers,
)
from tecomp.array.graph.views import apply_view_chain, is_view
from tecomp.caches import LRUCache
from tecomp.errors import ArrayMemoryError, ArrayTypeError
from tecomp.fork_gate import no_fork
from tecomp.lazy_imports import load_upward
from tecomp.ptensor.devices import CPU
from tecomp.ptensor.types import numpy_dtype

if TYPE_CHECKING:
    # Import for types only: the module is loaded when the first team is created.
    from tecomp.dist.runtime.call_tracking import WaitInterval


class ActivityLog:
    """Log of computations for the timeline.

    Attributes:
        spans: Most recent computations; None if the log is off.
    """

    def __init__(self) -> None:
        self.spans: deque[WaitInterval] | None = None
        self._span: type[WaitInterval]

    def begin(self) -> None:
        """Turn the log on."""
        if self.spans is None:
            import tecomp.dist.runtime.call_tracking as waits
            self.spans, self._span = deque(maxlen=waits.KEPT_WAITS), waits.WaitInterval

    def note(self, work: PendingGraph, start: float, label: str = "") -> None:
        """Log the computation of operations, which began at `start`."""
        if self.spans is not None:
            names = dict.fromkeys([op.where for op, _ in work.steps])
            if label:
                names[f"({label})"] = None
            self.spans.append(self._span(" ".join(names), start, perf_counter()))


lane = ActivityLog()
"""Log of this process."""


def evaluate(
    nodes: Sequence[Node], into: Mapping[Node, Buffer] | None = None,
    runner: Callable[[PendingGraph], None] | None = None,
) -> None:
    """Compute nodes, together with recorded operations on their paths that are still referenced.

    Args:
        nodes: Nodes to compute.
        into: Contiguous memory for the elements of some nodes; the others are allocated.
        runner: Function that runs pending operations. Default: `compute`.
    """
    parts = parts_of(nodes, at_once=True)
    if all([part.is_there for part in parts]):
        return
    started: list[Node] = []
    with no_fork:
        try:
            with looking:
                work = computable(parts)
                started = work.nodes
                mark_computing(started)
                if into:
                    number = {node: k for k, node in enumerate(started)}
                    buffers = {number[node]: data for node, data in into.items() if node in number}
                    work.into = buffers
            if started:  # otherwise another thread has computed the nodes
                (runner or compute)(work)
        finally:
            unmark_computing(started)


def computable(nodes: Sequence[Node]) -> PendingGraph:
    """Return the pending operations of nodes, after other threads have finished their part.

    Raises:
        ArrayTypeError: If a leaf has no elements because a function is being recorded.
    """
    with looking:
        while (work := pending_graph_of([node for node in nodes if not node.is_there])) and is_busy(
            work.nodes, work.leaves
        ):
            writer_ids = writers(work.leaves)
            del work  # drop references, because other threads count references to the nodes
            wait(writer_ids)
    if not all([node.is_there for node in work.leaves]):  # an argument of a recorded function
        raise no_elements()
    if tracing.depth and not tracing.outer_nodes.isdisjoint(map(id, work.leaves)):
        raise no_elements()
    return work


def no_elements() -> ArrayTypeError:
    """Return the error for element access while a function is recorded."""
    trace = traces.current()
    return ArrayTypeError(
        "{where}: the value of an element is not available during recording; use where instead of "
        "if, or access the value outside the recorded function",
        kind="recording", where="jit" if trace is None else trace.where,
    )


class DataDependentShapeError(ArrayTypeError):
    """Error for a data-dependent shape in a recorded function; `jit` then calls it every time."""


def check_recordable(where: str) -> None:
    """Stop recording a function at an operation whose result has a shape that depends on values.

    Raises:
        DataDependentShapeError: If a function is being recorded.
    """
    if tracing.depth:
        raise DataDependentShapeError(
            "jit: the result of {where} has a data-dependent shape, which is not supported during "
            "recording; call it outside the recorded function",
            kind="recording", where=where,
        )


def compute(work: PendingGraph, label: str = "") -> None:
    """Compute pending operations whose leaves are computed.

    Args:
        work: Pending operations.
        label: Label for the timeline.
    """
    if len(work.outputs) > 1:
        subgraphs = by_device(work)
        if len(subgraphs) > 1:
            for part in subgraphs:
                compute(part, label)
            return
    if len(work.steps) > _MAX_COMPILED_OPERATIONS or len(work.outputs) > _MAX_RESULTS:
        _compute_pieces(work, label)
        return
    outputs = [work.nodes[position] for position in work.outputs]
    if any([0 not in node.type.shape for node in outputs]):
        start = 0.0 if lane.spans is None else perf_counter()
        _run(work)
        if start:
            lane.note(work, start, label)
        return
    for node in outputs:
        node.computed(empty(node.type))


def _compute_pieces(work: PendingGraph, label: str) -> None:
    """Compute many operations in pieces, most of which reuse one kernel.

    Thousands of arrays that are evaluated together, for example by `stack`, would otherwise form
    one kernel with thousands of results, which takes a minute to compile.
    """
    required = {*work.outputs}
    nodes = {-1 - k: leaf for k, leaf in enumerate(work.leaves)}
    for piece in pieces_of(work, _MAX_RESULTS):
        for index in piece.nodes:
            node = work.nodes[index]
            # Use copies of inner nodes: if evaluation fails, the recorded graph is unchanged.
            nodes[index] = node if index in required else Node(node.type, None, (), None, 0, 0)
        into = None if work.into is None else {
            k: work.into[index] for k, index in enumerate(piece.nodes) if index in work.into
        }
        compute(PendingGraph(
            [nodes[index] for index in piece.leaves], [nodes[index] for index in piece.nodes],
            piece.steps, piece.outputs, into,
        ), label)
        for index in piece.dead_values:
            del nodes[index]


def _run(work: PendingGraph) -> None:
    try:
        _compiler().run(work)
    except ArrayMemoryError:
        raise
    except MemoryError:
        types = [work.nodes[position].type for position in work.outputs]
        largest = max(types, key=lambda ptype: ptype.size)
        raise no_memory(largest.shape, numpy_dtype(largest.dtype)) from None


@cache
def _compiler() -> Any:
    # Recording operations must not load the compiler.
    return load_upward("array.kernels")


def data_of(node: Node, reason: str = "values") -> Buffer:
    """Return the elements of a node; a pending node is evaluated first."""
    data, stored = node.data, node.stored
    if tracing.depth and id(node) in tracing.outer_nodes:
        raise no_elements()
    if data is not None:
        return data
    if stored is None:
        if node.type.team is not None:
            return distributed_hooks().gather_all(node, reason)
        if node.type.device not in (None, CPU) and (host_view := _host_view(node)) is not None:
            return host_view
        evaluate((node,))
        stored = node.stored
    if stored is not None:
        return stored.elements()
    assert node.data is not None
    return node.data


def _host_view(node: Node) -> Buffer | None:
    """Return elements on a device as NumPy views of stored elements; views compile no kernel."""
    ops = []
    with looking:
        while node.op is not None and is_view(node.op):
            ops.append(node.op)
            (node,) = node.operands
        stored = node.stored
    if stored is None or not ops:
        return None
    return apply_view_chain(reversed(ops), stored.elements())


MOST = 128
"""Maximum number of operations that are recorded before they are evaluated."""

_MAX_COMPILED_OPERATIONS = 2 * MOST
"""Maximum number of operations in one compilation; more are computed in pieces."""

_MAX_RESULTS = 64
"""Maximum number of results of one kernel.

2,000 results take 30 s and 750 MB to compile in one kernel, and 2 s and 150 MB in pieces.
"""

MIN_OPERATIONS = MOST // 2
"""Minimum number of operations that are evaluated at a known stopping point."""

_places: LRUCache[tuple[CodeType, int], bool] = LRUCache("array.evaluation_points")


SLICED = 16
"""Number of pending operations from which a sliced result is evaluated."""


def flush_parts(node: Node) -> None:
    """Evaluate a node of which parts are read, if it is the result of several operations.

    A kernel computes the elements again for each part. In a loop such as
    `x = x[1:] + x[:-1]`, the work and the size of the kernel would double in each iteration.
    """
    if not tracing.depth and node.type.team is None:
        evaluate((node,))


def flush_if_long(node: Node) -> None:
    """Evaluate a node if it is the result of many operations.

    A loop executes the same code locations again. Evaluation stops at a location where it stopped
    before, so the operations between two stops are equal in each iteration and are compiled once.
    """
    if tracing.depth:
        return
    if node.pending < MOST and not _places.get(_place(), False):
        return
    _places.keep(_place(), True)
    evaluate((node,))


def _place() -> tuple[CodeType, int]:
    """Return the current location in user code."""
    frame: FrameType = sys._getframe(2)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("tecomp."):
        frame = frame.f_back
    return frame.f_code, frame.f_lasti
