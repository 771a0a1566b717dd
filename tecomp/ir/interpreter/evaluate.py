"""Run functions on NumPy arrays; argument binding and external calls."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tecomp.errors import CallError, InternalError
from tecomp.ir.extern.binding import invoker
from tecomp.ir.extern.registry import callee_of
from tecomp.ir.interpreter.arithmetic import wrap_to_dtype
from tecomp.ir.interpreter.expr import ACTIVE, Closure, Environment, SlotScope, compile_expr
from tecomp.ir.interpreter.memory import (
    BufferView,
    Bytes,
    MemoryObserver,
    Seen,
    bytes_of,
    compact,
    memory_of,
    part_of,
    places_of,
    span,
    store_function,
    unwritten,
    view_of,
    view_of_rows,
)
from tecomp.ir.nodes.argument_checks import check_kind
from tecomp.ir.nodes.expr import BufferLoad, Expr, Var, index_value
from tecomp.ir.nodes.stmt import (
    Allocate,
    ArrayArgument,
    Buffer,
    BufferRealize,
    BufferStore,
    DeclBuffer,
    Extent,
    ExternCall,
    For,
    ForKind,
    IfThenElse,
    Let,
    OperandTransfer,
    Prefetch,
    PrimFunc,
    SeqStmt,
    Stmt,
    TensorOp,
)
from tecomp.ir.traversal.verify import verify

Extents: TypeAlias = "Callable[[Environment], tuple[int, ...]]"


@dataclass(frozen=True, slots=True)
class BufferParameter:
    """Buffer parameter: its slots and the required shape and strides of its array.

    Attributes:
        buffer: Parameter.
        view: Slot of the view that is read and written.
        memory: Slot of the array.
        shape: Function that computes the required shape, without lanes.
        strides: Function that computes the required strides in elements, without lanes.
        offset: Function that computes the offset of the first element in the array.
    """

    buffer: Buffer
    view: int
    memory: int
    shape: Extents
    strides: Extents
    offset: Extents


def parameters_of(scope: SlotScope, func: PrimFunc) -> list[BufferParameter | tuple[Var, int]]:
    """Return for each parameter the slots of the buffer, or the variable and its slot."""
    for var in (*func.sizes, *(p for p in func.params if isinstance(p, Var))):
        scope.declare(var)
    found: list[BufferParameter | tuple[Var, int]] = []
    for param in func.params:
        if isinstance(param, Buffer):
            slots = scope.declare_view(param), scope.declare(param.data)
            shape, strides = extents_of(scope, param.shape), strides_of(scope, param)
            offset = extents_of(scope, [param.elem_offset])
            found.append(BufferParameter(param, *slots, shape, strides, offset))
        else:
            found.append((param, scope.slot_of(param)))
    return found


def extents_of(scope: SlotScope, entries: Sequence[Extent]) -> Extents:
    """Return a function that computes extents or strides from the slots."""
    closures = [compile_expr(scope, index_value(entry)) for entry in entries]
    return lambda env: tuple([closure(env) for closure in closures])


def strides_of(scope: SlotScope, buffer: Buffer) -> Extents:
    """Return a function that computes the strides of a buffer in elements from the slots."""
    if buffer.strides is not None:
        return extents_of(scope, buffer.strides)
    shape = extents_of(scope, buffer.shape)
    return lambda env: compact(shape(env))


def bind(
    scope: SlotScope,
    func: PrimFunc,
    params: list[BufferParameter | tuple[Var, int]],
    args: Sequence[Any],
    env: Environment,
) -> None:
    """Store the arguments of a call, and the sizes that follow from them, in the slots of `env`.

    Raises:
        CallError: If the number of arguments is wrong, or an argument does not match its parameter.
    """
    if len(args) != len(params):
        raise CallError(
            "{func} expects {param_count} arguments, got {arg_count}",
            kind="argument-count", func=func.name, param_count=len(params), arg_count=len(args),
        )
    arrays: list[tuple[BufferParameter, NDArray[Any]]] = []
    for param, arg in zip(params, args, strict=True):
        if isinstance(param, BufferParameter):
            _check_array(func, param.buffer, arg)
            arrays.append((param, arg))
            env[param.memory] = arg
        else:
            env[param[1]] = _number(param[0], arg)
    for size in func.sizes:
        env[scope.slot_of(size)] = _size(func, size, arrays)
    for param, array in arrays:
        shape, name = param.shape(env), param.buffer.name
        if param.buffer.has_offset:
            [first] = param.offset(env)
            array = env[param.memory] = part_of(name, array, shape, param.strides(env), first)
        if shape != array.shape[: len(shape)]:
            raise CallError(
                "{func}: {name} has shape {array_shape}, expected {shape}",
                kind="argument-mismatch", func=func.name, name=name, shape=shape,
                array_shape=array.shape,
            )
        _check_strides(func, param, array, env)
        flat = param.buffer.flat
        env[param.view] = places_of(name, array, len(shape)) if flat else BufferView(
            name, array, (0,) * len(shape), shape)


def _check_array(func: PrimFunc, buffer: Buffer, arg: Any) -> None:
    if not isinstance(arg, np.ndarray) or arg.dtype != buffer.dtype.numpy:
        actual = f"{arg.dtype} array" if isinstance(arg, np.ndarray) else type(arg).__name__
        raise CallError(
            "{func}: {buffer} must be an array of {dtype}, got {value}",
            kind="argument-mismatch", func=func.name, buffer=buffer.name, dtype=buffer.dtype,
            value=actual,
        )
    lanes = () if buffer.dtype.lanes == 1 else (buffer.dtype.lanes,)
    rank = (1 if buffer.has_offset else len(buffer.shape)) + len(lanes)
    if arg.ndim != rank or arg.shape[rank - len(lanes) :] != lanes:
        raise CallError(
            "{func}: {buffer} of {dtype} must have {rank} axes including the lanes, got shape "
            "{shape}",
            kind="argument-mismatch", func=func.name, buffer=buffer.name, dtype=buffer.dtype,
            rank=rank, shape=arg.shape,
        )


def _check_strides(
    func: PrimFunc, param: BufferParameter, array: NDArray[Any], env: Environment
) -> None:
    name, element = param.buffer.name, param.buffer.dtype
    expected = param.strides(env)
    if element.lanes > 1:
        expected = (*(step * element.lanes for step in expected), 1)
    actual = tuple(step // array.itemsize for step in array.strides)
    axes = zip(array.shape, expected, array.strides, strict=True)
    if array.size and any(n > 1 and stride * array.itemsize != step for n, stride, step in axes):
        raise CallError(
            "{func}: {name} has strides {found}, expected {expected}",
            kind="argument-mismatch", func=func.name, name=name, expected=expected, found=actual,
        )


def _number(var: Var, arg: Any) -> Any:
    if var.dtype.is_float:
        return var.dtype.numpy.type(arg)
    return bool(arg) if var.dtype.is_bool else wrap_to_dtype(var.dtype)(int(arg))


def _size(func: PrimFunc, size: Var, arrays: list[tuple[BufferParameter, NDArray[Any]]]) -> int:
    arrays = [(param, array) for param, array in arrays if not param.buffer.has_offset]
    for param, array in arrays:
        for axis, extent in enumerate(param.buffer.shape):
            if extent is size:
                return int(array.shape[axis])
    found: list[int] = []
    for param, array in arrays:
        for axis, stride in enumerate(param.buffer.strides or ()):
            if stride is size:
                step = array.strides[axis] // (array.itemsize * param.buffer.dtype.lanes)
                # The stride of an axis of extent 1 is arbitrary, so it is only a fallback.
                found.insert(0 if array.shape[axis] > 1 else len(found), step)
    if not found:
        raise CallError(
            "{func}: size {size} cannot be inferred; no array has it as an axis",
            kind="unbound-size", func=func.name, size=size.name,
        )
    return found[0]


def outside_call(scope: SlotScope, node: ExternCall) -> Callable[[Environment], None]:
    """Compile an external call to a function of the slots."""
    call = invoker(callee_of(node, "evaluate"))
    values = [_pass_argument(scope, argument) for argument in node.arguments]

    def run(env: Environment) -> None:
        call([value(env) for value in values])

    return run


def _pass_argument(scope: SlotScope, argument: Any) -> Callable[[Environment], Any]:
    if isinstance(argument, ArrayArgument):
        return _array(scope, argument)
    if isinstance(argument, Expr):
        return compile_expr(scope, argument)
    return lambda env: argument


def _array(scope: SlotScope, node: ArrayArgument) -> Callable[[Environment], Any]:
    """Compile an array argument; its strides are computed from the addresses of its elements."""
    extents = extents_of(scope, node.shape)
    slots = [scope.declare(var) for var in node.variables]
    indices = [compile_expr(scope, index) for index in node.element.indices]
    slot, dtype = scope.view_slot(node.element.buffer), node.element.buffer.dtype

    def offset(env: Environment, view: BufferView, position: tuple[int, ...]) -> int:
        for var_slot, value in zip(slots, position, strict=True):
            env[var_slot] = value
        location = view.flat_index([index(env) for index in indices])
        return sum(map(int.__mul__, location, view.array.strides))

    def array(env: Environment) -> Any:
        view: BufferView = env[slot]
        shape = extents(env)
        full = shape if dtype.lanes == 1 else (*shape, dtype.lanes)
        if 0 in shape:
            return np.empty(full, dtype.numpy)
        rank = len(shape)
        start = offset(env, view, (0,) * rank)
        strides = [
            offset(env, view, tuple(int(k == axis) for k in range(rank))) - start
            if extent > 1 else dtype.bytes
            for axis, extent in enumerate(shape)
        ]
        last = tuple(extent - 1 for extent in shape)
        if offset(env, view, last) != start + sum(map(int.__mul__, last, strides)):
            raise InternalError("`{node}` is not an array: its elements have no strides", node=node)
        lanes = () if dtype.lanes == 1 else (dtype.numpy.itemsize,)
        memory, first = memory_of(view.array)
        return np.ndarray(full, dtype.numpy, memory, first + start, (*strides, *lanes))

    return array


Action: TypeAlias = "Callable[[Environment], None]"


def evaluate(func: PrimFunc, args: Sequence[Any], watch: MemoryObserver | None = None) -> None:
    """Run `func` on arrays, which are modified in place.

    Args:
        func: Function at any stage of lowering.
        args: One argument for each parameter. A variable takes a number. A buffer takes a NumPy
            array of its shape and dtype; a vector dtype such as `float32x4` takes an array of
            scalars with the 4 lanes as an extra last axis. Arrays must be C-contiguous unless the
            buffer has strides. Sizes are taken from the array shapes.
        watch: Observer of all element reads and writes and of the executing core; requires that
            `func` has no vectors. Default: None.

    Raises:
        CallError: If an argument does not match its parameter, or an access is out of bounds.
        InternalError: If `func` is malformed, as a view with another physical rank than its memory.

    >>> from tecomp import te, lower
    >>> A = te.placeholder((3,), name="A")
    >>> B = te.compute((3,), lambda i: A[2 - i] * 2.0, name="B")
    >>> a, b = np.arange(3, dtype="float32"), np.empty(3, "float32")
    >>> evaluate(lower(te.create_schedule(B), [A, B]), [a, b])
    >>> b
    array([4., 2., 0.], dtype=float32)
    """
    check_kind(
        func, PrimFunc, "evaluate: the function", "pass the result of tecomp.lower", CallError
    )
    check_kind(args, Sequence, "evaluate: args", "pass a list of the arguments", CallError)
    verify(func)
    mapped = frozenset(data for data, _ in func.layout_maps)
    scope = SlotScope(func.sites, watch=watch, mapped=mapped)
    params = parameters_of(scope, func)
    body = _compile(scope, func.body)
    with np.errstate(all="ignore"):
        env: Environment = [None] * scope.slots
        env[ACTIVE] = True
        bind(scope, func, params, args, env)
        body(env)


def _compile(scope: SlotScope, stmt: Stmt) -> Action:
    rule = _RULES.get(type(stmt))
    if rule is None:
        raise InternalError("cannot run a statement of kind {type}", type=type(stmt).__name__)
    return rule(scope, stmt)


def _for(scope: SlotScope, node: For) -> Action:
    first, extent = compile_expr(scope, node.min), compile_expr(scope, node.extent)
    slot = scope.declare(node.loop_var)
    body = _compile(scope, node.body)
    # Parallel loops run in reverse, since any order must be valid; an observer sees the
    # program order.
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
    node: For, watch: MemoryObserver, bounds: tuple[Any, Any], slot: int, body: Action
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


def _if(scope: SlotScope, node: IfThenElse) -> Action:
    condition = compile_expr(scope, node.condition)
    then = _compile(scope, node.then_case)
    other = _compile(scope, node.else_case or SeqStmt(()))
    return lambda env: then(env) if condition(env) else other(env)


def _store(scope: SlotScope, node: BufferStore) -> Action:
    value = compile_expr(scope, node.value)
    indices = [compile_expr(scope, index) for index in node.indices]
    predicate = None if node.predicate is None else compile_expr(scope, node.predicate)
    record = None if scope.watch is None else scope.watch.writer(node)
    return store_function(node, scope.view_slot(node.buffer), value, indices, predicate, record)


def _prefetch(scope: SlotScope, node: Prefetch) -> Action:
    # A prefetch is not reported as an access.
    watch, scope.watch = scope.watch, None
    read = compile_expr(scope, node.element)
    scope.watch = watch

    def run(env: Environment) -> None:
        read(env)

    return run


@dataclass(frozen=True, slots=True)
class _Writes:
    """Adapter of an observer that reports reads as writes."""

    watch: MemoryObserver

    def reader(self, node: BufferLoad) -> Seen:
        return self.watch.writer(BufferStore(node.buffer, node, node.indices, node.predicate))

    def __getattr__(self, name: str) -> Any:
        return getattr(self.watch, name)


def _touch(scope: SlotScope, node: OperandTransfer) -> Action:
    watch = scope.watch
    if node.is_written and watch is not None:
        scope.watch = _Writes(watch)
    read = compile_expr(scope, node.element)
    scope.watch = watch

    def run(env: Environment) -> None:
        read(env)

    return run


def _operation(scope: SlotScope, node: TensorOp) -> Action:
    watch = scope.watch
    notify = None if watch is None else watch.operation(node)
    if notify is None:
        return _compile(scope, node.body)
    operands = _compile(scope, node.operands)
    scope.watch = None
    body = _compile(scope, node.body)
    scope.watch = watch

    def run(env: Environment) -> None:
        notify()
        operands(env)
        body(env)

    return run


def _realize(scope: SlotScope, node: BufferRealize) -> Action:
    lows = extents_of(scope, [bound.min for bound in node.bounds])
    extents = extents_of(scope, [bound.extent for bound in node.bounds])

    def region(env: Environment) -> tuple[BufferView, Bytes]:
        low, shape = lows(env), extents(env)
        view, memory = _allocated(node.buffer, shape, compact(shape))
        high = tuple(start + extent for start, extent in zip(low, shape, strict=True))
        return BufferView(view.name, view.array, low, high), memory

    return _check_bounds(scope, node, region)


def _keep(old: BufferView | None, new: BufferView) -> None:
    """Copy the elements that the new region shares with the previous region."""
    if old is None:
        return
    low = [max(ends) for ends in zip(old.low, new.low, strict=True)]
    high = [max(min(ends), start) for *ends, start in zip(old.high, new.high, low, strict=True)]
    source, target = (
        tuple(slice(a - first, b - first) for a, b, first in zip(low, high, view.low, strict=True))
        for view in (old, new)
    )
    new.array[target] = old.array[source]


def _allocate(scope: SlotScope, node: Allocate) -> Action:
    extents, strides = extents_of(scope, node.buffer.shape), strides_of(scope, node.buffer)

    def memory(env: Environment) -> tuple[BufferView, Bytes]:
        return _allocated(node.buffer, extents(env), strides(env))

    return _check_bounds(scope, node, memory)


def _allocated(
    buffer: Buffer, shape: tuple[int, ...], strides: tuple[int, ...]
) -> tuple[BufferView, Bytes]:
    memory = unwritten(buffer.dtype, span(shape, strides))
    return view_of(buffer.name, memory, buffer.dtype, shape, strides), memory


def _check_bounds(
    scope: SlotScope,
    node: Allocate | BufferRealize,
    make: Callable[[Environment], tuple[BufferView, Bytes]],
) -> Action:
    view, memory = scope.declare_view(node.buffer), scope.declare(node.buffer.data)
    body = _compile(scope, node.body)
    scope.forget_view(node.buffer)

    is_carried = isinstance(node, BufferRealize) and node.carried is not None

    def run(env: Environment) -> None:
        last = env[view]
        env[view], env[memory] = make(env)
        if is_carried:
            _keep(last, env[view])
        body(env)

    return run


def _declare(scope: SlotScope, node: DeclBuffer) -> Action:
    buffer, memory = node.buffer, scope.slot_of(node.buffer.data)
    extents, strides = extents_of(scope, buffer.shape), strides_of(scope, buffer)
    offset = extents_of(scope, [buffer.elem_offset])
    slot = scope.declare_view(buffer)
    body = _compile(scope, node.body)
    scope.forget_view(buffer)
    row_bytes = _row_bytes(scope, buffer)

    def run(env: Environment) -> None:
        region, shape = bytes_of(env[memory]), extents(env)
        if row_bytes is None:
            [first] = offset(env)
            env[slot] = view_of(buffer.name, region, buffer.dtype, shape, strides(env), first)
        else:
            cut, row = buffer.axis_separators[-1] + 1, row_bytes(env)
            env[slot] = view_of_rows(buffer.name, region, buffer.dtype, shape, cut, row)
        body(env)

    return run


def _row_bytes(scope: SlotScope, view: Buffer) -> Callable[[Environment], int] | None:
    """Return a function that computes the row size in bytes of the memory of a view.

    Rows of the memory may be longer than those of the view. The result is None if the memory has
    one physical axis, pending layout maps or strides.
    """
    if not view.axis_separators or view.data in scope.mapped:
        return None
    memory, slot = scope.memory_of(view)
    if not memory.axis_separators or view.strides or memory.strides:
        return None
    cut = memory.axis_separators[-1] + 1

    def row_bytes(env: Environment) -> int:
        view: BufferView = env[slot]
        return prod(view.array.shape[cut:]) * view.array.itemsize

    return row_bytes


def _let(scope: SlotScope, node: Let) -> Action:
    """Compile a chain of `Let` statements iteratively, because long chains exceed the stack."""
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


def _sequence(scope: SlotScope, node: SeqStmt) -> Action:
    actions = [_compile(scope, stmt) for stmt in node.stmts]

    def run(env: Environment) -> None:
        for action in actions:
            action(env)

    return run


_RULES: dict[type[Stmt], Callable[[SlotScope, Any], Action]] = {
    For: _for,
    IfThenElse: _if,
    BufferStore: _store,
    Prefetch: _prefetch,
    BufferRealize: _realize,
    Allocate: _allocate,
    DeclBuffer: _declare,
    Let: _let,
    SeqStmt: _sequence,
    OperandTransfer: _touch,
    TensorOp: _operation,
    ExternCall: outside_call,
}
