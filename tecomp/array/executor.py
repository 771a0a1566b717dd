"""Execute lowered ptensor functions: local computations and runtime calls."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from functools import singledispatch
from math import prod
from typing import Any

import numpy as np

from tecomp import dist
from tecomp.array.distributed.reductions import identity
from tecomp.array.graph.evaluate import data_of
from tecomp.array.graph.node import Node, local_type, materialized_node, record
from tecomp.array.graph.views import apply_view
from tecomp.array.indexing.getitem import places_in, select_at, truth_of
from tecomp.array.interop.imports import as_node
from tecomp.array.kernels.generators import create_array
from tecomp.array.library_fallback import call_library
from tecomp.dist.partition.placements import Places, count_of, indices_as_array
from tecomp.errors import ArrayValueError, TeamError, TecompError
from tecomp.ptensor.devices import CPU
from tecomp.ptensor.function import Parameter
from tecomp.ptensor.lowering.device_regions import enumerate_statements
from tecomp.ptensor.lowering.lowered_ir import (
    Compute,
    FunctionCall,
    Generic,
    ImportStatement,
    InputNumber,
    Literal,
    LoweredFunction,
    LoweredLibraryCall,
    LoweredModule,
    RuntimeCall,
    ScalarCall,
    Slice,
    Together,
    ValueName,
)
from tecomp.ptensor.operation import AttributeOperand
from tecomp.ptensor.operations.creation import Arange, AsArray, Create, CreateLike
from tecomp.ptensor.operations.manipulation import BroadcastOp, ExtractMask, ExtractSlice, Nonzero
from tecomp.ptensor.operations.reduction import ReduceOp
from tecomp.ptensor.types import (
    ALL,
    PTensorType,
    Shape,
    axes_of,
    drop_axes,
    numpy_dtype,
    of_scalar,
)

Values = dict[str, Any]
_MODULE_KEY = "@"
"""Key of the module of called functions in `Values`; no value can have this name."""


def execute(
    function: LoweredFunction, *arguments: Any, among: LoweredModule | None = None
) -> tuple[Any, ...]:
    """Execute a lowered function on this process.

    This is a collective call for functions with teams: every rank of their teams must make it.

    Args:
        function: Result of `dist_to_runtime`, or of `lower_ptensor` for a function without teams.
        arguments: A number or a string per parameter; for a tensor parameter the tuple to which it
            is lowered: the local NumPy array, the device, the team and the number of the tensor.
        among: Module of the functions that `function` calls, if any.

    Returns:
        Results, with tensors as such tuples; numbers, shapes and dtype names are unchanged.

    Raises:
        TecompError: If a statement raises an error; the message gives the line of the statement.
        TeamError: If a tensor does not have the default partition of new tensors.
        ArrayValueError: If the number of arguments or the type of an argument does not match the
            parameters.

    >>> import numpy as np
    >>> from tecomp.ptensor.lowering.lower import lower_ptensor
    >>> from tecomp.ptensor.parse import parse
    >>> f = parse('''func @f(%x: ptensor<3xint64>) -> ptensor<3xint64> {
    ...   %y = ptensor.elementwise_unary_op{'negative'}(%x): (ptensor<3xint64>) -> ptensor<3xint64>
    ...   return %y
    ... }''')
    >>> execute(lower_ptensor(f), (np.arange(3), None, None, None))
    ((array([ 0, -1, -2]), None, None, None),)
    """
    if len(arguments) != len(function.parameters):
        raise ArrayValueError(
            "@{function}: expected {parameter_count} arguments, got {argument_count}; pass one "
            "argument per parameter",
            kind="argument-count", function=function.name, argument_count=len(arguments),
            parameter_count=len(function.parameters),
        )
    values: Values = {_MODULE_KEY: among}
    for parameter, argument in zip(function.parameters, arguments, strict=True):
        values[parameter.name] = _bind_parameter(parameter, argument, function.name)
    return tuple([_given_back(result) for result in _run(function, values)])


def _run(function: LoweredFunction, values: Values) -> list[Any]:
    """Run the statements on the values of the parameters and return the results."""
    for line, statement in enumerate_statements(function):
        try:
            result = _value(statement.value, values)
        except TecompError as error:
            where = f"@{function.name}: line {line}: `{statement.value}`"
            raise type(error)(f"{where}: {error.message}") from error
        if statement.result is not None:
            values[statement.result] = result
    return [values[name] for name in function.results]


def _bind_parameter(parameter: Parameter, argument: Any, function: str) -> Any:
    where = f"@{function}: %{parameter.name}"
    if isinstance(parameter.type, str):
        is_number = parameter.type in ALL and argument is not None  # None is an absent team
        return _bind_number(parameter.type, argument, where) if is_number else argument
    local, device, team, gid = argument
    data = np.asarray(local)  # a 0-d tensor may be passed as a NumPy scalar
    where = f"{where} is"
    shape = data.shape if team is None else dist.partition_of(team, gid).shape
    _check_type(shape, data.dtype.name, parameter.type, where)
    if team is not None:
        _check_usual(team, gid, where)
    ptype = PTensorType(data.shape, data.dtype.name, device)
    return materialized_node(data, ptype), device, team, gid


def _bind_number(dtype: str, argument: Any, where: str) -> complex:
    """Return a number with the value that its dtype represents."""
    value = argument.item() if getattr(argument, "shape", None) == () else argument
    is_number = isinstance(value, bool | int | float | complex)
    if not is_number or of_scalar(value, dtype, where) != dtype:
        raise ArrayValueError(
            "{where} is {argument!r}, expected {expected}; pass a number of that dtype",
            where=where, argument=argument, expected=dtype,
        )
    with np.errstate(over="ignore"):  # beyond the limits of a float, its value is infinite
        number: complex = numpy_dtype(dtype).type(value).item()
    return number


def _check_type(shape: Shape, dtype: str, expected: PTensorType, where: str) -> None:
    matches = len(shape) == expected.rank and all(
        n == m or m is None for n, m in zip(shape, expected.shape, strict=True))
    if dtype != expected.dtype or not matches:
        raise ArrayValueError(
            "{where} {dtype}{shape}, expected {expected}; pass an array of that type",
            where=where, dtype=dtype, shape=list(shape), expected=expected,
        )


def _check_usual(team: int, gid: int, where: str) -> None:
    """Reject a tensor that is not block-sharded along its first axis, as lowering assumes."""
    found = dist.partition_of(team, gid)
    first: dist.Placement = dist.Shard(0) if found.shape else dist.Replicate()
    usual = dist.Partition(
        found.shape, found.dtype, dist.Mesh((dist.team_of(team).size,)), [first])
    if not _has_places_of(found, usual):
        raise TeamError(
            "{where} placed as {placements}, expected {usual_placements}; copy it to a new tensor "
            "first with dist.copy",
            where=where, placements=list(found.placements),
            usual_placements=list(usual.placements),
        )


def _has_places_of(actual: dist.Partition, expected: dist.Partition) -> bool:
    """Return whether every rank owns the same elements in both partitions."""
    if actual.op is not None or actual.windows is not None:
        return False
    return all(
        _is_same_part(one, other) for rank in range(expected.mesh.size)
        for one, other in zip(actual.local_index(rank), expected.local_index(rank), strict=True)
    )


def _is_same_part(a: Places, b: Places) -> bool:
    """Return whether two index sets of an axis have the same indices in the same order."""
    if count_of(a) != count_of(b):
        return False
    if isinstance(a, slice) and isinstance(b, slice):
        return a == b or not count_of(a)
    return np.array_equal(indices_as_array(a), indices_as_array(b))


def _given_back(value: Any) -> Any:
    if not (isinstance(value, tuple) and value and isinstance(value[0], Node)):
        return value  # the value is a number or a shape
    node, *metadata = value
    return data_of(node), *metadata


def _operand(operand: Any, values: Values) -> Any:
    if isinstance(operand, Literal):
        return operand.value
    assert isinstance(operand, ValueName)
    value = values[operand.name]
    return value if operand.part is None else value[operand.part]


@singledispatch
def _value(value: Any, values: Values) -> Any:
    """Evaluate an expression."""
    return _operand(value, values)


@_value.register
def _(value: InputNumber, values: Values) -> None:
    """Skip a number that is an argument: the statement that needs the argument reads it."""


@_value.register
def _(value: Slice, values: Values) -> None:
    """Skip the full slice of a new tensor."""


@_value.register
def _(value: Together, values: Values) -> Any:
    return tuple([_operand(operand, values) for operand in value.operands])


@_value.register
def _(value: ScalarCall, values: Values) -> Any:
    operands = [_operand(operand, values) for operand in value.operands]
    if value.function == "linalg.init_tensor":
        shape, ptype = operands[0], value.type
        assert ptype is not None
        data = np.empty(shape, numpy_dtype(ptype.dtype))
        return materialized_node(data, local_type(ptype, shape))
    return _CALLS[value.function](*operands)


def _part(tensor: Node, part: Any) -> Node:
    """Return the elements of a local slice."""
    return apply_view(
        ExtractSlice(tuple([
            (span.start, span.step, len(range(span.start, span.stop, span.step or 1)))
            for span in part
        ])), tensor
    )


def _stop(start: int, stop: int, step: int) -> int:
    """Return the end of the range after whole steps."""
    return start + _count(start, stop, step) * step


def _count(start: int, stop: int, step: int) -> int:
    count = Arange(start, stop, step, "int64").count
    assert count is not None
    return count


_CALLS: Mapping[str, Callable[..., Any]] = {
    "$shape": lambda shape: shape,
    "$extents": lambda *extents: extents,
    "$num_elements": prod,
    "$shape_of": lambda tensor: data_of(tensor).shape,
    "$global_shape": lambda team, gid: dist.partition_of(team, gid).shape,
    "$whole": lambda shape: tuple([slice(0, n, 1) for n in shape]),
    "$compute_stop_index": _stop,
    "$compute_global_shape": lambda *numbers: (_count(*numbers),),
    "tensor.extract_slice": _part,
}


@_value.register
def _(value: Compute, values: Values) -> Any:
    nodes = [_operand(operand, values) for operand in value.operands]
    op = _fill(value.op, values) if value.op.open else value.op
    if isinstance(op, ExtractMask):
        return select_at(nodes[0], nodes[1])
    if isinstance(op, Nonzero):
        indices = places_in(truth_of(nodes[0]))
        return tuple(indices) if len(indices) > 1 else indices[0]
    if isinstance(op, ReduceOp) and op.row.needs_elements:
        shape = nodes[0].type.shape
        axes = axes_of(op.axis, len(shape), op.kind)
        if any(shape[axis] == 0 for axis in axes):  # an empty shard must not change the reduction
            found = nodes[0].type.like(drop_axes(shape, axes, op.keepdims))
            return materialized_node(np.full(found.shape, identity(op.row, found.dtype)), found)
    return record(op, *nodes)


@_value.register
def _(value: ImportStatement, values: Values) -> Node:
    (inputs,) = [_operand(operand, values) for operand in value.operands]
    op, ptype = value.op, value.type
    dtype, copy = (ptype.dtype, op.copy) if isinstance(op, AsArray) else (None, False)
    node = as_node(inputs, dtype, ptype.device or CPU, copy, op.name, is_read_now=True)
    _check_type(node.type.shape, node.type.dtype, ptype, f"{op.name}: the imported data is")
    if ptype.device is not None:
        return node
    # Tensors without a device can only be combined with other tensors without a device.
    return materialized_node(data_of(node), PTensorType(node.type.shape, node.type.dtype))


@_value.register
def _(value: FunctionCall, values: Values) -> Any:
    module: LoweredModule | None = values[_MODULE_KEY]
    among = () if module is None else module.functions
    callee = next((item for item in among if item.name == value.function), None)
    if callee is None:
        raise ArrayValueError("callee not found; pass its module, execute(..., among=)")
    operands = [_operand(operand, values) for operand in value.operands]
    inputs = {p.name: item for p, item in zip(callee.parameters, operands, strict=True)}
    found = _run(callee, {_MODULE_KEY: module, **inputs})
    return found if len(found) > 1 else found[0]


@_value.register
def _(value: LoweredLibraryCall, values: Values) -> Any:
    assert value.op.library is not None
    found = call_library(value.op, *[_operand(operand, values) for operand in value.operands])  # type: ignore[arg-type]
    return found if len(value.results) > 1 else found[0]


@_value.register
def _(value: Generic, values: Values) -> Node:
    part, shape, _, *rest = [_operand(operand, values) for operand in value.operands]
    op = _fill(value.op, values)
    if isinstance(op, Create | CreateLike):
        spec = PTensorType((), value.type.dtype, value.type.device)
        scalar = record(
            Create((), spec.dtype, spec.device), materialized_node(data_of(rest[0]), rest[0].type)
        )
        return apply_view(BroadcastOp(shape), scalar)
    starts = tuple([span.start for span in part]) if part is not None else (0,) * len(shape)
    return create_array(op, (shape, starts))


def _fill(op: Any, values: Values) -> Any:
    """Return an operation with the numbers of this call, without its team."""
    found = {f.name: getattr(op, f.name) for f in fields(op)}
    known = {
        name: values[value.name] for name, value in found.items()
        if isinstance(value, AttributeOperand)
    }
    overrides = {"team": None} if "team" in found else {}
    return replace(op, **{**known, **overrides})


@_value.register
def _(value: RuntimeCall, values: Values) -> Any:
    operands = [_operand(operand, values) for operand in value.operands]
    inputs = [data_of(item) if isinstance(item, Node) else item for item in operands]
    named = {"placements": list(value.placements)} if value.placements else {}
    if value.function in ("copy", "finalize_reduce"):
        return _run_writing_call(value, inputs, values)
    return getattr(dist, value.function)(_operand(value.team, values), *inputs, **named)


def _run_writing_call(value: RuntimeCall, inputs: list[Any], values: Values) -> None:
    """Run a call that writes its last operand, on a private copy of that operand."""
    name = value.operands[-1]
    assert isinstance(name, ValueName)
    data = np.array(inputs[-1], order="C")
    getattr(dist, value.function)(_operand(value.team, values), *inputs[:-1], data)
    values[name.name] = materialized_node(data, values[name.name].type)
