"""Structural equality up to renaming of bound variables.

Works on any node by its dataclass fields, so new kinds of node need no line here. A node that
binds variables says which in a `bound()` method; a variable has `is_variable`; a node that means
the same as another says which in `stands_for`.
"""

from __future__ import annotations

import math
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any


def same(a: object, b: object) -> bool:
    """Whether `a` and `b` are the same tree.

    Variables bound inside both may differ in name; a free variable is the same as itself only.
    Two parts that are shared are compared once. A loop and not a recursion: trees nest deeper than
    Python's stack.
    """
    pairing = _Pairing()
    todo: list[tuple[Any, Any]] = [(a, b)]
    while todo:
        x, y = todo.pop()
        if (x is y and not pairing.renames) or (id(x), id(y)) in pairing.compared:
            continue
        x, y = getattr(x, "stands_for", x), getattr(y, "stands_for", y)
        kind = _common_type(type(x), type(y))
        if kind is None:
            return False
        if kind is tuple:
            if len(x) != len(y):
                return False
            todo.extend(zip(reversed(x), reversed(y), strict=True))
        elif is_dataclass(kind):
            if not pairing.agrees(x, y):
                return False
            pairing.compared[id(x), id(y)] = x, y
            names = () if hasattr(x, "is_variable") else _compared(kind)
            todo.extend((getattr(x, name), getattr(y, name)) for name in names)
        elif not _equal_values(x, y):
            return False
    return True


class _Pairing:
    """Which bound variable of one tree is which of the other.

    Attributes:
        renames: whether any two variables that differ were paired.
        compared: the nodes that agree for these variables, or are being compared, by their ids.
    """

    def __init__(self) -> None:
        self._partner: dict[Any, Any] = {}
        self._taken: dict[Any, Any] = {}
        self.renames = False
        self.compared: dict[tuple[int, int], tuple[Any, Any]] = {}

    def agrees(self, x: Any, y: Any) -> bool:
        """Whether the nodes themselves may be the same; pairs the variables that they bind."""
        if hasattr(x, "is_variable"):
            paired = self._partner.get(x, x) is y and self._taken.get(y, y) is x
            return paired and bool(x.dtype == y.dtype)
        mine, theirs = _bound(x), _bound(y)
        if len(mine) != len(theirs):
            return False
        for left, right in zip(mine, theirs, strict=True):
            if left.dtype != right.dtype:
                return False
            self._partner[left], self._taken[right] = right, left
            self.renames |= left is not right
        if mine:
            self.compared.clear()
        return True


def _common_type(a: type, b: type) -> type | None:
    """The type to compare as: that of both, or the node that one of them refines."""
    if a is b:
        return a
    if is_dataclass(b) and issubclass(a, b):
        return b
    return a if is_dataclass(a) and issubclass(b, a) else None


def _bound(node: Any) -> tuple[Any, ...]:
    bound = getattr(node, "bound", None)
    return bound() if bound is not None else ()


@cache
def _compared(kind: Any) -> tuple[str, ...]:
    """Fields that say what a node is, last first; derived ones and source locations do not."""
    return tuple(reversed([f.name for f in fields(kind) if f.init and f.compare]))


def _equal_values(x: object, y: object) -> bool:
    if isinstance(x, float) and isinstance(y, float):
        # Distinguishes 0.0 from -0.0, and finds NaN equal to NaN.
        return (x == y and math.copysign(1, x) == math.copysign(1, y)) or (x != x and y != y)
    return bool(x == y)
