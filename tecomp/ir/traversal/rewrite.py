"""Traversal and rewriting of IR graphs without recursion."""

from __future__ import annotations

from collections.abc import Callable, Generator, Hashable, Iterator, Mapping, Sequence
from dataclasses import fields
from itertools import repeat
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

# Annotations of fields that never hold a node.
_PLAIN = frozenset((
    "BinOp", "Buffer", "CmpOp", "DType", "ForKind", "Location | None", "Scalar", "Tensor", "bool",
    "int", "str", "tuple[int, ...]", "tuple[tuple[int, int, int], ...]",
))
# Annotations of fields that hold one node, and of fields that hold a tuple of nodes.
_ONE = frozenset(("Expr", "Stmt"))
_SEQUENCE_TYPES = frozenset(("tuple[Expr, ...]", "tuple[Range, ...]", "tuple[Stmt, ...]"))
# Annotations of fields that hold expressions and ranges only.
_EXPRESSIONS = frozenset(("Expr", "Expr | None", "tuple[Expr, ...]", "tuple[Range, ...]"))


class _Holds(dict[type, int]):
    """Cache by type of the kind of a field value: 1 for a node, 2 for a tuple, 0 otherwise."""

    def __missing__(self, kind: type) -> int:
        found = 1 if issubclass(kind, _INNER) else 2 if kind is tuple else 0
        self[kind] = found
        return found


class _Shapes(dict[type, tuple[tuple[str, ...], tuple[int, ...]]]):
    """Cache by node class: names of the constructor fields, and positions of fields with children.

    Fields that bind variables are excluded, because a binding is not a use.
    """

    def __missing__(self, kind: type) -> tuple[tuple[str, ...], tuple[int, ...]]:
        binds = getattr(kind, "bound_fields", ())
        cls: Any = kind
        inits = [f for f in fields(cls) if f.init]
        inner = (k for k, f in enumerate(inits) if f.name not in binds and f.type not in _PLAIN)
        self[kind] = found = (tuple(f.name for f in inits), tuple(inner))
        return found


class _StatementFields(dict[type, tuple[str, ...]]):
    """Cache by node class: names of the fields that may hold statements."""

    def __missing__(self, kind: type) -> tuple[str, ...]:
        names, inner = _SHAPES[kind]
        known: Any = kind
        types = {f.name: f.type for f in fields(known)}
        self[kind] = found = tuple(names[k] for k in inner if types[names[k]] not in _EXPRESSIONS)
        return found


class _Readers(dict[type, Callable[[Any], Sequence[Any]] | None]):
    """Cache by node class: function that returns the children, or None for a class without any."""

    def __missing__(self, kind: type) -> Callable[[Any], Sequence[Any]] | None:
        names, inner = _SHAPES[kind]
        known: Any = kind
        types = {f.name: f.type for f in fields(known)}
        inside = [names[k] for k in inner]
        read: Callable[[Any], Sequence[Any]] | None
        if not inside:
            read = None
        elif len(inside) == 1 and types[inside[0]] in _ONE:
            get = attrgetter(inside[0])
            read = lambda node: (get(node),)  # noqa: E731
        elif len(inside) == 1 and types[inside[0]] in _SEQUENCE_TYPES:
            read = attrgetter(inside[0])
        elif all(types[name] in _ONE for name in inside):
            read = attrgetter(*inside)
        else:
            read = _by_value(inside)
        self[kind] = read
        return read


def _by_value(names: Sequence[str]) -> Callable[[Any], Sequence[Any]]:
    """Return a reader for fields that may hold values other than nodes."""

    def read(node: Any) -> Sequence[Any]:
        found: list[Any] = []
        for name in names:
            value = getattr(node, name)
            holds = _HOLDS[type(value)]
            if holds == 1:
                found.append(value)
            elif holds:
                for item in value:
                    if _HOLDS[type(item)] == 1:
                        found.append(item)
        return found

    return read


# Traversals dominate the time of lowering, so the properties of classes are cached.
_HOLDS = _Holds()
_SHAPES = _Shapes()
_READERS = _Readers()
_STATEMENT_FIELDS = _StatementFields()

_CHILDREN_ARE_DONE: Any = object()
"""Stack marker above a node whose children have already been visited."""


def children(node: Any) -> Sequence[Any]:
    """Return the expressions and statements directly inside `node`, in field order.

    Buffers are not entered: shape extents are not operands of a statement.
    """
    read = _READERS[type(node)]
    return read(node) if read else ()


def statements_in(node: Any) -> Sequence[Any]:
    """Return the statements directly inside `node`; expressions are not entered."""
    found: list[Any] = []
    for name in _STATEMENT_FIELDS[type(node)]:
        value = getattr(node, name)
        if isinstance(value, Stmt):
            found.append(value)
        elif isinstance(value, tuple):
            found += [item for item in value if isinstance(item, Stmt)]
    return found


