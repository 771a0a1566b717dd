"""Graph nodes, including nodes of distributed arrays."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import count
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from tecomp.caches import LRUCache
from tecomp.errors import ArrayMemoryError, ArrayTypeError
from tecomp.fork_gate import leaf_lock
from tecomp.ptensor.devices import CPU, on_its_device
from tecomp.ptensor.operation import PTensorOp
from tecomp.ptensor.types import PTensorType, Shape, numpy_dtype
from tecomp.source_locations import Location, user_location

if TYPE_CHECKING:
    from tecomp.dist.partition.partition import Partition
    from tecomp.layout.core.layout import Layout

Buffer = np.ndarray[Any, Any]

_types: LRUCache[Any, PTensorType] = LRUCache("array.result_types")
_teams: list[DistributedHooks] = []
_serial = count()
_MAX_CACHED_OPERANDS = 16
"""Number of operands above which the result type is inferred again instead of cached."""

looking = leaf_lock()
"""Lock that is held while a thread reads the graph or changes shared nodes."""


class DeviceValue(Protocol):
    """Elements in device memory."""

    @property
    def type(self) -> PTensorType:
        """Type of the array."""

    @property
    def layout(self) -> Layout:
        """Layout of the elements, as device programs use it."""

    @property
    def program(self) -> Any:
        """Program that computed the elements; None if they came from the host."""

    def elements(self) -> Buffer:
        """Return the elements in host memory."""


class Node:
    """Value of the graph: a pending operation on other values, or computed elements.

    Attributes:
        type: Shape, dtype, device and team.
        op: Operation that computes the node; None once it is computed.
        operands: Operands of the operation.
        data: Elements in host memory; None until they are computed.
        since: Serial number of the first pending operation on which the node depends.
        pending: Number of operations recorded since then.
        stored: Elements on a device with separate memory, once they are available.
        home: Layout in which host elements are copied to the device; None for the default layout.
    """

    __slots__ = ("data", "op", "operands", "pending", "since", "stored", "type")
    home: Layout | None = None

    def __init__(
        self,
        ptype: PTensorType,
        op: PTensorOp | None,
        operands: tuple[Node, ...],
        data: Buffer | None,
        since: int,
        pending: int,
    ) -> None:
        self.type = ptype
        self.op = op
        self.operands = operands
        self.data = data
        self.since = since
        self.pending = pending
        self.stored: DeviceValue | None = None

    def computed(self, data: Buffer | None) -> None:
        """Store the elements and release the operands."""
        with looking:
            self.data = data
            self.op = None
            self.operands = ()
            self.pending = 0

    def placed(self, stored: DeviceValue) -> None:
        """Store elements on a device with separate memory and release the operands."""
        self.stored = stored  # set first, so that threads without the lock always find elements
        self.computed(None)

    @property
    def is_there(self) -> bool:
        """Whether the elements are computed."""
        return self.data is not None or self.stored is not None


class TraceState(threading.local):
    """Recording state of a thread; arguments of a recorded function have no elements.

    Attributes:
        depth: Number of nested functions that are being recorded.
        outer_nodes: `id`s of the nodes of arrays outside the function, whose elements can differ in
            later runs.
        created: `id`s of the arrays that the function has created.
    """

    depth = 0
    created: frozenset[int] | set[int] = frozenset()
    outer_nodes: frozenset[int] | set[int] = frozenset()

    def __enter__(self) -> None:
        self.depth += 1

    def __exit__(self, *_: object) -> None:
        self.depth -= 1


tracing = TraceState()
"""Recording state of this thread."""


def is_created(array: object) -> bool:
    """Return whether an array is not one from outside of the function that is being recorded."""
    return not tracing.depth or id(array) in tracing.created


class FunctionTrace:
    """Record of a function that is transformed, such as differentiated.

    Attributes:
        where: Name of the transformation, for error messages.
        differentiates: Whether the derivatives of the function are computed.
        outer: Trace of the function that applies the transformation.
        locations: Location in user code of each recorded operation.
        arrays: `id`s of the arrays that the function creates.
    """

    def __init__(self, where: str, *, differentiates: bool) -> None:
        self.where = where
        self.differentiates = differentiates
        self.outer: FunctionTrace | None = None
        self.locations: dict[Node, Location | None] = {}
        self.arrays: set[int] = set()

    def __enter__(self) -> FunctionTrace:
        self.outer = traces.get(threading.get_ident())
        traces[threading.get_ident()] = self
        tracing.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        tracing.__exit__()
        if self.outer is None:
            del traces[threading.get_ident()]
        else:
            traces[threading.get_ident()] = self.outer


class TraceTable(dict[int, FunctionTrace]):
    """Innermost traces by thread."""

    def current(self) -> FunctionTrace | None:
        """Return the innermost trace of this thread, or None."""
        return self.get(threading.get_ident())

    def note(self, *nodes: Node) -> None:
        """Add recorded operations to the trace of this thread."""
        trace = self.current()
        if trace is not None:
            trace.locations.update(dict.fromkeys(nodes, user_location()))

    def note_array(self, array: object) -> None:
        """Add a new array to the trace of this thread."""
        trace = self.current()
        if trace is not None:
            trace.arrays.add(id(array))


traces = TraceTable()
"""Innermost trace of each thread that transforms a function."""


def empty(ptype: PTensorType) -> Buffer:
    """Allocate uninitialized memory for the elements of a value.

    Raises:
        ArrayMemoryError: If there is not enough memory.
    """
    return memory(ptype.shape, numpy_dtype(ptype.dtype))


def memory(shape: Shape, dtype: np.dtype[Any]) -> Buffer:
    """Allocate uninitialized memory of a shape and a dtype.

    Raises:
        ArrayMemoryError: If there is not enough memory.
    """
    try:
        return np.empty(shape, dtype)
    except MemoryError:
        raise no_memory(shape, dtype) from None


def no_memory(shape: Shape, dtype: np.dtype[Any]) -> ArrayMemoryError:
    """Return the error for an array that does not fit in memory."""
    return ArrayMemoryError(
        "xp: cannot allocate {bytes} bytes for an array of shape {shape} and dtype {dtype}; split "
        "the computation into smaller parts",
        shape=shape, dtype=dtype, bytes=prod(shape) * dtype.itemsize,
    )


class HomeLeaf(Node):
    """Value on the host that is copied to a device in its own layout."""

    __slots__ = ("home",)


def leaf_like(node: Node, data: Buffer) -> Node:
    """Return a value with other elements that keeps the device layout of a node."""
    layout = node.home if node.stored is None else node.stored.layout
    if layout is None:
        return materialized_node(data, node.type)
    leaf = HomeLeaf(node.type, None, (), data, 0, 0)
    leaf.home = layout
    return leaf


def materialized_node(data: Buffer | None, ptype: PTensorType) -> Node:
    """Return a computed node."""
    return Node(ptype, None, (), data, 0, 0)


@dataclass(frozen=True, slots=True, eq=False)
class LibraryCallRecord:
    """Completed call of a library function, which `explain` shows for its results.

    Attributes:
        op: Operation.
        operands: Types of the operands, whose nodes may be released.
        results: Types of the results, inferred before the call.
    """

    op: PTensorOp
    operands: tuple[PTensorType, ...]
    results: tuple[PTensorType, ...]


class CallResult(Node):
    """Result of a library function.

    Attributes:
        call: Call that computed the result.
        number: Index of the result.
    """

    __slots__ = ("call", "number")

    def __init__(
        self, ptype: PTensorType, data: Buffer, call: LibraryCallRecord, number: int
    ) -> None:
        super().__init__(ptype, None, (), data, 0, 0)
        self.call = call
        self.number = number

    @property
    def declared(self) -> PTensorType:
        """Type inferred from the types of the operands; extents may be unknown."""
        return self.call.results[self.number]


def record(op: PTensorOp, *operands: Node) -> Node:
    """Record an operation and return its pending result.

    Raises:
        ArrayTypeError: If the operation does not support the dtypes.
        ArrayValueError: If the shapes do not match.
        DeviceMismatchError: If the operands are on different devices.
        TeamMismatchError: If the operands belong to different teams.
    """
    ptype = type_of(op, *[operand.type for operand in operands])
    if ptype.team is not None and not tracing.depth:
        return distributed_hooks().record(op, ptype, operands)
    serial = since = next(_serial)
    for operand in operands:
        if operand.op is not None and operand.since < since:
            since = operand.since
    node = Node(ptype, op, operands, None, since, serial - since + 1)
    if traces:
        traces.note(node)
    return node


class HostCall:
    """Function of nodes that runs on the host between kernels of a recorded function.

    Attributes:
        run: Function that returns nodes of the recorded types.
        op: Description of the function, by which its derivative is found.
    """

    __slots__ = ("op", "run")

    def __init__(self, run: Callable[..., tuple[Node, ...]], op: Any) -> None:
        self.run = run
        self.op = op


@dataclass(frozen=True)
class HostResult(PTensorOp):
    """Result of a host call, as an operation of a recorded function.

    Attributes:
        call: Host call; each of its results is a separate operation.
        index: Index of the result.
    """

    name = "host_call"
    takes = (0, None)

    call: HostCall
    index: int


def record_call(
    run: Callable[..., tuple[Node, ...]], op: Any, types: Sequence[PTensorType], *operands: Node
) -> tuple[Node, ...]:
    """Record a host function of nodes while a function is recorded.

    Args:
        run: Function of the operands.
        op: Description of the function, by which its derivative is found.
        types: Types of its results.
        operands: Nodes that are passed to the function.
    """
    call, serial = HostCall(run, op), next(_serial)
    since = min([serial, *[operand.since for operand in operands if operand.op is not None]])
    results = tuple([
        Node(ptype, HostResult(call, k), operands, None, since, serial - since + 1)
        for k, ptype in enumerate(types)
    ])
    if traces:
        traces.note(*results)
    return results


class DistributedHooks(NamedTuple):
    """Functions for distributed arrays, registered when the first distributed array is created.

    Attributes:
        record: Record an operation and return its result.
        gather_all: Return all elements of an array; the string gives the cause for reports.
        like_operands: Shard replicated results if the operands were sharded.
        run_library_call: Compute a library operation on shards; None if it needs whole arrays.
        flat_nonzero: Return the flat indices where a mask is true.
        from_start: Convert negative indices, and return an index that is out of bounds.
        put: Return an array with elements at indices replaced.
        repeated: Repeat elements along an axis, and return the first negative count.
        resolve_partition: Determine the partition of an array.
        explain: Describe the messages that are sent before the shards of arrays are computed.
        settle: Wait for the messages that the shards depend on; compute the shards meanwhile if
            they are needed at once.
    """

    record: Callable[[PTensorOp, PTensorType, tuple[Node, ...]], Node]
    gather_all: Callable[[Node, str], Buffer]
    like_operands: Callable[[tuple[Node, ...], tuple[Node, ...]], tuple[Node, ...]]
    run_library_call: Callable[[Any, tuple[Node, ...]], tuple[Node, ...] | None]
    flat_nonzero: Callable[[Node], Node]
    from_start: Callable[[Node, int], tuple[Node, int | None]]
    put: Callable[..., Node]
    repeated: Callable[[Node, Node, int], tuple[Node, tuple[int, int] | None]]
    resolve_partition: Callable[[Any], None]
    explain: Callable[[Sequence[Any]], tuple[str, ...]]
    settle: Callable[[Sequence[Any], bool], None]


def register_distributed_hooks(found: DistributedHooks) -> None:
    """Register the functions for distributed arrays."""
    _teams[:] = [found]


def distributed_hooks() -> DistributedHooks:
    """Return the functions for distributed arrays; at least one such array must exist."""
    return _teams[0]


def type_of(op: PTensorOp, *operands: PTensorType) -> PTensorType:
    """Infer the result type of an operation; cached for equal operations and operand types.

    Raises:
        ArrayTypeError: If the operation does not support the dtypes.
        ArrayValueError: If the shapes do not match.
        DeviceMismatchError: If the operands are on different devices.
        TeamMismatchError: If the operands belong to different teams.
    """
    if len(operands) > _MAX_CACHED_OPERANDS:  # such keys would take more memory than the types
        return _on_its_device(op, operands)
    key = (op, *operands)
    found = _types.recent.get(key)
    if found is None:
        found = _types.get(key, None) or _types.keep(key, _on_its_device(op, operands))
    return found


def _on_its_device(op: PTensorOp, operands: tuple[PTensorType, ...]) -> PTensorType:
    ptype = op.infer(*operands)
    if ptype.device in (None, CPU):
        return ptype
    requested = getattr(op, "dtype", None)
    return on_its_device(ptype, op.where, requested, {operand.dtype for operand in operands})


class ShardedNode(Node):
    """Value whose elements are distributed over the ranks of a team.

    A node of a team that is not a `ShardedNode` has all elements on every rank. The partition of
    element-wise operations is determined late, when their consumers are known.

    Attributes:
        made_of: Element-wise operation and its operands, until the partition is known.
        steps: Number of element-wise operations in `made_of`.
        ticket: Last message in flight on which the shard may depend, 0 for none.
        view: Array of which this is a view, and the start of the view; None for other arrays.
        handle: Identifier in messages to other processes under single-controller execution.
    """

    __slots__ = (
        "__weakref__", "_part", "_partition", "handle", "made_of", "steps", "ticket", "view",
    )

    def __init__(
        self, ptype: PTensorType, part: Node | None, partition: Partition | None, ticket: int = 0
    ) -> None:
        super().__init__(ptype, None, (), None, 0, 0)
        self._part = part
        self._partition = partition
        self.made_of: tuple[PTensorOp, tuple[ShardedNode, ...]] | None = None
        self.steps = 0
        self.ticket = ticket
        self.view: Any = None
        self.handle: tuple[int, int] | None = None

    def set_shard(self, part: Node, partition: Partition) -> None:
        """Set the shard and the partition."""
        self._part, self._partition = part, partition
        self.made_of, self.steps = None, 0

    @property
    def part(self) -> Node:
        """Shard of this process; its type has no team."""
        if self._part is None:
            distributed_hooks().resolve_partition(self)
        assert self._part is not None
        return self._part

    @property
    def partition(self) -> Partition:
        """Partition that gives the owner of each element."""
        if self._partition is None:
            distributed_hooks().resolve_partition(self)
        assert self._partition is not None
        return self._partition


def local_type(ptype: PTensorType, shape: Shape) -> PTensorType:
    """Return the type of a shard."""
    return PTensorType(shape, ptype.dtype, ptype.device)


def part_of(node: Node) -> Node:
    """Return the shard of a distributed node, once its messages have arrived, or the node."""
    return parts_of((node,))[0]


def parts_of(nodes: Sequence[Node], at_once: bool = False) -> Sequence[Node]:
    """Return the shards of several nodes, which wait for their messages together.

    Args:
        nodes: Nodes, distributed or not.
        at_once: If True, the elements are needed now and may be computed during the wait.
    """
    shared = [node for node in nodes if isinstance(node, ShardedNode)]
    if not shared:
        return nodes
    distributed_hooks().settle(shared, at_once)
    return [node.part if isinstance(node, ShardedNode) else node for node in nodes]


def replicated_as_local(node: Node) -> Node:
    """Return a replicated node of a team as a node of this process alone.

    Raises:
        ArrayTypeError: If the node is an argument of a function that is being recorded.
    """
    if node.data is None:
        raise ArrayTypeError(
            "jit: an argument is {type}, and the communication for it cannot be recorded; perform "
            "it outside the recorded function",
            kind="recording", type=node.type,
        )
    return materialized_node(node.data, local_type(node.type, node.type.shape))
