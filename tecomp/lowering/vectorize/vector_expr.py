"""Vectorize expressions, and pack their strided reads."""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass, field, replace
from typing import Any

from tecomp.errors import LowerError
from tecomp.ir.arith.constraint_context import ConstraintContext
from tecomp.ir.arith.quasi_affine import QuasiAffine
from tecomp.ir.arith.rewrite_rules import floordiv, modulo
from tecomp.ir.arith.simplify import simplify
from tecomp.ir.arith.simplify_expr import constant_truth, expression
from tecomp.ir.nodes.dtype import INT64, DType
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
    index_value,
    is_const,
    logical_and,
)
from tecomp.ir.nodes.stmt import Allocate, Buffer, DeclBuffer, PrimFunc, Stmt
from tecomp.ir.nodes.structural_equality import structural_equal
from tecomp.ir.traversal.rewrite import (
    Task,
    bottom_up,
    conjuncts,
    fold,
    nodes_of,
    run_trampoline,
    top_down,
    walk,
)

Views = dict[tuple[Var, int], Buffer]


def pack_reads(func: PrimFunc) -> PrimFunc:
    """Replace each `join` of elements by a load from a view with a vector dtype.

    A `reinterpret` of a join as one scalar is assembled by shifts if no such load is possible.

    The n elements must be adjacent, and the index of the first must be a multiple of n. Layouts
    with an innermost `% n`, such as `% 4`, guarantee this.

    Raises:
        LowerError: If the elements are not adjacent or not aligned, belong to several buffers or
            to a buffer with strides, are computed, or are read under different predicates.
    """
    if not any(call.name == "join" for call in nodes_of(Call, func.body)):
        return func
    views: Views = {}

    def rule(node: object) -> Expr | None:
        if isinstance(node, Call) and _is_word(node):
            (join,) = node.args
            return _put_together(node) if _problem(join, _parts(join)) else None
        return _read_packed(node, views) if isinstance(node, Call) and _is_join(node) else None

    body = top_down(func.body, rule)
    return replace(func, body=_declare_views(body, func, views))


def _is_join(node: object) -> bool:
    return isinstance(node, Call) and node.name == "join"


def _is_word(node: Call) -> bool:
    """Return whether a call reinterprets the bits of a join as one scalar."""
    return node.name == "reinterpret" and node.dtype.lanes == 1 and _is_join(node.args[0])


def _put_together(call: Call) -> Expr:
    """Assemble a scalar from the bits of non-adjacent or computed elements with shifts."""
    parts = _parts(call.args[0])
    width = parts[0].dtype.bits
    kind = DType(f"uint{call.dtype.bits}")
    joined: Expr = Const(0, kind)
    for k, part in enumerate(parts):
        raw = cast(kind, Call("reinterpret", (part,), DType(f"uint{width}")))
        shifted = binary(BinOp.SHL, raw, Const(width * k, kind)) if k else raw
        joined = binary(BinOp.BITOR, joined, shifted) if k else shifted
    return Call("reinterpret", (joined,), call.dtype)


def _read_packed(join: Call, views: Views) -> BufferLoad:
    parts = _parts(join)
    if problem := _problem(join, parts):
        raise LowerError("pack_reads: {problem}", problem=problem)
    first, count = parts[0], len(parts)
    assert isinstance(first, BufferLoad)
    *outer, last = first.indices
    key = first.buffer.data, count
    if key not in views:
        views[key] = _view(first.buffer, count)
    index = simplify(binary(BinOp.FLOORDIV, last, count))
    return BufferLoad(views[key], (*outer, index), first.predicate)


def _parts(join: Expr) -> list[Expr]:
    """Return the elements of nested joins, in order."""

    def ends(node: Expr, parts: list[list[Expr]]) -> list[Expr]:
        return [end for part in parts for end in part] if _is_join(node) else [node]

    return fold(join, ends, lambda node: node.args if _is_join(node) else ())


