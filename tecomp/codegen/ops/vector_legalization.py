"""Legalize vectors to power-of-two lane counts.

LLVM takes a vector of, say, 31 lanes apart into scalars wherever it goes from one block to the
next, and stores some that it has converted with bytes too many. So none is left: a vector becomes
the next longer one, and its loads and stores have a mask for the lanes that there are, which
`tecomp.codegen.memory.vector_access` makes cheap. Where a register or more would be empty, a
statement becomes two, one for the first lanes and one for the rest. Of a vector whose first lanes
alone are stored, however many, there are no others.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tecomp.codegen.ops.arithmetic import wide_type
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
from tecomp.ir.nodes.structural_equality import same
from tecomp.ir.traversal.rewrite import bottom_up, children, fold, rebuild, statements_in, walk

_REGISTER_BITS = 512


@dataclass(frozen=True, slots=True)
class _Lanes:
    """Some lanes of a vector: `count` of them from `start` on, held in `width` lanes."""

    start: int
    count: int
    width: int


@dataclass(slots=True, eq=False)
class _Pass:
    """Lanes of one register of the widest type, and what stands for each piece of a variable."""

    register: int
    variables: dict[Var, dict[tuple[int, _Lanes], Var]] = field(default_factory=dict)


def whole_vectors(func: PrimFunc) -> PrimFunc:
    """The same function without statements on vectors of 3, 5, 6, 7, 9, ... lanes.

    Args:
        func: a function with flat buffers.
    """
    body = _with_known_masks(func.body)
    odd = [node for node in _stores(body) if not _is_whole(_count(node)) or _is_part(node)]
    if not odd:
        return func
    bits = max(wide_type(part.dtype).bits for store in odd for part in _computed(store.value))
    work = _Pass(_REGISTER_BITS // bits)
    return replace(func, body=bottom_up(body, lambda node: _rule(work, node)))


def _with_known_masks(body: Stmt) -> Stmt:
    """The same with masks of a known number of first lanes where they are used."""
    if not any(_is_known_mask(node) for node in walk(body, parts=statements_in)):
        return body

    def rule(node: Any) -> Any:
        # Copies of an unrolled loop may bind one variable to masks that differ.
        if _is_known_mask(node):
            return bottom_up(node.body, lambda inner: node.value if inner is node.var else None)
        return None

    result: Stmt = bottom_up(body, rule)
    return result


def _is_known_mask(node: Any) -> bool:
    return isinstance(node, Let) and prefix(node.value) is not None


def _count(store: BufferStore) -> int:
    """How many lanes a store to a vector is of."""
    return prefix(store.predicate) or store.indices[-1].dtype.lanes


def _is_part(store: BufferStore) -> bool:
    return _count(store) < store.indices[-1].dtype.lanes


def prefix(predicate: Expr | None) -> int | None:
    """How many lanes take part, if they are the first and `predicate` says nothing else.

    >>> prefix(first_lanes(3, 4)), prefix(None)
    (3, None)
    """
    match predicate:
        case Compare(CmpOp.LT, Ramp(base, stride, lanes), Broadcast(Const(count), _)) if (
            is_const(base, 0) and is_const(stride, 1) and 0 < count <= lanes
        ):
            return int(count)
    return None


def first_lanes(count: int, width: int) -> Expr:
    """The mask of the first `count` of `width` lanes."""
    lanes = Ramp(index_value(0), index_value(1), width)
    return Compare(CmpOp.LT, lanes, Broadcast(index_value(count), width))


def whole(lanes: int) -> int:
    """The least power of two that is no less.

    >>> whole(1), whole(5), whole(8)
    (1, 8, 8)
    """
    return 1 << (lanes - 1).bit_length()


def _is_whole(lanes: int) -> bool:
    return lanes & (lanes - 1) == 0


def _stores(body: Stmt) -> Iterator[BufferStore]:
    """The stores to vectors of places; expressions are not entered."""
    for node in walk(body, parts=statements_in):
        if isinstance(node, BufferStore) and node.indices:
            yield node


def _computed(value: Expr) -> Iterator[Expr]:
    """What is computed in lanes; indices and conditions are not."""

    def parts(node: Expr) -> Sequence[Expr]:
        if isinstance(node, BufferLoad | Compare):
            return ()
        return [child for child in children(node) if child.dtype.lanes > 1]

    return walk(value, parts=parts)


def _pieces(lanes: int, register: int) -> list[_Lanes]:
    """Whole vectors for `lanes`, of which no more than the half of a register is empty.

    >>> [(p.start, p.count, p.width) for p in _pieces(23, 16)]
    [(0, 16, 16), (16, 7, 8)]
    >>> [(p.start, p.count, p.width) for p in _pieces(31, 16)]
    [(0, 31, 32)]
    """
    found, start = [], 0
    while lanes > register:
        most = whole(lanes)
        if _is_whole(lanes) or whole(lanes - most // 2) == most // 2:
            break
        found.append(_Lanes(start, most // 2, most // 2))
        start, lanes = start + most // 2, lanes - most // 2
    return [*found, _Lanes(start, lanes, whole(lanes))]


def _rule(work: _Pass, node: Any) -> Stmt | None:
    if isinstance(node, Let):
        return _bound(work, node) if node.var in work.variables else None
    if not isinstance(node, BufferStore) or not node.indices:
        return None
    lanes, count = node.indices[-1].dtype.lanes, _count(node)
    if _is_whole(lanes) and not _is_part(node):
        return None
    if _is_part(node):
        node = replace(node, predicate=None)
    parts = [_Lanes(0, count, whole(count))]
    if _is_separate(node):
        parts = _pieces(count, work.register)
    return seq(*(_part(work, node, lanes, piece) for piece in parts))


def _is_separate(store: BufferStore) -> bool:
    """Whether no lane reads what another one stores, so that they need not go together."""
    place = store.indices[-1]
    if not isinstance(place, Ramp) or not isinstance(place.stride, Const) or not place.stride.value:
        return False
    parts = (store.value, *(() if store.predicate is None else (store.predicate,)))
    return all(
        len(load.indices) == len(store.indices)
        and all(same(a, b) for a, b in zip(load.indices, store.indices, strict=True))
        for part in parts for load in walk(part)
        if isinstance(load, BufferLoad) and load.buffer.data is store.buffer.data
    )


def _part(work: _Pass, store: BufferStore, lanes: int, piece: _Lanes) -> BufferStore:
    def cut(expr: Expr) -> Expr:
        return _cut(work, expr, lanes, piece)

    predicate = None if store.predicate is None else cut(store.predicate)
    indices = tuple(map(cut, store.indices))
    return BufferStore(store.buffer, cut(store.value), indices, _masked(predicate, piece))


def _masked(predicate: Expr | None, piece: _Lanes) -> Expr | None:
    if piece.count == piece.width:
        return predicate
    if predicate is None:
        return first_lanes(piece.count, piece.width)
    if predicate.dtype.lanes == 1:
        predicate = Broadcast(predicate, piece.width)
    # There may be a condition for each part of an element.
    parts = predicate.dtype.lanes // piece.width
    return Binary(BinOp.AND, first_lanes(parts * piece.count, parts * piece.width), predicate)


def _bound(work: _Pass, node: Let) -> Stmt:
    """Bind the pieces of a variable that the body uses, and the whole variable where it is used.

    Several statements may bind one variable, such as copies of an unrolled loop and the whole
    vectors beside a remainder, and a statement may stand in several of them. So the body says
    which pieces it uses, not the statement that was cut first.
    """
    used = {part for part in walk(node.body) if isinstance(part, Var)}
    body = node.body
    for (lanes, piece), var in work.variables[node.var].items():
        if var in used:
            body = Let(var, _cut(work, node.value, lanes, piece), body)
    return Let(node.var, node.value, body) if node.var in used else body


def _cut(work: _Pass, root: Expr, lanes: int, piece: _Lanes) -> Expr:
    """A piece of an expression; vectors inside have `lanes` lanes, or a multiple of that."""

    def combine(node: Expr, parts: list[Expr]) -> Expr:
        made = dict(zip(map(id, children(node)), parts, strict=True))
        factor, rest = divmod(node.dtype.lanes, lanes)
        match node:
            case Ramp(base, stride, count) if count == lanes:
                first = base + stride * piece.start if piece.start else base
                return first if piece.width == 1 else Ramp(first, stride, piece.width)
            case Broadcast(value, count) if count % lanes == 0:
                copies = count // lanes * piece.width
                return value if copies == 1 else Broadcast(value, copies)
            case Var() if not rest and factor:
                known = work.variables.setdefault(node, {})
                kind = node.dtype.with_lanes(factor * piece.width)
                return known.setdefault((lanes, piece), Var(node.name, kind))
            case Cast(dtype) if not rest and factor:
                return Cast(dtype.with_lanes(factor * piece.width), parts[0])
            case Call(name, _, dtype) if not rest and factor:
                return Call(name, tuple(parts), dtype.with_lanes(factor * piece.width))
            case BufferLoad(buffer, indices) if indices and indices[-1].dtype.lanes == lanes:
                is_all = (prefix(node.predicate) or 0) >= piece.start + piece.count
                predicate = None if is_all or node.predicate is None else made[id(node.predicate)]
                places = tuple(made[id(index)] for index in indices)
                same_place = isinstance(places[-1], Broadcast) and predicate is None
                return BufferLoad(buffer, places,
                                  predicate if same_place else _masked(predicate, piece))
        return rebuild(node, lambda child: made[id(child)])

    return fold(root, combine)
