"""Graph nodes, including nodes of distributed arrays."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import count
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from tecomp.errors import ArrayMemoryError, ArrayTypeError
from tecomp.fork_gate import leaf_lock
from tecomp.ptensor.devices import CPU, on_its_device
from tecomp.ptensor.operation import Operation
from tecomp.ptensor.types import PTensorType, Shape, numpy_dtype

if TYPE_CHECKING:
    from tecomp.dist.partition.partition import Partition
    from tecomp.layout.core.layout import Layout

Buffer = np.ndarray[Any, Any]

_types: dict[Any, PTensorType] = {}
_teams: list[Teams] = []
_serial = count()
_MANY = 16
"""Operands of operations whose types are inferred each time."""

looking = leaf_lock()
"""Held while a thread looks at the graph or changes nodes, which threads share."""


class Placed(Protocol):
    """Elements in the memory of a device."""

    @property
    def type(self) -> PTensorType:
        """Of the array."""

    @property
    def layout(self) -> Layout:
        """The one that programs know them in."""

    @property
    def program(self) -> Any:
        """What computed them; None if they came from the host."""

    def elements(self) -> Buffer:
        """The elements in the memory of the host."""


class Node:
    """A value: an operation on other values until somebody asks, elements from then on.

    Attributes:
        type: its shape, element type and place.
        op: what computes it; None once it is computed.
        operands: what that is computed from.
        data: the elements, in memory; None until they are computed.
        since: when the first of the operations was recorded that are to be computed for it.
        pending: how many were recorded from then on.
        stored: the elements on a device with memory of its own, once they are there.
        home: the layout in which elements of the host are brought there; the device's own if None.
    """

    __slots__ = ("data", "op", "operands", "pending", "since", "stored", "type")
    home: Layout | None = None

    def __init__(
        self,
        type: PTensorType,
        op: Operation | None,
        operands: tuple[Node, ...],
        data: Buffer | None,
        since: int,
        pending: int,
    ) -> None:
        self.type = type
        self.op = op
        self.operands = operands
        self.data = data
        self.since = since
        self.pending = pending
        self.stored: Placed | None = None

    def computed(self, data: Buffer | None) -> None:
        """Keep the elements, and let go of what they were computed from."""
        with looking:
            self.data = data
            self.op = None
            self.operands = ()
            self.pending = 0

    def placed(self, stored: Placed) -> None:
        """The same for elements on a device with memory of its own."""
        self.stored = stored  # first: there are always elements, for threads that do not look
        self.computed(None)

    @property
    def is_there(self) -> bool:
        """Whether there are elements."""
        return self.data is not None or self.stored is not None


class Tracing(threading.local):
    """Whether a function is being recorded, whose arguments have no elements.

    Attributes:
        depth: the number of functions that are being recorded, one in another.
        captured: the nodes, by `id`, of arrays from outside of the function, which have other
            elements when it runs.
    """

    depth = 0
    captured: frozenset[int] | set[int] = frozenset()

    def __enter__(self) -> None:
        self.depth += 1

    def __exit__(self, *_: object) -> None:
        self.depth -= 1


tracing = Tracing()
"""That of this thread."""


def empty(type: PTensorType) -> Buffer:
    """Memory for the elements of a value; what is in it is not defined.

    Raises:
        ArrayMemoryError: there is none.
    """
    return memory(type.shape, numpy_dtype(type.dtype))


def memory(shape: Shape, dtype: np.dtype[Any]) -> Buffer:
    """Memory for elements; what is in it is not defined.

    Raises:
        ArrayMemoryError: there is none.
    """
    try:
        return np.empty(shape, dtype)
    except MemoryError:
        raise no_memory(shape, dtype) from None


def no_memory(shape: Shape, dtype: np.dtype[Any]) -> ArrayMemoryError:
    """The error for elements that there is no memory for."""
    return ArrayMemoryError(
        f"xp: elements of shape {shape} and type {dtype} take {prod(shape) * dtype.itemsize} "
        "bytes, which the system does not give; compute them in parts"
    )


class HomeLeaf(Node):
    """A value on the host that is brought to a device in a layout of its own."""

    __slots__ = ("home",)


def leaf_like(node: Node, data: Buffer) -> Node:
    """Return a value with other elements, which keeps the layout that a node has on its device."""
    home = node.home if node.stored is None else node.stored.layout
    if home is None:
        return leaf(data, node.type)
    made = HomeLeaf(node.type, None, (), data, 0, 0)
    made.home = home
    return made


def leaf(data: Buffer | None, type: PTensorType) -> Node:
    """A value whose elements are there."""
    return Node(type, None, (), data, 0, 0)


@dataclass(frozen=True, slots=True, eq=False)
class LibraryCall:
    """A call of a library function that was made: what `explain` shows of its results.

    Attributes:
        op: Operation.
        operands: the types of its operands, which themselves may be gone.
        results: the types of its results before they were computed.
    """

    op: Operation
    operands: tuple[PTensorType, ...]
    results: tuple[PTensorType, ...]


class CallResult(Node):
    """A value that a library function computed.

    Attributes:
        call: the call.
        number: which of its results the value is.
    """

    __slots__ = ("call", "number")

    def __init__(self, type: PTensorType, data: Buffer, call: LibraryCall, number: int) -> None:
        super().__init__(type, None, (), data, 0, 0)
        self.call = call
        self.number = number

    @property
    def declared(self) -> PTensorType:
        """The type that follows from those of the operands: extents may not be known."""
        return self.call.results[self.number]


def record(op: Operation, *operands: Node) -> Node:
    """The result of an operation, not computed yet.

    Raises:
        ArrayTypeError: the operation does not take such elements.
        ArrayValueError: shapes do not fit.
        DeviceMismatchError: If the operands are on different devices.
        TeamMismatchError: If the operands belong to different teams.
    """
    type = type_of(op, *[operand.type for operand in operands])
    if type.team is not None and not tracing.depth:
        return teams().record(op, type, operands)
    now = since = next(_serial)
    for operand in operands:
        if operand.op is not None and operand.since < since:
            since = operand.since
    return Node(type, op, operands, None, since, now - since + 1)


class HostCall:
    """A function of nodes that runs between kernels each time a recorded function is called.

    Attributes:
        run: gives nodes of the recorded types.
    """

    __slots__ = ("run",)

    def __init__(self, run: Callable[..., tuple[Node, ...]]) -> None:
        self.run = run


@dataclass(frozen=True)
class HostResult(Operation):
    """A result of a host call, as an operation of a recorded function.

    Attributes:
        call: the call, of which each result is an operation of its own.
        index: the number of the result.
    """

    name = "host_call"
    takes = (0, None)

    call: HostCall
    index: int


def record_call(
    run: Callable[..., tuple[Node, ...]], types: Sequence[PTensorType], *operands: Node
) -> tuple[Node, ...]:
    """Record a function of nodes that runs on the host, while a function is recorded.

    Args:
        run: the function of the operands.
        types: the types of its results.
        operands: the nodes that it is applied to.
    """
    call, now = HostCall(run), next(_serial)
    since = min([now, *[operand.since for operand in operands if operand.op is not None]])
    return tuple([
        Node(type, HostResult(call, k), operands, None, since, now - since + 1)
        for k, type in enumerate(types)
    ])


class Teams(NamedTuple):
    """What is done for arrays of teams; who makes the first of them says it.

    Attributes:
        record: the result of an operation.
        whole: all elements of an array, for what the text says.
        like_operands: results of which every process has all elements, divided if operands were.
        called: the results of an operation of a library on parts; None if it needs whole arrays.
        places: where a mask is true, as a row of numbers.
        from_start: indices counted from the first element of an axis, and one that is outside.
        put: an array with other elements in place of those at indices.
        repeated: elements along an axis, each as often as a row says, and what that has below 0.
        place: finds who has which elements of an array.
        explain: says what is sent before the parts of arrays are computed.
        settle: waits for the messages that the parts of arrays are computed of, and if they are
            wanted at once, computes them meanwhile.
    """

    record: Callable[[Operation, PTensorType, tuple[Node, ...]], Node]
    whole: Callable[[Node, str], Buffer]
    like_operands: Callable[[tuple[Node, ...], tuple[Node, ...]], tuple[Node, ...]]
    called: Callable[[Any, tuple[Node, ...]], tuple[Node, ...] | None]
    places: Callable[[Node], Node]
    from_start: Callable[[Node, int], tuple[Node, int | None]]
    put: Callable[..., Node]
    repeated: Callable[[Node, Node, int], tuple[Node, tuple[int, int] | None]]
    place: Callable[[Any], None]
    explain: Callable[[Sequence[Any]], tuple[str, ...]]
    settle: Callable[[Sequence[Any], bool], None]


def serve(found: Teams) -> None:
    """Say what is done for arrays of teams."""
    _teams[:] = [found]


def teams() -> Teams:
    """What is done for arrays of teams, of which there is one at least."""
    return _teams[0]


def type_of(op: Operation, *operands: PTensorType) -> PTensorType:
    """The type of an operation's result, found once for equal operations.

    Raises:
        ArrayTypeError: the operation does not take such elements.
        ArrayValueError: shapes do not fit.
        DeviceMismatchError: If the operands are on different devices.
        TeamMismatchError: If the operands belong to different teams.
    """
    if len(operands) > _MANY:  # thousands of such keys would take more memory than the types
        return _on_its_device(op, operands)
    key = (op, *operands)
    found = _types.get(key)
    if found is None:
        if len(_types) > 20_000:
            _types.clear()
        found = _types[key] = _on_its_device(op, operands)
    return found


def _on_its_device(op: Operation, operands: tuple[PTensorType, ...]) -> PTensorType:
    type = op.infer(*operands)
    if type.device in (None, CPU):
        return type
    asked = getattr(op, "dtype", None)
    return on_its_device(type, op.where, asked, {operand.dtype for operand in operands})


class Shared(Node):
    """A value whose elements the processes of a team have.

    A node of a team that is none has all of its elements, on every process. Of elementwise
    operations it is found late who has which elements, when it is known what reads them.

    Attributes:
        made_of: the elementwise operation and its operands, while nobody has elements yet.
        steps: how many such operations there are in it.
        ticket: the last message on its way that the part may wait for, 0 for none.
        view: what it is a part of, and where that begins; None if it is of no other array.
        handle: what names it in messages to other processes, if one process runs the script.
    """

    __slots__ = (
        "__weakref__", "_part", "_partition", "handle", "made_of", "steps", "ticket", "view",
    )

    def __init__(
        self, type: PTensorType, part: Node | None, partition: Partition | None, ticket: int = 0
    ) -> None:
        super().__init__(type, None, (), None, 0, 0)
        self._part = part
        self._partition = partition
        self.made_of: tuple[Operation, tuple[Shared, ...]] | None = None
        self.steps = 0
        self.ticket = ticket
        self.view: Any = None
        self.handle: tuple[int, int] | None = None

    def found(self, part: Node, partition: Partition) -> None:
        """Say who has which elements."""
        self._part, self._partition = part, partition
        self.made_of, self.steps = None, 0

    @property
    def part(self) -> Node:
        """What this process has; its type has no team."""
        if self._part is None:
            teams().place(self)
        assert self._part is not None
        return self._part

    @property
    def partition(self) -> Partition:
        """Which elements that are, and which others have."""
        if self._partition is None:
            teams().place(self)
        assert self._partition is not None
        return self._partition


def local_type(type: PTensorType, shape: Shape) -> PTensorType:
    """The type of a part of an array."""
    return PTensorType(shape, type.dtype, type.device)


def part_of(node: Node) -> Node:
    """What this process computes for a node: its part, with what it waits for, or the node."""
    return parts_of((node,))[0]


def parts_of(nodes: Sequence[Node], at_once: bool = False) -> Sequence[Node]:
    """The same for several nodes, which wait together.

    Args:
        nodes: the nodes.
        at_once: whether their elements are wanted, so that they may be computed while they wait.
    """
    shared = [node for node in nodes if isinstance(node, Shared)]
    if not shared:
        return nodes
    teams().settle(shared, at_once)
    return [node.part if isinstance(node, Shared) else node for node in nodes]


def alone(node: Node) -> Node:
    """A node of a team that has all elements, as one of this process.

    Raises:
        ArrayTypeError: it is an argument of a function that is recorded, and has no elements.
    """
    if node.data is None:
        raise ArrayTypeError(
            f"jit: an argument is {node.type}, and what processes send each other for this is not "
            "recorded; do it outside of the function",
            kind="recording",
        )
    return leaf(node.data, local_type(node.type, node.type.shape))