def _problem(join: Expr, parts: Sequence[Expr]) -> str:
    """Return why the joined elements cannot be one vector load, or an empty string."""
    loads = [part for part in parts if isinstance(part, BufferLoad)]
    if len(loads) < len(parts):
        other = next(part for part in parts if not isinstance(part, BufferLoad))
        return (
            f"`{join}` joins `{other}`, which is not a memory load; join elements of one operand"
        )
    first = loads[0]
    if first.buffer.flat:
        return (
            f"`{first}` and the next {len(loads) - 1} are read together, and {first.buffer.name} "
            "has strides; remove it from binds, or read a copy of it"
        )
    for k, part in enumerate(loads):
        if part.buffer.data is not first.buffer.data:
            return f"`{join}` joins elements of several buffers; join elements of one"
        if not _is_same(part.predicate, first.predicate):
            return (
                f"`{first}` and `{part}` are read together, but under "
                "different conditions; give the tensor a layout with whole groups and a pad_value"
            )
        step = simplify(binary(BinOp.SUB, part.indices[-1], first.indices[-1]))
        outer = zip(part.indices[:-1], first.indices[:-1], strict=True)
        if not is_const(step, k) or not all(structural_equal(a, b) for a, b in outer):
            return (
                f"`{first}` and `{part}` are read together, but are not contiguous; "
                f"give {first.buffer.name} a layout whose last axis holds these elements"
            )
    if not is_const(simplify(binary(BinOp.MOD, first.indices[-1], len(loads))), 0):
        return (
            f"`{first}` and the next {len(loads) - 1} are read together, but the "
            f"first may not be at a multiple of {len(loads)}; give {first.buffer.name} a layout "
            f"with an innermost `% {len(loads)}`"
        )
    return ""


def _is_same(a: Expr | None, b: Expr | None) -> bool:
    return a is b or (a is not None and b is not None and structural_equal(a, b))


def _view(buffer: Buffer, count: int) -> Buffer:
    *outer, last = buffer.shape
    groups = last // count if isinstance(last, int) else simplify(
        binary(BinOp.FLOORDIV, last, count))
    kind = buffer.dtype.with_lanes(count)
    name = f"{buffer.name}_x{count}"
    return replace(buffer, name=name, shape=(*outer, groups), dtype=kind, elem_offset=0)


def _declare_views(body: Stmt, func: PrimFunc, views: Views) -> Stmt:
    """Declare each view at the allocation of its memory, or at the top for parameters."""

    def rule(node: Any) -> Any:
        if not isinstance(node, Allocate):
            return None
        inner = node.body
        for (data, _), view in views.items():
            if data is node.buffer.data:
                inner = DeclBuffer(view, inner)
        return None if inner is node.body else Allocate(node.buffer, inner)

    body = bottom_up(body, rule)
    param_data = {param.data for param in func.params if isinstance(param, Buffer)}
    for (data, _), view in views.items():
        if data in param_data:
            body = DeclBuffer(view, body)
    return body


_ORDERS = (CmpOp.LT, CmpOp.LE, CmpOp.GT, CmpOp.GE)
_RAMPS = (BinOp.ADD, BinOp.SUB, BinOp.MUL, BinOp.FLOORDIV, BinOp.MOD)


@dataclass(frozen=True, slots=True, eq=False)
class LaneMask:
    """Active lanes.

    Attributes:
        mask: Boolean vector of active lanes. None: all lanes are active.
        may_be_empty: Whether all lanes may be inactive, so that even a uniform load must be masked.
    """

    mask: Expr | None = None
    may_be_empty: bool = False

    def restricted(self, condition: Expr) -> LaneMask:
        """Restrict the active lanes to those where `condition` holds."""
        return LaneMask(combine_masks(self.mask, condition), may_be_empty=True)


