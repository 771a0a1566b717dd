"""The only traversals. A pass is a function built on them, not a visitor class.

All of them are loops and not recursions: unrolled code nests deeper than Python's stack.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import fields
from functools import cache
from typing import Any, TypeVar

from tecomp.ir.expr import Broadcast, Expr, Var, cast
from tecomp.ir.stmt import PrimFunc, Range, Stmt

N = TypeVar("N")
T = TypeVar("T")
V = TypeVar("V", bound=Var)

_INNER = (Expr, Stmt, Range)


@cache
def _arguments(kind: Any) -> tuple[tuple[str, bool], ...]:
    """The fields that a node is constructed from, and whether they may hold children.

    A field that binds variables holds none: what is bound there is not used there.
    """
    binds = getattr(kind, "binds", ())
    return tuple((f.name, f.name not in binds) for f in fields(kind) if f.init)


def children(node: Any) -> Iterator[Any]:
    """The expressions and statements directly inside `node`, in field order.

    Buffers are not entered: extents of a shape are not part of what a statement computes.
    """
    kind: Any = type(node)
    for name, inner in _arguments(kind):
        value = getattr(node, name)
        if not inner:
            continue
        if isinstance(value, _INNER):
            yield value
        elif type(value) is tuple:
            for item in value:
                if isinstance(item, _INNER):
                    yield item


def rebuild(node: N, f: Callable[[Any], Any]) -> N:
    """`node` with `f` applied to each child; the same object when nothing changed."""
    changed = False
    arguments: list[Any] = []
    kind: Any = type(node)
    for name, inner in _arguments(kind):
        old = new = getattr(node, name)
        if not inner:
            pass
        elif isinstance(old, _INNER):
            new = f(old)
        elif type(old) is tuple and any(isinstance(item, _INNER) for item in old):
            new = tuple(f(item) if isinstance(item, _INNER) else item for item in old)
            if all(a is b for a, b in zip(old, new, strict=True)):
                new = old
        changed |= new is not old
        arguments.append(new)
    return type(node)(*arguments) if changed else node


def walk(root: Any) -> Iterator[Any]:
    """`root` and every node below it, outer before inner, in order."""
    todo = [root]
    while todo:
        node = todo.pop()
        yield node
        todo.extend(reversed(list(children(node))))


def fold(
    root: Any,
    combine: Callable[[Any, list[T]], T],
    parts: Callable[[Any], Iterable[Any]] = children,
) -> T:
    """What `combine(node, results of its parts)` gives for `root`; asked once for each node.

    >>> i = Var("i")
    >>> fold(i * 2 + i, lambda node, depths: 1 + max(depths, default=0))
    3
    """
    done: dict[int, T] = {}
    todo: list[Any] = [root]
    while todo:
        node = todo[-1]
        if id(node) in done:
            todo.pop()
            continue
        inner = list(parts(node))
        if waiting := [part for part in inner if id(part) not in done]:
            todo.extend(reversed(waiting))
            continue
        done[id(node)] = combine(node, [done[id(part)] for part in inner])
        todo.pop()
    return done[id(root)]


def bottom_up(root: N, rule: Callable[[Any], Any]) -> N:
    """Apply `rule` once to every node, children first; `None` leaves a node as it is."""
    done: dict[int, Any] = {}
    todo: list[Any] = [root]
    while todo:
        node = todo[-1]
        if id(node) in done:
            todo.pop()
            continue
        if waiting := [child for child in children(node) if id(child) not in done]:
            todo.extend(reversed(waiting))
            continue
        rebuilt = rebuild(node, lambda child: done[id(child)])
        result = rule(rebuilt)
        done[id(node)] = rebuilt if result is None else result
        todo.pop()
    final: N = done[id(root)]
    return final


def top_down(root: N, rule: Callable[[Any], Any]) -> N:
    """Apply `rule` to every node, outer before inner; `None` goes on into its children.

    Where `rule` gives a node, that stands as it is and nothing below it is visited.
    """
    done: dict[int, Any] = {}
    todo: list[tuple[Any, bool]] = [(root, False)]
    while todo:
        node, entered = todo.pop()
        if id(node) in done:
            continue
        if entered:
            done[id(node)] = rebuild(node, lambda child: done[id(child)])
        elif (result := rule(node)) is not None:
            done[id(node)] = result
        else:
            todo.append((node, True))
            todo.extend((child, False) for child in reversed(list(children(node))))
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
        value = known[node]
        lanes = max(value.dtype.lanes, node.dtype.lanes)
        fitted = cast(node.dtype.with_lanes(lanes), value)
        return fitted if fitted.dtype.lanes == lanes else Broadcast(fitted, lanes)

    return bottom_up(root, rule)


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
