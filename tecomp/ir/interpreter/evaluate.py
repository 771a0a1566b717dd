"""Run any function at any stage of lowering on NumPy arrays: the oracle for passes and code.

Shares nothing with code generation but the description of the language. Slow, and strict: a read
or write outside of a buffer is an error, memory starts out filled with NaN or a pattern, and
parallel loops run backwards, so that what depends on luck shows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from tecomp.errors import CallError, InternalError
from tecomp.ir.interpreter.arguments import bind, extents_of, parameters_of, strides_of
from tecomp.ir.interpreter.expr import ACTIVE, Closure, Environment, Scope, compile_expr
from tecomp.ir.interpreter.load import Seen, Watch, store_function
from tecomp.ir.interpreter.memory import Bytes, View, bytes_of, compact, span, unwritten, view_of
from tecomp.ir.interpreter.outside import outside_call
from tecomp.ir.language.expr import BufferLoad
from tecomp.ir.language.given import check_kind
from tecomp.ir.language.outside_call import OutsideCall
from tecomp.ir.language.stmt import (
    Allocate,
    Buffer,
    BufferRealize,
    BufferStore,
    DeclBuffer,
    For,
    ForKind,
    IfThenElse,
    Let,
    Prefetch,
    PrimFunc,
    SeqStmt,
    Stmt,
)
from tecomp.ir.language.tensor_op import TensorOp, Touch

Action: TypeAlias = "Callable[[Environment], None]"


def evaluate(func: PrimFunc, args: Sequence[Any], watch: Watch | None = None) -> None:
    """Run `func` on arrays, which are written in place.

    Args:
        func: any function that `tecomp.ir.traversal.verify.verify` accepts.
        args: one for each parameter: a number for a variable; for a buffer a NumPy array of its
            shape and type, a vector type such as `float32x4` as an array of the scalars with the
            4 lanes as an extra last axis. Row-major and without gaps, unless the buffer has
            strides. Sizes come from the arrays' shapes.
        watch: told of every element that is read or written, and of the core that does it; `func`
            has no vectors then.

    Raises:
        CallError: an argument does not fit, or a run-time index check failed.
        InternalError: the function reaches outside of a buffer or is malformed.

    >>> from tecomp import te, lower
    >>> A = te.placeholder((3,), name="A")
    >>> B = te.compute((3,), lambda i: A[2 - i] * 2.0, name="B")
    >>> a, b = np.arange(3, dtype="float32"), np.empty(3, "float32")
    >>> evaluate(lower(te.create_schedule(B), [A, B]), [a, b])
    >>> b
    array([4., 2., 0.], dtype=float32)
    """
    check_kind(
        func, PrimFunc, "evaluate: the function", "give what tecomp.lower returns", CallError
    )
    check_kind(args, Sequence, "evaluate: args", "give a list of the arguments", CallError)
    scope = Scope(func.sites, watch=watch)
    params = parameters_of(scope, func)
    body = _compile(scope, func.body)
    with np.errstate(all="ignore"):
        env: Environment = [None] * scope.slots
        env[ACTIVE] = True
        bind(scope, func, params, args, env)
        body(env)


def _compile(scope: Scope, stmt: Stmt) -> Action:
    rule = _RULES.get(type(stmt))
    if rule is None:
        raise InternalError(f"a statement of kind {type(stmt).__name__} cannot be run")
    return rule(scope, stmt)


def _for(scope: Scope, node: For) -> Action:
    first, extent = compile_expr(scope, node.min), compile_expr(scope, node.extent)
    slot = scope.declare(node.loop_var)
    body = _compile(scope, node.body)
    # Who watches wants to see the order of the program.
    step = -1 if node.kind is ForKind.PARALLEL and scope.watch is None else 1
    if node.thread and scope.watch is not None:
        return _over_cores(node, scope.watch, (first, extent), slot, body)

    def run(env: Environment) -> None:
        low = first(env)
        for value in range(low, low + extent(env))[::step]:
            env[slot] = value
            body(env)

    return run


def _over_cores(
    node: For, watch: Watch, bounds: tuple[Any, Any], slot: int, body: Action
) -> Action:
    first, extent = bounds

    def run(env: Environment) -> None:
        low = first(env)
        for value in reversed(range(low, low + extent(env))):
            watch.core(node.thread, value)
            env[slot] = value
            body(env)
        watch.core(node.thread, None)

    return run


def _if(scope: Scope, node: IfThenElse) -> Action:
    condition = compile_expr(scope, node.condition)
    then = _compile(scope, node.then_case)
    other = _compile(scope, node.else_case or SeqStmt(()))
    return lambda env: then(env) if condition(env) else other(env)


def _store(scope: Scope, node: BufferStore) -> Action:
    value = compile_expr(scope, node.value)
    indices = [compile_expr(scope, index) for index in node.indices]
    predicate = None if node.predicate is None else compile_expr(scope, node.predicate)
    seen = None if scope.watch is None else scope.watch.writer(node)
    return store_function(node, scope.view_slot(node.buffer), value, indices, predicate, seen)


def _prefetch(scope: Scope, node: Prefetch) -> Action:
    # A request is no access.
    watch, scope.watch = scope.watch, None
    read = compile_expr(scope, node.place)
    scope.watch = watch

    def run(env: Environment) -> None:
        read(env)

    return run


@dataclass(frozen=True, slots=True)
class _Writes:
    """Tells who watches of reads as if they were writes."""

    watch: Watch

    def reader(self, node: BufferLoad) -> Seen:
        return self.watch.writer(BufferStore(node.buffer, node, node.indices, node.predicate))

    def __getattr__(self, name: str) -> Any:
        return getattr(self.watch, name)


def _touch(scope: Scope, node: Touch) -> Action:
    watch = scope.watch
    if node.is_written and watch is not None:
        scope.watch = _Writes(watch)
    read = compile_expr(scope, node.place)
    scope.watch = watch

    def run(env: Environment) -> None:
        read(env)

    return run


def _operation(scope: Scope, node: TensorOp) -> Action:
    watch = scope.watch
    told = None if watch is None else watch.operation(node)
    if told is None:
        return _compile(scope, node.body)
    operands = _compile(scope, node.operands)
    scope.watch = None
    body = _compile(scope, node.body)
    scope.watch = watch

    def run(env: Environment) -> None:
        told()
        operands(env)
        body(env)

    return run


def _realize(scope: Scope, node: BufferRealize) -> Action:
    lows = extents_of(scope, [bound.min for bound in node.bounds])
    extents = extents_of(scope, [bound.extent for bound in node.bounds])

    def region(env: Environment) -> tuple[View, Bytes]:
        low, shape = lows(env), extents(env)
        view, memory = _allocated(node.buffer, shape, compact(shape))
        high = tuple(start + extent for start, extent in zip(low, shape, strict=True))
        return View(view.name, view.array, low, high), memory

    return _within(scope, node, region)


def _keep(old: View | None, new: View) -> None:
    """Copy what the last part has of the next one."""
    if old is None:
        return
    low = [max(ends) for ends in zip(old.low, new.low, strict=True)]
    high = [max(min(ends), start) for *ends, start in zip(old.high, new.high, low, strict=True)]
    source, target = (
        tuple(slice(a - first, b - first) for a, b, first in zip(low, high, view.low, strict=True))
        for view in (old, new)
    )
    new.array[target] = old.array[source]


def _allocate(scope: Scope, node: Allocate) -> Action:
    extents, strides = extents_of(scope, node.buffer.shape), strides_of(scope, node.buffer)

    def memory(env: Environment) -> tuple[View, Bytes]:
        return _allocated(node.buffer, extents(env), strides(env))

    return _within(scope, node, memory)


def _allocated(
    buffer: Buffer, shape: tuple[int, ...], strides: tuple[int, ...]
) -> tuple[View, Bytes]:
    memory = unwritten(buffer.dtype, span(shape, strides))
    return view_of(buffer.name, memory, buffer.dtype, shape, strides), memory


def _within(
    scope: Scope,
    node: Allocate | BufferRealize,
    make: Callable[[Environment], tuple[View, Bytes]],
) -> Action:
    view, memory = scope.declare_view(node.buffer), scope.declare(node.buffer.data)
    body = _compile(scope, node.body)
    scope.forget_view(node.buffer)

    keeps = isinstance(node, BufferRealize) and node.carried is not None

    def run(env: Environment) -> None:
        last = env[view]
        env[view], env[memory] = make(env)
        if keeps:
            _keep(last, env[view])
        body(env)

    return run


def _declare(scope: Scope, node: DeclBuffer) -> Action:
    buffer, memory = node.buffer, scope.slot_of(node.buffer.data)
    extents, strides = extents_of(scope, buffer.shape), strides_of(scope, buffer)
    slot = scope.declare_view(buffer)
    body = _compile(scope, node.body)
    scope.forget_view(buffer)

    def run(env: Environment) -> None:
        region = bytes_of(env[memory])
        env[slot] = view_of(buffer.name, region, buffer.dtype, extents(env), strides(env))
        body(env)

    return run


def _let(scope: Scope, node: Let) -> Action:
    """A chain of values at once: there may be more of them than functions in each other."""
    steps: list[tuple[int, Closure]] = []
    inner: Stmt = node
    while isinstance(inner, Let):
        value = compile_expr(scope, inner.value)
        steps.append((scope.declare(inner.var), value))
        inner = inner.body
    body = _compile(scope, inner)

    def run(env: Environment) -> None:
        for slot, value in steps:
            env[slot] = value(env)
        body(env)

    return run


def _sequence(scope: Scope, node: SeqStmt) -> Action:
    actions = [_compile(scope, stmt) for stmt in node.stmts]

    def run(env: Environment) -> None:
        for action in actions:
            action(env)

    return run


_RULES: dict[type[Stmt], Callable[[Scope, Any], Action]] = {
    For: _for,
    IfThenElse: _if,
    BufferStore: _store,
    Prefetch: _prefetch,
    BufferRealize: _realize,
    Allocate: _allocate,
    DeclBuffer: _declare,
    Let: _let,
    SeqStmt: _sequence,
    Touch: _touch,
    TensorOp: _operation,
    OutsideCall: outside_call,
}