@dataclass(eq=False)
class VectorContext:
    """Context for vectorizing the expressions of one loop.

    Attributes:
        facts: Constraints that hold at the current statement.
        lanes: Lane count.
        values: Vector value of each lane-varying variable.
        private: Data variables of buffers that have one copy for each lane.
    """

    facts: ConstraintContext
    lanes: int
    values: dict[Var, Expr] = field(default_factory=dict)
    private: set[Var] = field(default_factory=set)
    _memo: dict[tuple[int, int], tuple[Expr, LaneMask, Expr]] = field(default_factory=dict)

    def simple(self, expr: Expr) -> Expr:
        """Simplify `expr` under the current constraints."""
        result: Expr = run_trampoline(expression(self.facts, expr))
        return result

    def forget(self) -> None:
        """Discard memoized results, which are invalid under changed constraints or values."""
        self._memo = {}

    def vector(self, expr: Expr, where: LaneMask) -> Expr:
        """Return the vector form of `expr`; a scalar if `expr` is uniform."""
        result: Expr = run_trampoline(self._task(expr, where))
        return result

    def spread(self, value: Expr) -> Expr:
        """Broadcast a scalar to all lanes; return a vector unchanged."""
        return value if value.dtype.lanes > 1 else Broadcast(value, self.lanes)

    def varies(self, expr: Expr) -> bool:
        """Return whether `expr` differs between lanes."""
        for node in walk(expr):
            if isinstance(node, Var) and node in self.values:
                return True
            if isinstance(node, BufferLoad) and node.buffer.data in self.private:
                return True
        return False

    def private_access(
        self, buffer: Buffer, indices: tuple[Expr, ...]
    ) -> tuple[Buffer, tuple[Expr, ...]]:
        """Return buffer and indices of an access; private memory is redirected to lane copies."""
        if buffer.data not in self.private:
            return buffer, indices
        copy = private_copy(buffer, self.lanes)
        *outer, last = indices
        lane = Ramp(index_value(0), index_value(1), self.lanes)
        scaled = _arithmetic(self, BinOp.MUL, last, index_value(self.lanes))
        return copy, (*outer, _arithmetic(self, BinOp.ADD, scaled, lane))

    def _task(self, node: Expr, where: LaneMask) -> Task:
        if isinstance(node, Const):
            return node
        if isinstance(node, Var):
            return self.values.get(node, node)
        key = (id(node), id(where))
        if key not in self._memo:
            # Keep references to the node and the lanes, so that their ids are not reused.
            self._memo[key] = node, where, (yield self._rule(node, where))
        return self._memo[key][2]

    def _rule(self, node: Expr, where: LaneMask) -> Task:
        match node:
            case BufferLoad():
                return (yield self._load(node, where))
            case Call("if_then_else", (condition, a, b)):
                return (yield self._choice(node, condition, a, b, where))
            case Call(name, args):
                return (yield self._call(node, name, args, where))
            case Binary(op, a, b):
                x = yield self._task(a, where)
                y = yield self._task(b, where)
                is_same = x is a and y is b
                return node if is_same else _arithmetic(self, op, x, y)
            case Compare():
                return (yield self._compare(node, where))
            case Not(a):
                x = yield self._task(a, where)
                return node if x is a else Not(x)
            case Cast(dtype, value):
                x = yield self._task(value, where)
                return node if x is value else Cast(dtype.with_lanes(x.dtype.lanes), x)
            case Select(condition, a, b):
                test = yield self._task(condition, where)
                x = yield self._task(a, where)
                y = yield self._task(b, where)
                return self._select(test, x, y)
        return node

    def _compare(self, node: Compare, where: LaneMask) -> Task:
        x = yield self._task(node.a, where)
        y = yield self._task(node.b, where)
        if x.dtype.lanes == y.dtype.lanes == 1:
            return node if x is node.a and y is node.b else Compare(node.op, x, y)
        return self.simple(Compare(node.op, self.spread(x), self.spread(y)))

    def _select(self, condition: Expr, a: Expr, b: Expr) -> Expr:
        if condition.dtype.lanes == a.dtype.lanes == b.dtype.lanes == 1:
            return Select(condition, a, b)
        known = constant_truth(condition)
        if known is not None:
            return a if known else b
        return Select(self.spread(condition), self.spread(a), self.spread(b))

    def _call(self, node: Call, name: str, args: tuple[Expr, ...], where: LaneMask) -> Task:
        parts: list[Expr] = []
        for arg in args:
            parts.append((yield self._task(arg, where)))
        if all(part.dtype.lanes == 1 for part in parts):
            return node if all(a is b for a, b in zip(parts, args, strict=True)) else Call(
                name, tuple(parts), node.dtype)
        if name == "dot":
            return self._dot(node, parts)
        if name == "reinterpret":
            kind = node.dtype.with_lanes(node.dtype.lanes * self.lanes)
            return Call(name, (parts[0],), kind)
        if name == "check_index":
            index, extent, site = parts
            widened: tuple[Expr, ...] = self.spread(index), self.spread(extent), site
        else:
            widened = tuple(self.spread(part) for part in parts)
        return Call(name, widened, node.dtype.with_lanes(self.lanes))

    def _dot(self, node: Call, parts: list[Expr]) -> Expr:
        """Vectorize a `dot`; its vector operands are widened if one differs between lanes."""
        pairs = list(zip(parts, node.args, strict=True))
        if all(part is arg for part, arg in pairs):
            return node
        if all(part.dtype == arg.dtype for part, arg in pairs):
            return Call(node.name, tuple(parts), node.dtype)
        widened = tuple(
            self._repeated(part) if part.dtype == arg.dtype else part for part, arg in pairs
        )
        return Call(node.name, widened, node.dtype.with_lanes(self.lanes))

    def _repeated(self, part: Expr) -> Expr:
        """Repeat an operand in all lanes; a reinterpreted scalar is broadcast before the cast."""
        match part:
            case Call("reinterpret", (word,)) if word.dtype.lanes == 1:
                kind = part.dtype.with_lanes(part.dtype.lanes * self.lanes)
                return Call(part.name, (Broadcast(word, self.lanes),), kind)
        return Broadcast(part, self.lanes)

    def _choice(self, node: Call, condition: Expr, a: Expr, b: Expr, where: LaneMask) -> Task:
        """Vectorize `if_then_else`: a lane-varying condition masks the loads of both values."""
        test = yield self._task(condition, where)
        if (known := constant_truth(test)) is not None:
            return (yield self._task(a if known else b, where))
        if test.dtype.lanes == 1:
            x = yield self._task(a, where)
            y = yield self._task(b, where)
            if x.dtype.lanes == y.dtype.lanes == 1:
                return Call(node.name, (test, x, y), node.dtype)
            x, y = self.spread(x), self.spread(y)
            return Call(node.name, (test, x, y), x.dtype)
        x = yield self._task(a, where.restricted(test))
        y = yield self._task(b, where.restricted(Not(test)))
        return self._select(test, x, y)

    def _load(self, node: BufferLoad, where: LaneMask) -> Task:
        indices: list[Expr] = []
        for index in node.indices:
            indices.append((yield self._task(index, where)))
        predicate: Expr | None = None
        if node.predicate is not None:
            predicate = yield self._task(node.predicate, where)
        buffer, position = self.private_access(node.buffer, tuple(indices))
        safe = predicate is None and self.is_inside(buffer, position)
        vector = position[-1].dtype.lanes > 1
        if not vector:
            uniform = predicate is None or predicate.dtype.lanes == 1
            if uniform and (safe or not where.may_be_empty):
                return BufferLoad(buffer, position, predicate)
            position = (*position[:-1], Broadcast(position[-1], self.lanes))
        if safe or (where.mask is None and predicate is None):
            return BufferLoad(buffer, position)
        # The lane mask comes first: indices are checked in active lanes only.
        return BufferLoad(buffer, position, combine_masks(where.mask, self._checks(predicate)))

    def _checks(self, predicate: Expr | None) -> Expr | None:
        """Broadcast a predicate to all lanes; index checks apply to each lane separately."""
        if predicate is None:
            return None
        result: Expr | None = None
        for term in conjuncts(predicate):
            widened = self.spread(term)
            match widened:
                case Broadcast(Call("check_index", (index, extent, site))):
                    operands = self.spread(index), self.spread(extent)
                    widened = Call("check_index", (*operands, site), widened.dtype)
            result = combine_masks(result, widened)
        return result

    def is_inside(self, buffer: Buffer, indices: tuple[Expr, ...]) -> bool:
        """Return whether an access is provably in bounds in every lane."""
        # The span of a flat buffer depends on the strides at call time.
        return not buffer.flat and all(
            self._ends_inside(index, index_value(extent))
            for index, extent in zip(indices, buffer.shape, strict=True)
        )

    def _ends_inside(self, index: Expr, extent: Expr) -> bool:
        facts = self.facts
        ends = [index]
        if isinstance(index, Ramp):
            if not isinstance(index.stride, Const):
                return False
            span = int(index.stride.value) * (index.lanes - 1)
            ends = [index.base, binary(BinOp.ADD, index.base, index_value(span))]
        elif index.dtype.lanes > 1:
            return False
        size = facts.terms.sum_of(self.simple(extent))
        for end in ends:
            total = facts.terms.sum_of(self.simple(end))
            exact = facts.is_exact(total) and facts.is_exact(size)
            if not (exact and facts.at_least(total, 0)
                    and facts.at_most(total.plus(size, -1), -1)):
                return False
        return True


