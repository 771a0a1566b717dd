"""Compile expressions to Python closures over an environment of slots.

A rule is a generator that yields operands and is sent their closures, so that compilation does not
recurse. The closures call each other. A subexpression that is shared, or that would nest too
deeply, is evaluated beforehand into a slot of its own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from tecomp.errors import CallError, InternalError
from tecomp.ir.extern.binding import number
from tecomp.ir.extern.registry import CallSignature, NumberType, function_of
from tecomp.ir.interpreter.arithmetic import (
    Data,
    binary_function,
    call_function,
    cast_function,
    compare_function,
    constant,
    reinterpret_function,
    wrap_to_dtype,
)
from tecomp.ir.interpreter.memory import MemoryObserver, load_function
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
from tecomp.ir.nodes.operators import INTRINSICS, outside_function
from tecomp.ir.nodes.stmt import Buffer, CallingConvention
from tecomp.ir.traversal.rewrite import children, run_trampoline, walk

Environment: TypeAlias = "list[Any]"
Closure: TypeAlias = Callable[[Environment], Data]
Rule: TypeAlias = "Generator[Expr, Closure, Closure]"

_MAX_DEPTH = 100
# Below this bound int64 arithmetic of NumPy does not overflow, and `astype` wraps correctly.
_SAFE = 2**62
# Slot 0 contains the mask of lanes in which run-time index checks are active.
ACTIVE = 0


@dataclass
class SlotScope:
    """Slots of the variables and buffers in scope.

    Attributes:
        sites: Source expression of each run-time index check.
        slots: Number of allocated slots.
        watch: Observer of element reads and writes, or None.
        mapped: Addresses of buffers with pending layout maps; their axis separators do not refer to
            their current axes.
    """

    sites: tuple[str, ...]
    slots: int = ACTIVE + 1
    watch: MemoryObserver | None = None
    mapped: frozenset[Var] = frozenset()
    _variables: dict[Var, int] = field(default_factory=dict)
    _views: dict[Var, list[tuple[Buffer, int]]] = field(default_factory=dict)

    def new_slot(self) -> int:
        """Allocate an unused slot."""
        self.slots += 1
        return self.slots - 1

    def declare(self, var: Var) -> int:
        """Allocate the slot of a variable and bring the variable into scope."""
        self._variables[var] = self.new_slot()
        return self._variables[var]

    def slot_of(self, var: Var) -> int:
        """Return the slot of a variable.

        Raises:
            InternalError: If the variable is not bound.
        """
        if var not in self._variables:
            raise InternalError("variable {var} is not bound where it is used", var=var.name)
        return self._variables[var]

    def declare_view(self, buffer: Buffer) -> int:
        """Allocate the slot of a buffer and bring the buffer into scope."""
        slot = self.new_slot()
        self._views.setdefault(buffer.data, []).append((buffer, slot))
        return slot

    def forget_view(self, buffer: Buffer) -> None:
        """End the scope of the last declared view of the memory of `buffer`."""
        self._views[buffer.data].pop()

    def memory_of(self, buffer: Buffer) -> tuple[Buffer, int]:
        """Return the buffer that was first declared for the memory of a view, and its slot."""
        return self._views[buffer.data][0]

    def view_slot(self, buffer: Buffer) -> int:
        """Return the slot of a buffer.

        Raises:
            InternalError: If no equal view of the memory is in scope.
        """
        views = self._views.get(buffer.data, [])
        for known, slot in reversed(views):
            if known is buffer or known == buffer:
                return slot
        declared = "; ".join(str(known) for known, _ in views) or "nothing"
        raise InternalError(
            "{buffer} is not declared where it is used; its memory has {seen}",
            buffer=buffer, seen=declared,
        )


@dataclass
class _Block:
    """Region of an expression that is evaluated as a unit.

    Attributes:
        steps: Shared subexpressions to evaluate first, with their slots.
        known: Closures that read the results of these steps, by node id.
    """

    steps: list[tuple[int, Closure]] = field(default_factory=list)
    known: dict[int, Closure] = field(default_factory=dict)

    def ending_in(self, result: Closure) -> Closure:
        """Return a closure that evaluates all steps and then `result`."""
        steps = self.steps
        if not steps:
            return result

        def run(env: Environment) -> Data:
            for slot, step in steps:
                env[slot] = step(env)
            return result(env)

        return run


class _Compiler:
    """State of one compilation: scope, use counts and open blocks, outermost first."""

    def __init__(self, scope: SlotScope, root: Expr) -> None:
        self.scope = scope
        self.blocks = [_Block()]
        self.uses = Counter(id(part) for node in walk(root) for part in children(node))
        # Nesting depth of the operand closures of each open rule.
        self.depths: list[int] = []

    def known(self, node: Expr) -> Closure | None:
        for block in self.blocks:
            if id(node) in block.known:
                return block.known[id(node)]
        return None

    def settle(self, node: Expr, closure: Closure, depth: int) -> tuple[Closure, int]:
        """Return the closure of a node and its depth; assign a slot to shared or deep nodes."""
        shared = self.uses[id(node)] > 1 and depth > 0
        if not shared and depth < _MAX_DEPTH:
            return closure, depth
        slot = self.scope.new_slot()
        self.blocks[-1].steps.append((slot, closure))

        def stored(env: Environment) -> Data:
            return env[slot]

        self.blocks[-1].known[id(node)] = stored
        return stored, 0


def compile_expr(scope: SlotScope, root: Expr) -> Closure:
    """Compile `root` to a closure over the slots."""
    compiler = _Compiler(scope, root)
    result = run_trampoline(_settle(compiler, root), partial(_settle, compiler), compiler.known)
    return compiler.blocks[0].ending_in(result)


def _settle(compiler: _Compiler, node: Expr) -> Rule:
    rule = _RULES.get(type(node))
    if rule is None:
        raise InternalError(
            "cannot evaluate an expression of kind {type}",
            type=type(node).__name__,
        )
    compiler.depths.append(0)
    closure = yield from rule(compiler, node)
    closure, depth = compiler.settle(node, closure, compiler.depths.pop())
    if compiler.depths:
        compiler.depths[-1] = max(compiler.depths[-1], depth + 1)
    return closure


def _var(compiler: _Compiler, node: Var) -> Rule:
    slot = compiler.scope.slot_of(node)
    yield from ()
    return lambda env: env[slot]


def _const(compiler: _Compiler, node: Const) -> Rule:
    value = constant(node.value, node.dtype)
    yield from ()
    return lambda env: value


def _cast(compiler: _Compiler, node: Cast) -> Rule:
    value = yield node.value
    convert = cast_function(node.value.dtype, node.dtype)
    return lambda env: convert(value(env))


def _binary(compiler: _Compiler, node: Binary) -> Rule:
    if node.op is BinOp.AND:
        return (yield from _and(compiler, node))
    a = yield node.a
    b = yield node.b
    operate = binary_function(node.op, node.a.dtype)
    return lambda env: operate(a(env), b(env))


def _and(compiler: _Compiler, node: Binary) -> Rule:
    """Compile `and`: both sides are evaluated, but the left masks index checks in the right."""
    a = yield node.a
    compiler.blocks.append(_Block())
    right = yield node.b
    b = compiler.blocks.pop().ending_in(right)

    def run(env: Environment) -> Data:
        outer, left = env[ACTIVE], a(env)
        env[ACTIVE] = outer & left
        try:
            return left & b(env)
        finally:
            env[ACTIVE] = outer

    return run


def _compare(compiler: _Compiler, node: Compare) -> Rule:
    a = yield node.a
    b = yield node.b
    test = compare_function(node.op, node.a.dtype)
    return lambda env: test(a(env), b(env))


def _not(compiler: _Compiler, node: Not) -> Rule:
    a = yield node.a
    if node.dtype.lanes == 1:
        return lambda env: not a(env)
    return lambda env: ~a(env)


def _select(compiler: _Compiler, node: Select) -> Rule:
    condition = yield node.condition
    a = yield node.a
    b = yield node.b

    def run(env: Environment) -> Data:
        test, x, y = condition(env), a(env), b(env)
        return np.where(test, x, y) if isinstance(test, np.ndarray) else x if test else y

    return run


def _call(compiler: _Compiler, node: Call) -> Rule:
    if (outside := outside_function(node.name)) is not None:
        return (yield from _outside_value(node, outside))
    if node.name not in INTRINSICS:
        raise InternalError("unknown function {node}", node=node.name)
    if node.name == "if_then_else":
        return (yield from _if_then_else(compiler, node))
    if node.name == "check_index":
        return (yield from _check_index(compiler, node))
    operands: list[Closure] = []
    for arg in node.args:
        operands.append((yield arg))
    source = node.args[0].dtype
    if node.name == "reinterpret":
        function = reinterpret_function(source, node.dtype)
    else:
        function = call_function(node.name, source)
    return lambda env: function(*[operand(env) for operand in operands])


def _outside_value(node: Call, name: str) -> Rule:
    """Compile a call of a scalar C function."""
    operands: list[Closure] = []
    for arg in node.args:
        operands.append((yield arg))
    kinds = tuple(NumberType(arg.dtype) for arg in node.args)
    function = function_of(CallSignature(name, CallingConvention.C, kinds, "evaluate", node.dtype))
    kind = node.dtype.numpy.type if node.dtype.is_float else None

    def run(env: Environment) -> Data:
        values = [operand(env) for operand in operands]
        args = [number(value, arg_kind) for value, arg_kind in zip(values, kinds, strict=True)]
        found: Data = function(*args)
        return found if kind is None else kind(found)

    return run


def _if_then_else(compiler: _Compiler, node: Call) -> Rule:
    """Compile `if_then_else`: lazy for a scalar condition, as `select` for a vector condition."""
    test, a, b = node.args
    if test.dtype.lanes > 1:
        return (yield from _select(compiler, Select(test, a, b)))
    condition = yield test
    arms: list[Closure] = []
    for arm in (a, b):
        compiler.blocks.append(_Block())
        closure = yield arm
        arms.append(compiler.blocks.pop().ending_in(closure))
    then, other = arms
    return lambda env: then(env) if condition(env) else other(env)


def _check_index(compiler: _Compiler, node: Call) -> Rule:
    index = yield node.args[0]
    extent = yield node.args[1]
    site = yield node.args[2]
    sites = compiler.scope.sites

    def run(env: Environment) -> Data:
        value, limit = index(env), extent(env)
        inside = (value >= 0) & (value < limit)
        if inside is True:
            return True
        failing = np.logical_and(np.logical_not(inside), env[ACTIVE])
        if failing.any():
            lane = int(np.argmax(failing))
            position = int(np.broadcast_to(value, failing.shape).flat[lane])
            number = int(np.broadcast_to(site(env), failing.shape).flat[lane])
            raise CallError(
                "index {index} is out of bounds for {site}",
                kind="out-of-bounds", index=position, site=sites[number],
            )
        return inside

    return run


def _load(compiler: _Compiler, node: BufferLoad) -> Rule:
    indices: list[Closure] = []
    for index in node.indices:
        indices.append((yield index))
    predicate = None if node.predicate is None else (yield node.predicate)
    scope = compiler.scope
    record = None if scope.watch is None else scope.watch.reader(node)
    return load_function(node, scope.view_slot(node.buffer), indices, predicate, record)


def _ramp(compiler: _Compiler, node: Ramp) -> Rule:
    base = yield node.base
    stride = yield node.stride
    wrap, lanes, kind = wrap_to_dtype(node.dtype.scalar), range(node.lanes), node.dtype.numpy
    lane_ids = np.arange(node.lanes)

    def run(env: Environment) -> Data:
        first, step = base(env), stride(env)
        last = first + lanes[-1] * step
        if max(abs(first), abs(step), abs(last)) < _SAFE:
            return (lane_ids * step + first).astype(kind)
        return np.array([wrap(first + lane * step) for lane in lanes], kind)

    return run


def _broadcast(compiler: _Compiler, node: Broadcast) -> Rule:
    value = yield node.value
    lanes, kind = node.lanes, node.dtype.numpy
    if node.value.dtype.lanes == 1:
        return lambda env: np.full(lanes, value(env), kind)
    return lambda env: np.tile(np.asarray(value(env), kind), lanes)


_RULES: dict[type, Callable[[_Compiler, Any], Rule]] = {
    Var: _var,
    Const: _const,
    Cast: _cast,
    Binary: _binary,
    Compare: _compare,
    Not: _not,
    Select: _select,
    Call: _call,
    BufferLoad: _load,
    Ramp: _ramp,
    Broadcast: _broadcast,
}
