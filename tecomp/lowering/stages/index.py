"""Expressions of a definition as expressions of the function: int64 indices, loads of buffers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from tecomp.compute.tensor import TensorLoad
from tecomp.ir.language.dtype import BOOL, INT32, INT64
from tecomp.ir.language.expr import (
    Binary,
    BufferLoad,
    Call,
    Cast,
    Compare,
    Expr,
    Select,
    Var,
    binary,
    cast,
    compare,
    if_then_else,
    select,
)
from tecomp.ir.traversal.rewrite import bottom_up, children, post_order, put_for, top_down, walk

V = TypeVar("V", bound=Var)
LoadOf = Callable[[TensorLoad, tuple[Expr, ...]], BufferLoad]


def value_of(expr: Expr, values: Mapping[V, Expr], load: LoadOf) -> Expr:
    """`expr` with axes replaced by `values`, and reads by what `load` makes of them.

    Comparisons of indices are made in int64, where they can be decided when loops are known.
    """
    made: dict[int, Expr] = {}
    for read in post_order(expr):
        if isinstance(read, TensorLoad):
            made[id(read)] = load(read, tuple(_index(i, values, made) for i in read.indices))
    known: Mapping[Any, Expr] = values

    def rule(node: Any) -> Expr | None:
        match node:
            case TensorLoad():
                return made[id(node)]
            case Var() if node in known:
                return put_for(node, known[node])
            case Compare(op, a, b) if _is_index(a) and _is_index(b):
                return compare(op, _index(a, values, made), _index(b, values, made))
        return None

    return top_down(expr, rule)


def index_of(expr: Expr, values: Mapping[V, Expr]) -> Expr:
    """`expr`, an index, as an int64 expression; what it reads stays as it is.

    Index arithmetic is carried out in int64 whatever its declared type, so it cannot wrap;
    what is computed from data keeps its type until it meets an index.
    """
    return _index(expr, values, {})


def _index(expr: Expr, values: Mapping[V, Expr], made: Mapping[int, Expr]) -> Expr:
    """As `index_of`, with what was made of reads, by their ids."""
    known: Mapping[Any, Expr] = values

    def rule(node: Any) -> Expr | None:
        match node:
            case TensorLoad():
                return made.get(id(node))
            case Var() if node in known:
                return known[node]
            case Binary(op, a, b) if a.dtype != b.dtype:
                return binary(op, a, b)
            case Compare(op, a, b) if a.dtype != b.dtype:
                return compare(op, a, b)
            case Select(condition, a, b) if a.dtype != b.dtype:
                return select(condition, a, b)
            case Call():
                return _call(node)
            case Cast(dtype, inner) if dtype in (INT32, INT64) and _is_pure(inner):
                return inner if inner.dtype.is_integer else None
        return None

    return cast(INT64, bottom_up(expr, rule, parts=_before_reads))


def _before_reads(node: Any) -> Sequence[Any]:
    return () if isinstance(node, TensorLoad) else children(node)


def _call(node: Call) -> Expr | None:
    """A call whose operands have become int64; None if it can stay as it is."""
    match node:
        case Call("if_then_else", (condition, a, b)) if a.dtype != b.dtype:
            return if_then_else(condition, a, b)
        case Call("if_then_else" | "abs" as name, args) if node.dtype != args[-1].dtype:
            return Call(name, args, args[-1].dtype)
        case Call("popcount", (a,)) if node.dtype != a.dtype:
            # A negative number has as many ones as its type has bits.
            return Call("popcount", (cast(node.dtype, a),), node.dtype)
    return None


def _is_index(expr: Expr) -> bool:
    """Whether `expr` is computed from axes and sizes alone, in a type that indices have."""
    return expr.dtype in (INT32, INT64) and all(
        node.dtype in (INT32, INT64, BOOL) and not isinstance(node, TensorLoad)
        for node in walk(expr)
    )


def _is_pure(expr: Expr) -> bool:
    """Whether `expr` is made of indices alone."""
    return expr.dtype == INT64 and not any(
        isinstance(node, (BufferLoad, TensorLoad)) for node in walk(expr)
    )
