"""Unroll loops; forms of partial loops."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from tecomp.errors import LowerError
from tecomp.ir.arith.constraint_context import Facts
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
    rebuild,
    run,
    statements_in,
    walk,
)
from tecomp.lowering.storage.buffer_rewrite import buffers_in, extent_variables, replace_variables

_GLOBAL = "global"


def cut_short(extent: Expr, most: int) -> Expr | None:
    """What is left, if an extent is that or `most`, whichever is less; None if it is another.

    >>> from tecomp.ir.nodes.expr import Var, binary
    >>> n = Var("n")
    >>> print(cut_short(binary(BinOp.MIN, Const(8), n - 16), 8), cut_short(n - 16, 8))
    n - 16 None
    """
    match extent:
        case Binary(BinOp.MIN, Const(value), rest) if value == most:
            return rest
    return None


def has_whole_form(facts: Facts, others: Sequence[Expr], rest: Expr, most: int) -> bool:
    """Whether one of the conditions in whose other case a loop is says that `most` are left.

    Beside the loop there is a form of it then that no iteration is missing from, and what is cut
    short is this one.
    """
    total = facts.terms.sum_of(rest)
    for condition in others:
        state = facts.enter()
        facts.assume(condition)
        is_whole = facts.at_least(total, most)
        facts.leave(state)
        if is_whole:
            return True
    return False


def indexes_registers(loop: For) -> bool:
    """Whether its iterations have memory of their own other than the global one: maybe registers.

    Registers are named, so each iteration has to be a copy of its own.
    """
    return any(
        isinstance(node, BufferLoad | BufferStore)
        and not node.buffer.scope.startswith(_GLOBAL)
        and any(part is loop.loop_var for part in walk(*node.indices))
        for node in walk(loop.body)
    )


LIMIT = 4096
_MOST_GUARDED = 16
_DIVISIONS = (BinOp.DIV, BinOp.FLOORDIV, BinOp.MOD)


def unroll_loops(func: PrimFunc, limit: int = LIMIT) -> PrimFunc:
    """Replace each `unrolled` loop by one copy of its body for each iteration, in order.

    A loop whose extent is known only up to a small bound, such as `min(8, n - 8*io)`, becomes as
    many copies as the bound says in a form for iterations that reach it, and beside that, or alone
    where the loop is the rest beside such a form already, a form for those that do not. That is
    copies each under a condition where they index memory that may be registers, and else a serial
    loop. A loop stays, as a serial one, if it has no such bound, the two forms were more than
    `limit` statements, or it is the end of vectors that are cut short and indexes no registers:
    its copies would have nothing in common. Loops inside it may still be unrolled.

    A condition that is all of a loop's body, and the same in all its iterations, is asked once,
    unless the loop is parallel; a value that is named there is computed once.

    Args:
        func: any function.
        limit: the most statements that one loop may become.

    Raises:
        LowerError: a loop of known extent would become more.
    """
    rests = _rests(func)

    def rule(node: Any) -> Stmt | None:
        made: Stmt | None = run(_loop(node, limit, rests)) if isinstance(node, For) else None
        return made

    return map_body(func, lambda body: bottom_up(body, rule))


def unrolled_within(root: Stmt, most: int) -> Stmt:
    """`root` with loops marked to be unrolled that become at most so many statements.

    Inner loops come first. A loop around one that stays is left alone; a vectorized loop
    is one statement.

    Source:
        The pragma `auto_unroll_max_step` of TVM (`UnrollLoop`).
    """
    if not most:
        return root

    def marked(node: Any, inner: list[tuple[Stmt, int, bool]]) -> tuple[Stmt, int, bool]:
        """A statement, how many it becomes, and whether a loop in it stays."""
        done = {id(old): new for old, (new, _, _) in zip(_inside(node), inner, strict=True)}
        made: Stmt = rebuild(node, lambda child: done.get(id(child), child))
        count = sum(n for _, n, _ in inner) + isinstance(made, BufferStore | Prefetch)
        stays = any(loop for _, _, loop in inner)
        if not isinstance(made, For) or made.kind is ForKind.VECTORIZED:
            return made, count, stays
        trip_count = int(made.extent.value) if isinstance(made.extent, Const) else None
        fits = trip_count is not None and not stays and trip_count * count <= min(most, LIMIT)
        if trip_count is None or not fits or made.kind is ForKind.PARALLEL:
            return made, count, True
        return replace(made, kind=ForKind.UNROLLED), trip_count * count, False

    return fold(root, marked, _inside)[0]


def _inside(node: Any) -> list[Stmt]:
    return [child for child in children(node) if isinstance(child, Stmt)]


def _rests(func: PrimFunc) -> dict[Var, int]:
    """Return loops that have few iterations by the conditions around them, with their most.

    That is a loop beside which there is a form for iterations that are all there, and a loop whose
    extent is bounded by such conditions alone.
    """
    facts, found = Facts(), dict[Var, int]()
    todo: list[tuple[Any, tuple[tuple[Expr, bool], ...]]] = [(func.body, ())]
    while todo:
        node, known = todo.pop()
        if isinstance(node, For) and node.kind is ForKind.UNROLLED and known:
            count = _trip_count(node)
            rest = None if count is None else cut_short(node.extent, count)
            others = [condition for condition, holds in known if not holds]
            if count and rest is not None and has_whole_form(facts, others, rest, count):
                found[node.loop_var] = count
            elif count is None and (most := _bound_where(facts, known, node.extent)):
                found[node.loop_var] = most
        for child in _inside(node):
            here = known
            if isinstance(node, IfThenElse):
                here = (*known, (node.condition, child is node.then_case))
            todo.append((child, here))
    return found


def _bound_where(
    facts: Facts, known: Sequence[tuple[Expr, bool]], extent: Expr
) -> int | None:
    """Return the greatest value of an extent under some conditions, if that is a small number."""
    state = facts.enter()
    for condition, holds in known:
        facts.assume(condition, holds=holds)
    most = facts.greatest(facts.terms.sum_of(extent))
    facts.leave(state)
    return most if most is not None and 0 < most <= _MOST_GUARDED else None


def _loop(loop: For, limit: int, rests: Mapping[Var, int]) -> Task:
    """A loop whose body is done: conditions that stay the same outside of it, and written out."""
    if loop.kind not in (ForKind.SERIAL, ForKind.UNROLLED):
        return loop
    match loop.body:
        case IfThenElse(condition, then, other) if _stays_the_same(condition, loop):
            first = yield _loop(replace(loop, body=then), limit, rests)
            second = None
            if other is not None:
                second = yield _loop(replace(loop, body=other), limit, rests)
            return IfThenElse(condition, first, second)
        case Let(var, value, body) if _stays_the_same(value, loop) and _is_defined(value):
            return Let(var, value, (yield _loop(replace(loop, body=body), limit, rests)))
    return loop if loop.kind is ForKind.SERIAL else _unrolled(loop, limit, rests)


def _stays_the_same(condition: Expr, loop: For) -> bool:
    parts = walk(condition)
    return not any(part is loop.loop_var or isinstance(part, BufferLoad | Call) for part in parts)


def _is_masked(body: Stmt) -> bool:
    """Whether all that is stored is masked by a value that is known before: vectors cut short."""
    nodes = list(walk(body))
    named = {node.var for node in nodes if isinstance(node, Let)}
    masks = [node.predicate for node in nodes if isinstance(node, BufferStore)]
    return bool(masks) and all(isinstance(mask, Var) and mask not in named for mask in masks)


def _is_defined(value: Expr) -> bool:
    """Whether it can be computed also where the loop has no iteration."""
    return not any(
        isinstance(node, Binary) and node.op in _DIVISIONS and not isinstance(node.b, Const)
        for node in walk(value)
    )


def _unrolled(loop: For, limit: int, rests: Mapping[Var, int]) -> Stmt:
    trip_count = _trip_count(loop)
    if trip_count is None:
        trip_count = rests.get(loop.loop_var)
    if _is_masked(loop.body) and not indexes_registers(loop):
        return replace(loop, kind=ForKind.SERIAL)
    # Copies of an inner loop that was unrolled share what they have in common.
    statements = fold(loop.body, lambda node, inside: sum(inside) + isinstance(
        node, BufferStore | Let | Prefetch), statements_in)
    forms = 1 if isinstance(loop.extent, Const) else 2
    if trip_count is not None and forms == 1 and trip_count * statements > limit:
        raise LowerError(
            f"lower: loop {loop.loop_var.name} is unrolled, and its {trip_count} iterations of "
            f"{statements} statements would become {trip_count * statements}, of which there may "
            f"be {limit}; split it and unroll the inner part, or leave a loop inside it rolled",
            kind="too-much",
        )
    if trip_count is None or forms * trip_count * statements > limit:
        return replace(loop, kind=ForKind.SERIAL)
    in_shapes = any(loop.loop_var in extent_variables(b) for b in buffers_in(loop.body))
    changing = [] if in_shapes else _depending(loop.body, loop.loop_var)
    copies = tuple(
        _copy_with_shapes(loop, iteration) if in_shapes else
        _with_value(loop.body, changing, loop.loop_var, _value(loop, iteration))
        for iteration in range(trip_count)
    )
    whole = SeqStmt(copies).stands_for
    if isinstance(loop.extent, Const):
        return whole
    rest = cut_short(loop.extent, trip_count)
    if in_shapes or indexes_registers(loop):
        some = _some(loop.extent if rest is None else rest, copies)
    else:
        some = replace(loop, kind=ForKind.SERIAL)
    return some if rest is None or loop.loop_var in rests else IfThenElse(
        Compare(CmpOp.GE, rest, index_value(trip_count)), whole, some)


def _trip_count(loop: For) -> int | None:
    """How many copies to make."""
    if isinstance(loop.extent, Const):
        return max(int(loop.extent.value), 0)
    most = constant_upper_bound(loop.extent)
    return max(most, 0) if most is not None and most <= _MOST_GUARDED else None


def _some(extent: Expr, copies: Sequence[Stmt]) -> Stmt:
    """The copies, each if the loop gets that far."""
    return seq(*(
        IfThenElse(Compare(CmpOp.GT, extent, index_value(iteration)), seq(copy))
        for iteration, copy in enumerate(copies)
    ))


def _value(loop: For, iteration: int) -> Expr:
    return binary(BinOp.ADD, loop.min, index_value(iteration)) if iteration else loop.min


def _copy_with_shapes(loop: For, iteration: int) -> Stmt:
    """The body in one iteration, where the shape of a buffer depends on it."""
    value = _value(loop, iteration)
    return bottom_up(replace_variables(loop.body, {loop.loop_var: value}), _folded)


def _depending(body: Stmt, var: Var) -> list[Any]:
    """The nodes of `body` that have `var` in them, each once and inner before outer."""
    depends: dict[int, bool] = {}
    found: list[Any] = []
    for node in post_order(body):
        depends[id(node)] = node is var or any([depends[id(child)] for child in children(node)])
        if depends[id(node)]:
            found.append(node)
    return found


def _with_value(body: Stmt, changing: Sequence[Any], var: Var, value: Expr) -> Stmt:
    """`body` with `value` for `var`; what becomes constant is computed at once.

    Args:
        body: that of a loop.
        changing: the nodes in it that depend on `var`.
        var: the variable.
        value: what it is in this iteration.
    """
    done: dict[int, Any] = {id(var): value}
    for node in changing:
        if node is not var:
            done[id(node)] = _folded(rebuild(node, lambda child: done.get(id(child), child)))
    result: Stmt = done.get(id(body), body)
    return result


def _folded(node: Any) -> Any:
    """`node`, an operation on numbers as their result."""
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
