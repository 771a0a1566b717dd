"""Legalize vectors to power-of-two lane counts.

LLVM scalarizes a vector of, for example, 31 lanes wherever it is live across basic blocks, and
stores some converted vectors with too many bytes. This pass removes all such vectors: a vector is
widened to the next power of two, and its loads and stores are masked to the active lanes, which
`tecomp.codegen.memory.vector_access` makes cheap. If padding would fill a whole register, the
statement is split in two: one for the first lanes and one for the rest. A vector of which only the
leading lanes are stored is reduced to these lanes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tecomp.codegen.llvm.ir_builder import WIDEST_VECTOR_BYTES
from tecomp.codegen.ops.arithmetic import is_power_of_two, wide_type
from tecomp.ir.nodes.expr import (
    Binary,
    BinOp,
    Broadcast,
    BufferLoad,
    Call,
    Cast,
    CmpOp,
    Compare,
    Const,
    Expr,
    Ramp,
    Var,
    index_value,
    is_const,
)
from tecomp.ir.nodes.stmt import BufferStore, Let, PrimFunc, Stmt, seq
from tecomp.ir.nodes.structural_equality import structural_equal
from tecomp.ir.traversal.rewrite import (
    bottom_up,
    children,
    fold,
    nodes_of,
    replace_children,
    statements_in,
    walk,
)


@dataclass(frozen=True, slots=True)
class _LaneSlice:
    """Piece of a vector: `count` lanes from `start` on, held in a vector of `width` lanes."""

    start: int
    count: int
    width: int


@dataclass(slots=True, eq=False)
class _LegalizeState:
    """State of the pass: lanes of one register of the widest dtype, and variables of pieces."""

    register: int
    variables: dict[Var, dict[tuple[int, _LaneSlice], Var]] = field(default_factory=dict)


def legalize_vectors(func: PrimFunc) -> PrimFunc:
    """Rewrite stores of vectors of 3, 5, 6, 7, 9, ... lanes to power-of-two lane counts.

    Args:
        func: Function with flat buffers.
    """
    body = _with_known_masks(func.body)
    odd = [node for node in _stores(body) if not is_power_of_two(_count(node)) or _is_part(node)]
    if not odd:
        return func
    bits = max(wide_type(part.dtype).bits for store in odd for part
        in _computed_subexpressions(store.value))
    work = _LegalizeState(8 * WIDEST_VECTOR_BYTES // bits)
    return replace(func, body=bottom_up(body, lambda node: _rule(work, node)))


def _with_known_masks(body: Stmt) -> Stmt:
    """Inline let-bound masks with a constant number of leading lanes at their uses."""
    if not any(_is_known_mask(node) for node in walk(body, parts=statements_in)):
        return body

    def rule(node: Any) -> Any:
        # Copies of an unrolled loop may bind one variable to different masks.
        if _is_known_mask(node):
            return bottom_up(node.body, lambda inner: node.value if inner is node.var else None)
        return None

    result: Stmt = bottom_up(body, rule)
    return result


def _is_known_mask(node: Any) -> bool:
    return isinstance(node, Let) and active_prefix(node.value) is not None


def _count(store: BufferStore) -> int:
    """Return the length of the prefix mask of a store, or its full lane count."""
    return active_prefix(store.predicate) or store.indices[-1].dtype.lanes


def _is_part(store: BufferStore) -> bool:
    return _count(store) < store.indices[-1].dtype.lanes


def active_prefix(predicate: Expr | None) -> int | None:
    """Return the number of active lanes if `predicate` is exactly a prefix mask, else None.

    >>> active_prefix(first_lanes(3, 4)), active_prefix(None)
    (3, None)
    """
    match predicate:
        case Compare(CmpOp.LT, Ramp(base, stride, lanes), Broadcast(Const(count), _)) if (
            is_const(base, 0) and is_const(stride, 1) and 0 < count <= lanes
        ):
            return int(count)
    return None


def first_lanes(count: int, width: int) -> Expr:
    """Return the mask of the first `count` of `width` lanes."""
    lanes = Ramp(index_value(0), index_value(1), width)
    return Compare(CmpOp.LT, lanes, Broadcast(index_value(count), width))


def next_power_of_two(lanes: int) -> int:
    """Return the smallest power of two that is at least `lanes`.

    >>> next_power_of_two(1), next_power_of_two(5), next_power_of_two(8)
    (1, 8, 8)
    """
    return 1 << (lanes - 1).bit_length()


def _stores(body: Stmt) -> Iterator[BufferStore]:
    """Yield the stores with indices; expressions are not traversed."""
    for node in walk(body, parts=statements_in):
        if isinstance(node, BufferStore) and node.indices:
            yield node


def _computed_subexpressions(value: Expr) -> Iterator[Expr]:
    """Iterate over the vector subexpressions of a value, excluding indices and conditions."""

    def parts(node: Expr) -> Sequence[Expr]:
        if isinstance(node, BufferLoad | Compare):
            return ()
        return [child for child in children(node) if child.dtype.lanes > 1]

    return walk(value, parts=parts)


def _pieces(lanes: int, register: int) -> list[_LaneSlice]:
    """Split `lanes` into power-of-two pieces without a whole register of padding.

    >>> [(p.start, p.count, p.width) for p in _pieces(23, 16)]
    [(0, 16, 16), (16, 7, 8)]
    >>> [(p.start, p.count, p.width) for p in _pieces(31, 16)]
    [(0, 31, 32)]
    """
    found, start = [], 0
    while lanes > register:
        padded = next_power_of_two(lanes)
        if is_power_of_two(lanes) or next_power_of_two(lanes - padded // 2) == padded // 2:
            break
        found.append(_LaneSlice(start, padded // 2, padded // 2))
        start, lanes = start + padded // 2, lanes - padded // 2
    return [*found, _LaneSlice(start, lanes, next_power_of_two(lanes))]


def _rule(work: _LegalizeState, node: Any) -> Stmt | None:
    if isinstance(node, Let):
        return _bind_pieces(work, node) if node.var in work.variables else None
    if not isinstance(node, BufferStore) or not node.indices:
        return None
    lanes, count = node.indices[-1].dtype.lanes, _count(node)
    if is_power_of_two(lanes) and not _is_part(node):
        return None
    if _is_part(node):
        node = replace(node, predicate=None)
    parts = [_LaneSlice(0, count, next_power_of_two(count))]
    if _is_separate(node):
        parts = _pieces(count, work.register)
    return seq(*(_part(work, node, lanes, piece) for piece in parts))


def _is_separate(store: BufferStore) -> bool:
    """Return whether no lane reads an element that another lane stores, so it can be split."""
    index = store.indices[-1]
    if not isinstance(index, Ramp) or not isinstance(index.stride, Const) or not index.stride.value:
        return False
    parts = (store.value, *(() if store.predicate is None else (store.predicate,)))
    return all(
        len(load.indices) == len(store.indices)
        and all(structural_equal(a, b) for a, b in zip(load.indices, store.indices, strict=True))
        for part in parts for load in walk(part)
        if isinstance(load, BufferLoad) and load.buffer.data is store.buffer.data
    )


def _part(work: _LegalizeState, store: BufferStore, lanes: int, piece: _LaneSlice) -> BufferStore:
    def cut(expr: Expr) -> Expr:
        return _slice_expr(work, expr, lanes, piece)

    predicate = None if store.predicate is None else cut(store.predicate)
    indices = tuple(map(cut, store.indices))
    return BufferStore(store.buffer, cut(store.value), indices, _mask(predicate, piece))


def _mask(predicate: Expr | None, piece: _LaneSlice) -> Expr | None:
    if piece.count == piece.width:
        return predicate
    if predicate is None:
        return first_lanes(piece.count, piece.width)
    if predicate.dtype.lanes == 1:
        predicate = Broadcast(predicate, piece.width)
    # A predicate may have one lane for each scalar of a vector element.
    parts = predicate.dtype.lanes // piece.width
    return Binary(BinOp.AND, first_lanes(parts * piece.count, parts * piece.width), predicate)


def _bind_pieces(work: _LegalizeState, node: Let) -> Stmt:
    """Bind the pieces of a variable that the body uses, and the variable itself if it is used.

    Several statements may bind one variable (copies of an unrolled loop, full vectors and a
    remainder), and statements may be shared between them. Therefore the pieces are determined from
    each body, not from the statement that was split first.
    """
    used = set(nodes_of(Var, node.body))
    body = node.body
    for (lanes, piece), var in work.variables[node.var].items():
        if var in used:
            body = Let(var, _slice_expr(work, node.value, lanes, piece), body)
    return Let(node.var, node.value, body) if node.var in used else body


def _slice_expr(work: _LegalizeState, root: Expr, lanes: int, piece: _LaneSlice) -> Expr:
    """Return a piece of an expression whose vectors have `lanes` lanes or a multiple."""

    def combine(node: Expr, parts: list[Expr]) -> Expr:
        by_id = dict(zip(map(id, children(node)), parts, strict=True))
        factor, remainder = divmod(node.dtype.lanes, lanes)
        match node:
            case Ramp(base, stride, count) if count == lanes:
                first = base + stride * piece.start if piece.start else base
                return first if piece.width == 1 else Ramp(first, stride, piece.width)
            case Broadcast(value, count) if count % lanes == 0:
                copies = count // lanes * piece.width
                return value if copies == 1 else Broadcast(value, copies)
            case Var() if not remainder and factor:
                known = work.variables.setdefault(node, {})
                kind = node.dtype.with_lanes(factor * piece.width)
                return known.setdefault((lanes, piece), Var(node.name, kind))
            case Cast(dtype) if not remainder and factor:
                return Cast(dtype.with_lanes(factor * piece.width), parts[0])
            case Call(name, _, dtype) if not remainder and factor:
                return Call(name, tuple(parts), dtype.with_lanes(factor * piece.width))
            case BufferLoad(buffer, indices) if indices and indices[-1].dtype.lanes == lanes:
                is_all = (active_prefix(node.predicate) or 0) >= piece.start + piece.count
                predicate = None if is_all or node.predicate is None else by_id[id(node.predicate)]
                new_indices = tuple(by_id[id(index)] for index in indices)
                same_place = isinstance(new_indices[-1], Broadcast) and predicate is None
                return BufferLoad(buffer, new_indices,
                                  predicate if same_place else _mask(predicate, piece))
        return replace_children(node, by_id)

    return fold(root, combine)
