"""Unroll loops, and recognize loops with a possibly partial last iteration."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from tecomp.errors import LowerError
from tecomp.ir.arith.constraint_context import ConstraintContext
from tecomp.ir.arith.simplify import constant_upper_bound
from tecomp.ir.nodes.dtype import INT64
from tecomp.ir.nodes.expr import (
    Binary,
    BinOp,
    BufferLoad,
    Call,
    CmpOp,
    Compare,
    Const,
    Expr,
    Var,
    binary,
    index_value,
)
from tecomp.ir.nodes.stmt import (
    BufferStore,
    For,
    ForKind,
    IfThenElse,
    Let,
    Prefetch,
    PrimFunc,
    SeqStmt,
    Stmt,
    seq,
)
from tecomp.ir.traversal.rewrite import (
    Task,
    bottom_up,
    children,
    fold,
    map_body,
    post_order,
    replace_children,
    run_trampoline,
    statements_in,
    walk,
)
from tecomp.lowering.storage.buffer_rewrite import buffers_in, extent_variables, replace_variables

_GLOBAL = "global"


def remainder_extent(extent: Expr, max_extent: int) -> Expr | None:
    """Return `rest` if the extent is `min(most, rest)`, else None.

    >>> from tecomp.ir.nodes.expr import Var, binary
    >>> n = Var("n")
    >>> print(remainder_extent(binary(BinOp.MIN, Const(8), n - 16), 8), remainder_extent(n - 16, 8))
    n - 16 None
    """
    match extent:
        case Binary(BinOp.MIN, Const(value), rest) if value == max_extent:
            return rest
    return None


def has_whole_form(facts: ConstraintContext, others: Sequence[Expr], rest: Expr, full: int) -> bool:
    """Return whether a condition in `others` implies `rest >= most`.

    `others` are the conditions in whose else branch the loop is. If one implies that all `full`
    iterations remain, the then branch holds the full version of the loop, and this loop is the
    partial version.
    """
    total = facts.terms.sum_of(rest)
    for condition in others:
        state = facts.enter()
        facts.assume(condition)
        is_whole = facts.at_least(total, full)
        facts.leave(state)
        if is_whole:
            return True
    return False


def indexes_registers(loop: For) -> bool:
    """Return whether the loop variable indexes non-global memory, which may become registers.

    Registers cannot be indexed at run time, so such a loop must be fully unrolled.
    """
    return any(
        isinstance(node, BufferLoad | BufferStore)
        and not node.buffer.scope.startswith(_GLOBAL)
        and any(part is loop.loop_var for part in walk(*node.indices))
        for node in walk(loop.body)
    )


LIMIT = 4096
_MAX_GUARDED_COPIES = 16
_GUARDED_PER_VERSION = 4
"""Guarded copies in each version of a loop around them.

