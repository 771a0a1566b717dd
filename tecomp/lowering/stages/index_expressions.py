"""Translate definition expressions to function expressions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from tecomp.compute.tensor import TensorLoad
from tecomp.ir.nodes.dtype import BOOL, INT32, INT64
from tecomp.ir.nodes.expr import (
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
from tecomp.ir.traversal.rewrite import bottom_up, children, post_order, put_for, rebuild, walk

V = TypeVar("V", bound=Var)
LoadOf = Callable[[TensorLoad, tuple[Expr, ...]], BufferLoad]


def value_of(expr: Expr, values: Mapping[V, Expr], load: LoadOf) -> Expr:
    """`expr` with axes replaced by `values`, and reads by what `load` makes of them.

    Comparisons of indices are made in int64, where they can be decided when loops are known.
    """
    return _Meanings(expr, values, load).of_root()


class _Meanings:
    """What each node of an expression is as a value, and in an index, where it is needed as such.

    Attributes:
        values: of axes.
        load: makes a load of a read.
        value: what nodes are in their own types, by their ids.
        index: what they are in indices.
    """

    def __init__(self, root: Expr, values: Mapping[Any, Expr], load: LoadOf) -> None:
        self.values = values
        self.load = load
        self.value: dict[int, Expr] = {}
        self.index: dict[int, Expr] = {}
        self._root = root
        self._nodes = list(post_order(root))
        self._data: set[int] = set()
        for node in self._nodes:
            if isinstance(node, TensorLoad) or any(id(c) in self._data for c in children(node)):
                self._data.add(id(node))
        self._of_indices = {
            id(node) for node in self._nodes
            if isinstance(node, Compare) and _is_index(node.a) and _is_index(node.b)
        }
        # A condition on indices is the same everywhere, and a read is.
        self._alike = {
            id(node) for node in self._nodes
            if isinstance(node, TensorLoad) or (node.dtype == BOOL and id(node) not in self._data)
        }

    def of_root(self) -> Expr:
        """The whole expression as a value."""
        as_value, in_index = self._needed()
        for node in self._nodes:
            if id(node) in as_value:
                self.value[id(node)] = self._value(node)
            if id(node) in in_index:
                self.index[id(node)] = self._index(node)
        return self.value[id(self._root)]

    def _needed(self) -> tuple[set[int], set[int]]:
        """The nodes that are needed as values, and those that are needed in indices."""
        as_value, in_index = {id(self._root)}, set[int]()
        for node in reversed(self._nodes):
            inner = [id(child) for child in children(node)]
            if id(node) in in_index:
                if id(node) in self._data or id(node) in self._alike:
                    as_value.add(id(node))
                if id(node) not in self._alike:
                    in_index.update(inner)
            if id(node) in as_value:
                starts = isinstance(node, TensorLoad) or id(node) in self._of_indices
                (in_index if starts else as_value).update(inner)
        return as_value, in_index

    def _value(self, node: Expr) -> Expr:
        match node:
            case TensorLoad(_, indices):
                return self.load(node, tuple(cast(INT64, self.index[id(i)]) for i in indices))
            case Var() if node in self.values:
                return put_for(node, self.values[node])
            case Compare(op, a, b) if id(node) in self._of_indices:
                return compare(op, *(cast(INT64, self.index[id(part)]) for part in (a, b)))
        return rebuild(node, lambda child: self.value[id(child)])

    def _index(self, node: Expr) -> Expr:
        """What it is in an index; the same as its value where no axis makes a difference."""
        if id(node) in self._alike:
            return self.value[id(node)]
        if isinstance(node, Var):
            return self.values.get(node, node)
        if id(node) in self._data and all(
            self.index[id(child)] is self.value[id(child)] for child in children(node)
        ):
            return self.value[id(node)]
        rebuilt = rebuild(node, lambda child: self.index[id(child)])
        widened = _widened(rebuilt)
        return rebuilt if widened is None else widened


def index_of(expr: Expr, values: Mapping[V, Expr]) -> Expr:
    """`expr`, an index, as an int64 expression; what it reads stays as it is.

    Index arithmetic is carried out in int64 whatever its declared type, so it cannot wrap;
    what is computed from data keeps its type until it meets an index.
    """
    known: Mapping[Any, Expr] = values

    def rule(node: Any) -> Expr | None:
        return known.get(node) if isinstance(node, Var) else _widened(node)

    return cast(INT64, bottom_up(expr, rule, parts=_before_reads))


def _widened(node: Expr) -> Expr | None:
    """A node in an index whose operands have become int64; None if it can stay as it is."""
    match node:
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
