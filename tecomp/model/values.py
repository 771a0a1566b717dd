"""What the value of a statement is: a copy of an element, or operations on elements."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator

from tecomp.ir.expr import Binary, BinOp, BufferLoad, Call, Const, Expr, Not, Select, Var
from tecomp.ir.rewrite import children, walk
from tecomp.model.frames import Frame

_LOGIC = (BinOp.AND, BinOp.OR)


def has_load(node: Expr) -> bool:
    """Whether it depends on data."""
    return any(isinstance(part, BufferLoad) for part in walk(node))


def is_copy(value: Expr) -> bool:
    """Whether it is an element that loops and conditions on them choose, or a number."""
    todo = [value]
    while todo:
        match todo.pop():
            case Call("if_then_else", (condition, a, b)) | Select(condition, a, b) if (
                not has_load(condition)
            ):
                todo += [a, b]
            case BufferLoad(_, indices) if not any(map(has_load, indices)):
                continue
            case Const():
                continue
            case _:
                return False
    return True


def operations(
    root: Expr, frames: tuple[Frame, ...], where: Callable[[Expr], tuple[Frame, ...]]
) -> Iterator[tuple[tuple[Frame, ...], Counter[tuple[str, str]]]]:
    """What an expression computes on elements, by the conditions under which it does."""
    groups: list[tuple[Expr, tuple[Frame, ...]]] = [(root, frames)]
    while groups:
        start, around = groups.pop()
        counts: Counter[tuple[str, str]] = Counter()
        todo = [start]
        while todo:
            node = todo.pop()
            match node:
                case Call("if_then_else", (condition, then, other)):
                    todo += (condition,) if has_load(condition) else ()
                    groups += [
                        (then, (*around, *where(condition))),
                        (other, (*around, *where(Not(condition)))),
                    ]
                    continue
                case BufferLoad() | Const() | Var():
                    continue
                case Select(condition, a, b) if not has_load(condition):
                    todo += [a, b]
                    continue
                case Binary(op) if op not in _LOGIC:
                    counts[op.name.lower(), str(node.dtype.scalar)] += node.dtype.lanes
                case Call(name) if name not in ("check_index", "reinterpret"):
                    counts[name, str(node.dtype.scalar)] += node.dtype.lanes
            todo += children(node)
        if counts:
            yield around, counts
