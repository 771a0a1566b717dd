"""Emit statements as LLVM basic blocks.

As for expressions, a rule is a generator that yields its child statements;
`tecomp.ir.traversal.rewrite` runs the rules.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from functools import partial, reduce
from itertools import groupby
from typing import Any, TypeAlias

from tecomp.codegen.emit.allocation import begin_allocation, end_allocation
from tecomp.codegen.emit.expr import emit, run_rule
from tecomp.codegen.emit.extern_calls import emit_outside_call
from tecomp.codegen.emit.parallel import outline
from tecomp.codegen.llvm.compiled import MARK
from tecomp.codegen.llvm.ir_builder import FunctionBuilder, PassSelection, register_type
from tecomp.codegen.llvm.pass_selection import invariant_conditions, staying_masks
from tecomp.codegen.memory.load_store import may_be_narrowed, prefetch, store
from tecomp.codegen.memory.register_transpose import find_transposes
from tecomp.codegen.ops.arithmetic import cast, non_negative_bits
from tecomp.codegen.ops.vector_legalization import active_prefix
from tecomp.errors import InternalError
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
    Var,
    is_const,
)
from tecomp.ir.nodes.expr import cast as cast_expr
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
)
from tecomp.ir.traversal.analyses import ValueNumbering
from tecomp.ir.traversal.rewrite import run_trampoline, walk

Rule: TypeAlias = "Generator[Stmt, None, None]"

_MIN_TRIP_COUNT = 16
"""Trip count below which LLVM vectorizes a whole loop and masks the last vector."""


def emit_stmt(code: FunctionBuilder, root: Stmt) -> None:
    """Emit a statement and all statements inside it."""
    run_trampoline(_start(code, root), partial(_start, code))


def _start(code: FunctionBuilder, stmt: Stmt) -> Rule:
    if (line := code.module.line_of.get(id(stmt))) is not None:
        code.lines.append(f"{MARK}{line}")
    rule = _RULES.get(type(stmt))
    if rule is None:
        raise InternalError(
            "a statement of type {type} reached the code generator; lower it first",
            type=type(stmt).__name__,
        )
    return rule(code, stmt)


def _value(code: FunctionBuilder, expr: Expr) -> str:
    """Emit an expression without memoized operands, because loaded values may have changed."""
    code.memo = [{}]
    return emit(code, expr)


def _seq(code: FunctionBuilder, stmt: SeqStmt) -> Rule:
    if code.columns:
        # The enclosing sequence has already been searched for transposes.
        yield from stmt.stmts
        return
    for are_plain, group in groupby(stmt.stmts, key=_are_plain_stores):
        run = list(group)
        if are_plain and not code.module.options.check_bounds:
            parts = [part for child in run for part in _straight(child)]
            stores = [part for part in parts if isinstance(part, BufferStore)]
            code.columns = find_transposes(stores, [x for x in parts if isinstance(x, Let)])
        yield from run
        code.columns = {}


def _are_plain_stores(stmt: Stmt) -> bool:
    """Return whether all stores are unconditional, in all lanes or in the first n lanes."""
    return all(
        isinstance(part, Let) or (
            isinstance(part, BufferStore)
            and (part.predicate is None or active_prefix(part.predicate) is not None)
        )
        for part in _straight(stmt)
    )


def _straight(stmt: Stmt) -> list[Stmt]:
    """Return the straight-line parts of a statement, including let bindings."""
    found: list[Stmt] = []
    worklist = [stmt]
    while worklist:
        part = worklist.pop()
        if isinstance(part, SeqStmt):
            worklist += reversed(part.stmts)
            continue
        found.append(part)
        if isinstance(part, Let):
            worklist.append(part.body)
    return found


def _let(code: FunctionBuilder, stmt: Let) -> Rule:
    value = cast(code, _value(code, stmt.value), stmt.value.dtype, stmt.var.dtype)
    if any(isinstance(node, BufferLoad) or node in code.loaded for node in walk(stmt.value)
           if isinstance(node, BufferLoad | Var)):
        code.loaded.add(stmt.var)
    if _has_first_lane(stmt.value, code.holding):
        code.nonempty.add(stmt.var)
    _note_sign(code, stmt.var, stmt.value)
    with code.bound(stmt.var, value):
        yield stmt.body


def _note_sign(code: FunctionBuilder, var: Var, least: Expr) -> None:
    """Record whether a variable that is at least `least` is known not to be negative."""
    if non_negative_bits(least, code.non_negative) is None:
        code.non_negative.discard(var)
    else:
        code.non_negative.add(var)


def _has_first_lane(mask: Expr, holding: Sequence[Expr]) -> bool:
    """Return whether conditions that hold imply that the first lane of a mask is active."""
    if not holding or not isinstance(mask, Compare) or mask.op is not CmpOp.LT:
        return False
    if not isinstance(mask.a, Ramp) or not isinstance(mask.b, Broadcast):
        return False
    if not is_const(mask.a.base, 0):
        return False
    numbers = ValueNumbering()
    count, subtracted = _less_constant(mask.b.value)
    return any(
        limit is not None and limit[1] >= subtracted and numbers.of(limit[0]) == numbers.of(count)
        for limit in map(_lower_limit, holding)
    )


def _less_constant(value: Expr) -> tuple[Expr, int]:
    """Split `x - number` into x and the number."""
    match value:
        case Binary(BinOp.SUB, x, Const(int() as number)):
            return x, number
    return value, 0


def _lower_limit(condition: Expr) -> tuple[Expr, int] | None:
    """Return x and a number below x if the condition is a comparison that implies it.

    `(x + 3) // 4 > 2` is `x > 8`.
    """
    match condition:
        case Compare(
            CmpOp.GT,
            Binary(BinOp.FLOORDIV, Binary(BinOp.ADD, x, Const(more)), Const(divisor)),
            Const(int() as number),
        ) if more == divisor - 1:
            return x, number * int(divisor)
        case Compare(CmpOp.GT, x, Const(int() as number)):
            return x, number
    return None


def _view(code: FunctionBuilder, stmt: DeclBuffer) -> Rule:
    yield stmt.body


def _if(code: FunctionBuilder, stmt: IfThenElse) -> Rule:
    condition = _value(code, stmt.condition)
    then, after = code.name("then"), code.name("after")
    other = code.name("else") if stmt.else_case is not None else after
    code.branch(condition, then, other)
    code.label(then)
    enclosing = code.holding
    code.holding = (*enclosing, stmt.condition)
    yield stmt.then_case
    code.holding = enclosing
    code.jump(after)
    if stmt.else_case is not None:
        code.label(other)
        yield stmt.else_case
        code.jump(after)
    code.label(after)


def _store(code: FunctionBuilder, stmt: BufferStore) -> Rule:
    code.memo = [{}]
    run_rule(code, store(code, stmt))
    yield from ()


def _prefetch(code: FunctionBuilder, stmt: Prefetch) -> Rule:
    code.memo = [{}]
    run_rule(code, prefetch(code, stmt))
    yield from ()


def _outside(code: FunctionBuilder, stmt: ExternCall) -> Rule:
    emit_outside_call(code, stmt)
    yield from ()


def _allocate(code: FunctionBuilder, stmt: Allocate) -> Rule:
    code.memo = [{}]
    allocation = begin_allocation(code, stmt.buffer)
    with code.bound(stmt.buffer.data, allocation.address):
        yield stmt.body
    end_allocation(code, allocation)


def _for(code: FunctionBuilder, stmt: For) -> Rule:
    """Emit a loop; the trip count is tested before the first iteration."""
    if stmt.kind is ForKind.PARALLEL and not code.is_outlined:
        outline(code, stmt, _value(code, stmt.min), _value(code, stmt.extent), emit_stmt)
        return
    _note_sign(code, stmt.loop_var, stmt.min)
    kind = register_type(stmt.loop_var.dtype)
    # Build one expression, so that constants are folded here and not in the loop.
    last = cast_expr(stmt.loop_var.dtype, stmt.min + stmt.extent)
    first = _value(code, cast_expr(stmt.loop_var.dtype, stmt.min))
    end = _value(code, last)
    if code.passes is PassSelection.ALL and _may_store_known_lanes(stmt):
        end = code.op(f'call {kind} asm "", "=r,0"({kind} {end})')
    body, after = code.name("loop"), code.name("after")
    conditions = [] if _is_positive(stmt.extent) else [code.op(f"icmp slt {kind} {first}, {end}")]
    for extent in _extents_inside(stmt):
        inner = _value(code, extent)
        conditions.append(code.op(f"icmp sgt {register_type(extent.dtype)} {inner}, 0"))
    enclosing = code.loop_invariants
    for condition in (*invariant_conditions(stmt), *staying_masks(stmt)):
        if id(condition) in enclosing:
            continue  # computed before a loop around this one
        operand = _value(code, condition)
        code.loop_invariants = {**code.loop_invariants, id(condition): (condition, operand)}
    if conditions:
        code.branch(reduce(lambda a, b: code.op(f"and i1 {a}, {b}"), conditions), body, after)
    else:
        code.jump(body)
    before = code.block
    code.label(body)
    var = f"%{code.name(stmt.loop_var.name)}"
    next_value = f"%{code.name('next')}"
    phi_index = len(code.lines)
    code.do("")
    with code.bound(stmt.loop_var, var):
        yield stmt.body
    code.loop_invariants = enclosing
    code.do(f"{next_value} = add nsw {kind} {var}, 1")
    continues = code.op(f"icmp slt {kind} {next_value}, {end}")
    incoming = f"[ {first}, %{before} ], [ {next_value}, %{code.block} ]"
    code.lines[phi_index] = f"  {var} = phi {kind} {incoming}"
    code.branch(continues, body, after)
    code.label(after)


def _may_store_known_lanes(stmt: For) -> bool:
    """Return whether LLVM may emit masked stores of narrow types with a constant mask.

    LLVM miscompiles such a store of a single lane: it writes too many bytes (see
    `tecomp.codegen.memory.load_store`). Masks result from conditions, and from the remainder of a
    loop with a known small trip count.
    """
    if not isinstance(stmt.extent, Const):
        return False
    inside = list(walk(stmt.body))
    is_masked = int(stmt.extent.value) < _MIN_TRIP_COUNT or any(isinstance(n, IfThenElse) for n
        in inside)
    return is_masked and any(
        isinstance(node, BufferStore) and node.value.dtype.lanes == 1
        and may_be_narrowed(node.value.dtype)
        for node in inside
    )


def _is_positive(extent: Expr) -> bool:
    return isinstance(extent, Const) and extent.value > 0


def _extents_inside(stmt: For) -> list[Expr]:
    """Return the loop-invariant extents of perfectly nested inner loops.

    They are tested before the outer loop: otherwise a loop of many iterations around an empty loop
    would run for hours.
    """
    found: list[Expr] = []
    bound = {stmt.loop_var}
    inner = stmt.body
    while isinstance(inner, For):
        if not _is_positive(inner.extent):
            parts = list(walk(inner.extent))
            depends = any(isinstance(part, Var) and part in bound for part in parts)
            if not depends and not any(isinstance(part, BufferLoad | Call) for part in parts):
                found.append(inner.extent)
        bound.add(inner.loop_var)
        inner = inner.body
    return found


_RULES: dict[type, Callable[[FunctionBuilder, Any], Rule]] = {
    SeqStmt: _seq,
    Let: _let,
    DeclBuffer: _view,
    IfThenElse: _if,
    BufferStore: _store,
    Prefetch: _prefetch,
    ExternCall: _outside,
    Allocate: _allocate,
    For: _for,
}
