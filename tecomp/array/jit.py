"""Functions of arrays that are recorded once and run as they were recorded."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import update_wrapper
from typing import Any, ParamSpec, TypeVar

from tecomp.array.array_object import Array, made
from tecomp.array.graph.evaluate import MOST, compute, evaluate
from tecomp.array.graph.node import Node, looking, record, tracing
from tecomp.array.graph.pending import Pending, Piece, pending, pieces_of
from tecomp.array.lru_cache import Recent
from tecomp.errors import ArrayTypeError
from tecomp.ptensor.types import PTensorType

P = ParamSpec("P")
R = TypeVar("R")

_MOST = 256
"""Shapes and types for which one function is kept as it was recorded."""
_DEEPEST = 100
"""Lists, tuples and dicts that arrays may be in."""


@dataclass(frozen=True, slots=True)
class _Slot:
    """Where an array is, in a structure of lists, tuples and dicts."""

    position: int


@dataclass(frozen=True, slots=True)
class _Value:
    """What is no array; equal numbers of other types, or with another sign of zero, are others.

    Attributes:
        value: what it is.
        kind: its type, and how it is written if that says more than what it is equal to.
    """

    value: Any = field(compare=False)
    kind: tuple[Any, ...]

    @staticmethod
    def of(value: Any) -> _Value:
        written = repr(value) if isinstance(value, float | complex) else value
        return _Value(value, (type(value), written))


@dataclass(frozen=True, slots=True)
class _Recorded:
    """What a function came to.

    Attributes:
        types: of the results of its operations.
        pieces: the operations, in pieces that are compiled.
        places: of each leaf, the position of the argument that it is, or the array from elsewhere.
        results: what the function gives: what is computed, by its place; an argument, by its
            position; or an array from elsewhere.
        structure: of these.
    """

    types: tuple[PTensorType, ...]
    pieces: tuple[Piece, ...]
    places: tuple[int | Node, ...]
    results: tuple[tuple[str, Any], ...]
    structure: Any


def jit(function: Callable[P, R]) -> Callable[P, R]:
    """A function of arrays whose operations are recorded once for each shape and type.

    Calls after the first run what was recorded then, without calling the function. What depends on
    anything but its arguments is as it was in the first call.

    Args:
        function: takes and gives arrays, also in lists, tuples and dicts; other arguments are part
            of what it is recorded for, and have to have a hash.

    Returns:
        The function that does this.

    Raises:
        ArrayTypeError: there is no function; it asks for the value of an element, which is not
            there while it is recorded; or an argument has no hash.

    >>> import tecomp.array as xp
    >>> step = jit(lambda x, y: x * y + 1)
    >>> step(xp.arange(3, dtype="float32"), xp.ones(3, dtype="float32"))
    Array([1., 2., 3.], dtype=float32)
    """
    if not callable(function):
        raise ArrayTypeError(
            f"jit: {function!r} is {type(function).__name__}; give a function of arrays"
        )
    known: Recent[Any, _Recorded] = Recent(_MOST)
    name = getattr(function, "__name__", "function")

    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        nodes: list[Node] = []
        structure = _taken((args, kwargs), nodes, f"jit {name}: arguments")
        if tracing.depth:  # a part of what is recorded
            again: tuple[Any, Any] = _given(structure, [made(node) for node in nodes])
            return function(*again[0], **again[1])
        key = structure, tuple([node.type for node in nodes])
        try:
            recorded = known.get(key, None)
        except TypeError as error:
            raise ArrayTypeError(
                f"jit {name}: an argument that is no array has no hash ({error}); give arrays, "
                "numbers, texts, or tuples of them"
            ) from error
        if recorded is None:
            types = [node.type for node in nodes]
            recorded = known.keep(key, _record(function, name, structure, types))
        results: R = _run(recorded, nodes)
        return results

    return update_wrapper(run, function)


def _record(
    function: Callable[..., Any], name: str, structure: Any, types: list[PTensorType]
) -> _Recorded:
    arguments = [Node(type, None, (), None, 0, 0) for type in types]
    args, kwargs = _given(structure, [made(node) for node in arguments])
    with tracing:
        given = function(*args, **kwargs)
    results: list[Node] = []
    outline = _taken(given, results, f"jit {name}: results")
    with looking:
        work = pending([node for node in results if node.op is not None])
    order = {node: k for k, node in enumerate(arguments)}
    places = tuple([order.get(leaf, leaf) for leaf in work.leaves])
    numbers = {node: k for k, node in enumerate(work.nodes)}
    wanted = tuple(sorted({numbers[node] for node in results if node in numbers}))
    work = Pending(work.leaves, work.nodes, work.steps, wanted)
    sources = tuple([_source(node, numbers, order) for node in results])
    types_of = tuple([node.type for node in work.nodes])
    return _Recorded(types_of, pieces_of(work, MOST), places, sources, outline)


def _source(node: Node, computed: dict[Node, int], order: dict[Node, int]) -> tuple[str, Any]:
    if node in computed:
        return "computed", computed[node]
    return ("argument", order[node]) if node in order else ("other", node)


def _run(recorded: _Recorded, arguments: list[Node]) -> Any:
    leaves = [arguments[p] if isinstance(p, int) else p for p in recorded.places]
    is_divided = any([type.team is not None for type in recorded.types])
    if not is_divided:
        evaluate(leaves)
    nodes = {-1 - k: leaf for k, leaf in enumerate(leaves)}
    for piece in recorded.pieces:
        if is_divided:
            _record_again(piece, nodes)
            continue
        for place in piece.nodes:
            nodes[place] = Node(recorded.types[place], None, (), None, 0, 0)
        compute(Pending(
            [nodes[place] for place in piece.leaves], [nodes[place] for place in piece.nodes],
            piece.steps, piece.outputs,
        ))
        for place in piece.done:  # its memory is let go
            del nodes[place]
    found: dict[str, Any] = {"computed": nodes, "argument": arguments}
    results = [
        made(where if kind == "other" else found[kind][where]) for kind, where in recorded.results
    ]
    return _given(recorded.structure, results)


def _record_again(piece: Piece, nodes: dict[int, Node]) -> None:
    """Operations on arrays of a team, done by all of its processes with what they have."""
    made: list[Node] = []
    for op, places in piece.steps:
        operands = [made[k] if k >= 0 else nodes[piece.leaves[-1 - k]] for k in places]
        made.append(record(op, *operands))
    nodes.update(zip(piece.nodes, made, strict=True))


def _taken(value: Any, nodes: list[Node], where: str, around: tuple[int, ...] = ()) -> Any:
    """A structure with slots in place of its arrays, which are added to `nodes`.

    Raises:
        ArrayTypeError: one holds itself, or they are in too many others.
    """
    if id(value) in around or len(around) > _DEEPEST:
        raise ArrayTypeError(
            f"{where} are lists, tuples or dicts of which one holds itself, or is in more than "
            f"{_DEEPEST} others; give the arrays in fewer of them"
        )
    if isinstance(value, Array):
        nodes.append(value._node)
        return _Slot(len(nodes) - 1)

    def inside(item: Any) -> Any:
        return _taken(item, nodes, where, (*around, id(value)))

    if isinstance(value, dict):
        items = value.items()
        return "dict", tuple([(_Value.of(key), inside(item)) for key, item in items])
    if isinstance(value, list | tuple):
        kind = "list" if isinstance(value, list) else "tuple"
        return kind, tuple([inside(item) for item in value])
    return _Value.of(value)


def _given(structure: Any, arrays: list[Array]) -> Any:
    if isinstance(structure, _Slot):
        return arrays[structure.position]
    if isinstance(structure, _Value):
        return structure.value
    kind, inside = structure
    if kind == "dict":
        return {key.value: _given(item, arrays) for key, item in inside}
    items = [_given(item, arrays) for item in inside]
    return items if kind == "list" else tuple(items)