With 15 guarded copies in the loop along the depth, a partial tile of a product takes about 8 times
as long as a full one.
"""
_DIVISIONS = (BinOp.DIV, BinOp.FLOORDIV, BinOp.MOD)


def unroll_loops(func: PrimFunc, limit: int = LIMIT) -> PrimFunc:
    """Replace each `unrolled` loop by one copy of its body for each iteration, in order.

    A loop with a small constant upper bound on its extent, such as `min(8, n - 8*io)`, becomes two
    versions: the full version has one copy for each iteration up to the bound, and the partial
    version covers smaller extents. The full version is omitted if the enclosing conditions already
    select it elsewhere. The partial version consists of guarded copies if the loop indexes memory
    that may become registers, and is a serial loop otherwise.

    A loop becomes serial instead if its extent has no such bound, if the two versions would exceed
    `limit` statements, or if its body is a masked vector tail that indexes no registers: copies
    would share no computation. Inner loops may still be unrolled.

    A loop-invariant condition that is the whole body of a serial or unrolled loop is hoisted out
    of the loop, and so is a loop-invariant let binding.

    Args:
        func: Function to rewrite.
        limit: Maximum number of statements that one loop may become.

    Raises:
        LowerError: If a loop of constant extent would exceed `limit`.
    """
    max_counts = _rests(func)

    def unrolled(loop: For) -> Stmt:
        result: Stmt = run_trampoline(_loop(loop, limit, max_counts))
        return result

    return map_body(func, lambda body: bottom_up(body, unrolled, kind=For))


def mark_unrolled(root: Stmt, limit: int) -> Stmt:
    """Mark the loops of `root` as unrolled that unroll to at most `limit` statements.

    Inner loops are decided first. A loop that contains a loop that is not unrolled stays as it is;
    the body of a vectorized loop counts once. `limit` = 0 marks no loop.

    Source:
        The pragma `auto_unroll_max_step` of TVM (`UnrollLoop`).
    """
    if not limit:
        return root

    def marked(node: Any, inner: list[tuple[Stmt, int, bool]]) -> tuple[Stmt, int, bool]:
        """Return the new statement, its unrolled size, and whether it contains a rolled loop."""
        done = {id(old): new for old, (new, _, _) in zip(_inside(node), inner, strict=True)}
        rebuilt: Stmt = replace_children(node, done)
        count = sum(n for _, n, _ in inner) + isinstance(rebuilt, BufferStore | Prefetch)
        is_rolled = any(loop for _, _, loop in inner)
        if not isinstance(rebuilt, For) or rebuilt.kind is ForKind.VECTORIZED:
            return rebuilt, count, is_rolled
        trip_count = int(rebuilt.extent.value) if isinstance(rebuilt.extent, Const) else None
        fits = trip_count is not None and not is_rolled and trip_count * count <= min(limit, LIMIT)
        if trip_count is None or not fits or rebuilt.kind is ForKind.PARALLEL:
            return rebuilt, count, True
        return replace(rebuilt, kind=ForKind.UNROLLED), trip_count * count, False

    return fold(root, marked, _inside)[0]


def _inside(node: Any) -> list[Stmt]:
    return [child for child in children(node) if isinstance(child, Stmt)]


def _rests(func: PrimFunc) -> dict[Var, int]:
    """Return the maximum trip counts of loops that enclosing conditions limit to few iterations.

    These are partial versions whose full version is in another branch, and loops whose extents are
    bounded by enclosing conditions only.
    """
    facts, found = ConstraintContext(), dict[Var, int]()
    worklist: list[tuple[Any, tuple[tuple[Expr, bool], ...]]] = [(func.body, ())]
    while worklist:
        node, known = worklist.pop()
        if isinstance(node, For) and node.kind is ForKind.UNROLLED and known:
            count = _trip_count(node)
            rest = None if count is None else remainder_extent(node.extent, count)
            others = [condition for condition, holds in known if not holds]
            if count and rest is not None and has_whole_form(facts, others, rest, count):
                found[node.loop_var] = count
            elif count is None and (upper := _bound_where(facts, known, node.extent)):
                found[node.loop_var] = upper
        for child in _inside(node):
            path = known
            if isinstance(node, IfThenElse):
                path = (*known, (node.condition, child is node.then_case))
            worklist.append((child, path))
    return found


def _bound_where(
    facts: ConstraintContext, known: Sequence[tuple[Expr, bool]], extent: Expr
) -> int | None:
    """Return the upper bound of an extent under conditions if it is in [1, _MAX_GUARDED_COPIES]."""
    state = facts.enter()
    for condition, holds in known:
        facts.assume(condition, holds=holds)
    upper = facts.greatest(facts.terms.sum_of(extent))
    facts.leave(state)
    return upper if upper is not None and 0 < upper <= _MAX_GUARDED_COPIES else None


def _loop(loop: For, limit: int, max_counts: Mapping[Var, int]) -> Task:
    """Hoist loop-invariant conditions and bindings out of a loop, and unroll the loop."""
    if loop.kind not in (ForKind.SERIAL, ForKind.UNROLLED):
        return loop
    match loop.body:
        case IfThenElse(condition, then, other) if _stays_the_same(condition, loop):
            first = yield _loop(replace(loop, body=then), limit, max_counts)
            second = None
            if other is not None:
                second = yield _loop(replace(loop, body=other), limit, max_counts)
            return IfThenElse(condition, first, second)
        case Let(var, value, body) if _stays_the_same(value, loop) and _is_defined(value):
            return Let(var, value, (yield _loop(replace(loop, body=body), limit, max_counts)))
        case SeqStmt(parts) if loop.kind is ForKind.SERIAL and parts:
            return _versions_by_extent(loop, parts)
    return loop if loop.kind is ForKind.SERIAL else _unroll(loop, limit, max_counts)


def _versions_by_extent(loop: For, parts: Sequence[Stmt]) -> Stmt:
    """Split a serial loop around guarded copies by the loop-invariant extent that guards them.

    Each version has at most `_GUARDED_PER_VERSION` guards per iteration of the loop:

        if extent > 4:                    # for copies 0 to 7
            for k: copy 0; ...; copy 4; if extent > 5: copy 5; ...
        else:
            for k: if extent > 0: copy 0; ...; if extent > 3: copy 3

    Other loops are returned unchanged.
    """
    limits = [_guard(part) for part in parts]
    extent = None if limits[0] is None else limits[0][0]
    counts = [limit[1] for limit in limits if limit is not None and limit[0] is extent]
    is_split = extent is not None and _stays_the_same(extent, loop)
    if not is_split or counts != list(range(len(parts))) or len(parts) <= _GUARDED_PER_VERSION:
        return loop
    assert extent is not None
    result: Stmt | None = None
    for low in range(0, len(parts), _GUARDED_PER_VERSION):
        copies = [
            part.then_case if low and count <= low else part
            for count, part in enumerate(parts[: low + _GUARDED_PER_VERSION])
            if isinstance(part, IfThenElse)
        ]
        version = replace(loop, body=seq(*copies))
        condition = Compare(CmpOp.GT, extent, index_value(low))
        result = version if result is None else IfThenElse(condition, version, result)
    assert result is not None
    return result


def _guard(part: Stmt) -> tuple[Expr, int] | None:
    """Return `extent` and `count` of a statement `if extent > count: ...`, else None."""
    match part:
        case IfThenElse(Compare(CmpOp.GT, extent, Const(count)), _, None):
            return extent, int(count)
    return None


def _stays_the_same(condition: Expr, loop: For) -> bool:
    parts = walk(condition)
    return not any(part is loop.loop_var or isinstance(part, BufferLoad | Call) for part in parts)


def _is_masked(body: Stmt) -> bool:
    """Return whether every store is masked by a variable bound outside: a masked vector tail."""
    nodes = list(walk(body))
    named = {node.var for node in nodes if isinstance(node, Let)}
    masks = [node.predicate for node in nodes if isinstance(node, BufferStore)]
    return bool(masks) and all(isinstance(mask, Var) and mask not in named for mask in masks)


def _is_defined(value: Expr) -> bool:
    """Return whether `value` contains no division by a non-constant, so it can be hoisted."""
    return not any(
        isinstance(node, Binary) and node.op in _DIVISIONS and not isinstance(node.b, Const)
        for node in walk(value)
    )


def _unroll(loop: For, limit: int, max_counts: Mapping[Var, int]) -> Stmt:
    trip_count = _trip_count(loop)
    if trip_count is None:
        trip_count = max_counts.get(loop.loop_var)
    if _is_masked(loop.body) and not indexes_registers(loop):
        return replace(loop, kind=ForKind.SERIAL)
    # The copies of an unrolled inner loop share subexpressions, which are counted once.
    statements = fold(loop.body, lambda node, inside: sum(inside) + isinstance(
        node, BufferStore | Let | Prefetch), statements_in)
    forms = 1 if isinstance(loop.extent, Const) else 2
    if trip_count is not None and forms == 1 and trip_count * statements > limit:
        raise LowerError(
            "lower: loop {loop_var} is unrolled, but its {trip_count} iterations of {statements} "
            "statements would become {unrolled_count} statements, which exceeds the limit of "
            "{limit}; split it and unroll the inner part, or do not unroll a loop inside it",
            kind="limit-exceeded", loop_var=loop.loop_var.name, trip_count=trip_count,
            statements=statements, unrolled_count=trip_count * statements, limit=limit,
        )
    if trip_count is None or forms * trip_count * statements > limit:
        return replace(loop, kind=ForKind.SERIAL)
    in_shapes = any(loop.loop_var in extent_variables(b) for b in buffers_in(loop.body))
    changing = [] if in_shapes else _dependent_nodes(loop.body, loop.loop_var)
    copies = tuple([
        _copy_with_shapes(loop, iteration) if in_shapes else
        _with_value(loop.body, changing, loop.loop_var, _value(loop, iteration))
        for iteration in range(trip_count)
    ])
    full = SeqStmt(copies).stands_for
    if isinstance(loop.extent, Const):
        return full
    remaining = remainder_extent(loop.extent, trip_count)
    if in_shapes or indexes_registers(loop):
        partial_loop = _guarded_copies(loop.extent if remaining is None else remaining, copies)
    else:
        partial_loop = replace(loop, kind=ForKind.SERIAL)
    return partial_loop if remaining is None or loop.loop_var in max_counts else IfThenElse(
        Compare(CmpOp.GE, remaining, index_value(trip_count)), full, partial_loop)


def _trip_count(loop: For) -> int | None:
    """Return the number of copies: the extent, or its small constant upper bound; else None."""
    if isinstance(loop.extent, Const):
        return max(int(loop.extent.value), 0)
    upper = constant_upper_bound(loop.extent)
    return max(upper, 0) if upper is not None and upper <= _MAX_GUARDED_COPIES else None


def _guarded_copies(extent: Expr, copies: Sequence[Stmt]) -> Stmt:
    """Return the copies, each guarded by its iteration being less than `extent`."""
    return seq(*(
        IfThenElse(Compare(CmpOp.GT, extent, index_value(iteration)), seq(copy))
        for iteration, copy in enumerate(copies)
    ))


def _value(loop: For, iteration: int) -> Expr:
    return binary(BinOp.ADD, loop.min, index_value(iteration)) if iteration else loop.min


def _copy_with_shapes(loop: For, iteration: int) -> Stmt:
    """Return the body for one iteration when buffer shapes depend on the loop variable."""
    value = _value(loop, iteration)
    return bottom_up(replace_variables(loop.body, {loop.loop_var: value}), _fold_int64)


def _dependent_nodes(body: Stmt, var: Var) -> list[Any]:
    """Return the nodes of `body` that depend on `var`, each once, in post-order."""
    depends: dict[int, bool] = {}
    found: list[Any] = []
    for node in post_order(body):
        depends[id(node)] = node is var or any([depends[id(child)] for child in children(node)])
        if depends[id(node)]:
            found.append(node)
    return found


def _with_value(body: Stmt, changing: Sequence[Any], var: Var, value: Expr) -> Stmt:
    """Substitute `value` for `var` in `body` and fold constants.

    Args:
        body: Loop body.
        changing: Nodes of `body` that depend on `var`, in post-order.
        var: Loop variable.
        value: Value of `var` in this iteration.
    """
    done: dict[int, Any] = {id(var): value}
    for node in changing:
        if node is not var:
            done[id(node)] = _fold_int64(replace_children(node, done))
    result: Stmt = done.get(id(body), body)
    return result


def _fold_int64(node: Any) -> Any:
    """Fold an int64 operation on constants and drop neutral operands (`+ 0`, `- 0`, `* 1`)."""
    if type(node) is not Binary or node.dtype != INT64:
        return node
    match node:
        case Binary(op, Const() as a, Const() as b):
            return binary(op, a, b)
        case Binary(BinOp.ADD, Const(0), x) | Binary(BinOp.ADD | BinOp.SUB, x, Const(0)):
            return x
        case Binary(BinOp.MUL, Const(1), x) | Binary(BinOp.MUL, x, Const(1)):
            return x
    return node
