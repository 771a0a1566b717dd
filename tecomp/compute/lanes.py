"""The lanes of a vector, each as a value of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from tecomp.ir.language.expr import Binary, Broadcast, Call, Cast, Compare, Expr, Not, Ramp, Select
from tecomp.ir.traversal.rewrite import children, fold, rebuild


class NoLanesError(Exception):
    """A part of a vector is not made lane by lane."""


def lanes_of(vector: Expr) -> tuple[Expr, ...]:
    """The lanes of a vector of elements that were put side by side and computed with.

    Raises:
        NoLanesError: it has a part whose lanes are no values of their own.
    """
    return fold(vector, _lanes, _vectors)


def _vectors(node: Any) -> Sequence[Any]:
    return children(node) if node.dtype.lanes > 1 else ()


def _lanes(node: Any, parts: list[tuple[Expr, ...]]) -> tuple[Expr, ...]:
    count = node.dtype.lanes
    if count == 1:
        return (node,)
    match node:
        case Broadcast():
            return parts[0] * node.lanes
        case Ramp(base, stride):
            return tuple(base + stride * k for k in range(count))
        case Call("join"):
            return parts[0] + parts[1]
        case Binary() | Compare() | Not() | Select() | Cast() | Call():
            return tuple(_lane(node, parts, k) for k in range(count))
    raise NoLanesError


def _lane(node: Any, parts: list[tuple[Expr, ...]], k: int) -> Expr:
    values: dict[int, Expr] = {}
    for child, part in zip(children(node), parts, strict=True):
        if len(part) not in (1, node.dtype.lanes):
            raise NoLanesError
        values[id(child)] = part[k] if len(part) > 1 else part[0]
    made: Any = rebuild(node, lambda child: values[id(child)])
    lane: Expr = replace(made, dtype=node.dtype.scalar) if isinstance(made, Cast | Call) else made
    return lane
