"""Simplify index arithmetic and remove dead statements, loops and buffers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from operator import is_
from typing import Any, TypeAlias, TypeVar

from tecomp.ir.arith.constraint_context import ConstraintContext
from tecomp.ir.arith.intervals import Interval
from tecomp.ir.arith.quasi_affine import QuasiAffine
from tecomp.ir.arith.simplify_expr import (
    constant_truth,
    expression,
    is_pure,
    simplify_guarded_indices,
)
from tecomp.ir.nodes.dtype import INT64
from tecomp.ir.nodes.expr import (
    BinOp,
    BufferLoad,
    Call,
    CmpOp,
    Compare,
    Const,
    Expr,
    Not,
    Var,
    index_value,
    is_const,
)
from tecomp.ir.nodes.operators import SizeBounds
from tecomp.ir.nodes.stmt import (
    Allocate,
    ArrayArgument,
    Buffer,
    BufferRealize,
    BufferStore,
    DeclBuffer,
    ExternCall,
    For,
    IfThenElse,
    Let,
    OperandTransfer,
    Passed,
    Prefetch,
    PrimFunc,
    Range,
    SeqStmt,
    Stmt,
    TensorOp,
    array_argument,
    seq,
)
from tecomp.ir.nodes.structural_equality import structural_equal
from tecomp.ir.traversal.analyses import nonnegative_variables
from tecomp.ir.traversal.rewrite import (
    Task,
    bottom_up,
    free_variables,
    map_body,
    operands_of,
    run_trampoline,
    walk,
)

N = TypeVar("N", Expr, Stmt, PrimFunc)
Bound: TypeAlias = "int | Expr | None"
Ranges: TypeAlias = "Mapping[Var, tuple[Bound, Bound]]"

EMPTY = SeqStmt(())
_WITH_BUFFER = (BufferLoad, BufferStore, Allocate, BufferRealize, DeclBuffer)


def simplify(node: N, ranges: Ranges | None = None, *, since: PrimFunc | None = None) -> N:
    """Return an equivalent simplified node.

    Indices become sums of terms in source order. Quotients, remainders, minima, comparisons and
    conditions are evaluated where loop bounds and path conditions permit. Statements that never
    run, loops of one iteration, unused buffers and unused variables are removed, together with
    layout maps and pad values of removed buffers. Index arithmetic is int64 and assumed not to
    overflow; arithmetic on data is preserved bit for bit.

    Args:
        node: Expression, statement or function.
        ranges: Inclusive minimum and maximum of free variables; None where unbounded.
        since: Simplified function from which `node`, a function, was derived by changing memory
            accesses only. Nodes shared by both functions are not simplified again.

    >>> from tecomp.ir.nodes.expr import Var
    >>> co, ci = Var("co"), Var("ci")
    >>> simplify((co * 4 + ci) // 4, {ci: (0, 3)}) is co
    True
    """
    facts = facts_of(ranges or {})
    result: Any
    if isinstance(node, Expr):
        result = run_trampoline(expression(facts, node))
    elif isinstance(node, PrimFunc):
        facts = function_facts(node)
        if since is not None:
            facts.simple = frozenset(map(id, walk(since.body)))
        func = map_body(node, lambda body: _remove_unused(run_trampoline(_statement(facts, body))))
        result = _remove_buffer_metadata(func)
    else:
        result = _remove_unused(run_trampoline(_statement(facts, node)))
    simple: N = result
    return simple


def _remove_buffer_metadata(func: PrimFunc) -> PrimFunc:
    """Remove layout maps and pad values of buffers that no longer exist from `func`."""
    if not func.layout_maps and not func.pad_values:
        return func
    memory = {p.data for p in func.params if isinstance(p, Buffer)}
    memory |= {n.buffer.data for n in walk(func.body) if isinstance(n, Allocate | BufferRealize)}
    return replace(
        func,
        layout_maps=tuple(entry for entry in func.layout_maps if entry[0] in memory),
        pad_values=tuple(entry for entry in func.pad_values if entry[0] in memory),
    )


def bounds(expr: Expr, ranges: Ranges | None = None) -> Interval:
    """Return the minimum and maximum of an int64 scalar; None for an unknown bound.

    >>> from tecomp.ir.nodes.expr import Var
    >>> i = Var("i")
    >>> bounds(i * 8 + 3, {i: (0, 9)})
    (3, 75)
    """
    if isinstance(expr, Const) and expr.dtype.is_integer:
        # The bounds of a literal do not depend on `ranges`.
        return int(expr.value), int(expr.value)
    return constant_bounds(facts_of(ranges or {}), expr)


def constant_bounds(facts: ConstraintContext, expr: Expr) -> Interval:
    """Return the minimum and maximum of an int64 scalar under `facts`; None where unknown."""
    facts.begin()
    simple = run_trampoline(expression(facts, expr))
    total = facts.terms.sum_of(simple)
    if not facts.is_exact(total):
        return None, None
    low, high = facts.greatest(total.times(-1)), facts.greatest(total)
    return -low if low is not None else None, high


def constant_upper_bound(expr: Expr, ranges: Ranges | None = None) -> int | None:
    """Return a constant upper bound of an int64 scalar, or None if none is known.

    >>> from tecomp.ir.nodes.expr import BinOp, Var, binary
    >>> n, io = Var("n"), Var("io")
    >>> constant_upper_bound(binary(BinOp.MIN, 8, n - io * 8))
    8
    """
    return bounds(expr, ranges)[1]


def facts_of(ranges: Ranges) -> ConstraintContext:
    """Return a constraint context with the inclusive ranges of variables."""
    facts = ConstraintContext()
    for var, (low, high) in ranges.items():
        facts.bind(var, *(
            None if end is None
            else facts.terms.sum_of(run_trampoline(expression(facts, index_value(end))))
            for end in (low, high)
        ))
    return facts


def function_facts(func: PrimFunc) -> ConstraintContext:
    """Return the constraint context of a function.

    Extents of arrays are nonnegative, and sizes are within their declared bounds.
    """
    facts = ConstraintContext()
    scalars = [var for var in func.params if isinstance(var, Var) and var.bounds is not None]
    for size in dict.fromkeys((*nonnegative_variables(func), *scalars)):
        bounds = size.bounds or SizeBounds()
        high = None if bounds.maximum is None else QuasiAffine({}, bounds.maximum)
        facts.bind(size, QuasiAffine({}, bounds.minimum), high)
    return facts


def _statement(facts: ConstraintContext, stmt: Stmt) -> Task:
    """Simplify `stmt` as a trampoline task; a statement without effect gives `EMPTY`."""
    if id(stmt) in facts.simple and not facts.values and not facts.buffers:
        return stmt
    facts.begin()
    return (yield _STATEMENTS.get(type(stmt), _declaration)(facts, stmt))


def _sequence(facts: ConstraintContext, stmt: SeqStmt) -> Task:
    parts: list[Stmt] = []
    for part in stmt.stmts:
        parts.append((yield _statement(facts, part)))
    # By identity, because `==` compares whole trees.
    is_unchanged = all(map(is_, parts, stmt.stmts)) and SeqStmt not in map(type, parts)
    return stmt if is_unchanged else seq(*parts)


def _transfer(facts: ConstraintContext, stmt: Prefetch | OperandTransfer) -> Task:
    simple = yield expression(facts, stmt.element)
    if simple is stmt.element:
        return stmt
    return replace(stmt, element=simple) if isinstance(simple, BufferLoad) else EMPTY


def _extern_call(facts: ConstraintContext, stmt: ExternCall) -> Task:
    args: list[Passed] = []
    for arg in stmt.arguments:
        if isinstance(arg, ArrayArgument):
            args.append((yield _array_argument(facts, arg)))
        elif isinstance(arg, Expr):
            args.append((yield expression(facts, arg)))
        else:
            args.append(arg)
    work = stmt.multiply_adds
    if work is not None:
        work = yield expression(facts, work)
    if work is stmt.multiply_adds and all(map(is_, args, stmt.arguments)):
        return stmt
    return replace(stmt, arguments=tuple(args), multiply_adds=work)


def _array_argument(facts: ConstraintContext, stmt: ArrayArgument) -> Task:
    """Simplify an array argument, whose indices are within its shape; the array may be empty."""
    shape: list[Expr] = []
    for extent in stmt.shape:
        shape.append((yield expression(facts, extent)))
    state = facts.enter()
    for var, extent in zip(stmt.variables, shape, strict=True):
        enter_loop(facts, var, Const(0, INT64), extent)
    element, indices = stmt.element, list[Expr]()
    for index in element.indices:
        indices.append((yield expression(facts, index)))
    buffer = facts.buffer(element.buffer)
    facts.leave(state)
    pairs = (*shape, *indices), (*stmt.shape, *element.indices)
    if buffer is element.buffer and all(map(is_, *pairs)):
        return stmt
    return array_argument(
        buffer, stmt.variables, tuple(shape), tuple(indices), is_written=stmt.is_written)


def _tensor_op(facts: ConstraintContext, stmt: TensorOp) -> Task:
    body = yield _statement(facts, stmt.body)
    if _is_empty(body):
        return EMPTY
    operands = yield _statement(facts, stmt.operands)
    if body is stmt.body and operands is stmt.operands:
        return stmt
    return replace(stmt, operands=operands, body=body)


def _declaration(facts: ConstraintContext, stmt: Stmt) -> Task:
    """Simplify `Allocate`, `BufferRealize` and `DeclBuffer`, including symbolic extents."""
    if not isinstance(stmt, Allocate | BufferRealize | DeclBuffer):
        return stmt
    state = facts.enter()
    buffer = yield _simplify_declaration(facts, stmt.buffer)
    body = yield _statement(facts, stmt.body)
    facts.leave(state)
    if _is_empty(body):
        return EMPTY
    if isinstance(stmt, BufferRealize):
        ranges: list[Range] = []
        for part in stmt.bounds:
            start = yield expression(facts, part.min)
            extent = yield expression(facts, part.extent)
            ranges.append(Range(start, extent))
        ahead = None if stmt.ahead is None else (yield expression(facts, stmt.ahead))
        carried = None if stmt.carried is None else (yield expression(facts, stmt.carried))
        return BufferRealize(buffer, tuple(ranges), body, stmt.aligns, ahead, carried)
    return stmt if buffer is stmt.buffer and body is stmt.body else type(stmt)(buffer, body)


def _simplify_declaration(facts: ConstraintContext, buffer: Buffer) -> Task:
    """Simplify the extents of `buffer` and record it in `facts.buffers` for its accesses."""
    key = facts.buffer_key(buffer)
    if key is None:
        return buffer
    extents: list[Any] = []
    for extent in buffer.entries:
        simple = extent if isinstance(extent, int) else (yield expression(facts, extent))
        extents.append(simple)
    facts.buffers[key] = buffer.with_entries(extents)
    return facts.buffers[key]


def _is_empty(stmt: Stmt | None) -> bool:
    return stmt is None or (isinstance(stmt, SeqStmt) and not stmt.stmts)


def _loop(facts: ConstraintContext, loop: For) -> Task:
    start = yield expression(facts, loop.min)
    extent = yield expression(facts, loop.extent)
    count = facts.terms.sum_of(extent)
    if facts.is_exact(count) and facts.at_most(count, 0):
        return EMPTY
    state = facts.enter()
    is_one = not count.terms and count.const == 1
    # The variable of a core loop selects the core, and code without a core loop runs on core 0:
    # the loop can be removed only if it starts at 0.
    if is_one and (not loop.thread or is_const(start, 0)):
        facts.values[loop.loop_var] = start
        body = yield _statement(facts, loop.body)
        facts.leave(state)
        return body
    enter_loop(facts, loop.loop_var, start, extent)
    body = yield _statement(facts, loop.body)
    facts.leave(state)
    if _is_empty(body):
        return EMPTY
    if start is loop.min and extent is loop.extent and body is loop.body:
        return loop
    return For(loop.loop_var, start, extent, loop.kind, body, loop.thread)


def enter_loop(facts: ConstraintContext, var: Var, start: Expr, extent: Expr) -> None:
    """Add the facts that hold inside a loop: its variable is within bounds, its extent positive."""
    first, count = facts.terms.sum_of(start), facts.terms.sum_of(extent)
    if not (facts.is_exact(first) and facts.is_exact(count)):
        return
    for node in operands_of(BinOp.MIN, extent):
        if not isinstance(node, Const):
            facts.assume(Compare(CmpOp.GE, node, index_value(1)))
            _assume_factors(facts, node)
    facts.bind(var, first, first.plus(count).shifted(-1))


def _assume_factors(facts: ConstraintContext, extent: Expr) -> None:
    """Record that the factors of a positive product are positive if none is negative."""
    only = facts.terms.sum_of(extent).only()
    if only is None or only[1] < 0:
        return
    factors = facts.terms.factors(only[0])
    if all(facts.at_least(facts.terms.sum_of(factor), 0) for factor in factors):
        for factor in factors:
            if not facts.at_least(facts.terms.sum_of(factor), 1):
                facts.assume(Compare(CmpOp.GE, factor, index_value(1)))


def _branch(facts: ConstraintContext, stmt: IfThenElse) -> Task:
    condition = yield expression(facts, stmt.condition)
    known = constant_truth(condition) if condition.dtype.lanes == 1 else None
    if known is not None:
        chosen = stmt.then_case if known else stmt.else_case
        return EMPTY if chosen is None else (yield _statement(facts, chosen))
    cases: list[Stmt | None] = []
    for holds, case in ((True, stmt.then_case), (False, stmt.else_case)):
        state = facts.enter()
        facts.assume(condition, holds=holds)
        cases.append(None if case is None else (yield _statement(facts, case)))
        facts.leave(state)
    then_case, else_case = cases
    if _is_empty(else_case):
        if _is_empty(then_case) and is_pure(condition):
            return EMPTY
        else_case = None
    elif _is_empty(then_case):
        # if c: pass, else: s  ==  if not c: s
        condition = yield expression(facts, Not(condition))
        then_case, else_case = else_case, None
    return IfThenElse(condition, EMPTY if then_case is None else then_case, else_case)


def _store(facts: ConstraintContext, stmt: BufferStore) -> Task:
    value = yield expression(facts, stmt.value)
    if stmt.predicate is None:
        indices: list[Expr] = []
        for index in stmt.indices:
            indices.append((yield expression(facts, index)))
        buffer = facts.buffer(stmt.buffer)
        if buffer is stmt.buffer and value is stmt.value and all(map(is_, indices, stmt.indices)):
            return stmt
        return BufferStore(buffer, value, tuple(indices))
    predicate = yield expression(facts, stmt.predicate)
    known = constant_truth(predicate)
    if known is False:
        return EMPTY
    where = yield simplify_guarded_indices(facts, stmt.indices, predicate)
    return BufferStore(facts.buffer(stmt.buffer), value, where, None if known else predicate)


def _let(facts: ConstraintContext, stmt: Let) -> Task:
    value = yield expression(facts, stmt.value)
    state = facts.enter()
    known = isinstance(value, Var | Const) or constant_truth(value) is not None
    if known:
        facts.values[stmt.var] = value
    else:
        facts.let(stmt.var, value)
    body = yield _statement(facts, stmt.body)
    facts.leave(state)
    if known or _is_empty(body):
        return body
    return Let(stmt.var, value, body)


_STATEMENTS: dict[type, Callable[[ConstraintContext, Any], Task]] = {
    For: _loop,
    IfThenElse: _branch,
    BufferStore: _store,
    Let: _let,
    Prefetch: _transfer,
    OperandTransfer: _transfer,
    TensorOp: _tensor_op,
    ExternCall: _extern_call,
    SeqStmt: _sequence,
}


def join_branches(func: PrimFunc) -> PrimFunc:
    """Return an equivalent function without consecutive branches under equal conditions.

        if c: a  else: b;  if c: d  else: e   ==   if c: a; d  else: b; e

    The statements cannot change `c`, which reads variables only. A vector or a tile that stays in
    registers is then computed in one branch, without a decision between its steps.
    """
    return map_body(func, lambda body: bottom_up(body, _join, kind=SeqStmt))


def _join(sequence: SeqStmt) -> Stmt:
    parts: list[Stmt] = []
    for part in sequence.stmts:
        last = parts[-1] if parts else None
        if (
            isinstance(last, IfThenElse) and isinstance(part, IfThenElse)
            and structural_equal(last.condition, part.condition)
            and not any(isinstance(node, BufferLoad | Call) for node in walk(part.condition))
        ):
            parts[-1] = IfThenElse(
                part.condition, _join_cases(last.then_case, part.then_case),
                None if last.else_case is None and part.else_case is None
                else _join_cases(last.else_case, part.else_case),
            )
        else:
            parts.append(part)
    return sequence if len(parts) == len(sequence.stmts) else seq(*parts)


def _join_cases(first: Stmt | None, second: Stmt | None) -> Stmt:
    joined = seq(*[case for case in (first, second) if case is not None])
    return _join(joined) if isinstance(joined, SeqStmt) else joined


def _remove_unused(root: Stmt) -> Stmt:
    """Remove buffers that are never accessed and variables that are never used from `root`."""
    while True:
        used, scopes = _used_variables(root)
        if not any(_without_unused(used, scope) for scope in scopes):
            return root
        root = bottom_up(
            root, partial(_without_unused, used), kind=(Allocate, BufferRealize, Let, SeqStmt))


def _used_variables(root: Stmt) -> tuple[set[Var], list[Stmt]]:
    """Return the used variables and buffer addresses, and the statements that introduce one."""
    used: set[Var] = set()
    scopes: list[Stmt] = []
    for node in walk(root):
        kind = type(node)
        if isinstance(node, Var):
            used.add(node)
        if kind not in _WITH_BUFFER:
            if kind is Let:
                scopes.append(node)
            continue
        buffer = node.buffer
        if kind in (Allocate, BufferRealize):
            scopes.append(node)
        else:
            used.add(buffer.data)
        for extent in buffer.entries:
            if isinstance(extent, Expr):
                used.update(free_variables(extent))
    return used, scopes


def _without_unused(used: set[Var], node: Any) -> Stmt | None:
    match node:
        case Allocate(buffer, body) | BufferRealize(buffer, _, body) if buffer.data not in used:
            return body
        case Let(var, value, body) if var not in used and is_pure(value):
            return body
        case SeqStmt(stmts) if any(isinstance(part, SeqStmt) for part in stmts):
            return seq(*stmts)
    return None
