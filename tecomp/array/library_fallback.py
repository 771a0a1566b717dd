"""Operations computed eagerly by an external library (NumPy, SciPy)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tecomp.array.graph.evaluate import check_recordable, data_of
from tecomp.array.graph.node import (
    CallResult,
    LibraryCallRecord,
    Node,
    distributed_hooks,
    materialized_node,
    record_call,
    tracing,
)
from tecomp.array.statistics import costs_of, counters
from tecomp.errors import ArrayMemoryError
from tecomp.ptensor.devices import CPU, default_dtype, dtypes_of, is_apart, on_its_device
from tecomp.ptensor.library_functions import compute
from tecomp.ptensor.operations.base import LibraryOperation
from tecomp.ptensor.types import ALL, PTensorType, check_same_device_and_team, numpy_dtype


def call_library(op: LibraryOperation, *operands: Node) -> tuple[Node, ...]:
    """Compute an operation with a library function and return the results.

    The operands are evaluated first. The results are on the device of the operands. While `jit`
    records a function, the call is recorded and repeated in each run of the function.

    Args:
        op: Operation.
        operands: Operands of the operation.

    Raises:
        ArrayTypeError: If the operation does not support the dtypes.
        ArrayValueError: If the shapes do not match, or the computation has no result.
        DeviceMismatchError: If the operands are on different devices.
        TeamMismatchError: If the operands belong to different teams.
    """
    types = op.results(*[operand.type for operand in operands])
    device = types[0].device
    if is_apart(device):
        dtypes = {operand.type.dtype for operand in operands}
        types = tuple([on_its_device(ptype, op.where, None, dtypes) for ptype in types])
    if tracing.depth:
        return _library_call_later(op, types, operands)
    if is_apart(device):
        costs_of(device).libraries[op.library] += 1
    if types[0].team is not None:
        distributed = distributed_hooks().run_library_call(op, operands)
        if distributed is not None:
            return distributed
    buffers = [data_of(operand, op.library) for operand in operands]
    counters.libraries[op.library] += 1
    try:
        found = compute(op, *buffers)
    except MemoryError as error:
        raise ArrayMemoryError(
            "{where}: not enough memory for {library} of {operands} ({reason}); split the "
            "computation into smaller parts",
            where=op.where, library=op.library,
            operands=" and ".join(map(str, [o.type for o in operands])), reason=error,
        ) from None
    call = LibraryCallRecord(op, tuple([operand.type for operand in operands]), types)
    results: tuple[Node, ...] = tuple([
        CallResult(
            ptype.like(data.shape, ptype.dtype), data.astype(numpy_dtype(ptype.dtype), copy=False),
            call, number,
        )
        for number, (data, ptype) in enumerate(zip(found, types, strict=True))
    ])
    return distributed_hooks().like_operands(results, operands) if types[
        0].team is not None else results


def call_numpy(name: str, arguments: Any, options: Mapping[str, Any]) -> Any:
    """Call a NumPy function with the elements of nodes in place of the nodes.

    Args:
        name: Name of the function, such as `linalg.lstsq`.
        arguments: Positional arguments; nodes also within lists and tuples.
        options: Keyword arguments.

    Returns:
        Result of the function with nodes in place of arrays, on the device and the team of the
        operands.

    Raises:
        DataDependentShapeError: If a function is being recorded.
        DeviceMismatchError: If the operands are on different devices.
        TeamMismatchError: If the operands belong to different teams.
    """
    check_recordable(f"numpy.{name}")
    operands: list[Node] = []
    library = f"numpy.{name}"

    def elements(value: Any) -> Any:
        if isinstance(value, Node):
            operands.append(value)
            return data_of(value, library)
        if type(value) in (list, tuple):
            return type(value)([elements(part) for part in value])
        return value

    values = [elements(value) for value in arguments]
    named = {key: elements(value) for key, value in options.items()}
    if operands:
        check_same_device_and_team([node.type for node in operands], library)
    function: Any = np
    for part in name.split("."):
        function = getattr(function, part)
    counters.libraries[library] += 1
    if operands and is_apart(operands[0].type.device):
        costs_of(operands[0].type.device).libraries[library] += 1
    return _as_nodes(function(*values, **named), operands)


def _as_nodes(result: Any, operands: Sequence[Node]) -> Any:
    """Return a result of NumPy with nodes in place of arrays and numbers, like the operands."""
    if isinstance(result, tuple | list):
        parts = [_as_nodes(part, operands) for part in result]
        return parts if isinstance(result, list) else tuple(parts)
    if not isinstance(result, np.ndarray | np.number | np.bool):
        return result
    data = np.asarray(result)
    dtype = data.dtype.name
    if dtype not in ALL:
        return result
    template = operands[0].type if operands else PTensorType((), dtype, CPU)
    if dtype not in dtypes_of(template.device):
        dtype = default_dtype(dtype, template.device)
    node = materialized_node(
        data.astype(numpy_dtype(dtype), copy=False), template.like(data.shape, dtype))
    if template.team is None:
        return node
    return distributed_hooks().like_operands((node,), tuple(operands))[0]


def _library_call_later(
    op: LibraryOperation, types: Sequence[PTensorType], operands: tuple[Node, ...]
) -> tuple[Node, ...]:
    if any([extent is None for ptype in types for extent in ptype.shape]):
        check_recordable(op.where)

    def run(*inputs: Node) -> tuple[Node, ...]:
        return call_library(op, *inputs)

    return record_call(run, op, types, *operands)