def combine_masks(a: Expr | None, b: Expr | None) -> Expr | None:
    """Return `a and b`, where None means True in all lanes."""
    if a is None or b is None:
        return b if a is None else a
    if constant_truth(a) is True:
        return b
    return a if constant_truth(b) is True else Binary(BinOp.AND, a, b)


def in_all_lanes(lanes: VectorContext, test: Expr, loop_vars: Set[Var]) -> Expr | None:
    """Return a scalar condition that holds if `test` holds in all lanes, or None.

    A ramp of positive step is below a bound in all lanes if its last lane is. The result is None
    if a term of `test` does not compare an int64 ramp with a uniform bound, or if the condition
    does not depend on the enclosing loop variables `loop_vars`.
    """
    conditions: list[Expr] = []
    for term in conjuncts(test):
        match term:
            case Compare(op, Ramp(base, Const(step), count), Broadcast(bound)) if (
                op in _ORDERS and bound.dtype == INT64
            ):
                grows = step > 0
                at_end = grows == (op in (CmpOp.LT, CmpOp.LE))
                last_offset = index_value(int(step) * (count - 1))
                extreme = binary(BinOp.ADD, base, last_offset) if at_end else base
                conditions.append(Compare(op, lanes.simple(extreme), bound))
            case _:
                return None
    decided = (node in loop_vars for c in conditions for node in nodes_of(Var, c))
    return logical_and(*conditions) if any(decided) else None


