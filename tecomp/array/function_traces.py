"""Traces of functions of arrays: recorded operations that run on other operands."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from tecomp.array.array_object import Array, from_node
from tecomp.array.graph.evaluate import MIN_OPERATIONS, DataDependentShapeError, flush_if_long
from tecomp.array.graph.node import (
    FunctionTrace,
    HostCall,
    HostResult,
    Node,
    materialized_node,
    record,
    traces,
)
from tecomp.array.graph.pending import WriteInProgress
from tecomp.array.graph.views import apply_view, is_view
from tecomp.array.library_fallback import call_library
from tecomp.errors import ArrayTypeError
from tecomp.ptensor.devices import default_dtype
from tecomp.ptensor.operation import PTensorOp
from tecomp.ptensor.operations.base import LibraryOperation
from tecomp.ptensor.operations.elementwise import FUNCTIONS, CastOp, WhereOp
from tecomp.ptensor.operations.linear_algebra import MatrixTranspose
from tecomp.ptensor.operations.manipulation import (
    BroadcastOp,
    ExpandDims,
    ExtractSlice,
    PermuteDims,
    Reshape,
)
from tecomp.ptensor.operations.reduction import ReduceOp
from tecomp.ptensor.types import COMPLEX, PTensorType, Shape, axis_of, numpy_dtype
from tecomp.source_locations import Location


def map_leaves(function: Callable[[Any], Any], tree: Any) -> Any:
    """Apply a function to the leaves of nested lists, tuples and dicts; None has no leaves.

    >>> map_leaves(lambda x: x + 1, {"a": [1, (2, None)]})
    {'a': [2, (3, None)]}
    """
    if isinstance(tree, dict):
        return {key: map_leaves(function, item) for key, item in tree.items()}
    if isinstance(tree, list | tuple):
        items = [map_leaves(function, item) for item in tree]
        if isinstance(tree, list):
            return items
        return type(tree)(*items) if hasattr(tree, "_fields") else tuple(items)
    return None if tree is None else function(tree)


def leaves_of(tree: Any) -> list[Any]:
    """Return the leaves of nested lists, tuples and dicts.

    >>> leaves_of({"a": [1, (2, None)]})
    [1, 2]
    """
    found: list[Any] = []
    map_leaves(found.append, tree)
    return found


def replace_leaves(tree: Any, leaves: Iterable[Any]) -> Any:
    """Return a tree with other leaves.

    >>> replace_leaves({"a": [1, (2, None)]}, "xy")
    {'a': ['x', ('y', None)]}
    """
    remaining = iter(leaves)
    return map_leaves(lambda _: next(remaining), tree)


class CustomCall:
    """Call of a function with a derivative of the user.

    Attributes:
        pull_back: Function from the residuals and the cotangents of the results, two sequences of
            arrays, to the cotangents of the inputs.
        count: Number of results.
        saved: Number of residuals.
    """

    def __init__(
        self, pull_back: Callable[[Sequence[Array], Sequence[Array]], Sequence[Array | None]],
        count: int, saved: int,
    ) -> None:
        self.pull_back = pull_back
        self.count = count
        self.saved = saved


@dataclass(frozen=True)
class CustomResult(PTensorOp):
    """Result of a call with a derivative of the user; the value is that of an operand.

    The operands are all results of the function, the residuals, then its inputs.

    Attributes:
        call: Call, which is shared by all results.
        index: Index of the result.
    """

    name = "custom_vjp"
    takes = (1, None)

    call: CustomCall = field(hash=False)
    index: int

    def infer(self, *operands: PTensorType) -> PTensorType:
        """Return the type of the result."""
        return operands[self.index]


class Step(NamedTuple):
    """Operation of a trace with all its results.

    Attributes:
        op: Operation, or description of a host call.
        call: Host call, or call with a derivative of the user; None for other operations.
        operands: Operands.
        results: Recorded results by their index.
        location: Location in user code.
    """

    op: Any
    call: HostCall | CustomCall | None
    operands: tuple[Node, ...]
    results: dict[int, Node]
    location: Location | None


@dataclass(frozen=True)
class TracedFunction:
    """Operations that a function of arrays applies to its inputs.

    Attributes:
        where: Name of the transformation, for error messages.
        inputs: Inputs, which have no elements.
        steps: Operations in the order in which they can be run.
        outputs: Nodes of the arrays in the result.
        result: Result of the function, with an index in place of each array.
    """

    where: str
    inputs: tuple[Node, ...]
    steps: tuple[Step, ...]
    outputs: tuple[Node, ...]
    result: Any

    def run(self, inputs: Sequence[Node]) -> dict[Node, Node]:
        """Apply the operations to other inputs; return a node for each node of the trace."""
        known = dict(zip(self.inputs, inputs, strict=True))
        for step in self.steps:
            found = run_step(step, [known.get(node, node) for node in step.operands])
            known.update({node: found[k] for k, node in step.results.items()})
        return known


def trace_function(
    function: Callable[..., Any], types: Sequence[PTensorType], where: str, *,
    differentiates: bool = False,
) -> TracedFunction:
    """Record the operations of a function of arrays.

    Args:
        function: Function of one array for each type.
        types: Types of the inputs.
        where: Name of the transformation, for error messages.
        differentiates: Whether the derivatives of the function are computed.

    Raises:
        ArrayTypeError: If the function returns other objects than arrays, reads the value of an
            element, changes an array in place that it did not create, or has a shape that depends
            on values.
    """
    inputs = tuple([Node(ptype, None, (), None, 0, 0) for ptype in types])
    arguments = [from_node(node) for node in inputs]
    trace = FunctionTrace(where, differentiates=differentiates)
    with trace:
        try:
            returned = function(*arguments)
        except DataDependentShapeError as error:
            raise ArrayTypeError(
                "{where}: the result of {function} has a shape that depends on values, which is "
                "not supported in a transformed function; use where instead of a mask",
                error.location, kind="recording", where=where,
                function=error.parameters["where"],
            ) from None
        outputs = tuple([_output(leaf, where)._node for leaf in leaves_of(returned)])
    steps = _steps(outputs, trace)
    return TracedFunction(
        where, inputs, steps, outputs, replace_leaves(returned, range(len(outputs))))


def _output(value: Any, where: str) -> Array:
    if isinstance(value, Array):
        return value
    raise ArrayTypeError(
        "{where}: the function must return arrays, also in tuples, lists and dicts, got {type}; "
        "convert numbers with xp.asarray(...)",
        kind="not-an-array", where=where, type=type(value).__name__,
    )


def _steps(outputs: Sequence[Node], trace: FunctionTrace) -> tuple[Step, ...]:
    """Return the recorded operations on which the outputs depend, operands first."""
    steps: dict[Any, Step] = {}
    done: set[Node] = set()
    stack = [*reversed(outputs)]
    while stack:
        node = stack[-1]
        is_step = node in trace.locations or isinstance(node, WriteInProgress)
        if node in done or node.op is None or not is_step:
            done.add(stack.pop())
        elif missing := [operand for operand in node.operands if operand not in done]:
            stack += reversed(missing)
        else:
            done.add(stack.pop())
            op: Any = node.op
            call = op.call if isinstance(op, HostResult | CustomResult) else None
            index = op.index if isinstance(op, HostResult | CustomResult) else 0
            described = op.call.op if isinstance(op, HostResult) else op
            location = trace.locations.get(node)
            step = Step(described, call, node.operands, {}, location)
            steps.setdefault(node if call is None else call, step).results[index] = node
    return tuple(steps.values())


def run_step(step: Step, operands: Sequence[Node]) -> Sequence[Node]:
    """Apply the operation of a step; return its results."""
    if isinstance(step.call, CustomCall):
        if not is_differentiated():
            return operands
        return record_custom(step.call, operands)
    if isinstance(step.call, HostCall) and not isinstance(step.op, LibraryOperation):
        results: Sequence[Node] = step.call.run(*operands)
        return results
    return run_operation(step.op, *operands)


def run_operation(op: PTensorOp, *operands: Node) -> Sequence[Node]:
    """Apply an operation; return its results."""
    if isinstance(op, LibraryOperation):
        return call_library(op, *operands)
    node = apply_view(op, *operands) if is_view(op) else record(op, *operands)
    if node.pending > MIN_OPERATIONS:
        flush_if_long(node)
    return (node,)


def apply(op: PTensorOp, *operands: Array) -> Array:
    """Apply an operation with one result to arrays."""
    return from_node(run_operation(op, *[operand._node for operand in operands])[0])


def record_custom(call: CustomCall, operands: Sequence[Node]) -> list[Node]:
    """Record the results of a call with a derivative of the user."""
    return [record(CustomResult(call, k), *operands) for k in range(call.count)]


def is_differentiated() -> bool:
    """Return whether the function that this thread records is differentiated."""
    return any(trace.differentiates for trace in _enclosing())


def _enclosing() -> Iterator[FunctionTrace]:
    trace = traces.current()
    while trace is not None:
        yield trace
        trace = trace.outer


def hold(x: Array) -> Array:
    """Return an array as a constant: its derivative is 0."""
    if not is_differentiated():
        return x
    return from_node(record_custom(CustomCall(lambda values, gs: [], 1, 0), [x._node])[0])


def arrays_of(nodes: Mapping[Node, Node], keys: Iterable[Node]) -> list[Array]:
    """Return arrays for nodes of a trace, once its operations have run."""
    return [from_node(nodes.get(key, key)) for key in keys]


def cast(x: Array, dtype: str) -> Array:
    """Cast an array to a dtype if necessary."""
    return x if x._node.type.dtype == dtype else apply(CastOp(dtype), x)


def constant(value: Any, template: PTensorType, dtype: str | None = None) -> Array:
    """Return a number, or an array of numbers, beside an array of a type."""
    data = np.asarray(value, numpy_dtype(dtype or template.dtype))
    return from_node(materialized_node(data, template.like(data.shape, dtype or template.dtype)))


def zeros(ptype: PTensorType) -> Array:
    """Return zeros of a type."""
    return apply(BroadcastOp(ptype.shape), constant(0, ptype))


def iota(x: Array, axis: int) -> Array:
    """Return the indices along an axis of an array, of shape (n, 1, ..., 1)."""
    ptype, dim = x._node.type, axis_of(axis, x.ndim, "grad")
    indices = np.arange(x.shape[dim]).reshape(-1, *(1,) * (x.ndim - dim - 1))
    return constant(indices, ptype, default_dtype("int64", ptype.device))


def where(condition: Array, x: Array, y: Array) -> Array:
    """Select elements of `x` where the condition holds, and of `y` elsewhere."""
    return apply(WhereOp(), condition, x, y)


def reshape(x: Array, shape: Shape) -> Array:
    """Change the shape of an array if necessary."""
    return x if x.shape == shape else apply(Reshape(shape), x)


def permute(x: Array, order: Sequence[int]) -> Array:
    """Permute the axes of an array."""
    return apply(PermuteDims(tuple(order)), x)


def total(x: Array, axes: Sequence[int], keepdims: bool = False) -> Array:
    """Sum along axes."""
    return apply(ReduceOp("sum", tuple(axes), keepdims), x)


def expand(x: Array, *axes: int) -> Array:
    """Insert axes of size 1."""
    return apply(ExpandDims(tuple(sorted([k % (x.ndim + len(axes)) for k in axes]))), x)


def part_along(x: Array, axis: int, first: int, count: int, step: int = 1) -> Array:
    """Return a range of elements along an axis."""
    dim = axis_of(axis, x.ndim, "grad")
    spans = [(first, step, count) if k == dim else (0, 1, n) for k, n in enumerate(x.shape)]
    return apply(ExtractSlice(tuple(spans)), x)


def conjugate(x: Array) -> Array:
    """Return the complex conjugate; real arrays unchanged."""
    return apply(FUNCTIONS["conj"], x) if x._node.type.dtype in COMPLEX else x


def transpose(x: Array) -> Array:
    """Transpose the last two axes."""
    return apply(MatrixTranspose(), x)


def check_function(fun: object, where: str) -> None:
    """Check that an argument is a function.

    Raises:
        ArrayTypeError: If it is not callable.
    """
    if not callable(fun):
        raise ArrayTypeError(
            "{where}: expected a function of arrays, got {function!r} ({type})",
            where=where, function=fun, type=type(fun).__name__,
        )
