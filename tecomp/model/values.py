"""What the value of a statement is: a copy of an element, or operations on elements."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from tecomp.ir.language.expr import Binary, BinOp, BufferLoad, Call, Const, Expr, Not, Select, Var
from tecomp.ir.language.intrinsics import outside_function
from tecomp.ir.traversal.rewrite import children, walk
from tecomp.model.frames import Frame

_LOGIC = (BinOp.AND, BinOp.OR)


def has_load(node: Expr) -> bool:
    """Whether it depends on data."""
    return any(isinstance(part, BufferLoad) for part in walk(node))


def is_copy(value: Expr) -> bool:
    """Whether it is an element that loops and conditions on them choose, or a number."""
    def chosen(node: Expr) -> Sequence[Expr]:
        match node:
            case Call("if_then_else", (condition, a, b)) | Select(condition, a, b) if (
                not has_load(condition)
            ):
                return a, b
        return ()

    def is_element(node: Expr) -> bool:
        if isinstance(node, BufferLoad):
            return not any(map(has_load, node.indices))
        return isinstance(node, Const)

    return all(chosen(node) or is_element(node) for node in walk(value, parts=chosen))


def operations(
    root: Expr, frames: tuple[Frame, ...], where: Callable[[Expr], tuple[Frame, ...]]
) -> Iterator[tuple[tuple[Frame, ...], Counter[tuple[str, str]]]]:
    """What an expression computes on elements, by the conditions under which it does."""
    groups: list[tuple[Expr, tuple[Frame, ...]]] = [(root, frames)]
    while groups:
        start, around = groups.pop()
        counts: Counter[tuple[str, str]] = Counter()
        for node in walk(start, parts=_computed):
            match node:
                case Call("if_then_else", (condition, then, other)):
                    groups += [
                        (then, (*around, *where(condition))),
                        (other, (*around, *where(Not(condition)))),
                    ]
                case Binary(op) if op not in _LOGIC:
                    counts[op.name.lower(), str(node.dtype.scalar)] += node.dtype.lanes
                case Call(name) if name not in ("check_index", "reinterpret") and (
                    outside_function(name) is None
                ):
                    counts[name, str(node.dtype.scalar)] += node.dtype.lanes
        if counts:
            yield around, counts


def _computed(node: Expr) -> Sequence[Expr]:
    """What is computed on elements for `node`, under no condition of its own."""
    match node:
        case Call("if_then_else", (condition, _, _)):
            return (condition,) if has_load(condition) else ()
        case BufferLoad() | Const() | Var():
            return ()
        case Select(condition, a, b) if not has_load(condition):
            return a, b
    return children(node)
