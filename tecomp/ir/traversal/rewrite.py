"""Traversal and rewriting of IR trees without recursion."""

from __future__ import annotations

from collections.abc import Callable, Generator, Hashable, Iterator, Mapping, Sequence
from dataclasses import fields
from operator import attrgetter, is_
from typing import Any, TypeAlias, TypeVar

from tecomp.ir.nodes import graph_utils
from tecomp.ir.nodes.expr import Binary, BinOp, Broadcast, Expr, Var, cast
from tecomp.ir.nodes.graph_utils import Parts
from tecomp.ir.nodes.stmt import PrimFunc, Range, Stmt

N = TypeVar("N")
T = TypeVar("T")
V = TypeVar("V", bound=Var)

_INNER = (Expr, Stmt, Range)

# Annotations of fields that hold no node, whatever the value.
_PLAIN = frozenset((
    "BinOp", "Buffer", "CmpOp", "DType", "ForKind", "Location | None", "Scalar", "Tensor", "bool",
    "int", "str", "tuple[int, ...]", "tuple[tuple[int, int, int], ...]",
))
# Annotations of fields that hold one node, and of those that hold a tuple of them.
_ONE = frozenset(("Expr", "Stmt"))
_MANY = frozenset(("tuple[Expr, ...]", "tuple[Range, ...]", "tuple[Stmt, ...]"))


class _Holds(dict[type, int]):
    """What a value of a type is in the field of a node: 1 a node, 2 a tuple, 0 neither."""

    def __missing__(self, kind: type) -> int:
        found = 1 if issubclass(kind, _INNER) else 2 if kind is tuple else 0
        self[kind] = found
        return found


class _Shapes(dict[type, tuple[tuple[str, ...], tuple[int, ...]]]):
    """For a kind of node: the fields that it is constructed from, and which may hold children.

    A field that binds variables holds none: what is bound there is not used there.
    """

    def __missing__(self, kind: type) -> tuple[tuple[str, ...], tuple[int, ...]]:
        binds = getattr(kind, "binds", ())
        made_from: Any = kind
        made = [f for f in fields(made_from) if f.init]
        inner = (k for k, f in enumerate(made) if f.name not in binds and f.type not in _PLAIN)
        self[kind] = found = (tuple(f.name for f in made), tuple(inner))
        return found


class _Readers(dict[type, Callable[[Any], Sequence[Any]]]):
    """For a kind of node: the function that gives its children."""

    def __missing__(self, kind: type) -> Callable[[Any], Sequence[Any]]:
        names, inner = _SHAPES[kind]
        known: Any = kind
        types = {f.name: f.type for f in fields(known)}
        inside = [names[k] for k in inner]
        read: Callable[[Any], Sequence[Any]] = _by_value(inside)
        if all(types[name] in _ONE for name in inside):
            read = attrgetter(*inside) if len(inside) > 1 else _alone(*inside)
        elif len(inside) == 1 and types[inside[0]] in _MANY:
            read = attrgetter(inside[0])
        self[kind] = read
        return read


def _alone(name: str = "") -> Callable[[Any], Sequence[Any]]:
    if not name:
        return lambda _: ()
    get = attrgetter(name)
    return lambda node: (get(node),)


def _by_value(names: Sequence[str]) -> Callable[[Any], Sequence[Any]]:
    """Children in fields that may hold something else, too."""

    def read(node: Any) -> Sequence[Any]:
        found: list[Any] = []
        for name in names:
            value = getattr(node, name)
            holds = _HOLDS[type(value)]
            if holds == 1:
                found.append(value)
            elif holds:
                found += [item for item in value if _HOLDS[type(item)] == 1]
        return found

    return read


# Traversals are most of what lowering does: what is known of a class is looked up once.
_HOLDS = _Holds()
_SHAPES = _Shapes()
_READERS = _Readers()


def children(node: Any) -> Sequence[Any]:
    """The expressions and statements directly inside `node`, in field order.

    Buffers are not entered: extents of a shape are not part of what a statement computes.
    """
    return _READERS[type(node)](node)


def statements_in(node: Any) -> Sequence[Any]:
    """The statements directly inside `node`; expressions are not entered."""
    return [child for child in children(node) if isinstance(child, Stmt)]


def rebuild(node: N, f: Callable[[Any], Any]) -> N:
    """`node` with `f` applied to each child; the same object when nothing changed."""
    names, inner = _SHAPES[type(node)]
    changed: dict[int, Any] = {}
    for k in inner:
        old = getattr(node, names[k])
        holds = _HOLDS[type(old)]
        if holds == 1:
            new = f(old)
            if new is not old:
                changed[k] = new
        elif holds:
            items = [f(item) if _HOLDS[type(item)] == 1 else item for item in old]
            if not all(map(is_, old, items)):
                changed[k] = tuple(items)
    if not changed:
        return node
    kind: Any = type(node)
    made: N = kind(*[
        changed[k] if k in changed else getattr(node, name) for k, name in enumerate(names)
    ])
    return made


def walk(
    *roots: Any, parts: Parts = children, key: Callable[[Any], Hashable] = id
) -> Iterator[Any]:
    """Every node in `roots` once, outer before inner, in the order of the text.

    A part that is used twice comes where it is used first. `parts` says what is inside a node, and
    `key` what tells nodes apart.

    >>> i = Var("i")
    >>> double = i + i
    >>> sum(1 for _ in walk(double * double))
    3
    """
    return graph_utils.walk(*roots, parts=parts, key=key)