def rebuild(node: N, f: Callable[[Any], Any]) -> N:
    """Apply `f` to each child of `node`; return `node` itself if nothing changes."""
    names, inner = _SHAPES[type(node)]
    changed: dict[str, Any] = {}
    for k in inner:
        old = getattr(node, names[k])
        holds = _HOLDS[type(old)]
        if holds == 1:
            new = f(old)
            if new is not old:
                changed[names[k]] = new
        elif holds:
            items = [f(item) if _HOLDS[type(item)] == 1 else item for item in old]
            if not all(map(is_, old, items)):
                changed[names[k]] = tuple(items)
    return _replace_fields(node, names, changed) if changed else node


def replace_children(node: N, new: Mapping[int, Any]) -> N:
    """Replace the children of `node` whose id is in `new`; return `node` if nothing changes."""
    names, inner = _SHAPES[type(node)]
    changed: dict[str, Any] = {}
    for k in inner:
        old = getattr(node, names[k])
        holds = _HOLDS[type(old)]
        if holds == 1:
            if (value := new.get(id(old), old)) is not old:
                changed[names[k]] = value
        elif holds:
            items = tuple([new.get(id(item), item) for item in old])
            if not all(map(is_, old, items)):
                changed[names[k]] = items
    return _replace_fields(node, names, changed) if changed else node


def _replace_fields(node: N, names: Sequence[str], changed: Mapping[str, Any]) -> N:
    # Faster than `dataclasses.replace`, which inspects the fields at each call.
    kind: Any = type(node)
    result: N = kind(*[
        changed[name] if name in changed else getattr(node, name) for name in names
    ])
    return result


def walk(
    *roots: Any, parts: Parts = children, key: Callable[[Any], Hashable] = id
) -> Iterator[Any]:
    """Return an iterator over every node reachable from `roots`, each once, in preorder.

    A node with several parents is at the position of its first use.

    Args:
        roots: Nodes at which to start.
        parts: Function that returns the children of a node. Default: `children`.
        key: Function that returns the identity of a node. Default: `id`.

    >>> i = Var("i")
    >>> double = i + i
    >>> sum(1 for _ in walk(double * double))
    3
    """
    if key is not id or (parts is not children and parts is not statements_in):
        return graph_utils.preorder(*roots, parts=parts, key=key)
    # Most traversals visit all nodes, so a loop without calls is faster than a generator.
    visited: dict[int, Any] = {}
    worklist: list[Any] = list(roots[::-1])
    while worklist:
        node = worklist.pop()
        if id(node) not in visited:
            visited[id(node)] = node
            read = _READERS[type(node)] if parts is children else parts
            if read and (inner := read(node)):
                worklist += inner[::-1]
    return iter(visited.values())


def nodes_of(kind: type[N], *roots: Any) -> list[N]:
    """Return the nodes of a class that are reachable from `roots`, each once, in preorder.

    >>> i, j = Var("i"), Var("j")
    >>> nodes_of(Var, i + j * 2)
    [i, j]
    """
    return [node for node in walk(*roots) if isinstance(node, kind)]


def contains(kind: type | tuple[type, ...], *roots: Any) -> bool:
    """Return whether a node of a class, or of one of several classes, is reachable from `roots`.

    >>> i = Var("i")
    >>> contains(Broadcast, i + 1), contains((Broadcast, Var), i + 1)
    (False, True)
    """
    return any(map(isinstance, walk(*roots), repeat(kind)))


def post_order(
    *roots: Any, parts: Parts = children, key: Callable[[Any], Hashable] = id
) -> Iterator[Any]:
    """Return an iterator over every node reachable from `roots`, each once, in postorder.

    >>> i = Var("i")
    >>> list(post_order(i * 2))
    [i, 2, i * 2]
    """
    if parts is not children or key is not id:
        return graph_utils.post_order(*roots, parts=parts, key=key)
    return iter(_children_first(roots).values())


def _children_first(roots: Sequence[Any]) -> dict[int, Any]:
    """Return every node reachable from `roots` by its id, in postorder."""
    done: dict[int, Any] = {}
    worklist: list[Any] = list(roots[::-1])
    while worklist:
        node = worklist.pop()
        if node is _CHILDREN_ARE_DONE:
            node = worklist.pop()
            done[id(node)] = node
        elif id(node) not in done:
            read = _READERS[type(node)]
            if read and (inner := read(node)):
                worklist += (node, _CHILDREN_ARE_DONE, *inner[::-1])
            else:
                done[id(node)] = node
    return done


def operands_of(op: BinOp, root: Expr, max_operands: int | None = None) -> list[Expr]:
    """Return the distinct operands a, b, c of a chain `a op b op c`.

    With `max_operands`, the chain is opened at most `most - 1` times; the rest remains unsplit.

    >>> i, j = Var("i"), Var("j")
    >>> operands_of(BinOp.ADD, i + j * 2 + 1)
    [i, j * 2, 1]
    """
    found: dict[int, Expr] = {}
    expanded: dict[int, Expr] = {}
    worklist = [root]
    while worklist:
        node = worklist.pop()
        if id(node) in expanded:
            continue
        may_open = max_operands is None or len(expanded) < max_operands - 1
        if may_open and isinstance(node, Binary) and node.op is op:
            expanded[id(node)] = node
            worklist += (node.b, node.a)
        else:
            found.setdefault(id(node), node)
    return list(found.values())


