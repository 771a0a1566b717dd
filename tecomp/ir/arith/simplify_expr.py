"""Simplify an expression under the facts that hold at its program point.

Index arithmetic is arithmetic on int64 scalars. Arithmetic on data keeps its exact semantics:
floating-point expressions are not changed, and integers of other widths only by identities that
hold with wrap-around.
"""

from __future__ import annotations

from typing import Any

from tecomp.ir.arith.constraint_context import ConstraintContext
from tecomp.ir.arith.quasi_affine import QuasiAffine
from tecomp.ir.arith.rewrite_rules import (
    comparison,
    decide_comparison,
    extremum,
    floordiv,
    modulo,
    recombine_terms,
)
from tecomp.ir.nodes.dtype import BOOL, INT64
from tecomp.ir.nodes.expr import (
    Binary,
    BinOp,
    Broadcast,
    BufferLoad,
    Call,
    Cast,
    CmpOp,
    Compare,
    Const,
    Expr,
    Not,
    Ramp,
    Select,
    Var,
    binary,
    cast,
    integer_range,
)
from tecomp.ir.nodes.operators import OPPOSITE
from tecomp.ir.nodes.structural_equality import structural_equal
from tecomp.ir.traversal.rewrite import Task, children, operands_of, replace_children, walk

_SUMS = frozenset((BinOp.ADD, BinOp.SUB, BinOp.MUL))
_LOGIC = (BinOp.AND, BinOp.OR)
# Maximum number of operands of a minimum that are compared pairwise.
_MAX_COMPARED_OPERANDS = 9
_LEAST, _MOST = integer_range(INT64)


def expression(facts: ConstraintContext, node: Expr) -> Task:
    """Simplify `node` as a trampoline task."""
    result = simplify_cheap(facts, node)
    if result is not None:
        return result
    if isinstance(node, Binary) and node.op in _SUMS and node.dtype == INT64:
        result = yield from _sum(facts, node)
    elif isinstance(node, Binary) and node.op in _LOGIC:
        result = yield from _logic(facts, node)
    elif isinstance(node, Call) and node.name == "if_then_else":
        result = yield from _simplify_if_then_else(facts, node)
    elif isinstance(node, BufferLoad) and node.predicate is not None:
        result = yield from _guarded_load(facts, node, node.predicate)
    else:
        result = yield from _simplify_children(facts, node)
    facts.memo[id(node)] = (node, result)
    return result


def simplify_cheap(facts: ConstraintContext, node: Expr) -> Expr | None:
    """Return `node` simplified if this requires no work, else None; most operands are leaves."""
    if type(node) is Const:
        return node
    if isinstance(node, Var):
        return facts.values.get(node, node) if facts.values else node
    if id(node) in facts.simple and not facts.values and not facts.buffers:
        return node
    done = facts.memo.get(id(node))
    return None if done is None else done[1]


def _simplify_children(facts: ConstraintContext, node: Expr) -> Task:
    parts: dict[int, Expr] = {}
    is_new = False
    for child in children(node):
        simple = simplify_cheap(facts, child)
        if simple is None:
            simple = yield expression(facts, child)
        parts[id(child)] = simple
        is_new = is_new or simple is not child
    result = replace_children(node, parts) if is_new else node
    if isinstance(result, BufferLoad):
        buffer = facts.buffer(result.buffer)
        return result if buffer is result.buffer else BufferLoad(buffer, result.indices)
    return _rule(facts, result)


