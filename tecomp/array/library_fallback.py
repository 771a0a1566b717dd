"""Operations computed eagerly by an external library (NumPy, SciPy)."""

from __future__ import annotations

from collections.abc import Sequence

from tecomp.array.graph.evaluate import check_recordable, data_of
from tecomp.array.graph.node import (
    CallResult,
    LibraryCallRecord,
    Node,
    distributed_hooks,
    record_call,
    tracing,
)
from tecomp.array.statistics import costs_of, counters
from tecomp.errors import ArrayMemoryError
from tecomp.ptensor.devices import is_apart, on_its_device
from tecomp.ptensor.library_functions import compute
from tecomp.ptensor.operations.base import LibraryOperation
from tecomp.ptensor.types import PTensorType, numpy_dtype


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


def _library_call_later(
    op: LibraryOperation, types: Sequence[PTensorType], operands: tuple[Node, ...]
) -> tuple[Node, ...]:
    if any([extent is None for ptype in types for extent in ptype.shape]):
        check_recordable(op.where)

    def run(*inputs: Node) -> tuple[Node, ...]:
        return call_library(op, *inputs)

    return record_call(run, types, *operands)