def post_order(
    *roots: Any, parts: Parts = children, key: Callable[[Any], Hashable] = id
) -> Iterator[Any]:
    """Every node in `roots` once, inner before outer, in the order of the text.

    >>> i = Var("i")
    >>> list(post_order(i * 2))
    [i, 2, i * 2]
    """
    return graph_utils.post_order(*roots, parts=parts, key=key)


def operands_of(op: BinOp, root: Expr, most: int | None = None) -> list[Expr]:
    """`a op b op c` as a, b, c, each once; with `most`, the ends of long chains stay together.

    >>> i, j = Var("i"), Var("j")
    >>> operands_of(BinOp.ADD, i + j * 2 + 1)
    [i, j * 2, 1]
    """
    opened: set[int] = set()

    def parts(node: Expr) -> Sequence[Expr]:
        if not isinstance(node, Binary) or node.op is not op:
            return ()
        if most is not None and len(opened) >= most - 1:
            return ()
        opened.add(id(node))
        return node.a, node.b

    nodes = list(walk(root, parts=parts))
    return [node for node in nodes if id(node) not in opened]


def conjuncts(condition: Expr) -> list[Expr]:
    """`a and b and c` as a, b, c, each once."""
    return operands_of(BinOp.AND, condition)


def fold(
    root: Any, combine: Callable[[Any, list[T]], T], parts: Parts = children
) -> T:
    """What `combine(node, results of its parts)` gives for `root`; asked once for each node.

    >>> i = Var("i")
    >>> fold(i * 2 + i, lambda node, depths: 1 + max(depths, default=0))
    3
    """
    return graph_utils.fold(root, combine, parts)


def bottom_up(root: N, rule: Callable[[Any], Any], parts: Parts = children) -> N:
    """Apply `rule` once to every node, children first; `None` leaves a node as it is.

    `parts` says which children of a node are visited: all, or none.
    """
    done: dict[int, Any] = {}
    for node in graph_utils.post_order(root, parts=parts):
        rebuilt = node
        for child in parts(node):
            if done[id(child)] is not child:
                rebuilt = rebuild(node, lambda child: done[id(child)])
                break
        result = rule(rebuilt)
        done[id(node)] = rebuilt if result is None else result
    final: N = done[id(root)]
    return final


def top_down(root: N, rule: Callable[[Any], Any]) -> N:
    """Apply `rule` once to every node, outer before inner; `None` goes on into its children.

    Where `rule` gives a node, that stands as it is and nothing below it is visited.
    """
    given: dict[int, Any] = {}

    def parts(node: Any) -> Sequence[Any]:
        if id(node) not in given:
            given[id(node)] = rule(node)
        return children(node) if given[id(node)] is None else ()

    done: dict[int, Any] = {}
    for node in graph_utils.post_order(root, parts=parts):
        result = given[id(node)]
        done[id(node)] = rebuild(node, lambda child: done[id(child)]) if result is None else result
    final: N = done[id(root)]
    return final


def substitute(root: N, values: Mapping[V, Expr]) -> N:
    """`root` with variables replaced; a value of another type is converted to the variable's.

    Binding places (a loop's own variable) are left alone.
    """
    if not values:
        return root
    known: Mapping[Any, Expr] = values

    def rule(node: Any) -> Any:
        if not isinstance(node, Var) or node not in known:
            return None
        return put_for(node, known[node])

    return bottom_up(root, rule)


def put_for(var: Var, value: Expr) -> Expr:
    """`value` in place of a variable, converted to its type."""
    lanes = max(value.dtype.lanes, var.dtype.lanes)
    fitted = cast(var.dtype.with_lanes(lanes), value)
    return fitted if fitted.dtype.lanes == lanes else Broadcast(fitted, lanes)


def free_variables(root: Any) -> dict[Var, None]:
    """Variables used in `root` and bound nowhere inside it, in order of appearance."""
    bound: set[Var] = set()
    used: dict[Var, None] = {}
    for node in walk(root):
        if isinstance(node, Var):
            used.setdefault(node)
        else:
            bound.update(getattr(node, "bound", tuple)())
    return {var: None for var in used if var not in bound}


def map_body(func: PrimFunc, f: Callable[[Stmt], Stmt]) -> PrimFunc:
    """`func` with its body rewritten by `f`."""
    body = f(func.body)
    if body is func.body:
        return func
    return PrimFunc(func.name, func.params, body, func.sizes, func.layout_maps, func.pad_values,
                    func.sites)


Task: TypeAlias = "Generator[Any, Any, Any]"


def run(
    task: Task,
    start: Callable[[Any], Task] | None = None,
    known: Callable[[Any], Any] | None = None,
) -> Any:
    """The value that `task` returns.

    Args:
        task: what to run.
        start: gives the task for what a task yields, where that is none itself.
        known: gives the result for what a task yields; None where it has to be found.

    >>> def depth(n):
    ...     return 0 if n == 0 else 1 + (yield depth(n - 1))
    >>> run(depth(100_000))
    100000
    """
    stack = [task]
    value: Any = None
    while stack:
        try:
            wanted = stack[-1].send(value)
        except StopIteration as end:
            stack.pop()
            value = end.value
            continue
        value = None if known is None else known(wanted)
        if value is None:
            stack.append(wanted if start is None else start(wanted))
    return value
