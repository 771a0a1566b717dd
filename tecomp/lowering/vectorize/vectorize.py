"""Vectorize loops of kind `vectorized`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tecomp.ir.arith.constraint_context import ConstraintContext
from tecomp.ir.arith.simplify import EMPTY, enter_loop, function_facts, simplify
from tecomp.ir.arith.simplify_expr import expression
from tecomp.ir.nodes.expr import (
    Binary,
    BinOp,
    BufferLoad,
    CmpOp,
    Compare,
    Const,
    Expr,
    Var,
    binary,
    index_value,
)
from tecomp.ir.nodes.stmt import For, ForKind, IfThenElse, Let, PrimFunc, Stmt, seq
from tecomp.ir.traversal.rewrite import (
    Task,
    children,
    fold,
    nodes_of,
    replace_children,
    run_trampoline,
    statements_in,
    walk,
)
from tecomp.lowering.storage.buffer_rewrite import replace_variables
from tecomp.lowering.vectorize.unroll import has_whole_form, indexes_registers, remainder_extent
from tecomp.lowering.vectorize.vector_stmt import is_vectorizable, vector_body

MAX_LANES = 64
_PARTS = (BinOp.FLOORDIV, BinOp.MOD)
_MIN_MASKED_BYTES = 4
"""Bytes of the smallest elements that all processors with masked loads load with a mask."""


def vectorize_loops(
    func: PrimFunc, max_lanes: int = MAX_LANES, *, is_simple: bool = False
) -> PrimFunc:
    """Replace each `vectorized` loop by vector operations on all iterations.

    The loop variable becomes a ramp. A load or store with a vector index accesses a vector;
    lane-invariant (uniform) values stay scalar. Conditions that differ between lanes become masks
    of stores and loads, so the vector code reads no element that the loop would not have read.

    * An extent with a constant upper bound, such as `min(8, n - 8*io)`, takes the bound as its
      lane count (rounded up to a power of two, `max_lanes` at most) and masks the lanes beyond the
      end. A constant extent has no mask.
    * An extent above `max_lanes`, or without an upper bound, is strip-mined: a serial loop over
      full vectors of `max_lanes` lanes, and a masked remainder.
    * Of nested vectorized loops, the innermost becomes a vector and the others become serial.
    * An inner loop whose bounds differ between lanes iterates over the hull of all bounds, masked.
    * Memory allocated inside the loop gets a copy for each lane, interleaved by lane.
    * A statement without a vector form is scalarized: it alone runs lane by lane. This applies if
      all lanes store to one address, if the values are vectors already, or if an index other than
      that of the last physical axis would be a vector.

    Args:
        func: Function with flat buffers.
        max_lanes: Maximum lane count of a vector.
        is_simple: Whether indices and conditions are already simplified, except for quotients and
            remainders that have been combined in one index.
    """
    if not any(map(_is_vector, nodes_of(For, func.body))):
        return func
    if not is_simple or any(node.op in _PARTS for node in nodes_of(Binary, func.body)):
        func = simplify(func)
    body = run_trampoline(_outside(
        _VectorizeState(function_facts(func), max_lanes, _with_inner(func.body)), func.body))
    return replace(func, body=body)


def _is_vector(node: object) -> bool:
    return isinstance(node, For) and node.kind is ForKind.VECTORIZED


def _with_inner(body: Stmt) -> set[int]:
    """Return the ids of vectorized loops that contain another vectorized loop."""
    found: set[int] = set()

    def has_vector(node: Any, inside: list[bool]) -> bool:
        if _is_vector(node) and any(inside):
            found.add(id(node))
        return _is_vector(node) or any(inside)

    fold(body, has_vector, statements_in)
    return found


class _VectorizeState:
    """State of the traversal.

    Attributes:
        facts: Constraints that hold at the current statement.
        max_lanes: Maximum lane count of a vector.
        serial: Ids of vectorized loops that become serial.
        loops: Variables of the enclosing loops.
        unrolled: Variables of enclosing loops that are unrolled.
        unrolled_variables: Variables of enclosing loops of which unrolling makes guarded copies.
        negated_conditions: Conditions in whose else branch the current statement is.
    """

    def __init__(self, facts: ConstraintContext, max_lanes: int, serial: set[int]) -> None:
        self.facts = facts
        self.max_lanes = max_lanes
        self.serial = serial
        self.loops: set[Var] = set()
        self.unrolled: set[Var] = set()
        self.unrolled_variables: set[Var] = set()
        self.negated_conditions: list[Expr] = []


def _outside(work: _VectorizeState, node: Stmt) -> Task:
    """Rewrite a statement outside vectorized loops, collecting constraints on the way."""
    if isinstance(node, For):
        if _is_vector(node) and id(node) not in work.serial:
            return _vectorize(work, node)
        return (yield _serial(work, node))
    facts, done = work.facts, {}
    for child in children(node):
        if not isinstance(child, Stmt):
            continue
        state, others = facts.enter(), work.negated_conditions
        match node:
            case IfThenElse(condition, then):
                facts.assume(condition, holds=child is then)
                work.negated_conditions = others if child is then else [*others, condition]
            case Let(var, value):
                facts.let(var, value)
        done[id(child)] = yield _outside(work, child)
        facts.leave(state)
        work.negated_conditions = others
    return replace_children(node, done)


def _serial(work: _VectorizeState, loop: For) -> Task:
    state = work.facts.enter()
    enter_loop(work.facts, loop.loop_var, loop.min, loop.extent)
    work.loops.add(loop.loop_var)
    if loop.kind is ForKind.UNROLLED:
        work.unrolled.add(loop.loop_var)
        if not isinstance(loop.extent, Const) and indexes_registers(loop):
            work.unrolled_variables.add(loop.loop_var)
    body = yield _outside(work, loop.body)
    work.loops.discard(loop.loop_var)
    work.unrolled_variables.discard(loop.loop_var)
    work.facts.leave(state)
    kind = ForKind.SERIAL if _is_vector(loop) else loop.kind
    return For(loop.loop_var, loop.min, loop.extent, kind, body, loop.thread)


def _vectorize(work: _VectorizeState, loop: For) -> Stmt:
    if not is_vectorizable(loop):
        return For(loop.loop_var, loop.min, loop.extent, ForKind.SERIAL, loop.body)
    facts, width = work.facts, work.max_lanes
    count = facts.terms.sum_of(loop.extent)
    upper = facts.greatest(count) if facts.is_exact(count) else None
    if upper is not None and upper <= width:
        return _piece(work, loop, loop.min, loop.extent, upper)
    outer = Var(f"{loop.loop_var.name}_outer")
    n_full = _simple(work, binary(BinOp.FLOORDIV, loop.extent, width))
    rest = _simple(work, binary(BinOp.MOD, loop.extent, width))
    start = binary(BinOp.ADD, loop.min, binary(BinOp.MUL, outer, width))
    state = facts.enter()
    enter_loop(facts, outer, index_value(0), n_full)
    full = _piece(work, loop, _simple(work, start), index_value(width), width)
    facts.leave(state)
    last = _simple(work, binary(BinOp.ADD, loop.min, binary(BinOp.MUL, n_full, width)))
    bound = facts.greatest(facts.terms.sum_of(rest))
    state = facts.enter()
    # A loop of negative extent is empty, but the remainder of that extent may be positive.
    nonempty = Compare(CmpOp.GT, loop.extent, index_value(0))
    is_counted = facts.at_least(count, 0)
    if not is_counted:
        facts.assume(nonempty)
    tail = _piece(work, loop, last, rest, width - 1 if bound is None else bound)
    facts.leave(state)
    if not is_counted:
        tail = IfThenElse(nonempty, tail)
    return seq(For(outer, index_value(0), n_full, ForKind.SERIAL, full), tail)


def _simple(work: _VectorizeState, expr: Expr) -> Expr:
    result: Expr = run_trampoline(expression(work.facts, expr))
    return result


def _fills_in_some_rounds(work: _VectorizeState, loop: For, extent: Expr, lanes: int) -> bool:
    """Return whether an enclosing loop decides if all lanes are active, so a maskless form pays.

    Most iterations of such a loop need no mask. The result is False for a remainder that never
    fills all lanes, and for guarded copies that already have a sibling form for full iterations. If
    only unrolled loops decide, a maskless form pays for guarded copies with masks that are slow.
    """
    rest = remainder_extent(extent, lanes)
    if rest is None:
        return False
    deciding = {node for node in walk(rest) if isinstance(node, Var)}
    if deciding.isdisjoint(work.loops - work.unrolled) and not (
        deciding & work.unrolled_variables and _reads_narrow_elements(loop)
    ):
        return False
    facts, count = work.facts, work.facts.terms.sum_of(extent)
    known = facts.at_least(count, lanes) or facts.at_most(count, lanes - 1)
    is_beside = work.unrolled_variables and has_whole_form(
        facts, work.negated_conditions, rest, lanes
    )
    return facts.is_exact(count) and not known and not is_beside


def _reads_narrow_elements(loop: For) -> bool:
    """Return whether the loop reads elements for which some processors lack masked loads."""
    return any(
        isinstance(node, BufferLoad) and node.buffer.dtype.bytes < _MIN_MASKED_BYTES
        and node.buffer.scope.startswith("global")
        for node in walk(loop.body)
    )


def _full_or_not(work: _VectorizeState, loop: For, start: Expr, extent: Expr, lanes: int) -> Stmt:
    """Return two versions of the body: maskless if all lanes are active, and masked otherwise."""
    facts, rest = work.facts, remainder_extent(extent, lanes)
    assert rest is not None
    is_full = _simple(work, Compare(CmpOp.GE, rest, index_value(lanes)))
    forms = []
    for holds in (True, False):
        state = facts.enter()
        facts.assume(is_full, holds=holds)
        count = index_value(lanes) if holds else extent
        forms.append(vector_body(facts, loop, start, count, lanes, work.loops))
        facts.leave(state)
    return IfThenElse(is_full, *forms)


def _piece(work: _VectorizeState, loop: For, start: Expr, extent: Expr, lanes: int) -> Stmt:
    """Return the `extent` iterations from `start`, `lanes` at most, as one vector."""
    facts = work.facts
    if lanes <= 0:
        return EMPTY
    count = facts.terms.sum_of(extent)
    state = facts.enter()
    is_nonempty = facts.at_least(count, 1)
    if not is_nonempty:
        facts.assume(Compare(CmpOp.GT, extent, index_value(0)))
    if lanes == 1:
        body = replace_variables(loop.body, {loop.loop_var: start})
    elif _fills_in_some_rounds(work, loop, extent, lanes):
        body = _full_or_not(work, loop, start, extent, lanes)
    else:
        if not facts.at_least(count, lanes):
            # The mask disables surplus lanes, so the lane count can be a power of two.
            lanes = min(1 << (lanes - 1).bit_length(), work.max_lanes)
        body = vector_body(facts, loop, start, extent, lanes, work.loops)
    facts.leave(state)
    return body if is_nonempty else IfThenElse(Compare(CmpOp.GT, extent, index_value(0)), body)