def _sum(facts: ConstraintContext, root: Binary) -> Task:
    """Simplify all additions, subtractions and multiplications below `root` as one sum."""
    parts: list[tuple[QuasiAffine, int]] = []
    expanded: set[int] = set()
    worklist: list[tuple[Expr, int]] = [(root, 1)]
    while worklist:
        node, factor = worklist.pop()
        value = simplify_cheap(facts, node)
        if value is None and id(node) not in expanded and (
            isinstance(node, Binary) and node.op in _SUMS
        ):
            expanded.add(id(node))
            match node:
                case Binary(BinOp.ADD, a, b):
                    worklist += [(b, factor), (a, factor)]
                    continue
                case Binary(BinOp.SUB, a, b):
                    worklist += [(b, -factor), (a, factor)]
                    continue
                case Binary(BinOp.MUL, a, Const(c)) | Binary(BinOp.MUL, Const(c), a):
                    worklist.append((a, factor * int(c)))
                    continue
                case Binary(_, a, b):
                    x = yield expression(facts, a)
                    y = yield expression(facts, b)
                    value = Binary(BinOp.MUL, x, y)
        if value is None:
            value = yield expression(facts, node)
        parts.append((facts.terms.sum_of(value), factor))
    total = recombine_terms(facts, QuasiAffine.added(parts))
    if not _fits(total):
        return root
    return facts.terms.expr(total, like=root)


def _fits(total: QuasiAffine) -> bool:
    if not _LEAST < total.const <= _MOST:
        return False
    return all([_LEAST < c <= _MOST for c in total.terms.values()])


def _logic(facts: ConstraintContext, node: Binary) -> Task:
    """Simplify `and` or `or`; the right side may assume that the left side does not decide.

    Both sides are evaluated in any case, so a side that reads memory must not assume the other.
    """
    conjunction = node.op is BinOp.AND
    a = yield expression(facts, node.a)
    if (known := constant_truth(a)) is not None:
        # true and b == b; false and b == false; the dual identities hold for `or`.
        return (yield expression(facts, node.b)) if known == conjunction else a
    if facts.is_data(node.b):
        b = yield expression(facts, node.b)
    else:
        b = yield _simplify_under(facts, a, node.b, holds=conjunction)
    if (known := constant_truth(b)) is not None and is_pure(a):
        return a if known == conjunction else b
    if facts.terms.key(a) == facts.terms.key(b):
        return a
    return node if a is node.a and b is node.b else Binary(node.op, a, b)


def _simplify_if_then_else(facts: ConstraintContext, node: Call) -> Task:
    """Simplify `if_then_else`; each branch may assume the condition or its negation."""
    condition = yield expression(facts, node.args[0])
    if (known := constant_truth(condition)) is not None:
        return (yield expression(facts, node.args[1 if known else 2]))
    a = yield _simplify_under(facts, condition, node.args[1])
    b = yield _simplify_under(facts, condition, node.args[2], holds=False)
    if facts.terms.key(a) == facts.terms.key(b) and is_pure(condition):
        return a
    return Call(node.name, (condition, a, b), node.dtype)


def _simplify_under(
    facts: ConstraintContext, condition: Expr, node: Expr, *, holds: bool = True
) -> Task:
    """Simplify `node` under the assumption that a condition holds, or does not hold."""
    state = facts.enter(node) if facts.tells(condition) else None
    if state is None:
        return (yield expression(facts, node))
    facts.assume(condition, holds=holds)
    result = yield expression(facts, node)
    facts.leave(state)
    return result


def _guarded_load(facts: ConstraintContext, node: BufferLoad, where: Expr) -> Task:
    """Simplify a predicated load; a false predicate gives 0 without a read."""
    predicate = yield expression(facts, where)
    known = constant_truth(predicate)
    if known is False:
        zero = cast(node.dtype.scalar, 0)
        return zero if node.dtype.lanes == 1 else Broadcast(zero, node.dtype.lanes)
    indices = yield simplify_guarded_indices(facts, node.indices, predicate)
    return BufferLoad(facts.buffer(node.buffer), indices, None if known else predicate)


def simplify_guarded_indices(
    facts: ConstraintContext, indices: tuple[Expr, ...], predicate: Expr
) -> Task:
    """Simplify the indices of an access that occurs only where `predicate` holds.

    An index that reads memory is evaluated unconditionally, so it must not assume the predicate.
    """
    simple: list[Expr] = []
    for index in indices:
        if facts.is_data(index):
            # Without new facts, the memo of the predicate remains valid; discarding it would
            # double the work at each nesting level.
            simple.append((yield expression(facts, index)))
        else:
            simple.append((yield _simplify_under(facts, predicate, index)))
    return tuple(simple)


