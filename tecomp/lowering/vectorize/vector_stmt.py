"""Vectorize statements."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from tecomp.ir.arith.constraint_context import ConstraintContext
from tecomp.ir.arith.simplify import EMPTY, enter_loop
from tecomp.ir.arith.simplify_expr import constant_truth
from tecomp.ir.nodes.dtype import BOOL, INT64
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
    Not,
    Ramp,
    Var,
    binary,
    index_value,
    logical_and,
)
from tecomp.ir.nodes.operators import outside_function
from tecomp.ir.nodes.stmt import (
    Allocate,
    BufferStore,
    DeclBuffer,
    ExternCall,
    For,
    ForKind,
    IfThenElse,
    Let,
    Prefetch,
    SeqStmt,
    Stmt,
    seq,
)
from tecomp.ir.traversal.rewrite import (
    Task,
    bottom_up,
    children,
    conjuncts,
    contains,
    run_trampoline,
    statements_in,
    walk,
)
from tecomp.lowering.storage.buffer_rewrite import extent_variables, replace_variables
from tecomp.lowering.vectorize.unroll import remainder_extent
from tecomp.lowering.vectorize.vector_expr import (
    LaneMask,
    VectorContext,
    combine_masks,
    in_all_lanes,
    private_copy,
)

_Enclosing: TypeAlias = "Expr | tuple[Var, Expr]"


@dataclass(frozen=True, slots=True, eq=False)
class _VectorizedLoop:
    """Loop that is being vectorized.

    Attributes:
        var: Loop variable.
        start: Value of `var` in the first lane.
        extent: Number of iterations.
        lanes: Vector context.
        outer_variables: Variables of the enclosing loops.
        plain: Ids of statements that have a vector form at all depths, even under a mask.
    """

    var: Var
    start: Expr
    extent: Expr
    lanes: VectorContext
    outer_variables: Set[Var]
    plain: set[int] = field(default_factory=set)


@dataclass(frozen=True, slots=True, eq=False)
class _At:
    """Position inside the loop: the active lanes, and the control path of a single lane.

    Attributes:
        where: Active lanes.
        path: Lane-varying conditions and let bindings around the position, in their scalar form.
    """

    where: LaneMask
    path: tuple[_Enclosing, ...] = ()

    def then(self, where: LaneMask, *inner: _Enclosing) -> _At:
        return _At(where, (*self.path, *inner))


def is_vectorizable(loop: For) -> bool:
    """Return whether the body has a vector form.

    The body must not contain calls of external functions, allocations whose extents depend on
    variables bound inside the loop, or other views of allocated memory.
    """
    inside: dict[Var, None] = {loop.loop_var: None}
    allocated: set[Var] = set()
    for node in walk(loop.body):
        inside.update(dict.fromkeys(node.bound()) if isinstance(node, For | Let) else ())
        if isinstance(node, Allocate):
            allocated.add(node.buffer.data)
            if any(var in inside for var in extent_variables(node.buffer)):
                return False
        if isinstance(node, DeclBuffer) and node.buffer.data in allocated:
            return False
        if isinstance(node, ExternCall):
            return False
    return True


def vector_body(
    facts: ConstraintContext, loop: For, start: Expr, extent: Expr, lanes: int,
    loop_vars: Set[Var] = frozenset()
) -> Stmt:
    """Return the body of `loop` for `extent` iterations from `start` as vector code.

    Args:
        facts: Constraints that hold at the loop.
        loop: Loop to vectorize.
        start: Value of the loop variable in the first lane.
        extent: Number of iterations, `lanes` at most.
        lanes: Lane count of the vectors.
        loop_vars: Variables of the enclosing loops.
    """
    vector = VectorContext(facts, lanes)
    vector.values[loop.loop_var] = Ramp(start, index_value(1), lanes)
    vectorized = _VectorizedLoop(loop.loop_var, start, extent, vector, loop_vars)
    if facts.at_least(facts.terms.sum_of(extent), lanes):
        full: Stmt = run_trampoline(_statement(vectorized, loop.body, _At(LaneMask())))
        return full
    mask = Var("mask", BOOL.with_lanes(lanes))
    rest = remainder_extent(extent, lanes)
    active = Compare(CmpOp.LT, Ramp(index_value(0), index_value(1), lanes),
                     Broadcast(extent if rest is None else rest, lanes))
    body: Stmt = run_trampoline(_statement(vectorized, loop.body, _At(LaneMask(mask))))
    return Let(mask, active, body)


def _statement(loop: _VectorizedLoop, stmt: Stmt, ctx: _At) -> Task:
    if isinstance(stmt, Prefetch) or _needs_lanes(loop, stmt, ctx):
        return _by_lane(loop, stmt, ctx)
    match stmt:
        case BufferStore():
            return _store(loop, stmt, ctx)
        case SeqStmt(stmts):
            parts: list[Stmt] = []
            for part in stmts:
                parts.append((yield _statement(loop, part, ctx)))
            return seq(*parts)
        case IfThenElse():
            return (yield _branch(loop, stmt, ctx))
        case For():
            return (yield _inner_loop(loop, stmt, ctx))
        case Let():
            return (yield _let(loop, stmt, ctx))
        case Allocate(buffer, body):
            loop.lanes.private.add(buffer.data)
            return Allocate(private_copy(buffer, loop.lanes.lanes),
                            (yield _statement(loop, body, ctx)))
        case DeclBuffer(buffer, body):
            return DeclBuffer(buffer, (yield _statement(loop, body, ctx)))
    raise AssertionError(f"no vector form for a {type(stmt).__name__}")


def _needs_lanes(loop: _VectorizedLoop, stmt: Stmt, ctx: _At) -> bool:
    """Return whether an expression directly in a statement has no vector form."""
    parts = [child for child in children(stmt) if isinstance(child, Expr)]
    nodes = list(walk(*parts))
    calls = [node for node in nodes if isinstance(node, Call)]
    may_be_empty = ctx.where.may_be_empty or any(_chooses_by_lane(loop, call) for call in calls)
    if isinstance(stmt, BufferStore) and _is_unwieldy(loop, stmt, guarded=may_be_empty):
        return True
    # Vector operands of `dot`, and vectors reinterpreted as one scalar, act as 32-bit scalars.
    words = {id(arg) for node in calls
             if node.name == "dot" or (node.name == "reinterpret" and node.dtype.lanes == 1)
             for arg in node.args if isinstance(arg, BufferLoad) or _is_one_word(arg)}
    for node in nodes:
        if (isinstance(node, Call | BufferLoad) or node.dtype.lanes > 1) and (
            _is_unwieldy(loop, node, guarded=may_be_empty, is_taken=id(node) in words)
        ):
            return True
    return isinstance(stmt, BufferStore) and _is_contested(loop, stmt, ctx)


def _is_one_word(node: Expr) -> bool:
    return isinstance(node, Call) and node.name == "reinterpret" and node.args[0].dtype.lanes == 1


def _chooses_by_lane(loop: _VectorizedLoop, call: Call) -> bool:
    """Return whether `call` is an `if_then_else` whose condition differs between lanes."""
    return call.name == "if_then_else" and loop.lanes.varies(call.args[0])


def _is_unwieldy(
    loop: _VectorizedLoop, node: Any, *, guarded: bool, is_taken: bool = False
) -> bool:
    """Return whether `node` has no vector form.

    This holds for values that are vectors already (unless `is_taken`: consumed as one scalar),
    for calls of C functions, which take scalars, and for accesses with a vector index in an axis
    other than the last. In a `guarded` position, a uniform index with a load is a vector too.
    """
    if isinstance(node, Expr) and node.dtype.lanes > 1 and not is_taken:
        return True
    if isinstance(node, Call) and outside_function(node.name) is not None:
        return True
    if not isinstance(node, BufferLoad | BufferStore):
        return False
    if node.buffer.dtype.lanes > 1 and not is_taken:
        return True
    return any(loop.lanes.varies(index) or (guarded and _reads(index))
               for index in node.indices[:-1])


def _is_contested(loop: _VectorizedLoop, stmt: BufferStore, ctx: _At) -> bool:
    """Return whether all lanes store to one address, except one unconditional uniform store."""
    lanes = loop.lanes
    if stmt.buffer.data in lanes.private or lanes.varies(stmt.indices[-1]):
        return False
    parts = (stmt.value, *(() if stmt.predicate is None else (stmt.predicate,)))
    reads_own = any(
        isinstance(node, BufferLoad) and node.buffer.data is stmt.buffer.data
        for part in parts for node in walk(part)
    )
    return ctx.where.may_be_empty or reads_own or any(lanes.varies(part) for part in parts)


def _needs_lanes_below(loop: _VectorizedLoop, stmt: Stmt, ctx: _At) -> bool:
    """Return whether a statement in `stmt` has no vector form in a masked position."""
    if id(stmt) in loop.plain:
        return False
    guarded = _At(LaneMask(ctx.where.mask, may_be_empty=True))
    before = dict(loop.lanes.values), set(loop.lanes.private)
    found = False
    for node in walk(stmt):
        if isinstance(node, Let) and loop.lanes.varies(node.value):
            loop.lanes.values[node.var] = node.value
        if isinstance(node, Allocate):
            loop.lanes.private.add(node.buffer.data)
        if isinstance(node, Stmt) and _needs_lanes(loop, node, guarded):
            found = True
            break
    loop.lanes.values, loop.lanes.private = before
    if not found:
        # Cache the result: every binding in a chain of lets repeats this query.
        loop.plain.update(id(node) for node in walk(stmt, parts=statements_in))
    return found


def _by_lane(loop: _VectorizedLoop, stmt: Stmt, ctx: _At) -> Stmt:
    """Scalarize `stmt`: a serial loop over the lanes."""
    lane = Var(loop.var.name)
    body = stmt
    for step in reversed(ctx.path):
        body = Let(*step, body) if isinstance(step, tuple) else IfThenElse(step, body)
    lane_index = binary(BinOp.SUB, lane, loop.start)
    lanes = loop.lanes.lanes

    def rule(node: Any) -> Any:
        if not isinstance(node, BufferLoad | BufferStore):
            return None
        if node.buffer.data not in loop.lanes.private:
            return None
        *outer, last = node.indices
        copy = binary(BinOp.ADD, binary(BinOp.MUL, last, lanes), lane_index)
        return replace(node, buffer=private_copy(node.buffer, lanes), indices=(*outer, copy))

    body = bottom_up(replace_variables(body, {loop.var: lane}), rule)
    return For(lane, loop.start, loop.extent, ForKind.SERIAL, body)


def _store(loop: _VectorizedLoop, stmt: BufferStore, ctx: _At) -> Stmt:
    lanes = loop.lanes
    value = lanes.vector(stmt.value, ctx.where)
    indices = tuple([lanes.vector(index, ctx.where) for index in stmt.indices])
    predicate = None if stmt.predicate is None else lanes.vector(stmt.predicate, ctx.where)
    buffer, position = lanes.private_access(stmt.buffer, indices)
    if position[-1].dtype.lanes == 1:
        return BufferStore(buffer, value, position, predicate)
    where = None if predicate is None else lanes.spread(predicate)
    is_private = buffer.data in lanes.private and not ctx.where.may_be_empty
    if not (is_private and lanes.is_inside(buffer, position)):
        # A private copy is visible to its lane only, so inactive lanes may write to it.
        where = combine_masks(ctx.where.mask, where)
    return BufferStore(buffer, lanes.spread(value), position, where)


def _branch(loop: _VectorizedLoop, stmt: IfThenElse, ctx: _At) -> Task:
    lanes = loop.lanes
    terms = conjuncts(stmt.condition)
    uniform = [term for term in terms if not lanes.varies(term) and not _reads(term)]
    if stmt.else_case is None and 0 < len(uniform) < len(terms):
        varying = logical_and(*(term for term in terms if not any(term is s for s in uniform)))
        inner = IfThenElse(varying, stmt.then_case)
        return (yield _branch(loop, IfThenElse(logical_and(*uniform), inner), ctx))
    test = lanes.vector(stmt.condition, ctx.where)
    known = constant_truth(test)
    if known is not None:
        chosen = stmt.then_case if known else stmt.else_case
        return EMPTY if chosen is None else (yield _statement(loop, chosen, ctx))
    if test.dtype.lanes == 1:
        return (yield _uniform_branch(loop, stmt, test, ctx))
    if _reads(stmt.condition) and _needs_lanes_below(loop, stmt, ctx):
        return _by_lane(loop, stmt, ctx)
    return (yield _masked_branch(loop, stmt, test, ctx))


def _uniform_branch(loop: _VectorizedLoop, stmt: IfThenElse, test: Expr, ctx: _At) -> Task:
    """Keep a uniform condition as a branch."""
    facts = loop.lanes.facts
    cases: list[Stmt | None] = []
    for holds, case in ((True, stmt.then_case), (False, stmt.else_case)):
        state = facts.enter()
        facts.assume(test, holds=holds)
        loop.lanes.forget()
        cases.append(None if case is None else (yield _statement(loop, case, ctx)))
        facts.leave(state)
        loop.lanes.forget()
    return IfThenElse(test, cases[0] or EMPTY, cases[1])


def _masked_branch(loop: _VectorizedLoop, stmt: IfThenElse, test: Expr, ctx: _At) -> Task:
    """Turn a lane-varying condition into a mask that is computed once before the branch."""
    kind = BOOL.with_lanes(loop.lanes.lanes)
    outer = ctx.where.mask
    if stmt.else_case is None:
        everywhere = in_all_lanes(loop.lanes, test, loop.outer_variables)
        if everywhere is not None and outer is None and not ctx.where.may_be_empty:
            return (yield _with_and_without_mask(loop, stmt, everywhere, ctx))
        mask = Var("mask", kind)
        inside = ctx.then(LaneMask(mask, may_be_empty=True), stmt.condition)
        body = yield _statement(loop, stmt.then_case, inside)
        combined = combine_masks(outer, test)
        return Let(mask, test if combined is None else combined, body)
    holds = Var("holds", kind)
    then = yield _statement(
        loop, stmt.then_case, ctx.then(ctx.where.restricted(holds), stmt.condition)
    )
    other = yield _statement(
        loop, stmt.else_case, ctx.then(ctx.where.restricted(Not(holds)), Not(stmt.condition)))
    return Let(holds, test, seq(then, other))


def _with_and_without_mask(
    loop: _VectorizedLoop, stmt: IfThenElse, everywhere: Expr, ctx: _At
) -> Task:
    """Return `stmt` in two versions: maskless if the condition holds in all lanes, else masked."""
    facts = loop.lanes.facts
    state = facts.enter()
    facts.assume(everywhere)
    loop.lanes.forget()
    full = yield _statement(loop, stmt.then_case, ctx)
    facts.leave(state)
    loop.lanes.forget()
    part = yield _masked_branch(loop, stmt, loop.lanes.vector(stmt.condition, ctx.where),
                                replace(ctx, where=LaneMask(may_be_empty=True)))
    return IfThenElse(everywhere, full, part)


def _reads(expr: Expr) -> bool:
    """Return whether `expr` contains a load or a call, which must not be duplicated or hoisted."""
    return contains((BufferLoad, Call), expr)


def _let(loop: _VectorizedLoop, stmt: Let, ctx: _At) -> Task:
    lanes = loop.lanes
    value = lanes.vector(stmt.value, ctx.where)
    if value.dtype.lanes == 1:
        state = lanes.facts.enter()
        lanes.facts.let(stmt.var, value)
        lanes.forget()
        body = yield _statement(loop, stmt.body, ctx)
        lanes.facts.leave(state)
        lanes.forget()
        return Let(stmt.var, value, body)
    if _reads(stmt.value) and _needs_lanes_below(loop, stmt.body, ctx):
        return _by_lane(loop, stmt, ctx)
    inside = ctx.then(ctx.where, (stmt.var, stmt.value))
    if isinstance(value, Ramp):
        lanes.values[stmt.var] = value
        return (yield _statement(loop, stmt.body, inside))
    vector = Var(stmt.var.name, stmt.var.dtype.with_lanes(lanes.lanes))
    lanes.values[stmt.var] = vector
    return Let(vector, value, (yield _statement(loop, stmt.body, inside)))


def _inner_loop(loop: _VectorizedLoop, stmt: For, ctx: _At) -> Task:
    lanes, facts = loop.lanes, loop.lanes.facts
    start = lanes.vector(stmt.min, ctx.where)
    extent = lanes.vector(stmt.extent, ctx.where)
    if start.dtype.lanes > 1 or extent.dtype.lanes > 1:
        hull = _hull(loop, stmt)
        return _by_lane(loop, stmt, ctx) if hull is None else (
            yield _inner_loop(loop, hull, ctx))
    state = facts.enter()
    enter_loop(facts, stmt.loop_var, start, extent)
    lanes.forget()
    body = yield _statement(loop, stmt.body, ctx)
    facts.leave(state)
    lanes.forget()
    return For(stmt.loop_var, start, extent, stmt.kind, body, stmt.thread)


def _hull(loop: _VectorizedLoop, stmt: For) -> For | None:
    """Return a masked loop over the hull of lane-varying bounds, or None if it is not found."""
    end = binary(BinOp.ADD, stmt.min, stmt.extent)
    low = run_trampoline(_extreme(loop, stmt.min, greatest=False))
    high = run_trampoline(_extreme(loop, end, greatest=True))
    if low is None or high is None:
        return None
    inside = logical_and(*(
        Compare(op, stmt.loop_var, bound)
        for op, bound in ((CmpOp.GE, stmt.min), (CmpOp.LT, end)) if loop.lanes.varies(bound)
    ))
    extent = loop.lanes.simple(binary(BinOp.SUB, high, low))
    body = IfThenElse(inside, stmt.body)
    return For(stmt.loop_var, loop.lanes.simple(low), extent, stmt.kind, body, stmt.thread)


def _extreme(loop: _VectorizedLoop, expr: Expr, *, greatest: bool) -> Task:
    """Return the minimum or maximum of `expr` over all lanes, or None if it is not found."""
    if not loop.lanes.varies(expr):
        return None if _reads(expr) else expr
    match expr:
        case Var() if expr is loop.var:
            last = binary(BinOp.SUB, binary(BinOp.ADD, loop.start, loop.extent), index_value(1))
            return last if greatest else loop.start
        case Binary(BinOp.ADD | BinOp.SUB | BinOp.MIN | BinOp.MAX as op, a, b):
            if expr.dtype != INT64:
                return None
            x = yield _extreme(loop, a, greatest=greatest)
            y = yield _extreme(loop, b, greatest=greatest != (op is BinOp.SUB))
            return None if x is None or y is None else binary(op, x, y)
        case Binary(BinOp.MUL | BinOp.FLOORDIV as op, a, Const(c)) if expr.dtype == INT64 and (
            c > 0 or op is BinOp.MUL
        ):
            x = yield _extreme(loop, a, greatest=greatest == (c > 0))
            return None if x is None else binary(op, x, expr.b)
    return None
