"""Emit expressions as LLVM instructions.

A rule is a generator that yields operand expressions and receives their LLVM operands.
`tecomp.ir.traversal.rewrite` runs the rules, because expressions nest deeper than the Python stack.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from functools import partial
from typing import Any, TypeAlias

from tecomp.codegen.llvm.ir_builder import (
    FunctionBuilder,
    begin_if,
    broadcast,
    end_if,
    lane_numbers,
    literal,
    register_type,
    shuffle_mask,
    splat,
)
from tecomp.codegen.memory.load_store import load
from tecomp.codegen.ops.arithmetic import (
    binary,
    call_function,
    cast,
    compare,
    divide_unsigned,
    is_power_of_two,
    non_negative_bits,
    outside_value,
)
from tecomp.codegen.ops.bounds_checks import check_index
from tecomp.codegen.ops.dot_product import dot
from tecomp.codegen.ops.index_ramps import compare_ramps, narrow_ramp
from tecomp.errors import InternalError
from tecomp.ir.nodes.dtype import INT64
from tecomp.ir.nodes.expr import (
    Binary,
    BinOp,
    Broadcast,
    BufferLoad,
    Call,
    Cast,
    Compare,
    Const,
    Expr,
    Not,
    Ramp,
    Select,
    Var,
)
from tecomp.ir.nodes.operators import outside_function
from tecomp.ir.traversal.rewrite import conjuncts, run_trampoline

Rule: TypeAlias = "Generator[Expr, str, str]"


def emit(code: FunctionBuilder, root: Expr) -> str:
    """Emit an expression and return its LLVM operand."""
    operand = _at_once(code, root)
    return run_rule(code, _cached_value(code, root)) if operand is None else operand


def run_rule(code: FunctionBuilder, first: Rule) -> str:
    """Run a rule and the rules of its operands; return its result."""
    return run_trampoline(first, partial(_cached_value, code), partial(_at_once, code)) or ""


def _cached_value(code: FunctionBuilder, expr: Expr) -> Rule:
    """Emit an expression by the rule of its class, and record its operand."""
    rule = _RULES.get(type(expr))
    if rule is None:
        raise InternalError(
            "cannot compile an expression of type {type}",
            type=type(expr).__name__,
        )
    operand = str((yield from rule(code, expr)))
    code.remember(expr, operand)
    return operand


def _at_once(code: FunctionBuilder, expr: Expr) -> str | None:
    if isinstance(expr, Const):
        return literal(expr.value, expr.dtype)
    if isinstance(expr, Var):
        return code.value_of(expr)
    return code.known(expr)


def _cast(code: FunctionBuilder, node: Cast) -> Rule:
    ramp = narrow_ramp(node)
    if ramp is not None:
        return (yield ramp)
    value = yield node.value
    return cast(code, value, node.value.dtype, node.dtype)


def _binary(code: FunctionBuilder, node: Binary) -> Rule:
    if node.op is BinOp.AND:
        return (yield from _conjunction(code, node))
    if node.op is BinOp.ADD and isinstance(node.b, Call) and node.b.name == "dot":
        return (yield from _dot_added(code, node.a, node.b))
    a = yield node.a
    b = yield node.b
    if node.op in (BinOp.MIN, BinOp.MAX) and isinstance(node.a, BufferLoad):
        # A NaN first operand is returned unchanged. If it is loaded from the address of the result,
        # LLVM would emit a masked store, which is many times slower.
        a, b = b, a
    divisor = _literal_integer(node.b)
    if (
        node.op in (BinOp.FLOORDIV, BinOp.MOD) and node.dtype == INT64
        and divisor is not None and divisor > 0 and not is_power_of_two(divisor)
        and non_negative_bits(node.a, code.non_negative) is not None
    ):
        return divide_unsigned(code, node.op, a, divisor)
    return binary(code, node.op, node.a.dtype, a, b, divisor)


def _dot_added(code: FunctionBuilder, start: Expr, node: Any) -> Rule:
    """Emit a dot product with an accumulator as one instruction."""
    total = yield start
    a = yield node.args[0]
    b = yield node.args[1]
    return dot(code, node.args[0].dtype, node.args[1].dtype, a, b, total)


def _literal_integer(expr: Expr) -> int | None:
    if isinstance(expr, Broadcast):
        expr = expr.value
    return int(expr.value) if isinstance(expr, Const) and expr.dtype.is_integer else None


def _conjunction(code: FunctionBuilder, node: Binary) -> Rule:
    """Emit `a and b`; an index is checked only if the preceding conditions hold."""
    kind = register_type(node.dtype)
    joined: str | None = None
    for term in conjuncts(node):
        if joined is None or not (isinstance(term, Call) and term.name == "check_index"):
            operand = yield term
            joined = operand if joined is None else code.op(f"and {kind} {joined}, {operand}")
        elif node.dtype.lanes == 1:
            guard = begin_if(code, joined)
            operand = yield term
            joined = end_if(code, guard, operand, "i1", "false")
        else:
            operand = yield from check_index(code, term, joined)
            joined = code.op(f"and {kind} {joined}, {operand}")
    return joined or "true"


def _compare(code: FunctionBuilder, node: Compare) -> Rule:
    ramp_rule = compare_ramps(code, node)
    if ramp_rule is not None:
        return (yield from ramp_rule)
    a = yield node.a
    b = yield node.b
    return compare(code, node.op, node.a.dtype, a, b)


def _not(code: FunctionBuilder, node: Not) -> Rule:
    a = yield node.a
    return code.op(f"xor {register_type(node.dtype)} {a}, {splat('true', 'i1', node.dtype.lanes)}")


def _select(code: FunctionBuilder, node: Select) -> Rule:
    condition = yield node.condition
    a = yield node.a
    b = yield node.b
    test, kind = register_type(node.condition.dtype), register_type(node.dtype)
    return code.op(f"select {test} {condition}, {kind} {a}, {kind} {b}")


def _call(code: FunctionBuilder, node: Call) -> Rule:
    if node.name == "if_then_else":
        return (yield from _if_then_else(code, node))
    if node.name == "check_index":
        return (yield from check_index(code, node, None))
    operands = []
    for arg in node.args:
        operands.append((yield arg))
    if (function := outside_function(node.name)) is not None:
        types = [arg.dtype for arg in node.args]
        return outside_value(code, function, node.dtype, types, operands)
    if node.name == "reinterpret":
        source, kind = register_type(node.args[0].dtype), register_type(node.dtype)
        return operands[0] if source == kind else code.op(
            f"bitcast {source} {operands[0]} to {kind}")
    if node.name == "dot":
        return dot(code, node.args[0].dtype, node.args[1].dtype, *operands)
    return call_function(code, node.name, node.args[0].dtype, operands)


def _if_then_else(code: FunctionBuilder, node: Call) -> Rule:
    """Emit a branch that computes only one value, so the condition may guard a load."""
    test, a, b = node.args
    if test.dtype.lanes > 1:
        return (yield from _select(code, Select(test, a, b)))
    condition = yield test
    kind = register_type(node.dtype)
    then, other, after = code.name("then"), code.name("else"), code.name("after")
    code.branch(condition, then, other)
    incoming = []
    for label, arm in ((then, a), (other, b)):
        code.label(label)
        code.memo.append({})
        value = yield arm
        code.memo.pop()
        incoming.append(f"[ {value}, %{code.block} ]")
        code.jump(after)
    code.label(after)
    return code.op(f"phi {kind} {', '.join(incoming)}")


def _ramp(code: FunctionBuilder, node: Ramp) -> Rule:
    base = yield node.base
    stride = yield node.stride
    scalar, kind = register_type(node.dtype.scalar), register_type(node.dtype)
    step = _literal_integer(node.stride)
    if step is not None:
        offsets = lane_numbers(node.lanes, scalar, step)
    else:
        stride_vec = broadcast(code, stride, scalar, node.lanes)
        offsets = code.op(f"mul {kind} {stride_vec}, {lane_numbers(node.lanes, scalar)}")
    if _literal_integer(node.base) == 0:
        return offsets
    return code.op(f"add {kind} {broadcast(code, base, scalar, node.lanes)}, {offsets}")


def _broadcast(code: FunctionBuilder, node: Broadcast) -> Rule:
    value = yield node.value
    inner = node.value.dtype
    if inner.lanes > 1:
        repeated = list(range(inner.lanes)) * node.lanes
        kind = register_type(inner)
        return code.op(f"shufflevector {kind} {value}, {kind} poison, {shuffle_mask(repeated)}")
    if isinstance(node.value, Const):
        return splat(value, register_type(inner), node.lanes)
    return broadcast(code, value, register_type(inner), node.lanes)


_RULES: dict[type, Callable[[FunctionBuilder, Any], Rule]] = {
    Cast: _cast,
    Binary: _binary,
    Compare: _compare,
    Not: _not,
    Select: _select,
    Call: _call,
    Ramp: _ramp,
    Broadcast: _broadcast,
    BufferLoad: load,
}