def constant_truth(condition: Expr) -> bool | None:
    """Return the value of a constant condition, the same for all lanes; None if not constant."""
    while isinstance(condition, Broadcast):
        condition = condition.value
    return bool(condition.value) if isinstance(condition, Const) else None


def is_pure(expr: Expr) -> bool:
    """Return whether `expr` can be removed: it contains no run-time index check, which can fail."""
    return not any(isinstance(node, Call) and node.name == "check_index" for node in walk(expr))


def _constant(value: bool, like: Expr) -> Expr:
    node = Const(value, BOOL)
    return node if like.dtype.lanes == 1 else Broadcast(node, like.dtype.lanes)


def _rule(facts: ConstraintContext, node: Expr) -> Expr:
    """Apply one rewrite step to a node whose children are simplified."""
    match node:
        case Binary() if node.dtype == INT64:
            return _index(facts, node)
        case Binary():
            return _data(node)
        case Compare():
            return _compare(facts, node)
        case Not(a):
            return _simplify_not(node, a)
        case Select(condition, a, b):
            return _simplify_select(facts, node, condition, a, b)
        case Cast(dtype, value):
            return _simplify_cast(facts, node, dtype, value)
        case Call("check_index", (index, extent, _)):
            return _simplify_index_check(facts, node, index, extent)
    return node


def _index(facts: ConstraintContext, node: Binary) -> Expr:
    sum_of = facts.terms.sum_of
    match node:
        case Binary(BinOp.MIN | BinOp.MAX as op):
            return extremum(facts, op, operands_of(op, node, _MAX_COMPARED_OPERANDS))
        case Binary(BinOp.FLOORDIV | BinOp.MOD as op, a, Const(d)) if d > 0:
            if d == 1:
                return a if op is BinOp.FLOORDIV else Const(0, INT64)
            if facts.is_exact(total := sum_of(a)):
                rule = floordiv if op is BinOp.FLOORDIV else modulo
                return facts.terms.expr(recombine_terms(facts, rule(facts, total, int(d))))
        case Binary(BinOp.FLOORDIV | BinOp.MOD as op, a, b):
            return _quotient(facts, node, sum_of(a), sum_of(b))
    return _data(node)


def _quotient(facts: ConstraintContext, node: Binary, a: QuasiAffine, b: QuasiAffine) -> Expr:
    """Simplify a division by an expression if the dividend is 0 or in `[0, divisor)`."""
    if not a.terms and a.const == 0:
        return Const(0, INT64)
    if facts.is_exact(a) and facts.is_exact(b) and (
        facts.at_least(a, 0) and facts.at_most(a.plus(b, -1), -1)
    ):
        return Const(0, INT64) if node.op is BinOp.FLOORDIV else node.a
    return _data(node)


def _data(node: Binary) -> Expr:
    """Apply integer identities that hold for every width with wrap-around."""
    if not node.dtype.is_integer:
        return node
    match node:
        case Binary(BinOp.ADD | BinOp.SUB, a, Const(0)) | Binary(BinOp.ADD, Const(0), a):
            return a
        case Binary(BinOp.MUL | BinOp.FLOORDIV, a, Const(1)) | Binary(BinOp.MUL, Const(1), a):
            return a
        case Binary(BinOp.MUL, a, Const(0)) | Binary(BinOp.MUL, Const(0), a) if is_pure(a):
            return Const(0, node.dtype)
        case Binary(BinOp.BITXOR, Binary(BinOp.BITXOR, a, b), c) if is_pure(b) and structural_equal(
            b, c):
            # (x ^ y) ^ y == x
            return a
        case Binary(BinOp.BITXOR, Binary(BinOp.BITXOR, a, b), c) if is_pure(a) and structural_equal(
            a, c):
            # (y ^ x) ^ y == x
            return b
        case Binary(op, Const() as a, Const() as b):
            return binary(op, a, b)
    return node


