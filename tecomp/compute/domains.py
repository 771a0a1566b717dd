"""Domains of reduction axes that depend on other axes: the hull of all, and what holds inside."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tecomp.compute.affine import affine_of
from tecomp.compute.axis import IterKind, IterVar, make_axis
from tecomp.compute.shape import extent_of
from tecomp.compute.tensor import TensorLoad
from tecomp.errors import DefinitionError
from tecomp.ir.language.expr import Binary, BinOp, Call, Cast, Const, Expr, as_expr
from tecomp.ir.language.stmt import Extent
from tecomp.ir.traversal.rewrite import fold, walk


def dependent_axis(
    name: str, low: Any, high: Any, where: str, thread_tag: str
) -> IterVar | None:
    """An axis from `low` to before `high`, of which one depends on an axis; None if none does.

    It runs through all values that it has anywhere. What of these it has at one place, reductions
    over it take as a condition.

    Raises:
        DefinitionError: a bound is no sum of axes and sizes, or depends on elements of tensors.
    """
    if not any(map(_has_axes, (low, high))):
        return None
    least = _end(low, f"{where}: the low end", greatest=False)
    most = _end(high, f"{where}: the high end", greatest=True)
    extent = most if isinstance(least, int) and least == 0 else as_expr(most) - least
    count = extent_of(max(extent, 0) if isinstance(extent, int) else extent, where)
    first, last = (as_expr(end) if _has_axes(end) else None for end in (low, high))
    return make_axis(name, least, count, IterKind.REDUCE, thread_tag, (first, last))


def _has_axes(end: object) -> bool:
    return isinstance(end, Expr) and any(isinstance(node, IterVar) for node in walk(end))


def _end(end: object, where: str, *, greatest: bool) -> Extent:
    """The least or the greatest value that a bound has anywhere."""
    if not isinstance(end, Expr) or not _has_axes(end):
        return extent_of(end, where, least=-(2**63))
    if any(isinstance(node, Call | TensorLoad) for node in walk(end)) or not end.dtype.is_integer:
        raise DefinitionError(
            f"{where} is {end}, which is more than arithmetic of axes and sizes; reduce over all "
            "values, and say with where= which count",
            kind="reduction",
        )
    found = affine_of(end)
    total: Extent = found.const
    for term, factor in found.terms:
        if isinstance(term, IterVar):
            last = (factor > 0) is greatest
            value: Extent = term.low if not last else term.low + term.extent - 1
        elif _has_axes(term):
            return _numeric_end(end, where, greatest=greatest)
        else:
            value = term
        total = total + value * factor
    return extent_of(total, where, least=-(2**63))


def _numeric_end(end: Expr, where: str, *, greatest: bool) -> int:
    found = fold(end, _interval)
    if found is None:
        raise DefinitionError(
            f"{where} is {end}, of which the {'greatest' if greatest else 'least'} value is not "
            "known; reduce over all values, and say with where= which count",
            kind="reduction",
        )
    return found[greatest]


def _interval(node: object, parts: list[tuple[int, int] | None]) -> tuple[int, int] | None:
    """Values between which those of an expression are; None where they are not known."""
    if isinstance(node, Const):
        return int(node.value), int(node.value)
    if isinstance(node, IterVar):
        if not (isinstance(node.low, int) and isinstance(node.extent, int)):
            return None
        return node.low, node.low + max(node.extent, 1) - 1
    known = [part for part in parts if part is not None]
    if len(known) < len(parts) or not known:
        return None
    if isinstance(node, Cast):
        return known[0]
    if not isinstance(node, Binary):
        return None
    (a, b), (c, d) = known
    if node.op in (BinOp.FLOORDIV, BinOp.MOD):
        if c < 1:
            return None
        ends = [a // c, a // d, b // c, b // d] if node.op is BinOp.FLOORDIV else [0, d - 1]
        return min(ends), max(ends)
    return _OPERATIONS[node.op](a, b, c, d) if node.op in _OPERATIONS else None


def _product(a: int, b: int, c: int, d: int) -> tuple[int, int]:
    ends = (a * c, a * d, b * c, b * d)
    return min(ends), max(ends)


_OPERATIONS: dict[BinOp, Callable[[int, int, int, int], tuple[int, int]]] = {
    BinOp.ADD: lambda a, b, c, d: (a + c, b + d),
    BinOp.SUB: lambda a, b, c, d: (a - d, b - c),
    BinOp.MUL: _product,
    BinOp.MIN: lambda a, b, c, d: (min(a, c), min(b, d)),
    BinOp.MAX: lambda a, b, c, d: (max(a, c), max(b, d)),
}
