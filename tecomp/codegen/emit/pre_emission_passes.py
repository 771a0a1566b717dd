"""Branch around masks, hoist loop-invariant divisions, promote accumulators before emission."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Any, TypeAlias

from tecomp.codegen.ops.arithmetic import is_power_of_two
from tecomp.codegen.ops.vector_legalization import active_prefix
from tecomp.ir.arith.quasi_affine_conversion import TermTable
from tecomp.ir.nodes.dtype import INT64
from tecomp.ir.nodes.expr import (
    Binary,
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
    index_value,
    is_const,
)
from tecomp.ir.nodes.stmt import (
    Allocate,
    ArrayArgument,
    Buffer,
    BufferStore,
    DeclBuffer,
    ExternCall,
    For,
    ForKind,
    IfThenElse,
    Let,
    PrimFunc,
    SeqStmt,
    Stmt,
    seq,
)
from tecomp.ir.traversal.analyses import ValueNumbering
from tecomp.ir.traversal.rewrite import (
    Task,
    bottom_up,
    children,
    conjuncts,
    nodes_of,
    rebuild,
    replace_children,
    run_trampoline,
    walk,
)

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


_NAMES = {BinOp.FLOORDIV: "quotient", BinOp.MOD: "rest"}


def hoist_divisions(func: PrimFunc) -> PrimFunc:
    """Hoist int64 quotients and remainders out of inner loops, except shifts and masks.

    A quotient of variables is bound at the start of the innermost loop or let body that binds one
    of these variables; quotients of parameters only are not moved. A division by 0 gives 0, so
    hoisting is safe even if the result is not used.
    """
    if not any(map(_is_division, nodes_of(Binary, func.body))):
        return func
    return replace(func, body=run_trampoline(_hoist(_HoistedValues(), func.body)))


def _is_division(node: Any) -> bool:
    return (
        isinstance(node, Binary) and node.op in _NAMES and node.dtype == INT64
        and not (isinstance(node.b, Const) and is_power_of_two(int(node.b.value)))
    )


@dataclass
class _BindingScope:
    """Scope of a bound variable.

    Attributes:
        var: Bound variable.
        values: Let bindings at the start of its body, in order.
    """

    var: Var
    values: dict[Var, Expr] = field(default_factory=dict)


@dataclass
class _HoistedValues:
    """Names in scope.

    Attributes:
        scopes: Enclosing scopes, outermost first.
        depths: Scope depth of each bound variable.
        named: Names of quotients in open scopes, by value number.
        numbers: Value numbering of expressions.
    """

    scopes: list[_BindingScope] = field(default_factory=list)
    depths: dict[Var, int] = field(default_factory=dict)
    named: dict[int, Var] = field(default_factory=dict)
    numbers: ValueNumbering = field(default_factory=ValueNumbering)

    def rule(self, node: Any) -> Expr | None:
        """Return the name of a quotient whose operands are already named, or None."""
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

    def replace_quotients(self, expr: Expr) -> Expr:
        """Replace the quotients of an expression by names."""
        return bottom_up(expr, self.rule)

    def _depth(self, root: Expr) -> int | None:
        """Return the scope depth of the innermost variable that a value depends on.

        None if the value contains anything but binary operations on variables and constants.
        """
        depth = 0
        for node in walk(root):
            if isinstance(node, Var):
                depth = max(depth, self.depths.get(node, 0))
            elif not isinstance(node, Binary | Const):
                return None
        return depth

    def enter(self, var: Var, value: Expr | None) -> None:
        """Open the scope of `var`."""
        self.scopes.append(_BindingScope(var))
        self.depths[var] = len(self.scopes)
        if value is not None and _is_division(value):
            self.named.setdefault(self.numbers.of(value), var)

    def leave(self, body: Stmt) -> Stmt:
        """Close the innermost scope and wrap `body` in its let bindings."""
        scope = self.scopes.pop()
        expired = {scope.var, *scope.values}
        self.named = {n: var for n, var in self.named.items() if var not in expired}
        for var, value in reversed(scope.values.items()):
            body = Let(var, value, body)
        return body


def _hoist(names: _HoistedValues, node: Stmt) -> Task:
    if isinstance(node, ExternCall):
        return node
    if isinstance(node, For | Let):
        return (yield from _hoist_in_binding(names, node))
    done: dict[int, Any] = {}
    for child in children(node):
        done[id(child)] = (yield _hoist(names, child)) if isinstance(child, Stmt) else (
            names.replace_quotients(child))
    return replace_children(node, done)


def _hoist_in_binding(names: _HoistedValues, node: For | Let) -> Task:
    """Rewrite a loop or let, naming quotients of its variable in its body."""
    (var,), bound_value = node.bound(), node.value if isinstance(node, Let) else None
    done: dict[int, Any] = {}
    for value in (child for child in children(node) if isinstance(child, Expr)):
        # A quotient that is let-bound already needs no further name.
        done[id(value)] = (
            rebuild(value, names.replace_quotients)
            if value is bound_value and _is_division(bound_value)
            else (names.replace_quotients(value))
        )
    names.enter(var, None if bound_value is None else done[id(bound_value)])
    inner = yield _hoist(names, node.body)
    done[id(node.body)] = names.leave(inner)
    return replace_children(node, done)


# Data variable and dtype, row indices, and the index of the first lane without its constant.
_Row: TypeAlias = "tuple[object, ...]"
# Constant of the first index, number of active lanes, and lane count of the vector.
_Span: TypeAlias = "tuple[int, int, int]"
_Places: TypeAlias = "dict[tuple[_Row, _Span], _PromotedVector]"


@dataclass(frozen=True, slots=True, eq=False)
class _PromotedVector:
    """Leading lanes of a vector in memory, and the local vector that replaces them in a loop.

    Attributes:
        store: Store to this memory.
        local_buffer: Local vector buffer.
        lane_index: Index of all lanes of `local_buffer`.
    """

    store: BufferStore
    local_buffer: Buffer
    lane_index: tuple[Expr]


def promote_accumulators(func: PrimFunc) -> PrimFunc:
    """Promote loop-carried partial vectors to local vectors, which become registers.

    Args:
        func: Result of `whole_vectors`.
    """
    return replace(func, body=run_trampoline(_sort_key(TermTable(), func.body)))


def _sort_key(terms: TermTable, node: Stmt) -> Task:
    vectors: _Places = {}
    if isinstance(node, For) and node.kind is ForKind.SERIAL:
        vectors = _places(terms, node, list(_always(node.body)))
    elif isinstance(node, Allocate):
        # No value is loaded before or stored after, so the stores may be conditional.
        stores = [store for store in nodes_of(BufferStore, node.body) if _is_prefix(store)]
        found = _places(terms, node.body, stores)
        vectors = {
            where: vector for where, vector in found.items()
            if vector.store.buffer.data is node.buffer.data
        }
    inner: Any = node
    if vectors:
        inner = rebuild(node, lambda child: bottom_up(child, lambda n: _own(terms, vectors, n)))
    done: dict[int, Stmt] = {}
    for child in children(inner):
        if isinstance(child, Stmt):
            done[id(child)] = yield _sort_key(terms, child)
    rewritten = replace_children(inner, done)
    return _around(node, rewritten, [*vectors.values()]) if vectors else rewritten


def _around(node: Any, body: Stmt, vectors: list[_PromotedVector]) -> Stmt:
    """Wrap `body` in the local vectors; around a loop they are loaded before and stored after."""
    before, after = [], []
    for vector in vectors if isinstance(node, For) else ():
        store = vector.store
        load = BufferLoad(store.buffer, store.indices, store.predicate)
        before.append(BufferStore(vector.local_buffer, load, vector.lane_index))
        after.append(replace(store, value=BufferLoad(vector.local_buffer, vector.lane_index)))
    result: Stmt = seq(*before, body, *after)
    for vector in vectors:
        result = Allocate(vector.local_buffer, result)
    if isinstance(node, Allocate) or (isinstance(node.extent, Const) and node.extent.value > 0):
        return result
    return IfThenElse(Compare(CmpOp.GT, node.extent, index_value(0)), result)


def _own(terms: TermTable, vectors: _Places, node: Any) -> Any:
    """Redirect an access of a promoted place to its local vector."""
    if not isinstance(node, BufferLoad | BufferStore):
        return None
    where = _where(terms, node)
    vector = None if where is None else vectors.get(where)
    if vector is None:
        return None
    if isinstance(node, BufferLoad):
        return BufferLoad(vector.local_buffer, vector.lane_index)
    return BufferStore(vector.local_buffer, node.value, vector.lane_index)


def _where(terms: TermTable, node: BufferLoad | BufferStore) -> tuple[_Row, _Span] | None:
    """Return row and span of an access, or None if its elements are not contiguous."""
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
        # Any other predicate only reduces the accessed elements.
        count = active_prefix(node.predicate) or lanes
    start = terms.sum_of(first)
    offset_key = frozenset(start.terms.items())
    row = (node.buffer.data, node.buffer.dtype, *(terms.key(index) for index in outer), offset_key)
    is_prefix = node.predicate is None or active_prefix(node.predicate) is not None
    return row, (start.const, count, lanes if is_prefix else 0)


def _places(terms: TermTable, node: Stmt, stores: Sequence[BufferStore]) -> _Places:
    """Return loop-invariant places that are read and stored, and overlap with no other access.

    Args:
        terms: Terms of index expressions.
        node: Loop, or body of an allocation.
        stores: Stores to leading lanes whose places may be promoted.
    """
    if not stores:
        return {}
    # External calls may access any element of their arguments.
    escaping = {n.element.buffer.data for n in nodes_of(ArrayArgument, node)}
    memory = {store.buffer.data for store in stores} - escaping
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
            local = Buffer(f"{store.buffer.name}.part", (lanes,), store.buffer.dtype, "local")
            full_lanes = (Ramp(index_value(0), index_value(1), lanes),)
            found[where] = _PromotedVector(store, local, full_lanes)
    return found


def _is_alone(span: _Span, known: Iterable[_Span]) -> bool:
    start, count, _ = span
    return all(
        other == span or other[0] >= start + count or other[0] + other[1] <= start
        for other in known
    )


def _always(body: Stmt) -> Iterator[BufferStore]:
    """Yield the stores to leading lanes that are always executed with `body`."""

    def inside(node: Any) -> Sequence[Any]:
        if isinstance(node, SeqStmt):
            return node.stmts
        return (node.body,) if isinstance(node, Let | Allocate | DeclBuffer) or _runs(node) else ()

    for node in walk(body, parts=inside):
        if isinstance(node, BufferStore) and _is_prefix(node):
            yield node


def _is_prefix(store: BufferStore) -> bool:
    return active_prefix(store.predicate) is not None


def _runs(node: Any) -> bool:
    """Return whether a node is a loop with at least one iteration."""
    return isinstance(node, For) and isinstance(node.extent, Const) and node.extent.value > 0


def _stays(store: BufferStore, bound: set[Var]) -> bool:
    """Return whether the address of a store is invariant in the variables `bound`."""
    if store.buffer.data in bound or store.buffer.dtype.lanes > 1:
        return False
    return not any(
        isinstance(node, BufferLoad) or (isinstance(node, Var) and node in bound)
        for index in store.indices for node in walk(index)
    )