def _compare(facts: ConstraintContext, node: Compare) -> Expr:
    a, b = node.a, node.b
    if a.dtype.scalar != INT64:
        if isinstance(a, Const) and isinstance(b, Const) and a.dtype.is_integer:
            return _constant(_holds(node.op, a.value, b.value), node)
        return node
    if node.dtype.lanes > 1:
        return _compare_lanes(facts, node)
    left, right = facts.terms.sum_of(a), facts.terms.sum_of(b)
    if not (facts.is_exact(left) and facts.is_exact(right)):
        return node
    result = comparison(facts, node.op, left, right)
    if isinstance(result, bool):
        return _constant(result, node)
    known = facts.truth(result)
    return result if known is None else _constant(known, node)


def _compare_lanes(facts: ConstraintContext, node: Compare) -> Expr:
    """Evaluate a vector comparison if its first and its last lane have the same known result.

    The difference of two ramps is a ramp, so the values of all other lanes are between them.
    """
    if node.op in (CmpOp.EQ, CmpOp.NE):
        return node
    ends: list[bool | None] = []
    for lane in (0, node.dtype.lanes - 1):
        a, b = _lane(facts, node.a, lane), _lane(facts, node.b, lane)
        if a is None or b is None or not (facts.is_exact(a) and facts.is_exact(b)):
            return node
        ends.append(decide_comparison(facts, node.op, a.plus(b, -1)))
    return node if ends[0] is None or ends[0] != ends[1] else _constant(ends[0], node)


def _lane(facts: ConstraintContext, vector: Expr, lane: int) -> QuasiAffine | None:
    match vector:
        case Ramp(base, Const(stride)) if base.dtype.lanes == 1:
            return facts.terms.sum_of(base).shifted(lane * int(stride))
        case Broadcast(value) if value.dtype.lanes == 1:
            return facts.terms.sum_of(value)
        case _ if vector.dtype.lanes == 1:
            return facts.terms.sum_of(vector)
    return None


def _holds(op: CmpOp, a: float, b: float) -> bool:
    return {CmpOp.EQ: a == b, CmpOp.NE: a != b, CmpOp.LT: a < b,
            CmpOp.LE: a <= b, CmpOp.GT: a > b, CmpOp.GE: a >= b}[op]


def _simplify_not(node: Not, a: Expr) -> Expr:
    if (known := constant_truth(a)) is not None:
        return _constant(not known, node)
    match a:
        case Not(inner):
            return inner
        case Compare(op, x, y) if not x.dtype.is_float:
            # With floats both `x < y` and `x >= y` are false for NaN.
            return Compare(OPPOSITE[op], x, y)
    return node


def _simplify_select(
    facts: ConstraintContext, node: Select, condition: Expr, a: Expr, b: Expr
) -> Expr:
    known = constant_truth(condition)
    if known is None:
        is_same = facts.terms.key(a) == facts.terms.key(b)
        return a if is_same and is_pure(condition) else node
    return a if known else b


def _simplify_cast(facts: ConstraintContext, node: Cast, dtype: Any, value: Expr) -> Expr:
    if value.dtype == dtype:
        return value
    match value:
        case Const():
            return cast(dtype, value)
        case Cast(_, inner) if inner.dtype == dtype == INT64 and value.dtype.is_integer:
            # A cast back to int64 of an index that was narrowed without loss.
            total = facts.terms.sum_of(inner)
            type_min, type_max = integer_range(value.dtype)
            if facts.is_exact(total) and facts.at_least(total, type_min) and (
                facts.at_most(total, type_max)
            ):
                return inner
    return node


def _simplify_index_check(facts: ConstraintContext, node: Call, index: Expr, extent: Expr) -> Expr:
    """Remove a run-time index check if the first and the last lane are provably in bounds."""
    for lane in {0, node.dtype.lanes - 1}:
        i, n = _lane(facts, index, lane), _lane(facts, extent, lane)
        if i is None or n is None or not (facts.is_exact(i) and facts.is_exact(n)):
            return node
        if not (facts.at_least(i, 0) and facts.at_most(i.plus(n, -1), -1)):
            return node
    return _constant(True, node)
