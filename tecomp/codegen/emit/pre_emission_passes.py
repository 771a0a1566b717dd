"""Passes before emission: hoist divisions, promote accumulators."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from tecomp.codegen.ops.vector_legalization import prefix
from tecomp.ir.arith.quasi_affine_conversion import Terms
from tecomp.ir.nodes.dtype import INT64
from tecomp.ir.nodes.expr import (
    Binary,
    BinOp,
    BufferLoad,
    CmpOp,
    Compare,
    Const,
    Expr,
    Ramp,
    Var,
    index_value,
    is_const,
)
from tecomp.ir.nodes.stmt import (
    Allocate,
    ArrayArgument,
    Buffer,
    BufferStore,
    DeclBuffer,
    For,
    ForKind,
    IfThenElse,
    Let,
    OutsideCall,
    PrimFunc,
    SeqStmt,
    Stmt,
    seq,
)
from tecomp.ir.traversal.analyses import Numbers
from tecomp.ir.traversal.rewrite import Task, bottom_up, children, rebuild, run, walk

_NAMES = {BinOp.FLOORDIV: "quotient", BinOp.MOD: "rest"}


def name_quotients(func: PrimFunc) -> PrimFunc:
    """The same function, in which loops begin with the quotients that are the same inside of them.

    A division by 0 gives 0, so that one can be done where it is not needed.
    """
    divided = [node for node in walk(func.body) if _is_division(node)]
    if not divided:
        return func
    return replace(func, body=run(_named(_Names(), func.body)))


def _is_division(node: Any) -> bool:
    return (
        isinstance(node, Binary) and node.op in _NAMES and node.dtype == INT64
        and not isinstance(node.b, Const)
    )


@dataclass
class _Scope:
    """Where a variable has a value.

    Attributes:
        var: the variable.
        values: what its body begins with: names and their values, in order.
    """

    var: Var
    values: dict[Var, Expr] = field(default_factory=dict)


@dataclass
class _Names:
    """The names that are in scope.

    Attributes:
        scopes: of the loops around, outer first.
        depths: of variables that are bound in them: how many of the scopes are around.
        named: the names of quotients, by their numbers; that of an ended scope is not in use.
    """

    scopes: list[_Scope] = field(default_factory=list)
    depths: dict[Var, int] = field(default_factory=dict)
    named: dict[int, Var] = field(default_factory=dict)
    numbers: Numbers = field(default_factory=Numbers)

    def rule(self, node: Any) -> Expr | None:
        """The name of a quotient of variables, as it is after its parts have theirs."""
        if not _is_division(node):
            return None
        depth = self._depth(node)
        if depth is None or depth == 0:
            return None
        number = self.numbers.of(node)
        if number not in self.named:
            var = Var(_NAMES[node.op], INT64)
            self.named[number] = var
            self.depths[var] = depth
            self.scopes[depth - 1].values[var] = node
        return self.named[number]

    def inside(self, expr: Expr) -> Expr:
        """An expression with names for its quotients."""
        return bottom_up(expr, self.rule)

    def _depth(self, root: Expr) -> int | None:
        """How many loops are around the last variable that a value depends on.

        None where it depends on more than variables.
        """
        depth = 0
        for node in walk(root):
            if isinstance(node, Var):
                depth = max(depth, self.depths.get(node, 0))
            elif not isinstance(node, Binary | Const):
                return None
        return depth

    def enter(self, var: Var, value: Expr | None) -> None:
        """From here on `var` has its value."""
        self.scopes.append(_Scope(var))
        self.depths[var] = len(self.scopes)
        if value is not None and _is_division(value):
            self.named.setdefault(self.numbers.of(value), var)

    def leave(self, body: Stmt) -> Stmt:
        """`body`, the end of the scope, after what is named in it."""
        scope = self.scopes.pop()
        gone = {scope.var, *scope.values}
        self.named = {n: var for n, var in self.named.items() if var not in gone}
        for var, value in reversed(scope.values.items()):
            body = Let(var, value, body)
        return body


def _named(names: _Names, node: Stmt) -> Task:
    if isinstance(node, OutsideCall):
        return node
    if isinstance(node, For | Let):
        return (yield from _binding(names, node))
    done: dict[int, Any] = {}
    for child in children(node):
        done[id(child)] = (yield _named(names, child)) if isinstance(child, Stmt) else (
            names.inside(child))
    return rebuild(node, _of(done))


def _binding(names: _Names, node: For | Let) -> Task:
    """A statement that binds a variable, in whose body what depends on it is named."""
    (var,), own = node.bound(), node.value if isinstance(node, Let) else None
    done: dict[int, Any] = {}
    for value in (child for child in children(node) if isinstance(child, Expr)):
        # A quotient that has a name already needs no other.
        done[id(value)] = rebuild(value, names.inside) if value is own and _is_division(own) else (
            names.inside(value))
    names.enter(var, None if own is None else done[id(own)])
    inner = yield _named(names, node.body)
    done[id(node.body)] = names.leave(inner)
    return rebuild(node, _of(done))


def _of(done: dict[int, Any]) -> Callable[[Any], Any]:
    return lambda child: done.get(id(child), child)


# Memory and type, the index of the row, what the index of the first lane is but for a constant.
_Row: TypeAlias = "tuple[object, ...]"
# The constant, the number of lanes that take part, and that of the vector.
_Span: TypeAlias = "tuple[int, int, int]"
_Places: TypeAlias = "dict[tuple[_Row, _Span], _Place]"


@dataclass(frozen=True, slots=True, eq=False)
class _Place:
    """The first lanes of a vector in memory, and the vector that stands for them in a loop.

    Attributes:
        store: one that writes there.
        own: a vector of this function.
        whole: the index of all its lanes.
    """

    store: BufferStore
    own: Buffer
    whole: tuple[Expr]


def keep_partial_sums(func: PrimFunc) -> PrimFunc:
    """The same function, with parts of vectors kept out of memory by the loops that they stay in.

    Args:
        func: what `whole_vectors` has made.
    """
    return replace(func, body=run(_kept(Terms(), func.body)))


def _kept(terms: Terms, node: Stmt) -> Task:
    places: _Places = {}
    if isinstance(node, For) and node.kind is ForKind.SERIAL:
        places = _places(terms, node, node.body)
    elif isinstance(node, Allocate):
        found = _places(terms, node.body, node.body)
        places = {
            where: place for where, place in found.items()
            if place.store.buffer.data is node.buffer.data
        }
    inner: Any = node
    if places:
        inner = rebuild(node, lambda child: bottom_up(child, lambda n: _own(terms, places, n)))
    done: dict[int, Stmt] = {}
    for child in children(inner):
        if isinstance(child, Stmt):
            done[id(child)] = yield _kept(terms, child)
    made = rebuild(inner, lambda child: done.get(id(child), child))
    return _around(node, made, [*places.values()]) if places else made


def _around(node: Any, made: Stmt, places: list[_Place]) -> Stmt:
    """`made`, which stands for `node`, with the vectors; a loop fills them and puts them back."""
    before, after = [], []
    for place in places if isinstance(node, For) else ():
        there = place.store
        load = BufferLoad(there.buffer, there.indices, there.predicate)
        before.append(BufferStore(place.own, load, place.whole))
        after.append(replace(there, value=BufferLoad(place.own, place.whole)))
    result: Stmt = seq(*before, made, *after)
    for place in places:
        result = Allocate(place.own, result)
    if isinstance(node, Allocate) or (isinstance(node.extent, Const) and node.extent.value > 0):
        return result
    return IfThenElse(Compare(CmpOp.GT, node.extent, index_value(0)), result)


def _own(terms: Terms, places: _Places, node: Any) -> Any:
    """An access of one of the places as one of the vector that stands for it."""
    if not isinstance(node, BufferLoad | BufferStore):
        return None
    where = _where(terms, node)
    place = None if where is None else places.get(where)
    if place is None:
        return None
    if isinstance(node, BufferLoad):
        return BufferLoad(place.own, place.whole)
    return BufferStore(place.own, node.value, place.whole)


def _where(terms: Terms, node: BufferLoad | BufferStore) -> tuple[_Row, _Span] | None:
    """Which elements of which row an access is of; None if they do not lie side by side."""
    if not node.indices:
        return None
    *outer, last = node.indices
    lanes, first = last.dtype.lanes, last
    if isinstance(last, Ramp) and is_const(last.stride, 1):
        first = last.base
    elif lanes > 1:
        return None
    count = lanes
    if node.predicate is not None:
        # Under any other condition it is of no more elements than without.
        count = prefix(node.predicate) or lanes
    start = terms.sum_of(first)
    rest = frozenset(start.terms.items())
    row = (node.buffer.data, node.buffer.dtype, *(terms.key(index) for index in outer), rest)
    is_plain = node.predicate is None or prefix(node.predicate) is not None
    return row, (start.const, count, lanes if is_plain else 0)


def _places(terms: Terms, node: Stmt, body: Stmt) -> _Places:
    """What all of `node` reads and writes in the same place, and nothing else overlaps.

    Args:
        terms: of the indices.
        node: a loop, or what memory is allocated for.
        body: of the loop, or all of that.
    """
    stores = list(_always(body))
    if not stores:
        return {}
    memory = {store.buffer.data for store in stores} - _passed(node)
    bound: set[Var] = set()
    spans: dict[Var, dict[_Row, dict[_Span, bool]]] = {}
    for inner in walk(node):
        if isinstance(inner, For) and inner.kind is ForKind.PARALLEL:
            return {}
        if isinstance(inner, For | Let | Allocate):
            bound.update(inner.bound())
        if isinstance(inner, BufferLoad | BufferStore) and inner.buffer.data in memory:
            where = _where(terms, inner)
            if where is None:
                memory.discard(inner.buffer.data)
                continue
            row, span = where
            known = spans.setdefault(inner.buffer.data, {}).setdefault(row, {})
            known[span] = known.get(span, False) or isinstance(inner, BufferLoad)
    found: _Places = {}
    for store in stores:
        data = store.buffer.data
        where = _where(terms, store)
        if where is None or data not in memory or len(spans[data]) > 1:
            continue
        known = spans[data][where[0]]
        if where not in found and known[where[1]] and _stays(store, bound) and (
            _is_alone(where[1], known)
        ):
            lanes = where[1][2]
            own = Buffer(f"{store.buffer.name}.part", (lanes,), store.buffer.dtype, "local")
            whole = (Ramp(index_value(0), index_value(1), lanes),)
            found[where] = _Place(store, own, whole)
    return found


def _passed(node: Stmt) -> set[Var]:
    """The memory that calls of functions take, of which they access any element."""
    return {n.place.buffer.data for n in walk(node) if isinstance(n, ArrayArgument)}


def _is_alone(span: _Span, known: Iterable[_Span]) -> bool:
    start, count, _ = span
    return all(
        other == span or other[0] >= start + count or other[0] + other[1] <= start
        for other in known
    )


def _always(body: Stmt) -> Iterator[BufferStore]:
    """The stores to first lanes that are come to whenever this is, or each iteration with it."""

    def inside(node: Any) -> Sequence[Any]:
        if isinstance(node, SeqStmt):
            return node.stmts
        return (node.body,) if isinstance(node, Let | Allocate | DeclBuffer) or _runs(node) else ()

    for node in walk(body, parts=inside):
        if isinstance(node, BufferStore) and prefix(node.predicate) is not None:
            yield node


def _runs(node: Any) -> bool:
    """Whether it is a loop of one iteration at least."""
    return isinstance(node, For) and isinstance(node.extent, Const) and node.extent.value > 0


def _stays(store: BufferStore, bound: set[Var]) -> bool:
    """Whether a place is the same in all iterations of a loop that binds these variables."""
    if store.buffer.data in bound or store.buffer.dtype.lanes > 1:
        return False
    return not any(
        isinstance(node, BufferLoad) or (isinstance(node, Var) and node in bound)
        for index in store.indices for node in walk(index)
    )
