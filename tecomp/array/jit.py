"""Record the operations of a function once per signature and replay them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import update_wrapper
from typing import Any, ParamSpec, TypeVar

from tecomp.array.array_object import Array, from_node
from tecomp.array.graph.evaluate import MOST, DataDependentShapeError, compute, evaluate
from tecomp.array.graph.node import (
    HostCall,
    HostResult,
    Node,
    looking,
    materialized_node,
    record,
    tracing,
)
from tecomp.array.graph.pending import GraphSegment, PendingGraph, pending_graph_of, pieces_of
from tecomp.array.indexing.aliasing import outermost, replace_node
from tecomp.array.indexing.data_dependent import copy_row_major
from tecomp.array.indexing.setitem import NodeHolder, is_borrowed
from tecomp.caches import LRUCache
from tecomp.errors import ArrayTypeError, ArrayValueError
from tecomp.fork_gate import leaf_lock
from tecomp.ptensor.types import PTensorType

P = ParamSpec("P")
R = TypeVar("R")

_MAX_DEPTH = 100
"""Maximum nesting depth of lists, tuples and dicts around arrays."""


@dataclass(frozen=True, slots=True)
class _Slot:
    """Position of an array in a structure of lists, tuples and dicts."""

    position: int


@dataclass(frozen=True, slots=True)
class _Value:
    """Static argument. Equal numbers of other types or with another sign of zero are different.

    Attributes:
        value: Value of the argument.
        kind: Type of the value with the value itself, or its `repr` for floats and complex numbers.
    """

    value: Any = field(compare=False)
    kind: tuple[Any, ...]

    @staticmethod
    def of(value: Any) -> _Value:
        key = repr(value) if isinstance(value, float | complex) else value
        return _Value(value, (type(value), key))


Source = tuple[str, Any]
"""Origin of a node, as a pair of kind and position.