def private_copy(buffer: Buffer, lanes: int) -> Buffer:
    """Return a buffer with one copy of `buffer` for each lane, interleaved in the last axis."""
    *outer, last = buffer.shape
    extent = last * lanes if isinstance(last, int) else binary(BinOp.MUL, last, lanes)
    return replace(buffer, shape=(*outer, extent))


def _arithmetic(lanes: VectorContext, op: BinOp, a: Expr, b: Expr) -> Expr:
    if a.dtype.lanes == b.dtype.lanes == 1:
        return Binary(op, a, b)
    if a.dtype.scalar == INT64 and op in _RAMPS:
        ramp = _ramp(lanes, op, a, b)
        if ramp is not None:
            return ramp
    vector = Binary(op, lanes.spread(a), lanes.spread(b))
    if op is BinOp.AND:
        combined = combine_masks(vector.a, vector.b)
        return vector if combined is None else combined
    return vector


def _ramp(lanes: VectorContext, op: BinOp, a: Expr, b: Expr) -> Expr | None:
    """Return the result as a ramp or a scalar, or None if it is neither."""
    match op, a, b:
        case (BinOp.ADD | BinOp.SUB, Ramp(x, dx), Ramp(y, dy)):
            stride = lanes.simple(Binary(op, dx, dy))
            start = lanes.simple(Binary(op, x, y))
            return start if is_const(stride, 0) else Ramp(start, stride, lanes.lanes)
        case (BinOp.ADD | BinOp.SUB, Ramp(x, dx), y) if y.dtype.lanes == 1:
            return Ramp(lanes.simple(Binary(op, x, y)), dx, lanes.lanes)
        case (BinOp.ADD, x, Ramp(y, dy)) if x.dtype.lanes == 1:
            return Ramp(lanes.simple(Binary(op, x, y)), dy, lanes.lanes)
        case (BinOp.SUB, x, Ramp(y, dy)) if x.dtype.lanes == 1:
            stride = lanes.simple(binary(BinOp.SUB, 0, dy))
            return Ramp(lanes.simple(Binary(op, x, y)), stride, lanes.lanes)
        case (BinOp.MUL, Ramp(x, dx), y) | (BinOp.MUL, y, Ramp(x, dx)) if y.dtype.lanes == 1:
            stride = lanes.simple(Binary(op, dx, y))
            start = lanes.simple(Binary(op, x, y))
            return start if is_const(stride, 0) else Ramp(start, stride, lanes.lanes)
        case (BinOp.FLOORDIV | BinOp.MOD, Ramp(x, Const(step)), Const(d)) if d > 0:
            return _divide_ramp(lanes, op, x, int(step), int(d))
    return None


def _divide_ramp(lanes: VectorContext, op: BinOp, base: Expr, step: int, d: int) -> Expr | None:
    """Return `ramp // d` or `ramp % d` if the result is a ramp or uniform, else None."""
    facts = lanes.facts
    start = facts.terms.sum_of(lanes.simple(base))
    if not facts.is_exact(start):
        return None
    # (x + l*d*c) // d == x // d + l*c, and (x + l*d*c) % d == x % d
    if step % d == 0:
        quotient = lanes.simple(facts.terms.expr(floordiv(facts, start, d)))
        if op is BinOp.MOD:
            return lanes.simple(facts.terms.expr(modulo(facts, start, d)))
        return Ramp(quotient, index_value(step // d), lanes.lanes)
    # (x + l*s) // d == x // d, and (x + l*s) % d == x % d + l*s, if 0 <= x % d + l*s < d
    remainder = modulo(facts, start, d)
    last: QuasiAffine = remainder.shifted(step * (lanes.lanes - 1))
    if not (facts.at_least(last, 0) and facts.at_most(last, d - 1)):
        return None
    if op is BinOp.FLOORDIV:
        return lanes.simple(facts.terms.expr(floordiv(facts, start, d)))
    return Ramp(facts.terms.expr(remainder), index_value(step), lanes.lanes)
