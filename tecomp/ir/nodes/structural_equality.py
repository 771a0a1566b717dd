"""Structural equality up to renaming of bound variables.

Nodes are compared by their dataclass fields, so new node classes need no code here. A node class
that binds variables returns them from `bound()`, a variable has the attribute `is_variable`, and a
node that is equivalent to a simpler node returns the latter as `stands_for`.
"""

from __future__ import annotations

import math
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any


def structural_equal(a: object, b: object) -> bool:
    """Return whether `a` and `b` are structurally equal.

    Variables bound inside both trees may differ in name; a free variable equals only itself. A pair
    of shared nodes is compared once. An explicit stack replaces recursion, because trees may be
    deeper than Python's recursion limit.
    """
    pairing = _Pairing()
    worklist: list[tuple[Any, Any]] = [(a, b)]
    while worklist:
        x, y = worklist.pop()
        if (x is y and not pairing.renames) or (id(x), id(y)) in pairing.compared:
            continue
        x, y = getattr(x, "stands_for", x), getattr(y, "stands_for", y)
        kind = _common_type(type(x), type(y))
        if kind is None:
            return False
        if kind is tuple:
            if len(x) != len(y):
                return False
            worklist.extend(zip(reversed(x), reversed(y), strict=True))
        elif is_dataclass(kind):
            if not pairing.agrees(x, y):
                return False
            pairing.compared[id(x), id(y)] = x, y
            names = () if hasattr(x, "is_variable") else _compared_fields(kind)
            worklist.extend((getattr(x, name), getattr(y, name)) for name in names)
        elif not _equal_values(x, y):
            return False
    return True


class _Pairing:
    """Correspondence between the bound variables of two trees.

    Attributes:
        renames: Whether any two different variables are paired.
        compared: Pairs of nodes, by their ids, that are equal under the current pairing or whose
            comparison is in progress.
    """

    def __init__(self) -> None:
        self._partner: dict[Any, Any] = {}
        self._paired: dict[Any, Any] = {}
        self.renames = False
        self.compared: dict[tuple[int, int], tuple[Any, Any]] = {}

    def agrees(self, x: Any, y: Any) -> bool:
        """Return whether the nodes may be equal, fields aside; pair their bound variables."""
        if hasattr(x, "is_variable"):
            paired = self._partner.get(x, x) is y and self._paired.get(y, y) is x
            return paired and bool(x.dtype == y.dtype)
        left_vars, right_vars = _bound_variables(x), _bound_variables(y)
        if len(left_vars) != len(right_vars):
            return False
        for left, right in zip(left_vars, right_vars, strict=True):
            if left.dtype != right.dtype:
                return False
            self._partner[left], self._paired[right] = right, left
            self.renames |= left is not right
        if left_vars:
            self.compared.clear()
        return True


def _common_type(a: type, b: type) -> type | None:
    """Return the common class of two nodes, or the base dataclass if one subclasses the other."""
    if a is b:
        return a
    if is_dataclass(b) and issubclass(a, b):
        return b
    return a if is_dataclass(a) and issubclass(b, a) else None


def _bound_variables(node: Any) -> tuple[Any, ...]:
    bound = getattr(node, "bound", None)
    return bound() if bound is not None else ()


@cache
def _compared_fields(kind: Any) -> tuple[str, ...]:
    """Return the compared fields, last first; derived fields and source locations are excluded."""
    return tuple(reversed([f.name for f in fields(kind) if f.init and f.compare]))


def _equal_values(x: object, y: object) -> bool:
    if isinstance(x, float) and isinstance(y, float):
        # 0.0 and -0.0 are different literals, and NaN equals NaN.
        return (x == y and math.copysign(1, x) == math.copysign(1, y)) or (x != x and y != y)
    return bool(x == y)