`computed`, `argument` and `captured` have the index of the node, `constant` has the node itself;
`argument object` and `captured object` denote the arrays.
"""


@dataclass(frozen=True, slots=True)
class _Recorded:
    """Operations of a function, recorded for one structure and types of its arguments.

    Attributes:
        types: Types of the results of the operations.
        segments: Operations, partitioned into pieces that are compiled.
        outer_arrays: Arrays outside the function that it reads or changes.
        leaves: Source of each leaf of the operations.
        results: Source of each array in the results.
        structure: Structure of the results.
        mutated_arrays: Arrays that the function changes in place, with the sources of their
            elements.
    """

    types: tuple[PTensorType, ...]
    segments: tuple[GraphSegment, ...]
    outer_arrays: tuple[Array, ...]
    leaves: tuple[Source, ...]
    results: tuple[Source, ...]
    structure: Any
    mutated_arrays: tuple[tuple[Source, Source], ...]


_NODE: Any = Array.__dict__["_node"]


class _Watch(threading.local):
    """Arrays that are used by the function that this thread records.

    Attributes:
        outer_arrays: Arrays from outside the function by `id`, with their previous nodes; None
            while no function is recorded.
        created: Arrays that the function created, by `id`.
    """

    outer_arrays: dict[int, tuple[Array, Node]] | None = None
    created: set[int]


_watch = _Watch()


class _WatchedNode:
    """Descriptor that replaces the slot `_node` of arrays while functions are recorded.

    A recorded function reads arrays from outside, such as closure variables, again in each call.
    The recorder therefore has to know the arrays, not only their nodes.
    """

    def __get__(self, array: Array, owner: object = None) -> Node:
        node: Node = _NODE.__get__(array)
        if _watch.outer_arrays is None or id(array) in _watch.created:
            return node
        if id(array) not in _watch.outer_arrays:
            node = _own_node(node)
            _NODE.__set__(array, node)
            _watch.outer_arrays[id(array)] = array, node
            tracing.outer_nodes.add(id(node))  # type: ignore[union-attr]
        return node

    def __set__(self, array: Array, node: Node) -> None:
        if _watch.outer_arrays is not None and id(array) not in _watch.outer_arrays:
            _watch.created.add(id(array))
        _NODE.__set__(array, node)


def _own_node(node: Node) -> Node:
    """Return a computed node with the elements of another node, shared with no other array."""
    if node.type.team is not None:
        return node
    depth, tracing.depth = tracing.depth, 0
    try:
        evaluate((node,))
    finally:
        tracing.depth = depth
    private = materialized_node(node.data, node.type)
    private.stored = node.stored
    return private


class _Recording:
    """Context that records the operations of a function in this thread."""

    lock = leaf_lock()
    count = 0

    def __enter__(self) -> None:
        with self.lock:
            _Recording.count += 1
            if _Recording.count == 1:
                type.__setattr__(Array, "_node", _WatchedNode())
        _watch.outer_arrays, _watch.created = {}, set()
        tracing.outer_nodes, tracing.created = set(), _watch.created
        tracing.__enter__()

    def __exit__(self, *_: object) -> None:
        tracing.__exit__()
        tracing.outer_nodes = tracing.created = frozenset()
        _watch.outer_arrays = None
        with self.lock:
            _Recording.count -= 1
            if not _Recording.count:
                type.__setattr__(Array, "_node", _NODE)


def jit(function: Callable[P, R]) -> Callable[P, R]:
    """Record the operations of a function once per signature and replay them.

    Later calls replay the recording without calling the function. Arguments that the function
    changes in place are changed by each call. Arrays from outside, such as closure variables, are
    read and changed by each call too; the first call determines which arrays these are, as well as
    all effects of other values. Results own their elements and share no memory with arguments,
    unless a result is an argument itself. A function is called every time if a shape in it depends
    on values, such as the shape of `x[mask]`.

    Args:
        function: Function whose arguments and results are arrays, also in lists, tuples and dicts.
            Other arguments are part of the signature and must be hashable.

    Returns:
        Function with the same parameters that replays the recording.

    Raises:
        ArrayTypeError: If `function` is not callable, if it reads the value of an element, which is
            not available while it is recorded, or if an argument is not hashable.
        ArrayValueError: If the function changes an array that shares elements with another
            argument.

    >>> import tecomp.array as xp
    >>> step = jit(lambda x, y: x * y + 1)
    >>> step(xp.arange(3, dtype="float32"), xp.ones(3, dtype="float32"))
    Array([1., 2., 3.], dtype=float32)
    """
    if not callable(function):
        raise ArrayTypeError(
            "jit: expected a function of arrays, got {function!r} ({type})",
            function=function, type=type(function).__name__,
        )
    known: LRUCache[Any, _Recorded | None] = LRUCache("array.jit")
    name = getattr(function, "__name__", "function")

    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        if tracing.depth:  # an outer function records these operations
            return function(*args, **kwargs)
        arrays: list[Array] = []
        structure = _extract_arrays((args, kwargs), arrays, f"jit {name}: arguments")
        nodes = [array._node for array in arrays]
        key = structure, tuple([node.type for node in nodes])
        try:
            recorded = known.get(key, _NEW)
        except TypeError as error:
            raise ArrayTypeError(
                "jit {name}: a non-array argument is not hashable ({reason}); pass arrays, "
                "numbers, strings, or tuples of these",
                name=name, reason=error,
            ) from error
        if recorded is _NEW:
            types = [node.type for node in nodes]
            recorded = known.keep(key, _record(function, name, structure, types))
        if not isinstance(recorded, _Recorded):
            return function(*args, **kwargs)
        if recorded.mutated_arrays:
            _check_apart(recorded, arrays, name)
        results: R = _run(recorded, arrays, nodes)
        return results

    return update_wrapper(run, function)


_NEW: Any = object()


def _record(
    function: Callable[..., Any], name: str, structure: Any, types: list[PTensorType]
) -> _Recorded | None:
    """Record the operations of a function; return None if it must be called every time."""
    nodes = [Node(ptype, None, (), None, 0, 0) for ptype in types]
    with _Recording():
        arguments = [from_node(node) for node in nodes]
        args, kwargs = _insert_arrays(structure, arguments)
        assert _watch.outer_arrays is not None
        captured = _watch.outer_arrays
        try:
            returned = function(*args, **kwargs)
        except DataDependentShapeError:
            return None
        finally:
            outside = list(captured.values())
            after = [_NODE.__get__(array) for array, _ in outside]
            for array, node in outside:
                _NODE.__set__(array, node)
    results: list[Array] = []
    outline = _extract_arrays(returned, results, f"jit {name}: results")
    sources = _Sources(arguments, nodes, outside)
    changed = [
        (("argument object", k), array._node)
        for k, (array, node) in enumerate(zip(arguments, nodes, strict=True))
        if array._node is not node
    ]
    mutated = [
        k for k, ((_, node), now) in enumerate(zip(outside, after, strict=True)) if now is not node
    ]
    bases = {id(outside[k][0]) for k in mutated}
    for k in mutated:  # a view changes with the array that owns its elements
        base = outermost(outside[k][0])
        if base is outside[k][0] or id(base) not in bases:
            changed.append((("captured object", k), after[k]))
    return _recorded(results, outline, sources, changed)


class _Sources:
    """Sources of nodes and arrays of a recorded function."""

    def __init__(
        self, arguments: list[Array], nodes: list[Node], outside: list[tuple[Array, Node]]
    ) -> None:
        self.outside = tuple([array for array, _ in outside])
        self._arrays = {id(array): ("argument object", k) for k, array in enumerate(arguments)}
        self._arrays |= {
            id(array): ("captured object", k) for k, (array, _) in enumerate(outside)}
        self._nodes: dict[Node, Source] = {node: ("argument", k) for k, node in enumerate(nodes)}
        self._nodes |= {node: ("captured", k) for k, (_, node) in enumerate(outside)}

    def of_array(self, array: Array) -> Source:
        return self._arrays.get(id(array)) or self.of_node(array._node)

    def of_node(self, node: Node) -> Source:
        found = self._nodes.get(node)
        if found is None:
            found = self._nodes[node] = "constant", _constant(node)
        return found

    def know(self, nodes: Sequence[Node]) -> None:
        """Register computed nodes with their positions."""
        self._nodes |= {node: ("computed", k) for k, node in enumerate(nodes)}


def _constant(node: Node) -> Node:
    """Return a node with a snapshot of the current elements."""
    if node.data is not None and node.type.team is None and is_borrowed(node.data):
        return materialized_node(copy_row_major(node.data), node.type)
    return node


def _recorded(
    results: list[Array], outline: Any, sources: _Sources,
    changed: list[tuple[Source, Node]],
) -> _Recorded:
    required = [array._node for array in results] + [node for _, node in changed]
    with looking:
        work = pending_graph_of([node for node in required if node.op is not None])
    sources.know(work.nodes)
    numbers = {node: k for k, node in enumerate(work.nodes)}
    outputs = tuple(sorted({numbers[node] for node in required if node in numbers}))
    work = PendingGraph(work.leaves, work.nodes, work.steps, outputs)
    return _Recorded(
        tuple([node.type for node in work.nodes]),
        pieces_of(work, MOST, lambda op: isinstance(op, HostResult)),
        sources.outside,
        tuple([sources.of_node(node) for node in work.leaves]),
        tuple([sources.of_array(array) for array in results]),
        outline,
        tuple([(target, sources.of_node(node)) for target, node in changed]),
    )


def _check_apart(recorded: _Recorded, arrays: list[Array], name: str) -> None:
    """Reject arguments that share elements with arrays that the function changes.

    Raises:
        ArrayValueError: If there are such arguments.
    """
    bases = [outermost(array) for array in arrays]
    for (kind, k), _ in recorded.mutated_arrays:
        if kind == "argument object":
            base = bases[k]
            others = [*bases[:k], *bases[k + 1 :], *map(outermost, recorded.outer_arrays)]
        else:
            base, others = outermost(recorded.outer_arrays[k]), bases
        if any([other is base for other in others]):
            raise ArrayValueError(
                "jit {name}: the function modifies an array in place that shares elements with an "
                "argument; pass a copy, xp.asarray(x, copy=True)",
                name=name,
            )


def _run(recorded: _Recorded, arrays: list[Array], arguments: list[Node]) -> Any:
    captured = [array._node for array in recorded.outer_arrays]
    found: dict[str, Any] = {
        "argument": arguments, "captured": captured, "argument object": arrays,
        "captured object": recorded.outer_arrays,
    }
    leaves = [where if kind == "constant" else found[kind][where]
              for kind, where in recorded.leaves]
    found["computed"] = _replay(recorded, leaves)

    def node_at(source: Source) -> Node:
        kind, where = source
        node: Node = where if kind == "constant" else found[kind][where]
        return node

    results = [
        found[kind][where] if kind.endswith("object") else from_node(node_at((kind, where)))
        for kind, where in recorded.results
    ]
    for (kind, where), source in recorded.mutated_arrays:
        array, node = found[kind][where], node_at(source)
        # retry after a concurrent write
        while not replace_node(array, NodeHolder(array._node), node):
            pass
    return _insert_arrays(recorded.structure, results)


def _replay(recorded: _Recorded, leaves: list[Node]) -> dict[int, Node]:
    """Run the recorded operations and return the remaining nodes by position."""
    is_divided = any([ptype.team is not None for ptype in recorded.types])
    if not is_divided:
        evaluate(leaves)
    nodes = {-1 - k: leaf for k, leaf in enumerate(leaves)}
    calls: dict[HostCall, tuple[Node, ...]] = {}
    for piece in recorded.segments:
        if is_divided:
            _record_again(piece, nodes, calls)
            continue
        op, indices = piece.steps[0]
        if isinstance(op, HostResult):
            operands = [nodes[piece.leaves[-1 - index]] for index in indices]
            nodes[piece.nodes[0]] = _host_call_result(op, operands, calls)
        else:
            for index in piece.nodes:
                nodes[index] = Node(recorded.types[index], None, (), None, 0, 0)
            compute(PendingGraph(
                [nodes[index] for index in piece.leaves], [nodes[index] for index in piece.nodes],
                piece.steps, piece.outputs,
            ))
        for index in piece.dead_values:  # release the memory
            del nodes[index]
    return nodes


def _host_call_result(
    op: HostResult, operands: list[Node], calls: dict[HostCall, tuple[Node, ...]]
) -> Node:
    """Return one result of a host call; the first request runs the call."""
    if op.call not in calls:
        calls[op.call] = op.call.run(*operands)
    result = calls[op.call][op.index]
    if result.type.team is None:
        evaluate((result,))
    return result


def _record_again(
    piece: GraphSegment, nodes: dict[int, Node], calls: dict[HostCall, tuple[Node, ...]]
) -> None:
    """Record the operations on distributed arrays again on all ranks, with their current shards."""
    results: list[Node] = []
    for op, indices in piece.steps:
        operands = [results[k] if k >= 0 else nodes[piece.leaves[-1 - k]] for k in indices]
        results.append(
            _host_call_result(op, operands, calls) if isinstance(op, HostResult)
            else record(op, *operands))
    nodes.update(zip(piece.nodes, results, strict=True))


def _extract_arrays(
    value: Any, arrays: list[Array], where: str, enclosing: tuple[int, ...] = ()
) -> Any:
    """Replace arrays in a structure by slots and add each array once to `arrays`.

    Raises:
        ArrayTypeError: If a container holds itself, or the nesting is too deep.
    """
    if id(value) in enclosing or len(enclosing) > _MAX_DEPTH:
        raise ArrayTypeError(
            "{where} contain a list, tuple or dict that contains itself or is nested more than "
            "{deepest} levels deep; reduce the nesting",
            where=where, deepest=_MAX_DEPTH,
        )
    if isinstance(value, Array):
        for k, array in enumerate(arrays):
            if array is value:
                return _Slot(k)
        arrays.append(value)
        return _Slot(len(arrays) - 1)

    def inside(item: Any) -> Any:
        return _extract_arrays(item, arrays, where, (*enclosing, id(value)))

    if isinstance(value, dict):
        items = value.items()
        return "dict", tuple([(_Value.of(key), inside(item)) for key, item in items])
    if isinstance(value, list | tuple):
        kind = list if isinstance(value, list) else type(value) if _is_named(value) else tuple
        return kind, tuple([inside(item) for item in value])
    return _Value.of(value)


def _is_named(value: object) -> bool:
    return isinstance(value, tuple) and hasattr(value, "_fields")


def _insert_arrays(structure: Any, arrays: Sequence[Array]) -> Any:
    if isinstance(structure, _Slot):
        return arrays[structure.position]
    if isinstance(structure, _Value):
        return structure.value
    kind, inside = structure
    if kind == "dict":
        return {key.value: _insert_arrays(item, arrays) for key, item in inside}
    items = [_insert_arrays(item, arrays) for item in inside]
    return items if kind is list else tuple(items) if kind is tuple else kind(*items)
