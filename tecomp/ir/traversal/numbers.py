"""Tell which expressions are the same tree, in time linear in the graph."""

from __future__ import annotations

from dataclasses import fields
from enum import Enum
from functools import cache
from typing import Any

from tecomp.ir.language.expr import Expr
from tecomp.ir.traversal.rewrite import children, post_order


class Numbers:
    """Gives every expression a number, which is the same for the same tree.

    >>> from tecomp.ir.language.expr import Var
    >>> i, j, numbers = Var("i"), Var("j"), Numbers()
    >>> numbers.of(i + 1) == numbers.of(i + 1), numbers.of(i + 1) == numbers.of(j + 1)
    (True, False)
    """

    def __init__(self) -> None:
        # The nodes are kept so that their ids are not given to others.
        self._known: dict[int, tuple[Any, int]] = {}
        self._numbers: dict[tuple[Any, ...], int] = {}

    def of(self, expr: Expr) -> int:
        """The number of an expression."""
        for node in post_order(expr, parts=self._unknown):
            if id(node) not in self._known:
                number = self._numbers.setdefault(self._signature(node), len(self._numbers))
                self._known[id(node)] = node, number
        return self._known[id(expr)][1]

    def _unknown(self, node: Any) -> list[Any]:
        return [part for part in children(node) if id(part) not in self._known]

    def _signature(self, node: Any) -> tuple[Any, ...]:
        """What tells a node from others: its kind, its parts, and what it says beside them."""
        if hasattr(node, "is_variable"):
            return (id(node),)
        parts = [self._known[id(part)][1] for part in children(node)]
        kind: type = type(node)
        said = [_plain(getattr(node, name)) for name in _said(kind)]
        bound = [id(var) for name in getattr(node, "binds", ()) for var in getattr(node, name)]
        return (kind, *said, *bound, *parts)


@cache
def _said(kind: Any) -> tuple[str, ...]:
    return tuple(f.name for f in fields(kind) if f.compare)


def _plain(value: Any) -> Any:
    """What a field says beside its parts, which are numbered.

    1, 1.0 and True are equal, and so are zeros of either sign, so literals go by their digits.
    """
    if isinstance(value, Expr):
        return None
    if isinstance(value, tuple):
        return tuple(map(_plain, value))
    if isinstance(value, bool | int | float):
        return type(value), repr(value)
    return value if isinstance(value, str | Enum | None) else id(value)
