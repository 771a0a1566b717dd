"""The nodes of an expression that shares parts: each once, and their number without sharing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tecomp.ir.expr import Const, Expr, Var
from tecomp.ir.rewrite import children, fold

# Some seconds of compiling: passes visit a shared part once for each of its uses, and take a time
# that grows with the square of the depth.
MOST_OPERATIONS = 8192


def distinct_nodes(*roots: Expr) -> Iterator[Any]:
    """Every node in `roots` once, in the order of the text.

    `y = y * y` written 30 times has a billion nodes as a tree and 31 as objects.
    """
    seen: set[int] = set()
    todo: list[Any] = list(reversed(roots))
    while todo:
        node = todo.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        yield node
        todo.extend(reversed(list(children(node))))


def operations(*roots: Expr) -> int:
    """How many operations an expression has, a shared part counted at each of its uses.

    >>> x = Var("x")
    >>> operations(x + 1), operations((x + 1) * (x + 1))
    (1, 3)
    """
    return sum(fold(root, _operations) for root in roots)


def _operations(node: Any, inside: list[int]) -> int:
    # What is read has a name; its index is computed.
    is_operation = not isinstance(node, Const | Var) and not hasattr(node, "tensor")
    return is_operation + sum(inside)
