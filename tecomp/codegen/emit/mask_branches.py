"""Branch around masks: most vectors of a padded image are entirely inside the image."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce

from tecomp.ir.nodes.expr import (
    BinOp,
    Broadcast,
    BufferLoad,
    Call,
    CmpOp,
    Compare,
    Const,
    Expr,
    Ramp,
    Select,
    Var,
    binary,
)
from tecomp.ir.nodes.stmt import BufferStore, IfThenElse, PrimFunc
from tecomp.ir.traversal.analyses import ValueNumbering
from tecomp.ir.traversal.rewrite import bottom_up, conjuncts, nodes_of, walk

_RISING, _FALLING = (CmpOp.GE, CmpOp.GT), (CmpOp.LE, CmpOp.LT)
_SWAPPED = {
    CmpOp.GE: CmpOp.LE, CmpOp.GT: CmpOp.LT, CmpOp.LE: CmpOp.GE, CmpOp.LT: CmpOp.GT,
}


def branch_on_masks(func: PrimFunc) -> PrimFunc:
    """Store vectors without the mask of their value where all of its lanes are active.

    `A[v] = select(m, B.load(w, where=m), 0)` becomes `if all(m): A[v] = B[w] else: ...`, if `m` is
    a conjunction of scalars and of comparisons of ramps with scalars. Such a comparison holds for
    all lanes if it holds for the first or the last one. A vector in the middle of a padded row then
    takes a load and a store instead of a dozen instructions that compute its mask. Comparisons of
    constants remain as a constant mask.
    """
    if not nodes_of(Select, func.body):
        return func
    return replace(func, body=bottom_up(func.body, _branch, kind=BufferStore))


def _branch(store: BufferStore) -> IfThenElse | None:
    mask = _only_mask(store)
    if mask is None or any(isinstance(node, BufferLoad | Call) for node in walk(mask)):
        return None
    terms = conjuncts(mask)
    constant = [term for term in terms if _is_constant(term)]
    conditions = [_holds_everywhere(term) for term in terms if not _is_constant(term)]
    known = [condition for condition in conditions if condition is not None]
    if not known or len(known) < len(conditions):
        return None
    rest = _conjunction(constant) if constant else None
    numbers = ValueNumbering()
    number = numbers.of(mask)

    def reduce_mask(node: Expr) -> Expr | None:
        if isinstance(node, Select) and numbers.of(node.condition) == number:
            return node.a if rest is None else replace(node, condition=rest)
        if isinstance(node, BufferLoad) and node.predicate is not None and (
            numbers.of(node.predicate) == number
        ):
            return replace(node, predicate=rest)
        return None

    value = bottom_up(store.value, reduce_mask, kind=(Select, BufferLoad))
    return IfThenElse(_conjunction(known), replace(store, value=value), store)


def _conjunction(terms: Sequence[Expr]) -> Expr:
    return reduce(lambda a, b: binary(BinOp.AND, a, b), terms)


def _is_constant(term: Expr) -> bool:
    return not any(isinstance(node, Var) for node in walk(term))


def _only_mask(store: BufferStore) -> Expr | None:
    """Return the condition of the selections of a stored vector; None if they differ."""
    if store.predicate is not None or store.value.dtype.lanes == 1:
        return None
    masks = [node.condition for node in walk(store.value) if isinstance(node, Select)]
    masks = [mask for mask in masks if mask.dtype.lanes > 1]
    loads = [node.predicate for node in walk(store.value) if isinstance(node, BufferLoad)]
    numbers = ValueNumbering()
    distinct = {numbers.of(mask) for mask in masks}
    if len(distinct) != 1 or not distinct & {numbers.of(x) for x in loads if x is not None}:
        return None
    return masks[0]


def _holds_everywhere(term: Expr) -> Expr | None:
    """Return a scalar condition that implies that all lanes of a mask are active."""
    match term:
        case Broadcast(value):
            return value
        case Compare(op, Ramp() as lanes, Broadcast(limit)):
            return _compare_last(op, lanes, limit)
        case Compare(op, Broadcast(limit), Ramp() as lanes) if op in _SWAPPED:
            return _compare_last(_SWAPPED[op], lanes, limit)
    return None


def _compare_last(op: CmpOp, lanes: Ramp, limit: Expr) -> Expr | None:
    """Compare the lane of a rising ramp that is the last one to satisfy the comparison."""
    if not isinstance(lanes.stride, Const) or lanes.stride.value < 0:
        return None
    if op in _RISING:
        return Compare(op, lanes.base, limit)
    if op in _FALLING:
        last = int(lanes.stride.value) * (lanes.dtype.lanes - 1)
        return Compare(op, lanes.base + last, limit)
    return None