def conjuncts(condition: Expr) -> list[Expr]:
    """Return the distinct operands a, b, c of a conjunction `a and b and c`."""
    return operands_of(BinOp.AND, condition)


def fold(
    root: Any, combine: Callable[[Any, list[T]], T], parts: Parts = children
) -> T:
    """Return `combine(node, results of its children)` for `root`; each node is combined once.

    >>> i = Var("i")
    >>> fold(i * 2 + i, lambda node, depths: 1 + max(depths, default=0))
    3
    """
    return graph_utils.fold(root, combine, parts)


def bottom_up(
    root: N,
    rule: Callable[[Any], Any],
    parts: Parts = children,
    kind: type | tuple[type, ...] = object,
) -> N:
    """Apply `rule` once to every node, children first; a result of None keeps the node.

    Args:
        root: Node to rewrite.
        rule: Function that returns the replacement of a node with rewritten children, or None.
        parts: Function that returns the visited children: for each node all of them or none.
        kind: Class or classes to which `rule` applies. Default: all.
    """
    is_whole = parts is children
    done: dict[int, Any] = {}
    for node in post_order(root, parts=parts):
        rebuilt = node
        read = _READERS[type(node)] if is_whole else parts
        for child in read(node) if read else ():
            if done[id(child)] is not child:
                rebuilt = replace_children(node, done)
                break
        result = rule(rebuilt) if isinstance(rebuilt, kind) else None
        done[id(node)] = rebuilt if result is None else result
    final: N = done[id(root)]
    return final


def top_down(root: N, rule: Callable[[Any], Any]) -> N:
    """Apply `rule` once to every node, parents first; a result of None continues with the children.

    If `rule` returns a node, this node is the replacement, and its children are not visited.
    """
    done: dict[int, Any] = {}
    worklist: list[Any] = [root]
    while worklist:
        node = worklist.pop()
        if node is _CHILDREN_ARE_DONE:
            node = worklist.pop()
            done[id(node)] = replace_children(node, done)
        elif id(node) not in done:
            result = rule(node)
            if result is not None:
                done[id(node)] = result
            else:
                worklist += (node, _CHILDREN_ARE_DONE, *children(node)[::-1])
    final: N = done[id(root)]
    return final


def substitute(root: N, values: Mapping[V, Expr]) -> N:
    """Replace variables in `root`; values are cast to the dtype of the variable.

    Bindings, such as the variable of a loop, are not changed.
    """
    if not values:
        return root
    known: Mapping[Any, Expr] = values
    return bottom_up(
        root, lambda var: cast_for_variable(var, known[var]) if var in known else None, kind=Var)


def cast_for_variable(var: Var, value: Expr) -> Expr:
    """Return `value` cast to the dtype of the variable that it replaces."""
    lanes = max(value.dtype.lanes, var.dtype.lanes)
    fitted = cast(var.dtype.with_lanes(lanes), value)
    return fitted if fitted.dtype.lanes == lanes else Broadcast(fitted, lanes)


def free_variables(root: Any) -> dict[Var, None]:
    """Return the variables that are used but not bound in `root`, in order of appearance."""
    bound: set[Var] = set()
    used: dict[Var, None] = {}
    for node in walk(root):
        if isinstance(node, Var):
            used.setdefault(node)
        else:
            bound.update(getattr(node, "bound", tuple)())
    return {var: None for var in used if var not in bound}


def map_body(func: PrimFunc, f: Callable[[Stmt], Stmt]) -> PrimFunc:
    """Return `func` with `f` applied to its body."""
    body = f(func.body)
    if body is func.body:
        return func
    return PrimFunc(func.name, func.params, body, func.sizes, func.layout_maps, func.pad_values,
                    func.sites)


Task: TypeAlias = "Generator[Any, Any, Any]"


def run_trampoline(
    task: Task,
    start: Callable[[Any], Task] | None = None,
    known: Callable[[Any], Any] | None = None,
) -> Any:
    """Run a recursive computation, written as generators, on an explicit stack.

    Args:
        task: Generator that yields subtasks and is sent their results.
        start: Function that returns the generator for a yielded value. Default: the value is a
            generator.
        known: Function that returns the known result of a yielded value, or None if it must be
            computed.

    Returns:
        The return value of `task`.

    >>> def depth(n):
    ...     return 0 if n == 0 else 1 + (yield depth(n - 1))
    >>> run_trampoline(depth(100_000))
    100000
    """
    stack = [task]
    value: Any = None
    while stack:
        try:
            subtask = stack[-1].send(value)
        except StopIteration as end:
            stack.pop()
            value = end.value
            continue
        value = None if known is None else known(subtask)
        if value is None:
            stack.append(subtask if start is None else start(subtask))
    return value
