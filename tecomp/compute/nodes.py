"""The nodes of an expression that shares parts, each once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tecomp.ir.expr import Expr
from tecomp.ir.rewrite import children


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
